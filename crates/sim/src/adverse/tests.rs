use super::draw::{AdverseKind, Drawn, DrawnBody, draw};
use super::ruled::{Cliff, Ruled, RuledStartUp, TurnRule, WriteDrift};
use super::*;
use uflip_device::{Arrival, KeepAll, Mode};

fn plain() -> Ruled {
    Ruled {
        capacity: Bytes(1 << 30),
        sr_ns: 1e5,
        rr_ns: 2e5,
        sw_ns: 1e5,
        ratio: 4.0,
        turns: TurnRule::Even,
        start_up: None,
        cliff: None,
        lasting: None,
        stretches: Some((4, 1 << 20)),
        streams: 4,
        units: Vec::new(),
        drift: WriteDrift::None,
    }
}

fn run(device: &mut AdverseDevice, offsets: impl Iterator<Item = u64>) -> Vec<u64> {
    let io = |offset| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(offset),
        size: 32768,
        mode: Mode::Write,
        pattern: 0,
    };
    let ios: Vec<Io> = offsets.map(io).collect();
    let (keep, stop) = (KeepAll::new(4096), Stop::new());
    let limits = RunLimits { time: None, stop: &stop, sequence: None };
    device.run(vec![Box::new(ios.into_iter())], &keep, limits).unwrap();
    keep.records().iter().map(|r| r.response().0).collect()
}

fn scattered(n: u64, area: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(1);
    (0..n).map(move |_| rng.below(area / 32768) * 32768)
}

fn mean(times: &[u64]) -> f64 {
    times.iter().sum::<u64>() as f64 / times.len() as f64
}

fn of(truth: Ruled, offsets: impl Iterator<Item = u64>) -> Vec<u64> {
    run(&mut AdverseDevice::ruled(truth, Upsets::default(), 1), offsets)
}

#[test]
fn ratio_area_streams_and_levels_are_as_told() {
    let far = mean(&of(plain(), scattered(4000, 1 << 30)));
    assert!((3.9e5..4.01e5).contains(&far), "{far}");
    let near = mean(&of(plain(), scattered(4000, 4 << 20)));
    assert!(near < 1.01e5, "{near}");
    // Of eight stretches four are cheap.
    let half = mean(&of(plain(), scattered(4000, 8 << 20)));
    assert!((2.3e5..2.7e5).contains(&half), "{half}");
    let streams = |n: u64| (0..4000u64).map(move |i| (i % n) * (64 << 20) + i / n * 32768);
    assert!(mean(&of(plain(), streams(4))) < 1.01e5);
    assert!(mean(&of(plain(), streams(5))) > 3.5e5);
    let levels = Ruled { units: vec![(2048, 3.2), (8192, 1.17)], ..plain() };
    for (shift, times) in [(512, 3.2), (2048, 1.17), (4096, 1.17), (8192, 1.0)] {
        let ns = mean(&of(levels.clone(), (0..400u64).map(|i| i * 32768 + shift).skip(1))[1..]);
        assert!((ns / 1e5 / times - 1.0).abs() < 1e-3, "{shift}: {ns}");
    }
}

#[test]
fn ramps_cycles_cliffs_and_drifts_are_as_told() {
    let start_up = |ramp| Some(RuledStartUp { ios: 100, ramp, refill_ns: 1e9 });
    let ramp = of(Ruled { start_up: start_up(true), stretches: None, ..plain() }, scattered(200, 1 << 30));
    assert_eq!([ramp[1], ramp[50], ramp[100], ramp[199]], [103_000, 250_000, 400_000, 400_000]);
    let step = of(Ruled { start_up: start_up(false), stretches: None, ..plain() }, scattered(200, 1 << 30));
    assert_eq!((step[99], step[100]), (100_000, 400_000));
    let cycle = TurnRule::Cycle { ios: 1000.0, share: 0.01, wander: 0.0 };
    let long = of(Ruled { turns: cycle, stretches: None, ..plain() }, scattered(4000, 1 << 30));
    assert_eq!(long.iter().filter(|ns| **ns > 1_000_000).count(), 40);
    assert!((mean(&long) / 4e5 - 1.0).abs() < 0.01);
    let cliff = Some(Cliff { bytes: 1048576.0, factor: 5.0, bytes_a_second: 1e9 });
    let falls = of(Ruled { cliff, ..plain() }, (0..100u64).map(|i| i * 32768));
    assert_eq!((falls[20], falls[60]), (100_000, 500_000));
    let drift = WriteDrift::Step { at: 50.0, factor: 2.0 };
    let steps = of(Ruled { drift, ..plain() }, (0..100u64).map(|i| i * 32768));
    assert_eq!((steps[49], steps[50]), (100_000, 200_000));
}

/// What disturbs comes out as its mean says, and leaves the body as it was.
#[test]
fn upsets_have_the_mean_they_tell_and_do_not_touch_the_body() {
    let tail = Some(Tail { share: 0.02, exponent: 2.5 });
    let stalls = Some(Stalls { every_ios: 2000.0, length_ns: 1e8 });
    let upsets = Upsets { noise: 0.2, tail, stalls, ..Upsets::default() };
    let mut device = AdverseDevice::ruled(plain(), upsets, 3);
    let times = run(&mut device, (0..30_000u64).map(|i| i * 32768));
    let [from, to] = upsets.mean_ns(1e5);
    assert!(from < to && (mean(&times) / to - 1.0).abs() < 0.2, "{} {from} {to}", mean(&times));
    assert_eq!(run(&mut device.quiet(), (30_000..30_100u64).map(|i| i * 32768)), vec![100_000; 100]);
    let shift = Upsets { shift: 0.2, ..Upsets::default() };
    let mut device = AdverseDevice::ruled(plain(), shift, 3);
    let runs: Vec<f64> = (0..200).map(|_| mean(&run(&mut device, std::iter::once(0)))).collect();
    let spread = runs[1..].iter().map(|ns| (ns / 1e5).ln().powi(2)).sum::<f64>() / 199.0;
    assert!((0.02..0.07).contains(&spread), "{spread}");
}

#[test]
fn the_same_number_is_the_same_device_and_all_kinds_can_be_built() {
    let drawn: Vec<Drawn> = (0..54).map(|n| draw(7, n)).collect();
    assert_eq!(drawn[..18].iter().map(|d| d.kind).collect::<Vec<_>>(), AdverseKind::ALL);
    for (n, d) in drawn.iter().enumerate() {
        assert_eq!(*d, draw(7, n as u64));
        assert_ne!(d.seed, draw(8, n as u64).seed);
        let mut device = d.device().unwrap();
        assert!(mean(&run(&mut device, (0..64u64).map(|i| i * 32768))) > 1e3);
        assert_eq!(matches!(d.body, DrawnBody::Ruled(_)), device.drifted().is_some());
    }
}

/// A snapshot brings the body back, and time goes on.
#[test]
fn a_snapshot_brings_the_body_back() {
    let cliff = Some(Cliff { bytes: 1048576.0, factor: 5.0, bytes_a_second: 1.0 });
    let mut device = AdverseDevice::ruled(Ruled { cliff, ..plain() }, Upsets::default(), 1);
    assert!(!device.snapshot(Snapshot::Return));
    assert!(device.snapshot(Snapshot::Take));
    let first = run(&mut device, (0..100u64).map(|i| i * 32768));
    let at = device.now();
    assert!(device.snapshot(Snapshot::Return));
    assert_eq!(run(&mut device, (0..100u64).map(|i| i * 32768)), first);
    assert!(device.now() > at);
}
