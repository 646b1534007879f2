//! From a job to a plan.
//!
//! How: a pure function of job, geometry and seed. Lists multiply: block sizes
//! outermost, then shifts, then the alternatives of what comes before, then
//! patterns, then repeats. Each run says what it stands for ([`JobRun`]); a
//! [`Segment`] is a stretch of the plan's steps that is done or left out as a
//! whole, where the self-scaling rule decides. What the target cannot take is
//! left out with a reason.
//!
//! What comes before (fills and bursts) and endurance passes are ordinary runs,
//! every IO of them kept. A run that only its time
//! ends gets an IOCount that no device reaches ([`FASTEST_IO`]).
//!
//! Source: paper 004, appendix A: before each block size the device is written
//! with a 1 MB buffer, then sequential reads, random reads, sequential writes
//! and random writes, each three times.

use super::{Amount, Before, Burst, Each, Job, JobRun, Length, Line, Role, RunExtent, Start};
use crate::micro::{Curve, Preset, Skipped};
use crate::pattern::{Baseline, Basic, Location, Pattern, Timing};
use crate::plan::{FORMAT, Plan, Step};
use crate::run::{Belongs, RunSection, RunSpec, Work};
use std::ops::Range;
use uflip_device::rng::{Rng, derive_seed};
use uflip_device::{Bytes, Geometry, Nanos};

/// No IO takes less: bounds the IOs of a run that ends by time.
pub const FASTEST_IO: Nanos = Nanos(50);
/// The largest block size that self-scaling goes on to.
pub const MAX_SCALED: Bytes = Bytes(128 << 20);
/// The most runs that a job may come to.
pub const MAX_RUNS: usize = 200_000;
/// IOs of a run of endurance passes, at most (a pass at least): passes are kept
/// in pieces, so that an interruption loses little.
const PASS_IOS: u64 = 1 << 20;

/// Steps that are done or left out together.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Which of the plan's.
    pub steps: Range<usize>,
    /// The line's number in the job file.
    pub line_number: usize,
    /// The endurance round, where there is one.
    pub round: Option<u32>,
    /// The block size.
    pub block: Bytes,
    /// Where self-scaling decides whether it is done: the growth that it takes.
    pub if_grown_percent: Option<f64>,
}

/// A job on a target.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// What is stored and executed.
    pub plan: Plan,
    /// All steps, in order.
    pub segments: Vec<Segment>,
    /// The line's number of each of the plan's `skipped`; none where the job is read
    /// from its plan.
    pub skipped_lines: Vec<usize>,
}

/// A job cannot be done on this target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// Too many runs.
    #[error(
        "line {line} ({name}) brings the job to more than {MAX_RUNS} runs; type fewer values, repeats or rounds"
    )]
    TooMany {
        /// The line's number in the file.
        line: usize,
        /// Its name.
        name: String,
    },
    /// Nothing can be done.
    #[error("the target can take none of the job's runs: {0}")]
    Nothing(String),
}

/// One alternative of everything before an experiment.
#[derive(Clone, Debug)]
enum Prior {
    Fill(Bytes),
    Burst(Burst),
    Idle(Nanos),
}

/// The alternatives of what comes before, each a sequence.
fn alternatives(line: &Line, block: Bytes) -> Vec<Vec<Prior>> {
    let mut all = vec![Vec::new()];
    for before in &line.before {
        let choices: Vec<Prior> = match before {
            Before::Fill { block } => vec![Prior::Fill(*block)],
            Before::Idle { time } => vec![Prior::Idle(*time)],
            Before::Burst { baseline, blocks, lengths } => {
                let of = |b: &Option<Bytes>| b.unwrap_or(block);
                let mut distinct: Vec<Bytes> = blocks.iter().map(of).collect();
                distinct.dedup();
                let run = |block: Bytes, length: Length| Burst { baseline: *baseline, block, length };
                let both = distinct.iter().flat_map(|b| lengths.iter().map(|l| Prior::Burst(run(*b, *l))));
                both.collect()
            }
        };
        all = all
            .into_iter()
            .flat_map(|first: Vec<Prior>| {
                choices.iter().map(move |choice| {
                    let mut sequence = first.clone();
                    sequence.push(choice.clone());
                    sequence
                })
            })
            .collect();
    }
    all
}

