//! Page mapping: any page goes to the next free page; superblocks are
//! reclaimed by copying what is still valid.
//!
//! Method: a log over the whole device (Rosenblum and Ousterhout, "The design
//! and implementation of a log-structured file system", SOSP 1991, which also
//! has the cost-benefit rule). Greedy reclaims the superblock with the fewest
//! valid pages; d-choices the best of d drawn at random (Van Houdt, "A mean
//! field model for a class of garbage collection algorithms in flash-based
//! solid state drives", SIGMETRICS 2013). Hot/cold: what survived a
//! reclamation is written apart from what the host writes.
//!
//! Errata: the SOSP paper's score (1 - u) * age / (1 + u) counts reading whole
//! segments; flash reads only valid pages, hence 2u below (Kawaguchi et al.,
//! USENIX 1995).
//!
//! Memory: 4 bytes a logical page, 4 a physical page and one bit, so below 10
//! bytes a page while spare capacity is under 30 % (`tests/memory.rs` measures it).

use super::free::FreeList;
use super::wear::{WEAR_EVERY, WEAR_GAP};
use super::{Ftl, MergeCounts};
use crate::describe::{GcPolicy, PageOptions, WearLevelling};
use crate::nand::{ArrayShape, Nand};
use crate::planted::{Bug, planted};
use crate::units::Divisor;
use uflip_device::rng::Rng;

const NONE: u32 = u32::MAX;
/// Superblocks whose smallest valid count is kept in one number.
const GROUP: usize = 64;

/// An open superblock and its next free page.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    sb: u32,
    next: u32,
}

/// The map and the books of page mapping.
#[derive(Clone, Debug)]
pub struct Page {
    units_per_sb: u32,
    by_units_per_sb: Divisor,
    slots: u32,
    streams: u32,
    policy: GcPolicy,
    levelling: WearLevelling,
    idle_target: usize,
    map: Vec<u32>,
    owner: Vec<u32>,
    valid_bits: Vec<u64>,
    valid: Vec<u32>,
    /// Valid pages of closed superblocks, `NONE` for open and free ones.
    key: Vec<u32>,
    group_min: Vec<u32>,
    closed_at: Vec<u64>,
    frontiers: Vec<Option<Frontier>>,
    turn: [u32; 2],
    free: FreeList,
    pages_written: u64,
    /// Reclamations at which wear is looked at next.
    next_look: u64,
    rng: Rng,
    counts: MergeCounts,
    /// What reclamation moved, where somebody wants to know.
    pub(super) moved: Option<Moved>,
}

/// Groups of logical pages of which reclamation moved some: each once, in the order
/// of their first.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    units: u64,
    /// Logical pages of a group.
    size: u64,
    groups: Vec<u64>,
    is_there: Vec<bool>,
}

impl Moved {
    /// Groups of `size` pages each of the first `units` pages.
    pub(super) fn new(units: u64, size: u64) -> Moved {
        Moved { units, size, groups: Vec::new(), is_there: vec![false; units.div_ceil(size) as usize] }
    }

    fn reserve(&mut self) {
        self.groups.reserve(self.is_there.len() - self.groups.len());
    }

    fn note(&mut self, unit: u32) {
        let group = u64::from(unit) / self.size;
        if u64::from(unit) < self.units && !std::mem::replace(&mut self.is_there[group as usize], true) {
            self.groups.push(group);
        }
    }

    /// Hands over what was noted.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = u64> + '_ {
        let Moved { groups, is_there, .. } = self;
        groups.drain(..).inspect(|group| is_there[*group as usize] = false)
    }
}

fn streams(f: &PageOptions) -> u32 {
    if f.hot_cold { 2 } else { 1 }
}

/// Physical superblocks for `logical` superblocks of content: what
/// over-provisioning asks for, and never so few that reclamation could fail
/// to make room.
pub(super) fn physical_for(logical: u64, shape: &ArrayShape, f: &PageOptions, spare_blocks: u32) -> u64 {
    let wanted = (logical as f64 * (1.0 + f.over_provisioning)).ceil() as u64;
    let least = logical + u64::from(shape.banks * (streams(f) + 1)) + 2;
    wanted.max(least) + u64::from(spare_blocks) * u64::from(shape.banks)
}

/// Physical superblocks of a page-mapped device.
pub fn physical_sbs(shape: &ArrayShape, f: &PageOptions, spare_blocks: u32) -> u64 {
    physical_for(u64::from(shape.logical_sbs), shape, f, spare_blocks)
}

