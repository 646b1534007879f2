//! Members of what stands beneath file systems: RAID of software and of
//! firmware, LVM, encrypted volumes, DRBD. Most keep their data at the end.
//!
//! Source: util-linux `libblkid/src/superblocks`, the file named at each. Where
//! a maker's magic is short, its checksum is asked for too.

use super::{Ends, Signature};

/// The words for these.
pub(super) const TAGS: &[&str] = &["bcachefs", "drbd", "fakeraid", "luks", "lvm2", "md"];

/// How far from the end the furthest of these lies, in sectors of 512 bytes.
pub(super) const FURTHEST_FROM_END: u64 = 3087;

pub(super) fn find(ends: &Ends) -> impl Iterator<Item = Signature> {
    let all = [luks_second, lvm, md, drbd, bcachefs_last];
    let firmware = firmware_raid(ends).map(|(what, offset)| Signature { tag: "fakeraid", what, offset });
    all.into_iter().filter_map(|told| told(ends)).chain(firmware).collect::<Vec<_>>().into_iter()
}

/// The second header of LUKS2, which outlives a wiped start (luks.c).
fn luks_second(ends: &Ends) -> Option<Signature> {
    let offsets = (14..=22).map(|power| 1u64 << power);
    let offset = offsets.into_iter().find(|offset| ends.has(*offset, b"SKUL\xba\xbe"))?;
    Some(Signature { tag: "luks", what: "a LUKS encrypted volume", offset })
}

fn lvm(ends: &Ends) -> Option<Signature> {
    let offset = (0..4)
        .map(|sector| sector * 512)
        .find(|at| ends.has(*at, b"LABELONE") && ends.has(at + 24, b"LVM2 001"))?;
    Some(Signature { tag: "lvm2", what: "an LVM2 physical volume", offset })
}

/// Linux software RAID: 1.1 at the start, 1.2 at 4 KiB, 1.0 and 0.90 at the end
/// (linux_raid.c).
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

/// Metadata inside the device, in its last 4 KiB (drbd.c): versions 8 and 9.
fn drbd(ends: &Ends) -> Option<Signature> {
    let places = [ends.size.checked_sub(4096), (ends.size & !4095).checked_sub(4096)];
    let magic = |at: &u64| (0x6b..=0x6d).any(|last| ends.has(at + 60, &[0x83, 0x74, 0x02, last]));
    let offset = places.into_iter().flatten().find(magic)?;
    Some(Signature { tag: "drbd", what: "a DRBD device", offset })
}

/// The superblock that bcachefs keeps in the last MiB (bcache.c).
fn bcachefs_last(ends: &Ends) -> Option<Signature> {
    const MAGIC: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
    let offset = ends.size.checked_sub(1 << 20)? + 24;
    ends.has(offset, MAGIC).then_some(Signature { tag: "bcachefs", what: "bcache or bcachefs", offset })
}

/// What RAID of a controller's or a mainboard's firmware leaves on its disks:
/// the maker, and where.
fn firmware_raid(ends: &Ends) -> impl Iterator<Item = (&'static str, u64)> {
    let all = [adaptec, ddf, highpoint, intel, jmicron, lsi, nvidia, promise, silicon, via];
    all.into_iter().filter_map(|told| told(ends)).collect::<Vec<_>>().into_iter()
}

type FoundVolume = Option<(&'static str, u64)>;

fn adaptec(ends: &Ends) -> FoundVolume {
    let at = ends.sector_from_end(1)?;
    ends.has(at, &[0x37, 0xfc, 0x4d, 0x1e]).then_some(("a member of an Adaptec RAID", at))
}

/// SNIA's common format, of several makers: its anchor in the last sector, or
/// 256 sectors before (ddf_raid.c).
fn ddf(ends: &Ends) -> FoundVolume {
    let places = [ends.sector_from_end(1), ends.sector_from_end(257), ends.size.checked_sub(4096)];
    let at = places.into_iter().flatten().find(|at| ends.has(*at, &[0xde, 0x11, 0xde, 0x11]))?;
    Some(("a member of a firmware RAID (DDF)", at))
}

/// HPT45x near the end, HPT37x near the start (highpoint_raid.c).
fn highpoint(ends: &Ends) -> FoundVolume {
    let near_end =
        ends.sector_from_end(11).map(|at| (at, [0xf3, 0x16, 0x78, 0x5a], [0xfd, 0x16, 0x78, 0x5a]));
    let near_start = Some((4096 + 544, [0xf0, 0x16, 0x78, 0x5a], [0xfd, 0x16, 0x78, 0x5a]));
    let mut places = [near_end, near_start].into_iter().flatten();
    let (at, ..) = places.find(|(at, good, bad)| ends.has(*at, good) || ends.has(*at, bad))?;
    Some(("a member of a HighPoint RAID", at))
}

/// In the last sector but one, whose size may be 4 KiB (isw_raid.c).
fn intel(ends: &Ends) -> FoundVolume {
    let places = [ends.sector_from_end(2), (ends.size / 4096).checked_sub(2).map(|sector| sector * 4096)];
    let at = places.into_iter().flatten().find(|at| ends.has(*at, b"Intel Raid ISM Cfg Sig. "))?;
    Some(("a member of an Intel RAID", at))
}

fn jmicron(ends: &Ends) -> FoundVolume {
    let at = ends.sector_from_end(1)?;
    let words = ends.at(at, 128)?.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let sum = words.fold(0u16, u16::wrapping_add);
    let found = ends.has(at, b"JM") && sum <= 1 && ends.u8_at(at + 0x30)? <= 5;
    found.then_some(("a member of a JMicron RAID", at))
}

fn lsi(ends: &Ends) -> FoundVolume {
    let at = ends.sector_from_end(1)?;
    ends.has(at, b"$XIDE$").then_some(("a member of an LSI MegaRAID", at))
}

fn nvidia(ends: &Ends) -> FoundVolume {
    let at = ends.sector_from_end(2)?;
    ends.has(at, b"NVIDIA  ").then_some(("a member of an NVIDIA RAID", at))
}

/// At one of many distances from the end (promise_raid.c).
fn promise(ends: &Ends) -> FoundVolume {
    let sectors = [63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, FURTHEST_FROM_END];
    let places = sectors.into_iter().filter_map(|sector| ends.sector_from_end(sector));
    let at = places.into_iter().find(|at| ends.has(*at, b"Promise Technology, Inc."))?;
    Some(("a member of a Promise RAID", at))
}

fn silicon(ends: &Ends) -> FoundVolume {
    let at = ends.sector_from_end(1)?;
    let words = ends.at(at, 0x13e)?.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let sum = words.fold(0u16, u16::wrapping_add);
    let found = ends.has(at + 0x60, &[0, 0, 0, 0x2f])
        && ends.u8_at(at + 0x116)? < 8
        && sum.wrapping_add(ends.u16_at(at + 0x13e)?) == 0;
    found.then_some(("a member of a Silicon Image RAID", at))
}

fn via(ends: &Ends) -> FoundVolume {
    let at = ends.sector_from_end(1)?;
    let sum = ends.at(at, 50)?.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let found = ends.has(at, &[0x55, 0xaa]) && ends.u8_at(at + 2)? <= 2 && ends.u8_at(at + 50)? == sum;
    found.then_some(("a member of a VIA RAID", at))
}
