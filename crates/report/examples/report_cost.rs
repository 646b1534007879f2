//! What making the report costs: seconds and peak memory, for runs of so many
//! million IOs in all (10), in runs of so many (1 million); the report goes to
//! the file of a third argument. One IO of the first run takes 900 ms.
//! `cargo run --release -p uflip-report --example report_cost -- 10 1 report.html`

use serde_json::json;
use std::time::Instant;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos, RunEnd};
use uflip_measure::run::{RunOutcome, RunSpec, Sink};
use uflip_report::report;
use uflip_store::manifest::Asked;
use uflip_store::{Manifest, Options, Store};

/// Peak memory of this process, as the kernel has it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .unwrap_or("VmHWM unknown")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// CPU time of this process, user and system, as the kernel has it (in steps
/// of 10 ms).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| after_name.split_whitespace().nth(at).and_then(|t| t.parse::<f64>().ok());
    ticks(11).zip(ticks(12)).map_or(f64::NAN, |(user, system)| (user + system) / 100.0)
}

fn make(dir: &std::path::Path, runs: u64, ios: u64) {
    let plan = json!({
        "format": 2, "tool_version": "0", "target": "null:1G", "seed": 1, "io_size": 32_768,
        "geometry": {"capacity": 1u64 << 30, "sector": 512}, "preset": "quick", "steps": [], "skipped": [],
        "notes": [],
    });
    let plan = serde_json::from_value(plan).expect("a plan");
    let manifest = Manifest::new("0", 1, Options::of("null:1G", Asked::RUN));
    let mut store = Store::create(dir, &manifest, &plan).expect("a store");
    for id in 0..runs {
        let spec: RunSpec = serde_json::from_value(json!({
            "id": id, "purpose": "baseline", "baseline": "RR", "point": null, "repeat": id, "pattern": "RR",
            "io_count": ios, "io_ignore": 0, "seed": 7, "time_limit": null,
        }))
        .expect("a run");
        store.begin(&spec).expect("begun");
        let (recorder, mut clock) = (store.recorder(), 0);
        let mut chunk = recorder.fresh();
        for i in 0..ios {
            let mixed = (i + id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes((mixed >> 49) * 32_768),
                size: 32_768,
                mode: Mode::Read,
                pattern: 0,
            };
            if chunk.len() == chunk.capacity() {
                chunk = recorder.exchange(chunk);
            }
            let spike = id == 0 && i == ios / 3 * 2 + 7;
            let response = if spike { 900_000_000 } else { 80_000 + (mixed >> 30) % 20_000 };
            chunk.push(IoRecord::new(&io, 0, Nanos(clock), Nanos(response)));
            clock += response + 100;
        }
        recorder.finish(chunk);
        let end = RunEnd {
            ios,
            elapsed: Nanos(clock),
            time_limit_hit: false,
            interrupted: false,
            ..RunEnd::default()
        };
        store
            .commit(
                &spec,
                &RunOutcome {
                    end,
                    started: Nanos(0),
                    started_unix_ns: None,
                    attempts: 1,
                    probes: Default::default(),
                },
            )
            .expect("kept");
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut millions = |or: f64| args.next().map_or(or, |a| a.parse::<f64>().expect("a number"));
    let (total, each) = (millions(10.0) * 1e6, millions(1.0) * 1e6);
    let keep = std::env::args().nth(3);
    let dir = std::env::temp_dir().join(format!("uflip-report-cost-{}", std::process::id()));
    make(&dir, (total / each).max(1.0) as u64, each as u64);
    // Only what the report takes counts; the kernel resets the peak on request.
    if std::fs::write("/proc/self/clear_refs", "5").is_err() {
        println!("the peak includes making the records");
    }
    println!("before: {}", peak());
    let cpu_before = cpu_seconds();
    let start = Instant::now();
    let made =
        report::write(&Store::open(&dir).expect("a store"), &[], &dir.join("report.html")).expect("a report");
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu_before);
    println!(
        "{total} IOs in {wall:.2} s ({cpu:.2} s of CPU), {}, {} bytes, {:?}",
        peak(),
        made.html.len(),
        made.embedded
    );
    if let Some(path) = keep {
        std::fs::copy(dir.join("report.html"), path).expect("a copy of the report");
    }
    let _ = std::fs::remove_dir_all(dir);
}
