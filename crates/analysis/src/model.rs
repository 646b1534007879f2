//! Cost models: what IOs should cost by each, fitted to measured runs.
//!
//! | model | a read costs | a write costs | source |
//! |---|---|---|---|
//! | merge | a + s/B' | T_merge for each logical block of a sync, + s/B | paper 002, section 3.2, eq. 2 |
//! | em-flash-1 | c for each block B | c_W c for each block B | paper 004, chapter 5 |
//! | em-flash-2 | c_R for each block B_R | c_W for each block B_W | paper 004, chapter 5 |
//! | general flash | t for each block B_R | c t for each block B_W | Ajwani et al., SEA 2009 |
//! | unit-cost flash | t a byte of blocks B_R | t a byte of blocks B_W | the same |
//!
//! How: [`curves`] takes the means of runs by pattern and IOSize; [`fit`] fits
//! every model to them; [`predict`] sums over a trace. The general model has the
//! costs of em-flash-2 in other units: its predictions are the same, its c is
//! c_W / c_R. An HDD's T_pos (eq. 1) is the merge model's T_merge under another
//! name, fitted to the same runs.
//! Units: ns, bytes; the papers' block costs have no unit, here they are ns.
//!
//! What the papers leave open: B is 4 KiB or the nearest size measured; B_R and
//! B_W are the smallest sizes with half of the best throughput of random reads
//! and writes, as the models want a block at which transfer, not the start,
//! dominates.

pub mod focal;
pub mod kinds;
pub mod merge;
pub mod modes;

use crate::trace::{TraceIo, each_sync, touched};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_device::{Bytes, Mode};
use uflip_measure::{Baseline, Pattern, Timing};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;

pub use merge::{MergeFit, SyncSample, fit_merge};
pub use uflip_store::logical_block::{BlockSource, LogicalBlock};

/// Mean response time in ns by IOSize, of one pattern.
pub type CostCurve = BTreeMap<u64, f64>;

/// The curves of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curves {
    /// Random reads.
    pub rr: CostCurve,
    /// Sequential writes.
    pub sw: CostCurve,
    /// Random writes.
    pub rw: CostCurve,
    /// The runs behind them.
    pub runs: Vec<u32>,
}

/// The models fitted to a device; `None` where the runs for it are missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// The logical block that `merge` works with.
    pub logical_block_bytes: Option<u64>,
    /// Where that comes from.
    #[serde(default)]
    pub logical_block_source: Option<BlockSource>,
    /// Writes: T = T_merge/(f R) + S/B.
    pub merge: Option<MergeFit>,
    /// Reads as a line: latency in ns and bytes a second.
    pub read_line: Option<MergeFit>,
    /// x + c_W y.
    pub em_flash_1: Option<EmFlash1>,
    /// c_R x + c_W y.
    pub em_flash_2: Option<EmFlash2>,
    /// Unit-cost flash: ns a byte.
    pub unit_cost_ns_per_byte: Option<f64>,
    /// True where `merge` was fitted to runs with flushes, f and R apart; else
    /// to random writes by size, each a sync of its own.
    #[serde(default)]
    pub merge_by_syncs: bool,
    /// The runs behind the curves.
    #[serde(default)]
    pub runs: Vec<u32>,
}

/// x + c_W y, in units of a read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmFlash1 {
    /// B.
    pub block_bytes: u64,
    /// A read of a block.
    pub read_ns: f64,
    /// c_W.
    pub c_w: f64,
}

/// c_R x + c_W y.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmFlash2 {
    /// B_R.
    pub read_block_bytes: u64,
    /// B_W.
    pub write_block_bytes: u64,
    /// c_R.
    pub read_ns: f64,
    /// c_W.
    pub write_ns: f64,
    /// c of the general flash model.
    pub c: f64,
}

/// What a trace would cost by one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The model.
    pub model: &'static str,
    /// All reads; `None` where the model is not fitted.
    pub read_ns: Option<f64>,
    /// All writes.
    pub write_ns: Option<f64>,
    /// Predicted less measured over measured, for all IOs; `None` where the
    /// trace has no response times.
    pub relative_error: Option<f64>,
}

