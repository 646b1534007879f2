//! BAST and FAST against models that do the same page by page: every page's
//! place is looked up by searching, every merge copies one page after the
//! other. The FTLs' arithmetic must count the same merges, programs, copies and
//! erases.
//!
//! The models follow the papers named in `src/ftl/bast.rs` and `fast.rs`, with
//! the differences listed there, for writes of one page.

use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Device, Io, KeepAll, Mode, RunLimits, Stop};
use uflip_sim::{SimDevice, check};

const PAGE: u64 = 2048;
/// Pages of a superblock, lanes in it, superblocks of the device.
const PER_SB: usize = 16;
const LANES: u64 = 2;
const SBS: usize = 32;

/// What is compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    switch: u64,
    partial: u64,
    full: u64,
    programs: u64,
    copies: u64,
    erases: u64,
}

/// One copy of a page: which, and by which write.
type Copy = (usize, u64);

/// Data blocks, page by page: the write each page's content comes from.
struct DataBlocks {
    blocks: Vec<Option<[Option<u64>; PER_SB]>>,
    newest: Vec<Option<u64>>,
    tally: Tally,
}

impl DataBlocks {
    fn new() -> DataBlocks {
        DataBlocks { blocks: vec![None; SBS], newest: vec![None; SBS * PER_SB], tally: Tally::default() }
    }

    fn written(&self, sb: usize) -> usize {
        self.newest[sb * PER_SB..(sb + 1) * PER_SB].iter().flatten().count()
    }

    /// The block takes the place of `sb`'s data block with the newest content.
    fn replace(&mut self, sb: usize) {
        let mut block = [None; PER_SB];
        for (i, page) in block.iter_mut().enumerate() {
            *page = self.newest[sb * PER_SB + i];
        }
        self.tally.erases += u64::from(self.blocks[sb].is_some()) * LANES;
        self.blocks[sb] = Some(block);
    }

    fn copy(&mut self, pages: usize) {
        self.tally.copies += pages as u64;
        self.tally.programs += pages as u64;
    }
}

struct BastModel {
    data: DataBlocks,
    limit: usize,
    /// (superblock, its copies in the order written, last use).
    logs: Vec<(usize, Vec<Copy>, u64)>,
}

impl BastModel {
    fn write(&mut self, unit: usize, write: u64) {
        let sb = unit / PER_SB;
        if !self.logs.iter().any(|log| log.0 == sb) {
            if self.logs.len() == self.limit {
                let oldest = (0..self.logs.len()).min_by_key(|i| self.logs[*i].2).unwrap();
                self.merge(oldest);
            }
            self.logs.push((sb, Vec::new(), 0));
        }
        let i = self.logs.iter().position(|log| log.0 == sb).unwrap();
        self.logs[i].1.push((unit, write));
        self.logs[i].2 = write;
        self.data.newest[unit] = Some(write);
        self.data.tally.programs += 1;
        if self.logs[i].1.len() == PER_SB {
            self.merge(i);
        }
    }

    fn merge(&mut self, i: usize) {
        let (sb, log, _) = self.logs.remove(i);
        let in_order = log.iter().enumerate().all(|(place, copy)| copy.0 % PER_SB == place);
        let written = self.data.written(sb);
        if in_order && log.len() == written {
            self.data.tally.switch += 1;
        } else if in_order && written == PER_SB {
            self.data.tally.partial += 1;
            self.data.copy(if self.data.blocks[sb].is_some() { PER_SB - log.len() } else { 0 });
        } else {
            self.data.tally.full += 1;
            let newest = log.iter().filter(|(unit, write)| self.data.newest[*unit] == Some(*write)).count();
            self.data.copy(if self.data.blocks[sb].is_some() { PER_SB } else { newest });
            self.data.tally.erases += LANES;
        }
        self.data.replace(sb);
    }
}

struct FastModel {
    data: DataBlocks,
    half: usize,
    sequential_limit: usize,
    /// The half being filled and the one that is full, as far as not merged.
    filling: Vec<Copy>,
    full: Vec<Copy>,
    /// Places of the full half that were not looked through.
    unmerged: usize,
    /// (superblock, pages in order, last use).
    sequential: Vec<(usize, Vec<u64>, u64)>,
}

impl FastModel {
    /// True where the shared log has the newest copy of one of the first
    /// `before` pages of `sb`.
    fn in_log(&self, sb: usize, before: usize) -> bool {
        self.filling.iter().chain(&self.full).any(|copy| {
            let here = copy.0 / PER_SB == sb && copy.0 % PER_SB < before;
            here && self.data.newest[copy.0] == Some(copy.1) && !self.merged_since(*copy)
        })
    }

