//! Energy: joules of each flash operation and byte on the link, and power at
//! rest and in service, summed over virtual time.
//!
//! Source: the SIGMOD 2010 demonstration measured the current through a shunt;
//! a simulated device gives the cumulative energy that such a meter integrates.

use crate::describe;
use crate::nand::OpCounts;
use uflip_device::Nanos;

/// The cumulative energy at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// On the device's clock.
    pub at: Nanos,
    /// Since the device was opened.
    pub joules: f64,
}

/// Mean power between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// End of the interval, on the device's clock.
    pub until: Nanos,
    /// In watts.
    pub watts: f64,
}

/// The power trace that cumulative samples stand for: the mean power of each
/// interval between two of them.
pub fn power(samples: &[Sample]) -> Vec<Power> {
    let between = samples.windows(2).map(|pair| {
        let seconds = (pair[1].at.0 - pair[0].at.0) as f64 / 1e9;
        Power { until: pair[1].at, watts: (pair[1].joules - pair[0].joules) / seconds }
    });
    between.collect()
}

/// Adds up energy and keeps samples where asked.
#[derive(Clone, Debug)]
pub struct Meter {
    costs: describe::Energy,
    interval_ns: u64,
    next_ns: u64,
    /// What was noted last, from which samples are interpolated.
    last: Sample,
    samples: Vec<Sample>,
}

impl Meter {
    /// A meter with a description's costs that keeps no samples.
    pub fn new(costs: &describe::Energy) -> Meter {
        Meter {
            costs: costs.clone(),
            interval_ns: 0,
            next_ns: u64::MAX,
            last: Sample { at: Nanos::ZERO, joules: 0.0 },
            samples: Vec::new(),
        }
    }

    /// True where the description says what energy anything takes.
    pub fn is_described(&self) -> bool {
        self.costs != describe::Energy::default()
    }

    /// Cumulative energy in joules.
    pub fn joules(&self, now_ns: u64, busy_ns: u64, ops: &OpCounts, link_bytes: u64) -> f64 {
        let c = &self.costs;
        let flash_uj = ops.reads as f64 * c.read_uj
            + ops.programs as f64 * c.program_uj
            + ops.erases as f64 * c.erase_uj;
        let link = link_bytes as f64 * c.link_nj_per_byte * 1e-9;
        let power = (now_ns as f64 * c.idle_mw + busy_ns as f64 * c.active_mw) * 1e-12;
        flash_uj * 1e-6 + link + power
    }

    /// Keeps samples every `interval_ns` from now on, the first at once; `now` is
    /// the cumulative energy at this moment.
    pub fn sample_every(&mut self, now: Sample, interval_ns: u64) {
        self.interval_ns = interval_ns.max(1);
        self.next_ns = now.at.0 + self.interval_ns;
        self.last = now;
        self.samples.push(now);
    }

    /// True where samples are kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.interval_ns > 0
    }

    /// Notes the cumulative energy at a moment and fills in the samples since
    /// what was noted before: power is taken as constant in between. An earlier
    /// moment (of IOs served at once) is left out.
    pub fn note(&mut self, now: Sample) {
        let from = self.last;
        if now.at <= from.at {
            return;
        }
        let per_ns = (now.joules - from.joules) / (now.at.0 - from.at.0) as f64;
        while self.next_ns <= now.at.0 {
            let joules = from.joules + per_ns * (self.next_ns - from.at.0) as f64;
            self.samples.push(Sample { at: Nanos(self.next_ns), joules });
            self.next_ns = self.next_ns.saturating_add(self.interval_ns);
        }
        self.last = now;
    }

    /// Hands the samples over.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }
}
