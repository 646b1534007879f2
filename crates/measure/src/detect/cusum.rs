//! The common core of start-up and lingering: is the beginning of a series a
//! phase of its own, or just one more swing of what follows?
//!
//! Method: the cumulative sum of deviations from the running level finds where
//! the first phase ends (E. S. Page, "Continuous inspection schemes",
//! Biometrika 41, 1954; D. V. Hinkley, "Inference about the change-point from
//! cumulative sum tests", Biometrika 58, 1971: with the reference value half
//! way between both levels the extreme of the sum is the maximum-likelihood
//! estimate). A threshold from the theory of independent values would take the
//! first cheap stretch of an oscillation for a start-up, so the sum's own
//! excursions in the running phase are the yardstick: a reflected cumulative
//! sum regenerates whenever it returns to zero, the cycles between are
//! exchangeable (M. A. Crane and A. J. Lemoine, "An introduction to the
//! regenerative method for simulation analysis", 1977), and the first phase
//! must be deeper than nearly all of them.
//!
//! Units: scores (natural logarithms of ns) and IOs. Limits: a first phase no
//! longer than the running phase's own cheap stretches cannot be told from one.

use super::series::{mean, slope};

/// A first phase as the cumulative sum sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Phase {
    /// IOs in it.
    pub ios: usize,
    /// Level of what follows minus its own; positive where it is lower.
    pub shift: f64,
    /// Its depth over the deepest usual excursion of what follows.
    pub margin: f64,
    /// Share of what follows that lies in excursions as deep, itself counted.
    pub p_value: f64,
}

/// Excursions of the sum of `gain` per IO, held at zero from below: height and
/// IOs of each, the last one as far as it goes.
fn excursions(gains: impl Iterator<Item = f64>) -> Vec<(f64, usize)> {
    let mut found = Vec::new();
    let (mut sum, mut height, mut ios) = (0.0f64, 0.0f64, 0usize);
    for gain in gains {
        sum += gain;
        if sum > 0.0 {
            height = height.max(sum);
            ios += 1;
        } else {
            if ios > 0 {
                found.push((height, ios));
            }
            (sum, height, ios) = (0.0, 0.0, 0);
        }
    }
    if ios > 0 {
        found.push((height, ios));
    }
    found
}

/// The height below which `share` of the IOs of `found` lie in their excursions,
/// taken over `ios` IOs in all.
fn usual_height(found: &mut [(f64, usize)], ios: usize, share: f64) -> f64 {
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let mut above = (ios as f64 * (1.0 - share)) as usize;
    for &(height, length) in found.iter() {
        if length > above {
            return height;
        }
        above -= length;
    }
    0.0
}

/// Weighs the first phase `head` (of lower level, where `sign` is 1, of higher
/// where it is -1) against the excursions of `rest`. None where there is no
/// shift in that direction.
pub(crate) fn weigh(head: &[f64], rest: &[f64], sign: f64, share: f64) -> Option<Phase> {
    if head.is_empty() || rest.is_empty() {
        return None;
    }
    let level = mean(rest);
    let shift = sign * (level - mean(head));
    // Rounding alone makes shifts of this size.
    if shift <= 1e-9 * level.abs().max(1.0) {
        return None;
    }
    let depth = head.len() as f64 * shift / 2.0;
    let mut found = excursions(rest.iter().map(|&x| sign * (level - x) - shift / 2.0));
    let lengths: usize = found.iter().map(|e| e.1).sum();
    let cycle = if found.is_empty() { 1.0 } else { lengths as f64 / found.len() as f64 };
    let as_deep: usize = found.iter().filter(|e| e.0 >= depth).map(|e| e.1).sum();
    let usual = usual_height(&mut found, rest.len(), share).max(shift / 2.0);
    Some(Phase {
        ios: head.len(),
        shift: sign * shift,
        margin: depth / usual,
        p_value: ((cycle + as_deep as f64) / (cycle + rest.len() as f64)).min(1.0),
    })
}

/// Where the sum of deviations from `level` is at its extreme within `scores`:
/// the IOs before it, 0 where no beginning lies on that side.
pub(crate) fn extreme(scores: &[f64], level: f64, sign: f64) -> usize {
    let (mut sum, mut best, mut at) = (0.0, 0.0, 0);
    for (i, &x) in scores.iter().enumerate() {
        sum += sign * (level - x);
        if sum > best {
            (best, at) = (sum, i + 1);
        }
    }
    at
}

/// The end of a first phase within `scores[..horizon]`, the level after it
/// taken from `rest`: first with the running level as reference, then half way.
pub(crate) fn locate(scores: &[f64], level: f64, sign: f64) -> usize {
    let rough = extreme(scores, level, sign);
    if rough == 0 {
        return 0;
    }
    let half_way = (level + mean(&scores[..rough])) / 2.0;
    extreme(scores, half_way, sign)
}

/// The slope per IO of a trend through `scores`: the median of the slopes
/// between block means (H. Theil, 1950; P. K. Sen, 1968); 0 where too short.
pub(crate) fn trend(scores: &[f64]) -> f64 {
    const BLOCKS: usize = 16;
    let width = scores.len() / BLOCKS;
    if width == 0 {
        return slope(scores);
    }
    let means: Vec<f64> = scores.chunks_exact(width).take(BLOCKS).map(mean).collect();
    let mut slopes = Vec::with_capacity(BLOCKS * (BLOCKS - 1) / 2);
    for (i, a) in means.iter().enumerate() {
        for (j, b) in means.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / ((j - i) * width) as f64);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes[slopes.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excursions_are_heights_and_lengths() {
        let gains = [1.0, 1.0, -1.0, -2.0, -1.0, 0.5, -1.0, 3.0];
        assert_eq!(excursions(gains.into_iter()), [(2.0, 3), (0.5, 1), (3.0, 1)]);
    }

    #[test]
    fn a_step_is_located_exactly_both_ways() {
        let up: Vec<f64> = (0..100).map(|i| if i < 37 { 1.0 } else { 2.0 }).collect();
        let down: Vec<f64> = up.iter().map(|x| 3.0 - x).collect();
        assert_eq!(locate(&up, 2.0, 1.0), 37);
        assert_eq!(locate(&down, 1.0, -1.0), 37);
        assert_eq!(locate(&up, 2.0, -1.0), 0);
    }

    #[test]
    fn one_more_swing_has_no_margin_and_a_deeper_one_has() {
        let swing = |i: usize| if i % 10 < 5 { 0.0 } else { 1.0 };
        let rest: Vec<f64> = (0..1000).map(swing).collect();
        let same = weigh(&[0.0; 5], &rest, 1.0, 0.95).unwrap();
        assert!((same.margin - 1.0).abs() < 1e-9 && same.p_value > 0.3, "{same:?}");
        let longer = weigh(&[0.0; 20], &rest, 1.0, 0.95).unwrap();
        assert!((longer.margin - 4.0).abs() < 1e-9 && longer.p_value < 0.02, "{longer:?}");
        assert_eq!(weigh(&[0.0; 20], &rest, -1.0, 0.95), None);
    }

    #[test]
    fn a_trend_survives_spikes() {
        let scores: Vec<f64> = (0..1600).map(|i| f64::from(i) * 0.01 + if i % 400 == 7 { 50.0 } else { 0.0 }).collect();
        assert!((trend(&scores) - 0.01).abs() < 0.001, "{}", trend(&scores));
    }
}
