//! Reads the system's counters before and after each run and, on a thread of its
//! own, once a second during it, so that other work on the device or the machine
//! shows. What counts as a disturbance is `uflip_measure::auto::interference`'s to say.
//!
//! Source: Linux, `Documentation/admin-guide/iostats.rst`,
//! `Documentation/accounting/psi.rst`, `proc(5)`.

use super::{Probe, Sampler};
use crate::target::Target;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use uflip_device::identity::{SysPaths, disk_of};
use uflip_device::{Counters, Nanos, RunEnd};
use uflip_measure::auto::interference::{Disturbed, PERIOD, SystemSample, compare};
use uflip_measure::run::Probes;

/// Watches what else goes on.
pub struct Interference {
    /// Major and minor number of the device beneath.
    device: Option<(u64, u64)>,
    before: SystemSample,
    /// When it was taken.
    since: Instant,
    peak: Arc<Mutex<Peak>>,
}

/// The stalls of the worst period so far.
#[derive(Default)]
struct Peak {
    last: Option<(Instant, Nanos)>,
    share: Option<f64>,
}

/// The major and minor number of the whole disk beneath a file or device.
fn disk_beneath(target: &Path) -> Option<(u64, u64)> {
    let number = disk_of(target, &SysPaths::default())?;
    Some((number.major.into(), number.minor.into()))
}

/// IOs completed by a device: reads, writes and discards of `/proc/diskstats`.
fn completed(diskstats: &str, device: (u64, u64)) -> Option<u64> {
    diskstats.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        ((number(0)?, number(1)?) == device)
            .then(|| Some(number(3)? + number(7)? + number(14).unwrap_or(0)))
            .flatten()
    })
}

/// The total of "some" in a file of `/proc/pressure`.
fn stall(text: &str) -> Option<Nanos> {
    let some = text.lines().find(|line| line.starts_with("some"))?;
    let total = some.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse().ok().map(Nanos::from_micros)
}