/// The sizes that self-scaling may go on to after the line's own.
fn further(line: &Line, geometry: Geometry) -> Vec<Bytes> {
    let Some(last) = line.block_sizes.iter().max().filter(|_| line.until_percent.is_some()) else {
        return Vec::new();
    };
    let most = MAX_SCALED.0.min(geometry.capacity.0 / 8);
    let doubled = std::iter::successors(last.0.checked_mul(2), |size| size.checked_mul(2));
    doubled.take_while(|size| *size <= most).map(Bytes).collect()
}

/// Puts a plan together.
struct Builder<'a> {
    job: &'a Job,
    out: JobPlan,
    group: u32,
    segment: u32,
    runs: usize,
    full: bool,
}

/// What is common to the runs of one place in an experiment.
#[derive(Clone)]
struct RunPlace<'a> {
    line: &'a Line,
    if_grown_percent: Option<f64>,
    round: Option<u32>,
    passes: Option<u64>,
    block: Bytes,
    shift: Bytes,
    burst: Option<Burst>,
    sync: Option<u32>,
}

/// The plan of `job` on a target of this geometry; `seed` where the job has none
/// of its own.
///
/// # Errors
/// [`ExpandError`].
pub fn expand(job: &Job, target: &str, geometry: Geometry, seed: u64) -> Result<JobPlan, ExpandError> {
    let plan = Plan {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_string(),
        target: target.to_string(),
        geometry,
        seed: job.seed.unwrap_or(seed),
        io_size: job.lines.first().and_then(|l| l.block_sizes.first().copied()).unwrap_or_default(),
        preset: Preset::Standard,
        steps: Vec::new(),
        skipped: Vec::new(),
        notes: Vec::new(),
    };
    let out = JobPlan { plan, segments: Vec::new(), skipped_lines: Vec::new() };
    let mut builder = Builder { job, out, group: 0, segment: 0, runs: 0, full: false };
    for line in &job.lines {
        match &line.endurance {
            None => builder.experiment(line, None, None),
            Some(_) => builder.endurance(line),
        }
        if builder.full {
            return Err(ExpandError::TooMany { line: line.number, name: line.name.clone() });
        }
    }
    if builder.out.runs().all(|(_, run)| run.role == Role::Before) {
        let first = builder.out.plan.skipped.first();
        let why = first.map_or("there are no lines".to_string(), |s| format!("{}: {}", s.label, s.reason));
        return Err(ExpandError::Nothing(why));
    }
    Ok(builder.out)
}

