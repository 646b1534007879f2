//! A chart for each micro-benchmark: the varying parameter across, the mean
//! response time up, a curve for each baseline, whiskers from the smallest to
//! the largest repeat.
//!
//! The numbers are the view's, to the last bit; the CSV has them in nanoseconds.

use super::layout::{linear_ticks, log_ticks, thinned};
use super::{Axis, Chart, Figure, Ink, Look, Point, Scale, Series, Shape, csv_field, csv_number};
use crate::view::{self, Section};
use std::fmt::Write;
use uflip_analysis::compare::Subject;

/// Ticks of the axis up, at most.
const TICKS: usize = 9;

/// What a baseline looks like: reads blue circles, writes orange triangles,
/// sequential hollow with dashes, random filled.
pub(crate) fn look_of(baseline: &str, at: usize) -> Look {
    let look = |ink, shape, hollow| Look {
        ink,
        shape: Some(shape),
        hollow,
        line: Some(if hollow { [3.0, 1.5] } else { [0.0, 0.0] }),
        size: 2.0,
    };
    match baseline {
        "SR" => look(Ink::Sr, Shape::Circle, true),
        "RR" => look(Ink::Rr, Shape::Circle, false),
        "SW" => look(Ink::Sw, Shape::Triangle, true),
        "RW" => look(Ink::Rw, Shape::Triangle, false),
        _ => {
            let shapes = [Shape::Circle, Shape::Triangle, Shape::Square, Shape::Diamond];
            look(Ink::Other((at % 6) as u8), shapes[at % 4], at % 2 == 1)
        }
    }
}

/// A time as short as an axis needs it.
pub(super) fn tick(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];
    let (unit, scale) = units.into_iter().find(|(_, s)| ns >= *s * 0.9995).unwrap_or(("ns", 1.0));
    format!("{} {unit}", (ns / scale * 1e3).round() / 1e3)
}

/// A logarithmic axis of response times that holds `values` (above 0).
pub(crate) fn time_axis(values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = values.filter(|v| *v > 0.0).fold((f64::MAX, 0f64), |(a, b), v| (a.min(v), b.max(v)));
    let (low, high) = if high > 0.0 { (low, high) } else { (1e3, 1e6) };
    let all = log_ticks(low, high);
    let ticks = thinned(&all, TICKS).into_iter().map(|ns| (ns, tick(ns))).collect();
    Axis { label: "response time".into(), scale: Scale::Log, ends: [all[0], all[all.len() - 1]], ticks }
}

/// A linear axis from 0 that holds `values`, labelled in units of `scale`.
pub(super) fn from_zero(label: &str, values: impl Iterator<Item = f64>, scale: f64) -> Axis {
    let high = values.fold(0f64, f64::max) / scale;
    let ticks = linear_ticks(0.0, if high > 0.0 { high } else { 1.0 }, 6);
    let last = ticks[ticks.len() - 1];
    let text = |v: f64| format!("{}", (v * 1e6).round() / 1e6);
    Axis {
        label: label.into(),
        scale: Scale::Linear,
        ends: [0.0, last * scale],
        ticks: ticks.into_iter().map(|v| (v * scale, text(v))).collect(),
    }
}

/// Whether values stand side by side without a scale: steps forward and
/// backward, ratios, and where there is a 0 or a negative value.
pub(crate) fn categorical(micro_benchmark: &str, values: &[(i64, String)]) -> bool {
    matches!(micro_benchmark, "order" | "mix") || values.len() < 3 || values.iter().any(|(v, _)| *v <= 0)
}

/// The axis across for `values` with their labels, ascending.
pub(crate) fn value_axis(micro_benchmark: &str, parameter: &str, values: &[(i64, String)]) -> Axis {
    let short = |label: &str| label.replace(' ', "");
    if categorical(micro_benchmark, values) {
        let ticks = values.iter().enumerate().map(|(i, (_, label))| (i as f64, short(label))).collect();
        let ends = [-0.5, values.len() as f64 - 0.5];
        return Axis { label: parameter.into(), scale: Scale::Linear, ends, ticks };
    }
    let ticks: Vec<(f64, String)> = values.iter().map(|(v, label)| (*v as f64, short(label))).collect();
    // Room for half a mark at both ends.
    let (low, high) = (ticks[0].0, ticks[ticks.len() - 1].0);
    let room = (high / low).powf(0.03);
    Axis { label: parameter.into(), scale: Scale::Log, ends: [low / room, high * room], ticks }
}

/// Where a value stands on the axis of [`value_axis`].
pub(crate) fn place(micro_benchmark: &str, values: &[(i64, String)], value: i64) -> f64 {
    if categorical(micro_benchmark, values) {
        values.iter().position(|(v, _)| *v == value).unwrap_or(0) as f64
    } else {
        value as f64
    }
}

pub(super) fn figures(subject: &Subject) -> Vec<Figure> {
    let view = view::build(&subject.contents);
    view.sections.iter().filter_map(|section| figure(section, &view.target)).collect()
}

/// All values of a section in ascending order, with their labels.
fn values_of(section: &Section) -> Vec<(i64, String)> {
    let points = section.series.iter().flat_map(|s| &s.points);
    let mut values: Vec<(i64, String)> = points.map(|p| (p.value, p.label.clone())).collect();
    values.sort();
    values.dedup_by_key(|(value, _)| *value);
    values
}

/// The curve of `section.series[at]`, with a whisker over the repeats; `x` places values
/// on the axis.
pub(super) fn series_of(at: usize, curve: &view::Series, x: impl Fn(i64) -> f64) -> Series {
    let point = |p: &view::CurvePoint| {
        let span = p.min_ns.zip(p.max_ns).map(|(low, high)| [low, high]);
        p.mean_ns.map(|y| Point { x: x(p.value), y, span })
    };
    let points = curve.points.iter().filter_map(point).collect();
    Series { label: curve.baseline.clone(), look: look_of(&curve.baseline, at), points }
}

fn figure(section: &Section, target: &str) -> Option<Figure> {
    let values = values_of(section);
    let all = section.series.iter().flat_map(|s| &s.points).flat_map(|p| [p.mean_ns, p.min_ns, p.max_ns]);
    let measured: Vec<f64> = all.flatten().collect();
    if measured.is_empty() {
        return None;
    }
    let micro = &section.micro_benchmark;
    let curves = section.series.iter().enumerate();
    let series = curves.map(|(at, s)| series_of(at, s, |value| place(micro, &values, value)));
    let caption = format!(
        "{} (mean of the running phase, whiskers from the smallest to the largest repeat). {target}",
        section.title
    );
    Some(Figure {
        name: plain_file(micro),
        chart: Chart {
            title: section.title.clone(),
            x: value_axis(micro, &section.parameter, &values),
            y: time_axis(measured.iter().copied()),
            shades: Vec::new(),
            series: series.collect(),
        },
        caption,
        csv: csv(section),
    })
}

/// A micro-benchmark's name as a file's: names from damaged stores stay inside
/// the folder.
fn plain_file(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect()
}

fn csv(section: &Section) -> String {
    let mut out = "baseline,parameter,value,label,mean_ns,min_ns,max_ns,runs\n".to_string();
    for series in &section.series {
        for p in &series.points {
            let runs: Vec<String> = p.runs.iter().map(u32::to_string).collect();
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{}",
                csv_field(&series.baseline),
                csv_field(&section.parameter),
                p.value,
                csv_field(&p.label),
                csv_number(p.mean_ns),
                csv_number(p.min_ns),
                csv_number(p.max_ns),
                runs.join(" ")
            );
        }
    }
    out
}
