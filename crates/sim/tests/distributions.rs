//! What the uFLIP paper says besides Table 3: start-up, spikes, lasting effects
//! effects, the out-of-box state and periods (sections 4.1, 4.2 and 5.1).

use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Device, Io, KeepAll, Mode, Nanos, RunLimits, Stop};
use uflip_sim::SimDevice;

fn run(d: &mut SimDevice, ios: Vec<(Mode, u64, u64)>) -> Vec<f64> {
    let keep = KeepAll::new(4096);
    let stop = Stop::new();
    let ios = ios.into_iter().map(|(mode, at, size)| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(at),
        size: size as u32,
        mode,
        pattern: 0,
    });
    d.run(vec![Box::new(ios)], &keep, RunLimits { time: None, stop: &stop, sequence: None }).unwrap();
    keep.records().iter().map(|r| r.response().as_millis_f64()).collect()
}

fn capacity(d: &SimDevice) -> u64 {
    Device::geometry(d).capacity.0
}

/// Random IOs of 0.5 to 128 KB, as many bytes as the device has.
fn random_state(d: &mut SimDevice) {
    let (mut rng, space) = (Rng::new(42), capacity(d));
    let mut left = space;
    let mut ios = Vec::new();
    loop {
        let size = (rng.below(256) + 1) * 512;
        let Some(rest) = left.checked_sub(size) else { break };
        left = rest;
        ios.push((Mode::Write, rng.below((space - size) / 512 + 1) * 512, size));
    }
    run(d, ios);
    d.idle(Nanos::from_secs(10), &Stop::new());
}

fn random_writes(d: &SimDevice, size: u64, count: u64, seed: u64) -> Vec<(Mode, u64, u64)> {
    let mut rng = Rng::new(seed);
    let places = capacity(d) / size;
    (0..count).map(|_| (Mode::Write, rng.below(places) * size, size)).collect()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn the_mtron_starts_up_for_125_writes_and_then_oscillates_between_0_4_and_27_ms() {
    let mut d = uflip_sim::open("mtron", 1).unwrap();
    random_state(&mut d);
    let ios = random_writes(&d, 32768, 5120, 1);
    let times = run(&mut d, ios);
    let start_up = times.iter().position(|t| *t > 2.0).unwrap();
    let running = &times[128..];
    let cheap = running.iter().filter(|t| **t < 1.0).count() as f64 / running.len() as f64;
    let expensive: Vec<f64> = running.iter().copied().filter(|t| *t >= 1.0).collect();
    println!(
        "mtron: start-up {start_up} IOs, {:.0} % cheap, others {:.1} ms on average",
        cheap * 100.0,
        mean(&expensive)
    );
    assert!((110..=140).contains(&start_up), "paper: about 125");
    assert!((0.6..0.72).contains(&cheap), "paper's figure 3: about two thirds");
    assert!((22.0..34.0).contains(&mean(&expensive)), "paper: 27 ms");
}

#[test]
fn random_writes_on_the_mtron_slow_3000_reads_for_two_and_a_half_seconds() {
    for (name, lasts) in [("mtron", true), ("memoright", false), ("samsung", false)] {
        let mut d = uflip_sim::open(name, 1).unwrap();
        random_state(&mut d);
        let reads =
            |from: u64| (0..8192u64).map(|i| (Mode::Read, (from + i) * 32768, 32768)).collect::<Vec<_>>();
        let normal = mean(&run(&mut d, reads(0)));
        let ios = random_writes(&d, 32768, 1024, 2);
        run(&mut d, ios);
        let times = run(&mut d, reads(8192));
        let slow = times.iter().rposition(|t| *t > 1.2 * normal).map_or(0, |i| i + 1);
        let seconds = times[..slow].iter().sum::<f64>() / 1e3;
        println!("{name}: {slow} reads are slow, for {seconds:.2} s");
        if lasts {
            assert!((2200..4000).contains(&slow) && (1.9..3.2).contains(&seconds), "paper: 3,000 and 2.5 s");
        } else {
            assert!(slow <= 1, "paper: no lasting effect");
        }
    }
}

#[test]
fn the_memoright_starts_up_for_30_writes() {
    let mut d = uflip_sim::open("memoright", 1).unwrap();
    random_state(&mut d);
    let ios = random_writes(&d, 32768, 1024, 1);
    let times = run(&mut d, ios);
    let start_up = times.iter().position(|t| *t > 1.0).unwrap();
    println!("memoright: start-up {start_up} IOs");
    assert!((28..=36).contains(&start_up), "paper: 30");
}

#[test]
fn the_samsung_is_fast_out_of_the_box_and_an_order_slower_once_written() {
    let mut d = uflip_sim::open("samsung", 1).unwrap();
    let ios = random_writes(&d, 16384, 1000, 1);
    let new = mean(&run(&mut d, ios));
    random_state(&mut d);
    let ios = random_writes(&d, 16384, 1000, 2);
    let used = mean(&run(&mut d, ios));
    println!("samsung: 16 KB random writes {new:.2} ms new, {used:.2} ms used");
    assert!(used > 5.0 * new, "paper: almost an order of magnitude");
}

#[test]
fn the_dti_writes_in_periods_of_128() {
    let mut d = uflip_sim::open("kingston-dti", 1).unwrap();
    random_state(&mut d);
    let times = run(&mut d, (0..1024u64).map(|i| (Mode::Write, i * 32768, 32768)).collect());
    // The mean of every window of one period is the same.
    let window = |i: usize| mean(&times[i * 128..(i + 1) * 128]);
    println!("dti: periods of {:.2}, {:.2}, {:.2} ms", window(2), window(3), window(4));
    assert!((window(3) / window(5)).ln().abs() < 0.05);
    assert!((1..128).any(|i| times[i] > 5.0), "paper: no start-up");
}

#[test]
fn pauses_gain_nothing_in_total() {
    // Section 5.2: with the pause the whole takes as long as without.
    let mut d = uflip_sim::open("memoright", 1).unwrap();
    random_state(&mut d);
    let ios = random_writes(&d, 32768, 2048, 3);
    let before = d.now();
    run(&mut d, ios.clone());
    let without = d.now().0 - before.0;
    d.idle(Nanos::from_secs(10), &Stop::new());
    let keep = KeepAll::new(4096);
    let stop = Stop::new();
    let paused = ios.into_iter().map(|(mode, at, size)| Io {
        arrival: Arrival::After(Nanos::from_millis(5)),
        offset: Bytes(at),
        size: size as u32,
        mode,
        pattern: 0,
    });
    let end =
        d.run(vec![Box::new(paused)], &keep, RunLimits { time: None, stop: &stop, sequence: None }).unwrap();
    let with = end.elapsed.0;
    println!("memoright: {:.2} s without pauses, {:.2} s with", without as f64 / 1e9, with as f64 / 1e9);
    assert!((with as f64 / without as f64).ln().abs() < 0.2);
}
