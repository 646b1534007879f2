//! One IO as the kernel reads it from the submission queue.

use crate::io::{Io, Mode};
use io_uring::{opcode, squeue, types};
use std::fs::File;
use std::os::fd::AsRawFd;

/// `BLOCK_URING_CMD_DISCARD` of linux/blkdev.h, `_IO(0x12, 0)`: since Linux 6.12.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

/// The memory of an IO: where it starts, and its number among the registered
/// buffers where it is one.
#[derive(Clone, Copy)]
pub(super) struct BufferMemory {
    pub start: *mut u8,
    pub registered: Option<u16>,
}

/// What is to be submitted to.
#[derive(Clone, Copy)]
pub(super) struct Goal<'a> {
    pub file: &'a File,
    /// It is number 0 of the registered files.
    pub registered: bool,
    pub is_block_device: bool,
}

/// The submission entry for one IO.
#[inline]
pub(super) fn entry(io: &Io, memory: BufferMemory, goal: Goal<'_>) -> squeue::Entry {
    let (offset, length) = (io.offset.0, io.size);
    macro_rules! with_fd {
        ($fd:expr) => {
            match (io.mode, memory.registered) {
                (Mode::Read, Some(buffer)) => {
                    opcode::ReadFixed::new($fd, memory.start, length, buffer).offset(offset).build()
                }
                (Mode::Read, None) => opcode::Read::new($fd, memory.start, length).offset(offset).build(),
                (Mode::Write, Some(buffer)) => {
                    opcode::WriteFixed::new($fd, memory.start, length, buffer).offset(offset).build()
                }
                (Mode::Write, None) => opcode::Write::new($fd, memory.start, length).offset(offset).build(),
                (Mode::Flush, _) => opcode::Fsync::new($fd).flags(types::FsyncFlags::DATASYNC).build(),
                (Mode::Trim, _) if goal.is_block_device => {
                    opcode::UringCmd16::new($fd, BLOCK_URING_CMD_DISCARD)
                        .addr(Some(offset))
                        .cmd(third_address(length))
                        .build()
                }
                (Mode::Trim, _) => opcode::Fallocate::new($fd, u64::from(length))
                    .offset(offset)
                    .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                    .build(),
            }
        };
    }
    if goal.registered { with_fd!(types::Fixed(0)) } else { with_fd!(types::Fd(goal.file.as_raw_fd())) }
}

/// A discard's length: `addr3` of the entry, the first half of a command's 16 bytes.
fn third_address(length: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&u64::from(length).to_ne_bytes());
    bytes
}
