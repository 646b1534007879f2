//! The file system beneath an attached device: one folder with the device's
//! data as the file [`DEVICE`] and its figures as [`LATENESS`].
//!
//! The loop device reads and writes `DEVICE` with direct, asynchronous IO, so
//! that each block request becomes one request here; discards arrive as
//! `fallocate` with a hole, zeroing as one with a zero range, flushes as fsync.
//! Source: `linux/fuse.h`, `Documentation/filesystems/fuse`, loop(4).

use super::answer::Answers;
use super::model::{AttachedModel, Refused};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use uflip_device::{Mode, Nanos};

/// The file with the device's data.
pub const DEVICE: &str = "device";
/// The file with the figures so far, as JSON.
pub const LATENESS: &str = "lateness.json";

const DEVICE_INO: INodeNo = INodeNo(2);
const LATENESS_INO: INodeNo = INodeNo(3);
/// The handle of every opened device; those of figures count from 1.
const DEVICE_HANDLE: FileHandle = FileHandle(0);
/// Nothing ever changes but the figures' length, which is always 0.
const TTL: Duration = Duration::from_secs(3600);
/// The largest request, in bytes; the kernel's default limit of pages allows no more.
const LARGEST: u32 = 1 << 20;
/// Requests on their way at once.
const DEPTH: u16 = 1024;

const PUNCH_HOLE: i32 = 0x2;
const ZERO_RANGE: i32 = 0x10;

/// The file system of one attachment.
pub struct DeviceFs {
    model: Arc<AttachedModel>,
    answers: Arc<Answers>,
    mounted: SystemTime,
    handles: AtomicU64,
    /// The figures as they were when each handle was opened.
    snapshots: Mutex<HashMap<u64, Vec<u8>>>,
}

impl DeviceFs {
    /// Serves `model`, answering through `answers`.
    pub fn new(model: Arc<AttachedModel>, answers: Arc<Answers>) -> DeviceFs {
        DeviceFs {
            model,
            answers,
            mounted: SystemTime::now(),
            handles: AtomicU64::new(1),
            snapshots: Mutex::default(),
        }
    }

    fn attr(&self, ino: INodeNo) -> FileAttr {
        let (kind, perm, size) = match ino {
            DEVICE_INO => (FileType::RegularFile, 0o600, self.model.geometry().capacity.0),
            LATENESS_INO => (FileType::RegularFile, 0o400, 0),
            _ => (FileType::Directory, 0o500, 0),
        };
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            crtime: self.mounted,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(&self.answers.report()).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// An answer without data, due at the given time or an error at once.
    fn done(&self, mode: Mode, arrived: Nanos, due: Result<Nanos, Refused>, reply: ReplyEmpty) {
        match due {
            Ok(due) => self.answers.at(due, arrived, mode, Box::new(move || reply.ok())),
            Err(refused) => reply.error(errno(refused)),
        }
    }
}

fn errno(refused: Refused) -> Errno {
    match refused {
        Refused::NotOnDevice => Errno::EINVAL,
        Refused::NoMemory => Errno::ENOSPC,
    }
}

impl Filesystem for DeviceFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without it a loop device has one request on its way at a time.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| std::io::Error::other("this kernel's FUSE has no asynchronous direct IO"))?;
        // Refused values leave the default, which is smaller and works.
        let _ = config.set_max_write(LARGEST);
        let _ = config.set_max_background(DEPTH);
        let _ = config.set_congestion_threshold(DEPTH);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let ino = match name.to_str() {
            Some(DEVICE) if parent == INodeNo::ROOT => DEVICE_INO,
            Some(LATENESS) if parent == INodeNo::ROOT => LATENESS_INO,
            _ => return reply.error(Errno::ENOENT),
        };
        reply.entry(&TTL, &self.attr(ino), Generation(0));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attr(ino));
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DEVICE_INO, FileType::RegularFile, DEVICE),
            (LATENESS_INO, FileType::RegularFile, LATENESS),
        ];
        for (i, (ino, kind, name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(ino, i, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.model.geometry().capacity.0 / 4096;
        // The block size becomes the loop device's discard granularity.
        reply.statfs(blocks, 0, 0, 2, 0, 4096, 255, 4096);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if ino == DEVICE_INO {
            let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
            return reply.opened(DEVICE_HANDLE, flags);
        }
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        let snapshot = self.snapshot();
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, snapshot);
        reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle.0);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if ino != DEVICE_INO {
            let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            let text = snapshots.get(&handle.0).map_or(&[][..], |text| text);
            let from = text.len().min(offset as usize);
            return reply.data(&text[from..text.len().min(from + size as usize)]);
        }
        let arrived = self.answers.now();
        let left = self.model.geometry().capacity.0.saturating_sub(offset);
        let mut data = vec![0; left.min(u64::from(size)) as usize];
        if data.is_empty() {
            return reply.data(&[]);
        }
        match self.model.read(arrived, offset, &mut data) {
            Ok(due) => self.answers.at(due, arrived, Mode::Read, Box::new(move || reply.data(&data))),
            Err(refused) => reply.error(errno(refused)),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if ino != DEVICE_INO {
            return reply.error(Errno::EACCES);
        }
        let arrived = self.answers.now();
        let size = data.len() as u32;
        match self.model.write(arrived, offset, data) {
            Ok(due) => self.answers.at(due, arrived, Mode::Write, Box::new(move || reply.written(size))),
            Err(refused) => reply.error(errno(refused)),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let arrived = self.answers.now();
        self.done(Mode::Flush, arrived, self.model.flush(arrived), reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Somebody closed the file: no business of the device's.
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let arrived = self.answers.now();
        match (ino, mode) {
            (DEVICE_INO, mode) if mode & PUNCH_HOLE != 0 => {
                self.done(Mode::Trim, arrived, self.model.trim(arrived, offset, length), reply);
            }
            (DEVICE_INO, mode) if mode & ZERO_RANGE != 0 => {
                self.done(Mode::Write, arrived, self.model.zero(arrived, offset, length), reply);
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
