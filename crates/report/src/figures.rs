//! Charts and tables for papers: SVG and PNG of a column's width, and the data
//! behind each as CSV.
//!
//! Method: a [`Chart`] is plain data; `layout.rs` turns it into marks (lines,
//! shapes, letters) in points of 1/72 inch, `svg.rs` and `png.rs` write the same
//! marks as vectors and as pixels. The numbers are the [`View`](crate::view::View)'s
//! own, those of the report.
//!
//! | file | what |
//! |---|---|
//! | `micro.rs` | a chart for each micro-benchmark |
//! | `traces.rs` | the papers' figures 3, 4 and 5: response times IO by IO |
//! | `papers.rs` | figures 6, 7, 8 and Table 3 |
//! | `jobs.rs` | the figures of paper 004 from a job's runs, and Table 3.1 |
//! | `layout.rs`, `svg.rs`, `png.rs` | drawing |
//!
//! Sources: papers 000/001, figures 3 to 8 and Table 3; paper 004, section 3.3 and
//! appendix C.

mod jobs;
pub(crate) mod layout;
mod micro;
mod papers;
mod png;
pub(crate) mod svg;
mod traces;

use std::path::{Path, PathBuf};
use uflip_analysis::compare::Subject;
use uflip_analysis::job_report::{self, JobReport};
use uflip_store::error::{StoreError, path_error};
use uflip_store::files::write_whole;

pub(crate) use micro::{place, time_axis, value_axis};

/// What a line or a mark looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Its colour.
    pub ink: Ink,
    /// The shape of its marks; None for a line alone.
    pub shape: Option<Shape>,
    /// Marks with their inside left white.
    pub hollow: bool,
    /// The line between points: its dashes and gaps in points; None for marks
    /// alone, zeros for a line without gaps.
    pub line: Option<[f64; 2]>,
    /// Half the width of a mark, in points.
    pub size: f64,
}

/// Colours. Reads are blue and writes orange, as in the report; they stay apart
/// in the common kinds of colour blindness and in grey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Letters and running averages.
    Text,
    /// Axis labels.
    Soft,
    /// The frame.
    Frame,
    /// Grid lines.
    Grid,
    /// Shaded phases.
    Shade,
    /// What hollow marks are filled with.
    Paper,
    /// Sequential reads.
    Sr,
    /// Random reads.
    Rr,
    /// Sequential writes.
    Sw,
    /// Random writes.
    Rw,
    /// Mixes and devices: 0 to 5.
    Other(u8),
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// ○ ●
    Circle,
    /// △ ▲
    Triangle,
    /// □ ■
    Square,
    /// ◇ ◆
    Diamond,
    /// A small dot without an outline, for thousands of IOs.
    Dot,
}

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// Values at its two ends.
    pub ends: [f64; 2],
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The ends of its whisker.
    pub span: Option<[f64; 2]>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; empty for none.
    pub label: String,
    /// What it looks like.
    pub look: Look,
    /// In order.
    pub points: Vec<Point>,
}

/// A chart, before it has a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, in one line; not drawn, but in the file.
    pub title: String,
    /// The axis across.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// Shaded ranges across, each with a word.
    pub shades: Vec<([f64; 2], String)>,
    /// The curves.
    pub series: Vec<Series>,
}

/// A figure with the data behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of its files, without an ending.
    pub name: String,
    /// What it shows, from which runs.
    pub caption: String,
    /// The chart.
    pub chart: Chart,
    /// The data, as CSV with a header.
    pub csv: String,
}

/// What became of [`write`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// What could not be made, and why.
    pub left_out: Vec<String>,
}

/// All figures of one subject: a chart for each of its micro-benchmarks, and
/// those of the papers' figures 3 to 7 that it was measured for, or those of
/// paper 004 where it is a job; and what is left out, as sentences.
///
/// # Errors
/// [`StoreError`] where a record file cannot be read.
fn of_subject(subject: &Subject, job: Option<&JobReport>) -> Result<(Vec<Figure>, Vec<String>), StoreError> {
    if let Some(job) = job {
        return Ok(jobs::figures(subject, job));
    }
    let mut figures = micro::figures(subject);
    let mut left_out = Vec::new();
    traces::figures(subject, &mut figures, &mut left_out)?;
    papers::granularity(subject, &mut figures, &mut left_out);
    Ok((figures, left_out))
}

