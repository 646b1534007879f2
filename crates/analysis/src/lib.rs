//! What is concluded from what was kept: pure functions of stored runs and
//! records; nothing is measured, nothing is shown.
//!
//! | module | what |
//! |---|---|
//! | [`profile`] | what the runs boil down to: figures, hints, soundness |
//! | [`compare`] | profiles side by side |
//! | [`job_report`] | what a job file's runs came to |
//! | [`model`] | cost models, fitted and applied |
//! | [`trace`] | block traces and their character |
#![forbid(unsafe_code)]

pub mod compare;
pub mod job_report;
pub mod model;
pub mod profile;
mod spectrum;
pub mod trace;

pub use profile::Profile;
