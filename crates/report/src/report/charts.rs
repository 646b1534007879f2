//! The charts of the page: decided here, as those of figures and comparisons are, and painted by the page's script.
//!
//! Method: a section's curves with the levels and intervals of the profile, what the profile reads off them as
//! notes, and the same once more with the percentiles of the runs; the charts of paper 004 from what a job came to
//! (`figures/jobs.rs`); measured points with the model that was fitted to them. A chart of which there is nothing
//! to draw is left out.

use super::others::Others;
use crate::draw::picture::{Picture, picture};
use crate::draw::scale::{Across, number_axis, size_axis, time_axis};
use crate::draw::style::{ink_of, look_of};
use crate::draw::{At, Axis, Chart, ChartNote, Ink, Look, Point, Series, Shape};
use crate::figures::jobs;
use crate::view::{self, CurvePoint, MarkKind, Section, View};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use uflip_analysis::job_report::JobReport;
use uflip_analysis::model::focal::MergeSample;
use uflip_analysis::model::{CostCurve, MergeFit};
use uflip_measure::Baseline;
use uflip_store::contents::StoreContents;

/// All charts that are the same however the page is used.
#[derive(Default, Serialize)]
pub(crate) struct Charts {
    /// One for each section of the view; null where it has a single value.
    sections: Vec<Option<Drawn>>,
    /// Of what a job came to, by the figure's name.
    job: BTreeMap<String, Picture>,
    /// Of each amount of the search for the logical block.
    logical_block: Vec<Option<Picture>>,
    /// Of the cost models, by name.
    models: BTreeMap<&'static str, Picture>,
}

/// A section's chart without and with percentiles.
#[derive(Serialize)]
struct Drawn {
    plain: Picture,
    percentiles: Option<Picture>,
}

/// p50 and p99 of the running phase of each run.
type Percentiles = HashMap<u32, [f64; 2]>;

/// How much of each chart there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Room {
    /// For wide screens.
    Wide,
    /// For narrow ones too.
    Narrow,
    /// And with percentiles.
    Percentiles,
}

impl Room {
    fn picture(self, chart: &Chart) -> Picture {
        picture(chart, self >= Room::Narrow)
    }
}

/// The charts of a view and of what else is there.
pub(crate) fn charts(contents: &StoreContents, view: &View, others: &Others, room: Room) -> Charts {
    let of_run = |row: &uflip_store::contents::RunRow| {
        let stats = &row.stats.running;
        Some((row.spec.id, [stats.p50_ns? as f64, stats.p99_ns? as f64]))
    };
    let runs: Percentiles = contents.runs.iter().filter_map(of_run).collect();
    let sections = view.sections.iter().map(|section| drawn(section, &runs, room)).collect();
    let job = others.job_report().map(|job| of_job(&job, &others.merge_samples(), room)).unwrap_or_default();
    let amounts = others.logical_block["amounts"].as_array().into_iter().flatten();
    let logical_block =
        amounts.map(|amount| amount_chart(amount).map(|chart| room.picture(&chart))).collect();
    Charts { sections, job, logical_block, models: models(others, room) }
}

fn drawn(section: &Section, runs: &Percentiles, room: Room) -> Option<Drawn> {
    if section.values().len() < 2 {
        return None;
    }
    let plain = room.picture(&section_chart(section, runs, false)?);
    let with = (room == Room::Percentiles).then(|| section_chart(section, runs, true)).flatten();
    Some(Drawn { plain, percentiles: with.map(|chart| room.picture(&chart)) })
}

/// Mean p50 and p99 of a point's runs.
fn percentiles_of(point: &CurvePoint, runs: &Percentiles) -> Option<[f64; 2]> {
    let found: Vec<&[f64; 2]> = point.runs.iter().filter_map(|run| runs.get(run)).collect();
    let mean = |at: usize| found.iter().map(|p| p[at]).sum::<f64>() / found.len() as f64;
    (!found.is_empty()).then(|| [mean(0), mean(1)])
}

/// The whisker of a point: its interval, or its repeats where they differ.
fn span_of(point: &CurvePoint) -> Option<[f64; 2]> {
    let repeats = point.min_ns.zip(point.max_ns).filter(|(low, high)| *high > low * 1.001);
    point.ci95_ns.or(repeats.map(|(low, high)| [low, high]))
}

