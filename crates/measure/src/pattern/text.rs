//! The one text form of patterns, used on the command line, in TOML files and
//! in reports.
//!
//! What is accepted (spaces are free, keys come in any order):
//! ```text
//! pattern = basic                              SW(io_size=4K, pause=1ms)
//!         | n basic / 1 basic                  2 SR / 1 RW
//!         | 1 basic / n basic                  1 SR / 4 RW
//!         | n x basic                          4 x SW(target_size=1G)
//!         | n deep basic                       32 deep RR: so many requests under way
//!         | basic | basic | …                  SR | RW(io_size=4K)
//! basic   = SR|RR|SW|RW|ST|RT [ ( key=value, … ) ]           ST, RT: trims
//! keys    = io_size io_shift target_offset target_size       a size: 512B 32K 1G
//!         | incr         a whole number (SR and SW)
//!         | partitions   a number from 1 (SR and SW)
//!         | start        the slot of the first IO, from 0 (SR and SW)
//!         | repeat       no: no address again until all were used (RR and RW)
//!         | pause        a time: 100us 1.5ms; with burst, between bursts; at most
//!                        4503599627370495ns, the 52 bits of a record
//!         | burst        IOs from 1, with pause
//!         | sync         IOs from 1, after which comes a flush; without pause
//!         | rate         an open loop: IOs a second of the whole pattern, at fixed
//!                        gaps, 2000/s 0.5/s; without pause, burst and sync
//!         | poisson      the same with exponential gaps: a Poisson process
//! ```
//! Not given: io_size 32K, io_shift and target_offset 0, target_size what is
//! left of the target, no pause. What is printed is exact and parses back to
//! an equal pattern.
//!
//! Source: the notation follows Table 1's examples, `SW (IOShift = 512 B)` and
//! `2 SR / 1 RR`.

use super::{
    Baseline, Basic, DEFAULT_IO_SIZE, Gaps, Location, Pattern, PatternError, PatternMode, Rate, Ratio,
    Timing, check_pause,
};
use std::fmt;
use std::str::FromStr;
use uflip_device::{Bytes, Nanos};

const KEYS: &str = "io_size, io_shift, target_offset, target_size, incr, partitions, start, repeat, pause, burst, sync, rate or poisson";

const LONGEST_PAUSE: &str =
    "a pause of at most 4503599627370495ns (52 days: submission times have 52 bits of nanoseconds)";

impl fmt::Display for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(io_size={}", self.name(), self.io_size.exact())?;
        if self.io_shift != Bytes(0) {
            write!(f, ", io_shift={}", self.io_shift.exact())?;
        }
        write!(f, ", target_offset={}", self.target_offset.exact())?;
        if let Some(size) = self.target_size {
            write!(f, ", target_size={}", size.exact())?;
        }
        match self.location {
            Location::Sequential | Location::Random => {}
            Location::SequentialFrom { slot } => write!(f, ", start={slot}")?,
            Location::RandomUnique => f.write_str(", repeat=no")?,
            Location::Ordered { incr } => write!(f, ", incr={incr}")?,
            Location::Partitioned { partitions } => write!(f, ", partitions={partitions}")?,
        }
        match self.timing {
            Timing::Consecutive => {}
            Timing::Pause { pause } => write!(f, ", pause={}", pause.exact())?,
            Timing::Burst { pause, burst } => write!(f, ", pause={}, burst={burst}", pause.exact())?,
            Timing::Synced { every } => write!(f, ", sync={every}")?,
            Timing::Open { rate, gaps: Gaps::Fixed } => write!(f, ", rate={rate}")?,
            Timing::Open { rate, gaps: Gaps::Poisson } => write!(f, ", poisson={rate}")?,
        }
        f.write_str(")")
    }
}

impl fmt::Display for Timing {
    /// `consecutive`, `pause 1ms`, `burst 10 pause 100ms`, `sync 4`, `rate 2000/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timing::Consecutive => f.write_str("consecutive"),
            Timing::Pause { pause } => write!(f, "pause {}", pause.exact()),
            Timing::Burst { pause, burst } => write!(f, "burst {burst} pause {}", pause.exact()),
            Timing::Synced { every } => write!(f, "sync {every}"),
            Timing::Open { rate, gaps: Gaps::Fixed } => write!(f, "rate {rate}"),
            Timing::Open { rate, gaps: Gaps::Poisson } => write!(f, "poisson {rate}"),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Basic(basic) => basic.fmt(f),
            Pattern::Mix { first, second, ratio } => {
                write!(f, "{} {first} / {} {second}", ratio.first(), ratio.second())
            }
            Pattern::Replicated { degree, basic } => write!(f, "{degree} x {basic}"),
            Pattern::Queued { depth, basic } => write!(f, "{depth} deep {basic}"),
            Pattern::SideBySide(all) => {
                for (i, basic) in all.iter().enumerate() {
                    write!(f, "{}{basic}", if i == 0 { "" } else { " | " })?;
                }
                Ok(())
            }
        }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;
    fn try_from(text: String) -> Result<Pattern, PatternError> {
        text.parse()
    }
}

