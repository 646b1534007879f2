//! The logical block that focal factors are told by, and where it comes from.
//!
//! How: what the user gave goes first; then what `uflip logical-block -o DIR`
//! left in the results folder; then what the folder's profile was made with; then
//! 4 MiB, assumed. Every answer that depends on it carries the source.
//! Units: bytes. Source: paper 002, section 4.1; two of its three SSDs have 4 MB,
//! one 8 MB, so what is assumed may be wrong by a factor.

use crate::checksum::{Seal, read_sealed};
use crate::error::StoreError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use uflip_device::Bytes;

/// What `uflip logical-block` leaves in a folder.
pub const FILE: &str = "logical-block.json";
/// The logical block where none is known.
pub const ASSUMED: Bytes = Bytes(4 << 20);

/// Where a logical block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockSource {
    /// Typed, or in the job file.
    Given,
    /// By the procedure of section 4.1, in the same folder.
    Measured,
    /// The folder's profile was made with it.
    Profile,
    /// Nothing is known.
    Assumed,
}

/// A logical block and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalBlock {
    /// Its size.
    pub bytes: Bytes,
    /// Where that comes from.
    pub source: BlockSource,
}

impl fmt::Display for LogicalBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            BlockSource::Given => "given",
            BlockSource::Measured => "measured",
            BlockSource::Profile => "of the profile",
            BlockSource::Assumed => "assumed; uflip logical-block measures it",
        };
        write!(f, "{} ({source})", self.bytes)
    }
}

/// The part of [`FILE`] that is needed here.
#[derive(Deserialize)]
struct Found {
    logical_block_bytes: Option<Bytes>,
}

/// What was measured in `dir`; `None` where nothing was, or no size was equal.
///
/// # Errors
/// [`StoreError`] where the file is there and cannot be read, or is not as it was
/// written.
pub fn measured(dir: &Path) -> Result<Option<Bytes>, StoreError> {
    const REMEDY: &str =
        "what was searched for is left out; make it again with: uflip logical-block TARGET -o DIR --resume";
    let path = dir.join(FILE);
    let Some(sealed) = read_sealed(&path, REMEDY)? else { return Ok(None) };
    let damaged = |detail| StoreError::Damaged { path: path.clone(), detail };
    if sealed.seal == Seal::Changed {
        return Err(damaged(format!("its checksum is another; {REMEDY}")));
    }
    let found: Found = serde_json::from_value(sealed.value).map_err(|e| damaged(format!("{e}; {REMEDY}")))?;
    Ok(found.logical_block_bytes.filter(|b| b.0 > 0))
}

/// What the profile in `dir` was made with; `None` where there is none that says
/// it, or where it is not as it was written.
fn of_profile(dir: &Path) -> Option<Bytes> {
    #[derive(Deserialize)]
    struct Part {
        cost_models: Found,
    }
    let sealed = read_sealed(&dir.join("profile.json"), "").ok()??;
    let whole = Some(sealed.value).filter(|_| sealed.seal == Seal::Intact)?;
    let part: Part = serde_json::from_value(whole).ok()?;
    part.cost_models.logical_block_bytes.filter(|b| b.0 > 0)
}

/// The logical block to work with on the results in `dir`.
///
/// # Errors
/// [`StoreError`] where a file that would tell it cannot be read.
pub fn find(dir: &Path, given: Option<Bytes>) -> Result<LogicalBlock, StoreError> {
    if let Some(bytes) = given {
        return Ok(LogicalBlock { bytes, source: BlockSource::Given });
    }
    if let Some(bytes) = measured(dir)? {
        return Ok(LogicalBlock { bytes, source: BlockSource::Measured });
    }
    Ok(match of_profile(dir) {
        Some(bytes) => LogicalBlock { bytes, source: BlockSource::Profile },
        None => LogicalBlock { bytes: ASSUMED, source: BlockSource::Assumed },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_goes_before_what_is_measured_and_that_before_4_mib() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let of = |given| find(dir, given).map(|b| (b.bytes.0, b.source));
        assert_eq!(of(None).unwrap(), (4 << 20, BlockSource::Assumed));
        std::fs::write(dir.join(FILE), r#"{"logical_block_bytes": 8388608, "target": "x"}"#).unwrap();
        assert_eq!(of(None).unwrap(), (8 << 20, BlockSource::Measured));
        assert_eq!(of(Some(Bytes(1 << 20))).unwrap(), (1 << 20, BlockSource::Given));
        assert!(find(dir, None).unwrap().to_string().contains("measured"));
        std::fs::write(dir.join(FILE), r#"{"logical_block_bytes": null}"#).unwrap();
        assert_eq!(of(None).unwrap().1, BlockSource::Assumed, "no size was equal");
        std::fs::write(dir.join(FILE), "{").unwrap();
        assert!(of(None).is_err(), "damaged, which is not the same as not measured");
    }
}
