//! One IO as planned ([`Io`]) and as measured ([`IoRecord`]).
//!
//! Source: paper 000/001, section 3.1: an IO has four attributes, its time,
//! size, location and mode.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// What an IO does. The papers know read and write; flush and trim came later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Mode {
    /// Read `size` bytes at `offset`.
    Read = 0,
    /// Write `size` bytes at `offset`.
    Write = 1,
    /// Make everything written durable; offset and size are zero.
    Flush = 2,
    /// Tell the device that the range holds nothing any more.
    Trim = 3,
}

impl Mode {
    /// The word used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Read => "read",
            Mode::Write => "write",
            Mode::Flush => "flush",
            Mode::Trim => "trim",
        }
    }

    const fn from_bits(bits: u64) -> Mode {
        match bits & 3 {
            0 => Mode::Read,
            1 => Mode::Write,
            2 => Mode::Flush,
            _ => Mode::Trim,
        }
    }
}

/// One IO to be submitted: what the pattern's functions say of IO number `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Idle time between the completion of the stream's previous IO and this
    /// submission: zero for consecutive patterns, `Pause` where the pattern
    /// pauses. For a stream's first IO it counts from the start of the run.
    pub wait: Nanos,
    /// Where, in bytes from the start of the device.
    pub offset: Bytes,
    /// How much, in bytes; at most [`IoRecord::MAX_SIZE`].
    pub size: u32,
    /// Read, write, flush or trim.
    pub mode: Mode,
    /// Which pattern of a mix it belongs to: 0 for the first or only, 1 for
    /// the second.
    pub pattern: u8,
}

/// One IO as it happened, in 24 bytes.
///
/// Layout, from the low bits: word 0 submission time in ns since the run
/// began (52 bits, 52 days) and stream (12); word 1 offset in bytes (52,
/// 4 PiB), mode (4), pattern of the mix (4) and the high 4 bits of the size;
/// word 2 response time in ns (40, 18 minutes) and the low 24 bits of the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct IoRecord([u64; 3]);

const LOW52: u64 = (1 << 52) - 1;
const LOW40: u64 = (1 << 40) - 1;

impl IoRecord {
    /// The largest IO a record can hold: 256 MiB less one byte.
    pub const MAX_SIZE: u32 = (1 << 28) - 1;
    /// The largest number of streams in one run.
    pub const MAX_STREAMS: usize = 1 << 12;
    /// The latest submission that can be told, and so the longest pause: 52
    /// days; later ones are held here.
    pub const MAX_SUBMIT: Nanos = Nanos(LOW52);
    /// The longest response time that can be told; longer ones are held here.
    pub const MAX_RESPONSE: Nanos = Nanos(LOW40);
    /// An all-zero record, for reserving and touching memory.
    pub const ZERO: IoRecord = IoRecord([0; 3]);

    /// Packs a finished IO. `submit` counts from the start of the run.
    #[inline]
    pub fn new(io: &Io, stream: u16, submit: Nanos, response: Nanos) -> IoRecord {
        debug_assert!(io.size <= IoRecord::MAX_SIZE && io.offset.0 <= LOW52 && stream < 1 << 12);
        let size = u64::from(io.size);
        let submit = if submit.0 > LOW52 { LOW52 } else { submit.0 };
        let response = if response.0 > LOW40 { LOW40 } else { response.0 };
        IoRecord([
            submit | u64::from(stream) << 52,
            io.offset.0 | (io.mode as u64) << 52 | u64::from(io.pattern & 15) << 56 | (size >> 24) << 60,
            response | (size & 0xff_ffff) << 40,
        ])
    }

    /// Submission time, from the start of the run.
    pub fn submit(&self) -> Nanos {
        Nanos(self.0[0] & LOW52)
    }

    /// Response time: completion less submission.
    pub fn response(&self) -> Nanos {
        Nanos(self.0[2] & LOW40)
    }

    /// Where, in bytes.
    pub fn offset(&self) -> Bytes {
        Bytes(self.0[1] & LOW52)
    }

    /// How much, in bytes.
    pub fn size(&self) -> u32 {
        ((self.0[1] >> 60) << 24 | self.0[2] >> 40) as u32
    }

    /// Read, write, flush or trim.
    pub fn mode(&self) -> Mode {
        Mode::from_bits(self.0[1] >> 52)
    }

    /// Which pattern of a mix.
    pub fn pattern(&self) -> u8 {
        (self.0[1] >> 56 & 15) as u8
    }

    /// Which of the parallel streams.
    pub fn stream(&self) -> u16 {
        (self.0[0] >> 52) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_takes_24_bytes() {
        assert_eq!(size_of::<IoRecord>(), 24);
    }

    #[test]
    fn times_beyond_a_record_are_held_at_its_end_and_touch_nothing_else() {
        let io = Io { wait: Nanos(0), offset: Bytes(512), size: 4096, mode: Mode::Write, pattern: 1 };
        for late in [LOW52 + 1, u64::MAX] {
            let r = IoRecord::new(&io, 3, Nanos(late), Nanos(late));
            assert_eq!((r.submit(), r.response()), (IoRecord::MAX_SUBMIT, IoRecord::MAX_RESPONSE));
            assert_eq!((r.stream(), r.size(), r.mode()), (3, 4096, Mode::Write));
        }
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(
            submit in 0..=LOW52, response in 0..=LOW40, offset in 0..=LOW52,
            size in 0..=IoRecord::MAX_SIZE, mode in 0u64..4, pattern in 0u8..16, stream in 0u16..4096,
        ) {
            let io = Io { wait: Nanos(5), offset: Bytes(offset), size, mode: Mode::from_bits(mode), pattern };
            let r = IoRecord::new(&io, stream, Nanos(submit), Nanos(response));
            prop_assert_eq!((r.submit(), r.response()), (Nanos(submit), Nanos(response)));
            prop_assert_eq!((r.offset(), r.size()), (io.offset, size));
            prop_assert_eq!((r.mode(), r.pattern(), r.stream()), (io.mode, pattern, stream));
        }
    }
}
