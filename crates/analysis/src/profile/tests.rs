//! Every rule on hand-made stores: the seven rows of Table 3 and curves with
//! another answer. Records are made up around each run's mean.

mod calibrated;
mod queue;
mod verdicts;

use super::*;
use serde_json::json;
use std::collections::BTreeMap;
use uflip_device::{Arrival, Buffering, Bytes, EngineOptions, Io, IoRecord, Mode, Nanos, Overhead, RunEnd};
use uflip_measure::MicroBenchmark;
use uflip_measure::micro::Curve;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::{RtStats, RunOutcome, RunSection, RunStats};
use uflip_store::contents::{RecordFile, RunRow};
use uflip_store::manifest::{Asked, Manifest, Options, Told};

const KIB: i64 = 1 << 10;
const MIB: i64 = 1 << 20;
const IOS: u64 = 600;

/// One run to be: its place and the mean of its response times in ms.
#[derive(Clone)]
struct Made {
    baseline: String,
    /// Micro-benchmark and value; None for a baseline's own run.
    point: Option<(&'static str, i64)>,
    repeat: u32,
    mean_ms: f64,
    pattern: String,
    /// IOs at the start and what they cost instead.
    start_up: (u64, f64),
    time_limit_hit: bool,
    stalls: Option<u64>,
}

/// A store to be.
#[derive(Clone, Default)]
struct Maker {
    runs: Vec<Made>,
    manifest: Option<Manifest>,
    plan: Option<uflip_measure::Plan>,
}

fn manifest() -> Manifest {
    let mut manifest = Manifest::new("0.1.0", 7, Options::of("t", Asked::RUN));
    manifest.target.summary = Some("hand-made".into());
    manifest
}

impl Maker {
    fn run(&mut self, baseline: &str, point: Option<(&'static str, i64)>, mean_ms: f64) {
        let repeats = self.runs.iter().filter(|r| r.baseline == baseline && r.point == point).count();
        let pattern = match (point, baseline.split_once('/')) {
            (_, Some((a, b))) => format!("1 {a} / 1 {b}"),
            (Some((micro, value)), None) => reference_pattern(micro, baseline, value),
            _ => format!("{baseline}(io_size=32K)"),
        };
        self.runs.push(Made {
            baseline: baseline.into(),
            point,
            repeat: repeats as u32,
            mean_ms,
            pattern,
            start_up: (0, 0.0),
            time_limit_hit: false,
            stalls: None,
        });
    }

    fn curve(&mut self, micro: &'static str, baseline: &str, points: impl IntoIterator<Item = (i64, f64)>) {
        points.into_iter().for_each(|(value, mean)| self.run(baseline, Some((micro, value)), mean));
    }

    fn contents(&self) -> StoreContents {
        let manifest = self.manifest.clone().unwrap_or_else(manifest);
        let runs = self.runs.iter().enumerate().map(|(id, made)| row(id as u32, made)).collect();
        StoreContents {
            dir: "nowhere".into(),
            manifest,
            plan: self.plan.clone(),
            calibration: None,
            runs,
            damage: Vec::new(),
            plan_edited: false,
            sums: Vec::new(),
        }
    }

    fn profile(&self) -> Profile {
        let records = |row: &RunRow| Ok(records(&self.runs[row.spec.id as usize], row.spec.id));
        build_from(&self.contents(), &records).expect("nothing can fail")
    }
}

/// The pattern of a point as the planner would have it.
fn reference_pattern(micro: &str, baseline: &str, value: i64) -> String {
    let row = micro.parse::<MicroBenchmark>().expect("one of the nine").row();
    let curve = Curve::One(baseline.parse().expect("a baseline"));
    (row.pattern)(curve, value, Bytes(32 << 10)).expect("a value of Table 1").to_string()
}

/// The profile of a store without runs.
pub(crate) fn empty() -> Profile {
    Maker::default().profile()
}

fn row(id: u32, made: &Made) -> RunRow {
    let point = made.point.map(|(micro, value)| {
        json!({"micro_benchmark": micro, "parameter": "P", "value": value, "label": value.to_string()})
    });
    let purpose = if point.is_some() { "micro_benchmark" } else { "baseline" };
    let spec = json!({
        "id": id, "purpose": purpose, "baseline": made.baseline, "point": point, "repeat": made.repeat,
        "pattern": made.pattern, "io_count": IOS, "io_ignore": 0, "seed": 1, "time_limit": null,
    });
    let end = RunEnd {
        ios: IOS,
        elapsed: Nanos(1),
        time_limit_hit: made.time_limit_hit,
        interrupted: false,
        ..RunEnd::default()
    };
    let stats = uflip_store::stats::summarise(&mut responses(made, id));
    RunRow {
        spec: serde_json::from_value(spec).expect("a spec"),
        folder: None,
        outcome: RunOutcome {
            end,
            started: Nanos(0),
            started_unix_ns: made.stalls.map(|_| 1),
            attempts: 1,
            probes: Default::default(),
        },
        stats: RunStats {
            running: stats.clone(),
            all: stats,
            by_pattern: Vec::<RtStats>::new(),
            by_mode: Vec::new(),
            late: None,
        },
        records: RecordFile { file: String::new(), bytes: 0, checksum: None },
        stalls: made.stalls,
    }
}

/// 2 % of noise, without memory.
fn responses(made: &Made, id: u32) -> Vec<u64> {
    let mut rng = uflip_device::rng::Rng::new(u64::from(id) + 1);
    (0..IOS)
        .map(|i| {
            let mean = if i < made.start_up.0 { made.start_up.1 } else { made.mean_ms };
            (mean * 1e6 * (0.98 + 0.04 * rng.below(10_000) as f64 / 1e4)) as u64
        })
        .collect()
}

fn records(made: &Made, id: u32) -> Vec<IoRecord> {
    let mixed = made.baseline.contains('/');
    let record = |(i, ns): (usize, u64)| {
        let pattern = u8::from(mixed && i % 2 == 1);
        let io =
            Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 32768, mode: Mode::Read, pattern };
        IoRecord::new(&io, 0, Nanos(i as u64 * 1000), Nanos(ns))
    };
    responses(made, id).into_iter().enumerate().map(record).collect()
}

/// A row of Table 3: ms, MB, factors; None where the table has no entry.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    base: [f64; 4],
    pause: Option<f64>,
    locality: Option<(i64, f64)>,
    partitions: (i64, f64),
    reverse: f64,
    in_place: f64,
    large_incr: f64,
}

