//! Devices whose figures the papers print, for telling which of them a measured
//! one is like. Source: Table 3 of paper 000/001, as in `reference/tables.toml`.

use crate::profile::Table3Row;
use crate::profile::nearest::Known;
use std::collections::BTreeMap;
use toml::Value;

/// What the papers print, as a text of TOML: their tables, figures and facts.
pub const PRINTED: &str = include_str!("../reference/tables.toml");

/// A cell: `=` is the cost of what it is relative to, `none` no effect.
fn number(cell: Option<&Value>) -> Option<f64> {
    match cell?.as_str()? {
        "=" => Some(1.0),
        text => text.parse().ok(),
    }
}

/// The rows of Table 3 by the names of the catalogue.
pub fn known_devices() -> Vec<Known> {
    let tables: BTreeMap<String, Value> = toml::from_str(PRINTED).unwrap_or_default();
    let devices = tables.get("table3").and_then(Value::as_table).into_iter().flatten();
    let known = |(name, cells): (&String, &Value)| {
        let of = |column| number(cells.get(column));
        let row = Table3Row {
            sr_ms: of("sr"),
            rr_ms: of("rr"),
            sw_ms: of("sw"),
            rw_ms: of("rw"),
            pause_rw_ms: of("pause_rw"),
            locality_mb: of("locality_mb"),
            locality_factor: of("locality_factor"),
            partitions: of("partitions").map(|n| n as u64),
            partitions_factor: of("partitions_factor"),
            reverse_factor: of("reverse"),
            in_place_factor: of("in_place"),
            large_incr_factor: of("large_incr"),
        };
        Known { name: name.clone(), row }
    };
    devices.map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seven_rows_are_read() {
        let known = known_devices();
        assert_eq!(known.len(), 7);
        let mtron = known.iter().find(|k| k.name == "mtron").unwrap();
        let row = &mtron.row;
        assert_eq!((row.rw_ms, row.pause_rw_ms, row.partitions), (Some(9.0), Some(9.0), Some(4)));
        assert_eq!((row.reverse_factor, row.large_incr_factor), (Some(1.0), Some(2.0)));
        let dti = known.iter().find(|k| k.name == "kingston-dti").unwrap();
        assert_eq!((dti.row.pause_rw_ms, dti.row.locality_mb), (None, None));
    }
}
