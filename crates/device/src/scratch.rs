//! Scratch files: files this tool makes to measure on, and knows again.
//!
//! A scratch file is preallocated and then written from end to end with
//! incompressible content, so that no extent is a hole or unwritten, which
//! would be answered without the device. A sidecar beside it (`sidecar`), a
//! header inside it behind what is measured (`header`) and stamps in everything
//! written to it mark it as ours (`ours`, `contents`); only what is ours is
//! written, filled again or removed. Its extents tell how far it is from a
//! contiguous range of the disk (`extents`). `docs/scratch.md` has it all.
//!
//! Source: `fallocate(2)`, `statvfs(3)`; content as in paper 000/001, section
//! 4.1, where a device is filled before it is measured.

mod contents;
mod extents;
mod fill;
mod header;
mod ours;
pub(crate) mod program;
pub(crate) mod sidecar;

pub use extents::{Extent, ExtentError, Fragmentation, extents, fragmentation, fragments, holes_warning};
pub(crate) use extents::{extents_unsynced, missing};
pub use fill::{fill_holes, fill_holes_behind};
pub(crate) use ours::{NotOurs, recognise};

use crate::device::Stop;
use crate::units::Bytes;
use fill::{Filler, fill};
use header::Header;
use sidecar::{FoundSidecar, Programmed, Sidecar};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The smallest scratch file a time budget leaves, in bytes.
pub const SMALLEST: Bytes = Bytes(16 << 20);
/// What a shortened file is a multiple of.
const CHUNK: usize = 1 << 20;
/// What sizes must be a multiple of: the largest sector in use, and the header.
const UNIT: u64 = header::LENGTH;

/// How much longer a scratch file is than what is measured on it: its header.
pub const HEADER: Bytes = Bytes(header::LENGTH);

/// A scratch file, complete on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Where it is.
    pub path: PathBuf,
    /// What is measured, in bytes; the file is [`HEADER`] longer.
    pub size: Bytes,
    /// What was not on the disk any more and was written again.
    pub refilled: Option<Bytes>,
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
    /// It is not ours, or used by somebody. Nothing was done to it.
    #[error("{path} stays as it is: it {why}", path = path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        why: String,
    },
    /// Asked to stop while holes were filled.
    #[error("stopped while filling the holes of {path}; the rest is filled the next time", path = path.display())]
    StoppedFilling {
        /// The file.
        path: PathBuf,
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
    if let Some(found) = reuse(path, size, stop)? {
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
    let recognised = open_to_look(path).ok().and_then(|file| recognise(path, &file).ok());
    recognised.is_some_and(|found| !found.complete)
}

/// The scratch file that is at `path`, where it is complete, ours and of
/// exactly `size`, its holes filled; `None` where nothing is there, an empty
/// file, or one of ours that does not fit or that a program wrote.
///
/// # Errors
/// [`ScratchError::Exists`] for a file that is not ours;
/// [`ScratchError::StoppedFilling`] at the first request to stop.
pub fn reuse(path: &Path, size: Bytes, stop: &Stop) -> Result<Option<Scratch>, ScratchError> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(path_error("cannot look at", path)(error)),
    };
    if !meta.is_file() {
        return Err(exists(path, "it is no regular file; name a new file"));
    }
    if meta.size() == 0 {
        return Ok(None);
    }
    let file = open_to_look(path).map_err(path_error("cannot open", path))?;
    let found = recognise(path, &file).map_err(|why| exists(path, format!("it {why}")))?;
    if !found.complete || found.size != size.0 || found.programmed != Programmed::No {
        return Ok(None);
    }
    let refilled = fill_holes(path, stop)?;
    let fragmentation = layout(&file, path, Bytes(meta.size()))?;
    Ok(Some(Scratch { path: path.to_path_buf(), size, refilled, shortened_from: None, fragmentation }))
}

