//! The rules of safety against real loop devices and files. Tests that need
//! root, losetup, mkfs or mount say so and do nothing where these are missing.
#![cfg(target_os = "linux")]

mod common;

use common::{LoopDevice, Mounted, serial, skipped};
use std::os::unix::fs::FileExt;
use std::path::Path;
use uflip_device::identity::SysPaths;
use uflip_device::safety::{
    self, Concern, Examination, Refusal, SafetyError, TargetKind, WritePermit, permit,
};
use uflip_device::{Bytes, Stop, scratch};

const SIZE: u64 = 32 << 20;

/// The value, or an early end of the test that says why.
macro_rules! need {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(why) => return skipped(&format!("{why}")),
        }
    };
}

fn examine(path: &Path) -> Examination {
    safety::examine(path, &SysPaths::default()).expect("it can be examined")
}

fn ask(path: &Path, consents: &[&str]) -> Result<WritePermit, Refusal> {
    let consents: Vec<String> = consents.iter().map(|text| (*text).to_string()).collect();
    permit(&examine(path), &consents)
}

/// Refused whatever is typed, for this reason.
#[track_caller]
fn never(path: &Path, concern: Concern) {
    let found = examine(path);
    assert!(found.obstacles().iter().any(|o| o.absolute && o.concern == concern), "{:?}", found.obstacles());
    assert_eq!(found.what_to_type(), None);
    let everything = [path.display().to_string(), format!("{}+ext4", path.display()), String::new()];
    let refusal = permit(&found, &everything).expect_err("must be refused");
    assert_eq!(refusal.what_to_type, None);
}

/// What to type, without the option's name.
fn value(option: Option<String>) -> String {
    option.expect("something to type").strip_prefix("--erase-device ").expect("the option").to_string()
}

#[test]
fn an_empty_device_needs_exactly_its_path() {
    let _turn = serial();
    let device = need!(LoopDevice::create(SIZE));
    let path = device.text();
    assert!(examine(device.path()).obstacles().is_empty());
    let refusal = ask(device.path(), &[]).expect_err("no consent");
    assert_eq!(refusal.what_to_type.as_deref(), Some(format!("--erase-device {path}").as_str()));
    for wrong in [
        "",
        "/dev",
        "yes",
        "/dev/loop",
        "overlayblk",
        &path[1..],
        &format!("{path}1"),
        &format!("{path}+"),
        &format!("{path}+mounted"),
        &format!("{path}+ext4+"),
    ] {
        assert!(ask(device.path(), &[wrong]).is_err(), "{wrong}");
    }
    let permit = ask(device.path(), &["/dev/other", &path]).expect("named");
    assert_eq!((permit.size(), permit.kind()), (Bytes(SIZE), TargetKind::Block));
    let file = permit.open(libc::O_DIRECT).expect("opens");
    assert!(matches!(permit.open(0), Err(SafetyError::Busy { .. })), "the first keeps its claim");
    let second = permit.reopen(&file, 0).expect("another stream");
    second.write_all_at(&[7; 4096], 4096).expect("writes");
    second.sync_all().expect("syncs");
    drop(file);
    drop(second);
    let mut back = [0u8; 4096];
    std::fs::File::open(device.backing()).unwrap().read_exact_at(&mut back, 4096).unwrap();
    assert_eq!(back, [7; 4096], "what was written is on the device");
    let found = examine(device.path());
    assert!(found.obstacles()[0].statement.contains("at byte 4096"), "unknown content is told");
    assert_eq!(found.obstacles()[0].concern, Concern::UnknownContents);
}

