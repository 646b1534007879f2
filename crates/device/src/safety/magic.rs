//! Whose data is on a device: known signatures in its first and last bytes,
//! and at the few places between where a format keeps a copy.
//!
//! Pure functions over bytes; [`Ends::read`] reads them. Most formats are a row
//! of [`fixed`]; what needs plausible fields around a short magic, or a place
//! counted from the end, is a function of [`filesystems`], [`volumes`] or
//! [`tables`]. Short magics are taken only with such fields, so that random
//! data is not called a file system; checksums are not asked for, as damaged
//! data is data. Offsets and bytes: facts of each format's own documentation, as
//! collected in util-linux `libblkid/src/superblocks` and `partitions`.
//!
//! Limits: what no row knows is found as unknown contents ([`super::contents`]).

mod filesystems;
mod fixed;
mod tables;
mod volumes;

use super::{contents, fresh};
use std::fs::File;
use std::io;

/// How much of a device's start is looked at, in bytes.
const HEAD: u64 = 2 << 20;
/// How much of its end, in bytes.
const TAIL: u64 = 1 << 20;
/// Places between with copies of superblocks: the second of bcachefs, LUKS2 and
/// VMFS, the last of LUKS2, the second and third of btrfs.
const COPIES: [u64; 4] = [2 << 20, 4 << 20, 64 << 20, 256 << 30];
/// How much is read of each.
const COPY: u64 = 4096;

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

/// Every word that can confirm a signature.
pub(crate) fn tags() -> impl Iterator<Item = &'static str> {
    let others = [filesystems::TAGS, volumes::TAGS, tables::TAGS].concat();
    fixed::ROWS.iter().map(|row| row.0).chain(others)
}

/// The bytes of a device in which signatures lie.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    size: u64,
    /// Head and tail first, then the copies; each with where it starts.
    parts: Vec<(u64, Vec<u8>)>,
}

impl Ends {
    /// Reads both ends; of a small target the whole, twice.
    pub(crate) fn read(file: &File, size: u64) -> io::Result<Ends> {
        let mut parts = Vec::new();
        let mut failed = Ok(());
        fresh::read(file, &Ends::ranges(size), |offset, outcome| match outcome {
            Ok(bytes) => parts.push((offset, bytes.to_vec())),
            Err(error) => failed = Err(error),
        });
        failed.map(|()| Ends { size, parts })
    }

    /// Of bytes in memory.
    #[cfg(test)]
    fn of(bytes: &[u8]) -> Ends {
        let size = bytes.len() as u64;
        let part = |(offset, length)| (offset, bytes[offset as usize..offset as usize + length].to_vec());
        Ends { size, parts: Ends::ranges(size).into_iter().map(part).collect() }
    }

    /// Of a device of zeros.
    #[cfg(test)]
    pub(super) fn blank(size: u64) -> Ends {
        let parts = Ends::ranges(size).into_iter().map(|(offset, length)| (offset, vec![0; length]));
        Ends { size, parts: parts.collect() }
    }

    /// How long head and tail are, in bytes.
    pub(crate) fn lengths(size: u64) -> (u64, u64) {
        (HEAD.min(size), TAIL.min(size))
    }

    fn ranges(size: u64) -> Vec<fresh::Range> {
        let (head, tail) = Ends::lengths(size);
        let from_end = volumes::FURTHEST_FROM_END.checked_mul(512).and_then(|back| size.checked_sub(back));
        let copies = COPIES.into_iter().chain(from_end.map(|at| at / 512 * 512));
        let copies =
            copies.filter(|offset| *offset < size).map(|offset| (offset, COPY.min(size - offset) as usize));
        [(0, head as usize), (size - tail, tail as usize)].into_iter().chain(copies).collect()
    }

    /// The bytes from `offset`, where they lie in one of the parts.
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.parts.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(length)?)
        })
    }

    fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.at(offset, N)?.try_into().ok()
    }

    fn u8_at(&self, offset: u64) -> Option<u8> {
        self.array(offset).map(u8::from_le_bytes)
    }

    fn u16_at(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    fn u32_at(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    fn u16_be_at(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_be_bytes)
    }

    fn u32_be_at(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }

    /// Where the `n`-th sector of 512 bytes from the end starts, 1 being the last.
    fn sector_from_end(&self, n: u64) -> Option<u64> {
        (self.size / 512).checked_sub(n).map(|sector| sector * 512)
    }

    /// The first byte in head or tail that is neither blank nor ours.
    pub(crate) fn first_unknown(&self) -> Option<u64> {
        let mut ends = self.parts.iter().take(2);
        ends.find_map(|(start, bytes)| contents::first_unknown(bytes).map(|at| start + at))
    }
}

/// Everything known that lies on a device, each tag once, sorted by tag.
pub(crate) fn signatures(ends: &Ends) -> Vec<Signature> {
    let mut found: Vec<Signature> = fixed::ROWS
        .iter()
        .filter(|(_, _, offset, magic)| ends.has(*offset, magic))
        .map(|(tag, what, offset, _)| Signature { tag, what, offset: *offset })
        .collect();
    found.extend(filesystems::find(ends));
    found.extend(volumes::find(ends));
    let boots = found.iter().any(|s| tables::BOOT_SECTORS.contains(&s.tag));
    found.extend(tables::find(ends, boots));
    found.sort_by_key(|s| (s.tag, s.offset));
    found.dedup_by_key(|s| s.tag);
    found
}

#[cfg(test)]
mod tests;
