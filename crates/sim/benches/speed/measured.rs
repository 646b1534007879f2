//! What is measured and how: the benchmark runs it whole, a test a small part.

use std::sync::Mutex;
use std::time::Instant;
use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Chunk, Device, Io, Mode, Recorder, RunLimits, Stop, Stream};
use uflip_sim::{SimDevice, check};

pub const PAGE: &str = include_str!("page.toml");
pub const BAST: &str = include_str!("bast.toml");
pub const FAST: &str = include_str!("fast.toml");

/// Reuses one chunk, as a store that writes in the background would.
struct Reuse(Mutex<Chunk>);

impl Recorder for Reuse {
    fn fresh(&self) -> Chunk {
        self.0
            .lock()
            .map(|mut chunk| std::mem::replace(&mut *chunk, Vec::with_capacity(4096)))
            .unwrap_or_default()
    }
    fn exchange(&self, mut full: Chunk) -> Chunk {
        full.clear();
        full
    }
    fn finish(&self, _last: Chunk) {}
}

fn write(offset: u64, size: u32) -> Io {
    Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(offset), size, mode: Mode::Write, pattern: 0 }
}

/// Random writes of `size` bytes over the first `space` bytes.
pub fn random_writes(space: u64, size: u32, count: u64, seed: u64) -> Stream {
    let mut rng = Rng::new(seed);
    let places = space / u64::from(size);
    Box::new((0..count).map(move |_| write(rng.below(places) * u64::from(size), size)))
}

/// Sequential writes over the first `space` bytes.
pub fn fill(space: u64, size: u32) -> Stream {
    Box::new((0..space / u64::from(size)).map(move |i| write(i * u64::from(size), size)))
}

/// Random writes of random size, 0.5 KB to 128 KB, until `total` bytes: the
/// enforced state of paper 001, section 4.1.
pub fn random_format(space: u64, total: u64, seed: u64) -> Stream {
    let mut rng = Rng::new(seed);
    let mut left = total;
    Box::new(std::iter::from_fn(move || {
        let size = (rng.below(256) + 1) * 512;
        left = left.checked_sub(size)?;
        Some(write(rng.below((space - size) / 512 + 1) * 512, size as u32))
    }))
}

/// A device of a description's text.
pub fn open(text: &str) -> SimDevice {
    check(text).and_then(|d| SimDevice::new(&d, 1)).unwrap_or_else(|e| panic!("{e}"))
}

/// Seconds this thread was on a processor, where the system tells; other work
/// on the machine counts only as far as it takes the caches.
fn cpu_seconds() -> Option<f64> {
    // The figure is brought up to date when the scheduler has its turn.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(ns as f64 / 1e9)
}

/// What a run took and did.
pub struct Measured {
    pub ios: u64,
    /// Of one core, or of wall time where the system does not tell.
    pub seconds: f64,
    pub operations: u64,
    pub copies: u64,
    pub programs: u64,
}

impl Measured {
    pub fn mios_s(&self) -> f64 {
        self.ios as f64 / self.seconds / 1e6
    }
    pub fn operations_per_io(&self) -> f64 {
        self.operations as f64 / self.ios as f64
    }
    pub fn write_amplification(&self) -> f64 {
        self.programs as f64 / (self.programs - self.copies) as f64
    }
}

/// Runs a stream and takes the time.
pub fn timed(device: &mut SimDevice, stream: Stream) -> Measured {
    let recorder = Reuse(Mutex::new(Vec::with_capacity(4096)));
    let stop = Stop::new();
    let ops = |device: &SimDevice| device.flash_ops().unwrap_or_default();
    let before = ops(device);
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let end = device.run(vec![stream], &recorder, RunLimits { time: None, stop: &stop, sequence: None });
    let wall = began.elapsed().as_secs_f64();
    let seconds = cpu.zip(cpu_seconds()).map_or(wall, |(before, after)| after - before);
    let after = ops(device);
    let sum = |o: uflip_sim::nand::OpCounts| o.reads + o.programs + o.erases;
    Measured {
        ios: end.map_or(0, |e| e.ios),
        seconds,
        operations: sum(after) - sum(before),
        copies: after.copies - before.copies,
        programs: after.programs - before.programs,
    }
}
