//! Energy against sums done by hand, and the power trace that a meter samples.

mod common;

use common::run;
use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Device, Io, Mode, Nanos, Stop};
use uflip_sim::energy::power;
use uflip_sim::{SimDevice, check};

/// One die; a write of a page takes 70 us + 25.6 us on the link, 51.2 us on the
/// bus and 200 us to program, a read of it 70 + 25 + 51.2 and 20.48 us.
fn device() -> SimDevice {
    let text = "name = \"metered\"\ncapacity_mib = 1\n\
        [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
        [geometry]\nchannels = 1\nchips_per_channel = 1\npages_per_block = 16\npage_bytes = 2048\n\
        [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n\
        [ftl]\nkind = \"page\"\nover_provisioning = 0.1\n\
        [energy]\nread_uj = 10\nprogram_uj = 100\nerase_uj = 1000\nlink_nj_per_byte = 2\n\
        idle_mw = 100\nactive_mw = 500\n";
    SimDevice::new(&check(text).unwrap(), 1).unwrap()
}

fn io(mode: Mode, page: u64) -> Io {
    Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(page * 2048), size: 2048, mode, pattern: 0 }
}

const WRITE_S: f64 = 346.8e-6;
const READ_S: f64 = 166.68e-6;
/// Joules of a written page besides power over time: 100 uJ and 2048 bytes.
const WRITE_J: f64 = 100e-6 + 2048.0 * 2e-9;
const READ_J: f64 = 10e-6 + 2048.0 * 2e-9;

fn same(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

#[test]
fn energy_is_the_sum_of_operations_bytes_and_power() {
    let mut device = device();
    let writes = run(&mut device, vec![(0..10).map(|i| io(Mode::Write, i)).collect()]);
    assert!(writes.iter().all(|r| r.response() == Nanos(346_800)));
    let sum = 10.0 * (WRITE_J + WRITE_S * 0.6);
    assert!(same(device.energy_joules(), sum), "{} instead of {sum}", device.energy_joules());
    let reads = run(&mut device, vec![(0..4).map(|i| io(Mode::Read, i)).collect()]);
    assert!(reads.iter().all(|r| r.response() == Nanos(166_680)));
    let sum = sum + 4.0 * (READ_J + READ_S * 0.6);
    assert!(same(device.energy_joules(), sum), "{} instead of {sum}", device.energy_joules());
    device.idle(Nanos::from_secs(2), &Stop::new());
    let sum = sum + 0.2;
    assert!(same(device.energy_joules(), sum), "{} instead of {sum}", device.energy_joules());
    let counted = device.counters().unwrap().energy_uj.unwrap() * 1e-6;
    assert!(same(counted, sum), "counted {counted} instead of {sum}");
}

#[test]
fn reclamation_costs_reads_programs_and_erases() {
    let mut device = device();
    let mut rng = Rng::new(1);
    run(&mut device, vec![(0..2048).map(|_| io(Mode::Write, rng.below(512))).collect()]);
    let ops = device.flash_ops().unwrap();
    assert!(ops.copies > 0 && ops.reads == ops.copies && ops.erases > 0);
    let seconds = device.now().0 as f64 * 1e-9;
    let sum = ops.reads as f64 * 10e-6
        + ops.programs as f64 * 100e-6
        + ops.erases as f64 * 1e-3
        + 2048.0 * 2048.0 * 2e-9
        + seconds * 0.6;
    assert!((device.energy_joules() - sum).abs() < 1e-9, "{} instead of {sum}", device.energy_joules());
}

#[test]
fn a_meter_sees_the_power_of_service_and_of_rest() {
    let mut device = device();
    device.meter_every(Nanos::from_millis(1));
    run(&mut device, vec![(0..10).map(|i| io(Mode::Write, i)).collect()]);
    device.idle(Nanos::from_millis(10), &Stop::new());
    let samples = device.take_samples();
    let times: Vec<u64> = samples.iter().map(|s| s.at.0).collect();
    assert_eq!(times, (0..=13).map(|ms| ms * 1_000_000).collect::<Vec<u64>>());
    let trace = power(&samples);
    let busy = 0.6 + WRITE_J / WRITE_S;
    assert!(trace[..3].iter().all(|p| (p.watts - busy).abs() < 1e-6), "{trace:?}");
    assert!(trace[4..].iter().all(|p| (p.watts - 0.1).abs() < 1e-6), "{trace:?}");
    assert!(trace[3].watts > 0.1 && trace[3].watts < busy);
    let sum: f64 = trace.iter().map(|p| p.watts * 1e-3).sum();
    assert!((sum - samples[13].joules).abs() < 1e-12);
}

#[test]
fn metering_changes_no_record() {
    for name in ["mtron", "memoright", "samsung", "kingston-dti", "nvme-tlc", "ibm-deskstar-hdd-60G"] {
        let records = |metered: bool| {
            let mut device = uflip_sim::open(name, 3).unwrap();
            if metered {
                device.meter_every(Nanos::from_micros(300));
            }
            let stream = |from: u64| {
                let waits = move |i: u64| Nanos(if i.is_multiple_of(5) { i * 300_000 } else { 0 });
                (0..300)
                    .map(|i| {
                        let mode = if i % 3 == 0 { Mode::Read } else { Mode::Write };
                        let at = Bytes((i * 7919 + from) % 5000 * 32768);
                        Io { arrival: Arrival::After(waits(i)), offset: at, size: 32768, mode, pattern: 0 }
                    })
                    .collect::<Vec<Io>>()
            };
            let records = run(&mut device, vec![stream(0), stream(99)]);
            assert_eq!(metered, !device.take_samples().is_empty());
            records
        };
        assert!(records(false) == records(true), "{name} answers otherwise when metered");
    }
}