impl FromStr for Pattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let mut parser = Parser { text, at: 0 };
        let pattern = parser.pattern()?;
        parser.skip_spaces();
        if parser.rest().is_empty() { Ok(pattern) } else { Err(parser.error("the end of the pattern")) }
    }
}

impl FromStr for Basic {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Basic, PatternError> {
        match text.parse()? {
            Pattern::Basic(basic) => Ok(basic),
            _ => Err(Parser { text, at: 0 }.error("one basic pattern, such as SR or RW(io_size=4K)")),
        }
    }
}

/// A text and how far it was read, in bytes on a character boundary.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// What is wrong here: the next word and what should be there.
    fn error(&self, expected: &str) -> PatternError {
        let rest = self.rest();
        let stop = |c: char| c.is_whitespace() || "=,()/|".contains(c);
        let word = rest.split(stop).next().unwrap_or("");
        let found = match (word, rest.chars().next()) {
            (_, None) => "the end".to_string(),
            ("", Some(c)) => format!("'{c}'"),
            (word, _) => format!("'{}'", word.chars().take(20).collect::<String>()),
        };
        let column = self.text[..self.at].chars().count() + 1;
        PatternError::Text { column, expected: expected.to_string(), found }
    }

    /// Passes over `token` where it comes next.
    fn eat(&mut self, token: char) -> bool {
        self.skip_spaces();
        let next = self.rest().chars().next().is_some_and(|c| c.eq_ignore_ascii_case(&token));
        if next {
            self.at += token.len_utf8();
        }
        next
    }

    /// The longest run of characters that `belongs` takes.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<u32, PatternError> {
        self.skip_spaces();
        let start = self.at;
        match self.word(|c| c.is_ascii_digit()).parse() {
            Ok(n) if n > 0 => Ok(n),
            _ => {
                self.at = start;
                Err(self.error("a number from 1 to 4294967295"))
            }
        }
    }

    fn pattern(&mut self) -> Result<Pattern, PatternError> {
        self.skip_spaces();
        let start = self.at;
        if !self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.side_by_side();
        }
        let n = self.number()?;
        if self.eat('x') {
            return Ok(Pattern::Replicated { degree: n, basic: self.basic()? });
        }
        self.skip_spaces();
        if self.rest().starts_with("deep") {
            self.at += "deep".len();
            return Ok(Pattern::Queued { depth: n, basic: self.basic()? });
        }
        let first = self.basic()?;
        if !self.eat('/') {
            return Err(self.error("'/' and the second pattern of the mix, such as / 1 RW"));
        }
        let m = self.number()?;
        let second = self.basic()?;
        let Ok(ratio) = Ratio::new(n, m) else {
            self.at = start;
            return Err(self.error("1 for one of the mix's two numbers, such as 2 SR / 1 RW"));
        };
        Ok(Pattern::Mix { first, second, ratio })
    }

    fn side_by_side(&mut self) -> Result<Pattern, PatternError> {
        let first = self.basic()?;
        let mut all = vec![first];
        while self.eat('|') {
            all.push(self.basic()?);
        }
        Ok(if all.len() == 1 { Pattern::Basic(first) } else { Pattern::SideBySide(all) })
    }

    fn basic(&mut self) -> Result<Basic, PatternError> {
        self.skip_spaces();
        let start = self.at;
        let name = self.word(|c| c.is_ascii_alphabetic()).to_ascii_uppercase();
        let baselines = Baseline::ALL.into_iter().map(|b| b.basic(DEFAULT_IO_SIZE));
        let trims = [Baseline::Sw, Baseline::Rw]
            .map(|b| Basic { mode: PatternMode::Trim, ..b.basic(DEFAULT_IO_SIZE) });
        let Some(basic) = baselines.chain(trims).find(|basic| basic.name() == name) else {
            self.at = start;
            return Err(self.error("SR, RR, SW, RW, ST or RT"));
        };
        let mut keys = Keys::new(basic);
        if self.eat('(') && !self.eat(')') {
            loop {
                self.key(&mut keys)?;
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.error("',' or ')'"));
                }
            }
        }
        self.finish(keys)
    }

    /// One `key=value`.
    fn key(&mut self, keys: &mut Keys<'a>) -> Result<(), PatternError> {
        self.skip_spaces();
        let start = self.at;
        let key = self.word(|c| c.is_ascii_alphabetic() || c == '_');
        if keys.seen.contains(&key) {
            self.at = start;
            return Err(self.error(&format!("{key} only once")));
        }
        if !KEYS.split([',', ' ']).any(|known| known == key && known != "or") {
            self.at = start;
            return Err(self.error(KEYS));
        }
        if !self.eat('=') {
            return Err(self.error(&format!("'=' after {key}")));
        }
        self.skip_spaces();
        let value_at = self.at;
        let value = self.word(|c| c != ',' && c != ')').trim();
        keys.set(key, value, start).map_err(|expected| {
            self.at = value_at;
            self.error(expected)
        })
    }

    /// Puts the keys together; they must suit the baseline and each other.
    fn finish(&mut self, keys: Keys<'a>) -> Result<Basic, PatternError> {
        let mut fail = |at: usize, expected: &str| {
            self.at = at;
            Err(self.error(expected))
        };
        let mut basic = keys.basic;
        let random = basic.is_random();
        if let Some((slot, at)) = keys.start {
            if random || keys.incr.is_some() || keys.partitions.is_some() || keys.unique.is_some() {
                return fail(at, "start only with plain SR or SW");
            }
            basic.location = Location::SequentialFrom { slot };
        }
        basic.location = match (keys.incr, keys.partitions, keys.unique) {
            (Some((_, at)), ..) | (_, Some((_, at)), _) if random => {
                return fail(at, "incr and partitions only with SR or SW");
            }
            (Some(_), Some((_, at)), _) => return fail(at, "either incr or partitions"),
            (_, _, Some((_, at))) if !random => return fail(at, "repeat only with RR or RW"),
            (Some((incr, _)), ..) => Location::Ordered { incr },
            (_, Some((partitions, _)), _) => Location::Partitioned { partitions },
            (_, _, Some((true, _))) => Location::RandomUnique,
            _ => basic.location,
        };
        basic.timing = match (keys.pause, keys.burst) {
            (None, None) => Timing::Consecutive,
            (Some(pause), None) => Timing::Pause { pause },
            (Some(pause), Some((burst, _))) => Timing::Burst { pause, burst },
            (None, Some((_, at))) => {
                return fail(at, "burst together with pause, such as pause=100ms, burst=10");
            }
        };
        if let Some((every, at)) = keys.sync {
            if basic.timing != Timing::Consecutive {
                return fail(at, "sync without pause and burst");
            }
            basic.timing = Timing::Synced { every };
        }
        for (open, gaps) in [(keys.rate, Gaps::Fixed), (keys.poisson, Gaps::Poisson)] {
            let Some((rate, at)) = open else { continue };
            if basic.timing != Timing::Consecutive {
                return fail(at, "either rate or poisson, without pause, burst and sync");
            }
            basic.timing = Timing::Open { rate, gaps };
        }
        Ok(basic)
    }
}

