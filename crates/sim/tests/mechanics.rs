//! What single parameters of a description do, on small devices, exactly.

use uflip_device::{Arrival, Bytes, Device, Io, KeepAll, Mode, RunLimits, Stop};
use uflip_sim::{SimDevice, check};

const KIB: u64 = 1024;

/// A device of 4 MB with superblocks of 64 KB (8 pages of 2 KB in 4 dies), free
/// links, 1 us a page program, 1 ms a row copied: a merge is 8 ms.
fn device(ftl: &str, buffer: &str) -> SimDevice {
    let copies = if ftl.contains("\"page\"") { "" } else { "copy_back_us = 1000\n" };
    let text = format!(
        "name = \"small\"\ncapacity_mib = 4\n\
         [link]\nread_latency_us = 0\nwrite_latency_us = 10\nread_mb_s = 1e6\nwrite_mb_s = 1e6\n\
         [geometry]\nchannels = 4\nchips_per_channel = 1\npages_per_block = 8\npage_bytes = 2048\n\
         [timing]\nread_us = 0\nprogram_us = 1\nerase_us = 0\nbus_mb_s = 1e6\n{copies}\
         {buffer}[ftl]\n{ftl}\n"
    );
    let d = check(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = SimDevice::new(&d, 1).unwrap();
    write(&mut device, 64 * KIB, (0..64).map(|i| i * 64 * KIB));
    device
}

/// Response times in ms of writes of `size` at `offsets`.
fn write(device: &mut SimDevice, size: u64, offsets: impl Iterator<Item = u64> + Send + 'static) -> Vec<f64> {
    let ios = offsets.map(move |at| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(at),
        size: size as u32,
        mode: Mode::Write,
        pattern: 0,
    });
    let (keep, stop) = (KeepAll::new(64), Stop::new());
    device.run(vec![Box::new(ios)], &keep, RunLimits { time: None, stop: &stop, sequence: None }).unwrap();
    keep.records().iter().map(|r| r.response().as_millis_f64()).collect()
}

fn expensive(times: &[f64]) -> usize {
    times.iter().filter(|t| **t >= 7.0).count()
}

/// Every other page of superblocks `0..n` in turn: never a stream, which goes on
/// where a write ended or in that page.
fn round(n: u64, rounds: u64) -> impl Iterator<Item = u64> + Send {
    (0..n * rounds).map(move |i| (i % n) * 64 * KIB + (1 + 2 * (i / n)) * 2 * KIB)
}

#[test]
fn random_logs_end_the_cheap_area_and_leave_streams_alone() {
    let ftl = "kind = \"bast\"\nlog_blocks = 8\nrandom_logs = 3";
    assert_eq!(expensive(&write(&mut device(ftl, ""), 2 * KIB, round(3, 8))), 0);
    let thrashing = write(&mut device(ftl, ""), 2 * KIB, round(4, 8));
    assert_eq!(expensive(&thrashing), 32 - 3, "each but the first three evicts another");
    assert_eq!(
        expensive(&write(&mut device("kind = \"bast\"\nlog_blocks = 8", ""), 2 * KIB, round(8, 8))),
        0
    );
    // Eight streams, one after the other a page each: known from the second on.
    let streams = (0..8 * 16u64).map(|i| (i % 8) * 64 * KIB + (i / 8) * 2 * KIB);
    assert_eq!(expensive(&write(&mut device(ftl, ""), 2 * KIB, streams)), 8 - 3);
}

#[test]
fn a_write_in_part_of_a_unit_costs_a_merge() {
    let ftl = "kind = \"bast\"\nlog_blocks = 8\nunit_kib = 8";
    let places = |shift: u64| (0..16u64).map(move |i| (i * 7 % 32) * 64 * KIB + 16 * KIB + shift);
    let aligned = write(&mut device(ftl, ""), 8 * KIB, places(0).take(8));
    assert_eq!(expensive(&aligned), 0);
    let shifted = write(&mut device(ftl, ""), 8 * KIB, places(2 * KIB));
    assert_eq!(expensive(&shifted), 16);
}

#[test]
fn superblocks_beyond_the_limit_are_merged_out_of_the_shared_log() {
    let ftl = "kind = \"fast\"\nlog_kib = 1024\nsequential_logs = 2";
    let limited = format!("{ftl}\nlog_superblocks = 3");
    assert_eq!(expensive(&write(&mut device(&limited, ""), 2 * KIB, round(3, 8))), 0);
    assert_eq!(expensive(&write(&mut device(&limited, ""), 2 * KIB, round(4, 8))), 32 - 3);
    assert_eq!(expensive(&write(&mut device(ftl, ""), 2 * KIB, round(4, 8))), 0);
}

#[test]
fn a_locked_line_waits_for_its_program_and_others_do_not() {
    let buffer =
        |locks| format!("[buffer]\nkib = 4\nline_kib = 2\ndestage = \"immediate\"\nlocks_lines = {locks}\n");
    let in_place = |locks| {
        let mut d = device("kind = \"page\"", &buffer(locks));
        let times = write(&mut d, 2 * KIB, (0..64).map(|_| 0));
        times[1..].iter().sum::<f64>() / 63.0
    };
    let (free, locked) = (in_place(false), in_place(true));
    // 10 us for the command, and 1 us for the program before it.
    assert!((free - 0.010).abs() < 2e-4, "{free}");
    assert!((locked - 0.011).abs() < 2e-4, "{locked}");
}
