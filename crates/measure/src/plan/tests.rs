//! What a plan must hold.
use super::*;
use crate::micro::Override;
use crate::pattern::Timing;
use MicroBenchmark::{Alignment, Bursts, Granularity, Locality, Mix, Order, Parallelism, Partitioning};
use proptest::prelude::*;
use std::collections::HashSet;

const DISK: Geometry = Geometry { capacity: Bytes(32 << 30), sector: Bytes(512) };

const SR: Curve = Curve::One(Baseline::Sr);
const RR: Curve = Curve::One(Baseline::Rr);
const SW: Curve = Curve::One(Baseline::Sw);
const RW: Curve = Curve::One(Baseline::Rw);
const RR_RW: Curve = Curve::Pair(Baseline::Rr, Baseline::Rw);

/// Whether a run is of this experiment at this value.
fn is(run: &RunSpec, micro: MicroBenchmark, curve: Curve, label: &str) -> bool {
    run.point().is_some_and(|p| (p.micro, p.curve) == (micro, curve) && p.label() == label)
}

fn plan(preset: Preset, geometry: Geometry) -> Plan {
    make_plan(&PlanOptions::new(preset), geometry).unwrap()
}

#[test]
fn every_run_fits_the_target_and_has_its_own_seed() {
    for preset in [Preset::Quick, Preset::Standard, Preset::Full] {
        for geometry in [DISK, Geometry { capacity: Bytes(256 << 20), sector: Bytes(4096) }] {
            let plan = plan(preset, geometry);
            let mut seeds = HashSet::new();
            for (id, run) in plan.runs().enumerate() {
                assert_eq!(run.id as usize, id);
                assert!(run.io_ignore < run.io_count);
                run.pattern().unwrap().check(geometry).unwrap_or_else(|e| panic!("{}: {e}", run.work));
                assert!(run.work.streams(1, run.seed).is_ok());
                assert!(seeds.insert(run.seed));
            }
        }
    }
}

