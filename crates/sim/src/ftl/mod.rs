//! Flash translation layers behind one small trait, one file each.
//!
//! All of them map pages ("units") of the size of a flash page, work on
//! superblocks and leave timing to [`Nand`]. Times are ns on the device's
//! clock; each call gives when its last flash operation ends.

pub mod bast;
pub mod block;
pub mod dftl;
pub mod fast;
pub mod free;
pub mod page;
pub mod wear;
pub mod written;

use crate::describe::{Description, FlashTiming, FtlKind, FtlOptions};
use crate::nand::{ArrayShape, Nand};

/// Merges by kind (paper: Kim et al., "A space-efficient flash translation
/// layer for CompactFlash systems", IEEE Trans. Consumer Electronics 2002),
/// and what page mapping does instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// A log block in order and complete took the data block's place.
    pub switch: u64,
    /// A log block in order was completed from the data block and took its place.
    pub partial: u64,
    /// Log and data were copied together into a new block.
    pub full: u64,
    /// Superblocks reclaimed by page mapping.
    pub reclaimed: u64,
    /// Superblocks moved for static wear levelling.
    pub levelled: u64,
    /// Map pages read and written for want of map memory (DFTL).
    pub map_reads: u64,
    /// Map pages written back.
    pub map_writes: u64,
}

/// A flash translation layer.
pub trait Ftl {
    /// Programs new content of `count` units from `unit`, beginning at `at_ns`.
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64;

