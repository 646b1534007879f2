//! What a program on the data face does, as a plan: each of its steps is a run of
//! each of its devices.
//!
//! How: a device of a program has a clock and counters of its own, so that what two
//! devices do in one step are two runs that go on at once; their numbers follow each
//! other. How many requests a step will make is told as far as it is known. A
//! program makes its requests itself: such a plan says what there will be, and is
//! not executed.

use crate::plan::{self, Plan, Preset, Step};
use crate::run::{Belongs, Program, ProgramStep, RunSpec, Work};
use std::collections::BTreeMap;
use uflip_device::{Bytes, Geometry};

/// A program that was asked for.
#[derive(Clone, Debug)]
pub struct ProgramPlan {
    /// Its name, which is that of its command: `copy`.
    pub name: &'static str,
    /// What it was asked for, by names of its own, its devices included.
    pub arguments: BTreeMap<String, String>,
    /// Its devices.
    pub devices: Vec<ProgramDevice>,
    /// What it does, in order.
    pub steps: Vec<PlannedStep>,
}

/// A device as a program knows it.
#[derive(Clone, Debug)]
pub struct ProgramDevice {
    /// What the program calls it: `from`.
    pub role: &'static str,
    /// The target, in words.
    pub target: String,
    /// Its capacity and sector.
    pub geometry: Geometry,
}

/// One step.
#[derive(Clone, Debug)]
pub struct PlannedStep {
    /// What the program calls it: `transfer`.
    pub name: &'static str,
    /// What it asks of each device, in their order.
    pub asks: Vec<StepRequests>,
}

/// What a step asks of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRequests {
    /// Requests, as far as they are known before.
    pub requests: u64,
    /// Whether it changes what the device holds.
    pub writes: bool,
}

impl ProgramPlan {
    /// The plan: the runs of the first step, those of the second, …
    pub fn plan(&self, seed: u64) -> Plan {
        let each = self.steps.iter().flat_map(|step| {
            step.asks.iter().zip(&self.devices).map(move |(asks, device)| (step, *asks, device))
        });
        let run = |(id, (step, asks, device)): (usize, (&PlannedStep, StepRequests, &ProgramDevice))| {
            Step::Run(self.run(id as u32, step.name, device.role, asks, seed))
        };
        let names = self.devices.iter().map(|device| format!("{} {}", device.role, device.target));
        let largest = |get: fn(&Geometry) -> Bytes| self.devices.iter().map(|d| get(&d.geometry)).max();
        Plan {
            format: plan::FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_string(),
            target: format!("{} {}", self.name, names.collect::<Vec<_>>().join(" ")),
            geometry: Geometry {
                capacity: largest(|geometry| geometry.capacity).unwrap_or_default(),
                sector: largest(|geometry| geometry.sector).unwrap_or_default(),
            },
            seed,
            io_size: crate::pattern::DEFAULT_IO_SIZE,
            preset: Preset::Standard,
            steps: each.enumerate().map(run).collect(),
            skipped: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn run(&self, id: u32, step: &str, device: &str, asks: StepRequests, seed: u64) -> RunSpec {
        let (program, step, device) = (self.name.to_string(), step.to_string(), device.to_string());
        let work = Program {
            name: self.name.to_string(),
            arguments: self.arguments.clone(),
            streams: 1,
            writes: asks.writes,
        };
        RunSpec {
            id,
            belongs: Belongs::Program(ProgramStep { program, step, device, repeat: 0 }),
            work: Work::Program(work),
            io_count: asks.requests,
            io_ignore: 0,
            seed,
            time_limit: None,
        }
    }
}

/// The runs of the step called `name`, one for each device, in their order.
pub fn runs_of<'p>(plan: &'p Plan, name: &'p str) -> impl Iterator<Item = &'p RunSpec> {
    let is_of = move |run: &&RunSpec| matches!(&run.belongs, Belongs::Program(of) if of.step == name);
    plan.runs().filter(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_a_run_of_each_device() {
        let device = |role, mib: u64| ProgramDevice {
            role,
            target: format!("mem:{mib}M"),
            geometry: Geometry { capacity: Bytes(mib << 20), sector: Bytes(512) },
        };
        let step = |name, asks: [(u64, bool); 2]| PlannedStep {
            name,
            asks: asks.map(|(requests, writes)| StepRequests { requests, writes }).into(),
        };
        let program = ProgramPlan {
            name: "copy",
            arguments: [("requests".to_string(), "8".to_string())].into(),
            devices: vec![device("from", 1), device("to", 2)],
            steps: vec![step("transfer", [(4, false), (5, true)]), step("compare", [(4, false), (4, false)])],
        };
        let plan = program.plan(9);
        assert_eq!((&plan.target[..], plan.geometry.capacity.0), ("copy from mem:1M to mem:2M", 2 << 20));
        let told: Vec<_> = plan
            .runs()
            .map(|run| (run.id, run.curve_name().to_string(), run.io_count, run.work.writes()))
            .collect();
        let run = |id, name: &str, ios, writes| (id, name.to_string(), ios, writes);
        assert_eq!(
            told,
            [
                run(0, "transfer from", 4, false),
                run(1, "transfer to", 5, true),
                run(2, "compare from", 4, false),
                run(3, "compare to", 4, false)
            ]
        );
        assert_eq!(runs_of(&plan, "compare").map(|run| run.id).collect::<Vec<_>>(), [2, 3]);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}
