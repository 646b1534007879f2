//! A long run summed up so that no spike is lost, in bounded memory.
//!
//! Method: IO numbers are divided into equal cells (a column of the picture
//! each). Of every cell and kind of IO the page gets how many IOs there are and
//! the smallest, middle, mean and largest response time, rounded to 0.05 %.
//! The slowest IOs of all are kept exactly, with number, submission and
//! offset. The middle is the median of all IOs of the cell, or of every n-th
//! where the run has more than [`MEDIAN_SAMPLES`].
//!
//! Over the offsets of the run the same is done in [`PLACES`] equal ranges,
//! without the medians, and all response times are counted in a histogram.

use super::blob::Blob;
use super::trace::{Class, Classes, Kind, Trace, rounded};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use uflip_device::IoRecord;

/// How many of the slowest IOs are kept exactly.
pub(crate) const OUTLIERS: usize = 64;
/// Steps of 0.05 % to one of 1.6 %.
const COARSE: i64 = 32;
/// How many of them where there is room for nothing else.
const SKETCHED: usize = 8;
/// IOs that medians are taken of, at most: 2 bytes of memory each.
const MEDIAN_SAMPLES: u64 = 8 << 20;
/// Ranges of offsets.
const PLACES: usize = 512;
/// A bucket of the histogram is this many steps of 0.05 %: 64 a decade.
const BUCKET: u16 = 74;
/// Kinds of IO told apart; the rest counts as the last.
const MOST_CLASSES: usize = 8;

/// One of the slowest IOs, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Outlier {
    pub(crate) response: u64,
    pub(crate) io: u64,
    pub(crate) submit: u64,
    pub(crate) offset: u64,
    pub(crate) class: i64,
}

/// Response times of one cell.
#[derive(Clone, Default)]
struct Cell {
    n: u64,
    min: u64,
    max: u64,
    sum: u64,
    samples: Vec<u16>,
}

impl Cell {
    fn add(&mut self, ns: u64) {
        self.min = if self.n == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.sum += ns;
        self.n += 1;
    }

    fn median(&mut self) -> u16 {
        let middle = self.samples.len() / 2;
        if self.samples.is_empty() { 0 } else { *self.samples.select_nth_unstable(middle).1 }
    }
}

/// Sums up a run whose records come in any interleaving of its streams, those
/// of one stream in order.
#[derive(Clone)]
pub(crate) struct Aggregator {
    cells: usize,
    length: u64,
    every: u64,
    end_of_space: u64,
    n: u64,
    seen: Vec<u64>,
    classes: Classes,
    over_time: Vec<Vec<Cell>>,
    starts: Vec<u64>,
    over_space: Vec<Vec<Cell>>,
    histogram: HashMap<u16, i64>,
    slowest: BinaryHeap<Reverse<Outlier>>,
}

impl Aggregator {
    /// Gets ready for about `n` IOs in streams of at most `length`, none of
    /// which lies at or beyond `end_of_space`; `cells` at most.
    pub(crate) fn new(cells: usize, n: u64, length: u64, end_of_space: u64) -> Aggregator {
        let cells = cells.min(length.max(1) as usize);
        Aggregator {
            cells,
            length: length.max(1),
            every: n.div_ceil(MEDIAN_SAMPLES).max(1),
            end_of_space: end_of_space.max(1),
            n: 0,
            seen: Vec::new(),
            classes: Classes::default(),
            over_time: Vec::new(),
            starts: vec![u64::MAX; cells],
            over_space: Vec::new(),
            histogram: HashMap::new(),
            slowest: BinaryHeap::new(),
        }
    }

    /// Adds records.
    pub(crate) fn push(&mut self, records: &[IoRecord]) {
        for record in records {
            self.add(record);
        }
    }

    fn class(&mut self, record: &IoRecord) -> usize {
        // Streams are not told apart here: side by side they would hide the runs' shape.
        let Class(mode, pattern, _, size) = Class::of(record);
        let known = Class(mode, pattern, 0, size);
        if self.classes.list.len() < MOST_CLASSES || self.classes.list.contains(&known) {
            let class = self.classes.number(known) as usize;
            if class == self.over_time.len() {
                self.over_time.push(vec![Cell::default(); self.cells]);
                self.over_space.push(vec![Cell::default(); PLACES]);
            }
            return class;
        }
        MOST_CLASSES - 1
    }