/// A curve whose first point is the `first` of the section's.
fn curve(series: &view::BaselineSeries, at: usize, first: u32, across: &Across) -> Series {
    let point = |(number, p): (u32, &CurvePoint)| {
        let y = p.mean_ns.filter(|ns| *ns > 0.0)?;
        Some(Point { span: span_of(p), tip: Some(number), ..Point::plain(across.at(p.value as f64), y) })
    };
    let points = (first..).zip(&series.points).filter_map(point).collect();
    Series { label: series.baseline.to_string(), look: look_of(&series.baseline, at), points }
}

/// A curve's p50, dashed, and p99, dotted.
fn tails(series: &view::BaselineSeries, look: Look, across: &Across, runs: &Percentiles) -> [Series; 2] {
    [(0, [3.4, 1.7]), (1, [1.1, 1.7])].map(|(which, dash)| {
        let point = |p: &CurvePoint| {
            let ns = percentiles_of(p, runs)?[which];
            (ns > 0.0 && p.mean_ns.is_some()).then(|| Point::plain(across.at(p.value as f64), ns))
        };
        let points = series.points.iter().filter_map(point).collect();
        Series { label: String::new(), look: Look::line(look.ink, dash, 0.6), points }
    })
}

/// A section's marks of the profile as notes of its chart.
fn notes(section: &Section, across: &Across) -> Vec<ChartNote> {
    let note = |mark: &view::ChartMark| {
        let at = match mark.kind {
            MarkKind::UpTo => At::UpTo(across.at(mark.at)),
            MarkKind::Value => At::Across(across.at(mark.at)),
            MarkKind::Level => At::Level(mark.at),
            MarkKind::Point => {
                let series = section.series.iter().find(|s| s.baseline == mark.baseline)?;
                let point = series.points.iter().find(|p| p.value as f64 == mark.at)?;
                At::Point([across.at(mark.at), point.mean_ns.filter(|ns| *ns > 0.0)?])
            }
        };
        // Four rings on a chart of sizes need no words.
        let label = if mark.label == "90 %" { String::new() } else { mark.label.clone() };
        Some(ChartNote { at, ink: ink_of(&mark.baseline), label })
    };
    section.marks.iter().filter_map(note).collect()
}

fn section_chart(section: &Section, runs: &Percentiles, with_percentiles: bool) -> Option<Chart> {
    let across = Across::new(&section.micro_benchmark, &section.parameter, &section.values());
    let notes = notes(section, &across);
    let (mut series, mut first): (Vec<Series>, u32) = (Vec::new(), 0);
    for (at, own) in section.series.iter().enumerate() {
        let curve = curve(own, at, first, &across);
        first += own.points.len() as u32;
        if with_percentiles {
            series.extend(tails(own, curve.look, &across, runs));
        }
        series.push(curve);
    }
    let points = series.iter().flat_map(|s| &s.points);
    let mut all: Vec<f64> =
        points.flat_map(|p| [p.y].into_iter().chain(p.span.into_iter().flatten())).collect();
    if all.is_empty() {
        return None;
    }
    all.extend(notes.iter().filter_map(|note| if let At::Level(ns) = note.at { Some(ns) } else { None }));
    let title = format!(
        "{}. {} across, mean response time up; both numbers are in the table below.",
        section.title, section.parameter
    );
    let y = time_axis("response time", all.into_iter());
    Some(Chart { title, x: across.axis, y, shades: Vec::new(), notes, series })
}

/// The figures of paper 004 that the job has runs for.
fn of_job(job: &JobReport, samples: &[MergeSample], room: Room) -> BTreeMap<String, Picture> {
    let mut made: BTreeMap<String, Picture> =
        jobs::charts(job).into_iter().map(|(name, chart)| (name, room.picture(&chart))).collect();
    made.extend(write_cost(samples).map(|chart| ("merge".to_string(), room.picture(&chart))));
    made
}

fn marked(label: &str, look: Look, points: Vec<Point>) -> Series {
    Series { label: label.into(), look, points }
}

/// What was measured of a baseline.
fn measured(baseline: Baseline, points: Vec<Point>) -> Series {
    marked(baseline.name(), look_of(&baseline.into(), 0), points)
}

fn fitted(points: Vec<Point>) -> Series {
    marked("model", Look::line(Ink::M2, [3.0, 1.8], 0.9), points)
}

