//! Known answers of the write cost model and of a trace's character, through the
//! command as a user types it.

use crate::support::{expect, skipped};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn json(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&expect(folder, 0, args).0).unwrap()
}

/// A time of `uflip sim show`, in ms: `switch      1.5 ms for …`.
fn described_ms(show: &str, key: &str) -> f64 {
    let line = show.lines().find(|line| line.starts_with(key)).expect("the device has such merges");
    let words: Vec<&str> = line[key.len()..].split_whitespace().collect();
    assert_eq!(words[1], "ms", "{line}");
    words[0].parse().unwrap()
}

/// Switch and full merges of the suite's own runs, against what the simulator
/// says that they cost.
#[test]
fn switch_and_full_merges_cost_what_the_simulator_says() {
    for name in ["mtron-32", "sandisk"] {
        let folder = tempfile::tempdir().unwrap();
        let (folder, target) = (folder.path(), format!("sim:{name}"));
        let args =
            ["run", &target, "--suite", "write-cost", "--only", "cost,order", "--seed", "1", "-o", "out"];
        let report = json(folder, &[&args[..], &["--json"]].concat());
        let (show, _) = expect(folder, 0, &["sim", "show", name]);
        for (kind, key) in [("switch", "switch"), ("full", "full merge")] {
            let found = &report["merge"][kind];
            let (ours, truth) = (number(&found["merge_ns"]) / 1e6, described_ms(&show, key));
            println!("{name}: a {kind} merge {ours:.3} ms, by its description {truth} ms");
            assert!((ours / truth - 1.0).abs() < 0.2, "{name}, {kind}: {ours} of {truth}: {found:#}");
            let fitted = number(&found["fit"]["t_merge_ns"]) / 1e6;
            assert!((fitted / truth - 1.0).abs() < 0.25, "{name}, {kind}: line at {fitted} of {truth}");
        }
        let ordered = report["merge"]["samples"].as_array().unwrap().iter().filter(|s| s["in_order"] == true);
        assert_eq!(ordered.count(), 4);
        assert!(number(&report["merge"]["holds"]) >= 13.0, "{:#}", report["merge"]["holds"]);
    }
}

/// A device without merges has none.
#[test]
fn a_page_map_has_no_merges() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["run", "sim:nvme-tlc", "--suite", "write-cost", "--only", "cost,order", "--seed", "1", "-o", "out"];
    let report = json(folder.path(), &[&args[..], &["--json"]].concat());
    assert_eq!((&report["merge"]["switch"], &report["merge"]["full"]), (&Value::Null, &Value::Null));
}

/// f is told by the given logical block, else the measured, else 4 MiB, and
/// which it was is said everywhere.
#[test]
fn the_logical_block_is_the_measured_one_where_none_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args = ["logical-block", "sim:samsung-64", "--bytes", "1G", "--seed", "1", "-o", "out", "--json"];
    assert_eq!(json(folder, &args)["logical_block_bytes"], 8 << 20);
    // A sync of two writes, 4 MiB apart, in one logical block of 8 MiB.
    let trace = "fio version 2 iolog\n/d write 0 4096\n/d write 4194304 4096\n/d sync 0 0\n";
    std::fs::write(folder.join("t.log"), trace).unwrap();
    let args = ["predict", "out", "--trace", "t.log"];
    let facts = json(folder, &[&args[..], &["--json"]].concat());
    assert_eq!(facts["models"]["logical_block_source"], "measured");
    assert_eq!(
        (&facts["character"]["focal_factor"], &facts["character"]["logical_blocks"]),
        (&1.0.into(), &1.into())
    );
    assert!(expect(folder, 0, &args).0.contains("of 8M (measured)"));
    let facts = json(folder, &[&args[..], &["--logical-block", "4M", "--json"]].concat());
    assert_eq!(
        (&facts["models"]["logical_block_source"], &facts["character"]["focal_factor"]),
        (&"given".into(), &0.5.into())
    );
    let profile = std::fs::read_to_string(folder.join("out/profile.json")).unwrap();
    let profile: Value = serde_json::from_str(&profile).unwrap();
    assert_eq!(profile["cost_models"]["logical_block_bytes"], 8 << 20);
    // A suite takes it from the folder, if it is the same device's.
    let suite = |target| {
        ["run", target, "--suite", "write-cost-short", "--logical-block", "out", "-o", "cost", "--seed", "1"]
    };
    let (_, err) = expect(folder, 2, &suite("sim:sandisk"));
    assert!(err.contains("that of sim:samsung-64"), "{err}");
    let report = json(folder, &[&suite("sim:samsung-64")[..], &["--json"]].concat());
    assert_eq!(report["merge"]["logical_block_bytes"], 8 << 20);
    let (_, err) = expect(folder, 2, &["job", "null:", "--suite", "write-cost", "--logical-block", "cost"]);
    assert!(err.contains("uflip logical-block null:"), "{err}");
    // Without the procedure's file the profile still knows it.
    std::fs::remove_file(folder.join("out/logical-block.json")).unwrap();
    let facts = json(folder, &["predict", "out", "--trace", "t.log", "--json"]);
    assert_eq!(
        (&facts["models"]["logical_block_source"], &facts["character"]["focal_factor"]),
        (&"profile".into(), &1.0.into())
    );
    // A job: assumed, and by the given one its switch merge is the true 1.5 ms.
    let job = "cost rw bs=16K..1M*4 sync=1 count=320 before=fill(1M)\norder sw bs=16K..1M*4 sync=1 bytes=64M start=0\n";
    for (set, source, switch_ms) in [("", "assumed", 0.75), ("set logical=8M\n", "given", 1.5)] {
        std::fs::write(folder.join("a.job"), format!("{set}{job}")).unwrap();
        let args = ["job", "sim:samsung-64", "a.job", "-o", source, "--seed", "1", "--json"];
        let merge = &json(folder, &args)["merge"];
        assert_eq!(merge["logical_block_source"], source);
        let found = number(&merge["switch"]["merge_ns"]) / 1e6;
        assert!((found / switch_ms - 1.0).abs() < 0.1, "{source}: {found} ms of {switch_ms}");
    }
}

