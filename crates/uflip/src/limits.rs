//! Memory that something typed would take, held against what there is before
//! any is taken. All limits: `docs/limits.md`.
//!
//! How: at most half of what is available now: `MemAvailable`, what is left of
//! the address space (`RLIMIT_AS`) and of the control group (`memory.max`),
//! whichever is least. Where none of them can be read nothing is refused.

use crate::usage;
use std::path::Path;
use uflip_device::{Bytes, Engine, EngineOptions};
use uflip_measure::{Pattern, Plan, State, Step};
use uflip_sim::Description;

/// Every stream of the synchronous engine and of the null device has a buffer of
/// this size, every IO in flight of io_uring one of [`RING_BUFFER`]; a larger IO
/// makes it larger.
const SYNC_BUFFER: u64 = 1 << 20;
/// See [`SYNC_BUFFER`].
const RING_BUFFER: u64 = 256 << 10;
/// Entries of the two queues and what is known of an IO in flight.
const RING_ENTRY: u64 = 512;
/// What a stream takes besides: the used part of a stack, a chunk of records.
const STREAM: u64 = 128 << 10;

/// Half of the memory that is available now.
pub fn half_of_memory() -> Option<Bytes> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let of_machine = read("/proc/meminfo").and_then(|text| field_kib(&text, "MemAvailable:"));
    let of_process = read("/proc/self/limits").and_then(|text| address_space(&text)).map(|limit| {
        let used = read("/proc/self/status").and_then(|text| field_kib(&text, "VmSize:"));
        limit.saturating_sub(used.unwrap_or(0))
    });
    let least = [of_machine, of_process, of_group()].into_iter().flatten().min()?;
    Some(Bytes(least / 2))
}

/// Bytes in a line `NAME   1234 kB`.
fn field_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit in `/proc/self/limits`; None where there is none.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What is left in the control group of this process and those around it.
fn of_group() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let whole = Path::new("/sys/fs/cgroup").join(path);
    let left = |group: &Path| {
        let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        Some(number("memory.max")?.saturating_sub(number("memory.current")?))
    };
    whole.ancestors().take_while(|group| group.starts_with("/sys/fs/cgroup")).filter_map(left).min()
}

/// Refuses what needs more than half of the available memory.
///
/// # Errors
/// What needs it, and `instead`, what to type.
pub fn room(needed: u64, what: &str, instead: &str) -> anyhow::Result<()> {
    match half_of_memory() {
        Some(half) if needed > half.0 => Err(usage(format!(
            "{what} would take {} of memory, and uflip takes at most half of what is available, {half}; {instead}",
            Bytes(needed)
        ))),
        _ => Ok(()),
    }
}

/// How many streams, and their largest IO.
type Demand = (u64, u64);

fn demand(pattern: &Pattern) -> Demand {
    // A trim moves no bytes.
    let moving = pattern.basics().into_iter().filter(|b| b.mode != uflip_measure::PatternMode::Trim);
    (pattern.stream_count() as u64, moving.map(|basic| basic.io_size.0).max().unwrap_or(0))
}

/// Bytes of buffers for all these: each stream's grow to its largest IO and stay.
fn buffers(demands: impl Iterator<Item = Demand>, engine: Engine) -> u64 {
    let (depth, least) = match engine {
        Engine::Sync => (1, SYNC_BUFFER),
        Engine::IoUring { queue_depth, .. } => (u64::from(queue_depth), RING_BUFFER),
    };
    let mut demands: Vec<Demand> = demands.collect();
    demands.sort_unstable();
    let (mut sum, mut counted, mut largest) = (0u64, demands.last().map_or(0, |d| d.0), least);
    // From the patterns of most streams down: what the last streams take first.
    for at in (0..demands.len()).rev() {
        largest = largest.max(demands[at].1);
        let next = if at == 0 { 0 } else { demands[at - 1].0 };
        let each = depth.saturating_mul(largest + RING_ENTRY).saturating_add(STREAM);
        sum = sum.saturating_add(each.saturating_mul(counted - next));
        counted = next;
    }
    sum
}

