//! Whether a store has all that was to be measured, and what is missing.
//!
//! What counts as complete:
//! * with fixed lengths: every run of the plan is kept;
//! * by the automatic method: its calibration came to a plan, every run of the
//!   plan is kept, and so is the closing probe of the state, where there was an
//!   opening one. What it left out for want of time is not in the plan
//!   (`skipped`), so it is not missing. `uflip calibrate` alone is incomplete:
//!   nothing of its plan was measured;
//! * a job: every run, those apart that its self-scaling rule leaves out, by the
//!   throughputs kept (`job::drive`);
//! * the search for the logical block: every run of the sizes up to the one at
//!   which both rules had their answer;
//! * a program: every step on every device.
//!
//! A run that is damaged is missing. Runs cut short by a time limit are kept.

use crate::contents::StoreContents;
use crate::job::job_of;
use crate::manifest::Asked;
use std::collections::{BTreeMap, HashSet};
use uflip_device::identity::word;
use uflip_measure::auto::findings::Calibration;
use uflip_measure::job::{self, JobPlan, drive};
use uflip_measure::logical_block::{self, Mean};
use uflip_measure::run::{Belongs, RunSpec};
use uflip_measure::{Plan, Step};

/// What there is of what was to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// Runs that were to be measured, as far as planned.
    pub planned: usize,
    /// Those of them that are kept.
    pub kept: usize,
    /// Those that are not.
    pub missing: Vec<u32>,
    /// In a sentence what is missing; None where nothing is, or where the plan
    /// cannot be read, so that nobody can tell.
    pub statement: Option<String>,
}

/// What `contents` has of what was to be measured.
pub fn completeness(contents: &StoreContents) -> Completeness {
    let Some(plan) = &contents.plan else {
        return Completeness { kept: contents.runs.len(), ..Completeness::default() };
    };
    let kept: HashSet<u32> = contents.runs.iter().map(|row| row.spec.id).collect();
    let wanted: Vec<u32> = match job_of(contents) {
        Some(planned) if is_search(contents) => sizes_wanted(contents, &planned, &kept),
        Some(planned) => job_wanted(contents, &planned, &kept),
        None => plan.runs().map(|run| run.id).collect(),
    };
    let missing: Vec<u32> = wanted.iter().copied().filter(|id| !kept.contains(id)).collect();
    let found =
        Completeness { planned: wanted.len(), kept: wanted.len() - missing.len(), missing, statement: None };
    let statement = statement(contents, plan, &found, &kept);
    Completeness { statement, ..found }
}

fn statement(
    contents: &StoreContents,
    plan: &Plan,
    found: &Completeness,
    kept: &HashSet<u32>,
) -> Option<String> {
    let (planned, n) = (found.planned, found.kept);
    if let Some(program) = program_of(contents) {
        let text = format!(
            "Incomplete: {n} of {planned} runs of the program {program} are kept: it was cut off, and a program is \
             not gone on with; begin it anew with another -o"
        );
        return (!found.missing.is_empty()).then_some(text);
    }
    let go_on = go_on(contents);
    let auto = contents.manifest.options.asked.auto().is_some();
    let calibrated = contents.calibration.as_ref().is_some_and(|found| found.plan.is_some());
    // A calibration that cannot be read says nothing of how far it came.
    let known = auto && !contents.damage.iter().any(|damage| damage.is_of_calibration());
    let calibration = |run: &&RunSpec| matches!(run.belongs, Belongs::Calibration(_));
    let measured = contents.runs.iter().filter(|row| !calibration(&&row.spec)).count();
    if known && contents.calibration.is_none() && measured > 0 {
        return Some(format!(
            "Incomplete: calibration.json is missing, though {measured} runs of the plan that it led to are kept; put \
             it back from a copy, or find it again with: {go_on}"
        ));
    }
    if known && !calibrated {
        return Some(format!(
            "Incomplete: the calibration was not brought to its end ({n} runs are kept), nothing else was measured; \
             go on with: {go_on}"
        ));
    }
    let main = || plan.runs().filter(|run| !calibration(run));
    if auto && !found.missing.is_empty() && main().all(|run| !kept.contains(&run.id)) {
        return Some(format!(
            "Incomplete: calibrated only: none of the {} runs of the plan is kept; measure by it: {go_on}",
            main().count()
        ));
    }
    if !found.missing.is_empty() {
        return Some(format!(
            "Incomplete: {n} of {planned} planned runs are kept, {} are missing; go on with: {go_on}",
            found.missing.len()
        ));
    }
    let probed = |found: &Calibration| !found.state.runs.is_empty() && found.drift.is_none();
    (known && contents.calibration.as_ref().is_some_and(probed)).then(|| {
        format!(
            "Incomplete: all {planned} planned runs are kept, but not the probe of the state after them; \
             go on with: {go_on}"
        )
    })
}

