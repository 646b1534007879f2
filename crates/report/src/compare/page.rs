//! A comparison as one HTML file that opens offline, in the report's style.
//!
//! Nothing in it is a script and nothing is loaded: tables and charts are in the
//! markup, under a policy that allows the one style by its hash. Every text of
//! the data is escaped. The dark colours are the report's, for systems that ask
//! for them.

use super::text::{shown, word, worse};
use crate::draw::layout::{COLUMN, layout};
use crate::draw::scale::{Across, time_axis};
use crate::draw::style::{self, in_turn};
use crate::draw::svg::{escaped, inline};
use crate::draw::{Chart, Look, Point, Series};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use uflip_analysis::compare::value_text;
use uflip_analysis::compare::{
    Better, Change, ChangeVerdict, ComparedCurve, ComparedFigure, ComparedPoint, Comparison, Unit, Value,
};

const REPORT_STYLE: &str = include_str!("../report/style.css");
const STYLE: &str = include_str!("page.css");
/// Where the report's dark colours begin.
const DARK: &str = ":root[data-theme=\"dark\"] {";

/// The report's style, its dark colours by the system's wish, and ours.
fn style() -> String {
    let dark =
        REPORT_STYLE.split_once(DARK).and_then(|(_, rest)| rest.split_once('}')).map_or("", |(dark, _)| dark);
    format!(
        "{REPORT_STYLE}{}@media screen and (prefers-color-scheme: dark) {{ :root {{{dark}{}}} }}\n{STYLE}",
        style::css(),
        style::colours(true)
    )
}

/// What the title of every comparison begins with.
const TITLE: &str = "<title>uflip comparison: ";

/// Whether a file is a comparison that was written before: its title says so.
pub fn is_ours(file: &[u8]) -> bool {
    let head = &file[..file.len().min(4096)];
    file.starts_with(b"<!doctype html>") && head.windows(TITLE.len()).any(|text| text == TITLE.as_bytes())
}

/// The comparison as one HTML file.
pub fn render(made: &Comparison) -> String {
    let style = style();
    let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
    let names: Vec<&str> = made.subjects.iter().map(|s| s.name.as_str()).collect();
    let title = escaped(&names.join(" and "));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n{TITLE}{title}</title>\n<style>{style}</style>\n\
         </head>\n<body>\n"
    );
    head(&mut out, made);
    out.push_str("<main>\n");
    said(&mut out, made);
    figures(&mut out, made);
    charts(&mut out, made);
    circumstances(&mut out, made);
    out.push_str("</main>\n<footer>Made by uflip compare. The first is the reference. ");
    out.push_str(
        "A difference is marked where the 95 % interval of the ratio, widened for the number of comparisons, excludes 1 \
         and the difference is more than 1 %; everything else is within the intervals, and as good as \
         the same only where they lie within x0.8 to x1.25.</footer>\n\
         </body>\n</html>\n",
    );
    out
}

fn head(out: &mut String, made: &Comparison) {
    out.push_str("<header><div><p class=\"kicker\">uflip comparison</p>\n<h1>Side by side</h1></div>\n<ol class=\"subjects\">\n");
    for (at, subject) in made.subjects.iter().enumerate() {
        let role = if at == 0 && made.subjects.len() > 1 { " (the reference)" } else { "" };
        let _ = writeln!(
            out,
            "<li><span class=\"letter c-{}\">{}</span> <strong>{}</strong>{role}: {}</li>",
            in_turn(at).ink.name(),
            subject.letter,
            escaped(&subject.name),
            escaped(&subject.target)
        );
    }
    out.push_str("</ol></header>\n");
}

