//! Everything after measurement: what is kept, how it is summed up, and how it
//! is shown.
//!
//! | module | what |
//! |---|---|
//! | [`records`] | every IO of a run as Parquet |
#![forbid(unsafe_code)]

mod encode;
pub mod error;
pub mod records;
