//! What a job's runs came to, as paper 004 shows it: speeds by block size (Table
//! 3.1, Figure 3.1), misalignment (3.4a), drift over age (3.4b), recovery after a
//! burst (3.3, C.1 to C.4) and spikes in a long series of writes (3.2).
//!
//! How: pure functions of stored rows and records; nothing is measured.
//! * speed: bytes of a run over its elapsed time.
//! * windows: an IO's bytes are spread evenly from its submission to its
//!   completion; a window is judged only where the run covers all of it.
//! * recovery: the end of the last window before the first that reaches 0.6 of
//!   the median of all windows ("recovery here means a return to a 0.6 fraction
//!   of the median post-random performance", appendix C).
//! * spikes: IOs above the widest gap, by ratio, between two response times above
//!   the median, where that gap is at least [`SPIKE_GAP`]; IOs in a row are one.
//!   The period is the median distance from one spike to the next, in IOs.
//!
//! Units: MB/s with 10^6 bytes, seconds, ns in names. Source: paper 004, sections
//! 3.3.1 to 3.3.5 and appendix C; the paper does not define its spikes.

mod long;
mod series;
mod text;

use crate::model::focal::{MergeReport, merge_report};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use uflip_device::{Bytes, Nanos};
use uflip_measure::Baseline;
use uflip_measure::detect::long::EXACT_IOS;
use uflip_measure::job::{JobPlan, JobRun, Role, RunExtent};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;
use uflip_store::job::job_of;
use uflip_store::records::{read_records, read_row_groups};

pub use series::{SPIKE_GAP, Spikes, batches, recovery_s, spikes, windows};
use series::{SPIKE_IOS, Windows, median};

/// Recovered at this share of the median.
pub const RECOVERED: f64 = 0.6;
/// The file in a store.
pub const FILE: &str = "job.json";
/// The version of [`JobReport`]'s format.
pub const FORMAT: u32 = 1;

/// Everything a job's runs came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobReport {
    /// [`FORMAT`].
    pub format: u32,
    /// What it was made from: the same files and runs carry the same text.
    pub derived_from: String,
    /// Speeds, in order of the runs.
    pub speeds: Vec<Speed>,
    /// Table 3.1's row in MB/s: SR, RR, SW, RW at 512 bytes, then at 2 MB.
    pub table31_mb_per_s: [Option<f64>; 8],
    /// Shifted against aligned random writes.
    pub misaligned: Vec<Misaligned>,
    /// After bursts.
    pub recovery: Vec<Recovery>,
    /// The whole target written again, after bursts and without.
    pub rewrite: Vec<Rewrite>,
    /// Long series of writes.
    pub series: Vec<BatchSeries>,
    /// Spikes in these.
    pub spikes: Vec<SeriesSpikes>,
    /// Over endurance rounds.
    pub drift: Vec<JobDrift>,
    /// The write cost model on runs with flushes.
    pub merge: Option<MergeReport>,
}

/// The speed of one pattern at one block size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The job's line.
    pub line: String,
    /// The endurance round it follows.
    pub round: Option<u32>,
    /// Which pattern.
    pub baseline: Baseline,
    /// IOSize.
    pub block_bytes: Bytes,
    /// IOShift.
    pub shift_bytes: Bytes,
    /// Mean of the repeats.
    pub mb_per_s: f64,
    /// Slowest repeat.
    pub min_mb_per_s: f64,
    /// Fastest repeat.
    pub max_mb_per_s: f64,
    /// Which.
    pub runs: Vec<u32>,
}

/// Figure 3.4a: a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Misaligned {
    /// IOSize.
    pub block_bytes: Bytes,
    /// IOShift.
    pub shift_bytes: Bytes,
    /// Speed of shifted over that of aligned random writes.
    pub ratio: f64,
}

/// Figures 3.3 and C.1 to C.4: sequential writes after a burst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// The run.
    pub run: u32,
    /// The job's line.
    #[serde(default)]
    pub line: String,
    /// IOSize.
    pub block_bytes: Bytes,
    /// What came before.
    pub burst: String,
    /// Its length, where it is one in time.
    pub burst_s: Option<f64>,
    /// Length of a window.
    pub window_s: f64,
    /// MB/s in each window.
    pub windows_mb_per_s: Vec<f64>,
    /// Their median.
    pub median_mb_per_s: f64,
    /// The same pattern without a burst, from a line that has it.
    pub steady_mb_per_s: Option<f64>,
    /// Median over steady.
    pub median_over_steady: Option<f64>,
    /// Time until [`RECOVERED`] of the median; 0 where the first window has it.
    pub recovery_s: Option<f64>,
    /// Time until [`RECOVERED`] of the steady speed; null where never.
    pub recovery_to_steady_s: Option<f64>,
}

