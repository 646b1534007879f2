//! The io_uring loop: one ring a stream, up to `queue_depth` IOs in flight.
//!
//! IOs are submitted in the pattern's order, each by a system call of its own, and
//! another goes out as soon as one comes back. The response time of an IO runs from
//! the reading of the clock just before the call that submits it to a reading taken
//! when its completion is reaped from the queue; both are its own. Completions are
//! reaped after every call, also after one that only submits. A call that submits does
//! not wait where others are under way: workers of the kernel are often done by its
//! end, and the loop need not sleep and be woken. Where nothing was done and no more
//! may go out the loop looks for a completion for [`look::LONGEST`] before a call of its own
//! sleeps until there is one, as being woken takes longer ([`look`]). A pause in the pattern
//! lets the queue run empty first. In an open loop an IO goes out at its intended
//! instant where there is room for it, else as soon as there is; while the next one's
//! instant is ahead, completions are waited for until shortly before it. Files and buffers are registered where the kernel
//! allows it; the ring is made on the thread that runs the loop ([`ring`]).
//!
//! One call for several IOs would save calls, but they would share a reading and the
//! first would wait for the last to be prepared; and where the kernel hands IOs to
//! workers (devices that cannot promise not to block) the loop would sleep and be
//! woken once an IO, which takes longer than the calls.
//!
//! A trim is a hole punched into a file, on a block device a discard by
//! `IORING_OP_URING_CMD`, which Linux has since 6.12; else it is refused.

mod entry;
mod look;
mod ring;

use crate::buffer::IoBuffer;
use crate::clock::{Epoch, SPIN, wait_until};
use crate::device::record_of;
use crate::device::{Chunk, DeviceError, Stream};
use crate::engine::{Discard, EngineOptions};
use crate::io::{Arrival, Io, Mode};
use crate::stamp::Key;
use crate::sync::{Shared, StartGate, StreamEnd};
use crate::units::{Bytes, Nanos};
use entry::{BufferMemory, Goal, entry};
use io_uring::cqueue::CompletionQueue;
use io_uring::squeue::SubmissionQueue;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, Submitter};
use look::Looks;
use ring::Ring;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::thread::ThreadId;

/// Registered buffers have this size each; larger IOs go unregistered.
const BUFFER_BYTES: usize = 256 << 10;

/// One stream's descriptor and buffers, and its ring while there is one.
pub(crate) struct RingWorker {
    // Before the slots: their memory is registered in it.
    ring: Option<Ring>,
    queue_depth: u32,
    poll: bool,
    /// The thread that made it: where a single stream's loop runs, every time.
    home: ThreadId,
    /// Streams that its records tell of, in turn.
    told: u16,
    slots: Slots,
    target: UringTarget,
    /// A trim was among the IOs since this was last looked at.
    pub(crate) trimmed: bool,
}

/// Where the IOs go.
struct UringTarget {
    name: Arc<str>,
    file: File,
    is_block_device: bool,
    discard: Discard,
}

/// The IOs in flight and room for more.
struct Slots {
    all: Vec<Slot>,
    free: Vec<usize>,
}

