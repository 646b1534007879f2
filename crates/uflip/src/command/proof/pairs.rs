//! `uflip sim proof --pairs RUNS`: quick runs of ten noisy devices, and how often two
//! runs of one and the same device say opposite things.
//!
//! Method: each device is measured RUNS times as `uflip run` does with preset quick, with
//! other seeds; all verdicts of each two runs are held beside each other. What is so of a
//! device is what a copy of it without noise, shifts, tails and neighbours says with preset
//! standard. Same seed, same figures.

use super::each;
use crate::command::{print, print_json};
use crate::lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uflip_analysis::Profile;
use uflip_analysis::profile::{self, Class, Verdict};
use uflip_device::rng::{Rng, derive_seed};
use uflip_device::{Device, Nanos, Stop};
use uflip_measure::auto::AutoOptions;
use uflip_measure::detect::knee::SAME;
use uflip_measure::{PlanOptions, Preset, State};
use uflip_sim::known::draw::draw;
use uflip_sim::{KnownDevice, OtherLoad, Truth, Unsteady};

/// Devices.
const DEVICES: u64 = 10;
/// Of all pairs at most so many may contradict.
const CONTRADICT: f64 = 0.02;
/// Of the verdicts on what is clear at least so many are to be decided.
const DECIDED: f64 = 0.6;

/// A true ratio from here on is clearly one, where the bound is x1.25 …
const CLEARLY: f64 = 1.5;
/// … and up to here clearly none.
const HARDLY: f64 = 1.1;

/// RW over SW, RR over SR, the penalty of alignment: from nothing to much.
const RATIOS: [(f64, f64, f64); DEVICES as usize] = [
    (1.0, 1.0, 1.0),
    (1.1, 1.05, 1.0),
    (1.5, 1.0, 1.6),
    (2.0, 1.25, 1.0),
    (3.0, 1.0, 2.5),
    (5.0, 1.6, 1.05),
    (8.0, 1.1, 3.0),
    (20.0, 2.0, 1.0),
    (60.0, 1.0, 1.25),
    (1.25, 3.0, 1.0),
];

/// A device of the proof: its rules, and what it suffers beside them.
fn device(number: u64, seed: u64) -> (Truth, Unsteady) {
    let drawn = draw(&mut Rng::new(derive_seed(seed, number)));
    let at = number as usize;
    let (rw, rr, penalty) = RATIOS[at];
    let truth = Truth {
        expensive_ns: drawn.sw_ns * (1.0 + (rw - 1.0) / drawn.expensive_share),
        rr_ns: drawn.sr_ns * rr,
        unit_bytes: (penalty > 1.0).then_some(drawn.unit_bytes.unwrap_or(4096)),
        penalty,
        drift: 0.0,
        ..drawn
    };
    let neighbour = OtherLoad {
        on: Nanos(1_000_000_000 << (at % 4)),
        off: Nanos(4_000_000_000 << (at % 3)),
        factor: [1.3, 1.7, 2.5][at % 3],
    };
    let unsteady = Unsteady {
        between_runs: [0.02, 0.05, 0.08, 0.12, 0.2][at % 5],
        correlated: [0.0, 0.3][at % 2],
        correlation: 0.9,
        tail: [0.0, 0.001, 0.004][at % 3],
        tail_index: 1.7,
        neighbour: (at % 2 == 1).then_some(neighbour),
    };
    (truth, unsteady)
}

fn measured(device: KnownDevice, preset: Preset, seed: u64, stop: &Stop) -> anyhow::Result<Profile> {
    let mut plan = PlanOptions::new(preset);
    plan.target = "a device with a known truth".to_string();
    (plan.seed, plan.state) = (seed, State::None);
    let mut device = device;
    let geometry = device.geometry();
    let options = AutoOptions { plan, geometry, virtual_time: true, budget: None, pause_between: None };
    Ok(lab::measure(&options, &mut device, stop, &mut || {})?.profile)
}

/// What a profile decides, by what it is about.
fn verdicts(profile: &Profile) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for hint in &profile.hints {
        let verdict = match hint.verdict {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Unknown | Verdict::NotDecided => continue,
        };
        all.insert(format!("hint {}", hint.id), verdict.to_string());
    }
    if profile.device_class.class != Class::Unknown {
        all.insert("class".into(), format!("{:?}", profile.device_class.class));
    }
    for answer in &profile.verdicts {
        if let Some(yes) = answer.verdict.known() {
            all.insert(answer.id.clone(), if yes { "yes" } else { "no" }.to_string());
        }
    }
    all
}

/// The questions whose answer is clear on a device without noise, with that answer.
fn clear(quiet: &Profile) -> BTreeMap<String, bool> {
    let of = |answer: &profile::Answered| {
        let ratio = answer.ratio?;
        let known = if ratio >= CLEARLY * answer.bound / SAME {
            Some(true)
        } else {
            (ratio <= HARDLY * answer.bound / SAME).then_some(false)
        };
        Some((answer.id.clone(), known?))
    };
    quiet.verdicts.iter().filter_map(of).collect()
}

/// What came of one device.
#[derive(Default)]
struct OfDevice {
    runs: u64,
    pairs: u64,
    contradict: u64,
    /// By what they contradict in.
    about: BTreeMap<String, u64>,
    /// Verdicts on questions whose answer is clear, those decided, and those decided wrongly.
    clear: u64,
    decided: u64,
    wrong: u64,
    /// Questions that were clear and not decided, by their ids.
    open: BTreeMap<String, u64>,
}

