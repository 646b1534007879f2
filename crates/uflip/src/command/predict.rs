//! `uflip predict`: what a block trace would cost on a measured device by each
//! cost model, and what the trace itself is like.

use crate::args::extra::PredictArgs;
use crate::command::{print, print_json};
use crate::replay::{FellBehind, Replay};
use crate::{input, interrupt, limits, replay, target, usage};
use anyhow::Context;
use serde::Serialize;
use std::io::BufReader;
use std::path::Path;
use uflip_analysis::model::{self, LogicalBlock, Models, Prediction};
use uflip_analysis::trace::{self, Character, TraceIo};
use uflip_device::{Bytes, Mode, Nanos};
use uflip_sim::SimDevice;
use uflip_store::{Store, read_records};

/// IOs of a trace at most; a part of it should do.
const MAX_IOS: u64 = 50_000_000;
/// Memory for an IO of a trace with all that is made of it.
const BYTES_PER_IO: u64 = 256;

/// What `--json` prints.
#[derive(Serialize)]
struct PredictFacts {
    character: Character,
    models: Models,
    /// What the trace took; where requests overlap, the time in which any was under way.
    measured_ns: Option<f64>,
    /// Requests under way on average while any was, where they overlap.
    mean_under_way: Option<f64>,
    simulated: Option<Simulated>,
    predictions: Vec<PredictRow>,
}

/// What the trace takes on a simulated device.
#[derive(Serialize)]
struct Simulated {
    /// As typed.
    device: String,
    /// Written once before, in order.
    filled: bool,
    /// Response times of all reads.
    read_ns: f64,
    /// Of all writes and flushes.
    write_ns: f64,
    /// Of all flushes.
    flush_ns: f64,
    /// With `--open-loop`: how late the IOs went to the device; null without.
    late: Option<FellBehind>,
}

