//! The engines on real files: what they do arrives, what fails is said.

mod common;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use uflip_device::stamp::Key;
use uflip_device::{
    Arrival, Buffering, Bytes, Data, Device, DeviceError, Discard, Engine, EngineOptions, Geometry, Io,
    IoRecord, KeepAll, Mode, Nanos, RealDevice, RunEnd, RunLimits, Sequence, Stop, Stream,
};

const SIZE: u64 = 4 << 20;
const URING: Engine = Engine::IoUring { queue_depth: 8, poll: false };

fn open(path: &Path, options: EngineOptions) -> RealDevice {
    let path: PathBuf = path.into();
    let flags = options.buffering.open_flags();
    let geometry = Geometry { capacity: Bytes(SIZE), sector: Bytes(512) };
    let opener =
        Box::new(move || -> Result<File, DeviceError> {
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).map_err(|source| {
                DeviceError::Path { what: "cannot open".into(), path: path.clone(), source }
            })
        });
    RealDevice::new("test", geometry, options, Key::DEVICE, opener).unwrap()
}

fn file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7u8; SIZE as usize]).unwrap();
    file
}

fn ios(mode: Mode, size: u32, offsets: impl IntoIterator<Item = u64>) -> Stream {
    let ios: Vec<Io> = offsets
        .into_iter()
        .map(|o| Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(o), size, mode, pattern: 0 })
        .collect();
    Box::new(ios.into_iter())
}

fn run(device: &mut RealDevice, streams: Vec<Stream>) -> Result<(RunEnd, Vec<IoRecord>), DeviceError> {
    let keep = KeepAll::new(16);
    let end = device.run(streams, &keep, RunLimits { time: None, stop: &Stop::new(), sequence: None })?;
    Ok((end, keep.records()))
}

#[test]
fn both_engines_do_every_io_of_every_stream() {
    for engine in [Engine::Sync, URING] {
        for buffering in [Buffering::Direct, Buffering::DirectSync, Buffering::Buffered] {
            let file = file();
            let mut device = open(file.path(), EngineOptions { engine, buffering, ..Default::default() });
            let halves = vec![
                ios(Mode::Write, 8192, (0..128).map(|i| i * 8192)),
                ios(Mode::Write, 8192, (128..256).map(|i| i * 8192)),
            ];
            let (end, records) = run(&mut device, halves).unwrap();
            assert_eq!((end.ios, records.len()), (256, 256), "{engine}, {buffering}");
            assert!(records.iter().all(|r| r.response() > Nanos::ZERO && r.size() == 8192));
            let content = std::fs::read(file.path()).unwrap();
            assert!(
                content[..2 << 20].chunks(512).all(|s| s != [7u8; 512]),
                "{engine}: a sector was not written"
            );
            assert!(content[2 << 20..].iter().all(|b| *b == 7), "{engine}: something else was written");
        }
    }
}

#[test]
fn io_uring_records_each_io_once_with_its_own_offset() {
    let file = file();
    let mut device = open(file.path(), EngineOptions { engine: URING, ..Default::default() });
    let (_, records) = run(&mut device, vec![ios(Mode::Read, 4096, (0..500).map(|i| i * 4096))]).unwrap();
    let mut offsets: Vec<u64> = records.iter().map(|r| r.offset().0 / 4096).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..500).collect::<Vec<_>>());
}

#[test]
fn a_pause_lets_the_queue_run_empty() {
    let file = file();
    let mut device = open(file.path(), EngineOptions { engine: URING, ..Default::default() });
    let wait = Nanos::from_millis(2);
    let paused = (0..8).map(move |i| Io {
        arrival: Arrival::After(wait),
        offset: Bytes(i * 4096),
        size: 4096,
        mode: Mode::Read,
        pattern: 0,
    });
    let (_, records) = run(&mut device, vec![Box::new(paused)]).unwrap();
    assert!(records.windows(2).all(|w| w[1].submit() >= w[0].submit() + w[0].response() + wait));
}

#[test]
fn data_is_what_was_asked_for() {
    for engine in [Engine::Sync, URING] {
        let file = file();
        let mut device =
            open(file.path(), EngineOptions { engine, data: Data::Byte(0xa5), ..Default::default() });
        run(&mut device, vec![ios(Mode::Write, 1 << 20, [0, 1 << 20])]).unwrap();
        let content = std::fs::read(file.path()).unwrap();
        assert!(content[..2 << 20].iter().all(|b| *b == 0xa5), "{engine}");
    }
}

