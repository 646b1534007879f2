//! Charts and tables for papers: SVG and PNG of a column's width, and the data
//! behind each as CSV.
//!
//! Method: each figure is a chart, which the drawing core (`draw.rs`) lays out and
//! paints, as it does for the report's page and the comparison. The numbers are the
//! [`View`](crate::view::View)'s own, those of the report.
//!
//! | file | what |
//! |---|---|
//! | `micro.rs` | a chart for each micro-benchmark |
//! | `traces.rs` | the papers' figures 3, 4 and 5: response times IO by IO |
//! | `papers.rs` | figures 6, 7, 8 and Table 3 |
//! | `jobs.rs` | the figures of paper 004 from a job's runs, and Table 3.1 |
//!
//! Sources: papers 000/001, figures 3 to 8 and Table 3; paper 004, section 3.3 and
//! appendix C.

pub(crate) mod jobs;
pub(crate) mod micro;
mod papers;
mod traces;

use crate::draw::{Chart, layout, png, svg};

use std::path::{Path, PathBuf};
use uflip_analysis::compare::Subject;
use uflip_analysis::job_report::{self, JobReport};
use uflip_device::identity::printable;
use uflip_store::error::{StoreError, path_error};
use uflip_store::files::write_whole;
use uflip_store::output;

/// A figure with the data behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
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
/// [`StoreError::Refused`] where the folder is one that results need, [`StoreError::Path`]
/// where a file cannot be written.
pub fn write(subjects: &[Subject], dir: &Path) -> Result<Written, StoreError> {
    output::check_folder(dir)?;
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
    let painter = png::Painter::new();
    for figure in figures {
        let marks = layout::layout(&figure.chart, layout::COLUMN);
        let drawn = svg::document(&marks, layout::COLUMN, &printable(&figure.caption));
        let file = |ending: &str| dir.join(format!("{}.{ending}", figure.name));
        keep(&file("svg"), drawn.as_bytes(), done)?;
        match painter.image(&drawn) {
            Some(png) => keep(&file("png"), &png, done)?,
            None => done
                .left_out
                .push(format!("{}.png: the drawing could not be painted; its SVG is there", figure.name)),
        }
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
mod tests {
    use super::plain_name;

    #[test]
    fn names_of_folders_are_plain_and_apart() {
        assert_eq!(plain_name("sim:mtron"), "mtron");
        assert_eq!(plain_name("/tmp/a b/"), "a_b");
        assert_eq!(plain_name("../.."), "figures");
    }
}
