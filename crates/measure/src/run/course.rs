//! How a device's counters came about during a run in virtual time.
//!
//! Method: a reading at the first completion at or after the end of each interval of
//! the run's own time. What it costs to keep is bounded: see [`Course::take`].

use serde::{Deserialize, Serialize};
use uflip_device::{Counters, Nanos, Reading};

/// Readings of a device's counters at intervals of a run's virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The interval.
    pub every: Nanos,
    /// At the first completion at or after each interval's end.
    pub readings: Vec<Counted>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Since the run began.
    pub at: Nanos,
    /// Counted since the run began.
    pub counters: Counters,
}

/// The interval of a [`Course`] to begin with.
pub const COURSE_EVERY: Nanos = Nanos::from_secs(1);
/// Readings of a [`Course`] at most.
const COURSE_READINGS: usize = 64;

impl Course {
    /// Without a reading.
    pub fn new() -> Course {
        Course { every: COURSE_EVERY, readings: Vec::new() }
    }

    /// Takes one, where the interval since the last one is over; `before` is what was
    /// counted when the run began. Each time there are 64 of them every other is let go
    /// and the interval is twice as long from then on.
    pub fn take(&mut self, reading: Reading, before: &Counters) {
        let interval = |at: Nanos| at.0 / self.every.0;
        let last = self.readings.last().map_or(0, |last| interval(last.at));
        if interval(reading.at) <= last {
            return;
        }
        self.readings.push(Counted { at: reading.at, counters: reading.counters.since(before) });
        if self.readings.len() == COURSE_READINGS {
            self.every = self.every + self.every;
            let every = self.every.0;
            self.readings.retain({
                let mut last = 0;
                move |reading| std::mem::replace(&mut last, reading.at.0 / every) < reading.at.0 / every
            });
        }
    }
}

impl Default for Course {
    fn default() -> Course {
        Course::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::Bytes;

    /// After readings each half second up to `seconds`, of a byte written each.
    fn course(seconds: u64) -> Course {
        let written = |bytes| Counters { host_written: Some(Bytes(bytes)), ..Counters::default() };
        let mut course = Course::new();
        for half in 1..=2 * seconds {
            let reading = Reading { at: Nanos(half * 500_000_000), counters: written(half + 7) };
            course.take(reading, &written(7));
        }
        course
    }

    fn told(course: &Course) -> Vec<(u64, u64)> {
        let one =
            |reading: &Counted| (reading.at.0 / 1_000_000_000, reading.counters.host_written.unwrap().0);
        course.readings.iter().map(one).collect()
    }

    #[test]
    fn there_is_one_reading_an_interval() {
        let short = course(3);
        assert_eq!((short.every, told(&short)), (Nanos::from_secs(1), vec![(1, 2), (2, 4), (3, 6)]));
        assert!(course(0).readings.is_empty());
    }

    #[test]
    fn a_long_run_keeps_every_other_and_goes_on_in_intervals_twice_as_long() {
        let full = course(63);
        assert_eq!((full.every, full.readings.len()), (Nanos::from_secs(1), 63));
        let long = course(67);
        assert_eq!(long.every, Nanos::from_secs(2));
        let expected: Vec<(u64, u64)> = (1..=33).map(|i| (2 * i, 4 * i)).collect();
        assert_eq!(told(&long), expected);
        let hours = course(36_000);
        assert!(hours.readings.len() < 64 && hours.every == Nanos::from_secs(1024), "{}", hours.every);
    }
}
