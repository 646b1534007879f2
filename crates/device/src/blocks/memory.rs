//! A device of memory, for programs and their tests; and one that keeps nothing.
//!
//! How: on the wall's clock a request is done when it is submitted and takes what the
//! copying takes. On a virtual clock, which a simulated device beside it brings, it
//! takes no time, or as long as was said ([`MemoryBlocks::taking`]); what it does to
//! the contents happens when it is finished, as on a simulated device.

use super::{BlockRequest, Blocks, Clock, Completion, Next, Pending, Which, countable};
use crate::buffer::AlignedBuffer;
use crate::device::{DeviceError, Geometry};
use crate::io::Mode;
use crate::units::{Bytes, Nanos};

/// A device of memory, or of nothing at all.
pub struct MemoryBlocks {
    name: String,
    geometry: Geometry,
    /// `None` where nothing is kept: then all reads are zeros.
    memory: Option<AlignedBuffer>,
    clock: Clock,
    requests: usize,
    /// What a request takes in virtual time.
    takes: Nanos,
    pending: Pending,
}

impl MemoryBlocks {
    /// `capacity` zeros with sectors of 512 bytes and up to `requests` under way;
    /// `name` is what errors call it.
    ///
    /// # Errors
    /// Where `capacity` is zero or beyond what an allocation can be, or so many
    /// requests cannot be under way.
    pub fn new(
        name: &str,
        capacity: Bytes,
        requests: usize,
        clock: Clock,
    ) -> Result<MemoryBlocks, DeviceError> {
        let bytes =
            usize::try_from(capacity.0).ok().filter(|bytes| (1..=isize::MAX as usize / 2).contains(bytes));
        let bytes = bytes.ok_or_else(|| {
            DeviceError::Other(format!(
                "{name}: {} bytes of memory are not possible; type 512B or more",
                capacity.0
            ))
        })?;
        let without = MemoryBlocks::null(name, capacity, requests, clock)?;
        Ok(MemoryBlocks { memory: Some(AlignedBuffer::new(bytes)), ..without })
    }

    /// One that forgets what is written and reads as zeros.
    ///
    /// # Errors
    /// Where so many requests cannot be under way.
    pub fn null(
        name: &str,
        capacity: Bytes,
        requests: usize,
        clock: Clock,
    ) -> Result<MemoryBlocks, DeviceError> {
        countable(name, requests)?;
        let geometry = Geometry { capacity, sector: Bytes(512) };
        let (name, pending) = (name.to_string(), Pending::new(2 * requests));
        Ok(MemoryBlocks { name, geometry, memory: None, clock, requests, takes: Nanos::ZERO, pending })
    }

    /// The same with requests that take `each` of virtual time, side by side. On the
    /// wall's clock nothing changes.
    #[must_use]
    pub fn taking(self, each: Nanos) -> MemoryBlocks {
        MemoryBlocks { takes: each, ..self }
    }

    /// What is finished by `until` changes the contents, or reads them.
    fn settle(&mut self, until: Nanos) {
        let memory = &mut self.memory;
        self.pending.settle(until, |request| serve(memory, request));
    }
}

/// Does what was asked.
fn serve(memory: &mut Option<AlignedBuffer>, request: &mut BlockRequest) {
    let start = request.offset.0 as usize;
    let range = start..start + request.length as usize;
    match (memory, request.mode) {
        (Some(memory), Mode::Read) => request.bytes_mut().copy_from_slice(&memory.bytes()[range]),
        (Some(memory), Mode::Write) => memory.bytes_mut()[range].copy_from_slice(request.bytes()),
        (Some(memory), Mode::Trim) => memory.bytes_mut()[range].fill(0),
        (None, Mode::Read) => request.bytes_mut().fill(0),
        _ => {}
    }
}

impl Blocks for MemoryBlocks {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, request: BlockRequest) {
        self.pending.make_room(&self.clock, self.requests);
        let submitted = self.clock.now();
        let result = request.check(&self.name, self.geometry);
        let takes = if result.is_ok() && self.clock.is_virtual() { self.takes } else { Nanos::ZERO };
        let mut begun = Completion { request, submitted, done: submitted + takes, result };
        if !self.clock.is_virtual() && begun.result.is_ok() {
            serve(&mut self.memory, &mut begun.request);
            begun.done = self.clock.now();
        }
        self.pending.push(begun);
    }

    fn wait(&mut self, which: Which) -> Option<Completion> {
        let done = self.pending.done_at(which)?;
        if self.clock.is_virtual() {
            self.settle(done);
        }
        let completion = self.pending.take(which)?;
        self.clock.reach(completion.done);
        Some(completion)
    }

    fn next(&mut self) -> Next<'_> {
        self.pending.first().map_or(Next::Nothing, Next::At)
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(requests: usize) -> MemoryBlocks {
        let memory = MemoryBlocks::new("m", Bytes(8192), requests, Clock::virtual_time()).unwrap();
        memory.taking(Nanos(100))
    }

    fn times(device: &mut MemoryBlocks) -> Vec<(u64, u64, u64)> {
        let each = std::iter::from_fn(|| device.wait(Which::Any));
        each.map(|done| (done.request.id, done.submitted.0, done.done.0)).collect()
    }

    #[test]
    fn no_more_are_under_way_than_may_be_and_the_next_waits_for_one() {
        let mut device = memory(2);
        for id in 0..5 {
            device.submit(BlockRequest::read(id, Bytes(0), 512, AlignedBuffer::new(512)));
            device.clock().advance(Nanos(u64::from(id == 0) * 30));
        }
        let expected = [(0, 0, 100), (1, 30, 130), (2, 100, 200), (3, 130, 230), (4, 200, 300)];
        assert_eq!(times(&mut device), expected);
        assert_eq!(device.clock().now(), Nanos(300));
    }

    #[test]
    fn contents_change_when_a_write_is_finished_and_not_before() {
        let mut device = memory(4);
        let mut buffer = AlignedBuffer::new(512);
        buffer.bytes_mut().fill(7);
        device.submit(BlockRequest::read(0, Bytes(0), 512, AlignedBuffer::new(512)));
        device.clock().advance(Nanos(1));
        device.submit(BlockRequest::write(1, Bytes(0), 512, buffer));
        device.submit(BlockRequest::read(2, Bytes(0), 512, AlignedBuffer::new(512)));
        let firsts = [0, 1, 2].map(|id| device.wait(Which::Id(id)).unwrap().request.bytes()[0]);
        assert_eq!(firsts, [0, 7, 7], "at one time the one that was submitted first comes first");
    }

    #[test]
    fn what_is_not_possible_is_an_error() {
        for (capacity, requests, word) in
            [(8192, 0, "1 to 1024"), (8192, 1025, "1 to 1024"), (0, 1, "512B"), (u64::MAX, 1, "not possible")]
        {
            let made = MemoryBlocks::new("m", Bytes(capacity), requests, Clock::wall());
            let error = made.err().unwrap().to_string();
            assert!(error.starts_with("m: ") && error.contains(word), "{error}");
        }
    }
}
