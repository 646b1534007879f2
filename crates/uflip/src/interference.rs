//! Reads the system's counters before and after each run, outside the timed
//! loop, so that other work on the device or the machine shows. What counts as
//! a disturbance is `uflip_measure::auto::interference`'s to say.
//!
//! Source: Linux, `Documentation/admin-guide/iostats.rst`,
//! `Documentation/accounting/psi.rst`, `proc(5)`.

use crate::target::Target;
use std::cell::{Cell, RefCell};
use std::path::Path;
use uflip_device::identity::{SysPaths, disk_of};
use uflip_device::{
    Counters, Device, DeviceError, Geometry, Nanos, Recorder, RunEnd, RunLimits, Snapshot, Stop, Stream,
};
use uflip_measure::auto::interference::{Disturbed, Sample, compare};

/// What to watch, and what was seen.
pub struct Watch {
    /// Major and minor number of the device beneath; None for simulated ones.
    device: Option<(u64, u64)>,
    real: bool,
    /// The run in progress.
    run: Cell<Option<u32>>,
    disturbed: RefCell<Vec<Disturbed>>,
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

impl Watch {
    /// Watches the device beneath `target`; nothing where it is simulated.
    /// `before` was seen earlier.
    pub fn of(target: &Target, before: Vec<Disturbed>) -> Watch {
        let device = target.path().and_then(disk_beneath);
        let real = target.path().is_some();
        Watch { device, real, run: Cell::new(None), disturbed: RefCell::new(before) }
    }

    /// The next call of the device's `run` is this run; None for anything else.
    pub fn next(&self, run: Option<u32>) {
        self.run.set(run);
    }

    fn note(&self, end: &RunEnd, before: Option<Sample>, after: Option<Sample>) {
        if let (Some(run), Some(before), Some(after)) = (self.run.get(), before, after) {
            let found = compare(run, end.ios, end.elapsed, &before, &after);
            let mut disturbed = self.disturbed.borrow_mut();
            // Of an earlier attempt, which is not kept.
            disturbed.retain(|of| of.run != run);
            disturbed.extend(found);
        }
    }

    fn sample(&self) -> Option<Sample> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        self.real.then(|| Sample {
            device_ios: self.device.and_then(|d| completed(&read("/proc/diskstats")?, d)),
            cpu_stall: read("/proc/pressure/cpu").as_deref().and_then(stall),
            io_stall: read("/proc/pressure/io").as_deref().and_then(stall),
            load: read("/proc/loadavg").and_then(|t| t.split(' ').next()?.parse().ok()),
            cpu_mhz: frequency(),
            throttles: throttles(),
        })
    }

    /// The runs beside which something else was going on.
    pub fn disturbed(&self) -> Vec<Disturbed> {
        self.disturbed.borrow().clone()
    }
}

/// What was going on, as a sentence.
pub fn told(found: &Disturbed) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let parts = [
        found.other_ios.map(|n| format!("{n} IOs of others on the disk")),
        found
            .cpu_stall_share
            .map(|share| format!("tasks waited for a processor {} of the time", percent(share))),
        found.cpu_mhz.map(|[a, b]| format!("the processor went from {a:.0} to {b:.0} MHz")),
        found.throttles.map(|n| format!("a processor was throttled {n} times")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("something else was active during the run: {}; measure again", parts.join(", "))
}

/// A device whose runs are watched from outside.
pub struct Watched<'a> {
    /// The device.
    pub device: &'a mut dyn Device,
    /// Who watches.
    pub watch: &'a Watch,
}

impl Device for Watched<'_> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        let before = self.watch.sample();
        let end = self.device.run(streams, recorder, limits)?;
        self.watch.note(&end, before, self.watch.sample());
        Ok(end)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        self.device.idle(pause, stop);
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn is_virtual(&self) -> bool {
        self.device.is_virtual()
    }

    fn snapshot(&mut self, ask: Snapshot) -> bool {
        self.device.snapshot(ask)
    }

    fn counters(&self) -> Option<Counters> {
        self.device.counters()
    }
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
        assert_eq!(Watch::of(&Target::parse("sim:mtron", Bytes(0)).unwrap(), Vec::new()).sample(), None);
    }
}
