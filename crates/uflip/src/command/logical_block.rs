//! `uflip logical-block`: the write size at which random writes cost as
//! sequential ones (paper 002, section 4.1), as a job like any other.

use crate::args::extra::LogicalBlockArgs;
use crate::command::job::{JobSession, begin, resume, stored_job};
use crate::command::{fresh_seed, print, print_as_kept};
use crate::interrupt::STOP;
use crate::session::{self, Order, Teller};
use crate::target::{self, Target, Unnamed};
use crate::usage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use uflip_device::{Bytes, EngineOptions, unix_now};
use uflip_measure::job::Job;
use uflip_measure::logical_block::{self, BlockVerdict, Mean, Pass};
use uflip_measure::{Control, Progress};
use uflip_store::manifest::Asked;
use uflip_store::{Options, RunRow, Store};

/// What a resume heeds.
const HEEDED: [&str; 7] =
    ["output", "resume", "other-device", "erase-device", "seed", "keep-scratch", "json"];

/// What `--json` prints.
#[derive(Serialize)]
struct LogicalBlockFacts {
    target: String,
    results: String,
    /// With the largest amount of bytes.
    logical_block_bytes: Option<Bytes>,
    by_whole_numbers: Option<Bytes>,
    by_statistics: Option<Bytes>,
    amounts: Vec<BlockVerdict>,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the target, an IO or the results folder.
pub fn logical_block(args: LogicalBlockArgs) -> anyhow::Result<()> {
    let target = match args.resume {
        true => Target::of_resume(&args.target)?,
        false => Some(Target::of_command(&args.target, Unnamed::Nothing, &args.typed)?),
    };
    let order = Order {
        consents: args.consent.erase_device,
        output: args.output,
        seed: args.seed,
        resume: args.resume,
        other_device: args.other_device,
        typed: args.typed,
        heeded: &HEEDED,
        ours: |asked| matches!(asked, Asked::LogicalBlock(_)),
        ..Order::new("logical-block", target)
    };
    let start = || {
        if order.resume {
            return resume(&order);
        }
        let seed = order.seed.unwrap_or_else(fresh_seed);
        let job = logical_block::job(&args.bytes, args.largest).map_err(usage)?;
        let engine = args.engine.resolve(seed).map_err(usage)?;
        begin_search(&order, job, seed, engine)
    };
    let announced = |running: &mut JobSession| {
        running.session.announce(&[]);
        measure(running)
    };
    let (dir, options) = session::live(&order, start, announced)?;
    conclude(&options, &dir, found_in(&dir)?, args.json)
}

/// The answers of a finished folder.
fn found_in(dir: &Path) -> anyhow::Result<Vec<BlockVerdict>> {
    let contents = Store::open(dir)?;
    let (_, planned) = stored_job(&contents)?;
    Ok(logical_block::answers(&planned, &means_of(&contents.runs)))
}

/// Begins the job of the search.
fn begin_search(order: &Order, job: Job, seed: u64, engine: EngineOptions) -> anyhow::Result<JobSession> {
    let target = order.target()?;
    let geometry = target::locate(target)?.geometry;
    // Says in its own words that an amount does not fit.
    logical_block::plan(&job, &target.to_string(), geometry, seed).map_err(usage)?;
    let buffering = job.buffering.unwrap_or(engine.buffering);
    let data = job.data.unwrap_or(engine.data);
    begin(order, job, Asked::LogicalBlock, seed, EngineOptions { buffering, data, ..engine })
}

/// Keeps and prints the answers.
fn conclude(options: &Options, dir: &Path, found: Vec<BlockVerdict>, json: bool) -> anyhow::Result<()> {
    let largest = found.iter().max_by_key(|f| f.bytes_per_pass);
    let facts = LogicalBlockFacts {
        target: options.target.clone(),
        results: dir.display().to_string(),
        logical_block_bytes: largest.and_then(|f| f.logical_block_bytes),
        by_whole_numbers: largest.and_then(|f| f.by_whole_numbers),
        by_statistics: largest.and_then(|f| f.by_statistics),
        amounts: found,
    };
    keep(dir, &facts)?;
    session::conclude(dir, options, true)?;
    if json { print_as_kept(&facts) } else { print(&as_text(&facts)) }
}

/// The answers as `logical-block.json`, for the report.
fn keep(dir: &Path, facts: &LogicalBlockFacts) -> anyhow::Result<()> {
    Ok(uflip_store::write_json(&dir.join("logical-block.json"), facts)?)
}

/// The logical block of a simulated device with 1 GiB a pass as the paper did it,
/// into `folder`, by the paper's rule of the whole numbers.
///
/// # Errors
/// As [`logical_block`].
pub fn measure_simulated(target: Target, seed: u64, folder: &Path) -> anyhow::Result<Option<Bytes>> {
    let job = logical_block::job(&[Bytes(1 << 30)], Bytes(64 << 20)).map_err(usage)?;
    let order = Order::in_silence("logical-block", target, seed, folder);
    let engine = EngineOptions { seed, ..EngineOptions::default() };
    let (dir, _) = session::live(&order, || begin_search(&order, job, seed, engine), measure)?;
    let found = found_in(&dir)?;
    Ok(found.iter().max_by_key(|f| f.bytes_per_pass).and_then(|f| f.by_whole_numbers))
}

/// Searches; true where it was stopped from outside.
fn measure(running: &mut JobSession) -> anyhow::Result<bool> {
    let JobSession { session, planned, .. } = running;
    let known = means_of(&Store::open(&session.dir)?.runs);
    let shown = session.shown;
    let control = Control { stop: &STOP, budget: None, unix_now };
    let (mut device, mut store) = session.device_and_store();
    // A line a size is said below, instead of one a run.
    let mut teller = Teller::new(shown, None, std::iter::empty(), None);
    let mut progress = |event: &Progress<'_>| teller.tell(event);
    let mut tried = |pass: &Pass| shown.say(None, &line(pass));
    let stopped =
        logical_block::search(planned, &known, &mut device, &mut store, control, &mut progress, &mut tried);
    teller.close();
    Ok(stopped?)
}

/// The means of the runs that are kept.
fn means_of(runs: &[RunRow]) -> BTreeMap<u32, Mean> {
    runs.iter().filter_map(|row| Some((row.spec.id, Mean::of(&row.stats.all)?))).collect()
}

/// A size that was tried.
fn line(pass: &Pass) -> String {
    format!(
        "{:>5}: {:.2} MB/s in order, {:.2} MB/s at random",
        pass.block_bytes, pass.sequential_mb_per_s, pass.random_mb_per_s
    )
}

fn as_text(facts: &LogicalBlockFacts) -> String {
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
        if !found.contradicted_by.is_empty() {
            let sizes: Vec<String> = found.contradicted_by.iter().map(Bytes::to_string).collect();
            text += &format!(
                "  against it: at {} the order matters after all; it is not the size from which on it does not\n",
                sizes.join(", ")
            );
        }
    }
    text + &format!("results    {}\n", facts.results)
}