/// Figure C.4: the time to write the whole target once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The run.
    pub run: u32,
    /// IOSize.
    pub block_bytes: Bytes,
    /// What came before; null for the reference.
    pub burst: Option<String>,
    /// Its length, where it is one in time.
    pub burst_s: Option<f64>,
    /// From 0: with `each=size` only the first pass comes right after the burst.
    pub repeat: u32,
    /// How long it took.
    pub minutes: f64,
    /// Over the mean of those without a burst.
    pub over_normal: Option<f64>,
}

/// Figure 3.2: a long series of writes in batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchSeries {
    /// The run.
    pub run: u32,
    /// The job's line.
    pub line: String,
    /// The line with what else varies in it besides pattern and block size; empty in
    /// files of before this field.
    #[serde(default)]
    pub section: String,
    /// Which pattern; `None` in files of before this field.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// IOSize.
    pub block_bytes: Bytes,
    /// From 0.
    #[serde(default)]
    pub repeat: u32,
    /// IOs in a batch; the last may have fewer.
    pub batch_ios: usize,
    /// Seconds that each batch took.
    pub batch_s: Vec<f64>,
}

/// Figure 3.2: spikes in a long series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesSpikes {
    /// The run.
    pub run: u32,
    /// The job's line.
    pub line: String,
    /// What was found.
    #[serde(flatten)]
    pub spikes: Spikes,
}

/// Figure 3.4b: speed over age.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDrift {
    /// Which pattern.
    pub baseline: Baseline,
    /// IOSize.
    pub block_bytes: Bytes,
    /// IOShift.
    pub shift_bytes: Bytes,
    /// Whole-device writes before the first and the last round measured.
    pub passes: (u64, u64),
    /// Speed in the last round over that in the first.
    pub last_over_first: f64,
    /// Slope of the least-squares line in percent of the mean for 1,000 passes.
    pub percent_per_1000_passes: Option<f64>,
    /// Whole-device writes so far and MB/s, in order.
    pub points: Vec<(u64, f64)>,
}

fn speed_of(row: &RunRow) -> Option<f64> {
    let bytes = uflip_measure::job::drive::bytes_of(&row.spec, row.outcome.end.ios);
    uflip_measure::job::drive::throughput(bytes, &row.outcome.end).map(|t| t / 1e6)
}

/// A run whose speed is the device's own: no burst before it, no flushes in it.
fn plain(run: &JobRun) -> bool {
    run.role == Role::Measured && run.burst.is_none() && run.sync.is_none()
}

fn speeds(rows: &[(&JobRun, &RunRow)]) -> Vec<Speed> {
    let mut all: Vec<Speed> = Vec::new();
    for (run, row) in rows.iter().filter(|(run, _)| plain(run)) {
        let Some(mb) = speed_of(row) else { continue };
        let (line, baseline) = (run.line.clone(), run.baseline);
        let same = all.iter_mut().find(|s| {
            s.line == line
                && s.round == run.round
                && s.baseline == baseline
                && s.block_bytes == run.block
                && s.shift_bytes == run.shift
        });
        if let Some(speed) = same {
            let n = speed.runs.len() as f64;
            speed.mb_per_s = (speed.mb_per_s * n + mb) / (n + 1.0);
            speed.min_mb_per_s = speed.min_mb_per_s.min(mb);
            speed.max_mb_per_s = speed.max_mb_per_s.max(mb);
            speed.runs.push(row.spec.id);
        } else {
            all.push(Speed {
                line,
                round: run.round,
                baseline,
                block_bytes: run.block,
                shift_bytes: run.shift,
                mb_per_s: mb,
                min_mb_per_s: mb,
                max_mb_per_s: mb,
                runs: vec![row.spec.id],
            });
        }
    }
    all
}

/// The aligned speed of a pattern, from the first line that has it.
fn steady(speeds: &[Speed], baseline: Baseline, block: Bytes) -> Option<f64> {
    let of = |s: &&Speed| s.baseline == baseline && s.block_bytes == block && s.shift_bytes == Bytes(0);
    speeds.iter().find(of).map(|s| s.mb_per_s)
}

