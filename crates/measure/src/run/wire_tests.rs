//! What a run's JSON must keep.
use super::super::{
    Belongs, CalibrationStep, PlannedPoint, Program, ProgramStep, ReplayedTrace, RunSpec, Work,
};
use crate::auto::CalibrationRole;
use crate::job;
use crate::{Baseline, Curve, MicroBenchmark};
use serde_json::{Value, json};
use uflip_device::{Bytes, Geometry, Nanos};

fn spec(belongs: Belongs, work: Work) -> RunSpec {
    RunSpec { id: 7, belongs, work, io_count: 64, io_ignore: 2, seed: u64::MAX, time_limit: Some(Nanos(5)) }
}

fn pattern(text: &str) -> Work {
    Work::Pattern(text.parse().unwrap())
}

fn all_kinds() -> Vec<RunSpec> {
    let point = |micro, curve, value| Belongs::Point(PlannedPoint { micro, curve, value, repeat: 2 });
    let pair = Curve::Pair(Baseline::Sr, Baseline::Rw);
    let job = job::parse("a sw bs=4K,8K until=3% shift=0,2K count=9 before=fill(1M),rw(bs=2K,time=5s) sync=4\nb sw bs=1M passes=3 rounds=2 then=a").unwrap();
    let geometry = Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };
    let planned = job::expand(&job, "t", geometry, 9).unwrap();
    let mut all = vec![
        spec(point(MicroBenchmark::Pause, Curve::One(Baseline::Rw), 1_600_000), pattern("RW(pause=1600us)")),
        spec(point(MicroBenchmark::Mix, pair, -4), pattern("1 SR / 4 RW")),
        spec(Belongs::Baseline { baseline: Baseline::Rr, repeat: 1 }, pattern("RR")),
        spec(Belongs::Single, pattern("4 x SR")),
        spec(
            Belongs::Program(ProgramStep {
                program: "copy".into(),
                step: "all".into(),
                device: "from".into(),
                repeat: 0,
            }),
            Work::Program(Program {
                name: "copy".into(),
                arguments: [("requests".to_string(), "8".to_string())].into(),
                streams: 2,
                writes: true,
            }),
        ),
        spec(
            Belongs::Single,
            Work::Trace(ReplayedTrace {
                name: "web.csv".into(),
                checksum: "crc32:00000000".into(),
                streams: 1,
                writes: false,
            }),
        ),
    ];
    all.extend(
        CalibrationRole::ALL
            .map(|role| spec(Belongs::Calibration(CalibrationStep { role, number: 3 }), pattern("RT"))),
    );
    all.extend(planned.plan.runs().cloned());
    all
}

#[test]
fn every_kind_of_run_comes_back_from_json() {
    for spec in all_kinds() {
        let text = serde_json::to_string(&spec).unwrap();
        assert!(text.starts_with(&format!("{{\"id\":{},\"purpose\":", spec.id)), "{text}");
        assert_eq!(serde_json::from_str::<RunSpec>(&text).unwrap(), spec, "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::from_value::<RunSpec>(value).unwrap(), spec);
    }
}

/// Lines as earlier versions wrote them.
#[test]
fn what_other_programs_read_is_written_as_before() {
    let mix = json!({
        "id": 7, "purpose": "micro_benchmark", "baseline": "SR/RW",
        "point": {"micro_benchmark": "mix", "parameter": "Ratio", "value": -4, "label": "1 : 4"},
        "repeat": 2, "pattern": all_kinds()[1].work.to_string(), "io_count": 64, "io_ignore": 2,
        "seed": u64::MAX, "time_limit": 5,
    });
    assert_eq!(serde_json::to_value(&all_kinds()[1]).unwrap(), mix);
    let kinds = all_kinds();
    let value = |at: usize| serde_json::to_value(&kinds[at]).unwrap();
    assert_eq!((value(2)["purpose"].clone(), value(2)["baseline"].clone()), (json!("baseline"), json!("RR")));
    assert_eq!(value(2)["point"], Value::Null);
    let paused =
        json!({"micro_benchmark": "pause", "parameter": "Pause", "value": 1_600_000, "label": "1.6 ms"});
    assert_eq!(value(0)["point"], paused);
    let probe =
        json!({"micro_benchmark": "calibration", "parameter": "state_before", "value": 3, "label": "3"});
    assert_eq!((value(6)["point"].clone(), value(6)["baseline"].clone()), (probe, json!("RT")));
}

/// A job's rows of format 1 keep their names until they are told what they mean.
#[test]
fn names_that_are_not_known_are_kept_as_they_are() {
    let old = json!({
        "id": 3, "purpose": "micro_benchmark", "baseline": "RW",
        "point": {"micro_benchmark": "mis shift=2K", "parameter": "IOSize", "value": 4096, "label": "4K"},
        "repeat": 1, "pattern": "RW(io_size=4K, target_offset=0B)", "io_count": 64, "io_ignore": 0, "seed": 1,
        "time_limit": null,
    });
    let spec: RunSpec = serde_json::from_value(old.clone()).unwrap();
    assert!(matches!(&spec.belongs, Belongs::Named(named) if !named.prepares), "{spec:?}");
    assert_eq!(spec.belongs.section().unwrap().to_string(), "mis shift=2K");
    assert_eq!(serde_json::to_value(&spec).unwrap(), old);
}

#[test]
fn what_is_no_run_is_told() {
    let good = serde_json::to_value(&all_kinds()[2]).unwrap();
    for (field, value, told) in [
        ("baseline", json!("XX"), "run 7: 'XX' is not a baseline"),
        ("baseline", json!("SR/RW"), "a pair of baselines is for the mix only"),
        ("pattern", Value::Null, "it has no pattern, program or trace"),
        ("purpose", json!("job"), "does not say of which line"),
        ("purpose", json!("calibration"), "has no point"),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let error = serde_json::from_value::<RunSpec>(bad).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
