//! A long run summed up so that no spike is lost, in bounded memory.
//!
//! Method: IO numbers are divided into equal cells (a column of the picture
//! each). Of every cell and kind of IO the page gets how many IOs there are and
//! the smallest, middle, mean and largest response time, rounded to 0.05 %.
//! The slowest IOs of all are kept exactly, with number, submission and
//! offset, and the IOs around some of them (`windows.rs`). The middle is the median of all IOs of the cell, or of every n-th
//! where the run has more than [`MEDIAN_SAMPLES`].
//!
//! Over the offsets of the run the same is done in [`PLACES`] equal ranges,
//! without the medians, and all response times are counted in a histogram.

use super::blob::Blob;
use super::trace::{Classes, Outlier, TimeClass, Trace, TraceKind, known_as, rounded};
use super::windows::WindowIo;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use uflip_device::IoRecord;

/// How many of the slowest IOs are kept exactly.
pub(crate) const OUTLIERS: usize = 64;
/// Steps of 0.05 % to one of 1.6 %.
const COARSE: i64 = 32;
/// How many of them where there is room for nothing else.
pub(crate) const SKETCHED: usize = 8;
/// IOs that medians are taken of, at most: 2 bytes of memory each.
const MEDIAN_SAMPLES: u64 = 8 << 20;
/// Ranges of offsets.
const PLACES: usize = 512;
/// A bucket of the histogram is this many steps of 0.05 %: 64 a decade.
const BUCKET: u16 = 74;
/// Kinds of IO told apart; the rest counts as the last.
const MOST_CLASSES: usize = 8;

/// Response times of one cell.
#[derive(Clone, Default)]
struct Cell {
    n: u64,
    min: u64,
    max: u64,
    sum: u64,
    samples: Vec<u16>,
    median: u16,
}

impl Cell {
    fn add(&mut self, ns: u64) {
        self.min = if self.n == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.sum += ns;
        self.n += 1;
    }

    /// Finds the middle and lets the samples go.
    fn settle(&mut self) {
        let mut samples = std::mem::take(&mut self.samples);
        let middle = samples.len() / 2;
        self.median = if samples.is_empty() { 0 } else { *samples.select_nth_unstable(middle).1 };
    }
}

/// Sums up a run whose records come in any interleaving of its streams, those
/// of one stream in order.
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
    histogram: Vec<i64>,
    slowest: BinaryHeap<Reverse<Outlier>>,
    least_slow: u64,
    places_per_byte: f64,
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
            histogram: vec![0; usize::from(u16::MAX / BUCKET) + 1],
            slowest: BinaryHeap::new(),
            least_slow: 0,
            places_per_byte: PLACES as f64 / end_of_space.max(1) as f64,
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
        let known = known_as(record);
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
        let cell = (io.saturating_mul(self.cells as u64) / self.length) as usize;
        let cell = cell.min(self.cells - 1);
        self.starts[cell] = self.starts[cell].min(record.due().0);
        let code = rounded(ns);
        let at = &mut self.over_time[class][cell];
        at.add(ns);
        if self.every == 1 || self.n.is_multiple_of(self.every) {
            at.samples.push(code);
        }
        let place = (record.offset().0 as f64 * self.places_per_byte) as usize;
        self.over_space[class][place.min(PLACES - 1)].add(ns);
        self.histogram[usize::from(code / BUCKET)] += 1;
        if self.slowest.len() < OUTLIERS || ns > self.least_slow {
            self.keep(record, io, class);
        }
        self.n += 1;
    }

    /// Keeps one of the slowest IOs, and forgets the least slow one of too many.
    fn keep(&mut self, record: &IoRecord, io: u64, class: usize) {
        self.slowest.push(Reverse(Outlier {
            response: record.response().0,
            io,
            submit: record.due().0,
            offset: record.offset().0,
            class: class as i64,
            row: self.n,
            stream: record.stream(),
        }));
        if self.slowest.len() > OUTLIERS {
            self.slowest.pop();
        }
        self.least_slow = self.slowest.peek().map_or(0, |least| least.0.response);
    }

    /// All that was added, settled.
    pub(crate) fn finish(mut self) -> RunSummary {
        let mut outliers: Vec<Outlier> = self.slowest.into_iter().map(|o| o.0).collect();
        outliers.sort_unstable_by(|a, b| b.cmp(a));
        let mut time: Vec<Cell> = std::mem::take(&mut self.over_time).into_iter().flatten().collect();
        time.iter_mut().for_each(Cell::settle);
        let counts = (0u16..).zip(self.histogram).filter(|(_, n)| *n > 0);
        RunSummary {
            n: self.n,
            length: self.length,
            cells: self.cells,
            end_of_space: self.end_of_space,
            classes: self.classes.list,
            time,
            starts: self.starts,
            space: self.over_space.into_iter().flatten().collect(),
            histogram: counts.map(|(bucket, n)| (i64::from(bucket * BUCKET), n)).collect(),
            outliers,
        }
    }
}

