//! Facts and rules against a made sysfs: devices this machine does not have.
#![cfg(target_os = "linux")]

mod common;

use common::{LoopDevice, serial, skipped};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use uflip_device::Bytes;
use uflip_device::identity::{DevNumber, SysPaths, Transport, block_facts, host_facts, list_devices};
use uflip_device::safety::{self, Concern, Examination, permit};

/// A sysfs and a procfs in a folder.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { folder: tempfile::tempdir().expect("a folder") };
        machine.put("proc/self/mountinfo", "1 0 0:9 / / rw - rootfs none rw\n");
        machine.put("proc/swaps", "Filename Type Size Used Priority\n");
        machine
    }

    fn paths(&self) -> SysPaths {
        SysPaths::below(self.folder.path())
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// A device in `dir` (below `sys/devices`), with the links that lead to it.
    fn device(&self, dir: &str, number: DevNumber, files: &[(&str, &str)]) -> String {
        let dir = format!("sys/devices/{dir}");
        let name = dir.rsplit('/').next().expect("a name").to_string();
        self.put(&format!("{dir}/dev"), format!("{number}\n"));
        for (file, text) in files {
            self.put(&format!("{dir}/{file}"), text);
        }
        let target = self.folder.path().join(&dir);
        let partition = files.iter().any(|(file, _)| *file == "partition");
        let mut links = vec![format!("sys/dev/block/{number}"), format!("sys/class/block/{name}")];
        links.extend((!partition).then(|| format!("sys/block/{name}")));
        for link in links {
            let link = self.folder.path().join(link);
            fs::create_dir_all(link.parent().expect("a parent")).expect("a folder");
            symlink(&target, link).expect("a link");
        }
        dir
    }

    /// Puts `upper` on top of `lower`, both as [`Machine::device`] gave them.
    fn stack(&self, upper: &str, lower: &str) {
        let link = |from: &str, kind: &str, to: &str| {
            let name = to.rsplit('/').next().expect("a name");
            let folder = self.folder.path().join(from).join(kind);
            fs::create_dir_all(&folder).expect("a folder");
            symlink(self.folder.path().join(to), folder.join(name)).expect("a link");
        };
        link(upper, "slaves", lower);
        link(lower, "holders", upper);
    }
}

fn number(major: u32, minor: u32) -> DevNumber {
    DevNumber { major, minor }
}

fn number_of(path: &Path) -> DevNumber {
    DevNumber::from_dev(fs::metadata(path).expect("it is there").rdev())
}

#[test]
fn nvme_facts_are_read_and_hostile_names_are_cleaned() {
    let machine = Machine::new();
    let files = [
        ("size", "1000215216\n"),
        ("wwid", "eui.0025385b11b0a1c2\n"),
        ("device/model", "Evil\x1b[2J\u{202e}SSD\r\n<script>   \n"),
        ("device/serial", "  S4EW  \0\0"),
        ("device/firmware_rev", "2B2QEXE7\n"),
        ("queue/logical_block_size", "512\n"),
        ("queue/physical_block_size", "4096\n"),
        ("queue/rotational", "0\n"),
        ("queue/scheduler", "mq-deadline kyber [none] bfq\n"),
        ("queue/nr_requests", "1023\n"),
        ("queue/write_cache", "write back\n"),
        ("queue/max_sectors_kb", "128\n"),
        ("queue/discard_granularity", "0\n"),
        ("queue/dax", "-1\n"),
    ];
    let at = number(259, 0);
    machine.device("pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", at, &files);
    let facts = block_facts(Path::new("/dev/nvme0n1"), at, None, &machine.paths());
    assert_eq!(facts.model.as_deref(), Some("Evil?[2J?SSD??<script>"));
    assert_eq!(facts.serial.as_deref(), Some("S4EW"));
    assert_eq!(facts.wwid.as_deref(), Some("eui.0025385b11b0a1c2"));
    assert_eq!(facts.firmware.as_deref(), Some("2B2QEXE7"));
    assert_eq!(facts.size_bytes, Some(Bytes(1_000_215_216 * 512)));
    assert_eq!(facts.physical_sector_bytes, Some(Bytes(4096)));
    assert_eq!((facts.rotational, facts.scheduler.as_deref()), (Some(false), Some("none")));
    assert_eq!(facts.max_request_bytes, Some(Bytes(128 << 10)));
    assert_eq!(facts.discard_granularity_bytes, Some(Bytes(0)), "said to be none, not unknown");
    assert_eq!((facts.dax, facts.vendor.clone(), facts.queue_depth), (None, None, None), "not known is None");
    assert_eq!(facts.transport, Some(Transport::Nvme));
    let json = serde_json::to_string(&facts).expect("serializes");
    assert_eq!(
        serde_json::from_str::<uflip_device::identity::DeviceFacts>(&json).expect("reads back"),
        facts
    );
}

