//! The start-up phase: how many first IOs go by before the running phase.
//!
//! Method: candidates for the end of the start-up from cumulative sums over
//! horizons that double, each weighed against the excursions of the running
//! phase that follows it; see `cusum.rs` for the sources. Scores are logarithms
//! of response times, cut at their 99.9 % quantile, and whether an IO stands out
//! as expensive (F. R. Hampel's identifier, 1974). A trend of the running
//! phase is carried back over the start-up (regression on block means, with its
//! prediction error): what the trend explains is drift, not start-up. Among the candidates that pass, the one that
//! explains most of the variance is reported.
//!
//! Source of the model: paper 001, section 4.2. Units: IOs, nanoseconds.
//! Limits: at least 4 IOs; at most half of the series; a start-up no longer
//! than the running phase's own stretches of the same level is not seen, and
//! a cheap stretch that the running phase happens to begin with is counted in.

use super::cusum::{self, FirstPhase};
use super::long::Condensed;
use super::period;
use super::series::{log_scores, mean, mean_ns, quantile, variance};
use serde::{Deserialize, Serialize};

/// The shortest start-up that is reported.
const MIN_IOS: usize = 4;
/// Response times above this quantile count as that quantile.
const CUT: f64 = 0.999;
/// An excursion is usual unless it is among the deepest that make up this share.
const USUAL: f64 = 0.95;
/// A start-up is this much deeper than usual excursions.
const MARGIN: f64 = 1.3;
/// And as rare as this.
const ALPHA: f64 = 0.1;
/// An IO stands out where it is this many standard deviations over the median,
/// by the median absolute deviation.
const STANDS_OUT: f64 = 4.0;
/// A series is at least this many times as long as its start-up.
const MIN_SERIES: usize = 4;
/// And its mean differs by this factor.
const EFFECT: f64 = 1.2;
/// And the running phase's trend, carried back, predicts its level so rarely.
const TREND_ALPHA: f64 = 0.004;
/// A warm-up is rarer than a cheap start-up, so chance alone must be as well.
const TREND_ALPHA_EXPENSIVE: f64 = 0.001;

/// Which way the start-up differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartUpKind {
    /// Cheaper than the running phase: expensive work is put off.
    Cheap,
    /// More expensive than the running phase: the device is warming up.
    Expensive,
}

/// A start-up phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartUp {
    /// IOs in it.
    pub ios: u64,
    /// Which way it differs.
    pub kind: StartUpKind,
    /// Its mean response time.
    pub before_mean_ns: f64,
    /// The mean response time of everything after it.
    pub after_mean_ns: f64,
    /// Its depth over that of the running phase's usual excursions; above 1.
    pub margin: f64,
    /// Share of the running phase that lies in excursions as deep, the start-up
    /// counted as one: the chance that it is just one more swing.
    pub p_value: f64,
    /// 0 to 1: how sure, from `p_value` and `margin` together.
    pub confidence: f64,
}

/// The start-up phase of `response_ns`, in the order of submission; None where
/// there is none or the series is too short to tell.
pub fn start_up(response_ns: &[u64]) -> Option<StartUp> {
    best(response_ns).map(|(_, phase)| describe(response_ns, &phase)).filter(agrees)
}

/// The start-up phase of a series that is too long to be kept: a short one among
/// its first IOs, a longer one among its blocks, whichever explains more.
pub(crate) fn start_up_of_long(series: &Condensed) -> Option<StartUp> {
    let near = best(series.window());
    let blocks = series.blocks_ns();
    let size = series.block_ios() as usize;
    let seen_before = series.window().len() / MIN_SERIES;
    let far = best(&blocks).filter(|(_, phase)| phase.ios * size > seen_before).map(|(gain, phase)| {
        // Blocks vary less than IOs: the share is that of the IOs' variance.
        let explained = phase.ios as f64 * phase.shift * phase.shift;
        let variance = (explained / gain).max(series.log_variance()).max(f64::MIN_POSITIVE);
        (explained * size as f64 / variance, FirstPhase { ios: phase.ios * size, ..phase })
    });
    let most = |a: &(f64, FirstPhase), b: &(f64, FirstPhase)| a.0.total_cmp(&b.0);
    let (_, phase) = near.into_iter().chain(far).max_by(most)?;
    let means = series.split_means(phase.ios as u64);
    Some(described(&phase, means)).filter(agrees)
}

/// Extremes can make logarithms and means differ in opposite directions.
fn agrees(found: &StartUp) -> bool {
    (found.kind == StartUpKind::Cheap) == (found.before_mean_ns < found.after_mean_ns)
}

