//! Streams: a pattern as lazy sequences of IOs.
//!
//! How: one iterator for each stream, with its state in place. `next` runs on
//! the measuring thread between two IOs: it allocates nothing and costs a few
//! nanoseconds. Every stream, and each pattern of a mix, draws from its own
//! seed, so the same pattern and seed give the same IOs everywhere.
//!
//! Source: paper 000/001, section 3.1.

use super::arrivals::Arrivals;
use super::location::Walk;
use super::mix::Ratio;
use super::{Basic, Pattern, PatternError, Timing};
use uflip_device::rng::derive_seed;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos, Stream};

/// One basic pattern on its way: IO after IO without end.
#[derive(Clone, Debug)]
struct AddressSource {
    walk: Walk,
    base: u64,
    io_size: u64,
    mode: Mode,
    pattern: u8,
    pause: Nanos,
    burst: u64,
    until_pause: u64,
    sync: u64,
    until_sync: u64,
}

impl AddressSource {
    fn new(basic: &Basic, pattern: u8, seed: u64) -> Result<AddressSource, PatternError> {
        let (slots, base) = basic.slots()?;
        let (pause, burst) = match basic.timing {
            Timing::Consecutive | Timing::Synced { .. } | Timing::Open { .. } => (Nanos::ZERO, u64::MAX),
            Timing::Pause { pause } => (pause, 1),
            Timing::Burst { pause, burst } => (pause, u64::from(burst)),
        };
        let sync = if let Timing::Synced { every } = basic.timing { u64::from(every) } else { u64::MAX };
        Ok(AddressSource {
            walk: Walk::new(basic, slots, seed)?,
            base,
            io_size: basic.io_size.0,
            mode: basic.mode.into(),
            pattern,
            pause,
            burst,
            until_pause: burst,
            sync,
            until_sync: sync,
        })
    }

    /// Leaves the next IO to another stream: a read or write, or a flush. No pattern
    /// that is dealt out has pauses.
    #[inline]
    fn skip(&mut self) {
        if self.until_sync == 0 {
            self.until_sync = self.sync;
        } else {
            self.until_sync -= 1;
            self.walk.next_slot();
        }
    }

    #[inline]
    fn next_io(&mut self) -> Io {
        if self.until_sync == 0 {
            self.until_sync = self.sync;
            let mode = Mode::Flush;
            return Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(0),
                size: 0,
                mode,
                pattern: self.pattern,
            };
        }
        self.until_sync -= 1;
        let arrival = if self.until_pause == 0 {
            self.until_pause = self.burst;
            Arrival::After(self.pause)
        } else {
            Arrival::CONSECUTIVE
        };
        self.until_pause -= 1;
        Io {
            arrival,
            offset: Bytes(self.base + self.walk.next_slot() * self.io_size),
            // At most IoRecord::MAX_SIZE, as `Basic::slots` made sure.
            size: self.io_size as u32,
            mode: self.mode,
            pattern: self.pattern,
        }
    }
}

/// The intended instants of stream `stream` of `streams`; `None` in a closed loop.
fn arrivals(timing: Timing, stream: u64, streams: u64, seed: u64) -> Option<Arrivals> {
    let Timing::Open { rate, gaps } = timing else { return None };
    Some(Arrivals::new(rate, gaps, stream, streams, seed))
}

/// `io` at its intended instant, where it has one.
#[inline]
fn arriving(mut io: Io, arrivals: &mut Option<Arrivals>) -> Io {
    if let Some(arrivals) = arrivals {
        io.arrival = Arrival::At(arrivals.next_instant());
    }
    io
}

#[derive(Clone)]
struct BasicStream {
    source: AddressSource,
    arrivals: Option<Arrivals>,
    left: u64,
    /// IOs of the sequence that are other streams' between two of this one's.
    others: u32,
}

impl Iterator for BasicStream {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        self.left = self.left.checked_sub(1)?;
        let io = self.source.next_io();
        for _ in 0..self.others {
            self.source.skip();
        }
        Some(arriving(io, &mut self.arrivals))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::try_from(self.left).unwrap_or(usize::MAX), usize::try_from(self.left).ok())
    }
}

