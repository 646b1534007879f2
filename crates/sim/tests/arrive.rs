//! Served request by request at given times, a device answers as in a run.

use uflip_device::{Arrival, Bytes, Device, Io, IoRecord, KeepAll, Mode, Nanos, RunLimits, Stop, Stream};
use uflip_sim::{Request, SimDevice};

const IO: u64 = 32 << 10;

fn io(i: u64, mode: Mode) -> Io {
    // Far apart, so that the sequence is no sequential one.
    Io {
        arrival: Arrival::After(Nanos(i % 3 * 500_000)),
        offset: Bytes(i * 7919 % 1000 * IO),
        size: IO as u32,
        mode,
        pattern: 0,
    }
}

fn device(name: &str) -> SimDevice {
    uflip_sim::open(name, 5).expect("a device of the catalogue")
}

/// The records of two streams side by side, in the order they were submitted.
fn records(name: &str) -> Vec<IoRecord> {
    let streams: Vec<Stream> = [Mode::Write, Mode::Read]
        .map(|mode| Box::new((0..200).map(move |i| io(i, mode))) as Stream)
        .into_iter()
        .collect();
    let kept = KeepAll::new(1 << 12);
    device(name)
        .run(streams, &kept, RunLimits { time: None, stop: &Stop::new(), sequence: None })
        .expect("it runs");
    let mut all: Vec<IoRecord> = kept.records();
    all.sort_by_key(|r| (r.submit(), r.stream()));
    all
}

#[test]
fn requests_that_arrive_as_in_a_run_are_done_as_in_a_run() {
    for name in ["mtron", "transcend-module", "kingston-dti"] {
        let mut device = device(name);
        for record in records(name) {
            let at = record.submit();
            let mut data = vec![9; IO as usize];
            let request = match record.mode() {
                Mode::Read => Request::Read { offset: record.offset(), into: &mut data },
                _ => Request::Write { offset: record.offset(), from: &data },
            };
            let done = device.arrive(at, request).expect("on the device");
            assert_eq!(Nanos(done.0 - at.0), record.response(), "{name} at {at}");
        }
    }
}

#[test]
fn data_is_kept_forgotten_and_counted() {
    let mut device = device("mtron");
    let at = Nanos(1_000_000);
    let offset = Bytes(3 << 20);
    device.arrive(at, Request::Write { offset, from: &[7; 8192] }).expect("written");
    assert_eq!(device.content().memory_bytes(), 8192);
    let flushed = device.arrive(at, Request::Flush).expect("flushed");
    assert!(flushed > at, "a flush of written data took no time");
    let half = Bytes(offset.0 + 4096);
    device.arrive(flushed, Request::Trim { offset: half, length: Bytes(4096) }).expect("trimmed");
    let mut data = [1; 12_288];
    device.arrive(flushed, Request::Read { offset, into: &mut data }).expect("read");
    assert!(data[..4096].iter().all(|b| *b == 7) && data[4096..].iter().all(|b| *b == 0));
    let beyond = device.arrive(flushed, Request::Write { offset: Bytes(1 << 50), from: &[0; 512] });
    assert!(beyond.is_err(), "a write beyond the end was taken");
}
