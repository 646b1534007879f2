//! The levels of a store: what each baseline and each point of each curve
//! costs, with intervals.
//!
//! Method: a run's level is the mean of its running phase with the interval of
//! batch means for correlated data (`detect::interval`). The level of a point is the mean
//! of its runs' means, however many there are; its interval is of the runs' own intervals
//! and of what changes between equal runs (`between.rs`), by `detect::level`. The running phase begins
//! after IOIgnore or the start-up found in the baseline's own runs, whichever
//! is later; the latter only where it leaves half of the run.
//!
//! Source: paper 001, sections 3.2 and 4.2. Units: nanoseconds.

use super::between::{self, between_runs};
use super::facts::{BaselineFacts, BetweenRuns, CurveFacts, Facts, MeasuredCurve, Repeat, SPREAD_LIMIT};
use super::open_loop::is_closed;
use super::phases::{self, Source};
use crate::spectrum::Spectrum;
use uflip_device::IoRecord;
use uflip_measure::detect::level::{KnownLevel, PRINTED, of_repeats};
use uflip_measure::detect::long::{Phase, spread};
use uflip_measure::mix_counts;
use uflip_measure::pattern::{Baseline, Pattern};
use uflip_measure::run::CurveId;
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;
use uflip_store::verify::in_parallel;

/// Where the records of a run come from.
pub type Records<'a> = dyn Fn(&RunRow) -> Result<Vec<IoRecord>, StoreError> + Sync + 'a;

/// Reads what the rules need.
pub(super) fn gather(contents: &StoreContents, source: &Source<'_>) -> Result<Facts, StoreError> {
    let mut baselines = Vec::new();
    for baseline in Baseline::ALL {
        baselines.extend(baseline_facts(contents, baseline, source)?);
    }
    let first = contents.runs.iter().find(|r| r.spec.baseline().is_some() && is_closed(r));
    let io_size_bytes = first.and_then(|r| r.spec.work.basics().first().map(|b| b.io_size.0));
    let between = BetweenRuns::default();
    let mut facts = Facts { io_size_bytes, baselines, curves: Vec::new(), between };
    facts.curves = curves(contents, &facts, source)?;
    facts.between = between_runs(contents, &facts);
    between::settle(&mut facts);
    Ok(facts)
}

/// The rows of one baseline's own runs, in order of repetition.
fn baseline_rows(contents: &StoreContents, baseline: Baseline) -> Vec<&RunRow> {
    let own = |r: &&RunRow| r.spec.baseline() == Some(baseline) && is_closed(r);
    let mut rows: Vec<&RunRow> = contents.runs.iter().filter(own).collect();
    rows.sort_by_key(|r| (r.spec.belongs.repeat(), r.spec.id));
    rows
}

fn baseline_facts(
    contents: &StoreContents,
    baseline: Baseline,
    source: &Source<'_>,
) -> Result<Option<BaselineFacts>, StoreError> {
    let rows = baseline_rows(contents, baseline);
    let fit = phases::fit(&rows);
    let mut series = Vec::new();
    for row in &rows {
        let all = phases::take(row, source, |_| 0, None)?.phase;
        let (ios, found) = (all.ios() as usize, all.start_up());
        if ios > 0 {
            // What is not kept is read again.
            series.push((*row, ios, found, fit.then_some(all)));
        }
    }
    let start_up = most(series.iter().map(|(_, _, found, _)| found.map(|s| s.ios as f64)));
    let (mut repeats, mut running, mut spectrum) = (Vec::new(), Vec::new(), Spectrum::default());
    for (row, ios, found, kept) in series {
        let from = running_from(row.spec.io_ignore, start_up.map(|s| s as u64), ios);
        let phase = match kept {
            Some(Phase::Whole(mut all)) => {
                all.drain(..from);
                Phase::Whole(all)
            }
            _ => phases::take(row, source, |_| from, Some(&mut spectrum))?.phase,
        };
        let period = phase.period().map(|p| p.ios);
        let Some(known) = level(&phase, period) else { continue };
        repeats.push(Repeat {
            run: row.spec.id,
            io_ignore: row.spec.io_ignore,
            ios,
            known,
            start_up: found,
            period,
        });
        running.push(if fit { phase } else { phase.condensed(phases::share(rows.len())) });
    }
    let levels: Vec<KnownLevel> = repeats.iter().map(|r| r.known).collect();
    let period = most(repeats.iter().map(|r| r.period));
    Ok(of_repeats(&levels, None).map(|known| BaselineFacts {
        baseline,
        level: known.level,
        freedom: known.freedom,
        n: running.iter().map(Phase::ios).sum(),
        runs: repeats.iter().map(|r| r.run).collect(),
        start_up: start_up.map(|s| s.round() as u64),
        period,
        spread: spread(&running, period, SPREAD_LIMIT),
        percentiles: percentiles(&running, &spectrum),
        repeats,
    }))
}

