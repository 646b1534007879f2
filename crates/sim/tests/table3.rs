//! Table 3 of the uFLIP paper on the simulated devices, cell beside cell.
//!
//! A small measuring helper runs the patterns through `Device::run` alone and
//! knows nothing of the models. Protocol: random state enforcement (IOs of 0.5
//! to 128 KB over the whole device), then each pattern on its own region with
//! idle time before it; 32 KB IOs; 1,024 IOs (5,120 for random writes) on
//! SSDs, 512 on small devices; the start-up phase is left out.
//!
//! `cargo test --release -p uflip-sim --test table3 -- --nocapture` prints all.

use std::fmt::Write as _;
use std::sync::Mutex;
use uflip_device::rng::Rng;
use uflip_device::{Bytes, Chunk, Device, Io, IoRecord, Mode, Nanos, Recorder, RunLimits, Stop};
use uflip_sim::SimDevice;

const IO: u64 = 32768;
const MIB: u64 = 1 << 20;

#[derive(Default)]
struct Keep(Mutex<Vec<IoRecord>>);

impl Recorder for Keep {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(1024)
    }
    fn finish(&self, last: Chunk) {
        self.0.lock().unwrap().extend(last);
    }
}

/// One row of Table 3; `None` is a blank or "No".
struct Row {
    key: &'static str,
    base_ms: [f64; 4],
    pause_ms: Option<f64>,
    locality: Option<(f64, f64)>,
    partitions: (u64, f64),
    reverse: f64,
    in_place: f64,
    large_incr: f64,
    /// Is it an SSD of paper 001's "1,024 and 5,120" class?
    ssd: bool,
}

#[rustfmt::skip]
const TABLE: [Row; 7] = [
    Row { key: "memoright", base_ms: [0.3, 0.4, 0.3, 5.0], pause_ms: Some(5.0), locality: Some((8.0, 1.0)), partitions: (8, 1.0), reverse: 1.0, in_place: 1.0, large_incr: 4.0, ssd: true },
    Row { key: "mtron", base_ms: [0.4, 0.5, 0.4, 9.0], pause_ms: Some(9.0), locality: Some((8.0, 2.0)), partitions: (4, 1.5), reverse: 1.0, in_place: 1.0, large_incr: 2.0, ssd: true },
    Row { key: "samsung", base_ms: [0.5, 0.5, 0.6, 18.0], pause_ms: None, locality: Some((16.0, 1.5)), partitions: (4, 2.0), reverse: 1.5, in_place: 0.6, large_incr: 2.0, ssd: true },
    Row { key: "transcend-module", base_ms: [1.2, 1.3, 1.7, 18.0], pause_ms: None, locality: Some((4.0, 2.0)), partitions: (4, 2.0), reverse: 3.0, in_place: 2.0, large_incr: 2.0, ssd: false },
    Row { key: "transcend-mlc", base_ms: [1.4, 3.0, 2.6, 233.0], pause_ms: None, locality: Some((4.0, 1.0)), partitions: (4, 2.0), reverse: 2.0, in_place: 2.0, large_incr: 1.0, ssd: true },
    Row { key: "kingston-dthx", base_ms: [1.3, 1.5, 1.8, 270.0], pause_ms: None, locality: Some((16.0, 20.0)), partitions: (8, 20.0), reverse: 7.0, in_place: 6.0, large_incr: 1.0, ssd: false },
    Row { key: "kingston-dti", base_ms: [1.9, 2.2, 2.9, 256.0], pause_ms: None, locality: None, partitions: (4, 5.0), reverse: 8.0, in_place: 40.0, large_incr: 1.0, ssd: false },
];

/// A device in its random state, and where the next pattern goes.
struct Bench {
    device: SimDevice,
    capacity: u64,
    next_region: u64,
    count: u64,
    rw_count: u64,
    ignore: usize,
}

impl Bench {
    fn new(row: &Row) -> Bench {
        let device = uflip_sim::open(row.key, 1).unwrap();
        let capacity = Device::geometry(&device).capacity.0;
        let (count, rw_count) = if row.ssd { (1024, 5120) } else { (512, 512) };
        let ignore = match row.key {
            "memoright" => 30,
            "mtron" => 128,
            _ => 0,
        };
        let mut bench = Bench { device, capacity, next_region: 0, count, rw_count, ignore };
        bench.random_state();
        bench
    }

