//! Filling: a new file from end to end, and the holes of one that is there.
//!
//! Everything written is incompressible and stamped with the file's key, past
//! the page cache where the file system has it.

use super::contents::reopen;
use super::extents::{extents, missing};
use super::sidecar::{Programmed, Sidecar};
use super::{Ours, SMALLEST, ScratchError, UNIT, lock, ours_and_free, path_error};
use crate::buffer::AlignedBuffer;
use crate::device::Stop;
use crate::rng::{Rng, derive_seed};
use crate::stamp::{Key, SECTOR};
use crate::units::Bytes;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// What is written at a time.
const CHUNK: u64 = 1 << 20;

/// A descriptor that writes, the buffer, and what goes into it.
pub(super) struct Filler {
    file: File,
    direct: bool,
    key: Key,
    rng: Rng,
    buffer: AlignedBuffer,
}

impl Filler {
    /// Writes to the file behind `file`, wherever its path leads now.
    pub(super) fn of(file: &File, key: Key) -> io::Result<Filler> {
        let open = |flags| reopen(file, OpenOptions::new().write(true).custom_flags(flags));
        let (file, direct) = match open(libc::O_DIRECT) {
            Ok(file) => (file, true),
            Err(_) => (open(0)?, false),
        };
        let buffer = AlignedBuffer::new(CHUNK as usize);
        Ok(Filler { file, direct, key, rng: Rng::new(derive_seed(key.0, 0)), buffer })
    }

    /// Writes `length` bytes at `offset`, at most 1 MiB.
    pub(super) fn write(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let bytes = &mut self.buffer.bytes_mut()[..length.min(CHUNK) as usize];
        self.rng.fill(bytes);
        self.key.stamp(bytes, offset / SECTOR as u64);
        match self.file.write_all_at(bytes, offset) {
            Err(error) if self.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                // Takes O_DIRECT when opened, and then not when written.
                self.file = reopen(&self.file, OpenOptions::new().write(true))?;
                self.direct = false;
                self.file.write_all_at(bytes, offset)
            }
            other => other,
        }
    }
}

/// Fills a new file from the end of its header on, up to `size`; gives how far
/// it came.
pub(super) fn fill(
    path: &Path,
    filler: &mut Filler,
    size: Bytes,
    budget: Option<Duration>,
    progress: &mut dyn FnMut(Bytes, Bytes),
    stop: &Stop,
) -> Result<Bytes, ScratchError> {
    let begin = Instant::now();
    let mut done = 0;
    while done < size.0 {
        if stop.after_this_run() {
            return Err(ScratchError::Stopped { path: path.to_path_buf() });
        }
        let over = budget.is_some_and(|budget| begin.elapsed() >= budget);
        if over && done >= SMALLEST.0 {
            break;
        }
        let end = size.0.min(done + CHUNK);
        // The first block is the header's until all else is written.
        let from = done.max(UNIT);
        if from < end {
            filler.write(from, end - from).map_err(path_error("cannot write", path))?;
        }
        done = end;
        progress(Bytes(done), size);
    }
    Ok(Bytes(done))
}

/// Writes again what is not on the disk of the finished scratch file at `path`:
/// holes that trims or others made, and parts never written. Gives how much;
/// `None` where nothing was missing or the file system does not tell, and where a
/// program wrote it: its holes are the program's.
///
/// # Errors
/// [`ScratchError`] where it is not ours, in use, or cannot be written; then
/// nothing is written.
pub fn fill_holes(path: &Path, stop: &Stop) -> Result<Option<Bytes>, ScratchError> {
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(libc::O_NOFOLLOW).open(path);
    let looked = open(false).map_err(path_error("cannot open", path))?;
    if !has_holes(&looked, path)? {
        return Ok(None);
    }
    let file = open(true).map_err(path_error("cannot open to fill the holes of", path))?;
    lock(&file, path)?;
    fill_holes_behind(path, &file, stop)
}

/// The same of a file that is open and locked as `file`, and was at `path`.
///
/// # Errors
/// As of [`fill_holes`].
pub fn fill_holes_behind(path: &Path, file: &File, stop: &Stop) -> Result<Option<Bytes>, ScratchError> {
    if !has_holes(file, path)? {
        return Ok(None);
    }
    let found = ours_and_free(path, file, Ours::Finished)?;
    if found.programmed != Programmed::No {
        return Ok(None);
    }
    let length = whole_length(&found);
    let parts = extents(file).map_err(path_error("cannot learn the extents of", path))?.unwrap_or_default();
    let mut filler = Filler::of(file, found.key).map_err(path_error("cannot open", path))?;
    let mut filled = 0;
    for hole in missing(&parts, length) {
        // Whole blocks: what stands beside a smaller hole is ours as well.
        let (mut at, end) = (hole.start / UNIT * UNIT, hole.end.next_multiple_of(UNIT).min(found.size));
        while at < end {
            if stop.after_this_run() {
                return Err(ScratchError::StoppedFilling { path: path.to_path_buf() });
            }
            let size = (end - at).min(CHUNK);
            filler.write(at, size).map_err(path_error("cannot fill the holes of", path))?;
            at += size;
            filled += size;
        }
    }
    file.sync_all().map_err(path_error("cannot make durable", path))?;
    super::layout(file, path, length)?;
    Ok(Some(Bytes(filled)))
}

/// The whole file's, its header included.
fn whole_length(sidecar: &Sidecar) -> Bytes {
    Bytes(sidecar.size + UNIT)
}

/// Whether a part of the file is not on its disk.
fn has_holes(file: &File, path: &Path) -> Result<bool, ScratchError> {
    let found = extents(file).map_err(path_error("cannot learn the extents of", path))?;
    let length = file.metadata().map_err(path_error("cannot look at", path))?.len();
    Ok(found.is_some_and(|found| !missing(&found, Bytes(length)).is_empty()))
}