/// The keys read so far, with where those stand that may not suit the rest.
struct Keys<'a> {
    basic: Basic,
    seen: Vec<&'a str>,
    incr: Option<(i64, usize)>,
    partitions: Option<(u32, usize)>,
    start: Option<(u64, usize)>,
    unique: Option<(bool, usize)>,
    pause: Option<Nanos>,
    burst: Option<(u32, usize)>,
    sync: Option<(u32, usize)>,
    rate: Option<(Rate, usize)>,
    poisson: Option<(Rate, usize)>,
}

impl<'a> Keys<'a> {
    fn new(basic: Basic) -> Keys<'a> {
        Keys {
            basic,
            seen: Vec::new(),
            incr: None,
            partitions: None,
            start: None,
            unique: None,
            pause: None,
            burst: None,
            sync: None,
            rate: None,
            poisson: None,
        }
    }

    /// Takes the value of a known key, or says what was expected.
    fn set(&mut self, key: &'a str, value: &str, at: usize) -> Result<(), &'static str> {
        let size = || value.parse::<Bytes>().map_err(|_| "a size such as 512B, 32K or 1G");
        let count = || value.parse().ok().filter(|n| *n > 0).ok_or("a number from 1 to 4294967295");
        let int = || value.parse().map_err(|_| "a whole number such as -1, 0 or 4");
        let rate = || value.parse().map_err(|_| Rate::FORM);
        let time = || value.parse().map_err(|_| "a time such as 100us, 1.5ms or 1s");
        match key {
            "io_size" => self.basic.io_size = size()?,
            "io_shift" => self.basic.io_shift = size()?,
            "target_offset" => self.basic.target_offset = size()?,
            "target_size" => self.basic.target_size = Some(size()?),
            "incr" => self.incr = Some((int()?, at)),
            "partitions" => self.partitions = Some((count()?, at)),
            "repeat" if value == "no" => self.unique = Some((true, at)),
            "start" => self.start = Some((value.parse().map_err(|_| "a slot's number from 0")?, at)),
            "repeat" if value == "yes" => self.unique = Some((false, at)),
            "repeat" => return Err("yes or no"),
            "pause" => {
                let pause: Nanos = time()?;
                check_pause(pause).map_err(|_| LONGEST_PAUSE)?;
                self.pause = Some(pause);
            }
            "sync" => self.sync = Some((count()?, at)),
            "rate" => self.rate = Some((rate()?, at)),
            "poisson" => self.poisson = Some((rate()?, at)),
            _ => self.burst = Some((count()?, at)),
        }
        self.seen.push(key);
        Ok(())
    }
}

impl PatternMode {
    /// The word used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            PatternMode::Read => "read",
            PatternMode::Write => "write",
            PatternMode::Trim => "trim",
        }
    }
}
