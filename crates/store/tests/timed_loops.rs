//! No timed loop allocates, locks, waits or starts a thread: for every engine, and
//! for long, parallel and mixed runs into a store.
//!
//! How: the streams themselves say when a loop is on its way (a stream's third IO
//! is asked for) and when its last IO goes out. In between a counting allocator
//! counts what the loop's thread allocates, and a system-call trace of this very
//! program shows what it asks of the kernel.

mod common;

use common::{manifest, plan};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use uflip_device::stamp::Key;
use uflip_device::{
    Buffering, Bytes, Chunk, Device, DeviceError, Engine, EngineOptions, Geometry, Io, Nanos, NullDevice,
    RealDevice, Recorder, RunLimits, Stop, Stream,
};
use uflip_measure::run::{RunOutcome, RunSpec, Sink, Work};
use uflip_store::{Durability, Store};

thread_local! {
    /// This thread is in a timed loop.
    static IN_LOOP: Cell<bool> = const { Cell::new(false) };
}
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

impl Counting {
    fn count() {
        if IN_LOOP.with(Cell::get) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Counting::count();
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations are counted for one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Set in the program under trace: the loops then say when they begin and end by
/// asking for files of these names.
const TRACED: &str = "UFLIP_TEST_TRACED";
const BEGINS: &str = "/uflip-loop-begins";
const ENDS: &str = "/uflip-loop-ends";

/// A stream that tells when it is on its way.
struct Told {
    ios: Stream,
    asked: u64,
    last: u64,
    traced: bool,
    counted: bool,
}

impl Told {
    #[cold]
    fn tell(&self, begins: bool) {
        IN_LOOP.with(|in_loop| in_loop.set(false));
        if self.traced {
            let _ = std::fs::metadata(if begins { BEGINS } else { ENDS });
        }
        IN_LOOP.with(|in_loop| in_loop.set(begins && self.counted));
    }
}

impl Iterator for Told {
    type Item = Io;
    fn next(&mut self) -> Option<Io> {
        self.asked += 1;
        if self.asked == 3 || self.asked == self.last {
            self.tell(self.asked == 3);
        }
        self.ios.next()
    }
}

/// The recorder of a simulated device: what it allocates is counted.
struct Counted<'a>(&'a dyn Recorder);

impl Recorder for Counted<'_> {
    fn fresh(&self) -> Chunk {
        self.0.fresh()
    }
    fn exchange(&self, full: Chunk) -> Chunk {
        IN_LOOP.with(|in_loop| in_loop.set(true));
        let empty = self.0.exchange(full);
        IN_LOOP.with(|in_loop| in_loop.set(false));
        empty
    }
    fn finish(&self, last: Chunk) {
        self.0.finish(last);
    }
}

const SIZE: u64 = 1 << 20;

fn on_file(path: &Path, engine: Engine) -> Box<dyn Device> {
    std::fs::write(path, vec![7; SIZE as usize]).expect("a file");
    let path = path.to_path_buf();
    let opener = Box::new(move || {
        let file = OpenOptions::new().read(true).write(true).open(&path);
        file.map_err(|e| DeviceError::Other(e.to_string()))
    });
    let options = EngineOptions { engine, buffering: Buffering::Buffered, ..EngineOptions::default() };
    let geometry = Geometry { capacity: Bytes(SIZE), sector: Bytes(512) };
    Box::new(RealDevice::new("file", geometry, options, Key::DEVICE, opener).expect("it opens"))
}

fn device(name: &str, folder: &Path) -> Box<dyn Device> {
    match name {
        "null" => Box::new(NullDevice::new(Bytes(SIZE))),
        "sync" => on_file(&folder.join("file"), Engine::Sync),
        "io_uring" => on_file(&folder.join("file"), Engine::IoUring { queue_depth: 8, poll: false }),
        simulated => Box::new(uflip_sim::open(simulated, 1).expect("a device of the catalogue")),
    }
}

/// Runs a pattern into a new store with a reserve of 1 MiB, 43,690 records; gives
/// how often a loop had to wait for a chunk.
fn run(engine: &str, pattern: &str, io_count: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("out");
    let mut store = Store::create(&dir, &manifest(), &plan()).expect("a store");
    store.set_durability(Durability::RELAXED);
    store.set_reserve(Bytes(1 << 20));
    let mut device = device(engine, folder.path());
    let spec =
        RunSpec { work: Work::Pattern(pattern.parse().expect("a pattern")), ..common::spec(0, io_count) };
    let traced = std::env::var_os(TRACED).is_some();
    let streams = spec.work.streams(io_count, 7).expect("streams").into_iter();
    let told = streams
        .map(|ios| {
            Box::new(Told { ios, asked: 0, last: io_count, traced, counted: engine != SIMULATED }) as Stream
        })
        .collect();
    store.begin(&spec).expect("begun");
    let stop = Stop::new();
    let limits = RunLimits { time: None, stop: &stop };
    let recorder: &dyn Recorder = match engine {
        SIMULATED => &Counted(store.recorder()),
        _ => store.recorder(),
    };
    let end = device.run(told, recorder, limits).expect("it runs");
    assert_eq!(end.ios, io_count * spec.work.stream_count() as u64);
    let outcome = RunOutcome {
        end,
        started: Nanos(0),
        started_unix_ns: Some(1),
        attempts: 1,
        probes: Default::default(),
    };
    store.commit(&spec, &outcome).expect("kept");
    drop(store);
    Store::open(&dir).expect("a store").runs[0].stalls.expect("counted")
}

