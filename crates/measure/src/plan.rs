//! Plans: an ordered list of state resets, runs and pauses, with the target
//! space of each run.
//!
//! How: [`make_plan`] is a pure function of options and geometry. It drafts all
//! runs, orders them so that those which disturb the device's state most come
//! last, gives each a target space (`plan/spaces.rs`) and a length ([`length`]), and
//! numbers them. What the target cannot take is left out with a reason.
//!
//! Source: paper 000/001, sections 4.1 (state), 4.2 (IOCount, IOIgnore, and the
//! plan: "those experiments involving sequential writes are delayed and grouped
//! together in such a way that their allocated target space does not overlap"),
//! 4.3 (pause between runs) and 5.1 (the default lengths).

pub mod check;
pub mod left;
pub mod length;
pub(crate) mod place;
pub(crate) mod spaces;
pub mod summary;

use crate::micro::{Curve, MicroBenchmark, Overrides, Skipped};
use crate::pattern::{Baseline, DEFAULT_IO_SIZE, Location, Pattern, PatternError, PatternMode};
use crate::run::{Belongs, PlannedPoint, RunSection, RunSpec, Work};
use crate::state::State;
use serde::{Deserialize, Serialize};
use spaces::Spaces;
use uflip_device::rng::derive_seed;
use uflip_device::{Bytes, Geometry, Nanos};

pub use crate::micro::Preset;
pub use length::{Counts, IoCounts};
pub use summary::{BaselineMeans, Summary, written_bytes};

/// The version of the plan's format that is written. Plans of format 1, in which
/// a job's runs have names only, are read as well.
pub const FORMAT: u32 = 2;
/// The oldest format that is read.
pub const OLDEST_FORMAT: u32 = 1;

/// A benchmark plan, stored before anything is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the tool that made it.
    pub tool_version: String,
    /// The target, as described by who asked for the plan.
    pub target: String,
    /// What was planned for.
    pub geometry: Geometry,
    /// The seed that every run's seed is derived from.
    pub seed: u64,
    /// IOSize, where a micro-benchmark does not vary or override it.
    pub io_size: Bytes,
    /// How much is measured.
    pub preset: Preset,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What the target cannot take.
    pub skipped: Vec<Skipped>,
    /// What a reader of the results should know about the plan.
    pub notes: Vec<String>,
}

/// A step of a plan.
#[expect(clippy::large_enum_variant, reason = "nearly all steps are runs; boxing them would save nothing")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// Bring the device to this state.
    Reset {
        /// Which.
        state: State,
    },
    /// Run a pattern.
    Run(RunSpec),
    /// Leave the device alone.
    Pause {
        /// For how long.
        nanos: Nanos,
    },
}

/// Where the lengths of runs and the pause between them come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// From the preset or the user.
    #[default]
    Fixed,
    /// Found on the device by [`crate::auto`].
    Auto,
}

/// All sixteenths of the values: [`PlanOptions::values_of_16`].
pub const ALL_VALUES: u32 = 16;

/// What [`make_plan`] is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanOptions {
    /// The target, in words.
    pub target: String,
    /// Which values of the parameters.
    pub preset: Preset,
    /// Which micro-benchmarks; none means the usual nine.
    pub only: Vec<MicroBenchmark>,
    /// Only runs made of these baselines; none means all four.
    pub baselines: Vec<Baseline>,
    /// The initial state, enforced first and whenever the space for sequential
    /// writes is used up.
    pub state: State,
    /// IOSize.
    pub io_size: Bytes,
    /// The seed of everything random.
    pub seed: u64,
    /// Other values, IO sizes and baselines.
    pub overrides: Overrides,
    /// Idle time between two runs.
    pub pause_between_runs: Nanos,
    /// IOCount and IOIgnore for each baseline.
    pub io_counts: IoCounts,
    /// IOCount of the four baseline runs that come first, long enough to find
    /// start-up and period.
    pub baseline_io_count: u64,
    /// IOs of the rarer pattern in a mix's running phase, at least.
    pub min_rare: u64,
    /// How often each experiment is repeated.
    pub repeats: u32,
    /// Where `io_counts` and `pause_between_runs` come from.
    pub method: Method,
    /// How many sixteenths of each curve's values are measured, evenly spread;
    /// values that the user chose are never dropped.
    pub values_of_16: u32,
}

