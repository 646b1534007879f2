//! IO patterns: what the paper's functions for time, size, location and mode
//! say of every IO, as plain data.
//!
//! How: a [`Basic`] pattern picks one function for each attribute; a
//! [`Pattern`] is a basic one, a mix of two, or several in parallel. Patterns
//! have one text form ([`text`]) and turn into lazy streams of IOs
//! ([`stream`]). A location function only ever chooses a *slot*: slot `s` of
//! a target space is the IO at `TargetOffset + IOShift + s * IOSize`, and there
//! are `floor((TargetSize - IOShift) / IOSize)` of them, so that no IO leaves
//! `TargetOffset .. TargetOffset + TargetSize`.
//!
//! Source: paper 000/001, section 3.1 and Table 1.
//!
//! Errata: Table 1 leaves out `TargetOffset` in the partitioned formula and in
//! the parallel one; here it is always added. Its sequential formulas leave
//! the target space when `i` grows; here they wrap (see [`location`]). Its
//! burst formula `(i mod Burst) * Pause` contradicts the text and the figure
//! beside it; here a pause of length Pause stands between groups of Burst IOs.

pub mod arrivals;
pub mod flags;
pub mod location;
pub mod mix;
pub mod permute;
pub mod stream;
pub mod text;

use crate::names::NameError;
use serde::{Deserialize, Serialize};
use uflip_device::{Bytes, Geometry, IoRecord, Nanos};

pub use arrivals::{Gaps, Rate};
pub use flags::{FlagError, Flags};
pub use mix::{Ratio, mix_counts};
pub use stream::MakeStream;

/// "constant (32 KB in our experiments)": Table 1, baseline patterns.
pub const DEFAULT_IO_SIZE: Bytes = Bytes(32 << 10);

/// Where the addresses that an [`IoRecord`] can hold end: 4 PiB.
const ADDRESSES: u64 = 1 << 52;

/// Mode(IO_i), a constant: section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatternMode {
    /// Every IO reads.
    Read,
    /// Every IO writes.
    Write,
    /// Every IO tells the device that a range holds nothing any more. Not the
    /// paper's: pause tests and trimmed states need it.
    Trim,
}

impl From<PatternMode> for uflip_device::Mode {
    fn from(mode: PatternMode) -> uflip_device::Mode {
        match mode {
            PatternMode::Read => uflip_device::Mode::Read,
            PatternMode::Write => uflip_device::Mode::Write,
            PatternMode::Trim => uflip_device::Mode::Trim,
        }
    }
}

/// LBA(IO_i), the location function: section 3.1 and Table 1. What each does
/// at the end of its target space is told in [`location`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// Slot after slot.
    Sequential,
    /// Slot after slot, beginning with a given one (paper 004, appendix A:
    /// "sequential accesses start at a random multiple of the block size").
    SequentialFrom {
        /// The slot of the first IO, held below the number of slots.
        slot: u64,
    },
    /// Any slot, independently of the ones before.
    Random,
    /// Any slot, but none again until all were used: a permutation of the
    /// target space, and a new one after each pass.
    RandomUnique,
    /// A linear increment (or decrement) between consecutive IOs.
    Ordered {
        /// Incr: slots from one IO to the next.
        incr: i64,
    },
    /// Round robin over equal partitions, sequential within each.
    Partitioned {
        /// Partitions: how many.
        partitions: u32,
    },
}

/// t(IO_i), the time function: section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// An IO starts as soon as the one before has finished.
    Consecutive,
    /// A pause before every IO but the first.
    Pause {
        /// Pause: its length.
        pause: Nanos,
    },
    /// A pause between groups of IOs.
    Burst {
        /// Pause: its length.
        pause: Nanos,
        /// Burst: IOs in a group.
        burst: u32,
    },
    /// Consecutive, with a flush after every so many IOs: a file system's sync
    /// (paper 002, section 3). The flush is an IO of its own in the stream.
    Synced {
        /// IOs from one flush to the next.
        every: u32,
    },
    /// An open loop: IOs are due at their instants, whatever became of those before.
    /// Not the paper's: load that does not wait for the device (see [`arrivals`]).
    Open {
        /// IOs a second of the whole pattern.
        rate: Rate,
        /// How the gaps between them are distributed.
        gaps: Gaps,
    },
}

