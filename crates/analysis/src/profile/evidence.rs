//! What stands beside a figure: its interval, the runs behind it and the rule
//! that made it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use uflip_measure::pattern::Baseline;

/// What a figure rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The 95 % confidence interval, in the figure's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Degrees of freedom that the interval rests on; absent where its deviation is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freedom: Option<f64>,
    /// For figures that are one of the values measured: the smallest and the
    /// largest that the intervals of the costs allow; for figures found in each
    /// repeat: the smallest and the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// IOs in the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// The runs behind it, ascending.
    pub runs: Vec<u32>,
    /// The rule: a heading of `docs/profile.md`.
    pub rule: String,
}

/// Evidence by the name of the field beside it, as `profile.json` has both.
pub type EvidenceMap = BTreeMap<String, Evidence>;

impl Evidence {
    /// Evidence by a rule, resting on these runs.
    pub fn new(rule: &str, runs: impl IntoIterator<Item = u32>) -> Evidence {
        let runs: BTreeSet<u32> = runs.into_iter().collect();
        Evidence { rule: rule.into(), runs: runs.into_iter().collect(), ..Evidence::default() }
    }

    /// With this interval, unless an end of it is open.
    pub fn with_ci95(self, low: f64, high: f64) -> Evidence {
        Evidence { ci95: ends(low, high), ..self }
    }

    /// With the degrees of freedom behind the interval, where there is one.
    pub fn with_freedom(self, freedom: f64) -> Evidence {
        let freedom = (self.ci95.is_some() && freedom.is_finite()).then(|| rounded(freedom));
        Evidence { freedom, ..self }
    }

    /// With this range.
    pub fn with_range(self, low: f64, high: f64) -> Evidence {
        Evidence { range: ends(low, high), ..self }
    }

    /// With this many IOs.
    pub fn with_n(self, n: u64) -> Evidence {
        Evidence { n: Some(n), ..self }
    }
}

fn ends(low: f64, high: f64) -> Option<[f64; 2]> {
    (low.is_finite() && high.is_finite()).then_some([low, high])
}

/// A figure for each baseline, with its evidence beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Per<T> {
    /// Sequential reads.
    #[serde(rename = "SR")]
    pub sr: Option<T>,
    /// Random reads.
    #[serde(rename = "RR")]
    pub rr: Option<T>,
    /// Sequential writes.
    #[serde(rename = "SW")]
    pub sw: Option<T>,
    /// Random writes.
    #[serde(rename = "RW")]
    pub rw: Option<T>,
    /// What each rests on.
    pub evidence: BTreeMap<Baseline, Evidence>,
}

impl<T> Default for Per<T> {
    fn default() -> Per<T> {
        Per { sr: None, rr: None, sw: None, rw: None, evidence: BTreeMap::new() }
    }
}

impl<T: Copy> Per<T> {
    /// The figure of one baseline.
    pub fn of(&self, baseline: Baseline) -> Option<T> {
        match baseline {
            Baseline::Sr => self.sr,
            Baseline::Rr => self.rr,
            Baseline::Sw => self.sw,
            Baseline::Rw => self.rw,
        }
    }

    /// Sets the figure of one baseline and what it rests on.
    pub(super) fn set(&mut self, baseline: Baseline, value: Option<T>, evidence: Evidence) {
        match baseline {
            Baseline::Sr => self.sr = value,
            Baseline::Rr => self.rr = value,
            Baseline::Sw => self.sw = value,
            Baseline::Rw => self.rw = value,
        }
        self.evidence.insert(baseline, evidence);
    }
}

/// Four significant digits: more than any of these figures has, and readable.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(4 - 1 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
