//! From a long baseline's response times to IOIgnore and IOCount.
//!
//! Method: the start-up phase and the period by the detectors; IOIgnore is the
//! start-up and a tenth more, as its end is known no better, and at least what
//! the run before left behind (`transient.rs`); then the stop rule
//! ([`enough()`]) is followed through the running phase as if it grew, which gives
//! the length a run needs. A run of that length must also agree with the whole
//! long one within the same width: what happens rarely and has no period would
//! else be missed. Where the series ends before the rule is content, it says how
//! many IOs more to submit.
//!
//! Units: IOs, nanoseconds. Source: paper 001, section 4.2 (IOIgnore, IOCount; an
//! automatic IOCount is its future work); the detectors' files for theirs.

use super::transient::transient;
use crate::detect::enough::{Reason, StopRule, enough};
use crate::detect::interval::{MeanInterval, batch_means};
use crate::detect::period::{Period, period};
use crate::detect::startup::{StartUp, start_up};
use crate::plan::Counts;

/// IOIgnore is the start-up times this.
const MARGIN: f64 = 1.1;
/// A run that agrees too badly with the whole is made so much longer.
const GROWTH: f64 = 1.5;

/// What a long baseline tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// The start-up phase, if there is one.
    pub start_up: Option<StartUp>,
    /// IOs at its start that pay for what was before; None where there are none.
    pub transient_ios: Option<u64>,
    /// The period, if the running phase oscillates.
    pub period: Option<Period>,
    /// IOCount and IOIgnore.
    pub counts: Counts,
    /// The mean of the whole running phase and its interval.
    pub interval: Option<MeanInterval>,
    /// What the stop rule says last.
    pub reason: Reason,
    /// IOs to submit before it can say more; 0 where it is content or capped.
    pub more_ios: u64,
}

/// What `response_ns`, a long baseline in the order of submission, tells.
pub fn settle(response_ns: &[u64], rule: &StopRule) -> Settled {
    let start_up = start_up(response_ns);
    let transient = transient(response_ns);
    let started = start_up.map_or(0, |s| (s.ios as f64 * MARGIN).ceil() as usize);
    let ignore = started.max(transient).min(response_ns.len() / 2);
    let running = &response_ns[ignore..];
    let period = period(running);
    let period_ios = period.map(|p| p.ios);
    let (mut n, mut more_ios, mut reason);
    n = 0;
    loop {
        let verdict = enough(&running[..n], period_ios, rule);
        (reason, more_ios) = (verdict.reason, 0);
        let longer = if !verdict.stop() {
            n + verdict.more_ios as usize
        } else if reason == Reason::Cap || agrees(&running[..n], running, rule) {
            break;
        } else {
            reason = Reason::TooWide;
            ((n as f64 * GROWTH).ceil() as usize).min(rule.cap_ios as usize)
        };
        if longer > running.len() {
            more_ios = (longer - running.len()) as u64;
            n = running.len();
            break;
        }
        n = longer;
    }
    let counts = Counts { count: (ignore + n.max(1)) as u64, ignore: ignore as u64 };
    let interval = batch_means(running, period_ios, rule.level);
    let transient_ios = (transient > 0).then_some(transient as u64);
    Settled { start_up, transient_ios, period, counts, interval, reason, more_ios }
}

/// Whether the mean of the first IOs is that of all, within the width asked for.
fn agrees(first: &[u64], all: &[u64], rule: &StopRule) -> bool {
    let mean = |values: &[u64]| values.iter().map(|v| *v as f64).sum::<f64>() / values.len().max(1) as f64;
    let whole = mean(all);
    (mean(first) - whole).abs() <= rule.relative_half_width * whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::synthetic::{SyntheticSeries, generate};

    /// Figure 3: 125 IOs at 0.4 ms, then swings between 0.4 and 27 ms.
    #[test]
    fn a_start_up_is_ignored_and_periods_are_covered() {
        let series = SyntheticSeries {
            ios: 6000,
            start_up_ios: Some(125),
            duty: 0.3,
            period_ios: Some(30.0),
            jitter: 0.1,
            noise: 0.05,
            seed: 5,
            ..SyntheticSeries::default()
        };
        let found = settle(&generate(&series), &StopRule::default());
        let start_up = found.start_up.expect("a start-up");
        assert!((115..=160).contains(&start_up.ios), "{start_up:?}");
        assert!((start_up.ios + 5..180).contains(&found.counts.ignore), "{:?}", found.counts);
        assert!(found.counts.count - found.counts.ignore >= 20 * 30, "{:?}", found.counts);
        assert_eq!((found.reason, found.more_ios), (Reason::PreciseEnough, 0));
    }

    #[test]
    fn a_short_series_asks_for_more_and_a_cap_ends_it() {
        let noisy =
            generate(&SyntheticSeries { ios: 4000, noise: 1.0, seed: 2, ..SyntheticSeries::default() });
        let found = settle(&noisy[..512], &StopRule::default());
        assert!(found.more_ios > 0 && found.reason != Reason::PreciseEnough);
        let found = settle(&noisy, &StopRule { cap_ios: 300, ..StopRule::default() });
        assert_eq!((found.reason, found.more_ios, found.counts.count), (Reason::Cap, 0, 300));
    }

    /// The first IOs are all cheap, expensive ones come too rarely for a period.
    #[test]
    fn what_comes_late_makes_runs_longer() {
        let mut values = vec![1_000_000u64; 1024];
        values[700..].iter_mut().step_by(97).for_each(|v| *v = 60_000_000);
        let found = settle(&values, &StopRule::default());
        assert!(found.counts.count > 700 || found.more_ios > 0, "{found:?}");
    }
}
