//! Requests kept under way by threads: one for each, with a descriptor of its own
//! and `pread`, `pwrite`, `fdatasync` or a discard.
//!
//! How: a request waits in a slot. Its number goes to the threads through one
//! pipe and comes back through another once the request is over, so that the
//! order is that of the endings, nothing is allocated, and poll(2) can wait for
//! it together with other devices.

use super::any::is_readable;
use super::real::UnderWay;
use super::{Clock, Completion, Pending};
use crate::device::DeviceError;
use crate::engine::Discard;
use crate::real::FileTarget;
use crate::sync::SyncTarget;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A thread does one system call at a time.
const STACK_BYTES: usize = 128 << 10;
/// How a slot's number is written into a pipe.
const NUMBER_BYTES: usize = 2;

/// The slots of the requests under way.
struct Slots(Box<[Mutex<Option<Completion>>]>);

impl Slots {
    /// Only one side uses a slot at a time: nobody waits here.
    fn get(&self, slot: u16) -> MutexGuard<'_, Option<Completion>> {
        self.0[usize::from(slot)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Threads {
    slots: Arc<Slots>,
    free: Vec<u16>,
    /// Taken when it ends: then the threads go home.
    jobs: Option<PipeWriter>,
    done: PipeReader,
    threads: Vec<JoinHandle<()>>,
}

/// What a thread has.
struct PoolThread {
    slots: Arc<Slots>,
    jobs: Arc<PipeReader>,
    done: PipeWriter,
    target: FileTarget,
    clock: Clock,
}

impl Threads {
    /// Threads for `requests` under way on the file or device behind `file`.
    pub(super) fn new(
        name: &Arc<str>,
        file: &File,
        requests: usize,
        clock: &Clock,
    ) -> Result<Threads, DeviceError> {
        let system =
            |source| DeviceError::Other(format!("{name}: no {requests} threads to be had: {source}"));
        let (jobs_out, jobs_in) = std::io::pipe().map_err(system)?;
        let (done_out, done_in) = std::io::pipe().map_err(system)?;
        let slots = Arc::new(Slots((0..requests).map(|_| Mutex::new(None)).collect()));
        let jobs_out = Arc::new(jobs_out);
        let free = (0..requests as u16).rev().collect();
        let threads = Vec::with_capacity(requests);
        // From here on those that were started go home where one is not to be had.
        let mut all = Threads { slots, free, jobs: Some(jobs_in), done: done_out, threads };
        for _ in 0..requests {
            let worker = PoolThread {
                slots: Arc::clone(&all.slots),
                jobs: Arc::clone(&jobs_out),
                done: done_in.try_clone().map_err(system)?,
                target: FileTarget::new(name.clone(), file.try_clone().map_err(system)?, Discard::Plain)?,
                clock: clock.clone(),
            };
            let thread = std::thread::Builder::new().name("blocks".into()).stack_size(STACK_BYTES);
            all.threads.push(thread.spawn(move || worker.serve()).map_err(system)?);
        }
        Ok(all)
    }
}

impl PoolThread {
    fn serve(mut self) {
        let mut number = [0; NUMBER_BYTES];
        while (&*self.jobs).read_exact(&mut number).is_ok() {
            if let Some(completion) = self.slots.get(u16::from_ne_bytes(number)).as_mut() {
                let request = &mut completion.request;
                completion.result = self.target.io(&request.io(), request.bytes_mut());
                completion.done = self.clock.now();
            }
            if self.done.write_all(&number).is_err() {
                return;
            }
        }
    }
}

impl UnderWay for Threads {
    fn begin(&mut self, request: Completion, finished: &mut Pending) {
        let (Some(slot), Some(jobs)) = (self.free.pop(), self.jobs.as_mut()) else {
            finished.push(failed(request, "no thread is free"));
            return;
        };
        *self.slots.get(slot) = Some(request);
        if let Err(error) = jobs.write_all(&slot.to_ne_bytes()) {
            let request = self.slots.get(slot).take();
            self.free.push(slot);
            finished.extend(request.map(|request| failed(request, &error.to_string())));
        }
    }

    fn reap(&mut self, wait: bool, finished: &mut Pending) {
        if self.under_way() == 0 || (!wait && !is_readable(self.done.as_fd())) {
            return;
        }
        let mut numbers = [0; 256 * NUMBER_BYTES];
        // Numbers are written whole and so read whole.
        let read = loop {
            match self.done.read(&mut numbers) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other.unwrap_or(0),
            }
        };
        for number in numbers[..read].chunks_exact(NUMBER_BYTES) {
            let slot = u16::from_ne_bytes([number[0], number[1]]);
            finished.extend(self.slots.get(slot).take());
            self.free.push(slot);
        }
    }

    fn under_way(&self) -> usize {
        self.slots.0.len() - self.free.len()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

#[cold]
fn failed(mut request: Completion, why: &str) -> Completion {
    request.result = Err(DeviceError::Other(format!("a request could not be begun: {why}")));
    request
}

impl Drop for Threads {
    /// Waits for what is under way.
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has told it.
            let _ = thread.join();
        }
    }
}
