//! `uflip logical-block`: the write size at which random writes cost as
//! sequential ones (paper 002, section 4.1), as a job like any other.

use crate::args::extra::{JobArgs, LogicalBlockArgs};
use crate::args::{Cli, Command};
use crate::command::job::{Session, may_be_measured, resume, start};
use crate::command::run::consent_again;
use crate::command::{fresh_seed, print, print_as_kept, profile, report};
use crate::interrupt::{self, STOP};
use crate::same_device::to_type;
use crate::target::{self, claim_output, target_name};
use crate::usage;
use anyhow::{Context, bail};
use clap::Parser;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use uflip_device::{Bytes, unix_now};
use uflip_measure::job::drive::drive_segment;
use uflip_measure::logical_block::{self, Found, Mean, Pass};
use uflip_measure::{Control, Progress};
use uflip_store::{Claim, Durability, Store};

/// What `--json` prints.
#[derive(Serialize)]
struct Facts {
    target: String,
    results: String,
    /// With the largest amount of bytes.
    logical_block_bytes: Option<Bytes>,
    by_whole_numbers: Option<Bytes>,
    by_statistics: Option<Bytes>,
    amounts: Vec<Found>,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the target, an IO or the results folder.
pub fn logical_block(args: LogicalBlockArgs) -> anyhow::Result<()> {
    interrupt::listen()?;
    if args.resume {
        return go_on(args);
    }
    let LogicalBlockArgs {
        target,
        bytes,
        largest,
        output,
        engine,
        consent,
        seed,
        scratch_size,
        json,
        typed,
        ..
    } = args;
    let seed = seed.unwrap_or_else(fresh_seed);
    let job = logical_block::job(&bytes, largest).map_err(usage)?;
    let name = target_name(Some(&target))?;
    let place = target::locate(&name, scratch_size)?;
    let planned = logical_block::plan(&job, &name, place.geometry, seed).map_err(usage)?;
    may_be_measured(&planned, &engine.resolve(seed)?, &place)?;
    place.may_be_written(&consent.erase_device)?;
    let claim = claim_output(output.as_deref())?;
    let dir = claim.dir().to_path_buf();
    let again = consent_again(&consent);
    let args = JobArgs { typed, ..JobArgs::of(name, engine, consent, scratch_size) };
    let mut session = start(&args, claim, job, seed)?;
    conclude(&target, &again, &dir, &mut session, json)
}

/// Goes on with the procedure in `-o DIR`.
fn go_on(args: LogicalBlockArgs) -> anyhow::Result<()> {
    let LogicalBlockArgs {
        target,
        output,
        engine,
        consent,
        scratch_size,
        seed,
        other_device,
        json,
        typed,
        ..
    } = args;
    let dir = output.unwrap_or_default();
    let again = consent_again(&consent);
    let job = JobArgs::of(target.clone(), engine, consent, scratch_size);
    let job = JobArgs { output: Some(dir.clone()), resume: true, seed, other_device, typed, ..job };
    let mut session = resume(&job, "logical-block")?;
    if !session.planned.runs().all(|(_, run)| run.line.starts_with(logical_block::LINE)) {
        return Err(usage(format!(
            "{}/manifest.json does not say what uflip logical-block was asked for: another command made it, or it is damaged",
            dir.display()
        )));
    }
    conclude(&target, &again, &dir, &mut session, json)
}

/// Measures what is missing and prints the answers.
fn conclude(
    target: &str,
    consent: &str,
    dir: &Path,
    session: &mut Session,
    json: bool,
) -> anyhow::Result<()> {
    let go_on = || {
        let again = to_type("logical-block", target, dir);
        format!("what was written is kept; go on with: {again}{consent}")
    };
    session.opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
    let found = measure(session, &mut |pass| {
        crate::say!(
            "{:>5}: {:.2} MB/s in order, {:.2} MB/s at random",
            pass.block_bytes,
            pass.sequential_mb_per_s,
            pass.random_mb_per_s
        );
    })
    .with_context(go_on)?;
    let largest = found.iter().max_by_key(|f| f.bytes_per_pass);
    let facts = Facts {
        target: target.to_string(),
        results: dir.display().to_string(),
        logical_block_bytes: largest.and_then(|f| f.logical_block_bytes),
        by_whole_numbers: largest.and_then(|f| f.by_whole_numbers),
        by_statistics: largest.and_then(|f| f.by_statistics),
        amounts: found,
    };
    keep(dir, &facts)?;
    profile::make(dir)?;
    report::write_report(dir, None)?;
    if json { print_as_kept(&facts) } else { print(&as_text(&facts)) }
}

/// The answers as `logical-block.json`, for the report.
fn keep(dir: &Path, facts: &Facts) -> anyhow::Result<()> {
    Ok(uflip_store::write_json(&dir.join("logical-block.json"), facts)?)
}

/// The logical block of `sim:NAME` with 1 GiB a pass as the paper did it, into
/// `folder`, by the paper's rule of the whole numbers.
///
/// # Errors
/// As [`logical_block`].
pub fn measure_simulated(name: &str, seed: u64, folder: &Path) -> anyhow::Result<Option<Bytes>> {
    let typed = ["uflip", "logical-block", &format!("sim:{name}")];
    let Command::LogicalBlock(args) = Cli::try_parse_from(typed)?.command else { bail!("not the procedure") };
    let job = logical_block::job(&args.bytes, args.largest).map_err(usage)?;
    let args = JobArgs::of(format!("sim:{name}"), args.engine, args.consent, args.scratch_size);
    let mut session = start(&args, Claim::new(folder)?, job, seed)?;
    session.store.set_durability(Durability::RELAXED);
    let found = measure(&mut session, &mut |_| {})?;
    Ok(found.iter().max_by_key(|f| f.bytes_per_pass).and_then(|f| f.by_whole_numbers))
}

/// Writes size after size until both rules have their answer, for each amount.
fn measure(session: &mut Session, tell: &mut dyn FnMut(&Pass)) -> anyhow::Result<Vec<Found>> {
    let rows = Store::open(&session.dir)?.runs;
    let mut means: BTreeMap<u32, Mean> =
        rows.iter().filter_map(|row| Some((row.spec.id, Mean::of(&row.stats.all)?))).collect();
    let Session { store, planned, opened, kept, .. } = session;
    let mut settled = BTreeSet::new();
    let control = Control { stop: &STOP, budget: None, unix_now };
    for segment in &planned.segments {
        if settled.contains(&segment.line_number) {
            continue;
        }
        let mut progress = |event: &Progress<'_>| match event {
            Progress::RunFinished { spec, stats, .. } => {
                means.extend(Mean::of(&stats.all).map(|mean| (spec.id, mean)));
            }
            Progress::Again { spec, incidents, .. } => {
                crate::say!("run {} is measured again: {incidents}", spec.id);
            }
            _ => {}
        };
        let done = drive_segment(planned, segment, &mut *opened.device, store, kept, control, &mut progress)?;
        if done.stopped {
            bail!("interrupted");
        }
        let found = logical_block::evaluate(planned, &means, segment.line_number);
        if let Some(pass) = found.passes.last() {
            tell(pass);
        }
        if logical_block::is_settled(&found) {
            settled.insert(segment.line_number);
        }
    }
    store.sync()?;
    let lines = logical_block::lines(planned).into_iter();
    Ok(lines.map(|line| logical_block::evaluate(planned, &means, line)).collect())
}

fn as_text(facts: &Facts) -> String {
    let size = |b: Option<Bytes>| b.map_or("none".to_string(), |b| b.to_string());
    let mut text = String::new();
    for found in &facts.amounts {
        text += &format!("{} a pass\n   IOSize   in order  at random  MB/s    ratio\n", found.bytes_per_pass);
        for p in &found.passes {
            let ci = p.ratio_ci95.map_or(String::new(), |(l, h)| format!(" ({l:.3}..{h:.3})"));
            text += &format!(
                "  {:>7} {:>10.2} {:>10.2}        {:.3}{ci}\n",
                p.block_bytes.to_string(),
                p.sequential_mb_per_s,
                p.random_mb_per_s,
                p.ratio
            );
        }
        text += &format!(
            "  logical block {}; by the whole numbers {}, by the ratio's interval {}\n",
            size(found.logical_block_bytes),
            size(found.by_whole_numbers),
            size(found.by_statistics)
        );
    }
    text + &format!("results    {}\n", facts.results)
}
