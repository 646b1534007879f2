//! The open loop against theory, and against the closed one, which hides what the open
//! one shows.
//!
//! Source: M/D/1 mean s (1 + u / (2 (1 - u))) (any text on queues); a stall of length S
//! every T under load u: delayed share S / (T (1 - u)), added mean S^2 / (2 T (1 - u)),
//! longest S + s. With fixed gaps and whole numbers each is an exact sum.

use proptest::prelude::*;
use uflip_device::rng::Rng;
use uflip_device::{
    Arrival, Bytes, Device, Io, IoRecord, KeepAll, Mode, Nanos, NullDevice, RunLimits, Stop, Stream,
};
use uflip_measure::pattern::Pattern;
use uflip_sim::known::{KnownDevice, Stall, Truth};

/// A read of 32 KiB takes this long: s.
const SERVICE: u64 = 100_000;

/// A device whose every read takes [`SERVICE`].
fn plain() -> KnownDevice {
    let truth = Truth {
        capacity: Bytes(1 << 30),
        sr_ns: SERVICE as f64,
        rr_ns: SERVICE as f64,
        sw_ns: SERVICE as f64,
        expensive_ns: SERVICE as f64,
        expensive_share: 0.0,
        period_ios: None,
        jitter: 0.0,
        start_up_ios: None,
        refill_ns: 1e9,
        lasting_ns: None,
        lasting_factor: 1.0,
        area_bytes: None,
        partitions: 1,
        unit_bytes: None,
        penalty: 1.0,
        noise: 0.0,
        outliers: 0.0,
        outlier_factor: 1.0,
        drift: 0.0,
    };
    KnownDevice::new(truth, 1)
}

fn run(device: &mut dyn Device, streams: Vec<Stream>, time: Option<Nanos>) -> Vec<IoRecord> {
    let keep = KeepAll::new(1 << 10);
    device.run(streams, &keep, RunLimits { time, stop: &Stop::new(), sequence: None }).expect("it runs");
    let mut records = keep.records();
    records.sort_by_key(|r| (r.stream(), r.due()));
    records
}

fn streams(text: &str, count: u64) -> Vec<Stream> {
    text.parse::<Pattern>().expect("a pattern").streams(count, 5).expect("streams")
}

fn mean(records: &[IoRecord]) -> f64 {
    records.iter().map(|r| r.response().0 as f64).sum::<f64>() / records.len() as f64
}

const STALL: Stall = Stall { every: Nanos::from_secs(1), length: Nanos::from_millis(10) };

/// u = 1/2, S = 10 ms, T = 1 s: in each second 100 of 5,000 IOs wait, the first for S and
/// each later one for s less.
#[test]
fn a_stall_delays_the_share_the_mean_and_the_maximum_that_theory_says() {
    let seconds = 8u64;
    let records = run(
        &mut plain().stalling(STALL),
        streams("RR(target_size=1G, rate=5000/s)", 5000 * (seconds + 1)),
        None,
    );
    let delayed: Vec<&IoRecord> = records.iter().filter(|r| r.response().0 > SERVICE).collect();
    let (s, stall) = (SERVICE, STALL.length.0);
    let per_stall = stall / s;
    assert_eq!(delayed.len() as u64, seconds * per_stall);
    let stalled = &records[5000..];
    let share = delayed.len() as f64 / stalled.len() as f64;
    assert_eq!(share, 0.010 / (1.0 * (1.0 - 0.5)), "S / (T (1 - u))");
    let longest = records.iter().map(|r| r.response().0).max();
    assert_eq!(longest, Some(stall + s), "S + s");
    // The sum of S, S - s, …, s; in the limit of small s it is S^2 / (2 T (1 - u)).
    let added: u64 = records.iter().map(|r| r.response().0 - s).sum();
    assert_eq!(added, seconds * (stall * (per_stall + 1) / 2));
    let theory = 0.010f64.powi(2) / (2.0 * 1.0 * (1.0 - 0.5)) * 1e9;
    let mean_added = added as f64 / stalled.len() as f64;
    assert!((mean_added / theory - 1.0 - s as f64 / stall as f64).abs() < 1e-9, "{mean_added} for {theory}");
    // Each waited for the stall or for those before it, and says so.
    let late = |r: &IoRecord| r.late().expect("an open loop's").0;
    assert_eq!(delayed.iter().filter(|r| late(r) > 0).count() as u64, seconds * (per_stall - 1));
    assert!(delayed.iter().all(|r| late(r) + r.service().0 == r.response().0));
}

/// Coordinated omission: the same device and stall, and the closed loop asks nothing
/// while it stands still.
#[test]
fn the_closed_loop_sees_one_slow_io_a_stall() {
    let closed = run(&mut plain().stalling(STALL), streams("RR(target_size=1G, pause=100us)", 40_000), None);
    let slow: Vec<u64> = closed.iter().map(|r| r.response().0).filter(|ns| *ns > SERVICE).collect();
    let stalls = closed.last().expect("records").completion().0 / STALL.every.0;
    assert_eq!(slow.len() as u64, stalls, "one a stall");
    assert!(mean(&closed) < SERVICE as f64 + 2_100.0, "it adds 2 us: {}", mean(&closed));
    let open = run(&mut plain().stalling(STALL), streams("RR(target_size=1G, rate=5000/s)", 40_000), None);
    assert!(mean(&open) > SERVICE as f64 + 85_000.0, "and the open loop 88 us: {}", mean(&open));
    let p99 = |mut records: Vec<IoRecord>| {
        records.sort_by_key(IoRecord::response);
        records[records.len() * 99 / 100].response().0
    };
    assert_eq!(p99(closed), SERVICE);
    assert!(p99(open) > 4_000_000, "one in fifty waits");
}