/// The curves of consecutive, aligned runs of one basic pattern.
pub fn curves(rows: &[RunRow]) -> Curves {
    let mut sums: BTreeMap<(Baseline, u64), (f64, f64)> = BTreeMap::new();
    let mut runs = Vec::new();
    for row in rows {
        let Some(Pattern::Basic(basic)) = row.spec.pattern() else { continue };
        // Fills, bursts and whole passes are there for the device's state.
        let measured = !row.spec.belongs.prepares();
        let plain = measured
            && basic.mode != uflip_measure::PatternMode::Trim
            && basic.timing == Timing::Consecutive
            && basic.io_shift == Bytes(0);
        if let Some(mean) = row.stats.running.mean_ns.filter(|_| plain) {
            let sum = sums.entry((basic.baseline(), basic.io_size.0)).or_default();
            (sum.0, sum.1) = (sum.0 + mean, sum.1 + 1.0);
            runs.push(row.spec.id);
        }
    }
    let of = |baseline: Baseline| {
        let mine = sums.iter().filter(|((of, _), _)| *of == baseline);
        mine.map(|((_, size), (sum, n))| (*size, sum / n)).collect()
    };
    Curves { rr: of(Baseline::Rr), sw: of(Baseline::Sw), rw: of(Baseline::Rw), runs }
}

/// The smallest size with half of the curve's best throughput, and its mean.
fn knee(curve: &CostCurve) -> Option<(u64, f64)> {
    let speed = |(size, ns): (&u64, &f64)| *size as f64 / ns.max(1.0);
    let best = curve.iter().map(speed).fold(0.0, f64::max);
    curve.iter().find(|point| speed(*point) >= best / 2.0).map(|(size, ns)| (*size, *ns))
}

/// The size nearest to `wanted`, by ratio, that both curves have.
fn nearest(a: &CostCurve, b: &CostCurve, wanted: u64) -> Option<u64> {
    let far = |size: &u64| (*size as f64 / wanted as f64).ln().abs();
    a.keys().filter(|size| b.contains_key(size)).copied().min_by(|x, y| far(x).total_cmp(&far(y)))
}

/// The models of a device with these curves. Random writes beyond the logical
/// block are left out of the merge model (R <= L).
pub fn fit(curves: &Curves, logical_block: Option<LogicalBlock>) -> Models {
    let line = |curve: &CostCurve| {
        let limit = logical_block.map_or(u64::MAX, |b| b.bytes.0);
        let samples: Vec<SyncSample> = curve
            .iter()
            .filter(|(size, _)| **size <= limit)
            .map(|(size, ns)| SyncSample::io(*size, *ns))
            .collect();
        fit_merge(&samples)
    };
    let em_flash_1 = nearest(&curves.rr, &curves.rw, 4096).and_then(|block_bytes| {
        let (read_ns, write) = (*curves.rr.get(&block_bytes)?, *curves.rw.get(&block_bytes)?);
        Some(EmFlash1 { block_bytes, read_ns, c_w: write / read_ns })
    });
    let em_flash_2 = knee(&curves.rr).zip(knee(&curves.rw)).map(|((br, read_ns), (bw, write_ns))| EmFlash2 {
        read_block_bytes: br,
        write_block_bytes: bw,
        read_ns,
        write_ns,
        c: write_ns / read_ns,
    });
    let unit = em_flash_2.map(|m| {
        let per_byte = |ns: f64, bytes: u64| ns / bytes as f64;
        (per_byte(m.read_ns, m.read_block_bytes) * per_byte(m.write_ns, m.write_block_bytes)).sqrt()
    });
    Models {
        logical_block_bytes: logical_block.map(|b| b.bytes.0),
        logical_block_source: logical_block.map(|b| b.source),
        merge: line(&curves.rw),
        read_line: fit_merge(&curves.rr.iter().map(|(s, ns)| SyncSample::io(*s, *ns)).collect::<Vec<_>>()),
        em_flash_1,
        em_flash_2,
        unit_cost_ns_per_byte: unit,
        merge_by_syncs: false,
        runs: curves.runs.clone(),
    }
}

/// The models of a store's runs: [`fit`], with the merge model from runs with
/// flushes where there are such, and the logical block that is given or else
/// found ([`block::find`]).
///
/// # Errors
/// [`StoreError`] where records cannot be read.
pub fn fit_store(contents: &StoreContents, given: Option<Bytes>) -> Result<Models, StoreError> {
    let block = uflip_store::logical_block::find(&contents.dir, given)?;
    let mut models = fit(&curves(&contents.runs), Some(block));
    if let Some(fit) = focal::merge_report(contents, given)?.and_then(|report| report.fit) {
        (models.merge, models.merge_by_syncs) = (Some(fit), true);
    }
    Ok(models)
}

/// Blocks of `block` bytes that the IOs of one mode touch.
fn block_count(trace: &[TraceIo], mode: Mode, block: u64) -> f64 {
    let block = block.max(1);
    let touch = |io: &TraceIo| {
        let last = io.offset.saturating_add(u64::from(io.size)) - 1;
        (last / block - io.offset / block + 1) as f64
    };
    trace.iter().filter(|io| io.mode == mode && io.size > 0).map(touch).sum()
}

