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

/// When an IO is due.
///
/// In a closed loop a device that stands still is asked nothing meanwhile, so
/// that a stall costs one slow IO however long it lasts. In an open loop the IOs
/// come when they come: those that were due during the stall wait, their waiting
/// is part of their response time, and none is left out (G. Tene calls what the
/// closed loop does coordinated omission).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Closed loop: so long after the completion of the stream's previous IO; zero
    /// for consecutive patterns, `Pause` where the pattern pauses. A stream's first
    /// IO counts from the start of the run.
    After(Nanos),
    /// Open loop: at this instant from the start of the run, whatever became of the
    /// IOs before. Where a loop can take no further IO then, it is submitted late,
    /// as soon as one can be.
    At(Nanos),
}

impl Arrival {
    /// As soon as the IO before is done.
    pub const CONSECUTIVE: Arrival = Arrival::After(Nanos::ZERO);

    /// When the IO is due, where the one before it was done at `last`.
    #[inline(always)]
    pub fn due(self, last: Nanos) -> Nanos {
        match self {
            Arrival::After(wait) => Nanos(last.0.saturating_add(wait.0)),
            Arrival::At(instant) => instant,
        }
    }

    /// Whether a time limit of `limit` leaves the IO out, where the one before it
    /// was done at `last`. In a closed loop the limit is on the time that has
    /// passed; in an open one on the intended instant, so that what was due before
    /// the limit is done however late the device is.
    #[inline(always)]
    pub fn is_past(self, last: Nanos, limit: Nanos) -> bool {
        match self {
            Arrival::After(_) => last >= limit,
            Arrival::At(instant) => instant >= limit,
        }
    }
}

/// One IO to be submitted: what the pattern's functions say of IO number `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// When it is due.
    pub arrival: Arrival,
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
/// Layout of a closed loop's IO, from the low bits: word 0 submission time in ns
/// since the run began (52 bits, 52 days) and stream (12); word 1 offset in bytes
/// (52, 4 PiB), mode (2), zero (2), pattern of the mix (4) and the high 4 bits of
/// the size; word 2 response time in ns (40, 18 minutes) and the low 24 bits of
/// the size.
///
/// An open loop's IO has its intended instant in the place of the submission and
/// counts the response time from there, both exactly. Offset and size are counted
/// in sectors of 512 bytes, which sets bits free for the time from submission to
/// completion, as a floating-point number of 14 significant bits: exact to 16 us,
/// to 0.006 % beyond. Word 1: offset (43), the low 9 bits of the number's fraction,
/// mode (2), one (1), zero (1), pattern (4), the fraction's high 4 bits; word 2:
/// response time (40), size (19), exponent (5, [`ON_TIME`] for an IO that was not
/// late at all).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct IoRecord([u64; 3]);

const LOW52: u64 = (1 << 52) - 1;
const LOW43: u64 = (1 << 43) - 1;
const LOW40: u64 = (1 << 40) - 1;
const LOW19: u64 = (1 << 19) - 1;
/// The flag of an open loop, in word 1.
const OPEN: u64 = 1 << 54;
/// Offsets and sizes of an open loop are multiples of it, in bits.
const SECTOR_BITS: u32 = 9;
/// Bits of the fraction of the time from submission to completion.
const FRACTION_BITS: u32 = 13;
/// The exponent that stands for: submitted at the intended instant.
const ON_TIME: u64 = 31;

/// `ns`, below 2^41, as (exponent, fraction), rounded down.
#[inline]
fn floating(ns: u64) -> (u64, u64) {
    let exponent = (64 - ns.leading_zeros()).saturating_sub(FRACTION_BITS);
    let fraction = ns >> exponent.saturating_sub(1) & ((1 << FRACTION_BITS) - 1);
    (u64::from(exponent), fraction)
}

