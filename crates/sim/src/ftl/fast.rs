//! FAST: block mapping with one log shared by all data blocks.
//!
//! Method: Lee et al., "A log buffer-based flash translation layer using
//! fully-associative sector translation", ACM TECS 6(3), 2007. A superblock
//! written from its start goes to a sequential log block, switched when full;
//! every other write goes to the next page of the shared log.
//!
//! Where this differs: the shared log has two halves. When one is full the
//! other is filled, and each write there first merges data blocks that still
//! have pages in the full half, newest first and in proportion, so that it is
//! empty when it is needed. FAST merges all of them at once, which makes the
//! same mean out of rare pauses of many seconds; no device of paper 001 shows
//! those. A superblock that has pages in the shared log, or is begun again
//! before its sequential log is full, is rewritten rather than streamed: its
//! first page goes to the shared log too.
//!
//! With `log_superblocks` only so many superblocks have a log of either kind; the
//! least recently written is merged for a new one (Park et al., "A
//! reconfigurable FTL architecture for NAND flash-based applications", ACM TECS
//! 7(4), 2008: N log blocks for K data blocks).
//!
//! A merge costs rows; only the log's own pages are looked up one by one.
//! Memory: 12 bytes a superblock, one bit a page, at most 50 bytes a page of log, all
//! of it set aside beforehand.

use super::free::FreeList;
use super::wear::Leveller;
use super::written::Written;
use super::{Ftl, MergeCounts};
use crate::cache::{NumberMap, roomy_map};
use crate::describe::{FastOptions, WearLevelling};
use crate::nand::{ArrayShape, Nand};
use crate::planted::{Bug, planted};

const NONE: u32 = u32::MAX;

/// One half of the shared log.
#[derive(Clone, Debug)]
struct Half {
    physical: Vec<u32>,
    /// The unit written at each place.
    units: Vec<u32>,
    /// For each place the one before it with a unit of the same superblock.
    before: Vec<u32>,
    /// For each superblock the last place with one of its units, unless it was merged
    /// since.
    latest: Vec<u32>,
    /// Places from here on were looked through for merges.
    unmerged: usize,
}

impl Half {
    fn new(sbs: u32) -> Half {
        let latest = vec![NONE; sbs as usize];
        Half { physical: Vec::new(), units: Vec::new(), before: Vec::new(), latest, unmerged: 0 }
    }

    fn reserve(&mut self, units: usize, units_per_sb: u32) {
        let room = |list: &mut Vec<u32>, most: usize| list.reserve(most.saturating_sub(list.len()));
        room(&mut self.units, units);
        room(&mut self.before, units);
        room(&mut self.physical, units.div_ceil(units_per_sb as usize));
    }

    /// Takes `unit` of superblock `logical` at the next place.
    fn push(&mut self, unit: u32, logical: u32) {
        let place = self.units.len() as u32;
        self.units.push(unit);
        self.before.push(std::mem::replace(&mut self.latest[logical as usize], place));
    }

    /// Nothing was written to it any more.
    fn clear(&mut self, units_per_sb: u32) {
        for unit in self.units.drain(..) {
            self.latest[(unit / units_per_sb) as usize] = NONE;
        }
        self.before.clear();
        self.unmerged = 0;
    }

    /// Places of superblock `logical`'s units, some outdated, the latest first.
    fn places(&self, logical: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |place: u32| (place != NONE).then_some(place);
        std::iter::successors(some(self.latest[logical as usize]), move |at| some(self.before[*at as usize]))
    }
}

/// A sequential log block: pages `0..used` in order.
#[derive(Clone, Copy, Debug)]
struct Sequential {
    logical: u32,
    physical: u32,
    used: u32,
    last_use: u64,
}

/// Data blocks, the shared log and the sequential logs.
#[derive(Clone, Debug)]
pub struct Fast {
    units_per_sb: u32,
    banks: u32,
    half_units: usize,
    sequential_limit: usize,
    log_superblocks: usize,
    /// Superblocks with pages in a log, most recently written last; kept only
    /// where `log_superblocks` limits them.
    in_log: Vec<u32>,
    data: Vec<u32>,
    written: Written,
    halves: [Half; 2],
    filling: usize,
    /// Place in the log, half in the top bit, of each unit that is newest there.
    place: NumberMap<u32, u32>,
    sequential: Vec<Sequential>,
    free: FreeList,
    leveller: Leveller,
    next_bank: u32,
    /// The sequential log whose page map is in RAM.
    active: u32,
    clock: u64,
    counts: MergeCounts,
}

