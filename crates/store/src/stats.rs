//! The statistics of a run, from its records, in bounded memory.
//!
//! Method: count, sum and sum of squares are integers of 128 bits, so mean and
//! standard deviation are exact to the last rounding however long the run.
//! Percentiles are by nearest rank: the smallest response time that at least
//! p % of the IOs do not exceed. They are exact up to [`EXACT_IOS`] IOs; beyond
//! that they come from an HDR histogram of three significant digits and are at
//! most 0.1 % too high.
//!
//! Flushes and trims are measured for themselves and never part of the mean of the
//! reads or writes beside them: every set of IOs is told of its reads and writes, or of
//! all its IOs where it has neither. In an open loop a response time counts from the
//! IO's intended instant.
//!
//! Source: paper 000/001, section 3.2 (min, max, mean, standard deviation over
//! the running phase); G. Tene, HdrHistogram.

use hdrhistogram::Histogram;
use uflip_device::{IoRecord, Mode};
use uflip_measure::run::{LATE_FROM, LateStats, ModeStats, RtStats, RunStats};

/// Runs of up to this many IOs have exact percentiles.
pub const EXACT_IOS: usize = 1 << 20;

/// The percentiles of [`RtStats`] in hundredths of a percent.
const PERCENTILES: [u64; 6] = [5000, 9000, 9500, 9900, 9990, 9999];

/// A sample is the response time above seven bits: mode, running phase, pattern.
const PATTERN: u64 = 15;
const RUNNING: u64 = 16;
const MODE_SHIFT: u32 = 5;
const TAG_BITS: u32 = 7;
const MODES: [Mode; 4] = [Mode::Read, Mode::Write, Mode::Flush, Mode::Trim];

/// Count, extremes and power sums of response times in nanoseconds.
#[derive(Clone, Debug)]
struct Moments {
    n: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    const NONE: Moments = Moments { n: 0, min: u64::MAX, max: 0, sum: 0, squares: 0 };

    fn add(&mut self, ns: u64) {
        self.n += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
    }

    fn join(&mut self, other: &Moments) {
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Sample standard deviation: squares about the whole part of the mean are
    /// exact integers, so nothing cancels.
    fn sd(&self) -> Option<f64> {
        (self.n >= 2).then(|| {
            let n = u128::from(self.n);
            let (whole, rest) = (self.sum / n, self.sum % n);
            let about_whole = self.squares + n * whole * whole - 2 * whole * self.sum;
            let about_mean = about_whole as f64 - (rest as f64) * (rest as f64) / n as f64;
            (about_mean.max(0.0) / (n - 1) as f64).sqrt()
        })
    }

    fn with(&self, percentiles: [Option<u64>; 6]) -> RtStats {
        let some = |value| (self.n > 0).then_some(value);
        let [p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, p9999_ns] = percentiles;
        RtStats {
            n: self.n,
            min_ns: some(self.min),
            max_ns: some(self.max),
            mean_ns: (self.n > 0).then(|| self.sum as f64 / self.n as f64),
            sd_ns: self.sd(),
            p50_ns,
            p90_ns,
            p95_ns,
            p99_ns,
            p999_ns,
            p9999_ns,
        }
    }
}

/// The 1-based nearest rank of each percentile among `n` values.
fn ranks(n: u64) -> [u64; 6] {
    PERCENTILES.map(|p| ((u128::from(n) * u128::from(p)).div_ceil(10_000) as u64).max(1))
}

/// Values at the nearest ranks, of `(value, how many)` in ascending order.
fn at_ranks(n: u64, ascending: impl Iterator<Item = (u64, u64)>) -> [Option<u64>; 6] {
    let mut found = [None; 6];
    if n == 0 {
        return found;
    }
    let (ranks, mut next, mut seen) = (ranks(n), 0, 0);
    for (value, count) in ascending {
        seen += count;
        while next < 6 && ranks[next] <= seen {
            found[next] = Some(value);
            next += 1;
        }
        if next == 6 {
            break;
        }
    }
    found
}

/// Exact statistics of response times in nanoseconds, in any order; sorts them.
pub fn summarise(responses_ns: &mut [u64]) -> RtStats {
    responses_ns.sort_unstable();
    let mut moments = Moments::NONE;
    responses_ns.iter().for_each(|ns| moments.add(*ns));
    moments.with(at_ranks(moments.n, responses_ns.iter().map(|ns| (*ns, 1))))
}

/// IOs of one mode in one of the sets that statistics are kept of.
struct Set {
    moments: Moments,
    histogram: Option<Histogram<u64>>,
}

/// A set of IOs by mode.
type ByMode = [Set; 4];

/// Takes a run's records in any interleaving of its streams and gives its
/// [`RunStats`]. Holds at most 8 MiB of samples and 0.3 MiB a set and mode.
pub struct StatsBuilder {
    io_ignore: u64,
    patterns: usize,
    together: bool,
    seen: Vec<u64>,
    samples: Vec<u64>,
    long: bool,
    all: ByMode,
    running: ByMode,
    by_pattern: Vec<ByMode>,
    late: Moments,
    late_ios: u64,
}

impl Set {
    const fn new() -> Set {
        Set { moments: Moments::NONE, histogram: None }
    }