impl Timing {
    /// The IOs of a stream of `data` reads or writes with their flushes.
    pub const fn with_flushes(self, data: u64) -> u64 {
        match self {
            Timing::Synced { every: 1.. } => data.saturating_add(data / self.every()),
            _ => data,
        }
    }

    /// How many of a stream's first `ios` read or write.
    pub const fn without_flushes(self, ios: u64) -> u64 {
        match self {
            Timing::Synced { every: 1.. } => ios - ios / (self.every() + 1),
            _ => ios,
        }
    }

    /// The pause between IOs or bursts; 0 where there is none.
    pub const fn pause(self) -> Nanos {
        match self {
            Timing::Pause { pause } | Timing::Burst { pause, .. } => pause,
            Timing::Consecutive | Timing::Synced { .. } | Timing::Open { .. } => Nanos::ZERO,
        }
    }

    /// The rate of an open loop.
    pub const fn rate(self) -> Option<Rate> {
        match self {
            Timing::Open { rate, .. } => Some(rate),
            _ => None,
        }
    }

    const fn every(self) -> u64 {
        match self {
            Timing::Synced { every } => every as u64,
            _ => u64::MAX,
        }
    }
}

/// A basic pattern: one function for each attribute of an IO, with all its
/// parameters (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Basic {
    /// Read or write.
    pub mode: PatternMode,
    /// Where.
    pub location: Location,
    /// When.
    pub timing: Timing,
    /// IOSize.
    pub io_size: Bytes,
    /// IOShift: added to every address.
    pub io_shift: Bytes,
    /// TargetOffset: where the target space begins.
    pub target_offset: Bytes,
    /// TargetSize; `None` until [`Pattern::resolve`] fills in what is left of
    /// the device after `target_offset`.
    pub target_size: Option<Bytes>,
}

/// One of the four baseline patterns of section 3.1: consecutive IOs of fixed
/// size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Baseline {
    /// Sequential reads.
    #[serde(rename = "SR")]
    Sr,
    /// Random reads.
    #[serde(rename = "RR")]
    Rr,
    /// Sequential writes.
    #[serde(rename = "SW")]
    Sw,
    /// Random writes.
    #[serde(rename = "RW")]
    Rw,
}

impl Baseline {
    /// In the order of the papers.
    pub const ALL: [Baseline; 4] = [Baseline::Sr, Baseline::Rr, Baseline::Sw, Baseline::Rw];

    /// `SR`, `RR`, `SW` or `RW`.
    pub const fn name(self) -> &'static str {
        match self {
            Baseline::Sr => "SR",
            Baseline::Rr => "RR",
            Baseline::Sw => "SW",
            Baseline::Rw => "RW",
        }
    }

    /// Whether its locations are random.
    pub const fn is_random(self) -> bool {
        matches!(self, Baseline::Rr | Baseline::Rw)
    }

    /// What its IOs do.
    pub const fn mode(self) -> PatternMode {
        match self {
            Baseline::Sr | Baseline::Rr => PatternMode::Read,
            Baseline::Sw | Baseline::Rw => PatternMode::Write,
        }
    }

    /// The baseline pattern over all of a device, not yet resolved.
    pub const fn basic(self, io_size: Bytes) -> Basic {
        Basic {
            mode: self.mode(),
            location: if self.is_random() { Location::Random } else { Location::Sequential },
            timing: Timing::Consecutive,
            io_size,
            io_shift: Bytes(0),
            target_offset: Bytes(0),
            target_size: None,
        }
    }
}

impl std::str::FromStr for Baseline {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Baseline, Self::Err> {
        let found = Baseline::ALL.into_iter().find(|b| b.name().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| NameError::new(text, "baseline pattern", "SR, RR, SW or RW"))
    }
}

