//! The synchronous loop: one thread a stream, one IO at a time, as the paper
//! asks (000/001, section 4.3: direct IO past the file system, synchronous IO
//! past the system's own parallelism).
//!
//! The response time of an IO is the time between two readings of the clock
//! around one system call (`pread`, `pwrite`, `fdatasync`, a discard) or, on
//! the null device, around nothing. It contains one reading of the clock. In an
//! open loop it counts from the IO's intended instant; a stream that is late
//! submits its IOs back to back until it has caught up.

use crate::buffer::IoBuffer;
use crate::clock::{Epoch, wait_until};
use crate::device::record_of;
use crate::device::{DeviceError, Recorder, RunEnd, RunLimits, Stream};
use crate::gate::Gate;
use crate::io::{Io, IoRecord};
use crate::units::Nanos;
use crate::watch::Watch;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the loop sends an IO. Two exist: a file descriptor and nothing.
pub(crate) trait SyncTarget: Send {
    /// Does the IO and returns when it is done.
    fn io(&mut self, io: &Io, buffer: &mut [u8]) -> Result<(), DeviceError>;
}

/// Called by a stream when it is ready: waits for the others and gives the
/// moment at which all begin, or `None` where the run is given up before.
pub(crate) type StartGate<'a> = dyn Fn() -> Option<Epoch> + Sync + 'a;

/// What one stream came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamEnd {
    pub ios: u64,
    pub last: Nanos,
    pub time_limit_hit: bool,
    pub interrupted: bool,
}

/// What all streams of a run share.
pub(crate) struct Shared<'a> {
    pub recorder: &'a dyn Recorder,
    pub limits: RunLimits<'a>,
    /// Set when any stream failed: the others end too.
    pub failed: AtomicBool,
}

impl<'a> Shared<'a> {
    pub(crate) fn new(recorder: &'a dyn Recorder, limits: RunLimits<'a>) -> Shared<'a> {
        Shared { recorder, limits, failed: AtomicBool::new(false) }
    }

    /// Must the run be given up before its next IO?
    #[inline(always)]
    pub(crate) fn given_up(&self) -> bool {
        self.limits.stop.now() || self.failed.load(Ordering::Relaxed)
    }

    /// Runs one stream per thread with `body(index, stream, start)`, all of
    /// them started at the same moment, and says what befell the run; a single
    /// stream runs in the caller's thread. `in_flight` where `body` hands records
    /// over while it has IOs under way.
    pub(crate) fn run_all<W: Send>(
        &self,
        streams: Vec<Stream>,
        workers: &mut [W],
        in_flight: bool,
        body: impl Fn(&Shared, u16, &mut W, Stream, &StartGate) -> Result<StreamEnd, DeviceError> + Sync,
    ) -> Result<RunEnd, DeviceError> {
        assert!(streams.len() <= workers.len() && streams.len() <= IoRecord::MAX_STREAMS);
        let watch = Watch::begin(self.recorder, streams.len(), in_flight);
        let watched = Shared::new(&watch, self.limits);
        let ends = watched.run_watched(&watch, streams, workers, body)?;
        Ok(RunEnd { incidents: watch.end(), ..whole(&ends) })
    }

    /// Runs one stream in the caller's thread with IOs under way while it hands
    /// records over, which it tells of as of `told` streams.
    pub(crate) fn run_queue<W>(
        &self,
        stream: Stream,
        told: usize,
        worker: &mut W,
        body: impl Fn(&Shared, u16, &mut W, Stream, &StartGate) -> Result<StreamEnd, DeviceError>,
    ) -> Result<RunEnd, DeviceError> {
        let watch = Watch::begin(self.recorder, told, true);
        let watched = Shared::new(&watch, self.limits);
        let end = body(&watched, 0, worker, stream, &|| Some(watch.start()))?;
        Ok(RunEnd { incidents: watch.end(), ..whole(&[end]) })
    }

    fn run_watched<W: Send>(
        &self,
        watch: &Watch<'_>,
        streams: Vec<Stream>,
        workers: &mut [W],
        body: impl Fn(&Shared, u16, &mut W, Stream, &StartGate) -> Result<StreamEnd, DeviceError> + Sync,
    ) -> Result<Vec<StreamEnd>, DeviceError> {
        let count = streams.len();
        if count == 1 {
            let stream = streams.into_iter().next().expect("one stream");
            return body(self, 0, &mut workers[0], stream, &|| Some(watch.start())).map(|end| vec![end]);
        }
        let gate = Gate::new(count);
        let start = || gate.pass(|| watch.start());
        let (body, start, gate) = (&body, &start, &gate);
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(count);
            for (index, (stream, worker)) in streams.into_iter().zip(workers.iter_mut()).enumerate() {
                let run = move || {
                    let _arrives = gate.expected();
                    let end = body(self, index as u16, worker, stream, start);
                    if end.is_err() {
                        self.failed.store(true, Ordering::Relaxed);
                    }
                    end
                };
                match std::thread::Builder::new().spawn_scoped(scope, run) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        // Those that wait for this one go home.
                        gate.give_up();
                        return Err(no_thread(count, &error));
                    }
                }
            }
            threads.into_iter().map(|t| t.join().expect("a stream's thread does not panic")).collect()
        })
    }
}

