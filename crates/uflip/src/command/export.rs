//! `uflip export`: results for other programs.

use crate::args::{ExportArgs, FormatArg, WhatArg};
use crate::usage;
use std::io::Write;
use uflip_results::Store;
use uflip_results::export::{self, Format};

/// Runs the command.
///
/// # Errors
/// Where the folder holds no results or the output cannot be written.
pub fn export(args: ExportArgs) -> anyhow::Result<()> {
    let contents = Store::open(&args.dir)?;
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
