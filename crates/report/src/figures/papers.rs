//! The papers' figures 6 to 8 and Table 3.
//!
//! Figure 6: all baselines over the IOSize, linear as in the paper; figure 7:
//! the same without random writes; figure 8: random writes over the TargetSize,
//! relative to sequential writes, a curve for each device; Table 3 a row for
//! each. The numbers are the view's and the profile's.
//!
//! Source: paper 000, section 5.2.

use super::micro::series_of;
use super::{Figure, csv_field, csv_number};
use crate::draw::scale::{from_zero, size_axis};
use crate::draw::style::in_turn;
use crate::draw::{Chart, Point, Series};
use crate::view::{self, BaselineSeries, Section};
use std::fmt::Write;
use uflip_analysis::compare::Subject;
use uflip_analysis::profile::table3::{Table3Row, factor_text, table3_row};
use uflip_device::identity::printable;
use uflip_measure::{Baseline, MicroBenchmark};
use uflip_store::manifest::TargetFacts;

fn section(subject: &Subject, micro: MicroBenchmark) -> Option<Section> {
    view::build(&subject.contents).sections.into_iter().find(|s| s.micro() == Some(micro))
}

/// Figures 6 and 7.
pub(super) fn granularity(subject: &Subject, made: &mut Vec<Figure>, left_out: &mut Vec<String>) {
    let section = section(subject, MicroBenchmark::Granularity).filter(|s| !s.series.is_empty());
    for (name, without) in [("figure6", None), ("figure7", Some(Baseline::Rw))] {
        match &section {
            Some(section) => made.push(by_size(subject, section, name, without)),
            None => left_out.push(format!("{name}: granularity was not measured")),
        }
    }
}

fn by_size(subject: &Subject, section: &Section, name: &str, without: Option<Baseline>) -> Figure {
    let left_out = |s: &BaselineSeries| without.is_some() && s.baseline.baseline() == without;
    let shown = || section.series.iter().enumerate().filter(|(_, s)| !left_out(s));
    let points = || shown().flat_map(|(_, s)| &s.points).filter(|p| p.mean_ns.is_some());
    let series = shown().map(|(at, s)| series_of(at, s, |value| value as f64));
    let mut csv = "baseline,io_size_bytes,mean_ns,min_ns,max_ns\n".to_string();
    for (_, s) in shown() {
        for p in &s.points {
            let (mean, low, high) = (csv_number(p.mean_ns), csv_number(p.min_ns), csv_number(p.max_ns));
            let _ = writeln!(csv, "{},{},{mean},{low},{high}", csv_field(&s.baseline.to_string()), p.value);
        }
    }
    let which = without.map_or_else(String::new, |baseline| format!(", without {baseline}"));
    Figure {
        name: name.into(),
        caption: format!("Granularity{which}: mean response time by IOSize. {}", subject.profile.target),
        chart: Chart {
            title: format!("Granularity{which}"),
            x: from_zero("IOSize (KiB)", points().map(|p| p.value as f64), 1024.0),
            y: from_zero("response time (ms)", points().filter_map(|p| p.max_ns), 1e6),
            shades: Vec::new(),
            notes: Vec::new(),
            series: series.collect(),
        },
        csv,
    }
}

/// The device's name for a legend: that of a simulated device's description, the target
/// as typed where the folder keeps no description, else what the subject is called.
pub(super) fn device(subject: &Subject) -> String {
    let target = &subject.contents.manifest.target;
    let described = match &target.facts {
        TargetFacts::Simulated { description, .. } => description["name"].as_str().or(target.name.as_deref()),
        _ => None,
    };
    let name = described.unwrap_or(subject.name.as_str());
    printable(name).chars().take(40).collect()
}

/// Figure 8, of all subjects that were measured for it.
///
/// # Errors
/// Why there is none.
pub(super) fn locality(subjects: &[Subject]) -> Result<Figure, String> {
    let mut series = Vec::new();
    let mut csv = "device,target_size_bytes,rw_mean_ns,sw_mean_ns,relative_to_sw\n".to_string();
    for (at, subject) in subjects.iter().enumerate() {
        let curve = section(subject, MicroBenchmark::Locality)
            .and_then(|s| s.series.into_iter().find(|s| s.baseline.baseline() == Some(Baseline::Rw)));
        let sw = subject.levels.baselines.iter().find(|b| b.baseline == Baseline::Sw).map(|b| b.mean.ns);
        let (Some(curve), Some(sw)) = (curve, sw.filter(|sw| *sw > 0.0)) else { continue };
        let mut points = Vec::new();
        for p in &curve.points {
            let Some(mean) = p.mean_ns.filter(|_| p.value > 0) else { continue };
            points.push(Point::plain(p.value as f64, mean / sw));
            let _ = writeln!(csv, "{},{},{mean},{sw},{}", csv_field(&device(subject)), p.value, mean / sw);
        }
        series.push(Series { label: device(subject), look: in_turn(at), points });
    }
    let all: Vec<Point> = series.iter().flat_map(|s| s.points.clone()).collect();
    if all.is_empty() {
        return Err("figure8: locality of RW, or SW, was not measured".into());
    }
    Ok(Figure {
        name: "figure8".into(),
        caption: "Locality: response time of random writes relative to sequential writes, by TargetSize."
            .into(),
        chart: Chart {
            title: "Locality".into(),
            x: size_axis("TargetSize", all.iter().map(|p| p.x)),
            y: from_zero("RW relative to SW", all.iter().map(|p| p.y), 1.0),
            shades: Vec::new(),
            notes: Vec::new(),
            series,
        },
        csv,
    })
}

