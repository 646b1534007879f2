//! The report as one HTML file that opens offline, from disk, in any current
//! browser, explorable down to the single IO.
//!
//! Method: the file holds the [`View`] (what the terminal shows, with the same
//! numbers), the profile, what a job or the search for the logical block came
//! to, a table of the runs, and the runs' IOs as compressed blobs, as many whole
//! as fit into [`SIZE_LIMIT`] and the others summed up so that no spike is lost
//! ([`embed`]). Charts are decided here and painted by the script in the file, which draws
//! the traces itself; the page says how each run is embedded.
//!
//! | file | what |
//! |---|---|
//! | `embed.rs`, `trace.rs`, `aggregate.rs`, `windows.rs`, `blob.rs` | the runs' IOs |
//! | `table.rs` | the runs |
//! | `others.rs` | what else is in the folder: job, logical block, calibration, models |
//! | `page.rs`, `page.html`, `style.css` | the page and its policy |
//! | `charts.rs` | the charts: decided by the drawing core (`draw.rs`), as marks for the page |
//! | `base.js` | elements, numbers with units, the theme |
//! | `draw.js`, `ticks.js` | painting marks; ticks for what is zoomed into |
//! | `profile.js` | the card, hints, findings, nearest devices |
//! | `charts.js` | the micro-benchmarks |
//! | `trace.js`, `explorer.js`, `views.js` | reading traces, exploring them, distribution and location |
//! | `jobs.js` | job, logical block, models |
//! | `main.js` | what is shown in which order |
//!
//! The seam for a server: `trace.js` asks one function, `loadTrace(run)`, for a
//! run's IOs; it takes them from the page and could take them from elsewhere.

mod aggregate;
mod blob;
mod charts;
mod embed;
mod others;
mod page;
mod table;
mod trace;
mod windows;

pub use trace::TraceKind;

use crate::draw::style;
use crate::view::{self, View};
use charts::{Charts, Room};
use others::Others;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use table::Detail;
use uflip_analysis::profile::nearest::{Known, Nearest, nearest};
use uflip_analysis::profile::{self, Profile};
use uflip_device::Overhead;
use uflip_device::identity::HostFacts;
use uflip_store::contents::StoreContents;
use uflip_store::error::{StoreError, path_error};
use uflip_store::files::write_whole;
use uflip_store::manifest::{Options, TargetTold, Told};
use uflip_store::output::{self, Output};

/// Bytes that a report takes at most, whatever was measured.
pub const SIZE_LIMIT: usize = 5_000_000;

/// Room kept free for what is not known before the traces are made.
const MARGIN: usize = 50_000;

/// Charts take at most this part of a report; the traces need the rest.
const CHARTS_SHARE: usize = 20;

/// A report, ready to be written.
#[derive(Clone, Debug)]
pub struct Report {
    /// The whole file.
    pub html: String,
    /// How many runs are embedded how.
    pub embedded: Vec<(TraceKind, usize)>,
}

/// What the page shows.
#[derive(Serialize)]
struct ReportFacts<'a> {
    format: u32,
    view: &'a View,
    /// Warnings about the target and notes about the plan.
    notes: Vec<String>,
    target: &'a TargetTold,
    host: &'a Option<Told<HostFacts>>,
    overhead: &'a Option<Told<Overhead>>,
    options: &'a Options,
    profile: &'a Option<Profile>,
    /// Known devices, the nearest first.
    nearest: Vec<Nearest>,
    others: &'a Others,
    /// Charts as they were decided, for the page to paint.
    charts: &'a Charts,
    /// What single marks look like.
    draw: serde_json::Value,
    /// Response times are rounded to this many steps for a factor of e.
    steps: f64,
    /// How many runs there are; the table may have fewer.
    runs: usize,
    table: table::Table<'a>,
}

/// Makes the report of a store.
///
/// # Errors
/// [`StoreError::Damaged`] where there is a `profile.json` or another of the
/// folder's files that is none.
pub fn render(contents: &StoreContents) -> Result<Report, StoreError> {
    render_within(contents, &[], SIZE_LIMIT)
}

