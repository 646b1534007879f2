//! Known answers: recovery, spikes and windows made by hand.
use super::*;
use uflip_device::IoRecord;
use uflip_device::{Arrival, Io, Mode};

fn record(submit: u64, response: u64, size: u32) -> IoRecord {
    let io = Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size, mode: Mode::Write, pattern: 0 };
    IoRecord::new(&io, 0, Nanos(submit), Nanos(response))
}

#[test]
fn an_io_across_windows_is_spread_over_them() {
    // 4,000 bytes from 500 to 2500 ns; windows of 1 us: 1000, 2000, 1000 bytes.
    let found = windows(&[record(500, 2000, 4000)], Nanos(1000), Nanos(3000));
    let mb: Vec<f64> = found.iter().map(|w| (w * 1e6).round() / 1e6).collect();
    assert_eq!(mb, [1000.0, 2000.0, 1000.0]);
    assert_eq!(windows(&[record(500, 2000, 4000)], Nanos(1000), Nanos(2999)).len(), 2);
}

#[test]
fn recovery_is_told_to_the_window() {
    // 30 windows of 4 s: 30 % for 30 s (7.5 windows), then normal.
    let speed = |at: usize| {
        if at < 7 {
            3.0
        } else if at == 7 {
            6.5
        } else {
            10.0
        }
    };
    let all: Vec<f64> = (0..30).map(speed).collect();
    assert_eq!(median(&all), Some(10.0));
    assert_eq!(recovery_s(&all, Nanos::from_secs(4), 6.0), Some(28.0));
    assert_eq!(recovery_s(&all, Nanos::from_secs(4), 11.0), None);
    assert_eq!(recovery_s(&[9.0; 30], Nanos::from_secs(4), 5.4), Some(0.0));
}

/// The Hama of section 3.3.2: the first spike after 3000 writes, then every 2000.
#[test]
fn spikes_have_a_place_and_a_period() {
    let ns = |i: usize| match i {
        i if i >= 3000 && (i - 3000).is_multiple_of(2000) => 5_000_000_000,
        i => 380_000 + (i as u64 * 7919) % 40_000,
    };
    let series: Vec<u64> = (0..20_000).map(ns).collect();
    let found = spikes(&series).unwrap();
    assert_eq!((found.count, found.first_io, found.period_ios), (9, 3000, Some(2000)));
    assert_eq!(found.height_ns, 5_000_000_000);
    assert!(found.between_ns.unwrap() < 840_000_000);
    let flat: Vec<u64> = (0..20_000).map(|i| 380_000 + (i as u64 * 7919) % 40_000).collect();
    assert_eq!(spikes(&flat), None);
    assert_eq!(spikes(&[]), None);
}

#[test]
fn ios_in_a_row_are_one_spike() {
    let series: Vec<u64> = (0..1000).map(|i| if i % 100 < 3 { 50_000 } else { 100 }).collect();
    let found = spikes(&series).unwrap();
    assert_eq!((found.count, found.first_io, found.period_ios), (10, 0, Some(100)));
    assert_eq!(found.height_ns, 150_000);
}