/// One IO in flight.
struct Slot {
    io: Io,
    /// Which stream it is told of as.
    stream: u16,
    submit: Nanos,
    buffer: IoBuffer,
    /// Its buffer is as large as when it was registered.
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
        let buffer =
            |slot| IoBuffer::new(BUFFER_BYTES, options.data, key, options.seed, index << 32 | (slot + 1));
        let is_block_device = file.metadata().is_ok_and(|meta| meta.file_type().is_block_device());
        Ok(RingWorker {
            ring: None,
            queue_depth,
            poll,
            home: std::thread::current().id(),
            told: 1,
            slots: Slots::new((0..u64::from(queue_depth)).map(buffer)),
            target: UringTarget { name, file, is_block_device, discard: options.discard },
            trimmed: false,
        })
    }

    /// The same for a sequence that stands for as many streams as the queue is deep:
    /// IO number `i` is told of as stream `i` modulo the depth.
    pub(crate) fn telling_of_streams(mut self) -> RingWorker {
        self.told = self.queue_depth as u16;
        self
    }

    /// IOs under way at most.
    pub(crate) fn queue_depth(&self) -> u32 {
        self.queue_depth
    }

    /// Has a ring that the present thread may use.
    fn get_ready(&mut self) -> Result<(), DeviceError> {
        if self.slots.in_flight() > 0 {
            return Err(DeviceError::Other(format!(
                "{} still has IOs of a run that failed",
                self.target.name
            )));
        }
        if self.ring.as_ref().is_some_and(Ring::is_mine) {
            return Ok(());
        }
        self.ring = None;
        let buffers = self.slots.all.iter_mut().map(|slot| &mut slot.buffer);
        let ring = Ring::new(self.queue_depth, self.poll, &self.target.file, buffers).map_err(|e| {
            DeviceError::Other(format!("io_uring is not to be had here ({e}); type --engine sync instead"))
        })?;
        self.slots.all.iter_mut().for_each(|slot| slot.registered = ring.registered);
        self.ring = Some(ring);
        if self.poll { self.probe_polling() } else { Ok(()) }
    }

    /// One real read: a ring can be built for polling on devices that then
    /// refuse every IO.
    fn probe_polling(&mut self) -> Result<(), DeviceError> {
        let (slots, target) = (&mut self.slots, &self.target);
        let ring = self.ring.as_mut().expect("a ring was made");
        let registered = ring.registered;
        slots.prepare(Io { size: 4096, ..NO_IO }, target.to(registered), &mut ring.uring.submission());
        // A refused IO may complete only at a later call.
        for _ in 0..1000 {
            ring.uring.submit_and_wait(1).map_err(|e| target.no_polling(&e))?;
            let result = ring.uring.completion().next().map(|c| (c.user_data() as usize, c.result()));
            let Some((slot, result)) = result else { continue };
            slots.free.push(slot);
            return match result {
                4096 => Ok(()),
                0.. => Err(DeviceError::Other(format!("{} is too small to be polled", target.name))),
                error => Err(target.no_polling(&io::Error::from_raw_os_error(-error))),
            };
        }
        Err(DeviceError::Other(format!("{} never completed a polled read; leave --poll away", target.name)))
    }

    /// Lets go of a ring that no later run can use: the thread ends with this one.
    fn leave(&mut self) {
        if self.home != std::thread::current().id() {
            self.ring = None;
        }
    }
}

impl UringTarget {
    /// As the entries have it, with the file registered or not.
    fn to(&self, registered: bool) -> Goal<'_> {
        Goal { file: &self.file, registered, is_block_device: self.is_block_device }
    }

    fn no_polling(&self, e: &io::Error) -> DeviceError {
        DeviceError::Other(format!(
            "{} cannot be polled for completions ({e}); leave --poll away, or give the driver poll queues \
             (nvme.poll_queues=N)",
            self.name
        ))
    }

    /// Whether trims can be submitted at all.
    fn may_trim(&self, has_commands: bool) -> bool {
        self.discard == Discard::Plain && (has_commands || !self.is_block_device)
    }

    #[cold]
    fn refused_trim(&self) -> DeviceError {
        if self.discard == Discard::Plain {
            return self.no_discard();
        }
        let name = &self.name;
        DeviceError::Other(format!(
            "{name}: io_uring has no secure discard; type --discard plain, or --engine sync"
        ))
    }

    fn no_discard(&self) -> DeviceError {
        DeviceError::Other(format!(
            "{}: io_uring has no discard for this block device (Linux has it since 6.12, and the device must \
             have it, too); type --engine sync",
            self.name
        ))
    }

    /// The error in a completion's result, if there is one.
    #[inline]
    fn wrong(&self, io: &Io, result: i32) -> Option<DeviceError> {
        let expected = if matches!(io.mode, Mode::Read | Mode::Write) { io.size as i32 } else { 0 };
        if result == expected { None } else { Some(self.went_wrong(io, result)) }
    }

    #[cold]
    fn went_wrong(&self, io: &Io, result: i32) -> DeviceError {
        if io.mode == Mode::Trim && self.is_block_device && result == -libc::EOPNOTSUPP {
            return self.no_discard();
        }
        let (target, mode, offset, size) =
            (self.name.to_string(), io.mode.name(), io.offset.0, u64::from(io.size));
        if result < 0 {
            DeviceError::Io { target, mode, offset, size, source: io::Error::from_raw_os_error(-result) }
        } else {
            DeviceError::Short { target, mode, offset, size, moved: result as u64 }
        }
    }
}

impl Slots {
    fn new(buffers: impl Iterator<Item = IoBuffer>) -> Slots {
        let all: Vec<Slot> = buffers
            .map(|buffer| Slot { io: NO_IO, stream: 0, submit: Nanos::ZERO, buffer, registered: false })
            .collect();
        let capacity = all.len();
        Slots { all, free: (0..capacity).rev().collect() }
    }

