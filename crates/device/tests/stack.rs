//! What stands on, beside and beneath a target, in sysfs trees of devices that
//! this machine does not have. A real loop device, which can be opened, stands
//! in for the target; the made sysfs says what it is.
#![cfg(target_os = "linux")]

mod common;

use common::{LoopDevice, serial, skipped};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use uflip_device::identity::{DevNumber, SysPaths, disk_of};
use uflip_device::safety::{self, Concern, Obstacle, permit};

/// A machine made of files, one of whose devices can be opened.
struct Machine {
    folder: tempfile::TempDir,
    real: LoopDevice,
}

/// A device in it: the number and the directory below the folder.
#[derive(Clone)]
struct Made {
    number: DevNumber,
    dir: String,
}

fn number(major: u32, minor: u32) -> DevNumber {
    DevNumber { major, minor }
}

fn number_of(path: &Path) -> DevNumber {
    DevNumber::from_dev(fs::metadata(path).expect("it is there").rdev())
}

impl Machine {
    fn new() -> Result<Machine, String> {
        let real = LoopDevice::create(8 << 20)?;
        let machine = Machine { folder: tempfile::tempdir().expect("a folder"), real };
        machine.mounts(&["1 0 0:9 / / rw - rootfs none rw"]);
        machine.put("proc/swaps", "Filename Type Size Used Priority\n");
        Ok(machine)
    }

