//! `uflip job`: experiments as text, on the engines, safety checks and store
//! that every other measurement uses.

use crate::args::extra::{JobArgs, LogicalBlockArg};
use crate::args::{EngineArgs, RunArgs};
use crate::command::{fresh_seed, print, print_json};
use crate::describe::round_time;
use crate::interrupt::STOP;
use crate::printable::word;
use crate::session::{self, Needs, Order, Session, Shown, Teller};
use crate::target::{self, Target, Unnamed};
use crate::{input, usage};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uflip_analysis::job_report;
use uflip_analysis::verification::jobs::JobResults;
use uflip_device::safety::wear_note;
use uflip_device::{Bytes, Data, EngineOptions, Geometry, Nanos, unix_now};
use uflip_measure::job::{self, Assumed, Job, JobPlan, Throughputs};
use uflip_measure::{Control, Progress};
use uflip_store::manifest::Asked;
use uflip_store::{Options, RunRow, Store, StoreContents};

/// What a resume heeds.
const HEEDED: [&str; 7] =
    ["output", "resume", "other-device", "erase-device", "seed", "keep-scratch", "json"];

/// A session with the job that is done in it.
pub struct JobSession {
    /// The session.
    pub session: Session,
    /// What is to be done.
    pub job: Job,
    /// The same on the target.
    pub planned: JobPlan,
    /// Throughputs of what is kept.
    pub kept: Throughputs,
}

impl From<JobSession> for Session {
    fn from(running: JobSession) -> Session {
        running.session
    }
}

/// Where a job comes from.
enum JobSource<'a> {
    /// A job file.
    File(&'a Path),
    /// A ready-made job.
    Suite(&'a str),
}

impl JobSource<'_> {
    /// What its text makes of a folder.
    fn asked(&self) -> fn(String) -> Asked {
        match self {
            JobSource::File(_) => Asked::Job,
            JobSource::Suite(_) => Asked::Suite,
        }
    }
}

/// What a new job is asked for.
struct Wish<'a> {
    source: JobSource<'a>,
    /// Only these of its lines; all where empty.
    only: &'a [String],
    logical_block: Option<&'a LogicalBlockArg>,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the job, the target, an IO or the results folder.
pub fn job(mut args: JobArgs) -> anyhow::Result<()> {
    // With --scratch the one word that is left is the job's.
    if args.target.scratch.is_some() && args.file.is_none() {
        args.file = args.target.target.take().map(PathBuf::from);
    }
    let target = match args.resume {
        true => Target::of_resume(&args.target)?,
        false => Some(Target::of_command(&args.target, Unnamed::Nothing, &args.typed)?),
    };
    let source = match (&args.suite, &args.file) {
        (Some(name), _) => Some(JobSource::Suite(name)),
        (None, file) => file.as_deref().map(JobSource::File),
    };
    let wish =
        source.map(|source| Wish { source, only: &args.only, logical_block: args.logical_block.as_ref() });
    let order = Order {
        consents: args.consent.erase_device.clone(),
        output: args.output.clone(),
        seed: args.seed,
        resume: args.resume,
        other_device: args.other_device,
        typed: args.typed.clone(),
        heeded: &HEEDED,
        ours: |asked| matches!(asked, Asked::Job(_) | Asked::Suite(_)),
        ..Order::new("job", target)
    };
    if !args.resume && (args.check || args.print || args.to_fio) {
        return explain(&args, &order, &wish.context("a job file is needed")?);
    }
    perform(&order, wish, &args.engine, args.json)
}

/// `uflip run --suite NAME`: a ready-made job; also goes on with one.
///
/// # Errors
/// As [`job`].
pub fn suite(args: RunArgs) -> anyhow::Result<()> {
    let ours = |asked: &Asked| matches!(asked, Asked::Suite(_));
    let order = Order { heeded: &HEEDED, ours, shown: Shown::Lines, ..super::run::order(&args, "run")? };
    let logical_block = args.logical_block.as_ref();
    let suite = args.suite.as_deref().map(JobSource::Suite);
    let wish = suite.map(|source| Wish { source, only: &args.plan.only, logical_block });
    perform(&order, wish, &args.engine, args.json)
}

/// True where `dir` holds the results of a ready-made job.
pub fn is_suite(dir: Option<&Path>) -> bool {
    let contents = dir.and_then(|dir| StoreContents::read(dir).ok());
    contents.is_some_and(|of| matches!(of.manifest.options.asked, Asked::Suite(_)))
}

