//! The automatic method: state, start-up, period, run length, pause and plan
//! are found on the device, by runs that are stored like all others.
//!
//! How: [`measure()`] is a script that goes from top to bottom: enforce the state;
//! probe it until it is steady; test what lasts after writes; run long
//! baselines; make the plan; execute it; probe the state again. It asks a
//! [`Bench`] to perform steps and reads the records of the runs it needs. What it decides
//! depends on its options and these records alone. So resuming is running
//! the script again: steps that are stored already are passed over, and a plan
//! that is stored already is taken as it stands.
//!
//! Source: paper 000/001, sections 4.1 to 4.3 and 5.1; paper 003, section 3. The
//! automatic IOCount is future work there; the detectors' files in
//! [`crate::detect`] name their methods.

pub mod findings;
mod fit;
pub mod interference;
pub mod limits;
pub mod long_run;
mod pause_test;
mod probe;
mod transient;
mod words;

use crate::detect::steady::SteadyRule;
use crate::micro::Skipped;
use crate::pattern::{Baseline, Pattern, PatternError};
use crate::plan::spaces::Spaces;
use crate::plan::{BaselineMeans, DROPPED, Method, Plan, PlanError, PlanOptions, Step, empty_plan};
use crate::run::{Belongs, CalibrationStep, RunSpec, Work};
use crate::state::State;
use findings::{BaselineFound, Calibration, PlanFound, StateFound};
use limits::Limits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_device::rng::derive_seed;
use uflip_device::{Geometry, IoRecord, Nanos};

/// What a calibration run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrationRole {
    /// A round of the state probe before the plan.
    StateBefore,
    /// A round of the state probe after it.
    StateAfter,
    /// A part of a long baseline.
    LongBaseline,
    /// A pause test: 0 the reads before, 1 the batch, from 2 on the reads after.
    PauseTest,
}

impl CalibrationRole {
    /// All of them.
    pub const ALL: [CalibrationRole; 4] = [
        CalibrationRole::StateBefore,
        CalibrationRole::StateAfter,
        CalibrationRole::LongBaseline,
        CalibrationRole::PauseTest,
    ];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            CalibrationRole::StateBefore => "state_before",
            CalibrationRole::StateAfter => "state_after",
            CalibrationRole::LongBaseline => "long_baseline",
            CalibrationRole::PauseTest => "pause_test",
        }
    }
}

/// What the script is asked for; stored with the results, so that resuming
/// asks for the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoOptions {
    /// The plan's options but for lengths and pause, which are found.
    pub plan: PlanOptions,
    /// What it is planned for.
    pub geometry: Geometry,
    /// Waiting costs nothing.
    pub virtual_time: bool,
    /// For the whole benchmark.
    pub budget: Option<Nanos>,
    /// The user's pause between runs, in place of the pause tests.
    pub pause_between: Option<Nanos>,
}

/// Steps to be performed, with what belongs to them in the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutoPhase {
    /// In order.
    pub steps: Vec<Step>,
    /// Values left out.
    pub skipped: Vec<Skipped>,
    /// What a reader of the results should know.
    pub notes: Vec<String>,
    /// True for the plan itself, false for calibration.
    pub main: bool,
    /// True where the steps are only to be stored; a resume performs them.
    pub held: bool,
}

/// The part of a stored plan that is still to be performed.
#[derive(Clone, Copy, Debug)]
pub struct StoredPlan<'a> {
    /// Steps beyond those performed so far.
    pub steps: &'a [Step],
    /// Values left out of the whole plan.
    pub skipped: &'a [Skipped],
    /// The whole plan's notes.
    pub notes: &'a [String],
}

/// Where the script performs its steps: a device and a store. Steps are stored
/// in the plan before any of them is executed.
pub trait Bench {
    /// What the stored plan has beyond the steps performed so far.
    fn stored(&self) -> StoredPlan<'_>;

    /// Executes steps in order, those whose runs are stored already excepted.
    ///
    /// # Errors
    /// [`AutoError::Stopped`] where it was asked to stop, [`AutoError::Bench`].
    fn perform(&mut self, phase: AutoPhase) -> Result<(), AutoError>;

    /// The records of a stored run.
    ///
    /// # Errors
    /// [`AutoError::Bench`].
    fn records(&mut self, run: u32) -> Result<Vec<IoRecord>, AutoError>;

