//! Whether a plan can be executed on a target: the one place that decides it,
//! for plans from anywhere (a file that somebody edited, a stored plan that is
//! gone on with).
//!
//! How: the plan is for exactly the target's geometry; each reset, pause and run
//! is held against it and against what can be recorded; numbers are unique. What
//! passes stays on the target whatever stands in it, and can be counted without
//! an overflow. A run is what its place says (`place.rs`), as its figures are shown
//! under that. Runs that were kept must be the plan's own.
//!
//! Limits: [`MAX_STEPS`], [`MAX_RUNS`], [`MAX_IOS`], [`MAX_TIME`], [`MAX_TEXT`].

use super::place::{IoSizes, misplaced};
use super::{FORMAT, OLDEST_FORMAT, Plan, Step};
use crate::run::{Belongs, CurveName, RunSpec};
use crate::state::State;
use std::collections::HashMap;
use std::fmt;
use uflip_device::{Geometry, Nanos};

/// Runs of a plan at most: what fits in memory with all that is made of them.
pub const MAX_RUNS: usize = crate::job::expand::MAX_RUNS;
/// Steps of a plan at most: each run with its pause, and resets.
pub const MAX_STEPS: usize = 3 * MAX_RUNS;
/// IOs of all streams of a run at most.
pub const MAX_IOS: u64 = 1 << 48;
/// The longest pause and time limit: what a record can tell, 52 days.
pub const MAX_TIME: Nanos = Nanos((1 << 52) - 1);
/// Bytes of a name in a run at most.
pub const MAX_TEXT: usize = 4096;

/// What is wrong with a plan, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFault {
    /// The step, from 1; None where the whole plan is meant.
    pub step: Option<usize>,
    /// The number of its run.
    pub run: Option<u32>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub instead: String,
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.step, self.run) {
            (Some(step), Some(run)) => write!(f, "step {step} (run {run}): ")?,
            (Some(step), None) => write!(f, "step {step}: ")?,
            _ => {}
        }
        write!(f, "{}; {}", self.what, self.instead)
    }
}

impl std::error::Error for PlanFault {}

/// Something wrong and what to do; the place is added by [`check`].
type Wrong = (String, String);

fn wrong(what: impl Into<String>, instead: impl Into<String>) -> Result<(), Wrong> {
    Err((what.into(), instead.into()))
}

/// Whether `plan` can be executed on a target of this geometry.
///
/// # Errors
/// [`PlanFault`] with the first step that cannot.
pub fn check(plan: &Plan, geometry: Geometry) -> Result<(), PlanFault> {
    let whole = |(what, instead)| PlanFault { step: None, run: None, what, instead };
    head(plan, geometry).map_err(whole)?;
    let (mut ids, mut sizes) = (HashMap::new(), IoSizes::new());
    for (at, step) in plan.steps.iter().enumerate() {
        let run = if let Step::Run(run) = step { Some(run.id) } else { None };
        let here = |(what, instead)| PlanFault { step: Some(at + 1), run, what, instead };
        match step {
            Step::Reset { state } => reset(*state, geometry),
            Step::Pause { nanos } => time("a pause", *nanos),
            Step::Run(spec) => match ids.insert(spec.id, at + 1) {
                Some(before) => {
                    wrong(format!("step {before} has the same run number"), "number the runs apart")
                }
                None => one_run(spec, geometry).and_then(|()| in_place(spec, plan, &mut sizes)),
            },
        }
        .map_err(here)?;
    }
    Ok(())
}

fn head(plan: &Plan, geometry: Geometry) -> Result<(), Wrong> {
    if !(OLDEST_FORMAT..=FORMAT).contains(&plan.format) {
        return wrong(
            format!(
                "it is a plan of format {}, and this uflip reads formats {OLDEST_FORMAT} to {FORMAT}",
                plan.format
            ),
            "use the version that made it",
        );
    }
    if plan.tool_version.is_empty() || plan.tool_version.len() > 64 {
        return wrong("tool_version is no version", "take a plan that uflip plan --json printed");
    }
    if plan.geometry != geometry {
        let (was, is) = (plan.geometry, geometry);
        return wrong(
            format!(
                "it is for a target of {} in sectors of {}, and this one has {} in sectors of {}",
                was.capacity.exact(),
                was.sector.exact(),
                is.capacity.exact(),
                is.sector.exact()
            ),
            "make one for this target with uflip plan TARGET --json",
        );
    }
    if plan.steps.len() > MAX_STEPS {
        return wrong(
            format!("it has {} steps", plan.steps.len()),
            format!("leave at most {MAX_STEPS}, in several plans if need be"),
        );
    }
    let runs = plan.runs().count();
    if runs > MAX_RUNS {
        return wrong(
            format!("it has {runs} runs"),
            format!("leave at most {MAX_RUNS}, in several plans if need be"),
        );
    }
    Ok(())
}

fn reset(state: State, geometry: Geometry) -> Result<(), Wrong> {
    let State::Sequential { io_size } = state else { return Ok(()) };
    let sector = geometry.sector;
    if io_size.0 >= sector.0 && (sector.0 == 0 || io_size.0.is_multiple_of(sector.0)) {
        return Ok(());
    }
    wrong(
        format!(
            "the sequential state's IOs of {} are not whole sectors of {}",
            io_size.exact(),
            sector.exact()
        ),
        "type a multiple of the sector, such as sequential:1M",
    )
}

