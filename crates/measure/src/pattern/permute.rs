//! Permutations of `0..n` that need no memory in proportion to `n`: random
//! addresses without repetition on a device of any size.
//!
//! How: an alternating Feistel network, keyed by seed and pass, permutes the
//! numbers of a rectangle of `rows` by `2^column_bits`, about a square, with less
//! than a row more than `n`. A round changes the column by an exclusive or, or the
//! row by an addition modulo `rows`, so that no power of two is needed. Numbers
//! from `n` on are passed over; as a whole pass is enumerated this costs the same
//! as cycle-walking, less than `1 + 1/(rows - 1)` evaluations for each address, and
//! lets a batch be computed side by side without a branch. A batch lies in one
//! row, so that the first of the five rounds is computed once for all of it. After
//! a pass the network gets new keys. Up to [`SMALL`] numbers are shuffled instead,
//! many passes at once.
//!
//! Source: M. Luby and C. Rackoff, "How to construct pseudorandom permutations
//! from pseudorandom functions", SIAM J. Computing 17(2), 1988 (four rounds);
//! J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA
//! 2002 (rounds that add modulo a number; numbers outside the domain); D. Lemire,
//! "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019 (a
//! hash brought below `rows` by a multiplication); D. Knuth, TAOCP 2, section
//! 3.4.2 (the shuffle).

use uflip_device::rng::{Rng, derive_seed, splitmix64};

/// Numbers computed at a time; a row has a multiple of it.
const BATCH: usize = 16;
/// Up to so many numbers are shuffled in the buffer.
const SMALL: usize = 512;
/// Rounds on the column, on the row, and so on in turn.
const ROUNDS: usize = 5;

/// What a round hashes with.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    flip: u64,
    factor: u64,
}

impl Key {
    /// The lower 32 bits are well mixed: the halves of a product, one on the other.
    #[inline(always)]
    fn hash(self, half: u64) -> u64 {
        let product = (half ^ self.flip).wrapping_mul(self.factor);
        product ^ product >> 32
    }
}

/// The network, a bijection on the numbers below `rows << column_bits`.
#[derive(Clone, Debug)]
struct Network {
    keys: [Key; ROUNDS],
    column_bits: u32,
    /// Up to 2^31.
    rows: u64,
}

impl Network {
    /// The smallest for `n` numbers, `n` up to 2^62, as yet without keys.
    fn new(n: u64) -> Network {
        let column_bits = (n.ilog2() / 2).max(BATCH.ilog2());
        Network { keys: [Key::default(); ROUNDS], column_bits, rows: n.div_ceil(1 << column_bits) }
    }

    fn size(&self) -> u64 {
        self.rows << self.column_bits
    }

    fn set_keys(&mut self, seed: u64) {
        let mut state = seed;
        let mut next = || splitmix64(&mut state);
        self.keys = std::array::from_fn(|_| Key { flip: next(), factor: next() | 1 });
    }

    /// What a round adds to the row, given the column; below `rows`.
    #[inline(always)]
    fn row_step(&self, round: usize, column: u64) -> u64 {
        ((self.keys[round].hash(column) & 0xffff_ffff) * self.rows) >> 32
    }

    /// What a round flips in the column, given the row.
    #[inline(always)]
    fn column_flip(&self, round: usize, row: u64) -> u64 {
        self.keys[round].hash(row) & ((1 << self.column_bits) - 1)
    }

    /// Where number `first + step` goes, for a `first` that is a multiple of
    /// [`BATCH`] and a smaller `step`.
    #[inline(always)]
    fn permute(&self, first: u64, step: u64) -> u64 {
        let mut row = first >> self.column_bits;
        let mut column = first & ((1 << self.column_bits) - 1);
        column = (column ^ self.column_flip(0, row)) ^ step;
        for round in [1, 3] {
            row += self.row_step(round, column);
            // Modulo `rows`: what wrapped around below 0 is the larger one.
            row = row.min(row.wrapping_sub(self.rows));
            column ^= self.column_flip(round + 1, row);
        }
        row << self.column_bits | column
    }
}

/// An endless sequence of permutations of `0..n`, one after the other.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    seed: u64,
    /// How often the keys, or the shuffle's generator, were set before.
    pass: u64,
    network: Network,
    /// The next number to be permuted.
    input: u64,
    ready: Box<[u64; SMALL]>,
    ready_from: usize,
    ready_to: usize,
}

impl Permutation {
    /// The permutations of `0..n` for `seed`. `n` is held between 1 and 2^62.
    pub fn new(n: u64, seed: u64) -> Permutation {
        let n = n.clamp(1, 1 << 62);
        let mut network = Network::new(n);
        network.set_keys(derive_seed(seed, 0));
        let ready = Box::new([0; SMALL]);
        Permutation { n, seed, pass: 0, network, input: 0, ready, ready_from: 0, ready_to: 0 }
    }

    /// Shuffles as many passes of a small `n` as fit into the buffer.
    fn shuffle(&mut self, n: usize) {
        let mut rng = Rng::new(derive_seed(self.seed, self.pass));
        self.pass += 1;
        for pass in self.ready.chunks_exact_mut(n) {
            for next in 0..n {
                let other = rng.below(next as u64 + 1) as usize;
                pass[next] = pass[other];
                pass[other] = next as u64;
            }
        }
        (self.ready_from, self.ready_to) = (0, SMALL - SMALL % n);
    }

