//! Text for people: what others wrote (manifests, device files, plans, jobs,
//! file names, what was typed) must not steer the terminal it is shown on.
//!
//! Method: nothing is cleaned where it is made; everything is where it leaves.
//! Standard output goes through [`crate::command::print`], standard error
//! through [`crate::say!`]; both know line feeds and tabs and replace every
//! other control character, every sign that changes the direction of writing and
//! every one that is not seen by `?`. Colours pass only where the caller says
//! that it painted ([`painted`]), and of these only those that our own painter
//! writes. JSON says such characters as escapes, which is its own way.
//!
//! Limit: where colours are on, a text of the data may be in bold or in one of
//! the colours. Line feeds pass: a name with one takes two lines.

use std::io::Write;
use uflip_device::identity::is_hostile;
pub use uflip_device::identity::word;

/// The codes that `terminal` and `compare` paint with.
const OURS: [&str; 10] = [
    "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[35m", "\x1b[36m",
    "\x1b[7m",
];

fn shown(c: char) -> char {
    if is_hostile(c) && !matches!(c, '\n' | '\t') { '?' } else { c }
}

/// `text` as it may be shown: see the head.
pub fn lines(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// The same in one line.
pub fn line(text: &str) -> String {
    uflip_device::identity::printable(text)
}

/// `text` with our own colours left in it.
pub fn painted(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let code = OURS.iter().find(|code| rest.starts_with(**code));
        let length = code.map_or(first.len_utf8(), |code| code.len());
        match code {
            Some(code) => clean.push_str(code),
            None => clean.push(shown(first)),
        }
        rest = &rest[length..];
    }
    clean
}

/// JSON with every hostile character as an escape; these are inside strings
/// only, but for the line feeds and blanks between.
pub fn json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if shown(c) == c {
            clean.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| clean += &format!("\\u{unit:04x}"));
        }
    }
    clean
}

/// An error with its causes, each said once: our errors say their cause
/// themselves and keep it for programs as well, so that a cause whose words are
/// there already is passed over.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let next = cause.to_string();
        if text.is_empty() {
            text = next;
        } else if !text.contains(&next) {
            // A cause that says the last part anew, and more, takes its place.
            match text.rsplit_once(": ") {
                Some((head, last)) if next.contains(last) => text = format!("{head}: {next}"),
                _ => text = format!("{text}: {next}"),
            }
        }
    }
    text
}

/// A writer of text in pieces: CSV with `?` for what is hostile, JSON with escapes.
pub struct Clean<W> {
    out: W,
    json: bool,
    /// The beginning of a character whose rest is yet to come.
    rest: Vec<u8>,
}

impl<W: Write> Clean<W> {
    /// Onto `out`.
    pub fn new(out: W, json: bool) -> Clean<W> {
        Clean { out, json, rest: Vec::new() }
    }
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.rest.is_empty() && bytes.iter().all(plain) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text = String::from_utf8_lossy(&self.rest[..whole]);
        let clean = if self.json { json(&text) } else { lines(&text) };
        self.out.write_all(clean.as_bytes())?;
        self.rest.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn nothing_that_steers_comes_through() {
        let hostile = "a\x1b[2J\x07\rb\u{9b}31m\u{202e}c\u{7f}\n\td\x1b[31m";
        assert_eq!(lines(hostile), "a?[2J??b?31m?c?\n\td?[31m");
        assert_eq!(painted(hostile), "a?[2J??b?31m?c?\n\td\x1b[31m");
        assert_eq!(painted("\x1b[1mbold\x1b[0m \x1b[8mhidden"), "\x1b[1mbold\x1b[0m ?[8mhidden");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "na\u{202e}me": "\x1b[2J\u{9b}\u{7f}\u{e0001}é" });
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.chars().all(|c| c == '\n' || !is_hostile(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn pieces_come_out_as_the_whole_would() {
        let text = "a,\u{1b}[2J\u{202e},é\u{9b}\n";
        for json in [false, true] {
            let mut clean = Clean::new(Vec::new(), json);
            text.as_bytes().iter().for_each(|byte| clean.write_all(&[*byte]).unwrap());
            let whole = if json { super::json(text) } else { lines(text) };
            assert_eq!(String::from_utf8(clean.out).unwrap(), whole);
        }
    }

    #[test]
    fn a_cause_is_said_once() {
        let full = || std::io::Error::from_raw_os_error(28);
        let once = |error: anyhow::Error, times: &str| {
            let text = chain(&error);
            assert_eq!(text.matches(times).count(), 1, "{text}");
            text
        };
        let path =
            uflip_device::DeviceError::Path { what: "cannot open".into(), path: "/x".into(), source: full() };
        let run = uflip_measure::ExecuteError::Device { run: 7, source: path };
        let text = once(anyhow::Error::from(run).context("3 runs are kept"), "No space left");
        assert_eq!(text, "3 runs are kept: run 7: cannot open /x: No space left on device (os error 28)");
        once(Err::<(), _>(full()).with_context(|| "cannot read x").unwrap_err(), "No space left");
        once(uflip_store::StoreError::Output(full()).into(), "No space left");
    }
}
