//! Units that cannot be confused: [`Nanos`] for time, [`Bytes`] for sizes and
//! offsets. Both parse from and print as the text a person types (`32K`,
//! `1.5ms`) and are stored as bare integers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A duration or a moment on a device's own clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A size or an offset in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A text that is not a time or a size, with what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}; type {instead}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    instead: &'static str,
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000_000))
    }

    /// As milliseconds, the unit of the papers' tables.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// As seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero where `other` is the later.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    /// The sum, held at the end of the type: a time of 584 years.
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Nanos {
        Nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(n: Nanos) -> std::time::Duration {
        std::time::Duration::from_nanos(n.0)
    }
}

impl fmt::Display for Nanos {
    /// The largest unit that keeps the figure at or above 1 (2 for minutes and
    /// hours), four significant digits at most: `350 ns`, `12.35 us`, `1.5 ms`,
    /// `100 s`, `17 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, f64); 6] =
            [("h", 3.6e12), ("min", 6e10), ("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
        let value = self.0 as f64;
        let least = |scale: f64| if scale > 1e9 { 2.0 * scale } else { scale };
        let (name, scale) = UNITS.iter().find(|(_, scale)| value >= least(*scale)).unwrap_or(&UNITS[5]);
        f.pad(&format!("{} {name}", trim_number(value / scale)))
    }
}

impl fmt::Display for Bytes {
    /// In the largest power of 1024 that gives a whole number, else with two
    /// decimals: `32K`, `1G`, `512B`, `1.5M`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
        let text = match UNITS.iter().find(|(_, scale)| self.0 >= *scale) {
            Some((name, scale)) => format!("{}{name}", trim_number(self.0 as f64 / *scale as f64)),
            None => format!("{}B", self.0),
        };
        f.pad(&text)
    }
}

impl Bytes {
    /// Text that parses back to exactly this value: the largest unit that
    /// divides it (`1536K`, never `1.5M`).
    pub fn exact(self) -> String {
        const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
        match UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale)) {
            Some((name, scale)) => format!("{}{name}", self.0 / scale),
            None => format!("{}B", self.0),
        }
    }
}

impl Nanos {
    /// Text that parses back to exactly this value: the largest unit that
    /// divides it (`1500us`, never `1.5ms`).
    pub fn exact(self) -> String {
        const UNITS: [(&str, u64); 5] = [
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
        ];
        match UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale)) {
            Some((name, scale)) => format!("{}{name}", self.0 / scale),
            None => format!("{}ns", self.0),
        }
    }
}

/// At most four significant digits and no trailing zeros.
fn trim_number(value: f64) -> String {
    let decimals = if value >= 1000.0 || value == 0.0 {
        0
    } else if value >= 100.0 {
        1
    } else if value >= 10.0 {
        2
    } else {
        3
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Splits `text` into a non-negative decimal number and its unit, and gives
/// the exact number of smallest units, or `None`.
fn parse_scaled(text: &str, scale_of: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = u128::from(scale_of(unit.trim())?);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 12 {
        return None;
    }
    let tens = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(scale)?;
    // A fraction of the smallest unit (0.3B) is refused, not rounded.
    (scaled % tens == 0).then(|| u64::try_from(scaled / tens).ok()).flatten()
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        let scale = |unit: &str| match unit.to_ascii_uppercase().as_str() {
            "" | "B" => Some(1),
            "K" | "KB" | "KIB" => Some(1 << 10),
            "M" | "MB" | "MIB" => Some(1 << 20),
            "G" | "GB" | "GIB" => Some(1 << 30),
            "T" | "TB" | "TIB" => Some(1 << 40),
            _ => None,
        };
        parse_scaled(text, scale).map(Bytes).ok_or_else(|| UnitError {
            text: text.to_string(),
            what: "size",
            instead: "a number with B, K, M, G or T (powers of 1024), such as 512B, 32K or 1G",
        })
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Nanos, UnitError> {
        let scale = |unit: &str| match unit {
            "ns" => Some(1),
            "us" | "µs" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            "m" | "min" => Some(60_000_000_000),
            "h" => Some(3_600_000_000_000),
            _ => None,
        };
        let zero = text.trim() == "0";
        parse_scaled(text, scale).map(Nanos).or(zero.then_some(Nanos::ZERO)).ok_or_else(|| UnitError {
            text: text.to_string(),
            what: "time",
            instead: "a number with ns, us, ms, s, m or h, such as 100us, 1.5ms or 30m",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_parse_as_powers_of_1024() {
        assert_eq!("32K".parse(), Ok(Bytes(32768)));
        assert_eq!("512".parse(), Ok(Bytes(512)));
        assert_eq!("1.5k".parse(), Ok(Bytes(1536)));
        assert_eq!("2GiB".parse(), Ok(Bytes(2 << 30)));
        for bad in ["", "K", "-1K", "1.2.3K", "32Q", "0.3B", "99999999999T", "1e3"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!("1.5ms".parse(), Ok(Nanos(1_500_000)));
        assert_eq!("30m".parse(), Ok(Nanos::from_secs(1800)));
        assert_eq!("0".parse(), Ok(Nanos::ZERO));
        assert!("15".parse::<Nanos>().is_err());
        assert!("1.5 weeks".parse::<Nanos>().is_err());
    }

    #[test]
    fn prints_as_a_person_would() {
        assert_eq!(Nanos(350).to_string(), "350 ns");
        assert_eq!(Nanos(12_345).to_string(), "12.35 us");
        assert_eq!(Nanos(1_500_000).to_string(), "1.5 ms");
        assert_eq!(Nanos::from_secs(100).to_string(), "100 s");
        assert_eq!(Nanos::from_secs(150).to_string(), "2.5 min");
        assert_eq!(Bytes(32768).to_string(), "32K");
        assert_eq!(Bytes(3 << 19).to_string(), "1.5M");
        assert_eq!(Bytes(0).to_string(), "0B");
    }

    proptest! {
        #[test]
        fn exact_text_parses_back(n in any::<u64>()) {
            prop_assert_eq!(Bytes(n).exact().parse::<Bytes>().unwrap(), Bytes(n));
            prop_assert_eq!(Nanos(n).exact().parse::<Nanos>().unwrap(), Nanos(n));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Nanos>();
        }
    }
}
