//! The whole stack of a target: what its bytes are made of, down to files and
//! disks, and what stands on each of these.
//!
//! Downwards: the whole disk of a partition, the slaves of device mapper, MD
//! and bcache, the file or device behind a loop device, the backing device of
//! a zram. Going down for *bytes* ends at a file: a file system lies beneath
//! it, and it owns the file's blocks and nothing else. Going down for the
//! *disk* goes on: to the file system that holds the file and its devices.
//! Upwards: mounts, swap, holders, loop devices, zrams, members of a mounted
//! btrfs, devices registered with bcache, other paths to the same disk.
//!
//! A device is known by its number, a file by its device and inode, which
//! `LOOP_GET_STATUS64` gives of the file behind a loop device: names lie where
//! there are hard links, bind mounts, another root or deleted files. Where
//! the loop device cannot be opened, the name in sysfs has to do.
//!
//! Each thing is visited once, so that cycles and depth end by themselves.
//!
//! Limits: mounts of other name spaces do not show; the device is claimed as
//! well (see [`crate::safety`]). What is behind a network disk is not seen.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`,
//! `Documentation/admin-guide/bcache.rst`, `.../blockdev/zram.rst`, `loop(4)`.

mod shared;

pub use shared::{shared, stands_on};

use super::seen::{self, Disks, gone};
use super::sysfs::{Node, names, number, text};
use super::{DevNumber, Mount, SysPaths, ioctl, mount_of};
use crate::units::Bytes;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the kernel puts behind the name of a file that has none any more.
const DELETED: &str = " (deleted)";

/// A file, as well as it can be told.
#[derive(Clone, Debug)]
pub(crate) struct FileRef {
    /// Its name, for people; the file may have others.
    pub path: PathBuf,
    /// `st_dev` and `st_ino`, where known.
    id: Option<(u64, u64)>,
}

impl FileRef {
    /// The file whose path, links resolved, is `path`.
    pub fn at(path: &Path) -> FileRef {
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        FileRef { path: path.to_path_buf(), id: meta.map(|meta| (meta.dev(), meta.ino())) }
    }

    /// From a name that the kernel gives, with its mark of deleted files.
    fn told(name: PathBuf) -> FileRef {
        let file = FileRef::at(&name);
        match name.to_str().and_then(|name| name.strip_suffix(DELETED)) {
            // A file of the old name may be another one: the name decides.
            Some(name) if file.id.is_none() => FileRef { path: PathBuf::from(name), id: None },
            _ => file,
        }
    }

    fn is(&self, other: &FileRef) -> bool {
        match (self.id, other.id) {
            (Some(one), Some(other)) => one == other,
            _ => self.path == other.path,
        }
    }
}

/// A device or a file of a stack.
#[derive(Clone, Debug)]
pub(crate) enum Thing {
    /// A block device.
    Device(Node),
    /// A regular file.
    File(FileRef),
}

/// How the bytes of a layer are those of the target; in the order in which a
/// thing that is in a stack more than once is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StackRole {
    /// It is the target.
    Itself,
    /// What a layer above it stands on.
    Beneath,
    /// The whole disk of a partition, looked at without its other partitions.
    Disk,
    /// A partition of something whose bytes are all the target's.
    Partition,
    /// The same disk by another path, or a partition of it.
    Twin,
}

/// One thing that shares its bytes with the target.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// What it is.
    pub thing: Thing,
    /// Why it is in the stack.
    pub role: StackRole,
    /// Free to be claimed: what is above it, a loop device, does not claim it.
    pub unclaimed: bool,
}

/// Who uses a device or file.
#[derive(Clone, Debug)]
pub(crate) enum User {
    /// A mount at this point.
    Mount(PathBuf),
    /// The active swap area of this name.
    Swap(PathBuf),
    /// Device mapper, MD, bcache or a zram.
    Holder(Node),
    /// A holder that sysfs does not know further.
    Unknown(String),
    /// A loop device.
    Loop(Node),
    /// The mounted btrfs of this UUID.
    Btrfs(String),
    /// bcache, which has not made a device of it.
    Bcache,
}

