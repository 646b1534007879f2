//! Whether two things that were named share bytes: where one is read and the
//! other written, what is read would be lost.
//!
//! How: each is followed down to all that its bytes are made of, with the bytes of
//! every layer that it can take up: a partition's of its disk, those of a loop
//! device behind which `offset` and `sizelimit` are set. They share bytes where
//! they meet in a layer with ranges that overlap. What device mapper, MD and
//! bcache take of a layer, and a file of its disk, does not show: it may be
//! anything, but two different files share nothing, nor do two volumes that
//! are [`apart`]. Where both went through the same one, it was decided above it.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`, `loop(4)`.

use super::{FileRef, Host, Thing, apart, same, twins};
use crate::identity::sysfs::{Node, number};
use crate::identity::{DevNumber, SysPaths};
use std::ops::Range;
use std::path::Path;

/// The unit of sysfs.
const SECTOR: u64 = 512;

/// Some bytes of a layer.
#[derive(Clone)]
struct Part {
    thing: Thing,
    range: Range<u64>,
    /// The lowest above it of which it does not show what bytes it takes.
    through: Option<Thing>,
}

/// Where `one` and `other`, block devices or files (also one that is to be made), share bytes, in words that
/// follow a name: `sda1`, `the file /a.img`. `None` where they share none.
///
/// # Errors
/// Where mounts or swap areas cannot be read: then nothing can be ruled out.
pub fn shared(one: &Path, other: &Path, paths: &SysPaths) -> std::io::Result<Option<String>> {
    let host = Host::look(paths)?;
    let (one, other) = (host.parts(thing(one, paths)), host.parts(thing(other, paths)));
    let meet = |part: &&Part| other.iter().any(|with| host.meet(part, with));
    Ok(one.iter().find(meet).map(|part| match &part.thing {
        Thing::Device(node) => node.describe(),
        Thing::File(file) => format!("the file {}", file.path.display()),
    }))
}

/// Whether the file at `file` is `target`, or what `target` stands on.
///
/// # Errors
/// As of [`shared`].
pub fn stands_on(target: &Path, file: &Path, paths: &SysPaths) -> std::io::Result<bool> {
    let (target, file) = (thing(target, paths), thing(file, paths));
    // Nothing can stand on a name that is free, and most outputs have one.
    if matches!(&file, Thing::File(file) if file.id.is_none()) {
        return Ok(same(&target, &file));
    }
    Ok(Host::look(paths)?.stack(target).iter().any(|layer| same(&layer.thing, &file)))
}

/// What is at `path`; of a free name the file that it will be.
fn thing(path: &Path, paths: &SysPaths) -> Thing {
    let node = DevNumber::of_block_device(path).and_then(|number| Node::find(number, paths));
    let file = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let whole = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        FileRef::at(&path.canonicalize().ok().or_else(whole).unwrap_or_else(|| path.to_path_buf()))
    };
    node.map_or_else(|| Thing::File(file()), Thing::Device)
}

impl Host<'_> {
    /// Everything that the bytes of `start` are part of.
    fn parts(&self, start: Thing) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut todo = vec![Part { thing: start, range: 0..u64::MAX, through: None }];
        while let Some(part) = todo.pop() {
            let seen = |seen: &Part| {
                let through = match (&seen.through, &part.through) {
                    (Some(one), Some(other)) => same(one, other),
                    (one, other) => one.is_none() && other.is_none(),
                };
                through && same(&seen.thing, &part.thing) && seen.range == part.range
            };
            if parts.iter().any(seen) {
                continue;
            }
            todo.extend(self.below(&part));
            parts.push(part);
        }
        parts
    }

    /// The same, one step down.
    fn below(&self, part: &Part) -> Vec<Part> {
        let somewhere = |thing: Thing| Part { thing, range: 0..u64::MAX, through: Some(part.thing.clone()) };
        let node = match &part.thing {
            Thing::Device(node) => node,
            Thing::File(file) => {
                let disks = self.devices_of(file).into_iter();
                return disks
                    .filter_map(|number| Node::find(number, self.paths))
                    .map(|node| somewhere(Thing::Device(node)))
                    .collect();
            }
        };
        if let Some(whole) = node.whole().filter(|_| node.is_partition()) {
            let at = |name: &str| number(node.dir.join(name)).map(|sectors| sectors.saturating_mul(SECTOR));
            return vec![part.within(Thing::Device(whole), at("start").unwrap_or(0), at("size"))];
        }
        let is_loop = self.loops.iter().any(|(over, _)| over.number == node.number);
        let made_of = self.made_of(node).into_iter().map(|layer| layer.thing);
        made_of
            .map(|thing| {
                if is_loop {
                    let at = |name: &str| number(node.dir.join("loop").join(name));
                    part.within(thing, at("offset").unwrap_or(0), at("sizelimit").filter(|size| *size > 0))
                } else {
                    somewhere(thing)
                }
            })
            .collect()
    }

    fn meet(&self, one: &Part, other: &Part) -> bool {
        let overlap = one.range.start < other.range.end && other.range.start < one.range.end;
        overlap && self.is_one_device(&one.thing, &other.thing) && may_meet(one, other)
    }

    /// True also for two paths to one disk.
    fn is_one_device(&self, one: &Thing, other: &Thing) -> bool {
        let twin = |one: &Node, other: &Node| {
            !one.is_partition()
                && !other.is_partition()
                && twins(one, self.paths).iter().any(|twin| twin.number == other.number)
        };
        same(one, other)
            || matches!((one, other), (Thing::Device(one), Thing::Device(other)) if twin(one, other))
    }
}

impl Part {
    /// These bytes in `lower`, of which this layer is the `size` bytes from `start` on.
    fn within(&self, lower: Thing, start: u64, size: Option<u64>) -> Part {
        let end = size.map_or(u64::MAX, |size| start.saturating_add(size));
        let range = start.saturating_add(self.range.start)..end.min(start.saturating_add(self.range.end));
        Part { thing: lower, range, through: self.through.clone() }
    }
}

/// Whether what both parts went through leaves room for shared bytes.
fn may_meet(one: &Part, other: &Part) -> bool {
    match (&one.through, &other.through, &one.thing) {
        (Some(a), Some(b), _) if same(a, b) => false,
        (Some(Thing::File(_)), Some(Thing::File(_)), _) => false,
        (Some(Thing::Device(a)), Some(Thing::Device(b)), Thing::Device(below)) => !apart(a, b, below),
        _ => true,
    }
}