/// Begins or goes on, measures all of it and says what it came to.
fn perform(order: &Order, wish: Option<Wish<'_>>, engine: &EngineArgs, json: bool) -> anyhow::Result<()> {
    let start = || {
        if order.resume {
            return resume(order);
        }
        let wish = wish.context("a job file is needed")?;
        let (job, asked) = (wish.read(order)?, wish.source.asked());
        let seed = job.seed.or(order.seed).unwrap_or_else(fresh_seed);
        let typed = engine.resolve(seed).map_err(usage)?;
        refuse_overruled(order, typed, &job)?;
        let engine = engine_of(typed, &job);
        begin(order, job, asked, seed, engine)
    };
    let (dir, options) = session::live(order, start, measure)?;
    finish(&dir, &options, order.keep_scratch, json)
}

/// Keeps what a finished job came to as `job.json`, makes profile and report,
/// removes the scratch file that nobody asked for, and prints it.
fn finish(dir: &Path, options: &Options, keep_scratch: bool, json: bool) -> anyhow::Result<()> {
    let contents = Store::open(dir)?;
    let came_to = job_report::of_store(&contents)?.context("nothing says what the job's runs stand for")?;
    job_report::write(dir, &came_to)?;
    // Before anything is printed, as standard output may be closed.
    session::conclude(dir, options, keep_scratch)?;
    if json {
        return print_json(&came_to);
    }
    let (dir, named) = (dir.display(), word(&dir.to_string_lossy()));
    print(&format!(
        "{}\nresults    {dir}; every figure is in {dir}/job.json\ncurves     uflip show {named}\n",
        came_to.text()
    ))
}

/// The job of a folder, and what its runs stand for.
///
/// # Errors
/// Where there is none.
pub fn stored_job(contents: &StoreContents) -> anyhow::Result<(Job, JobPlan)> {
    let text = contents.manifest.options.asked.job().context("no job was measured")?;
    let job = job::parse(text).map_err(|e| anyhow::anyhow!("the stored job: {e}"))?;
    let planned = uflip_store::job::job_of(contents).context("nothing says what the job's runs stand for")?;
    Ok((job, planned))
}

impl Wish<'_> {
    /// The job that was named, or the lines of it that were.
    fn read(&self, order: &Order) -> anyhow::Result<Job> {
        let mut job = self.read_whole(order)?;
        if let Some(unknown) = self.only.iter().find(|name| !job.lines.iter().any(|l| l.name == **name)) {
            let names: Vec<&str> = job.lines.iter().map(|l| l.name.as_str()).collect();
            return Err(usage(format!(
                "no line is called '{unknown}'; type --only with {}",
                names.join(", ")
            )));
        }
        let then = |job: &Job, name: &str| {
            let after = job.lines.iter().filter(|l| self.only.contains(&l.name));
            after.filter_map(|l| l.endurance.as_ref()?.then.as_deref()).any(|then| then == name)
        };
        if let Some(needed) = job.lines.iter().find(|l| !self.only.contains(&l.name) && then(&job, &l.name))
            && !self.only.is_empty()
        {
            return Err(usage(format!("the rounds need the line {0}; add it: --only …,{0}", needed.name)));
        }
        let given = self.logical_block.map(|given| logical_block(given, order)).transpose()?;
        job.logical_block = given.or(job.logical_block);
        job.lines.retain(|line| self.only.is_empty() || self.only.contains(&line.name));
        Ok(job)
    }

    /// The job that was named, with errors that name the file.
    fn read_whole(&self, order: &Order) -> anyhow::Result<Job> {
        let path = match self.source {
            JobSource::Suite(name) => {
                let names = job::suite::SUITES.map(|(name, _)| name).join(", ");
                let text = job::suite::suite(name)
                    .ok_or_else(|| usage(format!("'{name}' is no ready-made job; type one of {names}")))?;
                return job::parse(text).map_err(|e| usage(format!("{name}: {e}")));
            }
            JobSource::File(path) => path,
        };
        let named = path.to_string_lossy();
        let is_target = |target| {
            matches!(target, Target::Null { .. } | Target::Simulated { .. } | Target::BlockDevice { .. })
        };
        if Target::parse(&named, Bytes(0)).is_ok_and(is_target) {
            let (target, file) = (word(&named), order.target()?.to_string());
            return Err(usage(format!(
                "{named} is a target and no job file; the target comes first: uflip job {target} {}",
                word(&file)
            )));
        }
        let text = input::text(path, input::DESCRIPTION, "a job file")?;
        let is_fio = path.extension().is_some_and(|e| e == "fio");
        let parsed = if is_fio { job::fio::from_fio(&text) } else { job::parse(&text) };
        let job = parsed.map_err(|e| usage(format!("{}: {e}", path.display())))?;
        refuse_idle_words(&job, path)?;
        Ok(job)
    }
}

