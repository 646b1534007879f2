//! `uflip sim verify`: the papers' tables and facts beside what the measuring
//! code finds on the simulated catalogue.
//!
//! Each device goes through the commands that a user would type
//! (`verify/experiments.rs`), and its figures are read from the results; nothing
//! here knows a model's parameters. What counts as agreement is in
//! `analysis/src/judge.rs`; what the papers print, and which cells the models were
//! fitted to, in `reference/tables.toml`.
//!
//! Source: papers 000/001, Table 3, sections 4 and 5 and figures 3 to 7; paper
//! 002, section 4.1; paper 004, Table 3.1, section 3.3 and appendix C.

mod experiments;
mod standard;

use crate::args::VerifyArgs;
use crate::command::{print, print_json};
use crate::private::PrivateFolder;
use crate::usage;
use anyhow::Context;
use experiments::{Experiment, How};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use uflip_analysis::judge::{CLOSE, judge};
use uflip_analysis::known_devices::PRINTED;

/// The tables, and what they are called in print.
const TABLES: [(&str, &str); 5] = [
    ("table3", "uFLIP, CIDR 2009: Table 3"),
    ("text", "uFLIP, CIDR 2009: sections 4 and 5, figures 3 to 7"),
    ("logical_block", "FAST 2009: section 4.1"),
    ("table31", "Ajwani et al. 2008: Table 3.1, MB/s"),
    ("recovery", "Ajwani et al. 2008: section 3.3, appendix C"),
];

/// The columns of Table 3 in its order.
const TABLE3_COLUMNS: [&str; 12] = [
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

/// Device after device of a table.
type Table = BTreeMap<String, PaperRow>;

#[derive(Deserialize)]
struct PaperRow {
    #[serde(default)]
    fitted: Vec<String>,
    #[serde(flatten)]
    cells: BTreeMap<String, String>,
}

/// Figures by the name of their cell; what was not found is not there.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<&'static str, f64>);

impl Figures {
    /// Notes a figure, where there is one.
    fn put(&mut self, cell: &'static str, value: Option<f64>) {
        self.0.extend(value.map(|value| (cell, value)));
    }
}

/// Whether a simulated device's parameters were chosen by a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Parameters were chosen by it.
    Fitted,
    /// It follows from the mechanics.
    Predicted,
}

/// One cell of a table, the paper's and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The table's key in `reference/tables.toml`.
    pub table: &'static str,
    /// The device's name in the catalogue.
    pub device: String,
    /// The column or fact.
    pub cell: String,
    /// As printed in the paper.
    pub paper: String,
    /// Ours; null where nothing of the kind was found.
    pub ours: Option<f64>,
    /// Fitted or predicted.
    pub kind: Kind,
    /// |ln(ours / paper)|, 0 within the printed rounding; null for "=" and
    /// "none", and where only one of the two has a value.
    pub error: Option<f64>,
    /// Whether it is within a factor 1.25, or agrees on "=" or "none".
    pub close: bool,
}

/// Cells counted.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How many there are.
    pub count: usize,
    /// How many are close.
    pub close: usize,
    /// exp of the mean error of the cells that have one.
    pub geometric_mean_factor: Option<f64>,
    /// The largest factor between ours and the paper's.
    pub worst_factor: Option<f64>,
}

/// All cells and their summaries.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// Every cell.
    pub cells: Vec<Cell>,
    /// By table.
    pub tables: BTreeMap<&'static str, Summary>,
    /// Of all tables together.
    pub all: Summary,
}

/// Runs the command.
///
/// # Errors
/// Where a device cannot be measured.
pub fn verify(args: VerifyArgs) -> anyhow::Result<()> {
    let tables = tables()?;
    let known: BTreeSet<&String> = tables.values().flat_map(BTreeMap::keys).collect();
    if let Some(unknown) = args.devices.iter().find(|name| !known.contains(name)) {
        let names: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
        return Err(usage(format!("no paper has figures of {unknown}; type {}", names.join(", "))));
    }
    let wanted = |name: &String| args.devices.is_empty() || args.devices.contains(name);
    let names: Vec<&String> = known.into_iter().filter(|name| wanted(name)).collect();
    let found = measure_all(&names, &tables, How { seed: args.seed, method: args.method })?;
    let verification = summed_up(compare(&tables, &found));
    if args.json { print_json(&verification) } else { print(&as_text(&verification)) }
}

