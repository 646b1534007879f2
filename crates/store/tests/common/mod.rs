//! What the tests of the store share.
#![allow(dead_code, reason = "each test binary uses some of it")]

use serde_json::{Value, json};
use std::path::Path;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos, Recorder, RunEnd};
use uflip_measure::Plan;
use uflip_measure::run::{RunOutcome, RunSpec, Sink, SinkError};
use uflip_store::manifest::Asked;
use uflip_store::{Manifest, Options, Store};

/// The one place that knows a pattern's text.
pub const PATTERN: &str = "RR";

pub fn spec(id: u32, ios: u64) -> RunSpec {
    serde_json::from_value(json!({
        "id": id, "purpose": "micro_benchmark", "baseline": "RR",
        "point": {"micro_benchmark": "granularity", "parameter": "IOSize", "value": 4096, "label": "4K"},
        "repeat": 0, "pattern": PATTERN, "io_count": ios, "io_ignore": 2, "seed": 7, "time_limit": null,
    }))
    .expect("a run's spec")
}

pub fn manifest() -> Manifest {
    let mut manifest = Manifest::new("0.1.0", 42, Options::of("sim:test", Asked::RUN));
    manifest.folder = Some("0123".into());
    manifest
}

/// A plan with no step of its own: the runs of these tests are nobody's.
pub fn plan() -> Plan {
    plan_with(json!([]), json!([]))
}

/// The same with notes and what was left out.
pub fn plan_with(notes: Value, skipped: Value) -> Plan {
    let plan = json!({
        "format": 1, "tool_version": "0.1.0", "target": "sim:test",
        "geometry": {"capacity": 1u64 << 30, "sector": 512}, "seed": 42, "io_size": 32_768,
        "preset": "quick", "steps": [], "skipped": skipped, "notes": notes,
    });
    serde_json::from_value(plan).expect("a plan")
}

pub fn record(run: u32, i: u64) -> IoRecord {
    let offset = Bytes((i * 7919 + u64::from(run)) % 4096 * 4096);
    let io = Io { arrival: Arrival::CONSECUTIVE, offset, size: 4096, mode: Mode::Read, pattern: 0 };
    IoRecord::new(&io, 0, Nanos(i * 100_000), Nanos(80_000 + i * 31 % 977 + u64::from(run)))
}

pub fn outcome(ios: u64) -> RunOutcome {
    let end = RunEnd {
        ios,
        elapsed: Nanos(ios * 100_000),
        time_limit_hit: false,
        interrupted: false,
        ..RunEnd::default()
    };
    RunOutcome { end, started: Nanos(0), started_unix_ns: None, attempts: 1, probes: Default::default() }
}

/// Feeds a recorder as a timed loop does.
pub fn feed(recorder: &dyn Recorder, records: impl Iterator<Item = IoRecord>) {
    let mut chunk = recorder.fresh();
    for record in records {
        if chunk.len() == chunk.capacity() {
            chunk = recorder.exchange(chunk);
        }
        chunk.push(record);
    }
    recorder.finish(chunk);
}

pub fn run_once(store: &mut Store, id: u32, ios: u64) -> Result<(), SinkError> {
    let spec = spec(id, ios);
    store.begin(&spec)?;
    feed(store.recorder(), (0..ios).map(|i| record(id, i)));
    store.commit(&spec, &outcome(ios)).map(|_| ())
}

/// Checks that the store holds whole runs only, and gives their ids.
pub fn check(dir: &Path) -> Vec<u32> {
    let contents = Store::open(dir).expect("open");
    for row in &contents.runs {
        let id = row.spec.id;
        let records = uflip_store::read_records(&dir.join(&row.records.file)).expect("records");
        let wanted: Vec<_> = (0..row.spec.io_count).map(|i| record(id, i)).collect();
        assert_eq!(records, wanted, "run {id}");
        assert_eq!(row.stats.all.n, row.spec.io_count);
        assert_eq!(row.stats.running.n, row.spec.io_count - 2);
    }
    contents.runs.iter().map(|row| row.spec.id).collect()
}

pub fn files_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .expect("folder")
        .map(|e| e.expect("entry").file_name().into_string().expect("utf-8"))
        .collect();
    names.sort();
    names
}