/// Refuses a word of a job file's line that does nothing. Jobs in folders are read as
/// they are.
fn refuse_idle_words(job: &Job, path: &Path) -> anyhow::Result<()> {
    for line in &job.lines {
        if let Some((word, why)) = line.without_effect() {
            return Err(usage(format!(
                "{}: line {}: {word} does nothing in {}, as {why}; leave it away",
                path.display(),
                line.number,
                line.name
            )));
        }
    }
    Ok(())
}

/// Refuses options that the job overrules.
fn refuse_overruled(order: &Order, typed: EngineOptions, job: &Job) -> anyhow::Result<()> {
    let given = |name: &str| order.typed.was_given(name);
    let seed = order.seed.zip(job.seed).filter(|(typed, own)| typed != own).map(|(_, own)| own.to_string());
    let data = job.data.filter(|own| given("data") && *own != typed.data).map(|own| own.to_string());
    let buffering = job.buffering.filter(|own| given("buffering") && *own != typed.buffering);
    let overruled = [
        ("seed", seed),
        ("data", data),
        ("buffering", buffering.map(|own| job::buffering_word(own).to_string())),
    ];
    match overruled.into_iter().find_map(|(name, own)| Some((name, own?))) {
        Some((name, own)) => Err(usage(format!(
            "--{name} does nothing, as the job says set {name}={own}; leave the option away, or change the file"
        ))),
        None => Ok(()),
    }
}

/// What the job's `set` says and the target does not heed: the same file may be for
/// other targets.
fn idle_settings(job: &Job, target: &Target, planned: &JobPlan) -> Vec<String> {
    let data = job.data.map(|data| format!("set data={data}"));
    let buffering = job.buffering.map(|mode| format!("set buffering={}", job::buffering_word(mode)));
    if let Some(why) = target.why_not_driven() {
        let idle = data.into_iter().chain(buffering);
        return idle.map(|what| format!("{what} does nothing on {target}, which {why}")).collect();
    }
    let idle = data.filter(|_| !planned.writes());
    idle.map(|what| format!("{what} does nothing, as the job only reads")).into_iter().collect()
}

/// The logical block that was typed, or found in the folder that was.
fn logical_block(given: &LogicalBlockArg, order: &Order) -> anyhow::Result<Bytes> {
    let dir = match given {
        LogicalBlockArg::Size(size) => return Ok(*size),
        LogicalBlockArg::Folder(dir) => dir,
    };
    let (shown, target) = (dir.display(), order.target()?.to_string());
    let Some(size) = uflip_store::logical_block::measured(dir)? else {
        return Err(usage(format!(
            "{shown} holds no logical block; find it with: uflip logical-block {} -o DIR, or type its size",
            word(&target)
        )));
    };
    let of = StoreContents::read(dir)?.manifest.options.target;
    if of != target {
        return Err(usage(format!(
            "the logical block in {shown} is that of {of}; type a size if it is the same"
        )));
    }
    Ok(size)
}

/// How the target is driven, where the job has a say in it.
fn engine_of(typed: EngineOptions, job: &Job) -> EngineOptions {
    EngineOptions {
        data: job.data.unwrap_or(typed.data),
        buffering: job.buffering.unwrap_or(typed.buffering),
        ..typed
    }
}

/// `--check`, `--print` and `--to-fio`: nothing is opened for writing.
fn explain(args: &JobArgs, order: &Order, wish: &Wish<'_>) -> anyhow::Result<()> {
    let job = wish.read(order)?;
    if args.print {
        return print(&job.to_string());
    }
    let target = order.target()?;
    let (place, name) = (target::locate(target)?, target.to_string());
    let planned = job::expand(&job, &name, place.geometry, args.seed.unwrap_or(0)).map_err(usage)?;
    if args.to_fio {
        let buffering = engine_of(args.engine.resolve(0).map_err(usage)?, &job).buffering;
        return print(&job::fio::to_fio(&job, &planned, &name, buffering));
    }
    refuse_overruled(order, args.engine.resolve(0).map_err(usage)?, &job)?;
    idle_settings(&job, target, &planned).iter().for_each(|note| crate::say!("note: {note}"));
    let costs = job::costs(&job, &planned, Assumed::default());
    if args.json { print_json(&costs) } else { print(&costs_text(&costs, target, place.geometry)) }
}

