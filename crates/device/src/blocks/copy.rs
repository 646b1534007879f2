//! Copying from one device to another with several requests under way: the
//! smallest program on the data face, and what is held against it afterwards.
//!
//! How: each of `requests` buffers is read, then written, then read again further
//! on; whichever request of the two devices is done first is gone on with. At the
//! end the target is flushed. Comparing reads both devices in the same way.

use super::{BlockRequest, Blocks, Buffers, Completion, flush, wait_any};
use crate::buffer::AlignedBuffer;
use crate::device::{DeviceError, Stop};
use crate::io::Mode;
use crate::units::Bytes;

/// What is copied, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyJob {
    /// How much, from offset 0 on.
    pub bytes: Bytes,
    /// The size of a request; the last one may be shorter.
    pub block: u32,
    /// Buffers, and so requests under way on both devices together.
    pub requests: usize,
}

/// How far it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Written and flushed, or compared.
    pub bytes: Bytes,
    /// True where it was stopped from outside before it was done.
    pub interrupted: bool,
}

/// Why two devices are not known to hold the same.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// They do not.
    #[error("the copy differs from what it was made of at byte {0}")]
    Differs(u64),
    /// One of them could not be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Requests go by offset, one after the other.
struct Ahead {
    at: u64,
    job: CopyJob,
}

impl Ahead {
    fn next(&mut self) -> Option<(Bytes, u32)> {
        let left = self.job.bytes.0 - self.at;
        let length = left.min(u64::from(self.job.block)) as u32;
        let at = Bytes(self.at);
        self.at += u64::from(length);
        (length > 0).then_some((at, length))
    }
}

/// Copies from the one device to the other. At the first request to stop it ends
/// with what is under way. `progress` is told the bytes written so far.
///
/// # Errors
/// The first [`DeviceError`]; nothing is under way any more by then.
pub fn copy(
    from: &mut dyn Blocks,
    to: &mut dyn Blocks,
    job: CopyJob,
    stop: &Stop,
    progress: &mut dyn FnMut(Bytes),
) -> Result<Copied, DeviceError> {
    let mut buffers = Buffers::new(job.requests, job.block as usize);
    let mut ahead = Ahead { at: 0, job };
    let mut copied = Copied::default();
    let mut failed = None;
    loop {
        copied.interrupted |= stop.after_this_run();
        while failed.is_none()
            && !copied.interrupted
            && let Some(buffer) = buffers.take()
        {
            let Some((at, length)) = ahead.next() else {
                buffers.give(buffer);
                break;
            };
            from.submit(BlockRequest::read(at.0, at, length, buffer));
        }
        let Some((_, done)) = wait_any(&mut [&mut *from, &mut *to]) else { break };
        let Completion { request, result, .. } = done;
        match (result, request.mode) {
            (Err(error), _) => {
                failed.get_or_insert(error);
            }
            (Ok(()), Mode::Read) => to.submit(BlockRequest { mode: Mode::Write, ..request }),
            (Ok(()), _) => {
                copied.bytes.0 += u64::from(request.length);
                progress(copied.bytes);
                buffers.give(request.buffer);
            }
        }
    }
    match failed {
        Some(error) => Err(error),
        None => flush(to).map(|()| copied),
    }
}

/// Reads both devices and holds them against each other. Parameters as of
/// [`copy`].
///
/// # Errors
/// [`CompareError`]; nothing is under way any more by then.
pub fn compare(
    from: &mut dyn Blocks,
    to: &mut dyn Blocks,
    job: CopyJob,
    stop: &Stop,
    progress: &mut dyn FnMut(Bytes),
) -> Result<Copied, CompareError> {
    let mut buffers = Buffers::new(2 * job.requests, job.block as usize);
    let mut ahead = Ahead { at: 0, job };
    let mut copied = Copied::default();
    let mut failed = None;
    // What the one device gave and the other has not yet.
    let mut halves: Vec<BlockRequest> = Vec::with_capacity(job.requests);
    loop {
        copied.interrupted |= stop.after_this_run();
        while failed.is_none()
            && !copied.interrupted
            && let Some((one, other)) = two(&mut buffers)
        {
            let Some((at, length)) = ahead.next() else {
                buffers.give(one);
                buffers.give(other);
                break;
            };
            from.submit(BlockRequest::read(at.0, at, length, one));
            to.submit(BlockRequest::read(at.0, at, length, other));
        }
        let Some((_, done)) = wait_any(&mut [&mut *from, &mut *to]) else { break };
        if let Err(error) = done.result {
            failed.get_or_insert(CompareError::Device(error));
            continue;
        }
        let Some(at) = halves.iter().position(|half| half.id == done.request.id) else {
            halves.push(done.request);
            continue;
        };
        let half = halves.swap_remove(at);
        if let Some(within) = first_difference(half.bytes(), done.request.bytes()) {
            let at = half.offset.0 + within as u64;
            failed = match failed {
                Some(CompareError::Differs(earlier)) => Some(CompareError::Differs(at.min(earlier))),
                other => other.or(Some(CompareError::Differs(at))),
            };
        }
        copied.bytes.0 += u64::from(half.length);
        progress(copied.bytes);
        buffers.give(half.buffer);
        buffers.give(done.request.buffer);
    }
    failed.map_or(Ok(copied), Err)
}

/// Two buffers, or none.
fn two(buffers: &mut Buffers) -> Option<(AlignedBuffer, AlignedBuffer)> {
    let one = buffers.take()?;
    match buffers.take() {
        Some(other) => Some((one, other)),
        None => {
            buffers.give(one);
            None
        }
    }
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    one.iter().zip(other).position(|(a, b)| a != b)
}
