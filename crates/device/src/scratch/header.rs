//! The header by which a scratch file is known from inside.
//!
//! One block of 4096 bytes, all numbers little-endian:
//!
//! | offset | length | |
//! |---|---|---|
//! | 0 | 16 | `uflip-scratch\r\n\x1a` |
//! | 16 | 4 | version, 2 |
//! | 20 | 4 | 0 |
//! | 24 | 8 | key of the stamps ([`crate::stamp::Key`]) |
//! | 32 | 8 | bytes that are measured, without this block |
//! | 40 | 8 | when it was made, in seconds since 1970 |
//! | 48 | 4040 | 0 |
//! | 4088 | 8 | FNV-1a, 64 bits, of all before it |
//!
//! It is the last block of a finished file, behind the bytes that are measured,
//! so that no run touches it. While the file is made it is the first block,
//! written before anything else is, and the last one is written before the first
//! gets its content: from the first write on one of the two is whole.

use crate::fnv::fnv1a;
use crate::stamp::Key;

/// How long it is, in bytes.
pub(crate) const LENGTH: u64 = 4096;
const MAGIC: &[u8; 16] = b"uflip-scratch\r\n\x1a";
const VERSION: u32 = 2;
/// Where the checksum is.
const SUM: usize = LENGTH as usize - 8;

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub key: Key,
    /// Of what is measured, in bytes.
    pub size: u64,
    /// In seconds since 1970.
    pub created: u64,
}

impl Header {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut block = vec![0; LENGTH as usize];
        block[..16].copy_from_slice(MAGIC);
        block[16..20].copy_from_slice(&VERSION.to_le_bytes());
        let numbers = [self.key.0, self.size, self.created];
        for (place, number) in block[24..48].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = fnv1a(&block[..SUM]);
        block[SUM..].copy_from_slice(&sum.to_le_bytes());
        block
    }

    /// `None` where `block` is anything but what [`Header::encode`] gives.
    pub(crate) fn decode(block: &[u8]) -> Option<Header> {
        let number = |at: usize| Some(u64::from_le_bytes(*block.get(at..)?.first_chunk()?));
        let header = Header { key: Key(number(24)?), size: number(32)?, created: number(40)? };
        (header.encode() == block).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Header = Header { key: Key(0x0123_4567_89ab_cdef), size: 1 << 30, created: 1_800_000_000 };

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let block = ONE.encode();
        assert_eq!(Header::decode(&block), Some(ONE));
        assert_eq!(Header::decode(&block[..4095]), None);
        assert_eq!(Header::decode(&[0; 4096]), None);
        for at in (0..4096).filter(|at| *at < 64 || at % 61 == 0 || *at >= 4080) {
            for bit in [1, 0x80] {
                let mut flipped = block.clone();
                flipped[at] ^= bit;
                assert_eq!(Header::decode(&flipped), None, "byte {at}");
            }
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let block = ONE.encode();
        assert_eq!(&block[..24], b"uflip-scratch\r\n\x1a\x02\0\0\0\0\0\0\0");
        assert_eq!(block[24..32], [0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01]);
        assert_eq!(block[32..40], (1u64 << 30).to_le_bytes());
        assert_eq!(block[40..48], 1_800_000_000u64.to_le_bytes());
        assert!(block[48..SUM].iter().all(|byte| *byte == 0));
    }
}
