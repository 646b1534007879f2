//! An enforcement that tells how far it is, goes on where it was interrupted, and on a
//! simulated device returns to a snapshot.
//!
//! How: on a real device it is kept how many of the state's IOs are done; their order
//! depends on the seed alone, so that a resume passes over them. On a device in virtual
//! time, whose state ends with the process, nothing is kept: the first reset takes a
//! snapshot, and every later one to the same state returns to it, so that all parts of
//! a plan begin from one and the same state. Where and in which words is the caller's.

use super::{Advance, Enforcement, State, enforce_from};
use crate::execute::ResetRequest;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use uflip_device::{Bytes, Device, DeviceError, Engine, EngineOptions, RunEnd, Snapshot, Stop};

/// How often a word is said of a state's progress.
const NEWS: Duration = Duration::from_secs(5);
/// How often it is kept: what a kill loses at most.
const KEPT: Duration = Duration::from_millis(500);
/// How often it is seen whether to stop: what was done is not lost.
const LOOK: Duration = Duration::from_millis(100);

/// How far the last enforcement is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Which state.
    pub state: State,
    /// Of its random choices.
    pub seed: u64,
    /// IOs that are certainly done.
    pub ios: u64,
    /// Bytes they wrote, those perhaps still in flight included.
    pub written_bytes: Bytes,
    /// Whether the state was reached.
    pub done: bool,
    /// Runs that the store had when it began: a state after which a run was
    /// made is no longer there.
    pub runs_before: usize,
    /// IOs at which an interrupted enforcement was gone on with.
    pub resumed_at_ios: Vec<u64>,
}

impl Reached {
    /// Nothing is done yet of this request, where so many runs are kept.
    pub const fn begun(request: ResetRequest, runs_before: usize) -> Reached {
        let ResetRequest { state, seed } = request;
        let written_bytes = Bytes(0);
        Reached { state, seed, ios: 0, written_bytes, done: false, runs_before, resumed_at_ios: Vec::new() }
    }

    /// Whether it is of this very request, with no run made since.
    pub fn is_of(&self, request: ResetRequest, runs_kept: usize) -> bool {
        (self.state, self.seed, self.runs_before) == (request.state, request.seed, runs_kept)
    }
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// The state was reached before the interruption.
    WasReached,
    /// It is gone on with after what was done before.
    GoesOn(&'a Reached),
    /// So far.
    Advanced {
        /// How far it is.
        now: &'a Reached,
        /// Bytes to be written in all.
        total: Bytes,
        /// Time left, by what was written since it went on.
        left: Duration,
    },
}

/// What stands beside an enforcement.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// Keeps how far it is.
    pub keep: &'a (dyn Fn(&Reached) + Sync),
    /// Is told what is going on.
    pub tell: &'a (dyn Fn(News<'_>) + Sync),
}

/// Enforces states for one session.
#[derive(Debug)]
pub struct Enforcer {
    in_flight: u64,
    /// What the device's snapshot is of.
    snapshot_of: Option<State>,
}

impl Enforcer {
    /// For a device that is driven like this.
    pub const fn new(options: &EngineOptions) -> Enforcer {
        let depth = match options.engine {
            Engine::Sync => 1,
            Engine::IoUring { queue_depth, .. } => queue_depth,
        };
        // The loops look one IO ahead.
        Enforcer { in_flight: depth as u64 + 1, snapshot_of: None }
    }

    /// Brings the device to the state that is asked for, from what was reached
    /// `before` where that is of this request; `runs_kept` runs are kept.
    ///
    /// # Errors
    /// [`DeviceError`] of the IO that failed, or where no thread is to be had.
    pub fn enforce(
        &mut self,
        request: ResetRequest,
        (before, runs_kept): (Option<Reached>, usize),
        device: &mut dyn Device,
        stop: &Stop,
        beside: Beside<'_>,
    ) -> Result<RunEnd, DeviceError> {
        if self.snapshot_of == Some(request.state) && device.snapshot(Snapshot::Return) {
            return Ok(RunEnd::default());
        }
        let before = before.filter(|before| before.is_of(request, runs_kept));
        if before.as_ref().is_some_and(|before| before.done) {
            (beside.tell)(News::WasReached);
            return Ok(RunEnd::default());
        }
        let mut now = before.unwrap_or(Reached::begun(request, runs_kept));
        if now.ios > 0 {
            now.resumed_at_ios.push(now.ios);
            (beside.tell)(News::GoesOn(&now));
        }
        let end = perform(&mut now, self.in_flight, device, stop, beside)?;
        now.done = !end.interrupted && !stop.now();
        (beside.keep)(&now);
        if now.done && device.snapshot(Snapshot::Take) {
            self.snapshot_of = Some(request.state);
        }
        Ok(end)
    }
}

