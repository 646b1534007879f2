//! The figures of paper 004 from the runs of a job: speed by block size (3.1,
//! and the upper graphs of C.1 and C.2), long series of writes (3.2), speed after
//! bursts (3.3, C.1, C.2), misalignment (3.4a), drift over age (3.4b), recovery
//! (C.1, C.2), its time line (C.3), writing everything after a burst (C.4), and
//! Table 3.1's row.
//!
//! The numbers are those of `job.json`. What a job has no lines for is left out.
//! Source: paper 004, sections 3.3.1 to 3.3.5 and appendix C.

use super::papers::device;
use super::{Figure, csv_field, csv_number};
use crate::draw::scale::{from_zero, number_axis, size_axis};
use crate::draw::style::{in_turn, look_of};
use crate::draw::{At, Axis, Chart, ChartNote, Ink, Look, Point, Series, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use uflip_analysis::compare::Subject;
use uflip_analysis::job_report::{JobReport, Recovery};
use uflip_device::Bytes;
use uflip_measure::pattern::Baseline;

/// Points that a curve needs.
const MIN_POINTS: usize = 2;

/// A figure to be: its axes across and up are made of its points.
struct Draft<'a> {
    /// Of its files: unique among a job's figures.
    name: String,
    /// The run, where it is the figure of a single one.
    run: Option<u32>,
    title: String,
    /// Columns of the CSV: series, across, up.
    columns: [&'a str; 3],
    series: Vec<Series>,
    /// A value up that the others are held against, with its word.
    level: Option<(f64, &'static str)>,
    x: fn(&[Point]) -> Axis,
    y: fn(&[Point]) -> Axis,
}

fn drafts(job: &JobReport) -> Vec<Draft<'_>> {
    let mut drafts = speeds(job);
    drafts.extend(series(job));
    drafts.extend(after_bursts(job));
    drafts.extend([misaligned(job)]);
    drafts.extend(drift(job));
    drafts.extend([time_line(job), rewrite(job)].into_iter().flatten());
    apart(&mut drafts);
    drafts
}

/// Gives each figure a name that is a file's and no other figure's, and each curve of a
/// figure a label of its own: what is equal gets a number, so that nothing is lost.
fn apart(drafts: &mut [Draft<'_>]) {
    let mut names = BTreeSet::new();
    for draft in drafts {
        draft.name = free(&plain_file(&draft.name), "-", &mut names);
        let mut labels = BTreeSet::new();
        for series in &mut draft.series {
            series.label = free(&series.label, " #", &mut labels);
        }
    }
}

/// `name`, or with the first number that is not `taken` yet.
fn free(name: &str, between: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (1..).map(|n| if n == 1 { name.to_string() } else { format!("{name}{between}{n}") });
    let found = numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(found.clone());
    found
}

/// A figure's name as a file's: what a job's line is called stays inside the folder.
fn plain_file(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

/// Figures and what is left out, as sentences.
pub(super) fn figures(subject: &Subject, job: &JobReport) -> (Vec<Figure>, Vec<String>) {
    let (mut made, mut left_out) = (Vec::new(), Vec::new());
    for draft in drafts(job) {
        let (name, columns) = (draft.name.clone(), draft.columns);
        left_out.extend(too_short(&draft));
        let Some(chart) = chart(draft) else { continue };
        let caption = format!("{}. {}", chart.title, subject.profile.target);
        made.push(Figure { name, caption, csv: csv(columns, &chart), chart });
    }
    (made, left_out)
}

/// What of a figure is not drawn, and why.
fn too_short(draft: &Draft<'_>) -> Vec<String> {
    let name = &draft.name;
    if draft.series.iter().all(|s| s.points.is_empty()) {
        return vec![format!("{name}: the job has no runs for it")];
    }
    let single = draft.series.iter().filter(|s| s.points.len() == 1);
    single.map(|s| format!("{name}: a single point is no curve: {}", s.label)).collect()
}

/// The charts that a job has runs for, by their figures' names; that of a single run's series is `series-RUN`.
pub(crate) fn charts(job: &JobReport) -> Vec<(String, Chart)> {
    let key = |draft: &Draft<'_>| draft.run.map_or_else(|| draft.name.clone(), |run| format!("series-{run}"));
    drafts(job).into_iter().filter_map(|draft| Some((key(&draft), chart(draft)?))).collect()
}

fn chart(mut draft: Draft<'_>) -> Option<Chart> {
    draft.series.retain(|s| s.points.len() >= MIN_POINTS);
    let mut all: Vec<Point> = draft.series.iter().flat_map(|s| s.points.clone()).collect();
    let first = all.first()?.x;
    all.extend(draft.level.iter().map(|(value, _)| Point::plain(first, *value)));
    let level =
        |(value, label): (f64, &str)| ChartNote { at: At::Level(value), ink: Ink::Soft, label: label.into() };
    Some(Chart {
        title: draft.title,
        x: (draft.x)(&all),
        y: (draft.y)(&all),
        shades: Vec::new(),
        notes: draft.level.map(level).into_iter().collect(),
        series: draft.series,
    })
}

fn csv([name, across, up]: [&str; 3], chart: &Chart) -> String {
    let mut csv = format!("{name},{across},{up},{up}_low,{up}_high\n");
    for s in &chart.series {
        for p in &s.points {
            let [low, high] = p.span.map_or([None, None], |span| span.map(Some));
            let (label, low, high) = (csv_field(&s.label), csv_number(low), csv_number(high));
            let _ = writeln!(csv, "{label},{},{},{low},{high}", p.x, p.y);
        }
    }
    csv
}

/// Curves by their names, in the order of these.
fn curves<Name: ToString>(
    points: BTreeMap<Name, Vec<Point>>,
    look: impl Fn(usize, &Name) -> Look,
) -> Vec<Series> {
    let one = |(at, (name, mut points)): (usize, (Name, Vec<Point>))| {
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { look: look(at, &name), label: name.to_string(), points }
    };
    points.into_iter().enumerate().map(one).collect()
}

fn block_axis(points: &[Point]) -> Axis {
    size_axis("block size", points.iter().map(|p| p.x))
}

fn mb_axis(points: &[Point]) -> Axis {
    number_axis("MB/s", points.iter().flat_map(|p| p.span.unwrap_or([p.y, p.y])))
}

fn across(label: &str, points: &[Point]) -> Axis {
    from_zero(label, points.iter().map(|p| p.x), 1.0)
}

fn up(label: &str, points: &[Point]) -> Axis {
    from_zero(label, points.iter().map(|p| p.y), 1.0)
}

/// Figure 3.1: a chart for each line with several block sizes.
fn speeds(job: &JobReport) -> Vec<Draft<'_>> {
    let mut lines: BTreeMap<&str, BTreeMap<Baseline, Vec<Point>>> = BTreeMap::new();
    for s in job.speeds.iter().filter(|s| s.round.is_none() && s.shift_bytes == Bytes(0)) {
        let point = Point {
            span: Some([s.min_mb_per_s, s.max_mb_per_s]),
            ..Point::plain(s.block_bytes.0 as f64, s.mb_per_s)
        };
        lines.entry(&s.line).or_default().entry(s.baseline).or_default().push(point);
    }
    let draft = |(line, of)| Draft {
        name: format!("figure3.1-{line}"),
        run: None,
        title: format!(
            "Speed by block size, job line {line}; whiskers from the slowest to the fastest repeat"
        ),
        columns: ["baseline", "block_bytes", "mb_per_s"],
        series: curves(of, |at, baseline: &Baseline| look_of(&(*baseline).into(), at)),
        level: None,
        x: block_axis,
        y: mb_axis,
    };
    lines.into_iter().map(draft).collect()
}

/// Figure 3.2: a chart for each long series.
fn series(job: &JobReport) -> Vec<Draft<'_>> {
    let long = job.series.iter().filter(|s| s.batch_s.len() > 2);
    let draft = |s: &uflip_analysis::job_report::BatchSeries| {
        let each = s.batch_ios as f64;
        let points =
            s.batch_s.iter().enumerate().map(|(k, v)| Point::plain((k as f64 + 1.0) * each, v * 1e3));
        let label = format!("each {} IOs", s.batch_ios);
        let pattern = s.baseline.map_or("writes", Baseline::name);
        let dots = Look { shape: Some(Shape::Dot), ..look_of(&s.baseline.unwrap_or(Baseline::Rw).into(), 0) };
        let section = if s.section.is_empty() { &s.line } else { &s.section };
        Draft {
            name: format!("figure3.2-{section}-{pattern}-{}-{}", job_size(s.block_bytes), s.repeat + 1),
            run: Some(s.run),
            title: format!(
                "Time of each batch of {pattern} of {}, job line {section}, repeat {}",
                s.block_bytes,
                s.repeat + 1
            ),
            columns: ["batch", "ios", "ms"],
            series: vec![Series { label, look: dots, points: points.collect() }],
            level: None,
            x: |p| across("IOs", p),
            y: |p| up("time of a batch (ms)", p),
        }
    };
    long.map(draft).collect()
}

/// The text of a size in job files.
fn job_size(size: Bytes) -> String {
    size.exact().to_string()
}

/// What a recovery's burst is called with the others: `bs=same` where its block
/// size is that of the writes after it.
fn bursts(all: &[Recovery]) -> BTreeMap<String, Vec<&Recovery>> {
    let own = |r: &Recovery| r.burst.replace(&format!("bs={},", job_size(r.block_bytes)), "bs=same,");
    let mut found: BTreeMap<String, Vec<&Recovery>> = BTreeMap::new();
    for r in all {
        found.entry(r.burst.clone()).or_default().push(r);
        if own(r) != r.burst {
            found.entry(own(r)).or_default().push(r);
        }
    }
    // A burst of one size alone is a point of the curve of same sizes.
    let sizes = |of: &[&Recovery]| of.iter().map(|r| r.block_bytes).collect::<BTreeSet<_>>().len();
    let several = found.values().any(|of| sizes(of) > 1);
    found.retain(|_, of| !several || sizes(of) > 1);
    found
}

/// Figures 3.3 and the lower left ones of C.1 and C.2.
fn after_bursts(job: &JobReport) -> Vec<Draft<'_>> {
    let of = |value: fn(&Recovery) -> Option<f64>| {
        let point = |r: &&Recovery| value(r).map(|y| Point::plain(r.block_bytes.0 as f64, y));
        let named = bursts(&job.recovery).into_iter();
        named.map(|(name, all)| (name, all.iter().filter_map(point).collect())).collect()
    };
    let draft = |name: &str, title: &str, column, value, level, y| Draft {
        name: name.into(),
        run: None,
        title: title.into(),
        columns: ["after", "block_bytes", column],
        series: curves(of(value), |at, _| in_turn(at)),
        level,
        x: block_axis,
        y,
    };
    vec![
        draft(
            "figure3.3",
            "Sequential writes after a burst: median speed of the windows over the steady speed",
            "of_steady",
            |r| r.median_over_steady,
            Some((1.0, "steady")),
            |p| up("of the steady speed", p),
        ),
        draft(
            "figureC.1",
            "Sequential writes after a burst: time until 0.6 of the median speed",
            "recovery_s",
            |r| r.recovery_s,
            None,
            |p| up("recovery (s)", p),
        ),
    ]
}

