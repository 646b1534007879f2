//! `uflip sim proof`: the automatic method on random devices whose truth is
//! known, and how often it is right.
//!
//! Method: each device is drawn (`sim/src/known/draw.rs`), measured by the same script,
//! executor, detectors and profile as in `uflip run` (`lab.rs`), and what the
//! profile says is held against the truth (`analysis/src/score.rs`). Same seed, same
//! figures.

mod adversarial;
mod intervals;
mod pairs;

use crate::args::extra::ProofArgs;
use crate::command::{print, print_json};
use crate::interrupt::{self, STOP};
use crate::lab;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use uflip_analysis::score::{Drifted, KnownFigures, MeasuredFigures, Score, Tally, score};
use uflip_device::rng::{Rng, derive_seed};
use uflip_device::{
    Device, DeviceError, Geometry, Nanos, Recorder, RunEnd, RunLimits, Snapshot, Stop, Stream,
};
use uflip_measure::auto::AutoOptions;
use uflip_measure::{Baseline, Curve, MicroBenchmark, Override, PlanOptions, Preset, State, make_plan};
use uflip_sim::known::draw::draw;
use uflip_sim::{KnownDevice, Truth};

/// Runs the command.
///
/// # Errors
/// Where it is interrupted, or standard output is closed.
pub fn proof(args: &ProofArgs) -> anyhow::Result<()> {
    interrupt::listen()?;
    let seed = args.seed_of.as_deref().map_or(args.seed, seed_of);
    if let Some(runs) = args.pairs {
        return pairs::pairs(runs, seed, args.json, &STOP);
    }
    if let Some(least) = args.intervals {
        return intervals::intervals(least, seed, args.json, &STOP);
    }
    if args.adversarial {
        return adversarial::proof(args, seed);
    }
    let total = prove(args.devices, seed, &STOP)?;
    let targets = targets(&total);
    if args.json {
        let targets: Vec<Value> = targets.iter().map(ProofTarget::to_json).collect();
        let mut value = total.to_json();
        value["seed"] = seed.into();
        value["targets"] = targets.into();
        return print_json(&value);
    }
    print(&as_text(&total, &targets, seed))
}

/// A seed from a text (FNV-1a, 64 bits).
fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What the benchmark of a device has: what the truths are about.
fn plan_options(seed: u64) -> anyhow::Result<PlanOptions> {
    let mut options = PlanOptions::new(Preset::Standard);
    options.target = "a device with a known truth".to_string();
    (options.seed, options.state) = (seed, State::None);
    let curves = [
        (MicroBenchmark::Locality, &[Baseline::Rw][..]),
        (MicroBenchmark::Partitioning, &[Baseline::Sw]),
        (MicroBenchmark::Alignment, &[Baseline::Sw, Baseline::Rw]),
    ];
    for (micro, baselines) in curves {
        let baselines = Some(baselines.iter().map(|b| Curve::One(*b)).collect());
        options.only.push(micro);
        options.overrides.insert(micro, Override { baselines, ..Override::default() });
    }
    Ok(options)
}

/// Measures one random device and scores what was found.
fn one(number: u64, seed: u64, stop: &Stop) -> anyhow::Result<Score> {
    let seed = derive_seed(seed, number);
    let truth = draw(&mut Rng::new(seed));
    let device = Mutex::new(KnownDevice::new(truth, derive_seed(seed, 1)));
    let plan = plan_options(seed)?;
    let mut shared = SharedDevice(&device);
    let geometry = shared.geometry();
    let fixed = make_plan(&plan, geometry)?;
    let options = AutoOptions { plan, geometry, virtual_time: true, budget: None, pause_between: None };
    let drifted = || locked(&device).drifted();
    let mut before = 1.0;
    let measured = lab::measure(&options, &mut shared, stop, &mut || before = drifted())?;
    let found = MeasuredFigures {
        profile: &measured.profile,
        calibration: &measured.calibration,
        plan: &measured.plan,
        responses: &|run, ignore| measured.memory.responses(run, ignore),
    };
    Ok(score(&expected(&truth), &Drifted { before, after: drifted() }, &found, &fixed))
}

