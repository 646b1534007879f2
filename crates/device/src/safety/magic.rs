//! Whose data is on a device: known signatures in its first and last bytes.
//!
//! Pure functions over bytes; the caller reads them. Two-byte magics (ext,
//! MBR) are taken only with plausible fields around them, so that random data
//! is not called a file system. Offsets: each format's own documentation, as
//! collected in util-linux `libblkid/src/superblocks` and `partitions`.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// How much of a device's start is looked at, in bytes.
pub(crate) const HEAD: u64 = 2 << 20;
/// How much of its end, in bytes.
pub(crate) const TAIL: u64 = 1 << 20;

/// A known signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The word that confirms it, such as `ext4` or `gpt`.
    pub tag: &'static str,
    /// What it is in a person's words.
    pub what: &'static str,
    /// Where it was found, in bytes from the start.
    pub offset: u64,
}

/// The first and last bytes of a device.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    size: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Ends {
    /// Reads both ends; of a small target the whole, twice.
    pub(crate) fn read(file: &File, size: u64) -> std::io::Result<Ends> {
        let mut head = vec![0; HEAD.min(size) as usize];
        let mut tail = vec![0; TAIL.min(size) as usize];
        file.read_exact_at(&mut head, 0)?;
        file.read_exact_at(&mut tail, size - TAIL.min(size))?;
        Ok(Ends { size, head, tail })
    }

    /// Of bytes in memory.
    #[cfg(test)]
    fn of(bytes: &[u8]) -> Ends {
        let head = bytes[..bytes.len().min(HEAD as usize)].to_vec();
        let tail = bytes[bytes.len().saturating_sub(TAIL as usize)..].to_vec();
        Ends { size: bytes.len() as u64, head, tail }
    }

    /// The bytes from `offset`, where they lie in one of the ends.
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let within = |part: &'_ [u8], start: u64| -> Option<std::ops::Range<usize>> {
            let from = usize::try_from(offset.checked_sub(start)?).ok()?;
            let to = from.checked_add(length)?;
            (to <= part.len()).then_some(from..to)
        };
        if let Some(range) = within(&self.head, 0) {
            return self.head.get(range);
        }
        let range = within(&self.tail, self.size - self.tail.len() as u64)?;
        self.tail.get(range)
    }

    fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    fn u32_at(&self, offset: u64) -> Option<u32> {
        self.at(offset, 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
    }

    /// The first byte that is not zero in the head, or else in the tail.
    pub(crate) fn first_content(&self) -> Option<u64> {
        let nonzero = |part: &[u8]| part.iter().position(|byte| *byte != 0).map(|at| at as u64);
        let tail_start = self.size - self.tail.len() as u64;
        nonzero(&self.head).or_else(|| nonzero(&self.tail).map(|at| tail_start + at))
    }
}

