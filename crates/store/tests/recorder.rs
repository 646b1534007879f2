//! The reserve loses no record, stays within its memory and tells its stalls.

mod common;

use common::record;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos, Recorder};
use uflip_store::keep::Keep;
use uflip_store::recorder::{CHUNK_RECORDS, Reserve, RunShape};
use uflip_store::{StoreError, read_records};

fn shape(dir: &std::path::Path, io_count: u64, streams: u64) -> RunShape {
    RunShape {
        run: 1,
        io_count,
        io_ignore: 0,
        streams,
        patterns: 1,
        open_loop: false,
        path: dir.join("r.tmp"),
    }
}

#[test]
fn small_runs_reserve_little_and_reuse_it() {
    let dir = tempfile::tempdir().unwrap();
    let reserve = Reserve::new(Bytes(40 << 20));
    for round in 0..3 {
        reserve.begin(shape(dir.path(), 1024, 1));
        assert_eq!(reserve.allocated(), Bytes(1025 * 24), "round {round}");
        common::feed(&reserve, (0..1024).map(|i| record(1, i)));
        let done = reserve.finish().unwrap();
        assert_eq!((done.ios, done.stalls, done.stats.all.n), (1024, 0, 1024));
    }
    assert_eq!(read_records(&dir.path().join("r.tmp")).unwrap().len(), 1024);
}

/// Says whether it was ended.
struct Ended(Arc<AtomicBool>);

impl Keep for Ended {
    fn push(&mut self, _: u32, _: &[IoRecord]) -> Result<(), StoreError> {
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn records_that_are_not_as_many_as_ios_were_finished_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let reserve = Reserve::new(Bytes(2 << 20));
    for (finished, right) in [(100, true), (101, false), (99, false), (0, false)] {
        let ended = Arc::new(AtomicBool::new(false));
        reserve.begin_keeping(shape(dir.path(), 100, 1), Box::new(Ended(Arc::clone(&ended))));
        common::feed(&reserve, (0..100).map(|i| record(1, i)));
        let kept = reserve.finish_keeping(finished);
        assert_eq!(ended.load(Ordering::Relaxed), right, "{finished}: the output is left as it was");
        match kept {
            Ok(kept) => assert_eq!((right, kept.stats.all.n), (true, 100)),
            Err(error) => {
                let told = format!("the device finished {finished} IOs but 100 were recorded");
                assert!(!right && error.to_string().contains(&told), "{error}");
            }
        }
    }
}

#[test]
fn a_long_run_streams_through_a_small_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let reserve = Reserve::new(Bytes(2 << 20));
    let n = 1_000_000;
    reserve.begin(shape(dir.path(), n, 1));
    common::feed(&reserve, (0..n).map(|i| record(1, i)));
    assert!(reserve.allocated().0 <= 2 << 20, "{}", reserve.allocated());
    let done = reserve.finish().unwrap();
    assert_eq!((done.ios, done.stats.all.n), (n, n));
    assert!(done.stalls > 0, "the loop is faster than any writer, yet it never waited");
    let records = read_records(&dir.path().join("r.tmp")).unwrap();
    assert!(records.iter().copied().eq((0..n).map(|i| record(1, i))));
}

#[test]
fn nothing_is_written_while_more_than_half_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let reserve = Reserve::new(Bytes(40 << 20));
    let shape = shape(dir.path(), 1_500_000, 1);
    let path = shape.path.clone();
    reserve.begin(shape);
    let mut chunk = reserve.fresh();
    for i in 0..4 * CHUNK_RECORDS as u64 + 1 {
        if chunk.len() == chunk.capacity() {
            chunk = reserve.exchange(chunk);
        }
        chunk.push(record(1, i));
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(!path.exists(), "written although more than half of the reserve was free");
    reserve.finish_stream(chunk);
    assert_eq!(reserve.finish().unwrap().ios, 4 * CHUNK_RECORDS as u64 + 1);
    assert!(path.exists());
}