impl std::fmt::Display for Baseline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Any pattern of section 3.1. Its text form is described in [`text`]; serde
/// reads and writes that text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Pattern {
    /// One basic pattern.
    Basic(Basic),
    /// Two basic patterns in one stream, in a fixed ratio; each keeps its own
    /// counter `i`, so each goes through its own sequence of addresses.
    Mix {
        /// Pattern 1.
        first: Basic,
        /// Pattern 2.
        second: Basic,
        /// Ratio (#1/#2).
        ratio: Ratio,
    },
    /// ParallelDegree processes, each with the same pattern on its own share
    /// of the target space.
    Replicated {
        /// ParallelDegree.
        degree: u32,
        /// What is replicated, with the whole target space.
        basic: Basic,
    },
    /// One basic pattern with several requests under way. An engine with a queue of
    /// its own (io_uring) keeps it this deep with the one sequence; on others its IOs
    /// are dealt out in turn to as many streams of one request each.
    Queued {
        /// QueueDepth: how many requests are under way.
        depth: u32,
        /// What is queued.
        basic: Basic,
    },
    /// Different basic patterns in parallel, a stream each.
    SideBySide(Vec<Basic>),
}

/// What is wrong with a pattern, or with a pattern on a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is not a pattern.
    #[error("pattern, column {column}: expected {expected}, found {found}")]
    Text {
        /// Counted in characters, from 1.
        column: usize,
        /// What would have been right there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A size or offset is no multiple of the sector size.
    #[error("{name} {} is no multiple of the target's sector of {}; type a multiple of {}",
        .value.exact(), .sector.exact(), .sector.exact())]
    Unaligned {
        /// IOSize, IOShift or TargetOffset.
        name: &'static str,
        /// Its value.
        value: Bytes,
        /// The target's sector.
        sector: Bytes,
    },
    /// The target space goes past the end of the target.
    #[error("TargetOffset {} and TargetSize {} go past the target's end at {}; type a smaller \
        target_size or target_offset", .offset.exact(), .size.exact(), .capacity.exact())]
    Outside {
        /// TargetOffset.
        offset: Bytes,
        /// TargetSize.
        size: Bytes,
        /// The target's capacity.
        capacity: Bytes,
    },
    /// Nothing is left of the target after TargetOffset.
    #[error("TargetOffset {} leaves nothing of a target of {}; type a smaller target_offset",
        .offset.exact(), .capacity.exact())]
    NothingLeft {
        /// TargetOffset.
        offset: Bytes,
        /// The target's capacity.
        capacity: Bytes,
    },
    /// The target space cannot hold one IO (in each of its parts).
    #[error("TargetSize {} cannot hold {parts} times IOSize {} after IOShift {}; type a larger \
        target_size or a smaller io_size", .size.exact(), .io_size.exact(), .io_shift.exact())]
    TooSmall {
        /// TargetSize.
        size: Bytes,
        /// IOSize.
        io_size: Bytes,
        /// IOShift.
        io_shift: Bytes,
        /// Partitions, or 1.
        parts: u32,
    },
    /// A parameter is outside what can be run or recorded.
    #[error("{name} is {value}; type a number from {min} to {max}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The smallest possible.
        min: u64,
        /// The largest possible.
        max: u64,
    },
    /// A pause longer than a record can tell.
    #[error(
        "a pause of {} is longer than the longest, {}: submission times have 52 bits of nanoseconds \
         (52 days); type a shorter one", .pause.exact(), IoRecord::MAX_SUBMIT.exact())]
    LongPause {
        /// Pause.
        pause: Nanos,
    },
    /// The last of an open loop's IOs is due later than a record can tell.
    #[error("{ios} IOs at {rate} take {}, longer than the 52 days that a record can tell; type fewer IOs or a \
        higher rate", .rate.time_of(*.ios))]
    LongArrivals {
        /// IOs of all streams.
        ios: u64,
        /// Their rate.
        rate: Rate,
    },
    /// The text is not a rate.
    #[error("'{found}' is no rate; type {}", Rate::FORM)]
    Rate {
        /// What was typed.
        found: String,
    },
    /// A mix in which only one pattern has a rate, or in which the rates differ.
    #[error(
        "the two patterns of a mix are one stream and arrive by one rule: {first} is not {second}; type \
        the same rate= or poisson= for both"
    )]
    MixedArrivals {
        /// The time function of pattern 1.
        first: Timing,
        /// The time function of pattern 2.
        second: Timing,
    },
    /// Several requests under way, and a pause between them.
    #[error(
        "{depth} deep keeps {depth} requests of one sequence under way, and {timing} waits until none is; leave it \
         away, type 1 deep, or {depth} x for as many streams that each wait for themselves"
    )]
    QueuedWaits {
        /// QueueDepth.
        depth: u32,
        /// The time function.
        timing: Timing,
    },
    /// TargetSize is not known yet.
    #[error("the pattern's target_size is open; type one, such as target_size=1G, or resolve it on a target")]
    Unresolved,
    /// There is no pattern: a program or a trace makes its own IOs.
    #[error("it runs no pattern, and a plan executes patterns only; use the command that made it")]
    None,
    /// A mix in which both patterns have several IOs.
    #[error("a mix of {first} to {second}; type 1 for one of both, such as 2 SR / 1 RW or 1 SR / 4 RW")]
    Ratio {
        /// IOs of pattern 1 in a round.
        first: u32,
        /// IOs of pattern 2 in a round.
        second: u32,
    },
}

