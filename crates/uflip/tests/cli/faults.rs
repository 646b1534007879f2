//! What the world does to a benchmark: each ends with a clear message, the
//! right exit code, and a folder that can be resumed.

use crate::support::{
    FIXED, Loop, expect, finished_runs, is_root, read_until, signal, skipped, text, uflip, wait_until,
};
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A small file system in memory, unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl Mounted<'_> {
    fn tmpfs<'a>(at: &'a Path, options: &str) -> Option<Mounted<'a>> {
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "uflip-test"]).arg(at).status();
        if is_root() && status.is_ok_and(|s| s.success()) {
            return Some(Mounted(at));
        }
        skipped("a tmpfs of its own needs root");
        None
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_results_disk_fails_the_run_and_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let Some(mounted) = Mounted::tmpfs(&small, "size=120k") else { return };
    let args = ["run", "./scratch", "-o", "small/out", "--scratch-size", "16M", "--only", "granularity"];
    let args = [&args[..], &FIXED, &["--seed", "3"]].concat();
    let (_, err) = expect(folder.path(), 1, &args);
    assert!(err.contains("space") && err.contains("--resume"), "{err}");
    let before = finished_runs(&small.join("out"));
    let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&small).status().unwrap();
    assert!(grown.success());
    expect(folder.path(), 0, &[&args[..], &["--resume"]].concat());
    let after = finished_runs(&small.join("out"));
    assert_eq!(after[..before.len()], before, "what was finished before is kept as it was");
    assert!(!before.is_empty() && after.len() > before.len(), "{} and {}", before.len(), after.len());
    drop(mounted);
}

#[test]
fn a_read_only_results_folder_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let fixed = folder.path().join("fixed");
    std::fs::create_dir(&fixed).unwrap();
    let Some(mounted) = Mounted::tmpfs(&fixed, "ro,size=1m") else { return };
    let (_, err) = expect(folder.path(), 1, &["run", "-o", "fixed/out", "--scratch-size", "16M"]);
    assert!(err.contains("fixed/out") && err.to_lowercase().contains("read-only"), "{err}");
    assert!(!folder.path().join("uflip-scratch.bin").exists(), "the scratch file was made all the same");
    drop(mounted);
}

/// A loop device over a file that its own file system has no room for: the
/// first write beyond the room fails, in the middle of the benchmark.
#[test]
fn an_io_error_in_the_middle_names_the_io_and_the_folder_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let Some(mounted) = Mounted::tmpfs(&small, "size=4m") else { return };
    let Some(device) = Loop::over(tempfile::NamedTempFile::new_in(&small).unwrap(), 32 << 20) else { return };
    let out = folder.path().join("out");
    let args = ["run", device.name(), "-o", "out", "--seed", "3", "--erase-device", device.name()];
    let args = [&args[..], &FIXED, &["--only", "granularity"]].concat();
    let (_, err) = expect(folder.path(), 1, &args);
    assert!(err.contains("write of") && err.contains("at offset") && err.contains("--resume"), "{err}");
    let before = finished_runs(&out);
    assert!(before.len() >= 2, "the reads before it are kept: {before:?}");
    let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&small).status().unwrap();
    assert!(grown.success());
    expect(folder.path(), 0, &[&args[..], &["--resume"]].concat());
    assert_eq!(finished_runs(&out)[..before.len()], before);
    drop((device, mounted));
}

/// A loop device that is detached while it is open lives until its last close
/// (as pulled disks do not): the benchmark may end either way, but what is
/// kept stays, and resuming on a device that is gone says so.
#[test]
fn a_device_that_disappears_keeps_what_was_measured() {
    let Some(device) = Loop::new(32 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let args = ["run", device.name(), "-o", "out", "--seed", "3", "--erase-device", device.name()];
    let child =
        uflip().current_dir(folder.path()).args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let child = child.unwrap();
    while finished_runs(&out).len() < 3 {
        std::thread::sleep(Duration::from_millis(2));
    }
    device.detach();
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let before = finished_runs(&out);
    let (_, err) = expect(folder.path(), 1, &[&args[..], &["--resume"]].concat());
    assert!(err.contains(device.name()), "{err}");
    assert_eq!(finished_runs(&out), before);
}

#[test]
fn a_target_that_shrinks_is_a_short_read() {
    let folder = tempfile::tempdir().unwrap();
    expect(
        folder.path(),
        0,
        &["pattern", "./scratch", "--base", "SR", "--io-count", "4", "--scratch-size", "16M"],
    );
    let args = ["pattern", "./scratch", "--base", "RR", "--io-count", "200", "--pause", "5ms"];
    let child =
        uflip().current_dir(folder.path()).args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut child = child.unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    // The last line before the first IO.
    let mut err = read_until(&mut said, ", seed ");
    std::fs::File::options().write(true).open(folder.path().join("scratch")).unwrap().set_len(0).unwrap();
    said.read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{err}");
    assert!(err.contains("shrink"), "{err}");
}

#[test]
fn an_interrupt_while_the_scratch_file_is_made_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = uflip();
    command.current_dir(folder.path()).args(["run", "-o", "out", "--scratch-size", "2G"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let sidecar = folder.path().join("uflip-scratch.bin.uflip");
    let begun = || std::fs::read_to_string(&sidecar).is_ok_and(|text| text.contains("\"complete\":false"));
    wait_until("the scratch file is begun", begun);
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.contains("scratch"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_limit_on_the_length_of_files_is_an_error_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let limited = |blocks: u32, args: &[&str]| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")).arg(uflip().get_program());
        command.args(args).current_dir(folder.path()).output().unwrap()
    };
    // A scratch file that may not become as long as it should, and records.
    let output = limited(2000, &["run", "-o", "a", "--scratch-size", "32M", "--budget", "1s"]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("arge") && !folder.path().join("uflip-scratch.bin").exists(), "{err}");
    let records = ["run", "sim:mtron", "-o", "b", "--method", "fixed", "--only", "order", "--state", "none"];
    let output = limited(20, &records);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("ulimit -f"), "{err}");
    assert_eq!(run_again(folder.path()).status.code(), Some(0));
}

/// Goes on with `b` where nothing limits it.
fn run_again(folder: &Path) -> std::process::Output {
    let resume = if folder.join("b/manifest.json").exists() {
        vec!["run", "-o", "b", "--resume"]
    } else {
        vec!["run", "sim:mtron", "-o", "b", "--method", "fixed", "--only", "order", "--state", "none"]
    };
    uflip().current_dir(folder).args(resume).output().unwrap()
}
