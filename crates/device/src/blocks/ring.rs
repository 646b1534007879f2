//! Requests kept under way by one io_uring.
//!
//! How: a request waits in a slot that owns its buffer until the completion is
//! seen; it goes to the kernel when it is submitted, with a system call of its
//! own. Trims are done at once, as a ring has no discard for block devices.
//! Buffers move with their requests and so are not registered.

use super::real::UnderWay;
use super::{Clock, Completion, Pending};
use crate::buffer::AlignedBuffer;
use crate::device::DeviceError;
use crate::engine::Discard;
use crate::io::Mode;
use crate::real::FileTarget;
use crate::sync::SyncTarget;
use io_uring::{IoUring, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

pub(super) struct BlocksRing {
    name: Arc<str>,
    ring: IoUring,
    slots: Vec<Option<Completion>>,
    free: Vec<usize>,
    /// Keeps the descriptor open that the ring uses.
    file: File,
    trims: FileTarget,
    clock: Clock,
    /// Why nothing can be submitted any more.
    broken: Option<String>,
}

impl BlocksRing {
    /// A ring for `requests` under way on `file`.
    pub(super) fn new(
        name: Arc<str>,
        file: File,
        requests: usize,
        clock: Clock,
    ) -> Result<BlocksRing, DeviceError> {
        let unavailable =
            |error| DeviceError::Other(format!("{name}: io_uring is not to be had here: {error}"));
        let ring = IoUring::new(requests as u32).map_err(unavailable)?;
        let again = file.try_clone().map_err(unavailable)?;
        let trims = FileTarget::new(name.clone(), again, Discard::Plain)?;
        let slots = (0..requests).map(|_| None).collect();
        let free = (0..requests).rev().collect();
        Ok(BlocksRing { name, ring, slots, free, file, trims, clock, broken: None })
    }

    /// The entry of what is in `slot`.
    fn entry(&mut self, slot: usize) -> Option<squeue::Entry> {
        let file = types::Fd(self.file.as_raw_fd());
        let request = &mut self.slots[slot].as_mut()?.request;
        let (offset, length) = (request.offset.0, request.length);
        let start = request.bytes_mut().as_mut_ptr();
        let entry = match request.mode {
            Mode::Read => opcode::Read::new(file, start, length).offset(offset).build(),
            Mode::Write => opcode::Write::new(file, start, length).offset(offset).build(),
            Mode::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            Mode::Trim => return None,
        };
        Some(entry.user_data(slot as u64))
    }

    /// Hands what is queued to the kernel, after a signal again.
    fn enter(&mut self, wait: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(wait) {
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // The kernel is short of memory, or its own queue is full: what is
                // under way will end.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                    std::thread::yield_now();
                }
                other => return other.map(|_| ()),
            }
        }
    }

    /// Nothing can be learnt of what is under way any more: its memory is never
    /// used again, and the requests fail.
    #[cold]
    fn give_up(&mut self, error: &io::Error, finished: &mut Pending) {
        let why = format!("io_uring_enter on {} failed: {error}", self.name);
        for slot in 0..self.slots.len() {
            let Some(mut completion) = self.slots[slot].take() else { continue };
            std::mem::forget(std::mem::replace(&mut completion.request.buffer, AlignedBuffer::empty()));
            completion.result = Err(DeviceError::Other(why.clone()));
            finished.push(completion);
        }
        self.free = (0..self.slots.len()).collect();
        self.broken = Some(why);
    }
}

impl UnderWay for BlocksRing {
    fn begin(&mut self, mut request: Completion, finished: &mut Pending) {
        if let Some(why) = &self.broken {
            request.result = Err(DeviceError::Other(why.clone()));
            finished.push(request);
            return;
        }
        if request.request.mode == Mode::Trim {
            request.result = self.trims.io(&request.request.io(), &mut []);
            request.done = self.clock.now();
            finished.push(request);
            return;
        }
        let slot = self.free.pop().expect("the caller keeps within the slots");
        self.slots[slot] = Some(request);
        let entry = self.entry(slot).expect("the slot was filled, and not with a trim");
        // SAFETY: the entry's buffer belongs to the slot, which is emptied only when
        // its completion was seen, and never freed otherwise; the descriptor is that
        // of self.file.
        unsafe { self.ring.submission().push(&entry) }.expect("the queue has an entry for each slot");
        if let Err(error) = self.enter(0) {
            self.give_up(&error, finished);
        }
    }

    fn reap(&mut self, wait: bool, finished: &mut Pending) {
        let mut reaped = 0;
        loop {
            while let Some(entry) = self.ring.completion().next() {
                // After giving up the memory is not ours any more.
                if self.broken.is_some() {
                    continue;
                }
                let slot = entry.user_data() as usize;
                let done = self.clock.now();
                self.free.push(slot);
                if let Some(mut completion) = self.slots[slot].take() {
                    completion.done = done;
                    completion.result = outcome(&self.name, &completion, entry.result());
                    finished.push(completion);
                    reaped += 1;
                }
            }
            if reaped > 0 || !wait || self.under_way() == 0 {
                return;
            }
            if let Err(error) = self.enter(1) {
                return self.give_up(&error, finished);
            }
        }
    }

    fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring keeps its descriptor open as long as it lives, which is
        // longer than the borrow of self.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

/// What a completion's result means.
fn outcome(name: &str, completion: &Completion, result: i32) -> Result<(), DeviceError> {
    let request = &completion.request;
    let expected = if request.mode == Mode::Flush { 0 } else { request.length as i32 };
    if result == expected {
        return Ok(());
    }
    let (target, mode, offset, size) =
        (name.to_string(), request.mode.name(), request.offset.0, u64::from(request.length));
    Err(if result < 0 {
        DeviceError::Io { target, mode, offset, size, source: io::Error::from_raw_os_error(-result) }
    } else {
        DeviceError::Short { target, mode, offset, size, moved: result as u64 }
    })
}

impl Drop for BlocksRing {
    /// Waits for what is under way: the kernel still uses its memory.
    fn drop(&mut self) {
        let mut last = Pending::new(0);
        while self.under_way() > 0 {
            self.reap(true, &mut last);
        }
    }
}