/// What a truth lets expect.
fn expected(truth: &Truth) -> KnownFigures {
    KnownFigures {
        start_up_ios: truth.start_up_ios,
        // Where all are expensive there is no cycle.
        period_ios: truth.period_ios.filter(|_| truth.expensive_share < 1.0),
        lasting_ns: truth.lasting_ns,
        area_bytes: truth.area_bytes,
        partitions: truth.partitions,
        unit_bytes: truth.unit_bytes,
        means_ns: (truth.drift == 0.0).then(|| truth.means_ns()),
    }
}

fn locked<T>(device: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    device.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A device that can be asked how it is while it is measured.
struct SharedDevice<'a, D>(&'a Mutex<D>);

impl<D: Device + Send> Device for SharedDevice<'_, D> {
    fn geometry(&self) -> Geometry {
        locked(self.0).geometry()
    }
    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        locked(self.0).run(streams, recorder, limits)
    }
    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        locked(self.0).idle(pause, stop);
    }
    fn now(&self) -> Nanos {
        locked(self.0).now()
    }
    fn is_virtual(&self) -> bool {
        true
    }
    fn snapshot(&mut self, ask: Snapshot) -> bool {
        locked(self.0).snapshot(ask)
    }
}

/// The sums over `n` random devices, measured on all processors.
///
/// # Errors
/// What the method says of a device, or where it is stopped.
pub fn prove(n: u64, seed: u64, stop: &Stop) -> anyhow::Result<Score> {
    let mut total = Score::default();
    for score in each(0..n, stop, &|number| one(number, seed, stop))? {
        total.add(&score);
    }
    Ok(total)
}

/// What `measure` says of each of these devices, in their order, on all processors.
fn each<T: Send>(
    numbers: Range<u64>,
    stop: &Stop,
    measure: &(dyn Fn(u64) -> anyhow::Result<T> + Sync),
) -> anyhow::Result<Vec<T>> {
    let (next, n) = (AtomicU64::new(numbers.start), numbers.end - numbers.start);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let all = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end || stop.after_this_run() {
                    break;
                }
                let result = measure(number).with_context(|| format!("device {number}"));
                done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, result));
            }
        };
        for _ in 1..workers {
            // With fewer threads it takes longer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, all);
        }
        all();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if stop.after_this_run() {
        bail!("interrupted after {} of {n} devices", done.len());
    }
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// One of the targets, and what came of it.
pub struct ProofTarget {
    /// What was asked for.
    pub what: &'static str,
    /// What was found; None where no device says anything about it.
    pub found: Option<f64>,
    /// Whether it is met; None likewise.
    pub met: Option<bool>,
}

impl ProofTarget {
    fn new(what: &'static str, found: Option<f64>, good: impl Fn(f64) -> bool) -> ProofTarget {
        ProofTarget { what, found, met: found.map(good) }
    }

    fn to_json(&self) -> Value {
        json!({ "target": self.what, "found": self.found, "met": self.met })
    }

    fn line(&self) -> String {
        let found = self.found.map_or("-".to_string(), |f| format!("{:.1} %", 100.0 * f));
        let met = match self.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "nothing to say",
        };
        format!("  {:<56}{found:>9}  {met}\n", self.what)
    }
}

/// The targets of the method.
pub fn targets(total: &Score) -> Vec<ProofTarget> {
    let fewer = (total.fixed_ios > 0).then(|| total.ios as f64 / total.fixed_ios as f64);
    let with_calibration =
        (total.fixed_ios > 0).then(|| (total.ios + total.calibration_ios) as f64 / total.fixed_ios as f64);
    let coverage = total.coverage();
    vec![
        ProofTarget::new("start-up within one power of two: 95 %", total.start_up.hit_rate(), |r| r >= 0.95),
        ProofTarget::new("locality area within one power of two: 95 %", total.area.hit_rate(), |r| r >= 0.95),
        ProofTarget::new("period within 10 %: 90 %", total.period.hit_rate(), |r| r >= 0.90),
        ProofTarget::new("false start-up alarms: under 5 %", total.start_up.alarm_rate(), |r| r < 0.05),
        ProofTarget::new("95 % interval of the mean holds: 90 to 99 %", coverage, |r| {
            (0.90..=0.99).contains(&r)
        }),
        ProofTarget::new("IOs of plan, of the paper's lengths: under 100 %", fewer, |r| r < 1.0),
        ProofTarget::new("the same with calibration: under 100 %", with_calibration, |r| r < 1.0),
    ]
}

