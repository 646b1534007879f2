//! Fault schedules from a seed: a benchmark meets a few faults of its disk, is
//! resumed on the healed one, and must have lost nothing it had finished, kept
//! nothing half-finished and told no wrong figure in silence.
//!
//! The short form runs some dozens; `UFLIP_SCHEDULES=1000` sets another number,
//! `UFLIP_SCHEDULE_SEED=N` the seed of the first (each is its own seed, so that
//! one alone can be run again).

use crate::faultfs::disk::ROOT;
use crate::faultfs::{Fault, FaultFs, Happened, Planned, SIDES, Side};
use crate::support::{text, uflip};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
use uflip_device::rng::Rng;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// The longest a faulted benchmark may take; far more than any does.
const PATIENCE: Duration = Duration::from_secs(60);

/// The benchmarks that meet the faults: in virtual time, on the device that
/// answers at once, and on a scratch file that lies on the failing disk itself.
const BENCHMARKS: [&[&str]; 3] = [
    &["run", "sim:kingston-dti", "--state", "none"],
    &["run", "null:16M", "--state", "none"],
    &["run", "./scratch", "--scratch-size", "2M", "--state", "none"],
];
const COMMON: &[&str] = &[
    "-o",
    "out",
    "--method",
    "fixed",
    "--preset",
    "quick",
    "--only",
    "order",
    "--baselines",
    "SR,SW",
    "--seed",
    "7",
    "--json",
];

/// A wait with an end: a benchmark that hangs is a failure, not a hung test.
#[track_caller]
fn ended(fs: &FaultFs, at: &Path, args: &[&str], what: &str) -> Output {
    let mut command = uflip();
    command.current_dir(at).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary starts");
    let pid = child.id();
    fs.process(pid);
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let output = child.wait_with_output();
        let _ = sender.send(());
        output
    });
    if receiver.recv_timeout(PATIENCE).is_err() {
        crate::support::signal(pid, "KILL");
        panic!("{what}: uflip {args:?} did not end within {PATIENCE:?}");
    }
    let output = waiter.join().expect("the waiter does not panic").expect("the binary ends");
    let err = text(&output.stderr);
    assert!(!err.contains("panicked") && !err.contains("internal error"), "{what}: {args:?}\n{err}");
    output
}

/// The whole rows of a `runs.ndjson` as stored, by number.
fn rows(bytes: &[u8]) -> BTreeMap<u64, String> {
    let lines = text(bytes);
    let whole = lines.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole
        .filter_map(|line| {
            let row: Value = serde_json::from_str(line).ok()?;
            Some((row["id"].as_u64()?, line.to_string()))
        })
        .collect()
}

/// One fault of any kind at any of `requests`.
fn draw(rng: &mut Rng, requests: [u64; SIDES]) -> Planned {
    let sides = [Side::Results, Side::Results, Side::Reading, Side::Target];
    let side = sides[rng.below(sides.len() as u64) as usize];
    let side = if requests[side as usize] == 0 { Side::Results } else { side };
    let at = rng.below(requests[side as usize].max(1));
    let errno = if rng.below(2) == 0 { EIO } else { ENOSPC };
    let fault = match rng.below(10) {
        0 => Fault::Kill,
        1 | 2 => Fault::PowerCut,
        3 => Fault::Error { errno, times: [1, 3, u64::MAX][rng.below(3) as usize] },
        4 => Fault::Short,
        5 => Fault::Torn,
        6 => Fault::Delay(Duration::from_millis(1 + rng.below(30))),
        _ => Fault::Flip { bit: rng.next_u64() >> 8 },
    };
    Planned { side, at, fault }
}

/// What one schedule came to, for the count that is printed.
#[derive(Debug, Default)]
struct Count {
    schedules: u64,
    kills: u64,
    power_cuts: u64,
    errors: u64,
    torn_or_short: u64,
    delays: u64,
    flips: u64,
    damage_told: u64,
    refused: u64,
}

/// What a resume says of a scratch file that is not as it was.
const REFUSALS: [&str; 4] =
    ["uflip did not make", "the scratch file is gone", "is another file", "never finished"];

/// Words that own up to damage.
fn owns_up(output: &Output) -> bool {
    let all = text(&output.stdout) + &text(&output.stderr);
    ["damaged", "Damaged", "checksum", "edited"].iter().any(|word| all.contains(word))
}

fn args_of<'a>(benchmark: usize, more: &[&'a str]) -> Vec<&'a str> {
    [BENCHMARKS[benchmark], COMMON, more].concat()
}

