//! What would destroy what is read: destinations and outputs that share bytes with it, and outputs that take the
//! place of what uflip itself keeps.

use crate::support::{Loop, expect, is_root, loop_turn, skipped, text, uflip};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

/// A loop device of options of its own over a file or device; detached when dropped.
struct Over(String);

impl Over {
    fn new(options: &[&str], what: &str) -> Option<Over> {
        let output = Command::new("losetup").args(["-f", "--show"]).args(options).arg(what).output();
        match output {
            Ok(o) if o.status.success() => Some(Over(text(&o.stdout).trim().to_string())),
            other => {
                skipped(&format!("losetup {options:?} gave no loop device: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).output();
    }
}

/// What tells every place from every other.
fn contents(bytes: u64) -> Vec<u8> {
    (0..bytes / 8).flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a) + 1).to_le_bytes()).collect()
}

/// That copying `from` to `to` is refused, in both directions, and nothing of `file` changes.
fn refused(at: &Path, from: &str, to: &str, file: &Path) {
    let before = std::fs::read(file).unwrap();
    for (from, to) in [(from, to), (to, from)] {
        let consent = format!("{to}+gpt+partitions");
        let consents: &[&str] = if to.starts_with("/dev") { &["--erase-device", &consent] } else { &[] };
        let (_, err) = expect(at, 2, &[&["copy", from, to][..], consents].concat());
        assert!(err.contains("share bytes") && err.contains("name two targets"), "{from} {to}: {err}");
    }
    assert!(std::fs::read(file).unwrap() == before, "{from} {to}: something was written");
}

#[test]
fn a_copy_to_what_lies_beneath_or_above_its_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let backing = tempfile::NamedTempFile::new_in(at).unwrap();
    let image = backing.path().to_path_buf();
    symlink(&image, at.join("link.img")).unwrap();
    std::fs::hard_link(&image, at.join("other-name.img")).unwrap();
    let Some(disk) = Loop::over(backing, 8 * MIB) else { return };
    for name in ["link.img", "other-name.img"] {
        refused(at, name, disk.name(), &image);
    }
    let Some(upper) = Over::new(&["-o", "1M"], disk.name()) else { return };
    refused(at, &upper.0, disk.name(), &image);
    refused(at, &upper.0, "link.img", &image);
}

#[test]
fn a_copy_between_partitions_goes_and_to_what_overlaps_does_not() {
    if !is_root() {
        return skipped("loop devices need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (at, image) = (folder.path(), folder.path().join("disk.img"));
    std::fs::write(&image, contents(32 * MIB)).unwrap();
    let child = Command::new("sfdisk").arg("-q").arg(&image).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return skipped("there is no sfdisk") };
    let table = b"label: gpt\nstart=2048, size=16384\nstart=18432, size=16384\n";
    child.stdin.take().unwrap().write_all(table).unwrap();
    assert!(child.wait().unwrap().success());
    let _turn = loop_turn();
    let Some(disk) = Over::new(&["-P"], image.to_str().unwrap()) else { return };
    let (first, second) = (format!("{}p1", disk.0), format!("{}p2", disk.0));
    if !Path::new(&second).exists() {
        return skipped("no partitions are shown on loop devices");
    }
    refused(at, &first, &disk.0, &image);
    let consent = format!("{second}+unknown-contents");
    expect(at, 0, &["copy", &first, &second, "--verify", "--erase-device", &consent]);
    // The second partition begins at 9M, the first at 1M: this one has the end of the first.
    let Some(end) = Over::new(&["-o", "5M"], &disk.0) else { return };
    refused(at, &first, &end.0, &image);
}

#[test]
fn records_never_take_the_place_of_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("data.csv"), contents(2 * MIB)).unwrap();
    symlink("data.csv", at.join("link.csv")).unwrap();
    let pattern = |target: &str, records: &str| {
        let args = ["pattern", target, "--base", "SR", "--io-count", "10", "--records", records];
        let (_, err) = expect(at, 2, &args);
        assert!(err.contains("which is measured; name another file"), "{target} {records}: {err}");
    };
    pattern("./data.csv", "./data.csv");
    pattern("./data.csv", "link.csv");
    pattern("./link.csv", "data.csv");
    assert!(std::fs::read(at.join("data.csv")).unwrap() == contents(2 * MIB));
    if let Some(disk) = is_root().then(|| Over::new(&[], at.join("data.csv").to_str().unwrap())).flatten() {
        pattern(&disk.0, "link.csv");
        assert!(std::fs::read(at.join("data.csv")).unwrap() == contents(2 * MIB));
    }
    // A new scratch file that would be both.
    let both =
        ["pattern", "--scratch", "new.csv", "--scratch-size", "1M", "--base", "SW", "--records", "new.csv"];
    let (_, err) = expect(at, 2, &both);
    assert!(err.contains("which is measured") && !at.join("new.csv").exists(), "{err}");
    // Beside it is as good as ever.
    expect(at, 0, &["pattern", "./data.csv", "--base", "SR", "--io-count", "10", "--records", "ios.csv"]);
}

