//! Files that the user hands in: read with a limit, so that no device, endless
//! FIFO or huge file takes the memory.
//!
//! | there is | then |
//! |---|---|
//! | a file, or a FIFO such as the shell's `<(…)` | read, up to the limit |
//! | a device, a folder, a socket | refused |

use crate::usage;
use anyhow::Context;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use uflip_device::Bytes;

/// A plan: some 200,000 runs.
pub const PLAN: Bytes = Bytes(512 << 20);
/// A job file, a device's description.
pub const DESCRIPTION: Bytes = Bytes(1 << 20);

/// Opens `path` for reading where it is a file or a FIFO.
///
/// # Errors
/// [`crate::Usage`] where it is anything else; what the system says.
pub fn open(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let kind = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        let what = if kind.is_dir() { "folder" } else { "device" };
        return Err(usage(format!("{shown} is a {what} and no file; type a file's name")));
    }
    File::open(path).with_context(|| format!("cannot read {shown}"))
}

/// The text in `path`, at most so much of it; `what` it should be, in words.
///
/// # Errors
/// As [`open`], and where it is longer or no text.
pub fn text(path: &Path, most: Bytes, what: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = open(path)?.take(most.0 + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > most.0 {
        return Err(usage(format!("{shown} is too long: {what} has at most {most}")));
    }
    String::from_utf8(bytes).map_err(|_| usage(format!("{shown} is no text; {what} is")))
}
