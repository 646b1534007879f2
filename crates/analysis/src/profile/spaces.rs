//! Sequential writes to space that earlier sequential writes of the same state
//! used: the runs are then not independent of each other.
//!
//! Source: paper 001, section 4.2: sequential writes "are delayed and grouped
//! together in such a way that their allocated target space does not overlap
//! with other accesses".

use std::collections::BTreeMap;
use uflip_measure::job::{JobRun, Role};
use uflip_measure::pattern::{Baseline, Basic, PatternMode};
use uflip_measure::{Plan, State, Step};

/// Ranges of bytes, apart from each other: where each begins, and its end.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, last)| *last > start)
    }

    fn add(&mut self, mut start: u64, mut end: u64) {
        while let Some((&from, &to)) = self.0.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }
}

/// Where a pattern writes sequentially: from, to.
fn space(basic: &Basic) -> Option<(u64, u64)> {
    let size = basic.target_size.filter(|_| basic.mode == PatternMode::Write && !basic.is_random())?;
    Some((basic.target_offset.0, basic.target_offset.0.saturating_add(size.0)))
}

/// The runs of `plan` that write sequentially where a run before them did since
/// the last reset.
pub(super) fn reused(plan: &Plan) -> Vec<u32> {
    let (mut used, mut found) = (Ranges::default(), Vec::new());
    for step in &plan.steps {
        match step {
            Step::Reset { state } if *state != State::None => used = Ranges::default(),
            // A job's fills are what was asked for, and no results; they write the space anew.
            Step::Run(spec) if spec.job().is_some_and(|job| job.role == Role::Before) => {
                if spec.job().is_some_and(|job| !is_burst(job)) {
                    used = Ranges::default();
                }
            }
            Step::Run(spec) => {
                let spaces: Vec<(u64, u64)> = spec.work.basics().into_iter().filter_map(space).collect();
                if spaces.iter().any(|(start, end)| used.overlaps(*start, *end)) {
                    found.push(spec.id);
                }
                spaces.into_iter().for_each(|(start, end)| used.add(start, end));
            }
            Step::Reset { .. } | Step::Pause { .. } => {}
        }
    }
    found
}

/// True for the burst before an experiment, not the fill.
fn is_burst(job: &JobRun) -> bool {
    job.baseline != Baseline::Sw
        || job.burst.is_some_and(|burst| (burst.baseline, burst.block) == (Baseline::Sw, job.block))
}

/// The lines of a job of which some run was not preceded by a fill; None where the
/// plan is no job's.
pub(super) fn not_filled(plan: &Plan) -> Option<Vec<String>> {
    let (mut filled, mut bare, mut is_job) = (None, Vec::new(), false);
    for spec in plan.runs() {
        let Some(job) = spec.job() else { continue };
        is_job = true;
        if job.role == Role::Measured {
            if filled != Some(job.line_number) && !bare.contains(&job.line) {
                bare.push(job.line.clone());
            }
        } else if job.role == Role::Before && !is_burst(job) {
            filled = Some(job.line_number);
        }
    }
    is_job.then_some(bare)
}

/// The lines that runs of a job belong to, as the end of a sentence; nothing elsewhere.
pub(super) fn lines_of(plan: &Plan, runs: &[u32]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for job in plan.runs().filter(|spec| runs.contains(&spec.id)).filter_map(|spec| spec.job()) {
        if !lines.contains(&job.line.as_str()) {
            lines.push(&job.line);
        }
    }
    if lines.is_empty() { String::new() } else { format!(" (lines {})", lines.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::{Ranges, lines_of, not_filled, reused};
    use uflip_device::Bytes;

    #[test]
    fn ranges_that_touch_are_apart_and_ranges_that_meet_become_one() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20);
        assert!(!ranges.overlaps(20, 30) && !ranges.overlaps(0, 10));
        assert!(ranges.overlaps(19, 30) && ranges.overlaps(0, 11) && ranges.overlaps(12, 13));
        ranges.add(30, 40);
        ranges.add(15, 35);
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(10, 40)]);
    }

    #[test]
    fn a_jobs_fills_are_asked_for_and_lines_without_one_are_named() {
        let geometry = uflip_device::Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };
        let plan = |text: &str| {
            let job = uflip_measure::job::parse(text).expect("a job");
            uflip_measure::job::expand(&job, "t", geometry, 1).expect("a plan").plan
        };
        let both = plan("a sw bs=4K,8K count=8 before=fill(1M)\nb rw bs=4K count=8 before=fill(1M)\n");
        assert_eq!((not_filled(&both), reused(&both)), (Some(vec![]), vec![]));
        let one = plan("a sw bs=4K,8K count=8\nb rw bs=4K count=8 before=fill(1M)\n");
        assert_eq!(not_filled(&one), Some(vec!["a".to_string()]));
        let twice = reused(&one);
        assert_eq!(lines_of(&one, &twice), if twice.is_empty() { "" } else { " (lines a)" });
        let no_job = uflip_measure::make_plan(
            &uflip_measure::PlanOptions::new(uflip_measure::Preset::Quick),
            geometry,
        );
        assert_eq!(not_filled(&no_job.expect("a plan")), None);
    }
}
