//! To and from fio's job files.
//!
//! What: [`to_fio`] writes a plan's runs as fio jobs, each waiting for the one
//! before (`stonewall`), with comments for what fio cannot say; [`from_fio`]
//! reads simple job files: one process, one file, one block size and reads or
//! writes, sequential or random. Keys that change nothing here are passed over;
//! what fio does and uflip does not is an error that names its place and what to
//! type. Units: bytes, ns.
//! Source: fio 3's manual, "job file format"; paper 004, appendix A.
//!
//! How long a job is: `size` is once round the file; `io_size` is the amount, however
//! often that goes round; `number_ios` ends a round early; `runtime` ends it all, and
//! only with `time_based` nothing else does. Counted with fio 3.33.
//!
//! What differs: fio's random addresses come from its own generator, so the
//! same job visits other addresses; a sequential fio job that reaches its end goes
//! on where it began, where `start=random` goes on at the target's beginning.

use super::expand::JobPlan;
use super::{Amount, Each, Job, JobError, Line, Role, RunExtent, Start};
use crate::pattern::{Baseline, Location, Pattern, Timing};
use crate::plan::Step;
use crate::run::RunSpec;
use uflip_device::{Buffering, Bytes, IoRecord, Nanos};

/// The plan's runs as an fio job file for `target`.
pub fn to_fio(job: &Job, planned: &JobPlan, target: &str, buffering: Buffering) -> String {
    let mut text = String::from("; what fio cannot say:\n");
    cannot(job, &mut text);
    let direct = u8::from(buffering != Buffering::Buffered);
    let sync = if buffering == Buffering::DirectSync { "sync=dsync\n" } else { "" };
    text += &format!(
        "[global]\nfilename={target}\ndirect={direct}\n{sync}ioengine=psync\niodepth=1\nthread\n\
         refill_buffers\nallrandrepeat=1\n"
    );
    let mut pause = Nanos::ZERO;
    for segment in planned.segments.iter().filter(|s| s.if_grown_percent.is_none()) {
        for step in &planned.plan.steps[segment.steps.clone()] {
            match step {
                Step::Pause { nanos } => pause = pause.max(*nanos),
                Step::Reset { .. } => {}
                Step::Run(spec) => {
                    text += &fio_job(spec, std::mem::take(&mut pause));
                }
            }
        }
    }
    text
}

/// One run as an fio job, after a pause of this length.
fn fio_job(spec: &RunSpec, pause: Nanos) -> String {
    let Some(Pattern::Basic(basic)) = spec.pattern() else { return String::new() };
    let run = spec.job();
    let name = spec.belongs.section().map_or_else(|| "run".into(), |section| section.to_string());
    let kind = if run.map(|run| run.role) == Some(Role::Measured) { "" } else { "; not measured\n" };
    let rw = match basic.baseline() {
        Baseline::Sr => "read",
        Baseline::Rr => "randread",
        Baseline::Sw => "write",
        Baseline::Rw => "randwrite",
    };
    let mut offset = basic.target_offset.0 + basic.io_shift.0;
    let mut size = basic.target_size.unwrap_or_default().0.saturating_sub(basic.io_shift.0);
    if let Location::SequentialFrom { slot } = basic.location {
        let skipped = slot.saturating_mul(basic.io_size.0);
        (offset, size) = (offset + skipped, size.saturating_sub(skipped));
    }
    let bs = basic.io_size.0;
    let mut text = format!("\n{kind}[{:06} {name}]\nstonewall\nrw={rw}\nbs={bs}\n", spec.id);
    text += &format!("offset={offset}\nsize={}\nrandseed={}\n", size / bs * bs, spec.seed >> 1);
    if run.is_some_and(|run| run.extent == RunExtent::Time) {
        text += "time_based\n";
    } else {
        // number_ios would end after once round the target.
        let ios = basic.timing.without_flushes(spec.io_count);
        text += &format!("io_size={}\n", ios.saturating_mul(bs));
    }
    if let Some(time) = spec.time_limit {
        text += &format!("runtime={}us\n", time.0.div_ceil(1000));
    }
    if let Timing::Synced { every } = basic.timing {
        text += &format!("fdatasync={every}\n");
    }
    if pause > Nanos::ZERO {
        text += "; a pause comes before it: see above\n";
    }
    text
}

