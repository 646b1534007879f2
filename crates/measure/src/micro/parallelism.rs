//! Parallelism: how well does the device overlap IOs of several processes?
//!
//! Source: paper 000/001, section 3.2 (6), Table 1: ParallelDegree in [2^0, …,
//! 2^4] concurrent processes, each on its own share of the target space.

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::Pattern;
use uflip_device::Bytes;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "parallelism",
    title: "Parallelism: several streams at once",
    usual: true,
    parameter: "ParallelDegree",
    categorical: false,
    curves: BASELINES,
    values,
    label: super::number_label,
    parse: super::parse_number,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    super::with_more(preset, super::powers(preset, 0..=4, 1), &[3, 6, 12, 32])
}

fn pattern(curve: Curve, degree: i64, io_size: Bytes) -> Result<Pattern, String> {
    Ok(Pattern::Replicated { degree: super::count(degree)?, basic: curve.basic(io_size)? })
}
