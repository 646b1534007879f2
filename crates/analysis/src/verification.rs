//! The papers' tables and facts beside what was found on the simulated catalogue.
//!
//! What: each cell that a paper prints, ours, whether a model was fitted to it, and how
//! far the two are apart. How: figures come from results folders alone (`standard.rs`,
//! `jobs.rs`); what counts as agreement is in `judge.rs`; what the papers print, and
//! which cells the models were fitted to, in `reference/tables.toml`.
//!
//! Source: papers 000/001, Table 3, sections 4 and 5 and figures 3 to 7; paper
//! 002, section 4.1; paper 004, Table 3.1, section 3.3 and appendix C.

pub mod jobs;
pub mod standard;

use crate::judge::judge;
use crate::known_devices::PRINTED;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The tables, and what they are called in print.
pub const TABLES: [(&str, &str); 5] = [
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
pub type PaperTable = BTreeMap<String, PaperRow>;

/// What a table prints of a device.
#[derive(Clone, Debug, Deserialize)]
pub struct PaperRow {
    /// The cells that its model was fitted to.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// The cells as printed.
    #[serde(flatten)]
    pub cells: BTreeMap<String, String>,
}

/// Figures by the name of their cell; what was not found is not there.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<&'static str, f64>);

impl Figures {
    /// Notes a figure, where there is one.
    pub fn put(&mut self, cell: &'static str, value: Option<f64>) {
        self.0.extend(value.map(|value| (cell, value)));
    }

    /// Takes those of another experiment.
    pub fn join(&mut self, other: Figures) {
        self.0.extend(other.0);
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
pub struct CellSummary {
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
    pub tables: BTreeMap<&'static str, CellSummary>,
    /// Of all tables together.
    pub all: CellSummary,
}

/// What the papers print, table after table.
///
/// # Errors
/// Where the built-in tables cannot be read, which a test would tell.
pub fn tables() -> Result<BTreeMap<String, PaperTable>, toml::de::Error> {
    toml::from_str(PRINTED)
}

/// Every cell of the devices that something was found of.
pub fn compare(tables: &BTreeMap<String, PaperTable>, found: &BTreeMap<String, Figures>) -> Vec<Cell> {
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

fn summary<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> CellSummary {
    let errors: Vec<f64> = cells.clone().filter_map(|c| c.error).collect();
    let mean = (!errors.is_empty()).then(|| (errors.iter().sum::<f64>() / errors.len() as f64).exp());
    CellSummary {
        count: cells.clone().count(),
        close: cells.filter(|c| c.close).count(),
        geometric_mean_factor: mean,
        worst_factor: errors.iter().copied().reduce(f64::max).map(f64::exp),
    }
}

/// The cells with a summary of each table and of all.
pub fn summed_up(cells: Vec<Cell>) -> Verification {
    let of = |table| (table, summary(cells.iter().filter(move |c| c.table == table)));
    let tables = TABLES.iter().map(|(table, _)| of(*table)).filter(|(_, s)| s.count > 0).collect();
    let all = summary(cells.iter());
    Verification { cells, tables, all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_known_and_table_3_has_its_columns() {
        let tables = tables().unwrap();
        assert_eq!(tables["table3"].len(), 7);
        for (table, rows) in &tables {
            assert!(TABLES.iter().any(|(known, _)| known == table), "{table}");
            for (name, row) in rows {
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
        let tables: BTreeMap<String, PaperTable> =
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
