//! What a batch of writes leaves behind: how many of the reads after it are
//! affected, and for how long.
//!
//! Source of the experiment: paper 001, sections 4.3 and 5.1 (sequential reads,
//! a batch of random writes, sequential reads again; the pause is
//! overestimated). Method: the reads after are a first phase and the reads
//! before are what it is weighed against, by cumulative sums of log response
//! times; see `cusum.rs` for the sources. What remains after a phase is weighed
//! again, so that an effect that fades is followed to where it is lost in the
//! noise. Both kinds of evidence must hold: deeper than the excursions of the
//! reads before, and a mean that differs by 5 %.
//!
//! Units: nanoseconds, IOs. Limits: an effect that begins only after the last
//! read of the test is not seen; one that has not ended by then is said to be
//! open.

use super::cusum;
use super::series::{log_scores, mean, mean_ns};
use serde::{Deserialize, Serialize};

/// Deeper than this share of the reads before.
const USUAL: f64 = 0.99;
/// By this factor.
const MARGIN: f64 = 1.5;
/// And at most so likely by chance.
const ALPHA: f64 = 0.05;
/// Standard errors between the affected reads' level and the level before.
const ERRORS: f64 = 3.0;
/// And the mean of the affected reads is this many times the one before.
const EFFECT: f64 = 1.05;
/// An effect is over where at least this share of the reads after it is normal.
const TAIL: f64 = 0.1;
/// Reads before that are needed.
const MIN_BEFORE: usize = 16;

/// What lasts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastingEffect {
    /// Reads until response times are back to normal.
    pub affected_ios: u64,
    /// From the submission of the first read after the batch to the completion
    /// of the last affected one.
    pub affected_ns: u64,
    /// Whether response times came back to normal before the test ended; if
    /// not, the two figures above are lower bounds.
    pub over: bool,
    /// Mean response time before the batch.
    pub before_mean_ns: f64,
    /// Mean response time of the affected reads.
    pub affected_mean_ns: f64,
    /// Their depth over the usual excursions before; above 1.
    pub margin: f64,
    /// The chance that the reads before would do the same.
    pub p_value: f64,
}

/// What lasts of the batch between the reads `before_ns` and the reads after
/// it, given by their response times `after_ns` and submission times
/// `after_submit_ns`. None where the reads after are as those before, or where
/// either series is too short to tell.
pub fn lasting_effect(before_ns: &[u64], after_ns: &[u64], after_submit_ns: &[u64]) -> Option<LastingEffect> {
    assert_eq!(after_ns.len(), after_submit_ns.len(), "each read has a submission time");
    if before_ns.len() < MIN_BEFORE || after_ns.is_empty() {
        return None;
    }
    let before = log_scores(before_ns, 0.999);
    let after = log_scores(after_ns, 1.0);
    let (mut ios, mut margin, mut p_value) = (0, f64::INFINITY, 0.0f64);
    while let Some(phase) = next_phase(&before, &after[ios..], before_ns, &after_ns[ios..]) {
        ios += phase.ios;
        margin = margin.min(phase.margin);
        p_value = p_value.max(phase.p_value);
    }
    let last = ios.checked_sub(1)?;
    let end = after_submit_ns[last].saturating_add(after_ns[last]);
    Some(LastingEffect {
        affected_ios: ios as u64,
        affected_ns: end.saturating_sub(after_submit_ns[0]),
        over: (after.len() - ios) as f64 >= TAIL * after.len() as f64,
        before_mean_ns: mean_ns(before_ns),
        affected_mean_ns: mean_ns(&after_ns[..ios]),
        margin,
        p_value,
    })
}

/// The next phase of reads that are not as those before.
fn next_phase(
    before: &[f64],
    after: &[f64],
    before_ns: &[u64],
    after_ns: &[u64],
) -> Option<cusum::FirstPhase> {
    if after.is_empty() {
        return None;
    }
    let level = mean(before);
    [-1.0, 1.0].into_iter().find_map(|sign| {
        let ios = cusum::locate(after, level, sign);
        let phase = cusum::weigh(after.get(..ios)?, before, sign, USUAL)?;
        let line = cusum::line(before, ios, None)?;
        let errors = sign * (line.level() - mean(&after[..ios])) / line.level_error(ios);
        let ratio = (mean_ns(&after_ns[..ios]) + 1.0) / (mean_ns(before_ns) + 1.0);
        let effect = if sign < 0.0 { ratio } else { 1.0 / ratio };
        let sure = phase.margin >= MARGIN && phase.p_value <= ALPHA && errors >= ERRORS && effect >= EFFECT;
        sure.then_some(phase)
    })
}

