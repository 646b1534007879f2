//! What the runs of a store say, as the rules of the profile take it: levels
//! with intervals, start-up phases, periods, curves. Made by [`super::gather`].
//!
//! Units: nanoseconds.

use super::evidence::Evidence;
use serde::{Deserialize, Serialize};
use uflip_measure::detect::between::Between;
use uflip_measure::detect::knee::{KneePoint, Level};
use uflip_measure::detect::level::KnownLevel;
use uflip_measure::detect::spread::Spread;
use uflip_measure::detect::startup::StartUp;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::{CurveId, RunSection};
use uflip_measure::{Curve, MicroBenchmark};

/// Repeats that differ by no more than this are alike.
/// Source: paper 001, section 4.3: "within 5 %".
pub(super) const SPREAD_LIMIT: f64 = 0.05;

/// What changes between equal runs; None where no pattern was run often enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BetweenRuns {
    /// Between runs that read.
    pub reads: Option<Between>,
    /// Between runs that write.
    pub writes: Option<Between>,
}

/// Everything the rules go by.
pub(super) struct Facts {
    pub(super) io_size_bytes: Option<u64>,
    pub(super) baselines: Vec<BaselineFacts>,
    pub(super) curves: Vec<MeasuredCurve>,
    /// What changes between equal runs.
    pub(super) between: BetweenRuns,
}

/// What the runs of one baseline say.
pub(super) struct BaselineFacts {
    pub(super) baseline: Baseline,
    /// Of all repeats.
    pub(super) level: Level,
    /// Degrees of freedom of its interval.
    pub(super) freedom: f64,
    /// IOs in `level`.
    pub(super) n: u64,
    pub(super) runs: Vec<u32>,
    /// Each repeat's own, in order.
    pub(super) repeats: Vec<Repeat>,
    /// The median of the start-up phases, where most repeats have one.
    pub(super) start_up: Option<u64>,
    /// The same for the period.
    pub(super) period: Option<f64>,
    pub(super) spread: Option<Spread>,
    /// In the order of [`super::levels::PERCENTILES`].
    pub(super) percentiles: Vec<KnownLevel>,
}

/// One repeat of a baseline.
pub(super) struct Repeat {
    pub(super) run: u32,
    pub(super) io_ignore: u64,
    /// IOs of the whole run.
    pub(super) ios: usize,
    pub(super) known: KnownLevel,
    pub(super) start_up: Option<StartUp>,
    pub(super) period: Option<f64>,
}

/// A micro-benchmark's curve.
pub(super) struct MeasuredCurve {
    /// Of which chart, and which of its curves.
    pub(super) id: CurveId,
    /// By rising value.
    pub(super) points: Vec<CurveFacts>,
}

/// One value on a curve.
pub(super) struct CurveFacts {
    pub(super) value: i64,
    pub(super) label: String,
    pub(super) level: Level,
    /// Degrees of freedom of its interval.
    pub(super) freedom: f64,
    /// Each run's own level, in the order of `runs`.
    pub(super) repeats: Vec<KnownLevel>,
    /// The smallest and the largest of the repeats' means that `level` is the mean of.
    pub(super) repeats_ns: [f64; 2],
    pub(super) runs: Vec<u32>,
    /// IOs of each pattern of a mix.
    pub(super) by_pattern: [u64; 2],
    pub(super) spread: Option<Spread>,
}

impl BaselineFacts {
    /// The level, for intervals at another confidence.
    pub(super) fn known(&self) -> KnownLevel {
        KnownLevel { level: self.level, freedom: self.freedom }
    }
}

impl CurveFacts {
    /// The level, for intervals at another confidence.
    pub(super) fn known(&self) -> KnownLevel {
        KnownLevel { level: self.level, freedom: self.freedom }
    }
}

impl Facts {
    pub(super) fn baseline(&self, baseline: Baseline) -> Option<&BaselineFacts> {
        self.baselines.iter().find(|b| b.baseline == baseline)
    }

    pub(super) fn level(&self, baseline: Baseline) -> Option<&Level> {
        self.baseline(baseline).map(|b| &b.level)
    }

    /// The curve of a baseline in a micro-benchmark, where it has points.
    pub(super) fn curve(&self, micro: MicroBenchmark, baseline: Baseline) -> Option<&MeasuredCurve> {
        self.curves_of(micro).find(|c| c.id.curve == Curve::One(baseline))
    }

    pub(super) fn curves_of(&self, micro: MicroBenchmark) -> impl Iterator<Item = &MeasuredCurve> {
        self.curves.iter().filter(move |c| c.id.section == RunSection::Micro(micro))
    }

    /// Evidence that rests on the runs of some baselines.
    pub(super) fn evidence(&self, rule: &str, baselines: &[Baseline]) -> Evidence {
        let runs = baselines.iter().filter_map(|b| self.baseline(*b)).flat_map(|b| b.runs.clone());
        Evidence::new(rule, runs)
    }
}

impl MeasuredCurve {
    /// As the knees want it.
    pub(super) fn points(&self) -> Vec<KneePoint> {
        self.points.iter().map(|p| KneePoint { value: p.value, cost: p.level }).collect()
    }

    pub(super) fn at(&self, value: i64) -> Option<&CurveFacts> {
        self.points.iter().find(|p| p.value == value)
    }

    /// The runs of these values.
    pub(super) fn runs_at(&self, values: &[i64]) -> Vec<u32> {
        values.iter().filter_map(|v| self.at(*v)).flat_map(|p| p.runs.clone()).collect()
    }

    pub(super) fn runs(&self) -> Vec<u32> {
        self.points.iter().flat_map(|p| p.runs.clone()).collect()
    }
}
