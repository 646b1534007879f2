//! `uflip run` by the automatic method: the bench on which the script of
//! `uflip_measure::auto` performs its steps.
//!
//! Steps go to `plan.json` before any of them is executed, what was found to
//! `calibration.json`. After a resume the script runs again from its start. On
//! a device in virtual time, whose state does not outlive the process, the steps
//! done before are done again without keeping anything, so that the rest comes
//! out as if there had been no interruption.

use super::enforce::Enforcer;
use super::gaps;
use super::{Session, Shown, live_page, say, summary_of};
use crate::describe;
use crate::interference::{Watch, Watched};
use crate::interrupt::STOP;
use crate::live::Live;
use crate::progress::Display;
use std::ops::Range;
use std::sync::Arc;
use uflip_device::{Device, IoRecord, Nanos, RunEnd, Stop, unix_now};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::interference::Disturbed;
use uflip_measure::auto::{self, AutoError, AutoOptions, Bench, Extent, Phase, Stored};
use uflip_measure::run::Sink;
use uflip_measure::{Budget, Control, Progress, ResetRequest, Step, execute_steps, replay_steps};
use uflip_store::checksum::{Seal, read_sealed};
use uflip_store::store::record_name;
use uflip_store::{Durability, read_records};

/// A session with what the script needs to know of it.
struct OnDevice<'a> {
    session: &'a mut Session,
    watch: Watch,
    /// Steps performed so far.
    done: usize,
    /// The device's clock at the start, and the time that resets took.
    began: Nanos,
    resets: Nanos,
    cut_short: u32,
    enforcer: Enforcer,
    shown: Shown,
    page: Option<Arc<Live>>,
}

/// Anything else that went wrong.
fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AutoError {
    AutoError::Bench(error.into())
}

/// Measures by the automatic method; true where it was stopped from outside.
pub(super) fn measure(
    session: &mut Session,
    options: &AutoOptions,
    extent: Extent,
    shown: Shown,
) -> anyhow::Result<bool> {
    if shown != Shown::Nothing {
        announce(session, options);
    }
    if session.opened.device.is_virtual() {
        session.store.set_durability(Durability::RELAXED);
    }
    let watch = Watch::of(&session.options.target, disturbed_before(session));
    let began = session.opened.device.now();
    let page = live_page(shown, &session.plan, &session.opened, session.options.budget_ns, &session.store)?;
    let virtual_time = session.opened.device.is_virtual();
    let enforcer = Enforcer::new(&session.dir, &session.options.engine, virtual_time);
    let mut bench =
        OnDevice { session, watch, done: 0, began, resets: Nanos::ZERO, cut_short: 0, enforcer, shown, page };
    let outcome = auto::measure(options, extent, &mut bench);
    // The page gives the terminal back before anything else is said.
    drop(bench.page.take());
    let cut_short = bench.cut_short;
    let say = |text: &str| say(shown, None, text);
    session.store.sync()?;
    if cut_short > 0 {
        say(&format!("{cut_short} runs were cut short to stay within the time"));
    }
    match outcome {
        Ok(found) => {
            found.notes.iter().for_each(|note| say(&format!("note: {note}")));
            if !found.interference.is_empty() {
                say(&format!(
                    "note: something else was active during {} runs; see calibration.json",
                    found.interference.len()
                ));
            }
            Ok(false)
        }
        Err(AutoError::Stopped) => Ok(true),
        Err(AutoError::Bench(error)) => Err(anyhow::Error::from_boxed(error)),
        Err(error) => Err(error.into()),
    }
}

/// Says what is about to happen, before it does.
fn announce(session: &Session, options: &AutoOptions) {
    let Session { dir, opened, .. } = session;
    let (plan, capacity) = (&options.plan, options.geometry.capacity);
    crate::say!(
        "measuring {} ({capacity}): preset {}, state {}, seed {}, {}; lengths and pause are found first",
        opened.name,
        plan.preset,
        plan.state,
        plan.seed,
        describe::engine(&session.options.engine)
    );
    if let Ok(preview) = uflip_measure::make_plan(plan, options.geometry)
        && crate::command::plan::writes(&preview)
    {
        crate::say!("{} will be written between 0 B and {capacity}", opened.name);
    }
    opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
    crate::say!("results go to {}", dir.display());
}

/// What a calibration file of before says of other work.
fn disturbed_before(session: &Session) -> Vec<Disturbed> {
    // Not there before the first phase; only an addition to a report.
    let file = read_sealed(&session.dir.join("calibration.json"), "").ok().flatten();
    file.filter(|file| file.seal != Seal::Changed)
        .and_then(|file| serde_json::from_value(file.value["interference"].clone()).ok())
        .unwrap_or_default()
}