    fn count(&mut self, ns: u64) {
        let histogram = self.histogram.get_or_insert_with(|| {
            let bounds = Histogram::new_with_bounds(1, IoRecord::MAX_RESPONSE.0, 3);
            bounds.expect("1 to 2^40 at three digits is a histogram")
        });
        histogram.saturating_record(ns);
    }
}

/// Those of a set that its figures are of: reads and writes where there are any.
fn told(set: &ByMode, together: bool) -> [bool; 4] {
    let data = [true, true, false, false];
    let has_data = set[0].moments.n + set[1].moments.n > 0;
    if has_data && !together { data } else { [true; 4] }
}

/// The figures of the modes `of` a set; `exact` are its response times in ascending
/// order where no histogram has them.
fn figures(set: &ByMode, of: [bool; 4], exact: impl Iterator<Item = u64>) -> RtStats {
    let (mut moments, mut histogram) = (Moments::NONE, None::<Histogram<u64>>);
    for (part, _) in set.iter().zip(of).filter(|(_, of)| *of) {
        moments.join(&part.moments);
        match (&mut histogram, &part.histogram) {
            (Some(all), Some(more)) => all.add(more).expect("both have the same bounds"),
            (None, more) => histogram.clone_from(more),
            (Some(_), None) => {}
        }
    }
    let percentiles = match &histogram {
        None => at_ranks(moments.n, exact.map(|ns| (ns, 1))),
        Some(h) => {
            let counts = h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_since_last_iteration()));
            at_ranks(moments.n, counts).map(|p| p.map(|ns| ns.clamp(moments.min, moments.max)))
        }
    };
    moments.with(percentiles)
}

impl StatsBuilder {
    /// Gets ready: the first `io_ignore` IOs of each stream are start-up;
    /// `patterns` is 2 for a mix, whose patterns are also told apart.
    pub fn new(io_ignore: u64, patterns: usize) -> StatsBuilder {
        let by_mode = || -> ByMode { std::array::from_fn(|_| Set::new()) };
        let patterns = patterns.clamp(1, 16);
        StatsBuilder {
            io_ignore,
            patterns,
            together: false,
            seen: Vec::new(),
            samples: Vec::new(),
            long: false,
            all: by_mode(),
            running: by_mode(),
            by_pattern: (0..patterns).map(|_| by_mode()).collect(),
            late: Moments::NONE,
            late_ios: 0,
        }
    }

    /// As versions before flushes and trims were told apart summed a run up.
    pub(crate) fn with_all_modes_together(self) -> StatsBuilder {
        StatsBuilder { together: true, ..self }
    }

