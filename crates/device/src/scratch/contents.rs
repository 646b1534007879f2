//! Whether what a file holds is our own writing, by places sampled.
//!
//! Method: what can be told sector by sector: a sector of 512 bytes is ours
//! where it carries a stamp of the file's key, is blank (all zeros), or holds
//! what `--data` makes without stamps: the same 8 bytes throughout (a byte,
//! the age) or the bytes 0x00 to 0xff twice. While a file is made nothing is
//! written without stamps, so then only stamps and blank count.
//!
//! Looked at are the first and the last MiB and 256 blocks of 4 KiB, one at a
//! random place in each 256th part of what is on the disk: holes are not looked
//! at, so they hide nothing. The places follow from the key alone, so that the
//! same file gives the same answer. What a miss takes: foreign data of two
//! 256th parts in a row is always met; foreign blocks strewn at random over a
//! share s of the file are missed with the probability (1-s)^256: 8 % for a
//! hundredth of the file, 2e-6 for a twentieth.

use crate::buffer::AlignedBuffer;
use crate::fnv::fnv1a;
use crate::rng::{Rng, derive_seed};
use crate::stamp::{Key, SECTOR};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// How much is read at a time at most, in bytes.
pub(crate) const MOST: u64 = 1 << 20;
/// How much of either end is looked at, in bytes.
const END: u64 = MOST;
/// How many places between.
const PLACES: u64 = 256;
/// How much at each, in bytes.
const BLOCK: u64 = 4096;
/// After so many parts of a file that is all holes, the rest counts as one.
const MOST_PARTS: usize = 1 << 16;

/// What counts as ours besides stamps and zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectorCounts {
    /// Nothing: as a file is filled.
    Stamped,
    /// The contents without stamps that runs can write.
    AnyOfRuns,
}

/// True where `sector` is ours.
pub(crate) fn is_ours(sector: &[u8], key: Key, counts: SectorCounts) -> bool {
    let blank = || sector.iter().all(|byte| *byte == 0);
    let uniform = || sector.len() == SECTOR && sector.chunks_exact(8).all(|word| word == &sector[..8]);
    let cyclic = || sector.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 256);
    key.is_on(sector) || blank() || (counts == SectorCounts::AnyOfRuns && (uniform() || cyclic()))
}

/// Reads blocks past the page cache, where the file system has it, so that
/// looking changes nothing of what is cached.
pub(crate) struct Reader {
    file: File,
    buffer: AlignedBuffer,
    direct: bool,
}

