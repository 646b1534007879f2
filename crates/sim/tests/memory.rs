//! Memory in proportion to the capacity: at most 10 bytes for each page of 4 KiB
//! with page mapping and up to 30 % of spare capacity (4 for the map, 4 and a bit
//! for each physical page), below half a byte with the FTLs that map superblocks.
//! Measured as the growth of a process, so that nothing is left out.

#[path = "../benches/speed/measured.rs"]
mod measured;

use measured::{BAST, FAST, Measured, PAGE, fill, open, random_format, random_writes, timed};

const GIB: u64 = 1 << 30;

/// Bytes of memory this process holds, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// A device of which every page was written, and a part again at random; and
/// its pages.
fn written(text: &str) -> (uflip_sim::SimDevice, u64) {
    let mut device = open(text);
    let capacity = uflip_device::Device::geometry(&device).capacity.0;
    let filled: Measured = timed(&mut device, fill(capacity, 131_072));
    assert_eq!(filled.ios * 131_072, capacity);
    timed(&mut device, random_format(capacity, GIB / 4, 1));
    let last = timed(&mut device, random_writes(capacity, 4096, 100_000, 2));
    assert!(last.programs >= last.ios && last.seconds > 0.0);
    assert!(last.operations_per_io() >= 1.0 && last.mios_s() > 0.0 && last.write_amplification() >= 1.0);
    (device, capacity / 4096)
}

/// The FTLs and the bytes a page that they may take.
fn cases() -> Vec<(&'static str, String, f64)> {
    let dftl = PAGE.replace("kind = \"page\"", "kind = \"dftl\"\nmap_cache_kib = 256");
    let spare = PAGE.replace("over_provisioning = 0.07", "over_provisioning = 0.3");
    let block =
        BAST.replace("kind = \"bast\"", "kind = \"block\"").replace("log_blocks = 8", "open_blocks = 8");
    let small = |text: &str| text.replace("capacity_mib = 32768", "capacity_mib = 8192");
    vec![
        ("page", small(PAGE), 10.0),
        ("page, 30 % spare", small(&spare), 10.0),
        ("dftl", small(&dftl), 10.0),
        ("bast", BAST.to_string(), 0.5),
        ("fast", FAST.to_string(), 0.5),
        ("block", block, 0.5),
    ]
}

/// Tells a process of its own which case it measures.
const CASE: &str = "UFLIP_MEMORY_CASE";

/// Bytes a page that a case takes, with `hog` bytes a page beside it, in a
/// process that has freed nothing before.
fn bytes_a_page(case: usize, hog: u64) -> f64 {
    let exe = std::env::current_exe().expect("this test's own path");
    let output = std::process::Command::new(exe)
        .args(["--exact", "memory_is_in_proportion_to_capacity", "--nocapture"])
        .env(CASE, format!("{case} {hog}"))
        .output()
        .expect("a process of its own");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|l| l.split_once("grew by ")).map(|(_, bytes)| bytes.to_string());
    line.and_then(|b| b.parse::<f64>().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn memory_is_in_proportion_to_capacity() {
    let Some(before) = resident() else {
        println!("skipped: this system has no /proc/self/status to tell how much memory is held");
        return;
    };
    if let Ok(what) = std::env::var(CASE) {
        let (case, hog) = what.split_once(' ').expect("case and bytes");
        let (case, hog): (usize, u64) = (case.parse().unwrap(), hog.parse().unwrap());
        let (device, pages) = written(&cases()[case].1);
        let hog = vec![1u8; (hog * pages) as usize];
        let grown = resident().unwrap_or(0).saturating_sub(before);
        println!("grew by {}", grown as f64 / pages as f64);
        drop((device, hog));
        return;
    }
    for (case, (name, _, most)) in cases().into_iter().enumerate() {
        let bytes = bytes_a_page(case, 0);
        println!("{name}: {bytes:.3} bytes a page of 4 KiB");
        assert!(bytes > 0.1 && bytes <= most, "{name}: {bytes} bytes a page, {most} allowed");
    }
    // The check finds what takes more.
    let hog = bytes_a_page(0, 2);
    assert!(hog > 10.0, "two bytes a page more went unnoticed: {hog}");
}
