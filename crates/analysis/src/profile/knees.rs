//! The figures read off a curve: locality area, partitions, order factors,
//! alignment unit and the pause that makes random writes cheap.
//!
//! Method: `uflip_measure::detect::knee`, on the levels of `gather.rs`.
//! Source: paper 001, section 5.2 and Table 3.

use super::evidence::{Evidence, EvidenceMap, rounded};
use super::facts::{Facts, MeasuredCurve};
use serde::{Deserialize, Serialize};
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::knee::{self, CostRatio, Level};
use uflip_measure::pattern::Baseline;

/// Where random writes are cheap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locality {
    /// The largest TargetSize with cheap random writes.
    pub area_bytes: Option<u64>,
    /// Their cost there relative to SW.
    pub factor: Option<f64>,
    /// The largest cost within the area relative to SW.
    pub worst_factor: Option<f64>,
    /// Of each figure.
    pub evidence: EvidenceMap,
}

/// How many sequential streams of writes are cheap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Partitions {
    /// The most before the cost jumps.
    pub count: Option<u64>,
    /// Their cost relative to SW.
    pub factor: Option<f64>,
    /// Of each figure.
    pub evidence: EvidenceMap,
}

/// What the order of writes costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderFigures {
    /// Incr = -1 relative to SW.
    pub reverse_factor: Option<f64>,
    /// Incr = 0 relative to SW.
    pub in_place_factor: Option<f64>,
    /// Gaps of 1 MiB to 8 MiB relative to RW.
    pub large_incr_factor: Option<f64>,
    /// Of each figure.
    pub evidence: EvidenceMap,
}

/// What alignment costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// The smallest unit that takes most of the penalty.
    pub unit_bytes: Option<u64>,
    /// The largest cost of other shifts relative to aligned IOs.
    pub penalty_factor: Option<f64>,
    /// The baseline on which it is largest.
    pub baseline: Option<Baseline>,
    /// Every unit with a penalty of its own on that baseline, ascending.
    #[serde(default)]
    pub levels: Vec<UnitPenalty>,
    /// Of each figure.
    pub evidence: EvidenceMap,
}

/// A unit, and what IOs cost that are aligned to all smaller ones but not to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitPenalty {
    /// The unit.
    pub unit_bytes: u64,
    /// Relative to aligned IOs.
    pub penalty_factor: f64,
    /// Its interval; None where an end is open.
    pub ci95: Option<[f64; 2]>,
}

fn unit_penalty(level: &knee::AlignmentLevel) -> Option<UnitPenalty> {
    let CostRatio { ratio, low, high } = level.penalty;
    Some(UnitPenalty {
        unit_bytes: u64::try_from(level.unit_bytes).ok()?,
        penalty_factor: rounded(ratio),
        ci95: high.is_finite().then(|| [rounded(low), rounded(high)]),
    })
}

/// A figure and its evidence.
fn put(map: &mut EvidenceMap, name: &str, evidence: Evidence) {
    map.insert(name.into(), evidence);
}

/// Evidence of a factor.
fn of_factor(evidence: &Evidence, factor: &CostRatio) -> Evidence {
    evidence.clone().with_ci95(rounded(factor.low), rounded(factor.high))
}

/// Evidence with the runs of these values and of two baselines.
fn rests_on(
    facts: &Facts,
    rule: &str,
    curve: &MeasuredCurve,
    values: &[i64],
    baselines: &[Baseline],
) -> Evidence {
    let runs = facts.evidence(rule, baselines).runs;
    Evidence::new(rule, curve.runs_at(values).into_iter().chain(runs))
}

/// SW, RW and SW or RW over a parameter: what most knees need.
fn writes(
    facts: &Facts,
    micro: MicroBenchmark,
    baseline: Baseline,
) -> Option<(&MeasuredCurve, &Level, &Level)> {
    let curve = facts.curve(micro, baseline)?;
    Some((curve, facts.level(Baseline::Sw)?, facts.level(Baseline::Rw)?))
}

