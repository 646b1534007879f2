//! Writes without a merge, with a switch merge and with a full merge, told apart.
//!
//! What: the paper takes "the shorter spikes" for switch merges and "the larger"
//! for full ones. How: the syncs of one write each are pooled by IOSize over all
//! runs, in order and at random. A switch merge can only happen where a logical
//! block was written whole and in order, so the write that ends such a block is
//! one where it takes longer than the cheap writes of its size (95 % by Welch's
//! test) and is nearer to these than to the dear ones. The others fall into two
//! groups by [`modes`]: the cheap ones had no merge, the dear ones full merges.
//! Each kind has the model's line over the sizes, and what its merge adds to a
//! write of the same size: the mean over sizes with a 95 % interval.
//!
//! Units: ns, bytes. Source: paper 002, sections 2.2 and 3.2. Limits: what is
//! dear for another reason than a merge counts as a full merge; partial merges
//! (a log block in order but not full) are among these.

use super::merge::{MergeFit, Sample, fit_merge, t95};
use super::modes::modes;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use uflip_device::{Bytes, IoRecord, Mode};

/// Writes of a size that end a logical block, at least.
const MIN_ENDS: usize = 4;

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
pub struct Kind {
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
    pub no_merge: Option<Kind>,
    /// With a switch merge.
    pub switch: Option<Kind>,
    /// With a full merge.
    pub full: Option<Kind>,
}

/// The one-write syncs of a run with `sync=1`.
pub fn one_writes(records: &[IoRecord], block: Bytes) -> Vec<OneWrite> {
    let (mut all, mut next, mut open) = (Vec::new(), HashMap::new(), None);
    for record in records {
        let ns = record.response().0 as f64;
        if record.mode() == Mode::Write {
            let (offset, size) = (record.offset().0, u64::from(record.size()));
            let ends_block = goes_on(&mut next, offset, size, block.0.max(1));
            open = Some(OneWrite { io_bytes: size, ns, ends_block });
        } else if let Some(write) = open.take() {
            all.push(OneWrite { ns: write.ns + ns, ..write });
        }
    }
    all
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

/// The times of one size: without a merge, with a switch merge, with a full one.
fn split(writes: &[&OneWrite]) -> Option<[Vec<f64>; 3]> {
    let times =
        |ends: bool| -> Vec<f64> { writes.iter().filter(|w| w.ends_block == ends).map(|w| w.ns).collect() };
    let (others, ends) = (times(false), times(true));
    let found = modes(&others);
    if found.is_none() && ends.len() < MIN_ENDS {
        return None;
    }
    let limit = found.map_or(f64::INFINITY, |m| m.from_ns);
    let (full, cheap): (Vec<f64>, Vec<f64>) = others.iter().partition(|ns| **ns >= limit);
    let ((low, v_low), (middle, v_middle)) = (mean(&cheap)?, mean(&ends).unwrap_or_default());
    let freedom = ends.len().min(cheap.len()).saturating_sub(1);
    let dearer = middle - low > t95(freedom) * (v_low + v_middle).sqrt();
    let nearer = mean(&full).is_none_or(|(high, _)| middle < (low + high) / 2.0);
    let switch = if ends.len() >= MIN_ENDS && dearer && nearer { ends } else { Vec::new() };
    Some([cheap, switch, full])
}

fn kind(sizes: Vec<KindSize>) -> Option<Kind> {
    let samples: Vec<Sample> = sizes.iter().map(|s| Sample::io(s.io_bytes, s.mean_ns)).collect();
    let added: Vec<f64> = sizes.iter().map(|s| s.merge_ns).collect();
    let (merge_ns, variance) = mean(&added)?;
    let half = t95(added.len() - 1) * variance.sqrt();
    Some(Kind {
        fit: fit_merge(&samples),
        merge_ns: Some(merge_ns),
        merge_ci95: (added.len() > 1).then_some((merge_ns - half, merge_ns + half)),
        sizes,
    })
}

/// The kinds of these writes; those larger than a logical block are left out.
pub fn tell_apart(writes: &[OneWrite], block: Bytes) -> Kinds {
    let mut by_size: BTreeMap<u64, Vec<&OneWrite>> = BTreeMap::new();
    for write in writes.iter().filter(|w| w.io_bytes > 0 && w.io_bytes <= block.0) {
        by_size.entry(write.io_bytes).or_default().push(write);
    }
    let mut sizes: [Vec<KindSize>; 3] = Default::default();
    for (io_bytes, writes) in by_size {
        let Some(times) = split(&writes) else { continue };
        let Some((low, _)) = mean(&times[0]) else { continue };
        for (list, times) in sizes.iter_mut().zip(&times) {
            let size =
                |(mean_ns, _)| KindSize { io_bytes, syncs: times.len(), mean_ns, merge_ns: mean_ns - low };
            list.extend(mean(times).map(size));
        }
    }
    let [no_merge, switch, full] = sizes.map(kind);
    let no_merge = no_merge.map(|k| Kind { merge_ns: None, merge_ci95: None, ..k });
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

    #[test]
    fn the_three_kinds_come_back() {
        let kinds = tell_apart(&writes(1.5e6, 20e6), Bytes(1 << 20));
        let (none, switch, full) = (kinds.no_merge.unwrap(), kinds.switch.unwrap(), kinds.full.unwrap());
        let near = |a: Option<f64>, b: f64| (a.unwrap() / b - 1.0).abs() < 1e-6;
        assert!(near(switch.merge_ns, 1.5e6) && near(full.merge_ns, 20e6), "{switch:?} {full:?}");
        let t = |kind: &Kind| kind.fit.as_ref().map(|fit| fit.t_merge_ns);
        assert!(near(t(&none), 2e5) && near(t(&switch), 1.7e6) && near(t(&full), 20.2e6));
        assert_eq!(switch.sizes.iter().map(|s| s.syncs).collect::<Vec<_>>(), [16, 16, 16]);
        assert!(none.merge_ns.is_none() && full.sizes.iter().all(|s| s.syncs == 300));
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let kinds = tell_apart(&writes(0.0, 20e6), Bytes(1 << 20));
        assert!(kinds.switch.is_none() && kinds.full.is_some(), "a block's end costs as the rest");
        let kinds = tell_apart(&writes(19e6, 20e6), Bytes(1 << 20));
        assert!(kinds.switch.is_none(), "it costs as a full merge");
        let kinds = tell_apart(&writes(0.0, 0.0), Bytes(1 << 20));
        assert!(kinds.full.is_none() && kinds.switch.is_none() && kinds.no_merge.is_some());
        let random: Vec<OneWrite> = writes(0.0, 20e6).into_iter().filter(|w| w.ns > 19e6).collect();
        assert_eq!(tell_apart(&random, Bytes(1 << 20)), Kinds::default(), "one mode says nothing");
        assert_eq!(tell_apart(&writes(1.5e6, 20e6), Bytes(4096)), Kinds::default(), "beyond a logical block");
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
