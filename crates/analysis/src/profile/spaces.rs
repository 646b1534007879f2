//! Sequential writes to space that earlier sequential writes of the same state
//! used: the runs are then not independent of each other.
//!
//! Source: paper 001, section 4.2: sequential writes "are delayed and grouped
//! together in such a way that their allocated target space does not overlap
//! with other accesses".

use std::collections::BTreeMap;
use uflip_measure::pattern::{Basic, Mode};
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
    let size = basic.target_size.filter(|_| basic.mode == Mode::Write && !basic.is_random())?;
    Some((basic.target_offset.0, basic.target_offset.0.saturating_add(size.0)))
}

/// The runs of `plan` that write sequentially where a run before them did since
/// the last reset.
pub(super) fn reused(plan: &Plan) -> Vec<u32> {
    let (mut used, mut found) = (Ranges::default(), Vec::new());
    for step in &plan.steps {
        match step {
            Step::Reset { state } if *state != State::None => used = Ranges::default(),
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

#[cfg(test)]
mod tests {
    use super::Ranges;

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
}