/// Runs fio in `folder`; false (said aloud) where there is none.
fn fio(folder: &Path, args: &[&str]) -> bool {
    let Ok(out) = Command::new("fio").current_dir(folder).args(args).output() else {
        skipped("no fio");
        return false;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    true
}

fn character(folder: &Path, log: &str) -> Value {
    std::fs::write(folder.join("a.job"), "plain rr,rw bs=4K,64K count=50").unwrap();
    if !folder.join("out").exists() {
        expect(folder, 0, &["job", "null:8M", "a.job", "-o", "out"]);
    }
    json(folder, &["predict", "out", "--trace", log, "--logical-block", "4M", "--json"])["character"].clone()
}

/// Four streams side by side, 16 MiB each, by fio's own logs.
#[test]
fn four_sequential_streams_of_fio_are_four() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut job = String::from("[global]\nfilename=x.bin\nrw=write\nbs=64k\nsize=16m\nrate_iops=1000\n");
    (0..4).for_each(|i| job += &format!("[s{i}]\noffset={}m\nwrite_iolog=s{i}.log\n", i * 16));
    std::fs::write(folder.join("a.fio"), job).unwrap();
    if !fio(folder, &["a.fio"]) {
        return;
    }
    let read = |i: u64| std::fs::read_to_string(folder.join(format!("s{i}.log"))).unwrap();
    std::fs::write(folder.join("all.log"), (0..4).map(read).collect::<String>()).unwrap();
    let c = character(folder, "all.log");
    assert_eq!(
        (&c["writes"], &c["sequential_streams"], &c["logical_blocks"]),
        (&1024.into(), &4.into(), &16.into())
    );
    assert!((number(&c["sequential_share"]) - 1020.0 / 1024.0).abs() < 1e-9, "{c:#}");
    assert_eq!(
        (&c["sizes"]["65536"], &c["aligned_share"], &c["focal_factor"]),
        (&1024.into(), &1.0.into(), &1.0.into())
    );
    let merges = |logs: &str| number(&c["merges_by_log_blocks"][logs]);
    // Side by side one log block changes hands all the time; four are enough.
    assert!(merges("1") > 300.0, "the streams follow each other: {c:#}");
    assert!((12.0..40.0).contains(&merges("4")), "{c:#}");
    assert_eq!((merges("8"), merges("16"), merges("32")), (8.0, 0.0, 0.0));
}

/// 4 KiB at random over 1 GiB, synced after each eight: 256 logical blocks.
#[test]
fn random_writes_of_fio_have_the_focal_factor_of_chance() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args =
        ["--name=r", "--filename=x.bin", "--rw=randwrite", "--bs=4k", "--number_ios=4000", "--size=1g"];
    if !fio(folder, &[&args[..], &["--fdatasync=8", "--write_iolog=r.log", "--fallocate=none"]].concat()) {
        return;
    }
    let c = character(folder, "r.log");
    assert_eq!(
        (&c["writes"], &c["syncs"], &c["sectors_per_sync"]),
        (&4000.into(), &500.into(), &64.0.into())
    );
    // The mean of 1 over the blocks that 8 writes into 256 touch, from 100,000 draws.
    assert!((number(&c["focal_factor"]) / 0.12699 - 1.0).abs() < 0.01, "{c:#}");
    assert!(number(&c["sequential_share"]) < 0.01 && c["sequential_streams"] == 0, "{c:#}");
    assert_eq!((&c["logical_blocks"], &c["aligned_share"]), (&256.into(), &1.0.into()));
    for logs in [1u32, 2, 4, 8, 16, 32] {
        let expected = 4000.0 * (1.0 - f64::from(logs) / 256.0);
        let found = number(&c["merges_by_log_blocks"][logs.to_string()]);
        assert!((found / expected - 1.0).abs() < 0.02, "{logs} log blocks: {found} of {expected}");
    }
}
