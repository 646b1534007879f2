//! The view sorts a store's rows into baselines and micro-benchmarks.

#[path = "../../store/tests/common/mod.rs"]
mod common;

use common::{feed, manifest, outcome, plan_with, record, spec};
use serde_json::json;
use uflip_device::{IoRecord, Nanos};
use uflip_measure::run::{Belongs, Named, Point, RunSpec, Sink, Work};
use uflip_measure::{Baseline, MicroBenchmark};
use uflip_report::{View, view};
use uflip_store::{Store, export};

/// Keeps a run whose IOs all take `ns`.
fn keep(store: &mut Store, run: &RunSpec, ns: u64) {
    store.begin(run).unwrap();
    let io = |i: u64| {
        let r = record(run.id, i);
        let io = uflip_device::Io {
            arrival: uflip_device::Arrival::CONSECUTIVE,
            offset: r.offset(),
            size: r.size(),
            mode: r.mode(),
            pattern: u8::from(run.curve_name().contains('/') && i % 2 == 1),
        };
        IoRecord::new(&io, 0, r.submit(), Nanos(ns + 1000 * u64::from(io.pattern)))
    };
    feed(store.recorder(), (0..run.io_count).map(io));
    store.commit(run, &outcome(run.io_count)).unwrap();
}

fn point_run(id: u32, baseline: &str, value: i64, repeat: u32) -> RunSpec {
    let mut run = spec(id, 50);
    let (micro, curve) = (MicroBenchmark::Granularity, baseline.parse().unwrap());
    run.belongs = Belongs::Point(Point { micro, curve, value, repeat });
    run
}

#[test]
fn repeats_are_averaged_and_order_is_the_papers() {
    let dir = tempfile::tempdir().unwrap();
    let skipped = json!([
        {"micro_benchmark": "locality", "baseline": "RW", "label": "64M", "reason": "the device is smaller"},
        {"micro_benchmark": "mix", "baseline": "SR/RW", "label": "4 : 1", "reason": "not asked for"},
    ]);
    let plan = plan_with(json!([]), skipped);
    let mut store = Store::create(dir.path(), &manifest(), &plan).unwrap();
    let mut base = spec(0, 50);
    base.belongs = Belongs::Baseline { baseline: Baseline::Rw, repeat: 0 };
    keep(&mut store, &base, 900);
    (base.id, base.belongs) = (1, Belongs::Baseline { baseline: Baseline::Sr, repeat: 0 });
    keep(&mut store, &base, 100);
    keep(&mut store, &point_run(2, "RW", 8192, 0), 400);
    keep(&mut store, &point_run(3, "RW", 512, 0), 100);
    keep(&mut store, &point_run(4, "SR", 512, 0), 10);
    keep(&mut store, &point_run(5, "RW", 512, 1), 200);
    keep(&mut store, &point_run(6, "RW", 512, 2), 600);
    let view = view::build(&Store::open(dir.path()).unwrap());
    let names: Vec<_> = view.baselines.iter().map(|b| (b.baseline.as_str(), b.stats.mean_ns)).collect();
    assert_eq!(names, [("SR", Some(100.0)), ("RW", Some(900.0))]);
    let sections: Vec<_> = view.sections.iter().map(|s| s.micro_benchmark.as_str()).collect();
    assert_eq!(sections, ["granularity", "locality", "mix"]);
    let curves = &view.sections[0].series;
    assert_eq!((curves[0].baseline.as_str(), curves[1].baseline.as_str()), ("SR", "RW"));
    let first = &curves[1].points[0];
    assert_eq!(
        (first.value, first.mean_ns, first.min_ns, first.max_ns),
        (512, Some(300.0), Some(100.0), Some(600.0))
    );
    assert_eq!(first.runs, [3, 5, 6]);
    assert_eq!(view.sections[1].skipped, ["RW 64M: the device is smaller"]);
    assert_eq!((view.target.as_str(), view.host.clone(), view.runs), ("name sim:test", None, 7));
    let text = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<View>(&text).unwrap(), view);
}

#[test]
fn patterns_of_a_mix_are_told_apart_and_exported() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &json!(null)).unwrap();
    let mut run = point_run(0, "SR/RW", -2, 0);
    run.seed = u64::MAX;
    run.work = Work::Pattern("1 SR(io_size=4K) / 2 RW(io_size=4K)".parse().unwrap());
    run.belongs = Belongs::Named(Named {
        name: "mine".into(),
        prepares: false,
        curve_name: "SR/RW".into(),
        curve: None,
        parameter: "P".into(),
        value: -2,
        label: "say \"1\", then 2".into(),
        repeat: 0,
    });
    keep(&mut store, &run, 5000);
    let contents = Store::open(dir.path()).unwrap();
    let means: Vec<_> = contents.runs[0].stats.by_pattern.iter().map(|s| (s.n, s.mean_ns)).collect();
    assert_eq!(means, [(24, Some(5000.0)), (24, Some(6000.0))]);
    let mut csv = Vec::new();
    export::runs(&contents, uflip_store::Format::Csv, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(
        csv.contains(&format!(",-2,\"say \"\"1\"\", then 2\",0,\"{}\",50,2,{},,0,,", run.work, u64::MAX)),
        "{csv}"
    );
    assert!(csv.contains(",24,5000.0,0.0,5000,24,6000.0,0.0,6000,ios/run-000000.parquet,"), "{csv}");
    let missing = export::records(&contents, Some(&[9]), uflip_store::Format::Csv, &mut Vec::new());
    assert!(missing.unwrap_err().to_string().contains("no run 9"));
}
