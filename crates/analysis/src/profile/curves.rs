//! The levels of every curve's points, for whoever draws them.
//!
//! Method: as gathered for the knees (`gather.rs`), rounded; an interval that is
//! open (a run too short to have one) is none.

use super::evidence::rounded;
use super::facts::Facts;
use serde::{Deserialize, Serialize};

/// One curve of a micro-benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveLevels {
    /// `granularity`, …
    pub micro_benchmark: String,
    /// `SR`, …, or a mix's `SR/RW`.
    pub baseline: String,
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
}

/// `curves`: the levels that the rules went by.
pub(super) fn curves(facts: &Facts) -> Vec<CurveLevels> {
    let point = |p: &super::facts::CurveFacts| {
        let ends = [p.level.low_ns, p.level.high_ns];
        let closed = ends.iter().all(|e| e.is_finite());
        PointLevel {
            value: p.value,
            mean_ms: rounded(p.level.mean_ns / 1e6),
            ci95: closed.then(|| ends.map(|e| rounded(e / 1e6))),
        }
    };
    let curve = |c: &super::facts::Curve| CurveLevels {
        micro_benchmark: c.section.to_string(),
        baseline: c.name.to_string(),
        points: c.points.iter().map(point).collect(),
    };
    facts.curves.iter().map(curve).collect()
}
