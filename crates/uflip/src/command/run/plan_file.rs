//! A plan that somebody edited: read, and checked before anything is made.

use crate::usage;
use anyhow::Context;
use std::collections::HashSet;
use std::path::Path;
use uflip_device::Geometry;
use uflip_measure::Plan;

/// The plan in `file` for a target of this geometry.
///
/// # Errors
/// [`crate::Usage`] where it is no plan, or none for this target.
pub(super) fn read(file: &Path, geometry: Geometry) -> anyhow::Result<Plan> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the plan {name}"))?;
    let mut plan: Plan = serde_json::from_str(&text)
        .map_err(|e| usage(format!("{name} is no plan: {e}; type uflip plan --json to see one")))?;
    let known = uflip_measure::plan::FORMAT;
    if plan.format != known {
        return Err(usage(format!(
            "{name} is a plan of format {}; this uflip reads format {known}",
            plan.format
        )));
    }
    let mut ids = HashSet::new();
    for run in plan.runs() {
        let wrong = |what: String| Err(usage(format!("{name}: run {}: {what}", run.id)));
        if !ids.insert(run.id) {
            return wrong("another run has the same id; number them apart".to_string());
        }
        if run.io_count <= run.io_ignore {
            return wrong(format!(
                "io_count {} leaves nothing after io_ignore {}",
                run.io_count, run.io_ignore
            ));
        }
        if let Err(error) = run.pattern.check(geometry) {
            return wrong(error.to_string());
        }
    }
    if ids.is_empty() {
        return Err(usage(format!("{name} has no runs")));
    }
    plan.geometry = geometry;
    Ok(plan)
}
