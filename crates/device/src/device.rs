//! The measured face of a device, and what goes wrong with one.
//!
//! [`Device`] is what the methodology uses: it runs a set of streams and hands
//! every finished IO to a [`Recorder`]. There are three loops behind it:
//! threads (`sync`), io_uring, and virtual time (the simulator). It stays under
//! eight methods; growth needs a design note. The other face, for programs that
//! live on a device, is [`crate::blocks`].

use crate::counters::Counters;
use crate::incident::Incidents;
use crate::io::{Arrival, Io, IoRecord};
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

/// The outer shape of a device: what a pattern needs to know to fit on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Usable bytes from offset 0.
    pub capacity: Bytes,
    /// The smallest unit of offset and size the device takes, in bytes.
    pub sector: Bytes,
}

/// One sequence of IOs, each submitted after the one before, when its
/// [`Arrival`](crate::Arrival) says. Parallel patterns are several streams; number `i` of the set is stream `i`.
pub type Stream = Box<dyn Iterator<Item = Io> + Send>;

/// Records of one stream in completion order; the capacity is fixed and its
/// memory touched before the run.
pub type Chunk = Vec<IoRecord>;

/// Takes what the timed loops measured. Implementations must not make a loop
/// wait while memory is left.
pub trait Recorder: Sync {
    /// An empty chunk with capacity for at least one record.
    fn fresh(&self) -> Chunk;
    /// Takes a full chunk (records of one stream) and gives an empty one back.
    fn exchange(&self, full: Chunk) -> Chunk {
        self.finish(full);
        self.fresh()
    }
    /// Takes a stream's last chunk, possibly empty.
    fn finish(&self, last: Chunk);
    /// How often a device in virtual time is to say what it has counted; `None` where
    /// nobody wants to know. Asked once, when a run begins. Real devices pay no heed.
    fn readings_every(&self) -> Option<Nanos> {
        None
    }
    /// Takes such a reading: of the first completion at or after each interval's end.
    fn reading(&self, _: Reading) {}
}

/// What a device had counted at a moment of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Since the run began, in virtual time.
    pub at: Nanos,
    /// Its counters by then, from before the run on. They hold what it has decided on,
    /// also where that is not finished.
    pub counters: Counters,
}

/// When a reading is due.
#[derive(Clone, Copy, Debug)]
pub struct ReadingsDue {
    every: u64,
    next: u64,
}

impl ReadingsDue {
    /// In a run that `recorder` records.
    pub fn of(recorder: &dyn Recorder) -> ReadingsDue {
        let every = recorder.readings_every().map_or(u64::MAX, |every| every.0.max(1));
        ReadingsDue { every, next: every }
    }

    /// True at the first call at or after each interval's end; `at` is the time since
    /// the run began.
    #[inline]
    pub fn at(&mut self, at: Nanos) -> bool {
        let due = at.0 >= self.next;
        if due {
            self.next = (at.0 / self.every + 1).saturating_mul(self.every);
        }
        due
    }
}

/// Asks a run to end early, from another thread or a signal handler.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// A stop nobody has asked for.
    pub const fn new() -> Stop {
        Stop(AtomicU8::new(0))
    }

    /// Asks for one step more: first "after this run", then "now".
    /// Safe to call in a signal handler. Gives the number of times asked.
    pub fn ask(&self) -> u8 {
        self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Asks to end after the run in progress, and for no more however often it
    /// is called. Safe to call in a signal handler.
    pub fn ask_gently(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// True when the plan must not start another run.
    pub fn after_this_run(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// True when the run in progress must end at once and is not kept.
    #[inline]
    pub fn now(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}

/// How a set of streams is to be run, besides the IOs themselves.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits<'a> {
    /// End each stream once this much of the device's time has passed, even if
    /// IOs are left; `None` for no limit. Never cuts an IO short. Of an open loop
    /// those IOs are left that were due later; what was due before is done, however
    /// late the device is.
    pub time: Option<Nanos>,
    /// Asked from outside.
    pub stop: &'a Stop,
    /// The one sequence that the streams were dealt from, in turn, where they stand
    /// for a queue as deep as they are many. An engine with a queue of its own keeps
    /// it that deep with this sequence; others run the streams.
    pub sequence: Option<Sequence<'a>>,
}

/// Makes the sequence that streams were dealt from.
#[derive(Clone, Copy)]
pub struct Sequence<'a>(pub &'a (dyn Fn() -> Stream + Sync));

impl std::fmt::Debug for Sequence<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sequence")
    }
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// IOs finished and recorded.
    pub ios: u64,
    /// From the start of the run to the last completion, on the device's clock.
    pub elapsed: Nanos,
    /// True where [`RunLimits::time`] ended it before its streams were done.
    pub time_limit_hit: bool,
    /// True where it was stopped from outside and must not be kept.
    pub interrupted: bool,
    /// What befell it from outside.
    #[serde(default, skip_serializing_if = "Incidents::is_none")]
    pub incidents: Incidents,
    /// Of a run through the page cache: how long it took after the last completion
    /// until what it had written there was on the device. `elapsed` does not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_back: Option<Nanos>,
}

/// What [`Device::snapshot`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// Keep the device as it is now, in place of an earlier snapshot.
    Take,
    /// Be again as the snapshot. The clock goes on.
    Return,
}

/// The measured face.
pub trait Device {
    /// Capacity and sector size.
    fn geometry(&self) -> Geometry;

