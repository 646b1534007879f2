//! Response times by rule: what real devices do that a clean model leaves out.
//!
//! Method: a write that goes on where one of the last streams ended takes the cheap time.
//! Any other is cheap in the stretches that were last written out of order (how many, and
//! how long each is, is the device's), and else takes its turn by [`TurnRule`]. On top of it:
//! a start-up that may be a ramp or shorter than a cycle, a cache that writes fall out of
//! ([`Cliff`]), reads slowed by what writes left behind and less and less so, several
//! levels of alignment, and a drift that is no line.
//!
//! Units: nanoseconds, bytes, IOs. Limits: one IO at a time.

use std::collections::VecDeque;
use uflip_device::rng::Rng;
use uflip_device::{Bytes, Io, Mode, Nanos};

/// The size that the times are of.
const SIZE: f64 = 32768.0;
/// Share of them that an IO of no size would take.
const LATENCY: f64 = 0.3;
/// Streams whose ends are remembered at most.
const STREAMS: usize = 512;

/// When writes out of order are expensive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TurnRule {
    /// All cost the same.
    Even,
    /// A share of them, at random.
    Chance {
        /// The share.
        share: f64,
    },
    /// Some at the end of each cycle, whose length wanders.
    Cycle {
        /// Writes in a cycle, on average.
        ios: f64,
        /// The share of expensive ones.
        share: f64,
        /// Standard deviation of a step of the length's logarithm, from cycle to cycle;
        /// it is held within a factor 1.5 of `ios`.
        wander: f64,
    },
}

/// Writes after a rest cost less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuledStartUp {
    /// Writes until the full cost.
    pub ios: u64,
    /// The cost rises evenly over these writes; else at their end.
    pub ramp: bool,
    /// The rest that brings all of it back.
    pub refill_ns: f64,
}

/// Writes are fast until a cache is full; rest empties it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    /// Its size.
    pub bytes: f64,
    /// How many times as long writes take beyond it.
    pub factor: f64,
    /// What rest gives back.
    pub bytes_a_second: f64,
}

/// How writes become more expensive as they go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteDrift {
    /// They do not.
    None,
    /// All at once.
    Step {
        /// After so many writes.
        at: f64,
        /// So many times.
        factor: f64,
    },
    /// Fast at first and then less and less.
    Saturating {
        /// Writes after which 63 % of it is there.
        over: f64,
        /// In the end.
        factor: f64,
    },
    /// Up and down again.
    Wave {
        /// Writes from one top to the next.
        over: f64,
        /// At the top.
        factor: f64,
    },
}

impl WriteDrift {
    fn after(self, writes: f64) -> f64 {
        match self {
            WriteDrift::None => 1.0,
            WriteDrift::Step { at, factor } => {
                if writes >= at {
                    factor
                } else {
                    1.0
                }
            }
            WriteDrift::Saturating { over, factor } => 1.0 + (factor - 1.0) * (1.0 - (-writes / over).exp()),
            WriteDrift::Wave { over, factor } => {
                1.0 + (factor - 1.0) * 0.5 * (1.0 - (std::f64::consts::TAU * writes / over).cos())
            }
        }
    }
}

/// What is so of a device by rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruled {
    /// Capacity.
    pub capacity: Bytes,
    /// A sequential read of 32 KiB.
    pub sr_ns: f64,
    /// A random read.
    pub rr_ns: f64,
    /// A cheap write.
    pub sw_ns: f64,
    /// Writes out of order cost so many times a cheap one, on average.
    pub ratio: f64,
    /// Which of them are the expensive ones.
    pub turns: TurnRule,
    /// See [`RuledStartUp`].
    pub start_up: Option<RuledStartUp>,
    /// See [`Cliff`].
    pub cliff: Option<Cliff>,
    /// For how long reads are slow after an expensive write, and how many times as long
    /// they take at first.
    pub lasting: Option<(f64, f64)>,
    /// Stretches last written out of order that are cheap, and the bytes of each.
    pub stretches: Option<(usize, u64)>,
    /// Streams of writes that are cheap at once.
    pub streams: usize,
    /// Units, ascending, and how many times as long a write takes that is aligned to all
    /// before but not to it; falling.
    pub units: Vec<(u64, f64)>,
    /// See [`WriteDrift`].
    pub drift: WriteDrift,
}

impl Ruled {
    /// The share of expensive ones among writes out of order.
    fn share(&self) -> f64 {
        match self.turns {
            TurnRule::Even => 1.0,
            TurnRule::Chance { share } | TurnRule::Cycle { share, .. } => share,
        }
    }

    /// An expensive write, so that the mean comes out.
    fn expensive_ns(&self) -> f64 {
        self.sw_ns * (1.0 + (self.ratio - 1.0) / self.share())
    }

    /// How many times as long a write at `offset` takes for its alignment.
    fn misaligned(&self, offset: u64) -> f64 {
        self.units.iter().find(|(unit, _)| !offset.is_multiple_of(*unit)).map_or(1.0, |(_, factor)| *factor)
    }
}

/// A device by rule, as it is.
#[derive(Clone, Debug)]
pub(super) struct RuledState {
    truth: Ruled,
    rng: Rng,
    pub(super) clock_ns: u64,
    /// Where streams ended, the latest last.
    ends: VecDeque<u64>,
    read_end: u64,
    stretches: VecDeque<u64>,
    /// Place in the cycle and its length.
    cycle: (f64, f64),
    /// Writes since the rest, of the start-up's.
    warm: f64,
    /// Bytes in the cache.
    cached: f64,
    busy_until_ns: u64,
    slow: (u64, f64),
    writes: u64,
}

