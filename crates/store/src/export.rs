//! Runs and records for other programs: CSV, JSON and Parquet.
//!
//! The table of runs has one row a run and flat columns ([`run_columns`]);
//! statistics are of the running phase, those with `all_` of all IOs. Records
//! have the columns of the record files. Nothing measured is an empty field in
//! CSV and null elsewhere.

use crate::contents::{RunRow, StoreContents};
use crate::error::StoreError;
use crate::records::{RecordScratch, RecordWriter, header, is_of_open_loop, read_row_groups};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uflip_device::IoRecord;
use uflip_device::identity::word;
use uflip_measure::pattern::Timing;

/// What an export looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A header line, then comma-separated fields (RFC 4180, but lines end in
    /// a bare newline).
    Csv,
    /// Runs: an array of objects. Records: one object a line.
    Json,
    /// One Parquet file.
    Parquet,
}

impl Format {
    /// By a file name's extension: `csv`, `json`, `ndjson`, `jsonl`, `parquet`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] with what to type.
    pub fn of_path(path: &Path) -> Result<Format, StoreError> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => Ok(Format::Csv),
            Some("json" | "ndjson" | "jsonl") => Ok(Format::Json),
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(StoreError::Refused(format!(
                "{} is of no known format; end its name in .csv, .json or .parquet",
                path.display()
            ))),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ColumnKind {
    Integer,
    Unsigned,
    Float,
    Bool,
    Text,
}

use ColumnKind::{Bool, Float, Integer, Text, Unsigned};

/// Columns of the table of runs, with where in a line of `runs.ndjson` each
/// comes from, or after an `@` what is worked out of it.
const RUNS: [(&str, &str, ColumnKind); 79] = [
    ("run", "/id", Integer),
    ("purpose", "/purpose", Text),
    ("baseline", "/baseline", Text),
    ("micro_benchmark", "/point/micro_benchmark", Text),
    ("parameter", "/point/parameter", Text),
    ("value", "/point/value", Integer),
    ("label", "/point/label", Text),
    ("repeat", "/repeat", Integer),
    ("pattern", "/pattern", Text),
    ("io_count", "/io_count", Integer),
    ("io_ignore", "/io_ignore", Integer),
    ("seed", "/seed", Unsigned),
    ("time_limit_ns", "/time_limit", Integer),
    ("started_ns", "/outcome/started", Integer),
    ("started_unix_ns", "/outcome/started_unix_ns", Integer),
    ("elapsed_ns", "/outcome/end/elapsed", Integer),
    ("ios", "/outcome/end/ios", Integer),
    ("time_limit_hit", "/outcome/end/time_limit_hit", Bool),
    ("n", "/stats/running/n", Integer),
    ("min_ns", "/stats/running/min_ns", Integer),
    ("max_ns", "/stats/running/max_ns", Integer),
    ("mean_ns", "/stats/running/mean_ns", Float),
    ("sd_ns", "/stats/running/sd_ns", Float),
    ("p50_ns", "/stats/running/p50_ns", Integer),
    ("p90_ns", "/stats/running/p90_ns", Integer),
    ("p95_ns", "/stats/running/p95_ns", Integer),
    ("p99_ns", "/stats/running/p99_ns", Integer),
    ("p999_ns", "/stats/running/p999_ns", Integer),
    ("p9999_ns", "/stats/running/p9999_ns", Integer),
    ("all_n", "/stats/all/n", Integer),
    ("all_min_ns", "/stats/all/min_ns", Integer),
    ("all_max_ns", "/stats/all/max_ns", Integer),
    ("all_mean_ns", "/stats/all/mean_ns", Float),
    ("all_sd_ns", "/stats/all/sd_ns", Float),
    ("pattern0_n", "/stats/by_pattern/0/n", Integer),
    ("pattern0_mean_ns", "/stats/by_pattern/0/mean_ns", Float),
    ("pattern0_sd_ns", "/stats/by_pattern/0/sd_ns", Float),
    ("pattern0_p99_ns", "/stats/by_pattern/0/p99_ns", Integer),
    ("pattern1_n", "/stats/by_pattern/1/n", Integer),
    ("pattern1_mean_ns", "/stats/by_pattern/1/mean_ns", Float),
    ("pattern1_sd_ns", "/stats/by_pattern/1/sd_ns", Float),
    ("pattern1_p99_ns", "/stats/by_pattern/1/p99_ns", Integer),
    ("records_file", "/records/file", Text),
    ("records_bytes", "/records/bytes", Integer),
    ("stalls", "/stalls", Integer),
    ("open_loop", "@open_loop", Bool),
    ("arrival", "@arrival", Text),
    ("late_n", "/stats/late/n", Integer),
    ("late_mean_ns", "/stats/late/mean_ns", Float),
    ("late_max_ns", "/stats/late/max_ns", Integer),
    ("late_ios", "/stats/late/late_ios", Integer),
    ("flush_ios", "@mode/flush/ios", Integer),
    ("flush_n", "@mode/flush/n", Integer),
    ("flush_mean_ns", "@mode/flush/mean_ns", Float),
    ("flush_p50_ns", "@mode/flush/p50_ns", Integer),
    ("flush_p99_ns", "@mode/flush/p99_ns", Integer),
    ("flush_max_ns", "@mode/flush/max_ns", Integer),
    ("trim_ios", "@mode/trim/ios", Integer),
    ("trim_n", "@mode/trim/n", Integer),
    ("trim_mean_ns", "@mode/trim/mean_ns", Float),
    ("trim_p50_ns", "@mode/trim/p50_ns", Integer),
    ("trim_p99_ns", "@mode/trim/p99_ns", Integer),
    ("trim_max_ns", "@mode/trim/max_ns", Integer),
    ("job_line", "/job/line", Text),
    ("job_role", "/job/role", Text),
    ("job_segment", "/job/segment", Integer),
    ("job_round", "/job/round", Integer),
    ("block_bytes", "/job/block_bytes", Integer),
    ("sync_every", "@sync", Integer),
    ("host_read_bytes", "/outcome/probes/counters/host_read", Integer),
    ("host_written_bytes", "/outcome/probes/counters/host_written", Integer),
    ("host_trimmed_bytes", "/outcome/probes/counters/host_trimmed", Integer),
    ("flash_read_bytes", "/outcome/probes/counters/flash_read", Integer),
    ("flash_programmed_bytes", "/outcome/probes/counters/flash_programmed", Integer),
    ("flash_copied_bytes", "/outcome/probes/counters/flash_copied", Integer),
    ("block_erases", "/outcome/probes/counters/block_erases", Integer),
    ("full_merges", "/outcome/probes/counters/full_merges", Integer),
    ("energy_uj", "/outcome/probes/counters/energy_uj", Float),
    ("write_amplification", "@write_amplification", Float),
];

/// Names of the columns of the table of runs, in order.
pub fn run_columns() -> impl Iterator<Item = &'static str> {
    RUNS.iter().map(|(name, _, _)| *name)
}

