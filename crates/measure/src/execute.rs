//! Walking through a plan: resets, pauses and runs, one after the other.
//!
//! How: a run is begun in the sink, run on the device and committed, or
//! abandoned when the device fails or somebody asks to stop at once. Runs that
//! the sink already has are passed over, so the same call starts a plan and
//! resumes it. A pause is only made between two things done by this call. A
//! reset is done, also again, where a run before the next reset is missing.
//! A device in virtual time ends with its process, so that on one that is found
//! again nothing is passed over: kept runs are done again in their places, with
//! their resets and pauses, and not kept a second time. What a missing run meets
//! is then, bit for bit, what it would have met without the interruption. A
//! run that time was taken from (the process stopped, the machine suspended or
//! paused) is not kept but measured again, after its pause; the last of
//! [`ATTEMPTS`] is kept as it is and says what befell it.
//!
//! Source: paper 000/001, sections 4.1 to 4.3.

use crate::pattern::PatternError;
use crate::plan::summary::{ios_of, waits};
use crate::plan::{Plan, Step};
use crate::run::{Probes, RunOutcome, RunSpec, RunStats, Sink, SinkError};
use crate::state::{Forget, State};
use std::ops::Range;
use uflip_device::rng::derive_seed;
use uflip_device::{Device, DeviceError, Incidents, Nanos, RunEnd, RunLimits, Sequence, Stop};

/// How often a run is measured at most.
pub const ATTEMPTS: u32 = 3;

/// Whether a run that came to this is not kept but measured again, after `attempt`
/// attempts; the same for steps of programs.
pub fn measured_again(incidents: &Incidents, attempt: u32) -> bool {
    incidents.time_lost() && attempt < ATTEMPTS
}

/// The least time that a run gets under a [`Budget`].
pub const MIN_RUN_TIME: Nanos = Nanos::from_millis(20);

/// A limit on the device's time of all runs and pauses together. It shortens
/// runs on the way and leaves their specs as they are; state resets are not
/// shortened. As every run gets [`MIN_RUN_TIME`], a budget too small for that is
/// overrun. On a device in virtual time it is kept in that, and the shares are counted over
/// all runs to come, kept or not, so that a kept run is done again as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// From the call of [`execute`] on.
    pub total: Nanos,
}

/// How to execute, besides what.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    /// Asked once, it ends the plan after the run in progress; asked twice, at
    /// once.
    pub stop: &'a Stop,
    /// How long it may take.
    pub budget: Option<Budget>,
    /// Wall-clock time in ns since 1970, for the outcome of runs in real time.
    pub unix_now: fn() -> u64,
}

/// A state reset that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetRequest {
    /// To which state.
    pub state: State,
    /// For its random writes: derived from the plan's seed and the step.
    pub seed: u64,
}

/// Brings the device to a state; [`crate::state::enforce`] does it plainly.
/// `RunEnd::interrupted` says that the state was not reached.
pub type Resetter<'a> = dyn FnMut(ResetRequest, &mut dyn Device, &Stop) -> Result<RunEnd, DeviceError> + 'a;

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A run begins.
    RunStarted {
        /// Which.
        spec: &'a RunSpec,
        /// Its place among the plan's runs, from 0.
        index: usize,
        /// Runs in the plan.
        of: usize,
    },
    /// A run is kept.
    RunFinished {
        /// Which.
        spec: &'a RunSpec,
        /// Its statistics.
        stats: &'a RunStats,
        /// On the device's clock.
        elapsed: Nanos,
    },
    /// A run is not kept and begins anew.
    Again {
        /// Which.
        spec: &'a RunSpec,
        /// What befell it.
        incidents: Incidents,
        /// The attempt to come, from 2.
        attempt: u32,
    },
    /// The device is left alone.
    Pausing {
        /// For how long.
        nanos: Nanos,
    },
    /// The device is brought to a state.
    Resetting {
        /// Which.
        state: State,
    },
}

