//! A device whose requests are recorded, as those of any other run.
//!
//! How: each completion that the program fetches becomes an [`IoRecord`]: when it
//! was submitted, since the tracing began, and its response time, both on the
//! device's clock. Records come in the order of the completions, those of one
//! device are one stream. Requests that failed are no records: a run in which one
//! failed is not to be kept ([`Traced::failed`]).

use super::{BlockRequest, Blocks, Clock, Completion, Next, Which};
use crate::device::{Chunk, Geometry, Recorder, RunEnd};
use crate::io::IoRecord;
use crate::units::Nanos;

/// Passes everything on to a device and every finished request to a [`Recorder`].
pub struct Traced<'a> {
    inner: &'a mut dyn Blocks,
    recorder: &'a dyn Recorder,
    chunk: Chunk,
    stream: u16,
    began: Nanos,
    end: RunEnd,
    failed: u64,
}

impl<'a> Traced<'a> {
    /// Records what is done on `inner` from now on as `stream`.
    pub fn new(inner: &'a mut dyn Blocks, recorder: &'a dyn Recorder, stream: u16) -> Traced<'a> {
        let began = inner.clock().now();
        let chunk = recorder.fresh();
        Traced { inner, recorder, chunk, stream, began, end: RunEnd::default(), failed: 0 }
    }

    /// Requests that failed so far.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Hands the last records over, and says what the run came to. What is still
    /// under way is waited for and dropped with its buffer.
    pub fn finish(mut self) -> RunEnd {
        while self.wait(Which::Any).is_some() {}
        self.recorder.finish(self.chunk);
        self.end
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
        self.end.elapsed = self.end.elapsed.max(completion.done.saturating_sub(self.began));
        if self.chunk.len() == self.chunk.capacity() {
            self.chunk = self.recorder.exchange(std::mem::take(&mut self.chunk));
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
}
