//! Series of response times whose truth is known: a start-up phase, then a
//! running phase that oscillates between cheap and expensive IOs, with noise,
//! outliers and drift.
//!
//! Model (units: nanoseconds, IOs): the two-phase model of paper 001, section
//! 4.2. Noise is log-normal, correlated as AR(1) in the logarithm; outliers
//! multiply a response time by a Pareto variable; drift multiplies the level
//! geometrically from 1 at the first IO to `drift` at the last. Response times
//! of storage devices are commonly modelled as such mixtures; the figures here
//! are round numbers around those of paper 001, section 5.

use uflip_device::rng::Rng;

/// What a series is made of. `Default` is a constant series without effects.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticSeries {
    /// Length of the series.
    pub ios: usize,
    /// IOs of the start-up phase; None where there is none.
    pub start_up_ios: Option<usize>,
    /// Level of the start-up phase.
    pub start_up_ns: f64,
    /// Level of the running phase's cheap IOs.
    pub cheap_ns: f64,
    /// Level of the running phase's expensive IOs.
    pub expensive_ns: f64,
    /// Share of expensive IOs in the running phase; 0 for no oscillation. With
    /// a period there is at least one in each.
    pub duty: f64,
    /// Mean IOs in one oscillation; None for expensive IOs at random places.
    pub period_ios: Option<f64>,
    /// Standard deviation of an oscillation's length relative to the mean one.
    pub jitter: f64,
    /// Where in an oscillation the running phase begins, 0 to 1.
    pub phase: f64,
    /// Standard deviation of the noise in the logarithm.
    pub noise: f64,
    /// Lag-1 correlation of the noise, below 1.
    pub correlation: f64,
    /// Share of IOs that are outliers, start-up included.
    pub outliers: f64,
    /// Tail index of the outliers' Pareto factor (at least 3 times).
    pub outlier_tail: f64,
    /// Level at the last IO relative to the first.
    pub drift: f64,
    /// Equal seeds give equal series.
    pub seed: u64,
}

impl Default for SyntheticSeries {
    fn default() -> SyntheticSeries {
        SyntheticSeries {
            ios: 5120,
            start_up_ios: None,
            start_up_ns: 400e3,
            cheap_ns: 400e3,
            expensive_ns: 27e6,
            duty: 0.0,
            period_ios: None,
            jitter: 0.0,
            phase: 0.0,
            noise: 0.0,
            correlation: 0.0,
            outliers: 0.0,
            outlier_tail: 2.5,
            drift: 1.0,
            seed: 0,
        }
    }
}

/// A standard normal number (Box and Muller, 1958).
pub fn gauss(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Which IOs of a running phase of `ios` IOs are expensive.
fn expensive(series: &SyntheticSeries, ios: usize, rng: &mut Rng) -> Vec<bool> {
    if series.duty <= 0.0 {
        return vec![false; ios];
    }
    let Some(period) = series.period_ios else {
        return (0..ios).map(|_| rng.unit() < series.duty).collect();
    };
    assert!(period >= 2.0, "an oscillation has at least two IOs");
    let width = (series.duty * period).round().max(1.0);
    let mut marks = vec![false; ios];
    let mut end = -series.phase * period;
    while end < ios as f64 {
        end += period * (1.0 + series.jitter * gauss(rng)).clamp(0.3, 2.0);
        let last = end.round() as i64;
        for io in (last - width as i64).max(0)..last.clamp(0, ios as i64) {
            marks[io as usize] = true;
        }
    }
    marks
}

/// The series' response times.
pub fn generate(series: &SyntheticSeries) -> Vec<u64> {
    assert!(series.correlation.abs() < 1.0, "noise with correlation 1 has no variance");
    let mut rng = Rng::new(series.seed);
    let start_up = series.start_up_ios.unwrap_or(0).min(series.ios);
    let marks = expensive(series, series.ios - start_up, &mut rng);
    let innovation = (1.0 - series.correlation * series.correlation).sqrt();
    let mut state = gauss(&mut rng);
    let mut values = Vec::with_capacity(series.ios);
    for io in 0..series.ios {
        let level = match io.checked_sub(start_up) {
            None => series.start_up_ns,
            Some(running) if marks[running] => series.expensive_ns,
            Some(_) => series.cheap_ns,
        };
        state = series.correlation * state + innovation * gauss(&mut rng);
        let mut value = level * (series.noise * state).exp();
        value *= series.drift.powf(io as f64 / (series.ios.max(2) - 1) as f64);
        if series.outliers > 0.0 && rng.unit() < series.outliers {
            value *= 3.0 * (1.0 - rng.unit()).powf(-1.0 / series.outlier_tail);
        }
        values.push(value.clamp(1.0, 1e15) as u64);
    }
    values
}

/// The expected response time of the running phase, without drift; for a
/// period, of a long stretch of whole oscillations.
pub fn running_mean_ns(series: &SyntheticSeries) -> f64 {
    let duty = match series.period_ios {
        Some(period) if series.duty > 0.0 => (series.duty * period).round().max(1.0) / period,
        _ => series.duty,
    };
    let level = series.cheap_ns * (1.0 - duty) + series.expensive_ns * duty;
    let factor = 3.0 * series.outlier_tail / (series.outlier_tail - 1.0);
    level * (series.noise * series.noise / 2.0).exp() * (1.0 + series.outliers * (factor - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_series_is_what_it_says() {
        let series = SyntheticSeries {
            ios: 400,
            start_up_ios: Some(100),
            start_up_ns: 1000.0,
            cheap_ns: 2000.0,
            expensive_ns: 9000.0,
            duty: 0.1,
            period_ios: Some(20.0),
            ..SyntheticSeries::default()
        };
        let values = generate(&series);
        assert!(values[..100].iter().all(|&v| v == 1000));
        for (io, &v) in values[100..].iter().enumerate() {
            assert_eq!(v, if io % 20 >= 18 { 9000 } else { 2000 }, "{io}");
        }
        assert_eq!(running_mean_ns(&series), 2700.0);
        assert_eq!(values, generate(&series));
    }

    #[test]
    fn the_expected_mean_is_the_mean_of_a_long_series() {
        for (period, correlation) in [(Some(33.0), 0.0), (None, 0.7)] {
            let series = SyntheticSeries {
                ios: 400_000,
                duty: 0.07,
                period_ios: period,
                jitter: 0.1,
                noise: 0.3,
                correlation,
                outliers: 0.01,
                outlier_tail: 3.0,
                seed: 5,
                ..SyntheticSeries::default()
            };
            let values = generate(&series);
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64;
            assert!((mean / running_mean_ns(&series) - 1.0).abs() < 0.02, "{mean}");
        }
    }
}