fn costs_text(costs: &[job::LineCost], target: &Target, geometry: Geometry) -> String {
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

/// Begins `job`: plans it on the target, opens that, plans it on what was opened
/// and makes the store, of the kind that `asked` makes of its text.
///
/// # Errors
/// A refusal, what the system says, or a plan that the target cannot take.
pub fn begin(
    order: &Order,
    job: Job,
    asked: fn(String) -> Asked,
    seed: u64,
    engine: EngineOptions,
) -> anyhow::Result<JobSession> {
    let target = order.target()?;
    let place = target::locate(target)?;
    let planned = job::expand(&job, &target.to_string(), place.geometry, seed).map_err(usage)?;
    let begun = session::begin(order, &place, Needs::Plan(&planned.plan), engine, None)?;
    let geometry = begun.opened.device.geometry();
    let planned = job::expand(&job, &begun.opened.target.to_string(), geometry, seed).map_err(usage)?;
    let session = begun.into_session(order, &planned.plan, asked(job.to_string()))?;
    Ok(JobSession { session, job, planned, kept: Throughputs::new() })
}

/// The interrupted job that `order` names.
///
/// # Errors
/// Where there is none, or the target is another one now.
pub fn resume(order: &Order) -> anyhow::Result<JobSession> {
    let found = session::find(order)?;
    let (contents, dir) = (&found.contents, &found.contents.dir);
    let text = contents.manifest.options.asked.job().unwrap_or_default();
    let job = job::parse(text).with_context(|| format!("{}: the job", dir.display()))?;
    let Some(planned) = uflip_store::job::job_of(contents) else {
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
    let mut engine = found.engine();
    if let Data::Age | Data::AgeFrom(_) = engine.data {
        // The stamps count on from what the device has seen of this job.
        let write = |row: &&RunRow| row.spec.work.writes();
        engine.data = Data::AgeFrom(contents.runs.iter().filter(write).map(|r| r.outcome.end.ios).sum());
    }
    let (session, ..) = found.open(order, Needs::Plan(&planned.plan), engine)?;
    Ok(JobSession { session, job, planned, kept })
}

/// Does the job; true where it was stopped from outside.
fn measure(running: &mut JobSession) -> anyhow::Result<bool> {
    announce(running);
    let JobSession { session, planned, kept, .. } = running;
    let shown = session.shown;
    let had: Vec<u32> = kept.keys().copied().collect();
    let left = planned.plan.runs().filter(|r| !had.contains(&r.id));
    let (mut device, mut store) = session.device_and_store();
    let mut teller = Teller::new(shown, None, left, None);
    let control = Control { stop: &STOP, budget: None, unix_now };
    let mut tell = |event: &Progress<'_>| teller.tell(event);
    let finished = job::drive(planned, &mut device, &mut store, kept, control, &mut tell);
    teller.close();
    Ok(finished?.stopped)
}

/// The job `text` on a simulated device into `folder`, as `uflip job` does it,
/// without a word.
///
/// # Errors
/// As [`job`].
pub fn measure_simulated(target: Target, text: &str, seed: u64, folder: &Path) -> anyhow::Result<JobResults> {
    let order = Order::in_silence("job", target, seed, folder);
    let engine = EngineOptions { seed, ..EngineOptions::default() };
    let job = job::parse(text)?;
    let (dir, _) = session::live(&order, || begin(&order, job, Asked::Job, seed, engine), measure)?;
    let contents = Store::open(&dir)?;
    let (_, planned) = stored_job(&contents)?;
    Ok(JobResults { contents, planned })
}

/// Says what is about to happen, before it does.
fn announce(running: &JobSession) {
    let JobSession { session, planned, job, .. } = running;
    if session.shown == Shown::Nothing {
        return;
    }
    let (capacity, target) = (planned.plan.geometry.capacity, &session.opened.target);
    let bytes = job::costs(job, planned, Assumed::default()).iter().map(|c| c.write_bytes.0).sum();
    crate::say!(
        "job on {target} ({capacity}): {} lines, up to {} runs, seed {}{}",
        job.lines.len(),
        planned.plan.runs().count(),
        planned.plan.seed,
        session::driven(&session.options)
    );
    if planned.writes() {
        let range = target::written_range(&planned.plan);
        crate::say!("{}", target::will_be_written(&range, Bytes(bytes), capacity, target));
    }
    planned.plan.skipped.iter().for_each(|s| {
        crate::say!("skipped: {} {} {}: {}", s.micro_benchmark, s.baseline, s.label, s.reason);
    });
    session.announce(&idle_settings(job, target, planned));
}
