//! A run's IOs as they are embedded in the page.
//!
//! Method: five ways, from expensive to cheap.
//! - *whole*: every IO with its exact response time, submission and offset;
//! - *rounded*: every IO with its response time to 0.05 %, in place of a whole
//!   trace where there is no room (short runs), and where it went to a 256th of
//!   the space used, where there is room for that;
//! - *aggregated*: see [`super::aggregate`] (long runs);
//! - *coarse*: the same to 1.6 %, without means and locations;
//! - *sketched*: a histogram and the slowest IOs, where there is no room left.
//!
//! The number of an IO is its place in its own stream, as IOIgnore counts.
//! Rounded response times are `round(ln(ns + 1) x 2048)`, which fits 16 bits.

use super::blob::{Blob, Code, Described};
use serde::Serialize;
use std::collections::HashMap;
use uflip_device::IoRecord;

/// Steps of a rounded response time for a factor of e.
pub(crate) const STEPS: f64 = 2048.0;

/// How a run is embedded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// Every IO, exactly.
    Whole,
    /// Every IO's response time, to 0.05 %.
    Rounded,
    /// Smallest, middle and largest of each column, and the slowest IOs.
    Aggregated,
    /// The same with less precision, without means and locations.
    Coarse,
    /// A histogram and the slowest IOs.
    Sketched,
}

/// What the page must know to read a trace's blob.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trace {
    pub(crate) kind: TraceKind,
    /// IOs of the run.
    pub(crate) n: u64,
    /// IOs of its longest stream: the end of the axis.
    pub(crate) length: u64,
    /// Kinds of IO: mode, pattern of the mix, stream, size.
    pub(crate) classes: Vec<TimeClass>,
    pub(crate) columns: Vec<Described>,
    /// Columns that the IO numbers are divided into; aggregates only.
    pub(crate) cells: Option<usize>,
    /// The slowest IOs, exactly; not in whole traces, which have them all.
    pub(crate) outliers: Vec<Outlier>,
    /// Buckets of the histogram with their counts; sketches only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) histogram: Option<Vec<(i64, i64)>>,
    #[serde(skip)]
    pub(crate) blob: String,
}

/// What IOs of a kind share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct TimeClass(pub(crate) &'static str, pub(crate) u8, pub(crate) u16, pub(crate) u32);

impl TimeClass {
    pub(crate) fn of(record: &IoRecord) -> TimeClass {
        TimeClass(record.mode().name(), record.pattern(), record.stream(), record.size())
    }
}

/// The kind of an IO, streams apart.
pub(crate) fn known_as(record: &IoRecord) -> TimeClass {
    let TimeClass(mode, pattern, _, size) = TimeClass::of(record);
    TimeClass(mode, pattern, 0, size)
}

/// One of the slowest IOs, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Outlier {
    pub(crate) response: u64,
    pub(crate) io: u64,
    pub(crate) submit: u64,
    pub(crate) offset: u64,
    pub(crate) class: i64,
    /// Its place in the file.
    #[serde(skip)]
    pub(crate) row: u64,
    #[serde(skip)]
    pub(crate) stream: u16,
}

impl Trace {
    /// Bytes it takes in the page, its description included.
    pub(crate) fn cost(&self) -> usize {
        // What is in the table is compressed with it; a blob needs its element.
        let described = self.columns.len() * 12 + self.classes.len() * 4 + self.outliers.len() * 28;
        let histogram = self.histogram.as_ref().map_or(0, |h| h.len() * 5);
        let element = if self.blob.is_empty() { 0 } else { 80 };
        self.blob.len() + described + histogram + element + 40
    }
}

/// A response time in steps of 0.05 %.
pub(crate) fn rounded(ns: u64) -> u16 {
    ((ns as f64 + 1.0).ln() * STEPS).round() as u16
}

/// Numbers the kinds of IO as they come.
#[derive(Clone, Default)]
pub(crate) struct Classes {
    known: HashMap<TimeClass, i64>,
    pub(crate) list: Vec<TimeClass>,
    last: Option<(TimeClass, i64)>,
}

impl Classes {
    pub(crate) fn number(&mut self, class: TimeClass) -> i64 {
        if let Some((last, number)) = self.last
            && last == class
        {
            return number;
        }
        let next = self.list.len() as i64;
        let number = *self.known.entry(class).or_insert(next);
        if number == next {
            self.list.push(class);
        }
        self.last = Some((class, number));
        number
    }
}