/// What was found, in words: rules, counts, the largest differences.
fn said(out: &mut String, made: &Comparison) {
    for (subject, alert) in made.subjects.iter().flat_map(|s| s.alerts.iter().map(move |a| (s, a))) {
        let (letter, alert) = (&subject.letter, escaped(alert));
        let _ = writeln!(out, "<p class=\"failed\"><strong>{letter}</strong> {alert}</p>");
    }
    for rule in &made.rules {
        let (class, verdict) = if rule.failed { ("failed", "failed") } else { ("good", "passed") };
        let statements: Vec<String> = rule.statements.iter().map(|s| escaped(s)).collect();
        let _ = writeln!(
            out,
            "<p class=\"{class}\"><strong>{verdict}: {}</strong><br>{}</p>",
            escaped(&rule.rule),
            statements.join("<br>")
        );
    }
    for c in made.circumstances.iter().filter(|c| c.matters) {
        let what = escaped(&c.what);
        let _ = writeln!(
            out,
            "<p class=\"notice\">{what} is not the same: figures that depend on it say nothing of the devices.</p>"
        );
    }
    for subject in &made.subjects {
        for finding in &subject.soundness {
            let _ = writeln!(
                out,
                "<p class=\"notice\"><strong>{}</strong> {}</p>",
                subject.letter,
                escaped(finding)
            );
        }
    }
    let [differ, noise, alike, no_interval, not_measured] = made.tally();
    if made.subjects.len() > 1 {
        let open = made.not_decided();
        let same = noise - open;
        let _ = writeln!(
            out,
            "<p class=\"lead\">{differ} figures differ beyond the intervals; {open} are not decided, {same} are as good as the same, {alike} \
             are below 1 %, \
             {no_interval} have no interval, {not_measured} were not measured in both.</p>"
        );
    }
}

/// The class of a table's cell.
fn class(change: &Change, better: Better) -> &'static str {
    match (change.verdict, worse(change, better)) {
        (ChangeVerdict::Differs, Some(true)) => "differs worse",
        (ChangeVerdict::Differs, Some(false)) => "differs better",
        (ChangeVerdict::Differs, None) => "differs",
        _ => "quiet",
    }
}

fn interval_text(value: &Value, unit: Unit) -> String {
    value.interval.map_or_else(String::new, |[low, high]| {
        format!("{} to {}", value_text(Some(low), unit), value_text(Some(high), unit))
    })
}

fn figures(out: &mut String, made: &Comparison) {
    if made.figures.is_empty() {
        return;
    }
    out.push_str("<section id=\"figures\"><h2>Figures</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures\">\
                  <table class=\"figures\"><thead><tr><th scope=\"col\">figure</th>");
    for (at, subject) in made.subjects.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\">{}</th>", subject.letter);
        if at > 0 {
            let _ = write!(
                out,
                "<th scope=\"col\">{} / {}</th><th scope=\"col\"></th>",
                subject.letter, made.subjects[0].letter
            );
        }
    }
    out.push_str("</tr></thead><tbody>\n");
    let columns = made.subjects.len() * 3 - 1;
    let mut group = "";
    for figure in &made.figures {
        if figure.group != group {
            group = &figure.group;
            let _ =
                writeln!(out, "<tr class=\"group\"><th colspan=\"{columns}\">{}</th></tr>", escaped(group));
        }
        figure_row(out, figure);
    }
    out.push_str("</tbody></table></div></section>\n");
}

fn figure_row(out: &mut String, figure: &ComparedFigure) {
    let _ = write!(out, "<tr><td>{}</td>", escaped(&figure.title));
    for value in &figure.values {
        let (text, hover) = (shown(value, figure.unit), interval_text(value, figure.unit));
        let _ = write!(out, "<td title=\"{}\">{}</td>", escaped(&hover), escaped(&text));
        if let Some(change) = &value.change {
            let ratio = change.ratio.map_or_else(String::new, |r| format!("{r:.3}"));
            let between =
                change.ci95.map_or_else(String::new, |[low, high]| format!("{low:.3} to {high:.3}"));
            let class = class(change, figure.better);
            let said = word(change, figure.better, figure.unit).trim_start_matches("* ");
            let _ = write!(
                out,
                "<td class=\"{class}\" title=\"{between}\">{ratio}</td><td class=\"text {class}\">{said}</td>"
            );
        }
    }
    out.push_str("</tr>\n");
}

