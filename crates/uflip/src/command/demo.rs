//! `uflip demo`: how easy meaningless results are, and what it takes to get
//! others. The demonstration of paper 003, section 4, on a device of choice:
//! bad measurements (each of the three parameters too small), setting the
//! parameters, good measurements.
//!
//! Method: the same three experiments twice, with parameters a hasty person
//! might type and with those that the automatic method finds. Each gives
//! several results for one and the same thing; what counts is how far apart
//! these are: (largest - smallest) / mean.

use crate::args::extra::DemoArgs;
use crate::command::plan::QUICK_BUDGET;
use crate::command::{fresh_seed, print, print_json};
use crate::interrupt::STOP;
use crate::lab;
use crate::session::{self, Needs, Probing};
use crate::target::{self, Target, Unnamed};
use anyhow::{Context, bail};
use std::time::Duration;
use uflip_device::rng::derive_seed;
use uflip_device::{Bytes, Device, EngineOptions, KeepAll, Nanos, RunLimits};
use uflip_measure::auto::AutoOptions;
use uflip_measure::auto::findings::Calibration;
use uflip_measure::{Baseline, Pattern, PlanOptions, Preset, State, state};
use uflip_report::demo::{self, Demo, DemoExperiment, Results};

/// The device of the demonstration where none is named: paper 001's figures 3
/// and 5 are of it.
const DEVICE: &str = "sim:mtron";
/// Results for one and the same thing.
const REPEATS: u64 = 8;
/// IOs of a hasty run.
const HASTY: u64 = 8;
/// Reads of a run after writes.
const READS: u64 = 512;
/// Random writes before them.
const BATCH: u64 = 512;
/// IOs of the picture.
const PICTURE: u64 = 288;

/// The device, and what is next.
struct Stage<'a> {
    device: &'a mut dyn Device,
    probing: &'a Probing,
    seed: u64,
    runs: u64,
    io_size: Bytes,
    rest: Nanos,
    befell: Vec<String>,
}

impl Stage<'_> {
    fn rest(&mut self, pause: Nanos) {
        self.device.idle(pause, &STOP);
    }

    /// The response times of a baseline's run, less the first `ignore` IOs.
    fn run(&mut self, baseline: Baseline, count: u64, ignore: u64) -> anyhow::Result<Vec<u64>> {
        let pattern = Pattern::Basic(baseline.basic(self.io_size)).resolve(self.device.geometry())?;
        self.runs += 1;
        let streams = pattern.streams(count, derive_seed(self.seed, self.runs))?;
        let keep = KeepAll::new(usize::try_from(count)?.max(1));
        let (run, limits) =
            (u32::try_from(self.runs)?, RunLimits { time: None, stop: &STOP, sequence: None });
        let ran = session::run_once((&mut *self.device, self.probing), run, streams, &keep, limits)?;
        if STOP.after_this_run() {
            bail!("interrupted");
        }
        self.befell.extend(ran.befell.into_iter().map(|what| format!("run {run}, {baseline}: {what}")));
        let skip = usize::try_from(ignore)?;
        Ok(keep.records().iter().skip(skip).map(|r| r.response().0).collect())
    }

    /// The mean of such a run in milliseconds.
    fn mean(&mut self, baseline: Baseline, count: u64, ignore: u64) -> anyhow::Result<f64> {
        let all = self.run(baseline, count, ignore)?;
        Ok(all.iter().map(|ns| *ns as f64 / 1e6).sum::<f64>() / all.len().max(1) as f64)
    }

    fn means(&mut self, baseline: Baseline, count: u64, ignore: u64) -> anyhow::Result<Results> {
        let ms = (0..REPEATS).map(|_| self.mean(baseline, count, ignore)).collect::<anyhow::Result<_>>()?;
        Ok(Results { ms })
    }

    /// Random writes after a rest, in runs of several lengths.
    fn lengths(&mut self, counts: &[u64], ignore: u64) -> anyhow::Result<Results> {
        let mut ms = Vec::new();
        for count in counts {
            self.rest(self.rest);
            ms.push(self.mean(Baseline::Rw, *count, ignore)?);
        }
        Ok(Results { ms })
    }

    /// Runs of sequential reads after random writes and a pause.
    fn reads_after(&mut self, pause: Nanos) -> anyhow::Result<Results> {
        self.run(Baseline::Rw, BATCH, 0)?;
        self.rest(pause);
        self.means(Baseline::Sr, READS, 0)
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
    if args.json { print_json(&made) } else { print(&demo::story(&made)) }
}

