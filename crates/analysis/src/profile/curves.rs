//! The levels of every curve's points, for whoever draws them.
//!
//! Method: as gathered for the knees (`gather.rs`), rounded; an interval that is
//! open (a run too short to have one) is none. What the device's own work came to is
//! the rule of `beside.rs` over the runs behind the level.

use super::beside;
use super::evidence::rounded;
use super::facts::Facts;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use uflip_measure::run::CurveId;
use uflip_store::contents::RunRow;

/// One curve of a micro-benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveLevels {
    /// Of which chart, and which of its curves.
    #[serde(flatten)]
    pub id: CurveId,
    /// By rising value.
    pub points: Vec<PointLevel>,
}

/// What one value of the parameter costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointLevel {
    /// The value: bytes, a count or nanoseconds.
    pub value: i64,
    /// Mean response time of the running phase.
    pub mean_ms: f64,
    /// Its 95 % confidence interval; null where the runs are too short for one.
    pub ci95: Option<[f64; 2]>,
    /// The smallest and the largest of the repeats' means that `mean_ms` is the mean of,
    /// of the same running phases; null in profiles of before this field.
    #[serde(default)]
    pub repeats_ms: Option<[f64; 2]>,
    /// Bytes programmed for each byte that the host wrote; null where the device does
    /// not tell, and in profiles of before this field.
    #[serde(default)]
    pub write_amplification: Option<f64>,
    /// Energy of an IO; the same.
    #[serde(default)]
    pub energy_uj_per_io: Option<f64>,
}

/// What the rows alone say of one point: for a point that no profile has a level of,
/// and for the span of its repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    /// The runs that have a running phase.
    pub runs: Vec<u32>,
    /// The mean of their means.
    pub mean_ns: Option<f64>,
    /// The smallest of them.
    pub min_ns: Option<f64>,
    /// The largest of them.
    pub max_ns: Option<f64>,
    /// As [`PointLevel::write_amplification`].
    pub write_amplification: Option<f64>,
    /// As [`PointLevel::energy_uj_per_io`].
    pub energy_uj_per_io: Option<f64>,
}

/// What the runs of one point say without their records.
pub fn of_repeats(rows: &[&RunRow]) -> Repeats {
    // A run without a running phase says nothing of the point.
    let told = || rows.iter().filter_map(|row| Some((*row, row.stats.running.mean_ns?)));
    let means: Vec<f64> = told().map(|(_, mean)| mean).collect();
    let (write_amplification, energy_uj_per_io) = beside::of_runs(told().map(|(row, _)| row));
    Repeats {
        runs: told().map(|(row, _)| row.spec.id).collect(),
        mean_ns: (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64),
        min_ns: means.iter().copied().reduce(f64::min),
        max_ns: means.iter().copied().reduce(f64::max),
        write_amplification,
        energy_uj_per_io,
    }
}

/// `curves`: the levels that the rules went by.
pub(super) fn curves(facts: &Facts, rows: &[RunRow]) -> Vec<CurveLevels> {
    let rows: HashMap<u32, &RunRow> = rows.iter().map(|row| (row.spec.id, row)).collect();
    let point = |p: &super::facts::CurveFacts| {
        let ends = [p.level.low_ns, p.level.high_ns];
        let closed = ends.iter().all(|e| e.is_finite());
        let own = p.runs.iter().filter_map(|id| rows.get(id).copied());
        let (write_amplification, energy_uj_per_io) = beside::of_runs(own);
        PointLevel {
            value: p.value,
            mean_ms: rounded(p.level.mean_ns / 1e6),
            ci95: closed.then(|| ends.map(|e| rounded(e / 1e6))),
            repeats_ms: Some(p.repeats_ns.map(|ns| rounded(ns / 1e6))),
            write_amplification,
            energy_uj_per_io,
        }
    };
    let curve = |c: &super::facts::MeasuredCurve| CurveLevels {
        id: c.id.clone(),
        points: c.points.iter().map(point).collect(),
    };
    facts.curves.iter().map(curve).collect()
}
