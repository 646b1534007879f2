//! Folders of format 1, read as folders of today.
//!
//! What: in format 1 neither the plan nor the rows say what a job's runs stand
//! for; they have names in words. How: the job's text is in the manifest; it is
//! expanded again, and where that gives the stored plan, run for run, the plan
//! says what its runs stand for from then on. A row that has a name only takes
//! what the plan says of its run, where nothing else of the two differs; the same
//! holds for old rows of a folder that a later version went on with. This is the
//! only place where results are told by the planner of the day.

use crate::contents::RunRow;
use crate::manifest::Manifest;
use std::collections::HashMap;
use uflip_measure::job;
use uflip_measure::run::{Belongs, RunSpec};
use uflip_measure::{Plan, Step};

/// The format that this is about.
pub(crate) const OLD: u32 = 1;

/// What the plan's runs stand for, where it is a job's of format 1; the plan as
/// it is where it is not, or where its job does not give it any more.
pub(crate) fn told(plan: Plan, manifest: &Manifest) -> Plan {
    let job = manifest.options.asked.job();
    let Some(text) = job.filter(|_| plan.format == OLD) else { return plan };
    let expanded =
        job::parse(text).ok().and_then(|job| job::expand(&job, &plan.target, plan.geometry, plan.seed).ok());
    match expanded {
        Some(job) if same_runs(&plan.steps, &job.plan.steps) => {
            Plan { format: job.plan.format, steps: job.plan.steps, ..plan }
        }
        _ => plan,
    }
}

/// Whether two lists of steps differ in nothing but where their runs belong.
fn same_runs(stored: &[Step], expanded: &[Step]) -> bool {
    let same = |(stored, expanded): (&Step, &Step)| match (stored, expanded) {
        (Step::Run(stored), Step::Run(expanded)) => same_but_belongs(stored, expanded),
        (stored, expanded) => stored == expanded,
    };
    stored.len() == expanded.len() && stored.iter().zip(expanded).all(same)
}

fn same_but_belongs(a: &RunSpec, b: &RunSpec) -> bool {
    *a == RunSpec { belongs: a.belongs.clone(), ..b.clone() }
}

/// Gives rows that have a name only what the plan says of their runs.
pub(crate) fn tell<'a>(plan: Option<&Plan>, rows: impl Iterator<Item = &'a mut RunRow>) {
    let planned: HashMap<u32, &RunSpec> =
        plan.iter().flat_map(|plan| plan.runs()).map(|run| (run.id, run)).collect();
    for row in rows {
        if matches!(row.spec.belongs, Belongs::Named(_))
            && let Some(run) = planned.get(&row.spec.id)
            && matches!(run.belongs, Belongs::Job(_))
            && same_but_belongs(&row.spec, run)
        {
            row.spec.belongs = run.belongs.clone();
        }
    }
}