fn in_range(name: &'static str, value: u64, min: u64, max: u64) -> Result<(), PatternError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(PatternError::Range { name, value, min, max }) }
}

/// Whether a pause can be recorded.
fn check_pause(pause: Nanos) -> Result<(), PatternError> {
    if pause <= IoRecord::MAX_SUBMIT { Ok(()) } else { Err(PatternError::LongPause { pause }) }
}

impl Basic {
    /// True where the location function is random.
    pub const fn is_random(&self) -> bool {
        matches!(self.location, Location::Random | Location::RandomUnique)
    }

    /// The baseline it departs from; trims go where such writes would.
    pub const fn baseline(&self) -> Baseline {
        match (self.mode, self.is_random()) {
            (PatternMode::Read, false) => Baseline::Sr,
            (PatternMode::Read, true) => Baseline::Rr,
            (PatternMode::Write | PatternMode::Trim, false) => Baseline::Sw,
            (PatternMode::Write | PatternMode::Trim, true) => Baseline::Rw,
        }
    }

    /// `SR`, `RR`, `SW` or `RW`, and `ST` or `RT` for trims.
    pub const fn name(&self) -> &'static str {
        match (self.mode, self.is_random()) {
            (PatternMode::Trim, false) => "ST",
            (PatternMode::Trim, true) => "RT",
            _ => self.baseline().name(),
        }
    }

    /// The pattern with TargetSize filled in: what is left after TargetOffset.
    fn resolved(mut self, geometry: Geometry) -> Result<Basic, PatternError> {
        if self.target_size.is_none() {
            let (offset, capacity) = (self.target_offset, geometry.capacity);
            match capacity.0.checked_sub(offset.0) {
                None | Some(0) => return Err(PatternError::NothingLeft { offset, capacity }),
                Some(left) => self.target_size = Some(Bytes(left)),
            }
        }
        Ok(self)
    }

    /// The number of slots of the target space, and where slot 0 is. Checks
    /// everything that needs no device.
    pub(crate) fn slots(&self) -> Result<(u64, u64), PatternError> {
        let size = self.target_size.ok_or(PatternError::Unresolved)?;
        in_range("io_size", self.io_size.0, 1, u64::from(IoRecord::MAX_SIZE))?;
        in_range("target_offset", self.target_offset.0, 0, ADDRESSES)?;
        in_range("target_size", size.0, 0, ADDRESSES - self.target_offset.0)?;
        if let Timing::Pause { pause } | Timing::Burst { pause, .. } = self.timing {
            check_pause(pause)?;
        }
        if let Timing::Burst { burst, .. } = self.timing {
            in_range("burst", u64::from(burst), 1, u64::from(u32::MAX))?;
        }
        if let Timing::Synced { every } = self.timing {
            in_range("sync", u64::from(every), 1, u64::from(u32::MAX))?;
        }
        let parts = match self.location {
            Location::Partitioned { partitions } => partitions,
            _ => 1,
        };
        in_range("partitions", u64::from(parts), 1, u64::from(u32::MAX))?;
        let slots = size.0.saturating_sub(self.io_shift.0) / self.io_size.0;
        if slots < u64::from(parts) {
            let (io_size, io_shift) = (self.io_size, self.io_shift);
            return Err(PatternError::TooSmall { size, io_size, io_shift, parts });
        }
        Ok((slots, self.target_offset.0 + self.io_shift.0))
    }

    fn check(&self, geometry: Geometry) -> Result<(), PatternError> {
        // A record of an open loop counts in sectors.
        let sector = match self.timing {
            Timing::Open { .. } => geometry.sector.max(IoRecord::OPEN_SECTOR),
            _ => geometry.sector,
        };
        let aligned =
            [("IOSize", self.io_size), ("IOShift", self.io_shift), ("TargetOffset", self.target_offset)];
        for (name, value) in aligned {
            if sector.0 > 0 && !value.0.is_multiple_of(sector.0) {
                return Err(PatternError::Unaligned { name, value, sector });
            }
        }
        let (offset, capacity) = (self.target_offset, geometry.capacity);
        let size = self.target_size.ok_or(PatternError::Unresolved)?;
        if offset.0.checked_add(size.0).is_none_or(|end| end > capacity.0) {
            return Err(PatternError::Outside { offset, size, capacity });
        }
        self.slots().map(|_| ())
    }
}

