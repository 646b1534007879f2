//! What the tests share: the binary, loop devices, and a visible word for what
//! is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

/// The binary under test.
pub fn uflip() -> Command {
    Command::new(env!("CARGO_BIN_EXE_uflip"))
}

/// Runs the binary with `args` in `folder`.
pub fn run_in(folder: &Path, args: &[&str]) -> Output {
    uflip().current_dir(folder).args(args).output().expect("the binary starts")
}

/// As [`run_in`], with the expected exit code; shows both outputs otherwise.
#[track_caller]
pub fn expect(folder: &Path, code: i32, args: &[&str]) -> (String, String) {
    let output = run_in(folder, args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "uflip {args:?}\nstdout:\n{out}\nstderr:\n{err}");
    assert!(!err.contains("panicked"), "uflip {args:?} panicked:\n{err}");
    (out, err)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Says why something was not tested, past the harness's capture.
pub fn skipped(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// Sends `signal` (`INT`, `KILL`) to a process.
pub fn signal(pid: u32, signal: &str) {
    let _ = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status();
}

/// Reads what a command says until `part` is in it; gives all of it.
#[track_caller]
pub fn read_until(said: &mut impl std::io::BufRead, part: &str) -> String {
    let mut text = String::new();
    while !text.contains(part) {
        assert!(said.read_line(&mut text).expect("it can be read") > 0, "it never said '{part}':\n{text}");
    }
    text
}

/// Options of a benchmark whose lengths and device state are not what a test is about:
/// nothing is calibrated and nothing is written beforehand.
pub const FIXED: [&str; 4] = ["--method", "fixed", "--state", "none"];

/// Waits until `done`; fails with `what` after a minute.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "not in a minute: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The finished runs of a results folder: (id, n) of each whole line.
pub fn finished_runs(dir: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(dir.join("runs.ndjson")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).expect("a whole line is whole JSON");
            (row["id"].as_u64().expect("an id"), row["stats"]["all"]["n"].as_u64().expect("n"))
        })
        .collect()
}

static LOOPS: Mutex<()> = Mutex::new(());

/// Waits for the other tests with loop devices.
pub fn loop_turn() -> MutexGuard<'static, ()> {
    LOOPS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A loop device over a file in memory, detached when dropped. Tests with one
/// run one after another: a machine has few.
pub struct Loop {
    pub device: PathBuf,
    _backing: tempfile::NamedTempFile,
    _turn: MutexGuard<'static, ()>,
}

impl Loop {
    /// A device of `bytes` zeros in memory, or `None` (said aloud) where there
    /// is none to be had.
    pub fn new(bytes: u64) -> Option<Loop> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        Loop::over(tempfile::NamedTempFile::new_in(folder).expect("a file in memory"), bytes)
    }

    /// The same over this file, made `bytes` long.
    pub fn over(backing: tempfile::NamedTempFile, bytes: u64) -> Option<Loop> {
        let turn = loop_turn();
        if !is_root() {
            skipped("loop devices need root");
            return None;
        }
        backing.as_file().set_len(bytes).expect("a file of this size");
        let output = Command::new("losetup").args(["-f", "--show"]).arg(backing.path()).output();
        match output {
            Ok(o) if o.status.success() => {
                let device = PathBuf::from(text(&o.stdout).trim());
                Some(Loop { device, _backing: backing, _turn: turn })
            }
            other => {
                skipped(&format!("losetup gave no loop device: {other:?}"));
                None
            }
        }
    }

    pub fn name(&self) -> &str {
        self.device.to_str().expect("a plain path")
    }

    pub fn detach(&self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.detach();
    }
}
