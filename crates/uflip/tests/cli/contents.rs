//! Whose data is on a device, at the level of commands: what is neither blank
//! nor ours is confirmed by name, whatever a list of signatures knows.

use crate::support::{FIXED, Loop, expect, finished_runs, is_root, run_in, signal, skipped, text, uflip};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

/// Bytes that look like nothing known and are not ours.
fn foreign(mib: u64) -> Vec<u8> {
    let once = (0..MIB).map(|k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1);
    once.collect::<Vec<u8>>().repeat(mib as usize)
}

/// A loop device of `mib` MiB with foreign bytes in `held`, blank elsewhere.
fn device_with(mib: u64, held: std::ops::Range<u64>) -> Option<Loop> {
    let device = Loop::new(mib * MIB)?;
    let file = File::options().write(true).open(&device.device).expect("the device opens");
    file.write_all_at(&foreign(held.end - held.start), held.start * MIB).expect("writes");
    file.sync_all().expect("syncs");
    Some(device)
}

fn bytes_of(device: &Loop) -> Vec<u8> {
    fs::read(&device.device).expect("the device can be read")
}

/// Overwrites `mib` MiB from the start, with consent `given`; gives what was
/// said.
#[track_caller]
fn overwrite(device: &Loop, mib: u64, given: &str, more: &[&str], code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (size, count) = (format!("{mib}M"), mib.to_string());
    let mut args = vec!["pattern", device.name(), "--base", "SW", "--io-size", "1M", "--io-count", &count];
    args.extend(["--target-size", &size, "--erase-device", given]);
    args.extend(more);
    expect(folder.path(), code, &args).1
}

/// The case: a full device whose first 2 MiB and last MiB are zeros.
#[test]
fn unknown_contents_are_confirmed_by_name() {
    let Some(device) = device_with(64, 2..63) else { return };
    let before = bytes_of(&device);
    let name = device.name();
    let tagged = format!("{name}+unknown-contents");
    for given in [name.to_string(), format!("{name}+ext4"), format!("{name}+partitions")] {
        let said = overwrite(&device, 64, &given, &[], 1);
        assert!(said.contains(&format!("--erase-device {tagged}")), "{said}");
        assert!(said.contains("460 places") && said.contains("chance of 0.98 %"), "{said}");
    }
    assert!(bytes_of(&device) == before, "nothing was written");
    let folder = tempfile::tempdir().unwrap();
    let listed = expect(folder.path(), 0, &["devices"]).0;
    let entry = listed.split("\n\n").find(|entry| entry.starts_with(&format!("{name}\n"))).unwrap_or(&listed);
    for part in ["unknown contents", "460 places", &tagged] {
        assert!(entry.contains(part), "{part} is not in\n{entry}");
    }
    overwrite(&device, 64, &tagged, &[], 0);
    // All of it is ours now: the name alone does, and so does what was typed before.
    overwrite(&device, 64, name, &[], 0);
    overwrite(&device, 64, &tagged, &[], 0);
    overwrite(&device, 64, &format!("{tagged}+ext4"), &[], 0);
    // What is no kind of contents confirms nothing.
    for word in ["mounted", "root", "held", "", "Ext4"] {
        overwrite(&device, 64, &format!("{name}+{word}"), &[], 1);
    }
}

/// A hundredth of a device, wherever it lies together.
#[test]
fn data_on_a_hundredth_of_a_device_are_found_wherever_they_lie() {
    for start in [3, 97, 150, 198] {
        let Some(device) = device_with(200, start..start + 2) else { return };
        let said = overwrite(&device, 1, device.name(), &[], 1);
        assert!(said.contains("+unknown-contents"), "at {start} MiB: {said}");
    }
}

/// What a first command overwrote is not asked for again, and what it left is.
#[test]
fn a_device_half_overwritten_is_confirmed_by_what_is_left() {
    let Some(device) = device_with(64, 40..60) else { return };
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-E", "nodiscard"]).arg(&device.device).output();
    if !made.is_ok_and(|o| o.status.success()) {
        return skipped("mkfs.ext4 is not here");
    }
    let name = device.name();
    let (ext4, both) = (format!("{name}+ext4"), format!("{name}+ext4+unknown-contents"));
    let said = overwrite(&device, 32, &format!("{name}+unknown-contents"), &[], 1);
    assert!(said.contains(&format!("--erase-device {ext4}\n")) || said.trim_end().ends_with(&ext4), "{said}");
    overwrite(&device, 32, &ext4, &[], 0);
    // The superblock is gone, the files' contents are not.
    let said = overwrite(&device, 64, &ext4, &[], 1);
    assert!(said.contains("+unknown-contents"), "{said}");
    overwrite(&device, 64, &both, &[], 0);
    overwrite(&device, 64, &ext4, &[], 0);
}