fn room_for(
    demands: impl Iterator<Item = Demand> + Clone,
    options: &EngineOptions,
    virtual_time: bool,
) -> anyhow::Result<()> {
    if virtual_time {
        return Ok(());
    }
    let streams = demands.clone().map(|d| d.0).max().unwrap_or(1);
    let largest = Bytes(demands.clone().map(|d| d.1).max().unwrap_or(0));
    let what = match options.engine {
        Engine::Sync => format!("a buffer for each of {streams} streams with IOs of up to {largest}"),
        Engine::IoUring { queue_depth, .. } => {
            format!("{queue_depth} IOs of up to {largest} in flight in each of {streams} streams")
        }
    };
    let instead = "type a smaller --queue-depth, fewer streams or smaller IOs";
    room(buffers(demands, options.engine), &what, instead)
}

/// Whether there is memory for the IOs of a pattern.
///
/// # Errors
/// [`crate::Usage`] with what it would take and what to type instead.
pub fn room_for_pattern(
    pattern: &Pattern,
    options: &EngineOptions,
    virtual_time: bool,
) -> anyhow::Result<()> {
    room_for(std::iter::once(demand(pattern)), options, virtual_time)
}

/// The same for all runs and resets of a plan.
///
/// # Errors
/// As [`room_for_pattern`].
pub fn room_for_plan(plan: &Plan, options: &EngineOptions, virtual_time: bool) -> anyhow::Result<()> {
    let demands = plan.steps.iter().filter_map(|step| match step {
        Step::Run(run) => run.pattern().map(demand),
        Step::Reset { state: State::Sequential { io_size } } => Some((1, io_size.0)),
        Step::Reset { .. } | Step::Pause { .. } => None,
    });
    room_for(demands, options, virtual_time)
}

/// Refuses a queue depth of the engine for patterns that say theirs.
///
/// # Errors
/// [`crate::Usage`] with such a pattern and what to type instead.
pub fn one_depth<'a>(
    patterns: impl IntoIterator<Item = &'a Pattern>,
    options: &EngineOptions,
) -> anyhow::Result<()> {
    let queued = patterns.into_iter().find_map(|pattern| Some((pattern, pattern.queue_depth()?)));
    match (queued, options.engine) {
        (Some((pattern, depth)), Engine::IoUring { queue_depth, .. }) if queue_depth > 1 => {
            Err(usage(format!(
                "{pattern} says itself how many IOs are under way ({depth}), so that --queue-depth {queue_depth} \
                 does nothing; leave --queue-depth away"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether there is memory for a simulated device and a snapshot of it.
///
/// # Errors
/// As [`room_for_pattern`].
pub fn room_for_simulated(description: &Description) -> anyhow::Result<()> {
    let needed = uflip_sim::footprint(description).0.saturating_mul(2);
    let what = format!("simulating {} of {}", description.name, Bytes(description.capacity_mib << 20));
    room(needed, &what, "type a smaller capacity_mib or a larger page_bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_memory_is_read() {
        assert_eq!(field_kib("MemTotal: 9 kB\nMemAvailable:   2048 kB\n", "MemAvailable:"), Some(2 << 20));
        let limits =
            "Limit   Soft Limit  Hard Limit  Units\nMax address space         1000 unlimited bytes\n";
        assert_eq!(address_space(limits), Some(1000));
        assert_eq!(address_space("Max address space         unlimited            unlimited bytes\n"), None);
    }

    #[test]
    fn buffers_are_counted_stream_by_stream() {
        const MIB: u64 = 1 << 20;
        let mib = |demands: &[Demand], engine| buffers(demands.iter().copied(), engine) / MIB;
        assert_eq!(mib(&[(1, 4096)], Engine::Sync), 1);
        // One stream has large IOs, many have small ones.
        let both = mib(&[(1, 64 * MIB), (100, 4096)], Engine::Sync);
        assert!((64 + 99..64 + 99 + 20).contains(&both), "{both}");
        let ring = |queue_depth| Engine::IoUring { queue_depth, poll: false };
        assert!((8192..8500).contains(&mib(&[(8, 4096)], ring(4096))));
        assert!((1024..1100).contains(&mib(&[(1, MIB), (1, 4096)], ring(1024))));
        assert_eq!(buffers([(u64::MAX, u64::MAX / 2)].into_iter(), ring(4096)), u64::MAX);
    }
}
