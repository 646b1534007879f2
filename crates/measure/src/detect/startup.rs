//! The start-up phase: how many first IOs go by before the running phase.
//!
//! Method: candidates for the end of the start-up from cumulative sums over
//! horizons that double, each weighed against the excursions of the running
//! phase that follows it; see `cusum.rs` for the sources. Scores are logarithms
//! of response times, cut at their 99.9 % quantile. A trend of the running
//! phase is carried back over the start-up (Theil and Sen): what the trend
//! explains is drift, not start-up. Among the candidates that pass, the one that
//! explains most of the variance is reported.
//!
//! Source of the model: paper 001, section 4.2. Units: IOs, nanoseconds.
//! Limits: at least 4 IOs; at most half of the series; a start-up no longer
//! than the running phase's own stretches of the same level is not seen, and
//! a cheap stretch that the running phase happens to begin with is counted in.

use super::cusum::{self, Phase};
use super::series::{log_scores, mean, mean_ns};
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
const ALPHA: f64 = 0.05;
/// And its mean differs by this factor.
const EFFECT: f64 = 1.1;
/// And the running phase's trend leaves this much of the shift unexplained.
const UNEXPLAINED: f64 = 0.5;

/// Which way the start-up differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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
    pub kind: Kind,
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
    let scores = log_scores(response_ns, CUT);
    let mut best: Option<(f64, Phase)> = None;
    let mut horizon = 2 * MIN_IOS;
    while horizon <= scores.len() / 2 {
        for sign in [1.0, -1.0] {
            if let Some(phase) = candidate(response_ns, &scores, horizon, sign) {
                let gain = phase.ios as f64 * phase.shift * phase.shift;
                if best.is_none_or(|(most, _)| gain > most) {
                    best = Some((gain, phase));
                }
            }
        }
        horizon = if horizon * 2 > scores.len() / 2 && horizon < scores.len() / 2 { scores.len() / 2 } else { horizon * 2 };
    }
    best.map(|(_, phase)| describe(response_ns, &phase))
}

/// IOs after a first phase of `ios` that serve as its yardstick: many times as
/// many, but not so many that a slow drift takes over.
fn yardstick(ios: usize) -> usize {
    ios.saturating_mul(32).saturating_add(4096)
}

/// The first phase within `horizon`, if it passes every condition.
fn candidate(response_ns: &[u64], scores: &[f64], horizon: usize, sign: f64) -> Option<Phase> {
    let end = |ios: usize| scores.len().min(ios + yardstick(ios));
    let level = mean(&scores[horizon..end(horizon)]);
    let ios = cusum::locate(&scores[..horizon], level, sign);
    if ios < MIN_IOS {
        return None;
    }
    let (head, rest) = (&scores[..ios], &scores[ios..end(ios)]);
    let phase = cusum::weigh(head, rest, sign, USUAL)?;
    if phase.margin < MARGIN || phase.p_value > ALPHA {
        return None;
    }
    let middles_apart = (ios + rest.len()) as f64 / 2.0;
    let carried_back = mean(rest) - cusum::trend(rest) * middles_apart;
    let unexplained = carried_back - mean(head);
    if unexplained / phase.shift < UNEXPLAINED {
        return None;
    }
    let ratio = (mean_ns(&response_ns[ios..end(ios)]) + 1.0) / (mean_ns(&response_ns[..ios]) + 1.0);
    let effect = if sign > 0.0 { ratio } else { 1.0 / ratio };
    (effect >= EFFECT).then_some(phase)
}

/// The phase in the caller's units.
fn describe(response_ns: &[u64], phase: &Phase) -> StartUp {
    StartUp {
        ios: phase.ios as u64,
        kind: if phase.shift > 0.0 { Kind::Cheap } else { Kind::Expensive },
        before_mean_ns: mean_ns(&response_ns[..phase.ios]),
        after_mean_ns: mean_ns(&response_ns[phase.ios..]),
        margin: phase.margin,
        p_value: phase.p_value,
        confidence: (1.0 - phase.p_value) * (1.0 - 1.0 / (phase.margin * phase.margin)),
    }
}
