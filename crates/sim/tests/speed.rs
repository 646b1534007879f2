//! A small part of the speed benchmark (`cargo bench -p uflip-sim`): that
//! reclamation is at work where its speed is measured, and that a merge is
//! arithmetic and not a loop over pages. Loose bounds: a debug build on a busy
//! machine passes, a loop over pages does not.

#[path = "../benches/speed/measured.rs"]
mod measured;

use measured::{BAST, FAST, Measured, PAGE, fill, open, random_format, random_writes, timed};

const MIB: u64 = 1 << 20;

#[test]
fn page_mapping_is_measured_with_reclamation_at_work() {
    let text = PAGE.replace("capacity_mib = 32768", "capacity_mib = 512");
    let mut device = open(&text);
    let full = 400 * MIB;
    timed(&mut device, fill(full, 131_072));
    timed(&mut device, random_writes(full, 4096, 200_000, 1));
    let m = timed(&mut device, random_writes(full, 4096, 100_000, 2));
    println!("page: {:.3} M IO/s, write amplification {:.2}", m.mios_s(), m.write_amplification());
    assert!(m.write_amplification() > 1.3, "reclamation was not at work: {}", m.write_amplification());
    assert!(m.mios_s() > 0.05, "{} M IO/s", m.mios_s());
}

/// The fastest of three: other work on the machine only slows.
fn merges(text: &str, pages_per_block: u64) -> Measured {
    let text = text.replace("pages_per_block = 64", &format!("pages_per_block = {pages_per_block}"));
    let mut device = open(&text);
    timed(&mut device, random_format(32768 * MIB, 2048 * MIB, 1));
    let runs = (0..3).map(|i| timed(&mut device, random_writes(4096 * MIB, 32768, 20_000, i)));
    runs.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("three runs")
}

#[test]
fn a_merge_is_arithmetic() {
    for text in [BAST, FAST] {
        // Superblocks of 1 and 8 MiB.
        let (small, large) = (merges(text, 64), merges(text, 512));
        let work = large.operations_per_io() / small.operations_per_io();
        let time = large.seconds / small.seconds;
        println!(
            "{:.3} M IO/s, {work:.1} times the flash operations in {time:.1} times the time",
            small.mios_s()
        );
        assert!(work > 5.0 && time < work / 2.0, "{work} times the operations take {time} times as long");
        assert!(small.mios_s() > 0.03, "{} M IO/s", small.mios_s());
    }
}
