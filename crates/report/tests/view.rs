//! The view sorts a store's rows into baselines and micro-benchmarks.

#[path = "../../store/tests/common/mod.rs"]
mod common;
#[path = "common/made.rs"]
mod made;

use common::{feed, manifest, outcome, plan_with, record, spec};
use serde_json::json;
use uflip_analysis::profile;
use uflip_device::{Bytes, Counters, IoRecord, Nanos};
use uflip_measure::run::{Belongs, Named, PlannedPoint, RunSpec, Sink, Work};
use uflip_measure::{Baseline, MicroBenchmark};
use uflip_report::{View, report, terminal, view};
use uflip_store::{Store, export};

/// Keeps a run whose IOs all take `ns`.
fn keep(store: &mut Store, run: &RunSpec, ns: u64) {
    keep_counted(store, run, ns, None);
}

/// The same of a device that counts its own work.
fn keep_counted(store: &mut Store, run: &RunSpec, ns: u64, counters: Option<Counters>) {
    store.begin(run).unwrap();
    let io = |i: u64| {
        let r = record(run.id, i);
        let io = uflip_device::Io {
            arrival: uflip_device::Arrival::CONSECUTIVE,
            offset: r.offset(),
            size: r.size(),
            mode: r.mode(),
            pattern: u8::from(run.curve_name().to_string().contains('/') && i % 2 == 1),
        };
        IoRecord::new(&io, 0, r.submit(), Nanos(ns + 1000 * u64::from(io.pattern)))
    };
    feed(store.recorder(), (0..run.io_count).map(io));
    let mut outcome = outcome(run.io_count);
    outcome.probes.counters = counters;
    store.commit(run, &outcome).unwrap();
}

fn point_run(id: u32, baseline: &str, value: i64, repeat: u32) -> RunSpec {
    let mut run = spec(id, 50);
    let (micro, curve) = (MicroBenchmark::Granularity, baseline.parse().unwrap());
    run.belongs = Belongs::Point(PlannedPoint { micro, curve, value, repeat });
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
    let names: Vec<_> = view.baselines.iter().map(|b| (b.baseline.baseline(), b.stats.mean_ns)).collect();
    assert_eq!(names, [(Some(Baseline::Sr), Some(100.0)), (Some(Baseline::Rw), Some(900.0))]);
    let sections: Vec<_> = view.sections.iter().map(|s| s.micro_benchmark.to_string()).collect();
    assert_eq!(sections, ["granularity", "locality", "mix"]);
    let curves = &view.sections[0].series;
    assert_eq!((curves[0].baseline.to_string(), curves[1].baseline.to_string()), ("SR".into(), "RW".into()));
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

/// Two repeats that wrote unlike amounts: the mean of their ratios is 5.5, the ratio of
/// their sums 1.9, and that is what everybody says.
#[test]
fn a_point_with_repeats_has_one_figure_wherever_it_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan_with(json!([]), json!([]))).unwrap();
    let counted = |written: u64, programmed: u64| Counters {
        host_written: Some(Bytes(written)),
        flash_programmed: Some(Bytes(programmed)),
        energy_uj: Some(programmed as f64),
        ..Counters::default()
    };
    keep_counted(&mut store, &point_run(0, "RW", 4096, 0), 2_000_000, Some(counted(1000, 10_000)));
    keep_counted(&mut store, &point_run(1, "RW", 4096, 1), 4_000_000, Some(counted(9000, 9000)));
    // A mean of four digits, 8.123, below the run's own.
    keep(&mut store, &point_run(2, "RW", 8192, 0), 8_123_456);
    drop(store);
    let contents = Store::open(dir.path()).unwrap();
    let made = profile::build(&contents).unwrap();
    profile::write(dir.path(), &made).unwrap();
    let stored = std::fs::read_to_string(profile::path(dir.path())).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let in_profile = &stored["curves"][0]["points"][0];
    assert_eq!((&in_profile["mean_ms"], &in_profile["write_amplification"]), (&json!(3.0), &json!(1.9)));
    assert_eq!(in_profile["energy_uj_per_io"], json!(190.0));
    assert_eq!(stored["curves"][0]["points"][1]["write_amplification"], json!(null), "nobody told");
    let shown = view::build(&contents);
    let page = report::render(&contents).unwrap().html;
    let with_none = view::build_with(&contents, None);
    for view in [&shown, &serde_json::from_value(made::facts(&page)["view"].clone()).unwrap(), &with_none] {
        let point = &view.sections[0].series[0].points[0];
        assert_eq!(point.mean_ns, in_profile["mean_ms"].as_f64().map(|ms| ms * 1e6));
        assert_eq!(point.write_amplification, in_profile["write_amplification"].as_f64());
        assert_eq!(point.energy_uj_per_io, in_profile["energy_uj_per_io"].as_f64());
        assert_eq!((point.min_ns, point.max_ns), (Some(2_000_000.0), Some(4_000_000.0)));
        let single = &view.sections[0].series[0].points[1];
        assert_eq!((single.min_ns, single.max_ns), (single.mean_ns, single.mean_ns), "one run has no span");
    }
    let style = terminal::Style { width: 80, color: false, ascii: true };
    let text = terminal::render_with(&shown, style);
    assert!(text.lines().any(|line| line.contains("4K") && line.contains("3.00")), "{text}");
}

#[test]
fn patterns_of_a_mix_are_told_apart_and_exported() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan_with(json!([]), json!([]))).unwrap();
    let mut run = point_run(0, "SR/RW", -2, 0);
    run.seed = u64::MAX;
    run.work = Work::Pattern("1 SR(io_size=4K) / 2 RW(io_size=4K)".parse().unwrap());
    run.belongs = Belongs::Named(Named {
        name: "mine".into(),
        prepares: false,
        curve: "SR/RW".to_string().into(),
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
