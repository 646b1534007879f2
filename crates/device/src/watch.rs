//! Sees what befalls a run: clocks and counters before and after it, and whether
//! the process was stopped in between.
//!
//! How: a stopped process cannot know that it is stopped, but it is told to go
//! on: a handler of SIGCONT counts and keeps the time. Where that happened during
//! a run, the records that the loops hand over next are looked through once: those
//! that were being gathered, those after them, and each stream's last. The stretch
//! between two moments of a stream (a submission or a
//! completion) in or right after which SIGCONT came is the longest that this stop
//! can have been, and the shortest such stretch of all streams bounds it best. Where it is
//! no longer than the other stretches that were looked at, nothing stood still that
//! shows: a hang-up, too, sends SIGCONT to processes that run. Nothing of this costs the
//! timed loops more than one comparison for each chunk of records. Looking, at
//! most twice for each SIGCONT, is one pass over the chunk between two IOs,
//! without memory taken or a lock; where IOs are in flight meanwhile their
//! completions wait for it, so that such a run counts as stopped for as long.
//!
//! Source: `signal(7)`, `clock_gettime(2)`, `proc_stat(5)`, `proc_pid_status(5)`.
//! Limits: the freezer of control groups (`docker pause`) stops without SIGCONT,
//! and so does a debugger that lets go before the run ends; a process started
//! with SIGCONT blocked is not told.

use crate::clock::Epoch;
use crate::device::{Chunk, Recorder};
use crate::incident::{Incidents, Readings, befell};
use crate::io::IoRecord;
use crate::units::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

/// Times of SIGCONT that are kept.
const KEPT: usize = 16;
/// SIGCONT is noted at most so long after the process goes on, on a busy machine.
const LATE: Nanos = Nanos::from_millis(50);

/// Times that the process was told to go on: begun and finished to be noted.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static CONTINUED: AtomicU64 = AtomicU64::new(0);
/// When, by `CLOCK_MONOTONIC` in ns; the latest at their number modulo their count.
static WHEN: [AtomicU64; KEPT] = [const { AtomicU64::new(0) }; KEPT];

/// A clock of the system now.
fn clock(which: libc::clockid_t) -> Nanos {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes one timespec, which lives through the call.
    unsafe { libc::clock_gettime(which, &raw mut now) };
    Nanos((now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64))
}

extern "C" fn on_continue(_: libc::c_int) {
    let number = BEGUN.fetch_add(1, Ordering::SeqCst) as usize;
    WHEN[number % KEPT].store(clock(libc::CLOCK_MONOTONIC).0, Ordering::SeqCst);
    CONTINUED.fetch_add(1, Ordering::SeqCst);
}

/// Has SIGCONT counted from now on.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero sigaction is a valid value (no flags, empty mask).
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_continue as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler uses nothing but atomics and clock_gettime, which may
        // be used in a handler; `action` lives through the call.
        unsafe { libc::sigaction(libc::SIGCONT, &raw const action, std::ptr::null_mut()) };
    });
}

/// The steal time of each processor, from `/proc/stat`.
fn steal(stat: &str) -> Vec<Nanos> {
    // SAFETY: sysconf takes an integer and touches no memory.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    let of_one = |line: &str| {
        let number = line.strip_prefix("cpu")?;
        let field =
            number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.split_whitespace().nth(8))?;
        Some(Nanos(field?.parse::<u64>().ok()?.saturating_mul(1_000_000_000 / ticks)))
    };
    stat.lines().filter_map(of_one).collect()
}

/// Clocks and counters now. The clocks are read anew where something came in
/// between.
fn readings() -> Readings {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let clocks = || {
        let monotonic = clock(libc::CLOCK_MONOTONIC);
        let (boot, real) = (clock(libc::CLOCK_BOOTTIME), clock(libc::CLOCK_REALTIME));
        let apart = clock(libc::CLOCK_MONOTONIC).saturating_sub(monotonic);
        Readings { monotonic, boot, real, apart, steal: Vec::new() }
    };
    let best = (0..4).map(|_| clocks()).min_by_key(|r| r.apart).unwrap_or_default();
    Readings { steal: steal(&stat), ..best }
}

/// Whether a debugger holds the process, from `/proc/self/status`.
fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|pid| pid.trim() != "0")
}

