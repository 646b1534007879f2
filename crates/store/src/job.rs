//! Which job the runs of a folder are of.
//!
//! What: the plan says of each run what it stands for; in folders of format 1 it
//! was made to when they were read (`format1.rs`).

use crate::contents::StoreContents;
use uflip_measure::job::JobPlan;

/// The job that a store's runs are of; None where they are of none, or of one of
/// format 1 that does not give its plan any more.
pub fn job_of(contents: &StoreContents) -> Option<JobPlan> {
    contents.manifest.options.asked.job()?;
    JobPlan::stored(contents.plan.clone()?)
}
