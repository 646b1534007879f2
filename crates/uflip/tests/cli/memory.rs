//! Runs of millions of IOs: no command takes memory in proportion to them, and
//! what is told of them is what was put into them.

use crate::streaming::peak_kib;
use crate::support::{text, uflip};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos, Recorder, RunEnd};
use uflip_measure::run::{RunOutcome, RunSpec, Sink};
use uflip_store::manifest::Asked;
use uflip_store::{Manifest, Options, Store};

/// What a command may take, in KiB.
const BOUND: u64 = 256 << 10;
const START_UP: u64 = 500;
const PERIOD: u64 = 1_000;

fn spec(id: u32, purpose: &str, point: Value, pattern: &str, io_count: u64) -> RunSpec {
    serde_json::from_value(json!({
        "id": id, "purpose": purpose, "baseline": "RW", "point": point, "repeat": id, "pattern": pattern,
        "io_count": io_count, "io_ignore": 0, "seed": 7, "time_limit": null,
    }))
    .expect("a run's spec")
}

fn feed(recorder: &dyn Recorder, stream: u16, ios: u64, of: impl Fn(u64) -> (Mode, u64)) {
    let (mut chunk, mut at) = (recorder.fresh(), Nanos::ZERO);
    for i in 0..ios {
        if chunk.len() == chunk.capacity() {
            chunk = recorder.exchange(chunk);
        }
        let (mode, ns) = of(i);
        let size = if mode == Mode::Flush { 0 } else { 4096 };
        let offset = Bytes(i.wrapping_mul(7919) % (1 << 20) * 4096);
        let io = Io { arrival: Arrival::CONSECUTIVE, offset, size, mode, pattern: 0 };
        chunk.push(IoRecord::new(&io, stream, at, Nanos(ns)));
        at = at + Nanos(ns);
    }
    recorder.finish(chunk);
}

fn keep(store: &mut Store, spec: &RunSpec, streams: u16, of: impl Fn(u64) -> (Mode, u64)) {
    store.begin(spec).unwrap();
    (0..streams).for_each(|stream| feed(store.recorder(), stream, spec.io_count, &of));
    let ios = spec.io_count * u64::from(streams);
    let end = RunEnd { ios, elapsed: Nanos(ios * 100_000), ..RunEnd::default() };
    store
        .commit(
            spec,
            &RunOutcome {
                end,
                started: Nanos::ZERO,
                started_unix_ns: None,
                attempts: 1,
                probes: Default::default(),
            },
        )
        .unwrap();
}

/// A start-up phase, then one expensive IO in ten, in stretches, with some noise.
fn write(i: u64) -> (Mode, u64) {
    let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
    let expensive = i >= START_UP && (i - START_UP) % PERIOD < PERIOD / 10;
    (
        Mode::Write,
        if expensive {
            9_000_000
        } else if i < START_UP {
            50_000
        } else {
            100_000
        } + noise,
    )
}

/// Runs the binary; its peak memory in KiB and what it printed.
fn run(folder: &Path, args: &[&str]) -> (u64, String) {
    let out = folder.join("stdout");
    let mut command = uflip();
    command
        .current_dir(folder)
        .args(args)
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let peak = peak_kib(&mut child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "uflip {args:?}: {}", text(&output.stderr));
    (peak, std::fs::read_to_string(out).unwrap())
}

#[test]
fn no_command_takes_memory_in_proportion_to_a_runs_length() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("d");
    let manifest = Manifest::new("0.1.0", 42, Options::of("sim:test", Asked::RUN));
    let plan = json!({
        "format": 2, "tool_version": "0.1.0", "target": "sim:test", "seed": 42, "io_size": 32_768,
        "geometry": {"capacity": 1u64 << 40, "sector": 512}, "preset": "quick", "steps": [], "skipped": [],
        "notes": [],
    });
    let plan = serde_json::from_value(plan).unwrap();
    let mut store = Store::create(&dir, &manifest, &plan).unwrap();
    let single = spec(0, "baseline", Value::Null, "RW", 4_000_000);
    keep(&mut store, &single, 1, write);
    let point =
        json!({"micro_benchmark": "parallelism", "parameter": "ParallelDegree", "value": 4, "label": "4"});
    keep(&mut store, &spec(1, "micro_benchmark", point, "4 x RW", 400_000), 4, write);
    let flushed = |i: u64| if i.is_multiple_of(2) { write(i) } else { (Mode::Flush, 20_000) };
    let pattern = "RW(sync=1)";
    keep(&mut store, &spec(2, "single", Value::Null, pattern, 2_400_000), 1, flushed);
    drop(store);
    for args in [
        &["profile", "d", "--json"][..],
        &["show", "d"],
        &["report", "d"],
        &["compare", "d", "d", "--no-html"],
        &["export", "d", "--figures", "f"],
        &["export", "d", "--what", "records", "-o", "ios.parquet"],
    ] {
        let (peak, _) = run(folder.path(), args);
        assert!(peak < BOUND, "uflip {args:?} took {peak} KiB");
    }
    let profile: Value = serde_json::from_slice(&std::fs::read(dir.join("profile.json")).unwrap()).unwrap();
    let start_up = profile["start_up_ios"]["RW"].as_u64().unwrap();
    assert!(start_up.abs_diff(START_UP) <= 5, "{start_up}");
    let period = profile["period_ios"]["RW"].as_f64().unwrap();
    assert!((period / PERIOD as f64 - 1.0).abs() < 0.005, "{period}");
    let mean = (START_UP..4_000_000).map(|i| write(i).1 as f64).sum::<f64>() / (4_000_000 - START_UP) as f64;
    let told = profile["baseline_ms"]["RW"].as_f64().unwrap() * 1e6;
    assert!((told / mean - 1.0).abs() < 1e-3, "{told} {mean}");
}
