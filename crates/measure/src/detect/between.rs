//! How far the means of equal runs are apart beyond what their own intervals
//! say: what changes on the device or the machine between runs.
//!
//! Method: runs of the same pattern are a group. The logarithms of their means
//! are taken for values with a known variance each (from the run's interval)
//! and a common variance between runs, which is found by R. C. Paule and J.
//! Mandel, "Consensus values and weighting factors", Journal of Research of the
//! National Bureau of Standards 87, 1982: the variance for which the weighted
//! squares are what their degrees of freedom expect, here summed over all
//! groups. Why runs have to be repeated at all and a single run's interval is
//! too narrow: T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable
//! time", ISMM 2013.
//!
//! Units: relative (a share of the mean). Limits: as good as the groups are
//! many; a change slower than all of them is in no run.

use super::level::KnownLevel;
use super::series::student_t;
use serde::{Deserialize, Serialize};

/// Degrees of freedom that are needed.
const MIN_FREEDOM: usize = 3;
/// No device changes so much between runs without a cause worth finding.
const LARGEST: f64 = 10.0;

/// A run's mean, as a group's member; one without an interval has an infinite
/// error and counts for [`Between::total_sd`] alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunMean {
    /// The mean, in any unit; above 0.
    pub mean: f64,
    /// Its standard error by the run's own interval, in the same unit.
    pub error: f64,
}

impl RunMean {
    /// Of a run's level.
    pub fn of(run: &KnownLevel) -> RunMean {
        RunMean { mean: run.level.mean_ns, error: run.relative_error() * run.level.mean_ns }
    }
}

/// What changes between equal runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Standard deviation between runs, as a share of the mean; 0 where the runs'
    /// own intervals explain all.
    pub relative_sd: f64,
    /// The same of the runs' means as they are, their own intervals' share
    /// included: all there is where a run has no interval.
    #[serde(default)]
    pub total_sd: f64,
    /// Runs in groups.
    pub runs: u64,
    /// Runs less groups.
    pub freedom: u64,
}

impl Between {
    /// Half of what the 95 % interval of the mean of `repeats` runs has on its
    /// account, as a share of the mean.
    pub fn relative_half_width(&self, repeats: usize) -> f64 {
        self.t() * self.relative_sd / (repeats.max(1) as f64).sqrt()
    }

    fn t(&self) -> f64 {
        student_t(0.975, self.freedom.max(1) as f64)
    }
}

/// The pooled standard deviation of the logarithms of the means in each group.
fn total_sd(groups: &[Vec<RunMean>]) -> f64 {
    let (mut sum, mut freedom) = (0.0, 0usize);
    for group in groups {
        let logs: Vec<f64> = group.iter().filter(|r| r.mean > 0.0).map(|r| r.mean.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        sum += logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>();
        freedom += logs.len().saturating_sub(1);
    }
    (sum / freedom.max(1) as f64).sqrt()
}

/// What changes between the runs of each group; None where they are too few.
pub fn between(groups: &[Vec<RunMean>]) -> Option<Between> {
    let total_sd = total_sd(groups);
    let usable = |r: &RunMean| r.mean > 0.0 && r.error.is_finite();
    let groups: Vec<Vec<(f64, f64)>> = groups
        .iter()
        .map(|group| {
            let of = |r: &RunMean| (r.mean.ln(), (r.error / r.mean).powi(2).max(1e-12));
            group.iter().filter(|r| usable(r)).map(of).collect::<Vec<_>>()
        })
        .filter(|group| group.len() > 1)
        .collect();
    let runs: usize = groups.iter().map(Vec::len).sum();
    let freedom = runs - groups.len();
    if freedom < MIN_FREEDOM {
        return None;
    }
    let excess = |variance: f64| groups.iter().map(|g| squares(g, variance)).sum::<f64>() - freedom as f64;
    let (mut low, mut high) = (0.0, LARGEST * LARGEST);
    if excess(low) > 0.0 {
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if excess(middle) > 0.0 { low = middle } else { high = middle }
        }
    } else {
        high = 0.0;
    }
    Some(Between { relative_sd: high.sqrt(), total_sd, runs: runs as u64, freedom: freedom as u64 })
}

