//! The io_uring loop: one ring a stream, up to `queue_depth` IOs in flight.
//!
//! IOs are submitted in the pattern's order; another goes out as soon as one
//! comes back. The response time of an IO runs from the reading of the clock
//! just before the system call that submits it to the reading just after the
//! call that brought its completion. A pause in the pattern lets the queue run
//! empty first. Files and buffers are registered where the kernel allows it.

use crate::buffer::IoBuffer;
use crate::clock::wait_until;
use crate::device::{DeviceError, Stream};
use crate::engine::EngineOptions;
use crate::io::{Arrival, Io, IoRecord, Mode};
use crate::stamp::Key;
use crate::sync::{Shared, Start, StreamEnd};
use crate::units::{Bytes, Nanos};
use io_uring::{IoUring, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// Registered buffers have this size each; larger IOs go unregistered.
const BUFFER_BYTES: usize = 256 << 10;

/// One stream's ring, descriptor and buffers.
pub(crate) struct RingWorker {
    name: Arc<str>,
    file: File,
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Slots whose entries are prepared but not yet submitted.
    fresh: Vec<usize>,
    registered: bool,
    is_block_device: bool,
    /// A trim was among the IOs since this was last looked at.
    pub(crate) trimmed: bool,
}

/// One IO in flight.
struct Slot {
    io: Io,
    submit: Nanos,
    buffer: IoBuffer,
    registered: bool,
}

const NO_IO: Io =
    Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 0, mode: Mode::Read, pattern: 0 };

impl RingWorker {
    pub(crate) fn new(
        name: Arc<str>,
        file: File,
        queue_depth: u32,
        poll: bool,
        options: &EngineOptions,
        key: Key,
        index: u64,
    ) -> Result<RingWorker, DeviceError> {
        if queue_depth == 0 || queue_depth > 4096 {
            return Err(DeviceError::Other(format!(
                "a queue depth of {queue_depth} is not possible; type --queue-depth with 1 to 4096"
            )));
        }
        let ring = build_ring(queue_depth, poll).map_err(|e| {
            DeviceError::Other(format!("io_uring is not to be had here ({e}); type --engine sync instead"))
        })?;
        let slots: Vec<Slot> = (0..u64::from(queue_depth))
            .map(|slot| Slot {
                io: NO_IO,
                submit: Nanos::ZERO,
                buffer: IoBuffer::new(
                    BUFFER_BYTES,
                    options.data,
                    key,
                    options.seed,
                    index << 32 | (slot + 1),
                ),
                registered: false,
            })
            .collect();
        let capacity = slots.len();
        let is_block_device = file.metadata().is_ok_and(|meta| meta.file_type().is_block_device());
        let mut worker = RingWorker {
            name,
            file,
            ring,
            slots,
            free: (0..capacity).rev().collect(),
            fresh: Vec::with_capacity(capacity),
            registered: false,
            is_block_device,
            trimmed: false,
        };
        worker.register();
        if poll {
            worker.probe_polling()?;
        }
        Ok(worker)
    }

    /// Registers the file and the buffers; where the kernel refuses (a low
    /// RLIMIT_MEMLOCK), the loop does without.
    fn register(&mut self) {
        let iovecs: Vec<libc::iovec> = self.slots.iter_mut().map(|s| s.buffer.iovec()).collect();
        let submitter = self.ring.submitter();
        // SAFETY: the buffers live in self.slots as long as the ring; a slot
        // whose buffer grows (moves) is no longer used as registered.
        let buffers = unsafe { submitter.register_buffers(&iovecs) };
        let files = submitter.register_files(&[self.file.as_raw_fd()]);
        self.registered = buffers.is_ok() && files.is_ok();
        self.slots.iter_mut().for_each(|s| s.registered = buffers.is_ok() && files.is_ok());
    }

    /// One real read: a ring can be built for polling on devices that then
    /// refuse every IO.
    fn probe_polling(&mut self) -> Result<(), DeviceError> {
        self.prepare(Io { size: 4096, ..NO_IO });
        self.free.append(&mut self.fresh);
        // A refused IO may complete only at a later call.
        for _ in 0..1000 {
            self.ring.submit_and_wait(1).map_err(|e| self.no_polling(&e))?;
            let result = self.ring.completion().next().map(|c| c.result());
            match result {
                Some(4096) => return Ok(()),
                Some(n) if n >= 0 => {
                    return Err(DeviceError::Other(format!("{} is too small to be polled", self.name)));
                }
                Some(error) => return Err(self.no_polling(&io::Error::from_raw_os_error(-error))),
                None => {}
            }
        }
        Err(DeviceError::Other(format!("{} never completed a polled read; leave --poll away", self.name)))
    }

    fn no_polling(&self, e: &io::Error) -> DeviceError {
        DeviceError::Other(format!(
            "{} cannot be polled for completions ({e}); leave --poll away, or give the driver poll queues \
             (nvme.poll_queues=N)",
            self.name
        ))
    }

    /// Puts `io` into a free slot and its entry into the submission queue.
    #[inline]
    fn prepare(&mut self, io: Io) {
        let index = self.free.pop().expect("the caller saw a free slot");
        let slot = &mut self.slots[index];
        if io.size as usize > BUFFER_BYTES && io.mode != Mode::Trim {
            slot.registered = false;
        }
        let bytes = slot.buffer.prepare(&io);
        let (start, length) = (bytes.as_mut_ptr(), io.size);
        slot.io = io;
        let entry = entry(&io, start, length, index as u16, slot.registered, self.registered, &self.file)
            .user_data(index as u64);
        // SAFETY: the entry's buffer belongs to the slot, which is not touched
        // again before its completion is seen; the descriptor is self.file.
        unsafe { self.ring.submission().push(&entry) }.expect("the queue has an entry for each slot");
        self.fresh.push(index);
    }
}