/// Makes a report of at most `limit` bytes, beside these known devices.
///
/// # Errors
/// As [`render`].
pub fn render_within(contents: &StoreContents, known: &[Known], limit: usize) -> Result<Report, StoreError> {
    let derived_from = profile::derivation(contents);
    let (profile, note) = profile::of_store(contents)?;
    // Nothing is shown without what speaks against it.
    let profile = match profile {
        None => profile::build(contents).ok(),
        some => some,
    };
    let mut view = view::build_with(contents, profile.as_ref());
    view.notes.extend(note);
    let others = others::read(contents)?;
    let charts = charts_within(contents, &view, &others, limit / CHARTS_SHARE);
    let found = profile.as_ref().map_or_else(Vec::new, |p| nearest(p, known));
    let profile = profile.map(others::lighter);
    let patterns: Vec<String> = contents.runs.iter().map(|row| row.spec.work.to_string()).collect();
    let facts = |embedded: &[embed::Embedded], detail, most| {
        page::inert(&ReportFacts {
            format: 2,
            view: &view,
            notes: notes(contents),
            target: &contents.manifest.target,
            host: &contents.manifest.host,
            overhead: &contents.manifest.overhead,
            options: &contents.manifest.options,
            profile: &profile,
            nearest: found.clone(),
            others: &others,
            charts: &charts,
            draw: style::facts(),
            steps: trace::STEPS,
            runs: contents.runs.len(),
            table: table::table(contents, &patterns, embedded, detail, most),
        })
    };
    let page = page::assemble(&derived_from, "", &[]).len();
    let (detail, most, fixed) = fitting(contents.runs.len(), limit.saturating_sub(page), |detail, most| {
        facts(&[], detail, most).len()
    });
    let embedded = embed::embed(contents, most, limit.saturating_sub(page + fixed + MARGIN));
    let html = page::assemble(&derived_from, &facts(&embedded, detail, most), &blobs(contents, &embedded));
    let of = |kind| embedded.iter().flatten().filter(|trace| trace.kind == kind).count();
    let kinds =
        [TraceKind::Whole, TraceKind::Rounded, TraceKind::Aggregated, TraceKind::Coarse, TraceKind::Sketched];
    Ok(Report { html, embedded: kinds.map(|kind| (kind, of(kind))).into() })
}

/// The charts with as much of each as fits into `room`.
fn charts_within(contents: &StoreContents, view: &View, others: &Others, room: usize) -> Charts {
    let rooms = [Room::Percentiles, Room::Narrow, Room::Wide];
    let mut made = rooms.into_iter().map(|much| charts::charts(contents, view, others, much));
    made.find(|charts| page::inert(charts).len() <= room).unwrap_or_default()
}

/// How much of how many runs the table tells, and what that takes: everything
/// of all where it takes at most half of the room, else less.
fn fitting(runs: usize, room: usize, size: impl Fn(Detail, usize) -> usize) -> (Detail, usize, usize) {
    for detail in [Detail::Full, Detail::Lean, Detail::Bare] {
        let fixed = size(detail, runs);
        if fixed <= room / 2 {
            return (detail, runs, fixed);
        }
    }
    let mut most = runs;
    loop {
        let fixed = size(Detail::Bare, most);
        if fixed <= room / 10 * 9 || most == 0 {
            return (Detail::Bare, most, fixed);
        }
        most /= 2;
    }
}

/// The blobs of the traces that have one, by the runs' numbers.
fn blobs<'a>(contents: &StoreContents, embedded: &'a [embed::Embedded]) -> Vec<(u32, &'a str)> {
    let made = contents.runs.iter().zip(embedded);
    let blob = made.filter_map(|(row, made)| made.as_ref().ok().map(|trace| (row.spec.id, &trace.blob[..])));
    blob.filter(|(_, blob)| !blob.is_empty()).collect()
}

/// Writes the report of a store to an output, beside these known devices.
///
/// # Errors
/// As [`render`], and [`StoreError::Path`] where it cannot be written.
pub fn write_to(contents: &StoreContents, known: &[Known], path: &Path) -> Result<Report, StoreError> {
    // Before the work, so that a path that is refused costs none.
    output::check(path)?;
    let report = render_within(contents, known, SIZE_LIMIT)?;
    let mut out = Output::create(path)?;
    out.write_all(report.html.as_bytes()).map_err(path_error("cannot write", path))?;
    out.finish()?;
    Ok(report)
}

/// Writes the report of a store to the file `path` of a results folder, whole or not at all, beside these
/// known devices.
///
/// # Errors
/// As [`render`], and [`StoreError::Path`] where it cannot be written.
pub fn write(contents: &StoreContents, known: &[Known], path: &Path) -> Result<Report, StoreError> {
    let report = render_within(contents, known, SIZE_LIMIT)?;
    write_whole(path, report.html.as_bytes())?;
    Ok(report)
}

/// Warnings about the target and notes about the plan, as sentences.
fn notes(contents: &StoreContents) -> Vec<String> {
    let warnings = contents.manifest.target.warnings.iter().cloned();
    warnings.chain(contents.plan.iter().flat_map(|plan| plan.notes.clone())).collect()
}
