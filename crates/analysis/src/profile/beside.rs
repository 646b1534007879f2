//! What the probes beside the runs said: what the device counted of its own work,
//! and what else went on.
//!
//! Method: write amplification is the bytes programmed for each byte that the host
//! wrote, energy that of all IOs of the runs, over the sums of all runs in question
//! (`device::counters` says what is counted when). None where the device does not
//! tell. A run is disturbed by the rule of `measure::auto::interference`; folders of
//! before the probes have it in their calibration only.

use super::evidence::{Evidence, Per, rounded};
use super::facts::Facts;
use super::finding::{Finding, FindingCode, Severity, finding};
use serde::{Deserialize, Serialize};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::auto::interference::Disturbed;
use uflip_store::contents::RunRow;

/// What a device's own work came to, as it tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceWork {
    /// Bytes programmed for each byte that the host wrote, of each baseline.
    pub write_amplification: Per<f64>,
    /// Energy of an IO, of each baseline, in microjoules.
    pub energy_uj_per_io: Per<f64>,
    /// Runs of which anything is told.
    pub runs: Option<u64>,
    /// Write amplification over all of them.
    pub write_amplification_of_all: Option<f64>,
    /// Energy of all of them, in joules.
    pub energy_j: Option<f64>,
}

impl DeviceWork {
    /// What all runs came to, in a sentence; None where the device does not tell.
    pub fn sentence(&self) -> Option<String> {
        let runs = self.runs?;
        let plural = if runs == 1 { "" } else { "s" };
        let amplification = self.write_amplification_of_all.map(|wa| format!("write amplification {wa}"));
        let energy = self.energy_j.map(|joules| format!("{joules} J"));
        let all: Vec<String> = amplification.into_iter().chain(energy).collect();
        (!all.is_empty()).then(|| {
            format!(
                "Within {runs} run{plural}: {}; what is programmed in pauses and after resets is not a run's.",
                all.join(", ")
            )
        })
    }
}

/// Write amplification, and energy of an IO in microjoules, of these runs: the one rule
/// for a run, the repeats of a point and a baseline.
pub fn of_runs<'a>(rows: impl Iterator<Item = &'a RunRow>) -> (Option<f64>, Option<f64>) {
    let sum = Sum::of(rows);
    (sum.write_amplification(), sum.energy_uj_per_io())
}

/// Sums over runs; None where no run tells.
#[derive(Default)]
struct Sum {
    runs: u64,
    written_and_programmed: Option<(f64, f64)>,
    energy_uj: Option<f64>,
    /// Of the runs that tell their energy.
    ios: u64,
}

impl Sum {
    fn of<'a>(rows: impl Iterator<Item = &'a RunRow>) -> Sum {
        let mut sum = Sum::default();
        for row in rows {
            let Some(counted) = &row.outcome.probes.counters else { continue };
            sum.runs += 1;
            if let (Some(written), Some(programmed)) = (counted.host_written, counted.flash_programmed) {
                let (w, p) = sum.written_and_programmed.unwrap_or_default();
                sum.written_and_programmed = Some((w + written.0 as f64, p + programmed.0 as f64));
            }
            if let Some(energy) = counted.energy_uj {
                sum.energy_uj = Some(sum.energy_uj.unwrap_or(0.0) + energy);
                sum.ios += row.outcome.end.ios;
            }
        }
        sum
    }

    fn write_amplification(&self) -> Option<f64> {
        let written_any = self.written_and_programmed.filter(|(written, _)| *written > 0.0);
        written_any.map(|(written, programmed)| rounded(programmed / written))
    }

    fn energy_uj_per_io(&self) -> Option<f64> {
        self.energy_uj.filter(|_| self.ios > 0).map(|energy| rounded(energy / self.ios as f64))
    }
}