/// Its model takes memory as it is written to, in the device's virtual time: of it
/// only what the recorder does is counted.
const SIMULATED: &str = "mtron";

const ENGINES: [&str; 4] = ["null", "sync", "io_uring", SIMULATED];

/// The text of each pattern, and the IOs of each stream.
const LONG: (&str, u64) = ("RW(io_size=4K, target_size=1M)", 40_000);
const LONGER: (&str, u64) = ("SR(io_size=4K, target_size=1M)", 120_000);
const PARALLEL: (&str, u64) = ("4 x RW(io_size=4K, target_size=1M)", 10_000);
const LONG_PARALLEL: (&str, u64) = ("4 x SW(io_size=4K, target_size=1M)", 30_000);
const MIXED: (&str, u64) =
    ("2 SR(io_size=4K, target_size=512K) / 1 RW(io_size=4K, target_size=512K)", 40_000);

#[test]
fn no_loop_allocates() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for engine in ENGINES {
        for (pattern, ios) in [LONG, LONGER, PARALLEL, LONG_PARALLEL, MIXED] {
            ALLOCATIONS.store(0, Ordering::Relaxed);
            run(engine, pattern, ios);
            let counted = ALLOCATIONS.load(Ordering::Relaxed);
            assert_eq!(counted, 0, "{engine}, {pattern}: allocations and releases within the loops");
        }
    }
}

/// What `no_loop_asks_the_kernel_for_more_than_its_ios` traces.
#[test]
#[ignore = "runs under the trace"]
fn under_the_trace() {
    for engine in ENGINES {
        for (pattern, ios) in [LONG, PARALLEL, MIXED] {
            assert_eq!(run(engine, pattern, ios), 0, "{engine}, {pattern}: stalls");
        }
        // Longer than the reserve; without IOs a loop is faster than any writer.
        if matches!(engine, "sync" | "io_uring") {
            assert_eq!(run(engine, LONGER.0, LONGER.1), 0, "{engine}: stalls");
        }
    }
}

/// The calls of loops in a trace by `strace -f`, and how many loops there were.
fn calls_in_loops(trace: &str) -> (usize, Vec<String>) {
    let (mut loops, mut inside, mut calls) = (0, std::collections::HashSet::new(), Vec::new());
    for line in trace.lines() {
        let Some((thread, what)) = line.trim_start().split_once(' ') else { continue };
        let what = what.trim_start();
        if what.contains(BEGINS) {
            loops += 1;
            inside.insert(thread);
        } else if what.contains(ENDS) {
            inside.remove(thread);
        } else if inside.contains(thread) {
            let name = what.strip_prefix("<... ").unwrap_or(what);
            // The rest of the call that told of the beginning.
            if name.starts_with("statx resumed") {
                continue;
            }
            calls.push(name.split([' ', '(']).next().unwrap_or_default().to_string());
        }
    }
    (loops, calls)
}

#[test]
fn no_loop_asks_the_kernel_for_more_than_its_ios() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let traced = || {
        Command::new("strace")
            .args(["-f", "-qq", "-o"])
            .arg(&trace)
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "under_the_trace", "--ignored"])
            .env(TRACED, "1")
            .output()
    };
    let skip = |why: &str| {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("skipped: {why}\n").as_bytes());
    };
    let Ok(mut output) = traced() else { return skip("strace is not installed") };
    if String::from_utf8_lossy(&output.stderr).contains("PTRACE") {
        return skip("processes may not be traced here");
    }
    // A loop that waits for its writer sleeps, and is counted as stalled: where other
    // work kept the writer from running, that says nothing of the loops.
    for _ in 0..2 {
        if output.status.success() || !String::from_utf8_lossy(&output.stdout).contains("stalls") {
            break;
        }
        output = traced().expect("it ran before");
    }
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let (loops, calls) = calls_in_loops(&std::fs::read_to_string(&trace).expect("a trace"));
    // One loop for each run on one thread, four for a parallel one on threads; in
    // virtual time each stream tells of itself in one loop.
    assert!(loops >= 4 * 3, "{loops} loops were seen");
    assert!(calls.iter().filter(|call| *call == "pwrite64").count() > 50_000, "IOs were seen");
    let others: std::collections::BTreeSet<&String> = calls
        .iter()
        .filter(|call| !["pread64", "pwrite64", "io_uring_enter"].contains(&call.as_str()))
        .collect();
    assert!(others.is_empty(), "calls within loops that are no IOs: {others:?}");
}
