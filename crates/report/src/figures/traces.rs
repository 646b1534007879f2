//! Response times IO by IO: the papers' figures 3, 4 and 5.
//!
//! Figure 3 is the first repeat of RW with both running averages, from the first
//! IO on and from the end of the start-up phase on; figure 4 the first repeat of
//! SW; figure 5 the pause test: reads, writes, reads. Figures 3 and 4 show as
//! many IOs as tell the phases apart (four start-ups or periods, at least 400),
//! their CSV has all of the run, or the first 262,144 IOs of a run of more than
//! 1,048,576, which is said. The numbers are those of the records.
//!
//! Source: paper 000, section 5.1, figures 3 to 5.

use super::Figure;
use crate::draw::scale::{io_axis, time_axis};
use crate::draw::style::look_of;
use crate::draw::{Chart, Ink, Look, Point, Series, Shape};
use std::fmt::Write;
use uflip_analysis::compare::Subject;
use uflip_measure::auto::CalibrationRole;
use uflip_measure::detect::long::{EXACT_IOS, WINDOW_IOS};
use uflip_measure::pattern::{Baseline, PatternMode};
use uflip_measure::run::Belongs;
use uflip_store::contents::RunRow;
use uflip_store::error::StoreError;
use uflip_store::records::{ROW_GROUP_ROWS, read_chosen_row_groups};

/// IOs shown, at least.
const FEW: usize = 400;
/// IOs shown, at most: more are a solid band at a column's width.
const MANY: usize = 4000;

pub(super) fn figures(
    subject: &Subject,
    made: &mut Vec<Figure>,
    left_out: &mut Vec<String>,
) -> Result<(), StoreError> {
    for (name, baseline, averages) in [("figure3", Baseline::Rw, true), ("figure4", Baseline::Sw, false)] {
        match baseline_run(subject, baseline) {
            Some(row) => {
                made.push(trace(subject, row, baseline, name, averages)?);
                left_out.extend(not_whole(name, row));
            }
            None => left_out.push(format!("{name}: no run of {} of its own", baseline.name())),
        }
    }
    match pause_test(subject)? {
        Some(figure) => made.push(figure),
        None => left_out.push("figure5: no pause test among the runs".into()),
    }
    Ok(())
}

/// The first repeat of a baseline's own run.
fn baseline_run(subject: &Subject, baseline: Baseline) -> Option<&RunRow> {
    let own = |r: &&RunRow| r.spec.baseline() == Some(baseline);
    subject.contents.runs.iter().filter(own).min_by_key(|r| (r.spec.belongs.repeat(), r.spec.id))
}

/// Submission and response of a run's IOs in ns, in the order of submission: all
/// of them, or the first [`WINDOW_IOS`] of a long run.
fn ios(subject: &Subject, row: &RunRow) -> Result<Vec<(u64, u64)>, StoreError> {
    let most = if row.outcome.end.ios > EXACT_IOS as u64 { WINDOW_IOS } else { usize::MAX };
    let mut ios: Vec<(u64, u64)> = Vec::new();
    let groups = most.div_ceil(ROW_GROUP_ROWS);
    let path = subject.contents.dir.join(&row.records.file);
    read_chosen_row_groups(
        &path,
        |group| group < groups,
        |_, _, records| {
            ios.extend(records.iter().map(|r| (r.due().0, r.response().0)));
            Ok(())
        },
    )?;
    ios.sort_by_key(|(submit, _)| *submit);
    ios.truncate(most);
    Ok(ios)
}

/// What is said of a run that is not in its CSV as a whole.
fn not_whole(name: &str, row: &RunRow) -> Option<String> {
    let n = row.outcome.end.ios;
    (n > EXACT_IOS as u64).then(|| {
        format!(
            "{name}.csv after the first {WINDOW_IOS} of {n} IOs of run {}; uflip export writes all records",
            row.spec.id
        )
    })
}

/// Running averages of `responses` from `from` on; None before.
fn running(responses: &[u64], from: usize) -> Vec<Option<f64>> {
    let mut sum = 0u128;
    let average = |(i, ns): (usize, &u64)| {
        if i < from {
            return None;
        }
        sum += u128::from(*ns);
        Some(sum as f64 / (i - from + 1) as f64)
    };
    responses.iter().enumerate().map(average).collect()
}

fn line(label: &str, ink: Ink, dash: [f64; 2], averages: &[Option<f64>]) -> Series {
    let point = |(i, y): (usize, &Option<f64>)| y.map(|y| Point::plain(i as f64, y));
    Series {
        label: label.into(),
        look: Look::line(ink, dash, 0.9),
        points: averages.iter().enumerate().filter_map(point).collect(),
    }
}

fn dots(label: &str, look: Look, first: usize, responses: &[u64]) -> Series {
    let few = responses.len() <= FEW;
    let point = |(i, ns): (usize, &u64)| Point::plain((first + i) as f64, *ns as f64);
    let look = Look { shape: Some(Shape::Dot), line: None, size: if few { 0.9 } else { 0.6 }, ..look };
    Series { label: label.into(), look, points: responses.iter().enumerate().map(point).collect() }
}

