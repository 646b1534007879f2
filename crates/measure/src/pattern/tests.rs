//! Table 1 row by row against addresses worked out by hand, what the paper
//! leaves open, the text form, and the known bugs of an earlier tool.
use super::*;
use proptest::prelude::*;
use uflip_device::{Arrival, Io};

const GEOMETRY: Geometry = Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) };

fn parse(text: &str) -> Pattern {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ios(pattern: &Pattern, count: u64, seed: u64) -> Vec<Io> {
    pattern.streams(count, seed).unwrap_or_else(|e| panic!("{pattern}: {e}")).into_iter().flatten().collect()
}

/// The offsets of the first `count` IOs of each stream.
fn offsets(text: &str, count: u64) -> Vec<u64> {
    ios(&parse(text), count, 1).iter().map(|io| io.offset.0).collect()
}

/// The waits in milliseconds.
fn waits(text: &str, count: u64) -> Vec<u64> {
    ios(&parse(text), count, 1).iter().map(|io| io.arrival.due(Nanos(0)).0 / 1_000_000).collect()
}

#[test]
fn baseline_sequential_is_target_offset_plus_i_io_sizes() {
    assert_eq!(
        offsets("SR(io_size=512, target_offset=4K, target_size=4K)", 5),
        [4096, 4608, 5120, 5632, 6144]
    );
    let all = ios(&parse("SW(io_size=1K, target_size=4K)"), 2, 1);
    let io = |offset| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(offset),
        size: 1024,
        mode: uflip_device::Mode::Write,
        pattern: 0,
    };
    assert_eq!(all, [io(0), io(1024)]);
}

#[test]
fn baseline_random_is_target_offset_plus_random_io_sizes() {
    let mut rng = uflip_device::rng::Rng::new(uflip_device::rng::derive_seed(1, 0));
    let expected: Vec<u64> = (0..100).map(|_| 8192 + rng.below(8) * 512).collect();
    let got = offsets("RR(io_size=512, target_offset=8K, target_size=4K)", 100);
    assert_eq!(got, expected);
    let distinct: std::collections::BTreeSet<u64> = got.into_iter().collect();
    assert!(distinct.into_iter().eq([8192, 8704, 9216, 9728, 10240, 10752, 11264, 11776]));
}

#[test]
fn granularity_varies_the_size() {
    let text = "SR(io_size=1536, target_size=8K)";
    assert_eq!(offsets(text, 6), [0, 1536, 3072, 4608, 6144, 0]);
    assert!(ios(&parse(text), 6, 1).iter().all(|io| io.size == 1536));
}

#[test]
fn alignment_adds_the_shift_and_stays_inside() {
    // (4096 - 512) / 1024 = 3 slots: the fourth would end past the target space.
    let sequential = "SW(io_size=1K, io_shift=512, target_offset=2K, target_size=4K)";
    assert_eq!(offsets(sequential, 5), [2560, 3584, 4608, 2560, 3584]);
    let random = offsets("RW(io_size=1K, io_shift=512, target_offset=2K, target_size=4K)", 200);
    let distinct: std::collections::BTreeSet<u64> = random.into_iter().collect();
    assert!(distinct.into_iter().eq([2560, 3584, 4608]));
}

#[test]
fn locality_starts_over_at_the_end_of_the_target_space() {
    assert_eq!(
        offsets("SW(io_size=512, target_offset=1K, target_size=1536)", 5),
        [1024, 1536, 2048, 1024, 1536]
    );
    // TargetSize = IOSize: one slot.
    assert_eq!(offsets("SW(io_size=512, target_offset=1K, target_size=512)", 3), [1024; 3]);
    assert_eq!(offsets("RW(io_size=512, target_offset=1K, target_size=512)", 3), [1024; 3]);
}

