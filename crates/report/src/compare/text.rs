//! A comparison as text, legible at 80 columns and without colour.
//!
//! Two subjects have a column for the ratio and a word for it; more have a mark
//! behind each figure that differs from the first, and all have the marked
//! differences as sentences. Of the curves only those with a marked difference
//! are told, value by value.

use crate::terminal::Style;
use std::fmt::Write;
use uflip_analysis::compare::{
    Better, Change, ChangeVerdict, ComparedCurve, ComparedFigure, ComparedPoint, Comparison, SubjectFacts,
    Unit, Value,
};
use uflip_analysis::compare::{three, value_text};
use uflip_measure::detect::verdict::Decision;

/// Columns of a figure's title.
const TITLE: usize = 30;
/// Columns of a value.
const CELL: usize = 12;
/// Marked differences told as sentences, at most.
const SENTENCES: usize = 12;

pub(super) fn shown(value: &Value, unit: Unit) -> String {
    if value.measured { value_text(value.value, unit) } else { "not measured".into() }
}

/// True where the change is for the worse.
pub(super) fn worse(change: &Change, better: Better) -> Option<bool> {
    let ratio = change.ratio?;
    match better {
        Better::Lower => Some(ratio > 1.0),
        Better::Higher => Some(ratio < 1.0),
        Better::Neither => None,
    }
}

/// What is said of a change, in a word or two.
pub(super) fn word(change: &Change, better: Better, unit: Unit) -> &'static str {
    match change.verdict {
        ChangeVerdict::Noise if change.matters == Decision::No => "within x1.25",
        ChangeVerdict::Noise if change.ci95.is_some() => "not decided",
        // Also where neither has the effect.
        ChangeVerdict::Noise if change.ratio.is_none_or(|r| r == 1.0) => "the same",
        ChangeVerdict::Noise => "noise",
        ChangeVerdict::Alike => "within 1 %",
        ChangeVerdict::NoInterval => "no interval",
        ChangeVerdict::NotMeasured => "not measured",
        ChangeVerdict::Differs => match (worse(change, better), unit) {
            (Some(true), Unit::Ns) => "* slower",
            (Some(false), Unit::Ns) => "* faster",
            (Some(true), _) => "* worse",
            (Some(false), _) => "* better",
            (None, _) => "* differs",
        },
    }
}

