//! What a series of response times shows: windows, recovery, spikes, batches.
//!
//! How: see the parent's head; pure functions of records. Units: MB/s with 10^6
//! bytes, seconds, ns in names. Source: paper 004, sections 3.3.2 and 3.3.3,
//! figure 3.2 and appendix C.

use serde::Serialize;
use uflip_device::{IoRecord, Nanos};

/// The least ratio between a spike and what is none.
pub const SPIKE_GAP: f64 = 3.0;
/// Series shorter than this are not searched for spikes.
pub(super) const SPIKE_IOS: usize = 200;
/// The most batches that a series is told in.
pub(super) const BATCHES: usize = 1000;

/// Spikes in a series of response times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spikes {
    /// How many.
    pub count: usize,
    /// The first one's place, from 0.
    pub first_io: usize,
    /// Median distance in IOs; `None` for a single spike.
    pub period_ios: Option<usize>,
    /// Median height: the sum of the IOs in a row, in ns.
    pub height_ns: u64,
    /// The IOs between two spikes in ns, by median IO and period.
    pub between_ns: Option<u64>,
}

pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// MB/s in each whole window of a run, from its records, some at a time.
pub(super) struct Windows {
    width: u64,
    bytes: Vec<f64>,
}

impl Windows {
    pub(super) fn new(window: Nanos, elapsed: Nanos) -> Windows {
        let width = window.0.max(1);
        let n = usize::try_from(elapsed.0 / width).unwrap_or(usize::MAX).min(1 << 20);
        Windows { width, bytes: vec![0.0; n] }
    }

    pub(super) fn push(&mut self, records: &[IoRecord]) {
        for record in records {
            let (start, end) = (record.submit().0, record.submit().0 + record.service().0.max(1));
            let density = f64::from(record.size()) / (end - start) as f64;
            let mut at = start;
            while at < end {
                let place = (at / self.width) as usize;
                let Some(cell) = self.bytes.get_mut(place) else { break };
                let next = end.min((place as u64 + 1) * self.width);
                *cell += density * (next - at) as f64;
                at = next;
            }
        }
    }

    pub(super) fn finish(self) -> Vec<f64> {
        self.bytes.iter().map(|b| b / self.width as f64 * 1e3).collect()
    }
}

/// MB/s in each whole window of a run that took `elapsed`.
pub fn windows(records: &[IoRecord], window: Nanos, elapsed: Nanos) -> Vec<f64> {
    let mut windows = Windows::new(window, elapsed);
    windows.push(records);
    windows.finish()
}

/// Time until `windows` reach `speed`; `None` where never.
pub fn recovery_s(windows: &[f64], window: Nanos, speed: f64) -> Option<f64> {
    let first = windows.iter().position(|w| *w >= speed)?;
    Some(first as f64 * window.as_secs_f64())
}

/// The spikes of a series of response times in ns; `None` where there are none.
pub fn spikes(responses_ns: &[u64]) -> Option<Spikes> {
    if responses_ns.len() < SPIKE_IOS {
        return None;
    }
    let mut sorted = responses_ns.to_vec();
    sorted.sort_unstable();
    let upper = &sorted[sorted.len() / 2..];
    let gap = |w: &[u64]| w[1] as f64 / w[0].max(1) as f64;
    let widest = upper.windows(2).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    if gap(widest) < SPIKE_GAP {
        return None;
    }
    let threshold = widest[1];
    let (mut starts, mut heights, mut last) = (Vec::new(), Vec::new(), None);
    for (at, ns) in responses_ns.iter().enumerate().filter(|(_, ns)| **ns >= threshold) {
        match heights.last_mut() {
            Some(height) if last.is_some_and(|last| last + 1 == at) => *height += *ns,
            _ => {
                starts.push(at);
                heights.push(*ns);
            }
        }
        last = Some(at);
    }
    let mut gaps: Vec<usize> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    heights.sort_unstable();
    let period_ios = gaps.get(gaps.len() / 2).copied();
    Some(Spikes {
        count: starts.len(),
        first_io: *starts.first()?,
        period_ios,
        height_ns: heights[heights.len() / 2],
        between_ns: period_ios.map(|p| sorted[sorted.len() / 2].saturating_mul(p as u64)),
    })
}

/// A series in batches of equally many IOs, at most [`BATCHES`]: IOs in each (the
/// last may have fewer) and the seconds that each took.
pub fn batches(responses_ns: &[u64]) -> (usize, Vec<f64>) {
    let size = responses_ns.len().div_ceil(BATCHES).max(1);
    let seconds = |batch: &[u64]| batch.iter().map(|ns| *ns as f64).sum::<f64>() / 1e9;
    (size, responses_ns.chunks(size).map(seconds).collect())
}
