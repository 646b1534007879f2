//! Alignment: what do IOs cost that do not start at a multiple of IOSize?
//!
//! Source: paper 000/001, section 3.2 (2), Table 1: IOShift in [2^0, …,
//! IOSize/512] x 512 B, added to every address. The last value is a whole IO, so
//! it is aligned again. The text varies it "from 0": that is the baseline.

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::{Basic, Pattern};
use uflip_device::Bytes;

const SECTOR: u64 = 512;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "alignment",
    title: "Alignment: IOs shifted off their size's grid",
    usual: true,
    parameter: "IOShift",
    categorical: false,
    curves: BASELINES,
    values,
    label: super::bytes_label,
    parse: super::parse_bytes,
    pattern,
};

fn values(preset: Preset, _: Curve, io_size: Bytes) -> Vec<i64> {
    let last = (io_size.0 / SECTOR).max(1).ilog2();
    let values = super::powers(preset, 0..=last, SECTOR as i64);
    // Between two powers of two, and a sector short of aligned.
    let more = [3 * SECTOR, io_size.0 / 4 * 3, io_size.0.saturating_sub(SECTOR)].map(|v| v as i64);
    super::with_more(preset, values, &more)
}

fn pattern(curve: Curve, io_shift: i64, io_size: Bytes) -> Result<Pattern, String> {
    let io_shift = super::bytes(io_shift)?;
    Ok(Pattern::Basic(Basic { io_shift, ..curve.basic(io_size)? }))
}
