//! The report as one HTML file that opens offline, from disk, in any current
//! browser, explorable down to the single IO.
//!
//! Method: the file holds the [`View`] as JSON (what the terminal shows, with
//! the same numbers), a row for each run, and the runs' IOs as compressed
//! blobs, as many whole as fit into [`SIZE_LIMIT`] and the others summed up so
//! that no spike is lost ([`embed`]). Everything is drawn by the script in the
//! file; the page says how each run is embedded.
//!
//! | file | what |
//! |---|---|
//! | `embed.rs`, `trace.rs`, `aggregate.rs`, `blob.rs` | the runs' IOs |
//! | `words.rs` | the sentence under each chart |
//! | `page.rs`, `sha256.rs`, `page.html`, `style.css` | the page and its policy |
//! | `base.js` | elements, numbers with units, colours |
//! | `charts.js` | the micro-benchmarks |
//! | `trace.js`, `explorer.js`, `views.js` | reading traces, exploring them, distribution and location |
//! | `profile.js` | the profile card and hints, where the folder has a `profile.json` |
//! | `main.js` | what is shown in which order |
//!
//! The seam for a server: `trace.js` asks one function, `loadTrace(run)`, for a
//! run's IOs; it takes them from the page and could take them from elsewhere.

mod aggregate;
mod blob;
mod embed;
mod page;
pub(crate) mod sha256;
mod trace;
mod words;

pub use trace::Kind;

use crate::contents::{RunRow, StoreContents};
use crate::error::{StoreError, path_error};
use crate::files::write_whole;
use crate::view::{self, View};
use embed::Embedded;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use uflip_measure::run::{Point, Purpose, RtStats};

/// Bytes that a report takes at most, whatever was measured.
pub const SIZE_LIMIT: usize = 5_000_000;

/// Room kept free for what is not known before the traces are made.
const MARGIN: usize = 50_000;

/// A report, ready to be written.
#[derive(Clone, Debug)]
pub struct Report {
    /// The whole file.
    pub html: String,
    /// How many runs are embedded how.
    pub embedded: Vec<(Kind, usize)>,
}

/// What the page shows apart from the runs.
#[derive(Serialize)]
struct Facts<'a> {
    format: u32,
    view: &'a View,
    /// By the names of `view.sections`.
    sentences: Vec<Option<String>>,
    /// Warnings about the target and notes about the plan.
    notes: Vec<String>,
    target: &'a Value,
    host: &'a Value,
    overhead: &'a Value,
    options: &'a Value,
    /// `profile.json` as it is; null where there is none.
    profile: Value,
    /// Response times are rounded to this many steps for a factor of e.
    steps: f64,
}

/// A run as the page knows it.
#[derive(Serialize)]
struct Row<'a> {
    id: u32,
    purpose: Purpose,
    baseline: &'a str,
    point: &'a Option<Point>,
    repeat: u32,
    pattern: String,
    io_ignore: u64,
    elapsed: u64,
    time_limit_hit: bool,
    running: Figures,
    all: Figures,
    by_pattern: Vec<Figures>,
    trace: Option<&'a trace::Trace>,
    missing: Option<&'a str>,
}

/// n, min, max, mean, sd, p50, p90, p95, p99, p99.9, p99.99; times in ns.
#[derive(Serialize)]
struct Figures(u64, [Option<u64>; 2], [Option<f64>; 2], [Option<u64>; 6]);

impl Figures {
    fn of(s: &RtStats) -> Figures {
        let percentiles = [s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns];
        Figures(s.n, [s.min_ns, s.max_ns], [s.mean_ns, s.sd_ns], percentiles)
    }
}

/// Makes the report of a store.
///
/// # Errors
/// [`StoreError::Damaged`] where there is a `profile.json` that is no JSON.
pub fn render(contents: &StoreContents) -> Result<Report, StoreError> {
    render_within(contents, SIZE_LIMIT)
}

/// Makes a report of at most `limit` bytes, as far as what cannot be left out
/// (the page itself, the view and a row for each run) allows.
///
/// # Errors
/// As [`render`].
pub fn render_within(contents: &StoreContents, limit: usize) -> Result<Report, StoreError> {
    let view = view::build(contents);
    let facts = page::inert_json(&Facts {
        format: 1,
        view: &view,
        sentences: view.sections.iter().map(words::sentence).collect(),
        notes: notes(contents),
        target: &contents.manifest.target,
        host: &contents.manifest.host,
        overhead: &contents.manifest.overhead,
        options: &contents.manifest.options,
        profile: profile(&contents.dir)?,
        steps: trace::STEPS,
    });
    let none: Vec<Embedded> = contents.runs.iter().map(|_| Err(String::new())).collect();
    let fixed = page::assemble(&facts, &rows(contents, &none), &[]).len();
    let embedded = embed::embed(contents, limit.saturating_sub(fixed + MARGIN));
    let blobs: Vec<(u32, &str)> = contents
        .runs
        .iter()
        .zip(&embedded)
        .filter_map(|(row, made)| made.as_ref().ok().map(|trace| (row.spec.id, &trace.blob[..])))
        .collect();
    let html = page::assemble(&facts, &rows(contents, &embedded), &blobs);
    let of = |kind| embedded.iter().flatten().filter(|trace| trace.kind == kind).count();
    let kinds = [Kind::Whole, Kind::Rounded, Kind::Aggregated, Kind::Coarse, Kind::Sketched];
    Ok(Report { html, embedded: kinds.map(|kind| (kind, of(kind))).into() })
}

/// Writes the report of a store to `path`, whole or not at all.
///
/// # Errors
/// As [`render`], and [`StoreError::Path`] where it cannot be written.
pub fn write(contents: &StoreContents, path: &Path) -> Result<Report, StoreError> {
    let report = render(contents)?;
    write_whole(path, report.html.as_bytes())?;
    Ok(report)
}

fn rows(contents: &StoreContents, embedded: &[Embedded]) -> String {
    let rows: Vec<Row<'_>> =
        contents.runs.iter().zip(embedded).map(|(row, made)| one_row(row, made)).collect();
    blob::pack(&serde_json::to_vec(&rows).unwrap_or_default())
}

fn one_row<'a>(row: &'a RunRow, made: &'a Embedded) -> Row<'a> {
    Row {
        id: row.spec.id,
        purpose: row.spec.purpose,
        baseline: &row.spec.baseline,
        point: &row.spec.point,
        repeat: row.spec.repeat,
        pattern: row.spec.pattern.to_string(),
        io_ignore: row.spec.io_ignore,
        elapsed: row.outcome.end.elapsed.0,
        time_limit_hit: row.outcome.end.time_limit_hit,
        running: Figures::of(&row.stats.running),
        all: Figures::of(&row.stats.all),
        by_pattern: row.stats.by_pattern.iter().map(Figures::of).collect(),
        trace: made.as_ref().ok(),
        missing: made.as_ref().err().map(String::as_str),
    }
}

/// Warnings about the target and notes about the plan, as sentences.
fn notes(contents: &StoreContents) -> Vec<String> {
    let lists = [contents.manifest.target.get("warnings"), contents.plan.get("notes")];
    let texts = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
    texts.filter_map(Value::as_str).map(str::to_string).collect()
}

/// `profile.json` of the folder, if it is there.
fn profile(dir: &Path) -> Result<Value, StoreError> {
    let path = dir.join("profile.json");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
        Err(error) => return Err(path_error("cannot read", &path)(error)),
    };
    let wrong =
        |e| StoreError::Damaged { path: path.clone(), detail: format!("{e}; make the profile again") };
    serde_json::from_slice(&bytes).map_err(wrong)
}
