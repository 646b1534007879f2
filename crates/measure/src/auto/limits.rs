//! How much the automatic method may spend on finding its parameters.
//!
//! How: numbers per preset, none per device. A quick plan has a time budget of
//! its own; each calibration run there ends after a sixtieth of it, so that
//! probes (at most eight rounds), baselines (four of at most two parts) and
//! pause tests (two of at most five runs) take half of it at the very worst and
//! a few per cent on most devices.
//!
//! Units: IOs, nanoseconds. Source: paper 001, section 4.2 ("a very large
//! IOCount" for the baselines) and 5.1 (pause 1 s, "to be conservative", where
//! no effect lasts; 1,024 IOs suffice for small oscillations).

use crate::detect::enough::StopRule;
use crate::micro::Preset;
use serde::{Deserialize, Serialize};
use uflip_device::Nanos;

/// What calibration may spend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// IOs of one round of the state probe.
    pub probe_ios: u64,
    /// Rounds of the state probe, at most.
    pub probe_rounds: u32,
    /// IOs of the first part of a long baseline.
    pub first_ios: u64,
    /// IOs of the plan's own baseline runs, at least: expensive IOs that come once in
    /// a thousand must be among them.
    #[serde(default)]
    pub baseline_ios: u64,
    /// Parts of a long baseline, at most.
    pub parts: u32,
    /// When a run is long enough.
    pub rule: StopRule,
    /// Reads before the batch of a pause test, and in the first part after it.
    pub reads: u64,
    /// Reads after the batch, at most.
    pub reads_cap: u64,
    /// The least pause between runs.
    pub pause_floor: Nanos,
    /// Idle time before a long baseline or pause test: long enough for a
    /// device to get its start-up phase back.
    pub rest: Nanos,
    /// Each calibration run ends after this; `None` for no limit.
    pub run_time: Option<Nanos>,
}

impl Limits {
    /// Those of a preset. `budget` is that of the whole benchmark.
    pub fn new(preset: Preset, virtual_time: bool, budget: Option<Nanos>) -> Limits {
        let rule = |min_ios, cap_ios| StopRule { min_ios, cap_ios, ..StopRule::default() };
        let share = budget.map(|b| Nanos(b.0 / 60));
        let base = Limits {
            probe_ios: 512,
            probe_rounds: 20,
            first_ios: 1024,
            baseline_ios: 4_096,
            parts: 6,
            rule: rule(256, 8_192),
            reads: 512,
            reads_cap: 32_768,
            pause_floor: Nanos::from_secs(1),
            rest: Nanos::from_secs(10),
            run_time: share.or(Some(Nanos::from_secs(60))),
        };
        let limits = match preset {
            Preset::Quick => Limits {
                probe_ios: 64,
                probe_rounds: 8,
                first_ios: 512,
                baseline_ios: 0,
                parts: 2,
                rule: rule(256, 1_024),
                reads: 256,
                reads_cap: 4_096,
                pause_floor: Nanos::from_millis(10),
                rest: Nanos::from_millis(500),
                ..base
            },
            Preset::Standard => base,
            Preset::Full => Limits {
                probe_ios: 1024,
                first_ios: 4096,
                baseline_ios: 10_240,
                rule: rule(512, 20_480),
                run_time: share.or(Some(Nanos::from_secs(300))),
                ..base
            },
        };
        // Under a time budget they are no longer than others.
        let limits =
            Limits { baseline_ios: if budget.is_some() { 0 } else { limits.baseline_ios }, ..limits };
        if virtual_time {
            // Waiting costs nothing, and a run is as long as its IOs say.
            return Limits { run_time: None, rest: base.rest, pause_floor: base.pause_floor, ..limits };
        }
        limits
    }
}
