//! The granularity line: latency, cost per KiB and the size from which on
//! larger IOs gain nothing. Method and source: see the parent module.

use super::super::series::{normal, student_t};
use super::KneePoint;
use serde::{Deserialize, Serialize};

/// Throughput counts as saturated from this share of the best one.
const SATURATED: f64 = 0.9;
/// No mean is taken to be known better than this, relatively.
const MIN_ERROR: f64 = 0.01;
/// A line is a good description where no point is off by more, relatively.
const GOOD_FIT: f64 = 0.2;

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// It.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Response time as a line over IOSize.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GranularityLine {
    /// Cost of an IO of no size.
    pub latency_us: Estimate,
    /// Cost of each KiB.
    pub us_per_kib: Estimate,
    /// The smallest IOSize measured with 90 % of the best throughput measured.
    pub saturation_bytes: i64,
    /// The largest distance of a point from the line, relative to the line.
    pub worst_residual: f64,
    /// Whether the line is a good description: otherwise its figures are not.
    pub linear: bool,
    /// Points it rests on.
    pub points: usize,
}

/// The line through a curve over IOSize. None for fewer than three sizes or a
/// mean that is not positive.
pub fn granularity(curve: &[KneePoint]) -> Option<GranularityLine> {
    let good = |p: &KneePoint| p.value > 0 && p.cost.mean_ns > 0.0 && p.cost.mean_ns.is_finite();
    if curve.len() < 3 || !curve.iter().all(good) {
        return None;
    }
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in curve {
        let (x, y, weight) = (kib(point), point.cost.mean_ns / 1e3, weight(point));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let determinant = w * wxx - wx * wx;
    if determinant <= 1e-9 * w * wxx {
        return None;
    }
    let latency = (wxx * wy - wx * wxy) / determinant;
    let per_kib = (w * wxy - wx * wy) / determinant;
    let line = |p: &KneePoint| latency + per_kib * kib(p);
    let squares: f64 = curve.iter().map(|p| weight(p) * (p.cost.mean_ns / 1e3 - line(p)).powi(2)).sum();
    let freedom = (curve.len() - 2) as f64;
    let birge = (squares / freedom).sqrt().max(1.0);
    let wide = |variance: f64| student_t(0.975, freedom) * birge * variance.sqrt();
    let estimate = |value: f64, half: f64| Estimate { value, low: value - half, high: value + half };
    let off = |p: &KneePoint| (p.cost.mean_ns / 1e3 - line(p)).abs() / (p.cost.mean_ns / 1e3);
    let worst_residual = curve.iter().map(off).fold(0.0, f64::max);
    Some(GranularityLine {
        latency_us: estimate(latency, wide(wxx / determinant)),
        us_per_kib: estimate(per_kib, wide(w / determinant)),
        saturation_bytes: saturation(curve),
        worst_residual,
        linear: worst_residual <= GOOD_FIT,
        points: curve.len(),
    })
}

fn kib(point: &KneePoint) -> f64 {
    point.value as f64 / 1024.0
}

/// The inverse of a mean's variance, by its interval, in 1/us².
fn weight(point: &KneePoint) -> f64 {
    let error_ns = (point.cost.high_ns - point.cost.low_ns) / 2.0 / normal(0.975);
    (error_ns.max(MIN_ERROR * point.cost.mean_ns) / 1e3).powi(-2)
}

/// The smallest size with nearly the best throughput.
fn saturation(curve: &[KneePoint]) -> i64 {
    let throughput = |p: &KneePoint| p.value as f64 / p.cost.mean_ns;
    let best = curve.iter().map(throughput).fold(0.0, f64::max);
    let reached = curve.iter().filter(|p| throughput(p) >= SATURATED * best);
    reached.map(|p| p.value).min().expect("the best one reaches itself")
}
