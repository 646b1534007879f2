//! The text forms of traces.
//!
//! | form | a line |
//! |---|---|
//! | blkparse | `8,0 3 11 0.009507758 697 D W 223490 + 56 [kworker]` and `… C …`; the kernel's `blk` tracer (`blk_classic`) writes the same without the number 11 |
//! | fio iolog 2 | `/dev/sda write 4096 8192`, after `fio version 2 iolog` |
//! | fio iolog 3 | `17 /dev/sda write 4096 8192`, times in us |
//! | trace events | `fio-697 [003] d..1 12.5: block_rq_issue: 8,0 W 28672 () 223490 + 56 [fio]` |
//!
//! How: the first line that is one of a form decides. Lines of a form that are
//! no IO (other actions, headers, summaries) are passed over; a line that should
//! be an IO and is not is an error. A text is read line by line ([`read_device`]),
//! each of at most 64 KiB, and only so many IOs as the caller has memory for.
//! Issue and completion of the same range pair
//! up to a response time. Sectors are 512 bytes whatever the device's. Every line
//! is bounded; memory grows by 40 bytes an IO and nothing else.
//!
//! As real text has it: a flush is issued as `FF … 0 + 0` (`FN` in blkparse's
//! text) and completed at sector 2^64 - 1, or without a range; the write that
//! asked for it completes with 0 sectors and is no IO. A request that the driver
//! sends back is issued twice: it counts once, from the second time. fio appends
//! the logs of several jobs, each with its own header: they are put in the order
//! of their times. fio's documentation gives no unit for these; fio 3.33 writes us.

use super::TraceIo;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use uflip_device::{IoRecord, Mode, Nanos};

/// A text that is no trace, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found '{found}'")]
pub struct TraceError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What would have been right.
    pub expected: &'static str,
    /// What stands there.
    pub found: String,
}

const SECTOR: u64 = 512;
/// Past the last byte that an IO may reach.
const END: u64 = 1 << 52;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Blkparse,
    Iolog { times: bool },
    Events,
}

/// A line's words with their columns.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let mut all = Vec::new();
    for word in line.split_whitespace().take(32) {
        let start = line[at..].find(word).map_or(at, |p| at + p);
        all.push((start, word));
        at = start + word.len();
    }
    all
}

fn device_numbers(word: &str) -> bool {
    word.split_once(',').is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok())
}

fn form_of(line: &str) -> Option<Form> {
    if line.starts_with("fio version 2 iolog") {
        return Some(Form::Iolog { times: false });
    }
    if line.starts_with("fio version 3 iolog") {
        return Some(Form::Iolog { times: true });
    }
    if line.contains(": block_rq_") {
        return Some(Form::Events);
    }
    let words = words(line);
    let first = words.first().is_some_and(|(_, w)| device_numbers(w));
    (first && words.len() >= 6 && time_column(&words).is_some()).then_some(Form::Blkparse)
}

/// Where the time stands in blkparse's text, with or without a sequence number.
fn time_column(words: &[(usize, &str)]) -> Option<usize> {
    [3, 2].into_iter().find(|at| words.get(*at).is_some_and(|(_, word)| seconds(word).is_some()))
}

/// `12.000000345` in ns.
fn seconds(word: &str) -> Option<Nanos> {
    let (whole, fraction) = word.split_once('.')?;
    let digits = fraction.len();
    if digits == 0 || digits > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = fraction.parse::<u64>().ok()? * 10u64.pow(9 - digits as u32);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction).map(Nanos)
}

/// Of the letters that the kernel writes for an IO.
fn mode_of(letters: &str) -> Option<Mode> {
    let has = |c: char| letters.contains(c);
    if has('D') {
        Some(Mode::Trim)
    } else if has('W') {
        Some(Mode::Write)
    } else if has('R') {
        Some(Mode::Read)
    } else if has('F') {
        Some(Mode::Flush)
    } else {
        None
    }
}

/// Puts IOs and their completions together.
#[derive(Default)]
struct Collector {
    /// `MAJOR,MINOR`, or a file of an iolog: the one asked for, or the first seen.
    device: Option<String>,
    /// Given from outside: others are passed over.
    chosen: bool,
    ios: Vec<TraceIo>,
    open: HashMap<(u64, Mode), usize>,
    first: Option<Nanos>,
    /// The trace tells of completions.
    completes: bool,
    /// IOs that the driver sent back.
    returned: Vec<usize>,
}

