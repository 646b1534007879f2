//! Whether a run is what its place says: the baseline, the curve and the value of the
//! varying parameter that its figures are shown under, against its pattern.
//!
//! How: the place's own reference pattern is made as the planner makes it, at the
//! pattern's IOSize, and the two are held against each other. Left out is what the
//! planner itself adds (TargetOffset, and TargetSize where it does not vary), where a
//! sequence begins, whether random IOs repeat, the length of the pause between bursts,
//! and an open loop's arrivals, which are told by themselves. IOSize is the plan's for
//! the baselines, and the same in all runs of a micro-benchmark that does not vary it.
//!
//! Source: paper 000/001, section 3.2: a micro-benchmark varies one parameter of a
//! baseline, and nothing else.

use crate::micro::{Curve, MicroBenchmark};
use crate::pattern::{Basic, Location, Pattern, Timing};
use crate::run::{Belongs, RunSpec};
use std::collections::HashMap;
use uflip_device::Bytes;

/// IOSize of the micro-benchmarks seen so far, each with the run that had it first.
pub(crate) type IoSizes = HashMap<MicroBenchmark, (Bytes, u32)>;

/// What the place of `run` says that its pattern is not, as a sentence with both; `None`
/// where they agree. `io_size` is the plan's; `seen` is for the runs of one plan.
pub(crate) fn misplaced(run: &RunSpec, io_size: Bytes, seen: &mut IoSizes) -> Option<String> {
    let pattern = run.pattern()?;
    match &run.belongs {
        Belongs::Baseline { baseline, .. } => {
            let says = format!("the baseline {baseline} with IOs of {}", io_size.exact());
            against(&says, &Pattern::Basic(baseline.basic(io_size)), pattern, Varies::Nothing)
        }
        Belongs::Point(point) => {
            let says = format!("{} of {}, {} {}", point.micro, point.curve, point.parameter(), point.label());
            let own = pattern.basics().first()?.io_size;
            let varies = match point.micro {
                MicroBenchmark::Granularity => Varies::IoSize,
                MicroBenchmark::Locality => Varies::TargetSize,
                _ => Varies::Nothing,
            };
            let reference = match (point.micro.row().pattern)(point.curve, point.value, own) {
                Ok(reference) => reference,
                Err(why) => {
                    return Some(format!("it stands for {says}, and there is no such pattern: {why}"));
                }
            };
            against(&says, &reference, pattern, varies).or_else(|| {
                if varies == Varies::IoSize { None } else { sizes_apart(run, point.micro, own, seen) }
            })
        }
        Belongs::Job(job) => {
            of_kind(&format!("the job's line {}", job.line), Curve::One(job.baseline), pattern)
        }
        Belongs::Named(named) if !named.prepares => of_kind(&named.name, named.curve.known()?, pattern),
        Belongs::Named(_) | Belongs::Calibration(_) | Belongs::Single | Belongs::Program(_) => None,
    }
}

/// What a micro-benchmark varies that others leave open.
#[derive(Clone, Copy, PartialEq)]
enum Varies {
    Nothing,
    IoSize,
    TargetSize,
}

/// A pattern with nothing but what a place says of it.
fn as_placed(pattern: &Pattern, reference: &Pattern, varies: Varies) -> Pattern {
    let timing = reference.basics().first().map_or(Timing::Consecutive, |basic| basic.timing);
    let mut pattern = pattern.clone();
    for basic in pattern.basics_mut() {
        basic.target_offset = Bytes(0);
        if varies != Varies::TargetSize {
            basic.target_size = None;
        }
        basic.location = match basic.location {
            Location::SequentialFrom { .. } => Location::Sequential,
            Location::RandomUnique => Location::Random,
            location => location,
        };
        basic.timing = match (basic.timing, timing) {
            (Timing::Open { .. }, timing) => timing,
            (Timing::Burst { burst, .. }, Timing::Burst { pause, .. }) => Timing::Burst { pause, burst },
            (timing, _) => timing,
        };
    }
    pattern
}

fn against(says: &str, reference: &Pattern, pattern: &Pattern, varies: Varies) -> Option<String> {
    let same = as_placed(pattern, reference, varies) == as_placed(reference, reference, varies);
    (!same).then(|| format!("it stands for {says}, which is {reference}, and its pattern is {pattern}"))
}

/// Whether the pattern's IOs are of the curve's kinds: what runs with names of their own
/// are held against.
fn of_kind(of: &str, curve: Curve, pattern: &Pattern) -> Option<String> {
    let kinds: Vec<_> = pattern.basics().into_iter().map(Basic::baseline).collect();
    let wanted = curve.baselines();
    let same = if wanted.len() == 1 { kinds.iter().all(|kind| *kind == wanted[0]) } else { kinds == wanted };
    (!same).then(|| format!("it stands for {curve} of {of}, and its pattern is {pattern}"))
}

fn sizes_apart(run: &RunSpec, micro: MicroBenchmark, own: Bytes, seen: &mut IoSizes) -> Option<String> {
    let (first, of) = *seen.entry(micro).or_insert((own, run.id));
    (first != own).then(|| {
        format!(
            "{micro} does not vary IOSize, and its IOs have {} where run {of} has {}",
            own.exact(),
            first.exact()
        )
    })
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
