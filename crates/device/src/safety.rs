//! What may be written to, and how to say so.
//!
//! [`examine`] looks at a target and lists what stands in the way;
//! [`permit`] weighs that against what the user consented to and gives a
//! [`WritePermit`], the only way to a descriptor that writes. The permit looks
//! again after opening, on the descriptor itself, so that a device exchanged
//! between check and use is noticed. Reading needs none of it.
//!
//! The rules: a block device is written only when its serial or its path is
//! named; where a signature or partition table is on it, that is named too
//! (`/dev/sdb+ext4`), and where none is known and it is neither blank nor
//! written by us, `unknown-contents` is ([`contents`]). Mounted, held, looped,
//! swap, read-only, exclusively opened devices and the disk of the root file
//! system never, and no more anything that shares its bytes with one (see
//! [`crate::identity`]'s stack); there is no force.
//! A link is followed and the consent must name what it leads to, as links
//! such as `by-id` move from one disk to another. A serial counts only for a
//! whole disk and only while no other disk gives the same one. Files need no
//! consent and are written only when missing, empty, or made by
//! [`crate::scratch`].
//!
//! Source of the gaps closed here: fio issues 1007 and 1637 (whole disks with
//! a mounted partition, `by-id` links and character devices slipped through).

mod contents;
mod fresh;
mod magic;
mod permit;
mod program;
mod usage;
mod writers;

pub use magic::Signature;
pub use permit::{Refusal, WritePermit, permit};
pub use program::Programming;
pub use writers::writers;

use contents::Looked;

use crate::identity::sysfs::Node;
use crate::identity::{self, DevNumber, DeviceFacts, SysPaths, ioctl, sysfs, word};
use crate::scratch::sidecar::{Programmed, Sidecar};
use crate::scratch::{self, NotOurs};
use crate::stamp::Key;
use crate::units::Bytes;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a target cannot be examined or opened.
#[derive(Debug, thiserror::Error)]
pub enum SafetyError {
    /// The system refused something.
    #[error("{what} {path}: {source}{}", hint(source), path = path.display())]
    Path {
        /// What was tried, as the start of a sentence ("cannot open").
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Not something that can be measured, with what to type instead.
    #[error("{path} cannot be a target: {why}", path = path.display())]
    NotATarget {
        /// The path as typed.
        path: PathBuf,
        /// Why, and what to type.
        why: String,
    },
    /// It is not what was examined any more. Nothing was written.
    #[error(
        "{path}: the device changed between check and use: {what}; nothing was written. \
         Look at it with `uflip devices` and start again",
        path = path.display()
    )]
    Changed {
        /// The resolved path.
        path: PathBuf,
        /// What is different.
        what: String,
    },
    /// Another program has it.
    #[error("{path} is in use: {who}; end that program or name another target", path = path.display())]
    Busy {
        /// The resolved path.
        path: PathBuf,
        /// By whom, as far as known.
        who: String,
    },
}

/// What an errno means for somebody naming a target.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => " (run as root, or as a user who may open this device)",
        Some(libc::ENOENT) => " (is the path typed right? `uflip devices` lists the devices)",
        Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => " (no device or medium is there)",
        Some(libc::EROFS) => " (it takes no writes)",
        Some(libc::EINVAL) => " (does it take the flags asked for, such as O_DIRECT?)",
        _ => "",
    }
}

fn path_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SafetyError {
    move |source| SafetyError::Path { what, path: path.to_path_buf(), source }
}

/// The kind of thing that stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concern {
    /// It, or anything that shares its bytes, is mounted.
    Mounted,
    /// LVM, RAID, device mapper or btrfs stands on it.
    Held,
    /// A loop device stands on it, or on what it shares its bytes with.
    Looped,
    /// Swapped to.
    Swap,
    /// The root file system is on that disk.
    RootDisk,
    /// The kernel takes no writes for it.
    ReadOnly,
    /// Another program or the kernel has it open exclusively.
    Busy,
    /// The kernel shows partitions on it.
    Partitions,
    /// A known signature or partition table is on it.
    Signature,
    /// No signature is known, and it is neither blank nor written by this tool.
    UnknownContents,
    /// A file whose contents this tool did not make.
    ForeignFile,
    /// A file that serves as a disk or as swap.
    FileInUse,
    /// It cannot be opened for reading, so its contents cannot be checked.
    Unreadable,
    /// Sysfs does not show what has to be seen to rule out that it is in use.
    Unseen,
}

