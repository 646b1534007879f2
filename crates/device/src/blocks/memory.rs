//! A device of memory, for programs and their tests; and one that keeps nothing.
//!
//! Every request is done when it is submitted: on a virtual clock it takes no
//! time, on the wall's what the copying takes.

use super::{BlockRequest, Blocks, Clock, Completion, Next, Pending, Which};
use crate::buffer::AlignedBuffer;
use crate::device::{DeviceError, Geometry};
use crate::io::Mode;
use crate::units::Bytes;

/// A device of memory, or of nothing at all.
pub struct MemoryBlocks {
    name: String,
    geometry: Geometry,
    /// `None` where nothing is kept: then all reads are zeros.
    memory: Option<AlignedBuffer>,
    clock: Clock,
    finished: Pending,
}

impl MemoryBlocks {
    /// `capacity` zeros with sectors of 512 bytes; `name` is what errors call it.
    ///
    /// # Panics
    /// Where `capacity` is zero or beyond what an allocation can be.
    pub fn new(name: &str, capacity: Bytes, clock: Clock) -> MemoryBlocks {
        let bytes = usize::try_from(capacity.0).expect("an allocation's size");
        MemoryBlocks { memory: Some(AlignedBuffer::new(bytes)), ..MemoryBlocks::null(name, capacity, clock) }
    }

    /// One that forgets what is written and reads as zeros.
    pub fn null(name: &str, capacity: Bytes, clock: Clock) -> MemoryBlocks {
        let geometry = Geometry { capacity, sector: Bytes(512) };
        MemoryBlocks { name: name.to_string(), geometry, memory: None, clock, finished: Pending::new(64) }
    }

    fn serve(&mut self, request: &mut BlockRequest) -> Result<(), DeviceError> {
        request.check(&self.name, self.geometry)?;
        let start = request.offset.0 as usize;
        let range = start..start + request.length as usize;
        match (&mut self.memory, request.mode) {
            (Some(memory), Mode::Read) => request.bytes_mut().copy_from_slice(&memory.bytes()[range]),
            (Some(memory), Mode::Write) => memory.bytes_mut()[range].copy_from_slice(request.bytes()),
            (Some(memory), Mode::Trim) => memory.bytes_mut()[range].fill(0),
            (None, Mode::Read) => request.bytes_mut().fill(0),
            _ => {}
        }
        Ok(())
    }
}

impl Blocks for MemoryBlocks {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, mut request: BlockRequest) {
        let submitted = self.clock.now();
        let result = self.serve(&mut request);
        let done = self.clock.now();
        self.finished.push(Completion { request, submitted, done, result });
    }

    fn wait(&mut self, which: Which) -> Option<Completion> {
        self.finished.take(which)
    }

    fn next(&mut self) -> Next<'_> {
        self.finished.first().map_or(Next::Nothing, Next::At)
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
