//! The checks find what they are there for: each planted bug makes one fail,
//! and none fails without a bug.

use crate::planted::{Bug, plant};
use crate::{SimDevice, check};
use std::panic::{AssertUnwindSafe, catch_unwind};
use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Device, Io, KeepAll, Mode, Nanos, RunLimits, Stop};

fn text(ftl: &str, buffer: &str) -> String {
    format!(
        "name = \"small\"\ncapacity_mib = 1\n\
         [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
         [geometry]\nchannels = 2\nchips_per_channel = 2\npages_per_block = 8\npage_bytes = 2048\n\
         [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n{buffer}[ftl]\n{ftl}\n"
    )
}

fn io(mode: Mode, at: u64, size: u32, wait_ns: u64) -> Io {
    Io { arrival: Arrival::After(Nanos(wait_ns)), offset: Bytes(at), size, mode, pattern: 0 }
}

/// The whole device once, then random, sequential, reverse and local writes
/// with trims and flushes, all but the last quarter of the device.
fn ios(seed: u64) -> Vec<Io> {
    let mut rng = Rng::new(seed);
    let mut all: Vec<Io> = (0..16).map(|i| io(Mode::Write, i * 65536, 65536, 0)).collect();
    for round in 0..96u64 {
        let base = rng.below(12) * 65536;
        for i in 0..32u64 {
            let (at, wait) = match round % 8 {
                0 | 4 if i < 20 => (base + i * 2048, 0),
                1 | 5 => (base + i * 2048, 0),
                2 | 6 => (rng.below(384) * 2048, rng.below(3) * 5_000_000),
                3 => (base + (31 - i) * 2048, 0),
                _ => (base + rng.below(32) * 2048, 0),
            };
            let mode = if rng.below(16) == 0 { Mode::Trim } else { Mode::Write };
            all.push(io(mode, at, 2048, wait));
        }
        all.push(io(Mode::Flush, 0, 0, 0));
    }
    all
}

/// Runs [`ios`] and audits after every merge and reclamation.
fn exercise(text: &str, seed: u64) -> Result<(), String> {
    let d = check(text).map_err(|e| e.to_string())?;
    let mut device = SimDevice::new(&d, 3).map_err(|e| e.to_string())?;
    device.watch();
    let stop = Stop::new();
    for io in ios(seed) {
        let (before, flush) = (device.merges(), io.mode == Mode::Flush);
        let limits = RunLimits { time: None, stop: &stop, sequence: None };
        device
            .run(vec![Box::new(std::iter::once(io))], &KeepAll::new(1), limits)
            .map_err(|e| e.to_string())?;
        if flush || device.merges() != before {
            device.audit()?;
        }
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
        Bug::ReclaimsTooEarly => &["before it was decided on"],
        Bug::FullIsReclaimed => &["frees nothing"],
        Bug::TrimIsForgotten => &["newest write None, map finds Some"],
        Bug::BlockIsFreeAndData => &["two things at once"],
        Bug::LevelledIsNotMapped => &["newest write", "superblocks in the books", "two things at once"],
        Bug::LineIsForgotten => &["never programmed"],
        Bug::ArrayRunsAhead => &["ran ahead"],
    }
}

/// Each bug and the FTL and buffer it lives in.
fn cases() -> Vec<(Bug, String)> {
    let page = "kind = \"page\"";
    let bast = "kind = \"bast\"\nlog_blocks = 3";
    let fast = "kind = \"fast\"\nlog_kib = 128\nsequential_logs = 1";
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
        (Bug::ReclaimsTooEarly, text("kind = \"page\"\nidle_free_superblocks = 9", "")),
        (Bug::FullIsReclaimed, text(page, "")),
        (Bug::TrimIsForgotten, text(page, "")),
        (Bug::BlockIsFreeAndData, text(bast, "")),
        (Bug::LevelledIsNotMapped, text(&format!("{bast}\nwear_levelling = \"static\""), "")),
        (
            Bug::LevelledIsNotMapped,
            text(&format!("{fast}\nwear_levelling = \"static\""), "").replace("128", "32"),
        ),
        (Bug::LevelledIsNotMapped, text(&format!("{block}\nwear_levelling = \"static\""), "")),
        (Bug::MovedPageIsNotMapped, text(&format!("{page}\nwear_levelling = \"static\""), "")),
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