fn trace(
    subject: &Subject,
    row: &RunRow,
    baseline: Baseline,
    name: &str,
    averages: bool,
) -> Result<Figure, StoreError> {
    let ios = ios(subject, row)?;
    let responses: Vec<u64> = ios.iter().map(|(_, response)| *response).collect();
    let profile = &subject.profile;
    let found = profile.start_up_ios.of(baseline);
    let start_up = found.unwrap_or(row.spec.io_ignore);
    let start_up = usize::try_from(start_up).unwrap_or(usize::MAX).min(responses.len());
    let period = profile.period_ios.of(baseline).unwrap_or(0.0) as usize;
    let shown = (4 * start_up.max(period)).clamp(FEW, MANY).min(responses.len());
    let (all, rest) = (running(&responses, 0), running(&responses, start_up));
    let mut series = vec![dots(baseline.name(), look_of(&baseline.into(), 0), 0, &responses[..shown])];
    if averages {
        let dash = if start_up > 0 { [3.0, 2.0] } else { [0.0, 0.0] };
        series.push(line("average from the first IO", Ink::Text, dash, &all[..shown]));
        if start_up > 0 {
            series.push(line("without start-up", Ink::Text, [0.0, 0.0], &rest[..shown]));
        }
    }
    let shades =
        if start_up > 0 { vec![([-0.5, start_up as f64 - 0.5], "start-up".into())] } else { Vec::new() };
    let phase = match found {
        Some(ios) => format!("start-up phase of {ios} IOs"),
        None => "no start-up phase".into(),
    };
    let period = profile.period_ios.of(baseline).map_or_else(String::new, |p| format!(", period of {p} IOs"));
    Ok(Figure {
        name: name.into(),
        caption: format!(
            "Start-up and running phase, {}, run {}: {phase}{period}; IOs 0 to {} of {}. {}",
            baseline.name(),
            row.spec.id,
            shown.saturating_sub(1),
            row.outcome.end.ios.max(responses.len() as u64),
            profile.target
        ),
        chart: Chart {
            title: format!("{} IO by IO", baseline.name()),
            x: io_axis(shown),
            y: time_axis("response time", responses[..shown].iter().map(|ns| *ns as f64)),
            shades,
            notes: Vec::new(),
            series,
        },
        csv: trace_csv(&ios, &all, &rest),
    })
}

fn trace_csv(ios: &[(u64, u64)], all: &[Option<f64>], rest: &[Option<f64>]) -> String {
    let mut out = "io,submit_ns,response_ns,running_mean_ns,running_mean_without_start_up_ns\n".to_string();
    for (i, ((submit, response), (all, rest))) in ios.iter().zip(all.iter().zip(rest)).enumerate() {
        let (all, rest) = (super::csv_number(*all), super::csv_number(*rest));
        let _ = writeln!(out, "{i},{submit},{response},{all},{rest}");
    }
    out
}

/// The reads before, the first batch of random writes and the reads after it.
fn pause_runs(subject: &Subject) -> Option<Vec<&RunRow>> {
    let step = |r: &RunRow| match r.spec.belongs {
        Belongs::Calibration(step) if step.role == CalibrationRole::PauseTest => Some(step.number),
        _ => None,
    };
    let mut runs: Vec<&RunRow> = subject.contents.runs.iter().filter(|r| step(r).is_some()).collect();
    runs.sort_by_key(|r| r.spec.id);
    let value = |r: &RunRow| step(r).unwrap_or(0);
    let random_writes =
        |r: &RunRow| r.spec.work.basics().iter().all(|b| b.mode == PatternMode::Write && b.is_random());
    let batch = runs.iter().position(|r| value(r) == 1 && random_writes(r))?;
    // The reads are rested before the batch: the last of them count.
    let before = batch.checked_sub(1).filter(|at| value(runs[*at]) == 0)?;
    let after = runs[batch + 1..].iter().take_while(|r| value(r) >= 2).count();
    (after > 0).then(|| runs[before..=batch + after].to_vec())
}

fn pause_test(subject: &Subject) -> Result<Option<Figure>, StoreError> {
    let Some(runs) = pause_runs(subject) else { return Ok(None) };
    let mut csv = "io,phase,run,submit_ns,response_ns\n".to_string();
    let (mut series, mut shades, mut first) = (Vec::<Series>::new(), Vec::new(), 0usize);
    let mut times = Vec::new();
    for (at, row) in runs.iter().enumerate() {
        let (baseline, when) =
            [(Baseline::Sr, " before"), (Baseline::Rw, ""), (Baseline::Sr, " after")][at.min(2)];
        let phase = format!("{baseline}{when}");
        let ios = ios(subject, row)?;
        for (i, (submit, response)) in ios.iter().enumerate() {
            let _ = writeln!(csv, "{},{phase},{},{submit},{response}", first + i, row.spec.id);
        }
        let responses: Vec<u64> = ios.iter().map(|(_, response)| *response).collect();
        let curve = row.spec.curve_name();
        let name = curve.to_string();
        let label = if series.iter().any(|s| s.label == name) { "" } else { &name };
        series.push(dots(label, look_of(&curve, 0), first, &responses));
        if at == 1 {
            shades.push(([first as f64 - 0.5, (first + ios.len()) as f64 - 0.5], phase));
        }
        first += ios.len();
        times.extend(responses.iter().map(|ns| *ns as f64));
    }
    let ids: Vec<String> = runs.iter().map(|r| r.spec.id.to_string()).collect();
    Ok(Some(Figure {
        name: "figure5".into(),
        caption: format!(
            "Pause determination: sequential reads, random writes, sequential reads; runs {}. {}",
            ids.join(", "),
            subject.profile.target
        ),
        chart: Chart {
            title: "Pause determination".into(),
            x: io_axis(first),
            y: time_axis("response time", times.into_iter()),
            shades,
            notes: Vec::new(),
            series,
        },
        csv,
    }))
}
