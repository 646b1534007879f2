//! A results folder that is ours alone, from before anything is made until the
//! last line is written.
//!
//! Method: `flock` on `.lock`, which the kernel lets go of with its holder, so
//! that one that was killed leaves nothing that must be cleaned up. The lock
//! is taken before it is looked whether the folder is free, and the file that
//! was locked must still be the one of that name: whoever gives a folder up
//! again removes the file while it holds the lock.
//!
//! Limits: file systems without locks (some network ones) refuse to be claimed.

use crate::error::{StoreError, path_error};
use crate::files::{create_new, open_inside};
use crate::store::Store;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the file that is locked.
pub(crate) const LOCK: &str = ".lock";

/// Times that a folder may vanish under our hands.
const VANISHED: u32 = 100;

/// A folder held against every other uflip. Dropped before a store was made
/// there, it leaves things as they were found.
pub struct Claim {
    dir: PathBuf,
    lock: Option<File>,
    made_dir: bool,
    made_lock: bool,
}

impl Claim {
    /// Claims `dir` for a new measurement; makes it where it is not there.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where another uflip is writing there, or it holds
    /// a measurement or anybody's files; [`StoreError::Path`].
    pub fn new(dir: &Path) -> Result<Claim, StoreError> {
        for _ in 0..VANISHED {
            let made_dir = make_dir(dir)?;
            if let Some(claim) = Claim::free(dir, made_dir)? {
                return Ok(claim);
            }
        }
        Err(busy(dir))
    }

    /// Claims the first of `names` at which nothing is: folders of our own naming.
    ///
    /// # Errors
    /// As [`Claim::new`].
    pub fn first_free(names: impl Iterator<Item = PathBuf>) -> Result<Claim, StoreError> {
        let mut refused = StoreError::Refused("there is no free name for a folder; name one with -o".into());
        for dir in names {
            match std::fs::create_dir(&dir) {
                Ok(()) => match Claim::free(&dir, true) {
                    Ok(Some(claim)) => return Ok(claim),
                    Ok(None) => {}
                    Err(error) => refused = error,
                },
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(path_error("cannot create the folder", &dir)(e)),
            }
        }
        Err(refused)
    }

    /// Claims the folder of a measurement that is to be gone on with.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where there is none, or another uflip is writing
    /// there.
    pub fn existing(dir: &Path) -> Result<Claim, StoreError> {
        if !dir.join(crate::store::MANIFEST).exists() {
            return Err(StoreError::Refused(format!(
                "{} holds no measurement to resume; start one without --resume",
                dir.display()
            )));
        }
        for _ in 0..VANISHED {
            if let Some((lock, made_lock)) = lock(dir)? {
                return Ok(Claim { dir: dir.to_path_buf(), lock: Some(lock), made_dir: false, made_lock });
            }
        }
        Err(busy(dir))
    }

    /// None where the folder or its lock vanished meanwhile.
    fn free(dir: &Path, made_dir: bool) -> Result<Option<Claim>, StoreError> {
        if dir.join(LOCK).symlink_metadata().is_err() {
            // Nobody begins here: nothing is to be made beside anybody's files.
            match Store::refuse_unless_free(dir) {
                // Unless somebody began in this very moment.
                Err(StoreError::Refused(_)) if dir.join(LOCK).symlink_metadata().is_ok() => {}
                Err(StoreError::Path { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                other => other?,
            }
        }
        let Some((lock, made_lock)) = lock(dir)? else { return Ok(None) };
        let claim = Claim { dir: dir.to_path_buf(), lock: Some(lock), made_dir, made_lock };
        Store::refuse_unless_free(dir)?;
        Ok(Some(claim))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Hands the lock over to a store, which is there from now on.
    pub(crate) fn into_lock(mut self) -> Result<File, StoreError> {
        self.lock.take().ok_or_else(|| busy(&self.dir))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        // Only what stands alone: what a cut-off making leaves is told by its lock.
        let names = std::fs::read_dir(&self.dir).map(|entries| entries.flatten().count());
        if self.made_lock && names.is_ok_and(|n| n == 1) {
            // Best effort, both of them: an empty folder does no harm.
            let _ = std::fs::remove_file(self.dir.join(LOCK));
            if self.made_dir {
                let _ = std::fs::remove_dir(&self.dir);
            }
        }
        let _ = lock.unlock();
    }
}

fn busy(dir: &Path) -> StoreError {
    StoreError::Refused(format!(
        "another uflip is writing to {}; wait until it ends, and go on with --resume if need be, or choose another \
         folder with -o",
        dir.display()
    ))
}

/// True where it was not there.
fn make_dir(dir: &Path) -> Result<bool, StoreError> {
    let failed = |e| path_error("cannot create the folder", dir)(e);
    match std::fs::create_dir(dir) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(dir).map_err(failed)?;
            Ok(true)
        }
        Err(e) => Err(failed(e)),
    }
}

/// The lock of `dir`, and whether its file had to be made; None where the folder
/// or the file vanished meanwhile.
fn lock(dir: &Path) -> Result<Option<(File, bool)>, StoreError> {
    let path = dir.join(LOCK);
    let (file, made) = match create_new(&path, 0o666) {
        Ok(file) => (file, true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            match open_inside(&path, OpenOptions::new().write(true)) {
                Ok(file) => (file, false),
                Err(StoreError::Path { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(path_error("cannot create", &path)(e)),
    };
    hold(&file, dir, &path)?;
    let same = path.symlink_metadata().is_ok_and(|named| {
        file.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (named.dev(), named.ino()))
    });
    Ok(same.then_some((file, made)))
}

fn hold(file: &File, dir: &Path, path: &Path) -> Result<(), StoreError> {
    let held = uflip_device::lock::hold(file).map_err(path_error("cannot lock", path))?;
    if held { Ok(()) } else { Err(busy(dir)) }
}
