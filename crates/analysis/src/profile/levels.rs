//! The levels that a profile rests on, for those who draw or compare them: what
//! each baseline and each point of each curve costs, with intervals, and the
//! percentiles of the baselines.
//!
//! Method of the percentiles: nearest rank over the running phases of all
//! repeats. Their intervals are order statistics (W. J. Conover, *Practical
//! Nonparametric Statistics*, 1971, section 3.2), with as many IOs as would be
//! independent: the variance of the IOs over that of the level's mean, whose
//! interval knows of correlation and of repeats that differ. A percentile too
//! far out for an upper end has no interval. Units: nanoseconds.

use super::evidence::Evidence;
use super::facts::Facts;
use crate::spectrum::Spectrum;
use uflip_measure::Baseline;
use uflip_measure::detect::knee::Level;
use uflip_measure::run::CurveId;

/// The percentiles told of a baseline, in percent, with their names.
pub const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// A figure in nanoseconds with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The mean or percentile.
    pub ns: f64,
    /// Its 95 % interval; None where it is open.
    pub ci95_ns: Option<[f64; 2]>,
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
    /// In the order of [`PERCENTILES`].
    pub percentiles: Vec<Cost>,
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

fn cost(level: &Level, runs: &[u32]) -> Cost {
    let closed = level.low_ns.is_finite() && level.high_ns.is_finite();
    Cost {
        ns: level.mean_ns,
        ci95_ns: closed.then_some([level.low_ns, level.high_ns]),
        runs: Evidence::new("", runs.iter().copied()).runs,
    }
}

/// What `facts` say.
pub(super) fn levels(facts: &Facts) -> Levels {
    let baselines = facts.baselines.iter().map(|b| BaselineLevels {
        baseline: b.baseline,
        mean: cost(&b.level, &b.runs),
        percentiles: b.percentiles.iter().map(|level| cost(level, &b.runs)).collect(),
    });
    let curves = facts.curves.iter().map(|c| CurveUncertainty {
        id: c.id.clone(),
        points: c
            .points
            .iter()
            .map(|p| PointUncertainty {
                value: p.value,
                label: p.label.clone(),
                mean: cost(&p.level, &p.runs),
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

/// The percentiles of the running phases of a baseline whose level is `level`.
pub(super) fn percentiles(phases: Vec<Vec<u64>>, level: &Level) -> Vec<Level> {
    let mut sorted: Vec<u64> = phases
        .into_iter()
        .reduce(|mut all, more| {
            all.extend(more);
            all
        })
        .unwrap_or_default();
    if sorted.is_empty() {
        return Vec::new();
    }
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let mean = sorted.iter().map(|v| *v as f64).sum::<f64>() / n;
    let variance = sorted.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    at_parts(n, variance, level, |part| at(&sorted, part))
}

/// The percentiles of IOs that were counted, at most 0.1 % too high.
pub(super) fn percentiles_of_counts(counts: &Spectrum, level: &Level) -> Vec<Level> {
    let Some(summed) = counts.summed() else { return Vec::new() };
    let n = counts.n() as f64;
    let value = |part: f64| {
        let rank = (part * n - 1e-9).ceil().max(1.0) as u64;
        counts.at_rank(rank).unwrap_or(0) as f64
    };
    at_parts(n, summed.variance, level, value)
}

/// The percentiles of `n` IOs of this variance; `at` gives the value at a part.
fn at_parts(n: f64, variance: f64, level: &Level, at: impl Fn(f64) -> f64) -> Vec<Level> {
    let error = (level.high_ns - level.low_ns) / 2.0 / 1.96;
    let independent = if error > 0.0 { (variance / (error * error)).clamp(1.0, n) } else { n };
    let one = |(_, percent): &(&str, f64)| {
        let part = percent / 100.0;
        let reach = 1.96 * (part * (1.0 - part) / independent).sqrt();
        let open = part + reach >= 1.0 || !error.is_finite();
        let high_ns = if open { f64::INFINITY } else { at(part + reach) };
        Level { mean_ns: at(part), low_ns: at((part - reach).max(0.0)), high_ns }
    };
    PERCENTILES.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_nearest_rank_and_their_intervals_of_as_many_ios_as_are_independent() {
        let values: Vec<u64> = (1..=1000).collect();
        // The mean's standard error as of independent values: s / sqrt(n).
        let error = 288.8 / 1000f64.sqrt();
        let level = Level { mean_ns: 500.5, low_ns: 500.5 - 1.96 * error, high_ns: 500.5 + 1.96 * error };
        let found = percentiles(vec![values[..400].to_vec(), values[400..].to_vec()], &level);
        assert_eq!(found.iter().map(|l| l.mean_ns).collect::<Vec<_>>(), [500.0, 900.0, 990.0, 999.0]);
        assert!(
            (found[0].low_ns - 469.0).abs() <= 1.0 && (found[0].high_ns - 531.0).abs() <= 1.0,
            "{found:?}"
        );
        assert!(found[3].high_ns.is_infinite(), "a thousand IOs say little of the slowest in a thousand");
        // With a fourth of them independent the interval is twice as wide.
        let wide = Level { low_ns: 500.5 - 3.92 * error, high_ns: 500.5 + 3.92 * error, ..level };
        let wider = percentiles(vec![values], &wide);
        assert!((wider[0].high_ns - 562.0).abs() <= 1.5, "{wider:?}");
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert!(percentiles(Vec::new(), &Level { mean_ns: 0.0, low_ns: 0.0, high_ns: 0.0 }).is_empty());
    }
}
