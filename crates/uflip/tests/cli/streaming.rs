//! Runs longer than the memory set aside: it stays bounded, and handing full
//! chunks of records over does not show in the response times.

use crate::support::{text, uflip};
use std::process::Stdio;
use uflip_store::read_records;
use uflip_store::recorder::CHUNK_RECORDS;

const IOS: usize = 4_000_000;

/// The largest resident size a process came to, in KiB, sampled until it ends.
pub fn peak_kib(child: &mut std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0);
        peak = peak.max(kib);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn memory_is_bounded_and_the_hand_over_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let ios = IOS.to_string();
    let args =
        ["pattern", "null:", "--base", "RR", "--io-size", "4K", "--io-count", &ios, "--records", "r.parquet"];
    let mut command = uflip();
    command.current_dir(folder.path()).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let peak = peak_kib(&mut child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!((20 << 10..64 << 10).contains(&peak), "peak memory {peak} KiB");

    let records = read_records(&folder.path().join("r.parquet")).unwrap();
    assert_eq!(records.len(), IOS);
    // fio's growing log makes spikes at IO 1024, 2048, …; here nothing may
    // stand out at the powers of two or where a chunk was exchanged.
    let response = |i: usize| records[i].response().0;
    let all = median((0..IOS).map(response).collect());
    let after_exchange = (1..IOS / CHUNK_RECORDS).map(|n| response(n * CHUNK_RECORDS)).collect();
    let at_powers = (10..21).map(|e| response(1 << e)).collect();
    for (name, here) in
        [("after a hand-over", median(after_exchange)), ("at powers of two", median(at_powers))]
    {
        assert!(here <= all * 4 + 100, "{here} ns {name}, {all} ns overall");
    }
}
