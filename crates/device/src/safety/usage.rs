//! Who uses a target, or anything that shares its bytes: mounts, swap, holders,
//! loop devices, the root file system.
//!
//! What is in the stack of a target is [`crate::identity::stack`]'s to say;
//! here each use becomes an obstacle that nothing typed removes.

use super::{Concern, Obstacle, hint};
use crate::identity::seen;
use crate::identity::stack::{FileRef, Host, Layer, StackRole, Thing, User, apart};
use crate::identity::sysfs::Node;
use crate::identity::{DevNumber, SysPaths};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What was learnt of a device.
pub(crate) struct Uses {
    /// Every use that forbids writing.
    pub obstacles: Vec<Obstacle>,
    /// What could not be looked at, as sentences.
    pub notes: Vec<String>,
}

/// Looks at everything that shares its bytes with a device.
///
/// # Errors
/// Where mounts or swap areas cannot be read: then nothing can be ruled out.
pub(crate) fn look(node: &Node, paths: &SysPaths) -> io::Result<Uses> {
    let host = Host::look(paths)?;
    let stack = host.stack(Thing::Device(node.clone()));
    let mut obstacles: Vec<Obstacle> = stack.iter().flat_map(|layer| uses(layer, &stack, &host)).collect();
    let root = host.root_disks();
    obstacles.extend(stack.iter().filter_map(|layer| on_root(layer, node, &root)));
    let unseen = host.unseen(node).into_iter();
    obstacles.extend(unseen.map(|what| {
        let statement = format!("{what}, so nobody's use of it can be ruled out");
        Obstacle::absolute(Concern::Unseen, statement)
    }));
    obstacles.dedup();
    let mut notes = out_of_sight(&stack);
    if root.is_empty() {
        notes.push("the disk of the root file system cannot be told on this system".to_string());
    }
    Ok(Uses { obstacles, notes })
}

/// Every use of a file that forbids writing.
///
/// # Errors
/// As of [`look`].
pub(crate) fn file_obstacles(path: &Path, paths: &SysPaths) -> io::Result<Vec<Obstacle>> {
    let host = Host::look(paths)?;
    let stack = host.stack(Thing::File(FileRef::at(path)));
    let uses = stack.iter().flat_map(|layer| uses(layer, &stack, &host));
    Ok(uses.map(|use_of| Obstacle { concern: Concern::FileInUse, ..use_of }).collect())
}

/// What uses `layer` from outside the stack.
fn uses(layer: &Layer, stack: &[Layer], host: &Host<'_>) -> Vec<Obstacle> {
    let on = place(layer);
    let of = |user: User| {
        let (concern, what) = match user {
            User::Mount(point) => (Concern::Mounted, format!("mounted at {}", point.display())),
            User::Swap(area) => (Concern::Swap, format!("in use as swap ({})", area.display())),
            User::Holder(upper) => (Concern::Held, format!("held by {}", host.describe_up(&upper))),
            User::Unknown(name) => (Concern::Held, format!("held by {name}")),
            User::Loop(upper) => (Concern::Looped, format!("in use behind {}", host.describe_up(&upper))),
            User::Btrfs(uuid) => (Concern::Held, format!("part of the mounted btrfs {uuid}")),
            User::Bcache => (Concern::Held, "registered with bcache".to_string()),
        };
        Obstacle::absolute(concern, format!("{on}{what}"))
    };
    let users = host.users(&layer.thing);
    users.into_iter().filter(|user| !expected(user, layer, stack)).map(of).collect()
}

/// True for a use that is the target's own, or of other bytes.
fn expected(user: &User, layer: &Layer, stack: &[Layer]) -> bool {
    if !matches!(layer.role, StackRole::Beneath | StackRole::Disk) {
        return false;
    }
    let lower = |role: StackRole| matches!(role, StackRole::Itself | StackRole::Beneath | StackRole::Disk);
    let ours = stack.iter().filter(|layer| lower(layer.role)).filter_map(|layer| match &layer.thing {
        Thing::Device(node) => Some(node),
        Thing::File(_) => None,
    });
    let Thing::Device(below) = &layer.thing else {
        return matches!(user, User::Loop(upper) if ours.clone().any(|node| node.number == upper.number));
    };
    let through: Vec<&Node> =
        ours.clone().filter(|node| node.slaves().iter().any(|slave| slave.number == below.number)).collect();
    match user {
        User::Loop(upper) => ours.clone().any(|node| node.number == upper.number),
        User::Holder(upper) => {
            ours.clone().any(|node| node.number == upper.number)
                || (!through.is_empty() && through.iter().all(|node| apart(node, upper, below)))
        }
        // The member of a bcache that is on top of it here.
        User::Bcache => !through.is_empty(),
        _ => false,
    }
}

