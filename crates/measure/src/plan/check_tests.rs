//! What an edited plan may not say, one field at a time and at random.

use super::*;
use crate::pattern::PatternMode;
use crate::{PlanOptions, Preset, make_plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use uflip_device::{Bytes, IoRecord};

const GEOMETRY: Geometry = Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };

fn plan() -> Plan {
    let mut options = PlanOptions::new(Preset::Quick);
    options.only = vec!["order".parse().unwrap(), "mix".parse().unwrap(), "parallelism".parse().unwrap()];
    options.state = State::SEQUENTIAL;
    make_plan(&options, GEOMETRY).unwrap()
}

fn fault(change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(plan()).unwrap();
    change(&mut value);
    match serde_json::from_value::<Plan>(value) {
        Ok(plan) => check(&plan, GEOMETRY).expect_err("refused").to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_the_planner_makes_is_accepted() {
    check(&plan(), GEOMETRY).unwrap();
    for preset in [Preset::Quick, Preset::Standard, Preset::Full] {
        let plan = make_plan(&PlanOptions::new(preset), GEOMETRY).unwrap();
        check(&plan, GEOMETRY).unwrap();
    }
}

#[test]
fn each_thing_that_is_wrong_is_told_with_its_step() {
    // A reset, a pause, the first run, a pause, the second one.
    let at = |field: &'static str, value: Value| move |plan: &mut Value| plan["steps"][2][field] = value;
    let largest = IoRecord::MAX_SIZE;
    for (field, value, word) in [
        ("io_count", json!(0), "step 3 (run 0): io_count is 0; type a number from 1"),
        ("io_ignore", json!(2048), "leaves nothing after io_ignore 2048"),
        ("io_count", json!(u64::MAX), "more than can be counted; type an io_count of at most"),
        ("id", json!(1), "step 5 (run 1): step 3 has the same run number"),
        ("id", json!(200_000), "number runs from 0 to 199999"),
        ("pattern", json!("SW(io_size=32K, target_offset=1G, target_size=1M)"), "past the target's end"),
        ("pattern", json!("SW(io_size=32K)"), "target_size is open"),
        ("pattern", json!("SW(io_size=1000B, target_size=1M)"), "no multiple of the target's sector"),
        ("pattern", json!("RR(io_size=1G, target_size=64M)"), "io_size"),
        ("pattern", json!("5000 x SR(io_size=512, target_size=64M)"), "type a number from 1 to 4096"),
        ("pattern", json!("SR(target_size=1M, pause=9000000s)"), "expected a pause of at most"),
        ("pattern", json!("SR("), "expected"),
        ("time_limit", json!(u64::MAX), "longer than 52 days"),
        ("time_limit", json!(0), "time_limit is 0"),
        ("baseline", json!("x".repeat(5000)), "xxx…' is not a baseline"),
        ("purpose", json!("job"), "does not say of which line"),
        ("seed", json!(null), "invalid type"),
        ("seed", json!(-1), "invalid"),
    ] {
        let said = fault(at(field, value));
        assert!(said.contains(word), "{field}: {said}");
    }
    let size = format!("SR(io_size={}B, target_size=64M)", u64::from(largest) + 1);
    assert!(!fault(at("pattern", json!(size))).is_empty());
    for (field, value, word) in [
        ("format", json!(3), "a plan of format 3"),
        ("tool_version", json!(""), "no version"),
        ("geometry", json!({"capacity": 1 << 20, "sector": 512}), "make one for this target"),
        ("geometry", json!({"capacity": 64 << 20, "sector": 4096}), "sectors of"),
    ] {
        let said = fault(|plan| plan[field] = value);
        assert!(said.contains(word), "{field}: {said}");
    }
    assert!(fault(|plan| plan["steps"][0]["state"] = json!("sequential:513B")).contains("whole sectors"));
    assert!(fault(|plan| plan["steps"][1]["nanos"] = json!(u64::MAX)).contains("longer than 52 days"));
    let missing = fault(|plan| {
        plan["steps"][2].as_object_mut().unwrap().remove("seed");
    });
    assert!(missing.contains("seed"), "{missing}");
    let long = fault(|plan| {
        plan["steps"][2]["purpose"] = json!("micro_benchmark");
        plan["steps"][2]["point"] = json!({"micro_benchmark": "x".repeat(5000), "value": 1});
    });
    assert!(long.contains("a name is too long"), "{long}");
}

#[test]
fn as_many_steps_as_fit_and_no_more() {
    let mut plan = plan();
    let pause = Step::Pause { nanos: Nanos(1) };
    plan.steps = vec![pause; MAX_STEPS];
    check(&plan, GEOMETRY).unwrap();
    plan.steps.push(Step::Reset { state: State::None });
    assert!(check(&plan, GEOMETRY).unwrap_err().to_string().contains("600001 steps"));
}

#[test]
fn kept_runs_are_the_plans_own() {
    let plan = plan();
    let runs: Vec<RunSpec> = plan.runs().cloned().collect();
    check_kept(&plan, runs.iter()).unwrap();
    let changed = |change: &dyn Fn(&mut RunSpec)| {
        let mut kept = runs.clone();
        change(&mut kept[3]);
        check_kept(&plan, kept.iter()).unwrap_err().to_string()
    };
    assert!(changed(&|run| run.io_count += 1).contains("measured with io_count"));
    assert!(changed(&|run| run.seed ^= 1).contains("measured with seed"));
    assert!(changed(&|run| run.belongs = Belongs::Single).contains("another name, repeat"));
    assert!(changed(&|run| run.id = 100_000).contains("has none of that number"));
}

/// Every IO of a plan that passed lies on the target, whatever was changed.
fn stays_on_the_target(plan: &Plan) {
    let _ = (plan.summary(), plan.runs().map(crate::plan::summary::waits).count());
    for run in plan.runs() {
        let streams = run.streams().expect("a pattern that passed has streams");
        for io in streams.into_iter().flat_map(|stream| stream.take(200)) {
            assert!(io.size <= IoRecord::MAX_SIZE);
            let end = io.offset.0 + u64::from(io.size);
            assert!(end <= GEOMETRY.capacity.0, "{}: {io:?}", run.work);
            assert!(io.offset.0.is_multiple_of(512) && u64::from(io.size).is_multiple_of(512));
        }
        assert!(run.work.basics().iter().all(|b| b.mode != PatternMode::Trim || b.target_size.is_some()));
    }
}

/// The place of every number and text in `value`.
fn leaves(value: &Value, path: String, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| leaves(v, format!("{path}/{k}"), into)),
        Value::Array(all) => all.iter().enumerate().for_each(|(i, v)| leaves(v, format!("{path}/{i}"), into)),
        _ => into.push(path),
    }
}

