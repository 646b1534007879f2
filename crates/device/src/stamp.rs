//! The stamp in every sector this tool writes, by which it knows its own
//! writing again.
//!
//! Method: the first 16 bytes of each 512-byte sector are a nonce that no other
//! sector of the session carries and a tag that follows from nonce and key by a
//! mixing function (SplitMix64's, Steele, Lea and Flood, OOPSLA 2014). Both
//! look random, so that a stamped sector compresses no better than any other.
//! Anybody else's sector passes for stamped once in 2^64. Not a secret and no
//! signature: it tells our data from others', not friend from foe.
//!
//! On a block device the key is [`Key::DEVICE`]; a scratch file has a key of its
//! own, which its sidecar keeps, so that two scratch files are told apart.

/// Stamps are this far apart.
pub const SECTOR: usize = 512;
/// How long a stamp is.
const LENGTH: usize = 16;

/// What ties stamps to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

impl Key {
    /// Of everything written to block devices. Never to be changed: devices
    /// written by an older version would no longer be known as ours.
    pub const DEVICE: Key = Key(0x7566_6c69_7020_7631);

    #[inline]
    fn tag(self, nonce: u64) -> u64 {
        mix(nonce ^ mix(self.0))
    }

    /// Stamps every sector of `bytes`, counting nonces on from `first`; the same
    /// `first` gives the same stamps. A last part shorter than a stamp gets none.
    #[inline]
    pub fn stamp(self, bytes: &mut [u8], first: u64) {
        let keyed = mix(self.0);
        for (count, sector) in bytes.chunks_mut(SECTOR).enumerate() {
            if let Some(head) = sector.first_chunk_mut::<LENGTH>() {
                // A permutation of the count: unique as long as counts are.
                let nonce = mix(first.wrapping_add(count as u64));
                head[..8].copy_from_slice(&nonce.to_le_bytes());
                head[8..].copy_from_slice(&mix(nonce ^ keyed).to_le_bytes());
            }
        }
    }

    /// True where `sector` begins with a stamp of this key.
    pub fn is_on(self, sector: &[u8]) -> bool {
        let Some(head) = sector.first_chunk::<LENGTH>() else { return false };
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        word(8) == self.tag(word(0))
    }
}

/// SplitMix64's finaliser: a permutation of 64 bits.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_is_known_by_its_own_key_only() {
        let mut bytes = vec![0; 8 * SECTOR];
        Key(7).stamp(&mut bytes, 1000);
        assert!(bytes.chunks(SECTOR).all(|sector| Key(7).is_on(sector) && !Key(8).is_on(sector)));
    }

    #[test]
    fn zeros_ones_and_changed_stamps_are_not_ours() {
        for key in [Key::DEVICE, Key(0), Key(u64::MAX)] {
            assert!(!key.is_on(&[0; SECTOR]) && !key.is_on(&[0xff; SECTOR]) && !key.is_on(&[0; 8]));
            let mut bytes = [0; SECTOR];
            key.stamp(&mut bytes, 3);
            for bit in 0..LENGTH * 8 {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(!key.is_on(&flipped), "bit {bit}");
            }
        }
    }

    #[test]
    fn what_was_written_to_devices_stays_known() {
        let mut bytes = [0; 32];
        Key::DEVICE.stamp(&mut bytes, 0);
        let known: u128 = u128::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        assert_eq!(known, PINNED, "devices written by an older version would no longer be known as ours");
    }

    /// Computed apart from this code, from the head's description.
    const PINNED: u128 = 0x943655fd525f0d51e220a8397b1dcdaf;
}
