//! Checksums of what is kept, so that damage is noticed before anything is
//! concluded from it.
//!
//! What: a record file's checksum stands in its row; a row and a JSON file carry
//! their own as their last field, `check`. How: CRC-32 (IEEE 802.3, as in gzip).
//! It finds every flipped bit, every odd number of them, and every burst of up
//! to 32 bits; other damage with a chance of all but 1 in 2^32. A row's or
//! file's covers every byte before the comma in front of `check`, and what
//! follows must be exactly what is written here, so that no byte is free.
//!
//! Source: W. W. Peterson and D. T. Brown, "Cyclic codes for error detection",
//! 1961. Limits: against accidents, not against forgers: whoever changes a file
//! on purpose can compute its checksum anew.

use crate::error::StoreError;
use crate::files::{read_json_bytes, unreadable};
use flate2::Crc;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;

/// The field that carries a row's or a file's own checksum.
pub const FIELD: &str = "check";

/// A checksum as text: `crc32:1a2b3c4d`.
fn text(crc: &Crc) -> String {
    format!("crc32:{:08x}", crc.sum())
}

/// The checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> String {
    let mut crc = Crc::new();
    crc.update(bytes);
    text(&crc)
}

/// The checksum of what `source` gives, and its length, in bounded memory.
///
/// # Errors
/// What `source` says.
pub fn checksum_of(mut source: impl Read) -> std::io::Result<(String, u64)> {
    let (mut crc, mut length) = (Crc::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            return Ok((text(&crc), length));
        }
        crc.update(&buffer[..count]);
        length += count as u64;
    }
}

/// Passes bytes on and sums them up on the way.
pub struct Summing<W> {
    sink: W,
    crc: Crc,
}

impl<W> Summing<W> {
    /// In front of `sink`.
    pub fn new(sink: W) -> Summing<W> {
        Summing { sink, crc: Crc::new() }
    }

    /// The sink, and the checksum of all that it took.
    pub fn into_parts(self) -> (W, String) {
        let sum = text(&self.crc);
        (self.sink, sum)
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// How a sealed text ends: on one line, or as JSON for people to read.
#[derive(Clone, Copy)]
enum Layout {
    Line,
    Pretty,
}

/// `body`, the start of an object up to its last field, with its checksum.
fn sealed(body: &[u8], layout: Layout) -> Vec<u8> {
    let comma = if body.ends_with(b"{") { "" } else { "," };
    let sum = checksum(body);
    let tail = match layout {
        Layout::Line => format!("{comma}\"{FIELD}\":\"{sum}\"}}"),
        Layout::Pretty => format!("{comma}\n  \"{FIELD}\": \"{sum}\"\n}}\n"),
    };
    [body, tail.as_bytes()].concat()
}

/// A JSON object with its own checksum as its last field: on one line as it
/// came, or for people to read. Anything but an object stays as it is.
pub fn seal(json: Vec<u8>) -> Vec<u8> {
    let Some(inner) = json.trim_ascii_end().strip_suffix(b"}") else { return json };
    let body = inner.trim_ascii_end();
    let layout = if body.len() < inner.len() { Layout::Pretty } else { Layout::Line };
    sealed(body, layout)
}

/// What a text's own checksum says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// It is as it was written.
    Intact,
    /// It is not as it was written.
    Changed,
    /// It has none: written by an earlier version, or by somebody else.
    None,
}

/// Holds a sealed text, a line without its newline, against its checksum.
pub fn examine(bytes: &[u8]) -> Seal {
    let marker = format!("\"{FIELD}\"").into_bytes();
    // The longest end that is written here, and some blanks of an editor.
    let from = bytes.len().saturating_sub(64);
    let at = bytes[from..].windows(marker.len()).rposition(|window| window == marker);
    let Some(at) = at.map(|at| from + at) else { return Seal::None };
    let body = bytes[..at].trim_ascii_end();
    let body = body.strip_suffix(b",").unwrap_or(body);
    let same = [Layout::Line, Layout::Pretty].into_iter().any(|layout| sealed(body, layout) == bytes);
    if same { Seal::Intact } else { Seal::Changed }
}

/// A JSON file as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// What it says, without the checksum.
    pub value: Value,
    /// What its checksum says of it.
    pub seal: Seal,
    /// The checksum of all its bytes, whatever it says itself.
    pub sum: String,
}

