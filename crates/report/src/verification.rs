//! The papers' figures beside ours, as text.

use uflip_analysis::judge::CLOSE;
use uflip_analysis::verification::{CellSummary, Kind, TABLES, Verification};

/// All cells by table, with a line of summary each.
pub fn text(v: &Verification) -> String {
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
                &format!("{:33} {:19} {:>8}{ours:>10}{error:>7}  {kind}{mark}\n", c.device, c.cell, c.paper);
        }
        text += &format!("{}\n\n", summary_text(summary));
    }
    text + &format!("all: {}\n", summary_text(&v.all))
}

fn summary_text(s: &CellSummary) -> String {
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
