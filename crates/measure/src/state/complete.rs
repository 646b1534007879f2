//! The complete random state: every sector written, in random order, by IOs of
//! random size.
//!
//! Method: the device is cut into stretches of the flash block size, their grid
//! shifted at random, and each stretch into two pieces at a random sector, so
//! that sizes are uniform from a sector to the flash block. The pieces are
//! written in the order of a random permutation that needs no memory in
//! proportion to the device (`pattern/permute.rs`). Each sector is written exactly
//! once, with as many bytes as one pass of the plain random state.
//!
//! Units: sectors. Source: paper 001, section 4.1 ("writing the whole flash device
//! completely yields a well-defined state"; "random IOs of random size (ranging
//! from 0.5KB to the flash block size, 128 KB) on the whole device"). Limits: no
//! sector is written twice, so a page-mapped device has less to reclaim than
//! after overwrites; the state probe then tells whether it is steady.

use crate::pattern::permute::Permutation;
use uflip_device::rng::{derive_seed, splitmix64};
use uflip_device::{Arrival, Bytes, Io, Mode};

/// The writes of the complete random state.
pub(super) struct Complete {
    order: Permutation,
    left: u64,
    seed: u64,
    /// Sectors of the device and of a stretch.
    sectors: u64,
    stretch: u64,
    /// The first stretch begins so many sectors before the device.
    shift: u64,
    sector_bytes: u64,
}

impl Complete {
    pub(super) fn new(sectors: u64, stretch: u64, sector_bytes: u64, seed: u64) -> Complete {
        let stretch = stretch.max(1);
        let mut state = derive_seed(seed, 1);
        let shift = splitmix64(&mut state) % stretch;
        let pieces = 2 * (sectors + shift).div_ceil(stretch);
        let order = Permutation::new(pieces, derive_seed(seed, 2));
        Complete { order, left: pieces, seed: derive_seed(seed, 3), sectors, stretch, shift, sector_bytes }
    }

    /// First sector and length of a piece; the length may be 0.
    fn piece(&self, number: u64) -> (u64, u64) {
        let (stretch, second) = (number / 2, number % 2 == 1);
        let mut state = derive_seed(self.seed, stretch);
        let cut = splitmix64(&mut state) % self.stretch + 1;
        let start = stretch * self.stretch;
        let (from, to) = if second { (start + cut, start + self.stretch) } else { (start, start + cut) };
        // From the grid's sectors to the device's.
        let clip = |at: u64| at.saturating_sub(self.shift).min(self.sectors);
        (clip(from), clip(to) - clip(from))
    }
}

impl Iterator for Complete {
    type Item = Io;

    fn next(&mut self) -> Option<Io> {
        while self.left > 0 {
            self.left -= 1;
            let number = self.order.next_slot();
            let (from, length) = self.piece(number);
            if length > 0 {
                return Some(Io {
                    arrival: Arrival::CONSECUTIVE,
                    offset: Bytes(from * self.sector_bytes),
                    size: (length * self.sector_bytes) as u32,
                    mode: Mode::Write,
                    pattern: 0,
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_is_written_exactly_once_in_random_order() {
        for (sectors, stretch, seed) in [(10_007u64, 256, 1u64), (256, 256, 2), (1, 256, 3), (5000, 1, 4)] {
            let mut written = vec![0u8; sectors as usize];
            let ios: Vec<Io> = Complete::new(sectors, stretch, 512, seed).collect();
            for io in &ios {
                let first = (io.offset.0 / 512) as usize;
                let count = io.size as usize / 512;
                assert!(count >= 1 && count as u64 <= stretch);
                written[first..first + count].iter_mut().for_each(|w| *w += 1);
            }
            assert!(written.iter().all(|w| *w == 1), "{sectors} {stretch}");
        }
        let offsets: Vec<u64> = Complete::new(100_000, 256, 512, 5).map(|io| io.offset.0).collect();
        let rising = offsets.windows(2).filter(|w| w[0] < w[1]).count();
        let share = rising as f64 / offsets.len() as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
    }

    #[test]
    fn sizes_are_uniform_up_to_the_flash_block() {
        let sizes: Vec<u64> =
            Complete::new(1 << 21, 256, 512, 9).map(|io| u64::from(io.size) / 512).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        assert!((123.0..134.0).contains(&mean), "{mean}");
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&1), Some(&256)));
    }
}
