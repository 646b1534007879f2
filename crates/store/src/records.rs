//! Per-IO records as Parquet: one file a run, read as it is by DuckDB, pandas
//! (pyarrow) and polars.
//!
//! Method: the file's frame (page headers, footer) is the `parquet` crate's;
//! the pages inside are encoded here (`encode.rs`), which costs less and
//! lets every row group choose its own encoding. A row group is 131,072 rows.
//! Columns, types and encodings are described in `docs/format.md`.

use crate::encode::{Dictionary, Planes, delta, levels};
use crate::error::{StoreError, path_error};
use crate::files::{open_regular, unreadable};
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos};

/// Rows of one row group; the last one of a file may have fewer.
pub const ROW_GROUP_ROWS: usize = 131_072;

/// The columns of a record file, in order.
pub const COLUMNS: [&str; 8] =
    ["run", "stream", "pattern", "submit_ns", "response_ns", "offset", "size", "mode"];

/// The column after them in a file with IOs of an open loop.
pub const LATE: &str = "late_ns";

/// The columns of a file that has IOs of an open loop or not.
pub fn columns(open_loop: bool) -> impl Iterator<Item = &'static str> + Clone {
    COLUMNS.into_iter().chain(open_loop.then_some(LATE))
}

const MODES: [Mode; 4] = [Mode::Read, Mode::Write, Mode::Flush, Mode::Trim];

/// The columns as a line of CSV.
pub(crate) fn header(open_loop: bool) -> String {
    columns(open_loop).collect::<Vec<_>>().join(",") + "\n"
}

/// The schema of a record file.
fn schema(open_loop: bool) -> Result<TypePtr, ParquetError> {
    let fields = columns(open_loop).map(|name| {
        let builder = match name {
            "submit_ns" | "response_ns" | "offset" | LATE => {
                Type::primitive_type_builder(name, Physical::INT64)
            }
            "mode" => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String)),
            _ => Type::primitive_type_builder(name, Physical::INT32),
        };
        let repetition = if name == LATE { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Ok(Arc::new(builder.with_repetition(repetition).build()?))
    });
    let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
    Ok(Arc::new(Type::group_type_builder("io").with_fields(fields).build()?))
}

/// One row group under way, as columns.
#[derive(Default)]
struct Columns {
    run: Vec<u32>,
    stream: Vec<u32>,
    pattern: Vec<u32>,
    submit: Vec<i64>,
    response: Vec<i64>,
    offset: Vec<i64>,
    size: Vec<u32>,
    mode: Vec<u32>,
    /// Of the IOs of an open loop, and which rows those are.
    late: Vec<i64>,
    is_open: Vec<u32>,
}

impl Columns {
    fn push(&mut self, run: u32, records: &[IoRecord]) {
        self.run.resize(self.run.len() + records.len(), run);
        self.stream.extend(records.iter().map(|r| u32::from(r.stream())));
        self.pattern.extend(records.iter().map(|r| u32::from(r.pattern())));
        self.submit.extend(records.iter().map(|r| r.submit().0 as i64));
        self.response.extend(records.iter().map(|r| r.response().0 as i64));
        self.offset.extend(records.iter().map(|r| r.offset().0 as i64));
        self.size.extend(records.iter().map(IoRecord::size));
        self.mode.extend(records.iter().map(|r| r.mode() as u32));
        self.late.extend(records.iter().filter_map(|r| r.late()).map(|late| late.0 as i64));
        self.is_open.extend(records.iter().map(|r| u32::from(r.is_open())));
    }

    fn clear(&mut self) {
        let Columns { run, stream, pattern, size, mode, is_open, .. } = self;
        for column in [run, stream, pattern, size, mode, is_open] {
            column.clear();
        }
        for column in [&mut self.submit, &mut self.response, &mut self.offset, &mut self.late] {
            column.clear();
        }
    }
}

