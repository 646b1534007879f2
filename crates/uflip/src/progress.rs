//! What a person sees while the benchmark runs: a line with a bar for each
//! micro-benchmark on a terminal, one plain line per finished micro-benchmark
//! elsewhere. Drawn between runs only, never while one is measured; but where
//! the live page was asked for, that takes its place ([`crate::live`]).

use crate::describe::round_time;
use crate::live::Live;
use crate::printable;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uflip_device::{Incidents, Nanos};
use uflip_measure::execute::ATTEMPTS;
use uflip_measure::run::{RunSpec, RunStats};

/// The runs of one micro-benchmark (or the baselines) as a person sees them.
struct Group {
    name: String,
    runs: u64,
    done: u64,
    took: Nanos,
    mean: Option<Nanos>,
    bar: ProgressBar,
}

/// The display of one benchmark.
pub struct Display {
    groups: Vec<Group>,
    terminal: bool,
    bars: MultiProgress,
    began: Instant,
    measured: u64,
    total: u64,
    budget: Option<Duration>,
    live: Option<Arc<Live>>,
}

/// The name under which a run is counted.
pub fn group_of(spec: &RunSpec) -> String {
    spec.belongs.section().map_or_else(|| "baselines".into(), |section| section.to_string())
}

impl Display {
    /// For these runs, in order.
    pub fn new<'a>(runs: impl Iterator<Item = &'a RunSpec>, budget: Option<Nanos>) -> Display {
        Display::on(std::io::stderr().is_terminal(), runs, budget)
    }

    /// With bars on a terminal, or without.
    fn on<'a>(terminal: bool, runs: impl Iterator<Item = &'a RunSpec>, budget: Option<Nanos>) -> Display {
        let target =
            if terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{prefix:>13} {bar:24} {pos:>4}/{len:<4} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸ ");
        let mut groups: Vec<Group> = Vec::new();
        for spec in runs {
            let name = group_of(spec);
            if let Some(group) = groups.iter_mut().find(|g| g.name == name) {
                group.runs += 1;
            } else {
                let bar = bars
                    .add(ProgressBar::new(0).with_style(style.clone()).with_prefix(printable::line(&name)));
                groups.push(Group { name, runs: 1, done: 0, took: Nanos::ZERO, mean: None, bar });
            }
        }
        groups.iter().for_each(|g| g.bar.set_length(g.runs));
        let total = groups.iter().map(|g| g.runs).sum();
        let budget = budget.map(Duration::from);
        Display { groups, terminal, bars, began: Instant::now(), measured: 0, total, budget, live: None }
    }

    /// On the live page, which may show more than these runs.
    pub fn on_page<'a>(
        runs: impl Iterator<Item = &'a RunSpec>,
        budget: Option<Nanos>,
        page: &Arc<Live>,
    ) -> Display {
        let mut display = Display::on(false, runs, budget);
        page.expect(display.groups.iter().map(|g| (g.name.as_str(), g.runs)));
        display.live = Some(page.clone());
        display
    }

    /// A run begins.
    pub fn started(&mut self, spec: &RunSpec) {
        if let Some(live) = &self.live {
            return live.started(&group_of(spec), what(spec), spec);
        }
        let left = self.time_left();
        for group in self.groups.iter().filter(|g| self.terminal && !g.bar.is_finished()) {
            let mean = group.mean.map(|m| format!("  last mean {m}")).unwrap_or_default();
            let active = group.name == group_of(spec);
            group.bar.set_message(if active {
                format!("{}{mean}  {left}", printable::line(&what(spec)))
            } else {
                mean
            });
        }
    }

    /// A run that took `elapsed` is stored.
    pub fn finished(&mut self, spec: &RunSpec, stats: &RunStats, elapsed: Nanos) {
        if let Some(live) = &self.live {
            return live.finished(&group_of(spec), &what(spec), stats);
        }
        if self.total == 0 {
            return;
        }
        self.measured += 1;
        let left = self.time_left();
        let Some(group) = self.groups.iter_mut().find(|g| g.name == group_of(spec)) else { return };
        group.done += 1;
        group.took = group.took + elapsed;
        group.mean = stats.running.mean_ns.map(|m| Nanos(m as u64));
        let (took, whole) = (group.took, group.done == group.runs);
        if self.terminal {
            group.bar.set_position(group.done);
            if whole {
                group.bar.finish_with_message(format!("done in {took}"));
            }
        } else if whole {
            let mean = group.mean.map_or("nothing measured".to_string(), |m| format!("mean {m}"));
            crate::say!(
                "{:>13}: {} runs in {took}, last {} {mean}; {left}",
                group.name,
                group.runs,
                what(spec)
            );
        }
    }

    /// A run that something befell begins anew.
    pub fn again(&self, spec: &RunSpec, incidents: &Incidents, attempt: u32) {
        self.note(&format!(
            "run {} ({}) is measured again, {attempt} of at most {ATTEMPTS}: {incidents}",
            spec.id,
            what(spec)
        ));
    }

    /// Something other than a run takes time.
    pub fn note(&self, text: &str) {
        if let Some(live) = &self.live {
            live.note(text);
        } else if self.terminal {
            // A failed draw of a progress line loses nothing that is measured.
            let _ = self.bars.println(printable::lines(text));
        } else {
            crate::say!("{text}");
        }
    }

    /// Ends the display, leaving its lines.
    pub fn close(self) {
        for group in self.groups.iter().filter(|g| !g.bar.is_finished()) {
            group.bar.abandon();
        }
    }

    fn time_left(&self) -> String {
        if self.measured == 0 {
            return String::new();
        }
        let spent = self.began.elapsed();
        let even = spent.mul_f64(self.total.saturating_sub(self.measured) as f64 / self.measured as f64);
        let left = self.budget.map_or(even, |b| even.min(b.saturating_sub(spent)));
        format!("about {} left", round_time(left))
    }
}

/// `RW IOSize 64K`, `SR/RW Ratio 4 : 1`, or the baseline's name.
fn what(spec: &RunSpec) -> String {
    match spec.belongs.varying() {
        Some((parameter, _, label)) => format!("{} {parameter} {label}", spec.curve_name()),
        None => spec.curve_name().to_string(),
    }
}
