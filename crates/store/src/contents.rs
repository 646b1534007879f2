//! What a store says: its manifest (`manifest.rs`), its plan and one row a run, as
//! plain data.
//!
//! Formats: `docs/format.md`. Reading never changes a store and does not mind a
//! run in progress: a last line without its newline is not there yet. What is
//! not as it was written is left out and told ([`StoreContents::damage`]).

use crate::checksum::{Seal, checksum, read_sealed};
use crate::complete::completeness;
use crate::damage::{Damage, PLAN_EDITED, statements};
use crate::error::StoreError;
use crate::files::{read_inside, unreadable};
use crate::format1::{self, OLD};
use crate::manifest::{FORMAT, Manifest};
use crate::rows::parse_rows;
use crate::store::names;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use uflip_measure::Plan;
use uflip_measure::auto::findings::Calibration;
use uflip_measure::run::{RunOutcome, RunSpec, RunStats};

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
    /// [`StoreError::Damaged`] where a file is of another shape than it has,
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
        let plan_path = dir.join(names::PLAN);
        let plan = read_sealed(&plan_path, RESTORE)?;
        let mut plan = plan.ok_or_else(|| gone(&plan_path))?;
        let edited = plan.value.as_object_mut().and_then(|fields| fields.remove(EDITED)).is_some();
        // One that says whose it is was written with a checksum, too.
        let unsealed = plan.seal == Seal::None && plan.value.get("folder").is_some();
        let plan_edited = edited || unsealed || plan.seal == Seal::Changed;
        let manifest_value = Manifest::deserialize(&manifest.value).map_err(|error| {
            let detail = format!("it is no manifest ({error}); {RESTORE}");
            StoreError::Damaged { path: manifest_path, detail }
        })?;
        let remedy = format!("so nobody can tell which runs are missing; {RESTORE}");
        let plan_sum = plan.sum.clone();
        let plan = match plan.told(&plan_path, "plan", &remedy)? {
            Ok(_) if plan.is_anothers(manifest_value.folder.as_deref()) => {
                damage.push(of_file("plan.json", &format!("it is another folder's, {remedy}")));
                None
            }
            Ok(plan) => Some(format1::told(plan, &manifest_value)),
            Err(what) => {
                damage.push(of_file(names::PLAN, &what));
                None
            }
        };
        let (calibration, calibration_sum) = calibration(dir, manifest_value.folder.as_deref(), &mut damage)?;
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
    folder: Option<&str>,
    damage: &mut Vec<Damage>,
) -> Result<(Option<Calibration>, Option<String>), StoreError> {
    const FILE: &str = names::CALIBRATION;
    const LOST: &str = "what it found of start-up, period and pause is left out, and --resume finds it again";
    const AGAIN: &str = "restore it from a copy, or remove it: uflip run --resume then finds it again";
    let path = dir.join(FILE);
    let (what, sum) = match read_sealed(&path, RESTORE) {
        Ok(None) => return Ok((None, None)),
        Ok(Some(file)) if file.seal == Seal::Changed => {
            (format!("its checksum is another; {LOST}"), Some(file.sum))
        }
        Ok(Some(file)) if file.is_anothers(folder) => {
            (format!("it is another folder's; {LOST}"), Some(file.sum))
        }
        Ok(Some(file)) => match file.told(&path, "calibration", AGAIN)? {
            Ok(found) => return Ok((Some(found), Some(file.sum))),
            Err(what) => (what, Some(file.sum)),
        },
        Err(StoreError::Damaged { detail, .. }) => (detail, None),
        Err(error) => return Err(error),
    };
    damage.push(of_file(FILE, &what));
    Ok((None, sum))
}

/// What is wrong with the folder's logical block, if it has one.
fn logical_block(dir: &Path) -> Option<String> {
    match crate::logical_block::measured(dir) {
        Err(StoreError::Damaged { detail, .. }) => Some(detail),
        _ => None,
    }
}
