//! A run's spec as JSON: the one place where what a run is becomes text, and
//! where the rows and plans of format 1 become types.
//!
//! What: the fields that other programs read (`purpose`, `baseline`, `point`,
//! `repeat`, `pattern`) are written for micro-benchmarks, baselines and
//! calibration as they always were. Format 2 adds `job`, `program` and `trace`,
//! and the purposes of the same names. How: [`Wire`] is the object; it is filled
//! from a spec and turned into one. Parameter names and labels are written for
//! readers and follow from micro-benchmark and value when read. Units: in
//! `docs/format.md`.

use super::{
    Belongs, CalibrationStep, CurveName, Named, PlannedPoint, Program, ProgramStep, ReplayedTrace,
    RunSection, RunSpec, Work,
};
use crate::auto::CalibrationRole;
use crate::job::{JobRun, Role};
use crate::micro::{Curve, MicroBenchmark};
use crate::pattern::{Basic, Pattern};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uflip_device::Nanos;

/// `point.micro_benchmark` of calibration runs.
const CALIBRATION: &str = "calibration";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Purpose {
    MicroBenchmark,
    Baseline,
    Single,
    Calibration,
    Job,
    Program,
}

#[derive(Serialize, Deserialize)]
struct WirePoint {
    micro_benchmark: String,
    #[serde(default)]
    parameter: String,
    value: i64,
    #[serde(default)]
    label: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    id: u32,
    purpose: Purpose,
    baseline: Option<String>,
    point: Option<WirePoint>,
    repeat: u32,
    pattern: Option<Pattern>,
    io_count: u64,
    io_ignore: u64,
    seed: u64,
    time_limit: Option<Nanos>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<JobRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program_step: Option<ProgramStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<Program>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<ReplayedTrace>,
}

impl Serialize for RunSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunSpec, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let id = wire.id;
        read(wire).map_err(|what| serde::de::Error::custom(format!("run {id}: {what}")))
    }
}

fn write(spec: &RunSpec) -> Wire {
    let point = match &spec.belongs {
        Belongs::Point(point) => Some(WirePoint {
            micro_benchmark: point.micro.name().into(),
            parameter: point.parameter().into(),
            value: point.value,
            label: point.label(),
        }),
        Belongs::Calibration(step) => Some(WirePoint {
            micro_benchmark: CALIBRATION.into(),
            parameter: step.role.name().into(),
            value: step.number.into(),
            label: step.number.to_string(),
        }),
        Belongs::Named(named) => Some(WirePoint {
            micro_benchmark: named.name.clone(),
            parameter: named.parameter.clone(),
            value: named.value,
            label: named.label.clone(),
        }),
        _ => None,
    };
    let (program, trace) = match &spec.work {
        Work::Pattern(_) => (None, None),
        Work::Program(program) => (Some(program.clone()), None),
        Work::Trace(trace) => (None, Some(trace.clone())),
    };
    Wire {
        id: spec.id,
        purpose: purpose(&spec.belongs),
        baseline: curve_name(spec).map(String::from),
        point,
        repeat: spec.belongs.repeat(),
        pattern: spec.work.pattern().cloned(),
        io_count: spec.io_count,
        io_ignore: spec.io_ignore,
        seed: spec.seed,
        time_limit: spec.time_limit,
        job: if let Belongs::Job(run) = &spec.belongs { Some(run.clone()) } else { None },
        program_step: if let Belongs::Program(step) = &spec.belongs { Some(step.clone()) } else { None },
        program,
        trace,
    }
}

fn purpose(belongs: &Belongs) -> Purpose {
    match belongs {
        Belongs::Point(_) => Purpose::MicroBenchmark,
        Belongs::Baseline { .. } => Purpose::Baseline,
        Belongs::Calibration(_) => Purpose::Calibration,
        Belongs::Job(_) => Purpose::Job,
        Belongs::Single => Purpose::Single,
        Belongs::Program(_) => Purpose::Program,
        Belongs::Named(named) if named.prepares => Purpose::Calibration,
        Belongs::Named(_) => Purpose::MicroBenchmark,
    }
}

/// `SR`, `RR`, `SW`, `RW`, a mix's `SR/RW`; `None` where no pattern is run.
pub(super) fn curve_name(spec: &RunSpec) -> Option<CurveName> {
    match (&spec.belongs, &spec.work) {
        (Belongs::Named(named), _) => Some(named.curve.clone()),
        (belongs, Work::Pattern(pattern)) => {
            let of_pattern = || pattern.basics().into_iter().map(Basic::name).collect::<Vec<_>>().join("/");
            Some(belongs.curve().map_or_else(|| of_pattern().into(), CurveName::Known))
        }
        _ => None,
    }
}

