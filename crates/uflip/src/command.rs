//! The commands, one file each, and the little they share.

pub mod compare;
pub mod copy;
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

use crate::printable;
pub use crate::say::warn;
use anyhow::Context;
use std::io::Write;

/// Writes data to standard output; progress and messages go to standard error.
/// Nothing in it steers a terminal ([`printable`]).
///
/// # Errors
/// Where standard output is closed.
pub fn print(text: &str) -> anyhow::Result<()> {
    write_out(&printable::lines(text))
}

/// The same of text that was painted where `color` is true.
///
/// # Errors
/// As of [`print`].
pub fn print_painted(text: &str, color: bool) -> anyhow::Result<()> {
    write_out(&if color { printable::painted(text) } else { printable::lines(text) })
}

fn write_out(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    to_stdout(written.context("cannot write to standard output"))
}

/// Nobody reads standard output any more: `uflip … | head`.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
struct StdoutClosed;

/// What came of writing to standard output: a pipe that its reader closed is told
/// from one that is an output by name, whose reader was to have all of it.
///
/// # Errors
/// As they are.
pub fn to_stdout(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.map_err(|error| {
        let causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
        let closed = causes.into_iter().any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe);
        if closed { StdoutClosed.into() } else { error }
    })
}

/// Whether a command ended because standard output was closed: nothing went wrong.
pub fn is_stdout_closed(error: &anyhow::Error) -> bool {
    error.is::<StdoutClosed>()
}

/// Prints `value` as indented JSON.
///
/// # Errors
/// Where standard output is closed.
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&(printable::json(&serde_json::to_string_pretty(value)?) + "\n"))
}

/// Prints `value` as the file that it is kept in, its own checksum included: a
/// copy of what is printed is as good as the file.
///
/// # Errors
/// Where standard output is closed.
pub fn print_as_kept(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let clean = printable::json(&serde_json::to_string_pretty(value)?);
    print(&String::from_utf8(uflip_store::checksum::seal(clean.into_bytes()))?)
}

/// A seed where the user gave none: different each time, and printed.
pub fn fresh_seed() -> u64 {
    let now = uflip_device::unix_now();
    // Short enough to be typed again.
    uflip_device::rng::derive_seed(now, u64::from(std::process::id())) % 1_000_000_000
}
