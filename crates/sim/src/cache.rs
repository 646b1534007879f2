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
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
}

/// The lines that wait.
#[derive(Clone, Debug)]
pub struct Lines {
    line_bytes: u64,
    waiting: NumberMap<u64, Vec<Range>>,
    order: VecDeque<u64>,
}

impl Lines {
    /// An empty buffer with lines of `line_bytes`.
    pub fn new(line_bytes: u64) -> Lines {
        Lines { line_bytes, waiting: NumberMap::default(), order: VecDeque::new() }
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
    pub fn adjoins(&self, range: Range) -> bool {
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
    pub fn touches(&self, line: u64, range: Range) -> bool {
        range.start < range.end && (self.line_of(range.start)..=self.line_of(range.end - 1)).contains(&line)
    }

    /// True where what waits ends at byte `at`.
    pub fn ends_at(&self, at: u64) -> bool {
        let before = at.checked_sub(1).and_then(|last| self.waiting.get(&(last / self.line_bytes)));
        before.is_some_and(|ranges| ranges.iter().any(|r| r.end == at))
    }

    /// The part of `range` in the line that holds its first byte.
    pub fn first_part(&self, range: Range) -> Range {
        let line_end = (range.start / self.line_bytes + 1) * self.line_bytes;
        Range { start: range.start, end: range.end.min(line_end) }
    }

    /// Takes a range that lies in one line.
    pub fn put(&mut self, range: Range) {
        let line = range.start / self.line_bytes;
        let order = &mut self.order;
        let ranges = self.waiting.entry(line).or_insert_with(|| {
            order.push_back(line);
            Vec::with_capacity(1)
        });
        let mut all = range;
        ranges.retain(|r| {
            let apart = r.end < all.start || all.end < r.start;
            if !apart {
                all = Range { start: all.start.min(r.start), end: all.end.max(r.end) };
            }
            apart
        });
        ranges.push(all);
    }

    /// True where every byte of `range` waits here.
    pub fn covers(&self, range: Range) -> bool {
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
    pub fn drop_range(&mut self, range: Range) {
        let line_bytes = self.line_bytes;
        let waiting = &mut self.waiting;
        self.order.retain(|line| {
            if (line + 1) * line_bytes <= range.start || range.end <= line * line_bytes {
                return true;
            }
            let Some(ranges) = waiting.get_mut(line) else { return false };
            let before = |r: &Range| Range { start: r.start, end: r.end.min(range.start) };
            let after = |r: &Range| Range { start: r.start.max(range.end), end: r.end };
            let kept: Vec<Range> =
                ranges.iter().flat_map(|r| [before(r), after(r)]).filter(|r| r.start < r.end).collect();
            let keep = !kept.is_empty();
            if keep {
                *ranges = kept;
            } else {
                waiting.remove(line);
            }
            keep
        });
    }

    /// Takes out the `lines` oldest lines; their ranges in address order.
    pub fn take_batch(&mut self, lines: usize) -> Vec<Range> {
        let mut taken = Vec::with_capacity(lines);
        for _ in 0..lines {
            let Some(line) = self.order.pop_front() else { break };
            let ranges = self.waiting.remove(&line);
            if !(taken.is_empty() && planted(Bug::LineIsForgotten)) {
                taken.extend(ranges.into_iter().flatten());
            }
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
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[test]
    fn adjacent_writes_coalesce_and_gaps_stay() {
        let mut lines = Lines::new(16384);
        lines.put(range(0, 4096));
        lines.put(range(8192, 12288));
        assert!(!lines.covers(range(0, 12288)));
        lines.put(range(4096, 8192));
        assert!(lines.covers(range(0, 12288)));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines.take_batch(1), [range(0, 12288)]);
        assert!(lines.is_empty());
    }

    #[test]
    fn a_batch_is_in_address_order_and_joined_over_lines() {
        let mut lines = Lines::new(4096);
        lines.put(range(8192, 12288));
        lines.put(range(4096, 8192));
        lines.put(range(0, 512));
        assert_eq!(lines.take_batch(3), [range(0, 512), range(4096, 12288)]);
    }

    #[test]
    fn dropping_keeps_what_lies_outside() {
        let mut lines = Lines::new(4096);
        lines.put(range(0, 4096));
        lines.put(range(4096, 8192));
        lines.drop_range(range(1024, 8192));
        assert_eq!(lines.take_batch(9), [range(0, 1024)]);
    }
}
