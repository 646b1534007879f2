//! The memory that a device needs, before any of it is taken.
//!
//! How: what the constructors allocate, counted from the description. Page
//! mapping: 4 bytes a logical and 4 and a bit a physical page. The FTLs that map
//! superblocks: half a byte a page, as measured (`docs/simulator.md`), and some
//! 64 bytes a superblock; their logs' books and those of the write buffer, which are
//! set aside before a run. A disk: next to nothing. Limits: an estimate from
//! above for an erased device; a snapshot of it takes the same again.

use crate::describe::{Description, FtlKind};
use crate::ftl::physical_sbs;
use crate::nand::ArrayShape;
use uflip_device::Bytes;

/// Everything that does not grow with the capacity.
const FIXED: u64 = 4 << 20;
/// Books on a superblock.
const SUPERBLOCK: u64 = 64;

/// A line of the write buffer, the ranges in it apart.
const LINE: u64 = 128;
/// Two dirty sectors of the write buffer that do not touch: a range.
const RANGE: u64 = 16;

/// Books on the logs of the FTLs that map superblocks.
fn logs(shape: &ArrayShape, kind: &FtlKind) -> u64 {
    match kind {
        FtlKind::Bast(f) => {
            let permuted = if f.permuted_switch { shape.units * 4 } else { 0 };
            u64::from(f.log_blocks) * u64::from(shape.units_per_sb) * 4 + permuted
        }
        // A page of a half of the log has its like in the other.
        FtlKind::Fast(f) => (f.log_kib << 10) / shape.unit_bytes * 100,
        FtlKind::Page(_) | FtlKind::Dftl(_) | FtlKind::Block(_) => 0,
    }
}

/// What a device of this checked description takes, erased.
pub fn footprint(d: &Description) -> Bytes {
    let (Some(g), Some(f)) = (&d.geometry, &d.ftl) else { return Bytes(FIXED) };
    let shape = ArrayShape::new(d, g, f);
    let superblocks = physical_sbs(&shape, f, g.spare_blocks);
    let physical = superblocks.saturating_mul(u64::from(shape.units_per_sb));
    let pages = match f.kind.pages() {
        Some(_) => (shape.units * 4).saturating_add(physical * 4 + physical / 8),
        None => shape.units / 2,
    };
    let lines = |kib: u64, line_kib: u64| {
        kib / line_kib.max(1) * LINE + (kib << 10) / (2 * d.sector_bytes.max(1)) * RANGE
    };
    let buffer = d.buffer.as_ref().map_or(0, |b| lines(b.kib, b.line_kib)) + logs(&shape, &f.kind);
    Bytes(pages.saturating_add(superblocks * SUPERBLOCK).saturating_add(buffer + FIXED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_device_needs_gigabytes_and_those_of_the_catalogue_little() {
        for name in crate::catalogue::names() {
            let d = crate::catalogue::get(name).unwrap();
            assert!(footprint(&d).0 < 1 << 30, "{name}: {}", footprint(&d));
        }
        let mut huge = crate::catalogue::get("mtron").unwrap();
        let grown = footprint(&huge);
        huge.capacity_mib *= 4;
        assert!(footprint(&huge).0 > grown.0, "it grows with the capacity");
    }
}
