//! Which known devices a measured one is most like.
//!
//! Method: the distance of two rows of Table 3 is the root of the mean square of
//! ln(ours / theirs) over the columns that both tell of, so that a column that
//! is twice as large counts as one that is half as large. A column where one
//! device shows an effect and the other, measured, shows none counts as
//! [`NO_EFFECT`]; what was not measured does not count. Told as a factor: by how
//! much the columns differ on average.
//!
//! Source: paper 001, Table 3 ("could be used as the basis for a course
//! classification"); the distance is ours.

use super::{Profile, Table3Row, table3_row};
use serde::{Deserialize, Serialize};
use uflip_measure::Baseline;

/// An effect against none, as a factor.
pub const NO_EFFECT: f64 = 4.0;
/// Rows with fewer columns in common say nothing.
const LEAST_COLUMNS: usize = 3;

/// A device that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its row of Table 3; all of it is known, so None is "no effect".
    pub row: Table3Row,
}

/// A known device beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Its name.
    pub name: String,
    /// By how much the columns differ on average, as a factor from 1 on.
    pub factor: f64,
    /// Columns compared.
    pub columns: usize,
    /// The column that differs most, with the known device's value in words.
    pub farthest: String,
    /// By how much it differs: ours over theirs; None where one has no effect.
    pub farthest_ratio: Option<f64>,
}

/// A column of Table 3: its name, unit, and the evidence that it was measured.
struct DistanceColumn {
    name: &'static str,
    unit: &'static str,
    of: fn(&Table3Row) -> Option<f64>,
    measured: fn(&Profile) -> bool,
}

/// True where runs stand behind a figure.
fn rests(evidence: Option<&super::Evidence>) -> bool {
    evidence.is_some_and(|e| !e.runs.is_empty())
}

const COLUMNS: [DistanceColumn; 10] = [
    DistanceColumn {
        name: Baseline::Sr.name(),
        unit: " ms",
        of: |r| r.sr_ms,
        measured: |p| p.baseline_ms.sr.is_some(),
    },
    DistanceColumn {
        name: Baseline::Rr.name(),
        unit: " ms",
        of: |r| r.rr_ms,
        measured: |p| p.baseline_ms.rr.is_some(),
    },
    DistanceColumn {
        name: Baseline::Sw.name(),
        unit: " ms",
        of: |r| r.sw_ms,
        measured: |p| p.baseline_ms.sw.is_some(),
    },
    DistanceColumn {
        name: Baseline::Rw.name(),
        unit: " ms",
        of: |r| r.rw_ms,
        measured: |p| p.baseline_ms.rw.is_some(),
    },
    DistanceColumn {
        name: "pause that makes RW cost as SW",
        unit: " ms",
        of: |r| r.pause_rw_ms,
        measured: |p| rests(p.evidence.get("pause_rw_ms")),
    },
    DistanceColumn {
        name: "locality area of RW",
        unit: " MB",
        of: |r| r.locality_mb,
        measured: |p| rests(p.locality.evidence.get("area_bytes")),
    },
    DistanceColumn {
        name: "cheap partitions of SW",
        unit: "",
        of: |r| r.partitions.map(|n| n as f64),
        measured: |p| rests(p.partitions.evidence.get("count")),
    },
    DistanceColumn {
        name: "cost of reverse writes",
        unit: " x SW",
        of: |r| r.reverse_factor,
        measured: |p| p.order.reverse_factor.is_some(),
    },
    DistanceColumn {
        name: "cost of writes in place",
        unit: " x SW",
        of: |r| r.in_place_factor,
        measured: |p| p.order.in_place_factor.is_some(),
    },
    DistanceColumn {
        name: "cost of large steps",
        unit: " x RW",
        of: |r| r.large_incr_factor,
        measured: |p| p.order.large_incr_factor.is_some(),
    },
];

