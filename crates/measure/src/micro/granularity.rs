//! Granularity: which IOSize does the device favour?
//!
//! Source: paper 000/001, section 3.2 (1), Table 1: IOSize in [2^0, …, 2^9] x
//! 512 B "plus some non-powers of 2". Which ones is not said: here sizes between
//! two powers of two, and 33 KB, one sector pair past the usual 32 KB.

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::Pattern;
use uflip_device::Bytes;

const SECTOR: i64 = 512;
const NON_POWERS: &[i64] = &[3 << 9, 12 << 10, 24 << 10, 33 << 10, 48 << 10, 96 << 10];
const MORE_NON_POWERS: &[i64] = &[3 << 10, 6 << 10, 20 << 10, 40 << 10, 64 << 10 | 512, 80 << 10, 192 << 10];

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "granularity",
    title: "Granularity: response time by the size of the IOs",
    usual: true,
    parameter: "IOSize",
    categorical: false,
    curves: BASELINES,
    values,
    label: super::bytes_label,
    parse: super::parse_bytes,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    let mut values = super::powers(preset, 0..=9, SECTOR);
    if preset != Preset::Quick {
        values.extend(NON_POWERS);
        values.sort_unstable();
    }
    super::with_more(preset, values, MORE_NON_POWERS)
}

fn pattern(curve: Curve, io_size: i64, _: Bytes) -> Result<Pattern, String> {
    let io_size = super::bytes(io_size)?;
    Ok(Pattern::Basic(curve.basic(io_size)?))
}
