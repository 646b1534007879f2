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
use std::collections::{BTreeMap, HashMap};
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
const BEGINS: &str = "/uflip-loop-begins/";
const ENDS: &str = "/uflip-loop-ends/";

/// A stream that tells when it is on its way.
struct Told {
    ios: Stream,
    asked: u64,
    last: u64,
    /// What is asked for under the trace, at the beginning and at the end.
    marks: Option<[String; 2]>,
}

impl Told {
    #[cold]
    fn tell(&self, begins: bool) {
        IN_LOOP.with(|in_loop| in_loop.set(false));
        if let Some([at_begin, at_end]) = &self.marks {
            let _ = std::fs::metadata(if begins { at_begin } else { at_end });
        }
        IN_LOOP.with(|in_loop| in_loop.set(begins));
    }
}

impl Iterator for Told {
    type Item = Io;
    fn next(&mut self) -> Option<Io> {
        self.asked += 1;
        if self.asked == FIRST_TOLD || self.asked == self.last {
            self.tell(self.asked == FIRST_TOLD);
        }
        self.ios.next()
    }
}

/// A loop is on its way when this IO is asked for, counted from 1.
const FIRST_TOLD: u64 = 3;

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

/// A store with a reserve of 256 KiB, 10,922 records.
struct Kept {
    folder: tempfile::TempDir,
    store: Store,
    runs: u32,
}

impl Kept {
    fn new() -> Kept {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::create(&folder.path().join("out"), &manifest(), &plan()).expect("a store");
        store.set_durability(Durability::RELAXED);
        store.set_reserve(Bytes(256 << 10));
        Kept { folder, store, runs: 0 }
    }

    /// Runs a pattern; under the trace its loops are told by the name `mark`.
    fn run(&mut self, device: &mut dyn Device, pattern: &str, io_count: u64, mark: &str) {
        let work = Work::Pattern(pattern.parse().expect("a pattern"));
        let spec = RunSpec { work, ..common::spec(self.runs, io_count) };
        self.runs += 1;
        let traced = std::env::var_os(TRACED).is_some();
        let streams = spec.work.streams(io_count, 7).expect("streams").into_iter();
        let told = |ios| {
            let marks = traced.then(|| [BEGINS, ENDS].map(|when| format!("{when}{mark}")));
            Box::new(Told { ios, asked: 0, last: io_count, marks }) as Stream
        };
        let told = streams.map(told).collect();
        self.store.begin(&spec).expect("begun");
        let stop = Stop::new();
        let limits = RunLimits { time: None, stop: &stop, sequence: None };
        let end = device.run(told, self.store.recorder(), limits).expect("it runs");
        assert_eq!(end.ios, io_count * spec.work.stream_count() as u64, "{pattern}");
        let outcome = RunOutcome {
            end,
            started: Nanos(0),
            started_unix_ns: Some(1),
            attempts: 1,
            probes: Default::default(),
        };
        self.store.commit(&spec, &outcome).expect("kept");
    }

    /// How often the loops of each run had to wait for a chunk.
    fn stalls(self) -> Vec<u64> {
        drop(self.store);
        let runs = Store::open(&self.folder.path().join("out")).expect("a store").runs;
        runs.iter().map(|run| run.stalls.expect("counted")).collect()
    }
}

const ENGINES: [&str; 4] = ["null", "sync", "io_uring", "mtron"];

/// What a loop does, and what the synchronous engine asks of the kernel for it beside
/// reads and writes.
struct Case {
    pattern: &'static str,
    /// IOs of each stream, flushes among them.
    ios: u64,
    asks: &'static [&'static str],
}

const fn case(pattern: &'static str, ios: u64) -> Case {
    Case { pattern, ios, asks: &[] }
}

const SLEEPS: &[&str] = &["clock_nanosleep"];

const CASES: [Case; 13] = [
    case("RW(io_size=4K, target_size=1M)", 8_000),
    case("4 x RW(io_size=4K, target_size=1M)", 2_500),
    case("2 SR(io_size=4K, target_size=512K) / 1 RW(io_size=4K, target_size=512K)", 8_000),
    // Longer than the reserve: chunks are written while the loops go on.
    case("SR(io_size=4K, target_size=1M)", 30_000),
    case("4 x SW(io_size=4K, target_size=1M)", 7_500),
    // Open loops: due too fast for any device, near (waited for awake) and far.
    case("RW(io_size=4K, target_size=1M, rate=1000000000/s)", 8_000),
    Case { pattern: "RR(io_size=4K, target_size=1M, poisson=50000/s)", ios: 1_000, asks: SLEEPS },
    Case { pattern: "RW(io_size=4K, target_size=1M, rate=2000/s)", ios: 40, asks: SLEEPS },
    Case { pattern: "4 x RR(io_size=4K, target_size=1M, poisson=4000/s)", ios: 40, asks: SLEEPS },
    Case { pattern: "SW(io_size=4K, target_size=1M, pause=300us)", ios: 60, asks: SLEEPS },
    Case { pattern: "RR(io_size=4K, target_size=1M, pause=1ms, burst=20)", ios: 400, asks: SLEEPS },
    Case { pattern: "RW(io_size=4K, target_size=1M, sync=20)", ios: 400, asks: &["fdatasync"] },
    Case { pattern: "RT(io_size=16K, target_size=1M)", ios: 400, asks: &["fallocate"] },
];

