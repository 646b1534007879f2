//! What a run does.

use crate::pattern::{Basic, MakeStream, Pattern, PatternError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uflip_device::Stream;

/// What a run does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// The IOs of a pattern.
    Pattern(Pattern),
    /// A program on the data face, which decides itself what it asks of the device.
    Program(Program),
    /// The requests of a recorded trace.
    Trace(ReplayedTrace),
}

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// What it was asked for, by names of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Streams of records: what it does on one device is one.
    pub streams: u32,
    /// True where it changes what the device holds.
    pub writes: bool,
}

/// A trace that is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedTrace {
    /// Where it came from, as a person knows it.
    pub name: String,
    /// The checksum of its text.
    pub checksum: String,
    /// Streams that it is replayed by.
    pub streams: u32,
    /// True where it has writes or trims.
    pub writes: bool,
}

impl Work {
    /// The pattern, where it is one.
    pub const fn pattern(&self) -> Option<&Pattern> {
        match self {
            Work::Pattern(pattern) => Some(pattern),
            Work::Program(_) | Work::Trace(_) => None,
        }
    }

    /// The basic patterns it is made of; none where it is no pattern.
    pub fn basics(&self) -> Vec<&Basic> {
        self.pattern().map(Pattern::basics).unwrap_or_default()
    }

    /// How many streams run in parallel.
    pub fn stream_count(&self) -> usize {
        match self {
            Work::Pattern(pattern) => pattern.stream_count(),
            Work::Program(Program { streams, .. }) | Work::Trace(ReplayedTrace { streams, .. }) => {
                *streams as usize
            }
        }
    }

    /// How many patterns its records tell apart: two for a mix, else one.
    pub const fn pattern_count(&self) -> usize {
        match self {
            Work::Pattern(Pattern::Mix { .. }) => 2,
            _ => 1,
        }
    }

    /// True where its IOs are due at instants of their own.
    pub fn is_open_loop(&self) -> bool {
        self.pattern().is_some_and(Pattern::is_open_loop)
    }

    /// True where it changes what the device holds.
    pub fn writes(&self) -> bool {
        match self {
            Work::Pattern(pattern) => pattern.writes(),
            Work::Program(Program { writes, .. }) | Work::Trace(ReplayedTrace { writes, .. }) => *writes,
        }
    }

    /// Its streams of IOs.
    ///
    /// # Errors
    /// [`PatternError`] where it gives no IOs, or is no pattern: those who perform
    /// programs and traces make their IOs themselves.
    pub fn streams(&self, io_count: u64, seed: u64) -> Result<Vec<Stream>, PatternError> {
        self.pattern().ok_or(PatternError::None)?.streams(io_count, seed)
    }

    /// The sequence that they are dealt from, where they stand for a queue.
    ///
    /// # Errors
    /// As [`Work::streams`].
    pub fn sequence(&self, io_count: u64, seed: u64) -> Result<Option<MakeStream>, PatternError> {
        self.pattern().map_or(Ok(None), |pattern| pattern.sequence(io_count, seed))
    }
}

impl std::fmt::Display for Work {
    /// A pattern's text, or what is done in a few words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Work::Pattern(pattern) => write!(f, "{pattern}"),
            Work::Program(program) => write!(f, "the program {}", program.name),
            Work::Trace(trace) => write!(f, "the trace {}", trace.name),
        }
    }
}
