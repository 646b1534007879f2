//! A resume goes on on the device that the benchmark began on, and on no other:
//! identity decides, not the path.

use crate::support::{expect, finished_runs, is_root, loop_turn, skipped, text};
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: u64 = 16 << 20;
const JOB: &str = "a  sw,rw  bs=4K,16K count=64 reps=2\n";

/// A loop device, detached when dropped.
struct Attached(String);

impl Attached {
    /// Over `image`, on this device where one is named; None (said aloud) where
    /// there is none to be had.
    fn over(image: &Path, device: Option<&str>) -> Option<Attached> {
        if !is_root() {
            skipped("loop devices need root");
            return None;
        }
        // What was detached may take a moment to be free.
        for _ in 0..50 {
            let mut command = Command::new("losetup");
            match device {
                Some(device) => command.arg(device),
                None => command.args(["-f", "--show"]),
            };
            match command.arg(image).output() {
                Ok(o) if o.status.success() => {
                    let told = text(&o.stdout).trim().to_string();
                    return Some(Attached(device.map_or(told, str::to_string)));
                }
                _ => std::thread::sleep(std::time::Duration::from_millis(20)),
            }
        }
        skipped("losetup gave no loop device");
        None
    }

    fn again(self, image: &Path) -> Option<Attached> {
        let name = self.0.clone();
        drop(self);
        Attached::over(image, Some(&name))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

fn image(folder: &Path, name: &str, byte: u8) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, vec![byte; SIZE as usize]).unwrap();
    path
}

/// The command that begins, without what names the device.
fn begin(folder: &Path, command: &str, target: &str) {
    let consent = ["--erase-device", target];
    let size = ["--scratch-size", "16M"];
    let consent = if target.starts_with("/dev/") { &consent } else { &size };
    let mut args = vec![command];
    args.extend([target, "-o", "out", "--seed", "7"]);
    let run = ["--method", "fixed", "--only", "order", "--baselines", "SW,RW", "--budget", "3s"];
    if command == "job" {
        std::fs::write(folder.join("a.job"), JOB).unwrap();
        args.push("a.job");
    } else {
        args.extend(run);
    }
    expect(folder, 0, &[&args[..], consent].concat());
    cut(folder);
}

/// As an interruption leaves it: half of the runs are missing.
fn cut(folder: &Path) -> usize {
    let file = folder.join("out/runs.ndjson");
    let all = std::fs::read_to_string(&file).unwrap();
    let half: String = all.split_inclusive('\n').take(all.lines().count() / 2).collect();
    std::fs::write(&file, &half).unwrap();
    half.lines().count()
}

fn resume(folder: &Path, code: i32, command: &str, target: Option<&str>, more: &[&str]) -> String {
    let mut args = vec![command];
    args.extend(target);
    args.extend(["-o", "out", "--resume"]);
    expect(folder, code, &[&args[..], more].concat()).1
}

fn manifest(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("out/manifest.json")).unwrap()).unwrap()
}

#[test]
fn resume_refuses_another_device() {
    let _turn = loop_turn();
    for (command, byte) in [("run", 0), ("job", 0), ("run", b'x')] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (first, other) = (image(folder, "a.img", 0), image(folder, "b.img", byte));
        let Some(device) = Attached::over(&first, None) else { return };
        begin(folder, command, &device.0);
        let kept = finished_runs(&folder.join("out"));
        let Some(device) = device.again(&other) else { return };
        let name = device.0.clone();
        let err = resume(folder, 1, command, Some(&name), &["--erase-device", &name]);
        for part in
            ["another device", "backing file", "a.img", "b.img", "--other-device", "nothing was written"]
        {
            assert!(err.contains(part), "{command}: {part}\n{err}");
        }
        assert_eq!(finished_runs(&folder.join("out")), kept, "{command}");
        assert!(std::fs::read(&other).unwrap().iter().all(|b| *b == byte), "{command}: it was written to");
    }
}

