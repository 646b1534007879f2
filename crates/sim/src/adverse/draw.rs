//! What is drawn: each kind of device puts one thing at its worst, and has some of the
//! others beside it.
//!
//! Method: device number n of a seed is of kind n modulo the number of kinds, so that all
//! come equally often. Random writes cost 1 to 6 times sequential ones in half of the
//! devices by rule (evenly in the logarithm), up to 40 times in the others.

use super::flash::{self, FlashKind};
use super::ruled::{Cliff, Ruled, RuledStartUp, TurnRule, WriteDrift};
use super::{AdverseDevice, Neighbour, Stalls, Tail, Upsets};
use crate::{DescribeError, SimDevice};
use uflip_device::Bytes;
use uflip_device::rng::{Rng, derive_seed};

/// What a device puts at its worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdverseKind {
    /// Page mapping.
    Page,
    /// Page mapping whose map is cached in part.
    Dftl,
    /// Log blocks of one superblock each.
    Bast,
    /// A log shared by all superblocks.
    Fast,
    /// Block mapping with replacement blocks.
    Block,
    /// Page mapping behind a one-bit region.
    Slc,
    /// Random writes cost 1 to 6 times sequential ones.
    Gentle,
    /// A start-up whose cost rises evenly.
    Ramp,
    /// A start-up shorter than two cycles.
    ShortStartUp,
    /// A period that wanders.
    Wandering,
    /// A period of thousands of IOs.
    LongPeriod,
    /// Two or three levels of alignment.
    Levels,
    /// A cache that writes fall out of, and that rest empties.
    Cliff,
    /// A drift that is no line.
    Drifting,
    /// Answers of a heavy tail.
    HeavyTail,
    /// Rare stalls of seconds.
    Stalling,
    /// Shifts between runs.
    Shifting,
    /// A neighbour that comes and goes.
    Neighbour,
}

impl AdverseKind {
    /// All, in the order in which they are drawn.
    pub const ALL: [AdverseKind; 18] = [
        AdverseKind::Page,
        AdverseKind::Dftl,
        AdverseKind::Bast,
        AdverseKind::Fast,
        AdverseKind::Block,
        AdverseKind::Slc,
        AdverseKind::Gentle,
        AdverseKind::Ramp,
        AdverseKind::ShortStartUp,
        AdverseKind::Wandering,
        AdverseKind::LongPeriod,
        AdverseKind::Levels,
        AdverseKind::Cliff,
        AdverseKind::Drifting,
        AdverseKind::HeavyTail,
        AdverseKind::Stalling,
        AdverseKind::Shifting,
        AdverseKind::Neighbour,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            AdverseKind::Page => "page",
            AdverseKind::Dftl => "dftl",
            AdverseKind::Bast => "bast",
            AdverseKind::Fast => "fast",
            AdverseKind::Block => "block",
            AdverseKind::Slc => "slc",
            AdverseKind::Gentle => "gentle",
            AdverseKind::Ramp => "ramp",
            AdverseKind::ShortStartUp => "short start-up",
            AdverseKind::Wandering => "wandering",
            AdverseKind::LongPeriod => "long period",
            AdverseKind::Levels => "levels",
            AdverseKind::Cliff => "cliff",
            AdverseKind::Drifting => "drifting",
            AdverseKind::HeavyTail => "heavy tail",
            AdverseKind::Stalling => "stalling",
            AdverseKind::Shifting => "shifting",
            AdverseKind::Neighbour => "neighbour",
        }
    }

    const fn flash(self) -> Option<FlashKind> {
        match self {
            AdverseKind::Page => Some(FlashKind::Page),
            AdverseKind::Dftl => Some(FlashKind::Dftl),
            AdverseKind::Bast => Some(FlashKind::Bast),
            AdverseKind::Fast => Some(FlashKind::Fast),
            AdverseKind::Block => Some(FlashKind::Block),
            AdverseKind::Slc => Some(FlashKind::Slc),
            _ => None,
        }
    }
}

/// A device as it was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// What it puts at its worst.
    pub kind: AdverseKind,
    /// What does the IO.
    pub body: DrawnBody,
    /// What disturbs it.
    pub upsets: Upsets,
    /// Of its own randomness.
    pub seed: u64,
}