#[test]
fn a_signature_must_be_named() {
    let _turn = serial();
    let made: [(&str, &[&str], &str, u64); 5] = [
        ("mkfs.ext4", &["-q"], "ext4", SIZE),
        ("mke2fs", &["-q", "-t", "ext2"], "ext2", SIZE),
        ("mke2fs", &["-q", "-t", "ext3"], "ext3", SIZE),
        ("mkfs.xfs", &["-q", "-f"], "xfs", 512 << 20),
        ("mkswap", &["-q"], "swap", SIZE),
    ];
    for (command, arguments, tag, size) in made {
        let device = need!(LoopDevice::create(size));
        if let Err(why) = device.command(command, arguments) {
            skipped(&why);
            continue;
        }
        let path = device.text();
        assert!(ask(device.path(), &[&path]).is_err(), "{tag}: the path alone is not enough");
        assert!(ask(device.path(), &[&format!("{path}+ntfs")]).is_err(), "{tag}: not another one");
        let refusal = ask(device.path(), &[&path]).unwrap_err();
        assert!(refusal.to_string().contains(&format!("--erase-device {path}+{tag}")), "{refusal}");
        let permit = ask(device.path(), &[&format!("{path}+{tag}")]).expect(tag);
        permit.open(libc::O_DIRECT).expect("opens");
    }
}

#[test]
fn partitions_must_be_named_and_a_mounted_one_forbids_the_disk() {
    let _turn = serial();
    let device = need!(LoopDevice::create(64 << 20));
    let table = format!("printf 'label: gpt\\n,16M\\n,\\n' | sfdisk -q {}", device.text());
    if common::run("sh", &["-c", &table]).is_err() {
        // Without sfdisk: an MBR by hand, with one partition from 1 MiB on.
        let mut mbr = [0u8; 512];
        mbr[450] = 0x83;
        mbr[454..458].copy_from_slice(&2048u32.to_le_bytes());
        mbr[458..462].copy_from_slice(&65536u32.to_le_bytes());
        mbr[510..].copy_from_slice(&[0x55, 0xaa]);
        let file = need!(std::fs::OpenOptions::new().write(true).open(device.path()));
        need!(file.write_all_at(&mbr, 0));
        need!(file.sync_all());
        drop(file);
        // Kernels without the parser take partitions one by one.
        let _ = device.command("blockdev", &["--rereadpt"]);
        if !Path::new(&format!("{}p1", device.text())).exists() {
            need!(common::run("addpart", &[&device.text(), "1", "2048", "65536"]));
        }
    }
    let first = std::path::PathBuf::from(format!("{}p1", device.text()));
    if !first.exists() {
        return skipped("the kernel shows no partitions on loop devices");
    }
    let refusal = ask(device.path(), &[&device.text()]).expect_err("it has partitions");
    let typed = value(refusal.what_to_type);
    assert!(typed.ends_with("+partitions") && (typed.contains("+gpt") || typed.contains("+dos")), "{typed}");
    ask(device.path(), &[&typed]).expect("named").open(0).expect("opens");

    need!(common::run("mkfs.ext4", &["-q", &first.to_string_lossy()]));
    let mounted = need!(Mounted::new(&first));
    never(device.path(), Concern::Mounted);
    never(&first, Concern::Mounted);
    drop(mounted);
    let typed = value(examine(&first).what_to_type());
    assert_eq!(typed, format!("{}+ext4", first.display()), "a partition by its own path");
    ask(&first, &[&typed]).expect("named").open(0).expect("opens");
}

#[test]
fn a_mounted_device_is_never_written() {
    let _turn = serial();
    let device = need!(LoopDevice::create(SIZE));
    need!(device.command("mkfs.ext4", &["-q"]));
    let consent = format!("{}+ext4", device.text());
    let before = ask(device.path(), &[&consent]).expect("not mounted yet");
    let _mounted = need!(Mounted::new(device.path()));
    never(device.path(), Concern::Mounted);
    never(device.path(), Concern::Busy);
    assert!(matches!(before.open(0), Err(SafetyError::Busy { .. })), "mounted between permit and open");
    let listed = uflip_device::identity::list_devices(&SysPaths::default());
    let line = listed.iter().find(|line| line.facts.path == device.text()).expect("listed");
    assert!(line.refused.as_deref().is_some_and(|why| why.contains("mounted at")), "{line:?}");
    assert_eq!(line.confirm, None);
}