/// One thing that stands in the way of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Its kind.
    pub concern: Concern,
    /// True where nothing that can be typed removes it.
    pub absolute: bool,
    /// What was found, as a phrase: `mounted at /home`, `holds an ext4 file system`.
    pub statement: String,
    /// The word that confirms it; `None` where it is absolute.
    pub tag: Option<&'static str>,
}

impl Obstacle {
    pub(crate) fn absolute(concern: Concern, statement: String) -> Obstacle {
        Obstacle { concern, absolute: true, statement: sysfs::printable(&statement), tag: None }
    }

    fn confirmable(concern: Concern, statement: String, tag: &'static str) -> Obstacle {
        Obstacle { concern, absolute: false, statement, tag: Some(tag) }
    }
}

/// What a target is, in the eyes of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A block device: needs consent.
    Block,
    /// A file this tool made.
    Scratch,
    /// An existing file without contents.
    EmptyFile,
    /// An existing file with contents of somebody else.
    ForeignFile,
    /// Nothing is there yet.
    Missing,
}

/// What makes a target this target; compared again after opening.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    /// `st_rdev` of a block device.
    number: Option<DevNumber>,
    /// `st_dev` and `st_ino` of a file; of a block device's node they say
    /// nothing of the device.
    inode: Option<(u64, u64)>,
    size: u64,
    /// The kernel's sequence number of the medium.
    sequence: Option<u64>,
    serial: Option<String>,
}

/// What [`examine`] found. Cannot be made or changed elsewhere.
#[derive(Clone, Debug)]
pub struct Examination {
    typed: PathBuf,
    path: PathBuf,
    kind: TargetKind,
    facts: DeviceFacts,
    obstacles: Vec<Obstacle>,
    notes: Vec<String>,
    looked: Option<Looked>,
    /// Serial, where it names exactly this device.
    naming_serial: Option<String>,
    /// What everything written to it is stamped with.
    key: Key,
    /// A program wrote it; see `crate::scratch`.
    programmed: bool,
    snapshot: Snapshot,
    paths: SysPaths,
}

impl Examination {
    /// The path with all links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True where the path as typed led here over a link.
    pub fn through_link(&self) -> bool {
        std::path::absolute(&self.typed).is_ok_and(|typed| typed != self.path)
    }

    /// What it is.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// True for a scratch file that holds what a program of ours left, which a
    /// measurement would destroy.
    pub fn is_programmed(&self) -> bool {
        self.programmed
    }

    /// What is known about it.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// What stands in the way of writing; empty where nothing does.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// What is worth knowing and does not stand in the way.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where a block device was looked at for unknown contents, and how certain
    /// none were missed; `None` where something else says whose it is.
    pub fn looked(&self) -> Option<String> {
        self.looked.as_ref().map(Looked::statement)
    }

    /// The option that permits writing: `--erase-device SERIAL+ext4`, with the
    /// path where no serial names exactly this device. `None` where nothing is
    /// needed, and where nothing helps.
    pub fn what_to_type(&self) -> Option<String> {
        let refused = self.obstacles.iter().any(|obstacle| obstacle.absolute);
        (self.kind == TargetKind::Block && !refused).then(|| {
            let name = self.naming_serial.clone().unwrap_or_else(|| self.path.display().to_string());
            let tags: String = self.tags().iter().map(|tag| format!("+{tag}")).collect();
            format!("--erase-device {}", word(&(name + &tags)))
        })
    }

    /// The words that must be confirmed, sorted.
    fn tags(&self) -> Vec<&'static str> {
        tags_of(&self.obstacles)
    }
}

/// The word that confirms partitions that the kernel shows.
const PARTITIONS: &str = "partitions";

