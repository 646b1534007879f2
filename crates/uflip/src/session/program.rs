//! The session of a program on the data face: locate, permit, claim, open, watch,
//! measure, record and close, as of every other command, for each of its devices.
//!
//! How: a command says which devices its program uses, what for, and which steps it
//! has ([`ProgramWish`]). Everything that can be refused is refused first; then the folder is
//! claimed, where one is named, and the devices are opened ([`begin`]). A step is a
//! function that takes the devices ([`ProgramSession::step`]): its requests are
//! recorded with probes beside them, as a run of each device. A step that fails or is
//! interrupted leaves no run, and a program that was cut off begins anew.

use super::{Order, Probing, Shown, told};
use crate::interrupt;
use crate::printable::word;
use crate::target::program::{Clocks, FoundEndpoint, OpenEndpoint, refuse_shared_bytes};
use crate::target::{self, Access, claim_output};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::ops::Range;
use std::path::PathBuf;
use uflip_device::blocks::{TracedEnd, traced};
use uflip_device::identity::{DevNumber, SysPaths, disk_of, largest_request};
use uflip_device::{Blocks, Bytes, Recorder, RunEnd, unix_now};
use uflip_measure::Plan;
use uflip_measure::program::{PlannedStep, ProgramDevice, ProgramPlan, runs_of};
use uflip_measure::run::{RunOutcome, RunSpec};
use uflip_measure::state::Forget;
use uflip_store::manifest::{Asked, TargetTold};
use uflip_store::{Claim, Durability, Options, Store, Together};

/// A device that a program is to use.
pub struct UsedDevice {
    /// What the program calls it: `from`.
    pub role: &'static str,
    /// What was named.
    pub found: FoundEndpoint,
    /// What may be written, in bytes; None where it is only read.
    pub writes: Option<Range<u64>>,
}

/// What a program is asked for.
pub struct ProgramWish<const N: usize> {
    /// Its devices, in the order in which its steps take them.
    pub uses: [UsedDevice; N],
    /// Requests under way on each at most.
    pub requests: usize,
    /// Of simulated devices.
    pub seed: u64,
    /// What it was asked for besides, by names of its own.
    pub arguments: BTreeMap<String, String>,
    /// What it does, in order.
    pub steps: Vec<PlannedStep>,
}

/// A device in use.
struct Using {
    endpoint: OpenEndpoint,
    probing: Probing,
    /// The disk beneath.
    disk: Option<DevNumber>,
}

/// A program at work.
pub struct ProgramSession<const N: usize> {
    command: &'static str,
    shown: Shown,
    /// The clocks of its devices.
    pub clocks: Clocks,
    /// How each device is driven, in words.
    pub driven: [String; N],
    plan: Plan,
    devices: [Using; N],
    /// Where its runs are kept, where anybody wants that.
    kept: Option<(PathBuf, Store)>,
}

/// Begins: refuses, claims and opens, in this order.
///
/// # Errors
/// A refusal, or what the system says.
pub fn begin<const N: usize>(order: &Order, wish: ProgramWish<N>) -> anyhow::Result<ProgramSession<N>> {
    let ProgramWish { uses, requests, seed, arguments, steps } = wish;
    refuse(&uses, &order.consents)?;
    interrupt::listen_with("stopping; what is written by then stays")?;
    let claim = order.output.as_deref().map(|dir| claim_output(Some(dir))).transpose()?;
    let clocks = Clocks::of(uses.iter().map(|uses| &uses.found));
    let mut devices = Vec::with_capacity(N);
    for UsedDevice { found, writes, .. } in &uses {
        let access = if writes.is_some() { Access::Write(&order.consents) } else { Access::Read };
        devices.push(use_device(found.open(access, requests, seed, &clocks)?));
    }
    let program = planned(order.command, &uses, &devices, arguments, steps);
    let plan = program.plan(seed);
    let kept = claim.map(|claim| keep(claim, order, &program, &plan, &uses, &devices)).transpose()?;
    for (UsedDevice { found, writes, .. }, device) in uses.iter().zip(&devices) {
        device.endpoint.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
        if let (Some(range), Some(named)) = (writes, found.on_a_path()) {
            let bytes = Bytes(range.end - range.start);
            crate::say!("{}", target::will_be_written(range, bytes, found.geometry.capacity, named));
        }
    }
    if let Some((dir, _)) = &kept {
        crate::say!("results go to {}", dir.display());
    }
    let devices: Option<[Using; N]> = devices.try_into().ok();
    let devices = devices.context("a device is missing")?;
    let driven = devices.each_ref().map(|device| device.endpoint.driven.clone());
    Ok(ProgramSession { command: order.command, shown: order.shown, clocks, driven, plan, devices, kept })
}

