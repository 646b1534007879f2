//! `uflip job`, `uflip logical-block` and `uflip predict` on a real file and a
//! loop device, in a shortened form.

use crate::support::{Loop, expect, finished_runs};
use std::collections::{BTreeMap, BTreeSet};

const JOB: &str = "\
set  seed=7
std  sr,rr,sw,rw  bs=512,4K,64K  time=20ms reps=2  until=2.5%  before=fill(1M)
mis  rw  bs=16K  shift=0,2K  time=20ms
rec  sw  bs=32K  time=200ms window=20ms  before=fill(1M),rw(bs=same|2K,time=20ms|40ms)
many rw  bs=4K count=400
end  sw  bs=1M passes=2 rounds=2 then=mis
";

fn job_on(folder: &std::path::Path, target: &str, more: &[&str]) -> serde_json::Value {
    std::fs::write(folder.join("a.job"), JOB).unwrap();
    let mut args = vec!["job", target, "a.job", "-o", "out", "--json"];
    if !target.starts_with("/dev/") {
        args.extend(["--scratch-size", "16M"]);
    }
    args.extend(more);
    let (out, _) = expect(folder, 0, &args);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let speeds = report["speeds"].as_array().unwrap();
    for (line, baseline) in [("std", "SR"), ("std", "RR"), ("std", "SW"), ("std", "RW"), ("mis", "RW")] {
        assert!(speeds.iter().any(|s| s["line"] == line && s["baseline"] == baseline), "{line} {baseline}");
    }
    assert!(speeds.iter().all(|s| s["mb_per_s"].as_f64().unwrap() > 0.0));
    assert_eq!(report["misaligned"].as_array().unwrap().len(), 1);
    let recovery = report["recovery"].as_array().unwrap();
    assert_eq!(recovery.len(), 4, "two bursts of two lengths");
    assert!(recovery.iter().all(|r| r["windows_mb_per_s"].as_array().unwrap().len() >= 9));
    assert_eq!(report["drift"].as_array().unwrap().len(), 2, "aligned and shifted");
    report
}

/// The runs of each line of a job, by their ids, and how many rows these are.
fn ids_by_line(rows: &str) -> BTreeMap<String, (BTreeSet<u64>, usize)> {
    let mut all = BTreeMap::<String, (BTreeSet<u64>, usize)>::new();
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let of = all.entry(row["job"]["line"].as_str().unwrap().to_string()).or_default();
        of.0.insert(row["id"].as_u64().unwrap());
        of.1 += 1;
    }
    all
}

#[test]
fn every_experiment_runs_on_a_scratch_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    job_on(folder, "./scratch.bin", &[]);
    // Done is done: nothing is measured again.
    let before = finished_runs(&folder.join("out"));
    expect(folder, 0, &["job", "./scratch.bin", "-o", "out", "--resume"]);
    assert_eq!(finished_runs(&folder.join("out")), before);
    // What is cut off is measured again, and nothing else.
    let file = folder.join("out/runs.ndjson");
    let text = std::fs::read_to_string(&file).unwrap();
    let half: String = text.split_inclusive('\n').take(before.len() / 2).collect();
    std::fs::write(&file, &half).unwrap();
    expect(folder, 0, &["job", "./scratch.bin", "-o", "out", "--resume"]);
    // Self-scaling may leave out other sizes of `std` than before; all else is there again.
    let again = std::fs::read_to_string(&file).unwrap();
    assert!(again.starts_with(&half), "what was kept stays as it was");
    let (was, is) = (ids_by_line(&text), ids_by_line(&again));
    assert!(is.values().map(|(_, rows)| rows).sum::<usize>() == finished_runs(&folder.join("out")).len());
    for line in ["mis", "rec", "many", "end"] {
        assert!(was[line].0 == is[line].0 && is[line].0.len() == is[line].1, "{line}: {was:?} {is:?}");
    }
    // The models are fitted to it, and a record file is a trace.
    let args = ["predict", "out", "--trace", "out/ios/run-000001.parquet", "--json"];
    let facts: serde_json::Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
    assert!(facts["models"]["merge"]["t_merge_ns"].is_number(), "{facts}");
    assert_eq!(facts["predictions"].as_array().unwrap().len(), 5);
    assert!(facts["measured_ns"].as_f64().unwrap() > 0.0);
}

#[test]
fn every_experiment_runs_on_a_loop_device() {
    let Some(device) = Loop::new(16 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), JOB).unwrap();
    let (_, err) = expect(folder.path(), 1, &["job", device.name(), "a.job", "-o", "out"]);
    assert!(err.contains("--erase-device"), "{err}");
    job_on(folder.path(), device.name(), &["--erase-device", device.name()]);
}

#[test]
fn the_logical_block_procedure_runs_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "logical-block",
        "./s.bin",
        "--bytes",
        "1M,2M",
        "--largest",
        "64K",
        "--scratch-size",
        "4M",
        "--json",
    ];
    let facts: serde_json::Value = serde_json::from_str(&expect(folder.path(), 0, &args).0).unwrap();
    let amounts = facts["amounts"].as_array().unwrap();
    assert_eq!(amounts.len(), 2);
    assert_eq!(amounts[1]["passes"][0]["block_bytes"], 4096);
    assert!(facts.get("logical_block_bytes").is_some() && facts.get("by_whole_numbers").is_some());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), "std sr bs=4K time=1s\nmis rw bs=4Q time=1s\n").unwrap();
    let (_, err) = expect(folder.path(), 2, &["job", "./x.bin", "a.job"]);
    assert!(err.contains("a.job: line 2, column 11: expected a block size"), "{err}");
    assert!(!folder.path().join("x.bin").exists());
    std::fs::write(folder.path().join("b.job"), JOB).unwrap();
    let (out, _) = expect(folder.path(), 0, &["job", "./x.bin", "b.job", "--check"]);
    assert!(out.contains("line 2 std") && out.contains("wear"), "{out}");
    let (out, _) = expect(folder.path(), 0, &["job", "./x.bin", "b.job", "--to-fio"]);
    assert!(out.contains("rw=randwrite") && out.contains("std: until="), "{out}");
    assert!(!folder.path().join("x.bin").exists());
}

/// Sizes that self-scaling left out are not missing, and the job's own time
/// limits are no fault; a run that is really missing is.
#[test]
fn what_a_job_leaves_out_on_purpose_is_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("j.job"), "std sr,rr bs=4K..64K*2 time=50ms until=2.5%\n").unwrap();
    expect(folder.path(), 0, &["job", "sim:toshiba-transmemory-1G", "j.job", "-o", "o", "--seed", "1"]);
    let codes = |folder: &std::path::Path| -> Vec<String> {
        let (out, _) = expect(folder, 0, &["profile", "o", "--json"]);
        let profile: serde_json::Value = serde_json::from_str(&out).unwrap();
        let all = profile["soundness"].as_array().unwrap();
        all.iter().map(|f| f["code"].as_str().unwrap().to_string()).collect()
    };
    let planned =
        std::fs::read_to_string(folder.path().join("o/plan.json")).unwrap().matches("\"io_count\"").count();
    let runs = std::fs::read_to_string(folder.path().join("o/runs.ndjson")).unwrap();
    assert!(runs.lines().count() < planned, "self-scaling left something out");
    let before = codes(folder.path());
    assert!(!before.iter().any(|c| c == "incomplete" || c == "time_limit_hit"), "{before:?}");
    let less: String = runs.lines().skip(1).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join("o/runs.ndjson"), less).unwrap();
    assert!(codes(folder.path()).contains(&"incomplete".to_string()));
}
