//! `uflip sim verify`: the papers' tables beside what the measuring code finds
//! on the simulated catalogue.
//!
//! Each device goes through `uflip run sim:NAME` exactly as a user would type
//! it, and its profile is read from the results; nothing here knows a model's
//! parameters. A cell's error is |ln(ours / paper)|, where any value that would
//! be printed as the paper prints it counts as no error. "=" (the cost of the
//! reference) passes within a factor 1.25; "none" (a blank or "No") passes where
//! ours is none.
//!
//! Source: paper 000/001, Table 3.

use crate::args::VerifyArgs;
use crate::command::{print, print_json, run};
use crate::usage;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use uflip_results::Store;
use uflip_results::profile::{self, Table3Row};

/// The papers' tables.
const TABLES: &str = include_str!("../../reference/tables.toml");

/// "Within a factor 1.25": the bound for "=" and what the summary counts.
const CLOSE: f64 = 1.25;

#[derive(Deserialize)]
struct Tables {
    table3: BTreeMap<String, PaperRow>,
}

#[derive(Deserialize)]
struct PaperRow {
    fitted: Vec<String>,
    #[serde(flatten)]
    cells: BTreeMap<String, String>,
}

/// The columns of Table 3 in its order.
const COLUMNS: [&str; 12] = [
    "sr",
    "rr",
    "sw",
    "rw",
    "pause_rw",
    "locality_mb",
    "locality_factor",
    "partitions",
    "partitions_factor",
    "reverse",
    "in_place",
    "large_incr",
];

/// Whether a simulated device's parameters were chosen by a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Parameters were chosen by it.
    Fitted,
    /// It follows from the mechanics.
    Predicted,
}

/// One cell of the table, the paper's and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The device's name in the catalogue.
    pub device: String,
    /// The column.
    pub cell: &'static str,
    /// As printed in the paper.
    pub paper: String,
    /// Ours; null where the profile has none.
    pub ours: Option<f64>,
    /// Fitted or predicted.
    pub kind: Kind,
    /// |ln(ours / paper)|, 0 within the printed rounding; null for "=" and
    /// "none", and where only one of the two has a value.
    pub error: Option<f64>,
    /// Whether it is within a factor 1.25, or agrees on "=" or "none".
    pub close: bool,
}

/// All cells and their summary.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// Every cell.
    pub cells: Vec<Cell>,
    /// How many there are.
    pub count: usize,
    /// How many are close.
    pub close: usize,
    /// exp of the mean error of the cells that have one.
    pub geometric_mean_factor: Option<f64>,
    /// The largest factor between ours and the paper's.
    pub worst_factor: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// Where a device cannot be measured.
pub fn verify(args: VerifyArgs) -> anyhow::Result<()> {
    let tables: Tables = toml::from_str(TABLES).context("the built-in tables")?;
    let wanted = |name: &String| args.devices.is_empty() || args.devices.contains(name);
    if let Some(unknown) = args.devices.iter().find(|name| !tables.table3.contains_key(*name)) {
        let names: Vec<&str> = tables.table3.keys().map(String::as_str).collect();
        return Err(usage(format!("{unknown} is not in Table 3; type {}", names.join(", "))));
    }
    let names: Vec<&String> = tables.table3.keys().filter(|n| wanted(n)).collect();
    let rows = measure_all(&names, args.seed)?;
    let cells = names.iter().zip(&rows).flat_map(|(name, row)| compare(name, &tables.table3[*name], row));
    let verification = summary(cells.collect());
    if args.json { print_json(&verification) } else { print(&as_text(&verification)) }
}

/// Measures the devices, two at a time: one a core of a small machine.
fn measure_all(names: &[&String], seed: u64) -> anyhow::Result<Vec<Table3Row>> {
    let next = Mutex::new(names.iter().enumerate());
    let rows = Mutex::new(Vec::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let Some((index, name)) = next.lock().expect("no worker panicked").next() else { return Ok(()) };
            let row = measure(name, seed).with_context(|| format!("sim:{name}"))?;
            rows.lock().expect("no worker panicked").push((index, row));
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().try_for_each(|w| w.join().expect("no worker panicked"))
    })?;
    let mut rows = rows.into_inner().expect("no worker panicked");
    rows.sort_by_key(|(index, _)| *index);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn measure(name: &str, seed: u64) -> anyhow::Result<Table3Row> {
    let folder = std::env::temp_dir().join(format!("uflip-verify-{}-{name}", std::process::id()));
    let measured = run::measure_simulated(name, seed, &folder).and_then(|()| row_of(&folder));
    // Best effort: it is a folder of this process in the temporary folder.
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

fn row_of(folder: &Path) -> anyhow::Result<Table3Row> {
    Ok(profile::table3_row(&profile::build(&Store::open(folder)?)?))
}

fn ours(row: &Table3Row, column: &str) -> Option<f64> {
    match column {
        "sr" => row.sr_ms,
        "rr" => row.rr_ms,
        "sw" => row.sw_ms,
        "rw" => row.rw_ms,
        "pause_rw" => row.pause_rw_ms,
        "locality_mb" => row.locality_mb,
        "locality_factor" => row.locality_factor,
        "partitions" => row.partitions.map(|n| n as f64),
        "partitions_factor" => row.partitions_factor,
        "reverse" => row.reverse_factor,
        "in_place" => row.in_place_factor,
        _ => row.large_incr_factor,
    }
}

fn compare(device: &str, paper: &PaperRow, row: &Table3Row) -> Vec<Cell> {
    let cell = |column: &&'static str| {
        let printed = paper.cells.get(*column)?;
        let (ours, fitted) = (ours(row, column), paper.fitted.iter().any(|f| f == *column));
        let (error, close) = judge(printed, ours);
        Some(Cell {
            device: device.to_string(),
            cell: column,
            paper: printed.clone(),
            ours,
            kind: if fitted { Kind::Fitted } else { Kind::Predicted },
            error,
            close,
        })
    };
    COLUMNS.iter().filter_map(cell).collect()
}

