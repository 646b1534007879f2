//! Devices drawn to mislead a method: mechanics and rules that no detector was made
//! for, behind disturbances that no clean model has.
//!
//! Method: a body, [`Ruled`] (response times by rule) or a flash translation layer of a
//! random [`crate::Description`], does the IO in a time of its own. What disturbs it
//! ([`Upsets`]: noise, heavy tails, stalls, shifts between runs, a neighbour) lengthens
//! the answer outside of the body, whose clock stands still meanwhile: so
//! [`AdverseDevice::quiet`] is the same device in the same state without any of it, and
//! what a figure truly is can be measured there at length.
//!
//! Nothing here knows how anything is detected. Units: nanoseconds, bytes, IOs. Limits: a
//! neighbour slows all IOs alike, and takes nothing of the state.

pub mod draw;
mod flash;
pub mod ruled;

use crate::SimDevice;
use crate::interleave::{Server, interleave};
use ruled::{Ruled, RuledState};
use uflip_device::rng::{Rng, derive_seed};
use uflip_device::{
    Bytes, Device, DeviceError, Geometry, Io, Nanos, Recorder, RunEnd, RunLimits, Snapshot, Stop, Stream,
};

/// Disturbances from outside of the mechanics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Upsets {
    /// Standard deviation of the logarithm of response times.
    pub noise: f64,
    /// Answers of a heavy tail.
    pub tail: Option<Tail>,
    /// Stalls that come at random.
    pub stalls: Option<Stalls>,
    /// Standard deviation of the logarithm of what all IOs of a run have in common.
    pub shift: f64,
    /// Somebody else on the device, now and then.
    pub neighbour: Option<Neighbour>,
}

/// Some answers take as many times as long as a Pareto distribution says, 3 at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Share of the IOs.
    pub share: f64,
    /// The distribution's exponent: the variance is infinite up to 2.
    pub exponent: f64,
}

/// The device stands still now and then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// IOs between two of them, on average.
    pub every_ios: f64,
    /// How long each lasts.
    pub length_ns: f64,
}

/// IOs take longer while somebody else is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// How long it stays, on average.
    pub stays_ns: f64,
    /// How long it is away, on average.
    pub away_ns: f64,
    /// How many times as long IOs take meanwhile.
    pub factor: f64,
}

/// The least of a heavy tail's factors.
const TAIL_FROM: f64 = 3.0;

impl Upsets {
    /// The mean response time with these, from and to, where it is `quiet_ns` without:
    /// a range where it depends on luck (stalls, a neighbour).
    pub fn mean_ns(&self, quiet_ns: f64) -> [f64; 2] {
        let tail =
            self.tail.map_or(1.0, |t| 1.0 + t.share * (TAIL_FROM * t.exponent / (t.exponent - 1.0) - 1.0));
        let stalls = self.stalls.map_or(0.0, |s| s.length_ns / s.every_ios);
        let neighbour = self.neighbour.map_or(1.0, |n| n.factor);
        [quiet_ns * tail, quiet_ns * tail * neighbour + stalls]
    }
}

/// What does the IO.
#[derive(Clone, Debug)]
enum Body {
    Ruled(Box<RuledState>),
    Flash(Box<SimDevice>),
}

impl Body {
    fn serve(&mut self, at_ns: u64, io: &Io) -> u64 {
        match self {
            Body::Ruled(ruled) => ruled.serve(at_ns, io),
            Body::Flash(flash) => flash.serve(at_ns, io),
        }
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        match self {
            Body::Ruled(ruled) => ruled.idle(pause),
            Body::Flash(flash) => flash.idle(pause, stop),
        }
    }

    /// Its own clock.
    fn now_ns(&self) -> u64 {
        match self {
            Body::Ruled(ruled) => ruled.clock_ns,
            Body::Flash(flash) => flash.present().0,
        }
    }
}

/// A device drawn to mislead, in virtual time.
#[derive(Clone, Debug)]
pub struct AdverseDevice {
    geometry: Geometry,
    body: Body,
    kept: Option<Box<Body>>,
    upsets: Upsets,
    rng: Rng,
    clock_ns: u64,
    /// The body's time of the last submission: it never goes back.
    asked_ns: u64,
    /// What all IOs of this run have in common.
    run_factor: f64,
    /// Until when the neighbour stays, or is away.
    neighbour_there: bool,
    neighbour_until_ns: f64,
}

impl AdverseDevice {
    /// A rested device by rule.
    pub fn ruled(truth: Ruled, upsets: Upsets, seed: u64) -> AdverseDevice {
        let geometry = Geometry { capacity: truth.capacity, sector: Bytes(512) };
        AdverseDevice::of(
            geometry,
            Body::Ruled(Box::new(RuledState::new(truth, derive_seed(seed, 1)))),
            upsets,
            seed,
        )
    }

