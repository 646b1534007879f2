//! `uflip pattern`: one pattern, its statistics and, if asked for, every IO.

use crate::args::{ArrivalsArg, PatternArgs};
use crate::command::{fresh_seed, print, print_json, to_stdout};
use crate::interrupt::STOP;
use crate::session::{self, Needs, Ran, Visit};
use crate::target::{self, Opened, Target, Unnamed};
use crate::usage;
use anyhow::Context;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use uflip_analysis::profile::{Finding, Severity};
use uflip_device::{Buffering, Bytes, Engine, Geometry, Nanos, RunEnd, RunLimits, Sequence};
use uflip_measure::dry_run::write_csv;
use uflip_measure::pattern::{Flags, Gaps, Pattern, PatternMode};
use uflip_measure::plan::check::{MAX_IOS, MAX_TIME};
use uflip_measure::plan::written_bytes;
use uflip_measure::run::{Probes, RtStats, RunStats};
use uflip_store::export::Format;
use uflip_store::keep::{Keep, Nothing, keep_in};
use uflip_store::output;
use uflip_store::recorder::{DEFAULT_RESERVE, KeptRun, Reserve, RunShape};

/// What `--json` prints.
#[derive(Serialize)]
struct PatternFacts {
    target: String,
    pattern: Pattern,
    /// Null where the target is not driven: simulated, or answering at once.
    engine: Option<String>,
    buffering: Option<String>,
    data: Option<String>,
    seed: u64,
    end: RunEnd,
    stats: RunStats,
    #[serde(skip_serializing_if = "Probes::is_empty")]
    probes: Probes,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<String>,
    /// What speaks against the figures, as in a profile; each was said.
    findings: Vec<Finding>,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the target, or an IO.
pub fn pattern(args: PatternArgs) -> anyhow::Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let typed = typed_pattern(&args)?;
    let options = args.engine.resolve(seed).map_err(usage)?;
    let target = Target::of_command(&args.target, Unnamed::Nothing, &args.typed)?;
    let place = target::locate(&target)?;
    let pattern = fit(&typed, place.geometry)?;
    countable(&pattern, &args)?;
    Needs::Pattern(&pattern).refuse_without_effect(&args.typed)?;
    if args.dry_run {
        refuse_in_dry_run(&args)?;
        // Line by line: the list may be longer than memory.
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let written = write_csv(&pattern, args.io_count, seed, &mut out);
        return to_stdout(written.map_err(Into::into).and_then(|()| Ok(out.flush()?)));
    }
    let (needs, consents) = (Needs::Pattern(&pattern), &args.consent.erase_device);
    let format = args.records.as_deref().map(|path| records_format(path, &target)).transpose()?;
    let mut visit = session::visit(&place, needs, options, consents, None)?;
    let pattern = fit(&typed, visit.opened.device.geometry())?;
    announce(&pattern, args.io_count, &visit.opened);
    crate::say!("{pattern}, seed {seed}");
    let (end, stats, probes) = measure(&args, format, &pattern, seed, &mut visit)?;
    let driven = |text: String| target.path().map(|_| text);
    let findings = findings(&end, &probes, target.path().map(|_| options.buffering));
    findings.iter().for_each(|finding| crate::say!("warning: {}", finding.statement));
    let facts = PatternFacts {
        target: visit.opened.target.to_string(),
        engine: driven(with_streams(options.engine, &pattern)),
        pattern,
        buffering: driven(options.buffering.to_string()),
        data: driven(options.data.to_string()),
        seed,
        end,
        stats,
        probes,
        records: args.records.map(|p| p.display().to_string()),
        findings,
    };
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
}

/// What speaks against the figures of a run through `buffering`; None of what is not
/// driven.
fn findings(end: &RunEnd, probes: &Probes, buffering: Option<Buffering>) -> Vec<Finding> {
    let finding = |code: &str, severity, statement: String| {
        let (code, runs) = (code.to_string(), Vec::new());
        Finding { code, severity, statement, runs }
    };
    let mut all = Vec::new();
    if buffering == Some(Buffering::Buffered) {
        let left = end.written_back.map_or(String::new(), |time| {
            format!(" What was left there after the last IO took {time} to be written to the device, which no figure holds.")
        });
        let statement = format!(
            "IOs went through the page cache: the figures are those of memory as much as of the device.{left}"
        );
        all.push(finding("page_cache", Severity::Serious, statement));
    }
    let read = probes.counters.and_then(|counted| counted.host_read_unwritten.zip(counted.host_read));
    if let Some((unwritten, read)) = read.filter(|(unwritten, _)| *unwritten > Bytes(0)) {
        let statement = format!(
            "{unwritten} of {read} were read where nothing is written: a device answers that without its flash, sooner \
             than where something is. Write first: in a job before=fill(1M) writes a line's space, uflip run --state \
             random the whole device."
        );
        all.push(finding("unwritten_read", Severity::Warning, statement));
    }
    all
}