/// What is behind a loop device.
#[derive(Clone, Debug)]
enum Behind {
    Device(DevNumber),
    File(FileRef),
}

struct SwapArea {
    path: PathBuf,
    number: Option<DevNumber>,
    file: FileRef,
}

/// What the system tells of all its devices at one instant.
pub(crate) struct Host<'a> {
    paths: &'a SysPaths,
    mounts: Vec<Mount>,
    swaps: Vec<SwapArea>,
    loops: Vec<(Node, Behind)>,
    zrams: Vec<(Node, DevNumber)>,
    btrfs: Vec<(String, Vec<DevNumber>)>,
    disks: Disks,
}

impl<'a> Host<'a> {
    /// Looks at mounts, swap areas and the devices that leave no links in
    /// sysfs.
    ///
    /// # Errors
    /// Where mounts or swap areas cannot be read: then nothing can be ruled out.
    pub fn look(paths: &'a SysPaths) -> std::io::Result<Host<'a>> {
        let mut disks = seen::all_disks(paths);
        let area = |path: PathBuf| {
            let file = FileRef::told(path.clone());
            SwapArea { number: DevNumber::of_block_device(&path), path, file }
        };
        let mut unseen = Vec::new();
        let (mut loops, mut zrams, mut btrfs) = (Vec::new(), Vec::new(), Vec::new());
        for node in &disks.nodes {
            let over = behind(node, paths, &mut unseen);
            loops.extend(over.map(|over| (node.clone(), over)));
            let backing = zram_backing(node, paths, &mut unseen);
            zrams.extend(backing.map(|number| (node.clone(), number)));
        }
        for uuid in names(paths.sys.join("fs/btrfs")) {
            let devices = paths.sys.join("fs/btrfs").join(&uuid).join("devices");
            let mut members = Vec::new();
            for name in names(&devices) {
                let link = devices.join(&name);
                let by_link = || link.canonicalize().ok().and_then(Node::at);
                match Node::named(&name, paths).or_else(by_link) {
                    Some(node) => members.push(node.number),
                    None if gone(&link) => {}
                    None => unseen.push(format!("{} cannot be resolved", link.display())),
                }
            }
            btrfs.push((uuid, members));
        }
        disks.unseen.extend(unseen);
        let swaps = paths.swap_areas()?.into_iter().map(area).collect();
        Ok(Host { paths, mounts: paths.mounts()?, swaps, loops, zrams, btrfs, disks })
    }

    /// What would have to be seen to rule out that anybody uses `target`, and
    /// is not; each as a phrase.
    pub fn unseen(&self, target: &Node) -> Vec<String> {
        let mut unseen = self.disks.unseen.clone();
        let whole = target.whole().map(|whole| whole.number);
        if !self.disks.nodes.iter().any(|disk| Some(disk.number) == whole) {
            let sys = self.paths.sys.display();
            let name = target.disk.file_name().unwrap_or_default().to_string_lossy();
            unseen.push(format!("{name} is missing from both {sys}/block and {sys}/class/block"));
        }
        unseen
    }

    /// Everything whose bytes are the target's, the target first.
    pub fn stack(&self, target: Thing) -> Vec<Layer> {
        let mut layers: Vec<Layer> = Vec::new();
        let mut todo = vec![Layer { thing: target, role: StackRole::Itself, unclaimed: false }];
        while let Some(layer) = todo.pop() {
            if layers.iter().any(|seen| same(&seen.thing, &layer.thing) && seen.role <= layer.role) {
                continue;
            }
            if let Thing::Device(node) = &layer.thing {
                todo.extend(self.next(node, layer.role));
            }
            layers.retain(|seen| !same(&seen.thing, &layer.thing));
            layers.push(layer);
        }
        layers
    }

    /// What is to be visited after `node`.
    fn next(&self, node: &Node, role: StackRole) -> Vec<Layer> {
        if matches!(role, StackRole::Partition | StackRole::Twin) {
            return Vec::new();
        }
        let device =
            |node: Node, role: StackRole| Layer { thing: Thing::Device(node), role, unclaimed: false };
        let mut next: Vec<Layer> = Vec::new();
        if node.is_partition() {
            next.extend(node.whole().map(|whole| device(whole, StackRole::Disk)));
        } else {
            next.extend(twins(node, self.paths).into_iter().map(|twin| device(twin, StackRole::Twin)));
            if role != StackRole::Disk {
                next.extend(node.partitions().into_iter().map(|part| device(part, StackRole::Partition)));
            }
        }
        next.extend(self.made_of(node));
        next
    }

    /// What the bytes of `node` are made of, one step down.
    fn made_of(&self, node: &Node) -> Vec<Layer> {
        let beneath = |thing: Thing| Layer { thing, role: StackRole::Beneath, unclaimed: false };
        let mut found: Vec<Layer> =
            node.slaves().into_iter().map(|slave| beneath(Thing::Device(slave))).collect();
        let find = |number: DevNumber| Node::find(number, self.paths).map(Thing::Device);
        let of = |(loop_device, _): &&(Node, Behind)| loop_device.number == node.number;
        if let Some((_, behind)) = self.loops.iter().find(of) {
            let thing = match behind {
                Behind::Device(number) => find(*number),
                Behind::File(file) => Some(Thing::File(file.clone())),
            };
            found.extend(thing.map(|thing| Layer { unclaimed: true, ..beneath(thing) }));
        }
        let zram = self.zrams.iter().find(|(zram, _)| zram.number == node.number);
        found.extend(zram.and_then(|(_, number)| find(*number)).map(beneath));
        found
    }

    /// Who uses `thing` directly.
    pub fn users(&self, thing: &Thing) -> Vec<User> {
        match thing {
            Thing::Device(node) => self.users_of_device(node),
            Thing::File(file) => self.users_of_file(file),
        }
    }

    fn users_of_device(&self, node: &Node) -> Vec<User> {
        let here = |number: &DevNumber| *number == node.number;
        let mounted = self.mounts.iter().filter(|mount| mount.devices().iter().any(here));
        let mut users: Vec<User> = mounted.map(|mount| User::Mount(mount.point.clone())).collect();
        let swapped = self.swaps.iter().filter(|area| area.number.as_ref().is_some_and(here));
        users.extend(swapped.map(|area| User::Swap(area.path.clone())));
        for name in names(node.dir.join("holders")) {
            users.push(Node::named(&name, self.paths).map_or(User::Unknown(name), User::Holder));
        }
        let over = self.loops.iter().filter(|(_, b)| matches!(b, Behind::Device(n) if here(n)));
        users.extend(over.map(|(over, _)| User::Loop(over.clone())));
        let zrams = self.zrams.iter().filter(|(_, number)| here(number));
        users.extend(zrams.map(|(zram, _)| User::Holder(zram.clone())));
        // A btrfs of several disks names only one of them in its mount.
        let member = self.btrfs.iter().filter(|(_, members)| members.iter().any(here));
        users.extend(member.map(|(uuid, _)| User::Btrfs(uuid.clone())));
        // A directory of its own; the one of a bcache device is a link.
        let registered = std::fs::symlink_metadata(node.dir.join("bcache")).is_ok_and(|meta| meta.is_dir());
        users.extend(registered.then_some(User::Bcache));
        users
    }

    fn users_of_file(&self, file: &FileRef) -> Vec<User> {
        let over = self.loops.iter().filter(|(_, b)| matches!(b, Behind::File(f) if f.is(file)));
        let mut users: Vec<User> = over.map(|(over, _)| User::Loop(over.clone())).collect();
        let swapped = self.swaps.iter().filter(|area| area.number.is_none() && area.file.is(file));
        users.extend(swapped.map(|area| User::Swap(area.path.clone())));
        // Mounted without a loop device: erofs, and file systems of FUSE.
        let image = |mount: &&Mount| {
            mount.number.major == 0 && mount.source.is_absolute() && {
                let source = FileRef::at(&mount.source);
                source.id.is_some() && source.is(file)
            }
        };
        users.extend(self.mounts.iter().filter(image).map(|mount| User::Mount(mount.point.clone())));
        users
    }

    /// What stands on `node`, as far as it goes up, for people: `loop3, mounted
    /// at /m`.
    pub fn describe_up(&self, node: &Node) -> String {
        let mut words = vec![node.describe()];
        let mut seen = vec![node.number];
        let mut todo = vec![node.clone()];
        while let Some(node) = todo.pop() {
            let parts = node.partitions();
            for user in self.users_of_device(&node) {
                match user {
                    User::Mount(point) => words.push(format!("mounted at {}", point.display())),
                    User::Swap(_) => words.push("in use as swap".to_string()),
                    User::Holder(upper) | User::Loop(upper) if !seen.contains(&upper.number) => {
                        words.push(format!("in use by {}", upper.describe()));
                        seen.push(upper.number);
                        todo.push(upper);
                    }
                    _ => {}
                }
            }
            todo.extend(parts.into_iter().filter(|part| !seen.contains(&part.number)));
        }
        words.join(", ")
    }

    /// The devices of the file system that holds `file`; none for tmpfs, NFS
    /// and the like.
    fn devices_of(&self, file: &FileRef) -> Vec<DevNumber> {
        let own = file.id.map(|(dev, _)| DevNumber::from_dev(dev));
        if let Some(number) = own.filter(|number| number.major != 0) {
            return self.with_members(vec![number]);
        }
        let by_number = self.mounts.iter().find(|mount| Some(mount.number) == own);
        let mount = by_number.or_else(|| mount_of(&file.path, &self.mounts));
        self.with_members(mount.map(Mount::devices).unwrap_or_default())
    }

    /// The same with every member of the btrfs that one of them belongs to.
    fn with_members(&self, mut numbers: Vec<DevNumber>) -> Vec<DevNumber> {
        for (_, members) in &self.btrfs {
            if members.iter().any(|member| numbers.contains(member)) {
                numbers.extend(members);
            }
        }
        numbers
    }

    /// `start`, everything it is made of, the file systems that hold the files
    /// among it, and all of their whole disks.
    fn all_beneath(&self, start: Vec<DevNumber>) -> BTreeSet<DevNumber> {
        let mut seen = BTreeSet::new();
        let mut todo = start;
        while let Some(number) = todo.pop() {
            if !seen.insert(number) {
                continue;
            }
            let Some(node) = Node::find(number, self.paths) else { continue };
            todo.extend(node.whole().map(|whole| whole.number));
            for layer in self.made_of(&node) {
                match layer.thing {
                    Thing::Device(node) => todo.push(node.number),
                    Thing::File(file) => todo.extend(self.devices_of(&file)),
                }
            }
        }
        seen
    }

    /// The devices of the root file system, to the lowest disk.
    pub fn root_disks(&self) -> BTreeSet<DevNumber> {
        let roots = self.mounts.iter().filter(|mount| mount.point.as_os_str() == "/");
        self.all_beneath(roots.flat_map(|root| self.with_members(root.devices())).collect())
    }
}

/// The whole disk that a block device is of, or that holds the file system of
/// the file at `path`: the one whose counters show the IO of a target. `None`
/// where there is none, as of files in memory.
pub fn disk_of(path: &Path, paths: &SysPaths) -> Option<DevNumber> {
    let path = path.canonicalize().ok()?;
    let number = match DevNumber::of_block_device(&path) {
        Some(number) => number,
        None => *Host::look(paths).ok()?.devices_of(&FileRef::at(&path)).first()?,
    };
    Some(Node::find(number, paths).and_then(|node| node.whole()).map_or(number, |whole| whole.number))
}

/// The largest request that the kernel hands to a disk whole: larger ones it splits.
/// `None` where it does not tell. Of memory whose pages lie anywhere.
pub fn largest_request(disk: DevNumber, paths: &SysPaths) -> Option<Bytes> {
    let node = Node::find(disk, paths)?;
    let by_size = number(node.disk.join("queue/max_sectors_kb"))? << 10;
    let segments = number(node.disk.join("queue/max_segments"));
    let by_segments = segments.map_or(u64::MAX, |segments| segments.saturating_mul(4096));
    Some(Bytes(by_size.min(by_segments))).filter(|largest| largest.0 > 0)
}

fn same(one: &Thing, other: &Thing) -> bool {
    match (one, other) {
        (Thing::Device(one), Thing::Device(other)) => one.number == other.number,
        (Thing::File(one), Thing::File(other)) => one.is(other),
        _ => false,
    }
}

/// The file or device behind a loop device; `None` where nothing is. Adds to
/// `unseen` what cannot be told.
fn behind(node: &Node, paths: &SysPaths, unseen: &mut Vec<String>) -> Option<Behind> {
    let told = node.dir.join("loop/backing_file");
    let mut name = match std::fs::read(&told) {
        Ok(name) => name,
        Err(_) if gone(&told) => return None,
        Err(error) => {
            unseen.push(format!("{} cannot be read ({error})", told.display()));
            return None;
        }
    };
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    let path = PathBuf::from(OsString::from_vec(name));
    let by_name = DevNumber::of_block_device(&path);
    let status = match open_node(node, paths).map(|file| ioctl::loop_status(&file)) {
        Some(Ok(status)) => status,
        // It says itself that nothing is behind it: it was detached meanwhile.
        Some(Err(error)) if error.raw_os_error() == Some(libc::ENXIO) => return None,
        _ => return named_behind(node, path, paths, unseen),
    };
    // Of a file, older kernels give its device's number here, newer ones 0.
    let number = DevNumber::from_dev(status.rdev);
    if status.rdev != 0 && (status.rdev != status.device || by_name == Some(number)) {
        unseen.extend(unresolved(number, node, paths));
        return Some(Behind::Device(number));
    }
    let path = FileRef::told(path).path;
    Some(Behind::File(FileRef { path, id: Some((status.device, status.inode)) }))
}

/// The same by the name that sysfs gives, where the loop device does not answer.
fn named_behind(node: &Node, path: PathBuf, paths: &SysPaths, unseen: &mut Vec<String>) -> Option<Behind> {
    if let Some(number) = DevNumber::of_block_device(&path) {
        unseen.extend(unresolved(number, node, paths));
        return Some(Behind::Device(number));
    }
    let file = FileRef::told(path.clone());
    let told = node.dir.join("loop/backing_file");
    if file.id.is_none() {
        if gone(&told) {
            return None;
        }
        unseen.push(format!(
            "what is behind {} can neither be asked of {} nor found at {}, which {} names",
            node.name(),
            node.dev_path(paths).display(),
            path.display(),
            told.display()
        ));
    }
    Some(Behind::File(file))
}

/// That sysfs does not know the device `number`, on which `upper` stands.
fn unresolved(number: DevNumber, upper: &Node, paths: &SysPaths) -> Option<String> {
    let sys = paths.sys.display();
    let unknown = || format!("{sys} does not tell of device {number}, which is behind {}", upper.name());
    Node::find(number, paths).is_none().then(unknown)
}

/// The device behind a loop device; `None` where a file or nothing is.
pub(super) fn device_behind(node: &Node, paths: &SysPaths) -> Option<DevNumber> {
    match behind(node, paths, &mut Vec::new())? {
        Behind::Device(number) => Some(number),
        Behind::File(_) => None,
    }
}

/// Opens the node of a device to ask about it, where it is the device's.
fn open_node(node: &Node, paths: &SysPaths) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(node.dev_path(paths)).ok()?;
    let meta = file.metadata().ok()?;
    let right = meta.file_type().is_block_device() && DevNumber::from_dev(meta.rdev()) == node.number;
    right.then_some(file)
}

