//! Which steps of a plan are done again, and which are measured, where runs are
//! missing in its middle.
//!
//! How: a device in virtual time ends with its process, so that what a missing
//! run meets has to be made again: the kept runs before it are done without being
//! kept. A run belongs together with the resets and pauses right before it. On a
//! real device nothing is done again; it is as it is.

use std::ops::Range;
use uflip_measure::{Plan, Step};

/// `steps` of `plan` in spans, in order: true for those to be done again, whose
/// runs are kept, false for those to be measured.
pub(super) fn spans(
    plan: &Plan,
    steps: Range<usize>,
    has: impl Fn(u32) -> bool,
) -> Vec<(bool, Range<usize>)> {
    let mut spans: Vec<(bool, Range<usize>)> = Vec::new();
    let mut from = steps.start;
    for at in steps.clone() {
        let Some(Step::Run(run)) = plan.steps.get(at) else { continue };
        let again = has(run.id);
        match spans.last_mut() {
            Some((same, span)) if *same == again => span.end = at + 1,
            _ => spans.push((again, from..at + 1)),
        }
        from = at + 1;
    }
    if let Some((_, span)) = spans.last_mut() {
        span.end = steps.end;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::{Bytes, Geometry};
    use uflip_measure::{PlanOptions, Preset, make_plan};

    #[test]
    fn kept_runs_before_and_between_missing_ones_are_done_again() {
        let geometry = Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) };
        let plan = make_plan(&PlanOptions::new(Preset::Quick), geometry).unwrap();
        let whole = 0..plan.steps.len();
        assert_eq!(spans(&plan, whole.clone(), |_| false), [(false, whole.clone())]);
        assert_eq!(spans(&plan, whole.clone(), |_| true), [(true, whole.clone())]);
        let found = spans(&plan, whole.clone(), |id| id != 2 && id != 5 && id != 6);
        let kinds: Vec<bool> = found.iter().map(|(again, _)| *again).collect();
        assert_eq!(kinds, [true, false, true, false, true]);
        let joined = found.windows(2).all(|pair| pair[0].1.end == pair[1].1.start);
        assert!(joined && found[0].1.start == 0 && found[4].1.end == whole.end, "{found:?}");
        let of = |span: &Range<usize>| {
            plan.steps[span.clone()].iter().filter(|s| matches!(s, Step::Run(_))).count()
        };
        assert_eq!((of(&found[1].1), of(&found[3].1)), (1, 2));
    }
}