/// One stream under watch. Written by its thread alone.
#[derive(Debug, Default)]
struct Watched {
    /// The last moment that its chunks so far tell of, in ns.
    last: AtomicU64,
    /// Twice the SIGCONTs that were looked for; one less where the next chunk is
    /// to be looked through, too: SIGCONT came while the one before was handed over.
    seen: AtomicU64,
    /// For each SIGCONT, the stretch in which it came, in ns; 0 where there is none.
    around: [AtomicU64; KEPT],
    /// The longest stretch in which none came, in ns.
    other: AtomicU64,
    /// The longest time in ns that looking took from IOs in flight.
    looking: AtomicU64,
}

impl Watched {
    /// Takes `records` of the stream in the order of their completion; before
    /// them its last moment was `from`.
    fn take(&self, from: Nanos, records: &[IoRecord], conts: &[Option<Nanos>; KEPT]) {
        let mut other = self.other.load(Ordering::Relaxed);
        let mut stretch = |begin: u64, end: u64| {
            let length = end.saturating_sub(begin);
            let mut any = false;
            for (place, at) in conts.iter().enumerate() {
                // Another thread may have been told, and later than this one went on.
                let late = |at: u64| at.saturating_sub(end) <= length.min(LATE.0);
                if at.is_some_and(|at| begin < at.0 && late(at.0)) {
                    self.around[place].fetch_max(length, Ordering::Relaxed);
                    any = true;
                }
            }
            if !any {
                other = other.max(length);
            }
        };
        let mut last = from.0;
        for record in records {
            let (submit, done) = (record.submit().0, record.completion().0);
            // An IO in flight was submitted before the one before it was done.
            if submit > last {
                stretch(last, submit);
            }
            stretch(last.max(submit), done);
            last = done;
        }
        self.other.store(other, Ordering::Relaxed);
    }

    /// The stretch around a SIGCONT, and the longest other one.
    fn around(&self, place: usize) -> Option<(Nanos, Nanos)> {
        let around = self.around[place].load(Ordering::Relaxed);
        (around > 0).then(|| (Nanos(around), Nanos(self.other.load(Ordering::Relaxed))))
    }

    /// The longest stretch, with or without a SIGCONT.
    fn longest(&self) -> Option<Nanos> {
        let all = self.around.iter().chain([&self.other]);
        all.map(|ns| Nanos(ns.load(Ordering::Relaxed))).max()
    }
}

/// The longest of the stops that the streams' stretches tell of, if any does.
fn longest_stop(streams: &[Watched]) -> Option<Nanos> {
    let stop = |place: usize| {
        let seen = streams.iter().filter_map(|stream| stream.around(place));
        seen.min_by_key(|(around, _)| *around)
            .filter(|(around, other)| around > other)
            .map(|(around, _)| around)
    };
    (0..KEPT).filter_map(stop).max()
}

/// A run under watch: takes the place of its recorder.
pub(crate) struct Watch<'a> {
    recorder: &'a dyn Recorder,
    before: Readings,
    traced: bool,
    /// SIGCONTs before the run.
    continued: u64,
    epoch: OnceLock<Epoch>,
    streams: Vec<Watched>,
    /// IOs are in flight while a chunk is handed over.
    in_flight: bool,
}