/// Figure 3.4a.
fn misaligned(job: &JobReport) -> Draft<'_> {
    let mut by_shift: BTreeMap<Bytes, Vec<Point>> = BTreeMap::new();
    for m in &job.misaligned {
        by_shift.entry(m.shift_bytes).or_default().push(Point::plain(m.block_bytes.0 as f64, m.ratio));
    }
    let series = by_shift.into_iter().enumerate().map(|(at, (shift, points))| Series {
        label: format!("shifted by {shift}"),
        look: in_turn(at),
        points,
    });
    Draft {
        name: "figure3.4a".into(),
        run: None,
        title: "Speed of shifted over aligned random writes".into(),
        columns: ["shift", "block_bytes", "of_aligned"],
        series: series.collect(),
        level: Some((1.0, "aligned")),
        x: block_axis,
        y: |p| up("of the aligned speed", p),
    }
}

/// Figure 3.4b: a chart for each baseline.
fn drift(job: &JobReport) -> Vec<Draft<'_>> {
    let mut by_baseline: BTreeMap<Baseline, Vec<Series>> = BTreeMap::new();
    for d in &job.drift {
        let all = by_baseline.entry(d.baseline).or_default();
        let shift = if d.shift_bytes > Bytes(0) { format!(" + {}", d.shift_bytes) } else { String::new() };
        let points = d.points.iter().map(|(passes, mb)| Point::plain(*passes as f64, *mb)).collect();
        all.push(Series { label: format!("{}{shift}", d.block_bytes), look: in_turn(all.len()), points });
    }
    let draft = |(baseline, series)| Draft {
        name: format!("figure3.4b-{baseline}"),
        run: None,
        title: format!("Speed of {baseline} over age, by block size"),
        columns: ["block", "passes", "mb_per_s"],
        series,
        level: None,
        x: |p| across("whole-device writes", p),
        y: mb_axis,
    };
    by_baseline.into_iter().map(draft).collect()
}