/// The submission entry for one IO.
#[inline]
fn entry(
    io: &Io,
    start: *mut u8,
    length: u32,
    buffer: u16,
    buffer_registered: bool,
    file_registered: bool,
    file: &File,
) -> squeue::Entry {
    let offset = io.offset.0;
    macro_rules! with_fd {
        ($fd:expr) => {
            match (io.mode, buffer_registered) {
                (Mode::Read, true) => {
                    opcode::ReadFixed::new($fd, start, length, buffer).offset(offset).build()
                }
                (Mode::Read, false) => opcode::Read::new($fd, start, length).offset(offset).build(),
                (Mode::Write, true) => {
                    opcode::WriteFixed::new($fd, start, length, buffer).offset(offset).build()
                }
                (Mode::Write, false) => opcode::Write::new($fd, start, length).offset(offset).build(),
                (Mode::Flush, _) => opcode::Fsync::new($fd).flags(types::FsyncFlags::DATASYNC).build(),
                (Mode::Trim, _) => opcode::Fallocate::new($fd, u64::from(length))
                    .offset(offset)
                    .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                    .build(),
            }
        };
    }
    if file_registered { with_fd!(types::Fixed(0)) } else { with_fd!(types::Fd(file.as_raw_fd())) }
}

fn build_ring(queue_depth: u32, poll: bool) -> io::Result<IoUring> {
    let base = || {
        let mut builder = IoUring::builder();
        if poll {
            builder.setup_iopoll();
        }
        builder
    };
    // Kernels before 6.0 do not know these flags; the thread that runs the
    // loop is not the one that builds the ring, so SINGLE_ISSUER stays away.
    let mut modern = base();
    modern.setup_coop_taskrun();
    modern.build(queue_depth).or_else(|_| base().build(queue_depth))
}

/// THE timed loop of the io_uring engine.
pub(crate) fn ring_loop(
    shared: &Shared<'_>,
    index: u16,
    worker: &mut RingWorker,
    stream: Stream,
    start: &Start<'_>,
) -> Result<StreamEnd, DeviceError> {
    let mut end = StreamEnd::default();
    let mut failure = None;
    let deadline = shared.limits.time.unwrap_or(Nanos(u64::MAX));
    let mut chunk = shared.recorder.fresh();
    let mut stream = stream.peekable();
    stream.peek();
    let depth = worker.slots.len();
    let Some(epoch) = start() else { return Ok(end) };
    loop {
        let mut open = failure.is_none();
        if open && shared.given_up() {
            end.interrupted = true;
            open = false;
        }
        if open && stream.peek().is_some_and(|io| io.arrival.is_past(end.last, deadline)) {
            end.time_limit_hit = true;
            open = false;
        }
        while open && !worker.free.is_empty() {
            let Some(io) = stream.peek() else { break };
            let due = io.arrival.due(end.last);
            if due > end.last {
                if worker.free.len() < depth {
                    break;
                }
                wait_until(&epoch, due, shared.limits.stop);
            }
            let io = stream.next().expect("peeked");
            if io.mode == Mode::Trim {
                if worker.is_block_device {
                    failure = Some(no_discard(&worker.name));
                    break;
                }
                worker.trimmed = true;
            }
            worker.prepare(io);
        }
        if worker.free.len() == depth {
            break;
        }

        let submit = epoch.now();
        let entered = worker.ring.submit_and_wait(1);
        let done = epoch.now();

        for slot in worker.fresh.drain(..) {
            worker.slots[slot].submit = submit;
        }
        if let Err(e) = entered
            && e.raw_os_error() != Some(libc::EINTR)
        {
            return Err(DeviceError::Other(format!("io_uring_enter on {} failed: {e}", worker.name)));
        }
        for completion in worker.ring.completion() {
            let at = completion.user_data() as usize;
            let slot = &worker.slots[at];
            worker.free.push(at);
            if let Some(error) = wrong(&worker.name, &slot.io, completion.result()) {
                failure.get_or_insert(error);
                continue;
            }
            chunk.push(IoRecord::measured(&slot.io, index, slot.submit, done));
            end.ios += 1;
            end.last = done;
            if chunk.len() == chunk.capacity() {
                chunk = shared.recorder.exchange(chunk);
            }
        }
    }
    shared.recorder.finish(chunk);
    failure.map_or(Ok(end), Err)
}

/// Fallocate on a block device writes zeroes, which is not what is asked for.
#[cold]
fn no_discard(name: &str) -> DeviceError {
    DeviceError::Other(format!("{name}: io_uring has no discard for block devices; type --engine sync"))
}

/// The error in a completion's result, if there is one.
#[inline]
fn wrong(name: &str, io: &Io, result: i32) -> Option<DeviceError> {
    let expected = if matches!(io.mode, Mode::Read | Mode::Write) { io.size as i32 } else { 0 };
    if result == expected {
        return None;
    }
    let (target, mode, offset, size) = (name.to_string(), io.mode.name(), io.offset.0, u64::from(io.size));
    Some(if result < 0 {
        DeviceError::Io { target, mode, offset, size, source: io::Error::from_raw_os_error(-result) }
    } else {
        DeviceError::Short { target, mode, offset, size, moved: result as u64 }
    })
}