fn row(name: &str, within: &str, tally: &Tally) -> String {
    let rate = |n: u64, of: u64| {
        if of == 0 { "-".to_string() } else { format!("{:.1} %", 100.0 * n as f64 / of as f64) }
    };
    let error = tally.median_factor().map_or("-".to_string(), |f| format!("x{f:.2}"));
    format!(
        "{name:<15}{within:<9}{:>5}{:>9}{:>9}{:>9}{:>8}{:>6}{:>10}\n",
        tally.with,
        rate(tally.hit, tally.with),
        rate(tally.missed, tally.with),
        rate(tally.off, tally.with),
        error,
        tally.without,
        rate(tally.alarms, tally.without),
    )
}

fn as_text(total: &Score, targets: &[ProofTarget], seed: u64) -> String {
    let mut text = format!(
        "{} random devices with a known truth, seed {seed}, measured by the automatic method\n\n\
         quantity       within    have     hit   missed      off  median  none    alarms\n",
        total.devices
    );
    text += &row("start-up", "x2", &total.start_up);
    text += &row("period", "10 %", &total.period);
    text += &row("lasting", "x2", &total.lasting);
    text += &row("locality area", "x2", &total.area);
    text += &row("partitions", "x2", &total.partitions);
    text += &row("alignment unit", "exact", &total.unit);
    text += &row("drift > 10 %", "x1.25", &total.drift);
    text += &format!(
        "\npauses shorter than the lasting effect: {} of {}\n\
         intervals of the mean that hold the truth: {} of {}; median error of a mean {:.2} %\n\
         IOs: {} of the plans, {} of calibration; {} of the plans with the paper's lengths\n\ntargets\n",
        total.short_pauses,
        total.lasting.with,
        total.held,
        total.intervals,
        100.0 * total.median_mean_error().unwrap_or(0.0),
        total.ios,
        total.calibration_ios,
        total.fixed_ios,
    );
    text + &targets.iter().map(ProofTarget::line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short form of the proof: not the targets themselves, which take
    /// hundreds of devices, but that no quantity is lost.
    #[test]
    fn most_of_what_is_so_is_found_and_little_else() {
        let total = prove(16, 1, &Stop::new()).unwrap();
        assert_eq!(total.devices, 16);
        for (name, tally, least) in [
            ("start-up", &total.start_up, 0.8),
            ("period", &total.period, 0.8),
            ("lasting", &total.lasting, 0.8),
            ("area", &total.area, 0.85),
            ("partitions", &total.partitions, 0.85),
            ("unit", &total.unit, 0.7),
        ] {
            assert!(tally.with >= 4, "{name}: {tally:?}");
            assert!(tally.hit_rate().is_some_and(|r| r >= least), "{name}: {tally:?}");
            assert!(tally.alarm_rate().is_none_or(|r| r <= 0.2), "{name}: {tally:?}");
        }
        assert!(total.coverage().is_some_and(|c| c >= 0.85), "{:?}", total.coverage());
        assert!(total.ios < total.fixed_ios, "{} {}", total.ios, total.fixed_ios);
    }

    /// A device that hides its start-up is seen to be missed.
    #[test]
    fn a_miss_and_a_false_alarm_are_counted() {
        let device = |number| draw(&mut Rng::new(derive_seed(1, number)));
        assert!((0..40).any(|n| device(n).start_up_ios.is_some()));
        assert!((0..40).any(|n| device(n).start_up_ios.is_none()));
        let lost = Score { start_up: Tally { with: 9, missed: 9, ..Tally::default() }, ..Score::default() };
        let missed = targets(&lost).iter().any(|t| t.met == Some(false));
        assert!(missed, "nine misses of nine meet no target");
    }
}