    /// Brings `count` units from `unit` into the controller.
    fn read(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64;

    /// Forgets `count` units from `unit`.
    fn trim(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64;

    /// One step of reclamation in idle time that begins at `at_ns`; `None`
    /// where there is nothing to do.
    fn reclaim_idle(&mut self, nand: &mut Nand, at_ns: u64) -> Option<u64>;

    /// The physical page that holds `unit`, where it was written.
    fn locate(&self, unit: u64) -> Option<u64>;

    /// Holds the FTL's own books against each other.
    ///
    /// # Errors
    /// The first contradiction found.
    fn check(&self, nand: &Nand) -> Result<(), String>;

    /// Merges so far.
    fn counts(&self) -> MergeCounts;
}

/// The FTL of a device: plain data that can be cloned with it.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one of them per device")]
pub enum AnyFtl {
    /// Page-mapped.
    Page(page::Page),
    /// Page-mapped with a demand-cached map.
    Dftl(dftl::Dftl),
    /// Log block per superblock.
    Bast(bast::Bast),
    /// Shared log.
    Fast(fast::Fast),
    /// Block-mapped.
    Block(block::Block),
}

macro_rules! each {
    ($self:expr, $ftl:ident => $body:expr) => {
        match $self {
            AnyFtl::Page($ftl) => $body,
            AnyFtl::Dftl($ftl) => $body,
            AnyFtl::Bast($ftl) => $body,
            AnyFtl::Fast($ftl) => $body,
            AnyFtl::Block($ftl) => $body,
        }
    };
}

/// Physical superblocks that a description comes to.
pub fn physical_sbs(shape: &ArrayShape, f: &FtlOptions, spare: u32) -> u64 {
    match &f.kind {
        FtlKind::Page(options) => page::physical_sbs(shape, options, spare),
        FtlKind::Dftl(options) => dftl::physical_sbs(shape, options, spare),
        FtlKind::Bast(options) => bast::physical_sbs(shape, options, spare),
        FtlKind::Fast(options) => fast::physical_sbs(shape, options, spare),
        FtlKind::Block(options) => block::physical_sbs(shape, options, spare),
    }
}

impl AnyFtl {
    /// The FTL a checked description asks for, and its erased array.
    pub fn new(
        d: &Description,
        shape: ArrayShape,
        timing: &FlashTiming,
        f: &FtlOptions,
        seed: u64,
    ) -> (AnyFtl, Nand) {
        let spare = d.geometry.as_ref().map_or(0, |g| g.spare_blocks);
        let nand = Nand::new(shape, timing, physical_sbs(&shape, f, spare) as u32);
        let wear = f.wear_levelling;
        let ftl = match &f.kind {
            FtlKind::Page(options) => AnyFtl::Page(page::Page::new(&nand, options, wear, shape.units, seed)),
            FtlKind::Dftl(options) => AnyFtl::Dftl(dftl::Dftl::new(&nand, options, wear, seed)),
            FtlKind::Bast(options) => AnyFtl::Bast(bast::Bast::new(&nand, options, wear)),
            FtlKind::Fast(options) => AnyFtl::Fast(fast::Fast::new(&nand, options, wear)),
            FtlKind::Block(options) => AnyFtl::Block(block::Block::new(&nand, options, wear)),
        };
        (ftl, nand)
    }
}

impl AnyFtl {
    /// True while a host write is done only when [`AnyFtl::settle`] is.
    #[inline]
    pub fn settles(&self) -> bool {
        matches!(self, AnyFtl::Bast(ftl) if ftl.settles())
    }

    /// Takes the memory that its books may need, so that serving takes none.
    pub fn reserve(&mut self) {
        each!(self, ftl => ftl.reserve())
    }

    /// Merges what a host write left in logs; gives when that is done.
    pub fn settle(&mut self, nand: &mut Nand, at_ns: u64) -> u64 {
        match self {
            AnyFtl::Bast(ftl) => ftl.settle(nand, at_ns),
            _ => at_ns,
        }
    }
}

impl Ftl for AnyFtl {
    #[inline]
    fn write(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        each!(self, ftl => ftl.write(nand, at_ns, unit, count))
    }
    #[inline]
    fn read(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        each!(self, ftl => ftl.read(nand, at_ns, unit, count))
    }
    fn trim(&mut self, nand: &mut Nand, at_ns: u64, unit: u64, count: u64) -> u64 {
        each!(self, ftl => ftl.trim(nand, at_ns, unit, count))
    }
    fn reclaim_idle(&mut self, nand: &mut Nand, at_ns: u64) -> Option<u64> {
        each!(self, ftl => ftl.reclaim_idle(nand, at_ns))
    }
    fn locate(&self, unit: u64) -> Option<u64> {
        each!(self, ftl => ftl.locate(unit))
    }
    fn check(&self, nand: &Nand) -> Result<(), String> {
        each!(self, ftl => ftl.check(nand))
    }
    fn counts(&self) -> MergeCounts {
        each!(self, ftl => ftl.counts())
    }
}

/// Makes sure that every superblock of the array is one thing: data, log, open
/// or free.
fn each_block_once(nand: &Nand, blocks: impl Iterator<Item = u32>) -> Result<(), String> {
    let mut seen = vec![false; nand.physical_sbs() as usize];
    let mut known = 0;
    for sb in blocks {
        known += 1;
        if std::mem::replace(&mut seen[sb as usize], true) {
            return Err(format!("superblock {sb} is two things at once"));
        }
    }
    if known != seen.len() {
        return Err(format!("{known} superblocks in the books, {} in the array", seen.len()));
    }
    Ok(())
}

/// Reads units that lie in rows of superblocks: neighbours in one superblock
/// are read together, different banks at the same time.
fn read_by_superblock(
    nand: &mut Nand,
    at_ns: u64,
    unit: u64,
    count: u64,
    locate: impl Fn(u64) -> Option<u64>,
) -> u64 {
    let per_sb = u64::from(nand.shape.units_per_sb);
    let mut end = at_ns;
    let mut group: Option<(u64, u64)> = None;
    for u in unit..unit + count {
        let Some(ppu) = locate(u) else { continue };
        group = match group {
            Some((first, n)) if first / per_sb == ppu / per_sb => Some((first, n + 1)),
            other => {
                if let Some((first, n)) = other {
                    end = end.max(nand.read_rows(at_ns, first % per_sb, n));
                }
                Some((ppu, 1))
            }
        };
    }
    if let Some((first, n)) = group {
        end = end.max(nand.read_rows(at_ns, first % per_sb, n));
    }
    end
}
