//! Waiting for whichever of several devices is done first.
//!
//! How: what real devices have finished comes first, in its order; then they are
//! waited for with poll(2). Only where nothing real is under way does virtual time
//! go on, to the earliest completion of all simulated devices. So virtual time
//! stands still while something real is under way: to a simulated device it takes
//! no time.

use super::{Blocks, Completion, Next, Which};
use crate::units::Nanos;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Descriptors that are waited for at once; of more devices the others are looked
/// at once a millisecond.
const AT_ONCE: usize = 64;

/// When a device's next request is done, and which device it is.
type First = (Nanos, usize);

/// Waits for the next completion of any of `devices`, and says of which. `None`
/// where nothing is under way on any of them.
pub fn wait_any(devices: &mut [&mut dyn Blocks]) -> Option<(usize, Completion)> {
    loop {
        let (mut real, mut simulated): (Option<First>, Option<First>) = (None, None);
        let nobody = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let mut descriptors = [nobody; AT_ONCE];
        let mut unknown = 0;
        for (index, device) in devices.iter_mut().enumerate() {
            let is_virtual = device.clock().is_virtual();
            match device.next() {
                Next::Nothing => {}
                Next::At(at) => {
                    let first = if is_virtual { &mut simulated } else { &mut real };
                    if first.is_none_or(|(earliest, _)| at < earliest) {
                        *first = Some((at, index));
                    }
                }
                Next::Unknown(descriptor) => {
                    if let Some(place) = descriptors.get_mut(unknown) {
                        *place = readable(descriptor);
                    }
                    unknown += 1;
                }
            }
        }
        let first = real.or(if unknown == 0 { simulated } else { None });
        if let Some((_, index)) = first {
            return devices[index].wait(Which::Any).map(|completion| (index, completion));
        }
        if unknown == 0 {
            return None;
        }
        let timeout_ms = if unknown > AT_ONCE { 1 } else { -1 };
        poll(&mut descriptors[..unknown.min(AT_ONCE)], timeout_ms);
    }
}

fn readable(descriptor: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Waits until one of them is readable, or a signal came.
fn poll(descriptors: &mut [libc::pollfd], timeout_ms: i32) {
    // SAFETY: the pointer and the count are those of one slice, which the call
    // may write to. Its errors are a signal, after which the caller looks again.
    unsafe { libc::poll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, timeout_ms) };
}

/// Whether `descriptor` is readable now.
pub(super) fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut one = [readable(descriptor)];
    poll(&mut one, 0);
    one[0].revents != 0
}
