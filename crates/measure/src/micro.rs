//! The micro-benchmarks, one file each: the nine of 2009, each a row of Table 1, and
//! what came later.
//!
//! What: a [`Row`] says what a micro-benchmark is called, which parameter it
//! varies over which values and curves, and gives the reference pattern for
//! one curve and value. How: constants and plain functions; the reference
//! pattern has no target space yet except where TargetSize is what varies;
//! [`crate::plan`] places it. Source: paper 000/001, section 3.2 and Table 1.

use crate::names::NameError;
use crate::pattern::{Baseline, Basic, Pattern};
use crate::run::RunSection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use uflip_device::{Bytes, Nanos};

/// Makes [`MicroBenchmark`] of a list: the variant, its module and what varies.
macro_rules! micro_benchmarks {
    ($($variant:ident $module:ident $varies:literal)*) => {
        $(pub mod $module;)*

        /// A micro-benchmark: the nine of section 3.2, and what came later.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub enum MicroBenchmark {
            $(#[doc = $varies] $variant,)*
        }

        impl MicroBenchmark {
            /// All of them: the nine in the order of section 3.2, then the others.
            pub const ALL: &[MicroBenchmark] = &[$(MicroBenchmark::$variant,)*];

            /// Its row of Table 1.
            pub const fn row(self) -> &'static Row {
                match self {
                    $(MicroBenchmark::$variant => &$module::ROW,)*
                }
            }
        }
    };
}

// The one list: a micro-benchmark more is a line here and a file beside the others.
micro_benchmarks! {
    Granularity granularity "IOSize."
    Alignment alignment "IOShift."
    Locality locality "TargetSize."
    Partitioning partitioning "Partitions."
    Order order "Incr."
    Parallelism parallelism "ParallelDegree."
    Mix mix "Ratio."
    Pause pause "Pause."
    Bursts bursts "Burst."
    QueueDepth queue_depth "QueueDepth."
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// About every other value, once, with short runs.
    Quick,
    /// Table 1's values with the paper's run lengths and three repeats.
    Standard,
    /// More values than Table 1, from the random state.
    Full,
}

/// A curve of a micro-benchmark: a baseline, or a pair of them to be mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Curve {
    /// One of the four baselines.
    One(Baseline),
    /// Pattern 1 and pattern 2 of a mix.
    Pair(Baseline, Baseline),
}

/// A row of Table 1.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name here: `granularity`, …
    pub name: &'static str,
    /// Its name and what it varies, for a heading.
    pub title: &'static str,
    /// Measured where nobody chooses: one of the nine of 2009.
    pub usual: bool,
    /// The varying parameter as the papers call it.
    pub parameter: &'static str,
    /// Its values stand side by side in a chart: steps forward and backward, ratios.
    pub categorical: bool,
    /// The baselines it departs from.
    pub curves: &'static [Curve],
    /// The parameter's values, for a preset, a curve and an IOSize.
    pub values: fn(Preset, Curve, Bytes) -> Vec<i64>,
    /// A value as a person reads it.
    pub label: fn(i64) -> String,
    /// A value from what a person types.
    pub parse: fn(&str) -> Option<i64>,
    /// The reference pattern for a curve, a value and an IOSize, or why there
    /// is none.
    pub pattern: fn(Curve, i64, Bytes) -> Result<Pattern, String>,
}

/// Changes to one micro-benchmark; `None` keeps Table 1's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Override {
    /// The parameter's values, in the unit of [`crate::run::Point::value`].
    pub values: Option<Vec<i64>>,
    /// IOSize of its patterns.
    pub io_size: Option<Bytes>,
    /// Its baselines.
    pub baselines: Option<Vec<Curve>>,
}

/// Changes to the micro-benchmarks, by name.
pub type Overrides = BTreeMap<MicroBenchmark, Override>;

/// A value that was left out because the target cannot take it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Of which chart: a micro-benchmark, or a line of a job.
    pub micro_benchmark: RunSection,
    /// Which curve.
    pub baseline: Curve,
    /// The value as a person reads it.
    pub label: String,
    /// Why.
    pub reason: String,
}

/// The four baselines as curves.
pub const BASELINES: &[Curve] =
    &[Curve::One(Baseline::Sr), Curve::One(Baseline::Rr), Curve::One(Baseline::Sw), Curve::One(Baseline::Rw)];

/// The two sequential baselines.
pub const SEQUENTIAL: &[Curve] = &[Curve::One(Baseline::Sr), Curve::One(Baseline::Sw)];

impl MicroBenchmark {
    /// Its name: `granularity`, …
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Those that are measured where nobody chooses: the nine of 2009.
    pub fn usual() -> impl Iterator<Item = MicroBenchmark> {
        MicroBenchmark::ALL.iter().copied().filter(|micro| micro.row().usual)
    }
}

