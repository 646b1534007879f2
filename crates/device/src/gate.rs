//! The line from which the threads of a run start together, and which lets all
//! of them go home where one of them does not come.

use crate::clock::Epoch;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Waits for all streams of a run.
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Streams that are not here yet.
    missing: usize,
    /// Set when all are.
    epoch: Option<Epoch>,
    given_up: bool,
}

/// A stream that is expected; where it ends without having come, nobody waits
/// for it any longer.
pub(crate) struct Expected<'a>(&'a Gate);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl Gate {
    /// For so many streams.
    pub(crate) fn new(streams: usize) -> Gate {
        let state = State { missing: streams, epoch: None, given_up: false };
        Gate { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all are here; the last one calls `begin`. `None` where the
    /// run was given up.
    pub(crate) fn pass(&self, begin: impl Fn() -> Epoch) -> Option<Epoch> {
        let mut state = self.lock();
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 && !state.given_up {
            state.epoch = Some(begin());
            self.changed.notify_all();
        }
        while state.epoch.is_none() && !state.given_up {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.epoch
    }

    /// Keep this as long as a stream may still come.
    pub(crate) fn expected(&self) -> Expected<'_> {
        Expected(self)
    }

    /// Sends home those who wait, and those who come; means nothing once all
    /// have started.
    pub(crate) fn give_up(&self) {
        let mut state = self.lock();
        if state.epoch.is_none() && !state.given_up {
            state.given_up = true;
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_start_at_one_moment() {
        let gate = Gate::new(3);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.pass(Epoch::start).is_some())).collect();
            assert!(threads.into_iter().all(|t| t.join().unwrap()));
        });
    }

    #[test]
    fn nobody_waits_for_one_that_cannot_come() {
        let gate = Gate::new(3);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| gate.pass(Epoch::start).is_none());
            // One ends, by an error or a panic, before it was ready.
            scope.spawn(|| drop(gate.expected()));
            assert!(waits.join().unwrap());
        });
        assert!(gate.pass(Epoch::start).is_none(), "nor does a late one start alone");
    }
}