/// The pause between runs: twice what lasts, and at least `floor_ns`.
pub fn pause_ns(found: Option<&LastingEffect>, floor_ns: u64) -> u64 {
    found.map_or(0, |l| l.affected_ns.saturating_mul(2)).max(floor_ns)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticSeries, gauss, generate};
    use super::*;
    use uflip_device::rng::Rng;

    /// Submission times of consecutive IOs, the first at `from_ns`.
    fn consecutive(response_ns: &[u64], from_ns: u64) -> Vec<u64> {
        let mut at = from_ns;
        response_ns
            .iter()
            .map(|&v| {
                at += v;
                at - v
            })
            .collect()
    }

    fn reads(ios: usize, seed: u64) -> Vec<u64> {
        generate(&SyntheticSeries { ios, noise: 0.05, outliers: 0.002, seed, ..SyntheticSeries::default() })
    }

    /// Paper 001, figure 5: about 3,000 reads and 2.5 s on the Mtron.
    #[test]
    fn mtrons_effect_lasts_for_3000_reads_and_two_and_a_half_seconds() {
        let mut after = reads(6000, 2);
        let mut rng = Rng::new(9);
        for value in &mut after[..3000] {
            if rng.unit() < 0.06 {
                *value = (7.5e6 * (0.3 * gauss(&mut rng)).exp()) as u64;
            }
        }
        let found = lasting_effect(&reads(2000, 1), &after, &consecutive(&after, 77)).expect("an effect");
        assert!((2900..=3100).contains(&found.affected_ios), "{found:?}");
        assert!((2_300_000_000..2_800_000_000).contains(&found.affected_ns) && found.over, "{found:?}");
        let pause = pause_ns(Some(&found), 1_000_000_000);
        assert!((4_600_000_000..5_600_000_000).contains(&pause), "{pause}");
    }

    #[test]
    fn a_fading_effect_is_followed_and_an_endless_one_is_open() {
        let mut after = reads(4000, 4);
        for (io, value) in after.iter_mut().enumerate() {
            *value = (*value as f64 * (1.0 + 3.0 * (-(io as f64) / 300.0).exp())) as u64;
        }
        let found = lasting_effect(&reads(2000, 3), &after, &consecutive(&after, 0)).expect("an effect");
        // At 3 / e^(900 / 300) of the cheap level 15 % remain, at 1500 2 %.
        assert!((900..=1900).contains(&found.affected_ios) && found.over, "{found:?}");
        let slow: Vec<u64> = reads(500, 5).iter().map(|v| v * 2).collect();
        let found = lasting_effect(&reads(2000, 3), &slow, &consecutive(&slow, 0)).expect("an effect");
        assert!(!found.over && found.affected_ios >= 450, "{found:?}");
    }

    #[test]
    fn the_same_reads_before_and_after_mean_no_effect_and_the_floor() {
        let found = (0..200)
            .filter(|&i| {
                let after = reads(1000, 2 * i + 1);
                lasting_effect(&reads(1000, 2 * i), &after, &consecutive(&after, 0)).is_some()
            })
            .count();
        assert!(found <= 8, "{found} false alarms in 200");
        assert_eq!(pause_ns(None, 1_000_000_000), 1_000_000_000);
    }

    #[test]
    fn odd_series_have_no_effect_and_no_panic() {
        assert_eq!(lasting_effect(&[], &[], &[]), None);
        assert_eq!(lasting_effect(&[5; 100], &[5; 100], &[0; 100]), None);
        assert_eq!(lasting_effect(&[5; 3], &[9], &[0]), None);
        let found = lasting_effect(&[5; 100], &[u64::MAX; 100], &[u64::MAX; 100]).expect("all affected");
        assert_eq!((found.affected_ios, found.over), (100, false));
    }
}
