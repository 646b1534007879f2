//! All whole disks that sysfs lists, and what of them cannot be seen.
//!
//! Who uses a device is learnt by looking at every other one. Where sysfs tells
//! half (another file system lies over a part of it, only some of its
//! directories are there), users vanish without an error; so whatever is listed
//! and does not resolve is said here, and writing is refused for it (see
//! [`crate::safety`]). `block` and `class/block` list the same disks; either
//! will do.
//!
//! Limits: a disk that is in neither list and has nothing to do with the target
//! in sight is not missed.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`.

use super::SysPaths;
use super::sysfs::{Node, listing, names, text};
use std::io::ErrorKind;
use std::path::Path;

/// The whole disks of a machine.
pub(crate) struct Disks {
    /// Those that have a number; hidden paths of a multipath disk have none.
    pub nodes: Vec<Node>,
    /// What cannot be seen, each as a phrase that names the path.
    pub unseen: Vec<String>,
}

/// Every whole disk in `block` or `class/block`.
pub(crate) fn all_disks(paths: &SysPaths) -> Disks {
    let mut disks = Disks { nodes: Vec::new(), unseen: Vec::new() };
    let folders = [paths.sys.join("block"), paths.sys.join("class/block")];
    let listings: Vec<_> = folders.iter().map(listing).collect();
    if let [Err(one), Err(other)] = listings.as_slice() {
        let [block, class] = folders.each_ref().map(|folder| folder.display());
        disks.unseen.push(format!("neither {block} ({one}) nor {class} ({other}) can be listed"));
    }
    for (folder, names) in folders.iter().zip(listings) {
        for name in names.unwrap_or_default() {
            let listed = folder.join(&name);
            let dir = listed.canonicalize();
            match dir.as_ref().ok().and_then(|dir| Node::at(dir.clone())) {
                Some(node) if disks.nodes.iter().any(|seen| seen.number == node.number) => {}
                Some(node) if !node.is_partition() => disks.nodes.push(node),
                Some(_) => {}
                None if dir.is_ok_and(|dir| text(dir.join("hidden")).as_deref() == Some("1")) => {}
                None if gone(&listed) => {}
                None => disks.unseen.push(format!("{} cannot be resolved", listed.display())),
            }
        }
    }
    disks.unseen.extend(disks.nodes.iter().flat_map(links_unseen));
    disks
}

/// True where there is no such entry any more: a device may leave at any time.
pub(crate) fn gone(entry: &Path) -> bool {
    std::fs::symlink_metadata(entry).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// What of the links between a disk, its partitions and others is not seen.
fn links_unseen(disk: &Node) -> Vec<String> {
    let mut unseen = Vec::new();
    for node in std::iter::once(disk.clone()).chain(disk.partitions()) {
        for folder in ["slaves", "holders"].map(|folder| node.dir.join(folder)) {
            match listing(&folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    unseen.push(format!("{} cannot be listed ({error})", folder.display()));
                }
                _ => {}
            }
        }
    }
    let slaves = disk.dir.join("slaves");
    let lost = |name: &String| {
        let slave = slaves.join(name);
        !gone(&slave) && slave.canonicalize().ok().and_then(Node::at).is_none()
    };
    let lost = names(&slaves).into_iter().filter(lost);
    unseen.extend(lost.map(|name| format!("{} cannot be resolved", slaves.join(name).display())));
    unseen
}
