//! Bringing a device to a state: says every few seconds how far it is, goes on
//! where it was interrupted, and on a simulated device returns to a snapshot.
//!
//! How: on a real device `state.json` in the results folder says how many of the
//! state's IOs are done; their order depends on the seed alone, so that a resume
//! passes over them. On a device in virtual time, whose state ends with the
//! process, nothing is kept on disk: the first reset takes a snapshot, and every
//! later one to the same state returns to it, so that all parts of a plan begin
//! from one and the same state.

use crate::describe::round_time;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use uflip_device::{Bytes, Device, DeviceError, Engine, EngineOptions, RunEnd, Snapshot, Stop};
use uflip_measure::state::{Advance, Enforcement, enforce_from};
use uflip_measure::{ResetRequest, State};
use uflip_store::checksum::{Seal, read_sealed};
use uflip_store::write_json;

/// How often a word is said of a state's progress.
const NEWS: Duration = Duration::from_secs(5);
/// How often it is kept: what a kill loses at most.
const KEPT: Duration = Duration::from_millis(500);
/// How often it is seen whether to stop: what was done is not lost.
const LOOK: Duration = Duration::from_millis(100);
/// The file in the results folder.
const FILE: &str = "state.json";

/// How far the last enforcement is: `state.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reached {
    /// Which state.
    state: State,
    /// Of its random choices.
    seed: u64,
    /// IOs that are certainly done.
    ios: u64,
    /// Bytes they wrote, those perhaps still in flight included.
    written_bytes: Bytes,
    /// Whether the state was reached.
    done: bool,
    /// Runs that the store had when it began: a state after which a run was
    /// made is no longer there.
    runs_before: usize,
    /// IOs at which an interrupted enforcement was gone on with.
    resumed_at_ios: Vec<u64>,
}

/// Enforces states for one session.
pub(super) struct Enforcer {
    /// The results folder; None in virtual time.
    dir: Option<PathBuf>,
    in_flight: u64,
    /// What the device's snapshot is of.
    snapshot_of: Option<State>,
}

impl Enforcer {
    /// For results in `dir`; `virtual_time` as the device says.
    pub(super) fn new(dir: &Path, options: &EngineOptions, virtual_time: bool) -> Enforcer {
        let depth = match options.engine {
            Engine::Sync => 1,
            Engine::IoUring { queue_depth, .. } => queue_depth,
        };
        Enforcer {
            dir: (!virtual_time).then(|| dir.to_path_buf()),
            // The loops look one IO ahead.
            in_flight: u64::from(depth) + 1,
            snapshot_of: None,
        }
    }