/// The device that a zram writes to when memory is short. Adds to
/// `unseen` what cannot be told.
fn zram_backing(node: &Node, paths: &SysPaths, unseen: &mut Vec<String>) -> Option<DevNumber> {
    let told = node.dir.join("backing_dev");
    let backing = node.name().starts_with("zram").then(|| text(&told)).flatten()?;
    if backing == "none" {
        return None;
    }
    let in_root = Path::new(&backing).strip_prefix("/dev").ok().map(|name| paths.dev.join(name));
    let by_name = || Node::named(Path::new(&backing).file_name()?.to_str()?, paths).map(|node| node.number);
    let number = in_root.and_then(|path| DevNumber::of_block_device(&path)).or_else(by_name);
    match number {
        Some(number) => unseen.extend(unresolved(number, node, paths)),
        None => unseen.push(format!("{backing}, which {} names, cannot be resolved", told.display())),
    }
    number
}

/// Other paths to the same disk, with their partitions: whole disks of the same
/// world-wide identifier and size. Where multipath is at work, either the disk
/// holds them or they are hidden; elsewhere each looks like a disk of its own.
fn twins(disk: &Node, paths: &SysPaths) -> Vec<Node> {
    let identity = |node: &Node| {
        let wwid = text(node.dir.join("wwid")).or_else(|| text(node.dir.join("device/wwid")))?;
        Some((wwid, text(node.dir.join("size")).filter(|size| size != "0")?))
    };
    let Some(own) = identity(disk) else { return Vec::new() };
    let others = seen::all_disks(paths).nodes.into_iter().filter(|other| other.number != disk.number);
    let twins = others.filter(|other| identity(other).as_ref() == Some(&own));
    twins.flat_map(|twin| [vec![twin.clone()], twin.partitions()].concat()).collect()
}

