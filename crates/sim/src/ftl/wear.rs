//! Static wear levelling of FTLs that map whole superblocks.
//!
//! Dynamic wear levelling (`free.rs`) shares erases among the superblocks that
//! become free; one that holds data nobody rewrites never does. Now and then the
//! least worn data block's content is moved to the most worn free block, where
//! it will rest, and the block it lay in takes its share of new writes (Chang,
//! "On efficient wear leveling for large-scale flash-memory storage systems",
//! SAC 2007: cold data goes to worn blocks once the difference exceeds a
//! threshold). Page mapping does it by reclaiming (`page.rs`).

use super::MergeCounts;
use super::free::FreeList;
use crate::describe::WearLevelling;
use crate::nand::Nand;
use crate::planted::{Bug, planted};

const NONE: u32 = u32::MAX;
/// Erases by which a free block must be ahead of the least worn data block.
pub const WEAR_GAP: u32 = 16;
/// Merges, or reclamations, between two looks at wear.
pub const WEAR_EVERY: u64 = 8;

/// When to look at wear.
#[derive(Clone, Debug)]
pub struct Leveller {
    on: bool,
    merges: u64,
}

impl Leveller {
    /// Does nothing unless wear levelling is static.
    pub fn new(levelling: WearLevelling) -> Leveller {
        Leveller { on: levelling == WearLevelling::Static, merges: 0 }
    }

    /// Notes a merge that ended at `at_ns` and levels wear where it is time to;
    /// gives when that is done. `data` is the data block of each superblock.
    pub fn after_merge(
        &mut self,
        nand: &mut Nand,
        at_ns: u64,
        data: &mut [u32],
        free: &mut FreeList,
        counts: &mut MergeCounts,
    ) -> u64 {
        self.merges += 1;
        if !self.on || !self.merges.is_multiple_of(WEAR_EVERY) {
            return at_ns;
        }
        let Some((logical, target)) = laggard(nand, data, free) else { return at_ns };
        counts.levelled += 1;
        let old = data[logical];
        if let Some(witness) = &mut nand.witness {
            witness.copy_superblock(old, target);
        }
        if !planted(Bug::LevelledIsNotMapped) {
            data[logical] = target;
        }
        let copied = nand.copy_rows(at_ns, target, u64::from(nand.shape.units_per_sb));
        let end = nand.erase_rows(copied, old);
        free.give(old, nand.bank_of(old), nand.erase_counts[old as usize]);
        end
    }
}

/// The superblock whose data block lags most behind a free block of its bank,
/// and that free block, taken.
fn laggard(nand: &Nand, data: &[u32], free: &mut FreeList) -> Option<(usize, u32)> {
    let gap = |sb: u32| {
        let most = free.most_worn(nand.bank_of(sb)).unwrap_or(0);
        most.saturating_sub(nand.erase_counts[sb as usize])
    };
    let used = (0..data.len()).filter(|logical| data[*logical] != NONE);
    let logical = used.max_by_key(|logical| gap(data[*logical]))?;
    if gap(data[logical]) <= WEAR_GAP {
        return None;
    }
    let target = free.take_most_worn(nand.bank_of(data[logical]))?;
    Some((logical, target))
}
