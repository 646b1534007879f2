//! Exact division by a fixed number, and conversions from a description's decimal figures to whole nanoseconds,
//! done once when a device is opened so that records are the same everywhere.

/// Microseconds to whole nanoseconds.
pub(crate) fn us_ns(us: f64) -> u64 {
    (us * 1e3).round() as u64
}

/// Milliseconds to whole nanoseconds.
pub(crate) fn ms_ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// Time of one byte at `mb_s` (10^6 bytes a second) in 2^-20 ns.
pub(crate) fn byte_ns_q20(mb_s: f64) -> u64 {
    (1e3 / mb_s * f64::from(1 << 20)).round() as u64
}

/// Time of `bytes` at a rate given by [`byte_ns_q20`].
#[inline]
pub(crate) fn transfer_ns(bytes: u64, byte_q20: u64) -> u64 {
    (bytes * byte_q20) >> 20
}

/// A fixed divisor of 32-bit numbers: one multiplication instead of a division.
///
/// With m = floor(2^64 / d) + 1, the high word of n * m is n / d for every
/// n and d below 2^32 (Lemire, Kaser and Kurz, "Faster remainder by direct
/// computation", Software: Practice and Experience 49(6), 2019).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    divisor: u32,
    /// 0 where the divisor is 1, whose multiplier does not fit.
    multiplier: u64,
}

impl Divisor {
    /// For division by `divisor`, which is not zero.
    pub(crate) fn new(divisor: u32) -> Divisor {
        let multiplier = if divisor == 1 { 0 } else { u64::MAX / u64::from(divisor) + 1 };
        Divisor { divisor, multiplier }
    }

    /// Quotient and remainder.
    #[inline]
    pub(crate) fn split(self, n: u32) -> (u32, u32) {
        if self.multiplier == 0 {
            return (n, 0);
        }
        let quotient = ((u128::from(self.multiplier) * u128::from(n)) >> 64) as u32;
        (quotient, n - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn splits_like_division(n: u32, d in 1u32.., small in 1u32..300) {
            for d in [d, small] {
                prop_assert_eq!(Divisor::new(d).split(n), (n / d, n % d));
            }
        }
    }
}
