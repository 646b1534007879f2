//! Conversions from a description's decimal figures to whole nanoseconds,
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