impl From<MicroBenchmark> for String {
    fn from(micro: MicroBenchmark) -> String {
        micro.name().into()
    }
}

impl TryFrom<String> for MicroBenchmark {
    type Error = NameError;
    fn try_from(text: String) -> Result<MicroBenchmark, NameError> {
        text.parse()
    }
}

impl fmt::Display for MicroBenchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MicroBenchmark {
    type Err = NameError;
    fn from_str(text: &str) -> Result<MicroBenchmark, NameError> {
        let all = MicroBenchmark::ALL;
        let found = all.iter().find(|m| m.name().eq_ignore_ascii_case(text.trim())).copied();
        let names = || all.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| NameError::new(text, "micro-benchmark", format!("one of {}", names())))
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Preset::Quick => "quick",
            Preset::Standard => "standard",
            Preset::Full => "full",
        })
    }
}

impl FromStr for Preset {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Preset, NameError> {
        let all = [Preset::Quick, Preset::Standard, Preset::Full];
        let error = || NameError::new(text, "preset", "quick, standard or full");
        all.into_iter().find(|p| p.to_string().eq_ignore_ascii_case(text.trim())).ok_or_else(error)
    }
}

impl Curve {
    /// The baselines it is made of.
    pub fn baselines(self) -> Vec<Baseline> {
        match self {
            Curve::One(one) => vec![one],
            Curve::Pair(first, second) => vec![first, second],
        }
    }

    /// The baseline, where it is a single one.
    pub const fn one(self) -> Option<Baseline> {
        if let Curve::One(baseline) = self { Some(baseline) } else { None }
    }

    /// Its baseline pattern, where it is a single one.
    ///
    /// # Errors
    /// Says that a pair is for the mix only.
    pub fn basic(self, io_size: Bytes) -> Result<Basic, String> {
        match self {
            Curve::One(baseline) => Ok(baseline.basic(io_size)),
            Curve::Pair(..) => Err("a pair of baselines is for the mix only".to_string()),
        }
    }

    /// Its baseline pattern, where that is a sequential one.
    ///
    /// # Errors
    /// Says why not.
    pub fn sequential(self, io_size: Bytes) -> Result<Basic, String> {
        let basic = self.basic(io_size)?;
        if basic.is_random() { Err("Table 1: sequential patterns only".to_string()) } else { Ok(basic) }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Curve::One(one) => write!(f, "{one}"),
            Curve::Pair(first, second) => write!(f, "{first}/{second}"),
        }
    }
}

impl FromStr for Curve {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Curve, NameError> {
        let one = |name: &str| {
            Baseline::ALL.into_iter().find(|b| b.name().eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
                let instead = "SR, RR, SW or RW, or two of them for the mix, such as SR/RW";
                NameError::new(text, "baseline", instead)
            })
        };
        match text.split_once('/') {
            Some((first, second)) => Ok(Curve::Pair(one(first)?, one(second)?)),
            None => one(text).map(Curve::One),
        }
    }
}

impl From<Curve> for String {
    fn from(curve: Curve) -> String {
        curve.to_string()
    }
}

impl TryFrom<String> for Curve {
    type Error = NameError;
    fn try_from(text: String) -> Result<Curve, NameError> {
        text.parse()
    }
}

/// `2^e * unit` for each exponent: all of them, or for `quick` every other one
/// and both ends.
fn powers(preset: Preset, exponents: RangeInclusive<u32>, unit: i64) -> Vec<i64> {
    let (first, last) = (*exponents.start(), *exponents.end());
    let kept = |e: &u32| preset != Preset::Quick || (e - first).is_multiple_of(2) || *e == last;
    exponents.filter(kept).map(|e| unit << e).collect()
}

/// `values` and, for `full`, `more`, in ascending order.
fn with_more(preset: Preset, mut values: Vec<i64>, more: &[i64]) -> Vec<i64> {
    if preset == Preset::Full {
        values.extend(more);
        values.sort_unstable();
        values.dedup();
    }
    values
}

fn bytes(value: i64) -> Result<Bytes, String> {
    u64::try_from(value).map(Bytes).map_err(|_| format!("{value} is not a size"))
}

fn nanos(value: i64) -> Result<Nanos, String> {
    u64::try_from(value).map(Nanos).map_err(|_| format!("{value} is not a time"))
}

fn count(value: i64) -> Result<u32, String> {
    u32::try_from(value)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("{value} is not a number from 1 to {}", u32::MAX))
}

fn bytes_label(value: i64) -> String {
    bytes(value).map_or_else(|_| value.to_string(), Bytes::exact)
}

fn parse_bytes(text: &str) -> Option<i64> {
    i64::try_from(text.parse::<Bytes>().ok()?.0).ok()
}

fn number_label(value: i64) -> String {
    value.to_string()
}

fn parse_number(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