/// Writes the table of runs.
///
/// # Errors
/// [`StoreError::Output`] where `out` takes no more.
pub fn runs(
    contents: &StoreContents,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), StoreError> {
    let rows = contents.runs.iter().map(cells).collect::<Result<Vec<_>, _>>()?;
    match format {
        Format::Csv => runs_csv(&rows, out).map_err(StoreError::Output),
        Format::Json => runs_json(&rows, out).map_err(StoreError::Output),
        Format::Parquet => runs_parquet(&rows, out).map_err(|e| StoreError::Output(std::io::Error::other(e))),
    }
}

fn cells(row: &RunRow) -> Result<Vec<Value>, StoreError> {
    let value = serde_json::to_value(row)
        .map_err(|e| StoreError::Refused(format!("run {} cannot be told as JSON: {e}", row.spec.id)))?;
    let cell = |(name, at, _): &(&str, &str, ColumnKind)| match at.strip_prefix('@') {
        Some(what) => worked_out(row, what),
        None => value.pointer(at).cloned().unwrap_or_else(|| varying(row, name)),
    };
    Ok(RUNS.iter().map(cell).collect())
}

/// What a line of `runs.ndjson` says in another form; null where it does not.
fn worked_out(row: &RunRow, what: &str) -> Value {
    let timing = row.spec.work.basics().first().map(|basic| basic.timing);
    let told = match what.split('/').collect::<Vec<_>>()[..] {
        ["open_loop"] => Some(row.spec.work.is_open_loop().into()),
        ["arrival"] => {
            timing.filter(|timing| timing.rate().is_some()).map(|timing| timing.to_string().into())
        }
        ["sync"] => match timing {
            Some(Timing::Synced { every }) => Some(every.into()),
            _ => None,
        },
        ["write_amplification"] => {
            row.outcome.probes.counters.and_then(|c| c.write_amplification()).map(Value::from)
        }
        ["mode", mode, figure] => {
            let of = row.stats.by_mode.iter().find(|of| of.mode.name() == mode);
            of.and_then(|of| serde_json::to_value(of).ok()?.get(figure).cloned())
        }
        _ => None,
    };
    told.unwrap_or(Value::Null)
}

