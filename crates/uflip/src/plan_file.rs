//! Plans that come from outside: one that somebody edited, and the one in a
//! results folder. Both are checked in one place ([`uflip_measure::plan::check`])
//! before anything is made.

use crate::target::Target;
use crate::{input, usage};
use anyhow::bail;
use std::path::Path;
use uflip_device::Geometry;
use uflip_measure::Plan;
use uflip_measure::plan::check::{check, check_kept};
use uflip_store::StoreContents;

/// The plan in `file` for a target of this geometry.
///
/// # Errors
/// [`crate::Usage`] where it is no plan, or none for this target.
pub fn read(file: &Path, target: &Target, geometry: Geometry) -> anyhow::Result<Plan> {
    let name = file.display();
    let text = input::text(file, input::PLAN, "a plan")?;
    let plan: Plan = serde_json::from_str(&text)
        .map_err(|e| usage(format!("{name} is no plan: {e}; type uflip plan --json to see one")))?;
    fits(&plan, &name, geometry)?;
    if plan.runs().next().is_none() {
        return Err(usage(format!("{name} has no runs; type uflip plan --json to see a plan")));
    }
    if plan.target != target.to_string() {
        crate::say!("note: {name} was made for {}, and is measured on {target}", plan.target);
    }
    Ok(plan)
}

/// Whether the plan called `name` is one for this target.
///
/// # Errors
/// [`crate::Usage`] with the first step that is not.
pub fn fits(plan: &Plan, name: impl std::fmt::Display, geometry: Geometry) -> anyhow::Result<()> {
    check(plan, geometry).map_err(|fault| usage(format!("{name}: {fault}")))
}

/// The plan of a results folder, with which the runs there were made.
///
/// # Errors
/// Where it is none (any more).
pub fn stored(contents: &StoreContents) -> anyhow::Result<Plan> {
    let path = contents.dir.join("plan.json");
    let name = path.display();
    if contents.manifest.tool != "uflip" {
        bail!("{} was made by {:?} and not by uflip", contents.dir.display(), contents.manifest.tool);
    }
    let Some(plan) = contents.plan.clone() else {
        let told = contents.damage.iter().find(|damage| damage.is_of_plan());
        bail!("{name} is no plan: {}", told.map_or("put it back as it was", |damage| damage.what.as_str()));
    };
    let kept = contents.runs.iter().map(|row| &row.spec);
    let checked = check(&plan, plan.geometry).and_then(|()| check_kept(&plan, kept));
    match checked {
        Ok(()) => Ok(plan),
        Err(fault) => bail!("{name}: {fault}"),
    }
}
