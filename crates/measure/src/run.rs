//! A run as planned ([`RunSpec`]) and as it went ([`RunOutcome`]), and the
//! [`Sink`] that keeps both together with every IO in between.
//!
//! Source: paper 000/001, section 3.2, design principle 1: an execution of a
//! reference pattern against a device is a run; every response time is kept
//! and min, max, mean and standard deviation summarise it.

mod belongs;
mod course;
mod curve;
mod wire;
mod work;

use crate::auto::interference::Disturbed;
use crate::job::JobRun;
use crate::pattern::{Baseline, MakeStream, Pattern, PatternError};
use serde::{Deserialize, Serialize};
use uflip_device::{Counters, Mode, Nanos, Recorder, RunEnd, Stream};

pub use belongs::{Belongs, CalibrationStep, Named, PlannedPoint, ProgramStep};
pub use course::{COURSE_EVERY, Counted, Course};
pub use curve::{CurveId, CurveName, RunSection};
pub use work::{Program, ReplayedTrace, Work};

/// One run, wholly determined: the same spec gives the same IOs everywhere.
/// As JSON: `run/wire.rs`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// Its number in the plan, from 0; names its record file.
    pub id: u32,
    /// Where it belongs.
    pub belongs: Belongs,
    /// What is done.
    pub work: Work,
    /// IOs of each stream, start-up included; of a program or trace as far as it
    /// is known before.
    pub io_count: u64,
    /// The first IOs of each stream, left out of the running phase.
    pub io_ignore: u64,
    /// The seed of its random locations.
    pub seed: u64,
    /// End early after this much time; `None` for no limit.
    pub time_limit: Option<Nanos>,
}

impl RunSpec {
    /// The pattern, where it is one.
    pub const fn pattern(&self) -> Option<&Pattern> {
        self.work.pattern()
    }

    /// Its streams of IOs.
    ///
    /// # Errors
    /// As [`Work::streams`].
    pub fn streams(&self) -> Result<Vec<Stream>, PatternError> {
        self.work.streams(self.io_count, self.seed)
    }

    /// The sequence that they are dealt from, where they stand for a queue.
    ///
    /// # Errors
    /// As [`Work::streams`].
    pub fn sequence(&self) -> Result<Option<MakeStream>, PatternError> {
        self.work.sequence(self.io_count, self.seed)
    }

    /// Its point on a micro-benchmark's curve.
    pub const fn point(&self) -> Option<&PlannedPoint> {
        if let Belongs::Point(point) = &self.belongs { Some(point) } else { None }
    }

    /// What it stands for in a job.
    pub const fn job(&self) -> Option<&JobRun> {
        if let Belongs::Job(run) = &self.belongs { Some(run) } else { None }
    }

    /// The baseline, where it is one of the four long runs.
    pub const fn baseline(&self) -> Option<Baseline> {
        if let Belongs::Baseline { baseline, .. } = &self.belongs { Some(*baseline) } else { None }
    }

    /// `SR`, `RR`, `SW`, `RW`, a mix's `SR/RW`, as people and files know it; for
    /// programs the step and its device, for traces what is done.
    pub fn curve_name(&self) -> CurveName {
        wire::curve_name(self).unwrap_or_else(|| {
            CurveName::Named(match &self.belongs {
                Belongs::Program(step) => format!("{} {}", step.step, step.device),
                _ => self.work.to_string(),
            })
        })
    }
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// What the device says of it.
    pub end: RunEnd,
    /// The device's clock when it started, in ns since the device was opened.
    pub started: Nanos,
    /// Wall-clock time when it started, in ns since 1970; `None` on a device in
    /// virtual time.
    pub started_unix_ns: Option<u64>,
    /// How often it was measured: more than once where something took time from
    /// it, and then only the last attempt is kept.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub attempts: u32,
    /// What stood beside it says of it.
    #[serde(default, skip_serializing_if = "Probes::is_empty")]
    pub probes: Probes,
}

/// What the probes beside a run say of it; none where nobody looked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// What the device counted of its own work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// How that came about, where the device's time is virtual and the run was longer
    /// than an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// What went on beside the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<Disturbed>,
}

impl Probes {
    /// True where nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Probes::default()
    }
}

const fn once() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_once(attempts: &u32) -> bool {
    *attempts == 1
}

/// Statistics of the response times of a set of IOs, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RtStats {
    /// How many IOs; the rest is `None` where there are none.
    pub n: u64,
    /// Smallest.
    pub min_ns: Option<u64>,
    /// Largest.
    pub max_ns: Option<u64>,
    /// Arithmetic mean.
    pub mean_ns: Option<f64>,
    /// Sample standard deviation (n - 1); `None` below two IOs.
    pub sd_ns: Option<f64>,
    /// Percentiles by nearest rank.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// 99.99th percentile.
    pub p9999_ns: Option<u64>,
}

/// The statistics of the IOs of one mode, in a run that has several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeStats {
    /// Of these IOs.
    pub mode: Mode,
    /// All of them, from the first IO of the run on.
    pub ios: u64,
    /// Their response times from `io_ignore` on.
    #[serde(flatten)]
    pub running: RtStats,
}

/// From here on an IO of an open loop counts as late: more than what a clock and a
/// scheduler take.
pub const LATE_FROM: Nanos = Nanos(100_000);

/// How late the IOs of an open loop were submitted, in the running phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateStats {
    /// How many IOs had an intended instant.
    pub n: u64,
    /// Mean time from it to the submission, in ns.
    pub mean_ns: f64,
    /// The longest.
    pub max_ns: u64,
    /// IOs that were submitted later than [`LATE_FROM`]; `None` in folders of before
    /// this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ios: Option<u64>,
}

/// The statistics of one run: over the running phase (each stream's IOs from
/// `io_ignore` on) and over all IOs. Both are of the reads and writes where there are
/// any: a flush or a trim beside them has its place in `by_mode`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStats {
    /// From `io_ignore` on.
    pub running: RtStats,
    /// From the first IO on.
    pub all: RtStats,
    /// For mixes: the running phase of pattern 1 and of pattern 2 apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_pattern: Vec<RtStats>,
    /// Each mode apart, in a run that has several of read, write, flush and trim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_mode: Vec<ModeStats>,
    /// How late an open loop's IOs were submitted; `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateStats>,
}

impl RunStats {
    /// All IOs of the run, of every mode.
    pub fn ios(&self) -> u64 {
        if self.by_mode.is_empty() { self.all.n } else { self.by_mode.iter().map(|of| of.ios).sum() }
    }
}

/// Keeps runs. Between [`Sink::begin`] and [`Sink::commit`] the recorder takes
/// the run's IOs; a run is kept whole or not at all.
pub trait Sink {
    /// True where the run of this number is already kept (after `--resume`).
    fn has(&self, id: u32) -> bool;

    /// Gets ready for a run: reserves and touches the memory of its records.
    ///
    /// # Errors
    /// [`SinkError`].
    fn begin(&mut self, run: &RunSpec) -> Result<(), SinkError>;

    /// Where the timed loops put their records, after `begin`.
    fn recorder(&self) -> &dyn Recorder;

    /// Makes the run durable and gives its statistics.
    ///
    /// # Errors
    /// [`SinkError`]; nothing of the run is then kept.
    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError>;

    /// Forgets the run that was begun.
    fn abandon(&mut self);
}

/// A result could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);
