//! Job files: experiments as text, one a line, so that new behaviour can be
//! tested without changing the program.
//!
//! What: a [`Job`] is what a job file says, as plain data. How: [`parse`] reads
//! the text and names line and column of what it cannot take; [`expand`] turns
//! a job and a geometry into an ordinary [`crate::plan::Plan`]; [`drive`] walks
//! through it, with the self-scaling rule deciding between block sizes; [`check`]
//! says what each line costs; [`fio`] goes to and from fio's job files; [`suite`]
//! has ready-made jobs. Units: bytes and nanoseconds, in their types.
//!
//! Source: paper 004, appendix A ("each line in the input file describes one
//! experiment").
//!
//! Errata and what the paper leaves open: it does not say where sequential
//! accesses go after the device's end; here they wrap to its beginning. "8 MB or
//! to the self-scaling limit, whichever comes last" is read for each pattern
//! apart: a line goes on to the next block size while any of its patterns grew.

pub mod check;
pub mod drive;
pub mod expand;
pub mod fio;
pub mod meaning;
pub mod parse;
pub mod suite;

use crate::pattern::Baseline;
use serde::{Deserialize, Serialize};
use std::fmt;
use uflip_device::{Buffering, Bytes, Data, Nanos};

pub use check::{Assumed, LineCost, costs};
pub use drive::{DriveError, Throughputs, drive};
pub use expand::{ExpandError, JobPlan, expand};
pub use meaning::{Burst, JobRun, Role, RunExtent};
pub use parse::{buffering_word, parse};

/// What a job file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Of everything random; `None` to draw one.
    pub seed: Option<u64>,
    /// What write buffers hold; `None` for the command's own choice.
    pub data: Option<Data>,
    /// What lies between an IO and the device; `None` for the command's own.
    pub buffering: Option<Buffering>,
    /// The device's logical block, where it is known: what focal factors are
    /// told by.
    pub logical_block: Option<Bytes>,
    /// The experiments, in order.
    pub lines: Vec<Line>,
}

/// An experiment: everything in it that is a list multiplies.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its place in the file, from 1.
    pub number: usize,
    /// What it is called in results and in other lines' `then=`.
    pub name: String,
    /// Sequential or random reads or writes.
    pub patterns: Vec<Baseline>,
    /// IOSize.
    pub block_sizes: Vec<Bytes>,
    /// IOShift: 0 is aligned.
    pub shifts: Vec<Bytes>,
    /// Accesses of a run.
    pub count: Option<u64>,
    /// Bytes of a run, instead of accesses: `bytes / block size` of these.
    pub bytes: Option<Amount>,
    /// Time limit of a run.
    pub time: Option<Nanos>,
    /// How often each pattern is performed.
    pub repeats: u32,
    /// What comes before.
    pub before: Vec<Before>,
    /// How often that is done.
    pub each: Each,
    /// The results are also told for windows of this length.
    pub window: Option<Nanos>,
    /// Double the block size further until throughput grows by less than this
    /// share, in percent.
    pub until_percent: Option<f64>,
    /// Accesses between two flushes; none where nothing is flushed.
    pub syncs: Vec<u32>,
    /// Where sequential accesses start.
    pub start: Start,
    /// Where the target space begins.
    pub offset: Bytes,
    /// How large the target space is; `None` for what is left of the target.
    pub size: Option<Bytes>,
    /// Idle time before each run.
    pub pause: Nanos,
    /// Whole passes over the target space between rounds of detailed tests.
    pub endurance: Option<Endurance>,
}

/// Something done before an experiment to bring the device to a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// The whole device is written sequentially.
    Fill {
        /// With IOs of this size.
        block: Bytes,
    },
    /// A burst of accesses; its lists multiply.
    Burst {
        /// Which.
        baseline: Baseline,
        /// IOSize; `None` stands for the experiment's own.
        blocks: Vec<Option<Bytes>>,
        /// How long.
        lengths: Vec<Length>,
    },
    /// Nothing, for this long.
    Idle {
        /// How long.
        time: Nanos,
    },
}

/// How much a run moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So much.
    Bytes(Bytes),
    /// As much as the target space has.
    All,
}

/// The length of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Length {
    /// So much time.
    #[serde(rename = "time_ns")]
    Time(Nanos),
    /// So many accesses.
    #[serde(rename = "count")]
    Count(u64),
}

/// How often what comes before is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Once for each block size (and shift, and burst).
    Size,
    /// Before every run.
    Run,
}

/// Where sequential accesses start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At a random multiple of the block size, another one in each run.
    Random,
    /// At the beginning of the target space.
    Zero,
}

