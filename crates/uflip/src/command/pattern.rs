//! `uflip pattern`: one pattern, its statistics and, if asked for, every IO.

use crate::args::{ArrivalsArg, PatternArgs};
use crate::command::{fresh_seed, print, print_json};
use crate::interrupt::STOP;
use crate::session::{self, Needs, Probed, Probing, Shown, told};
use crate::target::{self, Opened, Target, Unnamed};
use crate::usage;
use anyhow::bail;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use uflip_device::{Bytes, Device, Geometry, Nanos, RunEnd, RunLimits};
use uflip_measure::dry_run::write_csv;
use uflip_measure::pattern::{Baseline, Basic, Gaps, Location, Mode, Pattern, Ratio, Timing};
use uflip_measure::plan::check::{MAX_IOS, MAX_TIME};
use uflip_measure::run::{Probes, RtStats, RunStats};
use uflip_store::export::Format;
use uflip_store::keep::{Keep, Nothing, keep_in};
use uflip_store::output;
use uflip_store::recorder::{DEFAULT_RESERVE, Kept, Reserve, RunShape};

/// What `--json` prints.
#[derive(Serialize)]
struct Facts {
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
    countable(&pattern, args.io_count, args.time_limit)?;
    if args.dry_run {
        // Line by line: the list may be longer than memory.
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        write_csv(&pattern, args.io_count, seed, &mut out)?;
        return Ok(out.flush()?);
    }
    let (needs, consents) = (Needs::Pattern(&pattern), &args.consent.erase_device);
    session::refuse(&place, needs, &options, consents)?;
    let format = args.records.as_deref().map(records_format).transpose()?;
    session::listen(Shown::Lines)?;
    let mut opened = session::open(&target, needs, options, consents, None)?;
    opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
    let pattern = fit(&typed, opened.device.geometry())?;
    announce(&pattern, args.io_count, &opened);
    crate::say!("{pattern}, seed {seed}");
    let (end, stats, probes) = measure(&args, format, &pattern, seed, &mut opened)?;
    let driven = |text: String| target.path().map(|_| text);
    let facts = Facts {
        target: opened.target.to_string(),
        pattern,
        engine: driven(options.engine.to_string()),
        buffering: driven(options.buffering.to_string()),
        data: driven(options.data.to_string()),
        seed,
        end,
        stats,
        probes,
        records: args.records.map(|p| p.display().to_string()),
    };
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
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
    if pattern.basics().iter().any(|basic| basic.mode == Mode::Trim) {
        let (start, end) = (Bytes(range.start), Bytes(range.end));
        crate::say!("{target} will be trimmed between {start} and {end}: what stands there is lost");
    }
}

/// The pattern of the arguments, its TargetSize possibly still open.
fn typed_pattern(args: &PatternArgs) -> anyhow::Result<Pattern> {
    if let Some(text) = &args.pattern {
        return text.parse().map_err(usage);
    }
    let base: Baseline = args.base.as_deref().unwrap_or("SR").parse().map_err(usage)?;
    let first = basic(args, base)?;
    match (&args.mix, args.parallel) {
        (Some(_), Some(_)) => Err(usage(
            "--mix and --parallel do not go together; type --pattern with 'SR | RW' for patterns side by side",
        )),
        (Some(second), None) => {
            let second = Basic { ..second.parse::<Baseline>().map_err(usage)?.basic(args.io_size) };
            let second = Basic {
                timing: first.timing,
                io_shift: first.io_shift,
                target_offset: first.target_offset,
                target_size: first.target_size,
                ..second
            };
            let ratio = Ratio::from_value(args.ratio.unwrap_or(1)).map_err(usage)?;
            Ok(Pattern::Mix { first, second, ratio })
        }
        (None, Some(degree)) => Ok(Pattern::Replicated { degree, basic: first }),
        (None, None) => Ok(Pattern::Basic(first)),
    }
}

fn basic(args: &PatternArgs, base: Baseline) -> anyhow::Result<Basic> {
    let plain = base.basic(args.io_size);
    let location = match (args.incr, args.partitions) {
        (Some(_), Some(_)) => {
            return Err(usage("--incr and --partitions are two different locations; type one of them"));
        }
        (Some(_), None) | (None, Some(_)) if base.is_random() => {
            return Err(usage(format!(
                "--incr and --partitions are for sequential patterns; type --base {} instead of {base}",
                if base == Baseline::Rr { "SR" } else { "SW" }
            )));
        }
        (Some(incr), None) => Location::Ordered { incr },
        (None, Some(partitions)) => Location::Partitioned { partitions },
        (None, None) if args.no_repeat && base.is_random() => Location::RandomUnique,
        (None, None) => plain.location,
    };
    let gaps = if args.arrivals == Some(ArrivalsArg::Poisson) { Gaps::Poisson } else { Gaps::Fixed };
    let timing = match (args.pause, args.burst) {
        (Some(pause), Some(burst)) => Timing::Burst { pause, burst: u32::try_from(burst).map_err(usage)? },
        (Some(pause), None) => Timing::Pause { pause },
        _ => args.rate.map_or(Timing::Consecutive, |rate| Timing::Open { rate, gaps }),
    };
    Ok(Basic {
        location,
        timing,
        io_shift: args.io_shift,
        target_offset: args.target_offset,
        target_size: args.target_size,
        ..plain
    })
}

fn countable(pattern: &Pattern, io_count: u64, time_limit: Option<Nanos>) -> anyhow::Result<()> {
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

/// Bytes that `io_count` IOs a stream write, mixes counted as if all wrote.
fn written_bytes(pattern: &Pattern, io_count: u64) -> Bytes {
    let writes = pattern.basics().into_iter().filter(|basic| basic.mode == Mode::Write);
    let largest = writes.map(|basic| basic.io_size.0).max().unwrap_or(0);
    Bytes(largest.saturating_mul(io_count).saturating_mul(pattern.stream_count() as u64))
}

/// Runs the pattern; the records go to the file that was named, or nowhere.
fn measure(
    args: &PatternArgs,
    format: Option<Format>,
    pattern: &Pattern,
    seed: u64,
    opened: &mut Opened,
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
    let limits = RunLimits { time: args.time_limit, stop: &STOP };
    let probing = Probing::of(&opened.target);
    probing.next(Some(0));
    let mut device = Probed { device: &mut *opened.device, probing: &probing };
    let end = device.run(pattern.streams(args.io_count, seed)?, &reserve, limits);
    let end = end.inspect_err(|_| reserve.abandon())?;
    if end.interrupted {
        reserve.abandon();
        bail!("interrupted; nothing is kept");
    }
    let Kept { stats, stalls, .. } = reserve.finish_keeping(end.ios)?;
    if stalls > 0 {
        crate::say!("warning: {stalls} times the run waited for its records to be written");
    }
    probing.disturbed().iter().for_each(|found| crate::say!("warning: {}", told(found)));
    if !end.incidents.is_none() {
        crate::say!("warning: {}; the figures are not the device's alone: measure again", end.incidents);
    }
    Ok((end, stats, probing.take()))
}

/// What records are written as, by the name's ending; the path is looked at
/// before anything is measured.
fn records_format(path: &Path) -> anyhow::Result<Format> {
    let format = match path.extension().and_then(|e| e.to_str()) {
        Some("parquet") => Format::Parquet,
        Some("csv") => Format::Csv,
        _ => return Err(usage(format!("{}: type a name that ends in .csv or .parquet", path.display()))),
    };
    output::check(path).map_err(usage)?;
    Ok(format)
}

fn as_text(facts: &Facts) -> String {
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