impl Sealed {
    /// Whether it says that it belongs to another folder than `folder`; files of
    /// earlier versions say nothing.
    pub fn is_anothers(&self, folder: Option<&str>) -> bool {
        let said = self.value.get("folder").and_then(Value::as_str);
        said.zip(folder).is_some_and(|(said, folder)| said != folder)
    }

    /// What the file at `path` tells, which is called `what` ("plan"): one reader a
    /// kind of file. The inner error says what is wrong where damage explains it, as
    /// its checksum is another.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with `remedy` where it is of another shape although
    /// its checksum is right, or it has none: then nothing may be concluded without
    /// it.
    pub fn told<T: DeserializeOwned>(
        &self,
        path: &Path,
        what: &str,
        remedy: &str,
    ) -> Result<Result<T, String>, StoreError> {
        T::deserialize(&self.value).map(Ok).or_else(|error| {
            let detail = format!("it is no {what} ({error}); {remedy}");
            match self.seal {
                Seal::Changed => Ok(Err(detail)),
                Seal::Intact | Seal::None => Err(StoreError::Damaged { path: path.to_path_buf(), detail }),
            }
        })
    }
}

/// Reads a JSON file; None where there is none.
///
/// # Errors
/// [`StoreError::Path`] where it cannot be read, [`StoreError::Damaged`] with
/// `remedy` where it is no regular file, too long, or no JSON.
pub fn read_sealed(path: &Path, remedy: &str) -> Result<Option<Sealed>, StoreError> {
    let bytes = match read_json_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error, remedy)),
    };
    let mut value: Value = serde_json::from_slice(&bytes)
        .map_err(|e| StoreError::Damaged { path: path.to_path_buf(), detail: format!("{e}; {remedy}") })?;
    let own = value.as_object_mut().and_then(|fields| fields.remove(FIELD));
    let seal = match examine(&bytes) {
        // It is not where it was: somebody wrote the file anew.
        Seal::None if own.is_some() => Seal::Changed,
        seal => seal,
    };
    Ok(Some(Sealed { value, seal, sum: checksum(&bytes) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_everybody_computes() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(checksum(b"123456789"), "crc32:cbf43926");
        assert_eq!(checksum_of(&b"123456789"[..]).unwrap(), ("crc32:cbf43926".into(), 9));
        let mut summing = Summing::new(Vec::new());
        summing.write_all(b"12345").unwrap();
        summing.write_all(b"6789").unwrap();
        assert_eq!(summing.into_parts(), (b"123456789".to_vec(), "crc32:cbf43926".to_string()));
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_text_is_noticed() {
        let value = serde_json::json!({"format": 1, "list": [{"check": "mine"}, 2.5], "text": "a \"check\", ".repeat(9)});
        let line = serde_json::to_vec(&value).unwrap();
        let mut pretty = serde_json::to_vec_pretty(&value).unwrap();
        for plain in [line, pretty.clone(), b"{}".to_vec()] {
            assert_eq!(examine(&plain), Seal::None, "{plain:?}");
            let whole = seal(plain);
            assert_eq!(examine(&whole), Seal::Intact);
            serde_json::from_slice::<Value>(&whole).unwrap();
            for bit in 0..whole.len() * 8 {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(examine(&flipped), Seal::Intact, "bit {bit}");
            }
        }
        pretty.push(b'\n');
        assert_eq!(seal(pretty.clone()), seal(pretty.trim_ascii_end().to_vec()));
        assert_eq!(seal(b"[1]".to_vec()), b"[1]");
    }
}
