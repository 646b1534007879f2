//! How long a run is: IOCount and IOIgnore.
//!
//! How: each baseline has its own; a mix scales those of its two patterns
//! ([`mix_counts`]); pauses and bursts are bounded or stretched so that a quick
//! run is quick and every run holds some bursts; in quick plans the processes
//! of a parallel pattern share IOCount among them; the slots of a queue do always, and
//! its filling is no part of the running phase.
//!
//! Source: paper 000/001, sections 4.2 and 5.1: IOIgnore = 0 and IOCount = 1,024
//! for SR, RR and SW, 5,120 for RW.

use super::{ALL_VALUES, Method, PlanOptions};
use crate::micro::Preset;
use crate::pattern::{Baseline, Basic, Location, Pattern, PatternMode, Timing, mix_counts};
use serde::{Deserialize, Serialize};

/// IOCount and IOIgnore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// IOCount: all IOs, start-up included.
    pub count: u64,
    /// IOIgnore: the first IOs, left out of the running phase.
    pub ignore: u64,
}

/// The counts for each baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoCounts {
    /// Sequential reads.
    pub sr: Counts,
    /// Random reads.
    pub rr: Counts,
    /// Sequential writes.
    pub sw: Counts,
    /// Random writes.
    pub rw: Counts,
}

const fn no_start_up(count: u64) -> Counts {
    Counts { count, ignore: 0 }
}

/// The longest that the pauses of one run of a quick plan take.
const QUICK_PAUSES_NS: u64 = 1_000_000_000;
/// IOs with a pause before each that a run has at least.
const MIN_PAUSED: u64 = 32;
/// IOs of each slot of a queue that are done while it fills: one, and one that was
/// submitted together with others.
const FILLING: u64 = 2;
/// IOs of each slot in the running phase at least.
const MIN_QUEUED: u64 = 32;

impl IoCounts {
    /// Section 5.1, for SSDs.
    pub const PAPER: IoCounts = IoCounts {
        sr: no_start_up(1024),
        rr: no_start_up(1024),
        sw: no_start_up(1024),
        rw: no_start_up(5120),
    };
    /// Of quick plans.
    pub const QUICK: IoCounts =
        IoCounts { sr: no_start_up(256), rr: no_start_up(256), sw: no_start_up(512), rw: no_start_up(512) };

    /// Those of one baseline, to be changed.
    pub const fn of_mut(&mut self, baseline: Baseline) -> &mut Counts {
        match baseline {
            Baseline::Sr => &mut self.sr,
            Baseline::Rr => &mut self.rr,
            Baseline::Sw => &mut self.sw,
            Baseline::Rw => &mut self.rw,
        }
    }

    /// Those of one baseline.
    pub const fn of(&self, baseline: Baseline) -> Counts {
        match baseline {
            Baseline::Sr => self.sr,
            Baseline::Rr => self.rr,
            Baseline::Sw => self.sw,
            Baseline::Rw => self.rw,
        }
    }
}

/// The places of `of_16` sixteenths of `n` values, evenly spread from the first
/// to the last; two at least.
pub(super) fn evenly(n: usize, of_16: u32) -> Vec<usize> {
    let kept = (n * of_16.min(ALL_VALUES) as usize).div_ceil(ALL_VALUES as usize).max(2).min(n);
    (0..kept).map(|i| if kept < 2 { i } else { (i * (n - 1) + (kept - 1) / 2) / (kept - 1) }).collect()
}

/// Those of a basic pattern. In the automatic method, partitioned and ordered
/// writes get the longer ones of SW and RW: "a high degree degenerates
/// sequential writes to partitioned or random writes" (paper 001, section 5.2),
/// which have a start-up phase of their own.
fn counts_of(basic: &Basic, options: &PlanOptions) -> Counts {
    let own = options.io_counts.of(basic.baseline());
    let scattered = matches!(basic.location, Location::Partitioned { .. } | Location::Ordered { .. });
    if options.method == Method::Fixed || basic.mode != PatternMode::Write || !scattered {
        return own;
    }
    let random = options.io_counts.of(Baseline::Rw);
    let ignore = own.ignore.max(random.ignore);
    Counts { count: ignore + (own.count - own.ignore).max(random.count - random.ignore), ignore }
}

/// IOCount and IOIgnore, per stream, of a run of `pattern`.
pub(super) fn counts(pattern: &Pattern, options: &PlanOptions) -> Counts {
    let quick = options.preset == Preset::Quick;
    match pattern {
        Pattern::Basic(basic) => {
            let Counts { count, ignore } = counts_of(basic, options);
            let running = running_with(basic.timing, count.saturating_sub(ignore), quick);
            Counts { count: ignore.saturating_add(running), ignore }
        }
        Pattern::Mix { first, second, ratio } => {
            let of = |baseline| {
                let Counts { count, ignore } = options.io_counts.of(baseline);
                (count, ignore)
            };
            let (first, second) = (of(first.baseline()), of(second.baseline()));
            let (count, ignore) = mix_counts(first, second, *ratio, options.min_rare);
            Counts { count, ignore }
        }
        Pattern::Replicated { degree, basic } => {
            let Counts { count, ignore } = options.io_counts.of(basic.baseline());
            let shares = if quick { u64::from(*degree).max(1) } else { 1 };
            let ignore = ignore.div_ceil(shares);
            Counts { count: count.div_ceil(shares).max(ignore.saturating_add(1)), ignore }
        }
        Pattern::Queued { depth, basic } => queue_counts(*depth, options.io_counts.of(basic.baseline())),
        Pattern::SideBySide(all) => {
            let all = all.iter().map(|basic| options.io_counts.of(basic.baseline()));
            all.max_by_key(|counts| counts.count).unwrap_or(no_start_up(1))
        }
    }
}

/// Those of each slot of a queue that share `own` among them. While the queue fills,
/// an IO finds fewer before it than the depth: the first [`FILLING`] of each slot are
/// left out, and so many more are done that its emptying at the end is a small share.
fn queue_counts(depth: u32, own: Counts) -> Counts {
    let shares = u64::from(depth).max(1);
    if shares == 1 {
        return own;
    }
    let ignore = own.ignore.div_ceil(shares).max(FILLING);
    let running = own.count.saturating_sub(own.ignore).div_ceil(shares).max(MIN_QUEUED);
    Counts { count: ignore.saturating_add(running), ignore }
}

/// The running phase of a pattern with this time function, from that of the
/// consecutive one.
fn running_with(timing: Timing, running: u64, quick: bool) -> u64 {
    match timing {
        Timing::Pause { pause } if quick && pause.0 > 0 => {
            running.min((QUICK_PAUSES_NS / pause.0).max(MIN_PAUSED))
        }
        Timing::Burst { pause, burst } => {
            // Two bursts are the least that shows what a pause between them does.
            let burst = u64::from(burst);
            let at_most = if quick && pause.0 > 0 { QUICK_PAUSES_NS / pause.0 + 1 } else { u64::MAX };
            let at_least = if quick { 2 } else { 4 };
            running.min(burst.saturating_mul(at_most)).max(burst.saturating_mul(at_least))
        }
        _ => running,
    }
}
