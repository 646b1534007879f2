//! Order: what do reverse (Incr = -1), in-place (Incr = 0) and strided
//! (Incr > 1) patterns cost?
//!
//! Source: paper 000/001, section 3.2 (5), Table 1: Incr in [-1, 0, 2^0, …,
//! 2^8], sequential patterns only. At 32 KB, gaps of 1 MB to 8 MB (Table 3's
//! "Large Incr") are Incr = 32 to 256.

use super::{Curve, Preset, Row, SEQUENTIAL};
use crate::pattern::{Basic, Location, Pattern};
use uflip_device::Bytes;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "order",
    title: "Order: steps forward, backward and in place",
    usual: true,
    parameter: "Incr",
    categorical: true,
    curves: SEQUENTIAL,
    values,
    label: super::number_label,
    parse: super::parse_number,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    let mut values = vec![-1, 0];
    values.extend(super::powers(preset, 0..=8, 1));
    super::with_more(preset, values, &[-2, 3, 48, 96, 192, 384, 512])
}

fn pattern(curve: Curve, incr: i64, io_size: Bytes) -> Result<Pattern, String> {
    Ok(Pattern::Basic(Basic { location: Location::Ordered { incr }, ..curve.sequential(io_size)? }))
}
