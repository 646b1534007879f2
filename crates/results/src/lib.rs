//! Everything after measurement: what is kept, how it is summed up, and how it
//! is shown.
//!
//! | module | what |
//! |---|---|
//! | [`recorder`] | memory for records while a run is timed, and their writer |
//! | [`records`] | every IO of a run as Parquet |
//! | [`stats`] | a run's response times summed up |
//! | [`store`] | the folder, written so that a crash loses no finished run |
//! | [`contents`] | the folder as read |
//! | [`checksum`], [`damage`] | what is not as it was written, noticed and said |
//! | [`complete`] | what is missing of what was to be measured |
//! | [`export`] | runs and records as CSV, JSON, Parquet |
//! | [`compare`] | profiles side by side |
//! | [`figures`] | charts and tables for papers |
//! | [`profile`] | what the runs boil down to: figures, hints, soundness |
//! | [`view`] | one report as plain data |
//! | [`job_report`] | what a job file's runs came to |
//! | [`model`] | cost models, fitted and applied |
//! | [`trace`] | block traces and their character |
//! | [`terminal`] | that report as text |
//! | [`report`] | that report as one HTML file, with traces |
#![forbid(unsafe_code)]

pub mod checksum;
pub mod claim;
pub mod compare;
pub mod complete;
pub mod contents;
pub mod damage;
mod encode;
pub mod error;
pub mod export;
pub mod figures;
mod files;
pub mod job_report;
pub mod keep;
pub mod model;
pub mod output;
pub mod profile;
pub mod recorder;
pub mod records;
pub mod report;
mod rows;
mod spectrum;
pub mod stats;
pub mod store;
pub mod terminal;
pub mod trace;
mod verify;
pub mod view;

pub use claim::Claim;
pub use contents::{FORMAT, Manifest, RecordFile, RunRow, StoreContents};
pub use error::StoreError;
pub use export::Format;
pub use files::{read_inside, read_json_bytes, write_json};
pub use output::Output;
pub use profile::Profile;
pub use records::{read_records, read_row_groups};
pub use store::{Durability, Store};
pub use view::View;
