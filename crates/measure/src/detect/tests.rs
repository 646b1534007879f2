//! No detector panics, or answers with something that is not a number, on any
//! series whatever.

use super::*;
use proptest::prelude::*;

/// Short and longer series of anything: constants, extremes, steps, noise.
fn any_series() -> impl Strategy<Value = Vec<u64>> {
    let value = prop_oneof![Just(0), Just(1), Just(u64::MAX), 1u64..1000, any::<u64>(), 300_000u64..400_000];
    let stretch = (value.clone(), 1usize..200).prop_map(|(v, n)| vec![v; n]);
    let noise = proptest::collection::vec(value, 0..200);
    let cycle = (any::<u32>(), any::<u32>(), 1usize..50, 1usize..600)
        .prop_map(|(a, b, p, n)| (0..n).map(|i| u64::from(if i % p == 0 { a } else { b })).collect());
    proptest::collection::vec(prop_oneof![stretch, noise, cycle], 0..5).prop_map(|parts| parts.concat())
}

fn numbers(all: &[f64]) -> bool {
    all.iter().all(|v| v.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn phases_are_numbers(series in any_series(), other in any_series()) {
        if let Some(s) = startup::start_up(&series) {
            prop_assert!(numbers(&[s.before_mean_ns, s.after_mean_ns, s.margin, s.p_value, s.confidence]), "{s:?}");
            prop_assert!(s.ios >= 4 && s.ios * 4 <= series.len() as u64);
            prop_assert!((0.0..=1.0).contains(&s.confidence) && (0.0..=1.0).contains(&s.p_value), "{s:?}");
            prop_assert_eq!(s.kind == startup::StartUpKind::Cheap, s.before_mean_ns < s.after_mean_ns, "{:?}", s);
        }
        if let Some(p) = period::period(&series) {
            prop_assert!(numbers(&[p.ios, p.prominence, p.z]) && p.ios >= 1.5, "{p:?}");
            prop_assert!(p.ios * 3.0 <= series.len() as f64 && (0.0..=1.0).contains(&p.confidence), "{p:?}");
        }
        if let Some(l) = lasting::lasting_effect(&series, &other, &vec![5; other.len()]) {
            prop_assert!(numbers(&[l.before_mean_ns, l.affected_mean_ns, l.margin, l.p_value]), "{l:?}");
            prop_assert!(l.affected_ios >= 1 && l.affected_ios <= other.len() as u64);
        }
        if let Some(s) = spread::spread(&[&series, &other], None, 0.05) {
            prop_assert!(numbers(&s.means_ns) && s.spread.is_finite());
            prop_assert_eq!(s.cause.is_some(), s.spread > 0.05);
        }
    }

    #[test]
    fn intervals_hold_their_mean(series in any_series(), period in proptest::option::of(0.5f64..200.0)) {
        let both = [
            interval::batch_means(&series, period, 0.95),
            interval::block_bootstrap(&series, period, 0.95, 100, 1),
        ];
        for i in both.into_iter().flatten() {
            prop_assert!(numbers(&[i.mean_ns, i.low_ns, i.high_ns]), "{i:?}");
            prop_assert!(0.0 <= i.low_ns && i.low_ns <= i.mean_ns && i.mean_ns <= i.high_ns, "{i:?}");
            prop_assert!(i.n <= series.len() as u64 && i.batches >= 5);
        }
        let rule = enough::StopRule { cap_ios: 5000, ..enough::StopRule::default() };
        let v = enough::enough(&series, period, &rule);
        prop_assert_eq!(v.stop(), v.more_ios == 0);
        prop_assert!(v.stop() || series.len() as u64 + v.more_ios <= 5000);
        prop_assert!(v.expected_ios >= series.len().min(5000) as u64 + v.more_ios.min(1));
    }
}