    fn add(&mut self, record: &IoRecord) {
        let (ns, stream) = (record.response().0, usize::from(record.stream()));
        let class = self.class(record);
        if stream >= self.seen.len() {
            self.seen.resize(stream + 1, 0);
        }
        let io = self.seen[stream];
        self.seen[stream] += 1;
        let cell = ((io as u128 * self.cells as u128 / self.length as u128) as usize).min(self.cells - 1);
        self.starts[cell] = self.starts[cell].min(record.submit().0);
        let code = rounded(ns);
        let at = &mut self.over_time[class][cell];
        at.add(ns);
        if self.n.is_multiple_of(self.every) {
            at.samples.push(code);
        }
        let place = record.offset().0 as u128 * PLACES as u128 / self.end_of_space as u128;
        self.over_space[class][(place as usize).min(PLACES - 1)].add(ns);
        *self.histogram.entry(code / BUCKET).or_insert(0) += 1;
        self.n += 1;
        if self.slowest.len() < OUTLIERS || self.slowest.peek().is_some_and(|least| ns > least.0.response) {
            let (submit, offset) = (record.submit().0, record.offset().0);
            self.slowest.push(Reverse(Outlier { response: ns, io, submit, offset, class: class as i64 }));
            if self.slowest.len() > OUTLIERS {
                self.slowest.pop();
            }
        }
    }

    /// The slowest IOs, the slowest first.
    pub(crate) fn outliers(&self) -> Vec<Outlier> {
        let mut slowest: Vec<Outlier> = self.slowest.iter().map(|o| o.0).collect();
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        slowest
    }

    /// The least that is kept of a run: its histogram and its slowest IOs.
    pub(crate) fn sketch(self) -> Trace {
        let mut outliers = self.outliers();
        outliers.truncate(SKETCHED);
        let mut blob = Blob::default();
        histogram_of(&mut blob, self.histogram);
        let (columns, blob) = blob.finish();
        let (n, length, classes) = (self.n, self.length, self.classes.list);
        Trace { kind: Kind::Sketched, n, length, classes, columns, cells: None, outliers, blob }
    }

    /// As [`Aggregator::finish`] with less: times are rounded to 1.6 %, means and
    /// places left out.
    pub(crate) fn coarse(mut self) -> Trace {
        let mut outliers = self.outliers();
        outliers.truncate(SKETCHED);
        let mut blob = Blob::default();
        let mut time: Vec<Cell> = std::mem::take(&mut self.over_time).into_iter().flatten().collect();
        let medians: Vec<i64> = time.iter_mut().map(|c| i64::from(c.median())).collect();
        let column = |of: &dyn Fn(&Cell) -> i64| time.iter().map(of).collect::<Vec<i64>>();
        blob.add_plain("count", &column(&|c| c.n as i64));
        let mut add = |name, codes: &[i64]| {
            // The middle of a step stands for all of it.
            let halved: Vec<i64> = codes.iter().map(|c| c + COARSE / 2).collect();
            let least = halved.iter().copied().min().unwrap_or(0);
            blob.add(name, super::blob::Code::Plain, least / COARSE * COARSE, COARSE, &halved);
        };
        add("min", &column(&|c| i64::from(rounded(c.min))));
        add("median", &medians);
        add("max", &column(&|c| i64::from(rounded(c.max))));
        histogram_of(&mut blob, self.histogram);
        let (columns, text) = blob.finish();
        Trace {
            kind: Kind::Coarse,
            n: self.n,
            length: self.length,
            classes: self.classes.list,
            columns,
            cells: Some(self.cells),
            outliers,
            blob: text,
        }
    }

