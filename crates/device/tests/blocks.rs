//! The data face on files and in memory: what is under way at once, what comes
//! back and in which order, and what goes wrong.

use proptest::prelude::*;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use uflip_device::blocks::{
    self, BlockRequest, Buffers, Clock, Completion, MemoryBlocks, Next, Pending, RealBlocks, Way, Which,
    copy, wait_any,
};
use uflip_device::buffer::AlignedBuffer;
use uflip_device::{Blocks, Bytes, DeviceError, Geometry, Mode, Nanos, Stop};

const SIZE: u64 = 2 << 20;
const WAYS: [Way; 2] = [Way::IoUring, Way::Threads];

fn geometry() -> Geometry {
    Geometry { capacity: Bytes(SIZE), sector: Bytes(4096) }
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).unwrap()
}

fn device(path: &Path, way: Way, requests: usize) -> RealBlocks {
    RealBlocks::by(way, "test", open(path), geometry(), requests, Clock::wall()).unwrap()
}

/// A file on a disk, as memory takes no O_DIRECT.
fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

fn contents() -> Vec<u8> {
    (0..SIZE / 8).flat_map(|i| (i * 0x9e37_79b9 + 1).to_le_bytes()).collect()
}

fn memory() -> MemoryBlocks {
    MemoryBlocks::new("memory", Bytes(SIZE), 8, Clock::wall()).unwrap()
}

#[test]
fn what_was_written_is_read_and_what_was_trimmed_is_gone() {
    for way in WAYS {
        let file = file(&[7; SIZE as usize]);
        let mut device = device(file.path(), way, 4);
        assert_eq!(device.way(), way);
        let mut buffer = AlignedBuffer::new(8192);
        buffer.bytes_mut().copy_from_slice(&contents()[..8192]);
        blocks::write(&mut device, Bytes(4096), 8192, &mut buffer).unwrap();
        blocks::flush(&mut device).unwrap();
        blocks::trim(&mut device, Bytes(4096), 4096).unwrap();
        buffer.bytes_mut().fill(1);
        blocks::read(&mut device, Bytes(4096), 8192, &mut buffer).unwrap();
        assert!(buffer.bytes()[..4096].iter().all(|b| *b == 0), "{way}");
        assert_eq!(buffer.bytes()[4096..], contents()[4096..8192], "{way}");
        let whole = std::fs::read(file.path()).unwrap();
        assert!(whole[..4096].iter().chain(&whole[12_288..]).all(|b| *b == 7), "{way}");
    }
}