    /// Runs all `streams` at once, each IO after the one before it in its
    /// stream, until they end or a limit is hit; every finished IO is
    /// recorded. On an error nothing of the run is to be kept.
    ///
    /// # Errors
    /// [`DeviceError`] with the IO that failed.
    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError>;

    /// Lets the device alone for `pause`: real time on a real device, virtual
    /// time on a simulated one. Returns early when `stop` is asked for.
    fn idle(&mut self, pause: Nanos, stop: &Stop);

    /// The device's clock: nanoseconds since it was opened.
    fn now(&self) -> Nanos;

    /// True where `now` is virtual: waiting costs nothing.
    fn is_virtual(&self) -> bool;

    /// Takes a snapshot of the whole device or returns to it; false where that
    /// cannot be done, which is so on all real devices.
    fn snapshot(&mut self, _: Snapshot) -> bool {
        false
    }

    /// What the device has counted of its own work so far; `None` where it
    /// tells nothing. Asked between runs only, never inside of one.
    fn counters(&self) -> Option<Counters> {
        None
    }
}

/// What the world did to an IO or to a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// An IO came back with an error.
    #[error("{mode} of {size} bytes at offset {offset} of {target} failed: {source}{}", hint(source))]
    Io {
        /// The device, as the user named it.
        target: String,
        /// `read`, `write`, …
        mode: &'static str,
        /// In bytes.
        offset: u64,
        /// In bytes.
        size: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// An IO moved fewer bytes than asked.
    #[error(
        "{mode} of {size} bytes at offset {offset} of {target} moved only {moved} bytes; \
         did the target shrink while it was measured?"
    )]
    Short {
        /// The device, as the user named it.
        target: String,
        /// `read` or `write`.
        mode: &'static str,
        /// In bytes.
        offset: u64,
        /// In bytes.
        size: u64,
        /// What was moved, in bytes.
        moved: u64,
    },
    /// A response time longer than a record can tell.
    #[error(
        "{mode} of {size} bytes at offset {offset}: its response time is longer than the 18 minutes that a record \
         can tell; {}", if *open { OVERLOADED } else { STUCK }
    )]
    LongResponse {
        /// `read`, `write`, …
        mode: &'static str,
        /// In bytes.
        offset: u64,
        /// In bytes.
        size: u64,
        /// True where it counts from the instant that the IO was due.
        open: bool,
    },
    /// Opening or preparing failed.
    #[error("{what} {path}: {source}", path = path.display())]
    Path {
        /// What was tried, as the start of a sentence ("cannot open").
        what: String,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Anything else, said in full, with what to do about it.
    #[error("{0}")]
    Other(String),
}

/// What to do about an open loop that falls ever further behind.
const OVERLOADED: &str = "the device falls ever further behind the rate; type a lower one or fewer IOs";
/// What to do about a single IO that takes so long.
const STUCK: &str = "look at the device, or at its description where it is simulated, or leave such IOs out";

/// The record of an IO that was submitted and done at these times from the start of the
/// run, as [`IoRecord::measured`] packs it.
///
/// # Errors
/// [`DeviceError::LongResponse`] where the record could not tell its response time.
#[inline(always)]
pub fn record_of(io: &Io, stream: u16, submit: Nanos, done: Nanos) -> Result<IoRecord, DeviceError> {
    let from = if let Arrival::At(due) = io.arrival { due } else { submit };
    if done.0.saturating_sub(from.0) > IoRecord::MAX_RESPONSE.0 {
        return Err(long_response(io));
    }
    Ok(IoRecord::measured(io, stream, submit, done))
}

#[cold]
fn long_response(io: &Io) -> DeviceError {
    let (mode, open) = (io.mode.name(), matches!(io.arrival, Arrival::At(_)));
    DeviceError::LongResponse { mode, offset: io.offset.0, size: io.size.into(), open }
}

/// What an errno usually means for somebody measuring a device.
fn hint(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EIO) => " (the device reported an error; see the kernel's log)",
        Some(libc::ENXIO | libc::ENODEV) => " (the device is gone)",
        Some(libc::ENOSPC) => " (nothing is left at that place)",
        Some(libc::EBADF) => " (it was opened for reading only)",
        Some(libc::EINVAL) => " (is the offset, size or buffer mode one that this target takes?)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Mode;

    #[test]
    fn a_response_time_that_a_record_cannot_tell_is_no_record() {
        let (most, late) = (IoRecord::MAX_RESPONSE.0, 5_000_000_000);
        let io = |arrival| Io { arrival, offset: Bytes(512), size: 4096, mode: Mode::Write, pattern: 0 };
        let (closed, open) = (io(Arrival::CONSECUTIVE), io(Arrival::At(Nanos(7))));
        let told = record_of(&closed, 3, Nanos(late), Nanos(late + most)).unwrap();
        assert_eq!((told.submit(), told.response(), told.stream()), (Nanos(late), Nanos(most), 3));
        let said = record_of(&closed, 3, Nanos(late), Nanos(late + most + 1)).unwrap_err().to_string();
        assert!(
            said.contains("write of 4096 bytes at offset 512") && said.contains("look at the device"),
            "{said}"
        );
        // An open loop's counts from when the IO was due, however short the device took.
        let told = record_of(&open, 0, Nanos(most), Nanos(7 + most)).unwrap();
        assert_eq!(told.response(), Nanos(most));
        let said = record_of(&open, 0, Nanos(7 + most), Nanos(8 + most)).unwrap_err().to_string();
        assert!(said.contains("18 minutes") && said.contains("type a lower one or fewer IOs"), "{said}");
    }
}