    /// Adds records; those of one stream must come in the order of completion.
    pub fn push(&mut self, records: &[IoRecord]) {
        for record in records {
            let (ns, stream) = (record.response().0, usize::from(record.stream()));
            if stream >= self.seen.len() {
                self.seen.resize(stream + 1, 0);
            }
            let running = self.seen[stream] >= self.io_ignore;
            self.seen[stream] += 1;
            let (mode, pattern) = (record.mode() as usize, usize::from(record.pattern()));
            while pattern >= self.by_pattern.len() {
                self.by_pattern.push(std::array::from_fn(|_| Set::new()));
                self.patterns = self.by_pattern.len();
            }
            self.all[mode].moments.add(ns);
            if running {
                self.running[mode].moments.add(ns);
                self.by_pattern[pattern][mode].moments.add(ns);
                if let Some(late) = record.late() {
                    self.late.add(late.0);
                    self.late_ios += u64::from(late > LATE_FROM);
                }
            }
            let tag = (mode as u64) << MODE_SHIFT | pattern as u64 | if running { RUNNING } else { 0 };
            if self.long {
                self.count(ns, tag);
            } else {
                self.keep(ns << TAG_BITS | tag);
            }
        }
    }

    fn keep(&mut self, sample: u64) {
        self.samples.push(sample);
        if self.samples.len() > EXACT_IOS {
            self.long = true;
            for sample in std::mem::take(&mut self.samples) {
                self.count(sample >> TAG_BITS, sample & ((1 << TAG_BITS) - 1));
            }
        }
    }

    fn count(&mut self, ns: u64, tag: u64) {
        let mode = (tag >> MODE_SHIFT) as usize;
        self.all[mode].count(ns);
        if tag & RUNNING != 0 {
            self.running[mode].count(ns);
            if self.patterns > 1 {
                self.by_pattern[(tag & PATTERN) as usize][mode].count(ns);
            }
        }
    }

    /// The statistics of all that was added.
    pub fn finish(mut self) -> RunStats {
        self.samples.sort_unstable();
        // The response times of the samples with these modes, and `tag` in the bits `mask`.
        let exact = |of: [bool; 4], mask: u64, tag: u64| {
            let mine = move |s: &&u64| **s & mask == tag && of[(**s >> MODE_SHIFT & 3) as usize];
            self.samples.iter().filter(mine).map(|s| s >> TAG_BITS)
        };
        let whole = |set: &ByMode, mask: u64, tag: u64| {
            let of = told(set, self.together);
            figures(set, of, exact(of, mask, tag))
        };
        let patterns = if self.patterns > 1 { &self.by_pattern[..] } else { &[] };
        let pattern = |(i, set): (usize, &ByMode)| whole(set, RUNNING | PATTERN, RUNNING | i as u64);
        RunStats {
            running: whole(&self.running, RUNNING, RUNNING),
            all: whole(&self.all, 0, 0),
            by_pattern: patterns.iter().enumerate().map(pattern).collect(),
            by_mode: if self.together { Vec::new() } else { self.by_mode(&exact) },
            late: (self.late.n > 0).then(|| LateStats {
                n: self.late.n,
                mean_ns: self.late.sum as f64 / self.late.n as f64,
                max_ns: self.late.max,
                late_ios: Some(self.late_ios),
            }),
        }
    }

    /// Each mode apart where there are several.
    fn by_mode<I: Iterator<Item = u64>>(&self, exact: &impl Fn([bool; 4], u64, u64) -> I) -> Vec<ModeStats> {
        let there: Vec<usize> = (0..MODES.len()).filter(|mode| self.all[*mode].moments.n > 0).collect();
        if there.len() < 2 {
            return Vec::new();
        }
        let one = |mode: usize| {
            let of = std::array::from_fn(|other| other == mode);
            let running = figures(&self.running, of, exact(of, RUNNING, RUNNING));
            ModeStats { mode: MODES[mode], ios: self.all[mode].moments.n, running }
        };
        there.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uflip_device::{Arrival, Bytes, Io, Mode, Nanos};

    fn record(stream: u16, pattern: u8, ns: u64) -> IoRecord {
        let io = Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 512, mode: Mode::Read, pattern };
        IoRecord::new(&io, stream, Nanos(0), Nanos(ns))
    }