/// The first phase that explains most of the variance, and how much, times IOs.
fn best(response_ns: &[u64]) -> Option<(f64, FirstPhase)> {
    let longest = response_ns.len() / MIN_SERIES;
    let logs = log_scores(response_ns, CUT);
    let period_ios = period::period(&response_ns[longest..]).map(|p| p.ios);
    let mut best: Option<(f64, FirstPhase)> = None;
    let spikes = expensive_ones(&logs, longest);
    for scores in [spikes.as_ref(), Some(&logs)].into_iter().flatten() {
        let series = Scored { response_ns, logs: &logs, scores, period_ios };
        let mut horizon = (2 * MIN_IOS).min(longest);
        while horizon >= 2 * MIN_IOS {
            for sign in [1.0, -1.0] {
                if let Some((gain, phase)) = candidate(&series, horizon, sign)
                    && best.is_none_or(|(most, _)| gain > most)
                {
                    best = Some((gain, phase));
                }
            }
            horizon = if horizon == longest { 0 } else { (horizon * 2).min(longest) };
        }
    }
    best
}

/// 1 for IOs that stand out from the running phase as expensive, 0 for others:
/// a few spikes in much noise show better so. None where nothing stands out.
fn expensive_ones(logs: &[f64], longest: usize) -> Option<Vec<f64>> {
    let running = &logs[longest..];
    let median = quantile(running, 0.5)?;
    let deviations: Vec<f64> = running.iter().map(|x| (x - median).abs()).collect();
    let limit = median + (STANDS_OUT * 1.4826 * quantile(&deviations, 0.5)?).max(std::f64::consts::LN_2);
    let found = running.iter().filter(|x| **x > limit).count();
    (found >= 8).then(|| logs.iter().map(|x| f64::from(u8::from(*x > limit))).collect())
}

/// A series as the search for candidates needs it.
struct Scored<'a> {
    response_ns: &'a [u64],
    logs: &'a [f64],
    scores: &'a [f64],
    period_ios: Option<f64>,
}

/// IOs after a first phase of `ios` that serve as its yardstick: many times as
/// many, but not so many that a slow drift takes over.
fn yardstick(ios: usize) -> usize {
    ios.saturating_mul(32).saturating_add(4096)
}

/// The first phase within `horizon`, if it passes every condition, and the
/// share of the variance it explains, times IOs.
fn candidate(series: &Scored, horizon: usize, sign: f64) -> Option<(f64, FirstPhase)> {
    let end = |ios: usize| series.scores.len().min(ios + yardstick(ios));
    let window = &series.scores[..end(horizon)];
    let log_window = &series.logs[..window.len()];
    let series_trend = cusum::line(&log_window[horizon..], horizon, series.period_ios)?.trend();
    let trend = cusum::line(&window[horizon..], horizon, series.period_ios)?.trend();
    let level_scores: Vec<f64> = window.iter().enumerate().map(|(i, s)| s - trend * i as f64).collect();
    let ios = cusum::locate(&level_scores[..horizon], mean(&level_scores[horizon..]), sign);
    if ios < MIN_IOS {
        return None;
    }
    let (head, rest) = level_scores.split_at(ios);
    let phase = cusum::weigh(head, rest, sign, USUAL)?;
    if phase.margin < MARGIN || phase.p_value > ALPHA {
        return None;
    }
    let alpha = if sign > 0.0 { TREND_ALPHA } else { TREND_ALPHA_EXPENSIVE };
    let line = cusum::line(&window[ios..], ios, series.period_ios)?;
    if sign * line.errors_below(&window[..ios]) < line.threshold(alpha, sign, ios) {
        return None;
    }
    let ratio =
        (mean_ns(&series.response_ns[ios..window.len()]) + 1.0) / (mean_ns(&series.response_ns[..ios]) + 1.0);
    let ratio = ratio * (-series_trend * window.len() as f64 / 2.0).exp();
    let effect = if sign > 0.0 { ratio } else { 1.0 / ratio };
    let gain = ios as f64 * phase.shift * phase.shift / variance(&level_scores).max(f64::MIN_POSITIVE);
    (effect >= EFFECT).then_some((gain, phase))
}

/// The phase in the caller's units.
fn describe(response_ns: &[u64], phase: &FirstPhase) -> StartUp {
    described(phase, (mean_ns(&response_ns[..phase.ios]), mean_ns(&response_ns[phase.ios..])))
}

