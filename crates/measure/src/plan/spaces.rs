//! Target spaces: where on the device each run goes.
//!
//! How: sequential writes get distinct spaces one after the other, aligned to
//! 1 MiB or an IO, until the device is used up; sequential reads and random IOs
//! with a TargetSize of their own go round the device; random IOs use all of
//! it. A sequential space is just large enough for the run, or the whole device
//! if that is less. Each partition has 1 MiB at least, as partitions of a few
//! IOs lie so close together that they are one sequential pattern again, and a
//! power of two of IOs, as in the paper, where IOCount is one: partitions then
//! begin at the same place of the device's own units, whatever the run's length.
//!
//! Source: paper 000/001, sections 4.1 ("we direct them to distinct target
//! spaces (specified by TargetOffset)") and 4.2.

use crate::pattern::{Basic, Location, Pattern, PatternMode};
use uflip_device::{Bytes, Geometry};

const MIB: u64 = 1 << 20;

/// How much of the device is given away.
#[derive(Clone, Debug)]
pub(crate) struct Spaces {
    capacity: u64,
    sector: u64,
    /// Where the next distinct space may begin.
    next: u64,
    /// Where the next space that goes round may begin.
    round: u64,
}

impl Spaces {
    pub(crate) fn new(geometry: Geometry) -> Spaces {
        Spaces { capacity: geometry.capacity.0, sector: geometry.sector.0.max(1), next: 0, round: 0 }
    }

    /// What spaces for IOs of this size are aligned to.
    fn align(&self, io_size: Bytes) -> u64 {
        MIB.max(io_size.0).next_multiple_of(self.sector)
    }

    /// After a reset: every space is free again.
    pub(crate) fn start_again(&mut self) {
        self.next = 0;
    }

    /// A space of `size`, or the whole device, that overlaps none since the
    /// start; `None` where the device is used up.
    fn distinct(&mut self, size: u64, align: u64) -> Option<(u64, u64)> {
        let size = size.min(self.capacity);
        let offset = self.next.checked_next_multiple_of(align)?;
        let end = offset.checked_add(size).filter(|end| *end <= self.capacity)?;
        self.next = end;
        Some((offset, size))
    }

    /// A space of `size`, or the whole device, after the last one of this kind
    /// or again from the beginning.
    fn going_round(&mut self, size: u64, align: u64) -> (u64, u64) {
        let size = size.min(self.capacity);
        let offset = self.round.next_multiple_of(align);
        let offset =
            if offset.checked_add(size).is_some_and(|end| end <= self.capacity) { offset } else { 0 };
        self.round = offset + size;
        (offset, size)
    }

    /// `pattern` with TargetOffset and TargetSize of all its basic patterns, for
    /// a run of `io_count` IOs a stream; `None` where no distinct space of its
    /// size is left.
    pub(crate) fn place(&mut self, pattern: &Pattern, io_count: u64) -> Option<Pattern> {
        let mut pattern = pattern.clone();
        let (per_pattern, streams) = match &pattern {
            Pattern::Mix { ratio, .. } => {
                let (first, second) = ratio.split(io_count);
                (vec![first, second], 1)
            }
            Pattern::Replicated { degree: n, .. } | Pattern::Queued { depth: n, .. } => {
                (vec![io_count], u64::from(*n))
            }
            Pattern::Basic(_) => (vec![io_count], 1),
            Pattern::SideBySide(all) => (vec![io_count; all.len()], 1),
        };
        for (basic, ios) in pattern.basics_mut().into_iter().zip(per_pattern) {
            let size = need(basic, ios).saturating_mul(streams);
            let align = self.align(basic.io_size);
            let (offset, size) = match (basic.mode, basic.is_random()) {
                (_, true) if basic.target_size.is_none() => (0, self.capacity),
                (PatternMode::Write, false) => self.distinct(size, align)?,
                _ => self.going_round(size, align),
            };
            (basic.target_offset, basic.target_size) = (Bytes(offset), Some(Bytes(size)));
        }
        Some(pattern)
    }
}

/// The bytes that `ios` IOs of a pattern need without an address used twice.
fn need(basic: &Basic, ios: u64) -> u64 {
    if let Some(size) = basic.target_size {
        return size.0;
    }
    let io_size = basic.io_size.0.max(1);
    let slots = match basic.location {
        Location::Ordered { incr: 0 } => 1,
        Location::Ordered { incr } => ios.saturating_mul(incr.unsigned_abs()),
        Location::Partitioned { partitions } => {
            let partitions = u64::from(partitions.max(1));
            let each = ios.div_ceil(partitions).max(MIB.div_ceil(io_size));
            partitions.saturating_mul(each.checked_next_power_of_two().unwrap_or(each))
        }
        Location::Sequential
        | Location::SequentialFrom { .. }
        | Location::Random
        | Location::RandomUnique => ios,
    };
    slots.max(1).saturating_add(basic.io_shift.0.div_ceil(io_size)).saturating_mul(io_size)
}
