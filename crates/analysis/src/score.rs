//! What was found on a device, held against its truth, and the sums over many.
//!
//! Method: one [`Tally`] a quantity: found as close as asked, missed, off, or found where
//! it is not. Whose truth it is, a device in virtual time or another, nobody asks here.

pub mod adversarial;

use crate::Profile;
use serde_json::{Value, json};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::detect::interval::batch_means;
use uflip_measure::detect::period::period;
use uflip_measure::run::RunSpec;
use uflip_measure::{Baseline, Plan};

/// How often a quantity was found, and how far off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Devices, or series, that have it.
    pub with: u64,
    /// Found as close as asked.
    pub hit: u64,
    /// Not found.
    pub missed: u64,
    /// Found, but off by more.
    pub off: u64,
    /// Those that do not have it.
    pub without: u64,
    /// Found where it is not.
    pub alarms: u64,
    /// |log2| of found over truth, wherever both are there.
    pub errors_log2: Vec<f64>,
}

impl Tally {
    /// Counts one; within `factor` of the truth is a hit.
    fn count(&mut self, truth: Option<f64>, found: Option<f64>, factor: f64) {
        match (truth, found) {
            (None, None) => self.without += 1,
            (None, Some(_)) => {
                self.without += 1;
                self.alarms += 1;
            }
            (Some(_), None) => {
                self.with += 1;
                self.missed += 1;
            }
            (Some(truth), Some(found)) => {
                self.with += 1;
                let error = (found / truth).log2().abs();
                self.errors_log2.push(error);
                // A hair of room for rounding.
                if error <= factor.log2() + 1e-6 {
                    self.hit += 1;
                } else {
                    self.off += 1;
                }
            }
        }
    }

    fn add(&mut self, other: &Tally) {
        self.with += other.with;
        self.hit += other.hit;
        self.missed += other.missed;
        self.off += other.off;
        self.without += other.without;
        self.alarms += other.alarms;
        self.errors_log2.extend(&other.errors_log2);
    }

    /// Hits among those that have it; None where none has.
    pub fn hit_rate(&self) -> Option<f64> {
        (self.with > 0).then(|| self.hit as f64 / self.with as f64)
    }

    /// Alarms among those that do not have it; None where all have.
    pub fn alarm_rate(&self) -> Option<f64> {
        (self.without > 0).then(|| self.alarms as f64 / self.without as f64)
    }

    /// The median error as a factor from 1 on.
    pub fn median_factor(&self) -> Option<f64> {
        let mut all = self.errors_log2.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).map(|e| e.exp2())
    }

    fn to_json(&self) -> Value {
        json!({
            "with": self.with, "hit": self.hit, "missed": self.missed, "off": self.off,
            "without": self.without, "false_alarms": self.alarms, "median_error_factor": self.median_factor(),
        })
    }
}

/// All that is held against the truth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Start-up of RW, within a power of two; alarms over all four baselines.
    pub start_up: Tally,
    /// Period of RW, within 10 %.
    pub period: Tally,
    /// What lasts, within a factor of two.
    pub lasting: Tally,
    /// Locality area, within a power of two.
    pub area: Tally,
    /// Partitions, within a power of two.
    pub partitions: Tally,
    /// Alignment unit, exactly.
    pub unit: Tally,
    /// Drift of the state by more than 10 %.
    pub drift: Tally,
    /// Pauses between runs shorter than what lasts.
    pub short_pauses: u64,
    /// Intervals of a baseline run's mean, and those that hold the truth.
    pub intervals: u64,
    /// See above.
    pub held: u64,
    /// |relative error| of the means of baselines.
    pub mean_errors: Vec<f64>,
    /// IOs of the plans, of calibration before them, and of the same plans with
    /// the paper's lengths.
    pub ios: u64,
    /// See above.
    pub calibration_ios: u64,
    /// See above.
    pub fixed_ios: u64,
    /// Devices.
    pub devices: u64,
}

/// What is so of a device, as far as it is held against what is found. Times in
/// nanoseconds, lengths in IOs; `None` where the device has no such thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownFigures {
    /// Start-up of random writes.
    pub start_up_ios: Option<u64>,
    /// Period of random writes.
    pub period_ios: Option<f64>,
    /// For how long reads are slow after an expensive write.
    pub lasting_ns: Option<f64>,
    /// The area in which random writes are cheap.
    pub area_bytes: Option<u64>,
    /// Streams of writes that are cheap at once.
    pub partitions: u32,
    /// Writes at multiples of it are aligned.
    pub unit_bytes: Option<u64>,
    /// Means of SR, RR, SW and RW; `None` on a device that drifts.
    pub means_ns: Option<[f64; 4]>,
}

/// What was measured on a device, and what was found.
pub struct MeasuredFigures<'a> {
    /// What it boils down to.
    pub profile: &'a Profile,
    /// What the method found.
    pub calibration: &'a Calibration,
    /// What was planned.
    pub plan: &'a Plan,
    /// The response times of a run, less its first IOs.
    pub responses: &'a dyn Fn(u32, u64) -> Vec<u64>,
}

/// How much more expensive writes had become when the plan's runs began, and at the end.
pub struct Drifted {
    /// At the end of the probe before the plan.
    pub before: f64,
    /// At the end.
    pub after: f64,
}

