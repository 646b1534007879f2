//! A level with what its interval rests on, and the level of several runs.
//!
//! Method: an interval is a standard error times Student's t ("Student", "The probable
//! error of a mean", Biometrika 6, 1908) with the degrees of freedom behind it, so that one
//! at another confidence can be told from it. The variance of the mean of k runs is what
//! the runs' own intervals say over k, and what changes between equal runs (`between.rs`,
//! pooled over all runs that were made more than once) over k; the degrees of freedom of
//! the sum are those of F. E. Satterthwaite, "An approximate distribution of estimates of
//! variance components", Biometrics Bulletin 2, 1946. Where the k means scatter more than
//! the pooled deviation explains (chi-square, 1 %), or nothing is pooled, their own scatter
//! counts, with k - 1 degrees of freedom.
//!
//! Units: nanoseconds; standard errors and deviations are shares of the mean. Limits: what
//! is the same in all runs of a plan and another in the next plan is in no interval.

use super::between::Between;
use super::drift::{CostRatio, Level, ratio};
use super::interval::MeanInterval;
use super::series::{chi_square, student_t};

/// The confidence of what is printed.
pub const PRINTED: f64 = 0.95;
/// Repeats that scatter so rarely by the pooled deviation have one of their own.
const RARE: f64 = 0.01;

/// A 95 % interval and the degrees of freedom that it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownLevel {
    /// The mean and its 95 % interval; open where `high_ns` is infinite.
    pub level: Level,
    /// Degrees of freedom; infinite where the deviation is known.
    pub freedom: f64,
}

impl From<&MeanInterval> for KnownLevel {
    fn from(found: &MeanInterval) -> KnownLevel {
        KnownLevel { level: Level::from(found), freedom: (found.batches.max(2) - 1) as f64 }
    }
}

/// Student's t for a two-sided interval.
fn t(confidence: f64, freedom: f64) -> f64 {
    student_t(0.5 + confidence / 2.0, freedom.max(0.5))
}

/// How many times as wide an interval of this confidence is as that of 95 %.
pub fn widening(confidence: f64, freedom: f64) -> f64 {
    t(confidence, freedom) / t(PRINTED, freedom)
}

impl KnownLevel {
    /// A mean of which nothing more is known.
    pub fn open(mean_ns: f64) -> KnownLevel {
        KnownLevel { level: Level { mean_ns, low_ns: 0.0, high_ns: f64::INFINITY }, freedom: 1.0 }
    }

    /// Whether there is an interval.
    pub fn is_closed(&self) -> bool {
        self.level.high_ns.is_finite()
    }

    /// The level with its interval of this confidence. Distances grow in the logarithm.
    pub fn at(&self, confidence: f64) -> Level {
        let Level { mean_ns, low_ns, high_ns } = self.level;
        let wider = widening(confidence, self.freedom);
        let end = |end: f64| if mean_ns > 0.0 { mean_ns * (end / mean_ns).powf(wider) } else { end };
        Level { mean_ns, low_ns: end(low_ns), high_ns: end(high_ns) }
    }

    /// The standard errors below and above the mean, as shares of it.
    fn errors(&self) -> [f64; 2] {
        let Level { mean_ns, low_ns, high_ns } = self.level;
        let t = t(PRINTED, self.freedom);
        [(mean_ns - low_ns) / mean_ns / t, (high_ns - mean_ns) / mean_ns / t]
    }

    /// The standard error by the interval's upper half, as a share of the mean; infinite
    /// where that is open.
    pub fn relative_error(&self) -> f64 {
        if self.level.mean_ns > 0.0 { self.errors()[1].max(self.errors()[0]) } else { f64::INFINITY }
    }

    /// The same with so much more time for each IO, which is known.
    pub fn plus(&self, ns: f64) -> KnownLevel {
        let Level { mean_ns, low_ns, high_ns } = self.level;
        let level = Level { mean_ns: mean_ns + ns, low_ns: low_ns + ns, high_ns: high_ns + ns };
        KnownLevel { level, ..*self }
    }

    /// What shares of two independent levels come to.
    pub fn weighted(shares: [f64; 2], parts: [&KnownLevel; 2]) -> KnownLevel {
        let sum = |of: fn(&KnownLevel) -> f64| shares[0] * of(parts[0]) + shares[1] * of(parts[1]);
        let mean_ns = sum(|part| part.level.mean_ns);
        let used = || shares.iter().zip(parts).filter(|(share, _)| **share > 0.0);
        if mean_ns <= 0.0 || used().any(|(_, part)| !part.is_closed()) {
            return KnownLevel::open(mean_ns);
        }
        let weight = |share: f64, part: &KnownLevel| share * part.level.mean_ns / mean_ns;
        let side = |side: usize| used().map(|(s, p)| (weight(*s, p) * p.errors()[side]).powi(2)).sum::<f64>();
        let errors = [side(0).sqrt(), side(1).sqrt()];
        let spread =
            used().map(|(s, p)| (weight(*s, p) * p.relative_error()).powi(4) / p.freedom).sum::<f64>();
        let all = errors[0].max(errors[1]).powi(2);
        let freedom = if spread > 0.0 { all * all / spread } else { f64::INFINITY };
        KnownLevel::around(mean_ns, errors, freedom, false)
    }