    #[test]
    fn one_to_a_hundred() {
        let s = summarise(&mut (1..=100).rev().collect::<Vec<_>>());
        assert_eq!((s.n, s.min_ns, s.max_ns, s.mean_ns), (100, Some(1), Some(100), Some(50.5)));
        assert!((s.sd_ns.unwrap() - 29.011_491_975_882_016).abs() < 1e-12);
        assert_eq!((s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns), (Some(50), Some(90), Some(95), Some(99)));
        assert_eq!((s.p999_ns, s.p9999_ns), (Some(100), Some(100)));
    }

    #[test]
    fn nothing_measured_is_none_and_one_io_has_no_deviation() {
        let none = summarise(&mut []);
        assert_eq!((none.n, none.min_ns, none.mean_ns, none.sd_ns, none.p50_ns), (0, None, None, None, None));
        let one = summarise(&mut [7]);
        assert_eq!((one.n, one.mean_ns, one.sd_ns, one.p9999_ns), (1, Some(7.0), None, Some(7)));
    }

    #[test]
    fn the_deviation_of_long_times_does_not_cancel() {
        let base = (1 << 40) - 10;
        let s = summarise(&mut [base, base + 2, base + 4]);
        assert_eq!(s.sd_ns, Some(2.0));
    }

    #[test]
    fn start_up_is_counted_per_stream_and_patterns_apart() {
        let mut builder = StatsBuilder::new(2, 2);
        for i in 0..4 {
            builder.push(&[record(0, 0, 100 + i), record(1, 1, 200 + i)]);
        }
        let stats = builder.finish();
        assert_eq!((stats.all.n, stats.all.min_ns), (8, Some(100)));
        assert_eq!((stats.running.n, stats.running.min_ns, stats.running.max_ns), (4, Some(102), Some(203)));
        let [a, b] = &stats.by_pattern[..] else { panic!("two patterns") };
        assert_eq!((a.n, a.mean_ns, b.n, b.mean_ns), (2, Some(102.5), 2, Some(202.5)));
    }