impl Page {
    /// An empty map of `units` logical pages on an erased array.
    pub fn new(nand: &Nand, f: &PageOptions, levelling: WearLevelling, units: u64, seed: u64) -> Page {
        let shape = &nand.shape;
        let sbs = nand.physical_sbs() as usize;
        let physical = sbs * shape.units_per_sb as usize;
        Page {
            units_per_sb: shape.units_per_sb,
            by_units_per_sb: Divisor::new(shape.units_per_sb),
            slots: shape.banks,
            streams: streams(f),
            policy: f.gc,
            levelling,
            idle_target: f.idle_free_superblocks as usize,
            map: vec![NONE; units as usize],
            owner: vec![NONE; physical],
            valid_bits: vec![0; physical.div_ceil(64)],
            valid: vec![0; sbs],
            key: vec![NONE; sbs],
            group_min: vec![NONE; sbs.div_ceil(GROUP)],
            closed_at: vec![0; sbs],
            frontiers: vec![None; (shape.banks * streams(f)) as usize],
            turn: [0; 2],
            free: FreeList::new(sbs as u32, shape.banks, levelling),
            pages_written: 0,
            next_look: WEAR_EVERY,
            rng: Rng::new(seed),
            counts: MergeCounts::default(),
            moved: None,
        }
    }

    /// Takes the memory that its books may need.
    pub fn reserve(&mut self) {
        self.free.reserve();
        if let Some(moved) = &mut self.moved {
            moved.reserve();
        }
    }

    /// Free superblocks below which the host's next superblock waits for
    /// reclamation: enough for every frontier to be full at once.
    fn low_water(&self) -> usize {
        self.slots as usize + 1
    }

    #[inline]
    fn set_key(&mut self, sb: usize, key: u32) {
        let old = std::mem::replace(&mut self.key[sb], key);
        let group = sb / GROUP;
        if key <= self.group_min[group] {
            self.group_min[group] = key;
        } else if old == self.group_min[group] {
            let end = ((group + 1) * GROUP).min(self.key.len());
            self.group_min[group] = self.key[group * GROUP..end].iter().copied().min().unwrap_or(NONE);
        }
    }

    #[inline]
    fn invalidate(&mut self, ppu: u32) {
        let sb = self.by_units_per_sb.split(ppu).0 as usize;
        self.valid_bits[ppu as usize / 64] &= !(1 << (ppu % 64));
        self.valid[sb] -= 1;
        let key = self.key[sb];
        if key != NONE {
            // Keys only fall here, so the group's minimum stays exact.
            self.key[sb] = key - 1;
            let least = &mut self.group_min[sb / GROUP];
            *least = (*least).min(key - 1);
        }
    }

    /// The next free page for `stream` (0 the host's, 1 survivors').
    #[inline]
    fn next_page(&mut self, nand: &mut Nand, at_ns: u64, stream: u32, for_host: bool) -> (u32, u32) {
        let slot = self.turn[stream as usize];
        self.turn[stream as usize] = if slot + 1 == self.slots { 0 } else { slot + 1 };
        let mut place = (stream * self.slots + slot) as usize;
        if self.frontiers[place].is_none() {
            place = self.open_frontier(nand, at_ns, place, for_host);
        }
        let Some(frontier) = &mut self.frontiers[place] else { unreachable!("opened above") };
        let got = (frontier.sb, frontier.next);
        frontier.next += 1;
        if frontier.next == self.units_per_sb {
            self.frontiers[place] = None;
            self.closed_at[got.0 as usize] = self.pages_written;
        }
        got
    }

    /// Opens the frontier at `place`; gives the one to write to. That is another
    /// of the same stream where no superblock is free, which happens to
    /// reclamation only: a victim has fewer valid pages than a superblock, so one
    /// free superblock and what the open ones have left always take them, and
    /// the victim is free afterwards.
    #[cold]
    fn open_frontier(&mut self, nand: &mut Nand, at_ns: u64, place: usize, for_host: bool) -> usize {
        if for_host {
            self.make_room(nand, at_ns);
        }
        // Reclamation may have opened this very frontier.
        if self.frontiers[place].is_some() {
            return place;
        }
        let slots = self.slots as usize;
        let (stream, bank) = (place / slots, (place % slots) as u32);
        let all = self.slots;
        if let Some(sb) = (0..all).find_map(|i| self.free.take((bank + i) % all)) {
            self.frontiers[place] = Some(Frontier { sb, next: 0 });
            return place;
        }
        (stream * slots..(stream + 1) * slots)
            .find(|other| self.frontiers[*other].is_some())
            .expect("reclamation begins with a free superblock")
    }

    /// Maps `unit` to page `index` of `sb`.
    #[inline]
    fn install(&mut self, unit: u32, sb: u32, index: u32, moved: bool) {
        let ppu = sb * self.units_per_sb + index;
        if !(moved && planted(Bug::MovedPageIsNotMapped) && unit.is_multiple_of(16)) {
            self.map[unit as usize] = ppu;
        }
        self.owner[ppu as usize] = unit;
        self.valid_bits[ppu as usize / 64] |= 1 << (ppu % 64);
        self.valid[sb as usize] += 1;
        self.pages_written += 1;
    }