#[test]
fn a_partition_has_the_facts_of_its_disk_and_its_own_size() {
    let machine = Machine::new();
    let sda = "pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda";
    let files = [
        ("size", "2000\n"),
        ("device/model", "DISK\n"),
        ("device/queue_depth", "32\n"),
        ("device/rev", "1\n"),
    ];
    machine.device(sda, number(8, 0), &files);
    machine.put(&format!("sys/devices/{sda}/device/vpd_pg80"), b"\x00\x80\x00\x06  WD42");
    machine.device(&format!("{sda}/sda1"), number(8, 1), &[("partition", "1\n"), ("size", "100\n")]);
    let facts = block_facts(Path::new("/dev/sda1"), number(8, 1), None, &machine.paths());
    assert_eq!(facts.size_bytes, Some(Bytes(51_200)));
    assert_eq!((facts.name.as_deref(), facts.partition_of.as_deref()), (Some("sda1"), Some("sda")));
    assert_eq!((facts.model.as_deref(), facts.serial.as_deref()), (Some("DISK"), Some("WD42")));
    assert_eq!((facts.queue_depth, facts.transport), (Some(32), Some(Transport::Sata)));
}

#[test]
fn transports_are_told_by_place_and_name() {
    let machine = Machine::new();
    let usb = "pci0000:00/usb2/2-1/2-1:1.0/host3/target3:0:0/3:0:0:0/block/sdb";
    machine.put("sys/devices/pci0000:00/usb2/2-1/idVendor", "0bda\n");
    machine.put("sys/devices/pci0000:00/usb2/2-1/serial", "BRIDGE7\n");
    let all = [
        (usb, Some(Transport::Usb)),
        ("pci0000:00/virtio1/block/vda", Some(Transport::Virtio)),
        ("platform/mmc0/mmc0:0001/block/mmcblk0", Some(Transport::Mmc)),
        ("pci0000:00/host1/target1:0:0/1:0:0:0/block/sdc", Some(Transport::Scsi)),
        ("virtual/block/loop3", Some(Transport::Loop)),
        ("virtual/block/dm-0", Some(Transport::DeviceMapper)),
        ("virtual/block/md127", Some(Transport::Md)),
        ("virtual/block/zram0", Some(Transport::Memory)),
        ("virtual/block/mystery", None),
    ];
    for (minor, (dir, transport)) in (0..).zip(all) {
        machine.device(dir, number(99, minor), &[]);
        let facts = block_facts(Path::new("/dev/x"), number(99, minor), None, &machine.paths());
        assert_eq!(facts.transport, transport, "{dir}");
        assert_eq!(facts.size_bytes, None);
        assert_eq!(facts.serial.as_deref(), (dir == usb).then_some("BRIDGE7"), "{dir}");
    }
}