#[test]
fn beyond_the_end_is_a_short_read_not_a_result() {
    for engine in [Engine::Sync, URING] {
        let file = file();
        let mut device = open(file.path(), EngineOptions { engine, ..Default::default() });
        let error = run(&mut device, vec![ios(Mode::Read, 4096, [0, SIZE])]).unwrap_err();
        assert!(matches!(error, DeviceError::Short { moved: 0, offset: SIZE, .. }), "{engine}: {error}");
        // The device can be used again: nothing is left in flight.
        assert_eq!(run(&mut device, vec![ios(Mode::Read, 4096, [0])]).unwrap().1.len(), 1);
    }
}

#[test]
fn one_failing_stream_ends_the_others() {
    let file = file();
    let mut device = open(file.path(), EngineOptions::default());
    let endless = Box::new(std::iter::repeat(Io {
        arrival: Arrival::After(Nanos::from_micros(50)),
        offset: Bytes(0),
        size: 4096,
        mode: Mode::Read,
        pattern: 0,
    }));
    let error = run(&mut device, vec![endless, ios(Mode::Read, 4096, [SIZE])]).unwrap_err();
    assert!(error.to_string().contains("moved only 0 bytes"), "{error}");
}

#[test]
fn an_error_names_the_io_and_the_device() {
    let file = file();
    let mut device = open(file.path(), EngineOptions::default());
    // O_DIRECT takes no 100-byte offset.
    let error = run(&mut device, vec![ios(Mode::Read, 4096, [100])]);
    if let Err(error) = error {
        let text = error.to_string();
        assert!(text.contains("read of 4096 bytes at offset 100 of test failed"), "{text}");
    } else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: this file system takes unaligned direct IO\n",
        );
    }
}

#[test]
fn polling_where_there_is_none_says_what_to_do() {
    let file = file();
    let path: PathBuf = file.path().into();
    let engine = Engine::IoUring { queue_depth: 4, poll: true };
    let options = EngineOptions { engine, ..Default::default() };
    let mut device = open(&path, options);
    match run(&mut device, vec![ios(Mode::Read, 4096, [0])]) {
        Ok((end, _)) => assert_eq!(end.ios, 1),
        Err(error) => assert!(error.to_string().contains("leave --poll away"), "{error}"),
    }
}

#[test]
fn a_file_that_comes_to_lie_otherwise_is_told_and_own_trims_are_not() {
    for engine in [Engine::Sync, URING] {
        let file = file();
        if uflip_device::scratch::extents(file.as_file()).unwrap().is_none() {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: the temporary folder's file system tells no extents\n",
            );
            return;
        }
        let mut device = open(file.path(), EngineOptions { engine, ..Default::default() });
        let mut changed = |mode, size: u32, offsets: Vec<u64>| {
            let (end, _) = run(&mut device, vec![ios(mode, size, offsets)]).unwrap();
            (end.incidents.layout_changed, device.has_new_holes())
        };
        let all = |size: u64| (0..SIZE / size).map(|i| i * size).collect::<Vec<_>>();
        assert_eq!(changed(Mode::Write, 65536, all(65536)), (false, false), "{engine}");
        assert_eq!(changed(Mode::Read, 65536, all(65536)), (false, false), "{engine}");
        assert_eq!(changed(Mode::Trim, 65536, vec![0, 131_072]), (false, true), "{engine}: asked for");
        assert_eq!(changed(Mode::Read, 65536, vec![0, 131_072]), (true, true), "{engine}: on holes");
        assert_eq!(changed(Mode::Write, 65536, all(65536)), (true, false), "{engine}: filled by the run");
        assert_eq!(changed(Mode::Read, 65536, all(65536)), (false, false), "{engine}");
    }
}