fn ios(runs: impl Iterator<Item = RunSpec>) -> u64 {
    runs.map(|run| run.io_count * run.work.stream_count().max(1) as u64).sum()
}

/// Holds what was found on one device against its truth.
pub fn score(truth: &KnownFigures, drifted: &Drifted, measured: &MeasuredFigures<'_>, fixed: &Plan) -> Score {
    let mut s = Score { devices: 1, ..Score::default() };
    let (profile, found) = (measured.profile, measured.calibration);
    for baseline in Baseline::ALL {
        let truth = truth.start_up_ios.filter(|_| baseline == Baseline::Rw);
        s.start_up.count(truth.map(|n| n as f64), profile.start_up_ios.of(baseline).map(|n| n as f64), 2.0);
    }
    s.period.count(truth.period_ios, profile.period_ios.rw, 1.1);
    let longest = found.pause.iter().flat_map(|p| &p.tests).filter_map(|t| t.found);
    let longest = longest.map(|l| l.affected_ns as f64).reduce(f64::max);
    s.lasting.count(truth.lasting_ns, longest, 2.0);
    let pause = found.pause.as_ref().map_or(0.0, |p| p.between_runs.0 as f64);
    s.short_pauses = u64::from(truth.lasting_ns.is_some_and(|l| l > pause));
    let number = |n: u64| n as f64;
    s.area.count(truth.area_bytes.map(number), profile.locality.area_bytes.map(|n| n as f64), 2.0);
    let streams = (truth.partitions > 1).then_some(f64::from(truth.partitions));
    // One stream is no finding.
    let count = profile.partitions.count.map(|n| n as f64).filter(|n| *n > 1.0);
    s.partitions.count(streams, count, 2.0);
    s.unit.count(truth.unit_bytes.map(number), profile.alignment.unit_bytes.map(|n| n as f64), 1.0);
    let rise = drifted.after / drifted.before;
    let said = found.drift.as_ref().and_then(|d| d.drift).filter(|d| d.drifted);
    s.drift.count((rise > 1.1).then_some(rise), said.map(|d| d.ratio.ratio), 1.25);
    means(&mut s, truth, measured);
    s.ios = ios(measured.plan.runs().filter(|r| !r.belongs.prepares()).cloned());
    s.calibration_ios = ios(measured.plan.runs().filter(|r| r.belongs.prepares()).cloned());
    s.fixed_ios = ios(fixed.runs().cloned());
    s
}

/// The interval of each baseline run's mean, on devices that do not drift.
fn means(s: &mut Score, truth: &KnownFigures, measured: &MeasuredFigures<'_>) {
    let Some([sr, rr, sw, rw]) = truth.means_ns else { return };
    for (run, baseline) in measured.plan.runs().filter_map(|run| Some((run, run.baseline()?))) {
        let truth = match baseline {
            Baseline::Sr => sr,
            Baseline::Rr => rr,
            Baseline::Sw => sw,
            Baseline::Rw => rw,
        };
        let running = (measured.responses)(run.id, run.io_ignore);
        let Some(interval) = batch_means(&running, period(&running).map(|p| p.ios), 0.95) else { continue };
        s.intervals += 1;
        s.held += u64::from((interval.low_ns..=interval.high_ns).contains(&truth));
        s.mean_errors.push((interval.mean_ns / truth - 1.0).abs());
    }
}

impl Score {
    /// Adds another device's.
    pub fn add(&mut self, other: &Score) {
        let pairs = [
            (&mut self.start_up, &other.start_up),
            (&mut self.period, &other.period),
            (&mut self.lasting, &other.lasting),
            (&mut self.area, &other.area),
            (&mut self.partitions, &other.partitions),
            (&mut self.unit, &other.unit),
            (&mut self.drift, &other.drift),
        ];
        pairs.into_iter().for_each(|(into, from)| into.add(from));
        self.short_pauses += other.short_pauses;
        self.intervals += other.intervals;
        self.held += other.held;
        self.mean_errors.extend(&other.mean_errors);
        self.ios += other.ios;
        self.calibration_ios += other.calibration_ios;
        self.fixed_ios += other.fixed_ios;
        self.devices += other.devices;
    }

    /// Share of intervals that hold the truth; None where there is none.
    pub fn coverage(&self) -> Option<f64> {
        (self.intervals > 0).then(|| self.held as f64 / self.intervals as f64)
    }

    /// The median relative error of a mean.
    pub fn median_mean_error(&self) -> Option<f64> {
        let mut all = self.mean_errors.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// Everything, for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "devices": self.devices,
            "start_up": self.start_up.to_json(),
            "period": self.period.to_json(),
            "lasting": self.lasting.to_json(),
            "pauses_too_short": self.short_pauses,
            "locality_area": self.area.to_json(),
            "partitions": self.partitions.to_json(),
            "alignment_unit": self.unit.to_json(),
            "drift": self.drift.to_json(),
            "intervals": self.intervals, "intervals_that_hold": self.held,
            "median_error_of_means": self.median_mean_error(),
            "ios": { "plan": self.ios, "calibration": self.calibration_ios, "plan_with_fixed_lengths": self.fixed_ios },
        })
    }
}