impl Builder<'_> {
    /// The runs of a line without passes.
    fn experiment(&mut self, line: &Line, round: Option<u32>, passes: Option<u64>) {
        let further = further(line, self.out.plan.geometry);
        let own = line.block_sizes.iter().map(|block| (*block, None));
        for (block, if_grown_percent) in own.chain(further.into_iter().map(|b| (b, line.until_percent))) {
            let from = self.out.plan.steps.len();
            for shift in &line.shifts {
                for prior in alternatives(line, block) {
                    let burst = prior.iter().rev().find_map(|p| match p {
                        Prior::Burst(burst) => Some(*burst),
                        _ => None,
                    });
                    let syncs = line.syncs.iter().map(|n| Some(*n));
                    let none = line.syncs.is_empty().then_some(None);
                    for sync in syncs.chain(none) {
                        let shift = *shift;
                        let place =
                            RunPlace { line, if_grown_percent, round, passes, block, shift, burst, sync };
                        self.measured(&place, &prior);
                    }
                    if self.full {
                        return;
                    }
                }
            }
            self.segment(
                from,
                &Segment { steps: 0..0, line_number: line.number, round, block, if_grown_percent },
            );
        }
    }

    /// Ends the segment that began with step `from`; one without steps is none.
    fn segment(&mut self, from: usize, segment: &Segment) {
        let steps = from..self.out.plan.steps.len();
        if !steps.is_empty() {
            self.out.segments.push(Segment { steps, ..segment.clone() });
            self.segment += 1;
        }
    }

    /// The runs of one place, with what comes before them.
    fn measured(&mut self, place: &RunPlace<'_>, prior: &[Prior]) {
        let geometry = self.out.plan.geometry;
        let mut fresh = true;
        for baseline in &place.line.patterns {
            let timing = place.sync.map_or(Timing::Consecutive, |every| Timing::Synced { every });
            let basic = Basic { timing, ..basic(place.line, *baseline, place.block, place.shift) };
            let pattern = Pattern::Basic(basic);
            if let Err(reason) = pattern.check(geometry) {
                self.skip(place, *baseline, reason.to_string());
                continue;
            }
            for repeat in 0..place.line.repeats {
                if fresh || place.line.each == Each::Run {
                    self.group += 1;
                    prior.iter().for_each(|prior| self.prior(place, prior));
                    fresh = false;
                }
                let count = place.line.count.or_else(|| by_bytes(place.line, basic, geometry));
                let length = (count, place.line.time);
                self.run(place, Role::Measured, basic, length, repeat);
            }
        }
    }

    fn skip(&mut self, place: &RunPlace<'_>, baseline: Baseline, reason: String) {
        let skipped = Skipped {
            micro_benchmark: RunSection::Named(meaning(place).section()),
            baseline: Curve::One(baseline),
            label: place.block.exact(),
            reason,
        };
        if !self.out.plan.skipped.contains(&skipped) {
            self.out.plan.skipped.push(skipped);
            self.out.skipped_lines.push(place.line.number);
        }
    }

    fn prior(&mut self, place: &RunPlace<'_>, prior: &Prior) {
        match prior {
            Prior::Idle(time) => self.out.plan.steps.push(Step::Pause { nanos: *time }),
            Prior::Fill(block) => {
                let whole = self.out.plan.geometry.capacity.0 / block.0.max(1);
                let fill = Basic { location: Location::Sequential, ..Baseline::Sw.basic(*block) };
                self.before(place, fill, (Some(whole.max(1)), None), false);
            }
            Prior::Burst(burst) => {
                let basic = Basic {
                    target_offset: place.line.offset,
                    target_size: place.line.size,
                    ..basic(place.line, burst.baseline, burst.block, Bytes(0))
                };
                let length = match burst.length {
                    Length::Time(time) => (None, Some(time)),
                    Length::Count(count) => (Some(count), None),
                };
                self.before(place, basic, length, true);
            }
        }
    }

    /// A run before an experiment, or a word on why it is left out.
    fn before(
        &mut self,
        place: &RunPlace<'_>,
        basic: Basic,
        length: (Option<u64>, Option<Nanos>),
        burst: bool,
    ) {
        if let Err(reason) = Pattern::Basic(basic).check(self.out.plan.geometry) {
            let what = if burst { "burst before" } else { "fill before" };
            return self.skip(place, basic.baseline(), format!("{what}: {reason}"));
        }
        let place = RunPlace { block: basic.io_size, shift: Bytes(0), sync: None, ..place.clone() };
        self.run(&place, Role::Before, basic, length, 0);
    }

    /// The rounds of a line with passes.
    fn endurance(&mut self, line: &Line) {
        let Some(endurance) = &line.endurance else { return };
        let then = endurance.then.as_ref().and_then(|name| self.named(name));
        let block = line.block_sizes.first().copied().unwrap_or_default();
        let basic = Basic { location: Location::Sequential, ..basic(line, Baseline::Sw, block, Bytes(0)) };
        let (round, passes, burst, sync) = (None, None, None, None);
        let place =
            RunPlace { line, if_grown_percent: None, round, passes, block, shift: Bytes(0), burst, sync };
        let geometry = self.out.plan.geometry;
        let pattern = match Pattern::Basic(basic).resolve(geometry) {
            Ok(pattern) if pattern.check(geometry).is_ok() => pattern,
            Ok(pattern) => {
                let reason = pattern.check(geometry).err().map(|e| e.to_string()).unwrap_or_default();
                return self.skip(&place, Baseline::Sw, reason);
            }
            Err(reason) => return self.skip(&place, Baseline::Sw, reason.to_string()),
        };
        let size = pattern.basics().first().and_then(|b| b.target_size).unwrap_or_default();
        let slots = (size.0 / block.0.max(1)).max(1);
        let passes_at_once = (PASS_IOS / slots).max(1);
        for round in 0..endurance.rounds {
            let passes = endurance.passes.saturating_mul(u64::from(round) + 1);
            let place = RunPlace { round: Some(round), passes: Some(passes), ..place.clone() };
            let from = self.out.plan.steps.len();
            let (mut left, mut piece) = (endurance.passes, 0);
            while left > 0 && !self.full {
                let now = left.min(passes_at_once);
                self.group += 1;
                self.run(&place, Role::Passes, basic, (Some(now.saturating_mul(slots)), None), piece);
                left -= now;
                piece += 1;
            }
            let line_number = line.number;
            let all = Segment { steps: 0..0, line_number, round: Some(round), block, if_grown_percent: None };
            self.segment(from, &all);
            if let Some(line) = &then {
                self.experiment(line, Some(round), Some(passes));
            }
            if self.full {
                return;
            }
        }
    }

    fn named(&self, name: &str) -> Option<Line> {
        self.job.lines.iter().find(|line| line.name == name).cloned()
    }

    /// Adds a run; its pattern is known to fit.
    fn run(
        &mut self,
        place: &RunPlace<'_>,
        role: Role,
        basic: Basic,
        (count, time): (Option<u64>, Option<Nanos>),
        repeat: u32,
    ) {
        let id = self.runs;
        let plan = &mut self.out.plan;
        self.full |= id >= MAX_RUNS;
        let Ok(pattern) = Pattern::Basic(basic).resolve(plan.geometry) else { return };
        if self.full {
            return;
        }
        self.runs += 1;
        let id = id as u32;
        let seed = derive_seed(plan.seed, u64::from(id));
        if place.line.pause > Nanos::ZERO && !plan.steps.is_empty() {
            plan.steps.push(Step::Pause { nanos: place.line.pause });
        }
        let meaning = JobRun {
            segment: self.segment,
            role,
            group: self.group,
            baseline: basic.baseline(),
            sync: place.sync.filter(|_| role == Role::Measured),
            window: place.line.window.filter(|_| role == Role::Measured),
            extent: extent(place, role, count),
            logical_block: self.job.logical_block,
            repeat,
            ..meaning(place)
        };
        plan.steps.push(Step::Run(RunSpec {
            id,
            belongs: Belongs::Job(meaning),
            work: Work::Pattern(started(pattern, seed)),
            io_count: basic
                .timing
                .with_flushes(count.or(time.map(|t| t.0 / FASTEST_IO.0)).unwrap_or(1).max(1)),
            io_ignore: 0,
            seed,
            time_limit: time,
        }));
    }
}