    fn paths(&self) -> SysPaths {
        SysPaths::below(self.folder.path())
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn mounts(&self, lines: &[&str]) {
        self.put("proc/self/mountinfo", lines.join("\n") + "\n");
    }

    fn link(&self, at: &str, to: &str) {
        let at = self.folder.path().join(at);
        fs::create_dir_all(at.parent().expect("a parent")).expect("a folder");
        symlink(self.folder.path().join(to), at).expect("a link");
    }

    /// A device in `dir` (below `sys/devices`) with the links that lead to it.
    fn device(&self, dir: &str, number: DevNumber, files: &[(&str, &str)]) -> Made {
        let dir = format!("sys/devices/{dir}");
        let name = dir.rsplit('/').next().expect("a name");
        self.put(&format!("{dir}/dev"), format!("{number}\n"));
        self.put(&format!("{dir}/size"), "16384\n");
        for (file, text) in files {
            self.put(&format!("{dir}/{file}"), text);
        }
        self.link(&format!("sys/dev/block/{number}"), &dir);
        self.link(&format!("sys/class/block/{name}"), &dir);
        if !files.iter().any(|(file, _)| *file == "partition") {
            self.link(&format!("sys/block/{name}"), &dir);
        }
        Made { number, dir }
    }

    /// The device that is examined, in `dir`.
    fn target(&self, dir: &str, files: &[(&str, &str)]) -> Made {
        self.device(dir, number_of(self.real.path()), files)
    }

    /// Puts `upper` on `lower` as device mapper, MD and bcache do.
    fn stack(&self, upper: &Made, lower: &Made) {
        let name = |made: &Made| made.dir.rsplit('/').next().expect("a name").to_string();
        self.link(&format!("{}/slaves/{}", upper.dir, name(lower)), &lower.dir);
        self.link(&format!("{}/holders/{}", lower.dir, name(upper)), &upper.dir);
    }

    /// What stands in the way of the target for good.
    fn found(&self) -> Vec<Obstacle> {
        let found = safety::examine(self.real.path(), &self.paths()).expect("it can be examined");
        let consent = self.real.text();
        let absolute: Vec<Obstacle> = found.obstacles().iter().filter(|o| o.absolute).cloned().collect();
        let refused = permit(&found, &[consent.clone(), format!("{consent}+partitions")]).is_err();
        assert_eq!(refused, !absolute.is_empty(), "{:?}", found.obstacles());
        absolute
    }

    #[track_caller]
    fn refused(&self, concern: Concern, words: &[&str]) {
        let found = self.found();
        let said = |o: &Obstacle| o.concern == concern && words.iter().all(|word| o.statement.contains(word));
        assert!(found.iter().any(said), "{concern:?} {words:?} is not among {found:?}");
    }

    #[track_caller]
    fn free(&self) {
        assert_eq!(self.found(), [], "nothing shares its bytes");
    }
}

/// A machine, or an early end of the test that says why.
macro_rules! machine {
    () => {
        match Machine::new() {
            Ok(machine) => machine,
            Err(why) => return skipped(&why),
        }
    };
}

const PARTITION: &[(&str, &str)] = &[("partition", "1\n")];

#[test]
fn device_mapper_is_followed_down_and_up() {
    let _turn = serial();
    let machine = machine!();
    let disk = machine.device("pci/block/sdb", number(8, 16), &[]);
    let target =
        machine.target("virtual/block/dm-0", &[("dm/name", "data\n"), ("dm/uuid", "CRYPT-LUKS2-1\n")]);
    machine.stack(&target, &disk);
    machine.free();
    // Down: the disk beneath, its partition, both in another's hands.
    machine.mounts(&["5 1 8:16 / /data rw - xfs /dev/sdb rw"]);
    machine.refused(Concern::Mounted, &["sdb beneath it is mounted at /data"]);
    machine.device("pci/block/sdb/sdb1", number(8, 17), PARTITION);
    machine.mounts(&["5 1 8:17 / /data rw - xfs /dev/sdb1 rw"]);
    machine.refused(Concern::Mounted, &["its partition sdb1 is mounted at /data"]);
    machine.mounts(&[]);
    machine.free();
    // Beside: another table over the same disk may overlap.
    let beside = machine.device("virtual/block/dm-1", number(252, 1), &[("dm/name", "copy\n")]);
    machine.stack(&beside, &disk);
    machine.mounts(&["5 1 252:1 / /copy rw - xfs /dev/dm-1 rw"]);
    machine.refused(Concern::Held, &["sdb beneath it is held by dm-1 (copy), mounted at /copy"]);
    // Up: two more layers on the target, mounted at the top.
    let machine = machine!();
    let target = machine.target("pci/block/sdc", &[]);
    let lower = machine.device("virtual/block/dm-0", number(252, 0), &[("dm/name", "crypt\n")]);
    let upper = machine.device("virtual/block/dm-1", number(252, 1), &[("dm/name", "vg-home\n")]);
    machine.stack(&lower, &target);
    machine.stack(&upper, &lower);
    machine.mounts(&["5 1 252:1 / /home rw - ext4 /dev/dm-1 rw"]);
    machine.refused(Concern::Held, &["held by dm-0 (crypt), in use by dm-1 (vg-home), mounted at /home"]);
}

#[test]
fn volumes_of_one_group_share_no_bytes_but_snapshots_do() {
    let _turn = serial();
    let machine = machine!();
    let group = "LVM-aaaaaaaaaabbbbbbbbbbccccccccccdd";
    let uuid = |rest: &str| format!("{group}{rest:0>32}\n");
    let disk = machine.device("pci/block/sdb", number(8, 16), &[]);
    let target = machine.target("virtual/block/dm-0", &[("dm/uuid", &uuid("1"))]);
    let other = machine.device("virtual/block/dm-1", number(252, 1), &[("dm/uuid", &uuid("2"))]);
    machine.stack(&target, &disk);
    machine.stack(&other, &disk);
    machine.mounts(&["5 1 252:1 / /home rw - ext4 /dev/dm-1 rw"]);
    machine.free();
    // On the disk of the root file system nothing is written, as with partitions.
    machine.mounts(&["1 0 252:1 / / rw - ext4 /dev/dm-1 rw"]);
    machine.refused(Concern::RootDisk, &["sdb beneath it is the disk of the root file system"]);
    // A snapshot and its origin stand on the same volume.
    let machine = machine!();
    let real = machine.device("virtual/block/dm-2", number(252, 2), &[("dm/uuid", &uuid("1-real"))]);
    let target = machine.target("virtual/block/dm-0", &[("dm/uuid", &uuid("3"))]);
    let origin = machine.device("virtual/block/dm-1", number(252, 1), &[("dm/uuid", &uuid("1"))]);
    machine.stack(&target, &real);
    machine.stack(&origin, &real);
    machine.refused(Concern::Held, &["dm-2 beneath it is held by dm-1"]);
}

#[test]
fn md_and_its_partitions_are_followed_down_and_up() {
    let _turn = serial();
    let machine = machine!();
    let (sdb, sdc) = (
        machine.device("pci/block/sdb", number(8, 16), &[]),
        machine.device("pci/block/sdc", number(8, 32), &[]),
    );
    let array = machine.device("virtual/block/md0", number(9, 0), &[]);
    machine.target("virtual/block/md0/md0p1", PARTITION);
    machine.stack(&array, &sdb);
    machine.stack(&array, &sdc);
    machine.free();
    machine.mounts(&["5 1 9:0 / /raid rw - ext4 /dev/md0 rw"]);
    machine.refused(Concern::Mounted, &["its disk md0 is mounted at /raid"]);
    machine.mounts(&["5 1 8:32 / /one rw - ext4 /dev/sdc rw"]);
    machine.refused(Concern::Mounted, &["sdc beneath it is mounted at /one"]);
    // Another partition of the array has its own bytes.
    machine.device("virtual/block/md0/md0p2", number(259, 2), PARTITION);
    machine.mounts(&["5 1 259:2 / /two rw - ext4 /dev/md0p2 rw"]);
    machine.free();
    // Two arrays of one container divide its disks.
    let sibling = machine.device("virtual/block/md126", number(9, 126), &[]);
    machine.stack(&sibling, &sdb);
    machine.free();
    // Up: a device of the array, beneath a partition that is mounted.
    let machine = machine!();
    let member = machine.target("pci/block/sdb", &[]);
    let array = machine.device("virtual/block/md0", number(9, 0), &[]);
    machine.device("virtual/block/md0/md0p1", number(259, 1), PARTITION);
    machine.stack(&array, &member);
    machine.mounts(&["5 1 259:1 / /raid rw - ext4 /dev/md0p1 rw"]);
    machine.refused(Concern::Held, &["held by md0, mounted at /raid"]);
}

#[test]
fn bcache_is_followed_down_and_up() {
    let _turn = serial();
    let machine = machine!();
    let (backing, cache) = (
        machine.device("pci/block/sdb", number(8, 16), &[]),
        machine.device("pci/block/nvme0n1", number(259, 0), &[]),
    );
    for member in [&backing, &cache] {
        machine.put(&format!("{}/bcache/label", member.dir), "");
    }
    let target = machine.target("virtual/block/bcache0", &[]);
    machine.link(&format!("{}/bcache", target.dir), &format!("{}/bcache", backing.dir));
    machine.stack(&target, &backing);
    machine.stack(&target, &cache);
    machine.free();
    // A second backing device in the same set.
    let second = machine.device("virtual/block/bcache1", number(251, 1), &[]);
    machine.stack(&second, &cache);
    machine.free();
    machine.mounts(&["5 1 8:16 / /b rw - ext4 /dev/sdb rw"]);
    machine.refused(Concern::Mounted, &["sdb beneath it is mounted at /b"]);
    // Up: a member with its device, and one that waits for it.
    let machine = machine!();
    let member = machine.target("pci/block/sdb", &[("bcache/label", "")]);
    machine.refused(Concern::Held, &["registered with bcache"]);
    let upper = machine.device("virtual/block/bcache0", number(251, 0), &[]);
    machine.stack(&upper, &member);
    machine.mounts(&["5 1 251:0 / /b rw - ext4 /dev/bcache0 rw"]);
    machine.refused(Concern::Held, &["held by bcache0, mounted at /b"]);
}

#[test]
fn zram_and_what_it_writes_back_to() {
    let _turn = serial();
    let machine = machine!();
    machine.target("pci/block/sdb", &[]);
    let zram = machine.device("virtual/block/zram0", number(254, 9), &[("backing_dev", "none\n")]);
    machine.free();
    machine.put(&format!("{}/backing_dev", zram.dir), "/dev/sdb\n");
    machine.refused(Concern::Held, &["held by zram0"]);
    machine.put("proc/swaps", "Filename Type\n/nonexistent/zram0 partition 1 0 -2\n");
    machine.refused(Concern::Held, &["held by zram0"]);
    // Down: the zram is free while only it stands on its backing device.
    let machine = machine!();
    machine.target("virtual/block/zram1", &[("backing_dev", "/dev/sdb\n")]);
    machine.device("pci/block/sdb", number(8, 16), &[]);
    machine.free();
    machine.mounts(&["5 1 8:16 / /b rw - ext4 /dev/sdb rw"]);
    machine.refused(Concern::Mounted, &["sdb beneath it is mounted at /b"]);
}

#[test]
fn a_network_disk_is_followed_up_and_says_what_is_out_of_sight() {
    let _turn = serial();
    let machine = machine!();
    let target = machine.target("virtual/block/nbd0", &[("pid", "77\n")]);
    machine.free();
    let notes = safety::examine(machine.real.path(), &machine.paths()).expect("examined").notes().to_vec();
    assert!(notes.iter().any(|note| note.contains("what answers for nbd0")), "{notes:?}");
    let upper = machine.device("virtual/block/dm-0", number(252, 0), &[]);
    machine.stack(&upper, &target);
    machine.refused(Concern::Held, &["held by dm-0"]);
    let machine = machine!();
    machine.target("virtual/block/nbd0", &[]);
    machine.device("virtual/block/nbd0/nbd0p1", number(43, 1), PARTITION);
    machine.mounts(&["5 1 43:1 / /n rw - ext4 /dev/nbd0p1 rw"]);
    machine.refused(Concern::Mounted, &["its partition nbd0p1 is mounted at /n"]);
}

#[test]
fn the_paths_of_a_multipath_nvme_are_one_disk() {
    let _turn = serial();
    // The kernel's own multipath: a head, and paths that are hidden.
    let machine = machine!();
    let head = machine.target("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", &[("wwid", "eui.01\n")]);
    for path in ["nvme0c0n1", "nvme0c1n1"] {
        let dir = format!("sys/devices/pci/nvme/nvme0/{path}");
        machine.put(&format!("{dir}/hidden"), "1\n");
        machine.put(&format!("{dir}/wwid"), "eui.01\n");
        machine.link(&format!("sys/block/{path}"), &dir);
        machine.link(&format!("{}/multipath/{path}", head.dir), &dir);
    }
    machine.free();
    machine.device(&format!("{}/nvme0n1p1", &head.dir["sys/devices/".len()..]), number(259, 7), PARTITION);
    machine.mounts(&["5 1 259:7 / /d rw - ext4 /dev/nvme0n1p1 rw"]);
    machine.refused(Concern::Mounted, &["its partition nvme0n1p1 is mounted at /d"]);
    // Without it each path is a disk of its own, of the same identifier.
    let machine = machine!();
    machine.target("pci/nvme/nvme0/nvme0n1", &[("wwid", "eui.01\n")]);
    machine.device("pci/nvme/nvme1/nvme1n1", number(259, 8), &[("wwid", "eui.01\n")]);
    machine.device("pci/nvme/nvme1/nvme1n1/nvme1n1p1", number(259, 9), PARTITION);
    machine.device("pci/nvme/nvme2/nvme2n1", number(259, 10), &[("wwid", "eui.02\n")]);
    machine.free();
    machine.mounts(&["5 1 259:10 / /other rw - ext4 /dev/nvme2n1 rw"]);
    machine.free();
    machine.mounts(&["5 1 259:9 / /d rw - ext4 /dev/nvme1n1p1 rw"]);
    machine.refused(Concern::Mounted, &["nvme1n1p1", "same world-wide identifier", "mounted at /d"]);
    machine.mounts(&["1 0 259:9 / / rw - ext4 /dev/nvme1n1p1 rw"]);
    machine.refused(Concern::RootDisk, &["nvme1n1"]);
    // Beneath device mapper's multipath, the paths are its own.
    let machine = machine!();
    let multipath = machine.target("virtual/block/dm-0", &[("dm/uuid", "mpath-1\n")]);
    for (minor, name) in [(16, "sdb"), (32, "sdc")] {
        let path =
            machine.device(&format!("pci/block/{name}"), number(8, minor), &[("device/wwid", "naa.5\n")]);
        machine.stack(&multipath, &path);
    }
    machine.free();
}

#[test]
fn every_device_of_a_btrfs_belongs_to_it() {
    let _turn = serial();
    let machine = machine!();
    let target = machine.target("pci/block/sdb", &[]);
    machine.link("sys/fs/btrfs/12-34/devices/sdb", &target.dir);
    machine.refused(Concern::Held, &["part of the mounted btrfs 12-34"]);
    // The root file system names one of its devices, which is not this one.
    let other = machine.device("pci/block/sdc", number(8, 32), &[]);
    machine.link("sys/fs/btrfs/12-34/devices/sdc", &other.dir);
    machine.mounts(&["1 0 8:32 / / rw - btrfs /dev/sdc rw"]);
    machine.refused(Concern::RootDisk, &["the disk of the root file system"]);
    // A member beneath device mapper.
    let machine = machine!();
    let member = machine.device("pci/block/sdb", number(8, 16), &[]);
    machine.link("sys/fs/btrfs/12-34/devices/sdb", &member.dir);
    let target = machine.target("virtual/block/dm-0", &[]);
    machine.stack(&target, &member);
    machine.refused(Concern::Held, &["sdb beneath it is part of the mounted btrfs 12-34"]);
}

#[test]
fn the_root_is_found_through_loop_devices_and_files() {
    let _turn = serial();
    // Root on a loop device over a file, as live systems have it. The disk with
    // the file gets the number of the one that really holds it.
    let machine = machine!();
    let image = machine.folder.path().join("root.img");
    fs::write(&image, [0; 512]).expect("a file");
    let holder = DevNumber::from_dev(fs::metadata(&image).expect("made").dev());
    if holder.major == 0 {
        return skipped("the temporary folder is on no block device");
    }
    machine.device("pci/block/sdb", holder, &[]);
    machine.target("pci/block/sdb/sdb2", PARTITION);
    let file = format!("{}\n", image.display());
    machine.device("virtual/block/loop0", number(240, 0), &[("loop/backing_file", &file)]);
    machine.mounts(&["5 1 240:0 / /elsewhere rw - squashfs /dev/loop0 ro"]);
    machine.free();
    machine.mounts(&["1 0 240:0 / / rw - squashfs /dev/loop0 ro"]);
    machine.refused(Concern::RootDisk, &["the disk of the root file system"]);
    // A loop device over a file of that disk is not the disk.
    let machine = machine!();
    machine.device("pci/block/sdb", holder, &[]);
    let image = machine.folder.path().join("x.img");
    fs::write(&image, [0; 512]).expect("a file");
    let file = format!("{}\n", image.display());
    machine.target("virtual/block/loop0", &[("loop/backing_file", &file)]);
    machine.mounts(&[&format!("1 0 {holder} / / rw - ext4 /dev/sdb rw")]);
    machine.free();
    // One over the disk is.
    let machine = machine!();
    machine.device("pci/block/sdb", number_of(machine.real.path()), &[]);
    machine.mounts(&[&format!("1 0 {} / / rw - ext4 /dev/sdb rw", number_of(machine.real.path()))]);
    machine.refused(Concern::RootDisk, &["the disk of the root file system"]);
}

#[test]
fn a_loop_device_that_cannot_be_asked_is_known_by_name() {
    let _turn = serial();
    let machine = machine!();
    let image = machine.folder.path().join("x.img");
    fs::write(&image, [0; 512]).expect("a file");
    let linked = machine.folder.path().join("linked.img");
    fs::hard_link(&image, &linked).expect("a link");
    let name = format!("{}\n", image.display());
    machine.target("virtual/block/loop0", &[("loop/backing_file", &name)]);
    machine.free();
    let second = machine.device("virtual/block/loop1", number(240, 1), &[("loop/backing_file", &name)]);
    machine.refused(Concern::Looped, &["x.img beneath it is in use behind loop1"]);
    // By another name of the same file, and mounted.
    machine.put(&format!("{}/loop/backing_file", second.dir), format!("{}\n", linked.display()));
    machine.mounts(&["5 1 240:1 / /m rw - ext4 /dev/loop1 rw"]);
    machine.refused(Concern::Looped, &["behind loop1, mounted at /m"]);
    // Another file of the same folder.
    let other = machine.folder.path().join("y.img");
    fs::write(&other, [0; 512]).expect("a file");
    machine.put(&format!("{}/loop/backing_file", second.dir), format!("{}\n", other.display()));
    machine.free();
    // Both deleted: only the name is left.
    fs::remove_file(&image).expect("removed");
    for number in ["240:1".to_string(), number_of(machine.real.path()).to_string()] {
        let file = format!("sys/dev/block/{number}/loop/backing_file");
        machine.put(&file, format!("{} (deleted)\n", image.display()));
    }
    machine.refused(Concern::Looped, &["x.img beneath it is in use behind loop1"]);
}

#[test]
fn a_loop_over_the_root_disk_or_a_partition_of_it_is_followed() {
    let _turn = serial();
    let machine = machine!();
    let disk = match LoopDevice::create(8 << 20) {
        Ok(disk) => disk,
        Err(why) => return skipped(&why),
    };
    let file = format!("{}\n", disk.text());
    machine.target("virtual/block/loop9", &[("loop/backing_file", &file)]);
    let sda = machine.device("pci/block/sda", number_of(disk.path()), &[]);
    machine.device("pci/block/sda/sda1", number(8, 1), PARTITION);
    machine.mounts(&["1 0 8:1 / / rw - ext4 /dev/sda1 rw"]);
    machine.refused(Concern::RootDisk, &["sda beneath it is the disk of the root file system"]);
    machine.refused(Concern::Mounted, &["its partition sda1 is mounted at /"]);
    // Where what lies beneath has no node, nobody can claim it.
    machine.mounts(&[]);
    machine.refused(Concern::Unreadable, &["sda beneath it cannot be claimed"]);
    // Over another partition of the root disk.
    fs::remove_file(machine.folder.path().join("sys/dev/block").join(sda.number.to_string()))
        .expect("removed");
    machine.put(&format!("{}/dev", sda.dir), "8:0\n");
    machine.device("pci/block/sda/sda2", number_of(disk.path()), PARTITION);
    machine.mounts(&["1 0 8:1 / / rw - ext4 /dev/sda1 rw"]);
    machine.refused(Concern::RootDisk, &["sda2 beneath it is the disk of the root file system"]);
}

#[test]
fn files_know_who_uses_them() {
    let _turn = serial();
    let machine = machine!();
    let image = machine.folder.path().join("x.img");
    fs::write(&image, []).expect("a file");
    let use_of = |words: &str| {
        let found = safety::examine(&image, &machine.paths()).expect("examined");
        let said =
            found.obstacles().iter().any(|o| o.concern == Concern::FileInUse && o.statement.contains(words));
        assert!(said, "{words}: {:?}", found.obstacles());
        assert!(permit(&found, &[]).is_err());
    };
    let linked = machine.folder.path().join("linked.img");
    fs::hard_link(&image, &linked).expect("a link");
    machine.put("proc/swaps", format!("Filename\n{} file 1 0 -2\n", linked.display()));
    use_of("in use as swap");
    machine.put("proc/swaps", "Filename\n");
    // Mounted without any loop device.
    let mount = format!("5 1 0:50 / /m rw - erofs {} rw", linked.display());
    machine.mounts(&[&mount]);
    use_of("mounted at /m");
    machine.mounts(&[]);
    let file = format!("{}\n", linked.display());
    machine.device("virtual/block/loop0", number(240, 0), &[("loop/backing_file", &file)]);
    use_of("in use behind loop0");
}

#[test]
fn a_circle_ends() {
    let _turn = serial();
    let machine = machine!();
    let target = machine.target("virtual/block/dm-0", &[("dm/uuid", "CRYPT-1\n")]);
    let other = machine.device("virtual/block/dm-1", number(252, 1), &[("dm/uuid", "CRYPT-2\n")]);
    machine.stack(&target, &other);
    machine.stack(&other, &target);
    machine.refused(Concern::Held, &["held by dm-1"]);
    // Two hundred layers, mounted at the bottom.
    let machine = machine!();
    let mut upper = machine.target("virtual/block/dm-0", &[]);
    for minor in 1..=200 {
        let lower = machine.device(&format!("virtual/block/dm-{minor}"), number(252, minor), &[]);
        machine.stack(&upper, &lower);
        upper = lower;
    }
    machine.mounts(&["5 1 252:200 / /deep rw - ext4 /dev/dm-200 rw"]);
    machine.refused(Concern::Mounted, &["dm-200 beneath it is mounted at /deep"]);
    assert_eq!(upper.number, number(252, 200));
}

#[test]
fn what_lies_beneath_is_claimed_while_the_permit_lives() {
    let _turn = serial();
    let lower = match LoopDevice::create(8 << 20) {
        Ok(lower) => lower,
        Err(why) => return skipped(&why),
    };
    let upper = match lower.command("losetup", &["--find", "--show"]) {
        Ok(upper) => PathBuf::from(upper),
        Err(why) => return skipped(&why),
    };
    let caught = std::panic::catch_unwind(|| {
        let found = safety::examine(&upper, &SysPaths::default()).expect("examined");
        let permit = permit(&found, &[upper.display().to_string()]).expect("named");
        let file = permit.open(0).expect("opens");
        let mounted = lower.command("mkfs.ext4", &["-q"]);
        assert!(mounted.is_err(), "mkfs, which claims the device, must not get it");
        drop((file, permit));
        // Taken between permit and opening.
        let found = safety::examine(&upper, &SysPaths::default()).expect("examined");
        let Ok(permit) = safety::permit(&found, &[upper.display().to_string()]) else {
            panic!("nothing is in the way");
        };
        let other =
            fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(lower.path()).expect("claimed");
        let error = permit.open(0).expect_err("beneath is taken");
        assert!(matches!(error, safety::SafetyError::Busy { .. }), "{error}");
        drop(other);
    });
    common::run("losetup", &["-d", &upper.to_string_lossy()]).expect("detached");
    caught.expect("the claim is kept");
}

#[test]
fn the_disk_of_a_target_is_the_whole_one() {
    let _turn = serial();
    let machine = machine!();
    machine.target("pci/block/sdb/sdb1", PARTITION);
    machine.put("sys/devices/pci/block/sdb/dev", "8:16\n");
    assert_eq!(disk_of(machine.real.path(), &machine.paths()), Some(number(8, 16)));
    // A file on a btrfs, whose numbers are no device's.
    let file = machine.folder.path().join("file");
    fs::write(&file, "x").expect("a file");
    let dev = DevNumber::from_dev(fs::metadata(&file).expect("made").dev());
    let expected = if dev.major == 0 {
        machine.mounts(&[&format!("5 1 {dev} / / rw - btrfs {} rw", machine.real.text())]);
        number(8, 16)
    } else {
        dev
    };
    assert_eq!(disk_of(&file, &machine.paths()), Some(expected));
    assert_eq!(disk_of(Path::new("/nonexistent"), &machine.paths()), None);
}

#[test]
fn a_sysfs_that_tells_half_is_no_leave() {
    let _turn = serial();
    let made = || -> Result<Machine, String> {
        let machine = Machine::new()?;
        machine.target("pci/block/sdb", &[]);
        machine.device("pci/block/sdc", number(8, 32), &[]);
        machine.free();
        Ok(machine)
    };
    macro_rules! made {
        () => {
            match made() {
                Ok(machine) => machine,
                Err(why) => return skipped(&why),
            }
        };
    }
    let gone = |machine: &Machine, path: &str| {
        fs::remove_dir_all(machine.folder.path().join(path)).expect("removed");
    };
    // One list will do, and both are looked at.
    let machine = made!();
    gone(&machine, "sys/class");
    machine.free();
    machine.device("pci/block/sdd", number(8, 48), &[]);
    gone(&machine, "sys/block");
    machine.refused(Concern::Unseen, &["sdb is missing from both", "sys/block", "sys/class/block"]);
    gone(&machine, "sys/class");
    machine.refused(Concern::Unseen, &["neither", "sys/block", "can be listed"]);
    // Reading needs none of it.
    assert!(safety::open_for_reading(machine.real.path(), 0).is_ok());
    // A user that only one of the lists shows.
    for list in ["sys/class", "sys/block"] {
        let machine = made!();
        let over = [("loop/backing_file", machine.real.text())];
        let over: Vec<(&str, &str)> = over.iter().map(|(file, text)| (*file, text.as_str())).collect();
        machine.device("virtual/block/loop0", number(240, 0), &over);
        gone(&machine, list);
        machine.refused(Concern::Looped, &["loop0"]);
    }
    // Listed, and not to be resolved.
    let machine = made!();
    machine.link("sys/block/sdd", "sys/devices/pci/block/sdd");
    machine.refused(Concern::Unseen, &["sys/block/sdd cannot be resolved"]);
    let machine = made!();
    machine.link("sys/devices/pci/block/sdb/slaves/sdd", "sys/devices/pci/block/sdd");
    machine.refused(Concern::Unseen, &["slaves/sdd cannot be resolved"]);
    let machine = made!();
    machine.link("sys/fs/btrfs/1-2/devices/sdd", "sys/devices/pci/block/sdd");
    machine.refused(Concern::Unseen, &["devices/sdd cannot be resolved"]);
    // What is behind another device, and is not found.
    let machine = made!();
    let lost = [("loop/backing_file", "/nonexistent/image\n")];
    machine.device("virtual/block/loop0", number(240, 0), &lost);
    machine.refused(Concern::Unseen, &["behind loop0", "/nonexistent/image"]);
    let machine = made!();
    machine.device("virtual/block/zram0", number(254, 9), &[("backing_dev", "/dev/sdx\n")]);
    machine.refused(Concern::Unseen, &["/dev/sdx", "zram0/backing_dev"]);
}
