//! A flash device as a whole: link, write buffer, FTL and array, and when each
//! of them works.
//!
//! Pause, burst, start-up and lasting effects (paper 001, sections 4.2, 4.3
//! and 5.1) come from three rules. A write is done when the buffer has it; a
//! buffer without room waits for lines to reach flash; lines proceed while the
//! array has nothing else to do, and with a share of the device while reads
//! are served. The array's own clock (`array_ns`) advances only then: idle
//! time, link transfers, shares of reads and waiting writes move it on. It
//! never runs ahead of the device's clock, so nothing begins before it was
//! decided on. What the host's IOs ask of the array directly (reads, trims) is
//! asked on that clock too, however far it is behind.

use crate::cache::{ByteRange, Lines};
use crate::describe::{self, Description, Destage};
use crate::ftl::{AnyFtl, Ftl};
use crate::link::Interface;
use crate::nand::{ArrayShape, Nand};
use crate::planted::{Bug, planted};
use crate::units::{byte_ns_q20, transfer_ns, us_ns};
use std::collections::VecDeque;

/// The write buffer and the batch on its way to flash.
#[derive(Clone, Debug)]
struct WriteBuffer {
    destage: Destage,
    capacity: usize,
    /// Lines from which on they are destaged beside the host's writes.
    destage_from: usize,
    batch: usize,
    /// Time taken from the host for each ns of a read, in 2^-10.
    toll_q10: u64,
    idle_delay_ns: u64,
    pipelined: bool,
    lines: Lines,
    /// Where a batch is put together.
    taken: Vec<ByteRange>,
    /// When each line on its way is programmed, on the array's clock.
    in_flight: Vec<u64>,
    array_ns: u64,
    /// When the lines handed to the array are programmed ([`Destage::Immediate`]).
    programmed_ns: VecDeque<u64>,
    /// A line cannot be filled again before it is programmed.
    locks_lines: bool,
    /// Where the run that is written as it grows ended ([`Destage::Run`]).
    run_end: u64,
    /// Line last handed to the array, and when it is programmed.
    last_line: (u64, u64),
}

impl WriteBuffer {
    fn new(b: &describe::Buffer, sector_bytes: u64) -> WriteBuffer {
        let line_bytes = b.line_kib << 10;
        let capacity = (b.kib / b.line_kib) as usize;
        // Nothing waits where lines are handed to the array at once.
        let waiting = if b.destage == Destage::Immediate { 0 } else { capacity };
        WriteBuffer {
            destage: b.destage,
            capacity,
            destage_from: b.destage_from_kib.map_or(b.kib / b.line_kib, |kib| kib / b.line_kib) as usize,
            batch: b.batch_lines as usize,
            toll_q10: (b.background_share / (1.0 - b.background_share) * 1024.0).round() as u64,
            idle_delay_ns: us_ns(b.idle_delay_us),
            pipelined: b.pipelined,
            lines: Lines::new(line_bytes, waiting, sector_bytes),
            taken: Vec::new(),
            in_flight: Vec::new(),
            array_ns: 0,
            programmed_ns: VecDeque::new(),
            locks_lines: b.locks_lines,
            last_line: (u64::MAX, 0),
            run_end: u64::MAX,
        }
    }

    /// Takes the memory that it may need, before a run.
    fn reserve(&mut self) {
        let batch = self.batch.min(self.capacity);
        let immediate = if self.destage == Destage::Immediate { self.capacity } else { 0 };
        self.lines.reserve();
        self.taken.reserve(self.lines.most_ranges(batch));
        self.in_flight.reserve(batch.saturating_sub(self.in_flight.len()));
        self.programmed_ns.reserve(immediate.saturating_sub(self.programmed_ns.len()));
    }

    /// Takes note of a write to a run; true where the run has grown upwards by
    /// whole lines and nothing can come to stand before it.
    fn grows_upwards(&mut self, range: ByteRange) -> bool {
        let upwards = range.start == self.run_end || self.lines.ends_at(range.start);
        let whole = self.lines.line_of(range.end) != self.lines.line_of(range.end - 1);
        if upwards {
            self.run_end = range.end;
        }
        upwards && whole
    }

