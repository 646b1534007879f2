//! What of a plan is left on a real device, where runs are missing. On one in virtual
//! time [`crate::execute`] does what is done again.

use crate::plan::{Plan, Step};
use std::ops::Range;

/// The first of `steps` that is still to be done: pauses and resets right before
/// the first missing run are not known to be done.
pub fn first_to_do(plan: &Plan, steps: Range<usize>, has: impl Fn(u32) -> bool) -> usize {
    let missing = |step: &Step| matches!(step, Step::Run(run) if !has(run.id));
    let of = &plan.steps;
    let any_run = of[steps.clone()].iter().any(|step| matches!(step, Step::Run(_)));
    let Some(first) = of[steps.clone()].iter().position(missing).map(|at| steps.start + at) else {
        return if any_run { steps.end } else { steps.start };
    };
    let before = of[steps.start..first].iter().rposition(|step| matches!(step, Step::Run(_)));
    before.map_or(steps.start, |at| steps.start + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micro::Preset;
    use crate::plan::{PlanOptions, make_plan};
    use uflip_device::{Bytes, Geometry};

    fn quick() -> Plan {
        let geometry = Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) };
        make_plan(&PlanOptions::new(Preset::Quick), geometry).unwrap()
    }

    #[test]
    fn the_pause_before_the_first_missing_run_is_still_to_be_done() {
        let plan = quick();
        let whole = 0..plan.steps.len();
        let at =
            |id: u32| plan.steps.iter().position(|s| matches!(s, Step::Run(run) if run.id == id)).unwrap();
        assert_eq!(first_to_do(&plan, whole.clone(), |id| id < 3), at(2) + 1);
        assert!(at(2) + 1 < at(3), "there is a pause between them");
        assert_eq!(first_to_do(&plan, whole.clone(), |_| true), whole.end);
        assert_eq!(first_to_do(&plan, whole, |_| false), 0);
    }
}