/// Refuses what cannot or must not be done, before anything is made.
fn refuse(uses: &[UsedDevice], consents: &[String]) -> anyhow::Result<()> {
    for (at, one) in uses.iter().enumerate() {
        let written = |other: &&UsedDevice| one.writes.is_some() || other.writes.is_some();
        for other in uses[at + 1..].iter().filter(written) {
            refuse_shared_bytes(&one.found, &other.found)?;
        }
    }
    for UsedDevice { found, .. } in uses.iter().filter(|uses| uses.writes.is_some()) {
        found.may_be_written(consents)?;
    }
    Ok(())
}

fn use_device(endpoint: OpenEndpoint) -> Using {
    let target = endpoint.target.as_ref();
    let disk = target.and_then(|target| disk_of(target.path()?, &SysPaths::default()));
    let probing = Probing::of(target);
    Using { endpoint, probing, disk }
}

/// The program as planned on its open devices.
fn planned(
    name: &'static str,
    uses: &[UsedDevice],
    devices: &[Using],
    mut arguments: BTreeMap<String, String>,
    steps: Vec<PlannedStep>,
) -> ProgramPlan {
    let device = |(uses, device): (&UsedDevice, &Using)| ProgramDevice {
        role: uses.role,
        target: uses.found.named.to_string(),
        geometry: device.endpoint.blocks.geometry(),
    };
    let devices: Vec<ProgramDevice> = uses.iter().zip(devices).map(device).collect();
    arguments.extend(devices.iter().map(|device| (device.role.to_string(), device.target.clone())));
    ProgramPlan { name, arguments, devices, steps }
}

/// Makes the folder: manifest and plan.
fn keep(
    claim: Claim,
    order: &Order,
    program: &ProgramPlan,
    plan: &Plan,
    uses: &[UsedDevice],
    devices: &[Using],
) -> anyhow::Result<(PathBuf, Store)> {
    let asked = Asked::Program { name: program.name.to_string(), arguments: program.arguments.clone() };
    let options = Options { chosen: Some(order.typed.chosen(None)), ..Options::of(&plan.target, asked) };
    let one = |(uses, Using { endpoint, .. }): (&UsedDevice, &Using)| {
        let OpenEndpoint { driven, target, facts, summary, warnings, .. } = endpoint;
        let summary = format!("{summary}; {driven}");
        let of = match target {
            Some(target) => super::of_target(summary, target, facts, warnings),
            None => {
                let name = Some(uses.found.named.to_string());
                TargetTold { summary: Some(summary), name, ..TargetTold::default() }
            }
        };
        (uses.role.to_string(), of)
    };
    let warnings = devices.iter().flat_map(|device| device.endpoint.warnings.clone()).collect();
    let told = TargetTold {
        summary: Some(plan.target.clone()),
        name: Some(plan.target.clone()),
        warnings,
        devices: uses.iter().zip(devices).map(one).collect(),
        ..TargetTold::default()
    };
    let manifest = super::manifest(plan.seed, told, options);
    let dir = claim.dir().to_path_buf();
    let mut store = Store::create_in(claim, &manifest, plan)?;
    if devices.iter().all(|device| device.endpoint.blocks.clock().is_virtual()) {
        store.set_durability(Durability::RELAXED);
    }
    Ok((dir, store))
}

impl<const N: usize> ProgramSession<N> {
    /// Does the step called `name`. Where `what` fails, nothing of it is kept.
    ///
    /// # Errors
    /// What `what` says, or that its runs cannot be kept.
    pub fn step<T>(
        &mut self,
        name: &str,
        what: impl FnOnce([&mut dyn Blocks; N]) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let runs: Vec<RunSpec> = runs_of(&self.plan, name).cloned().collect();
        let begun = self.kept.as_ref().map(|(_, store)| store.begin_together(&runs)).transpose()?;
        let recorders = std::array::from_fn(|at| match &begun {
            Some(begun) => begun.recorder(at),
            None => &Forget as &dyn Recorder,
        });
        let started = self.devices.each_ref().map(|device| {
            let clock = device.endpoint.blocks.clock();
            (clock.now(), (!clock.is_virtual()).then(unix_now))
        });
        let look = |device: &Using| {
            let blocks = &device.endpoint.blocks;
            device.probing.before(blocks.counters(), blocks.clock().is_virtual())
        };
        let samplers = self.devices.iter().flat_map(look).collect();
        let faces = self.devices.each_mut().map(|device| &mut *device.endpoint.blocks as &mut dyn Blocks);
        let (result, ends) = Probing::beside(samplers, || traced(faces, recorders, what));
        if std::io::stderr().is_terminal() {
            crate::say_part!("\r{:40}\r", "");
        }
        let value = result?;
        let outcomes = self.outcomes(&runs, started, &ends);
        if let Some(failed) = ends.iter().map(|end| end.failed).find(|failed| *failed > 0) {
            bail!("{failed} requests failed, so that nothing of {name} is kept");
        }
        self.keep_runs(begun, &outcomes)?;
        Ok(value)
    }