    /// The trace of all that was added. The columns `count`, `min`, `median`,
    /// `mean`, `max` have the cells of the first kind of IO, then those of the
    /// second, …; so have `place_*` the ranges of offsets.
    pub(crate) fn finish(mut self) -> Trace {
        let outliers = self.outliers();
        let mut blob = Blob::default();
        let mut time: Vec<Cell> = std::mem::take(&mut self.over_time).into_iter().flatten().collect();
        let medians: Vec<i64> = time.iter_mut().map(|c| i64::from(c.median())).collect();
        cells_of(&mut blob, ["count", "min", "mean", "max"], &time);
        blob.add_plain("median", &medians);
        let mut start = 0;
        let starts = self.starts.iter().map(|at| {
            // An empty cell starts where the one before did.
            start = if *at == u64::MAX { start } else { *at };
            start as i64
        });
        blob.add("start", super::blob::Code::Delta, 0, 1, &starts.collect::<Vec<_>>());
        let space: Vec<Cell> = self.over_space.into_iter().flatten().collect();
        cells_of(&mut blob, ["place_count", "place_min", "place_mean", "place_max"], &space);
        histogram_of(&mut blob, self.histogram);
        blob.add_plain("space", &[self.end_of_space as i64]);
        let (columns, text) = blob.finish();
        Trace {
            kind: Kind::Aggregated,
            n: self.n,
            length: self.length,
            classes: self.classes.list,
            columns,
            cells: Some(self.cells),
            outliers,
            blob: text,
        }
    }
}

fn histogram_of(blob: &mut Blob, histogram: HashMap<u16, i64>) {
    let mut histogram: Vec<_> = histogram.into_iter().collect();
    histogram.sort_unstable();
    let (buckets, counts): (Vec<i64>, Vec<i64>) =
        histogram.into_iter().map(|(code, n)| (i64::from(code * BUCKET), n)).unzip();
    blob.add_plain("bucket", &buckets);
    blob.add_plain("bucket_count", &counts);
}

fn cells_of(blob: &mut Blob, names: [&'static str; 4], cells: &[Cell]) {
    let code = |ns: u64| i64::from(rounded(ns));
    let column = |of: &dyn Fn(&Cell) -> i64| cells.iter().map(of).collect::<Vec<i64>>();
    blob.add_plain(names[0], &column(&|c| c.n as i64));
    blob.add_plain(names[1], &column(&|c| code(c.min)));
    blob.add_plain(names[2], &column(&|c| code(c.sum.checked_div(c.n).unwrap_or(0))));
    blob.add_plain(names[3], &column(&|c| code(c.max)));
}

#[cfg(test)]
mod tests {
    use super::super::blob::tests::columns;
    use super::*;
    use uflip_device::{Bytes, Io, Mode, Nanos};

    fn record(i: u64, ns: u64) -> IoRecord {
        let io =
            Io { wait: Nanos(0), offset: Bytes(i % 1000 * 4096), size: 4096, mode: Mode::Read, pattern: 0 };
        IoRecord::new(&io, 0, Nanos(i * 100), Nanos(ns))
    }

    #[test]
    fn a_single_spike_is_the_largest_of_its_cell_and_known_exactly() {
        let mut aggregator = Aggregator::new(1000, 100_000, 100_000, 1000 * 4096);
        let spike = 77_777;
        for i in 0..100_000 {
            aggregator.push(&[record(i, if i == spike { 5_000_000_001 } else { 80_000 + i % 100 })]);
        }
        let trace = aggregator.finish();
        let first = trace.outliers[0];
        assert_eq!(
            (first.response, first.io, first.submit, first.offset),
            (5_000_000_001, spike, spike * 100, 777 * 4096)
        );
        let read = columns(&trace.columns, &trace.blob);
        let of = |name| &read[trace.columns.iter().position(|c| c.name == name).unwrap()];
        assert_eq!((of("max").len(), of("max")[777]), (1000, i64::from(rounded(5_000_000_001))));
        assert_eq!(of("max").iter().filter(|m| **m > i64::from(rounded(90_000))).count(), 1);
        assert_eq!(
            (of("median")[777], of("min")[777]),
            (i64::from(rounded(80_050)), i64::from(rounded(80_000)))
        );
        assert_eq!(
            (of("count").iter().sum::<i64>(), of("bucket_count").iter().sum::<i64>()),
            (100_000, 100_000)
        );
        assert_eq!(of("place_count").iter().sum::<i64>(), 100_000);
    }
}
