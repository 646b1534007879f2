//! `uflip run`: the main job. Order matters: everything that can be refused is
//! refused before anything is made, and everything that is made is announced
//! before anything is measured.

mod auto;
mod enforce;
mod gaps;
mod plan_file;

pub use plan_file::stored as stored_plan;

use crate::args::{Cli, Command, ConsentArgs, MethodArg, RunArgs};
use crate::command::plan::{QUICK_BUDGET, plan_options, writes};
use crate::command::{fresh_seed, job, profile, report, show};
use crate::describe;
use crate::interrupt::{self, STOP};
use crate::live::Live;
use crate::printable::{self, word};
use crate::progress::Display;
use crate::same_device::{self, Asked};
use crate::target::{self, Access, Opened, Place, claim_output, target_name};
use crate::typed::{self, Chosen};
use crate::{limits, usage};
use anyhow::{Context, bail};
use clap::Parser;
use enforce::Enforcer;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uflip_device::identity::{SysPaths, host_facts};
use uflip_device::{Bytes, Device, EngineOptions, Nanos, Stop, measure_overhead, unix_now};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::{AutoOptions, Extent, first_plan};
use uflip_measure::run::{RunSpec, Sink};
use uflip_measure::{
    Budget, Control, Finished, Plan, PlanOptions, Preset, Progress, ResetRequest, execute_steps, make_plan,
    replay_steps,
};
use uflip_store::complete::completeness;
use uflip_store::{Claim, Durability, Manifest, Store};

/// The part of the manifest that `--resume` goes by.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunOptions {
    /// As typed; a file's path made absolute.
    target: String,
    #[serde(flatten)]
    engine: EngineOptions,
    /// Of all runs and pauses together.
    budget_ns: Option<Nanos>,
    /// The target is a scratch file of ours, removed when all is done.
    remove_scratch: bool,
    /// What the automatic method was asked for; None where lengths are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auto: Option<AutoOptions>,
    /// The options, given or by default; a resume refuses others.
    #[serde(default, skip_serializing_if = "Chosen::is_empty")]
    chosen: Chosen,
}

/// What a resume heeds.
const HEEDED: [&str; 9] =
    ["output", "resume", "other-device", "erase-device", "budget", "seed", "keep-scratch", "live", "json"];

/// What a person sees of a benchmark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Lines,
    Live,
}

/// Everything ready to be executed.
struct Session {
    dir: PathBuf,
    store: Store,
    plan: Plan,
    opened: Opened,
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
    let (dir, options) = match complete_before(&args)? {
        Some(done) => done,
        None => measure_as_typed(&args, Extent::Whole)?,
    };
    profile::make(&dir)?;
    report::write_report(&dir, None)?;
    // Last: without it there is nothing to go on with.
    if options.remove_scratch && Path::new(&options.target).exists() {
        target::remove_scratch(Path::new(&options.target));
    }
    show::print_results(&dir, args.json, false)
}

/// The benchmark that a resume would go on with, where nothing of it is left to
/// measure: then the target is not needed any more, nor asked for.
fn complete_before(args: &RunArgs) -> anyhow::Result<Option<(PathBuf, RunOptions)>> {
    let Some(dir) = args.output.as_deref().filter(|_| args.resume) else { return Ok(None) };
    let claim = Claim::existing(dir)?;
    let contents = Store::open(dir)?;
    let Ok(options) = serde_json::from_value::<RunOptions>(contents.manifest.options.clone()) else {
        return Ok(None);
    };
    if !contents.damage.is_empty() || completeness(&contents).statement.is_some() {
        return Ok(None);
    }
    args.typed.refuse_without_effect(&contents, &HEEDED)?;
    stored_plan(&contents)?;
    let store = Store::resume_in(claim, args.plan.seed, None)?;
    store.notes().iter().for_each(|note| crate::say!("note: {note}"));
    crate::say!("{}: all runs are kept, nothing is left to measure", word(&dir.to_string_lossy()));
    let remove_scratch = options.remove_scratch && !args.keep_scratch;
    Ok(Some((dir.to_path_buf(), RunOptions { remove_scratch, ..options })))
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
    let (dir, _) = measure_as_typed(&args, Extent::Calibration)?;
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
        consent_again(&args.consent)
    );
    Ok(())
}

