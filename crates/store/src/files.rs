//! Writing files so that a crash leaves the old or the new, never a half, and
//! so that nothing that somebody put in the way is followed or replaced.
//!
//! Method: new contents go to a temporary file beside the target, which is
//! synced and renamed over it, and then the folder is synced. A temporary file
//! is made with `O_EXCL` and `O_NOFOLLOW` under a name that nobody can foresee,
//! and removed again where anything fails.
//!
//! Limits: a file is replaced by one of the same rights and, where the system
//! allows it, the same owner; further names (hard links) keep the old contents.

use crate::checksum::seal;
use crate::error::{StoreError, path_error};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use uflip_device::Bytes;

/// Bytes of disk that one IO takes at most in practice, for messages.
const BYTES_PER_IO: u64 = 10;
/// Rights of a new file, less what the user's umask takes away.
const NEW_FILE: u32 = 0o666;
/// Bytes of a JSON file of a results folder at most: far more than any has.
const LONGEST_JSON: u64 = 256 << 20;
/// Bytes of a name that go into that of its temporary file.
const LONGEST_STEM: usize = 200;

/// Syncs a folder: makes the names in it durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    synced.map_err(path_error("cannot sync the folder", dir))
}

/// What a file of this name is called until it is whole: another name each
/// time, drawn from the system's randomness.
pub(crate) fn temporary_name(name: &str) -> String {
    let end = (0..=LONGEST_STEM.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let stem = &name[..end];
    // Keyed anew by the system for each process, and by a count within it.
    format!(".{stem}.{:016x}.tmp", RandomState::new().hash_one(std::process::id()))
}

/// 32 random hexadecimal digits.
pub(crate) fn random_name() -> String {
    let half = |of: u32| RandomState::new().hash_one((std::process::id(), of, uflip_device::unix_now()));
    format!("{:016x}{:016x}", half(0), half(1))
}

/// True for a temporary name of the file called `of`, also as versions before
/// this one made it, without a random part.
pub(crate) fn is_temporary_of(of: &str, name: &str) -> bool {
    let rest = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(of));
    let Some(middle) = rest.and_then(|rest| rest.strip_suffix(".tmp")) else { return false };
    let hex = |part: &str| part.len() == 16 && part.bytes().all(|b| b.is_ascii_hexdigit());
    middle.is_empty() || middle.strip_prefix('.').is_some_and(hex)
}

/// A new file of this name and no other: an error where there is anything, a
/// link included.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().write(true).create_new(true).mode(mode).custom_flags(flags).open(path)
}

/// Opens a file in a results folder for reading: a file, or a link to one. A
/// FIFO or a device would be waited for or read without end; it is not opened,
/// and an error of kind `InvalidData`.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let regular = |meta: &Metadata| {
        let text = || format!("it is no regular file but {}", kind_of(meta));
        if meta.is_file() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, text())) }
    };
    // Opening alone may set something off with a device or a FIFO.
    regular(&path.metadata()?)?;
    // Against whoever exchanges it between the two calls.
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// The error of [`open_regular`] as one of the store: what is no file is damage.
pub(crate) fn unreadable(path: &Path, error: io::Error, remedy: &str) -> StoreError {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            StoreError::Damaged { path: path.to_path_buf(), detail: format!("{error}; {remedy}") }
        }
        _ => path_error("cannot read", path)(error),
    }
}

/// The contents of a file of a results folder.
///
/// # Errors
/// What the system says; of kind `InvalidData` where it is no regular file.
pub fn read_inside(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// [`read_inside`] of a JSON file, which is never as long as to fill the memory.
///
/// # Errors
/// As [`read_inside`], and of kind `InvalidData` where it is too long.
pub fn read_json_bytes(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, LONGEST_JSON)
}

fn read_at_most(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let text = format!("it is longer than {}, which no such file is", Bytes(longest));
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

/// Opens a file in a results folder for writing: the file itself, never what a
/// link leads to, and nothing but a file.
pub(crate) fn open_inside(path: &Path, options: &mut OpenOptions) -> Result<File, StoreError> {
    if let Ok(meta) = path.symlink_metadata()
        && !meta.is_file()
    {
        return Err(StoreError::Refused(format!(
            "{} is {} and not a file of uflip's; remove it or use another folder",
            path.display(),
            kind_of(&meta)
        )));
    }
    // Against whoever exchanges it between the two calls.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    options.custom_flags(flags).open(path).map_err(path_error("cannot open", path))
}

/// What stands there, in words.
pub(crate) fn kind_of(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a folder",
        () if kind.is_block_device() => "a block device",
        () if kind.is_char_device() => "a character device",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a file",
    }
}

