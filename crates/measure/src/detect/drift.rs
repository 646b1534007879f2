//! Whether something changed between two measurements of the same thing: the
//! state probe before the plan and after it, two repeats, a run and a baseline.
//!
//! Method: the interval of the ratio of two means from the interval of each, by
//! the method of variance estimates recovery on the logarithms (G. Y. Zou and
//! A. Donner, "Construction of confidence limits about effect measures: a
//! general approach", Statistics in Medicine 27, 2008). Needs no distribution
//! beyond the two intervals and keeps their asymmetry.
//!
//! Units: a ratio has none. Limits: both means must be positive and
//! independent of each other.

use super::interval::MeanInterval;
use serde::{Deserialize, Serialize};

/// A mean response time with its interval, however obtained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The mean.
    pub mean_ns: f64,
    /// Lower end of its interval.
    pub low_ns: f64,
    /// Upper end of its interval.
    pub high_ns: f64,
}

impl From<&MeanInterval> for Level {
    fn from(interval: &MeanInterval) -> Level {
        Level { mean_ns: interval.mean_ns, low_ns: interval.low_ns, high_ns: interval.high_ns }
    }
}

/// A ratio and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostRatio {
    /// The ratio of the means.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite where it is open, which is null in files.
    #[serde(deserialize_with = "open_end")]
    pub high: f64,
}

/// JSON has no infinity.
fn open_end<'de, D: serde::Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(input)?.unwrap_or(f64::INFINITY))
}

/// `of` relative to `to`. None where a mean is not positive.
pub fn ratio(of: &Level, to: &Level) -> Option<CostRatio> {
    let positive = |l: &Level| l.mean_ns > 0.0 && l.mean_ns.is_finite();
    if !positive(of) || !positive(to) {
        return None;
    }
    // Distances of the ends in the logarithm; an end at 0 is infinitely far.
    let below = |l: &Level| (l.mean_ns / l.low_ns.max(0.0)).ln().max(0.0);
    let above = |l: &Level| (l.high_ns / l.mean_ns).ln().max(0.0);
    let value = of.mean_ns / to.mean_ns;
    let low = value * (-below(of).hypot(above(to))).exp();
    let high = value * above(of).hypot(below(to)).exp();
    Some(CostRatio { ratio: value, low, high })
}

/// Two probes of the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// The later one relative to the earlier one.
    pub ratio: CostRatio,
    /// The change is certain (the interval excludes 1) and larger than tolerated.
    pub drifted: bool,
    /// No change beyond what is tolerated fits the interval: decidedly stable. Both
    /// false means that the probes were too short to tell.
    pub stable: bool,
}

/// Compares two probes; `tolerance` is the relative change that does not
/// matter, such as 0.05. None where a mean is not positive.
pub fn drift(before: &Level, after: &Level, tolerance: f64) -> Option<Drift> {
    assert!(tolerance >= 0.0, "a tolerance is not negative");
    let ratio = ratio(after, before)?;
    let certain = ratio.low > 1.0 || ratio.high < 1.0;
    let beyond = ratio.ratio > 1.0 + tolerance || ratio.ratio < 1.0 / (1.0 + tolerance);
    let stable = ratio.high <= 1.0 + tolerance && ratio.low >= 1.0 / (1.0 + tolerance);
    Some(Drift { ratio, drifted: certain && beyond, stable })
}

#[cfg(test)]
mod tests {
    use super::super::interval::batch_means;
    use super::super::synthetic::{SyntheticSeries, generate};
    use super::*;

    fn level(mean_ns: f64, relative: f64) -> Level {
        Level { mean_ns, low_ns: mean_ns * (1.0 - relative), high_ns: mean_ns * (1.0 + relative) }
    }

    #[test]
    fn a_change_is_said_only_where_it_is_certain_and_matters() {
        let judge = |after: f64, width: f64| {
            let d = drift(&level(100.0, width), &level(after, width), 0.05).unwrap();
            (d.drifted, d.stable)
        };
        assert_eq!(judge(100.0, 0.01), (false, true));
        assert_eq!(judge(110.0, 0.01), (true, false));
        assert_eq!(judge(90.0, 0.01), (true, false));
        assert_eq!(judge(103.0, 0.001), (false, true));
        assert_eq!(judge(110.0, 0.2), (false, false));
        assert_eq!(drift(&level(0.0, 0.0), &level(1.0, 0.1), 0.05), None);
    }

    /// The interval of a ratio covers as often as those of the means.
    #[test]
    fn the_interval_of_a_ratio_covers() {
        let mut held = 0;
        for seed in 0..400 {
            let series = |seed, cheap_ns| {
                let series = SyntheticSeries {
                    ios: 600,
                    cheap_ns,
                    noise: 0.6,
                    correlation: 0.3,
                    seed,
                    ..SyntheticSeries::default()
                };
                Level::from(&batch_means(&generate(&series), None, 0.95).unwrap())
            };
            let found = ratio(&series(2 * seed, 2e6), &series(2 * seed + 1, 1e6)).unwrap();
            held += u32::from(found.low <= 2.0 && 2.0 <= found.high);
        }
        assert!((368..=396).contains(&held), "{held} of 400");
    }

    #[test]
    fn an_end_at_zero_leaves_the_ratio_open() {
        let open = Level { mean_ns: 10.0, low_ns: 0.0, high_ns: 30.0 };
        let found = ratio(&open, &level(10.0, 0.1)).unwrap();
        assert_eq!((found.ratio, found.low), (1.0, 0.0));
        let high_open = ratio(&level(10.0, 0.1), &open).unwrap();
        assert_eq!(high_open.high, f64::INFINITY);
        let text = serde_json::to_string(&high_open).unwrap();
        assert!(text.contains("null"), "{text}");
        assert_eq!(serde_json::from_str::<CostRatio>(&text).unwrap(), high_open);
    }
}
