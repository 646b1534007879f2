//! Scratch files in the hands of others: what is not ours is neither written
//! nor removed, and holes are never measured in silence.

use crate::support::{expect, finished_runs, is_root, run_in, signal, skipped, text, uflip, wait_until};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MAKE: [&str; 8] = ["pattern", "./f", "--base", "RW", "--io-count", "8", "--scratch-size", "16M"];
const WRITE: [&str; 6] = ["pattern", "./f", "--base", "RW", "--io-count", "8"];
const READ: [&str; 6] = ["pattern", "./f", "--base", "SR", "--io-count", "8"];

fn diary(length: u64) -> Vec<u8> {
    let mut text = "Dear diary, today I saved my life's work. ".repeat(length as usize / 40 + 1);
    text.truncate(length as usize);
    text.into_bytes()
}

/// A scratch file of 16 MiB called `f`.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    expect(folder.path(), 0, &MAKE);
    let path = folder.path().join("f");
    (folder, path)
}

/// The same, cut off by a kill while it was made.
fn unfinished() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let args = ["pattern", "./f", "--scratch-size", "512M", "--base", "RW", "--io-count", "8"];
    let mut child = uflip().current_dir(folder.path()).args(args).stderr(Stdio::null()).spawn().unwrap();
    let path = folder.path().join("f");
    let begun = || {
        let sidecar = std::fs::read_to_string(folder.path().join("f.uflip"));
        sidecar.is_ok_and(|text| text.contains("\"complete\":false"))
            && std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= 1 << 20)
    };
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(child.id(), "KILL");
    assert!(!child.wait().unwrap().success() && begun(), "killed in the middle");
    (folder, path)
}

/// Nothing happens to the file, whatever writes are asked for.
#[track_caller]
fn stays(folder: &Path, path: &Path) {
    let before = std::fs::read(path).unwrap();
    for args in [&WRITE[..], &["run", "./f", "-o", "o", "--only", "order"]] {
        let (_, err) = expect(folder, 1, args);
        assert!(err.contains("uflip") && err.contains("name a"), "{err}");
    }
    assert!(std::fs::read(path).unwrap() == before, "the file was changed");
}

#[test]
fn a_copy_of_the_same_size_put_over_a_scratch_file_is_not_written() {
    let (folder, path) = scratch();
    let length = std::fs::metadata(&path).unwrap().len();
    let inode = std::fs::metadata(&path).unwrap().ino();
    std::fs::write(folder.path().join("work"), diary(length)).unwrap();
    let copied = Command::new("cp").arg(folder.path().join("work")).arg(&path).status().unwrap();
    assert!(copied.success());
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode, "cp writes over it");
    stays(folder.path(), &path);
}

#[test]
fn what_dd_writes_into_a_scratch_file_is_not_written_over() {
    let (folder, path) = scratch();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&diary(1 << 20), 5 << 20).unwrap();
    stays(folder.path(), &path);
}

#[test]
fn a_scratch_file_cut_and_grown_again_is_not_ours() {
    let (folder, path) = scratch();
    let length = std::fs::metadata(&path).unwrap().len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(b"years of work", 0).unwrap();
    file.set_len(length).unwrap();
    stays(folder.path(), &path);
}

#[test]
fn an_unfinished_one_with_other_contents_is_not_removed() {
    for over in [true, false] {
        let (folder, path) = unfinished();
        if over {
            let length = std::fs::metadata(&path).unwrap().len();
            std::fs::write(&path, diary(length)).unwrap();
        } else {
            std::fs::write(&path, diary(1 << 20)).unwrap();
        }
        stays(folder.path(), &path);
    }
}

#[test]
fn an_unfinished_one_behind_a_loop_device_is_not_removed() {
    let _turn = crate::support::loop_turn();
    if !is_root() {
        return skipped("loop devices need root");
    }
    let (folder, path) = unfinished();
    let inode = std::fs::metadata(&path).unwrap().ino();
    let output = Command::new("losetup").args(["-f", "--show"]).arg(&path).output().unwrap();
    if !output.status.success() {
        return skipped(&format!("losetup gave no loop device: {output:?}"));
    }
    let refused = run_in(folder.path(), &WRITE);
    let there = std::fs::metadata(&path).map(|meta| meta.ino());
    let detached = Command::new("losetup").arg("-d").arg(text(&output.stdout).trim()).status().unwrap();
    let err = text(&refused.stderr);
    assert_eq!((refused.status.code(), there.ok()), (Some(1), Some(inode)), "{err}");
    assert!(err.contains("behind") && detached.success(), "{err}");
    expect(folder.path(), 0, &MAKE);
}