impl PlanOptions {
    /// A preset's options. `standard` has the paper's lengths (section 5.1) and
    /// repeats; `baseline_io_count` of `full` is FlashIO's.
    pub fn new(preset: Preset) -> PlanOptions {
        let quick = preset == Preset::Quick;
        PlanOptions {
            target: String::new(),
            preset,
            only: Vec::new(),
            baselines: Vec::new(),
            state: if preset == Preset::Full { State::Random } else { State::None },
            io_size: DEFAULT_IO_SIZE,
            seed: 0,
            overrides: Overrides::new(),
            pause_between_runs: if quick { Nanos::from_millis(10) } else { Nanos::from_secs(1) },
            io_counts: if quick { IoCounts::QUICK } else { IoCounts::PAPER },
            baseline_io_count: match preset {
                Preset::Quick => 2048,
                Preset::Standard => 10_240,
                Preset::Full => 20_480,
            },
            min_rare: if quick { 16 } else { crate::pattern::mix::MIN_RARE },
            repeats: if quick { 1 } else { 3 },
            method: Method::Fixed,
            values_of_16: ALL_VALUES,
        }
    }
}

/// No plan can be made of the options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The target cannot take the baselines.
    #[error("the target cannot take the baseline patterns: {0}")]
    Baseline(PatternError),
    /// A length makes no sense.
    #[error("{baseline}: IOCount {count} leaves nothing after IOIgnore {ignore}; type a larger io_count")]
    Counts {
        /// Whose.
        baseline: Baseline,
        /// IOCount.
        count: u64,
        /// IOIgnore.
        ignore: u64,
    },
    /// No repeats.
    #[error("repeats is 0; type a number from 1")]
    Repeats,
    /// More runs than a plan may have.
    #[error(
        "the plan would have {runs} runs or so, and at most {} are possible; type fewer repeats or values",
        check::MAX_RUNS
    )]
    TooManyRuns {
        /// How many it would have.
        runs: u64,
    },
}

/// Why a value is skipped that the time budget has no room for.
pub const DROPPED: &str = "left out to stay within the time budget";

/// A run without number, seed and target space. The order of runs is that of
/// `rank`, else as drafted.
struct Draft {
    rank: u8,
    belongs: Belongs,
    pattern: Pattern,
    counts: Counts,
}

/// A plan for `options` without steps.
pub(crate) fn empty_plan(options: &PlanOptions, geometry: Geometry) -> Plan {
    Plan {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_string(),
        target: options.target.clone(),
        geometry,
        seed: options.seed,
        io_size: options.io_size,
        preset: options.preset,
        steps: Vec::new(),
        skipped: Vec::new(),
        notes: Vec::new(),
    }
}

/// The plan for `options` on a target of this geometry.
///
/// # Errors
/// [`PlanError`] where the options make no sense for any run.
pub fn make_plan(options: &PlanOptions, geometry: Geometry) -> Result<Plan, PlanError> {
    check_options(options, geometry)?;
    let mut plan = empty_plan(options, geometry);
    if options.state != State::None {
        plan.steps.push(Step::Reset { state: options.state });
    }
    extend(&mut plan, options, &mut Spaces::new(geometry), 0)?;
    Ok(plan)
}

/// Adds the benchmark's runs to a plan that may have runs already: theirs are
/// the numbers below `first_id`, and `spaces` knows the room they took.
///
/// # Errors
/// As [`make_plan`].
pub(crate) fn extend(
    plan: &mut Plan,
    options: &PlanOptions,
    spaces: &mut Spaces,
    first_id: u32,
) -> Result<(), PlanError> {
    check_options(options, plan.geometry)?;
    let mut drafts = draft_baselines(options);
    for micro in wanted(options) {
        draft_micro_benchmark(micro, options, plan.geometry, &mut drafts, &mut plan.skipped);
    }
    let wanted = |b: &Baseline| options.baselines.is_empty() || options.baselines.contains(b);
    drafts.retain(|draft| draft.belongs.curve().is_none_or(|curve| curve.baselines().iter().all(wanted)));
    drafts.sort_by_key(|draft| draft.rank);
    lay_out(drafts, options, plan, spaces, first_id)
}

