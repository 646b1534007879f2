//! BAST: block mapping with log blocks, each of them for one data block.
//!
//! Method: Kim et al., "A space-efficient flash translation layer for
//! CompactFlash systems", IEEE Trans. Consumer Electronics 48(2), 2002, on
//! superblocks. A write goes to the next page of the superblock's log block.
//! When none is left the least recently used are reclaimed:
//! * switch merge: the log holds all pages in order and becomes the data block;
//! * partial merge: in order so far, the rest is copied to it from the data block;
//! * full merge: the newest copy of every page is copied to a new block.
//!
//! Additions: `merge_batch` log blocks are reclaimed at once, each in its own
//! bank, so that a controller with several banks gains from their parallel
//! work. With `permuted_switch` a log that holds each page exactly once
//! becomes the data block in whatever order, which needs a page map of the
//! superblock (Kang et al., "A superblock-based flash translation layer for
//! NAND flash memory", EMSOFT 2006).
//!
//! Going on in another log than the last costs a change of the page map held
//! in RAM (`timing.log_switch_us`); a new log has none to be loaded. With `page_wise_log_copy` a full merge
//! copies the log's pages one at a time, the data block's row by row. With
//! `restart_merges` a write to page 0 merges a log that is not in order. With
//! `repay_merges` each new log comes with a merge once all were taken, until
//! the debt is paid. With `random_logs` only so many logs may belong to
//! superblocks written at random; the others are for streams. With `unit_kib`
//! the map is kept in larger units, and a write that covers one in part, and is
//! no stream, has its superblock merged at once, one such merge at a time. With
//! `loses_order` such a write that is smaller than a unit also costs the device
//! its order: [`Disorder`].
//!
//! Superblock `s` and its log lie in bank `s % banks`. A merge costs rows, not
//! a loop over pages. Memory: 4 bytes a superblock, one bit a page, and 4
//! bytes a page of each log block; with `permuted_switch` 4 bytes a page besides,
//! which the system hands out as they are first written to.

use super::free::FreeList;
use super::wear::Leveller;
use super::written::Written;
use super::{Ftl, MergeCounts};
use crate::describe::{BastOptions, WearLevelling};
use crate::nand::{ArrayShape, Nand};
use crate::planted::{Bug, planted};

const NONE: u32 = u32::MAX;

/// A log block.
#[derive(Clone, Debug)]
struct Log {
    logical: u32,
    physical: u32,
    used: u32,
    /// Pages that have their newest copy here.
    valid: u32,
    /// Page `i` was written at place `i`, for all so far.
    in_order: bool,
    /// Place of each page's newest copy, `NONE` where it is not here.
    place: Vec<u32>,
    last_use: u64,
    /// Last written by a stream.
    streamed: bool,
}

/// The map is no longer one of superblocks in order, until each was written
/// anew, whole and in order. Meanwhile each is copied before it is begun anew, and
/// what a host write leaves in logs is merged before it is done.
///
/// Source: paper 004, appendix C, of what a stick does after random writes of 2 KB
/// or less; that it is a state of the whole device is our reading.
#[derive(Clone, Debug)]
struct Disorder {
    /// Which superblocks; none on a device that keeps its order.
    renewed: Vec<bool>,
    /// How many are not yet; 0 where the order is not lost.
    left: usize,
}

/// Data blocks whose pages are not in order.
#[derive(Clone, Debug)]
struct Permuted {
    is: Vec<bool>,
    /// Place of each page of the device that lies in one of these; empty on a device
    /// that has none.
    places: Vec<u32>,
}

impl Permuted {
    fn new(possible: bool, sbs: usize, units_per_sb: u32) -> Permuted {
        let sbs = if possible { sbs } else { 0 };
        Permuted { is: vec![false; sbs], places: vec![0; sbs * units_per_sb as usize] }
    }

    /// Of superblock `logical`, where it is one.
    fn places(&self, logical: u32, units_per_sb: u32) -> Option<&[u32]> {
        let pages = units_per_sb as usize;
        let has = self.is.get(logical as usize).copied().unwrap_or(false);
        has.then(|| &self.places[logical as usize * pages..][..pages])
    }

