//! One report as plain data: what the terminal, HTML and JSON all show.
//!
//! Method: [`build`] sorts the rows of a store into the four baselines and the
//! micro-benchmarks. A point's mean, its interval, write amplification and energy are
//! the profile's, and so is the span of the repeats; what the profile has no level of is what its
//! rows say, by the same crate's rule (`profile::of_repeats`). What
//! the profile reads off the curves is added as marks and sentences (`view/marks.rs`,
//! `view/words.rs`). Nothing is measured, read from records or computed here.
//!
//! Source: paper 000/001, sections 3.2 and 4 (baselines, micro-benchmarks).

mod marks;
pub(crate) mod words;

pub use marks::{ChartMark, MarkKind};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use uflip_analysis::profile::{self, Finding, Profile, beside, open_loop};
use uflip_analysis::program::{self, ProgramRun};
use uflip_device::identity::word;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::{Belongs, CurveName, LateStats, ModeStats, RtStats, RunSection as Whole};
use uflip_measure::{MicroBenchmark, Plan};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::files::open_regular;
use uflip_store::manifest::one_line;

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
    /// Runs whose IOs were due at instants of their own: their response times hold the
    /// wait, so they are no baselines and no points of a curve. The pattern tells the rate.
    #[serde(default)]
    pub open_loops: Vec<BaselineRow>,
    /// What the device's own work came to, in a sentence; None where it does not tell.
    #[serde(default)]
    pub device_work: Option<String>,
    /// The micro-benchmarks that were run, in the papers' order.
    pub sections: Vec<Section>,
    /// What a program did on each of its devices, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRun>,
    /// Where things are: what, path.
    pub files: Vec<(String, String)>,
}

/// What a baseline costs: the profile's `baseline_ms`, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineLevel {
    /// Which.
    pub baseline: Baseline,
    /// Mean response time of the running phase.
    pub mean_ns: f64,
    /// Its 95 % confidence interval; `None` where the runs are too short for one.
    pub ci95_ns: Option<[f64; 2]>,
}

/// One run of a baseline, from its IOIgnore on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    /// `SR`, `RR`, `SW`, `RW` or a mix.
    pub baseline: CurveName,
    /// Which repetition, from 0.
    pub repeat: u32,
    /// The run behind the figures.
    pub run: u32,
    /// The pattern's text.
    pub pattern: String,
    /// The figures.
    pub stats: RtStats,
    /// Bytes that the device programmed for each that was written, over the whole
    /// run; None where it does not tell.
    #[serde(default)]
    pub write_amplification: Option<f64>,
    /// Energy that the device took for an IO of the run, in microjoules; None where it does not tell.
    #[serde(default)]
    pub energy_uj_per_io: Option<f64>,
    /// Something else was going on beside the run; None where nobody looked.
    #[serde(default)]
    pub disturbed: Option<bool>,
    /// Reads, writes, flushes and trims apart, where the run has several of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_mode: Vec<ModeStats>,
    /// How late an open loop's IOs were submitted; None in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateStats>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<String>,
}

/// One micro-benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Which: `granularity`, …, or a line of a job.
    pub micro_benchmark: Whole,
    /// Its name and what it shows, for a heading.
    pub title: String,
    /// The varying parameter: `IOSize`, …
    pub parameter: String,
    /// A curve for each baseline.
    pub series: Vec<BaselineSeries>,
    /// What is seen, in sentences.
    #[serde(default)]
    pub sentences: Vec<String>,
    /// What the profile reads off the curves, to be drawn in.
    #[serde(default)]
    pub marks: Vec<ChartMark>,
    /// Values that were left out, each with its reason.
    pub skipped: Vec<String>,
}

impl Section {
    /// Which micro-benchmark; `None` where it is a line of a job or another's.
    pub fn micro(&self) -> Option<MicroBenchmark> {
        self.micro_benchmark.micro()
    }

