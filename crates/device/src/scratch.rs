//! Scratch files: files this tool makes to measure on, and knows again.
//!
//! A scratch file is preallocated and then written from end to end with
//! incompressible content, so that no extent is a hole or unwritten, which
//! would be answered without the device. A sidecar marks it as ours (see
//! `sidecar`), and its extents tell how far it is from a contiguous range of
//! the disk (see `extents`).
//!
//! Source: `fallocate(2)`, `statvfs(3)`; content as in paper 000/001, section
//! 4.1, where a device is filled before it is measured.

mod extents;
pub(crate) mod sidecar;

pub use extents::{Extent, ExtentError, Fragmentation, extents, fragmentation, fragments};

use crate::device::Stop;
use crate::rng::{Rng, derive_seed};
use crate::units::Bytes;
use sidecar::Sidecar;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The smallest scratch file a time budget leaves, in bytes.
pub const SMALLEST: Bytes = Bytes(16 << 20);
/// What is written at a time, and what a shortened file is a multiple of.
const CHUNK: usize = 1 << 20;
/// What sizes must be a multiple of: the largest sector in use.
const UNIT: u64 = 4096;

/// A scratch file, complete on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: Bytes,
    /// The size asked for, where the time budget cut it short.
    pub shortened_from: Option<Bytes>,
    /// How it lies on the disk; `None` where the file system does not tell.
    pub fragmentation: Option<Fragmentation>,
}

/// Why there is no scratch file.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The disk would be too full.
    #[error(
        "{path} of {size} does not fit: {free} are free and {kept} stay free for others. {hint}",
        path = path.display(),
        hint = fitting(*free, *kept)
    )]
    Full {
        /// The file that was to be made.
        path: PathBuf,
        /// Its size.
        size: Bytes,
        /// What the file system has free for this user.
        free: Bytes,
        /// What is left alone.
        kept: Bytes,
    },
    /// A size that cannot be had.
    #[error("a scratch file of {}B is not possible; type {instead} for --scratch-size", size.0)]
    Size {
        /// The size asked for.
        size: Bytes,
        /// What to type.
        instead: String,
    },
    /// Something of that name is there.
    #[error("{path} is there already: {why}", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        why: String,
    },
    /// The file has parts that are not on the disk.
    #[error("{path}: {source}", path = path.display())]
    Extents {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: ExtentError,
    },
    /// Asked to stop. The partial file is removed.
    #[error("stopped while making {path}; it is removed", path = path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// The system refused something. A partial file is removed.
    #[error("{what} {path}: {source}", path = path.display())]
    Path {
        /// What was tried, as the start of a sentence.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn fitting(free: Bytes, kept: Bytes) -> String {
    let room = free.0.saturating_sub(kept.0) & !(CHUNK as u64 - 1);
    if room >= SMALLEST.0 {
        format!("Type --scratch-size {} or less, or name a file in another folder", Bytes(room).exact())
    } else {
        "Name a file in a folder of another disk".to_string()
    }
}

fn path_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ScratchError {
    move |source| ScratchError::Path { what, path: path.to_path_buf(), source }
}

/// The scratch file at `path` of exactly `size`: the one that is there where
/// it fits, else a new one in place of one of ours that does not.
/// Parameters as of [`create`].
///
/// # Errors
/// As of [`create`]; a file that is not ours is never touched.
pub fn prepare(
    path: &Path,
    size: Bytes,
    budget: Option<Duration>,
    progress: &mut dyn FnMut(Bytes, Bytes),
    stop: &Stop,
) -> Result<Scratch, ScratchError> {
    if let Some(found) = reuse(path, size)? {
        return Ok(found);
    }
    if path.symlink_metadata().is_ok_and(|meta| meta.size() > 0) {
        remove(path)?;
    }
    create(path, size, budget, progress, stop)
}

/// Whether a scratch file of ours is at `path` whose making was cut off, by
/// `kill -9` or with the power: [`prepare`] makes it anew.
pub fn is_unfinished(path: &Path) -> bool {
    let Ok(meta) = path.symlink_metadata() else { return false };
    meta.is_file() && sidecar::read(path).is_some_and(|found| found.names(&meta) && !found.complete)
}

