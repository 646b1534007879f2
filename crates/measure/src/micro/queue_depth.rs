//! Queue depth: what do several requests under way at once gain, and what does
//! each of them cost?
//!
//! What: one sequence of IOs with QueueDepth in [2^0, …, 2^7] requests under way;
//! the queue is filled again as soon as one completes. With io_uring that is the depth
//! of the one ring; with threads, and on simulated devices, the sequence is dealt to as
//! many streams of one request each. Unlike ParallelDegree it
//! leaves sequence and target space as they are. Units: requests. Source: none of
//! the papers, whose IOs are one at a time; the depths are those of usual
//! comparisons of NVMe devices. Not among the nine of 2009: run it with
//! `--only queue-depth`.

use super::{BASELINES, Curve, Preset, Row};
use crate::pattern::Pattern;
use uflip_device::Bytes;

/// Its row, as it would stand in Table 1.
pub const ROW: Row = Row {
    name: "queue-depth",
    title: "Queue depth: several requests of one sequence under way",
    usual: false,
    parameter: "QueueDepth",
    categorical: false,
    curves: BASELINES,
    values,
    label: super::number_label,
    parse: super::parse_number,
    pattern,
};

fn values(preset: Preset, _: Curve, _: Bytes) -> Vec<i64> {
    super::with_more(preset, super::powers(preset, 0..=7, 1), &[3, 6, 12, 24, 48, 96])
}

fn pattern(curve: Curve, depth: i64, io_size: Bytes) -> Result<Pattern, String> {
    Ok(Pattern::Queued { depth: super::count(depth)?, basic: curve.basic(io_size)? })
}
