//! What a program asks of its devices is kept as the IOs of any other run.

mod common;

use common::{manifest, outcome, plan, spec};
use uflip_device::blocks::{self, Clock, MemoryBlocks, Traced, copy, traced};
use uflip_device::{Bytes, IoRecord, Mode, Nanos, Stop};
use uflip_measure::run::{RunOutcome, Sink};
use uflip_store::{Store, read_records};

const BLOCK: u32 = 4096;
/// Not a whole number of chunks of records.
const BLOCKS: u64 = 5000;

fn memory(clock: &Clock) -> MemoryBlocks {
    MemoryBlocks::new("memory", Bytes(BLOCKS * u64::from(BLOCK)), 8, clock.clone()).unwrap()
}

#[test]
fn a_copy_with_eight_under_way_is_kept_like_any_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan()).unwrap();
    let clock = Clock::virtual_time();
    let (mut from, mut to) = (memory(&clock), memory(&clock));
    clock.advance(Nanos::from_millis(1));
    let spec = spec(0, BLOCKS);
    store.begin(&spec).unwrap();
    let mut traced = Traced::new(&mut to, store.recorder(), 0);
    let job = copy::CopyJob { bytes: Bytes(BLOCKS * u64::from(BLOCK)), block: BLOCK, requests: 8 };
    copy::copy(&mut from, &mut traced, job, &Stop::new(), &mut |_| {}).unwrap();
    blocks::trim(&mut traced, Bytes(8192), BLOCK).unwrap();
    assert_eq!(traced.failed(), 0);
    let end = traced.finish().end;
    let stats = store.commit(&spec, &RunOutcome { end, ..outcome(end.ios) }).unwrap();
    // The flush and the trim are modes of their own.
    assert_eq!((end.ios, stats.all.n, stats.ios()), (BLOCKS + 2, BLOCKS, BLOCKS + 2));
    drop(store);
    let contents = Store::open(dir.path()).unwrap();
    let records: Vec<IoRecord> = read_records(&dir.path().join(&contents.runs[0].records.file)).unwrap();
    let writes: Vec<u64> =
        records.iter().filter(|r| r.mode() == Mode::Write).map(|r| r.offset().0 / u64::from(BLOCK)).collect();
    assert_eq!(writes, (0..BLOCKS).collect::<Vec<_>>());
    let last = &records[BLOCKS as usize..];
    assert_eq!(last.iter().map(IoRecord::mode).collect::<Vec<_>>(), [Mode::Flush, Mode::Trim]);
    assert_eq!((last[0].size(), last[1].offset(), last[1].size()), (0, Bytes(8192), BLOCK));
}

/// A step of a program on two devices: two runs at once, each with its own records.
#[test]
fn what_two_devices_do_at_once_is_two_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan()).unwrap();
    let clock = Clock::virtual_time();
    let (mut from, mut to) = (memory(&clock), memory(&clock));
    let job = copy::CopyJob { bytes: Bytes(BLOCKS * u64::from(BLOCK)), block: BLOCK, requests: 8 };
    let specs = [spec(4, BLOCKS), spec(5, BLOCKS + 1)];
    let begun = store.begin_together(&specs).unwrap();
    let recorders = [begun.recorder(0), begun.recorder(1)];
    let (copied, ends) = traced([&mut from, &mut to], recorders, |[from, to]| {
        copy::copy(from, to, job, &Stop::new(), &mut |_| {})
    });
    assert_eq!(copied.unwrap().bytes, job.bytes);
    assert_eq!(
        ends.map(|end| (end.end.ios, end.bytes, end.failed)),
        [(BLOCKS, job.bytes, 0), (BLOCKS + 1, job.bytes, 0)]
    );
    let outcomes = ends.map(|end| RunOutcome { end: end.end, ..outcome(0) });
    let stats = store.commit_together(begun, &outcomes).unwrap();
    assert_eq!(stats.iter().map(|stats| stats.ios()).collect::<Vec<_>>(), [BLOCKS, BLOCKS + 1]);
    // Runs that are dropped leave nothing.
    drop(store.begin_together(&[spec(6, 9)]).unwrap());
    drop(store);
    let contents = Store::open(dir.path()).unwrap();
    let modes = |at: usize| -> Vec<Mode> {
        let path = dir.path().join(&contents.runs[at].records.file);
        read_records(&path).unwrap().iter().map(IoRecord::mode).collect()
    };
    assert_eq!(contents.runs.iter().map(|row| row.spec.id).collect::<Vec<_>>(), [4, 5]);
    assert!(modes(0).iter().all(|mode| *mode == Mode::Read));
    assert_eq!((modes(1)[0], modes(1)[BLOCKS as usize]), (Mode::Write, Mode::Flush));
    assert_eq!(common::files_in(&dir.path().join("ios")), ["run-000004.parquet", "run-000005.parquet"]);
}