/// The scratch file that is at `path`, where it is complete, ours and of
/// exactly `size`; `None` where nothing is there, an empty file, or one of
/// ours that does not fit.
///
/// # Errors
/// [`ScratchError::Exists`] for a file that is not ours.
pub fn reuse(path: &Path, size: Bytes) -> Result<Option<Scratch>, ScratchError> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(path_error("cannot look at", path)(error)),
    };
    if meta.is_file() && meta.size() == 0 {
        return Ok(None);
    }
    let ours = sidecar::read(path).filter(|found| found.names(&meta));
    let Some(found) = ours.filter(|_| meta.is_file()) else {
        return Err(exists(path));
    };
    if !found.complete || found.size != meta.size() || found.size != size.0 {
        return Ok(None);
    }
    let file = File::open(path).map_err(path_error("cannot open", path))?;
    let fragmentation = layout(&file, path, size)?;
    Ok(Some(Scratch { path: path.to_path_buf(), size, shortened_from: None, fragmentation }))
}

fn exists(path: &Path) -> ScratchError {
    let why = "uflip did not make it, so it stays as it is; name a new file".to_string();
    ScratchError::Exists { path: path.to_path_buf(), why }
}

/// Makes a scratch file of `size` (a multiple of 4K, at least 4K) at `path`,
/// where nothing or an empty file is. `progress` is called with the bytes
/// written and those to be written. Where `budget` ends first the file is cut
/// to what was written, 16 MiB at least. At the first request to stop it is
/// removed. The caller gives the time: writing takes as long as the disk does.
///
/// # Errors
/// [`ScratchError`]; nothing of a failed file stays.
pub fn create(
    path: &Path,
    size: Bytes,
    budget: Option<Duration>,
    progress: &mut dyn FnMut(Bytes, Bytes),
    stop: &Stop,
) -> Result<Scratch, ScratchError> {
    if size.0 == 0 || !size.0.is_multiple_of(UNIT) {
        let instead = Bytes(size.0.div_ceil(UNIT).max(1) * UNIT).exact();
        return Err(ScratchError::Size { size, instead });
    }
    check_room(path, size)?;
    let guard = Partial::start(path)?;
    let meta = guard.file.metadata().map_err(path_error("cannot look at", path))?;
    let mut sidecar = Sidecar::of(&meta, size.0);
    sidecar::write(path, &sidecar).map_err(path_error("cannot write the sidecar of", path))?;
    preallocate(&guard.file, size).map_err(path_error("cannot reserve room for", path))?;
    let seed = derive_seed(sidecar.created, meta.ino());
    let written = fill(path, size, budget, seed, progress, stop)?;
    guard.file.set_len(written.0).map_err(path_error("cannot cut", path))?;
    guard.file.sync_all().map_err(path_error("cannot make durable", path))?;
    let fragmentation = layout(&guard.file, path, written)?;
    sidecar.size = written.0;
    sidecar.complete = true;
    sidecar::write(path, &sidecar).map_err(path_error("cannot write the sidecar of", path))?;
    guard.keep();
    let shortened_from = (written != size).then_some(size);
    Ok(Scratch { path: path.to_path_buf(), size: written, shortened_from, fragmentation })
}

/// Removes a scratch file of ours and its sidecar.
///
/// # Errors
/// [`ScratchError::Exists`] where it is not ours or in use by another uflip;
/// then nothing is removed.
pub fn remove(path: &Path) -> Result<(), ScratchError> {
    let meta = path.symlink_metadata().map_err(path_error("cannot look at", path))?;
    if !meta.is_file() || !sidecar::read(path).is_some_and(|found| found.names(&meta)) {
        return Err(exists(path));
    }
    lock(&File::open(path).map_err(path_error("cannot open", path))?, path)?;
    std::fs::remove_file(path).map_err(path_error("cannot remove", path))?;
    let sidecar = sidecar::path_of(path);
    std::fs::remove_file(&sidecar).map_err(path_error("cannot remove", &sidecar))
}

/// What tells a scratch file from any other of its name and inode: the `key` of
/// its sidecar. `None` where there is no sidecar of ours, or one without a key.
pub fn identity(path: &Path) -> Option<String> {
    sidecar::key_text(path)
}

/// Keeps other uflips away while `file` is open, and notices one that measures
/// on it or makes it. File systems without locks are taken as they are.
fn lock(file: &File, path: &Path) -> Result<(), ScratchError> {
    if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
        let why = "another uflip uses it; wait for it or name another file".to_string();
        return Err(ScratchError::Exists { path: path.to_path_buf(), why });
    }
    Ok(())
}

/// A file in the making; removed with its sidecar unless kept.
struct Partial {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Partial {
    fn start(path: &Path) -> Result<Partial, ScratchError> {
        let sidecar = sidecar::path_of(path);
        if sidecar.symlink_metadata().is_ok() && sidecar::read(path).is_none() {
            let why =
                "it is where the sidecar would be and is none of uflip's; name another file".to_string();
            return Err(ScratchError::Exists { path: sidecar, why });
        }
        let empty = path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.size() == 0);
        if empty {
            std::fs::remove_file(path).map_err(path_error("cannot replace the empty file", path))?;
        }
        let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        match made {
            Ok(file) => {
                let partial = Partial { path: path.to_path_buf(), file, kept: false };
                lock(&partial.file, path)?;
                Ok(partial)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
            Err(error) => Err(path_error("cannot make", path)(error)),
        }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            // Nobody is left to tell; a file that stays is refused as incomplete.
            let _ = std::fs::remove_file(&self.path);
            let _ = std::fs::remove_file(sidecar::path_of(&self.path));
        }
    }
}

