//! What a run of a job stands for, stored with the run: whoever reads results
//! needs neither the job's text nor the planner that expanded it.
//!
//! Units: bytes and ns, in names as JSON. Source: paper 004, appendix A.

use super::Length;
use crate::pattern::Baseline;
use serde::{Deserialize, Serialize};
use uflip_device::{Bytes, Nanos};

/// What a run of a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The experiment itself.
    Measured,
    /// It comes before one.
    Before,
    /// Whole-device writes of an endurance experiment.
    Passes,
}

/// What a run ends with, a time limit apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunExtent {
    /// So many accesses.
    Count,
    /// So many bytes.
    Bytes,
    /// The target space, all of it.
    Whole,
    /// Nothing but its time limit.
    Time,
}

/// A burst of accesses that comes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Which pattern.
    pub baseline: Baseline,
    /// IOSize.
    #[serde(rename = "block_bytes")]
    pub block: Bytes,
    /// How long.
    pub length: Length,
}

/// What a run of a job stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRun {
    /// The line's name.
    pub line: String,
    /// The line's number in the job file, from 1.
    pub line_number: usize,
    /// The stretch of the plan that is done or left out as a whole, from 0.
    pub segment: u32,
    /// The segment is done only where throughput grew by this share, in percent,
    /// at the block size before: the self-scaling rule. `None` where it is done
    /// in any case.
    #[serde(default)]
    pub if_grown_percent: Option<f64>,
    /// What it is for.
    pub role: Role,
    /// Runs that were brought about by the same things before have the same.
    pub group: u32,
    /// The endurance round that it follows or belongs to, from 0.
    #[serde(default)]
    pub round: Option<u32>,
    /// Whole-target writes by endurance passes up to the end of that round.
    #[serde(default)]
    pub passes: Option<u64>,
    /// Which pattern.
    pub baseline: Baseline,
    /// IOSize.
    #[serde(rename = "block_bytes")]
    pub block: Bytes,
    /// IOShift.
    #[serde(rename = "shift_bytes")]
    pub shift: Bytes,
    /// The line has several shifts.
    #[serde(default)]
    pub shifts: bool,
    /// The burst before it.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// Accesses between two flushes, where there are flushes.
    #[serde(default)]
    pub sync: Option<u32>,
    /// The results are also told for windows of this length.
    #[serde(default, rename = "window_ns")]
    pub window: Option<Nanos>,
    /// What it ends with.
    pub extent: RunExtent,
    /// The device's logical block, where the job says it: what focal factors of
    /// runs with flushes are told by.
    #[serde(default, rename = "logical_block_bytes")]
    pub logical_block: Option<Bytes>,
    /// From 0.
    pub repeat: u32,
}

impl std::fmt::Display for Burst {
    /// `rw(bs=2K,time=5s)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.baseline.name().to_ascii_lowercase();
        write!(f, "{name}(bs={},{})", self.block.exact(), self.length)
    }
}

impl Burst {
    /// Its length, where it is one in time.
    pub const fn time(&self) -> Option<Nanos> {
        if let Length::Time(time) = self.length { Some(time) } else { None }
    }
}

impl JobRun {
    /// The curve that a measured run belongs to: the line, with what else varies
    /// in it besides the block size.
    pub fn section(&self) -> String {
        let mut name = self.line.clone();
        if self.shifts || self.shift != Bytes(0) {
            name += &format!(" shift={}", self.shift.exact());
        }
        if let Some(burst) = &self.burst {
            name += &format!(" after {burst}");
        }
        if let Some(sync) = self.sync {
            name += &format!(" sync={sync}");
        }
        if let Some(round) = self.round {
            name += &format!(" round={round}");
        }
        name
    }
}
