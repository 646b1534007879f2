//! The script of the demonstration: how easy meaningless results are, and what it takes
//! to get others.
//!
//! Method: the same three experiments twice, with parameters that a hasty person might
//! type ([`hasty`], each of the three too small) and with those that the automatic
//! method finds ([`sound`]). Each gives several results for one and the same thing: the
//! mean response time of a run. Source: paper 003, section 4. Units: IOs, nanoseconds.

use crate::auto::AutoOptions;
use crate::auto::findings::Calibration;
use crate::micro::Preset;
use crate::pattern::{Baseline, DEFAULT_IO_SIZE, Pattern, PatternError};
use crate::plan::PlanOptions;
use crate::state::State;
use uflip_device::rng::derive_seed;
use uflip_device::{Geometry, Nanos, Stream};

/// Results for one and the same thing.
const REPEATS: usize = 8;
/// IOs of a hasty run.
const HASTY: u64 = 8;
/// Lengths of hasty runs, in IOs.
const LENGTHS: [u64; 5] = [64, 128, 256, 512, 1024];
/// Reads of a run after writes.
const READS: u64 = 512;
/// Random writes before them.
const BATCH: u64 = 512;
/// IOs of the picture of the first writes.
const PICTURE: u64 = 288;

/// The parameter that an experiment is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DemoParameter {
    /// Random writes in runs of five lengths.
    IoIgnore,
    /// Random writes again and again.
    IoCount,
    /// Sequential reads after random writes.
    Pause,
}

impl DemoParameter {
    /// In the order in which they are told.
    pub const ALL: [DemoParameter; 3] =
        [DemoParameter::IoIgnore, DemoParameter::IoCount, DemoParameter::Pause];
}

/// A step of the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoStep {
    /// The device is left alone.
    Rest(Nanos),
    /// A run.
    Run(DemoRun),
}

/// A run of a baseline in IOs of the usual size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoRun {
    /// Which.
    pub baseline: Baseline,
    /// IOCount.
    pub count: u64,
    /// IOIgnore.
    pub ignore: u64,
    /// The experiment that its mean is a result of; `None` where it only comes before.
    pub result_of: Option<DemoParameter>,
}

impl DemoRun {
    /// Its streams as run `number` of a demonstration with this seed.
    ///
    /// # Errors
    /// Where the device is too small for the pattern.
    pub fn streams(&self, geometry: Geometry, seed: u64, number: u32) -> Result<Vec<Stream>, PatternError> {
        let pattern = Pattern::Basic(self.baseline.basic(DEFAULT_IO_SIZE)).resolve(geometry)?;
        pattern.streams(self.count, derive_seed(seed, number.into()))
    }
}

const fn run(baseline: Baseline, [count, ignore]: [u64; 2], result_of: Option<DemoParameter>) -> DemoStep {
    DemoStep::Run(DemoRun { baseline, count, ignore, result_of })
}

/// How long the device is left alone before what counts its first IOs.
pub const fn rest(virtual_time: bool) -> Nanos {
    if virtual_time { Nanos::from_secs(10) } else { Nanos::from_millis(500) }
}

/// The first random writes after a rest, for the picture.
pub fn picture(rest: Nanos) -> [DemoStep; 2] {
    [DemoStep::Rest(rest), run(Baseline::Rw, [PICTURE, 0], None)]
}

/// The bad measurements: each of the three parameters too small.
pub fn hasty(rest: Nanos) -> Vec<DemoStep> {
    let again = run(Baseline::Rw, [HASTY, 0], Some(DemoParameter::IoCount));
    let mut steps = lengths(rest, &LENGTHS, 0);
    steps.extend([again; REPEATS]);
    steps.extend(reads_after(Nanos::ZERO));
    steps
}

/// The good ones, with what was found; `None` where nothing was about random writes.
pub fn sound(found: &Calibration, rest: Nanos) -> Option<Vec<DemoStep>> {
    let rw = found.baselines.get(&Baseline::Rw)?;
    let (count, ignore) = (rw.io_count, rw.io_ignore);
    let pause = found.pause.as_ref().map_or(Nanos::ZERO, |pause| pause.between_runs);
    // From IOCount on up to three times as many in the running phase.
    let counts: Vec<u64> = (2..=6).map(|half| ignore + (count - ignore) * half / 2).collect();
    let mut steps = vec![DemoStep::Rest(pause)];
    steps.extend(lengths(rest, &counts, ignore));
    for _ in 0..REPEATS {
        let again = run(Baseline::Rw, [count, ignore], Some(DemoParameter::IoCount));
        steps.extend([DemoStep::Rest(pause), again]);
    }
    steps.extend(reads_after(pause));
    Some(steps)
}

/// Random writes after a rest, in runs of several lengths.
fn lengths(rest: Nanos, counts: &[u64], ignore: u64) -> Vec<DemoStep> {
    let one = |count: &u64| {
        [DemoStep::Rest(rest), run(Baseline::Rw, [*count, ignore], Some(DemoParameter::IoIgnore))]
    };
    counts.iter().flat_map(one).collect()
}

/// Runs of sequential reads after random writes and a pause.
fn reads_after(pause: Nanos) -> Vec<DemoStep> {
    let mut steps = vec![run(Baseline::Rw, [BATCH, 0], None), DemoStep::Rest(pause)];
    steps.extend([run(Baseline::Sr, [READS, 0], Some(DemoParameter::Pause)); REPEATS]);
    steps
}

/// What the automatic method is asked for between the two; `budget` for what takes
/// real time.
pub fn calibration(
    device: &str,
    geometry: Geometry,
    virtual_time: bool,
    seed: u64,
    budget: Nanos,
) -> AutoOptions {
    let mut plan = PlanOptions::new(if virtual_time { Preset::Standard } else { Preset::Quick });
    // The state is that of the hasty runs.
    (plan.target, plan.seed, plan.state) = (device.to_string(), derive_seed(seed, 1 << 32), State::None);
    AutoOptions {
        plan,
        geometry,
        virtual_time,
        budget: (!virtual_time).then_some(budget),
        pause_between: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(steps: &[DemoStep], of: DemoParameter) -> usize {
        let own = |step: &&DemoStep| matches!(step, DemoStep::Run(run) if run.result_of == Some(of));
        steps.iter().filter(own).count()
    }

    #[test]
    fn both_halves_have_as_many_results_for_each_parameter() {
        let bad = hasty(Nanos(7));
        assert_eq!(DemoParameter::ALL.map(|of| results(&bad, of)), [5, 8, 8]);
    }
}
