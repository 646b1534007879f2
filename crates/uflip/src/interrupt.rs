//! Ctrl-C: once ends after the run in progress, twice gives that run up.

use uflip_device::Stop;

/// The one stop that signals ask.
pub static STOP: Stop = Stop::new();

/// Makes SIGINT, SIGTERM and SIGHUP ask [`STOP`].
///
/// # Errors
/// Where the system does not let a handler be set.
pub fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if STOP.ask() == 1 {
            eprintln!("\nending after the run in progress; interrupt again to give that run up");
        }
    })?;
    Ok(())
}
