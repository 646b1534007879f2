//! `uflip show`: what a folder holds, as `uflip run` printed it.

use crate::args::ShowArgs;
use crate::command::{print_json, print_painted};
use std::io::IsTerminal;
use std::path::Path;
use uflip_report::terminal::{self, Style};
use uflip_report::view;
use uflip_store::Store;

/// Runs the command.
///
/// # Errors
/// Where the folder holds no results.
pub fn show(args: ShowArgs) -> anyhow::Result<()> {
    print_results(&args.dir, args.json, args.ascii)
}

/// Prints the results in `dir`.
///
/// # Errors
/// Where it holds none.
pub fn print_results(dir: &Path, json: bool, ascii: bool) -> anyhow::Result<()> {
    let view = view::build(&Store::open(dir)?);
    if json {
        return print_json(&view);
    }
    let out = std::io::stdout();
    let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let width = if out.is_terminal() { console::Term::stdout().size().1 } else { 80 };
    let style = Style { width: usize::from(width).clamp(60, 120), color, ascii };
    print_painted(&terminal::render_with(&view, style), color)
}
