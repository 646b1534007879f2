//! Ctrl-C: once ends after the run in progress, twice gives that run up. A
//! hang-up (the terminal is gone) ends after the run in progress, however often
//! it is told: the kernel and the shell both tell it. Under `nohup` it is nothing.

use anyhow::Context;
use uflip_device::{Stop, process};

/// The one stop that signals ask.
pub static STOP: Stop = Stop::new();

/// Makes SIGINT, SIGTERM and SIGHUP ask [`STOP`].
///
/// # Errors
/// Where the system does not let a handler be set.
pub fn listen() -> anyhow::Result<()> {
    listen_with("ending after the run in progress; interrupt again to give that run up")
}

/// The same, with what is said at the first of them; nothing where it is empty.
///
/// # Errors
/// Where the system does not let a handler be set.
pub fn listen_with(first: &'static str) -> anyhow::Result<()> {
    // Before the handler below takes its place.
    let ignored = process::ignores_hang_up();
    let asked = move || {
        if STOP.ask() == 1 && !first.is_empty() {
            crate::say!("\n{first}");
        }
    };
    ctrlc::set_handler(asked).context("cannot listen for Ctrl-C")?;
    if ignored {
        process::ignore_hang_up();
    } else {
        process::on_hang_up(&STOP);
    }
    Ok(())
}
