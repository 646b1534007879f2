//! Prints how often the detectors are right on random series whose truth is
//! known: hit, miss and false-alarm rates, errors, coverage.
//!
//! `cargo run --release -p uflip-measure --example detectors [N] [SEED]`

use uflip_device::rng::{Rng, derive_seed};
use uflip_measure::detect::synthetic::{Series, generate, running_mean_ns};
use uflip_measure::detect::{interval, period, startup};

fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

/// A random running phase with a period, without a start-up.
fn oscillating(rng: &mut Rng) -> Series {
    let cheap_ns = log_uniform(rng, 50e3, 3e6);
    let period = log_uniform(rng, 4.0, 300.0).round();
    Series {
        ios: log_uniform(rng, (period * 12.0).max(512.0), 20_000.0) as usize,
        cheap_ns,
        start_up_ns: cheap_ns,
        expensive_ns: cheap_ns * log_uniform(rng, 3.0, 100.0),
        duty: log_uniform(rng, 0.005, 0.5),
        period_ios: Some(period),
        jitter: if rng.below(2) == 0 { 0.0 } else { 0.12 * rng.unit() },
        phase: if rng.below(2) == 0 { 0.0 } else { rng.unit() },
        noise: log_uniform(rng, 0.01, 0.4),
        correlation: if rng.below(4) == 0 { 0.8 * rng.unit() } else { 0.0 },
        outliers: if rng.below(2) == 0 { 0.0 } else { 0.003 * rng.unit() },
        drift: if rng.below(3) == 0 { log_uniform(rng, 0.7, 1.4) } else { 1.0 },
        seed: rng.next_u64(),
        ..Series::default()
    }
}

/// A random running phase without a period: constant, noise or random spikes.
fn aperiodic(rng: &mut Rng) -> Series {
    let mut series =
        Series { period_ios: None, ios: log_uniform(rng, 200.0, 20_000.0) as usize, ..oscillating(rng) };
    if rng.below(2) == 0 {
        series.duty = 0.0;
    }
    if rng.below(3) == 0 {
        series.correlation = 0.95 * rng.unit();
    }
    series
}

/// The same with a start-up of at least two periods (or of ten mean gaps between
/// expensive IOs at random) that changes the mean by at least 30 %.
fn with_start_up(rng: &mut Rng, mut series: Series) -> Series {
    let natural = match series.period_ios {
        Some(period) => 2.0 * period,
        None if series.duty > 0.0 => 10.0 / series.duty,
        None => 8.0,
    };
    let least = natural.max(20.0);
    series.ios = series.ios.max((least * 10.0) as usize);
    let most = (series.ios as f64 / 6.0).clamp(least * 1.01, 2000f64.max(least * 1.01));
    series.start_up_ios = Some(log_uniform(rng, least, most) as usize);
    series.start_up_ns = series.cheap_ns;
    series.expensive_ns = series.expensive_ns.max(series.cheap_ns * (1.0 + 0.3 / duty(&series)));
    if series.duty == 0.0 {
        series.start_up_ns = series.cheap_ns * log_uniform(rng, 0.05, 0.6);
    }
    if rng.below(5) == 0 {
        // Warming up instead.
        series.start_up_ns = series.expensive_ns.max(series.cheap_ns * 3.0) * 1.5;
    }
    series
}

/// The share of expensive IOs, at least one in a period.
fn duty(series: &Series) -> f64 {
    series.period_ios.map_or(series.duty.max(1e-3), |p| (series.duty * p).round().max(1.0) / p)
}

struct Tally {
    name: &'static str,
    tried: u32,
    good: u32,
    note: String,
}

impl Tally {
    fn new(name: &'static str) -> Tally {
        Tally { name, tried: 0, good: 0, note: String::new() }
    }
    fn add(&mut self, good: bool) {
        self.tried += 1;
        self.good += u32::from(good);
    }
    fn print(&self) {
        let share = 100.0 * f64::from(self.good) / f64::from(self.tried.max(1));
        println!("{:<58} {:>6.1} %  of {:>5}  {}", self.name, share, self.tried, self.note);
    }
}

