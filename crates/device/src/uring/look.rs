//! Looking for a completion before sleeping until there is one.
//!
//! Being put to sleep and woken takes microseconds of the loop's time and, worse, of
//! whoever completes the IO and has to wake it: on devices in memory, where workers of
//! the kernel do the IOs, more than the IOs themselves (`docs/performance.md`). So the
//! loop first looks at the ring's memory for about as long as a sleep and a wake-up take,
//! which at most doubles what waiting costs. No call is made meanwhile: the ring's flag tells of
//! completions that are put off until the next call, the queue's tail of the others.
//!
//! Where looks are in vain (slow devices; a worker that needs this very processor) they
//! are given up but for one wait in [`EVERY`], so that they cost next to nothing there.

use crate::clock::Epoch;
use crate::units::Nanos;

/// A look takes no longer.
pub(super) const LONGEST: Nanos = Nanos::from_micros(5);
/// After so many looks in vain in a row not every wait begins with one.
const PATIENCE: u32 = 16;
/// Then one wait in so many does.
const EVERY: u32 = 64;

/// Whether the next wait begins with a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    /// Completions are to be seen without a call.
    possible: bool,
    /// Waits since a look last saw one.
    in_vain: u32,
}

impl Looks {
    /// None yet; never any where they are not `possible`.
    pub(super) fn new(possible: bool) -> Looks {
        Looks { possible, in_vain: 0 }
    }

    /// Before a wait: looks, where that is worth it, until `is_there` or for [`LONGEST`];
    /// true where it saw something.
    #[inline]
    pub(super) fn look(&mut self, epoch: &Epoch, is_there: impl FnMut() -> bool) -> bool {
        let saw = self.is_due() && seen(epoch, is_there);
        self.in_vain = if saw { 0 } else { self.in_vain.wrapping_add(1) };
        saw
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.possible && (self.in_vain < PATIENCE || self.in_vain.is_multiple_of(EVERY))
    }
}

#[inline]
fn seen(epoch: &Epoch, mut is_there: impl FnMut() -> bool) -> bool {
    let until = epoch.now() + LONGEST;
    while !is_there() {
        if epoch.now() >= until {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of so many waits began with a look, each of them in vain.
    fn looked(looks: &mut Looks, waits: u32) -> Vec<u32> {
        let epoch = Epoch::start();
        let mut began = Vec::new();
        for wait in 0..waits {
            let mut asked = false;
            let saw = looks.look(&epoch, || {
                asked = true;
                false
            });
            assert!(!saw);
            if asked {
                began.push(wait);
            }
        }
        began
    }

    #[test]
    fn looks_in_vain_become_rare() {
        let first = 0..16;
        let then = [64, 128, 192];
        let expected: Vec<u32> = first.chain(then).collect();
        assert_eq!(looked(&mut Looks::new(true), 256), expected);
    }

    #[test]
    fn one_that_sees_something_brings_them_back() {
        let mut looks = Looks::new(true);
        assert_eq!(looked(&mut looks, 64).len(), 16);
        assert!(looks.look(&Epoch::start(), || true), "the 65th wait looks again");
        assert_eq!(looked(&mut looks, 64), (0..16).collect::<Vec<u32>>());
    }

    #[test]
    fn where_nothing_can_be_seen_none_is_made() {
        assert!(looked(&mut Looks::new(false), 200).is_empty());
    }

    #[test]
    fn a_look_in_vain_ends() {
        let epoch = Epoch::start();
        assert!(!Looks::new(true).look(&epoch, || false));
        assert!(epoch.now() >= LONGEST);
    }
}