fn misaligned(speeds: &[Speed]) -> Vec<Misaligned> {
    let shifted = speeds.iter().filter(|s| s.shift_bytes > Bytes(0) && s.baseline == Baseline::Rw);
    let point = |s: &Speed| {
        let same_line = speeds.iter().find(|o| {
            o.line == s.line
                && o.baseline == Baseline::Rw
                && o.block_bytes == s.block_bytes
                && o.shift_bytes == Bytes(0)
        });
        let aligned =
            same_line.map(|o| o.mb_per_s).or_else(|| steady(speeds, Baseline::Rw, s.block_bytes))?;
        Some(Misaligned {
            block_bytes: s.block_bytes,
            shift_bytes: s.shift_bytes,
            ratio: s.mb_per_s / aligned,
        })
    };
    shifted.filter_map(point).collect()
}

fn recovery(id: u32, run: &JobRun, windows: Vec<f64>, all: &[Speed]) -> Option<Recovery> {
    let window = run.window?;
    let median_mb_per_s = median(&windows)?;
    let steady_mb_per_s = steady(all, run.baseline, run.block);
    Some(Recovery {
        run: id,
        line: run.line.clone(),
        block_bytes: run.block,
        burst: run.burst.map_or_else(|| "nothing".to_string(), |burst| burst.to_string()),
        burst_s: run.burst.and_then(|burst| burst.time()).map(Nanos::as_secs_f64),
        window_s: window.as_secs_f64(),
        median_mb_per_s,
        steady_mb_per_s,
        median_over_steady: steady_mb_per_s.map(|s| median_mb_per_s / s),
        recovery_s: recovery_s(&windows, window, RECOVERED * median_mb_per_s),
        recovery_to_steady_s: steady_mb_per_s.and_then(|s| recovery_s(&windows, window, RECOVERED * s)),
        windows_mb_per_s: windows,
    })
}

/// Whole passes over the target, with those after a burst against the others.
fn rewrites(rows: &[(&JobRun, &RunRow)]) -> Vec<Rewrite> {
    let whole = |run: &JobRun| {
        run.role == Role::Measured && run.baseline == Baseline::Sw && run.extent == RunExtent::Whole
    };
    let complete = |row: &RunRow| row.outcome.end.ios >= row.spec.io_count;
    let mut all: Vec<Rewrite> = rows
        .iter()
        .filter(|(run, row)| whole(run) && complete(row))
        .map(|(run, row)| Rewrite {
            run: row.spec.id,
            block_bytes: run.block,
            burst: run.burst.map(|burst| burst.to_string()),
            burst_s: run.burst.and_then(|burst| burst.time()).map(Nanos::as_secs_f64),
            repeat: run.repeat,
            minutes: row.outcome.end.elapsed.as_secs_f64() / 60.0,
            over_normal: None,
        })
        .collect();
    let plain = all.clone();
    for rewrite in &mut all {
        let same = |r: &&Rewrite| r.burst.is_none() && r.block_bytes == rewrite.block_bytes;
        let normal: Vec<f64> = plain.iter().filter(same).map(|r| r.minutes).collect();
        let mean = normal.iter().sum::<f64>() / normal.len().max(1) as f64;
        rewrite.over_normal = (mean > 0.0).then(|| rewrite.minutes / mean);
    }
    all
}

/// The least-squares slope of y over x.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (points.len() >= 2 && sxx > 0.0).then(|| sxy / sxx)
}

fn drift(rows: &[(&JobRun, &RunRow)], speeds: &[Speed]) -> Vec<JobDrift> {
    let aged: Vec<&Speed> = speeds.iter().filter(|s| s.round.is_some()).collect();
    let key = |s: &Speed| (s.line.clone(), s.baseline, s.block_bytes, s.shift_bytes);
    let mut keys: Vec<_> = aged.iter().map(|s| key(s)).collect();
    keys.sort_unstable();
    keys.dedup();
    let one = |of: (String, Baseline, Bytes, Bytes)| {
        let age = |s: &Speed| {
            let its = |(run, _): &&(&JobRun, &RunRow)| run.line == s.line && run.round == s.round;
            rows.iter().find(its).and_then(|(run, _)| run.passes).unwrap_or(0)
        };
        let points: Vec<(f64, f64)> =
            aged.iter().filter(|s| key(s) == of).map(|s| (age(s) as f64, s.mb_per_s)).collect();
        let (first, last) = (points.first()?, points.last()?);
        let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
        let (_, baseline, block_bytes, shift_bytes) = of;
        Some(JobDrift {
            baseline,
            block_bytes,
            shift_bytes,
            passes: (first.0 as u64, last.0 as u64),
            last_over_first: last.1 / first.1,
            percent_per_1000_passes: slope(&points).map(|s| s / mean * 1e5),
            points: points.iter().map(|(age, mb)| (*age as u64, *mb)).collect(),
        })
    };
    keys.into_iter().filter_map(one).collect()
}