#[test]
fn a_copy_of_a_file_is_the_file_byte_for_byte() {
    for way in WAYS {
        let (one, other) = (file(&contents()), file(&[0; SIZE as usize]));
        let clock = Clock::wall();
        let of = |path: &Path| RealBlocks::by(way, "test", open(path), geometry(), 8, clock.clone()).unwrap();
        let (mut from, mut to) = (of(one.path()), of(other.path()));
        let job = copy::CopyJob { bytes: Bytes(SIZE - 4096), block: 64 << 10, requests: 8 };
        let mut told = Vec::new();
        let copied = copy::copy(&mut from, &mut to, job, &Stop::new(), &mut |b| told.push(b.0)).unwrap();
        assert_eq!(copied.bytes, job.bytes);
        assert!(told.windows(2).all(|pair| pair[0] < pair[1]) && told.last() == Some(&job.bytes.0));
        let written = std::fs::read(other.path()).unwrap();
        assert!(written[..job.bytes.0 as usize] == contents()[..job.bytes.0 as usize], "{way}");
        assert!(written[job.bytes.0 as usize..].iter().all(|b| *b == 0), "{way}: beyond what was copied");
        assert_eq!(copy::compare(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap(), copied);
        let mut buffer = AlignedBuffer::new(4096);
        buffer.bytes_mut().copy_from_slice(&written[1 << 20..(1 << 20) + 4096]);
        buffer.bytes_mut()[77] ^= 1;
        blocks::write(&mut to, Bytes(1 << 20), 4096, &mut buffer).unwrap();
        let differs = copy::compare(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap_err();
        assert!(matches!(differs, copy::CompareError::Differs(at) if at == (1 << 20) + 77), "{differs}");
    }
}

#[test]
fn errors_come_back_with_their_place_and_buffer_and_the_device_goes_on() {
    for way in WAYS {
        let file = file(&[7; SIZE as usize]);
        let mut device = device(file.path(), way, 2);
        for (offset, length, bytes, word) in [
            (SIZE, 4096, 4096, "2097152 bytes"),
            (u64::MAX - 4095, 4096, 4096, "2097152 bytes"),
            (512, 4096, 4096, "multiples"),
            (0, 512, 4096, "multiples"),
            (0, 0, 4096, "from 1 to"),
            (0, 8192, 4096, "the buffer has 4096"),
        ] {
            device.submit(BlockRequest::read(3, Bytes(offset), length, AlignedBuffer::new(bytes)));
            let Completion { request, result, .. } = device.wait(Which::Any).unwrap();
            let error = result.unwrap_err();
            assert!(error.to_string().contains(word), "{way}: {error}");
            assert!(matches!(error, DeviceError::Io { offset: at, .. } if at == offset), "{error}");
            assert_eq!((request.id, request.buffer.bytes().len()), (3, bytes));
        }
        // The file is shorter than the device was said to be.
        file.as_file().set_len(SIZE / 2).unwrap();
        device.submit(BlockRequest::read(4, Bytes(SIZE / 2), 4096, AlignedBuffer::new(4096)));
        let short = device.wait(Which::Id(4)).unwrap().result.unwrap_err();
        assert!(matches!(short, DeviceError::Short { offset, .. } if offset == SIZE / 2), "{way}: {short}");
        blocks::read(&mut device, Bytes(0), 4096, &mut AlignedBuffer::new(4096)).unwrap();
    }
}

#[test]
fn a_write_to_what_is_open_for_reading_says_so() {
    for way in WAYS {
        let file = file(&[7; SIZE as usize]);
        let read_only = File::open(file.path()).unwrap();
        let mut device = RealBlocks::by(way, "test", read_only, geometry(), 1, Clock::wall()).unwrap();
        let error = blocks::write(&mut device, Bytes(8192), 4096, &mut AlignedBuffer::new(4096)).unwrap_err();
        assert!(error.to_string().contains("reading only"), "{way}: {error}");
        assert!(error.to_string().contains("offset 8192"), "{way}: {error}");
    }
}

#[test]
fn one_is_fetched_by_its_id_and_the_others_stay() {
    for way in WAYS {
        let file = file(&contents());
        let mut device = device(file.path(), way, 8);
        for id in 0..8 {
            device.submit(BlockRequest::read(id, Bytes(id * 4096), 4096, AlignedBuffer::new(4096)));
        }
        assert!(device.wait(Which::Id(99)).is_none(), "{way}: nobody asked that");
        assert_eq!(device.wait(Which::Id(5)).unwrap().request.id, 5);
        // In between another part of the program reads.
        blocks::read(&mut device, Bytes(0), 4096, &mut AlignedBuffer::new(4096)).unwrap();
        let mut left: Vec<u64> =
            std::iter::from_fn(|| device.wait(Which::Any)).map(|done| done.request.id).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2, 3, 4, 6, 7], "{way}");
        assert!(matches!(device.next(), Next::Nothing), "{way}");
    }
}

#[test]
fn times_are_on_the_clock_and_whatever_is_done_first_comes_first() {
    for way in WAYS {
        let file = file(&contents());
        let clock = Clock::wall();
        let mut device = RealBlocks::by(way, "t", open(file.path()), geometry(), 4, clock.clone()).unwrap();
        let before = clock.now();
        (0..4).for_each(|id| {
            device.submit(BlockRequest::read(id, Bytes(id * 4096), 4096, AlignedBuffer::new(4096)));
        });
        let mut last = Nanos::ZERO;
        for _ in 0..4 {
            let (_, done) = wait_any(&mut [&mut device, &mut memory()]).unwrap();
            assert!(before <= done.submitted && done.submitted < done.done && done.done <= clock.now());
            assert!(last <= done.done, "{way}");
            last = done.done;
        }
    }
}

