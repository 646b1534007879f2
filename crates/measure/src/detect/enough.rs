//! When a run is long enough: IOCount from the measurements themselves.
//!
//! Method: the sequential procedure for a relative precision (A. M. Law and
//! J. S. Carson, "A sequential procedure for determining the length of a
//! steady-state simulation", Operations Research 27, 1979), which is Y. S. Chow
//! and H. Robbins' rule (Annals of Mathematical Statistics 36, 1965) on batch
//! means. An interval that is looked at again and again until it happens to be
//! narrow covers too rarely. Against that: looks come at lengths that grow by
//! at least a half; a minimum of batches and periods is demanded first; the
//! half-width is held to r / (1 + r) so that the error relative to the true
//! mean is r (A. M. Law, "Simulation modeling and analysis", 9.4.1); and
//! the means of the two halves must agree as well as that precision implies.
//!
//! Units: IOs, nanoseconds. Limits: IOs that are rare and did not happen yet
//! cannot be known of; the minimum number of IOs is the caller's guard.

use super::interval::{self, MeanInterval, batch_means};
use super::series::mean_ns;
use serde::{Deserialize, Serialize};

/// Each look comes when the series is at least this many times as long.
const GROWTH: f64 = 1.5;
/// And at most this many times, however far the goal is.
const MAX_GROWTH: f64 = 4.0;

/// What counts as enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Half of the interval over the mean: 0.05.
    pub relative_half_width: f64,
    /// Level of the interval: 0.95.
    pub level: f64,
    /// Periods to be covered, where there is a period.
    pub min_periods: u64,
    /// Batches the interval rests on, at least.
    pub min_batches: u64,
    /// IOs of the running phase, at least.
    pub min_ios: u64,
    /// IOs of the running phase, at most.
    pub cap_ios: u64,
}

impl Default for StopRule {
    fn default() -> StopRule {
        StopRule {
            relative_half_width: 0.05,
            level: 0.95,
            min_periods: 10,
            min_batches: 20,
            min_ios: 128,
            cap_ios: 100_000,
        }
    }
}

/// Why a run goes on or stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Stop: the interval is narrow enough.
    PreciseEnough,
    /// Stop: the cap is reached and the interval is wider than asked for.
    Cap,
    /// Go on: fewer IOs, batches or periods than the minimum.
    TooFew,
    /// Go on: the interval is still too wide.
    TooWide,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LengthVerdict {
    /// Why.
    pub reason: Reason,
    /// IOs to submit before asking again; 0 to stop.
    pub more_ios: u64,
    /// IOs of the running phase it will take in all, as far as can be seen now.
    pub expected_ios: u64,
    /// The interval so far; None where there are too few IOs for one.
    pub interval: Option<MeanInterval>,
}

impl LengthVerdict {
    /// Whether the run is over.
    pub fn stop(&self) -> bool {
        matches!(self.reason, Reason::PreciseEnough | Reason::Cap)
    }
}

/// Whether `response_ns`, the running phase so far (IOIgnore left out), is long
/// enough. `period_ios` is the running phase's, if it has one. Ask again only
/// after `more_ios` further IOs: asking more often makes intervals too narrow.
pub fn enough(response_ns: &[u64], period_ios: Option<f64>, rule: &StopRule) -> LengthVerdict {
    assert!(rule.relative_half_width > 0.0, "no interval is narrower than nothing");
    let n = response_ns.len() as u64;
    let period = period_ios.filter(|p| p.is_finite() && *p >= 2.0);
    let minimum = minimum_ios(period, rule);
    let found = batch_means(response_ns, period, rule.level);
    let width = found.and_then(|i| if i.high_ns == i.low_ns { Some(0.0) } else { i.relative_half_width() });
    let verdict = |reason, more_ios: u64, expected_ios: u64| LengthVerdict {
        reason,
        more_ios,
        expected_ios,
        interval: found,
    };
    let goal = rule.relative_half_width / (1.0 + rule.relative_half_width);
    let batches = found.map_or(0, |i| i.batches);
    let precise =
        width.is_some_and(|w| w <= goal) && halves_agree(response_ns, period, rule.relative_half_width);
    if n >= minimum && batches >= rule.min_batches.min(interval::BATCHES as u64) && precise {
        return verdict(Reason::PreciseEnough, 0, n);
    }
    if n >= rule.cap_ios {
        return verdict(Reason::Cap, 0, n);
    }
    let wanted = match width {
        _ if n < minimum => minimum as f64,
        // A half-width falls with the root of the length.
        Some(width) if batches >= rule.min_batches.min(interval::BATCHES as u64) => {
            n as f64 * (width / goal).powi(2)
        }
        _ => n as f64 * 2.0,
    };
    let at_least = if n < minimum { minimum as f64 } else { n as f64 * GROWTH };
    let expected = whole(wanted.max(at_least), period).min(rule.cap_ios);
    let next =
        whole(wanted.clamp(at_least, at_least.max(n as f64 * MAX_GROWTH)), period).clamp(n + 1, rule.cap_ios);
    let reason = if n < minimum || batches < rule.min_batches.min(interval::BATCHES as u64) {
        Reason::TooFew
    } else {
        Reason::TooWide
    };
    verdict(reason, next - n, expected.max(next))
}