/// A model's prediction and its errors against what the device really takes.
#[derive(Serialize)]
struct PredictRow {
    #[serde(flatten)]
    prediction: Prediction,
    /// Predicted over simulated, less 1, of all IOs.
    simulated_error: Option<f64>,
    /// The same of the reads; null where there are none.
    simulated_read_error: Option<f64>,
    /// The same of the writes.
    simulated_write_error: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the results, the trace or the simulated device.
pub fn predict(args: PredictArgs) -> anyhow::Result<()> {
    let contents = Store::open(&args.dir)?;
    crate::command::warn(&contents);
    let trace = read(&args.trace, args.device.as_deref())?;
    let block = uflip_store::logical_block::find(&args.dir, args.logical_block)?;
    let models = model::fit_store(&contents, args.logical_block)?;
    let simulated = args.sim.as_deref().map(|name| simulate(&args, name, &trace)).transpose()?;
    let predictions = model::predict(&models, &trace).into_iter();
    let facts = PredictFacts {
        character: trace::character(&trace, block.bytes),
        measured_ns: model::measured_ns(&trace),
        mean_under_way: model::mean_under_way(&trace),
        predictions: predictions.map(|p| row(p, simulated.as_ref())).collect(),
        simulated,
        models,
    };
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
}

fn row(prediction: Prediction, simulated: Option<&Simulated>) -> PredictRow {
    let error = |predicted: Option<f64>, pick: fn(&Simulated) -> f64| {
        let real = simulated.map(pick).filter(|ns| *ns > 0.0)?;
        Some(predicted? / real - 1.0)
    };
    let total = prediction.read_ns.zip(prediction.write_ns).map(|(r, w)| r + w);
    PredictRow {
        simulated_error: error(total, |s| s.read_ns + s.write_ns),
        simulated_read_error: error(prediction.read_ns, |s| s.read_ns),
        simulated_write_error: error(prediction.write_ns, |s| s.write_ns),
        prediction,
    }
}

/// Replays the trace on the simulated device `name`.
fn simulate(args: &PredictArgs, name: &str, trace: &[TraceIo]) -> anyhow::Result<Simulated> {
    interrupt::listen()?;
    let what = name.strip_prefix("sim:").unwrap_or(name);
    let mut device = SimDevice::new(&target::simulated(what)?, 1).map_err(usage)?;
    if !args.new {
        replay::fill(&mut device)?;
    }
    let how = Replay { wrap: args.wrap, open_loop: args.open_loop };
    let replayed = replay::replay(trace, &mut device, how).map_err(usage)?;
    let sum = |modes: &[Mode]| {
        let mine = replayed.ios.iter().filter(|io| modes.contains(&io.mode));
        mine.filter_map(|io| io.response).map(|r| r.0 as f64).sum::<f64>()
    };
    Ok(Simulated {
        device: name.to_string(),
        filled: !args.new,
        read_ns: sum(&[Mode::Read]),
        write_ns: sum(&[Mode::Write, Mode::Flush]),
        flush_ns: sum(&[Mode::Flush]),
        late: replayed.late,
    })
}

fn read(path: &Path, device: Option<&str>) -> anyhow::Result<Vec<TraceIo>> {
    if path.extension().is_some_and(|e| e == "parquet") {
        input::open(path)?;
        return Ok(trace::of_records(&read_records(path)?));
    }
    let file = input::open(path)?;
    // What is made of an IO takes some three times what the IO itself does.
    let room = limits::half_of_memory().map_or(MAX_IOS, |half| half.0 / BYTES_PER_IO);
    let most = usize::try_from(room.min(MAX_IOS)).unwrap_or(usize::MAX);
    let read = trace::read_device(&mut BufReader::new(file), device, most);
    let read = read.with_context(|| format!("cannot read {}", path.display()))?;
    read.map_err(|e| usage(format!("{}: {e}", path.display())))
}

/// What the trace took, and what of it cannot be predicted.
fn measured_text(facts: &PredictFacts) -> String {
    let none = if facts.character.reads + facts.character.writes == 0 {
        "no reads or writes in the trace"
    } else {
        "no response times in the trace"
    };
    let measured = facts.measured_ns.map_or(none.into(), |ns| Nanos(ns as u64).to_string());
    let mut text = format!("\nmeasured   {measured}");
    if let Some(n) = facts.mean_under_way {
        text += &format!(
            " in which requests were under way, {n:.2} at a time on average\n\
             \x20          (the models cost requests one after the other)"
        );
    }
    if facts.character.trims > 0 {
        text += &format!("\nleft out   {} trims: no model predicts them", facts.character.trims);
    }
    text + "\n"
}

/// Whether the device kept up with the trace's instants.
fn late_text(late: &FellBehind) -> String {
    let FellBehind { ios, late_ios, mean_ns, max_ns, .. } = late;
    if *late_ios == 0 {
        return format!("           kept up: none of {ios} IOs went to it late\n");
    }
    format!(
        "warning    it fell behind: {late_ios} of {ios} IOs went to it late, {} in the mean, at most {}; a program \
         that does not wait would be held up so long\n",
        Nanos(*mean_ns as u64),
        Nanos(*max_ns)
    )
}

fn as_text(facts: &PredictFacts) -> String {
    let c = &facts.character;
    let share = |s: Option<f64>| s.map_or("-".to_string(), |s| format!("{:.1} %", s * 100.0));
    let number = |s: Option<f64>| s.map_or("-".to_string(), |s| format!("{s:.3}"));
    let time =
        |ns: Option<f64>| ns.map_or("not fitted".to_string(), |ns| Nanos(ns.max(0.0) as u64).to_string());
    let block = facts.models.logical_block_bytes.zip(facts.models.logical_block_source);
    let block = block.map_or(String::new(), |(bytes, source)| {
        format!(" of {}", LogicalBlock { bytes: Bytes(bytes), source })
    });
    let mut text = format!(
        "trace      {} reads of {}, {} writes of {}, {} flushes\n\
         \x20          {} sequential in {} streams, {} aligned to their size\n\
         \x20          {} syncs, R {} sectors, f {}, {} logical blocks{block}\n\
         merges     ",
        c.reads,
        Bytes(c.read_bytes),
        c.writes,
        Bytes(c.write_bytes),
        c.flushes,
        share(c.sequential_share),
        c.sequential_streams,
        share(c.aligned_share),
        c.syncs,
        number(c.sectors_per_sync),
        number(c.focal_factor),
        c.logical_blocks
    );
    c.merges_by_log_blocks.iter().for_each(|(logs, n)| text += &format!("{n} with {logs} log blocks; "));
    if let Some(m) = &facts.models.merge {
        let t_merge = m.t_merge_ns.map_or("not decided".to_string(), |ns| time(Some(ns)));
        let bandwidth = m.bytes_per_s.map_or("-".to_string(), |b| format!("{:.1} MB/s", b / 1e6));
        text += &format!("\nfitted     T_merge {t_merge}, B {bandwidth}");
        text +=
            &m.worst_held_out.map_or(String::new(), |e| format!(", worst held-out error {:.0} %", e * 100.0));
    }
    text += &measured_text(facts);
    if let Some(s) = &facts.simulated {
        let state = if s.filled { "written once" } else { "new" };
        let (reads, writes) = (time(Some(s.read_ns)), time(Some(s.write_ns)));
        text += &format!("simulated  {} ({state}): reads {reads}, writes {writes}\n", s.device);
        text += &s.late.as_ref().map_or(String::new(), late_text);
    }
    text += "model                 reads      writes   to measured  to simulated\n";
    for row in &facts.predictions {
        let p = &row.prediction;
        let error = |e: Option<f64>| e.map_or("-".to_string(), |e| format!("{:+.1} %", e * 100.0));
        text += &format!(
            "{:15} {:>11} {:>11} {:>13} {:>13}\n",
            p.model,
            time(p.read_ns),
            time(p.write_ns),
            error(p.relative_error),
            error(row.simulated_error)
        );
    }
    text
}