#[test]
fn both_engines_discard_on_a_block_device() {
    let _one = common::serial();
    for (engine, discard) in
        [(Engine::Sync, Discard::Plain), (URING, Discard::Plain), (URING, Discard::Secure)]
    {
        let device = match common::LoopDevice::create(SIZE) {
            Ok(device) => device,
            Err(why) => return common::skipped(&format!("no loop device: {why}")),
        };
        std::fs::write(device.backing(), vec![7u8; SIZE as usize]).unwrap();
        let mut opened = open(device.path(), EngineOptions { engine, discard, ..Default::default() });
        let trims = ios(Mode::Trim, 65536, [0, 131_072]);
        match run(&mut opened, vec![trims]) {
            Ok((end, _)) => {
                assert_eq!(end.ios, 2, "{engine}");
                let content = std::fs::read(device.backing()).unwrap();
                let is_gone = |at: usize| content[at..at + 65536].iter().all(|byte| *byte == 0);
                assert!(is_gone(0) && is_gone(131_072), "{engine}: the ranges hold nothing");
                assert!(
                    content[65536..131_072].iter().all(|byte| *byte == 7),
                    "{engine}: the rest is untouched"
                );
                assert_eq!(discard, Discard::Plain, "there is no secure one");
            }
            Err(e) if discard == Discard::Secure => {
                assert!(e.to_string().contains("no secure discard; type --discard plain"), "{e}");
            }
            Err(e) if engine == URING && e.to_string().contains("since 6.12") => {
                common::skipped(&format!("{e}"));
            }
            Err(e) => panic!("{engine}: {e}"),
        }
        // What was refused left nothing under way.
        run(&mut opened, vec![ios(Mode::Read, 4096, [0])]).unwrap();
    }
}

#[test]
fn a_ring_serves_runs_of_any_number_of_streams_one_after_the_other() {
    let file = file();
    let mut device = open(file.path(), EngineOptions { engine: URING, ..Default::default() });
    for streams in [1, 3, 1, 2, 3] {
        let all = (0..streams).map(|_| ios(Mode::Read, 4096, (0..50).map(|i| i * 4096))).collect();
        let (end, records) = run(&mut device, all).unwrap();
        assert_eq!((end.ios, records.len() as u64), (50 * streams, 50 * streams));
        // Each is told of by its own readings: no two completions at one moment of a stream.
        for stream in 0..streams as u16 {
            let done = records.iter().filter(|r| r.stream() == stream).map(|r| r.submit() + r.response());
            let done: std::collections::BTreeSet<Nanos> = done.collect();
            assert_eq!(done.len(), 50, "stream {stream} of {streams}");
        }
    }
}

/// The most IOs that were under way at once, by what the records say.
fn most_under_way(records: &[IoRecord]) -> i64 {
    let begins = records.iter().map(|r| (r.submit(), 1));
    let ends = records.iter().map(|r| (r.completion(), -1));
    let mut moments: Vec<(Nanos, i64)> = begins.chain(ends).collect();
    // One that ends at the moment at which another begins is not beside it.
    moments.sort_unstable();
    let under_way = moments.iter().scan(0, |now, (_, by)| {
        *now += by;
        Some(*now)
    });
    under_way.max().unwrap_or(0)
}

#[test]
fn a_dealt_sequence_is_a_queue_of_one_ring_on_one_thread() {
    const DEPTH: u64 = 8;
    const IOS: u64 = 400;
    let _one = common::serial();
    let device = match common::LoopDevice::create(SIZE) {
        Ok(device) => device,
        Err(why) => return common::skipped(&format!("no loop device: {why}")),
    };
    // The option's depth is not the queue's.
    let engine = Engine::IoUring { queue_depth: 32, poll: false };
    let mut opened = open(device.path(), EngineOptions { engine, ..Default::default() });
    // Large enough that a call is over long before its IO.
    let size = 256 << 10;
    let offset = move |i: u64| i * 7 % 16 * u64::from(size);
    let here = std::thread::current().id();
    let whole = move || -> Stream {
        let io = move |i| {
            assert_eq!(std::thread::current().id(), here, "the loop runs elsewhere");
            let (arrival, mode) = (Arrival::CONSECUTIVE, Mode::Read);
            Io { arrival, offset: Bytes(offset(i)), size, mode, pattern: 0 }
        };
        Box::new((0..IOS).map(io))
    };
    let dealt = |p: u64| ios(Mode::Read, size, (p..IOS).step_by(DEPTH as usize).map(offset));
    for round in 0..2 {
        let keep = KeepAll::new(16);
        let stop = Stop::new();
        let limits = RunLimits { time: None, stop: &stop, sequence: Some(Sequence(&whole)) };
        let end = opened.run((0..DEPTH).map(dealt).collect(), &keep, limits).unwrap();
        let records = keep.records();
        assert_eq!((end.ios, records.len() as u64), (IOS, IOS), "round {round}");
        assert_eq!(most_under_way(&records), DEPTH as i64, "round {round}");
        // In the sequence's order, told of as the streams that it would be dealt to.
        let mut by_submission = records;
        by_submission.sort_by_key(IoRecord::submit);
        for (i, record) in (0..).zip(&by_submission) {
            assert_eq!((record.offset().0, u64::from(record.stream())), (offset(i), i % DEPTH), "IO {i}");
        }
    }
}
