//! Follows the content of every physical page in checked runs.
//!
//! A page's content is a stamp: which logical page it is and the number of the
//! write that made it. FTLs whose merges are arithmetic tell the witness of
//! each copied page, so that the arithmetic is held against what it stands
//! for. Violations are collected, not panicked on.

use std::collections::{HashMap, HashSet};

/// What a physical page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    unit: u64,
    write: u64,
}

/// The shadow of the array.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    units_per_sb: u64,
    pages: HashMap<u64, Stamp>,
    newest: HashMap<u64, u64>,
    promised: HashSet<u64>,
    decided_ns: u64,
    writes: u64,
    violations: Vec<String>,
}

impl Witness {
    /// Of an erased array with superblocks of `units_per_sb` pages.
    pub fn new(units_per_sb: u32) -> Witness {
        Witness { units_per_sb: u64::from(units_per_sb), ..Witness::default() }
    }

    fn blame(&mut self, message: String) {
        if self.violations.len() < 20 {
            self.violations.push(message);
        }
    }

    fn place(&mut self, ppu: u64, stamp: Stamp) {
        if let Some(old) = self.pages.insert(ppu, stamp) {
            self.blame(format!("physical page {ppu} programmed twice without an erase ({old:?}, {stamp:?})"));
        }
    }

    /// Holds a condition of the device's own.
    pub fn require(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.blame(otherwise.to_string());
        }
    }

    /// What follows was decided on at `at_ns`, on the clock of the array.
    pub fn decide(&mut self, at_ns: u64) {
        self.decided_ns = at_ns;
    }

    /// A flash operation may begin from `at_ns` on: not before it was decided on.
    pub fn begins(&mut self, at_ns: u64) {
        if at_ns < self.decided_ns {
            let early_ns = self.decided_ns - at_ns;
            self.blame(format!("a flash operation began {early_ns} ns before it was decided on"));
        }
    }

    /// The host has written (into the buffer, perhaps) `count` units from `unit`.
    pub fn promise(&mut self, unit: u64, count: u64) {
        self.promised.extend(unit..unit + count);
    }

    /// After a flush: all that was written must have been programmed.
    pub fn kept_all_promises(&mut self) {
        if let Some(unit) = self.promised.iter().min().copied() {
            self.blame(format!("unit {unit} was written and flushed but never programmed"));
        }
    }

    /// The host's newest content of `unit` was programmed at `ppu`.
    pub fn host_write(&mut self, unit: u64, ppu: u64) {
        self.writes += 1;
        self.promised.remove(&unit);
        self.newest.insert(unit, self.writes);
        self.place(ppu, Stamp { unit, write: self.writes });
    }

    /// A page was copied.
    pub fn copy(&mut self, from: u64, to: u64) {
        match self.pages.get(&from).copied() {
            Some(stamp) => self.place(to, stamp),
            None => self.blame(format!("copied erased page {from} to {to}")),
        }
    }

    /// Every page of superblock `from` was copied to its place in `to`.
    pub fn copy_superblock(&mut self, from: u32, to: u32) {
        let (from, to) = (u64::from(from) * self.units_per_sb, u64::from(to) * self.units_per_sb);
        for index in 0..self.units_per_sb {
            if let Some(stamp) = self.pages.get(&(from + index)).copied() {
                self.place(to + index, stamp);
            }
        }
    }

    /// A superblock was erased.
    pub fn erase(&mut self, sb: u32) {
        let first = u64::from(sb) * self.units_per_sb;
        for ppu in first..first + self.units_per_sb {
            self.pages.remove(&ppu);
        }
    }

    /// The host trimmed `unit`.
    pub fn trim(&mut self, unit: u64) {
        self.newest.remove(&unit);
        self.promised.remove(&unit);
    }

    /// Holds the map against the pages: every written unit is found, where it
    /// is found lies its newest content, and nothing else is mapped.
    pub fn audit(&mut self, units: u64, locate: impl Fn(u64) -> Option<u64>) {
        for unit in 0..units {
            let newest = self.newest.get(&unit).copied();
            let found = locate(unit).map(|ppu| (ppu, self.pages.get(&ppu).copied()));
            match (newest, found) {
                (None, None) => {}
                (Some(write), Some((_, Some(stamp)))) if stamp == (Stamp { unit, write }) => {}
                (newest, found) => {
                    self.blame(format!("unit {unit}: newest write {newest:?}, map finds {found:?}"));
                }
            }
        }
    }

    /// What was found wrong so far.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }
}