    /// When data for `range` can be taken, where it is the line last filled.
    fn unlocked_ns(&self, range: ByteRange) -> u64 {
        let (line, programmed) = self.last_line;
        if self.locks_lines && self.lines.touches(line, range) { programmed } else { 0 }
    }

    fn full(&self) -> bool {
        self.lines.len() + self.in_flight.len() >= self.capacity
    }

    /// True where so much waits that destaging should go on.
    fn nearly_full(&self) -> bool {
        let ahead = if self.pipelined { 1 } else { self.batch };
        self.lines.len() + self.in_flight.len() + ahead > self.destage_from
    }

    /// Lines that may be handed to the array now.
    fn may_start(&self) -> usize {
        match (self.pipelined, self.in_flight.is_empty()) {
            (true, _) => (self.batch - self.in_flight.len().min(self.batch)).min(1),
            (false, true) => self.batch,
            (false, false) => 0,
        }
    }

    /// Array time until the next line is programmed; `None` where none is on
    /// its way.
    fn next_done(&self) -> Option<u64> {
        self.in_flight.iter().min().map(|done| done.saturating_sub(self.array_ns))
    }

    /// Moves the array's clock on.
    fn advance(&mut self, time_ns: u64) {
        self.array_ns += time_ns;
        let now = self.array_ns;
        self.in_flight.retain(|done| *done > now);
    }
}

/// The region in one-bit mode and its folding.
#[derive(Clone, Copy, Debug)]
struct Fold {
    pages: u64,
    page_ns: u64,
}

/// Sequential readers that the controller follows: where each would go on, and
/// when the flash has its pages ready.
#[derive(Clone, Debug)]
struct Readers {
    /// Most recent last.
    ends: Vec<(u64, u64)>,
}

impl Readers {
    fn new(streams: u32) -> Readers {
        Readers { ends: vec![(u64::MAX, 0); streams.max(1) as usize] }
    }

    /// Takes out the reader that goes on at `offset`; gives when its pages are
    /// ready.
    #[inline]
    fn continued_by(&mut self, offset: u64) -> Option<u64> {
        let i = self.ends.iter().rposition(|(end, _)| *end == offset)?;
        let (_, ready_ns) = self.ends[i];
        self.ends[..=i].rotate_right(1);
        Some(ready_ns)
    }

    /// Notes a reader in place of the one longest quiet.
    #[inline]
    fn ends_at(&mut self, end: u64, ready_ns: u64) {
        self.ends.rotate_left(1);
        if let Some(last) = self.ends.last_mut() {
            *last = (end, ready_ns);
        }
    }

    /// A controller that follows one reader only loses it to a write, too.
    #[inline]
    fn disturbed_by_write(&mut self) {
        if let [only] = &mut self.ends[..] {
            *only = (u64::MAX, 0);
        }
    }
}

/// A flash device.
#[derive(Clone, Debug)]
pub struct Flash {
    /// The array, with its counters.
    pub nand: Nand,
    /// The FTL.
    pub ftl: AnyFtl,
    /// The interface.
    pub link: Interface,
    buffer: Option<WriteBuffer>,
    fold: Option<Fold>,
    unit_shift: u32,
    units: u64,
    read_ahead: bool,
    seek_read_ns: u64,
    first_page_ns: u64,
    readers: Readers,
    /// Time spent serving, in ns.
    pub busy_ns: u64,
    /// Bytes that the host has read where nothing is written.
    pub unwritten_read: u64,
    quiet_since_ns: u64,
}

impl Flash {
    /// An erased device of a checked description.
    pub fn new(
        d: &Description,
        g: &describe::FlashArray,
        t: &describe::FlashTiming,
        f: &describe::FtlOptions,
        seed: u64,
    ) -> Flash {
        let shape = ArrayShape::new(d, g, f);
        let (ftl, mut nand) = AnyFtl::new(d, shape, t, f, seed);
        let fold = d.slc.as_ref().map(|s| Fold {
            pages: (s.cache_mib << 20) / shape.unit_bytes,
            page_ns: transfer_ns(shape.unit_bytes, byte_ns_q20(s.fold_mb_s)).max(1),
        });
        if let (Some(s), Some(fold)) = (&d.slc, fold) {
            nand.slc_pages_left = fold.pages;
            nand.slc_program_ns = us_ns(s.program_us);
        }
        Flash {
            nand,
            ftl,
            link: Interface::new(&d.link),
            buffer: d.buffer.as_ref().map(|b| WriteBuffer::new(b, d.sector_bytes)),
            fold,
            unit_shift: shape.unit_bytes.trailing_zeros(),
            units: shape.units,
            read_ahead: d.link.read_ahead_kib > 0,
            seek_read_ns: us_ns(d.link.seek_read_us),
            first_page_ns: us_ns(t.read_us) + transfer_ns(shape.unit_bytes, byte_ns_q20(t.bus_mb_s)),
            readers: Readers::new(d.link.read_streams),
            busy_ns: 0,
            unwritten_read: 0,
            quiet_since_ns: 0,
        }
    }

