//! `uflip export`: results for other programs.

use crate::args::{ExportArgs, FormatArg, WhatArg};
use crate::command::compare::subjects;
use crate::command::warn;
use crate::usage;
use std::io::Write;
use std::path::Path;
use uflip_results::export::{self, Format};
use uflip_results::{Store, figures};

/// Runs the command.
///
/// # Errors
/// Where the folder holds no results or the output cannot be written.
pub fn export(args: ExportArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.figures {
        return figures(&args.dirs, args.seed, folder);
    }
    let [dir] = &args.dirs[..] else { return Err(usage("name one folder; only --figures takes several")) };
    let contents = Store::open(Path::new(dir))?;
    warn(&contents);
    let format = match (args.format, &args.output) {
        (Some(FormatArg::Csv), _) | (None, None) => Format::Csv,
        (Some(FormatArg::Json), _) => Format::Json,
        (Some(FormatArg::Parquet), _) => Format::Parquet,
        (None, Some(path)) => Format::of_path(path).map_err(usage)?,
    };
    let only = args.run.map(|id| [id]);
    let mut out: Box<dyn Write + Send> = match &args.output {
        Some(path) => Box::new(std::io::BufWriter::new(
            std::fs::File::create(path)
                .map_err(|e| anyhow::anyhow!("cannot create {}: {e}", path.display()))?,
        )),
        None => Box::new(std::io::stdout()),
    };
    match args.what {
        WhatArg::Runs => export::runs(&contents, format, &mut out)?,
        WhatArg::Records => export::records(&contents, only.as_ref().map(|ids| &ids[..]), format, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// Charts and tables for papers, into a folder; what was written to standard
/// output, a line a file, what could not be made to standard error.
fn figures(dirs: &[String], seed: u64, folder: &Path) -> anyhow::Result<()> {
    let subjects = subjects(dirs, seed)?;
    subjects.iter().for_each(|subject| warn(&subject.contents));
    let written = figures::write(&subjects, folder)?;
    written.left_out.iter().for_each(|why| eprintln!("left out: {why}"));
    let files = written.files.iter().map(|path| format!("{}\n", path.display()));
    crate::command::print(&files.collect::<String>())
}
