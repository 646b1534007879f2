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

use crate::contents::{RunRow, StoreContents};
use crate::error::StoreError;
use crate::records::read_records;
use serde::Serialize;
use uflip_device::{Bytes, IoRecord, Nanos};
use uflip_measure::job::{Job, JobPlan, JobRun, Role};

/// Recovered at this share of the median.
pub const RECOVERED: f64 = 0.6;
/// The least ratio between a spike and what is none.
pub const SPIKE_GAP: f64 = 3.0;
/// Series shorter than this are not searched for spikes.
const SPIKE_IOS: usize = 200;

/// Everything a job's runs came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobReport {
    /// Speeds, in order of the runs.
    pub speeds: Vec<Speed>,
    /// Table 3.1's row in MB/s: SR, RR, SW, RW at 512 bytes, then at 2 MB.
    pub table31_mb_per_s: [Option<f64>; 8],
    /// Shifted against aligned random writes.
    pub misaligned: Vec<Misaligned>,
    /// After bursts.
    pub recovery: Vec<Recovery>,
    /// In long series.
    pub spikes: Vec<SeriesSpikes>,
    /// Over endurance rounds.
    pub drift: Vec<Drift>,
}

/// The speed of one pattern at one block size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speed {
    /// The job's line.
    pub line: String,
    /// The endurance round it follows.
    pub round: Option<u32>,
    /// `SR`, …
    pub baseline: String,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Misaligned {
    /// IOSize.
    pub block_bytes: Bytes,
    /// IOShift.
    pub shift_bytes: Bytes,
    /// Speed of shifted over that of aligned random writes.
    pub ratio: f64,
}

/// Figures 3.3 and C.1 to C.4: sequential writes after a burst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// The run.
    pub run: u32,
    /// IOSize.
    pub block_bytes: Bytes,
    /// What came before.
    pub burst: String,
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

/// Spikes in a series of response times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spikes {
    /// How many.
    pub count: usize,
    /// The first one's place, from 0.
    pub first_io: usize,
    /// Median distance in IOs; `None` for a single spike.
    pub period_ios: Option<usize>,
    /// Median height: the sum of the IOs in a row, in ns.
    pub height_ns: u64,
    /// The IOs between two spikes in ns, by median IO and period.
    pub between_ns: Option<u64>,
}

/// Figure 3.4b: speed over age.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// `SR`, …
    pub baseline: String,
    /// IOSize.
    pub block_bytes: Bytes,
    /// Whole-device writes before the first and the last round measured.
    pub passes: (u64, u64),
    /// Speed in the last round over that in the first.
    pub last_over_first: f64,
    /// Slope of the least-squares line in percent of the mean for 1,000 passes.
    pub percent_per_1000_passes: Option<f64>,
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// MB/s in each whole window of a run that took `elapsed`.
pub fn windows(records: &[IoRecord], window: Nanos, elapsed: Nanos) -> Vec<f64> {
    let width = window.0.max(1);
    let n = usize::try_from(elapsed.0 / width).unwrap_or(usize::MAX).min(1 << 20);
    let mut bytes = vec![0.0; n];
    for record in records {
        let (start, end) = (record.submit().0, record.submit().0 + record.response().0.max(1));
        let density = f64::from(record.size()) / (end - start) as f64;
        let mut at = start;
        while at < end {
            let place = (at / width) as usize;
            let Some(cell) = bytes.get_mut(place) else { break };
            let next = end.min((place as u64 + 1) * width);
            *cell += density * (next - at) as f64;
            at = next;
        }
    }
    bytes.iter().map(|b| b / width as f64 * 1e3).collect()
}

/// Time until `windows` reach `speed`; `None` where never.
pub fn recovery_s(windows: &[f64], window: Nanos, speed: f64) -> Option<f64> {
    let first = windows.iter().position(|w| *w >= speed)?;
    Some(first as f64 * window.as_secs_f64())
}

