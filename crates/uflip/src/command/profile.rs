//! `uflip profile`: what the runs of a folder boil down to.

use crate::args::ProfileArgs;
use crate::command::{print, print_as_kept};
use uflip_analysis::profile::{self, card};
use uflip_store::Store;

/// Runs the command: makes the profile from the stored runs, writes it beside
/// them and prints it. A folder that cannot be written to is no failure.
///
/// # Errors
/// Where the folder holds no results or a record file is damaged.
pub fn profile(args: ProfileArgs) -> anyhow::Result<()> {
    let profile = profile::build(&Store::open(&args.dir)?)?;
    if let Err(error) = profile::write(&args.dir, &profile) {
        crate::say!("note: {error}");
    }
    if args.json { print_as_kept(&profile) } else { print(&card::render(&profile)) }
}
