//! The write cost model on runs with flushes: f and R varied apart.
//!
//! What: a run with `sync=N` writes N IOs of s bytes at random places, then
//! flushes: R = N s / 512 sectors a sync, over as many logical blocks as its
//! records touch, of which f is the reciprocal. T is the time of all of it, flush
//! included, a sector. How: one [`MergeSample`] a run; [`fit_merge`] on those that
//! lie inside the model (R <= L); each sample is also predicted by a fit to those
//! that share neither its N (so its f) nor its R. Writes in order are predicted
//! too, but nothing is fitted to them: their logical block stays open from sync to
//! sync, so that not every visit has a merge. One-write syncs of all runs are told
//! apart as without a merge, with a switch merge and with a full one ([`kinds`]).
//!
//! Units: ns, bytes, sectors of 512 bytes. Source: paper 002, section 3.2, eq. 2,
//! and section 2 (switch and full merges).

use super::kinds::{self, Kinds, OneWrites, Writes};
use super::merge::{MergeFit, SyncSample, fit_merge};
use super::modes::{MIN_SYNCS, Modes, modes, modes_of_counts};
use crate::spectrum::Spectrum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use uflip_device::{Bytes, IoRecord, Mode};
use uflip_measure::detect::long::EXACT_IOS;
use uflip_measure::pattern::Basic;
use uflip_measure::{Pattern, Timing};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;
use uflip_store::logical_block::{self as block, BlockSource, LogicalBlock};
use uflip_store::records::read_row_groups;

/// A prediction is taken to hold within this share.
pub const HOLDS: f64 = 0.2;
/// Logical blocks of one sync that are told apart; more count as so many, where f
/// is 0 to six digits.
const MOST_TOUCHED: usize = 1 << 20;

/// The model on all of a store's runs with flushes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeReport {
    /// What f was told by.
    pub logical_block_bytes: Bytes,
    /// Where that comes from.
    pub logical_block_source: BlockSource,
    /// A sample a run.
    pub samples: Vec<MergeSample>,
    /// The fit to those inside the model.
    pub fit: Option<MergeFit>,
    /// The same for each N of which three sizes lie inside: T_merge would be one
    /// number, were the visits of a sync independent of each other.
    pub by_sync: Vec<SyncFit>,
    /// One-write syncs without a merge, with a switch merge, with a full one.
    #[serde(flatten)]
    pub kinds: Kinds,
    /// Samples inside the model whose held-out prediction is within [`HOLDS`].
    pub holds: usize,
    /// Samples inside the model that have a held-out prediction.
    pub predicted: usize,
}

/// The fit to the samples with one N.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SyncFit {
    /// N: writes between two flushes.
    pub ios_per_sync: u32,
    /// T_merge and B of these.
    pub fit: MergeFit,
}

/// One run: measured against predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeSample {
    /// The run.
    pub run: u32,
    /// IOSize.
    pub io_bytes: u64,
    /// Writes between two flushes.
    pub ios_per_sync: u32,
    /// Whole syncs in the run.
    pub syncs: usize,
    /// R, f and T.
    #[serde(flatten)]
    pub sample: SyncSample,
    /// The part of T that the flushes took.
    pub flush_share: f64,
    /// False where a sync writes more than a logical block has (R > L).
    pub inside: bool,
    /// Written in order: nothing is fitted to it.
    pub in_order: bool,
    /// Two groups of syncs, where there are two.
    pub modes: Option<Modes>,
    /// T by the fit.
    pub predicted_sector_ns: Option<f64>,
    /// Measured over predicted, less 1.
    pub residual: Option<f64>,
    /// T by a fit to the samples with another f and another R.
    pub held_out_sector_ns: Option<f64>,
    /// Measured over that, less 1.
    pub held_out_residual: Option<f64>,
}

/// Times of whole syncs: each up to `EXACT_IOS`, beyond that counted.
enum Times {
    Each(Vec<f64>),
    Counted(Spectrum),
}

impl Times {
    fn push(&mut self, ns: f64) {
        match self {
            Times::Each(all) if all.len() < EXACT_IOS => all.push(ns),
            Times::Each(all) => {
                let mut counted = Spectrum::default();
                all.drain(..).chain([ns]).for_each(|ns| counted.push(ns as u64));
                *self = Times::Counted(counted);
            }
            Times::Counted(counted) => counted.push(ns as u64),
        }
    }