/// Signatures told by fixed bytes at a fixed offset from the start.
const FIXED: &[(&str, &str, u64, &[u8])] = &[
    ("xfs", "an XFS file system", 0, b"XFSB"),
    ("btrfs", "a btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("f2fs", "an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("ntfs", "an NTFS file system", 3, b"NTFS    "),
    ("exfat", "an exFAT file system", 3, b"EXFAT   "),
    ("bitlocker", "a BitLocker volume", 3, b"-FVE-FS-"),
    ("refs", "a ReFS file system", 3, b"ReFS\0\0\0\0"),
    ("luks", "a LUKS encrypted volume", 0, b"LUKS\xba\xbe"),
    ("squashfs", "a squashfs image", 0, b"hsqs"),
    ("squashfs", "a squashfs image", 0, b"sqsh"),
    ("erofs", "an EROFS image", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    ("iso9660", "an ISO 9660 image", 32769, b"CD001"),
    ("udf", "a UDF file system", 32769, b"BEA01"),
    ("jfs", "a JFS file system", 32768, b"JFS1"),
    ("reiserfs", "a reiserfs file system", 0x1_0034, b"ReIsEr"),
    ("apfs", "an APFS container", 32, b"NXSB"),
    ("hfsplus", "an HFS+ file system", 1024, b"H+\0\x04"),
    ("hfsplus", "an HFS+ file system", 1024, b"HX\0\x05"),
    (
        "bcachefs",
        "bcache or bcachefs",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    (
        "bcachefs",
        "bcache or bcachefs",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    ("ceph", "a Ceph BlueStore device", 0, b"bluestore block device"),
    ("vmfs", "a VMFS volume", 1 << 20, &[0x0d, 0xd0, 0x01, 0xc0]),
];

/// Everything known that lies on a device, each tag once, sorted by tag.
pub(crate) fn signatures(ends: &Ends) -> Vec<Signature> {
    let mut found: Vec<Signature> = FIXED
        .iter()
        .filter(|(_, _, offset, magic)| ends.has(*offset, magic))
        .map(|(tag, what, offset, _)| Signature { tag, what, offset: *offset })
        .collect();
    found.extend(
        [ext(ends), vfat(ends), luks_second(ends), lvm(ends), md(ends), swap(ends), zfs(ends)]
            .into_iter()
            .flatten(),
    );
    found.extend([gpt(ends), fake_raid(ends)].into_iter().flatten());
    // The boot sectors of these end as an MBR does, and GPT has one to protect it.
    if !found.iter().any(|s| matches!(s.tag, "gpt" | "vfat" | "ntfs" | "exfat" | "bitlocker" | "refs")) {
        found.extend(mbr(ends));
    }
    found.sort_by_key(|s| (s.tag, s.offset));
    found.dedup_by_key(|s| s.tag);
    found
}

/// ext2, 3 or 4 by their features.
fn ext(ends: &Ends) -> Option<Signature> {
    const SUPER: u64 = 1024;
    if !ends.has(SUPER + 0x38, &[0x53, 0xef]) {
        return None;
    }
    let field = |at: u64| ends.u32_at(SUPER + at);
    let plausible = field(0)? > 0 && field(4)? > 0 && field(0x18)? <= 6 && field(0x4c)? <= 1;
    if !plausible {
        return None;
    }
    let (compat, incompat, ro_compat) = (field(0x5c)?, field(0x60)?, field(0x64)?);
    let (tag, what) = if incompat & 0x8 != 0 {
        ("jbd", "an external ext journal")
    } else if incompat & !0x1f != 0 || ro_compat & !0x7 != 0 {
        ("ext4", "an ext4 file system")
    } else if compat & 0x4 != 0 {
        ("ext3", "an ext3 file system")
    } else {
        ("ext2", "an ext2 file system")
    };
    Some(Signature { tag, what, offset: SUPER })
}

fn vfat(ends: &Ends) -> Option<Signature> {
    let named = ends.has(82, b"FAT32   ")
        || [b"FAT12   ", b"FAT16   ", b"FAT     "].iter().any(|name| ends.has(54, *name));
    let found = named && ends.has(510, &[0x55, 0xaa]);
    found.then_some(Signature { tag: "vfat", what: "a FAT file system", offset: 0 })
}

/// The second header of LUKS2, which outlives a wiped start.
fn luks_second(ends: &Ends) -> Option<Signature> {
    let offsets = (14..=20).map(|power| 1u64 << power);
    let offset = offsets.into_iter().find(|offset| ends.has(*offset, b"SKUL\xba\xbe"))?;
    Some(Signature { tag: "luks", what: "a LUKS encrypted volume", offset })
}

fn lvm(ends: &Ends) -> Option<Signature> {
    let offset = (0..4)
        .map(|sector| sector * 512)
        .find(|at| ends.has(*at, b"LABELONE") && ends.has(at + 24, b"LVM2 001"))?;
    Some(Signature { tag: "lvm2", what: "an LVM2 physical volume", offset })
}

/// Linux software RAID: 1.1 at the start, 1.2 at 4 KiB, 1.0 and 0.90 at the end.
fn md(ends: &Ends) -> Option<Signature> {
    const LE: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];
    let version1 = |at: u64| ends.has(at, &LE) && ends.u32_at(at + 4) == Some(1);
    let end1 = (ends.size / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
    let end0 = (ends.size & !0xffff).checked_sub(0x1_0000);
    let at1 = [Some(0), Some(4096), end1].into_iter().flatten().find(|at| version1(*at));
    let at0 = end0.filter(|at| {
        (ends.has(*at, &LE) && ends.u32_at(at + 4) == Some(0))
            || ends.has(*at, &[0xa9, 0x2b, 0x4e, 0xfc, 0, 0, 0, 0])
    });
    at1.or(at0).map(|offset| Signature { tag: "md", what: "a member of a software RAID", offset })
}

/// Firmware RAID metadata at the end.
fn fake_raid(ends: &Ends) -> Option<Signature> {
    let imsm = ends.size.checked_sub(1024).filter(|at| ends.has(*at, b"Intel Raid ISM Cfg Sig. "));
    let ddf = ends.size.checked_sub(512).filter(|at| ends.has(*at, &[0xde, 0x11, 0xde, 0x11]));
    imsm.or(ddf).map(|offset| Signature { tag: "fakeraid", what: "a member of a firmware RAID", offset })
}

fn swap(ends: &Ends) -> Option<Signature> {
    let pages = [4096u64, 8192, 16384, 32768, 65536];
    let kinds: [&[u8]; 4] = [b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND\0", b"S2SUSPEND\0"];
    let at = pages.iter().map(|page| page - 10).find(|at| kinds.iter().any(|kind| ends.has(*at, kind)))?;
    Some(Signature { tag: "swap", what: "swap space", offset: at })
}

/// Any uberblock in any of the four labels, in either byte order.
fn zfs(ends: &Ends) -> Option<Signature> {
    const LABEL: u64 = 256 << 10;
    let aligned = ends.size & !(LABEL - 1);
    let labels = [Some(0), Some(LABEL), aligned.checked_sub(2 * LABEL), aligned.checked_sub(LABEL)];
    let magic = 0x00ba_b10cu64;
    let uber = |at: &u64| ends.has(*at, &magic.to_le_bytes()) || ends.has(*at, &magic.to_be_bytes());
    let offset = labels
        .into_iter()
        .flatten()
        .flat_map(|label| (128..256).map(move |k| label + k * 1024))
        .find(uber)?;
    Some(Signature { tag: "zfs", what: "a member of a ZFS pool", offset })
}

/// The header at the start or its copy in the last sector, for 512-byte and
/// 4-KiB sectors.
fn gpt(ends: &Ends) -> Option<Signature> {
    let places = [Some(512), Some(4096), ends.size.checked_sub(512), ends.size.checked_sub(4096)];
    let offset = places.into_iter().flatten().find(|at| ends.has(*at, b"EFI PART"))?;
    Some(Signature { tag: "gpt", what: "a GPT partition table", offset })
}

/// An MBR with at least one plausible partition and no implausible entry.
fn mbr(ends: &Ends) -> Option<Signature> {
    if !ends.has(510, &[0x55, 0xaa]) {
        return None;
    }
    let entry = |k: u64| ends.at(446 + 16 * k, 16);
    let mut used = 0;
    for bytes in (0..4).map(entry) {
        let bytes = bytes?;
        if bytes[0] & 0x7f != 0 {
            return None;
        }
        let sectors = u32::from_le_bytes(bytes[12..16].try_into().ok()?);
        used += u32::from(bytes[4] != 0 && sectors != 0);
    }
    (used > 0).then_some(Signature { tag: "dos", what: "an MBR partition table", offset: 0 })
}

#[cfg(test)]
#[path = "magic_tests.rs"]
mod tests;