#[rustfmt::skip]
const TABLE_3: [Row; 7] = [
    Row { name: "Memoright", base: [0.3, 0.4, 0.3, 5.0], pause: Some(5.0), locality: Some((8, 1.0)), partitions: (8, 1.0), reverse: 1.0, in_place: 1.0, large_incr: 4.0 },
    Row { name: "Mtron", base: [0.4, 0.5, 0.4, 9.0], pause: Some(9.0), locality: Some((8, 2.0)), partitions: (4, 1.5), reverse: 1.0, in_place: 1.0, large_incr: 2.0 },
    Row { name: "Samsung", base: [0.5, 0.5, 0.6, 18.0], pause: None, locality: Some((16, 1.5)), partitions: (4, 2.0), reverse: 1.5, in_place: 0.6, large_incr: 2.0 },
    Row { name: "Transcend Module", base: [1.2, 1.3, 1.7, 18.0], pause: None, locality: Some((4, 2.0)), partitions: (4, 2.0), reverse: 3.0, in_place: 2.0, large_incr: 2.0 },
    Row { name: "Transcend MLC", base: [1.4, 3.0, 2.6, 233.0], pause: None, locality: Some((4, 1.0)), partitions: (4, 2.0), reverse: 2.0, in_place: 2.0, large_incr: 1.0 },
    Row { name: "Kingston DTHX", base: [1.3, 1.5, 1.8, 270.0], pause: None, locality: Some((16, 20.0)), partitions: (8, 20.0), reverse: 7.0, in_place: 6.0, large_incr: 1.0 },
    Row { name: "Kingston DTI", base: [1.9, 2.2, 2.9, 256.0], pause: None, locality: None, partitions: (4, 5.0), reverse: 8.0, in_place: 40.0, large_incr: 1.0 },
];