/// The known devices, the nearest first; none where too little was measured.
pub fn nearest(profile: &Profile, known: &[Known]) -> Vec<Nearest> {
    let ours = table3_row(profile);
    let mut all: Vec<Nearest> = known.iter().filter_map(|k| one(profile, &ours, k)).collect();
    all.sort_by(|a, b| a.factor.total_cmp(&b.factor).then(a.name.cmp(&b.name)));
    all
}

fn one(profile: &Profile, ours: &Table3Row, known: &Known) -> Option<Nearest> {
    let (mut squares, mut columns) = (0.0, 0);
    let mut farthest: Option<(f64, String, Option<f64>)> = None;
    for column in COLUMNS.iter().filter(|c| (c.measured)(profile)) {
        let (a, b) = ((column.of)(ours), (column.of)(&known.row));
        let ratio = a.zip(b).map(|(a, b)| a / b).filter(|r| r.is_finite() && *r > 0.0);
        let far = match (a, b) {
            (None, None) => 0.0,
            _ => ratio.map_or(NO_EFFECT.ln(), |r| r.ln().abs()),
        };
        squares += far * far;
        columns += 1;
        if farthest.as_ref().is_none_or(|(most, ..)| far > *most) {
            let theirs = b.map_or("none".to_string(), |b| format!("{b}{}", column.unit));
            farthest = Some((far, format!("{} ({theirs})", column.name), ratio));
        }
    }
    let (_, farthest, farthest_ratio) = farthest.filter(|_| columns >= LEAST_COLUMNS)?;
    let factor = (squares / columns as f64).sqrt().exp();
    Some(Nearest { name: known.name.clone(), factor, columns, farthest, farthest_ratio })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Evidence;

    fn known(name: &str, rw: f64, pause: Option<f64>) -> Known {
        let row = Table3Row {
            sr_ms: Some(1.0),
            rr_ms: Some(1.0),
            sw_ms: Some(1.0),
            rw_ms: Some(rw),
            pause_rw_ms: pause,
            ..Table3Row::default()
        };
        Known { name: name.into(), row }
    }

    fn measured(rw: f64) -> Profile {
        let mut profile = crate::profile::tests::empty();
        let ms = &mut profile.baseline_ms;
        (ms.sr, ms.rr, ms.sw, ms.rw) = (Some(1.0), Some(1.0), Some(1.0), Some(rw));
        profile
    }

    #[test]
    fn twice_as_much_is_as_far_as_half_as_much() {
        let all = nearest(&measured(8.0), &[known("far", 64.0, None), known("a", 4.0, None)]);
        assert_eq!(all.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["a", "far"]);
        // One of four columns differs, by a factor 2: sqrt(ln(2)^2 / 4) = ln(2) / 2.
        assert!((all[0].factor - 2f64.sqrt()).abs() < 1e-12, "{all:?}");
        assert!((all[1].factor - 8f64.sqrt()).abs() < 1e-12, "{all:?}");
        assert_eq!((all[0].columns, all[0].farthest.as_str()), (4, "RW (4 ms)"));
        assert_eq!(all[0].farthest_ratio, Some(2.0));
        assert_eq!(nearest(&measured(4.0), &[known("b", 8.0, None)])[0].factor, all[0].factor);
    }

    #[test]
    fn what_was_not_measured_does_not_count_and_no_effect_does() {
        let mut profile = measured(4.0);
        assert_eq!(nearest(&profile, &[known("a", 4.0, Some(5.0))])[0].columns, 4);
        profile.evidence.insert("pause_rw_ms".into(), Evidence::new("pause-rw", [7]));
        let found = &nearest(&profile, &[known("a", 4.0, Some(5.0))])[0];
        assert_eq!((found.columns, found.farthest_ratio), (5, None));
        assert!((found.factor.ln() - (NO_EFFECT.ln().powi(2) / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(found.farthest, "pause that makes RW cost as SW (5 ms)");
        assert_eq!(nearest(&profile, &[known("a", 4.0, None)])[0].factor, 1.0);
        let mut little = crate::profile::tests::empty();
        little.baseline_ms.sr = Some(1.0);
        assert_eq!(nearest(&little, &[known("a", 4.0, None)]), []);
    }
}
