//! Reads of a block device that no stale page of the cache answers.
//!
//! Method: what the cache holds of a range is dropped (`POSIX_FADV_DONTNEED`
//! drops only what is clean; a dirty page is newer than the device and is
//! rightly read), read through the cache, and dropped again, so that what is
//! measured afterwards is not served from it. No `O_DIRECT`: its alignment
//! differs between devices, and some take none.
//!
//! Source: posix_fadvise(2). Limits: advice is advice; where the kernel does
//! not follow it, reads are answered as by any other program. A page that
//! somebody has mapped stays.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A range of a device: offset and length in bytes.
pub(crate) type Range = (u64, usize);

/// Reads `ranges` one after another into `into`, which is told each range's
/// outcome. All are asked for before the first is awaited, so that a disk may
/// serve them in the order that suits it.
pub(crate) fn read(file: &File, ranges: &[Range], mut into: impl FnMut(u64, io::Result<&[u8]>)) {
    ranges.iter().for_each(|range| advise(file, *range, Advice::Drop));
    ranges.iter().for_each(|range| advise(file, *range, Advice::Fetch));
    let mut bytes = Vec::new();
    for (offset, length) in ranges.iter().copied() {
        bytes.resize(length, 0);
        let outcome = file.read_exact_at(&mut bytes, offset);
        into(offset, outcome.map(|()| &bytes[..]));
    }
    ranges.iter().for_each(|range| advise(file, *range, Advice::Drop));
}

#[derive(Clone, Copy)]
enum Advice {
    Drop,
    Fetch,
}

#[cfg(target_os = "linux")]
fn advise(file: &File, (offset, length): Range, advice: Advice) {
    use std::os::fd::AsRawFd;
    let advice = match advice {
        Advice::Drop => libc::POSIX_FADV_DONTNEED,
        Advice::Fetch => libc::POSIX_FADV_WILLNEED,
    };
    // SAFETY: posix_fadvise takes a descriptor, which lives as long as `file`,
    // and integers; it touches no memory of ours.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset as libc::off_t, length as libc::off_t, advice) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &File, _: Range, _: Advice) {}
