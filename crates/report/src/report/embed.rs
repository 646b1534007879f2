//! Which run is embedded how, so that the page keeps its size.
//!
//! Method: runs are taken in order of interest, the baselines' own and single
//! runs first, then those whose response times spread most (standard deviation
//! relative to the mean). Whole traces may take half of the room; the other
//! half is for the rounded or aggregated ones, and a little is set aside for
//! every run still to come, so that each has at least a coarse trace, or, of
//! very many runs, its histogram and its slowest IOs; of tens of thousands the
//! last may have none.
//!
//! Runs are read and summed up by threads of their own, a few ahead; what is
//! embedded how is decided in order, so the same store gives the same file. The
//! threads also make the kind of trace that the run before got ([`Guess`]):
//! where that is what the run gets, it is ready, else it is made again.

use super::aggregate::{Aggregator, RunSummary, SKETCHED};
use super::trace::{self, Trace, TraceKind};
use super::windows;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use uflip_device::IoRecord;
use uflip_measure::run::Belongs;
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;
use uflip_store::records::{read_records, read_row_groups};

/// Longer runs are read piece by piece and never embedded whole.
const MOST_IN_MEMORY: u64 = 1 << 20;
/// Runs up to this length are rounded IO by IO instead of aggregated.
const MOST_ROUNDED: usize = 6_000;
/// Room set aside for a run still to come: a coarse trace, or less where there
/// are so many runs, down to a sketch.
const COARSE_BYTES: usize = 2_500;
const SKETCH_BYTES: usize = 350;
/// Columns of a coarse trace.
const COARSE_CELLS: usize = 1000;
/// What a rounded IO with its place is taken to need before one was made.
const PLACED_BYTES: f64 = 3.5;
/// A whole IO takes at least about this much of the page.
const LEAST_WHOLE_BYTES: u64 = 2;
/// Few runs can have finer columns and more windows than many.
const FEW_RUNS: usize = 100;
/// Why a run has no trace.
const NO_ROOM: &str = "there are too many runs for all to have room";
/// Of more runs a sketch has the slowest IO only.
const MANY_RUNS: usize = 4_000;

/// A run's trace, or why there is none.
pub(crate) type Embedded = Result<Trace, String>;

/// The traces of the first `most` runs, in the order of `contents.runs`, in at
/// most `room` bytes. A record file that cannot be read costs its own trace only.
pub(crate) fn embed(contents: &StoreContents, most: usize, room: usize) -> Vec<Embedded> {
    let runs = &contents.runs[..most.min(contents.runs.len())];
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| interest(&runs[*b]).total_cmp(&interest(&runs[*a])).then(a.cmp(b)));
    let share = room / 10 * 9 / runs.len().max(1);
    // Where not even sketches of all fit, those of the first are made.
    let each = if share < SKETCH_BYTES { 0 } else { share.min(COARSE_BYTES) };
    let whole = if each == 0 { room / 4 } else { room / 2 };
    let mut budget = Budget {
        whole,
        rest: room - whole,
        to_come: runs.len(),
        each,
        refused: [None; 3],
        ios_to_come: 0,
        rounded: None,
    };
    budget.ios_to_come = runs.iter().map(|row| row.outcome.end.ios).sum();
    let reader =
        Reader { dir: &contents.dir, few: runs.len() <= FEW_RUNS, end_of_space: end_of_space(contents) };
    let sketched = if runs.len() <= MANY_RUNS { SKETCHED } else { 1 };
    let mut embedded: Vec<Option<Embedded>> = runs.iter().map(|_| None).collect();
    // Once there is no room for the least, the rest need not be read.
    let full = AtomicBool::new(false);
    let guess = AtomicUsize::new(0);
    let read = |at: usize| -> Result<Option<Read>, StoreError> {
        if full.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut read = reader.read(&runs[at])?;
        read.make_ahead(Guess::ALL[guess.load(Ordering::Relaxed)]);
        Ok(Some(read))
    };
    in_order(&order, workers(runs), read, |at, read| {
        budget.to_come -= 1;
        budget.ios_to_come -= runs[at].outcome.end.ios;
        let made = match read.map_err(|e| e.to_string()) {
            Ok(Some(mut read)) if !full.load(Ordering::Relaxed) => choose(&mut read, &mut budget, sketched),
            Ok(_) => Err(NO_ROOM.into()),
            Err(why) => Err(why),
        };
        if budget.each == 0 && made.as_ref().is_err_and(|why| why == NO_ROOM) {
            full.store(true, Ordering::Relaxed);
        }
        let next = made.as_ref().map_or(Guess::None, Guess::of);
        guess.store(next as usize, Ordering::Relaxed);
        embedded[at] = Some(made);
    });
    embedded.into_iter().flatten().collect()
}

/// Threads that may read at once: where runs are long but held whole, few, as each
/// thread has up to three of them.
fn workers(runs: &[RunRow]) -> usize {
    let held = runs.iter().map(|row| row.outcome.end.ios).filter(|n| *n <= MOST_IN_MEMORY);
    if held.max().unwrap_or(0) > MOST_IN_MEMORY / 8 { 2 } else { 8 }
}

