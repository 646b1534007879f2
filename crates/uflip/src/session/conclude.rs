//! The end of a session that came to its end: profile, report, and the scratch file
//! that nobody asked for.

use crate::say::warn;
use crate::{target, usage};
use std::path::{Path, PathBuf};
use uflip_analysis::known_devices::known_devices;
use uflip_analysis::profile;
use uflip_device::{Bytes, scratch};
use uflip_report::report;
use uflip_store::{Options, Store, output};

/// Makes profile and report of a finished folder.
///
/// # Errors
/// Where the results cannot be read or the files not be written.
pub fn make_report(dir: &Path) -> anyhow::Result<()> {
    profile::write(dir, &profile::build(&Store::open(dir)?)?)?;
    write_report(dir, None)
}

/// Makes profile and report of a finished folder; removes the scratch file that
/// nobody asked for, last, as without it there is nothing to go on with.
///
/// # Errors
/// Where the results cannot be read or the files not be written.
pub fn conclude(dir: &Path, options: &Options, keep_scratch: bool) -> anyhow::Result<()> {
    make_report(dir)?;
    let path = Path::new(&options.target);
    if options.remove_scratch && !keep_scratch && path.exists() && is_the_one_measured(dir, path)? {
        target::remove_scratch(path);
    }
    Ok(())
}

/// Whether the scratch file at `path` is the very one that the results are of, and no
/// program wrote it since.
fn is_the_one_measured(dir: &Path, path: &Path) -> anyhow::Result<bool> {
    let identity = Store::open(dir)?.manifest.target.identity;
    let measured = identity.and_then(|identity| identity.file).and_then(|file| file.key);
    Ok(measured.is_some() && scratch::identity(path) == measured && !scratch::is_programmed(path))
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
