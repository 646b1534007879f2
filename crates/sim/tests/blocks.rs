//! Programs on simulated devices: requests under way, one clock for several
//! devices, computing, and data.

use proptest::prelude::*;
use uflip_device::blocks::{
    self, BlockRequest, Buffers, Clock, MemoryBlocks, Next, Traced, Which, copy, wait_any,
};
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

#[test]
fn memory_beside_a_simulated_device_is_on_its_clock() {
    // The device alone, reading 16 requests of 4 KiB with eight under way.
    let alone = {
        let clock = Clock::virtual_time();
        let mut device = program(with_channels(4), 8, &clock);
        fill(&mut device, MIB);
        let began = clock.now();
        for id in 0..16 {
            device.submit(BlockRequest::read(id, Bytes(id * 4096), 4096, AlignedBuffer::new(4096)));
        }
        while device.wait(Which::Any).is_some() {}
        clock.now().saturating_sub(began)
    };
    let copied = |each: u64| {
        let clock = Clock::virtual_time();
        let mut from = program(with_channels(4), 8, &clock);
        fill(&mut from, MIB);
        let began = clock.now();
        let memory = MemoryBlocks::new("memory", Bytes(MIB), 8, clock.clone()).unwrap();
        let mut to = memory.taking(Nanos(each));
        let job = copy::CopyJob { bytes: Bytes(64 << 10), block: 4096, requests: 8 };
        copy::copy(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap();
        copy::compare(&mut from, &mut to, copy::CopyJob { requests: 1, ..job }, &Stop::new(), &mut |_| {})
            .map(|_| clock.now().saturating_sub(began))
            .unwrap()
    };
    // Comparing is one read after another: 16 of them, after the copy.
    let one = {
        let clock = Clock::virtual_time();
        let mut device = program(with_channels(4), 1, &clock);
        fill(&mut device, MIB);
        blocks::read(&mut device, Bytes(0), 4096, &mut AlignedBuffer::new(4096)).unwrap();
        let began = clock.now();
        blocks::read(&mut device, Bytes(4096), 4096, &mut AlignedBuffer::new(4096)).unwrap();
        clock.now().saturating_sub(began)
    };
    assert_eq!(copied(0), Nanos(alone.0 + 16 * one.0), "memory takes no virtual time");
    // A thousand seconds a request: eight at once, so two rounds of writes, the flush
    // and 16 reads one after another, beside which what the device does is hidden.
    let hour = 1_000_000_000_000;
    let slow = copied(hour);
    assert!((19 * hour..19 * hour + alone.0 + one.0 * 16).contains(&slow.0), "{slow}");
}

/// One request of a random program.
#[derive(Clone, Debug)]
struct Ask {
    mode: Mode,
    sector: u64,
    sectors: u64,
    /// What the program computes for before it, in microseconds.
    after: u64,
    /// Whether it waits for one before it.
    waits: bool,
}

fn ask() -> impl Strategy<Value = Ask> {
    let mode =
        prop::sample::select(vec![Mode::Read, Mode::Read, Mode::Write, Mode::Write, Mode::Trim, Mode::Flush]);
    (mode, 0u64..24, 1u64..9, 0u64..400, prop::bool::weighted(0.2))
        .prop_map(|(mode, sector, sectors, after, waits)| Ask { mode, sector, sectors, after, waits })
}

/// What a request was and what came of it.
struct Seen {
    done: Nanos,
    turn: u64,
    mode: Mode,
    range: std::ops::Range<usize>,
    bytes: Vec<u8>,
}

/// Does the requests without waiting for those that touch the same bytes, unless
/// `apart`; gives what was seen and the device afterwards.
fn seen(device: SimDevice, asks: &[Ask], apart: bool) -> (Vec<Seen>, SimBlocks) {
    let clock = Clock::virtual_time();
    let mut device = program(device, 6, &clock);
    let (mut all, mut under_way) = (Vec::new(), Vec::<(u64, std::ops::Range<usize>)>::new());
    let meet = |done: uflip_device::blocks::Completion, all: &mut Vec<Seen>| {
        assert!(done.result.is_ok(), "{:?}", done.result);
        let (start, length) = (done.request.offset.0 as usize, done.request.length as usize);
        let bytes = done.request.bytes().to_vec();
        let (turn, mode) = (done.request.id, done.request.mode);
        all.push(Seen { done: done.done, turn, mode, range: start..start + length, bytes });
    };
    for (turn, ask) in (0u64..).zip(asks) {
        clock.advance(Nanos::from_micros(ask.after));
        let is_flush = ask.mode == Mode::Flush;
        let (start, length) = if is_flush { (0, 0) } else { (ask.sector * 512, ask.sectors * 512) };
        let range = start as usize..(start + length) as usize;
        let touches = |of: &std::ops::Range<usize>| of.start < range.end && range.start < of.end;
        while let Some(at) = under_way.iter().position(|(_, of)| apart && touches(of)) {
            let (id, _) = under_way.swap_remove(at);
            device.wait(Which::Id(id)).into_iter().for_each(|done| meet(done, &mut all));
        }
        if ask.waits
            && let Some(done) = device.wait(Which::Any)
        {
            under_way.retain(|(id, _)| *id != done.request.id);
            meet(done, &mut all);
        }
        let mut buffer = AlignedBuffer::new((length as usize).max(1));
        buffer.bytes_mut().fill(turn as u8 + 1);
        under_way.push((turn, range));
        let (mode, offset) = (ask.mode, Bytes(start));
        device.submit(BlockRequest { id: turn, mode, offset, length: length as u32, buffer });
    }
    while let Some(done) = device.wait(Which::Any) {
        meet(done, &mut all);
    }
    (all, device)
}

/// Plain memory that takes the requests in this order.
fn held_against_memory(all: &[Seen], device: &mut SimBlocks) -> Result<(), TestCaseError> {
    let mut model = vec![0u8; 32 * 512];
    for one in all {
        match one.mode {
            Mode::Write => model[one.range.clone()].copy_from_slice(&one.bytes),
            Mode::Trim => model[one.range.clone()].fill(0),
            Mode::Read => {
                prop_assert!(model[one.range.clone()] == one.bytes, "read {} at {:?}", one.turn, one.range)
            }
            Mode::Flush => {}
        }
    }
    let mut whole = AlignedBuffer::new(model.len());
    blocks::read(device, Bytes(0), model.len() as u32, &mut whole).unwrap();
    prop_assert!(whole.bytes() == model, "what is left");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_that_touch_nothing_in_common_are_those_of_memory_in_any_order(asks in prop::collection::vec(ask(), 1..60)) {
        let (mut all, mut device) = seen(with_channels(2), &asks, true);
        all.sort_by_key(|one| one.turn);
        held_against_memory(&all, &mut device)?;
    }

    #[test]
    fn requests_that_overlap_take_effect_as_they_are_finished(asks in prop::collection::vec(ask(), 1..60)) {
        let (mut all, mut device) = seen(with_channels(2), &asks, false);
        all.sort_by_key(|one| (one.done, one.turn));
        held_against_memory(&all, &mut device)?;
    }
}

#[test]
fn a_write_under_way_is_not_read_and_does_not_survive_a_cut_of_the_power() {
    let clock = Clock::virtual_time();
    let mut device = program(with_channels(8), 4, &clock);
    let filled = |with: u8| {
        let mut buffer = AlignedBuffer::new(MIB as usize);
        buffer.bytes_mut().fill(with);
        buffer
    };
    blocks::write(&mut device, Bytes(0), MIB as u32, &mut filled(1)).unwrap();
    // A mebibyte takes long; the last page of it is read at once.
    device.submit(BlockRequest::write(1, Bytes(0), MIB as u32, filled(2)));
    let early = BlockRequest::read(2, Bytes(9 * MIB), 512, AlignedBuffer::new(512));
    device.submit(early);
    let first = device.wait(Which::Any).unwrap();
    assert_eq!(first.request.id, 2, "the read of another place is done before the write");
    device.submit(BlockRequest::read(3, Bytes(MIB - 4096), 4096, AlignedBuffer::new(4096)));
    let (read, write) = (device.wait(Which::Id(3)).unwrap(), device.wait(Which::Id(1)).unwrap());
    let expected = if read.done < write.done { 1 } else { 2 };
    assert!(
        read.request.bytes().iter().all(|byte| *byte == expected),
        "read at {}, written at {}",
        read.done,
        write.done
    );
    let left = |device: SimBlocks| {
        let mut byte = [0];
        device.into_device().content().read(0, &mut byte);
        byte[0]
    };
    device.submit(BlockRequest::write(4, Bytes(0), MIB as u32, filled(3)));
    let Next::At(done) = device.next() else { panic!("nothing under way") };
    clock.reach(Nanos(done.0 - 1));
    assert_eq!(left(device), 2, "a nanosecond too early");
    let mut device = program(with_channels(8), 4, &clock);
    device.submit(BlockRequest::write(4, Bytes(0), MIB as u32, filled(3)));
    let Next::At(done) = device.next() else { panic!("nothing under way") };
    clock.reach(done);
    assert_eq!(left(device), 3);
}

#[test]
fn writes_under_way_count_for_the_memory_they_will_take() {
    let clock = Clock::virtual_time();
    let mut device = SimBlocks::new(with_channels(1), 4, clock, Bytes(64 << 10)).unwrap();
    for id in 0..2 {
        device.submit(BlockRequest::write(id, Bytes(id * MIB), 48 << 10, AlignedBuffer::new(48 << 10)));
    }
    let mut all: Vec<(u64, bool)> = std::iter::from_fn(|| device.wait(Which::Any))
        .map(|done| (done.request.id, done.result.is_ok()))
        .collect();
    all.sort_unstable();
    assert_eq!(all, [(0, true), (1, false)]);
}
