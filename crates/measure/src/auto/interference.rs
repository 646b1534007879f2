//! Other work on the device or the machine while a run was measured.
//!
//! Method: counters of the system, read before and after a run, outside the
//! timed loop: the target's IOs in `/proc/diskstats` less the run's own, the
//! machine's stalls for want of processor and disk (`/proc/pressure`, "some",
//! in microseconds) and its one-minute load. A run is disturbed where the device did
//! at least [`OTHER_IOS`] IOs and [`OTHER_SHARE`] of the run's own besides, or
//! where tasks waited for a processor for [`STALL_SHARE`] of the run.
//!
//! Units: IOs, nanoseconds, shares from 0. Source: Linux,
//! `Documentation/admin-guide/iostats.rst` and `Documentation/accounting/psi.rst`.
//! Limits: the kernel may split or merge a run's own IOs; on a file the file
//! system's own IOs count as others'. The pressure counters are the whole machine's.

use serde::{Deserialize, Serialize};
use uflip_device::Nanos;

/// IOs of others that matter.
pub const OTHER_IOS: u64 = 8;
/// And this share of the run's own.
pub const OTHER_SHARE: f64 = 0.05;
/// Share of the run in which somebody waited for a processor.
pub const STALL_SHARE: f64 = 0.25;

/// Counters at one moment; None where the system has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// IOs that the device beneath has completed.
    pub device_ios: Option<u64>,
    /// Time in which some task waited for a processor.
    pub cpu_stall: Option<Nanos>,
    /// Time in which some task waited for a disk.
    pub io_stall: Option<Nanos>,
    /// Load of the last minute.
    pub load: Option<f64>,
}

/// What else went on beside a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// The run.
    pub run: u32,
    /// IOs of the device beneath that are not the run's.
    pub other_ios: Option<u64>,
    /// Share of the run in which some task waited for a processor.
    pub cpu_stall_share: Option<f64>,
    /// Share of the run in which some task waited for a disk: the run's own
    /// streams do nothing else, so by itself it says little.
    pub io_stall_share: Option<f64>,
    /// Load of the last minute at its end.
    pub load: Option<f64>,
}

/// What went on beside run `run` of `ios` IOs, between two samples `elapsed`
/// apart; None where nothing that matters did.
pub fn compare(run: u32, ios: u64, elapsed: Nanos, before: &Sample, after: &Sample) -> Option<Disturbed> {
    let all = after.device_ios.zip(before.device_ios).map(|(a, b)| a.saturating_sub(b));
    let other_ios = all.map(|all| all.saturating_sub(ios));
    let share = |a: Option<Nanos>, b: Option<Nanos>| {
        let (a, b) = a.zip(b)?;
        (elapsed.0 > 0).then(|| a.saturating_sub(b).0 as f64 / elapsed.0 as f64)
    };
    let cpu_stall_share = share(after.cpu_stall, before.cpu_stall);
    let busy_device = other_ios.is_some_and(|n| n >= OTHER_IOS && n as f64 >= OTHER_SHARE * ios as f64);
    let busy_machine = cpu_stall_share.is_some_and(|s| s >= STALL_SHARE);
    (busy_device || busy_machine).then(|| Disturbed {
        run,
        other_ios,
        cpu_stall_share,
        io_stall_share: share(after.io_stall, before.io_stall),
        load: after.load,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ios: u64, stall_ms: u64) -> Sample {
        let stall = Some(Nanos::from_millis(stall_ms));
        Sample { device_ios: Some(ios), cpu_stall: stall, io_stall: stall, load: Some(0.5) }
    }

    #[test]
    fn only_what_others_did_counts() {
        let second = Nanos::from_secs(1);
        let judge =
            |ios: u64, stall: u64| compare(3, 1000, second, &sample(500, 10), &sample(500 + ios, 10 + stall));
        assert_eq!(judge(1000, 0), None);
        assert_eq!(judge(1040, 200), None);
        assert_eq!(judge(1060, 0).unwrap().other_ios, Some(60));
        assert_eq!(judge(900, 300).unwrap().cpu_stall_share, Some(0.3));
        let unknown = Sample::default();
        assert_eq!(compare(3, 1000, second, &unknown, &sample(9999, 0)), None);
    }
}