/// Says what is written or trimmed, before it is.
fn announce(pattern: &Pattern, io_count: u64, opened: &Opened) {
    if !pattern.writes() {
        return;
    }
    let (bytes, target) = (written_bytes(pattern, io_count), &opened.target);
    let (range, capacity) = (target::pattern_range(pattern), opened.device.geometry().capacity);
    if bytes > Bytes(0) {
        crate::say!("{}", target::will_be_written(&range, bytes, capacity, target));
    }
    if pattern.basics().iter().any(|basic| basic.mode == PatternMode::Trim) {
        let (start, end) = (Bytes(range.start), Bytes(range.end));
        crate::say!("{target} will be trimmed between {start} and {end}: what stands there is lost");
    }
}

/// The pattern of the arguments, its TargetSize possibly still open: options build
/// its text form.
fn typed_pattern(args: &PatternArgs) -> anyhow::Result<Pattern> {
    let baseline = |name: &Option<String>| name.as_deref().map(str::parse).transpose().map_err(usage);
    let flags = Flags {
        pattern: args.pattern.clone(),
        base: baseline(&args.base)?,
        io_size: args.io_size,
        io_shift: args.io_shift,
        target_offset: args.target_offset,
        target_size: args.target_size,
        incr: args.incr,
        partitions: args.partitions,
        no_repeat: args.no_repeat,
        pause: args.pause,
        burst: args.burst,
        rate: args.rate,
        arrivals: args.arrivals.map(|arrivals| match arrivals {
            ArrivalsArg::Fixed => Gaps::Fixed,
            ArrivalsArg::Poisson => Gaps::Poisson,
        }),
        parallel: args.parallel,
        mix: baseline(&args.mix)?,
        ratio: args.ratio,
    };
    flags.text().map_err(usage)?.parse().map_err(usage)
}

/// Refuses options of what is measured where nothing is.
fn refuse_in_dry_run(args: &PatternArgs) -> anyhow::Result<()> {
    let given = [
        ("--records", args.records.is_some()),
        ("--json", args.json),
        ("--time-limit", args.time_limit.is_some()),
        ("--io-ignore", args.io_ignore > 0),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(usage(format!(
            "{name} does nothing with --dry-run, which prints the IOs as CSV and does none; leave one of the two \
             away, and type > FILE.csv to keep what is printed"
        ))),
        None => Ok(()),
    }
}

fn countable(pattern: &Pattern, args: &PatternArgs) -> anyhow::Result<()> {
    let &PatternArgs { io_count, io_ignore, time_limit, .. } = args;
    if io_count <= io_ignore {
        return Err(usage(format!(
            "--io-count {io_count} leaves nothing to measure after --io-ignore {io_ignore}; type a larger --io-count"
        )));
    }
    let streams = (pattern.stream_count() as u64).max(1);
    if io_count.checked_mul(streams).is_none_or(|ios| ios > MAX_IOS) {
        let most = MAX_IOS / streams;
        return Err(usage(format!(
            "{io_count} IOs in each of {streams} streams are more than can be counted; type --io-count with at \
             most {most}"
        )));
    }
    if time_limit.is_none() {
        pattern.check_instants(io_count).map_err(usage)?;
    }
    match pattern.basics().iter().map(|basic| basic.timing.pause()).max() {
        Some(pause) if pause > MAX_TIME => {
            Err(usage(format!("a pause of {} ns is longer than 52 days; type a shorter one", pause.0)))
        }
        _ => Ok(()),
    }
}

fn fit(pattern: &Pattern, geometry: Geometry) -> anyhow::Result<Pattern> {
    pattern.check(geometry).map_err(usage)?;
    pattern.resolve(geometry).map_err(usage)
}

/// Runs the pattern; the records go to the file that was named, or nowhere.
fn measure(
    args: &PatternArgs,
    format: Option<Format>,
    pattern: &Pattern,
    seed: u64,
    visit: &mut Visit,
) -> anyhow::Result<(RunEnd, RunStats, Probes)> {
    let keep: Box<dyn Keep> = match args.records.as_deref().zip(format) {
        Some((path, format)) => keep_in(path, format, pattern.is_open_loop())?,
        None => Box::new(Nothing),
    };
    let reserve = Reserve::new(DEFAULT_RESERVE);
    let shape = RunShape {
        run: 0,
        io_count: args.io_count,
        io_ignore: args.io_ignore,
        streams: pattern.stream_count() as u64,
        patterns: if matches!(pattern, Pattern::Mix { .. }) { 2 } else { 1 },
        open_loop: pattern.is_open_loop(),
        path: args.records.clone().unwrap_or_default(),
    };
    reserve.begin_keeping(shape, keep);
    let whole = pattern.sequence(args.io_count, seed)?;
    let sequence = whole.as_deref().map(Sequence);
    let limits = RunLimits { time: args.time_limit, stop: &STOP, sequence };
    let (mut device, probing) = visit.device();
    let streams = pattern.streams(args.io_count, seed)?;
    let ran = session::run_once((&mut device, probing), 0, streams, &reserve, limits);
    let Ran { end, probes, befell } = ran.inspect_err(|_| reserve.abandon())?;
    let kept = reserve.finish_keeping(end.ios);
    let named = || args.records.as_deref().map_or_else(String::new, |path| path.display().to_string());
    let KeptRun { stats, stalls, .. } = kept.with_context(named)?;
    if stalls > 0 {
        crate::say!("warning: {stalls} times the run waited for its records to be written");
    }
    befell.iter().for_each(|what| crate::say!("warning: {what}"));
    Ok((end, stats, probes))
}

