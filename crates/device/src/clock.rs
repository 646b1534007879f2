//! The clock of the timed loops and its waiting.
//!
//! `CLOCK_MONOTONIC` through `std::time::Instant`: one vDSO call, steered by
//! the kernel's timekeeping, so that submission times stay true over days. A
//! raw time-stamp counter would halve the cost of a read and drift instead.

use crate::device::Stop;
use crate::units::Nanos;
use std::time::{Duration, Instant};

/// Time since one fixed moment.
#[derive(Clone, Copy, Debug)]
pub struct Epoch(Instant);

impl Epoch {
    /// A clock that starts at zero now.
    pub fn start() -> Epoch {
        Epoch(Instant::now())
    }

    /// Time since the start.
    #[inline(always)]
    pub fn now(&self) -> Nanos {
        let d = self.0.elapsed();
        Nanos(d.as_secs() * 1_000_000_000 + u64::from(d.subsec_nanos()))
    }
}

/// Nanoseconds since 1970, by the calendar's clock.
pub fn unix_now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// The scheduler may wake a sleeper this late; the rest of a wait is spun.
pub(crate) const SPIN: Nanos = Nanos::from_micros(120);
/// A sleeper looks this often whether it should stop.
const SLICE: Nanos = Nanos::from_millis(50);

/// Waits until `epoch` shows `until`: asleep while it is far, spinning when it
/// is near. Returns early when `stop` says now.
pub fn wait_until(epoch: &Epoch, until: Nanos, stop: &Stop) {
    loop {
        let left = until.saturating_sub(epoch.now());
        if left == Nanos::ZERO || stop.now() {
            return;
        }
        if left > SPIN {
            std::thread::sleep(Duration::from(left.saturating_sub(SPIN).min(SLICE)));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The kernel's clock source (`tsc`, `kvm-clock`, …), where it tells.
pub fn clock_source() -> Option<String> {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .ok()
        .map(|s| s.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_short() {
        let epoch = Epoch::start();
        for wait in [1_000, 100_000, 2_000_000] {
            let until = epoch.now() + Nanos(wait);
            wait_until(&epoch, until, &Stop::new());
            assert!(epoch.now() >= until);
        }
    }

    #[test]
    fn a_wait_ends_when_stopped() {
        let stop = Stop::new();
        stop.ask();
        stop.ask();
        let epoch = Epoch::start();
        wait_until(&epoch, Nanos::from_secs(3600), &stop);
        assert!(epoch.now() < Nanos::from_secs(10));
    }
}