impl<'a> Watch<'a> {
    /// Begins before a run of so many streams whose records go to `recorder`;
    /// `in_flight` where a stream has IOs under way while it hands records over.
    pub(crate) fn begin(recorder: &'a dyn Recorder, streams: usize, in_flight: bool) -> Watch<'a> {
        listen();
        let continued = CONTINUED.load(Ordering::SeqCst);
        let watched = || Watched { seen: AtomicU64::new(continued * 2), ..Watched::default() };
        Watch {
            recorder,
            traced: is_traced(),
            continued,
            epoch: OnceLock::new(),
            streams: (0..streams).map(|_| watched()).collect(),
            in_flight,
            before: readings(),
        }
    }

    /// The run starts now.
    pub(crate) fn start(&self) -> Epoch {
        *self.epoch.get_or_init(Epoch::start)
    }

    /// What befell the run, after it.
    pub(crate) fn end(&self) -> Incidents {
        let after = readings();
        let continued = CONTINUED.load(Ordering::SeqCst) - self.continued;
        let elapsed = after.monotonic.saturating_sub(self.before.monotonic);
        let streams = &self.streams;
        let looking = streams.iter().map(|s| Nanos(s.looking.load(Ordering::Relaxed))).max();
        let stopped = if self.traced || is_traced() {
            // Where and how often is not known.
            Some(elapsed)
        } else if continued > KEPT as u64 {
            // The first times are forgotten.
            streams.iter().filter_map(Watched::longest).max()
        } else {
            longest_stop(streams)
        };
        let stopped = stopped.max(looking.filter(|took| *took > Nanos::ZERO));
        Incidents { stopped, ..befell(&self.before, &after) }
    }

    /// When the process was told to go on, on the run's clock.
    fn conts(&self, epoch: &Epoch) -> [Option<Nanos>; KEPT] {
        let start = clock(libc::CLOCK_MONOTONIC).saturating_sub(epoch.now());
        let now = CONTINUED.load(Ordering::SeqCst);
        let mut conts = [None; KEPT];
        for number in self.continued.max(now.saturating_sub(KEPT as u64))..now {
            let place = number as usize % KEPT;
            let at = Nanos(WHEN[place].load(Ordering::SeqCst));
            conts[place] = at.0.checked_sub(start.0).map(Nanos);
        }
        conts
    }

    /// Notes where a stream is, and looks closer where the process was told to go on.
    #[inline]
    fn look(&self, chunk: &[IoRecord]) {
        let Some(last) = chunk.last() else { return };
        let Some(stream) = self.streams.get(usize::from(last.stream())) else { return };
        let from = stream.last.swap(last.completion().0, Ordering::Relaxed);
        let told = CONTINUED.load(Ordering::Relaxed) * 2;
        if told != stream.seen.load(Ordering::Relaxed) {
            self.look_once(stream, told, Nanos(from), chunk);
        }
    }

    /// Looks closer, and at the next chunk once more where this is the first since
    /// SIGCONT came.
    #[cold]
    fn look_once(&self, stream: &Watched, told: u64, from: Nanos, chunk: &[IoRecord]) {
        let is_second = stream.seen.load(Ordering::Relaxed) == told - 1;
        stream.seen.store(if is_second { told } else { told - 1 }, Ordering::Relaxed);
        let Some(epoch) = self.epoch.get() else { return };
        let began = epoch.now();
        stream.take(from, chunk, &self.conts(epoch));
        if self.in_flight {
            stream.looking.fetch_max((epoch.now().0 - began.0).max(1), Ordering::Relaxed);
        }
    }

    /// A stream's last chunk: its IOs are done, so that looking disturbs none.
    fn look_last(&self, chunk: &[IoRecord]) {
        let Some(stream) = chunk.last().and_then(|last| self.streams.get(usize::from(last.stream()))) else {
            return;
        };
        if CONTINUED.load(Ordering::SeqCst) != self.continued
            && let Some(epoch) = self.epoch.get()
        {
            let from = Nanos(stream.last.load(Ordering::Relaxed));
            stream.take(from, chunk, &self.conts(epoch));
        }
    }
}

impl Recorder for Watch<'_> {
    fn fresh(&self) -> Chunk {
        self.recorder.fresh()
    }

    fn exchange(&self, full: Chunk) -> Chunk {
        self.look(&full);
        self.recorder.exchange(full)
    }

    fn finish(&self, last: Chunk) {
        self.look_last(&last);
        self.recorder.finish(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Arrival, Io, Mode};
    use crate::units::Bytes;

    const MS: u64 = 1_000_000;

    /// IOs of 1 ms each, one after the other, at these times in ms.
    fn records(submits: &[(u64, u64)]) -> Vec<IoRecord> {
        let io =
            Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 512, mode: Mode::Read, pattern: 0 };
        submits.iter().map(|(at, took)| IoRecord::new(&io, 0, Nanos(at * MS), Nanos(took * MS))).collect()
    }

    fn stop_of(streams: &[&[(u64, u64)]], conts_ms: &[u64]) -> Option<Nanos> {
        let mut conts = [None; KEPT];
        conts.iter_mut().zip(conts_ms).for_each(|(place, at)| *place = Some(Nanos(at * MS)));
        let of = |submits: &&[(u64, u64)]| {
            let seen = Watched::default();
            seen.take(Nanos::ZERO, &records(submits), &conts);
            seen
        };
        longest_stop(&streams.iter().map(of).collect::<Vec<_>>())
    }

    #[test]
    fn a_stop_is_as_long_as_the_io_or_the_gap_in_which_it_ended() {
        // Within an IO, and between two.
        assert_eq!(stop_of(&[&[(0, 1), (1, 500), (501, 1)]], &[500]), Some(Nanos(500 * MS)));
        assert_eq!(stop_of(&[&[(0, 1), (401, 1), (402, 1)]], &[400]), Some(Nanos(400 * MS)));
        // Two stops: the longer is told.
        assert_eq!(stop_of(&[&[(0, 300), (300, 1), (301, 600)]], &[299, 899]), Some(Nanos(600 * MS)));
    }

