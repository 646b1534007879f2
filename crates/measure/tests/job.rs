//! Jobs and the logical block on devices whose truth is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use uflip_device::{
    Bytes, Chunk, Device, DeviceError, Geometry, IoRecord, Mode, Nanos, Recorder, RunEnd, RunLimits, Stop,
    Stream,
};
use uflip_measure::Control;
use uflip_measure::job::{self, Throughputs};
use uflip_measure::logical_block::{self, Mean};
use uflip_measure::run::{RtStats, RunOutcome, RunSpec, RunStats, Sink, SinkError};

/// One open logical block: a write costs S/B, and T_merge on top where it
/// enters another logical block. Reads cost S/B.
struct OneLogBlock {
    capacity: u64,
    block: u64,
    merge_ns: u64,
    ns_per_kib: u64,
    latency_ns: u64,
    open: Option<u64>,
    clock: u64,
    runs: u32,
    virtual_time: bool,
}

impl OneLogBlock {
    fn new(capacity: u64, block: u64, merge_ns: u64, ns_per_kib: u64) -> OneLogBlock {
        OneLogBlock {
            capacity,
            block,
            merge_ns,
            ns_per_kib,
            latency_ns: 0,
            open: None,
            clock: 0,
            runs: 0,
            virtual_time: true,
        }
    }

    fn cost(&mut self, io: &uflip_device::Io) -> u64 {
        let mut ns = self.latency_ns + u64::from(io.size) * self.ns_per_kib / 1024;
        if io.mode == Mode::Write {
            let (first, last) =
                (io.offset.0 / self.block, (io.offset.0 + u64::from(io.size) - 1) / self.block);
            for block in first..=last {
                if self.open != Some(block) {
                    ns += self.merge_ns;
                    self.open = Some(block);
                }
            }
        }
        ns
    }
}

impl Device for OneLogBlock {
    fn geometry(&self) -> Geometry {
        Geometry { capacity: Bytes(self.capacity), sector: Bytes(512) }
    }
    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        self.runs += 1;
        let start = self.clock;
        let (mut end, mut chunk) = (RunEnd::default(), recorder.fresh());
        for io in streams.into_iter().flatten() {
            let submit = self.clock - start;
            end.time_limit_hit = limits.time.is_some_and(|t| submit >= t.0);
            if end.time_limit_hit {
                break;
            }
            let ns = self.cost(&io);
            self.clock += ns;
            chunk.push(IoRecord::new(&io, 0, Nanos(submit), Nanos(ns)));
            if chunk.len() == chunk.capacity() {
                chunk = recorder.exchange(chunk);
            }
            end.ios += 1;
        }
        recorder.finish(chunk);
        end.elapsed = Nanos(self.clock - start);
        Ok(end)
    }
    fn idle(&mut self, pause: Nanos, _: &Stop) {
        self.clock += pause.0;
    }
    fn now(&self) -> Nanos {
        Nanos(self.clock)
    }
    fn is_virtual(&self) -> bool {
        self.virtual_time
    }
}

#[derive(Default)]
struct Records(Mutex<Vec<IoRecord>>);

impl Recorder for Records {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(4096)
    }
    fn finish(&self, last: Chunk) {
        self.0.lock().unwrap().extend(last);
    }
}

/// Keeps means; runs in `kept` are there already.
#[derive(Default)]
struct Memory {
    kept: BTreeSet<u32>,
    done: Vec<(u32, String, u64)>,
    means: BTreeMap<u32, Mean>,
    recorder: Records,
}

