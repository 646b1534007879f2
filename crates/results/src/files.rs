//! Writing files so that a crash leaves the old or the new, never a half.
//!
//! Method: new contents go to a temporary file beside the target, which is
//! synced and renamed over it, and then the folder is synced.

use crate::checksum::seal;
use crate::error::{StoreError, path_error};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use uflip_device::Bytes;

/// Bytes of disk that one IO takes at most in practice, for messages.
const BYTES_PER_IO: u64 = 10;

/// Syncs a folder: makes the names in it durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    synced.map_err(path_error("cannot sync the folder", dir))
}

/// What a file of this name is called until it is whole.
pub(crate) fn temporary_name(name: &str) -> String {
    format!(".{name}.tmp")
}

/// Makes `bytes` the contents of `path`, durably and at once.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(temporary_name(&name));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, path)) {
        let _ = std::fs::remove_file(&temporary);
        return Err(path_error("cannot write", path)(error));
    }
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
