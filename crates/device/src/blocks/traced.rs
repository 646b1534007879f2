//! A device whose requests are recorded, as those of any other run.
//!
//! How: each completion that the program fetches becomes an [`IoRecord`]: when it
//! was submitted, since the tracing began, and its response time, both on the
//! device's clock. Records come in the order of the completions, those of one
//! device are one stream. Requests that failed are no records: a run in which one
//! failed is not to be kept ([`Traced::failed`]). What a program does on several
//! devices is a run of each, as each has its clock and its work ([`traced`]).

use super::{BlockRequest, Blocks, Clock, Completion, Next, Which};
use crate::counters::Counters;
use crate::device::{Chunk, Geometry, Reading, ReadingsDue, Recorder, RunEnd};
use crate::io::IoRecord;
use crate::units::{Bytes, Nanos};
use crate::watch::Watch;

/// Passes everything on to a device and every finished request to a [`Recorder`].
pub struct Traced<'a> {
    inner: &'a mut dyn Blocks,
    recorder: &'a dyn Recorder,
    chunk: Chunk,
    stream: u16,
    began: Nanos,
    end: RunEnd,
    bytes: Bytes,
    failed: u64,
    due: ReadingsDue,
}

/// What was traced of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedEnd {
    /// What the run came to.
    pub end: RunEnd,
    /// Bytes that were read, written and trimmed.
    pub bytes: Bytes,
    /// Requests that failed: then it is not to be kept.
    pub failed: u64,
}

/// Does `what` on devices whose requests are recorded, those of the first device to
/// the first recorder: each device's are a run of its own, of one stream. What is still
/// under way at the end is waited for.
pub fn traced<T, const N: usize>(
    devices: [&mut dyn Blocks; N],
    recorders: [&dyn Recorder; N],
    what: impl FnOnce([&mut dyn Blocks; N]) -> T,
) -> (T, [TracedEnd; N]) {
    let mut watches = Vec::with_capacity(N);
    for (device, recorder) in devices.iter().zip(recorders) {
        // What befalls the process does not befall virtual time.
        watches.push((!device.clock().is_virtual()).then(|| Watch::begin(recorder, 1, true)));
    }
    let mut all = watches.iter().zip(recorders).zip(devices).map(|((watch, recorder), device)| {
        watch.as_ref().map(Watch::start);
        let recorder = watch.as_ref().map_or(recorder, |watch| watch);
        Traced::new(device, recorder, 0)
    });
    let mut all: [Traced<'_>; N] = std::array::from_fn(|_| all.next().expect("as many as devices"));
    let result = what(all.each_mut().map(|device| device as &mut dyn Blocks));
    let mut watches = watches.iter();
    let ends = all.map(|device| {
        let mut end = device.finish();
        if let Some(Some(watch)) = watches.next() {
            end.end.incidents = watch.end();
        }
        end
    });
    (result, ends)
}

impl<'a> Traced<'a> {
    /// Records what is done on `inner` from now on as `stream`.
    pub fn new(inner: &'a mut dyn Blocks, recorder: &'a dyn Recorder, stream: u16) -> Traced<'a> {
        let began = inner.clock().now();
        let chunk = recorder.fresh();
        let (end, due) = (RunEnd::default(), ReadingsDue::of(recorder));
        Traced { inner, recorder, chunk, stream, began, end, bytes: Bytes(0), failed: 0, due }
    }

    /// Requests that failed so far.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Hands the last records over, and says what the run came to. What is still
    /// under way is waited for and dropped with its buffer.
    pub fn finish(mut self) -> TracedEnd {
        while self.wait(Which::Any).is_some() {}
        self.recorder.finish(self.chunk);
        TracedEnd { end: self.end, bytes: self.bytes, failed: self.failed }
    }

    fn record(&mut self, completion: &Completion) {
        if completion.result.is_err() {
            self.failed += 1;
            return;
        }
        let submit = completion.submitted.saturating_sub(self.began);
        let response = completion.done.saturating_sub(completion.submitted);
        self.chunk.push(IoRecord::new(&completion.request.io(), self.stream, submit, response));
        self.end.ios += 1;
        self.bytes.0 += u64::from(completion.request.length);
        self.end.elapsed = self.end.elapsed.max(completion.done.saturating_sub(self.began));
        if self.chunk.len() == self.chunk.capacity() {
            self.chunk = self.recorder.exchange(std::mem::take(&mut self.chunk));
        }
        let at = self.end.elapsed;
        if self.inner.clock().is_virtual()
            && self.due.at(at)
            && let Some(counters) = self.inner.counters()
        {
            self.recorder.reading(Reading { at, counters });
        }
    }
}

impl Blocks for Traced<'_> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, request: BlockRequest) {
        self.inner.submit(request);
    }

    fn wait(&mut self, which: Which) -> Option<Completion> {
        let completion = self.inner.wait(which)?;
        self.record(&completion);
        Some(completion)
    }

    fn next(&mut self) -> Next<'_> {
        self.inner.next()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn counters(&self) -> Option<Counters> {
        self.inner.counters()
    }
}
