//! Reading a job file.
//!
//! How: line by line, word by word, value by value; every piece of text knows
//! its column, so that an error names it. Nothing in a text can make the parser
//! panic or take memory out of proportion: lists, ranges, repeats and rounds have
//! limits ([`MAX_VALUES`], [`MAX_NUMBER`]).
//!
//! ```text
//! file    = line …          # starts a comment
//! line    = set key=value …
//!         | NAME patterns key=value …
//! patterns = sr|rr|sw|rw , …
//! ```
//! `docs/job-files.md` has every key. Source: paper 004, appendix A.

use super::{Amount, Before, Each, Endurance, Job, JobError, Length, Line, Start};
use crate::pattern::Baseline;
use uflip_device::{Buffering, Bytes, Data, IoRecord, Nanos};

/// The most values that a list may have after its ranges are written out.
pub const MAX_VALUES: usize = 256;
/// The most lines that a job may have.
pub const MAX_LINES: usize = 1000;
/// The most passes in a round, and rounds and repeats.
pub const MAX_NUMBER: u32 = 1_000_000;
/// The longest time that can be asked for: 30 days.
pub const MAX_TIME: Nanos = Nanos::from_secs(30 * 86_400);
/// The longest growth that makes sense in `until`, in percent.
const MAX_PERCENT: f64 = 100.0;

pub(super) const KEYS: &str = "bs, shift, count, bytes, time, reps, before, each, window, until, sync, start, offset, size, pause, \
                    passes, rounds or then";

/// A part of a line and where it starts, in characters from 1.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Piece<'a> {
    /// What is wrong here.
    fn error(self, expected: impl Into<String>) -> JobError {
        let found = match self.text {
            "" => "nothing".to_string(),
            text => format!("'{}'", text.chars().take(40).collect::<String>()),
        };
        JobError { line: self.line, column: self.column, expected: expected.into(), found }
    }

    /// From byte `from` to byte `to`, both on character boundaries.
    fn part(self, from: usize, to: usize) -> Piece<'a> {
        let column = self.column + self.text[..from].chars().count();
        Piece { text: &self.text[from..to], line: self.line, column }
    }

    /// Split at each character that `at` takes and that no parenthesis holds.
    fn split(self, at: impl Fn(char) -> bool) -> Vec<Piece<'a>> {
        let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0i32);
        for (place, c) in self.text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                c if depth <= 0 && at(c) => {
                    parts.push(self.part(start, place));
                    start = place + c.len_utf8();
                }
                _ => {}
            }
        }
        parts.push(self.part(start, self.text.len()));
        parts
    }

    /// Its words.
    fn words(self) -> Vec<Piece<'a>> {
        self.split(char::is_whitespace).into_iter().filter(|word| !word.text.is_empty()).collect()
    }

    /// At the first `separator`.
    fn cut(self, separator: &str) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.text.find(separator)?;
        Some((self.part(0, at), self.part(at + separator.len(), self.text.len())))
    }

    /// `name(inside)`.
    fn call(self) -> Option<(Piece<'a>, Piece<'a>)> {
        let (name, rest) = self.cut("(")?;
        rest.text.ends_with(')').then(|| (name, rest.part(0, rest.text.len() - 1)))
    }

    fn size(self) -> Result<Bytes, JobError> {
        let size: Result<Bytes, _> = self.text.parse();
        size.map_err(|_| self.error("a size such as 512, 4K or 1M"))
    }

    /// A size that an IO can have.
    fn block(self) -> Result<Bytes, JobError> {
        let most = IoRecord::MAX_SIZE / 512 * 512;
        let size: Option<Bytes> = self.text.parse().ok();
        size.filter(|size| (1..=u64::from(most)).contains(&size.0))
            .ok_or_else(|| self.error("a block size from 1 to 255M, such as 4K"))
    }

    fn time(self) -> Result<Nanos, JobError> {
        let time: Option<Nanos> = self.text.parse().ok();
        time.filter(|t| t.0 > 0 && *t <= MAX_TIME)
            .ok_or_else(|| self.error("a time of at most 30 days, such as 500ms, 30s or 2m"))
    }

    fn number(self, most: u64) -> Result<u64, JobError> {
        let number: Option<u64> = self.text.parse().ok();
        number
            .filter(|n| (1..=most).contains(n))
            .ok_or_else(|| self.error(format!("a number from 1 to {most}")))
    }

    fn percent(self) -> Result<f64, JobError> {
        let number = self.text.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
        number
            .filter(|n| (0.0..=MAX_PERCENT).contains(n))
            .ok_or_else(|| self.error("a share from 0% to 100%, such as 2.5%"))
    }

    fn baseline(self) -> Result<Baseline, JobError> {
        self.text.parse().map_err(|_| self.error("sr, rr, sw or rw"))
    }
}

