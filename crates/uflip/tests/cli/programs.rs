//! Programs as measurements: what `uflip copy -o` keeps of each device, what the other
//! commands make of such a folder, and what is refused.

use crate::support::{expect, run_in, signal, text, uflip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use uflip_device::{Bytes, IoRecord, Mode};
use uflip_measure::run::{Belongs, Work};
use uflip_store::{Store, StoreContents, read_records};

const MIB: u64 = 1 << 20;

fn json(folder: &Path, args: &[&str]) -> Value {
    let (out, _) = expect(folder, 0, &[args, &["--json"]].concat());
    serde_json::from_str(&out).expect("it prints JSON")
}

/// A small simulated device.
fn describe(folder: &Path, name: &str) {
    let text = format!(
        "name = \"{name}\"\ncapacity_mib = 16\n\
         [link]\nqueue_depth = 32\nread_latency_us = 1\nwrite_latency_us = 1\nread_mb_s = 6000\nwrite_mb_s = 6000\n\
         [geometry]\nchannels = 4\nchips_per_channel = 1\npages_per_block = 64\npage_bytes = 4096\n\
         [timing]\nread_us = 50\nprogram_us = 400\nerase_us = 1500\nbus_mb_s = 400\n\
         [ftl]\nkind = \"page\"\nover_provisioning = 0.2\n"
    );
    std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

/// Step and device of each run, with its records.
fn runs(contents: &StoreContents) -> BTreeMap<String, Vec<IoRecord>> {
    let one = |row: &uflip_store::RunRow| {
        let Belongs::Program(step) = &row.spec.belongs else { panic!("{row:?}") };
        let Work::Program(program) = &row.spec.work else { panic!("{row:?}") };
        assert_eq!((&step.program[..], &program.name[..]), ("copy", "copy"));
        let records = read_records(&contents.dir.join(&row.records.file)).unwrap();
        (format!("{} {}", step.step, step.device), records)
    };
    contents.runs.iter().map(one).collect()
}

#[test]
fn a_copy_keeps_every_request_of_both_devices_as_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), vec![7; 3 * MIB as usize + 4096]).unwrap();
    let facts =
        json(at, &["copy", "from", "./to", "--block-size", "64K", "--verify", "-o", "out", "--seed", "4"]);
    assert_eq!(facts["results"], "out");
    let contents = Store::open(&at.join("out")).unwrap();
    assert_eq!((contents.lacks(), contents.manifest.seed), (vec![], 4));
    let runs = runs(&contents);
    let names: Vec<&str> = runs.keys().map(String::as_str).collect();
    assert_eq!(names, ["compare from", "compare to", "transfer from", "transfer to"]);
    for (name, records) in &runs {
        let (mode, flushes) = if name == "transfer to" { (Mode::Write, 1) } else { (Mode::Read, 0) };
        let mut offsets: Vec<u64> =
            records.iter().filter(|r| r.mode() == mode).map(|r| r.offset().0).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, (0..49).map(|i| i * 65536).collect::<Vec<_>>(), "{name}");
        assert_eq!(records.len(), 49 + flushes, "{name}");
        let bytes: u64 = records.iter().map(|r| u64::from(r.size())).sum();
        assert_eq!(bytes, 3 * MIB + 4096, "{name}");
    }
    // The devices are told, and each run says which is its own.
    let devices = &contents.manifest.target.devices;
    let path = |name: &str| at.join(name).display().to_string();
    for role in ["from", "to"] {
        assert_eq!(devices[role].name, Some(path(role)));
        assert!(
            devices[role].identity.as_ref().is_some_and(|identity| identity.file.is_some()),
            "{devices:?}"
        );
    }
    for row in &contents.runs {
        let Work::Program(program) = &row.spec.work else { panic!("{row:?}") };
        assert_eq!((&program.arguments["from"], &program.arguments["to"]), (&path("from"), &path("to")));
        assert!(row.outcome.probes.interference.is_some(), "nobody watched run {}", row.spec.id);
        assert!(row.outcome.started_unix_ns.is_some() && row.stalls.is_some());
        // Both lie on one disk: what the one does is nobody else's work to the other.
        assert!(row.outcome.end.elapsed.0 > 0);
    }
}

#[test]
fn simulated_devices_tell_what_a_copy_cost_them_and_a_seed_gives_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    describe(at, "one");
    let copy =
        |out: &str| json(at, &["copy", "sim:one.toml", "sim:one.toml", "--block-size", "32K", "-o", out]);
    let facts = copy("a");
    copy("b");
    let [a, b] = ["a", "b"].map(|dir| Store::open(&at.join(dir)).unwrap());
    assert_eq!(runs(&a), runs(&b));
    let [from, to] = &a.runs[..] else { panic!("{} runs", a.runs.len()) };
    let counters = [from, to].map(|row| row.outcome.probes.counters.unwrap());
    let capacity = Some(Bytes(16 * MIB));
    assert_eq!((counters[0].host_read, counters[0].host_written), (capacity, Some(Bytes(0))));
    assert_eq!((counters[1].host_read, counters[1].host_written), (Some(Bytes(0)), capacity));
    assert!(counters[1].write_amplification().is_some_and(|wa| wa >= 0.9), "{:?}", counters[1]);
    assert!([from, to].iter().all(|row| row.outcome.started_unix_ns.is_none() && row.stalls.is_none()));
    // The copy ends with the writer's last request.
    assert_eq!(facts["virtual_time"]["elapsed_ns"].as_u64(), Some(to.outcome.end.elapsed.0));
}