/// Free bytes for this user and all bytes of the file system of folder `dir`.
fn room(dir: &Path) -> io::Result<(u64, u64)> {
    let dir = std::ffi::CString::new(dir.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `dir` is a NUL-terminated string and `stat` a zeroed statvfs,
    // for which all zeros is a valid value; both live through the call.
    let stat = unsafe {
        if libc::statvfs(dir.as_ptr(), stat.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        stat.assume_init()
    };
    #[allow(clippy::unnecessary_cast, reason = "these fields have 32 bits on some systems")]
    let (unit, free, all) = (stat.f_frsize as u64, stat.f_bavail as u64, stat.f_blocks as u64);
    Ok((free.saturating_mul(unit), all.saturating_mul(unit)))
}

/// 5 % of the file system or 1 GiB, whichever is smaller, stays free.
fn check_room(path: &Path, size: Bytes) -> Result<(), ScratchError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (free, all) =
        room(parent).map_err(path_error("cannot learn how full the disk is that holds", parent))?;
    fits(path, size, Bytes(free), Bytes(all))
}

fn fits(path: &Path, size: Bytes, free: Bytes, all: Bytes) -> Result<(), ScratchError> {
    let kept = Bytes((all.0 / 20).min(1 << 30));
    if size.0 <= free.0.saturating_sub(kept.0) {
        Ok(())
    } else {
        Err(ScratchError::Full { path: path.to_path_buf(), size, free, kept })
    }
}

/// Reserves the blocks at once, so that they lie as close together as the file
/// system can manage. Where it cannot, the writes do it.
fn preallocate(file: &File, size: Bytes) -> io::Result<()> {
    let length = libc::off_t::try_from(size.0).map_err(io::Error::other)?;
    // SAFETY: takes plain numbers and a descriptor that `file` keeps open.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
        _ => Err(error),
    }
}

/// A descriptor that passes the page cache by, where the file system has it.
fn open_direct(path: &Path) -> io::Result<File> {
    let open = |flags| OpenOptions::new().write(true).custom_flags(flags | libc::O_NOFOLLOW).open(path);
    open(libc::O_DIRECT).or_else(|_| open(0))
}

/// Writes random content from end to end; gives how far it came.
fn fill(
    path: &Path,
    size: Bytes,
    budget: Option<Duration>,
    seed: u64,
    progress: &mut dyn FnMut(Bytes, Bytes),
    stop: &Stop,
) -> Result<Bytes, ScratchError> {
    let mut file = open_direct(path).map_err(path_error("cannot open", path))?;
    let mut rng = Rng::new(seed);
    let mut memory = vec![0u8; CHUNK + UNIT as usize];
    let skip = memory.as_ptr().align_offset(UNIT as usize);
    let buffer = &mut memory[skip..skip + CHUNK];
    let begin = Instant::now();
    let mut done = 0u64;
    while done < size.0 {
        if stop.after_this_run() {
            return Err(ScratchError::Stopped { path: path.to_path_buf() });
        }
        let over = budget.is_some_and(|budget| begin.elapsed() >= budget);
        if over && done >= SMALLEST.0 {
            break;
        }
        let length = (size.0 - done).min(CHUNK as u64) as usize;
        rng.fill(&mut buffer[..length]);
        let written = match file.write_all_at(&buffer[..length], done) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                // Takes O_DIRECT when opened, and then not when written.
                file = OpenOptions::new().write(true).open(path).map_err(path_error("cannot open", path))?;
                file.write_all_at(&buffer[..length], done)
            }
            other => other,
        };
        written.map_err(path_error("cannot write", path))?;
        done += length as u64;
        progress(Bytes(done), size);
    }
    file.sync_all().map_err(path_error("cannot make durable", path))?;
    Ok(Bytes(done))
}

/// The verdict on how the file lies on the disk.
fn layout(file: &File, path: &Path, size: Bytes) -> Result<Option<Fragmentation>, ScratchError> {
    let Some(found) = extents(file).map_err(path_error("cannot learn the extents of", path))? else {
        return Ok(None);
    };
    let verdict = fragmentation(&found, size);
    verdict.map(Some).map_err(|source| ScratchError::Extents { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests;
