//! A ring as the kernel here can have it, owned by the thread that uses it.
//!
//! The kernel is told that one thread alone submits (SINGLE_ISSUER, Linux 6.0)
//! and that completions may wait until that thread asks for them
//! (DEFER_TASKRUN, 6.1): they are then posted within its own system calls and
//! interrupt it nowhere else. Both bind the ring to the thread that makes it, so
//! a ring is made on the thread that runs the loop, before the run's start.
//! Older kernels get COOP_TASKRUN (5.19) or nothing; what is refused is left out.
//!
//! Source: `io_uring_setup(2)`, `io_uring_register(2)`.

use crate::buffer::IoBuffer;
use io_uring::{IoUring, Probe, opcode};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

/// Bytes that are registered in all rings of this process.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

/// Room for registered buffers: half of what a user may lock, as the rings themselves
/// count against the same limit; what does not fit stays unregistered. The limit does
/// not bind root.
fn lockable_bytes() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit fills the struct that it is given.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    // SAFETY: geteuid only reads.
    let is_root = unsafe { libc::geteuid() } == 0;
    if is_root || told != 0 { u64::MAX } else { limit.rlim_cur / 2 }
}

/// A ring with what is registered in it.
pub(super) struct Ring {
    pub uring: IoUring,
    /// The only thread that may use it.
    pub thread: ThreadId,
    /// The file is number 0 of the registered files, and buffer `n` of the
    /// slots number `n` of the registered buffers.
    pub registered: bool,
    /// Bytes of buffers that are registered.
    locked_bytes: u64,
    /// The kernel has `IORING_OP_URING_CMD` (5.19), by which a block device
    /// discards (6.12).
    pub has_commands: bool,
}

impl Ring {
    /// For the present thread. Where the kernel refuses to register (a low
    /// RLIMIT_MEMLOCK), the loop does without.
    pub(super) fn new<'a>(
        queue_depth: u32,
        poll: bool,
        file: &impl AsRawFd,
        buffers: impl Iterator<Item = &'a mut IoBuffer>,
    ) -> io::Result<Ring> {
        let uring = build(queue_depth, poll)?;
        let iovecs: Vec<libc::iovec> = buffers.map(IoBuffer::iovec).collect();
        let submitter = uring.submitter();
        let bytes: u64 = iovecs.iter().map(|part| part.iov_len as u64).sum();
        let fits = REGISTERED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= lockable_bytes();
        // SAFETY: the buffers live in the worker's slots, which outlive the ring; a
        // slot whose buffer grows (moves) is no longer used as registered.
        let has_buffers = fits && unsafe { submitter.register_buffers(&iovecs) }.is_ok();
        if !has_buffers {
            REGISTERED.fetch_sub(bytes, Ordering::Relaxed);
        }
        let files = submitter.register_files(&[file.as_raw_fd()]);
        let mut probe = Probe::new();
        let has_commands =
            submitter.register_probe(&mut probe).is_ok() && probe.is_supported(opcode::UringCmd16::CODE);
        let registered = has_buffers && files.is_ok();
        let locked_bytes = if has_buffers { bytes } else { 0 };
        Ok(Ring { uring, thread: std::thread::current().id(), registered, locked_bytes, has_commands })
    }

    /// True where the present thread may use it.
    pub(super) fn is_mine(&self) -> bool {
        self.thread == std::thread::current().id()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel takes a ring apart some time after it was closed; the next one's
        // buffers must not count against RLIMIT_MEMLOCK on top of these.
        if self.registered && self.is_mine() {
            let _ = self.uring.submitter().unregister_buffers();
        }
        REGISTERED.fetch_sub(self.locked_bytes, Ordering::Relaxed);
    }
}

/// The best ring this kernel has, in the order of the kernels that came to have it.
fn build(queue_depth: u32, poll: bool) -> io::Result<IoUring> {
    let base = || {
        let mut builder = IoUring::builder();
        if poll {
            builder.setup_iopoll();
        }
        builder
    };
    let mut deferring = base();
    // Completions that were put off are told of by a flag in the ring (TASKRUN_FLAG, 5.19).
    deferring.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
    let mut cooperating = base();
    cooperating.setup_coop_taskrun().setup_taskrun_flag();
    let refused = match deferring.build(queue_depth) {
        Ok(ring) => return Ok(ring),
        Err(e) => e,
    };
    // Only an unknown flag is a reason to ask for less.
    if refused.raw_os_error() != Some(libc::EINVAL) {
        return Err(refused);
    }
    cooperating.build(queue_depth).or_else(|_| base().build(queue_depth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::cqueue::CompletionQueue;
    use io_uring::types::Timespec;
    use std::time::{Duration, Instant};

    #[test]
    fn a_ring_tells_of_a_completion_without_a_call() {
        let Ok(mut ring) = build(4, false) else {
            println!("skipped: no io_uring here");
            return;
        };
        let soon = Timespec::from(Duration::from_millis(1));
        let entry = opcode::Timeout::new(&raw const soon).build().user_data(7);
        // SAFETY: the time outlives the entry, which is done before this function ends.
        unsafe { ring.submission().push(&entry) }.expect("an empty queue");
        ring.submit().expect("it goes out");
        let begin = Instant::now();
        while !ring.submission().taskrun() && CompletionQueue::is_empty(&ring.completion()) {
            assert!(begin.elapsed() < Duration::from_secs(10), "a completion that nothing tells of");
        }
        // Put off until then, it is had by a call that does not wait.
        // SAFETY: no argument is passed that the kernel would read.
        unsafe { ring.submitter().enter::<()>(0, 0, io_uring::EnterFlags::GETEVENTS.bits(), None) }
            .expect("a call");
        assert_eq!(ring.completion().next().map(|done| done.user_data()), Some(7));
    }
}
