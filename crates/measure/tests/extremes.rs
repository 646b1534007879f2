//! Patterns at the ends of their types: whatever text is accepted gives IOs on
//! the target, at times that only grow and that a record can tell.

use proptest::prelude::*;
use uflip_device::{Bytes, Geometry, Io, IoRecord, Mode, Nanos};
use uflip_measure::Pattern;

/// Numbers at the edges as well as ordinary ones.
fn number() -> impl Strategy<Value = u64> {
    let edges = [
        0,
        1,
        2,
        511,
        512,
        4096,
        1 << 20,
        (1 << 28) - 1,
        1 << 28,
        u32::MAX.into(),
        1 << 40,
        (1 << 52) - 1,
        1 << 52,
        (1 << 52) + 512,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 511,
        u64::MAX,
    ];
    prop_oneof![4 => prop::sample::select(edges.to_vec()), 2 => 0..100_000u64, 1 => any::<u64>()]
}

fn setting() -> impl Strategy<Value = String> {
    let sizes = prop::sample::select(vec!["io_size", "io_shift", "target_offset", "target_size"]);
    prop_oneof![
        6 => (sizes, number(), 0..3u8).prop_map(|(key, n, round)| {
            let n = if round > 0 { n / 512 * 512 } else { n };
            format!("{key}={n}")
        }),
        3 => number().prop_map(|n| format!("pause={n}ns")),
        1 => any::<i64>().prop_map(|n| format!("incr={n}")),
        1 => Just(format!("incr={}", i64::MIN)),
        1 => number().prop_map(|n| format!("partitions={n}")),
        1 => number().prop_map(|n| format!("start={n}")),
        1 => number().prop_map(|n| format!("burst={n}")),
        1 => number().prop_map(|n| format!("sync={n}")),
        1 => number().prop_map(|n| format!("rate={n}")),
        1 => number().prop_map(|n| format!("poisson={}.{:03}/s", n / 1000, n % 1000)),
        1 => Just("repeat=no".to_string()),
    ]
}

fn basic() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["SR", "RR", "SW", "RW", "ST", "RT"]);
    (name, prop::collection::vec(setting(), 0..5))
        .prop_map(|(name, all)| format!("{name}({})", all.join(", ")))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => basic(),
        1 => (1..5000u64, basic()).prop_map(|(n, b)| format!("{n} x {b}")),
        1 => (number(), basic(), basic()).prop_map(|(n, a, b)| format!("{n} {a} / 1 {b}")),
        1 => (basic(), basic()).prop_map(|(a, b)| format!("{a} | {b}")),
    ]
}

/// The first IOs of each stream, as a device that answers at once has them.
fn check(pattern: &Pattern, geometry: Geometry, count: u64) {
    let resolved = pattern.resolve(geometry).expect("it was checked");
    for (number, stream) in
        resolved.streams(count, 7).expect("it was checked").into_iter().enumerate().take(8)
    {
        let mut last = (Nanos::ZERO, Nanos::ZERO);
        for io in stream.take(64) {
            let Io { arrival, offset, size, mode, .. } = io;
            let end = offset.0.checked_add(u64::from(size));
            assert!(end.is_some_and(|end| end <= geometry.capacity.0), "{resolved}: {io:?}");
            assert!(size > 0 && size <= IoRecord::MAX_SIZE || mode == Mode::Flush, "{resolved}: {io:?}");
            let submit = arrival.due(last.0).max(last.0);
            assert!(submit.saturating_sub(last.0) <= IoRecord::MAX_SUBMIT, "{resolved}: {io:?}");
            let told = IoRecord::new(&io, number as u16, submit, Nanos(1)).submit();
            assert!(submit >= last.0 && told >= last.1, "{resolved}: time goes back");
            assert!(told == submit || told == IoRecord::MAX_SUBMIT, "{resolved}");
            last = (submit + Nanos(1), told);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn whatever_is_accepted_stays_on_the_target_and_in_time(
        text in text(),
        capacity in prop::sample::select(vec![512u64, 1 << 20, 64 << 20, 1 << 40, 1 << 52, u64::MAX / 512 * 512]),
        count in prop_oneof![1..100u64, Just(u64::MAX)],
    ) {
        let geometry = Geometry { capacity: Bytes(capacity), sector: Bytes(512) };
        let Ok(pattern) = text.parse::<Pattern>() else { return Ok(()) };
        prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern.clone());
        if pattern.check(geometry).is_ok() {
            check(&pattern, geometry, count);
        }
    }
}

/// Otherwise the test above says nothing.
#[test]
fn a_good_part_is_accepted() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let geometry = Geometry { capacity: Bytes(1 << 52), sector: Bytes(512) };
    let mut accepted = || {
        let text = text().new_tree(&mut runner).unwrap().current();
        text.parse::<Pattern>().is_ok_and(|pattern| pattern.check(geometry).is_ok())
    };
    let accepted = (0..1000).filter(|_| accepted()).count();
    assert!(accepted > 100, "only {accepted} of 1000");
}

#[test]
fn sums_of_times_are_held_and_never_wrap() {
    assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
    assert_eq!(Nanos::from_secs(u64::MAX), Nanos(u64::MAX));
    assert_eq!(Nanos::from_millis(u64::MAX / 2), Nanos(u64::MAX));
}
