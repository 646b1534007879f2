//! What has been seen of a run: a trace by columns, a histogram, the mean.
//!
//! Method: IO number i of n stands in column i * COLUMNS / n; a column keeps its
//! smallest, largest and mean response time, so that no spike is lost. The
//! histogram has 16 bins for a factor of two. The interval of the mean is that of
//! batch means (`detect::interval`) over the last IOs. Units: nanoseconds.

use uflip_device::IoRecord;
use uflip_measure::detect::interval::batch_means;

/// Columns kept of a trace: a terminal shows every second or third.
pub const COLUMNS: usize = 240;
/// Bins for a factor of two.
const STEPS: f64 = 16.0;
/// IOs that the interval is computed from, at most.
const RECENT: usize = 8192;

/// A column of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Column {
    pub n: u64,
    pub low: u64,
    pub high: u64,
    pub sum: u64,
}

/// What has been seen of a run.
#[derive(Debug)]
pub struct LivePicture {
    /// IOs that it is to have.
    planned: u64,
    /// IOs of all streams that are left out of the mean.
    ignored: u64,
    /// IOs seen.
    pub seen: u64,
    /// IOs written out before they were seen.
    pub missed: bool,
    columns: Vec<Column>,
    bins: Vec<u64>,
    sum: u128,
    counted: u64,
    pub slowest: u64,
    recent: Vec<u64>,
    /// The mean's interval, computed now and then.
    interval: Option<[f64; 2]>,
    computed_at: u64,
}

impl LivePicture {
    pub fn new(planned: u64, ignored: u64) -> LivePicture {
        LivePicture {
            planned: planned.max(1),
            ignored,
            seen: 0,
            missed: false,
            columns: vec![Column::default(); COLUMNS],
            bins: vec![0; 41 * STEPS as usize],
            sum: 0,
            counted: 0,
            slowest: 0,
            recent: Vec::with_capacity(RECENT),
            interval: None,
            computed_at: 0,
        }
    }

    /// Adds records in the order in which they were handed over.
    pub fn add(&mut self, records: &[IoRecord]) {
        for record in records {
            let ns = record.response().0;
            let at = (self.seen * COLUMNS as u64 / self.planned).min(COLUMNS as u64 - 1) as usize;
            let column = &mut self.columns[at];
            column.low = if column.n == 0 { ns } else { column.low.min(ns) };
            column.high = column.high.max(ns);
            (column.n, column.sum) = (column.n + 1, column.sum + ns);
            let bin = ((ns.max(1) as f64).log2() * STEPS) as usize;
            self.bins[bin.min(40 * STEPS as usize)] += 1;
            self.slowest = self.slowest.max(ns);
            if self.seen >= self.ignored {
                self.sum += u128::from(ns);
                self.counted += 1;
                if self.recent.len() < RECENT {
                    self.recent.push(ns);
                } else {
                    self.recent[(self.counted % RECENT as u64) as usize] = ns;
                }
            }
            self.seen += 1;
        }
    }

    pub fn mean(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.sum as f64 / self.counted as f64)
    }

    /// The mean's 95 % interval while it can be told: computed again whenever
    /// the run has grown by a fourth, and no more once it is long.
    pub fn interval(&mut self) -> Option<[f64; 2]> {
        let grown = self.counted >= 50 && self.counted * 4 >= self.computed_at * 5;
        if grown && self.counted <= RECENT as u64 {
            self.interval = batch_means(&self.recent, None, 0.95).map(|i| [i.low_ns, i.high_ns]);
            self.computed_at = self.counted;
        }
        self.interval
    }

    /// The response time that this part of the IOs does not exceed, to 4 %.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let rank = (part * self.seen as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bin = self.bins.iter().position(|n| {
            sum += n;
            sum >= rank
        })?;
        Some(2f64.powf((bin as f64 + 1.0) / STEPS))
    }

    /// The smallest and the largest response time so far.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let seen = self.columns.iter().filter(|c| c.n > 0);
        let low = seen.map(|c| c.low).min()?;
        Some((low.max(1) as f64, self.slowest.max(1) as f64))
    }

    /// The trace in `columns` columns.
    pub fn trace(&self, columns: usize) -> Vec<Column> {
        let mut shown = vec![Column::default(); columns.max(1)];
        for (at, column) in self.columns.iter().enumerate().filter(|(_, c)| c.n > 0) {
            let into = &mut shown[at * columns.max(1) / COLUMNS];
            into.low = if into.n == 0 { column.low } else { into.low.min(column.low) };
            into.high = into.high.max(column.high);
            (into.n, into.sum) = (into.n + column.n, into.sum + column.sum);
        }
        shown
    }

    /// How many IOs took how long, in `columns` steps of the logarithm from
    /// `low` to `high`.
    pub fn histogram(&self, columns: usize, low: f64, high: f64) -> Vec<u64> {
        let mut shown = vec![0; columns.max(1)];
        let (from, to) = (low.log2(), high.log2());
        for (bin, n) in self.bins.iter().enumerate().filter(|(_, n)| **n > 0) {
            let at = ((bin as f64 + 0.5) / STEPS - from) / (to - from).max(1e-9);
            let column = (at.clamp(0.0, 1.0) * columns.max(1) as f64) as usize;
            shown[column.min(columns.max(1) - 1)] += n;
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::{Arrival, Bytes, Io, Mode, Nanos};

    fn record(ns: u64) -> IoRecord {
        let io =
            Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 512, mode: Mode::Read, pattern: 0 };
        IoRecord::new(&io, 0, Nanos(0), Nanos(ns))
    }

    #[test]
    fn a_picture_loses_no_spike_and_knows_the_mean() {
        let mut picture = LivePicture::new(100_000, 1000);
        for i in 0..50_000u64 {
            let start_up = i < 1000;
            picture.add(&[record(if i == 33_333 {
                9_000_000
            } else if start_up {
                1_000
            } else {
                100_000
            })]);
        }
        assert_eq!((picture.seen, picture.slowest), (50_000, 9_000_000));
        let mean = picture.mean().expect("a mean");
        assert!((mean - (100_000.0 + 8_900_000.0 / 49_000.0)).abs() < 1.0, "start-up is left out: {mean}");
        let trace = picture.trace(60);
        assert_eq!(trace.iter().map(|c| c.high).max(), Some(9_000_000));
        assert_eq!(trace.iter().filter(|c| c.n > 0).count(), 30, "half of the run is done");
        assert_eq!(trace.iter().map(|c| c.n).sum::<u64>(), 50_000);
        let p50 = picture.quantile(0.5).expect("a median");
        assert!((p50 / 100_000.0 - 1.0).abs() < 0.05, "{p50}");
        assert_eq!(picture.histogram(20, 1e3, 1e7).iter().sum::<u64>(), 50_000);
    }

    #[test]
    fn nothing_seen_is_none() {
        let mut picture = LivePicture::new(10, 0);
        assert_eq!(
            (picture.mean(), picture.interval(), picture.quantile(0.5), picture.ends()),
            (None, None, None, None)
        );
    }
}
