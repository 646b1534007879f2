//! What several requests under way gain: throughput by queue depth, the most that
//! is gained over one, and the depth from which no more is.
//!
//! Method: with d requests always under way and a mean response time R, d / R IOs
//! are done a second (J. D. C. Little, "A proof for the queuing formula L = lambda W",
//! 1961); the filling of the queue is left out by IOIgnore. The gain is that over the
//! throughput of depth 1. Enough is the smallest depth measured with 90 % of the best
//! throughput, as for the IOSize in `figures.rs`; where that is the deepest one, it
//! still grows and there is none. Units: IOs a second, ratios, requests.

use super::evidence::{Evidence, EvidenceMap, Per, rounded};
use super::facts::{CurveFacts, Facts, MeasuredCurve};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::knee::{CostRatio, ratio};
use uflip_measure::pattern::Baseline;

/// Of the best throughput: what is enough.
const SATURATED: f64 = 0.9;
/// The rule is called like the micro-benchmark.
const RULE: &str = MicroBenchmark::QueueDepth.name();

/// What several requests under way gain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueFigures {
    /// The best throughput of any depth over that of depth 1.
    pub gain: Per<f64>,
    /// The depth from which throughput no longer grows; None where it does up to the
    /// deepest measured.
    pub enough: Per<u64>,
    /// Of each baseline, by rising depth.
    pub curves: BTreeMap<Baseline, Vec<QueuePoint>>,
    /// None: the evidence is beside each figure.
    #[serde(default, skip_serializing_if = "EvidenceMap::is_empty")]
    pub evidence: EvidenceMap,
}

/// One depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuePoint {
    /// Requests under way.
    pub depth: u64,
    /// Throughput.
    pub ios_per_s: f64,
    /// Its interval; None where the runs are too short for one.
    pub ci95: Option<[f64; 2]>,
    /// Over depth 1; None where that was not measured.
    pub gain: Option<f64>,
    /// The runs behind it.
    pub runs: Vec<u32>,
}

/// IOs a second with `depth` requests of this mean response time.
fn little(depth: i64, mean_ns: f64) -> f64 {
    depth as f64 * 1e9 / mean_ns
}

fn gain_of(one: &CurveFacts, at: &CurveFacts) -> Option<CostRatio> {
    let gain = ratio(&one.level, &at.level)?;
    let depth = at.value as f64;
    Some(CostRatio { ratio: depth * gain.ratio, low: depth * gain.low, high: depth * gain.high })
}

fn point(curve: &MeasuredCurve, at: &CurveFacts) -> Option<QueuePoint> {
    let depth = u64::try_from(at.value).ok()?;
    let [low, high] = [at.level.high_ns, at.level.low_ns].map(|ns| little(at.value, ns));
    let closed = at.level.high_ns.is_finite() && at.level.low_ns > 0.0;
    let gain = curve.at(1).and_then(|one| gain_of(one, at));
    Some(QueuePoint {
        depth,
        ios_per_s: rounded(little(at.value, at.level.mean_ns)),
        ci95: closed.then(|| [rounded(low), rounded(high)]),
        gain: gain.map(|g| rounded(g.ratio)),
        runs: at.runs.clone(),
    })
}

/// The smallest depth with [`SATURATED`] of the best throughput, where deeper ones
/// were measured.
fn enough(points: &[QueuePoint]) -> Option<&QueuePoint> {
    let best = points.iter().map(|p| p.ios_per_s).fold(0.0, f64::max);
    let deepest = points.last()?.depth;
    points.iter().find(|p| p.ios_per_s >= SATURATED * best).filter(|p| p.depth < deepest)
}

/// Rule "queue-depth".
pub(super) fn queue(facts: &Facts) -> QueueFigures {
    let mut all = QueueFigures::default();
    for baseline in Baseline::ALL {
        let Some(curve) = facts.curve(MicroBenchmark::QueueDepth, baseline) else { continue };
        let points: Vec<QueuePoint> = curve.points.iter().filter_map(|at| point(curve, at)).collect();
        let deeper = curve.points.iter().filter(|at| at.value > 1);
        let gains = deeper.filter_map(|at| Some((at, gain_of(curve.at(1)?, at)?)));
        if let Some((at, gain)) = gains.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) {
            let evidence = Evidence::new(RULE, curve.runs_at(&[1, at.value]))
                .with_ci95(rounded(gain.low), rounded(gain.high));
            all.gain.set(baseline, Some(rounded(gain.ratio)), evidence);
        }
        let depth = enough(&points).map(|p| p.depth);
        all.enough.set(baseline, depth, Evidence::new(RULE, curve.runs()));
        all.curves.insert(baseline, points);
    }
    all
}