#[test]
fn partitioning_goes_round_the_partitions() {
    // PS = 4096 / 2 = 2048: four IOs to a partition.
    let two = "SR(io_size=512, target_offset=10K, target_size=4K, partitions=2)";
    assert_eq!(offsets(two, 9), [10240, 12288, 10752, 12800, 11264, 13312, 11776, 13824, 10240]);
    assert_eq!(offsets("SR(io_size=512, target_size=2K, partitions=1)", 5), [0, 512, 1024, 1536, 0]);
    // Eight slots for three partitions: two each, the last two slots unused.
    let three = "SW(io_size=512, target_size=4K, partitions=3)";
    assert_eq!(offsets(three, 7), [0, 1024, 2048, 512, 1536, 2560, 0]);
    // With a shift of one sector there are seven slots: again two each.
    let shifted = "SW(io_size=512, io_shift=512, target_size=4K, partitions=3)";
    assert_eq!(offsets(shifted, 7), [512, 1536, 2560, 1024, 2048, 3072, 512]);
    assert!(matches!(
        parse("SW(io_size=512, target_size=1K, partitions=3)").check(GEOMETRY),
        Err(PatternError::TooSmall { parts: 3, .. })
    ));
}

#[test]
fn order_follows_incr() {
    let order = |incr: &str, count| offsets(&format!("SW(io_size=512, target_size=3K, incr={incr})"), count);
    assert_eq!(order("1", 7), [0, 512, 1024, 1536, 2048, 2560, 0]);
    assert_eq!(order("2", 7), [0, 1024, 2048, 512, 1536, 2560, 0]);
    assert_eq!(order("4", 7), [0, 2048, 512, 2560, 1024, 1536, 0]);
    assert_eq!(order("0", 3), [0, 0, 0]);
    assert_eq!(order("-1", 7), [2560, 2048, 1536, 1024, 512, 0, 2560]);
    assert_eq!(order("-4", 7), [2560, 512, 2048, 0, 1536, 1024, 2560]);
    // Incr as large as the target space or larger: columns of one slot.
    for incr in ["6", "7", "9223372036854775807"] {
        assert_eq!(order(incr, 7), order("1", 7), "{incr}");
    }
    assert_eq!(order("-9223372036854775808", 7), order("-1", 7));
    let placed = "SR(io_size=512, io_shift=256, target_offset=1K, target_size=2K, incr=-1)";
    assert_eq!(offsets(placed, 4), [2304, 1792, 1280, 2304]);
}

#[test]
fn parallelism_gives_each_process_its_share() {
    let pattern = parse("4 x SW(io_size=512, target_offset=1K, target_size=4K)");
    let streams = pattern.streams(3, 1).unwrap();
    let per_stream: Vec<Vec<u64>> = streams.into_iter().map(|s| s.map(|io| io.offset.0).collect()).collect();
    let expected: [[u64; 3]; 4] =
        [[1024, 1536, 1024], [2048, 2560, 2048], [3072, 3584, 3072], [4096, 4608, 4096]];
    assert_eq!(per_stream, expected);
    // 4608 / 4 = 1152, rounded down to two IOs of 512.
    assert_eq!(offsets("4 x SR(io_size=512, target_size=4608)", 1), [0, 1024, 2048, 3072]);
    // Each process draws its own addresses.
    let random: Vec<u64> = offsets("2 x RR(io_size=512, target_size=1M)", 50);
    let (first, second) = random.split_at(50);
    assert!(first.iter().all(|o| *o < 512 << 10) && second.iter().all(|o| *o >= 512 << 10));
    assert!(first.iter().zip(second).any(|(a, b)| a + (512 << 10) != *b));
}

#[test]
fn mix_keeps_each_patterns_own_sequence() {
    let mix = |text| -> Vec<(u64, u8)> {
        ios(&parse(text), 7, 1).iter().map(|io| (io.offset.0, io.pattern)).collect()
    };
    let two_to_one =
        "2 SR(io_size=512, target_size=2K) / 1 SW(io_size=512, target_offset=64K, target_size=1K)";
    assert_eq!(mix(two_to_one), [(0, 0), (512, 0), (65536, 1), (1024, 0), (1536, 0), (66048, 1), (0, 0)]);
    let one_to_two =
        "1 SR(io_size=512, target_size=2K) / 2 SW(io_size=512, target_offset=64K, target_size=1K)";
    assert_eq!(
        mix(one_to_two),
        [(0, 0), (65536, 1), (66048, 1), (512, 0), (65536, 1), (66048, 1), (1024, 0)]
    );
}