/// Never waits for a pipe, never follows a link.
pub(crate) fn open_to_look(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Whether a scratch file of `size` can be made at `path`, as far as it shows beforehand.
///
/// # Errors
/// As of [`create`].
pub fn may_be_made(path: &Path, size: Bytes) -> Result<(), ScratchError> {
    // What an unfinished one takes up is free again before it is made anew.
    if path.metadata().is_ok_and(|meta| meta.size() > 0) {
        return Ok(());
    }
    check_size(size)?;
    check_room(path, Bytes(size.0.saturating_add(UNIT)))
}

fn check_size(size: Bytes) -> Result<(), ScratchError> {
    if size.0 == 0 || !size.0.is_multiple_of(UNIT) {
        let instead = Bytes(size.0.div_ceil(UNIT).max(1) * UNIT).exact();
        return Err(ScratchError::Size { size, instead });
    }
    Ok(())
}

fn exists(path: &Path, why: impl Into<String>) -> ScratchError {
    ScratchError::Exists { path: path.to_path_buf(), why: why.into() }
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
    check_size(size)?;
    let length = |size: Bytes| Bytes(size.0.saturating_add(UNIT));
    check_room(path, length(size))?;
    let guard = Partial::start(path)?;
    let meta = guard.file.metadata().map_err(path_error("cannot look at", path))?;
    let mut sidecar = Sidecar::of(&meta, size.0).map_err(path_error("cannot mark", path))?;
    sidecar::write(path, &sidecar).map_err(path_error("cannot write the sidecar of", path))?;
    // Reserved at once, before the header, or its block would lie by itself.
    preallocate(&guard.file, length(size)).map_err(path_error("cannot reserve room for", path))?;
    mark(&guard.file, &sidecar, 0).map_err(path_error("cannot mark", path))?;
    let mut filler = Filler::of(&guard.file, sidecar.key).map_err(path_error("cannot open", path))?;
    let written = fill(path, &mut filler, size, budget, progress, stop)?;
    sidecar.size = written.0;
    finish(&guard.file, &mut filler, &sidecar).map_err(path_error("cannot finish", path))?;
    let fragmentation = layout(&guard.file, path, length(written))?;
    if !matches!(sidecar::read(path), FoundSidecar::Ours(found) if found.key == sidecar.key) {
        return Err(exists(&sidecar::path_of(path), "somebody changed it; name another file"));
    }
    sidecar.complete = true;
    sidecar::write(path, &sidecar).map_err(path_error("cannot write the sidecar of", path))?;
    guard.keep();
    let shortened_from = (written != size).then_some(size);
    Ok(Scratch { path: path.to_path_buf(), size: written, refilled: None, shortened_from, fragmentation })
}

/// Writes the header at `at`, durably.
fn mark(file: &File, sidecar: &Sidecar, at: u64) -> io::Result<()> {
    let header = Header { key: sidecar.key, size: sidecar.size, created: sidecar.created };
    file.write_all_at(&header.encode(), at)?;
    file.sync_all()
}

/// Moves the header behind what was filled: the new one first, so that one is
/// there at every moment.
fn finish(file: &File, filler: &mut Filler, sidecar: &Sidecar) -> io::Result<()> {
    mark(file, sidecar, sidecar.size)?;
    file.set_len(sidecar.size + UNIT)?;
    filler.write(0, UNIT)?;
    file.sync_all()
}

/// Removes a scratch file of ours, finished or not, and its sidecar.
///
/// # Errors
/// [`ScratchError::Exists`] where another uflip uses it, [`ScratchError::Kept`]
/// where it is not ours or in use otherwise; then nothing is removed.
pub fn remove(path: &Path) -> Result<(), ScratchError> {
    remove_behind(path, &open_to_look(path).map_err(path_error("cannot open", path))?)
}

/// What state of a scratch file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    Finished,
    Any,
}

/// The sidecar of the file at `path`, open as `file`, where it is ours and
/// nobody else uses it.
fn ours_and_free(path: &Path, file: &File, which: Ours) -> Result<Sidecar, ScratchError> {
    let kept = |why: String| ScratchError::Kept { path: path.to_path_buf(), why };
    let found = recognise(path, file).map_err(|why| kept(why.to_string()))?;
    if which == Ours::Finished && !found.complete {
        return Err(kept("was made by uflip and never finished; name it again to make it anew".to_string()));
    }
    match crate::safety::used_by(path).map_err(path_error("cannot learn who uses", path))? {
        Some(who) => Err(kept(format!("is {who}; end that or name another file"))),
        None => Ok(found),
    }
}

