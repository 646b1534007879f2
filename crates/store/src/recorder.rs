//! The memory side of recording: a reserve of touched chunks for the timed
//! loops, and a writer that works only when the reserve runs low.
//!
//! Method: a timed loop fills a chunk and exchanges it for an empty one through
//! queues that take no lock (`recorder/pool.rs`). Full chunks queue up. While more
//! than half of the reserve is free nothing is written, so that most runs are
//! measured with the writer asleep; beyond that a thread encodes chunks into the
//! run's temporary file and gives them back. It is started before the run, where
//! the run may need it, and looks by itself a hundred times a second whether it
//! is needed: nobody wakes it, as that would be a system call of the loop. A loop
//! waits only when no chunk is free, and each such wait is counted as a stall.
//! Statistics are computed on the writer's side.
//!
//! Somebody may watch ([`RecordWatch`]): then a loop's first chunks are small, and
//! larger only as it fills them fast, so that a slow device's IOs are handed
//! over some twenty times a second and a fast one's as seldom as ever. The
//! watcher copies from full chunks, a few records at a time; the loops do what
//! they always do, and wait for the watcher as little as for the writer.

mod pool;

use crate::checksum::Summing;
use crate::error::{StoreError, path_error};
use crate::files::create_new;
use crate::keep::Keep;
use crate::records::{RecordScratch, RecordWriter};
use crate::stats::StatsBuilder;
use pool::Pool;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use uflip_device::{Bytes, Chunk, IoRecord, Nanos, Recorder};
use uflip_measure::run::RunStats;

/// Records of a full-size chunk: 3 MiB, and one row group of the file.
pub const CHUNK_RECORDS: usize = crate::records::ROW_GROUP_ROWS;

/// Memory set aside for records unless told otherwise.
pub const DEFAULT_RESERVE: Bytes = Bytes(30 << 20);

/// Sizes of chunks and how many of each are ready while somebody watches:
/// 5 MiB in all.
const WATCHED: [(usize, usize); 3] = [(64, 256), (1024, 64), (16 << 10, 8)];

/// A chunk filled faster than this makes the next one larger.
const FAST: Nanos = Nanos::from_millis(30);

/// The writer looks this often whether it is needed: the fastest loop there is
/// (the device that answers at once) fills half a chunk meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// A loop without a chunk looks this often for one.
const STALL: Duration = Duration::from_micros(50);

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
    /// costs memory or time (a chunk is then made, or the writer started, within
    /// a timed loop), never records.
    pub streams: u64,
    /// 2 for a mix, else 1.
    pub patterns: usize,
    /// True where any of its streams is an open loop, whose records say how late the
    /// IOs were.
    pub open_loop: bool,
    /// The file to write, made anew when the first row group is due.
    pub path: PathBuf,
}

/// A run's records, written whole to `path` but not yet made durable.
pub struct FinishedRecords {
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
pub struct KeptRun {
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
            self.writer = Some(RecordWriter::of(Summing::new(file), path, scratch, self.shape.open_loop)?);
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

/// What the writer, the watcher and whoever begins and ends runs share; the loops
/// never touch it.
struct Side {
    /// Full chunks that were collected from the pool and not yet encoded.
    full: VecDeque<Chunk>,
    /// Full chunks of this run that left the queue.
    taken: u64,
    /// The run is being closed: the order of its chunks may change.
    closed: bool,
    /// Full-size chunks of this run.
    chunk_records: usize,
    run: Option<RunFile>,
    failed: Option<StoreError>,
    scratch: Option<RecordScratch>,
}

struct SharedReserve {
    pool: Pool,
    side: Mutex<Side>,
    closing: AtomicBool,
    /// No thread is to be had for the writer.
    unwritten: AtomicBool,
}

impl SharedReserve {
    fn lock(&self) -> MutexGuard<'_, Side> {
        // The state is valid between statements: a panic elsewhere cannot
        // leave it half-changed.
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same with all chunks that were handed over so far.
    fn collect(&self) -> MutexGuard<'_, Side> {
        let mut side = self.lock();
        while let Some(chunk) = self.pool.next_full() {
            side.full.push_back(chunk);
        }
        side
    }

