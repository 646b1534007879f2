//! Plans that somebody edited: in a results folder, and in a file.

use crate::support::{expect, finished_runs};
use serde_json::{Value, json};
use std::path::Path;

/// The scratch file with its header.
const WHOLE: u64 = (16 << 20) + 4096;

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A benchmark on a scratch file of 16M, cut to its first three runs.
fn half_done(dir: &Path) -> Value {
    let args = ["run", "./scratch", "-o", "out", "--only", "order", "--baselines", "SW", "--method", "fixed"];
    expect(dir, 0, &[&args[..], &["--seed", "1", "--scratch-size", "16M", "--budget", "60s"]].concat());
    let rows = std::fs::read_to_string(dir.join("out/runs.ndjson")).unwrap();
    let half: String = rows.split_inclusive('\n').take(3).collect();
    std::fs::write(dir.join("out/runs.ndjson"), half).unwrap();
    read(&dir.join("out/plan.json"))
}

type Change = fn(&mut Value);

/// The last run of the plan.
fn last(plan: &mut Value) -> &mut Value {
    let steps = plan["steps"].as_array_mut().unwrap();
    steps.iter_mut().rfind(|step| step["step"] == "run").unwrap()
}

/// The last run of the plan, which is made one that stands for nothing.
fn alone(plan: &mut Value) -> &mut Value {
    let run = last(plan);
    (run["purpose"], run["point"]) = (json!("single"), Value::Null);
    run
}

const CHANGES: [(&str, Change); 13] = [
    ("it stands for order of SW, Incr ", |plan| {
        last(plan)["pattern"] = json!("SR(io_size=32K, target_size=1M)");
    }),
    ("past the target's end", |plan| {
        last(plan)["pattern"] = json!("SW(io_size=1M, target_offset=512M, target_size=512M)");
    }),
    ("has the same run number", |plan| last(plan)["id"] = json!(0)),
    ("io_count is 0", |plan| last(plan)["io_count"] = json!(0)),
    ("leaves nothing after io_ignore", |plan| last(plan)["io_ignore"] = json!(1_000_000)),
    ("plan of format 7", |plan| plan["format"] = json!(7)),
    ("it is for a target of", |plan| plan["geometry"]["capacity"] = json!(1u64 << 30)),
    ("no multiple of the target's sector", |plan| {
        last(plan)["pattern"] = json!("SW(io_size=1000B, target_size=1M)");
    }),
    ("longer than 52 days", |plan| last(plan)["time_limit"] = json!(u64::MAX)),
    ("number runs from 0", |plan| last(plan)["id"] = json!(4_000_000_000u64)),
    ("type a number from 1 to 4096", |plan| {
        last(plan)["pattern"] = json!("5000 x SW(io_size=512B, target_size=8M)");
    }),
    ("target_size is open", |plan| last(plan)["pattern"] = json!("SW(io_size=32K)")),
    ("missing field `seed`", |plan| {
        last(plan).as_object_mut().unwrap().remove("seed");
    }),
];

#[test]
fn a_stored_plan_is_checked_again_before_it_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let plan = half_done(dir);
    let size = || dir.join("scratch").metadata().unwrap().len();
    assert_eq!(size(), WHOLE);
    let resume = ["run", "-o", "out", "--resume"];
    for (word, change) in CHANGES {
        let mut edited = plan.clone();
        change(&mut edited);
        std::fs::write(dir.join("out/plan.json"), edited.to_string()).unwrap();
        let (_, err) = expect(dir, 1, &resume);
        assert!(err.contains(word) && err.contains("out/plan.json"), "{word}: {err}");
        assert_eq!((size(), finished_runs(&dir.join("out")).len()), (WHOLE, 3), "{word}");
    }
    // A run that is kept was another one.
    let mut edited = plan.clone();
    edited["steps"][0]["io_count"] = json!(99_999);
    std::fs::write(dir.join("out/plan.json"), edited.to_string()).unwrap();
    let (_, err) = expect(dir, 1, &resume);
    assert!(err.contains("step 1 (run 0): it was measured with io_count"), "{err}");
    std::fs::write(dir.join("out/plan.json"), plan.to_string()).unwrap();
    expect(dir, 0, &resume);
    assert_eq!(size(), WHOLE);
}

#[test]
fn a_plan_from_a_file_is_checked_in_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let options = ["--only", "order", "--baselines", "SW", "--preset", "quick", "--seed", "1", "--json"];
    let (text, _) = expect(dir, 0, &[&["plan", "null:16M"][..], &options].concat());
    let plan: Value = serde_json::from_str(&text).unwrap();
    let run = ["run", "null:16M", "--plan", "p.json", "-o", "out"];
    for (word, change) in CHANGES {
        let mut edited = plan.clone();
        change(&mut edited);
        std::fs::write(dir.join("p.json"), edited.to_string()).unwrap();
        let (_, err) = expect(dir, 2, &run);
        assert!(err.contains(word) && err.contains("p.json"), "{word}: {err}");
        assert!(!dir.join("out").exists(), "{word}");
    }
    for broken in ["", "{", "[]", "null", "{\"format\": 1}", "\u{0}\u{1}"] {
        std::fs::write(dir.join("p.json"), broken).unwrap();
        let (_, err) = expect(dir, 2, &run);
        assert!(err.contains("p.json is no plan"), "{err}");
    }
    std::fs::write(dir.join("p.json"), &text).unwrap();
    expect(dir, 0, &run);
}

