//! Which curve a run's point is on: the one type that rows, profiles, comparisons and
//! charts join by.
//!
//! What: a [`CurveId`] is a chart ([`RunSection`]) and one of its curves ([`Curve`], a
//! baseline or a pair of them to be mixed); the varying parameter follows from the
//! chart where that is a micro-benchmark. A curve that is drawn but belongs to none of
//! these (a trace, a step of a program) has a [`CurveName`] only. How: all three are
//! their texts in files, parsed and printed here. Source: paper 000/001, section 3.2.

use crate::micro::{Curve, MicroBenchmark};
use crate::pattern::Baseline;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the points of one chart have in common.
/// In files it is its text: the name of a micro-benchmark is that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum RunSection {
    /// A micro-benchmark.
    Micro(MicroBenchmark),
    /// A line of a job with what else varies in it, and whatever is known by name.
    Named(String),
}

/// What the points of one curve have in common within their chart: a curve of the
/// papers, in their order, or whatever else is known by name.
/// In files it is its text: `SR`, a mix's `SR/RW`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum CurveName {
    /// A baseline, or a pair of them.
    Known(Curve),
    /// Anything else.
    Named(String),
}

/// A curve's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CurveId {
    /// Of which chart: a micro-benchmark, or a line of a job.
    #[serde(rename = "micro_benchmark")]
    pub section: RunSection,
    /// Which of its curves.
    #[serde(rename = "baseline")]
    pub curve: Curve,
}

impl RunSection {
    /// The micro-benchmark, where it is one.
    pub const fn micro(&self) -> Option<MicroBenchmark> {
        if let RunSection::Micro(micro) = self { Some(*micro) } else { None }
    }

    /// Whether the two are called the same, as a line of a job may be called like a
    /// micro-benchmark.
    pub fn is_called(&self, other: &RunSection) -> bool {
        self == other || self.name() == other.name()
    }

    fn name(&self) -> &str {
        match self {
            RunSection::Micro(micro) => micro.name(),
            RunSection::Named(name) => name,
        }
    }
}

impl CurveName {
    /// The curve, where it is one of the papers'.
    pub const fn known(&self) -> Option<Curve> {
        if let CurveName::Known(curve) = self { Some(*curve) } else { None }
    }

    /// The baseline, where it is a single one.
    pub const fn baseline(&self) -> Option<Baseline> {
        if let CurveName::Known(Curve::One(baseline)) = self { Some(*baseline) } else { None }
    }
}

impl From<String> for RunSection {
    fn from(text: String) -> RunSection {
        text.parse().map_or(RunSection::Named(text), RunSection::Micro)
    }
}

impl From<RunSection> for String {
    fn from(section: RunSection) -> String {
        section.to_string()
    }
}

impl fmt::Display for RunSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Curve> for CurveName {
    fn from(curve: Curve) -> CurveName {
        CurveName::Known(curve)
    }
}

impl From<Baseline> for CurveName {
    fn from(baseline: Baseline) -> CurveName {
        CurveName::Known(Curve::One(baseline))
    }
}

impl From<String> for CurveName {
    /// Only a text that is printed the same again is a curve's: what a file says is kept
    /// to the letter.
    fn from(text: String) -> CurveName {
        match text.parse::<Curve>() {
            Ok(curve) if curve.to_string() == text => CurveName::Known(curve),
            _ => CurveName::Named(text),
        }
    }
}

impl From<CurveName> for String {
    fn from(name: CurveName) -> String {
        name.to_string()
    }
}

impl fmt::Display for CurveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CurveName::Known(Curve::One(baseline)) => f.pad(baseline.name()),
            CurveName::Known(pair) => f.pad(&pair.to_string()),
            CurveName::Named(name) => f.pad(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_to_the_letter_and_known_ones_are_in_the_papers_order() {
        let texts = ["RW", "ST", "SR/RW", "sr", "SR", "", "RW/RW/RW", "SW/RW"];
        let mut names = texts.map(|text| CurveName::from(text.to_string()));
        assert_eq!(names.clone().map(|name| name.to_string()), texts);
        assert_eq!(names[0].baseline(), Some(Baseline::Rw));
        assert_eq!(names[2].known(), Some(Curve::Pair(Baseline::Sr, Baseline::Rw)));
        names.sort();
        let sorted = ["SR", "RW", "SR/RW", "SW/RW", "", "RW/RW/RW", "ST", "sr"];
        assert_eq!(names.map(|name| name.to_string()), sorted);
    }

    #[test]
    fn a_curve_is_its_two_texts_in_files() {
        let id = CurveId { section: RunSection::Micro(MicroBenchmark::Mix), curve: "SR/RW".parse().unwrap() };
        let text = r#"{"micro_benchmark":"mix","baseline":"SR/RW"}"#;
        assert_eq!(serde_json::to_string(&id).unwrap(), text);
        assert_eq!(serde_json::from_str::<CurveId>(text).unwrap(), id);
        let line = RunSection::Named("mix".into());
        assert!(line != id.section && line.is_called(&id.section));
    }
}
