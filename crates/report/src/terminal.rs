//! A [`View`] as text for a terminal, legible at 80 columns and without colour.
//!
//! Method: a micro-benchmark's curves are drawn on a grid of nine rows, values
//! across by their place (evenly, one slot each), mean response time up on a
//! log axis whose ends are 1, 2 or 5 times a power of ten. Inside a slot every
//! baseline has its own column while there is room, so curves that agree stand
//! side by side instead of hiding one another; without room `*` marks a place
//! that several share.

use crate::draw::scale::log_ticks;
use crate::view::{BaselineLevel, BaselineRow, BaselineSeries, CurvePoint, Section, View};
use std::fmt::Write;
use uflip_analysis::compare::three;
use uflip_analysis::profile::{Finding, Severity};
use uflip_analysis::program::ProgramRun;
use uflip_device::Nanos;
use uflip_measure::Baseline;
use uflip_measure::run::CurveName;

/// How a view is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; at least 60 are used.
    pub width: usize,
    /// ANSI colours.
    pub color: bool,
    /// Plain ASCII instead of geometric shapes and box drawing.
    pub ascii: bool,
}

/// Rows of a curve's grid.
const ROWS: usize = 9;
/// Columns left of the grid: a tick's label and the axis.
const MARGIN: usize = 9;

/// The view as text in geometric shapes; lines are at most `width` columns,
/// or 60, except where a path or a sentence cannot be broken.
pub fn render(view: &View, width: usize, color: bool) -> String {
    render_with(view, Style { width, color, ascii: false })
}

/// The view as text in any style.
pub fn render_with(view: &View, style: Style) -> String {
    let style = Style { width: style.width.max(60), ..style };
    let mut out = String::new();
    for alert in &view.alerts {
        wrap(alert, "! ", style, &mut out, |t| paint(t, "1;31", style));
    }
    head(view, style, &mut out);
    levels(&view.levels, style, &mut out);
    if let Some(work) = &view.device_work {
        wrap(work, "  ", style, &mut out, str::to_string);
    }
    baselines(
        "The baselines' runs: response time in",
        ", from IOIgnore on",
        &view.baselines,
        style,
        &mut out,
    );
    let open = "Open loops: response time, from the instant that an IO was due, in";
    baselines(open, "", &view.open_loops, style, &mut out);
    programs(&view.programs, style, &mut out);
    for section in &view.sections {
        section_text(section, style, &mut out);
    }
    if !view.files.is_empty() {
        heading("Files", style, &mut out);
        for (what, path) in &view.files {
            line(&mut out, &format!("  {what:<9}{path}"));
        }
    }
    out
}

/// Appends a line without trailing blanks.
fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

fn paint(text: &str, code: &str, style: Style) -> String {
    if style.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
}

fn heading(text: &str, style: Style, out: &mut String) {
    out.push('\n');
    wrap(text, "", style, out, |t| paint(t, "1", style));
}

