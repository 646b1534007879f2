//! The loop of devices in virtual time: streams of IOs interleaved on one clock.
//!
//! Method: the stream whose next IO is ready first goes first, the lower number on a
//! tie; each IO is handed to the device, which says when it is done. Nothing is
//! allocated but the streams' own first chunks. Units: nanoseconds.

use uflip_device::{
    Chunk, DeviceError, Io, IoRecord, Nanos, ReadingsDue, Recorder, RunEnd, RunLimits, Stream, record_of,
};

/// The longest run that records can tell the times of: 52 days.
const MAX_RUN_NS: u64 = (1 << 52) - 1;
/// Where virtual time ends, so that no sum of times leaves its type: 292 years.
pub(crate) const END_NS: u64 = u64::MAX / 2;
/// IOs between two looks at [`uflip_device::Stop`].
const STOP_EVERY: u64 = 256;

/// What serves IOs one after the other in virtual time.
pub(crate) trait Server {
    /// What it is called in errors.
    fn name(&self) -> &str;

    /// Why it does not take this IO; `None` where it does.
    fn refusal(&self, io: &Io) -> Option<DeviceError>;

    /// Serves one IO submitted at `at_ns`; gives when it is done.
    fn serve(&mut self, at_ns: u64, io: &Io) -> u64;

    /// Tells what it counted by `at` of the run, where it counts.
    fn tell(&self, _recorder: &dyn Recorder, _at: Nanos) {}
}

/// A stream and its next IO, with the time it is ready.
struct Turn {
    stream: Stream,
    next: Option<(u64, Io)>,
    chunk: Chunk,
}

impl Turn {
    /// Fetches the next IO and when it is submitted, in a run that began at
    /// `began_ns` and in which the one before was done at `done_ns`.
    #[inline]
    fn advance(&mut self, began_ns: u64, done_ns: u64) {
        self.next = self.stream.next().map(|io| {
            let due = io.arrival.due(Nanos(done_ns - began_ns));
            (began_ns.saturating_add(due.0).max(done_ns), io)
        });
    }

    #[inline]
    fn record(&mut self, recorder: &dyn Recorder, record: IoRecord) {
        if self.chunk.len() == self.chunk.capacity() {
            let full = std::mem::take(&mut self.chunk);
            self.chunk = recorder.exchange(full);
        }
        self.chunk.push(record);
    }
}

/// The stream to go next: the earliest ready, the lowest number on a tie.
#[inline]
fn earliest(turns: &[Turn]) -> Option<usize> {
    let mut best: Option<(u64, usize)> = None;
    for (i, turn) in turns.iter().enumerate() {
        if let Some((ready, _)) = turn.next
            && best.is_none_or(|(b, _)| ready < b)
        {
            best = Some((ready, i));
        }
    }
    best.map(|(_, i)| i)
}

/// That virtual time is over.
pub(crate) fn at_its_end(name: &str) -> DeviceError {
    DeviceError::Other(format!("{name}: virtual time ends after 292 years; type shorter pauses"))
}

#[cold]
fn too_long(name: &str) -> DeviceError {
    DeviceError::Other(format!(
        "{name}: the run takes more than the 52 days of virtual time that records can tell; plan fewer IOs or shorten the times in the description"
    ))
}

/// Runs `streams` on `device`, whose clock stands at `began` ns.
///
/// # Errors
/// What the device refuses, or where time ends.
pub(crate) fn interleave(
    device: &mut impl Server,
    began: u64,
    streams: Vec<Stream>,
    recorder: &dyn Recorder,
    limits: RunLimits<'_>,
) -> Result<RunEnd, DeviceError> {
    if streams.len() > IoRecord::MAX_STREAMS {
        return Err(DeviceError::Other(format!("at most {} streams in a run", IoRecord::MAX_STREAMS)));
    }
    if began >= END_NS {
        return Err(at_its_end(device.name()));
    }
    // A paused IO is not begun after the limit: waiting costs nothing here.
    let is_past = |io: &Io, ready_ns: u64| {
        limits.time.is_some_and(|limit| io.arrival.is_past(Nanos(ready_ns - began), limit))
    };
    let mut turns: Vec<Turn> =
        streams.into_iter().map(|stream| Turn { stream, next: None, chunk: recorder.fresh() }).collect();
    turns.iter_mut().for_each(|turn| turn.advance(began, began));
    let mut end = RunEnd::default();
    let mut last = began;
    let mut due = ReadingsDue::of(recorder);
    while let Some(i) = earliest(&turns) {
        let Some((ready, io)) = turns[i].next else { break };
        if is_past(&io, ready) {
            turns[i].next = None;
            end.time_limit_hit = true;
            continue;
        }
        if end.ios.is_multiple_of(STOP_EVERY) && limits.stop.now() {
            end.interrupted = true;
            break;
        }
        if let Some(refusal) = device.refusal(&io) {
            return Err(refusal);
        }
        if ready - began > MAX_RUN_NS {
            return Err(too_long(device.name()));
        }
        let done = device.serve(ready, &io);
        if done - began > MAX_RUN_NS {
            return Err(too_long(device.name()));
        }
        let record = record_of(&io, i as u16, Nanos(ready - began), Nanos(done - began))?;
        turns[i].record(recorder, record);
        turns[i].advance(began, done);
        last = last.max(done);
        end.ios += 1;
        if due.at(Nanos(last - began)) {
            device.tell(recorder, Nanos(last - began));
        }
    }
    turns.into_iter().for_each(|turn| recorder.finish(turn.chunk));
    end.elapsed = Nanos(last - began);
    Ok(end)
}