    /// Computes the next batch; it may turn out empty.
    fn refill(&mut self) {
        if self.n <= SMALL as u64 {
            return self.shuffle(self.n as usize);
        }
        if self.input == self.network.size() {
            self.input = 0;
            self.pass += 1;
            self.network.set_keys(derive_seed(self.seed, self.pass));
        }
        let mut count = 0;
        for step in 0..BATCH as u64 {
            let slot = self.network.permute(self.input, step);
            self.ready[count & (BATCH - 1)] = slot;
            count += usize::from(slot < self.n);
        }
        self.input += BATCH as u64;
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

    fn is_permutation(mut all: Vec<u64>, n: u64) -> bool {
        all.sort_unstable();
        all.into_iter().eq(0..n)
    }

    /// Whole passes and shuffles, the change from one to the other, and the
    /// change of the number of columns at 1,024.
    #[test]
    fn every_small_number_has_three_bijections() {
        for n in 1..1500 {
            let mut permutation = Permutation::new(n, 3);
            (0..3).for_each(|_| assert!(is_permutation(pass(&mut permutation, n), n), "{n}"));
        }
    }

    /// The rounds of the network backwards.
    fn inverse(network: &Network, y: u64) -> u64 {
        let mask = (1 << network.column_bits) - 1;
        let (mut row, mut column) = (y >> network.column_bits, y & mask);
        for round in [3, 1] {
            column ^= network.column_flip(round + 1, row);
            row = (row + network.rows - network.row_step(round, column)) % network.rows;
        }
        row << network.column_bits | (column ^ network.column_flip(0, row))
    }

    fn keyed(n: u64, seed: u64) -> Network {
        let mut network = Network::new(n);
        network.set_keys(seed);
        network
    }

    proptest! {
        #[test]
        fn every_pass_is_a_bijection(n in 1u64..20_000, seed in any::<u64>()) {
            let mut permutation = Permutation::new(n, seed);
            for _ in 0..2 {
                prop_assert!(is_permutation(pass(&mut permutation, n), n));
            }
        }

        /// There and back: what has an inverse on a finite set is a bijection.
        #[test]
        fn the_network_has_an_inverse_at_any_size(
            bits in 9u32..62,
            low in any::<u64>(),
            seed in any::<u64>(),
            at in any::<u64>(),
        ) {
            let n = (1 << bits) + low % (1 << bits);
            let network = keyed(n, seed);
            prop_assert!((n..n + (1 << network.column_bits)).contains(&network.size()));
            let x = at % network.size();
            let step = x % BATCH as u64;
            let y = network.permute(x - step, step);
            prop_assert!(y < network.size());
            prop_assert_eq!(inverse(&network, y), x);
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

    /// Cycle-walking over a power of two evaluates up to two numbers for one.
    #[test]
    fn hardly_any_number_is_passed_over() {
        for n in (9..62).flat_map(|bits| [(1u64 << bits) + 1, 3 << (bits - 1)]) {
            let over = Network::new(n).size() as f64 / n as f64;
            let bound = 1.0 + 2.0 / (n as f64).sqrt();
            assert!(over < bound, "{n}: {over} evaluations for each address");
        }
    }

    #[test]
    fn passes_and_seeds_differ() {
        for n in [100, 1000] {
            let mut one = Permutation::new(n, 1);
            let (first, second) = (pass(&mut one, n), pass(&mut one, n));
            assert_ne!(first, second);
            assert_ne!(first, pass(&mut Permutation::new(n, 2), n));
            assert_eq!(first, pass(&mut Permutation::new(n, 1), n));
        }
    }

    /// Neighbours in the sequence are as far apart as of random numbers: a
    /// third of the range on average.
    #[test]
    fn looks_random() {
        for n in [300, 1 << 10, 3000, 1 << 16, 100_000] {
            let all = pass(&mut Permutation::new(n, 5), n);
            let sum: u64 = all.windows(2).map(|w| w[0].abs_diff(w[1])).sum();
            let mean = sum as f64 / (n - 1) as f64 / n as f64;
            assert!((0.31..0.36).contains(&mean), "{n}: {mean}");
        }
    }

    /// How many standard deviations Pearson's chi square lies above its mean.
    fn chi_square(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let sum: f64 = counts.iter().map(|c| (*c as f64 - expected).powi(2) / expected).sum();
        let freedom = (counts.len() - 1) as f64;
        (sum - freedom) / (2.0 * freedom).sqrt()
    }

    /// Addresses some way apart in the sequence, among them a row and several, are
    /// independent: in their difference, their lowest bits and their place. A
    /// network of four rounds with a simpler hash is at thousands of deviations.
    #[test]
    fn addresses_do_not_tell_later_ones() {
        for (n, seed) in [(1 << 20, 1), ((1 << 22) + 1, 2), (3 << 22, 3), ((1 << 31) + 1, 4), (1 << 40, 5)] {
            let all = pass(&mut Permutation::new(n, seed), 1 << 16);
            let part = |x: u64, parts: u64| (u128::from(x) * u128::from(parts) / u128::from(n)) as usize;
            for lag in (1..=17).chain((5..15).map(|bits| 1 << bits)) {
                let (mut apart, mut bits, mut places) = ([0; 64], [0; 64], [0; 256]);
                for (a, b) in all.iter().zip(&all[lag..]) {
                    apart[part((b + n - a) % n, 64)] += 1;
                    bits[((a ^ b) % 64) as usize] += 1;
                    places[part(*a, 16) * 16 + part(*b, 16)] += 1;
                }
                let worst = [&apart[..], &bits, &places].map(chi_square).into_iter().fold(f64::MIN, f64::max);
                assert!(worst < 6.0, "{n}, {lag} apart: {worst} standard deviations");
            }
        }
    }
}