    fn random_state(&mut self) {
        let mut rng = Rng::new(42);
        let (mut left, space) = (self.capacity, self.capacity);
        let ios = std::iter::from_fn(move || {
            let size = (rng.below(256) + 1) * 512;
            left = left.checked_sub(size)?;
            let offset = rng.below((space - size) / 512 + 1) * 512;
            Some(Io {
                wait: Nanos::ZERO,
                offset: Bytes(offset),
                size: size as u32,
                mode: Mode::Write,
                pattern: 0,
            })
        });
        let stop = Stop::new();
        struct Drop;
        impl Recorder for Drop {
            fn fresh(&self) -> Chunk {
                Vec::with_capacity(4096)
            }
            fn exchange(&self, mut full: Chunk) -> Chunk {
                full.clear();
                full
            }
            fn finish(&self, _: Chunk) {}
        }
        self.device.run(vec![Box::new(ios)], &Drop, RunLimits { time: None, stop: &stop }).unwrap();
    }

    /// A region of `bytes` not written sequentially before, on a 16 MB border.
    fn region(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.next_multiple_of(16 * MIB);
        if self.next_region + bytes > self.capacity {
            self.next_region = 0;
        }
        let at = self.next_region;
        self.next_region += bytes;
        at
    }

    /// Response times in ms of IOs at the given offsets, after a pause.
    fn trace(&mut self, mode: Mode, wait: Nanos, offsets: Vec<u64>) -> Vec<f64> {
        let stop = Stop::new();
        self.device.idle(Nanos::from_secs(10), &stop);
        let keep = Keep::default();
        let ios = offsets.into_iter().map(move |at| Io {
            wait,
            offset: Bytes(at),
            size: IO as u32,
            mode,
            pattern: 0,
        });
        self.device.run(vec![Box::new(ios)], &keep, RunLimits { time: None, stop: &stop }).unwrap();
        keep.0.into_inner().unwrap().iter().map(|r| r.response().as_millis_f64()).collect()
    }

    fn mean(&mut self, mode: Mode, ignore: usize, offsets: Vec<u64>) -> f64 {
        let trace = self.trace(mode, Nanos::ZERO, offsets);
        trace[ignore..].iter().sum::<f64>() / (trace.len() - ignore) as f64
    }

    fn sequential(&mut self, mode: Mode) -> f64 {
        let (n, at) = (self.count, self.region(self.count * IO));
        self.mean(mode, 0, (0..n).map(|i| at + i * IO).collect())
    }

    fn random(&mut self, mode: Mode, at: u64, area: u64, count: u64, seed: u64) -> Vec<u64> {
        let _ = mode;
        let mut rng = Rng::new(seed);
        (0..count).map(|_| at + rng.below(area / IO) * IO).collect()
    }

    fn random_writes_in(&mut self, area: u64, seed: u64) -> f64 {
        let at = if area == self.capacity { 0 } else { self.region(area) };
        let offsets = self.random(Mode::Write, at, area, self.rw_count, seed);
        self.mean(Mode::Write, self.ignore, offsets)
    }

    fn partitioned(&mut self, partitions: u64) -> f64 {
        let (n, at) = (self.count, self.region(self.count * IO));
        let size = n * IO / partitions;
        self.mean(
            Mode::Write,
            0,
            (0..n).map(|i| at + (i % partitions) * size + (i / partitions * IO) % size).collect(),
        )
    }

    fn increment(&mut self, incr: u64) -> f64 {
        let n = self.count.min(512);
        let space = self.capacity;
        self.mean(Mode::Write, self.ignore.min(128), (0..n).map(|i| (i * incr * IO) % space).collect())
    }

    /// Smallest of a ladder of pauses at which random writes cost at most half
    /// as much again as sequential ones.
    fn pause(&mut self, sw: f64, rw: f64) -> Option<f64> {
        let ladder = [0.5, 0.7, 0.85, 1.0, 1.2, 1.45, 1.75];
        ladder.iter().map(|f| f * rw).find(|pause| {
            let offsets = self.random(Mode::Write, 0, self.capacity, 1024, 77);
            let trace = self.trace(Mode::Write, Nanos((pause * 1e6) as u64), offsets);
            trace[self.ignore..].iter().sum::<f64>() / ((1024 - self.ignore) as f64) < 1.5 * sw
        })
    }
}

/// Cells compared, with the largest deviation.
#[derive(Default)]
struct Score {
    text: String,
    cells: usize,
    within_quarter: usize,
    worst: f64,
}

impl Score {
    /// `step` is half the last printed digit: inside it there is no error.
    fn cell(&mut self, name: &str, ours: f64, paper: f64, step: f64) {
        let error = if (ours - paper).abs() <= step { 0.0 } else { (ours / paper).ln().abs() };
        self.cells += 1;
        self.within_quarter += usize::from(error <= 1.25f64.ln());
        self.worst = self.worst.max(error);
        let mark = match error {
            e if e <= 1.25f64.ln() => ' ',
            e if e <= 2.0f64.ln() => '-',
            _ => '!',
        };
        let _ = writeln!(self.text, "  {name:14} ours {ours:9.3}  paper {paper:8.2}  |ln| {error:.2} {mark}");
    }

