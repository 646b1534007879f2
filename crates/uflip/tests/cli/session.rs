//! One session for every command: the same safety, interruption, resume and
//! probes, whichever command measures.

use crate::support::{Loop, expect, finished_runs, signal, skipped, text, uflip};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A command that measures.
struct Case {
    command: &'static str,
    /// What makes it short.
    short: &'static [&'static str],
    /// What makes it long, in many runs where it has a folder.
    long: &'static [&'static str],
    /// Whether it leaves a folder, which can be gone on in.
    folder: bool,
}

/// Short, but with time for others: so long, however fast the device is.
const JOB: &str = "a rw bs=4K time=600ms\n";
const LONG_JOB: &str = "a rw bs=4K count=40 reps=60 pause=5ms\n";

const CASES: [Case; 7] = [
    Case {
        command: "run",
        short: &["--method", "fixed", "--state", "none", "--only", "order", "--budget", "1s", "-o", "out"],
        long: &["--method", "fixed", "--state", "none", "--only", "order", "--budget", "40s", "-o", "out"],
        folder: true,
    },
    Case {
        command: "calibrate",
        short: &["--state", "none", "--only", "order", "--budget", "3s", "-o", "out"],
        long: &["--state", "none", "--only", "order", "--budget", "60s", "-o", "out"],
        folder: true,
    },
    Case { command: "job", short: &["a.job", "-o", "out"], long: &["long.job", "-o", "out"], folder: true },
    Case {
        command: "run",
        short: &["--suite", "ajwani-short", "--only", "mis", "-o", "out"],
        long: &["--suite", "ajwani-short", "--only", "new,old,many", "-o", "out"],
        folder: true,
    },
    Case {
        command: "logical-block",
        short: &["--bytes", "8M", "--largest", "8K", "-o", "out"],
        long: &["--bytes", "8M", "--largest", "512K", "-o", "out"],
        folder: true,
    },
    Case {
        command: "pattern",
        short: &["--base", "RW", "--io-size", "4K", "--io-count", "200", "--pause", "3ms"],
        long: &["--base", "RW", "--io-size", "4K", "--io-count", "100000", "--pause", "1ms"],
        folder: false,
    },
    Case { command: "demo", short: &[], long: &[], folder: false },
];

fn jobs(folder: &Path) {
    std::fs::write(folder.join("a.job"), JOB).unwrap();
    std::fs::write(folder.join("long.job"), LONG_JOB).unwrap();
}

#[test]
fn every_command_refuses_a_device_that_is_not_named() {
    let Some(device) = Loop::new(16 << 20) else { return };
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        jobs(folder.path());
        let before = std::fs::read(device.name()).unwrap();
        let (_, err) = expect(folder.path(), 1, &[&[case.command, device.name()], case.short].concat());
        assert!(err.contains(&format!("--erase-device {}", device.name())), "{}: {err}", case.command);
        assert!(!folder.path().join("out").exists(), "{}: a folder was made", case.command);
        assert!(std::fs::read(device.name()).unwrap() == before, "{}: it was written", case.command);
    }
}

/// `job` once refused `rr before=idle(5s)`, which writes nothing.
#[test]
fn what_only_reads_needs_no_consent_in_any_command() {
    let Some(device) = Loop::new(16 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), "a rr bs=4K count=8 before=idle(5ms)\n").unwrap();
    let reads: [&[&str]; 3] = [
        &["job", device.name(), "a.job", "-o", "job"],
        &["pattern", device.name(), "--base", "RR", "--io-count", "8"],
        &[
            "run",
            device.name(),
            "--method",
            "fixed",
            "--state",
            "none",
            "--baselines",
            "SR,RR",
            "--only",
            "granularity",
            "--values",
            "granularity=4K",
            "--budget",
            "1s",
            "-o",
            "run",
        ],
    ];
    for args in reads {
        expect(folder.path(), 0, args);
    }
    assert!(!finished_runs(&folder.path().join("job")).is_empty());
}

/// Waits for what `done` says, at most a minute.
#[track_caller]
fn wait_for(child: &mut Child, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never began");
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The line with which a command without a folder begins to measure.
fn marker(command: &str) -> &'static str {
    if command == "pattern" { ", seed 1" } else { "bad measurements" }
}

/// Interrupted once, every command ends with exit code 1 and says so; where it has
/// a folder, the line that it prints goes on in it.
#[test]
fn every_command_can_be_interrupted_and_says_how_to_go_on() {
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        jobs(folder.path());
        let (dir, scratch) = (folder.path().join("out"), ["--scratch", "mine", "--scratch-size", "16M"]);
        let mut child = uflip()
            .current_dir(folder.path())
            .args([&[case.command][..], case.long, &scratch, &["--seed", "1"]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut err = String::new();
        if case.folder {
            wait_for(&mut child, || !finished_runs(&dir).is_empty());
        } else {
            while !err.contains(marker(case.command)) {
                assert!(said.read_line(&mut err).unwrap() > 0, "{}: {err}", case.command);
            }
        }
        signal(child.id(), "INT");
        if ["pattern", "logical-block"].contains(&case.command) {
            // One run is all there is, or may be all that is left: the second gives it up.
            while !err.contains("interrupt again") {
                assert!(said.read_line(&mut err).unwrap() > 0, "{err}");
            }
            signal(child.id(), "INT");
        }
        said.read_to_string(&mut err).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(1), "{}: {err}", case.command);
        assert!(err.contains("interrupted"), "{}: {err}", case.command);
        if case.folder {
            let line = err.rsplit("go on with: ").next().unwrap().lines().next().unwrap();
            assert!(line.starts_with("uflip "), "{}: {err}", case.command);
            goes_on(folder.path(), &dir, line);
        }
    }
}