fn time(what: &str, time: Nanos) -> Result<(), Wrong> {
    if time <= MAX_TIME {
        return Ok(());
    }
    wrong(format!("{what} of {} ns is longer than 52 days", time.0), "type a shorter one")
}

fn in_place(run: &RunSpec, plan: &Plan, sizes: &mut IoSizes) -> Result<(), Wrong> {
    let instead = "make its baseline, its point and its pattern say the same";
    misplaced(run, plan.io_size, sizes).map_or(Ok(()), |what| wrong(what, instead))
}

fn one_run(run: &RunSpec, geometry: Geometry) -> Result<(), Wrong> {
    if run.id as usize >= MAX_RUNS {
        return wrong("the run's number is too large", format!("number runs from 0 to {}", MAX_RUNS - 1));
    }
    if run.io_count == 0 {
        return wrong("io_count is 0", "type a number from 1");
    }
    if run.io_ignore >= run.io_count {
        return wrong(
            format!("io_count {} leaves nothing after io_ignore {}", run.io_count, run.io_ignore),
            "type a larger io_count or a smaller io_ignore",
        );
    }
    let Some(pattern) = run.pattern() else {
        return wrong(
            format!("it runs {}, and a plan executes patterns only", run.work),
            "leave the step out",
        );
    };
    let streams = pattern.stream_count() as u64;
    if run.io_count.checked_mul(streams).is_none_or(|ios| ios > MAX_IOS) {
        return wrong(
            format!("{} IOs in each of {streams} streams are more than can be counted", run.io_count),
            format!("type an io_count of at most {}", MAX_IOS / streams.max(1)),
        );
    }
    if pattern.basics().iter().any(|basic| basic.target_size.is_none()) {
        return wrong(
            "the pattern's target_size is open",
            "type one, such as target_size=1G; a plan says where each run goes",
        );
    }
    // With a limit, what is due later is not begun.
    let instants = run.time_limit.map_or_else(|| pattern.check_instants(run.io_count), |_| Ok(()));
    if let Err(error) = pattern.check(geometry).and(instants) {
        let text = error.to_string();
        // The pattern's own words say what to type.
        let (what, instead) = text.rsplit_once("; ").unwrap_or((&text, "mend the pattern"));
        return wrong(what, instead);
    }
    for basic in pattern.basics() {
        time("the pattern's pause", basic.timing.pause())?;
    }
    match run.time_limit {
        Some(Nanos::ZERO) => return wrong("time_limit is 0", "type a longer one or null"),
        limit => time("time_limit", limit.unwrap_or_default())?,
    }
    if names(&run.belongs).iter().any(|text| text.len() > MAX_TEXT) {
        return wrong("a name is too long", format!("type at most {MAX_TEXT} bytes"));
    }
    Ok(())
}

/// The names that somebody else may have chosen.
fn names(belongs: &Belongs) -> Vec<&str> {
    match belongs {
        Belongs::Named(named) => {
            let curve = if let CurveName::Named(name) = &named.curve { name } else { "" };
            vec![&named.name, curve, &named.parameter, &named.label]
        }
        Belongs::Job(run) => vec![&run.line],
        Belongs::Program(step) => vec![&step.program, &step.step, &step.device],
        Belongs::Point(_) | Belongs::Baseline { .. } | Belongs::Calibration(_) | Belongs::Single => {
            Vec::new()
        }
    }
}

/// Whether the runs that are kept are those of the plan.
///
/// # Errors
/// [`PlanFault`] with the first run that is not.
pub fn check_kept<'a>(plan: &Plan, kept: impl Iterator<Item = &'a RunSpec>) -> Result<(), PlanFault> {
    let steps = plan.steps.iter().enumerate();
    let runs =
        steps.filter_map(|(at, step)| if let Step::Run(run) = step { Some((at + 1, run)) } else { None });
    let planned: HashMap<u32, (usize, &RunSpec)> = runs.map(|(at, run)| (run.id, (at, run))).collect();
    let instead = "put the plan back as it was, or start a new measurement with another -o";
    for run in kept {
        let (step, what) = match planned.get(&run.id) {
            Some((_, planned)) if *planned == run => continue,
            Some((step, planned)) => (Some(*step), difference(planned, run)),
            None => (None, format!("run {} is kept, and the plan has none of that number", run.id)),
        };
        return Err(PlanFault { step, run: Some(run.id), what, instead: instead.into() });
    }
    Ok(())
}

fn difference(planned: &RunSpec, kept: &RunSpec) -> String {
    let told = |name: &str, is: String, was: String| {
        (is != was).then(|| format!("it was measured with {name} {was}, and the plan says {is}"))
    };
    let limit = |spec: &RunSpec| spec.time_limit.map_or("none".to_string(), |t| t.to_string());
    told("the pattern", planned.work.to_string(), kept.work.to_string())
        .or_else(|| told("io_count", planned.io_count.to_string(), kept.io_count.to_string()))
        .or_else(|| told("io_ignore", planned.io_ignore.to_string(), kept.io_ignore.to_string()))
        .or_else(|| told("seed", planned.seed.to_string(), kept.seed.to_string()))
        .or_else(|| told("time_limit", limit(planned), limit(kept)))
        .unwrap_or_else(|| "it was measured under another name, repeat or purpose".to_string())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