#[test]
fn active_swap_is_never_written() {
    let _turn = serial();
    let device = need!(LoopDevice::create(SIZE));
    need!(device.command("mkswap", &["-q"]));
    need!(device.command("swapon", &[]));
    let caught = std::panic::catch_unwind(|| never(device.path(), Concern::Swap));
    device.command("swapoff", &[]).expect("swap ends");
    caught.expect("swap is seen");
}

#[test]
fn a_device_under_device_mapper_is_never_written() {
    let _turn = serial();
    let device = need!(LoopDevice::create(SIZE));
    let name = format!("uflip-test-{}", std::process::id());
    let table = format!("0 {} linear {} 0", SIZE / 512, device.text());
    need!(common::run("dmsetup", &["create", &name, "--table", &table]));
    let caught = std::panic::catch_unwind(|| never(device.path(), Concern::Held));
    common::run("dmsetup", &["remove", "--retry", &name]).expect("the mapping ends");
    caught.expect("the holder is seen");
}

#[test]
fn a_device_opened_exclusively_elsewhere_is_never_written() {
    use std::os::unix::fs::OpenOptionsExt;
    let _turn = serial();
    let device = need!(LoopDevice::create(SIZE));
    let path = device.text();
    let other =
        std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device.path()).unwrap();
    never(device.path(), Concern::Busy);
    drop(other);
    ask(device.path(), &[&path]).expect("free again").open(0).expect("opens");
}

#[test]
fn a_read_only_device_is_never_written() {
    let _turn = serial();
    let device = need!(LoopDevice::create_with(SIZE, &["--read-only"]));
    never(device.path(), Concern::ReadOnly);
}

#[test]
fn the_disk_of_the_root_file_system_is_never_written() {
    use std::os::unix::fs::MetadataExt;
    let dev = std::fs::metadata("/").expect("there is a root").dev();
    let node = format!("/sys/dev/block/{}:{}", libc::major(dev), libc::minor(dev));
    let Ok(real) = std::fs::canonicalize(&node) else { return skipped("the root is on no block device") };
    let path = Path::new("/dev").join(real.file_name().expect("a name"));
    let found = need!(safety::examine(&path, &SysPaths::default()));
    never(&path, Concern::RootDisk);
    if let Some(serial) = &found.facts().serial {
        assert!(permit(&found, std::slice::from_ref(serial)).is_err());
    }
}

#[test]
fn a_link_to_a_device_is_followed_and_is_no_consent() {
    let _turn = serial();
    let device = need!(LoopDevice::create(SIZE));
    let folder = common::folder();
    let link = folder.path().join("by-id");
    std::os::unix::fs::symlink(device.path(), &link).unwrap();
    let found = examine(&link);
    assert!(found.through_link());
    assert_eq!(found.path(), device.path());
    let link_text = link.display().to_string();
    let refusal = ask(&link, &[&link_text]).expect_err("a link is no consent");
    assert!(refusal.to_string().contains("names a link"), "{refusal}");
    assert_eq!(value(refusal.what_to_type), device.text());
    let permit = ask(&link, &[&device.text()]).expect("the device itself");
    assert_eq!(permit.path(), device.path());
    // The link moving afterwards changes nothing.
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    permit.open(0).expect("opens the device that was examined");
}