fn paint(text: &str, code: &str, style: Style) -> String {
    if style.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// `text` broken at blanks, later lines indented as the first label is long.
fn wrap(out: &mut String, label: &str, text: &str, style: Style) {
    let indent = label.chars().count();
    let (mut current, mut empty) = (label.to_string(), true);
    for word in text.split_whitespace() {
        if !empty && current.chars().count() + 1 + word.chars().count() > style.width {
            line(out, &current);
            (current, empty) = (" ".repeat(indent), true);
        }
        if !empty {
            current.push(' ');
        }
        current.push_str(word);
        empty = false;
    }
    line(out, &current);
}

fn heading(out: &mut String, text: &str, style: Style) {
    out.push('\n');
    line(out, &paint(text, "1", style));
}

/// The comparison as text; lines are at most the style's width, or 80, except
/// where a word cannot be broken.
pub fn render(made: &Comparison, style: Style) -> String {
    let style = Style { width: style.width.max(80), ..style };
    let mut out = String::new();
    head(&mut out, made, style);
    let others: Vec<usize> = (1..made.subjects.len()).collect();
    let at_once = ((style.width - TITLE - 2) / CELL).saturating_sub(1).max(1);
    for some in others.chunks(at_once).map(<[usize]>::to_vec).chain(others.is_empty().then(Vec::new)) {
        figures(&mut out, made, &some, style);
    }
    curves(&mut out, made, style);
    sentences(&mut out, made, style);
    summary(&mut out, made, style);
    out
}

fn head(out: &mut String, made: &Comparison, style: Style) {
    for SubjectFacts { letter, name, alerts, .. } in &made.subjects {
        alerts.iter().for_each(|alert| wrap(out, &format!("! {letter} {name}: "), alert, style));
    }
    for (at, subject) in made.subjects.iter().enumerate() {
        let role = if at == 0 && made.subjects.len() > 1 { " (the reference)" } else { "" };
        wrap(
            out,
            &format!("{}  ", subject.letter),
            &format!("{}: {}{role}", subject.name, subject.target),
            style,
        );
    }
    if !made.circumstances.is_empty() {
        heading(out, "They also differ in", style);
        for c in &made.circumstances {
            let values = made.subjects.iter().zip(&c.values).map(|(s, v)| format!("{} {v}", s.letter));
            wrap(out, &format!("  {:<TITLE$}", c.what), &values.collect::<Vec<_>>().join(", "), style);
        }
    }
    for c in made.circumstances.iter().filter(|c| c.matters) {
        wrap(
            out,
            "! ",
            &format!("{} is not the same: figures that depend on it say nothing of the devices.", c.what),
            style,
        );
    }
    for SubjectFacts { letter, soundness, .. } in &made.subjects {
        for finding in soundness {
            wrap(out, &format!("! {letter}: "), finding, style);
        }
    }
}

/// The figures of the reference and of `some` others.
fn figures(out: &mut String, made: &Comparison, some: &[usize], style: Style) {
    let mut group = "";
    for figure in &made.figures {
        if figure.group != group {
            group = &figure.group;
            heading(out, &title_row(made, group, some), style);
        }
        line(out, &figure_row(figure, some, style));
    }
}

/// A cell right-aligned, a blank before it however long it is.
fn cell(text: &str) -> String {
    let width = CELL - 1;
    format!(" {text:>width$}")
}

fn title_row(made: &Comparison, group: &str, some: &[usize]) -> String {
    let letters: String =
        std::iter::once(&0).chain(some).map(|i| format!("{:>CELL$}", made.subjects[*i].letter)).collect();
    let ratio = match some {
        [one] => format!("{:>8}", format!("{} / {}", made.subjects[*one].letter, made.subjects[0].letter)),
        _ => String::new(),
    };
    let wide = TITLE + 2;
    if group.chars().count() < wide {
        format!("{group:<wide$}{letters}{ratio}")
    } else {
        format!("{group}\n{:wide$}{letters}{ratio}", "")
    }
}

fn colour(change: &Change, better: Better) -> &'static str {
    match (change.verdict, worse(change, better)) {
        (ChangeVerdict::Differs, Some(true)) => "31",
        (ChangeVerdict::Differs, Some(false)) => "32",
        (ChangeVerdict::Differs, None) => "33",
        _ => "2",
    }
}

fn figure_row(figure: &ComparedFigure, some: &[usize], style: Style) -> String {
    let first = cell(&shown(&figure.values[0], figure.unit));
    let mut row = format!("  {:<TITLE$}{first}", figure.title);
    for at in some {
        let value = &figure.values[*at];
        let text = shown(value, figure.unit);
        let Some(change) = value.change.as_ref() else { continue };
        if let [_] = some {
            let ratio = change.ratio.map_or_else(String::new, three);
            let said = paint(word(change, figure.better, figure.unit), colour(change, figure.better), style);
            let _ = write!(row, "{}{ratio:>8}  {said}", cell(&text));
        } else {
            let mark = if change.verdict == ChangeVerdict::Differs { "*" } else { " " };
            row.push_str(&paint(&cell(&format!("{text}{mark}")), colour(change, figure.better), style));
        }
    }
    row
}

/// The curves with a marked difference, as ratios value by value.
fn curves(out: &mut String, made: &Comparison, style: Style) {
    if made.subjects.len() < 2 || made.curves.is_empty() {
        return;
    }
    let marked = |c: &&ComparedCurve| c.points.iter().any(|p| p.values.iter().any(differs));
    let told: Vec<&ComparedCurve> = made.curves.iter().filter(marked).collect();
    let rest = made.curves.len() - told.len();
    heading(out, "Curves: mean response time against the reference (* beyond the intervals)", style);
    for curve in told {
        curve_rows(out, made, curve, style);
    }
    let others = if rest == made.curves.len() { "all" } else { "the other" };
    if rest > 0 {
        wrap(
            out,
            "  ",
            &format!("{others} {rest} of {} curves: no difference beyond the intervals", made.curves.len()),
            style,
        );
    }
}

