//! Finds the method's parameters in series of response times: start-up,
//! period, the mean's interval, when a run is long enough, what lasts after
//! a batch of writes, whether the state is steady, why repeats differ, and the
//! knees of the micro-benchmarks' curves.
//!
//! Everything here is a pure function of numbers: no device, no clock, no
//! files; what resamples takes a seed. Response times are nanoseconds. "None"
//! is a normal answer, and never written as 0. Each file's header names its
//! method and source; [`synthetic`] makes series whose truth is known, and
//! `cargo run --release -p uflip-measure --example detectors` prints how often
//! the detectors are right on them.

pub mod between;
pub mod drift;
pub mod enough;
pub mod interval;
pub mod knee;
pub mod lasting;
pub mod level;
pub mod long;
pub mod period;
pub mod proof;
pub mod spread;
pub mod startup;
pub mod steady;
pub mod synthetic;
pub mod verdict;

mod cusum;
mod series;

#[cfg(test)]
mod tests;
