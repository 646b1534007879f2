//! Real devices: a block device or a file behind file descriptors, driven by
//! the synchronous loop ([`crate::sync`]) or by io_uring ([`crate::uring`]).

use crate::buffer::IoBuffer;
use crate::clock::{Epoch, wait_until};
use crate::device::{Device, DeviceError, Geometry, Recorder, RunEnd, RunLimits, Stop, Stream};
use crate::engine::{Buffering, Discard, Engine, EngineOptions};
use crate::io::{Io, IoRecord, Mode};
use crate::layout::LayoutWatch;
use crate::stamp::Key;
use crate::sync::{Shared, SyncTarget, Worker, stream_loop};
use crate::units::Nanos;
use crate::uring::{RingWorker, ring_loop};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::sync::Arc;

/// Gives one more file descriptor of the same target, for one more stream.
pub type Opener = Box<dyn Fn() -> Result<File, DeviceError> + Send>;

/// A block device or file under measurement.
pub struct RealDevice {
    name: Arc<str>,
    geometry: Geometry,
    options: EngineOptions,
    key: Key,
    opener: Opener,
    epoch: Epoch,
    workers: Vec<Worker<FileTarget>>,
    rings: Vec<RingWorker>,
    /// The ring of the last run with a queue depth of its own, and how many there were.
    queue: Option<RingWorker>,
    queues: u64,
    /// How a file lies on its disk; `None` for block devices and where the
    /// file system does not tell.
    watch: Option<LayoutWatch>,
    /// How the file lies was looked at, and nothing was done since.
    looked: bool,
}

/// Every stream starts with a buffer of this size; larger IOs grow it.
const BUFFER_BYTES: usize = 1 << 20;

impl RealDevice {
    /// A device whose descriptors come from `opener`, called once per stream.
    /// `name` is what the user called it, `key` what its writes are stamped with.
    ///
    /// # Errors
    /// What `opener` says, or that its size cannot be read.
    pub fn new(
        name: &str,
        geometry: Geometry,
        options: EngineOptions,
        key: Key,
        opener: Opener,
    ) -> Result<RealDevice, DeviceError> {
        let mut device = RealDevice {
            name: name.into(),
            geometry,
            options,
            key,
            opener,
            epoch: Epoch::start(),
            workers: Vec::new(),
            rings: Vec::new(),
            queue: None,
            queues: 0,
            watch: None,
            looked: false,
        };
        device.grow_workers(1)?;
        let first = &device.workers[0].target;
        device.watch =
            if first.is_block_device { None } else { LayoutWatch::new(&first.file, geometry.capacity) };
        Ok(device)
    }

    /// True where it is a file that has holes now and had none when it was
    /// opened: what follows would be answered without the disk. Asked just before
    /// a run: where there are none the run does not look again.
    pub fn has_new_holes(&mut self) -> bool {
        let has = self.watch.as_mut().is_some_and(LayoutWatch::before);
        self.looked = !has;
        has
    }

    /// True where the run that ended trimmed; forgets it.
    fn trimmed(&mut self) -> bool {
        let of_workers = self.workers.iter_mut().map(|worker| &mut worker.target.trimmed);
        let of_rings = self.rings.iter_mut().chain(&mut self.queue).map(|ring| &mut ring.trimmed);
        // Counted, as all of them are to be forgotten.
        of_workers.chain(of_rings).filter_map(|trimmed| std::mem::take(trimmed).then_some(())).count() > 0
    }

    /// Whether the file lies otherwise than before the run; see `crate::layout`.
    fn layout_changed(&mut self) -> bool {
        let trimmed = self.trimmed();
        self.watch.as_ref().is_some_and(|watch| watch.changed(trimmed))
    }

    /// Makes sure that `streams` streams have their descriptor and buffers.
    fn grow_workers(&mut self, streams: usize) -> Result<(), DeviceError> {
        while self.workers.len() < streams {
            let index = self.workers.len() as u64;
            let target = FileTarget::new(self.name.clone(), (self.opener)()?, self.options.discard)?;
            let buffer =
                IoBuffer::new(BUFFER_BYTES, self.options.data, self.key, self.options.seed, index << 32);
            self.workers.push(Worker { target, buffer });
        }
        Ok(())
    }

    fn grow_rings(&mut self, streams: usize, queue_depth: u32, poll: bool) -> Result<(), DeviceError> {
        while self.rings.len() < streams {
            let index = self.rings.len() as u64;
            let fd = (self.opener)()?;
            self.rings.push(RingWorker::new(
                self.name.clone(),
                fd,
                queue_depth,
                poll,
                &self.options,
                self.key,
                index,
            )?);
        }
        Ok(())
    }

    /// The ring that keeps `queue_depth` IOs of one sequence under way.
    fn queue_of(&mut self, queue_depth: u32, poll: bool) -> Result<&mut RingWorker, DeviceError> {
        let kept = self.queue.take().filter(|ring| ring.queue_depth() == queue_depth);
        let ring = match kept {
            Some(ring) => ring,
            None => {
                // A number that no stream's buffers have, nor those of another depth.
                self.queues += 1;
                let index = IoRecord::MAX_STREAMS as u64 + self.queues;
                let (name, file) = (self.name.clone(), (self.opener)()?);
                let ring = RingWorker::new(name, file, queue_depth, poll, &self.options, self.key, index)?;
                ring.telling_of_streams()
            }
        };
        Ok(self.queue.insert(ring))
    }