    /// With what changes between runs, of which it is the mean of `runs`.
    pub fn widened(&self, runs: usize, found: &Between) -> KnownLevel {
        let shared = found.relative_sd.powi(2) / runs.max(1) as f64;
        if shared == 0.0 || !self.is_closed() || self.level.mean_ns <= 0.0 {
            return *self;
        }
        let (errors, own) = (self.errors(), self.relative_error().powi(2));
        // The deviation between runs is known as well as the runs' whole scatter is.
        let pooled = (found.total_sd.powi(2) / runs.max(1) as f64).max(shared);
        let spread = own * own / self.freedom + pooled * pooled / found.freedom.max(1) as f64;
        let freedom = ((own + shared).powi(2) / spread).max(1.0);
        let errors = errors.map(|error| (error * error + shared).sqrt());
        KnownLevel::around(self.level.mean_ns, errors, freedom, shared > own)
    }

    /// The level around a mean from its standard errors. What scatters between runs does so
    /// in the logarithm, and so the ends lie where that is the larger part.
    fn around(mean_ns: f64, [below, above]: [f64; 2], freedom: f64, in_logarithm: bool) -> KnownLevel {
        let t = t(PRINTED, freedom);
        let (low, high) = if in_logarithm {
            ((-t * below).exp(), (t * above).exp())
        } else {
            ((1.0 - t * below).max(0.0), 1.0 + t * above)
        };
        KnownLevel { level: Level { mean_ns, low_ns: mean_ns * low, high_ns: mean_ns * high }, freedom }
    }
}

/// `of` relative to `to`, with the interval of this confidence.
pub fn ratio_at(of: &KnownLevel, to: &KnownLevel, confidence: f64) -> Option<CostRatio> {
    ratio(&of.at(confidence), &to.at(confidence))
}

/// The level of the mean of equal runs; None without runs. `between` is what changes from
/// one to the next.
pub fn of_repeats(runs: &[KnownLevel], between: Option<&Between>) -> Option<KnownLevel> {
    let k = runs.len() as f64;
    let mean_ns = runs.iter().map(|r| r.level.mean_ns).sum::<f64>() / k;
    if runs.is_empty() {
        return None;
    }
    if mean_ns <= 0.0 {
        return Some(KnownLevel::open(mean_ns));
    }
    let squares = runs.iter().map(|r| (r.level.mean_ns / mean_ns - 1.0).powi(2)).sum::<f64>();
    let scatter = (runs.len() > 1).then(|| squares / (k - 1.0));
    let by_scatter = scatter.map(|variance| {
        let error = (variance / k).sqrt();
        KnownLevel::around(mean_ns, [error; 2], k - 1.0, true)
    });
    let pooled = by_pooled(runs, mean_ns, between);
    let Some((level, variance)) = pooled else {
        return Some(by_scatter.unwrap_or_else(|| KnownLevel::open(mean_ns)));
    };
    let more = scatter.is_some_and(|s| s > variance * chi_square(1.0 - RARE, k - 1.0) / (k - 1.0));
    Some(by_scatter.filter(|_| more).unwrap_or(level))
}

/// The level by the runs' own intervals and the pooled deviation, and the variance that a
/// run's mean has by them; None where one run has no interval and nothing is pooled, or
/// several have nothing pooled.
fn by_pooled(runs: &[KnownLevel], mean_ns: f64, between: Option<&Between>) -> Option<(KnownLevel, f64)> {
    let k = runs.len() as f64;
    if runs.iter().any(|r| !r.is_closed()) {
        let found = between.filter(|found| found.total_sd > 0.0)?;
        let error = found.total_sd / k.sqrt();
        let level = KnownLevel::around(mean_ns, [error; 2], found.freedom.max(1) as f64, true);
        return Some((level, found.total_sd.powi(2)));
    }
    if let (None, [one]) = (between, runs) {
        return Some((*one, f64::INFINITY));
    }
    let found = between?;
    let share = |r: &KnownLevel| r.level.mean_ns / mean_ns / k;
    let side = |side: usize| runs.iter().map(|r| (share(r) * r.errors()[side]).powi(2)).sum::<f64>();
    let errors = [side(0).sqrt(), side(1).sqrt()];
    // Squares of the parts' variances, each over its degrees of freedom.
    let spread = runs.iter().map(|r| (share(r) * r.relative_error()).powi(4) / r.freedom).sum::<f64>();
    let own = errors[0].max(errors[1]).powi(2);
    let freedom = if spread > 0.0 { own * own / spread } else { f64::INFINITY };
    let level = KnownLevel::around(mean_ns, errors, freedom, false).widened(runs.len(), found);
    Some((level, own * k + found.relative_sd.powi(2)))
}

