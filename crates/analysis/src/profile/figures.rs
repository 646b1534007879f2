//! The figures that need no knee: baselines, phases, lengths, the pause between
//! runs, and the granularity lines.
//!
//! Source: paper 001, sections 4.2 and 4.3 (phases, IOCount, IOIgnore, pause),
//! 5.2 (Table 3; "response time is linear with a small latency").

use super::evidence::{Evidence, EvidenceMap, Per, rounded};
use super::facts::Facts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_device::Nanos;
use uflip_measure::Step;
use uflip_measure::detect::knee::{self, Estimate};
use uflip_measure::pattern::{Baseline, Pattern};
use uflip_measure::run::RunSpec;
use uflip_measure::{Curve, MicroBenchmark};
use uflip_store::contents::{RunRow, StoreContents};

/// `baseline_ms`: rule "baseline-mean".
pub(super) fn baseline_ms(facts: &Facts) -> Per<f64> {
    let mut per = Per::default();
    for b in &facts.baselines {
        let evidence = Evidence::new("baseline-mean", b.runs.iter().copied())
            .with_ci95(rounded(b.level.low_ns / 1e6), rounded(b.level.high_ns / 1e6))
            .with_freedom(b.freedom)
            .with_n(b.n);
        per.set(b.baseline, Some(rounded(b.level.mean_ns / 1e6)), evidence);
    }
    per
}

/// The smallest and the largest of what repeats found.
fn between(evidence: Evidence, found: impl Iterator<Item = f64> + Clone) -> Evidence {
    let low = found.clone().fold(f64::INFINITY, f64::min);
    evidence.with_range(low, found.fold(f64::NEG_INFINITY, f64::max))
}

/// `start_up_ios`: rule "start-up".
pub(super) fn start_up_ios(facts: &Facts) -> Per<u64> {
    let mut per = Per::default();
    for b in &facts.baselines {
        let found = b.repeats.iter().filter_map(|r| r.start_up).map(|s| s.ios as f64);
        let evidence = between(Evidence::new("start-up", b.runs.iter().copied()), found);
        per.set(b.baseline, b.start_up, evidence);
    }
    per
}

/// `period_ios`: rule "period".
pub(super) fn period_ios(facts: &Facts) -> Per<f64> {
    let mut per = Per::default();
    for b in &facts.baselines {
        let found = b.repeats.iter().filter_map(|r| r.period).map(rounded);
        let evidence = between(Evidence::new("period", b.runs.iter().copied()), found);
        per.set(b.baseline, b.period.map(rounded), evidence);
    }
    per
}

/// IOIgnore or IOCount as used: rule "lengths".
pub(super) fn lengths(contents: &StoreContents, of: impl Fn(&RunSpec) -> u64) -> Per<u64> {
    let mut per = Per::default();
    for baseline in Baseline::ALL {
        let plain = |r: &&RunRow| {
            super::open_loop::is_closed(r)
                && !r.spec.belongs.prepares()
                && r.spec.belongs.curve() == Some(Curve::One(baseline))
                && matches!(r.spec.pattern(), Some(Pattern::Basic(_)))
        };
        let all: Vec<&RunRow> = contents.runs.iter().filter(plain).collect();
        // The baselines' own runs may be longer.
        let experiment = |r: &RunRow| r.spec.baseline().is_none();
        let experiments = all.iter().any(|r| experiment(r));
        let counted = all.iter().filter(|r| !experiments || experiment(r));
        let mut uses: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        counted.for_each(|r| uses.entry(of(&r.spec)).or_default().push(r.spec.id));
        let Some((least, most)) = uses.first_key_value().zip(uses.last_key_value()) else { continue };
        let range = (*least.0 as f64, *most.0 as f64);
        let Some((value, runs)) = uses.iter().max_by_key(|(_, runs)| runs.len()) else { continue };
        // A few runs stand for all: they are alike in this.
        let evidence = Evidence::new("lengths", runs.iter().copied().take(8)).with_range(range.0, range.1);
        per.set(baseline, Some(*value), evidence);
    }
    per
}

/// `pause_between_runs_s`: rule "pause-between-runs".
pub(super) fn pause_between_runs(contents: &StoreContents) -> (Option<f64>, Evidence) {
    let evidence = Evidence::new("pause-between-runs", []);
    let Some(plan) = &contents.plan else { return (None, evidence) };
    if plan.runs().count() < 2 {
        return (None, evidence);
    }
    let mut uses: BTreeMap<Nanos, usize> = BTreeMap::new();
    for step in &plan.steps {
        if let Step::Pause { nanos } = step {
            *uses.entry(*nanos).or_default() += 1;
        }
    }
    let usual = uses.iter().max_by_key(|(_, count)| **count).map_or(Nanos::ZERO, |(nanos, _)| *nanos);
    let seconds = |n: &Nanos| n.0 as f64 / 1e9;
    let ends = uses.first_key_value().zip(uses.last_key_value());
    let evidence = match ends {
        Some((least, most)) => evidence.with_range(seconds(least.0), seconds(most.0)),
        None => evidence,
    };
    (Some(seconds(&usual)), evidence)
}

/// What an IO costs by its size: a line for each baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Granularity {
    /// Cost of an IO of no size.
    pub latency_us: Per<f64>,
    /// Cost of each KiB.
    pub us_per_kib: Per<f64>,
    /// The smallest IOSize with 90 % of the best throughput measured.
    pub saturation_bytes: Per<u64>,
    /// Whether a line describes the curve: no point is off by more than a fifth.
    pub linear: Per<bool>,
    /// None: the evidence is beside each figure.
    #[serde(default, skip_serializing_if = "EvidenceMap::is_empty")]
    pub evidence: EvidenceMap,
}

/// `granularity`: rule "granularity-line".
pub(super) fn granularity(facts: &Facts) -> Granularity {
    let mut all = Granularity::default();
    for baseline in Baseline::ALL {
        let Some(curve) = facts.curve(MicroBenchmark::Granularity, baseline) else { continue };
        let Some(line) = knee::granularity(&curve.points()) else { continue };
        let evidence = |e: &Estimate| {
            Evidence::new("granularity-line", curve.runs()).with_ci95(rounded(e.low), rounded(e.high))
        };
        let (latency, slope) = (&line.latency_us, &line.us_per_kib);
        all.latency_us.set(baseline, Some(rounded(latency.value)), evidence(latency));
        all.us_per_kib.set(baseline, Some(rounded(slope.value)), evidence(slope));
        let at = Evidence::new("granularity-line", curve.runs_at(&[line.saturation_bytes]));
        all.saturation_bytes.set(baseline, u64::try_from(line.saturation_bytes).ok(), at);
        all.linear.set(baseline, Some(line.linear), Evidence::new("granularity-line", curve.runs()));
    }
    all
}
