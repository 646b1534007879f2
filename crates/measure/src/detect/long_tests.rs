use super::super::interval::batch_means;
use super::super::spread::Cause;
use super::super::startup::start_up;
use super::super::synthetic::{SyntheticSeries, generate};
use super::*;

fn phase(values: &[u64]) -> Phase {
    let mut phase = Phase::default();
    values.iter().for_each(|ns| phase.push(*ns));
    phase
}

fn long(phase: &Phase) -> &Condensed {
    let Phase::Long(long) = phase else { panic!("kept whole") };
    long
}

#[test]
fn up_to_the_limit_everything_is_kept_and_beyond_it_a_bounded_part() {
    let values: Vec<u64> = (0..EXACT_IOS as u64 + 3).collect();
    assert_eq!(phase(&values[..EXACT_IOS]), Phase::Whole(values[..EXACT_IOS].to_vec()));
    let kept = phase(&values);
    let found = long(&kept);
    assert_eq!(found.window, values[..WINDOW_IOS]);
    assert_eq!((kept.ios(), found.block_ios), (values.len() as u64, 8));
    assert_eq!((found.blocks.len(), found.blocks[1]), (EXACT_IOS / 8, 11.5));
    assert_eq!(kept.mean_ns(), (values.len() - 1) as f64 / 2.0);
    let after = |ios: usize| (values.len() - 1 + ios) as f64 / 2.0;
    assert!((kept.mean_after(1000) / after(1000) - 1.0).abs() < 1e-12);
    assert!((kept.mean_after(800_000) / after(800_000) - 1.0).abs() < 1e-6);
    assert_eq!(kept.mean_after(u64::MAX), 0.0);
    let mut longer = kept.clone();
    (0..1u64 << 23).for_each(|ns| longer.push(ns));
    assert!((MAX_BLOCKS / 2..MAX_BLOCKS).contains(&long(&longer).blocks.len()));
    let small = kept.condensed(1000);
    assert!(long(&small).blocks.len() <= 1000 && long(&small).window.len() == 1000);
    assert_eq!(small.mean_ns(), longer_mean(&values));
}

fn longer_mean(values: &[u64]) -> f64 {
    values.iter().map(|v| u128::from(*v)).sum::<u128>() as f64 / values.len() as f64
}

/// The same series kept whole and not: start-up, period, mean and interval.
fn agrees(series: &SyntheticSeries, block: u64) {
    let values = generate(series);
    let kept = phase(&values);
    assert_eq!(long(&kept).block_ios, block);
    let (exact, found) = (start_up(&values), kept.start_up());
    let truth = series.start_up_ios.unwrap_or(0) as u64;
    assert_eq!(exact.is_some(), found.is_some(), "{series:?}\n{exact:?}\n{found:?}");
    if let (Some(exact), Some(found)) = (exact, found) {
        let step = if exact.ios <= WINDOW_IOS as u64 / 4 { 0 } else { 2 * block };
        assert!(exact.ios.abs_diff(found.ios) <= step, "of {truth}: {exact:?}\n{found:?}");
        assert_eq!(exact.kind, found.kind);
        assert!((exact.before_mean_ns / found.before_mean_ns - 1.0).abs() < 1e-3, "{exact:?}\n{found:?}");
        assert!((exact.after_mean_ns / found.after_mean_ns - 1.0).abs() < 1e-3);
    }
    let from = exact.map_or(0, |s| s.ios as usize);
    let (whole, kept) = (&values[from..], phase(&values[from..]));
    let (exact, found) = (period::period(whole).map(|p| p.ios), kept.period().map(|p| p.ios));
    assert_eq!(exact.is_some(), found.is_some(), "{series:?}: {exact:?} {found:?}");
    if let (Some(exact), Some(found)) = (exact, found) {
        assert!((exact / found - 1.0).abs() < 0.005, "{exact} {found}");
    }
    assert!((mean_ns(whole) / kept.mean_ns() - 1.0).abs() < 1e-9);
    // With the same period the batches end at most a block apart.
    let (one, other) = (batch_means(whole, exact, 0.95).unwrap(), kept.batch_means(exact, 0.95).unwrap());
    assert_eq!(one.batches, other.batches);
    let half = |i: &MeanInterval| (i.high_ns - i.low_ns) / 2.0 / i.mean_ns;
    assert!((half(&one) - half(&other)).abs() < 0.05 * half(&one) + BESIDE, "{one:?}\n{other:?}");
    assert!((one.mean_ns / other.mean_ns - 1.0).abs() < BESIDE, "{one:?}\n{other:?}");
    // Its own period may be another in its last digits, on which one width hangs.
    let own = kept.batch_means(found, 0.95).unwrap();
    assert!(
        half(&own) < 3.0 * half(&one) + BESIDE && half(&one) < 3.0 * half(&own) + BESIDE,
        "{one:?}\n{own:?}"
    );
    assert!(
        (own.mean_ns / one.mean_ns - 1.0).abs() < half(&one).max(half(&own)) + BESIDE,
        "{one:?}\n{own:?}"
    );
}

/// What ends of batches a block beside their place change in these series: two
/// ends of 1/2184 of a batch, of IOs that cost up to three times the mean.
const BESIDE: f64 = 2.0 * 3.0 / 2184.0;

