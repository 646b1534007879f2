//! Partitioning: how many sequential streams of IOs can be interleaved before
//! they cost more than one (the merge of an external sort)?
//!
//! Source: paper 000/001, section 3.2 (4), Table 1: Partitions in [2^0, …, 2^8],
//! sequential patterns only. The location function and the paper's omission of
//! TargetOffset are in [`crate::pattern::location`].

use super::{Curve, Preset, Row, SEQUENTIAL};
use crate::pattern::{Basic, Location, Pattern};
use uflip_device::Bytes;

/// The row of Table 1.
pub const ROW: Row = Row {
    name: "partitioning",
    title: "Partitioning: sequential IOs spread over partitions",
    usual: true,
    parameter: "Partitions",
    categorical: false,
    curves: SEQUENTIAL,
    values,
    label: super::number_label,
    parse: super::parse_number,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    super::with_more(preset, super::powers(preset, 0..=8, 1), &[3, 6, 12, 24, 96])
}

fn pattern(curve: Curve, partitions: i64, io_size: Bytes) -> Result<Pattern, String> {
    let location = Location::Partitioned { partitions: super::count(partitions)? };
    Ok(Pattern::Basic(Basic { location, ..curve.sequential(io_size)? }))
}
