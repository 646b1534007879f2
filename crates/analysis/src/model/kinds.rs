//! Writes without a merge, with a switch merge and with a full merge, told apart.
//!
//! What: the paper takes "the shorter spikes" for switch merges and "the larger"
//! for full ones. How: the syncs of one write each are pooled by IOSize over all
//! runs, in order and at random. A switch merge can only happen where a logical
//! block was written whole and in order, so the write that ends such a block is
//! one where it takes longer than the cheap writes of its size (95 % by Welch's
//! test) and is nearer to these than to the expensive ones. The others fall into two
//! groups by [`modes`]: the cheap ones had no merge, the expensive ones full merges.
//! Each kind has the model's line over the sizes, and what its merge adds to a
//! write of the same size: the mean over sizes with a 95 % interval.
//!
//! Units: ns, bytes. Source: paper 002, sections 2.2 and 3.2. Limits: what is
//! expensive for another reason than a merge counts as a full merge; partial merges
//! (a log block in order but not full) are among these. Beyond 1,048,576 writes they are counted by size and time (0.1 %),
//! and of more than so many blocks written in part the next go by as out of order.

use super::merge::{MergeFit, SyncSample, fit_merge, t95};
use super::modes::{modes, modes_of_counts};
use crate::spectrum::{Spectrum, Summed};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use uflip_device::{Bytes, IoRecord, Mode};
use uflip_measure::detect::long::EXACT_IOS;

/// Writes of a size that end a logical block, at least.
const MIN_ENDS: usize = 4;
/// Blocks written in part that are remembered; beyond this all are forgotten, and
/// their later writes count as out of order.
const MOST_BLOCKS: usize = 1 << 20;

/// A sync of one write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneWrite {
    /// Its size.
    pub io_bytes: u64,
    /// Of write and flush.
    pub ns: f64,
    /// It ends a logical block that was written whole and in order.
    pub ends_block: bool,
}

/// Writes of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SyncKind {
    /// The model's line over the sizes; `None` below two.
    pub fit: Option<MergeFit>,
    /// What the merge adds to a write of the same size without one.
    pub merge_ns: Option<f64>,
    /// Its 95 % interval over the sizes; `None` below two.
    pub merge_ci95: Option<(f64, f64)>,
    /// Each size.
    pub sizes: Vec<KindSize>,
}

/// Writes of one kind and size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KindSize {
    /// IOSize.
    pub io_bytes: u64,
    /// How many.
    pub syncs: usize,
    /// Their mean.
    pub mean_ns: f64,
    /// That, less the mean of those without a merge.
    pub merge_ns: f64,
}

/// All kinds; `None` where there are none of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Kinds {
    /// Without a merge.
    pub no_merge: Option<SyncKind>,
    /// With a switch merge.
    pub switch: Option<SyncKind>,
    /// With a full merge.
    pub full: Option<SyncKind>,
}

/// The one-write syncs of runs with `sync=1`, one after another: each up to
/// `EXACT_IOS`, beyond that counted by IOSize and time.
#[derive(Clone, Debug)]
pub enum Writes {
    /// Each of them.
    Each(Vec<OneWrite>),
    /// By IOSize: times of those that do not end a block, and of those that do.
    #[doc(hidden)]
    Counted(BTreeMap<u64, CountedWrites>),
}

/// Times of writes that do not end a block, and of those that do.
#[derive(Clone, Debug, Default)]
pub struct CountedWrites([Spectrum; 2]);

impl Default for Writes {
    fn default() -> Writes {
        Writes::Each(Vec::new())
    }
}

impl Writes {
    /// Adds a sync.
    pub fn push(&mut self, write: OneWrite) {
        match self {
            Writes::Each(all) if all.len() < EXACT_IOS => all.push(write),
            Writes::Each(all) => {
                let all = std::mem::take(all);
                *self = Writes::Counted(BTreeMap::new());
                all.into_iter().chain([write]).for_each(|write| self.push(write));
            }
            Writes::Counted(sizes) => {
                let counted = sizes.entry(write.io_bytes).or_default();
                counted.0[usize::from(write.ends_block)].push(write.ns as u64);
            }
        }
    }
}

