//! Profiles side by side: devices, states of one device, firmware versions,
//! before and after.
//!
//! Method: the first of the compared is the reference. Every figure of the
//! others is held against it as a ratio, its interval by Zou and Donner 2008
//! (`detect::drift`). A difference is marked where the ratio's interval excludes
//! 1, widened so that among all the figures compared a single false mark has a
//! chance of 5 % (Bonferroni; each end by Student's t with the figure's own degrees of
//! freedom), and where it is more than [`ALIKE`]. Whether two figures are as good as the
//! same, within x0.8 to x1.25, is decided by the same interval, or not at all. A figure
//! that is one of the values measured (an area, a count) is marked where the
//! ranges that the costs allow do not meet. Everything else is noise, as far as
//! this measurement can tell.
//!
//! | file | what |
//! |---|---|
//! | `table.rs` | which figures are compared, under which names |
//! | `rule.rs` | `--fail-if` |
//! | `words.rs` | a figure in words |
//!
//! Sources: papers 000/001, section 5.2 (devices side by side); paper 003,
//! section 4. Units are in the names.

pub mod rule;
mod table;
mod words;

pub use words::{three, value_text};

use crate::profile::levels::Levels;
use crate::profile::{self, Profile, Severity};
use serde::Serialize;
use serde_json::{Value as Json, json};
use uflip_device::EngineOptions;
use uflip_device::identity::DeviceFacts;
use uflip_measure::detect::knee::{CostRatio, Level, SAME};
use uflip_measure::detect::level::{KnownLevel, PRINTED, ratio_at};
use uflip_measure::detect::verdict::{Decision, above, corrected};
use uflip_measure::run::CurveId;
use uflip_measure::{Plan, Step};
use uflip_store::contents::StoreContents;
use uflip_store::damage::PLAN_EDITED;
use uflip_store::error::StoreError;

/// The version of the comparison's JSON.
pub const FORMAT: u32 = 1;

/// Differences up to this part are never marked: below it lie rounding, clocks
/// and what changes from one day to the next.
pub const ALIKE: f64 = 0.01;

/// One of those that are compared, read and summed up.
pub struct Subject {
    /// As typed.
    pub name: String,
    /// Its figures.
    pub profile: Profile,
    /// What these rest on.
    pub levels: Levels,
    /// The rest of its store.
    pub contents: StoreContents,
}

impl Subject {
    /// Sums up a store.
    ///
    /// # Errors
    /// [`StoreError`] where a record file cannot be read.
    pub fn new(name: &str, contents: StoreContents) -> Result<Subject, StoreError> {
        let (profile, levels) = profile::build_with_levels(&contents)?;
        Ok(Subject { name: name.into(), profile, levels, contents })
    }
}

/// The unit of a figure, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Times something, as the title says.
    Times,
    /// A number of things.
    Count,
}

/// Which way a figure is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// A cost.
    Lower,
    /// A gain.
    Higher,
    /// Neither: it only tells.
    Neither,
}

/// What is to be said of a difference from the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// Beyond the intervals: marked.
    Differs,
    /// Within the intervals.
    Noise,
    /// Beyond the intervals, but no more than [`ALIKE`].
    Alike,
    /// Different, but a figure has no interval: nobody can tell.
    NoInterval,
    /// One of the two was not measured.
    NotMeasured,
}

/// A figure of one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Value {
    /// Null where it was not measured or there is no such effect.
    pub value: Option<f64>,
    /// Whether it was looked for.
    pub measured: bool,
    /// The 95 % interval, or what the costs allow.
    pub interval: Option<[f64; 2]>,
    /// Degrees of freedom behind the interval; a known deviation where None.
    #[serde(skip)]
    pub freedom: Option<f64>,
    /// The runs behind it.
    pub runs: Vec<u32>,
    /// Against the first subject; null for that one.
    pub change: Option<Change>,
}

