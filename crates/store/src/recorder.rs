//! The memory side of recording: a reserve of touched chunks for the timed
//! loops, and a writer that works only when the reserve runs low.
//!
//! Method: a timed loop fills a chunk and exchanges it for an empty one (one
//! lock per chunk). Full chunks queue up. While more than half of the reserve
//! is free nothing is written, so that most runs are measured with the writer
//! asleep; beyond that a thread encodes chunks into the run's temporary file
//! and gives them back. A loop waits only when no chunk is free, and each such
//! wait is counted as a stall. Statistics are computed on the writer's side.
//!
//! Somebody may watch ([`Watch`]): then a loop's first chunks are small, and
//! larger only as it fills them fast, so that a slow device's IOs are handed
//! over some twenty times a second and a fast one's as seldom as ever. The
//! watcher copies from full chunks, a few records at a time under the lock; the
//! loops do what they always do.

use crate::checksum::Summing;
use crate::error::{StoreError, path_error};
use crate::files::create_new;
use crate::keep::Keep;
use crate::records::{RecordScratch, RecordWriter};
use crate::stats::StatsBuilder;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use uflip_device::{Bytes, Chunk, IoRecord, Nanos, Recorder};
use uflip_measure::run::RunStats;

/// Records of a full-size chunk: 3 MiB, and one row group of the file.
pub const CHUNK_RECORDS: usize = crate::records::ROW_GROUP_ROWS;

/// Memory set aside for records unless told otherwise.
pub const DEFAULT_RESERVE: Bytes = Bytes(33 << 20);

/// Sizes of chunks and how many of each are ready while somebody watches:
/// 5 MiB in all.
const WATCHED: [(usize, usize); 3] = [(64, 256), (1024, 64), (16 << 10, 8)];

/// A chunk filled faster than this makes the next one larger.
const FAST: Nanos = Nanos::from_millis(30);

/// Records that a watcher copies at once: 12 KiB, about a microsecond.
const GLANCE: usize = 512;

/// The smallest chunk handed out, however many streams there are.
const MIN_CHUNK_RECORDS: usize = 64;

/// What the recorder must know of a run before it starts.
#[derive(Clone, Debug)]
pub struct RunShape {
    /// The run's number, written in every row.
    pub run: u32,
    /// IOs of each stream.
    pub io_count: u64,
    /// Start-up IOs of each stream.
    pub io_ignore: u64,
    /// Parallel streams, as far as known: sizes the chunks. A wrong figure
    /// costs memory or time, never records.
    pub streams: u64,
    /// 2 for a mix, else 1.
    pub patterns: usize,
    /// The file to write, made anew when the first row group is due.
    pub path: PathBuf,
}

/// A run's records, written whole to `path` but not yet made durable.
pub struct Finished {
    /// The file, open for `sync_all`.
    pub file: File,
    /// Where it is.
    pub path: PathBuf,
    /// The checksum of its bytes, made while they were written.
    pub checksum: String,
    /// Records in it.
    pub ios: u64,
    /// Statistics of these.
    pub stats: RunStats,
    /// How often a timed loop had to wait for an empty chunk.
    pub stalls: u64,
}

/// A run whose records went elsewhere: [`Reserve::begin_keeping`].
pub struct Kept {
    /// Statistics of these.
    pub stats: RunStats,
    /// How often a timed loop had to wait for an empty chunk.
    pub stalls: u64,
}

/// The writer's side of one run.
struct RunFile {
    shape: RunShape,
    /// Takes the records instead of the shape's file.
    keep: Option<Box<dyn Keep>>,
    stats: StatsBuilder,
    writer: Option<RecordWriter<Summing<File>>>,
    scratch: Option<RecordScratch>,
    ios: u64,
}

impl RunFile {
    fn open(&mut self) -> Result<&mut RecordWriter<Summing<File>>, StoreError> {
        if self.writer.is_none() {
            let scratch = self.scratch.take().map_or_else(RecordScratch::new, Ok)?;
            let path = &self.shape.path;
            let file = new_file(path).map_err(path_error("cannot create", path))?;
            self.writer = Some(RecordWriter::new(Summing::new(file), path, scratch)?);
        }
        self.writer.as_mut().ok_or_else(|| StoreError::Refused("no record file is open".into()))
    }

