//! The data face of a device: what programs that live on one use.
//!
//! How: a program submits [`BlockRequest`]s and waits for their [`Completion`]s,
//! with as many under way as it asked for when it opened the device. A request
//! owns its buffer while it is under way and brings it back, so that a buffer is
//! used again and again ([`Buffers`]) and nothing is allocated for a request.
//! What goes wrong with a request comes back with its completion, always.
//!
//! Time is a [`Clock`] that is passed in: several devices of one program share
//! it. In virtual time a request takes what the model says, requests under way
//! at once take the longest of their times and not the sum, and a program that
//! computes says for how long ([`Clock::advance`]).
//!
//! What holds for every device:
//! - Completions come in the order in which their requests were finished, or one
//!   by its id ([`Which`]).
//! - Requests under way at once have no order: what must not overtake is waited
//!   for first. A flush makes durable what was finished before it was submitted.
//! - Where as many are under way as may be, `submit` waits for one. A device is opened
//!   for 1 to [`MOST_REQUESTS`], or that is an error ([`countable`]).
//! - What is written is the device's contents once the request is finished, not before,
//!   and a read gives what the device holds when it is finished itself. Of requests under
//!   way at once that touch the same bytes, a simulated device and memory in virtual time
//!   do the one that is finished first first, at the same time the one that was submitted
//!   first, each whole; memory on the wall's clock does them as they are submitted; and a
//!   real device in no order, nor each whole.
//!
//! Behind it: files and block devices ([`RealBlocks`]), memory ([`MemoryBlocks`]),
//! and simulated devices (`uflip_sim::SimBlocks`); [`Traced`] records what passes.
//! Under eight methods; growth needs a design note in ARCHITECTURE.md.

mod any;
mod buffers;
mod clock;
pub mod copy;
mod memory;
mod one;
mod pending;
mod real;
mod ring;
mod threads;
mod traced;

pub use any::wait_any;
pub use buffers::Buffers;
pub use clock::Clock;
pub use memory::MemoryBlocks;
pub use one::{ask, flush, read, trim, write};
pub use pending::Pending;
pub use real::{RealBlocks, Way};
pub use traced::{Traced, TracedEnd, traced};

use crate::buffer::AlignedBuffer;
use crate::counters::Counters;
use crate::device::{DeviceError, Geometry};
use crate::io::{Arrival, Io, IoRecord, Mode};
use crate::units::{Bytes, Nanos};
use std::os::fd::BorrowedFd;

/// Requests under way at most.
pub const MOST_REQUESTS: usize = 1024;

/// Whether a device can be opened for so many requests under way.
///
/// # Errors
/// [`DeviceError::Other`] with what is possible.
pub fn countable(target: &str, requests: usize) -> Result<(), DeviceError> {
    if (1..=MOST_REQUESTS).contains(&requests) {
        return Ok(());
    }
    Err(DeviceError::Other(format!(
        "{target}: {requests} requests under way are not possible; type 1 to {MOST_REQUESTS}"
    )))
}

/// What a program asks of a device.
#[derive(Debug)]
pub struct BlockRequest {
    /// The program's own; different from that of every other request under way.
    /// `u64::MAX` is taken ([`ask`]).
    pub id: u64,
    /// Read, write, flush or trim.
    pub mode: Mode,
    /// Where, in bytes from the start of the device: a multiple of its sector.
    /// Of a flush it is zero.
    pub offset: Bytes,
    /// How much, in bytes: a multiple of the sector, at most
    /// [`IoRecord::MAX_SIZE`]. Of a flush it is zero.
    pub length: u32,
    /// Holds the first `length` bytes that are read or written; empty for
    /// flushes and trims.
    pub buffer: AlignedBuffer,
}

impl BlockRequest {
    /// To fill the first `length` bytes of `buffer` from `offset`.
    pub fn read(id: u64, offset: Bytes, length: u32, buffer: AlignedBuffer) -> BlockRequest {
        BlockRequest { id, mode: Mode::Read, offset, length, buffer }
    }

    /// To write the first `length` bytes of `buffer` at `offset`.
    pub fn write(id: u64, offset: Bytes, length: u32, buffer: AlignedBuffer) -> BlockRequest {
        BlockRequest { id, mode: Mode::Write, offset, length, buffer }
    }

