//! Making the plan fit a time budget.
//!
//! Method: the plan is made with all values; while its estimate is above what is
//! left, values are dropped evenly from every curve, first and last kept, down to
//! a half; then repeats; then further values down to two a curve. What the user
//! chose by hand is kept. If even that is too long, it is said, and the
//! execution cuts runs short.
//!
//! Units: nanoseconds. State resets are left out of the sum: they cannot be
//! shortened. Source: paper 001, section 4.2 (IOCount determines the time an
//! experiment takes); the budget is this tool's own.

use crate::pattern::Baseline;
use crate::plan::spaces::Spaces;
use crate::plan::{ALL_VALUES, BaselineMeans, Plan, PlanError, PlanOptions, Step, extend};
use uflip_device::Nanos;

/// IOs of the plan's own baseline runs under a budget, at most.
const BASELINE_IOS: f64 = 4_096.0;
/// The share of the time left that one of them may take.
const BASELINE_SHARE: f64 = 0.01;

/// IOs of the plan's own baseline runs in the time left: they are what everything
/// else is compared with, and on a fast device cheap to know well.
pub(super) fn baseline_ios(left: Nanos, mean_ms: &BaselineMeans) -> u64 {
    let slowest = Baseline::ALL.into_iter().map(|b| mean_ms.of(b)).fold(0.0, f64::max);
    (BASELINE_SHARE * left.as_millis_f64() / slowest.max(1e-6)).min(BASELINE_IOS) as u64
}

/// A plan that fits, or the shortest there is.
pub(super) struct Fitted {
    pub(super) plan: Plan,
    pub(super) repeats: u32,
    pub(super) fits: bool,
}

/// Sixteenths of the values and repeats to try, in order.
fn candidates(repeats: u32) -> impl Iterator<Item = (u32, u32)> {
    let half = ALL_VALUES / 2;
    let values = (half..=ALL_VALUES).rev().map(move |values| (values, repeats));
    let repeated = (1..repeats).rev().map(move |repeats| (half, repeats));
    values.chain(repeated).chain((0..half).rev().map(|values| (values, 1)))
}

/// How long the plan's runs and pauses take, state resets apart.
pub(super) fn estimate(plan: &Plan, mean_ms: &BaselineMeans) -> Nanos {
    let mut without = plan.clone();
    without.steps.retain(|step| !matches!(step, Step::Reset { .. }));
    without.estimate(mean_ms)
}

/// The plan for `options` after `first_id` runs, within `left` if that can be.
pub(super) fn fit(
    base: &Plan,
    options: &PlanOptions,
    spaces: &Spaces,
    first_id: u32,
    means: Option<BaselineMeans>,
    left: Option<Nanos>,
) -> Result<Fitted, PlanError> {
    let mut last = None;
    for (values, repeats) in candidates(options.repeats) {
        let options = PlanOptions { values_of_16: values, repeats, ..options.clone() };
        let mut plan = base.clone();
        extend(&mut plan, &options, &mut spaces.clone(), first_id)?;
        let estimate = means.map(|means| estimate(&plan, &means));
        let fits = left.is_none() || estimate.zip(left).is_some_and(|(needed, left)| needed <= left);
        let fitted = Fitted { plan, repeats, fits };
        if fits || estimate.is_none() {
            return Ok(fitted);
        }
        last = Some(fitted);
    }
    // There is at least one candidate: all values and repeats.
    last.ok_or(PlanError::Repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_are_longer_where_that_takes_no_time() {
        let of = |slowest_ms| BaselineMeans { sr: 0.1, rr: 0.1, sw: 0.1, rw: slowest_ms };
        let left = Nanos::from_secs(80);
        assert_eq!(baseline_ios(left, &of(0.1)), 4_096);
        assert_eq!(baseline_ios(left, &of(1.0)), 800);
        // Less than the run's IOCount: that holds then.
        assert_eq!(baseline_ios(left, &of(30.0)), 26);
        assert_eq!(baseline_ios(Nanos::ZERO, &of(0.0)), 0);
    }
}