/// Calls `read` on every item, by at most `most` threads, and `take` with the results
/// in the order of the items; a thread is at most two results ahead.
fn in_order<R: Send>(
    items: &[usize],
    most: usize,
    read: impl Fn(usize) -> R + Sync,
    mut take: impl FnMut(usize, R),
) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, most).min(items.len());
    std::thread::scope(|scope| {
        let (read, mut results, mut started) = (&read, Vec::<Receiver<R>>::new(), Vec::new());
        for worker in 0..workers {
            let (send, receive): (SyncSender<R>, Receiver<R>) = sync_channel(1);
            results.push(receive);
            let work = move || {
                for item in items.iter().skip(worker).step_by(workers) {
                    // Nobody listens any more: the other side gave up.
                    if send.send(read(*item)).is_err() {
                        return;
                    }
                }
            };
            // Where no thread is to be had, its sender is gone and its items are
            // read here.
            started.push(std::thread::Builder::new().spawn_scoped(scope, work).is_ok());
        }
        for (place, item) in items.iter().enumerate() {
            let result = match started[place % workers] {
                true => results[place % workers].recv().ok(),
                false => Some(read(*item)),
            };
            let Some(result) = result else { return };
            take(*item, result);
        }
    });
}

/// How much a run has to show; the larger the more.
fn interest(row: &RunRow) -> f64 {
    let own = matches!(row.spec.belongs, Belongs::Baseline { .. } | Belongs::Single);
    let spread = match (row.stats.all.sd_ns, row.stats.all.mean_ns) {
        (Some(sd), Some(mean)) if mean > 0.0 => sd / mean,
        _ => 0.0,
    };
    if own { 1e9 + spread } else { spread }
}

/// Bytes of the page that are left.
struct Budget {
    whole: usize,
    rest: usize,
    to_come: usize,
    /// Set aside for each run to come.
    each: usize,
    /// Bytes an IO of the last whole, rounded and coarse trace for which there
    /// was no room: the next one is not even tried if it is as long.
    refused: [Option<f64>; 3],
    /// IOs of the runs still to come, and bytes an IO of the last rounded trace
    /// with places.
    ios_to_come: u64,
    rounded: Option<f64>,
}

/// Places in [`Budget::refused`].
const WHOLE: usize = 0;
const ROUNDED: usize = 1;
const COARSE: usize = 2;

impl Budget {
    /// Room that need not be kept for other runs.
    fn free(&self) -> usize {
        (self.whole + self.rest).saturating_sub(self.to_come * self.each)
    }

    /// True where there seems to be room for the places of this run's `n` IOs
    /// and of all to come.
    fn may_have_places(&self, n: u64) -> bool {
        let rate = self.rounded.unwrap_or(PLACED_BYTES);
        (n + self.ios_to_come) as f64 * rate * 1.05 <= (self.whole + self.rest) as f64
    }

    /// Remembers that `bytes` for `n` IOs were too much.
    fn refuse(&mut self, which: usize, bytes: usize, n: u64) {
        self.refused[which] = Some(bytes as f64 / n.max(1) as f64);
    }

    /// True where a trace of `n` IOs may fit into `room`: runs of a store
    /// compress alike, give or take a third.
    fn may_fit(&self, which: usize, n: u64, room: usize) -> bool {
        self.refused[which].is_none_or(|rate| n as f64 * rate * 0.67 <= room as f64)
    }

    /// True where `bytes` of a trace that is not whole could be taken: from
    /// its half, then from what whole traces left over.
    fn take(&mut self, bytes: usize) -> bool {
        if bytes > self.free() {
            return false;
        }
        let from_rest = bytes.min(self.rest);
        self.rest -= from_rest;
        self.whole -= (bytes - from_rest).min(self.whole);
        true
    }
}

/// The kind of trace that a run probably gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    Whole,
    Rounded,
    Placed,
    Coarse,
    None,
}

impl Guess {
    const ALL: [Guess; 5] = [Guess::Whole, Guess::Rounded, Guess::Placed, Guess::Coarse, Guess::None];

    fn of(trace: &Trace) -> Guess {
        match trace.kind {
            TraceKind::Whole => Guess::Whole,
            TraceKind::Rounded if trace.columns.iter().any(|c| c.name == "place") => Guess::Placed,
            TraceKind::Rounded => Guess::Rounded,
            TraceKind::Coarse => Guess::Coarse,
            TraceKind::Aggregated | TraceKind::Sketched => Guess::None,
        }
    }
}

/// A run as read.
struct Read {
    n: u64,
    summary: RunSummary,
    /// All of them; none of a long run.
    records: Option<Vec<IoRecord>>,
    /// The IOs around the slowest, of runs that would be aggregated.
    windows: Vec<windows::WindowIo>,
    /// A trace made ahead.
    ready: (Guess, Option<Trace>),
}