/// IOs that have to be there before an interval is looked at.
fn minimum_ios(period: Option<f64>, rule: &StopRule) -> u64 {
    let periods = period.map_or(0, |p| (p * rule.min_periods.max(rule.min_batches) as f64).ceil() as u64);
    rule.min_ios.max(periods).max(interval::MIN_BATCHES as u64).max(rule.min_batches).min(rule.cap_ios)
}

/// `ios`, rounded up to whole periods.
fn whole(ios: f64, period: Option<f64>) -> u64 {
    match period {
        Some(period) => ((ios / period).ceil() * period).ceil() as u64,
        None => ios.ceil() as u64,
    }
}

/// Whether the halves' means differ by no more than twice what is asked for the
/// whole: the difference of halves has twice the standard error of the mean.
fn halves_agree(response_ns: &[u64], period: Option<f64>, relative: f64) -> bool {
    let half = response_ns.len() / 2;
    let step = period.unwrap_or(1.0);
    let size = ((half as f64 / step).floor().max(1.0) * step) as usize;
    let (first, second) = (
        mean_ns(&response_ns[..size.min(half)]),
        mean_ns(&response_ns[response_ns.len() - size.min(half)..]),
    );
    (first - second).abs() <= 2.0 * relative * (first + second) / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticSeries, generate, running_mean_ns};
    use super::*;

    /// Follows the rule through a long series: IOs used and the last verdict.
    fn follow(values: &[u64], period: Option<f64>, rule: &StopRule) -> (usize, LengthVerdict, u32) {
        let (mut n, mut looks) = (0, 0);
        loop {
            let verdict = enough(&values[..n], period, rule);
            looks += 1;
            if verdict.stop() {
                return (n, verdict, looks);
            }
            assert!(verdict.more_ios > 0 && verdict.expected_ios >= n as u64 + verdict.more_ios);
            n += verdict.more_ios as usize;
        }
    }

    #[test]
    fn a_constant_stops_at_the_minimum_and_noise_later() {
        let rule = StopRule::default();
        let (n, verdict, _) = follow(&[7; 200_000], None, &rule);
        assert_eq!((n, verdict.reason), (128, Reason::PreciseEnough));
        let noisy =
            generate(&SyntheticSeries { ios: 200_000, noise: 1.0, seed: 2, ..SyntheticSeries::default() });
        let (n, verdict, looks) = follow(&noisy, None, &rule);
        // 1.96 * sqrt(e - 1) / (0.05 / 1.05) squared is 2911.
        assert!((1500..12_000).contains(&n) && looks < 10, "{n} {looks}");
        assert_eq!(verdict.reason, Reason::PreciseEnough);
    }

    #[test]
    fn a_period_is_covered_and_a_cap_is_said() {
        let series = SyntheticSeries {
            ios: 200_000,
            duty: 0.05,
            period_ios: Some(100.0),
            noise: 0.02,
            seed: 3,
            ..SyntheticSeries::default()
        };
        let values = generate(&series);
        let rule = StopRule::default();
        let (n, verdict, _) = follow(&values, series.period_ios, &rule);
        assert!((2000..=3000).contains(&n), "{n}");
        let found = verdict.interval.unwrap();
        assert!((found.mean_ns / running_mean_ns(&series) - 1.0).abs() < 0.05);
        let (n, verdict, _) = follow(&values, series.period_ios, &StopRule { cap_ios: 700, ..rule });
        assert_eq!((n, verdict.reason, verdict.more_ios), (700, Reason::Cap, 0));
    }
}