    fn modes(&self) -> Option<Modes> {
        match self {
            Times::Each(all) => modes(all),
            Times::Counted(counted) => modes_of_counts(counted),
        }
    }
}

/// Makes a run's sample from its records, some at a time.
struct Sampler {
    every: u32,
    block: Bytes,
    times: Times,
    syncs: usize,
    total: f64,
    f_sum: f64,
    flush_ns: f64,
    bytes: u64,
    open: f64,
    open_bytes: u64,
    touched: BTreeSet<u64>,
}

impl Sampler {
    fn new(every: u32, block: Bytes) -> Sampler {
        Sampler {
            every,
            block,
            times: Times::Each(Vec::new()),
            syncs: 0,
            total: 0.0,
            f_sum: 0.0,
            flush_ns: 0.0,
            bytes: 0,
            open: 0.0,
            open_bytes: 0,
            touched: BTreeSet::new(),
        }
    }

    fn push(&mut self, records: &[IoRecord]) {
        for record in records {
            let ns = record.response().0 as f64;
            self.open += ns;
            if record.mode() != Mode::Flush {
                self.touch(record.offset().0, u64::from(record.size()));
                self.open_bytes += u64::from(record.size());
            } else if self.open_bytes > 0 {
                self.flush(ns);
            }
        }
    }

    fn touch(&mut self, offset: u64, size: u64) {
        let block = self.block.0.max(1);
        let room = MOST_TOUCHED.saturating_sub(self.touched.len());
        self.touched.extend((offset / block..=(offset + size.max(1) - 1) / block).take(room));
    }

    /// A sync ends with a flush of `ns`.
    fn flush(&mut self, ns: f64) {
        if self.every == 1 {
            self.times.push(self.open);
        }
        self.syncs += 1;
        self.total += self.open;
        self.f_sum += 1.0 / self.touched.len().max(1) as f64;
        self.flush_ns += ns;
        self.bytes += self.open_bytes;
        self.touched.clear();
        (self.open, self.open_bytes) = (0.0, 0);
    }

    /// `None` below eight whole syncs.
    fn finish(self, run: u32, io_bytes: u64) -> Option<MergeSample> {
        let (n, total, sectors) = (self.syncs as f64, self.total, self.bytes as f64 / 512.0);
        if self.syncs < MIN_SYNCS || total <= 0.0 {
            return None;
        }
        let sample = SyncSample {
            sectors_per_sync: sectors / n,
            focal_factor: self.f_sum / n,
            sector_ns: total / sectors,
        };
        Some(MergeSample {
            run,
            io_bytes,
            ios_per_sync: self.every,
            syncs: self.syncs,
            inside: sample.sectors_per_sync * 512.0 <= self.block.0 as f64 * 1.001,
            in_order: false,
            sample,
            flush_share: self.flush_ns / total,
            modes: if self.every == 1 { self.times.modes() } else { None },
            predicted_sector_ns: None,
            residual: None,
            held_out_sector_ns: None,
            held_out_residual: None,
        })
    }
}

/// T of a sector by `fit`, at the sample's f and R.
fn predicted(fit: &MergeFit, at: &SyncSample) -> Option<f64> {
    let sectors = at.focal_factor * at.sectors_per_sync;
    fit.takes_ns(1.0 / sectors, 512.0).filter(|ns| *ns > 0.0)
}

/// A fit for each N with three sizes.
fn fits_by_sync(inside: &[(u32, SyncSample)]) -> Vec<SyncFit> {
    let numbers: BTreeSet<u32> = inside.iter().map(|(every, _)| *every).collect();
    let fit_of = |ios_per_sync: u32| {
        let of: Vec<SyncSample> =
            inside.iter().filter(|(n, _)| *n == ios_per_sync).map(|(_, s)| *s).collect();
        let fit = fit_merge(&of).filter(|_| of.len() >= 3)?;
        Some(SyncFit { ios_per_sync, fit })
    };
    numbers.into_iter().filter_map(fit_of).collect()
}

