//! `kill -9` at any instant: a child process commits runs in a loop, says which
//! it has committed, and is killed at twenty moments.

mod common;

use common::{check, manifest, plan, run_once};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use uflip_measure::run::Sink;
use uflip_store::{Durability, Store};

const DIR: &str = "UFLIP_TEST_CRASH_DIR";

/// The process that is killed; the tests below start it.
#[test]
#[ignore = "runs until it is killed; the other tests start it"]
fn child() {
    let dir = std::env::var(DIR).expect("started by the other tests");
    let dir = Path::new(&dir);
    let mut store = Store::resume(dir, Some(42), Some(&plan())).unwrap();
    if std::env::var("UFLIP_TEST_RELAXED").is_ok() {
        store.set_durability(Durability::RELAXED);
    }
    // Small, so that long runs are written while they are measured.
    store.set_reserve(uflip_device::Bytes(1 << 20));
    let stdout = std::io::stdout();
    for id in 0.. {
        if store.has(id) {
            continue;
        }
        let ios = if id % 7 == 3 { 60_000 } else { 50 + u64::from(id) % 900 };
        run_once(&mut store, id, ios).unwrap();
        writeln!(stdout.lock(), "\ncommitted {id}").unwrap();
        stdout.lock().flush().unwrap();
    }
}

/// Kills a child so long after it told of its first run; gives the runs it told of.
fn kill_at(dir: &Path, after: Duration, relaxed: bool) -> Vec<u32> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if relaxed {
        command.env("UFLIP_TEST_RELAXED", "1");
    }
    let mut child = command.spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        let ids = lines.filter_map(|line| line.strip_prefix("committed ").and_then(|id| id.parse().ok()));
        ids.inspect(|_| _ = tell.send(())).collect::<Vec<u32>>()
    });
    let first = told.recv_timeout(Duration::from_secs(60));
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    first.expect("a run within a minute");
    reader.join().unwrap()
}

fn survive(relaxed: bool) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    drop(Store::create(&out, &manifest(), &plan()).unwrap());
    let mut told = 0;
    let mut random = 0x2545_f491_u64;
    for round in 0..10 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let committed = kill_at(&out, Duration::from_micros((random >> 40) % 90_000), relaxed);
        told = committed.iter().map(|id| id + 1).max().unwrap_or(told);
        let before = check(&out);
        drop(Store::resume(&out, Some(42), Some(&plan())).unwrap());
        let after = check(&out);
        assert_eq!(before, after, "resume lost or found a run in round {round}");
        assert_eq!(after, (0..after.len() as u32).collect::<Vec<_>>());
        let kept = after.len() as u32;
        assert!(kept == told || kept == told + 1, "{told} runs were committed, {kept} are kept");
        told = kept;
        let files = common::files_in(&out.join("ios"));
        assert_eq!(files.len(), after.len(), "{files:?}");
    }
    assert!(told >= 10, "only {told} runs were committed: the test killed too early to show anything");
}

#[test]
fn no_finished_run_is_lost_to_kill() {
    survive(false);
}

#[test]
fn no_finished_run_is_lost_to_kill_when_relaxed() {
    survive(true);
}
