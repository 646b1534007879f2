//! Two groups of times, where there are two.
//!
//! What: syncs of one write, without and with a merge. How: the widest ratio
//! between neighbours in the sorted times, without the outer 2 %, must be at least
//! [`MODES_APART`]. Source: paper 002, section 2, which tells "shorter" and
//! "larger" spikes apart by looking; when two groups are two is left open there.

use crate::spectrum::Spectrum;
use serde::{Deserialize, Serialize};

/// The least ratio between the most expensive cheap and the cheapest expensive sync.
pub const MODES_APART: f64 = 1.5;
/// Syncs that it takes.
pub(super) const MIN_SYNCS: usize = 8;

/// Two groups of one-write syncs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modes {
    /// Mean of the cheap ones.
    pub low_ns: f64,
    /// Mean of the expensive ones.
    pub high_ns: f64,
    /// The share of these.
    pub high_share: f64,
    /// The cheapest of these.
    pub from_ns: f64,
}

/// [`modes`] of times that were counted: the gap is the same unless it lies within
/// 0.1 % of a time.
pub(crate) fn modes_of_counts(times: &Spectrum) -> Option<Modes> {
    let n = times.n();
    let (from, to) = (n / 50, n - n / 50);
    let gap = times.widest_gap(from, to).filter(|gap| gap.ratio >= MODES_APART)?;
    if to - from < MIN_SYNCS as u64 {
        return None;
    }
    let [low, high] = times.split(gap.above);
    let (low, high) = (low?, high?);
    let high_share = high.n as f64 / n as f64;
    Some(Modes { low_ns: low.mean, high_ns: high.mean, high_share, from_ns: gap.above as f64 })
}

/// The two groups in `times`, where there are two.
pub fn modes(times_ns: &[f64]) -> Option<Modes> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (from, to) = (sorted.len() / 50, sorted.len() - sorted.len() / 50);
    let middle = sorted.get(from..to).filter(|m| m.len() >= MIN_SYNCS)?;
    let ratio = |at: usize| middle[at] / middle[at - 1].max(1.0);
    let at = (1..middle.len()).max_by(|a, b| ratio(*a).total_cmp(&ratio(*b)))?;
    if ratio(at) < MODES_APART {
        return None;
    }
    let (low, high) = sorted.split_at(from + at);
    let from_ns = high[0];
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let high_share = high.len() as f64 / sorted.len() as f64;
    Some(Modes { low_ns: mean(low), high_ns: mean(high), high_share, from_ns })
}