/// A group's squared distances from its weighted mean, each over its variance;
/// falls as the variance between runs grows.
fn squares(group: &[(f64, f64)], variance: f64) -> f64 {
    let weight = |own: f64| 1.0 / (own + variance);
    let all: f64 = group.iter().map(|(_, own)| weight(*own)).sum();
    let mean = group.iter().map(|(value, own)| value * weight(*own)).sum::<f64>() / all;
    group.iter().map(|(value, own)| (value - mean).powi(2) * weight(*own)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::series::normal;
    use super::*;
    use uflip_device::rng::Rng;

    fn gauss(rng: &mut Rng) -> f64 {
        normal(rng.unit().clamp(1e-12, 1.0 - 1e-12))
    }

    /// `groups` groups of `size` runs around means of their own.
    fn draw(rng: &mut Rng, groups: usize, size: usize, sd: f64, error: f64) -> Vec<Vec<RunMean>> {
        let one = |rng: &mut Rng, truth: f64| {
            let mean = truth * (sd * gauss(rng) + error * gauss(rng)).exp();
            RunMean { mean, error: error * mean }
        };
        (0..groups)
            .map(|g| {
                let truth = 10f64.powi(g as i32 % 5);
                (0..size).map(|_| one(rng, truth)).collect()
            })
            .collect()
    }

    #[test]
    fn the_variance_between_runs_is_found_and_none_where_there_is_none() {
        let (mut found, mut none) = (Vec::new(), Vec::new());
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let total = between(&draw(&mut rng, 40, 8, 0.2, 0.15)).unwrap().total_sd;
            assert!((total / 0.25 - 1.0).abs() < 0.2, "{total}");
            found.push(between(&draw(&mut rng, 8, 4, 0.2, 0.05)).unwrap().relative_sd);
            none.push(between(&draw(&mut rng, 8, 4, 0.0, 0.05)).unwrap().relative_sd);
        }
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean(&found) - 0.2).abs() < 0.01, "{}", mean(&found));
        assert!(mean(&none) < 0.02, "{}", mean(&none));
        assert!(none.iter().filter(|sd| **sd == 0.0).count() > 60);
    }

    /// The interval of a run that was made once holds its true level 95 % of the
    /// time, where the run's own does so hardly ever.
    #[test]
    fn intervals_with_it_hold_the_truth() {
        let (mut held, mut narrow, mut all) = (0, 0, 0);
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let found = between(&draw(&mut rng, 4, 5, 0.2, 0.02)).unwrap();
            for run in draw(&mut rng, 5, 1, 0.2, 0.02).concat() {
                let truth = 10f64.powf(run.mean.log10().round());
                let (own, wide): (f64, f64) = (1.96 * 0.02, found.relative_half_width(1));
                let off = (run.mean / truth).ln().abs();
                held += usize::from(off <= own.hypot(wide));
                narrow += usize::from(off <= own);
                all += 1;
            }
        }
        let share = |n: usize| n as f64 / all as f64;
        assert!((0.93..=0.97).contains(&share(held)), "{}", share(held));
        assert!(share(narrow) < 0.3, "{}", share(narrow));
    }

    #[test]
    fn too_few_runs_tell_nothing() {
        let run = RunMean { mean: 1.0, error: 0.01 };
        assert_eq!(between(&[]), None);
        assert_eq!(between(&[vec![run], vec![run; 3]]), None);
        let open = RunMean { error: f64::INFINITY, ..run };
        assert_eq!(between(&[vec![open; 9]]), None);
        let found = between(&[vec![run; 4]]).unwrap();
        assert_eq!((found.relative_sd, found.runs, found.freedom), (0.0, 4, 3));
    }
}