/// The tag that is written so: of a signature, of partitions, or of unknown
/// contents. What is absolute has none.
fn known_tag(word: &str) -> Option<&'static str> {
    magic::tags().chain([PARTITIONS, contents::TAG]).find(|tag| *tag == word)
}

fn tags_of(obstacles: &[Obstacle]) -> Vec<&'static str> {
    let mut tags: Vec<&'static str> = obstacles.iter().filter_map(|obstacle| obstacle.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Looks at `path` and everything that stands in the way of writing to it.
/// Writes nothing. A block device is claimed exclusively for a moment, to
/// learn whether anybody else has it.
///
/// # Errors
/// Where it is no block device, file or free name, and where it cannot be
/// opened for reading: then its contents cannot be checked.
pub fn examine(path: &Path, paths: &SysPaths) -> Result<Examination, SafetyError> {
    look(path, paths, true)
}

/// As [`examine`] without the claim.
pub(crate) fn examine_unclaimed(path: &Path, paths: &SysPaths) -> Result<Examination, SafetyError> {
    look(path, paths, false)
}

fn look(typed: &Path, paths: &SysPaths, claim: bool) -> Result<Examination, SafetyError> {
    let meta = match std::fs::metadata(typed) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return look_missing(typed, paths),
        Err(error) => return Err(path_error("cannot look at", typed)(error)),
    };
    let path = typed.canonicalize().map_err(path_error("cannot resolve", typed))?;
    let kind = meta.file_type();
    if kind.is_block_device() {
        return look_block(typed, path, DevNumber::from_dev(meta.rdev()), paths, claim);
    }
    if kind.is_file() {
        return look_file(typed, path, &meta, paths);
    }
    let why = if kind.is_dir() {
        "it is a directory; name a new file in it, such as DIRECTORY/uflip.scratch".to_string()
    } else if kind.is_char_device() {
        "it is a character device; name the block device of the same disk (`uflip devices` lists them)"
            .to_string()
    } else {
        "it is neither a block device nor a regular file".to_string()
    };
    Err(SafetyError::NotATarget { path: typed.to_path_buf(), why })
}

fn look_block(
    typed: &Path,
    path: PathBuf,
    number: DevNumber,
    paths: &SysPaths,
    claim: bool,
) -> Result<Examination, SafetyError> {
    let flags = libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let inspected = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => inspect(&path, &file, number, paths)?,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            inspect_closed(&path, &error, number, paths)?
        }
        Err(error) => return Err(path_error("cannot open to check its contents", &path)(error)),
    };
    let Inspection { facts, mut obstacles, mut notes, looked, snapshot } = inspected;
    let readable = !obstacles.iter().any(|obstacle| obstacle.concern == Concern::Unreadable);
    let node = Node::find(number, paths);
    if claim && readable {
        obstacles.extend(claimed_elsewhere(&path)?);
        obstacles
            .extend(node.as_ref().map(|node| beneath_claimed(&path, node, paths)).transpose()?.flatten());
    }
    let naming_serial = node.zip(facts.serial.clone()).and_then(|(node, serial)| {
        let others = usage::same_serial(&node, &serial, paths);
        if !others.is_empty() {
            notes.push(format!(
                "its serial {serial} is also that of {}: only the path names it",
                others.join(", ")
            ));
        }
        (others.is_empty() && !node.is_partition()).then_some(serial)
    });
    let kind = TargetKind::Block;
    let paths = paths.clone();
    Ok(Examination {
        typed: typed.to_path_buf(),
        path,
        kind,
        facts,
        obstacles,
        notes,
        looked,
        naming_serial,
        key: Key::DEVICE,
        programmed: false,
        snapshot,
        paths,
    })
}

/// What can be seen of a block device through one descriptor.
struct Inspection {
    facts: DeviceFacts,
    obstacles: Vec<Obstacle>,
    notes: Vec<String>,
    looked: Option<Looked>,
    snapshot: Snapshot,
}