    /// Takes the memory that its books may need, so that serving takes none.
    pub fn reserve(&mut self) {
        self.ftl.reserve();
        if let Some(buffer) = &mut self.buffer {
            buffer.reserve();
        }
    }

    /// Units that a byte range touches.
    fn span(&self, range: ByteRange) -> (u64, u64) {
        let first = range.start >> self.unit_shift;
        (first, ((range.end - 1) >> self.unit_shift) - first + 1)
    }

    /// Reads `size` bytes at `offset`, submitted at `at_ns`; gives when done.
    pub fn read(&mut self, at_ns: u64, offset: u64, size: u64) -> u64 {
        let (slot, start) = self.begin(at_ns);
        let range = ByteRange { start: offset, end: offset + size };
        let reader = self.readers.continued_by(offset);
        let sequential = reader.is_some();
        let latency = self.link.read_latency_ns() + if sequential { 0 } else { self.seek_read_ns };
        let in_buffer = self.buffer.as_ref().is_some_and(|b| !b.lines.is_empty() && b.lines.covers(range));
        let mut ready = start + latency;
        let mut flash_done = ready;
        let mut ahead_ns = reader.unwrap_or(0);
        if !in_buffer {
            let ahead = sequential && self.read_ahead;
            let from = if ahead { ahead_ns.min(ready) } else { ready };
            let (unit, count) = self.span(range);
            let behind = self.array_behind(start).min(from);
            self.decide(from - behind);
            let reads = self.nand.ops.reads;
            flash_done = behind + self.ftl.read(&mut self.nand, from - behind, unit, count);
            if self.nand.ops.reads - reads < count {
                self.unwritten_read += self.unwritten(range, unit, count);
            }
            ahead_ns = flash_done;
            ready = ready.max(flash_done.min(from + self.first_page_ns));
        }
        self.readers.ends_at(offset + size, ahead_ns);
        let sent = self.link.to_host(ready, size);
        let done = self.share(start, sent.max(flash_done));
        self.end(slot, start, done)
    }

    /// How many bytes of a read hold nothing, in the buffer or on flash.
    #[cold]
    fn unwritten(&self, range: ByteRange, unit: u64, count: u64) -> u64 {
        let unit_bytes = self.nand.shape.unit_bytes;
        let part = |unit: u64| ByteRange {
            start: (unit * unit_bytes).max(range.start),
            end: ((unit + 1) * unit_bytes).min(range.end),
        };
        let waits = |part: ByteRange| self.buffer.as_ref().is_some_and(|buffer| buffer.lines.covers(part));
        let holds_nothing = |unit: &u64| self.ftl.locate(*unit).is_none() && !waits(part(*unit));
        (unit..unit + count).filter(holds_nothing).map(|unit| part(unit).end - part(unit).start).sum()
    }

    /// What the array is told next was decided on at `at_ns`, in checked runs.
    #[inline]
    fn decide(&mut self, at_ns: u64) {
        if let Some(witness) = &mut self.nand.witness {
            witness.decide(at_ns);
        }
    }

    /// How far the array's clock is behind the device's, which is `now_ns`. One
    /// that has nothing on its way catches up.
    #[inline]
    fn array_behind(&mut self, now_ns: u64) -> u64 {
        let Some(buffer) = &mut self.buffer else { return 0 };
        if buffer.destage == Destage::Immediate {
            return 0;
        }
        if buffer.in_flight.is_empty() {
            buffer.array_ns = buffer.array_ns.max(now_ns);
        }
        now_ns.saturating_sub(buffer.array_ns)
    }