/// Rule "locality-area".
pub(super) fn locality(facts: &Facts) -> Locality {
    let mut found = Locality::default();
    let Some((curve, sw, rw)) = writes(facts, MicroBenchmark::Locality, Baseline::Rw) else { return found };
    let both = [Baseline::Sw, Baseline::Rw];
    let Some(knee) = knee::locality(&curve.points(), rw, sw) else {
        let values: Vec<i64> = curve.points.iter().map(|p| p.value).collect();
        put(&mut found.evidence, "area_bytes", rests_on(facts, "locality-area", curve, &values, &both));
        return found;
    };
    let evidence = rests_on(facts, "locality-area", curve, &knee.rests_on, &both);
    let least = knee.at_least.map_or(0.0, |v| v as f64);
    put(&mut found.evidence, "area_bytes", evidence.clone().with_range(least, knee.at_most as f64));
    put(&mut found.evidence, "factor", of_factor(&evidence, &knee.factor));
    put(&mut found.evidence, "worst_factor", of_factor(&evidence, &knee.worst_factor));
    found.area_bytes = u64::try_from(knee.value).ok();
    found.factor = Some(rounded(knee.factor.ratio));
    found.worst_factor = Some(rounded(knee.worst_factor.ratio));
    found
}

/// Rule "partition-knee".
pub(super) fn partitions(facts: &Facts) -> Partitions {
    let mut found = Partitions::default();
    let Some((curve, sw, rw)) = writes(facts, MicroBenchmark::Partitioning, Baseline::Sw) else {
        return found;
    };
    let both = [Baseline::Sw, Baseline::Rw];
    let Some(knee) = knee::partitions(&curve.points(), sw, rw) else {
        put(&mut found.evidence, "count", rests_on(facts, "partition-knee", curve, &[1, 2], &both));
        return found;
    };
    let evidence = rests_on(facts, "partition-knee", curve, &knee.rests_on, &both);
    let least = knee.at_least.map_or(0.0, |v| v as f64);
    put(&mut found.evidence, "count", evidence.clone().with_range(least, knee.at_most as f64));
    put(&mut found.evidence, "factor", of_factor(&evidence, &knee.factor));
    found.count = u64::try_from(knee.value).ok();
    found.factor = Some(rounded(knee.factor.ratio));
    found
}

/// Rule "order-factors".
pub(super) fn order(facts: &Facts) -> OrderFigures {
    let mut found = OrderFigures::default();
    let Some((curve, sw, rw)) = writes(facts, MicroBenchmark::Order, Baseline::Sw) else { return found };
    let mut one = |name: &str, at: Option<(i64, CostRatio)>, to: Baseline| {
        let (value, factor) = at?;
        let evidence = rests_on(facts, "order-factors", curve, &[value], &[to]);
        put(&mut found.evidence, name, of_factor(&evidence, &factor));
        Some(rounded(factor.ratio))
    };
    let to_sw = |incr| curve.at(incr).and_then(|p| Some((incr, knee::ratio(&p.level, sw)?)));
    let reverse_factor = one("reverse_factor", to_sw(-1), Baseline::Sw);
    let in_place_factor = one("in_place_factor", to_sw(0), Baseline::Sw);
    let large_incr_factor = one("large_incr_factor", large_incr(facts, curve, rw), Baseline::Rw);
    OrderFigures { reverse_factor, in_place_factor, large_incr_factor, ..found }
}

/// The most expensive of the gaps from 1 MiB to 8 MiB, relative to RW.
fn large_incr(facts: &Facts, curve: &MeasuredCurve, rw: &Level) -> Option<(i64, CostRatio)> {
    let step = facts.io_size_bytes.and_then(|b| i64::try_from(b).ok())?;
    let large = curve.points.iter().filter(|p| (1 << 20..=8 << 20).contains(&p.value.saturating_mul(step)));
    let factors = large.filter_map(|p| Some((p.value, knee::ratio(&p.level, rw)?)));
    factors.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
}

