//! Prints how often the detectors are right on random series whose truth is
//! known: hit, miss and false-alarm rates, errors, coverage, and times.
//!
//! `cargo run --release -p uflip-measure --example detectors [N] [SEED]`

use std::hint::black_box;
use std::time::Instant;
use uflip_measure::detect::enough::StopRule;
use uflip_measure::detect::synthetic::{SyntheticSeries, generate};
use uflip_measure::detect::{interval, lasting, period, proof, startup};

fn line(name: &str, part: u64, all: u64, note: &str) {
    println!("{name:<46}{:>7.1} % of {all:>5}  {note}", 100.0 * part as f64 / all.max(1) as f64);
}

fn phases(n: u64, seed: u64) {
    let s = proof::start_ups(n, seed);
    line("start-up within a factor of two", s.hit, s.with, "target 95 %");
    line("start-up missed", s.missed, s.with, "");
    line("start-up off by more", s.off, s.with, "");
    line("false start-up, oscillating series", s.oscillating_alarms, s.oscillating, "target below 5 %");
    line("false start-up, no period", s.aperiodic_alarms, s.aperiodic, "target below 5 %");
    let p = proof::periods(n, seed);
    line("period within 10 %", p.hit, p.with, &format!("target 90 %; mean error {:.2} %", 100.0 * p.error));
    line("period missed", p.missed, p.with, "");
    line("period off by more", p.off, p.with, "");
    line("false period", p.alarms, p.without, "target below 5 %");
    let l = proof::lasting_effects(n, seed);
    line("lasting effect within a factor of two", l.hit, l.with, "");
    line("lasting effect missed", l.missed, l.with, "");
    line("lasting effect too short for the pause", l.short, l.with, "");
    line("lasting effect too long", l.long, l.with, "");
    line("false lasting effect", l.alarms, l.without, "");
}

fn means(n: u64, seed: u64) {
    println!("\n95 % interval of the mean holds the truth (target 90 to 99 %)");
    for c in proof::coverage(n, seed, &[1024, 5120]) {
        let name = format!("{}, {} IOs", c.kind, c.ios);
        line(&name, c.held, c.tried, &format!("half-width {:>4.1} %, {:?}", 100.0 * c.half_width, c.method));
    }
    let rule = StopRule::default();
    println!("\nstopping at 5 %: the last interval holds the truth; the mean is within 5 %");
    for s in proof::stops(n.div_ceil(5), seed, &rule) {
        let close = 100.0 * s.close as f64 / s.tried as f64;
        let note = format!("close {close:.1} %, {:.0} IOs, {:.1} looks, {} capped", s.ios, s.looks, s.capped);
        line(s.kind, s.held, s.tried, &note);
    }
}

fn time<T>(name: &str, ios: usize, work: impl Fn() -> T) {
    let start = Instant::now();
    black_box(work());
    println!("{name:<30}{ios:>9} IOs{:>10.1} ms", start.elapsed().as_secs_f64() * 1e3);
}

fn times() {
    println!("\ntime for one series");
    for ios in [1_000, 100_000, 1_000_000] {
        let series = SyntheticSeries {
            ios,
            start_up_ios: Some(125),
            duty: 0.1,
            period_ios: Some(40.0),
            jitter: 0.1,
            noise: 0.2,
            ..SyntheticSeries::default()
        };
        let values = generate(&series);
        time("start-up", ios, || startup::start_up(&values));
        time("period", ios, || period::period(&values));
        time("batch means, no period", ios, || interval::batch_means(&values, None, 0.95));
        time("bootstrap, 1000 resamples", ios, || {
            interval::block_bootstrap(&values, Some(40.0), 0.95, 1000, 1)
        });
        time("lasting", ios, || lasting::lasting_effect(&values, &values, &vec![0; ios]));
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let n = args.next().map_or(1000, |a| a.parse().expect("N is a number"));
    let seed = args.next().map_or(1, |a| a.parse().expect("SEED is a number"));
    phases(n, seed);
    means(n, seed);
    times();
}