/// The spikes of a series of response times in ns; `None` where there are none.
pub fn spikes(responses_ns: &[u64]) -> Option<Spikes> {
    if responses_ns.len() < SPIKE_IOS {
        return None;
    }
    let mut sorted = responses_ns.to_vec();
    sorted.sort_unstable();
    let upper = &sorted[sorted.len() / 2..];
    let gap = |w: &[u64]| w[1] as f64 / w[0].max(1) as f64;
    let widest = upper.windows(2).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    if gap(widest) < SPIKE_GAP {
        return None;
    }
    let threshold = widest[1];
    let (mut starts, mut heights, mut last) = (Vec::new(), Vec::new(), None);
    for (at, ns) in responses_ns.iter().enumerate().filter(|(_, ns)| **ns >= threshold) {
        match heights.last_mut() {
            Some(height) if last.is_some_and(|last| last + 1 == at) => *height += *ns,
            _ => {
                starts.push(at);
                heights.push(*ns);
            }
        }
        last = Some(at);
    }
    let mut gaps: Vec<usize> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    heights.sort_unstable();
    let period_ios = gaps.get(gaps.len() / 2).copied();
    Some(Spikes {
        count: starts.len(),
        first_io: *starts.first()?,
        period_ios,
        height_ns: heights[heights.len() / 2],
        between_ns: period_ios.map(|p| sorted[sorted.len() / 2].saturating_mul(p as u64)),
    })
}

fn speed_of(row: &RunRow) -> Option<f64> {
    let bytes = uflip_measure::job::drive::bytes_of(&row.spec, row.outcome.end.ios);
    uflip_measure::job::drive::throughput(bytes, &row.outcome.end).map(|t| t / 1e6)
}

fn speeds(job: &Job, rows: &[(&JobRun, &RunRow)]) -> Vec<Speed> {
    let mut all: Vec<Speed> = Vec::new();
    for (run, row) in rows.iter().filter(|(run, _)| run.role == Role::Measured && run.burst.is_none()) {
        let Some(mb) = speed_of(row) else { continue };
        let (line, baseline) = (job.lines[run.line].name.clone(), run.baseline.to_string());
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
            speed.runs.push(run.id);
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
                runs: vec![run.id],
            });
        }
    }
    all
}

/// The aligned speed of a pattern, from the first line that has it.
fn steady(speeds: &[Speed], baseline: &str, block: Bytes) -> Option<f64> {
    let of = |s: &&Speed| s.baseline == baseline && s.block_bytes == block && s.shift_bytes == Bytes(0);
    speeds.iter().find(of).map(|s| s.mb_per_s)
}

fn misaligned(speeds: &[Speed]) -> Vec<Misaligned> {
    let shifted = speeds.iter().filter(|s| s.shift_bytes > Bytes(0) && s.baseline == "RW");
    let point = |s: &Speed| {
        let same_line = speeds.iter().find(|o| {
            o.line == s.line
                && o.baseline == "RW"
                && o.block_bytes == s.block_bytes
                && o.shift_bytes == Bytes(0)
        });
        let aligned = same_line.map(|o| o.mb_per_s).or_else(|| steady(speeds, "RW", s.block_bytes))?;
        Some(Misaligned {
            block_bytes: s.block_bytes,
            shift_bytes: s.shift_bytes,
            ratio: s.mb_per_s / aligned,
        })
    };
    shifted.filter_map(point).collect()
}

