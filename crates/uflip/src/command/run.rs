//! `uflip run`: the main job. Order matters: everything that can be refused is
//! refused before anything is made, and everything that is made is announced
//! before anything is measured.

mod auto;
mod enforce;
mod gaps;
mod plan_file;

pub use plan_file::stored as stored_plan;

use crate::args::{MethodArg, RunArgs};
use crate::command::plan::{QUICK_BUDGET, Wanted};
use crate::command::{fresh_seed, job, show};
use crate::interrupt::STOP;
use crate::live::Live;
use crate::printable::{self, word};
use crate::session::{self, Needs, Order, Session, Shown, Stored, Teller};
use crate::target::{self, Place, Target, Unnamed};
use crate::usage;
use anyhow::Context;
use enforce::Enforcer;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uflip_device::{Bytes, Device, EngineOptions, Nanos, Stop, unix_now};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::{AutoOptions, Extent, first_plan};
use uflip_measure::run::Sink;
use uflip_measure::{
    Budget, Control, Finished, Plan, PlanOptions, Preset, Progress, ResetRequest, execute_steps, make_plan,
    replay_steps,
};

/// The part of the manifest that `--resume` goes by.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunOptions {
    #[serde(flatten)]
    stored: Stored,
    /// Of all runs and pauses together.
    budget_ns: Option<Nanos>,
    /// What the automatic method was asked for; None where lengths are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auto: Option<AutoOptions>,
}

/// What a resume heeds.
const HEEDED: [&str; 9] =
    ["output", "resume", "other-device", "erase-device", "budget", "seed", "keep-scratch", "live", "json"];

