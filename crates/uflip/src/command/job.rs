//! `uflip job`: experiments as text, on the engines, safety checks and store
//! that every other measurement uses.

use crate::args::RunArgs;
use crate::args::extra::{JobArgs, LogicalBlockArg};
use crate::args::{Cli, Command};
use crate::command::run::{consent_again, stored_plan};
use crate::command::{fresh_seed, print, print_json, profile, report};
use crate::describe::round_time;
use crate::interrupt::{self, STOP};
use crate::printable::word;
use crate::progress::Display;
use crate::same_device::{self, Asked};
use crate::target::{self, Access, Opened, Place, claim_output, target_name};
use crate::typed::{self, Chosen};
use crate::{input, limits, usage};
use anyhow::{Context, bail};
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uflip_analysis::job_report;
use uflip_device::identity::{SysPaths, host_facts};
use uflip_device::safety::wear_note;
use uflip_device::{Bytes, Data, EngineOptions, Geometry, Nanos, measure_overhead, unix_now};
use uflip_measure::job::{self, Assumed, Job, JobPlan, Kept};
use uflip_measure::run::{RunSpec, Sink};
use uflip_measure::{Control, Progress};
use uflip_store::{Claim, Durability, Manifest, RunRow, Store, StoreContents};

/// The part of the manifest that `--resume` and the reports go by.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct JobOptions {
    /// As typed; a file's path made absolute.
    target: String,
    #[serde(flatten)]
    engine: EngineOptions,
    /// The whole job as text.
    job: String,
    /// The options, given or by default; a resume refuses others.
    #[serde(default, skip_serializing_if = "Chosen::is_empty")]
    chosen: Chosen,
    /// The target is a scratch file that nobody asked to keep.
    #[serde(default)]
    remove_scratch: bool,
}

/// What a resume heeds.
const HEEDED: [&str; 7] =
    ["output", "resume", "other-device", "erase-device", "seed", "keep-scratch", "json"];

