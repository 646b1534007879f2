use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use uflip_device::{Bytes, KeepAll};
use uflip_measure::pattern::{Baseline, Pattern};

/// A device whose runs last until the probe was asked twice during them.
struct Slow(Counting);

impl Device for Slow {
    fn geometry(&self) -> Geometry {
        Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) }
    }
    fn run(&mut self, _: Vec<Stream>, _: &dyn Recorder, _: RunLimits<'_>) -> Result<RunEnd, DeviceError> {
        let [before, during, _] = self.0.asked();
        let sampled = || self.0.asked()[1] >= during + 2;
        // A reset is no run: nobody asks.
        let _ = before > 0
            && (0..60_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                sampled()
            });
        Ok(RunEnd { ios: 1, ..RunEnd::default() })
    }
    fn idle(&mut self, _: Nanos, _: &Stop) {}
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn is_virtual(&self) -> bool {
        false
    }
}

/// Counts how often it is asked: before, during and after runs.
#[derive(Clone, Default)]
struct Counting(Arc<[AtomicU32; 3]>);

impl Counting {
    fn asked(&self) -> [u32; 3] {
        [0, 1, 2].map(|at: usize| self.0[at].load(Ordering::Relaxed))
    }
}

impl Probe for Counting {
    fn before(&mut self, _: Option<Counters>) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }
    fn sampler(&self, is_virtual: bool) -> Option<Sampler> {
        assert!(!is_virtual);
        let (counts, own) = (self.0.clone(), std::thread::current().id());
        let sample = move |reading: Option<Reading>| {
            assert_eq!(reading, None, "a device at work was asked");
            assert_ne!(std::thread::current().id(), own, "sampled on the thread that measures");
            counts[1].fetch_add(1, Ordering::Relaxed);
        };
        Some(Sampler { every: Nanos::from_millis(5), sample: Box::new(sample) })
    }
    fn after(&mut self, _: u32, end: &RunEnd, _: Option<Counters>, said: &mut Probes) {
        self.0[2].fetch_add(1, Ordering::Relaxed);
        said.counters = Some(Counters { block_erases: Some(end.ios), ..Counters::default() });
    }
}

fn run(device: &mut Probed<'_>) {
    let stop = Stop::new();
    device.run(Vec::new(), &KeepAll::new(1), RunLimits { time: None, stop: &stop, sequence: None }).unwrap();
}

#[test]
fn a_probe_is_asked_before_during_and_after_runs_and_nothing_else() {
    let counting = Counting::default();
    let probing = Probing::with(vec![Box::new(counting.clone())]);
    let mut device = Slow(counting.clone());
    let mut probed = Probed { device: &mut device, probing: &probing };
    run(&mut probed);
    assert_eq!(counting.asked(), [0, 0, 0], "a reset is no run");
    probing.next(Some(3));
    run(&mut probed);
    let [before, during, after] = counting.asked();
    assert!(before == 1 && after == 1 && during >= 2, "{before} {during} {after}");
    assert_eq!(probing.take().counters.unwrap().block_erases, Some(1));
    assert!(probing.take().is_empty(), "said once");
}

#[test]
fn a_simulated_device_tells_what_a_run_cost_it() {
    let target = Target::parse("sim:mtron", Bytes(0)).unwrap();
    let Target::Simulated { description, .. } = &target else { panic!("not simulated") };
    let mut device = uflip_sim::SimDevice::new(description, 1).unwrap();
    let probing = Probing::of(Some(&target));
    let mut probed = Probed { device: &mut device, probing: &probing };
    let pattern = Pattern::Basic(Baseline::Rw.basic(Bytes(32 << 10))).resolve(probed.geometry()).unwrap();
    let stop = Stop::new();
    for number in 1..=2 {
        probing.next(Some(number));
        let streams = pattern.streams(64, 1).unwrap();
        probed
            .run(streams, &KeepAll::new(64), RunLimits { time: None, stop: &stop, sequence: None })
            .unwrap();
        let said = probing.take();
        // Of this run alone.
        assert_eq!(said.counters.unwrap().host_written, Some(Bytes(64 * (32 << 10))));
        assert_eq!(said.interference, None);
    }
}

/// Says of each run that others were at work beside it.
struct Busy;

