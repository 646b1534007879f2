//! The location functions: which slot of the target space IO number `i` has.
//!
//! How: each function keeps a few words of state and steps from one IO to the
//! next without a division, because this runs between two timed IOs.
//!
//! Source: paper 000/001, section 3.1 and Table 1. What the paper leaves open,
//! for a target space of `n` slots:
//!
//! * sequential: slot `i mod n`; it wraps at the end of the target space. With
//!   `start=s`, slot `(s + i) mod n`.
//! * random: any of the `n` slots, with repetition.
//! * random without repetition: a permutation of the `n` slots, and another
//!   one for each further pass (see [`super::permute`]).
//! * ordered, Incr = k > 0: slots 0, k, 2k, … below `n`, then 1, 1 + k, … and
//!   so on: an array filled by columns. No address comes again before all `n`
//!   were used; then it starts over. Incr = 1 is sequential. With k >= n every
//!   column is a single slot, which is sequential, too.
//! * ordered, Incr < 0: the mirror image, `n - 1 - s` for each slot `s` of
//!   Incr > 0; Incr = -1 runs from the last slot down to the first.
//! * ordered, Incr = 0: always slot 0.
//! * partitioned: `m = floor(n / Partitions)` slots to a partition; IO `i` goes
//!   to slot `floor(i / Partitions) mod m` of partition `i mod Partitions`. What
//!   is left of the target space after Partitions times `m` slots is not used.

use super::permute::Permutation;
use super::{Basic, Location, PatternError};
use uflip_device::rng::Rng;

/// A location function on its way through a target space.
#[derive(Clone, Debug)]
pub(crate) enum Walk {
    /// Sequential, and Incr = 0 with a single slot.
    Cyclic { slot: u64, n: u64 },
    /// Random with repetition.
    Random { rng: Rng, n: u64 },
    /// Random without.
    Permuted(Permutation),
    /// Ordered with a step of `step` slots, from the end if `mirrored`.
    Ordered { slot: u64, column: u64, step: u64, n: u64, mirrored: bool },
    /// Partitioned: `base` is the first slot of the partition to come.
    Partitioned { base: u64, within: u64, slots: u64, end: u64 },
}

impl Walk {
    /// The walk of `basic` over its `n` slots.
    pub(crate) fn new(basic: &Basic, n: u64, seed: u64) -> Result<Walk, PatternError> {
        Ok(match basic.location {
            Location::Sequential => Walk::Cyclic { slot: 0, n },
            Location::SequentialFrom { slot } => Walk::Cyclic { slot: slot.min(n.saturating_sub(1)), n },
            Location::Random => Walk::Random { rng: Rng::new(seed), n },
            Location::RandomUnique => Walk::Permuted(Permutation::new(n, seed)),
            Location::Ordered { incr: 0 } => Walk::Cyclic { slot: 0, n: 1 },
            Location::Ordered { incr } => {
                Walk::Ordered { slot: 0, column: 0, step: incr.unsigned_abs(), n, mirrored: incr < 0 }
            }
            Location::Partitioned { partitions } => {
                let parts = u64::from(partitions);
                super::in_range("partitions", parts, 1, n)?;
                let slots = n / parts;
                Walk::Partitioned { base: 0, within: 0, slots, end: slots * parts }
            }
        })
    }

    /// The slot of the next IO.
    #[inline]
    pub(crate) fn next_slot(&mut self) -> u64 {
        match self {
            Walk::Cyclic { slot, n } => {
                let this = *slot;
                *slot = if this + 1 == *n { 0 } else { this + 1 };
                this
            }
            Walk::Random { rng, n } => rng.below(*n),
            Walk::Permuted(permutation) => permutation.next_slot(),
            Walk::Ordered { slot, column, step, n, mirrored } => {
                let this = *slot;
                *slot = this.saturating_add(*step);
                if *slot >= *n {
                    *column += 1;
                    if *column == *step || *column == *n {
                        *column = 0;
                    }
                    *slot = *column;
                }
                if *mirrored { *n - 1 - this } else { this }
            }
            Walk::Partitioned { base, within, slots, end } => {
                let this = *base + *within;
                *base += *slots;
                if *base == *end {
                    *base = 0;
                    *within = if *within + 1 == *slots { 0 } else { *within + 1 };
                }
                this
            }
        }
    }
}