/// Finds the one-write syncs in the records of a run with `sync=1`.
pub struct OneWrites {
    block: Bytes,
    /// Where each block that was written in order so far has to go on.
    next: HashMap<u64, u64>,
    open: Option<OneWrite>,
}

impl OneWrites {
    /// For logical blocks of this size.
    pub fn new(block: Bytes) -> OneWrites {
        OneWrites { block, next: HashMap::new(), open: None }
    }

    /// Takes the next records; gives each sync to `found`.
    pub fn push(&mut self, records: &[IoRecord], mut found: impl FnMut(OneWrite)) {
        for record in records {
            let ns = record.response().0 as f64;
            if record.mode() == Mode::Write {
                let (offset, size) = (record.offset().0, u64::from(record.size()));
                if self.next.len() >= MOST_BLOCKS {
                    self.next.clear();
                }
                let ends_block = goes_on(&mut self.next, offset, size, self.block.0.max(1));
                self.open = Some(OneWrite { io_bytes: size, ns, ends_block });
            } else if let Some(write) = self.open.take() {
                found(OneWrite { ns: write.ns + ns, ..write });
            }
        }
    }
}

/// Notes a write; true where it ends a block that was written in order. `next`
/// has where each block that was so far has to go on.
fn goes_on(next: &mut HashMap<u64, u64>, offset: u64, size: u64, block: u64) -> bool {
    let (mut at, end, mut ends) = (offset, offset.saturating_add(size), false);
    while at < end {
        let (number, stop) = (at / block, end.min((at / block + 1).saturating_mul(block)));
        let in_order = at.is_multiple_of(block) || next.get(&number) == Some(&at);
        let whole = in_order && stop.is_multiple_of(block);
        ends |= whole;
        if in_order && !whole {
            next.insert(number, stop);
        } else {
            next.remove(&number);
        }
        at = stop;
    }
    ends
}

/// Mean, and variance of the mean.
fn mean(times: &[f64]) -> Option<(f64, f64)> {
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let sum: f64 = times.iter().map(|t| (t - mean).powi(2)).sum();
    (!times.is_empty()).then(|| (mean, if n > 1.0 { sum / (n - 1.0) / n } else { 0.0 }))
}

/// Times summed up.
#[derive(Clone, Copy, Default)]
struct SyncGroup {
    n: usize,
    mean: f64,
    /// Of the mean.
    variance: f64,
}

fn group(times: &[f64]) -> Option<SyncGroup> {
    mean(times).map(|(mean, variance)| SyncGroup { n: times.len(), mean, variance })
}

fn counted_group(summed: Option<Summed>) -> Option<SyncGroup> {
    summed.map(|s| SyncGroup { n: s.n as usize, mean: s.mean, variance: s.variance / s.n as f64 })
}

/// The writes of one size: without a merge, with a switch merge, with a full one.
fn split(writes: &[&OneWrite]) -> Option<[Option<SyncGroup>; 3]> {
    let times =
        |ends: bool| -> Vec<f64> { writes.iter().filter(|w| w.ends_block == ends).map(|w| w.ns).collect() };
    let (others, ends) = (times(false), times(true));
    let found = modes(&others);
    let limit = found.map_or(f64::INFINITY, |m| m.from_ns);
    let (full, cheap): (Vec<f64>, Vec<f64>) = others.iter().partition(|ns| **ns >= limit);
    kinds_of(found.is_some(), group(&cheap), group(&ends), group(&full))
}

/// [`split`] of writes that were counted.
fn split_counted(CountedWrites([others, ends]): &CountedWrites) -> Option<[Option<SyncGroup>; 3]> {
    let found = modes_of_counts(others);
    let [cheap, full] = found.map_or([others.summed(), None], |m| others.split(m.from_ns as u64));
    kinds_of(found.is_some(), counted_group(cheap), counted_group(ends.summed()), counted_group(full))
}