/// Figure C.3: the block size with the longest recovery.
fn time_line(job: &JobReport) -> Option<Draft<'_>> {
    let lost = |r: &Recovery| (r.recovery_s.unwrap_or(0.0), -r.median_over_steady.unwrap_or(1.0));
    let worst = job.recovery.iter().max_by(|a, b| {
        let (a, b) = (lost(a), lost(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let same = job.recovery.iter().filter(|r| r.block_bytes == worst.block_bytes && r.line == worst.line);
    let steady = same.clone().find_map(|r| r.steady_mb_per_s);
    let series = same.enumerate().map(|(at, r)| Series {
        label: format!("after {}", r.burst),
        look: in_turn(at),
        points: (1..)
            .zip(&r.windows_mb_per_s)
            .map(|(k, mb)| Point::plain(f64::from(k) * r.window_s, *mb))
            .collect(),
    });
    Some(Draft {
        name: "figureC.3".into(),
        run: None,
        title: format!("Sequential writes of {} after a burst, speed in each window", worst.block_bytes),
        columns: ["after", "seconds", "mb_per_s"],
        series: series.collect(),
        level: steady.map(|mb| (mb, "steady")),
        x: |p| across("time after the burst (s)", p),
        y: |p| up("MB/s", p),
    })
}

/// Figure C.4: the first pass after bursts of several lengths, and the next.
fn rewrite(job: &JobReport) -> Option<Draft<'_>> {
    let mut passes: BTreeMap<(Bytes, u32), Vec<Point>> = BTreeMap::new();
    for r in &job.rewrite {
        // A burst of so many IOs has no place on an axis of seconds.
        let Some(seconds) = r.burst_s.or(r.burst.is_none().then_some(0.0)) else { continue };
        passes.entry((r.block_bytes, r.repeat)).or_default().push(Point::plain(seconds, r.minutes));
    }
    let counted = job.rewrite.iter().any(|r| r.burst.is_some() && r.burst_s.is_none());
    let sizes: BTreeSet<Bytes> = passes.keys().map(|(block, _)| *block).collect();
    let name = |block: Bytes, repeat: u32| {
        let pass = if repeat == 0 { "first pass".into() } else { format!("pass {}", repeat + 1) };
        if sizes.len() > 1 { format!("{pass}, {block}") } else { pass }
    };
    let series = passes.into_iter().enumerate().map(|(at, ((block, repeat), mut points))| {
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { label: name(block, repeat), look: in_turn(at), points }
    });
    let without = if counted { "; bursts of so many IOs are not in it" } else { "" };
    (!job.rewrite.is_empty()).then(|| Draft {
        name: "figureC.4".into(),
        run: None,
        title: format!("Writing everything in order after a burst; 0 s is without one{without}"),
        columns: ["pass", "burst_s", "minutes"],
        series: series.collect(),
        level: None,
        x: |p| across("length of the burst (s)", p),
        y: |p| up("time (minutes)", p),
    })
}

/// Table 3.1 of all subjects, as CSV and Markdown.
pub(super) fn table31(rows: &[(&Subject, JobReport)]) -> [(&'static str, String); 2] {
    let columns = ["512 B", "2 MB"].map(|size| Baseline::ALL.map(|b| (b, size))).concat();
    let short = |size: &str| size.replace(' ', "").to_lowercase();
    let headings: Vec<String> = columns
        .iter()
        .map(|(b, size)| format!("{}_{}_mb_per_s", b.name().to_lowercase(), short(size)))
        .collect();
    let mut csv = format!("device,{}\n", headings.join(","));
    let shown: Vec<String> = columns.iter().map(|(b, size)| format!("{b} {size}")).collect();
    let mut markdown = format!("| MB/s | {} |\n|---|{}\n", shown.join(" | "), "---:|".repeat(columns.len()));
    for (subject, job) in rows {
        let (name, cells) = (device(subject), job.table31_mb_per_s);
        let _ = writeln!(csv, "{},{}", csv_field(&name), cells.map(csv_number).join(","));
        let two = |mb: Option<f64>| mb.map_or_else(String::new, |mb| format!("{mb:.3}"));
        let safe = name.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(markdown, "| {safe} | {} |", cells.map(two).join(" | "));
    }
    [("csv", csv), ("md", markdown)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_analysis::job_report::{BatchSeries, Misaligned, Speed};

    fn series(run: u32, section: &str, baseline: Baseline, repeat: u32) -> BatchSeries {
        let (line, block_bytes) = ("s".into(), Bytes(4096));
        let (section, baseline) = (section.into(), Some(baseline));
        BatchSeries { run, line, section, baseline, block_bytes, repeat, batch_ios: 1, batch_s: vec![0.1; 3] }
    }

    fn speed(line: &str, baseline: Baseline, block: u64) -> Speed {
        Speed {
            line: line.into(),
            round: None,
            baseline,
            block_bytes: Bytes(block),
            shift_bytes: Bytes(0),
            mb_per_s: 2.0,
            min_mb_per_s: 1.0,
            max_mb_per_s: 3.0,
            runs: vec![1],
        }
    }

    #[test]
    fn no_figure_takes_the_place_of_another() {
        let job = JobReport {
            series: vec![
                series(0, "s", Baseline::Sw, 0),
                series(1, "s", Baseline::Sw, 1),
                series(2, "s", Baseline::Rw, 0),
                series(3, "s shift=2K", Baseline::Rw, 0),
                series(4, "../s", Baseline::Rw, 0),
                series(5, ".._s", Baseline::Rw, 0),
            ],
            ..JobReport::default()
        };
        let names: Vec<String> =
            drafts(&job).into_iter().map(|d| d.name).filter(|name| name.starts_with("figure3.2")).collect();
        let expected = [
            "figure3.2-s-SW-4K-1",
            "figure3.2-s-SW-4K-2",
            "figure3.2-s-RW-4K-1",
            "figure3.2-s_shift_2K-RW-4K-1",
            "figure3.2-.._s-RW-4K-1",
            "figure3.2-.._s-RW-4K-1-2",
        ];
        assert_eq!(names, expected);
        let keys: Vec<String> = charts(&job).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, (0..6).map(|run| format!("series-{run}")).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_drawn_is_said() {
        let misaligned = vec![Misaligned { block_bytes: Bytes(4096), shift_bytes: Bytes(2048), ratio: 0.5 }];
        let speeds = vec![
            speed("two", Baseline::Rw, 4096),
            speed("two", Baseline::Rw, 8192),
            speed("two", Baseline::Sw, 4096),
        ];
        let job = JobReport { misaligned, speeds, ..JobReport::default() };
        let (mut said, mut drawn) = (Vec::new(), Vec::new());
        for draft in drafts(&job) {
            said.extend(too_short(&draft));
            drawn.extend(chart(draft).map(|chart| chart.series.len()));
        }
        assert_eq!(drawn, [1], "two sizes are a curve");
        let single = "a single point is no curve";
        let expected = [
            format!("figure3.1-two: {single}: SW"),
            "figure3.3: the job has no runs for it".into(),
            "figureC.1: the job has no runs for it".into(),
            format!("figure3.4a: {single}: shifted by 2K"),
        ];
        assert_eq!(said, expected);
    }
}
