//! What is concluded from what was kept: pure functions of stored runs and
//! records; nothing is measured, nothing is shown.
//!
//! | module | what |
//! |---|---|
//! | [`profile`] | what the runs boil down to: figures, hints, soundness |
//! | [`compare`] | profiles side by side |
//! | [`job_report`] | what a job file's runs came to |
//! | [`judge`] | how a figure compares with what a paper prints |
//! | [`known_devices`] | what the papers print, and which of their devices one is like |
//! | [`model`] | cost models, fitted and applied |
//! | [`trace`] | block traces and their character |
#![forbid(unsafe_code)]

pub mod compare;
pub mod job_report;
pub mod judge;
pub mod known_devices;
pub mod model;
pub mod profile;
mod spectrum;
pub mod trace;

pub use profile::Profile;