/// What the place alone says of its runs.
fn meaning(place: &RunPlace<'_>) -> JobRun {
    JobRun {
        line: place.line.name.clone(),
        line_number: place.line.number,
        segment: 0,
        if_grown_percent: place.if_grown_percent,
        role: Role::Measured,
        group: 0,
        round: place.round,
        passes: place.passes,
        baseline: Baseline::Sr,
        block: place.block,
        shift: place.shift,
        shifts: place.line.shifts.len() > 1,
        burst: place.burst,
        sync: place.sync,
        window: None,
        extent: RunExtent::Time,
        logical_block: None,
        repeat: 0,
    }
}

/// What a run of `count` accesses ends with.
fn extent(place: &RunPlace<'_>, role: Role, count: Option<u64>) -> RunExtent {
    match (role, count, place.line) {
        (Role::Passes, ..) => RunExtent::Whole,
        (_, None, _) => RunExtent::Time,
        (Role::Measured, _, Line { count: None, bytes: Some(Amount::Bytes(_)), .. }) => RunExtent::Bytes,
        (Role::Measured, _, Line { count: None, .. }) => RunExtent::Whole,
        _ => RunExtent::Count,
    }
}

/// Accesses that the line's `bytes=` comes to.
fn by_bytes(line: &Line, basic: Basic, geometry: Geometry) -> Option<u64> {
    let bytes = match line.bytes? {
        Amount::Bytes(bytes) => bytes.0,
        Amount::All => {
            let left = geometry.capacity.0.saturating_sub(basic.target_offset.0);
            basic.target_size.map_or(left, |size| size.0).saturating_sub(basic.io_shift.0)
        }
    };
    Some((bytes / basic.io_size.0.max(1)).max(1))
}