    fn write(&mut self, unit: usize, write: u64) {
        let (sb, index) = (unit / PER_SB, unit % PER_SB);
        let found = self.sequential.iter().position(|log| log.0 == sb);
        let goes_on = found.is_some_and(|i| self.sequential[i].1.len() == index);
        let begins = found.is_none() && index == 0 && self.sequential_limit > 0 && !self.in_log(sb, PER_SB);
        if goes_on || begins {
            return self.write_sequential(unit, write, begins);
        }
        if self.filling.len() == self.half {
            self.look_through(0);
            let blocks = self.full.len().div_ceil(PER_SB) as u64;
            self.data.tally.erases += blocks * LANES;
            self.full = std::mem::take(&mut self.filling);
            self.unmerged = self.half;
        }
        self.look_through(self.half - self.filling.len() - 1);
        self.filling.push((unit, write));
        self.data.newest[unit] = Some(write);
        self.data.tally.programs += 1;
    }

    /// Merges what is newest in the full half until `keep` places are left.
    fn look_through(&mut self, keep: usize) {
        while self.unmerged > keep {
            self.unmerged -= 1;
            let Some(copy) = self.full.get(self.unmerged).copied() else { continue };
            if self.data.newest[copy.0] == Some(copy.1) && !self.merged_since(copy) {
                self.full_merge(copy.0 / PER_SB);
            }
        }
    }

    /// True where a data block holds the copy already.
    fn merged_since(&self, copy: Copy) -> bool {
        self.data.blocks[copy.0 / PER_SB].is_some_and(|block| block[copy.0 % PER_SB] == Some(copy.1))
    }

    fn write_sequential(&mut self, unit: usize, write: u64, begins: bool) {
        let sb = unit / PER_SB;
        if begins {
            if self.sequential.len() == self.sequential_limit {
                let oldest = (0..self.sequential.len()).min_by_key(|i| self.sequential[*i].2).unwrap();
                self.end_sequential(oldest);
            }
            self.sequential.push((sb, Vec::new(), 0));
        }
        let i = self.sequential.iter().position(|log| log.0 == sb).unwrap();
        self.sequential[i].1.push(write);
        self.sequential[i].2 = write;
        self.data.newest[unit] = Some(write);
        self.data.tally.programs += 1;
        if self.sequential[i].1.len() == PER_SB {
            self.end_sequential(i);
        }
    }

    fn end_sequential(&mut self, i: usize) {
        let (sb, used) = (self.sequential[i].0, self.sequential[i].1.len());
        let behind = &self.data.newest[sb * PER_SB + used..(sb + 1) * PER_SB];
        let left = behind.iter().flatten().count();
        if left == 0 {
            self.data.tally.switch += 1;
            // Newer pages in the shared log stay there; only what is in the
            // block is data.
            let writes = std::mem::take(&mut self.sequential[i].1);
            let mut block = [None; PER_SB];
            for (place, write) in writes.iter().enumerate() {
                block[place] = Some(*write);
            }
            self.data.tally.erases += u64::from(self.data.blocks[sb].is_some()) * LANES;
            self.data.blocks[sb] = Some(block);
            self.sequential.remove(i);
        } else if self.in_log(sb, used) {
            self.full_merge(sb);
        } else {
            self.data.tally.partial += 1;
            let data = self.data.blocks[sb].is_some();
            self.data.copy(if data { PER_SB - used } else { left });
            self.sequential.remove(i);
            self.data.replace(sb);
        }
    }

    fn full_merge(&mut self, sb: usize) {
        self.data.tally.full += 1;
        let data = self.data.blocks[sb].is_some();
        self.data.copy(if data { PER_SB } else { self.data.written(sb) });
        if let Some(i) = self.sequential.iter().position(|log| log.0 == sb) {
            self.sequential.remove(i);
            self.data.tally.erases += LANES;
        }
        self.data.replace(sb);
        // What was merged is in the log no more.
        let merged = |copy: &Copy| copy.0 / PER_SB == sb;
        for half in [&mut self.filling, &mut self.full] {
            half.iter_mut().filter(|copy| merged(copy)).for_each(|copy| copy.1 = u64::MAX);
        }
    }
}

fn open(ftl: &str, banks: u64) -> SimDevice {
    let text = format!(
        "name = \"small\"\ncapacity_mib = 1\n\
         [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
         [geometry]\nchannels = {LANES}\nchips_per_channel = {banks}\npages_per_block = {}\npage_bytes = {PAGE}\n\
         [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n\
         [ftl]\nsuperblock_dies = {LANES}\n{ftl}\n",
        PER_SB as u64 / LANES
    );
    SimDevice::new(&check(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), 1).unwrap()
}

/// Units in an order of stretches: sequential, reverse, random in one
/// superblock, random anywhere.
fn units(seed: u64, count: usize) -> Vec<usize> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    while all.len() < count {
        let base = rng.below(SBS as u64) as usize * PER_SB;
        let length = 1 + rng.below(2 * PER_SB as u64) as usize;
        let kind = rng.below(5);
        for i in 0..length {
            let any = rng.below((SBS * PER_SB) as u64) as usize;
            all.push(match kind {
                0 | 1 => (base + i) % (SBS * PER_SB),
                2 => base + PER_SB - 1 - i % PER_SB,
                3 => base + any % PER_SB,
                _ => any,
            });
        }
    }
    all
}

