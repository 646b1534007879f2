//! Levels know what changes between runs, also where each run was made once.
//!
//! Method: many micro-benchmarks contain the same experiment, as the reference
//! pattern of paper 001's Table 1 is a point of most of them (IOSize 32 KB,
//! IOShift 0, one partition, Incr 1, one process, no pause). Runs of one and the
//! same pattern, wherever they stand in the plan, are a group; how far their
//! means are apart beyond their own intervals (`detect::between`), reads and
//! writes apart, is part of the interval of every level, however often it was measured
//! (`detect::level`). The repeats of a point are a group by themselves where the point is
//! none of the reference pattern. Units: nanoseconds. Limits: where no pattern comes twice
//! nothing is added.

use super::facts::{BetweenRuns, Facts};
use std::collections::BTreeMap;
use uflip_device::{Bytes, Nanos};
use uflip_measure::detect::between::{RunMean, between};
use uflip_measure::detect::level::{KnownLevel, of_repeats};
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
    let mut add = |run: u32, level: &KnownLevel, point: &str| {
        let Some(pattern) = patterns.get(&run) else { return };
        let (name, mode) = match essence(pattern) {
            Some(basic) => (basic.to_string(), basic.mode),
            None => (point.to_string(), mode(pattern)),
        };
        groups.entry(name).or_insert((mode, Vec::new())).1.push(RunMean::of(level));
    };
    for baseline in &facts.baselines {
        baseline.repeats.iter().for_each(|repeat| add(repeat.run, &repeat.known, ""));
    }
    for curve in &facts.curves {
        for point in &curve.points {
            let name = format!("{} {} {}", curve.id.section, curve.id.curve, point.value);
            point.runs.iter().zip(&point.repeats).for_each(|(run, level)| add(*run, level, &name));
        }
    }
    let of = |mode| {
        let mine = groups.values().filter(|(m, _)| *m == mode).map(|(_, group)| group.clone());
        between(&mine.collect::<Vec<_>>())
    };
    BetweenRuns { reads: of(PatternMode::Read), writes: of(PatternMode::Write) }
}

/// What most of a pattern's IOs do: a mix that writes at all is charged as writes are.
fn mode(pattern: &Pattern) -> PatternMode {
    let writes = pattern.basics().iter().any(|basic| basic.mode != PatternMode::Read);
    if writes { PatternMode::Write } else { PatternMode::Read }
}

/// The level of everything that was measured, with what changes between runs.
pub(super) fn settle(facts: &mut Facts) {
    let BetweenRuns { reads, writes } = facts.between;
    let of = |writing: bool| if writing { writes } else { reads };
    for b in &mut facts.baselines {
        let found = of(b.baseline.mode() == PatternMode::Write);
        let repeats: Vec<KnownLevel> = b.repeats.iter().map(|r| r.known).collect();
        if let Some(known) = of_repeats(&repeats, found.as_ref()) {
            (b.level, b.freedom) = (known.level, known.freedom);
        }
        for level in &mut b.percentiles {
            *level = found.map_or(*level, |found| level.widened(repeats.len(), &found));
        }
    }
    for curve in &mut facts.curves {
        let found = of(curve.id.curve.baselines().iter().any(|b| b.mode() == PatternMode::Write));
        for point in &mut curve.points {
            if let Some(known) = of_repeats(&point.repeats, found.as_ref()) {
                (point.level, point.freedom) = (known.level, known.freedom);
            }
        }
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
}