/// What does the IO.
#[derive(Clone, Debug, PartialEq)]
pub enum DrawnBody {
    /// By rule.
    Ruled(Box<Ruled>),
    /// The text of a device file, which can be built.
    Flash(String),
}

impl Drawn {
    /// The device, rested or erased.
    ///
    /// # Errors
    /// Where its device file could not be built, which [`draw`] has made sure of.
    pub fn device(&self) -> Result<AdverseDevice, DescribeError> {
        Ok(match &self.body {
            DrawnBody::Ruled(truth) => AdverseDevice::ruled((**truth).clone(), self.upsets, self.seed),
            DrawnBody::Flash(text) => {
                let device = SimDevice::new(&crate::check(text)?, self.seed)?;
                AdverseDevice::flash(device, self.upsets, self.seed)
            }
        })
    }
}

const MIB: f64 = 1048576.0;

pub(super) fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

pub(super) fn chance(rng: &mut Rng, share: f64) -> bool {
    rng.unit() < share
}

pub(super) fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// Device `number` of `seed`.
pub fn draw(seed: u64, number: u64) -> Drawn {
    let seed = derive_seed(seed, number);
    let rng = &mut Rng::new(seed);
    let kind = AdverseKind::ALL[(number % AdverseKind::ALL.len() as u64) as usize];
    let upsets = upsets(kind, rng);
    let body = match kind.flash() {
        Some(flash) => DrawnBody::Flash(flash::draw(flash, rng).1),
        None => DrawnBody::Ruled(Box::new(ruled(kind, rng))),
    };
    Drawn { kind, body, upsets, seed: derive_seed(seed, 1) }
}

fn upsets(kind: AdverseKind, rng: &mut Rng) -> Upsets {
    let mut all = Upsets { noise: log_uniform(rng, 0.01, 0.25), ..Upsets::default() };
    let worst = |k| kind == k;
    if worst(AdverseKind::Shifting) || chance(rng, 0.1) {
        all.shift = log_uniform(rng, 0.02, 0.25);
    }
    if worst(AdverseKind::HeavyTail) || chance(rng, 0.1) {
        let (share, exponent) = (log_uniform(rng, 0.001, 0.02), 1.5 + rng.unit());
        all.tail = Some(Tail { share, exponent });
    }
    if worst(AdverseKind::Stalling) {
        let (every_ios, length_ns) = (log_uniform(rng, 5e3, 2e5), log_uniform(rng, 0.5e9, 4e9));
        all.stalls = Some(Stalls { every_ios, length_ns });
    }
    if worst(AdverseKind::Neighbour) {
        let (stays_ns, factor) = (log_uniform(rng, 0.2e9, 20e9), log_uniform(rng, 1.2, 3.0));
        let away_ns = stays_ns * log_uniform(rng, 1.0, 10.0);
        all.neighbour = Some(Neighbour { stays_ns, away_ns, factor });
    }
    all
}

fn turns(kind: AdverseKind, ratio: f64, rng: &mut Rng) -> TurnRule {
    // An expensive write costs at most some hundred times a cheap one.
    let least = ((ratio - 1.0) / 300.0).max(0.02);
    let share = log_uniform(rng, least, 0.6);
    let cycle = |ios: f64, wander: f64| {
        let expensive = (share * ios).round().max(1.0);
        TurnRule::Cycle { ios: ios.round(), share: expensive / ios.round(), wander }
    };
    let ordinary = log_uniform(rng, (1.5 / share).max(4.0), 300.0);
    match kind {
        AdverseKind::Wandering => cycle(ordinary, 0.05 + 0.2 * rng.unit()),
        AdverseKind::LongPeriod => cycle(log_uniform(rng, 600.0, 8000.0), 0.0),
        AdverseKind::ShortStartUp => cycle(log_uniform(rng, 30.0, 300.0), 0.02),
        _ => match rng.below(3) {
            0 => TurnRule::Even,
            1 => TurnRule::Chance { share },
            _ => cycle(ordinary, 0.03 * rng.unit()),
        },
    }
}

