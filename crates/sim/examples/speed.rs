//! How fast the simulator is: IOs and flash operations a second of one core's
//! time (of wall time where the system does not tell).
//!
//! `cargo run --release -p uflip-sim --example speed`

use std::sync::Mutex;
use std::time::Instant;
use uflip_device::rng::Rng;
use uflip_device::{Bytes, Chunk, Device, Io, Mode, Nanos, Recorder, RunLimits, Stop, Stream};
use uflip_sim::{SimDevice, check};

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

/// Random writes of `size` bytes over the first `space` bytes.
fn random_writes(space: u64, size: u32, count: u64, seed: u64) -> Stream {
    let mut rng = Rng::new(seed);
    let places = space / u64::from(size);
    Box::new((0..count).map(move |_| Io {
        wait: Nanos::ZERO,
        offset: Bytes(rng.below(places) * u64::from(size)),
        size,
        mode: Mode::Write,
        pattern: 0,
    }))
}

/// Sequential writes over the first `space` bytes.
fn fill(space: u64, size: u32) -> Stream {
    Box::new((0..space / u64::from(size)).map(move |i| Io {
        wait: Nanos::ZERO,
        offset: Bytes(i * u64::from(size)),
        size,
        mode: Mode::Write,
        pattern: 0,
    }))
}

/// Random writes of random size, 0.5 KB to 128 KB, until `total` bytes.
fn random_format(space: u64, total: u64, seed: u64) -> Stream {
    let mut rng = Rng::new(seed);
    let mut left = total;
    Box::new(std::iter::from_fn(move || {
        let sectors = rng.below(256) + 1;
        let size = sectors * 512;
        left = left.checked_sub(size)?;
        let offset = rng.below((space - size) / 512 + 1) * 512;
        Some(Io {
            wait: Nanos::ZERO,
            offset: Bytes(offset),
            size: size as u32,
            mode: Mode::Write,
            pattern: 0,
        })
    }))
}

fn ops(device: &SimDevice) -> u64 {
    device.flash_ops().map_or(0, |o| o.reads + o.programs + o.erases)
}

/// Seconds this thread was on a processor, where the system tells; other work
/// on the machine does not count.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(ns as f64 / 1e9)
}

fn timed(what: &str, device: &mut SimDevice, stream: Stream) {
    let recorder = Reuse(Mutex::new(Vec::with_capacity(4096)));
    let stop = Stop::new();
    let before = ops(device);
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let end = device.run(vec![stream], &recorder, RunLimits { time: None, stop: &stop });
    let wall = began.elapsed().as_secs_f64();
    let seconds = cpu.zip(cpu_seconds()).map_or(wall, |(before, after)| after - before);
    let ios = end.map(|e| e.ios).unwrap_or(0);
    println!(
        "{what:44} {:7.3} s wall {:7.3} s CPU {:8.3} M IO/s {:9.3} M flash operations/s",
        wall,
        seconds,
        ios as f64 / seconds / 1e6,
        (ops(device) - before) as f64 / seconds / 1e6
    );
}

const PAGE: &str = include_str!("speed/page.toml");
const BAST: &str = include_str!("speed/bast.toml");
const FAST: &str = include_str!("speed/fast.toml");

fn main() {
    let open = |text: &str| check(text).and_then(|d| SimDevice::new(&d, 1)).unwrap_or_else(|e| panic!("{e}"));
    let gib = 1u64 << 30;
    for gc in ["greedy", "cost-benefit", "d-choices"] {
        let mut device = open(&PAGE.replace("\"greedy\"", &format!("\"{gc}\"")));
        let full = 32 * gib / 10 * 8;
        timed("page: fill 80 %", &mut device, fill(full / 131072 * 131072, 131072));
        timed(&format!("page, {gc}: to steady state"), &mut device, random_writes(full, 4096, 12_000_000, 1));
        let before = device.flash_ops();
        timed(
            &format!("page, {gc}: 4 KiB RW, GC active"),
            &mut device,
            random_writes(full, 4096, 4_000_000, 2),
        );
        if let (Some(a), Some(b)) = (before, device.flash_ops()) {
            let host = (b.programs - a.programs) - (b.copies - a.copies);
            println!("    write amplification {:.3}", (b.programs - a.programs) as f64 / host as f64);
        }
    }
    for (name, text) in [("bast", BAST), ("fast", FAST)] {
        let mut device = open(text);
        timed(&format!("{name}: random format of 32 GB"), &mut device, random_format(32 * gib, 32 * gib, 1));
        timed(&format!("{name}: 32 KiB RW"), &mut device, random_writes(32 * gib, 32768, 1_000_000, 2));
        timed(&format!("{name}: 4 KiB RW"), &mut device, random_writes(32 * gib, 4096, 1_000_000, 3));
    }
    let mut device = open(PAGE);
    timed("page: random format of 32 GB", &mut device, random_format(32 * gib, 32 * gib, 1));
}