impl Probe for Busy {
    fn before(&mut self, _: Option<Counters>) {}
    fn sampler(&self, _: bool) -> Option<Sampler> {
        None
    }
    fn after(&mut self, run: u32, end: &RunEnd, _: Option<Counters>, said: &mut Probes) {
        let other_ios = Some(end.ios);
        said.interference = Some(Disturbed { run, other_ios, ..nothing_beside(run) });
    }
}

fn nothing_beside(run: u32) -> Disturbed {
    Disturbed {
        run,
        other_ios: None,
        cpu_stall_share: None,
        io_stall_share: None,
        load: None,
        cpu_mhz: None,
        throttles: None,
        cpu_stall_peak_share: None,
    }
}

/// The demonstration's calibration once ran with nobody looking.
#[test]
fn the_parameters_of_a_device_of_a_session_are_found_in_runs_that_are_watched() {
    let probing = Probing::with(vec![Box::new(Busy)]);
    probing.remember(vec![nothing_beside(u32::MAX)]);
    let truth = uflip_sim::known::draw::draw(&mut uflip_device::rng::Rng::new(1));
    let mut device = uflip_sim::KnownDevice::new(truth, 1);
    let mut probed = Probed { device: &mut device, probing: &probing };
    let (geometry, budget) = (probed.geometry(), Nanos::from_secs(1));
    let options = uflip_measure::demo::calibration("known", geometry, true, 1, budget);
    let found = crate::lab::parameters(&options, (&mut probed, &probing), &Stop::new()).unwrap();
    let told: Vec<u32> = found.interference.iter().map(|of| of.run).collect();
    let long = found.baselines.values().flat_map(|baseline| baseline.runs.clone());
    let missing: Vec<u32> = long.filter(|run| !told.contains(run)).collect();
    assert!(!told.is_empty() && missing.is_empty() && !told.contains(&u32::MAX), "{missing:?} {told:?}");
}

/// A simulated device with its probes, and what 3000 random writes on it leave: the
/// records and what the probes say.
fn writes(sampled: bool) -> (Vec<uflip_device::IoRecord>, uflip_measure::run::Probes) {
    let target = Target::parse("sim:mtron", Bytes(0)).unwrap();
    let Target::Simulated { description, .. } = &target else { panic!("not simulated") };
    let mut device = uflip_sim::SimDevice::new(description, 1).unwrap();
    let probing = if sampled { Probing::of(Some(&target)) } else { Probing::with(Vec::new()) };
    let mut probed = Probed { device: &mut device, probing: &probing };
    let pattern = Pattern::Basic(Baseline::Rw.basic(Bytes(32 << 10))).resolve(probed.geometry()).unwrap();
    let (stop, keep) = (Stop::new(), KeepAll::new(3000));
    probing.next(Some(1));
    let limits = RunLimits { time: None, stop: &stop, sequence: None };
    probed.run(pattern.streams(3000, 1).unwrap(), &keep, limits).unwrap();
    (keep.records(), probing.take())
}

#[test]
fn a_simulated_device_is_sampled_in_its_own_time_and_its_records_stay_as_they_are() {
    let ((plain, nothing), (records, said)) = (writes(false), writes(true));
    assert_eq!(nothing, Probes::default());
    assert!(plain == records, "sampling changed the records");
    let course = said.course.expect("the run is longer than an interval");
    assert_eq!(course.every, Nanos::from_secs(1));
    // Each reading is of the first completion at or after an interval's end, and says
    // what the host had written by then.
    let mut expected = Vec::new();
    let mut due = 1_000_000_000;
    for (written, record) in (1u64..).zip(&records) {
        let done = record.submit().0 + record.response().0;
        if done >= due {
            expected.push((Nanos(done), Some(Bytes(written * (32 << 10)))));
            due = (done / 1_000_000_000 + 1) * 1_000_000_000;
        }
    }
    assert!(expected.len() > 3, "{expected:?}");
    let told: Vec<_> =
        course.readings.iter().map(|reading| (reading.at, reading.counters.host_written)).collect();
    assert_eq!(told, expected);
    let programmed = |counters: &Counters| counters.flash_programmed.unwrap();
    let last = course.readings.last().unwrap();
    assert!(
        programmed(&last.counters) > Bytes(0)
            && programmed(&last.counters) <= programmed(&said.counters.unwrap())
    );
}
