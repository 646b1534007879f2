//! What a store says: its manifest, its plan and one row a run, as plain data.
//!
//! Formats: `docs/format.md`. Reading never changes a store and does not mind a
//! run in progress: a last line without its newline is not there yet.

use crate::error::{StoreError, path_error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use uflip_measure::run::{RunOutcome, RunSpec, RunStats};

/// The version of the store's format that this code writes and reads.
pub const FORMAT: u32 = 1;

/// `manifest.json`: under what circumstances a store was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The store's format version: [`FORMAT`].
    pub format: u32,
    /// The program: `uflip`.
    pub tool: String,
    /// Its version.
    pub tool_version: String,
    /// When the store was made, UTC, as `2026-11-21T19:04:08Z`.
    pub created: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The target's identity, as its device tells it.
    pub target: Value,
    /// The machine that measured.
    pub host: Value,
    /// What measuring itself costs: clock, loop; null where not measured.
    pub overhead: Value,
    /// The options in force.
    pub options: Value,
}

impl Manifest {
    /// A manifest of this format made now, with null for what the caller has
    /// not filled in.
    pub fn new(tool_version: &str, seed: u64) -> Manifest {
        Manifest {
            format: FORMAT,
            tool: "uflip".into(),
            tool_version: tool_version.into(),
            created: utc(uflip_device::unix_now() / 1_000_000_000),
            seed,
            target: Value::Null,
            host: Value::Null,
            overhead: Value::Null,
            options: Value::Null,
        }
    }
}

/// Seconds since 1970 as `2026-11-21T19:04:08Z`.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`.
fn utc(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Where a run's records are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFile {
    /// Relative to the store: `ios/run-000123.parquet`.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
}

impl RecordFile {
    /// True where the file under `dir` has its length and its closing magic.
    pub(crate) fn is_whole(&self, dir: &Path) -> bool {
        let mut magic = [0; 4];
        let tail = File::open(dir.join(&self.file)).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::End(-4))?;
            file.read_exact(&mut magic)?;
            Ok(length)
        });
        tail.is_ok_and(|length| length == self.bytes && magic == *b"PAR1")
    }
}

/// One line of `runs.ndjson`: a run that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// What was run; its fields are the line's own.
    #[serde(flatten)]
    pub spec: RunSpec,
    /// How it went.
    pub outcome: RunOutcome,
    /// Its response times summed up.
    pub stats: RunStats,
    /// Where every IO of it is.
    pub records: RecordFile,
    /// How often a timed loop had to wait for memory for its records; anything
    /// but 0 means that recording disturbed the run. `None` in virtual time,
    /// which nothing disturbs.
    pub stalls: Option<u64>,
}

/// A store as read.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreContents {
    /// The folder.
    pub dir: PathBuf,
    /// Under what circumstances it was measured.
    pub manifest: Manifest,
    /// What was to be run.
    pub plan: Value,
    /// What the automatic method found; None where it was not used.
    pub calibration: Option<Value>,
    /// What was run, in the order of finishing.
    pub runs: Vec<RunRow>,
}

impl StoreContents {
    /// Reads the store in `dir`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where there is none or it is of another format,
    /// [`StoreError::Damaged`] where a file cannot be understood,
    /// [`StoreError::Path`] where one cannot be read.
    pub fn read(dir: &Path) -> Result<StoreContents, StoreError> {
        let manifest_path = dir.join("manifest.json");
        if !manifest_path.exists() {
            let text =
                format!("{} holds no measurement (no manifest.json); is the path right?", dir.display());
            return Err(StoreError::Refused(text));
        }
        let value: Value = read_json(&manifest_path)?;
        let format = value.get("format").and_then(Value::as_u64);
        if format != Some(u64::from(FORMAT)) {
            let format = format.map_or("unknown".into(), |f| f.to_string());
            return Err(StoreError::Refused(format!(
                "{} is of format {format}, this uflip reads format {FORMAT}; use the version that made it",
                dir.display()
            )));
        }
        let manifest = serde_json::from_value(value).map_err(|e| damaged(&manifest_path, &e))?;
        let plan = read_json(&dir.join("plan.json"))?;
        let calibration_path = dir.join("calibration.json");
        let calibration = calibration_path.exists().then(|| read_json(&calibration_path)).transpose()?;
        let runs_path = dir.join("runs.ndjson");
        let bytes = std::fs::read(&runs_path).map_err(path_error("cannot read", &runs_path))?;
        let runs = parse_rows(&runs_path, &bytes)?.rows;
        Ok(StoreContents { dir: dir.to_path_buf(), manifest, plan, calibration, runs })
    }
}

fn damaged(path: &Path, error: &serde_json::Error) -> StoreError {
    StoreError::Damaged { path: path.to_path_buf(), detail: format!("{error}; restore it from a copy") }
}

fn read_json(path: &Path) -> Result<Value, StoreError> {
    let bytes = std::fs::read(path).map_err(path_error("cannot read", path))?;
    serde_json::from_slice(&bytes).map_err(|e| damaged(path, &e))
}

/// The rows of `runs.ndjson` and the length of its whole part in bytes.
pub(crate) struct ParsedRows {
    pub(crate) rows: Vec<RunRow>,
    pub(crate) whole: usize,
}

/// Parses `runs.ndjson`. What follows the last newline is torn; so is a last
/// line that is no row, as a power cut may leave it.
///
/// # Errors
/// [`StoreError::Damaged`] with the line's number where an earlier line is no
/// row, or a run is there twice.
pub(crate) fn parse_rows(path: &Path, bytes: &[u8]) -> Result<ParsedRows, StoreError> {
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let (mut rows, mut whole, mut ids) = (Vec::<RunRow>::new(), 0, HashSet::new());
    for (at, line) in bytes[..end].split_inclusive(|b| *b == b'\n').enumerate() {
        let wrong = |what: String| StoreError::Damaged {
            path: path.to_path_buf(),
            detail: format!(
                "line {}: {what}; remove the line, then use --resume to measure its run again",
                at + 1
            ),
        };
        match serde_json::from_slice::<RunRow>(line) {
            Ok(row) if !ids.insert(row.spec.id) => {
                return Err(wrong(format!("run {} is there twice", row.spec.id)));
            }
            Ok(row) => rows.push(row),
            Err(_) if whole + line.len() == end => break,
            Err(error) => return Err(wrong(error.to_string())),
        }
        whole += line.len();
    }
    Ok(ParsedRows { rows, whole })
}

/// A value of the manifest as one line of text; `None` for null and nothing.
pub(crate) fn one_line(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("summary") {
                return Some(text.clone());
            }
            let scalar = |(name, value): (&String, &Value)| match value {
                Value::Null | Value::Array(_) | Value::Object(_) => None,
                Value::String(text) => Some(format!("{name} {text}")),
                other => Some(format!("{name} {other}")),
            };
            let text = fields.iter().filter_map(scalar).collect::<Vec<_>>().join(", ");
            (!text.is_empty()).then_some(text)
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn moments_are_told_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_795_287_848), "2026-11-21T19:04:08Z");
    }
}