/// What encoding needs over and over, kept between row groups and files.
struct Scratch {
    columns: Columns,
    dictionary: Dictionary,
    planes: Planes,
}

/// Encodes records into a Parquet file, row group by row group.
pub struct RecordWriter<W: Write + Send> {
    file: SerializedFileWriter<Remembering<W>>,
    scratch: Box<Scratch>,
    path: PathBuf,
    failure: Failure,
}

/// The system's error of the last write that failed: the Parquet crate passes
/// on its text only, and a full disk must be told from other failures.
type Failure = Arc<Mutex<Option<std::io::Error>>>;

/// A sink that remembers why it failed.
struct Remembering<W> {
    sink: W,
    failure: Failure,
}

impl<W> Remembering<W> {
    fn remember<T>(&self, result: std::io::Result<T>) -> std::io::Result<T> {
        result.inspect_err(|error| {
            let copy = error.raw_os_error().map_or(error.kind().into(), std::io::Error::from_raw_os_error);
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
        })
    }
}

impl<W: Write> Write for Remembering<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes);
        self.remember(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.sink.flush();
        self.remember(flushed)
    }
}

/// The working memory of a [`RecordWriter`], to be used again for the next.
pub struct RecordScratch(Box<Scratch>);

impl RecordScratch {
    /// Reserves about 6 MiB once a writer uses it.
    ///
    /// # Errors
    /// [`StoreError`] where memory is out.
    pub fn new() -> Result<RecordScratch, StoreError> {
        let planes = Planes::new().map_err(|e| StoreError::Refused(format!("cannot start zstd: {e}")))?;
        let scratch = Scratch { columns: Columns::default(), dictionary: Dictionary::default(), planes };
        Ok(RecordScratch(Box::new(scratch)))
    }
}

impl<W: Write + Send> RecordWriter<W> {
    /// Starts a file in `sink` for records of closed loops; `path` is only for messages.
    ///
    /// # Errors
    /// [`StoreError::Path`] where the first bytes cannot be written.
    pub fn new(sink: W, path: &Path, scratch: RecordScratch) -> Result<RecordWriter<W>, StoreError> {
        RecordWriter::of(sink, path, scratch, false)
    }

    /// Starts a file in `sink` that has a place for how late an open loop's IOs were
    /// where `open_loop`; elsewhere such IOs are refused.
    ///
    /// # Errors
    /// As [`RecordWriter::new`].
    pub fn of(
        sink: W,
        path: &Path,
        scratch: RecordScratch,
        open_loop: bool,
    ) -> Result<RecordWriter<W>, StoreError> {
        let properties = WriterProperties::builder()
            .set_created_by("uflip".into())
            .set_offset_index_disabled(true)
            .build();
        let failure = Failure::default();
        let sink = Remembering { sink, failure: Arc::clone(&failure) };
        let file = schema(open_loop)
            .and_then(|schema| SerializedFileWriter::new(sink, schema, Arc::new(properties)));
        let file = file.map_err(|e| write_error(path, &failure, e))?;
        Ok(RecordWriter { file, scratch: scratch.0, path: path.to_path_buf(), failure })
    }

    /// Appends `records` of run number `run`; writes a row group whenever one
    /// is full.
    ///
    /// # Errors
    /// [`StoreError::Path`].
    pub fn push(&mut self, run: u32, mut records: &[IoRecord]) -> Result<(), StoreError> {
        while !records.is_empty() {
            let room = ROW_GROUP_ROWS - self.scratch.columns.submit.len();
            let (now, later) = records.split_at(room.min(records.len()));
            if !self.has_late() && now.iter().any(IoRecord::is_open) {
                let file = self.path.display();
                return Err(StoreError::Refused(format!(
                    "{file} was begun for closed loops and has no place for the lateness of an open one"
                )));
            }
            self.scratch.columns.push(run, now);
            records = later;
            if self.scratch.columns.submit.len() == ROW_GROUP_ROWS {
                self.row_group()?;
            }
        }
        Ok(())
    }

