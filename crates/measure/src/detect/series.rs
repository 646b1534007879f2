//! Small tools every detector needs: logarithms, quantiles, autocorrelation,
//! Student's t.
//!
//! Autocorrelation by the Wiener-Khinchin theorem with `realfft`, the series
//! padded with zeros so that it does not wrap; the biased estimator (divided by
//! n, not n - lag), which keeps it within -1 and 1. Student's t and the normal
//! distribution come from `statrs`.

use realfft::RealFftPlanner;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// The arithmetic mean; 0 for nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The variance about the mean; 0 for nothing.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / values.len().max(1) as f64
}

/// The arithmetic mean of whole nanoseconds; 0 for nothing.
pub(crate) fn mean_ns(values_ns: &[u64]) -> f64 {
    if values_ns.is_empty() {
        0.0
    } else {
        values_ns.iter().map(|&v| v as f64).sum::<f64>() / values_ns.len() as f64
    }
}

/// The `share` quantile (0 to 1), the nearest value from below; None for nothing.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    let last = sorted.len().checked_sub(1)?;
    let rank = ((last as f64) * share.clamp(0.0, 1.0)).floor() as usize;
    Some(*sorted.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// Natural logarithms of response times (below 1 ns counts as 1 ns), cut at the
/// `cut` quantile from above and `1 - cut` from below so that no single IO
/// weighs more than the extremes that recur.
pub(crate) fn log_scores(response_ns: &[u64], cut: f64) -> Vec<f64> {
    let mut scores: Vec<f64> = response_ns.iter().map(|&v| (v.max(1) as f64).ln()).collect();
    if let (Some(low), Some(high)) = (quantile(&scores, 1.0 - cut), quantile(&scores, cut)) {
        scores.iter_mut().for_each(|s| *s = s.clamp(low, high));
    }
    scores
}

/// Autocorrelation at lags 0 to `max_lag`; None where the series has no
/// variance or fewer than 4 values.
pub(crate) fn autocorrelation(values: &[f64], max_lag: usize) -> Option<Vec<f64>> {
    let n = values.len();
    if n < 4 {
        return None;
    }
    let centre = mean(values);
    let largest = values.iter().map(|v| (v - centre).abs()).fold(0.0, f64::max);
    if largest <= 1e-12 * centre.abs().max(f64::MIN_POSITIVE) {
        return None;
    }
    let max_lag = max_lag.min(n - 1);
    let size = (n + max_lag + 1).next_power_of_two();
    let mut planner = RealFftPlanner::<f64>::new();
    let forward = planner.plan_fft_forward(size);
    let inverse = planner.plan_fft_inverse(size);
    let mut input = forward.make_input_vec();
    let mut spectrum = forward.make_output_vec();
    input.iter_mut().zip(values).for_each(|(slot, v)| *slot = (v - centre) / largest);
    forward.process(&mut input, &mut spectrum).expect("buffers come from the plan");
    spectrum.iter_mut().for_each(|c| *c = (c.norm_sqr()).into());
    inverse.process(&mut spectrum, &mut input).expect("a power spectrum is real at both ends");
    let variance = input[0];
    (variance > 0.0).then(|| input[..=max_lag].iter().map(|v| v / variance).collect())
}

/// The `share` quantile of Student's t with `freedom` degrees of freedom.
pub(crate) fn student_t(share: f64, freedom: f64) -> f64 {
    assert!(freedom > 0.0 && share > 0.0 && share < 1.0, "no such quantile of Student's t");
    if freedom > 1e6 {
        return normal(share);
    }
    StudentsT::new(0.0, 1.0, freedom).expect("freedom is positive").inverse_cdf(share)
}

/// The `share` quantile of chi-square with `freedom` degrees of freedom.
pub(crate) fn chi_square(share: f64, freedom: f64) -> f64 {
    ChiSquared::new(freedom).expect("freedom is positive").inverse_cdf(share)
}

/// The `share` quantile of the standard normal distribution.
pub(crate) fn normal(share: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("the standard normal").inverse_cdf(share)
}

/// The chance that a standard normal variable exceeds `z`.
pub(crate) fn normal_tail(z: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("the standard normal").sf(z)
}

/// The least-squares slope of `values` over 0, 1, 2, …; 0 for fewer than two.
pub(crate) fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let centre = mean(values);
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, v) in values.iter().enumerate() {
        let x = i as f64 - middle;
        xy += x * (v - centre);
        xx += x * x;
    }
    if xx > 0.0 { xy / xx } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles from the printed table of Student's t (two-sided 95 %).
    #[test]
    fn student_t_matches_the_printed_table() {
        for (freedom, t) in
            [(1.0, 12.706), (2.0, 4.303), (9.0, 2.262), (29.0, 2.045), (120.0, 1.980), (1e7, 1.960)]
        {
            assert!((student_t(0.975, freedom) - t).abs() < 6e-4, "{freedom}: {}", student_t(0.975, freedom));
        }
        assert!((student_t(0.025, 9.0) + 2.262).abs() < 6e-4);
        for (freedom, chi) in [(1.0, 6.635), (2.0, 9.210), (9.0, 21.666)] {
            assert!(
                (chi_square(0.99, freedom) - chi).abs() < 1e-3,
                "{freedom}: {}",
                chi_square(0.99, freedom)
            );
        }
    }

    #[test]
    fn autocorrelation_matches_the_definition() {
        let values: Vec<f64> = (0..50).map(|i| f64::from((i * i) % 17)).collect();
        let centre = mean(&values);
        let sum = |lag: usize| {
            (0..50 - lag).map(|i| (values[i] - centre) * (values[i + lag] - centre)).sum::<f64>()
        };
        let got = autocorrelation(&values, 20).unwrap();
        for (lag, r) in got.iter().enumerate() {
            assert!((r - sum(lag) / sum(0)).abs() < 1e-12, "lag {lag}");
        }
        assert_eq!(autocorrelation(&[3.0; 100], 10), None);
        assert_eq!(autocorrelation(&[1e300, -1e300, 1e300, -1e300], 3).map(|r| r[1] < -0.7), Some(true));
    }

    #[test]
    fn slope_of_a_line_is_exact() {
        assert!((slope(&[1.0, 3.0, 5.0, 7.0]) - 2.0).abs() < 1e-12);
        assert_eq!(slope(&[4.0]), 0.0);
    }
}
