//! To and from fio's job files.
//!
//! What: [`to_fio`] writes a plan's runs as fio jobs, each waiting for the one
//! before (`stonewall`), with comments for what fio cannot say; [`from_fio`]
//! reads simple job files: one process, one file, one block size and reads or
//! writes, sequential or random. Keys that change nothing here are passed over;
//! any other is an error that names its place. Units: bytes, ns.
//! Source: fio 3's manual, "job file format"; paper 004, appendix A.
//!
//! What differs: fio's random addresses come from its own generator, so the
//! same job visits other addresses; fio adds to the end of the device where
//! `start=random` wraps here.

use super::expand::JobPlan;
use super::{Amount, Each, Job, JobError, Line, Role, Start};
use crate::pattern::{Baseline, Location, Pattern, Timing};
use crate::plan::Step;
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
                    let role = spec.job().map(|run| run.role);
                    let Some(Pattern::Basic(basic)) = spec.pattern() else { continue };
                    let name =
                        spec.belongs.section().map_or_else(|| "run".into(), |section| section.to_string());
                    let kind = if role == Some(Role::Measured) { "" } else { "; not measured\n" };
                    let rw = match basic.baseline() {
                        Baseline::Sr => "read",
                        Baseline::Rr => "randread",
                        Baseline::Sw => "write",
                        Baseline::Rw => "randwrite",
                    };
                    let start = basic.target_offset.0 + basic.io_shift.0;
                    let mut size = basic.target_size.unwrap_or_default().0.saturating_sub(basic.io_shift.0);
                    let mut offset = start;
                    if let Location::SequentialFrom { slot } = basic.location {
                        let skipped = slot.saturating_mul(basic.io_size.0);
                        (offset, size) = (start + skipped, size.saturating_sub(skipped));
                    }
                    let bs = basic.io_size.0;
                    text += &format!("\n{kind}[{:06} {name}]\nstonewall\nrw={rw}\nbs={bs}\n", spec.id);
                    text +=
                        &format!("offset={offset}\nsize={}\nrandseed={}\n", size / bs * bs, spec.seed >> 1);
                    match spec.time_limit {
                        Some(time) => {
                            text += &format!("time_based\nruntime={}us\n", time.0.div_ceil(1000));
                        }
                        None => {
                            let ios = basic.timing.without_flushes(spec.io_count);
                            text += &format!("number_ios={ios}\n");
                        }
                    }
                    if let Timing::Synced { every } = basic.timing {
                        text += &format!("fdatasync={every}\n");
                    }
                    if std::mem::take(&mut pause) > Nanos::ZERO {
                        text += "; a pause comes before it: see above\n";
                    }
                }
            }
        }
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
        if line.start == Start::Random {
            say("start=random: the wrap from the end to the beginning of the target is missing");
        }
        if line.count.is_some() && line.time.is_some() {
            say("count= together with time=: only the time is here");
        }
        if line.endurance.is_some() {
            say("passes=: written as so many IOs, which fio counts over one pass after the other");
        }
    }
    if job.data.is_some_and(|data| data == uflip_device::Data::Age) {
        *text += ";   data=age: the count of writes in every word\n";
    }
}

/// Keys that change nothing about what is measured here.
const IGNORED: [&str; 24] = [
    "name",
    "filename",
    "directory",
    "ioengine",
    "iodepth",
    "thread",
    "group_reporting",
    "stonewall",
    "wait_for_previous",
    "randrepeat",
    "allrandrepeat",
    "randseed",
    "refill_buffers",
    "norandommap",
    "random_generator",
    "invalidate",
    "overwrite",
    "fallocate",
    "time_based",
    "description",
    "create_on_open",
    "end_fsync",
    "exitall",
    "buffered",
];

/// A section of an fio job file.
#[derive(Clone, Default)]
struct FioSection {
    line: usize,
    name: String,
    rw: Option<Baseline>,
    block: Option<Bytes>,
    size: Option<Bytes>,
    offset: Bytes,
    io_size: Option<Bytes>,
    number_ios: Option<u64>,
    runtime: Option<Nanos>,
    loops: u32,
    sync: Option<u32>,
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
        if whole_file(&mut job, key, value).map_err(&error)? {
            continue;
        }
        let section = if in_global { Some(&mut global) } else { sections.last_mut() };
        let section = section.ok_or_else(|| error("[NAME] before the first key"))?;
        section_key(section, key, value).map_err(error)?;
    }
    for section in &sections {
        job.lines.push(line_of(section, &job.lines)?);
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

/// Keys for the whole file; true where it is one.
fn whole_file(job: &mut Job, key: &str, value: &str) -> Result<bool, &'static str> {
    match (key, value) {
        ("direct", "1") => job.buffering = Some(job.buffering.unwrap_or(Buffering::Direct)),
        ("direct", "0") => job.buffering = Some(Buffering::Buffered),
        ("sync", "0" | "none") => {}
        ("sync", "1" | "sync" | "dsync") => job.buffering = Some(Buffering::DirectSync),
        ("direct" | "sync", _) => return Err("0 or 1"),
        ("zero_buffers", "1") => job.data = Some(uflip_device::Data::Zeros),
        ("numjobs" | "iodepth", "1") => {}
        ("numjobs", _) => return Err("numjobs=1: several processes are for uflip pattern --parallel"),
        ("iodepth", _) => return Err("iodepth=1: a queue is set by --engine io_uring --queue-depth"),
        _ => return Ok(false),
    }
    Ok(true)
}

fn section_key(section: &mut FioSection, key: &str, value: &str) -> Result<(), &'static str> {
    let size = || value.to_ascii_uppercase().parse::<Bytes>().map_err(|_| "a size such as 4k or 1g");
    let number = || value.parse::<u64>().map_err(|_| "a number");
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
        "size" => section.size = Some(size()?),
        "offset" => section.offset = size()?,
        "io_size" => section.io_size = Some(size()?),
        "number_ios" => section.number_ios = Some(number()?.clamp(1, 1 << 40)),
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
            section.sync =
                u32::try_from(number()?).ok().filter(|n| *n > 0).map(|n| n.min(super::parse::MAX_NUMBER));
        }
        key if IGNORED.contains(&key) => {}
        _ => {
            return Err(
                "a key of a simple job: rw, bs, size, offset, io_size, number_ios, runtime, loops, fdatasync, direct or sync",
            );
        }
    }
    Ok(())
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
    let missing = |expected: &str| JobError {
        line: section.line,
        column: 1,
        expected: expected.to_string(),
        found: format!("'[{}]' without", section.name.chars().take(40).collect::<String>()),
    };
    let baseline = section.rw.unwrap_or(Baseline::Sr);
    let bytes = section.io_size.or(section.size).filter(|_| section.number_ios.is_none());
    if section.number_ios.is_none() && bytes.is_none() && section.runtime.is_none() {
        return Err(missing("size, io_size, number_ios or runtime in the job"));
    }
    let by_time = section.runtime.is_some() && section.number_ios.is_none();
    Ok(Line {
        number: section.line,
        name,
        patterns: vec![baseline],
        block_sizes: vec![section.block.unwrap_or(Bytes(4096))],
        shifts: vec![Bytes(0)],
        count: section.number_ios,
        bytes: bytes.filter(|_| !by_time).map(Amount::Bytes),
        time: section.runtime,
        repeats: section.loops.max(1),
        before: Vec::new(),
        each: Each::Size,
        window: None,
        until_percent: None,
        syncs: section
            .sync
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