/// A chart of curves without notes; None where they have no points.
fn plain_chart(title: &str, series: Vec<Series>, axes: fn(&[Point]) -> [Axis; 2]) -> Option<Chart> {
    let series: Vec<Series> = series.into_iter().filter(|s| !s.points.is_empty()).collect();
    let all: Vec<Point> = series.iter().flat_map(|s| s.points.clone()).collect();
    let [x, y] = axes(&all);
    let title = title.to_string();
    (!all.is_empty()).then(|| Chart { title, x, y, shades: Vec::new(), notes: Vec::new(), series })
}

/// What a visit to a logical block costs over the sectors written there: predicted, measured at random, in order.
fn write_cost(samples: &[MergeSample]) -> Option<Chart> {
    let of = |ns: fn(&MergeSample) -> Option<f64>, in_order: bool| -> Vec<Point> {
        let point = |s: &MergeSample| {
            let sectors = s.sample.sectors_per_sync * s.sample.focal_factor;
            let ns = ns(s)? * sectors;
            (sectors > 0.0 && ns > 0.0).then(|| Point::plain(sectors, ns))
        };
        let mut points: Vec<Point> =
            samples.iter().filter(|s| s.in_order == in_order).filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    };
    let measured = |s: &MergeSample| Some(s.sample.sector_ns);
    let series = vec![
        fitted(of(|s| s.predicted_sector_ns, false)),
        marked("at random", Look::marked(Ink::Rw, Shape::Triangle, false), of(measured, false)),
        marked("in order, not fitted", Look::marked(Ink::Sw, Shape::Circle, false), of(measured, true)),
    ];
    plain_chart("write cost model", series, |all| {
        [
            number_axis("f R, sectors", all.iter().map(|p| p.x)),
            time_axis("time of a visit", all.iter().map(|p| p.y)),
        ]
    })
}

fn by_size(all: &[Point]) -> [Axis; 2] {
    [size_axis("IOSize", all.iter().map(|p| p.x)), time_axis("response time", all.iter().map(|p| p.y))]
}

/// A fitted line, up to the logical block, with what was measured.
fn fit_chart(
    title: &str,
    fit: &MergeFit,
    curve: &CostCurve,
    baseline: Baseline,
    limit: Option<u64>,
) -> Option<Chart> {
    let inside = curve.keys().filter(|size| limit.is_none_or(|limit| **size <= limit));
    let model = |size: &u64| Some(Point::plain(*size as f64, fit.takes_ns(1.0, *size as f64)?));
    let points = curve.iter().map(|(size, ns)| Point::plain(*size as f64, *ns)).collect();
    let series = vec![fitted(inside.filter_map(model).collect()), measured(baseline, points)];
    plain_chart(title, series, by_size)
}

fn models(others: &Others, room: Room) -> BTreeMap<&'static str, Picture> {
    let Some(made) = &others.models else { return BTreeMap::new() };
    let (models, curves) = (&made.models, &made.curves);
    let limit = models.logical_block_bytes;
    let charts = [
        (
            "read_line",
            models.read_line.as_ref().map(|fit| ("Random reads as a line", fit, &curves.rr, Baseline::Rr)),
        ),
        (
            "merge",
            models.merge.as_ref().map(|fit| ("Random writes: merge model", fit, &curves.rw, Baseline::Rw)),
        ),
    ];
    let drawn = charts.into_iter().filter_map(|(name, found)| {
        let (title, fit, curve, baseline) = found?;
        Some((name, room.picture(&fit_chart(title, fit, curve, baseline, limit)?)))
    });
    drawn.collect()
}

/// Sequential and random writes by size, of one amount of the search for the logical block.
fn amount_chart(amount: &Value) -> Option<Chart> {
    let of = |key: &str| -> Vec<Point> {
        let passes = amount["passes"].as_array().into_iter().flatten();
        passes.filter_map(|p| Some(Point::plain(p["block_bytes"].as_f64()?, p[key].as_f64()?))).collect()
    };
    let curves = [(Baseline::Sw, "sequential_mb_per_s"), (Baseline::Rw, "random_mb_per_s")];
    let series = curves.map(|(baseline, key)| measured(baseline, of(key))).into();
    plain_chart("speed in order and at random", series, |all| {
        [size_axis("IOSize", all.iter().map(|p| p.x)), number_axis("MB/s", all.iter().map(|p| p.y))]
    })
}