    /// IOs prepared or under way.
    #[inline]
    fn in_flight(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Puts `io` into a free slot and its entry into the submission queue; gives
    /// the slot's number.
    #[inline]
    fn prepare(&mut self, io: Io, goal: Goal<'_>, queue: &mut SubmissionQueue<'_>) -> usize {
        let index = self.free.pop().expect("the caller saw a free slot");
        let slot = &mut self.all[index];
        if io.size as usize > BUFFER_BYTES && io.mode != Mode::Trim {
            slot.registered = false;
        }
        let start = slot.buffer.prepare(&io).as_mut_ptr();
        slot.io = io;
        let memory = BufferMemory { start, registered: slot.registered.then_some(index as u16) };
        let entry = entry(&io, memory, goal).user_data(index as u64);
        // SAFETY: the entry's buffer belongs to the slot, which is not touched
        // again before its completion is seen; the descriptor is the worker's.
        unsafe { queue.push(&entry) }.expect("the queue has an entry for each slot");
        index
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.in_flight() > 0 {
            // After a failure of the ring itself the device may still write there.
            std::mem::forget(std::mem::take(&mut self.all));
        }
    }
}

/// What a call waits for besides submitting.
#[derive(Clone, Copy)]
enum Wanted {
    /// Nothing: it takes what is done.
    Nothing,
    /// An IO that is done.
    One,
    /// The same, for no longer than this.
    OneWithin(Nanos),
}

/// The IOs of a run on their way through the ring's two queues.
struct Flight<'a> {
    target: &'a UringTarget,
    goal: Goal<'a>,
    /// Trims can be submitted here.
    may_trim: bool,
    /// The kernel can wait for so long and no longer (5.11).
    has_timeouts: bool,
    /// Whether it is worth looking before a wait.
    looks: Looks,
    trimmed: &'a mut bool,
    slots: &'a mut Slots,
    submitter: Submitter<'a>,
    submissions: SubmissionQueue<'a>,
    completions: CompletionQueue<'a>,
}

impl Flight<'_> {
    /// Nothing is prepared or under way.
    #[inline]
    fn is_empty(&self) -> bool {
        self.slots.in_flight() == 0
    }

    /// Puts `io` into the submission queue; gives its slot.
    #[inline]
    fn put(&mut self, io: Io, stream: u16) -> Result<usize, DeviceError> {
        if io.mode == Mode::Trim {
            if !self.may_trim {
                return Err(self.target.refused_trim());
            }
            *self.trimmed = true;
        }
        let slot = self.slots.prepare(io, self.goal, &mut self.submissions);
        self.slots.all[slot].stream = stream;
        Ok(slot)
    }

    /// What to wait for after an IO was `put` into the queue or not, where the next
    /// one is due `ahead` of now.
    #[inline]
    fn wanted(&mut self, put: Option<usize>, ahead: Option<Nanos>, epoch: &Epoch) -> Wanted {
        match (put, ahead) {
            // Alone in the queue, it is waited for in the call that submits it.
            (Some(_), _) if self.slots.all.len() > 1 => Wanted::Nothing,
            (None, Some(ahead)) if ahead > SPIN && self.has_timeouts => {
                Wanted::OneWithin(ahead.saturating_sub(SPIN))
            }
            (None, Some(_)) => Wanted::Nothing,
            (None, None) if self.appears(epoch) => Wanted::Nothing,
            _ => Wanted::One,
        }
    }

    /// Looks for a completion for a while, where that is worth it: true when there is one
    /// to be had by a call that does not wait.
    #[inline]
    fn appears(&mut self, epoch: &Epoch) -> bool {
        let Flight { looks, submissions, completions, .. } = self;
        looks.look(epoch, || {
            completions.sync();
            submissions.taskrun() || !CompletionQueue::is_empty(completions)
        })
    }

    /// Submits what is in the queue: the IO in the slot `put`, at the moment `now`
    /// gives; and waits for what is `wanted`.
    #[inline]
    fn enter(
        &mut self,
        put: Option<usize>,
        wanted: Wanted,
        now: impl FnOnce() -> Nanos,
    ) -> Result<(), DeviceError> {
        self.submissions.sync();
        // Makes room for those to come; the kernel does not wait while it sees some.
        self.completions.sync();
        let to_submit = self.submissions.len() as u32;
        if let Some(slot) = put {
            self.slots.all[slot].submit = now();
        }
        // Completions that were put off are posted within a call with this flag only.
        let flags = EnterFlags::GETEVENTS.bits();
        let entered = match wanted {
            Wanted::OneWithin(most) => {
                let most = Timespec::from(std::time::Duration::from(most));
                self.submitter.submit_with_args(1, &SubmitArgs::new().timespec(&most))
            }
            wanted => {
                let least = u32::from(matches!(wanted, Wanted::One));
                // SAFETY: no argument is passed that the kernel would read.
                unsafe { self.submitter.enter::<()>(to_submit, least, flags, None) }
            }
        };
        // What the kernel took from the one queue and put into the other.
        self.submissions.sync();
        self.completions.sync();
        match entered {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::EINTR | libc::ETIME)) => {
                Err(DeviceError::Other(format!("io_uring_enter on {} failed: {e}", self.target.name)))
            }
            _ => Ok(()),
        }
    }

    /// The next IO that is done: what it was, of which stream, when it was
    /// submitted, and what the kernel says of it.
    #[inline]
    fn done(&mut self) -> Option<(Io, u16, Nanos, i32)> {
        let completion = self.completions.next()?;
        let at = completion.user_data() as usize;
        self.slots.free.push(at);
        let slot = &self.slots.all[at];
        Some((slot.io, slot.stream, slot.submit, completion.result()))
    }
}

