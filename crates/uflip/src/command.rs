//! The commands, one file each, and the little they share.

pub mod compare;
pub mod demo;
pub mod devices;
pub mod export;
pub mod job;
pub mod logical_block;
pub mod pattern;
pub mod plan;
pub mod predict;
pub mod profile;
pub mod proof;
pub mod report;
pub mod run;
pub mod show;
pub mod sim;
pub mod verify;

use std::io::Write;

/// Writes data to standard output; progress and messages go to standard error.
///
/// # Errors
/// Where standard output is closed.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says on standard error what has to be said of results before anything else.
pub fn warn(contents: &uflip_results::StoreContents) {
    contents.alerts().iter().for_each(|alert| eprintln!("warning: {alert}"));
}

/// Prints `value` as indented JSON.
///
/// # Errors
/// Where standard output is closed.
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// A seed where the user gave none: different each time, and printed.
pub fn fresh_seed() -> u64 {
    let now = uflip_device::unix_now();
    // Short enough to be typed again.
    uflip_device::rng::derive_seed(now, u64::from(std::process::id())) % 1_000_000_000
}
