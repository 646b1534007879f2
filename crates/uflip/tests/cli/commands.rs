//! Each command on a small scratch file, and what bad input is told.

use crate::support::{FIXED, Loop, expect, finished_runs, skipped, text};
use std::process::Command;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in:\n{text}"))
}

#[test]
fn the_main_job_without_any_argument_but_a_small_file() {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = expect(folder.path(), 0, &["run", "--scratch-size", "32M", "--budget", "20s"]);
    for word in ["SR", "RR", "SW", "RW", "Granularity", "Bursts", "uflip-out"] {
        assert!(out.contains(word), "'{word}' is missing in:\n{out}");
    }
    assert!(err.contains("seed"), "the seed is not printed:\n{err}");
    assert!(!out.contains('\u{1b}'), "colour codes on a pipe");
    let dir = folder.path().join("uflip-out");
    for file in ["manifest.json", "plan.json", "runs.ndjson", "report.html"] {
        assert!(dir.join(file).is_file(), "{file} is missing");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["uflip-out"], "the scratch file is left behind");
    // The same again from the store.
    let (again, _) = expect(folder.path(), 0, &["show", "uflip-out"]);
    assert_eq!(again, out);
    let facts = json(&expect(folder.path(), 0, &["show", "uflip-out", "--json"]).0);
    assert!(facts.is_object());
    // The report can be made again, the same, anywhere.
    let (out, err) = expect(folder.path(), 0, &["report", "uflip-out", "-o", "again.html"]);
    assert!(out.is_empty() && err.contains("again.html"), "{out}{err}");
    let read = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("again.html"), read("uflip-out/report.html"));
    let (_, err) = expect(folder.path(), 1, &["report", "nowhere"]);
    assert!(err.contains("nowhere"), "{err}");
    // A second run takes a folder of its own.
    expect(folder.path(), 0, &["run", "--scratch-size", "16M", "--only", "order", "--budget", "5s"]);
    assert!(folder.path().join("uflip-out-2/manifest.json").is_file());
}

#[test]
fn the_manifest_tells_how_it_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "./f", "-o", "o", "--scratch-size", "16M", "--only", "order", "--seed", "42"];
    expect(folder.path(), 0, &[&args[..], &["--method", "fixed"]].concat());
    let manifest = std::fs::read_to_string(folder.path().join("o/manifest.json")).unwrap();
    let manifest = json(&manifest);
    let whole = manifest.to_string();
    for word in ["kernel", "clock_read_ns", "direct", "sync", "random", "scheduler", "governor"] {
        assert!(whole.contains(word), "'{word}' is missing in {whole}");
    }
    assert_eq!(manifest["seed"], 42);
}

#[test]
fn the_same_seed_plans_the_same_ios_and_repeats_differ() {
    let folder = tempfile::tempdir().unwrap();
    let dry = |seed: &str| {
        let args = ["pattern", "null:", "--base", "RW", "--io-count", "50", "--seed", seed, "--dry-run"];
        expect(folder.path(), 0, &args).0
    };
    assert_eq!(dry("1"), dry("1"));
    assert_ne!(dry("1"), dry("2"));
}

#[test]
fn a_dry_run_prints_the_ios_of_table_1() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "null:", "--base", "SW", "--partitions", "2", "--target-size", "256K"];
    let (out, _) = expect(folder.path(), 0, &[&args[..], &["--io-count", "5", "--dry-run"]].concat());
    let expected = "i,stream,t_rule,offset,size,mode\n\
                    0,0,consecutive,0,32768,write\n\
                    1,0,consecutive,131072,32768,write\n\
                    2,0,consecutive,32768,32768,write\n\
                    3,0,consecutive,163840,32768,write\n\
                    4,0,consecutive,65536,32768,write\n";
    assert_eq!(out, expected);
}

