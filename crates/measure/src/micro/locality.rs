//! Locality: how much cheaper are IOs within a small area?
//!
//! Source: paper 000/001, section 3.2 (3), Table 1: TargetSize in [2^0, …, 2^16]
//! x IOSize for random patterns and [2^0, …, 2^8] x IOSize for sequential ones,
//! which start over at the end: TargetOffset + (i x IOSize) mod TargetSize.

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::{Basic, Pattern};
use uflip_device::Bytes;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "locality",
    title: "Locality: IOs within a smaller and smaller target space",
    usual: true,
    parameter: "TargetSize",
    categorical: false,
    curves: BASELINES,
    values,
    label: super::bytes_label,
    parse: super::parse_bytes,
    pattern,
};

fn values(preset: Preset, curve: Curve, io_size: Bytes) -> Vec<i64> {
    let random = curve.baselines().iter().any(|b| b.is_random());
    let unit = i64::try_from(io_size.0).unwrap_or(i64::MAX);
    let (last, more) =
        if random { (16, &[3, 12, 48, 192, 768, 3072, 12288][..]) } else { (8, &[3, 12, 48][..]) };
    let in_ios = super::with_more(preset, super::powers(preset, 0..=last, 1), more);
    in_ios.into_iter().map(|n| n.saturating_mul(unit)).collect()
}

fn pattern(curve: Curve, target_size: i64, io_size: Bytes) -> Result<Pattern, String> {
    let target_size = Some(super::bytes(target_size)?);
    Ok(Pattern::Basic(Basic { target_size, ..curve.basic(io_size)? }))
}