/// What the folder shows and what follows from its records, apart from where it
/// is.
fn shown(fs: &FaultFs, folder: &Path, meant: bool) -> Output {
    let out = folder.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut state = fs.state();
    let ino = state.disk.named(ROOT, "out".as_ref()).expect("a results folder");
    state.disk.copy_out(ino, &out, meant);
    drop(state);
    let run = |args: &[&str]| uflip().current_dir(folder).args(args).output().expect("the binary starts");
    let mut both = run(&["show", "out", "--json"]);
    // From every single record, whatever profile.json says.
    let _ = std::fs::remove_file(out.join("profile.json"));
    let profile = run(&["profile", "out", "--json"]);
    both.stdout.extend(profile.stdout);
    both.stderr.extend(profile.stderr);
    both
}

/// Requests that each benchmark makes when nothing goes wrong.
fn undisturbed(fs: &FaultFs, at: &Path) -> [[u64; SIDES]; 3] {
    std::array::from_fn(|benchmark| {
        fs.format();
        let output = ended(fs, at, &args_of(benchmark, &[]), "undisturbed");
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs.state().requests
    })
}

fn schedule(fs: &FaultFs, at: &Path, seed: u64, requests: &[[u64; SIDES]; 3], count: &mut Count) {
    let mut rng = Rng::new(seed);
    let benchmark = rng.below(3) as usize;
    let planned: Vec<Planned> = (0..=rng.below(3)).map(|_| draw(&mut rng, requests[benchmark])).collect();
    let what = format!("schedule {seed} ({}, {planned:?})", BENCHMARKS[benchmark][1]);
    fs.format();
    fs.plan(&planned);
    let faulted = ended(fs, at, &args_of(benchmark, &[]), &what);
    let (durable, stored) = {
        let mut state = fs.state();
        let (now, durable) = state.disk.at("out/runs.ndjson").unwrap_or_default();
        (rows(&durable), rows(&now))
    };
    let cut = fs.heal(&mut rng);
    let harm = Harm::of(std::mem::take(&mut fs.state().happened), cut, count);
    if std::env::var_os("UFLIP_SCHEDULES_TOLD").is_some() {
        println!("{seed}: {harm:?}");
    }
    // Nothing finished is lost: what must still be there, and as it was. In
    // virtual time a power cut may lose runs, which come out the same again.
    let before = match (cut, benchmark) {
        (false, _) => stored,
        (true, 0) => BTreeMap::new(),
        (true, _) => durable,
    };
    let healed = resume(fs, at, benchmark, &what);
    let after = rows(&fs.state().disk.at("out/runs.ndjson").map(|(now, _)| now).unwrap_or_default());
    let lost: Vec<u64> =
        before.iter().filter(|(id, line)| after.get(id) != Some(line)).map(|(id, _)| *id).collect();
    let unexplained: Vec<u64> = lost.iter().copied().filter(|id| !harm.records.contains(id)).collect();
    let told = format!("{}\nthen\n{}", text(&faulted.stderr), text(&healed.stderr));
    assert!(
        unexplained.len() <= harm.rows,
        "{what}: runs {unexplained:?} were finished and are not there as they were\n{told}"
    );
    if !healed.status.success() {
        assert!(harm.explains(&text(&healed.stderr)), "{what}: {told}");
        count.refused += 1;
        return;
    }
    let folder = at.parent().expect("a folder");
    let first = shown(fs, folder, false);
    let kept = check_whole(&folder.join("out"), &what);
    assert!(!kept.is_empty(), "{what}: no run is kept");

    // No wrong figure in silence. Runs were measured again where their rows or
    // records were harmed; what else was must be owned up to.
    let meant = shown(fs, folder, true);
    if first.stdout != meant.stdout {
        assert!(harm.elsewhere && owns_up(&first), "{what}: other figures than were measured\n{told}");
        count.damage_told += 1;
    }
}

/// What the faults of a schedule may have harmed.
#[derive(Debug)]
struct Harm {
    happened: Vec<Happened>,
    cut: bool,
    /// Runs with a bit the other way round in their record file.
    records: BTreeSet<u64>,
    /// Rows with one.
    rows: usize,
    /// Any other file of the results has one.
    elsewhere: bool,
}

