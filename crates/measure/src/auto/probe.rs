//! The state probe: is the device's state steady before the plan, and is it the
//! same after it?
//!
//! Method: rounds of the RW baseline over the whole device until the SNIA
//! criterion holds on their means (`detect/steady.rs`), or their limit is hit,
//! which is said. After the plan as many rounds as the criterion's window has;
//! the two levels are compared with their intervals (`detect/drift.rs`). The
//! first IOs after the plan's pause are left out where RW has a start-up phase, as
//! the earlier window has none.
//!
//! Units: nanoseconds, rounds. Source: paper 001, section 4.1 (results from an
//! unknown state are meaningless); SNIA SSS PTS for the criterion. Limits: only
//! random writes are probed; sequential ones may have a state of their own.

use super::findings::DriftFound;
use super::{AutoError, CalibrationRole, Script, words};
use crate::detect::drift::{Level, drift};
use crate::detect::interval::{MeanInterval, batch_means};
use crate::detect::period::period;
use crate::detect::steady::{SteadyRule, steady};
use crate::pattern::Baseline;
use crate::plan::Step;
use uflip_device::Nanos;

/// A change of the state that does not matter: what the criterion lets a steady
/// state rise within its window.
const TOLERANCE: f64 = 0.1;

impl Script<'_> {
    /// Performs `first`, then rounds of the probe until the state is steady.
    pub(super) fn probe_state(&mut self, first: Vec<Step>) -> Result<(), AutoError> {
        if !self.allowed(Baseline::Rw) {
            self.found.notes.push("The state is not probed: random writes are not asked for.".to_string());
            if !first.is_empty() {
                self.perform(first)?;
            }
            return self.bench.found(&self.found, "state: not probed, as RW is not asked for");
        }
        let mut steps = first;
        let mut series = Vec::new();
        loop {
            let number = self.found.state.runs.len();
            let pattern = self.basic(Baseline::Rw);
            let spec = self.run(CalibrationRole::StateBefore, number, pattern, self.limits.probe_ios)?;
            let id = spec.id;
            steps.push(Step::Run(spec));
            self.perform(std::mem::take(&mut steps))?;
            let round = self.responses(&[id])?;
            let state = &mut self.found.state;
            state.runs.push(id);
            state.round_means_ns.push(mean(&round));
            series.push(round);
            state.steady = steady(&state.round_means_ns, &SteadyRule::default());
            if state.steady.is_some_and(|s| s.steady) {
                break;
            }
            if state.runs.len() >= self.limits.probe_rounds as usize {
                state.capped = true;
                break;
            }
        }
        let window = series[series.len().saturating_sub(self.window())..].concat();
        self.found.state.level = level(&window);
        let state = &self.found.state;
        let (rounds, news) = (state.runs.len(), words::state(state));
        if state.capped {
            self.found.notes.push(format!(
                "The state was not steady after {rounds} rounds of {} random writes.",
                self.limits.probe_ios
            ));
        }
        self.bench.found(&self.found, &news)
    }

    /// How long the probe after the plan should take.
    pub(super) fn probe_time(&self) -> Nanos {
        let mean = self.found.state.steady.map_or(0.0, |s| s.mean_ns);
        Nanos((mean * (self.limits.probe_ios as usize * self.window()) as f64) as u64)
    }

    /// The probe once more, and what changed.
    pub(super) fn probe_again(&mut self) -> Result<(), AutoError> {
        if self.found.state.runs.is_empty() {
            return Ok(());
        }
        let pause = self.found.pause.as_ref().map_or(self.limits.pause_floor, |p| p.between_runs);
        let mut steps = vec![Step::Pause { nanos: pause }];
        let mut after = Vec::new();
        for number in 0..self.window() {
            let pattern = self.basic(Baseline::Rw);
            let spec = self.run(CalibrationRole::StateAfter, number, pattern, self.limits.probe_ios)?;
            after.push(spec.id);
            steps.push(Step::Run(spec));
        }
        self.perform(steps)?;
        let series = self.responses(&after)?;
        let ignore = self.found.baselines.get(&Baseline::Rw).map_or(0, |b| b.io_ignore as usize);
        let found = level(&series[ignore.min(series.len() / 2)..]);
        let before = self.found.state.level;
        let drift = before
            .zip(found)
            .and_then(|(before, after)| drift(&Level::from(&before), &Level::from(&after), TOLERANCE));
        let news = match drift {
            Some(d) if d.drifted => {
                let text = format!("The state drifted: RW costs {:.2} times what it did.", d.ratio.ratio);
                self.found.notes.push(text.clone());
                text
            }
            Some(d) if d.stable => format!("state after the plan: the same, RW {:.2} times", d.ratio.ratio),
            Some(d) => format!(
                "state after the plan: RW {:.2} times, between {:.2} and {:.2}",
                d.ratio.ratio, d.ratio.low, d.ratio.high
            ),
            None => "state after the plan: too few IOs to compare".to_string(),
        };
        let runs = &self.found.state.runs;
        let before = runs[runs.len().saturating_sub(self.window())..].to_vec();
        self.found.drift = Some(DriftFound { before, after, level: found, drift });
        self.bench.found(&self.found, &news)
    }
}

fn mean(values: &[u64]) -> f64 {
    values.iter().map(|v| *v as f64).sum::<f64>() / values.len().max(1) as f64
}

fn level(series: &[u64]) -> Option<MeanInterval> {
    batch_means(series, period(series).map(|p| p.ios), 0.95)
}