    /// Destaging with a share of the device lengthens a read that would have
    /// taken from `start` to `done`.
    fn share(&mut self, start: u64, done: u64) -> u64 {
        let toll_q10 = self.buffer.as_ref().map_or(0, |b| b.toll_q10);
        if toll_q10 == 0 {
            return done;
        }
        if self.fits_behind(start, done - start) {
            self.destage(start, done - start, false);
            return done;
        }
        let toll = ((done - start) * toll_q10) >> 10;
        done + toll - self.destage(done, toll, false)
    }

    /// True where the next line takes no longer than a read of `time_ns` that
    /// begins at `start_ns`, so that it costs the host nothing. Merges do not.
    fn fits_behind(&mut self, start_ns: u64, time_ns: u64) -> bool {
        let starts =
            |b: &WriteBuffer| b.destage == Destage::Async && b.in_flight.is_empty() && !b.lines.is_empty();
        if self.buffer.as_ref().is_some_and(starts) {
            self.start_lines(start_ns);
        }
        self.buffer.as_ref().is_some_and(|b| b.next_done().is_some_and(|left| left <= time_ns))
    }

    /// Lets lines proceed for up to `time_ns` of array time, the device's clock
    /// being `now_ns`; gives the time there was nothing to do in.
    fn destage(&mut self, now_ns: u64, time_ns: u64, only_if_nearly_full: bool) -> u64 {
        let mut left = time_ns;
        loop {
            let Some(buffer) = &mut self.buffer else { return left };
            let wanted = !buffer.lines.is_empty() && (!only_if_nearly_full || buffer.nearly_full());
            if wanted && buffer.may_start() > 0 && buffer.destage == Destage::Async {
                self.start_lines(now_ns + time_ns - left);
                continue;
            }
            let Some(next) = buffer.next_done() else { return left };
            if left == 0 {
                return 0;
            }
            let step = next.min(left);
            buffer.advance(if planted(Bug::ArrayRunsAhead) { 2 * step } else { step });
            left -= step;
        }
    }

    /// Writes `size` bytes at `offset`, submitted at `at_ns`; gives when done.
    #[inline]
    pub fn write(&mut self, at_ns: u64, offset: u64, size: u64) -> u64 {
        let (slot, start) = self.begin(at_ns);
        self.readers.disturbed_by_write();
        let range = ByteRange { start: offset, end: offset + size };
        let unlocked = self.buffer.as_ref().map_or(0, |b| b.unlocked_ns(range));
        let received = self.link.from_host(start.max(unlocked), size);
        let (unit, count) = self.span(range);
        if let Some(witness) = &mut self.nand.witness {
            witness.promise(unit, count);
        }
        let destage = self.buffer.as_ref().map(|b| b.destage);
        let done = match destage {
            None => self.program_range(received, range),
            Some(Destage::Immediate) => self.write_behind(received, range),
            Some(_) => {
                // The array has the time of the link transfer to itself.
                self.destage(start, received - start, true);
                self.buffer_range(received, range)
            }
        };
        let done = if self.ftl.settles() { self.settle(done) } else { done };
        self.end(slot, start, done)
    }

    /// Empties the buffer and has the FTL merge what lies in logs.
    #[cold]
    fn settle(&mut self, at_ns: u64) -> u64 {
        let now = self.drain(at_ns);
        let behind = self.array_behind(now);
        self.decide(now - behind);
        behind + self.ftl.settle(&mut self.nand, now - behind)
    }

    /// Programs a byte range; pages written in part are read first.
    fn program_range(&mut self, at_ns: u64, range: ByteRange) -> u64 {
        self.decide(at_ns);
        let (unit, count) = self.span(range);
        let mask = (1u64 << self.unit_shift) - 1;
        let mut ready = at_ns;
        if range.start & mask != 0 {
            ready = self.ftl.read(&mut self.nand, ready, unit, 1);
        }
        if range.end & mask != 0 && (count > 1 || range.start & mask == 0) {
            ready = self.ftl.read(&mut self.nand, ready, unit + count - 1, 1);
        }
        self.ftl.write(&mut self.nand, ready, unit, count)
    }

