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

/// That a long baseline ended before it was long enough.
pub(super) fn ended_early(name: &str, found: &BaselineFound) -> String {
    let ended = format!("{name}: the long baseline ended after {} IOs before", found.ios);
    match found.interval.and_then(|i| i.relative_half_width()) {
        // Narrow, and yet too few IOs were there to trust it, or their halves differ.
        Some(width) if width < 0.05 => {
            format!(
                "{ended} there were enough to tell how well its mean is known (±{:.1} % by these).",
                100.0 * width
            )
        }
        Some(width) => format!("{ended} its mean was known to 5 %; it is ±{:.0} %.", 100.0 * width),
        None => format!("{ended} its mean was known to 5 %; it is unknown."),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_that_ended_early_does_not_contradict_its_own_interval() {
        let found = |interval: serde_json::Value| -> BaselineFound {
            let text = serde_json::json!({
                "runs": [3], "ios": 1088, "start_up": null, "transient_ios": 0, "period": null, "io_ignore": 0,
                "io_count": 1088, "interval": interval, "reason": "too_few", "capped": true,
            });
            serde_json::from_value(text).unwrap()
        };
        let interval = |low: f64, high: f64| {
            serde_json::json!({ "mean_ns": 100.0, "low_ns": low, "high_ns": high, "level": 0.95, "n": 1088,
                "batches": 34, "method": "batch_means" })
        };
        let narrow = ended_early("SW", &found(interval(99.9, 100.1)));
        assert!(narrow.contains("1088 IOs") && !narrow.contains("before its mean was known"), "{narrow}");
        let wide = ended_early("SW", &found(interval(80.0, 120.0)));
        assert!(wide.contains("before its mean was known to 5 %; it is ±20 %"), "{wide}");
        assert!(ended_early("SW", &found(serde_json::Value::Null)).contains("unknown"));
    }
}