const HALF: u32 = 1 << 31;

fn half_units(shape: &ArrayShape, f: &FastOptions) -> u64 {
    ((f.log_kib << 10) / shape.unit_bytes).max(1)
}

/// Data blocks, both halves of the log, sequential logs and a merge's target,
/// whichever bank they fall into.
pub fn physical_sbs(shape: &ArrayShape, f: &FastOptions, spare_blocks: u32) -> u64 {
    let log_blocks = half_units(shape, f).div_ceil(u64::from(shape.units_per_sb));
    let per_bank = u64::from(shape.logical_sbs).div_ceil(u64::from(shape.banks))
        + 2 * log_blocks
        + u64::from(f.sequential_logs)
        + 1
        + u64::from(spare_blocks);
    per_bank * u64::from(shape.banks)
}

impl Fast {
    /// An empty map on an erased array.
    pub fn new(nand: &Nand, f: &FastOptions, levelling: WearLevelling) -> Fast {
        let shape = &nand.shape;
        Fast {
            units_per_sb: shape.units_per_sb,
            banks: shape.banks,
            half_units: half_units(shape, f) as usize,
            sequential_limit: f.sequential_logs as usize,
            log_superblocks: f.log_superblocks.map_or(usize::MAX, |n| n as usize),
            in_log: Vec::new(),
            data: vec![NONE; shape.logical_sbs as usize],
            written: Written::new(shape.units_per_sb, shape.logical_sbs),
            halves: [Half::new(shape.logical_sbs), Half::new(shape.logical_sbs)],
            filling: 0,
            place: roomy_map((2 * half_units(shape, f)).min(shape.units) as usize),
            sequential: Vec::new(),
            free: FreeList::new(nand.physical_sbs(), shape.banks, levelling),
            leveller: Leveller::new(levelling),
            next_bank: 0,
            active: NONE,
            clock: 0,
            counts: MergeCounts::default(),
        }
    }

    /// Takes the memory that its books may need.
    pub fn reserve(&mut self) {
        self.halves.iter_mut().for_each(|half| half.reserve(self.half_units, self.units_per_sb));
        self.sequential.reserve(self.sequential_limit.saturating_sub(self.sequential.len()));
        let limited = if self.log_superblocks == usize::MAX { 0 } else { self.log_superblocks };
        self.in_log.reserve(limited.min(self.data.len()).saturating_sub(self.in_log.len()));
        self.free.reserve();
    }

    fn erase(&mut self, nand: &mut Nand, at_ns: u64, physical: u32) -> u64 {
        let end = nand.erase_rows(at_ns, physical);
        self.free.give(physical, nand.bank_of(physical), nand.erase_counts[physical as usize]);
        end
    }

    fn take(&mut self, bank: u32) -> u32 {
        self.free.take(bank).expect("a bank has blocks for the log and a merge")
    }

    fn log_page(&self, place: u32) -> u64 {
        let half = &self.halves[usize::from(place & HALF != 0)];
        let at = place & !HALF;
        let block = half.physical[(at / self.units_per_sb) as usize];
        u64::from(block) * u64::from(self.units_per_sb) + u64::from(at % self.units_per_sb)
    }

    /// Where a unit is, the shared log left aside.
    fn below_log(&self, logical: u32, index: u32) -> u64 {
        let sequential = self.sequential.iter().find(|s| s.logical == logical && index < s.used);
        let block = sequential.map_or(self.data[logical as usize], |s| s.physical);
        u64::from(block) * u64::from(self.units_per_sb) + u64::from(index)
    }

    fn newest(&self, logical: u32, index: u32) -> u64 {
        let unit = logical * self.units_per_sb + index;
        match self.place.get(&unit) {
            Some(place) => self.log_page(*place),
            None => self.below_log(logical, index),
        }
    }

