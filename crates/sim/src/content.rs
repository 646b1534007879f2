//! What is stored on a simulated device, apart from where the model puts it:
//! pages of 4 KiB in a map, so that memory grows with what was written.

use crate::cache::NumberMap;

/// The unit contents are kept in, in bytes.
const PAGE_BYTES: u64 = 4096;

/// Bytes by offset; what was never written reads as zeros.
#[derive(Clone, Debug, Default)]
pub struct SectorContent {
    pages: NumberMap<u64, Box<[u8]>>,
}

/// Splits a byte range at pages: page, offset in it, length.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + length;
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let take = (PAGE_BYTES - within).min(end - at);
            at += take;
            (page, within as usize, take as usize)
        })
    })
}

impl SectorContent {
    /// Bytes of memory that the contents take.
    pub fn memory_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// Bytes of memory that writing a range would add.
    pub fn growth_bytes(&self, offset: u64, length: u64) -> u64 {
        let new = pieces(offset, length).filter(|(page, ..)| !self.pages.contains_key(page));
        new.count() as u64 * PAGE_BYTES
    }

    /// Fills `into` from `offset`.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let mut rest = into;
        for (page, within, take) in pieces(offset, rest.len() as u64) {
            let (part, tail) = rest.split_at_mut(take);
            match self.pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + take]),
                None => part.fill(0),
            }
            rest = tail;
        }
    }

    /// Keeps `from` at `offset`.
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        let mut rest = from;
        for (page, within, take) in pieces(offset, rest.len() as u64) {
            let (part, tail) = rest.split_at(take);
            let bytes =
                self.pages.entry(page).or_insert_with(|| vec![0; PAGE_BYTES as usize].into_boxed_slice());
            bytes[within..within + take].copy_from_slice(part);
            rest = tail;
        }
    }

    /// From here on the range reads as zeros.
    pub fn forget(&mut self, offset: u64, length: u64) {
        let end = offset + length;
        let whole = offset.div_ceil(PAGE_BYTES)..end / PAGE_BYTES;
        if whole.end.saturating_sub(whole.start) > self.pages.len() as u64 {
            self.pages.retain(|page, _| !whole.contains(page));
        } else {
            whole.clone().for_each(|page| drop(self.pages.remove(&page)));
        }
        // At most two parts of a page are left, one at each end.
        let head_end = end.min(whole.start * PAGE_BYTES);
        let tail_start = head_end.max(offset.max(whole.end * PAGE_BYTES));
        for (from, to) in [(offset, head_end), (tail_start, end)] {
            for (page, within, take) in pieces(from, to.saturating_sub(from)) {
                if let Some(bytes) = self.pages.get_mut(&page) {
                    bytes[within..within + take].fill(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 10 * PAGE_BYTES;

    fn all(content: &SectorContent) -> Vec<u8> {
        let mut bytes = vec![1; SIZE as usize];
        content.read(0, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read_and_what_was_forgotten_is_not() {
        let cases = [(0, SIZE), (100, 200), (4000, 200), (4096, 4096), (512, 9000), (5000, 12_000)];
        for (offset, length) in cases {
            let mut content = SectorContent::default();
            let mut plain: Vec<u8> = (0..SIZE).map(|i| (i % 251 + 1) as u8).collect();
            content.write(0, &plain);
            content.forget(offset, length);
            plain[offset as usize..(offset + length) as usize].fill(0);
            assert!(all(&content) == plain, "{length} bytes at {offset} forgotten");
            content.write(offset, &vec![7; length as usize]);
            plain[offset as usize..(offset + length) as usize].fill(7);
            assert!(all(&content) == plain, "{length} bytes at {offset} written again");
        }
    }

    #[test]
    fn memory_is_that_of_the_pages_written() {
        let mut content = SectorContent::default();
        assert_eq!(content.growth_bytes(4000, 200), 8192);
        content.write(4000, &[1; 200]);
        assert_eq!((content.memory_bytes(), content.growth_bytes(0, 12_288)), (8192, 4096));
        content.forget(0, 1 << 40);
        assert_eq!(content.memory_bytes(), 0);
    }
}