impl RuledState {
    pub(super) fn new(truth: Ruled, seed: u64) -> RuledState {
        let length = if let TurnRule::Cycle { ios, .. } = truth.turns { ios } else { 1.0 };
        RuledState {
            truth,
            rng: Rng::new(seed),
            clock_ns: 0,
            ends: VecDeque::with_capacity(STREAMS),
            read_end: 0,
            stretches: VecDeque::new(),
            cycle: (0.0, length),
            warm: 0.0,
            cached: 0.0,
            busy_until_ns: 0,
            slow: (0, 1.0),
            writes: 0,
        }
    }

    pub(super) fn drifted(&self) -> f64 {
        self.truth.drift.after(self.writes as f64)
    }

    pub(super) fn idle(&mut self, pause: Nanos) {
        self.clock_ns = self.clock_ns.saturating_add(pause.0);
    }

    /// Where it goes on a stream: how many others were written since.
    fn continues(&mut self, offset: u64, end: u64) -> Option<usize> {
        let found = self.ends.iter().rposition(|e| *e == offset);
        let age = found.map(|at| self.ends.len() - 1 - at);
        match found {
            Some(at) => drop(self.ends.remove(at)),
            None if self.ends.len() == STREAMS => drop(self.ends.pop_front()),
            None => {}
        }
        self.ends.push_back(end);
        age
    }

    /// Whether the stretch of `offset` is among the latest, which it now is.
    fn nearby(&mut self, offset: u64) -> bool {
        let Some((most, bytes)) = self.truth.stretches else { return false };
        let stretch = offset / bytes;
        let found = self.stretches.iter().position(|s| *s == stretch);
        if let Some(at) = found {
            self.stretches.remove(at);
        } else if self.stretches.len() >= most {
            self.stretches.pop_front();
        }
        self.stretches.push_back(stretch);
        found.is_some()
    }

    /// Whether the next write out of order is an expensive one.
    fn turn(&mut self) -> bool {
        match self.truth.turns {
            TurnRule::Even => true,
            TurnRule::Chance { share } => self.rng.unit() < share,
            TurnRule::Cycle { ios, share, wander } => {
                let (place, length) = self.cycle;
                self.cycle.0 += 1.0;
                if self.cycle.0 >= length {
                    let step = wander * (2.0 * self.rng.unit() - 1.0) * 3f64.sqrt();
                    self.cycle = (place + 1.0 - length, (length * step.exp()).clamp(ios / 1.5, ios * 1.5));
                }
                place >= length * (1.0 - share) - 0.5
            }
        }
    }

    /// The share of its cost that the start-up lets a write have, from 0 to 1.
    fn started(&mut self, at_ns: u64) -> f64 {
        let Some(s) = self.truth.start_up else { return 1.0 };
        let rest = at_ns.saturating_sub(self.busy_until_ns) as f64 / s.refill_ns;
        // Short breaks are part of a run.
        if rest >= 0.01 {
            self.warm = (self.warm - s.ios as f64 * rest).max(0.0);
        }
        let share = (self.warm / s.ios as f64).min(1.0);
        self.warm = (self.warm + 1.0).min(s.ios as f64);
        if s.ramp || share >= 1.0 { share } else { 0.0 }
    }

    /// How many times as long a write takes for the cache being full.
    fn cliff(&mut self, at_ns: u64, size: u32) -> f64 {
        let Some(c) = self.truth.cliff else { return 1.0 };
        let rest_s = at_ns.saturating_sub(self.busy_until_ns) as f64 / 1e9;
        self.cached = (self.cached - rest_s * c.bytes_a_second).max(0.0) + f64::from(size);
        if self.cached <= c.bytes {
            return 1.0;
        }
        self.cached = c.bytes;
        c.factor
    }

    fn write_ns(&mut self, at_ns: u64, io: &Io) -> f64 {
        let (offset, end) = (io.offset.0, io.offset.0 + u64::from(io.size));
        let factor = self.cliff(at_ns, io.size) * self.truth.misaligned(offset) * self.drifted();
        self.writes += 1;
        let in_order = self.continues(offset, end).is_some_and(|age| age < self.truth.streams);
        let (cheap, expensive) = (self.truth.sw_ns, self.truth.expensive_ns());
        if in_order {
            return cheap * factor;
        }
        let started = self.started(at_ns);
        if self.nearby(offset) || !self.turn() || started == 0.0 {
            return cheap * factor;
        }
        if let Some((ns, times)) = self.truth.lasting {
            self.slow = (at_ns + (expensive + ns) as u64, times);
        }
        (cheap + started * (expensive - cheap)) * factor
    }

    fn read_ns(&mut self, at_ns: u64, io: &Io) -> f64 {
        let in_order = io.offset.0 == self.read_end;
        self.read_end = io.offset.0 + u64::from(io.size);
        let base = if in_order { self.truth.sr_ns } else { self.truth.rr_ns };
        // The effect fades evenly.
        let (until, times) = self.slow;
        let left = until.saturating_sub(at_ns) as f64;
        let whole = self.truth.lasting.map_or(1.0, |(ns, _)| ns);
        base * (1.0 + (times - 1.0) * (left / whole).min(1.0))
    }

    pub(super) fn serve(&mut self, at_ns: u64, io: &Io) -> u64 {
        let start = at_ns.max(self.clock_ns);
        let ns = match io.mode {
            Mode::Read => self.read_ns(start, io),
            Mode::Write => self.write_ns(start, io),
            Mode::Flush | Mode::Trim => 1.0,
        };
        let sized = ns * (LATENCY + (1.0 - LATENCY) * f64::from(io.size) / SIZE);
        let done = start + sized.max(1.0) as u64;
        if io.mode == Mode::Write {
            self.busy_until_ns = done;
        }
        self.clock_ns = done;
        done
    }
}
