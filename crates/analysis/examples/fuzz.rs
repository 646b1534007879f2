//! Fuzzes the parsers of job files, fio's job files and traces for some minutes.
//!
//! ```text
//! cargo run --release -p uflip-analysis --example fuzz -- MINUTES [SEED] [CORPUS]
//! ```
//! How: texts of the corpus folder are cut, joined and changed at random by a
//! seeded generator; each goes through every parser, and what is read goes on to
//! expansion, printing and the trace's character. A panic leaves its text in
//! CORPUS/crashes. Ends with the number of texts and the peak memory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uflip_analysis::trace;
use uflip_device::rng::Rng;
use uflip_device::{Bytes, Geometry};
use uflip_measure::job::{self, Assumed};

/// Everything that one text is put through; true where some parser took it.
fn digest(text: &str) -> bool {
    let geometry = Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };
    let mut taken = false;
    for parsed in [job::parse(text).ok(), job::fio::from_fio(text).ok()].into_iter().flatten() {
        taken = true;
        job::parse(&parsed.to_string()).expect("what is printed is read back");
        // Large plans only now and then: they are bounded, but slow.
        let runs: u64 = parsed.lines.iter().map(|l| u64::from(l.repeats)).sum();
        if runs < 100
            && parsed.lines.iter().all(|l| l.endurance.is_none())
            && let Ok(planned) = job::expand(&parsed, "t", geometry, 1)
        {
            job::costs(&parsed, &planned, Assumed::default());
        }
    }
    if let Ok(trace) = trace::parse(text) {
        taken = true;
        trace::character(&trace, Bytes(4 << 20));
    }
    taken
}

fn mutate(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let pick = |rng: &mut Rng| &corpus[rng.below(corpus.len() as u64) as usize];
    let mut text = pick(rng).clone();
    for _ in 0..=rng.below(6) {
        let at = rng.below(text.len() as u64 + 1) as usize;
        match rng.below(5) {
            0 if at < text.len() => text[at] = (rng.next_u64() & 0x7f) as u8,
            1 => text.truncate(at),
            2 => {
                let other = pick(rng);
                let from = rng.below(other.len() as u64 + 1) as usize;
                let to = (from + rng.below(40) as usize).min(other.len());
                text.splice(at..at, other[from..to].iter().copied());
            }
            3 => {
                let words: [&[u8]; 8] =
                    [b"18446744073709551615", b"(", b")", b"..", b"\xc3\xa9", b"0", b"-", b"\n"];
                text.splice(at..at, words[rng.below(8) as usize].iter().copied());
            }
            _ => {
                let to = (at + rng.below(10) as usize).min(text.len());
                text.drain(at..to);
            }
        }
    }
    text.truncate(1 << 16);
    text
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let minutes: f64 = args.get(1).and_then(|a| a.parse().ok()).unwrap_or(1.0);
    let seed = args.get(2).and_then(|a| a.parse().ok()).unwrap_or(1);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz-corpus");
    let folder = args.get(3).map_or(default, PathBuf::from);
    let mut corpus = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.is_file() {
            corpus.push(std::fs::read(path)?);
        }
    }
    assert!(!corpus.is_empty(), "{} is empty", folder.display());
    std::panic::set_hook(Box::new(|_| {}));
    let mut rng = Rng::new(seed);
    let (began, mut texts, mut taken, mut crashes) = (Instant::now(), 0u64, 0u64, 0u64);
    while began.elapsed() < Duration::from_secs_f64(minutes * 60.0) {
        let bytes = mutate(&corpus, &mut rng);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match std::panic::catch_unwind(|| digest(&text)) {
            Ok(true) => {
                taken += 1;
                // What a parser takes is a better start than what none does.
                if corpus.len() < 4096 && rng.below(16) == 0 {
                    corpus.push(bytes);
                }
            }
            Ok(false) => {}
            Err(_) => {
                crashes += 1;
                std::fs::create_dir_all(folder.join("crashes"))?;
                std::fs::write(folder.join("crashes").join(format!("{seed}-{texts}")), &bytes)?;
            }
        }
        texts += 1;
    }
    let peak = peak_kib().map_or("unknown".to_string(), |kib| format!("{} MiB", kib / 1024));
    println!("{texts} texts, {taken} taken by a parser, {crashes} panics, peak memory {peak}, seed {seed}");
    std::process::exit(i32::from(crashes > 0));
}