#[test]
fn one_pattern_gives_statistics_and_every_io() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "pattern",
        "./f",
        "--base",
        "RW",
        "--io-count",
        "300",
        "--io-ignore",
        "100",
        "--scratch-size",
        "16M",
    ];
    let (out, _) = expect(folder.path(), 0, &[&args[..], &["--records", "r.csv", "--json"]].concat());
    let facts = json(&out);
    assert_eq!(facts["stats"]["all"]["n"], 300);
    assert_eq!(facts["stats"]["running"]["n"], 200);
    let csv = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    assert_eq!(csv.lines().count(), 301);
    let (human, _) = expect(folder.path(), 0, &[&args[..], &["--records", "r.parquet"]].concat());
    assert!(human.contains("mean") && human.contains("99.9"), "{human}");
    assert_eq!(uflip_store::read_records(&folder.path().join("r.parquet")).unwrap().len(), 300);
}

#[test]
fn io_uring_and_every_buffering_run_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    for extra in [
        &["--engine", "io_uring", "--queue-depth", "8"][..],
        &["--buffering", "dsync"],
        &["--buffering", "buffered", "--data", "zeros"],
        &["--parallel", "4"],
        &["--mix", "SR", "--ratio", "4"],
        &["--data", "age", "--no-repeat"],
    ] {
        let args = ["pattern", "./f", "--base", "RW", "--io-count", "64", "--scratch-size", "16M", "--json"];
        let (out, _) = expect(folder.path(), 0, &[&args[..], extra].concat());
        let n = json(&out)["stats"]["all"]["n"].as_u64().unwrap();
        assert_eq!(n, if extra[0] == "--parallel" { 256 } else { 64 }, "{extra:?}");
    }
}

#[test]
fn a_plan_says_what_would_happen_and_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = expect(folder.path(), 0, &["plan"]);
    for word in ["runs", "written", "about"] {
        assert!(out.contains(word), "'{word}' is missing in:\n{out}");
    }
    let plan = json(&expect(folder.path(), 0, &["plan", "--json", "--preset", "standard"]).0);
    assert!(plan["steps"].as_array().unwrap().len() > 500);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn exports_are_read_by_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "./f", "-o", "o", "--scratch-size", "16M", "--only", "mix,order"];
    expect(folder.path(), 0, &[&args[..], &FIXED].concat());
    let runs = finished_runs(&folder.path().join("o"));
    let (csv, _) = expect(folder.path(), 0, &["export", "o"]);
    assert_eq!(csv.lines().count(), runs.len() + 1);
    let (rows, _) = expect(folder.path(), 0, &["export", "o", "--format", "json"]);
    assert_eq!(json(&rows).as_array().map(Vec::len), Some(runs.len()));
    expect(folder.path(), 0, &["export", "o", "--what", "records", "-o", "all.parquet"]);
    let ios: u64 = runs.iter().map(|r| r.1).sum();
    assert_eq!(uflip_store::read_records(&folder.path().join("all.parquet")).unwrap().len() as u64, ios);
    let script = "import duckdb; print(duckdb.sql(\"select count(*), sum(response_ns) > 0, count(distinct run) \
                  from 'o/ios/*.parquet'\").fetchall()[0])";
    match Command::new("python3").args(["-c", script]).current_dir(folder.path()).output() {
        Ok(o) if o.status.success() => {
            assert_eq!(text(&o.stdout).trim(), format!("({ios}, True, {})", runs.len()));
        }
        other => skipped(&format!("python3 with duckdb: {other:?}")),
    }
}

#[test]
fn a_block_device_needs_its_name_and_says_what_to_type() {
    let Some(device) = Loop::new(32 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, err) = expect(folder.path(), 1, &["run", device.name(), "-o", "o"]);
    assert!(err.contains(&format!("--erase-device {}", device.name())), "{err}");
    assert!(!folder.path().join("o").exists(), "a refused target leaves no folder");
    // Reading never needs it.
    expect(folder.path(), 0, &["pattern", device.name(), "--base", "RR", "--io-count", "16"]);
    let args = ["run", device.name(), "-o", "o", "--only", "order", "--erase-device", device.name()];
    let (_, err) = expect(folder.path(), 0, &[&args[..], &FIXED].concat());
    assert!(err.contains("will be written"), "the range is not announced:\n{err}");
    let listing = expect(folder.path(), 0, &["devices"]).0;
    assert!(listing.contains(device.name()), "{listing}");
    assert!(json(&expect(folder.path(), 0, &["devices", "--json"]).0).is_object());
}