    fn set(&mut self, logical: u32, places: &[u32]) {
        self.is[logical as usize] = true;
        self.places[logical as usize * places.len()..][..places.len()].copy_from_slice(places);
    }

    fn clear(&mut self, logical: u32) {
        if let Some(is) = self.is.get_mut(logical as usize) {
            *is = false;
        }
    }
}

/// Data blocks, logs and where they are.
#[derive(Clone, Debug)]
pub struct Bast {
    units_per_sb: u32,
    banks: u32,
    batch: usize,
    limit: usize,
    random_limit: usize,
    /// Pages of the map's unit.
    unit_pages: u64,
    streams: Streams,
    /// When the one merge after a write in part of a unit has ended.
    patched_ns: u64,
    loses_order: bool,
    disorder: Disorder,
    /// Superblock and end of the latest write, where it was smaller than a unit
    /// and no stream: a stream may begin so.
    lone: Option<(u32, u64)>,
    permuted_switch: bool,
    page_wise_log_copy: bool,
    restart_merges: bool,
    repay_merges: bool,
    /// All logs were taken and not yet paid back.
    owing: bool,
    /// The log whose page map is in RAM.
    active: u32,
    /// Physical data block of each superblock, `NONE` before the first merge.
    data: Vec<u32>,
    written: Written,
    permuted: Permuted,
    logs: Vec<Log>,
    /// Log of each superblock that has one.
    log_of: Vec<u16>,
    spare_places: Vec<Vec<u32>>,
    free: FreeList,
    leveller: Leveller,
    clock: u64,
    counts: MergeCounts,
}

const NO_LOG: u16 = u16::MAX;

/// Data blocks, logs (which may all fall into one bank) and a merge's target.
pub fn physical_sbs(shape: &ArrayShape, f: &BastOptions, spare_blocks: u32) -> u64 {
    let per_bank = u64::from(shape.logical_sbs).div_ceil(u64::from(shape.banks))
        + u64::from(f.log_blocks)
        + 1
        + u64::from(spare_blocks);
    per_bank * u64::from(shape.banks)
}

impl Bast {
    /// An empty map on an erased array.
    pub fn new(nand: &Nand, f: &BastOptions, levelling: WearLevelling) -> Bast {
        let shape = &nand.shape;
        let sbs = shape.logical_sbs as usize;
        Bast {
            units_per_sb: shape.units_per_sb,
            banks: shape.banks,
            batch: f.merge_batch as usize,
            limit: f.log_blocks as usize,
            random_limit: f.random_logs.map_or(usize::MAX, |n| n as usize),
            unit_pages: f.unit_kib.map_or(1, |kib| ((kib << 10) / shape.unit_bytes).max(1)),
            streams: Streams::new(f.log_blocks),
            patched_ns: 0,
            loses_order: f.loses_order,
            disorder: Disorder { renewed: vec![false; if f.loses_order { sbs } else { 0 }], left: 0 },
            lone: None,
            permuted_switch: f.permuted_switch,
            page_wise_log_copy: f.page_wise_log_copy,
            restart_merges: f.restart_merges,
            repay_merges: f.repay_merges,
            owing: false,
            active: NONE,
            data: vec![NONE; sbs],
            written: Written::new(shape.units_per_sb, shape.logical_sbs),
            permuted: Permuted::new(f.permuted_switch, sbs, shape.units_per_sb),
            logs: Vec::new(),
            log_of: vec![NO_LOG; sbs],
            spare_places: Vec::new(),
            free: FreeList::new(nand.physical_sbs(), shape.banks, levelling),
            leveller: Leveller::new(levelling),
            clock: 0,
            counts: MergeCounts::default(),
        }
    }

    /// Takes the memory that its books may need.
    pub fn reserve(&mut self) {
        let (logs, pages) = (self.logs.len(), self.units_per_sb as usize);
        self.logs.reserve(self.limit.saturating_sub(logs));
        self.spare_places.reserve(self.limit.saturating_sub(self.spare_places.len()));
        self.spare_places.resize_with(self.limit.saturating_sub(logs), || vec![NONE; pages]);
        self.free.reserve();
    }

    fn bank(&self, logical: u32) -> u32 {
        logical % self.banks
    }

