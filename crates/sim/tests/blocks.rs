//! Programs on simulated devices: requests under way, one clock for several
//! devices, computing, and data.

use uflip_device::blocks::{self, BlockRequest, Buffers, Clock, Next, Traced, Which, copy, wait_any};
use uflip_device::buffer::AlignedBuffer;
use uflip_device::{Blocks, Bytes, IoRecord, KeepAll, Mode, Nanos, Stop};
use uflip_sim::{SimBlocks, SimDevice, check};

const MIB: u64 = 1 << 20;

/// A page-mapped device of 64 MiB whose link is much faster than its flash.
fn with_channels(channels: u32) -> SimDevice {
    let text = format!(
        "name = \"channels\"\ncapacity_mib = 64\n\
         [link]\nqueue_depth = 32\nread_latency_us = 1\nwrite_latency_us = 1\nread_mb_s = 6000\nwrite_mb_s = 6000\n\
         [geometry]\nchannels = {channels}\nchips_per_channel = 1\npages_per_block = 64\npage_bytes = 4096\n\
         [timing]\nread_us = 50\nprogram_us = 400\nerase_us = 1500\nbus_mb_s = 400\n\
         [ftl]\nkind = \"page\"\nover_provisioning = 0.2\n"
    );
    SimDevice::new(&check(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), 1).unwrap()
}

fn program(device: SimDevice, requests: usize, clock: &Clock) -> SimBlocks {
    SimBlocks::new(device, requests, clock.clone(), Bytes(1 << 30)).unwrap()
}

fn catalogue(name: &str, requests: usize, clock: &Clock) -> SimBlocks {
    program(uflip_sim::open(name, 1).unwrap(), requests, clock)
}

/// Fills the first `bytes` of a device with what tells places apart.
fn fill(device: &mut dyn Blocks, bytes: u64) {
    let mut buffer = AlignedBuffer::new(MIB as usize);
    for at in (0..bytes).step_by(MIB as usize) {
        for (place, word) in (at / 8..).zip(buffer.bytes_mut().chunks_exact_mut(8)) {
            word.copy_from_slice(&(place * 0x9e37_79b9 + 1).to_le_bytes());
        }
        blocks::write(device, Bytes(at), MIB as u32, &mut buffer).unwrap();
    }
}

/// How long a copy of 16 MiB by requests of 4 KiB takes between two such devices.
fn copy_time(channels: u32, requests: usize) -> Nanos {
    let clock = Clock::virtual_time();
    let mut from = program(with_channels(channels), requests, &clock);
    let mut to = program(with_channels(channels), requests, &clock);
    fill(&mut from, 16 * MIB);
    let began = clock.now();
    let job = copy::CopyJob { bytes: Bytes(16 * MIB), block: 4096, requests };
    let copied = copy::copy(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap();
    let took = clock.now().saturating_sub(began);
    assert_eq!(copied, copy::Copied { bytes: Bytes(16 * MIB), interrupted: false });
    copy::compare(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap();
    took
}

#[test]
fn a_copy_with_eight_under_way_is_faster_the_more_channels_there_are() {
    let (one, eight) = (copy_time(1, 8), copy_time(8, 8));
    assert!(eight.0 * 3 < one.0, "one channel took {one}, eight took {eight}");
    let alone = copy_time(8, 1);
    assert!(eight.0 * 2 < alone.0, "one request at a time took {alone}, eight {eight}");
}

#[test]
fn two_devices_on_one_clock_take_the_longest_not_the_sum() {
    let alone = |name: &str| {
        let clock = Clock::virtual_time();
        let mut device = catalogue(name, 1, &clock);
        device.submit(BlockRequest::read(0, Bytes(MIB), 512 << 10, AlignedBuffer::new(512 << 10)));
        device.wait(Which::Any).unwrap();
        clock.now()
    };
    let (short, long) = (alone("mtron"), alone("kingston-dti"));
    assert!(short < long);
    let clock = Clock::virtual_time();
    let mut slow = catalogue("kingston-dti", 1, &clock);
    let mut fast = catalogue("mtron", 1, &clock);
    let read = |id| BlockRequest::read(id, Bytes(MIB), 512 << 10, AlignedBuffer::new(512 << 10));
    slow.submit(read(1));
    fast.submit(read(2));
    let (which, first) = wait_any(&mut [&mut slow, &mut fast]).unwrap();
    assert_eq!((which, first.request.id, clock.now()), (1, 2, short), "the faster one is done first");
    let (which, second) = wait_any(&mut [&mut slow, &mut fast]).unwrap();
    assert_eq!((which, second.request.id, clock.now()), (0, 1, long));
    assert!(wait_any(&mut [&mut slow, &mut fast]).is_none());
}

#[test]
fn computing_is_charged_and_devices_work_meanwhile() {
    let clock = Clock::virtual_time();
    let mut device = catalogue("mtron", 4, &clock);
    let read = |id| BlockRequest::read(id, Bytes(id * MIB), 32 << 10, AlignedBuffer::new(32 << 10));
    device.submit(read(1));
    let Next::At(done) = device.next() else { panic!("something is under way") };
    clock.advance(Nanos(done.0 + 1_000_000));
    let first = device.wait(Which::Any).unwrap();
    assert_eq!((first.submitted, first.done), (Nanos(0), done), "it was done while the program computed");
    assert_eq!(clock.now(), Nanos(done.0 + 1_000_000), "and waiting for it took no time any more");
    device.submit(read(2));
    let second = device.wait(Which::Id(2)).unwrap();
    assert_eq!(second.submitted, Nanos(done.0 + 1_000_000));
    assert!(device.wait(Which::Any).is_none());
}

#[test]
fn no_more_are_under_way_than_were_asked_for() {
    let clock = Clock::virtual_time();
    let mut device = program(with_channels(8), 2, &clock);
    fill(&mut device, MIB);
    let mut buffers = Buffers::new(16, 4096);
    (0..16).for_each(|id| {
        device.submit(BlockRequest::read(id, Bytes(id * 4096), 4096, buffers.take().unwrap()));
    });
    let mut all = Vec::new();
    while let Some(completion) = device.wait(Which::Any) {
        completion.result.unwrap();
        all.push((completion.submitted, completion.done));
    }
    assert_eq!(all.len(), 16);
    assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1), "in the order they were done: {all:?}");
    for (at, _) in &all {
        let under_way = all.iter().filter(|(from, to)| from <= at && at < to).count();
        assert!(under_way <= 2, "{under_way} at {at}: {all:?}");
    }
}

