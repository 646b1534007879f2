//! Two commands that begin in one folder at the same moment: one wins, the
//! other says so.

use crate::support::{expect, finished_runs, signal, text, uflip};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use uflip_device::rng::Rng;

const RUN: [&str; 14] = [
    "run",
    "null:1M",
    "--only",
    "order",
    "--baselines",
    "SR",
    "--budget",
    "30s",
    "--seed",
    "1",
    "--method",
    "fixed",
    "-o",
    "out",
];

fn spawn(dir: &Path, args: &[&str]) -> Child {
    let mut command = uflip();
    command.current_dir(dir).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Both at once, the second after so many microseconds.
fn both(dir: &Path, first: &[&str], second: &[&str], apart: u64) -> [Output; 2] {
    let one = spawn(dir, first);
    std::thread::sleep(Duration::from_micros(apart));
    let two = spawn(dir, second);
    [one.wait_with_output().unwrap(), two.wait_with_output().unwrap()]
}

/// Exactly one came to its end; the other says who has the folder, or that the
/// first was done before it came.
#[track_caller]
fn one_wins(outputs: &[Output; 2], round: u64) {
    let said: Vec<String> = outputs.iter().map(|o| text(&o.stderr)).collect();
    let won = outputs.iter().filter(|o| o.status.success()).count();
    assert_eq!(won, 1, "round {round}:\n{}\n{}", said[0], said[1]);
    let lost = if outputs[0].status.success() { &said[1] } else { &said[0] };
    let why = lost.contains("another uflip is writing to") || lost.contains("already holds a measurement");
    assert!(why && !lost.contains("panicked"), "round {round}: {lost}");
}

#[test]
fn of_two_that_begin_in_one_folder_one_wins() {
    let mut rng = Rng::new(11);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let mut rng = Rng::new(rng.below(u64::MAX));
            scope.spawn(move || {
                for round in 0..100 {
                    let folder = tempfile::tempdir().unwrap();
                    if round % 2 == 0 {
                        std::fs::create_dir(folder.path().join("out")).unwrap();
                    }
                    let apart = if round % 3 == 0 { 0 } else { rng.below(8_000) };
                    let outputs = both(folder.path(), &RUN, &RUN, apart);
                    one_wins(&outputs, half * 100 + round);
                    assert!(folder.path().join("out/report.html").exists());
                }
            });
        }
    });
}

#[test]
fn jobs_and_calibrations_and_resumes_race_the_same_way() {
    let mut rng = Rng::new(12);
    let job = ["job", "null:1M", "a.job", "-o", "out"];
    let calibrate =
        ["calibrate", "sim:mtron", "-o", "out", "--seed", "1", "--only", "order", "--baselines", "SR"];
    let block = ["logical-block", "sim:mtron", "--bytes", "64M", "-o", "out"];
    for round in 0..6 {
        for (first, second) in [(&job[..], &job[..]), (&job, &RUN), (&calibrate, &job), (&RUN, &block)] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a.job"), "a rr bs=4K count=200000\n").unwrap();
            one_wins(&both(folder.path(), first, second, rng.below(3_000)), round);
        }
    }
}

#[test]
fn of_two_that_resume_one_goes_on() {
    let mut rng = Rng::new(13);
    let folder = tempfile::tempdir().unwrap();
    let slow = ["run", "null:1M", "--only", "pause", "--values", "pause=20ms", "--preset", "standard"];
    let slow = [&slow[..], &["--baselines", "SR", "--method", "fixed", "--seed", "1", "-o", "out"]].concat();
    let child = spawn(folder.path(), &slow);
    while finished_runs(&folder.path().join("out")).is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Killed with the lock in its hand: nothing is left to clean up.
    signal(child.id(), "KILL");
    child.wait_with_output().unwrap();
    let resume = ["run", "-o", "out", "--resume"];
    for round in 0..10 {
        let mut children = [spawn(folder.path(), &resume), {
            std::thread::sleep(Duration::from_micros(rng.below(2_000)));
            spawn(folder.path(), &resume)
        }];
        let loser = loop {
            let ended = children.iter_mut().position(|c| c.try_wait().unwrap().is_some());
            if let Some(at) = ended {
                break at;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let [one, two] = children;
        let (loser, winner) = if loser == 0 { (one, two) } else { (two, one) };
        let output = loser.wait_with_output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "round {round}: {err}");
        assert!(err.contains("another uflip is writing to out"), "round {round}: {err}");
        signal(winner.id(), "KILL");
        winner.wait_with_output().unwrap();
    }
}

#[test]
fn two_without_a_name_get_a_folder_each() {
    let unnamed = &RUN[..12];
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let outputs = both(folder.path(), unnamed, unnamed, 0);
        for output in &outputs {
            assert!(output.status.success(), "round {round}: {}", text(&output.stderr));
        }
        for name in ["uflip-out", "uflip-out-2"] {
            assert!(folder.path().join(name).join("report.html").exists(), "round {round}: {name}");
        }
    }
}

/// What was refused leaves the folder as it was found.
#[test]
fn a_refusal_leaves_no_folder_and_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("data"), vec![7u8; 1 << 20]).unwrap();
    std::fs::create_dir(dir.join("empty")).unwrap();
    // The first is refused before the folder is claimed, the second after it.
    let data = ["run", "./data", "--only", "order", "--method", "fixed", "-o"];
    let large = ["run", "./scratch", "--scratch-size", "1000T", "--only", "order", "--method", "fixed", "-o"];
    for (out, write) in [("new", &data[..]), ("new", &large), ("b", &large), ("empty", &large)] {
        expect(dir, 1, &[write, &[out]].concat());
        assert!(!dir.join(out).join(".lock").exists(), "{out}");
        assert_eq!(dir.join(out).exists(), out == "empty");
    }
    std::fs::create_dir(dir.join("full")).unwrap();
    std::fs::write(dir.join("full/thesis.tex"), "dear").unwrap();
    let (_, err) = expect(dir, 1, &[&RUN[..13], &["full"]].concat());
    assert!(err.contains("thesis.tex") && !dir.join("full/.lock").exists(), "{err}");
    let nothing = Command::new("ls").arg("-A").arg(dir.join("full")).output().unwrap();
    assert_eq!(text(&nothing.stdout), "thesis.tex\n");
}