    /// All values in ascending order, with their labels.
    pub fn values(&self) -> Vec<(i64, String)> {
        let points = self.series.iter().flat_map(|s| &s.points);
        let mut values: Vec<(i64, String)> = points.map(|p| (p.value, p.label.clone())).collect();
        values.sort();
        values.dedup_by_key(|(value, _)| *value);
        values
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineSeries {
    /// `SR`, `RR`, `SW`, `RW` or a mix's `SR/RW`.
    pub baseline: CurveName,
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
    /// Mean over the repeats' means: the profile's level, else that of the rows.
    pub mean_ns: Option<f64>,
    /// The smallest of these means; `None` where the profile does not tell.
    pub min_ns: Option<f64>,
    /// The largest of them.
    pub max_ns: Option<f64>,
    /// The 95 % confidence interval of the mean, by the profile.
    #[serde(default)]
    pub ci95_ns: Option<[f64; 2]>,
    /// As of [`BaselineRow`], over the sums of the runs.
    #[serde(default)]
    pub write_amplification: Option<f64>,
    /// As of [`BaselineRow`], over the sums of the runs.
    #[serde(default)]
    pub energy_uj_per_io: Option<f64>,
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
    let (open, closed): (Vec<_>, Vec<_>) = contents.runs.iter().partition(|r| r.spec.work.is_open_loop());
    let baselines =
        closed.into_iter().filter(|r| matches!(r.spec.belongs, Belongs::Baseline { .. } | Belongs::Single));
    let mut baselines: Vec<_> = baselines.map(baseline_row).collect();
    // In the papers' order; mixes after, by their halves.
    baselines.sort_by(|a, b| (&a.baseline, a.repeat, a.run).cmp(&(&b.baseline, b.repeat, b.run)));
    let dir = contents.dir.display();
    let file = |what: &str, name: &str| (what.to_string(), format!("{dir}/{name}"));
    View {
        target: one_line(&manifest.target).unwrap_or_else(|| "unknown target".into()),
        host: manifest.host.as_ref().and_then(one_line),
        overhead: manifest.overhead.as_ref().and_then(one_line),
        tool: format!("{} {}", manifest.tool, manifest.tool_version),
        created: manifest.created.clone(),
        seed: manifest.seed,
        runs: contents.runs.len(),
        alerts: contents.alerts(),
        soundness: profile.map_or_else(Vec::new, |profile| profile.soundness.clone()),
        notes: Vec::new(),
        levels: profile.map_or_else(Vec::new, baseline_levels),
        baselines,
        open_loops: open.into_iter().map(baseline_row).collect(),
        device_work: profile.and_then(|profile| profile.device_work.sentence()),
        sections: sections(contents, profile),
        // What cannot be read is damage, and said above.
        programs: program::of_store(contents).unwrap_or_default(),
        files: vec![file("runs", "runs.ndjson"), file("records", "ios/*.parquet"), file("plan", "plan.json")],
    }
}

/// What the profile says of the four baselines.
fn baseline_levels(profile: &Profile) -> Vec<BaselineLevel> {
    // To a tenth of a nanosecond, so that it is the same as text.
    let ns = |ms: f64| (ms * 1e7).round() / 10.0;
    let level = |baseline: Baseline| {
        let evidence = profile.baseline_ms.evidence.get(&baseline);
        Some(BaselineLevel {
            baseline,
            mean_ns: ns(profile.baseline_ms.of(baseline)?),
            ci95_ns: evidence.and_then(|e| e.ci95).map(|ends| ends.map(ns)),
        })
    };
    Baseline::ALL.into_iter().filter_map(level).collect()
}

fn baseline_row(row: &RunRow) -> BaselineRow {
    let (write_amplification, energy_uj_per_io) = beside::of_runs(std::iter::once(row));
    let beside = row.outcome.probes.interference.as_ref();
    BaselineRow {
        baseline: row.spec.curve_name(),
        repeat: row.spec.belongs.repeat(),
        run: row.spec.id,
        pattern: row.spec.work.to_string(),
        stats: row.stats.running.clone(),
        write_amplification,
        energy_uj_per_io,
        disturbed: beside.map(|found| found.matters(row.outcome.end.ios)),
        by_mode: row.stats.by_mode.clone(),
        late: row.stats.late.clone(),
        lateness: open_loop::lateness(row),
    }
}

fn sections(contents: &StoreContents, profile: Option<&Profile>) -> Vec<Section> {
    let mut wholes: Vec<Whole> = MicroBenchmark::ALL.iter().copied().map(Whole::Micro).collect();
    for belongs in contents.runs.iter().map(|row| &row.spec.belongs).filter(|b| !b.prepares()) {
        if let Some(whole) = belongs.section()
            && !wholes.contains(&whole)
        {
            wholes.push(whole);
        }
    }
    let mut all: Vec<Section> = wholes.iter().filter_map(|whole| section(contents, whole)).collect();
    for section in &mut all {
        if let Some(profile) = profile {
            levels(section, profile);
            section.marks = marks::marks(section, profile);
            section.sentences.extend(words::of_profile(section, profile));
        }
        section.sentences.extend(words::sentence(section, profile));
    }
    all
}

/// Gives each point the level that the profile has for it, which leaves out
/// the start-up that was found, and its interval.
fn levels(section: &mut Section, profile: &Profile) {
    for series in &mut section.series {
        let same = |c: &&profile::CurveLevels| {
            c.id.section.is_called(&section.micro_benchmark) && series.baseline.known() == Some(c.id.curve)
        };
        let Some(levels) = profile.curves.iter().find(same) else { continue };
        for point in &mut series.points {
            let level = levels.points.iter().find(|l| l.value == point.value);
            if let Some(level) = level {
                // The span is of the means that the level is the mean of, or it is none.
                let [min, max] = level.repeats_ms.map_or([None; 2], |ends| ends.map(|ms| Some(ms * 1e6)));
                (point.mean_ns, point.min_ns, point.max_ns) = (Some(level.mean_ms * 1e6), min, max);
            }
            point.ci95_ns = level.and_then(|l| l.ci95).map(|ends| ends.map(|ms| ms * 1e6));
            // Profiles of before these fields have none.
            point.write_amplification =
                level.and_then(|l| l.write_amplification).or(point.write_amplification);
            point.energy_uj_per_io = level.and_then(|l| l.energy_uj_per_io).or(point.energy_uj_per_io);
        }
    }
}

fn section(contents: &StoreContents, whole: &Whole) -> Option<Section> {
    let here =
        |row: &&RunRow| row.spec.belongs.section().as_ref() == Some(whole) && !row.spec.work.is_open_loop();
    let points: Vec<(&RunRow, (String, i64, String))> = contents
        .runs
        .iter()
        .filter(here)
        .filter_map(|row| Some((row, row.spec.belongs.varying()?)))
        .collect();
    let skipped = skipped(contents.plan.as_ref(), whole);
    if points.is_empty() && skipped.is_empty() {
        return None;
    }
    let mut curves: BTreeMap<CurveName, BTreeMap<i64, (String, Vec<&RunRow>)>> = BTreeMap::new();
    for (row, (_, value, label)) in &points {
        let curve = curves.entry(row.spec.curve_name()).or_default();
        curve.entry(*value).or_insert_with(|| (label.clone(), Vec::new())).1.push(row);
    }
    let drawn = |points: BTreeMap<i64, (String, Vec<&RunRow>)>| {
        points.into_iter().map(|(value, (label, rows))| point(&rows, value, label)).collect()
    };
    let series = curves
        .into_iter()
        .map(|(baseline, points)| BaselineSeries { baseline, points: drawn(points) })
        .collect();
    Some(Section {
        micro_benchmark: whole.clone(),
        title: whole.micro().map_or_else(|| whole.to_string(), |micro| micro.row().title.into()),
        parameter: points.first().map(|(_, (parameter, ..))| parameter.clone()).unwrap_or_default(),
        series,
        sentences: Vec::new(),
        marks: Vec::new(),
        skipped,
    })
}

/// One value of a curve from the rows of its repeats.
fn point(rows: &[&RunRow], value: i64, label: String) -> CurvePoint {
    let profile::Repeats { runs, mean_ns, min_ns, max_ns, write_amplification, energy_uj_per_io } =
        profile::of_repeats(rows);
    let ci95_ns = None;
    CurvePoint { value, label, mean_ns, min_ns, max_ns, ci95_ns, write_amplification, energy_uj_per_io, runs }
}

fn skipped(plan: Option<&Plan>, whole: &Whole) -> Vec<String> {
    let own =
        plan.iter().flat_map(|plan| &plan.skipped).filter(|skipped| skipped.micro_benchmark.is_called(whole));
    own.map(|s| format!("{} {}: {}", s.baseline, s.label, s.reason)).collect()
}