/// A run summed up, from which traces of any fineness are made.
pub(crate) struct RunSummary {
    n: u64,
    length: u64,
    cells: usize,
    end_of_space: u64,
    classes: Vec<TimeClass>,
    /// The cells of the first kind of IO, then those of the second, …
    time: Vec<Cell>,
    starts: Vec<u64>,
    space: Vec<Cell>,
    /// Each bucket's least code and how many response times are in it.
    histogram: Vec<(i64, i64)>,
    /// The slowest IOs, the slowest first.
    pub(crate) outliers: Vec<Outlier>,
}

impl RunSummary {
    fn trace(&self, kind: TraceKind, outliers: usize, blob: Blob) -> Trace {
        let (columns, blob) = blob.finish();
        Trace {
            kind,
            n: self.n,
            length: self.length,
            classes: self.classes.clone(),
            columns,
            cells: None,
            outliers: self.outliers.iter().take(outliers).copied().collect(),
            histogram: None,
            blob,
        }
    }

    /// The least that is kept of a run: its histogram and its `outliers` slowest
    /// IOs.
    pub(crate) fn sketch(&self, outliers: usize) -> Trace {
        let trace = self.trace(TraceKind::Sketched, outliers, Blob::default());
        Trace { histogram: Some(self.histogram.clone()), blob: String::new(), ..trace }
    }

    fn column(&self, of: &dyn Fn(&Cell) -> i64) -> Vec<i64> {
        self.time.iter().map(of).collect()
    }

    /// As [`RunSummary::aggregated`] with less: times are rounded to 1.6 %, means
    /// and places left out.
    pub(crate) fn coarse(&self) -> Trace {
        let mut blob = Blob::default();
        blob.add_plain("count", &self.column(&|c| c.n as i64));
        let mut add = |name, codes: &[i64]| {
            // The middle of a step stands for all of it.
            let halved: Vec<i64> = codes.iter().map(|c| c + COARSE / 2).collect();
            let least = halved.iter().copied().min().unwrap_or(0);
            blob.add(name, super::blob::Code::Plain, least / COARSE * COARSE, COARSE, &halved);
        };
        add("min", &self.column(&|c| i64::from(rounded(c.min))));
        add("median", &self.column(&|c| i64::from(c.median)));
        add("max", &self.column(&|c| i64::from(rounded(c.max))));
        self.add_histogram(&mut blob);
        Trace { cells: Some(self.cells), ..self.trace(TraceKind::Coarse, SKETCHED, blob) }
    }

    /// The trace of all that was added, with these IOs around the slowest. The
    /// columns `count`, `min`, `median`, `mean`, `max` have the cells of the
    /// first kind of IO, then those of the second, …; so have `place_*` the
    /// ranges of offsets.
    pub(crate) fn aggregated(&self, windows: &[WindowIo]) -> Trace {
        let mut blob = Blob::default();
        cells_of(&mut blob, ["count", "min", "mean", "max"], &self.time);
        blob.add_plain("median", &self.column(&|c| i64::from(c.median)));
        let mut start = 0;
        let starts = self.starts.iter().map(|at| {
            // An empty cell starts where the one before did.
            start = if *at == u64::MAX { start } else { *at };
            start as i64
        });
        blob.add("start", super::blob::Code::Delta, 0, 1, &starts.collect::<Vec<_>>());
        cells_of(&mut blob, ["place_count", "place_min", "place_mean", "place_max"], &self.space);
        self.add_histogram(&mut blob);
        blob.add_plain("space", &[self.end_of_space as i64]);
        super::windows::add(&mut blob, windows, &self.classes);
        Trace { cells: Some(self.cells), ..self.trace(TraceKind::Aggregated, OUTLIERS, blob) }
    }

    fn add_histogram(&self, blob: &mut Blob) {
        let (buckets, counts): (Vec<i64>, Vec<i64>) = self.histogram.iter().copied().unzip();
        blob.add_plain("bucket", &buckets);
        blob.add_plain("bucket_count", &counts);
    }
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
    use uflip_device::{Arrival, Bytes, Io, Mode, Nanos};

    fn record(i: u64, ns: u64) -> IoRecord {
        let io = Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(i % 1000 * 4096),
            size: 4096,
            mode: Mode::Read,
            pattern: 0,
        };
        IoRecord::new(&io, 0, Nanos(i * 100), Nanos(ns))
    }

    #[test]
    fn a_single_spike_is_the_largest_of_its_cell_and_known_exactly() {
        let mut aggregator = Aggregator::new(1000, 100_000, 100_000, 1000 * 4096);
        let spike = 77_777;
        for i in 0..100_000 {
            aggregator.push(&[record(i, if i == spike { 5_000_000_001 } else { 80_000 + i % 100 })]);
        }
        let trace = aggregator.finish().aggregated(&[]);
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