    /// Has what stands in the page cache written to the device, before a run, as it is
    /// none of that run's, and after it, as it is; gives how long that took. `None` where
    /// the page cache is not in the way, or nothing can be written back (a read-only
    /// file system).
    fn write_back(&self) -> Result<Option<Nanos>, DeviceError> {
        let Some(first) = self.workers.first().filter(|_| self.options.buffering == Buffering::Buffered)
        else {
            return Ok(None);
        };
        let began = self.epoch.now();
        match first.target.file.sync_data() {
            Ok(()) => Ok(Some(self.epoch.now().saturating_sub(began))),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => Ok(None),
            Err(source) => Err(DeviceError::Path {
                what: "cannot write back what is in the page cache of".to_string(),
                path: self.name.to_string().into(),
                source,
            }),
        }
    }

    /// How the device is driven.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }
}

impl Device for RealDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        let shared = Shared::new(recorder, limits);
        if !std::mem::take(&mut self.looked) {
            self.watch.as_mut().map(LayoutWatch::before);
        }
        // Of a run that failed.
        self.trimmed();
        self.write_back()?;
        let mut end = match (self.options.engine, limits.sequence) {
            (Engine::Sync, _) => {
                self.grow_workers(streams.len())?;
                shared.run_all(streams, &mut self.workers, false, stream_loop)
            }
            (Engine::IoUring { poll, .. }, Some(sequence)) => {
                let told = streams.len();
                let ring = self.queue_of(told as u32, poll)?;
                shared.run_queue((sequence.0)(), told, ring, ring_loop)
            }
            (Engine::IoUring { queue_depth, poll }, None) => {
                self.grow_rings(streams.len(), queue_depth, poll)?;
                shared.run_all(streams, &mut self.rings, true, ring_loop)
            }
        }?;
        if !end.interrupted {
            end.written_back = self.write_back()?;
        }
        end.incidents.layout_changed = self.layout_changed();
        Ok(end)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        let until = self.epoch.now() + pause;
        while self.epoch.now() < until && !stop.after_this_run() {
            let slice = (self.epoch.now() + Nanos::from_millis(50)).min(until);
            wait_until(&self.epoch, slice, stop);
        }
    }

    fn now(&self) -> Nanos {
        self.epoch.now()
    }

    fn is_virtual(&self) -> bool {
        false
    }
}

/// One descriptor of the device: what the synchronous loop measures.
pub(crate) struct FileTarget {
    name: Arc<str>,
    file: File,
    is_block_device: bool,
    discard: Discard,
    /// A trim was among the IOs since this was last looked at.
    trimmed: bool,
}

impl FileTarget {
    pub(crate) fn new(name: Arc<str>, file: File, discard: Discard) -> Result<FileTarget, DeviceError> {
        let meta = file.metadata().map_err(|source| DeviceError::Path {
            what: "cannot look at".to_string(),
            path: name.to_string().into(),
            source,
        })?;
        let is_block_device = meta.file_type().is_block_device();
        Ok(FileTarget { name, file, is_block_device, discard, trimmed: false })
    }

    /// A discard on a block device, a punched hole in a file.
    fn trim(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let fd = self.file.as_raw_fd();
        let result = match (self.is_block_device, self.discard) {
            (true, how) => discard(fd, offset, length, how),
            (false, Discard::Plain) => punch(fd, offset, length),
            (false, Discard::Secure) => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        };
        match result {
            Err(e) if self.discard == Discard::Secure && e.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                let name = &self.name;
                Err(DeviceError::Other(format!("{name} has no secure discard; type --discard plain")))
            }
            other => other.map_err(|source| self.failed(Mode::Trim, offset, length, source)),
        }
    }

    #[cold]
    fn failed(&self, mode: Mode, offset: u64, size: u64, source: io::Error) -> DeviceError {
        DeviceError::Io { target: self.name.to_string(), mode: mode.name(), offset, size, source }
    }

    #[cold]
    fn short(&self, io: &Io, moved: usize) -> DeviceError {
        DeviceError::Short {
            target: self.name.to_string(),
            mode: io.mode.name(),
            offset: io.offset.0,
            size: u64::from(io.size),
            moved: moved as u64,
        }
    }
}

impl SyncTarget for FileTarget {
    #[inline]
    fn io(&mut self, io: &Io, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let moved = match io.mode {
            Mode::Read => self.file.read_at(buffer, io.offset.0),
            Mode::Write => self.file.write_at(buffer, io.offset.0),
            Mode::Flush => self.file.sync_data().map(|()| buffer.len()),
            Mode::Trim => {
                self.trimmed = true;
                return self.trim(io.offset.0, u64::from(io.size));
            }
        };
        match moved {
            Ok(n) if n == buffer.len() => Ok(()),
            Ok(n) => Err(self.short(io, n)),
            Err(e) => Err(self.failed(io.mode, io.offset.0, u64::from(io.size), e)),
        }
    }
}

fn discard(fd: RawFd, offset: u64, length: u64, how: Discard) -> io::Result<()> {
    // BLKDISCARD and BLKSECDISCARD of linux/fs.h.
    let request: libc::c_ulong = match how {
        Discard::Plain => 0x1277,
        Discard::Secure => 0x127d,
    };
    let range = [offset, length];
    // SAFETY: fd is open for the call, both requests read two u64 from `range`.
    let result = unsafe { libc::ioctl(fd, request as _, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn punch(fd: RawFd, offset: u64, length: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fd is open for the call; no memory is passed.
    let result = unsafe { libc::fallocate(fd, mode, offset as libc::off_t, length as libc::off_t) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