/// The runs of a device as the row says, with three repeats of the baselines.
fn device(row: &Row) -> Maker {
    let [_, _, sw, rw] = row.base;
    let mut made = Maker::default();
    for _ in 0..3 {
        BASELINES.iter().zip(row.base).for_each(|(b, mean)| made.run(b, None, mean));
    }
    let area = |k: i64| match row.locality {
        Some((area, factor)) if k <= area * MIB => sw * factor,
        Some((area, _)) => rw * (1.0 - 0.6 * (area * MIB) as f64 / k as f64),
        None => rw,
    };
    made.curve("locality", "RW", (0..=16).map(|k| ((32 * KIB) << k, area((32 * KIB) << k))));
    let (count, factor) = row.partitions;
    let part = |n: i64| {
        if n == 1 {
            sw
        } else if n <= count {
            sw * factor
        } else {
            rw * (1.0 - 0.6 * count as f64 / n as f64)
        }
    };
    made.curve("partitioning", "SW", (0..=8).map(|k| (1 << k, part(1 << k))));
    made.curve("order", "SW", [(-1, sw * row.reverse), (0, sw * row.in_place), (1, sw)]);
    // Gaps of 1 MiB cost less, those of 8 MiB what the table says; 16 is too near.
    let gaps = [(16, 9.0 * rw), (32, 0.5 * rw), (64, 0.6 * rw), (128, 0.8 * rw), (256, rw * row.large_incr)];
    made.curve("order", "SW", gaps);
    let paused = |p: f64| if row.pause.is_some() { (rw - p).max(sw) } else { rw };
    made.curve("pause", "RW", (0..=8).map(|k| (100_000i64 << k, paused(0.1 * f64::from(1 << k)))));
    made
}

const BASELINES: [&str; 4] = ["SR", "RR", "SW", "RW"];

fn near(found: Option<f64>, truth: f64, relative: f64) -> bool {
    found.is_some_and(|f| (f / truth - 1.0).abs() <= relative)
}

#[test]
fn all_seven_rows_of_table_3_come_back() {
    for row in &TABLE_3 {
        let profile = device(row).profile();
        let got = table3_row(&profile);
        for (found, truth) in [got.sr_ms, got.rr_ms, got.sw_ms, got.rw_ms].into_iter().zip(row.base) {
            assert!(near(found, truth, 0.01), "{}: {found:?} for {truth}", row.name);
        }
        match row.pause {
            Some(pause) => assert!(near(got.pause_rw_ms, pause, 0.12), "{}: {got:?}", row.name),
            None => assert_eq!(got.pause_rw_ms, None, "{}", row.name),
        }
        assert_eq!(got.locality_mb, row.locality.map(|l| l.0 as f64), "{}", row.name);
        assert!(row.locality.is_none_or(|l| near(got.locality_factor, l.1, 0.02)), "{}: {got:?}", row.name);
        assert_eq!(got.partitions, Some(row.partitions.0 as u64), "{}", row.name);
        assert!(near(got.partitions_factor, row.partitions.1, 0.02), "{}: {got:?}", row.name);
        assert!(near(got.reverse_factor, row.reverse, 0.02), "{}: {got:?}", row.name);
        assert!(near(got.in_place_factor, row.in_place, 0.02), "{}: {got:?}", row.name);
        let large = row.large_incr.max(0.8);
        assert!(near(got.large_incr_factor, large, 0.02), "{}: {got:?}", row.name);
    }
}

#[test]
fn the_classes_of_the_paper_and_of_newer_devices() {
    let class = |row: &Row| device(row).profile().device_class;
    let classes: Vec<Class> = TABLE_3.iter().map(|row| class(row).class).collect();
    let (high, low) = (Class::HighEnd, Class::LowEnd);
    assert_eq!(classes, [high, high, low, low, low, low, low]);
    let newer = Row { base: [0.1, 0.11, 0.1, 0.09], ..TABLE_3[0] };
    let found = class(&newer);
    assert_eq!(found.class, Class::Modern);
    let failing: Vec<&str> = found.failing.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(failing, ["locality", "partitions", "random_writes_are_expensive"]);
    assert_eq!(class(&Row { base: [0.3, 9.0, 0.3, 9.0], ..TABLE_3[0] }).class, Class::Disk);
    assert_eq!(Maker::default().profile().device_class.class, Class::Unknown);
}

