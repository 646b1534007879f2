//! How IOs are brought to a real device: the engine, the buffering and the
//! content of what is written. These are part of every result.

use crate::buffer::Data;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which loop submits the IOs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// `pread`/`pwrite`, one thread a stream, one IO at a time.
    #[default]
    Sync,
    /// io_uring, one ring a stream.
    IoUring {
        /// IOs in flight per stream.
        queue_depth: u32,
        /// Poll the device for completions instead of waiting for interrupts.
        poll: bool,
    },
}

/// What lies between an IO and the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffering {
    /// O_DIRECT: past the page cache, the device's own cache in effect.
    #[default]
    Direct,
    /// O_DIRECT and O_DSYNC: a write is done when the medium holds it (FUA or a
    /// cache flush with each write).
    DirectSync,
    /// Through the page cache: measures memory as much as the device.
    Buffered,
}

/// How a range of a block device is trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discard {
    /// BLKDISCARD: the device may forget the range.
    #[default]
    Plain,
    /// BLKSECDISCARD: it must, copies included. Few devices have it.
    Secure,
}

impl Buffering {
    /// The extra flags for `open(2)`.
    pub const fn open_flags(self) -> i32 {
        match self {
            Buffering::Direct => libc::O_DIRECT,
            Buffering::DirectSync => libc::O_DIRECT | libc::O_DSYNC,
            Buffering::Buffered => 0,
        }
    }
}

impl fmt::Display for Buffering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Buffering::Direct => "direct",
            Buffering::DirectSync => "direct+dsync",
            Buffering::Buffered => "buffered",
        })
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Sync => f.write_str("sync"),
            Engine::IoUring { queue_depth, poll } => {
                write!(f, "io_uring, queue depth {queue_depth}{}", if *poll { ", polled" } else { "" })
            }
        }
    }
}

/// Everything that is chosen about the way to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOptions {
    /// The loop.
    pub engine: Engine,
    /// The buffering mode.
    pub buffering: Buffering,
    /// The content of write buffers.
    pub data: Data,
    /// The seed of that content.
    pub seed: u64,
    /// How trims are done.
    #[serde(default)]
    pub discard: Discard,
}
