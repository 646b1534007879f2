//! Free superblocks, by bank, oldest first or least worn first.
//!
//! Dynamic wear levelling (paper 001, section 2.1: "the block manager must
//! implement some form of wear-leveling") is the choice of the least worn free
//! superblock; without it they are taken in the order they were freed.

use crate::describe::WearLevelling;
use std::collections::VecDeque;

/// Free superblocks of all banks.
#[derive(Clone, Debug)]
pub struct FreeList {
    by_wear: bool,
    per_bank: usize,
    queues: Vec<VecDeque<u32>>,
    /// Erases and superblock, least worn first. What comes back belongs near one end
    /// as a rule, so that few others move.
    worn: Vec<VecDeque<(u32, u32)>>,
    total: usize,
}

impl FreeList {
    /// Superblocks `0..sbs`, all free and unworn, in `banks` banks.
    pub fn new(sbs: u32, banks: u32, levelling: WearLevelling) -> FreeList {
        let mut list = FreeList {
            by_wear: levelling != WearLevelling::None,
            per_bank: sbs.div_ceil(banks) as usize,
            queues: vec![VecDeque::new(); banks as usize],
            worn: vec![VecDeque::new(); banks as usize],
            total: 0,
        };
        list.reserve();
        (0..sbs).for_each(|sb| list.give(sb, sb % banks, 0));
        list
    }

    /// Takes memory for all superblocks.
    pub fn reserve(&mut self) {
        let per_bank = self.per_bank;
        if self.by_wear {
            self.worn.iter_mut().for_each(|list| list.reserve(per_bank - list.len()));
        } else {
            self.queues.iter_mut().for_each(|list| list.reserve(per_bank - list.len()));
        }
    }

    /// Puts an erased superblock back.
    pub fn give(&mut self, sb: u32, bank: u32, erases: u32) {
        self.total += 1;
        if self.by_wear {
            let list = &mut self.worn[bank as usize];
            let at = list.partition_point(|other| *other < (erases, sb));
            list.insert(at, (erases, sb));
        } else {
            self.queues[bank as usize].push_back(sb);
        }
    }

    /// Takes one of `bank`.
    pub fn take(&mut self, bank: u32) -> Option<u32> {
        let sb = if self.by_wear {
            self.worn[bank as usize].pop_front().map(|(_, sb)| sb)
        } else {
            self.queues[bank as usize].pop_front()
        };
        self.total -= usize::from(sb.is_some());
        sb
    }

    /// Takes one of the most worn of `bank`: where cold data goes.
    pub fn take_most_worn(&mut self, bank: u32) -> Option<u32> {
        let sb = if self.by_wear {
            self.worn[bank as usize].pop_back().map(|(_, sb)| sb)
        } else {
            self.queues[bank as usize].pop_back()
        };
        self.total -= usize::from(sb.is_some());
        sb
    }

    /// Erases of the most worn of `bank`, where they are kept by wear.
    pub fn most_worn(&self, bank: u32) -> Option<u32> {
        self.worn[bank as usize].back().map(|(erases, _)| *erases)
    }

    /// All of them, in no order that matters.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let by_wear = self.worn.iter().flatten().map(|(_, sb)| *sb);
        by_wear.chain(self.queues.iter().flatten().copied())
    }

    /// Free superblocks of all banks.
    pub fn total(&self) -> usize {
        self.total
    }
}
