//! Whether the device's state is steady: the same short probe, round after
//! round, until its mean is stable.
//!
//! Method: the steady-state criterion of the SNIA Solid State Storage
//! Performance Test Specification (Enterprise 1.1 and later, definition of steady
//! state): over a window of five rounds the largest and the smallest value lie
//! within 20 % of the window's average of each other, and the least-squares line
//! through them rises or falls by at most 10 % of the average from the first
//! round to the last. Known limit, often criticised: a slow drift of up to 2.5 %
//! a round passes, so drift over the whole plan is checked as well (`drift.rs`).
//!
//! Units: nanoseconds (any other unit of the mean does as well), rounds.

use super::series::{mean, slope};
use serde::{Deserialize, Serialize};

/// The criterion; `Default` is SNIA's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyRule {
    /// Rounds in the window: 5.
    pub window_rounds: usize,
    /// Largest minus smallest over the average: 0.2.
    pub max_range: f64,
    /// The line's rise or fall over the window over the average: 0.1.
    pub max_rise: f64,
}

impl Default for SteadyRule {
    fn default() -> SteadyRule {
        SteadyRule { window_rounds: 5, max_range: 0.2, max_rise: 0.1 }
    }
}

/// The last window of rounds and what the criterion makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Both conditions hold.
    pub steady: bool,
    /// Rounds so far, the window included.
    pub rounds: usize,
    /// The window's average.
    pub mean_ns: f64,
    /// Largest minus smallest over the average.
    pub range: f64,
    /// The line's rise over the window over the average; negative for a fall.
    pub rise: f64,
}

/// Judges the last window of `round_means_ns`. None where there are fewer
/// rounds than the window has, or their average is 0.
pub fn steady(round_means_ns: &[f64], rule: &SteadyRule) -> Option<Steady> {
    assert!(rule.window_rounds >= 2, "a window of one round is always steady");
    let from = round_means_ns.len().checked_sub(rule.window_rounds)?;
    let window = &round_means_ns[from..];
    let average = mean(window);
    if average <= 0.0 || !average.is_finite() {
        return None;
    }
    let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = window.iter().copied().fold(f64::INFINITY, f64::min);
    let range = (largest - smallest) / average;
    let rise = slope(window) * (rule.window_rounds - 1) as f64 / average;
    let steady = range <= rule.max_range && rise.abs() <= rule.max_rise;
    Some(Steady { steady, rounds: round_means_ns.len(), mean_ns: average, range, rise })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_conditions_are_needed_and_their_limits_are_the_standards() {
        let rule = SteadyRule::default();
        let judge = |means: [f64; 5]| steady(&means, &rule).unwrap();
        assert!(judge([100.0; 5]).steady);
        // Range 20 % without a slope is just steady, 21 % is not.
        assert!(judge([100.0, 110.0, 100.0, 90.0, 100.0]).range <= 0.2 + 1e-12);
        assert!(judge([100.0, 109.9, 100.0, 90.1, 100.0]).steady);
        assert!(!judge([100.0, 110.5, 100.0, 89.5, 100.0]).steady);
        // A line of 2.4 % a round rises by 9.6 %, of 2.6 % by 10.4 %.
        let line = |step: f64| [100.0 - 2.0 * step, 100.0 - step, 100.0, 100.0 + step, 100.0 + 2.0 * step];
        assert!(judge(line(2.4)).steady && (judge(line(2.4)).rise - 0.096).abs() < 1e-12);
        assert!(!judge(line(2.6)).steady && !judge(line(-2.6)).steady);
    }

    #[test]
    fn a_device_that_settles_is_steady_after_the_settling() {
        let rule = SteadyRule::default();
        let means: Vec<f64> = (0..12).map(|i| 100.0 * (1.0 + (-f64::from(i)).exp())).collect();
        // By hand: rounds 3 to 7 still fall by 12 %, rounds 4 to 8 by 5 %.
        let is_steady = |rounds: &usize| steady(&means[..*rounds], &rule).is_some_and(|s| s.steady);
        assert_eq!((0..=12).find(is_steady), Some(8));
        assert_eq!(steady(&means[..4], &rule), None);
        assert_eq!(steady(&[0.0; 9], &rule), None);
    }
}
