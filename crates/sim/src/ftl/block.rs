//! Block mapping with replacement blocks that are filled in order.
//!
//! Method: Ban, "Flash file system", US patent 5,404,485 (1995), and the
//! replacement blocks of NFTL (Ban, US patent 5,937,425), restricted to one in
//! page order: page `i` of a superblock can only be page `i` of its block. A
//! write at the replacement block's end is appended; one beyond it has the gap
//! copied from the data block first; one before it merges: a new block takes
//! the newest copies with the new pages among them. Opening and closing copy
//! what lies before and behind, so a random write costs a whole superblock
//! wherever it falls. Going on in another replacement block than the last
//! costs a change of the page map held in RAM.
//!
//! Memory: 4 bytes a superblock and one bit a page.

use super::free::FreeList;
use super::wear::Leveller;
use super::written::Written;
use super::{Ftl, MergeCounts};
use crate::describe::{BlockOptions, WearLevelling};
use crate::nand::{ArrayShape, Nand};
use crate::planted::{Bug, planted};

const NONE: u32 = u32::MAX;

/// A replacement block: pages `0..used` are newest here.
#[derive(Clone, Copy, Debug)]
struct Open {
    logical: u32,
    physical: u32,
    used: u32,
    last_use: u64,
}

/// Data blocks and open replacement blocks.
#[derive(Clone, Debug)]
pub struct Block {
    units_per_sb: u32,
    banks: u32,
    limit: usize,
    data: Vec<u32>,
    written: Written,
    open: Vec<Open>,
    active: u32,
    free: FreeList,
    leveller: Leveller,
    clock: u64,
    counts: MergeCounts,
}

/// Data blocks, replacement blocks (which may all fall into one bank) and a
/// merge's target.
pub fn physical_sbs(shape: &ArrayShape, f: &BlockOptions, spare_blocks: u32) -> u64 {
    let per_bank = u64::from(shape.logical_sbs).div_ceil(u64::from(shape.banks))
        + u64::from(f.open_blocks)
        + 1
        + u64::from(spare_blocks);
    per_bank * u64::from(shape.banks)
}

impl Block {
    /// An empty map on an erased array.
    pub fn new(nand: &Nand, f: &BlockOptions, levelling: WearLevelling) -> Block {
        let shape = &nand.shape;
        Block {
            units_per_sb: shape.units_per_sb,
            banks: shape.banks,
            limit: f.open_blocks as usize,
            data: vec![NONE; shape.logical_sbs as usize],
            written: Written::new(shape.units_per_sb, shape.logical_sbs),
            open: Vec::new(),
            active: NONE,
            free: FreeList::new(nand.physical_sbs(), shape.banks, levelling),
            leveller: Leveller::new(levelling),
            clock: 0,
            counts: MergeCounts::default(),
        }
    }

    /// Takes the memory that its books may need.
    pub fn reserve(&mut self) {
        self.open.reserve(self.limit.saturating_sub(self.open.len()));
        self.free.reserve();
    }

    fn page(&self, physical: u32, index: u32) -> u64 {
        u64::from(physical) * u64::from(self.units_per_sb) + u64::from(index)
    }

    fn take(&mut self, logical: u32) -> u32 {
        self.free.take(logical % self.banks).expect("a bank has blocks for every replacement and a merge")
    }

    fn erase(&mut self, nand: &mut Nand, at_ns: u64, physical: u32) -> u64 {
        let end = nand.erase_rows(at_ns, physical);
        self.free.give(physical, nand.bank_of(physical), nand.erase_counts[physical as usize]);
        end
    }

    /// Copies `pages` out of `source` into `target`, whether they were
    /// ever written or not.
    fn copy(
        &self,
        nand: &mut Nand,
        at_ns: u64,
        logical: u32,
        source: u32,
        target: u32,
        pages: std::ops::Range<u32>,
    ) -> u64 {
        if pages.is_empty() || source == NONE {
            return at_ns;
        }
        if let Some(witness) = &mut nand.witness {
            let first = u64::from(logical) * u64::from(self.units_per_sb);
            for index in pages.clone().filter(|i| self.written.has(first + u64::from(*i))) {
                witness.copy(self.page(source, index), self.page(target, index));
            }
        }
        nand.copy_rows(at_ns, target, u64::from(pages.end - pages.start))
    }

    /// Completes replacement block `i` from the data block, which it replaces.
    fn close(&mut self, nand: &mut Nand, at_ns: u64, i: usize) -> u64 {
        let open = self.open.swap_remove(i);
        let old = self.data[open.logical as usize];
        let rest = self.units_per_sb - open.used;
        if rest == 0 {
            self.counts.switch += 1;
        } else {
            self.counts.partial += 1;
        }
        let mut end = self.copy(nand, at_ns, open.logical, old, open.physical, open.used..self.units_per_sb);
        self.data[open.logical as usize] = open.physical;
        if old != NONE {
            end = self.erase(nand, end, old);
        }
        self.level(nand, end)
    }

