//! Who uses a block device now: mounts, swap, holders, the root file system.
//!
//! A disk, its partitions and the disk of a partition overlap; each is looked
//! at. Everything goes by device number, never by name, so links and second
//! nodes of the same device change nothing.

use super::{Concern, Obstacle};
use crate::identity::sysfs::{Node, beneath, names};
use crate::identity::{DevNumber, Mount, SysPaths};
use std::collections::BTreeSet;

/// The devices whose bytes overlap those of `node`.
fn overlapping(node: &Node) -> Vec<Node> {
    let mut all = vec![node.clone()];
    if node.is_partition() {
        all.extend(node.whole());
    } else {
        all.extend(node.partitions());
    }
    all
}

/// Every use of the device that forbids writing.
///
/// # Errors
/// Where mounts or swap areas cannot be read: then nothing can be ruled out.
pub(crate) fn obstacles(node: &Node, paths: &SysPaths) -> std::io::Result<Vec<Obstacle>> {
    let mounts = paths.mounts()?;
    let overlapping = overlapping(node);
    let mut found = Vec::new();
    for part in &overlapping {
        let on = if part.number == node.number {
            String::new()
        } else if part.is_partition() {
            format!("its partition {} is ", part.name())
        } else {
            format!("its disk {} is ", part.name())
        };
        mounted(part, &mounts, &on, &mut found);
        held(part, paths, &on, &mut found);
    }
    for area in paths.swap_areas()? {
        let Some(number) = DevNumber::of_block_device(&area) else { continue };
        if overlapping.iter().any(|part| part.number == number) {
            found.push(Obstacle::absolute(Concern::Swap, format!("in use as swap ({})", area.display())));
        }
    }
    if root_disks(&mounts, paths).contains(&node.whole().map_or(node.number, |whole| whole.number)) {
        found.push(Obstacle::absolute(Concern::RootDisk, "the disk of the root file system".to_string()));
    }
    Ok(found)
}

fn mounted(part: &Node, mounts: &[Mount], on: &str, found: &mut Vec<Obstacle>) {
    for mount in mounts.iter().filter(|mount| mount.device() == Some(part.number)) {
        found.push(Obstacle::absolute(Concern::Mounted, format!("{on}mounted at {}", mount.point.display())));
    }
}

fn held(part: &Node, paths: &SysPaths, on: &str, found: &mut Vec<Obstacle>) {
    for name in part.holders() {
        let known = Node::named(&name, paths).map_or(name, |holder| holder.describe());
        found.push(Obstacle::absolute(Concern::Held, format!("{on}held by {known}")));
    }
    // A btrfs of several disks names only one of them in its mount.
    let all = paths.sys.join("fs/btrfs");
    for uuid in names(&all) {
        if names(all.join(&uuid).join("devices")).contains(&part.name()) {
            found.push(Obstacle::absolute(Concern::Held, format!("{on}part of the mounted btrfs {uuid}")));
        }
    }
}

/// The devices of the root file system, to the lowest disk.
fn root_disks(mounts: &[Mount], paths: &SysPaths) -> BTreeSet<DevNumber> {
    let roots = mounts.iter().filter(|mount| mount.point.as_os_str() == "/");
    roots.filter_map(Mount::device).flat_map(|number| beneath(number, paths)).collect()
}

/// True where the disk of the root file system could be told.
pub(crate) fn root_is_known(paths: &SysPaths) -> bool {
    paths.mounts().is_ok_and(|mounts| !root_disks(&mounts, paths).is_empty())
}

/// The other whole disks that give the same serial, by name.
pub(crate) fn same_serial(node: &Node, serial: &str, paths: &SysPaths) -> Vec<String> {
    let others = names(paths.sys.join("block")).into_iter().filter_map(|name| Node::named(&name, paths));
    others
        .filter(|other| other.disk != node.disk)
        .filter(|other| {
            let facts = crate::identity::block_facts(&other.dev_path(paths), other.number, None, paths);
            facts.serial.as_deref() == Some(serial)
        })
        .map(|other| other.name())
        .collect()
}

/// The loop device that has the file at `path` behind it.
pub(crate) fn looped(path: &std::path::Path, paths: &SysPaths) -> Option<String> {
    let loops = names(paths.sys.join("block")).into_iter();
    loops.into_iter().find(|name| {
        let file = paths.sys.join("block").join(name).join("loop/backing_file");
        std::fs::read_to_string(file)
            .is_ok_and(|text| std::path::Path::new(text.trim_end_matches('\n')) == path)
    })
}