#[test]
fn no_loop_allocates() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    for engine in ENGINES {
        let (mut kept, mut device) = (Kept::new(), device(engine, folder.path()));
        for Case { pattern, ios, .. } in CASES {
            ALLOCATIONS.store(0, Ordering::Relaxed);
            kept.run(&mut *device, pattern, ios, "");
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
        let (mut kept, mut device) = (Kept::new(), uflip_sim::open(&model, 1).expect("a device"));
        for round in ["", " after a snapshot"] {
            for (pattern, ios) in WORKS {
                ALLOCATIONS.store(0, Ordering::Relaxed);
                kept.run(&mut device, pattern, ios, "");
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
    let folder = tempfile::tempdir().expect("a folder");
    for engine in ENGINES {
        let (mut kept, mut device) = (Kept::new(), device(engine, folder.path()));
        for (number, case) in CASES.iter().enumerate().filter(|(_, case)| may_not_stall(engine, case)) {
            kept.run(&mut *device, case.pattern, case.ios, &format!("{engine} {number} "));
        }
        let stalls = kept.stalls();
        assert!(stalls.iter().all(|stalls| *stalls == 0), "{engine}: stalls {stalls:?}");
    }
}

/// False where a loop outruns the writer because there is nothing that it does.
fn may_not_stall(engine: &str, case: &Case) -> bool {
    matches!(engine, "sync" | "io_uring") || case.ios < 30_000 && !case.pattern.starts_with("4 x SW")
}

/// The calls that the loops of one case began, how often each, and of how many loops.
#[derive(Default)]
struct Calls {
    loops: u64,
    calls: BTreeMap<String, u64>,
}

/// The same of each engine and case, from a trace by `strace -f`.
fn calls_in_loops(trace: &str) -> BTreeMap<(String, usize), Calls> {
    let (mut inside, mut all) = (HashMap::new(), BTreeMap::<_, Calls>::new());
    for line in trace.lines() {
        let Some((thread, what)) = line.trim_start().split_once(' ') else { continue };
        let what = what.trim_start();
        if let Some((_, mark)) = what.split_once(BEGINS) {
            let mut words = mark.split(' ');
            let engine = words.next().unwrap_or_default().to_string();
            let number: usize = words.next().and_then(|word| word.parse().ok()).expect("a case's number");
            all.entry((engine.clone(), number)).or_default().loops += 1;
            inside.insert(thread, (engine, number));
        } else if what.contains(ENDS) {
            inside.remove(thread);
        } else if let Some(of) = inside.get(thread)
            // The rest of a call that was counted when it began, or of the mark.
            && !what.starts_with("<... ")
        {
            let name = what.split('(').next().unwrap_or_default().to_string();
            *all.entry(of.clone()).or_default().calls.entry(name).or_default() += 1;
        }
    }
    all
}

/// A trace of [`under_the_trace`]; `None` where there is none to be had, which is said.
fn traced() -> Option<String> {
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
        None
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
    Some(std::fs::read_to_string(&trace).expect("a trace"))
}

#[test]
fn no_loop_asks_the_kernel_for_more_than_its_ios() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(trace) = traced() else { return };
    let all = calls_in_loops(&trace);
    for engine in ENGINES {
        for (number, case) in CASES.iter().enumerate().filter(|(_, case)| may_not_stall(engine, case)) {
            let what = format!("{engine}, {}", case.pattern);
            let Calls { loops, calls } = &all[&(engine.to_string(), number)];
            let streams = if case.pattern.starts_with("4 x") { 4 } else { 1 };
            assert_eq!(*loops, streams, "{what}: one stream tells of itself each");
            let of = |name: &str| calls.get(name).copied().unwrap_or(0);
            let waits = case.asks == SLEEPS;
            let (ios, allowed) = match engine {
                "sync" => {
                    let ios = ["pread64", "pwrite64", "fdatasync", "fallocate"];
                    let with = [&["pread64", "pwrite64"], case.asks].concat();
                    (ios.iter().map(|name| of(name)).sum(), with)
                }
                "io_uring" => {
                    (of("io_uring_enter"), [&["io_uring_enter"], SLEEPS][..1 + usize::from(waits)].concat())
                }
                // Nothing is asked of the kernel but the time between two IOs.
                "null" => (0, if waits { SLEEPS.to_vec() } else { vec![] }),
                _ => (0, vec![]),
            };
            let others: Vec<_> = calls.iter().filter(|(name, _)| !allowed.contains(&name.as_str())).collect();
            assert!(others.is_empty(), "{what}: calls within loops that are no IOs: {others:?}");
            let told = streams * (case.ios - FIRST_TOLD);
            match engine {
                "sync" => assert_eq!(ios, told, "{what}: one call an IO: {calls:?}"),
                "io_uring" => assert!(ios > 0, "{what}: {calls:?}"),
                _ => {}
            }
            if engine == "sync" && !waits {
                for asked in case.asks {
                    assert!(of(asked) > 0, "{what}: {asked}");
                }
            }
        }
    }
}