/// A file in the making, removed again unless [`Temporary::put`] in its place.
pub(crate) struct Temporary {
    /// Open for writing.
    pub(crate) file: File,
    path: PathBuf,
}

impl Temporary {
    /// Beside `target`, to replace the file `old` where there is one.
    pub(crate) fn beside(target: &Path, old: Option<&Metadata>) -> io::Result<Temporary> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mode = old.map_or(NEW_FILE, |old| old.permissions().mode() & 0o777);
        let mut tries = 0..16;
        let (file, path) = loop {
            let path = target.with_file_name(temporary_name(&name));
            match create_new(&path, mode) {
                Ok(file) => break (file, path),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries.next().is_some() => {}
                Err(e) => return Err(e),
            }
        };
        let made = Temporary { file, path };
        if let Some(old) = old {
            made.take_after(old, mode)?;
        }
        Ok(made)
    }

    /// The rights of the file it replaces, whatever the umask, and its owner
    /// where the system lets us.
    fn take_after(&self, old: &Metadata, mode: u32) -> io::Result<()> {
        let new = self.file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only root may give files away; the contents matter more.
            let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
        }
        self.file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    /// Makes it durable and gives it its name.
    pub(crate) fn put(self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Not there any more where it was put in its place.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What there is under the name of a file of a results folder.
///
/// # Errors
/// [`StoreError::Refused`] for a folder, a FIFO and so on, which are never replaced.
pub(crate) fn may_be_replaced(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match path.symlink_metadata().ok() {
        Some(old) if !old.is_file() && !old.is_symlink() => {
            let (shown, kind) = (path.display(), kind_of(&old));
            Err(StoreError::Refused(format!(
                "{shown} is {kind}, which uflip does not replace; remove it or use another folder"
            )))
        }
        old => Ok(old),
    }
}

/// Makes `bytes` the contents of the file `path` of a results folder, durably
/// and at once. A link of that name is replaced and not followed; anything else
/// but a file stays and is an error.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let old = may_be_replaced(path)?.filter(Metadata::is_file);
    let written = Temporary::beside(path, old.as_ref()).and_then(|mut temporary| {
        temporary.file.write_all(bytes)?;
        temporary.put(path)
    });
    written.map_err(path_error("cannot write", path))?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Makes `value`, as JSON for people to read and with its own checksum, the
/// contents of `path`.
///
/// # Errors
/// [`StoreError::Path`] where it cannot be written; the old contents stay.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec_pretty(value).map_err(|e| StoreError::Output(e.into()))?;
    write_whole(path, &seal(bytes))
}

/// Why a line was not appended.
pub(crate) struct AppendError {
    pub(crate) cause: StoreError,
    /// True where the file may not be as it was: nothing more may be appended.
    pub(crate) torn: bool,
}

/// Appends a line to a file of `length` bytes, or leaves the file as it was.
pub(crate) fn append(
    file: &mut File,
    path: &Path,
    length: u64,
    line: &[u8],
    sync: bool,
) -> Result<(), AppendError> {
    let written = file.write_all(line);
    let (result, sync_failed) = match written {
        Ok(()) if sync => {
            let synced = file.sync_data();
            let failed = synced.is_err();
            (synced, failed)
        }
        other => (other, false),
    };
    result.map_err(|error| {
        // After a failed sync nobody knows what is on the disk.
        let torn = file.set_len(length).is_err() || sync_failed;
        AppendError { cause: path_error("cannot append to", path)(error), torn }
    })
}

/// Where `error` is a full disk: how much room the run needs, as the end of a
/// message.
pub(crate) fn no_room(error: &StoreError, dir: &Path, ios: u64) -> Option<String> {
    let StoreError::Path { source, .. } = error else { return None };
    if !matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
        return None;
    }
    let needed = Bytes(ios * BYTES_PER_IO + (64 << 10));
    let free = rustix::fs::statvfs(dir).map(|s| Bytes(s.f_bavail.saturating_mul(s.f_frsize))).ok()?;
    let missing = Bytes(needed.0.saturating_sub(free.0).max(4 << 10));
    Some(format!(
        " (this run's {ios} IOs take up to {needed}, {free} is free: at least {missing} is missing)"
    ))
}