    /// The buffer hides programming as long as it has lines to spare.
    fn write_behind(&mut self, at_ns: u64, range: ByteRange) -> u64 {
        let mut now = at_ns;
        let mut rest = range;
        while rest.start < rest.end {
            let Some(buffer) = &mut self.buffer else { return now };
            let part = buffer.lines.first_part(rest);
            while buffer.programmed_ns.front().is_some_and(|t| *t <= now) {
                buffer.programmed_ns.pop_front();
            }
            if buffer.programmed_ns.len() >= buffer.capacity {
                now = now.max(buffer.programmed_ns.pop_front().unwrap_or(now));
            }
            let programmed = self.program_range(now, part);
            if let Some(buffer) = &mut self.buffer {
                buffer.programmed_ns.push_back(programmed);
                buffer.last_line = (buffer.lines.line_of(part.start), programmed);
            }
            rest.start = part.end;
        }
        now
    }

    /// Puts a range into the buffer's lines, waiting for room where there is none.
    fn buffer_range(&mut self, at_ns: u64, range: ByteRange) -> u64 {
        let mut now = at_ns;
        let mut rest = range;
        while rest.start < rest.end {
            let Some(buffer) = &mut self.buffer else { return now };
            let part = buffer.lines.first_part(rest);
            let breaks_run =
                buffer.destage == Destage::Run && !buffer.lines.is_empty() && !buffer.lines.adjoins(part);
            if breaks_run || buffer.full() && !buffer.lines.holds(part.start) {
                now = self.wait_for_line(now);
                continue;
            }
            let written_on = buffer.destage == Destage::Run && buffer.grows_upwards(part);
            buffer.lines.put(part);
            rest.start = part.end;
            if written_on && rest.start == rest.end {
                now = self.wait_for_line(now);
            }
        }
        if self.buffer.as_ref().is_some_and(|b| b.destage == Destage::Async) {
            self.destage(now, 0, true);
        }
        now
    }

    /// Waits until a line (of a batch: all of them) is programmed.
    fn wait_for_line(&mut self, now_ns: u64) -> u64 {
        while self.buffer.as_ref().is_some_and(|b| b.may_start() > 0 && !b.lines.is_empty()) {
            self.start_lines(now_ns);
        }
        let Some(buffer) = &mut self.buffer else { return now_ns };
        let next = buffer.next_done().unwrap_or(0);
        buffer.advance(next);
        now_ns + next
    }

    /// Hands lines to the array: the FTL's books change now, their time passes
    /// on the array's clock.
    fn start_lines(&mut self, now_ns: u64) {
        let Some(buffer) = &mut self.buffer else { return };
        if buffer.in_flight.is_empty() {
            buffer.array_ns = buffer.array_ns.max(now_ns);
        }
        if let Some(witness) = &mut self.nand.witness {
            // With several commands at once one may have waited beyond `now_ns`.
            let latest = now_ns.max(self.quiet_since_ns);
            witness.require(buffer.array_ns <= latest, "the array's clock ran ahead of the device's");
        }
        let at = buffer.array_ns;
        let before = buffer.lines.len();
        let mut batch = std::mem::take(&mut buffer.taken);
        buffer.lines.take_batch(buffer.may_start(), &mut batch);
        let taken = before - buffer.lines.len();
        let done = batch.iter().map(|range| self.program_range(at, *range)).max().unwrap_or(at);
        if let Some(buffer) = &mut self.buffer {
            buffer.taken = batch;
            buffer.in_flight.extend(std::iter::repeat_n(done.max(at), taken));
            buffer.advance(0);
        }
    }

    /// What the device does on its own between `from_ns` and `to_ns`.
    pub fn idle(&mut self, from_ns: u64, to_ns: u64) {
        let mut now = from_ns;
        if let Some(buffer) = &self.buffer
            && buffer.destage != Destage::Immediate
        {
            // What is on its way goes on; new lines wait for the delay to pass.
            let wake = (self.quiet_since_ns + buffer.idle_delay_ns).clamp(from_ns, to_ns);
            self.destage(from_ns, wake - from_ns, true);
            let left = self.destage(wake, to_ns - wake, false);
            now = to_ns - left;
        }
        while now < to_ns {
            let behind = self.array_behind(now);
            self.decide(now - behind);
            match self.ftl.reclaim_idle(&mut self.nand, now - behind) {
                Some(end) => now = (behind + end).max(now + 1),
                None => break,
            }
        }
        self.fold_slc(from_ns, to_ns);
    }