#[test]
fn a_plan_is_json_both_ways_and_says_patterns_as_text() {
    let mut options = PlanOptions::new(Preset::Full);
    options.target = "sim:memoright".to_string();
    let plan = make_plan(&options, DISK).unwrap();
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    assert!(
        json.contains(r#""pattern":"SR(io_size=32K, target_offset=0B, target_size=640M)""#),
        "{json:.900}"
    );
    assert!(json.contains(r#"{"step":"reset","state":"random"}"#));
}

#[test]
fn baselines_first_then_reads_and_parallel_writes_last() {
    let plan = plan(Preset::Standard, DISK);
    let kinds: Vec<u8> = plan
        .runs()
        .map(|run| match (run.point().map(|p| (p.micro, p.curve)), run.work.writes()) {
            (None, _) => 0,
            (_, false) => 1,
            (Some((Parallelism, _)), _) => 7,
            (Some((_, RW)), _) => 2,
            (Some((Mix, _)), _) => 3,
            (Some((Partitioning, _)), _) => 5,
            (Some((Order, _)), _) => 6,
            _ => 4,
        })
        .collect();
    assert!(kinds.is_sorted());
    assert_eq!(kinds.iter().collect::<HashSet<_>>().len(), 8);
    assert_eq!(kinds.iter().filter(|k| **k == 0).count(), 12);
}

#[test]
fn the_papers_counts_and_repeats() {
    let plan = plan(Preset::Standard, DISK);
    let of = |micro, curve, label| -> Vec<(u64, u64)> {
        plan.runs()
            .filter(|run| is(run, micro, curve, label))
            .map(|run| (run.io_count, run.io_ignore))
            .collect()
    };
    assert_eq!(of(Granularity, SW, "32K"), [(1024, 0); 3]);
    assert_eq!(of(Granularity, RR, "32K"), [(1024, 0); 3]);
    assert_eq!(of(Granularity, RW, "32K"), [(5120, 0); 3]);
    assert_eq!(of(Mix, RR_RW, "2 : 1"), [(5120, 0); 3]);
    assert_eq!(of(Bursts, SR, "640"), [(2560, 0); 3]);
}

#[test]
fn what_the_target_cannot_take_is_skipped_with_the_reason() {
    let plan = plan(Preset::Standard, Geometry { capacity: Bytes(1 << 30), sector: Bytes(4096) });
    let skipped = |micro: MicroBenchmark, curve: Curve, label: &str| {
        let found = |s: &&Skipped| {
            s.micro_benchmark == RunSection::Micro(micro) && s.baseline == curve && s.label == label
        };
        plan.skipped.iter().find(found).map(|s| s.reason.clone()).unwrap_or_default()
    };
    assert!(skipped(Granularity, SW, "512B").contains("sector of 4K"));
    assert!(skipped(Granularity, RR, "33K").contains("IOSize 33K"));
    assert!(skipped(Alignment, RW, "512B").contains("IOShift 512B"));
    assert!(skipped(Locality, RW, "2G").contains("end at 1G"));
    let ran = |s: &Skipped| {
        plan.runs().any(|run| {
            let same =
                |p: &PlannedPoint| RunSection::Micro(p.micro) == s.micro_benchmark && p.label() == s.label;
            run.curve_name().known() == Some(s.baseline) && run.point().is_some_and(same)
        })
    };
    assert!(!plan.skipped.iter().any(ran));
}

#[test]
fn overrides_change_values_io_size_and_baselines() {
    let mut options = PlanOptions::new(Preset::Quick);
    options.only = vec![MicroBenchmark::Order];
    let change = Override {
        values: Some(vec![7, 1 << 40]),
        io_size: Some(Bytes(4096)),
        baselines: Some(vec![Curve::One(Baseline::Sw), Curve::One(Baseline::Rr)]),
    };
    options.overrides.insert(MicroBenchmark::Order, change);
    let plan = make_plan(&options, DISK).unwrap();
    let points: Vec<_> = plan.runs().filter(|run| run.point().is_some()).collect();
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].work.basics()[0].io_size, Bytes(4096));
    assert_eq!(points[0].work.basics()[0].location, Location::Ordered { incr: 7 });
    let reasons: Vec<&str> = plan.skipped.iter().map(|s| s.reason.as_str()).collect();
    assert_eq!(reasons.len(), 3);
    assert!(reasons[0].contains("goes past") && reasons[1].contains("sequential"), "{reasons:?}");
}

#[test]
fn quick_pauses_are_bounded() {
    for run in plan(Preset::Quick, DISK).runs() {
        let ios = run.io_count;
        let pauses = match run.work.basics()[0].timing {
            Timing::Consecutive | Timing::Synced { .. } | Timing::Open { .. } => 0,
            Timing::Pause { pause } => (ios - 1) * pause.0,
            Timing::Burst { pause, burst } => {
                assert!(ios > u64::from(burst), "no pause at all");
                (ios - 1) / u64::from(burst) * pause.0
            }
        };
        assert!(pauses <= 1_000_000_000, "{}: {pauses}", run.work);
    }
}

/// The target space of the first basic pattern of each run of an experiment.
fn target_spaces(plan: &Plan, micro: MicroBenchmark, curve: Curve, label: &str) -> Vec<(u64, u64)> {
    let point = |run: &&RunSpec| is(run, micro, curve, label);
    let space = |run: &RunSpec| {
        let basic = *run.work.basics()[0];
        (basic.target_offset.0, basic.target_size.unwrap().0)
    };
    plan.runs().filter(point).map(space).collect()
}

#[test]
fn target_spaces_are_as_large_as_the_run_needs() {
    const IO: u64 = 32 << 10;
    let plan = plan(Preset::Standard, DISK);
    let sizes = |micro, baseline, label| -> Vec<u64> {
        target_spaces(&plan, micro, baseline, label).into_iter().map(|(_, size)| size).collect()
    };
    assert_eq!(sizes(Granularity, SW, "32K"), [1024 * IO; 3]);
    assert_eq!(sizes(Alignment, SW, "512B"), [1025 * IO; 3]);
    assert_eq!(sizes(Order, SW, "16"), [16 * 1024 * IO; 3]);
    assert_eq!(sizes(Order, SW, "0"), [IO; 3]);
    assert_eq!(sizes(Parallelism, SW, "16"), [16 * 1024 * IO; 3]);
    assert_eq!(sizes(Locality, SW, "64K"), [64 << 10; 3]);
    // 1024 IOs over 4 partitions; over 256 of them each has its 1 MiB.
    assert_eq!(sizes(Partitioning, SW, "4"), [1024 * IO; 3]);
    assert_eq!(sizes(Partitioning, SW, "256"), [256 << 20; 3]);
    assert_eq!(target_spaces(&plan, Granularity, RW, "32K"), [(0, 32 << 30); 3]);
    assert_eq!(target_spaces(&plan, Parallelism, RR, "4"), [(0, 32 << 30); 3]);
    let reads = target_spaces(&plan, Granularity, SR, "32K");
    assert!(reads[0] != reads[1] && reads[1] != reads[2], "sequential reads go round: {reads:?}");
}

#[test]
fn without_a_state_the_space_starts_again_with_a_note() {
    let small = Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };
    let plan = plan(Preset::Quick, small);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Reset { .. })));
    assert!(plan.notes.iter().any(|note| note.contains("started again")));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut options = PlanOptions::new(Preset::Quick);
    options.repeats = 0;
    assert_eq!(make_plan(&options, DISK), Err(PlanError::Repeats));
    options = PlanOptions::new(Preset::Quick);
    options.io_size = Bytes(1000);
    assert!(matches!(make_plan(&options, DISK), Err(PlanError::Baseline(_))));
    options = PlanOptions::new(Preset::Quick);
    options.io_counts.rw = Counts { count: 100, ignore: 100 };
    assert!(matches!(make_plan(&options, DISK), Err(PlanError::Counts { .. })));
}