    /// Encodes the oldest full chunk, without holding the lock meanwhile; false
    /// where there is none.
    fn encode_one(&self) -> bool {
        let mut side = self.collect();
        if side.run.is_none() {
            return false;
        }
        let Some(mut chunk) = side.full.pop_front() else { return false };
        let Some(mut run) = side.run.take() else { return false };
        side.taken += 1;
        let skip = side.failed.is_some();
        drop(side);
        // After a failure chunks are only recycled: the run is lost, and the
        // loops must still come to their end.
        let result = if skip { Ok(()) } else { run.take(&chunk) };
        chunk.clear();
        let mut side = self.lock();
        side.run = Some(run);
        if let Err(error) = result {
            side.failed.get_or_insert(error);
        }
        drop(side);
        self.pool.give_back(chunk);
        true
    }

    fn write_when_pressed(&self) {
        while !self.closing.load(Ordering::Acquire) {
            if !self.pool.is_pressed() || !self.encode_one() {
                std::thread::park_timeout(LOOK);
            }
        }
    }
}

/// Takes the records of one run after another; see the module's head.
pub struct Reserve {
    shared: Arc<SharedReserve>,
    /// The writer, while there is one. Loops look here only when they have to wait.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Reserve {
    /// A reserve of at most `reserve` bytes; allocates no chunk yet. At least
    /// 1 MiB is used.
    pub fn new(reserve: Bytes) -> Reserve {
        let limit = usize::try_from(reserve.0.max(1 << 20)).unwrap_or(usize::MAX) / size_of::<IoRecord>();
        let side = Side {
            full: VecDeque::new(),
            taken: 0,
            closed: true,
            chunk_records: MIN_CHUNK_RECORDS,
            run: None,
            failed: None,
            scratch: None,
        };
        let shared = SharedReserve {
            pool: Pool::new(limit),
            side: Mutex::new(side),
            closing: AtomicBool::new(false),
            unwritten: AtomicBool::new(false),
        };
        Reserve { shared: Arc::new(shared), thread: Mutex::new(None) }
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
        let pool = &self.shared.pool;
        let (records, chunks) = chunks_for(pool.limit, shape.io_count, shape.streams);
        pool.prepare(records, chunks);
        let total = shape.io_count.saturating_mul(shape.streams.max(1));
        let mut side = self.shared.lock();
        (side.taken, side.closed, side.chunk_records) = (0, false, records);
        let stats = StatsBuilder::new(shape.io_ignore, shape.patterns);
        let scratch = side.scratch.take();
        side.run = Some(RunFile { shape, keep, stats, writer: None, scratch, ios: 0 });
        side.failed = None;
        drop(side);
        self.shared.unwritten.store(false, Ordering::Relaxed);
        pool.begun.store(true, Ordering::Release);
        if total > pool.limit as u64 / 2 {
            self.start_writer();
        }
    }

