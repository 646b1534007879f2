//! `uflip pattern`: one pattern, its statistics and, if asked for, every IO.

use crate::args::PatternArgs;
use crate::command::{fresh_seed, print, print_json};
use crate::interrupt::{self, STOP};
use crate::target::{self, Access};
use crate::usage;
use anyhow::bail;
use serde::Serialize;
use std::path::Path;
use uflip_device::{Bytes, Geometry, RunEnd, RunLimits};
use uflip_measure::dry_run::write_dry_run;
use uflip_measure::pattern::{Baseline, Basic, Location, Pattern, Ratio, Timing};
use uflip_measure::run::{Purpose, RunOutcome, RunSpec, RunStats, Sink};
use uflip_results::{RecordFile, terminal};

/// What `--json` prints.
#[derive(Serialize)]
struct Facts {
    target: String,
    pattern: Pattern,
    engine: String,
    buffering: String,
    data: String,
    seed: u64,
    end: RunEnd,
    stats: RunStats,
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
    let place = target::locate(&args.target, args.scratch_size)?;
    let pattern = fit(&typed, place.geometry)?;
    if args.dry_run {
        let mut csv = Vec::new();
        write_dry_run(&mut csv, &pattern, args.io_count, seed)?;
        return print(&String::from_utf8_lossy(&csv));
    }

    interrupt::listen()?;
    let access = if pattern.writes() { Access::Write(&args.consent.erase_device) } else { Access::Read };
    let mut opened = target::open(&args.target, access, options, args.scratch_size, None)?;
    let pattern = fit(&typed, opened.device.geometry())?;
    if pattern.writes() {
        eprintln!("{}", target::will_be_written(&pattern, args.io_count, &opened));
    }
    eprintln!("{pattern}, seed {seed}");
    let spec = run_spec(&args, pattern.clone(), seed);
    let (end, stats) = measure(&spec, &mut opened, args.records.as_deref())?;
    let facts = Facts {
        target: args.target,
        pattern,
        engine: options.engine.to_string(),
        buffering: options.buffering.to_string(),
        data: options.data.to_string(),
        seed,
        end,
        stats,
        records: args.records.map(|p| p.display().to_string()),
    };
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
}

/// The pattern of the arguments, its TargetSize possibly still open.
fn typed_pattern(args: &PatternArgs) -> anyhow::Result<Pattern> {
    if let Some(text) = &args.pattern {
        return text.parse().map_err(usage);
    }
    let base: Baseline = args.base.as_deref().unwrap_or("SR").parse().map_err(usage)?;
    let first = basic(args, base)?;
    match (&args.mix, args.parallel) {
        (Some(_), Some(_)) => {
            Err(usage("--mix and --parallel do not go together; type --pattern with 'SR | RW' for patterns side by side"))
        }
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
        (Some(_), Some(_)) => return Err(usage("--incr and --partitions are two different locations; type one of them")),
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
    let timing = match (args.pause, args.burst) {
        (Some(pause), Some(burst)) => Timing::Burst { pause, burst: u32::try_from(burst).map_err(usage)? },
        (Some(pause), None) => Timing::Pause { pause },
        _ => Timing::Consecutive,
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

fn fit(pattern: &Pattern, geometry: Geometry) -> anyhow::Result<Pattern> {
    pattern.check(geometry).map_err(usage)?;
    pattern.resolve(geometry).map_err(usage)
}

fn run_spec(args: &PatternArgs, pattern: Pattern, seed: u64) -> RunSpec {
    RunSpec {
        id: 0,
        purpose: Purpose::Single,
        baseline: args.base.clone().unwrap_or_default().to_uppercase(),
        point: None,
        repeat: 0,
        pattern,
        io_count: args.io_count,
        io_ignore: args.io_ignore,
        seed,
        time_limit: args.time_limit,
    }
}