    /// Folds the one-bit region in idle time.
    fn fold_slc(&mut self, from_ns: u64, to_ns: u64) {
        let Some(fold) = self.fold else { return };
        let folded =
            ((to_ns.saturating_sub(from_ns)) / fold.page_ns).min(fold.pages - self.nand.slc_pages_left);
        self.nand.slc_pages_left += folded;
        self.nand.ops.reads += folded;
        self.nand.ops.programs += folded;
        self.nand.ops.copies += folded;
    }

    /// Empties the buffer.
    pub fn flush(&mut self, at_ns: u64) -> u64 {
        let (slot, start) = self.begin(at_ns);
        let now = self.link.command(start);
        let now = self.drain(now);
        if let Some(witness) = &mut self.nand.witness {
            witness.kept_all_promises();
        }
        self.end(slot, start, now)
    }

    /// Waits until nothing is in the buffer.
    fn drain(&mut self, at_ns: u64) -> u64 {
        let mut now = at_ns;
        while let Some(buffer) = &mut self.buffer {
            if let Some(last) = buffer.programmed_ns.drain(..).max() {
                now = now.max(last);
            }
            if buffer.in_flight.is_empty() && buffer.lines.is_empty() {
                break;
            }
            now = self.wait_for_line(now);
        }
        now
    }

    /// Forgets the whole pages in `size` bytes at `offset`.
    pub fn trim(&mut self, at_ns: u64, offset: u64, size: u64) -> u64 {
        let (slot, start) = self.begin(at_ns);
        let mut now = self.link.command(start);
        let first = (offset + (1 << self.unit_shift) - 1) >> self.unit_shift;
        let end = ((offset + size) >> self.unit_shift).min(self.units);
        if first < end {
            let whole = ByteRange { start: first << self.unit_shift, end: end << self.unit_shift };
            if let Some(buffer) = &mut self.buffer {
                buffer.lines.drop_range(whole);
            }
            if let Some(witness) = &mut self.nand.witness {
                (first..end).for_each(|unit| witness.trim(unit));
            }
            let behind = self.array_behind(now);
            self.decide(now - behind);
            now = behind + self.ftl.trim(&mut self.nand, now - behind, first, end - first);
        }
        self.end(slot, start, now)
    }

    #[inline]
    fn begin(&mut self, at_ns: u64) -> (usize, u64) {
        if at_ns > self.quiet_since_ns {
            self.idle(self.quiet_since_ns, at_ns);
        }
        self.link.accept(at_ns)
    }

    #[inline]
    fn end(&mut self, slot: usize, start_ns: u64, done_ns: u64) -> u64 {
        debug_assert!(done_ns >= start_ns, "an IO ended before it began");
        self.link.release(slot, done_ns);
        let from = start_ns.max(self.quiet_since_ns);
        if done_ns > from {
            self.busy_ns += done_ns - from;
        }
        self.quiet_since_ns = self.quiet_since_ns.max(done_ns);
        done_ns
    }

    /// Time without host IOs up to `now_ns` has passed (a pause).
    pub fn pass(&mut self, now_ns: u64) {
        if now_ns > self.quiet_since_ns {
            self.idle(self.quiet_since_ns, now_ns);
            self.quiet_since_ns = now_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reader_is_lost_to_anything_else_and_several_are_not() {
        let mut one = Readers::new(1);
        one.ends_at(100, 7);
        assert_eq!(one.continued_by(100), Some(7));
        one.ends_at(200, 8);
        one.ends_at(999, 9);
        assert_eq!(one.continued_by(200), None);
        one.disturbed_by_write();
        assert_eq!(one.continued_by(999), None);
        let mut two = Readers::new(2);
        two.ends_at(100, 7);
        two.ends_at(500, 8);
        two.disturbed_by_write();
        assert_eq!(two.continued_by(100), Some(7));
        two.ends_at(200, 9);
        two.ends_at(900, 1);
        assert_eq!((two.continued_by(500), two.continued_by(200)), (None, Some(9)));
    }
}
