//! A device's profile: what its stored runs boil down to, each figure with the
//! runs behind it, its interval and the rule that made it.
//!
//! Method: [`build`] reads the runs and records of a store, finds the level of
//! every baseline and of every point of every curve (`gather.rs`), and applies
//! one rule a figure. The rules and the schema are in `docs/profile.md`; the
//! knees themselves are `uflip_measure::detect::knee`. Nothing is measured
//! here, nothing but the stored runs, plan, calibration and manifest is read, and the same
//! store gives the same profile.
//!
//! Source: paper 001, sections 4.2, 5.2 (Table 3) and 5.3 (the seven hints);
//! paper 003, section 4 (newer devices reverse the rules). Units are in the
//! names; what was not measured, or has no effect, is `None`.

pub mod beside;
mod between;
mod calibrated;
pub mod card;
mod class;
mod curves;
mod effects;
mod evidence;
mod facts;
mod figures;
mod finding;
mod gather;
mod hints;
mod knees;
pub mod levels;
pub mod nearest;
pub mod open_loop;
mod phases;
mod queue;
mod resumed;
mod soundness;
mod spaces;
pub mod table3;

use phases::Take;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use uflip_device::identity::word;
use uflip_store::checksum::{Seal, read_sealed};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;
use uflip_store::files::write_json;
use uflip_store::records::read_row_groups;

pub use class::{Class, DeviceClass, FailedAssumption, Indicator};
pub use curves::{CurveLevels, PointLevel, Repeats, of_repeats};
pub use effects::{Effect, EffectPoint};
pub use evidence::{Evidence, EvidenceMap, Per};
pub use facts::BetweenRuns;
pub use figures::Granularity;
pub use finding::{Finding, Severity};
pub use gather::Records;
pub use hints::{Hint, Verdict};
pub use knees::{Alignment, Locality, OrderFigures, Partitions, UnitPenalty};
pub use queue::{QueueFigures, QueuePoint};
pub use table3::{Table3Row, table3_row};

/// The version of the profile's format.
pub const FORMAT: u32 = 1;
/// The profile's file in a store.
pub const FILE: &str = "profile.json";

/// A device's profile. The evidence of field `x` is `evidence.x` of the same
/// object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: u32,
    /// The program and version that measured.
    pub tool: String,
    /// What it was made from: the same files and runs carry the same text.
    #[serde(default)]
    pub derived_from: String,
    /// The target in one line.
    pub target: String,
    /// The seed of the plan.
    pub seed: u64,
    /// IOSize of the baselines; None where there are none.
    pub io_size_bytes: Option<u64>,
    /// Mean response time of the running phase.
    pub baseline_ms: Per<f64>,
    /// IOs of the start-up phase.
    pub start_up_ios: Per<u64>,
    /// IOs of one oscillation of the running phase.
    pub period_ios: Per<f64>,
    /// IOIgnore of the runs.
    pub io_ignore: Per<u64>,
    /// IOCount of the runs.
    pub io_count: Per<u64>,
    /// Idle time between two runs.
    pub pause_between_runs_s: Option<f64>,
    /// The smallest Pause at which RW costs as SW.
    pub pause_rw_ms: Option<f64>,
    /// Evidence of the two pauses.
    pub evidence: EvidenceMap,
    /// Where random writes are cheap.
    pub locality: Locality,
    /// How many sequential streams of writes are cheap.
    pub partitions: Partitions,
    /// What the order of writes costs.
    pub order: OrderFigures,
    /// What alignment costs.
    pub alignment: Alignment,
    /// What an IO costs by its size.
    pub granularity: Granularity,
    /// What several streams at once gain or lose.
    pub parallelism: Effect,
    /// What mixing two baselines gains or loses.
    pub mix: Effect,
    /// What several requests of one sequence under way gain.
    #[serde(default)]
    pub queue_depth: QueueFigures,
    /// Cost models fitted to these runs; see `docs/models.md`.
    #[serde(default)]
    pub cost_models: crate::model::Models,
    /// What changes between equal runs, as a share of the mean; in the intervals
    /// of what was measured once.
    #[serde(default)]
    pub between_runs: BetweenRuns,
    /// What each point of each curve costs, with intervals; none in profiles of
    /// before this field.
    #[serde(default)]
    pub curves: Vec<CurveLevels>,
    /// What the device's own work came to, as it tells.
    #[serde(default)]
    pub device_work: beside::DeviceWork,
    /// What kind of device this is.
    pub device_class: DeviceClass,
    /// The seven hints of paper 001 on this device.
    pub hints: Vec<Hint>,
    /// What speaks against the results.
    pub soundness: Vec<Finding>,
}

/// The profile of the store `contents`, from its runs and records.
///
/// # Errors
/// [`StoreError`] where a record file cannot be read.
pub fn build(contents: &StoreContents) -> Result<Profile, StoreError> {
    Ok(from_facts(contents, &gather::gather(contents, &|row, take| of_file(contents, row, take))?))
}

/// [`build`], and the levels that the figures rest on.
///
/// # Errors
/// As [`build`].
pub fn build_with_levels(contents: &StoreContents) -> Result<(Profile, levels::Levels), StoreError> {
    let facts = gather::gather(contents, &|row, take| of_file(contents, row, take))?;
    Ok((from_facts(contents, &facts), levels::levels(&facts)))
}

