//! The session of a program on the data face: locate, permit, claim, open, watch,
//! measure, record and close, as of every other command, for each of its devices.
//!
//! How: a command says which devices its program uses, what for, and which steps it
//! has ([`ProgramWish`]). Everything that can be refused is refused first; then the folder is
//! claimed, where one is named, and the devices are opened ([`begin`]). A step is a
//! function that takes the devices ([`ProgramSession::step`]): its requests are
//! recorded with probes beside them, as a run of each device. A step that fails or is
//! interrupted leaves no run, and a program that was cut off begins anew. What befell a
//! step is kept and said as of any run, and a step that can be done again
//! ([`ProgramSession::repeatable`]) is measured again as the executor does with runs.
//! The executor does not walk steps: it knows the measured face of one device, and a
//! step is a function on the data faces of several.

use super::{Order, Probing, Shown, told};
use crate::interrupt;
use crate::printable::word;
use crate::target::program::{Clocks, FoundEndpoint, OpenEndpoint, refuse_shared_bytes};
use crate::target::{self, Access, Place, claim_output};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::ops::Range;
use std::path::PathBuf;
use uflip_device::blocks::{TracedEnd, traced};
use uflip_device::identity::{DevNumber, SysPaths, disk_of, largest_request};
use uflip_device::{Blocks, Bytes, Incidents, Nanos, Recorder, RunEnd, unix_now};
use uflip_measure::Plan;
use uflip_measure::execute::{ATTEMPTS, measured_again};
use uflip_measure::program::{PlannedStep, ProgramDevice, ProgramPlan, runs_of};
use uflip_measure::run::{RunOutcome, RunSpec};
use uflip_measure::state::Forget;
use uflip_store::manifest::{Asked, TargetTold};
use uflip_store::{Claim, Durability, Manifest, Options, Store, Together};

/// A device that a program is to use.
pub struct UsedDevice {
    /// What the program calls it: `from`.
    pub role: &'static str,
    /// What was named.
    pub found: FoundEndpoint,
    /// What may be written, in bytes; None where it is only read.
    pub writes: Option<Range<u64>>,
    /// What the program knows that makes its results less sound, in words.
    pub warnings: Vec<String>,
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
    kept: Option<KeptIn>,
    /// What makes its results less sound, in words; all of it was said.
    pub warnings: Vec<String>,
}

/// Where runs are kept.
struct KeptIn {
    dir: PathBuf,
    store: Store,
    /// As it was written last.
    manifest: Manifest,
}

/// Begins: refuses, claims and opens, in this order.
///
/// # Errors
/// A refusal, or what the system says.
pub fn begin<const N: usize>(order: &Order, wish: ProgramWish<N>) -> anyhow::Result<ProgramSession<N>> {
    let ProgramWish { uses, requests, seed, arguments, steps } = wish;
    refuse(&uses, &order.consents)?;
    uses.iter().try_for_each(|uses| uses.found.refuse_among_results(order.output.as_deref()))?;
    interrupt::listen_with("stopping; what is written by then stays")?;
    let claim = order.output.as_deref().map(|dir| claim_output(Some(dir))).transpose()?;
    let clocks = Clocks::of(uses.iter().map(|uses| &uses.found));
    let mut devices = Vec::with_capacity(N);
    for UsedDevice { found, writes, warnings, .. } in &uses {
        let access = if writes.is_some() { Access::Write(&order.consents) } else { Access::Read };
        let mut endpoint = found.open(access, requests, seed, &clocks)?;
        endpoint.warnings.extend(warnings.iter().cloned());
        devices.push(use_device(endpoint));
    }
    let program = planned(order.command, &uses, &devices, arguments, steps);
    let plan = program.plan(seed);
    let kept = claim.map(|claim| keep(claim, order, &program, &plan, &uses, &devices)).transpose()?;
    let mut warnings = Vec::new();
    for (UsedDevice { found, writes, .. }, device) in uses.iter().zip(&devices) {
        device.endpoint.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
        warnings.extend(device.endpoint.warnings.iter().cloned());
        if let (Some(range), Some(named)) = (writes, found.on_a_path()) {
            let bytes = Bytes(range.end - range.start);
            crate::say!("{}", target::will_be_written(range, bytes, found.geometry.capacity, named));
        }
    }
    if let Some(KeptIn { dir, .. }) = &kept {
        crate::say!("results go to {}", dir.display());
    }
    let devices: Option<[Using; N]> = devices.try_into().ok();
    let devices = devices.context("a device is missing")?;
    let driven = devices.each_ref().map(|device| device.endpoint.driven.clone());
    let (command, shown) = (order.command, order.shown);
    Ok(ProgramSession { command, shown, clocks, driven, plan, devices, kept, warnings })
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
    let written = uses.iter().filter(|uses| uses.writes.is_some());
    let places: Vec<&Place> = written.filter_map(|uses| uses.found.place()).collect();
    target::refuse_other_consents(&places, consents)
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
) -> anyhow::Result<KeptIn> {
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
    Ok(KeptIn { dir, store, manifest })
}