#[test]
fn outputs_take_the_place_of_nothing_that_uflip_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run = ["run", "sim:mtron", "-o", "out", "--only", "order", "--baselines", "SR", "--preset", "quick"];
    expect(at, 0, &[&run[..], &["--seed", "1", "--method", "fixed", "--state", "none"]].concat());
    expect(at, 0, &["pattern", "./x1", "--scratch-size", "1M", "--base", "SW", "--io-count", "8"]);
    symlink("out/runs.ndjson", at.join("runs")).unwrap();
    symlink("out", at.join("same")).unwrap();
    let kept = |name: &str| std::fs::read(at.join(name)).ok();
    let names = [
        "out/runs.ndjson",
        "out/plan.json",
        "out/manifest.json",
        "out/profile.json",
        "out/state.json",
        "out/calibration.json",
        "out/ios/run-000000.parquet",
        "out/ios/run-000777.parquet",
        "same/plan.json",
        "runs",
        "x1",
        "x1.uflip",
    ];
    let commands: [&[&str]; 4] = [
        &["report", "out", "-o"],
        &["export", "out", "--format", "json", "-o"],
        &["export", "out", "--what", "records", "--format", "csv", "-o"],
        &["compare", "out", "out", "--html"],
    ];
    for name in names {
        let before = kept(name);
        for command in commands {
            let (_, err) = expect(at, 2, &[command, &[name]].concat());
            assert!(err.contains("name another file"), "{command:?} {name}: {err}");
            assert!(kept(name) == before, "{command:?} {name}: it changed");
        }
    }
    // What is drawn from the results lies where it always did; and elsewhere such names are free.
    std::fs::create_dir(at.join("elsewhere")).unwrap();
    for name in ["out/report.html", "out/runs.csv", "elsewhere/plan.json", "report.uflip"] {
        expect(at, 0, &["report", "out", "-o", name]);
    }
}

/// Few runs in virtual time, into `out`.
const FEW: [&str; 9] = ["run", "sim:mtron", "-o", "out", "--only", "order", "--baselines", "SR", "--preset"];

#[test]
fn a_finished_folder_is_not_gone_on_with_on_another_target() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect(at, 0, &[&FEW[..], &["quick", "--seed", "1", "--method", "fixed", "--state", "none"]].concat());
    let (_, err) = expect(at, 2, &["run", "sim:memoright", "-o", "out", "--resume"]);
    assert!(err.contains("out measures sim:mtron, not sim:memoright"), "{err}");
    expect(at, 0, &["run", "sim:mtron", "-o", "out", "--resume"]);
    expect(at, 0, &["run", "-o", "out", "--resume"]);
    let plan = ["run", "null:", "--plan", "out/plan.json", "-o", "other"];
    let text = std::fs::read_to_string(at.join("out/plan.json")).unwrap();
    let capacity = serde_json::from_str::<serde_json::Value>(&text).unwrap()["geometry"]["capacity"].clone();
    let null = format!("null:{capacity}B");
    let (_, err) = expect(at, 0, &[&["run", &null][..], &plan[2..]].concat());
    assert!(err.contains("out/plan.json was made for sim:mtron, and is measured on null:"), "{err}");
}

#[test]
fn a_calibration_that_is_missing_is_told_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect(at, 0, &[&FEW[..], &["quick", "--seed", "1"]].concat());
    std::fs::remove_file(at.join("out/calibration.json")).unwrap();
    let (out, err) = expect(at, 0, &["show", "out"]);
    let told = format!("{out}{err}").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("calibration.json is missing") && !told.contains("nothing else was measured"),
        "{told}"
    );
}

#[test]
fn a_plan_says_what_run_would_refuse_and_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (_, err) = expect(at, 0, &["plan", "./huge", "--scratch-size", "4000T"]);
    assert!(err.contains("run would refuse") && err.contains("does not fit"), "{err}");
    let not_known = |args: &[&str]| {
        let (out, _) = expect(at, 0, &[&["plan", "sim:mtron"][..], args].concat());
        out.lines().find(|line| line.starts_with("not known yet")).unwrap().to_string()
    };
    assert!(not_known(&[]).contains("pause between runs"));
    assert!(!not_known(&["--pause-between", "7s"]).contains("pause between runs"));
    let only = ["plan", "sim:mtron", "--values", "granularity=4K", "--only", "order"];
    assert!(expect(at, 2, &only).1.contains("does nothing where --only leaves it out"));
    for args in [&["--io-count", "0"][..], &["--io-ignore", "10", "--io-count", "5"]] {
        let (_, err) = expect(at, 2, &[&["pattern", "null:", "--base", "SR"][..], args].concat());
        assert!(err.contains("leaves nothing to measure"), "{err}");
    }
}

