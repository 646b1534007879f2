//! What the run before left behind: a few expensive IOs at the start of a run.
//!
//! Method: MSER-5 (K. P. White, M. J. Cobb and S. C. Spratt, "A comparison of five
//! steady-state truncation heuristics for simulation", Winter Simulation
//! Conference 2000; the rule is White's, Simulation 69, 1997): of all places to
//! cut the start off, the one after which the means of five IOs each have the
//! smallest standard error. It is cut only where that error falls to less than
//! [`GAIN`] of what it was, and no further than [`LONGEST`] IOs.
//!
//! Units: IOs, nanoseconds. This is no start-up phase: nothing is delayed; work
//! that an earlier run put off is paid for. Limits: a rare expensive IO that happens
//! to come early is cut off as well.

/// IOs of a batch.
const BATCH: usize = 5;
/// The longest transient, where the series is four times as long: a device with
/// a write buffer pays once that is full.
const LONGEST: usize = 256;
/// The squared standard error after the cut over the one before.
const GAIN: f64 = 0.5;

/// IOs at the start of `response_ns` that belong to what was before; 0 for none.
pub(super) fn transient(response_ns: &[u64]) -> usize {
    let means: Vec<f64> = response_ns
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().map(|v| *v as f64).sum::<f64>() / BATCH as f64)
        .collect();
    let squared_error = |cut: usize| {
        let rest = &means[cut..];
        let n = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / n;
        rest.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n * n)
    };
    let last = (LONGEST / BATCH).min(means.len() / 4);
    if last == 0 {
        return 0;
    }
    let whole = squared_error(0);
    let best = (1..=last).min_by(|a, b| squared_error(*a).total_cmp(&squared_error(*b))).unwrap_or(0);
    if squared_error(best) < GAIN * whole { best * BATCH } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::synthetic::{SyntheticSeries, generate};

    #[test]
    fn a_merge_left_over_is_cut_off_and_noise_is_not() {
        let mut values = vec![1_000_000u64; 1024];
        values.iter_mut().step_by(9).for_each(|v| *v = 7_600_000);
        assert_eq!(transient(&values), 0);
        (values[0], values[9]) = (453_000_000, 126_000_000);
        assert_eq!(transient(&values), 10);
        for seed in 0..50 {
            let series = SyntheticSeries { ios: 1024, noise: 0.8, seed, ..SyntheticSeries::default() };
            assert_eq!(transient(&generate(&series)), 0, "{seed}");
        }
        assert_eq!((transient(&[]), transient(&[5; 7]), transient(&[5; 100])), (0, 0, 0));
        // A buffer of 128 IOs, then one merge left over.
        let mut values = vec![382_000u64; 1024];
        values[..].iter_mut().skip(61).step_by(64).for_each(|v| *v = 1_300_000);
        values[128] = 15_000_000;
        assert!((129..=140).contains(&transient(&values)), "{}", transient(&values));
    }
}
