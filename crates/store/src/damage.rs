//! What of a store is not as it was written, in words.
//!
//! Damage is left out of every figure, and said before anything else: file, run,
//! what is wrong, what to do.

use crate::complete::completeness;
use crate::contents::StoreContents;
use crate::store::names;
use std::fmt;

/// Damage told one by one, at most; the rest is counted.
const TOLD: usize = 5;

/// What is said of a plan that is not as uflip made it.
pub const PLAN_EDITED: &str =
    "plan.json is not as uflip made it: edited by hand, or damaged. Each run's own line says what was run.";

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the store, perhaps with a line's number.
    pub file: String,
    /// The run that it costs, as far as known.
    pub run: Option<u32>,
    /// What is wrong.
    pub what: String,
    /// True where a run is left out for it.
    pub row: bool,
}

impl Damage {
    /// Whether it is the folder's plan that cannot be read.
    pub fn is_of_plan(&self) -> bool {
        self.file == names::PLAN
    }

    /// Whether it is what calibration found that cannot be read.
    pub fn is_of_calibration(&self) -> bool {
        self.file == names::CALIBRATION
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { file, run, what, row } = self;
        write!(f, "Damaged: {file}: {what}")?;
        match (run, row) {
            (Some(run), true) => write!(f, "; run {run} is left out"),
            (None, true) => write!(f, "; its run is left out"),
            (Some(run), false) => write!(f, " (run {run})"),
            (None, false) => Ok(()),
        }
    }
}

/// What is said of a store's damage, a sentence each, and what to do about it.
pub fn statements(contents: &StoreContents) -> Vec<String> {
    let all = &contents.damage;
    let mut said: Vec<String> = all.iter().take(TOLD).map(|damage| format!("{damage}.")).collect();
    if all.len() > TOLD {
        said.push(format!("Damaged: {} more places.", all.len() - TOLD));
    }
    // What is missing says how to go on, where anything is.
    if all.iter().any(|damage| damage.row)
        && completeness(contents).statement.is_none()
        && let Some(last) = said.last_mut()
    {
        last.push_str(&format!(" Measure what is left out again: {}", crate::complete::go_on(contents)));
    }
    said
}
