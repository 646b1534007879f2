//! One report as plain data: what the terminal, HTML and JSON all show.
//!
//! Method: [`build`] sorts the rows of a store into the four baselines and the
//! nine micro-benchmarks; a point's mean is the mean of its repeats' means over
//! their running phases, and its span the smallest and largest of these. Where
//! the folder has a profile, the level that it found stands for the mean, with
//! its interval, and what it reads off the curves is added as marks and
//! sentences (`view/marks.rs`, `view/words.rs`). Nothing is measured or read
//! from records here.
//!
//! Source: paper 000/001, sections 3.2 and 4 (baselines, micro-benchmarks).

mod marks;
pub(crate) mod words;

pub use marks::{Mark, MarkKind};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Read;
use uflip_analysis::profile::{self, Finding, Profile};
use uflip_analysis::titles::{BASELINES, MICRO_BENCHMARKS};
use uflip_device::identity::word;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::{Point, Purpose, RtStats};
use uflip_store::contents::{RunRow, StoreContents, one_line};
use uflip_store::files::open_regular;

/// One report. Times in nanoseconds; what was not measured is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The target in one line.
    pub target: String,
    /// The machine in one line.
    pub host: Option<String>,
    /// What measuring costs, in one line.
    pub overhead: Option<String>,
    /// Program and version.
    pub tool: String,
    /// When the store was made, UTC.
    pub created: String,
    /// The seed.
    pub seed: u64,
    /// Runs kept.
    pub runs: usize,
    /// What has to be said first: damage, then what is missing.
    #[serde(default)]
    pub alerts: Vec<String>,
    /// What speaks against the results: the profile's findings, all of them and
    /// no others.
    pub soundness: Vec<Finding>,
    /// What has to be known of the folder's files besides.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What each baseline costs by the profile, which leaves out the start-up
    /// that it found.
    #[serde(default)]
    pub levels: Vec<BaselineLevel>,
    /// The baselines' own runs and single patterns.
    pub baselines: Vec<BaselineRow>,
    /// The micro-benchmarks that were run, in the papers' order.
    pub sections: Vec<Section>,
    /// Where things are: what, path.
    pub files: Vec<(String, String)>,
}

/// What a baseline costs: the profile's `baseline_ms`, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineLevel {
    /// `SR`, `RR`, `SW` or `RW`.
    pub baseline: String,
    /// Mean response time of the running phase.
    pub mean_ns: f64,
    /// Its 95 % confidence interval; `None` where the runs are too short for one.
    pub ci95_ns: Option<[f64; 2]>,
}

/// One run of a baseline, from its IOIgnore on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    /// `SR`, `RR`, `SW`, `RW` or a mix.
    pub baseline: String,
    /// Which repetition, from 0.
    pub repeat: u32,
    /// The run behind the figures.
    pub run: u32,
    /// The pattern's text.
    pub pattern: String,
    /// The figures.
    pub stats: RtStats,
}

/// One micro-benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its name: `granularity`, …
    pub micro_benchmark: String,
    /// Its name and what it shows, for a heading.
    pub title: String,
    /// The varying parameter: `IOSize`, …
    pub parameter: String,
    /// A curve for each baseline.
    pub series: Vec<Series>,
    /// What is seen, in sentences.
    #[serde(default)]
    pub sentences: Vec<String>,
    /// What the profile reads off the curves, to be drawn in.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Values that were left out, each with its reason.
    pub skipped: Vec<String>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// `SR`, `RR`, `SW`, `RW` or a mix's `SR/RW`.
    pub baseline: String,
    /// In ascending order of value.
    pub points: Vec<CurvePoint>,
}

/// One value of the varying parameter on one curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The value: bytes, a count or nanoseconds.
    pub value: i64,
    /// The value as a person reads it.
    pub label: String,
    /// Mean over the repeats.
    pub mean_ns: Option<f64>,
    /// The smallest repeat's mean.
    pub min_ns: Option<f64>,
    /// The largest repeat's mean.
    pub max_ns: Option<f64>,
    /// The 95 % confidence interval of the mean, by the profile.
    #[serde(default)]
    pub ci95_ns: Option<[f64; 2]>,
    /// The runs behind it.
    pub runs: Vec<u32>,
}