#[cfg(test)]
mod tests {
    use super::super::series::normal;
    use super::*;
    use uflip_device::rng::Rng;

    fn known(mean_ns: f64, error: f64, freedom: f64) -> KnownLevel {
        KnownLevel::around(mean_ns, [error / mean_ns; 2], freedom, false)
    }

    fn gauss(rng: &mut Rng) -> f64 {
        normal(rng.unit().clamp(1e-12, 1.0 - 1e-12))
    }

    #[test]
    fn an_interval_of_another_confidence_is_as_the_printed_table_says() {
        // t of 95 % and 99 % with 9 degrees of freedom: 2.262 and 3.250.
        let level = known(100.0, 1.0, 9.0);
        assert!((level.level.high_ns - 102.262).abs() < 1e-3, "{level:?}");
        let wide = level.at(0.99);
        assert!(((wide.high_ns / 100.0).ln() / (1.02262f64).ln() - 3.250 / 2.262).abs() < 1e-3, "{wide:?}");
        assert_eq!(level.at(0.95), Level { low_ns: level.at(0.95).low_ns, ..level.level });
        let open = KnownLevel::open(5.0).at(0.99);
        assert_eq!((open.low_ns, open.high_ns), (0.0, f64::INFINITY));
    }

    #[test]
    fn one_run_keeps_its_interval_where_nothing_changes_between_runs() {
        let one = known(100.0, 2.0, 29.0);
        assert_eq!(of_repeats(&[one], None), Some(one));
        let none = Between { relative_sd: 0.0, total_sd: 0.01, runs: 9, freedom: 8 };
        let found = of_repeats(&[one], Some(&none)).unwrap();
        assert!((found.level.high_ns - one.level.high_ns).abs() < 1e-9 && found.freedom == 29.0, "{found:?}");
        assert_eq!(of_repeats(&[], None), None);
        assert!(!of_repeats(&[KnownLevel::open(3.0)], None).unwrap().is_closed());
    }

    #[test]
    fn repeats_without_a_pooled_deviation_have_their_own_degrees_of_freedom() {
        let runs = [99.0, 100.0, 101.0].map(|mean| known(mean, 0.01, 29.0));
        let found = of_repeats(&runs, None).unwrap();
        // s = 1, over the root of 3; t of two degrees of freedom is 4.303.
        let high = 100.0 * (4.303 * 0.01 / 3f64.sqrt()).exp();
        assert!((found.level.high_ns - high).abs() < 1e-3 && found.freedom == 2.0, "{found:?} {high}");
    }

    /// Means of k runs that shift by 15 %, in plans with 12 pooled degrees of freedom.
    #[test]
    fn intervals_of_repeats_hold_the_truth_as_often_as_they_say() {
        for k in [1usize, 3] {
            let (mut held, mut normal_held) = (0, 0);
            for seed in 0..3000 {
                let mut rng = Rng::new(seed);
                let mut run = || {
                    let mean = 100.0 * (0.15 * gauss(&mut rng) + 0.02 * gauss(&mut rng)).exp();
                    known(mean, 0.02 * mean, 29.0)
                };
                let groups: Vec<Vec<_>> = (0..4).map(|_| (0..4).map(|_| run()).collect()).collect();
                let pooled: Vec<Vec<_>> = groups
                    .iter()
                    .map(|group| group.iter().map(super::super::between::RunMean::of).collect())
                    .collect();
                let found = super::super::between::between(&pooled);
                let runs: Vec<KnownLevel> = (0..k).map(|_| run()).collect();
                let level = of_repeats(&runs, found.as_ref()).unwrap().level;
                held += u32::from(level.low_ns <= 100.0 && 100.0 <= level.high_ns);
                let own = runs.iter().map(|r| r.level.mean_ns).sum::<f64>() / k as f64;
                normal_held += u32::from((own / 100.0 - 1.0).abs() < 1.96 * 0.02 / (k as f64).sqrt());
            }
            let share = f64::from(held) / 3000.0;
            assert!((0.935..=0.965).contains(&share), "{k}: {share}");
            assert!(normal_held < 1200, "the runs' own intervals alone hold {normal_held} of 3000");
        }
    }
}
