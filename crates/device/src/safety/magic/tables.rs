//! Partition tables told by more than fixed bytes.
//!
//! Source: util-linux `libblkid/src/partitions`, the file named at each. Tables
//! inside a partition (BSD, Solaris, Minix) are found where that partition is
//! the target.

use super::{Ends, Signature};

/// The words for these.
pub(super) const TAGS: &[&str] = &["apm", "atari", "dasd", "dos", "gpt", "sun", "ultrix"];

/// What ends its first sector as an MBR does.
pub(super) const BOOT_SECTORS: &[&str] = &["vfat", "ntfs", "exfat", "bitlocker", "refs", "hpfs"];

/// All that are there; an MBR only where the first sector is of no file system
/// (`boots`) and of no GPT, which has one to protect it.
pub(super) fn find(ends: &Ends, boots: bool) -> impl Iterator<Item = Signature> {
    let gpt = gpt(ends);
    let mbr = if boots || gpt.is_some() { None } else { mbr(ends) };
    let others = [apm, atari, dasd, sun, ultrix].into_iter().filter_map(|told| told(ends));
    others.chain([gpt, mbr].into_iter().flatten()).collect::<Vec<_>>().into_iter()
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

/// Apple's partition map: the driver's descriptor, and the map's own entry a
/// block further on; or that entry alone with a plausible count (mac.c).
fn apm(ends: &Ends) -> Option<Signature> {
    let entry = |at: u64| ends.has(at, b"PM") || ends.has(at, b"TS");
    let block = ends.u16_be_at(2)?;
    let described =
        ends.has(0, b"ER") && block.is_power_of_two() && (512..=4096).contains(&block) && entry(block.into());
    let alone = || ends.has(512, b"PM\0\0") && ends.u32_be_at(516).is_some_and(|n| (1..=256).contains(&n));
    (described || alone()).then_some(Signature { tag: "apm", what: "an Apple partition map", offset: 0 })
}

/// At least one active entry with letters for its name inside the size that
/// the table gives, which is no more than the disk's (atari.c).
fn atari(ends: &Ends) -> Option<Signature> {
    let sectors = u64::from(ends.u32_be_at(0x1c2)?);
    if !(2..=ends.size / 512).contains(&sectors) || ends.size / 512 > i32::MAX as u64 {
        return None;
    }
    let inside = |start: u64, count: u64| start > 0 && count > 0 && start + count <= sectors;
    let (bad_start, bad_count) = (ends.u32_be_at(0x1f6)?, ends.u32_be_at(0x1fa)?);
    if (bad_start | bad_count) != 0 && !inside(bad_start.into(), bad_count.into()) {
        return None;
    }
    let offset = (0..4).map(|k| 0x1c6 + 12 * k).find(|at| {
        let name = ends.at(at + 1, 3).is_some_and(|name| name.iter().all(u8::is_ascii_alphanumeric));
        let (start, count) = (ends.u32_be_at(at + 4), ends.u32_be_at(at + 8));
        let place = start.zip(count).is_some_and(|(start, count)| inside(start.into(), count.into()));
        ends.u8_at(*at).is_some_and(|flags| flags & 0x7f == 1) && name && place
    })?;
    Some(Signature { tag: "atari", what: "an Atari partition table", offset })
}

/// The volume label of an IBM DASD in its third block: "VOL1", "LNX1" or "CMS1"
/// in EBCDIC (dasd.c).
fn dasd(ends: &Ends) -> Option<Signature> {
    let blocks = [512, 1024, 2048, 4096];
    let offset = blocks.into_iter().map(|block| 2 * block).find(|at| {
        ends.has(at + 4, &[0xe5, 0xd6, 0xd3, 0xf1])
            || ends.has(*at, &[0xd3, 0xd5, 0xe7, 0xf1])
            || ends.has(*at, &[0xc3, 0xd4, 0xe2, 0xf1])
    })?;
    Some(Signature { tag: "dasd", what: "a DASD volume label", offset })
}

/// Two bytes and a checksum over the sector (sun.c).
fn sun(ends: &Ends) -> Option<Signature> {
    let words = ends.at(0, 512)?.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let found = ends.has(508, &[0xda, 0xbe]) && words.fold(0, |sum, word| sum ^ word) == 0;
    found.then_some(Signature { tag: "sun", what: "a Sun disk label", offset: 508 })
}

/// At the end of the first 16 KiB (ultrix.c).
fn ultrix(ends: &Ends) -> Option<Signature> {
    let at = 16384 - 72;
    let found = ends.u32_at(at)? == 0x0003_2957 && ends.u32_at(at + 4)? == 1;
    found.then_some(Signature { tag: "ultrix", what: "an Ultrix partition table", offset: at })
}
