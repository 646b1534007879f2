//! A trace on a simulated device: what it really takes there.
//!
//! How: the trace's IOs run one after another through the device's own timed
//! loop, in virtual time. Between two IOs stands the idle time that the trace
//! shows between a completion and the next submission, where it has response
//! times, else none; IOs that overlapped in the trace follow each other here. As an
//! open loop the IOs are due at the trace's own instants instead, counted from its first;
//! those that are overdue follow back to back.
//! Units: ns of virtual time. Source: paper 002, section 3 (models are judged by
//! what a device takes).

use crate::interrupt::STOP;
use anyhow::bail;
use serde::Serialize;
use std::sync::Mutex;
use uflip_analysis::trace::{TraceIo, of_records};
use uflip_device::{Arrival, Bytes, Chunk, Device, Io, IoRecord, Mode, Nanos, Recorder, RunLimits};
use uflip_sim::SimDevice;

/// IOs with which a device is written once before the replay.
const FILL: u64 = 1 << 20;

#[derive(Default)]
struct Records(Mutex<Vec<IoRecord>>);

impl Recorder for Records {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(4096)
    }
    fn finish(&self, last: Chunk) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(last);
    }
}

/// Writes all of `device` once, in order.
///
/// # Errors
/// What the device says.
pub fn fill(device: &mut SimDevice) -> anyhow::Result<()> {
    let capacity = Device::geometry(device).capacity.0;
    let ios = (0..capacity / FILL).map(|at| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(at * FILL),
        size: FILL as u32,
        mode: Mode::Write,
        pattern: 0,
    });
    run(device, Box::new(ios)).map(|_| ())
}

/// How a trace is to be replayed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replay {
    /// Addresses beyond the device's end start again at 0.
    pub wrap: bool,
    /// IOs are due at the trace's instants.
    pub open_loop: bool,
}

/// A trace with the response times of a device.
pub struct Replayed {
    /// Each IO, without its wait for those before.
    pub ios: Vec<TraceIo>,
    /// `None` in a closed loop.
    pub late: Option<FellBehind>,
}

/// How long after their instants the IOs of an open loop went to the device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FellBehind {
    /// All IOs.
    pub ios: u64,
    /// Those that went to it later than at their instants.
    pub late_ios: u64,
    /// Over all IOs, in ns.
    pub mean_ns: f64,
    /// The latest, in ns.
    pub max_ns: u64,
    /// How late the last one was, in ns.
    pub last_ns: u64,
}

/// `None` where there are no instants.
fn fell_behind(records: &[IoRecord]) -> Option<FellBehind> {
    let late: Vec<u64> = records.iter().map(|r| r.late().map(|late| late.0)).collect::<Option<_>>()?;
    let sum: f64 = late.iter().map(|ns| *ns as f64).sum();
    Some(FellBehind {
        ios: late.len() as u64,
        late_ios: late.iter().filter(|ns| **ns > 0).count() as u64,
        mean_ns: sum / late.len().max(1) as f64,
        max_ns: late.iter().copied().max()?,
        last_ns: *late.last()?,
    })
}

/// The trace as it goes to a device: which IO of the trace, and how.
fn ios(trace: &[TraceIo], capacity: u64, sector: u64, how: Replay) -> anyhow::Result<Vec<Io>> {
    let mut all = Vec::with_capacity(trace.len());
    let mut free = Nanos::ZERO;
    let began = trace.first().map_or(Nanos::ZERO, |io| io.at);
    for io in trace {
        let mut offset = io.offset;
        if io.mode == Mode::Flush {
            offset = 0;
        } else if io.size == 0 {
            continue;
        } else if offset.saturating_add(u64::from(io.size)) > capacity {
            if !how.wrap || u64::from(io.size) > capacity {
                bail!(
                    "the trace reaches {}, the simulated device has {}; type --wrap to start again at 0, or a \
                     larger device",
                    Bytes(offset.saturating_add(u64::from(io.size))),
                    Bytes(capacity)
                );
            }
            offset = (offset % capacity).min(capacity - u64::from(io.size)) / sector * sector;
        }
        if !(offset | u64::from(io.size)).is_multiple_of(sector) {
            bail!(
                "the trace has an IO of {} bytes at {offset}; the simulated device has sectors of {sector} bytes",
                io.size
            );
        }
        let wait = io.response.map_or(Nanos::ZERO, |_| io.at.saturating_sub(free));
        free = free.max(io.at + io.response.unwrap_or_default());
        let arrival =
            if how.open_loop { Arrival::At(io.at.saturating_sub(began)) } else { Arrival::After(wait) };
        all.push(Io { arrival, offset: Bytes(offset), size: io.size, mode: io.mode, pattern: 0 });
    }
    Ok(all)
}

