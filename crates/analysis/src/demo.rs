//! What the demonstration came to: how far results for one and the same thing are apart.
//!
//! Method: (largest - smallest) / mean; up to [`REPEATABLE`] they are repeatable. The
//! script is `uflip_measure::demo`. Source: paper 003, section 4; the limit is that of
//! paper 001, section 4.3. Units are in the names.

use serde::Serialize;
use std::collections::BTreeMap;
use uflip_measure::auto::findings::Calibration;
use uflip_measure::demo::DemoParameter;

/// Spreads up to this are those of repeatable results.
pub const REPEATABLE: f64 = 0.05;

/// Several results for the same thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Results {
    /// Each in milliseconds.
    pub ms: Vec<f64>,
}

/// The results of each experiment.
pub type DemoResults = BTreeMap<DemoParameter, Results>;

impl Results {
    /// How far apart they are, relative to their mean; None for none.
    pub fn spread(&self) -> Option<f64> {
        let mean = self.ms.iter().sum::<f64>() / self.ms.len().max(1) as f64;
        let low = self.ms.iter().copied().reduce(f64::min)?;
        let high = self.ms.iter().copied().reduce(f64::max)?;
        (mean > 0.0).then(|| (high - low) / mean)
    }

    /// Whether they are too far apart to be repeatable.
    pub fn is_suspect(&self) -> bool {
        self.spread().is_some_and(|spread| spread > REPEATABLE)
    }
}

/// One experiment, done badly and well.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoExperiment {
    /// The parameter that is too small.
    pub parameter: &'static str,
    /// What is measured.
    pub what: &'static str,
    /// What the paper found to make results differ.
    pub why: &'static str,
    /// With a parameter too small.
    pub bad: Results,
    /// With the parameter set.
    pub good: Results,
}

/// What came of setting a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoVerdict {
    /// It made the results repeatable.
    RepeatableNow,
    /// They were, and are.
    RepeatableEitherWay,
    /// They are closer together, and not repeatable yet.
    Better,
    /// They are as far apart as before.
    NotBetter,
}

impl DemoExperiment {
    /// What came of setting the parameter.
    pub fn verdict(&self) -> DemoVerdict {
        match (self.bad.spread(), self.good.spread()) {
            (Some(bad), Some(good)) if good <= REPEATABLE && bad > REPEATABLE => DemoVerdict::RepeatableNow,
            (_, Some(good)) if good <= REPEATABLE => DemoVerdict::RepeatableEitherWay,
            (Some(bad), Some(good)) if good < bad => DemoVerdict::Better,
            _ => DemoVerdict::NotBetter,
        }
    }
}

/// The whole demonstration.
#[derive(Clone, Debug, Serialize)]
pub struct Demo {
    /// The device in a line.
    pub device: String,
    /// The seed.
    pub seed: u64,
    /// Response times of random writes after a rest, in milliseconds.
    pub first_writes_ms: Vec<f64>,
    /// The three experiments.
    pub experiments: Vec<DemoExperiment>,
    /// What the automatic method found between the two.
    pub calibration: Calibration,
    /// What befell runs from outside: their figures are not the device's alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub befell: Vec<String>,
}

/// The experiments from the results of both halves of the script.
pub fn experiments(bad: &DemoResults, good: &DemoResults) -> Vec<DemoExperiment> {
    let one = |of: DemoParameter| {
        let [parameter, what, why] = told(of);
        let results = |from: &DemoResults| from.get(&of).cloned().unwrap_or_default();
        DemoExperiment { parameter, what, why, bad: results(bad), good: results(good) }
    };
    DemoParameter::ALL.into_iter().map(one).collect()
}

/// The parameter, what is measured, and why results differ.
const fn told(of: DemoParameter) -> [&'static str; 3] {
    match of {
        DemoParameter::IoIgnore => [
            "IOIgnore",
            "RW in runs of five lengths",
            "the first writes after a rest cost something else: how many of them are in the mean hangs on the run's length",
        ],
        DemoParameter::IoCount => [
            "IOCount",
            "RW again and again",
            "a few writes happen to meet more or fewer of the expensive ones",
        ],
        DemoParameter::Pause => [
            "Pause",
            "SR after random writes",
            "the device may still be busy with the writes of the run before",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict is by the figures, whatever they are.
    #[test]
    fn a_spread_that_does_not_fall_is_said() {
        let results = |ms: &[f64]| Results { ms: ms.to_vec() };
        assert_eq!(results(&[1.0, 2.0, 3.0]).spread(), Some(1.0));
        assert_eq!(results(&[]).spread(), None);
        let of = |bad: &[f64], good: &[f64]| {
            let [bad, good] = [results(bad), results(good)];
            DemoExperiment { parameter: "Pause", what: "", why: "", bad, good }.verdict()
        };
        assert_eq!(of(&[1.0, 1.1], &[1.0, 2.0]), DemoVerdict::NotBetter);
        assert_eq!(of(&[1.0, 2.0], &[1.0, 1.1]), DemoVerdict::Better);
        assert_eq!(of(&[1.0, 2.0], &[1.0, 1.01]), DemoVerdict::RepeatableNow);
        assert_eq!(of(&[1.0, 1.0], &[1.0, 1.01]), DemoVerdict::RepeatableEitherWay);
    }
}