/// Begins or resumes what is asked for, and measures as far as `extent`.
fn measure_as_typed(args: &RunArgs, extent: Extent) -> anyhow::Result<(PathBuf, RunOptions)> {
    if args.live {
        if !std::io::stderr().is_terminal() {
            return Err(usage("--live needs a terminal on standard error; leave it away"));
        }
        // The page says what happens.
        interrupt::listen_with("")?;
    } else {
        interrupt::listen()?;
    }
    let mut session = if args.resume { resume(args)? } else { begin(args)? };
    let finished = measure(&mut session, extent, if args.live { Shown::Live } else { Shown::Lines });
    let Session { dir, store, options, opened, .. } = session;
    let kept = store.len();
    drop((store, opened));
    let go_on = || {
        format!(
            "{kept} runs are kept in {0}; go on with: uflip run -o {0} --resume",
            word(&dir.to_string_lossy())
        )
    };
    let stopped = finished.with_context(go_on)?;
    if stopped {
        bail!("interrupted; {}{}", go_on(), consent_again(&args.consent));
    }
    Ok((dir, options))
}

/// The standard benchmark of a target as typed, with further options, into
/// `folder`, as `uflip run` does it, without a word.
///
/// # Errors
/// As [`run`].
pub fn measure_simulated_as(target: &str, seed: u64, folder: &Path, more: &[OsString]) -> anyhow::Result<()> {
    let seed = seed.to_string();
    let typed = ["uflip", "run", target, "--preset", "standard", "--seed", &seed, "-o"];
    let typed = typed.iter().map(OsString::from).chain([folder.into()]).chain(more.iter().cloned());
    let Command::Run(args) = Cli::try_parse_from(typed)?.command else { bail!("not a run") };
    let mut session = begin(&args)?;
    if measure(&mut session, Extent::Whole, Shown::Nothing)? {
        bail!("interrupted");
    }
    Ok(())
}

/// What else has to be typed to resume.
pub(crate) fn consent_again(consent: &ConsentArgs) -> String {
    consent.erase_device.iter().map(|value| format!(" --erase-device {}", word(value))).collect()
}

/// What a new benchmark starts with.
struct Start {
    /// What will be done, or what a benchmark of this kind does.
    plan: Plan,
    /// The automatic method's options, but for what only the open device tells.
    auto: Option<PlanOptions>,
    seed: u64,
    quick: bool,
}

fn start(args: &RunArgs, name: &str, place: &Place) -> anyhow::Result<Start> {
    if let Some(file) = &args.plan_file {
        let plan = plan_file::read(file, place.geometry)?;
        let (seed, quick) = (plan.seed, false);
        return Ok(Start { plan, auto: None, seed, quick });
    }
    let seed = args.plan.seed.unwrap_or_else(fresh_seed);
    let planned = plan_options(&args.plan, name, place, seed)?;
    let plan = make_plan(&planned, place.geometry).map_err(usage)?;
    let quick = planned.preset == Preset::Quick && !place.virtual_time;
    Ok(Start { plan, auto: (args.plan.method == MethodArg::Auto).then_some(planned), seed, quick })
}

/// A new benchmark.
fn begin(args: &RunArgs) -> anyhow::Result<Session> {
    let name = target_name(args.target.as_deref())?;
    let place = target::locate(&name, args.plan.scratch_size)?;
    let Start { plan, auto, seed, quick } = start(args, &name, &place)?;
    target::refuse_mixed_trims(&place, plan.runs().filter_map(RunSpec::pattern))?;
    let engine = args.engine.resolve(seed)?;
    limits::room_for_plan(&plan, &engine, place.virtual_time)?;
    if writes(&plan) {
        place.may_be_written(&args.consent.erase_device)?;
    }
    let claim = claim_output(args.output.as_deref())?;
    let dir = claim.dir().to_path_buf();
    let budget = args.budget.or(quick.then_some(QUICK_BUDGET));
    // Making the file has a quarter of the time; a slow disk gets a smaller one.
    let for_scratch = budget.map(|b| Duration::from(Nanos(b.0 / 4)));
    let opened = open(&name, &plan, args, engine, for_scratch)?;
    let geometry = opened.device.geometry();
    let auto = auto.map(|planned| AutoOptions {
        plan: planned,
        geometry,
        virtual_time: opened.device.is_virtual(),
        budget,
        pause_between: args.plan.pause_between,
    });
    // By the automatic method the plan grows as it is found. A scratch file
    // may have become smaller than it was planned for.
    let plan = match &auto {
        Some(auto) => first_plan(auto),
        None if args.plan_file.is_some() => {
            let file = args.plan_file.as_deref().unwrap_or(Path::new("plan.json"));
            plan_file::fits(&plan, file.display(), geometry)?;
            plan
        }
        None => make_plan(&plan_options(&args.plan, &name, &place, seed)?, geometry).map_err(usage)?,
    };
    let options = RunOptions {
        target: name.clone(),
        engine,
        budget_ns: budget,
        remove_scratch: args.target.is_none() && !args.keep_scratch,
        auto,
        chosen: args.typed.chosen(),
    };
    let manifest = manifest(seed, &opened, &options)?;
    let store = Store::create_in(claim, &manifest, &serde_json::to_value(&plan)?)?;
    Ok(Session { dir, store, plan, opened, options })
}

