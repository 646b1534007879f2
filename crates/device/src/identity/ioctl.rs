//! The block layer's ioctls that take a descriptor and give numbers.
//!
//! Source: `linux/fs.h` (`BLKROGET` 0x12,94; `BLKSSZGET` 0x12,104;
//! `BLKGETSIZE64` 0x12,114; `BLKPBSZGET` 0x12,123; `BLKGETDISKSEQ` 0x12,128),
//! and `linux/loop.h` (`LOOP_GET_STATUS64`, which gives a structure).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const BLKROGET: libc::Ioctl = libc::_IO(0x12, 94);
const BLKSSZGET: libc::Ioctl = libc::_IO(0x12, 104);
// The kernel's headers give the argument's type as size_t and mean 64 bits.
const BLKGETSIZE64: libc::Ioctl = libc::_IOR::<libc::size_t>(0x12, 114);
const BLKPBSZGET: libc::Ioctl = libc::_IO(0x12, 123);
const BLKGETDISKSEQ: libc::Ioctl = libc::_IOR::<u64>(0x12, 128);

fn get_u64(file: &File, request: libc::Ioctl) -> io::Result<u64> {
    let mut value = 0u64;
    // SAFETY: the descriptor is open for as long as `file` lives, and each
    // request passed here writes at most eight bytes to `value`.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut value) };
    if rc == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

fn get_u32(file: &File, request: libc::Ioctl) -> io::Result<u32> {
    let mut value = 0u32;
    // SAFETY: the descriptor is open for as long as `file` lives, and each
    // request passed here writes one four-byte int to `value`.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut value) };
    if rc == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Size of a block device in bytes.
pub(crate) fn size_bytes(file: &File) -> io::Result<u64> {
    get_u64(file, BLKGETSIZE64)
}

/// Logical sector size in bytes.
pub(crate) fn logical_sector(file: &File) -> io::Result<u32> {
    get_u32(file, BLKSSZGET)
}

/// Physical sector size in bytes.
pub(crate) fn physical_sector(file: &File) -> io::Result<u32> {
    get_u32(file, BLKPBSZGET)
}

/// True where the kernel takes no writes for this block device.
pub(crate) fn read_only(file: &File) -> io::Result<bool> {
    get_u32(file, BLKROGET).map(|value| value != 0)
}

/// A number the kernel never gives twice: it changes when another medium or
/// another backing file appears under the same name. `None` before Linux 5.15.
pub(crate) fn disk_sequence(file: &File) -> Option<u64> {
    get_u64(file, BLKGETDISKSEQ).ok()
}

/// What a loop device says of its backing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopStatus {
    /// `st_dev` of the file.
    pub device: u64,
    /// `st_ino` of the file.
    pub inode: u64,
    /// `st_rdev` of a device behind it; of a file 0, or `device` before Linux 5.17.
    pub rdev: u64,
    /// Where in the file the device begins, in bytes.
    pub offset: u64,
}

/// `LOOP_GET_STATUS64` of `linux/loop.h`.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;

/// `struct loop_info64` is 232 bytes, the first of them `lo_device`,
/// `lo_inode`, `lo_rdevice` and `lo_offset`, of 64 bits each.
const LOOP_INFO_WORDS: usize = 29;

/// Asks a loop device what is behind it; an error where nothing is, and for
/// every other kind of device.
pub(crate) fn loop_status(file: &File) -> io::Result<LoopStatus> {
    let mut info = [0u64; LOOP_INFO_WORDS];
    // SAFETY: the descriptor is open for as long as `file` lives; the request
    // writes one `struct loop_info64` of 232 bytes, which is the size of `info`,
    // and any bytes are valid for u64.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, info.as_mut_ptr()) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(LoopStatus { device: info[0], inode: info[1], rdev: info[2], offset: info[3] })
}