/// The error of a cell, where it has one, and whether it is close.
fn judge(printed: &str, ours: Option<f64>) -> (Option<f64>, bool) {
    match (printed, ours) {
        ("none", ours) => (None, ours.is_none()),
        ("=", Some(ours)) => (None, (1.0 / CLOSE..=CLOSE).contains(&ours)),
        (_, None) => (None, false),
        (printed, Some(ours)) => {
            let Ok(paper) = printed.parse::<f64>() else { return (None, false) };
            let decimals = printed.split_once('.').map_or(0, |(_, d)| d.len() as i32);
            let half = 0.5 * 10f64.powi(-decimals);
            let nearest = ours.clamp(paper - half, paper + half);
            let error = (ours / nearest).ln().abs();
            (Some(error), error <= CLOSE.ln())
        }
    }
}

fn summary(cells: Vec<Cell>) -> Verification {
    let errors: Vec<f64> = cells.iter().filter_map(|c| c.error).collect();
    let mean = (!errors.is_empty()).then(|| (errors.iter().sum::<f64>() / errors.len() as f64).exp());
    Verification {
        count: cells.len(),
        close: cells.iter().filter(|c| c.close).count(),
        geometric_mean_factor: mean,
        worst_factor: errors.iter().copied().reduce(f64::max).map(f64::exp),
        cells,
    }
}

fn as_text(v: &Verification) -> String {
    let mut text = format!(
        "{:18}{:18}{:>8}{:>10}{:>8}  {}\n",
        "device", "cell of Table 3", "paper", "ours", "error", "kind"
    );
    for c in &v.cells {
        let ours = c.ours.map_or("none".to_string(), |o| format!("{o:.3}"));
        let error = c.error.map_or(String::new(), |e| format!("{e:.2}"));
        let kind = if c.kind == Kind::Fitted { "fitted" } else { "predicted" };
        let mark = if c.close { "" } else { "  <- not within 1.25" };
        text += &format!("{:18}{:18}{:>8}{ours:>10}{error:>8}  {kind}{mark}\n", c.device, c.cell, c.paper);
    }
    let factor = |f: Option<f64>| f.map_or("-".to_string(), |f| format!("{f:.2}"));
    text += &format!(
        "\n{} of {} cells within a factor {CLOSE} ({:.0} %); geometric mean of the errors x{}, worst x{}\n",
        v.close,
        v.count,
        100.0 * v.close as f64 / v.count.max(1) as f64,
        factor(v.geometric_mean_factor),
        factor(v.worst_factor)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_rounding_is_no_error() {
        assert_eq!(judge("0.4", Some(0.36)), (Some(0.0), true));
        assert_eq!(judge("9", Some(9.49)), (Some(0.0), true));
        let (error, close) = judge("0.4", Some(0.9));
        assert!((error.unwrap() - 2f64.ln()).abs() < 1e-12 && !close);
        assert!(judge("20", Some(25.0)).1 && !judge("20", Some(26.0)).1);
    }

    #[test]
    fn words_of_the_table_pass_or_fail() {
        assert_eq!(judge("none", None), (None, true));
        assert_eq!(judge("none", Some(1.0)), (None, false));
        assert_eq!(judge("=", Some(1.2)), (None, true));
        assert_eq!(judge("=", Some(1.3)), (None, false));
        assert_eq!(judge("=", None), (None, false));
        assert_eq!(judge("4", None), (None, false));
    }

    #[test]
    fn the_tables_name_devices_of_the_catalogue_and_columns_that_exist() {
        let tables: Tables = toml::from_str(TABLES).unwrap();
        assert_eq!(tables.table3.len(), 7);
        for (name, row) in &tables.table3 {
            assert!(uflip_sim::catalogue::names().any(|n| n == name), "{name}");
            assert_eq!(row.cells.len(), COLUMNS.len(), "{name}");
            for column in row.cells.keys().chain(&row.fitted) {
                assert!(COLUMNS.contains(&column.as_str()), "{name}: {column}");
            }
        }
    }
}
