//! The same description, seed and IOs give the same records, bit for bit: as
//! they were when the figures below were noted, and from a clone as from the
//! device it was taken of.
//!
//! A figure that changes says that simulated times have changed. Where that was
//! meant, put the new one here, and say in the commit and the change log what
//! changed.

mod common;

use common::{Workload, ios, run};
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
        [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n";
    let logs = ["bast", "fast", "block"].iter().any(|kind| ftl.contains(&format!("kind = \"{kind}\"")));
    let switch = if logs { "log_switch_us = 50\n" } else { "" };
    let (ftl, ahead) = match ftl {
        "" => (String::new(), ""),
        ftl => (format!("{flash}{switch}[ftl]\nsuperblock_dies = 2\n{ftl}"), "read_ahead_kib = 64\n"),
    };
    let text = format!(
        "name = \"pinned\"\ncapacity_mib = 2\n\
         [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
         queue_depth = 2\n{ahead}[noise]\nshare = 0.05\n{rest}{ftl}"
    );
    SimDevice::new(&check(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), 11).unwrap()
}

/// Two streams of random IO of all modes, over the device and over a part.
fn work(device: &mut SimDevice, seed: u64) -> Vec<IoRecord> {
    let shape = |seed, space| Workload { seed, ios: 1500, space, sequential: 2, trims: 1 };
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

/// The records of each device of the catalogue under the same work.
const CATALOGUE: [(&str, u64); 20] = [
    ("memoright", 0x9eb2_90df_0702_1fe7),
    ("mtron", 0xcb6e_f697_1162_7c8d),
    ("samsung", 0xfd0a_5132_bc35_61ee),
    ("transcend-module", 0x01b0_4bd3_c2d5_0dfc),
    ("transcend-mlc", 0xd6bf_1097_01c0_75c2),
    ("kingston-dthx", 0xfe93_dd2a_e7a7_c83b),
    ("kingston-dti", 0x907a_89b3_e5fa_3d5d),
    ("gskill", 0xd6bf_1097_01c0_75c2),
    ("transcend-16", 0xf281_3e40_9fd2_1ce7),
    ("corsair", 0x66c8_4097_40aa_7726),
    ("kingston-sd", 0x4100_055a_4faa_3d11),
    ("sandisk", 0x1678_6e69_8c06_d8f6),
    ("samsung-64", 0x325b_7a61_1c46_f91c),
    ("mtron-32", 0x0c93_e04a_7224_3365),
    ("toshiba-transmemory-1G", 0xb991_2849_5f27_65e5),
    ("hama-ssd-32G", 0x1088_28af_2e8c_e6af),
    ("kingston-dt-elite-hs-2G", 0x1477_0140_661e_d0e2),
    ("ibm-deskstar-hdd-60G", 0xb587_d6a7_405a_c754),
    ("seagate-barracuda-7200.11-hdd-500G", 0x0ea5_dfc9_2004_6f7c),
    ("nvme-tlc", 0x1267_98f0_ee92_3082),
];

#[test]
fn records_of_the_catalogue_are_what_they_were() {
    let names: Vec<&str> = uflip_sim::catalogue::names().collect();
    let mut found = String::new();
    for name in &names {
        let mut device = uflip_sim::open(name, 3).unwrap();
        let capacity = Device::geometry(&device).capacity.0;
        // A small stretch often enough that logs fill and merge, and the whole device.
        let near = ios(Workload { seed: 1, ios: 3000, space: 16, sequential: 3, trims: 1 }, 8 << 20, 4096);
        let far = ios(Workload { seed: 2, ios: 1500, space: 16, sequential: 1, trims: 0 }, capacity, 512);
        let hash = hash(&run(&mut device, vec![near, far]));
        if CATALOGUE.iter().find(|(of, _)| of == name).is_none_or(|(_, pinned)| *pinned != hash) {
            found += &format!("{name}: 0x{hash:016x}\n");
        }
    }
    assert!(found.is_empty(), "simulated times have changed; see the head of this file\n{found}");
    assert_eq!(names.len(), CATALOGUE.len());
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
        device
            .run(vec![stream], &keep, RunLimits { time: None, stop: &stop, sequence: None })
            .expect("no error");
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