    /// Physical page of a unit in its data block.
    fn in_data(&self, logical: u32, index: u32) -> u64 {
        let permuted = self.permuted.places(logical, self.units_per_sb);
        let place = permuted.map_or(index, |places| places[index as usize]);
        u64::from(self.data[logical as usize]) * u64::from(self.units_per_sb) + u64::from(place)
    }

    /// The log of a superblock, opened where it has none.
    fn log_for(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> (usize, u64) {
        let mut at = at_ns;
        if self.log_of[logical as usize] == NO_LOG {
            self.owing = self.repay_merges && (self.owing || self.logs.len() >= self.limit);
            if self.logs.len() >= self.limit || self.owing && !self.logs.is_empty() {
                // The new log has a block of its own; it need not wait for the
                // merge, but the write is done only when both are.
                at = self.reclaim(nand, at_ns);
            }
            self.owing &= !self.logs.is_empty();
            let bank = self.bank(logical);
            let physical = self.free.take(bank).expect("a bank has blocks for every log and a merge");
            let place = self.spare_places.pop().unwrap_or_else(|| vec![NONE; self.units_per_sb as usize]);
            self.log_of[logical as usize] = self.logs.len() as u16;
            let (used, valid, in_order, last_use, streamed) = (0, 0, true, 0, false);
            self.logs.push(Log { logical, physical, used, valid, in_order, place, last_use, streamed });
        }
        let i = self.log_of[logical as usize] as usize;
        self.clock += 1;
        self.logs[i].last_use = self.clock;
        (i, at)
    }

    /// Merges the least recently used logs, all beginning at `at_ns`.
    fn reclaim(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        let mut end = at_ns;
        for _ in 0..self.batch.min(self.logs.len()) {
            let oldest = (0..self.logs.len()).min_by_key(|i| self.logs[*i].last_use);
            let Some(i) = oldest else { break };
            end = end.max(self.merge(nand, at_ns, i));
        }
        end
    }

    /// Makes a write at random to `logical` possible: the least recently used
    /// logs of others that were written at random are merged.
    fn limit_random(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> u64 {
        let (mut end, mut merged) = (at_ns, 0_usize);
        if self.random_limit == usize::MAX {
            return end;
        }
        loop {
            let others = || {
                let logs = self.logs.iter().enumerate();
                logs.filter(|(_, log)| !log.streamed && log.logical != logical)
            };
            let count = others().count();
            let Some((i, _)) = others().min_by_key(|(_, log)| log.last_use) else { return end };
            if count < self.random_limit && merged.is_multiple_of(self.batch) {
                return end;
            }
            end = end.max(self.merge(nand, at_ns, i));
            merged += 1;
        }
    }

    /// Merges superblock `logical` after a write in part of a unit, after the
    /// merge before it.
    fn patch(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> u64 {
        let i = self.log_of[logical as usize];
        if i == NO_LOG {
            return at_ns;
        }
        self.patched_ns = self.merge(nand, at_ns.max(self.patched_ns), usize::from(i));
        self.patched_ns
    }

    /// The order is lost by a write smaller than a unit that is no stream and that
    /// none goes on after.
    fn note_small(&mut self, unit: u64, count: u64, streamed: bool) {
        if let Some((logical, end)) = self.lone.take()
            && end != unit
            && end != unit + 1
        {
            self.lose_order(logical);
        }
        let small = !streamed && count < self.unit_pages;
        self.lone = small.then_some(((unit / u64::from(self.units_per_sb)) as u32, unit + count));
    }

    /// The order is lost, and superblock `logical` with it if it was renewed.
    fn lose_order(&mut self, logical: u32) {
        let disorder = &mut self.disorder;
        if disorder.left == 0 {
            for (renewed, data) in disorder.renewed.iter_mut().zip(&self.data) {
                *renewed = *data == NONE;
                disorder.left += usize::from(!*renewed);
            }
            return;
        }
        disorder.left += usize::from(std::mem::replace(&mut disorder.renewed[logical as usize], false));
    }

    /// Superblock `logical` was written whole and in order, or is gone.
    fn renew(&mut self, logical: u32) {
        let disorder = &mut self.disorder;
        if disorder.left > 0 {
            disorder.left -= usize::from(!std::mem::replace(&mut disorder.renewed[logical as usize], true));
        }
    }

    /// Copies superblock `logical`, whose order was lost, before it is begun anew.
    fn put_in_order(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> u64 {
        let lost = self.disorder.left > 0 && !self.disorder.renewed[logical as usize];
        if !lost || self.data[logical as usize] == NONE {
            return at_ns;
        }
        let (i, reclaimed) = self.log_for(nand, at_ns, logical);
        self.merge(nand, reclaimed.max(at_ns), i)
    }

    /// True while host writes wait for [`Bast::settle`].
    #[inline]
    pub fn settles(&self) -> bool {
        self.disorder.left > 0
    }

    /// Merges all logs.
    pub fn settle(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        let mut end = at_ns;
        while !self.logs.is_empty() {
            end = end.max(self.merge(nand, at_ns, 0));
        }
        end
    }

    /// Ends log `i` by the cheapest merge there is.
    fn merge(&mut self, nand: &mut Nand, at_ns: u64, i: usize) -> u64 {
        let log = self.logs.swap_remove(i);
        if let Some(moved) = self.logs.get(i) {
            self.log_of[moved.logical as usize] = i as u16;
        }
        self.log_of[log.logical as usize] = NO_LOG;
        let total = self.written.count(log.logical);
        let complete = log.valid == total && log.used == log.valid;
        let end = if complete && (log.in_order || self.permuted_switch || planted(Bug::SwitchOutOfOrder)) {
            self.counts.switch += 1;
            if log.in_order {
                self.renew(log.logical);
            }
            self.replace(nand, at_ns, log)
        } else if log.in_order && !self.has_gaps(&log) {
            self.counts.partial += 1;
            self.partial(nand, at_ns, log)
        } else {
            self.counts.full += 1;
            self.full(nand, at_ns, log)
        };
        self.leveller.after_merge(nand, end, &mut self.data, &mut self.free, &mut self.counts)
    }

    /// True where pages beyond the log's end were not all written, so that it
    /// cannot be completed in order.
    fn has_gaps(&self, log: &Log) -> bool {
        // A superblock at the end of the device has fewer pages; those beyond
        // are never written, so an incomplete superblock is merged in full.
        self.written.count(log.logical) != self.units_per_sb
    }

    /// The log takes the data block's place.
    fn replace(&mut self, nand: &mut Nand, at_ns: u64, mut log: Log) -> u64 {
        let mut end = at_ns;
        let old = std::mem::replace(&mut self.data[log.logical as usize], log.physical);
        if log.in_order || planted(Bug::SwitchOutOfOrder) {
            self.permuted.clear(log.logical);
        } else {
            self.permuted.set(log.logical, &log.place);
        }
        if old != NONE {
            end = self.erase(nand, at_ns, old);
        }
        log.place.fill(NONE);
        self.spare_places.push(log.place);
        nand.update_map(end, log.physical)
    }

    fn erase(&mut self, nand: &mut Nand, at_ns: u64, physical: u32) -> u64 {
        let end = nand.erase_rows(at_ns, physical);
        if planted(Bug::BlockIsLost) && physical % 16 == 5 {
            return end;
        }
        self.free.give(physical, nand.bank_of(physical), nand.erase_counts[physical as usize]);
        if planted(Bug::BlockIsFreeAndData) && physical % 16 == 5 {
            self.data[0] = physical;
        }
        end
    }

    /// The rest of the data block is copied behind the log's pages.
    fn partial(&mut self, nand: &mut Nand, at_ns: u64, mut log: Log) -> u64 {
        let rest = if self.data[log.logical as usize] == NONE { 0 } else { self.units_per_sb - log.used };
        self.tell_witness(nand, &log, log.used, log.physical);
        let copied = nand.copy_rows(at_ns, log.physical, u64::from(rest));
        for (index, place) in log.place.iter_mut().enumerate() {
            *place = index as u32;
        }
        self.replace(nand, copied, log)
    }

    /// The newest copies go to a new block; log and data block are erased.
    fn full(&mut self, nand: &mut Nand, at_ns: u64, mut log: Log) -> u64 {
        let bank = self.bank(log.logical);
        let target = self.free.take(bank).expect("a bank has blocks for every log and a merge");
        self.tell_witness(nand, &log, 0, target);
        // A merge copies whole blocks: it does not look which pages were ever
        // written, only whether there is a data block.
        let none = self.data[log.logical as usize] == NONE;
        let all = if none { log.valid } else { self.units_per_sb };
        let mut end = if self.page_wise_log_copy {
            let rows = nand.copy_rows(at_ns, target, u64::from(all - log.valid));
            nand.copy_scattered(rows, target, u64::from(log.valid))
        } else {
            nand.copy_rows(at_ns, target, u64::from(all))
        };
        let old = std::mem::replace(&mut self.data[log.logical as usize], target);
        self.permuted.clear(log.logical);
        if old != NONE {
            end = end.max(self.erase(nand, at_ns, old));
        }
        end = end.max(self.erase(nand, at_ns, log.physical));
        log.place.fill(NONE);
        self.spare_places.push(log.place);
        nand.update_map(end, target)
    }

    /// In checked runs: which pages the arithmetic of a merge stands for.
    fn tell_witness(&self, nand: &mut Nand, log: &Log, from: u32, target: u32) {
        let Some(witness) = &mut nand.witness else { return };
        let first = u64::from(log.logical) * u64::from(self.units_per_sb);
        for index in from..self.units_per_sb {
            if !self.written.has(first + u64::from(index)) {
                continue;
            }
            let place = log.place[index as usize];
            let old = planted(Bug::MergeTakesOldCopy) && self.data[log.logical as usize] != NONE;
            let source = if place == NONE || old {
                self.in_data(log.logical, index)
            } else {
                u64::from(log.physical) * u64::from(self.units_per_sb) + u64::from(place)
            };
            let to = u64::from(target) * u64::from(self.units_per_sb) + u64::from(index);
            witness.copy(source, to);
        }
    }

    /// Appends up to `count` pages of one superblock; gives how many and when
    /// they are programmed.
    fn append(
        &mut self,
        nand: &mut Nand,
        at_ns: u64,
        (logical, index, count): (u32, u32, u32),
        streamed: bool,
    ) -> (u32, u64) {
        let mut at = at_ns;
        let limited = if streamed { at_ns } else { self.limit_random(nand, at_ns, logical) };
        let old = self.log_of[logical as usize] as usize;
        if self.restart_merges && index == 0 && self.logs.get(old).is_some_and(|log| !log.in_order) {
            at = self.merge(nand, at, old);
        }
        if index == 0 {
            at = self.put_in_order(nand, at, logical);
        }
        let (i, reclaimed) = self.log_for(nand, at, logical);
        let log = &mut self.logs[i];
        log.streamed = streamed;
        if std::mem::replace(&mut self.active, log.physical) != log.physical && log.used > 0 {
            at = nand.switch_log(at, log.physical);
        }
        let take = count.min(self.units_per_sb - log.used);
        log.in_order &= index == log.used;
        for k in 0..take {
            let place = &mut log.place[(index + k) as usize];
            log.valid += u32::from(*place == NONE);
            *place = log.used + k;
        }
        let first = log.used;
        log.used += take;
        let (physical, full) = (log.physical, log.used == self.units_per_sb);
        if let Some(witness) = &mut nand.witness {
            let unit = u64::from(logical) * u64::from(self.units_per_sb) + u64::from(index);
            let ppu = u64::from(physical) * u64::from(self.units_per_sb) + u64::from(first);
            (0..u64::from(take)).for_each(|k| witness.host_write(unit + k, ppu + k));
        }
        self.written.mark(logical, index, take);
        let mut end = nand.program_rows(at, physical, u64::from(first), u64::from(take));
        if full {
            end = self.merge(nand, end, i);
        }
        (take, end.max(reclaimed).max(limited))
    }
}

/// Where the latest writes ended, so that one that goes on there is known as
/// part of a stream.
#[derive(Clone, Debug)]
struct Streams {
    /// Most recent last.
    ends: Vec<u64>,
}

impl Streams {
    fn new(most: u32) -> Streams {
        Streams { ends: vec![u64::MAX; most as usize] }
    }

    /// Notes a write; true where it goes on after an earlier one, or in the
    /// page in which that ended.
    fn follow(&mut self, unit: u64, count: u64) -> bool {
        let found = self.ends.iter().rposition(|end| *end == unit || *end == unit + 1);
        let from = found.unwrap_or(0);
        self.ends[from..].rotate_left(1);
        if let Some(last) = self.ends.last_mut() {
            *last = unit + count;
        }
        found.is_some()
    }
}

impl Ftl for Bast {
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let per_sb = u64::from(self.units_per_sb);
        let (mut at, mut left, mut end) = (unit, count, at_ns);
        let told_apart = self.random_limit != usize::MAX || self.unit_pages > 1;
        let streamed = told_apart && self.streams.follow(unit, count);
        while left > 0 {
            let (logical, index) = ((at / per_sb) as u32, (at % per_sb) as u32);
            let take = left.min(per_sb - u64::from(index)) as u32;
            let (done, programmed) = self.append(nand, at_ns, (logical, index, take), streamed);
            end = end.max(programmed);
            at += u64::from(done);
            left -= u64::from(done);
        }
        if self.loses_order {
            self.note_small(unit, count, streamed);
        }
        let [first, last] = [unit, unit + count - 1];
        if !streamed && !first.is_multiple_of(self.unit_pages) {
            end = self.patch(nand, end, (first / per_sb) as u32);
        }
        if !streamed && !(last + 1).is_multiple_of(self.unit_pages) {
            end = self.patch(nand, end, (last / per_sb) as u32);
        }
        end
    }

    fn read(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        super::read_by_superblock(nand, at_ns, unit, count, |u| self.locate(u))
    }

    /// Trimmed pages are not copied by merges any more; a superblock trimmed
    /// whole gives its blocks back.
    fn trim(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let mut end = at_ns;
        for u in unit..unit + count {
            if !self.written.clear(u) {
                continue;
            }
            let logical = (u / u64::from(self.units_per_sb)) as u32;
            if let Some(log) = self.logs.get_mut(self.log_of[logical as usize] as usize) {
                let place = &mut log.place[(u % u64::from(self.units_per_sb)) as usize];
                log.valid -= u32::from(*place != NONE);
                *place = NONE;
            }
            if let Some(witness) = &mut nand.witness {
                witness.trim(u);
            }
            let data = self.data[logical as usize];
            if self.written.count(logical) == 0 && data != NONE {
                self.data[logical as usize] = NONE;
                self.permuted.clear(logical);
                self.renew(logical);
                end = end.max(self.erase(nand, at_ns, data));
            }
        }
        end
    }

    fn reclaim_idle(&mut self, _nand: &mut Nand, _at_ns: u64) -> Option<u64> {
        None
    }

    fn locate(&self, unit: u64) -> Option<u64> {
        if !self.written.has(unit) {
            return None;
        }
        let per_sb = u64::from(self.units_per_sb);
        let (logical, index) = ((unit / per_sb) as u32, (unit % per_sb) as u32);
        if let Some(log) = self.logs.get(self.log_of[logical as usize] as usize) {
            let place = log.place[index as usize];
            if place != NONE {
                return Some(u64::from(log.physical) * per_sb + u64::from(place));
            }
        }
        Some(self.in_data(logical, index))
    }

    fn check(&self, nand: &Nand) -> Result<(), String> {
        let data = self.data.iter().copied().filter(|sb| *sb != NONE);
        let logs = self.logs.iter().map(|log| log.physical);
        super::each_block_once(nand, data.chain(logs).chain(self.free.all()))?;
        for (i, log) in self.logs.iter().enumerate() {
            let here = log.place.iter().filter(|p| **p != NONE).count();
            if here != log.valid as usize || self.log_of[log.logical as usize] as usize != i {
                return Err(format!("log {i}: {here} pages here, {} counted", log.valid));
            }
        }
        Ok(())
    }

    fn counts(&self) -> MergeCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_where_one_of_the_last_writes_ended() {
        let mut streams = Streams::new(2);
        assert!(!streams.follow(0, 8) && !streams.follow(100, 8));
        assert!(streams.follow(8, 8) && streams.follow(108, 8));
        // Within the page in which it ended, too.
        assert!(streams.follow(15, 9));
        // Two others push the one at 116 out.
        assert!(!streams.follow(500, 8) && !streams.follow(600, 8));
        assert!(!streams.follow(116, 8));
    }
}
