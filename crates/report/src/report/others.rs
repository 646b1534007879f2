//! What else is in the folder: what a job came to (`job.json`), the search for
//! the logical block (`logical-block.json`), what the automatic method found
//! (`calibration.json`), and the cost models that the runs give.
//!
//! Method: the files are held against their checksums, and a job's against the
//! runs that it was made from, then passed on as they are (`docs/format.md`,
//! `docs/job-files.md`, `docs/models.md`); the page shows what it knows of them.
//! Models are fitted here, by `model::fit`, where random reads or writes of at
//! least [`LEAST_SIZES`] sizes were measured.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uflip_analysis::job_report::{self, JobReport};
use uflip_analysis::model::focal::MergeSample;
use uflip_analysis::model::{self, BlockSource, CostCurve, Curves, LogicalBlock, Models};
use uflip_analysis::profile::Profile;
use uflip_device::Bytes;
use uflip_store::checksum::{Seal, read_sealed};
use uflip_store::contents::StoreContents;
use uflip_store::error::StoreError;

/// Sizes of IOs from which on a model is shown.
const LEAST_SIZES: usize = 3;
/// Runs named as evidence of one figure; a figure may rest on thousands.
const MOST_EVIDENCE: usize = 64;

/// What else there is; null where it is not there.
#[derive(Serialize)]
pub(crate) struct Others {
    job: Value,
    pub logical_block: Value,
    calibration: Value,
    pub models: Option<FittedModels>,
}

impl Others {
    /// What the job came to, as far as it can be drawn: lists that are none, of another shape, are left out.
    pub fn job_report(&self) -> Option<JobReport> {
        fn list<T: DeserializeOwned>(job: &Value, name: &str) -> Vec<T> {
            job.get(name).and_then(|list| serde_json::from_value(list.clone()).ok()).unwrap_or_default()
        }
        let job = self.job.is_object().then_some(&self.job)?;
        Some(JobReport {
            speeds: list(job, "speeds"),
            misaligned: list(job, "misaligned"),
            recovery: list(job, "recovery"),
            rewrite: list(job, "rewrite"),
            series: list(job, "series"),
            drift: list(job, "drift"),
            ..JobReport::default()
        })
    }

    /// The job's runs with flushes, as the write cost model has them.
    pub fn merge_samples(&self) -> Vec<MergeSample> {
        let samples = self.job["merge"]["samples"].clone();
        serde_json::from_value(samples).unwrap_or_default()
    }
}

/// The models and what they were fitted to.
#[derive(Serialize)]
pub(crate) struct FittedModels {
    pub models: Models,
    /// Size in bytes and mean in ns of each point, by baseline.
    pub curves: Curves,
}

/// Reads and fits.
///
/// # Errors
/// [`StoreError`] where a file is there that cannot be read or is no JSON.
pub(crate) fn read(contents: &StoreContents) -> Result<Others, StoreError> {
    let logical_block = logical_block(contents)?;
    let block = logical_block.get("logical_block_bytes").and_then(Value::as_u64);
    let block = block.map(|b| LogicalBlock { bytes: Bytes(b), source: BlockSource::Measured });
    let mut curves = model::curves(&contents.runs);
    curves.runs.truncate(MOST_EVIDENCE);
    let enough = |c: &CostCurve| c.len() >= LEAST_SIZES;
    let fitted = (enough(&curves.rr) || enough(&curves.rw))
        .then(|| FittedModels { models: model::fit(&curves, block), curves });
    Ok(Others {
        job: job(contents)?,
        calibration: serde_json::to_value(&contents.calibration).unwrap_or_default(),
        logical_block,
        models: fitted,
    })
}

/// What a person does about a file that is no JSON.
const REMEDY: &str = "remove it, or make it again with the command that wrote it";

/// What `job.json` says where it is as it was written and of these very runs;
/// made again of the runs where it is not.
fn job(contents: &StoreContents) -> Result<Value, StoreError> {
    let Some(sealed) = read_sealed(&contents.dir.join(job_report::FILE), REMEDY)? else {
        return Ok(Value::Null);
    };
    let of = sealed.value.get("derived_from").and_then(Value::as_str);
    if sealed.seal == Seal::Intact && of == Some(&contents.derivation()) {
        return Ok(sealed.value);
    }
    match job_report::of_store(contents)? {
        Some(report) => serde_json::to_value(report).map_err(|e| StoreError::Output(e.into())),
        // Runs of no job: there is nothing to make it again from.
        None => Ok(if sealed.seal == Seal::None { sealed.value } else { Value::Null }),
    }
}

/// What `logical-block.json` says; nothing where it is damaged, which the store
/// says itself.
fn logical_block(contents: &StoreContents) -> Result<Value, StoreError> {
    let sealed = read_sealed(&contents.dir.join(uflip_store::logical_block::FILE), REMEDY)?;
    let whole = sealed.filter(|sealed| sealed.seal != Seal::Changed);
    Ok(whole.map_or(Value::Null, |sealed| sealed.value))
}

/// A profile without what the view has already, and with the first runs of
/// each figure's evidence only.
pub(crate) fn lighter(mut profile: Profile) -> Profile {
    profile.curves.clear();
    profile.cost_models.runs.truncate(MOST_EVIDENCE);
    let short = |runs: &mut Vec<u32>| runs.truncate(MOST_EVIDENCE);
    let g = &mut profile.granularity;
    let by_field = [
        &mut profile.evidence,
        &mut profile.locality.evidence,
        &mut profile.partitions.evidence,
        &mut profile.order.evidence,
        &mut profile.alignment.evidence,
        &mut profile.parallelism.evidence,
        &mut profile.mix.evidence,
    ];
    let by_baseline = [
        &mut profile.baseline_ms.evidence,
        &mut g.latency_us.evidence,
        &mut g.us_per_kib.evidence,
        &mut g.saturation_bytes.evidence,
        &mut g.linear.evidence,
        &mut profile.queue_depth.gain.evidence,
        &mut profile.queue_depth.enough.evidence,
    ];
    let of_fields = by_field.into_iter().flat_map(|map| map.values_mut());
    let of_baselines = by_baseline.into_iter().flat_map(|map| map.values_mut());
    of_fields.chain(of_baselines).for_each(|evidence| short(&mut evidence.runs));
    profile.hints.iter_mut().for_each(|h| short(&mut h.evidence));
    profile.soundness.iter_mut().for_each(|f| short(&mut f.runs));
    profile
}