#[test]
fn pause_stands_before_every_io_but_the_first() {
    assert_eq!(waits("SR(target_size=1M, pause=3ms)", 4), [0, 3, 3, 3]);
    assert_eq!(waits("SR(target_size=1M)", 3), [0, 0, 0]);
}

#[test]
fn bursts_are_groups_with_a_pause_between() {
    assert_eq!(waits("SR(target_size=1M, pause=100ms, burst=3)", 8), [0, 0, 0, 100, 0, 0, 100, 0]);
    // "pause(p) = burst(1, p)"
    assert_eq!(waits("RW(target_size=1M, pause=2ms, burst=1)", 4), waits("RW(target_size=1M, pause=2ms)", 4));
    // In a mix each pattern counts its own IOs.
    let mix = "1 SR(target_size=1M) / 2 RW(target_size=1M, pause=5ms, burst=3)";
    assert_eq!(waits(mix, 9), [0, 0, 0, 0, 0, 5, 0, 0, 0]);
}

#[test]
fn a_sync_is_a_flush_after_so_many_ios() {
    let pattern = parse("SW(io_size=4K, target_size=1M, sync=3)");
    assert_eq!(parse(&pattern.to_string()), pattern);
    let modes: Vec<&str> = ios(&pattern, 9, 1).iter().map(|io| io.mode.name()).collect();
    assert_eq!(modes, ["write", "write", "write", "flush", "write", "write", "write", "flush", "write"]);
    let offsets: Vec<u64> =
        ios(&pattern, 9, 1).iter().filter(|io| io.size > 0).map(|io| io.offset.0).collect();
    assert_eq!(offsets, (0..7).map(|i| i * 4096).collect::<Vec<_>>());
    let timing = Timing::Synced { every: 3 };
    assert_eq!((timing.with_flushes(7), timing.without_flushes(9), timing.without_flushes(8)), (9, 7, 6));
    assert_eq!((Timing::Consecutive.with_flushes(7), Timing::Consecutive.without_flushes(7)), (7, 7));
    assert!("SW(sync=0)".parse::<Pattern>().is_err());
    assert!("SW(sync=3, pause=1ms)".parse::<Pattern>().is_err());
}

#[test]
fn side_by_side_is_a_stream_each() {
    let pattern = parse("SR(io_size=512, target_size=1K) | SW(io_size=1K, target_offset=8K, target_size=2K)");
    assert_eq!(pattern.stream_count(), 2);
    let all: Vec<(u64, u32)> = ios(&pattern, 2, 1).iter().map(|io| (io.offset.0, io.size)).collect();
    assert_eq!(all, [(0, 512), (512, 512), (8192, 1024), (9216, 1024)]);
}

#[test]
fn without_repetition_every_address_comes_once_a_pass() {
    let all = offsets("RW(io_size=512, target_offset=1K, target_size=5K, repeat=no)", 30);
    for pass in all.chunks(10) {
        let mut sorted = pass.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq((0..10).map(|slot| 1024 + slot * 512)));
    }
    assert_ne!(all[..10], all[10..20]);
}

/// FlashIO adds TargetOffset before `mod TargetSize` and so loses it: runs and
/// parallel processes that should be apart share one place.
#[test]
fn target_offset_survives_the_wrap() {
    for offset in [0, 1 << 20, 3 << 20] {
        let text = format!("SW(io_size=32K, target_offset={offset}B, target_size=1M)");
        let all = offsets(&text, 64);
        assert!(all.iter().all(|o| (offset..offset + (1 << 20)).contains(o)), "{text}: {all:?}");
    }
}

