//! A device that answers at once: the same timed loop as the synchronous
//! engine, around nothing. What it measures is the tool itself.

use crate::buffer::{Data, IoBuffer};
use crate::clock::{Epoch, clock_source, wait_until};
use crate::device::{Chunk, Device, DeviceError, Geometry, Recorder, RunEnd, RunLimits, Stop, Stream};
use crate::io::{Arrival, Io, IoRecord, Mode};
use crate::stamp::Key;
use crate::sync::{NoTarget, Shared, Worker, stream_loop};
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// The null device.
pub struct NullDevice {
    geometry: Geometry,
    epoch: Epoch,
    workers: Vec<Worker<NoTarget>>,
}

impl NullDevice {
    /// A null device of this capacity, with 512-byte sectors.
    pub fn new(capacity: Bytes) -> NullDevice {
        let geometry = Geometry { capacity, sector: Bytes(512) };
        NullDevice { geometry, epoch: Epoch::start(), workers: Vec::new() }
    }
}

impl Device for NullDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        while self.workers.len() < streams.len() {
            let buffer = IoBuffer::new(1 << 20, Data::Zeros, Key::DEVICE, 0, self.workers.len() as u64);
            self.workers.push(Worker { target: NoTarget, buffer });
        }
        Shared::new(recorder, limits).run_all(streams, &mut self.workers, false, stream_loop)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        wait_until(&self.epoch, self.epoch.now() + pause, stop);
    }

    fn now(&self) -> Nanos {
        self.epoch.now()
    }

    fn is_virtual(&self) -> bool {
        false
    }
}

/// A recorder that keeps everything in memory: for tests and for measuring the
/// tool's own overhead.
pub struct KeepAll {
    chunk: usize,
    kept: Mutex<Vec<Chunk>>,
}

impl KeepAll {
    /// Chunks of `chunk` records.
    pub fn new(chunk: usize) -> KeepAll {
        KeepAll { chunk, kept: Mutex::new(Vec::new()) }
    }

    /// All records, in the order in which their chunks were handed over.
    ///
    /// # Panics
    /// Where a recording thread panicked.
    pub fn records(self) -> Vec<IoRecord> {
        self.kept.into_inner().expect("no recording thread panicked").concat()
    }
}

impl Recorder for KeepAll {
    fn fresh(&self) -> Chunk {
        // Touched, so that no page is faulted in while the clock runs.
        let mut chunk = vec![IoRecord::ZERO; self.chunk];
        std::hint::black_box(&mut chunk).clear();
        chunk
    }

    fn finish(&self, last: Chunk) {
        self.kept.lock().expect("no recording thread panicked").push(last);
    }
}

/// What measuring costs by itself, on this machine, now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// One reading of the clock, in ns: it is part of every response time.
    pub clock_read_ns: f64,
    /// Median response time that the null device shows, in ns.
    pub empty_io_response_ns: f64,
    /// Whole cost of an IO on the null device, in ns: pattern, clock, record.
    pub empty_io_total_ns: f64,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
}