    /// To make durable what was written and waited for.
    pub fn flush(id: u64) -> BlockRequest {
        let buffer = AlignedBuffer::empty();
        BlockRequest { id, mode: Mode::Flush, offset: Bytes(0), length: 0, buffer }
    }

    /// To tell the device that the range holds nothing any more.
    pub fn trim(id: u64, offset: Bytes, length: u32) -> BlockRequest {
        BlockRequest { id, mode: Mode::Trim, offset, length, buffer: AlignedBuffer::empty() }
    }

    /// The same as an IO of a run.
    pub(crate) fn io(&self) -> Io {
        let BlockRequest { mode, offset, length: size, .. } = *self;
        Io { arrival: Arrival::CONSECUTIVE, offset, size, mode, pattern: 0 }
    }

    /// True where bytes move.
    fn moves(&self) -> bool {
        matches!(self.mode, Mode::Read | Mode::Write)
    }

    /// The bytes that are read or written.
    pub fn bytes(&self) -> &[u8] {
        let length = if self.moves() { self.length as usize } else { 0 };
        &self.buffer.bytes()[..length]
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let length = if self.moves() { self.length as usize } else { 0 };
        &mut self.buffer.bytes_mut()[..length]
    }

    /// Whether the device takes it: whole sectors on it, and a buffer for them.
    ///
    /// # Errors
    /// [`DeviceError::Io`] with the range and what is asked for instead.
    pub fn check(&self, target: &str, geometry: Geometry) -> Result<(), DeviceError> {
        let (offset, length) = (self.offset.0, u64::from(self.length));
        let sector = geometry.sector.0.max(1);
        let why = if self.mode == Mode::Flush {
            return Ok(());
        } else if length == 0 || self.length > IoRecord::MAX_SIZE {
            format!("a request has from 1 to {} bytes", IoRecord::MAX_SIZE)
        } else if !offset.is_multiple_of(sector) || !length.is_multiple_of(sector) {
            format!("offset and length must be multiples of its sectors of {sector} bytes")
        } else if offset.checked_add(length).is_none_or(|end| end > geometry.capacity.0) {
            format!("the device has {} bytes", geometry.capacity.0)
        } else if self.moves() && self.buffer.bytes().len() < self.length as usize {
            format!("the buffer has {} bytes", self.buffer.bytes().len())
        } else {
            return Ok(());
        };
        Err(DeviceError::Io {
            target: target.to_string(),
            mode: self.mode.name(),
            offset,
            size: length,
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, why),
        })
    }
}

/// A request that is finished.
#[derive(Debug)]
pub struct Completion {
    /// The request, with its buffer.
    pub request: BlockRequest,
    /// When it was submitted, on the device's clock.
    pub submitted: Nanos,
    /// When it was finished.
    pub done: Nanos,
    /// What came of it. Where it failed the buffer holds anything.
    pub result: Result<(), DeviceError>,
}

/// Which completion is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that was finished first.
    Any,
    /// The one of this id.
    Id(u64),
}

/// What is known of a device's next completion.
#[derive(Debug)]
pub enum Next<'a> {
    /// Nothing is under way, and none is left to be fetched.
    Nothing,
    /// It is finished at this time: of a real device a time that has passed, of a
    /// simulated one the time that the clock will show.
    At(Nanos),
    /// Not known yet. The descriptor is readable once there is one.
    Unknown(BorrowedFd<'a>),
}

/// The data face.
pub trait Blocks {
    /// Capacity and sector size.
    fn geometry(&self) -> Geometry;

    /// Takes a request; waits for another to finish where as many are under way
    /// as may be.
    fn submit(&mut self, request: BlockRequest);

    /// Waits for a completion. `None` where nothing of that kind is under way.
    fn wait(&mut self, which: Which) -> Option<Completion>;

    /// Looks for the next completion without waiting.
    fn next(&mut self) -> Next<'_>;

    /// The clock that requests are timed on.
    fn clock(&self) -> &Clock;

    /// What the device has counted of its own work so far; `None` where it
    /// tells nothing. Asked between the steps of a program, and in virtual time also
    /// at intervals during them ([`Traced`]).
    fn counters(&self) -> Option<Counters> {
        None
    }
}
