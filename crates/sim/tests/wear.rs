//! Wear levelling: what is written once and left alone does not keep its blocks
//! from their share of erases, whichever FTL.

use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Device, Io, KeepAll, Mode, RunLimits, Stop};
use uflip_sim::{SimDevice, check};

const KINDS: [&str; 5] = [
    "kind = \"page\"\nover_provisioning = 0.3\n",
    "kind = \"dftl\"\nmap_cache_kib = 8\nover_provisioning = 0.3\n",
    "kind = \"bast\"\nlog_blocks = 3\n",
    "kind = \"fast\"\nlog_kib = 64\n",
    "kind = \"block\"\nopen_blocks = 2\n",
];

/// 2 MiB in 32 superblocks of 64 KiB.
fn open(ftl: &str, levelling: &str) -> SimDevice {
    let text = format!(
        "name = \"worn\"\ncapacity_mib = 2\n\
         [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
         [geometry]\nchannels = 2\nchips_per_channel = 1\npages_per_block = 16\npage_bytes = 2048\n\
         [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n\
         [ftl]\n{ftl}wear_levelling = \"{levelling}\"\n"
    );
    SimDevice::new(&check(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), 1).unwrap()
}

fn write(device: &mut SimDevice, offsets: Vec<u64>, size: u32) {
    let ios = offsets.into_iter().map(move |at| Io {
        arrival: Arrival::CONSECUTIVE,
        offset: Bytes(at),
        size,
        mode: Mode::Write,
        pattern: 0,
    });
    let limits = RunLimits { time: None, stop: &Stop::new(), sequence: None };
    device.run(vec![Box::new(ios)], &KeepAll::new(1 << 10), limits).unwrap();
}

/// Least and greatest erase count after the whole was written once and its
/// first quarter `writes` times at random; and superblocks levelled.
fn wear(ftl: &str, levelling: &str, writes: u64) -> (u32, u32, u64) {
    let mut device = open(ftl, levelling);
    device.watch();
    write(&mut device, (0..32).map(|i| i * 65536).collect(), 65536);
    let mut rng = Rng::new(1);
    write(&mut device, (0..writes).map(|_| rng.below(256) * 2048).collect(), 2048);
    assert_eq!(device.audit(), Ok(()), "{ftl}");
    let counts = device.erase_counts();
    let levelled = device.merges().map_or(0, |m| m.levelled);
    (counts.iter().copied().min().unwrap(), counts.iter().copied().max().unwrap(), levelled)
}

#[test]
fn static_levelling_keeps_erase_counts_together_and_dynamic_cannot() {
    for ftl in KINDS {
        let writes = if ftl.contains("page") || ftl.contains("dftl") { 60_000 } else { 6000 };
        let (least, most, moved) = wear(ftl, "dynamic", writes);
        assert!(least <= 1 && moved == 0, "{ftl}: blocks of cold data were erased {least} times");
        let (static_least, static_most, moved) = wear(ftl, "static", writes);
        println!("{ftl}dynamic {least} to {most}, static {static_least} to {static_most}, {moved} moved\n");
        assert!(moved > 0 && static_most < most, "{ftl}: {static_most} of {most} erases");
        // The gap that starts a move, and what wears on between two looks.
        assert!(static_most - static_least <= 40, "{ftl}: {static_least} to {static_most}");
    }
}
