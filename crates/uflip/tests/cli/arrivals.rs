//! Open loops as a user meets them, and modes with statistics of their own.

use crate::support::{Loop, expect, text, uflip};
use serde_json::Value;
use std::path::Path;

fn json(out: &str) -> Value {
    serde_json::from_str(out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// One column of a CSV, empty fields left out.
fn column(csv: &str, name: &str) -> Vec<u64> {
    let mut lines = csv.lines();
    let at = lines.next().and_then(|line| line.split(',').position(|c| c == name));
    let at = at.unwrap_or_else(|| panic!("no column {name}"));
    lines.filter_map(|line| line.split(',').nth(at)?.parse().ok()).collect()
}

/// A dry run's instants, in order.
fn planned(dir: &Path, args: &[&str]) -> Vec<u64> {
    let mut due = column(&expect(dir, 0, &[args, &["--dry-run"]].concat()).0, "due_ns");
    due.sort_unstable();
    due
}

/// The instants that records tell: submission less lateness.
fn recorded(csv: &str) -> Vec<u64> {
    let (submit, late) = (column(csv, "submit_ns"), column(csv, "late_ns"));
    assert_eq!(submit.len(), late.len(), "every IO of an open loop says how late it was");
    let mut due: Vec<u64> = submit.iter().zip(late).map(|(submit, late)| submit - late).collect();
    due.sort_unstable();
    due
}

#[test]
fn an_open_loop_keeps_the_instants_of_its_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let slow = ["--io-count", "120", "--seed", "3"];
    for (target, engine, rate) in [
        ("sim:mtron", &[][..], "900"),
        ("null:", &[], "20000"),
        ("./file", &["--engine", "sync", "--buffering", "buffered"], "500"),
        // More than any disk does: late, and all of them there.
        ("./file", &["--engine", "sync", "--buffering", "buffered"], "1000000"),
    ] {
        for gaps in ["fixed", "poisson"] {
            // A new file each time: that is what --scratch-size is for.
            let named = format!("./file-{rate}-{gaps}");
            let file = target == "./file";
            let made = if file { &["--scratch-size", "8M"][..] } else { &[] };
            let args = ["pattern", if file { &named } else { target }, "--base", "RW", "--target-size", "4M"];
            let rates = ["--parallel", "2", "--rate", rate, "--arrivals", gaps];
            let args = [&args[..], &rates, made, &slow, engine].concat();
            let plan = planned(dir, &args);
            let (out, _) = expect(dir, 0, &[&args[..], &["--records", "r.csv", "--json"]].concat());
            let csv = std::fs::read_to_string(dir.join("r.csv")).unwrap();
            std::fs::remove_file(dir.join("r.csv")).unwrap();
            assert_eq!(recorded(&csv), plan, "{target} at {rate}, {gaps}");
            let stats = json(&out)["stats"].clone();
            let responses = column(&csv, "response_ns");
            let mean = responses.iter().sum::<u64>() as f64 / responses.len() as f64;
            assert!((stats["all"]["mean_ns"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
            assert_eq!(stats["late"]["n"], 240);
            let longest = column(&csv, "late_ns").into_iter().max();
            assert_eq!(stats["late"]["max_ns"].as_u64(), longest, "{target}");
        }
    }
    let fixed: Vec<u64> = (0..10).map(|i| i * 500_000).collect();
    let args = ["pattern", "sim:mtron", "--base", "RW", "--rate", "2000/s", "--io-count", "10"];
    assert_eq!(planned(dir, &args), fixed);
}

#[test]
fn a_rate_does_not_go_with_what_it_contradicts() {
    let folder = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["--base", "RW", "--rate", "10", "--pause", "1ms"][..], "--pause"),
        (&["--pattern", "SR", "--rate", "10"], "--pattern"),
        (&["--base", "RW", "--arrivals", "poisson"], "--rate"),
        (&["--base", "RW", "--rate", "fast"], "such as 2000/s"),
        (&["--base", "RW", "--rate", "0.001", "--io-count", "1000000000"], "52 days"),
        (&["--pattern", "1 SR(rate=10/s) / 1 RW"], "type the same rate="),
    ] {
        let (_, err) = expect(folder.path(), 2, &[&["pattern", "sim:mtron"], args].concat());
        assert!(err.contains(said), "{args:?}: {err}");
    }
}

/// No figure is made of response times that were cut off.
#[test]
fn an_open_loop_ends_where_its_response_times_can_no_longer_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "sim:mtron", "--seed", "1", "--records", "r.csv", "--pattern"];
    let overloaded = [&args[..], &["RW(rate=10000/s)", "--io-count", "150000"]].concat();
    let (out, err) = expect(folder.path(), 1, &overloaded);
    assert!(
        err.contains("longer than the 18 minutes") && err.contains("type a lower one or fewer IOs"),
        "{err}"
    );
    assert!(!out.contains("mean") && !folder.path().join("r.csv").exists(), "{out}");
    let (_, err) = expect(folder.path(), 2, &[&args[..], &["4 deep RR(pause=1ms)"]].concat());
    assert!(err.contains("type 1 deep, or 4 x"), "{err}");
}

#[test]
fn a_closed_loop_says_nothing_of_lateness() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "sim:mtron", "--base", "RW", "--io-count", "20", "--seed", "1"];
    let (out, _) = expect(folder.path(), 0, &[&args[..], &["--records", "r.csv", "--json"]].concat());
    assert!(json(&out)["stats"].get("late").is_none() && json(&out)["stats"].get("by_mode").is_none());
    let csv = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    assert!(csv.starts_with("run,stream,pattern,submit_ns,response_ns,offset,size,mode\n"), "{csv}");
    let (dry, _) = expect(folder.path(), 0, &[&args[..], &["--dry-run"]].concat());
    assert!(dry.starts_with("i,stream,t_rule,offset,size,mode\n"), "{dry}");
}