/// FlashIO's ComputeParams swaps the counts of SW and RR.
#[test]
fn each_baseline_has_its_own_counts() {
    use crate::plan::{Counts, IoCounts, PlanOptions, Preset, make_plan};
    let mut options = PlanOptions::new(Preset::Quick);
    let of = |count| Counts { count, ignore: count / 10 };
    options.io_counts = IoCounts { sr: of(110), rr: of(120), sw: of(130), rw: of(140) };
    let plan = make_plan(&options, GEOMETRY).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for run in plan.runs() {
        let of_granularity = run.point().is_some_and(|p| p.micro == crate::MicroBenchmark::Granularity);
        if of_granularity {
            seen.insert((run.curve_name(), run.io_count, run.io_ignore));
        }
    }
    let expected = [("SR", 110, 11), ("RR", 120, 12), ("SW", 130, 13), ("RW", 140, 14)];
    assert!(seen.into_iter().eq(expected.map(|(name, count, ignore)| (
        name.to_string().into(),
        count,
        ignore
    ))));
}

#[test]
fn an_open_target_size_is_what_is_left() {
    let resolved = parse("SR(target_offset=1M)").resolve(GEOMETRY).unwrap();
    assert_eq!(resolved.to_string(), "SR(io_size=32K, target_offset=1M, target_size=1023M)");
    assert_eq!(
        parse("SR(target_offset=1G)").resolve(GEOMETRY).map_err(|e| e.to_string()).unwrap_err(),
        "TargetOffset 1G leaves nothing of a target of 1G; type a smaller target_offset"
    );
    assert!(matches!(parse("SR").streams(1, 1), Err(PatternError::Unresolved)));
}

#[test]
fn what_does_not_fit_a_target_is_told() {
    let disk = Geometry { capacity: Bytes(1 << 30), sector: Bytes(4096) };
    let error = |text| parse(text).check(disk).map_err(|e| e.to_string()).unwrap_err();
    assert_eq!(
        error("SR(io_size=512)"),
        "IOSize 512B is no multiple of the target's sector of 4K; type a multiple of 4K"
    );
    assert!(error("SR(io_shift=512)").starts_with("IOShift 512B"));
    assert!(error("SR(target_offset=512)").starts_with("TargetOffset 512B"));
    assert!(error("SR(target_size=2G)").contains("end at 1G"));
    assert!(error("SR(target_size=16K)").contains("cannot hold"));
    assert!(error("SR(io_size=256M)").contains("268435455"));
    assert!(error("4097 x SR").contains("4096"));
    assert!(error("16 x SR(target_size=128K)").contains("cannot hold"));
    assert!(error("SR | RW(io_size=512)").contains("IOSize"));
    assert_eq!(parse("4096 x SR(target_size=128M)").check(disk), Ok(()));
}

#[test]
fn texts_as_a_person_types_them() {
    assert_eq!(parse("SR").to_string(), "SR(io_size=32K, target_offset=0B)");
    assert_eq!(
        parse(" rw ( io_size = 4k , pause=1.5ms,burst=10 ) ").to_string(),
        "RW(io_size=4K, target_offset=0B, pause=1500us, burst=10)"
    );
    assert_eq!(
        parse("2 SR()/1 RW").to_string(),
        "2 SR(io_size=32K, target_offset=0B) / 1 RW(io_size=32K, target_offset=0B)"
    );
    assert_eq!(parse("4x SW"), parse("4 x SW(io_size=32K)"));
    assert_eq!(parse("RR(repeat=yes)"), parse("RR"));
    assert_eq!(serde_json::to_string(&parse("SR")).unwrap(), "\"SR(io_size=32K, target_offset=0B)\"");
}

