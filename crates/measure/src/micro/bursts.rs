//! Bursts: how does work that the device puts off accumulate?
//!
//! Source: paper 000/001, section 3.2 (9), Table 1: Burst in [2^0, …, 2^6] x 10
//! IOs with a fixed pause, "e.g. 100 ms", between them. Errata: the table's
//! formula `(i mod Burst) x Pause` is a misprint, as the text and the figure
//! beside it show; see [`crate::pattern`].

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::{Basic, Pattern, Timing};
use uflip_device::{Bytes, Nanos};

/// Pause: the fixed one.
pub const PAUSE: Nanos = Nanos::from_millis(100);

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "bursts",
    title: "Bursts: idle time after groups of IOs",
    usual: true,
    parameter: "Burst",
    categorical: false,
    curves: BASELINES,
    values,
    label: super::number_label,
    parse: super::parse_number,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    super::with_more(preset, super::powers(preset, 0..=6, 10), &[15, 30, 60, 120, 240])
}

fn pattern(curve: Curve, burst: i64, io_size: Bytes) -> Result<Pattern, String> {
    let timing = Timing::Burst { pause: PAUSE, burst: super::count(burst)? };
    Ok(Pattern::Basic(Basic { timing, ..curve.basic(io_size)? }))
}