/// A step that was done and is not kept yet.
struct Tried<T> {
    value: T,
    begun: Option<Together>,
    /// Of each device.
    outcomes: Vec<RunOutcome>,
    failed: u64,
}

impl<T> Tried<T> {
    /// What befell the step, of whichever device anything did.
    fn incidents(&self) -> Incidents {
        let mut all = self.outcomes.iter().map(|outcome| outcome.end.incidents);
        all.find(|incidents| !incidents.is_none()).unwrap_or_default()
    }
}

/// Tries until nothing took time from a try, [`ATTEMPTS`] times at most; gives the last
/// one and how many there were. `again` is told what befell the one before.
fn undisturbed<R>(
    mut attempt: impl FnMut() -> anyhow::Result<R>,
    incidents: impl Fn(&R) -> Incidents,
    again: impl Fn(Incidents, u32),
) -> anyhow::Result<(R, u32)> {
    let mut number = 1;
    loop {
        let tried = attempt()?;
        let befell = incidents(&tried);
        if !measured_again(&befell, number) {
            return Ok((tried, number));
        }
        number += 1;
        // Its unfinished files go before the next one's are made.
        drop(tried);
        again(befell, number);
    }
}

impl<const N: usize> ProgramSession<N> {
    /// Does the step called `name`, once. Where `what` fails, nothing of it is kept.
    ///
    /// # Errors
    /// What `what` says, or that its runs cannot be kept.
    pub fn step<T>(
        &mut self,
        name: &str,
        what: impl FnOnce([&mut dyn Blocks; N]) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let tried = self.attempt(name, what)?;
        self.keep_step(name, tried, 1)
    }

    /// The same of a step that comes to the same when it is done again. Where something
    /// took time from it and it is to be kept, it is, up to [`ATTEMPTS`] times; what
    /// nobody keeps is not done twice.
    ///
    /// # Errors
    /// As of [`ProgramSession::step`].
    pub fn repeatable<T>(
        &mut self,
        name: &str,
        mut what: impl FnMut([&mut dyn Blocks; N]) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        if self.kept.is_none() {
            return self.step(name, what);
        }
        let again = |incidents: Incidents, number: u32| {
            crate::say!("{name}: {incidents}: measuring it again, attempt {number} of {ATTEMPTS}");
        };
        let (tried, attempts) = undisturbed(|| self.attempt(name, &mut what), Tried::incidents, again)?;
        self.keep_step(name, tried, attempts)
    }

    fn attempt<T>(
        &mut self,
        name: &str,
        what: impl FnOnce([&mut dyn Blocks; N]) -> anyhow::Result<T>,
    ) -> anyhow::Result<Tried<T>> {
        let runs: Vec<RunSpec> = runs_of(&self.plan, name).cloned().collect();
        let begun = self.kept.as_ref().map(|kept| kept.store.begin_together(&runs)).transpose()?;
        let recorders = std::array::from_fn(|at| match &begun {
            Some(begun) => begun.recorder(at),
            None => &Forget as &dyn Recorder,
        });
        let started = self.devices.each_ref().map(|device| {
            let clock = device.endpoint.blocks.clock();
            (clock.now(), (!clock.is_virtual()).then(unix_now))
        });
        let samplers = self.devices.each_ref().map(|device| {
            let blocks = &device.endpoint.blocks;
            device.probing.before(blocks.counters(), blocks.clock().is_virtual())
        });
        let faces = self.devices.each_mut().map(|device| &mut *device.endpoint.blocks as &mut dyn Blocks);
        let run_on = |recorders: [&dyn Recorder; N]| traced(faces, recorders, what);
        let (result, ends) = Probing::beside(samplers, recorders, run_on);
        if std::io::stderr().is_terminal() {
            crate::say_part!("\r{:40}\r", "");
        }
        let value = result?;
        let outcomes = self.outcomes(&runs, started, &ends);
        let failed = ends.iter().map(|end| end.failed).max().unwrap_or(0);
        Ok(Tried { value, begun, outcomes, failed })
    }