/// A difference from the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// This figure over the reference's.
    pub ratio: Option<f64>,
    /// The ratio's 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// What is to be said of it.
    pub verdict: ChangeVerdict,
    /// Whether it is x1.25 or more either way, by the corrected interval.
    pub matters: Decision,
}

/// One figure of all subjects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// The name that `--fail-if` takes.
    pub name: String,
    /// The heading it stands under.
    pub group: String,
    /// What it is.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Which way it is to go.
    pub better: Better,
    /// Whether its intervals are ranges of measured values.
    pub stepped: bool,
    /// In the order of the subjects.
    pub values: Vec<Value>,
}

/// One curve of all subjects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCurve {
    /// Of which chart, and which of its curves.
    #[serde(flatten)]
    pub id: CurveId,
    /// `IOSize`, …
    pub parameter: String,
    /// By rising value, all that any subject has.
    pub points: Vec<ComparedPoint>,
}

/// One value of the varying parameter: mean response times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedPoint {
    /// As in `runs.ndjson`.
    pub value: i64,
    /// As a person reads it.
    pub label: String,
    /// In the order of the subjects, in ns.
    pub values: Vec<Value>,
}

/// One of the compared, in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubjectFacts {
    /// `A`, `B`, …: its sign in tables.
    pub letter: String,
    /// As typed.
    pub name: String,
    /// The target in one line.
    pub target: String,
    /// Runs kept.
    pub runs: usize,
    /// What has to be said first: damage, then what is missing.
    pub alerts: Vec<String>,
    /// Further findings that speak against it, of severity warning and serious.
    pub soundness: Vec<String>,
}

/// A circumstance in which the subjects differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Circumstance {
    /// What.
    pub what: String,
    /// In the order of the subjects; `-` where not known.
    pub values: Vec<String>,
    /// Whether it makes figures incomparable.
    pub matters: bool,
}

/// Profiles side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// [`FORMAT`].
    pub format: u32,
    /// The first is the reference.
    pub subjects: Vec<SubjectFacts>,
    /// In what they differ besides their figures.
    pub circumstances: Vec<Circumstance>,
    /// The profile's figures.
    pub figures: Vec<ComparedFigure>,
    /// The micro-benchmarks.
    pub curves: Vec<ComparedCurve>,
    /// What the rules of `--fail-if` say.
    pub rules: Vec<rule::Outcome>,
}

impl Comparison {
    /// Every set of values, for counting and judging.
    fn all_values(&mut self) -> impl Iterator<Item = (bool, &mut Vec<Value>)> {
        let figures = self.figures.iter_mut().map(|f| (f.stepped, &mut f.values));
        let points = self.curves.iter_mut().flat_map(|c| &mut c.points);
        figures.chain(points.map(|p| (false, &mut p.values)))
    }

    /// How many of the differences that are within the intervals are not known to be less
    /// than x1.25.
    pub fn not_decided(&self) -> usize {
        let points = self.curves.iter().flat_map(|c| &c.points).flat_map(|p| &p.values);
        let all = self.figures.iter().flat_map(|f| &f.values).chain(points);
        let open =
            |c: &&Change| c.verdict == ChangeVerdict::Noise && c.ci95.is_some() && c.matters != Decision::No;
        all.filter_map(|v| v.change.as_ref()).filter(open).count()
    }

    /// How many differences have each verdict: differs, noise, alike, without
    /// interval, not measured.
    pub fn tally(&self) -> [usize; 5] {
        let points = self.curves.iter().flat_map(|c| &c.points).flat_map(|p| &p.values);
        let all = self.figures.iter().flat_map(|f| &f.values).chain(points);
        let mut tally = [0; 5];
        for change in all.filter_map(|v| v.change.as_ref()) {
            tally[change.verdict as usize] += 1;
        }
        tally
    }
}