/// The basic pattern of a line. Random accesses are a permutation.
fn basic(line: &Line, baseline: Baseline, block: Bytes, shift: Bytes) -> Basic {
    let location = match (baseline.is_random(), line.start) {
        (true, _) => Location::RandomUnique,
        (false, Start::Random) => Location::SequentialFrom { slot: 0 },
        (false, Start::Zero) => Location::Sequential,
    };
    Basic {
        location,
        io_shift: shift,
        target_offset: line.offset,
        target_size: line.size,
        ..baseline.basic(block)
    }
}

/// A sequential pattern that starts at random with its slot drawn.
fn started(mut pattern: Pattern, seed: u64) -> Pattern {
    for basic in pattern.basics_mut() {
        if let Location::SequentialFrom { .. } = basic.location
            && let Ok((slots, _)) = basic.slots()
        {
            let slot = Rng::new(derive_seed(seed, u64::MAX)).below(slots.max(1));
            basic.location = Location::SequentialFrom { slot };
        }
    }
    pattern
}

impl JobPlan {
    /// The job whose plan was stored: what its runs stand for is taken from the
    /// plan alone. `None` where a run is no job's.
    pub fn stored(plan: Plan) -> Option<JobPlan> {
        let (mut segments, mut from) = (Vec::<Segment>::new(), 0);
        let mut last = None;
        for (at, step) in plan.steps.iter().enumerate() {
            let Step::Run(spec) = step else { continue };
            let run = spec.job()?;
            match segments.last_mut() {
                Some(segment) if last == Some(run.segment) => segment.steps.end = at + 1,
                _ => segments.push(Segment {
                    steps: from..at + 1,
                    line_number: run.line_number,
                    round: run.round,
                    // What comes before may have another size than what it is for.
                    block: run.block,
                    if_grown_percent: run.if_grown_percent,
                }),
            }
            if let Some(segment) = segments.last_mut()
                && run.role == Role::Measured
            {
                segment.block = run.block;
            }
            (last, from) = (Some(run.segment), at + 1);
        }
        Some(JobPlan { plan, segments, skipped_lines: Vec::new() })
    }

    /// Its runs, in order, with what each stands for.
    pub fn runs(&self) -> impl Iterator<Item = (u32, &JobRun)> {
        self.plan.runs().filter_map(|spec| Some((spec.id, spec.job()?)))
    }

    /// True where any of its runs writes.
    pub fn writes(&self) -> bool {
        self.plan.runs().any(|run| run.work.writes())
    }
}
