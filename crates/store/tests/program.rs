//! What a program asks of its devices is kept as the IOs of any other run.

mod common;

use common::{manifest, outcome, plan, spec};
use uflip_device::blocks::{self, Clock, MemoryBlocks, Traced, copy};
use uflip_device::{Bytes, IoRecord, Mode, Nanos, Stop};
use uflip_measure::run::{RunOutcome, Sink};
use uflip_store::{Store, read_records};

const BLOCK: u32 = 4096;
/// Not a whole number of chunks of records.
const BLOCKS: u64 = 5000;

fn memory(clock: &Clock) -> MemoryBlocks {
    MemoryBlocks::new("memory", Bytes(BLOCKS * u64::from(BLOCK)), clock.clone())
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
    let end = traced.finish();
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
