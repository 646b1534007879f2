//! Random small devices under random IO: every page has exactly one newest
//! copy, what was written last is what is read, the books add up, time never
//! runs backwards, and nothing goes on for ever.
//!
//! Other cases in each run; `PROPTEST_CASES=20000 cargo test --release -p
//! uflip-sim --test integrity` runs many. A case that fails is printed whole.

mod common;

use common::{Workload, config, description, ios, run, shape};
use proptest::prelude::*;
use uflip_device::blocks::{self, Clock};
use uflip_device::buffer::AlignedBuffer;
use uflip_device::rng::Rng;
use uflip_device::{Bytes, Device, IoRecord, Mode, Nanos};
use uflip_sim::{Description, SimBlocks, SimDevice, check};

fn open(text: &str) -> (Description, SimDevice) {
    let d = check(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let device = SimDevice::new(&d, 7).unwrap();
    (d, device)
}

/// Runs IOs a few at a time with audits in between.
fn audited(text: &str, shape: Workload) -> Result<(), String> {
    let (d, mut device) = open(text);
    device.watch();
    let all = ios(shape, d.capacity_mib << 20, d.sector_bytes);
    for part in all.chunks(10) {
        run(&mut device, vec![part.to_vec()]);
        device.audit().map_err(|e| format!("{e}\n{text}"))?;
    }
    Ok(())
}

/// The time all flash operations and transfers would take one after the other,
/// lengthened by noise and by destaging's share; `None` for a disk.
fn most_work_ns(d: &Description, device: &SimDevice, records: &[IoRecord]) -> Option<f64> {
    let (g, t, ops) = (d.geometry.as_ref()?, d.timing.as_ref()?, device.flash_ops()?);
    let lanes = g.channels * g.chips_per_channel * g.dies_per_chip * g.planes_per_die;
    let transfer_us = g.page_bytes as f64 / t.bus_mb_s;
    let slc_us = d.slc.as_ref().map_or(0.0, |s| s.program_us);
    let one_us = t.read_us.max(t.program_us).max(t.erase_us).max(slc_us)
        + t.copy_back_us.unwrap_or(0.0)
        + t.map_update_us
        + t.log_switch_us
        + 2.0 * f64::from(lanes) * transfer_us;
    let link_us: f64 = records
        .iter()
        .map(|r| {
            let size = f64::from(r.size());
            d.link.read_latency_us
                + d.link.write_latency_us
                + d.link.seek_read_us
                + size / d.link.read_mb_s.min(d.link.write_mb_s)
        })
        .sum();
    let share = d.buffer.as_ref().map_or(0.0, |b| b.background_share);
    let operations = (ops.reads + ops.programs + ops.erases) as f64 + records.len() as f64;
    let stretch = (1.0 + d.noise.share) / (1.0 - share);
    Some((2.0 * operations * one_us + link_us) * 1e3 * stretch + 1.0)
}

#[test]
fn page_mapping_without_over_provisioning_keeps_a_free_superblock() {
    // Reclamation in idle time used to leave less free than the frontiers need.
    for gc in ["greedy", "cost-benefit", "d-choices"] {
        let text = format!(
            "name = \"full\"\ncapacity_mib = 1\n\
             [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
             [geometry]\nchannels = 2\nchips_per_channel = 2\nplanes_per_die = 2\npages_per_block = 9\n\
             page_bytes = 2048\n\
             [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n\
             [ftl]\nkind = \"page\"\ngc = \"{gc}\"\nover_provisioning = 0.00\nidle_free_superblocks = 8\n\
             superblock_dies = 1\n"
        );
        for seed in 0..30 {
            let shape = Workload { seed, ios: 600, space: 16, sequential: seed % 4, trims: seed % 2 };
            assert_eq!(audited(&text, shape), Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_page_has_one_newest_copy(text in description(), shape in shape()) {
        prop_assert_eq!(audited(&text, shape), Ok(()));
    }

    #[test]
    fn time_runs_forward_and_repeats(text in description(), shape in shape()) {
        let (d, mut device) = open(&text);
        let all = ios(shape, d.capacity_mib << 20, d.sector_bytes);
        let half = all.len() / 2;
        let streams = vec![all[..half].to_vec(), all[half..].to_vec()];
        let mut twin = device.clone();
        let records = run(&mut device, streams.clone());
        prop_assert_eq!(&records, &run(&mut twin, streams));
        prop_assert_eq!(records.len(), all.len());
        let latency = d.link.read_latency_us.min(d.link.write_latency_us) * 1e3;
        for stream in 0..2 {
            let mut done = 0;
            for r in records.iter().filter(|r| r.stream() == stream) {
                prop_assert!(r.submit().0 >= done);
                if r.mode() != Mode::Trim {
                    prop_assert!(r.response().0 as f64 >= latency, "faster than the link");
                }
                done = r.submit().0 + r.response().0;
            }
        }
        let waits: u64 = all.iter().map(|io| io.arrival.due(Nanos::ZERO).0).sum();
        if let Some(work) = most_work_ns(&d, &device, &records) {
            prop_assert!((device.now().0 as f64) < waits as f64 + work, "more time passed than was work");
        }
        prop_assert_eq!(device.now(), twin.now());
        prop_assert!((device.energy_joules() - twin.energy_joules()).abs() == 0.0);
    }

    #[test]
    fn what_was_written_last_is_read(text in description(), shape in shape()) {
        let (d, device) = open(&text);
        let capacity = d.capacity_mib << 20;
        let mut device = SimBlocks::new(device, 1, Clock::virtual_time(), Bytes(1 << 30)).unwrap();
        let mut buffer = AlignedBuffer::new(capacity as usize);
        let mut shadow = vec![0u8; capacity as usize];
        let mut rng = Rng::new(shape.seed);
        for io in ios(shape, capacity, d.sector_bytes) {
            let (from, size) = (io.offset.0 as usize, io.size as usize);
            match io.mode {
                Mode::Write => {
                    rng.fill(&mut shadow[from..from + size]);
                    buffer.bytes_mut()[..size].copy_from_slice(&shadow[from..from + size]);
                    blocks::write(&mut device, io.offset, io.size, &mut buffer).unwrap();
                }
                Mode::Read => {
                    blocks::read(&mut device, io.offset, io.size, &mut buffer).unwrap();
                    prop_assert!(buffer.bytes()[..size] == shadow[from..from + size]);
                }
                Mode::Trim => {
                    shadow[from..from + size].fill(0);
                    blocks::trim(&mut device, io.offset, io.size).unwrap();
                }
                Mode::Flush => blocks::flush(&mut device).unwrap(),
            }
        }
    }

    #[test]
    fn no_text_panics(text in "[a-z_\\[\\]= 0-9\"\n.]{0,200}") {
        let _ = check(&text);
    }

    #[test]
    fn no_number_panics(
        text in description(),
        key in 0usize..60,
        value in prop::sample::select(vec!["0", "1", "3", "-1", "64", "4096", "1e6", "1e30", "99999999", "nan"]),
    ) {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        let key = key % lines.len();
        if let Some((name, _)) = lines[key].clone().split_once('=') {
            lines[key] = format!("{name}= {value}");
        }
        let text = lines.join("\n");
        if let Ok(d) = check(&text) && d.capacity_mib <= 4096 {
            let mut device = SimDevice::new(&d, 1).unwrap();
            let shape = Workload { seed: 1, ios: 50, space: 16, sequential: 1, trims: 1 };
            run(&mut device, vec![ios(shape, d.capacity_mib << 20, d.sector_bytes)]);
        }
    }
}
