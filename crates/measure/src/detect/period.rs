//! The period: how many IOs one oscillation of the running phase takes.
//!
//! Method: autocorrelation of log response times, at resolutions that halve
//! (binomial pyramid, P. J. Burt and E. H. Adelson, 1983), so that jittered
//! periods still pile up in one lag. A period is a hill of the autocorrelation,
//! not a slope (M. Vlachos, P. Yu and V. Castelli, "On periodicity detection
//! and structural periodicity similarity", SDM 2005): its prominence over the
//! valleys on both sides is measured in standard errors by Bartlett's formula
//! (M. S. Bartlett, 1946), which widens them for correlated noise. Of several
//! hills the first one that is nearly as prominent as the most prominent is the
//! fundamental, not a multiple (P. McLeod and G. Wyvill, "A smarter way to find
//! pitch", ICMC 2005). The centroid of the hill at full resolution is the
//! period.
//!
//! Units: IOs. Limits: needs four periods; periods under 5 IOs are found
//! where they are whole numbers; drift is removed as a straight line only.

use super::long::Condensed;
use super::series::{autocorrelation, log_scores, mean, normal_tail, slope};
use serde::{Deserialize, Serialize};

/// Lags looked at on each level, in its own steps.
const LAGS: usize = 64;
/// The smallest lag looked at on the coarser levels.
const COARSE_FROM: usize = 4;
/// A hill rises this many standard errors over its valleys.
const MIN_Z: f64 = 5.0;
/// And this much in itself.
const MIN_PROMINENCE: f64 = 0.2;
/// The first hill with this share of the best one's prominence is taken.
const NEARLY: f64 = 0.65;
/// Periods a series must hold.
const MIN_PERIODS: usize = 4;

/// An oscillation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// IOs in one oscillation.
    pub ios: f64,
    /// How much of the variance repeats after one period, over the valleys
    /// beside it: 0 to 2.
    pub prominence: f64,
    /// The same in standard errors.
    pub z: f64,
    /// 0 to 1: how sure, after as many tries as lags were looked at.
    pub confidence: f64,
}

/// A hill of the autocorrelation.
#[derive(Clone, Copy, Debug)]
struct Hill {
    ios: f64,
    prominence: f64,
    z: f64,
}

/// The period of `response_ns`, a running phase in the order of submission;
/// None where it does not oscillate or holds fewer than four oscillations.
pub fn period(response_ns: &[u64]) -> Option<Period> {
    let scores = straightened(&log_scores(response_ns, 0.999));
    let first = fundamental(&all_hills(&scores))?;
    Some(described(&first, refined(&scores, first.ios), scores.len()))
}

/// The period of a running phase that is too long to be kept: a short one from
/// its first IOs, a longer one from its blocks, by the same rule.
pub(crate) fn period_of_long(series: &Condensed) -> Option<Period> {
    let near = straightened(&log_scores(series.window(), 0.999));
    let far = straightened(&log_scores(&series.blocks_ns(), 0.999));
    let (size, seen_before) = (series.block_ios() as f64, (near.len() / MIN_PERIODS) as f64);
    let in_ios = all_hills(&far).into_iter().map(|h| Hill { ios: h.ios * size, ..h });
    let mut hills = all_hills(&near);
    hills.extend(in_ios.filter(|h| h.ios > seen_before));
    let first = fundamental(&hills)?;
    let ios = if first.ios > seen_before {
        refined(&far, first.ios / size) * size
    } else {
        refined(&near, first.ios)
    };
    Some(described(&first, ios, near.len()))
}

/// The first hill that is nearly as prominent as the most prominent.
fn fundamental(hills: &[Hill]) -> Option<Hill> {
    let most = hills.iter().map(|h| h.prominence).max_by(f64::total_cmp)?;
    let nearly = hills.iter().filter(|h| h.prominence >= NEARLY * most);
    nearly.min_by(|a, b| a.ios.total_cmp(&b.ios)).copied()
}

/// The hill as a period of `ios`, found among `n` values.
fn described(hill: &Hill, ios: f64, n: usize) -> Period {
    let tries = (n / MIN_PERIODS).max(1) as f64;
    let confidence = (1.0 - tries * normal_tail(hill.z)).clamp(0.0, 1.0);
    Period { ios, prominence: hill.prominence, z: hill.z, confidence }
}

/// The scores without their straight line.
fn straightened(scores: &[f64]) -> Vec<f64> {
    let (rise, level, middle) = (slope(scores), mean(scores), (scores.len() as f64 - 1.0) / 2.0);
    scores.iter().enumerate().map(|(i, s)| s - level - rise * (i as f64 - middle)).collect()
}

/// The next level of the pyramid: smoothed by 1-2-1, every `every`th value.
fn smoothed(values: &[f64], every: usize) -> Vec<f64> {
    let at = |i: usize| values[i.min(values.len() - 1)];
    let value = |i: usize| (at(every * i) + 2.0 * at(every * i + 1) + at(every * i + 2)) / 4.0;
    (0..values.len() / every).map(value).collect()
}

