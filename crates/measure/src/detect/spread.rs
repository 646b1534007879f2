//! Why repeats of one experiment differ.
//!
//! Source: paper 001, section 5.1: each experiment was run three times and the
//! results were typically within 5 %; a larger spread is a finding. Likely
//! causes, tried in this order: interference (the first IOs of one repeat are
//! not like the other repeats: `lasting.rs` with the others as its reads
//! before, and leaving as many IOs out everywhere at least halves the spread),
//! drift (three or more repeats, each above, or each below, the one before, and
//! the intervals of the first and the last apart), else noise (the means differ
//! by no more than their intervals allow, or for no reason that shows).
//!
//! Units: nanoseconds. Limits: a disturbance in the middle of a repeat counts
//! as noise.

use super::interval::{MeanInterval, batch_means};
use super::lasting::lasting_effect;
use super::long::{Phase, WINDOW_IOS};
use super::series::mean_ns;
use serde::{Deserialize, Serialize};

/// The likely cause of a spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Something was still going on when this repeat began.
    Interference {
        /// Which repeat, from 0.
        repeat: usize,
        /// How many of its first IOs are affected.
        ios: u64,
    },
    /// Response times rise or fall from repeat to repeat.
    Drift {
        /// They rise.
        rising: bool,
    },
    /// Neither: response times vary more than the repeats are long.
    Noise,
}

/// How far repeats are apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Largest minus smallest mean, over the mean of all.
    pub spread: f64,
    /// The repeats' means, in order.
    pub means_ns: Vec<f64>,
    /// Why; None where the spread is within the limit.
    pub cause: Option<Cause>,
}

/// Compares `repeats`, the running phase of each in order of execution.
/// `limit` is the spread that is no finding: 0.05. None for fewer than two
/// repeats, an empty one, or means of 0.
pub fn spread(repeats: &[&[u64]], period_ios: Option<f64>, limit: f64) -> Option<Spread> {
    assert!(limit >= 0.0, "a limit is not negative");
    let means_ns: Vec<f64> = repeats.iter().map(|r| mean_ns(r)).collect();
    let spread = spread_of(&means_ns)?;
    if repeats.iter().any(|r| r.is_empty()) {
        return None;
    }
    let cause = (spread > limit).then(|| {
        interference(repeats, spread)
            .or_else(|| {
                let mean_of = |repeat: &[u64]| batch_means(repeat, period_ios, 0.95);
                drifting(&means_ns, || mean_of(repeats.first()?), || mean_of(repeats.last()?))
            })
            .unwrap_or(Cause::Noise)
    });
    Some(Spread { spread, means_ns, cause })
}

/// [`spread`] of repeats of which some are too long to be kept. Interference is
/// looked for in the repeats with the largest and the smallest mean only, within
/// the IOs that are kept one by one.
pub(crate) fn spread_of_long(repeats: &[Phase], period_ios: Option<f64>, limit: f64) -> Option<Spread> {
    assert!(limit >= 0.0, "a limit is not negative");
    let means_ns: Vec<f64> = repeats.iter().map(Phase::mean_ns).collect();
    let spread = spread_of(&means_ns)?;
    if repeats.iter().any(Phase::is_empty) {
        return None;
    }
    let cause = (spread > limit).then(|| {
        interference_in_extremes(repeats, &means_ns, spread)
            .or_else(|| {
                let mean_of = |repeat: &Phase| repeat.batch_means(period_ios, 0.95);
                drifting(&means_ns, || mean_of(repeats.first()?), || mean_of(repeats.last()?))
            })
            .unwrap_or(Cause::Noise)
    });
    Some(Spread { spread, means_ns, cause })
}

/// As [`interference`], of the repeats with the largest and the smallest mean.
fn interference_in_extremes(repeats: &[Phase], means_ns: &[f64], spread: f64) -> Option<Cause> {
    let of_all = |a: &usize, b: &usize| means_ns[*a].total_cmp(&means_ns[*b]);
    let (smallest, largest) = ((0..repeats.len()).min_by(of_all)?, (0..repeats.len()).max_by(of_all)?);
    let share = (WINDOW_IOS / repeats.len()).max(1);
    [smallest.min(largest), smallest.max(largest)].into_iter().find_map(|repeat| {
        let others = repeats.iter().enumerate().filter(|(i, _)| *i != repeat);
        let others: Vec<u64> =
            others.flat_map(|(_, r)| r.first().iter().take(share).copied()).take(WINDOW_IOS).collect();
        let own = repeats[repeat].first();
        let found = lasting_effect(&others, own, &vec![0; own.len()]).filter(|l| l.over)?;
        let left: Vec<f64> = repeats.iter().map(|r| r.mean_after(found.affected_ios)).collect();
        let explained = left.iter().all(|m| *m > 0.0) && spread_of(&left)? <= spread / 2.0;
        explained.then_some(Cause::Interference { repeat, ios: found.affected_ios })
    })
}