/// The interrupted benchmark in `-o DIR`, its target and plan taken from there.
fn resume(args: &RunArgs) -> anyhow::Result<Session> {
    let dir = typed::folder(args.output.as_deref())?.to_path_buf();
    // Before anything is read that somebody else may be changing.
    let claim = Claim::existing(&dir)?;
    let contents = Store::open(&dir)?;
    args.typed.refuse_without_effect(&contents, &HEEDED)?;
    let options: RunOptions = serde_json::from_value(contents.manifest.options.clone())
        .with_context(|| format!("{}/manifest.json does not say what uflip run was asked for: another command made it, or it is damaged", dir.display()))?;
    let typed = args.target.as_deref().map(|target| target_name(Some(target))).transpose()?;
    let answer = same_device::ask(&Asked {
        contents: &contents,
        stored: &options.target,
        typed: typed.as_deref(),
        other: args.other_device,
        data: options.engine.data,
        type_for: &|target| same_device::to_type("run", target, &dir),
    })?;
    let plan = stored_plan(&contents)?;
    let place = target::locate(&answer.name, plan.geometry.capacity)?;
    target::refuse_mixed_trims(&place, plan.runs().filter_map(RunSpec::pattern))?;
    limits::room_for_plan(&plan, &options.engine, place.virtual_time)?;
    let mut store = Store::resume_in(claim, args.plan.seed, None)?;
    store.notes().iter().for_each(|note| crate::say!("note: {note}"));
    let mut options = RunOptions { target: answer.name.clone(), ..options };
    options.budget_ns = args.budget.or(options.budget_ns);
    options.remove_scratch &= !args.keep_scratch;
    let preview = options.auto.as_ref().map(|auto| make_plan(&auto.plan, auto.geometry)).transpose()?;
    let opened = target::open(
        &options.target,
        if writes(preview.as_ref().unwrap_or(&plan)) {
            Access::Write(&args.consent.erase_device)
        } else {
            Access::Read
        },
        options.engine,
        plan.geometry.capacity,
        None,
    )?;
    if opened.device.geometry() != plan.geometry {
        bail!(
            "{} has {} now and had {} when the benchmark began; start a new one with another -o",
            options.target,
            opened.device.geometry().capacity,
            plan.geometry.capacity
        );
    }
    answer.still_is(&opened.name)?;
    let next_run = plan.runs().map(|run| run.id).find(|id| !store.has(*id));
    answer.record(&mut store, &contents.manifest, next_run, &opened.facts)?;
    Ok(Session { dir, store, plan, opened, options })
}

fn open(
    name: &str,
    plan: &Plan,
    args: &RunArgs,
    engine: EngineOptions,
    for_scratch: Option<Duration>,
) -> anyhow::Result<Opened> {
    let consents = &args.consent.erase_device;
    let access = if writes(plan) { Access::Write(consents) } else { Access::Read };
    target::open(name, access, engine, args.plan.scratch_size, for_scratch)
}

fn manifest(seed: u64, opened: &Opened, options: &RunOptions) -> anyhow::Result<Manifest> {
    let (host, overhead) = (host_facts(&SysPaths::default()), measure_overhead());
    let mut manifest = Manifest::new(env!("CARGO_PKG_VERSION"), seed);
    manifest.target = serde_json::json!({
        "summary": format!("{}; {}", opened.summary, describe::engine(&options.engine)),
        "name": opened.name,
        "facts": opened.facts,
        "identity": same_device::for_manifest(&opened.name),
        "warnings": opened.warnings,
    });
    manifest.host = summarised(&host, describe::host(&host))?;
    manifest.overhead = summarised(&overhead, describe::overhead(&overhead))?;
    manifest.options = serde_json::to_value(options)?;
    Ok(manifest)
}

/// Facts with a line for people beside them.
fn summarised(facts: &impl Serialize, summary: String) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(facts)?;
    value["summary"] = summary.into();
    Ok(value)
}

/// Measures; true where it was stopped from outside.
fn measure(session: &mut Session, extent: Extent, shown: Shown) -> anyhow::Result<bool> {
    match session.options.auto.clone() {
        Some(options) => auto::measure(session, &options, extent, shown),
        None => measure_fixed(session, shown),
    }
}