/// A session with what is measured in it.
struct Benchmark {
    session: Session,
    plan: Plan,
    options: RunOptions,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the target, an IO or the results folder.
pub fn run(args: RunArgs) -> anyhow::Result<()> {
    if args.suite.is_some() || (args.resume && job::is_job(args.output.as_deref())) {
        return job::suite(args);
    }
    let order = order(&args, "run")?;
    let (dir, stored) = match session::complete_before(&order)? {
        Some(done) => done,
        None => measure_as_typed(&args, &order, Extent::Whole)?,
    };
    session::conclude(&dir, &stored, order.keep_scratch)?;
    show::print_results(&dir, args.json, false)
}

/// What is asked for of what all commands have.
pub(super) fn order(args: &RunArgs, command: &'static str) -> anyhow::Result<Order> {
    let target = match args.resume {
        true => Target::of_resume(&args.target)?,
        false => Some(Target::of_command(&args.target, Unnamed::ScratchFile, &args.typed)?),
    };
    let unasked = args.target.names_nothing() && !args.resume;
    Ok(Order {
        consents: args.consent.erase_device.clone(),
        output: args.output.clone(),
        seed: args.plan.seed,
        resume: args.resume,
        other_device: args.other_device,
        remove_scratch: unasked && !args.keep_scratch,
        keep_scratch: args.keep_scratch,
        typed: args.typed.clone(),
        heeded: &HEEDED,
        shown: if args.live { Shown::Live } else { Shown::Lines },
        ..Order::new(command, target)
    })
}

/// Runs `uflip calibrate`: the automatic method up to its plan. The scratch file
/// stays, as the plan is for it.
///
/// # Errors
/// As [`run`].
pub fn calibrate(args: RunArgs) -> anyhow::Result<()> {
    if args.plan.method == MethodArg::Fixed || args.plan_file.is_some() {
        return Err(usage("uflip calibrate finds lengths and pause; leave --method fixed and --plan away"));
    }
    let order = order(&args, "run")?;
    let (dir, _) = measure_as_typed(&args, &order, Extent::Calibration)?;
    let path = dir.join("calibration.json");
    let text =
        uflip_store::read_json_bytes(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&text);
    if args.json {
        return crate::command::print(&printable::json(&text));
    }
    let found: Calibration =
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
    crate::command::print(&found.to_string())?;
    crate::say!(
        "the plan is in {}/plan.json and may be edited; measure by it: uflip run -o {} --resume{}",
        dir.display(),
        word(&dir.to_string_lossy()),
        order.consents_again()
    );
    Ok(())
}

/// Begins or resumes what is asked for, and measures as far as `extent`.
fn measure_as_typed(args: &RunArgs, order: &Order, extent: Extent) -> anyhow::Result<(PathBuf, Stored)> {
    session::listen(order.shown)?;
    let mut benchmark = if args.resume {
        resume(order, args.budget)?
    } else {
        let seed = args.plan.seed.unwrap_or_else(fresh_seed);
        let wanted = Wanted::typed(&args.plan)?;
        let (plan_file, engine) = (args.plan_file.clone(), args.engine.resolve(seed)?);
        begin(order, seed, &Wish { wanted, plan_file, engine, budget: args.budget })?
    };
    let finished = measure(&mut benchmark, extent);
    let stored = benchmark.session.stored.clone();
    Ok((benchmark.session.close(finished)?, stored))
}

/// The benchmark `wanted` of a simulated device into `folder`, as `uflip run` does
/// it, without a word.
///
/// # Errors
/// As [`run`].
pub fn measure_simulated(target: Target, seed: u64, folder: &Path, wanted: Wanted) -> anyhow::Result<()> {
    let order = Order::in_silence("run", target, seed, folder);
    let engine = EngineOptions { seed, ..EngineOptions::default() };
    let wish = Wish { wanted, plan_file: None, engine, budget: None };
    let mut benchmark = begin(&order, seed, &wish)?;
    let finished = measure(&mut benchmark, Extent::Whole);
    benchmark.session.close(finished).map(drop)
}

/// What a new benchmark is asked for.
struct Wish {
    wanted: Wanted,
    /// A plan to execute as it stands.
    plan_file: Option<PathBuf>,
    engine: EngineOptions,
    budget: Option<Nanos>,
}

/// What a new benchmark starts with.
struct Start {
    /// What will be done, or what a benchmark of this kind does.
    plan: Plan,
    /// The automatic method's options, but for what only the open device tells.
    auto: Option<PlanOptions>,
    quick: bool,
}

fn start(wish: &Wish, place: &Place, seed: u64) -> anyhow::Result<Start> {
    if let Some(file) = &wish.plan_file {
        let plan = plan_file::read(file, place.geometry)?;
        return Ok(Start { plan, auto: None, quick: false });
    }
    let planned = wish.wanted.options(place, seed)?;
    let plan = make_plan(&planned, place.geometry).map_err(usage)?;
    let quick = planned.preset == Preset::Quick && !place.virtual_time;
    Ok(Start { plan, auto: (wish.wanted.method == MethodArg::Auto).then_some(planned), quick })
}

/// A new benchmark.
fn begin(order: &Order, seed: u64, wish: &Wish) -> anyhow::Result<Benchmark> {
    let place = target::locate(order.target()?)?;
    let Start { plan, auto, quick } = start(wish, &place, seed)?;
    let budget = wish.budget.or(quick.then_some(QUICK_BUDGET));
    // Making the file has a quarter of the time; a slow disk gets a smaller one.
    let for_scratch = budget.map(|b| Duration::from(Nanos(b.0 / 4)));
    let begun = session::begin(order, &place, Needs::Plan(&plan), wish.engine, for_scratch)?;
    let geometry = begun.opened.device.geometry();
    let auto = auto.map(|planned| AutoOptions {
        plan: planned,
        geometry,
        virtual_time: begun.opened.device.is_virtual(),
        budget,
        pause_between: wish.wanted.pause_between,
    });
    // By the automatic method the plan grows as it is found. A scratch file
    // may have become smaller than it was planned for.
    let plan = match (&auto, &wish.plan_file) {
        (Some(auto), _) => first_plan(auto),
        (None, Some(file)) => {
            plan_file::fits(&plan, file.display(), geometry)?;
            plan
        }
        (None, None) => make_plan(&wish.wanted.options(&place, seed)?, geometry).map_err(usage)?,
    };
    let options = RunOptions { stored: begun.stored.clone(), budget_ns: budget, auto };
    let session = begun.into_session(order, &plan, &options)?;
    Ok(Benchmark { session, plan, options })
}

/// The interrupted benchmark in `-o DIR`, its target and plan taken from there.
fn resume(order: &Order, budget: Option<Nanos>) -> anyhow::Result<Benchmark> {
    let found = session::find::<RunOptions>(order)?;
    let auto = found.options.auto.as_ref();
    let preview = auto.map(|auto| make_plan(&auto.plan, auto.geometry)).transpose()?;
    let (whole, engine) = (preview.unwrap_or_else(|| found.plan.clone()), found.engine());
    let (session, mut options, plan) = found.open(order, Needs::Plan(&whole), engine)?;
    options.budget_ns = budget.or(options.budget_ns);
    Ok(Benchmark { session, plan, options })
}

/// Measures; true where it was stopped from outside.
fn measure(benchmark: &mut Benchmark, extent: Extent) -> anyhow::Result<bool> {
    match benchmark.options.auto.clone() {
        Some(options) => auto::measure(benchmark, &options, extent),
        None => measure_fixed(benchmark),
    }
}

/// Executes the plan as it stands; true where it was stopped from outside.
fn measure_fixed(benchmark: &mut Benchmark) -> anyhow::Result<bool> {
    announce(benchmark);
    let Benchmark { session, plan, options } = benchmark;
    let (budget, shown, virtual_time) =
        (options.budget_ns, session.shown, session.opened.device.is_virtual());
    let kept: Vec<u32> = plan.runs().map(|r| r.id).filter(|id| session.store.has(*id)).collect();
    let page = live_page(session, plan, budget)?;
    let engine = session.stored.engine(plan.seed);
    let mut enforcer = Enforcer::new(&session.dir, &engine, virtual_time);
    let mut enforce = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
        enforcer.enforce(request, device, stop, &|text| shown.say(page.as_deref(), text))
    };
    let (mut device, mut store) = session.device_and_store();
    let left = plan.runs().filter(|r| !kept.contains(&r.id));
    let mut teller = Teller::new(shown, page.as_ref(), left, budget);
    let control = Control { stop: &STOP, budget: budget.map(|total| Budget { total }), unix_now };
    let all = 0..plan.steps.len();
    let mut spans = vec![(false, all.clone())];
    if virtual_time {
        spans = gaps::spans(plan, all, |id| kept.contains(&id));
        while spans.pop_if(|(again, _)| *again).is_some() {}
    }
    let mut finished = Ok(Finished::default());
    for (again, steps) in spans {
        let before = finished.map_or(0, |end| end.cut_short);
        let part = if again {
            replay_steps(plan, steps, &mut device, &mut enforce, &STOP)
                .map(|stopped| Finished { stopped, ..Finished::default() })
        } else {
            let mut tell = |event: &Progress<'_>| teller.tell(event);
            execute_steps(plan, steps, &mut device, &mut store, &mut enforce, control, &mut tell)
        };
        finished = part.map(|end| Finished { cut_short: before + end.cut_short, ..end });
        if !matches!(finished, Ok(Finished { stopped: false, .. })) {
            break;
        }
    }
    teller.close();
    let finished = finished?;
    if finished.cut_short > 0 {
        shown.say(None, &format!("{} runs were cut short to stay within the time", finished.cut_short));
    }
    Ok(finished.stopped)
}

