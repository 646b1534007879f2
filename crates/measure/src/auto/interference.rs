//! Other work on the device or the machine while a run was measured.
//!
//! Method: counters of the system, read before and after a run, outside the
//! timed loop: the target's IOs in `/proc/diskstats` less the run's own, the
//! machine's stalls for want of processor and disk (`/proc/pressure`, "some",
//! in microseconds), its one-minute load, the clock frequency of the processor that
//! submits, and how often a processor was throttled for its heat. A run is
//! disturbed where the device did at least [`OTHER_IOS`] IOs and [`OTHER_SHARE`] of
//! the run's own besides, where tasks waited for a processor for [`STALL_SHARE`]
//! of the run, where the frequencies before and after are [`FREQUENCY_RATIO`]
//! apart, or where there was any throttling.
//!
//! Units: IOs, nanoseconds, MHz, shares from 0. Source: Linux,
//! `Documentation/admin-guide/iostats.rst`, `Documentation/accounting/psi.rst`,
//! `Documentation/admin-guide/pm/cpufreq.rst` (`scaling_cur_freq`) and
//! `Documentation/ABI/testing/sysfs-devices-system-cpu` (`core_throttle_count`).
//! Limits: the kernel may split or merge a run's own IOs; on a file the file
//! system's own IOs count as others'. A virtual machine is told a constant
//! frequency. The pressure counters are the whole machine's.

use serde::{Deserialize, Serialize};
use uflip_device::Nanos;

/// IOs of others that matter.
pub const OTHER_IOS: u64 = 8;
/// And this share of the run's own.
pub const OTHER_SHARE: f64 = 0.05;
/// Share of the run in which somebody waited for a processor.
pub const STALL_SHARE: f64 = 0.25;
/// How often the stalls are looked at during a run.
pub const PERIOD: Nanos = Nanos::from_secs(1);
/// The higher clock frequency over the lower.
pub const FREQUENCY_RATIO: f64 = 1.2;

/// Counters at one moment; None where the system has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemSample {
    /// IOs that the device beneath has completed.
    pub device_ios: Option<u64>,
    /// Time in which some task waited for a processor.
    pub cpu_stall: Option<Nanos>,
    /// Time in which some task waited for a disk.
    pub io_stall: Option<Nanos>,
    /// Load of the last minute.
    pub load: Option<f64>,
    /// Clock frequency of the processor that the sampling thread is on.
    pub cpu_mhz: Option<f64>,
    /// Times that any processor was throttled for its heat.
    pub throttles: Option<u64>,
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
    /// Clock frequency of the submitting processor before and after the run, in
    /// MHz; None where it stayed.
    #[serde(default)]
    pub cpu_mhz: Option<[f64; 2]>,
    /// Times that a processor was throttled for its heat; None for never.
    #[serde(default)]
    pub throttles: Option<u64>,
    /// As `cpu_stall_share`, of the run's worst [`PERIOD`]: a long run can hide a
    /// short stall. None for runs shorter than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_stall_peak_share: Option<f64>,
}

impl Disturbed {
    /// Whether any of it matters to a run of `ios` IOs.
    pub fn matters(&self, ios: u64) -> bool {
        let busy_device =
            self.other_ios.is_some_and(|n| n >= OTHER_IOS && n as f64 >= OTHER_SHARE * ios as f64);
        let busy_machine = self.cpu_stall_share.is_some_and(|s| s >= STALL_SHARE);
        busy_device || busy_machine || self.cpu_mhz.is_some() || self.throttles.is_some()
    }
}

/// What went on beside run `run` of `ios` IOs, between two samples `elapsed`
/// apart, whether it matters or not.
pub fn compare(run: u32, ios: u64, elapsed: Nanos, before: &SystemSample, after: &SystemSample) -> Disturbed {
    let all = after.device_ios.zip(before.device_ios).map(|(a, b)| a.saturating_sub(b));
    let other_ios = all.map(|all| all.saturating_sub(ios));
    let share = |a: Option<Nanos>, b: Option<Nanos>| {
        let (a, b) = a.zip(b)?;
        // The kernel adds a stall up when it ends or is asked for, so that one which began
        // before the first sample can be whole in the second: never more than all the time.
        (elapsed.0 > 0).then(|| (a.saturating_sub(b).0 as f64 / elapsed.0 as f64).min(1.0))
    };
    let cpu_stall_share = share(after.cpu_stall, before.cpu_stall);
    let cpu_mhz = before.cpu_mhz.zip(after.cpu_mhz).map(|(a, b)| [a, b]);
    let cpu_mhz = cpu_mhz.filter(|[a, b]| a.max(*b) >= FREQUENCY_RATIO * a.min(*b));
    let throttles =
        after.throttles.zip(before.throttles).map(|(a, b)| a.saturating_sub(b)).filter(|n| *n > 0);
    Disturbed {
        run,
        other_ios,
        cpu_stall_share,
        io_stall_share: share(after.io_stall, before.io_stall),
        load: after.load,
        cpu_mhz,
        throttles,
        cpu_stall_peak_share: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ios: u64, stall_ms: u64) -> SystemSample {
        let stall = Some(Nanos::from_millis(stall_ms));
        let (device_ios, load) = (Some(ios), Some(0.5));
        let (cpu_mhz, throttles) = (Some(3000.0), Some(7));
        SystemSample { device_ios, cpu_stall: stall, io_stall: stall, load, cpu_mhz, throttles }
    }

    fn matters(found: Disturbed) -> Option<Disturbed> {
        Some(found).filter(|found| found.matters(1000))
    }

    #[test]
    fn only_what_others_did_counts() {
        let second = Nanos::from_secs(1);
        let judge = |ios: u64, stall: u64| {
            matters(compare(3, 1000, second, &sample(500, 10), &sample(500 + ios, 10 + stall)))
        };
        assert_eq!(judge(1000, 0), None);
        assert_eq!(judge(1040, 200), None);
        assert_eq!(judge(1060, 0).unwrap().other_ios, Some(60));
        assert_eq!(judge(900, 300).unwrap().cpu_stall_share, Some(0.3));
        let unknown = SystemSample::default();
        assert_eq!(matters(compare(3, 1000, second, &unknown, &sample(9999, 0))), None);
    }

    #[test]
    fn a_processor_that_changes_its_pace_disturbs() {
        let judge = |mhz: f64, throttles: u64| {
            let after = SystemSample { cpu_mhz: Some(mhz), throttles: Some(throttles), ..sample(1500, 10) };
            matters(compare(3, 1000, Nanos::from_secs(1), &sample(500, 10), &after))
        };
        assert_eq!((judge(3000.0, 7), judge(2600.0, 7)), (None, None));
        let slow = judge(2000.0, 7).unwrap();
        assert_eq!((slow.cpu_mhz, slow.throttles), (Some([3000.0, 2000.0]), None));
        assert_eq!(judge(3700.0, 7).unwrap().cpu_mhz, Some([3000.0, 3700.0]));
        assert_eq!(judge(3000.0, 9).unwrap().throttles, Some(2));
    }

    #[test]
    fn a_share_is_never_more_than_all_the_time() {
        let (before, after) = (sample(0, 0), sample(0, 142));
        let found = compare(0, 0, Nanos::from_millis(100), &before, &after);
        assert_eq!((found.cpu_stall_share, found.io_stall_share), (Some(1.0), Some(1.0)));
    }
}
