//! Where a run belongs: the question that it is part of the answer to.
//!
//! What: one variant for each kind of whole that runs are parts of. Analyses
//! ask for the variant and its fields; names exist where a run is written or
//! shown (`run/wire.rs`, `run/curve.rs`). Source: paper
//! 000/001, section 3.2 (micro-benchmark, experiment, baseline), paper 004,
//! appendix A (lines of a job).

use super::curve::{CurveId, CurveName};
use crate::auto::CalibrationRole;
use crate::job::JobRun;
use crate::micro::{Curve, MicroBenchmark};
use crate::pattern::Baseline;
use serde::{Deserialize, Serialize};

/// Where a run belongs.
#[derive(Clone, Debug, PartialEq)]
pub enum Belongs {
    /// To a micro-benchmark's curve.
    Point(PlannedPoint),
    /// To the four baselines, long enough to find start-up and period.
    Baseline {
        /// Which.
        baseline: Baseline,
        /// Which repetition, from 0.
        repeat: u32,
    },
    /// To what the method needed to know.
    Calibration(CalibrationStep),
    /// To a line of a job.
    Job(JobRun),
    /// To nothing else: a pattern that somebody asked for.
    Single,
    /// To a program that lives on the device.
    Program(ProgramStep),
    /// To something that this version knows by name only: jobs of format 1, and
    /// plans in which somebody wrote names of their own.
    Named(Named),
}

/// A point of a micro-benchmark's curve: one value of its one varying parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlannedPoint {
    /// Which micro-benchmark.
    pub micro: MicroBenchmark,
    /// Which of its curves.
    pub curve: Curve,
    /// The parameter's value: bytes, a count, an increment or nanoseconds. For
    /// the mix, a positive ratio n is n IOs of pattern 1 for one of pattern 2, a
    /// negative one is -n IOs of pattern 2 for one of pattern 1.
    pub value: i64,
    /// Which repetition of the experiment, from 0.
    pub repeat: u32,
}

impl PlannedPoint {
    /// The varying parameter as Table 1 names it: `IOSize`, `IOShift`, …
    pub const fn parameter(&self) -> &'static str {
        self.micro.row().parameter
    }

    /// `value` as a person reads it: `32K`, `1.6 ms`, `4 : 1`.
    pub fn label(&self) -> String {
        (self.micro.row().label)(self.value)
    }
}

/// A calibration run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationStep {
    /// What it is for.
    pub role: CalibrationRole,
    /// Which of that role, from 0; [`CalibrationRole`] says what it counts.
    pub number: u32,
}

/// A step of a program on the data face, on one of its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStep {
    /// The program's name; programs live in crates that this one does not know.
    pub program: String,
    /// The step's name, as the program calls it.
    pub step: String,
    /// The device, as the program calls it: `from`.
    pub device: String,
    /// Which repetition, from 0.
    #[serde(default)]
    pub repeat: u32,
}

/// A run that is known by names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it is a part of, in its own words.
    pub name: String,
    /// True where it only prepares for others.
    pub prepares: bool,
    /// The curve.
    pub curve: CurveName,
    /// The varying parameter.
    pub parameter: String,
    /// Its value.
    pub value: i64,
    /// The value as a person reads it.
    pub label: String,
    /// Which repetition, from 0.
    pub repeat: u32,
}

impl Belongs {
    /// Which repetition, from 0.
    pub const fn repeat(&self) -> u32 {
        match self {
            Belongs::Point(point) => point.repeat,
            Belongs::Baseline { repeat, .. } => *repeat,
            Belongs::Job(run) => run.repeat,
            Belongs::Program(step) => step.repeat,
            Belongs::Named(named) => named.repeat,
            Belongs::Calibration(_) | Belongs::Single => 0,
        }
    }

    /// The curve, where it is one of the baselines' or of their mixes; `None` for
    /// the rest.
    pub const fn curve(&self) -> Option<Curve> {
        match self {
            Belongs::Point(point) => Some(point.curve),
            Belongs::Baseline { baseline, .. } => Some(Curve::One(*baseline)),
            Belongs::Job(run) => Some(Curve::One(run.baseline)),
            Belongs::Named(named) => named.curve.known(),
            Belongs::Calibration(_) | Belongs::Single | Belongs::Program(_) => None,
        }
    }

    /// The curve that it is a point of; `None` where nothing varies, and for what is
    /// known by other names.
    pub fn curve_id(&self) -> Option<CurveId> {
        Some(CurveId { section: self.section()?, curve: self.curve()? })
    }

    /// True for a run that only prepares others or finds out how to measure
    /// them: it is no result itself.
    pub fn prepares(&self) -> bool {
        match self {
            Belongs::Calibration(_) => true,
            Belongs::Job(run) => run.role != crate::job::Role::Measured,
            Belongs::Named(named) => named.prepares,
            Belongs::Point(_) | Belongs::Baseline { .. } | Belongs::Single | Belongs::Program(_) => false,
        }
    }
}