fn run(device: &mut SimDevice, stream: uflip_device::Stream) -> anyhow::Result<Vec<IoRecord>> {
    let records = Records::default();
    let end = device.run(vec![stream], &records, RunLimits { time: None, stop: &STOP, sequence: None })?;
    if end.interrupted {
        bail!("interrupted");
    }
    Ok(records.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// The trace with the response times that `device` needs.
///
/// # Errors
/// Where the trace does not fit on the device.
pub fn replay(trace: &[TraceIo], device: &mut SimDevice, how: Replay) -> anyhow::Result<Replayed> {
    let geometry = Device::geometry(device);
    let ios = ios(trace, geometry.capacity.0, geometry.sector.0, how)?;
    let records = run(device, Box::new(ios.into_iter()))?;
    Ok(Replayed { ios: of_records(&records), late: fell_behind(&records) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(at_us: u64, offset: u64, response_us: Option<u64>) -> TraceIo {
        let response = response_us.map(Nanos::from_micros);
        TraceIo { at: Nanos::from_micros(at_us), offset, size: 4096, mode: Mode::Write, response }
    }

    #[test]
    fn think_time_stays_and_overlap_goes() {
        let trace = [io(0, 0, Some(100)), io(50, 4096, Some(100)), io(400, 8192, Some(10))];
        let waits: Vec<u64> = ios(&trace, 1 << 20, 512, Replay::default())
            .unwrap()
            .iter()
            .map(|i| i.arrival.due(Nanos::ZERO).0)
            .collect();
        assert_eq!(waits, [0, 0, 250_000]);
        let without: Vec<TraceIo> = trace.iter().map(|i| TraceIo { response: None, ..*i }).collect();
        assert!(
            ios(&without, 1 << 20, 512, Replay::default())
                .unwrap()
                .iter()
                .all(|i| i.arrival == Arrival::CONSECUTIVE)
        );
    }

    #[test]
    fn an_open_loop_has_the_traces_instants() {
        let trace = [io(100, 0, Some(100)), io(150, 4096, Some(100)), io(500, 8192, None)];
        let how = Replay { open_loop: true, ..Replay::default() };
        let arrivals: Vec<Arrival> =
            ios(&trace, 1 << 20, 512, how).unwrap().iter().map(|i| i.arrival).collect();
        assert_eq!(arrivals, [0, 50, 400].map(|us| Arrival::At(Nanos::from_micros(us))));
        let mut device = uflip_sim::open("mtron", 1).unwrap();
        let took = replay(&trace, &mut device, how).unwrap().ios;
        assert!(took.windows(2).all(|w| w[1].at >= w[0].at + w[0].response.unwrap()), "one after the other");
        assert!(took[2].at >= Nanos::from_micros(400), "not before its instant");
    }

    /// Ten IOs of the same kind a 50th of their time apart: number i is late by i times 49/50.
    #[test]
    fn what_the_device_falls_behind_is_told_exactly() {
        let fresh = || uflip_sim::open("mtron", 1).unwrap();
        let read = |at: u64, i: u64| TraceIo { at: Nanos(at), offset: 0, mode: Mode::Read, ..io(0, i, None) };
        let trace = |gap: u64| (0..10).map(|i| read(i * gap, i)).collect::<Vec<_>>();
        let how = Replay { open_loop: true, ..Replay::default() };
        let closed = replay(&trace(0), &mut fresh(), Replay::default()).unwrap();
        assert_eq!(closed.late, None);
        let took: Vec<u64> = closed.ios.iter().map(|io| io.response.unwrap().0).collect();
        // Back to back: late by what those before took, less the instants.
        let gap = took.iter().min().unwrap() / 50;
        let mut late = Vec::new();
        took.iter().fold(0u64, |free, took| {
            late.push(free - late.len() as u64 * gap);
            free + took
        });
        let found = replay(&trace(gap), &mut fresh(), how).unwrap().late.unwrap();
        assert_eq!((found.ios, found.late_ios), (10, 9));
        // A record keeps what the device took to 14 significant bits, and what is less is late.
        let kept = |found: u64, told: u64| (told..=told + took[9] / 8192 + 1).contains(&found);
        assert!(kept(found.max_ns, late[9]) && kept(found.last_ns, late[9]), "{found:?} {late:?}");
        assert!(kept(found.mean_ns as u64, late.iter().sum::<u64>() / 10), "{found:?} {late:?}");
        let slow = replay(&trace(10 * took.iter().max().unwrap()), &mut fresh(), how).unwrap().late.unwrap();
        assert_eq!((slow.ios, slow.late_ios, slow.max_ns), (10, 0, 0));
    }

    #[test]
    fn what_does_not_fit_is_said_or_wrapped() {
        let trace = [io(0, 3 << 20, None)];
        let error = ios(&trace, 1 << 20, 512, Replay::default()).unwrap_err().to_string();
        assert!(error.contains("--wrap"), "{error}");
        assert_eq!(
            ios(&trace, 1 << 20, 512, Replay { wrap: true, ..Replay::default() }).unwrap()[0].offset,
            Bytes(0)
        );
        let last = [io(0, (1 << 20) - 512, None)];
        assert_eq!(
            ios(&last, 1 << 20, 512, Replay { wrap: true, ..Replay::default() }).unwrap()[0].offset,
            Bytes((1 << 20) - 4096)
        );
        assert!(
            ios(&[io(0, 100, None)], 1 << 20, 512, Replay::default()).is_err(),
            "no multiple of a sector"
        );
    }
}