#[test]
fn evidence_names_the_runs_the_interval_and_the_rule() {
    let profile = device(&TABLE_3[1]).profile();
    let rw = &profile.baseline_ms.evidence[&Baseline::Rw];
    assert_eq!((&rw.runs[..], rw.n, rw.rule.as_str()), (&[3, 7, 11][..], Some(3 * IOS), "baseline-mean"));
    let [low, high] = rw.ci95.expect("an interval");
    assert!(low < 9.0 && 9.0 < high && high - low < 0.1, "{low} {high}");
    let area = &profile.locality.evidence["area_bytes"];
    // 8 MiB and 16 MiB are the 9th and 10th points; SW and RW with them.
    assert_eq!(area.runs, [2, 3, 6, 7, 10, 11, 12 + 8, 12 + 9]);
    assert_eq!(area.range, Some([8.0 * MIB as f64, 8.0 * MIB as f64]));
    let [low, high] = profile.locality.evidence["factor"].ci95.expect("an interval");
    assert!(low < 2.0 && 2.0 < high && high - low < 0.05);
    assert_eq!(profile.evidence["pause_rw_ms"].range, Some([6.4, 12.8]));
}

#[test]
fn every_rule_is_in_the_documentation() {
    let text = include_str!("../../../../docs/profile.md");
    let mut made = device(&TABLE_3[1]);
    granular(&mut made, 100.0, 5.0);
    made.curve("alignment", "RW", [(512, 20.0), (32768, 9.0)]);
    made.curve("parallelism", "RR", [(1, 0.5), (2, 0.5)]);
    made.curve("mix", "SR/RW", [(1, 9.0)]);
    made.curve("queue-depth", "RR", [(1, 0.5), (2, 0.5)]);
    let json = serde_json::to_value(made.profile()).expect("JSON");
    let mut rules = std::collections::BTreeSet::new();
    collect(&json, "rule", &mut rules);
    assert!(rules.len() >= 12, "{rules:?}");
    for rule in &rules {
        assert!(text.contains(&format!("### {rule}\n")), "{rule} is not in docs/profile.md");
    }
    for hint in json["hints"].as_array().expect("hints") {
        assert!(text.contains(&format!("`{}`", hint["id"].as_str().expect("id"))), "{hint}");
    }
}

fn collect(value: &serde_json::Value, key: &str, into: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => fields.iter().for_each(|(name, v)| match v.as_str() {
            Some(text) if name == key => drop(into.insert(text.into())),
            _ => collect(v, key, into),
        }),
        serde_json::Value::Array(all) => all.iter().for_each(|v| collect(v, key, into)),
        _ => {}
    }
}

#[test]
fn nothing_measured_is_null_and_unknown() {
    let profile = Maker::default().profile();
    assert_eq!(table3_row(&profile), Table3Row::default());
    assert_eq!(profile.hints.len(), 7);
    assert!(profile.hints.iter().all(|h| h.verdict == Verdict::Unknown && h.evidence.is_empty()));
    let json = serde_json::to_value(&profile).expect("JSON");
    for path in ["/baseline_ms/SR", "/locality/area_bytes", "/granularity/latency_us/SR", "/parallelism/gain"]
    {
        assert_eq!(json.pointer(path), Some(&serde_json::Value::Null), "{path}");
    }
    assert_eq!(serde_json::from_value::<Profile>(json).expect("it reads back"), profile);
}

/// Curves over IOSize that are lines.
fn granular(made: &mut Maker, latency_us: f64, us_per_kib: f64) {
    for baseline in BASELINES {
        let line = |bytes: i64| (latency_us + us_per_kib * bytes as f64 / 1024.0) / 1e3;
        made.curve("granularity", baseline, (0..=9).map(|k| (512 << k, line(512 << k))));
    }
}

/// The same line for each baseline, in proportion to what that costs at 32 KiB.
fn granular_as(made: &mut Maker, base_ms: [f64; 4], latency: f64, per_kib: f64) {
    let line = |bytes: i64| latency + per_kib * bytes as f64 / 1024.0;
    for (baseline, ms) in BASELINES.into_iter().zip(base_ms) {
        let cost = |bytes: i64| ms * line(bytes) / line(32 * KIB);
        made.curve("granularity", baseline, (0..=9).map(|k| (512 << k, cost(512 << k))));
    }
}

fn verdicts(profile: &Profile) -> BTreeMap<&str, (Verdict, &str)> {
    profile.hints.iter().map(|h| (h.id.as_str(), (h.verdict, h.statement.as_str()))).collect()
}

#[test]
fn the_granularity_line_comes_back_with_its_interval() {
    let mut made = device(&TABLE_3[0]);
    granular(&mut made, 70.0, 7.0);
    let g = made.profile().granularity;
    assert!(near(g.latency_us.sr, 70.0, 0.02) && near(g.us_per_kib.sw, 7.0, 0.02), "{g:?}");
    let [low, high] = g.latency_us.evidence[&Baseline::Sr].ci95.expect("an interval");
    assert!(low < 70.0 && 70.0 < high);
    assert_eq!((g.saturation_bytes.sr, g.linear.sr), (Some(128 << 10), Some(true)));
}

