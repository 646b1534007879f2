//! The size of a device's logical blocks: the write unit at which random
//! writes cost as sequential ones.
//!
//! What: for write sizes from 4 KB on, doubling, the same bytes (the paper's
//! 1 GB) are written in order and then in random order without an address
//! twice, synchronously. The first size at which both throughputs are equal is
//! the logical block. How: the passes are runs of an ordinary job ([`job`]), so
//! every IO is kept; [`search`] does them size after size and [`judge`] is a pure
//! function of their means.
//!
//! Two rules, both reported. The paper's: the whole numbers of both throughputs
//! in MB/s (10^6) are the same. The statistical one: the 95 % confidence interval
//! of the ratio of the mean response times (delta method on the logarithm) lies
//! within [`MARGIN`] of 1: an equivalence test, as a test for difference would
//! call any noisy device equal.
//!
//! Units: bytes, ns, MB/s. Source: paper 002, section 4.1. Errata: below 1 MB/s
//! the paper's rule calls everything equal (0 and 0), and on fast devices two
//! passes of the same kind differ by more than 1 MB/s; "1 GB" is called "rather ad
//! hoc" there, so several amounts can be compared.

use crate::execute::{Control, Progress};
use crate::job::drive::drive_segment;
use crate::job::{DriveError, Job, JobPlan, JobRun, Role, Throughputs, expand, parse};
use crate::plan::Step;
use crate::run::{RtStats, Sink};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use uflip_device::{Bytes, Device, Geometry};

/// The first write size.
pub const START: Bytes = Bytes(4096);
/// Sizes are equal to within this share by the statistical rule.
pub const MARGIN: f64 = 0.05;
/// What the lines of the procedure's job begin with.
pub const LINE: &str = "lb-";
/// Two-sided 95 % of the normal distribution.
const Z95: f64 = 1.959_964;

/// One size's two passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pass {
    /// The write size.
    pub block_bytes: Bytes,
    /// MB/s in order.
    pub sequential_mb_per_s: f64,
    /// MB/s in random order.
    pub random_mb_per_s: f64,
    /// Mean response time of random over that of sequential writes.
    pub ratio: f64,
    /// Its 95 % confidence interval; `None` below two writes a pass.
    pub ratio_ci95: Option<(f64, f64)>,
    /// The paper's rule.
    pub equal_whole_numbers: bool,
    /// The statistical rule.
    pub equal_statistically: bool,
}

/// What was found with one amount of bytes a pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockVerdict {
    /// Written in each pass.
    pub bytes_per_pass: Bytes,
    /// The answer: by the statistical rule; `None` where no size was equal.
    pub logical_block_bytes: Option<Bytes>,
    /// By the paper's rule.
    pub by_whole_numbers: Option<Bytes>,
    /// By the statistical rule.
    pub by_statistics: Option<Bytes>,
    /// Larger sizes than the answer at which the order mattered after all: the whole
    /// interval of the ratio lies beyond the margin. The answer is not the size from
    /// which on it does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradicted_by: Vec<Bytes>,
    /// All sizes, in order.
    pub passes: Vec<Pass>,
}

/// The means of one pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Writes.
    pub n: u64,
    /// Mean response time in ns.
    pub mean_ns: f64,
    /// Standard deviation in ns; `None` below two writes.
    pub sd_ns: Option<f64>,
}

impl Mean {
    /// Of a run's statistics; `None` where it has no IO.
    pub fn of(stats: &RtStats) -> Option<Mean> {
        stats.mean_ns.filter(|mean| *mean > 0.0).map(|mean_ns| Mean {
            n: stats.n,
            mean_ns,
            sd_ns: stats.sd_ns,
        })
    }

    /// The variance of the logarithm of the mean.
    fn log_variance(self) -> Option<f64> {
        self.sd_ns.map(|sd| (sd / self.mean_ns).powi(2) / self.n as f64)
    }
}

/// Compares the two passes of one size.
pub fn compare(block: Bytes, sequential: Mean, random: Mean) -> Pass {
    let mb_per_s = |mean: Mean| block.0 as f64 / mean.mean_ns * 1e3;
    let (in_order, at_random) = (mb_per_s(sequential), mb_per_s(random));
    let ratio = random.mean_ns / sequential.mean_ns;
    let variance = sequential.log_variance().zip(random.log_variance()).map(|(a, b)| a + b);
    let ratio_ci95 = variance.map(|v| {
        let half = Z95 * v.sqrt();
        (ratio * (-half).exp(), ratio * half.exp())
    });
    let inside = |(low, high): (f64, f64)| low >= 1.0 / (1.0 + MARGIN) && high <= 1.0 + MARGIN;
    Pass {
        block_bytes: block,
        sequential_mb_per_s: in_order,
        random_mb_per_s: at_random,
        ratio,
        ratio_ci95,
        equal_whole_numbers: in_order.trunc() == at_random.trunc(),
        equal_statistically: ratio_ci95.is_some_and(inside),
    }
}