#[test]
fn an_image_put_in_the_place_of_another_is_another_device() {
    let _turn = loop_turn();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = image(folder, "a.img", 0);
    let Some(device) = Attached::over(&first, None) else { return };
    begin(folder, "run", &device.0);
    let name = device.0.clone();
    drop(device);
    std::fs::remove_file(&first).unwrap();
    let second = image(folder, "a.img", 0);
    let Some(device) = Attached::over(&second, Some(&name)) else { return };
    let err = resume(folder, 1, "run", None, &["--erase-device", &name]);
    assert!(err.contains("another device"), "{err}");
    assert!(std::fs::read(&second).unwrap().iter().all(|b| *b == 0), "it was written to");
    drop(device);
}

/// The same file, but nothing of what uflip wrote stands in it: only the
/// contents tell.
#[test]
fn contents_tell_where_nothing_else_does() {
    let _turn = loop_turn();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = image(folder, "a.img", 0);
    let Some(device) = Attached::over(&first, None) else { return };
    begin(folder, "run", &device.0);
    let name = device.0.clone();
    drop(device);
    image(folder, "a.img", 0);
    let Some(device) = Attached::over(&first, Some(&name)) else { return };
    let err = resume(folder, 1, "run", None, &["--erase-device", &name]);
    assert!(err.contains("its contents"), "{err}");
    assert!(std::fs::read(&first).unwrap().iter().all(|b| *b == 0), "it was written to");
    drop(device);
}

#[test]
fn the_same_image_under_another_name_goes_on() {
    let _turn = loop_turn();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (first, other) = (image(folder, "a.img", 0), image(folder, "b.img", 0));
    let Some(device) = Attached::over(&first, None) else { return };
    begin(folder, "run", &device.0);
    let Some(occupied) = device.again(&other) else { return };
    let Some(moved) = Attached::over(&first, None) else { return };
    let err = resume(folder, 1, "run", None, &["--erase-device", &occupied.0]);
    let told = format!("uflip run {} -o out --resume --erase-device", moved.0);
    assert!(err.replace(&folder.join("out").display().to_string(), "out").contains(&told), "{told}\n{err}");
    // What was told works, word by word.
    let line = err.lines().find(|line| line.trim().starts_with("uflip run")).unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let (_, err) = expect(folder, 0, &words);
    assert!(err.contains("is the device that was"), "{err}");
    assert!(std::fs::read(&other).unwrap().iter().all(|b| *b == 0), "the other was written to");
    assert_eq!(manifest(folder)["target"].get("changed"), None, "it is no change of the device");
    // From now on that is its name.
    cut(folder);
    resume(folder, 0, "run", None, &["--erase-device", &moved.0]);
}

/// Removed, or another file of the same size in its place.
#[test]
fn a_removed_scratch_file_is_not_made_again_in_silence() {
    for command in ["run", "job"] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        begin(folder, command, "./scratch");
        let kept = finished_runs(&folder.join("out")).len();
        std::fs::rename(folder.join("scratch"), folder.join("away")).unwrap();
        let err = resume(folder, 1, command, Some("scratch"), &[]);
        assert!(err.contains("nothing is there any more") && err.contains("--other-device"), "{err}");
        assert!(!folder.join("scratch").exists(), "{command}: it was made again");
        // A copy is another file.
        std::fs::copy(folder.join("away"), folder.join("scratch")).unwrap();
        let before = std::fs::read(folder.join("scratch")).unwrap();
        let err = resume(folder, 1, command, Some("scratch"), &[]);
        assert!(err.contains("its file was"), "{err}");
        assert!(std::fs::read(folder.join("scratch")).unwrap() == before, "{command}: it was written to");
        std::fs::remove_file(folder.join("scratch")).unwrap();
        // Where it is wanted, the results say so.
        let _ = std::fs::remove_file(folder.join("scratch.uflip"));
        let err = resume(folder, 0, command, Some("scratch"), &["--other-device"]);
        assert!(err.contains("another device is measured from here on"), "{err}");
        let manifest = manifest(folder);
        assert_eq!(manifest["target"]["changed"][0]["runs_kept"], kept);
        let first = manifest["target"]["changed"][0]["from_run"].as_u64().unwrap();
        let profile = std::fs::read_to_string(folder.join("out/profile.json")).unwrap();
        let profile: serde_json::Value = serde_json::from_str(&profile).unwrap();
        let finding = profile["soundness"].as_array().unwrap().iter().find(|f| f["code"] == "device_changed");
        let finding = finding.expect("a finding");
        assert_eq!((&finding["severity"], finding["runs"][0].as_u64()), (&"serious".into(), Some(first)));
        assert_eq!(
            finding["runs"].as_array().unwrap().len(),
            finished_runs(&folder.join("out")).len() - kept
        );
        // The new file is the one that is measured from now on.
        resume(folder, 0, command, Some("scratch"), &[]);
    }
}