/// Writes the figures of all `subjects` into the folder `dir`, which is made:
/// with several, each one's own in a folder of its own, and figure 8 and
/// Table 3 of all together.
///
/// # Errors
/// [`StoreError::Path`] where a file cannot be written.
pub fn write(subjects: &[Subject], dir: &Path) -> Result<Written, StoreError> {
    let mut done = Written::default();
    let folders = folders(subjects, dir);
    let mut jobs = Vec::new();
    for (subject, folder) in subjects.iter().zip(&folders) {
        std::fs::create_dir_all(folder).map_err(path_error("cannot create the folder", folder))?;
        let job = job_report::of_store(&subject.contents)?;
        let (figures, left_out) = of_subject(subject, job.as_ref())?;
        jobs.extend(job.map(|job| (subject, job)));
        let said = left_out
            .into_iter()
            .map(|why| if subjects.len() > 1 { format!("{}: {why}", subject.name) } else { why });
        done.left_out.extend(said);
        write_all(&figures, folder, &mut done)?;
    }
    of_all(subjects, &jobs, dir, &mut done)?;
    Ok(done)
}

/// Figure 8 and Table 3 of the benchmarks, Table 3.1 of the jobs.
fn of_all(
    subjects: &[Subject],
    jobs: &[(&Subject, JobReport)],
    dir: &Path,
    done: &mut Written,
) -> Result<(), StoreError> {
    if !jobs.is_empty() {
        for (ending, text) in jobs::table31(jobs) {
            keep(&dir.join(format!("table3.1.{ending}")), text.as_bytes(), done)?;
        }
    }
    if jobs.len() == subjects.len() {
        return Ok(());
    }
    match papers::locality(subjects) {
        Ok(figure) => write_all(&[figure], dir, done)?,
        Err(why) => done.left_out.push(why),
    }
    for (ending, text) in papers::table3(subjects) {
        keep(&dir.join(format!("table3.{ending}")), text.as_bytes(), done)?;
    }
    Ok(())
}

/// A folder for each subject: `dir` itself for a single one.
fn folders(subjects: &[Subject], dir: &Path) -> Vec<PathBuf> {
    if subjects.len() == 1 {
        return vec![dir.to_path_buf()];
    }
    let mut taken: Vec<String> = Vec::new();
    for subject in subjects {
        let plain = plain_name(&subject.name);
        let free = (1..).map(|n| if n == 1 { plain.clone() } else { format!("{plain}-{n}") });
        let name = free.into_iter().find(|name| !taken.contains(name)).unwrap_or(plain);
        taken.push(name);
    }
    taken.iter().map(|name| dir.join(name)).collect()
}

/// The last part of a path or target, of letters that any file system takes.
fn plain_name(name: &str) -> String {
    let last = name.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or(name);
    let plain = last.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' });
    let plain: String = plain.collect();
    if plain.trim_matches('.').is_empty() { "figures".into() } else { plain }
}

fn write_all(figures: &[Figure], dir: &Path, done: &mut Written) -> Result<(), StoreError> {
    for figure in figures {
        let marks = layout::layout(&figure.chart, layout::COLUMN);
        let file = |ending: &str| dir.join(format!("{}.{ending}", figure.name));
        keep(&file("svg"), svg::document(&marks, layout::COLUMN, &figure.caption).as_bytes(), done)?;
        keep(&file("png"), &png::image(&marks, layout::COLUMN), done)?;
        keep(&file("csv"), figure.csv.as_bytes(), done)?;
    }
    Ok(())
}

fn keep(path: &Path, bytes: &[u8], done: &mut Written) -> Result<(), StoreError> {
    write_whole(path, bytes)?;
    done.files.push(path.to_path_buf());
    Ok(())
}

/// A field of CSV (RFC 4180).
fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

/// A number of CSV; empty where there is none.
fn csv_number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

#[cfg(test)]
mod tests;