/// How the execution of a plan ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Runs done and kept by this call.
    pub done: u32,
    /// Runs that the sink had before.
    pub already_kept: u32,
    /// Runs that ended early because of a time limit.
    pub cut_short: u32,
    /// True where it was asked to stop before the plan's end.
    pub stopped: bool,
    /// On the device's clock.
    pub elapsed: Nanos,
}

/// The execution of a plan failed. What was committed before is kept.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The plan has a run that gives no IOs.
    #[error("run {run}: {source}")]
    Pattern {
        /// The run's number.
        run: u32,
        /// What is wrong with its pattern.
        source: PatternError,
    },
    /// The device failed.
    #[error("run {run}: {source}")]
    Device {
        /// The run's number.
        run: u32,
        /// What happened.
        source: DeviceError,
    },
    /// The device failed while its state was reset.
    #[error("reset to the {state} state: {source}")]
    Reset {
        /// Which state.
        state: State,
        /// What happened.
        source: DeviceError,
    },
    /// The run could not be kept.
    #[error("run {run} cannot be kept: {source}")]
    Sink {
        /// The run's number.
        run: u32,
        /// What happened.
        source: SinkError,
    },
}

/// Whether a step is a run that is not kept yet.
pub(crate) fn is_missing(step: &Step, sink: &dyn Sink) -> bool {
    matches!(step, Step::Run(spec) if !sink.has(spec.id))
}

/// Executes `plan` on `device`, from its first missing run on; in virtual time up
/// to the last missing one, as nothing meets what kept runs after it would leave.
///
/// # Errors
/// [`ExecuteError`] at the first run that fails; it is abandoned.
pub fn execute(
    plan: &Plan,
    device: &mut dyn Device,
    sink: &mut dyn Sink,
    resetter: &mut Resetter<'_>,
    control: Control<'_>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Finished, ExecuteError> {
    let end = match device.is_virtual() {
        true => plan.steps.iter().rposition(|step| is_missing(step, sink)).map_or(0, |last| last + 1),
        false => plan.steps.len(),
    };
    execute_steps(plan, 0..end, device, sink, resetter, control, progress)
}

/// The same for some of the plan's steps only, all of them. A pause among them is
/// made even where it comes first, unless it is the plan's first step.
///
/// # Errors
/// As [`execute`].
pub fn execute_steps(
    plan: &Plan,
    steps: Range<usize>,
    device: &mut dyn Device,
    sink: &mut dyn Sink,
    resetter: &mut Resetter<'_>,
    control: Control<'_>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Finished, ExecuteError> {
    let started = device.now();
    let steps = steps.start.min(plan.steps.len())..steps.end.min(plan.steps.len());
    let within = &plan.steps[..steps.end];
    let of = within[steps.start..].iter().filter(|step| matches!(step, Step::Run(_))).count();
    let nothing_stays = device.is_virtual();
    let finished = Finished::default();
    let mut walk = Walk { device, sink, control, progress, started, of, nothing_stays, finished };
    let mut index = 0;
    let mut pause = Nanos::ZERO;
    // Earlier steps were done before, perhaps a moment ago.
    let mut acted = steps.start > 0;
    for (number, step) in within.iter().enumerate().skip(steps.start) {
        match step {
            Step::Pause { nanos } => pause = (*nanos).max(pause),
            Step::Reset { state } => {
                let stretch = &within[number + 1..];
                if !walk.any_due(stretch) {
                    continue;
                }
                if walk.stop_asked() {
                    break;
                }
                let again = !walk.any_missing(stretch);
                walk.reset(request(plan, number, *state), resetter, again)?;
                acted = true;
            }
            Step::Run(spec) if walk.sink.has(spec.id) => {
                walk.finished.already_kept += 1;
                index += 1;
                if nothing_stays {
                    let pausing = std::mem::take(&mut pause);
                    let pausing = if acted { pausing } else { Nanos::ZERO };
                    walk.again(spec, &plan.steps[number..], pausing)?;
                    acted = true;
                }
            }
            Step::Run(spec) => {
                let pausing = std::mem::take(&mut pause);
                if acted {
                    walk.pause(pausing);
                }
                for attempt in 1..=ATTEMPTS {
                    if walk.stop_asked() {
                        break;
                    }
                    let to_come = if nothing_stays { &plan.steps[number..] } else { &within[number..] };
                    let limit = walk.time_limit(spec, to_come);
                    let Some(incidents) = walk.run(spec, index, limit, attempt)? else { break };
                    (walk.progress)(&Progress::Again { spec, incidents, attempt: attempt + 1 });
                    walk.pause(pausing);
                }
                if walk.finished.stopped {
                    break;
                }
                acted = true;
                index += 1;
            }
        }
        if walk.finished.stopped {
            break;
        }
    }
    walk.finished.elapsed = walk.device.now().saturating_sub(started);
    Ok(walk.finished)
}

