//! The FUSE side: each request is counted, judged and then done on the disk in
//! memory. Reads of names and attributes are not counted: nothing is asked of a
//! disk for them.

use super::disk::{File, Folder, Ino, Node, ROOT, flip_bit};
use super::{Moves, State, Verdict};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nothing is remembered by the kernel: the disk changes under it.
const TTL: Duration = Duration::ZERO;
const O_TRUNC: i32 = 0o1000;
const ENOENT: Errno = Errno::ENOENT;

pub struct Served {
    pub state: Arc<Mutex<State>>,
    pub pid: Arc<AtomicU32>,
}

impl Served {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges a request that either happens or fails.
    fn judge(&self, state: &mut State, what: &str) -> Result<(), Errno> {
        match state.next(what, Moves::Nothing, &self.pid) {
            Verdict::Fail(errno) => Err(Errno::from_i32(errno)),
            _ => Ok(()),
        }
    }

    fn make(&self, parent: INodeNo, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        let mut state = self.state();
        self.judge(&mut state, &name.to_string_lossy())?;
        if state.disk.named(parent.0, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let ino = state.disk.make(parent.0, name, node).ok_or(ENOENT)?;
        attr(&mut state, ino).ok_or(ENOENT)
    }

    fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let mut state = self.state();
        self.judge(&mut state, &name.to_string_lossy())?;
        state.disk.named(parent.0, name).ok_or(ENOENT)?;
        state.disk.folder(parent.0).ok_or(ENOENT)?.remove(name);
        Ok(())
    }
}

fn attr(state: &mut State, ino: Ino) -> Option<FileAttr> {
    let (kind, perm, size) = match state.disk.node(ino)? {
        Node::File(file) => (FileType::RegularFile, 0o600, file.now.len() as u64),
        Node::Folder(_) => (FileType::Directory, 0o700, 0),
    };
    Some(FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    })
}

/// The path-less name of a node, for what is said of a fault.
fn name_of(state: &mut State, ino: Ino) -> String {
    let mut folders = vec![ROOT];
    while let Some(folder) = folders.pop() {
        let names = state.disk.folder(folder).map(|f| f.now.clone()).unwrap_or_default();
        for (name, child) in names {
            if child == ino {
                return name.to_string_lossy().into_owned();
            }
            folders.extend(state.disk.folder(child).is_some().then_some(child));
        }
    }
    "an unlinked file".to_string()
}

fn empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let found = state.disk.named(parent.0, name).and_then(|ino| attr(&mut state, ino));
        match found {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match attr(&mut self.state(), ino.0) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        if let Some(size) = size {
            let name = name_of(&mut state, ino.0);
            if let Err(errno) = self.judge(&mut state, &name) {
                return reply.error(errno);
            }
            if let Some(file) = state.disk.file(ino.0) {
                file.set_length(size);
            }
        }
        match attr(&mut state, ino.0) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(ENOENT),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        match self.make(parent, name, Node::Folder(Folder::default())) {
            Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        match self.make(parent, name, Node::File(File::default())) {
            Ok(attr) => {
                reply.created(&TTL, &attr, Generation(0), FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut state = self.state();
        if let Err(errno) = self.judge(&mut state, &new_name.to_string_lossy()) {
            return reply.error(errno);
        }
        let Some(ino) = state.disk.named(parent.0, name) else { return reply.error(ENOENT) };
        let there = state.disk.named(new_parent.0, new_name).is_some();
        if there && flags.contains(RenameFlags::RENAME_NOREPLACE) {
            return reply.error(Errno::EEXIST);
        }
        // Between two folders a power cut may keep either half.
        if parent == new_parent {
            if let Some(folder) = state.disk.folder(parent.0) {
                folder.rename(name, new_name);
            }
        } else {
            if let Some(folder) = state.disk.folder(parent.0) {
                folder.remove(name);
            }
            if let Some(folder) = state.disk.folder(new_parent.0) {
                folder.put(new_name, ino);
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let mut state = self.state();
        if flags.0 & O_TRUNC != 0
            && let Some(file) = state.disk.file(ino.0)
        {
            file.set_length(0);
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.state();
        let name = name_of(&mut state, ino.0);
        let verdict = state.next(&name, Moves::Read, &self.pid);
        let Some(file) = state.disk.file(ino.0) else { return reply.error(Errno::EISDIR) };
        let from = file.now.len().min(offset as usize);
        let mut bytes = file.now[from..file.now.len().min(from + size as usize)].to_vec();
        match verdict {
            Verdict::Fail(errno) => return reply.error(Errno::from_i32(errno)),
            Verdict::HalfThenFail => return reply.error(Errno::EIO),
            // Nothing at all would mean the end of the file.
            Verdict::Half => bytes.truncate(bytes.len().div_ceil(2)),
            Verdict::Flip(bit) => flip_bit(&mut bytes, bit),
            Verdict::Go => {}
        }
        reply.data(&bytes);
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
        let mut state = self.state();
        let name = name_of(&mut state, ino.0);
        let verdict = state.next(&name, Moves::Write, &self.pid);
        let Some(file) = state.disk.file(ino.0) else { return reply.error(Errno::EISDIR) };
        let half = &data[..data.len().div_ceil(2)];
        match verdict {
            Verdict::Go => file.write(offset, data, None),
            Verdict::Flip(bit) => file.write(offset, data, Some(bit)),
            Verdict::Half => {
                file.write(offset, half, None);
                return reply.written(half.len() as u32);
            }
            Verdict::HalfThenFail => {
                file.write(offset, half, None);
                return reply.error(Errno::EIO);
            }
            Verdict::Fail(errno) => return reply.error(Errno::from_i32(errno)),
        }
        reply.written(data.len() as u32);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut state = self.state();
        let name = name_of(&mut state, ino.0);
        let judged = self.judge(&mut state, &name);
        if let (Ok(()), Some(file)) = (judged, state.disk.file(ino.0)) {
            file.sync();
        }
        empty(reply, judged);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut state = self.state();
        let name = name_of(&mut state, ino.0);
        let judged = self.judge(&mut state, &name);
        if let (Ok(()), Some(folder)) = (judged, state.disk.folder(ino.0)) {
            folder.sync();
        }
        empty(reply, judged);
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut state = self.state();
        let names = state.disk.folder(ino.0).map(|f| f.now.clone()).unwrap_or_default();
        for (i, (name, child)) in (1..).zip(names).skip(offset as usize) {
            let is_folder = state.disk.folder(child).is_some();
            let kind = if is_folder { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(child), i, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096);
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, _: u64, _: i32, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }
}