/// Alternating whole-device writes and detailed tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endurance {
    /// Passes over the target space in a round.
    pub passes: u64,
    /// Rounds.
    pub rounds: u32,
    /// The line that is performed after each round's passes.
    pub then: Option<String>,
}

/// What is wrong with a job file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct JobError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What would have been right there, with an example to type.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

impl Line {
    /// A word of it that does nothing, and why; `None` where each does something.
    pub fn without_effect(&self) -> Option<(&'static str, &'static str)> {
        if self.start == Start::Zero && self.patterns.iter().all(|baseline| baseline.is_random()) {
            return Some(("start=0", "random accesses start nowhere"));
        }
        // With passes nothing comes before.
        let each = self.each == Each::Run && self.before.is_empty();
        each.then_some(("each=run", "there is no before=, so that nothing comes before a run"))
    }
}

impl Before {
    /// True where it leaves the device in a state that a run soon spoils.
    pub const fn is_burst(&self) -> bool {
        matches!(self, Before::Burst { .. })
    }
}

fn list<T>(values: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    values.iter().map(text).collect::<Vec<_>>().join(between)
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Length::Time(time) => write!(f, "time={}", time.exact()),
            Length::Count(count) => write!(f, "count={count}"),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Bytes(bytes) => f.write_str(&bytes.exact()),
            Amount::All => f.write_str("all"),
        }
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Before::Fill { block } => write!(f, "fill({})", block.exact()),
            Before::Idle { time } => write!(f, "idle({})", time.exact()),
            Before::Burst { baseline, blocks, lengths } => {
                let size = |block: &Option<Bytes>| block.map_or("same".to_string(), Bytes::exact);
                let name = baseline.name().to_ascii_lowercase();
                write!(f, "{name}(bs={}", list(blocks, "|", size))?;
                let text = |pick: fn(&Length) -> Option<String>| {
                    lengths.iter().filter_map(pick).collect::<Vec<_>>().join("|")
                };
                let times = text(|l| if let Length::Time(t) = l { Some(t.exact()) } else { None });
                let counts = text(|l| if let Length::Count(c) = l { Some(c.to_string()) } else { None });
                for (key, values) in [("time", times), ("count", counts)] {
                    if !values.is_empty() {
                        write!(f, ",{key}={values}")?;
                    }
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = list(&self.patterns, ",", |b| b.name().to_ascii_lowercase());
        write!(f, "{} {patterns} bs={}", self.name, list(&self.block_sizes, ",", |b| b.exact()))?;
        if self.shifts != [Bytes(0)] {
            write!(f, " shift={}", list(&self.shifts, ",", |b| b.exact()))?;
        }
        if let Some(count) = self.count {
            write!(f, " count={count}")?;
        }
        if let Some(bytes) = self.bytes {
            write!(f, " bytes={bytes}")?;
        }
        if let Some(time) = self.time {
            write!(f, " time={}", time.exact())?;
        }
        if self.repeats != 1 {
            write!(f, " reps={}", self.repeats)?;
        }
        if !self.before.is_empty() {
            write!(f, " before={}", list(&self.before, ",", Before::to_string))?;
            write!(f, " each={}", if self.each == Each::Run { "run" } else { "size" })?;
        }
        if let Some(window) = self.window {
            write!(f, " window={}", window.exact())?;
        }
        if let Some(percent) = self.until_percent {
            write!(f, " until={percent}%")?;
        }
        if !self.syncs.is_empty() {
            write!(f, " sync={}", list(&self.syncs, ",", u32::to_string))?;
        }
        if self.start == Start::Zero {
            f.write_str(" start=0")?;
        }
        if self.offset != Bytes(0) {
            write!(f, " offset={}", self.offset.exact())?;
        }
        if let Some(size) = self.size {
            write!(f, " size={}", size.exact())?;
        }
        if self.pause != Nanos::ZERO {
            write!(f, " pause={}", self.pause.exact())?;
        }
        if let Some(endurance) = &self.endurance {
            write!(f, " passes={} rounds={}", endurance.passes, endurance.rounds)?;
            if let Some(then) = &endurance.then {
                write!(f, " then={then}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Job {
    /// Text that [`parse()`] reads back as an equal job, defaults written out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = Vec::new();
        set.extend(self.seed.map(|seed| format!("seed={seed}")));
        set.extend(self.data.map(|data| format!("data={data}")));
        set.extend(self.buffering.map(|mode| format!("buffering={}", buffering_word(mode))));
        set.extend(self.logical_block.map(|block| format!("logical={}", block.exact())));
        if !set.is_empty() {
            writeln!(f, "set {}", set.join(" "))?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests;