/// What the reset that is step `number` of a plan asks for.
fn request(plan: &Plan, number: usize, state: State) -> ResetRequest {
    ResetRequest { state, seed: derive_seed(plan.seed, u64::MAX - number as u64) }
}

/// The state of an execution.
struct Walk<'a> {
    device: &'a mut dyn Device,
    sink: &'a mut dyn Sink,
    control: Control<'a>,
    progress: &'a mut dyn FnMut(&Progress<'_>),
    started: Nanos,
    of: usize,
    /// The device is as it is when made: in virtual time, which ends with its
    /// process.
    nothing_stays: bool,
    finished: Finished,
}

impl Walk<'_> {
    /// Whether to end before the next step, which is then noted.
    fn stop_asked(&mut self) -> bool {
        self.finished.stopped |= self.control.stop.after_this_run();
        self.finished.stopped
    }

    /// Whether a run up to the next reset is missing.
    fn any_missing(&self, steps: &[Step]) -> bool {
        let mut stretch = steps.iter().take_while(|step| !matches!(step, Step::Reset { .. }));
        stretch.any(|step| matches!(step, Step::Run(spec) if !self.sink.has(spec.id)))
    }

    /// Whether a run up to the next reset is to be done, or done again.
    fn any_due(&self, steps: &[Step]) -> bool {
        let mut stretch = steps.iter().take_while(|step| !matches!(step, Step::Reset { .. }));
        let any_run = self.nothing_stays && stretch.any(|step| matches!(step, Step::Run(_)));
        any_run || self.any_missing(steps)
    }

    /// Does a kept run again, with the pause before it and within the time that it had,
    /// and keeps nothing of it.
    fn again(&mut self, spec: &RunSpec, to_come: &[Step], pause: Nanos) -> Result<(), ExecuteError> {
        if self.stop_asked() {
            return Ok(());
        }
        let (run, stop) = (spec.id, self.control.stop);
        if pause > Nanos::ZERO {
            self.device.idle(pause, stop);
        }
        let time = self.time_limit(spec, to_come);
        let streams = spec.streams().map_err(|source| ExecuteError::Pattern { run, source })?;
        let whole = spec.sequence().map_err(|source| ExecuteError::Pattern { run, source })?;
        let limits = RunLimits { time, stop, sequence: whole.as_deref().map(Sequence) };
        let end = self.device.run(streams, &Forget, limits);
        self.finished.stopped |= end.map_err(|source| ExecuteError::Device { run, source })?.interrupted;
        Ok(())
    }

    /// Brings the device to a state; that of kept runs alone is not told of.
    fn reset(
        &mut self,
        request: ResetRequest,
        resetter: &mut Resetter<'_>,
        again: bool,
    ) -> Result<(), ExecuteError> {
        let state = request.state;
        if !again {
            (self.progress)(&Progress::Resetting { state });
        }
        let end = resetter(request, self.device, self.control.stop)
            .map_err(|source| ExecuteError::Reset { state, source })?;
        self.finished.stopped |= end.interrupted;
        Ok(())
    }

    /// The run's own limit or, under a budget, its pauses and a share of what is
    /// left after the pauses between and within all runs, if that is less: twice
    /// the even share, or three times that by the number of IOs, as most runs end
    /// by themselves and leave theirs to the others. Pauses within runs that take
    /// more than four fifths are cut like the rest.
    fn time_limit(&self, spec: &RunSpec, steps: &[Step]) -> Option<Nanos> {
        let Some(budget) = self.control.budget else { return spec.time_limit };
        let (mut runs, mut ios, mut pauses, mut pause, mut waited) = (0u64, 0u64, 0u64, 0u64, 0u64);
        for step in steps {
            match step {
                Step::Pause { nanos } => pause = nanos.0,
                Step::Run(run) if self.nothing_stays || !self.sink.has(run.id) => {
                    runs += 1;
                    ios = ios.saturating_add(ios_of(run));
                    pauses = pauses.saturating_add(std::mem::take(&mut pause));
                    waited = waited.saturating_add(waits(run).0);
                }
                _ => {}
            }
        }
        let spent = self.device.now().saturating_sub(self.started);
        let left = budget.total.saturating_sub(spent).saturating_sub(Nanos(pauses)).0;
        let of_ios = left.saturating_sub(waited).max(left / 5);
        let fulfilled = (left - of_ios) as f64 / waited.max(1) as f64;
        let own_waits = (waits(spec).0 as f64 * fulfilled.min(1.0)) as u64;
        let by_ios = 3.0 * ios_of(spec) as f64 / ios.max(1) as f64;
        let share = of_ios as f64 * by_ios.max(2.0 / runs.max(1) as f64).min(1.0);
        let share = Nanos((share as u64).saturating_add(own_waits)).max(MIN_RUN_TIME);
        Some(spec.time_limit.map_or(share, |own| own.min(share)))
    }

    /// Leaves the device alone before a run, unless asked to stop.
    fn pause(&mut self, pause: Nanos) {
        if pause > Nanos::ZERO && !self.stop_asked() {
            (self.progress)(&Progress::Pausing { nanos: pause });
            self.device.idle(pause, self.control.stop);
        }
    }

    /// Measures a run and keeps it, or tells what befell it where it has to be
    /// measured again.
    fn run(
        &mut self,
        spec: &RunSpec,
        index: usize,
        time: Option<Nanos>,
        attempt: u32,
    ) -> Result<Option<Incidents>, ExecuteError> {
        let run = spec.id;
        let streams = spec.streams().map_err(|source| ExecuteError::Pattern { run, source })?;
        let whole = spec.sequence().map_err(|source| ExecuteError::Pattern { run, source })?;
        (self.progress)(&Progress::RunStarted { spec, index, of: self.of });
        self.sink.begin(spec).map_err(|source| ExecuteError::Sink { run, source })?;
        let started = self.device.now();
        let started_unix_ns = (!self.device.is_virtual()).then(self.control.unix_now);
        let sequence = whole.as_deref().map(Sequence);
        let limits = RunLimits { time, stop: self.control.stop, sequence };
        let end = match self.device.run(streams, self.sink.recorder(), limits) {
            Ok(end) => end,
            Err(source) => {
                self.sink.abandon();
                return Err(ExecuteError::Device { run, source });
            }
        };
        if end.interrupted {
            self.sink.abandon();
            self.finished.stopped = true;
            return Ok(None);
        }
        if measured_again(&end.incidents, attempt) {
            self.sink.abandon();
            return Ok(Some(end.incidents));
        }
        let outcome =
            RunOutcome { end, started, started_unix_ns, attempts: attempt, probes: Probes::default() };
        let stats = self.sink.commit(spec, &outcome).map_err(|source| ExecuteError::Sink { run, source })?;
        self.finished.done += 1;
        self.finished.cut_short += u32::from(end.time_limit_hit);
        (self.progress)(&Progress::RunFinished { spec, stats: &stats, elapsed: end.elapsed });
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
