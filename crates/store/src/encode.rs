//! Columns of integers to the bytes of Parquet pages, cheaply.
//!
//! Method: three encodings of the Parquet format, chosen for what uFLIP's
//! columns look like, so that an IO costs a few nanoseconds and a few bytes:
//! - `DELTA_BINARY_PACKED` (blocks of 128, miniblocks of 32) for times;
//! - `BYTE_STREAM_SPLIT` + zstd for random offsets, one zstd block per byte
//!   plane, so that each plane gets its own entropy table;
//! - `RLE_DICTIONARY` for columns with few values; a constant column is one
//!   run of five bytes whatever its length.
//!
//! Source: github.com/apache/parquet-format, Encodings.md.

use std::collections::HashMap;
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

const BLOCK: usize = 128;
const MINI: usize = 32;

/// Appends the unsigned LEB128 form of `n`.
fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn zigzag(n: i64, out: &mut Vec<u8>) {
    varint(((n << 1) ^ (n >> 63)) as u64, out);
}

/// Bits needed to hold `n`: 0 for 0.
fn bits(n: u64) -> u32 {
    64 - n.leading_zeros()
}

/// Appends `values` in `width` bits each, least significant bits first. The
/// number of values times `width` must be whole bytes.
fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    let (mut word, mut filled) = (0u64, 0u32);
    for &value in values {
        word |= value << filled;
        if filled + width >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            let used = 64 - filled;
            word = if used == 64 { 0 } else { value >> used };
            filled = filled + width - 64;
        } else {
            filled += width;
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled as usize / 8]);
}

/// Appends `values` as `DELTA_BINARY_PACKED` 64-bit integers.
pub(crate) fn delta(values: &[i64], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint((BLOCK / MINI) as u64, out);
    varint(values.len() as u64, out);
    let Some(&first) = values.first() else {
        zigzag(0, out);
        return;
    };
    zigzag(first, out);
    let mut deltas = [0u64; BLOCK];
    for start in (0..values.len() - 1).step_by(BLOCK) {
        let block = &values[start..values.len().min(start + BLOCK + 1)];
        let n = block.len() - 1;
        let mut min = i64::MAX;
        for i in 0..n {
            let d = block[i + 1].wrapping_sub(block[i]);
            min = min.min(d);
            deltas[i] = d as u64;
        }
        for d in &mut deltas[..n] {
            *d = d.wrapping_sub(min as u64);
        }
        deltas[n..].fill(0);
        zigzag(min, out);
        let widths_at = out.len();
        out.extend_from_slice(&[0; BLOCK / MINI]);
        for (m, mini) in deltas.chunks_exact(MINI).enumerate().take(n.div_ceil(MINI)) {
            let width = bits(mini.iter().fold(0, |all, d| all | d));
            out[widths_at + m] = width as u8;
            pack(mini, width, out);
        }
    }
}

/// Compresses the byte planes of 64-bit integers; keeps its state between calls.
pub(crate) struct Planes {
    encoder: Encoder<'static>,
    plane: Vec<u8>,
}

impl Planes {
    /// Reserves what zstd needs at level 1.
    ///
    /// # Errors
    /// Out of memory, as zstd says it.
    pub(crate) fn new() -> std::io::Result<Planes> {
        let mut encoder = Encoder::new(1)?;
        encoder.set_parameter(CParameter::ContentSizeFlag(false))?;
        // The window need not be larger than a few planes: less memory to touch.
        encoder.set_parameter(CParameter::WindowLog(17))?;
        Ok(Planes { encoder, plane: Vec::new() })
    }

    /// Appends `values` as `BYTE_STREAM_SPLIT` in one zstd frame.
    ///
    /// # Errors
    /// What zstd says, which is out of memory only.
    pub(crate) fn compress(&mut self, values: &[i64], out: &mut Vec<u8>) -> std::io::Result<()> {
        self.encoder.reinit()?;
        for byte in 0..8 {
            self.plane.clear();
            self.plane.extend(values.iter().map(|v| (v >> (8 * byte)) as u8));
            let mut input = InBuffer::around(&self.plane);
            while input.pos() < self.plane.len() {
                with_room(out, |room| self.encoder.run(&mut input, room))?;
            }
            while with_room(out, |room| self.encoder.flush(room))? > 0 {}
        }
        while with_room(out, |room| self.encoder.finish(room, true))? > 0 {}
        Ok(())
    }
}