#[test]
fn somebody_elses_small_file_and_a_damaged_sidecar_are_told_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("uflip-scratch.bin"), b"a diary\n").unwrap();
    let (_, err) = expect(at, 2, &["run", "-o", "out"]);
    assert!(err.contains("uflip did not make it") && err.contains("--scratch FILE"), "{err}");
    expect(at, 0, &["pattern", "./x1", "--scratch-size", "1M", "--base", "SW", "--io-count", "8"]);
    let sidecar = at.join("x1.uflip");
    let refused = || {
        let (_, err) = expect(at, 1, &["pattern", "./x1", "--base", "SW", "--io-count", "8"]);
        assert!(err.contains("x1.uflip, which would tell whose it is, is damaged"), "{err}");
    };
    std::fs::write(&sidecar, "").unwrap();
    refused();
    std::fs::remove_file(&sidecar).unwrap();
    std::fs::create_dir(&sidecar).unwrap();
    refused();
    std::fs::remove_dir(&sidecar).unwrap();
    let (_, err) = expect(at, 1, &["pattern", "./x1", "--base", "SW", "--io-count", "8"]);
    assert!(err.contains("there is no"), "{err}");
}

#[test]
fn the_plan_and_the_calibration_of_another_folder_are_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect(at, 0, &[&FEW[..], &["quick", "--seed", "1"]].concat());
    let other: Vec<&str> = FEW.iter().map(|word| if *word == "out" { "other" } else { *word }).collect();
    expect(at, 0, &[&other[..], &["quick", "--seed", "2"]].concat());
    for file in ["calibration.json", "plan.json"] {
        let (own, others) = (at.join("out").join(file), at.join("other").join(file));
        let kept = std::fs::read(&own).unwrap();
        std::fs::copy(others, &own).unwrap();
        let (out, err) = expect(at, 0, &["show", "out"]);
        let told = format!("{out}{err}").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(&format!("{file}: it is another folder's")), "{told}");
        std::fs::write(&own, kept).unwrap();
    }
    let (out, err) = expect(at, 0, &["show", "out"]);
    assert!(!format!("{out}{err}").contains("another folder"), "{out}{err}");
    // A plan without its checksum was written by somebody else.
    let plan = at.join("out/plan.json");
    let mut value: serde_json::Value = serde_json::from_slice(&std::fs::read(&plan).unwrap()).unwrap();
    value.as_object_mut().unwrap().remove("check");
    std::fs::write(&plan, value.to_string()).unwrap();
    let (out, err) = expect(at, 0, &["show", "out"]);
    assert!(format!("{out}{err}").contains("plan.json is not as uflip made it"), "{out}{err}");
}

#[test]
fn results_never_take_the_place_of_what_was_measured_or_copied() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("data"), contents(1 << 16)).unwrap();
    for name in ["report.html", "profile.json", "runs.ndjson", "manifest.json", "plan.json", ".lock"] {
        std::fs::create_dir(at.join("od")).unwrap();
        let to = format!("./od/{name}");
        let (_, err) = expect(at, 2, &["copy", "data", &to, "-o", "od"]);
        assert!(err.contains("the results in od need; name another target or -o"), "{name}: {err}");
        let run = ["run", &to, "--scratch-size", "8M", "-o", "od", "--only", "order"];
        let (_, err) = expect(at, 2, &run);
        assert!(err.contains("the results in od need"), "{name}: {err}");
        // Nothing was made, of the folder's or of the target's.
        std::fs::remove_dir(at.join("od")).unwrap();
    }
    // What is read would be replaced, too.
    std::fs::create_dir(at.join("od")).unwrap();
    std::fs::rename(at.join("data"), at.join("od/plan.json")).unwrap();
    let (_, err) = expect(at, 2, &["copy", "od/plan.json", "./copied", "-o", "od"]);
    assert!(err.contains("the results in od need"), "{err}");
    std::fs::rename(at.join("od/plan.json"), at.join("data")).unwrap();
    // Into the results of somebody else a target is not made, other names are free.
    expect(at, 0, &["copy", "data", "./copied", "-o", "od"]);
    let (_, err) = expect(at, 2, &["copy", "data", "./od/calibration.json"]);
    assert!(err.contains("is a name that the results in"), "{err}");
    let (_, err) = expect(at, 2, &["pattern", "./od/job.json", "--scratch-size", "1M", "--base", "SW"]);
    assert!(err.contains("is a name that the results in"), "{err}");
    expect(at, 0, &["copy", "data", "./od/image"]);
    assert!(std::fs::read(at.join("od/image")).unwrap()[..1 << 16] == contents(1 << 16));
}

