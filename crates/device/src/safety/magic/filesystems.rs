//! File systems told by a short magic with plausible fields around it, at one
//! of many places, or by what they share with a relative.
//!
//! Source: util-linux `libblkid/src/superblocks`, the file named at each, and
//! the formats' own documentation.

use super::{Ends, Signature};

/// The words for these.
pub(super) const TAGS: &[&str] = &[
    "corestorage",
    "ext2",
    "ext3",
    "ext4",
    "hfs",
    "hfsplus",
    "jbd",
    "minix",
    "nilfs2",
    "swap",
    "sysv",
    "ufs",
    "vfat",
    "xfs-log",
    "xenix",
    "zfs",
];

pub(super) fn find(ends: &Ends) -> impl Iterator<Item = Signature> {
    let all = [ext, vfat, hfs, minix, nilfs2, sysv, xenix, ufs, core_storage, xfs_log, swap, zfs];
    all.into_iter().filter_map(|told| told(ends)).collect::<Vec<_>>().into_iter()
}

/// ext2, 3 or 4 by their features, or the journal of one on a device of its
/// own, which has blocks and no inodes (ext.c; Linux, Documentation/filesystems/ext4).
fn ext(ends: &Ends) -> Option<Signature> {
    const SUPER: u64 = 1024;
    const JOURNAL_DEV: u32 = 0x8;
    if !ends.has(SUPER + 0x38, &[0x53, 0xef]) {
        return None;
    }
    let field = |at: u64| ends.u32_at(SUPER + at);
    let (compat, incompat, ro_compat) = (field(0x5c)?, field(0x60)?, field(0x64)?);
    let journal = incompat & JOURNAL_DEV != 0;
    let inodes = field(0)? > 0 || journal;
    if !(inodes && field(4)? > 0 && field(0x18)? <= 6 && field(0x4c)? <= 1) {
        return None;
    }
    let (tag, what) = if journal {
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

/// By its name, or where that was left out by its parameters (vfat.c). JFS and
/// HPFS keep such parameters too, and a name of their own beside them.
fn vfat(ends: &Ends) -> Option<Signature> {
    if !ends.has(510, &[0x55, 0xaa]) {
        return None;
    }
    let named = [&b"FAT32   "[..], b"MSWIN"].iter().any(|name| ends.has(82, name))
        || [&b"FAT12   "[..], b"FAT16   ", b"FAT     ", b"MSDOS"].iter().any(|name| ends.has(54, name));
    let other = [b"JFS     ", b"HPFS    "].iter().any(|name| ends.has(54, *name));
    let found = named || (!other && fat_parameters(ends)?);
    found.then_some(Signature { tag: "vfat", what: "a FAT file system", offset: 0 })
}

/// Whether a FAT file system's parameters stand in the first sector.
fn fat_parameters(ends: &Ends) -> Option<bool> {
    let (sector, cluster) = (ends.u16_at(0x0b)?, ends.u8_at(0x0d)?);
    let (reserved, fats, media) = (ends.u16_at(0x0e)?, ends.u8_at(0x10)?, ends.u8_at(0x15)?);
    let sectors = match ends.u16_at(0x13)? {
        0 => ends.u32_at(0x20)?,
        few => u32::from(few),
    };
    let of_a_fat = match ends.u16_at(0x16)? {
        0 => ends.u32_at(0x24)?,
        few => u32::from(few),
    };
    let beside_data = u64::from(of_a_fat) * u64::from(fats) + u64::from(reserved);
    Some(
        sector.is_power_of_two()
            && (512..=4096).contains(&sector)
            && cluster.is_power_of_two()
            && reserved > 0
            && fats > 0
            && (media >= 0xf8 || media == 0xf0)
            && of_a_fat > 0
            && beside_data < u64::from(sectors),
    )
}

/// HFS, or HFS+ wrapped in it (hfs.c).
fn hfs(ends: &Ends) -> Option<Signature> {
    const SUPER: u64 = 1024;
    let block = ends.u32_be_at(SUPER + 20)?;
    if !ends.has(SUPER, b"BD") || block == 0 || block % 512 != 0 {
        return None;
    }
    let wraps = [b"H+", b"HX"].iter().any(|magic| ends.has(SUPER + 124, *magic));
    let (tag, what) = if wraps { ("hfsplus", "an HFS+ file system") } else { ("hfs", "an HFS file system") };
    Some(Signature { tag, what, offset: SUPER })
}

/// Minix 1, 2 and 3 of either byte order (minix.c; the bounds are those of
/// fsck.minix).
fn minix(ends: &Ends) -> Option<Signature> {
    const SUPER: u64 = 1024;
    const BITS: u64 = 8 * 1024;
    let found = [false, true].into_iter().any(|big| {
        let u16_at = |at: u64| {
            let read = if big { ends.u16_be_at(SUPER + at) } else { ends.u16_at(SUPER + at) };
            read.map(u64::from)
        };
        let u32_at = |at: u64| {
            let read = if big { ends.u32_be_at(SUPER + at) } else { ends.u32_at(SUPER + at) };
            read.map(u64::from)
        };
        // Inodes, zones, blocks of both bitmaps, the first zone of data, log2
        // of a zone's blocks.
        let fields = || match (u16_at(0x10)?, u16_at(0x18)?) {
            (magic @ (0x137f | 0x138f | 0x2468 | 0x2478), _) => {
                let zones = if magic < 0x2000 { u16_at(2)? } else { u32_at(0x14)? };
                Some((u16_at(0)?, zones, u16_at(4)?, u16_at(6)?, u16_at(8)?, u16_at(10)?))
            }
            (_, 0x4d5a) => {
                Some((u32_at(0)?, u32_at(0x14)?, u16_at(6)?, u16_at(8)?, u16_at(10)?, u16_at(12)?))
            }
            _ => None,
        };
        fields().is_some_and(|(inodes, zones, inode_map, zone_map, first, log)| {
            log == 0
                && inodes > 0
                && inode_map * BITS > inodes
                && first <= zones
                && zone_map * BITS > zones - first
        })
    });
    // The same bytes are fields of an ext or EROFS superblock.
    let other = ends.has(SUPER + 0x38, &[0x53, 0xef]) || ends.has(SUPER, &[0xe2, 0xe1, 0xf5, 0xe0]);
    (found && !other).then_some(Signature { tag: "minix", what: "a Minix file system", offset: SUPER })
}

/// Either of its two superblocks (nilfs.c; Linux, include/uapi/linux/nilfs2_ondisk.h,
/// which puts the second at the last whole 4 KiB but one).
fn nilfs2(ends: &Ends) -> Option<Signature> {
    let by_pages = (ends.size / 4096).checked_sub(1).map(|page| page * 4096);
    let valid = |at: &u64| {
        let field = || {
            let bytes = ends.u16_at(at + 8)?;
            Some(ends.u16_at(at + 6)? == 0x3434 && (20..=1024).contains(&bytes) && ends.u32_at(at + 20)? <= 6)
        };
        field() == Some(true)
    };
    let offset = [Some(1024), ends.sector_from_end(8), by_pages].into_iter().flatten().find(valid)?;
    Some(Signature { tag: "nilfs2", what: "a NILFS2 file system", offset })
}

/// System V, in one of four places and either byte order (sysv.c).
fn sysv(ends: &Ends) -> Option<Signature> {
    const MAGIC: u32 = 0xfd18_7e20;
    let places = [0, 9, 15, 18].map(|block| block * 1024 + 512 + 504);
    let offset = places
        .into_iter()
        .find(|at| ends.has(*at, &MAGIC.to_le_bytes()) || ends.has(*at, &MAGIC.to_be_bytes()))?;
    Some(Signature { tag: "sysv", what: "a System V file system", offset })
}

/// The magic and the type at the end of its superblock (Linux, fs/sysv/super.c;
/// sysv.c looks 8 bytes further on).
fn xenix(ends: &Ends) -> Option<Signature> {
    const MAGIC: u32 = 0x002b_5544;
    let at = 1024 + 1016;
    let found = [u32::from_le_bytes, u32::from_be_bytes].into_iter().any(|number| {
        ends.array(at).map(number) == Some(MAGIC)
            && ends.array(at + 4).map(number).is_some_and(|kind| (1..=3).contains(&kind))
    });
    found.then_some(Signature { tag: "xenix", what: "a Xenix file system", offset: at })
}

/// UFS and UFS2 in four places and either byte order (ufs.c).
fn ufs(ends: &Ends) -> Option<Signature> {
    const MAGICS: [u32; 6] = [0x0001_1954, 0x1954_0119, 0x0019_5612, 0x0009_5014, 0x0061_2195, 0x0523_1994];
    let places = [0, 8, 64, 256].map(|kib| kib * 1024 + 0x55c);
    let offset = places.into_iter().find(|at| {
        [ends.u32_at(*at), ends.u32_be_at(*at)].into_iter().flatten().any(|magic| MAGICS.contains(&magic))
    })?;
    Some(Signature { tag: "ufs", what: "a UFS file system", offset })
}

/// Apple's Core Storage: version and kind of checksum beside two letters (cs_fvault2.c).
fn core_storage(ends: &Ends) -> Option<Signature> {
    let found = ends.has(88, b"CS") && ends.u16_at(8)? == 1 && ends.u32_at(90)? == 1;
    found.then_some(Signature { tag: "corestorage", what: "an Apple Core Storage volume", offset: 88 })
}

/// The log of XFS on a device of its own: a log record in its first 512 sectors (xfs.c).
fn xfs_log(ends: &Ends) -> Option<Signature> {
    let offset = (0..512).map(|sector| sector * 512).find(|at| {
        let version = || ends.u32_be_at(at + 8).is_some_and(|version| version != 0 && version & !3 == 0);
        let format = || ends.u32_be_at(at + 300).is_some_and(|format| (1..=3).contains(&format));
        ends.has(*at, &[0xfe, 0xed, 0xba, 0xbe]) && version() && format()
    })?;
    Some(Signature { tag: "xfs-log", what: "an external XFS log", offset })
}

/// At the end of the first page, whose size is the machine's (swap.c).
fn swap(ends: &Ends) -> Option<Signature> {
    let pages = [4096u64, 8192, 16384, 32768, 65536];
    let kinds: [&[u8]; 6] =
        [b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];
    let at = pages.iter().map(|page| page - 10).find(|at| kinds.iter().any(|kind| ends.has(*at, kind)))?;
    Some(Signature { tag: "swap", what: "swap space", offset: at })
}

/// Any uberblock in any of the four labels, in either byte order (zfs.c).
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