#[test]
fn other_commands_take_such_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    describe(at, "one");
    std::fs::write(at.join("from"), vec![7; 2 * MIB as usize]).unwrap();
    expect(at, 0, &["copy", "from", "sim:one.toml", "--block-size", "32K", "-o", "out", "--verify"]);
    assert!(at.join("out/report.html").is_file() && at.join("out/profile.json").is_file());
    let (out, _) = expect(at, 0, &["show", "out"]);
    for word in ["copy: what each step did", "transfer from", "compare to", "MB/s", "write amplification"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 80 || line.contains('/')), "{out}");
    let shown = json(at, &["show", "out"]);
    let programs = shown["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 4);
    for (at, run) in programs.iter().enumerate() {
        let is_to = at % 2 == 1;
        assert_eq!(
            (run["requests"].as_u64(), run["virtual_time"].as_bool()),
            (Some(64 + u64::from(at == 1)), Some(is_to))
        );
        assert_eq!(run["target"].as_str().unwrap().starts_with("sim:"), is_to, "{run}");
        let under_way = run["mean_under_way"].as_f64().unwrap();
        assert!(under_way > 0.0 && under_way <= 16.0, "{run}");
        let moved = run["read"].as_u64().unwrap() + run["written"].as_u64().unwrap();
        assert_eq!(moved, 2 * MIB);
        let mb_s = moved as f64 * 1e3 / run["elapsed_ns"].as_f64().unwrap();
        assert!((run["mb_s"].as_f64().unwrap() / mb_s - 1.0).abs() < 1e-9, "{run}");
    }
    let (out, _) = expect(at, 0, &["export", "out", "--what", "records"]);
    assert_eq!(out.lines().count(), 1 + 4 * 64 + 1);
    let (out, _) = expect(at, 0, &["export", "out"]);
    assert_eq!(out.matches(",program,").count(), 4, "{out}");
    expect(at, 0, &["profile", "out"]);
    let (out, _) = expect(at, 0, &["compare", "out", "out"]);
    assert!(out.contains("out"), "{out}");
    // A program is not gone on with.
    for command in [&["run", "-o", "out", "--resume"][..], &["run", "sim:mtron", "-o", "out", "--resume"]] {
        let (_, err) = expect(at, 2, command);
        assert!(err.contains("uflip copy") && err.contains("begin it anew with another -o"), "{err}");
    }
    let (_, err) = expect(at, 1, &["copy", "from", "sim:one.toml", "-o", "out"]);
    assert!(err.contains("already holds a measurement"), "{err}");
}

#[test]
fn a_cut_off_copy_is_told_as_incomplete_and_leaves_no_half_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let child = uflip()
        .current_dir(at)
        .args(["copy", "null:1T", "null:1T", "--block-size", "4K", "-o", "out"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !at.join("out/manifest.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("0 runs are kept in out") && err.contains("holds only some of"), "{err}");
    assert_eq!(std::fs::read_dir(at.join("out/ios")).unwrap().count(), 0);
    let (out, _) = expect(at, 0, &["show", "out"]);
    assert!(out.contains("0 of 2 runs of the program copy are kept"), "{out}");
}

#[test]
fn what_is_refused_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), vec![7; MIB as usize]).unwrap();
    std::fs::write(at.join("theirs"), vec![7; MIB as usize]).unwrap();
    for (code, args) in [(2, ["from", "from"]), (1, ["from", "theirs"]), (2, ["from", "mem:512K"])] {
        expect(at, code, &[&["copy"][..], &args, &["-o", "out"]].concat());
        assert!(!at.join("out").exists(), "{args:?}");
    }
    // Two devices that are only read may be one.
    assert!(run_in(at, &["copy", "mem:1M", "mem:1M"]).status.success());
}

/// The processor time that a process has had, in ticks.
fn ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    fields.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// A copy that stands still for a while once it is at it.
fn stopped(folder: &Path, output: &[&str]) -> std::process::Output {
    let child = uflip()
        .current_dir(folder)
        .args(["copy", "null:24G", "null:24G"])
        .args(output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Nothing else takes that long: by then it copies.
    let wait = |until: &dyn Fn() -> bool| {
        while !until() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    wait(&|| ticks(child.id()) >= 40);
    signal(child.id(), "STOP");
    let stopped = std::time::Instant::now();
    wait(&|| stopped.elapsed().as_millis() > 700);
    signal(child.id(), "CONT");
    child.wait_with_output().unwrap()
}

#[test]
fn a_step_that_was_stopped_is_measured_again_where_it_is_kept_and_told_where_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let output = stopped(at, &["-o", "out"]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("transfer: the process stood still") && err.contains("attempt 2 of 3"), "{err}");
    let contents = Store::open(&at.join("out")).unwrap();
    assert_eq!((contents.lacks(), contents.runs.len()), (vec![], 2));
    for row in &contents.runs {
        assert!(row.outcome.attempts >= 2, "{:?}", row.outcome);
        let is_last = row.outcome.attempts == 3;
        assert!(row.outcome.end.incidents.is_none() || is_last, "{:?}", row.outcome);
    }
    assert_eq!(std::fs::read_dir(at.join("out/ios")).unwrap().count(), 2, "what was not kept is left");
    let err = text(&stopped(at, &[]).stderr);
    assert!(err.contains("warning: transfer: the process stood still") && !err.contains("again"), "{err}");
}