    /// The log's copies of a superblock's units count no more.
    fn drop_from_log(&mut self, logical: u32) {
        self.in_log.retain(|l| *l != logical);
        for (half, flag) in self.halves.iter_mut().zip([0, HALF]) {
            for at in half.places(logical) {
                let unit = half.units[at as usize];
                if self.place.get(&unit) == Some(&(at | flag)) {
                    self.place.remove(&unit);
                }
            }
            half.latest[logical as usize] = NONE;
        }
    }

    /// The units of superblock `logical` that have their newest copy in the shared log.
    fn units_in_log(&self, logical: u32) -> impl Iterator<Item = u32> + '_ {
        self.halves.iter().zip([0, HALF]).flat_map(move |(half, flag)| {
            let newest = move |at: u32| {
                let unit = half.units[at as usize];
                (self.place.get(&unit) == Some(&(at | flag))).then_some(unit)
            };
            half.places(logical).filter_map(newest)
        })
    }

    /// In checked runs: which pages the arithmetic of a merge stands for.
    fn tell_witness(&self, nand: &mut Nand, logical: u32, from: u32, target: u32) {
        let Some(witness) = &mut nand.witness else { return };
        for index in from..self.units_per_sb {
            let unit = u64::from(logical) * u64::from(self.units_per_sb) + u64::from(index);
            if self.written.has(unit) {
                let to = u64::from(target) * u64::from(self.units_per_sb) + u64::from(index);
                witness.copy(self.newest(logical, index), to);
            }
        }
    }

    /// Copies the newest pages of a superblock to a new block.
    fn full_merge(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> u64 {
        self.counts.full += 1;
        let target = self.take(logical % self.banks);
        self.tell_witness(nand, logical, 0, target);
        self.drop_from_log(logical);
        // Whole blocks are copied, whichever pages of a data block were written.
        let none = self.data[logical as usize] == NONE;
        let pages = if none { self.written.count(logical) } else { self.units_per_sb };
        let mut end = nand.copy_rows(at_ns, target, u64::from(pages));
        let old = std::mem::replace(&mut self.data[logical as usize], target);
        if old != NONE {
            end = self.erase(nand, end, old);
        }
        if let Some(i) = self.sequential.iter().position(|s| s.logical == logical) {
            let log = self.sequential.swap_remove(i);
            end = self.erase(nand, end, log.physical);
        }
        end = nand.update_map(end, target);
        self.level(nand, end)
    }

    fn level(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        self.leveller.after_merge(nand, at_ns, &mut self.data, &mut self.free, &mut self.counts)
    }

    /// A sequential log takes its data block's place, completed where needed.
    fn end_sequential(&mut self, nand: &mut Nand, at_ns: u64, i: usize) -> u64 {
        let log = self.sequential[i];
        let rest = self.units_per_sb - log.used;
        let mut end = at_ns;
        let left = self.written.among(log.logical, log.used, rest);
        if left == 0 {
            self.counts.switch += 1;
        } else if self.has_newer_in_log(log) && !planted(Bug::SequentialLogWins) {
            // Pages of the log that were overwritten since cannot be copied
            // over what was programmed.
            return self.full_merge(nand, at_ns, log.logical);
        } else {
            self.counts.partial += 1;
            self.tell_witness(nand, log.logical, log.used, log.physical);
            self.drop_from_log(log.logical);
            let none = self.data[log.logical as usize] == NONE;
            end = nand.copy_rows(end, log.physical, u64::from(if none { left } else { rest }));
        }
        self.sequential.swap_remove(i);
        self.in_log.retain(|l| *l != log.logical);
        let old = std::mem::replace(&mut self.data[log.logical as usize], log.physical);
        if old != NONE {
            end = self.erase(nand, end, old);
        }
        end = nand.update_map(end, log.physical);
        self.level(nand, end)
    }

    /// True where the shared log has newer copies of the sequential log's pages.
    fn has_newer_in_log(&self, log: Sequential) -> bool {
        self.units_in_log(log.logical).any(|unit| unit % self.units_per_sb < log.used)
    }

    /// True where the shared log has the newest copy of a page of the superblock.
    fn is_in_log(&self, logical: u32) -> bool {
        self.units_in_log(logical).next().is_some()
    }

    /// Tries to put pages into a sequential log.
    fn write_sequential(
        &mut self,
        nand: &mut Nand,
        at_ns: u64,
        logical: u32,
        index: u32,
        count: u32,
    ) -> Option<u64> {
        let mut at = at_ns;
        let found = self.sequential.iter().position(|s| s.logical == logical);
        let i = match found {
            Some(i) if self.sequential[i].used == index => i,
            _ if found.is_some() || !self.begins_stream(logical, index) => return None,
            _ => {
                if self.sequential.len() >= self.sequential_limit {
                    let oldest = (0..self.sequential.len()).min_by_key(|i| self.sequential[*i].last_use);
                    at = self.end_sequential(nand, at, oldest.unwrap_or(0));
                }
                self.open_sequential(logical)
            }
        };
        self.clock += 1;
        let log = &mut self.sequential[i];
        log.used += count;
        log.last_use = self.clock;
        let log = *log;
        for k in index..index + count {
            self.place.remove(&(logical * self.units_per_sb + k));
        }
        self.note_write(nand, logical, index, count, log.physical, index);
        if std::mem::replace(&mut self.active, log.physical) != log.physical {
            at = nand.switch_log(at, log.physical);
        }
        let mut end = nand.program_rows(at, log.physical, u64::from(index), u64::from(count));
        if log.used == self.units_per_sb {
            end = self.end_sequential(nand, end, i);
        }
        Some(end)
    }

    fn begins_stream(&self, logical: u32, index: u32) -> bool {
        index == 0 && self.sequential_limit > 0 && !self.is_in_log(logical)
    }

    fn open_sequential(&mut self, logical: u32) -> usize {
        let physical = self.take(logical % self.banks);
        self.sequential.push(Sequential { logical, physical, used: 0, last_use: 0 });
        self.sequential.len() - 1
    }

    fn note_write(&mut self, nand: &mut Nand, logical: u32, index: u32, count: u32, block: u32, at: u32) {
        self.written.mark(logical, index, count);
        if let Some(witness) = &mut nand.witness {
            let unit = u64::from(logical) * u64::from(self.units_per_sb) + u64::from(index);
            let ppu = u64::from(block) * u64::from(self.units_per_sb) + u64::from(at);
            (0..u64::from(count)).for_each(|k| witness.host_write(unit + k, ppu + k));
        }
    }

    /// Merges what still has pages in the full half, as far as the filling
    /// half has come.
    fn merge_in_proportion(&mut self, nand: &mut Nand, at_ns: u64, filled: usize) -> u64 {
        let full = 1 - self.filling;
        let mut at = at_ns;
        let keep = self.half_units.saturating_sub(filled);
        while self.halves[full].unmerged > keep {
            self.halves[full].unmerged -= 1;
            let i = self.halves[full].unmerged;
            let place = i as u32 | if full == 1 { HALF } else { 0 };
            let Some(unit) = self.halves[full].units.get(i).copied() else { continue };
            if self.place.get(&unit) == Some(&place) {
                at = self.full_merge(nand, at, unit / self.units_per_sb);
            }
        }
        at
    }

    /// Erases the emptied half and goes on in it.
    fn swap_halves(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        let mut at = self.merge_in_proportion(nand, at_ns, self.half_units);
        self.filling = 1 - self.filling;
        for i in 0..self.halves[self.filling].physical.len() {
            at = self.erase(nand, at, self.halves[self.filling].physical[i]);
        }
        self.halves[self.filling].physical.clear();
        self.halves[self.filling].clear(self.units_per_sb);
        self.halves[1 - self.filling].unmerged = self.half_units;
        at
    }

    /// Makes room for `logical` among the superblocks that have a log.
    fn admit(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> u64 {
        if self.log_superblocks == usize::MAX {
            return at_ns;
        }
        let mut at = at_ns;
        if let Some(i) = self.in_log.iter().position(|l| *l == logical) {
            self.in_log.remove(i);
        } else if self.in_log.len() >= self.log_superblocks {
            let oldest = self.in_log.remove(0);
            if self.is_in_log(oldest) {
                at = self.full_merge(nand, at, oldest);
            } else if let Some(i) = self.sequential.iter().position(|s| s.logical == oldest) {
                at = self.end_sequential(nand, at, i);
            } else {
                self.drop_from_log(oldest);
            }
        }
        self.in_log.push(logical);
        at
    }

    /// Appends up to `count` pages to the shared log; gives how many.
    fn write_random(
        &mut self,
        nand: &mut Nand,
        at_ns: u64,
        logical: u32,
        index: u32,
        count: u32,
    ) -> (u32, u64) {
        let mut at = at_ns;
        if self.halves[self.filling].units.len() >= self.half_units {
            at = self.swap_halves(nand, at);
        }
        let used = self.halves[self.filling].units.len();
        if used.is_multiple_of(self.units_per_sb as usize) {
            let block = self.take(self.next_bank);
            self.next_bank = (self.next_bank + 1) % self.banks;
            self.halves[self.filling].physical.push(block);
        }
        let in_block = self.units_per_sb - (used as u32 % self.units_per_sb);
        let take = count.min(in_block).min((self.half_units - used) as u32);
        at = self.merge_in_proportion(nand, at, used + take as usize);
        if self.log_superblocks != usize::MAX && !self.in_log.contains(&logical) {
            self.in_log.push(logical); // it was merged just now
        }
        let flag = if self.filling == 1 { HALF } else { 0 };
        let half = &mut self.halves[self.filling];
        for k in 0..take {
            let (unit, place) = (logical * self.units_per_sb + index + k, (used as u32 + k) | flag);
            half.push(unit, logical);
            self.place.insert(unit, place);
        }
        let (first, block) =
            (used as u32 % self.units_per_sb, half.physical[used / self.units_per_sb as usize]);
        self.note_write(nand, logical, index, take, block, first);
        // Pages go to the dies in turn, each to the next page of its own block,
        // so that it does not matter at which die they begin.
        (take, nand.program_rows(at, block, 0, u64::from(take)))
    }
}

impl Ftl for Fast {
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let per_sb = u64::from(self.units_per_sb);
        let (mut at, mut left, mut end) = (unit, count, at_ns);
        while left > 0 {
            let (logical, index) = ((at / per_sb) as u32, (at % per_sb) as u32);
            let take = left.min(per_sb - at % per_sb) as u32;
            let ready = self.admit(nand, at_ns, logical);
            let (done, programmed) = match self.write_sequential(nand, ready, logical, index, take) {
                Some(end) => (take, end),
                None => self.write_random(nand, ready, logical, index, take),
            };
            end = end.max(programmed);
            at += u64::from(done);
            left -= u64::from(done);
        }
        end
    }

    fn read(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        super::read_by_superblock(nand, at_ns, unit, count, |u| self.locate(u))
    }

    /// Trimmed pages are not copied any more; a superblock trimmed whole gives
    /// its data block back.
    fn trim(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let mut end = at_ns;
        for u in unit..unit + count {
            if !self.written.clear(u) {
                continue;
            }
            self.place.remove(&(u as u32));
            if let Some(witness) = &mut nand.witness {
                witness.trim(u);
            }
            let logical = (u / u64::from(self.units_per_sb)) as u32;
            let data = self.data[logical as usize];
            if self.written.count(logical) > 0 {
                continue;
            }
            self.drop_from_log(logical);
            if data != NONE {
                self.data[logical as usize] = NONE;
                end = end.max(self.erase(nand, at_ns, data));
            }
        }
        end
    }

    fn reclaim_idle(&mut self, _nand: &mut Nand, _at_ns: u64) -> Option<u64> {
        None
    }

    fn locate(&self, unit: u64) -> Option<u64> {
        let per_sb = u64::from(self.units_per_sb);
        self.written.has(unit).then(|| self.newest((unit / per_sb) as u32, (unit % per_sb) as u32))
    }

    fn check(&self, nand: &Nand) -> Result<(), String> {
        let data = self.data.iter().copied().filter(|sb| *sb != NONE);
        let logs = self.halves.iter().flat_map(|half| half.physical.iter().copied());
        let sequential = self.sequential.iter().map(|s| s.physical);
        super::each_block_once(nand, data.chain(logs).chain(sequential).chain(self.free.all()))?;
        for (h, half) in self.halves.iter().enumerate() {
            for (i, unit) in half.units.iter().enumerate() {
                let place = i as u32 | if h == 1 { HALF } else { 0 };
                if self.place.get(unit) == Some(&place) && !self.written.has(u64::from(*unit)) {
                    return Err(format!("unit {unit} is in the log but was never written"));
                }
            }
        }
        Ok(())
    }

    fn counts(&self) -> MergeCounts {
        self.counts
    }
}