    fn take(&mut self, records: &[IoRecord]) -> Result<(), StoreError> {
        let run = self.shape.run;
        self.stats.push(records);
        self.ios += records.len() as u64;
        match &mut self.keep {
            Some(keep) => keep.push(run, records),
            None => self.open()?.push(run, records),
        }
    }
}

/// A new file in the place of an old one of that name; a link is not followed.
fn new_file(path: &Path) -> std::io::Result<File> {
    match create_new(path, 0o666) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            create_new(path, 0o666)
        }
        made => made,
    }
}

/// An empty chunk whose memory is there.
fn touched(records: usize) -> Chunk {
    let mut chunk = vec![IoRecord::ZERO; records];
    // A zeroed allocation may be untouched memory: write to every page. The
    // black box keeps the compiler from seeing that the value is the same.
    chunk.fill(std::hint::black_box(IoRecord::ZERO));
    chunk.clear();
    chunk
}

/// Everything the loops and the writer share.
struct State {
    free: Vec<Chunk>,
    full: VecDeque<Chunk>,
    /// Small chunks for the sizes of [`WATCHED`]; empty while nobody watches.
    small: [Vec<Chunk>; 3],
    watched: bool,
    /// Full chunks of this run that left the queue.
    taken: u64,
    /// The run is being closed: the order of its chunks may change.
    closed: bool,
    /// Records that fit in all chunks in existence.
    allocated: usize,
    /// Records the reserve may hold.
    limit: usize,
    chunk_records: usize,
    waiting: usize,
    stalls: u64,
    /// True once the reserve ran low in this run. Decided by the loops alone,
    /// so that in virtual time the order of rows does not depend on threads.
    ran_low: bool,
    closing: bool,
    /// True while a chunk is out of the queue and being encoded.
    encoding: bool,
    run: Option<RunFile>,
    thread: Option<JoinHandle<()>>,
    failed: Option<StoreError>,
    scratch: Option<RecordScratch>,
}

impl State {
    /// True when full chunks should be written now.
    fn pressed(&self) -> bool {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        let used = self.allocated.saturating_sub(free);
        !self.full.is_empty() && self.run.is_some() && (self.waiting > 0 || used * 2 > self.limit)
    }

    fn allocate(&mut self, records: usize) -> Chunk {
        let chunk = touched(records);
        self.allocated += chunk.capacity();
        chunk
    }

    /// The size of the chunk after `full`, as a place in [`WATCHED`]; beyond it
    /// where nobody watches or the stream is fast.
    fn next_size(&self, full: &Chunk) -> usize {
        if !self.watched {
            return WATCHED.len();
        }
        let size =
            WATCHED.iter().position(|(records, _)| full.capacity() <= *records).unwrap_or(WATCHED.len());
        let took =
            full.last().zip(full.first()).map(|(last, first)| last.submit().saturating_sub(first.submit()));
        size + usize::from(took.is_none_or(|took| took < FAST))
    }

    /// Takes an emptied chunk back.
    fn give_back(&mut self, chunk: Chunk) {
        let small = WATCHED.iter().position(|(records, _)| chunk.capacity() == *records);
        match small.filter(|_| self.watched) {
            Some(size) => self.small[size].push(chunk),
            None => self.free.push(chunk),
        }
    }

    fn room_for_another(&self) -> bool {
        self.allocated + self.chunk_records <= self.limit
    }