/// The runs of a job that are not left out by its rule. A segment of which any
/// run is kept was not left out.
fn job_wanted(contents: &StoreContents, planned: &JobPlan, kept: &HashSet<u32>) -> Vec<u32> {
    let throughputs = contents.runs.iter().filter_map(|row| {
        let bytes = drive::bytes_of(&row.spec, row.outcome.end.ios);
        drive::throughput(bytes, &row.outcome.end).map(|t| (row.spec.id, t))
    });
    let throughputs: job::Throughputs = throughputs.collect();
    let wanted = |segment: &&job::expand::Segment| {
        let any = || runs_of(planned, segment).any(|id| kept.contains(&id));
        drive::wanted(planned, segment, &throughputs) || any()
    };
    planned.segments.iter().filter(wanted).flat_map(|segment| runs_of(planned, segment)).collect()
}

/// The runs of the search for the logical block up to its answer.
fn sizes_wanted(contents: &StoreContents, planned: &JobPlan, kept: &HashSet<u32>) -> Vec<u32> {
    let means: BTreeMap<u32, Mean> =
        contents.runs.iter().filter_map(|row| Some((row.spec.id, Mean::of(&row.stats.all)?))).collect();
    let is_settled = |line| logical_block::is_settled(&logical_block::evaluate(planned, &means, line));
    let lines = logical_block::lines(planned).into_iter();
    let settled: HashSet<usize> = lines.filter(|line| is_settled(*line)).collect();
    let any = |segment: &job::expand::Segment| runs_of(planned, segment).any(|id| kept.contains(&id));
    let last = |line: usize| planned.segments.iter().rposition(|s| s.line_number == line && any(s));
    let segments = planned.segments.iter().enumerate();
    let wanted = segments.filter(|(at, s)| {
        !settled.contains(&s.line_number) || last(s.line_number).is_some_and(|last| *at <= last)
    });
    wanted.flat_map(|(_, segment)| runs_of(planned, segment)).collect()
}

fn runs_of<'a>(planned: &'a JobPlan, segment: &job::expand::Segment) -> impl Iterator<Item = u32> + 'a {
    let steps = planned.plan.steps[segment.steps.clone()].iter();
    steps.filter_map(|step| if let Step::Run(run) = step { Some(run.id) } else { None })
}

fn is_search(contents: &StoreContents) -> bool {
    matches!(contents.manifest.options.asked, Asked::LogicalBlock(_))
}

/// The program of a folder that is a program's: its name, which is that of its
/// command.
pub fn program_of(contents: &StoreContents) -> Option<&str> {
    match &contents.manifest.options.asked {
        Asked::Program { name, .. } => Some(name),
        _ => None,
    }
}

/// The command that goes on with what `contents` has.
pub fn go_on(contents: &StoreContents) -> String {
    let (dir, options) = (word(&contents.dir.to_string_lossy()), &contents.manifest.options);
    match &options.asked {
        Asked::Run { .. } => format!("uflip run -o {dir} --resume"),
        job => format!("uflip {} {} -o {dir} --resume", job.command(), word(&options.target)),
    }
}
