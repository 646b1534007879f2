//! The same description, seed and IOs give the same records, bit for bit: as
//! they were when the figures below were noted, and from a clone as from the
//! device it was taken of.
//!
//! A figure that changes says that simulated times have changed. Where that was
//! meant, put the new one here, and say in the commit and the change log what
//! changed.

mod common;

use common::{Shape, ios, run};
use uflip_device::{Device, IoRecord, Nanos, Stop};
use uflip_sim::{SimDevice, check};

/// FNV-1a over all that a record says.
fn hash(records: &[IoRecord]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for r in records {
        let fields = [
            r.submit().0,
            r.response().0,
            r.offset().0,
            u64::from(r.size()),
            r.mode() as u64,
            u64::from(r.stream()),
        ];
        for byte in fields.iter().flat_map(|field| field.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

const ASYNC: &str =
    "[buffer]\nkib = 64\nline_kib = 4\ndestage = \"async\"\nbatch_lines = 3\npipelined = true\n";
const LAZY: &str = "[buffer]\nkib = 64\nline_kib = 8\ndestage = \"lazy\"\nbatch_lines = 4\n";
const DISK: &str = "[disk]\nrpm = 7200\ntrack_seek_ms = 0.8\nmean_seek_ms = 8.5\nfull_seek_ms = 18\n\
    tracks = 64\nsurfaces = 2\nzones = 4\ninner_outer_ratio = 0.6\nread_buffer_kib = 256\nwrite_buffer_kib = 128\n";

/// Name, FTL, buffer, hash.
const PINNED: [(&str, &str, &str, u64); 11] = [
    ("greedy", "kind = \"page\"\n", "", 0xd3aa_2c93_fbfa_6f5b),
    (
        "cost-benefit",
        "kind = \"page\"\ngc = \"cost-benefit\"\nhot_cold = true\n",
        ASYNC,
        0x1044_afc4_5a35_eb88,
    ),
    (
        "d-choices",
        "kind = \"page\"\ngc = \"d-choices\"\nidle_free_superblocks = 6\n",
        LAZY,
        0x6313_76a0_3dbf_3282,
    ),
    ("dftl", "kind = \"dftl\"\nmap_cache_kib = 4\n", "", 0x17d3_daba_d2ee_d727),
    ("bast", "kind = \"bast\"\nlog_blocks = 4\n", "", 0x2e30_b067_fcc3_6790),
    (
        "bast, batch",
        "kind = \"bast\"\nlog_blocks = 4\nmerge_batch = 2\npermuted_switch = true\n",
        ASYNC,
        0x3a87_721f_7cad_efdb,
    ),
    (
        "bast static",
        "kind = \"bast\"\nlog_blocks = 2\nwear_levelling = \"static\"\n",
        "",
        0x495f_d614_d436_2513,
    ),
    ("fast", "kind = \"fast\"\nlog_kib = 96\nsequential_logs = 2\n", "", 0x65bb_6ade_a45d_6ccf),
    ("fast lazy", "kind = \"fast\"\nlog_kib = 64\n", LAZY, 0x4193_0659_73a6_fc6a),
    ("block", "kind = \"block\"\nopen_blocks = 3\n", "", 0x25dd_8e24_aa7a_b463),
    ("disk", "", DISK, 0x5ff5_8905_a2c6_5935),
];

fn open(ftl: &str, rest: &str) -> SimDevice {
    let flash = "[geometry]\nchannels = 2\nchips_per_channel = 2\npages_per_block = 16\npage_bytes = 2048\n\
        [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\nlog_switch_us = 50\n";
    let ftl =
        if ftl.is_empty() { String::new() } else { format!("{flash}[ftl]\nsuperblock_dies = 2\n{ftl}") };
    let text = format!(
        "name = \"pinned\"\ncapacity_mib = 2\n\
         [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
         queue_depth = 2\nread_ahead_kib = 64\n[noise]\nshare = 0.05\n{rest}{ftl}"
    );
    SimDevice::new(&check(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), 11).unwrap()
}

/// Two streams of random IO of all modes, over the device and over a part.
fn work(device: &mut SimDevice, seed: u64) -> Vec<IoRecord> {
    let shape = |seed, space| Shape { seed, ios: 1500, space, sequential: 2, trims: 1 };
    let streams = vec![ios(shape(seed, 16), 2 << 20, 512), ios(shape(seed + 1, 5), 2 << 20, 512)];
    run(device, streams)
}

#[test]
fn records_are_what_they_were() {
    let mut changed = String::new();
    for (name, ftl, rest, pinned) in PINNED {
        let found = hash(&work(&mut open(ftl, rest), 1));
        if found != pinned {
            changed += &format!("{name}: 0x{found:016x}\n");
        }
    }
    assert!(changed.is_empty(), "simulated times have changed; see the head of this file\n{changed}");
}

#[test]
fn a_snapshot_of_an_enforced_state_goes_on_as_the_device_would() {
    for (name, ftl, rest, _) in PINNED {
        let mut device = open(ftl, rest);
        work(&mut device, 1);
        let snapshot = device.clone();
        let first = work(&mut device, 5);
        device.idle(Nanos::from_secs(1), &Stop::new());
        assert!(snapshot.now() < device.now(), "{name}: the snapshot aged with the device");
        // As often as wanted, from the same state.
        for _ in 0..2 {
            let mut again = snapshot.clone();
            assert!(work(&mut again, 5) == first, "{name}: another answer from the same state");
            assert_eq!(again.flash_ops().is_some(), name != "disk");
        }
        let mut other = snapshot.clone();
        assert!(work(&mut other, 7) != first, "{name}: other IOs, same records");
    }
}

/// After a return to a snapshot the same IOs give the same records, and the
/// clock has gone on.
#[test]
fn a_snapshot_is_the_device_as_it_was() {
    use uflip_device::{Arrival, Bytes, Device, Io, KeepAll, Mode, RunLimits, Snapshot, Stop, Stream};
    let description = uflip_sim::catalogue::get("mtron").expect("in the catalogue");
    let mut device = uflip_sim::SimDevice::new(&description, 1).expect("valid");
    let stop = Stop::new();
    let writes = |device: &mut uflip_sim::SimDevice, seed: u64| {
        let mut rng = uflip_device::rng::Rng::new(seed);
        let io = move |_| Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(rng.below(1 << 15) << 15),
            size: 32 << 10,
            mode: Mode::Write,
            pattern: 0,
        };
        let stream: Stream = Box::new((0..2_000).map(io));
        let keep = KeepAll::new(4096);
        device.run(vec![stream], &keep, RunLimits { time: None, stop: &stop }).expect("no error");
        keep.records()
    };
    assert!(!device.snapshot(Snapshot::Return), "there is none yet");
    writes(&mut device, 1);
    assert!(device.snapshot(Snapshot::Take));
    let first = writes(&mut device, 2);
    let other = writes(&mut device, 2);
    assert_ne!(first, other, "the device has a memory");
    let before = device.now();
    for _ in 0..2 {
        assert!(device.snapshot(Snapshot::Return));
        assert!(device.now() >= before);
        assert_eq!(writes(&mut device, 2), first);
    }
    assert!(device.now() > before);
}