#[test]
fn the_plan_of_a_job_is_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("a.job"), "a rr,rw bs=4K,64K count=50\n").unwrap();
    expect(dir, 0, &["job", "null:8M", "a.job", "-o", "out", "--seed", "1"]);
    let mut plan = read(&dir.join("out/plan.json"));
    last(&mut plan)["io_count"] = json!(0);
    std::fs::write(dir.join("out/plan.json"), plan.to_string()).unwrap();
    let (_, err) = expect(dir, 1, &["job", "null:8M", "-o", "out", "--resume"]);
    assert!(err.contains("io_count is 0") && err.contains("plan.json"), "{err}");
}

/// A benchmark of `null:1T`, its last run edited to need buffers of 255G in all.
fn greedy(dir: &Path, command: &[&str]) {
    expect(dir, 0, command);
    let mut plan = read(&dir.join("out/plan.json"));
    let run = alone(&mut plan);
    run["pattern"] = json!("1024 x SR(io_size=255M, target_size=522240M)");
    std::fs::write(dir.join("out/plan.json"), plan.to_string()).unwrap();
    let rows = std::fs::read_to_string(dir.join("out/runs.ndjson")).unwrap();
    std::fs::write(dir.join("out/runs.ndjson"), rows.split_inclusive('\n').take(1).collect::<String>())
        .unwrap();
}

#[test]
fn memory_is_asked_for_before_a_stored_plan_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let options = ["--only", "order", "--baselines", "SR", "--method", "fixed", "--preset", "quick"];
    greedy(dir, &[&["run", "null:1T", "-o", "out", "--seed", "1"][..], &options].concat());
    let (_, err) = expect(dir, 2, &["run", "-o", "out", "--resume"]);
    assert!(err.contains("a buffer for each of 1024 streams") && err.contains("at most half"), "{err}");
    assert_eq!(finished_runs(&dir.join("out")).len(), 1);
}

#[test]
fn memory_is_asked_for_by_a_jobs_resume_and_by_logical_block() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let ring = ["--engine", "io_uring", "--queue-depth", "4096"];
    let few = |args: &[&str]| {
        let limited = std::process::Command::new("prlimit")
            .args(["--as=800000000", env!("CARGO_BIN_EXE_uflip")])
            .args(args)
            .current_dir(dir)
            .output();
        limited.map(|o| (o.status.code(), crate::support::text(&o.stderr)))
    };
    std::fs::write(dir.join("data"), vec![7u8; 1 << 20]).unwrap();
    std::fs::write(dir.join("a.job"), "a sr bs=4K count=50\nb rr bs=4K count=50\n").unwrap();
    let (_, err) =
        match crate::support::run_in(dir, &[&["job", "./data", "a.job", "-o", "out"][..], &ring].concat()) {
            done if done.status.success() => (0, String::new()),
            other => (1, crate::support::text(&other.stderr)),
        };
    if !err.is_empty() {
        return crate::support::skipped(&format!("io_uring with 4096 IOs in flight: {err}"));
    }
    let rows = std::fs::read_to_string(dir.join("out/runs.ndjson")).unwrap();
    std::fs::write(dir.join("out/runs.ndjson"), rows.split_inclusive('\n').take(1).collect::<String>())
        .unwrap();
    for args in [
        &["job", "./data", "-o", "out", "--resume"][..],
        &[&["logical-block", "./new", "--bytes", "1M", "--largest", "8K", "-o", "lb"][..], &ring].concat(),
    ] {
        let Ok((code, err)) = few(args) else { return crate::support::skipped("prlimit is not installed") };
        assert!(code == Some(2) && err.contains("4096 IOs of up to"), "{args:?}: {code:?} {err}");
    }
    assert!(!dir.join("lb").exists() && !dir.join("new").exists());
}

#[test]
fn trims_beside_other_ios_are_refused_in_a_stored_plan() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut plan = half_done(dir);
    alone(&mut plan)["pattern"] =
        json!("1 ST(io_size=32K, target_size=8M) / 1 SR(io_size=32K, target_size=8M, target_offset=8M)");
    std::fs::write(dir.join("out/plan.json"), plan.to_string()).unwrap();
    let (_, err) = expect(dir, 2, &["run", "-o", "out", "--resume"]);
    assert!(err.contains("trims make holes in a file"), "{err}");
    assert_eq!(finished_runs(&dir.join("out")).len(), 3);
}

/// The time that is typed is that of the device's clock, whatever is kept already.
#[test]
fn a_budget_is_kept_in_virtual_time_and_a_resume_does_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let args = ["run", "sim:mtron", "-o", "out", "--method", "fixed", "--preset", "quick", "--seed", "1"];
    let more = ["--only", "granularity", "--values", "granularity=4K,32K", "--budget", "1s"];
    let (_, err) = expect(dir, 0, &[&args[..], &more].concat());
    assert!(err.contains("runs were cut short to stay within the time"), "{err}");
    let rows = std::fs::read_to_string(dir.join("out/runs.ndjson")).unwrap();
    let of = |row: &str| serde_json::from_str::<Value>(row).unwrap();
    let elapsed: u64 = rows.lines().map(|row| of(row)["outcome"]["end"]["elapsed"].as_u64().unwrap()).sum();
    // Each run may go over by an IO.
    assert!(elapsed < 1_100_000_000, "{elapsed} ns");
    let kept: String = rows.split_inclusive('\n').take(5).collect();
    std::fs::write(dir.join("out/runs.ndjson"), kept).unwrap();
    let (_, err) = expect(dir, 2, &["run", "-o", "out", "--resume", "--budget", "2s"]);
    assert!(err.contains("leave --budget away"), "{err}");
    expect(dir, 0, &["run", "-o", "out", "--resume"]);
    assert_eq!(std::fs::read_to_string(dir.join("out/runs.ndjson")).unwrap(), rows);
    let (told, _) =
        expect(dir, 0, &["plan", "sim:mtron", "--method", "fixed", "--preset", "quick", "--seed", "1"]);
    assert!(told.contains("time ") && !told.contains("quick budget"), "{told}");
}
