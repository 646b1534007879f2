//! What a store says: its manifest, its plan and one row a run, as plain data.
//!
//! Formats: `docs/format.md`. Reading never changes a store and does not mind a
//! run in progress: a last line without its newline is not there yet. What is
//! not as it was written is left out and told ([`StoreContents::damage`]).

use crate::checksum::{Seal, Sealed, checksum, read_sealed};
use crate::complete::completeness;
use crate::damage::{Damage, PLAN_EDITED, statements};
use crate::error::StoreError;
use crate::files::{read_inside, unreadable};
use crate::format1::{self, OLD};
use crate::rows::parse_rows;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use uflip_measure::Plan;
use uflip_measure::auto::findings::Calibration;
use uflip_measure::run::{RunOutcome, RunSpec, RunStats};

/// The version of the store's format that this code writes. It reads the older
/// ones as well (`format1.rs`).
pub const FORMAT: u32 = 2;

/// `manifest.json`: under what circumstances a store was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The store's format version: [`FORMAT`].
    pub format: u32,
    /// The program: `uflip`.
    pub tool: String,
    /// Its version.
    pub tool_version: String,
    /// Random, made with the folder: rows say it too, so that another folder's row
    /// is known. `None` in folders of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
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
            folder: Some(crate::files::random_name()),
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
    /// The checksum of its bytes; `None` in rows of before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
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
    /// The folder that it was measured in: [`Manifest::folder`]. `None` in rows of
    /// format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// A store as read.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreContents {
    /// The folder.
    pub dir: PathBuf,
    /// Under what circumstances it was measured.
    pub manifest: Manifest,
    /// What was to be run; None where nobody can tell, which is damage.
    pub plan: Option<Plan>,
    /// What the automatic method found; None where it was not used, or where the
    /// file tells nothing, which is damage.
    pub calibration: Option<Calibration>,
    /// What was run, by number, so that no figure depends on the order in which
    /// runs finished; what is damaged is left out.
    pub runs: Vec<RunRow>,
    /// What is not as it was written.
    pub damage: Vec<Damage>,
    /// The plan is not as uflip made it: somebody edited it.
    pub plan_edited: bool,
    /// The checksums of the files that the above is from.
    pub sums: Vec<String>,
}

/// The remedy for a file that cannot be made again.
const RESTORE: &str = "restore it from a copy";
/// The plan's field that says that somebody edited it.
pub(crate) const EDITED: &str = "edited_by_hand";

