//! The checks find what they are there for: each planted bug makes one fail,
//! and none fails without a bug.

use crate::planted::{Bug, plant};
use crate::{SimDevice, check};
use std::panic::{AssertUnwindSafe, catch_unwind};
use uflip_device::rng::Rng;
use uflip_device::{Bytes, Chunk, Device, Io, Mode, Nanos, Recorder, RunLimits, Stop};

struct Drop;

impl Recorder for Drop {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(64)
    }
    fn finish(&self, _: Chunk) {}
}

fn text(ftl: &str, buffer: &str) -> String {
    format!(
        "name = \"small\"\ncapacity_mib = 1\n\
         [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
         [geometry]\nchannels = 2\nchips_per_channel = 2\npages_per_block = 8\npage_bytes = 2048\n\
         [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n{buffer}[ftl]\n{ftl}\n"
    )
}

/// Random, sequential and reverse writes with audits in between.
fn exercise(text: &str, seed: u64) -> Result<(), String> {
    let d = check(text).map_err(|e| e.to_string())?;
    let mut device = SimDevice::new(&d, 3).map_err(|e| e.to_string())?;
    device.watch();
    let mut rng = Rng::new(seed);
    for round in 0..60u64 {
        let base = rng.below(16) * 65536;
        let ios = (0..32u64).map(|i| {
            let (at, wait) = match round % 4 {
                0 => (base + i * 2048, 0),
                1 => (base + (31 - i) * 2048, 0),
                2 => (rng.below(512) * 2048, rng.below(3) * 5_000_000),
                _ => (base + rng.below(32) * 2048, 0),
            };
            let io = Io { wait: Nanos(wait), offset: Bytes(at), size: 2048, mode: Mode::Write, pattern: 0 };
            if i == 31 { Io { offset: Bytes(0), size: 0, mode: Mode::Flush, ..io } } else { io }
        });
        let ios: Vec<Io> = ios.collect();
        let stop = Stop::new();
        let limits = RunLimits { time: None, stop: &stop };
        device.run(vec![Box::new(ios.into_iter())], &Drop, limits).map_err(|e| e.to_string())?;
        device.audit()?;
    }
    Ok(())
}

const ASYNC: &str = "[buffer]\nkib = 16\nline_kib = 2\ndestage = \"async\"\nbatch_lines = 2\n";

/// What the checks that find a bug say: whichever is the first to.
fn findings(bug: Bug) -> &'static [&'static str] {
    match bug {
        Bug::OldCopyStaysValid => &["units mapped"],
        Bug::MovedPageIsNotMapped => &["is mapped to page"],
        Bug::SwitchOutOfOrder => &["copied erased page", "newest write"],
        Bug::MergeTakesOldCopy => &["newest write", "copied erased page"],
        Bug::BlockIsLost => &["superblocks in the books"],
        Bug::SequentialLogWins => &["newest write", "programmed twice"],
        Bug::GapIsNotCopied => &["newest write", "copied erased page"],
        Bug::EvictedStaysCached => &["map pages cached"],
        Bug::LineIsForgotten => &["never programmed"],
        Bug::ArrayRunsAhead => &["ran ahead"],
    }
}

/// Each bug and the FTL and buffer it lives in.
fn cases() -> Vec<(Bug, String)> {
    let page = "kind = \"page\"";
    let bast = "kind = \"bast\"\nlog_blocks = 3";
    let fast = "kind = \"fast\"\nlog_kib = 64\nsequential_logs = 2";
    let block = "kind = \"block\"\nopen_blocks = 2";
    let dftl = "kind = \"dftl\"\nmap_cache_kib = 4\nover_provisioning = 0.3";
    vec![
        (Bug::OldCopyStaysValid, text(page, "")),
        (Bug::MovedPageIsNotMapped, text(page, "")),
        (Bug::SwitchOutOfOrder, text(bast, "")),
        (Bug::MergeTakesOldCopy, text(bast, "")),
        (Bug::BlockIsLost, text(bast, "")),
        (Bug::SequentialLogWins, text(fast, "")),
        (Bug::GapIsNotCopied, text(block, "")),
        (Bug::EvictedStaysCached, text(dftl, "").replace("page_bytes = 2048", "page_bytes = 512")),
        (Bug::LineIsForgotten, text(bast, ASYNC)),
        (Bug::ArrayRunsAhead, text(bast, ASYNC)),
    ]
}

#[test]
fn sound_devices_pass() {
    for (bug, text) in cases() {
        assert_eq!(exercise(&text, 5), Ok(()), "the device for {bug:?}\n{text}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for (bug, text) in cases() {
        plant(Some(bug));
        let found = catch_unwind(AssertUnwindSafe(|| exercise(&text, 5)));
        plant(None);
        // Found by the check that is there for it, not by a panic elsewhere.
        let right = |message: &String| findings(bug).iter().any(|part| message.contains(part));
        match found {
            Ok(Err(message)) if right(&message) => {}
            Ok(other) => missed.push(format!("{bug:?}: {other:?}")),
            Err(_) => missed.push(format!("{bug:?} ended in a panic")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_clone_goes_its_own_way() {
    let d = check(&text("kind = \"page\"", "")).unwrap();
    let mut device = SimDevice::new(&d, 3).unwrap();
    let write = |n: u64| {
        (0..n).map(|i| Io {
            wait: Nanos::ZERO,
            offset: Bytes(i * 2048),
            size: 2048,
            mode: Mode::Write,
            pattern: 0,
        })
    };
    let stop = Stop::new();
    let limits = RunLimits { time: None, stop: &stop };
    device.run(vec![Box::new(write(20))], &Drop, limits).unwrap();
    let snapshot = device.clone();
    let before = snapshot.now();
    device.run(vec![Box::new(write(50))], &Drop, limits).unwrap();
    assert_eq!(snapshot.now(), before);
    assert!(device.now() > before);
    assert_eq!(snapshot.flash_ops().unwrap().programs, 20);
}