fn tables() -> anyhow::Result<BTreeMap<String, Table>> {
    toml::from_str(PRINTED).context("the built-in tables")
}

/// What has to be measured for the cells that `device` has.
fn experiments_for(device: &str, tables: &BTreeMap<String, Table>) -> Vec<Experiment> {
    let row = |table: &str| tables.get(table).and_then(|t| t.get(device));
    let says = |cell: &str| row("text").is_some_and(|row| row.cells.contains_key(cell));
    let all = [
        (Experiment::Standard, row("table3").is_some()),
        (Experiment::Lingering, says("lingering_reads")),
        (Experiment::New, says("new_rw_16k_ms")),
        (Experiment::LogicalBlock, row("logical_block").is_some()),
        (Experiment::Job, row("table31").is_some() || row("recovery").is_some()),
    ];
    all.into_iter().filter(|(_, needed)| *needed).map(|(experiment, _)| experiment).collect()
}

/// Does the experiments, two at a time: one a core of a small machine.
fn measure_all(
    names: &[&String],
    tables: &BTreeMap<String, Table>,
    how: How,
) -> anyhow::Result<BTreeMap<String, Figures>> {
    let of =
        |name: &&String| experiments_for(name, tables).into_iter().map(|e| ((*name).clone(), e)).collect();
    let todo: Vec<(String, Experiment)> = names.iter().flat_map(|name| -> Vec<_> { of(name) }).collect();
    let next = Mutex::new(todo.into_iter());
    let all = Mutex::new(BTreeMap::<String, Figures>::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let Some((name, experiment)) = next.lock().expect("no worker panicked").next() else {
                return Ok(());
            };
            let found = measure(experiment, &name, how).with_context(|| format!("sim:{name}"))?;
            all.lock().expect("no worker panicked").entry(name).or_default().0.extend(found.0);
        }
    };
    std::thread::scope(|scope| {
        // Where no thread is to be had it takes longer.
        let other = std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let own = work();
        other.map_or(Ok(()), |w| w.join().expect("no worker panicked")).and(own)
    })?;
    Ok(all.into_inner().expect("no worker panicked"))
}

fn measure(experiment: Experiment, name: &str, how: How) -> anyhow::Result<Figures> {
    let folder = PrivateFolder::new("uflip-verify")?;
    experiments::measure(experiment, name, how, &folder.path().join("out"))
}

fn compare(tables: &BTreeMap<String, Table>, found: &BTreeMap<String, Figures>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (table, _) in TABLES {
        let rows = tables.get(table).into_iter().flatten();
        for (device, row, figures) in rows.filter_map(|(d, row)| Some((d, row, found.get(d)?))) {
            let mut of_row: Vec<Cell> = row
                .cells
                .iter()
                .map(|(cell, printed)| compared(table, device, row, cell, printed, figures))
                .collect();
            if table == "table3" {
                of_row.sort_by_key(|c| TABLE3_COLUMNS.iter().position(|column| *column == c.cell));
            }
            cells.append(&mut of_row);
        }
    }
    cells
}

fn compared(
    table: &'static str,
    device: &str,
    row: &PaperRow,
    cell: &str,
    printed: &str,
    figures: &Figures,
) -> Cell {
    let ours = figures.0.get(cell).copied();
    let (error, close) = judge(printed, ours);
    let fitted = row.fitted.iter().any(|f| f == cell);
    let kind = if fitted { Kind::Fitted } else { Kind::Predicted };
    Cell {
        table,
        device: device.to_string(),
        cell: cell.to_string(),
        paper: printed.to_string(),
        ours,
        kind,
        error,
        close,
    }
}

