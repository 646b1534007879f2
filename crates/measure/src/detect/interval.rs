//! The confidence interval of a mean response time. IOs of one run are
//! correlated and skewed: the textbook interval for independent values is far
//! too narrow.
//!
//! Method 1, batch means (B. Schmeiser, "Batch size effects in the analysis of
//! simulation output", Operations Research 30, 1982: 10 to 30 batches), with
//! the two corrections of Skart (A. Tafazzoli and J. R. Wilson, "Skart: a
//! skewness- and autoregression-adjusted batch-means procedure for simulation
//! analysis", IIE Transactions 43, 2011): Student's t bent for skewness after
//! R. Willink (2005), the variance widened for what correlation remains between
//! batches. A batch is whole periods, and at least five autocorrelation times
//! (A. D. Sokal's automatic window, 1997).
//! Method 2, the second opinion: the circular block bootstrap (D. N. Politis
//! and J. P. Romano, 1992, after H. R. Künsch, 1989) over whole periods,
//! percentiles.
//!
//! Units: nanoseconds, IOs. Limits: what never happened while measuring is in
//! no interval; a mean of a tail index at or below 2 has no valid one at all.

use super::long::Condensed;
use super::series::{autocorrelation, mean, mean_ns, normal, student_t};
use serde::{Deserialize, Serialize};
use uflip_device::rng::Rng;

/// Batches aimed at; up to twice as many where a period is long.
pub(crate) const BATCHES: usize = 30;
/// Fewer batches than this give no interval.
pub const MIN_BATCHES: usize = 5;
/// Autocorrelation times in a batch, at least.
const TIMES: f64 = 5.0;
/// Longest lag the autocorrelation time is summed to.
const MAX_LAG: usize = 4096;

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Batch means with Student's t, corrected for skewness and correlation.
    BatchMeans,
    /// Circular block bootstrap, percentiles.
    BlockBootstrap,
}

/// A mean and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanInterval {
    /// The mean response time of the `n` IOs.
    pub mean_ns: f64,
    /// Lower end.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
    /// Chance with which such intervals hold the true mean: 0.95.
    pub level: f64,
    /// IOs in the mean: whole batches, or all of them for the bootstrap.
    pub n: u64,
    /// Batches or blocks.
    pub batches: u64,
    /// How it was made.
    pub method: IntervalMethod,
}

impl MeanInterval {
    /// Half of its width over the mean; None for a mean of 0.
    pub fn relative_half_width(&self) -> Option<f64> {
        (self.mean_ns > 0.0).then(|| (self.high_ns - self.low_ns) / 2.0 / self.mean_ns)
    }
}

/// IOs after which response times have forgotten each other: 1 for independent
/// ones; None for a constant or a very short series.
pub fn autocorrelation_time_ios(response_ns: &[u64]) -> Option<f64> {
    autocorrelation_time(&response_ns.iter().map(|&v| v as f64).collect::<Vec<f64>>())
}

/// The same of any values, in values.
pub fn autocorrelation_time(values: &[f64]) -> Option<f64> {
    let r = autocorrelation(values, MAX_LAG.min(values.len() / 4))?;
    let mut time = 1.0;
    for (lag, value) in r.iter().enumerate().skip(1) {
        time += 2.0 * value;
        if lag as f64 >= 5.0 * time {
            break;
        }
    }
    Some(time.max(1.0))
}

/// The shortest stretch that may count as one independent value, and the step
/// in which it may grow; `time_ios` gives the autocorrelation time.
fn unit(period_ios: Option<f64>, times: f64, time_ios: impl FnOnce() -> Option<f64>) -> (f64, f64) {
    match period_ios {
        Some(period) if period >= 2.0 && period.is_finite() => (period, period),
        _ => ((times * time_ios().unwrap_or(1.0)).ceil(), 1.0),
    }
}

/// The interval of the mean of `response_ns` by batch means. `period_ios` is
/// the running phase's, if it has one. None where fewer than
/// [`MIN_BATCHES`] batches fit.
pub fn batch_means(response_ns: &[u64], period_ios: Option<f64>, level: f64) -> Option<MeanInterval> {
    assert!(level > 0.0 && level < 1.0, "a level of confidence lies between 0 and 1");
    let n = response_ns.len() as f64;
    let (shortest, step) = unit(period_ios, TIMES, || autocorrelation_time_ios(response_ns));
    let batches = ((n / shortest) as usize).min(BATCHES);
    if batches < MIN_BATCHES {
        return None;
    }
    // A period is no whole number of IOs: batches end at the IO nearest to its end.
    let size = (n / batches as f64 / step).floor().max(1.0) * step;
    let end = |batch: usize| (batch as f64 * size).round() as usize;
    let batches = (1..).take_while(|batch| end(*batch) <= response_ns.len()).count();
    let means: Vec<f64> = (0..batches).map(|b| mean_ns(&response_ns[end(b)..end(b + 1)])).collect();
    Some(of_batches(&means, end(batches) as u64, level))
}

