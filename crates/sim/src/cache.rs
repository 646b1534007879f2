//! The write buffer: what it holds, what it coalesces, and what goes to flash
//! next. When it goes is decided in [`crate::flash`].
//!
//! Source: paper 001, section 5.2 (four 4 KB writes cost about one of 16 KB,
//! "apparently due to caching") and section 4.2 (a start-up phase while the
//! buffer fills). The buffer is made of lines; a line collects the dirty byte
//! ranges of its stretch of the device, so a write to a line that waits costs
//! nothing more. Lines leave oldest first, a batch at a time, in address order.

use crate::planted::{Bug, planted};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Spreads the bits of a number; for maps that are never iterated.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
}

/// A map keyed by numbers.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A dirty range in bytes from the start of the device, end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
}

/// A map for at most `entries` at a time that takes no memory later: one that also
/// holds the traces of as many removed ones is tidied up where it lies, a fuller
/// one would move to a larger place.
pub fn roomy_map<K: Eq + std::hash::Hash, V>(entries: usize) -> NumberMap<K, V> {
    NumberMap::with_capacity_and_hasher(2 * entries + 2, BuildHasherDefault::default())
}

/// The lines that wait.
#[derive(Clone, Debug)]
pub struct Lines {
    line_bytes: u64,
    /// Lines that may wait at once.
    most: usize,
    /// Ranges of a line of which no two touch.
    most_ranges: usize,
    waiting: NumberMap<u64, Vec<ByteRange>>,
    order: VecDeque<u64>,
    /// Room for the ranges of lines to come.
    spare: Vec<Vec<ByteRange>>,
}

