//! `state.json`: how far the last enforcement of a state is.
//!
//! How: written as a whole every half second while it lasts ([`keep`]), read by what
//! goes on with it ([`read`]). Format: `docs/format.md`.

use crate::checksum::{Seal, read_sealed};
use crate::error::StoreError;
use crate::files::write_json;
use serde::Serialize;
use std::path::Path;
use uflip_measure::state::reached::Reached;

/// The file in the results folder.
pub const FILE: &str = "state.json";
/// What to do about a file of another shape.
const REMEDY: &str = "restore it from a copy, or remove it: --resume then enforces the state from its start";

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateFile {
    /// There is none: nothing was enforced.
    Absent,
    /// It is not as it was written, or another folder's, so that nothing of it holds; why.
    Damaged(String),
    /// How far the last enforcement is.
    Whole(Reached),
}

/// How far it is, with the folder that it was done for.
#[derive(Serialize)]
struct OfFolder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'a str>,
    #[serde(flatten)]
    reached: &'a Reached,
}

/// What the results in `dir` say, whose manifest calls it `folder`. The file of another
/// folder tells nothing of this one's device; files of earlier versions do not say whose
/// they are.
///
/// # Errors
/// [`StoreError::Damaged`] where the file is of another shape than it has,
/// [`StoreError::Path`] where it cannot be read.
pub fn read(dir: &Path, folder: Option<&str>) -> Result<StateFile, StoreError> {
    let path = dir.join(FILE);
    let of = |what: String| StateFile::Damaged(format!("{}: {what}", path.display()));
    match read_sealed(&path, REMEDY) {
        Ok(None) => Ok(StateFile::Absent),
        Ok(Some(file)) if file.seal == Seal::Changed => Ok(of("its checksum is another".into())),
        Ok(Some(file)) if file.is_anothers(folder) => Ok(of("it is another folder's".into())),
        Ok(Some(file)) => Ok(file.told(&path, "state", REMEDY)?.map_or_else(of, StateFile::Whole)),
        Err(StoreError::Damaged { detail, .. }) => Ok(of(detail)),
        Err(error) => Err(error),
    }
}

/// Forgets it: what was enforced is of a device that is gone on with no more.
///
/// # Errors
/// [`StoreError::Path`] where it cannot be removed.
pub fn forget(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::error::path_error("cannot remove", &path)(error))
        }
        _ => Ok(()),
    }
}

/// Keeps how far it is in `dir`, whose manifest calls it `folder`.
///
/// # Errors
/// [`StoreError::Path`]; what was kept before is then still there.
pub fn keep(dir: &Path, folder: Option<&str>, reached: &Reached) -> Result<(), StoreError> {
    write_json(&dir.join(FILE), &OfFolder { folder, reached })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_measure::{ResetRequest, State};

    const OWN: Option<&str> = Some("a1");

    #[test]
    fn a_state_is_read_as_it_was_written_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, file) = (dir.path(), dir.path().join(FILE));
        assert_eq!(read(dir, OWN).unwrap(), StateFile::Absent);
        let half = Reached::begun(ResetRequest { state: State::Random, seed: 7 }, 3);
        forget(dir).unwrap();
        keep(dir, OWN, &half).unwrap();
        forget(dir).unwrap();
        assert_eq!(read(dir, OWN).unwrap(), StateFile::Absent);
        keep(dir, OWN, &half).unwrap();
        assert_eq!(read(dir, OWN).unwrap(), StateFile::Whole(half.clone()));
        let StateFile::Damaged(why) = read(dir, Some("b2")).unwrap() else { panic!("taken for its own") };
        assert!(why.ends_with("state.json: it is another folder's"), "{why}");
        assert_eq!(read(dir, None).unwrap(), StateFile::Whole(half.clone()), "a manifest of before");
        let of_before = tempfile::tempdir().unwrap();
        keep(of_before.path(), None, &half).unwrap();
        assert_eq!(read(of_before.path(), OWN).unwrap(), StateFile::Whole(half), "a state of before");
        let text = std::fs::read_to_string(&file).unwrap();
        for damaged in [
            text.replacen("\"seed\": 7", "\"seed\": 9", 1),
            text.replacen("\"ios\"", "\"iox\"", 1),
            "{".into(),
        ] {
            assert_ne!(damaged, text);
            std::fs::write(&file, damaged).unwrap();
            let StateFile::Damaged(why) = read(dir, OWN).unwrap() else { panic!("taken for whole") };
            assert!(why.contains(FILE), "{why}");
        }
        for other in ["{}", "[]", r#"{"state": "random", "seed": 7, "ios": -1}"#] {
            std::fs::write(&file, other).unwrap();
            let told = read(dir, OWN).unwrap_err().to_string();
            assert!(
                told.contains("state.json") && told.contains("it is no state") && told.contains("remove it"),
                "{told}"
            );
        }
    }
}
