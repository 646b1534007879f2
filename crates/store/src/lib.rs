//! What is kept of a measurement: every IO, one row a run, and the folder that
//! holds both, written so that a crash loses no finished run.
//!
//! | module | what |
//! |---|---|
//! | [`recorder`] | memory for records while a run is timed, and their writer |
//! | [`records`] | every IO of a run as Parquet |
//! | [`stats`] | a run's response times summed up |
//! | [`store`] | the folder |
//! | [`together`] | several runs at once |
//! | [`contents`] | the folder as read |
//! | [`manifest`] | what it holds, what was asked for, and on what it was measured |
//! | [`reached`] | how far the state of a device was brought |
//! | [`job`], [`logical_block`] | what kinds of folder have beside that |
//! | [`checksum`], [`damage`] | what is not as it was written, noticed and said |
//! | [`complete`] | what is missing of what was to be measured |
//! | [`export`] | runs and records as CSV, JSON, Parquet |
//! | [`memory`] | runs that leave no folder |
#![forbid(unsafe_code)]

pub mod checksum;
pub mod claim;
pub mod complete;
pub mod contents;
pub mod damage;
mod encode;
pub mod error;
pub mod export;
pub mod files;
mod format1;
pub mod job;
pub mod keep;
pub mod logical_block;
pub mod manifest;
pub mod memory;
pub mod output;
pub mod reached;
pub mod recorder;
pub mod records;
mod rows;
pub mod stats;
pub mod store;
pub mod together;
pub mod verify;

pub use claim::Claim;
pub use contents::{RecordFile, RunRow, StoreContents};
pub use error::StoreError;
pub use export::Format;
pub use files::{read_inside, read_json_bytes, write_json};
pub use manifest::{FORMAT, Manifest, Options};
pub use output::Output;
pub use records::{read_records, read_row_groups};
pub use store::{Durability, Store};
pub use together::Together;
