//! The data face of a simulated device: a program's requests in virtual time.
//!
//! How: a request arrives at the device when the program's clock shows its
//! submission ([`SimDevice::arrive`]), and the model says at once when it will be
//! done. Waiting for it moves the clock there. Other devices on the same clock
//! are served meanwhile: what they do at once takes the longest of their times.
//! Data is kept apart from the model and read as it was submitted.

use crate::device::{Request, SimDevice};
use uflip_device::blocks::{BlockRequest, Clock, Completion, Next, Pending, Which};
use uflip_device::{Blocks, Bytes, Counters, Device, DeviceError, Geometry, Mode, Nanos};

/// A simulated device that a program uses.
pub struct SimBlocks {
    device: SimDevice,
    clock: Clock,
    /// The device's time less the clock's.
    ahead: Nanos,
    requests: usize,
    memory: Bytes,
    pending: Pending,
}

impl SimBlocks {
    /// A device in the state it is in, with up to `requests` under way, on a
    /// virtual `clock`. The data written to it may take `memory`.
    ///
    /// # Errors
    /// Where the clock is none of virtual time, or nothing may be under way.
    pub fn new(
        device: SimDevice,
        requests: usize,
        clock: Clock,
        memory: Bytes,
    ) -> Result<SimBlocks, DeviceError> {
        let name = device.name();
        if !clock.is_virtual() {
            return Err(DeviceError::Other(format!("{name} is simulated and timed in virtual time only")));
        }
        if requests == 0 {
            return Err(DeviceError::Other(format!("{name}: at least one request must be under way")));
        }
        // A device that lags behind is idle until the clock's present.
        let ahead = Nanos(device.present().0.saturating_sub(clock.now().0));
        Ok(SimBlocks { device, clock, ahead, requests, memory, pending: Pending::new(2 * requests) })
    }

    /// The device, with its counters.
    pub fn device(&self) -> &SimDevice {
        &self.device
    }

    /// When a request that arrives now is done, on the program's clock.
    fn serve(&mut self, request: &mut BlockRequest) -> Result<Nanos, DeviceError> {
        request.check(self.device.name(), Device::geometry(&self.device))?;
        let at = self.clock.now() + self.ahead;
        self.device.refuse_at_the_end(at)?;
        let (offset, length) = (request.offset, Bytes(u64::from(request.length)));
        if request.mode == Mode::Write {
            self.room_for(offset, length)?;
        }
        let asked = match request.mode {
            Mode::Read => Request::Read { offset, into: request.bytes_mut() },
            Mode::Write => Request::Write { offset, from: request.bytes() },
            Mode::Flush => Request::Flush,
            Mode::Trim => Request::Trim { offset, length },
        };
        Ok(self.device.arrive(at, asked)?.saturating_sub(self.ahead))
    }

    fn room_for(&self, offset: Bytes, length: Bytes) -> Result<(), DeviceError> {
        let content = self.device.content();
        let used = content.memory_bytes();
        // Looked up page by page only where it is near.
        if used + length.0 + 8192 <= self.memory.0
            || used + content.growth_bytes(offset.0, length.0) <= self.memory.0
        {
            return Ok(());
        }
        let (name, memory) = (self.device.name(), self.memory);
        Err(DeviceError::Other(format!(
            "{name}: what is written to it takes all of the {memory} of memory that it may, at offset {}; \
             write less, or trim what is not needed any more",
            offset.0
        )))
    }
}

impl Blocks for SimBlocks {
    fn geometry(&self) -> Geometry {
        Device::geometry(&self.device)
    }

    fn submit(&mut self, mut request: BlockRequest) {
        while let (under_way, Some(first)) = self.pending.after(self.clock.now())
            && under_way >= self.requests
        {
            self.clock.reach(first);
        }
        let submitted = self.clock.now();
        let (done, result) = match self.serve(&mut request) {
            Ok(done) => (done, Ok(())),
            Err(error) => (submitted, Err(error)),
        };
        self.pending.push(Completion { request, submitted, done, result });
    }

    fn wait(&mut self, which: Which) -> Option<Completion> {
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

    fn counters(&self) -> Option<Counters> {
        Device::counters(&self.device)
    }
}