/// Breaks `text` at blanks to the style's width, later lines indented by two.
fn wrap(text: &str, first: &str, style: Style, out: &mut String, paint: impl Fn(&str) -> String) {
    let (mut current, mut indent) = (String::new(), first.to_string());
    for word in text.split_whitespace() {
        let long = indent.chars().count() + current.chars().count() + 1 + word.chars().count() > style.width;
        if long && !current.is_empty() {
            line(out, &format!("{indent}{}", paint(&current)));
            current.clear();
            indent = " ".repeat(first.chars().count().max(2));
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    line(out, &format!("{indent}{}", paint(&current)));
}

fn head(view: &View, style: Style, out: &mut String) {
    wrap(&view.target, "", style, out, |t| paint(t, "1", style));
    for text in [&view.host, &view.overhead].into_iter().flatten() {
        wrap(text, "", style, out, str::to_string);
    }
    let plural = if view.runs == 1 { "" } else { "s" };
    let made = format!("{} run{plural}, seed {}, {}, {}", view.runs, view.seed, view.tool, view.created);
    wrap(&made, "", style, out, str::to_string);
    // What was said first is not said again.
    let mut findings: Vec<_> =
        view.soundness.iter().filter(|f| !view.alerts.contains(&f.statement)).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    if !findings.is_empty() || !view.notes.is_empty() {
        out.push('\n');
    }
    if !findings.is_empty() {
        wrap(&summary(&findings), "", style, out, |t| paint(t, "1", style));
    }
    for finding in findings {
        let (mark, color) = match finding.severity {
            Severity::Serious => ("!! serious: ", "1;31"),
            Severity::Warning => ("! warning: ", "33"),
            Severity::Info => ("- note: ", "2"),
        };
        // The mark is a part of the text, so that later lines are indented by two.
        wrap(&format!("{mark}{}", finding.statement), "", style, out, |t| paint(t, color, style));
    }
    for text in &view.notes {
        wrap(text, "! ", style, out, |t| paint(t, "33", style));
    }
}

/// How many findings there are of each severity, the gravest first.
fn summary(findings: &[&Finding]) -> String {
    let of = |severity, word: &str| {
        let n = findings.iter().filter(|f| f.severity == severity).count();
        (n > 0).then(|| format!("{n} {word}"))
    };
    let all =
        [of(Severity::Serious, "serious"), of(Severity::Warning, "warning"), of(Severity::Info, "to know")];
    format!("Soundness: {}", all.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// A unit for times and how many nanoseconds it has: the largest in which
/// `ns` is at least one.
fn unit_for(ns: f64) -> (&'static str, f64) {
    const UNITS: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    UNITS.into_iter().find(|(_, scale)| ns >= *scale).unwrap_or(("ns", 1.0))
}

fn in_unit(ns: Option<f64>, scale: f64) -> String {
    ns.map_or_else(|| "-".into(), |ns| three(ns / scale))
}

/// The unit that suits most of some times: that of their median.
fn common_unit(mut times_ns: Vec<f64>) -> (&'static str, f64) {
    times_ns.sort_by(f64::total_cmp);
    unit_for(times_ns.get(times_ns.len() / 2).copied().unwrap_or(1e6))
}

/// What each baseline costs, as the profile and the report say it.
fn levels(rows: &[BaselineLevel], style: Style, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    heading("Mean response time of the running phase, without the start-up that was found", style, out);
    for row in rows {
        let (unit, scale) = unit_for(row.mean_ns);
        let name = paint(&format!("{:<8}", row.baseline), color_of(&row.baseline.into(), 0), style);
        let interval = row.ci95_ns.map_or_else(
            || "no interval: the runs are too short".to_string(),
            |[low, high]| format!("95 %: {} to {} {unit}", three(low / scale), three(high / scale)),
        );
        line(out, &format!("  {name}{:>9} {unit:<3} {interval}", three(row.mean_ns / scale)));
    }
}

fn baselines(title: &str, from: &str, rows: &[BaselineRow], style: Style, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let means = rows.iter().filter_map(|row| row.stats.mean_ns).collect();
    let (unit, scale) = common_unit(means);
    heading(&format!("{title} {unit}{from}"), style, out);
    line(
        out,
        &format!(
            "  {:<8}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>9}",
            "", "IOs", "mean", "sd", "min", "p50", "p99", "p99.9", "max"
        ),
    );
    for row in rows {
        let s = &row.stats;
        let whole = |ns: Option<u64>| in_unit(ns.map(|ns| ns as f64), scale);
        let name = if row.repeat == 0 {
            row.baseline.to_string()
        } else {
            format!("{} #{}", row.baseline, row.repeat + 1)
        };
        let name = paint(&format!("{name:<8}"), color_of(&row.baseline, 0), style);
        line(
            out,
            &format!(
                "  {name}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>9}",
                s.n,
                in_unit(s.mean_ns, scale),
                in_unit(s.sd_ns, scale),
                whole(s.min_ns),
                whole(s.p50_ns),
                whole(s.p99_ns),
                whole(s.p999_ns),
                whole(s.max_ns),
            ),
        );
        beside_text(row, style, out);
    }
}

/// What a run says beside its response times, each on a line of its own.
fn beside_text(row: &BaselineRow, style: Style, out: &mut String) {
    let amplification = row.write_amplification.map(|wa| format!("write amplification {}", three(wa)));
    let energy = row.energy_uj_per_io.map(|uj| format!("{} uJ an IO", three(uj)));
    let told: Vec<String> = amplification.into_iter().chain(energy).collect();
    if !told.is_empty() {
        line(out, &format!("          {}", told.join(", ")));
    }
    for of in &row.by_mode {
        let ns = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| Nanos(ns.round() as u64).to_string());
        let longest = of.running.max_ns.map(|ns| ns as f64);
        let text = format!(
            "{} {}: mean {}, max {}",
            of.running.n,
            of.mode.name(),
            ns(of.running.mean_ns),
            ns(longest)
        );
        line(out, &format!("          {text}"));
    }
    if let Some(late) = &row.lateness {
        wrap(&format!("open loop: {late}"), "          ", style, out, str::to_string);
    }
}

/// What a program did on its devices, a line for each step and device.
fn programs(runs: &[ProgramRun], style: Style, out: &mut String) {
    let Some(first) = runs.first() else { return };
    heading(&format!("{}: what each step did on each device", first.program), style, out);
    let columns = ["requests", "read", "written", "time", "MB/s", "under way", "mean"];
    let cells = |cells: [String; 7]| {
        let widths = [9, 7, 8, 9, 7, 10, 9];
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<String>()
    };
    line(out, &format!("  {:<16}{}", "", cells(columns.map(str::to_string))));
    for run in runs {
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), three);
        let figures = [
            run.requests.to_string(),
            run.read.to_string(),
            run.written.to_string(),
            Nanos(run.elapsed_ns).to_string(),
            number(run.mb_s),
            number(run.mean_under_way),
            run.stats.mean_ns.map_or_else(|| "-".into(), |mean| Nanos(mean.round() as u64).to_string()),
        ];
        line(out, &format!("  {:<16}{}", format!("{} {}", run.step, run.device), cells(figures)));
    }
    let virtual_time = runs.iter().filter(|run| run.virtual_time).count();
    if virtual_time > 0 {
        let all = if virtual_time == runs.len() { "all" } else { "some" };
        line(out, &format!("  {all} times are virtual; each device's runs are on its own clock"));
    }
    let told = runs.iter().filter(|run| run.write_amplification.is_some() || run.energy_uj_per_io.is_some());
    for run in told {
        let parts = [
            run.write_amplification.map(|value| format!("write amplification {}", three(value))),
            run.energy_uj_per_io.map(|value| format!("{} uJ a request", three(value))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        line(out, &format!("  {} {}: {}", run.step, run.device, parts.join(", ")));
    }
}

/// The sign of a curve: the baselines have their own, others take turns.
fn glyph_of(curve: &CurveName, at: usize, style: Style) -> char {
    let (shape, letter) = match curve.baseline() {
        Some(Baseline::Sr) => ('○', 'o'),
        Some(Baseline::Rr) => ('●', 'O'),
        Some(Baseline::Sw) => ('△', 'v'),
        Some(Baseline::Rw) => ('▲', 'V'),
        None => (
            ['○', '●', '△', '▲', '□', '■', '◇', '◆'][at % 8],
            ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'][at % 8],
        ),
    };
    if style.ascii { letter } else { shape }
}

fn color_of(curve: &CurveName, at: usize) -> &'static str {
    match curve.baseline() {
        Some(Baseline::Sr) => "32",
        Some(Baseline::Rr) => "36",
        Some(Baseline::Sw) => "33",
        Some(Baseline::Rw) => "31",
        None => ["32", "36", "33", "31", "35", "34"][at % 6],
    }
}

fn section_text(section: &Section, style: Style, out: &mut String) {
    heading(&section.title, style, out);
    let values = section.values();
    let values: Vec<(i64, &str)> = values.iter().map(|(value, label)| (*value, label.as_str())).collect();
    let measured: Vec<f64> = means(&section.series).collect();
    if !measured.is_empty() {
        let legend: Vec<_> = section
            .series
            .iter()
            .enumerate()
            .map(|(at, s)| {
                let sign = glyph_of(&s.baseline, at, style).to_string();
                format!("{} {}", paint(&sign, color_of(&s.baseline, at), style), s.baseline)
            })
            .collect();
        line(out, &format!("{:MARGIN$}{}", "", legend.join("   ")));
        curve(section, &values, &measured, style, out);
        out.push('\n');
        table(section, &values, measured, style, out);
    }
    for sentence in &section.sentences {
        let text =
            if style.ascii { sentence.replace('×', "x").replace('µ', "u") } else { sentence.clone() };
        wrap(&text, "  ", style, out, str::to_string);
    }
    for skipped in &section.skipped {
        wrap(&format!("left out: {skipped}"), "  ", style, out, str::to_string);
    }
}

fn means(series: &[BaselineSeries]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|s| &s.points).filter_map(|p| p.mean_ns).filter(|ns| *ns > 0.0)
}

fn point_at(series: &BaselineSeries, value: i64) -> Option<&CurvePoint> {
    series.points.iter().find(|p| p.value == value)
}

/// The curves of a section on a grid.
fn curve(section: &Section, values: &[(i64, &str)], measured: &[f64], style: Style, out: &mut String) {
    let (low, high) = measured.iter().fold((f64::MAX, 0f64), |(a, b), ns| (a.min(*ns), b.max(*ns)));
    let ticks = log_ticks(low.max(1.0), high.max(1.0));
    let (bottom, top) = (ticks[0], ticks[ticks.len() - 1]);
    let row_of = |ns: f64| {
        let up = (ns / bottom).ln() / (top / bottom).ln() * (ROWS - 1) as f64;
        ROWS - 1 - (up.round().max(0.0) as usize).min(ROWS - 1)
    };
    let slot = ((style.width - MARGIN) / values.len().max(1)).clamp(1, 10);
    let mut grid = vec![vec![(' ', ""); slot * values.len()]; ROWS];
    let curves = section.series.len();
    for (at, series) in section.series.iter().enumerate() {
        let sign = (glyph_of(&series.baseline, at, style), color_of(&series.baseline, at));
        for (place, (value, _)) in values.iter().enumerate() {
            let Some(mean) = point_at(series, *value).and_then(|p| p.mean_ns).filter(|ns| *ns > 0.0) else {
                continue;
            };
            let within = if slot > curves { (slot - curves) / 2 + at } else { slot / 2 };
            let cell = &mut grid[row_of(mean)][place * slot + within];
            *cell = if cell.0 == ' ' { sign } else { ('*', "") };
        }
    }
    let mut labels = vec![None; ROWS];
    // The ends first, then what fits between.
    for tick in [top, bottom].iter().chain(&ticks) {
        labels[row_of(*tick)].get_or_insert(*tick);
    }
    let (mark, bar, corner, dash) =
        if style.ascii { ('+', '|', '+', '-') } else { ('┤', '│', '└', '─') };
    for (row, label) in grid.iter().zip(labels) {
        let text = label.map_or_else(String::new, |ns| Nanos(ns as u64).to_string());
        let axis = if label.is_some() { mark } else { bar };
        let mut cells = String::new();
        for (sign, color) in row {
            match color.is_empty() {
                true => cells.push(*sign),
                false => cells.push_str(&paint(&sign.to_string(), color, style)),
            }
        }
        line(out, &format!("{text:>7} {axis}{cells}"));
    }
    let base: String = std::iter::repeat_n(dash, slot * values.len()).collect();
    line(out, &format!("{:7} {corner}{base}", ""));
    line(out, &format!("{:MARGIN$}{}", "", axis_labels(values, slot)));
    let name = &section.parameter;
    line(out, &format!("{:MARGIN$}{name:^width$}", "", width = slot * values.len()));
}

/// Labels centred under their slots; where they are too wide, every n-th.
fn axis_labels(values: &[(i64, &str)], slot: usize) -> String {
    let short = |label: &str| label.replace(' ', "");
    let widest = values.iter().map(|(_, label)| short(label).chars().count()).max().unwrap_or(1);
    let every = (widest + 1).div_ceil(slot).max(1);
    let mut text = String::new();
    for (place, (_, label)) in values.iter().enumerate().step_by(every) {
        let label = short(label);
        let centre = place * slot + slot / 2;
        let start = centre.saturating_sub(label.chars().count() / 2);
        let pad = start.saturating_sub(text.chars().count());
        // Always a blank between two labels.
        let pad = if text.is_empty() { pad } else { pad.max(1) };
        let _ = write!(text, "{:pad$}{label}", "");
    }
    text
}

/// The means as a table, values down and baselines across; with the span over
/// repeats where there are several and room for it.
fn table(section: &Section, values: &[(i64, &str)], measured: Vec<f64>, style: Style, out: &mut String) {
    let (unit, scale) = common_unit(measured);
    let first = values.iter().map(|(_, label)| label.chars().count()).chain([section.parameter.len()]).max();
    let first = first.unwrap_or(0).max(6);
    let repeated = section.series.iter().flat_map(|s| &s.points).any(|p| p.runs.len() > 1);
    let room = style.width - first - 2;
    let spans = repeated && section.series.len() * 22 <= room;
    let column = if spans { 22.min(room / section.series.len().max(1)) } else { 10 };
    for some in section.series.chunks((room / column).max(1)) {
        let names: String = some.iter().map(|s| format!("{:>column$}", s.baseline)).collect();
        line(out, &format!("  {:<first$}{names}", section.parameter));
        for (value, label) in values {
            let cells: String = some
                .iter()
                .map(|s| format!("{:>column$}", cell(point_at(s, *value), scale, spans)))
                .collect();
            line(out, &format!("  {label:>first$}{cells}"));
        }
    }
    let note = if spans { ", with the smallest and largest mean of the repeats" } else { "" };
    wrap(
        &format!("Mean response time in {unit}, without the start-up that was found{note}."),
        "  ",
        style,
        out,
        |t| paint(t, "2", style),
    );
}

fn cell(point: Option<&CurvePoint>, scale: f64, span: bool) -> String {
    let Some(point) = point else { return "-".into() };
    let mean = in_unit(point.mean_ns, scale);
    match (point.min_ns, point.max_ns) {
        (Some(min), Some(max)) if span && point.runs.len() > 1 => {
            format!("{mean} ({}..{})", three(min / scale), three(max / scale))
        }
        _ => mean,
    }
}