/// What records are written as, by the name's ending; the path is looked at
/// before anything is measured.
fn records_format(path: &Path, target: &Target) -> anyhow::Result<Format> {
    let format = match path.extension().and_then(|e| e.to_str()) {
        Some("parquet") => Format::Parquet,
        Some("csv") => Format::Csv,
        _ => return Err(usage(format!("{}: type a name that ends in .csv or .parquet", path.display()))),
    };
    output::check(path).map_err(usage)?;
    output::check_beside(path, target.path()).map_err(usage)?;
    Ok(format)
}

/// The engine, and how many IOs it has under way where the pattern says so.
fn with_streams(engine: Engine, pattern: &Pattern) -> String {
    match (engine, pattern.queue_depth(), pattern.stream_count()) {
        (Engine::Sync, _, threads @ 2..) => format!("{engine}, {threads} threads"),
        (Engine::IoUring { poll, .. }, Some(queue_depth), _) => {
            Engine::IoUring { queue_depth, poll }.to_string()
        }
        _ => engine.to_string(),
    }
}

fn as_text(facts: &PatternFacts) -> String {
    let driven = match (&facts.engine, &facts.buffering, &facts.data) {
        (Some(engine), Some(buffering), Some(data)) => format!("engine {engine}, {buffering}, data {data}, "),
        _ => String::new(),
    };
    let mut text = format!(
        "{} on {}\n{driven}seed {}\n{} IOs in {}{}\n\n",
        facts.pattern,
        facts.target,
        facts.seed,
        facts.end.ios,
        facts.end.elapsed,
        if facts.end.time_limit_hit { ", ended by the time limit" } else { "" },
    );
    text += &format!("{:>16}", "");
    let columns = ["n", "mean", "sd", "min", "50 %", "90 %", "95 %", "99 %", "99.9 %", "99.99 %", "max"];
    columns.iter().for_each(|c| text += &format!("{c:>11}"));
    text.push('\n');
    text += &row("running phase", &facts.stats.running);
    facts
        .stats
        .by_pattern
        .iter()
        .enumerate()
        .for_each(|(i, s)| text += &row(&format!("pattern {}", i + 1), s));
    for of in &facts.stats.by_mode {
        text += &row(&format!("mode {}", of.mode.name()), &of.running);
    }
    let all = if facts.stats.ios() == facts.stats.all.n { "all IOs" } else { "reads, writes" };
    text += &row(all, &facts.stats.all);
    if let Some(late) = &facts.stats.late {
        let (mean, longest) = (Nanos(late.mean_ns.round() as u64), Nanos(late.max_ns));
        text += &format!(
            "\nresponse times count from the intended instants; IOs were submitted {mean} after them, at most \
             {longest}\n"
        );
    }
    if let Some(counted) = &facts.probes.counters {
        let amplification = counted.write_amplification().map(|wa| format!("write amplification {wa:.3}"));
        let energy = counted.energy_uj.map(|uj| format!("{:.6} J", uj / 1e6));
        let all: Vec<String> = amplification.into_iter().chain(energy).collect();
        if !all.is_empty() {
            text += &format!("\nwithin the run: {}\n", all.join(", "));
        }
    }
    if let Some(path) = &facts.records {
        text += &format!("\nevery IO is in {path}\n");
    }
    text
}

fn row(name: &str, s: &RtStats) -> String {
    let ns = |v: Option<u64>| v.map_or("-".to_string(), |v| Nanos(v).to_string());
    let float = |v: Option<f64>| ns(v.map(|v| v.round() as u64));
    let cells = [
        s.n.to_string(),
        float(s.mean_ns),
        float(s.sd_ns),
        ns(s.min_ns),
        ns(s.p50_ns),
        ns(s.p90_ns),
        ns(s.p95_ns),
        ns(s.p99_ns),
        ns(s.p999_ns),
        ns(s.p9999_ns),
        ns(s.max_ns),
    ];
    format!("{name:>16}{}\n", cells.iter().map(|c| format!("{c:>11}")).collect::<String>())
}