/// The columns of Table 3: heading, and its text of a row.
type Column = (&'static str, fn(&Table3Row) -> String);

fn ms(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| {
        let decimals = if v >= 9.95 {
            0
        } else if v >= 0.95 {
            1
        } else {
            2
        };
        format!("{v:.decimals$}")
    })
}

/// `8 (=)`: a figure and the factor there.
fn with_factor(figure: Option<f64>, factor: Option<f64>) -> String {
    let Some(figure) = figure else { return String::new() };
    factor.map_or_else(|| format!("{figure}"), |f| format!("{figure} ({})", factor_text(f)))
}

fn factor(value: Option<f64>) -> String {
    value.map_or_else(String::new, factor_text)
}

const COLUMNS: [Column; 10] = [
    ("SR (ms)", |r| ms(r.sr_ms)),
    ("RR (ms)", |r| ms(r.rr_ms)),
    ("SW (ms)", |r| ms(r.sw_ms)),
    ("RW (ms)", |r| ms(r.rw_ms)),
    ("Pause RW (ms)", |r| ms(r.pause_rw_ms)),
    ("Locality RW (MB)", |r| with_factor(r.locality_mb, r.locality_factor)),
    ("Partitioning SW", |r| with_factor(r.partitions.map(|n| n as f64), r.partitions_factor)),
    ("Reverse", |r| factor(r.reverse_factor)),
    ("In-place", |r| factor(r.in_place_factor)),
    ("Large Incr", |r| factor(r.large_incr_factor)),
];

/// Table 3 of all subjects, as (ending, text): CSV with the exact figures,
/// Markdown and LaTeX as the paper prints it.
pub(super) fn table3(subjects: &[Subject]) -> [(&'static str, String); 3] {
    let rows: Vec<(String, Table3Row)> =
        subjects.iter().map(|s| (device(s), table3_row(&s.profile))).collect();
    [("csv", table3_csv(&rows)), ("md", table3_markdown(&rows)), ("tex", table3_latex(&rows))]
}

fn table3_csv(rows: &[(String, Table3Row)]) -> String {
    let mut out = "device,sr_ms,rr_ms,sw_ms,rw_ms,pause_rw_ms,locality_mb,locality_factor,partitions,\
                   partitions_factor,reverse_factor,in_place_factor,large_incr_factor\n"
        .to_string();
    for (device, r) in rows {
        let partitions = r.partitions.map(|n| n as f64);
        let cells = [
            r.sr_ms,
            r.rr_ms,
            r.sw_ms,
            r.rw_ms,
            r.pause_rw_ms,
            r.locality_mb,
            r.locality_factor,
            partitions,
            r.partitions_factor,
            r.reverse_factor,
            r.in_place_factor,
            r.large_incr_factor,
        ];
        let cells: Vec<String> = cells.into_iter().map(csv_number).collect();
        let _ = writeln!(out, "{},{}", csv_field(device), cells.join(","));
    }
    out
}

fn table3_markdown(rows: &[(String, Table3Row)]) -> String {
    let headings: Vec<&str> = COLUMNS.iter().map(|(heading, _)| *heading).collect();
    let mut out = format!("| Device | {} |\n|---|{}\n", headings.join(" | "), "---:|".repeat(COLUMNS.len()));
    for (device, row) in rows {
        let cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(row)).collect();
        let safe = device.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('\n', " ");
        let _ = writeln!(out, "| {safe} | {} |", cells.join(" | "));
    }
    out
}

/// A text of the data for LaTeX.
fn latex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn table3_latex(rows: &[(String, Table3Row)]) -> String {
    let times = |text: String| {
        let signed = text.replace('x', "$\\times$");
        signed.replace('=', "$=$")
    };
    let headings: Vec<String> = COLUMNS.iter().map(|(heading, _)| latex(heading)).collect();
    let mut out = format!(
        "\\begin{{tabular}}{{l{}}}\n\\hline\nDevice & {} \\\\\n\\hline\n",
        "r".repeat(COLUMNS.len()),
        headings.join(" & ")
    );
    for (device, row) in rows {
        let cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| times(cell(row))).collect();
        let _ = writeln!(out, "{} & {} \\\\", latex(device), cells.join(" & "));
    }
    out + "\\hline\n\\end{tabular}\n"
}