#[test]
fn at_the_end_of_a_benchmark_only_ours_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uflip-scratch.bin");
    let mut command = uflip();
    command.current_dir(folder.path()).args(["run", "-o", "o", "--scratch-size", "16M", "--only", "order"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    while finished_runs(&folder.path().join("o")).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::write(folder.path().join("work"), "years of work").unwrap();
    std::fs::rename(folder.path().join("work"), &path).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.contains("the scratch file is not removed") && err.contains("stays as it is"), "{err}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "years of work");
    assert!(folder.path().join("o/report.html").exists());
}

/// Whether any part of the file is a hole or was never written; `None` where
/// the file system does not tell.
fn has_holes(path: &Path) -> Option<bool> {
    use uflip_device::scratch::{extents, holes_warning};
    let file = std::fs::File::open(path).unwrap();
    let found = extents(&file).unwrap()?;
    Some(holes_warning(&found, uflip_device::Bytes(file.metadata().unwrap().len())).is_some())
}

const TRIM: [&str; 6] = ["pattern", "./f", "--pattern", "ST(io_size=1M)", "--io-count", "4"];

#[test]
fn holes_that_trims_made_are_filled_before_anything_is_measured() {
    let (folder, path) = scratch();
    if has_holes(&path).is_none() {
        return skipped("the temporary folder's file system tells no extents");
    }
    let commands: [&[&str]; 4] = [
        &READ,
        &WRITE,
        &["run", "./f", "-o", "o", "--only", "order"],
        &["logical-block", "./f", "--bytes", "1M", "--largest", "64K", "-o", "l"],
    ];
    for args in commands {
        let (out, _) = expect(folder.path(), 0, &[&TRIM[..], &["--json"]].concat());
        let facts: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(facts["end"].get("incidents"), None, "a run that trims is what was asked for: {facts}");
        assert_eq!(has_holes(&path), Some(true));
        let (_, err) = expect(folder.path(), 0, args);
        assert!(err.contains("4M of") && err.contains("filled again"), "{args:?}: {err}");
        assert_eq!(has_holes(&path), Some(false), "{args:?}");
    }
}

#[test]
fn between_runs_the_holes_of_trims_are_filled_before_the_next_run() {
    let (folder, path) = scratch();
    if has_holes(&path).is_none() {
        return skipped("the temporary folder's file system tells no extents");
    }
    let (out, _) =
        expect(folder.path(), 0, &["plan", "./f", "--only", "order", "--method", "fixed", "--json"]);
    let mut plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    // The first two runs become a trim and a run of reads.
    let steps = plan["steps"].as_array_mut().unwrap();
    steps.retain(|step| step["step"] == "run");
    steps.truncate(2);
    for (step, pattern) in
        steps.iter_mut().zip(["ST(io_size=1M, target_size=16M)", "SR(io_size=32K, target_size=16M)"])
    {
        // Of no micro-benchmark, which would say what they do.
        (step["purpose"], step["baseline"], step["point"]) =
            ("single".into(), serde_json::Value::Null, serde_json::Value::Null);
        step["pattern"] = pattern.into();
        step["io_count"] = 4.into();
        step["io_ignore"] = 0.into();
    }
    std::fs::write(folder.path().join("p.json"), plan.to_string()).unwrap();
    let (_, err) = expect(folder.path(), 0, &["run", "./f", "-o", "o", "--plan", "p.json"]);
    assert!(err.contains("filled again"), "{err}");
    assert_eq!(has_holes(&path), Some(false));
    let rows = std::fs::read_to_string(folder.path().join("o/runs.ndjson")).unwrap();
    assert!(!rows.contains("layout_changed"), "{rows}");
}

#[test]
fn trims_beside_other_ios_are_refused_on_files() {
    let (folder, path) = scratch();
    let args = ["pattern", "./f", "--pattern", "ST(io_size=32K) | SR(io_size=32K)", "--io-count", "8"];
    let (_, err) = expect(folder.path(), 2, &args);
    assert!(err.contains("holes") && err.contains("block device"), "{err}");
    assert_ne!(has_holes(&path), Some(true));
}

#[test]
fn a_file_of_somebody_elses_with_holes_is_read_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, diary(4 << 20)).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(16 << 20).unwrap();
    if has_holes(&path).is_none() {
        return skipped("the temporary folder's file system tells no extents");
    }
    let (_, err) = expect(folder.path(), 0, &READ);
    assert!(err.contains("warning: 12M of its 16M are not on the disk"), "{err}");
    std::fs::write(folder.path().join("a.job"), "std  sr  bs=32K count=8\n").unwrap();
    expect(folder.path(), 0, &["job", "./f", "a.job", "-o", "o"]);
    let profile = std::fs::read_to_string(folder.path().join("o/profile.json")).unwrap();
    assert!(profile.contains("12M of its 16M are not on the disk"), "{profile}");
    assert_eq!(std::fs::metadata(&path).unwrap().blocks() * 512, 4 << 20, "nothing was filled");
}