/// Executes the plan as it stands; true where it was stopped from outside.
fn measure_fixed(session: &mut Session, shown: Shown) -> anyhow::Result<bool> {
    let silent = shown == Shown::Nothing;
    let Session { dir, store, plan, opened, options } = session;
    if !silent {
        announce(dir, plan, opened, options);
    }
    if opened.device.is_virtual() {
        store.set_durability(Durability::RELAXED);
    }
    let kept: Vec<u32> = plan.runs().map(|r| r.id).filter(|id| store.has(*id)).collect();
    let left = plan.runs().filter(|r| !silent && !kept.contains(&r.id));
    let page = live_page(shown, plan, opened, options.budget_ns, store)?;
    let mut display = match &page {
        Some(page) => Display::on_page(left, options.budget_ns, page),
        None => Display::new(left, options.budget_ns),
    };
    let mut enforcer = Enforcer::new(dir, &options.engine, opened.device.is_virtual());
    let mut enforce = |request: ResetRequest, device: &mut dyn Device, stop: &Stop| {
        enforcer.enforce(request, device, stop, &|text| say(shown, page.as_deref(), text))
    };
    let mut progress = |event: &Progress<'_>| match event {
        Progress::RunStarted { spec, .. } => display.started(spec),
        Progress::RunFinished { spec, stats, elapsed } => display.finished(spec, stats, *elapsed),
        Progress::Again { spec, incidents, attempt } if !silent => display.again(spec, incidents, *attempt),
        Progress::Again { .. } => {}
        Progress::Resetting { .. } if silent => {}
        Progress::Resetting { state } => display.note(&format!("bringing the device to the {state} state")),
        Progress::Pausing { .. } => {}
    };
    let control = Control { stop: &STOP, budget: options.budget_ns.map(|total| Budget { total }), unix_now };
    let all = 0..plan.steps.len();
    let mut spans = vec![(false, all.clone())];
    if opened.device.is_virtual() {
        spans = gaps::spans(plan, all, |id| kept.contains(&id));
        while spans.pop_if(|(again, _)| *again).is_some() {}
    }
    let mut finished = Ok(Finished::default());
    for (again, steps) in spans {
        let (device, before) = (&mut *opened.device, finished.map_or(0, |end| end.cut_short));
        let part = if again {
            replay_steps(plan, steps, device, &mut enforce, &STOP)
                .map(|stopped| Finished { stopped, ..Finished::default() })
        } else {
            execute_steps(plan, steps, device, store, &mut enforce, control, &mut progress)
        };
        finished = part.map(|end| Finished { cut_short: before + end.cut_short, ..end });
        if !matches!(finished, Ok(Finished { stopped: false, .. })) {
            break;
        }
    }
    display.close();
    let finished = finished?;
    store.sync()?;
    if finished.cut_short > 0 && !silent {
        crate::say!("{} runs were cut short to stay within the time", finished.cut_short);
    }
    Ok(finished.stopped)
}

/// The live page, where it is asked for.
fn live_page(
    shown: Shown,
    plan: &Plan,
    opened: &Opened,
    budget: Option<Nanos>,
    store: &Store,
) -> anyhow::Result<Option<Arc<Live>>> {
    let title = || format!("uflip {}, preset {}, seed {}", opened.summary, plan.preset, plan.seed);
    let live = shown == Shown::Live;
    live.then(|| Live::start(title(), budget, store.watch()).map(Arc::new)).transpose()
}

/// A word between runs, where a person sees it.
fn say(shown: Shown, page: Option<&Live>, text: &str) {
    match (page, shown) {
        (Some(page), _) => page.note(text),
        (None, Shown::Nothing) => {}
        (None, _) => crate::say!("{text}"),
    }
}

/// What the plan comes to, in a line or two.
fn summary_of(plan: &Plan, name: &str) -> String {
    let (summary, capacity) = (plan.summary(), plan.geometry.capacity);
    let bytes = Bytes(summary.write_bytes.0 + summary.reset_bytes.0);
    if bytes == Bytes(0) {
        return format!("{} runs in all; nothing is written", summary.runs);
    }
    let range = target::written_range(plan);
    format!("{} runs in all; {}", summary.runs, target::will_be_written(&range, bytes, capacity, name))
}

/// Says what is about to happen, before it does.
fn announce(dir: &Path, plan: &Plan, opened: &Opened, options: &RunOptions) {
    let summary = plan.summary();
    let capacity = plan.geometry.capacity;
    crate::say!(
        "measuring {} ({capacity}): preset {}, {} runs, seed {}, {}",
        opened.name,
        plan.preset,
        summary.runs,
        plan.seed,
        describe::engine(&options.engine)
    );
    if writes(plan) {
        let bytes = Bytes(summary.write_bytes.0 + summary.reset_bytes.0);
        crate::say!(
            "{}",
            target::will_be_written(&target::written_range(plan), bytes, capacity, &opened.name)
        );
    }
    opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
    plan.notes.iter().for_each(|note| crate::say!("note: {note}"));
    crate::say!("results go to {}", dir.display());
}
