//! `uflip report`: the results of a folder as one HTML file.

use crate::args::ReportArgs;
use crate::command::warn;
use crate::usage;
use std::path::{Path, PathBuf};
use uflip_analysis::known_devices::known_devices;
use uflip_device::Bytes;
use uflip_report::report;
use uflip_store::{Store, output};

/// Runs the command.
///
/// # Errors
/// Where the folder holds no results or the file cannot be written.
pub fn report(args: ReportArgs) -> anyhow::Result<()> {
    write_report(&args.dir, args.output)
}

/// Writes the report of `dir`, into it where no other file is named, and says
/// so on standard error.
///
/// # Errors
/// Where it holds no results or the file cannot be written.
pub fn write_report(dir: &Path, output: Option<PathBuf>) -> anyhow::Result<()> {
    let contents = Store::open(dir)?;
    warn(&contents);
    let (path, made) = match output {
        Some(path) => {
            output::check(&path).map_err(usage)?;
            let made = report::write_to(&contents, &known_devices(), &path)?;
            (path, made)
        }
        None => {
            let path = dir.join("report.html");
            let made = report::write(&contents, &known_devices(), &path)?;
            (path, made)
        }
    };
    let size = Bytes(made.html.len() as u64);
    crate::say!("the report is in {} ({} KiB)", path.display(), size.0.div_ceil(1024));
    Ok(())
}
