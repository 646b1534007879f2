//! The initial state of a device, and the IOs that bring it about.
//!
//! What: random state is random IOs of random size (0.5 KB to the flash block
//! size) over the whole device; sequential state is one sequential rewrite.
//! How: lazy streams of writes whose bytes add up to the device's capacity. As
//! random addresses repeat, one such pass leaves about a third of the blocks
//! unwritten; the complete random state (`state/complete.rs`) leaves none. Source: paper 000/001, section 4.1 ("writing the whole flash device
//! completely yields a well-defined state") and section 5.1.

mod complete;

use crate::micro::NameError;
use complete::Complete;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uflip_device::rng::Rng;
use uflip_device::{
    Bytes, Chunk, Device, DeviceError, Geometry, Io, IoRecord, Mode, Nanos, Recorder, RunEnd, RunLimits,
    Stop, Stream,
};

/// The flash block size of section 4.1, the largest IO of the random state.
pub const FLASH_BLOCK: Bytes = Bytes(128 << 10);
/// IOSize of the sequential state.
const SEQUENTIAL_IO: u64 = 1 << 20;

/// The state a device is brought to before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Left as found.
    None,
    /// Written at random.
    Random,
    /// Written at random, every sector once.
    Complete,
    /// Written sequentially.
    Sequential,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::None => "none",
            State::Random => "random",
            State::Complete => "complete",
            State::Sequential => "sequential",
        })
    }
}

impl FromStr for State {
    type Err = NameError;
    fn from_str(text: &str) -> Result<State, NameError> {
        let all = [State::None, State::Random, State::Complete, State::Sequential];
        all.into_iter()
            .find(|state| state.to_string().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| NameError::new(text, "state", "none, random, complete or sequential"))
    }
}

struct StateStream {
    random: Option<Rng>,
    sector: u64,
    sectors: u64,
    largest: u64,
    written: u64,
}

impl Iterator for StateStream {
    type Item = Io;

    /// Sizes and addresses are counted in sectors.
    fn next(&mut self) -> Option<Io> {
        let left = self.sectors - self.written;
        if left == 0 {
            return None;
        }
        let (offset, size) = match &mut self.random {
            Some(rng) => {
                let size = (rng.below(self.largest) + 1).min(left);
                (rng.below(self.sectors - size + 1), size)
            }
            None => (self.written, self.largest.min(left)),
        };
        self.written += size;
        Some(Io {
            wait: Nanos::ZERO,
            offset: Bytes(offset * self.sector),
            size: (size * self.sector) as u32,
            mode: Mode::Write,
            pattern: 0,
        })
    }
}

/// The writes that bring a device to `state`: one stream whose bytes add up to
/// the capacity in whole sectors, or none for [`State::None`]. Random sizes are
/// whole sectors up to `flash_block`.
pub fn streams(state: State, geometry: Geometry, seed: u64, flash_block: Bytes) -> Vec<Stream> {
    let sector = geometry.sector.0.max(1);
    let (random, largest) = match state {
        State::None => return Vec::new(),
        State::Random => (Some(Rng::new(seed)), flash_block.0),
        State::Complete => {
            let stretch = (flash_block.0.min(u64::from(IoRecord::MAX_SIZE)) / sector).max(1);
            return vec![Box::new(Complete::new(geometry.capacity.0 / sector, stretch, sector, seed))];
        }
        State::Sequential => (None, SEQUENTIAL_IO),
    };
    let largest = (largest.min(u64::from(IoRecord::MAX_SIZE)) / sector).max(1);
    let sectors = geometry.capacity.0 / sector;
    vec![Box::new(StateStream { random, sector, sectors, largest, written: 0 })]
}

/// Keeps nothing.
pub(crate) struct Forget;

impl Recorder for Forget {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(1024)
    }
    fn exchange(&self, mut full: Chunk) -> Chunk {
        full.clear();
        full
    }
    fn finish(&self, _: Chunk) {}
}

/// Brings `device` to `state`; no IO is recorded.
///
/// # Errors
/// [`DeviceError`] of the IO that failed.
pub fn enforce(state: State, seed: u64, device: &mut dyn Device, stop: &Stop) -> Result<RunEnd, DeviceError> {
    enforce_counted(state, seed, device, stop, &Arc::default())
}

/// The same; `submitted` counts the bytes of the IOs begun, for another thread
/// to show.
///
/// # Errors
/// As [`enforce`].
pub fn enforce_counted(
    state: State,
    seed: u64,
    device: &mut dyn Device,
    stop: &Stop,
    submitted: &Arc<AtomicU64>,
) -> Result<RunEnd, DeviceError> {
    let counted = |stream: Stream| -> Stream {
        let submitted = submitted.clone();
        Box::new(stream.inspect(move |io| {
            submitted.fetch_add(u64::from(io.size), Ordering::Relaxed);
        }))
    };
    let streams = streams(state, device.geometry(), seed, FLASH_BLOCK);
    let streams: Vec<Stream> = streams.into_iter().map(counted).collect();
    if streams.is_empty() {
        return Ok(RunEnd::default());
    }
    device.run(streams, &Forget, RunLimits { time: None, stop })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry { capacity: Bytes((8 << 20) + 100), sector: Bytes(512) };

    fn ios(state: State, seed: u64) -> Vec<Io> {
        streams(state, GEOMETRY, seed, FLASH_BLOCK).into_iter().flatten().collect()
    }

    #[test]
    fn a_state_writes_as_many_bytes_as_the_device_has() {
        for state in [State::Random, State::Complete, State::Sequential] {
            let ios = ios(state, 1);
            assert_eq!(ios.iter().map(|io| u64::from(io.size)).sum::<u64>(), 8 << 20);
            for io in &ios {
                assert!(io.mode == Mode::Write && io.offset.0 % 512 == 0 && io.size % 512 == 0);
                assert!(io.size > 0 && io.offset.0 + u64::from(io.size) <= 8 << 20);
            }
        }
        assert!(streams(State::None, GEOMETRY, 1, FLASH_BLOCK).is_empty());
    }

    #[test]
    fn random_sizes_range_from_a_sector_to_the_flash_block() {
        let geometry = Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) };
        let sizes: Vec<u32> = streams(State::Random, geometry, 3, FLASH_BLOCK)
            .into_iter()
            .flatten()
            .map(|io| io.size)
            .collect();
        assert_eq!(sizes.iter().max(), Some(&(128 << 10)));
        assert_eq!(sizes.iter().min(), Some(&512));
        assert_ne!(ios(State::Random, 1), ios(State::Random, 2));
    }

    #[test]
    fn the_sequential_state_goes_from_end_to_end() {
        let offsets: Vec<u64> = ios(State::Sequential, 1).iter().map(|io| io.offset.0 >> 20).collect();
        assert_eq!(offsets, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
