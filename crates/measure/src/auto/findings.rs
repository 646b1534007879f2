//! What the automatic method found, as it goes to `calibration.json`.
//!
//! Every figure names the runs behind it; they are ordinary stored runs of
//! purpose `calibration`. `docs/format.md` describes the file.

use super::interference::Disturbed;
use super::limits::Limits;
use crate::detect::drift::Drift;
use crate::detect::enough::Reason;
use crate::detect::interval::MeanInterval;
use crate::detect::lasting::LastingEffect;
use crate::detect::period::Period;
use crate::detect::startup::StartUp;
use crate::detect::steady::Steady;
use crate::micro::Skipped;
use crate::pattern::Baseline;
use crate::state::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_device::{Bytes, Nanos};

/// The version of the file's format.
pub const FORMAT: u32 = 1;

/// All that was found. What is not there yet was not reached or not asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`FORMAT`].
    pub format: u32,
    /// What it was allowed to spend.
    pub limits: Limits,
    /// The device's state and where it comes from.
    pub state: StateFound,
    /// Each long baseline: `SR`, `RR`, `RW`, `SW`.
    pub baselines: BTreeMap<Baseline, BaselineFound>,
    /// The pause between runs; None until it is chosen.
    pub pause: Option<PauseFound>,
    /// What the plan came to; None until it is made.
    pub plan: Option<PlanFound>,
    /// The state after the plan against the one before; None until measured or
    /// where it cannot be.
    pub drift: Option<DriftFound>,
    /// Runs beside which something else was going on.
    pub interference: Vec<Disturbed>,
    /// What was capped, left out or kept short, in words.
    pub notes: Vec<String>,
}

/// The device's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateFound {
    /// What was enforced before anything was measured.
    pub enforced: State,
    /// Runs of the state probe, one a round, in order.
    pub runs: Vec<u32>,
    /// The mean of each round.
    pub round_means_ns: Vec<f64>,
    /// The criterion on the last window of rounds; None where there are too few.
    pub steady: Option<Steady>,
    /// True where the rounds' limit was reached before the state was steady.
    pub capped: bool,
    /// The mean over the last window of rounds.
    pub level: Option<MeanInterval>,
}

/// A long baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineFound {
    /// Its runs: parts that follow each other without a pause.
    pub runs: Vec<u32>,
    /// IOs of all of them.
    pub ios: u64,
    /// The start-up phase; None where there is none.
    pub start_up: Option<StartUp>,
    /// IOs at its start that pay for what was before; None where there are none.
    pub transient_ios: Option<u64>,
    /// The period; None where nothing oscillates.
    pub period: Option<Period>,
    /// IOIgnore of the plan's runs.
    pub io_ignore: u64,
    /// IOCount of the plan's runs, IOIgnore included.
    pub io_count: u64,
    /// The mean of the running phase of the long baseline.
    pub interval: Option<MeanInterval>,
    /// Why it ended.
    pub reason: Reason,
    /// True where it ended before the interval was narrow enough.
    pub capped: bool,
}

/// The pause between runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseFound {
    /// The tests: sequential reads, a batch of writes, sequential reads.
    pub tests: Vec<PauseTest>,
    /// The least pause.
    pub floor: Nanos,
    /// Twice the longest lasting effect, at least the floor.
    pub needed: Nanos,
    /// The pause of the plan; below `needed` only where the budget has no room.
    pub between_runs: Nanos,
}

/// One pause test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseTest {
    /// The batch: `RW`, `16 x SW`, `RT` (trims).
    pub batch: String,
    /// Reads before it, each after a rest, until they take no less time; the
    /// last one is what the reads after are compared with.
    pub runs_before: Vec<u32>,
    /// The batch.
    pub run_batch: u32,
    /// The reads after it: parts that follow each other without a pause.
    pub runs_after: Vec<u32>,
    /// What lasts; None where nothing does.
    pub found: Option<LastingEffect>,
}

/// What the plan came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanFound {
    /// Runs.
    pub runs: u64,
    /// IOs.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written by runs.
    pub write_bytes: Bytes,
    /// Bytes written by state resets within the plan.
    pub reset_bytes: Bytes,
    /// How long its runs and pauses should take by the calibration's means,
    /// state resets apart; None where a mean is not known.
    pub estimate: Option<Nanos>,
    /// What it had to fit in.
    pub budget: Option<Nanos>,
    /// Repeats of each experiment.
    pub repeats: u32,
    /// Values dropped for want of time.
    pub dropped: Vec<Skipped>,
}

/// The state after the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftFound {
    /// Runs of the state probe before the plan: its last window.
    pub before: Vec<u32>,
    /// Runs of the state probe after it.
    pub after: Vec<u32>,
    /// The probe's mean after the plan.
    pub level: Option<MeanInterval>,
    /// The comparison; None where a probe is too short for an interval.
    pub drift: Option<Drift>,
}