/// The processor that a process ran on last, from its `/proc/PID/stat`: the
/// 39th field; the second, a name, may hold blanks and brackets.
fn processor(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// The clock frequency of a processor in MHz, from `/proc/cpuinfo`.
fn mhz_of(cpuinfo: &str, processor: u32) -> Option<f64> {
    let value = |line: &str| Some(line.split_once(':')?.1.trim().parse::<f64>().ok()).flatten();
    let mut lines = cpuinfo
        .lines()
        .skip_while(|line| !(line.starts_with("processor") && value(line) == Some(f64::from(processor))));
    lines.find(|line| line.starts_with("cpu MHz")).and_then(value)
}

/// The clock frequency of the processor that this thread is on, in MHz.
fn frequency() -> Option<f64> {
    let here = processor(&std::fs::read_to_string("/proc/thread-self/stat").ok()?)?;
    let path = format!("/sys/devices/system/cpu/cpu{here}/cpufreq/scaling_cur_freq");
    match std::fs::read_to_string(path) {
        Ok(khz) => khz.trim().parse::<f64>().ok().map(|khz| khz / 1e3),
        Err(_) => mhz_of(&std::fs::read_to_string("/proc/cpuinfo").ok()?, here),
    }
}

/// Times that any processor was throttled for its heat.
fn throttles() -> Option<u64> {
    let counts = std::fs::read_dir("/sys/devices/system/cpu").ok()?.filter_map(|entry| {
        let path = entry.ok()?.path().join("thermal_throttle/core_throttle_count");
        std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    counts.reduce(u64::saturating_add)
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn cpu_stall() -> Option<Nanos> {
    read("/proc/pressure/cpu").as_deref().and_then(stall)
}

impl Interference {
    /// Of the device beneath `target`; None where it is simulated or answers at
    /// once: then there is nothing to disturb.
    pub fn of(target: &Target) -> Option<Interference> {
        let device = disk_beneath(target.path()?);
        Some(Interference {
            device,
            before: SystemSample::default(),
            since: Instant::now(),
            peak: Arc::default(),
        })
    }

    fn sample(&self) -> SystemSample {
        SystemSample {
            device_ios: self.device.and_then(|d| completed(&read("/proc/diskstats")?, d)),
            cpu_stall: cpu_stall(),
            io_stall: read("/proc/pressure/io").as_deref().and_then(stall),
            load: read("/proc/loadavg").and_then(|t| t.split(' ').next()?.parse().ok()),
            cpu_mhz: frequency(),
            throttles: throttles(),
        }
    }
}

impl Peak {
    /// The stalls are at `total` at `now`.
    fn look(&mut self, now: Instant, total: Option<Nanos>) {
        let Some(total) = total else { return };
        if let Some((then, before)) = self.last.replace((now, total)) {
            let share = total.saturating_sub(before).as_secs_f64() / (now - then).as_secs_f64().max(1e-9);
            let share = share.min(1.0);
            self.share = Some(self.share.map_or(share, |peak: f64| peak.max(share)));
        }
    }
}

impl Probe for Interference {
    fn before(&mut self, _: Option<Counters>) {
        self.peak = Arc::default();
        self.since = Instant::now();
        self.before = self.sample();
    }

    fn sampler(&self, is_virtual: bool) -> Option<Sampler> {
        if is_virtual {
            return None;
        }
        let peak = self.peak.clone();
        let sample = move |_| {
            peak.lock().unwrap_or_else(PoisonError::into_inner).look(Instant::now(), cpu_stall());
        };
        Some(Sampler { every: PERIOD, sample: Box::new(sample) })
    }

    fn after(&mut self, run: u32, end: &RunEnd, _: Option<Counters>, said: &mut Probes) {
        let now = self.sample();
        // The samples stand around the run, with the making of its streams: the counters
        // are of all that time and not of the run's own.
        let apart = Nanos(self.since.elapsed().as_nanos() as u64).max(end.elapsed);
        let found = compare(run, end.ios, apart, &self.before, &now);
        let cpu_stall_peak_share = self.peak.lock().unwrap_or_else(PoisonError::into_inner).share;
        said.interference = Some(Disturbed { cpu_stall_peak_share, ..found });
    }
}

/// What was going on, as a sentence.
pub fn told(found: &Disturbed) -> String {
    let parts = [
        found.other_ios.map(|n| format!("{n} IOs of others on the disk")),
        found
            .cpu_stall_share
            .map(|share| format!("tasks waited for a processor {:.0} % of the time", share * 100.0)),
        found.cpu_mhz.map(|[a, b]| format!("the processor went from {a:.0} to {b:.0} MHz")),
        found.throttles.map(|n| format!("a processor was throttled {n} times")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("something else was active during the run ({}); measure again", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::Bytes;

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let stats = "   8       0 sda 100 1 800 5 200 2 1600 9 0 10 14 7 0 56 1 3 2\n\
                     \u{20}259      0 nvme0n1 1 0 8 0 2 0 16 0 0 1 1\n";
        assert_eq!(completed(stats, (8, 0)), Some(307));
        assert_eq!(completed(stats, (259, 0)), Some(3));
        assert_eq!(completed(stats, (8, 1)), None);
        let pressure = "some avg10=0.00 avg60=0.10 avg300=0.00 total=12345\nfull avg10=0.00 total=7\n";
        assert_eq!(stall(pressure), Some(Nanos::from_micros(12345)));
        assert_eq!(stall(""), None);
    }

    #[test]
    fn the_processors_pace_is_read_as_the_kernel_tells_it() {
        let stat =
            format!("17 (a name) b) R {} 5 0", (4..=38).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
        assert_eq!(processor(&stat), Some(5));
        assert_eq!(processor("17 (short) R 1 2"), None);
        let info = "processor\t: 0\ncpu MHz\t\t: 800.0\n\nprocessor\t: 1\ncpu MHz\t\t: 2596.138\n";
        assert_eq!((mhz_of(info, 1), mhz_of(info, 0), mhz_of(info, 2)), (Some(2596.138), Some(800.0), None));
        let own = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        assert!(processor(&own).is_some(), "{own}");
    }

    #[test]
    fn a_simulated_target_is_not_watched() {
        let of = |text: &str| Interference::of(&Target::parse(text, Bytes(0)).unwrap()).is_some();
        assert_eq!((of("sim:mtron"), of("null:"), of("/dev/null")), (false, false, true));
    }

    #[test]
    fn a_short_stall_in_a_long_run_is_its_peak() {
        let (mut peak, began) = (Peak::default(), Instant::now());
        for (second, stalled_ms) in [(0, 0), (1, 10), (2, 710), (3, 720)] {
            peak.look(began + std::time::Duration::from_secs(second), Some(Nanos::from_millis(stalled_ms)));
        }
        assert!((peak.share.unwrap() - 0.7).abs() < 1e-9, "{:?}", peak.share);
        peak.look(began, None);
        assert!(peak.share.is_some());
    }
}