fn differs(value: &Value) -> bool {
    value.change.as_ref().is_some_and(|c| c.verdict == ChangeVerdict::Differs)
}

fn curve_rows(out: &mut String, made: &Comparison, curve: &ComparedCurve, style: Style) {
    line(out, &format!("  {} {}, by {}", curve.id.section, curve.id.curve, curve.parameter));
    let short = |p: &ComparedPoint| p.label.replace(' ', "");
    let cell = curve.points.iter().map(|p| short(p).chars().count() + 2).max().unwrap_or(8).max(8);
    let at_once = ((style.width - 8) / cell).max(1);
    for points in curve.points.chunks(at_once) {
        line(
            out,
            &format!(
                "{:8}{}",
                "",
                points.iter().map(|p| format!("{:>cell$}", short(p) + " ")).collect::<String>()
            ),
        );
        for (at, subject) in made.subjects.iter().enumerate().skip(1) {
            let mut row = format!("{:>8}", format!("{} / {}", subject.letter, made.subjects[0].letter));
            for point in points {
                let value = &point.values[at];
                let ratio = value.change.as_ref().and_then(|c| c.ratio);
                let mark = if differs(value) { "*" } else { " " };
                let text = format!("{:>cell$}", ratio.map_or_else(|| "- ".into(), |r| three(r) + mark));
                let code = value.change.as_ref().map_or("2", |c| colour(c, Better::Lower));
                row.push_str(&paint(&text, code, style));
            }
            line(out, &row);
        }
    }
}

/// The marked differences of the figures, the largest first.
fn sentences(out: &mut String, made: &Comparison, style: Style) {
    let mut all = Vec::new();
    for figure in &made.figures {
        for (subject, value) in made.subjects.iter().zip(&figure.values) {
            let Some(change) = value.change.as_ref().filter(|c| c.verdict == ChangeVerdict::Differs) else {
                continue;
            };
            let size = change.ratio.map_or(f64::INFINITY, |r| r.ln().abs());
            all.push((size, sentence(made, figure, subject, value, change)));
        }
    }
    if all.is_empty() {
        return;
    }
    heading(out, "Differences beyond the intervals, the largest first", style);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, text) in all.iter().take(SENTENCES) {
        wrap(out, "  ", text, style);
    }
    if all.len() > SENTENCES {
        line(out, &format!("  and {} more, marked above", all.len() - SENTENCES));
    }
}

fn sentence(
    made: &Comparison,
    figure: &ComparedFigure,
    subject: &SubjectFacts,
    value: &Value,
    change: &Change,
) -> String {
    let (name, letter, first) = (&figure.name, &subject.letter, &made.subjects[0].letter);
    let (now, before) = (shown(value, figure.unit), shown(&figure.values[0], figure.unit));
    match (change.ratio, change.ci95) {
        (Some(ratio), Some([low, high])) => {
            format!(
                "{name}: {letter} is {} times {first} ({} to {}): {now} after {before}",
                three(ratio),
                three(low),
                three(high)
            )
        }
        _ => format!("{name}: {letter} has {now}, {first} {before}"),
    }
}

fn summary(out: &mut String, made: &Comparison, style: Style) {
    let [differ, noise, alike, no_interval, not_measured] = made.tally();
    let all = differ + noise + alike + no_interval + not_measured;
    let open = made.not_decided();
    if all > 0 {
        out.push('\n');
        let counts = [
            (differ, "differ beyond the intervals"),
            (noise - open, "are as good as the same"),
            (open, "are not decided"),
            (alike, "differ by less than 1 %"),
            (no_interval, "have no interval"),
            (not_measured, "were not measured in both"),
        ];
        let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        wrap(out, "", &format!("{all} figures compared: {}.", counts.collect::<Vec<_>>().join(", ")), style);
    }
    for rule in &made.rules {
        let (sign, code) = if rule.failed { ("FAILED", "31") } else { ("passed", "32") };
        line(out, &format!("{} {}", paint(sign, code, style), rule.rule));
        rule.statements.iter().for_each(|s| wrap(out, "       ", s, style));
    }
}