impl StoreContents {
    /// Reads the store in `dir`, its rows each held against its checksum but not
    /// its record files: what is to be concluded from takes
    /// [`crate::Store::open`].
    ///
    /// # Errors
    /// [`StoreError::Refused`] where there is none or it is of another format,
    /// [`StoreError::Damaged`] where a file cannot be understood,
    /// [`StoreError::Path`] where one cannot be read.
    pub fn read(dir: &Path) -> Result<StoreContents, StoreError> {
        let manifest_path = dir.join("manifest.json");
        let Some(manifest) = read_sealed(&manifest_path, RESTORE)? else {
            let text =
                format!("{} holds no measurement (no manifest.json); is the path right?", dir.display());
            return Err(StoreError::Refused(text));
        };
        let format = manifest.value.get("format").and_then(Value::as_u64);
        if !format.is_some_and(|format| (u64::from(OLD)..=u64::from(FORMAT)).contains(&format)) {
            if manifest.seal == Seal::Changed {
                let detail = MANIFEST_CHANGED.to_string();
                return Err(StoreError::Damaged { path: manifest_path, detail });
            }
            let format = format.map_or("unknown".into(), |f| f.to_string());
            return Err(StoreError::Refused(format!(
                "{} is of format {format}, this uflip reads formats {OLD} to {FORMAT}; use the version that made it",
                dir.display()
            )));
        }
        let mut damage = Vec::new();
        if manifest.seal == Seal::Changed {
            damage.push(of_file("manifest.json", MANIFEST_CHANGED));
        }
        let plan_path = dir.join("plan.json");
        let plan = read_sealed(&plan_path, RESTORE)?;
        let mut plan = plan.ok_or_else(|| gone(&plan_path))?;
        let edited = plan.value.as_object_mut().and_then(|fields| fields.remove(EDITED)).is_some();
        let plan_edited = edited || plan.seal == Seal::Changed;
        let manifest_value: Manifest =
            serde_json::from_value(manifest.value).map_err(|e| damaged(&manifest_path, &e))?;
        let (plan_sum, plan) = (plan.sum, Plan::deserialize(&plan.value));
        let plan = match plan {
            Ok(plan) => Some(format1::told(plan, &manifest_value)),
            Err(error) => {
                let what =
                    format!("it is no plan ({error}), so nobody can tell which runs are missing; {RESTORE}");
                damage.push(of_file("plan.json", &what));
                None
            }
        };
        let (calibration, calibration_sum) = calibration(dir, &mut damage)?;
        if let Some(what) = logical_block(dir) {
            damage.push(of_file(crate::logical_block::FILE, &what));
        }
        let runs_path = dir.join(crate::rows::FILE);
        let bytes = read_inside(&runs_path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => gone(&runs_path),
            _ => unreadable(&runs_path, error, RESTORE),
        })?;
        let parsed = parse_rows(&bytes);
        damage.extend(parsed.damage);
        let mut runs: Vec<RunRow> = parsed.lines.into_iter().map(|line| line.row).collect();
        runs.sort_by_key(|row| row.spec.id);
        format1::tell(plan.as_ref(), runs.iter_mut());
        let sums =
            [Some(manifest.sum), Some(plan_sum), calibration_sum, Some(checksum(&bytes[..parsed.end]))];
        Ok(StoreContents {
            dir: dir.to_path_buf(),
            manifest: manifest_value,
            plan,
            calibration,
            runs,
            damage,
            plan_edited,
            sums: sums.into_iter().flatten().collect(),
        })
    }

    /// What is damaged, then what is missing, a sentence each. Nothing where all
    /// is whole.
    pub fn lacks(&self) -> Vec<String> {
        let mut said = statements(self);
        said.extend(completeness(self).statement);
        said
    }

    /// What has to be said before anything else, a sentence each: what it
    /// [lacks](StoreContents::lacks), and that the plan is not as it was made.
    pub fn alerts(&self) -> Vec<String> {
        let mut said = self.lacks();
        said.extend(self.plan_edited.then(|| PLAN_EDITED.to_string()));
        said
    }

    /// Stands for what this was read from: what is derived of the same files and
    /// the same runs by the same version carries the same text.
    pub fn derivation(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(|row| row.spec.id.to_string()).collect();
        let text = [env!("CARGO_PKG_VERSION"), &self.sums.join(" "), &runs.join(" ")].join("\n");
        checksum(text.as_bytes())
    }
}

/// What is wrong with a manifest whose checksum is another.
pub(crate) const MANIFEST_CHANGED: &str = "its checksum is another: it is not what was measured under. Restore it \
    from a copy; where you changed it on purpose, remove its last field, check";

/// A file without which a folder says nothing.
fn gone(path: &Path) -> StoreError {
    StoreError::Damaged { path: path.to_path_buf(), detail: format!("it is missing; {RESTORE}") }
}

fn of_file(file: &str, what: &str) -> Damage {
    Damage { file: file.into(), run: None, what: what.into(), row: false }
}

/// What the automatic method found, where it is there and whole, and the
/// checksum of the file.
fn calibration(
    dir: &Path,
    damage: &mut Vec<Damage>,
) -> Result<(Option<Calibration>, Option<String>), StoreError> {
    const FILE: &str = "calibration.json";
    const LOST: &str = "what it found of start-up, period and pause is left out, and --resume finds it again";
    match read_sealed(&dir.join(FILE), RESTORE) {
        Ok(Some(Sealed { seal: Seal::Changed, sum, .. })) => {
            damage.push(of_file(FILE, &format!("its checksum is another; {LOST}")));
            Ok((None, Some(sum)))
        }
        Ok(None) => Ok((None, None)),
        Ok(Some(Sealed { value, sum, .. })) => match Calibration::deserialize(&value) {
            Ok(found) => Ok((Some(found), Some(sum))),
            Err(error) => {
                damage.push(of_file(FILE, &format!("it is no calibration ({error}); {LOST}")));
                Ok((None, Some(sum)))
            }
        },
        Err(StoreError::Damaged { detail, .. }) => {
            damage.push(of_file(FILE, &detail));
            Ok((None, None))
        }
        Err(error) => Err(error),
    }
}

/// What is wrong with the folder's logical block, if it has one.
fn logical_block(dir: &Path) -> Option<String> {
    match crate::logical_block::measured(dir) {
        Err(StoreError::Damaged { detail, .. }) => Some(detail),
        _ => None,
    }
}

fn damaged(path: &Path, error: &serde_json::Error) -> StoreError {
    StoreError::Damaged { path: path.to_path_buf(), detail: format!("{error}; {RESTORE}") }
}

/// A value of the manifest as one line of text; `None` for null and nothing.
pub fn one_line(value: &Value) -> Option<String> {
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