/// The columns of a point for a run whose line has none: a job's.
fn varying(row: &RunRow, column: &str) -> Value {
    let belongs = &row.spec.belongs;
    let told = match column {
        "micro_benchmark" => belongs.section().map(|section| section.to_string().into()),
        "parameter" => belongs.varying().map(|(parameter, ..)| parameter.into()),
        "value" => belongs.varying().map(|(_, value, _)| value.into()),
        "label" => belongs.varying().map(|(.., label)| label.into()),
        _ => None,
    };
    told.unwrap_or(Value::Null)
}

fn runs_csv(rows: &[Vec<Value>], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{}", run_columns().collect::<Vec<_>>().join(","))?;
    for row in rows {
        let fields: Vec<_> = row.iter().map(csv_field).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    out.flush()
}

fn csv_field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(s) if s.contains(['"', ',', '\n', '\r']) => format!("\"{}\"", s.replace('"', "\"\"")),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

fn runs_json(rows: &[Vec<Value>], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "[")?;
    for (i, row) in rows.iter().enumerate() {
        let fields: Vec<_> =
            run_columns().zip(row).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let comma = if i + 1 < rows.len() { "," } else { "" };
        writeln!(out, "{{{}}}{comma}", fields.join(","))?;
    }
    writeln!(out, "]")?;
    out.flush()
}