impl Collector {
    /// Whether an IO of `device` belongs to the trace.
    fn takes(&mut self, device: &str) -> Result<bool, &'static str> {
        let mine = self.device.get_or_insert_with(|| device.to_string()) == device;
        if mine || self.chosen {
            Ok(mine)
        } else {
            Err("IOs of one device or file only; choose it with --device 8,0 or --device NAME")
        }
    }

    fn issue(&mut self, at: Nanos, offset: u64, size: u32, mode: Mode) {
        let first = *self.first.get_or_insert(at);
        let before = self.open.insert((offset, mode), self.ios.len());
        let same = |i: &usize| self.ios[*i].size == size;
        self.returned.extend(before.filter(|i| self.completes && same(i)));
        self.ios.push(TraceIo { at: at.saturating_sub(first), offset, size, mode, response: None });
    }

    fn complete(&mut self, at: Nanos, offset: u64, mode: Mode) {
        self.completes = true;
        let (Some(first), Some(open)) = (self.first, self.open.remove(&(offset, mode))) else { return };
        let io = &mut self.ios[open];
        io.response = Some(at.saturating_sub(first).saturating_sub(io.at));
    }

    /// The trace: without what was sent back, and several logs by their times.
    fn finish(mut self) -> Vec<TraceIo> {
        self.returned.sort_unstable();
        let mut at = 0..;
        self.ios.retain(|_| at.next().is_none_or(|i: usize| self.returned.binary_search(&i).is_err()));
        self.ios.sort_by_key(|io| io.at);
        self.ios
    }
}

/// Reads a trace in any of the text forms.
///
/// # Errors
/// [`TraceError`] with line and column; also where there are IOs of several devices.
pub fn parse(text: &str) -> Result<Vec<TraceIo>, TraceError> {
    parse_device(text, None)
}

/// [`parse`] of only the IOs of one device, `MAJOR,MINOR` in blkparse's text and
/// in trace events, the file's name in an iolog.
///
/// # Errors
/// As [`parse`].
pub fn parse_device(text: &str, device: Option<&str>) -> Result<Vec<TraceIo>, TraceError> {
    let mut reading = Reading::new(device);
    for line in text.lines() {
        reading.line(line)?;
    }
    reading.finish()
}

/// [`parse_device`] of a text that is read line by line, of at most `most` IOs.
///
/// # Errors
/// What the system says; within it as [`parse`], and where a line or the trace
/// is too long.
pub fn read_device(
    text: &mut dyn BufRead,
    device: Option<&str>,
    most: usize,
) -> io::Result<Result<Vec<TraceIo>, TraceError>> {
    let mut reading = Reading::new(device);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = Read::take(&mut *text, LONGEST_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(reading.finish());
        }
        if read > LONGEST_LINE {
            return Ok(Err(reading.too_long("a trace's line, which has at most 64K", &line)));
        }
        let whole = line.strip_suffix(b"\n").unwrap_or(&line);
        let whole = whole.strip_suffix(b"\r").unwrap_or(whole);
        if let Err(error) = reading.line(&String::from_utf8_lossy(whole)) {
            return Ok(Err(error));
        }
        if reading.all.ios.len() > most {
            return Ok(Err(
                reading.too_long("the end: there is no memory for more IOs; cut the trace here", &line)
            ));
        }
    }
}

/// Bytes of a line at most.
const LONGEST_LINE: usize = 64 << 10;

/// A trace of which some lines were read.
struct Reading {
    all: Collector,
    form: Option<Form>,
    lines: usize,
    /// How the text begins, for a message.
    begins: String,
}

impl Reading {
    fn new(device: Option<&str>) -> Reading {
        let all = Collector {
            device: device.map(str::to_string),
            chosen: device.is_some(),
            ..Collector::default()
        };
        Reading { all, form: None, lines: 0, begins: String::new() }
    }

    fn line(&mut self, line: &str) -> Result<(), TraceError> {
        self.lines += 1;
        if self.begins.is_empty() {
            self.begins = line.chars().take(40).collect();
        }
        self.form = self.form.or_else(|| form_of(line));
        let read = match self.form {
            None => Ok(()),
            Some(Form::Blkparse) => blkparse(line, &mut self.all),
            Some(Form::Events) => event(line, &mut self.all),
            Some(Form::Iolog { times }) => iolog(line, times, &mut self.all),
        };
        read.map_err(|(column, expected)| TraceError {
            line: self.lines,
            column: line[..column].chars().count() + 1,
            expected,
            found: line[column..].chars().take(40).collect(),
        })
    }

    fn too_long(&self, expected: &'static str, line: &[u8]) -> TraceError {
        let text = String::from_utf8_lossy(&line[..line.len().min(160)]);
        // Nothing that a terminal would take for a command.
        let found = text.chars().filter(|c| !c.is_control()).take(40).collect();
        TraceError { line: self.lines + 1, column: 1, expected, found }
    }

    fn finish(self) -> Result<Vec<TraceIo>, TraceError> {
        if self.all.ios.is_empty() {
            let expected = "a trace: blkparse's text, fio's iolog (write_iolog=FILE) or block trace events";
            return Err(TraceError { line: 1, column: 1, expected, found: self.begins });
        }
        Ok(self.all.finish())
    }
}