/// Whether those that end a block had a switch merge; None where nothing tells.
fn kinds_of(
    two: bool,
    cheap: Option<SyncGroup>,
    ends: Option<SyncGroup>,
    full: Option<SyncGroup>,
) -> Option<[Option<SyncGroup>; 3]> {
    let number = ends.map_or(0, |g| g.n);
    if !two && number < MIN_ENDS {
        return None;
    }
    let (low, middle) = (cheap?, ends.unwrap_or_default());
    let freedom = number.min(low.n).saturating_sub(1);
    let costlier = middle.mean - low.mean > t95(freedom) * (low.variance + middle.variance).sqrt();
    let nearer = full.is_none_or(|high| middle.mean < (low.mean + high.mean) / 2.0);
    let switch = ends.filter(|_| number >= MIN_ENDS && costlier && nearer);
    Some([cheap, switch, full])
}

fn kind(sizes: Vec<KindSize>) -> Option<SyncKind> {
    let samples: Vec<SyncSample> = sizes.iter().map(|s| SyncSample::io(s.io_bytes, s.mean_ns)).collect();
    let added: Vec<f64> = sizes.iter().map(|s| s.merge_ns).collect();
    let (merge_ns, variance) = mean(&added)?;
    let half = t95(added.len() - 1) * variance.sqrt();
    Some(SyncKind {
        fit: fit_merge(&samples),
        merge_ns: Some(merge_ns),
        merge_ci95: (added.len() > 1).then_some((merge_ns - half, merge_ns + half)),
        sizes,
    })
}

/// The kinds of these writes; those larger than a logical block are left out.
pub fn tell_apart(writes: &Writes, block: Bytes) -> Kinds {
    let fits = |io_bytes: u64| io_bytes > 0 && io_bytes <= block.0;
    match writes {
        Writes::Each(writes) => {
            let mut by_size: BTreeMap<u64, Vec<&OneWrite>> = BTreeMap::new();
            for write in writes.iter().filter(|w| fits(w.io_bytes)) {
                by_size.entry(write.io_bytes).or_default().push(write);
            }
            of_sizes(by_size.into_iter().map(|(size, writes)| (size, split(&writes))))
        }
        Writes::Counted(sizes) => {
            let sizes = sizes.iter().filter(|(size, _)| fits(**size));
            of_sizes(sizes.map(|(size, counted)| (*size, split_counted(counted))))
        }
    }
}