#[test]
fn a_wrong_text_says_where_and_what() {
    for (text, column, expected, found) in [
        ("", 1, "SR, RR", "the end"),
        ("XR", 1, "SR, RR", "'XR'"),
        ("SR(io_size=big)", 12, "a size such as", "'big'"),
        ("SR(size=4K)", 4, "io_size, io_shift", "'size'"),
        ("SR(or=4K)", 4, "io_size, io_shift", "'or'"),
        ("SR(io_size=4K, io_size=4K)", 16, "io_size only once", "'io_size'"),
        ("SR(io_size)", 11, "'=' after io_size", "')'"),
        ("SR(io_size=4K", 14, "',' or ')'", "the end"),
        ("SR(burst=4)", 4, "together with pause", "'burst'"),
        ("RR(incr=2)", 4, "only with SR or SW", "'incr'"),
        ("SR(incr=2, partitions=2)", 12, "either incr or partitions", "'partitions'"),
        ("SR(repeat=no)", 4, "only with RR or RW", "'repeat'"),
        ("SR(partitions=0)", 15, "a number from 1", "'0'"),
        ("SR RW", 4, "the end of the pattern", "'RW'"),
        ("2 SR", 5, "'/'", "the end"),
        ("2 SR / 3 RW", 1, "1 for one of", "'2'"),
        ("0 x SR", 1, "a number from 1", "'0'"),
        ("é SR", 1, "SR, RR", "'é'"),
    ] {
        let Err(PatternError::Text { column: c, expected: e, found: f }) = text.parse::<Pattern>() else {
            panic!("'{text}' was taken");
        };
        assert!((c, f.as_str()) == (column, found) && e.contains(expected), "'{text}': {c} {e} {f}");
    }
}

/// The intended instants in microseconds; `None` for an IO of a closed loop.
fn instants(text: &str, count: u64) -> Vec<Option<u64>> {
    let instant = |io: &Io| match io.arrival {
        Arrival::At(instant) => Some(instant.0 / 1000),
        Arrival::After(_) => None,
    };
    ios(&parse(text), count, 1).iter().map(instant).collect()
}

#[test]
fn an_open_loop_has_instants_of_its_own_in_each_stream() {
    assert_eq!(instants("RW(target_size=1M, rate=2000/s)", 3), [Some(0), Some(500), Some(1000)]);
    // Replicated: the rate is that of the whole pattern.
    let (first, second) = ([Some(0), Some(1000)], [Some(500), Some(1500)]);
    assert_eq!(instants("2 x RW(target_size=1M, rate=2000/s)", 2), [first, second].concat());
    // Side by side: each has its own, or none.
    let beside = "SR(target_size=1M, rate=10/s) | RW(target_size=1M, rate=20/s) | SR(target_size=1M)";
    assert_eq!(instants(beside, 2), [Some(0), Some(100_000), Some(0), Some(50_000), None, None]);
    // A mix is one stream.
    let mix = "2 SR(target_size=1M, rate=1000/s) / 1 RW(target_size=1M, rate=1000/s)";
    assert_eq!(instants(mix, 4), [Some(0), Some(1000), Some(2000), Some(3000)]);
    let poisson = |text| instants(text, 50);
    assert_eq!(poisson("RW(target_size=1M, poisson=5/s)"), poisson("SR(target_size=1M, poisson=5/s)"));
    assert_ne!(poisson("RW(target_size=1M, poisson=5/s)"), poisson("RW(target_size=1M, rate=5/s)"));
}

#[test]
fn an_open_loop_goes_where_the_closed_one_goes() {
    let places = |timing: &str| {
        let text = format!("3 x RW(target_size=1G{timing})");
        ios(&parse(&text), 50, 9).iter().map(|io| (io.offset, io.size, io.mode)).collect::<Vec<_>>()
    };
    assert_eq!(places(""), places(", poisson=100/s"));
}

#[test]
fn a_mix_arrives_by_one_rule_and_instants_fit_a_record() {
    for (text, taken) in [
        ("1 SR(rate=10/s) / 1 RW(rate=10/s)", true),
        ("1 SR(rate=10/s) / 1 RW", false),
        ("1 SR(rate=10/s) / 1 RW(rate=11/s)", false),
        ("1 SR(rate=10/s) / 1 RW(poisson=10/s)", false),
        ("1 SR(pause=1ms) / 1 RW", true),
    ] {
        let pattern = parse(text).resolve(GEOMETRY).unwrap();
        assert_eq!(pattern.check(GEOMETRY).is_ok(), taken, "{text}");
        assert_eq!(pattern.streams(1, 1).is_ok(), taken, "{text}");
    }
    let error = parse("1 SR(rate=10/s) / 1 RW").check(GEOMETRY).unwrap_err().to_string();
    assert!(error.contains("rate 10/s is not consecutive; type the same rate="), "{error}");
    let slow = parse("4 x RW(rate=0.5/s)");
    assert_eq!(slow.check_instants(500_000), Ok(()));
    let error = slow.check_instants(1_000_000).unwrap_err().to_string();
    assert!(error.contains("4000000 IOs at 0.5/s take") && error.contains("type fewer IOs"), "{error}");
}