    /// Has the writer run.
    pub(crate) fn start_writer(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_some() || self.shared.unwritten.load(Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new()
            .name("uflip-records".into())
            .spawn(move || shared.write_when_pressed());
        match spawned {
            Ok(writer) => *thread = Some(writer),
            Err(e) => {
                let error = StoreError::Refused(format!("cannot start the thread that writes records: {e}"));
                self.shared.lock().failed.get_or_insert(error);
                self.shared.unwritten.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Has the writer look at once.
    fn wake_writer(&self) {
        if let Some(writer) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            writer.thread().unpark();
        }
    }

    /// Ends the writer and waits for it.
    fn stop_writer(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        self.shared.closing.store(true, Ordering::Release);
        thread.thread().unpark();
        if thread.join().is_err() {
            let error = StoreError::Refused("the thread that writes records panicked".into());
            self.shared.lock().failed.get_or_insert(error);
        }
        self.shared.closing.store(false, Ordering::Release);
    }

    /// Writes what is left of the run's records and closes its file. All
    /// streams must have given their last chunk.
    ///
    /// # Errors
    /// [`StoreError`] where any of the records could not be written; the file
    /// may then be there in part.
    pub fn finish(&self) -> Result<FinishedRecords, StoreError> {
        let (mut side, mut run) = self.close()?;
        let stalls = self.stalls();
        run.open()?;
        let Some(writer) = run.writer.take() else {
            return Err(StoreError::Refused("no record file is open".into()));
        };
        let (file, scratch) = writer.finish()?;
        side.scratch = Some(scratch);
        let (file, checksum) = file.into_parts();
        Ok(FinishedRecords {
            file,
            path: run.shape.path,
            checksum,
            ios: run.ios,
            stats: run.stats.finish(),
            stalls,
        })
    }

    /// Hands over what is left of the run's records and ends what keeps them.
    /// `ios` is what the device finished.
    ///
    /// # Errors
    /// [`StoreError`] where any of the records could not be kept, or where they
    /// are more or fewer than the IOs that were finished: then what keeps them is
    /// not ended, so that an output stays as it was.
    pub fn finish_keeping(&self, ios: u64) -> Result<KeptRun, StoreError> {
        let (mut side, mut run) = self.close()?;
        side.scratch = run.scratch.take();
        let stalls = self.stalls();
        drop(side);
        if run.ios != ios {
            let recorded = run.ios;
            return Err(StoreError::Refused(format!(
                "the device finished {ios} IOs but {recorded} were recorded; nothing is kept"
            )));
        }
        run.keep.take().map_or(Ok(()), |keep| keep.finish())?;
        Ok(KeptRun { stats: run.stats.finish(), stalls })
    }

    fn stalls(&self) -> u64 {
        self.shared.pool.stalls.load(Ordering::Relaxed)
    }

    /// Takes the last chunks and gives the run, whole.
    fn close(&self) -> Result<(MutexGuard<'_, Side>, RunFile), StoreError> {
        self.stop_writer();
        let mut side = self.shared.collect();
        side.closed = true;
        if !self.shared.pool.ran_low.load(Ordering::Relaxed) {
            // Streams finish in any order; the file has them in theirs.
            side.full.make_contiguous().sort_by_key(|chunk| chunk.first().map(IoRecord::stream));
        }
        drop(side);
        while self.shared.encode_one() {}
        self.shared.pool.begun.store(false, Ordering::Release);
        let mut side = self.shared.lock();
        let Some(mut run) = side.run.take() else {
            return Err(StoreError::Refused("no run was begun".into()));
        };
        if let Some(error) = side.failed.take() {
            side.scratch = run.writer.take().map(RecordWriter::abandon);
            return Err(error);
        }
        Ok((side, run))
    }

    /// Forgets the run that was begun, and its file.
    pub fn abandon(&self) {
        self.stop_writer();
        let mut side = self.shared.collect();
        while let Some(mut chunk) = side.full.pop_front() {
            chunk.clear();
            self.shared.pool.give_back(chunk);
        }
        side.closed = true;
        side.failed = None;
        self.shared.pool.begun.store(false, Ordering::Release);
        if let Some(mut run) = side.run.take() {
            side.scratch = run.writer.take().map(RecordWriter::abandon).or(run.scratch);
            // It may never have been made; what stays is removed on resume.
            let _ = std::fs::remove_file(&run.shape.path);
        }
    }

    /// Lets somebody watch the runs from now on; between runs only.
    pub fn watch(&self) -> RecordWatch {
        self.shared.pool.watch();
        RecordWatch { shared: Arc::clone(&self.shared), run: None, chunk: 0, record: 0 }
    }

    /// Bytes of all chunks in existence.
    pub fn allocated(&self) -> Bytes {
        Bytes((self.shared.pool.allocated.load(Ordering::Relaxed) * size_of::<IoRecord>()) as u64)
    }

    /// An empty chunk where none was free: made, where the run is another one than
    /// was said and memory is left, else waited for.
    #[cold]
    fn scarce_chunk(&self) -> Chunk {
        let pool = &self.shared.pool;
        let records = self.shared.lock().chunk_records;
        if pool.allocated.load(Ordering::Relaxed) + records <= pool.limit {
            return pool.allocate(records);
        }
        self.start_writer();
        let mut stalled = false;
        loop {
            if let Some(chunk) = pool.take_free() {
                pool.stalls.fetch_add(u64::from(stalled), Ordering::Relaxed);
                return chunk;
            }
            if !pool.is_one_to_come() || self.shared.unwritten.load(Ordering::Relaxed) {
                // All memory is in the hands of the streams: there are more of
                // them than was said. Small chunks keep this bounded.
                return pool.allocate(MIN_CHUNK_RECORDS);
            }
            stalled = true;
            pool.ran_low.store(true, Ordering::Relaxed);
            pool.waiting.fetch_add(1, Ordering::Relaxed);
            self.wake_writer();
            std::thread::sleep(STALL);
            pool.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The size of a run's chunks, in records, and how many of them it gets.
fn chunks_for(limit: usize, io_count: u64, streams: u64) -> (usize, usize) {
    let streams = usize::try_from(streams.max(1)).unwrap_or(usize::MAX).min(IoRecord::MAX_STREAMS);
    let per_stream = usize::try_from(io_count).unwrap_or(usize::MAX).saturating_add(1);
    let fair = (limit / (streams * 4)).max(MIN_CHUNK_RECORDS);
    let fair = if streams == 1 { CHUNK_RECORDS.min(limit / 2) } else { fair };
    let records = per_stream.min(CHUNK_RECORDS).min(fair).max(MIN_CHUNK_RECORDS);
    let needed = per_stream.div_ceil(records).saturating_mul(streams);
    let affordable = (limit / records).max(streams);
    (records, needed.min(affordable))
}

/// Somebody who watches the runs of a [`Reserve`].
pub struct RecordWatch {
    shared: Arc<SharedReserve>,
    /// The run it reads, and where in it: chunks since its start, and records
    /// of the next one.
    run: Option<u32>,
    chunk: u64,
    record: usize,
}

/// What a [`RecordWatch`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The run in progress.
    pub run: u32,
    /// It is another one than at the glance before.
    pub fresh: bool,
    /// Records that were written out before they could be seen.
    pub missed: bool,
}

impl RecordWatch {
    /// Copies a few records more of the run in progress behind `into`; None
    /// where nothing new was handed over. The records of one stream come in
    /// their order.
    pub fn glance(&mut self, into: &mut Vec<IoRecord>) -> Option<Seen> {
        let side = self.shared.collect();
        let run = side.run.as_ref().filter(|_| !side.closed)?.shape.run;
        let fresh = self.run != Some(run);
        if fresh {
            (self.run, self.chunk, self.record) = (Some(run), 0, 0);
        }
        let missed = self.chunk < side.taken;
        if missed {
            (self.chunk, self.record) = (side.taken, 0);
        }
        let seen = Seen { run, fresh, missed };
        let at = usize::try_from(self.chunk - side.taken).unwrap_or(usize::MAX);
        let Some(chunk) = side.full.get(at) else { return fresh.then_some(seen) };
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
        self.shared.pool.take(0).unwrap_or_else(|| self.scarce_chunk())
    }

    fn exchange(&self, full: Chunk) -> Chunk {
        let pool = &self.shared.pool;
        let size = pool.next_size(&full);
        pool.hand_over(full);
        pool.take(size).unwrap_or_else(|| self.scarce_chunk())
    }

    fn finish(&self, mut last: Chunk) {
        if last.is_empty() {
            last.clear();
            self.shared.pool.give(last);
        } else {
            self.shared.pool.hand_over(last);
        }
    }
}
