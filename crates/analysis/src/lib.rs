//! What is concluded from what was kept: pure functions of stored runs and
//! records; nothing is measured, nothing is shown.
//!
//! | module | what |
//! |---|---|
//! | [`profile`] | what the runs boil down to: figures, hints, soundness |
//! | [`compare`] | profiles side by side |
//! | [`job_report`] | what a job file's runs came to |
//! | [`program`] | what a program did on its devices |
//! | [`judge`] | how a figure compares with what a paper prints |
//! | [`known_devices`] | what the papers print, and which of their devices one is like |
//! | [`model`] | cost models, fitted and applied |
//! | [`score`] | what was found, held against a known truth |
//! | [`trace`] | block traces and their character |
//! | [`verification`] | the papers' figures beside those of the simulated catalogue |
#![forbid(unsafe_code)]

pub mod compare;
pub mod demo;
pub mod job_report;
pub mod judge;
pub mod known_devices;
pub mod model;
pub mod profile;
pub mod program;
pub mod score;
mod spectrum;
pub mod trace;
pub mod verification;

pub use profile::Profile;
