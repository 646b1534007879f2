//! Where the records of a single pattern go: to an output that the user names,
//! while the run goes on, or nowhere.

use crate::error::StoreError;
use crate::export::{self, Format};
use crate::output::Output;
use crate::records::{RecordScratch, RecordWriter, header};
use std::io::Write;
use std::path::Path;
use uflip_device::IoRecord;

/// Takes a run's records, in the order in which a record file has them.
pub trait Keep: Send {
    /// Takes some more.
    ///
    /// # Errors
    /// Where they cannot be written.
    fn push(&mut self, run: u32, records: &[IoRecord]) -> Result<(), StoreError>;

    /// All are there. What is dropped without this leaves nothing behind.
    ///
    /// # Errors
    /// Where the output cannot be ended.
    fn finish(self: Box<Self>) -> Result<(), StoreError>;
}

/// Keeps nothing: a run of which only the statistics matter.
pub struct Nothing;

impl Keep for Nothing {
    fn push(&mut self, _: u32, _: &[IoRecord]) -> Result<(), StoreError> {
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Lines of text.
struct Lines {
    out: Output,
    format: Format,
    open_loop: bool,
    text: String,
}

impl Lines {
    fn write(&mut self) -> Result<(), StoreError> {
        let written = self.out.write_all(self.text.as_bytes());
        self.text.clear();
        written.map_err(StoreError::Output)
    }
}

impl Keep for Lines {
    fn push(&mut self, run: u32, records: &[IoRecord]) -> Result<(), StoreError> {
        for some in records.chunks(1024) {
            some.iter()
                .for_each(|record| export::line(run, record, self.format, self.open_loop, &mut self.text));
            self.write()?;
        }
        Ok(())
    }
    fn finish(mut self: Box<Self>) -> Result<(), StoreError> {
        self.write()?;
        self.out.finish()
    }
}

impl Keep for RecordWriter<Output> {
    fn push(&mut self, run: u32, records: &[IoRecord]) -> Result<(), StoreError> {
        RecordWriter::push(self, run, records)
    }
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let (out, _) = RecordWriter::finish(*self)?;
        out.finish()
    }
}

/// Records into the output `path`, in this format; with how late each IO was where
/// the run is an `open_loop`.
///
/// # Errors
/// As [`Output::create`].
pub fn keep_in(path: &Path, format: Format, open_loop: bool) -> Result<Box<dyn Keep>, StoreError> {
    let out = Output::create(path)?;
    if format == Format::Parquet {
        return Ok(Box::new(RecordWriter::of(out, path, RecordScratch::new()?, open_loop)?));
    }
    let text = if format == Format::Csv { header(open_loop) } else { String::new() };
    Ok(Box::new(Lines { out, format, open_loop, text }))
}