/// `device_work`: rule "device-work".
pub(super) fn device_work(facts: &Facts, runs: &[RunRow]) -> DeviceWork {
    let mut work = DeviceWork::default();
    for b in &facts.baselines {
        let own = || runs.iter().filter(|row| b.runs.contains(&row.spec.id));
        let sum = Sum::of(own());
        let evidence = || Evidence::new("device-work", b.runs.iter().copied());
        if let Some(amplification) = sum.write_amplification() {
            work.write_amplification.set(b.baseline, Some(amplification), evidence());
        }
        if let Some(energy) = sum.energy_uj_per_io() {
            work.energy_uj_per_io.set(b.baseline, Some(energy), evidence().with_n(sum.ios));
        }
    }
    let all = Sum::of(runs.iter());
    work.runs = (all.runs > 0).then_some(all.runs);
    work.write_amplification_of_all = all.write_amplification();
    work.energy_j = all.energy_uj.map(|uj| rounded(uj / 1e6));
    work
}

/// What else went on, as findings.
pub(super) fn findings(runs: &[RunRow], calibration: Option<&Calibration>) -> Vec<Finding> {
    let found = disturbed(runs, calibration);
    other_load(&found).into_iter().chain(cpu_frequency(&found)).collect()
}

/// The runs beside which something was going on that matters.
fn disturbed(runs: &[RunRow], calibration: Option<&Calibration>) -> Vec<Disturbed> {
    let of_row = |row: &RunRow| {
        let found = row.outcome.probes.interference.clone();
        found.filter(|found| found.matters(row.outcome.end.ios))
    };
    let mut found: Vec<Disturbed> = runs.iter().filter_map(of_row).collect();
    for before in calibration.into_iter().flat_map(|calibration| &calibration.interference) {
        if !found.iter().any(|known| known.run == before.run) {
            found.push(before.clone());
        }
    }
    found.sort_by_key(|found| found.run);
    found
}

/// Code `other_load`.
fn other_load(found: &[Disturbed]) -> Option<Finding> {
    let busy = |d: &&Disturbed| d.cpu_mhz.is_none() && d.throttles.is_none();
    let runs: Vec<u32> = found.iter().filter(busy).map(|d| d.run).collect();
    let other: u64 = found.iter().filter(busy).filter_map(|d| d.other_ios).sum();
    let stalls = found.iter().filter(busy).filter_map(|d| d.cpu_stall_share);
    let stalled = stalls.max_by(f64::total_cmp).unwrap_or(0.0);
    let ios = (other > 0).then(|| format!("{other} IOs of others on the disk"));
    let waited = (stalled >= 0.005)
        .then(|| format!("tasks waited for a processor up to {:.0} % of a run's time", stalled * 100.0));
    let what: Vec<String> = ios.into_iter().chain(waited).collect();
    let text = format!(
        "Something else was active during {} runs ({}); their figures contain it.",
        runs.len(),
        what.join(", ")
    );
    (!runs.is_empty()).then(|| finding(FindingCode::OtherLoad, Severity::Warning, text, runs))
}

/// Code `cpu_frequency`.
fn cpu_frequency(found: &[Disturbed]) -> Option<Finding> {
    let unsteady = |d: &&Disturbed| d.cpu_mhz.is_some() || d.throttles.is_some();
    let runs: Vec<u32> = found.iter().filter(unsteady).map(|d| d.run).collect();
    let all = found.iter().filter_map(|d| d.cpu_mhz).flatten();
    let ends = all.fold(None, |ends: Option<(f64, f64)>, mhz| {
        Some(ends.map_or((mhz, mhz), |(low, high)| (low.min(mhz), high.max(mhz))))
    });
    let changed = ends.map(|(low, high)| format!("its clock ran between {low:.0} and {high:.0} MHz"));
    let throttles: u64 = found.iter().filter_map(|d| d.throttles).sum();
    let hot = (throttles > 0).then(|| format!("it was throttled {throttles} times for its heat"));
    let what: Vec<String> = changed.into_iter().chain(hot).collect();
    let text = format!(
        "The processor changed its pace during {} runs: {}. Short response times contain it; set the frequency \
         governor to performance.",
        runs.len(),
        what.join(", ")
    );
    (!runs.is_empty()).then(|| finding(FindingCode::CpuFrequency, Severity::Warning, text, runs))
}