fn recovery(
    window: Nanos,
    run: &JobRun,
    row: &RunRow,
    records: &[IoRecord],
    all: &[Speed],
) -> Option<Recovery> {
    let windows = windows(records, window, row.outcome.end.elapsed);
    let median_mb_per_s = median(&windows)?;
    let steady_mb_per_s = steady(all, &run.baseline.to_string(), run.block);
    Some(Recovery {
        run: run.id,
        block_bytes: run.block,
        burst: run.burst.clone().unwrap_or_else(|| "nothing".to_string()),
        window_s: window.as_secs_f64(),
        median_mb_per_s,
        steady_mb_per_s,
        median_over_steady: steady_mb_per_s.map(|s| median_mb_per_s / s),
        recovery_s: recovery_s(&windows, window, RECOVERED * median_mb_per_s),
        recovery_to_steady_s: steady_mb_per_s.and_then(|s| recovery_s(&windows, window, RECOVERED * s)),
        windows_mb_per_s: windows,
    })
}

/// The least-squares slope of y over x.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (points.len() >= 2 && sxx > 0.0).then(|| sxy / sxx)
}

fn drift(job: &Job, speeds: &[Speed]) -> Vec<Drift> {
    let passes = job.lines.iter().find_map(|l| l.endurance.as_ref()).map_or(0, |e| e.passes);
    let aged: Vec<&Speed> = speeds.iter().filter(|s| s.round.is_some()).collect();
    let mut keys: Vec<(&str, Bytes)> = aged.iter().map(|s| (s.baseline.as_str(), s.block_bytes)).collect();
    keys.sort_unstable();
    keys.dedup();
    let one = |(baseline, block): (&str, Bytes)| {
        let of = |s: &&&Speed| s.baseline == baseline && s.block_bytes == block;
        let age = |s: &Speed| u64::from(s.round.unwrap_or(0)).saturating_add(1).saturating_mul(passes);
        let points: Vec<(f64, f64)> = aged.iter().filter(of).map(|s| (age(s) as f64, s.mb_per_s)).collect();
        let (first, last) = (points.first()?, points.last()?);
        let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
        Some(Drift {
            baseline: baseline.to_string(),
            block_bytes: block,
            passes: (first.0 as u64, last.0 as u64),
            last_over_first: last.1 / first.1,
            percent_per_1000_passes: slope(&points).map(|s| s / mean * 1e5),
        })
    };
    keys.into_iter().filter_map(one).collect()
}

/// What the runs in a store came to; `planned` is the plan that its job gives.
///
/// # Errors
/// [`StoreError`] where records cannot be read.
pub fn report(contents: &StoreContents, job: &Job, planned: &JobPlan) -> Result<JobReport, StoreError> {
    let mut rows: Vec<(&JobRun, &RunRow)> = contents
        .runs
        .iter()
        .filter_map(|row| planned.runs.get(row.spec.id as usize).map(|run| (run, row)))
        .collect();
    rows.sort_by_key(|(run, _)| run.id);
    let speeds = speeds(job, &rows);
    let fresh: Vec<Speed> = speeds.iter().filter(|s| s.round.is_none()).cloned().collect();
    let cell = |place: usize| {
        let (baseline, block) = (["SR", "RR", "SW", "RW"][place % 4], [512, 2 << 20][place / 4]);
        steady(&fresh, baseline, Bytes(block))
    };
    let mut out = JobReport {
        table31_mb_per_s: std::array::from_fn(cell),
        misaligned: misaligned(&fresh),
        drift: drift(job, &speeds),
        ..JobReport::default()
    };
    for (run, row) in rows.iter().filter(|(run, _)| run.role == Role::Measured) {
        let line = &job.lines[run.line];
        let series = line.window.is_none() && line.count.is_some() && row.outcome.end.ios >= SPIKE_IOS as u64;
        if line.window.is_none() && !series {
            continue;
        }
        let records = read_records(&contents.dir.join(&row.records.file))?;
        if let Some(window) = line.window {
            out.recovery.extend(recovery(window, run, row, &records, &fresh));
        } else if run.baseline.mode() == uflip_measure::Mode::Write {
            let ns: Vec<u64> = records.iter().map(|r| r.response().0).collect();
            let found = spikes(&ns);
            out.spikes.extend(found.map(|spikes| SeriesSpikes {
                run: run.id,
                line: line.name.clone(),
                spikes,
            }));
        }
    }
    out.speeds = speeds;
    Ok(out)
}

