//! The facts about one target: a block device, or a file and the disk beneath.

use super::sysfs::{Node, clean, number, text};
use super::{DevNumber, SysPaths, ioctl, mount_of};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a target is to the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A disk, a partition, or anything else with a block device's node.
    Block,
    /// A regular file, or one that is to be made.
    File,
}

/// How a device is attached, guessed from its place in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// NVMe, over PCIe or a network.
    Nvme,
    /// Serial or parallel ATA.
    Sata,
    /// USB, whatever the disk behind the bridge is.
    Usb,
    /// A virtual machine's disk.
    Virtio,
    /// SD card or eMMC.
    Mmc,
    /// SCSI, SAS or anything else that acts as it.
    Scsi,
    /// A file looped back as a device.
    Loop,
    /// Device mapper: LVM, dm-crypt, multipath.
    DeviceMapper,
    /// Software RAID.
    Md,
    /// Memory: ram and zram disks, persistent memory.
    Memory,
    /// A network block device.
    Network,
}

/// What a file adds to the facts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {
    /// `ext4`, `xfs`, …
    pub fs_type: Option<String>,
    /// Where that file system is mounted.
    pub mount_point: Option<String>,
    /// Extents on the disk, physically adjacent ones as one; `None` where the
    /// file system does not tell.
    pub extents: Option<u64>,
    /// The disk (or partition) beneath; `None` for tmpfs, NFS and the like.
    pub beneath: Option<Box<DeviceFacts>>,
}

/// Facts about a target. `None` means not known, or that the target has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// The path with all links resolved.
    pub path: String,
    /// Block device or file.
    pub kind: DeviceKind,
    /// The block device's number; of a file, none.
    pub number: Option<DevNumber>,
    /// The kernel's name, such as `nvme0n1`.
    pub name: Option<String>,
    /// The kernel's name of the disk this is a partition of.
    pub partition_of: Option<String>,
    /// The model, in the device's words.
    pub model: Option<String>,
    /// The serial number of the disk (of a USB bridge, where only that tells).
    pub serial: Option<String>,
    /// The world-wide identifier.
    pub wwid: Option<String>,
    /// The firmware's revision.
    pub firmware: Option<String>,
    /// The vendor, in the device's words or as a PCI number.
    pub vendor: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<Bytes>,
    /// The smallest unit it takes, in bytes.
    pub logical_sector_bytes: Option<Bytes>,
    /// The smallest unit it writes without reading first, in bytes.
    pub physical_sector_bytes: Option<Bytes>,
    /// True where the kernel takes it for a spinning disk.
    pub rotational: Option<bool>,
    /// The IO scheduler in use.
    pub scheduler: Option<String>,
    /// Requests the block layer queues.
    pub nr_requests: Option<u64>,
    /// Commands the device takes at once.
    pub queue_depth: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The largest request the block layer sends without splitting, in bytes.
    pub max_request_bytes: Option<Bytes>,
    /// The unit of discard in bytes; 0 where the device says it discards nothing.
    pub discard_granularity_bytes: Option<Bytes>,
    /// True where its bytes can be mapped directly.
    pub dax: Option<bool>,
    /// How it is attached.
    pub transport: Option<Transport>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// For files only.
    pub file: Option<FileFacts>,
}

impl DeviceFacts {
    /// Nothing known but the path.
    pub(crate) fn unknown(path: &Path, kind: DeviceKind) -> DeviceFacts {
        DeviceFacts {
            path: path.to_string_lossy().into_owned(),
            kind,
            number: None,
            name: None,
            partition_of: None,
            model: None,
            serial: None,
            wwid: None,
            firmware: None,
            vendor: None,
            size_bytes: None,
            logical_sector_bytes: None,
            physical_sector_bytes: None,
            rotational: None,
            scheduler: None,
            nr_requests: None,
            queue_depth: None,
            write_cache: None,
            max_request_bytes: None,
            discard_granularity_bytes: None,
            dax: None,
            transport: None,
            backing_file: None,
            file: None,
        }
    }
}

/// The facts about whatever is at `path`, links followed. The device is not
/// opened for more than its size; where it cannot be opened, sysfs tells.
///
/// # Errors
/// Where nothing is there or it cannot be looked at.
pub fn device_facts(path: &Path, paths: &SysPaths) -> std::io::Result<DeviceFacts> {
    let path = path.canonicalize()?;
    match DevNumber::of_block_device(&path) {
        Some(number) => Ok(block_facts(&path, number, File::open(&path).ok().as_ref(), paths)),
        None => Ok(file_facts(&path, paths)),
    }
}

/// The facts about block device `number`, whose node is `path`. Sizes come
/// from the open `file` where there is one, else from sysfs.
pub fn block_facts(path: &Path, number: DevNumber, file: Option<&File>, paths: &SysPaths) -> DeviceFacts {
    let mut facts = DeviceFacts::unknown(path, DeviceKind::Block);
    facts.number = Some(number);
    if let Some(node) = Node::find(number, paths) {
        identify(&mut facts, &node);
        queue(&mut facts, &node);
    }
    if let Some(file) = file {
        let wide = |value: u32| Bytes(u64::from(value));
        facts.size_bytes = ioctl::size_bytes(file).ok().map(Bytes).or(facts.size_bytes);
        facts.logical_sector_bytes =
            ioctl::logical_sector(file).ok().map(wide).or(facts.logical_sector_bytes);
        facts.physical_sector_bytes =
            ioctl::physical_sector(file).ok().map(wide).or(facts.physical_sector_bytes);
    }
    facts
}

