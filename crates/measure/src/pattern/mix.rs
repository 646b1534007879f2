//! Mixed patterns: the ratio, and how long a mix must run.
//!
//! How: a round of a mix is n IOs of pattern 1 and then one of pattern 2, or one
//! of pattern 1 and then n of pattern 2, over and over.
//!
//! Source: paper 000/001, section 3.2 and Table 1 (Mix); section 4.2 on mixes
//! whose rarer pattern never gets past its start-up phase; section 5.1:
//! "IOIgnore and IOCount are automatically scaled by the FlashIO tool when
//! considering mixed workloads".

use super::PatternError;

/// Ratio (#1/#2): n IOs of pattern 1 for one of pattern 2, or the other way
/// round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    first: u32,
    second: u32,
}

impl Ratio {
    /// `first` IOs of pattern 1 and `second` of pattern 2 in a round.
    ///
    /// # Errors
    /// [`PatternError`] unless both are at least 1 and one of them is 1.
    pub fn new(first: u32, second: u32) -> Result<Ratio, PatternError> {
        match (first, second) {
            (0, _) | (_, 0) => {
                Err(PatternError::Range { name: "Ratio", value: 0, min: 1, max: u64::from(u32::MAX) })
            }
            (1, _) | (_, 1) => Ok(Ratio { first, second }),
            _ => Err(PatternError::Ratio { first, second }),
        }
    }

    /// From one signed number: n is n IOs of pattern 1 for one of pattern 2,
    /// -n is n IOs of pattern 2 for one of pattern 1.
    ///
    /// # Errors
    /// [`PatternError::Range`] for 0 and for what does not fit 32 bits.
    pub fn from_value(value: i64) -> Result<Ratio, PatternError> {
        let n = value.unsigned_abs();
        super::in_range("Ratio", n, 1, u64::from(u32::MAX))?;
        if value > 0 { Ratio::new(n as u32, 1) } else { Ratio::new(1, n as u32) }
    }

    /// IOs of pattern 1 in a round.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// IOs of pattern 2 in a round.
    pub const fn second(self) -> u32 {
        self.second
    }

    /// IOs in a round.
    pub const fn round(self) -> u64 {
        self.first as u64 + self.second as u64
    }

    /// How many of the first `ios` IOs of the mix belong to pattern 1 and to
    /// pattern 2.
    pub fn split(self, ios: u64) -> (u64, u64) {
        let first = u64::from(self.first);
        let of_first = ios / self.round() * first + (ios % self.round()).min(first);
        (of_first, ios - of_first)
    }
}

/// The rarer pattern's IOs in the running phase, at least.
pub const MIN_RARE: u64 = 32;

/// IOCount and IOIgnore of a mix, from those of its two patterns.
///
/// IOIgnore is the shortest beginning of the mix that holds IOIgnore IOs of
/// pattern 1 and IOIgnore IOs of pattern 2, so both are past their start-up.
/// The running phase is as long as the longer one of the two patterns and has
/// at least `min_rare` IOs of the rarer pattern (default [`MIN_RARE`]).
///
/// FlashIO's rule is the same in spirit, `Ignore = max(I2 + (I2 - 1) r + 1,
/// I1 (r + 1) / r + 1)` and `Count = max(C1 - I1, C2 - I2) + Ignore`. It ignores
/// at least one IO even with no start-up, and a large ratio leaves it a
/// handful of IOs of the rarer pattern, which `min_rare` prevents.
pub fn mix_counts(first: (u64, u64), second: (u64, u64), ratio: Ratio, min_rare: u64) -> (u64, u64) {
    let (n1, n2) = (u64::from(ratio.first), u64::from(ratio.second));
    // The length of the mix that ends with IO number `ios` of a pattern which has
    // `each` IOs a round, after `before` IOs of the other.
    let reach = |ios: u64, each: u64, before: u64| match ios.checked_sub(1) {
        None => 0,
        Some(last) => (last / each).saturating_mul(ratio.round()).saturating_add(before + last % each + 1),
    };
    let ignore = reach(first.1, n1, 0).max(reach(second.1, n2, n1));
    let running = first.0.saturating_sub(first.1).max(second.0.saturating_sub(second.1));
    let running = running.max(min_rare.saturating_mul(ratio.round()));
    (running.saturating_add(ignore), ignore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ratio_has_a_one() {
        assert_eq!(Ratio::from_value(4).map(|r| (r.first(), r.second())), Ok((4, 1)));
        assert_eq!(Ratio::from_value(-4).map(|r| (r.first(), r.second())), Ok((1, 4)));
        assert_eq!(Ratio::from_value(1), Ratio::from_value(-1));
        assert!(Ratio::from_value(0).is_err());
        assert_eq!(Ratio::new(2, 3), Err(PatternError::Ratio { first: 2, second: 3 }));
    }

    /// The paper's example: start-up of 128 random writes, 4 reads to a write.
    #[test]
    fn the_rarer_pattern_gets_past_its_start_up() {
        let ratio = Ratio::new(4, 1).unwrap();
        let (count, ignore) = mix_counts((1024, 0), (5120, 128), ratio, MIN_RARE);
        assert_eq!(ignore, 128 * 5);
        assert_eq!(count, 640 + 4992);
        assert_eq!(mix_counts((512, 0), (512, 0), Ratio::new(64, 1).unwrap(), MIN_RARE), (32 * 65, 0));
        assert_eq!(mix_counts((512, 3), (512, 0), Ratio::new(2, 1).unwrap(), 1), (512 + 4, 4));
    }

    proptest! {
        #[test]
        fn ignores_just_enough(i1 in 0u64..300, i2 in 0u64..300, n in 1i64..70, flip in any::<bool>(),
                               c1 in 0u64..900, c2 in 0u64..900) {
            let ratio = Ratio::from_value(if flip { -n } else { n }).unwrap();
            let (count, ignore) = mix_counts((c1, i1), (c2, i2), ratio, 8);
            let (a, b) = ratio.split(ignore);
            prop_assert!(a >= i1 && b >= i2);
            if ignore > 0 {
                let (a, b) = ratio.split(ignore - 1);
                prop_assert!(a < i1 || b < i2);
            }
            let (a_all, b_all) = ratio.split(count);
            prop_assert!(a_all - a.min(a_all) >= 7 && b_all - b.min(b_all) >= 7);
        }
    }
}