impl Pattern {
    /// The basic patterns it is made of, as written.
    pub fn basics(&self) -> Vec<&Basic> {
        match self {
            Pattern::Basic(basic) | Pattern::Replicated { basic, .. } | Pattern::Queued { basic, .. } => {
                vec![basic]
            }
            Pattern::Mix { first, second, .. } => vec![first, second],
            Pattern::SideBySide(all) => all.iter().collect(),
        }
    }

    /// The same, to be changed.
    pub(crate) fn basics_mut(&mut self) -> Vec<&mut Basic> {
        match self {
            Pattern::Basic(basic) | Pattern::Replicated { basic, .. } | Pattern::Queued { basic, .. } => {
                vec![basic]
            }
            Pattern::Mix { first, second, .. } => vec![first, second],
            Pattern::SideBySide(all) => all.iter_mut().collect(),
        }
    }

    /// How many streams it runs in parallel.
    pub fn stream_count(&self) -> usize {
        match self {
            Pattern::Basic(_) | Pattern::Mix { .. } => 1,
            Pattern::Replicated { degree, .. } => *degree as usize,
            Pattern::Queued { depth, .. } => *depth as usize,
            Pattern::SideBySide(all) => all.len(),
        }
    }

    /// How many requests it says are under way, where it says so: a queue's depth.
    pub const fn queue_depth(&self) -> Option<u32> {
        if let Pattern::Queued { depth, .. } = self { Some(*depth) } else { None }
    }

    /// True where any of its IOs changes what the device holds: writes or trims.
    pub fn writes(&self) -> bool {
        self.basics().iter().any(|basic| basic.mode != PatternMode::Read)
    }

    /// The pattern with every open TargetSize filled in: what is left of the
    /// device after its TargetOffset.
    ///
    /// # Errors
    /// [`PatternError::NothingLeft`] where that is nothing.
    pub fn resolve(&self, geometry: Geometry) -> Result<Pattern, PatternError> {
        let mut pattern = self.clone();
        for basic in pattern.basics_mut() {
            *basic = basic.resolved(geometry)?;
        }
        Ok(pattern)
    }

