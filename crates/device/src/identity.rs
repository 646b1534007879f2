//! What is known about a target and about the machine it sits in.
//!
//! Everything is read from sysfs by device number (`/sys/dev/block/M:m`), from
//! `/proc`, and through the block layer's ioctls; no C library is involved.
//! Names that a device gives of itself are cleaned of control characters, as
//! they end up on terminals and in HTML. What is not known is `None`.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`, `proc(5)`,
//! `linux/fs.h`.

mod facts;
pub mod fingerprint;
mod host;
pub(crate) mod ioctl;
mod listing;
mod mounts;
mod same;
pub(crate) mod seen;
pub(crate) mod stack;
pub(crate) mod sysfs;

pub use facts::{DeviceFacts, DeviceKind, FileFacts, Transport, block_facts, device_facts, file_facts};
pub use host::{HostFacts, host_facts};
pub use listing::{Listing, list_devices};
pub use mounts::{Mount, mount_of, parse_mountinfo, parse_swaps};
pub(crate) use same::born_ns;
pub use same::{Difference, FileIdentity, Identity, identity};
pub use stack::{disk_of, largest_request, shared, stands_on};
pub use sysfs::{is_hostile, printable, word};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the system tells about itself; other places in tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysPaths {
    /// The root of sysfs, `/sys`.
    pub sys: PathBuf,
    /// The root of procfs, `/proc`.
    pub proc: PathBuf,
    /// The mounts of this process, `/proc/self/mountinfo`.
    pub mountinfo: PathBuf,
    /// The active swap areas, `/proc/swaps`.
    pub swaps: PathBuf,
    /// Where device nodes are, `/dev`.
    pub dev: PathBuf,
}

impl Default for SysPaths {
    fn default() -> SysPaths {
        SysPaths::below(Path::new("/"))
    }
}

impl SysPaths {
    /// The usual places below another root: `root/sys`, `root/proc`, `root/dev`.
    pub fn below(root: &Path) -> SysPaths {
        SysPaths {
            sys: root.join("sys"),
            proc: root.join("proc"),
            mountinfo: root.join("proc/self/mountinfo"),
            swaps: root.join("proc/swaps"),
            dev: root.join("dev"),
        }
    }
}

/// The number the kernel knows a device by; prints and parses as `8:16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DevNumber {
    /// The driver.
    pub major: u32,
    /// The device or partition of that driver.
    pub minor: u32,
}

impl DevNumber {
    /// Splits a `dev_t`, such as `st_dev` or `st_rdev` of `stat(2)`.
    pub fn from_dev(dev: u64) -> DevNumber {
        DevNumber { major: libc::major(dev), minor: libc::minor(dev) }
    }

    /// Reads `M:m`; `None` for anything else.
    pub fn parse(text: &str) -> Option<DevNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DevNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The number of the block device at `path`, links followed; `None` where
    /// there is none.
    pub fn of_block_device(path: &Path) -> Option<DevNumber> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let meta = std::fs::metadata(path).ok()?;
        meta.file_type().is_block_device().then(|| DevNumber::from_dev(meta.rdev()))
    }
}

impl fmt::Display for DevNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}
