//! What can go wrong between a measurement and its files, said with the path,
//! the cause and what to do.

use std::path::{Path, PathBuf};
use uflip_measure::run::SinkError;

/// A result could not be kept, read or exported.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system said no.
    #[error("{what} {path}: {source}{hint}", path = path.display())]
    Path {
        /// What was tried, as the start of a sentence ("cannot write").
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
        /// What to do about it, or nothing; starts with "; ".
        hint: String,
    },
    /// A file is not what it should be.
    #[error("{path} is damaged: {detail}", path = path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        detail: String,
    },
    /// What was to be exported could not be handed over.
    #[error("cannot write the export: {0}")]
    Output(#[source] std::io::Error),
    /// The request makes no sense for this folder; says what to do instead.
    #[error("{0}")]
    Refused(String),
}

impl From<StoreError> for SinkError {
    fn from(error: StoreError) -> SinkError {
        SinkError(error.to_string())
    }
}

/// Makes a [`StoreError::Path`] of an error, to be used with `map_err`.
pub fn path_error(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| {
        let hint = hint(&source).to_string();
        StoreError::Path { what, path, source, hint }
    }
}

/// What an error of the file system usually calls for.
fn hint(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind as K;
    match error.kind() {
        K::StorageFull | K::QuotaExceeded => "; make room there",
        K::ReadOnlyFilesystem | K::PermissionDenied => "; choose a folder you may write to with -o",
        K::FileTooLarge => "; this process may make no larger files (ulimit -f)",
        K::NotFound => "; is the path right?",
        _ => "",
    }
}
