//! A profile as the row of Table 3.
//!
//! Source: paper 001, Table 3. Its blanks and "No" are `None`, its `=` is 1.

use super::Profile;
use serde::{Deserialize, Serialize};

/// The columns of Table 3, in its order and units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table3Row {
    /// SR.
    pub sr_ms: Option<f64>,
    /// RR.
    pub rr_ms: Option<f64>,
    /// SW.
    pub sw_ms: Option<f64>,
    /// RW.
    pub rw_ms: Option<f64>,
    /// Pause, RW: from which pause on random writes cost as sequential ones.
    pub pause_rw_ms: Option<f64>,
    /// Locality, RW: the area, in MiB.
    pub locality_mb: Option<f64>,
    /// Locality, RW: the cost there, relative to SW.
    pub locality_factor: Option<f64>,
    /// Partitioning, SW: concurrent partitions.
    pub partitions: Option<u64>,
    /// Partitioning, SW: the cost, relative to SW.
    pub partitions_factor: Option<f64>,
    /// Reverse, relative to SW.
    pub reverse_factor: Option<f64>,
    /// In place, relative to SW.
    pub in_place_factor: Option<f64>,
    /// Large increments, relative to RW.
    pub large_incr_factor: Option<f64>,
}

/// The profile's row of Table 3.
pub fn table3_row(profile: &Profile) -> Table3Row {
    Table3Row {
        sr_ms: profile.baseline_ms.sr,
        rr_ms: profile.baseline_ms.rr,
        sw_ms: profile.baseline_ms.sw,
        rw_ms: profile.baseline_ms.rw,
        pause_rw_ms: profile.pause_rw_ms,
        locality_mb: profile.locality.area_bytes.map(|b| b as f64 / f64::from(1 << 20)),
        locality_factor: profile.locality.factor,
        partitions: profile.partitions.count,
        partitions_factor: profile.partitions.factor,
        reverse_factor: profile.order.reverse_factor,
        in_place_factor: profile.order.in_place_factor,
        large_incr_factor: profile.order.large_incr_factor,
    }
}

/// A factor as Table 3 prints it: `=` within a tenth of 1, else `x2`, `x1.5`.
pub fn factor_text(factor: f64) -> String {
    match factor {
        f if (f - 1.0).abs() <= 0.1 => "=".into(),
        f if f >= 9.95 => format!("x{f:.0}"),
        f => format!("x{}", format!("{f:.1}").trim_end_matches(".0")),
    }
}
