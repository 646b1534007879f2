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

use super::series::{autocorrelation, mean, mean_ns, normal, student_t};
use serde::{Deserialize, Serialize};
use uflip_device::rng::Rng;

/// Batches aimed at.
const BATCHES: usize = 30;
/// Fewer batches than this give no interval.
pub const MIN_BATCHES: usize = 5;
/// Autocorrelation times in a batch, at least.
const TIMES: f64 = 5.0;
/// Longest lag the autocorrelation time is summed to.
const MAX_LAG: usize = 4096;

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
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
    pub method: Method,
}

impl MeanInterval {
    /// Half of its width over the mean; None for a mean of 0.
    pub fn relative_half_width(&self) -> Option<f64> {
        (self.mean_ns > 0.0).then(|| (self.high_ns - self.low_ns) / 2.0 / self.mean_ns)
    }

    /// The standard error that a symmetric interval of this width would have,
    /// by Student's t with one degree of freedom less than batches.
    pub fn standard_error_ns(&self) -> f64 {
        let t = student_t(0.5 + self.level / 2.0, (self.batches.max(2) - 1) as f64);
        (self.high_ns - self.low_ns) / 2.0 / t
    }
}

/// IOs after which response times have forgotten each other: 1 for independent
/// ones; None for a constant or a very short series.
pub fn autocorrelation_time_ios(response_ns: &[u64]) -> Option<f64> {
    let values: Vec<f64> = response_ns.iter().map(|&v| v as f64).collect();
    let r = autocorrelation(&values, MAX_LAG.min(values.len() / 4))?;
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
/// in which it may grow.
fn unit(response_ns: &[u64], period_ios: Option<f64>, times: f64) -> (f64, f64) {
    match period_ios {
        Some(period) if period >= 2.0 && period.is_finite() => (period, period),
        _ => ((times * autocorrelation_time_ios(response_ns).unwrap_or(1.0)).ceil(), 1.0),
    }
}

/// The interval of the mean of `response_ns` by batch means. `period_ios` is
/// the running phase's, if it has one. None where fewer than
/// [`MIN_BATCHES`] batches fit.
pub fn batch_means(response_ns: &[u64], period_ios: Option<f64>, level: f64) -> Option<MeanInterval> {
    assert!(level > 0.0 && level < 1.0, "a level of confidence lies between 0 and 1");
    let n = response_ns.len() as f64;
    let (shortest, step) = unit(response_ns, period_ios, TIMES);
    let batches = ((n / shortest) as usize).min(BATCHES);
    if batches < MIN_BATCHES {
        return None;
    }
    let size = ((n / batches as f64 / step).floor().max(1.0) * step) as usize;
    let means: Vec<f64> = response_ns.chunks_exact(size.max(1)).take(BATCHES).map(mean_ns).collect();
    let batches = means.len();
    let (low, high) = around(&means, level);
    let centre = mean(&means);
    Some(MeanInterval {
        mean_ns: centre,
        low_ns: (centre + low).max(0.0),
        high_ns: centre + high,
        level,
        n: (batches * size) as u64,
        batches: batches as u64,
        method: Method::BatchMeans,
    })
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
    let (shortest, step) = unit(response_ns, period_ios, TIMES);
    let blocks = ((n as f64 / shortest) as usize).min(2 * BATCHES);
    if blocks < MIN_BATCHES {
        return None;
    }
    let size = ((n as f64 / blocks as f64 / step).floor().max(1.0) * step) as usize;
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
        method: Method::BlockBootstrap,
    })
}
