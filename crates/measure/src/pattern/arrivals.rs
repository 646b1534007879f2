//! The time function of an open loop: IOs at intended instants, whatever became of
//! those before.
//!
//! What: [`Rate`] is so many IOs a second of the whole pattern. With fixed gaps IO
//! number i is due at i / rate. With Poisson gaps the time from one IO to the next
//! is drawn from the exponential distribution with mean 1 / rate, from the run's
//! seed, the first gap from the start of the run.
//!
//! How several streams share a rate: a replicated pattern's is split evenly. With
//! fixed gaps stream p of n has the instants (p + i n) / rate, with Poisson gaps
//! each stream is a Poisson process of rate / n from its own seed, so that together
//! they are what one stream of that rate would be. Of patterns side by side each has
//! its own rate. A mix is one stream and has one.
//!
//! Method: fixed gaps add up exactly, with the remainder carried on, so that nothing
//! drifts. Exponential gaps come from J. von Neumann's comparison of uniform numbers
//! (Various techniques used in connection with random digits, 1951), which takes no
//! logarithm: the instants are the same bit for bit on every machine. They add up in
//! 1,024ths of a nanosecond; fio rounds each gap to a whole microsecond, which at
//! 100,000 a second is 5 % too fast (backend.c, `usec_for_io`).

use super::PatternError;
use std::fmt;
use std::str::FromStr;
use uflip_device::Nanos;
use uflip_device::rng::{Rng, derive_seed};

/// The part of a stream's seed that its arrivals draw from.
const SEED_PART: u64 = 0x6172_7269;
/// Fractions of a nanosecond in which exponential gaps add up, in bits.
const FRACTION_BITS: u32 = 10;
/// A thousandth of an IO a second has a gap of so many ns.
const THOUSANDTH_NS: u64 = 1_000_000_000_000;

/// IOs a second, in thousandths: from 0.001 to 1,000,000,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// What a rate looks like.
    pub const FORM: &str = "IOs a second from 0.001/s to 1000000000/s, such as 2000/s or 0.5/s";

    /// So many thousandths of an IO a second; `None` outside the range.
    pub const fn from_thousandths(thousandths: u64) -> Option<Rate> {
        if thousandths >= 1 && thousandths <= THOUSANDTH_NS { Some(Rate(thousandths)) } else { None }
    }

    /// The time in which so many IOs are due.
    pub fn time_of(self, ios: u64) -> Nanos {
        let ns = u128::from(ios) * u128::from(THOUSANDTH_NS) / u128::from(self.0);
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = PatternError;
    /// `2000`, `2000/s`, `0.5/s`.
    fn from_str(text: &str) -> Result<Rate, PatternError> {
        let wrong = || PatternError::Rate { found: text.trim().chars().take(40).collect() };
        let number = text.trim();
        let number = number.strip_suffix("/s").unwrap_or(number).trim();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 3 {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let part: u64 = format!("{part:0<3}").parse().map_err(|_| wrong())?;
        let thousandths = whole.checked_mul(1000).and_then(|whole| whole.checked_add(part));
        thousandths.and_then(Rate::from_thousandths).ok_or_else(wrong)
    }
}

impl fmt::Display for Rate {
    /// `2000/s`, `0.5/s`: exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        if part == 0 {
            return write!(f, "{whole}/s");
        }
        write!(f, "{whole}.{}/s", format!("{part:03}").trim_end_matches('0'))
    }
}

/// How the gaps between the arrivals of a rate are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gaps {
    /// All the same.
    #[default]
    Fixed,
    /// Exponential: a Poisson process.
    Poisson,
}

/// A stream's intended instants, one after another without end.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals(Spacing);

#[derive(Clone, Debug)]
enum Spacing {
    /// The next is due at `at_ns` and `over` parts of which `of` are a nanosecond; a
    /// gap is `gap_ns` and `rest` such parts.
    Fixed { at_ns: u64, over: u64, gap_ns: u64, rest: u64, of: u64 },
    /// Times in fractions of a nanosecond.
    Poisson { at: u64, mean: f64, rng: Box<Rng> },
}

impl Arrivals {
    /// The instants of stream `stream` of the `streams` that share `rate`; `seed` is
    /// the stream's own.
    pub(crate) fn new(rate: Rate, gaps: Gaps, stream: u64, streams: u64, seed: u64) -> Arrivals {
        let first = stream.saturating_mul(THOUSANDTH_NS);
        let gap = streams.saturating_mul(THOUSANDTH_NS);
        Arrivals(match gaps {
            Gaps::Fixed => Spacing::Fixed {
                at_ns: first / rate.0,
                over: first % rate.0,
                gap_ns: gap / rate.0,
                rest: gap % rate.0,
                of: rate.0,
            },
            Gaps::Poisson => Spacing::Poisson {
                at: 0,
                mean: gap as f64 / rate.0 as f64 * f64::from(1u32 << FRACTION_BITS),
                rng: Box::new(Rng::new(derive_seed(seed, SEED_PART))),
            },
        })
    }

