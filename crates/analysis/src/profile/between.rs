//! Levels know what changes between runs, also where each run was made once.
//!
//! Method: many micro-benchmarks contain the same experiment, as the reference
//! pattern of paper 001's Table 1 is a point of most of them (IOSize 32 KB,
//! IOShift 0, one partition, Incr 1, one process, no pause). Runs of one and the
//! same pattern, wherever they stand in the plan, are a group; how far their
//! means are apart beyond their own intervals (`detect::between`), reads and
//! writes apart, is added in quadrature to the interval of every level.
//! Units: nanoseconds. Limits: where no pattern comes twice nothing is added.

use super::facts::{BetweenRuns, Facts};
use std::collections::BTreeMap;
use uflip_device::{Bytes, Nanos};
use uflip_measure::detect::between::{Between, RunMean, between};
use uflip_measure::detect::knee::Level;
use uflip_measure::pattern::{Basic, Location, Pattern, PatternMode, Timing};
use uflip_store::contents::StoreContents;

/// The pattern without what does not matter: where it is, and parameters that
/// have no effect at their first value. Random patterns keep the size of
/// their target space, which is Locality's.
fn essence(pattern: &Pattern) -> Option<Basic> {
    let basic = match pattern {
        Pattern::Basic(basic) | Pattern::Replicated { degree: 1, basic } => *basic,
        _ => return None,
    };
    let location = match basic.location {
        Location::Ordered { incr: 1 } | Location::Partitioned { partitions: 1 } => Location::Sequential,
        Location::SequentialFrom { .. } => Location::Sequential,
        other => other,
    };
    let timing = match basic.timing {
        Timing::Pause { pause: Nanos::ZERO } | Timing::Burst { pause: Nanos::ZERO, .. } => {
            Timing::Consecutive
        }
        other => other,
    };
    let target_size = basic.target_size.filter(|_| basic.is_random());
    Some(Basic { location, timing, target_size, target_offset: Bytes(0), ..basic })
}

/// What changes between runs of the same pattern.
pub(super) fn between_runs(contents: &StoreContents, facts: &Facts) -> BetweenRuns {
    let patterns: BTreeMap<u32, &Pattern> =
        contents.runs.iter().filter_map(|row| Some((row.spec.id, row.spec.pattern()?))).collect();
    let mut groups: BTreeMap<String, (PatternMode, Vec<RunMean>)> = BTreeMap::new();
    let mut add = |run: Option<&u32>, level: &Level, repeats: usize| {
        let basic = run.and_then(|run| patterns.get(run)).and_then(|pattern| essence(pattern));
        let Some(basic) = basic.filter(|_| repeats == 1) else { return };
        let error = (level.high_ns - level.low_ns) / 2.0 / 1.96;
        let group = groups.entry(basic.to_string()).or_insert((basic.mode, Vec::new()));
        group.1.push(RunMean { mean: level.mean_ns, error });
    };
    for baseline in &facts.baselines {
        baseline.repeats.iter().for_each(|repeat| add(Some(&repeat.run), &repeat.level, 1));
    }
    for point in facts.curves.iter().flat_map(|curve| &curve.points) {
        add(point.runs.first(), &point.level, point.runs.len());
    }
    let of = |mode| {
        let mine = groups.values().filter(|(m, _)| *m == mode).map(|(_, group)| group.clone());
        between(&mine.collect::<Vec<_>>())
    };
    BetweenRuns { reads: of(PatternMode::Read), writes: of(PatternMode::Write) }
}

/// Adds it to the interval of every level that was measured once; where a run
/// was repeated, the repeats themselves tell how far they are apart.
pub(super) fn widen(facts: &mut Facts) {
    let BetweenRuns { reads, writes } = facts.between;
    let of = |writing: bool| if writing { writes } else { reads };
    for b in facts.baselines.iter_mut().filter(|b| b.repeats.len() == 1) {
        let found = of(b.baseline.mode() == PatternMode::Write);
        b.level = widened(b.level, found);
        let closed = b.percentiles.iter_mut().filter(|level| level.high_ns.is_finite());
        closed.for_each(|level| *level = widened(*level, found));
    }
    for curve in &mut facts.curves {
        let found = of(curve.id.curve.baselines().iter().any(|b| b.mode() == PatternMode::Write));
        for point in curve.points.iter_mut().filter(|p| p.runs.len() == 1) {
            point.level = widened(point.level, found);
        }
    }
}

/// The level of one run with what changes between runs; one without an interval
/// gets that of runs like it.
fn widened(level: Level, found: Option<Between>) -> Level {
    if level.high_ns.is_infinite()
        && let Some(half) = found.and_then(|found| found.half_width_of_a_run())
    {
        let half = half * level.mean_ns;
        return Level { low_ns: (level.mean_ns - half).max(0.0), high_ns: level.mean_ns + half, ..level };
    }
    let extra = found.map_or(0.0, |found| found.relative_half_width(1)) * level.mean_ns;
    if extra == 0.0 {
        return level;
    }
    Level {
        low_ns: (level.mean_ns - (level.mean_ns - level.low_ns).hypot(extra)).max(0.0),
        high_ns: level.mean_ns + (level.high_ns - level.mean_ns).hypot(extra),
        ..level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_experiment_is_known_under_other_names() {
        let name = |text: &str| essence(&text.parse().unwrap()).map(|basic| basic.to_string());
        let plain = name("SW(io_size=32K, target_size=1G)");
        for same in [
            "SW(io_size=32K, target_offset=7M, target_size=32M)",
            "SW(io_size=32K, target_size=64M, incr=1)",
            "SW(io_size=32K, target_size=64M, partitions=1)",
            "1 x SW(io_size=32K, target_size=64M)",
        ] {
            assert_eq!(name(same), plain, "{same}");
        }
        for other in [
            "SW(io_size=4K)",
            "SW(io_size=32K, io_shift=512B)",
            "SR(io_size=32K)",
            "2 x SW(io_size=32K)",
            "SW(io_size=32K, incr=2)",
            "SW(io_size=32K, pause=1ms)",
            "2 SW / 1 SR",
        ] {
            assert_ne!(name(other), plain, "{other}");
        }
        let random = |size| name(&format!("RW(io_size=32K, target_size={size})"));
        assert_ne!(random("1G"), random("1M"), "locality");
    }

    #[test]
    fn an_interval_is_widened_in_quadrature_and_stays_above_nothing() {
        let found = Between { relative_sd: 0.1, total_sd: 0.2, runs: 1_000_001, freedom: 1_000_000 };
        let level = Level { mean_ns: 100.0, low_ns: 90.0, high_ns: 110.0 };
        let wide = widened(level, Some(found));
        let half = 10f64.hypot(19.6);
        assert!((wide.low_ns - (100.0 - half)).abs() < 0.01 && (wide.high_ns - (100.0 + half)).abs() < 0.01);
        assert_eq!(widened(level, None), level);
        let few = Between { freedom: 1, ..found };
        assert_eq!(widened(level, Some(few)).low_ns, 0.0);
        let open = Level { high_ns: f64::INFINITY, ..level };
        assert!((widened(open, Some(found)).high_ns - 139.2).abs() < 0.01);
        assert!(widened(open, Some(Between { total_sd: 0.0, ..found })).high_ns.is_infinite());
    }
}