/// Who it says it is.
fn identify(facts: &mut DeviceFacts, node: &Node) {
    let disk = &node.disk;
    let first = |names: &[&str]| names.iter().find_map(|name| text(disk.join(name)));
    facts.name = clean(&node.name());
    facts.partition_of =
        node.is_partition().then(|| node.whole().and_then(|whole| clean(&whole.name()))).flatten();
    facts.model = first(&["device/model", "device/name", "dm/name"]);
    facts.vendor = first(&["device/vendor", "device/manfid"]);
    facts.firmware = first(&["device/firmware_rev", "device/rev", "device/fwrev"]);
    facts.wwid = first(&["wwid", "device/wwid", "device/cid", "dm/uuid", "md/uuid"]);
    facts.serial =
        first(&["device/serial", "serial"]).or_else(|| vpd_serial(disk)).or_else(|| usb_serial(disk));
    facts.backing_file = text(disk.join("loop/backing_file"));
    facts.transport = transport(disk);
}

/// The unit serial number page of SCSI: four bytes of header, then the text.
fn vpd_serial(disk: &Path) -> Option<String> {
    let page = std::fs::read(disk.join("device/vpd_pg80")).ok()?;
    clean(&String::from_utf8_lossy(page.get(4..)?))
}

/// The serial of the USB device above, which may be the bridge's.
fn usb_serial(disk: &Path) -> Option<String> {
    let usb = disk.ancestors().find(|dir| dir.join("idVendor").exists())?;
    text(usb.join("serial"))
}

/// From the device's name and its place among the buses.
fn transport(disk: &Path) -> Option<Transport> {
    let name = disk.file_name()?.to_string_lossy().into_owned();
    let by_name = [
        ("nvme", Transport::Nvme),
        ("loop", Transport::Loop),
        ("dm-", Transport::DeviceMapper),
        ("mmcblk", Transport::Mmc),
        ("zram", Transport::Memory),
        ("ram", Transport::Memory),
        ("pmem", Transport::Memory),
        ("nbd", Transport::Network),
        ("rbd", Transport::Network),
    ];
    if let Some((_, found)) = by_name.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return Some(*found);
    }
    if name.strip_prefix("md").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
    {
        return Some(Transport::Md);
    }
    let numbered = |part: &str, prefix: &str| {
        part.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    // USB before the others: a bridge shows a SCSI disk, and so does ATA.
    let buses = [
        ("usb", Transport::Usb),
        ("ata", Transport::Sata),
        ("virtio", Transport::Virtio),
        ("host", Transport::Scsi),
    ];
    let parts: Vec<String> =
        disk.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    let on = |prefix: &str| parts.iter().any(|part| numbered(part, prefix));
    buses.iter().find(|(prefix, _)| on(prefix)).map(|(_, found)| *found)
}

/// How the block layer drives it.
fn queue(facts: &mut DeviceFacts, node: &Node) {
    let queue = node.disk.join("queue");
    let bytes = |name: &str| number(queue.join(name)).map(Bytes);
    // The size is in units of 512 bytes whatever the sector size.
    facts.size_bytes = number(node.dir.join("size")).and_then(|sectors| sectors.checked_mul(512)).map(Bytes);
    facts.logical_sector_bytes = bytes("logical_block_size");
    facts.physical_sector_bytes = bytes("physical_block_size");
    facts.rotational = number(queue.join("rotational")).map(|value| value != 0);
    facts.scheduler = text(queue.join("scheduler")).and_then(|all| chosen(&all));
    facts.nr_requests = number(queue.join("nr_requests"));
    facts.queue_depth = number(node.disk.join("device/queue_depth"));
    facts.write_cache = text(queue.join("write_cache"));
    facts.max_request_bytes =
        number(queue.join("max_sectors_kb")).and_then(|kb| kb.checked_mul(1024)).map(Bytes);
    facts.discard_granularity_bytes = bytes("discard_granularity");
    facts.dax = number(queue.join("dax")).map(|value| value != 0);
}

/// The word in brackets, or the only word.
fn chosen(all: &str) -> Option<String> {
    let word = match all.split_once('[') {
        Some((_, rest)) => rest.split_once(']')?.0,
        None => all,
    };
    clean(word)
}

/// The facts about the file at `path`, which has its links resolved and need
/// not exist yet.
pub fn file_facts(path: &Path, paths: &SysPaths) -> DeviceFacts {
    let mut facts = DeviceFacts::unknown(path, DeviceKind::File);
    let meta = std::fs::symlink_metadata(path).ok();
    facts.size_bytes = meta.as_ref().map(|meta| Bytes(meta.size()));
    let mut file = FileFacts::default();
    if let Some(mount) = paths.mounts().ok().as_deref().and_then(|mounts| mount_of(path, mounts)) {
        file.fs_type = clean(&mount.fs_type);
        file.mount_point = Some(mount.point.to_string_lossy().into_owned());
        file.beneath = mount.device().and_then(|number| {
            let node = Node::find(number, paths)?;
            let dev: PathBuf = node.dev_path(paths);
            Some(Box::new(block_facts(&dev, number, None, paths)))
        });
    }
    if let Some(disk) = &file.beneath {
        facts.logical_sector_bytes = disk.logical_sector_bytes;
        facts.physical_sector_bytes = disk.physical_sector_bytes;
    }
    file.extents = meta
        .filter(std::fs::Metadata::is_file)
        .and_then(|_| crate::scratch::extents(&File::open(path).ok()?).ok().flatten())
        .map(|extents| crate::scratch::fragments(&extents));
    facts.file = Some(file);
    facts
}