/// The live page, where it is asked for.
fn live_page(session: &Session, plan: &Plan, budget: Option<Nanos>) -> anyhow::Result<Option<Arc<Live>>> {
    let summary = &session.opened.summary;
    let title = || format!("uflip {summary}, preset {}, seed {}", plan.preset, plan.seed);
    let live = session.shown == Shown::Live;
    live.then(|| Live::start(title(), budget, session.store.watch()).map(Arc::new)).transpose()
}

/// What the plan comes to, in a line or two.
fn summary_of(plan: &Plan, target: &Target) -> String {
    let (summary, capacity) = (plan.summary(), plan.geometry.capacity);
    let bytes = Bytes(summary.write_bytes.0 + summary.reset_bytes.0);
    if bytes == Bytes(0) {
        return format!("{} runs in all; nothing is written", summary.runs);
    }
    let range = target::written_range(plan);
    format!("{} runs in all; {}", summary.runs, target::will_be_written(&range, bytes, capacity, target))
}

/// Says what is about to happen, before it does.
fn announce(benchmark: &Benchmark) {
    let Benchmark { session, plan, .. } = benchmark;
    if session.shown == Shown::Nothing {
        return;
    }
    let (summary, target) = (plan.summary(), &session.opened.target);
    let capacity = plan.geometry.capacity;
    crate::say!(
        "measuring {target} ({capacity}): preset {}, {} runs, seed {}{}",
        plan.preset,
        summary.runs,
        plan.seed,
        session.stored.driven()
    );
    if Needs::Plan(plan).writes() {
        let bytes = Bytes(summary.write_bytes.0 + summary.reset_bytes.0);
        crate::say!("{}", target::will_be_written(&target::written_range(plan), bytes, capacity, target));
    }
    session.announce(&plan.notes);
}
