//! `uflip run` by the automatic method: the bench on which the script of
//! `uflip_measure::auto` performs its steps.
//!
//! Steps go to `plan.json` before any of them is executed, what was found to
//! `calibration.json`. After a resume the script runs again from its start; what
//! is kept is passed over, or done again in virtual time (`uflip_measure::execute`).

use super::enforce::TargetEnforcer;
use super::{Benchmark, live_page, summary_of};
use crate::interrupt::STOP;
use crate::live::Live;
use crate::session::{self, Needs, Session, Shown, Teller};
use std::ops::Range;
use std::sync::Arc;
use uflip_device::{Device, IoRecord, Nanos, RunEnd, Stop, unix_now};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::{self, AutoError, AutoExtent, AutoOptions, AutoPhase, Bench, StoredPlan};
use uflip_measure::plan::left;
use uflip_measure::run::Sink;
use uflip_measure::{Budget, Control, Progress, ResetRequest, Step, execute_steps};
use uflip_store::read_records;
use uflip_store::store::record_name;

/// A session with what the script needs to know of it.
struct OnDevice<'a> {
    of: &'a mut Benchmark,
    /// Steps performed so far.
    done: usize,
    /// The device's clock at the start, and the time that resets took.
    began: Nanos,
    resets: Nanos,
    cut_short: u32,
    enforcer: TargetEnforcer,
    page: Option<Arc<Live>>,
}

/// Anything else that went wrong.
fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AutoError {
    AutoError::Bench(error.into())
}

/// Measures by the automatic method; true where it was stopped from outside.
pub(super) fn measure(
    benchmark: &mut Benchmark,
    options: &AutoOptions,
    extent: AutoExtent,
) -> anyhow::Result<bool> {
    announce(&benchmark.session, options);
    let session = &mut benchmark.session;
    let (shown, began) = (session.shown, session.opened.device.now());
    let page = live_page(session, &benchmark.plan, benchmark.budget)?;
    let engine = session.options.engine(benchmark.plan.seed);
    let enforcer = TargetEnforcer::new(session, &engine);
    let mut bench =
        OnDevice { of: benchmark, done: 0, began, resets: Nanos::ZERO, cut_short: 0, enforcer, page };
    let outcome = auto::measure(options, extent, &mut bench);
    // The page gives the terminal back before anything else is said.
    drop(bench.page.take());
    let cut_short = bench.cut_short;
    if cut_short > 0 {
        shown.say(None, &format!("{cut_short} runs were cut short to stay within the time"));
    }
    match outcome {
        Ok(found) => {
            found.notes.iter().for_each(|note| shown.say(None, &format!("note: {note}")));
            Ok(false)
        }
        Err(AutoError::Stopped) => Ok(true),
        Err(AutoError::Bench(error)) => Err(anyhow::Error::from_boxed(error)),
        Err(error) => Err(error.into()),
    }
}

/// Says what is about to happen, before it does.
fn announce(session: &Session, options: &AutoOptions) {
    if session.shown == Shown::Nothing {
        return;
    }
    let (plan, capacity, target) = (&options.plan, options.geometry.capacity, &session.opened.target);
    crate::say!(
        "measuring {target} ({capacity}): preset {}, state {}, seed {}{}; lengths and pause are found first",
        plan.preset,
        plan.state,
        plan.seed,
        session::driven(&session.options)
    );
    if let Ok(preview) = uflip_measure::make_plan(plan, options.geometry)
        && Needs::Plan(&preview).writes()
    {
        crate::say!("{target} will be written between 0 B and {capacity}");
    }
    session.announce(&[]);
}