#[test]
fn a_device_node_replaced_by_another_is_noticed() {
    let _turn = serial();
    let (one, two) = (need!(LoopDevice::create(SIZE)), need!(LoopDevice::create(SIZE)));
    // A private folder of nodes, so that nothing outside is touched.
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    let number = |device: &LoopDevice| {
        use std::os::unix::fs::MetadataExt;
        let rdev = std::fs::metadata(device.path()).unwrap().rdev();
        (libc::major(rdev).to_string(), libc::minor(rdev).to_string())
    };
    let make = |(major, minor): (String, String)| {
        common::run("mknod", &[&node.to_string_lossy(), "b", &major, &minor])
    };
    need!(make(number(&one)));
    if std::fs::File::open(&node).is_err() {
        return skipped("the temporary folder allows no device nodes");
    }
    let permit = ask(&node, &[&node.display().to_string()]).expect("named");
    std::fs::remove_file(&node).unwrap();
    need!(make(number(&two)));
    let error = permit.open(0).expect_err("another device");
    assert!(
        matches!(&error, SafetyError::Changed { what, .. } if what.contains("another device")),
        "{error}"
    );
    std::fs::remove_file(&node).unwrap();
    std::os::unix::fs::symlink(one.path(), &node).unwrap();
    assert!(matches!(permit.open(0), Err(SafetyError::Changed { .. })), "a link in its place");
}

#[test]
fn a_device_that_changes_between_permit_and_open_is_noticed() {
    let _turn = serial();
    let mut device = need!(LoopDevice::create(SIZE));
    let path = device.text();
    let changed = |permit: &WritePermit, what: &str| {
        let error = permit.open(libc::O_DIRECT).expect_err(what);
        assert!(
            matches!(&error, SafetyError::Changed { what: found, .. } if found.contains(what)),
            "{what}: {error}"
        );
    };

    let permit = ask(device.path(), &[&path]).expect("named");
    need!(device.resize(2 * SIZE));
    changed(&permit, "its size was");

    let permit = ask(device.path(), &[&path]).expect("named");
    std::fs::OpenOptions::new().write(true).open(device.path()).unwrap().write_all_at(b"XFSB", 0).unwrap();
    changed(&permit, "XFS");

    let permit = ask(device.path(), &[&format!("{path}+xfs")]).expect("named");
    std::fs::OpenOptions::new()
        .write(true)
        .open(device.path())
        .unwrap()
        .write_all_at(b"\0\0\0\0", 0)
        .unwrap();
    changed(&permit, "not on it any more");

    let permit = ask(device.path(), &[&path]).expect("named");
    need!(device.command("losetup", &["-d"]));
    let error = permit.open(0).expect_err("gone");
    assert!(matches!(error, SafetyError::Changed { .. }), "{error}");

    // Another file of the same size behind the same device.
    let other = device.backing().with_file_name("other");
    std::fs::File::create(&other).unwrap().set_len(2 * SIZE).unwrap();
    if common::run("losetup", &[&path, &other.to_string_lossy()]).is_err() {
        device.detach();
        return skipped("the loop device was taken by somebody else");
    }
    changed(&permit, "another medium");
}

#[test]
fn files_of_others_are_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("thesis.txt");
    std::fs::write(&file, "years of work").unwrap();
    never(&file, Concern::ForeignFile);
    let refusal = ask(&file, &[]).unwrap_err();
    assert!(refusal.to_string().contains("name a new file"), "{refusal}");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    never(&link, Concern::ForeignFile);
    assert!(matches!(
        scratch::create(&file, Bytes(1 << 20), None, &mut |_, _| {}, &Stop::new()),
        Err(scratch::ScratchError::Exists { .. })
    ));
    assert!(scratch::remove(&file).is_err());
    assert!(scratch::prepare(&file, Bytes(1 << 20), None, &mut |_, _| {}, &Stop::new()).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "years of work");
}

