//! What the automatic method found goes before what the plan's own runs say,
//! and speaks up where it found something wrong.

use super::{TABLE_3, device, records};
use crate::profile::{Profile, Severity, build_from};
use serde_json::{Value, json};
use uflip_measure::Baseline;
use uflip_store::contents::RunRow;

fn interval(mean_ns: f64) -> Value {
    json!({ "mean_ns": mean_ns, "low_ns": mean_ns * 0.97, "high_ns": mean_ns * 1.03, "level": 0.95, "n": 800,
            "batches": 30, "method": "batch_means" })
}

/// A calibration of the Mtron in which nothing is wrong.
fn calibration() -> Value {
    let rule = json!({ "relative_half_width": 0.05, "level": 0.95, "min_periods": 10, "min_batches": 20,
                       "min_ios": 256, "cap_ios": 8192 });
    let start_up = json!({ "ios": 125, "kind": "cheap", "before_mean_ns": 4e5, "after_mean_ns": 9e6,
                           "margin": 60.0, "p_value": 0.01, "confidence": 0.99 });
    let found = json!({ "affected_ios": 3000, "affected_ns": 2_500_000_000u64, "over": true,
                        "before_mean_ns": 4e5, "affected_mean_ns": 8e5, "margin": 9.0, "p_value": 0.01 });
    json!({
        "format": 1,
        "limits": { "probe_ios": 512, "probe_rounds": 20, "first_ios": 1024, "parts": 6, "rule": rule,
                    "reads": 512, "reads_cap": 32768, "pause_floor": 1_000_000_000, "rest": 1, "run_time": null },
        "state": { "enforced": "complete", "runs": [0, 1], "round_means_ns": [9e6, 9e6], "steady": null,
                   "capped": false, "level": null },
        "baselines": { "RW": {
            "runs": [2, 3], "ios": 1024, "start_up": start_up, "transient_ios": null,
            "period": { "ios": 3.0, "prominence": 1.5, "z": 25.0, "confidence": 1.0 },
            "io_ignore": 138, "io_count": 807, "interval": interval(9e6), "reason": "precise_enough", "capped": false,
        } },
        "pause": { "tests": [{ "batch": "RW", "runs_before": [4], "run_batch": 5, "runs_after": [6, 7], "found": found }],
                   "floor": 1_000_000_000, "needed": 5_000_000_000u64, "between_runs": 5_000_000_000u64 },
        "plan": { "runs": 9, "ios": 900, "read_bytes": 1, "write_bytes": 1, "reset_bytes": 0, "estimate": 1,
                  "budget": null, "repeats": 3, "dropped": [] },
        "drift": { "before": [0, 1], "after": [8], "level": null, "drift": {
            "ratio": { "ratio": 1.0, "low": 0.98, "high": 1.02 }, "drifted": false, "stable": true } },
        "interference": [],
        "notes": [],
    })
}

fn profile(calibration: Option<Value>) -> Profile {
    let made = device(&TABLE_3[1]);
    let calibration = calibration.map(|found| serde_json::from_value(found).expect("a calibration"));
    let contents = uflip_store::StoreContents { calibration, ..made.contents() };
    build_from(&contents, &|row: &RunRow| Ok(records(&made.runs[row.spec.id as usize], row.spec.id))).unwrap()
}

fn codes(profile: &Profile) -> Vec<&str> {
    profile.soundness.iter().map(|f| f.code.as_str()).collect()
}

#[test]
fn phases_and_pause_come_from_the_calibration_runs() {
    let plain = profile(None);
    assert_eq!((plain.start_up_ios.rw, plain.period_ios.rw), (None, None));
    let found = profile(Some(calibration()));
    assert_eq!((found.start_up_ios.rw, found.period_ios.rw), (Some(125), Some(3.0)));
    assert_eq!(found.start_up_ios.evidence[&Baseline::Rw].runs, [2, 3]);
    assert_eq!(found.pause_between_runs_s, Some(5.0));
    assert_eq!(found.evidence["pause_between_runs_s"].runs, [4, 5, 6, 7]);
    assert_eq!(codes(&found), codes(&plain), "nothing is wrong with it");
    assert_eq!(found.baseline_ms.rw, plain.baseline_ms.rw, "means are of the plan's own runs");
}