/// The percentiles of phases that are all kept, or else those that were counted.
fn percentiles(phases: &[Phase], spectrum: &Spectrum) -> Vec<KnownLevel> {
    let whole = |phase: &Phase| if let Phase::Whole(all) = phase { Some(all.clone()) } else { None };
    match phases.iter().map(whole).collect::<Option<Vec<_>>>() {
        Some(whole) if spectrum.n() == 0 => super::levels::percentiles(&whole),
        _ => {
            let windows = phases.iter().map(|phase| match phase {
                Phase::Whole(all) => &all[..],
                Phase::Long(long) => long.window(),
            });
            super::levels::percentiles_of_counts(spectrum, &windows.collect::<Vec<_>>())
        }
    }
}

/// The median of what was found, where it was found in most repeats.
fn most(found: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all: Vec<Option<f64>> = found.collect();
    let mut some: Vec<f64> = all.iter().copied().flatten().collect();
    some.sort_by(f64::total_cmp);
    (2 * some.len() > all.len()).then(|| some[some.len() / 2])
}

/// Where the running phase of a run of `n` IOs begins.
fn running_from(io_ignore: u64, start_up: Option<u64>, n: usize) -> usize {
    let ignore = usize::try_from(io_ignore).unwrap_or(usize::MAX).min(n);
    let start_up = start_up.and_then(|s| usize::try_from(s).ok()).unwrap_or(0);
    if start_up > ignore && start_up <= n / 2 { start_up } else { ignore }
}

/// The mean of a running phase with its interval; open where it is too short
/// to have one. None for no IOs.
fn level(phase: &Phase, period: Option<f64>) -> Option<KnownLevel> {
    if phase.is_empty() {
        return None;
    }
    let mean_ns = phase.mean_ns();
    let shaped = phase.batch_means(period, PRINTED).map(|i| {
        let mut known = KnownLevel::from(&i);
        known.level.mean_ns = mean_ns;
        known.level.low_ns = (mean_ns - (i.mean_ns - i.low_ns)).max(0.0);
        known.level.high_ns = mean_ns + (i.high_ns - i.mean_ns);
        known
    });
    Some(shaped.unwrap_or(KnownLevel::open(mean_ns)))
}

/// A run of a micro-benchmark, summed up.
struct Summed {
    level: KnownLevel,
    /// IOs of each pattern of a mix.
    by_pattern: [u64; 2],
    phase: Phase,
}