/// Compares `subjects`, the first of which is the reference, and applies
/// `rules`.
pub fn compare(subjects: &[Subject], rules: &[rule::Rule]) -> Comparison {
    let mut made = Comparison {
        format: FORMAT,
        subjects: subjects.iter().enumerate().map(|(i, s)| facts(i, s)).collect(),
        circumstances: circumstances(subjects),
        figures: table::figures(subjects),
        curves: table::curves(subjects),
        rules: Vec::new(),
    };
    let comparisons: usize = made.all_values().map(|(_, v)| comparable(v)).sum();
    for (stepped, values) in made.all_values() {
        judge(values, stepped, comparisons);
    }
    made.rules = rules.iter().map(|r| rule::apply(r, &made)).collect();
    made
}

/// Makes results that are damaged or incomplete fail like a broken rule: nobody
/// knows what the rules would say of the whole.
pub fn require_whole(made: &mut Comparison) {
    // A plan may be edited on purpose: that is said, and the runs are whole.
    let lacks = |alert: &&String| *alert != PLAN_EDITED;
    let said = made.subjects.iter().flat_map(|s| s.alerts.iter().filter(lacks).map(move |a| (s, a)));
    let mut statements: Vec<String> = said.map(|(s, a)| format!("{} {}: {a}", s.letter, s.name)).collect();
    if !statements.is_empty() {
        statements.push("Let the rules judge what there is with --allow-incomplete.".into());
        made.rules.push(rule::Outcome { rule: "whole results".into(), failed: true, statements });
    }
}

/// How many of the values can be held against the first.
fn comparable(values: &[Value]) -> usize {
    let first = values.first().is_some_and(|v| v.value.is_some());
    if first { values.iter().skip(1).filter(|v| v.value.is_some()).count() } else { 0 }
}

/// `A`, …, `Z`, then `27`, ….
fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .filter(|n| *n < 26)
        .map_or_else(|| (at + 1).to_string(), |n| ((b'A' + n) as char).into())
}

fn facts(at: usize, subject: &Subject) -> SubjectFacts {
    let alerts = subject.contents.alerts();
    let first = |text: &String| alerts.contains(text);
    let told =
        subject.profile.soundness.iter().filter(|f| f.severity > Severity::Info && !first(&f.statement));
    SubjectFacts {
        letter: letter(at),
        name: subject.name.clone(),
        target: subject.profile.target.clone(),
        runs: subject.contents.runs.len(),
        soundness: told.map(|f| f.statement.clone()).collect(),
        alerts,
    }
}

/// What the manifests and plans say differently.
fn circumstances(subjects: &[Subject]) -> Vec<Circumstance> {
    type Get = fn(&Subject) -> Json;
    const WHAT: [(&str, bool, Get); 14] = [
        ("IOSize of the baselines, bytes", true, |s| s.profile.io_size_bytes.into()),
        ("engine", true, |s| driven(s, |by| json!(by.engine))),
        ("buffering", true, |s| driven(s, |by| json!(by.buffering))),
        ("data written", true, |s| driven(s, |by| json!(by.data))),
        ("state at the start", true, |s| state(s.contents.plan.as_ref())),
        ("capacity, bytes", false, |s| s.contents.plan.as_ref().map(|plan| plan.geometry.capacity.0).into()),
        ("preset", false, |s| s.contents.plan.as_ref().map(|plan| plan.preset.to_string()).into()),
        ("model", false, |s| fact(s, |of| of.model.clone())),
        ("serial", false, |s| fact(s, |of| of.serial.clone())),
        ("firmware", false, |s| fact(s, |of| of.firmware.clone())),
        ("seed", false, |s| s.profile.seed.into()),
        ("program", false, |s| s.profile.tool.clone().into()),
        ("host", false, |s| json!(s.contents.manifest.host.as_ref().map(|host| &host.facts.hostname))),
        ("measured", false, |s| s.contents.manifest.created.clone().into()),
    ];
    let row = |(what, matters, get): &(&str, bool, Get)| {
        let values: Vec<String> = subjects.iter().map(|s| shown(&get(s))).collect();
        let differ = values.iter().any(|v| *v != values[0]);
        differ.then(|| Circumstance { what: (*what).into(), values, matters: *matters })
    };
    WHAT.iter().filter_map(row).collect()
}