type Wrong = (usize, &'static str);

fn bounded(offset: u64, size: u64, column: usize) -> Result<u32, Wrong> {
    let fits =
        size <= u64::from(IoRecord::MAX_SIZE) && offset.checked_add(size).is_some_and(|end| end <= END);
    u32::try_from(size).ok().filter(|_| fits).ok_or((column, "an IO of at most 256M below 4 PiB"))
}

/// `sector + count` from two words; none for a flush.
fn range(words: &[(usize, &str)], at: usize) -> Result<Option<(u64, u32)>, Wrong> {
    let Some((column, sector)) = words.get(at).copied() else { return Ok(None) };
    if words.get(at + 1).map(|w| w.1) != Some("+") {
        return Ok(None);
    }
    let count = words.get(at + 2).and_then(|w| w.1.parse::<u64>().ok());
    if count == Some(0) {
        return Ok(None);
    }
    let offset = sector.parse::<u64>().ok().and_then(|s| s.checked_mul(SECTOR));
    let (Some(offset), Some(size)) = (offset, count.and_then(|c| c.checked_mul(SECTOR))) else {
        return Err((column, "SECTOR + COUNT"));
    };
    Ok(Some((offset, bounded(offset, size, column)?)))
}

fn blkparse(line: &str, all: &mut Collector) -> Result<(), Wrong> {
    let words = words(line);
    if words.len() < 6 || !device_numbers(words[0].1) {
        return Ok(());
    }
    // Without a time that can be read, the columns are those of blkparse.
    let time = time_column(&words).unwrap_or(3);
    let (Some((_, action)), Some((_, letters))) = (words.get(time + 2), words.get(time + 3)) else {
        return Ok(());
    };
    let Some(mode) = mode_of(letters).filter(|_| matches!(*action, "D" | "C")) else { return Ok(()) };
    if !all.takes(words[0].1).map_err(|expected| (words[0].0, expected))? {
        return Ok(());
    }
    let at = seconds(words[time].1).ok_or((words[time].0, "a time in seconds such as 0.009507758"))?;
    done(all, *action == "D", at, range(&words, time + 4)?, mode);
    Ok(())
}

fn done(all: &mut Collector, issue: bool, at: Nanos, range: Option<(u64, u32)>, mode: Mode) {
    match range {
        Some((offset, size)) if issue => all.issue(at, offset, size, mode),
        Some((offset, _)) => all.complete(at, offset, mode),
        None if issue => all.issue(at, 0, 0, Mode::Flush),
        None if mode == Mode::Flush => all.complete(at, 0, mode),
        None => {}
    }
}

fn event(line: &str, all: &mut Collector) -> Result<(), Wrong> {
    let Some(place) = line.find(": block_rq_") else { return Ok(()) };
    let (head, body) = line.split_at(place);
    let Some((name, body)) = body[2..].split_once(": ") else { return Ok(()) };
    if !matches!(name, "block_rq_issue" | "block_rq_complete") {
        return Ok(());
    }
    let time = head.split_whitespace().last().unwrap_or("");
    let at =
        seconds(time).ok_or((head.trim_end().len() - time.len(), "a time in seconds such as 12.500001"))?;
    let base = line.len() - body.len();
    let words: Vec<(usize, &str)> = words(body).into_iter().map(|(c, w)| (c + base, w)).collect();
    let Some(mode) = words.get(1).and_then(|(_, letters)| mode_of(letters)) else { return Ok(()) };
    if !all.takes(words[0].1).map_err(|expected| (words[0].0, expected))? {
        return Ok(());
    }
    let plus = words.iter().position(|(_, w)| *w == "+").and_then(|p| p.checked_sub(1));
    let range = plus.map_or(Ok(None), |p| range(&words, p))?;
    done(all, name == "block_rq_issue", at, range, mode);
    Ok(())
}

fn iolog(line: &str, times: bool, all: &mut Collector) -> Result<(), Wrong> {
    let words = words(line);
    let skip = usize::from(times);
    let Some((column, action)) = words.get(skip + 1).copied() else { return Ok(()) };
    let mode = match action {
        "read" => Mode::Read,
        "write" => Mode::Write,
        "trim" => Mode::Trim,
        "sync" | "datasync" => Mode::Flush,
        _ => return Ok(()),
    };
    let (start, file) = words[skip];
    if !all.takes(file).map_err(|expected| (start, expected))? {
        return Ok(());
    }
    let at = match times {
        false => 0,
        true => words[0]
            .1
            .parse::<u64>()
            .ok()
            .and_then(|us| us.checked_mul(1000))
            .ok_or((words[0].0, "a time in us"))?,
    };
    if mode == Mode::Flush {
        all.issue(Nanos(at), 0, 0, mode);
        return Ok(());
    }
    let number = |at: usize| words.get(at).and_then(|w| w.1.parse::<u64>().ok());
    let (Some(offset), Some(size)) = (number(skip + 2), number(skip + 3)) else {
        return Err((column, "ACTION OFFSET LENGTH in bytes"));
    };
    let size = bounded(offset, size, column)?;
    if size > 0 {
        all.issue(Nanos(at), offset, size, mode);
    }
    Ok(())
}
