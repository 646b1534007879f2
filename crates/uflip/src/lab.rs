//! A benchmark in memory: the automatic method on any device, without a store.
//!
//! What proofs and demonstrations are made of: the same script, executor,
//! detectors and profile as `uflip run`, with records that are kept in memory.

use crate::session::{Kept, Probing};
use anyhow::anyhow;
use std::path::PathBuf;
use uflip_analysis::{Profile, profile};
use uflip_device::{Device, IoRecord, Nanos, Stop, unix_now};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::{self, AutoError, AutoExtent, AutoOptions, AutoPhase, Bench, StoredPlan};
use uflip_measure::{Control, Plan, ResetRequest, execute_steps, state};
use uflip_store::manifest::Asked;
use uflip_store::memory::MemorySink;
use uflip_store::{Manifest, Options, RunRow, StoreContents, StoreError};

/// A device, and what was measured on it.
pub struct Lab<'a> {
    device: &'a mut dyn Device,
    /// What stands beside its runs.
    probing: &'a Probing,
    stop: &'a Stop,
    /// What was planned so far.
    pub plan: Plan,
    /// What was measured.
    pub memory: MemorySink,
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
    pub memory: MemorySink,
    /// What it boils down to.
    pub profile: Profile,
}

fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AutoError {
    AutoError::Bench(error.into())
}

impl Bench for Lab<'_> {
    fn stored(&self) -> StoredPlan<'_> {
        StoredPlan { steps: &[], skipped: &[], notes: &[] }
    }

    fn perform(&mut self, phase: AutoPhase) -> Result<(), AutoError> {
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
        let mut kept = Kept { sink: &mut self.memory, probing: self.probing };
        let finished =
            execute_steps(&self.plan, steps, self.device, &mut kept, &mut resetter, control, &mut |_| {});
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
    let probing = &Probing::of(None);
    let mut lab = Lab { device, probing, stop, plan, memory: MemorySink::default(), before_main };
    let calibration = auto::measure(options, AutoExtent::Whole, &mut lab)?;
    let Lab { plan, memory, .. } = lab;
    let profile = profile_of(&plan, &memory, &calibration, options.plan.seed)?;
    Ok(Measured { calibration, plan, memory, profile })
}

/// The parameters that the automatic method finds on a device of a session
/// (`session::visit`), with the calibration runs beside which something else was active.
///
/// # Errors
/// What the device or the method says.
pub fn parameters(
    options: &AutoOptions,
    (device, probing): (&mut dyn Device, &Probing),
    stop: &Stop,
) -> anyhow::Result<Calibration> {
    let plan = auto::first_plan(options);
    let before: Vec<_> = probing.disturbed();
    let mut lab = Lab { device, probing, stop, plan, memory: MemorySink::default(), before_main: &mut || {} };
    let mut found = auto::measure(options, AutoExtent::Parameters, &mut lab)?;
    found.interference = probing.disturbed();
    found.interference.retain(|of| !before.contains(of));
    Ok(found)
}

/// The profile of runs in memory.
fn profile_of(
    plan: &Plan,
    memory: &MemorySink,
    calibration: &Calibration,
    seed: u64,
) -> anyhow::Result<Profile> {
    let options = Options::of(&plan.target, Asked::RUN);
    let mut manifest = Manifest::new(env!("CARGO_PKG_VERSION"), seed, options);
    manifest.target.summary = Some(plan.target.clone());
    let contents = StoreContents {
        dir: PathBuf::new(),
        manifest,
        plan: Some(plan.clone()),
        calibration: Some(calibration.clone()),
        runs: memory.rows().to_vec(),
        damage: Vec::new(),
        plan_edited: false,
        sums: Vec::new(),
    };
    let records =
        |row: &RunRow| -> Result<Vec<IoRecord>, StoreError> { Ok(memory.records(row.spec.id).to_vec()) };
    profile::build_from(&contents, &records).map_err(|e| anyhow!(e))
}
