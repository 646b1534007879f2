//! The initial state of a device, and the IOs that bring it about.
//!
//! What: random state is random IOs of random size (0.5 KB to the flash block
//! size) over the whole device; sequential state is one sequential rewrite with
//! a given IOSize; trimmed state is the random one after everything was trimmed.
//! How: lazy streams of writes whose bytes add up to the device's capacity. As
//! random addresses repeat, one such pass leaves about a third of the blocks
//! unwritten; the complete random state (`state/complete.rs`) leaves none. A
//! stream depends on state, geometry and seed alone, so that an enforcement that
//! was interrupted goes on at any of its IOs ([`Enforcement::from_io`]).
//!
//! Source: paper 000/001, section 4.1 ("writing the whole flash device
//! completely yields a well-defined state") and section 5.1; SNIA SSS PTS for
//! the purge before it.

mod complete;
pub mod reached;

use crate::names::NameError;
use complete::Complete;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use uflip_device::rng::Rng;
use uflip_device::{
    Arrival, Bytes, Chunk, Device, DeviceError, Geometry, Io, IoRecord, Mode, Recorder, RunEnd, RunLimits,
    Stop, Stream,
};

/// The flash block size of section 4.1, the largest IO of the random state.
pub const FLASH_BLOCK: Bytes = Bytes(128 << 10);
/// IOSize of the sequential state where none is given.
pub const SEQUENTIAL_IO: Bytes = Bytes(1 << 20);
/// The largest IOSize of the sequential state.
const LARGEST_IO: Bytes = Bytes(128 << 20);
/// Bytes that one IO trims.
const TRIM_IO: u64 = 64 << 20;

/// The state a device is brought to before it is measured. Its text, also in
/// files, is `none`, `random`, `complete`, `sequential`, `sequential:64K` or
/// `trim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum State {
    /// Left as found.
    None,
    /// Written at random.
    Random,
    /// Written at random, every sector once.
    Complete,
    /// Written sequentially.
    Sequential {
        /// IOSize.
        io_size: Bytes,
    },
    /// Trimmed as a whole, then written at random.
    Trim,
}

impl State {
    /// Written sequentially in IOs of 1 MiB.
    pub const SEQUENTIAL: State = State::Sequential { io_size: SEQUENTIAL_IO };
    /// What may be typed.
    pub const WORDS: &'static str = "none, random, complete, sequential, sequential:64K or trim";
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::None => "none",
            State::Random => "random",
            State::Complete => "complete",
            State::Sequential { io_size: SEQUENTIAL_IO } => "sequential",
            State::Sequential { io_size } => return f.pad(&format!("sequential:{}", io_size.exact())),
            State::Trim => "trim",
        })
    }
}

impl FromStr for State {
    type Err = NameError;
    fn from_str(text: &str) -> Result<State, NameError> {
        let error = || NameError::new(text, "state", State::WORDS);
        let name = text.trim().to_ascii_lowercase();
        if let Some(size) = name.strip_prefix("sequential:") {
            let io_size: Bytes = size.to_ascii_uppercase().parse().map_err(|_| error())?;
            let fits = (512..=LARGEST_IO.0).contains(&io_size.0);
            return if fits { Ok(State::Sequential { io_size }) } else { Err(error()) };
        }
        let all = [State::None, State::Random, State::Complete, State::SEQUENTIAL, State::Trim];
        all.into_iter().find(|state| state.to_string() == name).ok_or_else(error)
    }
}

impl From<State> for String {
    fn from(state: State) -> String {
        state.to_string()
    }
}

impl TryFrom<String> for State {
    type Error = NameError;
    fn try_from(text: String) -> Result<State, NameError> {
        text.parse()
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
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(offset * self.sector),
            size: (size * self.sector) as u32,
            mode: Mode::Write,
            pattern: 0,
        })
    }
}

