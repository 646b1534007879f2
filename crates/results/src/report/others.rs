//! What else is in the folder: what a job came to (`job.json`), the search for
//! the logical block (`logical-block.json`), what the automatic method found
//! (`calibration.json`), and the cost models that the runs give.
//!
//! Method: the files are passed on as they are (`docs/format.md`,
//! `docs/job-files.md`, `docs/models.md`); the page shows what it knows of them.
//! Models are fitted here, by `model::fit`, where random reads or writes of at
//! least [`LEAST_SIZES`] sizes were measured.

use crate::contents::StoreContents;
use crate::error::{StoreError, path_error};
use crate::model::{self, BlockSource, Curve, Curves, LogicalBlock, Models};
use crate::profile::Profile;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use uflip_device::Bytes;

/// Sizes of IOs from which on a model is shown.
const LEAST_SIZES: usize = 3;
/// Runs named as evidence of one figure; a figure may rest on thousands.
const MOST_EVIDENCE: usize = 64;

/// What else there is; null where it is not there.
#[derive(Serialize)]
pub(crate) struct Others {
    job: Value,
    logical_block: Value,
    calibration: Value,
    models: Option<Fitted>,
}

/// The models and what they were fitted to.
#[derive(Serialize)]
struct Fitted {
    models: Models,
    /// Size in bytes and mean in ns of each point, by baseline.
    curves: Curves,
}

/// Reads and fits.
///
/// # Errors
/// [`StoreError`] where a file is there that cannot be read or is no JSON.
pub(crate) fn read(contents: &StoreContents) -> Result<Others, StoreError> {
    let file = |name: &str| json(&contents.dir.join(name));
    let logical_block = file("logical-block.json")?;
    let block = logical_block.get("logical_block_bytes").and_then(Value::as_u64);
    let block = block.map(|b| LogicalBlock { bytes: Bytes(b), source: BlockSource::Measured });
    let mut curves = model::curves(&contents.runs);
    curves.runs.truncate(MOST_EVIDENCE);
    let enough = |c: &Curve| c.len() >= LEAST_SIZES;
    let fitted = (enough(&curves.rr) || enough(&curves.rw))
        .then(|| Fitted { models: model::fit(&curves, block), curves });
    Ok(Others {
        job: file("job.json")?,
        calibration: contents.calibration.clone().unwrap_or(Value::Null),
        logical_block,
        models: fitted,
    })
}

fn json(path: &Path) -> Result<Value, StoreError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
        Err(error) => return Err(path_error("cannot read", path)(error)),
    };
    let wrong = |e| StoreError::Damaged {
        path: path.into(),
        detail: format!("{e}; remove it, or make it again with the command that wrote it"),
    };
    serde_json::from_slice(&bytes).map_err(wrong)
}

/// A profile without what the view has already, and with the first runs of
/// each figure's evidence only.
pub(crate) fn lighter(mut profile: Profile) -> Profile {
    profile.curves.clear();
    profile.cost_models.runs.truncate(MOST_EVIDENCE);
    let short = |runs: &mut Vec<u32>| runs.truncate(MOST_EVIDENCE);
    let g = &mut profile.granularity;
    let maps = [
        &mut profile.evidence,
        &mut profile.baseline_ms.evidence,
        &mut profile.locality.evidence,
        &mut profile.partitions.evidence,
        &mut profile.order.evidence,
        &mut profile.alignment.evidence,
        &mut g.latency_us.evidence,
        &mut g.us_per_kib.evidence,
        &mut g.saturation_bytes.evidence,
        &mut g.linear.evidence,
        &mut profile.parallelism.evidence,
        &mut profile.mix.evidence,
    ];
    maps.into_iter().flat_map(|m| m.values_mut()).for_each(|e| short(&mut e.runs));
    profile.hints.iter_mut().for_each(|h| short(&mut h.evidence));
    profile.soundness.iter_mut().for_each(|f| short(&mut f.runs));
    profile
}