#[test]
fn virtual_time_stands_still_while_something_real_is_under_way() {
    for way in WAYS {
        let file = file(&contents());
        let mut real = device(file.path(), way, 2);
        let clock = Clock::virtual_time();
        // Known at once to be done an hour from now, in virtual time.
        let mut simulated = Late(Pending::new(1), clock.clone());
        simulated.submit(BlockRequest::flush(7));
        for id in 0..2 {
            real.submit(BlockRequest::read(id, Bytes(id << 20), 1 << 20, AlignedBuffer::new(1 << 20)));
        }
        for _ in 0..2 {
            let (which, _) = wait_any(&mut [&mut simulated, &mut real]).unwrap();
            assert_eq!((which, clock.now()), (1, Nanos::ZERO), "{way}");
        }
        let (which, done) = wait_any(&mut [&mut simulated, &mut real]).unwrap();
        assert_eq!((which, done.request.id, clock.now()), (0, 7, Nanos::from_secs(3600)), "{way}");
        assert!(wait_any(&mut [&mut simulated, &mut real]).is_none());
    }
}

/// Takes an hour of virtual time for everything.
struct Late(Pending, Clock);

impl Blocks for Late {
    fn geometry(&self) -> Geometry {
        geometry()
    }
    fn submit(&mut self, request: BlockRequest) {
        let submitted = self.1.now();
        let done = submitted + Nanos::from_secs(3600);
        self.0.push(Completion { request, submitted, done, result: Ok(()) });
    }
    fn wait(&mut self, which: Which) -> Option<Completion> {
        let done = self.0.take(which)?;
        self.1.reach(done.done);
        Some(done)
    }
    fn next(&mut self) -> Next<'_> {
        self.0.first().map_or(Next::Nothing, Next::At)
    }
    fn clock(&self) -> &Clock {
        &self.1
    }
}

/// How many of eight reads were under way when the last of them was submitted.
fn overlapping(device: &mut RealBlocks) -> usize {
    let length = SIZE as u32 / 8;
    for id in 0..8 {
        let buffer = AlignedBuffer::new(length as usize);
        device.submit(BlockRequest::read(id, Bytes(id * u64::from(length)), length, buffer));
    }
    let all: Vec<Completion> = std::iter::from_fn(|| device.wait(Which::Any)).collect();
    assert_eq!(all.len(), 8);
    let last = all.iter().map(|done| done.submitted).max().unwrap();
    all.iter().filter(|done| done.done > last).count()
}

#[test]
fn as_many_are_under_way_as_were_asked_for_and_no_more() {
    let file = file(&contents());
    for way in WAYS {
        // The disk may be done with some before the last is submitted: then again.
        // One after the other would never be more than one.
        let mut most = 0;
        for _ in 0..50 {
            most = most.max(overlapping(&mut device(file.path(), way, 8)));
        }
        assert!(most > 2, "{way}: {most} under way");
        let two = (0..20).map(|_| overlapping(&mut device(file.path(), way, 2))).max();
        assert!(two <= Some(2), "{way}: {two:?} under way of two");
    }
}

/// Answers only once as many are under way as were asked for, or no more come.
struct Patient {
    inner: MemoryBlocks,
    held: Vec<BlockRequest>,
    finished: Pending,
    most: std::rc::Rc<std::cell::Cell<usize>>,
}

impl Blocks for Patient {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }
    fn submit(&mut self, request: BlockRequest) {
        self.held.push(request);
        self.most.set(self.most.get().max(self.held.len()));
    }
    fn wait(&mut self, which: Which) -> Option<Completion> {
        let _ = self.next();
        self.finished.take(which)
    }
    /// The last one that was submitted is done first.
    fn next(&mut self) -> Next<'_> {
        if self.finished.first().is_none()
            && let Some(request) = self.held.pop()
        {
            self.finished.push(blocks::ask(&mut self.inner, request));
        }
        self.finished.first().map_or(Next::Nothing, Next::At)
    }
    fn clock(&self) -> &Clock {
        self.inner.clock()
    }
}