/// Makes the ring ready and runs the loop on it.
pub(crate) fn ring_loop(
    shared: &Shared<'_>,
    index: u16,
    worker: &mut RingWorker,
    stream: Stream,
    start: &StartGate<'_>,
) -> Result<StreamEnd, DeviceError> {
    worker.get_ready()?;
    let RingWorker { ring, slots, target, trimmed, told, poll, .. } = &mut *worker;
    let told = index..index + *told;
    let ring = ring.as_mut().expect("a ring was made ready");
    let (goal, may_trim) = (target.to(ring.registered), target.may_trim(ring.has_commands));
    let has_timeouts = ring.uring.params().is_feature_ext_arg();
    // A polled ring has its completions by calls only.
    let looks = Looks::new(!*poll);
    let (submitter, submissions, completions) = ring.uring.split();
    let mut flight = Flight {
        target,
        goal,
        may_trim,
        has_timeouts,
        looks,
        trimmed,
        slots,
        submitter,
        submissions,
        completions,
    };
    // Spares looking the ring's descriptor up in each call; Linux 5.18.
    let numbered = flight.submitter.register_ring_fd().is_ok();
    let end = timed_loop(shared, told, &mut flight, stream, start);
    if numbered {
        let _ = flight.submitter.unregister_ring_fd();
    }
    drop(flight);
    worker.leave();
    end
}

/// THE timed loop of the io_uring engine; records tell of the streams `told`, in turn.
fn timed_loop(
    shared: &Shared<'_>,
    told: Range<u16>,
    flight: &mut Flight<'_>,
    stream: Stream,
    start: &StartGate<'_>,
) -> Result<StreamEnd, DeviceError> {
    let mut end = StreamEnd::default();
    let mut failure = None;
    let deadline = shared.limits.time.unwrap_or(Nanos(u64::MAX));
    let mut chunks: Vec<Chunk> = told.clone().map(|_| shared.recorder.fresh()).collect();
    let mut next_told = told.start;
    let mut stream = stream.peekable();
    stream.peek();
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
        let (mut put, mut ahead) = (None, None);
        let room = open && !flight.slots.free.is_empty();
        if let Some(arrival) = stream.peek().filter(|_| room).map(|io| io.arrival) {
            let is_ahead = match arrival {
                Arrival::After(wait) => wait > Nanos::ZERO,
                Arrival::At(instant) => {
                    ahead = Some(instant.saturating_sub(epoch.now())).filter(|left| *left > Nanos::ZERO);
                    ahead.is_some()
                }
            };
            if !is_ahead || flight.is_empty() {
                if is_ahead {
                    wait_until(&epoch, arrival.due(end.last), shared.limits.stop);
                }
                let io = stream.next().expect("peeked");
                put = flight.put(io, next_told).map_err(|refused| failure = Some(refused)).ok();
                next_told = if next_told + 1 == told.end { told.start } else { next_told + 1 };
            }
        }
        if flight.is_empty() {
            break;
        }
        let wanted = flight.wanted(put, ahead, &epoch);
        flight.enter(put, wanted, || epoch.now())?;
        while let Some((io, stream, submit, result)) = flight.done() {
            let done = epoch.now();
            if let Some(error) = flight.target.wrong(&io, result) {
                failure.get_or_insert(error);
                continue;
            }
            let record = match record_of(&io, stream, submit, done) {
                Ok(record) => record,
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            };
            let chunk = &mut chunks[usize::from(stream - told.start)];
            chunk.push(record);
            end.ios += 1;
            end.last = done;
            if chunk.len() == chunk.capacity() {
                *chunk = shared.recorder.exchange(std::mem::take(chunk));
            }
        }
    }
    chunks.into_iter().for_each(|chunk| shared.recorder.finish(chunk));
    failure.map_or(Ok(end), Err)
}