/// Values and ranges: `512`, `512..8M*2`, `4K..64K`.
fn sizes<'a>(list: Piece<'a>, one: fn(Piece<'a>) -> Result<Bytes, JobError>) -> Result<Vec<Bytes>, JobError> {
    let mut all = Vec::new();
    for piece in list.split(|c| c == ',' || c == '|') {
        match piece.cut("..") {
            None => all.push(one(piece)?),
            Some((from, to)) => {
                let (to, factor) = match to.cut("*") {
                    Some((to, factor)) => (to, factor.number(1 << 20)?),
                    None => (to, 2),
                };
                let (low, high) = (one(from)?, one(to)?);
                if low.0 == 0 || high < low {
                    return Err(piece.error("a range that goes upwards, such as 512..8M*2"));
                }
                if factor < 2 {
                    return Err(piece.error("a factor from 2 after the range, such as 512..8M*2"));
                }
                let values = std::iter::successors(Some(low.0), |v| v.checked_mul(factor));
                all.extend(values.take_while(|v| *v <= high.0).map(Bytes));
            }
        }
        limited(list, all.len())?;
    }
    distinct(list, &all)?;
    Ok(all)
}

fn limited(list: Piece<'_>, n: usize) -> Result<(), JobError> {
    if n <= MAX_VALUES { Ok(()) } else { Err(list.error(format!("at most {MAX_VALUES} values"))) }
}

fn distinct<T: PartialEq>(list: Piece<'_>, all: &[T]) -> Result<(), JobError> {
    let twice = (0..all.len()).any(|i| all[..i].contains(&all[i]));
    if twice { Err(list.error("each value only once")) } else { Ok(()) }
}

fn patterns(list: Piece<'_>) -> Result<Vec<Baseline>, JobError> {
    let all: Result<Vec<_>, _> = list.split(|c| c == ',').into_iter().map(Piece::baseline).collect();
    let all = all.map_err(|error| JobError {
        expected: "patterns after the experiment's name: sr, rr, sw, rw or several of them, such as sr,rw"
            .into(),
        ..error
    })?;
    distinct(list, &all)?;
    Ok(all)
}

fn before(list: Piece<'_>) -> Result<Vec<Before>, JobError> {
    const EXPECTED: &str = "fill(1M), rw(bs=same,time=30s) or idle(5s)";
    let parts = list.split(|c| c == ',');
    if parts.len() > 8 {
        return Err(list.error("at most 8 things before"));
    }
    parts
        .into_iter()
        .map(|piece| {
            let (name, inside) = piece.call().ok_or_else(|| piece.error(EXPECTED))?;
            match name.text {
                "fill" => Ok(Before::Fill { block: inside.block()? }),
                "idle" => Ok(Before::Idle { time: inside.time()? }),
                _ => {
                    let baseline = name.baseline().map_err(|_| piece.error(EXPECTED))?;
                    burst(baseline, inside)
                }
            }
        })
        .collect()
}

