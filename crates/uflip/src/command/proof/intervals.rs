//! `uflip sim proof --intervals N`: how often the intervals that a profile prints hold the
//! truth.
//!
//! Method: devices of four kinds, whose mean response times are given, are measured as
//! `uflip run` does with presets quick and standard in turn; every `ci95` of the baselines
//! and of the curves over IOSize, IOShift and Pause in the profile is held against the truth,
//! until there are N of each kind. Same seed, same figures.

use super::each;
use crate::command::{print, print_json};
use crate::lab;
use serde_json::{Value, json};
use uflip_analysis::Profile;
use uflip_device::rng::derive_seed;
use uflip_device::{Bytes, Device, Stop};
use uflip_measure::auto::AutoOptions;
use uflip_measure::{Baseline, Curve, MicroBenchmark, PlanOptions, Preset, State};
use uflip_sim::{KnownDevice, Truth, Unsteady};

/// Coverage may be off by so much.
const OFF: f64 = 0.015;
/// Devices measured before it is looked whether there are enough intervals.
const TURN: u64 = 4;
/// The curves whose truth is given.
const MICROS: [MicroBenchmark; 3] =
    [MicroBenchmark::Granularity, MicroBenchmark::Alignment, MicroBenchmark::Pause];

/// A kind of device, and the baselines that are of this kind on it.
struct IntervalKind {
    name: &'static str,
    truth: Truth,
    unsteady: Unsteady,
    baselines: &'static [Baseline],
}

fn kinds() -> [IntervalKind; 4] {
    let plain = Truth {
        capacity: Bytes(32 << 30),
        sr_ns: 1e5,
        rr_ns: 1e5,
        sw_ns: 2e5,
        expensive_ns: 2e5,
        expensive_share: 0.0,
        period_ios: None,
        jitter: 0.0,
        start_up_ios: None,
        refill_ns: 1e9,
        lasting_ns: None,
        lasting_factor: 1.0,
        area_bytes: None,
        partitions: 64,
        unit_bytes: None,
        penalty: 1.0,
        noise: 0.1,
        outliers: 0.0,
        outlier_factor: 1.0,
        drift: 0.0,
    };
    let steady = Unsteady::default();
    let noisy = Truth { noise: 0.4, ..plain };
    let periodic =
        Truth { expensive_ns: 2e6, expensive_share: 0.125, period_ios: Some(16.0), jitter: 0.05, ..plain };
    let correlated = Unsteady { correlated: 0.4, correlation: 0.8, ..steady };
    let shifted = Unsteady { between_runs: 0.1, ..steady };
    let all = &Baseline::ALL;
    [
        IntervalKind { name: "independent", truth: noisy, unsteady: steady, baselines: all },
        IntervalKind { name: "correlated", truth: plain, unsteady: correlated, baselines: all },
        IntervalKind { name: "periodic", truth: periodic, unsteady: steady, baselines: &[Baseline::Rw] },
        IntervalKind { name: "shifted between runs", truth: plain, unsteady: shifted, baselines: all },
    ]
}

fn measured(kind: &IntervalKind, seed: u64, preset: Preset, stop: &Stop) -> anyhow::Result<Profile> {
    let mut plan = PlanOptions::new(preset);
    plan.target = "a device with a known truth".to_string();
    (plan.seed, plan.state) = (seed, State::None);
    let mut device = KnownDevice::new(kind.truth, seed).unsteady(kind.unsteady, seed);
    let geometry = device.geometry();
    let options = AutoOptions { plan, geometry, virtual_time: true, budget: None, pause_between: None };
    Ok(lab::measure(&options, &mut device, stop, &mut || {})?.profile)
}

/// Intervals, and those that hold the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    intervals: u64,
    held: u64,
    /// Of half of the widths over the truth.
    widths: f64,
}

impl Count {
    fn add(&mut self, ci95: Option<[f64; 2]>, truth: f64) {
        let Some([low, high]) = ci95 else { return };
        self.intervals += 1;
        self.held += u64::from(low <= truth && truth <= high);
        self.widths += (high - low) / 2.0 / truth;
    }