    /// What each device's run came to, with what the probes say of it.
    fn outcomes(
        &self,
        runs: &[RunSpec],
        started: [(uflip_device::Nanos, Option<u64>); N],
        ends: &[TracedEnd; N],
    ) -> Vec<RunOutcome> {
        let of = |(at, run): (usize, &RunSpec)| {
            let (device, (started, started_unix_ns)) = (&self.devices[at], started[at]);
            device.probing.note(run.id, &self.on_disk_of(at, ends), device.endpoint.blocks.counters());
            let (end, probes) = (ends[at].end, device.probing.take());
            RunOutcome { end, started, started_unix_ns, attempts: 1, probes }
        };
        runs.iter().enumerate().map(of).collect()
    }

    /// What the program did on the disk of one of its devices: what others of its
    /// devices lie on is its own work, too, and large requests are split there.
    fn on_disk_of(&self, at: usize, ends: &[TracedEnd; N]) -> RunEnd {
        let disk = self.devices[at].disk;
        let Some(number) = disk else { return ends[at].end };
        let largest = largest_request(number, &SysPaths::default());
        let own = self.devices.iter().zip(ends).filter(|(device, _)| device.disk == disk);
        own.fold(RunEnd::default(), |all, (_, TracedEnd { end, bytes, .. })| RunEnd {
            ios: all.ios + end.ios + largest.map_or(0, |largest| bytes.0 / largest.0),
            elapsed: all.elapsed.max(end.elapsed),
            ..all
        })
    }

    fn keep_runs(&mut self, begun: Option<Together>, outcomes: &[RunOutcome]) -> anyhow::Result<()> {
        let (Some((_, store)), Some(begun)) = (&mut self.kept, begun) else { return Ok(()) };
        store.commit_together(begun, outcomes)?;
        Ok(())
    }

    /// Ends the session that came to `worked`; gives that and the folder, with a
    /// report in it. Also where it failed, what was written is noted.
    ///
    /// # Errors
    /// What went wrong.
    pub fn close<T>(self, worked: anyhow::Result<T>) -> anyhow::Result<(T, Option<PathBuf>)> {
        let ProgramSession { command, shown, devices, mut kept, .. } = self;
        let synced = kept.as_mut().map_or(Ok(()), |(_, store)| store.sync());
        let left = kept.map(|(dir, store)| (dir, store.len()));
        let disturbed: Vec<_> = devices.iter().flat_map(|device| device.probing.disturbed()).collect();
        // What is written goes before what is read.
        let closed = devices.into_iter().rev().map(|device| device.endpoint.close());
        let closed: Vec<anyhow::Result<()>> = closed.collect();
        if shown != Shown::Nothing {
            disturbed.iter().for_each(|found| crate::say!("warning: {}", told(found)));
        }
        let worked = worked.and_then(|value| Ok(synced.map(|()| value)?));
        let value = match &left {
            Some((dir, runs)) => worked.with_context(|| {
                let dir = word(&dir.to_string_lossy());
                format!("{runs} runs are kept in {dir}; {command} is begun anew, with another -o")
            }),
            None => worked,
        }?;
        closed.into_iter().collect::<anyhow::Result<()>>()?;
        let dir = left.map(|(dir, _)| dir);
        dir.as_deref().map_or(Ok(()), super::conclude::make_report)?;
        Ok((value, dir))
    }
}

/// Tells a terminal how far a step is, each percent once; the step's end clears it.
pub fn progress(what: &'static str, all: Bytes) -> impl FnMut(Bytes) {
    let terminal = std::io::stderr().is_terminal();
    let mut last = 0;
    move |done: Bytes| {
        let percent = u128::from(done.0) * 100 / u128::from(all.0.max(1));
        if terminal && percent > last {
            last = percent;
            crate::say_part!("\r  {percent:3} % {what}   ");
        }
    }
}