#[test]
fn every_resume_asks_for_the_scratch_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let block = ["--bytes", "1M", "--largest", "8K", "--scratch-size", "4M", "--seed", "1", "-o", "out"];
    expect(folder, 0, &[&["logical-block", "./s"], &block[..]].concat());
    cut(folder);
    std::fs::remove_file(folder.join("s")).unwrap();
    let err = resume(folder, 1, "logical-block", Some("s"), &[]);
    assert!(err.contains("uflip logical-block") && err.contains("--other-device"), "{err}");
    assert!(!folder.join("s").exists());
    let err = resume(folder, 2, "run", None, &[]);
    assert!(err.contains("made by uflip logical-block") && !folder.join("s").exists(), "{err}");
    std::fs::remove_dir_all(folder.join("out")).unwrap();
    let args = [
        "calibrate",
        "./c",
        "--scratch-size",
        "16M",
        "--only",
        "order",
        "--seed",
        "1",
        "--budget",
        "5s",
        "-o",
        "out",
    ];
    expect(folder, 0, &args);
    std::fs::remove_file(folder.join("c")).unwrap();
    for command in ["run", "calibrate"] {
        let err = resume(folder, 1, command, None, &[]);
        assert!(err.contains("--other-device") && !folder.join("c").exists(), "{err}");
    }
}

/// Folders of earlier versions have no identity; what they have is compared.
#[test]
fn a_folder_of_before_is_compared_by_what_it_has() {
    let _turn = loop_turn();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (first, other) = (image(folder, "a.img", 0), image(folder, "b.img", 0));
    let Some(device) = Attached::over(&first, None) else { return };
    begin(folder, "run", &device.0);
    let mut of_before = manifest(folder);
    of_before["target"].as_object_mut().unwrap().remove("identity");
    of_before.as_object_mut().unwrap().remove("check");
    std::fs::write(folder.join("out/manifest.json"), of_before.to_string()).unwrap();
    let Some(device) = device.again(&other) else { return };
    let err = resume(folder, 1, "run", None, &["--erase-device", &device.0]);
    assert!(err.contains("its backing file was"), "{err}");
    assert!(std::fs::read(&other).unwrap().iter().all(|b| *b == 0), "it was written to");
    let Some(device) = device.again(&first) else { return };
    let err = resume(folder, 0, "run", None, &["--erase-device", &device.0]);
    assert!(err.contains("begun by an earlier version"), "{err}");
}