#[test]
fn the_estimate_follows_the_means() {
    let mut options = PlanOptions::new(Preset::Quick);
    options.only = vec![MicroBenchmark::Pause];
    let change = Override { values: Some(vec![1_000_000]), baselines: Some(vec![]), ..Override::default() };
    options.overrides.insert(MicroBenchmark::Pause, change);
    options.pause_between_runs = Nanos::ZERO;
    let plan = make_plan(&options, DISK).unwrap();
    let estimate = plan.estimate(&BaselineMeans { sr: 1.0, rr: 2.0, sw: 3.0, rw: 4.0 });
    assert_eq!(estimate, Nanos::from_millis(2048 * 10));
    let summary = plan.summary();
    assert_eq!((summary.runs, summary.ios), (4, 8192));
    assert_eq!((summary.read_bytes, summary.write_bytes), (Bytes(128 << 20), Bytes(128 << 20)));
}

#[test]
fn the_summary_counts_resets_and_pauses() {
    let mut options = PlanOptions::new(Preset::Quick);
    options.state = State::SEQUENTIAL;
    options.only = vec![MicroBenchmark::Parallelism];
    let change = Override {
        values: Some(vec![4]),
        baselines: Some(vec![Curve::One(Baseline::Rr)]),
        ..Override::default()
    };
    options.overrides.insert(MicroBenchmark::Parallelism, change);
    let plan = make_plan(&options, DISK).unwrap();
    let summary = plan.summary();
    assert_eq!((summary.runs, summary.resets, summary.reset_bytes), (5, 1, DISK.capacity));
    // In quick plans the four processes share 256 IOs.
    assert_eq!(summary.ios, 4 * 2048 + 256);
    assert_eq!(summary.pauses, Nanos::from_millis(50));
    // 32,768 writes of 1 MiB, each as 32 of 32 KB, and the runs.
    let ms = 32_768 * 32 * 3 + 2048 * 10 + 256 * 2 + 50;
    let estimate = plan.estimate(&BaselineMeans { sr: 1.0, rr: 2.0, sw: 3.0, rw: 4.0 });
    assert_eq!(estimate, Nanos::from_millis(ms));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Sequential writes never overlap between two resets.
    #[test]
    fn sequential_writes_are_disjoint_between_resets(
        mib in 16u64..40_000, io_kib in prop_oneof![1u64..200, 1000u64..3000], preset in 0..2usize, state in 0..2usize, odd in 0u64..2048,
    ) {
        let geometry = Geometry { capacity: Bytes((mib << 20) + odd * 512), sector: Bytes(512) };
        let mut options = PlanOptions::new([Preset::Quick, Preset::Standard][preset]);
        options.state = [State::Random, State::SEQUENTIAL][state];
        options.io_size = Bytes(io_kib << 10);
        let plan = make_plan(&options, geometry).unwrap();
        prop_assert_eq!(&plan.steps[0], &Step::Reset { state: options.state });
        let mut end = 0;
        for step in &plan.steps {
            match step {
                Step::Reset { .. } => end = 0,
                Step::Pause { .. } => {}
                Step::Run(run) => {
                    for basic in run.work.basics() {
                        if basic.mode == PatternMode::Write && !basic.is_random() {
                            prop_assert!(basic.target_offset.0 >= end, "{}", run.work);
                            end = basic.target_offset.0 + basic.target_size.unwrap().0;
                            prop_assert!(end <= geometry.capacity.0);
                            let align = (1 << 20).max(basic.io_size.0);
                            prop_assert_eq!(basic.target_offset.0 % align, 0);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_options_give_the_same_plan(seed in any::<u64>()) {
        let mut options = PlanOptions::new(Preset::Quick);
        options.seed = seed;
        prop_assert_eq!(make_plan(&options, DISK), make_plan(&options, DISK));
    }
}

#[test]
fn values_are_dropped_evenly_and_the_ends_stay() {
    assert_eq!(length::evenly(10, 16), (0..10).collect::<Vec<_>>());
    assert_eq!(length::evenly(10, 8), [0, 2, 5, 7, 9]);
    assert_eq!(length::evenly(10, 1), [0, 9]);
    assert_eq!(length::evenly(1, 3), [0]);
    assert_eq!(length::evenly(0, 3), [0usize; 0]);
    let mut options = PlanOptions::new(Preset::Standard);
    options.only = vec![MicroBenchmark::Granularity];
    let all = make_plan(&options, DISK).unwrap();
    options.values_of_16 = 8;
    let half = make_plan(&options, DISK).unwrap();
    let dropped = half.skipped.iter().filter(|s| s.reason == DROPPED).count();
    assert_eq!(all.runs().count() - half.runs().count(), 3 * dropped);
    assert!(dropped > 20, "{dropped}");
    options.overrides.insert(
        MicroBenchmark::Granularity,
        Override { values: Some(vec![4096, 8192, 16384]), ..Override::default() },
    );
    assert!(make_plan(&options, DISK).unwrap().skipped.is_empty(), "the user's own values stay");
}

#[test]
fn scattered_writes_get_the_longer_lengths_in_the_automatic_method() {
    let mut options = PlanOptions::new(Preset::Standard);
    options.only = vec![MicroBenchmark::Order, MicroBenchmark::Partitioning];
    options.io_counts.rw = Counts { count: 1128, ignore: 128 };
    options.io_counts.sw = Counts { count: 300, ignore: 0 };
    let lengths = |options: &PlanOptions| {
        let plan = make_plan(options, DISK).unwrap();
        let of = |run: &RunSpec| run.point().map(|point| (point.curve, run.io_count, run.io_ignore));
        plan.runs().filter_map(of).collect::<HashSet<_>>()
    };
    assert!(lengths(&options).contains(&(SW, 300, 0)));
    options.method = Method::Auto;
    let auto = lengths(&options);
    assert!(auto.contains(&(SW, 1128, 128)) && auto.contains(&(SR, 1024, 0)));
    assert_eq!(auto.len(), 2);
}

#[test]
fn the_filling_of_a_queue_is_left_out_and_its_emptying_is_a_small_share() {
    for preset in [Preset::Quick, Preset::Standard, Preset::Full] {
        let mut options = PlanOptions::new(preset);
        options.only = vec![MicroBenchmark::QueueDepth];
        options.io_counts.rw = Counts { count: 1128, ignore: 300 };
        let plan = make_plan(&options, DISK).unwrap();
        let deep = |run: &&RunSpec| run.point().is_some();
        let mut depths = HashSet::new();
        for run in plan.runs().filter(deep) {
            let (point, depth) = (run.point().unwrap(), run.work.stream_count() as u64);
            let own = options.io_counts.of(point.curve.one().unwrap());
            let running = depth * (run.io_count - run.io_ignore);
            assert!(depth * run.io_ignore >= own.ignore && running >= own.count - own.ignore, "{}", run.work);
            let filled = depth == 1 || (run.io_ignore >= 2 && run.io_count - run.io_ignore >= 32);
            assert!(filled, "{}: {} of {}", run.work, run.io_ignore, run.io_count);
            depths.insert(depth);
        }
        assert!(depths.contains(&1) && depths.contains(&128), "{depths:?}");
    }
}
