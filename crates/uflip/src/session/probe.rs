//! What stands beside a run: asked before and after it and, where it samples,
//! during it: in real time on a thread of its own, never in the timed loop; in virtual
//! time at intervals of that, with what the device has counted by then.
//!
//! How: a session runs everything on a [`Probed`] device. What the probes say of
//! a run goes into its outcome on the way to the store ([`Kept`]), so that every
//! kind of run has it. A new probe is a file here, a line in [`Probing::of`] and a
//! field of [`Probes`].

mod counters;
mod interference;

pub use interference::told;

use crate::target::Target;
use counters::OwnCounters;
use interference::Interference;
use std::cell::{Cell, RefCell};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use uflip_device::{
    Chunk, Counters, Device, DeviceError, Geometry, Nanos, Reading, Recorder, RunEnd, RunLimits, Snapshot,
    Stop, Stream,
};
use uflip_measure::auto::interference::Disturbed;
use uflip_measure::run::{Probes, RunOutcome, RunSpec, RunStats, Sink, SinkError};

/// Something that stands beside runs.
pub trait Probe {
    /// A run is about to begin; `counters` is what the device has counted so far.
    fn before(&mut self, counters: Option<Counters>);

    /// What it does while the run goes on, in virtual time or in real time; nothing
    /// where it does not sample.
    fn sampler(&self, is_virtual: bool) -> Option<Sampler>;

    /// Run `run` came to `end`, and the device to these counters; what there is to
    /// say goes into `said`.
    fn after(&mut self, run: u32, end: &RunEnd, counters: Option<Counters>, said: &mut Probes);
}

/// What is done at intervals during a run.
pub struct Sampler {
    /// The interval, on the device's clock.
    pub every: Nanos,
    /// What is done: in real time first when the run begins, and without a reading, as a
    /// device at work is not asked; in virtual time with one, at the first completion at
    /// or after each interval's end.
    pub sample: Box<dyn FnMut(Option<Reading>) + Send>,
}

/// What samples during one run.
pub struct Samplers {
    all: Vec<Sampler>,
    is_virtual: bool,
}

/// Hands a run's records on, and its readings to the samplers.
struct Sampled<'a> {
    recorder: &'a dyn Recorder,
    every: Option<Nanos>,
    samplers: Mutex<Vec<Sampler>>,
}

impl Recorder for Sampled<'_> {
    fn fresh(&self) -> Chunk {
        self.recorder.fresh()
    }
    fn exchange(&self, full: Chunk) -> Chunk {
        self.recorder.exchange(full)
    }
    fn finish(&self, last: Chunk) {
        self.recorder.finish(last);
    }
    fn readings_every(&self) -> Option<Nanos> {
        self.every
    }
    fn reading(&self, reading: Reading) {
        let mut samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner);
        samplers.iter_mut().for_each(|sampler| (sampler.sample)(Some(reading)));
    }
}

/// The probes of one session.
pub struct Probing {
    probes: RefCell<Vec<Box<dyn Probe>>>,
    /// The run in progress; None where what the device does is none.
    run: Cell<Option<u32>>,
    said: RefCell<Probes>,
    disturbed: RefCell<Vec<Disturbed>>,
}

impl Probing {
    /// All there are for `target`; None is memory.
    pub fn of(target: Option<&Target>) -> Probing {
        let mut probes: Vec<Box<dyn Probe>> = vec![Box::new(OwnCounters::default())];
        probes.extend(target.and_then(Interference::of).map(|probe| Box::new(probe) as Box<dyn Probe>));
        Probing::with(probes)
    }

    fn with(probes: Vec<Box<dyn Probe>>) -> Probing {
        let (said, disturbed) = (RefCell::default(), RefCell::default());
        Probing { probes: RefCell::new(probes), run: Cell::new(None), said, disturbed }
    }

    /// The next thing the device runs is this run; None for anything else.
    pub fn next(&self, run: Option<u32>) {
        self.run.set(run);
        self.said.take();
    }

    /// What was said of the run that ended last.
    pub fn take(&self) -> Probes {
        self.said.take()
    }

    /// Runs that were disturbed, also in sessions before.
    pub fn disturbed(&self) -> Vec<Disturbed> {
        self.disturbed.borrow().clone()
    }

    /// What was seen in sessions before; what is known of a run stays.
    pub fn remember(&self, before: Vec<Disturbed>) {
        let mut known = self.disturbed.borrow_mut();
        for found in before {
            if !known.iter().any(|of| of.run == found.run) {
                known.push(found);
            }
        }
    }

