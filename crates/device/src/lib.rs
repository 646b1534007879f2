//! The vocabulary of IO measurement, and real devices.
//!
//! Everything else in the workspace stands on these words: [`Io`] and
//! [`IoRecord`], [`Nanos`] and [`Bytes`], [`Geometry`], and the two faces of a
//! device, [`Device`] and [`Blocks`]. This is the only crate that may contain
//! unsafe code; each use has its `SAFETY` line.

pub mod blocks;
pub mod buffer;
pub mod clock;
pub mod counters;
pub mod device;
pub mod engine;
mod fnv;
mod gate;
pub mod identity;
pub mod incident;
pub mod io;
mod layout;
pub mod lock;
pub mod null;
pub mod process;
pub mod real;
pub mod rng;
pub mod safety;
pub mod scratch;
pub mod stamp;
mod sync;
pub mod units;
mod uring;
mod watch;

pub use blocks::Blocks;
pub use buffer::Data;
pub use clock::unix_now;
pub use counters::Counters;
pub use device::{
    Chunk, Device, DeviceError, Geometry, Reading, ReadingsDue, Recorder, RunEnd, RunLimits, Sequence,
    Snapshot, Stop, Stream, record_of,
};
pub use engine::{Buffering, Discard, Engine, EngineOptions};
pub use incident::Incidents;
pub use io::{Arrival, Io, IoRecord, Mode};
pub use null::{KeepAll, NullDevice, Overhead, measure_overhead};
pub use real::RealDevice;
pub use units::{Bytes, Nanos};
