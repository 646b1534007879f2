//! The IOs around the slowest ones of a run that is summed up, exactly, so that
//! zooming into a spike ends at single IOs.
//!
//! Method: around each of the slowest IOs, the slowest first, those of its
//! stream within [`AROUND`] of it, as long as they are in the same row group;
//! an IO that is in another one's window gets none of its own.

use super::blob::{Blob, Code};
use super::trace::{Outlier, TimeClass, known_as};
use std::collections::BTreeSet;
use std::path::Path;
use uflip_device::IoRecord;
use uflip_store::error::StoreError;
use uflip_store::records::{ROW_GROUP_ROWS, read_chosen_row_groups};

/// IOs on either side.
const AROUND: u64 = 24;

/// An IO and its number in its stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowIo {
    pub(crate) io: u64,
    pub(crate) record: IoRecord,
}

/// Those of the slowest IOs that get a window, at most `most`.
fn chosen(outliers: &[Outlier], most: usize) -> Vec<Outlier> {
    let mut chosen: Vec<Outlier> = Vec::new();
    for outlier in outliers {
        let beside = |c: &Outlier| c.stream == outlier.stream && c.io.abs_diff(outlier.io) <= AROUND;
        if chosen.len() < most && !chosen.iter().any(beside) {
            chosen.push(*outlier);
        }
    }
    chosen
}

/// The IOs around `outlier` in `records`, whose first is row `first`.
fn around(outlier: &Outlier, records: &[IoRecord], first: u64) -> Vec<WindowIo> {
    let Some(at) = outlier.row.checked_sub(first).filter(|at| *at < records.len() as u64) else {
        return Vec::new();
    };
    let at = at as usize;
    let own = |r: &&IoRecord| r.stream() == outlier.stream;
    let number = |io: u64, record: &IoRecord| WindowIo { io, record: *record };
    let before = records[..at].iter().rev().filter(own).take(AROUND as usize);
    let mut all: Vec<WindowIo> = (1..).zip(before).map(|(d, r)| number(outlier.io - d, r)).collect();
    all.reverse();
    let after = records[at..].iter().filter(own).take(AROUND as usize + 1);
    all.extend((0..).zip(after).map(|(d, r)| number(outlier.io + d, r)));
    all
}

/// Each IO once, by stream and number.
fn sorted(mut all: Vec<WindowIo>) -> Vec<WindowIo> {
    all.sort_by_key(|w| (w.record.stream(), w.io));
    all.dedup_by_key(|w| (w.record.stream(), w.io));
    all
}

/// The windows around the slowest of a run's records.
pub(crate) fn of_records(outliers: &[Outlier], records: &[IoRecord], most: usize) -> Vec<WindowIo> {
    sorted(chosen(outliers, most).iter().flat_map(|o| around(o, records, 0)).collect())
}

/// The same from a file, of which only the row groups that have one are read.
///
/// # Errors
/// [`StoreError`] where the file cannot be read.
pub(crate) fn of_file(outliers: &[Outlier], path: &Path, most: usize) -> Result<Vec<WindowIo>, StoreError> {
    let (chosen, rows) = (chosen(outliers, most), ROW_GROUP_ROWS as u64);
    let groups: BTreeSet<usize> = chosen.iter().map(|o| (o.row / rows) as usize).collect();
    let mut all = Vec::new();
    read_chosen_row_groups(
        path,
        |group| groups.contains(&group),
        |group, _, records| {
            all.extend(chosen.iter().flat_map(|o| around(o, records, group as u64 * rows)));
            Ok(())
        },
    )?;
    Ok(sorted(all))
}

/// Adds the windows as columns; `classes` are the trace's.
pub(crate) fn add(blob: &mut Blob, windows: &[WindowIo], classes: &[TimeClass]) {
    let column = |of: &dyn Fn(&WindowIo) -> i64| windows.iter().map(of).collect::<Vec<i64>>();
    let class = |w: &WindowIo| {
        let known = known_as(&w.record);
        classes.iter().position(|c| *c == known).unwrap_or(classes.len() - 1) as i64
    };
    blob.add("window_io", Code::Delta, 0, 1, &column(&|w| w.io as i64));
    blob.add_plain("window_response", &column(&|w| w.record.response().0 as i64));
    blob.add("window_submit", Code::Delta, 0, 1, &column(&|w| w.record.due().0 as i64));
    blob.add_steps("window_offset", &column(&|w| w.record.offset().0 as i64));
    blob.add_plain("window_class", &column(&class));
    blob.add_plain("window_stream", &column(&|w| i64::from(w.record.stream())));
}

#[cfg(test)]
mod tests {
    use super::super::aggregate::Aggregator;
    use super::*;
    use uflip_device::{Arrival, Bytes, Io, Mode, Nanos};

    #[test]
    fn a_spikes_neighbours_are_those_of_its_stream() {
        // Two streams in turn; the slow one is IO 500 of stream 1.
        let record = |i: u64| {
            let ns = if i == 1001 { 1_000_000 } else { 1000 + i % 7 };
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(i * 512),
                size: 512,
                mode: Mode::Write,
                pattern: 0,
            };
            IoRecord::new(&io, (i % 2) as u16, Nanos(i * 10_000), Nanos(ns))
        };
        let records: Vec<_> = (0..4000).map(record).collect();
        let mut aggregator = Aggregator::new(100, 4000, 2000, 4000 * 512);
        aggregator.push(&records);
        let summary = aggregator.finish();
        let windows = of_records(&summary.outliers, &records, 1);
        let ios: Vec<u64> = windows.iter().map(|w| w.io).collect();
        assert_eq!(ios, (476..=524).collect::<Vec<_>>());
        assert!(windows.iter().all(|w| w.record == records[(w.io * 2 + 1) as usize]));
        // The others are as slow as one another: those in the window get none.
        assert_eq!(of_records(&summary.outliers, &records, 3).len(), 3 * 49);
    }
}