/// Looks at block device `number` through `file`, which must take unaligned reads.
fn inspect(path: &Path, file: &File, number: DevNumber, paths: &SysPaths) -> Result<Inspection, SafetyError> {
    let size = ioctl::size_bytes(file).map_err(path_error("cannot read the size of", path))?;
    if size == 0 {
        let why = "it has no size; is a medium in it, or a file behind it?".to_string();
        return Err(SafetyError::NotATarget { path: path.to_path_buf(), why });
    }
    let mut seen = inspect_uses(path, Some(file), number, paths)?;
    if ioctl::read_only(file).map_err(path_error("cannot learn whether writes are taken by", path))? {
        seen.obstacles.push(Obstacle::absolute(Concern::ReadOnly, "read-only".to_string()));
    }
    let ends =
        magic::Ends::read(file, size).map_err(path_error("cannot read the first and last bytes of", path))?;
    let found = magic::signatures(&ends);
    for s in &found {
        let statement = format!("holds {} (at byte {})", s.what, s.offset);
        seen.obstacles.push(Obstacle::confirmable(Concern::Signature, statement, s.tag));
    }
    // A signature says already that it holds data, and what is absolute that
    // nothing will be written.
    if found.is_empty() && !seen.obstacles.iter().any(|obstacle| obstacle.absolute) {
        let looked = contents::look(file, size, &ends);
        let unknown = looked.unknown();
        let obstacle = |what| Obstacle::confirmable(Concern::UnknownContents, what, contents::TAG);
        seen.obstacles.extend(unknown.map(obstacle));
        seen.looked = Some(looked);
    }
    seen.snapshot.size = size;
    seen.snapshot.sequence = ioctl::disk_sequence(file);
    Ok(seen)
}

/// What is known of a device that may not be opened: never enough to write.
fn inspect_closed(
    path: &Path,
    error: &io::Error,
    number: DevNumber,
    paths: &SysPaths,
) -> Result<Inspection, SafetyError> {
    let mut seen = inspect_uses(path, None, number, paths)?;
    let statement = format!("cannot be opened, so nobody's data can be ruled out: {error}{}", hint(error));
    seen.obstacles.push(Obstacle::absolute(Concern::Unreadable, statement));
    Ok(seen)
}

/// What is known without reading any contents.
fn inspect_uses(
    path: &Path,
    file: Option<&File>,
    number: DevNumber,
    paths: &SysPaths,
) -> Result<Inspection, SafetyError> {
    let Some(node) = Node::find(number, paths) else {
        let why = format!(
            "{} tells nothing of device {number}, so nobody's data can be ruled out",
            paths.sys.display()
        );
        return Err(SafetyError::NotATarget { path: path.to_path_buf(), why });
    };
    let facts = identity::block_facts(path, number, file, paths);
    let usage::Uses { mut obstacles, notes } =
        usage::look(&node, paths).map_err(path_error("cannot learn what is mounted, for", path))?;
    let partitions: Vec<String> = node.partitions().iter().map(Node::name).collect();
    if !partitions.is_empty() {
        let statement = format!("has the partitions {}", partitions.join(", "));
        obstacles.push(Obstacle::confirmable(Concern::Partitions, statement, PARTITIONS));
    }
    let size = facts.size_bytes.map_or(0, |size| size.0);
    let serial = facts.serial.clone();
    let snapshot = Snapshot { number: Some(number), inode: None, size, sequence: None, serial };
    Ok(Inspection { facts, obstacles, notes, looked: None, snapshot })
}

/// Claims the device and lets it go: an obstacle where somebody has it.
fn claimed_elsewhere(path: &Path) -> Result<Option<Obstacle>, SafetyError> {
    let flags = libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(_) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            let statement =
                "open exclusively elsewhere (mounted, held, or another program has it)".to_string();
            Ok(Some(Obstacle::absolute(Concern::Busy, statement)))
        }
        Err(error) => Err(path_error("cannot claim", path)(error)),
    }
}

/// The same for what lies beneath it, where that is free to be claimed.
fn beneath_claimed(path: &Path, node: &Node, paths: &SysPaths) -> Result<Option<Obstacle>, SafetyError> {
    let claims = usage::claim_beneath(node, paths);
    claims.map(Result::err).map_err(path_error("cannot learn who uses what lies beneath", path))
}

