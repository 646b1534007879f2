//! How long a device must be left alone between two runs.
//!
//! Method: sequential reads after a rest, again until they take no less time than
//! the time before (a device may be busy for long after its state was enforced);
//! at once a batch of writes as long as a long
//! baseline's first part, at once sequential reads until the response times are
//! back to normal (`detect/lingering.rs`); the reads after are extended, twice as
//! long each time, until what lingers is over or a cap is hit. The pause is
//! twice the time of the longest effect, and at least a floor. Batches: random
//! writes, and sequential writes by sixteen processes, which many devices turn
//! into scattered writes.
//!
//! Units: IOs, nanoseconds. Source: paper 001, sections 4.3 and 5.1, figure 5.
//! Limits: a batch longer than the test's may leave more behind.

use super::findings::{PauseFound, PauseTest};
use super::{AutoError, Role, Script, words};
use crate::detect::lingering::{Lingering, lingering, pause_ns};
use crate::pattern::{Baseline, Pattern};
use crate::plan::Step;
use uflip_device::Nanos;

/// Processes of the parallel batch: Table 1's highest degree.
const DEGREE: u32 = 16;

/// Reads are rested where they take at least this share of the time before.
const RESTED: f64 = 0.95;
/// Rests, at most.
const RESTS: usize = 6;

impl Script<'_> {
    /// Tests what lingers after the kinds of writes that may be done, and
    /// chooses the pause.
    pub(super) fn test_pauses(&mut self) -> Result<(), AutoError> {
        let mut tests = Vec::new();
        if self.options.pause_between.is_none() && self.allowed(Baseline::Sr) {
            for (baseline, degree) in [(Baseline::Rw, 1), (Baseline::Sw, DEGREE)] {
                if self.allowed(baseline) {
                    tests.extend(self.test_pause(baseline, degree)?);
                }
            }
        }
        let floor = self.limits.pause_floor;
        let longest = tests.iter().filter_map(|t| t.found).max_by_key(|l| l.affected_ns);
        let needed = Nanos(pause_ns(longest.as_ref(), floor.0));
        let between_runs = self.options.pause_between.unwrap_or(needed);
        if tests.is_empty() {
            self.found.notes.push("What lingers after writes is not tested.".to_string());
        }
        if longest.is_some_and(|l| !l.over) {
            self.found.notes.push("What lingers after writes had not ended when the test did.".to_string());
        }
        let needed = if self.options.pause_between.is_some() { between_runs } else { needed };
        let pause = PauseFound { tests, floor, needed, between_runs };
        let news = words::pause(&pause);
        self.found.pause = Some(pause);
        self.bench.found(&self.found, &news)
    }

    /// One test; None where the target has no room for the batch.
    fn test_pause(&mut self, baseline: Baseline, degree: u32) -> Result<Option<PauseTest>, AutoError> {
        let (batch, count) = match (self.basic(baseline), degree) {
            (Pattern::Basic(basic), 2..) => {
                let share = self.limits.first_ios.div_ceil(u64::from(degree));
                (Pattern::Replicated { degree, basic }, share)
            }
            (one, _) => (one, self.limits.first_ios),
        };
        if batch.check(self.options.geometry).is_err() {
            return Ok(None);
        }
        let label = if degree > 1 { format!("{degree} x {baseline}") } else { baseline.to_string() };
        let sr = self.basic(Baseline::Sr);
        let mut count_after = self.limits.reads;
        let runs_before = self.rested_reads()?;
        let batch = self.run(Role::PauseTest, 1, baseline.name(), batch, count)?;
        let after = self.run(Role::PauseTest, 2, "SR", sr.clone(), count_after)?;
        let run_batch = batch.id;
        let mut runs_after = vec![after.id];
        self.perform(vec![Step::Run(batch), Step::Run(after)])?;
        let before_ns = self.responses(&runs_before[runs_before.len() - 1..])?;
        let found = loop {
            let after_ns = self.responses(&runs_after)?;
            let found = lingers(&before_ns, &after_ns);
            let over = found.is_none_or(|l| l.over);
            let cut_short = (after_ns.len() as u64) < count_after;
            if over || cut_short || after_ns.len() as u64 >= self.limits.reads_cap {
                break found;
            }
            let more = after_ns.len() as u64;
            let spec = self.run(Role::PauseTest, 2 + runs_after.len(), "SR", sr.clone(), more)?;
            count_after += more;
            runs_after.push(spec.id);
            self.perform(vec![Step::Run(spec)])?;
        };
        Ok(Some(PauseTest { batch: label, runs_before, run_batch, runs_after, found }))
    }

    /// Sequential reads after a rest, again and again until they take no less
    /// time than before.
    fn rested_reads(&mut self) -> Result<Vec<u32>, AutoError> {
        let (mut runs, mut last) = (Vec::new(), f64::INFINITY);
        loop {
            let sr = self.basic(Baseline::Sr);
            let spec = self.run(Role::PauseTest, 0, "SR", sr, self.limits.reads)?;
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

/// What lingers, the reads after being submitted one right after the other:
/// the time between two parts is the tool's own and not counted.
fn lingers(before_ns: &[u64], after_ns: &[u64]) -> Option<Lingering> {
    let mut at = 0u64;
    let submit: Vec<u64> = after_ns
        .iter()
        .map(|response| {
            let now = at;
            at = at.saturating_add(*response);
            now
        })
        .collect();
    lingering(before_ns, after_ns, &submit)
}