/// The phase with the mean of its IOs and of those after it.
fn described(phase: &FirstPhase, (before_mean_ns, after_mean_ns): (f64, f64)) -> StartUp {
    StartUp {
        ios: phase.ios as u64,
        kind: if phase.shift > 0.0 { StartUpKind::Cheap } else { StartUpKind::Expensive },
        before_mean_ns,
        after_mean_ns,
        margin: phase.margin,
        p_value: phase.p_value,
        confidence: (1.0 - phase.p_value) * (1.0 - 1.0 / (phase.margin * phase.margin)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticSeries, generate};
    use super::*;

    /// Paper 001, figure 3: Mtron, 125 IOs at 0.4 ms, then 0.4 to 27 ms.
    fn mtron(ios: usize, seed: u64) -> SyntheticSeries {
        SyntheticSeries {
            ios,
            start_up_ios: Some(125),
            duty: 0.3,
            period_ios: Some(30.0),
            jitter: 0.15,
            noise: 0.1,
            outliers: 0.002,
            seed,
            ..SyntheticSeries::default()
        }
    }

    #[test]
    fn mtron_starts_up_for_about_125_ios() {
        for (seed, ios) in [(1, 512), (2, 1024), (3, 5120), (4, 100_000)] {
            let found = start_up(&generate(&mtron(ios, seed))).expect("Mtron has a start-up");
            assert!((120..=160).contains(&found.ios), "{found:?}");
            assert_eq!(found.kind, StartUpKind::Cheap);
            assert!(found.before_mean_ns < 0.6e6 && found.after_mean_ns > 5e6, "{found:?}");
            assert!(found.confidence > 0.5 && found.p_value < 0.1 && found.margin > 1.0, "{found:?}");
        }
    }

    /// Memoright: 30 cheap IOs, then cheap ones alternate with tens of ms.
    #[test]
    fn memoright_starts_up_for_about_30_ios() {
        for seed in 1..6 {
            let series = SyntheticSeries {
                start_up_ios: Some(30),
                start_up_ns: 300e3,
                cheap_ns: 300e3,
                expensive_ns: 25e6,
                duty: 0.2,
                period_ios: Some(5.0),
                jitter: 0.2,
                noise: 0.05,
                seed,
                ..SyntheticSeries::default()
            };
            let found = start_up(&generate(&series)).expect("Memoright has a start-up");
            assert!((30..=36).contains(&found.ios), "{found:?}");
        }
    }

    /// Paper 001, figure 4: one expensive IO in 128 and no start-up, whatever
    /// the phase the run begins in.
    #[test]
    fn the_first_stretch_of_an_oscillation_is_no_start_up() {
        for phase in [0.0, 0.1, 0.5, 0.9] {
            for ios in [512, 1024, 5120] {
                let series = SyntheticSeries {
                    ios,
                    cheap_ns: 2e6,
                    expensive_ns: 130e6,
                    duty: 0.001,
                    period_ios: Some(128.0),
                    phase,
                    noise: 0.05,
                    seed: ios as u64,
                    ..SyntheticSeries::default()
                };
                assert_eq!(start_up(&generate(&series)), None, "{phase} {ios}");
            }
        }
    }

    #[test]
    fn an_expensive_beginning_is_a_warm_up() {
        let series = SyntheticSeries {
            start_up_ios: Some(64),
            start_up_ns: 2e6,
            noise: 0.1,
            seed: 3,
            ..SyntheticSeries::default()
        };
        let found = start_up(&generate(&series)).expect("a warm-up of 64 IOs");
        assert_eq!((found.kind, found.ios), (StartUpKind::Expensive, 64));
        assert!(found.before_mean_ns > 4.0 * found.after_mean_ns);
    }

    #[test]
    fn outliers_within_the_start_up_do_not_end_it() {
        let mut values = generate(&mtron(5120, 9));
        [20, 71].into_iter().for_each(|at| values[at] = 40_000_000);
        let found = start_up(&values).expect("a start-up with two outliers");
        assert!((120..=160).contains(&found.ios), "{found:?}");
    }

    #[test]
    fn drift_is_no_start_up() {
        for drift in [0.5, 0.8, 1.25, 2.0] {
            let series = SyntheticSeries { drift, noise: 0.1, seed: 5, ..SyntheticSeries::default() };
            assert_eq!(start_up(&generate(&series)), None, "{drift}");
        }
    }

    #[test]
    fn odd_series_have_no_start_up_and_no_panic() {
        let none: [&[u64]; 7] =
            [&[], &[1], &[5; 4], &[5; 1000], &[0; 300], &[u64::MAX; 64], &[1, u64::MAX, 1]];
        none.iter().for_each(|series| assert_eq!(start_up(series), None, "{series:?}"));
    }
}
