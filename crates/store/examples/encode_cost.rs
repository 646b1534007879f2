//! What records cost: bytes and CPU nanoseconds per IO, for the baselines and
//! for a fast device. `cargo run --release -p uflip-store --example encode_cost`

use std::path::Path;
use std::time::Instant;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos};
use uflip_store::records::{RecordScratch, RecordWriter};

struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 20
    }
    fn unit(&mut self) -> f64 {
        (self.next() % (1 << 30)) as f64 / (1u64 << 30) as f64
    }
    /// Standard normal, near enough: the sum of twelve uniforms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

fn records(n: usize, random: bool, size: u64, space: u64, median_ns: f64, sigma: f64) -> Vec<IoRecord> {
    let mut rng = Lcg(7);
    let mut clock = 0;
    (0..n as u64)
        .map(|i| {
            let slot = if random { rng.next() % (space / size) } else { i % (space / size) };
            let mut response = (median_ns * (sigma * rng.normal()).exp()) as u64;
            if rng.next().is_multiple_of(200) {
                response *= 20;
            }
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(slot * size),
                size: size as u32,
                mode: Mode::Read,
                pattern: 0,
            };
            let submit = Nanos(clock);
            clock += response + 150 + rng.next() % 60;
            IoRecord::new(&io, 0, submit, Nanos(response))
        })
        .collect()
}

fn cost(name: &str, records: &[IoRecord]) {
    let mut best = f64::MAX;
    let mut size = 0;
    for _ in 0..3 {
        let scratch = RecordScratch::new().expect("memory");
        let start = Instant::now();
        let mut writer = RecordWriter::new(Vec::new(), Path::new("memory"), scratch).expect("writer");
        for chunk in records.chunks(131_072) {
            writer.push(1, chunk).expect("push");
        }
        size = writer.finish().expect("finish").0.len();
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    let n = records.len() as f64;
    println!("{name:<34} {:>9} IOs {:>7.3} B/IO {:>7.1} ns/IO", records.len(), size as f64 / n, best / n);
}

fn main() {
    for n in [256, 512, 1024, 2048, 16_384, 131_072] {
        cost("random 32K in 1G, 80 us, sigma 0.2", &records(n, true, 32 << 10, 1 << 30, 80e3, 0.2));
        cost("sequential 32K in 1G, 80 us", &records(n, false, 32 << 10, 1 << 30, 80e3, 0.2));
    }
    cost("random 32K, 80 us, sigma 0.5", &records(1024, true, 32 << 10, 1 << 30, 80e3, 0.5));
    cost("random 4K in 1G, 50-200 ns", &records(5_000_000, true, 4 << 10, 1 << 30, 100.0, 0.25));
    cost("random 4K in 1T, 80 us", &records(1_000_000, true, 4 << 10, 1 << 40, 80e3, 0.2));
}
