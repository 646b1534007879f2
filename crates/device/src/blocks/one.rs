//! One request at a time, for programs and parts of programs that want no more.
//! Others may be under way meanwhile: theirs stay to be fetched.

use super::{BlockRequest, Blocks, Completion, Which};
use crate::buffer::AlignedBuffer;
use crate::device::DeviceError;
use crate::units::Bytes;

/// The id of the request that is asked and waited for here.
const ID: u64 = u64::MAX;

/// Submits a request, whatever its id, and waits for it.
///
/// # Panics
/// Where the device loses requests, against its contract.
pub fn ask(device: &mut dyn Blocks, request: BlockRequest) -> Completion {
    let id = request.id;
    device.submit(BlockRequest { id: ID, ..request });
    let mut completion = device.wait(Which::Id(ID)).expect("a device gives back what was submitted");
    completion.request.id = id;
    completion
}

/// Does `request` with the memory of `buffer`, which is back afterwards.
fn with(
    device: &mut dyn Blocks,
    buffer: &mut AlignedBuffer,
    request: impl FnOnce(AlignedBuffer) -> BlockRequest,
) -> Result<(), DeviceError> {
    let done = ask(device, request(std::mem::replace(buffer, AlignedBuffer::empty())));
    *buffer = done.request.buffer;
    done.result
}

/// Fills the first `length` bytes of `into` from `offset`.
///
/// # Errors
/// [`DeviceError`] with the range that failed.
pub fn read(
    device: &mut dyn Blocks,
    offset: Bytes,
    length: u32,
    into: &mut AlignedBuffer,
) -> Result<(), DeviceError> {
    with(device, into, |buffer| BlockRequest::read(ID, offset, length, buffer))
}

/// Writes the first `length` bytes of `from` at `offset`.
///
/// # Errors
/// [`DeviceError`] with the range that failed.
pub fn write(
    device: &mut dyn Blocks,
    offset: Bytes,
    length: u32,
    from: &mut AlignedBuffer,
) -> Result<(), DeviceError> {
    with(device, from, |buffer| BlockRequest::write(ID, offset, length, buffer))
}

/// Makes durable what was written and waited for.
///
/// # Errors
/// [`DeviceError`].
pub fn flush(device: &mut dyn Blocks) -> Result<(), DeviceError> {
    ask(device, BlockRequest::flush(ID)).result
}

/// Tells the device that a range holds nothing any more.
///
/// # Errors
/// [`DeviceError`] with the range that failed.
pub fn trim(device: &mut dyn Blocks, offset: Bytes, length: u32) -> Result<(), DeviceError> {
    ask(device, BlockRequest::trim(ID, offset, length)).result
}