impl OnDevice<'_> {
    fn say(&self, text: &str) {
        say(self.shown, self.page.as_deref(), text);
    }

    /// Adds what is new of `phase` to the stored plan; gives the steps' places.
    fn store_steps(&mut self, phase: Phase) -> Result<Range<usize>, AutoError> {
        let (done, count) = (self.done, phase.steps.len());
        let plan = &mut self.session.plan;
        let stored = &plan.steps[done..plan.steps.len().min(done + count)];
        if let Some(at) = stored.iter().zip(&phase.steps).position(|(a, b)| a != b) {
            return Err(AutoError::Changed(done + at));
        }
        let known = stored.len();
        if known < count {
            plan.steps.extend(phase.steps.into_iter().skip(known));
            plan.skipped.extend(phase.skipped);
            plan.notes.extend(phase.notes);
            let value = serde_json::to_value(&*plan).map_err(other)?;
            self.session.store.replace_plan(&value).map_err(other)?;
        }
        Ok(done..done + count)
    }

    /// The first step that is still to be done: pauses and resets right before
    /// the first missing run are not known to be done.
    fn first_to_do(&self, steps: Range<usize>) -> usize {
        let plan = &self.session.plan.steps;
        let missing = |step: &Step| matches!(step, Step::Run(run) if !self.session.store.has(run.id));
        let any_run = plan[steps.clone()].iter().any(|step| matches!(step, Step::Run(_)));
        let Some(first) = plan[steps.clone()].iter().position(missing).map(|at| steps.start + at) else {
            return if any_run { steps.end } else { steps.start };
        };
        let before = plan[steps.start..first].iter().rposition(|step| matches!(step, Step::Run(_)));
        before.map_or(steps.start, |at| steps.start + at + 1)
    }

    fn execute(&mut self, steps: Range<usize>, main: bool) -> Result<bool, AutoError> {
        let budget = if main { self.left().map(|total| Budget { total }) } else { None };
        let control = Control { stop: &STOP, budget, unix_now };
        let Session { store, plan, opened, .. } = &mut *self.session;
        let kept: Vec<u32> = plan.runs().map(|r| r.id).filter(|id| store.has(*id)).collect();
        let (shown, page) = (self.shown, self.page.as_deref());
        let listed = shown == Shown::Live || (main && shown == Shown::Lines);
        let left = plan.steps[steps.clone()].iter().filter_map(|s| match s {
            Step::Run(run) if listed && !kept.contains(&run.id) => Some(run),
            _ => None,
        });
        let mut display = match &self.page {
            Some(page) => Display::on_page(left, budget.map(|b| b.total), page),
            None => Display::new(left, budget.map(|b| b.total)),
        };
        let watch = &self.watch;
        let mut progress = |event: &Progress<'_>| match event {
            Progress::RunStarted { spec, .. } => {
                watch.next(Some(spec.id));
                display.started(spec);
            }
            Progress::RunFinished { spec, stats, elapsed } => {
                watch.next(None);
                display.finished(spec, stats, *elapsed);
            }
            Progress::Again { .. } | Progress::Resetting { .. } if shown == Shown::Nothing => {}
            Progress::Again { spec, incidents, attempt } => display.again(spec, incidents, *attempt),
            Progress::Resetting { state } => {
                display.note(&format!("bringing the device to the {state} state"))
            }
            Progress::Pausing { .. } => {}
        };
        let (resets, enforcer) = (&mut self.resets, &mut self.enforcer);
        let mut resetter = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
            watch.next(None);
            enforcer
                .enforce(request, device, stop, &|text| say(shown, page, text))
                .inspect(|end: &RunEnd| *resets = *resets + end.elapsed)
        };
        let mut device = Watched { device: &mut *opened.device, watch };
        let finished = execute_steps(plan, steps, &mut device, store, &mut resetter, control, &mut progress);
        display.close();
        let finished = finished.map_err(other)?;
        self.cut_short += finished.cut_short;
        Ok(finished.stopped)
    }

    /// On a device in virtual time: does again what was done before.
    fn replay(&mut self, steps: Range<usize>) -> Result<bool, AutoError> {
        let Session { plan, opened, .. } = &mut *self.session;
        let (shown, page) = (self.shown, self.page.as_deref());
        let (resets, enforcer) = (&mut self.resets, &mut self.enforcer);
        let mut resetter = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
            enforcer
                .enforce(request, device, stop, &|text| say(shown, page, text))
                .inspect(|end: &RunEnd| *resets = *resets + end.elapsed)
        };
        replay_steps(plan, steps, &mut *opened.device, &mut resetter, &STOP).map_err(other)
    }
}

impl Bench for OnDevice<'_> {
    fn stored(&self) -> Stored<'_> {
        let plan = &self.session.plan;
        Stored { steps: &plan.steps[self.done..], skipped: &plan.skipped, notes: &plan.notes }
    }

    fn perform(&mut self, phase: Phase) -> Result<(), AutoError> {
        let (main, held) = (phase.main, phase.held);
        let steps = self.store_steps(phase)?;
        if main {
            self.say(&summary_of(&self.session.plan, &self.session.opened.name));
        }
        if held {
            self.done = steps.end;
            return Ok(());
        }
        let first = self.first_to_do(steps.clone());
        let mut stopped = false;
        if self.session.opened.device.is_virtual() && first > steps.start {
            let store = &self.session.store;
            for (again, span) in gaps::spans(&self.session.plan, steps.clone(), |id| store.has(id)) {
                stopped = stopped || if again { self.replay(span)? } else { self.execute(span, main)? };
            }
        } else if first < steps.end {
            stopped = self.execute(first..steps.end, main)?;
        }
        self.done = steps.end;
        if stopped { Err(AutoError::Stopped) } else { Ok(()) }
    }

    fn records(&mut self, run: u32) -> Result<Vec<IoRecord>, AutoError> {
        read_records(&self.session.dir.join(record_name(run))).map_err(other)
    }

    fn found(&mut self, calibration: &Calibration, news: &str) -> Result<(), AutoError> {
        self.say(news);
        let mut calibration = calibration.clone();
        calibration.interference = self.watch.disturbed();
        let value = serde_json::to_value(&calibration).map_err(other)?;
        self.session.store.replace_calibration(&value).map_err(other)
    }

    fn left(&self) -> Option<Nanos> {
        let spent = self.session.opened.device.now().saturating_sub(self.began).saturating_sub(self.resets);
        self.session.options.budget_ns.map(|total| total.saturating_sub(spent))
    }
}