    /// Keeps what was found so far, and says `news`.
    ///
    /// # Errors
    /// [`AutoError::Bench`].
    fn found(&mut self, calibration: &Calibration, news: &str) -> Result<(), AutoError>;

    /// Time left of the budget, where there is one.
    fn left(&self) -> Option<Nanos>;
}

/// The script did not come to its end; what was measured is stored.
#[derive(Debug, thiserror::Error)]
pub enum AutoError {
    /// It was asked to stop.
    #[error("stopped before the end")]
    Stopped,
    /// No plan can be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A calibration pattern does not fit the target.
    #[error("the target cannot take the calibration: {0}")]
    Pattern(#[from] PatternError),
    /// The stored plan is not the one that these options give.
    #[error(
        "the stored plan differs from the one the automatic method makes of the stored runs at step {0}; \
         it was edited, or made by another version: start again with another -o"
    )]
    Changed(usize),
    /// The device or the store failed.
    #[error(transparent)]
    Bench(Box<dyn std::error::Error + Send + Sync>),
}

/// The script's variables.
struct Script<'a> {
    options: &'a AutoOptions,
    limits: Limits,
    bench: &'a mut dyn Bench,
    found: Calibration,
    spaces: Spaces,
    next_id: u32,
}

/// How far [`measure()`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoExtent {
    /// To the parameters: state, pause and lengths; no plan is made.
    Parameters,
    /// To the plan, which is stored and not performed.
    Calibration,
    /// To the end.
    Whole,
}

/// Measures a device from start to end; gives what was found.
///
/// # Errors
/// [`AutoError`].
pub fn measure(
    options: &AutoOptions,
    extent: AutoExtent,
    bench: &mut dyn Bench,
) -> Result<Calibration, AutoError> {
    let limits = Limits::new(options.plan.preset, options.virtual_time, options.budget);
    let mut script = Script {
        options,
        limits,
        bench,
        found: nothing_yet(limits, options.plan.state),
        spaces: Spaces::new(options.geometry),
        next_id: 0,
    };
    crate::plan::check_options(&options.plan, options.geometry)?;
    let enforce = Step::Reset { state: options.plan.state };
    let enforce = if options.plan.state == State::None { Vec::new() } else { vec![enforce] };
    script.probe_state(enforce)?;
    script.test_pauses()?;
    for baseline in [Baseline::Sr, Baseline::Rr, Baseline::Rw, Baseline::Sw] {
        if script.allowed(baseline) {
            script.long_baseline(baseline)?;
        }
    }
    if extent != AutoExtent::Parameters {
        script.plan_and_execute(extent)?;
    }
    if extent == AutoExtent::Whole {
        script.probe_again()?;
    }
    Ok(script.found)
}

fn nothing_yet(limits: Limits, state: State) -> Calibration {
    Calibration {
        format: findings::FORMAT,
        limits,
        state: StateFound {
            enforced: state,
            runs: Vec::new(),
            round_means_ns: Vec::new(),
            steady: None,
            capped: false,
            level: None,
        },
        baselines: BTreeMap::new(),
        pause: None,
        plan: None,
        drift: None,
        interference: Vec::new(),
        notes: Vec::new(),
    }
}