/// Plays the demonstration on a device.
fn play(device: &mut dyn Device, probing: &Probing, name: &str, seed: u64) -> anyhow::Result<Demo> {
    let virtual_time = device.is_virtual();
    if virtual_time {
        crate::say!("bringing {name} to the complete state, in virtual time");
        state::enforce(State::Complete, derive_seed(seed, 0), device, &STOP)?;
    }
    let rest = if virtual_time { Nanos::from_secs(10) } else { Nanos::from_millis(500) };
    let io_size = uflip_measure::pattern::DEFAULT_IO_SIZE;
    let mut stage = Stage { device, probing, seed, runs: 0, io_size, rest, befell: Vec::new() };
    stage.rest(rest);
    let first = stage.run(Baseline::Rw, PICTURE, 0)?;
    crate::say!("bad measurements");
    let bad = [
        stage.lengths(&[64, 128, 256, 512, 1024], 0)?,
        stage.means(Baseline::Rw, HASTY, 0)?,
        stage.reads_after(Nanos::ZERO)?,
    ];
    crate::say!("setting the parameters");
    let calibration = calibrate(stage.device, name, seed)?;
    let rw =
        calibration.baselines.get(&Baseline::Rw).context("the method found nothing about random writes")?;
    let (count, ignore) = (rw.io_count, rw.io_ignore);
    let pause = calibration.pause.as_ref().map_or(Nanos::ZERO, |p| p.between_runs);
    crate::say!("good measurements");
    let lengths: Vec<u64> = (2..=6).map(|half| ignore + (count - ignore) * half / 2).collect();
    stage.rest(pause);
    let good_lengths = stage.lengths(&lengths, ignore)?;
    let mut repeats = Results { ms: Vec::new() };
    for _ in 0..REPEATS {
        stage.rest(pause);
        repeats.ms.push(stage.mean(Baseline::Rw, count, ignore)?);
    }
    let good = [good_lengths, repeats, stage.reads_after(pause)?];
    let first_writes_ms = first.iter().map(|ns| *ns as f64 / 1e6).collect();
    let (experiments, befell) = (experiments(bad, good), stage.befell);
    Ok(Demo { device: name.to_string(), seed, first_writes_ms, experiments, calibration, befell })
}

fn experiments(bad: [Results; 3], good: [Results; 3]) -> Vec<DemoExperiment> {
    let told = [
        (
            "IOIgnore",
            "RW in runs of five lengths",
            "the first writes after a rest cost something else: how many of them are in the mean hangs on the run's length",
        ),
        ("IOCount", "RW again and again", "a few writes happen to meet more or fewer of the expensive ones"),
        ("Pause", "SR after random writes", "the device may still be busy with the writes of the run before"),
    ];
    let both = bad.into_iter().zip(good);
    told.into_iter()
        .zip(both)
        .map(|((parameter, what, why), (bad, good))| DemoExperiment { parameter, what, why, bad, good })
        .collect()
}

/// The automatic method as far as the parameters.
fn calibrate(device: &mut dyn Device, name: &str, seed: u64) -> anyhow::Result<Calibration> {
    let virtual_time = device.is_virtual();
    let mut plan = PlanOptions::new(if virtual_time { Preset::Standard } else { Preset::Quick });
    (plan.target, plan.seed, plan.state) = (name.to_string(), derive_seed(seed, 1 << 32), State::None);
    let budget = (!virtual_time).then_some(QUICK_BUDGET);
    let options =
        AutoOptions { plan, geometry: device.geometry(), virtual_time, budget, pause_between: None };
    lab::parameters(&options, device, &STOP)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let story = demo::story(&made);
        assert!(story.lines().all(|line| line.chars().count() <= 80), "{story}");
        for word in ["Bad", "Setting", "Good", "IOIgnore", "IOCount", "Pause"] {
            assert!(story.contains(word), "{word}\n{story}");
        }
    }
}
