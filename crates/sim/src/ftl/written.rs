//! Which pages of a device were ever written, and how many of each superblock.

/// One bit a page and one count a superblock.
#[derive(Clone, Debug)]
pub struct Written {
    units_per_sb: u64,
    bits: Vec<u64>,
    counts: Vec<u32>,
}

impl Written {
    /// Nothing written yet.
    pub fn new(units_per_sb: u32, logical_sbs: u32) -> Written {
        let units = u64::from(units_per_sb) * u64::from(logical_sbs);
        Written {
            units_per_sb: u64::from(units_per_sb),
            bits: vec![0; units.div_ceil(64) as usize],
            counts: vec![0; logical_sbs as usize],
        }
    }

    /// True where `unit` holds something.
    #[inline]
    pub fn has(&self, unit: u64) -> bool {
        self.bits[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }

    /// Written pages of superblock `logical`.
    #[inline]
    pub fn count(&self, logical: u32) -> u32 {
        self.counts[logical as usize]
    }

    /// Calls `each` with every word and mask that `count` units from `unit` touch.
    fn words(unit: u64, count: u64, mut each: impl FnMut(usize, u64)) {
        let (mut at, end) = (unit, unit + count);
        while at < end {
            let take = (64 - at % 64).min(end - at);
            each((at / 64) as usize, (u64::MAX >> (64 - take)) << (at % 64));
            at += take;
        }
    }

    /// Written pages among `count` from page `index` of superblock `logical`.
    pub fn among(&self, logical: u32, index: u32, count: u32) -> u32 {
        let mut found = 0;
        let first = u64::from(logical) * self.units_per_sb + u64::from(index);
        Written::words(first, u64::from(count), |word, mask| found += (self.bits[word] & mask).count_ones());
        found
    }

    /// Marks `count` pages from page `index` of superblock `logical`.
    pub fn mark(&mut self, logical: u32, index: u32, count: u32) {
        let first = u64::from(logical) * self.units_per_sb + u64::from(index);
        let (bits, total) = (&mut self.bits, &mut self.counts[logical as usize]);
        Written::words(first, u64::from(count), |word, mask| {
            *total += (mask & !bits[word]).count_ones();
            bits[word] |= mask;
        });
    }

    /// Forgets `unit`; true where it held something.
    pub fn clear(&mut self, unit: u64) -> bool {
        let had = self.has(unit);
        if had {
            self.bits[(unit / 64) as usize] &= !(1 << (unit % 64));
            self.counts[(unit / self.units_per_sb) as usize] -= 1;
        }
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_marks_across_words() {
        let mut w = Written::new(100, 3);
        w.mark(1, 10, 80);
        w.mark(1, 50, 50);
        assert_eq!((w.count(0), w.count(1), w.count(2)), (0, 90, 0));
        assert_eq!(w.among(1, 0, 20), 10);
        assert!(w.has(199) && !w.has(200) && !w.has(109));
        assert!(w.clear(150) && !w.clear(150));
        assert_eq!(w.count(1), 89);
    }
}