#[test]
fn a_foreign_file_is_never_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.doc"), b"years of work".repeat(100_000)).unwrap();
    let (_, err) = expect(folder.path(), 1, &["pattern", "./thesis.doc", "--base", "RW"]);
    assert!(err.contains("thesis.doc"), "{err}");
    let (_, err) =
        expect(folder.path(), 1, &["run", "./thesis.doc", "-o", "o", "--erase-device", "thesis.doc"]);
    assert!(err.contains("thesis.doc"), "{err}");
    assert_eq!(std::fs::read(folder.path().join("thesis.doc")).unwrap(), b"years of work".repeat(100_000));
}

#[test]
fn usage_errors_exit_with_2_and_say_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    for (args, word) in [
        (&["run", "--only", "speed"][..], "granularity"),
        (&["run", "--io-size", "32X"], "32K"),
        (&["run", "--values", "granularity"], "granularity="),
        (&["run", "--resume"], "--output"),
        (&["pattern", "null:", "--base", "XX"], "SR"),
        (&["pattern", "null:", "--base", "SR", "--queue-depth", "4"], "io_uring"),
        (&["pattern", "null:", "--base", "SR", "--target-size", "2T"], "2T"),
        (&["pattern", "null:", "--pattern", "3 SR / 2 RW"], "1"),
        (&["pattern", "null:", "--base", "SR", "--io-size", "100"], "512"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let (_, err) = expect(folder.path(), 2, args);
        assert!(err.contains(word), "uflip {args:?} does not mention '{word}':\n{err}");
    }
    let (_, err) = expect(folder.path(), 1, &["show", "nowhere"]);
    assert!(err.contains("nowhere"), "{err}");
}

#[test]
fn a_results_folder_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "./f", "-o", "o", "--scratch-size", "16M", "--only", "order"];
    expect(folder.path(), 0, &[&args[..], &FIXED].concat());
    let before = std::fs::read(folder.path().join("o/runs.ndjson")).unwrap();
    let (_, err) = expect(folder.path(), 1, &["run", "./f", "-o", "o", "--only", "order"]);
    assert!(err.contains("--resume"), "{err}");
    std::fs::create_dir(folder.path().join("photos")).unwrap();
    std::fs::write(folder.path().join("photos/cat.png"), "meow").unwrap();
    expect(folder.path(), 1, &["run", "./f", "-o", "photos", "--only", "order"]);
    assert_eq!(std::fs::read(folder.path().join("o/runs.ndjson")).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path().join("photos")).unwrap().count(), 1);
}

#[test]
fn completions_and_the_manual_come_from_the_arguments() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        assert!(expect(folder.path(), 0, &["completions", shell]).0.contains("erase-device"), "{shell}");
    }
    let man = expect(folder.path(), 0, &["man"]).0;
    assert!(man.starts_with(".ie") || man.contains(".TH uflip"), "{man}");
    assert!(man.contains("erase\\-device"), "options of the commands are missing");
}

#[test]
fn the_null_device_streams_more_ios_than_the_reserve_holds() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "null:", "--base", "RR", "--io-size", "4K", "--io-count", "3000000"];
    let (out, _) = expect(folder.path(), 0, &[&args[..], &["--records", "r.parquet", "--json"]].concat());
    let facts = json(&out);
    assert_eq!(facts["stats"]["all"]["n"], 3_000_000);
    let bytes = std::fs::metadata(folder.path().join("r.parquet")).unwrap().len();
    assert!(bytes < 8 * 3_000_000, "{bytes} bytes for 3 million IOs");
}