fn cannot(job: &Job, text: &mut String) {
    for line in &job.lines {
        let mut say = |what: &str| *text += &format!(";   {}: {what}\n", line.name);
        if line.until_percent.is_some() {
            say("until= (self-scaling): only the line's own block sizes are here");
        }
        if line.window.is_some() {
            say("window=: use log_avg_msec with write_bw_log");
        }
        if line.pause > Nanos::ZERO || line.before.iter().any(|b| matches!(b, super::Before::Idle { .. })) {
            say("pause= and idle(): stonewall starts the next job at once");
        }
        if line.start == Start::Random && line.patterns.iter().any(|p| !p.is_random()) {
            say("start=random: after the end of the target fio goes on where it began, not at the beginning");
        }
    }
    if job.data.is_some_and(|data| data == uflip_device::Data::Age) {
        *text += ";   data=age: the count of writes in every word\n";
    }
}

/// Keys that change nothing about what is measured here.
const IGNORED: [&str; 15] = [
    "name",
    "directory",
    "ioengine",
    "thread",
    "group_reporting",
    "randrepeat",
    "allrandrepeat",
    "randseed",
    "refill_buffers",
    "random_generator",
    "invalidate",
    "overwrite",
    "fallocate",
    "description",
    "create_on_open",
];

/// A section of an fio job file.
#[derive(Clone, Default)]
struct FioSection {
    line: usize,
    name: String,
    filename: Option<String>,
    rw: Option<Baseline>,
    block: Option<Bytes>,
    size: Option<Bytes>,
    offset: Bytes,
    io_size: Option<Bytes>,
    number_ios: Option<u64>,
    runtime: Option<Nanos>,
    time_based: bool,
    loops: u32,
    fsync: Option<u32>,
    direct: bool,
    /// Every write is durable when it is done (O_SYNC or O_DSYNC).
    durable: bool,
    zeros: bool,
    stonewall: bool,
    norandommap: bool,
    end_fsync: bool,
    exitall: bool,
}

impl FioSection {
    fn error(&self, expected: &str, found: &str) -> JobError {
        let name: String = self.name.chars().take(40).collect();
        let (expected, found) = (expected.to_string(), format!("'[{name}]' {found}"));
        JobError { line: self.line, column: 1, expected, found }
    }
}

/// Reads a simple fio job file.
///
/// # Errors
/// [`JobError`] with line and column of what cannot be taken over.
pub fn from_fio(text: &str) -> Result<Job, JobError> {
    let mut job = Job::default();
    let (mut global, mut sections) =
        (FioSection { loops: 1, ..FioSection::default() }, Vec::<FioSection>::new());
    let mut in_global = true;
    for (at, raw) in text.lines().enumerate() {
        let content = raw.trim();
        let column = raw.chars().take_while(|c| c.is_whitespace()).count() + 1;
        let error = |expected: &str| JobError {
            line: at + 1,
            column,
            expected: expected.to_string(),
            found: format!("'{}'", content.chars().take(40).collect::<String>()),
        };
        if content.is_empty() || content.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = content.strip_prefix('[') {
            let name = name.strip_suffix(']').ok_or_else(|| error("[NAME]"))?;
            in_global = name == "global";
            if sections.len() >= super::parse::MAX_LINES {
                return Err(error("at most 1000 jobs"));
            }
            if !in_global {
                sections.push(FioSection { line: at + 1, name: name.to_string(), ..global.clone() });
            }
            continue;
        }
        let (key, value) = content.split_once('=').map_or((content, "1"), |(k, v)| (k.trim(), v.trim()));
        let section = if in_global { Some(&mut global) } else { sections.last_mut() };
        let section = section.ok_or_else(|| error("[NAME] before the first key"))?;
        section_key(section, key, value).map_err(error)?;
    }
    for section in &sections {
        check(section, &sections)?;
        job.lines.push(line_of(section, &job.lines)?);
    }
    if let Some(first) = sections.first() {
        job.buffering = Some(match (first.direct, first.durable) {
            (false, _) => Buffering::Buffered,
            (true, false) => Buffering::Direct,
            (true, true) => Buffering::DirectSync,
        });
        job.data = first.zeros.then_some(uflip_device::Data::Zeros);
    }
    if job.lines.is_empty() {
        let expected = "a job, such as [a] with rw=randread, bs=4k and runtime=30".to_string();
        return Err(JobError {
            line: text.lines().count().max(1),
            column: 1,
            expected,
            found: "nothing".into(),
        });
    }
    Ok(job)
}