#[test]
fn hints_on_sizes_and_alignment() {
    let both = |latency, per_kib, shifted: f64| {
        let mut made = device(&TABLE_3[2]);
        granular_as(&mut made, TABLE_3[2].base, latency, per_kib);
        made.curve("alignment", "RW", [(512, shifted), (8192, shifted), (16384, 18.0), (32768, 18.0)]);
        made.profile()
    };
    let samsung = both(200.0, 7.0, 32.0);
    let found = verdicts(&samsung);
    assert_eq!(found["larger_ios"].0, Verdict::Holds);
    assert_eq!(found["block_size"].0, Verdict::Holds);
    assert!(found["block_size"].1.starts_with("Write in 64K or more"), "{found:?}");
    assert_eq!(found["alignment"].0, Verdict::Holds);
    assert!(found["alignment"].1.contains("Align IOs to 16K") && found["alignment"].1.contains("x1.78"));
    assert_eq!(samsung.alignment.unit_bytes, Some(16 << 10));
    let plain = both(1.0, 7.0, 18.0);
    let found = verdicts(&plain);
    assert_eq!(found["larger_ios"].0, Verdict::DoesNotHold);
    assert_eq!(found["block_size"].0, Verdict::DoesNotHold);
    assert_eq!(found["alignment"].0, Verdict::DoesNotHold);
}

#[test]
fn hints_on_areas_and_partitions() {
    let mtron = device(&TABLE_3[1]).profile();
    let found = verdicts(&mtron);
    assert_eq!((found["locality"].0, found["partitions"].0), (Verdict::Holds, Verdict::Holds));
    assert!(
        found["locality"].1.contains("within 8M") && found["partitions"].1.contains("4 streams"),
        "{found:?}"
    );
    let dti = device(&TABLE_3[6]).profile();
    let found = verdicts(&dti);
    assert!(
        found["locality"].0 == Verdict::DoesNotHold && found["locality"].1.starts_with("Avoid random writes")
    );
    let mut flat = Maker::default();
    BASELINES.iter().for_each(|b| flat.run(b, None, 0.1));
    flat.curve("partitioning", "SW", (0..=8).map(|k| (1 << k, 0.1)));
    flat.curve("locality", "RW", (0..=8).map(|k| ((32 * KIB) << k, 0.1)));
    let flat = flat.profile();
    let found = verdicts(&flat);
    assert!(
        found["partitions"].0 == Verdict::DoesNotHold && found["partitions"].1.contains("as many"),
        "{found:?}"
    );
    assert!(found["locality"].0 == Verdict::DoesNotHold && found["locality"].1.contains("anywhere"));
    // A cost that grows without a jump is still a reason for few streams.
    let mut grows = Maker::default();
    BASELINES.iter().zip([1.0, 1.0, 1.0, 100.0]).for_each(|(b, mean)| grows.run(b, None, mean));
    grows.curve("partitioning", "SW", (0..=8).map(|k| (1 << k, 1.35f64.powi(k))));
    let grows = grows.profile();
    let found = verdicts(&grows);
    assert!(
        found["partitions"].0 == Verdict::Holds && found["partitions"].1.contains("x2 up to 4"),
        "{found:?}"
    );
}

