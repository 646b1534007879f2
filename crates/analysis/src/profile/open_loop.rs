//! Runs whose IOs were due at instants of their own.
//!
//! What: an open loop's response times count from the intended instants, so they hold
//! the time that IOs waited for those before them. How: such a run is no baseline and
//! no point of a curve; it enters no figure, class or hint, and is told by itself. An
//! IO is late from [`uflip_measure::run::LATE_FROM`] on. Source: uFLIP's levels are
//! those of consecutive IOs (paper 001, section 3.1).

use super::finding::{Finding, FindingCode, Severity, finding};
use uflip_device::Nanos;
use uflip_store::contents::RunRow;

/// True for a run that levels are taken from.
pub(super) fn is_closed(row: &RunRow) -> bool {
    !row.spec.work.is_open_loop()
}

/// How late its IOs were submitted, in words; None in a closed loop.
pub fn lateness(row: &RunRow) -> Option<String> {
    let late = row.stats.late.as_ref()?;
    let share = late.late_ios.map(|ios| {
        format!(
            "{:.1} % more than {} after it, ",
            100.0 * ios as f64 / late.n.max(1) as f64,
            uflip_measure::run::LATE_FROM
        )
    });
    let mean = Nanos(late.mean_ns.round() as u64);
    Some(format!(
        "IOs were submitted {mean} after the intended instant on average, {}at most {}",
        share.unwrap_or_default(),
        Nanos(late.max_ns)
    ))
}

/// Code `open_loop`, one finding a run.
pub(super) fn findings(rows: &[RunRow]) -> Vec<Finding> {
    let open = rows.iter().filter(|row| !is_closed(row));
    open.map(|row| {
        let late = lateness(row).map_or_else(String::new, |text| format!("; {text}"));
        let text = format!(
            "Run {} is an open loop ({}){late}. Its response times hold this wait: it is no baseline and no point \
             of a curve.",
            row.spec.id, row.spec.work
        );
        finding(FindingCode::OpenLoop, Severity::Info, text, vec![row.spec.id])
    })
    .collect()
}