/// What the passes of one amount of bytes say.
pub fn judge(bytes_per_pass: Bytes, passes: Vec<Pass>) -> BlockVerdict {
    let first = |equal: fn(&Pass) -> bool| passes.iter().find(|p| equal(p)).map(|p| p.block_bytes);
    let (whole, statistics) = (first(|p| p.equal_whole_numbers), first(|p| p.equal_statistically));
    let beyond = |p: &&Pass| {
        let apart = |(low, high): (f64, f64)| high < 1.0 / (1.0 + MARGIN) || low > 1.0 + MARGIN;
        statistics.is_some_and(|answer| p.block_bytes > answer) && p.ratio_ci95.is_some_and(apart)
    };
    let contradicted_by = passes.iter().filter(beyond).map(|p| p.block_bytes).collect();
    BlockVerdict {
        contradicted_by,
        bytes_per_pass,
        logical_block_bytes: statistics,
        by_whole_numbers: whole,
        by_statistics: statistics,
        passes,
    }
}

/// True once both rules have an answer: nothing larger need be written.
pub fn is_settled(found: &BlockVerdict) -> bool {
    found.by_whole_numbers.is_some() && found.by_statistics.is_some()
}

/// The job of the procedure: a line for each amount of bytes, write sizes from
/// [`START`] to the largest of which a pass holds 16, at most `largest`.
///
/// # Errors
/// A sentence where an amount does not suit.
pub fn job(amounts: &[Bytes], largest: Bytes) -> Result<Job, String> {
    let mut text = String::from("set buffering=dsync data=random\n");
    for amount in amounts {
        let most = largest.0.min(amount.0 / 16);
        if most < START.0 || !amount.0.is_multiple_of(START.0) {
            let least = Bytes(START.0 * 16);
            return Err(format!(
                "{amount} a pass is too little or no multiple of {START}; type {least} or more"
            ));
        }
        let size = amount.exact();
        let range = format!("{}..{}*2", START.exact(), Bytes(most).exact());
        text += &format!("{LINE}{size} sw,rw bs={range} bytes={size} size={size} start=0\n");
    }
    parse(&text).map_err(|e| e.to_string())
}

/// The plan of that job.
///
/// # Errors
/// A sentence where the target cannot take it.
pub fn plan(job: &Job, target: &str, geometry: Geometry, seed: u64) -> Result<JobPlan, String> {
    let need = job.lines.iter().filter_map(|line| line.size).max().unwrap_or_default();
    if need > geometry.capacity {
        return Err(format!(
            "{} a pass does not fit on a target of {}; type a smaller amount",
            need, geometry.capacity
        ));
    }
    expand(job, target, geometry, seed).map_err(|e| e.to_string())
}

/// Writes size after size until both rules have their answer for each amount.
/// `known` are the means of what the sink has already; each counts when its size
/// comes, so that a search that was interrupted does what it would have done.
/// `tried` hears of each size. True where it was stopped from outside.
///
/// # Errors
/// [`DriveError`] at the first run that fails.
pub fn search(
    planned: &JobPlan,
    known: &BTreeMap<u32, Mean>,
    device: &mut dyn Device,
    sink: &mut dyn Sink,
    control: Control<'_>,
    progress: &mut dyn FnMut(&Progress<'_>),
    tried: &mut dyn FnMut(&Pass),
) -> Result<bool, DriveError> {
    let (mut means, mut settled) = (BTreeMap::new(), BTreeSet::new());
    for segment in &planned.segments {
        if settled.contains(&segment.line_number) {
            continue;
        }
        let mut note = |event: &Progress<'_>| {
            if let Progress::RunFinished { spec, stats, .. } = event {
                means.extend(Mean::of(&stats.all).map(|mean| (spec.id, mean)));
            }
            progress(event);
        };
        let done =
            drive_segment(planned, segment, device, sink, &mut Throughputs::new(), control, &mut note)?;
        if done.stopped {
            return Ok(true);
        }
        let of_segment = planned.plan.steps[segment.steps.clone()].iter().filter_map(|step| match step {
            Step::Run(spec) => Some((spec.id, *known.get(&spec.id)?)),
            _ => None,
        });
        means.extend(of_segment);
        let so_far = evaluate(planned, &means, segment.line_number);
        if let Some(pass) = so_far.passes.last() {
            tried(pass);
        }
        if is_settled(&so_far) {
            settled.insert(segment.line_number);
        }
    }
    Ok(false)
}

