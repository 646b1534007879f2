//! Files and block devices behind the data face.
//!
//! How: requests go to the kernel as they are submitted, through io_uring
//! ([`super::ring`]) where it is to be had, else through as many threads as may
//! be under way ([`super::threads`]). What lies between, such as O_DIRECT, the
//! descriptor brings with it; who may write was decided when it was opened
//! ([`crate::safety`]).

use super::ring::BlocksRing;
use super::threads::Threads;
use super::{BlockRequest, Blocks, Clock, Completion, Next, Pending, Which, countable};
use crate::device::{DeviceError, Geometry};
use std::fmt;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// What keeps requests under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One ring. A completion is timed when the program next submits, looks or
    /// waits: the response time holds what it computed in between.
    IoUring,
    /// A thread for each request that may be under way, which times its own.
    Threads,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::IoUring => "io_uring",
            Way::Threads => "threads",
        })
    }
}

/// What a [`Way`] does: two exist.
pub(super) trait UnderWay {
    /// Begins a request, with room for it. What is over at once goes to
    /// `finished`.
    fn begin(&mut self, request: Completion, finished: &mut Pending);
    /// Moves what is over to `finished`, and waits for one where `wait` says so.
    fn reap(&mut self, wait: bool, finished: &mut Pending);
    /// How many are under way.
    fn under_way(&self) -> usize;
    /// Readable once something is over.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// A file or block device that a program uses.
pub struct RealBlocks {
    name: Arc<str>,
    geometry: Geometry,
    clock: Clock,
    requests: usize,
    way: Way,
    engine: Box<dyn UnderWay + Send>,
    finished: Pending,
}

impl RealBlocks {
    /// The first `geometry.capacity` bytes behind `file`, with up to `requests`
    /// under way, by io_uring where it is to be had. `name` is what errors call
    /// it, `clock` one of real time.
    ///
    /// # Errors
    /// Where the system gives no threads either, or there is nothing to do so many
    /// requests with.
    pub fn new(
        name: &str,
        file: File,
        geometry: Geometry,
        requests: usize,
        clock: Clock,
    ) -> Result<RealBlocks, DeviceError> {
        let again = file.try_clone();
        match RealBlocks::by(Way::IoUring, name, file, geometry, requests, clock.clone()) {
            Ok(device) => Ok(device),
            Err(error) => match again {
                Ok(file) => RealBlocks::by(Way::Threads, name, file, geometry, requests, clock),
                Err(_) => Err(error),
            },
        }
    }

    /// The same by one way.
    ///
    /// # Errors
    /// Where that is not to be had.
    pub fn by(
        way: Way,
        name: &str,
        file: File,
        geometry: Geometry,
        requests: usize,
        clock: Clock,
    ) -> Result<RealBlocks, DeviceError> {
        countable(name, requests)?;
        if clock.is_virtual() {
            return Err(DeviceError::Other(format!("{name} is real and cannot be timed in virtual time")));
        }
        let name: Arc<str> = name.into();
        let engine: Box<dyn UnderWay + Send> = match way {
            Way::IoUring => Box::new(BlocksRing::new(name.clone(), file, requests, clock.clone())?),
            Way::Threads => Box::new(Threads::new(&name, &file, requests, &clock)?),
        };
        let finished = Pending::new(2 * requests);
        Ok(RealBlocks { name, geometry, clock, requests, way, engine, finished })
    }

    /// What keeps its requests under way.
    pub fn way(&self) -> Way {
        self.way
    }

    fn reap(&mut self, wait: bool) {
        self.engine.reap(wait, &mut self.finished);
    }
}

impl Blocks for RealBlocks {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, request: BlockRequest) {
        self.reap(false);
        while self.engine.under_way() >= self.requests {
            self.reap(true);
        }
        let result = request.check(&self.name, self.geometry);
        let submitted = self.clock.now();
        let refused = result.is_err();
        let begun = Completion { request, submitted, done: submitted, result };
        if refused {
            self.finished.push(begun);
        } else {
            self.engine.begin(begun, &mut self.finished);
        }
    }

    fn wait(&mut self, which: Which) -> Option<Completion> {
        self.reap(false);
        loop {
            if let Some(completion) = self.finished.take(which) {
                return Some(completion);
            }
            if self.engine.under_way() == 0 {
                return None;
            }
            self.reap(true);
        }
    }

    fn next(&mut self) -> Next<'_> {
        self.reap(false);
        match self.finished.first() {
            Some(at) => Next::At(at),
            None if self.engine.under_way() > 0 => Next::Unknown(self.engine.descriptor()),
            None => Next::Nothing,
        }
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