/// What the runs in a store came to; `planned` says what they stand for.
///
/// # Errors
/// [`StoreError`] where records cannot be read.
pub fn report(contents: &StoreContents, planned: &JobPlan) -> Result<JobReport, StoreError> {
    let runs: HashMap<u32, &JobRun> = planned.runs().collect();
    let mut rows: Vec<(&JobRun, &RunRow)> =
        contents.runs.iter().filter_map(|row| Some((*runs.get(&row.spec.id)?, row))).collect();
    rows.sort_by_key(|(_, row)| row.spec.id);
    let speeds = speeds(&rows);
    let fresh: Vec<Speed> = speeds.iter().filter(|s| s.round.is_none()).cloned().collect();
    let cell = |place: usize| {
        let (baseline, block) = (Baseline::ALL[place % 4], [512, 2 << 20][place / 4]);
        steady(&fresh, baseline, Bytes(block))
    };
    let mut out = JobReport {
        format: FORMAT,
        derived_from: contents.derivation(),
        table31_mb_per_s: std::array::from_fn(cell),
        misaligned: misaligned(&fresh),
        drift: drift(&rows, &speeds),
        rewrite: rewrites(&rows),
        ..JobReport::default()
    };
    for (run, row) in rows.iter().filter(|(run, _)| run.role == Role::Measured && run.sync.is_none()) {
        let counted = run.window.is_none() && run.extent == RunExtent::Count;
        let series = counted && row.outcome.end.ios >= SPIKE_IOS as u64;
        if run.window.is_none() && !(series && run.baseline.mode() == uflip_measure::PatternMode::Write) {
            continue;
        }
        let path = contents.dir.join(&row.records.file);
        if let Some(window) = run.window {
            let mut windows = Windows::new(window, row.outcome.end.elapsed);
            read_row_groups(&path, |_, records| {
                windows.push(records);
                Ok(())
            })?;
            out.recovery.extend(recovery(row.spec.id, run, windows.finish(), &fresh));
        } else {
            long_series(&mut out, run, row, &path)?;
        }
    }
    out.merge = merge_report(contents, planned.runs().find_map(|(_, run)| run.logical_block))?;
    out.speeds = speeds;
    Ok(out)
}

/// [`report`] of a store; None where its runs are of no job.
///
/// # Errors
/// As [`report`].
pub fn of_store(contents: &StoreContents) -> Result<Option<JobReport>, StoreError> {
    job_of(contents).map(|planned| report(contents, &planned)).transpose()
}

/// Writes `job.json` into the store's folder.
///
/// # Errors
/// [`StoreError`] where it cannot be written.
pub fn write(dir: &std::path::Path, report: &JobReport) -> Result<(), StoreError> {
    uflip_store::files::write_json(&dir.join(FILE), report)
}

/// Adds a long series of writes and what spikes it has.
fn long_series(
    out: &mut JobReport,
    run: &JobRun,
    row: &RunRow,
    path: &std::path::Path,
) -> Result<(), StoreError> {
    let (id, ios) = (row.spec.id, row.outcome.end.ios);
    let (batch_ios, batch_s, found) = if ios <= EXACT_IOS as u64 {
        let ns: Vec<u64> = read_records(path)?.iter().map(|r| r.response().0).collect();
        let (batch_ios, batch_s) = batches(&ns);
        (batch_ios, batch_s, spikes(&ns))
    } else {
        long::series(ios, &|take| read_row_groups(path, |_, records| take(records)))?
    };
    let line = run.line.clone();
    out.spikes.extend(found.map(|spikes| SeriesSpikes { run: id, line: line.clone(), spikes }));
    out.series.push(BatchSeries {
        run: id,
        line,
        section: run.section(),
        baseline: Some(run.baseline),
        block_bytes: run.block,
        repeat: run.repeat,
        batch_ios,
        batch_s,
    });
    Ok(())
}

#[cfg(test)]
#[path = "job_report_tests.rs"]
mod tests;