/// Calls `f` with at least 16 KiB of room behind what `out` holds.
fn with_room(
    out: &mut Vec<u8>,
    f: impl FnOnce(&mut OutBuffer<'_, Vec<u8>>) -> std::io::Result<usize>,
) -> std::io::Result<usize> {
    out.reserve(16 << 10);
    let at = out.len();
    f(&mut OutBuffer::around_pos(out, at))
}

/// A column with few values: the values in order of appearance, and which of
/// them each row has.
#[derive(Default)]
pub(crate) struct Dictionary {
    /// The distinct values, in order of first appearance.
    pub(crate) values: Vec<u32>,
    /// One entry a row; empty where there is only one value.
    indices: Vec<u32>,
    rows: usize,
    found: HashMap<u32, u32>,
}

impl Dictionary {
    /// Sorts out `rows` values, forgetting the former.
    pub(crate) fn build(&mut self, column: &[u32]) {
        self.values.clear();
        self.indices.clear();
        self.found.clear();
        self.rows = column.len();
        let Some(&first) = column.first() else { return };
        self.values.push(first);
        if column.iter().fold(0, |all, v| all | (v ^ first)) == 0 {
            return;
        }
        self.found.insert(first, 0);
        self.indices.reserve(column.len());
        let (mut last, mut index) = (first, 0);
        for &value in column {
            if value != last {
                index = self.index_of(value);
                last = value;
            }
            self.indices.push(index);
        }
    }

    fn index_of(&mut self, value: u32) -> u32 {
        if self.values.len() <= 8
            && let Some(i) = self.values.iter().position(|v| *v == value)
        {
            return i as u32;
        }
        let next = self.values.len() as u32;
        let index = *self.found.entry(value).or_insert(next);
        if index == next {
            self.values.push(value);
        }
        index
    }

    /// Appends the body of the `RLE_DICTIONARY` data page.
    pub(crate) fn data_page(&self, out: &mut Vec<u8>) {
        let width = bits(self.values.len().saturating_sub(1) as u64).max(1);
        out.push(width as u8);
        if self.values.len() <= 1 {
            rle_run(0, self.rows, width, out);
        } else {
            rle_hybrid(&self.indices, width, out);
        }
    }
}

/// Appends definition levels of 0 and 1 as a data page of version 1 has them: their
/// length in four bytes, then the hybrid.
pub(crate) fn levels(is_there: &[u32], out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    rle_hybrid(is_there, 1, out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

fn rle_run(value: u32, rows: usize, width: u32, out: &mut Vec<u8>) {
    varint((rows as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends the RLE / bit-packing hybrid: repeats of 16 or more as runs, all
/// else bit-packed in groups of eight.
fn rle_hybrid(indices: &[u32], width: u32, out: &mut Vec<u8>) {
    const WORTH_A_RUN: usize = 16;
    let repeats = |from: usize| {
        let value = indices[from];
        indices[from..].iter().take_while(|v| **v == value).count()
    };
    let mut at = 0;
    while at < indices.len() {
        let run = repeats(at);
        if run >= WORTH_A_RUN {
            rle_run(indices[at], run, width, out);
            at += run;
            continue;
        }
        let start = at;
        while at < indices.len() && {
            let ahead = &indices[at..indices.len().min(at + WORTH_A_RUN)];
            ahead.len() < WORTH_A_RUN || ahead.iter().any(|v| *v != ahead[0])
        } {
            at = (at + 8).min(indices.len());
        }
        let literal = &indices[start..at];
        varint((literal.len().div_ceil(8) as u64) << 1 | 1, out);
        for group in literal.chunks(8) {
            let mut eight = [0u64; 8];
            for (to, from) in eight.iter_mut().zip(group) {
                *to = u64::from(*from);
            }
            pack(&eight, width, out);
        }
    }
}
