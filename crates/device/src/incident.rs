//! What befell a run from outside while it was measured, as far as it can be
//! told: any of these makes its response times other than the device's.
//!
//! How: the clocks and the processors' counters are read before and after a run
//! ([`Readings`]) and compared ([`befell`]); stops are seen as `watch` tells.
//! The clock that runs on while the machine sleeps, less the one that does not,
//! gives suspends. A virtual machine's processors that were taken away show as
//! steal time; the calendar's clock put forward at the same time tells of a
//! pause in which the other clocks stood still. The calendar's clock put forward
//! alone was set by somebody and is nothing: slewing moves all clocks alike.
//!
//! Source: Linux, `clock_gettime(2)`, `proc_stat(5)`.
//! Limits: a pause of the virtual machine in which all clocks stand still, or run
//! on without steal time, is not seen.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What befell one run; nothing, as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Incidents {
    /// The process stood still (SIGSTOP, a debugger) at least once, for up to so
    /// long at a time; `None` where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Nanos>,
    /// The machine was suspended for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Nanos>,
    /// The virtual machine was paused or its processors were taken away for so
    /// long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_paused: Option<Nanos>,
    /// The file lies on its disk otherwise than before the run, or has holes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub layout_changed: bool,
}

impl Incidents {
    /// True where nothing befell the run.
    pub fn is_none(&self) -> bool {
        *self == Incidents::default()
    }

    /// True where time was taken from the run, so that measuring it again may
    /// give what the device does.
    pub fn time_lost(&self) -> bool {
        !Incidents { layout_changed: false, ..*self }.is_none()
    }
}

impl fmt::Display for Incidents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        if let Some(time) = self.stopped {
            all.push(format!("the process stood still at least once, for up to {time}"));
        }
        if let Some(time) = self.suspended {
            all.push(format!("the machine was suspended for {time}"));
        }
        if let Some(time) = self.machine_paused {
            all.push(format!("the machine was paused or its processors were taken away for {time}"));
        }
        if self.layout_changed {
            all.push("the file's place on its disk changed".to_string());
        }
        f.write_str(&all.join("; "))
    }
}

/// Clocks and counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readings {
    /// `CLOCK_MONOTONIC`: stands still while the machine sleeps.
    pub monotonic: Nanos,
    /// `CLOCK_BOOTTIME`: the same, and runs on.
    pub boot: Nanos,
    /// `CLOCK_REALTIME`: the calendar's.
    pub real: Nanos,
    /// The clocks were read within so long of each other.
    pub apart: Nanos,
    /// Steal time of each processor since the start.
    pub steal: Vec<Nanos>,
}

/// A clock less another differs by more than their reading does from here on.
const CLOCKS_DIFFER: i128 = 1_000_000;
/// The calendar's clock is put forward by at least so much after a pause.
const STEP: i128 = 100_000_000;
/// Steal time beside such a step that makes it a pause: two ticks.
const SOME_STEAL: Nanos = Nanos::from_millis(20);
/// Steal time of one processor that matters by itself,
const MUCH_STEAL: Nanos = Nanos::from_millis(100);
/// and the share of the run that it must be: less is a busy host's everyday.
const MUCH_STEAL_SHARE: f64 = 0.10;