impl OnDevice<'_> {
    fn say(&self, text: &str) {
        self.of.session.shown.say(self.page.as_deref(), text);
    }

    /// Adds what is new of `phase` to the stored plan; gives the steps' places.
    fn store_steps(&mut self, phase: AutoPhase) -> Result<Range<usize>, AutoError> {
        let (done, count) = (self.done, phase.steps.len());
        let plan = &mut self.of.plan;
        let stored = &plan.steps[done..plan.steps.len().min(done + count)];
        if let Some(at) = stored.iter().zip(&phase.steps).position(|(a, b)| a != b) {
            return Err(AutoError::Changed(done + at));
        }
        let known = stored.len();
        if known < count {
            plan.steps.extend(phase.steps.into_iter().skip(known));
            plan.skipped.extend(phase.skipped);
            plan.notes.extend(phase.notes);
            self.of.session.store.replace_plan(plan).map_err(other)?;
        }
        Ok(done..done + count)
    }

    fn execute(&mut self, steps: Range<usize>, main: bool) -> Result<bool, AutoError> {
        let budget = if main { self.left().map(|total| Budget { total }) } else { None };
        let control = Control { stop: &STOP, budget, unix_now };
        let Benchmark { session, plan, .. } = &mut *self.of;
        let kept: Vec<u32> = plan.runs().map(|r| r.id).filter(|id| session.store.has(*id)).collect();
        let (shown, page) = (session.shown, self.page.as_ref());
        let listed = shown == Shown::Live || main;
        let left = plan.steps[steps.clone()].iter().filter_map(|s| match s {
            Step::Run(run) if listed && !kept.contains(&run.id) => Some(run),
            _ => None,
        });
        let (mut device, mut store) = session.device_and_store();
        let mut teller = Teller::new(shown, page, left, budget.map(|b| b.total));
        let mut progress = |event: &Progress<'_>| teller.tell(event);
        let (resets, enforcer) = (&mut self.resets, &mut self.enforcer);
        let mut resetter = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
            enforcer
                .enforce(request, device, stop, &|text| shown.say(page.map(|page| &**page), text))
                .inspect(|end: &RunEnd| *resets = *resets + end.elapsed)
        };
        let finished =
            execute_steps(plan, steps, &mut device, &mut store, &mut resetter, control, &mut progress);
        teller.close();
        let finished = finished.map_err(other)?;
        self.cut_short += finished.cut_short;
        Ok(finished.stopped)
    }
}

impl Bench for OnDevice<'_> {
    fn stored(&self) -> StoredPlan<'_> {
        let plan = &self.of.plan;
        StoredPlan { steps: &plan.steps[self.done..], skipped: &plan.skipped, notes: &plan.notes }
    }

    fn perform(&mut self, phase: AutoPhase) -> Result<(), AutoError> {
        let (main, held) = (phase.main, phase.held);
        let steps = self.store_steps(phase)?;
        if main {
            self.say(&summary_of(&self.of.plan, &self.of.session.opened.target));
        }
        if held {
            self.done = steps.end;
            return Ok(());
        }
        // In virtual time what is done already is done again.
        let store = &self.of.session.store;
        let first = match self.of.session.opened.device.is_virtual() {
            true => steps.start,
            false => left::first_to_do(&self.of.plan, steps.clone(), |id| store.has(id)),
        };
        let stopped = first < steps.end && self.execute(first..steps.end, main)?;
        self.done = steps.end;
        if stopped { Err(AutoError::Stopped) } else { Ok(()) }
    }

    fn records(&mut self, run: u32) -> Result<Vec<IoRecord>, AutoError> {
        read_records(&self.of.session.dir.join(record_name(run))).map_err(other)
    }

    fn found(&mut self, calibration: &Calibration, news: &str) -> Result<(), AutoError> {
        self.say(news);
        let mut calibration = calibration.clone();
        calibration.interference = self.of.session.probing.disturbed();
        self.of.session.store.replace_calibration(&calibration).map_err(other)
    }

    fn left(&self) -> Option<Nanos> {
        let spent =
            self.of.session.opened.device.now().saturating_sub(self.began).saturating_sub(self.resets);
        self.of.budget.map(|total| total.saturating_sub(spent))
    }
}
