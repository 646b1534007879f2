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

use crate::plan::spaces::Spaces;
use crate::plan::{ALL_VALUES, BaselineMeans, Plan, PlanError, PlanOptions, Step, extend};
use uflip_device::Nanos;

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