/// The autocorrelation time of a series that is too long to be kept: that of its
/// first IOs, or of its blocks where that is longer. Blocks of independent IOs
/// are independent, so that they say one block at least.
fn autocorrelation_time_of_long(series: &Condensed) -> Option<f64> {
    let near = autocorrelation_time_ios(series.window());
    let far = autocorrelation_time(series.blocks()).map(|blocks| blocks * series.block_ios() as f64);
    [near, far].into_iter().flatten().max_by(f64::total_cmp)
}

/// [`batch_means`] of a series that is too long to be kept: a batch ends at the
/// last block within it. What that and the period's last digits change is bounded
/// in `docs/method.md`, "Long runs".
pub(crate) fn batch_means_of_long(
    series: &Condensed,
    period_ios: Option<f64>,
    level: f64,
) -> Option<MeanInterval> {
    assert!(level > 0.0 && level < 1.0, "a level of confidence lies between 0 and 1");
    let (n, block) = (series.ios() as f64, series.block_ios() as f64);
    let (shortest, step) = unit(period_ios, TIMES, || autocorrelation_time_of_long(series));
    let batches = ((n / shortest) as usize).min(BATCHES);
    if batches < MIN_BATCHES {
        return None;
    }
    let size = (n / batches as f64 / step).floor().max(1.0) * step;
    let end = |batch: usize| (batch as f64 * size / block).floor() as usize;
    let blocks = series.blocks();
    let batches = (1..).take_while(|batch| end(*batch) <= blocks.len()).count();
    let means: Vec<f64> = (0..batches).map(|b| mean(&blocks[end(b)..end(b + 1)])).collect();
    Some(of_batches(&means, end(batches) as u64 * series.block_ios(), level))
}

/// The interval from the batches' means, which are of `n` IOs.
fn of_batches(means: &[f64], n: u64, level: f64) -> MeanInterval {
    let (low, high) = around(means, level);
    let centre = mean(means);
    MeanInterval {
        mean_ns: centre,
        low_ns: (centre + low).max(0.0),
        high_ns: centre + high,
        level,
        n,
        batches: means.len() as u64,
        method: IntervalMethod::BatchMeans,
    }
}