fn start_ups(n: u64, seed: u64, verbose: bool) {
    let mut hit = Tally::new("start-up found within a factor of two");
    let mut missed = Tally::new("start-up missed");
    let mut wrong = Tally::new("start-up found, but off by more");
    let mut alarm_periodic = Tally::new("false start-up, oscillating");
    let mut alarm_aperiodic = Tally::new("false start-up, no period");
    for i in 0..n {
        let mut rng = Rng::new(derive_seed(seed, i));
        let quiet = if i % 2 == 0 { oscillating(&mut rng) } else { aperiodic(&mut rng) };
        let found = startup::start_up(&generate(&quiet));
        if i % 2 == 0 { &mut alarm_periodic } else { &mut alarm_aperiodic }.add(found.is_some());
        if verbose && found.is_some() {
            println!("FALSE {quiet:?}\n   {found:?}");
        }
        let truth = with_start_up(&mut rng, quiet);
        let found = startup::start_up(&generate(&truth));
        let ios = truth.start_up_ios.unwrap() as f64;
        let close = found.is_some_and(|s| (s.ios as f64 / ios).log2().abs() <= 1.0);
        hit.add(close);
        missed.add(found.is_none());
        wrong.add(found.is_some() && !close);
        if verbose && !close {
            println!("MISS {truth:?}\n   {found:?}");
        }
    }
    [hit, missed, wrong, alarm_periodic, alarm_aperiodic].iter().for_each(Tally::print);
}

fn periods(n: u64, seed: u64, verbose: bool) {
    let mut hit = Tally::new("period found within 10 %");
    let mut missed = Tally::new("period missed");
    let mut multiple = Tally::new("period found, but a multiple or a part");
    let mut alarm = Tally::new("false period");
    for i in 0..n {
        let mut rng = Rng::new(derive_seed(seed ^ 0x11, i));
        let truth = oscillating(&mut rng);
        let found = period::period(&generate(&truth));
        let ratio = found.map(|p| p.ios / truth.period_ios.unwrap());
        let close = ratio.is_some_and(|r| (r - 1.0).abs() <= 0.1);
        hit.add(close);
        missed.add(found.is_none());
        multiple.add(found.is_some() && !close);
        if verbose && !close {
            println!("PERIOD {truth:?}\n   {found:?}");
        }
        let quiet = aperiodic(&mut rng);
        let found = period::period(&generate(&quiet));
        alarm.add(found.is_some());
        if verbose && found.is_some() {
            println!("NOPERIOD {quiet:?}\n   {found:?}");
        }
    }
    [hit, missed, multiple, alarm].iter().for_each(Tally::print);
}

fn coverage(n: u64, seed: u64) {
    let base = Series { outlier_tail: 3.0, ..Series::default() };
    let kinds = [
        ("independent", Series { noise: 0.5, ..base.clone() }),
        ("AR(1) 0.5", Series { noise: 0.5, correlation: 0.5, ..base.clone() }),
        ("AR(1) 0.9", Series { noise: 0.5, correlation: 0.9, ..base.clone() }),
        (
            "period 40, jitter",
            Series { noise: 0.2, duty: 0.1, period_ios: Some(40.0), jitter: 0.1, ..base.clone() },
        ),
        (
            "period 128, 1 spike",
            Series { noise: 0.2, duty: 0.005, period_ios: Some(128.0), jitter: 0.02, ..base.clone() },
        ),
        ("random spikes 2 %", Series { noise: 0.3, duty: 0.02, ..base.clone() }),
        ("Pareto outliers 0.5 %", Series { noise: 0.3, outliers: 0.005, ..base.clone() }),
    ];
    for (name, kind) in kinds {
        for ios in [1000, 5120] {
            let (mut batch, mut boot) = (
                Tally::new("interval of the mean, batch means"),
                Tally::new("interval of the mean, bootstrap"),
            );
            let (mut width, mut width_boot) = (0.0, 0.0);
            for i in 0..n {
                let mut rng = Rng::new(derive_seed(seed ^ 0x22, i));
                let series = Series { ios, phase: rng.unit(), seed: rng.next_u64(), ..kind.clone() };
                let values = generate(&series);
                let truth = running_mean_ns(&series);
                let p = series.period_ios;
                let holds = |m: &interval::MeanInterval| m.low_ns <= truth && truth <= m.high_ns;
                if let Some(m) = interval::batch_means(&values, p, 0.95) {
                    batch.add(holds(&m));
                    width += m.relative_half_width().unwrap();
                }
                if let Some(m) = interval::block_bootstrap(&values, p, 0.95, 400, i) {
                    boot.add(holds(&m));
                    width_boot += m.relative_half_width().unwrap();
                }
            }
            batch.note = format!(
                "{name}, {ios} IOs, half-width {:.1} %",
                100.0 * width / f64::from(batch.tried.max(1))
            );
            boot.note = format!(
                "{name}, {ios} IOs, half-width {:.1} %",
                100.0 * width_boot / f64::from(boot.tried.max(1))
            );
            batch.print();
            boot.print();
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let n = args.next().map_or(1000, |a| a.parse().expect("N is a number"));
    let seed = args.next().map_or(1, |a| a.parse().expect("SEED is a number"));
    let verbose = args.next().is_some();
    start_ups(n, seed, verbose);
    if std::env::var("ONLY").is_ok() {
        return;
    }
    periods(n, seed, verbose);
    coverage(n, seed);
}