/// Batches of one slow period, in many series: what the long estimator says is
/// right as often as what the exact one says, and is as wide on average. Of one
/// series the width hangs on where the edges happen to fall.
#[test]
fn intervals_of_long_series_are_as_wide_and_as_right_as_exact_ones() {
    let base = SyntheticSeries {
        ios: 10_200,
        duty: 0.3,
        period_ios: Some(625.0),
        jitter: 0.02,
        ..SyntheticSeries::default()
    };
    let truth = super::super::synthetic::running_mean_ns(&base);
    let (mut squares, mut right, mut n) = ([0.0; 2], [0usize; 2], 0.0);
    for seed in 0..40u64 {
        let phase = (seed as f64 * 0.618).fract();
        let values = generate(&SyntheticSeries { seed, phase, noise: 0.1, ..base });
        let mut kept = Condensed::new(1 << 11);
        values.iter().for_each(|ns| kept.push(*ns));
        assert_eq!(kept.block_ios(), 8);
        let (exact, found) = (period::period(&values), period::period_of_long(&kept));
        let (Some(exact), Some(found)) = (exact, found) else { continue };
        assert!((exact.ios / found.ios - 1.0).abs() < 0.01, "{exact:?} {found:?}");
        let exact = batch_means(&values, Some(exact.ios), 0.95).unwrap();
        let found = interval::batch_means_of_long(&kept, Some(found.ios), 0.95).unwrap();
        n += 1.0;
        for (at, i) in [exact, found].iter().enumerate() {
            squares[at] += (i.relative_half_width().unwrap()).powi(2);
            right[at] += usize::from(i.low_ns <= truth && truth <= i.high_ns);
        }
    }
    let [exact, found] = squares.map(|sum: f64| (sum / n).sqrt());
    assert!(n >= 30.0, "{n}");
    assert!((0.9..1.1).contains(&(found / exact)), "{exact} {found}");
    assert!(right[1] + 4 >= right[0], "{right:?}");
}

/// What lasts longer than the lags of the first IOs reach is seen in the blocks.
#[test]
fn batches_are_longer_than_what_lasts_in_the_blocks() {
    let level = |seed: u64, ios: usize| {
        let slow = generate(&SyntheticSeries {
            ios: ios / 500,
            noise: 0.5,
            correlation: 0.9,
            seed,
            ..SyntheticSeries::default()
        });
        let mut kept = Condensed::new(1 << 9);
        slow.iter().flat_map(|ns| [*ns; 500]).for_each(|ns| kept.push(ns));
        interval::batch_means_of_long(&kept, None, 0.95)
    };
    // Its autocorrelation time is up to 19 levels, 9,500 IOs, of which 42 say less;
    // the first 512 IOs, which are hardly more than one level, would allow 30 batches.
    let found = level(1, 400_000).unwrap();
    assert!((5..=24).contains(&found.batches), "{found:?}");
    assert_eq!(level(1, 4_000_000).unwrap().batches, 30);
}

#[test]
fn what_is_found_in_a_long_run_is_what_is_found_in_all_of_it() {
    let base = SyntheticSeries { ios: 1_300_000, noise: 0.1, outliers: 0.001, ..SyntheticSeries::default() };
    let mtron =
        SyntheticSeries { start_up_ios: Some(125), duty: 0.3, period_ios: Some(30.0), jitter: 0.1, ..base };
    agrees(&SyntheticSeries { seed: 1, ..mtron.clone() }, 8);
    // Longer than the window tells: found by the blocks.
    let slow =
        SyntheticSeries { start_up_ios: Some(150_000), period_ios: Some(80_000.0), jitter: 0.02, ..mtron };
    agrees(&SyntheticSeries { seed: 2, ..slow }, 8);
}

#[test]
fn repeats_that_are_too_long_are_told_apart_as_short_ones_are() {
    let run = |(seed, cheap_ns): (usize, f64)| {
        generate(&SyntheticSeries {
            ios: 1 << 17,
            cheap_ns,
            noise: 0.1,
            seed: seed as u64,
            ..SyntheticSeries::default()
        })
    };
    let of = |levels: [f64; 3]| levels.into_iter().enumerate().map(run).collect::<Vec<_>>();
    let cause = |runs: &[Vec<u64>]| {
        let kept: Vec<Phase> = runs.iter().map(|r| phase(r).condensed(1 << 15)).collect();
        kept.iter().for_each(|p| assert_eq!(long(p).block_ios, 8));
        spread(&kept, None, 0.05).unwrap().cause
    };
    assert_eq!(cause(&of([1e6, 1.01e6, 1e6])), None);
    assert_eq!(cause(&of([1e6, 1.1e6, 1.2e6])), Some(Cause::Drift { rising: true }));
    assert_eq!(cause(&of([1e6, 1.2e6, 1.1e6])), Some(Cause::Noise));
    let mut disturbed = of([1e6; 3]);
    disturbed[1][..6000].iter_mut().for_each(|v| *v *= 4);
    let Some(Cause::Interference { repeat: 1, ios }) = cause(&disturbed) else { panic!("no interference") };
    assert!((5900..=6100).contains(&ios), "{ios}");
    assert_eq!(spread(&[], None, 0.05), None);
}
