//! Leave to write for a program, which writes what it likes.
//!
//! Same permit, same looks, same claim as for a measurement. What differs is what
//! stays behind: a scratch file says that a program wrote it, before the first
//! write and after the last (`crate::scratch`, `docs/scratch.md`). On a block device
//! there is no place that is not the program's: nothing is left there, and the next
//! write to it takes consent that names what is on it, as ever (`docs/contents.md`).

use super::permit::WritePermit;
use super::{SafetyError, TargetKind, path_error};
use crate::scratch::program;
use crate::stamp::Key;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The claim on what a program writes. Keep it until nothing is under way any
/// more; then [`Programming::finish`] it. Dropped, it does the same without a word.
#[derive(Debug)]
pub struct Programming {
    /// The permit's own claims, on what lies beneath.
    permit: WritePermit,
    file: File,
    /// Of a scratch file that is to be marked at the end.
    key: Option<Key>,
}

impl WritePermit {
    /// Opens the target for a program; `flags` as in [`WritePermit::open`].
    ///
    /// # Errors
    /// As there; nothing was written then. Also where there is no scratch file yet.
    pub fn open_for_program(&self, flags: i32) -> Result<Programming, SafetyError> {
        let key = match self.kind() {
            TargetKind::Block => None,
            TargetKind::Scratch => Some(self.key()),
            _ => {
                let why = "programs write block devices and finished scratch files".to_string();
                return Err(SafetyError::NotATarget { path: self.path().to_path_buf(), why });
            }
        };
        let file = self.open(flags)?;
        if let Some(key) = key {
            program::begin(self.path(), &file, key)
                .map_err(path_error("cannot mark as written by a program", self.path()))?;
        }
        Ok(Programming { permit: self.clone(), file, key })
    }
}

impl Programming {
    /// Where it writes.
    pub fn path(&self) -> &Path {
        self.permit.path()
    }

    /// A descriptor for [`crate::blocks::RealBlocks`]; the claim stays here.
    ///
    /// # Errors
    /// Where the system has none.
    pub fn descriptor(&self) -> Result<File, SafetyError> {
        self.file.try_clone().map_err(path_error("cannot open again", self.path()))
    }

    /// Notes what the program left, so that it stays known as ours.
    ///
    /// # Errors
    /// Where that cannot be read or noted: then the file is nobody's from now on and
    /// is refused.
    pub fn finish(mut self) -> Result<(), SafetyError> {
        let path: PathBuf = self.path().to_path_buf();
        self.note().map_err(path_error("cannot note what the program left in", &path))
    }

    fn note(&mut self) -> std::io::Result<()> {
        self.key.take().map_or(Ok(()), |key| program::end(self.permit.path(), &self.file, key))
    }
}

impl Drop for Programming {
    fn drop(&mut self) {
        // Nobody is left to tell; a file that is not noted is refused.
        let _ = self.note();
    }
}
