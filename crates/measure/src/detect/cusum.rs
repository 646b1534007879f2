//! The common core of start-up and lasting effects: is the beginning of a series a
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

use super::series::{mean, slope, student_t};

/// A first phase as the cumulative sum sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FirstPhase {
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
pub(crate) fn weigh(head: &[f64], rest: &[f64], sign: f64, share: f64) -> Option<FirstPhase> {
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
    Some(FirstPhase {
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

/// A straight line through block means of a series, with its errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestLine {
    /// IOs in a block.
    width: f64,
    /// Blocks.
    blocks: f64,
    /// Level in the middle.
    level: f64,
    /// Rise per block.
    rise: f64,
    /// Standard deviation of a block's mean about the line, widened for what
    /// correlation remains between neighbours.
    spread: f64,
    /// Skewness of a single value.
    skewness: f64,
}

/// The line through `rest`, its blocks at most `widest` IOs, or whole periods.
/// Blocks keep correlation within them from mattering, as in batch means. None
/// where `rest` holds fewer than 8 blocks.
pub(crate) fn line(rest: &[f64], widest: usize, period_ios: Option<f64>) -> Option<RestLine> {
    const MIN_BLOCKS: usize = 8;
    const BLOCKS: usize = 24;
    if rest.len() < MIN_BLOCKS || widest == 0 {
        return None;
    }
    let mut width = widest.min((rest.len() / BLOCKS).max(1));
    if let Some(period) = period_ios.filter(|p| *p <= (rest.len() / MIN_BLOCKS) as f64) {
        width = ((width as f64 / period).round().max(1.0) * period).round() as usize;
    }
    let means: Vec<f64> = rest.chunks_exact(width).map(mean).collect();
    let (m, rise, level) = (means.len() as f64, slope(&means), mean(&means));
    if means.len() < MIN_BLOCKS {
        return None;
    }
    let residual = |i: usize| means[i] - level - rise * (i as f64 - (m - 1.0) / 2.0);
    let squares: f64 = (0..means.len()).map(|i| residual(i).powi(2)).sum();
    let neighbours: f64 = (1..means.len()).map(|i| residual(i) * residual(i - 1)).sum();
    let correlation = if squares > 0.0 { (neighbours / squares).clamp(0.0, 0.8) } else { 0.0 };
    let widen = (1.0 + correlation) / (1.0 - correlation);
    let spread = (squares / (m - 2.0) * widen).sqrt().max(1e-9 * level.abs().max(1.0));
    let moment = |power: i32| rest.iter().map(|x| (x - level).powi(power)).sum::<f64>() / rest.len() as f64;
    let skewness = if squares > 0.0 && period_ios.is_none() { moment(3) / moment(2).powf(1.5) } else { 0.0 };
    Some(RestLine { width: width as f64, blocks: m, level, rise, spread, skewness })
}

impl RestLine {
    /// The rise per IO where it is more than chance (3 standard errors), else 0.
    pub(crate) fn trend(&self) -> f64 {
        let error = self.spread * (12.0 / (self.blocks * (self.blocks * self.blocks - 1.0))).sqrt();
        if self.rise.abs() > 3.0 * error { self.rise / self.width } else { 0.0 }
    }

    /// How many standard errors the level of `head`, which ends where the line
    /// begins, lies below what the line carried back predicts for it.
    pub(crate) fn errors_below(&self, head: &[f64]) -> f64 {
        let length = head.len() as f64 / self.width;
        let rise = self.trend() * self.width;
        let back = length / 2.0 + self.blocks / 2.0;
        let lever = if rise == 0.0 {
            0.0
        } else {
            back * back * 12.0 / (self.blocks * (self.blocks * self.blocks - 1.0))
        };
        let error = self.spread * (1.0 / length + 1.0 / self.blocks + lever).sqrt();
        (self.level - rise * back - mean(head)) / error
    }

    /// The level in the middle.
    pub(crate) fn level(&self) -> f64 {
        self.level
    }

    /// The standard error of the difference between the level and the mean of
    /// another `ios` IOs like these.
    pub(crate) fn level_error(&self, ios: usize) -> f64 {
        self.spread * (self.width / ios as f64 + 1.0 / self.blocks).sqrt()
    }

    /// The standard errors that chance alone exceeds with probability `alpha`,
    /// below (`sign` 1) or above (`sign` -1), for a head of `ios` IOs: Student's
    /// t, moved for skewness by the first term of Cornish and Fisher (1938).
    pub(crate) fn threshold(&self, alpha: f64, sign: f64, ios: usize) -> f64 {
        let t = student_t(1.0 - alpha, self.blocks - 2.0);
        let skewness = self.skewness / (ios as f64).sqrt();
        (t - sign * (t * t - 1.0) * skewness / 6.0).clamp(t / 2.0, t * 2.0)
    }
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
    fn a_trend_explains_itself_and_not_a_step() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.01 + f64::from(i * 7 % 13) * 0.1).collect();
        let through = line(&values[100..], 100, None).unwrap();
        assert!((through.trend() - 0.01).abs() < 1e-4, "{through:?}");
        assert!(through.errors_below(&values[..100]).abs() < 3.0);
        let lower: Vec<f64> = values[..100].iter().map(|x| x - 1.0).collect();
        assert!(through.errors_below(&lower) > 10.0);
        let level: Vec<f64> = (0..900).map(|i| f64::from(i * 7 % 13) * 0.1).collect();
        assert_eq!(line(&level, 100, None).unwrap().trend(), 0.0);
    }
}