#[test]
fn a_rate_stands_alone_and_is_told_from_none() {
    for text in ["SR(rate=1/s, pause=1ms)", "SR(rate=1/s, poisson=1/s)", "SR(rate=1/s, sync=2)"] {
        let error = text.parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains("either rate or poisson, without pause, burst and sync"), "{error}");
    }
    let error = "SR(rate=fast)".parse::<Pattern>().unwrap_err().to_string();
    assert!(error.contains("such as 2000/s") && error.contains("'fast'"), "{error}");
    assert_eq!(parse("SR(rate=2000)").to_string(), "SR(io_size=32K, target_offset=0B, rate=2000/s)");
}

fn any_basic(target: u64) -> impl Strategy<Value = Basic> {
    let location = prop_oneof![
        Just(Location::Sequential),
        Just(Location::Random),
        Just(Location::RandomUnique),
        prop_oneof![-40i64..40, any::<i64>()].prop_map(|incr| Location::Ordered { incr }),
        (1u32..20).prop_map(|partitions| Location::Partitioned { partitions }),
    ];
    let timing = prop_oneof![
        Just(Timing::Consecutive),
        // Longer ones are refused: see tests/extremes.rs.
        (0..=IoRecord::MAX_SUBMIT.0).prop_map(|n| Timing::Pause { pause: Nanos(n) }),
        (0..=IoRecord::MAX_SUBMIT.0, 1u32..).prop_map(|(n, burst)| Timing::Burst { pause: Nanos(n), burst }),
        (1u64..=1_000_000_000_000, any::<bool>()).prop_map(|(n, poisson)| Timing::Open {
            rate: Rate::from_thousandths(n).unwrap(),
            gaps: if poisson { Gaps::Poisson } else { Gaps::Fixed },
        }),
    ];
    let numbers = (1u64..70_000, 0u64..40_000, 0..target, prop::option::of(0..target));
    (any::<bool>(), location, timing, numbers).prop_map(|(write, location, timing, numbers)| Basic {
        mode: if write { PatternMode::Write } else { PatternMode::Read },
        location,
        timing,
        io_size: Bytes(numbers.0),
        io_shift: Bytes(numbers.1),
        target_offset: Bytes(numbers.2),
        target_size: numbers.3.map(Bytes),
    })
}

fn any_pattern(target: u64) -> impl Strategy<Value = Pattern> {
    let basic = || any_basic(target);
    let ratio = prop_oneof![1i64..1000, -1000i64..-1];
    prop_oneof![
        basic().prop_map(Pattern::Basic),
        (basic(), basic(), ratio).prop_map(|(first, second, n)| Pattern::Mix {
            first,
            second,
            ratio: Ratio::from_value(n).unwrap()
        }),
        (1u32..40, basic()).prop_map(|(degree, basic)| Pattern::Replicated { degree, basic }),
        (1u32..40, basic()).prop_map(|(depth, basic)| Pattern::Queued { depth, basic }),
        prop::collection::vec(basic(), 2..5).prop_map(Pattern::SideBySide),
    ]
}