#[test]
fn what_cannot_be_examined_is_listed_as_refused() {
    let machine = Machine::new();
    machine.device("x/block/sda", number(8, 0), &[("size", "2000\n"), ("device/model", "DISK\n")]);
    machine.device("x/block/sda/sda1", number(8, 1), &[("partition", "1\n"), ("size", "100\n")]);
    machine.device("virtual/block/loop0", number(7, 0), &[("size", "0\n")]);
    let list = list_devices(&machine.paths());
    let names: Vec<_> = list.iter().filter_map(|line| line.facts.name.clone()).collect();
    assert_eq!(names, ["sda", "sda1"], "empty ones are left out");
    assert!(list.iter().all(|line| line.refused.is_some() && line.confirm.is_none()));
    assert_eq!(list_devices(&SysPaths::below(Path::new("/nonexistent"))), []);
}

#[test]
fn this_machine_tells_its_kernel_and_memory() {
    let facts = host_facts(&SysPaths::default());
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let total = read("/proc/meminfo");
    let total = total.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let kib: u64 = total.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert_eq!(facts.memory_bytes.map(|m| m.0), Some(kib << 10));
    let kernel = facts.kernel.as_deref().unwrap();
    assert!(kernel.contains(read("/proc/sys/kernel/osrelease").trim()), "{kernel}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(facts.at_unix_s.is_some_and(|at| at <= now && now - at < 60), "{facts:?} at {now}");
}

/// A real loop device that a made sysfs tells things about.
struct Staged {
    machine: Machine,
    device: LoopDevice,
    dir: String,
}

impl Staged {
    fn new(files: &[(&str, &str)]) -> Result<Staged, String> {
        let device = LoopDevice::create(8 << 20)?;
        let machine = Machine::new();
        let dir = machine.device("pci/block/sdx", number_of(device.path()), files);
        Ok(Staged { machine, device, dir })
    }

    fn examine(&self) -> Examination {
        safety::examine(self.device.path(), &self.machine.paths()).expect("it can be examined")
    }

    fn concerns(&self) -> Vec<Concern> {
        self.examine().obstacles().iter().filter(|o| o.absolute).map(|o| o.concern).collect()
    }

    fn permits(&self, consent: &str) -> bool {
        permit(&self.examine(), &[consent.to_string()]).is_ok()
    }
}

macro_rules! staged {
    ($files:expr) => {
        match Staged::new($files) {
            Ok(staged) => staged,
            Err(why) => return skipped(&why),
        }
    };
}

#[test]
fn a_serial_is_consent_while_it_is_the_only_one() {
    let _turn = serial();
    let staged = staged!(&[("device/serial", "S4EW+1\n")]);
    assert!(staged.permits("S4EW+1") && staged.permits(&staged.device.text()));
    for wrong in ["S4EW", "S4EW+", "S4EW+2", "s4ew+1", "S4EW+1+root", "", " S4EW+1"] {
        assert!(!staged.permits(wrong), "{wrong}");
    }
    assert_eq!(staged.examine().what_to_type().as_deref(), Some("--erase-device S4EW+1"));
    let permit = permit(&staged.examine(), &["S4EW+1".to_string()]).expect("named");
    staged.machine.put(&format!("{}/device/serial", staged.dir), "OTHER\n");
    let error = permit.open(0).expect_err("another disk").to_string();
    assert!(error.contains("its serial was S4EW+1 and is OTHER"), "{error}");
    // Another disk of the same serial takes the name away.
    staged.machine.put(&format!("{}/device/serial", staged.dir), "TWIN\n");
    staged.machine.device("pci2/block/sdy", number(8, 99), &[("device/serial", "TWIN\n")]);
    assert!(!staged.permits("TWIN") && staged.permits(&staged.device.text()));
    assert!(staged.examine().notes().iter().any(|note| note.contains("sdy")), "and says of whom");
}

#[test]
fn what_to_type_survives_a_shell_whatever_the_serial() {
    let _turn = serial();
    let staged = staged!(&[("device/serial", "x'; rm -rf $HOME #\n")]);
    let option = staged.examine().what_to_type().expect("something to type");
    let typed =
        common::run("sh", &["-c", &format!("printf '%s' {}", option.replacen("--erase-device ", "", 1))]);
    assert_eq!(typed.as_deref(), Ok("x'; rm -rf $HOME #"));
}

#[test]
fn a_serial_names_no_partition() {
    let _turn = serial();
    let device = match LoopDevice::create(8 << 20) {
        Ok(device) => device,
        Err(why) => return skipped(&why),
    };
    let machine = Machine::new();
    machine.device("pci/block/sdx", number(8, 200), &[("device/serial", "ONE\n")]);
    machine.device("pci/block/sdx/sdx1", number_of(device.path()), &[("partition", "1\n")]);
    let found = safety::examine(device.path(), &machine.paths()).expect("examined");
    assert_eq!(found.facts().serial.as_deref(), Some("ONE"));
    assert!(permit(&found, &["ONE".to_string()]).is_err(), "the whole disk's name");
    assert!(permit(&found, &[device.text()]).is_ok());
    // The whole disk mounted without regard to its partitions.
    machine.put("proc/self/mountinfo", "5 1 8:200 / /data rw - xfs /dev/sdx rw\n");
    let found = safety::examine(device.path(), &machine.paths()).expect("examined");
    assert!(found.obstacles().iter().any(|o| o.statement == "its disk sdx is mounted at /data"), "{found:?}");
}

#[test]
fn holders_and_btrfs_members_are_absolute() {
    let _turn = serial();
    let staged = staged!(&[]);
    assert_eq!(staged.concerns(), []);
    staged.machine.put("sys/fs/btrfs/12-34/devices/sdx", "");
    assert_eq!(staged.concerns(), [Concern::Held]);
    let upper = staged.machine.device("virtual/block/dm-0", number(252, 0), &[("dm/name", "vg-home\n")]);
    staged.machine.stack(&upper, &staged.dir);
    assert!(staged.examine().obstacles().iter().any(|o| o.statement == "held by dm-0 (vg-home)"));
}

#[test]
fn the_disk_beneath_the_root_is_found_through_every_layer() {
    let _turn = serial();
    let staged = staged!(&[]);
    // Root on dm-1 on md0 on a partition of the disk.
    let machine = &staged.machine;
    let partition = machine.device("pci/block/sdx/sdx2", number(8, 202), &[("partition", "2\n")]);
    let raid = machine.device("virtual/block/md0", number(9, 0), &[]);
    let crypt = machine.device("virtual/block/dm-1", number(252, 1), &[]);
    machine.stack(&raid, &partition);
    machine.stack(&crypt, &raid);
    machine.put("proc/self/mountinfo", "1 0 8:77 / / rw - ext4 /dev/other rw\n");
    assert!(!staged.concerns().contains(&Concern::RootDisk));
    machine.put("proc/self/mountinfo", "1 0 252:1 / / rw - ext4 /dev/mapper/root rw\n");
    assert!(staged.concerns().contains(&Concern::RootDisk));
    // btrfs has an anonymous number, and names its device.
    let anonymous = format!("1 0 0:30 /@ / rw - btrfs {} rw\n", staged.device.text());
    machine.put("proc/self/mountinfo", anonymous);
    assert!(staged.concerns().contains(&Concern::RootDisk) && staged.concerns().contains(&Concern::Mounted));
}

#[test]
fn nothing_is_permitted_where_mounts_cannot_be_known() {
    let _turn = serial();
    let staged = staged!(&[]);
    fs::remove_file(staged.machine.folder.path().join("proc/self/mountinfo")).expect("removed");
    assert!(safety::examine(staged.device.path(), &staged.machine.paths()).is_err());
    let nothing: PathBuf = staged.machine.folder.path().join("elsewhere");
    let real = SysPaths { sys: nothing, ..SysPaths::default() };
    let error = safety::examine(staged.device.path(), &real).expect_err("sysfs knows nothing").to_string();
    assert!(error.contains("nobody's data can be ruled out"), "{error}");
}