#[test]
fn a_simulated_device_described_otherwise_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (toml, _) = expect(folder, 0, &["sim", "show", "mtron", "--json"]);
    let mut description: serde_json::Value = serde_json::from_str(&toml).unwrap();
    let write = |description: &serde_json::Value| {
        let kept = without_nulls(description);
        std::fs::write(folder.join("d.toml"), toml::to_string(&kept).unwrap()).unwrap();
    };
    write(&description);
    let args = ["job", "sim:d.toml", "a.job", "-o", "out", "--seed", "1"];
    std::fs::write(folder.join("a.job"), JOB).unwrap();
    expect(folder, 0, &args);
    cut(folder);
    description["name"] = "another".into();
    write(&description);
    let err = resume(folder, 1, "job", Some("sim:d.toml"), &[]);
    assert!(err.contains("description.name was") && err.contains("another"), "{err}");
}

fn without_nulls(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Number and size are what they were, the place is not.
#[test]
fn a_partition_that_was_moved_is_another_device() {
    let _turn = loop_turn();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let image = folder.join("a.img");
    std::fs::File::create(&image).unwrap().set_len(4 * SIZE).unwrap();
    let Some(device) = Attached::over(&image, None) else { return };
    let partition = format!("{}p1", device.0);
    let sectors = (SIZE / 512).to_string();
    // The node may take a moment to be there.
    let add = |start: u64| {
        let made = Command::new("addpart").args([&device.0, "1", &start.to_string(), &sectors]).output();
        let made = made.is_ok_and(|o| o.status.success());
        made && (0..50).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Path::new(&partition).exists()
        })
    };
    let delete = || Command::new("delpart").args([&device.0, "1"]).output();
    if !add(2048) {
        skipped("addpart made no partition");
        let _ = delete();
        return;
    }
    begin(folder, "run", &partition);
    let kept = finished_runs(&folder.join("out"));
    delete().unwrap();
    let moved = 2048 + SIZE / 512;
    assert!(add(moved), "the partition was made before");
    let err = resume(folder, 1, "run", None, &["--erase-device", &partition]);
    let told = format!("its place on the disk was sector 2048 and is sector {moved}");
    for part in ["another device", &told, "nothing was written"] {
        assert!(err.contains(part), "{part}\n{err}");
    }
    assert_eq!(finished_runs(&folder.join("out")), kept);
    let place = (moved * 512) as usize..(moved * 512 + SIZE) as usize;
    assert!(std::fs::read(&image).unwrap()[place].iter().all(|b| *b == 0), "it was written to");
    // Where it was, it is the one that was measured.
    delete().unwrap();
    assert!(add(2048), "the partition was made before");
    resume(folder, 0, "run", None, &["--erase-device", &partition]);
    delete().unwrap();
}

/// The device behind the loop device has the same name, and another file behind it.
#[test]
fn what_a_loop_device_stands_on_is_compared() {
    let _turn = loop_turn();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (first, other) = (image(folder, "a.img", 0), image(folder, "b.img", 0));
    let Some(lower) = Attached::over(&first, None) else { return };
    let Some(upper) = Attached::over(Path::new(&lower.0), None) else { return };
    let (name, under) = (upper.0.clone(), lower.0.clone());
    begin(folder, "run", &name);
    assert_eq!(manifest(folder)["target"]["identity"]["beneath"]["path"], under.as_str());
    let kept = finished_runs(&folder.join("out"));
    drop(upper);
    let Some(lower) = lower.again(&other) else { return };
    let Some(upper) = Attached::over(Path::new(&under), Some(&name)) else { return };
    let err = resume(folder, 1, "run", None, &["--erase-device", &name]);
    for part in
        ["another device", "beneath it, its backing file was", "a.img", "b.img", "nothing was written"]
    {
        assert!(err.contains(part), "{part}\n{err}");
    }
    assert_eq!(finished_runs(&folder.join("out")), kept);
    assert!(std::fs::read(&other).unwrap().iter().all(|b| *b == 0), "it was written to");
    drop(upper);
    let Some(_lower) = lower.again(&first) else { return };
    let Some(_upper) = Attached::over(Path::new(&under), Some(&name)) else { return };
    resume(folder, 0, "run", None, &["--erase-device", &name]);
}
