//! A device whose truth is given, not the outcome of mechanics: what a method
//! finds on it can be held against [`Truth`].
//!
//! Method: response times by rule. Reads and writes of streams take a fixed
//! time, in proportion to size but for a latency. A write that continues a
//! stream is cheap while its stream is among the last [`Truth::partitions`], and
//! takes its turn among the expensive ones where too many streams go round; any other
//! write is cheap inside the last [`SLOTS`] stretches of an eighth of
//! [`Truth::area_bytes`], and else takes its turn in a cycle of
//! [`Truth::period_ios`] with some expensive IOs. The first
//! [`Truth::start_up_ios`] writes out of order after a rest are cheap. For
//! [`Truth::lasting_ns`] after an expensive write, reads take longer. Upon all of it:
//! noise with mean 1, outliers, and a drift with every write. Now and then it may
//! stand still for a while, as a device does that tidies up: see [`Stall`].
//!
//! Units: nanoseconds, bytes, IOs. Source: the two-phase model and the effects of
//! paper 001, sections 4.2, 4.3 and 5.2. Limits: one IO at a time; no real
//! device is this simple, see the FTLs for mechanics.

pub mod draw;
mod unsteady;

pub use unsteady::{OtherLoad, Unsteady};

use crate::interleave::{END_NS, Server, interleave};
use std::collections::VecDeque;
use uflip_device::rng::{Rng, derive_seed};
use uflip_device::{
    Bytes, Device, DeviceError, Geometry, Io, Mode, Nanos, Recorder, RunEnd, RunLimits, Stop, Stream,
};

/// Stretches of the area in which random writes are cheap.
const SLOTS: usize = 8;
/// Streams whose ends are remembered.
const STREAMS: usize = 1024;
/// Streams go round where one comes back after as many others as before, so
/// often. In random writes to a small area that is luck.
const ROUNDS: u32 = 2;
/// The size that the times of [`Truth`] are of.
const SIZE: f64 = 32768.0;
/// Share of them that an IO of no size would take.
const LATENCY: f64 = 0.3;

/// What is so of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Capacity, in sectors of 512 bytes.
    pub capacity: Bytes,
    /// A sequential read of 32 KiB, without noise.
    pub sr_ns: f64,
    /// A random read.
    pub rr_ns: f64,
    /// A cheap write.
    pub sw_ns: f64,
    /// An expensive write.
    pub expensive_ns: f64,
    /// Share of expensive ones among writes out of order.
    pub expensive_share: f64,
    /// Writes out of order in a cycle of cheap and expensive ones; None where the
    /// expensive ones come at random.
    pub period_ios: Option<f64>,
    /// Standard deviation of a cycle's length relative to it.
    pub jitter: f64,
    /// Cheap writes out of order after a rest; None for none.
    pub start_up_ios: Option<u64>,
    /// The rest that brings all of them back.
    pub refill_ns: f64,
    /// For how long reads are slow after an expensive write; None where they are not.
    pub lasting_ns: Option<f64>,
    /// How many times as long they take.
    pub lasting_factor: f64,
    /// The area in which random writes are cheap; None where there is none.
    pub area_bytes: Option<u64>,
    /// Streams of writes that are cheap at once.
    pub partitions: u32,
    /// Writes at multiples of it are aligned; None where all are.
    pub unit_bytes: Option<u64>,
    /// How many times as long others take.
    pub penalty: f64,
    /// Standard deviation of the logarithm of response times.
    pub noise: f64,
    /// Share of outliers.
    pub outliers: f64,
    /// How many times as long they take.
    pub outlier_factor: f64,
    /// Each write makes those after it more expensive by this share of the first one's.
    pub drift: f64,
}

impl Truth {
    /// Mean response times of SR, RR, SW and RW of 32 KiB in the running phase,
    /// without drift.
    pub fn means_ns(&self) -> [f64; 4] {
        let rw = self.sw_ns + self.expensive_share * (self.expensive_ns - self.sw_ns);
        let outliers = 1.0 + self.outliers * (self.outlier_factor - 1.0);
        [self.sr_ns, self.rr_ns, self.sw_ns, rw].map(|ns| ns * outliers)
    }
}

/// The device begins no IO for a while, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From the beginning of one to that of the next; the first begins after it.
    pub every: Nanos,
    /// How long each lasts.
    pub length: Nanos,
}