/// Removes the file at `path` where it is the one behind `file`, ours and free.
/// Between the last look and the removal lies one system call.
fn remove_behind(path: &Path, file: &File) -> Result<(), ScratchError> {
    lock(file, path)?;
    let found = ours_and_free(path, file, Ours::Any)?;
    unlink(path, file)?;
    let sidecar = sidecar::path_of(path);
    if matches!(sidecar::read(path), FoundSidecar::Ours(now) if now.key == found.key) {
        std::fs::remove_file(&sidecar).map_err(path_error("cannot remove", &sidecar))?;
    }
    Ok(())
}

/// Removes `path`, which must still lead to the file behind `file`.
fn unlink(path: &Path, file: &File) -> Result<(), ScratchError> {
    let which = |meta: &Metadata| (meta.dev(), meta.ino());
    let open = file.metadata().map_err(path_error("cannot look at", path))?;
    let there = path.symlink_metadata().map_err(path_error("cannot look at", path))?;
    if which(&open) != which(&there) {
        let why = "is another file by now".to_string();
        return Err(ScratchError::Kept { path: path.to_path_buf(), why });
    }
    std::fs::remove_file(path).map_err(path_error("cannot remove", path))
}

/// What tells a scratch file from any other of its name and inode: the `key` of
/// its sidecar. `None` where there is no sidecar of ours, or one without a key.
pub fn identity(path: &Path) -> Option<String> {
    match sidecar::read(path) {
        FoundSidecar::Ours(found) => Some(format!("{:#018x}", found.key.0)),
        _ => None,
    }
}

/// Whether a program wrote what is in the scratch file at `path`, or began to: it may
/// be all there is of somebody's data.
pub fn is_programmed(path: &Path) -> bool {
    matches!(sidecar::read(path), FoundSidecar::Ours(found) if found.programmed != Programmed::No)
}

/// Keeps other uflips away while `file` is open, and notices one that measures
/// on it or makes it. File systems without locks are taken as they are.
fn lock(file: &File, path: &Path) -> Result<(), ScratchError> {
    if matches!(crate::lock::hold(file), Ok(false)) {
        return Err(used_by_another(path));
    }
    Ok(())
}

/// Keeps every other uflip from writing to the scratch file at `path` while what is given
/// back stays open. File systems without locks are taken as they are.
///
/// # Errors
/// [`ScratchError::Exists`] where another uflip writes to it, [`ScratchError::Path`].
pub fn lock_to_read(path: &Path) -> Result<File, ScratchError> {
    let file = open_to_look(path).map_err(path_error("cannot open", path))?;
    if matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)) {
        return Err(used_by_another(path));
    }
    Ok(file)
}

fn used_by_another(path: &Path) -> ScratchError {
    exists(path, "another uflip uses it; wait for it or name another file")
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
        if sidecar.symlink_metadata().is_ok() && sidecar::read(path) == FoundSidecar::Nothing {
            let why = "it is where the sidecar would be and is none of uflip's; name another file";
            return Err(exists(&sidecar, why));
        }
        if path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.size() == 0) {
            let empty = open_to_look(path).map_err(path_error("cannot open", path))?;
            lock(&empty, path)?;
            if empty.metadata().is_ok_and(|meta| meta.is_file() && meta.size() == 0) {
                unlink(path, &empty)?;
            }
        }
        let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        match made {
            Ok(file) => {
                let partial = Partial { path: path.to_path_buf(), file, kept: false };
                lock(&partial.file, path)?;
                Ok(partial)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists(path, "uflip did not make it, so it stays as it is; name a new file"))
            }
            Err(error) => Err(path_error("cannot make", path)(error)),
        }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Nobody is left to tell; what stays is known as unfinished.
        let removed = remove_behind(&self.path, &self.file);
        if removed.is_err() && self.file.metadata().is_ok_and(|meta| meta.size() == 0) {
            let _ = unlink(&self.path, &self.file);
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
    if stat.f_flag & libc::ST_RDONLY != 0 {
        return Err(io::Error::from_raw_os_error(libc::EROFS));
    }
    Ok((free.saturating_mul(unit), all.saturating_mul(unit)))
}

/// 5 % of the file system or 1 GiB, whichever is smaller, stays free.
fn check_room(path: &Path, size: Bytes) -> Result<(), ScratchError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (free, all) = room(parent).map_err(path_error("cannot make a scratch file in", parent))?;
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
