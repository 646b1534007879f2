//! Targets as they are typed: what is refused, what was meant, and what `plan`
//! says of it beforehand.

use crate::support::{self, Loop, expect, run_in, skipped};
use serde_json::Value;
use std::path::Path;

/// Each command that measures, with what it needs besides a target.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("run", &["-o", "out", "--only", "order"]),
    ("calibrate", &["-o", "out", "--only", "order"]),
    ("plan", &[]),
    ("pattern", &["--base", "SW"]),
    ("job", &["a.job", "-o", "out"]),
    ("logical-block", &["--bytes", "1M", "--largest", "64K", "-o", "out"]),
    ("demo", &[]),
];

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// `uflip run nvme0n1` once made a file of that name and measured the disk under
/// the folder.
#[test]
fn a_bare_word_makes_no_file_in_any_command() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), "a rw bs=4K count=8\n").unwrap();
    for (command, more) in COMMANDS {
        for (word, part) in [("mtron", "did you mean sim:mtron?"), ("new", "--scratch new")] {
            let (_, err) = expect(folder.path(), 2, &[&[command, word], more].concat());
            assert!(err.contains(part), "{command}: {err}");
        }
    }
    assert_eq!(names(folder.path()), ["a.job"]);
    let Some(device) = Loop::new(16 << 20) else { return };
    let word = device.name().trim_start_matches("/dev/");
    for (command, more) in COMMANDS {
        let (_, err) = expect(folder.path(), 2, &[&[command, word], more].concat());
        assert!(err.contains(&format!("did you mean {}?", device.name())), "{command}: {err}");
    }
    assert_eq!(names(folder.path()), ["a.job"]);
}

#[test]
fn a_scratch_file_can_be_named_by_its_option() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), "a rw bs=4K count=8\n").unwrap();
    let small = ["--scratch", "mine", "--scratch-size", "4M"];
    expect(folder.path(), 0, &[&["pattern", "--base", "SW", "--io-count", "8"][..], &small].concat());
    assert_eq!(names(folder.path()), ["a.job", "mine", "mine.uflip"]);
    // It is taken again, also where its size is said again, which is so.
    expect(folder.path(), 0, &[&["job", "a.job", "-o", "out"][..], &small].concat());
    expect(folder.path(), 0, &["job", "mine", "-o", "out", "--resume"]);
    let (_, err) = expect(folder.path(), 2, &["pattern", "mine", "--base", "SR", "--scratch-size", "8M"]);
    assert!(err.contains("--scratch-size") && err.contains("there as it is"), "{err}");
    let (_, err) = expect(folder.path(), 2, &["pattern", "--scratch", "a.job", "--base", "SR"]);
    assert!(err.contains("no scratch file of uflip's"), "{err}");
}

/// What does nothing on a simulated device is refused, and what it does not have
/// is not told as if it did.
#[test]
fn a_simulated_device_is_not_driven() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), "a rw bs=4K count=8\n").unwrap();
    for (command, more) in &COMMANDS[..6] {
        if *command == "plan" {
            continue;
        }
        for option in [&["--engine", "io_uring", "--queue-depth", "8"][..], &["--buffering", "dsync"]] {
            let (_, err) = expect(folder.path(), 2, &[&[command, "sim:mtron"], *more, option].concat());
            assert!(err.contains(&format!("{} does nothing on sim:mtron", option[0])), "{command}: {err}");
        }
    }
    let (_, err) = expect(folder.path(), 0, &["job", "sim:mtron", "a.job", "-o", "out"]);
    let manifest = std::fs::read_to_string(folder.path().join("out/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    for word in ["engine", "buffering", "data"] {
        assert!(manifest["options"][word].is_null(), "{word}: {manifest}");
        assert!(manifest["options"]["chosen"][word].is_null(), "{word}: {manifest}");
    }
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    for shown in [err, manifest["target"]["summary"].to_string(), page] {
        assert!(!shown.contains("sync, direct") && !shown.contains("data random"), "{shown}");
    }
    let args = ["pattern", "sim:mtron", "--base", "SR", "--io-count", "8", "--json"];
    let facts: Value = serde_json::from_str(&expect(folder.path(), 0, &args).0).unwrap();
    assert!(facts["engine"].is_null() && facts["end"]["ios"] == 8, "{facts}");
}