/// Holds all runs of a device beside each other.
fn held(runs: &[BTreeMap<String, String>]) -> OfDevice {
    let mut found = OfDevice { runs: runs.len() as u64, ..OfDevice::default() };
    for (at, a) in runs.iter().enumerate() {
        for b in &runs[at + 1..] {
            let differ =
                |(about, said): &(&String, &String)| b.get(*about).is_some_and(|other| other != *said);
            let about: Vec<&String> = a.iter().filter(differ).map(|(about, _)| about).collect();
            found.pairs += 1;
            found.contradict += u64::from(!about.is_empty());
            about.into_iter().for_each(|about| *found.about.entry(about.clone()).or_default() += 1);
        }
    }
    found
}

fn one(number: u64, runs: u64, seed: u64, stop: &Stop) -> anyhow::Result<OfDevice> {
    let (truth, unsteady) = device(number, seed);
    let mut all = Vec::new();
    for run in 0..runs {
        let seed = derive_seed(derive_seed(seed, 1000 + number), run);
        let device = KnownDevice::new(truth, seed).unsteady(unsteady, seed);
        all.push(verdicts(&measured(device, Preset::Quick, seed, stop)?));
    }
    let quiet = KnownDevice::new(Truth { noise: 0.0, outliers: 0.0, jitter: 0.0, ..truth }, seed);
    let mut found = held(&all);
    for (id, so) in clear(&measured(quiet, Preset::Standard, seed, stop)?) {
        for run in &all {
            let said = run.get(&id).map(|said| said == "yes");
            found.clear += 1;
            found.decided += u64::from(said.is_some());
            found.wrong += u64::from(said == Some(!so));
            *found.open.entry(id.clone()).or_default() += u64::from(said.is_none());
        }
    }
    Ok(found)
}

/// Runs the command.
///
/// # Errors
/// Where it is interrupted, or standard output is closed.
pub(super) fn pairs(runs: u64, seed: u64, json: bool, stop: &Stop) -> anyhow::Result<()> {
    let all = each(0..DEVICES, stop, &|number| one(number, runs, seed, stop))?;
    if json { print_json(&as_json(&all, seed)) } else { print(&as_text(&all, seed)) }
}

fn share(of: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| of as f64 / all as f64)
}

fn sums(all: &[OfDevice]) -> (Option<f64>, Option<f64>) {
    let sum = |of: fn(&OfDevice) -> u64| all.iter().map(of).sum::<u64>();
    (share(sum(|d| d.contradict), sum(|d| d.pairs)), share(sum(|d| d.decided), sum(|d| d.clear)))
}

fn as_json(all: &[OfDevice], seed: u64) -> Value {
    let device = |(at, d): (usize, &OfDevice)| {
        json!({ "device": at, "runs": d.runs, "pairs": d.pairs, "contradict": d.contradict, "about": d.about,
                "clear": d.clear, "decided": d.decided, "wrong": d.wrong, "open": d.open })
    };
    let devices: Vec<Value> = all.iter().enumerate().map(device).collect();
    let (contradict, decided) = sums(all);
    json!({ "seed": seed, "devices": devices, "contradict": contradict, "decided": decided })
}

fn as_text(all: &[OfDevice], seed: u64) -> String {
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.1} %", 100.0 * s));
    let mut text = format!("quick runs of ten noisy devices, seed {seed}\n\n");
    text += "device  runs   pairs  contradict   clear  decided    wrong  mostly about\n";
    for (at, d) in all.iter().enumerate() {
        let about = d.about.iter().max_by_key(|(_, n)| **n).map_or("", |(about, _)| about);
        text += &format!(
            "{at:>6}{:>6}{:>8}{:>12}{:>8}{:>9}{:>9}  {about}\n",
            d.runs,
            d.pairs,
            percent(share(d.contradict, d.pairs)),
            d.clear,
            percent(share(d.decided, d.clear)),
            percent(share(d.wrong, d.clear))
        );
    }
    let (contradict, decided) = sums(all);
    let met = |good: bool| if good { "met" } else { "not met" };
    text += &format!(
        "\ntargets\n  pairs that contradict: at most 2 %  {}  {}\n  decided of what is clear: at least 60 %  {}  {}\n",
        percent(contradict),
        met(contradict.is_none_or(|c| c <= CONTRADICT)),
        percent(decided),
        met(decided.is_none_or(|d| d >= DECIDED))
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short form: few runs of each device, with the targets of the long one.
    #[test]
    fn two_runs_of_a_noisy_device_do_not_contradict_each_other() {
        let all = each(0..DEVICES, &Stop::new(), &|number| one(number, 3, 5, &Stop::new())).unwrap();
        let (contradict, decided) = sums(&all);
        assert_eq!(all.iter().map(|d| d.pairs).sum::<u64>(), 30);
        assert!(contradict.is_some_and(|c| c <= CONTRADICT + 0.05), "{}", as_text(&all, 5));
        assert!(decided.is_some_and(|d| d >= 0.25), "silence is no way out: {}", as_text(&all, 5));
    }

    #[test]
    fn a_contradiction_is_counted_and_silence_is_none() {
        let says = |all: &[(&str, &str)]| all.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        let runs = [says(&[("mix", "yes"), ("class", "Disk")]), says(&[("mix", "no")]), says(&[])];
        let found = held(&runs);
        assert_eq!((found.pairs, found.contradict, found.about.get("mix")), (3, 1, Some(&1)));
        let (contradict, _) = sums(&[found]);
        assert!(contradict.is_some_and(|c| c > CONTRADICT), "one of three is too many");
    }
}
