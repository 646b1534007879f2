//! A benchmark in memory: the automatic method on any device, without a store.
//!
//! What proofs and demonstrations are made of: the same script, executor,
//! detectors and profile as `uflip run`, with records that are kept in memory.

use anyhow::anyhow;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use uflip_analysis::{Profile, profile};
use uflip_device::{Device, IoRecord, KeepAll, Nanos, Recorder, Stop, unix_now};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::{self, AutoError, AutoOptions, Bench, Extent, Phase, Stored};
use uflip_measure::run::{RunOutcome, RunSpec, RunStats, Sink, SinkError};
use uflip_measure::{Control, Plan, ResetRequest, execute_steps, state};
use uflip_store::stats::StatsBuilder;
use uflip_store::{Manifest, RecordFile, RunRow, StoreContents, StoreError};

/// Runs that are kept in memory.
#[derive(Default)]
pub struct Memory {
    rows: Vec<RunRow>,
    records: HashMap<u32, Vec<IoRecord>>,
    keep: Option<KeepAll>,
}

impl Memory {
    /// The records of a run that was kept.
    pub fn records(&self, run: u32) -> &[IoRecord] {
        self.records.get(&run).map_or(&[], Vec::as_slice)
    }

    /// The response times of a run, in the order of submission, less the first
    /// `ignore`.
    pub fn responses(&self, run: u32, ignore: u64) -> Vec<u64> {
        let ignore = usize::try_from(ignore).unwrap_or(usize::MAX);
        self.records(run).iter().skip(ignore).map(|r| r.response().0).collect()
    }
}

impl Sink for Memory {
    fn has(&self, _: u32) -> bool {
        false
    }

    fn begin(&mut self, run: &RunSpec) -> Result<(), SinkError> {
        self.keep = Some(KeepAll::new(usize::try_from(run.io_count).unwrap_or(1).clamp(1, 1 << 16)));
        Ok(())
    }

    fn recorder(&self) -> &dyn Recorder {
        match &self.keep {
            Some(keep) => keep,
            None => &Nowhere,
        }
    }

    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError> {
        let records = self.keep.take().map(KeepAll::records).unwrap_or_default();
        let mut stats = StatsBuilder::new(run.io_ignore, run.work.pattern_count());
        stats.push(&records);
        let stats = stats.finish();
        self.rows.push(RunRow {
            spec: run.clone(),
            outcome: outcome.clone(),
            stats: stats.clone(),
            records: RecordFile { file: String::new(), bytes: 0, checksum: None },
            stalls: None,
            folder: None,
        });
        self.records.insert(run.id, records);
        Ok(stats)
    }

    fn abandon(&mut self) {
        self.keep = None;
    }
}

/// Before any run.
struct Nowhere;

impl Recorder for Nowhere {
    fn fresh(&self) -> Vec<IoRecord> {
        Vec::with_capacity(1)
    }
    fn finish(&self, _: Vec<IoRecord>) {}
}

/// A device, and what was measured on it.
pub struct Lab<'a> {
    device: &'a mut dyn Device,
    stop: &'a Stop,
    /// What was planned so far.
    pub plan: Plan,
    /// What was measured.
    pub memory: Memory,
    /// Called before the plan's own runs begin.
    before_main: &'a mut dyn FnMut(),
}

/// What a benchmark in memory came to.
pub struct Measured {
    /// What the method found.
    pub calibration: Calibration,
    /// What was planned.
    pub plan: Plan,
    /// What was measured.
    pub memory: Memory,
    /// What it boils down to.
    pub profile: Profile,
}

fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AutoError {
    AutoError::Bench(error.into())
}

impl Bench for Lab<'_> {
    fn stored(&self) -> Stored<'_> {
        Stored { steps: &[], skipped: &[], notes: &[] }
    }

    fn perform(&mut self, phase: Phase) -> Result<(), AutoError> {
        if phase.held {
            return Ok(());
        }
        if phase.main {
            (self.before_main)();
        }
        let first = self.plan.steps.len();
        self.plan.steps.extend(phase.steps);
        self.plan.skipped.extend(phase.skipped);
        self.plan.notes.extend(phase.notes);
        let mut resetter = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
            state::enforce(request.state, request.seed, device, stop)
        };
        let control = Control { stop: self.stop, budget: None, unix_now };
        let steps = first..self.plan.steps.len();
        let finished = execute_steps(
            &self.plan,
            steps,
            self.device,
            &mut self.memory,
            &mut resetter,
            control,
            &mut |_| {},
        );
        if finished.map_err(other)?.stopped { Err(AutoError::Stopped) } else { Ok(()) }
    }

    fn records(&mut self, run: u32) -> Result<Vec<IoRecord>, AutoError> {
        Ok(self.memory.records(run).to_vec())
    }

    fn found(&mut self, _: &Calibration, _: &str) -> Result<(), AutoError> {
        Ok(())
    }

    fn left(&self) -> Option<Nanos> {
        None
    }
}

/// Measures `device` by the automatic method and makes its profile.
///
/// # Errors
/// What the device or the method says.
pub fn measure(
    options: &AutoOptions,
    device: &mut dyn Device,
    stop: &Stop,
    before_main: &mut dyn FnMut(),
) -> anyhow::Result<Measured> {
    let plan = auto::first_plan(options);
    let mut lab = Lab { device, stop, plan, memory: Memory::default(), before_main };
    let calibration = auto::measure(options, Extent::Whole, &mut lab)?;
    let Lab { plan, memory, .. } = lab;
    let profile = profile_of(&plan, &memory, &calibration, options.plan.seed)?;
    Ok(Measured { calibration, plan, memory, profile })
}

/// The parameters that the automatic method finds on `device`.
///
/// # Errors
/// What the device or the method says.
pub fn parameters(
    options: &AutoOptions,
    device: &mut dyn Device,
    stop: &Stop,
) -> anyhow::Result<Calibration> {
    let plan = auto::first_plan(options);
    let mut lab = Lab { device, stop, plan, memory: Memory::default(), before_main: &mut || {} };
    Ok(auto::measure(options, Extent::Parameters, &mut lab)?)
}

/// The profile of runs in memory.
fn profile_of(plan: &Plan, memory: &Memory, calibration: &Calibration, seed: u64) -> anyhow::Result<Profile> {
    let mut manifest = Manifest::new(env!("CARGO_PKG_VERSION"), seed);
    manifest.target = json!({ "summary": plan.target });
    let contents = StoreContents {
        dir: PathBuf::new(),
        manifest,
        plan: Some(plan.clone()),
        calibration: Some(calibration.clone()),
        runs: memory.rows.clone(),
        damage: Vec::new(),
        plan_edited: false,
        sums: Vec::new(),
    };
    let records = |row: &RunRow| -> Result<Vec<IoRecord>, StoreError> {
        memory
            .records
            .get(&row.spec.id)
            .cloned()
            .ok_or_else(|| StoreError::Refused(format!("run {} was not kept", row.spec.id)))
    };
    profile::build_from(&contents, &records).map_err(|e| anyhow!(e))
}
