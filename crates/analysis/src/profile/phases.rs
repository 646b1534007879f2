//! Running phases from records, in the order of submission, in bounded memory.
//!
//! Method: up to `EXACT_IOS` records of a run are held and sorted by submission.
//! Of a longer one only what `detect::long` keeps: a single stream is taken in
//! the order of its file; the records of several, which are handed over chunk by
//! chunk, pass through a buffer that is sorted again and again. It is larger than
//! the recorder's reserve, so that streams of about equal speed come in their
//! exact order; an IO that is later by more than the buffer holds counts where it
//! is found. All repeats of one point together are kept whole up to
//! [`GROUP_IOS`]; of more each is looked at whole and then condensed.
//!
//! Flushes and trims beside reads and writes are left out: they have statistics of
//! their own. An open loop's IOs are in the order of their intended instants.
//!
//! Units: IOs, nanoseconds. Limits: which IOs of a long run are start-up goes by
//! the number of IOs that its row tells.

use crate::spectrum::Spectrum;
use std::sync::{Condvar, Mutex, PoisonError};
use uflip_device::{IoRecord, Mode};
use uflip_measure::detect::long::{EXACT_IOS, Phase, WINDOW_IOS};
use uflip_measure::pattern::{self, Pattern};
use uflip_store::contents::RunRow;
use uflip_store::error::StoreError;

/// Repeats of one point are kept whole up to so many IOs in all.
const GROUP_IOS: u64 = 4 * EXACT_IOS as u64;
/// IOs of several streams in the buffer that puts them in order: 32 MiB.
const SORTED: usize = 1 << 21;
/// Those that stay in it: more than the recorder's reserve takes.
const KEPT: usize = 3 << 19;

/// What the work under way may take together.
const MEMORY: u64 = 150 << 20;
/// What a whole series takes for each IO while it is looked at, and afterwards.
const LOOKING: u64 = 120;
const KEEPING: u64 = 8;
/// What a long one takes: one stream, several.
const LONG: [u64; 2] = [40 << 20, 90 << 20];

/// Takes records, some at a time.
pub type Take<'a> = dyn FnMut(&[IoRecord]) -> Result<(), StoreError> + 'a;
/// Gives the records of a run in the order of their file.
pub type Source<'a> = dyn Fn(&RunRow, &mut Take<'_>) -> Result<(), StoreError> + Sync + 'a;

/// A run's running phase.
pub(super) struct Taken {
    pub(super) phase: Phase,
    /// IOs of each pattern of a mix.
    pub(super) by_pattern: [u64; 2],
}

/// The running phase of `row`, which begins after `ignore(n)` IOs of each stream
/// where the run has n in all; its IOs are counted in `spectrum` as well.
pub(super) fn take(
    row: &RunRow,
    source: &Source<'_>,
    ignore: impl Fn(usize) -> usize,
    mut spectrum: Option<&mut Spectrum>,
) -> Result<Taken, StoreError> {
    let told = usize::try_from(row.outcome.end.ios).unwrap_or(usize::MAX);
    let data_only = row.spec.pattern().is_some_and(has_data);
    let mut held: Vec<IoRecord> = Vec::with_capacity(told.min(EXACT_IOS));
    let mut long: Option<Long> = None;
    source(row, &mut |part| {
        if long.is_none() && held.len() + part.len() <= EXACT_IOS {
            held.extend_from_slice(part);
            return Ok(());
        }
        let long = long.get_or_insert_with(|| {
            let n = told.max(held.len() + part.len());
            let mut long = Long::new(ignore(n), row.spec.work.stream_count(), data_only);
            long.push(&std::mem::take(&mut held), &mut spectrum);
            long
        });
        long.push(part, &mut spectrum);
        Ok(())
    })?;
    if let Some(long) = long {
        return Ok(long.finish());
    }
    let ignore = ignore(held.len());
    // A mix is one stream, so its running phase is what follows.
    let told = |r: &&IoRecord| !data_only || is_data(r);
    let second = held.iter().skip(ignore).filter(told).filter(|r| r.pattern() == 1).count() as u64;
    let phase = responses(&held, ignore, data_only);
    if let Some(spectrum) = spectrum {
        phase.iter().for_each(|ns| spectrum.push(*ns));
    }
    let by_pattern = [(phase.len() as u64).saturating_sub(second), second];
    Ok(Taken { phase: Phase::Whole(phase), by_pattern })
}

/// Flushes and trims are modes of their own: beside reads and writes they are no part
/// of a series of response times.
fn has_data(pattern: &Pattern) -> bool {
    pattern.basics().iter().any(|basic| basic.mode != pattern::PatternMode::Trim)
}

fn is_data(record: &IoRecord) -> bool {
    matches!(record.mode(), Mode::Read | Mode::Write)
}

