//! How fast the simulator is, in time of one core: IOs and flash operations a
//! second, beside the targets.
//!
//! `cargo bench -p uflip-sim --bench speed`

mod measured;

use measured::{BAST, FAST, Measured, PAGE, fill, open, random_format, random_writes, timed};

const GIB: u64 = 1 << 30;

fn tell(what: &str, m: &Measured, target: &str) {
    println!(
        "| {what} | {:.2} | {:.2} | {:.0} | {:.2} | {target} |",
        m.seconds,
        m.mios_s(),
        m.operations as f64 / m.seconds / 1e6,
        m.operations_per_io()
    );
}

fn page_mapping() {
    for gc in ["greedy", "d-choices", "cost-benefit"] {
        let mut device = open(&PAGE.replace("\"greedy\"", &format!("\"{gc}\"")));
        let full = 32 * GIB / 10 * 8 / 131_072 * 131_072;
        timed(&mut device, fill(full, 131_072));
        timed(&mut device, random_writes(full, 4096, 12_000_000, 1));
        let m = timed(&mut device, random_writes(full, 4096, 4_000_000, 2));
        let target = if gc == "greedy" { "2 M IO/s" } else { "" };
        let what = format!("page, {gc}, 80 % full: 4 KiB random writes, WA {:.2}", m.write_amplification());
        tell(&what, &m, target);
    }
}

fn log_blocks() {
    for (name, text) in [("BAST", BAST), ("FAST", FAST)] {
        let mut device = open(text);
        let m = timed(&mut device, random_format(32 * GIB, 32 * GIB, 1));
        tell(&format!("{name}: random format of 32 GiB"), &m, "2 s");
        for (kib, count) in [(32, 1_000_000), (4, 2_000_000)] {
            let m = timed(&mut device, random_writes(32 * GIB, kib << 10, count, 2));
            tell(&format!("{name}: {kib} KiB random writes"), &m, "1 M IO/s");
        }
    }
}

fn main() {
    println!("| 32 GiB | s | M IO/s | M flash operations/s | operations/IO | target |");
    println!("|---|---|---|---|---|---|");
    page_mapping();
    log_blocks();
    let m = timed(&mut open(PAGE), random_format(32 * GIB, 32 * GIB, 1));
    tell("page: random format of 32 GiB", &m, "2 s");
}