/// What fio does in this section and uflip does not.
fn check(section: &FioSection, all: &[FioSection]) -> Result<(), JobError> {
    let Some(first) = all.first() else { return Ok(()) };
    let later = section.line != first.line;
    let driven = |s: &FioSection| (s.direct, s.durable, s.zeros);
    let baseline = section.rw.unwrap_or(Baseline::Sr);
    let wrong = [
        (
            later && !section.stonewall,
            "stonewall in every job after the first: fio runs jobs side by side, uflip one after the other",
            "without",
        ),
        (
            driven(section) != driven(first),
            "the same direct=, sync= and zero_buffers= in all jobs (type them in [global])",
            "with others than the first job",
        ),
        (
            section.durable && !section.direct,
            "direct=1 beside sync=: writes that are durable are not done through the page cache",
            "without (fio's default is direct=0)",
        ),
        (
            section.filename != first.filename,
            "one filename for all jobs: TARGET takes its place",
            "with another",
        ),
        (
            section.exitall && all.len() > 1,
            "a file without exitall: jobs come one after the other, and none ends the others",
            "with it",
        ),
        (
            section.norandommap && baseline.is_random(),
            "norandommap=0: random IOs visit every address before any a second time",
            "with norandommap",
        ),
        (
            section.end_fsync && baseline.mode() == crate::pattern::PatternMode::Write,
            "end_fsync=0, or fdatasync=N for a flush after every N writes",
            "with end_fsync",
        ),
        (
            section.time_based && section.runtime.is_none(),
            "runtime= beside time_based, such as runtime=30",
            "without",
        ),
        (
            section.loops > 1 && (section.runtime.is_some() || section.io_size.is_some()),
            "loops= without runtime= and io_size=, which in fio hold for all loops together",
            "with both",
        ),
    ];
    let found = wrong.into_iter().find(|(is, ..)| *is);
    found.map_or(Ok(()), |(_, expected, found)| Err(section.error(expected, found)))
}

/// A key that is on or off; on where it has no value.
fn on(value: &str) -> Result<bool, &'static str> {
    match value {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("0 or 1"),
    }
}

/// How jobs are driven, and what fio does at their ends; true where `key` is one of these.
fn driven_key(section: &mut FioSection, key: &str, value: &str) -> Result<bool, &'static str> {
    match (key, value) {
        ("direct", _) => section.direct = on(value)?,
        ("buffered", _) => section.direct = !on(value)?,
        ("sync", "none") => section.durable = false,
        ("sync", "sync" | "dsync") => section.durable = true,
        ("sync", _) => section.durable = on(value)?,
        ("zero_buffers", _) => section.zeros = on(value)?,
        ("stonewall" | "wait_for_previous", _) => section.stonewall = on(value)?,
        ("norandommap", _) => section.norandommap = on(value)?,
        ("end_fsync", _) => section.end_fsync = on(value)?,
        ("exitall", _) => section.exitall = on(value)?,
        ("time_based", _) => section.time_based = on(value)?,
        ("filename", _) if value.contains(':') => return Err("one filename, without ':'"),
        ("filename", _) => section.filename = Some(value.to_string()),
        ("numjobs" | "iodepth", "1") => {}
        ("numjobs", _) => return Err("numjobs=1: several processes are for uflip pattern --parallel"),
        ("iodepth", _) => return Err("iodepth=1: a queue is set by --engine io_uring --queue-depth"),
        _ => return Ok(false),
    }
    Ok(true)
}