    fn has_late(&self) -> bool {
        self.file.schema_descr().num_columns() > COLUMNS.len()
    }

    fn row_group(&mut self) -> Result<(), StoreError> {
        let result = write_row_group(&mut self.file, &mut self.scratch);
        self.scratch.columns.clear();
        result.map_err(|e| write_error(&self.path, &self.failure, e))
    }

    /// Writes what is left and the footer; gives the sink and the working
    /// memory back.
    ///
    /// # Errors
    /// [`StoreError::Path`].
    pub fn finish(mut self) -> Result<(W, RecordScratch), StoreError> {
        if !self.scratch.columns.submit.is_empty() {
            self.row_group()?;
        }
        let sink = self.file.into_inner().map_err(|e| write_error(&self.path, &self.failure, e))?;
        Ok((sink.sink, RecordScratch(self.scratch)))
    }

    /// Gives the working memory back without finishing the file.
    pub fn abandon(mut self) -> RecordScratch {
        self.scratch.columns.clear();
        RecordScratch(self.scratch)
    }
}

fn write_row_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    scratch: &mut Scratch,
) -> Result<(), ParquetError> {
    let Scratch { columns: of, dictionary, planes } = scratch;
    let descriptors = file.schema_descr().columns().to_vec();
    // Zone maps help only where there is more than one zone.
    let zones = of.submit.len() == ROW_GROUP_ROWS;
    let mut group = file.next_row_group()?;
    for (at, descriptor) in descriptors.into_iter().enumerate() {
        let chunk = match columns(true).nth(at).unwrap_or_default() {
            "run" => few(descriptor, &of.run, dictionary)?,
            "stream" => few(descriptor, &of.stream, dictionary)?,
            "pattern" => few(descriptor, &of.pattern, dictionary)?,
            "submit_ns" => times(descriptor, &of.submit, zones)?,
            "response_ns" => times(descriptor, &of.response, zones)?,
            "offset" => offsets(descriptor, &of.offset, planes)?,
            "size" => few(descriptor, &of.size, dictionary)?,
            "mode" => few(descriptor, &of.mode, dictionary)?,
            _ => optional_times(descriptor, &of.late, &of.is_open)?,
        };
        group.append_column(&chunk.bytes, chunk.close)?;
    }
    group.close()?;
    Ok(())
}

/// One encoded column of one row group.
struct EncodedChunk {
    bytes: bytes::Bytes,
    close: ColumnCloseResult,
}