#[test]
fn a_copy_keeps_as_many_under_way_as_it_was_told() {
    for requests in [1, 3, 8] {
        let clock = Clock::virtual_time();
        let most: [std::rc::Rc<std::cell::Cell<usize>>; 2] = Default::default();
        let patient = |most: &std::rc::Rc<std::cell::Cell<usize>>| Patient {
            inner: MemoryBlocks::new("m", Bytes(SIZE), 8, clock.clone()).unwrap(),
            held: Vec::new(),
            finished: Pending::new(1),
            most: most.clone(),
        };
        let (mut from, mut to) = (patient(&most[0]), patient(&most[1]));
        let mut buffer = AlignedBuffer::new(SIZE as usize);
        buffer.bytes_mut().copy_from_slice(&contents());
        blocks::write(&mut from.inner, Bytes(0), SIZE as u32, &mut buffer).unwrap();
        let job = copy::CopyJob { bytes: Bytes(SIZE), block: 4096, requests };
        copy::copy(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap();
        assert_eq!(most[0].get(), requests, "reads under way of {requests}");
        copy::compare(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap();
        blocks::read(&mut to.inner, Bytes(0), SIZE as u32, &mut buffer).unwrap();
        assert!(buffer.bytes() == contents());
    }
}

#[test]
fn a_stopped_copy_ends_with_what_is_under_way() {
    let stop = Stop::new();
    let (mut from, mut to) = (memory(), memory());
    let job = copy::CopyJob { bytes: Bytes(SIZE), block: 4096, requests: 4 };
    let copied = copy::copy(&mut from, &mut to, job, &stop, &mut |bytes| {
        if bytes.0 == 8 * 4096 {
            stop.ask();
        }
    });
    let copied = copied.unwrap();
    assert!(copied.interrupted && copied.bytes.0 < 16 * 4096, "{copied:?}");
    assert!(matches!(to.next(), Next::Nothing) && matches!(from.next(), Next::Nothing));
}

#[test]
fn a_copy_to_a_smaller_device_fails_with_the_place() {
    let (mut from, mut to) =
        (memory(), MemoryBlocks::new("small", Bytes(SIZE / 2), 8, Clock::wall()).unwrap());
    let job = copy::CopyJob { bytes: Bytes(SIZE), block: 1 << 20, requests: 4 };
    let error = copy::copy(&mut from, &mut to, job, &Stop::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, DeviceError::Io { offset: 1_048_576, mode: "write", .. }), "{error}");
    assert!(matches!(to.next(), Next::Nothing) && matches!(from.next(), Next::Nothing));
}

#[test]
fn a_device_of_nothing_takes_all_and_reads_as_zeros() {
    let mut device = MemoryBlocks::null("null", Bytes(1 << 40), 8, Clock::virtual_time()).unwrap();
    let mut buffer = AlignedBuffer::new(4096);
    buffer.bytes_mut().fill(3);
    blocks::write(&mut device, Bytes(1 << 39), 4096, &mut buffer).unwrap();
    blocks::read(&mut device, Bytes(1 << 39), 4096, &mut buffer).unwrap();
    assert!(buffer.bytes().iter().all(|b| *b == 0));
}

#[test]
fn what_cannot_be_opened_says_why() {
    let file = file(&[7; 4096]);
    for (requests, clock, word) in [
        (0, Clock::wall(), "1 to 1024"),
        (4000, Clock::wall(), "1 to 1024"),
        (1, Clock::virtual_time(), "real"),
    ] {
        let error = RealBlocks::new("test", open(file.path()), geometry(), requests, clock).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// One step of a random program.
#[derive(Clone, Debug)]
enum Act {
    Ask(Mode, u64, u64, u8),
    WaitAny,
    WaitFor(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let mode = prop::sample::select(vec![Mode::Read, Mode::Write, Mode::Write, Mode::Flush, Mode::Trim]);
    prop_oneof![
        4 => (mode, 0u64..16, 1u64..4, 1u8..).prop_map(|(m, at, n, fill)| Act::Ask(m, at, n, fill)),
        1 => Just(Act::WaitAny),
        1 => (0usize..8).prop_map(Act::WaitFor),
    ]
}

/// A request under way, and what a read must give.
struct Asked {
    id: u64,
    range: std::ops::Range<usize>,
    mode: Mode,
    expected: Vec<u8>,
}

fn meet(done: Option<Completion>, asked: &mut Vec<Asked>) -> Result<(), TestCaseError> {
    let Some(done) = done else { return Ok(()) };
    prop_assert!(done.result.is_ok(), "{:?}", done.result);
    let at = asked.iter().position(|a| a.id == done.request.id);
    prop_assert!(at.is_some(), "{} came back and is not under way", done.request.id);
    let was = asked.swap_remove(at.unwrap());
    prop_assert_eq!((was.mode, was.range.start as u64), (done.request.mode, done.request.offset.0));
    if was.mode == Mode::Read {
        prop_assert!(done.request.bytes() == was.expected, "read at {:?}", was.range);
    }
    Ok(())
}

/// Does the steps on a device and on plain memory, and holds them together.
/// Requests that touch the same bytes wait for each other, as programs must.
fn same_as_memory(device: &mut dyn Blocks, acts: &[Act], unit: u64) -> Result<(), TestCaseError> {
    let mut model = vec![0u8; (32 * unit) as usize];
    let mut zeros = AlignedBuffer::new(model.len());
    blocks::write(device, Bytes(0), model.len() as u32, &mut zeros).unwrap();
    let mut asked: Vec<Asked> = Vec::new();
    for (id, act) in (0u64..).zip(acts) {
        match *act {
            Act::WaitAny => {
                let done = device.wait(Which::Any);
                prop_assert_eq!(done.is_some(), !asked.is_empty());
                meet(done, &mut asked)?;
            }
            Act::WaitFor(n) => {
                if let Some(id) = asked.get(n).map(|a| a.id) {
                    let done = device.wait(Which::Id(id));
                    prop_assert_eq!(done.as_ref().map(|d| d.request.id), Some(id));
                    meet(done, &mut asked)?;
                }
            }
            Act::Ask(mode, at, count, fill) => {
                let length = if mode == Mode::Flush { 0 } else { count * unit };
                let start = if mode == Mode::Flush { 0 } else { at * unit };
                let range = start as usize..(start + length) as usize;
                let touches = |a: &Asked| a.range.start < range.end && range.start < a.range.end;
                while let Some(id) = asked.iter().find(|a| touches(a)).map(|a| a.id) {
                    meet(device.wait(Which::Id(id)), &mut asked)?;
                }
                let mut buffer = AlignedBuffer::new(length.max(1) as usize);
                buffer.bytes_mut().fill(fill);
                match mode {
                    Mode::Write => model[range.clone()].fill(fill),
                    Mode::Trim => model[range.clone()].fill(0),
                    Mode::Read | Mode::Flush => {}
                }
                let expected = model[range.clone()].to_vec();
                asked.push(Asked { id, range, mode, expected });
                device.submit(BlockRequest { id, mode, offset: Bytes(start), length: length as u32, buffer });
            }
        }
    }
    while !asked.is_empty() {
        meet(device.wait(Which::Any), &mut asked)?;
    }
    let mut all = AlignedBuffer::new(model.len());
    blocks::read(device, Bytes(0), model.len() as u32, &mut all).unwrap();
    prop_assert!(all.bytes() == model);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_program_meets_what_memory_would_hold(acts in prop::collection::vec(act(), 1..80), n in 1usize..9) {
        same_as_memory(&mut memory(), &acts, 512)?;
        let file = file(&[9; SIZE as usize]);
        for way in WAYS {
            same_as_memory(&mut device(file.path(), way, n), &acts, 4096)?;
        }
    }
}

#[test]
fn buffers_are_given_out_once() {
    let mut buffers = Buffers::new(2, 4096);
    let (one, two) = (buffers.take().unwrap(), buffers.take().unwrap());
    assert!(buffers.take().is_none() && one.bytes().as_ptr() != two.bytes().as_ptr());
    assert!(one.bytes().as_ptr().align_offset(4096) == 0);
    buffers.give(one);
    buffers.give(AlignedBuffer::empty());
    assert!(buffers.take().is_some() && buffers.take().is_none());
}