/// Every curve of the store.
fn curves(
    contents: &StoreContents,
    facts: &Facts,
    source: &Source<'_>,
) -> Result<Vec<MeasuredCurve>, StoreError> {
    let of_curve = |r: &&RunRow| key(r).is_some() && !r.spec.belongs.prepares() && is_closed(r);
    let mut rows: Vec<&RunRow> = contents.runs.iter().filter(of_curve).collect();
    // Repeats of one point side by side, so that few are in memory at a time.
    rows.sort_by_key(|r| (key(r), r.spec.belongs.repeat(), r.spec.id));
    let groups: Vec<&[&RunRow]> = rows.chunk_by(|a, b| key(a) == key(b)).collect();
    let turns = phases::Turns::new();
    let points =
        in_parallel(&groups, |group| turns.take(phases::memory(group), || point(group, facts, source)));
    let points: Vec<Option<CurveFacts>> = points.into_iter().collect::<Result<_, _>>()?;
    let mut curves: Vec<MeasuredCurve> = Vec::new();
    for (group, point) in groups.iter().zip(points) {
        let (Some(point), Some((id, _))) = (point, key(group[0])) else { continue };
        match curves.last_mut() {
            Some(last) if last.id == id => last.points.push(point),
            _ => curves.push(MeasuredCurve { id, points: vec![point] }),
        }
    }
    Ok(curves)
}

/// Curve and value.
fn key(row: &RunRow) -> Option<(CurveId, i64)> {
    let belongs = &row.spec.belongs;
    let (_, value, _) = belongs.varying()?;
    Some((belongs.curve_id()?, value))
}

/// One point from its repeats; None where none has a running phase.
fn point(group: &[&RunRow], facts: &Facts, source: &Source<'_>) -> Result<Option<CurveFacts>, StoreError> {
    let fit = phases::fit(group);
    let (mut summed, mut running) = (Vec::new(), Vec::new());
    for row in group {
        let Some(Summed { level, by_pattern, phase }) = sum_up(row, facts, source)? else { continue };
        summed.push((row.spec.id, level, by_pattern));
        running.push(if fit { phase } else { phase.condensed(phases::share(group.len())) });
    }
    let repeats: Vec<KnownLevel> = summed.iter().map(|(_, level, _)| *level).collect();
    let at = group.first().and_then(|r| r.spec.belongs.varying());
    let means = || repeats.iter().map(|known| known.level.mean_ns);
    let repeats_ns = [means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max)];
    Ok(at.zip(of_repeats(&repeats, None)).map(|((_, value, label), known)| CurveFacts {
        value,
        label,
        level: known.level,
        freedom: known.freedom,
        repeats,
        repeats_ns,
        runs: summed.iter().map(|(run, _, _)| *run).collect(),
        by_pattern: summed.iter().fold([0, 0], |[a, b], (_, _, of)| [a + of[0], b + of[1]]),
        spread: spread(&running, None, SPREAD_LIMIT),
    }))
}

/// The start-up of one stream of a run, from those of its baselines' own runs:
/// parallel copies share it; each pattern of a mix gets past its own.
fn start_up_of(row: &RunRow, facts: &Facts) -> Option<u64> {
    let of = |baseline| facts.baseline(baseline).and_then(|b| b.start_up).unwrap_or(0);
    match row.spec.pattern()? {
        Pattern::Basic(basic) => Some(of(basic.baseline())),
        Pattern::Replicated { degree: n, basic } | Pattern::Queued { depth: n, basic } => {
            Some(of(basic.baseline()).div_ceil(u64::from(*n).max(1)))
        }
        Pattern::Mix { first, second, ratio } => {
            let counts = |b| (row.spec.io_count, of(b));
            Some(mix_counts(counts(first.baseline()), counts(second.baseline()), *ratio, 0).1)
        }
        Pattern::SideBySide(_) => None,
    }
}

fn sum_up(row: &RunRow, facts: &Facts, source: &Source<'_>) -> Result<Option<Summed>, StoreError> {
    let streams = row.spec.work.stream_count().max(1);
    let from = |ios: usize| running_from(row.spec.io_ignore, start_up_of(row, facts), ios / streams);
    let phases::Taken { phase, by_pattern } = phases::take(row, source, from, None)?;
    Ok(level(&phase, phase.period().map(|p| p.ios)).map(|level| Summed { level, by_pattern, phase }))
}
