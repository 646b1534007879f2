//! Where a file lies on its disk, through the FIEMAP ioctl.
//!
//! Source: the kernel's `Documentation/filesystems/fiemap.rst`,
//! `linux/fiemap.h`.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Extents asked for at a time.
const BATCH: usize = 128;
const FS_IOC_FIEMAP: libc::Ioctl = libc::_IOWR::<Header>(b'f' as u32, 11);
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNKNOWN: u32 = 0x2;
const EXTENT_DELALLOC: u32 = 0x4;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_UNWRITTEN: u32 = 0x800;
const EXTENT_SHARED: u32 = 0x2000;

/// `struct fiemap` without its array.
#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy)]
#[repr(C)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Map {
    header: Header,
    extents: [RawExtent; BATCH],
}

/// One contiguous part of a file on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Where in the file, in bytes.
    pub logical: Bytes,
    /// Where on the device, in bytes; `None` where the file system cannot tell.
    pub physical: Option<Bytes>,
    /// In bytes.
    pub length: Bytes,
    /// Allocated and never written: reads are answered without the device.
    pub unwritten: bool,
    /// Shared with a snapshot or a copy: writes go elsewhere.
    pub shared: bool,
    /// Compressed or encrypted by the file system.
    pub encoded: bool,
}

/// How a file lies on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragmentation {
    /// Physically contiguous parts.
    pub extents: u64,
    /// What makes measurements on it unsound, as a sentence; `None` where
    /// nothing does.
    pub warning: Option<String>,
}

/// Parts of a file that are not on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtentError {
    /// Nothing is allocated there.
    #[error("nothing is on the disk for {length} at byte {}: a hole; remove the file and let uflip make it", at.0)]
    Hole {
        /// Where in the file.
        at: Bytes,
        /// How much.
        length: Bytes,
    },
    /// Allocated and never written.
    #[error("{length} at byte {} were never written; remove the file and let uflip make it", at.0)]
    Unwritten {
        /// Where in the file.
        at: Bytes,
        /// How much.
        length: Bytes,
    },
}

/// The extents of `file` in the order of the file, or `None` where the file
/// system does not tell (tmpfs, NFS).
///
/// # Errors
/// The system's error.
pub fn extents(file: &File) -> io::Result<Option<Vec<Extent>>> {
    all(file, FLAG_SYNC)
}

/// The same as it is known now: what waits in memory is not written first.
///
/// # Errors
/// The system's error.
pub(crate) fn extents_unsynced(file: &File) -> io::Result<Option<Vec<Extent>>> {
    all(file, 0)
}

fn all(file: &File, flags: u32) -> io::Result<Option<Vec<Extent>>> {
    let mut found: Vec<Extent> = Vec::new();
    let mut start = 0u64;
    loop {
        let (batch, last) = match batch(file, start, flags) {
            Ok(batch) => batch,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let end = batch.last().map(|extent| extent.logical.0.saturating_add(extent.length.0));
        found.extend(batch);
        match end {
            Some(end) if !last && end > start => start = end,
            _ => return Ok(Some(found)),
        }
    }
}

/// The extents from byte `start`, as many as fit, and whether they are the last.
fn batch(file: &File, start: u64, flags: u32) -> io::Result<(Vec<Extent>, bool)> {
    let empty =
        RawExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
    let length = u64::MAX - start;
    let header = Header { start, length, flags, mapped_extents: 0, extent_count: BATCH as u32, reserved: 0 };
    let mut map = Map { header, extents: [empty; BATCH] };
    // SAFETY: `map` is laid out as struct fiemap with room for the number of
    // extents its header states, and lives through the call.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    let raw = &map.extents[..(map.header.mapped_extents as usize).min(BATCH)];
    let last = raw.last().is_none_or(|extent| extent.flags & EXTENT_LAST != 0);
    Ok((raw.iter().map(convert).collect(), last))
}

fn convert(raw: &RawExtent) -> Extent {
    let is = |flag: u32| raw.flags & flag != 0;
    Extent {
        logical: Bytes(raw.logical),
        physical: (!is(EXTENT_UNKNOWN | EXTENT_DELALLOC)).then_some(Bytes(raw.physical)),
        length: Bytes(raw.length),
        unwritten: is(EXTENT_UNWRITTEN),
        shared: is(EXTENT_SHARED),
        encoded: is(EXTENT_ENCODED),
    }
}

/// The parts of the first `size` bytes that are not on the disk: nothing is
/// allocated there, or it was never written.
pub(crate) fn missing(extents: &[Extent], size: Bytes) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    let mut next = 0u64;
    let mut add = |from: u64, to: u64| {
        let to = to.min(size.0);
        match parts.last_mut() {
            _ if from >= to => {}
            Some(last) if last.end == from => last.end = to,
            _ => parts.push(from..to),
        }
    };
    for extent in extents {
        let end = extent.logical.0.saturating_add(extent.length.0);
        add(next, extent.logical.0);
        if extent.unwritten {
            add(extent.logical.0, end);
        }
        next = next.max(end);
    }
    add(next, size.0);
    parts
}

