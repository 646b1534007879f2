//! Walking through a job's plan.
//!
//! How: [`crate::execute`] does each segment's steps. An optional segment is
//! done while the self-scaling rule says so, from the throughputs of the runs
//! kept so far, also those of a session before. Where a session goes on in the
//! middle of a group on a real device, what comes before the missing run is done
//! again without being kept: a fill or a burst of yesterday says nothing of the
//! device today. In virtual time [`crate::execute`] does all kept runs again.
//!
//! Source: paper 004, appendix A; P. Chen and D. Patterson, "A new approach to
//! I/O performance evaluation: self-scaling I/O benchmarks", SIGMETRICS 1993.

use super::expand::{JobPlan, Segment};
use super::{JobRun, Role};
use crate::execute::{Control, ExecuteError, Finished, Progress, ResetRequest, execute_steps, is_missing};
use crate::pattern::{Baseline, Basic};
use crate::plan::Step;
use crate::run::{RunSpec, Sink};
use crate::state::Forget;
use std::collections::BTreeMap;
use uflip_device::{Bytes, Device, DeviceError, RunEnd, RunLimits, Stop};

/// Throughputs in bytes a second of the runs kept so far, by run.
pub type Throughputs = BTreeMap<u32, f64>;

/// A job came to an end that it should not.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// A run failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// What comes before a run could not be done again.
    #[error("what comes before run {run}: {source}")]
    Again {
        /// Before which run.
        run: u32,
        /// What happened.
        source: DeviceError,
    },
}

/// Bytes a second; `None` where nothing was done.
pub fn throughput(bytes: u64, end: &RunEnd) -> Option<f64> {
    (end.ios > 0 && end.elapsed.0 > 0).then(|| bytes as f64 / end.elapsed.as_secs_f64())
}

/// Does the job that was expanded to `planned` on `device`. `kept` has the
/// throughputs of what the sink has already and gets those of what is done.
///
/// # Errors
/// [`DriveError`] at the first run that fails.
pub fn drive(
    planned: &JobPlan,
    device: &mut dyn Device,
    sink: &mut dyn Sink,
    kept: &mut Throughputs,
    control: Control<'_>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Finished, DriveError> {
    let mut sum = Finished::default();
    let any_missing = |segment: &Segment| {
        planned.plan.steps[segment.steps.clone()].iter().any(|step| is_missing(step, sink))
    };
    let end = planned.segments.iter().rposition(any_missing).map_or(0, |last| last + 1);
    for segment in &planned.segments[..end] {
        if !wanted(planned, segment, kept) {
            continue;
        }
        let done = drive_segment(planned, segment, device, sink, kept, control, progress)?;
        sum.done += done.done;
        sum.already_kept += done.already_kept;
        sum.cut_short += done.cut_short;
        sum.stopped |= done.stopped;
        sum.elapsed = sum.elapsed + done.elapsed;
        if sum.stopped {
            break;
        }
    }
    Ok(sum)
}

/// Does one segment of a plan; see [`drive`].
///
/// # Errors
/// [`DriveError`] at the first run that fails.
pub fn drive_segment(
    planned: &JobPlan,
    segment: &Segment,
    device: &mut dyn Device,
    sink: &mut dyn Sink,
    kept: &mut Throughputs,
    control: Control<'_>,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Finished, DriveError> {
    let stays = !device.is_virtual();
    if stays && !control.stop.after_this_run() && again(planned, segment, device, sink, control)? {
        return Ok(Finished { stopped: true, ..Finished::default() });
    }
    let mut watch = |event: &Progress<'_>| {
        if let Progress::RunFinished { spec, stats, elapsed } = event {
            let end = RunEnd { ios: stats.ios(), elapsed: *elapsed, ..RunEnd::default() };
            kept.extend(throughput(bytes_of(spec, stats.ios()), &end).map(|t| (spec.id, t)));
        }
        progress(event);
    };
    // The whole plan's steps: a pause at the segment's start counts as well.
    let (plan, steps) = (&planned.plan, segment.steps.clone());
    let mut reset = |_: ResetRequest, _: &mut dyn Device, _: &Stop| Ok(RunEnd::default());
    Ok(execute_steps(plan, steps, device, sink, &mut reset, control, &mut watch)?)
}

/// Bytes of a run's first `ios` IOs.
pub fn bytes_of(spec: &RunSpec, ios: u64) -> u64 {
    let bytes = |basic: &&Basic| basic.io_size.0.saturating_mul(basic.timing.without_flushes(ios));
    spec.work.basics().first().map_or(0, bytes)
}

/// Whether a segment is done, by the throughputs `kept`: in any case, or where
/// some pattern's mean throughput at the block size before is larger than at the
/// one before that by the segment's percentage or more.
pub fn wanted(planned: &JobPlan, segment: &Segment, kept: &Throughputs) -> bool {
    let Some(percent) = segment.if_grown_percent else { return true };
    let last = Bytes(segment.block.0 / 2);
    let of_line = |run: &JobRun| {
        run.line_number == segment.line_number && run.round == segment.round && run.role == Role::Measured
    };
    let mean = |baseline, block: Bytes| {
        let of = |run: &JobRun| of_line(run) && run.block == block && run.baseline == baseline;
        let all = planned.runs().filter(|(_, run)| of(run)).filter_map(|(id, _)| kept.get(&id).copied());
        let all: Vec<f64> = all.collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    Baseline::ALL.into_iter().any(|baseline| {
        let before = mean(baseline, Bytes(last.0 / 2));
        let growth = before.zip(mean(baseline, last)).map(|(before, now)| now / before - 1.0);
        growth.is_some_and(|growth| growth >= percent / 100.0)
    })
}

/// Does again what comes before the segment's first missing run, where the sink
/// has it and the run itself is missing. True where that was interrupted.
fn again(
    planned: &JobPlan,
    segment: &Segment,
    device: &mut dyn Device,
    sink: &dyn Sink,
    control: Control<'_>,
) -> Result<bool, DriveError> {
    let specs: Vec<&RunSpec> = planned.plan.steps[segment.steps.clone()]
        .iter()
        .filter_map(|step| if let Step::Run(spec) = step { Some(spec) } else { None })
        .collect();
    let Some(missing) = specs.iter().find(|spec| !sink.has(spec.id)) else { return Ok(false) };
    let run = missing.id;
    let Some(group) = missing.job().map(|run| run.group) else { return Ok(false) };
    let before = specs.iter().filter(|spec| {
        // After a burst each further pass tells of the state that the one before left.
        let again = |r: &JobRun| r.group == group && (r.role == Role::Before || r.burst.is_some());
        spec.id < run && spec.job().is_some_and(again)
    });
    for spec in before {
        let failed = |source| DriveError::Again { run, source };
        let streams = spec.streams().map_err(|source| ExecuteError::Pattern { run, source })?;
        let limits = RunLimits { time: spec.time_limit, stop: control.stop, sequence: None };
        if device.run(streams, &Forget, limits).map_err(failed)?.interrupted {
            return Ok(true);
        }
    }
    Ok(false)
}