    /// The thread that is told is another one than the one that measures.
    #[test]
    fn a_stop_is_seen_where_its_end_is_noted_a_little_late() {
        let records = &[(0, 1), (1, 500), (501, 1), (502, 1), (503, 1)];
        assert_eq!(stop_of(&[records], &[504]), Some(Nanos(500 * MS)));
        assert_eq!(stop_of(&[&[(0, 1), (1, 500), (501, 1), (502, 300)]], &[700]), None, "but not much later");
    }

    #[test]
    fn all_streams_stood_still_so_the_shortest_stretch_bounds_the_stop() {
        let (one, other): (&[_], &[_]) = (&[(0, 1), (1, 500), (501, 1)], &[(0, 1), (90, 411), (501, 1)]);
        assert_eq!(stop_of(&[one, other], &[500]), Some(Nanos(411 * MS)));
    }

    #[test]
    fn a_process_that_ran_and_was_told_to_go_on_was_not_stopped() {
        assert_eq!(stop_of(&[&[(0, 2), (2, 1), (3, 2)]], &[3]), None);
        // Before the first and after the last moment nothing is measured.
        assert_eq!(stop_of(&[&[(5, 1)]], &[90]), None);
        assert_eq!(stop_of(&[&[(0, 1), (1, 900)]], &[]), None, "no SIGCONT at all");
    }

    #[test]
    fn several_ios_in_flight_are_one_stream() {
        assert_eq!(stop_of(&[&[(0, 2), (0, 3), (2, 400), (3, 400)]], &[401]), Some(Nanos(399 * MS)));
    }

    /// Takes records and gives small chunks.
    struct Nowhere;

    impl Recorder for Nowhere {
        fn fresh(&self) -> Chunk {
            Chunk::with_capacity(4)
        }

        fn finish(&self, _: Chunk) {}
    }

    /// After SIGCONT two chunks are looked through and no more; what looking takes
    /// from IOs in flight makes the run one that stood still.
    #[test]
    fn what_follows_a_sigcont_is_looked_through_once_and_named_where_ios_wait_for_it() {
        for in_flight in [false, true] {
            let watch = Watch::begin(&Nowhere, 1, in_flight);
            watch.start();
            let other = || watch.streams[0].other.load(Ordering::Relaxed) / MS;
            watch.exchange(records(&[(0, 1), (1, 100)]));
            assert_eq!(other(), 0, "nothing is looked at where nobody was told anything");
            // SAFETY: raise takes an integer; SIGCONT has a handler that uses atomics.
            unsafe { libc::raise(libc::SIGCONT) };
            watch.exchange(records(&[(101, 1), (102, 200)]));
            assert_eq!(other(), 200);
            watch.exchange(records(&[(302, 300), (602, 1)]));
            assert_eq!(other(), 300, "it may have come while the chunk before was handed over");
            watch.exchange(records(&[(603, 400), (1003, 1)]));
            watch.exchange(records(&[(1004, 500), (1504, 1)]));
            assert_eq!(other(), 300, "and is not looked for again and again");
            watch.finish(records(&[(1505, 350), (1855, 1)]));
            assert_eq!(other(), 350, "after the last IO there is time");
            let stopped = watch.end().stopped;
            assert_eq!(stopped.is_some(), in_flight, "{stopped:?}");
            assert!(stopped < Some(Nanos::from_millis(100)), "{stopped:?}");
        }
    }

    #[test]
    fn steal_time_is_read_as_the_kernel_writes_it() {
        let stat =
            "cpu  1 2 3 4 5 6 7 30 9 10\ncpu0 1 2 3 4 5 6 7 10 9 10\ncpu1 1 2 3 4 5 6 7 20 0 0\nintr 5\n";
        assert_eq!(steal(stat), [Nanos::from_millis(100), Nanos::from_millis(200)]);
        assert!(steal("cpu0 1 2 3\n").is_empty());
    }

    #[test]
    fn an_undisturbed_moment_befalls_nothing() {
        let (before, after) = (readings(), readings());
        assert!(before.boot >= before.monotonic && before.apart < Nanos::from_secs(1));
        assert_eq!(befell(&before, &after).suspended, None);
    }
}
