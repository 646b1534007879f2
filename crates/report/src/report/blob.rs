//! Columns of whole numbers as one compressed text, for embedding in a page.
//!
//! Method: a column is taken relative to its base and scale, turned into
//! differences where that makes it regular, and split into byte planes (all
//! lowest bytes, then all second bytes, …), so that the noise of response times
//! stays in the low planes and the rest compresses to nothing. All planes of
//! all columns follow one another, are compressed by gzip and written as
//! base64. `trace.js` has the reader.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::io::Write;

/// How a column's numbers are turned into unsigned ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    /// As they are.
    Plain,
    /// Zigzag: 0, -1, 1, -2, … become 0, 1, 2, 3, …
    Signed,
    /// Zigzag of the difference to the number before.
    Delta,
}

/// What a reader must know of a column: value = base + scale x decoded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) n: usize,
    pub(crate) planes: usize,
    pub(crate) code: Code,
    pub(crate) base: i64,
    pub(crate) scale: i64,
}

/// Columns under way to a blob.
#[derive(Default)]
pub(crate) struct Blob {
    described: Vec<Described>,
    bytes: Vec<u8>,
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

impl Blob {
    /// Adds a column.
    pub(crate) fn add(&mut self, name: &'static str, code: Code, base: i64, scale: i64, values: &[i64]) {
        let mut before = 0;
        let mut code_of = |value: &i64| {
            let reduced = (value - base) / scale;
            match code {
                Code::Plain => reduced as u64,
                Code::Signed => zigzag(reduced),
                Code::Delta => zigzag(reduced - std::mem::replace(&mut before, reduced)),
            }
        };
        let coded: Vec<u64> = values.iter().map(&mut code_of).collect();
        let largest = coded.iter().copied().max().unwrap_or(0);
        let planes = (64 - largest.leading_zeros() as usize).div_ceil(8);
        for plane in 0..planes {
            self.bytes.extend(coded.iter().map(|v| (v >> (8 * plane)) as u8));
        }
        self.described.push(Described { name, n: values.len(), planes, code, base, scale });
    }

    /// Adds a column of numbers that are never negative, from the smallest on.
    pub(crate) fn add_plain(&mut self, name: &'static str, values: &[i64]) {
        let base = values.iter().copied().min().unwrap_or(0);
        self.add(name, Code::Plain, base, 1, values);
    }

    /// Adds offsets: in units of their common divisor, as differences where
    /// most steps are alike.
    pub(crate) fn add_steps(&mut self, name: &'static str, values: &[i64]) {
        let base = values.iter().copied().min().unwrap_or(0);
        let scale = values.iter().fold(0, |g, v| gcd(g, v - base)).max(1);
        let steps = || values.windows(2).map(|w| w[1] - w[0]);
        let alike = steps().zip(steps().skip(1)).filter(|(a, b)| a == b).count();
        let code = if alike * 2 > values.len() { Code::Delta } else { Code::Plain };
        self.add(name, code, base, scale, values);
    }

    /// The columns' descriptions and their contents as base64 of gzip.
    pub(crate) fn finish(self) -> (Vec<Described>, String) {
        (self.described, pack(&self.bytes))
    }
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `bytes` as base64 of gzip.
pub(crate) fn pack(bytes: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2 + 64), Compression::new(6));
    // Writing to a vector cannot fail.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(packed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read;

    /// The reader in Rust, as `trace.js` has it.
    pub(crate) fn unpack(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let packed = STANDARD.decode(text).unwrap();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn columns(described: &[Described], text: &str) -> Vec<Vec<i64>> {
        let bytes = unpack(text);
        let mut at = 0;
        let mut column = |d: &Described| {
            let (mut values, mut sum) = (Vec::new(), 0);
            for i in 0..d.n {
                let raw = (0..d.planes).map(|p| u64::from(bytes[at + p * d.n + i]) << (8 * p)).sum::<u64>();
                let signed = (raw >> 1) as i64 ^ -((raw & 1) as i64);
                let value = match d.code {
                    Code::Plain => raw as i64,
                    Code::Signed => signed,
                    Code::Delta => {
                        sum += signed;
                        sum
                    }
                };
                values.push(d.base + d.scale * value);
            }
            at += d.planes * d.n;
            values
        };
        described.iter().map(&mut column).collect()
    }

    #[test]
    fn columns_come_back_and_regular_ones_take_no_room() {
        let noise: Vec<i64> = (0..5000).map(|i: i64| 80_000 + i * 7919 % 65_521).collect();
        let offsets: Vec<i64> = (0..5000).map(|i| 1 << 40 | (i * 32768)).collect();
        let signed = vec![-3, 0, 1 << 45, -(1 << 45)];
        let mut blob = Blob::default();
        blob.add_plain("noise", &noise);
        blob.add_steps("offset", &offsets);
        blob.add("gap", Code::Signed, 0, 1, &signed);
        blob.add_plain("same", &[7; 100]);
        let (described, text) = blob.finish();
        assert_eq!(columns(&described, &text), [noise, offsets, signed, vec![7; 100]]);
        assert_eq!((described[1].scale, described[1].code, described[1].planes), (32768, Code::Delta, 1));
        assert_eq!(described[3].planes, 0);
        assert!(text.len() < 5000 * 3 + 500, "{} bytes", text.len());
    }
}
