//! `uflip report`: the results of a folder as one HTML file.

use crate::args::ReportArgs;
use crate::session::write_report;

/// Runs the command.
///
/// # Errors
/// Where the folder holds no results or the file cannot be written.
pub fn report(args: ReportArgs) -> anyhow::Result<()> {
    write_report(&args.dir, args.output)
}