    /// Whether the target can take it: IOSize, IOShift and TargetOffset are
    /// whole sectors, everything lies on the device, and IOs and streams are
    /// such as an [`IoRecord`] can hold. An open TargetSize is resolved first.
    ///
    /// # Errors
    /// [`PatternError`] with the first thing that does not fit.
    pub fn check(&self, geometry: Geometry) -> Result<(), PatternError> {
        let resolved = self.resolve(geometry)?;
        let streams = resolved.stream_count();
        in_range("parallel", streams as u64, 1, IoRecord::MAX_STREAMS as u64)?;
        resolved.check_timing()?;
        resolved.basics().into_iter().try_for_each(|basic| basic.check(geometry))?;
        resolved.parts().iter().try_for_each(|part| part.slots().map(|_| ()))
    }

    /// A mix is one stream, so both its patterns arrive by the same rule where one is
    /// an open loop. A queue has no instant at which none of its requests is under way:
    /// a pause would be another thing on every engine.
    pub(crate) fn check_timing(&self) -> Result<(), PatternError> {
        if let Pattern::Queued { depth: depth @ 2.., basic } = self
            && let timing @ (Timing::Pause { .. } | Timing::Burst { .. }) = basic.timing
        {
            return Err(PatternError::QueuedWaits { depth: *depth, timing });
        }
        let Pattern::Mix { first, second, .. } = self else { return Ok(()) };
        let (first, second) = (first.timing, second.timing);
        if first == second || (first.rate(), second.rate()) == (None, None) {
            return Ok(());
        }
        Err(PatternError::MixedArrivals { first, second })
    }

    /// True where any of its streams is an open loop.
    pub fn is_open_loop(&self) -> bool {
        self.basics().iter().any(|basic| basic.timing.rate().is_some())
    }

    /// Whether the instants of `io_count` IOs a stream can be told by a record.
    ///
    /// # Errors
    /// [`PatternError::LongArrivals`].
    pub fn check_instants(&self, io_count: u64) -> Result<(), PatternError> {
        let streams = match self {
            Pattern::Replicated { degree: n, .. } | Pattern::Queued { depth: n, .. } => u64::from(*n),
            _ => 1,
        };
        let ios = io_count.saturating_mul(streams);
        let rates = self.basics().into_iter().filter_map(|basic| basic.timing.rate());
        match rates.min().filter(|rate| rate.time_of(ios) > IoRecord::MAX_SUBMIT) {
            Some(rate) => Err(PatternError::LongArrivals { ios, rate }),
            None => Ok(()),
        }
    }

    /// The basic patterns that run in parallel, each with its own share of the
    /// target space. A mix is one stream and gives both its patterns.
    ///
    /// Replicated (Table 1, Parallelism): TargetSize_p = TargetSize /
    /// ParallelDegree, rounded down to whole IOs so that every share begins as
    /// aligned as the first; TargetOffset_p = TargetOffset + p * TargetSize_p.
    pub(crate) fn parts(&self) -> Vec<Basic> {
        if let Pattern::Queued { depth, basic } = self {
            return vec![*basic; (*depth).min(IoRecord::MAX_STREAMS as u32) as usize];
        }
        let Pattern::Replicated { degree, basic } = self else {
            return self.basics().into_iter().copied().collect();
        };
        let Some(size) = basic.target_size else { return vec![*basic] };
        let degree = u64::from((*degree).clamp(1, IoRecord::MAX_STREAMS as u32));
        let io_size = basic.io_size.0.max(1);
        let share = size.0 / degree / io_size * io_size;
        let part = |p: u64| Basic {
            target_offset: Bytes(basic.target_offset.0.saturating_add(p * share)),
            target_size: Some(Bytes(share)),
            ..*basic
        };
        (0..degree).map(part).collect()
    }
}

#[cfg(test)]
mod tests;