/// Rule "alignment-unit": the baseline with the largest penalty.
pub(super) fn alignment(facts: &Facts) -> Alignment {
    let io_size = facts.io_size_bytes.and_then(|b| i64::try_from(b).ok());
    let mut worst: Option<(knee::AlignmentPenalty, Baseline)> = None;
    let mut looked_at = Vec::new();
    for baseline in Baseline::ALL {
        let Some(curve) = facts.curve(MicroBenchmark::Alignment, baseline) else { continue };
        looked_at.extend(curve.runs());
        // A shift by IOSize is aligned, and measured beside the others.
        let aligned = io_size.and_then(|b| curve.at(b)).map(|p| &p.level).or_else(|| facts.level(baseline));
        let Some(found) = aligned.and_then(|a| knee::alignment(&curve.points(), a)) else { continue };
        if worst.as_ref().is_none_or(|(w, _)| found.penalty.ratio > w.penalty.ratio) {
            worst = Some((found, baseline));
        }
    }
    let mut evidence = EvidenceMap::new();
    let Some((found, baseline)) = worst else {
        if !looked_at.is_empty() {
            put(&mut evidence, "unit_bytes", Evidence::new("alignment-unit", looked_at));
        }
        return Alignment { evidence, ..Alignment::default() };
    };
    let runs = facts.curve(MicroBenchmark::Alignment, baseline).map(MeasuredCurve::runs).unwrap_or_default();
    let beside = Evidence::new("alignment-unit", runs);
    put(&mut evidence, "unit_bytes", beside.clone());
    put(&mut evidence, "penalty_factor", of_factor(&beside, &found.penalty));
    Alignment {
        unit_bytes: found.unit_bytes.and_then(|b| u64::try_from(b).ok()),
        penalty_factor: Some(rounded(found.penalty.ratio)),
        baseline: Some(baseline),
        levels: found.levels.iter().filter_map(unit_penalty).collect(),
        evidence,
    }
}

/// Rule "pause-rw", in ms.
pub(super) fn pause_rw(facts: &Facts) -> (Option<f64>, Evidence) {
    let both = [Baseline::Sw, Baseline::Rw];
    let Some((curve, sw, rw)) = writes(facts, MicroBenchmark::Pause, Baseline::Rw) else {
        return (None, Evidence::new("pause-rw", []));
    };
    let Some(found) = knee::pause_rw(&curve.points(), rw, sw) else {
        let values: Vec<i64> = curve.points.iter().map(|p| p.value).collect();
        return (None, rests_on(facts, "pause-rw", curve, &values, &both));
    };
    let values: Vec<i64> = found.above_ns.into_iter().chain([found.pause_ns]).collect();
    let ms = |ns: i64| ns as f64 / 1e6;
    let evidence = rests_on(facts, "pause-rw", curve, &values, &both)
        .with_range(found.above_ns.map_or(0.0, ms), ms(found.pause_ns));
    let between = found.above_ns.and_then(|above| work_left(curve, above, rw, sw));
    let value = between.map_or(ms(found.pause_ns), |ns| (ns / 1e6).min(ms(found.pause_ns)));
    (Some(rounded(value)), evidence)
}

/// The pause that would do, in ns, from the longest that does not: where Pause
/// and response time together take as long there as without a pause, idle time
/// does the work put off at its full rate, and what the response time still has
/// over SW is the work left.
fn work_left(curve: &MeasuredCurve, above: i64, rw: &Level, sw: &Level) -> Option<f64> {
    let left = &curve.at(above)?.level;
    let total = above as f64 + left.mean_ns;
    let same = total <= rw.mean_ns * knee::SAME && total >= rw.mean_ns / knee::SAME;
    same.then_some(total - sw.mean_ns)
}