/// Response times in the order of submission, less the first `ignore` of each
/// stream, and where `data_only` those of reads and writes.
fn responses(records: &[IoRecord], ignore: usize, data_only: bool) -> Vec<u64> {
    let told = |r: &&IoRecord| !data_only || is_data(r);
    let first = records.first().map(IoRecord::stream);
    if records.iter().all(|r| Some(r.stream()) == first) {
        return records.iter().skip(ignore).filter(told).map(|r| r.response().0).collect();
    }
    let mut seen = std::collections::HashMap::<u16, usize>::new();
    let mut kept: Vec<(u64, u64)> = Vec::with_capacity(records.len());
    for record in records {
        let count = seen.entry(record.stream()).or_default();
        *count += 1;
        if *count > ignore && told(&record) {
            kept.push((record.due().0, record.response().0));
        }
    }
    kept.sort_by_key(|(submit, _)| *submit);
    kept.iter().map(|(_, response)| *response).collect()
}

/// A long run under way.
struct Long {
    ignore: u64,
    /// IOs of each stream so far.
    seen: Vec<u64>,
    ios: u64,
    second: u64,
    /// Submission and response of IOs not yet in order; none of one stream.
    several: bool,
    unsorted: Vec<(u64, u64)>,
    phase: Phase,
    data_only: bool,
}

impl Long {
    fn new(ignore: usize, streams: usize, data_only: bool) -> Long {
        let unsorted = if streams > 1 { Vec::with_capacity(SORTED) } else { Vec::new() };
        Long {
            ignore: ignore as u64,
            seen: Vec::new(),
            ios: 0,
            second: 0,
            several: streams > 1,
            unsorted,
            phase: Phase::default(),
            data_only,
        }
    }

    fn push(&mut self, records: &[IoRecord], spectrum: &mut Option<&mut Spectrum>) {
        for record in records {
            let stream = usize::from(record.stream());
            if stream >= self.seen.len() {
                self.seen.resize(stream + 1, 0);
            }
            self.seen[stream] += 1;
            self.ios += 1;
            let told = !self.data_only || is_data(record);
            self.second += u64::from(told && self.ios > self.ignore && record.pattern() == 1);
            if self.seen[stream] <= self.ignore || !told {
                continue;
            }
            let response = record.response().0;
            if let Some(spectrum) = spectrum {
                spectrum.push(response);
            }
            if !self.several {
                self.phase.push(response);
                continue;
            }
            self.unsorted.push((record.due().0, response));
            if self.unsorted.len() == SORTED {
                self.sort(SORTED - KEPT);
            }
        }
    }

    /// Hands the first `ios` on in order.
    fn sort(&mut self, ios: usize) {
        self.unsorted.sort_by_key(|(submit, _)| *submit);
        for (_, response) in self.unsorted.drain(..ios) {
            self.phase.push(response);
        }
    }

    fn finish(mut self) -> Taken {
        self.sort(self.unsorted.len());
        let by_pattern = [self.phase.ios().saturating_sub(self.second), self.second];
        Taken { phase: self.phase, by_pattern }
    }
}

/// True where these repeats can all be kept whole.
pub(super) fn fit(rows: &[&RunRow]) -> bool {
    let ios = rows.iter().map(|row| row.outcome.end.ios);
    ios.clone().fold(0, u64::saturating_add) <= GROUP_IOS && ios.max().unwrap_or(0) <= EXACT_IOS as u64
}

/// IOs and blocks that are kept of each of so many repeats that do not fit.
pub(super) fn share(repeats: usize) -> usize {
    (EXACT_IOS / repeats.max(1)).min(WINDOW_IOS)
}

/// Bytes that looking at these repeats takes.
pub(super) fn memory(rows: &[&RunRow]) -> u64 {
    let longest = rows.iter().map(|row| row.outcome.end.ios).max().unwrap_or(0);
    let looking = |row: &&RunRow| {
        let several = usize::from(row.spec.work.stream_count() > 1);
        if row.outcome.end.ios > EXACT_IOS as u64 { LONG[several] } else { longest * LOOKING }
    };
    let kept: u64 = rows.iter().map(|row| row.outcome.end.ios).fold(0, u64::saturating_add).min(GROUP_IOS);
    rows.iter().map(looking).max().unwrap_or(0) + kept * KEEPING
}

/// Lets work begin while there is memory for it.
pub(super) struct Turns {
    free: Mutex<u64>,
    freed: Condvar,
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns { free: Mutex::new(MEMORY), freed: Condvar::new() }
    }

    /// Does `work`, which takes `bytes`, once there are as many; alone where it
    /// takes more than there is.
    pub(super) fn take<R>(&self, bytes: u64, work: impl FnOnce() -> R) -> R {
        let bytes = bytes.min(MEMORY);
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = self.freed.wait_while(free, |free| *free < bytes);
        *enough.unwrap_or_else(PoisonError::into_inner) -= bytes;
        let _given_back = GivenBack { turns: self, bytes };
        work()
    }
}

/// Gives memory back, also where the work panics.
struct GivenBack<'a> {
    turns: &'a Turns,
    bytes: u64,
}

impl Drop for GivenBack<'_> {
    fn drop(&mut self) {
        *self.turns.free.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.turns.freed.notify_all();
    }
}
