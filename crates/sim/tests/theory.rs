//! Write amplification of page mapping against what the literature computes.
//!
//! Uniformly random writes of pages over a part of the device; the balance that
//! both policies follow from is told in `src/amplification.rs`, with its sources.

use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Chunk, Device, Io, Mode, Recorder, RunLimits, Stop};
use uflip_sim::amplification::greedy;
use uflip_sim::{SimDevice, check};

struct NoRecords;

impl Recorder for NoRecords {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(64)
    }
    fn exchange(&self, mut full: Chunk) -> Chunk {
        full.clear();
        full
    }
    fn finish(&self, _: Chunk) {}
}

/// Expected valid pages of a victim that is the best of `d` drawn at random among
/// superblocks of `b` pages, a share `rho` of them valid.
fn d_choices_victim(b: u32, rho: f64, d: i32) -> f64 {
    // Shares of superblocks with at least i valid pages for flow k.
    let shares = |k: f64| {
        let mut at_least = vec![0.0; b as usize + 2];
        for i in (1..=b as usize).rev() {
            let (mut low, mut high) = (at_least[i + 1], 1.0f64);
            for _ in 0..60 {
                let x = f64::midpoint(low, high);
                let over = x - k * (1.0 - x.powi(d)) / i as f64 > at_least[i + 1];
                if over { high = x } else { low = x }
            }
            at_least[i] = low;
        }
        at_least
    };
    let valid = |at_least: &[f64]| at_least[1..].iter().sum::<f64>() / f64::from(b);
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let k = f64::midpoint(low, high);
        if valid(&shares(k)) > rho { high = k } else { low = k }
    }
    shares(low)[1..].iter().map(|share| share.powi(d)).sum()
}

fn writes(count: u64, mut at: impl FnMut(u64) -> u64 + Send + 'static) -> uflip_device::Stream {
    Box::new((0..count).map(move |i| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(at(i) * 4096),
        size: 4096,
        mode: Mode::Write,
        pattern: 0,
    }))
}

fn run(device: &mut SimDevice, stream: uflip_device::Stream) -> f64 {
    let (before, counted) = (device.flash_ops().unwrap(), device.counters().unwrap());
    let limits = RunLimits { time: None, stop: &Stop::new(), sequence: None };
    device.run(vec![stream], &NoRecords, limits).unwrap();
    let after = device.flash_ops().unwrap();
    let programs = (after.programs - before.programs) as f64;
    let amplification = programs / (programs - (after.copies - before.copies) as f64);
    let counted = device.counters().unwrap().since(&counted).write_amplification();
    assert_eq!(counted, Some(amplification), "the counters tell another write amplification");
    amplification
}

/// 128 MiB of pages of 4 KiB in superblocks of one block each, and 10 % more.
fn open(b: u32, ftl: &str) -> SimDevice {
    let text = format!(
        "name = \"theory\"\ncapacity_mib = 128\n\
         [link]\nread_latency_us = 7\nwrite_latency_us = 7\nread_mb_s = 1000\nwrite_mb_s = 1000\n\
         [geometry]\nchannels = 1\nchips_per_channel = 1\npages_per_block = {b}\npage_bytes = 4096\n\
         [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n\
         [ftl]\nkind = \"page\"\nover_provisioning = 0.1\n{ftl}\n"
    );
    SimDevice::new(&check(&text).unwrap(), 1).unwrap()
}

/// Write amplification of uniformly random writes over `share` of the device,
/// and the share of valid pages in closed superblocks.
fn uniform(b: u32, share: f64, ftl: &str) -> (f64, f64) {
    let mut device = open(b, ftl);
    let pages = (32768.0 * share) as u64;
    run(&mut device, writes(pages, |i| i));
    let mut rng = Rng::new(7);
    run(&mut device, writes(200_000, move |_| rng.below(pages)));
    let mut rng = Rng::new(8);
    let amplification = run(&mut device, writes(150_000, move |_| rng.below(pages)));
    // Two free superblocks are kept, and the open one is half full.
    let closed = device.erase_counts().len() as f64 - 2.5;
    (amplification, pages as f64 / (closed * f64::from(b)))
}

#[test]
fn greedy_amplifies_as_computed() {
    for (b, share) in [(16, 0.95), (32, 0.8), (64, 0.9), (128, 0.7)] {
        let (ours, rho) = uniform(b, share, "gc = \"greedy\"");
        let computed = greedy(b, rho);
        println!("greedy, {b} pages, {rho:.3} valid: {ours:.3}, computed {computed:.3}");
        assert!((ours / computed - 1.0).abs() < 0.02, "{ours} instead of {computed}");
    }
}

#[test]
fn d_choices_amplifies_as_computed_and_more_choices_less() {
    let mut last = f64::MAX;
    for d in [2, 5, 20] {
        let (ours, rho) = uniform(32, 0.85, &format!("gc = \"d-choices\"\ngc_choices = {d}"));
        let computed = 32.0 / (32.0 - d_choices_victim(32, rho, d));
        println!("{d} choices, {rho:.3} valid: {ours:.3}, computed {computed:.3}");
        assert!((ours / computed - 1.0).abs() < 0.02, "{ours} instead of {computed}");
        assert!(ours < last);
        last = ours;
    }
    let rho = 0.8;
    let (many, best) = (32.0 / (32.0 - d_choices_victim(32, rho, 2000)), greedy(32, rho));
    assert!((many / best - 1.0).abs() < 0.02, "two ways to compute greedy differ: {many} and {best}");
}

#[test]
fn hot_and_cold_apart_amplify_less() {
    let skewed = |ftl: &str| {
        let mut device = open(64, ftl);
        let pages = 27000;
        run(&mut device, writes(pages, |i| i));
        let mut rng = Rng::new(3);
        let hot = move |_| if rng.below(10) > 0 { rng.below(pages / 10) } else { rng.below(pages) };
        run(&mut device, writes(600_000, hot.clone()));
        run(&mut device, writes(150_000, hot))
    };
    // Greedy lets cold superblocks decay as far as hot ones, so little is gained;
    // cost-benefit reclaims cold ones while they are nearly full.
    for (gc, gain) in [("greedy", 0.99), ("cost-benefit", 0.98)] {
        let one = skewed(&format!("gc = \"{gc}\"\nhot_cold = false"));
        let two = skewed(&format!("gc = \"{gc}\"\nhot_cold = true"));
        println!("{gc}, nine tenths of the writes to a tenth: {one:.3} in one stream, {two:.3} in two");
        assert!(two < gain * one, "{gc}: {two} and {one}");
    }
}