#[test]
fn a_traced_program_leaves_the_records_of_its_requests() {
    let clock = Clock::virtual_time();
    let mut device = program(with_channels(4), 4, &clock);
    clock.advance(Nanos::from_millis(3));
    let keep = KeepAll::new(3);
    let mut traced = Traced::new(&mut device, &keep, 5);
    fill(&mut traced, 4 * MIB);
    blocks::flush(&mut traced).unwrap();
    blocks::trim(&mut traced, Bytes(MIB), MIB as u32).unwrap();
    traced.submit(BlockRequest::read(9, Bytes(1 << 50), 512, AlignedBuffer::new(512)));
    let error = traced.wait(Which::Id(9)).unwrap().result.unwrap_err().to_string();
    assert!(error.contains("offset 1125899906842624"), "{error}");
    assert_eq!(traced.failed(), 1);
    // Also what fails only while it is ended is told: it is no good run.
    traced.submit(BlockRequest::read(10, Bytes(1 << 50), 512, AlignedBuffer::new(512)));
    let uflip_device::blocks::TracedEnd { end, failed, bytes } = traced.finish();
    assert_eq!((failed, bytes), (2, Bytes(5 * MIB)));
    let records: Vec<IoRecord> = keep.records();
    assert_eq!((end.ios, records.len()), (6, 6));
    let modes: Vec<Mode> = records.iter().map(|r| r.mode()).collect();
    assert_eq!(modes, [Mode::Write, Mode::Write, Mode::Write, Mode::Write, Mode::Flush, Mode::Trim]);
    assert!(records.iter().all(|r| r.stream() == 5));
    assert_eq!(records[0].submit(), Nanos::ZERO, "times count from when the tracing began");
    assert_eq!((records[3].offset(), records[3].size()), (Bytes(3 * MIB), MIB as u32));
    let last = records.iter().map(|r| r.submit() + r.response()).max().unwrap();
    assert_eq!((end.elapsed, clock.now()), (last, last + Nanos::from_millis(3)));
}

#[test]
fn a_full_memory_is_an_error_with_the_place_and_the_device_goes_on() {
    let clock = Clock::virtual_time();
    let mut device = SimBlocks::new(with_channels(1), 1, clock, Bytes(64 << 10)).unwrap();
    let mut buffer = AlignedBuffer::new(64 << 10);
    blocks::write(&mut device, Bytes(0), 64 << 10, &mut buffer).unwrap();
    let error = blocks::write(&mut device, Bytes(MIB), 4096, &mut buffer).unwrap_err().to_string();
    assert!(error.contains("64K") && error.contains("offset 1048576"), "{error}");
    blocks::trim(&mut device, Bytes(0), 8192).unwrap();
    blocks::write(&mut device, Bytes(MIB), 4096, &mut buffer).unwrap();
}

#[test]
fn a_simulated_device_takes_no_wall_clock() {
    let refused = SimBlocks::new(with_channels(1), 1, Clock::wall(), Bytes(1 << 20)).err().unwrap();
    assert!(refused.to_string().contains("virtual time"), "{refused}");
}