/// Uniform contents of our own carry no stamp: they count as unknown, and zeros
/// as blank.
#[test]
fn uniform_contents_are_unknown_and_zeros_are_blank() {
    let Some(device) = Loop::new(16 * MIB) else { return };
    let name = device.name();
    overwrite(&device, 16, name, &["--data", "0x55"], 0);
    let said = overwrite(&device, 16, name, &[], 1);
    assert!(said.contains("+unknown-contents"), "{said}");
    overwrite(&device, 16, &format!("{name}+unknown-contents"), &["--data", "zeros"], 0);
    overwrite(&device, 16, name, &[], 0);
    overwrite(&device, 16, name, &["--data", "zeros"], 0);
    assert!(bytes_of(&device).iter().all(|byte| *byte == 0));
}

/// File systems whose first 2 MiB and last MiB were wiped.
#[test]
fn a_file_system_without_its_ends_is_not_taken_for_blank() {
    if !is_root() {
        return skipped("loop devices need root");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/file"), foreign(16)).unwrap();
    let made: [(&str, &str); 4] = [
        ("mke2fs", "mke2fs -q -F -t ext4 -d src"),
        ("mkfs.btrfs", "mkfs.btrfs -q -f --rootdir src"),
        ("mkfs.f2fs", "mkfs.f2fs -q -f"),
        ("mkfs.ocfs2", "mkfs.ocfs2 -q -M local --fs-feature-level=max-compat -N1"),
    ];
    for (program, script) in made {
        let backing = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
        backing.as_file().set_len(128 * MIB).unwrap();
        let script = format!("{script} {}", backing.path().display());
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-ec", &script]);
        let output = command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output().unwrap();
        if !output.status.success() {
            skipped(&format!("{program}: {}", text(&output.stderr).lines().next().unwrap_or("no word")));
            continue;
        }
        // What takes no folder is filled behind its ends.
        if !script.contains("src") {
            backing.as_file().write_all_at(&foreign(4), 70 * MIB).unwrap();
        }
        backing.as_file().write_all_at(&vec![0; 2 << 20], 0).unwrap();
        backing.as_file().write_all_at(&vec![0; 1 << 20], 127 * MIB).unwrap();
        let Some(device) = Loop::over(backing, 128 * MIB) else { return };
        let before = bytes_of(&device);
        let said = overwrite(&device, 128, device.name(), &[], 1);
        assert!(said.contains("--erase-device"), "{program}: {said}");
        assert!(said.contains("+unknown-contents") || said.contains("holds "), "{program}: {said}");
        assert!(bytes_of(&device) == before, "{program}: written to");
    }
}

/// Killed half way, and gone on with by what was typed at first.
#[test]
fn a_benchmark_on_unknown_contents_is_resumed_by_the_same_words() {
    let Some(device) = device_with(32, 1..30) else { return };
    let folder = tempfile::tempdir().unwrap();
    let consent = format!("{}+unknown-contents", device.name());
    let out = folder.path().join("o");
    let args =
        ["run", device.name(), "-o", "o", "--only", "order", "--seed", "5", "--erase-device", &consent];
    let args = [&args[..], &FIXED].concat();
    let mut command = uflip();
    command.current_dir(folder.path()).args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    while finished_runs_or_none(&out) < 3 && child.try_wait().expect("can be asked").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    signal(child.id(), "KILL");
    child.wait().expect("ends");
    let before = finished_runs_or_none(&out);
    assert!(before >= 3, "it ended before it could be killed");
    let resumed = run_in(folder.path(), &["run", "--resume", "-o", "o", "--erase-device", &consent]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert!(finished_runs_or_none(&out) > before);
}

fn finished_runs_or_none(out: &Path) -> usize {
    if out.join("runs.ndjson").exists() { finished_runs(out).len() } else { 0 }
}