    /// A superblock that was filled becomes a candidate for reclamation.
    #[inline]
    fn close_if_full(&mut self, sb: u32, index: u32) {
        if index + 1 == self.units_per_sb {
            let valid = self.valid[sb as usize];
            self.set_key(sb as usize, valid);
        }
    }

    fn make_room(&mut self, nand: &mut Nand, at_ns: u64) {
        if self.levelling == WearLevelling::Static && self.counts.reclaimed >= self.next_look {
            self.next_look = self.counts.reclaimed + WEAR_EVERY;
            self.level_wear(nand, at_ns);
        }
        while self.free.total() < self.low_water() {
            let victim = self.victim();
            if let Some(witness) = &mut nand.witness {
                let gains = self.key[victim as usize] < self.units_per_sb;
                witness.require(gains, "reclaiming a full superblock frees nothing");
            }
            self.reclaim(nand, at_ns, victim, None);
        }
    }

    fn victim(&mut self) -> u32 {
        let best = match self.policy {
            _ if planted(Bug::FullIsReclaimed) && self.counts.reclaimed.is_multiple_of(8) => self.full_one(),
            GcPolicy::Greedy => None,
            GcPolicy::CostBenefit => self.cost_benefit(),
            GcPolicy::DChoices { gc_choices } => self.d_choices(gc_choices),
        };
        best.unwrap_or_else(|| self.greedy())
    }

    /// A superblock not worth reclaiming: for a planted bug.
    fn full_one(&self) -> Option<u32> {
        self.key.iter().position(|key| *key == self.units_per_sb).map(|sb| sb as u32)
    }

    fn greedy(&self) -> u32 {
        let least = |keys: &[u32]| {
            let mut best = (NONE, 0);
            for (i, key) in keys.iter().enumerate() {
                if *key < best.0 {
                    best = (*key, i);
                }
            }
            best.1
        };
        let group = least(&self.group_min);
        let end = ((group + 1) * GROUP).min(self.key.len());
        (group * GROUP + least(&self.key[group * GROUP..end])) as u32
    }

    /// `None` where only full superblocks were found: reclaiming one would
    /// free nothing.
    fn cost_benefit(&self) -> Option<u32> {
        let full = self.units_per_sb;
        let score = |sb: usize| {
            let u = f64::from(self.key[sb]) / f64::from(full);
            let age = (self.pages_written - self.closed_at[sb]) as f64 + 1.0;
            (1.0 - u) * age / (2.0 * u).max(1e-9)
        };
        let closed = (0..self.key.len()).filter(|sb| self.key[*sb] < full);
        closed.max_by(|a, b| score(*a).total_cmp(&score(*b))).map(|sb| sb as u32)
    }

    fn d_choices(&mut self, choices: u32) -> Option<u32> {
        let sbs = self.key.len() as u64;
        let drawn = (0..choices).map(|_| self.rng.below(sbs) as usize);
        let best = drawn.min_by_key(|sb| self.key[*sb])?;
        (self.key[best] < self.units_per_sb).then_some(best as u32)
    }

    /// Copies the valid pages of `victim` away, into the erased superblock `into`
    /// where one is given, and erases it; gives when all of that is done.
    fn reclaim(&mut self, nand: &mut Nand, at_ns: u64, victim: u32, into: Option<u32>) -> u64 {
        let early = if planted(Bug::ReclaimsTooEarly) { 1000 } else { 0 };
        let at_ns = at_ns.saturating_sub(early);
        let stream = self.streams - 1;
        let first = victim as usize * self.units_per_sb as usize;
        self.set_key(victim as usize, NONE);
        let valid = self.valid[victim as usize];
        let (mut left, mut at, mut end) = (valid, first, at_ns);
        while left > 0 {
            let bits = self.valid_bits[at / 64] >> (at % 64);
            if bits == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            at += bits.trailing_zeros() as usize;
            let to = match into {
                Some(sb) => (sb, valid - left),
                None => self.next_page(nand, at_ns, stream, false),
            };
            end = end.max(self.move_page(nand, at_ns, at as u32, to));
            if into.is_none() {
                self.close_if_full(to.0, to.1);
            }
            at += 1;
            left -= 1;
        }
        end = end.max(nand.erase_lanes(at_ns, victim));
        self.free.give(victim, nand.bank_of(victim), nand.erase_counts[victim as usize]);
        match into {
            Some(sb) => {
                // Pages behind the moved ones stay unused until it is reclaimed.
                self.closed_at[sb as usize] = self.pages_written;
                self.set_key(sb as usize, self.valid[sb as usize]);
                self.counts.levelled += 1;
            }
            None => self.counts.reclaimed += 1,
        }
        end
    }