/// Everything ready to be measured.
pub struct Session {
    /// The results folder.
    pub dir: PathBuf,
    /// What is kept.
    pub store: Store,
    /// What is to be done.
    pub job: Job,
    /// The same on the target.
    pub planned: JobPlan,
    /// The target.
    pub opened: Opened,
    options: JobOptions,
    /// Throughputs of what is kept.
    pub kept: Kept,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the job, the target, an IO or the results folder.
pub fn job(args: JobArgs) -> anyhow::Result<()> {
    if !args.resume && (args.check || args.print || args.to_fio) {
        return explain(&args);
    }
    let dir = perform(&args, "job")?;
    finish(&dir, &args)
}

/// `uflip run --suite NAME`: a ready-made job; also goes on with one.
///
/// # Errors
/// As [`job`].
pub fn suite(args: RunArgs) -> anyhow::Result<()> {
    let RunArgs {
        target,
        suite,
        logical_block,
        output,
        plan,
        engine,
        consent,
        resume,
        other_device,
        json,
        keep_scratch,
        typed,
        ..
    } = args;
    let own_scratch = target.is_none() && !resume;
    let stored = || Some(stored_options(output.as_deref()?).ok()?.target);
    let target = target.or_else(|| if resume { stored() } else { None });
    let target = target.unwrap_or_else(|| target::SCRATCH.to_string());
    let args = JobArgs::of(target, engine, consent, plan.scratch_size);
    let (only, seed) = (plan.only, plan.seed);
    let args = JobArgs { suite, only, logical_block, output, seed, resume, other_device, ..args };
    let args = JobArgs { json, typed, own_scratch, keep_scratch, ..args };
    let dir = perform(&args, "run")?;
    finish(&dir, &args)
}

/// True where `dir` holds the results of a job.
pub fn is_job(dir: Option<&Path>) -> bool {
    dir.is_some_and(|dir| stored_options(dir).is_ok())
}

fn stored_options(dir: &Path) -> anyhow::Result<JobOptions> {
    Ok(serde_json::from_value(StoreContents::read(dir)?.manifest.options)?)
}

/// Measures all of it; gives the results folder. Begins or goes on as `uflip
/// COMMAND`, which is what a person types again.
fn perform(args: &JobArgs, command: &str) -> anyhow::Result<PathBuf> {
    interrupt::listen()?;
    let mut session = if args.resume { resume(args, command)? } else { begin(args)? };
    let finished = measure(&mut session);
    let Session { dir, store, opened, .. } = session;
    let count = store.len();
    drop((store, opened));
    let go_on = || {
        let again = same_device::to_type(command, &args.target, &dir) + &consent_again(&args.consent);
        format!("{count} runs are kept in {}; go on with: {again}", dir.display())
    };
    if finished.with_context(go_on)? {
        bail!("interrupted; {}", go_on());
    }
    Ok(dir)
}

/// Keeps what a finished job came to as `job.json`, makes profile and report,
/// removes the scratch file that nobody asked for, and prints it.
fn finish(dir: &Path, args: &JobArgs) -> anyhow::Result<()> {
    let contents = Store::open(dir)?;
    let options: JobOptions = serde_json::from_value(contents.manifest.options.clone())?;
    let came_to = job_report::of_store(&contents)?.context("nothing says what the job's runs stand for")?;
    job_report::write(dir, &came_to)?;
    profile::make(dir)?;
    report::write_report(dir, None)?;
    // Without it there is nothing to go on with; before anything is printed, as
    // standard output may be closed.
    if options.remove_scratch && !args.keep_scratch {
        target::remove_scratch(Path::new(&options.target));
    }
    if args.json {
        return print_json(&came_to);
    }
    let (dir, named) = (dir.display(), word(&dir.to_string_lossy()));
    print(&format!(
        "{}\nresults    {dir}; every figure is in {dir}/job.json\ncurves     uflip show {named}\n",
        came_to.text()
    ))
}

/// The job that was named, or the lines of it that were.
fn read(args: &JobArgs) -> anyhow::Result<Job> {
    let mut job = read_whole(args)?;
    if let Some(unknown) = args.only.iter().find(|name| !job.lines.iter().any(|l| l.name == **name)) {
        let names: Vec<&str> = job.lines.iter().map(|l| l.name.as_str()).collect();
        return Err(usage(format!("no line is called '{unknown}'; type --only with {}", names.join(", "))));
    }
    let then = |job: &Job, name: &str| {
        let after = job.lines.iter().filter(|l| args.only.contains(&l.name));
        after.filter_map(|l| l.endurance.as_ref()?.then.as_deref()).any(|then| then == name)
    };
    if let Some(needed) = job.lines.iter().find(|l| !args.only.contains(&l.name) && then(&job, &l.name))
        && !args.only.is_empty()
    {
        return Err(usage(format!("the rounds need the line {0}; add it: --only …,{0}", needed.name)));
    }
    job.logical_block = given_logical_block(args)?.or(job.logical_block);
    job.lines.retain(|line| args.only.is_empty() || args.only.contains(&line.name));
    Ok(job)
}

/// The logical block that was typed, or found in the folder that was.
fn given_logical_block(args: &JobArgs) -> anyhow::Result<Option<Bytes>> {
    let dir = match &args.logical_block {
        None => return Ok(None),
        Some(LogicalBlockArg::Size(size)) => return Ok(Some(*size)),
        Some(LogicalBlockArg::Folder(dir)) => dir,
    };
    let (shown, target) = (dir.display(), word(&args.target));
    let Some(size) = uflip_store::logical_block::measured(dir)? else {
        return Err(usage(format!(
            "{shown} holds no logical block; find it with: uflip logical-block {target} -o DIR, or type its size"
        )));
    };
    let of = stored_options(dir)?.target;
    if of != target_name(Some(&args.target))? {
        return Err(usage(format!(
            "the logical block in {shown} is that of {of}; type a size if it is the same"
        )));
    }
    Ok(Some(size))
}

/// The job that was named, with errors that name the file.
fn read_whole(args: &JobArgs) -> anyhow::Result<Job> {
    if let Some(name) = &args.suite {
        let names = job::suite::SUITES.map(|(name, _)| name).join(", ");
        let text = job::suite::suite(name)
            .ok_or_else(|| usage(format!("'{name}' is no ready-made job; type one of {names}")))?;
        return job::parse(text).map_err(|e| usage(format!("{name}: {e}")));
    }
    let path = args.file.as_deref().context("a job file is needed")?;
    let text = input::text(path, input::DESCRIPTION, "a job file")?;
    let is_fio = path.extension().is_some_and(|e| e == "fio");
    let parsed = if is_fio { job::fio::from_fio(&text) } else { job::parse(&text) };
    parsed.map_err(|e| usage(format!("{}: {e}", path.display())))
}

fn engine(args: &JobArgs, job: &Job, seed: u64) -> anyhow::Result<EngineOptions> {
    let mut options = args.engine.resolve(seed).map_err(usage)?;
    options.data = job.data.unwrap_or(options.data);
    options.buffering = job.buffering.unwrap_or(options.buffering);
    Ok(options)
}

/// `--check`, `--print` and `--to-fio`: nothing is opened for writing.
fn explain(args: &JobArgs) -> anyhow::Result<()> {
    let job = read(args)?;
    if args.print {
        return print(&job.to_string());
    }
    let place = target::locate(&args.target, args.scratch_size)?;
    let planned = job::expand(&job, &args.target, place.geometry, args.seed.unwrap_or(0)).map_err(usage)?;
    if args.to_fio {
        let buffering = engine(args, &job, 0)?.buffering;
        return print(&job::fio::to_fio(&job, &planned, &args.target, buffering));
    }
    let costs = job::costs(&job, &planned, Assumed::default());
    if args.json { print_json(&costs) } else { print(&costs_text(&costs, &args.target, place.geometry)) }
}

fn costs_text(costs: &[job::LineCost], target: &str, geometry: Geometry) -> String {
    let mut text = format!("{target}: {} in sectors of {}\n", geometry.capacity, geometry.sector);
    for cost in costs {
        let time = round_time(Duration::from(cost.time));
        text += &format!("line {} {}: {}\n", cost.number, cost.name, cost.text);
        text += &format!("  {} runs", cost.runs);
        if cost.runs_before > 0 {
            text += &format!(" and {} before them", cost.runs_before);
        }
        if cost.optional_runs > 0 {
            text += &format!(", up to {} more by self-scaling", cost.optional_runs);
        }
        text += &format!("; about {time}; reads {}", cost.read_bytes);
        text += &format!("; {}\n", wear_note(cost.write_bytes, geometry.capacity));
        cost.skipped.iter().for_each(|why| text += &format!("  skipped: {why}\n"));
    }
    let sum = |get: fn(&job::LineCost) -> u64| costs.iter().map(get).fold(0, u64::saturating_add);
    let (time, bytes) = (Nanos(sum(|c| c.time.0)), Bytes(sum(|c| c.write_bytes.0)));
    let assumed = Assumed::default();
    text += &format!(
        "in all about {}; {}\n(IOs are taken to need {} and {} MB/s where a run has no time limit of its own)\n",
        round_time(Duration::from(time)),
        wear_note(bytes, geometry.capacity),
        assumed.latency,
        assumed.bytes_per_s / 1e6
    );
    text
}

/// A new job.
fn begin(args: &JobArgs) -> anyhow::Result<Session> {
    let job = read(args)?;
    let seed = job.seed.or(args.seed).unwrap_or_else(fresh_seed);
    let engine = engine(args, &job, seed)?;
    let name = target_name(Some(&args.target))?;
    let place = target::locate(&name, args.scratch_size)?;
    let planned = job::expand(&job, &name, place.geometry, seed).map_err(usage)?;
    may_be_measured(&planned, &engine, &place)?;
    if planned.writes() {
        place.may_be_written(&args.consent.erase_device)?;
    }
    start(args, claim_output(args.output.as_deref())?, job, seed)
}

/// Refuses what needs more memory than there is, and trims beside other IOs of
/// a file.
///
/// # Errors
/// What of it, and what to type instead.
pub fn may_be_measured(planned: &JobPlan, engine: &EngineOptions, place: &Place) -> anyhow::Result<()> {
    limits::room_for_plan(&planned.plan, engine, place.virtual_time)?;
    target::refuse_mixed_trims(place, planned.plan.runs().filter_map(RunSpec::pattern))
}

/// Opens the target, plans `job` on it and makes the store in the folder that
/// was claimed.
///
/// # Errors
/// A refusal, what the system says, or a plan that the target cannot take.
pub fn start(args: &JobArgs, claim: Claim, job: Job, seed: u64) -> anyhow::Result<Session> {
    let engine = engine(args, &job, seed)?;
    let target = target_name(Some(&args.target))?;
    let options = JobOptions {
        target,
        engine,
        job: job.to_string(),
        chosen: args.typed.chosen(),
        remove_scratch: args.own_scratch && !args.keep_scratch,
    };
    let writes = job.lines.iter().any(writes_line);
    let opened = open(args, &options, writes, args.scratch_size)?;
    let planned = job::expand(&job, &options.target, opened.device.geometry(), seed).map_err(usage)?;
    let mut manifest = Manifest::new(env!("CARGO_PKG_VERSION"), planned.plan.seed);
    manifest.target = serde_json::json!({
        "name": opened.name,
        "facts": opened.facts,
        "identity": same_device::for_manifest(&opened.name),
        "warnings": opened.warnings,
    });
    manifest.host = serde_json::to_value(host_facts(&SysPaths::default()))?;
    manifest.overhead = serde_json::to_value(measure_overhead())?;
    manifest.options = serde_json::to_value(&options)?;
    let dir = claim.dir().to_path_buf();
    let store = Store::create_in(claim, &manifest, &serde_json::to_value(&planned.plan)?)?;
    Ok(Session { dir, store, job, planned, opened, options, kept: Kept::new() })
}

fn open(args: &JobArgs, options: &JobOptions, writes: bool, scratch: Bytes) -> anyhow::Result<Opened> {
    let access = if writes { Access::Write(&args.consent.erase_device) } else { Access::Read };
    target::open(&options.target, access, options.engine, scratch, None)
}

fn writes_line(line: &job::Line) -> bool {
    line.patterns.iter().any(|b| b.mode() == uflip_measure::Mode::Write) || !line.before.is_empty()
}

/// The interrupted job in `-o DIR`, gone on with as `uflip COMMAND`.
///
/// # Errors
/// Where there is none, or the target is another one now.
pub fn resume(args: &JobArgs, command: &str) -> anyhow::Result<Session> {
    let dir = typed::folder(args.output.as_deref())?.to_path_buf();
    // Before anything is read that somebody else may be changing.
    let claim = Claim::existing(&dir)?;
    let contents = Store::open(&dir)?;
    args.typed.refuse_without_effect(&contents, &HEEDED)?;
    let options: JobOptions = serde_json::from_value(contents.manifest.options.clone())
        .with_context(|| format!("{}/manifest.json does not say what uflip job was asked for: another command made it, or it is damaged", dir.display()))?;
    let typed = target_name(Some(&args.target))?;
    let answer = same_device::ask(&Asked {
        contents: &contents,
        stored: &options.target,
        typed: Some(&typed),
        other: args.other_device,
        data: options.engine.data,
        type_for: &|target| same_device::to_type(command, target, &dir),
    })?;
    let job = job::parse(&options.job).with_context(|| format!("{}: the job", dir.display()))?;
    let plan = stored_plan(&contents)?;
    let Some(planned) = uflip_store::job::job_of(&contents) else {
        bail!(
            "{} was planned by another version of uflip; start the job anew with another -o",
            dir.display()
        );
    };
    let kept = contents.runs.iter().filter_map(|row| {
        let bytes = job::drive::bytes_of(&row.spec, row.outcome.end.ios);
        job::drive::throughput(bytes, &row.outcome.end).map(|t| (row.spec.id, t))
    });
    let kept = kept.collect();
    let place = target::locate(&answer.name, plan.geometry.capacity)?;
    may_be_measured(&planned, &options.engine, &place)?;
    let mut store = Store::resume_in(claim, args.seed, None)?;
    store.notes().iter().for_each(|note| crate::say!("note: {note}"));
    let mut options = JobOptions { target: answer.name.clone(), ..options };
    if let Data::Age | Data::AgeFrom(_) = options.engine.data {
        // The stamps count on from what the device has seen of this job.
        let write = |row: &&RunRow| row.spec.work.writes();
        options.engine.data =
            Data::AgeFrom(contents.runs.iter().filter(write).map(|r| r.outcome.end.ios).sum());
    }
    let opened = open(args, &options, planned.writes(), plan.geometry.capacity)?;
    if opened.device.geometry() != plan.geometry {
        bail!("{} has another size now; start the job anew with another -o", options.target);
    }
    answer.still_is(&opened.name)?;
    let next_run = plan.runs().map(|run| run.id).find(|id| !store.has(*id));
    answer.record(&mut store, &contents.manifest, next_run, &opened.facts)?;
    Ok(Session { dir, store, job, planned, opened, options, kept })
}

/// Does the job; true where it was stopped from outside.
fn measure(session: &mut Session) -> anyhow::Result<bool> {
    announce(session);
    let Session { store, planned, opened, kept, .. } = session;
    if opened.device.is_virtual() {
        store.set_durability(Durability::RELAXED);
    }
    let had: Vec<u32> = kept.keys().copied().collect();
    let mut display = Display::new(planned.plan.runs().filter(|r| !had.contains(&r.id)), None);
    let mut progress = |event: &Progress<'_>| match event {
        Progress::RunStarted { spec, .. } => display.started(spec),
        Progress::RunFinished { spec, stats, elapsed } => display.finished(spec, stats, *elapsed),
        Progress::Again { spec, incidents, attempt } => display.again(spec, incidents, *attempt),
        Progress::Resetting { .. } | Progress::Pausing { .. } => {}
    };
    let control = Control { stop: &STOP, budget: None, unix_now };
    let finished = job::drive(planned, &mut *opened.device, store, kept, control, &mut progress);
    display.close();
    let finished = finished?;
    store.sync()?;
    Ok(finished.stopped)
}