#[test]
fn what_cannot_be_replaced_is_told_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect(at, 0, &[&FEW[..], &["quick", "--seed", "1", "--method", "fixed", "--state", "none"]].concat());
    let rows = std::fs::read_to_string(at.join("out/runs.ndjson")).unwrap();
    let some: String = rows.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(at.join("out/runs.ndjson"), &some).unwrap();
    std::fs::remove_file(at.join("out/profile.json")).unwrap();
    std::fs::create_dir(at.join("out/profile.json")).unwrap();
    let (_, err) = expect(at, 1, &["run", "-o", "out", "--resume"]);
    assert!(err.contains("profile.json is a folder, which uflip does not replace; remove it"), "{err}");
    assert_eq!(std::fs::read_to_string(at.join("out/runs.ndjson")).unwrap(), some);
}

#[test]
fn a_gate_fails_whoever_reads_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let few = |out: &str| {
        let mut args = FEW.to_vec();
        args[3] = out;
        expect(
            at,
            0,
            &[&args[..], &["quick", "--seed", "1", "--method", "fixed", "--state", "none"]].concat(),
        );
    };
    few("a");
    few("b");
    let gate = ["compare", "a", "b", "--no-html", "--fail-if", "SR > 0.1x"];
    expect(at, 1, &gate);
    let read_by_nobody = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        uflip().current_dir(at).args(args).stdout(writer).output().unwrap()
    };
    let out = read_by_nobody(&gate);
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(1) && err.contains("failed: SR > 0.1x"), "{:?}: {err}", out.status);
    // What only prints ends as if it had been read.
    let out = read_by_nobody(&["show", "a"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // An output by name is wanted whole.
    let fifo = at.join("fifo.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let opened = std::thread::spawn({
        let fifo = fifo.clone();
        move || drop(std::fs::File::open(fifo))
    });
    let whole = ["pattern", "null:64M", "--base", "SR", "--io-count", "100000", "--records", "fifo.csv"];
    let (_, err) = expect(at, 1, &whole);
    opened.join().unwrap();
    assert!(err.contains("fifo"), "{err}");
    // A page that somebody else wrote stays; one of ours is renewed.
    std::fs::write(at.join("compare.html"), "my own notes").unwrap();
    let (_, err) = expect(at, 2, &["compare", "a", "b"]);
    assert!(err.contains("--html FILE"), "{err}");
    assert_eq!(std::fs::read(at.join("compare.html")).unwrap(), b"my own notes");
    std::fs::remove_file(at.join("compare.html")).unwrap();
    expect(at, 0, &["compare", "a", "b"]);
    expect(at, 0, &["compare", "a", "b"]);
}

/// A short read of a file that nobody named, into `out`.
fn read_unasked(at: &std::path::Path, out: &str, more: &[&str]) {
    let run = ["run", "--method", "fixed", "--preset", "quick", "--only", "order", "--values", "order=1"];
    let short = ["--baselines", "SR", "--budget", "1s", "-o", out];
    expect(at, 0, &[&run[..], &short[..], more].concat());
}

#[test]
fn only_the_scratch_file_that_a_benchmark_made_unasked_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let scratch = at.join("uflip-scratch.bin");
    // Its own goes.
    read_unasked(at, "a", &["--scratch-size", "8M"]);
    assert!(!scratch.exists());
    // What somebody copied there since stays, also where the first is asked for again.
    std::fs::write(at.join("data"), contents(8 << 20)).unwrap();
    expect(at, 0, &["copy", "data", "./uflip-scratch.bin"]);
    expect(at, 0, &["run", "-o", "a", "--resume"]);
    assert!(std::fs::read(&scratch).unwrap()[..8 << 20] == contents(8 << 20));
    std::fs::remove_file(&scratch).unwrap();
    std::fs::remove_file(at.join("uflip-scratch.bin.uflip")).unwrap();
    // One that was to be kept is there after the next benchmark, too.
    read_unasked(at, "b", &["--scratch-size", "8M", "--keep-scratch"]);
    read_unasked(at, "c", &[]);
    assert!(scratch.exists());
}
