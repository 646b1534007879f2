//! What a device counts of its own work: asked before and after a run, outside
//! the timed loop. Simulated devices answer with what they really did.

use super::Probe;
use uflip_device::{Counters, RunEnd};
use uflip_measure::run::Probes;

/// Asks the device.
#[derive(Default)]
pub struct OwnCounters {
    before: Option<Counters>,
}

impl Probe for OwnCounters {
    fn before(&mut self, counters: Option<Counters>) {
        self.before = counters;
    }

    fn after(&mut self, _: u32, _: &RunEnd, after: Option<Counters>, said: &mut Probes) {
        said.counters = after.zip(self.before).map(|(after, before)| after.since(&before));
    }
}
