//! No timed loop allocates, locks, waits or starts a thread: for every engine and
//! every simulated device, and for long, parallel and mixed runs into a store.
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
    Buffering, Bytes, Device, DeviceError, Engine, EngineOptions, Geometry, Io, Nanos, NullDevice,
    RealDevice, RunLimits, Snapshot, Stop, Stream,
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
}

impl Told {
    #[cold]
    fn tell(&self, begins: bool) {
        IN_LOOP.with(|in_loop| in_loop.set(false));
        if self.traced {
            let _ = std::fs::metadata(if begins { BEGINS } else { ENDS });
        }
        IN_LOOP.with(|in_loop| in_loop.set(begins));
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

/// Runs a pattern on a new device; gives how often a loop had to wait for a chunk.
fn run(engine: &str, pattern: &str, io_count: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    run_on(&mut *device(engine, folder.path()), pattern, io_count)
}

/// Runs a pattern into a new store with a reserve of 1 MiB, 43,690 records; gives
/// how often a loop had to wait for a chunk.
fn run_on(device: &mut dyn Device, pattern: &str, io_count: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("out");
    let mut store = Store::create(&dir, &manifest(), &plan()).expect("a store");
    store.set_durability(Durability::RELAXED);
    store.set_reserve(Bytes(1 << 20));
    let spec =
        RunSpec { work: Work::Pattern(pattern.parse().expect("a pattern")), ..common::spec(0, io_count) };
    let traced = std::env::var_os(TRACED).is_some();
    let streams = spec.work.streams(io_count, 7).expect("streams").into_iter();
    let told =
        streams.map(|ios| Box::new(Told { ios, asked: 0, last: io_count, traced }) as Stream).collect();
    store.begin(&spec).expect("begun");
    let stop = Stop::new();
    let limits = RunLimits { time: None, stop: &stop, sequence: None };
    let end = device.run(told, store.recorder(), limits).expect("it runs");
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

const ENGINES: [&str; 4] = ["null", "sync", "io_uring", "mtron"];

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

/// Kinds of FTL, of reclaiming and of wear levelling that no device of the catalogue
/// has, on a small one.
const OTHERS: [&str; 9] = [
    "kind = \"page\"\ngc = \"cost-benefit\"\nhot_cold = true",
    "kind = \"page\"\ngc = \"d-choices\"\nwear_levelling = \"dynamic\"",
    "kind = \"dftl\"\nmap_cache_kib = 4",
    "kind = \"dftl\"\nmap_cache_kib = 64\nwear_levelling = \"static\"",
    "kind = \"bast\"\nlog_blocks = 4\nmerge_batch = 2\npermuted_switch = true",
    "kind = \"bast\"\nlog_blocks = 2\nwear_levelling = \"static\"\nrepay_merges = true",
    "kind = \"fast\"\nlog_kib = 96\nsequential_logs = 2",
    "kind = \"fast\"\nlog_kib = 64\nlog_superblocks = 3\nwear_levelling = \"dynamic\"",
    "kind = \"block\"\nopen_blocks = 3\nwear_levelling = \"static\"",
];

fn other(ftl: &str) -> String {
    let logs = ["bast", "block", "sequential_logs"].iter().any(|kind| ftl.contains(kind));
    let switch = if logs { "log_switch_us = 50\n" } else { "" };
    format!(
        "name = \"other\"\ncapacity_mib = 8\n[link]\nread_latency_us = 70\nwrite_latency_us = 70\n\
         read_mb_s = 100\nwrite_mb_s = 80\nqueue_depth = 2\n\
         [buffer]\nkib = 64\nline_kib = 4\ndestage = \"async\"\nbatch_lines = 3\npipelined = true\n\
         [geometry]\nchannels = 2\nchips_per_channel = 2\npages_per_block = 16\npage_bytes = 2048\n\
         [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n{switch}\
         [ftl]\nsuperblock_dies = 2\n{ftl}\n"
    )
}

/// What fills buffers and logs in order and out of order, has some of it trimmed, and
/// waits for it: each on the device as the one before left it.
const WORKS: [(&str, u64); 7] = [
    ("SW(io_size=32K, target_size=8M)", 400),
    ("RW(io_size=4K, target_size=8M)", 1_500),
    ("RW(io_size=512B, target_size=1M, sync=50)", 1_000),
    ("2 SR(io_size=4K, target_size=8M) / 1 RW(io_size=2K, target_size=8M)", 1_500),
    ("RT(io_size=16K, target_size=8M)", 200),
    ("4 x SW(io_size=8K, target_size=8M, pause=1ms)", 300),
    ("8 deep RW(io_size=3K, target_size=6M)", 150),
];

#[test]
fn no_simulated_device_allocates_while_it_serves() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = String::new();
    let others: Vec<String> = OTHERS.into_iter().map(other).collect();
    let names = uflip_sim::catalogue::names().map(str::to_string);
    for model in names.chain(others) {
        let mut device = uflip_sim::open(&model, 1).expect("a device");
        for round in ["", " after a snapshot"] {
            for (pattern, ios) in WORKS {
                ALLOCATIONS.store(0, Ordering::Relaxed);
                run_on(&mut device, pattern, ios);
                let counted = ALLOCATIONS.load(Ordering::Relaxed);
                if counted > 0 {
                    wrong += &format!("{model}, {pattern}{round}: {counted}\n");
                }
            }
            // What a snapshot gives back goes on without, too.
            device.snapshot(Snapshot::Take);
            device.snapshot(Snapshot::Return);
        }
    }
    assert!(wrong.is_empty(), "allocations and releases within the loops:\n{wrong}");
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