    /// Keeps a step's runs, and says what befell them.
    fn keep_step<T>(&mut self, name: &str, tried: Tried<T>, attempts: u32) -> anyhow::Result<T> {
        let incidents = tried.incidents();
        let Tried { value, begun, mut outcomes, failed } = tried;
        if failed > 0 {
            bail!("{failed} requests failed, so that nothing of {name} is kept");
        }
        if !incidents.is_none() {
            crate::say!("warning: {name}: {incidents}; its times are not the devices' alone");
        }
        outcomes.iter_mut().for_each(|outcome| outcome.attempts = attempts);
        self.keep_runs(begun, &outcomes)?;
        Ok(value)
    }

    /// What each device's run came to, with what the probes say of it.
    fn outcomes(
        &self,
        runs: &[RunSpec],
        started: [(Nanos, Option<u64>); N],
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
        let (Some(kept), Some(begun)) = (&mut self.kept, begun) else { return Ok(()) };
        kept.store.commit_together(begun, outcomes)?;
        Ok(())
    }

    /// Says what was found to make the results less sound, and keeps it with them.
    ///
    /// # Errors
    /// Where it cannot be kept.
    pub fn found(&mut self, warning: String) -> anyhow::Result<()> {
        crate::say!("warning: {warning}");
        self.warnings.push(warning.clone());
        if let Some(KeptIn { store, manifest, .. }) = &mut self.kept {
            manifest.target.warnings.push(warning);
            store.replace_manifest(manifest)?;
        }
        Ok(())
    }

    /// Ends the session that came to `worked`; gives that and the folder, with a
    /// report in it. Also where it failed, what was written is noted.
    ///
    /// # Errors
    /// What went wrong.
    pub fn close<T>(self, worked: anyhow::Result<T>) -> anyhow::Result<(T, Option<PathBuf>)> {
        let ProgramSession { command, shown, devices, mut kept, .. } = self;
        let synced = kept.as_mut().map_or(Ok(()), |kept| kept.store.sync());
        let left = kept.map(|KeptIn { dir, store, .. }| (dir, store.len()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Tries that were stopped for so many seconds each; gives how many there were, what
    /// was told, and what befell the one that is kept.
    fn tried(stops: &[u64]) -> (u32, Vec<u32>, Incidents) {
        let of = |seconds: &u64| Incidents {
            stopped: (*seconds > 0).then(|| Nanos::from_secs(*seconds)),
            layout_changed: true,
            ..Incidents::default()
        };
        let (mut stops, told) = (stops.iter().map(of), RefCell::new(Vec::new()));
        let attempt = || stops.next().context("no more tries are to be made");
        let again = |_, number| told.borrow_mut().push(number);
        let (kept, attempts) = undisturbed(attempt, |incidents| *incidents, again).unwrap();
        (attempts, told.into_inner(), kept)
    }

    #[test]
    fn a_step_that_time_was_taken_from_is_measured_again_and_the_last_one_is_kept() {
        let stopped = |(attempts, told, kept): (u32, Vec<u32>, Incidents)| (attempts, told, kept.stopped);
        // What befell it but took no time is no reason.
        assert_eq!(stopped(tried(&[0])), (1, vec![], None));
        assert_eq!(stopped(tried(&[3, 0])), (2, vec![2], None));
        let all = vec![2, 3];
        assert_eq!(stopped(tried(&[3, 2, 1])), (3, all, Some(Nanos::from_secs(1))));
    }
}