/// A finished job on a simulated device.
pub struct Simulated {
    /// What was kept.
    pub contents: StoreContents,
    /// The same on the target.
    pub planned: JobPlan,
}

impl Simulated {
    /// The measured runs of the line called `name`, in order.
    pub fn runs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a job::JobRun, &'a RunRow)> {
        let of_line = move |run: &job::JobRun| run.role == job::Role::Measured && run.line == name;
        let rows = self.contents.runs.iter().filter_map(|row| Some((row.spec.job()?, row)));
        rows.filter(move |(run, _)| of_line(run))
    }

    /// What `uflip job` prints of it.
    ///
    /// # Errors
    /// Where a record file cannot be read.
    pub fn report(&self) -> anyhow::Result<job_report::JobReport> {
        Ok(job_report::report(&self.contents, &self.planned)?)
    }
}

/// The job `text` on `sim:NAME` into `folder`, as `uflip job` does it, without
/// a word.
///
/// # Errors
/// As [`job`].
pub fn measure_simulated(name: &str, text: &str, seed: u64, folder: &Path) -> anyhow::Result<Simulated> {
    let typed = ["uflip", "job", &format!("sim:{name}"), "the text given"];
    let Command::Job(args) = Cli::try_parse_from(typed)?.command else { bail!("not a job") };
    let mut session = start(&args, Claim::new(folder)?, job::parse(text)?, seed)?;
    let Session { store, planned, opened, kept, .. } = &mut session;
    store.set_durability(Durability::RELAXED);
    let control = Control { stop: &STOP, budget: None, unix_now };
    let finished =
        job::drive(planned, &mut *opened.device, store, kept, control, &mut |_: &Progress<'_>| {})?;
    if finished.stopped {
        bail!("interrupted");
    }
    store.sync()?;
    let Session { dir, store, planned, .. } = session;
    drop(store);
    Ok(Simulated { contents: Store::open(&dir)?, planned })
}

/// Says what is about to happen, before it does.
fn announce(session: &Session) {
    let Session { dir, planned, opened, options, job, .. } = session;
    let capacity = planned.plan.geometry.capacity;
    let engine = options.engine;
    let bytes = job::costs(job, planned, Assumed::default()).iter().map(|c| c.write_bytes.0).sum();
    crate::say!(
        "job on {} ({capacity}): {} lines, up to {} runs, seed {}, {}, {}, data {}",
        opened.name,
        job.lines.len(),
        planned.plan.runs().count(),
        planned.plan.seed,
        engine.engine,
        engine.buffering,
        engine.data
    );
    if planned.writes() {
        let range = target::written_range(&planned.plan);
        crate::say!("{}", target::will_be_written(&range, Bytes(bytes), capacity, &opened.name));
    }
    opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
    planned.plan.skipped.iter().for_each(|s| {
        crate::say!("skipped: {} {} {}: {}", s.micro_benchmark, s.baseline, s.label, s.reason);
    });
    crate::say!("results go to {}", dir.display());
}