impl Lines {
    /// An empty buffer with at most `most` lines of `line_bytes`; what is written
    /// to them comes in sectors of `sector_bytes`.
    pub fn new(line_bytes: u64, most: usize, sector_bytes: u64) -> Lines {
        Lines {
            line_bytes,
            most,
            most_ranges: (line_bytes / sector_bytes).div_ceil(2) as usize,
            waiting: roomy_map(most),
            order: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Takes the memory that the fullest buffer needs.
    pub fn reserve(&mut self) {
        let (waiting, ranges) = (self.waiting.len(), self.most_ranges);
        let room = |list: &mut Vec<ByteRange>| list.reserve_exact(ranges.saturating_sub(list.len()));
        self.order.reserve(self.most.saturating_sub(waiting));
        self.spare.reserve(self.most.saturating_sub(self.spare.len()));
        self.spare.resize_with(self.most.saturating_sub(waiting), Vec::new);
        self.waiting.values_mut().chain(&mut self.spare).for_each(room);
    }

    /// Ranges that `lines` lines have at most.
    pub fn most_ranges(&self, lines: usize) -> usize {
        lines.min(self.most) * self.most_ranges
    }

    /// Lines that wait.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True where nothing waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// True where `range` adjoins what waits without overlapping it.
    pub fn adjoins(&self, range: ByteRange) -> bool {
        let ends = |at: u64| self.waiting.get(&(at / self.line_bytes));
        let before = range.start > 0
            && ends(range.start - 1).is_some_and(|rs| rs.iter().any(|r| r.end == range.start));
        let after = ends(range.end).is_some_and(|rs| rs.iter().any(|r| r.start == range.end));
        let overlaps =
            ends(range.start).is_some_and(|rs| rs.iter().any(|r| r.start < range.end && range.start < r.end));
        (before || after) && !overlaps
    }

    /// True where the line that holds byte `at` waits.
    pub fn holds(&self, at: u64) -> bool {
        self.waiting.contains_key(&(at / self.line_bytes))
    }

    /// The line that holds byte `at`.
    pub fn line_of(&self, at: u64) -> u64 {
        at / self.line_bytes
    }

    /// True where `range` has bytes of `line`.
    pub fn touches(&self, line: u64, range: ByteRange) -> bool {
        range.start < range.end && (self.line_of(range.start)..=self.line_of(range.end - 1)).contains(&line)
    }

    /// True where what waits ends at byte `at`.
    pub fn ends_at(&self, at: u64) -> bool {
        let before = at.checked_sub(1).and_then(|last| self.waiting.get(&(last / self.line_bytes)));
        before.is_some_and(|ranges| ranges.iter().any(|r| r.end == at))
    }

    /// The part of `range` in the line that holds its first byte.
    pub fn first_part(&self, range: ByteRange) -> ByteRange {
        let line_end = (range.start / self.line_bytes + 1) * self.line_bytes;
        ByteRange { start: range.start, end: range.end.min(line_end) }
    }

    /// Takes a range that lies in one line.
    pub fn put(&mut self, range: ByteRange) {
        let line = range.start / self.line_bytes;
        let (order, spare) = (&mut self.order, &mut self.spare);
        let ranges = self.waiting.entry(line).or_insert_with(|| {
            order.push_back(line);
            spare.pop().unwrap_or_default()
        });
        let mut all = range;
        ranges.retain(|r| {
            let apart = r.end < all.start || all.end < r.start;
            if !apart {
                all = ByteRange { start: all.start.min(r.start), end: all.end.max(r.end) };
            }
            apart
        });
        ranges.push(all);
    }

    /// True where every byte of `range` waits here.
    pub fn covers(&self, range: ByteRange) -> bool {
        let mut rest = range;
        while rest.start < rest.end {
            let part = self.first_part(rest);
            let found = self.waiting.get(&(part.start / self.line_bytes));
            if !found.is_some_and(|rs| rs.iter().any(|r| r.start <= part.start && part.end <= r.end)) {
                return false;
            }
            rest.start = part.end;
        }
        true
    }

    /// Drops what waits inside `range`.
    pub fn drop_range(&mut self, range: ByteRange) {
        let line_bytes = self.line_bytes;
        let (waiting, spare) = (&mut self.waiting, &mut self.spare);
        self.order.retain(|line| {
            if (line + 1) * line_bytes <= range.start || range.end <= line * line_bytes {
                return true;
            }
            let Some(ranges) = waiting.get_mut(line) else { return false };
            drop_from(ranges, range);
            let keep = !ranges.is_empty();
            if !keep {
                spare.extend(waiting.remove(line));
            }
            keep
        });
    }

    /// Takes out the `lines` oldest lines: `taken` has their ranges in address order
    /// then, and nothing else.
    pub fn take_batch(&mut self, lines: usize, taken: &mut Vec<ByteRange>) {
        taken.clear();
        for _ in 0..lines {
            let Some(line) = self.order.pop_front() else { break };
            let Some(mut ranges) = self.waiting.remove(&line) else { continue };
            if !(taken.is_empty() && planted(Bug::LineIsForgotten)) {
                taken.extend_from_slice(&ranges);
            }
            ranges.clear();
            self.spare.push(ranges);
        }
        taken.sort_unstable_by_key(|r| r.start);
        // Neighbours in address order are written as one.
        taken.dedup_by(|next, before| {
            let joined = before.end == next.start;
            if joined {
                before.end = next.end;
            }
            joined
        });
    }
}

/// Cuts `gone` out of a line's ranges, where they lie: of one that reaches over both
/// ends of `gone` the part behind comes last.
fn drop_from(ranges: &mut Vec<ByteRange>, gone: ByteRange) {
    let mut behind = None;
    ranges.retain_mut(|r| {
        let before = ByteRange { start: r.start, end: r.end.min(gone.start) };
        let after = ByteRange { start: r.start.max(gone.end), end: r.end };
        match (before.start < before.end, after.start < after.end) {
            (true, true) => (*r, behind) = (before, Some(after)),
            (true, false) => *r = before,
            (false, true) => *r = after,
            (false, false) => return false,
        }
        true
    });
    ranges.extend(behind);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    fn batch(lines: &mut Lines, count: usize) -> Vec<ByteRange> {
        let mut taken = vec![range(7, 8)];
        lines.take_batch(count, &mut taken);
        taken
    }

    #[test]
    fn adjacent_writes_coalesce_and_gaps_stay() {
        let mut lines = Lines::new(16384, 8, 512);
        lines.put(range(0, 4096));
        lines.put(range(8192, 12288));
        assert!(!lines.covers(range(0, 12288)));
        lines.put(range(4096, 8192));
        assert!(lines.covers(range(0, 12288)));
        assert_eq!(lines.len(), 1);
        assert_eq!(batch(&mut lines, 1), [range(0, 12288)]);
        assert!(lines.is_empty());
    }

    #[test]
    fn a_batch_is_in_address_order_and_joined_over_lines() {
        let mut lines = Lines::new(4096, 9, 512);
        lines.put(range(8192, 12288));
        lines.put(range(4096, 8192));
        lines.put(range(0, 512));
        assert_eq!(batch(&mut lines, 3), [range(0, 512), range(4096, 12288)]);
    }

    #[test]
    fn dropping_keeps_what_lies_outside() {
        let mut lines = Lines::new(4096, 9, 512);
        lines.put(range(0, 4096));
        lines.put(range(4096, 8192));
        lines.drop_range(range(1024, 8192));
        assert_eq!(batch(&mut lines, 9), [range(0, 1024)]);
        // From the middle of one range and the ends of others.
        lines.put(range(0, 3072));
        lines.put(range(3584, 4096));
        lines.drop_range(range(1024, 2048));
        assert!(lines.covers(range(0, 1024)) && lines.covers(range(2048, 3072)));
        assert_eq!(batch(&mut lines, 1), [range(0, 1024), range(2048, 3072), range(3584, 4096)]);
    }

    #[test]
    fn the_fullest_buffer_takes_no_memory_that_was_not_reserved() {
        let mut lines = Lines::new(4096, 4, 512);
        lines.put(range(0, 512));
        let mut lines = lines.clone();
        lines.reserve();
        let room = |lines: &Lines| {
            let lists = lines.waiting.values().chain(&lines.spare);
            (lists.map(Vec::capacity).collect::<Vec<_>>(), lines.order.capacity(), lines.spare.capacity())
        };
        let before = room(&lines);
        // Every other sector of four lines, again and again.
        for _ in 0..100 {
            (0..32).step_by(2).for_each(|sector| lines.put(range(sector * 512, sector * 512 + 512)));
            assert_eq!(lines.len(), 4);
            lines.drop_range(range(0, 4096));
            lines.take_batch(4, &mut Vec::new());
        }
        assert_eq!(room(&lines), before);
    }
}