#[test]
fn parallelism_and_mix_gain_lose_or_do_nothing() {
    let with = |parallel: [f64; 3], mixed: f64| {
        let mut made = device(&TABLE_3[1]);
        let points = [1, 2, 4].into_iter().zip(parallel);
        made.curve("parallelism", "RR", points);
        made.curve("mix", "SR/RW", [(1, mixed)]);
        made.profile()
    };
    let nothing = with([0.5, 1.0, 2.0], 4.7);
    assert!(near(nothing.parallelism.gain, 1.0, 0.01) && near(nothing.mix.gain, 1.0, 0.01));
    let found = verdicts(&nothing);
    assert_eq!((found["mix"].0, found["no_concurrency_or_delay"].0), (Verdict::Holds, Verdict::Holds));
    let gains = with([0.5, 0.5, 0.5], 9.4);
    const RR: Curve = Curve::One(Baseline::Rr);
    let p = &gains.parallelism;
    assert!(near(p.gain, 4.0, 0.02) && near(p.best, 4.0, 0.02) && p.worst == Some(1.0), "{p:?}");
    assert_eq!((p.baseline, p.value, p.curves[&RR].len()), (Some(RR), Some(4), 2));
    assert!(near(gains.mix.gain, 0.5, 0.02), "{:?}", gains.mix);
    let found = verdicts(&gains);
    assert_eq!(
        (found["mix"].0, found["no_concurrency_or_delay"].0),
        (Verdict::DoesNotHold, Verdict::DoesNotHold)
    );
    assert!(
        found["no_concurrency_or_delay"].1.contains("x4.0") && found["mix"].1.contains("x2.0"),
        "{found:?}"
    );
    let loses = with([0.5, 2.0, 8.0], 4.7).parallelism;
    assert!(near(loses.gain, 0.25, 0.02) && loses.best == Some(1.0), "{loses:?}");
}

#[test]
fn a_pause_that_saves_time_speaks_against_hint_7() {
    let mut made = device(&TABLE_3[1]);
    made.curve("parallelism", "RR", [(1, 0.5), (2, 1.0)]);
    made.curve("pause", "SW", [(100_000, 0.1)]);
    let profile = made.profile();
    assert_eq!(verdicts(&profile)["no_concurrency_or_delay"].0, Verdict::DoesNotHold);
}

fn codes(profile: &Profile) -> Vec<&str> {
    let mut all: Vec<&str> = profile.soundness.iter().map(|f| f.code.as_str()).collect();
    all.dedup();
    all
}

#[test]
fn a_sound_store_has_no_findings() {
    assert_eq!(codes(&device(&TABLE_3[1]).profile()), Vec::<&str>::new());
}

#[test]
fn a_start_up_is_left_out_and_told() {
    let mut made = device(&TABLE_3[1]);
    made.runs
        .iter_mut()
        .filter(|r| r.baseline == "RW" && r.point.is_none())
        .for_each(|r| r.start_up = (125, 0.4));
    let profile = made.profile();
    assert!(
        profile.start_up_ios.rw.is_some_and(|ios| (120..=130).contains(&ios)),
        "{:?}",
        profile.start_up_ios
    );
    assert!(near(profile.baseline_ms.rw, 9.0, 0.01), "{:?}", profile.baseline_ms);
    let told = profile.soundness.iter().find(|f| f.code == "start_up_not_covered").expect("a finding");
    assert_eq!((&told.runs[..], told.severity), (&[3, 7, 11][..], Severity::Warning));
    // Eight IOs at about half the cost shift the mean of 600 by less than 1 %.
    made.runs.iter_mut().filter(|r| r.start_up.0 > 0).for_each(|r| r.start_up = (8, 5.0));
    let told = made.profile().soundness;
    assert!(
        told.iter().all(|f| f.code != "start_up_not_covered" || f.severity == Severity::Info),
        "{told:?}"
    );
}

#[test]
fn repeats_that_differ_are_told_with_their_cause() {
    let mut made = device(&TABLE_3[1]);
    let own = |r: &&mut Made| r.baseline == "SW" && r.point.is_none();
    made.runs.iter_mut().filter(own).enumerate().for_each(|(i, r)| r.mean_ms *= 1.0 + 0.1 * i as f64);
    let profile = made.profile();
    let told = profile.soundness.iter().find(|f| f.code == "repeats_differ").expect("a finding");
    assert!(told.statement.contains("they rise") && told.runs == [2, 6, 10], "{told:?}");
    assert!(codes(&profile).contains(&"baseline_drift"));
    assert!(codes(&profile).contains(&"wide_interval"));
}

#[test]
fn manifest_and_rows_speak_against_the_results() {
    let mut made = device(&TABLE_3[1]);
    let mut manifest = manifest();
    manifest.target.warnings = vec!["the file is in 9 pieces".into()];
    manifest.options.engine =
        Some(EngineOptions { buffering: Buffering::Buffered, ..EngineOptions::default() });
    let facts = Overhead {
        clock_read_ns: 30.0,
        empty_io_response_ns: 30_000.0,
        empty_io_total_ns: 30_100.0,
        clock_source: None,
    };
    manifest.overhead = Some(Told { facts, summary: None });
    made.manifest = Some(manifest);
    made.runs[2].stalls = Some(3);
    made.runs[3].time_limit_hit = true;
    let profile = made.profile();
    let found = codes(&profile);
    for code in ["page_cache", "target_warning", "stalls", "time_limit_hit", "own_overhead"] {
        assert!(found.contains(&code), "{code} is missing in {found:?}");
    }
    assert_eq!(profile.soundness[0].code, "page_cache", "the gravest first");
}

