//! The vocabulary of IO measurement, and real devices.
//!
//! Everything else in the workspace stands on these words: [`Io`] and
//! [`IoRecord`], [`Nanos`] and [`Bytes`], [`Geometry`], and the two faces of a
//! device, [`Device`] and [`Blocks`]. This is the only crate that may contain
//! unsafe code; each use has its `SAFETY` line.

pub mod device;
#[cfg(target_os = "linux")]
pub mod identity;
pub mod io;
pub mod rng;
#[cfg(target_os = "linux")]
pub mod safety;
#[cfg(target_os = "linux")]
pub mod scratch;
pub mod units;

pub use device::{Blocks, Chunk, Device, DeviceError, Geometry, Recorder, RunEnd, RunLimits, Stop, Stream};
pub use io::{Io, IoRecord, Mode};
pub use units::{Bytes, Nanos};