fn section_key(section: &mut FioSection, key: &str, value: &str) -> Result<(), &'static str> {
    let size = || value.to_ascii_uppercase().parse::<Bytes>().map_err(|_| "a size such as 4k or 1g");
    let some = |size: Bytes| Some(size).filter(|size| size.0 > 0);
    let number = || value.parse::<u64>().map_err(|_| "a number");
    if driven_key(section, key, value)? {
        return Ok(());
    }
    match key {
        "rw" | "readwrite" => {
            section.rw = Some(match value {
                "read" => Baseline::Sr,
                "randread" => Baseline::Rr,
                "write" => Baseline::Sw,
                "randwrite" => Baseline::Rw,
                _ => return Err("rw=read, write, randread or randwrite; mixes are for uflip pattern --mix"),
            });
        }
        "bs" | "blocksize" => {
            let block = size()?;
            if block.0 == 0 || block.0 > u64::from(IoRecord::MAX_SIZE) / 512 * 512 {
                return Err("a block size up to 255m");
            }
            section.block = Some(block);
        }
        "size" if value.ends_with('%') => return Err("a size in bytes such as 1g, not a share"),
        "size" => section.size = some(size()?),
        "offset" => section.offset = size()?,
        "io_size" => section.io_size = some(size()?),
        "number_ios" => section.number_ios = Some(number()?.min(1 << 40)).filter(|n| *n > 0),
        "loops" => section.loops = u32::try_from(number()?.clamp(1, 1_000_000)).unwrap_or(1),
        "runtime" => {
            let text = if value.ends_with(|c: char| c.is_ascii_digit()) {
                format!("{value}s")
            } else {
                value.into()
            };
            let time = text.parse::<Nanos>().ok().filter(|t| t.0 > 0 && *t <= super::parse::MAX_TIME);
            section.runtime = Some(time.ok_or("a time such as 30 or 500ms")?);
        }
        "fsync" | "fdatasync" => {
            section.fsync =
                u32::try_from(number()?).ok().filter(|n| *n > 0).map(|n| n.min(super::parse::MAX_NUMBER));
        }
        key if IGNORED.contains(&key) => {}
        _ => {
            return Err(
                "a key of a simple job: rw, bs, size, offset, io_size, number_ios, runtime, time_based, loops, fdatasync, direct, sync or stonewall",
            );
        }
    }
    Ok(())
}

/// What a job ends with besides its runtime, as fio ends it: `io_size`, else once round
/// the file; before that `number_ios`; nothing where it is time based.
fn length(section: &FioSection, block: Bytes) -> Result<(Option<u64>, Option<Amount>), JobError> {
    if section.time_based {
        return Ok((None, None));
    }
    let amount = section.io_size.or(section.size);
    match (section.number_ios, amount) {
        (Some(ios), Some(amount)) => Ok((Some(ios.min(amount.0 / block.0.max(1)).max(1)), None)),
        (Some(ios), None) => Ok((Some(ios), None)),
        (None, Some(amount)) => Ok((None, Some(Amount::Bytes(amount)))),
        // Without a size the whole target is one.
        (None, None) if section.runtime.is_some() => Ok((None, Some(Amount::All))),
        (None, None) => Err(section.error("size, io_size, number_ios or runtime in the job", "without")),
    }
}

fn line_of(section: &FioSection, others: &[Line]) -> Result<Line, JobError> {
    let word = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let mut name: String = section.name.chars().take(60).map(word).collect();
    if name.is_empty()
        || name == "set"
        || name.parse::<Baseline>().is_ok()
        || others.iter().any(|l| l.name == name)
    {
        name = format!("{name}_{}", section.line);
    }
    let baseline = section.rw.unwrap_or(Baseline::Sr);
    let block = section.block.unwrap_or(Bytes(4096));
    let (count, bytes) = length(section, block)?;
    Ok(Line {
        number: section.line,
        name,
        patterns: vec![baseline],
        block_sizes: vec![block],
        shifts: vec![Bytes(0)],
        count,
        bytes,
        time: section.runtime,
        repeats: section.loops.max(1),
        before: Vec::new(),
        each: Each::Size,
        window: None,
        until_percent: None,
        syncs: section
            .fsync
            .filter(|_| baseline.mode() == crate::pattern::PatternMode::Write)
            .into_iter()
            .collect(),
        // Random accesses start nowhere.
        start: if baseline.is_random() { Start::Random } else { Start::Zero },
        offset: section.offset,
        size: section.size,
        pause: Nanos::ZERO,
        endurance: None,
    })
}