/// Measures the tool's own overhead: takes about 20 ms.
pub fn measure_overhead() -> Overhead {
    const READS: u64 = 50_000;
    const IOS: u64 = 100_000;
    let epoch = Epoch::start();
    let mut batches: Vec<f64> = (0..9)
        .map(|_| {
            let start = epoch.now();
            for _ in 0..READS / 9 {
                std::hint::black_box(epoch.now());
            }
            (epoch.now().0 - start.0) as f64 / (READS / 9) as f64
        })
        .collect();
    batches.sort_by(f64::total_cmp);

    let io = Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 4096, mode: Mode::Read, pattern: 0 };
    let stream: Stream = Box::new(std::iter::repeat_n(io, IOS as usize));
    let keep = KeepAll::new(IOS as usize);
    let stop = Stop::new();
    let end = NullDevice::new(Bytes(1 << 30))
        .run(vec![stream], &keep, RunLimits { time: None, stop: &stop, sequence: None })
        .expect("the null device cannot fail");
    let mut responses: Vec<u64> = keep.records().iter().map(|r| r.response().0).collect();
    responses.sort_unstable();
    Overhead {
        clock_read_ns: batches[batches.len() / 2],
        empty_io_response_ns: responses[responses.len() / 2] as f64,
        empty_io_total_ns: end.elapsed.0 as f64 / end.ios as f64,
        clock_source: clock_source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(n: u64) -> Stream {
        Box::new((0..n).map(|i| Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(i * 4096),
            size: 4096,
            mode: Mode::Read,
            pattern: 0,
        }))
    }

    #[test]
    fn every_io_is_recorded_in_order_across_chunks() {
        let keep = KeepAll::new(7);
        let stop = Stop::new();
        let end = NullDevice::new(Bytes(1 << 30))
            .run(vec![reads(100)], &keep, RunLimits { time: None, stop: &stop, sequence: None })
            .unwrap();
        let records = keep.records();
        assert_eq!((end.ios, records.len()), (100, 100));
        assert!(records.iter().enumerate().all(|(i, r)| r.offset().0 == i as u64 * 4096));
        assert!(records.windows(2).all(|w| w[0].submit() + w[0].response() <= w[1].submit()));
        assert!(!end.time_limit_hit && !end.interrupted);
    }

    #[test]
    fn parallel_streams_are_told_apart() {
        let keep = KeepAll::new(16);
        let stop = Stop::new();
        let limits = RunLimits { time: None, stop: &stop, sequence: None };
        let end =
            NullDevice::new(Bytes(1 << 30)).run((0..4).map(|_| reads(50)).collect(), &keep, limits).unwrap();
        assert_eq!(end.ios, 200);
        let records = keep.records();
        for stream in 0..4 {
            let of: Vec<u64> =
                records.iter().filter(|r| r.stream() == stream).map(|r| r.offset().0 / 4096).collect();
            assert_eq!(of, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_time_limit_ends_an_endless_stream_and_is_said() {
        let io = Io {
            arrival: Arrival::After(Nanos::from_micros(100)),
            offset: Bytes(0),
            size: 512,
            mode: Mode::Read,
            pattern: 0,
        };
        let keep = KeepAll::new(1 << 16);
        let stop = Stop::new();
        let limits = RunLimits { time: Some(Nanos::from_millis(5)), stop: &stop, sequence: None };
        let end = NullDevice::new(Bytes(1 << 30))
            .run(vec![Box::new(std::iter::repeat(io))], &keep, limits)
            .unwrap();
        assert!(end.time_limit_hit && end.ios > 0 && end.ios <= 51, "{end:?}");
        let records = keep.records();
        assert!(records.windows(2).all(|w| w[1].submit() >= w[0].completion() + Nanos::from_micros(100)));
    }

    #[test]
    fn asked_twice_a_run_ends_at_once() {
        let stop = Stop::new();
        stop.ask();
        assert!(stop.after_this_run() && !stop.now());
        stop.ask();
        let keep = KeepAll::new(8);
        let limits = RunLimits { time: None, stop: &stop, sequence: None };
        let end = NullDevice::new(Bytes(1 << 30)).run(vec![reads(1000)], &keep, limits).unwrap();
        assert!(end.interrupted);
        assert_eq!(end.ios, 0);
    }

    #[test]
    fn overhead_is_measured_not_assumed() {
        // Ten measurements of ours against ten of the clock by itself: each is
        // the least, as what disturbs only adds.
        let reads = 10_000;
        let directly = || {
            let epoch = crate::clock::Epoch::start();
            for _ in 0..reads {
                std::hint::black_box(epoch.now());
            }
            epoch.now().0 as f64 / f64::from(reads)
        };
        let least = |of: &dyn Fn() -> f64| (0..10).map(|_| of()).fold(f64::INFINITY, f64::min);
        let (measured, direct) = (least(&|| measure_overhead().clock_read_ns), least(&directly));
        assert!((0.5..2.0).contains(&(measured / direct)), "{measured} ns measured, {direct} ns directly");
        let o = measure_overhead();
        assert!(o.empty_io_total_ns >= o.clock_read_ns, "{o:?}");
    }
}
