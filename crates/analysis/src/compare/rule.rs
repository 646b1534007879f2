//! Rules for `--fail-if`: a comparison as a gate for changes.
//!
//! ```text
//! rule   := figure op bound
//! figure := a name of the comparison: RW, RW.p99, locality.factor, locality.RW@8M
//! op     := > | >= | < | <=
//! bound  := number x      times the same figure of the first
//!         | number %      the change against the first, in percent: > 20% is > 1.2x
//!         | number unit   ns us ms s for times, B K M G for sizes
//!         | number        for factors and counts
//! ```
//! Blanks are free. A rule looks at every subject but the first, or at the only
//! one. It looks at the figure itself, not at its interval; what it says tells
//! whether the difference may be noise. A figure that was not measured breaks
//! the rule: nobody knows that it holds.

use super::words::value_text;
use super::{ChangeVerdict, ComparedCurve, Comparison, Unit, Value};
use serde::Serialize;
use std::str::FromStr;
use uflip_device::{Bytes, Nanos};
use uflip_measure::{Curve, MicroBenchmark};

/// What must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// As typed.
    pub text: String,
    /// The figure's name.
    pub figure: String,
    /// How it is held against the bound.
    pub op: Op,
    /// The bound.
    pub bound: Bound,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

impl Op {
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Op::Above => a > b,
            Op::AtLeast => a >= b,
            Op::Below => a < b,
            Op::AtMost => a <= b,
        }
    }
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Times the first subject's figure.
    Relative(f64),
    /// In ns, bytes, or as it is.
    Absolute(f64, Dimension),
}

/// What an absolute bound is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// A factor or a count.
    Number,
}

/// What a rule says of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// As typed.
    pub rule: String,
    /// Whether the comparison fails by it.
    pub failed: bool,
    /// Why, or why not, one sentence a subject.
    pub statements: Vec<String>,
}

const EXPECTED: &str = "a rule is a figure, one of > >= < <=, and a bound, \
    such as 'RW > 1.2x', 'RW.p99 > 5ms', 'SW > 10%' or 'partitions.count < 4'";

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let wrong = |what: String| format!("the rule '{text}' {what}; {EXPECTED}");
        let at = text.find(['<', '>']).ok_or_else(|| wrong("has none of > >= < <=".into()))?;
        let (figure, rest) = text.split_at(at);
        let figure: String = figure.split_whitespace().collect();
        if figure.is_empty() {
            return Err(wrong("names no figure".into()));
        }
        if figure.ends_with('=') {
            return Err(wrong("has its '=' before the sign".into()));
        }
        let (op, rest) = match (rest.strip_prefix(">="), rest.strip_prefix("<="), rest.split_at(1)) {
            (Some(rest), ..) => (Op::AtLeast, rest),
            (_, Some(rest), _) => (Op::AtMost, rest),
            (.., (">", rest)) => (Op::Above, rest),
            (.., (_, rest)) => (Op::Below, rest),
        };
        let bound: String = rest.split_whitespace().collect();
        let bound = parse_bound(&bound).map_err(wrong)?;
        Ok(Rule { text: text.trim().into(), figure, op, bound })
    }
}

fn parse_bound(text: &str) -> Result<Bound, String> {
    if text.is_empty() {
        return Err("has no bound".into());
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    if let Some(times) = text.strip_suffix(['x', 'X']) {
        let times = number(times).filter(|n| *n > 0.0);
        return times
            .map(Bound::Relative)
            .ok_or_else(|| format!("has the bound '{text}', which is no factor above 0"));
    }
    if let Some(percent) = text.strip_suffix('%') {
        let percent = number(percent).filter(|n| *n > -100.0);
        let bound = percent.map(|p| Bound::Relative(1.0 + p / 100.0));
        return bound.ok_or_else(|| format!("has the bound '{text}', which is no percentage above -100"));
    }
    if let Some(plain) = number(text) {
        return Ok(Bound::Absolute(plain, Dimension::Number));
    }
    if let Ok(Nanos(ns)) = text.parse() {
        return Ok(Bound::Absolute(ns as f64, Dimension::Time));
    }
    let size: Result<Bytes, _> = text.parse();
    let size = size.map(|Bytes(bytes)| Bound::Absolute(bytes as f64, Dimension::Size));
    size.map_err(|_| {
        format!("has the bound '{text}', which is neither a factor, a time, a size nor a number")
    })
}

/// The figure's values, unit and whether it is there at all.
fn find<'a>(name: &str, made: &'a Comparison) -> Option<(&'a [Value], Unit)> {
    if let Some(figure) = made.figures.iter().find(|f| f.name.eq_ignore_ascii_case(name)) {
        return Some((&figure.values, figure.unit));
    }
    let (curve, label) = name.split_once('@')?;
    let (section, baseline) = curve.split_once('.')?;
    let baseline: Curve = baseline.parse().ok()?;
    let called = |c: &&ComparedCurve| c.id.section.to_string().eq_ignore_ascii_case(section);
    let curve = made.curves.iter().filter(called).find(|c| c.id.curve == baseline)?;
    let plain = |label: &str| label.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let point = curve.points.iter().find(|p| plain(&p.label).eq_ignore_ascii_case(label))?;
    Some((&point.values, Unit::Ns))
}