/// The model on these samples, and the kinds of these one-write syncs.
pub fn judge(mut samples: Vec<MergeSample>, writes: &Writes, block: LogicalBlock) -> MergeReport {
    let fitted = |s: &&MergeSample| s.inside && !s.in_order;
    let inside: Vec<(u32, SyncSample)> =
        samples.iter().filter(fitted).map(|s| (s.ios_per_sync, s.sample)).collect();
    let fit = fit_merge(&inside.iter().map(|(_, s)| *s).collect::<Vec<_>>());
    for sample in &mut samples {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
        let other = |(every, s): &&(u32, SyncSample)| {
            *every != sample.ios_per_sync && !near(s.sectors_per_sync, sample.sample.sectors_per_sync)
        };
        let others: Vec<SyncSample> = inside.iter().filter(other).map(|(_, s)| *s).collect();
        let over = |ns: f64| sample.sample.sector_ns / ns - 1.0;
        sample.predicted_sector_ns = fit.as_ref().and_then(|fit| predicted(fit, &sample.sample));
        sample.residual = sample.predicted_sector_ns.map(over);
        let apart = fit_merge(&others).filter(|_| others.len() >= 3);
        sample.held_out_sector_ns = apart.and_then(|fit| predicted(&fit, &sample.sample));
        sample.held_out_residual = sample.held_out_sector_ns.map(over);
    }
    let told: Vec<f64> = samples.iter().filter(fitted).filter_map(|s| s.held_out_residual).collect();
    MergeReport {
        logical_block_bytes: block.bytes,
        logical_block_source: block.source,
        fit,
        by_sync: fits_by_sync(&inside),
        kinds: kinds::tell_apart(writes, block.bytes),
        holds: told.iter().filter(|r| r.abs() <= HOLDS).count(),
        predicted: told.len(),
        samples,
    }
}

