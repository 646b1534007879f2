//! `uflip copy`: what arrives, what it says of time, what it refuses, and what the
//! next command makes of the copy.

use crate::support::{Loop, expect, run_in, signal, text, uflip};
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

const MIB: u64 = 1 << 20;

/// What tells every place from every other.
fn contents(bytes: u64) -> Vec<u8> {
    (0..bytes / 8).flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a) + 1).to_le_bytes()).collect()
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let (out, _) = expect(folder, 0, &[args, &["--json"]].concat());
    serde_json::from_str(&out).expect("it prints JSON")
}

/// A small simulated device with so many channels.
fn describe(folder: &Path, name: &str, channels: u32) {
    let text = format!(
        "name = \"{name}\"\ncapacity_mib = 16\n\
         [link]\nqueue_depth = 32\nread_latency_us = 1\nwrite_latency_us = 1\nread_mb_s = 6000\nwrite_mb_s = 6000\n\
         [geometry]\nchannels = {channels}\nchips_per_channel = 1\npages_per_block = 64\npage_bytes = 4096\n\
         [timing]\nread_us = 50\nprogram_us = 400\nerase_us = 1500\nbus_mb_s = 400\n\
         [ftl]\nkind = \"page\"\nover_provisioning = 0.2\n"
    );
    std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

#[test]
fn a_copied_file_is_the_same_byte_for_byte_and_stays_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (at, bytes) = (folder.path(), 3 * MIB + 4096);
    std::fs::write(at.join("from"), contents(bytes)).unwrap();
    let facts = json(at, &["copy", "from", "./to", "--verify", "--block-size", "64K"]);
    assert_eq!((facts["bytes"].as_u64(), facts["verified"].as_bool()), (Some(bytes), Some(true)));
    assert_eq!(facts["requests"], 8);
    assert!(facts["wall"]["elapsed_ns"].as_u64() > Some(0) && facts["virtual_time"].is_null(), "{facts}");
    assert!(facts["to_driven"].as_str().unwrap().ends_with(", direct"), "{facts}");
    let written = std::fs::read(at.join("to")).unwrap();
    assert!(written[..bytes as usize] == contents(bytes));
    assert_eq!(written.len() as u64, bytes + 4096, "a scratch file has its header behind");
    // What a program left is written again by a program where that is named…
    std::fs::write(at.join("other"), vec![0xab; 2 * MIB as usize]).unwrap();
    let path = at.canonicalize().unwrap().join("to").display().to_string();
    for consent in [&[][..], &["--erase-device", "to"]] {
        let (_, err) = expect(at, 1, &[&["copy", "other", "to"][..], consent].concat());
        assert!(err.contains("holds what a program wrote") && err.contains(&path), "{err}");
        assert!(err.contains("--erase-device"), "{err}");
    }
    assert!(std::fs::read(at.join("to")).unwrap() == written, "written without consent");
    let (out, err) = expect(at, 0, &["copy", "other", "to", "--erase-device", &path]);
    assert!(out.contains("2M copied") && out.contains("wall clock"), "{out}");
    assert!(err.contains("/to will be written between 0B and 2M"), "{err}");
    assert!(err.contains("the last 1052672 bytes, from 2M on, stay as they are"), "{err}");
    assert!(std::fs::read(at.join("to")).unwrap()[..2 * MIB as usize].iter().all(|byte| *byte == 0xab));
    // …but by no measurement: it may be all that there is of somebody's data.
    let left = std::fs::read(at.join("to")).unwrap();
    let measurements: [&[&str]; 2] = [
        &["pattern", "to", "--base", "SW", "--io-count", "16"],
        &["run", "to", "--only", "order", "-o", "o"],
    ];
    for args in measurements {
        let (_, err) = expect(at, 2, args);
        assert!(err.contains("holds what a program wrote") && err.contains("remove this one"), "{err}");
    }
    assert!(std::fs::read(at.join("to")).unwrap() == left && !at.join("o").exists());
}

#[test]
fn reading_a_copy_measures_it_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), contents(2 * MIB)).unwrap();
    expect(at, 0, &["copy", "from", "./to"]);
    expect(at, 0, &["pattern", "to", "--base", "SR", "--io-count", "16"]);
    assert!(std::fs::read(at.join("to")).unwrap()[..2 * MIB as usize] == contents(2 * MIB));
}

