//! The clock of a program, shared by all devices it uses.

use crate::clock::Epoch;
use crate::units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time of a program: the wall's, or one that only devices and the program
/// move. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug)]
enum TimeSource {
    Wall(Epoch),
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// Real time, from zero on.
    pub fn wall() -> Clock {
        Clock(TimeSource::Wall(Epoch::start()))
    }

    /// Virtual time, from zero on: it passes where devices are waited for and
    /// where the program says that it computes.
    pub fn virtual_time() -> Clock {
        Clock(TimeSource::Virtual(Arc::default()))
    }

    /// Time since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        match &self.0 {
            TimeSource::Wall(epoch) => epoch.now(),
            TimeSource::Virtual(ns) => Nanos(ns.load(Ordering::Relaxed)),
        }
    }

    /// True where waiting costs nothing.
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, TimeSource::Virtual(_))
    }

    /// Charges the program's own computing to virtual time. Real time passes by
    /// itself: there it does nothing.
    pub fn advance(&self, by: Nanos) {
        self.reach(self.now() + by);
    }

    /// Moves virtual time on to `at`, where it is not there yet. For devices;
    /// nothing in real time.
    pub fn reach(&self, at: Nanos) {
        if let TimeSource::Virtual(ns) = &self.0 {
            ns.fetch_max(at.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_is_shared_and_never_goes_back() {
        let clock = Clock::virtual_time();
        let other = clock.clone();
        clock.advance(Nanos(70));
        other.reach(Nanos(50));
        assert_eq!((clock.now(), other.now()), (Nanos(70), Nanos(70)));
        other.reach(Nanos(90));
        assert_eq!(clock.now(), Nanos(90));
    }

    #[test]
    fn real_time_is_moved_by_nobody() {
        let clock = Clock::wall();
        clock.advance(Nanos::from_secs(3600));
        assert!(clock.now() < Nanos::from_secs(1800) && !clock.is_virtual());
    }
}
