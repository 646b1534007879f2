//! A folder for as long as it is needed, that nobody else can look into or put
//! anything into: in the system's folder for such things, under a name drawn
//! from the system's randomness, made and never taken over.

use anyhow::Context;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Removed with what is in it when dropped.
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// A new one; its name begins with `prefix`.
    ///
    /// # Errors
    /// Where none can be made.
    pub fn new(prefix: &str) -> anyhow::Result<PrivateFolder> {
        let random = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("{prefix}-{random:016x}"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create the folder {}", path.display()))?;
        Ok(PrivateFolder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What stays behind is in the system's folder for such files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
