//! Watching a run: what is seen is what was handed over, and nothing else
//! changes by it.

mod common;

use common::{check, manifest, plan, record};
use uflip_device::IoRecord;
use uflip_measure::run::Sink;
use uflip_store::recorder::RecordWatch;
use uflip_store::{Durability, Store};

fn all(watch: &mut RecordWatch) -> Vec<IoRecord> {
    let mut seen = Vec::new();
    loop {
        let before = seen.len();
        if watch.glance(&mut seen).is_none() || seen.len() == before {
            return seen;
        }
    }
}

#[test]
fn a_slow_run_is_seen_while_it_lasts_and_kept_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("out");
    let mut store = Store::create(&dir, &manifest(), &plan()).expect("a store");
    store.set_durability(Durability::RELAXED);
    let mut watch = store.watch();
    for id in 0..2u32 {
        let mut spec = common::spec(id, 5000);
        spec.io_ignore = 2;
        store.begin(&spec).expect("begun");
        let recorder = store.recorder();
        // 100 us apart: 64 of them are 6 ms, so chunks grow to 1024.
        let mut chunk = recorder.fresh();
        assert_eq!(chunk.capacity(), 64, "the first look is after 64 IOs");
        let mut seen = Vec::new();
        for i in 0..5000 {
            if chunk.len() == chunk.capacity() {
                chunk = recorder.exchange(chunk);
                let before = seen.len();
                seen.extend(all(&mut watch));
                assert!(seen.len() > before, "what was handed over is seen");
            }
            chunk.push(record(id, i));
        }
        recorder.finish(chunk);
        seen.extend(all(&mut watch));
        let wanted: Vec<IoRecord> = (0..5000).map(|i| record(id, i)).collect();
        assert_eq!(seen, wanted, "every record once, in order");
        store.commit(&spec, &common::outcome(5000)).expect("kept");
        assert!(all(&mut watch).is_empty(), "between runs there is nothing to see");
    }
    drop(store);
    assert_eq!(check(&dir), [0, 1], "the store is as without a watcher");
}

#[test]
fn a_fast_run_is_handed_over_as_seldom_as_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let exchanges = |watched: bool| {
        let dir = folder.path().join(format!("{watched}"));
        let mut store = Store::create(&dir, &manifest(), &plan()).expect("a store");
        store.set_durability(Durability::RELAXED);
        let watch = watched.then(|| store.watch());
        let mut spec = common::spec(0, 1_000_000);
        spec.io_ignore = 0;
        store.begin(&spec).expect("begun");
        let recorder = store.recorder();
        let (mut chunk, mut count) = (recorder.fresh(), 0);
        let io = uflip_device::Io {
            arrival: uflip_device::Arrival::CONSECUTIVE,
            offset: uflip_device::Bytes(0),
            size: 512,
            mode: uflip_device::Mode::Read,
            pattern: 0,
        };
        for i in 0..1_000_000u64 {
            if chunk.len() == chunk.capacity() {
                chunk = recorder.exchange(chunk);
                count += 1;
            }
            // 40 ns apart, as on the device that answers at once.
            chunk.push(IoRecord::new(&io, 0, uflip_device::Nanos(i * 40), uflip_device::Nanos(30)));
        }
        recorder.finish(chunk);
        let stats = store.commit(&spec, &common::outcome(1_000_000)).expect("kept");
        drop(watch);
        assert_eq!(stats.all.n, 1_000_000);
        count
    };
    let (without, with) = (exchanges(false), exchanges(true));
    assert!(with <= without + 3, "{with} exchanges with a watcher, {without} without");
}