    #[inline]
    fn move_page(&mut self, nand: &mut Nand, at_ns: u64, from: u32, to: (u32, u32)) -> u64 {
        let unit = self.owner[from as usize];
        let (sb, index) = to;
        let read = nand.read_page(at_ns, from);
        nand.ops.copies += 1;
        let end = nand.program_lane(read, nand.lane_at(sb, index), None);
        self.invalidate(from);
        self.install(unit, sb, index, true);
        if let Some(witness) = &mut nand.witness {
            witness.copy(u64::from(from), u64::from(sb * self.units_per_sb + index));
        }
        if let Some(moved) = &mut self.moved {
            moved.note(unit);
        }
        end
    }

    /// Moves the content of the least worn superblock in use to the most worn
    /// free one where it lags, so that it takes its share of new writes.
    fn level_wear(&mut self, nand: &mut Nand, at_ns: u64) {
        let wear = |sb: &usize| nand.erase_counts[*sb];
        let closed = (0..self.key.len()).filter(|sb| self.key[*sb] != NONE);
        let Some(coldest) = closed.min_by_key(wear) else { return };
        let worn = (0..self.slots).filter_map(|bank| Some((self.free.most_worn(bank)?, bank))).max();
        let Some((most, bank)) = worn else { return };
        if most.saturating_sub(nand.erase_counts[coldest]) <= WEAR_GAP {
            return;
        }
        let into = self.free.take_most_worn(bank);
        self.reclaim(nand, at_ns, coldest as u32, into);
    }

    /// Writes one page; gives when its program ends.
    #[inline]
    pub(super) fn write_one(&mut self, nand: &mut Nand, at_ns: u64, unit: u64) -> u64 {
        let (sb, index) = self.next_page(nand, at_ns, 0, true);
        let old = self.map[unit as usize];
        if old != NONE && !planted(Bug::OldCopyStaysValid) {
            self.invalidate(old);
        }
        self.install(unit as u32, sb, index, false);
        self.close_if_full(sb, index);
        if let Some(witness) = &mut nand.witness {
            witness.host_write(unit, u64::from(sb * self.units_per_sb + index));
        }
        nand.program_host(at_ns, nand.lane_at(sb, index))
    }
}

impl Ftl for Page {
    #[inline]
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        (unit..unit + count).map(|u| self.write_one(nand, at_ns, u)).max().unwrap_or(at_ns)
    }

    #[inline]
    fn read(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        let mut end = at_ns;
        for u in unit..unit + count {
            let ppu = self.map[u as usize];
            if ppu != NONE {
                end = end.max(nand.read_page(at_ns, ppu));
            }
        }
        end
    }

    fn trim(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        for u in unit..unit + count {
            if planted(Bug::TrimIsForgotten) {
                continue;
            }
            let ppu = std::mem::replace(&mut self.map[u as usize], NONE);
            if ppu != NONE {
                self.invalidate(ppu);
            }
            if let Some(witness) = &mut nand.witness {
                witness.trim(u);
            }
        }
        at_ns
    }

    fn reclaim_idle(&mut self, nand: &mut Nand, at_ns: u64) -> Option<u64> {
        if self.free.total() >= self.idle_target {
            return None;
        }
        let victim = self.victim();
        // Reclaiming nearly full superblocks in idle time would only wear.
        let key = u64::from(self.key[victim as usize]);
        (8 * key < 7 * u64::from(self.units_per_sb)).then(|| self.reclaim(nand, at_ns, victim, None))
    }

    fn locate(&self, unit: u64) -> Option<u64> {
        let ppu = self.map[unit as usize];
        (ppu != NONE).then_some(u64::from(ppu))
    }

    fn check(&self, nand: &Nand) -> Result<(), String> {
        let mut mapped = 0u64;
        for (unit, ppu) in self.map.iter().enumerate().filter(|(_, ppu)| **ppu != NONE) {
            mapped += 1;
            let valid = self.valid_bits[*ppu as usize / 64] >> (ppu % 64) & 1;
            if valid == 0 || self.owner[*ppu as usize] != unit as u32 {
                return Err(format!("unit {unit} is mapped to page {ppu}, which is not its valid copy"));
            }
        }
        let bits: u64 = self.valid_bits.iter().map(|w| u64::from(w.count_ones())).sum();
        let counted: u64 = self.valid.iter().map(|v| u64::from(*v)).sum();
        if bits != mapped || counted != mapped {
            return Err(format!("{mapped} units mapped, {bits} pages valid, {counted} counted"));
        }
        let closed = (0..self.key.len()).filter(|sb| self.key[*sb] != NONE).map(|sb| sb as u32);
        let open = self.frontiers.iter().flatten().map(|frontier| frontier.sb);
        super::each_block_once(nand, closed.chain(open).chain(self.free.all()))
    }

    fn counts(&self) -> MergeCounts {
        self.counts
    }
}
