//! How late answers were against the model.
//!
//! What: for each request the time from the model's completion (arrival plus
//! virtual response time) until its answer has been handed to the kernel. Not
//! in it: the way of a request from the program through the loop device to us,
//! and of the answer back.
//! How: an HDR histogram of three significant digits, in nanoseconds.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use uflip_device::{Mode, Nanos};

/// An answer later than an hour counts as an hour late.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts and the histogram so far.
#[derive(Debug)]
pub struct Lateness {
    late: Histogram<u64>,
    modelled_ns: u128,
    answered_ns: u128,
    counts: LateCounts,
}

/// Requests answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateCounts {
    reads: u64,
    writes: u64,
    flushes: u64,
    trims: u64,
}

/// What is printed: times in nanoseconds, null where nothing was answered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LatenessReport {
    /// Requests answered.
    pub requests: u64,
    #[serde(flatten)]
    counts: LateCounts,
    late_p50_ns: Option<u64>,
    late_p99_ns: Option<u64>,
    late_max_ns: Option<u64>,
    /// Mean response time by the model, and from arrival to answer.
    modelled_mean_ns: Option<u64>,
    answered_mean_ns: Option<u64>,
}

impl Lateness {
    /// Nothing answered yet.
    pub fn new() -> Lateness {
        let late = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("three digits are allowed");
        Lateness { late, modelled_ns: 0, answered_ns: 0, counts: LateCounts::default() }
    }

    /// Notes a request that arrived, was due and was answered at these times.
    pub fn note(&mut self, mode: Mode, arrived: Nanos, due: Nanos, answered: Nanos) {
        self.late.saturating_record(answered.0.saturating_sub(due.0));
        self.modelled_ns += u128::from(due.0.saturating_sub(arrived.0));
        self.answered_ns += u128::from(answered.0.saturating_sub(arrived.0));
        let count = match mode {
            Mode::Read => &mut self.counts.reads,
            Mode::Write => &mut self.counts.writes,
            Mode::Flush => &mut self.counts.flushes,
            Mode::Trim => &mut self.counts.trims,
        };
        *count += 1;
    }

    /// The figures so far.
    pub fn report(&self) -> LatenessReport {
        let n = self.late.len();
        let some = |value: u64| (n > 0).then_some(value);
        let mean = |sum: u128| (n > 0).then(|| (sum / u128::from(n)) as u64);
        LatenessReport {
            requests: n,
            counts: self.counts,
            late_p50_ns: some(self.late.value_at_quantile(0.5)),
            late_p99_ns: some(self.late.value_at_quantile(0.99)),
            late_max_ns: some(self.late.max()),
            modelled_mean_ns: mean(self.modelled_ns),
            answered_mean_ns: mean(self.answered_ns),
        }
    }
}

impl std::fmt::Display for LatenessReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let c = &self.counts;
        write!(
            f,
            "{} requests answered ({} reads, {} writes, {} flushes, {} trims)",
            self.requests, c.reads, c.writes, c.flushes, c.trims
        )?;
        let ns = |v: Option<u64>| Nanos(v.unwrap_or(0));
        if self.requests == 0 {
            return Ok(());
        }
        write!(
            f,
            "; mean {} by the model, {} from arrival to answer; late by {} (50 %), {} (99 %), {} (max)",
            ns(self.modelled_mean_ns),
            ns(self.answered_mean_ns),
            ns(self.late_p50_ns),
            ns(self.late_p99_ns),
            ns(self.late_max_ns)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_counted_from_what_the_model_says() {
        let mut lateness = Lateness::new();
        for i in 1..=100 {
            lateness.note(Mode::Read, Nanos(1000), Nanos(3000), Nanos(3000 + i * 10));
        }
        lateness.note(Mode::Trim, Nanos(0), Nanos(2000), Nanos(2000));
        let report = lateness.report();
        assert_eq!((report.requests, report.counts.reads, report.counts.trims), (101, 100, 1));
        assert_eq!((report.late_p50_ns, report.late_max_ns), (Some(500), Some(1000)));
        assert_eq!(report.modelled_mean_ns, Some(2000));
        assert_eq!(report.answered_mean_ns, Some((100 * 2505 + 2000) / 101));
    }

    #[test]
    fn nothing_answered_is_null_and_not_zero() {
        let value = serde_json::to_value(Lateness::new().report()).unwrap();
        assert_eq!((&value["requests"], &value["late_p99_ns"]), (&0.into(), &serde_json::Value::Null));
    }
}
