//! What is written, and the memory it is written from.
//!
//! By default every write carries bytes that no device can compress or has
//! seen before: a random page-aligned buffer, and in each 512-byte sector a
//! 16-byte stamp that no other write of the session carries and by which the
//! tool knows its own writing again ([`crate::stamp`]). Stamping happens before
//! the clock is read. Paper 004, appendix A, offers two other contents:
//! the age of the device in writes, and a fixed byte.

use crate::io::{Io, Mode};
use crate::rng::{Rng, derive_seed};
use crate::stamp::Key;
use serde::{Deserialize, Serialize};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::str::FromStr;

/// What write buffers hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Incompressible and never the same twice.
    #[default]
    Random,
    /// All zeros.
    Zeros,
    /// One byte throughout.
    Byte(u8),
    /// Each 8-byte word holds the number of writes the stream has done so far
    /// in the session (paper 004, appendix A: "the approximate age of the
    /// device, in number of writes").
    Age,
    /// The same, counted on from so many writes: what a resumed job uses.
    AgeFrom(u64),
    /// The bytes 0x00 to 0xff, cyclically, from the start of every IO (paper
    /// 004, appendix A).
    Cyclic,
}

impl FromStr for Data {
    type Err = String;
    fn from_str(text: &str) -> Result<Data, String> {
        match text {
            "random" => Ok(Data::Random),
            "zeros" => Ok(Data::Zeros),
            "age" => Ok(Data::Age),
            "cyclic" => Ok(Data::Cyclic),
            _ => {
                let from = text.strip_prefix("age:").and_then(|n| n.parse().ok()).map(Data::AgeFrom);
                let byte = text.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok());
                from.or(byte.map(Data::Byte)).ok_or_else(|| {
                    format!(
                        "'{text}' is no buffer content; type random, zeros, cyclic, age or a byte such as 0xa5"
                    )
                })
            }
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Random => f.write_str("random"),
            Data::Zeros => f.write_str("zeros"),
            Data::Byte(b) => write!(f, "0x{b:02x}"),
            Data::Age => f.write_str("age"),
            Data::AgeFrom(writes) => write!(f, "age:{writes}"),
            Data::Cyclic => f.write_str("cyclic"),
        }
    }
}

/// Buffers start on this boundary: no device or page asks for more.
pub const ALIGNMENT: usize = 4096;

/// Zeroed memory on a page boundary, as O_DIRECT wants it.
pub struct AlignedBuffer {
    start: *mut u8,
    length: usize,
}

// SAFETY: the buffer owns its memory alone and hands out slices only through
// &self and &mut self, so it may move to another thread like a Vec.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Memory for `length` bytes, touched.
    ///
    /// # Panics
    /// Where `length` is zero or beyond what an allocation can be.
    pub fn new(length: usize) -> AlignedBuffer {
        assert!(length > 0, "an empty IO buffer was asked for");
        let layout = Layout::from_size_align(length, ALIGNMENT).expect("an IO buffer below isize::MAX");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        AlignedBuffer { start, length }
    }

    /// A buffer without memory: what stands where the buffer of a request under
    /// way was, and what flushes and trims carry.
    pub const fn empty() -> AlignedBuffer {
        AlignedBuffer { start: std::ptr::without_provenance_mut(ALIGNMENT), length: 0 }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: start points at `length` initialised bytes owned by self; that
        // of an empty one is no null and aligned.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    /// The bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and &mut self means nobody else looks.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer of {} bytes", self.length)
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.length == 0 {
            return;
        }
        let layout = Layout::from_size_align(self.length, ALIGNMENT).expect("the layout it was made with");
        // SAFETY: allocated in `new` with this very layout, freed once.
        unsafe { dealloc(self.start, layout) }
    }
}

/// The buffer of one IO in flight, kept ready for the next write.
pub struct IoBuffer {
    memory: AlignedBuffer,
    data: Data,
    key: Key,
    /// Where this buffer's nonces begin, far from every other buffer's.
    identity: u64,
    writes: u64,
    /// A read may have left its own bytes.
    read_into: bool,
    rng: Rng,
}

impl IoBuffer {
    /// Ready for IOs of up to `capacity` bytes with the content `data`, stamped
    /// with `key` where that is random. Buffers of the same `seed` and different
    /// `index` never stamp the same bytes.
    pub fn new(capacity: usize, data: Data, key: Key, seed: u64, index: u64) -> IoBuffer {
        let identity = derive_seed(seed, index);
        let mut buffer = IoBuffer {
            memory: AlignedBuffer::new(capacity),
            data,
            key,
            identity,
            writes: if let Data::AgeFrom(writes) = data { writes } else { 0 },
            read_into: false,
            rng: Rng::new(identity),
        };
        buffer.fill();
        buffer
    }

    fn fill(&mut self) {
        match self.data {
            Data::Random => self.rng.fill(self.memory.bytes_mut()),
            Data::Zeros | Data::Age | Data::AgeFrom(_) => self.memory.bytes_mut().fill(0),
            Data::Cyclic => {
                (0u8..=255).cycle().zip(self.memory.bytes_mut()).for_each(|(value, byte)| *byte = value);
            }
            Data::Byte(b) => self.memory.bytes_mut().fill(b),
        }
    }