/// What `trace` would cost by each model.
pub fn predict(models: &Models, trace: &[TraceIo]) -> Vec<Prediction> {
    let bytes = |mode| trace.iter().filter(|io| io.mode == mode).map(|io| f64::from(io.size)).sum::<f64>();
    let count = |mode| trace.iter().filter(|io| io.mode == mode && io.size > 0).count() as f64;
    let block = Bytes(models.logical_block_bytes.unwrap_or(4 << 20));
    let mut merges = 0.0;
    each_sync(trace, |group| merges += touched(group, block).len() as f64);
    let one = models.em_flash_1;
    let two = models.em_flash_2;
    let reads = |b: u64| block_count(trace, Mode::Read, b);
    let writes = |b: u64| block_count(trace, Mode::Write, b);
    let unit = models.unit_cost_ns_per_byte.zip(two);
    let two_read = two.map(|m| reads(m.read_block_bytes) * m.read_ns);
    let two_write = two.map(|m| writes(m.write_block_bytes) * m.write_ns);
    let all = [
        (
            "merge",
            models.read_line.as_ref().and_then(|m| m.takes_ns(count(Mode::Read), bytes(Mode::Read))),
            models.merge.as_ref().and_then(|m| m.takes_ns(merges, bytes(Mode::Write))),
        ),
        (
            "em-flash-1",
            one.map(|m| reads(m.block_bytes) * m.read_ns),
            one.map(|m| writes(m.block_bytes) * m.read_ns * m.c_w),
        ),
        ("em-flash-2", two_read, two_write),
        ("general flash", two_read, two_write),
        (
            "unit-cost flash",
            unit.map(|(t, m)| reads(m.read_block_bytes) * m.read_block_bytes as f64 * t),
            unit.map(|(t, m)| writes(m.write_block_bytes) * m.write_block_bytes as f64 * t),
        ),
    ];
    let measured = measured_ns(trace);
    // What does not occur costs nothing, whatever the model.
    let none = |mode| (count(mode) == 0.0).then_some(0.0);
    let one = |(model, read_ns, write_ns): (&'static str, Option<f64>, Option<f64>)| {
        let (read_ns, write_ns) = (none(Mode::Read).or(read_ns), none(Mode::Write).or(write_ns));
        let total = read_ns.zip(write_ns).map(|(r, w)| r + w);
        let relative_error = total.zip(measured).map(|(total, measured)| total / measured - 1.0);
        Prediction { model, read_ns, write_ns, relative_error }
    };
    all.into_iter().map(one).collect()
}

/// What the trace took: the sum of its response times, flushes included where the trace has
/// theirs, as they are part of what a sync costs; where requests overlap, the time in
/// which any was under way. `None` where the response time of a read or write is missing.
pub fn measured_ns(trace: &[TraceIo]) -> Option<f64> {
    let ns = |io: &TraceIo| io.response.map(|r| r.0 as f64);
    let moving = trace.iter().filter(|io| matches!(io.mode, Mode::Read | Mode::Write));
    let sum: Option<f64> = moving.map(ns).sum();
    let flushes: f64 = trace.iter().filter(|io| io.mode == Mode::Flush).filter_map(ns).sum();
    let sum = sum.map(|ns| ns + flushes).filter(|ns| *ns > 0.0)?;
    let busy = busy_ns(trace);
    Some(if busy > 0.0 && sum > OVERLAPPING * busy { busy } else { sum })
}

/// Requests under way on average, while any was, from where clocks of microseconds
/// cannot make it of requests that follow one another.
const OVERLAPPING: f64 = 1.02;

/// Requests under way on average while any was, where the trace tells when they were and
/// they overlap: response times then hold the wait for others, and [`measured_ns`] is the
/// time in which any was under way.
pub fn mean_under_way(trace: &[TraceIo]) -> Option<f64> {
    let busy = busy_ns(trace);
    let responses = trace.iter().filter(|io| io.mode != Mode::Trim).filter_map(|io| io.response);
    let sum: f64 = responses.map(|r| r.0 as f64).sum();
    (busy > 0.0 && sum > OVERLAPPING * busy).then(|| sum / busy)
}

/// The time in which a read, write or flush was under way; 0 for a trace without times.
fn busy_ns(trace: &[TraceIo]) -> f64 {
    if trace.iter().all(|io| io.at == trace[0].at) && trace.len() > 1 {
        return 0.0;
    }
    let of = |io: &TraceIo| Some((io.at.0, io.at.0.saturating_add(io.response?.0)));
    let mut spans: Vec<(u64, u64)> = trace.iter().filter(|io| io.mode != Mode::Trim).filter_map(of).collect();
    spans.sort_unstable();
    let (mut busy, mut until) = (0, 0);
    for (from, to) in spans {
        busy += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    busy as f64
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
