//! What was found, in words: a line each.

use super::findings::{BaselineFound, Calibration, PauseFound, PlanFound, StateFound};
use std::fmt;
use uflip_device::Nanos;

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", state(&self.state))?;
        if let Some(found) = &self.pause {
            writeln!(f, "{}", pause(found))?;
        }
        for (name, found) in &self.baselines {
            writeln!(f, "{}", baseline(name.name(), found))?;
        }
        if let Some(found) = &self.plan {
            writeln!(f, "{}", plan(found))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// The state and how it was reached.
pub(super) fn state(state: &StateFound) -> String {
    let level = state.steady.map_or("unknown".to_string(), |s| Nanos(s.mean_ns as u64).to_string());
    let verdict = if state.capped { "not steady" } else { "steady" };
    format!("state {}: {verdict} after {} rounds, RW {level}", state.enforced, state.runs.len())
}

/// What a long baseline tells.
pub(super) fn baseline(name: &str, found: &BaselineFound) -> String {
    let mean = found.interval.map_or("unknown".to_string(), |i| {
        let width = i.relative_half_width().unwrap_or(0.0);
        format!("{} ±{:.1} %", Nanos(i.mean_ns as u64), 100.0 * width)
    });
    let start_up = found.start_up.map_or("no start-up".to_string(), |s| format!("start-up {} IOs", s.ios));
    let period = found.period.map_or("no period".to_string(), |p| format!("period {:.1} IOs", p.ios));
    let capped = if found.capped { " (capped)" } else { "" };
    format!(
        "{name}: mean {mean}, {start_up}, {period}: IOIgnore {}, IOCount {}{capped}",
        found.io_ignore, found.io_count
    )
}

/// What the plan comes to.
pub(super) fn plan(plan: &PlanFound) -> String {
    let time = plan.estimate.map_or(String::new(), |e| format!(", about {e} by the calibration"));
    let dropped = match plan.dropped.len() {
        0 => String::new(),
        n => {
            let some: Vec<String> = plan
                .dropped
                .iter()
                .take(6)
                .map(|d| format!("{} {} {}", d.micro_benchmark, d.baseline, d.label))
                .collect();
            let more = if n > 6 { ", …" } else { "" };
            format!("; {n} values left out to stay within the time: {}{more}", some.join(", "))
        }
    };
    format!("plan: {} runs, {} IOs{time}{dropped}", plan.runs, plan.ios)
}

/// The chosen pause, in words.
pub(super) fn pause(pause: &PauseFound) -> String {
    let what: Vec<String> = pause
        .tests
        .iter()
        .map(|test| match &test.found {
            Some(l) => {
                let open = if l.over { "" } else { " or more" };
                format!(
                    "{} has a lasting effect on {} reads, {}{open}",
                    test.batch,
                    l.affected_ios,
                    Nanos(l.affected_ns)
                )
            }
            None => format!("no lasting effect found after {}", test.batch),
        })
        .collect();
    let what = if what.is_empty() { "not tested".to_string() } else { what.join("; ") };
    format!("pause between runs {}: {what}", pause.between_runs)
}
