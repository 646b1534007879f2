//! What the timed loops touch of the reserve: chunks in queues of fixed capacity
//! that take no lock, and a few counters.
//!
//! How: empty chunks lie in one queue and full ones in another; a loop puts into
//! one and takes from the other, and never calls the kernel unless no chunk is
//! free (`super`). Nothing here grows while a run is on.

use super::{FAST, MIN_CHUNK_RECORDS, WATCHED};
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use uflip_device::{Chunk, IoRecord};

/// The chunks and their counters.
pub(super) struct Pool {
    free: ArrayQueue<Chunk>,
    /// Handed over by the loops, in that order.
    full: ArrayQueue<Chunk>,
    /// Small chunks for the sizes of [`WATCHED`]; empty while nobody watches.
    small: [ArrayQueue<Chunk>; WATCHED.len()],
    pub watched: AtomicBool,
    /// Records the reserve may hold.
    pub limit: usize,
    /// Records that fit in all chunks in existence.
    pub allocated: AtomicUsize,
    /// Records that fit in the free ones.
    free_records: AtomicUsize,
    /// Full chunks that were handed over and have not come back.
    out: AtomicUsize,
    /// A run was begun: full chunks will be taken.
    pub begun: AtomicBool,
    /// Loops that wait for a free chunk.
    pub waiting: AtomicUsize,
    /// How often one had to.
    pub stalls: AtomicU64,
    /// True once the reserve ran low in this run. Decided by the loops alone,
    /// so that in virtual time the order of rows does not depend on threads.
    pub ran_low: AtomicBool,
}

/// An empty chunk whose memory is there.
pub(super) fn touched(records: usize) -> Chunk {
    let mut chunk = vec![IoRecord::ZERO; records];
    // A zeroed allocation may be untouched memory: write to every page. The
    // black box keeps the compiler from seeing that the value is the same.
    chunk.fill(std::hint::black_box(IoRecord::ZERO));
    chunk.clear();
    chunk
}

impl Pool {
    /// For at most `limit` records, in chunks of any size, and one chunk more
    /// for every stream that was not told of.
    pub(super) fn new(limit: usize) -> Pool {
        let small: usize = WATCHED.iter().map(|(_, count)| count).sum();
        let chunks = limit / MIN_CHUNK_RECORDS + 2 * IoRecord::MAX_STREAMS + small;
        Pool {
            free: ArrayQueue::new(chunks),
            full: ArrayQueue::new(chunks),
            small: WATCHED.map(|(_, count)| ArrayQueue::new(count)),
            watched: AtomicBool::new(false),
            limit,
            allocated: AtomicUsize::new(0),
            free_records: AtomicUsize::new(0),
            out: AtomicUsize::new(0),
            begun: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            stalls: AtomicU64::new(0),
            ran_low: AtomicBool::new(false),
        }
    }

    /// True when less than half of the reserve is free, or a loop waits.
    pub(super) fn is_pressed(&self) -> bool {
        let free = self.free_records.load(Ordering::Relaxed);
        let used = self.allocated.load(Ordering::Relaxed).saturating_sub(free);
        self.waiting.load(Ordering::Relaxed) > 0 || used * 2 > self.limit
    }

    /// A free chunk of full size, if there is one.
    #[inline]
    pub(super) fn take_free(&self) -> Option<Chunk> {
        let chunk = self.free.pop()?;
        self.free_records.fetch_sub(chunk.capacity(), Ordering::Relaxed);
        Some(chunk)
    }

    /// An empty chunk of the size at place `size` of [`WATCHED`] or larger.
    #[inline]
    pub(super) fn take(&self, size: usize) -> Option<Chunk> {
        let small = self.small.iter().skip(size).find_map(ArrayQueue::pop);
        small.or_else(|| self.take_free())
    }

