//! How fast patterns give IOs: `cargo run --release -p uflip-measure --example
//! stream_speed`. The measuring thread asks for the next IO between two IOs, so
//! a few nanoseconds is what it may take.

use std::hint::black_box;
use std::time::Instant;
use uflip_measure::Pattern;
use uflip_measure::pattern::permute::Permutation;

fn report(name: &str, count: u64, work: impl FnOnce() -> u64) {
    let start = Instant::now();
    black_box(work());
    let ns = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{name:<60} {ns:6.2} ns  {:7.1} M/s", 1e3 / ns);
}

fn main() {
    const COUNT: u64 = 50_000_000;
    // Powers of four, just above them, between them, and numbers that are shuffled.
    for n in [3u64, 512, 513, 1 << 24, (1 << 24) + 1, 3 << 24, 100_000_000, (1 << 31) + 1, (1 << 40) + 1] {
        let mut permutation = Permutation::new(n, 1);
        let sum = || (0..COUNT).fold(0u64, |sum, _| sum.wrapping_add(permutation.next_slot()));
        report(&format!("permutation of {n}"), COUNT, sum);
    }
    for text in [
        "SR(target_size=1G)",
        "RR(target_size=1G)",
        "RW(target_size=1G, repeat=no)",
        "SW(target_size=1G, incr=-7)",
        "SW(target_size=1G, partitions=12)",
        "4 SR(target_size=1G) / 1 RW(target_size=1G, pause=1ms, burst=10)",
    ] {
        let streams = text.parse::<Pattern>().and_then(|pattern| pattern.streams(COUNT, 1));
        match streams {
            Ok(mut streams) => report(text, COUNT, || {
                streams.iter_mut().flatten().fold(0u64, |sum, io| sum.wrapping_add(io.offset.0))
            }),
            Err(error) => println!("{text}: {error}"),
        }
    }
}