fn other(old: &Value, number: u64, pattern: usize) -> Value {
    const PATTERNS: [&str; 8] = [
        "SW(io_size=1M, target_offset=63M, target_size=1M)",
        "SW(io_size=1M, target_offset=63M, target_size=2M)",
        "RW(io_size=64M, io_shift=512B, target_size=64M)",
        "RW(io_size=32K, io_shift=64M, target_size=64M)",
        "4096 x SW(io_size=512B, target_offset=62M, target_size=2M)",
        "4096 x SW(io_size=16K, target_offset=1M, target_size=64M)",
        "1 SR(target_size=64M) / 9 SW(target_offset=64M, target_size=32K)",
        "SR(target_size=1M) | ST(io_size=1M, target_offset=18446744073709551104B, target_size=1M)",
    ];
    match (old, number % 4) {
        (Value::String(text), 0) if text.contains('(') => PATTERNS[pattern % 8].into(),
        (Value::String(text), 1) => {
            let digits =
                |c: char| if c.is_ascii_digit() { char::from(b'0' + (number >> 8) as u8 % 10) } else { c };
            text.chars().map(digits).collect::<String>().into()
        }
        (Value::Number(_), 0) => 0.into(),
        (Value::Number(_), 1) => u64::MAX.into(),
        (Value::Number(n), 2) => n.as_u64().unwrap_or(0).wrapping_add(number >> 60).into(),
        (_, 3) => Value::Null,
        _ => number.into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_change_makes_a_plan_that_leaves_the_target(
        changes in proptest::collection::vec((any::<usize>(), any::<u64>(), any::<usize>()), 1..4),
    ) {
        let mut value = serde_json::to_value(plan()).unwrap();
        let mut places = Vec::new();
        leaves(&value, String::new(), &mut places);
        for (at, number, pattern) in changes {
            let place = value.pointer_mut(&places[at % places.len()]).unwrap();
            *place = other(place, number, pattern);
        }
        if let Ok(plan) = serde_json::from_value::<Plan>(value)
            && check(&plan, GEOMETRY).is_ok()
        {
            stays_on_the_target(&plan);
        }
    }

    #[test]
    fn no_cut_or_flipped_byte_makes_the_reader_panic(at in any::<usize>(), bit in 0u8..8, cut in any::<bool>()) {
        let mut bytes = serde_json::to_vec(&plan()).unwrap();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        if let Ok(plan) = serde_json::from_slice::<Plan>(&bytes)
            && check(&plan, GEOMETRY).is_ok()
        {
            stays_on_the_target(&plan);
        }
    }
}