/// Another descriptor of the file behind `file`, wherever its path leads now.
pub(crate) fn reopen(file: &File, options: &OpenOptions) -> io::Result<File> {
    options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl Reader {
    pub(crate) fn of(file: &File) -> io::Result<Reader> {
        let open = |flags| reopen(file, OpenOptions::new().read(true).custom_flags(flags));
        let buffer = AlignedBuffer::new(MOST as usize);
        match open(libc::O_DIRECT) {
            Ok(file) => Ok(Reader { file, buffer, direct: true }),
            Err(_) => Ok(Reader { file: open(0)?, buffer, direct: false }),
        }
    }

    /// What the file holds from `offset`, up to `length` bytes (both multiples
    /// of 4096, at most 1 MiB); less where it ends before.
    pub(crate) fn read(&mut self, offset: u64, length: u64) -> io::Result<&[u8]> {
        let wanted = length.min(MOST) as usize;
        let mut had = 0;
        while had < wanted {
            match self.file.read_at(&mut self.buffer.bytes_mut()[had..wanted], offset + had as u64) {
                Ok(0) => break,
                Ok(n) => had += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Takes O_DIRECT when opened, and then not when read; or the
                // odd end of a file was met.
                Err(error) if self.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                    self.file = reopen(&self.file, OpenOptions::new().read(true))?;
                    self.direct = false;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer.bytes()[..had])
    }

    /// The parts of the first `length` bytes that are data, not holes; all of
    /// it where the file system does not tell.
    pub(crate) fn data(&self, length: u64) -> io::Result<Vec<Range<u64>>> {
        let seek = |from: u64, whence| -> io::Result<u64> {
            let from = libc::off_t::try_from(from).map_err(io::Error::other)?;
            // SAFETY: takes plain numbers and a descriptor that `file` keeps open.
            let to = unsafe { libc::lseek(self.file.as_raw_fd(), from, whence) };
            u64::try_from(to).map_err(|_| io::Error::last_os_error())
        };
        let mut parts = Vec::new();
        let mut at = 0;
        while at < length && parts.len() < MOST_PARTS {
            match seek(at, libc::SEEK_DATA) {
                Ok(from) if from >= length => return Ok(parts),
                Ok(from) => at = from,
                // Nothing but a hole is left.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(parts),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(error),
            }
            let end = seek(at, libc::SEEK_HOLE)?.min(length);
            parts.push(at..end);
            at = end;
        }
        if at < length {
            parts.push(at..length);
        }
        Ok(parts)
    }
}

/// Where to look, in bytes, ascending: a block in each 256th part of `data`.
fn places(data: &[Range<u64>], key: Key) -> Vec<u64> {
    let blocks = |part: &Range<u64>| part.end.div_ceil(BLOCK) - part.start / BLOCK;
    let all: u64 = data.iter().map(blocks).sum();
    let mut rng = Rng::new(derive_seed(key.0, PLACES));
    let mut parts = data.iter();
    let mut part = parts.next();
    let mut before = 0;
    let count = PLACES.min(all);
    let share = |n: u64| (u128::from(all) * u128::from(n) / u128::from(count)) as u64;
    let mut found = Vec::new();
    for n in 0..count {
        let block = share(n) + rng.below(share(n + 1) - share(n));
        while let Some(here) = part.filter(|here| block >= before + blocks(here)) {
            before += blocks(here);
            part = parts.next();
        }
        found.extend(part.map(|here| (here.start / BLOCK + block - before) * BLOCK));
    }
    found
}

/// Where the first `length` bytes hold what is not ours, as far as the sampled
/// places tell; `None` where nothing was met. The blocks at `headers` are left
/// out.
///
/// # Errors
/// Where it cannot be read.
pub(crate) fn foreign_at(
    reader: &mut Reader,
    length: u64,
    headers: &[u64],
    key: Key,
    counts: SectorCounts,
) -> io::Result<Option<u64>> {
    let tail = length.saturating_sub(END) / BLOCK * BLOCK;
    let mut looks = vec![(0, END), (tail, END), (tail + END, BLOCK)];
    looks.extend(places(&reader.data(length)?, key).into_iter().map(|at| (at, BLOCK)));
    for (from, size) in looks {
        let bytes = reader.read(from, size)?;
        let within = bytes.len().min(length.saturating_sub(from) as usize);
        for (count, sector) in bytes[..within].chunks(SECTOR).enumerate() {
            let at = from + (count * SECTOR) as u64;
            if !headers.contains(&(at / BLOCK * BLOCK)) && !is_ours(sector, key, counts) {
                return Ok(Some(at));
            }
        }
    }
    Ok(None)
}

/// Of what the first `length` bytes hold at the places that are looked at, wherever
/// there are holes: it changes with any of these bytes.
///
/// # Errors
/// Where it cannot be read.
pub(crate) fn digest(reader: &mut Reader, length: u64, key: Key) -> io::Result<u64> {
    let tail = length.saturating_sub(END) / BLOCK * BLOCK;
    let mut looks = vec![(0, END), (tail, END), (tail + END, BLOCK)];
    looks.extend(places(std::slice::from_ref(&(0..length)), key).into_iter().map(|at| (at, BLOCK)));
    let mut sum = length;
    for (from, size) in looks {
        let bytes = reader.read(from, size)?;
        let within = bytes.len().min(length.saturating_sub(from) as usize);
        sum = fnv1a(&[sum, from, fnv1a(&bytes[..within])].map(u64::to_le_bytes).concat());
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_runs_write_is_ours_and_nothing_else() {
        let key = Key(9);
        let mut stamped = vec![0xee; SECTOR];
        key.stamp(&mut stamped, 5);
        let age: Vec<u8> = 0x1234u64.to_le_bytes().repeat(SECTOR / 8);
        let cyclic: Vec<u8> = (0..=255).cycle().take(SECTOR).collect();
        for counts in [SectorCounts::Stamped, SectorCounts::AnyOfRuns] {
            assert!(is_ours(&stamped, key, counts) && is_ours(&[0; SECTOR], key, counts));
            assert!(!is_ours(&stamped, Key(8), counts), "of another file");
            for plain in [&age, &cyclic, &vec![0xa5; SECTOR]] {
                assert_eq!(is_ours(plain, key, counts), counts == SectorCounts::AnyOfRuns);
                let mut changed = plain.clone();
                changed[300] ^= 1;
                assert!(!is_ours(&changed, key, counts));
            }
            let mut nearly_blank = [0; SECTOR];
            nearly_blank[511] = 1;
            assert!(!is_ours(&nearly_blank, key, counts));
            assert!(!is_ours(&"Dear diary, ".repeat(43).as_bytes()[..SECTOR], key, counts));
        }
    }

    #[test]
    fn two_parts_in_a_row_are_always_met() {
        let data = [0..512 << 20, 1 << 30..(1 << 30) + (512 << 20)];
        for seed in 0..20 {
            let all = places(&data, Key(seed));
            assert_eq!(all.len() as u64, PLACES);
            assert!(all.iter().all(|at| data.iter().any(|part| part.contains(at)) && at % BLOCK == 0));
            let part = (1 << 30) / PLACES;
            assert!(all.windows(2).all(|pair| pair[1] > pair[0]
                && (pair[1] - pair[0] < 2 * part || pair[1] >= 1 << 30 && pair[0] < 512 << 20)));
        }
    }

    proptest! {
        #[test]
        fn every_place_is_in_the_data(ends in prop::collection::vec(1u64..1 << 24, 1..40), seed: u64) {
            let mut data = Vec::new();
            let mut at = 0;
            for pair in ends.chunks(2) {
                at += pair[0].next_multiple_of(BLOCK);
                let end = at + pair.get(1).copied().unwrap_or(1);
                data.push(at..end);
                at = end.next_multiple_of(BLOCK);
            }
            let all = places(&data, Key(seed));
            let blocks: u64 = data.iter().map(|p| (p.end - p.start).div_ceil(BLOCK)).sum();
            prop_assert_eq!(all.len() as u64, blocks.min(PLACES));
            prop_assert!(all.iter().all(|at| data.iter().any(|part| part.contains(at))));
            prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
