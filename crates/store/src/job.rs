//! Which job the runs of a folder are of.
//!
//! What: the plan says of each run what it stands for. Folders of format 1 do
//! not: theirs is found here, and nowhere else, by expanding the job's text again.

use crate::contents::StoreContents;
use uflip_measure::Plan;
use uflip_measure::job::JobPlan;

/// The job that a store's runs are of; None where they are of none, or of one of
/// format 1 that this version cannot read.
pub fn job_of(contents: &StoreContents) -> Option<JobPlan> {
    let text = contents.manifest.options.get("job")?.as_str()?;
    let plan: Plan = serde_json::from_value(contents.plan.clone()).ok()?;
    if plan.format > 1 {
        return JobPlan::stored(plan);
    }
    let job = uflip_measure::job::parse(text).ok()?;
    uflip_measure::job::expand(&job, &plan.target, plan.geometry, plan.seed).ok()
}