impl Script<'_> {
    /// Whether the user lets this baseline be measured; writes may not be.
    fn allowed(&self, baseline: Baseline) -> bool {
        let wanted = &self.options.plan.baselines;
        wanted.is_empty() || wanted.contains(&baseline)
    }

    /// A calibration run of `pattern`, numbered, and placed where it has no
    /// target space of its own.
    fn run(
        &mut self,
        role: CalibrationRole,
        number: usize,
        pattern: Pattern,
        count: u64,
    ) -> Result<RunSpec, AutoError> {
        let id = self.next_id;
        self.next_id = crate::plan::number(u64::from(id))? + 1;
        let own_space = pattern.basics().iter().all(|basic| basic.target_size.is_some());
        let placed = if own_space { Some(pattern.clone()) } else { self.spaces.place(&pattern, count) };
        let placed = placed.or_else(|| {
            self.spaces.start_again();
            self.spaces.place(&pattern, count)
        });
        Ok(RunSpec {
            id,
            belongs: Belongs::Calibration(CalibrationStep { role, number: number as u32 }),
            work: Work::Pattern(placed.unwrap_or(pattern).resolve(self.options.geometry)?),
            io_count: count,
            io_ignore: 0,
            seed: derive_seed(self.options.plan.seed, u64::from(id)),
            time_limit: self.limits.run_time,
        })
    }

    /// Performs calibration steps.
    fn perform(&mut self, steps: Vec<Step>) -> Result<(), AutoError> {
        self.bench.perform(AutoPhase { steps, ..AutoPhase::default() })
    }

    /// The response times of runs, one after the other.
    fn responses(&mut self, runs: &[u32]) -> Result<Vec<u64>, AutoError> {
        let mut all = Vec::new();
        for run in runs {
            all.extend(self.bench.records(*run)?.iter().map(|r| r.response().0));
        }
        Ok(all)
    }

    fn basic(&self, baseline: Baseline) -> Pattern {
        Pattern::Basic(baseline.basic(self.options.plan.io_size))
    }

    /// A long baseline, extended until the stop rule is content.
    fn long_baseline(&mut self, baseline: Baseline) -> Result<(), AutoError> {
        let mut runs = Vec::new();
        let mut series: Vec<u64> = Vec::new();
        let mut count = self.limits.first_ios;
        let rest = Step::Pause { nanos: self.limits.rest };
        let mut steps = vec![rest];
        let settled = loop {
            let pattern = self.basic(baseline);
            let spec = self.run(CalibrationRole::LongBaseline, runs.len(), pattern, count)?;
            let id = spec.id;
            steps.push(Step::Run(spec));
            self.perform(std::mem::take(&mut steps))?;
            let part = self.responses(&[id])?;
            let cut_short = (part.len() as u64) < count;
            runs.push(id);
            series.extend(part);
            let settled = long_run::settle(&series, &self.limits.rule);
            if settled.more_ios == 0 || cut_short || runs.len() >= self.limits.parts as usize {
                break settled;
            }
            // Whole MiB, so that the next part goes on where this one ended.
            count = settled.more_ios.min(self.limits.rule.cap_ios).next_multiple_of(64);
        };
        let capped = settled.reason != crate::detect::enough::Reason::PreciseEnough;
        let found = BaselineFound {
            runs,
            ios: series.len() as u64,
            start_up: settled.start_up,
            transient_ios: settled.transient_ios,
            period: settled.period,
            io_ignore: settled.counts.ignore,
            io_count: settled.counts.count,
            interval: settled.interval,
            reason: settled.reason,
            capped,
        };
        let news = words::baseline(baseline.name(), &found);
        if capped {
            self.found.notes.push(words::ended_early(baseline.name(), &found));
        }
        self.found.baselines.insert(baseline, found);
        self.bench.found(&self.found, &news)
    }

    /// Mean response times in ms; baselines that were not measured count as the
    /// most expensive one that was.
    fn means(&self) -> Option<BaselineMeans> {
        let of = |b: Baseline| Some(self.found.baselines.get(&b)?.interval?.mean_ns / 1e6);
        let most = Baseline::ALL.into_iter().filter_map(of).reduce(f64::max)?;
        let mean = |b| of(b).unwrap_or(most);
        Some(BaselineMeans {
            sr: mean(Baseline::Sr),
            rr: mean(Baseline::Rr),
            sw: mean(Baseline::Sw),
            rw: mean(Baseline::Rw),
        })
    }

    /// The plan: the stored one, else made of what was found. What is said of it
    /// follows from its steps and notes, so that it is the same after a resume.
    fn plan_and_execute(&mut self, extent: AutoExtent) -> Result<(), AutoError> {
        let (options, needed) = self.found_options();
        let mut plan = empty_plan(&options, self.options.geometry);
        match self.stored_plan() {
            Some((steps, skipped, notes)) => {
                (plan.steps, plan.skipped, plan.notes) = (steps, skipped, notes);
            }
            None => plan = self.make_plan(plan, options, needed)?,
        }
        self.next_id = plan.runs().map(|run| run.id + 1).max().unwrap_or(self.next_id);
        self.note_plan(&plan);
        let news = self.found.plan.as_ref().map(words::plan).unwrap_or_default();
        self.bench.found(&self.found, &news)?;
        let Plan { steps, skipped, notes, .. } = plan;
        let held = extent == AutoExtent::Calibration;
        self.bench.perform(AutoPhase { steps, skipped, notes, main: true, held })
    }

    /// The main part of the stored plan, where it has one: up to the probe.
    fn stored_plan(&self) -> Option<(Vec<Step>, Vec<Skipped>, Vec<String>)> {
        let is_probe =
            |step: &Step| matches!(step, Step::Run(run) if matches!(run.belongs, Belongs::Calibration(_)));
        let stored = self.bench.stored();
        let end = stored.steps.iter().position(is_probe).unwrap_or(stored.steps.len());
        let runs = |steps: &[Step]| steps.iter().rposition(|step| matches!(step, Step::Run(_)));
        // A pause may stand before the probe; it belongs to that.
        let end = match end < stored.steps.len() {
            true => runs(&stored.steps[..end]).map_or(0, |last| last + 1),
            false => end,
        };
        (end > 0).then(|| (stored.steps[..end].to_vec(), stored.skipped.to_vec(), stored.notes.to_vec()))
    }

    /// The plan that what was found and the time left come to.
    fn make_plan(&self, empty: Plan, options: PlanOptions, needed: Nanos) -> Result<Plan, AutoError> {
        let left = self.bench.left().map(|left| left.saturating_sub(self.probe_time()));
        let mut options = self.fit_pause(options, left)?;
        if let Some((left, means)) = left.zip(self.means()) {
            options.baseline_io_count = fit::baseline_ios(left, &means);
        }
        let fitted = fit::fit(&empty, &options, &self.spaces, self.next_id, self.means(), left)?;
        let mut plan = fitted.plan;
        plan.steps.insert(0, Step::Pause { nanos: options.pause_between_runs });
        if !fitted.fits {
            plan.notes.push(
                "Even the shortest plan does not fit in the time budget: runs are cut short.".to_string(),
            );
        }
        if fitted.repeats < self.options.plan.repeats {
            plan.notes.push(format!(
                "{} repeats instead of {} for want of time.",
                fitted.repeats, self.options.plan.repeats
            ));
        }
        if options.pause_between_runs < needed {
            plan.notes.push(format!(
                "The pause between runs is {} where {needed} are needed: the time budget has no room.",
                options.pause_between_runs
            ));
        }
        Ok(plan)
    }

    /// The plan's options with what was found, and the pause that is needed.
    fn found_options(&self) -> (PlanOptions, Nanos) {
        let mut options = self.options.plan.clone();
        options.method = Method::Auto;
        options.baseline_io_count = self.limits.baseline_ios;
        for baseline in Baseline::ALL {
            if let Some(found) = self.found.baselines.get(&baseline) {
                let counts = options.io_counts.of_mut(baseline);
                (counts.count, counts.ignore) = (found.io_count, found.io_ignore);
            }
        }
        let needed = self.found.pause.as_ref().map_or(self.limits.pause_floor, |p| p.needed);
        options.pause_between_runs = needed;
        (options, needed)
    }

    /// Holds all pauses together to a quarter of the time left.
    fn fit_pause(&self, mut options: PlanOptions, left: Option<Nanos>) -> Result<PlanOptions, AutoError> {
        let Some(left) = left else { return Ok(options) };
        let mut plan = empty_plan(&options, self.options.geometry);
        crate::plan::extend(&mut plan, &options, &mut self.spaces.clone(), self.next_id)?;
        let at_most = Nanos(left.0 / 4 / plan.summary().runs.max(1)).max(Nanos::from_millis(1));
        options.pause_between_runs = options.pause_between_runs.min(at_most);
        Ok(options)
    }

    fn note_plan(&mut self, plan: &Plan) {
        let sum = plan.summary();
        if let (Some(pause), Some(Step::Pause { nanos })) = (&mut self.found.pause, plan.steps.first()) {
            pause.between_runs = *nanos;
        }
        self.found.notes.extend(plan.notes.iter().cloned());
        self.found.plan = Some(PlanFound {
            runs: sum.runs,
            ios: sum.ios,
            read_bytes: sum.read_bytes,
            write_bytes: sum.write_bytes,
            reset_bytes: sum.reset_bytes,
            estimate: self.means().map(|means| fit::estimate(plan, &means)),
            budget: self.options.budget,
            repeats: plan.runs().map(|run| run.belongs.repeat() + 1).max().unwrap_or(0),
            dropped: plan.skipped.iter().filter(|s| s.reason == DROPPED).cloned().collect(),
        });
    }

    /// Rounds in the state criterion's window.
    fn window(&self) -> usize {
        SteadyRule::default().window_rounds
    }
}

/// The plan that a benchmark by the automatic method starts with: no steps yet.
pub fn first_plan(options: &AutoOptions) -> Plan {
    empty_plan(&options.plan, options.geometry)
}
