//! Block traces: what an application asked of a device, in one form whatever
//! tool recorded it, and the trace's own character.
//!
//! How: [`parse`] knows the text forms apart by their lines ([`text`]); own
//! records come through [`of_records`]. [`character`] is a pure function.
//! Units: bytes, ns. Source: paper 002, section 3 (R sectors a sync, focal factor
//! f, logical blocks), blkparse(1), fio's iolog versions 2 and 3, the kernel's
//! `block` trace events.
//!
//! What is left open there: a trace does not say what a sync is. Here the writes
//! between two flushes are one; in a trace without flushes each write is its
//! own, as with O_SYNC.

pub mod text;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uflip_device::{Bytes, IoRecord, Mode, Nanos};

pub use text::{TraceError, parse, parse_device, read_device};

/// One IO of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceIo {
    /// From the trace's first IO; 0 where the trace has no times.
    pub at: Nanos,
    /// In bytes.
    pub offset: u64,
    /// In bytes; 0 for a flush.
    pub size: u32,
    /// What it does.
    pub mode: Mode,
    /// Where the trace has it.
    pub response: Option<Nanos>,
}

/// What a trace is like.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Character {
    /// IOs that read.
    pub reads: u64,
    /// IOs that write.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trims, which no model predicts.
    pub trims: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// IOs of each size.
    pub sizes: BTreeMap<u32, u64>,
    /// IOs whose offset is a multiple of the size, as a share.
    pub aligned_share: Option<f64>,
    /// IOs that begin where one of the last 16 sequential streams ended.
    pub sequential_share: Option<f64>,
    /// Streams of 4 sequential IOs or more.
    pub sequential_streams: u64,
    /// Syncs: groups of writes.
    pub syncs: u64,
    /// R: mean 512-byte sectors a sync.
    pub sectors_per_sync: Option<f64>,
    /// f: mean share of a sync's sectors in one of the logical blocks it
    /// touches, that is 1 over their number.
    pub focal_factor: Option<f64>,
    /// Logical blocks that any write touches.
    pub logical_blocks: u64,
    /// Merges with so many log blocks, replaced in the order of their opening.
    pub merges_by_log_blocks: BTreeMap<u32, u64>,
}

/// Own records as a trace, in the order of submission.
pub fn of_records(records: &[IoRecord]) -> Vec<TraceIo> {
    let mut all: Vec<TraceIo> = records
        .iter()
        .map(|r| TraceIo {
            at: r.submit(),
            offset: r.offset().0,
            size: r.size(),
            mode: r.mode(),
            // What the device took, without the wait for it.
            response: Some(r.service()),
        })
        .collect();
    all.sort_by_key(|io| io.at);
    all
}

/// The logical blocks that an IO touches.
pub fn blocks(io: &TraceIo, logical_block: Bytes) -> std::ops::RangeInclusive<u64> {
    let block = logical_block.0.max(1);
    let last = io.offset.saturating_add(u64::from(io.size.max(1)) - 1);
    io.offset / block..=last / block
}

/// Gives a trace's writes, a group for each sync, to `each`.
pub fn each_sync(trace: &[TraceIo], mut each: impl FnMut(&[TraceIo])) {
    let flushes = trace.iter().any(|io| io.mode == Mode::Flush);
    let mut group: Vec<TraceIo> = Vec::new();
    for io in trace {
        let ends = io.mode == Mode::Flush || (io.mode == Mode::Write && !flushes);
        if ends && !group.is_empty() {
            each(&group);
            group.clear();
        }
        if io.mode == Mode::Write {
            group.push(*io);
        }
    }
    if !group.is_empty() {
        each(&group);
    }
}

/// A trace's writes, a group for each sync.
pub fn syncs(trace: &[TraceIo]) -> Vec<Vec<TraceIo>> {
    let mut groups = Vec::new();
    each_sync(trace, |group| groups.push(group.to_vec()));
    groups
}

/// The logical blocks that a group of writes touches, at most 4096 of each.
pub fn touched(group: &[TraceIo], logical_block: Bytes) -> BTreeSet<u64> {
    group.iter().flat_map(|io| blocks(io, logical_block).take(4096)).collect()
}

/// Merges where `logs` logical blocks may be open at once: each write outside
/// the open ones opens another and, where all are in use, merges the oldest.
fn merges(trace: &[TraceIo], logical_block: Bytes, logs: u32) -> u64 {
    let (mut open, mut merges) = (VecDeque::new(), 0);
    for io in trace.iter().filter(|io| io.mode == Mode::Write) {
        for block in blocks(io, logical_block).take(4096) {
            if open.contains(&block) {
                continue;
            }
            open.push_back(block);
            if open.len() > logs as usize {
                open.pop_front();
                merges += 1;
            }
        }
    }
    merges
}

/// What `trace` is like on a device with logical blocks of this size.
pub fn character(trace: &[TraceIo], logical_block: Bytes) -> Character {
    let mut c = Character::default();
    let mut ends: VecDeque<(u64, u32)> = VecDeque::new();
    let (mut moving, mut aligned, mut sequential) = (0u64, 0u64, 0u64);
    for io in trace {
        match io.mode {
            Mode::Read => (c.reads, c.read_bytes) = (c.reads + 1, c.read_bytes + u64::from(io.size)),
            Mode::Write => (c.writes, c.write_bytes) = (c.writes + 1, c.write_bytes + u64::from(io.size)),
            Mode::Flush => c.flushes += 1,
            Mode::Trim => c.trims += 1,
        }
        if io.size == 0 || matches!(io.mode, Mode::Flush | Mode::Trim) {
            continue;
        }
        moving += 1;
        *c.sizes.entry(io.size).or_default() += 1;
        aligned += u64::from(io.offset.is_multiple_of(u64::from(io.size)));
        let before = ends.iter().position(|(end, _)| *end == io.offset).and_then(|at| ends.remove(at));
        let length = before.map_or(1, |(_, length)| length.saturating_add(1));
        sequential += u64::from(length > 1);
        c.sequential_streams += u64::from(length == 4);
        ends.push_back((io.offset.saturating_add(u64::from(io.size)), length));
        if ends.len() > 16 {
            ends.pop_front();
        }
    }
    let share = |n: u64| (moving > 0).then(|| n as f64 / moving as f64);
    (c.aligned_share, c.sequential_share) = (share(aligned), share(sequential));
    let mut f = 0.0;
    each_sync(trace, |group| {
        c.syncs += 1;
        f += 1.0 / touched(group, logical_block).len().max(1) as f64;
    });
    if c.syncs > 0 {
        let n = c.syncs as f64;
        c.sectors_per_sync = Some(c.write_bytes as f64 / 512.0 / n);
        c.focal_factor = Some(f / n);
    }
    let all: BTreeSet<u64> = trace
        .iter()
        .filter(|io| io.mode == Mode::Write)
        .flat_map(|io| blocks(io, logical_block).take(4096))
        .collect();
    c.logical_blocks = all.len() as u64;
    c.merges_by_log_blocks = [1, 2, 4, 8, 16, 32].map(|n| (n, merges(trace, logical_block, n))).into();
    c
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