#[test]
fn a_copy_that_somebody_wrote_to_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), contents(2 * MIB)).unwrap();
    expect(at, 0, &["copy", "from", "./to"]);
    let file = std::fs::OpenOptions::new().write(true).open(at.join("to")).unwrap();
    file.write_all_at(b"a diary", 1_234_567).unwrap();
    for args in [&["copy", "from", "to"][..], &["pattern", "to", "--base", "SW"]] {
        let (_, err) = expect(at, 1, args);
        assert!(err.contains("somebody wrote to it"), "{err}");
    }
    let mut diary = [0; 7];
    std::fs::File::open(at.join("to")).unwrap().read_exact_at(&mut diary, 1_234_567).unwrap();
    assert_eq!(&diary, b"a diary");
}

#[test]
fn a_block_device_takes_consent_and_then_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), contents(4 * MIB)).unwrap();
    let Some(disk) = Loop::new(8 * MIB) else { return };
    let (_, err) = expect(at, 1, &["copy", "from", disk.name()]);
    assert!(err.contains("--erase-device"), "{err}");
    let held = || std::fs::read(disk.name()).unwrap();
    assert!(held().iter().all(|byte| *byte == 0), "written without consent");
    let consent = ["--erase-device", disk.name()];
    let facts = json(at, &[&["copy", "from", disk.name(), "--verify"][..], &consent].concat());
    assert_eq!(facts["verified"], true);
    assert!(
        held()[..4 * MIB as usize] == contents(4 * MIB) && held()[4 * MIB as usize..].iter().all(|b| *b == 0)
    );
    // Nothing on it says that it is ours: the next write takes more consent.
    let (_, err) = expect(at, 1, &[&["copy", "from", disk.name()][..], &consent].concat());
    assert!(err.contains("+unknown-contents"), "{err}");
    // And back again.
    expect(at, 0, &["copy", disk.name(), "./back"]);
    assert!(std::fs::read(at.join("back")).unwrap()[..8 * MIB as usize] == held());
}

#[test]
fn simulated_devices_share_one_clock_and_more_channels_are_faster() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    describe(at, "one", 1);
    describe(at, "eight", 8);
    std::fs::write(at.join("from"), contents(16 * MIB)).unwrap();
    let took = |from: &str, to: &str| {
        let facts = json(at, &["copy", from, to, "--block-size", "4K", "--verify"]);
        assert_eq!(facts["verified"], true);
        assert_eq!(facts["wall"].is_null(), from.starts_with("sim:"), "{facts}");
        facts["virtual_time"]["elapsed_ns"].as_u64().expect("virtual time passed")
    };
    let (one, eight) = (took("sim:one.toml", "sim:one.toml"), took("sim:eight.toml", "sim:eight.toml"));
    assert!(eight * 3 < one, "eight channels took {eight} ns, one {one} ns");
    assert_eq!(took("sim:eight.toml", "sim:eight.toml"), eight, "the same each time");
    // Memory beside it is on its clock and takes none of it, and neither does a file: the
    // device is met by eight writes at once.
    let facts = json(at, &["copy", "mem:16M", "sim:eight.toml", "--block-size", "4K"]);
    assert!(facts["wall"].is_null(), "{facts}");
    assert_eq!(facts["virtual_time"]["elapsed_ns"].as_u64(), Some(took("from", "sim:eight.toml")));
    assert!(took("from", "sim:eight.toml") <= eight);
}

#[test]
fn memory_and_nothing_are_targets_of_programs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), contents(MIB)).unwrap();
    for (from, to) in [("from", "mem:1M"), ("mem:2M", "mem:3M"), ("null:1M", "./zeros"), ("from", "null:")] {
        let facts = json(at, &["copy", from, to]);
        assert!(facts["wall"]["elapsed_ns"].as_u64().is_some() && facts["verified"].is_null(), "{facts}");
    }
    assert!(std::fs::read(at.join("zeros")).unwrap()[..MIB as usize].iter().all(|byte| *byte == 0));
    let (_, err) = expect(at, 1, &["copy", "from", "null:", "--verify"]);
    assert!(err.contains("is no copy of") && err.contains("at byte 0"), "{err}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), contents(2 * MIB)).unwrap();
    std::fs::write(at.join("odd"), [1; 1000]).unwrap();
    std::fs::write(at.join("theirs"), contents(4 * MIB)).unwrap();
    std::os::unix::fs::symlink("from", at.join("link")).unwrap();
    for (code, args, word) in [
        (2, &["missing", "./to"][..], "nothing is called missing"),
        (2, &["./missing", "./to"], "nothing is there to be copied"),
        (2, &["from", "mem:1M"], "less than the 2M of"),
        (2, &["from", "mem:1000"], "a multiple of 512B"),
        (2, &["from", "mem:4000T"], "at most half"),
        (2, &["from", "from"], "name two targets"),
        (2, &["from", "link"], "name two targets"),
        (2, &["odd", "./to"], "truncate -s %512"),
        (2, &["from", "./to", "--requests", "0"], "type 1 to 1024"),
        (2, &["from", "./to", "--block-size", "0"], "type a size"),
        (2, &["from", "./to", "--block-size", "1G"], "type a size"),
        (2, &["from", "./to", "--block-size", "256M"], "to below 256M"),
        (2, &["null:1M", "nowhere"], "for a new scratch file type ./nowhere\n"),
        (1, &["null:4T", "./to"], "name a TO on another disk"),
        (2, &["from", "./to", "--block-size", "1000"], "a multiple of 512"),
        (2, &["from", "mtron"], "did you mean sim:mtron"),
        (1, &["from", "theirs"], "uflip did not make"),
    ] {
        let (_, err) = expect(at, code, &[&["copy"][..], args].concat());
        assert!(err.contains(word), "{args:?}: {err}");
    }
    assert!(!at.join("to").exists());
    assert!(std::fs::read(at.join("theirs")).unwrap() == contents(4 * MIB));
}

