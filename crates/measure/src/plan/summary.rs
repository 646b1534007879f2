//! What a plan comes to: runs, IOs, bytes, and how long it should take.
//!
//! How: sums over the steps. The estimate takes a mean response time for each
//! baseline, scaled up in proportion for IOs larger than the plan's IOSize and
//! as it is for smaller ones; parallel streams count as if they waited for each
//! other. It is an upper estimate for most devices. Source: paper 000/001,
//! section 4.2 (IOCount determines the time and the flash involved).

use super::{Plan, Step};
use crate::pattern::{Baseline, Basic, Pattern, PatternMode, Timing};
use crate::run::RunSpec;
use crate::state::{FLASH_BLOCK, State};
use serde::Serialize;
use uflip_device::{Bytes, Nanos};

/// What a plan comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Runs.
    pub runs: u64,
    /// IOs of all runs.
    pub ios: u64,
    /// Bytes that the runs read.
    pub read_bytes: Bytes,
    /// Bytes that the runs write, state resets apart.
    pub write_bytes: Bytes,
    /// State resets.
    pub resets: u64,
    /// Bytes that the state resets write.
    pub reset_bytes: Bytes,
    /// Idle time between runs.
    pub pauses: Nanos,
    /// Values left out.
    pub skipped: u64,
}

/// Mean response times in milliseconds of IOs of the plan's IOSize.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineMeans {
    /// Sequential reads.
    pub sr: f64,
    /// Random reads.
    pub rr: f64,
    /// Sequential writes.
    pub sw: f64,
    /// Random writes.
    pub rw: f64,
}

impl BaselineMeans {
    /// That of one baseline.
    pub const fn of(&self, baseline: Baseline) -> f64 {
        match baseline {
            Baseline::Sr => self.sr,
            Baseline::Rr => self.rr,
            Baseline::Sw => self.sw,
            Baseline::Rw => self.rw,
        }
    }
}

/// The basic patterns of a run, each with the IOs it has there.
fn shares(run: &RunSpec) -> Vec<(&Basic, u64)> {
    run.pattern().map_or_else(Vec::new, |pattern| shares_of(pattern, run.io_count))
}

/// The basic patterns of a pattern, each with the IOs it has of `count` in each stream.
fn shares_of(pattern: &Pattern, count: u64) -> Vec<(&Basic, u64)> {
    match pattern {
        Pattern::Basic(basic) => vec![(basic, count)],
        Pattern::Mix { first, second, ratio } => {
            let (of_first, of_second) = ratio.split(count);
            vec![(first, of_first), (second, of_second)]
        }
        Pattern::Replicated { degree: n, basic } | Pattern::Queued { depth: n, basic } => {
            vec![(basic, count.saturating_mul(u64::from(*n)))]
        }
        Pattern::SideBySide(all) => all.iter().map(|basic| (basic, count)).collect(),
    }
}

impl Plan {
    /// Its runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = &RunSpec> {
        self.steps.iter().filter_map(|step| if let Step::Run(run) = step { Some(run) } else { None })
    }

    /// What it comes to.
    pub fn summary(&self) -> Summary {
        let mut sum = Summary { skipped: self.skipped.len() as u64, ..Summary::default() };
        for step in &self.steps {
            match step {
                Step::Reset { state } => {
                    sum.resets += 1;
                    if *state != State::None {
                        sum.reset_bytes.0 = sum.reset_bytes.0.saturating_add(self.geometry.capacity.0);
                    }
                }
                Step::Pause { nanos } => sum.pauses.0 = sum.pauses.0.saturating_add(nanos.0),
                Step::Run(run) => {
                    sum.runs += 1;
                    for (basic, ios) in shares(run) {
                        sum.ios = sum.ios.saturating_add(ios);
                        let bytes = ios.saturating_mul(basic.io_size.0);
                        let total = match basic.mode {
                            PatternMode::Read => &mut sum.read_bytes.0,
                            PatternMode::Write => &mut sum.write_bytes.0,
                            PatternMode::Trim => continue,
                        };
                        *total = total.saturating_add(bytes);
                    }
                }
            }
        }
        sum
    }

    /// How long it should take on a device with these mean response times.
    pub fn estimate(&self, mean_ms: &BaselineMeans) -> Nanos {
        let io_ms =
            |baseline, size: f64| mean_ms.of(baseline) * (size / self.io_size.0.max(1) as f64).max(1.0);
        let capacity = self.geometry.capacity.0 as f64;
        let ms = |step: &Step| match step {
            Step::Reset { state: State::None } => 0.0,
            Step::Reset { state: State::Random | State::Complete | State::Trim } => {
                let mean_size = FLASH_BLOCK.0 as f64 / 2.0;
                capacity / mean_size * io_ms(Baseline::Rw, mean_size)
            }
            Step::Reset { state: State::Sequential { io_size } } => {
                let size = io_size.0.max(1) as f64;
                capacity / size * io_ms(Baseline::Sw, size)
            }
            Step::Pause { nanos } => nanos.as_millis_f64(),
            Step::Run(run) => {
                let one = |(basic, ios): (&Basic, u64)| {
                    ios as f64 * io_ms(basic.baseline(), basic.io_size.0 as f64)
                };
                let busy = shares(run).into_iter().map(one).sum::<f64>();
                // IOs of an open loop take their time while others are waited for.
                if run.work.is_open_loop() { busy.max(waits_ms(run)) } else { busy + waits_ms(run) }
            }
        };
        // A sum too large for the type is held at its end by the conversion.
        Nanos((self.steps.iter().map(ms).sum::<f64>() * 1e6) as u64)
    }
}

