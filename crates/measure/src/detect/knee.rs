//! The knees of the micro-benchmarks' curves: how large an area still counts
//! as cheap, how many partitions, which alignment, what an IO costs by its size.
//!
//! Source: the columns of Table 3 of paper 001 and the text around it (section
//! 5.2). The paper read them off plots; the rules here are ours, hold on all of
//! its rows (see the tests), and each is said where it is applied. "Cheap" is
//! at most a quarter of what random writes over the whole device cost, and where
//! these cost less than 16 times sequential ones, at most the geometric middle of both:
//! there a quarter of the one is near or below the other. Ratios
//! carry intervals (`drift.rs`); a knee's uncertainty is the range of values
//! that the intervals of the costs allow.
//! Granularity: weighted least squares of response = latency + cost * size
//! (W. E. Deming; P. R. Bevington, "Data reduction and error analysis"), errors
//! widened by R. T. Birge's ratio (1932) where the line fits worse than the
//! intervals say.
//!
//! Units: bytes, IOs, nanoseconds, microseconds where named so. Limits: a knee
//! is one of the values measured, so it is known to within one step.

mod line;

pub use super::drift::{CostRatio, Level, ratio};
pub use line::{Estimate, GranularityLine, granularity};

use serde::{Deserialize, Serialize};

/// Cheap is at most this share of random writes over the whole device, or the geometric
/// middle of SW and RW where that is more.
pub const CHEAP_SHARE: f64 = 0.25;
/// Costs up to this many times another still count as the same.
pub const SAME: f64 = 1.25;
/// An unaligned IO is penalised from this factor on.
pub const PENALTY: f64 = 1.1;

/// One point of a curve: the varying parameter's value and the cost there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneePoint {
    /// TargetSize or IOShift or IOSize in bytes, Partitions, Incr, or Pause in ns.
    pub value: i64,
    /// Mean response time there.
    pub cost: Level,
}

/// The largest value up to which the cost is cheap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// It.
    pub value: i64,
    /// The largest value that is cheap whatever the costs are within their
    /// intervals; None where even the smallest is not decided to be cheap.
    pub at_least: Option<i64>,
    /// The largest value that can be cheap within the intervals.
    pub at_most: i64,
    /// Cost at the knee relative to SW.
    pub factor: CostRatio,
    /// The largest cost up to the knee relative to SW, as Table 3 prints it.
    pub worst_factor: CostRatio,
    /// The values that decided: the knee and the first expensive one after it.
    pub rests_on: Vec<i64>,
}

/// The points by rising value.
fn sorted(curve: &[KneePoint]) -> Vec<KneePoint> {
    let mut points = curve.to_vec();
    points.sort_by_key(|p| p.value);
    points
}

/// The last point of the first stretch of points that cost at most `limit`
/// relative to `base`. Points before the stretch may be expensive (an area of a
/// few IOs is written in place); one that only may be cheap does not end it.
fn knee(curve: &[KneePoint], base: &Level, sw: &Level, limit: f64) -> Option<Knee> {
    let points = sorted(curve);
    let shares: Vec<CostRatio> = points.iter().map(|p| ratio(&p.cost, base)).collect::<Option<_>>()?;
    let first = shares.iter().position(|s| s.ratio <= limit)?;
    let end = (first..shares.len()).find(|&i| shares[i].low > limit).unwrap_or(shares.len());
    let last = (first..end).rev().find(|&i| shares[i].ratio <= limit)?;
    let sure = (first..end).take_while(|&i| shares[i].high <= limit).last();
    let worst = points[first..=last].iter().map(|p| p.cost).max_by(|a, b| a.mean_ns.total_cmp(&b.mean_ns))?;
    let rests_on = points[last..].iter().take(2).map(|p| p.value).collect();
    Some(Knee {
        value: points[last].value,
        at_least: sure.map(|i| points[i].value),
        at_most: points[end - 1].value,
        factor: ratio(&points[last].cost, sw)?,
        worst_factor: ratio(&worst, sw)?,
        rests_on,
    })
}

/// The share of `rw` up to which a cost is cheap. None where random writes cost as
/// sequential ones, so that nothing is expensive.
fn cheap_share(sw: &Level, rw: &Level) -> Option<f64> {
    let expensive = ratio(rw, sw)?.ratio;
    (expensive > SAME).then(|| CHEAP_SHARE.max(expensive.sqrt().recip()))
}

/// The locality area: the largest TargetSize in which a random write is cheap beside one
/// over the whole device (`rw`). `curve` is RW over
/// TargetSize. None where no area is cheap, or all are. Reaching the curve's largest value
/// means that it has no knee within it.
pub fn locality(curve: &[KneePoint], rw: &Level, sw: &Level) -> Option<Knee> {
    knee(curve, rw, sw, cheap_share(sw, rw)?)
}