/// [`build`] with the records of a run from anywhere.
///
/// # Errors
/// What `records` says.
pub fn build_from(contents: &StoreContents, records: &Records<'_>) -> Result<Profile, StoreError> {
    Ok(from_facts(contents, &gather::gather(contents, &|row, take| take(&records(row)?))?))
}

/// The records of a stored run, a row group at a time.
fn of_file(contents: &StoreContents, row: &RunRow, take: &mut Take<'_>) -> Result<(), StoreError> {
    read_row_groups(&contents.dir.join(&row.records.file), |_, records| take(records))
}

fn from_facts(contents: &StoreContents, facts: &facts::Facts) -> Profile {
    let manifest = &contents.manifest;
    let (pause_rw_ms, pause_evidence) = knees::pause_rw(facts);
    let (pause_between_runs_s, between_evidence) = figures::pause_between_runs(contents);
    let mut evidence = EvidenceMap::new();
    evidence.insert("pause_rw_ms".into(), pause_evidence);
    evidence.insert("pause_between_runs_s".into(), between_evidence);
    let mut profile = Profile {
        format: FORMAT,
        tool: format!("{} {}", manifest.tool, manifest.tool_version),
        derived_from: derivation(contents),
        target: uflip_store::manifest::one_line(&manifest.target).unwrap_or_else(|| "unknown target".into()),
        seed: manifest.seed,
        io_size_bytes: facts.io_size_bytes,
        baseline_ms: figures::baseline_ms(facts),
        start_up_ios: figures::start_up_ios(facts),
        period_ios: figures::period_ios(facts),
        io_ignore: figures::lengths(contents, |spec| spec.io_ignore),
        io_count: figures::lengths(contents, |spec| spec.io_count),
        pause_between_runs_s,
        pause_rw_ms,
        evidence,
        locality: knees::locality(facts),
        partitions: knees::partitions(facts),
        order: knees::order(facts),
        alignment: knees::alignment(facts),
        granularity: figures::granularity(facts),
        parallelism: effects::parallelism(facts),
        mix: effects::mix(facts),
        queue_depth: queue::queue(facts),
        between_runs: facts.between,
        cost_models: cost_models(contents),
        curves: curves::curves(facts, &contents.runs),
        device_work: beside::device_work(facts, &contents.runs),
        device_class: DeviceClass::unknown(),
        hints: Vec::new(),
        soundness: Vec::new(),
    };
    let calibration = &contents.calibration;
    if let Some(found) = &calibration {
        calibrated::apply(&mut profile, found);
    }
    profile.hints = hints::hints(&profile, facts);
    profile.device_class = class::classify(&profile, facts);
    profile.soundness = soundness::findings(&profile, facts, contents, calibration.as_ref());
    profile
}

/// The cost models, with the logical block where one was measured in the folder.
fn cost_models(contents: &StoreContents) -> crate::model::Models {
    use uflip_store::logical_block::{self as block, BlockSource, LogicalBlock};
    let measured = block::measured(&contents.dir).ok().flatten();
    let block = measured.map(|bytes| LogicalBlock { bytes, source: BlockSource::Measured });
    crate::model::fit(&crate::model::curves(&contents.runs), block)
}

/// Where the profile of the store in `dir` is.
pub fn path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

/// Writes `profile` into the store in `dir`, over an older one.
///
/// # Errors
/// [`StoreError::Path`] where it cannot be written.
pub fn write(dir: &Path, profile: &Profile) -> Result<(), StoreError> {
    write_json(&path(dir), profile)
}

/// Stands for all that a profile is made from: the store and its logical block.
pub fn derivation(contents: &StoreContents) -> String {
    // A file that cannot be read is said elsewhere; here it is as good as none.
    let block = read_sealed(&contents.dir.join(uflip_store::logical_block::FILE), "").ok().flatten();
    let block = block.map_or_else(|| "none".into(), |block| block.sum);
    uflip_store::checksum::checksum(format!("{} {block}", contents.derivation()).as_bytes())
}

/// The profile of a store that has one. What `profile.json` says is taken where
/// it is as it was written and made from these very runs; else the profile is
/// made again, and a sentence says so. None where there is no such file.
///
/// # Errors
/// [`StoreError::Path`] where it cannot be read, [`StoreError::Damaged`] where
/// it is no profile of this format, and as [`build`].
pub fn of_store(contents: &StoreContents) -> Result<(Option<Profile>, Option<String>), StoreError> {
    let (path, dir) = (path(&contents.dir), word(&contents.dir.to_string_lossy()));
    let again = format!("make it again with: uflip profile {dir}");
    let Some(sealed) = read_sealed(&path, &again)? else { return Ok((None, None)) };
    let wrong = |e| StoreError::Damaged { path: path.clone(), detail: format!("{e}; {again}") };
    let stored: Profile = serde_json::from_value(sealed.value).map_err(wrong)?;
    let why = match sealed.seal {
        Seal::Intact if stored.derived_from == derivation(contents) => return Ok((Some(stored), None)),
        Seal::Intact => "is of other runs than these, or of another version",
        Seal::Changed => "was changed",
        Seal::None => "has no checksum",
    };
    let note =
        format!("{FILE} {why}: it is not used, its figures were made again; uflip profile {dir} keeps them.");
    Ok((Some(build(contents)?), Some(note)))
}

#[cfg(test)]
mod tests;