    /// Takes an empty chunk.
    pub(super) fn give(&self, chunk: Chunk) {
        let records = chunk.capacity();
        let small = WATCHED.iter().position(|(size, _)| records == *size);
        let small = small.filter(|_| self.watched.load(Ordering::Relaxed));
        let chunk = match small {
            Some(size) => self.small[size].push(chunk).err(),
            None => Some(chunk),
        };
        if let Some(chunk) = chunk {
            self.free_records.fetch_add(records, Ordering::Relaxed);
            if self.free.push(chunk).is_err() {
                // More than can be: it is gone, and so is its memory.
                self.free_records.fetch_sub(records, Ordering::Relaxed);
                self.allocated.fetch_sub(records, Ordering::Relaxed);
            }
        }
    }

    /// Takes a full chunk from a loop.
    #[inline]
    pub(super) fn hand_over(&self, chunk: Chunk) {
        self.out.fetch_add(1, Ordering::AcqRel);
        let mut chunk = chunk;
        // There is room for every chunk in existence.
        while let Err(back) = self.full.push(chunk) {
            chunk = back;
            std::thread::yield_now();
        }
        if self.is_pressed() {
            self.ran_low.store(true, Ordering::Relaxed);
        }
    }

    /// The next full chunk, in the order in which they were handed over.
    pub(super) fn next_full(&self) -> Option<Chunk> {
        self.full.pop()
    }

    /// Takes back a chunk that was full.
    pub(super) fn give_back(&self, chunk: Chunk) {
        self.give(chunk);
        self.out.fetch_sub(1, Ordering::AcqRel);
    }

    /// True where a chunk will come back to whoever waits for one.
    pub(super) fn is_one_to_come(&self) -> bool {
        self.begun.load(Ordering::Relaxed) && self.out.load(Ordering::Acquire) > 0
    }

    /// A new chunk, beyond those that were made ready.
    #[cold]
    pub(super) fn allocate(&self, records: usize) -> Chunk {
        let chunk = touched(records);
        self.allocated.fetch_add(chunk.capacity(), Ordering::Relaxed);
        chunk
    }

    /// The size of the chunk after `full`, as a place in [`WATCHED`]; beyond it
    /// where nobody watches or the stream is fast.
    #[inline]
    pub(super) fn next_size(&self, full: &Chunk) -> usize {
        if !self.watched.load(Ordering::Relaxed) {
            return WATCHED.len();
        }
        let size =
            WATCHED.iter().position(|(records, _)| full.capacity() <= *records).unwrap_or(WATCHED.len());
        let took =
            full.last().zip(full.first()).map(|(last, first)| last.submit().saturating_sub(first.submit()));
        size + usize::from(took.is_none_or(|took| took < FAST))
    }

    /// Makes the small chunks.
    pub(super) fn watch(&self) {
        self.watched.store(true, Ordering::Relaxed);
        for (queue, (records, _)) in self.small.iter().zip(WATCHED) {
            while queue.push(touched(records)).is_ok() {}
        }
    }

    /// Has `chunks` free chunks of at least `records` each; keeps those of the
    /// run before where they serve. Between runs only.
    pub(super) fn prepare(&self, records: usize, chunks: usize) {
        let mut free: Vec<Chunk> = std::iter::from_fn(|| self.free.pop()).collect();
        free.retain(|chunk| chunk.capacity() >= records);
        free.truncate(chunks);
        let kept: usize = free.iter().map(Vec::capacity).sum();
        if kept + (chunks - free.len()) * records > self.limit {
            free.clear();
        }
        let kept: usize = free.iter().map(Vec::capacity).sum();
        self.allocated.store(kept, Ordering::Relaxed);
        self.free_records.store(0, Ordering::Relaxed);
        let (reused, made) = (free.len(), chunks - free.len());
        free.into_iter().for_each(|chunk| self.put_free(chunk));
        for _ in 0..made {
            let chunk = self.allocate(records);
            self.put_free(chunk);
        }
        debug_assert_eq!(self.free.len(), reused + made);
        self.out.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        self.stalls.store(0, Ordering::Relaxed);
        self.ran_low.store(false, Ordering::Relaxed);
    }

    /// Into the free ones, whatever its size.
    fn put_free(&self, chunk: Chunk) {
        self.free_records.fetch_add(chunk.capacity(), Ordering::Relaxed);
        // There is room for as many as the limit allows.
        let _ = self.free.push(chunk);
    }
}
