//! uFLIP proper: patterns, the micro-benchmarks, plans and their
//! execution. Knows no concrete device.
#![forbid(unsafe_code)]

pub mod auto;
pub mod demo;
pub mod detect;
pub mod dry_run;
pub mod execute;
pub mod job;
pub mod logical_block;
pub mod micro;
pub mod names;
pub mod pattern;
pub mod plan;
pub mod program;
pub mod run;
pub mod state;

pub use execute::{
    Budget, Control, ExecuteError, Finished, Progress, ResetRequest, Resetter, execute, execute_steps,
};
pub use micro::{Curve, MicroBenchmark, Override, Overrides, Preset, Skipped};
pub use pattern::{Baseline, Basic, Location, Pattern, PatternError, PatternMode, Ratio, Timing, mix_counts};
pub use plan::check::PlanFault;
pub use plan::{Method, Plan, PlanError, PlanOptions, Step, make_plan};
pub use state::State;