/// Memoright with seeds 4, 5, 23 and 2: 216, 225, 177 and 288 where the truth is 32 and the
/// baseline's own runs say 33.
#[test]
fn runs_that_agree_overrule_a_long_run_outside_of_their_range_and_that_is_said() {
    let mut made = device(&TABLE_3[1]);
    let own = |r: &&mut super::Made| r.baseline == "RW" && r.point.is_none();
    made.runs.iter_mut().filter(own).for_each(|r| r.start_up = (33, 0.4));
    let with = |ios: Option<u64>| {
        let mut found = calibration();
        match ios {
            Some(ios) => found["baselines"]["RW"]["start_up"]["ios"] = ios.into(),
            None => found["baselines"]["RW"]["start_up"] = Value::Null,
        }
        let calibration = Some(serde_json::from_value(found).expect("a calibration"));
        let contents = uflip_store::StoreContents { calibration, ..made.contents() };
        build_from(&contents, &|row: &RunRow| Ok(records(&made.runs[row.spec.id as usize], row.spec.id)))
            .unwrap()
    };
    for (long, range, finding) in [
        (Some(216), Some([33.0, 216.0]), true),
        (Some(288), Some([33.0, 288.0]), true),
        (None, Some([33.0, 33.0]), true),
        (Some(40), Some([33.0, 33.0]), false),
    ] {
        let profile = with(long);
        let told = if finding { Some(33) } else { long };
        assert_eq!(profile.start_up_ios.rw, told, "{long:?}");
        assert_eq!(profile.start_up_ios.evidence[&Baseline::Rw].range, range, "{long:?}");
        let said = profile.soundness.iter().find(|f| f.code == "start_up_unclear");
        assert_eq!(said.map(|f| f.severity), finding.then_some(Severity::Warning), "{long:?}");
    }
}

/// One thing wrong at a time, and the finding it makes.
#[test]
fn what_is_wrong_is_a_finding() {
    let plain = codes(&profile(Some(calibration()))).len();
    let dropped = json!([{ "micro_benchmark": "order", "baseline": "SW", "label": "4", "reason": "time" }]);
    let disturbed =
        json!([{ "run": 3, "other_ios": 99, "cpu_stall_share": 0.5, "io_stall_share": 0.5, "load": 3.0 }]);
    let slowed = json!([{ "run": 3, "other_ios": 0, "cpu_stall_share": 0.0, "io_stall_share": 0.5, "load": 3.0,
        "cpu_mhz": [3000.0, 800.0], "throttles": 2 }]);
    let drift =
        json!({ "ratio": { "ratio": 1.4, "low": 1.2, "high": null }, "drifted": true, "stable": false });
    let wrong = [
        ("/state/capped", json!(true), "state_not_steady", Severity::Warning),
        ("/drift/drift", drift, "state_drift", Severity::Warning),
        ("/pause/between_runs", json!(1_000_000_000u64), "pause_too_short", Severity::Warning),
        ("/pause/tests/0/found/over", json!(false), "pause_too_short", Severity::Warning),
        ("/baselines/RW/capped", json!(true), "baseline_capped", Severity::Info),
        ("/interference", disturbed, "other_load", Severity::Warning),
        ("/interference", slowed, "cpu_frequency", Severity::Warning),
        ("/plan/dropped", dropped, "values_dropped", Severity::Info),
    ];
    for (place, value, code, severity) in wrong {
        let mut changed = calibration();
        *changed.pointer_mut(place).unwrap() = value;
        let profile = profile(Some(changed));
        let finding = profile.soundness.iter().find(|f| f.code == code);
        assert_eq!(finding.map(|f| f.severity), Some(severity), "{place}");
        assert_eq!(codes(&profile).len(), plain + 1, "{place}: {:?}", codes(&profile));
    }
}

/// Other work is told by what it was: IOs, processors, or both.
#[test]
fn other_load_is_told_by_its_kind() {
    for (ios, share, told) in [
        (99, 0.0, "(99 IOs of others on the disk)"),
        (0, 0.126, "(tasks waited for a processor up to 13 % of a run's time)"),
        (7, 0.5, "(7 IOs of others on the disk, tasks waited for a processor up to 50 % of a run's time)"),
    ] {
        let mut changed = calibration();
        changed["interference"] = json!([{ "run": 3, "other_ios": ios, "cpu_stall_share": share, "io_stall_share": 0.5, "load": 3.0 }]);
        let profile = profile(Some(changed));
        let finding = profile.soundness.iter().find(|f| f.code == "other_load").unwrap();
        assert!(finding.statement.contains(told), "{}", finding.statement);
    }
}