impl Sink for Memory {
    fn has(&self, id: u32) -> bool {
        self.kept.contains(&id)
    }
    fn begin(&mut self, _: &RunSpec) -> Result<(), SinkError> {
        self.recorder.0.lock().unwrap().clear();
        Ok(())
    }
    fn recorder(&self) -> &dyn Recorder {
        &self.recorder
    }
    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError> {
        let ns: Vec<f64> = self.recorder.0.lock().unwrap().iter().map(|r| r.response().0 as f64).collect();
        let n = ns.len() as f64;
        let mean = ns.iter().sum::<f64>() / n;
        let sd = (ns.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        let stats = RtStats {
            n: outcome.end.ios,
            min_ns: None,
            max_ns: None,
            mean_ns: Some(mean),
            sd_ns: Some(sd).filter(|sd| sd.is_finite()),
            p50_ns: None,
            p90_ns: None,
            p95_ns: None,
            p99_ns: None,
            p999_ns: None,
            p9999_ns: None,
        };
        self.means.extend(Mean::of(&stats).map(|mean| (run.id, mean)));
        self.done.push((run.id, run.work.to_string(), outcome.end.ios));
        self.kept.insert(run.id);
        Ok(RunStats {
            running: stats.clone(),
            all: stats,
            by_pattern: Vec::new(),
            by_mode: Vec::new(),
            late: None,
        })
    }
    fn abandon(&mut self) {}
}

fn drive(text: &str, device: &mut OneLogBlock, sink: &mut Memory) -> (job::JobPlan, Throughputs) {
    let job = job::parse(text).unwrap();
    let planned = job::expand(&job, "fake", device.geometry(), 3).unwrap();
    let stop = Stop::new();
    let control = Control { stop: &stop, budget: None, unix_now: || 0 };
    let mut kept = Throughputs::new();
    job::drive(&planned, device, sink, &mut kept, control, &mut |_| {}).unwrap();
    (planned, kept)
}

/// Finds 256 KiB, 4 MiB and 8 MiB, whichever amount is written.
#[test]
fn the_logical_block_is_found() {
    for block in [256 << 10, 4 << 20, 8 << 20] {
        let mut device = OneLogBlock::new(256 << 20, block, 30_000_000, 12_000);
        let amounts = [Bytes(128 << 20), Bytes(256 << 20)];
        let job = logical_block::job(&amounts, Bytes(64 << 20)).unwrap();
        let planned = logical_block::plan(&job, "fake", device.geometry(), 5).unwrap();
        let (stop, mut sink, mut kept) = (Stop::new(), Memory::default(), Throughputs::new());
        let control = Control { stop: &stop, budget: None, unix_now: || 0 };
        job::drive(&planned, &mut device, &mut sink, &mut kept, control, &mut |_| {}).unwrap();
        for (line, amount) in logical_block::lines(&planned).into_iter().zip(&amounts) {
            let found = logical_block::evaluate(&planned, &sink.means, line);
            assert_eq!(found.by_statistics, Some(Bytes(block)), "{found:#?}");
            assert_eq!(found.logical_block_bytes, Some(Bytes(block)));
            assert_eq!(found.bytes_per_pass, *amount);
        }
    }
}

/// Where nothing merges, the first size is the answer; where nothing is ever
/// equal, there is none.
#[test]
fn no_logical_block_is_no_answer() {
    let none = logical_block::judge(Bytes(1 << 30), Vec::new());
    assert_eq!(none.logical_block_bytes, None);
    let mut device = OneLogBlock::new(64 << 20, 64 << 20, 0, 12_000);
    let job = logical_block::job(&[Bytes(16 << 20)], Bytes(1 << 20)).unwrap();
    let planned = logical_block::plan(&job, "fake", device.geometry(), 5).unwrap();
    let (stop, mut sink, mut kept) = (Stop::new(), Memory::default(), Throughputs::new());
    let control = Control { stop: &stop, budget: None, unix_now: || 0 };
    job::drive(&planned, &mut device, &mut sink, &mut kept, control, &mut |_| {}).unwrap();
    let found = logical_block::evaluate(&planned, &sink.means, logical_block::lines(&planned)[0]);
    assert_eq!(found.logical_block_bytes, Some(Bytes(4096)));
}

/// 1 ms an IO and 1 ms a MiB: from s to 2s throughput grows by 1 / (1 + 2s),
/// with s in MiB: 3.03 % from 16M to 32M, 1.54 % from 32M to 64M, which ends it.
#[test]
fn self_scaling_stops_where_throughput_does() {
    let mut device = OneLogBlock::new(2 << 30, 1 << 20, 0, 1_000_000 / 1024);
    device.latency_ns = 1_000_000;
    let last = |percent: &str, device: &mut OneLogBlock| {
        let text = format!("a sr bs=256K..1M count=8 until={percent}");
        let (planned, kept) = drive(&text, device, &mut Memory::default());
        kept.keys().map(|id| planned.runs().find(|(run, _)| run == id).unwrap().1.block).max()
    };
    assert_eq!(last("2.5%", &mut device), Some(Bytes(64 << 20)));
    assert_eq!(last("10%", &mut device), Some(Bytes(16 << 20)));
    assert_eq!(last("40%", &mut device), Some(Bytes(2 << 20)));
    assert_eq!(last("90%", &mut device), Some(Bytes(1 << 20)), "not below the line's own sizes");
}

/// After an interruption between a fill and its runs the fill is done again,
/// unkept; on a device in virtual time, of which nothing is left, all is.
#[test]
fn what_comes_before_is_done_again_on_resume() {
    let text = "a sr,sw bs=4K count=4 before=fill(1M)";
    for (virtual_time, runs) in [(false, 2), (true, 3)] {
        let mut device = OneLogBlock::new(4 << 20, 1 << 20, 1000, 1000);
        device.virtual_time = virtual_time;
        let mut sink = Memory { kept: [0, 1].into(), ..Memory::default() };
        drive(text, &mut device, &mut sink);
        assert_eq!(sink.done.iter().map(|d| d.0).collect::<Vec<_>>(), [2]);
        assert_eq!(device.runs, runs, "the fill again, then the missing run");
    }
    let mut device = OneLogBlock::new(4 << 20, 1 << 20, 1000, 1000);
    let mut sink = Memory { kept: [0, 1, 2].into(), ..Memory::default() };
    drive(text, &mut device, &mut sink);
    assert_eq!(device.runs, 0, "nothing is missing");
}

/// Random accesses repeat no address before all were used, sequential ones
/// start at a random multiple of the block size and wrap.
#[test]
fn addresses_are_the_papers() {
    let mut device = OneLogBlock::new(4 << 20, 1 << 20, 1000, 1000);
    let mut sink = Memory::default();
    drive("a rw bs=4K count=1024", &mut device, &mut sink);
    let offsets: BTreeSet<u64> = sink.recorder.0.lock().unwrap().iter().map(|r| r.offset().0).collect();
    assert_eq!(offsets.len(), 1024);
    let mut sink = Memory::default();
    drive("a sw bs=4K count=1024", &mut device, &mut sink);
    let offsets: Vec<u64> = sink.recorder.0.lock().unwrap().iter().map(|r| r.offset().0).collect();
    assert!(offsets[0] > 0 && offsets[0].is_multiple_of(4096));
    assert_eq!(offsets.iter().collect::<BTreeSet<_>>().len(), 1024);
    assert!(offsets.windows(2).filter(|w| w[1] != w[0] + 4096).count() == 1, "wraps once");
}