/// Everything trimmed, in order.
fn trims(sectors: u64, sector: u64) -> impl Iterator<Item = Io> + Send {
    let each = (TRIM_IO / sector).max(1);
    StateStream { random: None, sector, sectors, largest: each, written: 0 }
        .map(|io| Io { mode: Mode::Trim, ..io })
}

/// The IOs that bring a device to `state`: one stream whose writes add up to
/// the capacity in whole sectors, or none for [`State::None`]. Random sizes are
/// whole sectors up to `flash_block`.
pub fn streams(state: State, geometry: Geometry, seed: u64, flash_block: Bytes) -> Vec<Stream> {
    let sector = geometry.sector.0.max(1);
    let sectors = geometry.capacity.0 / sector;
    let whole = |largest: Bytes| (largest.0.min(u64::from(IoRecord::MAX_SIZE)) / sector).max(1);
    let writes = |random, largest| StateStream { random, sector, sectors, largest, written: 0 };
    let at_random = || writes(Some(Rng::new(seed)), whole(flash_block));
    match state {
        State::None => Vec::new(),
        State::Random => vec![Box::new(at_random())],
        State::Complete => vec![Box::new(Complete::new(sectors, whole(flash_block), sector, seed))],
        State::Sequential { io_size } => vec![Box::new(writes(None, whole(io_size)))],
        State::Trim => vec![Box::new(trims(sectors, sector).chain(at_random()))],
    }
}

/// Keeps nothing.
pub struct Forget;

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

/// How far an enforcement is, for another thread to see.
#[derive(Debug, Default)]
pub struct Advance {
    /// IOs begun, those of an interrupted enforcement before included.
    pub ios: AtomicU64,
    /// Bytes written by IOs begun, the same included.
    pub written: AtomicU64,
    /// Set from outside, it ends the enforcement before its next IO.
    pub halt: AtomicBool,
}

/// What [`enforce_from`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// Which state.
    pub state: State,
    /// Of its random choices.
    pub seed: u64,
    /// IOs that were done before an interruption; they are passed over.
    pub from_io: u64,
}

/// Brings `device` to `state`; no IO is recorded.
///
/// # Errors
/// [`DeviceError`] of the IO that failed.
pub fn enforce(state: State, seed: u64, device: &mut dyn Device, stop: &Stop) -> Result<RunEnd, DeviceError> {
    enforce_from(Enforcement { state, seed, from_io: 0 }, device, stop, &Arc::default())
}