/// The significant hills of all levels.
fn all_hills(scores: &[f64]) -> Vec<Hill> {
    let mut found = Vec::new();
    let mut level = scores.to_vec();
    let (mut step, mut from) = (1.0, 2);
    while level.len() >= MIN_PERIODS * from {
        let last = LAGS.min(level.len() / MIN_PERIODS);
        if let Some(r) = autocorrelation(&level, last + last / 2 + 1) {
            found.extend((from..=last).filter_map(|lag| hill(&r, lag, level.len(), step)));
        }
        // Once at full resolution, so that periods of a fraction of an IO pile up.
        let every = if from == COARSE_FROM { 2 } else { 1 };
        level = smoothed(&level, every);
        step *= every as f64;
        from = COARSE_FROM;
    }
    found
}

/// The hill at `lag`, if it is one.
fn hill(r: &[f64], lag: usize, n: usize, step: f64) -> Option<Hill> {
    let top = r[lag];
    if top < r[lag - 1] || top < *r.get(lag + 1)? {
        return None;
    }
    let lowest = |lags: &[f64]| lags.iter().copied().fold(f64::INFINITY, f64::min);
    let left = lowest(&r[lag.div_ceil(2)..lag]);
    let right = lowest(&r[lag + 1..(lag + lag.div_ceil(2)).min(r.len() - 1) + 1]);
    let prominence = top - left.max(right);
    let spread: f64 = r[1..=lag / 2].iter().map(|v| v * v).sum();
    let error = ((1.0 + 2.0 * spread) / n as f64).sqrt();
    let z = prominence / (error * std::f64::consts::SQRT_2);
    (top > 0.0 && prominence >= MIN_PROMINENCE && z >= MIN_Z).then_some(Hill {
        ios: lag as f64 * step,
        prominence,
        z,
    })
}

/// The centroid of the hill around `ios` at full resolution.
fn refined(scores: &[f64], ios: f64) -> f64 {
    let (from, to) = ((ios * 0.7).ceil() as usize, (ios * 1.35).floor() as usize);
    let half = ((ios * 0.05) as usize).min(from.saturating_sub(1));
    let Some(r) = autocorrelation(scores, to + half) else { return ios };
    if r.len() <= to + half {
        return ios;
    }
    let smooth: Vec<f64> = (from..=to).map(|lag| mean(&r[lag - half..=lag + half])).collect();
    let top = smooth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let base = smooth.iter().copied().fold(f64::INFINITY, f64::min);
    let floor = base + 0.6 * (top - base);
    let (mut weight, mut moment) = (0.0, 0.0);
    for (i, v) in smooth.iter().enumerate().filter(|(_, v)| **v > floor) {
        weight += v - floor;
        moment += (v - floor) * (from + i) as f64;
    }
    if weight > 0.0 { moment / weight } else { ios }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticSeries, generate};
    use super::*;

    #[test]
    fn kingston_dti_oscillates_every_128_ios() {
        for ios in [1024, 5120, 100_000] {
            let series = SyntheticSeries {
                ios,
                cheap_ns: 2e6,
                expensive_ns: 130e6,
                duty: 0.001,
                period_ios: Some(128.0),
                phase: 0.3,
                noise: 0.05,
                seed: 1,
                ..SyntheticSeries::default()
            };
            let found = period(&generate(&series)).expect("a period");
            assert!((found.ios - 128.0).abs() < 1.5, "{found:?}");
            assert!(found.confidence > 0.9 && found.z > 5.0 && found.prominence > 0.2, "{found:?}");
        }
    }

    #[test]
    fn fundamentals_and_fractions_are_found_jittered_or_not() {
        for (truth, duty, jitter) in [
            (2.0, 0.5, 0.0),
            (3.0, 0.3, 0.0),
            (7.5, 0.3, 0.0),
            (12.5, 0.05, 0.0),
            (40.0, 0.5, 0.1),
            (250.0, 0.02, 0.15),
        ] {
            let series = SyntheticSeries {
                ios: 10_000,
                duty,
                period_ios: Some(truth),
                jitter,
                noise: 0.1,
                outliers: 0.002,
                seed: 8,
                ..SyntheticSeries::default()
            };
            let found = period(&generate(&series)).unwrap_or_else(|| panic!("no period for {truth}"));
            assert!((found.ios / truth - 1.0).abs() < 0.1, "{truth}: {found:?}");
        }
    }

    #[test]
    fn two_bumps_in_a_period_are_one_period() {
        let wave = |i: u64| match i % 100 {
            0..=4 => 20_000,
            45..=49 => 5_000,
            _ => 1_000,
        };
        let found = period(&(0..5000).map(wave).collect::<Vec<_>>()).expect("a period");
        assert!((found.ios - 100.0).abs() < 2.0, "{found:?}");
    }

    #[test]
    fn noise_drift_and_odd_series_have_no_period() {
        for (noise, correlation, drift, duty) in
            [(0.4, 0.0, 1.0, 0.0), (0.3, 0.9, 1.0, 0.0), (0.05, 0.0, 3.0, 0.0), (0.1, 0.0, 1.0, 0.02)]
        {
            let series =
                SyntheticSeries { noise, correlation, drift, duty, seed: 4, ..SyntheticSeries::default() };
            assert_eq!(period(&generate(&series)), None, "{series:?}");
        }
        let none: [&[u64]; 6] = [&[], &[1], &[5; 4], &[5; 1000], &[u64::MAX; 64], &[1, u64::MAX, 1]];
        none.iter().for_each(|series| assert_eq!(period(series), None, "{series:?}"));
    }
}