/// Whether a comparison has every figure that `rule` may speak of, and the
/// rule's bound fits it; what is wrong with it otherwise, with what to type.
///
/// # Errors
/// The sentence for the person who typed it.
pub fn check(rule: &Rule, made: &Comparison) -> Result<(), String> {
    if made.subjects.len() < 2 && matches!(rule.bound, Bound::Relative(_)) {
        return Err(format!(
            "the rule '{}' needs something to compare with: name a second folder",
            rule.text
        ));
    }
    let Some((_, unit)) = find(&rule.figure, made) else {
        return if is_known(&rule.figure) {
            // A name that exists: apply() says that it was not measured.
            Ok(())
        } else {
            Err(format!("the rule '{}' names no figure; {}", rule.text, names(made)))
        };
    };
    let fits = match rule.bound {
        Bound::Relative(_) => true,
        Bound::Absolute(0.0, Dimension::Number) => true,
        Bound::Absolute(_, Dimension::Time) => unit == Unit::Ns,
        Bound::Absolute(_, Dimension::Size) => unit == Unit::Bytes,
        Bound::Absolute(_, Dimension::Number) => matches!(unit, Unit::Times | Unit::Count),
    };
    let like = match unit {
        Unit::Ns => "a time such as 5ms",
        Unit::Bytes => "a size such as 8M",
        Unit::Times | Unit::Count => "a number such as 2",
    };
    if fits {
        return Ok(());
    }
    Err(format!(
        "the rule '{}': {} takes {like}, or a factor of the first such as 1.2x",
        rule.text, rule.figure
    ))
}

/// A name that exists whether or not anything was measured.
fn is_known(name: &str) -> bool {
    super::table::all_figures(&[]).iter().any(|f| f.name.eq_ignore_ascii_case(name)) || is_a_point(name)
}

/// A point of one of the nine micro-benchmarks.
fn is_a_point(name: &str) -> bool {
    let micro = name.split_once('@').and_then(|(curve, _)| curve.split_once('.')).map(|(micro, _)| micro);
    micro.is_some_and(|m| m.parse::<MicroBenchmark>().is_ok())
}

fn names(made: &Comparison) -> String {
    let figures: Vec<&str> = made.figures.iter().map(|f| f.name.as_str()).collect();
    let point = made.curves.iter().find_map(|c| {
        let label: String = c.points.first()?.label.split_whitespace().collect();
        Some(format!("; points of curves such as {}.{}@{label}", c.id.section, c.id.curve))
    });
    format!("there are {}{}", figures.join(", "), point.unwrap_or_default())
}

/// What `rule` says of `made`.
pub(super) fn apply(rule: &Rule, made: &Comparison) -> Outcome {
    let mut outcome = Outcome { rule: rule.text.clone(), failed: false, statements: Vec::new() };
    let from = usize::from(made.subjects.len() > 1);
    let Some((values, unit)) = find(&rule.figure, made) else {
        outcome.failed = true;
        outcome.statements.push(format!("{} was not measured in any of them", rule.figure));
        return outcome;
    };
    for (subject, value) in made.subjects.iter().zip(values).skip(from) {
        let (failed, statement) = one(rule, &values[0], value, unit);
        outcome.failed |= failed;
        outcome.statements.push(format!("{} {}: {statement}", subject.letter, subject.name));
    }
    outcome
}

fn one(rule: &Rule, first: &Value, value: &Value, unit: Unit) -> (bool, String) {
    let name = &rule.figure;
    let Some(figure) = value.value else {
        let why =
            if value.measured { "has no such figure: there is no such effect" } else { "was not measured" };
        return (true, format!("{name} {why}, so nobody can say that the rule holds"));
    };
    let shown = value_text(Some(figure), unit);
    match rule.bound {
        Bound::Absolute(bound, _) => {
            let failed = rule.op.holds(figure, bound);
            (failed, format!("{name} is {shown}"))
        }
        Bound::Relative(factor) => {
            let Some(reference) = first.value.filter(|v| *v > 0.0) else {
                return (
                    true,
                    format!("{name} was not measured in the first, so there is nothing to compare with"),
                );
            };
            let ratio = figure / reference;
            let failed = rule.op.holds(ratio, factor);
            let change = value.change.as_ref();
            let interval = change
                .and_then(|c| c.ci95)
                .map_or_else(String::new, |[low, high]| format!(" ({low:.2} to {high:.2})"));
            let noise = match change.map(|c| c.verdict) {
                Some(ChangeVerdict::Noise) => "; the difference is within the intervals",
                Some(ChangeVerdict::NoInterval) => "; without an interval",
                _ => "",
            };
            (failed, format!("{name} is {shown}, {ratio:.3} times the first's{interval}{noise}"))
        }
    }
}
