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

/// Adds up energy and keeps samples where asked.
#[derive(Clone, Debug)]
pub struct Meter {
    costs: describe::Energy,
    interval_ns: u64,
    next_ns: u64,
    samples: Vec<Sample>,
}

impl Meter {
    /// A meter with a description's costs that keeps no samples.
    pub fn new(costs: &describe::Energy) -> Meter {
        Meter { costs: costs.clone(), interval_ns: 0, next_ns: u64::MAX, samples: Vec::new() }
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

    /// Keeps samples every `interval_ns` after `now_ns`.
    pub fn sample_every(&mut self, now_ns: u64, interval_ns: u64) {
        self.interval_ns = interval_ns;
        self.next_ns = now_ns + interval_ns;
    }

    /// True where a sample is due.
    #[inline]
    pub fn due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Notes the energy at `now_ns`; the next sample is due one interval later.
    pub fn note(&mut self, now_ns: u64, busy_ns: u64, ops: &OpCounts, link_bytes: u64) {
        let joules = self.joules(now_ns, busy_ns, ops, link_bytes);
        self.samples.push(Sample { at: Nanos(now_ns), joules });
        self.next_ns = now_ns + self.interval_ns;
    }

    /// Hands the samples over.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }
}
