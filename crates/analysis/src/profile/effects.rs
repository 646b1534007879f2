//! What parallelism and mixes gain or lose.
//!
//! Method: a gain above 1 is throughput won, below 1 lost. Parallelism: d
//! streams that each wait for their own IO do d IOs in one mean response time,
//! so the gain over one stream is d x cost(1) / cost(d). Mix: what the IOs of
//! both patterns cost apart, each at its own baseline's mean, over what they
//! cost mixed. The one number of each is the gain farthest from 1, as a ratio,
//! among those whose interval, corrected for the number of points, excludes 1; 1 where all
//! lie within x0.8 to x1.25 by their whole intervals; else it is not known.
//!
//! Source: paper 001, section 3.2 (6, 7), section 5.2 ("Other Results"); paper
//! 003, section 4 ("submitting IOs in parallel is beneficial"). Units: ratios.

use super::evidence::{Evidence, EvidenceMap, rounded};
use super::facts::{CurveFacts, Facts, MeasuredCurve};
use super::verdicts::apart;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_measure::detect::knee::{CostRatio, SAME};
use uflip_measure::detect::level::PRINTED;
use uflip_measure::detect::verdict::{HeldAgainst, corrected};
use uflip_measure::{Curve, MicroBenchmark};

/// What a varying parameter gains or loses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The best gain or the worst loss, whichever is farther from 1; None where it was
    /// measured and is not decided.
    pub gain: Option<f64>,
    /// The curve where that is.
    pub baseline: Option<Curve>,
    /// The value where that is.
    pub value: Option<i64>,
    /// The best gain of all points.
    pub best: Option<f64>,
    /// The worst loss of all points.
    pub worst: Option<f64>,
    /// The points of each curve.
    pub curves: BTreeMap<Curve, Vec<EffectPoint>>,
    /// Of `gain`, `best` and `worst`.
    pub evidence: EvidenceMap,
}

/// One point of an effect's curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectPoint {
    /// ParallelDegree, or a mix's ratio as in `runs.ndjson`.
    pub value: i64,
    /// The value as a person reads it.
    pub label: String,
    /// Mean response time.
    pub mean_ms: f64,
    /// Above 1 gained, below 1 lost.
    pub gain: f64,
    /// The gain's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The runs behind it.
    pub runs: Vec<u32>,
}

/// A gain and where it was found.
struct FoundEffect<'a> {
    curve: &'a MeasuredCurve,
    at: &'a CurveFacts,
    gain: CostRatio,
    compared: HeldAgainst,
}

impl FoundEffect<'_> {
    fn point(&self, rule: &str) -> EffectPoint {
        EffectPoint {
            value: self.at.value,
            label: self.at.label.clone(),
            mean_ms: rounded(self.at.level.mean_ns / 1e6),
            gain: rounded(self.gain.ratio),
            ci95: self.evidence(rule).ci95,
            runs: self.at.runs.clone(),
        }
    }

    fn evidence(&self, rule: &str) -> Evidence {
        Evidence::new(rule, self.at.runs.iter().copied())
            .with_ci95(rounded(self.gain.low), rounded(self.gain.high))
    }

    /// Whether it is one, of so many that were looked at.
    fn certain(&self, of: usize) -> bool {
        self.compared.at(corrected(of)).is_some_and(|gain| gain.low > 1.0 || gain.high < 1.0)
    }

    /// Whether it is none.
    fn is_none(&self) -> bool {
        self.gain.low > 1.0 / SAME && self.gain.high < SAME
    }
}

fn found<'a>(curve: &'a MeasuredCurve, at: &'a CurveFacts, compared: HeldAgainst) -> Option<FoundEffect<'a>> {
    Some(FoundEffect { curve, at, gain: compared.at(PRINTED)?, compared })
}

/// Rule "parallelism".
pub(super) fn parallelism(facts: &Facts) -> Effect {
    let mut all = Vec::new();
    for curve in facts.curves_of(MicroBenchmark::Parallelism) {
        let Some(one) = curve.at(1) else { continue };
        for at in curve.points.iter().filter(|p| p.value > 1) {
            let gain = HeldAgainst { times: at.value as f64, ..HeldAgainst::new(one.known(), at.known()) };
            all.extend(found(curve, at, gain));
        }
    }
    effect(MicroBenchmark::Parallelism, &all)
}

/// Rule "mix".
pub(super) fn mix(facts: &Facts) -> Effect {
    let mut all = Vec::new();
    for curve in facts.curves_of(MicroBenchmark::Mix) {
        for at in &curve.points {
            let apart = apart(facts, curve.id.curve, at.by_pattern);
            all.extend(apart.and_then(|apart| found(curve, at, HeldAgainst::new(apart, at.known()))));
        }
    }
    effect(MicroBenchmark::Mix, &all)
}

/// By the rule that is called like the micro-benchmark.
fn effect(micro: MicroBenchmark, all: &[FoundEffect<'_>]) -> Effect {
    let rule = micro.name();
    let mut effect = Effect::default();
    for found in all {
        effect.curves.entry(found.curve.id.curve).or_default().push(found.point(rule));
    }
    let size = |f: &&FoundEffect<'_>| f.gain.ratio.ln();
    let certain = || all.iter().filter(|f| f.certain(all.len()));
    let best = certain().max_by(|a, b| size(a).total_cmp(&size(b)));
    let worst = certain().min_by(|a, b| size(a).total_cmp(&size(b)));
    let farthest = certain().max_by(|a, b| size(a).abs().total_cmp(&size(b).abs()));
    let measured = !all.is_empty();
    let none = measured && all.iter().all(FoundEffect::is_none);
    let value = |f: Option<&FoundEffect<'_>>| f.map(|f| rounded(f.gain.ratio)).or(none.then_some(1.0));
    let no_better = measured && all.iter().all(|f| f.gain.high < SAME);
    let no_worse = measured && all.iter().all(|f| f.gain.low > 1.0 / SAME);
    let best_gain = best.filter(|f| f.gain.ratio > 1.0);
    let worst_gain = worst.filter(|f| f.gain.ratio < 1.0);
    effect.best = value(best_gain).or(no_better.then_some(1.0));
    effect.worst = value(worst_gain).or(no_worse.then_some(1.0));
    effect.gain = value(farthest);
    effect.baseline = farthest.map(|f| f.curve.id.curve);
    effect.value = farthest.map(|f| f.at.value);
    let everything = || Evidence::new(rule, all.iter().flat_map(|f| f.at.runs.clone()));
    for (name, found) in [("gain", farthest), ("best", best), ("worst", worst)] {
        if measured {
            effect.evidence.insert(name.into(), found.map_or_else(everything, |f| f.evidence(rule)));
        }
    }
    effect
}