    fn of_mode(mode: Mode, pattern: u8, ns: u64) -> IoRecord {
        let io = Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 512, mode, pattern };
        IoRecord::new(&io, 0, Nanos(0), Nanos(ns))
    }

    #[test]
    fn flushes_and_trims_are_never_part_of_the_mean_of_writes() {
        for times in [1u64, 1 << 19] {
            let mut builder = StatsBuilder::new(0, 1);
            for _ in 0..times {
                builder.push(&[of_mode(Mode::Write, 0, 100), of_mode(Mode::Write, 0, 300)]);
                builder.push(&[of_mode(Mode::Flush, 0, 9000), of_mode(Mode::Trim, 0, 50)]);
            }
            let stats = builder.finish();
            assert_eq!((stats.running.n, stats.running.mean_ns), (2 * times, Some(200.0)));
            assert_eq!((stats.running.min_ns, stats.running.max_ns), (Some(100), Some(300)));
            assert_eq!((stats.all.n, stats.all.p9999_ns, stats.ios()), (2 * times, Some(300), 4 * times));
            let told: Vec<_> = stats.by_mode.iter().map(|m| (m.mode, m.ios, m.running.mean_ns)).collect();
            let write = (Mode::Write, 2 * times, Some(200.0));
            assert_eq!(told, [write, (Mode::Flush, times, Some(9000.0)), (Mode::Trim, times, Some(50.0))]);
            let flush = stats.by_mode[1].running.p50_ns.unwrap();
            assert!((9000..=9009).contains(&flush), "{flush}");
        }
    }

    #[test]
    fn a_run_of_one_mode_has_no_statistics_by_mode_and_trims_alone_are_told() {
        let mut builder = StatsBuilder::new(1, 2);
        builder.push(&[of_mode(Mode::Trim, 0, 10), of_mode(Mode::Trim, 1, 20), of_mode(Mode::Trim, 0, 30)]);
        let stats = builder.finish();
        assert_eq!((stats.running.mean_ns, stats.all.n, stats.by_mode.len()), (Some(25.0), 3, 0));
        // A mix of reads and trims: each pattern of its own, the whole of the reads.
        let mut builder = StatsBuilder::new(0, 2);
        builder.push(&[of_mode(Mode::Read, 0, 10), of_mode(Mode::Trim, 1, 20)]);
        let stats = builder.finish();
        let by_pattern: Vec<_> = stats.by_pattern.iter().map(|s| s.mean_ns).collect();
        assert_eq!((stats.running.mean_ns, by_pattern), (Some(10.0), vec![Some(10.0), Some(20.0)]));
    }

    #[test]
    fn how_late_an_open_loops_ios_were_is_summed_up() {
        let io = |at| Io { arrival: Arrival::At(Nanos(at)), ..IO };
        const IO: Io =
            Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 512, mode: Mode::Read, pattern: 0 };
        let mut builder = StatsBuilder::new(1, 1);
        for (due, submit, done) in [(0, 900, 1000), (100, 1000, 1100), (5000, 5000, 5100)] {
            builder.push(&[IoRecord::measured(&io(due), 0, Nanos(submit), Nanos(done))]);
        }
        let stats = builder.finish();
        assert_eq!(stats.running.mean_ns, Some(550.0), "(1000 + 100) / 2: from the intended instant");
        assert_eq!(stats.late, Some(LateStats { n: 2, mean_ns: 450.0, max_ns: 900, late_ios: Some(0) }));
        let mut behind = StatsBuilder::new(0, 1);
        for late in [100_000, 100_001] {
            behind.push(&[IoRecord::measured(&io(0), 0, Nanos(late), Nanos(late + 1))]);
        }
        assert_eq!(behind.finish().late.and_then(|late| late.late_ios), Some(1), "from LATE_FROM on");
        let mut closed = StatsBuilder::new(0, 1);
        closed.push(&[record(0, 0, 7)]);
        assert_eq!(closed.finish().late, None);
    }

    #[test]
    fn long_runs_are_close_and_their_mean_is_exact() {
        let n = EXACT_IOS as u64 + 1000;
        let response = |i: u64| 80_000 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000;
        let mut builder = StatsBuilder::new(0, 1);
        for i in 0..n {
            builder.push(&[record(0, 0, response(i))]);
        }
        let (stats, exact) = (builder.finish(), summarise(&mut (0..n).map(response).collect::<Vec<_>>()));
        assert_eq!((stats.all.mean_ns, stats.all.sd_ns), (exact.mean_ns, exact.sd_ns));
        for (got, want) in [(stats.running.p50_ns, exact.p50_ns), (stats.all.p9999_ns, exact.p9999_ns)] {
            let (got, want) = (got.unwrap() as f64, want.unwrap() as f64);
            assert!(got >= want && got <= want * 1.001, "{got} for {want}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_textbook(values in prop::collection::vec(0..1u64 << 40, 2..300)) {
            let mut builder = StatsBuilder::new(0, 1);
            values.iter().for_each(|ns| builder.push(&[record(0, 0, *ns)]));
            let stats = builder.finish().running;
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let sd = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            prop_assert!((stats.mean_ns.unwrap() - mean).abs() <= mean * 1e-12 + 1e-9);
            prop_assert!((stats.sd_ns.unwrap() - sd).abs() <= sd * 1e-9 + 1e-6);
            let p90 = stats.p90_ns.unwrap();
            let not_above = values.iter().filter(|v| **v <= p90).count() as f64;
            let below = values.iter().filter(|v| **v < p90).count() as f64;
            prop_assert!(not_above >= 0.9 * n && below < 0.9 * n);
        }
    }
}
