//! Permutations of `0..n` that need no memory in proportion to `n`: random
//! addresses without repetition on a device of any size.
//!
//! How: an alternating Feistel network, keyed by seed and pass, permutes the
//! `2^bits` numbers of the smallest power of two that is at least `n`; numbers
//! from `n` on are passed over. As a whole pass is enumerated this costs the same
//! as cycle-walking, fewer than two evaluations for each address, and lets
//! several be computed side by side without a branch. After a pass the network
//! gets a new key.
//!
//! Source: M. Luby and C. Rackoff, "How to construct pseudorandom permutations
//! from pseudorandom functions", SIAM J. Computing 17(2), 1988 (four rounds);
//! J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA
//! 2002 (numbers outside the domain).

use uflip_device::rng::{derive_seed, splitmix64};

/// Numbers computed at a time.
const BATCH: u64 = 16;

/// An endless sequence of permutations of `0..n`, one after the other.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    seed: u64,
    pass: u64,
    keys: [u64; 4],
    /// The low half has `low_bits` bits, the high half `high_mask`'s.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    /// The next number to be permuted, and one past the last.
    input: u64,
    domain: u64,
    ready: [u64; BATCH as usize],
    ready_from: usize,
    ready_to: usize,
}

impl Permutation {
    /// The permutations of `0..n` for `seed`. `n` is held between 1 and 2^62.
    pub fn new(n: u64, seed: u64) -> Permutation {
        let n = n.clamp(1, 1 << 62);
        let bits = n.next_power_of_two().trailing_zeros().max(4);
        let low_bits = bits / 2;
        let mut permutation = Permutation {
            n,
            seed,
            pass: 0,
            keys: [0; 4],
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            input: 0,
            domain: 1 << bits,
            ready: [0; BATCH as usize],
            ready_from: 0,
            ready_to: 0,
        };
        permutation.set_keys();
        permutation
    }

    fn set_keys(&mut self) {
        let mut state = derive_seed(self.seed, self.pass);
        self.keys = std::array::from_fn(|_| splitmix64(&mut state));
    }

    /// The network: a bijection on the numbers below `domain`, as each round
    /// changes one half by a function of the other.
    #[inline(always)]
    fn permute(&self, x: u64) -> u64 {
        let mix = |half: u64, key: u64| ((half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32;
        let (mut low, mut high) = (x & self.low_mask, x >> self.low_bits);
        high ^= mix(low, self.keys[0]) & self.high_mask;
        low ^= mix(high, self.keys[1]) & self.low_mask;
        high ^= mix(low, self.keys[2]) & self.high_mask;
        low ^= mix(high, self.keys[3]) & self.low_mask;
        high << self.low_bits | low
    }

    /// Computes the next batch; it may turn out empty.
    fn refill(&mut self) {
        if self.input == self.domain {
            self.input = 0;
            self.pass += 1;
            self.set_keys();
        }
        let mut count = 0;
        // The domain is a power of two of at least BATCH, so batches fit.
        for x in self.input..self.input + BATCH {
            let y = self.permute(x);
            self.ready[count & (BATCH as usize - 1)] = y;
            count += usize::from(y < self.n);
        }
        self.input += BATCH;
        (self.ready_from, self.ready_to) = (0, count);
    }

    /// The next number; after `n` of them all were given and a new
    /// permutation begins.
    #[inline]
    pub fn next_slot(&mut self) -> u64 {
        while self.ready_from == self.ready_to {
            self.refill();
        }
        let slot = self.ready[self.ready_from];
        self.ready_from += 1;
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pass(permutation: &mut Permutation, n: u64) -> Vec<u64> {
        (0..n).map(|_| permutation.next_slot()).collect()
    }

    proptest! {
        #[test]
        fn every_pass_is_a_bijection(n in 1u64..5000, seed in any::<u64>()) {
            let mut permutation = Permutation::new(n, seed);
            for _ in 0..3 {
                let mut all = pass(&mut permutation, n);
                all.sort_unstable();
                prop_assert!(all.into_iter().eq(0..n));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_address_comes_twice_on_the_largest_devices(n in (1u64 << 20)..(1 << 62), seed in any::<u64>()) {
            let mut permutation = Permutation::new(n, seed);
            let mut all = pass(&mut permutation, 5000);
            all.sort_unstable();
            prop_assert!(all.windows(2).all(|w| w[0] < w[1]) && all[4999] < n);
        }
    }

    #[test]
    fn passes_and_seeds_differ() {
        let mut one = Permutation::new(1000, 1);
        let (first, second) = (pass(&mut one, 1000), pass(&mut one, 1000));
        assert_ne!(first, second);
        assert_ne!(first, pass(&mut Permutation::new(1000, 2), 1000));
        assert_eq!(first, pass(&mut Permutation::new(1000, 1), 1000));
    }

    /// Neighbours in the sequence are as far apart as of random numbers: a
    /// third of the range on average.
    #[test]
    fn looks_random() {
        for n in [1 << 10, 3000, 1 << 16, 100_000] {
            let all = pass(&mut Permutation::new(n, 5), n);
            let sum: u64 = all.windows(2).map(|w| w[0].abs_diff(w[1])).sum();
            let mean = sum as f64 / (n - 1) as f64 / n as f64;
            assert!((0.31..0.36).contains(&mean), "{n}: {mean}");
        }
    }
}
