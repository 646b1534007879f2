//! The levels that a profile rests on, for those who draw or compare them: what
//! each baseline and each point of each curve costs, with intervals, and the
//! percentiles of the baselines.
//!
//! Method of the percentiles: nearest rank over the running phases of all
//! repeats. Their intervals are order statistics (W. J. Conover, *Practical
//! Nonparametric Statistics*, 1971, section 3.2), with as many IOs as would be
//! independent: those there are over the autocorrelation time of "slower than the
//! percentile" (which is not that of the response times). What changes between runs is
//! added. A percentile with fewer than [`BEYOND`] IOs beyond it is not told; one too
//! far out for an upper end has no interval. Units: nanoseconds.

use super::evidence::Evidence;
use super::facts::Facts;
use crate::spectrum::Spectrum;
use uflip_measure::Baseline;
use uflip_measure::detect::interval::autocorrelation_time;
use uflip_measure::detect::knee::Level;
use uflip_measure::detect::level::KnownLevel;
use uflip_measure::run::CurveId;

/// The percentiles told of a baseline, in percent, with their names.
pub const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// IOs that must lie beyond a percentile for it to be told.
pub const BEYOND: f64 = 20.0;
/// IOs of a run that correlation is looked for in.
const LOOKED_AT: usize = 1 << 16;

/// A figure in nanoseconds with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The mean or percentile.
    pub ns: f64,
    /// Its 95 % interval; None where it is open.
    pub ci95_ns: Option<[f64; 2]>,
    /// Degrees of freedom behind it.
    pub freedom: f64,
    /// The runs behind it.
    pub runs: Vec<u32>,
}

/// One baseline's own runs.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineLevels {
    /// Which.
    pub baseline: Baseline,
    /// The mean of the running phase.
    pub mean: Cost,
    /// In the order of [`PERCENTILES`]; None where too few IOs lie beyond.
    pub percentiles: Vec<Option<Cost>>,
}

/// A micro-benchmark's curve.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveUncertainty {
    /// Of which chart, and which of its curves.
    pub id: CurveId,
    /// By rising value.
    pub points: Vec<PointUncertainty>,
}

/// One point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct PointUncertainty {
    /// The varying parameter's value, as in `runs.ndjson`.
    pub value: i64,
    /// The value as a person reads it.
    pub label: String,
    /// The mean of the running phase.
    pub mean: Cost,
}

/// Everything that was measured, as levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    /// In the papers' order, those that were measured.
    pub baselines: Vec<BaselineLevels>,
    /// In the order of their names.
    pub curves: Vec<CurveUncertainty>,
}

fn cost(KnownLevel { level, freedom }: &KnownLevel, runs: &[u32]) -> Cost {
    let closed = level.low_ns.is_finite() && level.high_ns.is_finite();
    Cost {
        ns: level.mean_ns,
        ci95_ns: closed.then_some([level.low_ns, level.high_ns]),
        freedom: *freedom,
        runs: Evidence::new("", runs.iter().copied()).runs,
    }
}

/// What `facts` say.
pub(super) fn levels(facts: &Facts) -> Levels {
    let told = |b: &super::facts::BaselineFacts, (level, (_, percent)): (&KnownLevel, (&str, f64))| {
        let beyond = b.n as f64 * (1.0 - percent / 100.0);
        (beyond >= BEYOND - 1e-6).then(|| cost(level, &b.runs))
    };
    let baselines = facts.baselines.iter().map(|b| BaselineLevels {
        baseline: b.baseline,
        mean: cost(&b.known(), &b.runs),
        percentiles: b.percentiles.iter().zip(PERCENTILES).map(|one| told(b, one)).collect(),
    });
    let curves = facts.curves.iter().map(|c| CurveUncertainty {
        id: c.id.clone(),
        points: c
            .points
            .iter()
            .map(|p| PointUncertainty {
                value: p.value,
                label: p.label.clone(),
                mean: cost(&p.known(), &p.runs),
            })
            .collect(),
    });
    Levels { baselines: baselines.collect(), curves: curves.collect() }
}

/// The value of nearest rank at `part` (0 to 1) of values in ascending order.
fn at(sorted: &[u64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1] as f64
}

