//! Response times of any number of IOs in bounded memory.
//!
//! Method: up to [`EXACT_IOS`] all of them are kept and every detector works on
//! all, as in its own file. Of more are kept: their number and sum, exact; the
//! first [`WINDOW_IOS`] one by one; and the means of consecutive blocks of
//! equally many IOs, a power of two such that there are at most [`MAX_BLOCKS`]
//! (between half as many and that). What is short is looked for among the first,
//! what is long among the blocks:
//!
//! | figure | of more than [`EXACT_IOS`] |
//! |---|---|
//! | mean | exact |
//! | start-up | up to a quarter of the window as exact; a longer one to a block |
//! | period | up to a quarter of the window from the window; a longer one from the blocks |
//! | interval of the mean | autocorrelation time from the window; batches end at the block before their end |
//! | spread of repeats | means exact; interference is looked for in the repeats with the largest and the smallest mean, within the window |
//!
//! Units: IOs, nanoseconds. Limits: something that begins only after the window
//! and goes by within a block shows in means and percentiles only.

use super::interval::{self, MeanInterval};
use super::period::{self, Period};
use super::series::{mean_ns, variance};
use super::spread::{self, Spread};
use super::startup::{self, StartUp};

/// Series of up to this many IOs are kept whole.
pub const EXACT_IOS: usize = 1 << 20;
/// The first IOs of a longer one that are kept one by one.
pub const WINDOW_IOS: usize = 1 << 18;
/// The most blocks that the rest is summed up in.
pub const MAX_BLOCKS: usize = 1 << 18;
/// The fewest IOs or blocks that [`Phase::condensed`] leaves.
const LEAST: usize = 64;

/// A series in bounded memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Condensed {
    ios: u64,
    sum_ns: u128,
    /// The first IOs, at most `most` of them.
    window: Vec<u64>,
    /// Mean of each block of `block_ios`; what is left at the end is in none.
    blocks: Vec<f64>,
    block_ios: u64,
    /// IOs and nanoseconds of the block that is not full yet.
    open: (u64, u128),
    most: usize,
}

impl Condensed {
    /// Nothing yet; at most `most` IOs one by one, and as many blocks.
    fn new(most: usize) -> Condensed {
        let most = most.max(LEAST).next_multiple_of(2);
        Condensed {
            ios: 0,
            sum_ns: 0,
            window: Vec::new(),
            blocks: Vec::new(),
            block_ios: 1,
            open: (0, 0),
            most,
        }
    }

    fn push(&mut self, ns: u64) {
        self.ios += 1;
        self.sum_ns += u128::from(ns);
        if self.window.len() < self.most {
            self.window.push(ns);
        }
        self.open = (self.open.0 + 1, self.open.1 + u128::from(ns));
        if self.open.0 == self.block_ios {
            self.blocks.push(self.open.1 as f64 / self.block_ios as f64);
            self.open = (0, 0);
            if self.blocks.len() == self.most {
                self.halve();
            }
        }
    }

    /// Half as many blocks of twice the size.
    fn halve(&mut self) {
        self.blocks = self.blocks.chunks_exact(2).map(|two| (two[0] + two[1]) / 2.0).collect();
        self.block_ios *= 2;
    }

    /// The first IOs one by one.
    pub fn window(&self) -> &[u64] {
        &self.window
    }

    /// Means of consecutive blocks.
    pub(crate) fn blocks(&self) -> &[f64] {
        &self.blocks
    }

    /// The same as whole nanoseconds, for what takes response times.
    pub(crate) fn blocks_ns(&self) -> Vec<u64> {
        self.blocks.iter().map(|ns| ns.round() as u64).collect()
    }

    /// IOs of a block.
    pub(crate) fn block_ios(&self) -> u64 {
        self.block_ios
    }

    /// IOs of the series.
    pub(crate) fn ios(&self) -> u64 {
        self.ios
    }

    /// Nanoseconds of the first `ios`, to a block beyond the window.
    fn sum_of_first(&self, ios: u64) -> f64 {
        match usize::try_from(ios) {
            Ok(few) if few <= self.window.len() => self.window[..few].iter().map(|ns| *ns as f64).sum(),
            _ => {
                let blocks = ((ios / self.block_ios) as usize).min(self.blocks.len());
                self.blocks[..blocks].iter().sum::<f64>() * self.block_ios as f64
            }
        }
    }

