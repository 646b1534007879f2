//! Edited plans whose runs are not what their places say.

use super::*;
use crate::plan::check::check;
use crate::{Plan, PlanOptions, Preset, make_plan};
use serde_json::{Value, json};
use uflip_device::Geometry;

const GEOMETRY: Geometry = Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) };

fn plan(only: &[&str]) -> Plan {
    let mut options = PlanOptions::new(Preset::Quick);
    options.only = only.iter().map(|name| name.parse().unwrap()).collect();
    make_plan(&options, GEOMETRY).unwrap()
}

/// The plan with the first run of that baseline, or of that micro-benchmark's value, changed.
fn edited(micro: &str, curve: &str, value: Option<i64>, field: &str, to: Value) -> Result<(), String> {
    let mut plan =
        serde_json::to_value(plan(if micro.is_empty() { &["order"] } else { std::slice::from_ref(&micro) }))
            .unwrap();
    let run = plan["steps"].as_array_mut().unwrap().iter_mut().find(|step| {
        let named = step["point"]["micro_benchmark"].as_str().unwrap_or("") == micro;
        step["step"] == "run"
            && step["baseline"] == curve
            && named
            && value.is_none_or(|v| step["point"]["value"] == v)
    });
    *run.expect("the plan has it").pointer_mut(field).unwrap() = to;
    let plan: Plan = serde_json::from_value(plan).map_err(|error| error.to_string())?;
    check(&plan, GEOMETRY).map_err(|fault| fault.to_string())
}

#[test]
fn every_run_that_the_planner_makes_is_in_its_place_also_as_text() {
    for preset in [Preset::Quick, Preset::Standard, Preset::Full] {
        let mut options = PlanOptions::new(preset);
        options.only = MicroBenchmark::ALL.to_vec();
        options.io_size = Bytes(16 << 10);
        let plan = make_plan(&options, GEOMETRY).unwrap();
        let read: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        let mut seen = IoSizes::new();
        for run in plan.runs().chain(read.runs()) {
            assert_eq!(misplaced(run, plan.io_size, &mut seen), None);
        }
    }
}

#[test]
fn a_place_that_says_another_thing_than_its_pattern_is_refused_with_both() {
    let refused = |micro: &str, curve: &str, value: Option<i64>, field: &str, to: Value, words: &[&str]| {
        let told = edited(micro, curve, value, field, to).expect_err("refused");
        assert!(told.contains("; make its baseline, its point and its pattern say the same"), "{told}");
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
    };
    let of = |text: &str| json!(format!("{text}, target_size=64M)"));
    refused(
        "",
        "RW",
        None,
        "/pattern",
        of("SR(io_size=32K"),
        &["the baseline RW with IOs of 32K", "its pattern is SR("],
    );
    refused("", "SR", None, "/baseline", json!("RW"), &["the baseline RW", "its pattern is SR("]);
    refused("", "RW", None, "/pattern", of("RT(io_size=32K"), &["its pattern is RT("]);
    refused("", "RW", None, "/pattern", of("RW(io_size=4K"), &["IOs of 32K", "io_size=4K"]);
    refused("", "SR", None, "/pattern", of("SR(io_size=32K, pause=1ms"), &["pause=1ms"]);
    let micro = "granularity";
    refused(
        micro,
        "RR",
        Some(8192),
        "/pattern",
        of("RR(io_size=4K"),
        &["granularity of RR, IOSize 8K", "io_size=4K"],
    );
    refused(micro, "RR", Some(8192), "/pattern", of("RT(io_size=8K"), &["its pattern is RT("]);
    refused(micro, "RR", Some(8192), "/point/value", json!(1 << 20), &["IOSize 1M", "io_size=8K"]);
    refused(micro, "RR", Some(8192), "/point/value", json!(0), &["IOSize 0"]);
    refused(
        micro,
        "RR",
        Some(8192),
        "/point/value",
        json!(i64::MIN),
        &["no such pattern: -9223372036854775808 is not a size"],
    );
    refused(
        "locality",
        "RW",
        Some(512 << 10),
        "/pattern",
        of("RW(io_size=32K"),
        &["TargetSize 512K", "target_size=64M"],
    );
    refused("order", "SW", Some(-1), "/pattern", of("SW(io_size=32K"), &["Incr -1"]);
    refused(
        "order",
        "SW",
        Some(-1),
        "/baseline",
        json!("RW"),
        &["no such pattern: Table 1: sequential patterns only"],
    );
    refused(
        "mix",
        "SR/RW",
        Some(4),
        "/pattern",
        json!("2 SR(target_size=1M) / 1 RW(target_size=1M)"),
        &["Ratio 4 : 1"],
    );
    refused(
        "pause",
        "SW",
        Some(100_000),
        "/pattern",
        of("SW(io_size=32K, pause=1s"),
        &["pause of SW, Pause ", "pause=1s"],
    );
    refused(
        "queue-depth",
        "RR",
        Some(4),
        "/pattern",
        json!("8 deep RR(target_size=64M)"),
        &["QueueDepth 4", "8 deep"],
    );
    refused(
        "pause",
        "SW",
        Some(100_000),
        "/pattern",
        of("SW(io_size=4K, pause=100us"),
        &["pause does not vary IOSize", "4K"],
    );
}

#[test]
fn what_says_the_same_is_taken() {
    let of = |text: &str| json!(format!("{text}, target_offset=1M, target_size=64M)"));
    let taken = |micro: &str, curve: &str, value: Option<i64>, to: Value| {
        edited(micro, curve, value, "/pattern", to).unwrap()
    };
    taken("", "RW", None, of("RW(io_size=32K, poisson=400/s"));
    taken("", "RW", None, of("RW(io_size=32K, repeat=no"));
    taken("pause", "RW", Some(100_000), of("RW(io_size=32K, rate=400/s"));
    taken("granularity", "SW", Some(8192), of("SW(io_size=8K"));
    taken("bursts", "SW", Some(10), of("SW(io_size=32K, pause=5ms, burst=10"));
}