    /// Brings the device to the state that is asked for.
    pub(super) fn enforce(
        &mut self,
        request: ResetRequest,
        device: &mut dyn Device,
        stop: &Stop,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<RunEnd, DeviceError> {
        if self.snapshot_of == Some(request.state) && device.snapshot(Snapshot::Return) {
            return Ok(RunEnd::default());
        }
        let runs_before = self.dir.as_deref().map_or(0, runs_kept);
        let before = self.dir.as_ref().and_then(|dir| reached(&dir.join(FILE), request, runs_before));
        if before.as_ref().is_some_and(|before| before.done) {
            say("  the state was reached before the interruption");
            return Ok(RunEnd::default());
        }
        let mut now = before.unwrap_or(Reached {
            state: request.state,
            seed: request.seed,
            ios: 0,
            written_bytes: Bytes(0),
            done: false,
            runs_before,
            resumed_at_ios: Vec::new(),
        });
        if now.ios > 0 {
            now.resumed_at_ios.push(now.ios);
            say(&format!("  going on after {} IOs, {} written", now.ios, now.written_bytes));
        }
        let end = self.perform(&mut now, device, stop, say)?;
        now.done = !end.interrupted && !stop.now();
        self.keep(&now, say);
        if now.done && device.snapshot(Snapshot::Take) {
            self.snapshot_of = Some(request.state);
        }
        Ok(end)
    }

    /// The IOs, with news and `state.json` beside them.
    fn perform(
        &self,
        now: &mut Reached,
        device: &mut dyn Device,
        stop: &Stop,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<RunEnd, DeviceError> {
        let (total, advance) = (device.geometry().capacity, Arc::<Advance>::default());
        let what = Enforcement { state: now.state, seed: now.seed, from_io: now.ios };
        let (before, began) = (now.written_bytes, Instant::now());
        let (over, end) = mpsc::channel::<()>();
        let (result, last) = std::thread::scope(|scope| {
            let (advance_seen, mut seen) = (advance.clone(), now.clone());
            let tell = move || {
                let (mut told, mut kept) = (began, began);
                loop {
                    let running = end.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout);
                    advance_seen.halt.store(stop.after_this_run(), Ordering::Relaxed);
                    if running && kept.elapsed() < KEPT {
                        continue;
                    }
                    kept = Instant::now();
                    // The loop may not have come to its first IO yet.
                    let ios = advance_seen.ios.load(Ordering::Relaxed).saturating_sub(self.in_flight);
                    seen.ios = seen.ios.max(ios);
                    seen.written_bytes = Bytes(advance_seen.written.load(Ordering::Relaxed)).max(before);
                    if !running {
                        return seen;
                    }
                    self.keep(&seen, say);
                    if told.elapsed() >= NEWS {
                        told = kept;
                        say(&line(&seen, before, total, began.elapsed()));
                    }
                }
            };
            let news = std::thread::Builder::new().spawn_scoped(scope, tell);
            let news = match news {
                Ok(news) => news,
                Err(error) => {
                    let why = "the limit of processes (ulimit -u, or pids.max of the control group)";
                    let text = format!("cannot start a thread: {error}; raise {why}");
                    return (Err(DeviceError::Other(text)), now.clone());
                }
            };
            let result = enforce_from(what, device, stop, &advance);
            // Ends the thread; it cannot have ended by itself.
            drop(over);
            (result, news.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        *now = last;
        if result.is_err() {
            self.keep(now, say);
        }
        result
    }

    fn keep(&self, reached: &Reached, say: &(dyn Fn(&str) + Sync)) {
        let kept = self.dir.as_ref().map(|dir| write_json(&dir.join(FILE), reached));
        if let Some(Err(error)) = kept {
            say(&format!("warning: {error}; a resume would enforce the state from its start"));
        }
    }
}

/// Runs that the results in `dir` have.
fn runs_kept(dir: &Path) -> usize {
    // Without the file there are none.
    let lines = uflip_store::read_inside(&dir.join("runs.ndjson")).unwrap_or_default();
    lines.iter().filter(|byte| **byte == b'\n').count()
}

/// What `file` says of this very request; None where it is of another one, or
/// where a run was made since, or where it is not as it was written.
fn reached(file: &Path, request: ResetRequest, runs_kept: usize) -> Option<Reached> {
    let sealed = read_sealed(file, "").ok()??;
    let whole = Some(sealed.value).filter(|_| sealed.seal == Seal::Intact)?;
    let reached: Reached = serde_json::from_value(whole).ok()?;
    let same = (reached.state, reached.seed) == (request.state, request.seed);
    (same && reached.runs_before == runs_kept).then_some(reached)
}

/// How far it is, in words.
fn line(now: &Reached, before: Bytes, total: Bytes, elapsed: Duration) -> String {
    let written = now.written_bytes.0.min(total.0);
    let fresh = written.saturating_sub(before.0).max(1);
    let left = elapsed.mul_f64((total.0 - written) as f64 / fresh as f64);
    let percent = written * 100 / total.0.max(1);
    let (left, written) = (round_time(left), Bytes(written));
    format!("  state {}: {written} of {total} written ({percent} %), about {left} left", now.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A random state with seed 7, so many bytes on.
    fn at(written: u64) -> Reached {
        Reached {
            state: State::Random,
            seed: 7,
            ios: 40,
            written_bytes: Bytes(written),
            done: false,
            runs_before: 0,
            resumed_at_ios: vec![],
        }
    }

    #[test]
    fn only_the_same_state_with_no_run_since_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let request = ResetRequest { state: State::Random, seed: 7 };
        assert_eq!(reached(&file, request, 0), None);
        let half = Reached { runs_before: 3, ..at(1 << 20) };
        write_json(&file, &half).unwrap();
        assert_eq!(reached(&file, request, 3), Some(half));
        assert_eq!(reached(&file, request, 4), None);
        assert_eq!(reached(&file, ResetRequest { seed: 8, ..request }, 3), None);
        assert_eq!(reached(&file, ResetRequest { state: State::Trim, ..request }, 3), None);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(reached(&file, request, 3), None);
    }

    #[test]
    fn the_time_left_is_told_by_what_was_written_since_the_resume() {
        let now = Reached { state: State::Complete, ..at(75 << 20) };
        let text = line(&now, Bytes(50 << 20), Bytes(100 << 20), Duration::from_secs(10));
        assert_eq!(text, "  state complete: 75M of 100M written (75 %), about 10 s left");
    }
}