/// The model on a store's runs with flushes, with the logical block that is
/// given or else found ([`block::find`]); `None` where it has none.
///
/// # Errors
/// [`StoreError`] where records cannot be read.
pub fn merge_report(
    contents: &StoreContents,
    given: Option<Bytes>,
) -> Result<Option<MergeReport>, StoreError> {
    let block = block::find(&contents.dir, given)?;
    let (mut samples, mut writes) = (Vec::new(), Writes::default());
    let mut samples_of = |row: &RunRow, every: u32, basic: &Basic| -> Result<(), StoreError> {
        let (mut sampler, mut single) = (Sampler::new(every, block.bytes), OneWrites::new(block.bytes));
        read_row_groups(&contents.dir.join(&row.records.file), |_, records| {
            sampler.push(records);
            if every == 1 {
                single.push(records, |write| writes.push(write));
            }
            Ok(())
        })?;
        let found = sampler.finish(row.spec.id, basic.io_size.0);
        samples.extend(found.map(|s| MergeSample { in_order: !basic.is_random(), ..s }));
        Ok(())
    };
    for row in &contents.runs {
        let Some(Pattern::Basic(basic)) = row.spec.pattern() else { continue };
        if let Timing::Synced { every } = basic.timing {
            samples_of(row, every, basic)?;
        }
    }
    samples.sort_by_key(|s| s.run);
    Ok((!samples.is_empty()).then(|| judge(samples, &writes, block)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::{Arrival, Io, Nanos};

    fn given(bytes: Bytes) -> LogicalBlock {
        LogicalBlock { bytes, source: BlockSource::Given }
    }

    /// 40 syncs of `every` writes of `size`, each in another logical block; a write
    /// costs `visit` and the flush 1 us.
    fn run(id: u32, every: u32, size: u64, block: Bytes, visit: impl Fn(u64) -> u64) -> MergeSample {
        let (mut records, mut at, mut place) = (Vec::new(), 0, 0u64);
        let mut push = |mode, offset, size: u64, ns| {
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(offset),
                size: size as u32,
                mode,
                pattern: 0,
            };
            records.push(IoRecord::new(&io, 0, Nanos(at), Nanos(ns)));
            at += ns;
        };
        for _ in 0..40 {
            for _ in 0..every {
                place += 1;
                push(Mode::Write, place % 256 * block.0, size, visit(place));
            }
            push(Mode::Flush, 0, 0, 1000);
        }
        let mut sampler = Sampler::new(every, block);
        sampler.push(&records);
        sampler.finish(id, size).unwrap()
    }

    #[test]
    fn f_and_r_are_varied_apart_and_t_merge_and_b_come_back() {
        let block = Bytes(1 << 20);
        let mut samples = Vec::new();
        for (i, size) in [4096u64, 16384, 65536, 262_144, 1 << 20].into_iter().enumerate() {
            for every in [1, 4, 16] {
                // T_merge 20 ms, 25 ns a byte.
                samples.push(run(i as u32, every, size, block, |_| 20_000_000 + 25 * size));
            }
        }
        assert_eq!((samples[2].sample.focal_factor, samples[2].sample.sectors_per_sync), (1.0 / 16.0, 128.0));
        let report = judge(samples.clone(), &Writes::default(), given(block));
        let fit = report.fit.unwrap();
        assert!(
            (fit.t_merge_ns.unwrap() / 20e6 - 1.0).abs() < 1e-3
                && (fit.ns_per_byte / 25.0 - 1.0).abs() < 1e-3
        );
        assert_eq!((report.holds, report.predicted), (12, 12), "the others have R > L");
        assert!(report.samples.iter().all(|s| s.held_out_residual.unwrap().abs() < 0.01));
        assert!(report.samples[14].sample.sectors_per_sync == 32768.0 && !report.samples[14].inside);
        // One that does not keep to it is seen.
        samples[7] = run(9, 4, 65536, block, |_| 100_000_000);
        let report = judge(samples, &Writes::default(), given(block));
        assert!(report.holds < 12 && report.samples[7].held_out_residual.unwrap() > 2.0);
    }

    #[test]
    fn visits_that_help_each_other_are_seen_by_the_number_of_writes_a_sync() {
        let block = Bytes(1 << 20);
        let mut samples = Vec::new();
        for size in [4096u64, 16384, 65536] {
            for (every, merge_ns) in [(1, 9_000_000), (4, 8_000_000), (16, 6_000_000)] {
                samples.push(run(0, every, size, block, move |_| merge_ns + 25 * size));
            }
        }
        samples.push(run(0, 64, 4096, block, |_| 1_000_000));
        let report = judge(samples, &Writes::default(), given(block));
        let found: Vec<_> =
            report.by_sync.iter().map(|s| (s.ios_per_sync, s.fit.t_merge_ns.unwrap() / 1e6)).collect();
        assert_eq!(found.len(), 3, "one size tells nothing: {found:?}");
        for ((every, ms), expected) in found.into_iter().zip([(1, 9.0), (4, 8.0), (16, 6.0)]) {
            assert!(every == expected.0 && (ms - expected.1).abs() < 0.01, "{every}: {ms} ms");
        }
    }

    #[test]
    fn two_modes_are_told_and_one_is_not() {
        let two = |at: u64| if at.is_multiple_of(3) { 27_000_000 } else { 400_000 };
        let found = run(0, 1, 4096, Bytes(4 << 20), two).modes.unwrap();
        assert!((found.high_share - 1.0 / 3.0).abs() < 0.02, "{found:?}");
        assert_eq!((found.low_ns, found.high_ns, found.from_ns), (401_000.0, 27_001_000.0, 27_001_000.0));
        assert_eq!(modes(&(0..100).map(|i| 1e6 + f64::from(i) * 1e4).collect::<Vec<_>>()), None);
        assert_eq!(modes(&[]), None);
    }

    #[test]
    fn writes_in_order_are_predicted_but_not_fitted() {
        let block = Bytes(1 << 20);
        let line = |size: u64| move |_| 20_000_000 + 25 * size;
        let mut samples: Vec<MergeSample> = [4096u64, 16384, 65536, 262_144]
            .into_iter()
            .flat_map(|size| [1, 4].map(|every| run(0, every, size, block, line(size))))
            .collect();
        samples.push(MergeSample { in_order: true, ..run(9, 1, 32768, block, |_| 1_000_000) });
        let report = judge(samples, &Writes::default(), given(block));
        assert!((report.fit.unwrap().t_merge_ns.unwrap() / 20e6 - 1.0).abs() < 1e-3);
        let last = report.samples.last().unwrap();
        assert!(last.residual.unwrap() < -0.9 && report.predicted == report.holds, "{last:?}");
    }

    #[test]
    fn beyond_a_logical_block_is_outside() {
        assert!(!run(0, 1, 2 << 20, Bytes(1 << 20), |_| 1_000_000).inside);
        assert!(!run(0, 4, 512 << 10, Bytes(1 << 20), |_| 1_000_000).inside);
        assert!(run(0, 1, 1 << 20, Bytes(1 << 20), |_| 1_000_000).inside);
    }
}
