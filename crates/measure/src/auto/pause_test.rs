//! How long a device must be left alone between two runs.
//!
//! Method: sequential reads after a rest, again until they take no less time than
//! the time before (a device may be busy for long after its state was enforced);
//! at once a batch of writes as long as a long
//! baseline's first part, at once sequential reads until the response times are
//! back to normal (`detect/lasting.rs`); the reads after are extended, twice as
//! long each time, until what lasts is over or a cap is hit. The pause is
//! twice the time of the longest effect, and at least a floor. Batches: random
//! writes; sequential writes by sixteen processes, which many devices turn into
//! scattered writes; and, where the state that is enforced begins with trims,
//! trims of as many IOs, which are written again at once after the test: the
//! reads stay in the first half of the target and the trims in the second.
//!
//! Units: IOs, nanoseconds. Source: paper 001, sections 4.3 and 5.1, figure 5.
//! Limits: a batch longer than the test's may leave more behind.

use super::findings::{PauseFound, PauseTest};
use super::{AutoError, CalibrationRole, Script, words};
use crate::detect::lasting::{LastingEffect, lasting_effect, pause_ns};
use crate::pattern::{Baseline, Basic, Location, Pattern, PatternMode};
use crate::plan::Step;
use crate::state::State;
use uflip_device::{Bytes, Nanos};

/// Processes of the parallel batch: Table 1's highest degree.
const DEGREE: u32 = 16;

/// Reads are rested where they take at least this share of the time before.
const RESTED: f64 = 0.95;
/// Rests, at most.
const RESTS: usize = 6;

/// What a test does between its reads.
struct Batch {
    label: String,
    /// What is written or trimmed, and in how many IOs a stream.
    pattern: Pattern,
    count: u64,
    /// The reads before and after.
    reads: Pattern,
    /// What makes up for the batch.
    afterwards: Option<Pattern>,
}