fn simulated(device: &mut SimDevice, units: &[usize]) -> Tally {
    let ios: Vec<Io> = units
        .iter()
        .map(|unit| Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(*unit as u64 * PAGE),
            size: PAGE as u32,
            mode: Mode::Write,
            pattern: 0,
        })
        .collect();
    let limits = RunLimits { time: None, stop: &Stop::new(), sequence: None };
    device.run(vec![Box::new(ios.into_iter())], &KeepAll::new(1 << 12), limits).unwrap();
    let (m, o) = (device.merges().unwrap(), device.flash_ops().unwrap());
    let (switch, partial, full) = (m.switch, m.partial, m.full);
    Tally { switch, partial, full, programs: o.programs, copies: o.copies, erases: o.erases }
}

#[test]
fn bast_counts_what_a_page_by_page_model_counts() {
    let mut sum = [0; 3];
    for seed in 0..60 {
        let limit = 1 + seed as usize % 5;
        let units = units(seed, 4000);
        let mut model = BastModel { data: DataBlocks::new(), limit, logs: Vec::new() };
        units.iter().enumerate().for_each(|(i, unit)| model.write(*unit, i as u64 + 1));
        let mut device = open(&format!("kind = \"bast\"\nlog_blocks = {limit}"), 1 + seed % 2);
        let ours = simulated(&mut device, &units);
        assert_eq!(ours, model.data.tally, "seed {seed}, {limit} logs");
        sum = [sum[0] + ours.switch, sum[1] + ours.partial, sum[2] + ours.full];
    }
    assert!(sum.iter().all(|n| *n > 300), "switch, partial and full merges {sum:?}: too few to compare");
}

#[test]
fn fast_counts_what_a_page_by_page_model_counts() {
    let mut sum = [0; 3];
    for seed in 0..60 {
        let (half, limit) = (1 + seed as usize * 7 % 60, seed as usize % 4);
        let units = units(seed, 4000);
        let mut model = FastModel {
            data: DataBlocks::new(),
            half: half.next_multiple_of(2),
            sequential_limit: limit,
            filling: Vec::new(),
            full: Vec::new(),
            unmerged: 0,
            sequential: Vec::new(),
        };
        units.iter().enumerate().for_each(|(i, unit)| model.write(*unit, i as u64 + 1));
        let kib = half.next_multiple_of(2) as u64 * PAGE / 1024;
        let ftl = format!("kind = \"fast\"\nlog_kib = {kib}\nsequential_logs = {limit}");
        let ours = simulated(&mut open(&ftl, 1 + seed % 2), &units);
        assert_eq!(ours, model.data.tally, "seed {seed}, halves of {half}, {limit} sequential logs");
        sum = [sum[0] + ours.switch, sum[1] + ours.partial, sum[2] + ours.full];
    }
    assert!(sum.iter().all(|n| *n > 300), "switch, partial and full merges {sum:?}: too few to compare");
}

#[test]
fn each_kind_of_merge_has_its_own_count() {
    let stream = |sb: usize, from: usize, to: usize| (from..to).map(move |i| sb * PER_SB + i);
    let all: Vec<usize> = (0..SBS).flat_map(|sb| stream(sb, 0, PER_SB)).collect();
    // Rewritten in order; half rewritten in order; one page rewritten.
    let cases: [(&str, Vec<usize>, [u64; 3], u64); 3] = [
        ("switch", stream(3, 0, PER_SB).collect(), [1, 0, 0], 0),
        (
            "partial",
            stream(3, 0, PER_SB / 2).chain(stream(4, 0, PER_SB)).collect(),
            [1, 1, 0],
            PER_SB as u64 / 2,
        ),
        ("full", stream(3, 5, 6).chain(stream(4, 0, PER_SB)).collect(), [1, 0, 1], PER_SB as u64),
    ];
    for (what, units, [switch, partial, full], copies) in cases {
        let mut device = open("kind = \"bast\"\nlog_blocks = 1", 1);
        let before = simulated(&mut device, &all);
        assert_eq!((before.switch, before.partial, before.full), (SBS as u64, 0, 0));
        let after = simulated(&mut device, &units);
        let counts = (after.switch - before.switch, after.partial, after.full, after.copies);
        assert_eq!(counts, (switch, partial, full, copies), "{what}");
    }
}
