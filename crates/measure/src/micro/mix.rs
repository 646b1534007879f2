//! Mix: do two baselines cost more together than apart?
//!
//! Source: paper 000/001, section 3.2 (7), Table 1: six pairs of baselines,
//! Ratio (#1/#2) in [2^0, …, 2^6] IOs of pattern 1 for one of pattern 2. The
//! other way round, one IO of pattern 1 for n of pattern 2, is a negative value;
//! `full` has those, too.

use super::{Curve, Preset, Row};
use crate::pattern::{Baseline, Pattern, Ratio};
use uflip_device::Bytes;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "mix",
    title: "Mix: two baselines interleaved",
    usual: true,
    parameter: "Ratio",
    categorical: true,
    curves: &[
        Curve::Pair(Baseline::Sr, Baseline::Rr),
        Curve::Pair(Baseline::Sr, Baseline::Rw),
        Curve::Pair(Baseline::Sr, Baseline::Sw),
        Curve::Pair(Baseline::Rr, Baseline::Sw),
        Curve::Pair(Baseline::Rr, Baseline::Rw),
        Curve::Pair(Baseline::Sw, Baseline::Rw),
    ],
    values,
    label,
    parse,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    super::with_more(preset, super::powers(preset, 0..=6, 1), &[-64, -32, -16, -8, -4, -2])
}

/// `4 : 1`, or `1 : 4` for the other way round.
fn label(ratio: i64) -> String {
    if ratio < 0 { format!("1 : {}", ratio.unsigned_abs()) } else { format!("{ratio} : 1") }
}

/// A number, or `4:1` or `1:4`.
fn parse(text: &str) -> Option<i64> {
    let Some((first, second)) = text.split_once([':', '/']) else { return super::parse_number(text) };
    let (first, second): (u32, u32) = (first.trim().parse().ok()?, second.trim().parse().ok()?);
    match (first, second) {
        (0, _) | (_, 0) => None,
        (n, 1) => Some(i64::from(n)),
        (1, n) => Some(-i64::from(n)),
        _ => None,
    }
}

fn pattern(curve: Curve, ratio: i64, io_size: Bytes) -> Result<Pattern, String> {
    let Curve::Pair(first, second) = curve else {
        return Err("a mix needs a pair of baselines, such as SR/RW".to_string());
    };
    let ratio = Ratio::from_value(ratio).map_err(|error| error.to_string())?;
    Ok(Pattern::Mix { first: first.basic(io_size), second: second.basic(io_size), ratio })
}