/// The most concurrent partitions before sequential writes turn into random
/// ones: the largest number at which they are cheap beside `rw`, or,
/// where random writes are not expensive, cost about as much as `sw`. `curve` is
/// SW over Partitions.
pub fn partitions(curve: &[KneePoint], sw: &Level, rw: &Level) -> Option<Knee> {
    ratio(rw, sw)?;
    match cheap_share(sw, rw) {
        Some(share) => knee(curve, rw, sw, share),
        None => knee(curve, sw, sw, SAME),
    }
}

/// What alignment costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignmentPenalty {
    /// The smallest unit that takes most of the penalty: aligned to it, an IO is spared at
    /// least half of what the worst shift costs. None where no shift measured is.
    pub unit_bytes: Option<i64>,
    /// Cost of the penalised shifts relative to aligned IOs: the largest.
    pub penalty: CostRatio,
    /// Every unit with a penalty of its own, ascending.
    pub levels: Vec<AlignmentLevel>,
    /// The penalised shifts.
    pub rests_on: Vec<i64>,
}

/// One unit of several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignmentLevel {
    /// The unit.
    pub unit_bytes: i64,
    /// Cost of IOs that are aligned to all smaller units but not to this one, relative to
    /// aligned IOs.
    pub penalty: CostRatio,
}

/// Aligned to its unit, an IO is spared at least this share of the worst penalty.
const MOST: f64 = 0.5;

/// The alignment unit from a curve over IOShift and the cost of `aligned` IOs.
/// None where no shift costs [`PENALTY`] times as much beyond its interval.
pub fn alignment(curve: &[KneePoint], aligned: &Level) -> Option<AlignmentPenalty> {
    let points = sorted(curve);
    let mut penalised: Vec<(i64, CostRatio)> = Vec::new();
    for point in points.iter().filter(|p| p.value > 0) {
        let found = ratio(&point.cost, aligned)?;
        if found.ratio >= PENALTY && found.low > 1.0 {
            penalised.push((point.value, found));
        }
    }
    let penalty = penalised.iter().map(|p| p.1).max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    let left = |unit: i64| {
        let multiples = penalised.iter().filter(|(shift, _)| shift % unit == 0);
        multiples.map(|(_, p)| p.ratio - 1.0).fold(0.0, f64::max)
    };
    let spared = (penalty.ratio - 1.0) * (1.0 - MOST);
    Some(AlignmentPenalty {
        unit_bytes: points.iter().map(|p| p.value).find(|&unit| unit > 0 && left(unit) <= spared),
        penalty,
        levels: levels(&points, &penalised, aligned),
        rests_on: penalised.iter().map(|p| p.0).collect(),
    })
}

/// The units: from the largest shift down, each shift from which on IOs cost [`PENALTY`]
/// times what the shifts above cost, beyond its interval, makes the shift above it a unit.
/// Shifts that are no power of two are aligned as their largest power of two, and left out.
fn levels(points: &[KneePoint], penalised: &[(i64, CostRatio)], aligned: &Level) -> Vec<AlignmentLevel> {
    let mut levels: Vec<AlignmentLevel> = Vec::new();
    let (mut above, mut base) = (None, *aligned);
    for point in points.iter().rev().filter(|p| p.value > 0 && p.value.count_ones() == 1) {
        let own = penalised.iter().find(|(shift, _)| *shift == point.value).map(|p| p.1);
        let step = ratio(&point.cost, &base).is_some_and(|s| s.ratio >= PENALTY && s.low > 1.0);
        if let Some((penalty, unit_bytes)) = own.filter(|_| step).zip(above) {
            levels.push(AlignmentLevel { unit_bytes, penalty });
            base = point.cost;
        }
        above = Some(point.value);
    }
    levels.reverse();
    levels
}

/// The pause after which a random write costs as a sequential one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseRw {
    /// The smallest Pause measured from which on it does.
    pub pause_ns: i64,
    /// The longest Pause measured at which it does not: the truth lies between.
    pub above_ns: Option<i64>,
    /// Cost at `pause_ns` relative to SW.
    pub factor: CostRatio,
}

/// The smallest Pause from which on RW costs at most [`SAME`] times SW. `curve`
/// is RW over Pause, `rw` without one. None where no pause does that, or none is
/// needed.
pub fn pause_rw(curve: &[KneePoint], rw: &Level, sw: &Level) -> Option<PauseRw> {
    if ratio(rw, sw)?.ratio <= SAME {
        return None;
    }
    let points = sorted(curve);
    let factors: Vec<CostRatio> = points.iter().map(|p| ratio(&p.cost, sw)).collect::<Option<_>>()?;
    let after = factors.iter().rposition(|f| f.ratio > SAME).map_or(0, |i| i + 1);
    let point = points.get(after)?;
    let above_ns = after.checked_sub(1).map(|i| points[i].value);
    Some(PauseRw { pause_ns: point.value, above_ns, factor: factors[after] })
}

#[cfg(test)]
mod tests;