#[test]
fn a_plan_says_what_run_would_refuse_and_what_is_not_known_yet() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |args: &[&str]| {
        let (out, err) = expect(folder.path(), 0, &[&["plan", "--json"], args].concat());
        (serde_json::from_str::<Value>(&out).unwrap(), err)
    };
    let (free, err) = plan(&["--method", "fixed"]);
    assert!(free["run_would_refuse"].is_null() && !err.contains("would refuse"), "{err}");
    assert_eq!(free["not_known_yet"].as_array().unwrap().len(), 0);
    let (auto, _) = plan(&[]);
    assert!(!auto["not_known_yet"].as_array().unwrap().is_empty());
    let (text, _) = expect(folder.path(), 0, &["plan"]);
    assert!(text.contains("not known yet: "), "{text}");
    std::fs::write(folder.path().join("thesis.doc"), vec![7; 4 << 20]).unwrap();
    let (doc, err) = plan(&["thesis.doc"]);
    let why = doc["run_would_refuse"].as_str().unwrap();
    assert!(err.contains(&format!("run would refuse: {why}")), "{err}");
    let refused = run_in(folder.path(), &["run", "thesis.doc", "-o", "out"]);
    assert!(support::text(&refused.stderr).contains(why), "{}", support::text(&refused.stderr));
    let Some(device) = Loop::new(16 << 20) else { return };
    let (without, err) = plan(&[device.name()]);
    assert!(without["run_would_refuse"].is_string() && err.contains("--erase-device"), "{err}");
    let (with, _) = plan(&[device.name(), "--erase-device", device.name()]);
    assert!(with["run_would_refuse"].is_null(), "{with}");
    // What is printed is a plan that run takes.
    std::fs::write(folder.path().join("p.json"), with.to_string()).unwrap();
}

/// The file is one that would be made, one of ours, and one that a program wrote.
#[test]
fn a_plan_says_that_another_uflip_has_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect(
        at,
        0,
        &["pattern", "--scratch", "ours", "--scratch-size", "4M", "--base", "SR", "--io-count", "8"],
    );
    std::fs::write(at.join("empty"), "").unwrap();
    for name in ["ours", "empty"] {
        let plan = || {
            let (out, err) = expect(at, 0, &["plan", "--json", name]);
            (serde_json::from_str::<Value>(&out).unwrap()["run_would_refuse"].clone(), err)
        };
        let (free, err) = plan();
        assert!(free.is_null(), "{name}: {err}");
        let held = std::fs::File::open(at.join(name)).unwrap();
        held.try_lock().unwrap();
        let (why, err) = plan();
        assert!(
            why.as_str().is_some_and(|why| why.contains("another uflip measures on it")),
            "{name}: {err}"
        );
        let (_, err) = expect(at, 1, &["run", name, "-o", "out", "--only", "order"]);
        assert!(err.contains(why.as_str().unwrap()), "{name}: {err}");
        drop(held);
        assert!(plan().0.is_null(), "{name}: it was let go of");
    }
    assert!(!at.join("out").exists(), "nothing was made");
}

/// The disk under the root file system is planned for and refused at once.
#[test]
fn a_plan_of_the_root_disk_says_so() {
    let root = std::process::Command::new("findmnt").args(["-no", "SOURCE", "/"]).output();
    let Some(root) =
        root.ok().map(|o| support::text(&o.stdout).trim().to_string()).filter(|p| p.starts_with("/dev/"))
    else {
        skipped("the root file system is on no device that can be named");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_, err) = expect(folder.path(), 0, &["plan", &root, "--erase-device", &root]);
    assert!(err.contains("run would refuse: "), "{err}");
}