/// File systems whose files are not data.
const PSEUDO: &[&str] = &[
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "tracefs",
    "debugfs",
    "securityfs",
    "configfs",
    "pstore",
    "bpf",
    "efivarfs",
    "mqueue",
    "fusectl",
    "binfmt_misc",
    "rpc_pipefs",
    "nsfs",
    "selinuxfs",
];

/// Refuses places where a file is not data: a mistyped `/dev/sdx` must not
/// become a file in memory.
fn not_pseudo(typed: &Path, resolved: &Path, paths: &SysPaths) -> Result<(), SafetyError> {
    let mounts = paths.mounts().map_err(path_error("cannot learn what is mounted, for", typed))?;
    match identity::mount_of(resolved, &mounts) {
        Some(mount) if PSEUDO.contains(&mount.fs_type.as_str()) => {
            let missing = if resolved.exists() { "" } else { "nothing is there, and " };
            let why = format!(
                "{missing}{} is a {} file system, where files are not on a disk; `uflip devices` lists the devices",
                mount.point.display(),
                mount.fs_type
            );
            Err(SafetyError::NotATarget { path: typed.to_path_buf(), why })
        }
        _ => Ok(()),
    }
}

fn look_file(
    typed: &Path,
    path: PathBuf,
    meta: &Metadata,
    paths: &SysPaths,
) -> Result<Examination, SafetyError> {
    not_pseudo(typed, &path, paths)?;
    let mut obstacles = file_in_use(&path, paths).map_err(path_error("cannot learn who uses", &path))?;
    let ours = if meta.size() == 0 { Ok(None) } else { ours(&path, meta).map(Some) };
    let kind = match &ours {
        Ok(None) => TargetKind::EmptyFile,
        Ok(Some(_)) => TargetKind::Scratch,
        Err(why) => {
            obstacles.push(Obstacle::absolute(Concern::ForeignFile, why.to_string()));
            TargetKind::ForeignFile
        }
    };
    let inode = Some((meta.dev(), meta.ino()));
    let snapshot = Snapshot { number: None, inode, size: meta.size(), sequence: None, serial: None };
    let mut seen = file_examination(typed, path, kind, obstacles, snapshot, paths);
    if let Ok(Some(ours)) = ours {
        seen.key = ours.key;
        seen.programmed = ours.programmed != Programmed::No;
        // Its header is none of what is measured.
        seen.facts.size_bytes = seen.facts.size_bytes.map(|size| Bytes(size.0 - scratch::HEADER.0));
    }
    Ok(seen)
}

fn file_examination(
    typed: &Path,
    path: PathBuf,
    kind: TargetKind,
    obstacles: Vec<Obstacle>,
    snapshot: Snapshot,
    paths: &SysPaths,
) -> Examination {
    let facts = identity::file_facts(&path, paths);
    Examination {
        typed: typed.to_path_buf(),
        path,
        kind,
        facts,
        obstacles,
        notes: Vec::new(),
        looked: None,
        naming_serial: None,
        key: Key::DEVICE,
        programmed: false,
        snapshot,
        paths: paths.clone(),
    }
}

/// The sidecar of the finished scratch file at `path`, which must be the file of
/// `meta`; why it is none. One that somebody made a file system in is theirs, but
/// where that is what a program of ours left, to the byte.
fn ours(path: &Path, meta: &Metadata) -> Result<Sidecar, NotOurs> {
    let foreign = |why: String| NotOurs::Foreign(why);
    let flags = libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| foreign(format!("it cannot be read: {error}")))?;
    let inode = |meta: &Metadata| (meta.dev(), meta.ino(), meta.size());
    if !file.metadata().is_ok_and(|now| inode(&now) == inode(meta)) {
        return Err(foreign("it changes while it is looked at".to_string()));
    }
    let found = scratch::recognise(path, &file)?;
    if !found.complete {
        return Err(foreign("it was made by uflip and never finished".to_string()));
    }
    if found.programmed != Programmed::No {
        return Ok(found);
    }
    let ends = magic::Ends::read(&file, meta.size());
    let ends = ends.map_err(|error| foreign(format!("it cannot be read: {error}")))?;
    match magic::signatures(&ends).first() {
        Some(signature) => Err(foreign(format!("it holds {}", signature.what))),
        None => Ok(found),
    }
}