#[test]
fn flushes_are_told_apart_from_the_writes_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "sim:mtron", "--pattern", "RW(sync=4, target_size=64M)", "--io-count", "100"];
    let args = [&args[..], &["--seed", "2", "--records", "r.csv", "--json"]].concat();
    let stats = json(&expect(folder.path(), 0, &args).0)["stats"].clone();
    let csv = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    let mean = |mode: &str| {
        let of: Vec<u64> = csv
            .lines()
            .filter(|l| l.ends_with(mode))
            .map(|l| l.split(',').nth(4).unwrap().parse().unwrap())
            .collect();
        (of.len() as u64, of.iter().sum::<u64>() as f64 / of.len() as f64)
    };
    let (writes, flushes) = (mean("write"), mean("flush"));
    assert_eq!((writes.0, flushes.0), (80, 20));
    assert_ne!(writes.1, flushes.1);
    for place in ["running", "all"] {
        assert_eq!(stats[place]["n"], 80, "{place}");
        assert!((stats[place]["mean_ns"].as_f64().unwrap() / writes.1 - 1.0).abs() < 1e-9, "{place}");
    }
    let by_mode = stats["by_mode"].as_array().unwrap();
    assert_eq!((&by_mode[0]["mode"], &by_mode[1]["mode"]), (&"write".into(), &"flush".into()));
    assert!((by_mode[1]["mean_ns"].as_f64().unwrap() / flushes.1 - 1.0).abs() < 1e-9);
    let text = &args[..args.len() - 1];
    std::fs::remove_file(folder.path().join("r.csv")).unwrap();
    let (out, _) = expect(folder.path(), 0, text);
    assert!(
        out.contains("mode write") && out.contains("mode flush") && out.contains("reads, writes"),
        "{out}"
    );
}

/// On a block device trims are done and told apart, or refused with the reason.
#[test]
fn trims_on_a_block_device_are_a_mode_of_their_own() {
    let Some(device) = Loop::new(32 << 20) else { return };
    for engine in ["sync", "io_uring"] {
        let output = uflip()
            .args([
                "pattern",
                device.name(),
                "--pattern",
                "1 SR(io_size=64K) / 1 ST(io_size=64K)",
                "--seed",
                "1",
            ])
            .args(["--io-count", "64", "--engine", engine, "--buffering", "buffered", "--json"])
            .args(["--erase-device", device.name()])
            .output()
            .expect("the binary starts");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        if output.status.code() == Some(1) && engine == "io_uring" {
            assert!(err.contains("discard") && err.contains("type --engine sync"), "{err}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{engine}: {err}");
        let stats = json(&out)["stats"].clone();
        let by_mode = stats["by_mode"].as_array().unwrap();
        let told: Vec<_> =
            by_mode.iter().map(|m| (m["mode"].as_str().unwrap(), m["ios"].as_u64().unwrap())).collect();
        assert_eq!(told, [("read", 32), ("trim", 32)], "{engine}");
        assert_eq!(stats["running"]["mean_ns"], by_mode[0]["mean_ns"], "{engine}: trims are no reads");
    }
}

#[test]
fn a_kept_run_of_an_open_loop_is_read_checked_and_exported_with_its_lateness() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let args = [
        "plan",
        "sim:mtron",
        "--only",
        "pause",
        "--baselines",
        "RW",
        "--method",
        "fixed",
        "--preset",
        "quick",
    ];
    let mut plan = json(&expect(dir, 0, &[&args[..], &["--seed", "1", "--json"]].concat()).0);
    let steps = plan["steps"].as_array_mut().unwrap();
    let mut run = steps.iter().find(|step| step["step"] == "run").unwrap().clone();
    run["pattern"] = "RW(io_size=32K, target_size=64M, poisson=400/s)".into();
    (run["io_count"], run["io_ignore"]) = (300.into(), 50.into());
    let closed = {
        let mut closed = run.clone();
        closed["pattern"] = "RW(io_size=32K, target_size=64M)".into();
        closed["id"] = 1.into();
        closed
    };
    run["id"] = 0.into();
    plan["steps"] = vec![run, closed].into();
    std::fs::write(dir.join("plan.json"), plan.to_string()).unwrap();
    expect(dir, 0, &["run", "sim:mtron", "-o", "out", "--plan", "plan.json"]);
    let rows = std::fs::read_to_string(dir.join("out/runs.ndjson")).unwrap();
    let row = json(rows.lines().next().unwrap());
    assert_eq!(row["stats"]["late"]["n"], 250);
    assert!(rows.lines().nth(1).is_some_and(|row| !row.contains("\"late\"")));
    expect(dir, 0, &["export", "out", "--what", "records", "--format", "csv", "-o", "all.csv"]);
    let csv = std::fs::read_to_string(dir.join("all.csv")).unwrap();
    assert_eq!(csv.lines().filter(|line| line.ends_with(',')).count(), 300, "the closed loop's are empty");
    assert_eq!(column(&csv, "late_ns").len(), 300);
    expect(dir, 0, &["report", "out"]);
    let (shown, _) = expect(dir, 0, &["show", "out"]);
    assert!(!shown.contains("damage"), "{shown}");
}