    /// Chunk size and number for a run; keeps the chunks of the run before
    /// where they serve.
    fn prepare(&mut self, io_count: u64, streams: u64) {
        let streams = usize::try_from(streams.max(1)).unwrap_or(usize::MAX).min(IoRecord::MAX_STREAMS);
        let per_stream = usize::try_from(io_count).unwrap_or(usize::MAX).saturating_add(1);
        let fair = (self.limit / (streams * 4)).max(MIN_CHUNK_RECORDS);
        let fair = if streams == 1 { CHUNK_RECORDS.min(self.limit / 2) } else { fair };
        let records = per_stream.min(CHUNK_RECORDS).min(fair).max(MIN_CHUNK_RECORDS);
        let needed = per_stream.div_ceil(records).saturating_mul(streams);
        let affordable = (self.limit / records).max(streams);
        let chunks = needed.min(affordable);
        self.free.retain(|chunk| chunk.capacity() >= records);
        self.free.truncate(chunks);
        self.allocated = self.free.iter().map(Vec::capacity).sum();
        if self.allocated + (chunks - self.free.len()) * records > self.limit {
            self.free.clear();
            self.allocated = 0;
        }
        self.chunk_records = records;
        while self.free.len() < chunks {
            let chunk = self.allocate(records);
            self.free.push(chunk);
        }
    }
}