impl Stall {
    /// When an IO can begin that is there at `at_ns`.
    fn begin(self, at_ns: u64) -> u64 {
        let (since, every) = (at_ns % self.every.0.max(1), self.every.0.max(1));
        if at_ns >= every && since < self.length.0 { at_ns - since + self.length.0 } else { at_ns }
    }
}

/// The device of a [`Truth`], in virtual time.
#[derive(Clone, Debug)]
pub struct KnownDevice {
    truth: Truth,
    rng: Rng,
    clock_ns: u64,
    /// Ends of streams, the latest last; how many others came between the last
    /// two writes, and how often as many as that.
    ends: VecDeque<(u64, usize, u32)>,
    /// Where the last read ended.
    read_end: u64,
    /// Stretches, the latest last.
    slots: VecDeque<u64>,
    /// Place in the cycle, its length, and the expensive IOs in it so far.
    cycle: (f64, f64, f64),
    /// Cheap writes left of the start-up, and when a write out of order ended.
    credit: f64,
    written_at: u64,
    slow_until: u64,
    writes: u64,
    stall: Option<Stall>,
    weather: Option<unsteady::Weather>,
}

impl KnownDevice {
    /// A rested device.
    pub fn new(truth: Truth, seed: u64) -> KnownDevice {
        let period = truth.period_ios.unwrap_or(1.0);
        KnownDevice {
            truth,
            rng: Rng::new(derive_seed(seed, 1)),
            clock_ns: 0,
            ends: VecDeque::new(),
            read_end: u64::MAX,
            slots: VecDeque::new(),
            cycle: (0.0, period, 0.0),
            credit: truth.start_up_ios.unwrap_or(0) as f64,
            written_at: 0,
            slow_until: 0,
            writes: 0,
            stall: None,
            weather: None,
        }
    }

    /// The same with stalls.
    pub fn stalling(self, stall: Stall) -> KnownDevice {
        KnownDevice { stall: Some(stall), ..self }
    }

    /// The same with what changes beside the rules, drawn from `seed`.
    pub fn unsteady(self, law: Unsteady, seed: u64) -> KnownDevice {
        KnownDevice { weather: Some(unsteady::Weather::new(law, seed)), ..self }
    }

    /// How much more expensive writes are now than at the start.
    pub fn drifted(&self) -> f64 {
        1.0 + self.truth.drift * self.writes as f64
    }