/// Largest minus smallest over the mean.
fn spread_of(means_ns: &[f64]) -> Option<f64> {
    let centre = super::series::mean(means_ns);
    if means_ns.len() < 2 || centre <= 0.0 {
        return None;
    }
    let largest = means_ns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = means_ns.iter().copied().fold(f64::INFINITY, f64::min);
    Some((largest - smallest) / centre)
}

/// The repeat whose first IOs differ, if leaving them out explains the spread.
fn interference(repeats: &[&[u64]], spread: f64) -> Option<Cause> {
    (0..repeats.len()).find_map(|repeat| {
        let others: Vec<u64> = repeats
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != repeat)
            .flat_map(|(_, r)| r.iter().copied())
            .collect();
        let own = repeats[repeat];
        let found = lasting_effect(&others, own, &vec![0; own.len()]).filter(|l| l.over)?;
        let left: Vec<f64> =
            repeats.iter().map(|r| mean_ns(&r[r.len().min(found.affected_ios as usize)..])).collect();
        let explained = left.iter().all(|m| *m > 0.0) && spread_of(&left)? <= spread / 2.0;
        explained.then_some(Cause::Interference { repeat, ios: found.affected_ios })
    })
}

/// A drift over three or more repeats; `first` and `last` give the intervals of
/// the first and the last one's mean.
fn drifting(
    means_ns: &[f64],
    first: impl FnOnce() -> Option<MeanInterval>,
    last: impl FnOnce() -> Option<MeanInterval>,
) -> Option<Cause> {
    let rising = means_ns.windows(2).all(|w| w[1] > w[0]);
    let falling = means_ns.windows(2).all(|w| w[1] < w[0]);
    if means_ns.len() < 3 || !(rising || falling) {
        return None;
    }
    let (first, last) = (first()?, last()?);
    let apart = first.high_ns < last.low_ns || last.high_ns < first.low_ns;
    apart.then_some(Cause::Drift { rising })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticSeries, generate};
    use super::*;

    fn repeats(levels: [f64; 3], noise: f64) -> Vec<Vec<u64>> {
        let run = |(i, cheap_ns): (usize, f64)| {
            generate(&SyntheticSeries {
                ios: 1024,
                cheap_ns,
                noise,
                seed: i as u64 + 40,
                ..SyntheticSeries::default()
            })
        };
        levels.into_iter().enumerate().map(run).collect()
    }

    fn cause(repeats: &[Vec<u64>]) -> Option<Cause> {
        let slices: Vec<&[u64]> = repeats.iter().map(Vec::as_slice).collect();
        spread(&slices, None, 0.05).expect("three repeats").cause
    }

    #[test]
    fn each_cause_is_told_from_the_others() {
        assert_eq!(cause(&repeats([1e6, 1.01e6, 1e6], 0.1)), None);
        assert_eq!(cause(&repeats([1e6, 1.1e6, 1.2e6], 0.1)), Some(Cause::Drift { rising: true }));
        assert_eq!(cause(&repeats([1.2e6, 1.1e6, 1e6], 0.1)), Some(Cause::Drift { rising: false }));
        assert_eq!(cause(&repeats([1e6, 1.2e6, 1.1e6], 0.1)), Some(Cause::Noise));
        let mut disturbed = repeats([1e6; 3], 0.1);
        disturbed[1][..100].iter_mut().for_each(|v| *v *= 4);
        let Some(Cause::Interference { repeat: 1, ios }) = cause(&disturbed) else {
            panic!("no interference: {:?}", cause(&disturbed));
        };
        assert!((95..=105).contains(&ios), "{ios}");
    }

    #[test]
    fn too_little_to_compare_is_none() {
        assert_eq!(spread(&[], None, 0.05), None);
        assert_eq!(spread(&[&[5, 5]], None, 0.05), None);
        assert_eq!(spread(&[&[5, 5], &[]], None, 0.05), None);
        assert_eq!(spread(&[&[0, 0], &[0]], None, 0.05), None);
        assert_eq!(spread(&[&[5], &[5]], None, 0.05).map(|s| s.cause), Some(None));
    }
}
