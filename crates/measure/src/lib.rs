//! uFLIP proper: patterns, the nine micro-benchmarks, plans and their
//! execution. Knows no concrete device.
#![forbid(unsafe_code)]

pub mod detect;
pub mod pattern;
pub mod run;

pub use pattern::{Baseline, Basic, Location, Mode, Pattern, PatternError, Ratio, Timing, mix_counts};