/// Bytes that `io_count` IOs in each stream of `pattern` write: the writes of a mix
/// alone, and no trim. In a synced pattern every `every + 1`th IO is a flush.
pub fn written_bytes(pattern: &Pattern, io_count: u64) -> Bytes {
    // A queue's streams are dealt one sequence, with one count of its flushes.
    let streams =
        if let Pattern::Replicated { degree, .. } = pattern { u64::from(*degree).max(1) } else { 1 };
    let written = |(basic, ios): (&Basic, u64)| match basic.mode {
        PatternMode::Write => streams
            .saturating_mul(basic.timing.without_flushes(ios / streams))
            .saturating_mul(basic.io_size.0),
        PatternMode::Read | PatternMode::Trim => 0,
    };
    Bytes(shares_of(pattern, io_count).into_iter().map(written).fold(0, u64::saturating_add))
}

/// IOs of all streams of a run.
pub(crate) fn ios_of(run: &RunSpec) -> u64 {
    shares(run).into_iter().fold(0, |sum, (_, ios)| sum.saturating_add(ios))
}

/// The pauses within a run, which take their time on any device.
pub(crate) fn waits(run: &RunSpec) -> Nanos {
    Nanos((waits_ms(run) * 1e6) as u64)
}

/// Streams of a replicated pattern wait at the same time. An open loop lasts until
/// its last IO is due.
fn waits_ms(run: &RunSpec) -> f64 {
    if let Some(pattern) = run.pattern().filter(|pattern| pattern.is_open_loop()) {
        let lasts = |(basic, ios): (&Basic, u64)| match basic.timing.rate() {
            // A mix is one stream with one rate.
            Some(rate) if matches!(pattern, Pattern::Mix { .. }) => rate.time_of(run.io_count),
            Some(rate) => rate.time_of(ios),
            None => Nanos((pauses_ms(basic.timing, ios) * 1e6) as u64),
        };
        return shares(run).into_iter().map(lasts).max().unwrap_or_default().as_millis_f64();
    }
    let streams = match run.pattern() {
        Some(pattern @ (Pattern::Replicated { .. } | Pattern::Queued { .. })) => {
            pattern.stream_count().max(1) as f64
        }
        _ => 1.0,
    };
    shares(run).into_iter().map(|(basic, ios)| pauses_ms(basic.timing, ios) / streams).sum()
}

/// What the pauses between `ios` IOs come to.
fn pauses_ms(timing: Timing, ios: u64) -> f64 {
    let between = ios.saturating_sub(1) as f64;
    match timing {
        Timing::Consecutive | Timing::Synced { .. } | Timing::Open { .. } => 0.0,
        Timing::Pause { pause } => between * pause.as_millis_f64(),
        Timing::Burst { pause, burst } => (between / f64::from(burst.max(1))).floor() * pause.as_millis_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_trims_and_a_mixs_reads_are_not_writes() {
        let written = |text: &str, count| written_bytes(&text.parse().expect("a pattern"), count).0;
        assert_eq!(written("9 SR(io_size=4K) / 1 RW(io_size=4K)", 1000), 100 * 4096);
        assert_eq!(written("3 RW(io_size=4K) / 1 RT(io_size=4K)", 1000), 750 * 4096);
        assert_eq!(written("RW(io_size=4K, sync=1)", 1000), 500 * 4096);
        assert_eq!(written("4 x SW(io_size=4K)", 10), 40 * 4096);
        assert_eq!(written("4 x SW(io_size=4K, sync=10)", 10), 40 * 4096);
        assert_eq!(written("4 deep SW(io_size=4K, sync=10)", 10), 37 * 4096);
        assert_eq!(written("RT(io_size=4K)", 10) + written("SR(io_size=4K)", 10), 0);
    }
}
