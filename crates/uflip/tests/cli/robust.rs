//! What befalls a process while it measures: it is stopped, its terminal goes,
//! nobody reads what it says, the system has no thread left for it.

use crate::support::{expect, finished_runs, is_root, signal, skipped, text, uflip};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder in memory, where no disk's hiccup looks like a stop.
fn quick_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}

fn rest(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Stops a process for `ms`.
fn stop_for(child: &Child, ms: u64) {
    signal(child.id(), "STOP");
    rest(ms);
    signal(child.id(), "CONT");
}

/// Waits for the end at most so long; a process that hangs is killed and fails
/// the test.
#[track_caller]
fn ends_within(mut child: Child, seconds: u64) -> Output {
    let began = Instant::now();
    loop {
        match child.try_wait().expect("it can be waited for") {
            Some(_) => return child.wait_with_output().expect("its outputs can be read"),
            None if began.elapsed() > Duration::from_secs(seconds) => {
                let _ = child.kill();
                panic!("it hung for {seconds} s");
            }
            None => rest(20),
        }
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", text(&output.stdout), text(&output.stderr)))
}

fn rows(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("runs.ndjson")).expect("runs");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

const READS: [&str; 12] = [
    "pattern",
    "data",
    "--base",
    "RR",
    "--io-size",
    "4K",
    "--io-count",
    "1000000000",
    "--time-limit",
    "3s",
    "--json",
    "--seed=1",
];

fn reading(folder: &Path, engine: &[&str], through: &[&str]) -> Child {
    std::fs::write(folder.join("data"), vec![7u8; 4 << 20]).unwrap();
    let binary = env!("CARGO_BIN_EXE_uflip");
    let mut command = match through {
        [] => Command::new(binary),
        [first, more @ ..] => {
            let mut command = Command::new(first);
            command.args(more).arg(binary);
            command
        }
    };
    command.current_dir(folder).args(READS).args(engine);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

const ENGINES: [&[&str]; 3] = [
    &["--engine", "sync"],
    &["--engine", "io_uring", "--queue-depth", "4"],
    &["--engine", "sync", "--parallel", "3"],
];

#[test]
fn a_pattern_says_that_it_was_stopped_and_for_how_long() {
    let folder = quick_folder();
    for engine in ENGINES {
        let child = reading(folder.path(), engine, &[]);
        rest(900);
        stop_for(&child, 700);
        let output = ends_within(child, 60);
        let facts = json(&output);
        let stopped = facts["end"]["incidents"]["stopped"].as_u64();
        let seen = stopped.unwrap_or_else(|| panic!("{engine:?}: {facts:#}"));
        assert!((600_000_000..3_000_000_000).contains(&seen), "{engine:?}: {seen} ns");
        assert!(text(&output.stderr).contains("stood still"), "{}", text(&output.stderr));
    }
}

/// The opposite: with the ear for SIGCONT closed the same stop is not seen, and
/// an undisturbed run, or one that is told to go on while it runs, shows none.
#[test]
fn only_a_stop_shows_as_one() {
    let folder = quick_folder();
    let stopped = |output: &Output| json(output)["end"]["incidents"]["stopped"].as_u64();
    let child = reading(folder.path(), ENGINES[0], &[]);
    rest(900);
    for _ in 0..3 {
        signal(child.id(), "CONT");
        rest(100);
    }
    let output = ends_within(child, 60);
    assert_eq!(stopped(&output), None, "told to go on, but never stopped: {}", text(&output.stdout));

    let child = reading(folder.path(), ENGINES[0], &["env", "--block-signal=CONT"]);
    rest(900);
    stop_for(&child, 700);
    let output = ends_within(child, 60);
    if !output.status.success() {
        return skipped("env cannot block signals here");
    }
    let facts = json(&output);
    assert_eq!(stopped(&output), None);
    let longest = facts["stats"]["all"]["max_ns"].as_u64().unwrap();
    assert!(longest > 600_000_000, "the stop fell into an IO or is unseen by this test: {facts:#}");
}

/// Every kept run is either undisturbed or says what befell it.
#[track_caller]
fn undisturbed_or_flagged(dir: &Path, stop_ns: u64) -> u32 {
    let mut again = 0;
    for row in rows(dir) {
        let flagged = row["outcome"]["end"]["incidents"]["stopped"].as_u64().is_some();
        let longest = row["stats"]["all"]["max_ns"].as_u64().unwrap_or(0);
        assert!(flagged || longest < stop_ns, "run {} shows a stop of {longest} ns and is silent", row["id"]);
        again += u32::from(row["outcome"]["attempts"].as_u64().is_some_and(|n| n > 1));
    }
    again
}

fn stopped_often(mut command: Command, stops: u32) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    rest(500);
    for _ in 0..stops {
        stop_for(&child, 800);
        rest(350);
    }
    ends_within(child, 120)
}

#[test]
fn a_benchmark_measures_runs_again_that_were_stopped() {
    let folder = quick_folder();
    let options = ["--method", "fixed", "--state", "none", "--only", "order", "--baselines", "SR"];
    let options = [&options[..], &["--preset", "quick", "--seed", "3"]].concat();
    let size = ["--scratch-size", "16M"];
    let (plan, _) =
        expect(folder.path(), 0, &[&["plan", "./scratch", "--json"][..], &size, &options].concat());
    let mut plan: Value = serde_json::from_str(&plan).unwrap();
    // All time is the runs', so that every stop meets one.
    let steps = plan["steps"].as_array_mut().unwrap();
    steps.retain(|step| step["step"] == "run");
    steps.truncate(3);
    for run in steps {
        (run["io_count"], run["time_limit"]) = (1_000_000_000u64.into(), 1_500_000_000u64.into());
    }
    std::fs::write(folder.path().join("p.json"), plan.to_string()).unwrap();
    let mut command = uflip();
    command.current_dir(folder.path()).args(["run", "./scratch", "--plan", "p.json", "-o", "out"]).args(size);
    let output = stopped_often(command, 3);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let again = undisturbed_or_flagged(&folder.path().join("out"), 700_000_000);
    let said = text(&output.stderr).matches("is measured again").count();
    assert!(again > 0 && said >= again as usize, "each run takes 1.5 s: {}", text(&output.stderr));
}

#[test]
fn a_job_measures_runs_again_that_were_stopped_and_says_where_it_could_not() {
    let folder = quick_folder();
    std::fs::write(folder.path().join("data"), vec![7u8; 4 << 20]).unwrap();
    std::fs::write(folder.path().join("j"), "std sr,rr bs=4K time=900ms reps=2\n").unwrap();
    let mut command = uflip();
    command.current_dir(folder.path()).args(["job", "./data", "j", "-o", "out", "--seed", "3"]);
    let output = stopped_often(command, 3);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = folder.path().join("out");
    let again = undisturbed_or_flagged(&out, 700_000_000);
    assert!(again > 0, "each run takes 900 ms, so stops met some: {}", text(&output.stderr));

    // All attempts stopped: kept, and a serious finding names the run.
    std::fs::write(folder.path().join("j"), "std sr bs=4K time=2s\n").unwrap();
    let mut command = uflip();
    command.current_dir(folder.path()).args(["job", "./data", "j", "-o", "all", "--seed", "3"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    rest(600);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(9) {
        stop_for(&child, 300);
        rest(200);
    }
    let output = ends_within(child, 60);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let row = &rows(&folder.path().join("all"))[0];
    assert_eq!(row["outcome"]["attempts"], 3, "{row:#}");
    assert!(row["outcome"]["end"]["incidents"]["stopped"].as_u64() > Some(200_000_000), "{row:#}");
    let profile = std::fs::read_to_string(folder.path().join("all/profile.json")).unwrap();
    let profile: Value = serde_json::from_str(&profile).unwrap();
    let finding = profile["soundness"].as_array().unwrap().iter().find(|f| f["code"] == "time_lost");
    let finding = finding.unwrap_or_else(|| panic!("{:#}", profile["soundness"]));
    assert_eq!((&finding["severity"], &finding["runs"][0]), (&"serious".into(), &0.into()));
    let (shown, _) = expect(folder.path(), 0, &["show", "all"]);
    assert!(shown.contains("Something took time from run 0, each time it was measured"), "{shown}");
}

#[test]
fn a_pause_that_no_record_can_tell_is_refused_with_the_longest() {
    let folder = tempfile::tempdir().unwrap();
    let too_long = ["18446744073709551615ns", "4503599627370496ns", "1252h"];
    for pause in too_long {
        let typed = ["pattern", "null:", "--base", "SR", "--pause", pause, "--io-count", "3"];
        let (_, err) = expect(folder.path(), 2, &typed);
        assert!(err.contains("4503599627370495ns") && err.contains("52 bits"), "{err}");
        let of_text = format!("SR(pause={pause})");
        let (_, err) =
            expect(folder.path(), 2, &["pattern", "null:", "--pattern", &of_text, "--io-count", "3"]);
        assert!(err.contains("4503599627370495ns") && err.contains("52 bits"), "{err}");
        let of_text = format!("RW(pause={pause}, burst=2)");
        expect(folder.path(), 2, &["pattern", "sim:mtron", "--pattern", &of_text, "--io-count", "9"]);
    }
    let longest = "SR(io_size=4K, target_size=1M, pause=4503599627370495ns)";
    let (csv, _) =
        expect(folder.path(), 0, &["pattern", "null:", "--pattern", longest, "--io-count", "3", "--dry-run"]);
    assert_eq!(csv.lines().count(), 4);
    // In virtual time nothing wraps either: the run ends with what records can tell.
    let (_, err) =
        expect(folder.path(), 1, &["pattern", "sim:mtron", "--pattern", longest, "--io-count", "3"]);
    assert!(err.contains("52 days"), "{err}");
    // And a real wait of that length waits.
    let child = uflip()
        .args(["pattern", "null:", "--pattern", longest, "--io-count", "3"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    rest(700);
    let mut child = child;
    assert!(child.try_wait().unwrap().is_none(), "the pause was none");
    signal(child.id(), "INT");
    rest(50);
    signal(child.id(), "INT");
    assert_eq!(ends_within(child, 20).status.code(), Some(1));
}

/// Runs the binary as a user who may have few processes.
fn with_few_processes(folder: &Path, limit: u32, args: &[&str]) -> Option<Output> {
    use std::os::unix::fs::PermissionsExt;
    if !is_root() {
        skipped("becoming another user needs root");
        return None;
    }
    let copy = folder.join("uflip");
    std::fs::copy(env!("CARGO_BIN_EXE_uflip"), &copy).unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    // A user of its own, so that nobody else's processes count.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=61234", "--regid=61234", "--clear-groups", "prlimit"]);
    command.arg(format!("--nproc={limit}")).arg(&copy).args(args).current_dir(folder).env("TMPDIR", folder);
    match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => Some(ends_within(child, 60)),
        Err(error) => {
            skipped(&format!("setpriv and prlimit: {error}"));
            None
        }
    }
}

#[test]
fn a_limit_of_threads_ends_a_run_with_a_word_and_never_hangs() {
    let folder = quick_folder();
    std::fs::write(folder.path().join("data"), vec![7u8; 4 << 20]).unwrap();
    let engines: [&[&str]; 2] = [&["--engine", "sync"], &["--engine", "io_uring"]];
    for target in ["null:", "data"] {
        for engine in engines.iter().filter(|e| target != "null:" || e[1] == "sync") {
            let typed = ["pattern", target, "--base", "SR", "--io-size", "4K", "--parallel", "64"];
            // The device that answers at once is not driven: it takes no engine.
            let engine = if target == "null:" { &[] } else { *engine };
            let typed = [&typed[..], &["--io-count", "10"], engine].concat();
            let Some(output) = with_few_processes(folder.path(), 40, &typed) else { return };
            let err = text(&output.stderr);
            if err.contains("io_uring is not to be had") {
                skipped("io_uring as another user");
                continue;
            }
            assert_eq!(output.status.code(), Some(1), "{typed:?}: {err}");
            assert!(err.contains("cannot start 64 threads") && err.contains("ulimit -u"), "{err}");
            assert!(err.contains("fewer streams") && !err.contains("panicked"), "{err}");
            let Some(output) = with_few_processes(folder.path(), 200, &typed) else { return };
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    }
}

#[test]
fn no_thread_at_all_is_said_too() {
    let folder = quick_folder();
    // The pattern's own thread, Ctrl-C's, and nothing else.
    for limit in [1, 2, 3, 4] {
        for typed in [
            &["run", "null:64M", "--only", "order", "--budget", "1s", "-o", "out"][..],
            &["pattern", "null:", "--base", "SR", "--io-count", "10"],
        ] {
            let Some(output) = with_few_processes(folder.path(), limit, typed) else { return };
            let err = text(&output.stderr);
            assert!(!err.contains("panicked"), "{limit} {typed:?}: {err}");
            assert!(matches!(output.status.code(), Some(0 | 1)), "{limit} {typed:?}: {err}");
            let _ = std::fs::remove_dir_all(folder.path().join("out"));
        }
    }
}

/// A pipe that nobody reads any more.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("/dev/full").into()
}

/// Each command that measures, small; and the folder it leaves.
const MEASURING: [(&[&str], &str); 5] = [
    (
        &[
            "run",
            "--method",
            "fixed",
            "--only",
            "order",
            "--state",
            "none",
            "--budget",
            "1s",
            "--scratch-size",
            "16M",
            "-o",
            "out",
        ],
        "report.html",
    ),
    (&["pattern", "null:64M", "--base", "RW", "--io-count", "64", "--records", "all.csv"], ""),
    (&["job", "null:64M", "j", "-o", "out"], "report.html"),
    (&["calibrate", "null:64M", "--only", "order", "--budget", "1s", "-o", "out"], "calibration.json"),
    (&["logical-block", "null:64M", "--bytes", "1M", "--largest", "8K", "-o", "out"], "report.html"),
];

/// Runs a command with its outputs where they are put; gives its code and what
/// stands in its folder.
fn with_outputs(args: &[&str], out: Stdio, err: Stdio) -> (Option<i32>, tempfile::TempDir) {
    let folder = quick_folder();
    std::fs::write(folder.path().join("j"), "std sr,rw bs=4K count=64\n").unwrap();
    let child = uflip().current_dir(folder.path()).args(args).stdout(out).stderr(err).spawn().unwrap();
    (ends_within(child, 120).status.code(), folder)
}

#[track_caller]
fn whole(folder: &Path, args: &[&str], left: &str) {
    assert!(!folder.join("uflip-scratch.bin").exists(), "{args:?} left its scratch file");
    if left.is_empty() {
        assert_eq!(std::fs::read_to_string(folder.join("all.csv")).unwrap().lines().count(), 65);
        return;
    }
    assert!(folder.join("out").join(left).exists(), "{args:?} left no {left}");
    assert!(!finished_runs(&folder.join("out")).is_empty(), "{args:?}");
}

#[test]
fn a_lost_standard_error_is_no_reason_to_stop() {
    for (args, left) in MEASURING {
        for lost in [full, closed_pipe] {
            let (code, folder) = with_outputs(args, Stdio::null(), lost());
            assert_eq!(code, Some(0), "{args:?}");
            whole(folder.path(), args, left);
        }
    }
}

#[test]
fn a_lost_standard_output_loses_no_results() {
    for (args, left) in MEASURING {
        let (code, folder) = with_outputs(args, closed_pipe(), Stdio::null());
        assert_eq!(code, Some(0), "{args:?}: as in | head");
        whole(folder.path(), args, left);
        let (code, folder) = with_outputs(args, full(), full());
        assert_eq!(code, Some(1), "{args:?}: what was asked for could not be given");
        whole(folder.path(), args, left);
    }
    let output = uflip().args(["plan", "null:64M", "--only", "order"]).stdout(full()).output().unwrap();
    let err = text(&output.stderr);
    assert!(output.status.code() == Some(1) && err.contains("standard output"), "{err}");
}

/// 126 runs with a pause before each, more than 6 s: much longer than a test takes
/// to see the first of them.
const LONG: &str = "run -o out --scratch-size 32M --method fixed --only order,mix --repeats 3 --state none \
                    --pause-between 50ms --budget 25s --seed 3";

/// Waits until a benchmark has kept a few runs, far from all.
#[track_caller]
fn has_begun(folder: &Path, still_runs: &mut dyn FnMut() -> bool) {
    let began = Instant::now();
    while finished_runs(&folder.join("out")).len() < 3 {
        assert!(still_runs(), "it ended before it kept three runs");
        assert!(began.elapsed() < Duration::from_secs(60), "no three runs in a minute");
        rest(5);
    }
}

/// Goes on and comes to the end, its scratch file removed.
#[track_caller]
fn resumes(folder: &Path) {
    let before = finished_runs(&folder.join("out")).len();
    assert!(before > 0 && folder.join("uflip-scratch.bin").exists(), "it ended after {before} runs");
    let (_, err) = expect(folder, 0, &["run", "-o", "out", "--resume", "--budget", "3s"]);
    assert!(finished_runs(&folder.join("out")).len() > before, "{err}");
    assert!(!folder.join("uflip-scratch.bin").exists());
}

#[test]
fn a_hang_up_ends_after_the_run_in_progress() {
    let folder = quick_folder();
    let mut command = uflip();
    command.current_dir(folder.path()).args(LONG.split_whitespace());
    let mut child = command.stdout(Stdio::null()).stderr(closed_pipe()).spawn().expect("it starts");
    has_begun(folder.path(), &mut || child.try_wait().expect("it can be waited for").is_none());
    // The kernel tells it, and the shell once more.
    signal(child.id(), "HUP");
    signal(child.id(), "CONT");
    signal(child.id(), "HUP");
    assert_eq!(ends_within(child, 60).status.code(), Some(1));
    resumes(folder.path());
}

#[test]
fn two_hang_ups_do_not_give_a_run_up_and_two_interrupts_do() {
    let folder = quick_folder();
    for (name, code) in [("HUP", 0), ("INT", 1)] {
        let child = reading(folder.path(), ENGINES[0], &[]);
        rest(900);
        signal(child.id(), name);
        rest(100);
        signal(child.id(), name);
        let output = ends_within(child, 60);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output.stderr));
    }
}

#[test]
fn under_nohup_a_hang_up_is_nothing() {
    let folder = quick_folder();
    std::fs::write(folder.path().join("data"), vec![7u8; 4 << 20]).unwrap();
    std::fs::write(folder.path().join("j"), "std sr bs=4K time=500ms reps=5\n").unwrap();
    let script = format!("trap '' HUP; exec {} job data j -o out", env!("CARGO_BIN_EXE_uflip"));
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    rest(900);
    signal(child.id(), "HUP");
    let output = ends_within(child, 60);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(finished_runs(&folder.path().join("out")).len(), 5);
}

/// A terminal of its own that is closed in the middle, as by a dropped SSH
/// session: a hang-up, and nothing to write to any more.
#[test]
fn a_terminal_that_goes_away_leaves_a_folder_that_goes_on() {
    let folder = quick_folder();
    let typed = format!("echo $$ >pid; exec {} {LONG}", env!("CARGO_BIN_EXE_uflip"));
    let mut terminal = Command::new("script");
    terminal.current_dir(folder.path()).args(["-qec", &typed, "/dev/null"]);
    let started = terminal.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut terminal) = started else { return skipped("script (util-linux) is not installed") };
    has_begun(folder.path(), &mut || terminal.try_wait().expect("it can be waited for").is_none());
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    let Ok(pid) = std::fs::read_to_string(folder.path().join("pid")) else {
        return skipped("script gave no terminal");
    };
    let process = Path::new("/proc").join(pid.trim());
    let began = Instant::now();
    while process.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "it goes on without its terminal");
        rest(50);
    }
    resumes(folder.path());
}