    /// A draw from the normal distribution (G. E. P. Box and M. E. Muller, 1958).
    fn gauss(&mut self) -> f64 {
        let (u, v) = (1.0 - self.rng.unit(), self.rng.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// `base_ns` with size, noise, outliers and what changes beside the rules.
    fn noisy(&mut self, at_ns: u64, base_ns: f64, size: u32) -> u64 {
        let sized = base_ns * (LATENCY + (1.0 - LATENCY) * f64::from(size) / SIZE);
        let sigma = self.truth.noise;
        let noise = (sigma * self.gauss() - sigma * sigma / 2.0).exp();
        let out = if self.rng.unit() < self.truth.outliers { self.truth.outlier_factor } else { 1.0 };
        let weather = self.weather.as_mut().map_or(1.0, |weather| weather.factor(at_ns));
        (sized * noise * out * weather).max(1.0) as u64
    }

    fn read_ns(&mut self, at_ns: u64, io: &Io) -> f64 {
        let base = if io.offset.0 == self.read_end { self.truth.sr_ns } else { self.truth.rr_ns };
        let base = if self.read_end == u64::MAX { self.truth.sr_ns } else { base };
        self.read_end = io.offset.0 + u64::from(io.size);
        if at_ns < self.slow_until { base * self.truth.lasting_factor } else { base }
    }

    /// How many streams were written since the one that ends at `offset`, which
    /// then ends at `end`, and whether it goes round with them.
    fn continues(&mut self, offset: u64, end: u64) -> Option<(usize, bool)> {
        let found = self.ends.iter().rposition(|e| e.0 == offset);
        let Some((at, (_, between, rounds))) = found.and_then(|at| Some((at, *self.ends.get(at)?))) else {
            if self.ends.len() == STREAMS {
                self.ends.pop_front();
            }
            self.ends.push_back((end, 0, 0));
            return None;
        };
        let age = self.ends.len() - 1 - at;
        let rounds = if age == between { rounds + 1 } else { 0 };
        self.ends.remove(at);
        self.ends.push_back((end, age, rounds));
        Some((age, rounds >= ROUNDS))
    }

    /// Whether the stretch of `offset` was among the latest, which it now is.
    fn nearby(&mut self, offset: u64) -> bool {
        let Some(area) = self.truth.area_bytes else { return false };
        let slot = offset / (area / SLOTS as u64).max(1);
        let found = self.slots.iter().rposition(|s| *s == slot);
        if let Some(at) = found {
            self.slots.remove(at);
        } else if self.slots.len() == SLOTS {
            self.slots.pop_front();
        }
        self.slots.push_back(slot);
        found.is_some()
    }

    /// Whether the next write in the cycle is an expensive one.
    fn next_is_expensive(&mut self) -> bool {
        let Some(period) = self.truth.period_ios else { return self.rng.unit() < self.truth.expensive_share };
        let (place, length, expensive) = self.cycle;
        let turn = expensive < self.truth.expensive_share * period - 0.5;
        self.cycle = (place + 1.0, length, expensive + f64::from(u8::from(turn)));
        if place + 1.0 >= length {
            let over = place + 1.0 - length;
            let jitter = self.truth.jitter * self.gauss();
            self.cycle = (over, (period * (1.0 + jitter)).max(2.0), 0.0);
        }
        turn
    }

    /// A write out of order.
    fn scattered_is_expensive(&mut self, at_ns: u64, offset: u64) -> bool {
        let start_up = self.truth.start_up_ios.unwrap_or(0) as f64;
        let rested = at_ns.saturating_sub(self.written_at) as f64 / self.truth.refill_ns.max(1.0);
        // Short breaks are part of a run.
        if rested >= 0.01 {
            self.credit = (self.credit + start_up * rested).min(start_up);
        }
        let nearby = self.nearby(offset);
        if self.credit >= 1.0 {
            self.credit -= 1.0;
            return false;
        }
        !nearby && self.next_is_expensive()
    }

    fn write_ns(&mut self, at_ns: u64, io: &Io) -> (f64, bool) {
        let (offset, end) = (io.offset.0, io.offset.0 + u64::from(io.size));
        let in_order = self.continues(offset, end);
        let (expensive, scattered) = match in_order {
            Some((age, _)) if age < self.truth.partitions as usize => (false, false),
            Some((_, true)) => (self.next_is_expensive(), false),
            _ => (self.scattered_is_expensive(at_ns, offset), true),
        };
        let base = if expensive { self.truth.expensive_ns } else { self.truth.sw_ns };
        let shifted = self.truth.unit_bytes.is_some_and(|unit| !offset.is_multiple_of(unit));
        let drifted = self.drifted();
        self.writes += 1;
        (base * if shifted { self.truth.penalty } else { 1.0 } * drifted, scattered)
    }
}

impl Server for KnownDevice {
    fn name(&self) -> &str {
        "the device of a given truth"
    }

    /// It counts nothing.
    fn tell(&self, _: &dyn Recorder, _: Nanos) {}

    /// It takes any IO.
    fn refusal(&self, _: &Io) -> Option<DeviceError> {
        None
    }

    fn serve(&mut self, at_ns: u64, io: &Io) -> u64 {
        let free = at_ns.max(self.clock_ns);
        let start = self.stall.map_or(free, |stall| stall.begin(free));
        let done = match io.mode {
            Mode::Read => {
                let base = self.read_ns(start, io);
                start + self.noisy(start, base, io.size)
            }
            Mode::Write => {
                let (base, scattered) = self.write_ns(start, io);
                let done = start + self.noisy(start, base, io.size);
                if scattered {
                    self.written_at = done;
                }
                if let Some(lasting) = self.truth.lasting_ns.filter(|_| base >= self.truth.expensive_ns) {
                    self.slow_until = done + lasting as u64;
                }
                done
            }
            Mode::Flush | Mode::Trim => start + 1,
        };
        self.clock_ns = done;
        done
    }
}

impl Device for KnownDevice {
    fn geometry(&self) -> Geometry {
        Geometry { capacity: self.truth.capacity, sector: Bytes(512) }
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        if let Some(weather) = &mut self.weather {
            weather.next_run();
        }
        // Memory for all that is remembered, which a clone has lost.
        self.ends.reserve(STREAMS - self.ends.len());
        self.slots.reserve(SLOTS - self.slots.len());
        interleave(self, self.clock_ns, streams, recorder, limits)
    }

    fn idle(&mut self, pause: Nanos, _: &Stop) {
        self.clock_ns = self.clock_ns.saturating_add(pause.0).min(END_NS);
    }

    fn now(&self) -> Nanos {
        Nanos(self.clock_ns)
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::{Arrival, KeepAll};

    fn truth() -> Truth {
        Truth {
            capacity: Bytes(1 << 30),
            sr_ns: 1e5,
            rr_ns: 2e5,
            sw_ns: 1e5,
            expensive_ns: 3e6,
            expensive_share: 0.25,
            period_ios: Some(8.0),
            jitter: 0.0,
            start_up_ios: Some(40),
            refill_ns: 1e9,
            lasting_ns: Some(5e7),
            lasting_factor: 2.0,
            area_bytes: Some(8 << 20),
            partitions: 4,
            unit_bytes: Some(4096),
            penalty: 1.5,
            noise: 0.0,
            outliers: 0.0,
            outlier_factor: 1.0,
            drift: 0.0,
        }
    }

    fn run(device: &mut KnownDevice, mode: Mode, offsets: impl Iterator<Item = u64>) -> Vec<u64> {
        let io = |offset| Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(offset),
            size: 32768,
            mode,
            pattern: 0,
        };
        let ios: Vec<Io> = offsets.map(io).collect();
        let (keep, stop) = (KeepAll::new(4096), Stop::new());
        let limits = RunLimits { time: None, stop: &stop, sequence: None };
        device.run(vec![Box::new(ios.into_iter())], &keep, limits).unwrap();
        keep.records().iter().map(|r| r.response().0).collect()
    }

    fn scattered(n: u64, area: u64) -> impl Iterator<Item = u64> {
        let mut rng = Rng::new(1);
        (0..n).map(move |_| rng.below(area / 32768) * 32768)
    }

    #[test]
    fn a_start_up_then_cycles_and_slow_reads_after_them() {
        let mut device = KnownDevice::new(truth(), 1);
        let times = run(&mut device, Mode::Write, scattered(400, 1 << 30));
        let first = times.iter().position(|t| *t == 3_000_000).unwrap();
        assert!((40..48).contains(&first), "{first}");
        let expensive = times[first..].iter().filter(|t| **t == 3_000_000).count() as f64;
        assert!((expensive / (400 - first) as f64 - 0.25).abs() < 0.03, "{expensive}");
        let reads = run(&mut device, Mode::Read, (0..1000).map(|i| i * 32768));
        let slow = reads.iter().filter(|t| **t == 200_000).count();
        assert!((240..=251).contains(&slow), "{slow}");
        device.idle(Nanos::from_secs(1), &Stop::new());
        let again = run(&mut device, Mode::Write, scattered(100, 1 << 30));
        assert_eq!(again.iter().take(40).filter(|t| **t > 100_000).count(), 0);
    }

    #[test]
    fn area_streams_and_alignment_are_as_told() {
        let mean = |times: Vec<u64>| times.iter().sum::<u64>() as f64 / times.len() as f64;
        let truth = Truth { start_up_ios: None, ..truth() };
        let of = |offsets: &mut dyn Iterator<Item = u64>| {
            mean(run(&mut KnownDevice::new(truth, 1), Mode::Write, offsets))
        };
        for area in [256u64 << 10, 1 << 20, 8 << 20] {
            assert!(of(&mut scattered(4000, area)) < 1.5e5, "{area}");
        }
        assert!(of(&mut scattered(4000, 16 << 20)) > 3e5);
        let streams = |n: u64| (0..4000u64).map(move |i| (i % n) * (64 << 20) + i / n * 32768);
        assert!(of(&mut streams(4)) < 1.1e5);
        assert!(of(&mut streams(5)) > 6e5);
        assert!(of(&mut (0..4000u64).map(|i| i * 32768 + 2048)) > 1.4e5);
        assert!(of(&mut (0..4000u64).map(|i| i * 32768 + 4096)) < 1.1e5);
    }
}