/// What was kept stays, and something is added; the rest of a long one is not
/// waited for.
#[track_caller]
fn goes_on(folder: &Path, dir: &Path, line: &str) {
    let kept = finished_runs(dir);
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let child = uflip().current_dir(folder).args(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let (mut child, began) = (child.unwrap(), Instant::now());
    while finished_runs(dir).len() <= kept.len() && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "{line}: it did not go on");
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let now = finished_runs(dir);
    assert!(now.len() > kept.len() && now[..kept.len()] == kept, "{line}: {}", text(&output.stderr));
}

/// Reads a device beside whatever measures it, until dropped.
struct Reader(std::sync::Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Reader {
    /// Returns when it reads.
    fn of(device: &str) -> Reader {
        use std::os::unix::fs::{FileExt, OpenOptionsExt};
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let (seen, device) = (stop.clone(), device.to_string());
        let (reads, began) = std::sync::mpsc::channel();
        let beside = move || {
            let direct = std::fs::File::options().read(true).custom_flags(0o40000).open(device).unwrap();
            // O_DIRECT wants an aligned buffer.
            let mut room = vec![0u8; 8192];
            let at = room.as_ptr().align_offset(4096);
            direct.read_exact_at(&mut room[at..at + 4096], 0).unwrap();
            reads.send(()).unwrap();
            while !seen.load(Ordering::Relaxed) {
                direct.read_exact_at(&mut room[at..at + 4096], 0).unwrap();
            }
        };
        let reader = Reader(stop, Some(std::thread::spawn(beside)));
        began.recv().unwrap();
        reader
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(std::thread::JoinHandle::join);
    }
}

/// The interference watch once stood beside `run` only.
#[test]
fn every_command_sees_what_else_uses_the_device() {
    let Some(device) = Loop::new(16 << 20) else { return };
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        jobs(folder.path());
        let consent = format!("{}+unknown-contents", device.name());
        let reader = Reader::of(device.name());
        let args = [&[case.command, device.name()], case.short, &["--erase-device", &consent]].concat();
        let output = uflip().current_dir(folder.path()).args(&args).output().unwrap();
        drop(reader);
        let err = text(&output.stderr);
        if case.command == "demo" && !output.status.success() {
            // It stops where its own parameters cannot be found, which a disturbed device may bring about.
            skipped(&format!("demo on a disturbed device: {err}"));
            continue;
        }
        assert!(output.status.success(), "{}: {err}", case.command);
        assert!(err.contains("something else was active during"), "{}: {err}", case.command);
        if !case.folder {
            continue;
        }
        let rows = std::fs::read_to_string(folder.path().join("out/runs.ndjson")).unwrap();
        let others = rows.lines().filter(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            row["outcome"]["probes"]["interference"]["other_ios"].as_u64().is_some_and(|n| n > 0)
        });
        assert!(others.count() > 0, "{}: {rows}", case.command);
        if case.command != "calibrate" {
            let profile = std::fs::read_to_string(folder.path().join("out/profile.json")).unwrap();
            let profile: Value = serde_json::from_str(&profile).unwrap();
            let codes: Vec<&str> =
                profile["soundness"].as_array().unwrap().iter().filter_map(|f| f["code"].as_str()).collect();
            assert!(codes.contains(&"other_load"), "{}: {codes:?}", case.command);
        }
    }
}

/// What a simulated device did is kept with the run and shown with it.
#[test]
fn a_simulated_device_tells_its_work_in_row_profile_show_and_report() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "sim:mtron",
        "--method",
        "fixed",
        "--preset",
        "quick",
        "--only",
        "granularity",
        "--values",
        "granularity=32K",
        "--seed",
        "1",
        "-o",
        "out",
    ];
    expect(folder.path(), 0, &args);
    let out = folder.path().join("out");
    let rows = std::fs::read_to_string(out.join("runs.ndjson")).unwrap();
    let (mut written, mut programmed, mut by_reads) = (0, 0, 0);
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let counters = &row["outcome"]["probes"]["counters"];
        let ios = row["outcome"]["end"]["ios"].as_u64().unwrap();
        let host = counters["host_written"].as_u64().unwrap() + counters["host_read"].as_u64().unwrap();
        assert_eq!(host, ios * (32 << 10), "{row}");
        written += counters["host_written"].as_u64().unwrap();
        let flash = counters["flash_programmed"].as_u64().unwrap();
        programmed += flash;
        by_reads += if counters["host_written"] == 0 { flash } else { 0 };
        assert!(row["outcome"]["probes"]["interference"].is_null(), "{row}");
    }
    assert!(written > 0);
    let profile: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("profile.json")).unwrap()).unwrap();
    let work = &profile["device_work"];
    let (sw, rw) = (&work["write_amplification"]["SW"], &work["write_amplification"]["RW"]);
    assert!(sw.as_f64().unwrap() >= 0.9 && rw.as_f64().unwrap() > sw.as_f64().unwrap(), "{work}");
    assert!(work["write_amplification"]["SR"].is_null(), "{work}");
    // Over all runs it is the quotient of the sums, what a run of reads programs among them.
    let of_all = work["write_amplification_of_all"].as_f64().unwrap();
    assert!(by_reads > 0, "the buffer is written back while reads are measured");
    assert!(
        (of_all / (programmed as f64 / written as f64) - 1.0).abs() < 5e-4,
        "{of_all} is not {programmed} over {written}, to four digits"
    );
    let (shown, _) = expect(folder.path(), 0, &["show", "out", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let baselines = shown["baselines"].as_array().unwrap();
    let row = baselines.iter().find(|b| b["baseline"] == "RW").expect("random writes");
    assert!(row["write_amplification"].as_f64().unwrap() > 1.0, "{row}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("write amplification"));
}
