//! A chart for each micro-benchmark: the varying parameter across, the mean
//! response time up, a curve for each baseline, whiskers from the smallest to
//! the largest repeat.
//!
//! The numbers are the view's, to the last bit; the CSV has them in nanoseconds.

use super::{Figure, csv_field, csv_number};
use crate::draw::scale::{Across, time_axis};
use crate::draw::style::look_of;
use crate::draw::{Chart, Point, Series};
use crate::view::{self, Section};
use std::fmt::Write;
use uflip_analysis::compare::Subject;

pub(super) fn figures(subject: &Subject) -> Vec<Figure> {
    let view = view::build(&subject.contents);
    view.sections.iter().filter_map(|section| figure(section, &view.target)).collect()
}

/// The curve of `section.series[at]`, with a whisker over the repeats; `x` places values
/// on the axis.
pub(super) fn series_of(at: usize, curve: &view::BaselineSeries, x: impl Fn(i64) -> f64) -> Series {
    let point = |p: &view::CurvePoint| {
        let span = p.min_ns.zip(p.max_ns).map(|(low, high)| [low, high]);
        p.mean_ns.map(|y| Point { span, ..Point::plain(x(p.value), y) })
    };
    let points = curve.points.iter().filter_map(point).collect();
    Series { label: curve.baseline.to_string(), look: look_of(&curve.baseline, at), points }
}

fn figure(section: &Section, target: &str) -> Option<Figure> {
    let all = section.series.iter().flat_map(|s| &s.points).flat_map(|p| [p.mean_ns, p.min_ns, p.max_ns]);
    let measured: Vec<f64> = all.flatten().collect();
    if measured.is_empty() {
        return None;
    }
    let micro = &section.micro_benchmark;
    let across = Across::new(micro, &section.parameter, &section.values());
    let curves = section.series.iter().enumerate();
    let series = curves.map(|(at, s)| series_of(at, s, |value| across.at(value as f64))).collect();
    let caption = format!(
        "{} (mean without the start-up that was found, whiskers from the smallest to the largest repeat). {target}",
        section.title
    );
    Some(Figure {
        name: plain_file(&micro.to_string()),
        chart: Chart {
            title: section.title.clone(),
            x: across.axis,
            y: time_axis("response time", measured.iter().copied()),
            shades: Vec::new(),
            notes: Vec::new(),
            series,
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
                csv_field(&series.baseline.to_string()),
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