/// The answer of each amount.
pub fn answers(planned: &JobPlan, means: &BTreeMap<u32, Mean>) -> Vec<BlockVerdict> {
    lines(planned).into_iter().map(|line| evaluate(planned, means, line)).collect()
}

/// What the finished runs say of the job's line with this number.
pub fn evaluate(planned: &JobPlan, means: &BTreeMap<u32, Mean>, line_number: usize) -> BlockVerdict {
    let passes = || {
        let of_line = |run: &JobRun| run.line_number == line_number && run.role == Role::Measured;
        planned.plan.runs().filter_map(|spec| Some((spec, spec.job()?))).filter(move |(_, run)| of_line(run))
    };
    let of = |block: Bytes, random: bool| {
        let mut runs = passes().filter(|(_, run)| run.block == block && run.baseline.is_random() == random);
        runs.find_map(|(spec, _)| means.get(&spec.id).copied())
    };
    let both = |block: Bytes| Some(compare(block, of(block, false)?, of(block, true)?));
    let mut sizes: Vec<Bytes> = passes().map(|(_, run)| run.block).collect();
    sizes.dedup();
    let amount = passes().next().map(|(spec, run)| Bytes(spec.io_count.saturating_mul(run.block.0)));
    judge(amount.unwrap_or_default(), sizes.into_iter().filter_map(both).collect())
}

/// The numbers of a job's lines, in order.
pub fn lines(planned: &JobPlan) -> Vec<usize> {
    let mut numbers: Vec<usize> = planned.runs().map(|(_, run)| run.line_number).collect();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: u64, mean_ns: f64, sd_ns: f64) -> Mean {
        Mean { n, mean_ns, sd_ns: Some(sd_ns) }
    }

    #[test]
    fn both_rules_need_their_own_evidence() {
        let same = compare(Bytes(4 << 20), mean(256, 1e8, 1e6), mean(256, 1.001e8, 1e6));
        assert!(same.equal_statistically && same.equal_whole_numbers, "{same:?}");
        let noisy = compare(Bytes(4 << 20), mean(16, 1e8, 1e8), mean(16, 1.001e8, 1e8));
        assert!(!noisy.equal_statistically && noisy.equal_whole_numbers, "{noisy:?}");
        let fast = compare(Bytes(4 << 20), mean(256, 2.0e6, 1e4), mean(256, 2.01e6, 1e4));
        assert!(fast.equal_statistically && !fast.equal_whole_numbers, "{fast:?}");
        let slow = compare(Bytes(4096), mean(9999, 5e6, 1e5), mean(9999, 50e6, 1e6));
        assert!(!slow.equal_statistically && slow.equal_whole_numbers, "0 and 0 MB/s: {slow:?}");
        assert!((slow.ratio - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_larger_size_at_which_the_order_matters_contradicts_the_answer() {
        let pass =
            |kib: u64, random_ns| compare(Bytes(kib << 10), mean(256, 1e6, 1e4), mean(256, random_ns, 1e4));
        let said = |passes: &[Pass]| judge(Bytes(1 << 24), passes.to_vec());
        let found =
            said(&[pass(16, 9e6), pass(32, 1e6), pass(64, 0.2e6), pass(128, 32e6), pass(256, 1.001e6)]);
        assert_eq!(found.logical_block_bytes, Some(Bytes(32 << 10)));
        assert_eq!(found.contradicted_by, [Bytes(64 << 10), Bytes(128 << 10)]);
        let unsure = compare(Bytes(64 << 10), mean(16, 1e6, 1e6), mean(16, 2e6, 4e6));
        assert!(said(&[pass(16, 9e6), pass(32, 1e6), unsure]).contradicted_by.is_empty(), "{unsure:?}");
        assert!(
            said(&[pass(16, 9e6), pass(32, 3e6)]).contradicted_by.is_empty(),
            "no answer, nothing against it"
        );
    }

    #[test]
    fn amounts_that_do_not_suit_are_refused() {
        assert!(job(&[Bytes(1 << 30)], Bytes(64 << 20)).is_ok());
        for amount in [0, 4096, 65_535, 65_537] {
            assert!(job(&[Bytes(amount)], Bytes(64 << 20)).is_err(), "{amount}");
        }
    }
}