fn runs_parquet(rows: &[Vec<Value>], out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let fields = RUNS.iter().map(|(name, _, kind)| {
        let (physical, logical) = match kind {
            Integer => (Physical::INT64, None),
            Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Float => (Physical::DOUBLE, None),
            Bool => (Physical::BOOLEAN, None),
            Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        Ok(Arc::new(builder.with_logical_type(logical).build()?))
    });
    let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
    let schema = Arc::new(Type::group_type_builder("run").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_created_by("uflip".into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let mut at = 0;
    while let Some(mut column) = group.next_column()? {
        runs_column(column.untyped(), rows.iter().map(|row| &row[at]))?;
        column.close()?;
        at += 1;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

fn runs_column<'a>(
    writer: &mut ColumnWriter<'_>,
    values: impl Iterator<Item = &'a Value> + Clone,
) -> Result<(), ParquetError> {
    let there: Vec<i16> = values.clone().map(|v| i16::from(!v.is_null())).collect();
    let values = values.filter(|v| !v.is_null());
    let levels = Some(&there[..]);
    match writer {
        ColumnWriter::Int64ColumnWriter(w) => {
            // Seeds use all 64 bits; the column's type says that they are unsigned.
            let integer = |v: &Value| v.as_i64().unwrap_or_else(|| v.as_u64().unwrap_or(0) as i64);
            w.write_batch(&values.map(integer).collect::<Vec<_>>(), levels, None)?;
        }
        ColumnWriter::DoubleColumnWriter(w) => {
            w.write_batch(&values.filter_map(Value::as_f64).collect::<Vec<_>>(), levels, None)?;
        }
        ColumnWriter::BoolColumnWriter(w) => {
            w.write_batch(&values.filter_map(Value::as_bool).collect::<Vec<_>>(), levels, None)?;
        }
        ColumnWriter::ByteArrayColumnWriter(w) => {
            let texts: Vec<_> = values.filter_map(Value::as_str).map(ByteArray::from).collect();
            w.write_batch(&texts, levels, None)?;
        }
        _ => return Err(ParquetError::General("a column of the table of runs has no writer".into())),
    }
    Ok(())
}

/// Writes the records of the runs `ids`, or of all runs, in bounded memory.
///
/// # Errors
/// [`StoreError::Refused`] where a run is not there, [`StoreError::Damaged`]
/// and [`StoreError::Path`] of its record file, [`StoreError::Output`].
pub fn records(
    contents: &StoreContents,
    ids: Option<&[u32]>,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), StoreError> {
    let rows = chosen(contents, ids)?;
    record_files(rows.iter().map(|row| contents.dir.join(&row.records.file)), format, out)
}

/// Writes the records of these record files, one after another.
///
/// # Errors
/// [`StoreError::Damaged`] and [`StoreError::Path`] of a file,
/// [`StoreError::Output`].
pub fn record_files(
    paths: impl IntoIterator<Item = PathBuf>,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), StoreError> {
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    // One table: with the column where any file has it.
    let mut open_loop = false;
    for path in &paths {
        open_loop = open_loop || is_of_open_loop(path)?;
    }
    if format == Format::Parquet {
        let mut writer = RecordWriter::of(out, Path::new("the export"), RecordScratch::new()?, open_loop)?;
        for path in paths {
            read_row_groups(&path, |run, records| writer.push(run, records))?;
        }
        let (out, _) = writer.finish()?;
        return out.flush().map_err(StoreError::Output);
    }
    let mut text = String::new();
    if format == Format::Csv {
        text = header(open_loop);
        out.write_all(text.as_bytes()).map_err(StoreError::Output)?;
    }
    for path in paths {
        read_row_groups(&path, |run, records| {
            for some in records.chunks(1024) {
                text.clear();
                some.iter().for_each(|record| line(run, record, format, open_loop, &mut text));
                out.write_all(text.as_bytes()).map_err(StoreError::Output)?;
            }
            Ok(())
        })?;
    }
    out.flush().map_err(StoreError::Output)
}

fn chosen<'a>(contents: &'a StoreContents, ids: Option<&[u32]>) -> Result<Vec<&'a RunRow>, StoreError> {
    let Some(ids) = ids else { return Ok(contents.runs.iter().collect()) };
    let find = |id: &u32| {
        contents.runs.iter().find(|row| row.spec.id == *id).ok_or_else(|| {
            let (shown, dir) = (contents.dir.display(), word(&contents.dir.to_string_lossy()));
            StoreError::Refused(format!("{shown} has no run {id}; `uflip show {dir}` lists its runs"))
        })
    };
    ids.iter().map(find).collect()
}

/// One record as a line; how late it was is told where `open_loop`, and empty or left
/// out of an IO that had no intended instant.
pub(crate) fn line(run: u32, record: &IoRecord, format: Format, open_loop: bool, text: &mut String) {
    use std::fmt::Write as _;
    let (stream, pattern, size, mode) =
        (record.stream(), record.pattern(), record.size(), record.mode().name());
    let (submit, response, offset) = (record.submit().0, record.response().0, record.offset().0);
    // Writing to a String cannot fail.
    let _ = match format {
        Format::Csv => {
            write!(text, "{run},{stream},{pattern},{submit},{response},{offset},{size},{mode}")
        }
        _ => write!(
            text,
            "{{\"run\":{run},\"stream\":{stream},\"pattern\":{pattern},\"submit_ns\":{submit},\
             \"response_ns\":{response},\"offset\":{offset},\"size\":{size},\"mode\":\"{mode}\""
        ),
    };
    let _ = match (format, record.late()) {
        (Format::Csv, Some(late)) => writeln!(text, ",{}", late.0),
        (Format::Csv, None) => writeln!(text, "{}", if open_loop { "," } else { "" }),
        (_, Some(late)) => writeln!(text, ",\"late_ns\":{}}}", late.0),
        (_, None) => writeln!(text, "}}"),
    };
}
