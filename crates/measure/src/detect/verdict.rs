//! Yes, no, or not decided: what an interval says of a question.
//!
//! Method: "does it cost at least `bound` times as much?" is yes where the whole interval
//! of the ratio lies above the bound, no where the whole interval lies below (a test of
//! equivalence by intervals: D. J. Schuirmann, Journal of Pharmacokinetics and
//! Biopharmaceutics 15, 1987), and else not decided. Of several comparisons in one question
//! ("does any shift cost more?") a yes needs one interval of confidence 1 - 0.05 / m above
//! the bound (O. J. Dunn, "Multiple comparisons among means", JASA 56, 1961, after
//! Bonferroni); a no needs all intervals below, each at 95 %, as the union of m
//! alternatives is refused only where each is (R. L. Berger, "Multiparameter hypothesis
//! testing and acceptance sampling", Technometrics 24, 1982). Units: ratios.

use super::drift::CostRatio;
use super::level::{KnownLevel, PRINTED, ratio_at};
use serde::{Deserialize, Serialize};

/// An answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The whole interval says so.
    Yes,
    /// The whole interval says the opposite.
    No,
    /// The interval reaches over the bound, or there is none.
    #[default]
    NotDecided,
}

impl Decision {
    /// Some of yes and no.
    pub fn known(self) -> Option<bool> {
        match self {
            Decision::Yes => Some(true),
            Decision::No => Some(false),
            Decision::NotDecided => None,
        }
    }

    /// Yes where both are, no where one is.
    pub fn and(self, other: Decision) -> Decision {
        match (self, other) {
            (Decision::No, _) | (_, Decision::No) => Decision::No,
            (Decision::Yes, Decision::Yes) => Decision::Yes,
            _ => Decision::NotDecided,
        }
    }

    /// Yes where one is, no where both are.
    pub fn or(self, other: Decision) -> Decision {
        self.not().and(other.not()).not()
    }

    /// The opposite.
    #[expect(clippy::should_implement_trait, reason = "a word among others, not an operator")]
    pub fn not(self) -> Decision {
        match self {
            Decision::Yes => Decision::No,
            Decision::No => Decision::Yes,
            Decision::NotDecided => Decision::NotDecided,
        }
    }
}

/// Whether something costs at least `bound` times as much, by its ratio's interval.
pub fn above(ratio: &CostRatio, bound: f64) -> Decision {
    match ratio {
        r if r.low > bound => Decision::Yes,
        r if r.high < bound => Decision::No,
        _ => Decision::NotDecided,
    }
}

/// What is compared: a level and what it is held against, as a factor of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldAgainst {
    /// The level.
    pub of: KnownLevel,
    /// What it is held against.
    pub to: KnownLevel,
    /// The ratio is told times this: streams at once, bytes of one over bytes of the other.
    pub times: f64,
}

impl HeldAgainst {
    /// A level relative to another.
    pub fn new(of: KnownLevel, to: KnownLevel) -> HeldAgainst {
        HeldAgainst { of, to, times: 1.0 }
    }

    /// The ratio with its interval of this confidence; open where one of the two is.
    pub fn at(&self, confidence: f64) -> Option<CostRatio> {
        let found = ratio_at(&self.of, &self.to, confidence)?;
        let times = |v: f64| v * self.times;
        Some(CostRatio { ratio: times(found.ratio), low: times(found.low), high: times(found.high) })
    }
}

/// The confidence of each of `tests` intervals of which all are to hold at 95 %.
pub fn corrected(tests: usize) -> f64 {
    1.0 - (1.0 - PRINTED) / tests.max(1) as f64
}

/// Whether any of several costs at least `bound` times as much; they are of `tests`
/// comparisons in all, from which they may have been picked.
pub fn any_above_of(all: &[HeldAgainst], bound: f64, tests: usize) -> Decision {
    let says = |confidence: f64, wanted: Decision| {
        move |c: &HeldAgainst| c.at(confidence).is_some_and(|r| above(&r, bound) == wanted)
    };
    if all.iter().any(says(corrected(tests), Decision::Yes)) {
        Decision::Yes
    } else if !all.is_empty() && all.iter().all(says(PRINTED, Decision::No)) {
        Decision::No
    } else {
        Decision::NotDecided
    }
}

#[cfg(test)]
mod tests {
    use super::super::drift::Level;
    use super::*;

    fn any_above(all: &[HeldAgainst], bound: f64) -> Decision {
        any_above_of(all, bound, all.len())
    }

    fn known(mean_ns: f64, half: f64) -> KnownLevel {
        let level = Level { mean_ns, low_ns: mean_ns * (1.0 - half), high_ns: mean_ns * (1.0 + half) };
        KnownLevel { level, freedom: 20.0 }
    }

    fn of(mean_ns: f64, half: f64) -> HeldAgainst {
        HeldAgainst::new(known(mean_ns, half), known(100.0, 0.0))
    }

    #[test]
    fn only_a_whole_interval_decides() {
        let says = |mean: f64, half: f64| any_above(&[of(mean, half)], 1.25);
        assert_eq!(says(150.0, 0.1), Decision::Yes);
        assert_eq!(says(150.0, 0.2), Decision::NotDecided);
        assert_eq!(says(110.0, 0.1), Decision::No);
        assert_eq!(says(110.0, 0.15), Decision::NotDecided);
        assert_eq!(says(40.0, 0.1), Decision::No);
        assert_eq!(any_above(&[], 1.25), Decision::NotDecided);
        let open = HeldAgainst::new(KnownLevel::open(900.0), known(100.0, 0.0));
        assert_eq!(any_above(&[open], 1.25), Decision::NotDecided, "no interval is no answer");
    }

    #[test]
    fn several_questions_make_a_yes_harder_and_a_no_asks_all() {
        // 1.4 with 9 %: 95 % reach down to 1.274, 99.8 % of 28 tests to below 1.25.
        let alone = [of(140.0, 0.09)];
        assert_eq!(any_above(&alone, 1.25), Decision::Yes);
        let many: Vec<HeldAgainst> = alone.into_iter().chain([of(100.0, 0.01); 27]).collect();
        assert_eq!(any_above(&many, 1.25), Decision::NotDecided);
        assert_eq!(any_above(&many[1..], 1.25), Decision::No);
        assert!((corrected(28) - 0.998_214).abs() < 1e-6);
    }

    #[test]
    fn decisions_join_as_words_do() {
        use Decision::{No, NotDecided, Yes};
        assert_eq!([Yes.and(NotDecided), No.and(NotDecided), Yes.and(Yes)], [NotDecided, No, Yes]);
        assert_eq!([Yes.or(NotDecided), No.or(NotDecided), No.or(No)], [Yes, NotDecided, No]);
        assert_eq!([Yes.known(), No.known(), NotDecided.known()], [Some(true), Some(false), None]);
    }
}
