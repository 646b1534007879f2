//! The data face of a simulated device: a program's requests in virtual time.
//!
//! How: a request arrives at the device when the program's clock shows its
//! submission ([`SimDevice::arrive`]), and the model says at once when it will be
//! done. Waiting for it moves the clock there. Other devices on the same clock
//! are served meanwhile: what they do at once takes the longest of their times.
//! Data is kept apart from the model and changes when a request is finished: requests
//! take effect in the order in which they are finished, at the same time in that of
//! their submission. What was not finished has changed nothing, which is what a cut of
//! the power finds ([`SimBlocks::into_device`]).

use crate::device::SimDevice;
use uflip_device::blocks::{BlockRequest, Clock, Completion, Next, Pending, Which, countable};
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
    /// Where the clock is none of virtual time, or so many requests cannot be under way.
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
        countable(name, requests)?;
        // A device that lags behind is idle until the clock's present.
        let ahead = Nanos(device.present().0.saturating_sub(clock.now().0));
        Ok(SimBlocks { device, clock, ahead, requests, memory, pending: Pending::new(2 * requests) })
    }

    /// The device, with its counters.
    pub fn device(&self) -> &SimDevice {
        &self.device
    }

    /// The device as it is at the clock's present: what is under way has changed none
    /// of its contents and never will.
    pub fn into_device(mut self) -> SimDevice {
        self.settle(self.clock.now());
        self.device
    }

    /// When a request that arrives now is done, on the program's clock.
    fn serve(&mut self, request: &BlockRequest) -> Result<Nanos, DeviceError> {
        request.check(self.device.name(), Device::geometry(&self.device))?;
        let at = self.clock.now() + self.ahead;
        self.device.refuse_at_the_end(at)?;
        let (offset, length) = (request.offset, Bytes(u64::from(request.length)));
        if request.mode == Mode::Write {
            self.room_for(offset, length)?;
        }
        Ok(self.device.time(at, request.mode, offset, length)?.saturating_sub(self.ahead))
    }

    /// What is finished by `until` changes the contents, or reads them.
    fn settle(&mut self, until: Nanos) {
        let content = self.device.content_mut();
        self.pending.settle(until, |request| {
            let (offset, length) = (request.offset.0, u64::from(request.length));
            match request.mode {
                Mode::Read => content.read(offset, request.bytes_mut()),
                Mode::Write => content.write(offset, request.bytes()),
                Mode::Trim => content.forget(offset, length),
                Mode::Flush => {}
            }
        });
    }

    /// Writes under way count as if each were on pages of its own.
    fn room_for(&self, offset: Bytes, length: Bytes) -> Result<(), DeviceError> {
        let content = self.device.content();
        let all = || {
            let writes = self.pending.unsettled().filter(|request| request.mode == Mode::Write);
            writes.map(|write| (write.offset.0, u64::from(write.length))).chain([(offset.0, length.0)])
        };
        let used = content.memory_bytes();
        // Looked up page by page only where it is near.
        if used + all().map(|(_, length)| length + 8192).sum::<u64>() <= self.memory.0
            || used + all().map(|(at, length)| content.growth_bytes(at, length)).sum::<u64>() <= self.memory.0
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

    fn submit(&mut self, request: BlockRequest) {
        self.pending.make_room(&self.clock, self.requests);
        let submitted = self.clock.now();
        self.settle(submitted);
        let (done, result) = match self.serve(&request) {
            Ok(done) => (done, Ok(())),
            Err(error) => (submitted, Err(error)),
        };
        self.pending.push(Completion { request, submitted, done, result });
    }

    fn wait(&mut self, which: Which) -> Option<Completion> {
        let done = self.pending.done_at(which)?;
        self.settle(done);
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
