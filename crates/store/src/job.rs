//! Which job the runs of a folder are of.

use crate::contents::StoreContents;
use uflip_measure::Plan;
use uflip_measure::job::{Job, JobPlan};

/// The job that a store's runs are of, as its manifest has it, and its plan;
/// None where they are of none, or of one that this version cannot read.
pub fn job_of(contents: &StoreContents) -> Option<(Job, JobPlan)> {
    let text = contents.manifest.options.get("job")?.as_str()?;
    let plan: Plan = serde_json::from_value(contents.plan.clone()).ok()?;
    let job = uflip_measure::job::parse(text).ok()?;
    let planned = uflip_measure::job::expand(&job, &plan.target, plan.geometry, plan.seed).ok()?;
    Some((job, planned))
}