/// The start of a sentence on `layer`; empty for the target itself.
fn place(layer: &Layer) -> String {
    match (&layer.thing, layer.role) {
        (_, StackRole::Itself) => String::new(),
        (Thing::File(file), _) => format!("the file {} beneath it is ", file.path.display()),
        (Thing::Device(node), StackRole::Partition) => format!("its partition {} is ", node.name()),
        (Thing::Device(node), StackRole::Disk) => format!("its disk {} is ", node.name()),
        (Thing::Device(node), StackRole::Beneath) => format!("{} beneath it is ", node.describe()),
        (Thing::Device(node), StackRole::Twin) => {
            format!(
                "{}, of a disk with the same world-wide identifier (the same by another path?), is ",
                node.name()
            )
        }
    }
}

/// Whether `layer` of the stack of `target` is on the disk of the root file system.
fn on_root(layer: &Layer, target: &Node, root: &std::collections::BTreeSet<DevNumber>) -> Option<Obstacle> {
    let Thing::Device(node) = &layer.thing else { return None };
    let whole = node.whole().map_or(node.number, |whole| whole.number);
    let statement = if node.disk == target.disk {
        // Said once, of the target.
        (layer.role == StackRole::Itself).then(|| "the disk of the root file system".to_string())?
    } else {
        format!("{}the disk of the root file system", place(layer))
    };
    root.contains(&whole).then(|| Obstacle::absolute(Concern::RootDisk, statement))
}

/// Claims what lies beneath `node` and is not claimed by what is above it, as
/// loop devices do not: nobody can mount it directly while the result is kept. Where
/// something cannot be claimed, the obstacle that this is.
///
/// # Errors
/// Where mounts or swap areas cannot be read.
pub(crate) fn claim_beneath(node: &Node, paths: &SysPaths) -> io::Result<Result<Vec<File>, Obstacle>> {
    let host = Host::look(paths)?;
    let stack = host.stack(Thing::Device(node.clone()));
    let claim = |layer: &Layer| {
        let Thing::Device(below) = &layer.thing else { return None };
        layer.unclaimed.then(|| exclusive(&below.dev_path(paths), below))
    };
    Ok(stack.iter().filter_map(claim).collect())
}

fn exclusive(path: &Path, below: &Node) -> Result<File, Obstacle> {
    let flags = libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let failed = |error: io::Error| {
        let name = below.describe();
        if error.raw_os_error() == Some(libc::EBUSY) {
            let statement = format!("{name} beneath it is open exclusively elsewhere");
            return Obstacle::absolute(Concern::Busy, statement);
        }
        let statement = format!(
            "{name} beneath it cannot be claimed, so nobody's use can be ruled out: {error}{}",
            hint(&error)
        );
        Obstacle::absolute(Concern::Unreadable, statement)
    };
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    match file.metadata().map(|meta| std::os::unix::fs::MetadataExt::rdev(&meta)).map(DevNumber::from_dev) {
        Ok(number) if number == below.number => Ok(file),
        Ok(_) => Err(failed(io::Error::other(format!("{} is another device", path.display())))),
        Err(error) => Err(failed(error)),
    }
}

/// What of the stack another machine or program answers for: nothing can be
/// told of who else uses it there.
fn out_of_sight(stack: &[Layer]) -> Vec<String> {
    let remote = |name: &String| {
        ["nbd", "rbd", "drbd", "ublkb"].iter().any(|kind| {
            name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let names = stack.iter().filter_map(|layer| match &layer.thing {
        Thing::Device(node) => Some(node.name()).filter(remote),
        Thing::File(_) => None,
    });
    names
        .map(|name| {
            format!("what answers for {name} cannot be looked at: make sure that nobody else uses it")
        })
        .collect()
}

/// The other whole disks that give the same serial, by name.
pub(crate) fn same_serial(node: &Node, serial: &str, paths: &SysPaths) -> Vec<String> {
    seen::all_disks(paths)
        .nodes
        .into_iter()
        .filter(|other| other.disk != node.disk)
        .filter(|other| {
            let facts = crate::identity::block_facts(&other.dev_path(paths), other.number, None, paths);
            facts.serial.as_deref() == Some(serial)
        })
        .map(|other| other.name())
        .collect()
}
