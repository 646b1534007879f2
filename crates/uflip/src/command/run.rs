//! `uflip run`: the main job. Order matters: everything that can be refused is
//! refused before anything is made, and everything that is made is announced
//! before anything is measured.

mod auto;
mod enforce;

use crate::args::{MethodArg, RunArgs};
use crate::command::plan::{QUICK_BUDGET, Wanted};
use crate::command::{fresh_seed, job, print_as_kept, show};
use crate::interrupt::STOP;
use crate::live::Live;
use crate::plan_file;
use crate::printable::word;
use crate::session::{self, Needs, Order, Session, Shown, Teller};
use crate::target::{self, Place, Target, Unnamed};
use crate::usage;
use anyhow::Context;
use enforce::TargetEnforcer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uflip_device::{Bytes, Device, EngineOptions, Nanos, Stop, unix_now};
use uflip_measure::auto::{AutoExtent, AutoOptions, first_plan};
use uflip_measure::run::Sink;
use uflip_measure::{Budget, Control, Plan, PlanOptions, Preset, Progress, ResetRequest, execute, make_plan};
use uflip_store::manifest::Asked;
use uflip_store::{Options, StoreContents};

/// What a resume heeds.
const HEEDED: [&str; 9] =
    ["output", "resume", "other-device", "erase-device", "budget", "seed", "keep-scratch", "live", "json"];

/// A session with what is measured in it.
struct Benchmark {
    session: Session,
    plan: Plan,
    /// Of all runs and pauses together.
    budget: Option<Nanos>,
}

impl From<Benchmark> for Session {
    fn from(benchmark: Benchmark) -> Session {
        benchmark.session
    }
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the target, an IO or the results folder.
pub fn run(args: RunArgs) -> anyhow::Result<()> {
    if args.suite.is_some() || (args.resume && job::is_suite(args.output.as_deref())) {
        return job::suite(args);
    }
    // Not refused where it is read: --suite, which it requires, may not stand beside --method.
    if args.logical_block.is_some() {
        return Err(usage("--logical-block is for --suite; leave it away, or type --suite NAME"));
    }
    let order = Order { ours: |asked| matches!(asked, Asked::Run { .. }), ..order(&args, "run")? };
    let (dir, options) = measure_as_typed(&args, &order, AutoExtent::Whole)?;
    session::conclude(&dir, &options, order.keep_scratch)?;
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
    let order = Order { ours: |asked| asked.auto().is_some(), ..order(&args, "run")? };
    let (dir, _) = measure_as_typed(&args, &order, AutoExtent::Calibration)?;
    let contents = StoreContents::read(&dir)?;
    let damage = || contents.damage.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let lost = || format!("{}/calibration.json tells nothing: {}", dir.display(), damage());
    let found = contents.calibration.as_ref().with_context(lost)?;
    if args.json {
        return print_as_kept(found);
    }
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
fn measure_as_typed(args: &RunArgs, order: &Order, extent: AutoExtent) -> anyhow::Result<(PathBuf, Options)> {
    let start = || {
        if args.resume {
            return resume(order, args.budget);
        }
        let seed = args.plan.seed.unwrap_or_else(fresh_seed);
        let wanted = Wanted::typed(&args.plan)?;
        let (plan_file, engine) = (args.plan_file.clone(), args.engine.resolve(seed)?);
        begin(order, seed, &Wish { wanted, plan_file, engine, budget: args.budget })
    };
    session::live(order, start, |benchmark| measure(benchmark, extent))
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
    session::live(&order, || begin(&order, seed, &wish), |of| measure(of, AutoExtent::Whole)).map(drop)
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
        let plan = plan_file::read(file, &place.target, place.geometry)?;
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
    let session = begun.into_session(order, &plan, Asked::Run { budget, auto: auto.map(Box::new) })?;
    Ok(Benchmark { session, plan, budget })
}

/// The interrupted benchmark in `-o DIR`, its target and plan taken from there.
fn resume(order: &Order, budget: Option<Nanos>) -> anyhow::Result<Benchmark> {
    let found = session::find(order)?;
    let asked = found.contents.manifest.options.asked.clone();
    let preview = asked.auto().map(|auto| make_plan(&auto.plan, auto.geometry)).transpose()?;
    let (whole, engine) = (preview.unwrap_or_else(|| found.plan.clone()), found.engine());
    let (session, plan) = found.open(order, Needs::Plan(&whole), engine)?;
    let before = if let Asked::Run { budget, .. } = asked { budget } else { None };
    if budget.is_some() && budget != before && session.opened.device.is_virtual() {
        let was = before.map_or("none".to_string(), |budget| budget.to_string());
        return Err(usage(format!(
            "--budget was {was} when the benchmark began, and a simulated device is brought to where it was by doing \
             its runs again within that; leave --budget away"
        )));
    }
    Ok(Benchmark { session, plan, budget: budget.or(before) })
}

/// Measures; true where it was stopped from outside.
fn measure(benchmark: &mut Benchmark, extent: AutoExtent) -> anyhow::Result<bool> {
    match benchmark.session.options.asked.auto().cloned() {
        Some(options) => auto::measure(benchmark, &options, extent),
        None => measure_fixed(benchmark),
    }
}

/// Executes the plan as it stands; true where it was stopped from outside.
fn measure_fixed(benchmark: &mut Benchmark) -> anyhow::Result<bool> {
    announce(benchmark);
    let Benchmark { session, plan, budget } = benchmark;
    let (budget, shown) = (*budget, session.shown);
    let kept: Vec<u32> = plan.runs().map(|r| r.id).filter(|id| session.store.has(*id)).collect();
    let page = live_page(session, plan, budget)?;
    let engine = session.options.engine(plan.seed);
    let mut enforcer = TargetEnforcer::new(session, &engine);
    let mut enforce = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
        enforcer.enforce(request, device, stop, &|text| shown.say(page.as_deref(), text))
    };
    let (mut device, mut store) = session.device_and_store();
    let missing = plan.runs().filter(|r| !kept.contains(&r.id));
    let mut teller = Teller::new(shown, page.as_ref(), missing, budget);
    let control = Control { stop: &STOP, budget: budget.map(|total| Budget { total }), unix_now };
    let mut tell = |event: &Progress<'_>| teller.tell(event);
    let finished = execute(plan, &mut device, &mut store, &mut enforce, control, &mut tell);
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
        session::driven(&session.options)
    );
    if Needs::Plan(plan).writes() {
        let bytes = Bytes(summary.write_bytes.0 + summary.reset_bytes.0);
        crate::say!("{}", target::will_be_written(&target::written_range(plan), bytes, capacity, target));
    }
    session.announce(&plan.notes);
}
