//! A short hash of some bytes: FNV-1a of 64 bits.
//!
//! Source: Fowler, Noll and Vo, RFC 9923. Limits: against accidents only; whoever
//! wants two texts of one hash finds them.

/// FNV-1a of `bytes`.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!((fnv1a(b""), fnv1a(b"foobar")), (0xcbf2_9ce4_8422_2325, 0x8594_4171_f739_67e8));
    }
}
