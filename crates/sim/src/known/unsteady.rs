//! What a known device suffers beside its rules: shifts between runs, correlated noise,
//! tails without a variance, a neighbour that comes and goes.
//!
//! Method: a factor upon the time of each IO. Between runs: lognormal with mean 1, drawn
//! anew for each run. Correlated: the exponential of a first-order autoregression
//! (G. E. P. Box and G. M. Jenkins, 1970), with mean 1. Tails: a share of IOs takes a
//! Pareto factor. A neighbour: on and off for exponential times, all IOs take
//! [`OtherLoad::factor`] times as long while it is there. Units: factors, nanoseconds.

use uflip_device::Nanos;
use uflip_device::rng::{Rng, derive_seed};

/// How many times the usual time an IO of a heavy tail takes at least.
const TAIL_FROM: f64 = 5.0;

/// Somebody else's load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherLoad {
    /// How long it stays on average.
    pub on: Nanos,
    /// How long it is away on average.
    pub off: Nanos,
    /// How many times as long IOs take meanwhile.
    pub factor: f64,
}

/// What changes beside the rules; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unsteady {
    /// Standard deviation of the logarithm of the factor that each run draws.
    pub between_runs: f64,
    /// Standard deviation of the logarithm of correlated noise.
    pub correlated: f64,
    /// Its correlation from one IO to the next, below 1.
    pub correlation: f64,
    /// Share of IOs in the tail.
    pub tail: f64,
    /// The tail's Pareto index; at or below 2 it has no variance.
    pub tail_index: f64,
    /// Somebody else's load; none where `None`.
    pub neighbour: Option<OtherLoad>,
}

/// An [`Unsteady`] as it goes on.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    law: Unsteady,
    rng: Rng,
    run: f64,
    /// The autoregression's last value, with variance 1.
    last: f64,
    busy: bool,
    until_ns: f64,
}

/// A draw from the normal distribution (G. E. P. Box and M. E. Muller, 1958).
pub(super) fn gauss(rng: &mut Rng) -> f64 {
    let (u, v) = (1.0 - rng.unit(), rng.unit());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A lognormal factor with mean 1 from a standard normal draw.
fn with_mean_1(sd: f64, draw: f64) -> f64 {
    (sd * draw - sd * sd / 2.0).exp()
}

impl Weather {
    pub(super) fn new(law: Unsteady, seed: u64) -> Weather {
        let mut rng = Rng::new(derive_seed(seed, 2));
        let last = gauss(&mut rng);
        // The neighbour is there or away as in the long run.
        let share = law.neighbour.map_or(0.0, |n| n.on.0 as f64 / (n.on.0 + n.off.0).max(1) as f64);
        let busy = rng.unit() >= share;
        Weather { law, rng, run: 1.0, last, busy, until_ns: 0.0 }
    }

    /// Another run begins.
    pub(super) fn next_run(&mut self) {
        let draw = gauss(&mut self.rng);
        self.run = with_mean_1(self.law.between_runs, draw);
    }

    /// How many times the usual time the IO at `at_ns` takes.
    pub(super) fn factor(&mut self, at_ns: u64) -> f64 {
        let Unsteady { correlated, correlation, tail, tail_index, neighbour, .. } = self.law;
        let mut factor = self.run;
        if correlated > 0.0 {
            let draw = gauss(&mut self.rng);
            self.last = correlation * self.last + (1.0 - correlation * correlation).sqrt() * draw;
            factor *= with_mean_1(correlated, self.last);
        }
        if tail > 0.0 && self.rng.unit() < tail {
            factor *= TAIL_FROM * (1.0 - self.rng.unit()).powf(-1.0 / tail_index);
        }
        if let Some(neighbour) = neighbour {
            while at_ns as f64 >= self.until_ns {
                self.busy = !self.busy;
                let stays = if self.busy { neighbour.on } else { neighbour.off };
                self.until_ns += stays.0.max(1) as f64 * -(1.0 - self.rng.unit()).ln();
            }
            factor *= if self.busy { neighbour.factor } else { 1.0 };
        }
        factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(law: Unsteady, runs: usize, ios: usize) -> Vec<f64> {
        let mut weather = Weather::new(law, 7);
        let run = |run: usize| {
            weather.next_run();
            (0..ios).map(|io| weather.factor(((run * ios + io) * 1_000_000) as u64)).sum::<f64>() / ios as f64
        };
        (0..runs).map(run).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn factors_have_the_means_and_deviations_that_are_asked_for() {
        assert_eq!(means(Unsteady::default(), 3, 3), [1.0; 3]);
        let shifts = means(Unsteady { between_runs: 0.2, ..Unsteady::default() }, 20_000, 1);
        let sd = shifts.iter().map(|f| f.ln()).map(|l| (l + 0.02).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean(&shifts) - 1.0).abs() < 0.005 && (sd.sqrt() - 0.2).abs() < 0.004, "{sd}");
        let noise = Unsteady { correlated: 0.5, correlation: 0.9, ..Unsteady::default() };
        assert!((mean(&means(noise, 20, 20_000)) - 1.0).abs() < 0.02);
        let tail = Unsteady { tail: 0.01, tail_index: 3.0, ..Unsteady::default() };
        // 1 % take five times 3 / 2 as long.
        assert!((mean(&means(tail, 20, 20_000)) - 1.065).abs() < 0.005);
        let neighbour = OtherLoad { on: Nanos(1_000_000_000), off: Nanos(3_000_000_000), factor: 3.0 };
        let found =
            mean(&means(Unsteady { neighbour: Some(neighbour), ..Unsteady::default() }, 1, 4_000_000));
        assert!((found - 1.5).abs() < 0.06, "a quarter of the time three times as long: {found}");
    }
}