impl Script<'_> {
    /// Tests what lasts after the kinds of writes that may be done, and
    /// chooses the pause.
    pub(super) fn test_pauses(&mut self) -> Result<(), AutoError> {
        let mut tests = Vec::new();
        if self.options.pause_between.is_none() && self.allowed(Baseline::Sr) {
            for batch in self.batches() {
                if batch.pattern.check(self.options.geometry).is_ok() {
                    tests.push(self.test_pause(batch)?);
                }
            }
        }
        let floor = self.limits.pause_floor;
        let longest = tests.iter().filter_map(|t| t.found).max_by_key(|l| l.affected_ns);
        let needed = Nanos(pause_ns(longest.as_ref(), floor.0));
        let between_runs = self.options.pause_between.unwrap_or(needed);
        if tests.is_empty() {
            self.found.notes.push("Lasting effects of writes are not tested.".to_string());
        }
        if longest.is_some_and(|l| !l.over) {
            self.found
                .notes
                .push("The lasting effect of writes had not ended when the test did.".to_string());
        }
        let needed = if self.options.pause_between.is_some() { between_runs } else { needed };
        let pause = PauseFound { tests, floor, needed, between_runs };
        let news = words::pause(&pause);
        self.found.pause = Some(pause);
        self.bench.found(&self.found, &news)
    }

    /// Those that are allowed and that the benchmark has a use for.
    fn batches(&self) -> Vec<Batch> {
        let count = self.limits.first_ios;
        let reads = self.basic(Baseline::Sr);
        let mut batches = Vec::new();
        if self.allowed(Baseline::Rw) {
            let pattern = self.basic(Baseline::Rw);
            let label = Baseline::Rw.to_string();
            batches.push(Batch { label, pattern, count, reads: reads.clone(), afterwards: None });
        }
        if self.allowed(Baseline::Sw) {
            let basic = Baseline::Sw.basic(self.options.plan.io_size);
            let pattern = Pattern::Replicated { degree: DEGREE, basic };
            let (label, count) = (format!("{DEGREE} x SW"), count.div_ceil(u64::from(DEGREE)));
            batches.push(Batch { label, pattern, count, reads, afterwards: None });
        }
        if self.options.plan.state == State::Trim && self.allowed(Baseline::Rw) {
            batches.push(self.trims(count));
        }
        batches
    }

    /// Trims in the second half of the target, and writes where they were.
    fn trims(&self, count: u64) -> Batch {
        let io_size = self.options.plan.io_size;
        let half = Bytes(self.options.geometry.capacity.0 / 2 / io_size.0.max(1) * io_size.0);
        let size = Bytes(half.0.min(count.saturating_mul(io_size.0)));
        let trims = Basic {
            mode: PatternMode::Trim,
            location: Location::RandomUnique,
            target_offset: half,
            target_size: Some(size),
            ..Baseline::Rw.basic(io_size)
        };
        let reads = Basic { target_size: Some(half), ..Baseline::Sr.basic(io_size) };
        Batch {
            label: trims.name().to_string(),
            pattern: Pattern::Basic(trims),
            count: size.0 / io_size.0.max(1),
            reads: Pattern::Basic(reads),
            afterwards: Some(Pattern::Basic(Basic { mode: PatternMode::Write, ..trims })),
        }
    }

    /// One test.
    fn test_pause(&mut self, batch: Batch) -> Result<PauseTest, AutoError> {
        let Batch { label, pattern, count, reads, afterwards } = batch;
        let mut count_after = self.limits.reads;
        let runs_before = self.rested_reads(&reads)?;
        let batch = self.run(CalibrationRole::PauseTest, 1, pattern, count)?;
        let after = self.run(CalibrationRole::PauseTest, 2, reads.clone(), count_after)?;
        let run_batch = batch.id;
        let mut runs_after = vec![after.id];
        self.perform(vec![Step::Run(batch), Step::Run(after)])?;
        let before_ns = self.responses(&runs_before[runs_before.len() - 1..])?;
        let found = loop {
            let after_ns = self.responses(&runs_after)?;
            let found = lasting(&before_ns, &after_ns);
            let over = found.is_none_or(|l| l.over);
            let cut_short = (after_ns.len() as u64) < count_after;
            if over || cut_short || after_ns.len() as u64 >= self.limits.reads_cap {
                break found;
            }
            let more = after_ns.len() as u64;
            let spec = self.run(CalibrationRole::PauseTest, 2 + runs_after.len(), reads.clone(), more)?;
            count_after += more;
            runs_after.push(spec.id);
            self.perform(vec![Step::Run(spec)])?;
        };
        if let Some(pattern) = afterwards {
            let spec = self.run(CalibrationRole::PauseTest, 2 + runs_after.len(), pattern, count)?;
            self.perform(vec![Step::Run(spec)])?;
        }
        Ok(PauseTest { batch: label, runs_before, run_batch, runs_after, found })
    }

    /// Sequential reads after a rest, again and again until they take no less
    /// time than before.
    fn rested_reads(&mut self, reads: &Pattern) -> Result<Vec<u32>, AutoError> {
        let (mut runs, mut last) = (Vec::new(), f64::INFINITY);
        loop {
            let spec = self.run(CalibrationRole::PauseTest, 0, reads.clone(), self.limits.reads)?;
            runs.push(spec.id);
            let rest = Step::Pause { nanos: self.limits.rest };
            self.perform(vec![rest, Step::Run(spec)])?;
            let reads = self.responses(&runs[runs.len() - 1..])?;
            let total = reads.iter().map(|v| *v as f64).sum::<f64>() / reads.len().max(1) as f64;
            if total >= RESTED * last || runs.len() >= RESTS {
                return Ok(runs);
            }
            last = total;
        }
    }
}

/// What lasts, the reads after being submitted one right after the other:
/// the time between two parts is the tool's own and not counted.
fn lasting(before_ns: &[u64], after_ns: &[u64]) -> Option<LastingEffect> {
    let mut at = 0u64;
    let submit: Vec<u64> = after_ns
        .iter()
        .map(|response| {
            let now = at;
            at = at.saturating_add(*response);
            now
        })
        .collect();
    lasting_effect(before_ns, after_ns, &submit)
}
