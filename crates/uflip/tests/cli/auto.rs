//! The automatic method on simulated devices whose truth is known, and on files.

use crate::support::{Loop, expect, finished_runs, signal, text, uflip, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use uflip_device::rng::Rng;

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs a benchmark of one cheap micro-benchmark and gives its calibration.
fn calibrate(device: &str, extra: &[&str]) -> (tempfile::TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["run", device, "-o", "o", "--seed", "3", "--only", "granularity", "--values", "granularity=32K"];
    expect(folder.path(), 0, &[&args[..], extra].concat());
    let found = read(&folder.path().join("o/calibration.json"));
    (folder, found)
}

fn planned_runs(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["steps"].as_array().unwrap().iter().filter(|s| s["step"] == "run")
}

/// IOs of one stream of all planned runs.
fn planned_ios(plan: &Value) -> u64 {
    planned_runs(plan).map(|r| r["io_count"].as_u64().unwrap()).sum()
}

/// Paper 001, section 5.1 and figures 3 and 5.
#[test]
fn the_mtrons_start_up_and_the_lasting_effect_are_found() {
    let (folder, found) = calibrate("sim:mtron", &[]);
    let rw = &found["baselines"]["RW"];
    let start_up = rw["start_up"]["ios"].as_u64().expect("a start-up");
    assert!((100..=160).contains(&start_up), "{rw}");
    assert!(rw["io_ignore"].as_u64().unwrap() >= start_up, "{rw}");
    assert!(rw["period"]["ios"].as_f64().is_some_and(|p| p < 100.0), "{rw}");
    for baseline in ["SR", "RR"] {
        assert_eq!(found["baselines"][baseline]["start_up"], Value::Null, "{baseline}");
    }
    let test = &found["pause"]["tests"][0];
    assert_eq!(test["batch"], "RW");
    let seconds = test["found"]["affected_ns"].as_u64().expect("an effect lasts") as f64 / 1e9;
    assert!((1.0..4.0).contains(&seconds), "{test}");
    let pause = found["pause"]["between_runs"].as_u64().unwrap() as f64 / 1e9;
    assert!((2.0..8.0).contains(&pause) && pause >= 2.0 * seconds * 0.99, "{pause}");
    assert_eq!(found["state"]["steady"]["steady"], true);
    assert_eq!(found["drift"]["drift"]["drifted"], false, "{}", found["drift"]);
    // The plan's runs have what was found.
    let plan = read(&folder.path().join("o/plan.json"));
    let run = planned_runs(&plan).find(|r| r["baseline"] == "RW" && r["purpose"] == "baseline").unwrap();
    assert_eq!((&run["io_ignore"], &run["io_count"]), (&rw["io_ignore"], &found["limits"]["baseline_ios"]));
    let of_curve = |r: &&Value| r["baseline"] == "RW" && r["purpose"] == "micro_benchmark";
    let run = planned_runs(&plan).find(of_curve).unwrap();
    assert_eq!((&run["io_ignore"], &run["io_count"]), (&rw["io_ignore"], &rw["io_count"]));
    let ids: Vec<u64> = planned_runs(&plan).map(|r| r["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>(), "runs are numbered through");
    let kept = finished_runs(&folder.path().join("o"));
    assert_eq!(kept.len(), ids.len());
}

#[test]
fn the_memorights_start_up_is_found() {
    let (_, found) = calibrate("sim:memoright", &[]);
    let rw = &found["baselines"]["RW"];
    let start_up = rw["start_up"]["ios"].as_u64().expect("a start-up");
    assert!((20..=45).contains(&start_up), "{rw}");
}

#[test]
fn the_kingston_dti_has_no_start_up_and_no_lasting_effect() {
    let (_, found) = calibrate("sim:kingston-dti", &[]);
    for baseline in ["SR", "RR", "RW", "SW"] {
        assert_eq!(found["baselines"][baseline]["start_up"], Value::Null, "{baseline}");
    }
    assert!(found["baselines"]["SW"]["period"]["ios"].as_f64().is_some(), "SW oscillates");
    let tests = found["pause"]["tests"].as_array().unwrap();
    assert!(!tests.is_empty() && tests.iter().all(|t| t["found"].is_null()), "{tests:?}");
    assert_eq!(found["pause"]["between_runs"], 1_000_000_000u64);
}

/// The paper's lengths are fixed; found ones need fewer IOs in all.
#[test]
fn found_lengths_need_fewer_ios_than_the_papers() {
    let folder = tempfile::tempdir().unwrap();
    let fixed: Value = serde_json::from_str(
        &expect(folder.path(), 0, &["plan", "sim:mtron", "--json", "--method", "fixed"]).0,
    )
    .unwrap();
    expect(folder.path(), 0, &["run", "sim:mtron", "-o", "o", "--seed", "1"]);
    let auto = read(&folder.path().join("o/plan.json"));
    assert!(planned_ios(&auto) < planned_ios(&fixed), "{} {}", planned_ios(&auto), planned_ios(&fixed));
}

#[test]
fn fixed_lengths_are_those_of_the_plan_command() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--seed", "5", "--only", "order", "--preset", "quick", "--method", "fixed"];
    let (planned, _) = expect(folder.path(), 0, &[&["plan", "sim:mtron", "--json"][..], &args].concat());
    let run = ["run", "sim:mtron", "-o", "o"];
    expect(folder.path(), 0, &[&run[..], &args].concat());
    let mut planned: Value = serde_json::from_str(&planned).unwrap();
    // What plan says besides the plan.
    for said in ["run_would_refuse", "not_known_yet"] {
        planned.as_object_mut().unwrap().remove(said).expect("it is said");
    }
    let mut stored = read(&folder.path().join("o/plan.json"));
    let check = stored.as_object_mut().and_then(|plan| plan.remove("check"));
    assert!(check.is_some_and(|check| check.as_str().is_some_and(|c| c.starts_with("crc32:"))));
    assert!(stored.as_object_mut().and_then(|plan| plan.remove("folder")).is_some(), "it says whose it is");
    assert_eq!(planned, stored);
    assert!(!folder.path().join("o/calibration.json").exists());
}

/// A budget drops values evenly, says which, and the plan fits.
#[test]
fn a_budget_drops_values_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["run", "sim:mtron", "-o", "o", "--seed", "3", "--only", "granularity,pause", "--repeats", "2"];
    expect(folder.path(), 0, &[&args[..], &["--budget", "8m"]].concat());
    let found = read(&folder.path().join("o/calibration.json"));
    let dropped = found["plan"]["dropped"].as_array().unwrap();
    assert!(!dropped.is_empty(), "{}", found["plan"]);
    assert!(dropped.iter().any(|d| d["micro_benchmark"] == "granularity"));
    let estimate = found["plan"]["estimate"].as_u64().unwrap();
    assert!(estimate < 8 * 60 * 1_000_000_000, "{}", found["plan"]);
    let plan = read(&folder.path().join("o/plan.json"));
    let granularity = |r: &&Value| r["point"]["micro_benchmark"] == "granularity";
    let labels: Vec<&str> =
        planned_runs(&plan).filter(granularity).map(|r| r["point"]["label"].as_str().unwrap()).collect();
    assert!(labels.contains(&"512B") || labels.contains(&"0.5K") || labels.contains(&"512"), "{labels:?}");
}

/// Reads only means reads only, calibration included.
#[test]
fn without_write_baselines_nothing_is_written() {
    let (folder, found) = calibrate("sim:mtron", &["--baselines", "SR,RR", "--state", "none"]);
    let plan = read(&folder.path().join("o/plan.json"));
    for run in planned_runs(&plan) {
        let pattern = run["pattern"].as_str().unwrap();
        assert!(!pattern.contains("SW") && !pattern.contains("RW"), "{pattern}");
    }
    assert_eq!(found["state"]["runs"].as_array().map(Vec::len), Some(0));
    assert_eq!(found["drift"], Value::Null);
}

/// A killed benchmark on a simulated device ends as one that was not.
#[test]
fn killed_in_any_phase_it_ends_with_the_same_plan_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let start = |out: &str| {
        let mut command = uflip();
        command.current_dir(folder.path()).args(["run", "sim:mtron", "-o", out]);
        if folder.path().join(out).join("manifest.json").exists() {
            command.arg("--resume");
        } else {
            command.args(["--seed", "9", "--only", "order", "--repeats", "1"]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let began = Instant::now();
    assert!(start("whole").output().unwrap().status.success());
    let took = began.elapsed().as_micros() as u64;
    let written = |out: &str| -> u64 {
        let files = std::fs::read_dir(folder.path().join(out)).into_iter().flatten().flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .filter(|meta| meta.is_file())
            .map(|meta| meta.len())
            .sum()
    };
    // Each kill waits for the folder to have grown to its share of the whole
    // one, and then a moment longer: how fast the machine is does not matter.
    let whole = written("whole");
    let mut rng = Rng::new(11);
    let mut met = 0;
    for kill in 0..8 {
        let mut child = start("killed").spawn().unwrap();
        while written("killed") < whole * kill / 8 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(rng.below(took / 16)));
        signal(child.id(), "KILL");
        met += u32::from(!child.wait().unwrap().success());
    }
    assert!(met >= 4, "only {met} kills met a running benchmark");
    let output = start("killed").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = |out: &str, name: &str| std::fs::read_to_string(folder.path().join(out).join(name)).unwrap();
    // But for whose they are, and with it the checksum.
    let found = |dir: &str, name: &str| {
        let mut value: Value = serde_json::from_str(&file(dir, name)).unwrap();
        let fields = value.as_object_mut().unwrap();
        assert!(fields.remove("folder").is_some() && fields.remove("check").is_some());
        value
    };
    for name in ["plan.json", "calibration.json"] {
        assert_eq!(found("whole", name), found("killed", name), "{name}");
    }
    let runs = |out: &str| finished_runs(&folder.path().join(out));
    assert_eq!(runs("whole"), runs("killed"));
    // Each folder has its own identity, and rows say it.
    let rows = |dir| -> Vec<Value> {
        let of = |line: &str| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            ["folder", "check"].iter().for_each(|field| drop(row.as_object_mut().unwrap().remove(*field)));
            row
        };
        file(dir, "runs.ndjson").lines().map(of).collect()
    };
    assert!(rows("whole") == rows("killed"), "virtual runs come out the same");
}

/// A plan is a file that can be read, edited and run.
#[test]
fn an_edited_plan_is_executed_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["plan", "sim:mtron", "--json", "--preset", "quick", "--only", "order", "--seed", "4"];
    let (text, _) = expect(folder.path(), 0, &args);
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    let steps = plan["steps"].as_array_mut().unwrap();
    steps.retain(|step| step["step"] == "run");
    steps.truncate(3);
    steps[1]["io_count"] = 77.into();
    let ids: Vec<u64> = steps.iter().map(|s| s["id"].as_u64().unwrap()).collect();
    std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
    expect(folder.path(), 0, &["run", "sim:mtron", "--plan", "plan.json", "-o", "o"]);
    let rows = std::fs::read_to_string(folder.path().join("o/runs.ndjson")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done: Vec<u64> = rows.iter().map(|r| r["id"].as_u64().unwrap()).collect();
    assert_eq!(done, ids);
    assert_eq!(rows[1]["stats"]["all"]["n"], 77);
    // A plan for another target is refused before anything is made.
    plan["steps"][0]["pattern"] = "SW(io_size=32K, target_offset=1T, target_size=1M)".into();
    std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
    let (_, err) = expect(folder.path(), 2, &["run", "sim:mtron", "--plan", "plan.json", "-o", "p"]);
    assert!(err.contains("run ") && !folder.path().join("p").exists(), "{err}");
    expect(folder.path(), 2, &["run", "sim:mtron", "--plan", "plan.json", "--seed", "1"]);
}

/// `uflip calibrate` and then `uflip run --resume` are `uflip run`.
#[test]
fn calibrate_stops_at_the_plan_and_resume_goes_on_by_it() {
    let only = ["--seed", "3", "--only", "granularity", "--values", "granularity=32K"];
    let folder = tempfile::tempdir().unwrap();
    let (said, _) = expect(folder.path(), 0, &[&["calibrate", "sim:mtron", "-o", "o"], &only[..]].concat());
    for word in ["state complete: steady", "pause between runs", "RW: mean", "plan: "] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let out = folder.path().join("o");
    let (plan, done) = (read(&out.join("plan.json")), finished_runs(&out));
    let calibration = planned_runs(&plan).filter(|r| r["purpose"] == "calibration").count();
    assert_eq!(done.len(), calibration);
    assert!(planned_runs(&plan).count() > calibration, "the plan itself is there to be read and edited");
    assert!(!out.join("profile.json").exists());
    expect(folder.path(), 0, &["run", "-o", "o", "--resume"]);
    expect(folder.path(), 0, &[&["run", "sim:mtron", "-o", "whole"], &only[..]].concat());
    let figures = |name: &str| read(&folder.path().join(name).join("profile.json"))["baseline_ms"].clone();
    assert_eq!(figures("o"), figures("whole"));
    let (_, refused) = expect(folder.path(), 2, &["calibrate", "sim:mtron", "--method", "fixed", "-o", "x"]);
    assert!(refused.contains("leave --method fixed"), "{refused}");
    assert!(!folder.path().join("x").exists());
}

/// Trims have lasting effects, too: where the state begins with them, the pause test has them,
/// and what they took away is written again.
#[test]
fn the_trimmed_state_and_what_trims_leave_behind() {
    let (folder, found) = calibrate("sim:mtron", &["--state", "trim", "--baselines", "SR,RW"]);
    let tests = found["pause"]["tests"].as_array().unwrap();
    let batches: Vec<&str> = tests.iter().map(|t| t["batch"].as_str().unwrap()).collect();
    assert_eq!(batches, ["RW", "RT"]);
    assert_eq!(found["state"]["enforced"], "trim");
    let plan = read(&folder.path().join("o/plan.json"));
    assert_eq!(plan["steps"][0]["state"], "trim");
    let pattern = |id: u64| {
        let run = planned_runs(&plan).find(|r| r["id"].as_u64() == Some(id)).unwrap();
        (run["pattern"].as_str().unwrap().to_string(), run["io_count"].as_u64())
    };
    let batch = tests[1]["run_batch"].as_u64().unwrap();
    let last_read = tests[1]["runs_after"].as_array().unwrap().last().unwrap().as_u64().unwrap();
    let (trims, count) = pattern(batch);
    assert!(trims.starts_with("RT(") && trims.contains("repeat=no"), "{trims}");
    assert_eq!(pattern(last_read + 1), (trims.replace("RT(", "RW("), count));
}

#[test]
fn what_cannot_be_trimmed_is_not() {
    let folder = tempfile::tempdir().unwrap();
    for target in ["./file.bin", "sim:ibm-deskstar-hdd-60G"] {
        let (_, err) = expect(folder.path(), 2, &["run", target, "--state", "trim", "-o", "o"]);
        assert!(err.contains("type --state random"), "{err}");
    }
    let (_, err) = expect(folder.path(), 2, &["run", "sim:mtron", "--state", "sequential:3T", "-o", "o"]);
    assert!(err.contains("sequential:64K"), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}

/// A state of 192 MiB in writes of 4 KiB is cut off by `sent` once some are done; the
/// resume goes on with the IO after the last one that is known to be done.
fn half_enforced_and_gone_on_with(sent: &str, code: Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["run", "./disk.bin", "--scratch-size", "192M", "--state", "sequential:4K", "-o", "o", "--seed"];
    let more = ["5", "--only", "granularity", "--values", "granularity=32K", "--budget", "20s"];
    let child = uflip()
        .current_dir(folder.path())
        .args([&args[..], &more].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let told = folder.path().join("o/state.json");
    let ios = || serde_json::from_slice::<Value>(&std::fs::read(&told).ok()?).ok()?["ios"].as_u64();
    wait_until("IOs of the state are done", || ios().is_some_and(|ios| ios > 0));
    signal(child.id(), sent);
    let out = child.wait_with_output().unwrap();
    let half = read(&folder.path().join("o/state.json"));
    if half["done"] == true {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: this disk is too fast, the state was reached before the signal\n",
        );
        return;
    }
    assert_eq!(out.status.code(), code, "{}", text(&out.stderr));
    let ios = half["ios"].as_u64().unwrap();
    assert!(ios > 0 && ios < 49_152, "{half}");
    let (_, err) = expect(folder.path(), 0, &["run", "-o", "o", "--resume"]);
    assert!(err.contains(&format!("going on after {ios} IOs")), "{err}");
    let whole = read(&folder.path().join("o/state.json"));
    assert_eq!((&whole["done"], &whole["resumed_at_ios"]), (&true.into(), &serde_json::json!([ios])));
    assert_eq!(whole["written_bytes"], 192 << 20);
}

#[test]
fn a_half_enforced_state_is_gone_on_with_after_ctrl_c() {
    half_enforced_and_gone_on_with("INT", Some(1));
}

#[test]
fn a_half_enforced_state_is_gone_on_with_after_kill_9() {
    half_enforced_and_gone_on_with("KILL", None);
}

/// The demonstration on a real file: whatever the disk does, it is told.
#[test]
fn the_demonstration_goes_on_a_real_file() {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) =
        expect(folder.path(), 0, &["demo", "./disk.bin", "--scratch-size", "64M", "--json", "--seed", "2"]);
    assert!(err.contains("will be written"), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    let experiments = told["experiments"].as_array().unwrap();
    let parameters: Vec<&str> = experiments.iter().map(|e| e["parameter"].as_str().unwrap()).collect();
    assert_eq!(parameters, ["IOIgnore", "IOCount", "Pause"]);
    for (experiment, results) in experiments.iter().zip([5, 8, 8]) {
        for when in ["bad", "good"] {
            let ms = experiment[when]["ms"].as_array().unwrap();
            assert_eq!(ms.len(), results, "{experiment}");
            assert!(ms.iter().all(|ms| ms.as_f64().is_some_and(|ms| ms > 0.0)), "{experiment}");
        }
    }
    let found = &told["calibration"];
    assert!(found["baselines"]["RW"]["io_count"].as_u64() > found["baselines"]["RW"]["io_ignore"].as_u64());
    assert!(found["plan"].is_null(), "no plan is made for it");
}

/// Trims on a real block device: the state, the pause test, and what a device or
/// an engine has not.
#[test]
fn a_loop_device_is_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(device) = Loop::new(64 << 20) else { return };
    let path = device.name();
    let consent = ["--erase-device", path];
    let go = |code: i32, args: &[&str]| expect(folder.path(), code, &[args, &consent[..]].concat());
    let trims = ["pattern", path, "--pattern", "ST(io_size=16M)", "--io-count", "4"];
    let (_, err) = go(0, &trims);
    assert!(err.contains("will be trimmed between 0B and 64M"), "{err}");
    // As far as the kernel has it for io_uring.
    let ring = [&trims[..], &["--engine", "io_uring"], &consent].concat();
    let ring = uflip().current_dir(folder.path()).args(ring).output().unwrap();
    let err = text(&ring.stderr);
    assert!(ring.status.success() || err.contains("--engine sync"), "{err}");
    let (_, err) = go(1, &[&trims[..], &["--discard", "secure"]].concat());
    assert!(err.contains("--discard plain"), "{err}");
    let args = ["run", path, "--state", "trim", "-o", "o", "--seed", "4", "--only", "granularity"];
    go(0, &[&args[..], &["--values", "granularity=32K"]].concat());
    let found = read(&folder.path().join("o/calibration.json"));
    let tests = found["pause"]["tests"].as_array().unwrap();
    assert!(tests.iter().any(|test| test["batch"] == "RT"), "{tests:?}");
    let state = read(&folder.path().join("o/state.json"));
    assert_eq!(
        (&state["state"], &state["done"], &state["written_bytes"]),
        (&"trim".into(), &true.into(), &(64 << 20).into())
    );
}
