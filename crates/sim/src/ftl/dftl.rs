//! DFTL: page mapping whose map lies on flash and is cached on demand, so that
//! reads become non-uniform in time (paper 001, section 2.2).
//!
//! Method: Gupta et al., "DFTL: a flash translation layer employing
//! demand-based selective caching of page-level address mappings", ASPLOS
//! 2009. Map pages are pages like others behind the user's: a miss reads one,
//! evicting a changed one programs it, reclamation moves them too.
//!
//! Where this differs: whole map pages are cached (second chance), not single
//! entries. Map entries of pages that reclamation moved are recorded with the
//! writes that follow, at most one map page for each, which keeps reclamation
//! from feeding on itself; the paper batches them in the same spirit.

use super::page::{self, Moved, Page};
use super::{Ftl, MergeCounts};
use crate::cache::{NumberMap, roomy_map};
use crate::describe::{DftlOptions, WearLevelling};
use crate::nand::{ArrayShape, Nand};
use crate::planted::{Bug, planted};

/// Bytes of a map entry on flash.
const ENTRY_BYTES: u64 = 4;

/// A cached map page.
#[derive(Clone, Copy, Debug)]
struct Cached {
    map_page: u64,
    used: bool,
    changed: bool,
}

/// Page mapping and the cache of its map.
#[derive(Clone, Debug)]
pub struct Dftl {
    pages: Page,
    units: u64,
    entries_per_page: u64,
    capacity: usize,
    cache: Vec<Cached>,
    slot_of: NumberMap<u64, u32>,
    hand: usize,
    /// Map pages to be brought up to date after reclamation.
    behind: Vec<u64>,
    is_behind: Vec<bool>,
    counts: MergeCounts,
}

fn map_pages(shape: &ArrayShape) -> u64 {
    shape.units.div_ceil(shape.unit_bytes / ENTRY_BYTES)
}

/// As for page mapping, with room for the map.
pub fn physical_sbs(shape: &ArrayShape, f: &DftlOptions, spare_blocks: u32) -> u64 {
    let logical = (shape.units + map_pages(shape)).div_ceil(u64::from(shape.units_per_sb));
    page::physical_for(logical, shape, &f.pages, spare_blocks)
}

impl Dftl {
    /// An empty map on an erased array.
    pub fn new(nand: &Nand, f: &DftlOptions, levelling: WearLevelling, seed: u64) -> Dftl {
        let shape = &nand.shape;
        let mut pages = Page::new(nand, &f.pages, levelling, shape.units + map_pages(shape), seed);
        let entries_per_page = shape.unit_bytes / ENTRY_BYTES;
        pages.moved = Some(Moved::new(shape.units, entries_per_page));
        let capacity = ((f.map_cache_kib << 10) / shape.unit_bytes).max(1).min(map_pages(shape)) as usize;
        Dftl {
            pages,
            units: shape.units,
            entries_per_page,
            capacity,
            cache: Vec::new(),
            slot_of: roomy_map(capacity),
            hand: 0,
            behind: Vec::new(),
            is_behind: vec![false; map_pages(shape) as usize],
            counts: MergeCounts::default(),
        }
    }

    /// Takes the memory that its books may need.
    pub fn reserve(&mut self) {
        self.pages.reserve();
        self.cache.reserve(self.capacity - self.cache.len());
        self.behind.reserve(self.is_behind.len() - self.behind.len());
    }

    /// Brings the map page of `unit` into the cache; gives when it is there.
    fn look_up(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, change: bool) -> u64 {
        let map_page = unit / self.entries_per_page;
        if let Some(slot) = self.slot_of.get(&map_page) {
            let cached = &mut self.cache[*slot as usize];
            cached.used = true;
            cached.changed |= change;
            return at_ns;
        }
        let mut at = at_ns;
        let new = Cached { map_page, used: true, changed: change };
        let slot = if self.cache.len() < self.capacity {
            self.cache.push(new);
            self.cache.len() - 1
        } else {
            let slot = self.victim();
            let old = std::mem::replace(&mut self.cache[slot], new);
            if !planted(Bug::EvictedStaysCached) {
                self.slot_of.remove(&old.map_page);
            }
            if old.changed {
                self.counts.map_writes += 1;
                at = self.pages.write_one(nand, at, self.units + old.map_page);
            }
            slot
        };
        self.slot_of.insert(map_page, slot as u32);
        if self.pages.locate(self.units + map_page).is_some() {
            self.counts.map_reads += 1;
            at = self.pages.read(nand, at, self.units + map_page, 1);
        }
        at
    }

    fn victim(&mut self) -> usize {
        loop {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.cache.len();
            if !std::mem::take(&mut self.cache[slot].used) {
                return slot;
            }
        }
    }

    /// Notes which map pages reclamation outdated and brings one up to date;
    /// gives when that is done.
    fn catch_up(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        for map_page in self.pages.moved.iter_mut().flat_map(Moved::drain) {
            if let Some(slot) = self.slot_of.get(&map_page) {
                self.cache[*slot as usize].changed = true;
            } else if !std::mem::replace(&mut self.is_behind[map_page as usize], true) {
                self.behind.push(map_page);
            }
        }
        let Some(map_page) = self.behind.pop() else { return at_ns };
        self.is_behind[map_page as usize] = false;
        let read = self.pages.read(nand, at_ns, self.units + map_page, 1);
        self.counts.map_reads += 1;
        self.counts.map_writes += 1;
        self.pages.write_one(nand, read, self.units + map_page)
    }
}

impl Ftl for Dftl {
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let mut end = at_ns;
        for u in unit..unit + count {
            let found = self.look_up(nand, at_ns, u, true);
            end = end.max(self.pages.write_one(nand, found, u));
            self.catch_up(nand, at_ns);
        }
        end
    }

    fn read(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let mut end = at_ns;
        for u in unit..unit + count {
            if self.pages.locate(u).is_some() {
                let found = self.look_up(nand, at_ns, u, false);
                end = end.max(self.pages.read(nand, found, u, 1));
            }
        }
        end
    }

    fn trim(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let mut end = at_ns;
        let mut at = unit;
        while at < unit + count {
            end = self.look_up(nand, end, at, true);
            at = (at / self.entries_per_page + 1) * self.entries_per_page;
        }
        self.pages.trim(nand, end, unit, count)
    }

    fn reclaim_idle(&mut self, nand: &mut Nand, at_ns: u64) -> Option<u64> {
        let end = self.pages.reclaim_idle(nand, at_ns)?;
        Some(self.catch_up(nand, end))
    }

    fn locate(&self, unit: u64) -> Option<u64> {
        self.pages.locate(unit)
    }

    fn check(&self, nand: &Nand) -> Result<(), String> {
        if self.slot_of.len() != self.cache.len() {
            return Err(format!("{} map pages cached, {} known", self.cache.len(), self.slot_of.len()));
        }
        for (slot, cached) in self.cache.iter().enumerate() {
            if self.slot_of.get(&cached.map_page) != Some(&(slot as u32)) {
                return Err(format!("map page {} is cached twice or nowhere", cached.map_page));
            }
        }
        self.pages.check(nand)
    }

    fn counts(&self) -> MergeCounts {
        let pages = self.pages.counts();
        MergeCounts { map_reads: self.counts.map_reads, map_writes: self.counts.map_writes, ..pages }
    }
}