impl JobReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        speeds_text(&self.speeds, &mut text);
        if self.table31_mb_per_s.iter().any(Option::is_some) {
            text += "\nTable 3.1's row, MB/s   512 B: SR, RR, SW, RW; 2 MB: SR, RR, SW, RW\n ";
            let cell = |v: &Option<f64>| v.map_or("-".to_string(), |v| format!("{v:.3}"));
            self.table31_mb_per_s.iter().for_each(|v| text += &format!(" {:>9}", cell(v)));
            text.push('\n');
        }
        if !self.misaligned.is_empty() {
            text += "\nMisaligned against aligned random writes\n";
        }
        for m in &self.misaligned {
            text += &format!("  {:>6} shifted by {:>5}: {:.2}\n", m.block_bytes, m.shift_bytes, m.ratio);
        }
        if !self.recovery.is_empty() {
            text += "\nSequential writes after a burst: MB/s in each window, time to 60 % of their median\n";
        }
        self.recovery.iter().for_each(|r| text += &recovery_text(r));
        for s in &self.spikes {
            let p = s.spikes.period_ios.map_or("no period".to_string(), |p| format!("every {p} IOs"));
            text += &format!(
                "\nSpikes in run {} ({}): {}, the first at IO {}, {p}, of {}\n",
                s.run,
                s.line,
                s.spikes.count,
                s.spikes.first_io,
                Nanos(s.spikes.height_ns)
            );
        }
        if !self.drift.is_empty() {
            text += "\nDrift over age\n";
        }
        for d in &self.drift {
            text += &format!(
                "  {} {:>6} from {} to {} passes: {:.3} of the first\n",
                d.baseline, d.block_bytes, d.passes.0, d.passes.1, d.last_over_first
            );
        }
        text
    }
}

fn recovery_text(r: &Recovery) -> String {
    let seconds = |s: Option<f64>| s.map_or("never".to_string(), |s| format!("{s} s"));
    let of_steady = r.median_over_steady.map_or(String::new(), |m| format!(", {m:.2} of steady"));
    let shown: Vec<String> = r.windows_mb_per_s.iter().take(30).map(|w| format!("{w:.1}")).collect();
    format!(
        "  {} after {}: median {:.2} MB/s{of_steady}; recovered after {}\n    {}\n",
        r.block_bytes,
        r.burst,
        r.median_mb_per_s,
        seconds(r.recovery_s),
        shown.join(" ")
    )
}

/// A table for each line and round: block sizes down, patterns across.
fn speeds_text(speeds: &[Speed], text: &mut String) {
    let mut seen: Vec<(&str, Option<u32>, Bytes)> = Vec::new();
    for speed in speeds {
        let key = (speed.line.as_str(), speed.round, speed.shift_bytes);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let of: Vec<&Speed> =
            speeds.iter().filter(|s| (s.line.as_str(), s.round, s.shift_bytes) == key).collect();
        let mut sizes: Vec<Bytes> = of.iter().map(|s| s.block_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        *text += &format!("\n{}", speed.line);
        *text += &speed.round.map_or(String::new(), |r| format!(", round {r}"));
        if speed.shift_bytes > Bytes(0) {
            *text += &format!(", shifted by {}", speed.shift_bytes);
        }
        *text += "; MB/s\n  IOSize        SR        RR        SW        RW\n";
        for size in sizes {
            *text += &format!("  {:>6}", size.to_string());
            for baseline in ["SR", "RR", "SW", "RW"] {
                let cell = of.iter().find(|s| s.baseline == baseline && s.block_bytes == size);
                *text += &cell.map_or(format!("{:>10}", "-"), |s| format!("{:>10.3}", s.mb_per_s));
            }
            text.push('\n');
        }
    }
}

#[cfg(test)]
#[path = "job_report_tests.rs"]
mod tests;