/// Who uses the file at `path` as a disk or as swap, as a phrase.
pub(crate) fn used_by(path: &Path) -> io::Result<Option<String>> {
    let found = file_in_use(&path.canonicalize()?, &SysPaths::default())?;
    Ok(found.into_iter().next().map(|obstacle| obstacle.statement))
}

fn file_in_use(path: &Path, paths: &SysPaths) -> io::Result<Vec<Obstacle>> {
    usage::file_obstacles(path, paths)
}

fn look_missing(typed: &Path, paths: &SysPaths) -> Result<Examination, SafetyError> {
    let not = |why: &str| SafetyError::NotATarget { path: typed.to_path_buf(), why: why.to_string() };
    if std::fs::symlink_metadata(typed).is_ok() {
        return Err(not("it is a link that leads nowhere; name the file or device itself"));
    }
    let name = typed.file_name().ok_or_else(|| not("it names no file; type a file's name"))?;
    let parent = match typed.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(path_error("cannot find the folder", parent))?;
    let path = parent.join(name);
    not_pseudo(typed, &path, paths)?;
    let snapshot = Snapshot { number: None, inode: None, size: 0, sequence: None, serial: None };
    Ok(file_examination(typed, path, TargetKind::Missing, Vec::new(), snapshot, paths))
}

/// Opens a target for reading, which needs no permit. `flags` are added to
/// `O_RDONLY | O_CLOEXEC`, such as `O_DIRECT`.
///
/// # Errors
/// Where it cannot be opened, or is neither a block device nor a file.
pub fn open_for_reading(path: &Path, flags: i32) -> Result<File, SafetyError> {
    let target = |meta: &Metadata| meta.file_type().is_block_device() || meta.is_file();
    // Looked at first, as opening a pipe would wait, and again afterwards.
    // O_NONBLOCK is no way out: io_uring would carry it into every read.
    if target(&std::fs::metadata(path).map_err(path_error("cannot look at", path))?) {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags | libc::O_CLOEXEC)
            .open(path)
            .map_err(path_error("cannot open for reading", path))?;
        if target(&file.metadata().map_err(path_error("cannot look at", path))?) {
            return Ok(file);
        }
    }
    let why =
        "it is neither a block device nor a regular file (`uflip devices` lists the devices)".to_string();
    Err(SafetyError::NotATarget { path: path.to_path_buf(), why })
}

/// What writing `bytes` means for a device of `capacity`, as a line to print
/// beforehand.
pub fn wear_note(bytes: Bytes, capacity: Bytes) -> String {
    if capacity.0 == 0 {
        return format!("writes {bytes}");
    }
    let times = bytes.0 as f64 / capacity.0 as f64;
    let share = if times >= 1.0 {
        format!("{times:.1} times its capacity")
    } else {
        format!("{:.2} % of its capacity", times * 100.0)
    };
    format!(
        "writes {bytes}, {share} of {capacity} (wear: {times:.2} full drive writes, before write amplification)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_told_as_a_share_and_in_full_writes() {
        let g = |n: u64| Bytes(n << 30);
        assert_eq!(
            wear_note(g(1), g(200)),
            "writes 1G, 0.50 % of its capacity of 200G (wear: 0.01 full drive writes, before write amplification)"
        );
        assert!(wear_note(g(300), g(200)).contains("1.5 times its capacity of 200G"));
        assert_eq!(wear_note(g(1), Bytes(0)), "writes 1G", "no share of an unknown capacity");
    }

    #[test]
    fn what_others_named_cannot_steer_a_terminal() {
        let obstacle = Obstacle::absolute(Concern::Mounted, "mounted at /a\x1b[2J\n/b".to_string());
        assert_eq!(obstacle.statement, "mounted at /a?[2J?/b");
    }
}
