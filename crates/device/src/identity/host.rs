//! The machine a measurement was made on, and what it was busy with.

use super::{SysPaths, sysfs};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Facts about the machine; `None` where the system does not tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The host's name.
    pub hostname: Option<String>,
    /// The kernel's release, such as `6.18.44`.
    pub kernel: Option<String>,
    /// The first processor's model.
    pub cpu_model: Option<String>,
    /// Logical processors this process may run on.
    pub cores: Option<u64>,
    /// The first processor's frequency governor, such as `performance`.
    pub governor: Option<String>,
    /// Memory the kernel manages, in bytes.
    pub memory_bytes: Option<Bytes>,
    /// The kernel's clock source, such as `tsc`.
    pub clocksource: Option<String>,
    /// Runnable tasks on average over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// When this was read, in seconds since 1970 (UTC).
    pub at_unix_s: Option<u64>,
}

/// Reads the facts now.
pub fn host_facts(paths: &SysPaths) -> HostFacts {
    let proc = |name: &str| sysfs::text(paths.proc.join(name));
    let field = |name: &str, key: &str| {
        let text = String::from_utf8_lossy(&std::fs::read(paths.proc.join(name)).ok()?).into_owned();
        text.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == key).then(|| sysfs::clean(value)).flatten()
        })
    };
    let memory_kb = field("meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .and_then(|kb| kb.checked_mul(1024));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    HostFacts {
        hostname: proc("sys/kernel/hostname"),
        kernel: proc("sys/kernel/osrelease"),
        cpu_model: field("cpuinfo", "model name").or_else(|| field("cpuinfo", "Model")),
        cores: std::thread::available_parallelism().ok().map(|n| n.get() as u64),
        governor: sysfs::text(paths.sys.join("devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        memory_bytes: memory_kb.map(Bytes),
        clocksource: sysfs::text(
            paths.sys.join("devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        load_average: proc("loadavg").and_then(|text| load(&text)),
        at_unix_s: now.ok().map(|d| d.as_secs()),
    }
}

fn load(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_from_the_files_and_gaps_stay_gaps() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        std::fs::create_dir_all(proc.join("sys/kernel")).unwrap();
        std::fs::write(proc.join("sys/kernel/hostname"), "bench\x1b[31m1\n").unwrap();
        std::fs::write(proc.join("meminfo"), "MemFree: 1 kB\nMemTotal:   2048 kB\n").unwrap();
        std::fs::write(proc.join("loadavg"), "0.50 1.25 2.00 1/2 3\n").unwrap();
        std::fs::write(proc.join("cpuinfo"), "processor\t: 0\nmodel name\t: Fast CPU\n").unwrap();
        let facts = host_facts(&SysPaths::below(root.path()));
        assert_eq!(facts.hostname.as_deref(), Some("bench?[31m1"), "escape codes must not pass");
        assert_eq!(facts.memory_bytes, Some(Bytes(2 << 20)));
        assert_eq!(facts.load_average, Some([0.5, 1.25, 2.0]));
        assert_eq!(facts.cpu_model.as_deref(), Some("Fast CPU"));
        assert_eq!((facts.kernel, facts.governor, facts.clocksource), (None, None, None));
    }
}