/// `bs=same|2K,time=5s|30s`.
fn burst(baseline: Baseline, inside: Piece<'_>) -> Result<Before, JobError> {
    let (mut blocks, mut times, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = Vec::new();
    for setting in inside.split(|c| c == ',') {
        let (key, value) =
            setting.cut("=").ok_or_else(|| setting.error("bs=SIZE, time=TIME or count=NUMBER"))?;
        once(key, &mut seen)?;
        let values = value.split(|c| c == '|');
        if values.len() > 16 {
            return Err(value.error("at most 16 values"));
        }
        for value in values {
            match key.text {
                "bs" if value.text == "same" => blocks.push(None),
                "bs" => blocks.push(Some(value.block().map_err(|e| JobError {
                    expected: "same, or a block size from 1 to 255M, such as 2K".into(),
                    ..e
                })?)),
                "time" => times.push(Length::Time(value.time()?)),
                "count" => counts.push(Length::Count(value.number(1 << 40)?)),
                _ => return Err(key.error("bs, time or count")),
            }
        }
    }
    let lengths = [times, counts].concat();
    if lengths.is_empty() {
        return Err(inside.error("the burst's length, such as time=30s or count=1000"));
    }
    if blocks.is_empty() {
        blocks.push(None);
    }
    distinct(inside, &blocks)?;
    distinct(inside, &lengths)?;
    Ok(Before::Burst { baseline, blocks, lengths })
}

fn once<'a>(key: Piece<'a>, seen: &mut Vec<&'a str>) -> Result<(), JobError> {
    if seen.contains(&key.text) {
        return Err(key.error(format!("{} only once", key.text)));
    }
    seen.push(key.text);
    Ok(())
}

/// The word for a buffering mode in a job file.
pub const fn buffering_word(mode: Buffering) -> &'static str {
    match mode {
        Buffering::Direct => "direct",
        Buffering::DirectSync => "dsync",
        Buffering::Buffered => "buffered",
    }
}

/// Defaults of the lines to come, as `set` gives them.
#[derive(Clone, Default)]
struct Defaults {
    count: Option<u64>,
    time: Option<Nanos>,
    repeats: Option<u32>,
    pause: Option<Nanos>,
    offset: Option<Bytes>,
    size: Option<Bytes>,
}

fn set<'a>(
    words: &[Piece<'a>],
    job: &mut Job,
    defaults: &mut Defaults,
    seen: &mut Vec<&'a str>,
) -> Result<(), JobError> {
    for word in words {
        let keys = "seed, data, buffering, logical, count, time, reps, pause, offset or size";
        let (key, value) = word.cut("=").ok_or_else(|| word.error("key=value, such as seed=7"))?;
        let whole_file = ["seed", "data", "buffering", "logical"].contains(&key.text);
        if whole_file {
            once(key, seen)?;
        }
        match key.text {
            "seed" => {
                job.seed = Some(value.text.parse().map_err(|_| value.error("a whole number from 0"))?);
            }
            "data" => {
                let expected = "random, zeros, cyclic, age or a byte such as 0xa5";
                job.data = Some(value.text.parse::<Data>().map_err(|_| value.error(expected))?);
            }
            "buffering" => {
                let all = [Buffering::Direct, Buffering::DirectSync, Buffering::Buffered];
                let found = all.into_iter().find(|mode| buffering_word(*mode) == value.text);
                job.buffering = Some(found.ok_or_else(|| value.error("direct, dsync or buffered"))?);
            }
            "logical" => job.logical_block = Some(value.size()?).filter(|b| b.0 > 0),
            "count" => defaults.count = Some(value.number(1 << 40)?),
            "time" => defaults.time = Some(value.time()?),
            "reps" => defaults.repeats = Some(value.number(MAX_NUMBER.into())? as u32),
            "pause" => defaults.pause = Some(value.time()?),
            "offset" => defaults.offset = Some(value.size()?),
            "size" => defaults.size = Some(value.size()?),
            _ => return Err(key.error(keys)),
        }
    }
    Ok(())
}

