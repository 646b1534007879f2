//! Open loops on real files, by both engines: IOs keep their intended instants, none
//! is left out, and none goes out before its time.

use std::fs::OpenOptions;
use uflip_device::stamp::Key;
use uflip_device::{
    Arrival, Buffering, Bytes, Device, DeviceError, Engine, EngineOptions, Geometry, Io, IoRecord, KeepAll,
    Mode, Nanos, RealDevice, RunEnd, RunLimits, Stop, Stream,
};

const SIZE: u64 = 4 << 20;
const ENGINES: [Engine; 3] = [
    Engine::Sync,
    Engine::IoUring { queue_depth: 1, poll: false },
    Engine::IoUring { queue_depth: 8, poll: false },
];

fn run(engine: Engine, streams: Vec<Stream>, time: Option<Nanos>) -> (RunEnd, Vec<IoRecord>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7u8; SIZE as usize]).unwrap();
    let path = file.path().to_path_buf();
    let geometry = Geometry { capacity: Bytes(SIZE), sector: Bytes(512) };
    let options = EngineOptions { engine, buffering: Buffering::Buffered, ..Default::default() };
    let opener = Box::new(move || {
        OpenOptions::new().read(true).write(true).open(&path).map_err(|source| DeviceError::Path {
            what: "cannot open".into(),
            path: path.clone(),
            source,
        })
    });
    let mut device = RealDevice::new("test", geometry, options, Key::DEVICE, opener).unwrap();
    let keep = KeepAll::new(16);
    let end = device.run(streams, &keep, RunLimits { time, stop: &Stop::new(), sequence: None }).unwrap();
    let mut records = keep.records();
    records.sort_by_key(|r| (r.stream(), r.due()));
    (end, records)
}

fn read(i: u64, instant: Nanos) -> Io {
    let offset = Bytes(i * 4096 % SIZE);
    Io { arrival: Arrival::At(instant), offset, size: 4096, mode: Mode::Read, pattern: 0 }
}

/// IO number i is due at i gaps.
fn paced(n: u64, gap: Nanos) -> Stream {
    Box::new((0..n).map(move |i| read(i, Nanos(i * gap.0))))
}

#[test]
fn instants_are_kept_and_no_io_goes_out_before_its_own() {
    for engine in ENGINES {
        for (n, gap) in [(60, Nanos::from_micros(400)), (400, Nanos(1000)), (400, Nanos::ZERO)] {
            let (end, records) = run(engine, vec![paced(n, gap), paced(n, gap)], None);
            assert_eq!((end.ios, end.time_limit_hit), (2 * n, false), "{engine}");
            for (at, record) in (0u64..).zip(&records) {
                assert_eq!(record.due(), Nanos(at % n * gap.0), "{engine}");
                let late = record.late().expect("an open loop's");
                assert!(record.submit() >= record.due() && record.response() >= late, "{engine}: {record:?}");
            }
            assert!(end.elapsed >= Nanos((n - 1) * gap.0), "{engine}");
        }
    }
}

/// While IOs are under way or not, what is due later than the limit is not begun and what
/// is due before is.
#[test]
fn a_time_limit_is_on_the_intended_instants() {
    for engine in ENGINES {
        let limit = Some(Nanos::from_millis(10));
        let (end, records) = run(engine, vec![paced(1000, Nanos::from_millis(1))], limit);
        assert_eq!((records.len(), end.time_limit_hit), (10, true), "{engine}");
        // All at once and overdue: all of them.
        let (end, records) = run(engine, vec![paced(3000, Nanos(10))], Some(Nanos::from_micros(30)));
        assert_eq!((records.len(), end.time_limit_hit), (3000, false), "{engine}");
    }
}

/// A stream that was held up submits what is overdue at once, and the waits count.
#[test]
fn what_was_due_while_the_loop_was_held_up_counts_from_its_instant() {
    for engine in ENGINES {
        let held_up = Nanos::from_millis(30);
        let ios = (0..100).map(move |i| {
            if i == 20 {
                std::thread::sleep(held_up.into());
            }
            read(i, Nanos::from_micros(i * 200))
        });
        let (_, records) = run(engine, vec![Box::new(ios)], None);
        assert_eq!(records.len(), 100, "{engine}");
        let waited = |i: u64| records[i as usize].late().expect("an open loop's").0;
        // Number i of those was due i gaps after the first, and began when that did.
        for i in 21..80 {
            let at_least = held_up.0 - Nanos::from_millis(1).0 - (i - 20) * 200_000;
            assert!(waited(i) >= at_least, "{engine}: IO {i} was {} ns late", waited(i));
        }
    }
}