/// IOs that would be independent, of those in `runs`, as far as being slower than `ns` goes.
fn independent(runs: &[&[u64]], ns: f64) -> f64 {
    let of_run = |run: &&[u64]| {
        let looked = &run[..run.len().min(LOOKED_AT)];
        let slower: Vec<f64> = looked.iter().map(|v| f64::from(u8::from(*v as f64 > ns))).collect();
        run.len() as f64 / autocorrelation_time(&slower).unwrap_or(1.0)
    };
    runs.iter().map(of_run).sum()
}

/// The percentiles of the running phases of a baseline's runs.
pub(super) fn percentiles(phases: &[Vec<u64>]) -> Vec<KnownLevel> {
    let mut sorted: Vec<u64> = phases.concat();
    if sorted.is_empty() {
        return Vec::new();
    }
    sorted.sort_unstable();
    let runs: Vec<&[u64]> = phases.iter().map(Vec::as_slice).collect();
    at_parts(|ns| independent(&runs, ns), |part| at(&sorted, part))
}

/// The percentiles of IOs that were counted, at most 0.1 % too high; `windows` are the
/// IOs that were kept one by one.
pub(super) fn percentiles_of_counts(counts: &Spectrum, windows: &[&[u64]]) -> Vec<KnownLevel> {
    let n = counts.n() as f64;
    if n == 0.0 {
        return Vec::new();
    }
    let kept: f64 = windows.iter().map(|window| window.len() as f64).sum();
    let value = |part: f64| {
        let rank = (part * n - 1e-9).ceil().max(1.0) as u64;
        counts.at_rank(rank).unwrap_or(0) as f64
    };
    at_parts(|ns| independent(windows, ns) * n / kept.max(1.0), value)
}

/// The percentiles; `at` gives the value at a part, `independent` how many IOs are.
fn at_parts(independent: impl Fn(f64) -> f64, at: impl Fn(f64) -> f64) -> Vec<KnownLevel> {
    let one = |(_, percent): &(&str, f64)| {
        let part = percent / 100.0;
        let mean_ns = at(part);
        let reach = 1.96 * (part * (1.0 - part) / independent(mean_ns).max(1.0)).sqrt();
        let high_ns = if part + reach >= 1.0 { f64::INFINITY } else { at(part + reach) };
        let level = Level { mean_ns, low_ns: at((part - reach).max(0.0)), high_ns };
        KnownLevel { level, freedom: f64::INFINITY }
    };
    PERCENTILES.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(found: &KnownLevel) -> (f64, f64) {
        (found.level.low_ns, found.level.high_ns)
    }

    #[test]
    fn percentiles_are_of_nearest_rank_and_their_intervals_of_as_many_ios_as_are_independent() {
        // 1 to 1000 in an order without memory.
        let mut values: Vec<u64> = (1..=1000).collect();
        let mut rng = uflip_device::rng::Rng::new(5);
        (1..values.len()).rev().for_each(|at| values.swap(at, rng.below(at as u64 + 1) as usize));
        let found = percentiles(&[values[..400].to_vec(), values[400..].to_vec()]);
        let means: Vec<f64> = found.iter().map(|l| l.level.mean_ns).collect();
        assert_eq!(means, [500.0, 900.0, 990.0, 999.0]);
        let (low, high) = gaps(&found[0]);
        assert!((low - 469.0).abs() <= 3.0 && (high - 531.0).abs() <= 3.0, "{found:?}");
        assert!(
            found[3].level.high_ns.is_infinite(),
            "a thousand IOs say little of the slowest in a thousand"
        );
        // Each IO four times in a row: as many independent ones, of four times as many.
        let lasting: Vec<u64> = values.iter().flat_map(|v| [*v; 4]).collect();
        let (low, high) = gaps(&percentiles(&[lasting])[0]);
        assert!((low - 469.0).abs() <= 8.0 && (high - 531.0).abs() <= 8.0, "{low} {high}");
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert!(percentiles(&[]).is_empty() && percentiles(&[Vec::new()]).is_empty());
        assert!(percentiles_of_counts(&Spectrum::default(), &[]).is_empty());
    }
}