/// What is wrong with measuring a file of `size` that has such parts, as a
/// sentence; `None` where it has none.
pub fn holes_warning(extents: &[Extent], size: Bytes) -> Option<String> {
    let holes = missing(extents, size);
    let first = holes.first()?.start;
    let all = Bytes(holes.iter().map(|hole| hole.end - hole.start).sum());
    Some(format!(
        "{all} of its {size} are not on the disk (holes, or never written; the first at byte {first}): reads of \
         them are answered without the device"
    ))
}

/// The number of physically contiguous parts: extents that follow one another
/// on the disk as in the file count as one.
pub fn fragments(extents: &[Extent]) -> u64 {
    let follows = |pair: &[Extent]| {
        let (a, b) = (pair[0], pair[1]);
        let end = a.physical.and_then(|physical| physical.0.checked_add(a.length.0));
        end.is_some()
            && end == b.physical.map(|physical| physical.0)
            && a.logical.0 + a.length.0 == b.logical.0
    };
    let joined = extents.windows(2).filter(|pair| follows(pair)).count();
    (extents.len() - joined) as u64
}

/// The verdict on a file of `size`: more than one part in 64 MiB is called
/// fragmented, as then sequential IOs of the file are not so on the disk.
///
/// # Errors
/// [`ExtentError`] where a part of the file is not on the disk.
pub fn fragmentation(extents: &[Extent], size: Bytes) -> Result<Fragmentation, ExtentError> {
    let mut next = 0u64;
    for extent in extents.iter().filter(|extent| extent.logical.0 < size.0) {
        if extent.logical.0 > next {
            return Err(ExtentError::Hole { at: Bytes(next), length: Bytes(extent.logical.0 - next) });
        }
        if extent.unwritten {
            return Err(ExtentError::Unwritten { at: extent.logical, length: extent.length });
        }
        next = extent.logical.0.saturating_add(extent.length.0);
    }
    if next < size.0 {
        return Err(ExtentError::Hole { at: Bytes(next), length: Bytes(size.0 - next) });
    }
    let count = fragments(extents);
    let mut warnings = Vec::new();
    if count > (size.0 >> 26).max(1) {
        warnings.push(format!(
            "the file lies in {count} parts on its disk ({size}), so what is sequential in the file is not so on the disk"
        ));
    }
    if extents.iter().any(|extent| extent.encoded) {
        warnings
            .push("the file system compresses or encrypts the file, so the disk sees other IOs".to_string());
    }
    if extents.iter().any(|extent| extent.shared) {
        warnings.push(
            "the file shares blocks with a copy or snapshot, so writes go elsewhere on the disk".to_string(),
        );
    }
    let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
    Ok(Fragmentation { extents: count, warning })
}
