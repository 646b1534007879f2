use super::super::interval::batch_means;
use super::super::spread::Cause;
use super::super::startup::start_up;
use super::super::synthetic::{Series, generate};
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
fn agrees(series: &Series, block: u64) {
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
    let (exact, found) = (batch_means(whole, exact, 0.95).unwrap(), kept.batch_means(found, 0.95).unwrap());
    assert!((mean_ns(whole) / kept.mean_ns() - 1.0).abs() < 1e-9);
    // One batch a period: how wide the interval is hangs on the last digits of the
    // period, so narrow ones are only held to be narrow both.
    let half = |i: &MeanInterval| (i.high_ns - i.low_ns) / 2.0 / i.mean_ns;
    let (one, other) = (half(&exact), half(&found));
    assert!((0.8..1.25).contains(&(other / one)) || one.max(other) < 0.005, "{exact:?}\n{found:?}");
    assert!((exact.mean_ns / found.mean_ns - 1.0).abs() < 0.5 * one.max(other) + 1e-5);
}

#[test]
fn what_is_found_in_a_long_run_is_what_is_found_in_all_of_it() {
    let base = Series { ios: 1_300_000, noise: 0.1, outliers: 0.001, ..Series::default() };
    let mtron = Series { start_up_ios: Some(125), duty: 0.3, period_ios: Some(30.0), jitter: 0.1, ..base };
    agrees(&Series { seed: 1, ..mtron.clone() }, 8);
    // Longer than the window tells: found by the blocks.
    let slow = Series { start_up_ios: Some(150_000), period_ios: Some(80_000.0), jitter: 0.02, ..mtron };
    agrees(&Series { seed: 2, ..slow }, 8);
}

#[test]
fn repeats_that_are_too_long_are_told_apart_as_short_ones_are() {
    let run = |(seed, cheap_ns): (usize, f64)| {
        generate(&Series { ios: 1 << 17, cheap_ns, noise: 0.1, seed: seed as u64, ..Series::default() })
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