/// Ends of the interval around the mean of `means`, relative to it.
fn around(means: &[f64], level: f64) -> (f64, f64) {
    let k = means.len() as f64;
    let centre = mean(means);
    let moment = |power: i32| means.iter().map(|m| (m - centre).powi(power)).sum::<f64>();
    let variance = moment(2) / (k - 1.0);
    if variance <= (1e-12 * centre).powi(2) {
        return (0.0, 0.0);
    }
    let neighbours: f64 = means.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let correlation = (neighbours / moment(2)).clamp(0.0, 0.8);
    let error = (variance / k * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    let skewness = k / ((k - 1.0) * (k - 2.0)) * moment(3) / variance.powf(1.5);
    let beta = skewness / (6.0 * k.sqrt());
    let t = student_t(0.5 + level / 2.0, k - 1.0);
    (-bent(t, beta) * error, -bent(-t, beta) * error)
}

/// Willink's transformation of Student's t for skewed values.
fn bent(t: f64, beta: f64) -> f64 {
    if beta.abs() < 1e-3 { t } else { ((1.0 + 6.0 * beta * (t - beta)).cbrt() - 1.0) / (2.0 * beta) }
}

/// The interval of the mean of `response_ns` by `resamples` of the circular
/// block bootstrap. None where fewer than [`MIN_BATCHES`] blocks fit.
pub fn block_bootstrap(
    response_ns: &[u64],
    period_ios: Option<f64>,
    level: f64,
    resamples: usize,
    seed: u64,
) -> Option<MeanInterval> {
    assert!(level > 0.0 && level < 1.0, "a level of confidence lies between 0 and 1");
    assert!(resamples >= 100, "percentiles need at least 100 resamples");
    let n = response_ns.len();
    let (shortest, step) = unit(period_ios, TIMES, || autocorrelation_time_ios(response_ns));
    // Where a period ends is as uncertain at both ends of a block: long ones
    // keep that from looking like variance.
    let most = if step > 1.0 { BATCHES / 2 } else { 2 * BATCHES };
    let blocks = ((n as f64 / shortest) as usize).min(most);
    if blocks < MIN_BATCHES {
        return None;
    }
    let size = ((n as f64 / blocks as f64 / step).round().max(1.0) * step) as usize;
    let blocks = (n / size).max(MIN_BATCHES);
    let mut sums = Vec::with_capacity(n + 1);
    sums.push(0u128);
    response_ns.iter().for_each(|&v| sums.push(sums[sums.len() - 1] + u128::from(v)));
    let block = |from: usize| {
        let to = from + size;
        if to <= n { sums[to] - sums[from] } else { sums[n] - sums[from] + sums[to - n] }
    };
    let mut rng = Rng::new(seed);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let total: u128 = (0..blocks).map(|_| block(rng.below(n as u64) as usize)).sum();
            total as f64 / (blocks * size) as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let centre = sums[n] as f64 / n as f64;
    // A bootstrap of k blocks is too narrow by about this much.
    let k = blocks as f64;
    let widen = (k / (k - 1.0)).sqrt() * student_t(0.5 + level / 2.0, k - 1.0) / normal(0.5 + level / 2.0);
    let at = |share: f64| means[((resamples - 1) as f64 * share).round() as usize];
    Some(MeanInterval {
        mean_ns: centre,
        low_ns: (centre - widen * (centre - at(0.5 - level / 2.0)).max(0.0)).max(0.0),
        high_ns: centre + widen * (at(0.5 + level / 2.0) - centre).max(0.0),
        level,
        n: n as u64,
        batches: blocks as u64,
        method: IntervalMethod::BlockBootstrap,
    })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticSeries, generate};
    use super::*;

    #[test]
    fn uncorrelated_symmetric_batches_give_the_textbook_interval() {
        let offsets = [-3.0, 1.0, 2.0, -1.0, 3.0, -2.0];
        let means: Vec<f64> =
            (0..30).map(|i| offsets[i % 15 % 6] * if i < 15 { 1.0 } else { -1.0 }).collect();
        let variance = means.iter().map(|m| m * m).sum::<f64>() / 29.0;
        let half = 2.0452 * (variance / 30.0).sqrt();
        let (low, high) = around(&means, 0.95);
        assert!((high / half - 1.0).abs() < 1e-4 && (low / half + 1.0).abs() < 1e-4, "{low} {high} {half}");
    }

    #[test]
    fn skewed_batches_bend_the_interval_upwards_and_correlated_ones_widen_it() {
        let skewed: Vec<f64> = (0..30).map(|i| if i % 10 == 0 { 5000.0 } else { 1000.0 }).collect();
        let (low, high) = around(&skewed, 0.95);
        assert!(low < 0.0 && high > -1.3 * low, "{low} {high}");
        let series = |correlation, seed| {
            let series =
                SyntheticSeries { ios: 3000, noise: 0.3, correlation, seed, ..SyntheticSeries::default() };
            batch_means(&generate(&series), None, 0.95).unwrap().relative_half_width().unwrap()
        };
        let ratio: f64 = (0..20).map(|seed| series(0.8, seed) / series(0.0, seed)).sum::<f64>() / 20.0;
        // The variance of the mean grows by (1 + 0.8) / (1 - 0.8) = 9.
        assert!((2.3..4.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn batches_are_whole_periods() {
        let series = SyntheticSeries {
            ios: 5000,
            duty: 0.1,
            period_ios: Some(12.5),
            noise: 0.01,
            seed: 1,
            ..SyntheticSeries::default()
        };
        let values = generate(&series);
        let found = batch_means(&values, Some(12.5), 0.95).unwrap();
        let size = found.n as f64 / found.batches as f64;
        assert!((size / 12.5 - (size / 12.5).round()).abs() <= 0.5 / 12.5, "{found:?}");
        assert!(found.relative_half_width().unwrap() < 0.05, "{found:?}");
        let boot = block_bootstrap(&values, Some(12.5), 0.95, 500, 7).unwrap();
        assert_eq!(boot, block_bootstrap(&values, Some(12.5), 0.95, 500, 7).unwrap());
        assert_ne!(boot, block_bootstrap(&values, Some(12.5), 0.95, 500, 8).unwrap());
    }

    #[test]
    fn the_autocorrelation_time_is_that_of_the_process() {
        let series = SyntheticSeries {
            ios: 100_000,
            noise: 0.05,
            correlation: 0.8,
            seed: 2,
            ..SyntheticSeries::default()
        };
        let time = autocorrelation_time_ios(&generate(&series)).unwrap();
        assert!((time / 9.0 - 1.0).abs() < 0.15, "{time}");
        assert_eq!(autocorrelation_time_ios(&[7; 1000]), None);
    }

    #[test]
    fn odd_series_have_no_interval_or_a_point() {
        for series in [&[][..], &[1], &[1, 2, 3, 4]] {
            assert_eq!(batch_means(series, None, 0.95), None);
            assert_eq!(block_bootstrap(series, None, 0.95, 100, 1), None);
        }
        for value in [0, 7, u64::MAX] {
            let found = batch_means(&[value; 100], None, 0.95).unwrap();
            assert_eq!((found.low_ns, found.high_ns), (found.mean_ns, found.mean_ns));
        }
    }
}
