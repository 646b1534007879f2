//! No request allocates: not in the program's thread and in no other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use uflip_device::blocks::{
    self, BlockRequest, Buffers, Clock, MemoryBlocks, RealBlocks, Traced, Way, Which,
};
use uflip_device::{Blocks, Bytes, Geometry, KeepAll};

/// Counts what is asked of the system's allocator.
struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const BLOCK: u32 = 4096;
const SIZE: u64 = 1 << 20;

/// Reads and writes with 8 under way, 4000 requests, and single ones between.
fn work(device: &mut dyn Blocks, buffers: &mut Buffers) {
    for id in 0..4000u64 {
        let buffer = match buffers.take() {
            Some(buffer) => buffer,
            None => device.wait(Which::Any).expect("eight are under way").request.buffer,
        };
        let at = Bytes(id % (SIZE / u64::from(BLOCK)) * u64::from(BLOCK));
        device.submit(if id % 3 == 0 {
            BlockRequest::write(id, at, BLOCK, buffer)
        } else {
            BlockRequest::read(id, at, BLOCK, buffer)
        });
        if id % 500 == 0 {
            blocks::flush(device).unwrap();
        }
    }
    while let Some(done) = device.wait(Which::Any) {
        buffers.give(done.request.buffer);
    }
}

// One test, as the counter is the process's.
#[test]
fn nothing_is_allocated_for_a_request() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(file.path(), vec![7; SIZE as usize]).unwrap();
    let open =
        || OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(file.path()).unwrap();
    let geometry = Geometry { capacity: Bytes(SIZE), sector: Bytes(512) };
    let real = |way| RealBlocks::by(way, "test", open(), geometry, 9, Clock::wall()).unwrap();
    let (mut ring, mut threads) = (real(Way::IoUring), real(Way::Threads));
    let mut memory = MemoryBlocks::new("memory", Bytes(SIZE), 8, Clock::virtual_time()).unwrap();
    let devices: [(&str, &mut dyn Blocks); 3] =
        [("io_uring", &mut ring), ("threads", &mut threads), ("memory", &mut memory)];
    for (name, device) in devices {
        let mut buffers = Buffers::new(8, BLOCK as usize);
        let keep = KeepAll::new(1 << 16);
        let mut traced = Traced::new(device, &keep, 0);
        // What is made once: the threads' own.
        blocks::flush(&mut traced).unwrap();
        let before = ASKED.load(Ordering::SeqCst);
        work(&mut traced, &mut buffers);
        let asked = ASKED.load(Ordering::SeqCst) - before;
        assert_eq!(asked, 0, "{name}: {asked} allocations for 4000 requests");
        assert!(traced.finish().end.ios > 4000);
    }
}