fn read(wire: Wire) -> Result<RunSpec, String> {
    let belongs = belongs(&wire)?;
    let work = match (wire.pattern, wire.program, wire.trace) {
        (Some(pattern), None, None) => Work::Pattern(pattern),
        (None, Some(program), None) => Work::Program(program),
        (None, None, Some(trace)) => Work::Trace(trace),
        (None, None, None) => return Err("it has no pattern, program or trace".into()),
        _ => return Err("it has more than one of pattern, program and trace".into()),
    };
    Ok(RunSpec {
        id: wire.id,
        belongs,
        work,
        io_count: wire.io_count,
        io_ignore: wire.io_ignore,
        seed: wire.seed,
        time_limit: wire.time_limit,
    })
}

fn belongs(wire: &Wire) -> Result<Belongs, String> {
    let curve = || -> Result<Curve, String> {
        let text = wire.baseline.as_deref().ok_or("it has no baseline")?;
        text.parse().map_err(|error| format!("{error}"))
    };
    let repeat = wire.repeat;
    match (wire.purpose, &wire.point) {
        (Purpose::Job, _) => {
            Ok(Belongs::Job(wire.job.clone().ok_or("it is a job's and does not say of which line (job)")?))
        }
        (Purpose::Program, _) => Ok(Belongs::Program(
            wire.program_step
                .clone()
                .ok_or("it is a program's and does not say which step of it (program_step)")?,
        )),
        (Purpose::Single, None) => Ok(Belongs::Single),
        (Purpose::Baseline, None) => match curve()? {
            Curve::One(baseline) => Ok(Belongs::Baseline { baseline, repeat }),
            Curve::Pair(..) => Err("a pair of baselines is for the mix only".into()),
        },
        (Purpose::Calibration, Some(point)) if point.micro_benchmark == CALIBRATION => calibration(point),
        (Purpose::MicroBenchmark, Some(point)) => match point.micro_benchmark.parse::<MicroBenchmark>() {
            Ok(micro) => {
                Ok(Belongs::Point(PlannedPoint { micro, curve: curve()?, value: point.value, repeat }))
            }
            Err(_) => Ok(named(wire, point)),
        },
        (_, Some(point)) => Ok(named(wire, point)),
        (Purpose::MicroBenchmark | Purpose::Calibration, None) => {
            Err("it is a micro-benchmark's or calibration's and has no point".into())
        }
    }
}

fn calibration(point: &WirePoint) -> Result<Belongs, String> {
    let role = CalibrationRole::ALL.into_iter().find(|role| role.name() == point.parameter);
    let number =
        u32::try_from(point.value).map_err(|_| format!("calibration has no step {}", point.value))?;
    let role = role.ok_or_else(|| format!("calibration has no part '{}'", point.parameter))?;
    Ok(Belongs::Calibration(CalibrationStep { role, number }))
}

/// What has names of its own: jobs of format 1, whose lines stand in a sentence
/// here, and plans that somebody edited.
fn named(wire: &Wire, point: &WirePoint) -> Belongs {
    Belongs::Named(Named {
        name: point.micro_benchmark.clone(),
        prepares: wire.purpose == Purpose::Calibration,
        curve: wire.baseline.clone().unwrap_or_default().into(),
        parameter: point.parameter.clone(),
        value: point.value,
        label: point.label.clone(),
        repeat: wire.repeat,
    })
}

impl Belongs {
    /// The kind of it as rows say it: `micro_benchmark`, `baseline`, `job`, …
    pub fn purpose(&self) -> &'static str {
        match purpose(self) {
            Purpose::MicroBenchmark => "micro_benchmark",
            Purpose::Baseline => "baseline",
            Purpose::Single => "single",
            Purpose::Calibration => "calibration",
            Purpose::Job => "job",
            Purpose::Program => "program",
        }
    }

    /// What the runs of one table or chart have in common, as a heading:
    /// `granularity`, a job's `speed after rw(bs=4K,count=8)`; `None` for baselines
    /// and single patterns.
    pub fn section(&self) -> Option<RunSection> {
        Some(RunSection::Named(match self {
            Belongs::Point(point) => return Some(RunSection::Micro(point.micro)),
            Belongs::Calibration(_) => CALIBRATION.into(),
            Belongs::Job(run) => match run.role {
                Role::Measured => run.section(),
                Role::Before => format!("before {}", run.line),
                Role::Passes => run.line.clone(),
            },
            Belongs::Program(step) => format!("{}: {}", step.program, step.step),
            Belongs::Named(named) => named.name.clone(),
            Belongs::Baseline { .. } | Belongs::Single => return None,
        }))
    }

    /// The varying parameter, its value, and that as a person reads it.
    pub fn varying(&self) -> Option<(String, i64, String)> {
        match self {
            Belongs::Point(point) => Some((point.parameter().into(), point.value, point.label())),
            Belongs::Calibration(step) => {
                Some((step.role.name().into(), step.number.into(), step.number.to_string()))
            }
            Belongs::Job(run) => {
                let value = i64::try_from(run.block.0).unwrap_or(i64::MAX);
                Some(("IOSize".into(), value, run.block.exact()))
            }
            Belongs::Named(named) => Some((named.parameter.clone(), named.value, named.label.clone())),
            Belongs::Baseline { .. } | Belongs::Single | Belongs::Program(_) => None,
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