#[test]
fn an_interrupted_copy_says_how_far_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A terabyte of nothing takes long enough.
    let child = uflip()
        .current_dir(at)
        .args(["copy", "null:1T", "null:1T", "--block-size", "4K"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once it is under way: SIGINT is caught.
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
        u64::from_str_radix(line, 16).unwrap_or(0) & 2 != 0
    };
    while !catches() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("interrupted") && err.contains("holds only some of"), "{err}");
    assert!(
        err.contains("stopping; what is written by then stays") && !err.contains("run in progress"),
        "{err}"
    );
}

#[test]
fn a_copy_without_results_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run_in(folder.path(), &["copy", "mem:1M", "mem:1M"]).status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_source_in_use_and_an_end_that_stays_are_said_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("from"), contents(2 * MIB)).unwrap();
    let quiet = json(at, &["copy", "from", "./to", "-o", "quiet"]);
    assert_eq!(quiet["warnings"], serde_json::json!([]));
    let writer = std::fs::OpenOptions::new().append(true).open(at.join("from")).unwrap();
    let path = at.canonicalize().unwrap().join("to").display().to_string();
    std::fs::write(at.join("short"), contents(MIB)).unwrap();
    let (out, err) = expect(at, 0, &["copy", "from", "mem:2M", "-o", "used", "--json"]);
    let facts: Value = serde_json::from_str(&out).unwrap();
    let said = |facts: &Value, word: &str| {
        let warnings = facts["warnings"].as_array().unwrap();
        warnings.len() == 1 && warnings[0].as_str().unwrap().contains(word)
    };
    let process = format!("open for writing in process {} (", std::process::id());
    assert!(said(&facts, &process) && said(&facts, "is in use"), "{facts}");
    assert!(err.contains(&process), "{err}");
    drop(writer);
    let facts = json(at, &["copy", "short", "to", "--erase-device", &path, "-o", "longer"]);
    assert!(said(&facts, "the last 1048576 bytes, from 1M on, stay as they are"), "{facts}");
    assert!(
        std::fs::read(at.join("to")).unwrap()[MIB as usize..2 * MIB as usize]
            == contents(2 * MIB)[MIB as usize..]
    );
    // Kept as findings, where anything was found.
    for (name, expected) in [("quiet", 0), ("used", 1), ("longer", 1)] {
        let profile: Value =
            serde_json::from_slice(&std::fs::read(at.join(name).join("profile.json")).unwrap()).unwrap();
        let warned = |finding: &&Value| finding["code"] == "target_warning";
        let found = profile["soundness"].as_array().unwrap().iter().filter(warned).count();
        assert_eq!(found, expected, "{name}: {profile}");
    }
}

#[test]
fn a_mounted_source_is_copied_with_a_loud_word() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(disk) = Loop::new(8 * MIB) else { return };
    std::fs::create_dir(at.join("mnt")).unwrap();
    let run = |program: &str, args: &[&str]| {
        std::process::Command::new(program)
            .args(args)
            .current_dir(at)
            .output()
            .is_ok_and(|out| out.status.success())
    };
    if !run("mkfs.ext4", &["-q", disk.name()]) || !run("mount", &[disk.name(), "mnt"]) {
        crate::support::skipped("no ext4 file system can be made and mounted");
        return;
    }
    let copied = run_in(at, &["copy", disk.name(), "mem:8M", "-o", "out"]);
    let unmounted = run("umount", &["mnt"]);
    let err = text(&copied.stderr);
    assert!(copied.status.success() && unmounted, "{err}");
    assert!(err.contains("is in use (mounted at ") && err.contains("may be in the copy in part"), "{err}");
    let (out, _) = expect(at, 0, &["show", "out"]);
    assert!(out.contains("is in use"), "{out}");
}