/// Sorts a store's contents into a report.
///
/// The plan may have an array `skipped` of texts or of objects with
/// `micro_benchmark`, `label` and `reason`; `target`, `host` and `overhead` of
/// the manifest may be texts, objects with a text `summary`, or plain objects.
/// A `profile.json` that is none, or not of these runs, is made again
/// ([`profile::of_store`]), and that is said; where there is none yet, it is
/// made in memory.
pub fn build(contents: &StoreContents) -> View {
    let (profile, note) =
        profile::of_store(contents).unwrap_or_else(|error| (None, Some(format!("{error}."))));
    let mut notes: Vec<String> = note.into_iter().collect();
    let profile = profile.map_or_else(|| profile::build(contents), Ok);
    notes.extend(
        profile.as_ref().err().map(|error| format!("There is no profile, so nothing is judged: {error}.")),
    );
    let mut view = build_with(contents, profile.as_ref().ok());
    view.notes.extend(notes);
    view.notes.extend(old_report(contents));
    view
}

/// What marks in a report what it was made from.
pub(crate) const DERIVED_FROM: &str = "<meta name=\"uflip-derived-from\" content=\"";

/// That the folder's report is of other runs, where it is.
fn old_report(contents: &StoreContents) -> Option<String> {
    let mut start = Vec::new();
    let file = open_regular(&contents.dir.join("report.html")).ok()?;
    file.take(1024).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start);
    let (_, rest) = start.split_once(DERIVED_FROM)?;
    let (of, _) = rest.split_once('"')?;
    let dir = word(&contents.dir.to_string_lossy());
    (of != profile::derivation(contents))
        .then(|| format!("report.html is of other runs than these; make it again with: uflip report {dir}."))
}

/// [`build`] with this profile of the store, or with none.
pub fn build_with(contents: &StoreContents, profile: Option<&Profile>) -> View {
    let manifest = &contents.manifest;
    let baselines =
        contents.runs.iter().filter(|r| matches!(r.spec.purpose, Purpose::Baseline | Purpose::Single));
    let mut baselines: Vec<_> = baselines.map(baseline_row).collect();
    baselines.sort_by_key(|row| (rank(&row.baseline), row.repeat, row.run));
    let dir = contents.dir.display();
    let file = |what: &str, name: &str| (what.to_string(), format!("{dir}/{name}"));
    View {
        target: one_line(&manifest.target).unwrap_or_else(|| "unknown target".into()),
        host: one_line(&manifest.host),
        overhead: one_line(&manifest.overhead),
        tool: format!("{} {}", manifest.tool, manifest.tool_version),
        created: manifest.created.clone(),
        seed: manifest.seed,
        runs: contents.runs.len(),
        alerts: contents.alerts(),
        soundness: profile.map_or_else(Vec::new, |profile| profile.soundness.clone()),
        notes: Vec::new(),
        levels: profile.map_or_else(Vec::new, baseline_levels),
        baselines,
        sections: sections(contents, profile),
        files: vec![file("runs", "runs.ndjson"), file("records", "ios/*.parquet"), file("plan", "plan.json")],
    }
}

/// What the profile says of the four baselines.
fn baseline_levels(profile: &Profile) -> Vec<BaselineLevel> {
    // To a tenth of a nanosecond, so that it is the same as text.
    let ns = |ms: f64| (ms * 1e7).round() / 10.0;
    let level = |baseline: Baseline| {
        let evidence = profile.baseline_ms.evidence.get(baseline.name());
        Some(BaselineLevel {
            baseline: baseline.name().into(),
            mean_ns: ns(profile.baseline_ms.of(baseline)?),
            ci95_ns: evidence.and_then(|e| e.ci95).map(|ends| ends.map(ns)),
        })
    };
    Baseline::ALL.into_iter().filter_map(level).collect()
}

/// Place of a baseline in the papers' order; mixes after, by their halves.
fn rank(baseline: &str) -> (usize, usize) {
    let place = |name: &str| BASELINES.iter().position(|b| *b == name).unwrap_or(BASELINES.len());
    match baseline.split_once('/') {
        None => (place(baseline), 0),
        Some((first, second)) => (BASELINES.len() + 1 + place(first), place(second)),
    }
}

fn baseline_row(row: &RunRow) -> BaselineRow {
    BaselineRow {
        baseline: row.spec.baseline.clone(),
        repeat: row.spec.repeat,
        run: row.spec.id,
        pattern: row.spec.pattern.to_string(),
        stats: row.stats.running.clone(),
    }
}