struct MixStream {
    first: AddressSource,
    second: AddressSource,
    arrivals: Option<Arrivals>,
    ratio: Ratio,
    /// Place in the round: below `ratio.first()` it is pattern 1's turn.
    place: u64,
    left: u64,
}

impl Iterator for MixStream {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        self.left = self.left.checked_sub(1)?;
        let turn_of_first = self.place < u64::from(self.ratio.first());
        self.place = if self.place + 1 == self.ratio.round() { 0 } else { self.place + 1 };
        let io = if turn_of_first { self.first.next_io() } else { self.second.next_io() };
        Some(arriving(io, &mut self.arrivals))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::try_from(self.left).unwrap_or(usize::MAX), usize::try_from(self.left).ok())
    }
}

/// Makes a stream as often as asked.
pub type MakeStream = Box<dyn Fn() -> Stream + Sync>;

/// One sequence dealt out in turn: stream `p` of `depth` has its IOs p, p +
/// depth, p + 2 depth, …
fn queued(basic: &Basic, depth: u32, io_count: u64, seed: u64) -> Result<Vec<Stream>, PatternError> {
    let stream = |p: u32| -> Result<Stream, PatternError> {
        let mut source = AddressSource::new(basic, 0, derive_seed(seed, 0))?;
        for _ in 0..p {
            source.skip();
        }
        let arrivals = arrivals(basic.timing, p.into(), depth.into(), derive_seed(seed, p.into()));
        Ok(Box::new(BasicStream { source, arrivals, left: io_count, others: depth - 1 }))
    };
    (0..depth).map(stream).collect()
}

impl Pattern {
    /// The sequence that its streams are dealt from, where they stand for a queue:
    /// `io_count` IOs for each of them, in an open loop at the whole rate.
    ///
    /// # Errors
    /// As [`Pattern::streams`].
    pub fn sequence(&self, io_count: u64, seed: u64) -> Result<Option<MakeStream>, PatternError> {
        let Pattern::Queued { depth, basic } = self else { return Ok(None) };
        self.check_timing()?;
        let source = AddressSource::new(basic, 0, derive_seed(seed, 0))?;
        let arrivals = arrivals(basic.timing, 0, 1, derive_seed(seed, 0));
        let left = io_count.saturating_mul(u64::from(*depth));
        let whole = BasicStream { source, arrivals, left, others: 0 };
        Ok(Some(Box::new(move || Box::new(whole.clone()))))
    }

    /// Its streams, each of `io_count` IOs; a mix is one stream. Stream number
    /// `p`, and pattern number `p` of a mix, draws from `derive_seed(seed, p)`. How
    /// streams share a rate is told in [`super::arrivals`].
    ///
    /// # Errors
    /// [`PatternError`] where TargetSize is open or holds no IO, or a parameter
    /// is out of range.
    pub fn streams(&self, io_count: u64, seed: u64) -> Result<Vec<Stream>, PatternError> {
        super::in_range("parallel", self.stream_count() as u64, 1, IoRecord::MAX_STREAMS as u64)?;
        self.check_timing()?;
        if let Pattern::Mix { first, second, ratio } = self {
            let arrivals = arrivals(first.timing, 0, 1, derive_seed(seed, 0));
            let first = AddressSource::new(first, 0, derive_seed(seed, 0))?;
            let second = AddressSource::new(second, 1, derive_seed(seed, 1))?;
            let (ratio, left) = (*ratio, io_count);
            return Ok(vec![Box::new(MixStream { first, second, arrivals, ratio, place: 0, left })]);
        }
        if let Pattern::Queued { depth, basic } = self {
            return queued(basic, *depth, io_count, seed);
        }
        let shared_by = if let Pattern::Replicated { degree, .. } = self { u64::from(*degree) } else { 1 };
        let stream = |(p, basic): (u64, &Basic)| -> Result<Stream, PatternError> {
            let source = AddressSource::new(basic, 0, derive_seed(seed, p))?;
            let arrivals = arrivals(basic.timing, p % shared_by, shared_by, derive_seed(seed, p));
            Ok(Box::new(BasicStream { source, arrivals, left: io_count, others: 0 }))
        };
        (0..).zip(&self.parts()).map(stream).collect()
    }
}