/// Several requests under way are those of the pattern itself, in its order.
#[test]
fn a_queue_deals_out_one_sequence() {
    let synced = "SW(io_size=4K, target_size=1M, sync=10)";
    for text in ["SR(io_size=4K, target_size=1M)", "RW(io_size=4K, target_size=1M, repeat=no)", synced] {
        let ios = |text: &str, count| -> Vec<Vec<Io>> {
            let streams = parse(text).streams(count, 7).unwrap();
            streams.into_iter().map(|stream| stream.collect()).collect()
        };
        let one = ios(text, 400).remove(0);
        let four = ios(&format!("4 deep {text}"), 100);
        let dealt: Vec<Io> = (0..100).flat_map(|i| four.iter().map(move |stream| stream[i])).collect();
        assert_eq!((four.len(), dealt), (4, one.clone()), "{text}");
        let whole = parse(&format!("4 deep {text}")).sequence(100, 7).unwrap().expect("a queue is one");
        assert_eq!(whole().collect::<Vec<Io>>(), one, "{text}, as a ring has it");
    }
    for timing in ["pause=1ms", "pause=1ms, burst=3"] {
        let text = format!("4 deep SR(io_size=4K, target_size=1M, {timing})");
        let told = "waits until none is; leave it away, type 1 deep, or 4 x";
        let errors = [
            parse(&text).check(GEOMETRY).unwrap_err(),
            parse(&text).streams(4, 7).err().unwrap(),
            parse(&text).sequence(4, 7).err().unwrap(),
        ];
        assert!(errors.iter().all(|error| error.to_string().contains(told)), "{errors:?}");
        parse(&text.replace("4 deep", "1 deep")).check(GEOMETRY).unwrap();
        parse(&text.replace("4 deep", "4 x")).check(GEOMETRY).unwrap();
    }
    assert!(parse("4097 deep SR").check(GEOMETRY).is_err());
}

proptest! {
    #[test]
    fn text_round_trip(pattern in any_pattern(1 << 52)) {
        prop_assert_eq!(pattern.to_string().parse::<Pattern>(), Ok(pattern));
    }

    #[test]
    fn the_parser_never_panics(text in any::<String>(), near in "[SRW0-9x/|(),= a-zé]{0,40}") {
        let _ = text.parse::<Pattern>();
        let _ = near.parse::<Pattern>();
    }

    /// Whatever the check takes stays in its target space and is aligned to
    /// IOSize but for IOShift; whatever it refuses does not panic.
    #[test]
    fn no_io_leaves_its_target_space(pattern in any_pattern(1 << 21), seed in any::<u64>()) {
        let geometry = Geometry { capacity: Bytes(1 << 22), sector: Bytes(1) };
        let pattern = pattern.resolve(geometry).unwrap();
        let Ok(()) = pattern.check(geometry) else { return Ok(()) };
        let parts = pattern.parts();
        for (number, stream) in pattern.streams(300, seed).unwrap().into_iter().enumerate() {
            for io in stream {
                let part = &parts[number.max(usize::from(io.pattern))];
                let (start, size) = (part.target_offset.0, part.target_size.unwrap().0);
                let end = io.offset.0 + u64::from(io.size);
                prop_assert!(io.offset.0 >= start + part.io_shift.0 && end <= start + size);
                prop_assert_eq!((io.offset.0 - start - part.io_shift.0) % part.io_size.0, 0);
                prop_assert_eq!(u64::from(io.size), part.io_size.0);
            }
        }
    }

    /// No address comes again before all were used, for every Incr but 0.
    #[test]
    fn ordered_uses_every_slot_once_a_pass(n in 1u64..200, incr in any::<i64>(), small in -30i64..30) {
        for incr in [incr, small].into_iter().filter(|k| *k != 0) {
            let mut slots: Vec<u64> = offsets(&format!("SR(io_size=1, target_size={n}, incr={incr})"), n);
            slots.sort_unstable();
            prop_assert!(slots.into_iter().eq(0..n));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_ios_and_another_does_not(seed in any::<u64>()) {
        for text in ["RR(target_size=1G)", "RW(target_size=1G, repeat=no)", "3 x RW(target_size=1G)",
                     "2 SR(target_size=1G) / 1 RW(target_size=1G)"] {
            let pattern = parse(text);
            prop_assert_eq!(ios(&pattern, 50, seed), ios(&pattern, 50, seed));
            prop_assert_ne!(ios(&pattern, 50, seed), ios(&pattern, 50, seed ^ 1));
        }
    }
}