/// The same from an IO on; `advance` is counted up as IOs begin. Where it says
/// n IOs, all but those that the device has in flight are done. Halted, it ends
/// as interrupted.
///
/// # Errors
/// As [`enforce`].
pub fn enforce_from(
    what: Enforcement,
    device: &mut dyn Device,
    stop: &Stop,
    advance: &Arc<Advance>,
) -> Result<RunEnd, DeviceError> {
    let Enforcement { state, seed, from_io } = what;
    let counted =
        |stream: Stream| -> Stream {
            let (counter, halted) = (advance.clone(), advance.clone());
            let mut stream = stream.inspect(move |io| {
                counter.ios.fetch_add(1, Ordering::Relaxed);
                if io.mode == Mode::Write {
                    counter.written.fetch_add(u64::from(io.size), Ordering::Relaxed);
                }
            });
            // Not `skip`: it would take all of them in the first step of the loop.
            (0..from_io).take_while(|_| stream.next().is_some()).for_each(drop);
            Box::new(std::iter::from_fn(move || {
                if halted.halt.load(Ordering::Relaxed) { None } else { stream.next() }
            }))
        };
    let streams = streams(state, device.geometry(), seed, FLASH_BLOCK);
    let streams: Vec<Stream> = streams.into_iter().map(counted).collect();
    if streams.is_empty() {
        return Ok(RunEnd::default());
    }
    let mut end = device.run(streams, &Forget, RunLimits { time: None, stop, sequence: None })?;
    end.interrupted |= advance.halt.load(Ordering::Relaxed);
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::Nanos;

    const GEOMETRY: Geometry = Geometry { capacity: Bytes((8 << 20) + 100), sector: Bytes(512) };

    fn ios(state: State, seed: u64) -> Vec<Io> {
        streams(state, GEOMETRY, seed, FLASH_BLOCK).into_iter().flatten().collect()
    }

    #[test]
    fn a_state_writes_as_many_bytes_as_the_device_has() {
        for state in [State::Random, State::Complete, State::SEQUENTIAL] {
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
        let offsets: Vec<u64> = ios(State::SEQUENTIAL, 1).iter().map(|io| io.offset.0 >> 20).collect();
        assert_eq!(offsets, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_trimmed_state_trims_everything_once_and_then_is_the_random_one() {
        let ios = ios(State::Trim, 4);
        let trims: Vec<Io> = ios.iter().copied().take_while(|io| io.mode == Mode::Trim).collect();
        assert_eq!(trims.iter().map(|io| u64::from(io.size)).sum::<u64>(), 8 << 20);
        assert_eq!(ios[trims.len()..], self::ios(State::Random, 4));
        let large = Geometry { capacity: Bytes(1 << 40), sector: Bytes(512) };
        let last = super::trims(large.capacity.0 / 512, 512).last().unwrap();
        assert_eq!(last.offset.0 + u64::from(last.size), 1 << 40);
    }

    #[test]
    fn a_state_has_one_text_and_others_are_refused_with_what_to_type() {
        let small = State::Sequential { io_size: Bytes(64 << 10) };
        for state in [State::None, State::Random, State::Complete, State::SEQUENTIAL, small, State::Trim] {
            assert_eq!(state.to_string().parse::<State>().unwrap(), state);
        }
        assert_eq!(small.to_string(), "sequential:64K");
        assert_eq!("Sequential:64k".parse::<State>().unwrap(), small);
        for wrong in ["", "trimmed", "sequential:", "sequential:0", "sequential:1T", "random:4K"] {
            let error = wrong.parse::<State>().unwrap_err().to_string();
            assert!(error.contains("sequential:64K"), "{error}");
        }
        assert_eq!(ios(small, 1).len(), 128);
    }

    /// Keeps what it is asked for; asks to stop at once after some IOs.
    struct Noted<'a>(Vec<Io>, Option<(usize, &'a Stop)>);

    impl Device for Noted<'_> {
        fn geometry(&self) -> Geometry {
            GEOMETRY
        }
        fn run(
            &mut self,
            streams: Vec<Stream>,
            _: &dyn Recorder,
            limits: RunLimits<'_>,
        ) -> Result<RunEnd, DeviceError> {
            let mut end = RunEnd::default();
            for io in streams.into_iter().flatten() {
                if self.1.is_some_and(|(after, _)| self.0.len() >= after) {
                    limits.stop.ask();
                    end.interrupted = true;
                    break;
                }
                self.0.push(io);
                end.ios += 1;
            }
            Ok(end)
        }
        fn idle(&mut self, _: Nanos, _: &Stop) {}
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }
        fn is_virtual(&self) -> bool {
            true
        }
    }

    #[test]
    fn an_interrupted_enforcement_goes_on_with_the_io_that_was_not_done() {
        for state in [State::Random, State::Complete, State::SEQUENTIAL, State::Trim] {
            let stop = Stop::new();
            let mut first = Noted(Vec::new(), Some((5, &stop)));
            let advance = Arc::default();
            let what = Enforcement { state, seed: 9, from_io: 0 };
            assert!(enforce_from(what, &mut first, &stop, &advance).unwrap().interrupted);
            // The sixth had begun.
            assert_eq!(advance.ios.load(Ordering::Relaxed), 6);
            let mut second = Noted(Vec::new(), None);
            let advance = Arc::default();
            let what = Enforcement { from_io: 5, ..what };
            enforce_from(what, &mut second, &Stop::new(), &advance).unwrap();
            assert_eq!([first.0, second.0].concat(), ios(state, 9), "{state}");
            assert_eq!(advance.written.load(Ordering::Relaxed), 8 << 20, "{state}");
        }
    }
}