impl Read {
    /// Makes what `guess` says ahead, where the run can have it.
    fn make_ahead(&mut self, guess: Guess) {
        let short = self.records.as_ref().is_some_and(|r| r.len() <= MOST_ROUNDED);
        if short || guess == Guess::Whole {
            self.ready = (guess, self.make(guess));
        }
    }

    /// The trace of a kind; none of what has none.
    fn make(&self, guess: Guess) -> Option<Trace> {
        let records = self.records.as_ref();
        let slowest = || self.summary.outliers.iter().take(SKETCHED).copied().collect();
        match guess {
            Guess::Whole => records.map(|r| trace::whole(r)),
            Guess::Rounded | Guess::Placed => {
                records.map(|r| trace::in_steps(r, slowest(), guess == Guess::Placed))
            }
            Guess::Coarse => Some(self.summary.coarse()),
            Guess::None => None,
        }
    }

    /// The trace of a kind, made ahead or now.
    fn take(&mut self, guess: Guess) -> Option<Trace> {
        if self.ready.0 == guess && self.ready.1.is_some() { self.ready.1.take() } else { self.make(guess) }
    }
}

/// What reading a run takes.
struct Reader<'a> {
    dir: &'a Path,
    few: bool,
    end_of_space: u64,
}

impl Reader<'_> {
    fn read(&self, row: &RunRow) -> Result<Read, StoreError> {
        let path = self.dir.join(&row.records.file);
        let n = row.outcome.end.ios;
        let (cells, spikes) = if self.few { (4000, 12) } else { (1000, 4) };
        if n > MOST_IN_MEMORY {
            let mut aggregator = Aggregator::new(cells, n, n.min(row.spec.io_count), self.end_of_space);
            read_row_groups(&path, |_, records| {
                aggregator.push(records);
                Ok(())
            })?;
            let summary = aggregator.finish();
            let windows = windows::of_file(&summary.outliers, &path, spikes)?;
            return Ok(Read { n, summary, records: None, windows, ready: (Guess::None, None) });
        }
        let records = read_records(&path)?;
        let short = records.len() <= MOST_ROUNDED;
        let cells = if short { COARSE_CELLS } else { cells };
        let mut aggregator = Aggregator::new(cells, n, trace::longest_stream(&records), self.end_of_space);
        aggregator.push(&records);
        let summary = aggregator.finish();
        let spikes = if short { 0 } else { spikes };
        let windows = windows::of_records(&summary.outliers, &records, spikes);
        Ok(Read { n, summary, records: Some(records), windows, ready: (Guess::None, None) })
    }
}

/// The best that there is room for; an error where there is room for nothing.
fn choose(read: &mut Read, budget: &mut Budget, sketched: usize) -> Embedded {
    let room = budget.whole.min(budget.free());
    if read.records.is_some()
        && read.n * LEAST_WHOLE_BYTES <= room as u64
        && budget.may_fit(WHOLE, read.n, room)
        && let Some(whole) = read.take(Guess::Whole)
    {
        if whole.cost() <= room {
            budget.whole -= whole.cost();
            return Ok(whole);
        }
        budget.refuse(WHOLE, whole.cost(), read.n);
    }
    smaller(read, budget, sketched)
}

/// The best that there is room for, short of the whole.
fn smaller(read: &mut Read, budget: &mut Budget, sketched: usize) -> Embedded {
    if budget.each == 0 {
        return sketch(&read.summary, budget, sketched);
    }
    if read.records.as_ref().is_none_or(|records| records.len() > MOST_ROUNDED) {
        let aggregated = read.summary.aggregated(&read.windows);
        if budget.take(aggregated.cost()) {
            return Ok(aggregated);
        }
    } else if budget.may_fit(ROUNDED, read.n, budget.free()) {
        let places = budget.may_have_places(read.n);
        let kind = if places { Guess::Placed } else { Guess::Rounded };
        if let Some(rounded) = read.take(kind) {
            if places {
                budget.rounded = Some(rounded.cost() as f64 / read.n.max(1) as f64);
            }
            if budget.take(rounded.cost()) {
                return Ok(rounded);
            }
            budget.refuse(ROUNDED, rounded.cost(), read.n);
        }
    }
    if budget.may_fit(COARSE, read.n, budget.free())
        && let Some(coarse) = read.take(Guess::Coarse)
    {
        if budget.take(coarse.cost()) {
            return Ok(coarse);
        }
        budget.refuse(COARSE, coarse.cost(), read.n);
    }
    sketch(&read.summary, budget, sketched)
}

fn sketch(summary: &RunSummary, budget: &mut Budget, sketched: usize) -> Embedded {
    for outliers in [sketched, 1] {
        let sketch = summary.sketch(outliers);
        if budget.take(sketch.cost()) {
            return Ok(sketch);
        }
    }
    Err(NO_ROOM.into())
}

/// Where offsets end: the capacity that the plan was made for.
fn end_of_space(contents: &StoreContents) -> u64 {
    contents.plan.as_ref().map_or(1 << 40, |plan| plan.geometry.capacity.0)
}