/// IOs of the longest stream.
pub(crate) fn longest_stream(records: &[IoRecord]) -> u64 {
    let mut lengths = HashMap::new();
    records.iter().for_each(|r| *lengths.entry(r.stream()).or_insert(0u64) += 1);
    lengths.into_values().max().unwrap_or(0)
}

/// Every IO exactly, in the order of the records.
pub(crate) fn whole(records: &[IoRecord]) -> Trace {
    let mut free_at = HashMap::new();
    // From the end of the stream's IO before: small, and regular without pauses.
    let waits: Vec<i64> = records
        .iter()
        .map(|r| {
            let end = r.completion().0 as i64;
            r.due().0 as i64 - free_at.insert(r.stream(), end).unwrap_or(0)
        })
        .collect();
    let responses: Vec<i64> = records.iter().map(|r| r.response().0 as i64).collect();
    let offsets: Vec<i64> = records.iter().map(|r| r.offset().0 as i64).collect();
    let mut blob = Blob::default();
    blob.add_plain("response", &responses);
    blob.add("wait", Code::Signed, 0, 1, &waits);
    blob.add_steps("offset", &offsets);
    finish(TraceKind::Whole, records, blob, Vec::new())
}

/// Every IO's response time, rounded; the `outliers` exactly; with `places`
/// also where each IO went, to a 256th of the space they use.
pub(crate) fn in_steps(records: &[IoRecord], outliers: Vec<Outlier>, places: bool) -> Trace {
    let responses: Vec<i64> = records.iter().map(|r| i64::from(rounded(r.response().0))).collect();
    let mut blob = Blob::default();
    blob.add_plain("response", &responses);
    if places {
        let offsets: Vec<i64> = records.iter().map(|r| r.offset().0 as i64).collect();
        let least = offsets.iter().copied().min().unwrap_or(0);
        let span = offsets.iter().copied().max().unwrap_or(0) - least;
        blob.add("place", Code::Plain, least, span / 256 + 1, &offsets);
    }
    finish(TraceKind::Rounded, records, blob, outliers)
}

fn finish(kind: TraceKind, records: &[IoRecord], mut blob: Blob, outliers: Vec<Outlier>) -> Trace {
    let mut classes = Classes::default();
    let numbers: Vec<i64> = records.iter().map(|r| classes.number(TimeClass::of(r))).collect();
    blob.add_plain("class", &numbers);
    let (columns, text) = blob.finish();
    Trace {
        kind,
        n: records.len() as u64,
        length: longest_stream(records),
        classes: classes.list,
        columns,
        cells: None,
        outliers,
        histogram: None,
        blob: text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::blob::tests::columns;
    use super::*;
    use uflip_device::{Arrival, Bytes, Io, Mode, Nanos};

    #[test]
    fn a_whole_trace_loses_nothing() {
        let record = |i: u64| {
            let mode = if i.is_multiple_of(3) { Mode::Write } else { Mode::Read };
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(i * 4096 % 65_536),
                size: 512,
                mode,
                pattern: (i % 2) as u8,
            };
            IoRecord::new(&io, (i % 4) as u16, Nanos(i * 1_000), Nanos(5_000 + i * i % 977))
        };
        let records: Vec<_> = (0..1000).map(record).collect();
        let trace = whole(&records);
        let read = columns(&trace.columns, &trace.blob);
        let mut free_at = [0; 4];
        for (i, r) in records.iter().enumerate() {
            let class = trace.classes[read[3][i] as usize];
            let submit = free_at[usize::from(class.2)] + read[1][i];
            free_at[usize::from(class.2)] = submit + read[0][i];
            let back = (read[0][i] as u64, submit as u64, read[2][i] as u64, class);
            assert_eq!(back, (r.response().0, r.submit().0, r.offset().0, TimeClass::of(r)), "IO {i}");
        }
        assert_eq!((trace.n, trace.length, trace.classes.len()), (1000, 250, 8));
    }

    #[test]
    fn rounding_stays_within_a_twentieth_of_a_percent() {
        for ns in [1u64 << 10, 81_234, 1 << 27, (1 << 40) - 1] {
            let back = (f64::from(rounded(ns)) / STEPS).exp() - 1.0;
            assert!((back / ns as f64 - 1.0).abs() < 0.000_5, "{back} for {ns}");
        }
    }
}