/// Times: small differences from row to row.
fn times(descriptor: ColumnDescPtr, values: &[i64], zones: bool) -> Result<EncodedChunk, ParquetError> {
    let mut body = Vec::with_capacity(values.len() * 3 + 64);
    delta(values, &mut body);
    let zone = zones.then(|| {
        let (min, max) = values.iter().fold((i64::MAX, i64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        Statistics::Int64(ValueStatistics::new(Some(min), Some(max), None, Some(0), false))
    });
    let body = Body { plain_size: body.len(), bytes: body, encoding: Encoding::DELTA_BINARY_PACKED };
    frame(descriptor, values.len(), None, body, Compression::UNCOMPRESSED, zone)
}

/// Times that not every row has: which do is told before them, as definition levels.
fn optional_times(
    descriptor: ColumnDescPtr,
    values: &[i64],
    is_there: &[u32],
) -> Result<EncodedChunk, ParquetError> {
    let mut body = Vec::with_capacity(values.len() * 3 + is_there.len() / 8 + 64);
    levels(is_there, &mut body);
    delta(values, &mut body);
    let body = Body { plain_size: body.len(), bytes: body, encoding: Encoding::DELTA_BINARY_PACKED };
    frame(descriptor, is_there.len(), None, body, Compression::UNCOMPRESSED, None)
}

/// Offsets: differences where they are regular, byte planes where random.
fn offsets(
    descriptor: ColumnDescPtr,
    values: &[i64],
    planes: &mut Planes,
) -> Result<EncodedChunk, ParquetError> {
    const PROBE: usize = 1024;
    let mut body = Vec::with_capacity(values.len() * 3 + 64);
    delta(&values[..values.len().min(PROBE)], &mut body);
    let regular = body.len() <= values.len().min(PROBE) + 64;
    body.clear();
    if regular {
        delta(values, &mut body);
        let body = Body { plain_size: body.len(), bytes: body, encoding: Encoding::DELTA_BINARY_PACKED };
        return frame(descriptor, values.len(), None, body, Compression::UNCOMPRESSED, None);
    }
    planes.compress(values, &mut body)?;
    let body = Body { plain_size: values.len() * 8, bytes: body, encoding: Encoding::BYTE_STREAM_SPLIT };
    frame(descriptor, values.len(), None, body, Compression::ZSTD(ZstdLevel::try_new(1)?), None)
}

/// Columns with few values.
fn few(
    descriptor: ColumnDescPtr,
    values: &[u32],
    dictionary: &mut Dictionary,
) -> Result<EncodedChunk, ParquetError> {
    dictionary.build(values);
    let mut words = Vec::with_capacity(dictionary.values.len() * 4);
    for &value in &dictionary.values {
        if descriptor.physical_type() == Physical::BYTE_ARRAY {
            let name = MODES[value as usize & 3].name();
            words.extend_from_slice(&(name.len() as u32).to_le_bytes());
            words.extend_from_slice(name.as_bytes());
        } else {
            words.extend_from_slice(&value.to_le_bytes());
        }
    }
    let dictionary_page = Page::DictionaryPage {
        buf: words.into(),
        num_values: dictionary.values.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let mut body = Vec::with_capacity(64);
    dictionary.data_page(&mut body);
    let body = Body { plain_size: body.len(), bytes: body, encoding: Encoding::RLE_DICTIONARY };
    frame(descriptor, values.len(), Some(dictionary_page), body, Compression::UNCOMPRESSED, None)
}

struct Body {
    bytes: Vec<u8>,
    plain_size: usize,
    encoding: Encoding,
}

/// Puts page headers before the pages and describes the column chunk.
fn frame(
    descriptor: ColumnDescPtr,
    rows: usize,
    dictionary: Option<Page>,
    body: Body,
    compression: Compression,
    statistics: Option<Statistics>,
) -> Result<EncodedChunk, ParquetError> {
    let mut out = TrackedWrite::new(Vec::with_capacity(body.bytes.len() + 128));
    let mut plain_size = 0;
    let mut encodings = vec![body.encoding];
    let mut dictionary_at = None;
    let mut pages = SerializedPageWriter::new(&mut out);
    if let Some(page) = dictionary {
        let size = page.buffer().len();
        plain_size += pages.write_page(CompressedPage::new(page, size))?.uncompressed_size;
        encodings.push(Encoding::PLAIN);
        dictionary_at = Some(0);
    }
    let page = Page::DataPage {
        buf: body.bytes.into(),
        num_values: rows as u32,
        encoding: body.encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let spec = pages.write_page(CompressedPage::new(page, body.plain_size))?;
    plain_size += spec.uncompressed_size;
    let bytes = bytes::Bytes::from(out.into_inner()?);
    let mut metadata = ColumnChunkMetaData::builder(descriptor)
        .set_encodings(encodings)
        .set_compression(compression)
        .set_num_values(rows as i64)
        .set_total_compressed_size(bytes.len() as i64)
        .set_total_uncompressed_size(plain_size as i64)
        .set_dictionary_page_offset(dictionary_at)
        .set_data_page_offset(spec.offset as i64);
    if let Some(statistics) = statistics {
        metadata = metadata.set_statistics(statistics);
    }
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(EncodedChunk { bytes, close })
}

/// A [`StoreError`] of what the Parquet writer says, with the system's error
/// where there is one.
fn write_error(path: &Path, failure: &Failure, error: ParquetError) -> StoreError {
    let remembered = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    path_error("cannot write", path)(remembered.unwrap_or_else(|| std::io::Error::other(error)))
}

/// Every record of the file at `path`, in file order.
///
/// # Errors
/// [`StoreError::Path`] where it cannot be opened, [`StoreError::Damaged`]
/// where it is not a whole record file.
pub fn read_records(path: &Path) -> Result<Vec<IoRecord>, StoreError> {
    let mut all = Vec::new();
    read_row_groups(path, |_, records| {
        all.extend_from_slice(records);
        Ok(())
    })?;
    Ok(all)
}

/// Reads the file at `path` one row group at a time, in bounded memory:
/// `each(run, records)` with the run's number of the group's first row.
///
/// # Errors
/// As [`read_records`], and what `each` returns.
pub fn read_row_groups(
    path: &Path,
    mut each: impl FnMut(u32, &[IoRecord]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    read_chosen_row_groups(path, |_| true, |_, run, records| each(run, records))
}

/// [`read_row_groups`] of those row groups only that `wanted` says, by their
/// numbers from 0; `each` gets the number first. Group n has the rows from
/// n x [`ROW_GROUP_ROWS`] on.
///
/// # Errors
/// As [`read_row_groups`].
pub fn read_chosen_row_groups(
    path: &Path,
    wanted: impl Fn(usize) -> bool,
    mut each: impl FnMut(usize, u32, &[IoRecord]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let file = open_regular(path).map_err(|e| unreadable(path, e, "the run must be measured again"))?;
    let damaged = |e: ParquetError| StoreError::Damaged {
        path: path.to_path_buf(),
        detail: format!("{e}; the run must be measured again"),
    };
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(damaged)?;
    let mut records = Vec::new();
    for group in (0..reader.num_row_groups()).filter(|group| wanted(*group)) {
        let run = guarded(|| read_row_group(&reader, group, &mut records)).map_err(damaged)?;
        each(group, run, &records)?;
    }
    Ok(())
}

/// Calls into the Parquet reader, which asserts some properties of the file
/// instead of checking them: a damaged file must be an error, not a panic.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("its inner lengths contradict each other".into())))
}

fn read_row_group(
    reader: &SerializedFileReader<File>,
    group: usize,
    records: &mut Vec<IoRecord>,
) -> Result<u32, ParquetError> {
    let group = reader.get_row_group(group)?;
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let has_late = group.num_columns() == COLUMNS.len() + 1;
    if rows > 1 << 24 || !(has_late || group.num_columns() == COLUMNS.len()) {
        return Err(ParquetError::General("this is not a file of IO records".into()));
    }
    let int32 = |at| read_int32(group.get_column_reader(at)?, rows);
    let int64 = |at| read_int64(group.get_column_reader(at)?, rows);
    let (run, stream, pattern, size) = (int32(0)?, int32(1)?, int32(2)?, int32(6)?);
    let (submit, response, offset) = (int64(3)?, int64(4)?, int64(5)?);
    let mode = read_mode(group.get_column_reader(7)?, rows)?;
    let late = if has_late { read_late(group.get_column_reader(8)?, rows)? } else { vec![None; rows] };
    records.clear();
    records.reserve(rows);
    for i in 0..rows {
        let io = Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(offset[i] as u64 & ((1 << 52) - 1)),
            size: size[i] as u32 & IoRecord::MAX_SIZE,
            mode: mode[i],
            pattern: pattern[i] as u8,
        };
        let stream = stream[i] as u16 & (IoRecord::MAX_STREAMS as u16 - 1);
        let (submit, response) = (Nanos(submit[i] as u64), Nanos(response[i] as u64));
        records.push(match late[i] {
            None => IoRecord::new(&io, stream, submit, response),
            Some(late) => open_record(&io, stream, submit, response, late)?,
        });
    }
    Ok(run.first().map_or(0, |r| *r as u32))
}

/// The record of an open loop's IO, whose response time counts from `late` before
/// `submit`.
fn open_record(
    io: &Io,
    stream: u16,
    submit: Nanos,
    response: Nanos,
    late: i64,
) -> Result<IoRecord, ParquetError> {
    let late = Nanos(late as u64);
    let sectors = (io.offset.0 | u64::from(io.size)).is_multiple_of(IoRecord::OPEN_SECTOR.0);
    if late > response || late > submit || !sectors {
        return Err(ParquetError::General("late_ns of an IO does not fit its other columns".into()));
    }
    Ok(IoRecord::open(io, stream, submit.saturating_sub(late), late, response))
}

/// `late_ns`: null in rows of closed loops.
fn read_late(reader: ColumnReader, rows: usize) -> Result<Vec<Option<i64>>, ParquetError> {
    let ColumnReader::Int64ColumnReader(mut reader) = reader else { return Err(wrong_type()) };
    let (mut values, mut there) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let (read, _, _) = reader.read_records(rows, Some(&mut there), None, &mut values)?;
    whole(read, rows)?;
    whole(there.len(), rows)?;
    let mut values = values.into_iter();
    let of = |level: &i16| if *level > 0 { values.next() } else { None };
    Ok(there.iter().map(of).collect())
}

/// Whether the file at `path` has IOs of an open loop.
///
/// # Errors
/// As [`read_records`].
pub fn is_of_open_loop(path: &Path) -> Result<bool, StoreError> {
    let file = open_regular(path).map_err(|e| unreadable(path, e, "the run must be measured again"))?;
    let damaged = |e: ParquetError| StoreError::Damaged {
        path: path.to_path_buf(),
        detail: format!("{e}; the run must be measured again"),
    };
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(damaged)?;
    Ok(reader.metadata().file_metadata().schema_descr().num_columns() > COLUMNS.len())
}

fn whole(read: usize, rows: usize) -> Result<(), ParquetError> {
    if read == rows { Ok(()) } else { Err(ParquetError::General("a column is too short".into())) }
}

fn wrong_type() -> ParquetError {
    ParquetError::General("a column has another type than a file of IO records".into())
}

fn read_int32(reader: ColumnReader, rows: usize) -> Result<Vec<i32>, ParquetError> {
    let ColumnReader::Int32ColumnReader(mut reader) = reader else { return Err(wrong_type()) };
    let mut values = Vec::with_capacity(rows);
    let (read, _, _) = reader.read_records(rows, None, None, &mut values)?;
    whole(read, rows).map(|()| values)
}

fn read_int64(reader: ColumnReader, rows: usize) -> Result<Vec<i64>, ParquetError> {
    let ColumnReader::Int64ColumnReader(mut reader) = reader else { return Err(wrong_type()) };
    let mut values = Vec::with_capacity(rows);
    let (read, _, _) = reader.read_records(rows, None, None, &mut values)?;
    whole(read, rows).map(|()| values)
}

fn read_mode(reader: ColumnReader, rows: usize) -> Result<Vec<Mode>, ParquetError> {
    let ColumnReader::ByteArrayColumnReader(mut reader) = reader else { return Err(wrong_type()) };
    let mut values: Vec<ByteArray> = Vec::with_capacity(rows);
    let (read, _, _) = reader.read_records(rows, None, None, &mut values)?;
    whole(read, rows)?;
    let mode = |name: &ByteArray| MODES.into_iter().find(|m| m.name().as_bytes() == name.data());
    let unknown = || ParquetError::General("a mode is none of read, write, flush, trim".into());
    values.iter().map(|name| mode(name).ok_or_else(unknown)).collect()
}