#[test]
fn new_and_empty_files_need_nothing_until_somebody_fills_them() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    let permit_new = ask(&new, &[]).expect("nothing is lost");
    assert_eq!(permit_new.kind(), TargetKind::Missing);
    assert!(!new.exists(), "examining makes nothing");
    let first = permit_new.open(0).expect("is made");
    assert!(matches!(permit_new.open(0), Err(SafetyError::Changed { .. })), "made only once");
    let permit_empty = ask(&new, &[]).expect("empty");
    assert!(matches!(permit_empty.open(0), Err(SafetyError::Busy { .. })), "one uflip at a time");
    drop(first);
    permit_empty.open(0).expect("free again");
    std::fs::write(&new, "now it matters").unwrap();
    assert!(matches!(permit_empty.open(0), Err(SafetyError::Changed { .. })));
    std::fs::remove_file(&new).unwrap();
    std::fs::write(&new, "").unwrap();
    std::fs::write(folder.path().join("keeps-the-inode"), "").unwrap();
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "");
}

#[test]
fn what_is_no_target_says_what_to_type() {
    let paths = SysPaths::default();
    let why = |path: &str| safety::examine(Path::new(path), &paths).expect_err(path).to_string();
    assert!(why("/tmp").contains("name a new file in it"));
    assert!(why("/dev/null").contains("name the block device"));
    assert!(why("/proc/self/comm").contains("uflip devices"));
    if Path::new("/sys/block").exists() {
        assert!(why("/sys/kernel/uevent_seqnum").contains("uflip devices"));
    }
    let dev_is_its_own = paths.mounts().is_ok_and(|all| all.iter().any(|m| m.fs_type == "devtmpfs"));
    if dev_is_its_own {
        assert!(why("/dev/sdzzz").contains("uflip devices"), "a mistyped device is no new file");
    } else {
        skipped("/dev is not a devtmpfs here");
    }
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("nowhere");
    std::os::unix::fs::symlink("/nonexistent/x", &link).unwrap();
    assert!(why(&link.to_string_lossy()).contains("leads nowhere"));
    assert!(safety::open_for_reading(Path::new("/dev/null"), 0).is_err());
    assert!(safety::open_for_reading(&folder.path().join("none"), 0).is_err());
}

#[test]
fn a_scratch_file_is_ours_and_its_copy_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scratch");
    let size = Bytes(20 << 20);
    let made = scratch::create(&path, size, None, &mut |_, _| {}, &Stop::new()).expect("made");
    assert_eq!((made.size, made.shortened_from), (size, None));
    let permit = ask(&path, &[]).expect("ours");
    assert_eq!((permit.kind(), permit.size()), (TargetKind::Scratch, size));
    let file = permit.open(0).expect("opens");
    let again = permit.reopen(&file, 0).expect("another stream");
    again.write_all_at(&[0; 4096], 0).expect("writes");
    drop((file, again));

    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    never(&copy, Concern::ForeignFile);
    std::fs::copy(folder.path().join("scratch.uflip"), folder.path().join("copy.uflip")).unwrap();
    never(&copy, Concern::ForeignFile);

    // Exchanged for the copy between permit and open, sidecar and all.
    std::fs::rename(&copy, &path).unwrap();
    assert!(matches!(permit.open(0), Err(SafetyError::Changed { .. })));
    never(&path, Concern::ForeignFile);
    assert!(scratch::remove(&path).is_err());
}

#[test]
fn a_scratch_file_with_somebodys_file_system_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scratch");
    scratch::create(&path, Bytes(20 << 20), None, &mut |_, _| {}, &Stop::new()).expect("made");
    need!(common::run("mkfs.ext4", &["-q", "-F", &path.to_string_lossy()]));
    never(&path, Concern::ForeignFile);
}

#[test]
fn a_scratch_file_behind_a_loop_device_is_in_use() {
    let _turn = serial();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scratch");
    scratch::create(&path, Bytes(20 << 20), None, &mut |_, _| {}, &Stop::new()).expect("made");
    let device = need!(common::run("losetup", &["-f", "--show", &path.to_string_lossy()]));
    let caught = std::panic::catch_unwind(|| never(&path, Concern::FileInUse));
    common::run("losetup", &["-d", &device]).expect("detached");
    caught.expect("the loop device is seen");
}