    /// An erased device of mechanics.
    pub fn flash(device: SimDevice, upsets: Upsets, seed: u64) -> AdverseDevice {
        AdverseDevice::of(device.geometry(), Body::Flash(Box::new(device)), upsets, seed)
    }

    fn of(geometry: Geometry, body: Body, upsets: Upsets, seed: u64) -> AdverseDevice {
        AdverseDevice {
            geometry,
            body,
            kept: None,
            upsets,
            rng: Rng::new(derive_seed(seed, 2)),
            clock_ns: 0,
            asked_ns: 0,
            run_factor: 1.0,
            neighbour_there: true,
            neighbour_until_ns: 0.0,
        }
    }

    /// The same device in the same state, which nothing disturbs.
    pub fn quiet(&self) -> AdverseDevice {
        AdverseDevice { upsets: Upsets::default(), kept: None, ..self.clone() }
    }

    /// How much more expensive writes have become since it was new; `None` of mechanics.
    pub fn drifted(&self) -> Option<f64> {
        match &self.body {
            Body::Ruled(ruled) => Some(ruled.drifted()),
            Body::Flash(_) => None,
        }
    }

    /// A draw from the normal distribution (G. E. P. Box and M. E. Muller, 1958).
    fn gauss(&mut self) -> f64 {
        let (u, v) = (1.0 - self.rng.unit(), self.rng.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Lognormal with mean 1.
    fn lognormal(&mut self, sigma: f64) -> f64 {
        if sigma > 0.0 { (sigma * self.gauss() - sigma * sigma / 2.0).exp() } else { 1.0 }
    }

    /// What a neighbour does to an IO at `at_ns`.
    fn neighbour(&mut self, at_ns: f64) -> f64 {
        let Some(n) = self.upsets.neighbour else { return 1.0 };
        while at_ns >= self.neighbour_until_ns {
            self.neighbour_there = !self.neighbour_there;
            let mean = if self.neighbour_there { n.stays_ns } else { n.away_ns };
            self.neighbour_until_ns += -mean * (1.0 - self.rng.unit()).ln();
        }
        if self.neighbour_there { n.factor } else { 1.0 }
    }

    /// `quiet_ns` with everything that disturbs it.
    fn upset(&mut self, at_ns: u64, quiet_ns: f64) -> f64 {
        let mut ns = quiet_ns * self.run_factor * self.lognormal(self.upsets.noise);
        ns *= self.neighbour(at_ns as f64);
        if let Some(tail) = self.upsets.tail
            && self.rng.unit() < tail.share
        {
            ns *= TAIL_FROM * (1.0 - self.rng.unit()).powf(-1.0 / tail.exponent);
        }
        if let Some(stalls) = self.upsets.stalls
            && self.rng.unit() < 1.0 / stalls.every_ios
        {
            ns += stalls.length_ns;
        }
        ns
    }
}

/// A device during a run, with what disturbances took of its time so far.
struct InRun<'a> {
    device: &'a mut AdverseDevice,
    lost_ns: i64,
}

impl Server for InRun<'_> {
    fn name(&self) -> &str {
        "the adverse device"
    }

    /// It takes any IO.
    fn refusal(&self, _: &Io) -> Option<DeviceError> {
        None
    }

    /// What disturbs an IO passes by outside of the body.
    fn serve(&mut self, at_ns: u64, io: &Io) -> u64 {
        let device = &mut *self.device;
        let own_ns = at_ns.saturating_add_signed(-self.lost_ns).max(device.asked_ns);
        device.asked_ns = own_ns;
        let quiet_ns = device.body.serve(own_ns, io) - own_ns;
        let ns = device.upset(at_ns, quiet_ns as f64).max(1.0) as u64;
        self.lost_ns += ns as i64 - quiet_ns as i64;
        device.clock_ns = device.clock_ns.max(at_ns + ns);
        at_ns + ns
    }
}

impl Device for AdverseDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        self.run_factor = self.lognormal(self.upsets.shift);
        let began = self.clock_ns;
        let lost_ns = began as i64 - self.body.now_ns() as i64;
        self.asked_ns = self.body.now_ns();
        interleave(&mut InRun { device: self, lost_ns }, began, streams, recorder, limits)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        self.clock_ns = self.clock_ns.saturating_add(pause.0);
        self.body.idle(pause, stop);
    }

    fn now(&self) -> Nanos {
        Nanos(self.clock_ns)
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn snapshot(&mut self, ask: Snapshot) -> bool {
        match (ask, &self.kept) {
            (Snapshot::Take, _) => self.kept = Some(Box::new(self.body.clone())),
            (Snapshot::Return, None) => return false,
            (Snapshot::Return, Some(kept)) => self.body = (**kept).clone(),
        }
        true
    }
}

#[cfg(test)]
mod tests;