/// The kinds from the groups of each IOSize.
fn of_sizes(groups: impl Iterator<Item = (u64, Option<[Option<SyncGroup>; 3]>)>) -> Kinds {
    let mut sizes: [Vec<KindSize>; 3] = Default::default();
    for (io_bytes, groups) in groups {
        let Some(groups) = groups else { continue };
        let Some(low) = groups[0].map(|g| g.mean) else { continue };
        for (list, group) in sizes.iter_mut().zip(groups) {
            let size =
                |g: SyncGroup| KindSize { io_bytes, syncs: g.n, mean_ns: g.mean, merge_ns: g.mean - low };
            list.extend(group.map(size));
        }
    }
    let [no_merge, switch, full] = sizes.map(kind);
    let no_merge = no_merge.map(|k| SyncKind { merge_ns: None, merge_ci95: None, ..k });
    Kinds { no_merge, switch, full }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In order through logical blocks of 1 MiB, and at random: 0.2 ms and 10 ns a
    /// byte, 1.5 ms more at a block's end, 20 ms more at random.
    fn writes(switch_ns: f64, full_ns: f64) -> Vec<OneWrite> {
        let mut all = Vec::new();
        for io_bytes in [16384u64, 65536, 262_144] {
            let (base, each) = (2e5 + 10.0 * io_bytes as f64, (1 << 20) / io_bytes);
            for i in 0..16 * each {
                let ends_block = (i + 1) % each == 0;
                all.push(OneWrite {
                    io_bytes,
                    ns: base + if ends_block { switch_ns } else { 0.0 },
                    ends_block,
                });
            }
            all.extend((0..300).map(|_| OneWrite { io_bytes, ns: base + full_ns, ends_block: false }));
        }
        all
    }

    fn each(writes: Vec<OneWrite>) -> Writes {
        Writes::Each(writes)
    }

    /// The same writes kept each and counted.
    #[test]
    fn counted_writes_tell_the_same() {
        for made in [writes(1.5e6, 20e6), writes(0.0, 20e6), writes(19e6, 20e6), writes(0.0, 0.0)] {
            let mut counted = Writes::Counted(BTreeMap::new());
            made.iter().for_each(|write| counted.push(*write));
            let (one, other) =
                (tell_apart(&each(made), Bytes(1 << 20)), tell_apart(&counted, Bytes(1 << 20)));
            let means = |kind: &Option<SyncKind>| -> Vec<(usize, u64)> {
                kind.iter().flat_map(|k| &k.sizes).map(|s| (s.syncs, s.mean_ns.round() as u64)).collect()
            };
            for (one, other) in
                [one.no_merge, one.switch, one.full].iter().zip([&other.no_merge, &other.switch, &other.full])
            {
                assert_eq!(means(one), means(other));
            }
        }
    }

    #[test]
    fn more_writes_than_are_kept_are_counted() {
        let mut all = Writes::default();
        let write = OneWrite { io_bytes: 4096, ns: 1e6, ends_block: false };
        (0..=EXACT_IOS).for_each(|_| all.push(write));
        let Writes::Counted(sizes) = all else { panic!("kept each") };
        assert_eq!(sizes[&4096].0[0].n(), EXACT_IOS as u64 + 1);
    }

    #[test]
    fn the_three_kinds_come_back() {
        let kinds = tell_apart(&each(writes(1.5e6, 20e6)), Bytes(1 << 20));
        let (none, switch, full) = (kinds.no_merge.unwrap(), kinds.switch.unwrap(), kinds.full.unwrap());
        let near = |a: Option<f64>, b: f64| (a.unwrap() / b - 1.0).abs() < 1e-6;
        assert!(near(switch.merge_ns, 1.5e6) && near(full.merge_ns, 20e6), "{switch:?} {full:?}");
        let t = |kind: &SyncKind| kind.fit.as_ref().and_then(|fit| fit.t_merge_ns);
        assert!(near(t(&none), 2e5) && near(t(&switch), 1.7e6) && near(t(&full), 20.2e6));
        assert_eq!(switch.sizes.iter().map(|s| s.syncs).collect::<Vec<_>>(), [16, 16, 16]);
        assert!(none.merge_ns.is_none() && full.sizes.iter().all(|s| s.syncs == 300));
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let kinds = tell_apart(&each(writes(0.0, 20e6)), Bytes(1 << 20));
        assert!(kinds.switch.is_none() && kinds.full.is_some(), "a block's end costs as the rest");
        let kinds = tell_apart(&each(writes(19e6, 20e6)), Bytes(1 << 20));
        assert!(kinds.switch.is_none(), "it costs as a full merge");
        let kinds = tell_apart(&each(writes(0.0, 0.0)), Bytes(1 << 20));
        assert!(kinds.full.is_none() && kinds.switch.is_none() && kinds.no_merge.is_some());
        let random: Vec<OneWrite> = writes(0.0, 20e6).into_iter().filter(|w| w.ns > 19e6).collect();
        assert_eq!(tell_apart(&each(random), Bytes(1 << 20)), Kinds::default(), "one mode says nothing");
        assert_eq!(
            tell_apart(&each(writes(1.5e6, 20e6)), Bytes(4096)),
            Kinds::default(),
            "beyond a logical block"
        );
    }

    #[test]
    fn a_block_ends_only_where_all_of_it_was_written_in_order() {
        let ends = |writes: &[(u64, u64)]| -> Vec<bool> {
            let mut next = HashMap::new();
            writes.iter().map(|(offset, size)| goes_on(&mut next, *offset, *size, 100)).collect()
        };
        assert_eq!(
            ends(&[(0, 50), (200, 50), (50, 50), (250, 50)]),
            [false, false, true, true],
            "two at once"
        );
        assert_eq!(ends(&[(50, 50), (0, 50)]), [false, false], "out of order");
        assert_eq!(ends(&[(0, 50), (20, 10), (50, 50)]), [false; 3], "something between");
        assert_eq!(ends(&[(0, 100), (300, 200), (50, 100)]), [true, true, false]);
        assert_eq!(ends(&[(0, 40), (40, 80), (120, 80)]), [false, true, true], "over a block's end");
    }
}
