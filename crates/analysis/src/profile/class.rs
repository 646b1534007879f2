//! The class of a device, and which published assumptions fail on it.
//!
//! Method: a few indicators, each a comparison that Table 3 can make, decide, where their
//! intervals do (`verdicts.rs`): no class is told from intervals that overlap; see the rule
//! "device-class" in `docs/profile.md`.
//!
//! Source: paper 001, sections 5.2 and 5.3: high-end SSDs have better baselines,
//! profit from a pause ("For the high-end SSDs, however, inserting a pause
//! improves the performance of the random writes to the point where they behave
//! like sequential writes") and "cope better with unusual patterns, such as the
//! reverse and in-place patterns". Paper 003, section 4 and appendix B: on newer
//! devices "random writes are sometimes faster than sequential writes and
//! submitting IOs in parallel is beneficial".

use super::Profile;
use super::facts::Facts;
use super::hints::Verdict;
use super::verdicts::{answer, verdict};
use serde::{Deserialize, Serialize};
use uflip_measure::detect::knee::CostRatio;
use uflip_measure::detect::level::PRINTED;
use uflip_measure::detect::verdict::{Decision, HeldAgainst, above};
use uflip_measure::pattern::Baseline;

/// Random writes of a high-end SSD take at most this long, in ms: Table 3 has
/// 5 and 9 for the two that it calls so, 18 and more for the others.
const HIGH_END_RW_MS: f64 = 10.0;
/// A disk's arm takes at least this long, in ms.
const SEEK_MS: f64 = 2.0;
/// And this many times as long as sequential reads.
const SEEK_FACTOR: f64 = 5.0;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Random reads cost a disk arm's movement.
    Disk,
    /// Random writes cost as sequential ones: the published rules are reversed.
    Modern,
    /// As the high-end SSDs of paper 001.
    HighEnd,
    /// As the low-end SSDs and USB drives of paper 001.
    LowEnd,
    /// Too little was measured, or its intervals leave it open.
    Unknown,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Indicator {
    /// Its name.
    pub id: String,
    /// Whether it is true of this device; None where not measured, or not decided.
    pub value: Option<bool>,
    /// The same, with what the intervals leave open; None where not measured.
    #[serde(default)]
    pub verdict: Option<Decision>,
    /// With its figures.
    pub statement: String,
}

/// A published assumption that does not hold here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAssumption {
    /// The hint's id, or the assumption's name.
    pub id: String,
    /// What is assumed, and what is so.
    pub statement: String,
}

/// What kind of device this is, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceClass {
    /// The class.
    pub class: Class,
    /// Whether the intervals decide it; None where too little was measured.
    #[serde(default)]
    pub verdict: Option<Decision>,
    /// In a sentence.
    pub statement: String,
    /// What decided.
    pub indicators: Vec<Indicator>,
    /// Published assumptions that fail.
    pub failing: Vec<FailedAssumption>,
}

impl DeviceClass {
    /// Of nothing.
    pub(super) fn unknown() -> DeviceClass {
        DeviceClass {
            class: Class::Unknown,
            verdict: None,
            statement: text_of(Class::Unknown).into(),
            indicators: Vec::new(),
            failing: Vec::new(),
        }
    }
}

const fn text_of(class: Class) -> &'static str {
    match class {
        Class::Disk => {
            "A disk, or something that behaves like one: a random read costs a movement of the arm."
        }
        Class::Modern => {
            "A newer device: random writes cost about as much as sequential ones, so rules made for older flash \
             devices do not apply."
        }
        Class::HighEnd => {
            "Like the high-end SSDs of 2009: random writes are expensive but bearable, and most unusual patterns are \
             taken well."
        }
        Class::LowEnd => {
            "Like the low-end SSDs and USB drives of 2009: random writes and unusual orders of writing are very expensive."
        }
        Class::Unknown => "Not known: baselines were not measured.",
    }
}

/// Whether a mean is at least `ms`, by its interval; None where it was not measured.
fn at_least_ms(facts: &Facts, baseline: Baseline, ms: f64) -> Option<Decision> {
    let level = facts.level(baseline)?;
    let in_ms = |ns: f64| ns / 1e6;
    let ratio =
        CostRatio { ratio: in_ms(level.mean_ns), low: in_ms(level.low_ns), high: in_ms(level.high_ns) };
    Some(above(&ratio, ms))
}

/// Whether a random read costs the movement of an arm; None where that was not measured.
fn is_disk(facts: &Facts) -> Option<Decision> {
    let (sr, rr) = (facts.baseline(Baseline::Sr)?, facts.baseline(Baseline::Rr)?);
    let times = HeldAgainst::new(rr.known(), sr.known()).at(PRINTED)?;
    Some(at_least_ms(facts, Baseline::Rr, SEEK_MS)?.and(above(&times, SEEK_FACTOR)))
}

/// Whether more than half of what was measured holds, whatever is still open.
fn most(all: impl Iterator<Item = Option<Decision>>) -> Decision {
    let known: Vec<Decision> = all.flatten().collect();
    let of = |wanted: Decision| known.iter().filter(|d| **d == wanted).count();
    match (of(Decision::Yes), of(Decision::NotDecided)) {
        (yes, _) if 2 * yes > known.len() => Decision::Yes,
        (yes, open) if 2 * (yes + open) <= known.len() => Decision::No,
        _ => Decision::NotDecided,
    }
}