/// What befell the time between two readings.
pub(crate) fn befell(before: &Readings, after: &Readings) -> Incidents {
    let grown = |clock: fn(&Readings) -> Nanos, than: fn(&Readings) -> Nanos| {
        let ahead = |r: &Readings| i128::from(clock(r).0) - i128::from(than(r).0);
        ahead(after) - ahead(before)
    };
    let sure = CLOCKS_DIFFER + i128::from(before.apart.0) + i128::from(after.apart.0);
    let time = |n: i128| Nanos(u64::try_from(n).unwrap_or(0));
    let slept = grown(|r| r.boot, |r| r.monotonic);
    let step = grown(|r| r.real, |r| r.boot);

    let pairs = before.steal.iter().zip(&after.steal).filter(|_| before.steal.len() == after.steal.len());
    let stolen = pairs.map(|(a, b)| b.saturating_sub(*a)).max().unwrap_or_default();
    let elapsed = after.monotonic.saturating_sub(before.monotonic);
    let much = stolen >= MUCH_STEAL && stolen.0 as f64 >= MUCH_STEAL_SHARE * elapsed.0 as f64;
    let stood_still = step >= STEP.max(sure) && stolen >= SOME_STEAL;
    let paused = match (much, stood_still) {
        (_, true) => Some(stolen.max(time(step))),
        (true, false) => Some(stolen),
        (false, false) => None,
    };
    Incidents {
        suspended: (slept > sure).then(|| time(slept)),
        machine_paused: paused,
        ..Incidents::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A second on all clocks, with so much more on some, in ms.
    fn after(boot: u64, real: i64, steal: u64) -> Incidents {
        let before = Readings {
            monotonic: Nanos(5000 * MS),
            boot: Nanos(7000 * MS),
            real: Nanos(1_700_000_000_000 * MS),
            apart: Nanos(300),
            steal: vec![Nanos::from_millis(40), Nanos::from_millis(70)],
        };
        let second = 1000 * MS;
        let later = Readings {
            monotonic: Nanos(before.monotonic.0 + second),
            boot: Nanos(before.boot.0 + second + boot * MS),
            real: Nanos((before.real.0 + second + boot * MS).saturating_add_signed(real * MS as i64)),
            apart: Nanos(2000),
            steal: vec![before.steal[0], Nanos(before.steal[1].0 + steal * MS)],
        };
        befell(&before, &later)
    }

    #[test]
    fn an_undisturbed_second_shows_nothing() {
        assert!(after(0, 0, 0).is_none() && after(0, 0, 90).is_none());
    }

    #[test]
    fn a_suspended_machine_shows_by_boot_time() {
        let slept = after(3000, 0, 0);
        assert_eq!(slept, Incidents { suspended: Some(Nanos::from_secs(3)), ..Incidents::default() });
        assert!(slept.time_lost());
    }

    #[test]
    fn a_clock_that_somebody_sets_is_no_pause() {
        // An NTP step, a leap second, an hour forward by hand, two days back.
        for step in [500, -1000, 3_600_000, -172_800_000] {
            assert!(after(0, step, 0).is_none(), "{step} ms");
            assert!(after(0, step, 10).is_none(), "{step} ms with a tick of steal time");
        }
    }

    #[test]
    fn a_paused_machine_shows_by_steal_time_and_by_the_calendars_clock_together() {
        let paused = |boot, real, steal| after(boot, real, steal).machine_paused;
        assert_eq!(paused(0, 0, 400), Some(Nanos::from_millis(400)));
        assert_eq!(paused(0, 2000, 20), Some(Nanos::from_secs(2)));
        assert_eq!(paused(0, 2000, 400), Some(Nanos::from_secs(2)));
        assert_eq!(paused(0, 50, 20), None, "a tick or two of steal time beside a small step");
        // A tenth of a second in ten is a busy host, not a pause.
        let long = |r: &mut Readings| r.monotonic.0 += 10_000 * MS;
        let (before, mut later) =
            (Readings { steal: vec![Nanos(0)], ..Readings::default() }, Readings::default());
        later.steal = vec![Nanos::from_millis(150)];
        long(&mut later);
        (later.boot, later.real) = (later.monotonic, later.monotonic);
        assert!(befell(&before, &later).is_none());
    }

    #[test]
    fn processors_that_came_or_went_are_not_compared() {
        let with = |steal| Readings { steal, ..Readings::default() };
        assert!(befell(&with(vec![Nanos(0)]), &with(vec![Nanos::from_secs(9), Nanos(0)])).is_none());
    }

    #[test]
    fn what_befell_is_said_in_words() {
        let all = Incidents {
            stopped: Some(Nanos::from_millis(1500)),
            suspended: Some(Nanos::from_secs(3)),
            ..Incidents::default()
        };
        assert_eq!(
            all.to_string(),
            "the process stood still at least once, for up to 1.5 s; the machine was suspended for 3 s"
        );
        let moved = Incidents { layout_changed: true, ..Incidents::default() };
        assert!(!moved.is_none() && !moved.time_lost());
    }
}