impl Harm {
    fn of(happened: Vec<Happened>, cut: bool, count: &mut Count) -> Harm {
        tally(count, &happened);
        let flips =
            happened.iter().filter(|h| matches!(h.fault, Fault::Flip { .. }) && h.side == Side::Results);
        let files: Vec<String> = flips.map(|h| h.file.trim_start_matches('.').to_string()).collect();
        let run = |file: &String| file.strip_prefix("run-")?.get(..6)?.parse().ok();
        let records: BTreeSet<u64> = files.iter().filter_map(run).collect();
        let rows = files.iter().filter(|file| file.starts_with("runs.ndjson")).count();
        let elsewhere = files.iter().any(|file| run(file).is_none() && !file.starts_with("runs.ndjson"));
        Harm { happened, cut, records, rows, elsewhere }
    }

    /// Whether a resume may refuse with these words: a scratch file that a bit
    /// or the power made nobody's, a manifest or plan with a bit turned.
    fn explains(&self, err: &str) -> bool {
        let target = |h: &Happened| h.side == Side::Target && matches!(h.fault, Fault::Flip { .. });
        let scratch =
            (self.cut || self.happened.iter().any(target)) && REFUSALS.iter().any(|r| err.contains(r));
        scratch || self.elsewhere && ["manifest.json", "plan.json"].iter().any(|file| err.contains(file))
    }
}

/// Goes on with the benchmark on the healed disk.
fn resume(fs: &FaultFs, at: &Path, benchmark: usize, what: &str) -> Output {
    let begun = fs.state().disk.at("out/manifest.json").is_some();
    let args = if begun { vec!["run", "-o", "out", "--resume", "--json"] } else { args_of(benchmark, &[]) };
    ended(fs, at, &args, what)
}

/// Every kept run's record file is whole and says what its row says.
fn check_whole(out: &Path, what: &str) -> BTreeSet<u64> {
    let bytes = std::fs::read(out.join("runs.ndjson")).expect("rows");
    let rows = rows(&bytes);
    for (id, line) in &rows {
        let row: Value = serde_json::from_str(line).expect("a row");
        let told = (row["stats"]["all"]["n"].as_u64(), row["stats"]["all"]["max_ns"].as_u64());
        let file = out.join(row["records"]["file"].as_str().expect("a file"));
        let whole = uflip_store::read_records(&file).is_ok_and(|records| {
            let max = records.iter().map(|r| r.response().0).max();
            told == (Some(records.len() as u64), max)
        });
        assert!(whole, "{what}: run {id} is kept and not whole");
    }
    let left: Vec<String> = std::fs::read_dir(out.join("ios"))
        .expect("the records")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".parquet"))
        .collect();
    assert!(left.is_empty(), "{what}: {left:?} was left");
    rows.into_keys().collect()
}

fn tally(count: &mut Count, happened: &[Happened]) {
    count.schedules += 1;
    for came in happened {
        match came.fault {
            Fault::Kill => count.kills += 1,
            Fault::PowerCut => count.power_cuts += 1,
            Fault::Error { .. } => count.errors += 1,
            Fault::Short | Fault::Torn => count.torn_or_short += 1,
            Fault::Delay(_) => count.delays += 1,
            Fault::Flip { .. } => count.flips += 1,
        }
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn fault_schedules_lose_nothing_keep_nothing_half_and_tell_no_wrong_figure() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("disk");
    std::fs::create_dir(&at).unwrap();
    let Some(fs) = FaultFs::mount(&at) else { return };
    let requests = undisturbed(&fs, &at);
    let (many, first) = (from_environment("UFLIP_SCHEDULES", 40), from_environment("UFLIP_SCHEDULE_SEED", 1));
    let mut count = Count::default();
    let begun = Instant::now();
    let mut failed = Vec::new();
    for seed in first..first + many {
        let one = std::panic::AssertUnwindSafe(|| schedule(&fs, &at, seed, &requests, &mut count));
        if let Err(why) = std::panic::catch_unwind(one) {
            failed.push((seed, why.downcast_ref::<String>().cloned().unwrap_or_default()));
        }
    }
    let each = [count.kills, count.power_cuts, count.errors, count.torn_or_short, count.delays, count.flips];
    assert!(many < 40 || each.iter().all(|n| *n > 0), "a kind of fault never came: {count:?}");
    println!("{count:?}, requests {requests:?}, {:?}", begun.elapsed());
    assert!(
        failed.is_empty(),
        "{} of {many} schedules failed:\n{}",
        failed.len(),
        failed.iter().map(|f| &f.1[..]).collect::<Vec<_>>().join("\n\n")
    );
}