fn sections(contents: &StoreContents, profile: Option<&Profile>) -> Vec<Section> {
    let mut names: Vec<&str> = MICRO_BENCHMARKS.iter().map(|(name, _)| *name).collect();
    for row in contents.runs.iter().filter(|row| row.spec.purpose != Purpose::Calibration) {
        if let Some(point) = &row.spec.point
            && !names.contains(&point.micro_benchmark.as_str())
        {
            names.push(&point.micro_benchmark);
        }
    }
    let mut all: Vec<Section> = names.into_iter().filter_map(|name| section(contents, name)).collect();
    for section in &mut all {
        if let Some(profile) = profile {
            levels(section, profile);
            section.marks = marks::marks(section, profile);
            section.sentences.extend(words::of_profile(section, profile));
        }
        section.sentences.extend(words::sentence(section));
    }
    all
}

/// Gives each point the level that the profile has for it, which leaves out
/// the start-up that was found, and its interval.
fn levels(section: &mut Section, profile: &Profile) {
    for series in &mut section.series {
        let same = |c: &&profile::CurveLevels| {
            c.micro_benchmark == section.micro_benchmark && c.baseline == series.baseline
        };
        let Some(levels) = profile.curves.iter().find(same) else { continue };
        for point in &mut series.points {
            let level = levels.points.iter().find(|l| l.value == point.value);
            point.mean_ns = level.map(|l| l.mean_ms * 1e6).or(point.mean_ns);
            point.ci95_ns = level.and_then(|l| l.ci95).map(|ends| ends.map(|ms| ms * 1e6));
        }
    }
}

fn section(contents: &StoreContents, name: &str) -> Option<Section> {
    let here = |point: &&Point| point.micro_benchmark == name;
    let points: Vec<(&RunRow, &Point)> = contents
        .runs
        .iter()
        .filter_map(|row| row.spec.point.as_ref().filter(here).map(|point| (row, point)))
        .collect();
    let skipped = skipped(&contents.plan, name);
    if points.is_empty() && skipped.is_empty() {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    for (row, point) in &points {
        let at = series.iter().position(|s| s.baseline == row.spec.baseline).unwrap_or_else(|| {
            series.push(Series { baseline: row.spec.baseline.clone(), points: Vec::new() });
            series.len() - 1
        });
        add_run(&mut series[at].points, row, point);
    }
    series.sort_by_key(|s| rank(&s.baseline));
    series.iter_mut().for_each(|s| s.points.sort_by_key(|p| p.value));
    let title = MICRO_BENCHMARKS.iter().find(|(known, _)| *known == name).map_or(name, |(_, title)| title);
    Some(Section {
        micro_benchmark: name.into(),
        title: title.into(),
        parameter: points.first().map(|(_, point)| point.parameter.clone()).unwrap_or_default(),
        series,
        sentences: Vec::new(),
        marks: Vec::new(),
        skipped,
    })
}

fn add_run(points: &mut Vec<CurvePoint>, row: &RunRow, point: &Point) {
    let at = points.iter().position(|p| p.value == point.value).unwrap_or_else(|| {
        let (value, label) = (point.value, point.label.clone());
        let (mean_ns, min_ns, max_ns, ci95_ns) = (None, None, None, None);
        points.push(CurvePoint { value, label, mean_ns, min_ns, max_ns, ci95_ns, runs: Vec::new() });
        points.len() - 1
    });
    let point = &mut points[at];
    if let Some(mean) = row.stats.running.mean_ns {
        // A run without a running phase says nothing of the mean.
        let before = point.runs.len() as f64;
        point.mean_ns = Some(point.mean_ns.map_or(mean, |m| (m * before + mean) / (before + 1.0)));
        point.min_ns = Some(point.min_ns.map_or(mean, |m| m.min(mean)));
        point.max_ns = Some(point.max_ns.map_or(mean, |m| m.max(mean)));
        point.runs.push(row.spec.id);
    }
}

fn skipped(plan: &Value, name: &str) -> Vec<String> {
    let Some(list) = plan.get("skipped").and_then(Value::as_array) else { return Vec::new() };
    let text = |value: &Value| match value {
        Value::String(text) => text.starts_with(name).then(|| text.clone()),
        Value::Object(fields) if fields.get("micro_benchmark").and_then(Value::as_str) == Some(name) => {
            let field = |key| fields.get(key).and_then(Value::as_str);
            let what =
                [field("baseline"), field("label")].into_iter().flatten().collect::<Vec<_>>().join(" ");
            Some([what.as_str(), field("reason").unwrap_or("no reason given")].join(": "))
        }
        _ => None,
    };
    list.iter().filter_map(text).collect()
}