#[test]
fn the_plan_tells_of_state_and_space() {
    let mut options = uflip_measure::PlanOptions::new(uflip_measure::Preset::Quick);
    let geometry = uflip_device::Geometry { capacity: Bytes(32 << 20), sector: Bytes(512) };
    let mut plan = |state| {
        options.state = state;
        let mut made = device(&TABLE_3[1]);
        let plan = uflip_measure::make_plan(&options, geometry).expect("a plan");
        made.plan = Some(plan);
        made.profile()
    };
    let left = plan(uflip_measure::State::None);
    let found = codes(&left);
    assert!(
        ["state_not_enforced", "space_reused", "incomplete"].iter().all(|c| found.contains(c)),
        "{found:?}"
    );
    assert_eq!(left.pause_between_runs_s, Some(0.01));
    let reset = plan(uflip_measure::State::Random);
    let found = codes(&reset);
    assert!(!found.contains(&"state_not_enforced") && !found.contains(&"space_reused"), "{found:?}");
}

#[test]
fn the_card_fits_80_columns_and_says_what_matters() {
    let mut made = device(&TABLE_3[1]);
    granular_as(&mut made, TABLE_3[1].base, 100.0, 5.0);
    let text = card::render(&made.profile());
    assert!(text.lines().all(|l| l.chars().count() <= card::WIDTH), "{text}");
    for words in ["9.00", "within 8M", "up to 4", "high-end", "Hints"] {
        assert!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    let factors = [0.95, 1.5, 2.0, 20.4, 0.6].map(table3::factor_text);
    assert_eq!(factors, ["=", "x1.5", "x2", "x20", "x0.6"]);
}

/// A device's clock begins anew with its session; in virtual time that says nothing.
#[test]
fn a_measurement_that_was_gone_on_with_is_said() {
    let mut maker = Maker::default();
    (0..4).for_each(|_| maker.run("SR", None, 1.0));
    let mut contents = maker.contents();
    let told = |contents: &StoreContents| super::resumed::resumed(&contents.runs).map(|found| found.runs);
    for (at, row) in contents.runs.iter_mut().enumerate() {
        row.outcome.started = Nanos(if at < 2 { 5 } else { 3 } + at as u64);
    }
    assert_eq!(told(&contents), None);
    for (at, row) in contents.runs.iter_mut().enumerate() {
        row.outcome.started_unix_ns = Some(1000 + at as u64);
    }
    assert_eq!(told(&contents), Some(vec![2]));
}

#[test]
fn an_open_loop_is_no_baseline_and_no_point_and_is_told_by_itself() {
    let closed = device(&TABLE_3[1]);
    let mut open = closed.clone();
    for (at, made) in open.runs.iter_mut().enumerate() {
        // As after an edit of the plan: all reads at random, and a pause, open.
        let is_point = made.point.is_some_and(|(micro, value)| micro == "pause" && value == 100_000);
        if (made.baseline == "RR" && made.point.is_none()) || is_point {
            made.pattern = format!("{}(io_size=32K, poisson=1000/s)", made.baseline);
            made.mean_ms = 500.0 + at as f64;
        }
    }
    let (closed, open) = (closed.profile(), open.profile());
    assert_eq!(open.baseline_ms.rr, None, "queueing time is no level");
    assert_eq!((open.baseline_ms.sr, open.io_count.rr), (closed.baseline_ms.sr, None));
    let pause = |p: &Profile| {
        p.curves
            .iter()
            .find(|c| c.id.section == RunSection::Micro(MicroBenchmark::Pause))
            .unwrap()
            .points
            .len()
    };
    assert_eq!(pause(&open) + 1, pause(&closed));
    let told: Vec<_> = open.soundness.iter().filter(|f| f.code == "open_loop").collect();
    assert_eq!(told.len(), 4);
    assert!(told[0].statement.contains("poisson=1000/s") && !told[0].runs.is_empty(), "{told:?}");
    assert!(closed.soundness.iter().all(|f| f.code != "open_loop"));
}