/// `Reserve::finish` ends a run, `Recorder::finish` a stream.
trait FinishStream {
    fn finish_stream(&self, chunk: uflip_device::Chunk);
}

impl FinishStream for Reserve {
    fn finish_stream(&self, chunk: uflip_device::Chunk) {
        Recorder::finish(self, chunk);
    }
}

#[test]
fn parallel_streams_lose_nothing_even_when_there_are_more_than_was_said() {
    for (said, streams, each) in [(16, 16u16, 5_000u64), (1, 16, 5_000), (4, 4, 100_000), (1, 300, 200)] {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(Bytes(1 << 20));
        reserve.begin(shape(dir.path(), each, said));
        std::thread::scope(|scope| {
            for stream in 0..streams {
                let reserve = &reserve;
                scope.spawn(move || {
                    let one = |i: u64| {
                        let io = Io {
                            arrival: Arrival::CONSECUTIVE,
                            offset: Bytes(i * 512),
                            size: 512,
                            mode: Mode::Write,
                            pattern: 0,
                        };
                        IoRecord::new(&io, stream, Nanos(i * 10), Nanos(i % 97))
                    };
                    common::feed(reserve, (0..each).map(one));
                });
            }
        });
        let done = reserve.finish().unwrap();
        assert_eq!(done.ios, each * u64::from(streams));
        let records = read_records(&dir.path().join("r.tmp")).unwrap();
        for stream in 0..streams {
            let offsets = records.iter().filter(|r| r.stream() == stream).map(|r| r.offset().0);
            assert!(offsets.eq((0..each).map(|i| i * 512)), "stream {stream} of {streams}, {said} said");
        }
    }
}

#[test]
fn a_writer_that_fails_never_hangs_a_loop_and_fails_the_run() {
    let reserve = Reserve::new(Bytes(1 << 20));
    reserve.begin(shape(std::path::Path::new("/nowhere/at/all"), 500_000, 1));
    common::feed(&reserve, (0..500_000).map(|i| record(1, i)));
    let text = reserve.finish().err().expect("cannot be written").to_string();
    assert!(text.contains("/nowhere/at/all"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    reserve.begin(shape(dir.path(), 10, 1));
    common::feed(&reserve, (0..10).map(|i| record(1, i)));
    assert_eq!(reserve.finish().unwrap().ios, 10);
}

/// Feeds `streams` from one thread in turns, as virtual time does.
fn feed_in_turns(reserve: &Reserve, streams: u16, each: u64) {
    let mut chunks: Vec<_> = (0..streams).map(|_| reserve.fresh()).collect();
    for i in 0..each {
        for (stream, chunk) in chunks.iter_mut().enumerate() {
            if chunk.len() == chunk.capacity() {
                *chunk = reserve.exchange(std::mem::take(chunk));
            }
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(i * 512),
                size: 512,
                mode: Mode::Write,
                pattern: 0,
            };
            chunk.push(IoRecord::new(&io, stream as u16, Nanos(i * 10), Nanos(i % 97)));
        }
    }
    chunks.into_iter().rev().for_each(|chunk| reserve.finish_stream(chunk));
}

#[test]
fn in_virtual_time_the_same_run_gives_the_same_file_however_threads_are_scheduled() {
    for (streams, each) in [(4, 100_000), (4, 2_000), (1, 200_000), (3, 9_000)] {
        let files: Vec<_> = (0..4)
            .map(|_| {
                let dir = tempfile::tempdir().unwrap();
                let reserve = Reserve::new(Bytes(1 << 20));
                reserve.begin(shape(dir.path(), each, u64::from(streams)));
                feed_in_turns(&reserve, streams, each);
                reserve.finish().unwrap();
                std::fs::read(dir.path().join("r.tmp")).unwrap()
            })
            .collect();
        assert!(files.iter().all(|file| *file == files[0]), "{streams} streams of {each}");
    }
}
