//! A benchmark that is killed at any instant loses at most the run in
//! progress, and goes on from there.

use crate::support::{FIXED, finished_runs, read_until, signal, text, uflip, wait_until};
use std::collections::BTreeSet;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use uflip_device::rng::Rng;

const KILLS: u64 = 50;

/// The benchmark on a small scratch file, resumed where it was begun.
fn benchmark(folder: &Path) -> Command {
    let mut command = uflip();
    command.current_dir(folder).args([
        "run",
        "./scratch",
        "-o",
        "out",
        "--seed",
        "7",
        "--scratch-size",
        "16M",
    ]);
    command.args(["--only", "granularity,order,mix", "--budget", "30m"]);
    if folder.join("out/manifest.json").exists() {
        command.arg("--resume");
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Every finished run has its whole record file; no run is there twice.
#[track_caller]
fn check_whole(out: &Path) -> BTreeSet<u64> {
    let runs = finished_runs(out);
    let ids: BTreeSet<u64> = runs.iter().map(|r| r.0).collect();
    assert_eq!(ids.len(), runs.len(), "a run was stored twice");
    for (id, n) in runs {
        let file = out.join(format!("ios/run-{id:06}.parquet"));
        let records = uflip_store::read_records(&file).unwrap_or_else(|e| panic!("run {id}: {e}"));
        assert_eq!(records.len() as u64, n, "run {id} is not whole");
    }
    ids
}

#[test]
fn killed_at_fifty_moments_nothing_finished_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut rng = Rng::new(2026);
    let mut before = BTreeSet::new();
    let mut mid_run = 0;
    for kill in 0..KILLS {
        let mut child = benchmark(folder.path()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(20_000 + rng.below(120_000)));
        signal(child.id(), "KILL");
        let ended = child.wait().unwrap();
        mid_run += u32::from(!ended.success());
        let after: BTreeSet<u64> = finished_runs(&out).iter().map(|r| r.0).collect();
        assert!(before.is_subset(&after), "kill {kill} lost {:?}", before.difference(&after));
        before = after;
    }
    assert!(mid_run >= 10, "only {mid_run} of {KILLS} kills met a running benchmark");
    let output = benchmark(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let ids = check_whole(&out);
    let plan: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("plan.json")).unwrap()).unwrap();
    let planned = plan["steps"].as_array().unwrap().iter().filter(|s| s["step"] == "run").count();
    assert_eq!(ids.len(), planned, "every planned run, once");
    let leftovers: Vec<_> = std::fs::read_dir(out.join("ios"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".parquet"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn killed_before_the_folder_is_a_benchmark_the_same_command_begins_again() {
    for half in [".runs.ndjson.tmp", ".plan.json.tmp", ".manifest.json.tmp"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        std::fs::create_dir_all(out.join("ios")).unwrap();
        std::fs::write(out.join(".lock"), "").unwrap();
        std::fs::write(out.join(half), "{").unwrap();
        let args = ["run", "null:64M", "--only", "order", "--seed", "1", "-o", "out"];
        let output = uflip().current_dir(folder.path()).args(args).args(FIXED).output().unwrap();
        assert!(output.status.success(), "{half}: {}", text(&output.stderr));
        assert!(!out.join(half).exists(), "{half} is gone");
    }
}

#[test]
fn one_interrupt_finishes_the_run_and_says_how_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let child = benchmark(folder.path()).args(FIXED).spawn().unwrap();
    wait_until("three runs", || finished_runs(&out).len() >= 3);
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("--resume"), "{err}");
    check_whole(&out);
    let before = finished_runs(&out).len();
    assert!(benchmark(folder.path()).args(FIXED).output().unwrap().status.success());
    assert!(check_whole(&out).len() > before);
}

#[test]
fn two_interrupts_give_up_the_run_in_progress() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Runs of many seconds: the second interrupt must not wait for one to end.
    let mut command = uflip();
    command.current_dir(folder.path()).args(["run", "./scratch", "-o", "out", "--scratch-size", "16M"]);
    command.args(["--only", "pause", "--values", "pause=500ms", "--preset", "standard", "--baselines", "SR"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    wait_until("a run", || !finished_runs(&out).is_empty());
    let begun = std::time::Instant::now();
    signal(child.id(), "INT");
    let mut err = read_until(&mut said, "interrupt again");
    signal(child.id(), "INT");
    said.read_to_string(&mut err).unwrap();
    let code = child.wait().unwrap().code();
    assert!(begun.elapsed() < Duration::from_secs(20), "it went on for {:?}", begun.elapsed());
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("--resume"), "{err}");
    check_whole(&out);
}

#[test]
fn killed_while_the_scratch_file_is_made_it_makes_it_anew() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "./scratch", "--scratch-size", "256M", "--base", "RW", "--io-count", "8"];
    let mut child = uflip().current_dir(folder.path()).args(args).stderr(Stdio::null()).spawn().unwrap();
    let sidecar = folder.path().join("scratch.uflip");
    let begun = || std::fs::read_to_string(&sidecar).is_ok_and(|text| text.contains("\"complete\":false"));
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(child.id(), "KILL");
    assert!(!child.wait().unwrap().success(), "killed in the middle");
    assert!(begun(), "and left unfinished");
    let output = uflip().current_dir(folder.path()).args(args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
