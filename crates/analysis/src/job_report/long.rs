//! Long series of response times, in bounded memory: spikes and batches of runs
//! that are not held.
//!
//! How: as `series.rs`, in two passes over the records. The first counts response
//! times ([`Spectrum`]) and sums the batches; the widest gap tells spikes from
//! the rest, and it is the same as of all times sorted, as far apart as it has to
//! be. The second finds the spikes; their medians come from counts as well, at
//! most 0.1 % too high. Units: ns, IOs. Source: as `series.rs`.

use super::series::{BATCHES, SPIKE_GAP, Spikes};
use crate::spectrum::Spectrum;
use uflip_device::IoRecord;
use uflip_store::error::StoreError;

/// Gives a run's records in order, from the start, each time it is called.
pub(super) type EndurancePass<'a> =
    dyn Fn(&mut dyn FnMut(&[IoRecord]) -> Result<(), StoreError>) -> Result<(), StoreError> + 'a;

/// IOs in a batch, the seconds of each, and the spikes of a run of `ios`.
pub(super) fn series(
    ios: u64,
    pass: &EndurancePass<'_>,
) -> Result<(usize, Vec<f64>, Option<Spikes>), StoreError> {
    let size = usize::try_from(ios).unwrap_or(usize::MAX).div_ceil(BATCHES).max(1);
    let (mut times, mut seconds) = (Spectrum::default(), Vec::with_capacity(BATCHES));
    let (mut open, mut sum) = (0, 0.0);
    pass(&mut |records| {
        for ns in records.iter().map(|r| r.response().0) {
            times.push(ns);
            (open, sum) = (open + 1, sum + ns as f64);
            if open == size {
                seconds.push(sum / 1e9);
                (open, sum) = (0, 0.0);
            }
        }
        Ok(())
    })?;
    if open > 0 {
        seconds.push(sum / 1e9);
    }
    let gap = times.widest_gap(times.n() / 2, times.n()).filter(|gap| gap.ratio >= SPIKE_GAP);
    let Some(gap) = gap else { return Ok((size, seconds, None)) };
    let mut finder = Finder { threshold: gap.above, ..Finder::default() };
    pass(&mut |records| {
        records.iter().for_each(|r| finder.push(r.response().0));
        Ok(())
    })?;
    let median_ns = times.at_rank(times.n() / 2 + 1).unwrap_or(0);
    Ok((size, seconds, finder.finish(median_ns)))
}

/// Finds the spikes among response times one by one.
#[derive(Default)]
struct Finder {
    threshold: u64,
    at: usize,
    count: usize,
    first: usize,
    /// Where the latest spike began, and its height while it lasts.
    start: usize,
    open: Option<u64>,
    gaps: Spectrum,
    heights: Spectrum,
}

impl Finder {
    fn push(&mut self, ns: u64) {
        if ns < self.threshold {
            self.close();
        } else if let Some(height) = &mut self.open {
            *height = height.saturating_add(ns);
        } else {
            match self.count {
                0 => self.first = self.at,
                _ => self.gaps.push((self.at - self.start) as u64),
            }
            (self.count, self.start, self.open) = (self.count + 1, self.at, Some(ns));
        }
        self.at += 1;
    }

    fn close(&mut self) {
        if let Some(height) = self.open.take() {
            self.heights.push(height);
        }
    }

    fn finish(mut self, median_ns: u64) -> Option<Spikes> {
        self.close();
        let median = |of: &Spectrum| of.at_rank(of.n() / 2 + 1);
        let period_ios = median(&self.gaps).map(|ios| ios as usize);
        Some(Spikes {
            count: self.count,
            first_io: self.first,
            period_ios,
            height_ns: median(&self.heights)?,
            between_ns: period_ios.map(|p| median_ns.saturating_mul(p as u64)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::{batches, spikes};
    use super::*;
    use uflip_device::{Arrival, Bytes, Io, Mode, Nanos};

    #[test]
    fn a_series_in_pieces_tells_what_the_whole_one_tells() {
        let io =
            Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 4096, mode: Mode::Write, pattern: 0 };
        let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
        for spike in [9_000_000, 100_000] {
            let ns: Vec<u64> = (0..30_000u64)
                .map(|i| if i >= 700 && i % 997 < 1 + i % 3 { spike + noise(i) } else { 80_000 + noise(i) })
                .collect();
            let records: Vec<IoRecord> =
                ns.iter().map(|ns| IoRecord::new(&io, 0, Nanos(0), Nanos(*ns))).collect();
            let pass = |take: &mut dyn FnMut(&[IoRecord]) -> Result<(), StoreError>| {
                records.chunks(777).try_for_each(&mut *take)
            };
            let (size, seconds, found) = series(records.len() as u64, &pass).unwrap();
            assert_eq!((size, seconds), batches(&ns));
            let exact = spikes(&ns);
            assert_eq!(exact.is_some(), found.is_some(), "{exact:?} {found:?}");
            let (Some(exact), Some(found)) = (exact, found) else { continue };
            assert_eq!(
                (exact.count, exact.first_io, exact.period_ios),
                (found.count, found.first_io, found.period_ios)
            );
            assert!((found.height_ns as f64 / exact.height_ns as f64 - 1.0).abs() < 0.001);
            assert!(
                (found.between_ns.unwrap() as f64 / exact.between_ns.unwrap() as f64 - 1.0).abs() < 0.001
            );
        }
    }
}