    /// Has the probes look before a run; gives what samples during it.
    pub(super) fn before(&self, counters: Option<Counters>, is_virtual: bool) -> Samplers {
        let mut probes = self.probes.borrow_mut();
        probes.iter_mut().for_each(|probe| probe.before(counters));
        Samplers { all: probes.iter().filter_map(|probe| probe.sampler(is_virtual)).collect(), is_virtual }
    }

    /// Runs `what` of devices with their samplers beside it; it is given the recorders,
    /// one for each device.
    pub(super) fn beside<T, const N: usize>(
        samplers: [Samplers; N],
        recorders: [&dyn Recorder; N],
        what: impl FnOnce([&dyn Recorder; N]) -> T,
    ) -> T {
        let (mut threads, mut recorders) = (Vec::new(), recorders.into_iter());
        let sampled = samplers.map(|Samplers { all, is_virtual }| {
            let (within, beside) = if is_virtual { (all, Vec::new()) } else { (Vec::new(), all) };
            threads.extend(beside);
            let recorder = recorders.next().expect("as many as samplers");
            let every = within.iter().map(|sampler| sampler.every).min();
            Sampled { recorder, every, samplers: Mutex::new(within) }
        });
        std::thread::scope(|scope| {
            let begin = |mut sampler: Sampler| {
                let (end, ended) = channel::<()>();
                let beside = move || {
                    (sampler.sample)(None);
                    while ended.recv_timeout(sampler.every.into()) == Err(RecvTimeoutError::Timeout) {
                        (sampler.sample)(None);
                    }
                };
                // Where there is no thread to be had nothing is sampled.
                let _ = std::thread::Builder::new().spawn_scoped(scope, beside);
                end
            };
            let ends: Vec<_> = threads.into_iter().map(begin).collect();
            let result = what(sampled.each_ref().map(|recorder| recorder as &dyn Recorder));
            drop(ends);
            result
        })
    }

    /// Has the probes look after a run.
    pub(super) fn note(&self, run: u32, end: &RunEnd, counters: Option<Counters>) {
        let mut said = Probes::default();
        self.probes.borrow_mut().iter_mut().for_each(|probe| probe.after(run, end, counters, &mut said));
        let mut disturbed = self.disturbed.borrow_mut();
        // Of an earlier attempt, which is not kept.
        disturbed.retain(|of| of.run != run);
        disturbed.extend(said.interference.clone().filter(|found| found.matters(end.ios)));
        *self.said.borrow_mut() = said;
    }
}

/// A device with probes beside its runs.
pub struct Probed<'a> {
    /// The device.
    pub device: &'a mut dyn Device,
    /// The probes.
    pub probing: &'a Probing,
}

impl Device for Probed<'_> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        let Some(run) = self.probing.run.get() else {
            return self.device.run(streams, recorder, limits);
        };
        let samplers = self.probing.before(self.device.counters(), self.device.is_virtual());
        let device = &mut self.device;
        let run_on = |[recorder]: [&dyn Recorder; 1]| device.run(streams, recorder, limits);
        let end = Probing::beside([samplers], [recorder], run_on)?;
        self.probing.note(run, &end, self.device.counters());
        Ok(end)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        self.device.idle(pause, stop);
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn is_virtual(&self) -> bool {
        self.device.is_virtual()
    }

    fn snapshot(&mut self, ask: Snapshot) -> bool {
        self.device.snapshot(ask)
    }

    fn counters(&self) -> Option<Counters> {
        self.device.counters()
    }
}

/// A sink that keeps with each run what the probes say of it.
pub struct Kept<'a> {
    /// Where runs are kept.
    pub sink: &'a mut dyn Sink,
    /// The probes.
    pub probing: &'a Probing,
}

impl Sink for Kept<'_> {
    fn has(&self, id: u32) -> bool {
        self.sink.has(id)
    }

    fn begin(&mut self, run: &RunSpec) -> Result<(), SinkError> {
        self.probing.next(Some(run.id));
        self.sink.begin(run)
    }

    fn recorder(&self) -> &dyn Recorder {
        self.sink.recorder()
    }

    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError> {
        let probes = self.probing.take();
        self.probing.next(None);
        self.sink.commit(run, &RunOutcome { probes, ..outcome.clone() })
    }

    fn abandon(&mut self) {
        self.probing.next(None);
        self.sink.abandon();
    }
}

#[cfg(test)]
mod tests;
