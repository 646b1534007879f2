//! Pause: does the device use idle time between IOs for work it put off?
//!
//! Source: paper 000/001, section 3.2 (8), Table 1: Pause in [2^0, …, 2^8] x
//! 0.1 ms, t(IO_i) = t(IO_i-1) + rt(IO_i-1) + Pause.

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::{Basic, Pattern, Timing};
use uflip_device::{Bytes, Nanos};

const UNIT: i64 = 100_000;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "pause",
    title: "Pause: idle time after each IO",
    usual: true,
    parameter: "Pause",
    categorical: false,
    curves: BASELINES,
    values,
    label: |value| super::nanos(value).map_or_else(|_| value.to_string(), |nanos| nanos.to_string()),
    parse: |text| i64::try_from(text.parse::<Nanos>().ok()?.0).ok(),
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    super::with_more(
        preset,
        super::powers(preset, 0..=8, UNIT),
        &[5 * UNIT, 50 * UNIT, 90 * UNIT, 512 * UNIT],
    )
}

fn pattern(curve: Curve, pause: i64, io_size: Bytes) -> Result<Pattern, String> {
    let timing = Timing::Pause { pause: super::nanos(pause)? };
    Ok(Pattern::Basic(Basic { timing, ..curve.basic(io_size)? }))
}