/// What to do about threads that cannot be had.
fn no_thread(count: usize, error: &std::io::Error) -> DeviceError {
    DeviceError::Other(format!(
        "cannot start {count} threads, one for each stream: {error}; type fewer streams, or raise the limit \
         of processes (ulimit -u, or pids.max of the control group)"
    ))
}

/// The run's end from its streams' ends.
fn whole(ends: &[StreamEnd]) -> RunEnd {
    RunEnd {
        ios: ends.iter().map(|e| e.ios).sum(),
        elapsed: ends.iter().map(|e| e.last).max().unwrap_or_default(),
        time_limit_hit: ends.iter().any(|e| e.time_limit_hit),
        interrupted: ends.iter().any(|e| e.interrupted),
        ..RunEnd::default()
    }
}

/// A thread's own things: its target and its buffer, ready before the run.
pub(crate) struct Worker<T> {
    pub target: T,
    pub buffer: IoBuffer,
}

/// THE timed loop of the synchronous engine.
pub(crate) fn stream_loop<T: SyncTarget>(
    shared: &Shared<'_>,
    index: u16,
    worker: &mut Worker<T>,
    mut stream: Stream,
    start: &StartGate<'_>,
) -> Result<StreamEnd, DeviceError> {
    let mut end = StreamEnd::default();
    let deadline = shared.limits.time.unwrap_or(Nanos(u64::MAX));
    let mut chunk = shared.recorder.fresh();
    let mut next = stream.next();
    if let Some(io) = &next {
        worker.buffer.prepare(io);
    }
    let Some(epoch) = start() else { return Ok(end) };
    while let Some(io) = next {
        if shared.given_up() {
            end.interrupted = true;
            break;
        }
        if io.arrival.is_past(end.last, deadline) {
            end.time_limit_hit = true;
            break;
        }
        let bytes = worker.buffer.prepare(&io);
        let due = io.arrival.due(end.last);
        if due > end.last {
            wait_until(&epoch, due, shared.limits.stop);
        }

        let submit = epoch.now();
        worker.target.io(&io, bytes)?;
        let done = epoch.now();

        chunk.push(record_of(&io, index, submit, done)?);
        end.ios += 1;
        end.last = done;
        if chunk.len() == chunk.capacity() {
            chunk = shared.recorder.exchange(chunk);
        }
        next = stream.next();
    }
    shared.recorder.finish(chunk);
    Ok(end)
}

/// A target that does nothing: what is left is the tool's own cost.
pub(crate) struct NoTarget;

impl SyncTarget for NoTarget {
    #[inline(always)]
    fn io(&mut self, io: &Io, buffer: &mut [u8]) -> Result<(), DeviceError> {
        std::hint::black_box((io.offset, buffer.as_ptr()));
        Ok(())
    }
}
