//! Ctrl-C: once ends after the run in progress, twice gives that run up.

use uflip_device::Stop;

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
    ctrlc::set_handler(move || {
        if STOP.ask() == 1 && !first.is_empty() {
            eprintln!("\n{first}");
        }
    })?;
    Ok(())
}