pub(crate) fn check_options(options: &PlanOptions, geometry: Geometry) -> Result<(), PlanError> {
    Pattern::Basic(Baseline::Sr.basic(options.io_size)).check(geometry).map_err(PlanError::Baseline)?;
    if options.repeats == 0 {
        return Err(PlanError::Repeats);
    }
    let runs = runs_at_most(options);
    if runs > check::MAX_RUNS as u64 {
        return Err(PlanError::TooManyRuns { runs });
    }
    for baseline in Baseline::ALL {
        let Counts { count, ignore } = options.io_counts.of(baseline);
        if count <= ignore {
            return Err(PlanError::Counts { baseline, count, ignore });
        }
    }
    Ok(())
}

/// The micro-benchmarks that are asked for; the usual ones where none is named.
fn wanted(options: &PlanOptions) -> Vec<MicroBenchmark> {
    match options.only.is_empty() {
        true => MicroBenchmark::usual().collect(),
        false => MicroBenchmark::ALL.iter().copied().filter(|micro| options.only.contains(micro)).collect(),
    }
}

/// Runs that the options come to if the target can take them all: known before
/// memory is taken for any.
fn runs_at_most(options: &PlanOptions) -> u64 {
    let values = |micro: MicroBenchmark| {
        let row = micro.row();
        let changes = options.overrides.get(&micro);
        let io_size = changes.and_then(|c| c.io_size).unwrap_or(options.io_size);
        let given = changes.and_then(|c| c.values.as_ref()).map(Vec::len);
        let curves = changes.and_then(|c| c.baselines.as_deref()).unwrap_or(row.curves).iter();
        let of = |curve: &Curve| given.unwrap_or_else(|| (row.values)(options.preset, *curve, io_size).len());
        curves.map(|curve| of(curve) as u64).fold(0, u64::saturating_add)
    };
    let points = wanted(options).into_iter().map(values).fold(4, u64::saturating_add);
    points.saturating_mul(u64::from(options.repeats))
}

fn draft_baselines(options: &PlanOptions) -> Vec<Draft> {
    let one = |repeat, baseline: Baseline| Draft {
        rank: 0,
        belongs: Belongs::Baseline { baseline, repeat },
        pattern: Pattern::Basic(baseline.basic(options.io_size)),
        counts: Counts {
            count: options.baseline_io_count.max(options.io_counts.of(baseline).count),
            ignore: options.io_counts.of(baseline).ignore,
        },
    };
    // Reads first: they leave the state as it is.
    let order = [Baseline::Sr, Baseline::Rr, Baseline::Rw, Baseline::Sw];
    (0..options.repeats).flat_map(|repeat| order.map(|baseline| one(repeat, baseline))).collect()
}

/// The runs of one micro-benchmark: for each curve the whole experiment, then
/// its repeats, so that a drift of the device shows between repeats.
fn draft_micro_benchmark(
    micro: MicroBenchmark,
    options: &PlanOptions,
    geometry: Geometry,
    drafts: &mut Vec<Draft>,
    skipped: &mut Vec<Skipped>,
) {
    let row = micro.row();
    let changes = options.overrides.get(&micro).cloned().unwrap_or_default();
    let io_size = changes.io_size.unwrap_or(options.io_size);
    for curve in changes.baselines.unwrap_or_else(|| row.curves.to_vec()) {
        let values = changes.values.clone().unwrap_or_else(|| (row.values)(options.preset, curve, io_size));
        let mut points = Vec::new();
        let kept = if changes.values.is_some() { ALL_VALUES } else { options.values_of_16 };
        let kept = length::evenly(values.len(), kept);
        for (place, value) in values.into_iter().enumerate() {
            let fitting = if kept.contains(&place) {
                fitting(micro, curve, value, io_size, geometry)
            } else {
                Err(DROPPED.to_string())
            };
            match fitting {
                Ok(pattern) => points.push((value, pattern)),
                Err(reason) => skipped.push(Skipped {
                    micro_benchmark: RunSection::Micro(micro),
                    baseline: curve,
                    label: (row.label)(value),
                    reason,
                }),
            }
        }
        for repeat in 0..options.repeats {
            drafts.extend(points.iter().map(|(value, pattern)| Draft {
                rank: rank(micro, pattern),
                belongs: Belongs::Point(PlannedPoint { micro, curve, value: *value, repeat }),
                pattern: pattern.clone(),
                counts: length::counts(pattern, options),
            }));
        }
    }
}