fn charts(out: &mut String, made: &Comparison) {
    if made.curves.is_empty() {
        return;
    }
    out.push_str(
        "<section id=\"curves\"><h2>Curves</h2>\n<p class=\"lead\">Mean response time with its 95 % interval; filled marks differ from \
         the reference beyond the intervals.</p>\n<div class=\"charts\">\n",
    );
    // They are in the order of their charts.
    for of_chart in made.curves.chunk_by(|a, b| a.id.section == b.id.section) {
        let section = &of_chart[0].id.section;
        let title = section.micro().map_or_else(|| section.to_string(), |micro| micro.row().title.into());
        let (name, rest) = title.split_once(": ").unwrap_or((&title, ""));
        let _ = writeln!(
            out,
            "<article class=\"card\"><h3>{} <small>{}</small></h3><div class=\"panels\">",
            escaped(name),
            escaped(rest)
        );
        for curve in of_chart {
            panel(out, made, curve);
        }
        out.push_str("</div></article>\n");
    }
    out.push_str("</div></section>\n");
}

fn differs(value: &Value) -> bool {
    value.change.as_ref().is_some_and(|c| c.verdict == ChangeVerdict::Differs)
}

/// One curve of all subjects.
fn panel(out: &mut String, made: &Comparison, curve: &ComparedCurve) {
    let all = |p: &ComparedPoint| -> Vec<f64> {
        let ends = |v: &Value| v.interval.map_or(vec![], |ends| ends.to_vec());
        p.values.iter().flat_map(|v| v.value.into_iter().chain(ends(v))).collect()
    };
    let values: Vec<(i64, String)> = curve.points.iter().map(|p| (p.value, p.label.clone())).collect();
    if values.is_empty() {
        return;
    }
    let across = Across::new(&curve.id.section, &curve.parameter, &values);
    let series = (0..made.subjects.len()).flat_map(|at| subject_series(made, curve, &across, at)).collect();
    let chart = Chart {
        title: curve.id.curve.to_string(),
        x: across.axis,
        y: time_axis("response time", curve.points.iter().flat_map(all)),
        shades: Vec::new(),
        notes: Vec::new(),
        series,
    };
    let marked = curve.points.iter().flat_map(|p| &p.values).filter(|v| differs(v)).count();
    let told = match marked {
        0 => "no difference beyond the intervals".to_string(),
        1 => "1 point differs".to_string(),
        n => format!("{n} points differ"),
    };
    let title = format!("{} {}: {told}", curve.id.section, curve.id.curve);
    let _ = writeln!(
        out,
        "<figure>{}<figcaption><strong>{}</strong> {told}</figcaption></figure>",
        inline(&layout(&chart, COLUMN), COLUMN, &title),
        escaped(&curve.id.curve.to_string())
    );
}

/// A subject's curve: all its points hollow, those that differ filled.
fn subject_series(made: &Comparison, curve: &ComparedCurve, across: &Across, at: usize) -> [Series; 2] {
    let look = Look { hollow: true, size: 1.8, ..in_turn(at) };
    let point = |p: &ComparedPoint| {
        let value = &p.values[at];
        let point = |y| Point { span: value.interval, ..Point::plain(across.at(p.value as f64), y) };
        value.value.map(|y| (point(y), differs(value)))
    };
    let points: Vec<(Point, bool)> = curve.points.iter().filter_map(point).collect();
    let filled = points.iter().filter(|(_, differs)| *differs);
    let filled = filled.map(|(p, _)| Point { span: None, ..*p }).collect();
    let label = made.subjects[at].letter.clone();
    [
        Series { label, look, points: points.into_iter().map(|(p, _)| p).collect() },
        Series { label: String::new(), look: Look { hollow: false, line: None, ..look }, points: filled },
    ]
}

fn circumstances(out: &mut String, made: &Comparison) {
    if made.circumstances.is_empty() {
        return;
    }
    out.push_str("<section id=\"circumstances\"><h2>What else differs</h2><div class=\"scroll\"><table><thead><tr><th scope=\"col\"></th>");
    for subject in &made.subjects {
        let _ = write!(out, "<th scope=\"col\" class=\"text\">{}</th>", subject.letter);
    }
    out.push_str("</tr></thead><tbody>\n");
    for c in &made.circumstances {
        let cells: String =
            c.values.iter().map(|v| format!("<td class=\"text\">{}</td>", escaped(v))).collect();
        let _ = writeln!(out, "<tr><td>{}</td>{cells}</tr>", escaped(&c.what));
    }
    out.push_str("</tbody></table></div></section>\n");
}