    fn level(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        self.leveller.after_merge(nand, at_ns, &mut self.data, &mut self.free, &mut self.counts)
    }

    /// A write before the replacement block's end: everything, with the new
    /// pages, goes to a new block.
    fn merge(&mut self, nand: &mut Nand, at_ns: u64, i: usize, index: u32, count: u32) -> u64 {
        let open = self.open.swap_remove(i);
        let old = self.data[open.logical as usize];
        let target = self.take(open.logical);
        self.counts.full += 1;
        let behind = index + count;
        let (used, all) = (open.used, self.units_per_sb);
        let mut end = at_ns;
        // Before the new pages, and behind them from either block.
        end = self.copy(nand, end, open.logical, open.physical, target, 0..index.min(used));
        end = self.copy(nand, end, open.logical, open.physical, target, behind.min(used)..used);
        end = self.copy(nand, end, open.logical, old, target, behind.max(used)..all);
        self.program(nand, end, open.logical, target, index, count);
        end = nand.program_rows(end, target, u64::from(index), u64::from(count));
        self.data[open.logical as usize] = target;
        if old != NONE {
            end = self.erase(nand, end, old);
        }
        end = self.erase(nand, end, open.physical);
        self.level(nand, end)
    }

    /// Books new pages; the caller charges their time.
    fn program(&mut self, nand: &mut Nand, _at_ns: u64, logical: u32, physical: u32, index: u32, count: u32) {
        self.written.mark(logical, index, count);
        if let Some(witness) = &mut nand.witness {
            let unit = u64::from(logical) * u64::from(self.units_per_sb);
            for k in index..index + count {
                let ppu = u64::from(physical) * u64::from(self.units_per_sb) + u64::from(k);
                witness.host_write(unit + u64::from(k), ppu);
            }
        }
    }

    /// The replacement block of `logical`, opened where there is none.
    fn open_for(&mut self, nand: &mut Nand, at_ns: u64, logical: u32) -> (usize, u64) {
        if let Some(i) = self.open.iter().position(|o| o.logical == logical) {
            return (i, at_ns);
        }
        let mut at = at_ns;
        if self.open.len() >= self.limit {
            let oldest = (0..self.open.len()).min_by_key(|i| self.open[*i].last_use).unwrap_or(0);
            at = self.close(nand, at, oldest);
        }
        let physical = self.take(logical);
        self.open.push(Open { logical, physical, used: 0, last_use: 0 });
        (self.open.len() - 1, at)
    }

    fn write_part(&mut self, nand: &mut Nand, at_ns: u64, logical: u32, index: u32, count: u32) -> u64 {
        let (i, mut at) = self.open_for(nand, at_ns, logical);
        self.clock += 1;
        self.open[i].last_use = self.clock;
        let open = self.open[i];
        if std::mem::replace(&mut self.active, open.physical) != open.physical {
            at = nand.switch_log(at, open.physical);
        }
        if index < open.used {
            return self.merge(nand, at, i, index, count);
        }
        let old = self.data[logical as usize];
        if !planted(Bug::GapIsNotCopied) {
            at = self.copy(nand, at, logical, old, open.physical, open.used..index);
        }
        self.program(nand, at, logical, open.physical, index, count);
        at = nand.program_rows(at, open.physical, u64::from(index), u64::from(count));
        self.open[i].used = index + count;
        if index + count == self.units_per_sb {
            at = self.close(nand, at, i);
        }
        at
    }
}

impl Ftl for Block {
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let per_sb = u64::from(self.units_per_sb);
        let (mut at, mut left, mut end) = (unit, count, at_ns);
        while left > 0 {
            let take = left.min(per_sb - at % per_sb);
            end = end.max(self.write_part(
                nand,
                at_ns,
                (at / per_sb) as u32,
                (at % per_sb) as u32,
                take as u32,
            ));
            at += take;
            left -= take;
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
            if let Some(witness) = &mut nand.witness {
                witness.trim(u);
            }
            let logical = (u / u64::from(self.units_per_sb)) as u32;
            let data = self.data[logical as usize];
            if self.written.count(logical) == 0 && data != NONE {
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
        if !self.written.has(unit) {
            return None;
        }
        let per_sb = u64::from(self.units_per_sb);
        let (logical, index) = ((unit / per_sb) as u32, (unit % per_sb) as u32);
        let open = self.open.iter().find(|o| o.logical == logical && index < o.used);
        Some(self.page(open.map_or(self.data[logical as usize], |o| o.physical), index))
    }

    fn check(&self, nand: &Nand) -> Result<(), String> {
        let data = self.data.iter().copied().filter(|sb| *sb != NONE);
        let open = self.open.iter().map(|o| o.physical);
        super::each_block_once(nand, data.chain(open).chain(self.free.all()))?;
        if self.open.len() > self.limit {
            return Err(format!("{} replacement blocks open, {} allowed", self.open.len(), self.limit));
        }
        Ok(())
    }

    fn counts(&self) -> MergeCounts {
        self.counts
    }
}
