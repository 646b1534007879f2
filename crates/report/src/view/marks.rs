//! What the profile reads off a micro-benchmark's curves, as marks to be drawn
//! into them: the knee of the locality area, the last good number of
//! partitions, the alignment unit, the sizes from which on larger IOs hardly
//! pay, the factors of the orders, the pause, the best and worst gains.
//!
//! Method: each mark is a figure of `profile.json`; nothing is found here. The
//! levels that a figure is told relative to (SW, RW) are marks too.

use super::{Section, words};
use serde::{Deserialize, Serialize};
use uflip_analysis::profile::{Effect, Profile};
use uflip_device::Bytes;
use uflip_measure::MicroBenchmark;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::CurveName;

/// How a mark is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// Everything up to a value of the parameter.
    UpTo,
    /// A value of the parameter.
    Value,
    /// A point of the curve of `baseline`.
    Point,
    /// A response time, in ns.
    Level,
}

/// A figure to be drawn into a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChartMark {
    /// How.
    pub kind: MarkKind,
    /// Whose figure it is: `SR`, …
    pub baseline: CurveName,
    /// The value of the parameter, or ns for a level.
    pub at: f64,
    /// A word or two for the chart.
    pub label: String,
}

fn mark(kind: MarkKind, baseline: impl Into<CurveName>, at: f64, label: impl Into<String>) -> ChartMark {
    ChartMark { kind, baseline: baseline.into(), at, label: label.into() }
}

/// The marks of a section.
pub(super) fn marks(section: &Section, profile: &Profile) -> Vec<ChartMark> {
    match section.micro() {
        Some(MicroBenchmark::Granularity) => granularity(profile),
        Some(MicroBenchmark::Alignment) => alignment(profile),
        Some(MicroBenchmark::Locality) => {
            let area = profile.locality.area_bytes;
            let area =
                area.map(|b| mark(MarkKind::UpTo, Baseline::Rw, b as f64, format!("area {}", Bytes(b))));
            area.into_iter().chain(level(profile, Baseline::Sw)).collect()
        }
        Some(MicroBenchmark::Partitioning) => {
            let last = profile.partitions.count;
            let last = last.map(|n| mark(MarkKind::UpTo, Baseline::Sw, n as f64, format!("up to {n}")));
            last.into_iter().chain(level(profile, Baseline::Rw)).collect()
        }
        Some(MicroBenchmark::Order) => order(section, profile),
        Some(MicroBenchmark::Parallelism) => gains(&profile.parallelism),
        Some(MicroBenchmark::Mix) => gains(&profile.mix),
        Some(MicroBenchmark::QueueDepth) => {
            let enough = |b: Baseline| Some((b, profile.queue_depth.enough.of(b)?));
            let enough = Baseline::ALL.into_iter().filter_map(enough);
            enough.map(|(b, depth)| mark(MarkKind::Point, b, depth as f64, "enough")).collect()
        }
        Some(MicroBenchmark::Pause) => {
            let pause = profile.pause_rw_ms.map(|ms| {
                mark(MarkKind::Value, Baseline::Rw, ms * 1e6, format!("{} pause", words::time(ms * 1e6)))
            });
            pause.into_iter().chain(level(profile, Baseline::Sw)).collect()
        }
        _ => Vec::new(),
    }
}

/// What a baseline costs, as a level.
fn level(profile: &Profile, baseline: Baseline) -> Option<ChartMark> {
    let ms = profile.baseline_ms.of(baseline)?;
    Some(mark(MarkKind::Level, baseline, ms * 1e6, baseline.name()))
}

fn granularity(profile: &Profile) -> Vec<ChartMark> {
    let size = |b: Baseline| {
        let bytes = profile.granularity.saturation_bytes.of(b)?;
        Some(mark(MarkKind::Point, b, bytes as f64, "90 %"))
    };
    Baseline::ALL.into_iter().filter_map(size).collect()
}

fn alignment(profile: &Profile) -> Vec<ChartMark> {
    let a = &profile.alignment;
    let baseline = a.baseline.unwrap_or(Baseline::Rw);
    let unit = a.penalty_factor.and(a.unit_bytes);
    unit.map(|b| mark(MarkKind::Value, baseline, b as f64, format!("unit {}", Bytes(b))))
        .into_iter()
        .collect()
}

fn order(section: &Section, profile: &Profile) -> Vec<ChartMark> {
    let o = &profile.order;
    let has = |incr: i64| section.series.iter().any(|s| s.points.iter().any(|p| p.value == incr));
    let factor = |incr: i64, factor: Option<f64>, name: &str| {
        let text = words::known_times(factor?, o.evidence.get(name));
        has(incr).then(|| mark(MarkKind::Point, Baseline::Sw, incr as f64, text))
    };
    let points =
        [factor(-1, o.reverse_factor, "reverse_factor"), factor(0, o.in_place_factor, "in_place_factor")];
    points.into_iter().flatten().chain(level(profile, Baseline::Sw)).collect()
}

/// The best and the worst gain of all curves.
fn gains(effect: &Effect) -> Vec<ChartMark> {
    let points = || effect.curves.iter().flat_map(|(name, points)| points.iter().map(move |p| (*name, p)));
    let at = |wanted: Option<f64>| {
        let (name, point) = points().find(|(_, p)| Some(p.gain) == wanted)?;
        Some(mark(MarkKind::Point, name, point.value as f64, words::times(point.gain)))
    };
    [at(effect.best), at(effect.worst)].into_iter().flatten().collect()
}
