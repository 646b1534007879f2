//! `uflip export`: results for other programs.

use crate::args::{ExportArgs, FormatArg, WhatArg};
use crate::command::compare::subjects;
use crate::command::{to_stdout, warn};
use crate::printable::Clean;
use crate::usage;
use std::io::Write;
use std::path::Path;
use uflip_report::figures;
use uflip_store::export::{self, Format};
use uflip_store::{Output, Store, StoreContents, output};

/// Runs the command.
///
/// # Errors
/// Where the folder holds no results or the output cannot be written.
pub fn export(args: ExportArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.figures {
        return figures(&args.dirs, args.seed, folder);
    }
    let [dir] = &args.dirs[..] else { return Err(usage("name one folder; only --figures takes several")) };
    if let Some(path) = &args.output {
        output::check(path).map_err(usage)?;
    }
    let contents = Store::open(Path::new(dir))?;
    warn(&contents);
    let format = match (args.format, &args.output) {
        (Some(FormatArg::Csv), _) | (None, None) => Format::Csv,
        (Some(FormatArg::Json), _) => Format::Json,
        (Some(FormatArg::Parquet), _) => Format::Parquet,
        (None, Some(path)) => Format::of_path(path).map_err(usage)?,
    };
    match &args.output {
        Some(path) => {
            let mut out = std::io::BufWriter::new(Output::create(path)?);
            write(&contents, &args, format, &mut out)?;
            let out = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            Ok(out.finish()?)
        }
        None if format == Format::Parquet => {
            to_stdout(write(&contents, &args, format, &mut std::io::stdout()))
        }
        None => {
            let mut out = Clean::new(std::io::stdout(), format == Format::Json);
            to_stdout(write(&contents, &args, format, &mut out))
        }
    }
}

fn write(
    contents: &StoreContents,
    args: &ExportArgs,
    format: Format,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let only = args.run.map(|id| [id]);
    match args.what {
        WhatArg::Runs => export::runs(contents, format, out)?,
        WhatArg::Records => export::records(contents, only.as_ref().map(|ids| &ids[..]), format, out)?,
    }
    Ok(out.flush()?)
}

/// Charts and tables for papers, into a folder; what was written to standard
/// output, a line a file, what could not be made to standard error.
fn figures(dirs: &[String], seed: u64, folder: &Path) -> anyhow::Result<()> {
    let subjects = subjects(dirs, seed)?;
    subjects.iter().for_each(|subject| warn(&subject.contents));
    let written = figures::write(&subjects, folder)?;
    written.left_out.iter().for_each(|why| crate::say!("left out: {why}"));
    let files = written.files.iter().map(|path| format!("{}\n", path.display()));
    crate::command::print(&files.collect::<String>())
}