#[test]
fn a_file_cut_and_grown_again_in_the_middle_is_a_finding() {
    let (folder, path) = scratch();
    if has_holes(&path).is_none() {
        return skipped("the temporary folder's file system tells no extents");
    }
    std::fs::write(folder.path().join("a.job"), "std  rr  bs=32K time=3s size=8M\nmis  sr  bs=32K count=8\n")
        .unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let mut command = uflip();
    command.current_dir(folder.path()).args(["job", "./f", "a.job", "-o", "o"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // In the middle of its first run: it has read more than the file has bytes.
    let counts = format!("/proc/{}/io", child.id());
    let read = || {
        let counts = std::fs::read_to_string(&counts).ok()?;
        counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok())
    };
    wait_until("its reads are on their way", || read().is_some_and(|bytes| bytes > length + (8 << 20)));
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(12 << 20).unwrap();
    file.set_len(length).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.contains("came to lie otherwise"), "{err}");
    let rows = std::fs::read_to_string(folder.path().join("o/runs.ndjson")).unwrap();
    assert!(rows.contains("\"layout_changed\":true"), "{rows}");
    let profile = std::fs::read_to_string(folder.path().join("o/profile.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&profile).unwrap();
    let findings = profile["soundness"].as_array().unwrap();
    assert!(
        findings.iter().any(|f| f["code"] == "layout_changed" && f["severity"] == "serious"),
        "{findings:?}"
    );
}

#[test]
fn a_scratch_file_of_the_former_format_says_what_to_do() {
    let (folder, path) = scratch();
    let sidecar = folder.path().join("f.uflip");
    let new: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&sidecar).unwrap()).unwrap();
    let old = format!(
        "{{\"format\":\"uflip-scratch-1\",\"st_dev\":{},\"st_ino\":{},\"born_ns\":{},\"size\":{},\"created\":{},\"complete\":true}}\n",
        new["st_dev"],
        new["st_ino"],
        new["born_ns"],
        std::fs::metadata(&path).unwrap().len(),
        new["created"]
    );
    std::fs::write(&sidecar, old).unwrap();
    let (_, err) = expect(folder.path(), 1, &WRITE);
    let f = path.canonicalize().unwrap();
    assert!(err.contains("earlier uflip"), "{err}");
    assert!(err.contains(&format!("remove {0} and {0}.uflip", f.display())), "{err}");
    expect(folder.path(), 0, &READ);
    std::fs::remove_file(&path).unwrap();
    expect(folder.path(), 0, &MAKE);
}

#[test]
fn every_content_that_runs_write_stays_ours() {
    let (folder, path) = scratch();
    let write = ["pattern", "./f", "--base", "SW", "--io-count", "512", "--seed", "3"];
    for data in ["zeros", "0xa5", "age", "cyclic", "random"] {
        for engine in ["sync", "io_uring"] {
            expect(folder.path(), 0, &[&write[..], &["--data", data, "--engine", engine]].concat());
        }
    }
    expect(folder.path(), 0, &WRITE);
    let length = std::fs::metadata(&path).unwrap().len();
    assert_eq!(length, (16 << 20) + 4096, "no run touches the header");
}

#[test]
fn holes_in_the_file_behind_a_loop_device_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let backing = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
    let Some(device) = crate::support::Loop::over(backing, 16 << 20) else { return };
    let args = ["pattern", device.name(), "--base", "RR", "--io-count", "8"];
    let (_, err) = expect(folder.path(), 0, &args);
    assert!(err.contains("warning: the file behind it") && err.contains("hole"), "{err}");
    // Full of data it has none.
    std::process::Command::new("dd")
        .args(["if=/dev/urandom", "bs=1M", "count=16", "conv=fsync", "status=none"])
        .arg(format!("of={}", device.name()))
        .status()
        .unwrap();
    let (_, err) = expect(folder.path(), 0, &args);
    assert!(!err.contains("the file behind it"), "{err}");
}
