//! What a resume could not do again.
//!
//! Method: a real device's clock counts from when its session opened it. Where it goes
//! back from one run to the next by the calendar, another session began: the device
//! rested, or was used, for a time that nobody knows, and what was done before is not
//! done again but for the fill or burst right before a job's run. A device in virtual
//! time is brought to where it was, so that there is nothing to say of it.

use super::finding::{Finding, FindingCode, Severity, finding};
use uflip_store::contents::RunRow;

/// Code `resumed`, one finding for all sessions after the first.
pub(super) fn resumed(runs: &[RunRow]) -> Option<Finding> {
    let mut real: Vec<(u64, &RunRow)> =
        runs.iter().filter_map(|row| Some((row.outcome.started_unix_ns?, row))).collect();
    real.sort_by_key(|(at, row)| (*at, row.spec.id));
    let goes_back = |pair: &&[(u64, &RunRow)]| pair[1].1.outcome.started < pair[0].1.outcome.started;
    let firsts: Vec<u32> = real.windows(2).filter(goes_back).map(|pair| pair[1].1.spec.id).collect();
    let named: Vec<String> = firsts.iter().take(3).map(u32::to_string).collect();
    let more = if firsts.len() > named.len() { ", …" } else { "" };
    let text = format!(
        "The measurement was interrupted and gone on with at run {}{more}: the device met these runs after a time \
         of its own, not right after the runs before them.",
        named.join(", ")
    );
    (!firsts.is_empty()).then(|| finding(FindingCode::Resumed, Severity::Info, text, firsts))
}
