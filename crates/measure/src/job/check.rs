//! What a job's lines cost, before anything is done.
//!
//! How: sums over the plan. A run with a time limit is taken to need all of it,
//! or its IOs at [`Assumed`] speed where that is less; written bytes of such a
//! run are what that speed comes to. Self-scaling's further block sizes are told
//! apart, as they may not be needed. Units: bytes and nanoseconds.
//! Source: paper 004, appendix A (the lines), 000/001, section 4.2 (a plan's time
//! and the flash it costs should be known beforehand).

use super::expand::JobPlan;
use super::{Job, Line, Role};
use crate::pattern::PatternMode;
use crate::plan::Step;
use crate::run::RunSpec;
use serde::Serialize;
use uflip_device::{Bytes, Nanos};

/// How fast a device is taken to be where nothing is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// For each IO.
    pub latency: Nanos,
    /// Bytes a second on top.
    pub bytes_per_s: f64,
}

impl Default for Assumed {
    /// 100 us and 200 MB/s.
    fn default() -> Assumed {
        Assumed { latency: Nanos::from_micros(100), bytes_per_s: 200e6 }
    }
}

/// What a line costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LineCost {
    /// The line's number in the file.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// What it does, in words.
    pub text: String,
    /// Runs of the experiment.
    pub runs: u64,
    /// Runs before these: fills, bursts, passes.
    pub runs_before: u64,
    /// Runs that self-scaling may add.
    pub optional_runs: u64,
    /// Time, without optional runs.
    pub time: Nanos,
    /// Bytes read, without optional runs.
    pub read_bytes: Bytes,
    /// Bytes written, without optional runs.
    pub write_bytes: Bytes,
    /// What the target cannot take.
    pub skipped: Vec<String>,
}

/// What each line of `job` costs. Runs that an endurance line brings about by
/// `then=` count for the line that says what they are.
pub fn costs(job: &Job, planned: &JobPlan, assumed: Assumed) -> Vec<LineCost> {
    let mut costs: Vec<LineCost> = job
        .lines
        .iter()
        .map(|line| LineCost {
            number: line.number,
            name: line.name.clone(),
            text: explain(line),
            skipped: skipped(line, planned),
            ..LineCost::default()
        })
        .collect();
    for segment in &planned.segments {
        let of_line = |cost: &&mut LineCost| cost.number == segment.line_number;
        let Some(cost) = costs.iter_mut().find(of_line) else { continue };
        for step in &planned.plan.steps[segment.steps.clone()] {
            let spec = match step {
                Step::Run(spec) => spec,
                Step::Pause { nanos } => {
                    cost.time.0 = cost.time.0.saturating_add(nanos.0);
                    continue;
                }
                Step::Reset { .. } => continue,
            };
            if segment.if_grown_percent.is_some() {
                cost.optional_runs += 1;
                continue;
            }
            let role = spec.job().map(|run| run.role);
            *(if role == Some(Role::Measured) { &mut cost.runs } else { &mut cost.runs_before }) += 1;
            add(cost, spec, assumed);
        }
    }
    costs
}

fn add(cost: &mut LineCost, spec: &RunSpec, assumed: Assumed) {
    let Some(basic) = spec.work.basics().first().copied() else { return };
    let io_ns = assumed.latency.0 as f64 + basic.io_size.0 as f64 / assumed.bytes_per_s * 1e9;
    let all_ns = io_ns * spec.io_count as f64;
    let limit_ns = spec.time_limit.map_or(f64::INFINITY, |t| t.0 as f64);
    let ns = all_ns.min(limit_ns);
    // The first IO is always done.
    let ios = basic.timing.without_flushes((ns / io_ns).ceil().max(1.0) as u64);
    let bytes = ios as f64 * basic.io_size.0 as f64;
    cost.time.0 = cost.time.0.saturating_add(ns as u64);
    let total = if basic.mode == PatternMode::Write { &mut cost.write_bytes } else { &mut cost.read_bytes };
    total.0 = total.0.saturating_add(bytes as u64);
}

fn skipped(line: &Line, planned: &JobPlan) -> Vec<String> {
    let all = planned.skipped_lines.iter().zip(&planned.plan.skipped);
    let own = all.filter(|(number, _)| **number == line.number);
    own.map(|(_, s)| format!("{} {}: {}", s.baseline, s.label, s.reason)).collect()
}

/// A list as a person says it, with a range's ends.
fn spoken(sizes: &[Bytes]) -> String {
    let doubling = sizes.len() > 2 && sizes.windows(2).all(|w| w[1].0 == w[0].0.saturating_mul(2));
    match (sizes, doubling) {
        ([first, .., last], true) => format!("{} to {}, doubling", first.exact(), last.exact()),
        _ => sizes.iter().map(|s| s.exact()).collect::<Vec<_>>().join(", "),
    }
}

/// A line in words.
pub fn explain(line: &Line) -> String {
    let names: Vec<&str> = line.patterns.iter().map(|b| b.name()).collect();
    if let Some(endurance) = &line.endurance {
        let then = endurance.then.as_ref().map_or(String::new(), |then| format!(", then {then}"));
        return format!(
            "{} rounds of {} sequential writes of the whole target in IOs of {}{then}",
            endurance.rounds,
            endurance.passes,
            spoken(&line.block_sizes)
        );
    }
    let mut text = format!("{} at block sizes {}", names.join(", "), spoken(&line.block_sizes));
    if let Some(percent) = line.until_percent {
        text += &format!(" and on until throughput grows by less than {percent} %");
    }
    if line.shifts != [Bytes(0)] {
        text += &format!(", shifted by {}", spoken(&line.shifts));
    }
    let amount = line.count.map(|n| format!("{n} accesses"));
    let amount = amount.or(line.bytes.map(|amount| match amount {
        super::Amount::Bytes(bytes) => format!("{bytes} of accesses"),
        super::Amount::All => "as much as the target space has".to_string(),
    }));
    let length = match (amount, line.time) {
        (Some(amount), Some(time)) => format!("{amount} or {time}"),
        (Some(amount), None) => amount,
        (None, Some(time)) => time.to_string(),
        (None, None) => "no length".to_string(),
    };
    text += &format!("; {} times {length} each", line.repeats);
    if !line.syncs.is_empty() {
        let all: Vec<String> = line.syncs.iter().map(u32::to_string).collect();
        text += &format!(", flushed after every {} accesses", all.join(", "));
    }
    if let Some(window) = line.window {
        text += &format!(", told in windows of {window}");
    }
    if !line.before.is_empty() {
        let before: Vec<String> = line.before.iter().map(ToString::to_string).collect();
        let each = if line.each == super::Each::Run { "run" } else { "block size" };
        text += &format!("; before each {each}: {}", before.join(", "));
    }
    text
}
