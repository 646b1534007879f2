//! Known answers: devices that are the models.
use super::*;
use crate::trace::TraceIo;
use uflip_device::Nanos;

/// T_merge 30 ms, B 80 MB/s, with an error of up to 2 % that has no trend.
fn sample(sectors: f64, f: f64, wobble: f64) -> SyncSample {
    let visit = 30e6 + f * sectors * 512.0 * 12.5;
    SyncSample {
        sectors_per_sync: sectors,
        focal_factor: f,
        sector_ns: visit / (f * sectors) * (1.0 + wobble),
    }
}

#[test]
fn t_merge_and_bandwidth_are_found_with_their_intervals() {
    let wobbles = [0.02, -0.02, 0.01, -0.01, 0.015, -0.015];
    let mut samples = Vec::new();
    for (i, r) in [8.0, 64.0, 512.0, 4096.0, 8192.0].into_iter().enumerate() {
        for (j, f) in [1.0, 0.5, 0.25].into_iter().enumerate() {
            samples.push(sample(r, f, wobbles[(i + 2 * j) % 6]));
        }
    }
    let fit = fit_merge(&samples).unwrap();
    let (low, high) = fit.t_merge_ci95.unwrap();
    assert!(low < 30e6 && 30e6 < high && high - low < 3e6, "{fit:?}");
    let (low, high) = fit.ns_per_byte_ci95.unwrap();
    assert!(low < 12.5 && 12.5 < high && high - low < 1.5, "{fit:?}");
    assert!(fit.worst_held_out.unwrap() < 0.05, "{fit:?}");
}

#[test]
fn where_the_model_does_not_hold_the_held_out_points_say_so() {
    let samples: Vec<SyncSample> =
        (3..13).map(|e| SyncSample::io(512 << e, f64::from(1 << (2 * (e - 3))) * 1e5)).collect();
    assert!(fit_merge(&samples).unwrap().worst_held_out.unwrap() > 0.5);
    assert_eq!(fit_merge(&[SyncSample::io(4096, 1e6), SyncSample::io(4096, 2e6)]), None);
    assert_eq!(fit_merge(&[]), None);
}

/// The line through (4 KiB, 10 us) and (64 KiB, 400 us) meets no bytes at -16 us.
#[test]
fn a_merge_takes_no_negative_time_but_is_not_decided() {
    let fit = fit_merge(&[SyncSample::io(4096, 1e4), SyncSample::io(65_536, 4e5)]).unwrap();
    assert_eq!((fit.t_merge_ns, fit.t_merge_ci95), (None, None));
    assert!((fit.ns_per_byte - 390e3 / 61_440.0).abs() < 1e-9, "{fit:?}");
    assert_eq!(fit.takes_ns(1.0, 4096.0), None, "nothing follows from it");
    // Through 0: no time, which is decided.
    let fit = fit_merge(&[SyncSample::io(4096, 4e4), SyncSample::io(65_536, 64e4)]).unwrap();
    assert!(fit.t_merge_ns.unwrap() < 1e-3, "{fit:?}");
    // Above it: known, and predicted from.
    let fit = fit_merge(&[SyncSample::io(4096, 1e6), SyncSample::io(8192, 1.5e6)]).unwrap();
    assert!((fit.t_merge_ns.unwrap() - 5e5).abs() < 1e-3, "{fit:?}");
    assert!((fit.takes_ns(2.0, 4096.0).unwrap() - 1.5e6).abs() < 1e-3, "{fit:?}");
}

fn io(offset: u64, size: u32, mode: Mode, ns: u64) -> TraceIo {
    TraceIo { at: Nanos::ZERO, offset, size, mode, response: Some(Nanos(ns)) }
}

#[test]
fn a_trace_costs_what_its_parts_cost() {
    // Reads: 100 us + 10 ns a byte. Random writes: 1 ms + 20 ns a byte.
    let sizes = (9..21).map(|e| 1u64 << e);
    let line = |a: f64, b: f64| sizes.clone().map(|s| (s, a + b * s as f64)).collect::<CostCurve>();
    let curves = Curves { rr: line(1e5, 10.0), sw: line(1e4, 20.0), rw: line(1e6, 20.0), runs: Vec::new() };
    let block = LogicalBlock { bytes: Bytes(1 << 20), source: BlockSource::Given };
    let models = fit(&curves, Some(block));
    let merge = models.merge.as_ref().unwrap();
    assert!((merge.t_merge_ns.unwrap() - 1e6).abs() < 1.0 && (merge.ns_per_byte - 20.0).abs() < 1e-6);
    let one = models.em_flash_1.unwrap();
    assert_eq!(one.block_bytes, 4096);
    assert!((one.c_w - (1e6 + 81_920.0) / (1e5 + 40_960.0)).abs() < 1e-9);
    let trace = [io(0, 4096, Mode::Read, 140_960), io(1 << 20, 8192, Mode::Write, 1_163_840)];
    let by_name = |name: &str| predict(&models, &trace).into_iter().find(|p| p.model == name).unwrap();
    assert!(by_name("merge").relative_error.unwrap().abs() < 1e-6, "{:?}", by_name("merge"));
    let em = by_name("em-flash-1");
    assert!((em.write_ns.unwrap() - 2.0 * 1_081_920.0).abs() < 1.0, "two blocks of 4 KiB");
    let none = predict(&Models::default(), &trace);
    assert!(none.iter().all(|p| p.read_ns.is_none() && p.write_ns.is_none() && p.relative_error.is_none()));
}

/// Two requests at once, 100 ns each, then one alone: 200 ns of the device's time, not 300.
#[test]
fn what_overlaps_took_the_time_in_which_any_was_under_way() {
    let at = |at: u64, mode: Mode| TraceIo { at: Nanos(at), ..io(0, 4096, mode, 100) };
    let deep = [at(0, Mode::Write), at(0, Mode::Write), at(150, Mode::Write)];
    assert_eq!((measured_ns(&deep), mean_under_way(&deep)), (Some(200.0), Some(1.5)));
    let serial = [at(0, Mode::Write), at(100, Mode::Read), at(250, Mode::Write)];
    assert_eq!((measured_ns(&serial), mean_under_way(&serial)), (Some(300.0), None));
    let timeless = [at(0, Mode::Write), at(0, Mode::Write)];
    assert_eq!((measured_ns(&timeless), mean_under_way(&timeless)), (Some(200.0), None), "no times");
    assert_eq!((measured_ns(&[at(0, Mode::Trim)]), mean_under_way(&[])), (None, None));
}