    fn and(self, other: Count) -> Count {
        Count {
            intervals: self.intervals + other.intervals,
            held: self.held + other.held,
            widths: self.widths + other.widths,
        }
    }

    fn share(&self) -> f64 {
        self.held as f64 / self.intervals.max(1) as f64
    }

    fn is_met(&self) -> bool {
        (self.share() - 0.95).abs() <= OFF
    }
}

/// Holds all intervals of a profile against the truth.
fn count(kind: &IntervalKind, profile: &Profile) -> Count {
    let mut count = Count::default();
    for (baseline, ns) in Baseline::ALL.into_iter().zip(kind.truth.means_ns()) {
        if !kind.baselines.contains(&baseline) {
            continue;
        }
        let own = profile.baseline_ms.evidence.get(&baseline).and_then(|e| e.ci95);
        count.add(own, ns / 1e6);
        for curve in profile.curves.iter().filter(|c| c.id.curve == Curve::One(baseline)) {
            let Some(micro) = curve.id.section.micro() else { continue };
            for point in curve.points.iter().filter(|_| MICROS.contains(&micro)) {
                // IOs of other sizes take a share of their time whatever their size.
                let sized = match micro {
                    MicroBenchmark::Granularity => 0.3 + 0.7 * point.value as f64 / 32768.0,
                    _ => 1.0,
                };
                count.add(point.ci95, ns / 1e6 * sized);
            }
        }
    }
    count
}

/// All intervals of the devices of one kind: at least `least`.
fn cover(kind: &IntervalKind, least: u64, seed: u64, stop: &Stop) -> anyhow::Result<Count> {
    let (mut all, mut first) = (Count::default(), 0);
    while all.intervals < least {
        let found = each(0..TURN, stop, &|number| {
            let number = first + number;
            let preset = if number.is_multiple_of(2) { Preset::Quick } else { Preset::Standard };
            Ok(count(kind, &measured(kind, derive_seed(seed, number), preset, stop)?))
        })?;
        all = found.into_iter().fold(all, Count::and);
        first += TURN;
    }
    Ok(all)
}

/// Runs the command.
///
/// # Errors
/// Where it is interrupted, or standard output is closed.
pub(super) fn intervals(least: u64, seed: u64, json: bool, stop: &Stop) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for kind in kinds() {
        found.push((kind.name, cover(&kind, least, seed, stop)?));
    }
    if json {
        let one = |(name, c): &(&str, Count)| {
            json!({ "kind": name, "intervals": c.intervals, "held": c.held, "coverage": c.share(),
                    "mean_half_width": c.widths / c.intervals.max(1) as f64, "met": c.is_met() })
        };
        let kinds: Vec<Value> = found.iter().map(one).collect();
        return print_json(&json!({ "seed": seed, "kinds": kinds }));
    }
    let mut text = format!("95 % intervals as profiles print them, seed {seed}\n\n");
    text += "kind                  intervals  hold the truth  half-width  93.5 to 96.5 %\n";
    for (name, c) in &found {
        text += &format!(
            "{name:<22}{:>9}{:>14.1} %{:>10.1} %  {}\n",
            c.intervals,
            100.0 * c.share(),
            100.0 * c.widths / c.intervals.max(1) as f64,
            if c.is_met() { "met" } else { "not met" }
        );
    }
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short form: the intervals of four devices of each kind hang together, so that
    /// there is room for chance; without what changes between runs 69 % of those that are
    /// shifted hold. The periodic ones hold more often than they say.
    #[test]
    fn printed_intervals_hold_the_truth_about_as_often_as_they_say() {
        for kind in kinds() {
            let found = cover(&kind, 1, 3, &Stop::new()).unwrap();
            assert!(found.intervals >= 40 && found.share() >= 0.85, "{}: {found:?}", kind.name);
            assert!(found.widths / found.intervals as f64 <= 0.3, "{}: {found:?}", kind.name);
        }
    }

    #[test]
    fn an_interval_that_misses_is_counted() {
        let mut count = Count::default();
        count.add(Some([1.0, 2.0]), 1.5);
        count.add(Some([1.0, 2.0]), 2.5);
        count.add(None, 1.0);
        assert_eq!((count.intervals, count.held, count.is_met()), (2, 1, false));
    }
}
