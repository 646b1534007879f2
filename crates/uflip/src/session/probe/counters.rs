//! What a device counts of its own work: asked before and after a run, outside
//! the timed loop, and in virtual time also at intervals during it. Simulated devices
//! answer with what they really did.

use super::{Probe, Sampler};
use std::sync::{Arc, Mutex, PoisonError};
use uflip_device::{Counters, RunEnd};
use uflip_measure::run::{COURSE_EVERY, Course, Probes};

/// Asks the device.
#[derive(Default)]
pub struct OwnCounters {
    before: Option<Counters>,
    course: Arc<Mutex<Course>>,
}

impl Probe for OwnCounters {
    fn before(&mut self, counters: Option<Counters>) {
        self.before = counters;
        self.course = Arc::default();
    }

    fn sampler(&self, is_virtual: bool) -> Option<Sampler> {
        let (before, course) = (self.before.filter(|_| is_virtual)?, self.course.clone());
        let sample = move |reading| {
            let mut course = course.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reading) = reading {
                course.take(reading, &before);
            }
        };
        Some(Sampler { every: COURSE_EVERY, sample: Box::new(sample) })
    }

    fn after(&mut self, _: u32, _: &RunEnd, after: Option<Counters>, said: &mut Probes) {
        said.counters = after.zip(self.before).map(|(after, before)| after.since(&before));
        let course = std::mem::take(&mut *self.course.lock().unwrap_or_else(PoisonError::into_inner));
        said.course = (!course.readings.is_empty()).then_some(course);
    }
}