struct Shared {
    state: Mutex<State>,
    /// Signals the writer: chunks to write, or closing.
    work: Condvar,
    /// Signals the loops: a chunk is free.
    freed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid between statements: a panic elsewhere cannot
        // leave it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes the oldest full chunk, without holding the lock meanwhile.
    fn encode_one<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let (Some(mut chunk), Some(mut run)) = (state.full.pop_front(), state.run.take()) else {
            return state;
        };
        state.taken += 1;
        state.encoding = true;
        let skip = state.failed.is_some();
        drop(state);
        // After a failure chunks are only recycled: the run is lost, and the
        // loops must still come to their end.
        let result = if skip { Ok(()) } else { run.take(&chunk) };
        chunk.clear();
        state = self.lock();
        state.run = Some(run);
        state.encoding = false;
        state.give_back(chunk);
        if let Err(error) = result {
            state.failed.get_or_insert(error);
        }
        self.freed.notify_one();
        state
    }

    fn write_when_pressed(&self) {
        let mut state = self.lock();
        while !state.closing {
            state = if state.pressed() {
                self.encode_one(state)
            } else {
                self.work.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

/// Takes the records of one run after another; see the module's head.
pub struct Reserve(Arc<Shared>);

impl Reserve {
    /// A reserve of at most `reserve` bytes; allocates nothing yet. At least
    /// 1 MiB is used.
    pub fn new(reserve: Bytes) -> Reserve {
        let limit = usize::try_from(reserve.0.max(1 << 20)).unwrap_or(usize::MAX) / size_of::<IoRecord>();
        let state = State {
            free: Vec::new(),
            full: VecDeque::new(),
            small: Default::default(),
            watched: false,
            taken: 0,
            closed: true,
            allocated: 0,
            limit,
            chunk_records: MIN_CHUNK_RECORDS,
            waiting: 0,
            stalls: 0,
            ran_low: false,
            closing: false,
            encoding: false,
            run: None,
            thread: None,
            failed: None,
            scratch: None,
        };
        Reserve(Arc::new(Shared { state: Mutex::new(state), work: Condvar::new(), freed: Condvar::new() }))
    }

    /// Gets ready for a run: allocates and touches what it needs, at most the
    /// reserve, and starts the writer where the run may exceed it. A run
    /// already begun is forgotten.
    pub fn begin(&self, shape: RunShape) {
        self.start(shape, None);
    }

    /// The same with records that go to `keep` and not to the shape's file, to
    /// be ended by [`Reserve::finish_keeping`].
    pub fn begin_keeping(&self, shape: RunShape, keep: Box<dyn Keep>) {
        self.start(shape, Some(keep));
    }

    fn start(&self, shape: RunShape, keep: Option<Box<dyn Keep>>) {
        self.abandon();
        let mut state = self.0.lock();
        state.prepare(shape.io_count, shape.streams);
        (state.taken, state.closed) = (0, false);
        let total = shape.io_count.saturating_mul(shape.streams.max(1));
        let long = total > state.limit as u64 / 2;
        let stats = StatsBuilder::new(shape.io_ignore, shape.patterns);
        let scratch = state.scratch.take();
        state.run = Some(RunFile { shape, keep, stats, writer: None, scratch, ios: 0 });
        state.stalls = 0;
        state.ran_low = false;
        state.failed = None;
        if long {
            self.start_writer(&mut state);
        }
    }

    fn start_writer(&self, state: &mut State) {
        if state.thread.is_some() || state.closing {
            return;
        }
        let shared = Arc::clone(&self.0);
        let spawned = std::thread::Builder::new()
            .name("uflip-records".into())
            .spawn(move || shared.write_when_pressed());
        match spawned {
            Ok(thread) => state.thread = Some(thread),
            Err(e) => {
                let error = StoreError::Refused(format!("cannot start the thread that writes records: {e}"));
                state.failed.get_or_insert(error);
            }
        }
    }

    /// Ends the writer and waits for it.
    fn stop_writer(&self) {
        let thread = {
            let mut state = self.0.lock();
            state.closing = true;
            self.0.work.notify_all();
            state.thread.take()
        };
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            let error = StoreError::Refused("the thread that writes records panicked".into());
            self.0.lock().failed.get_or_insert(error);
        }
        self.0.lock().closing = false;
    }

    /// Writes what is left of the run's records and closes its file. All
    /// streams must have given their last chunk.
    ///
    /// # Errors
    /// [`StoreError`] where any of the records could not be written; the file
    /// may then be there in part.
    pub fn finish(&self) -> Result<Finished, StoreError> {
        let (mut state, mut run) = self.close()?;
        let stalls = state.stalls;
        run.open()?;
        let Some(writer) = run.writer.take() else {
            return Err(StoreError::Refused("no record file is open".into()));
        };
        let (file, scratch) = writer.finish()?;
        state.scratch = Some(scratch);
        let (file, checksum) = file.into_parts();
        Ok(Finished { file, path: run.shape.path, checksum, ios: run.ios, stats: run.stats.finish(), stalls })
    }

    /// Hands over what is left of the run's records and ends what keeps them.
    /// `ios` is what the device finished.
    ///
    /// # Errors
    /// [`StoreError`] where any of the records could not be kept, or where they
    /// are more or fewer than the IOs that were finished: then what keeps them is
    /// not ended, so that an output stays as it was.
    pub fn finish_keeping(&self, ios: u64) -> Result<Kept, StoreError> {
        let (mut state, mut run) = self.close()?;
        state.scratch = run.scratch.take();
        let stalls = state.stalls;
        drop(state);
        if run.ios != ios {
            let recorded = run.ios;
            return Err(StoreError::Refused(format!(
                "the device finished {ios} IOs but {recorded} were recorded; nothing is kept"
            )));
        }
        run.keep.take().map_or(Ok(()), |keep| keep.finish())?;
        Ok(Kept { stats: run.stats.finish(), stalls })
    }

    /// Takes the last chunks and gives the run, whole.
    fn close(&self) -> Result<(MutexGuard<'_, State>, RunFile), StoreError> {
        self.stop_writer();
        let mut state = self.0.lock();
        state.closed = true;
        if !state.ran_low {
            // Streams finish in any order; the file has them in theirs.
            state.full.make_contiguous().sort_by_key(|chunk| chunk.first().map(IoRecord::stream));
        }
        while !state.full.is_empty() && state.run.is_some() {
            state = self.0.encode_one(state);
        }
        let Some(mut run) = state.run.take() else {
            return Err(StoreError::Refused("no run was begun".into()));
        };
        if let Some(error) = state.failed.take() {
            state.scratch = run.writer.take().map(RecordWriter::abandon);
            return Err(error);
        }
        Ok((state, run))
    }

    /// Forgets the run that was begun, and its file.
    pub fn abandon(&self) {
        self.stop_writer();
        let mut state = self.0.lock();
        while let Some(mut chunk) = state.full.pop_front() {
            chunk.clear();
            state.give_back(chunk);
        }
        state.closed = true;
        state.failed = None;
        if let Some(mut run) = state.run.take() {
            state.scratch = run.writer.take().map(RecordWriter::abandon).or(run.scratch);
            // It may never have been made; what stays is removed on resume.
            let _ = std::fs::remove_file(&run.shape.path);
        }
    }

    /// Lets somebody watch the runs from now on; between runs only.
    pub fn watch(&self) -> Watch {
        let mut state = self.0.lock();
        state.watched = true;
        for (size, (records, count)) in WATCHED.into_iter().enumerate() {
            state.small[size] = (0..count).map(|_| touched(records)).collect();
        }
        Watch { shared: Arc::clone(&self.0), run: None, chunk: 0, record: 0 }
    }

    /// Bytes of all chunks in existence.
    pub fn allocated(&self) -> Bytes {
        Bytes((self.0.lock().allocated * size_of::<IoRecord>()) as u64)
    }

    /// An empty chunk of the size at place `size` of [`WATCHED`] or larger.
    fn empty_chunk(&self, mut state: MutexGuard<'_, State>, size: usize) -> Chunk {
        if let Some(chunk) = state.small.iter_mut().skip(size).find_map(Vec::pop) {
            return chunk;
        }
        let mut stalled = false;
        loop {
            if let Some(chunk) = state.free.pop() {
                state.stalls += u64::from(stalled);
                return chunk;
            }
            if state.room_for_another() {
                let records = state.chunk_records;
                return state.allocate(records);
            }
            let nothing_to_wait_for = !state.encoding && (state.full.is_empty() || state.run.is_none());
            if nothing_to_wait_for || (state.failed.is_some() && state.thread.is_none()) {
                // All memory is in the hands of the streams: there are more of
                // them than was said. Small chunks keep this bounded.
                return state.allocate(MIN_CHUNK_RECORDS);
            }
            stalled = true;
            state.ran_low = true;
            self.start_writer(&mut state);
            if state.thread.is_none() && state.failed.is_some() {
                // No thread is to be had: nobody would end the wait.
                continue;
            }
            state.waiting += 1;
            self.0.work.notify_one();
            state = self.0.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

/// Somebody who watches the runs of a [`Reserve`].
pub struct Watch {
    shared: Arc<Shared>,
    /// The run it reads, and where in it: chunks since its start, and records
    /// of the next one.
    run: Option<u32>,
    chunk: u64,
    record: usize,
}

/// What a [`Watch`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The run in progress.
    pub run: u32,
    /// It is another one than at the glance before.
    pub fresh: bool,
    /// Records that were written out before they could be seen.
    pub missed: bool,
}

impl Watch {
    /// Copies a few records more of the run in progress behind `into`; None
    /// where nothing new was handed over. The records of one stream come in
    /// their order.
    pub fn glance(&mut self, into: &mut Vec<IoRecord>) -> Option<Seen> {
        let state = self.shared.lock();
        let run = state.run.as_ref().filter(|_| !state.closed)?.shape.run;
        let fresh = self.run != Some(run);
        if fresh {
            (self.run, self.chunk, self.record) = (Some(run), 0, 0);
        }
        let missed = self.chunk < state.taken;
        if missed {
            (self.chunk, self.record) = (state.taken, 0);
        }
        let seen = Seen { run, fresh, missed };
        let at = usize::try_from(self.chunk - state.taken).unwrap_or(usize::MAX);
        let Some(chunk) = state.full.get(at) else { return fresh.then_some(seen) };
        let end = chunk.len().min(self.record + GLANCE);
        into.extend_from_slice(&chunk[self.record..end]);
        (self.chunk, self.record) = if end == chunk.len() { (self.chunk + 1, 0) } else { (self.chunk, end) };
        Some(seen)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Recorder for Reserve {
    fn fresh(&self) -> Chunk {
        self.empty_chunk(self.0.lock(), 0)
    }

    fn exchange(&self, full: Chunk) -> Chunk {
        let mut state = self.0.lock();
        let size = state.next_size(&full);
        state.full.push_back(full);
        if state.pressed() {
            state.ran_low = true;
            self.start_writer(&mut state);
            self.0.work.notify_one();
        }
        self.empty_chunk(state, size)
    }

    fn finish(&self, mut last: Chunk) {
        let mut state = self.0.lock();
        if last.is_empty() {
            last.clear();
            state.give_back(last);
            self.0.freed.notify_one();
        } else {
            state.full.push_back(last);
            if state.pressed() {
                state.ran_low = true;
                self.0.work.notify_one();
            }
        }
    }
}