/// The reference pattern, or why the target cannot take it.
fn fitting(
    micro: MicroBenchmark,
    curve: Curve,
    value: i64,
    io_size: Bytes,
    geometry: Geometry,
) -> Result<Pattern, String> {
    let pattern = (micro.row().pattern)(curve, value, io_size)?;
    pattern.check(geometry).map_err(|error| error.to_string())?;
    let slots = geometry.capacity.0 / io_size.0.max(1);
    if let Pattern::Basic(basic) = &pattern
        && let Location::Ordered { incr } = basic.location
        && incr.unsigned_abs() > 1
        && incr.unsigned_abs() >= slots
    {
        return Err(format!("Incr {incr} goes past the target's {slots} IOs of {}", io_size.exact()));
    }
    Ok(pattern)
}

/// Reads first, then what disturbs the state ever more.
fn rank(micro: MicroBenchmark, pattern: &Pattern) -> u8 {
    let sequential_write = pattern.basics().iter().any(|b| b.mode == PatternMode::Write && !b.is_random());
    match micro {
        _ if !pattern.writes() => 1,
        MicroBenchmark::Mix => 3,
        MicroBenchmark::Parallelism => 7,
        _ if pattern.stream_count() > 1 => 7,
        _ if !sequential_write => 2,
        MicroBenchmark::Partitioning => 5,
        MicroBenchmark::Order => 6,
        _ => 4,
    }
}

/// A run's number, if a plan can have it.
pub(crate) fn number(id: u64) -> Result<u32, PlanError> {
    let possible = u32::try_from(id).ok().filter(|id| (*id as usize) < check::MAX_RUNS);
    possible.ok_or(PlanError::TooManyRuns { runs: id.saturating_add(1) })
}

/// Gives the drafts their numbers, seeds and target spaces, with resets and
/// pauses between them.
fn lay_out(
    drafts: Vec<Draft>,
    options: &PlanOptions,
    plan: &mut Plan,
    spaces: &mut Spaces,
    first_id: u32,
) -> Result<(), PlanError> {
    let pause = Step::Pause { nanos: options.pause_between_runs };
    let pauses = options.pause_between_runs > Nanos::ZERO;
    let reset = Step::Reset { state: options.state };
    let mut wrapped = 0u32;
    for (id, draft) in (u64::from(first_id)..).zip(drafts) {
        let id = number(id)?;
        let count = draft.counts.count;
        let pattern = match spaces.place(&draft.pattern, count) {
            Some(pattern) => pattern,
            None => {
                spaces.start_again();
                if options.state == State::None {
                    wrapped += 1;
                } else {
                    plan.steps.push(reset.clone());
                }
                // From the start there is room for anything.
                spaces.place(&draft.pattern, count).unwrap_or(draft.pattern)
            }
        };
        if pauses && !plan.steps.is_empty() {
            plan.steps.push(pause.clone());
        }
        plan.steps.push(Step::Run(RunSpec {
            id,
            belongs: draft.belongs,
            work: Work::Pattern(pattern.resolve(plan.geometry).map_err(PlanError::Baseline)?),
            io_count: count,
            io_ignore: draft.counts.ignore,
            seed: derive_seed(options.seed, u64::from(id)),
            time_limit: None,
        }));
    }
    if wrapped > 0 {
        plan.notes.push(format!(
            "Sequential writes used up the target {wrapped} times and started again from offset 0 without a \
             state reset, as the state is none: later ones rewrite what earlier ones wrote."
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