fn summary<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Summary {
    let errors: Vec<f64> = cells.clone().filter_map(|c| c.error).collect();
    let mean = (!errors.is_empty()).then(|| (errors.iter().sum::<f64>() / errors.len() as f64).exp());
    Summary {
        count: cells.clone().count(),
        close: cells.filter(|c| c.close).count(),
        geometric_mean_factor: mean,
        worst_factor: errors.iter().copied().reduce(f64::max).map(f64::exp),
    }
}

fn summed_up(cells: Vec<Cell>) -> Verification {
    let of = |table| (table, summary(cells.iter().filter(move |c| c.table == table)));
    let tables = TABLES.iter().map(|(table, _)| of(*table)).filter(|(_, s)| s.count > 0).collect();
    let all = summary(cells.iter());
    Verification { cells, tables, all }
}

fn as_text(v: &Verification) -> String {
    let mut text = String::new();
    for (table, title) in TABLES {
        let Some(summary) = v.tables.get(table) else { continue };
        text += &format!(
            "{title}\n{:34}{:20}{:>8}{:>10}{:>7}  kind\n",
            "device", "cell", "paper", "ours", "error"
        );
        for c in v.cells.iter().filter(|c| c.table == table) {
            let ours = c.ours.map_or("none".to_string(), |o| format!("{o:.3}"));
            let error = c.error.map_or(String::new(), |e| format!("{e:.2}"));
            let kind = if c.kind == Kind::Fitted { "fitted" } else { "predicted" };
            let mark = if c.close { "" } else { "  <- not within 1.25" };
            text +=
                &format!("{:34}{:20}{:>8}{ours:>10}{error:>7}  {kind}{mark}\n", c.device, c.cell, c.paper);
        }
        text += &format!("{}\n\n", summary_text(summary));
    }
    text + &format!("all: {}\n", summary_text(&v.all))
}

fn summary_text(s: &Summary) -> String {
    let factor = |f: Option<f64>| f.map_or("-".to_string(), |f| format!("{f:.2}"));
    format!(
        "{} of {} cells within a factor {CLOSE} ({:.0} %); geometric mean of the errors x{}, worst x{}",
        s.close,
        s.count,
        100.0 * s.close as f64 / s.count.max(1) as f64,
        factor(s.geometric_mean_factor),
        factor(s.worst_factor)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_name_devices_of_the_catalogue_and_cells_that_exist() {
        let tables = tables().unwrap();
        assert_eq!(tables["table3"].len(), 7);
        for (table, rows) in &tables {
            assert!(TABLES.iter().any(|(known, _)| known == table), "{table}");
            for (name, row) in rows {
                assert!(uflip_sim::catalogue::names().any(|n| n == name), "{name}");
                assert!(!experiments_for(name, &tables).is_empty(), "{name}");
                assert!(row.fitted.iter().all(|f| row.cells.contains_key(f)), "{name}: fitted");
                if table == "table3" {
                    assert_eq!(row.cells.len(), TABLE3_COLUMNS.len(), "{name}");
                    assert!(row.cells.keys().all(|c| TABLE3_COLUMNS.contains(&c.as_str())), "{name}");
                }
            }
        }
    }

    #[test]
    fn what_is_missing_or_far_off_is_counted_as_such() {
        let tables: BTreeMap<String, Table> =
            toml::from_str("[table3.mtron]\nsr = \"0.4\"\nrr = \"0.5\"\nrw = \"9\"\nfitted = [\"sr\"]\n")
                .unwrap();
        let figures = Figures(BTreeMap::from([("sr", 0.42), ("rw", 18.0)]));
        let v = summed_up(compare(&tables, &BTreeMap::from([("mtron".to_string(), figures)])));
        let of = |name: &str| v.cells.iter().find(|c| c.cell == name).unwrap();
        assert!(of("sr").close && of("sr").kind == Kind::Fitted);
        assert!(!of("rr").close && of("rr").ours.is_none());
        assert!(!of("rw").close && of("rw").kind == Kind::Predicted);
        assert_eq!((v.all.count, v.all.close), (3, 1));
        assert!((v.all.worst_factor.unwrap() - 18.0 / 9.5).abs() < 1e-9);
    }
}
