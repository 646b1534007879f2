//! A file system that fails on purpose: every request of the program under test
//! is counted, and at chosen ones something goes wrong ([`Fault`]).
//!
//! It is mounted through FUSE, so that the real binary meets it as it would meet
//! a failing disk, with results folder and target file alike. What is stored and
//! what a power cut leaves: [`disk`].

pub mod disk;
mod serve;

use disk::Disk;
use fuser::{BackgroundSession, Config, MountOption};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uflip_device::rng::Rng;

/// What goes wrong at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed before it.
    Kill,
    /// The process is killed before it and what was not durable may be lost.
    PowerCut,
    /// This and the next so many requests fail with this number.
    Error { errno: i32, times: u64 },
    /// Half of a write or read is done, as the system may.
    Short,
    /// Half of a write is stored, then it fails.
    Torn,
    /// It takes this long.
    Delay(Duration),
    /// One bit arrives the other way round.
    Flip { bit: u64 },
}

/// What a request is for. Each side's requests are counted apart: there are far
/// more on the target than on the results, and more reads than writes of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Anything that changes the results or makes them durable.
    Results,
    /// Reads of the results.
    Reading,
    /// Anything on the scratch file and its sidecar.
    Target,
}

/// How many sides there are.
pub const SIDES: usize = 3;

impl Side {
    fn of(file: &str, reads: bool) -> Side {
        match file.trim_start_matches('.').starts_with("scratch") {
            true => Side::Target,
            false if reads => Side::Reading,
            false => Side::Results,
        }
    }
}

/// A fault and when it comes.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// On which files.
    pub side: Side,
    /// The number of the request on these, counted from 0.
    pub at: u64,
    pub fault: Fault,
}

/// A fault that came.
#[derive(Clone, Debug)]
pub struct Happened {
    pub fault: Fault,
    pub side: Side,
    /// The file's name without its folder.
    pub file: String,
}

/// What the served threads share with the test.
pub struct State {
    pub disk: Disk,
    planned: Vec<Planned>,
    /// Requests so far, by [`Side`].
    pub requests: [u64; SIDES],
    /// No request has an effect any more.
    dead: bool,
    power_cut: bool,
    /// What went wrong, and with what.
    pub happened: Vec<Happened>,
}

/// Which way a request moves data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    Nothing,
    Read,
    Write,
}

/// What becomes of one request.
enum Verdict {
    Go,
    Fail(i32),
    Half,
    HalfThenFail,
    Flip(u64),
}

impl State {
    /// Counts one request on `what` and says what becomes of it. What only data
    /// can suffer waits for the next request with any.
    fn next(&mut self, what: &str, moves: Moves, pid: &AtomicU32) -> Verdict {
        if self.dead {
            return Verdict::Fail(EIO);
        }
        let side = Side::of(what, moves == Moves::Read);
        let number = self.requests[side as usize];
        self.requests[side as usize] += 1;
        let due = self.planned.iter().position(|planned| {
            planned.side == side
                && match planned.fault {
                    Fault::Error { times, .. } => {
                        (planned.at..planned.at.saturating_add(times)).contains(&number)
                    }
                    Fault::Short | Fault::Torn | Fault::Flip { .. } => {
                        planned.at <= number && moves != Moves::Nothing
                    }
                    _ => planned.at == number,
                }
        });
        let Some(due) = due else { return Verdict::Go };
        let fault = self.planned[due].fault;
        if !matches!(fault, Fault::Error { .. }) {
            self.planned.remove(due);
        }
        self.happened.push(Happened { fault, side, file: what.to_string() });
        match fault {
            Fault::Kill | Fault::PowerCut => {
                self.dead = true;
                self.power_cut = fault == Fault::PowerCut;
                kill(pid);
                Verdict::Fail(EIO)
            }
            Fault::Error { errno, .. } => Verdict::Fail(errno),
            Fault::Short => Verdict::Half,
            Fault::Torn => Verdict::HalfThenFail,
            Fault::Delay(time) => {
                std::thread::sleep(time);
                Verdict::Go
            }
            Fault::Flip { bit } => Verdict::Flip(bit),
        }
    }
}

const EIO: i32 = 5;

/// Kills the process under test, which may be known a moment after it began.
fn kill(pid: &AtomicU32) {
    for _ in 0..1000 {
        match pid.load(Ordering::Relaxed) {
            0 => std::thread::sleep(Duration::from_millis(1)),
            pid => return crate::support::signal(pid, "KILL"),
        }
    }
}

/// A mounted file system that fails on purpose; unmounted when dropped.
pub struct FaultFs {
    state: Arc<Mutex<State>>,
    pid: Arc<AtomicU32>,
    session: Option<BackgroundSession>,
}

impl FaultFs {
    /// An empty one at `mount_point`, or `None`, said aloud, where FUSE is not
    /// to be had.
    pub fn mount(mount_point: &Path) -> Option<FaultFs> {
        let state = State {
            disk: Disk::new(),
            planned: Vec::new(),
            requests: [0; SIDES],
            dead: false,
            power_cut: false,
            happened: Vec::new(),
        };
        let (state, pid) = (Arc::new(Mutex::new(state)), Arc::new(AtomicU32::new(0)));
        let served = serve::Served { state: Arc::clone(&state), pid: Arc::clone(&pid) };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("uflip-faults".into())];
        match fuser::spawn_mount(served, mount_point, &config) {
            Ok(session) => Some(FaultFs { state, pid, session: Some(session) }),
            Err(error) => {
                crate::support::skipped(&format!("no FUSE file system to be had here: {error}"));
                None
            }
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty disk and no faults.
    pub fn format(&self) {
        let mut state = self.state();
        (state.disk, state.dead, state.power_cut, state.requests) = (Disk::new(), false, false, [0; SIDES]);
        state.planned.clear();
        state.happened.clear();
    }

    /// Faults for the process that comes next, with requests counted anew.
    pub fn plan(&self, planned: &[Planned]) {
        let mut state = self.state();
        state.planned = planned.to_vec();
        state.requests = [0; SIDES];
        self.pid.store(0, Ordering::Relaxed);
    }

    /// The process under test, for faults that kill it.
    pub fn process(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// After the process ended: no faults any more; where the power failed,
    /// what that leaves. True where it did.
    pub fn heal(&self, rng: &mut Rng) -> bool {
        let mut state = self.state();
        let cut = std::mem::take(&mut state.power_cut);
        if cut {
            state.disk.power_cut(rng);
        }
        state.dead = false;
        state.planned.clear();
        cut
    }
}

impl Drop for FaultFs {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}
