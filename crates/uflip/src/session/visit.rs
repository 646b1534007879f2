//! A target that is measured without a folder: refused, opened, watched and run as
//! in any session, with nothing kept of it here.

use super::{Needs, Probed, Probing, Shown, listen, open, refuse, told};
use crate::target::{self, Opened, Place};
use anyhow::bail;
use std::time::Duration;
use uflip_device::{Device, EngineOptions, Recorder, RunEnd, RunLimits, Stream};
use uflip_measure::run::Probes;

/// A target that is open, with what goes on beside its runs.
pub struct Visit {
    /// The target.
    pub opened: Opened,
    /// What stands beside its runs.
    pub probing: Probing,
}

/// Refuses, listens and opens, in this order; says what makes the results less sound.
///
/// # Errors
/// A refusal, or what the system says.
pub fn visit(
    place: &Place,
    needs: Needs<'_>,
    engine: EngineOptions,
    consents: &[String],
    scratch_time: Option<Duration>,
) -> anyhow::Result<Visit> {
    refuse(place, needs, &engine, consents)?;
    target::refuse_among_results(place, None)?;
    listen(Shown::Lines)?;
    let opened = open(&place.target, needs, engine, consents, scratch_time)?;
    opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
    let probing = Probing::of(Some(&opened.target));
    Ok(Visit { opened, probing })
}

impl Visit {
    /// The device with the probes beside it.
    pub fn device(&mut self) -> (Probed<'_>, &Probing) {
        (Probed { device: &mut *self.opened.device, probing: &self.probing }, &self.probing)
    }
}

/// A run that came to its end, and what there is to say of it.
pub struct Ran {
    /// How it ended.
    pub end: RunEnd,
    /// What the probes say.
    pub probes: Probes,
    /// What befell it, in words: its figures are not the device's alone.
    pub befell: Vec<String>,
}

/// Runs `streams` as run `run` on a device of [`Visit::device`].
///
/// # Errors
/// What the device says, or that it was interrupted.
pub fn run_once(
    (device, probing): (&mut dyn Device, &Probing),
    run: u32,
    streams: Vec<Stream>,
    recorder: &dyn Recorder,
    limits: RunLimits<'_>,
) -> anyhow::Result<Ran> {
    probing.next(Some(run));
    let end = device.run(streams, recorder, limits);
    let probes = probing.take();
    probing.next(None);
    let end = end?;
    if end.interrupted {
        bail!("interrupted; nothing is kept");
    }
    let disturbed = probes.interference.as_ref().filter(|found| found.matters(end.ios)).map(told);
    let incidents = (!end.incidents.is_none())
        .then(|| format!("{}; the figures are not the device's alone: measure again", end.incidents));
    Ok(Ran { end, probes, befell: disturbed.into_iter().chain(incidents).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use uflip_device::{Bytes, Geometry, Incidents, KeepAll, Nanos, Stop};

    /// A device that was stopped for a second in each run.
    struct Stopped;

    impl Device for Stopped {
        fn geometry(&self) -> Geometry {
            Geometry { capacity: Bytes(1 << 20), sector: Bytes(512) }
        }
        fn run(
            &mut self,
            _: Vec<Stream>,
            _: &dyn Recorder,
            limits: RunLimits<'_>,
        ) -> Result<RunEnd, uflip_device::DeviceError> {
            let incidents = Incidents { stopped: Some(Nanos::from_secs(1)), ..Incidents::default() };
            Ok(RunEnd { incidents, interrupted: limits.stop.now(), ..RunEnd::default() })
        }
        fn idle(&mut self, _: Nanos, _: &Stop) {}
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }
        fn is_virtual(&self) -> bool {
            true
        }
    }

    #[test]
    fn what_befell_a_run_is_said() {
        let probing = Probing::of(Some(&Target::parse("null:1M", Bytes(0)).unwrap()));
        let (stop, keep) = (Stop::new(), KeepAll::new(1));
        let once = |device: &mut Stopped| {
            let limits = RunLimits { time: None, stop: &stop, sequence: None };
            run_once((device, &probing), 1, Vec::new(), &keep, limits)
        };
        let ran = once(&mut Stopped).unwrap();
        assert!(ran.befell.len() == 1 && ran.befell[0].contains("measure again"), "{:?}", ran.befell);
        (0..2).for_each(|_| {
            stop.ask();
        });
        assert!(once(&mut Stopped).err().unwrap().to_string().contains("interrupted"));
    }
}