    /// When the next IO is due, from the start of the run.
    #[inline]
    pub(crate) fn next_instant(&mut self) -> Nanos {
        match &mut self.0 {
            Spacing::Fixed { at_ns, over, gap_ns, rest, of } => {
                let now = *at_ns;
                *over += *rest;
                let carry = *over >= *of;
                *over -= if carry { *of } else { 0 };
                *at_ns = now.saturating_add(*gap_ns + u64::from(carry));
                Nanos(now)
            }
            Spacing::Poisson { at, mean, rng } => {
                *at = at.saturating_add((exponential(rng) * *mean) as u64);
                Nanos(*at >> FRACTION_BITS)
            }
        }
    }
}

/// A draw from the exponential distribution with mean 1, by comparisons alone: uniform
/// numbers are drawn while each is smaller than the one before; where the run of them is
/// of odd length, its first is the fraction, else another run is tried with 1 added.
#[inline]
fn exponential(rng: &mut Rng) -> f64 {
    let mut whole = 0.0;
    loop {
        let first = rng.next_u64();
        let (mut last, mut odd) = (first, true);
        loop {
            let next = rng.next_u64();
            if next >= last {
                break;
            }
            (last, odd) = (next, !odd);
        }
        if odd {
            return whole + (first >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        }
        whole += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn instants(rate: &str, gaps: Gaps, (stream, streams): (u64, u64), n: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(rate.parse().unwrap(), gaps, stream, streams, 7 + stream);
        (0..n).map(|_| arrivals.next_instant().0).collect()
    }

    #[test]
    fn fixed_gaps_do_not_drift() {
        assert_eq!(instants("3/s", Gaps::Fixed, (0, 1), 4), [0, 333_333_333, 666_666_666, 1_000_000_000]);
        assert_eq!(instants("0.5/s", Gaps::Fixed, (0, 1), 3), [0, 2_000_000_000, 4_000_000_000]);
        let all = instants("7/s", Gaps::Fixed, (0, 1), 7001);
        assert_eq!(all[7000], 1_000_000_000_000);
    }

    #[test]
    fn streams_share_a_rate_and_are_together_what_one_would_be() {
        let mut together: Vec<u64> =
            (0..3).flat_map(|p| instants("1000/s", Gaps::Fixed, (p, 3), 100)).collect();
        together.sort_unstable();
        assert_eq!(together, instants("1000/s", Gaps::Fixed, (0, 1), 300));
        let last = instants("1000/s", Gaps::Poisson, (1, 4), 20_000)[19_999] as f64;
        assert!((last / 80e9 - 1.0).abs() < 0.02, "a quarter of the rate: {last}");
    }

    #[test]
    fn exponential_gaps_have_their_mean_deviation_and_tail() {
        let n = 200_000;
        let mut rng = Rng::new(3);
        let draws: Vec<f64> = (0..n).map(|_| exponential(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors: 1 / sqrt(n) of the mean, sqrt(8 / n) of the variance.
        assert!((mean - 1.0).abs() < 0.0112, "{mean}");
        assert!((variance - 1.0).abs() < 0.0317, "{variance}");
        for above in [0.5, 1.0, 2.0, 4.0] {
            let share = draws.iter().filter(|x| **x > above).count() as f64 / f64::from(n);
            let p = (-above).exp();
            assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / f64::from(n)).sqrt(), "{above}: {share}");
        }
    }

    /// The sequence is a contract, as that of the random locations is.
    #[test]
    fn the_same_seed_gives_the_same_instants_everywhere() {
        assert_eq!(instants("1000000/s", Gaps::Poisson, (0, 1), 6), PINNED);
    }

    const PINNED: [u64; 6] = [0, 674, 843, 971, 2777, 5560];

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in
            ["", "0", "-1", "1e3", "0.0001", "1000000001", "1/m", "/s", "1.", ".5", "9".repeat(30).as_str()]
        {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_rate_is_printed_exactly(thousandths in 1..=THOUSANDTH_NS) {
            let rate = Rate::from_thousandths(thousandths).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }

        #[test]
        fn instants_never_go_back(thousandths in 1..=THOUSANDTH_NS, p in 0..4096u64, poisson in any::<bool>()) {
            let gaps = if poisson { Gaps::Poisson } else { Gaps::Fixed };
            let mut arrivals = Arrivals::new(Rate::from_thousandths(thousandths).unwrap(), gaps, p, 4096, p);
            let all: Vec<Nanos> = (0..300).map(|_| arrivals.next_instant()).collect();
            prop_assert!(all.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