/// Rule "device-class".
pub(super) fn classify(profile: &Profile, facts: &Facts) -> DeviceClass {
    let indicators = indicators(profile, facts);
    let told = |id: &str| indicators.iter().find(|i| i.id == id).and_then(|i| i.verdict);
    let high_end = || most(["rw_within_10_ms", "pause_helps", "order_is_free"].map(told).into_iter());
    // The class, or the question that is open.
    let found = match (is_disk(facts), told("rw_as_sw")) {
        (Some(Decision::Yes), _) => Ok(Class::Disk),
        (Some(Decision::NotDecided), Some(_)) => Err("random_reads"),
        (_, Some(Decision::Yes)) => Ok(Class::Modern),
        (_, Some(Decision::NotDecided)) => Err("random_writes"),
        (_, Some(Decision::No)) => match high_end() {
            Decision::Yes => Ok(Class::HighEnd),
            Decision::No => Ok(Class::LowEnd),
            Decision::NotDecided => Err("high_end"),
        },
        (_, None) => Ok(Class::Unknown),
    };
    let failing = failing(profile);
    match found {
        Ok(Class::Unknown) => DeviceClass { indicators, failing, ..DeviceClass::unknown() },
        Ok(class) => {
            let verdict = Some(Decision::Yes);
            DeviceClass { class, verdict, statement: text_of(class).into(), indicators, failing }
        }
        Err(open) => {
            let why = answer(&profile.verdicts, open).filter(|a| a.verdict == Decision::NotDecided);
            let statement = why.map_or_else(
                || {
                    "What kind of device this is is not decided by this run: see which indicators are open."
                        .into()
                },
                |a| format!("What kind of device this is is not decided by this run. {}", a.not_decided()),
            );
            let verdict = Some(Decision::NotDecided);
            DeviceClass { class: Class::Unknown, verdict, statement, indicators, failing }
        }
    }
}

fn indicators(profile: &Profile, facts: &Facts) -> Vec<Indicator> {
    let (sw, rw) = (profile.baseline_ms.sw, profile.baseline_ms.rw);
    let told = |id: &str| verdict(&profile.verdicts, id);
    let figures = |id: &str| answer(&profile.verdicts, id).map(super::Answered::figures);
    let one = |id: &str, verdict: Option<Decision>, statement: Option<String>| {
        let mut statement = statement.unwrap_or_else(|| "not measured".into());
        if verdict == Some(Decision::NotDecided) {
            statement += "; not decided by this run";
        }
        Indicator { id: id.into(), value: verdict.and_then(Decision::known), verdict, statement }
    };
    let share = sw.zip(rw).map(|(sw, rw)| rw / sw);
    let order = profile.order.reverse_factor.zip(profile.order.in_place_factor);
    let costs = told("order.reverse").zip(told("order.in_place")).map(|(r, i)| r.or(i));
    let pause = profile.pause_rw_ms.map_or_else(
        || "no pause makes random writes as cheap as sequential ones".to_string(),
        |ms| format!("a pause of {ms} ms makes random writes as cheap as sequential ones"),
    );
    // Random writes that are cheap without a pause profit from none.
    let pauses = told("pause.rw_as_sw").map(|d| d.and(told("random_writes").unwrap_or_default()));
    vec![
        one(
            "rw_as_sw",
            told("random_writes").map(Decision::not),
            share.map(|s| format!("a random write costs {s:.2} times a sequential one")),
        ),
        one(
            "parallel_gains",
            told("parallelism.gain"),
            figures("parallelism.gain").map(|f| format!("streams in parallel gain up to {f}")),
        ),
        one(
            "rw_within_10_ms",
            at_least_ms(facts, Baseline::Rw, HIGH_END_RW_MS).map(Decision::not),
            rw.map(|rw| format!("a random write takes {rw:.2} ms")),
        ),
        one("pause_helps", pauses, pauses.map(|_| pause)),
        one(
            "order_is_free",
            costs.map(Decision::not),
            order.map(|(r, i)| format!("writing backwards costs x{r:.2}, in place x{i:.2}")),
        ),
    ]
}

/// Hints that do not hold, and what paper 003 warns of.
fn failing(profile: &Profile) -> Vec<FailedAssumption> {
    let of_hint = |h: &&super::Hint| h.verdict == Verdict::DoesNotHold;
    let mut all: Vec<FailedAssumption> = profile
        .hints
        .iter()
        .filter(of_hint)
        .map(|h| FailedAssumption { id: h.id.clone(), statement: h.statement.clone() })
        .collect();
    let mut add = |id: &str, statement: String| all.push(FailedAssumption { id: id.into(), statement });
    let told = |id: &str, wanted: Decision| {
        answer(&profile.verdicts, id).filter(|a| a.verdict == wanted).and_then(|a| a.ratio)
    };
    if let Some(times) = told("random_writes", Decision::No) {
        let text = "Random writes are assumed to be slower than sequential ones; here they cost";
        add("random_writes_are_expensive", format!("{text} x{times:.2}."));
    }
    if let Some(times) = told("random_reads", Decision::Yes) {
        let text = "Random reads are assumed to cost as much as sequential ones; here they cost";
        add("random_reads_are_free", format!("{text} x{times:.2}."));
    }
    if let Some(times) = told("reads_over_writes", Decision::Yes) {
        let text = "Reads are assumed to be cheaper than writes; here a random read costs";
        add("reads_are_cheaper", format!("{text} x{times:.2} of a random write."));
    }
    all
}