/// The keys of a line that must be put together at its end.
#[derive(Default)]
struct Late<'a> {
    each: Option<Each>,
    passes: Option<(u64, Piece<'a>)>,
    rounds: Option<(u32, Piece<'a>)>,
    then: Option<Piece<'a>>,
    window: Option<Piece<'a>>,
    block_sizes: bool,
}

fn line<'a>(words: &[Piece<'a>], defaults: &Defaults) -> Result<(Line, Option<Piece<'a>>), JobError> {
    let (name, rest) = words.split_first().expect("an empty line was passed over");
    let named = name.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !named || name.text.parse::<Baseline>().is_ok() {
        return Err(name.error("the experiment's name (letters, digits, _ and -) or set"));
    }
    let end = Piece { text: "", column: name.column + name.text.chars().count(), ..*name };
    let (list, keys) = match rest.split_first() {
        Some((list, keys)) if !list.text.contains('=') => (*list, keys),
        Some((other, _)) => return Err(other.error("patterns before the keys, such as sr,rw")),
        None => return Err(end.error("patterns after the name, such as sr,rw")),
    };
    let mut line = Line {
        number: name.line,
        name: name.text.to_string(),
        patterns: patterns(list)?,
        block_sizes: vec![crate::pattern::DEFAULT_IO_SIZE],
        shifts: vec![Bytes(0)],
        count: None,
        bytes: None,
        time: None,
        repeats: defaults.repeats.unwrap_or(1),
        before: Vec::new(),
        each: Each::Size,
        window: None,
        until_percent: None,
        syncs: Vec::new(),
        start: Start::Random,
        offset: defaults.offset.unwrap_or_default(),
        size: defaults.size,
        pause: defaults.pause.unwrap_or_default(),
        endurance: None,
    };
    let (mut late, mut seen) = (Late::default(), Vec::new());
    for word in keys {
        let (key, value) = word.cut("=").ok_or_else(|| word.error("key=value, such as bs=4K"))?;
        once(key, &mut seen)?;
        set_key(&mut line, &mut late, key, value)?;
    }
    finish(line, &late, defaults, words)
}

/// Takes one `key=value` of a line.
fn set_key<'a>(
    line: &mut Line,
    late: &mut Late<'a>,
    key: Piece<'a>,
    value: Piece<'a>,
) -> Result<(), JobError> {
    let many = u64::from(MAX_NUMBER);
    match key.text {
        "bs" => {
            line.block_sizes = sizes(value, Piece::block)?;
            late.block_sizes = true;
        }
        "shift" => line.shifts = sizes(value, Piece::size)?,
        "count" => line.count = Some(value.number(1 << 40)?),
        "bytes" if value.text == "all" => line.bytes = Some(Amount::All),
        "bytes" => {
            let size =
                value.size().map_err(|e| JobError { expected: "all, or a size such as 16M".into(), ..e });
            line.bytes = Some(Amount::Bytes(size?));
        }
        "time" => line.time = Some(value.time()?),
        "reps" => line.repeats = value.number(many)? as u32,
        "before" => line.before = before(value)?,
        "each" => {
            late.each = Some(match value.text {
                "size" => Each::Size,
                "run" => Each::Run,
                _ => return Err(value.error("size or run")),
            });
        }
        "window" => {
            line.window = Some(value.time()?);
            late.window = Some(value);
        }
        "sync" => {
            let all: Result<Vec<u32>, _> =
                value.split(|c| c == ',').into_iter().map(|n| Ok(n.number(many)? as u32)).collect();
            line.syncs = all?;
            limited(value, line.syncs.len())?;
            distinct(value, &line.syncs)?;
            if line.patterns.iter().any(|b| b.mode() == crate::pattern::PatternMode::Read) {
                return Err(key.error("sync only with sw and rw"));
            }
        }
        "until" => line.until_percent = Some(value.percent()?),
        "start" => {
            line.start = match value.text {
                "random" => Start::Random,
                "0" => Start::Zero,
                _ => return Err(value.error("random or 0")),
            };
        }
        "offset" => line.offset = value.size()?,
        "size" => line.size = Some(value.size()?),
        "pause" => line.pause = value.time()?,
        "passes" => late.passes = Some((value.number(many)?, key)),
        "rounds" => late.rounds = Some((value.number(many)? as u32, key)),
        "then" => late.then = Some(value),
        _ => return Err(key.error(KEYS)),
    }
    Ok(())
}

