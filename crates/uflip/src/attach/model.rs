//! The simulated device behind the clock of an attachment.
//!
//! Virtual time is wall-clock time since the attachment began, from the virtual
//! time at which it was handed over: what the device does on its own happens in
//! real idle time. Requests are served one after the other in the order they
//! arrive; how long each takes, and which of them overlap, is the model's.

use std::sync::{Mutex, PoisonError};
use uflip_device::{Bytes, Device, Geometry, Nanos};
use uflip_sim::{Request, SimDevice};

/// Zeros are written in parts of this many bytes.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The range is not one of whole sectors on the device.
    NotOnDevice,
    /// The data would take more memory than allowed.
    NoMemory,
}

struct Served {
    device: SimDevice,
    told: bool,
}

/// A simulated device shared by the threads that take requests.
pub struct AttachedModel {
    geometry: Geometry,
    handed_over: Nanos,
    memory: Bytes,
    served: Mutex<Served>,
}

impl AttachedModel {
    /// Serves `device`, whose data may take `memory`.
    pub fn new(device: SimDevice, memory: Bytes) -> AttachedModel {
        let geometry = Device::geometry(&device);
        let handed_over = device.now();
        AttachedModel { geometry, handed_over, memory, served: Mutex::new(Served { device, told: false }) }
    }

    /// Capacity and sector.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Each gives when a request that arrived at `at` is done, both on the
    /// attachment's clock.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn read(&self, at: Nanos, offset: u64, into: &mut [u8]) -> Result<Nanos, Refused> {
        self.ask(at, Request::Read { offset: Bytes(offset), into })
    }

    /// See [`AttachedModel::read`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn write(&self, at: Nanos, offset: u64, from: &[u8]) -> Result<Nanos, Refused> {
        self.ask(at, Request::Write { offset: Bytes(offset), from })
    }

    /// See [`AttachedModel::read`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn flush(&self, at: Nanos) -> Result<Nanos, Refused> {
        self.ask(at, Request::Flush)
    }

    /// See [`AttachedModel::read`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn trim(&self, at: Nanos, offset: u64, length: u64) -> Result<Nanos, Refused> {
        self.ask(at, Request::Trim { offset: Bytes(offset), length: Bytes(length) })
    }

    /// Writes zeros. See [`AttachedModel::read`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn zero(&self, at: Nanos, offset: u64, length: u64) -> Result<Nanos, Refused> {
        let (mut from, mut done) = (offset, at);
        let end = offset.checked_add(length).ok_or(Refused::NotOnDevice)?;
        while from < end {
            let part = (end - from).min(ZEROS.len() as u64);
            // All at once; the model has them queue.
            done = done.max(self.write(at, from, &ZEROS[..part as usize])?);
            from += part;
        }
        Ok(done)
    }

    fn ask(&self, at: Nanos, request: Request<'_>) -> Result<Nanos, Refused> {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if let Request::Write { offset, from } = &request {
            self.room_for(&mut served, *offset, from.len() as u64)?;
        }
        let virtual_at = Nanos(self.handed_over.0 + at.0);
        let done = served.device.arrive(virtual_at, request).map_err(|_| Refused::NotOnDevice)?;
        Ok(Nanos(done.0.saturating_sub(self.handed_over.0)))
    }

    /// Refuses a write whose data finds no memory; says so once.
    fn room_for(&self, served: &mut Served, offset: Bytes, length: u64) -> Result<(), Refused> {
        let content = served.device.content();
        let used = content.memory_bytes();
        if used + length + 8192 <= self.memory.0
            || used + content.growth_bytes(offset.0, length) <= self.memory.0
        {
            return Ok(());
        }
        if !served.told {
            served.told = true;
            crate::say!(
                "uflip: the data written takes all of the {} it may; further writes fail. \
                 Discard some of it, or attach with a larger --memory",
                self.memory
            );
        }
        Err(Refused::NoMemory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(memory: u64) -> AttachedModel {
        let mut device = uflip_sim::open("transcend-module", 1).unwrap();
        device.idle(Nanos::from_millis(7), &uflip_device::Stop::new());
        AttachedModel::new(device, Bytes(memory))
    }

    #[test]
    fn requests_on_their_way_at_once_queue_as_the_model_says() {
        let model = model(1 << 30);
        let at = Nanos::from_millis(5);
        let mut data = [0; 32 << 10];
        let first = model.read(at, 0, &mut data).unwrap();
        let second = model.read(at, 1 << 28, &mut data).unwrap();
        // A device without command queueing takes them one by one.
        assert!(first.0 > at.0 + 500_000, "the first was done at {first}");
        assert!(second.0 - first.0 > 500_000, "the second was done at {second}, the first at {first}");
    }

    #[test]
    fn a_write_that_finds_no_memory_fails_and_trimming_helps() {
        let model = model(64 << 10);
        assert!(model.write(Nanos(1), 0, &[1; 64 << 10]).is_ok());
        assert_eq!(model.write(Nanos(2), 1 << 20, &[1; 4096]), Err(Refused::NoMemory));
        assert!(model.write(Nanos(3), 4096, &[2; 4096]).is_ok(), "what is kept may be overwritten");
        assert!(model.trim(Nanos(4), 0, 8192).is_ok());
        assert!(model.write(Nanos(5), 1 << 20, &[1; 8192]).is_ok());
    }

    #[test]
    fn zeroing_reads_as_zeros_and_takes_time() {
        let model = model(1 << 30);
        model.write(Nanos(0), 1 << 20, &[1; 4096]).unwrap();
        let done = model.zero(Nanos(0), 0, 3 << 20).unwrap();
        assert!(done.0 > 10_000_000, "3 MiB were zeroed by {done}");
        let mut data = [9; 4096];
        model.read(done, 1 << 20, &mut data).unwrap();
        assert_eq!(data, [0; 4096]);
        assert_eq!(model.zero(done, model.geometry().capacity.0, 512), Err(Refused::NotOnDevice));
    }
}