/// What [`floating`] made such of.
#[inline]
fn fixed(exponent: u64, fraction: u64) -> u64 {
    match exponent {
        0 => fraction,
        _ => (fraction | 1 << FRACTION_BITS) << (exponent - 1),
    }
}

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
    /// Offset and size of an open loop's IO are multiples of it.
    pub const OPEN_SECTOR: Bytes = Bytes(1 << SECTOR_BITS);
    /// An all-zero record, for reserving and touching memory.
    pub const ZERO: IoRecord = IoRecord([0; 3]);

    /// Packs an IO that was submitted and done at these times from the start of the
    /// run, by its arrival rule.
    #[inline(always)]
    pub fn measured(io: &Io, stream: u16, submit: Nanos, done: Nanos) -> IoRecord {
        match io.arrival {
            Arrival::After(_) => IoRecord::new(io, stream, submit, Nanos(done.0 - submit.0)),
            Arrival::At(due) => {
                let (late, response) = (submit.0.saturating_sub(due.0), done.0.saturating_sub(due.0));
                IoRecord::open(io, stream, due, Nanos(late), Nanos(response))
            }
        }
    }

    /// Packs a finished IO of a closed loop. `submit` counts from the start of the run.
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

    /// Packs a finished IO of an open loop, due at `due` from the start of the run,
    /// submitted `late` after that and done `response` after it. Offset and size are
    /// multiples of [`IoRecord::OPEN_SECTOR`].
    #[inline]
    pub fn open(io: &Io, stream: u16, due: Nanos, late: Nanos, response: Nanos) -> IoRecord {
        debug_assert!(io.size <= IoRecord::MAX_SIZE && io.offset.0 <= LOW52 && stream < 1 << 12);
        debug_assert!((io.offset.0 | u64::from(io.size)) & (IoRecord::OPEN_SECTOR.0 - 1) == 0);
        let (offset, size) = (io.offset.0 >> SECTOR_BITS, u64::from(io.size) >> SECTOR_BITS);
        let due = if due.0 > LOW52 { LOW52 } else { due.0 };
        let response = if response.0 > LOW40 { LOW40 } else { response.0 };
        let (exponent, fraction) = match late {
            Nanos::ZERO => (ON_TIME, 0),
            late => floating(response.saturating_sub(late.0)),
        };
        IoRecord([
            due | u64::from(stream) << 52,
            offset
                | (fraction & 0x1ff) << 43
                | (io.mode as u64) << 52
                | OPEN
                | u64::from(io.pattern & 15) << 56
                | (fraction >> 9) << 60,
            response | size << 40 | exponent << 59,
        ])
    }

    /// True where the IO had an intended instant: an open loop's.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.0[1] & OPEN != 0
    }

    /// From submission to completion: what the device took. In an open loop to
    /// 0.006 %.
    #[inline]
    pub fn service(&self) -> Nanos {
        if !self.is_open() || self.0[2] >> 59 == ON_TIME {
            return self.response();
        }
        let fraction = self.0[1] >> 43 & 0x1ff | self.0[1] >> 60 << 9;
        Nanos(fixed(self.0[2] >> 59, fraction))
    }

    /// How long after its intended instant an open loop's IO was submitted; `None` in
    /// a closed loop, which has no such instant.
    pub fn late(&self) -> Option<Nanos> {
        self.is_open().then(|| self.response().saturating_sub(self.service()))
    }

    /// Where the response time begins, from the start of the run: the intended instant
    /// in an open loop, else the submission.
    #[inline]
    pub fn due(&self) -> Nanos {
        Nanos(self.0[0] & LOW52)
    }

    /// Submission time, from the start of the run.
    #[inline]
    pub fn submit(&self) -> Nanos {
        Nanos(self.due().0 + self.late().unwrap_or_default().0)
    }

    /// Completion, from the start of the run.
    #[inline]
    pub fn completion(&self) -> Nanos {
        Nanos(self.due().0 + self.response().0)
    }

    /// Response time: completion less submission; in an open loop less the intended
    /// instant.
    #[inline]
    pub fn response(&self) -> Nanos {
        Nanos(self.0[2] & LOW40)
    }

    /// Where, in bytes.
    #[inline]
    pub fn offset(&self) -> Bytes {
        Bytes(if self.is_open() { (self.0[1] & LOW43) << SECTOR_BITS } else { self.0[1] & LOW52 })
    }

    /// How much, in bytes.
    #[inline]
    pub fn size(&self) -> u32 {
        if self.is_open() {
            return ((self.0[2] >> 40 & LOW19) << SECTOR_BITS) as u32;
        }
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
        let io = Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(512),
            size: 4096,
            mode: Mode::Write,
            pattern: 1,
        };
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
            let io = Io { arrival: Arrival::After(Nanos(5)), offset: Bytes(offset), size, mode: Mode::from_bits(mode), pattern };
            let r = IoRecord::new(&io, stream, Nanos(submit), Nanos(response));
            prop_assert_eq!((r.submit(), r.response()), (Nanos(submit), Nanos(response)));
            prop_assert_eq!((r.offset(), r.size()), (io.offset, size));
            prop_assert_eq!((r.mode(), r.pattern(), r.stream()), (io.mode, pattern, stream));
        }

        #[test]
        fn an_open_loops_io_keeps_its_instant_and_how_late_it_was(
            due in 0..=LOW52, late in 0..1u64 << 39, service in 0..1u64 << 39, near in any::<bool>(),
            offset in 0..1u64 << 43, size in 0u32..1 << 19, mode in 0u64..4, pattern in 0u8..16, stream in 0u16..4096,
        ) {
            let (late, service) = if near { (late >> 20, service >> 20) } else { (late, service) };
            let (offset, size) = (Bytes(offset << 9), size << 9);
            let io = Io { arrival: Arrival::At(Nanos(due)), offset, size, mode: Mode::from_bits(mode), pattern };
            let r = IoRecord::open(&io, stream, Nanos(due), Nanos(late), Nanos(late + service));
            prop_assert_eq!((r.due(), r.response()), (Nanos(due), Nanos(late + service)));
            prop_assert_eq!((r.offset(), r.size(), r.mode()), (io.offset, size, io.mode));
            prop_assert_eq!((r.pattern(), r.stream(), r.completion()), (pattern, stream, Nanos(due + late + service)));
            let told = r.late().unwrap().0;
            prop_assert!(told >= late && told - late <= service >> 13, "{} for {}", told, late);
            prop_assert!(late > 0 || told == 0);
            prop_assert_eq!(r.service().0 + told, late + service);
            // What is told and packed again stays as it is.
            prop_assert_eq!(IoRecord::open(&io, stream, r.due(), Nanos(told), r.response()), r);
        }

        #[test]
        fn an_arrival_rule_decides_from_where_a_response_counts(
            due in 0..1u64 << 40, last in 0..1u64 << 40, took in 1..1u64 << 13,
        ) {
            let io = |arrival| Io { arrival, offset: Bytes(512), size: 512, mode: Mode::Read, pattern: 0 };
            let open = io(Arrival::At(Nanos(due)));
            let submit = open.arrival.due(Nanos(last)).max(Nanos(last));
            let r = IoRecord::measured(&open, 0, submit, Nanos(submit.0 + took));
            prop_assert_eq!(r.late(), Some(Nanos(last.saturating_sub(due))));
            prop_assert_eq!(r.response(), Nanos(submit.0 + took - due).min(IoRecord::MAX_RESPONSE));
            let closed = io(Arrival::After(Nanos(due)));
            let submit = closed.arrival.due(Nanos(last));
            let r = IoRecord::measured(&closed, 0, submit, Nanos(submit.0 + took));
            prop_assert_eq!((r.submit(), r.response(), r.late()), (Nanos(last + due), Nanos(took), None));
        }
    }
}