    fn agree(&mut self, name: &str, agrees: bool) {
        self.cells += 1;
        self.within_quarter += usize::from(agrees);
        let _ = writeln!(
            self.text,
            "  {name:14} {}",
            if agrees { "as in the paper" } else { "NOT as in the paper -" }
        );
        if !agrees {
            self.worst = self.worst.max(2.0f64.ln());
        }
    }
}

fn measure(row: &Row) -> Score {
    let mut score = Score::default();
    let mut b = Bench::new(row);
    let all = b.capacity;
    let sr = b.sequential(Mode::Read);
    let offsets = b.random(Mode::Read, 0, all, b.count, 3);
    let rr = b.mean(Mode::Read, 0, offsets);
    let sw = b.sequential(Mode::Write);
    let rw = b.random_writes_in(all, 5);
    for (name, ours, paper) in [
        ("SR", sr, row.base_ms[0]),
        ("RR", rr, row.base_ms[1]),
        ("SW", sw, row.base_ms[2]),
        ("RW", rw, row.base_ms[3]),
    ] {
        score.cell(name, ours, paper, if paper >= 5.0 { 0.5 } else { 0.05 });
    }
    let pause = b.pause(sw, rw);
    match (pause, row.pause_ms) {
        (Some(ours), Some(paper)) => score.cell("pause", ours, paper, 0.5),
        (ours, paper) => score.agree("pause", ours.is_none() && paper.is_none()),
    }
    let curve: Vec<(u64, f64)> = (0..8).map(|k| (MIB << k, b.random_writes_in(MIB << k, 10 + k))).collect();
    // The area in which the cost stays within the printed factor, or is at all
    // nearer to that of sequential writes.
    let most = row.locality.map_or((sw * rw).sqrt(), |(_, factor)| 1.3 * factor * sw);
    let cheap = curve.iter().rev().find(|(_, cost)| *cost <= most).map(|(area, _)| *area);
    match row.locality {
        Some((area, factor)) => {
            let at = curve.iter().find(|(a, _)| *a == (area as u64) * MIB).map_or(0.0, |(_, c)| *c);
            match cheap {
                Some(ours) => score.cell("locality MB", ours as f64 / MIB as f64, area, 0.0),
                None => score.agree("locality MB", false),
            }
            score.cell("locality x", at / sw, factor, 0.25);
        }
        None => score.agree("locality", cheap.is_none()),
    }
    let curve_text: Vec<String> = curve.iter().map(|(a, c)| format!("{}M {:.1}", a / MIB, c / sw)).collect();
    let before = b.device.merges();
    let parts: Vec<(u64, f64)> = (1..=4).map(|k| (1 << k, b.partitioned(1 << k) / sw)).collect();
    let (count, factor) = row.partitions;
    let at = parts.iter().find(|(p, _)| *p == count).map_or(0.0, |(_, f)| *f);
    score.cell("partitions x", at, factor, 0.25);
    let n = b.count;
    let at = b.region(n * IO);
    let reverse = b.mean(Mode::Write, 0, (0..n).rev().map(|i| at + i * IO).collect());
    score.cell("reverse x", reverse / sw, row.reverse, 0.25);
    let at = b.region(n * IO);
    let in_place = b.mean(Mode::Write, 0, vec![at; n as usize]);
    let half = if row.in_place < 1.0 { 0.05 } else { 0.25 };
    score.cell("in-place x", in_place / sw, row.in_place, half);
    let incr: Vec<f64> = [32, 64, 128, 256].map(|incr| b.increment(incr) / rw).to_vec();
    score.cell("large incr x", incr.iter().copied().fold(0.0, f64::max), row.large_incr, 0.25);
    let _ = writeln!(score.text, "  area: {}", curve_text.join(", "));
    let _ = writeln!(score.text, "  partitions: {parts:.2?}, increments of 1, 2, 4, 8 MB: {incr:.2?}");
    let _ = writeln!(score.text, "  {before:?}\n  {:?}", b.device.merges());
    score
}

#[test]
fn table_3_is_reproduced() {
    let scores: Vec<(&str, Score)> = TABLE.iter().map(|row| (row.key, measure(row))).collect();
    let (mut cells, mut good) = (0, 0);
    for (key, score) in &scores {
        println!("{key}\n{}", score.text);
        cells += score.cells;
        good += score.within_quarter;
    }
    println!("{good} of {cells} cells within a factor 1.25");
    assert!(good * 100 >= cells * 90, "{good} of {cells} cells within a factor 1.25");
    for (key, score) in &scores {
        // docs/catalogue.md says why single cells go further than 1.25.
        assert!(score.worst <= 2.0f64.ln(), "{key}: a cell is off by more than a factor 2");
    }
}