#[test]
fn poisson_arrivals_wait_as_in_an_m_d_1_queue() {
    for (rate, u) in [("2000/s", 0.2), ("5000/s", 0.5), ("8000/s", 0.8)] {
        let text = format!("RR(target_size=1G, poisson={rate})");
        let records = run(&mut plain(), streams(&text, 200_000), None);
        let theory = SERVICE as f64 * (1.0 + u / (2.0 * (1.0 - u)));
        let got = mean(&records) / theory;
        assert!((got - 1.0).abs() < 0.03, "u = {u}: {got} of {theory}");
    }
}

/// A device that cannot keep up is asked everything all the same, and the waits grow.
#[test]
fn nothing_is_left_out_of_an_overloaded_run() {
    let records = run(&mut plain(), streams("RR(target_size=1G, rate=20000/s)", 1000), None);
    assert_eq!(records.len(), 1000);
    // Due every s / 2, done every s.
    for (i, record) in (0u64..).zip(&records) {
        assert_eq!(record.due().0, i * SERVICE / 2);
        assert_eq!(record.response().0, SERVICE + i * SERVICE / 2);
        assert_eq!(record.late(), Some(Nanos(i * SERVICE / 2)));
    }
    // A limit is on the intended instants: what was due before it is done.
    let half =
        run(&mut plain(), streams("RR(target_size=1G, rate=20000/s)", 1000), Some(Nanos(500 * SERVICE / 2)));
    assert_eq!(half.len(), 500);
    assert_eq!(half[..], records[..500]);
}

/// What a plan says of when IOs are due.
fn planned(text: &str, count: u64) -> Vec<(u16, Nanos)> {
    let each = |(p, stream): (usize, Stream)| {
        let due = |io: Io| match io.arrival {
            Arrival::At(instant) => (p as u16, instant),
            Arrival::After(_) => panic!("a closed loop"),
        };
        stream.map(due).collect::<Vec<_>>()
    };
    streams(text, count).into_iter().enumerate().flat_map(each).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// On simulated and known devices and in the loop of threads, with fixed and with
    /// random gaps, one stream and several, in time and overloaded.
    #[test]
    fn the_intended_instants_recorded_are_the_plans(
        rate in 50u64..200_000, poisson in any::<bool>(), degree in 1u32..5, count in 1u64..120, write in any::<bool>(),
    ) {
        let (base, key) = (if write { "RW" } else { "RR" }, if poisson { "poisson" } else { "rate" });
        let text = format!("{degree} x {base}(io_size=4K, target_size=16M, {key}={rate}/s)");
        let planned = planned(&text, count);
        let simulated = |name| uflip_sim::open(name, 3).expect("a device of the catalogue");
        let mut devices: Vec<Box<dyn Device>> = vec![
            Box::new(plain().stalling(Stall { every: Nanos::from_millis(3), length: Nanos::from_millis(1) })),
            Box::new(simulated("mtron")),
            Box::new(simulated("kingston-dti")),
        ];
        // Real time: only what is over soon.
        if count * 1_000_000_000 / rate < 20_000_000 {
            devices.push(Box::new(NullDevice::new(Bytes(1 << 30))));
        }
        for device in &mut devices {
            let records = run(device.as_mut(), streams(&text, count), None);
            let told: Vec<(u16, Nanos)> = records.iter().map(|r| (r.stream(), r.due())).collect();
            prop_assert_eq!(&told, &planned);
            for pair in records.windows(2).filter(|w| w[0].stream() == w[1].stream()) {
                prop_assert!(pair[1].submit() >= pair[0].completion(), "one IO at a time in a stream");
            }
            prop_assert!(records.iter().all(|r| r.late().is_some() && r.submit() >= r.due()));
        }
    }
}

/// Slow for a while in the loop of threads: those that were due meanwhile follow back to
/// back, with their waits.
#[test]
fn a_stream_that_was_held_up_catches_up_without_leaving_any_out() {
    let mut rng = Rng::new(2);
    let held_up = 40;
    let ios = (0..200u64).map(move |i| {
        if i == held_up {
            // The loop asks for its next IO between two: here it gets none for 20 ms.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let arrival = Arrival::At(Nanos(i * SERVICE));
        Io { arrival, offset: Bytes(rng.below(1000) * 4096), size: 4096, mode: Mode::Read, pattern: 0 }
    });
    let records = run(&mut NullDevice::new(Bytes(1 << 30)), vec![Box::new(ios)], None);
    assert_eq!(records.len(), 200);
    assert!(records.iter().zip(0u64..).all(|(r, i)| r.due().0 == i * SERVICE));
    let wait = |i: u64| records[i as usize].response();
    assert!(wait(held_up) >= Nanos::from_millis(19), "{}", wait(held_up));
    // Half the hold-up later the queue is still being worked off, a service time less each.
    assert!(wait(held_up + 50) >= Nanos::from_millis(14), "{}", wait(held_up + 50));
    let caught_up = records[held_up as usize..].windows(2).take(100);
    let gaps: Vec<u64> = caught_up.map(|w| w[1].submit().0 - w[0].submit().0).collect();
    let middle = {
        let mut g = gaps.clone();
        g.sort_unstable();
        g[50]
    };
    assert!(middle < SERVICE / 2, "back to back: {middle} ns");
}