    /// The bytes for `io`, with fresh content where it is a write. Grows for an
    /// IO larger than any before it: the one place that may allocate, before
    /// the clock is read.
    #[inline]
    pub fn prepare(&mut self, io: &Io) -> &mut [u8] {
        // A trim moves no bytes, however large its range.
        let size = if io.mode == Mode::Trim { 0 } else { io.size as usize };
        if size > self.memory.length {
            self.memory = AlignedBuffer::new(size);
            self.fill();
        }
        if io.mode == Mode::Write {
            // Random bytes stay what a read left: each sector's stamp is new, and
            // filling again would take longer than all else between two IOs.
            if self.read_into && self.data != Data::Random {
                self.fill();
                self.read_into = false;
            }
            match self.data {
                Data::Random => self.stamp(size),
                Data::Age | Data::AgeFrom(_) => {
                    let age = self.writes.to_le_bytes();
                    self.memory.bytes_mut()[..size].chunks_exact_mut(8).for_each(|w| w.copy_from_slice(&age));
                }
                Data::Zeros | Data::Byte(_) | Data::Cyclic => {}
            }
            self.writes += 1;
        } else if io.mode == Mode::Read {
            self.read_into = true;
        }
        &mut self.memory.bytes_mut()[..size]
    }

    /// Makes each sector of the next write one that was never written before,
    /// and one that is known as ours.
    #[inline]
    fn stamp(&mut self, size: usize) {
        let first = self.identity.wrapping_add(self.writes << 20);
        self.key.stamp(&mut self.memory.bytes_mut()[..size], first);
    }

    /// Where the memory lies, for registering it with io_uring.
    pub(crate) fn iovec(&mut self) -> libc::iovec {
        let bytes = self.memory.bytes_mut();
        libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Arrival;
    use crate::stamp::SECTOR;
    use crate::units::Bytes;
    use std::collections::HashSet;

    fn write(size: u32) -> Io {
        Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size, mode: Mode::Write, pattern: 0 }
    }

    #[test]
    fn no_sector_is_ever_written_twice() {
        let mut seen = HashSet::new();
        for index in 0..4 {
            let mut buffer = IoBuffer::new(8192, Data::Random, Key::DEVICE, 9, index);
            for _ in 0..200 {
                for sector in buffer.prepare(&write(8192)).chunks(SECTOR) {
                    assert!(seen.insert(sector.to_vec()), "a sector came twice");
                }
            }
        }
    }

    #[test]
    fn random_bytes_use_all_values_evenly() {
        let mut buffer = IoBuffer::new(1 << 16, Data::Random, Key::DEVICE, 1, 0);
        let mut counts = [0u32; 256];
        buffer.prepare(&write(1 << 16)).iter().for_each(|b| counts[usize::from(*b)] += 1);
        // 256 expected each, standard deviation 16.
        assert!(counts.iter().all(|c| (150..370).contains(c)), "{counts:?}");
    }

    #[test]
    fn other_contents_are_what_they_say() {
        assert!(
            IoBuffer::new(512, Data::Zeros, Key::DEVICE, 1, 0).prepare(&write(512)).iter().all(|b| *b == 0)
        );
        assert!(
            IoBuffer::new(512, Data::Byte(0xa5), Key::DEVICE, 1, 0)
                .prepare(&write(512))
                .iter()
                .all(|b| *b == 0xa5)
        );
        let mut age = IoBuffer::new(512, Data::Age, Key::DEVICE, 1, 0);
        age.prepare(&write(512));
        assert_eq!(age.prepare(&write(512))[..16], [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let mut age = IoBuffer::new(512, Data::AgeFrom(0x1234), Key::DEVICE, 1, 0);
        assert_eq!(age.prepare(&write(512))[..9], [0x34, 0x12, 0, 0, 0, 0, 0, 0, 0x34]);
        // Cyclically, also after a read into the buffer was larger than it.
        let mut cyclic = IoBuffer::new(512, Data::Cyclic, Key::DEVICE, 1, 0);
        for size in [512, 8192] {
            let bytes = cyclic.prepare(&write(size));
            assert!(bytes.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 256), "{size}");
        }
    }

    #[test]
    fn what_a_read_left_is_not_written() {
        let read = Io { mode: Mode::Read, ..write(512) };
        for (data, expected) in [(Data::Zeros, 0), (Data::Byte(7), 7), (Data::Cyclic, 0)] {
            let mut buffer = IoBuffer::new(512, data, Key::DEVICE, 1, 0);
            buffer.prepare(&read).fill(0xee);
            assert_eq!(buffer.prepare(&write(512))[0], expected, "{data}");
        }
    }

    #[test]
    fn a_larger_io_gets_a_larger_buffer() {
        let mut buffer = IoBuffer::new(512, Data::Random, Key::DEVICE, 1, 0);
        assert_eq!(buffer.prepare(&write(4096)).len(), 4096);
        assert_eq!(buffer.memory.start as usize % ALIGNMENT, 0);
    }

    #[test]
    fn contents_have_a_text_form() {
        let all = [Data::Random, Data::Zeros, Data::Age, Data::AgeFrom(7), Data::Cyclic, Data::Byte(0xa5)];
        for data in all {
            assert_eq!(data.to_string().parse(), Ok(data));
        }
        assert!("ones".parse::<Data>().is_err());
    }
}
