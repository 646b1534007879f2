//! Which run is embedded how, so that the page keeps its size.
//!
//! Method: runs are taken in order of interest, the baselines' own and single
//! runs first, then those whose response times spread most (standard deviation
//! relative to the mean). Whole traces may take half of the room; the other
//! half is for the rounded or aggregated ones, and a little is set aside for
//! every run still to come, so that each has at least a coarse trace, or, of
//! very many runs, its histogram and its slowest IOs.

use super::aggregate::Aggregator;
use super::trace::{self, Trace};
use crate::contents::{RunRow, StoreContents};
use crate::error::StoreError;
use crate::records::read_row_groups;
use uflip_device::IoRecord;
use uflip_measure::run::Purpose;

/// Longer runs are read piece by piece and never embedded whole.
const MOST_IN_MEMORY: u64 = 1 << 20;
/// Runs up to this length are rounded IO by IO instead of aggregated.
const MOST_ROUNDED: usize = 6_000;
/// Room set aside for a run still to come: a coarse trace, or less where there
/// are so many runs, down to a sketch.
const COARSE_BYTES: usize = 2_500;
const SKETCH_BYTES: usize = 700;
/// Columns of a coarse trace.
const COARSE_CELLS: usize = 1000;
/// A whole IO takes at least about this much of the page.
const LEAST_WHOLE_BYTES: u64 = 2;

/// A run's trace, or why there is none.
pub(crate) type Embedded = Result<Trace, String>;

/// The traces of all runs, in the order of `contents.runs`, in at most `room`
/// bytes. A record file that cannot be read costs its own trace only.
pub(crate) fn embed(contents: &StoreContents, room: usize) -> Vec<Embedded> {
    let runs = &contents.runs;
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| interest(&runs[*b]).total_cmp(&interest(&runs[*a])).then(a.cmp(b)));
    let each = (room / 10 * 9 / runs.len().max(1)).clamp(SKETCH_BYTES, COARSE_BYTES);
    let mut budget =
        Budget { whole: room / 2, rest: room - room / 2, to_come: runs.len(), each, refused: [None; 2] };
    let mut embedded: Vec<Option<Embedded>> = runs.iter().map(|_| None).collect();
    for at in order {
        budget.to_come -= 1;
        let made = make(contents, &runs[at], &mut budget);
        embedded[at] = Some(made.map_err(|e| e.to_string()));
    }
    embedded.into_iter().flatten().collect()
}

/// How much a run has to show; the larger the more.
fn interest(row: &RunRow) -> f64 {
    let own = matches!(row.spec.purpose, Purpose::Baseline | Purpose::Single);
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
    /// Bytes an IO of the last whole and the last rounded trace for which
    /// there was no room: the next one is not even tried if it is as long.
    refused: [Option<f64>; 2],
}

/// Places in [`Budget::refused`].
const WHOLE: usize = 0;
const ROUNDED: usize = 1;

impl Budget {
    /// Room that need not be kept for other runs.
    fn free(&self) -> usize {
        (self.whole + self.rest).saturating_sub(self.to_come * self.each)
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

fn make(contents: &StoreContents, row: &RunRow, budget: &mut Budget) -> Result<Trace, StoreError> {
    let path = contents.dir.join(&row.records.file);
    let n = row.outcome.end.ios;
    // Few runs can have finer columns than many.
    let cells = if contents.runs.len() <= 100 { 4000 } else { 1000 };
    let end_of_space = end_of_space(contents);
    if n > MOST_IN_MEMORY {
        let mut aggregator = Aggregator::new(cells, n, n.min(row.spec.io_count), end_of_space);
        read_row_groups(&path, |_, records| {
            aggregator.push(records);
            Ok(())
        })?;
        return Ok(smaller(aggregator, None, budget));
    }
    let records = crate::records::read_records(&path)?;
    let room = budget.whole.min(budget.free());
    if n * LEAST_WHOLE_BYTES <= room as u64 && budget.may_fit(WHOLE, n, room) {
        let whole = trace::whole(&records);
        if whole.cost() <= room {
            budget.whole -= whole.cost();
            return Ok(whole);
        }
        budget.refuse(WHOLE, whole.cost(), n);
    }
    let cells = if records.len() <= MOST_ROUNDED { COARSE_CELLS } else { cells };
    let mut aggregator = Aggregator::new(cells, n, trace::longest_stream(&records), end_of_space);
    aggregator.push(&records);
    Ok(smaller(aggregator, Some(&records), budget))
}

/// The best that there is room for, short of the whole.
fn smaller(aggregator: Aggregator, records: Option<&[IoRecord]>, budget: &mut Budget) -> Trace {
    let short = records.filter(|records| records.len() <= MOST_ROUNDED);
    match short {
        Some(records) if budget.may_fit(ROUNDED, records.len() as u64, budget.free()) => {
            let mut slowest = aggregator.outliers();
            slowest.truncate(8);
            let rounded = trace::in_steps(records, slowest);
            if budget.take(rounded.cost()) {
                return rounded;
            }
            budget.refuse(ROUNDED, rounded.cost(), records.len() as u64);
        }
        Some(_) => {}
        None => {
            let aggregated = aggregator.clone().finish();
            if budget.take(aggregated.cost()) {
                return aggregated;
            }
        }
    }
    let coarse = aggregator.clone().coarse();
    if budget.take(coarse.cost()) {
        return coarse;
    }
    let sketch = aggregator.sketch();
    budget.take(sketch.cost());
    sketch
}

/// Where offsets end: the capacity that the plan was made for.
fn end_of_space(contents: &StoreContents) -> u64 {
    let capacity = contents.plan.get("geometry").and_then(|g| g.get("capacity"));
    capacity.and_then(serde_json::Value::as_u64).unwrap_or(1 << 40)
}