/// How the target was driven; null where it is not.
fn driven(subject: &Subject, get: fn(EngineOptions) -> Json) -> Json {
    subject.contents.manifest.options.engine.map_or(Json::Null, get)
}

/// What is known of the target, or of the device beneath a file.
fn fact(subject: &Subject, get: fn(&DeviceFacts) -> Option<String>) -> Json {
    let facts = subject.contents.manifest.target.facts.device();
    let beneath = facts.and_then(|facts| facts.file.as_ref()?.beneath.as_deref());
    json!(facts.and_then(get).or_else(|| beneath.and_then(get)))
}

/// The state that the plan's first reset asks for.
fn state(plan: Option<&Plan>) -> Json {
    let reset = plan.iter().flat_map(|plan| &plan.steps).find_map(|step| match step {
        Step::Reset { state } => Some(state.to_string()),
        _ => None,
    });
    reset.unwrap_or_else(|| "as it was".into()).into()
}

fn shown(value: &Json) -> String {
    match value {
        Json::Null => "-".into(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Sets the change of every value but the first, one of so many `comparisons`.
fn judge(values: &mut [Value], stepped: bool, comparisons: usize) {
    let Some((first, others)) = values.split_first_mut() else { return };
    for value in others {
        value.change = Some(change(first, value, stepped, comparisons));
    }
}

fn change(from: &Value, to: &Value, stepped: bool, comparisons: usize) -> Change {
    let none = |ratio, verdict| Change { ratio, ci95: None, verdict, matters: Decision::NotDecided };
    if !from.measured || !to.measured {
        return none(None, ChangeVerdict::NotMeasured);
    }
    let (Some(a), Some(b)) = (from.value, to.value) else {
        // Neither has the effect, or only one of them has it.
        let same = from.value.is_none() && to.value.is_none();
        return none(None, if same { ChangeVerdict::Noise } else { ChangeVerdict::NoInterval });
    };
    let ratio = (a > 0.0 && b >= 0.0).then(|| b / a);
    let (Some([a_low, a_high]), Some([b_low, b_high])) = (from.interval, to.interval) else {
        return none(ratio, if a == b { ChangeVerdict::Noise } else { ChangeVerdict::NoInterval });
    };
    let large = a != b && (b - a).abs() > ALIKE * a.abs().min(b.abs());
    let apart = b_low > a_high || b_high < a_low;
    if stepped || ratio.is_none() || b <= 0.0 {
        return none(ratio, if apart && large { ChangeVerdict::Differs } else { ChangeVerdict::Noise });
    }
    let known = |value: &Value, mean_ns: f64, low_ns: f64, high_ns: f64| KnownLevel {
        level: Level { mean_ns, low_ns: low_ns.max(0.0), high_ns },
        freedom: value.freedom.unwrap_or(f64::INFINITY),
    };
    let (a, b) = (known(from, a, a_low, a_high), known(to, b, b_low, b_high));
    let Some((printed, wide)) = ratio_at(&b, &a, PRINTED).zip(ratio_at(&b, &a, corrected(comparisons)))
    else {
        return none(ratio, ChangeVerdict::Noise);
    };
    let verdict = match (wide.low > 1.0 || wide.high < 1.0, large) {
        (true, true) => ChangeVerdict::Differs,
        (true, false) => ChangeVerdict::Alike,
        (false, _) => ChangeVerdict::Noise,
    };
    let less = CostRatio { ratio: 1.0 / wide.ratio, low: 1.0 / wide.high, high: 1.0 / wide.low };
    let matters = above(&wide, SAME).or(above(&less, SAME));
    Change { ratio, ci95: Some([printed.low, printed.high]), verdict, matters }
}

#[cfg(test)]
mod tests;