    /// Mean of the first `ios` and of those after them; 0 for none.
    pub(crate) fn split_means(&self, ios: u64) -> (f64, f64) {
        let (before, rest) = (self.sum_of_first(ios), self.ios.saturating_sub(ios));
        let mean = |sum: f64, n: u64| if n == 0 { 0.0 } else { sum / n as f64 };
        (mean(before, ios), mean((self.sum_ns as f64 - before).max(0.0), rest))
    }

    /// Variance of the logarithms of the IOs in the window.
    pub(crate) fn log_variance(&self) -> f64 {
        variance(&self.window.iter().map(|ns| (*ns).max(1) as f64).map(f64::ln).collect::<Vec<_>>())
    }
}

/// A run or its running phase, however long.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Response times of all IOs.
    Whole(Vec<u64>),
    /// What is kept of more.
    Long(Condensed),
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Whole(Vec::new())
    }
}

impl Phase {
    /// Adds the next IO's response time.
    pub fn push(&mut self, ns: u64) {
        match self {
            Phase::Whole(all) if all.len() < EXACT_IOS => all.push(ns),
            Phase::Whole(all) => {
                let mut long = Condensed::new(WINDOW_IOS);
                std::mem::take(all).into_iter().chain([ns]).for_each(|ns| long.push(ns));
                *self = Phase::Long(long);
            }
            Phase::Long(long) => long.push(ns),
        }
    }

    /// The same with at most `most` IOs one by one and as many blocks, where many
    /// repeats are kept at once.
    pub fn condensed(self, most: usize) -> Phase {
        let most = most.max(LEAST).next_multiple_of(2);
        match self {
            Phase::Whole(all) if all.len() <= most => Phase::Whole(all),
            Phase::Whole(all) => {
                let mut long = Condensed::new(most);
                all.into_iter().for_each(|ns| long.push(ns));
                long.window.shrink_to_fit();
                Phase::Long(long)
            }
            Phase::Long(mut long) => {
                long.window.truncate(most);
                long.window.shrink_to_fit();
                long.most = most;
                while long.blocks.len() >= most {
                    long.halve();
                }
                Phase::Long(long)
            }
        }
    }

    /// IOs.
    pub fn ios(&self) -> u64 {
        match self {
            Phase::Whole(all) => all.len() as u64,
            Phase::Long(long) => long.ios,
        }
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.ios() == 0
    }

    /// The arithmetic mean; 0 for nothing.
    pub fn mean_ns(&self) -> f64 {
        match self {
            Phase::Whole(all) => mean_ns(all),
            Phase::Long(long) => long.sum_ns as f64 / long.ios.max(1) as f64,
        }
    }

    /// The mean of all but the first `ios`; 0 for nothing.
    pub(crate) fn mean_after(&self, ios: u64) -> f64 {
        match self {
            Phase::Whole(all) => mean_ns(&all[all.len().min(ios as usize)..]),
            Phase::Long(long) => long.split_means(ios).1,
        }
    }

    /// The IOs that are kept one by one.
    pub(crate) fn first(&self) -> &[u64] {
        match self {
            Phase::Whole(all) => all,
            Phase::Long(long) => &long.window,
        }
    }

    /// As [`startup::start_up`].
    pub fn start_up(&self) -> Option<StartUp> {
        match self {
            Phase::Whole(all) => startup::start_up(all),
            Phase::Long(long) => startup::start_up_of_long(long),
        }
    }

    /// As [`period::period`].
    pub fn period(&self) -> Option<Period> {
        match self {
            Phase::Whole(all) => period::period(all),
            Phase::Long(long) => period::period_of_long(long),
        }
    }

    /// As [`interval::batch_means`].
    pub fn batch_means(&self, period_ios: Option<f64>, level: f64) -> Option<MeanInterval> {
        match self {
            Phase::Whole(all) => interval::batch_means(all, period_ios, level),
            Phase::Long(long) => interval::batch_means_of_long(long, period_ios, level),
        }
    }
}

/// As [`spread::spread`].
pub fn spread(repeats: &[Phase], period_ios: Option<f64>, limit: f64) -> Option<Spread> {
    let whole = |phase: &'_ Phase| matches!(phase, Phase::Whole(_));
    if repeats.iter().all(whole) {
        let slices: Vec<&[u64]> = repeats.iter().map(Phase::first).collect();
        return spread::spread(&slices, period_ios, limit);
    }
    spread::spread_of_long(repeats, period_ios, limit)
}

#[cfg(test)]
#[path = "long_tests.rs"]
mod tests;
