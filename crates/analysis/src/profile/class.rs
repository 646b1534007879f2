//! The class of a device, and which published assumptions fail on it.
//!
//! Method: a few indicators, each a comparison that Table 3 can make, decide;
//! see the rule "device-class" in `docs/profile.md`.
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
use serde::{Deserialize, Serialize};
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::knee::SAME;
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
    /// Too little was measured.
    Unknown,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Indicator {
    /// Its name.
    pub id: String,
    /// Whether it is true of this device; None where not measured.
    pub value: Option<bool>,
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

/// Rule "device-class".
pub(super) fn classify(profile: &Profile, facts: &Facts) -> DeviceClass {
    let ms = |b| profile.baseline_ms.of(b);
    let (sr, rr, sw, rw) = (ms(Baseline::Sr), ms(Baseline::Rr), ms(Baseline::Sw), ms(Baseline::Rw));
    let indicators = indicators(profile, facts);
    let told = |id: &str| indicators.iter().find(|i| i.id == id).and_then(|i| i.value);
    let high_end = ["rw_within_10_ms", "pause_helps", "order_is_free"].map(told);
    let (yes, known) = (high_end.iter().flatten().filter(|v| **v).count(), high_end.iter().flatten().count());
    let class = match (sr.zip(rr), sw.zip(rw)) {
        (Some((sr, rr)), _) if rr >= SEEK_MS && rr >= SEEK_FACTOR * sr => Class::Disk,
        (_, Some(_)) if told("rw_as_sw") == Some(true) => Class::Modern,
        (_, Some(_)) if 2 * yes > known => Class::HighEnd,
        (_, Some(_)) => Class::LowEnd,
        _ => Class::Unknown,
    };
    DeviceClass { class, statement: text_of(class).into(), indicators, failing: failing(profile) }
}

fn indicators(profile: &Profile, facts: &Facts) -> Vec<Indicator> {
    let (sw, rw) = (profile.baseline_ms.sw, profile.baseline_ms.rw);
    let one =
        |id: &str, value: Option<bool>, statement: String| Indicator { id: id.into(), value, statement };
    let known = |text: Option<String>| text.unwrap_or_else(|| "not measured".into());
    let share = sw.zip(rw).map(|(sw, rw)| rw / sw);
    let pauses = facts.curve(MicroBenchmark::Pause, Baseline::Rw).is_some();
    let order = profile.order.reverse_factor.zip(profile.order.in_place_factor);
    vec![
        one(
            "rw_as_sw",
            share.map(|s| s <= SAME),
            known(share.map(|s| format!("a random write costs {s:.2} times a sequential one"))),
        ),
        one(
            "parallel_gains",
            profile.parallelism.best.map(|g| g >= SAME),
            known(profile.parallelism.best.map(|g| format!("streams in parallel gain up to x{g:.2}"))),
        ),
        one(
            "rw_within_10_ms",
            rw.map(|rw| rw <= HIGH_END_RW_MS),
            known(rw.map(|rw| format!("a random write takes {rw:.2} ms"))),
        ),
        one(
            "pause_helps",
            pauses.then_some(profile.pause_rw_ms.is_some()),
            if pauses {
                profile.pause_rw_ms.map_or_else(
                    || "no pause makes random writes as cheap as sequential ones".into(),
                    |ms| format!("a pause of {ms} ms makes random writes as cheap as sequential ones"),
                )
            } else {
                known(None)
            },
        ),
        one(
            "order_is_free",
            order.map(|(reverse, in_place)| reverse <= SAME && in_place <= SAME),
            known(order.map(|(r, i)| format!("writing backwards costs x{r:.2}, in place x{i:.2}"))),
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
    let ms = &profile.baseline_ms;
    if let (Some(sw), Some(rw)) = (ms.sw, ms.rw)
        && rw <= SAME * sw
    {
        add(
            "random_writes_are_expensive",
            format!(
                "Random writes are assumed to be slower than sequential ones; here they cost x{:.2}.",
                rw / sw
            ),
        );
    }
    if let (Some(sr), Some(rr)) = (ms.sr, ms.rr)
        && rr > SAME * sr
    {
        add(
            "random_reads_are_free",
            format!(
                "Random reads are assumed to cost as much as sequential ones; here they cost x{:.2}.",
                rr / sr
            ),
        );
    }
    if let (Some(rr), Some(rw)) = (ms.rr, ms.rw)
        && rw < rr / SAME
    {
        add(
            "reads_are_cheaper",
            format!(
                "Reads are assumed to be cheaper than writes; here a random read costs x{:.2} of a random write.",
                rr / rw
            ),
        );
    }
    all
}