/// The IOs, with what stands beside them.
fn perform(
    now: &mut Reached,
    in_flight: u64,
    device: &mut dyn Device,
    stop: &Stop,
    beside: Beside<'_>,
) -> Result<RunEnd, DeviceError> {
    let (total, advance) = (device.geometry().capacity, Arc::<Advance>::default());
    let what = Enforcement { state: now.state, seed: now.seed, from_io: now.ios };
    let (over, end) = mpsc::channel::<()>();
    let (result, last) = std::thread::scope(|scope| {
        let (seen, advance_seen) = (now.clone(), advance.clone());
        let watch = move || watch(seen, &advance_seen, in_flight, total, (&end, stop), beside);
        let watch = match std::thread::Builder::new().spawn_scoped(scope, watch) {
            Ok(watch) => watch,
            Err(error) => {
                let why = "the limit of processes (ulimit -u, or pids.max of the control group)";
                let text = format!("cannot start a thread: {error}; raise {why}");
                return (Err(DeviceError::Other(text)), now.clone());
            }
        };
        let result = enforce_from(what, device, stop, &advance);
        // Ends the thread; it cannot have ended by itself.
        drop(over);
        (result, watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    *now = last;
    if result.is_err() {
        (beside.keep)(now);
    }
    result
}

/// Looks how far it is until `end` is closed; gives the last that was seen.
fn watch(
    mut seen: Reached,
    advance: &Advance,
    in_flight: u64,
    total: Bytes,
    (end, stop): (&mpsc::Receiver<()>, &Stop),
    beside: Beside<'_>,
) -> Reached {
    let (before, began) = (seen.written_bytes, Instant::now());
    let (mut told, mut kept) = (began, began);
    loop {
        let running = end.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout);
        advance.halt.store(stop.after_this_run(), Ordering::Relaxed);
        if running && kept.elapsed() < KEPT {
            continue;
        }
        kept = Instant::now();
        // The loop may not have come to its first IO yet.
        let ios = advance.ios.load(Ordering::Relaxed).saturating_sub(in_flight);
        seen.ios = seen.ios.max(ios);
        seen.written_bytes = Bytes(advance.written.load(Ordering::Relaxed)).max(before);
        if !running {
            return seen;
        }
        (beside.keep)(&seen);
        if told.elapsed() >= NEWS {
            told = kept;
            let left = left(&seen, before, total, began.elapsed());
            (beside.tell)(News::Advanced { now: &seen, total, left });
        }
    }
}

/// The time left, by the bytes written since `before`.
fn left(now: &Reached, before: Bytes, total: Bytes, elapsed: Duration) -> Duration {
    let written = now.written_bytes.0.min(total.0);
    let fresh = written.saturating_sub(before.0).max(1);
    elapsed.mul_f64((total.0 - written) as f64 / fresh as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: ResetRequest = ResetRequest { state: State::Random, seed: 7 };

    #[test]
    fn only_the_same_state_with_no_run_since_is_gone_on_with() {
        let half = Reached { ios: 40, ..Reached::begun(REQUEST, 3) };
        assert!(half.is_of(REQUEST, 3));
        assert!(!half.is_of(REQUEST, 4));
        assert!(!half.is_of(ResetRequest { seed: 8, ..REQUEST }, 3));
        assert!(!half.is_of(ResetRequest { state: State::Trim, ..REQUEST }, 3));
    }

    #[test]
    fn the_time_left_is_told_by_what_was_written_since_the_resume() {
        let now = Reached { written_bytes: Bytes(75 << 20), ..Reached::begun(REQUEST, 0) };
        let left = left(&now, Bytes(50 << 20), Bytes(100 << 20), Duration::from_secs(10));
        assert_eq!(left, Duration::from_secs(10));
    }
}