/// Puts the keys together; they must suit each other.
fn finish<'a>(
    mut line: Line,
    late: &Late<'a>,
    defaults: &Defaults,
    words: &[Piece<'a>],
) -> Result<(Line, Option<Piece<'a>>), JobError> {
    let last = words.last().map_or(1, |w| w.column + w.text.chars().count());
    let end = Piece { text: "", line: line.number, column: last };
    let bursts = line.before.iter().filter(|b| b.is_burst()).count();
    line.each = late.each.unwrap_or(if bursts > 0 { Each::Run } else { Each::Size });
    match (late.passes, late.rounds, late.then) {
        (None, None, None) => {
            let open = line.count.is_none() && line.bytes.is_none() && line.time.is_none();
            if open {
                (line.count, line.time) = (defaults.count, defaults.time);
            }
            if line.count.is_some() && line.bytes.is_some() {
                return Err(end.error("either count or bytes"));
            }
            if open && line.count.is_none() && line.time.is_none() {
                return Err(end.error("a length: count=NUMBER or bytes=SIZE, time=TIME or both"));
            }
        }
        (None, rounds, then) => {
            let at = rounds.map(|(_, at)| at).or(then).unwrap_or(end);
            return Err(at.error("rounds and then only together with passes, such as passes=1000 rounds=60"));
        }
        (Some((passes, at)), rounds, then) => {
            let plain = line.patterns == [Baseline::Sw] && line.block_sizes.len() == 1;
            let more = line.until_percent.is_some() || line.window.is_some() || !line.syncs.is_empty();
            if !plain || line.shifts != [Bytes(0)] || more {
                return Err(
                    at.error("passes only with sw and one block size, without shift, until, window or sync")
                );
            }
            if line.count.is_some() || line.bytes.is_some() || line.time.is_some() || !line.before.is_empty()
            {
                return Err(at.error("passes without count, time and before: a pass is the whole target"));
            }
            line.repeats = 1;
            let rounds = rounds.map_or(1, |(n, _)| n);
            line.endurance = Some(Endurance { passes, rounds, then: then.map(|p| p.text.to_string()) });
        }
    }
    if let (Some(window), Some(at)) = (line.window, late.window)
        && line.time.is_some_and(|time| time < window)
    {
        return Err(at.error("a window no longer than time"));
    }
    Ok((line, late.then))
}

/// Reads a job file.
///
/// # Errors
/// [`JobError`] with line and column of the first thing that is not as expected.
pub fn parse(text: &str) -> Result<Job, JobError> {
    let mut job = Job::default();
    let (mut defaults, mut seen, mut thens) = (Defaults::default(), Vec::new(), Vec::new());
    for (at, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or("");
        let whole = Piece { text: content, line: at + 1, column: 1 };
        let words = whole.words();
        let Some(first) = words.first() else { continue };
        if first.text == "set" {
            set(&words[1..], &mut job, &mut defaults, &mut seen)?;
            continue;
        }
        let (line, then) = line(&words, &defaults)?;
        if job.lines.iter().any(|other| other.name == line.name) {
            return Err(first.error("a name that no other line has"));
        }
        if job.lines.len() == MAX_LINES {
            return Err(first.error(format!("at most {MAX_LINES} experiments")));
        }
        job.lines.push(line);
        thens.extend(then);
    }
    for then in thens {
        let named = job.lines.iter().find(|line| line.name == then.text);
        if named.is_none_or(|line| line.endurance.is_some()) {
            return Err(then.error("the name of a line without passes"));
        }
    }
    if job.lines.is_empty() {
        let end = Piece { text: "", line: text.lines().count().max(1), column: 1 };
        return Err(end.error("an experiment, such as: std sr,rw bs=4K time=30s"));
    }
    Ok(job)
}
