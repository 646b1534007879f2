//! `uflip demo`: how easy meaningless results are, and what it takes to get
//! others. The demonstration of paper 003, section 4, on a device of choice:
//! bad measurements (each of the three parameters too small), setting the
//! parameters, good measurements.
//!
//! Method: the script is `uflip_measure::demo`, what it came to `uflip_analysis::demo`;
//! here its steps are done on a device, each watched as any run is.

use crate::args::extra::DemoArgs;
use crate::command::plan::QUICK_BUDGET;
use crate::command::{fresh_seed, print, print_json};
use crate::interrupt::STOP;
use crate::lab;
use crate::session::{self, Needs, Probing, told};
use crate::target::{self, Target, Unnamed};
use anyhow::{Context, bail};
use std::time::Duration;
use uflip_analysis::demo::{self, Demo, DemoResults};
use uflip_device::rng::derive_seed;
use uflip_device::{Device, EngineOptions, KeepAll, RunLimits};
use uflip_measure::demo::{self as script, DemoRun, DemoStep};
use uflip_measure::{State, state};
use uflip_report::demo::story;

/// The device of the demonstration where none is named: paper 001's figures 3
/// and 5 are of it.
const DEVICE: &str = "sim:mtron";

/// The device, and what is next.
struct Stage<'a> {
    device: &'a mut dyn Device,
    probing: &'a Probing,
    seed: u64,
    runs: u32,
    befell: Vec<String>,
}

impl Stage<'_> {
    /// Does `steps`; gives the results of the experiments.
    fn perform(&mut self, steps: &[DemoStep]) -> anyhow::Result<DemoResults> {
        let mut results = DemoResults::new();
        for step in steps {
            match step {
                DemoStep::Rest(pause) => self.device.idle(*pause, &STOP),
                DemoStep::Run(run) => {
                    let ms = self.run(run)?;
                    let Some(of) = run.result_of else { continue };
                    results.entry(of).or_default().ms.push(ms.iter().sum::<f64>() / ms.len().max(1) as f64);
                }
            }
        }
        Ok(results)
    }

    /// The response times of a run in milliseconds, less its first ones.
    fn run(&mut self, run: &DemoRun) -> anyhow::Result<Vec<f64>> {
        self.runs += 1;
        let streams = run.streams(self.device.geometry(), self.seed, self.runs)?;
        let keep = KeepAll::new(usize::try_from(run.count)?.max(1));
        let limits = RunLimits { time: None, stop: &STOP, sequence: None };
        let ran = session::run_once((&mut *self.device, self.probing), self.runs, streams, &keep, limits)?;
        if STOP.after_this_run() {
            bail!("interrupted");
        }
        let told = |what| format!("run {}, {}: {what}", self.runs, run.baseline);
        self.befell.extend(ran.befell.into_iter().map(told));
        let skip = usize::try_from(run.ignore)?;
        Ok(keep.records().iter().skip(skip).map(|r| r.response().0 as f64 / 1e6).collect())
    }
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the target or an IO, or where it is interrupted.
pub fn demo(args: &DemoArgs) -> anyhow::Result<()> {
    let target = Target::of_command(&args.target, Unnamed::Device(DEVICE), &args.typed)?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let (engine, consents) = (EngineOptions { seed, ..EngineOptions::default() }, &args.consent.erase_device);
    let (place, budget) = (target::locate(&target)?, Some(Duration::from(QUICK_BUDGET)));
    let mut visit = session::visit(&place, Needs::Everything, engine, consents, budget)?;
    let (named, summary) = (visit.opened.target.clone(), visit.opened.summary.clone());
    let (mut device, probing) = visit.device();
    if !device.is_virtual() {
        let capacity = device.geometry().capacity;
        crate::say!("{} will be written between 0 B and {capacity}, at random", named);
    }
    let made = play(&mut device, probing, &summary, seed)?;
    made.befell.iter().for_each(|what| crate::say!("warning: {what}"));
    if args.json { print_json(&made) } else { print(&story(&made)) }
}

/// Plays the demonstration on a device.
fn play(device: &mut dyn Device, probing: &Probing, name: &str, seed: u64) -> anyhow::Result<Demo> {
    let virtual_time = device.is_virtual();
    if virtual_time {
        crate::say!("bringing {name} to the complete state, in virtual time");
        state::enforce(State::Complete, derive_seed(seed, 0), device, &STOP)?;
    }
    let rest = script::rest(virtual_time);
    let mut stage = Stage { device, probing, seed, runs: 0, befell: Vec::new() };
    let [before, first] = script::picture(rest);
    stage.perform(&[before])?;
    let first_writes_ms = if let DemoStep::Run(first) = first { stage.run(&first)? } else { Vec::new() };
    crate::say!("bad measurements");
    let bad = stage.perform(&script::hasty(rest))?;
    crate::say!("setting the parameters");
    let options = script::calibration(name, stage.device.geometry(), virtual_time, seed, QUICK_BUDGET);
    let calibration = lab::parameters(&options, (&mut *stage.device, probing), &STOP)?;
    stage.befell.extend(
        calibration.interference.iter().map(|of| format!("calibration run {}: {}", of.run, told(of))),
    );
    let steps = script::sound(&calibration, rest);
    crate::say!("good measurements");
    let good = stage.perform(&steps.context("the method found nothing about random writes")?)?;
    let (experiments, befell) = (demo::experiments(&bad, &good), stage.befell);
    Ok(Demo { device: name.to_string(), seed, first_writes_ms, experiments, calibration, befell })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::Bytes;

    #[test]
    fn on_the_simulated_mtron_the_spread_falls_in_all_three() {
        let target = Target::parse(DEVICE, Bytes(0)).unwrap();
        let mut opened =
            session::open(&target, Needs::Everything, EngineOptions::default(), &[], None).unwrap();
        let probing = Probing::of(Some(&target));
        let made = play(&mut *opened.device, &probing, &opened.summary, 1).unwrap();
        assert_eq!(made.experiments.len(), 3);
        for e in &made.experiments {
            let (bad, good) = (e.bad.spread().unwrap(), e.good.spread().unwrap());
            assert!(bad > 0.3 && good < 0.1, "{}: {bad} {good}", e.parameter);
        }
        let story = story(&made);
        assert!(story.lines().all(|line| line.chars().count() <= 80), "{story}");
        for word in ["Bad", "Setting", "Good", "IOIgnore", "IOCount", "Pause"] {
            assert!(story.contains(word), "{word}\n{story}");
        }
    }
}
