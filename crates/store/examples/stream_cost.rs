//! What a long run costs when its records stream through the reserve: CPU per
//! IO with statistics, peak memory, stalls. Arguments: millions of IOs (20),
//! pace in nanoseconds an IO (300; 0 as fast as memory takes them).
//! `cargo run --release -p uflip-store --example stream_cost -- 100 300`

use std::time::{Duration, Instant};
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos, Recorder};
use uflip_store::recorder::{DEFAULT_RESERVE, Reserve, RunShape};

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let n = args.next().unwrap_or(20) * 1_000_000;
    let pace_ns = args.next().unwrap_or(300);
    let path = std::env::temp_dir().join(format!("uflip-stream-cost-{}.tmp", std::process::id()));
    let reserve = Reserve::new(DEFAULT_RESERVE);
    reserve.begin(RunShape {
        run: 0,
        io_count: n,
        io_ignore: 0,
        streams: 1,
        patterns: 1,
        open_loop: false,
        path: path.clone(),
    });
    let start = Instant::now();
    let (mut chunk, mut state, mut clock) = (reserve.fresh(), 1u64, 0);
    for i in 0..n {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if chunk.len() == chunk.capacity() {
            while start.elapsed() < Duration::from_nanos(i * pace_ns) {
                std::hint::spin_loop();
            }
            chunk = reserve.exchange(chunk);
        }
        let offset = Bytes((state >> 40) % (1 << 18) * 4096);
        let io = Io { arrival: Arrival::CONSECUTIVE, offset, size: 4096, mode: Mode::Read, pattern: 0 };
        let response = 50 + (state >> 33) % 150;
        chunk.push(IoRecord::new(&io, 0, Nanos(clock), Nanos(response)));
        clock += response + 40;
    }
    Recorder::finish(&reserve, chunk);
    let fed = start.elapsed();
    let done = reserve.finish().expect("written");
    let all = start.elapsed();
    let bytes = done.file.metadata().expect("its length").len() as f64;
    println!("{n} IOs, {:.2} B/IO, {} stalls", bytes / n as f64, done.stalls);
    println!(
        "fed at {:.1} ns/IO, whole {:.1} ns/IO",
        fed.as_nanos() as f64 / n as f64,
        all.as_nanos() as f64 / n as f64
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|l| l.starts_with("VmHWM")).for_each(|l| println!("{l}"));
    let _ = std::fs::remove_file(path);
}
