//! `uflip predict`: what a block trace would cost on a measured device by each
//! cost model, and what the trace itself is like.

use crate::args::extra::PredictArgs;
use crate::command::{print, print_json};
use crate::usage;
use anyhow::Context;
use serde::Serialize;
use std::path::Path;
use uflip_device::{Bytes, Nanos};
use uflip_results::model::{self, Models, Prediction};
use uflip_results::trace::{self, Character, TraceIo};
use uflip_results::{Store, read_records};

/// A trace is read whole; beyond this a part of it should do.
const MAX_TRACE: u64 = 4 << 30;

/// What `--json` prints.
#[derive(Serialize)]
struct Facts {
    character: Character,
    models: Models,
    measured_ns: Option<f64>,
    predictions: Vec<Prediction>,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the results or the trace.
pub fn predict(args: PredictArgs) -> anyhow::Result<()> {
    let contents = Store::open(&args.dir)?;
    let trace = read(&args.trace)?;
    let models = model::fit(&model::curves(&contents.runs), Some(args.logical_block));
    let facts = Facts {
        character: trace::character(&trace, args.logical_block),
        measured_ns: model::measured_ns(&trace),
        predictions: model::predict(&models, &trace),
        models,
    };
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
}

fn read(path: &Path) -> anyhow::Result<Vec<TraceIo>> {
    if path.extension().is_some_and(|e| e == "parquet") {
        return Ok(trace::of_records(&read_records(path)?));
    }
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > MAX_TRACE {
        return Err(usage(format!("{} is {} long; cut it to 4G", path.display(), Bytes(size))));
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    trace::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| usage(format!("{}: {e}", path.display())))
}

fn as_text(facts: &Facts) -> String {
    let c = &facts.character;
    let share = |s: Option<f64>| s.map_or("-".to_string(), |s| format!("{:.1} %", s * 100.0));
    let number = |s: Option<f64>| s.map_or("-".to_string(), |s| format!("{s:.3}"));
    let time =
        |ns: Option<f64>| ns.map_or("not fitted".to_string(), |ns| Nanos(ns.max(0.0) as u64).to_string());
    let mut text = format!(
        "trace      {} reads of {}, {} writes of {}, {} flushes\n\
         \x20          {} sequential in {} streams, {} aligned to their size\n\
         \x20          {} syncs, R {} sectors, f {}, {} logical blocks\n\
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
        let bandwidth = m.bytes_per_s.map_or("-".to_string(), |b| format!("{:.1} MB/s", b / 1e6));
        text += &format!("\nfitted     T_merge {}, B {bandwidth}", time(Some(m.t_merge_ns)));
        text +=
            &m.worst_held_out.map_or(String::new(), |e| format!(", worst held-out error {:.0} %", e * 100.0));
    }
    text += &format!(
        "\nmeasured   {}\n",
        facts.measured_ns.map_or("no response times in the trace".into(), |ns| Nanos(ns as u64).to_string())
    );
    for p in &facts.predictions {
        let error = p.relative_error.map_or(String::new(), |e| format!(", {:+.1} %", e * 100.0));
        text += &format!("{:16} reads {}, writes {}{error}\n", p.model, time(p.read_ns), time(p.write_ns));
    }
    text
}
