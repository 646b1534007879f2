//! How often each duration occurred, of any number of them, in bounded memory.
//!
//! Method: bins as of an HDR histogram (G. Tene): durations below 2,048 ns each
//! their own, above that 1,024 bins for each doubling, so that a bin is at most
//! 0.1 % wide. A bin has its count, its smallest and largest member, their sum and
//! the sum of their squares: means of whole bins are exact, and so is a gap
//! between two members that do not share a bin. A rank's value is the largest
//! of its bin: exact below 2,048 ns, else at most 0.1 % too high.
//!
//! Units: ns, or whatever whole number is counted. Limits: 40 bytes a bin up to
//! the largest that occurred: 1.3 MB for a second, 2.2 MB at the very most.

/// Values below this have a bin each.
const SINGLE: u64 = 2048;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    n: u64,
    min: u64,
    max: u64,
    sum: f64,
    squares: f64,
}

/// Counts by value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spectrum {
    bins: Vec<Bin>,
    n: u64,
}

/// Count, mean, and variance of a single value (n - 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summed {
    pub(crate) n: u64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// The widest gap, by ratio, between two neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gap {
    pub(crate) ratio: f64,
    /// The smallest value above it.
    pub(crate) above: u64,
}

fn place(value: u64) -> usize {
    if value < SINGLE {
        return value as usize;
    }
    let shift = 53 - value.leading_zeros() as usize;
    (shift << 10) + (value >> shift) as usize
}

impl Spectrum {
    pub(crate) fn push(&mut self, value: u64) {
        let at = place(value);
        if at >= self.bins.len() {
            self.bins.resize(at + 1, Bin::default());
        }
        let bin = &mut self.bins[at];
        if bin.n == 0 {
            (bin.min, bin.max) = (value, value);
        }
        (bin.min, bin.max) = (bin.min.min(value), bin.max.max(value));
        let as_float = value as f64;
        (bin.n, bin.sum, bin.squares) = (bin.n + 1, bin.sum + as_float, bin.squares + as_float * as_float);
        self.n += 1;
    }

    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    fn used(&self) -> impl Iterator<Item = &Bin> {
        self.bins.iter().filter(|bin| bin.n > 0)
    }

    /// The value of the 1-based `rank` in ascending order; None for nothing.
    pub(crate) fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        let found = self.used().find(|bin| {
            seen += bin.n;
            seen >= rank
        });
        found.or(self.used().last()).map(|bin| bin.max)
    }

    /// The widest gap among the members with ascending places `from` to `to` (from
    /// 0, `to` not included); the highest of several.
    pub(crate) fn widest_gap(&self, from: u64, to: u64) -> Option<Gap> {
        let (mut before, mut seen, mut widest) = (None::<u64>, 0, None::<Gap>);
        for bin in self.used() {
            if let Some(below) = before.filter(|_| from < seen && seen < to) {
                let ratio = bin.min as f64 / below.max(1) as f64;
                if widest.is_none_or(|w| ratio >= w.ratio) {
                    widest = Some(Gap { ratio, above: bin.min });
                }
            }
            (before, seen) = (Some(bin.max), seen + bin.n);
        }
        widest
    }

    /// All members.
    pub(crate) fn summed(&self) -> Option<Summed> {
        sum_up(self.used())
    }

    /// Members below `limit` and those from it on, where a bin begins there.
    pub(crate) fn split(&self, limit: u64) -> [Option<Summed>; 2] {
        let below = |bin: &&Bin| bin.min < limit;
        [sum_up(self.used().filter(below)), sum_up(self.used().filter(|bin| !below(bin)))]
    }
}

fn sum_up<'a>(bins: impl Iterator<Item = &'a Bin>) -> Option<Summed> {
    let (n, sum, squares) =
        bins.fold((0, 0.0, 0.0), |(n, sum, squares), b| (n + b.n, sum + b.sum, squares + b.squares));
    let mean = sum / n as f64;
    let about = (squares - sum * mean).max(0.0);
    (n > 0).then(|| Summed { n, mean, variance: if n > 1 { about / (n - 1) as f64 } else { 0.0 } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Spectrum {
        let mut spectrum = Spectrum::default();
        values.into_iter().for_each(|v| spectrum.push(v));
        spectrum
    }

    #[test]
    fn bins_follow_each_other_and_are_a_thousandth_wide() {
        let mut last = 0;
        for value in (0..5000).chain((13..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let at = place(value);
            assert!(at == last || at == last + 1 || value > 5000 && at > last, "{value}: {at} after {last}");
            last = at;
        }
        assert!(place(u64::MAX) < 56 << 10);
        for value in [2048u64, 123_456, 9_999_999_999] {
            assert!(place(value - value / 500) < place(value));
            assert!(place(value + value / 1000) > place(value));
        }
    }

    #[test]
    fn ranks_means_and_gaps_are_those_of_the_values() {
        let values: Vec<u64> =
            (0..1000).map(|i| 400_000 + i * 37).chain((0..50).map(|i| 9_000_000 + i)).collect();
        let spectrum = of(values.iter().copied());
        for rank in [1, 500, 1000, 1001, 1050] {
            let (got, want) = (spectrum.at_rank(rank).unwrap(), values[rank as usize - 1]);
            assert!(got >= want && got as f64 <= want as f64 * 1.001, "{got} {want}");
        }
        let gap = spectrum.widest_gap(0, 1050).unwrap();
        assert_eq!((gap.above, gap.ratio), (9_000_000, 9e6 / (400_000.0 + 999.0 * 37.0)));
        assert!(spectrum.widest_gap(0, 1000).unwrap().ratio < 1.01, "the gap is outside");
        let [low, high] = spectrum.split(gap.above).map(Option::unwrap);
        assert_eq!((low.n, high.n, high.mean), (1000, 50, 9_000_024.5));
        let exact =
            (0..1000).map(|i| (f64::from(i) * 37.0 - 999.0 * 37.0 / 2.0).powi(2)).sum::<f64>() / 999.0;
        assert!((low.variance / exact - 1.0).abs() < 1e-6, "{low:?} {exact}");
        assert_eq!((of([]).at_rank(1), of([]).summed(), of([5]).widest_gap(0, 1)), (None, None, None));
        assert_eq!(of([7]).summed(), Some(Summed { n: 1, mean: 7.0, variance: 0.0 }));
    }
}