/// True where the holders `one` and `other` of `below` share none of its bytes.
/// All but device mapper claim a device for themselves alone and divide it
/// among their own (the volumes of an MD container, the sets of bcache). Of
/// device mapper, so do the volumes of one LVM group on their disks, the thin
/// volumes of a pool and the partitions that kpartx maps; all else may overlap.
pub(crate) fn apart(one: &Node, other: &Node, below: &Node) -> bool {
    let uuid = |node: &Node| text(node.dir.join("dm/uuid"));
    let mapped = |node: &Node| node.dir.join("dm").exists();
    if !mapped(one) && !mapped(other) {
        return true;
    }
    let (Some(one), Some(other)) = (uuid(one), uuid(other)) else { return false };
    let below = uuid(below).unwrap_or_default();
    // "LVM-", 32 characters of the group, 32 of the volume.
    let group = |uuid: &str| uuid.starts_with("LVM-").then(|| uuid.get(..36).map(str::to_string)).flatten();
    let pool = below.ends_with("-tpool") || below.ends_with("-vpool");
    let volumes = group(&one).is_some() && group(&one) == group(&other) && (pool || group(&below).is_none());
    let part = |uuid: &str| {
        let (number, of) = uuid.strip_prefix("part")?.split_once('-')?;
        Some((number.parse::<u32>().ok()?, of.to_string()))
    };
    let parts = part(&one).zip(part(&other)).is_some_and(|(a, b)| a.1 == b.1 && a.0 != b.0);
    volumes || parts
}
