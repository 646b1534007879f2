//! The one source of randomness: xoshiro256++ seeded through SplitMix64.
//!
//! Source: D. Blackman and S. Vigna, "Scrambled linear pseudorandom number
//! generators", ACM TOMS 47(4), 2021; SplitMix64: Steele, Lea and Flood,
//! OOPSLA 2014. Written here rather than taken from a crate because the
//! sequence is a contract: the same plan and seed give the same IOs bit for
//! bit, whatever the version of the tool.

/// A seeded pseudo-random generator. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// One step of SplitMix64: advances `state` and gives 64 mixed bits.
pub fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed for part `index` of something seeded with `seed`: distinct parts get
/// unrelated sequences.
pub fn derive_seed(seed: u64, index: u64) -> u64 {
    let mut state = seed ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03);
    splitmix64(&mut state);
    splitmix64(&mut state)
}

impl Rng {
    /// The generator for `seed`; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Rng {
        let mut s = seed;
        Rng { state: std::array::from_fn(|_| splitmix64(&mut s)) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`, by Lemire's multiplication. The bias is below
    /// `bound / 2^64`, which is nothing for any device's number of blocks.
    ///
    /// # Panics
    /// Where `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below 0 was asked for");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fills `bytes` with random, incompressible content.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference C code for the state {1, 2, 3, 4}.
    #[test]
    fn matches_the_reference_implementation() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(got, [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut rng = Rng::new(7);
        let mut seen = [false; 10];
        (0..1000).for_each(|_| seen[rng.below(10) as usize] = true);
        assert_eq!(seen, [true; 10]);
    }
}