fn start_up(kind: AdverseKind, turns: TurnRule, rng: &mut Rng) -> Option<RuledStartUp> {
    let cycle = if let TurnRule::Cycle { ios, .. } = turns { ios } else { 20.0 };
    let refill_ns = log_uniform(rng, 0.2e9, 5e9);
    let ios = |ios: f64| ios.round() as u64;
    match kind {
        AdverseKind::Ramp => {
            let least = (3.0 * cycle).max(40.0);
            Some(RuledStartUp { ios: ios(log_uniform(rng, least, 2000.0)), ramp: true, refill_ns })
        }
        AdverseKind::ShortStartUp => {
            let least = (0.3 * cycle).max(8.0);
            Some(RuledStartUp { ios: ios(log_uniform(rng, least, 2.0 * cycle)), ramp: false, refill_ns })
        }
        AdverseKind::LongPeriod => None,
        _ => chance(rng, 0.3).then(|| {
            let least = (2.0 * cycle).max(20.0);
            RuledStartUp { ios: ios(log_uniform(rng, least, 1.5 * least + 300.0)), ramp: false, refill_ns }
        }),
    }
}

fn units(kind: AdverseKind, rng: &mut Rng) -> Vec<(u64, f64)> {
    let how_many = match kind {
        AdverseKind::Levels => 2 + rng.below(2),
        _ => u64::from(chance(rng, 0.4)),
    };
    let mut units = Vec::new();
    let mut unit = 1024u64 << rng.below(3);
    let mut penalty = log_uniform(rng, 1.3, 4.0);
    for _ in 0..how_many {
        units.push((unit, penalty));
        unit <<= 1 + rng.below(2);
        penalty = 1.0 + (penalty - 1.0) * (0.15 + 0.7 * rng.unit());
    }
    units.retain(|(unit, _)| *unit <= 32 << 10);
    units
}

fn drift(kind: AdverseKind, rng: &mut Rng) -> WriteDrift {
    if kind != AdverseKind::Drifting {
        return WriteDrift::None;
    }
    let (over, factor) = (log_uniform(rng, 2e4, 4e5), log_uniform(rng, 1.15, 2.5));
    match rng.below(3) {
        0 => WriteDrift::Step { at: over, factor },
        1 => WriteDrift::Saturating { over, factor },
        _ => WriteDrift::Wave { over, factor },
    }
}

fn ruled(kind: AdverseKind, rng: &mut Rng) -> Ruled {
    let gentle = kind == AdverseKind::Gentle || chance(rng, 0.5);
    let ratio = if gentle { log_uniform(rng, 1.0, 6.0) } else { log_uniform(rng, 6.0, 40.0) };
    let turns = turns(kind, ratio, rng);
    let start_up = start_up(kind, turns, rng);
    let sw_ns = log_uniform(rng, 30e3, 2e6);
    let sr_ns = sw_ns * log_uniform(rng, 0.3, 2.0);
    let area = log_uniform(rng, MIB, 64.0 * MIB);
    let stretches = chance(rng, 0.7).then(|| {
        let stretches = one_of(rng, &[4, 16, 64]);
        (stretches, ((area / stretches as f64) as u64).max(65536) / 32768 * 32768)
    });
    let cliff = (kind == AdverseKind::Cliff).then(|| Cliff {
        bytes: log_uniform(rng, 8.0 * MIB, 512.0 * MIB),
        factor: log_uniform(rng, 1.5, 10.0),
        bytes_a_second: log_uniform(rng, MIB, 64.0 * MIB),
    });
    let streams =
        if chance(rng, 0.2) { STREAMS_AT_WILL } else { log_uniform(rng, 1.0, 64.0).round() as usize };
    Ruled {
        capacity: Bytes(32 << 30),
        sr_ns,
        rr_ns: sr_ns * log_uniform(rng, 1.0, 5.0),
        sw_ns,
        ratio,
        turns,
        start_up,
        cliff,
        lasting: chance(rng, 0.3).then(|| {
            (log_uniform(rng, 0.05e9, (8_000.0 * sr_ns).clamp(0.06e9, 4e9)), log_uniform(rng, 1.4, 4.0))
        }),
        stretches,
        streams,
        units: units(kind, rng),
        drift: drift(kind, rng),
    }
}

/// More streams than any benchmark writes at once.
const STREAMS_AT_WILL: usize = 512;
