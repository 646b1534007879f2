//! A folder that a resume does not fit is refused before anything of it is changed,
//! with what to type.

use crate::support::expect;
use std::fs;
use std::path::Path;

const SMALL: [&str; 6] = ["--seed", "1", "--state", "none", "--only", "order"];

/// All that a folder says, but for who holds it.
fn said(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().flatten().filter(|file| file.path().is_file());
    let mut all: Vec<_> = files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .filter(|(name, _)| name != ".lock")
        .collect();
    all.sort();
    all
}

/// Resumes in `dir`, and is refused with these words and nothing changed.
#[track_caller]
fn refused(at: &Path, dir: &str, code: i32, args: &[&str], words: &[&str]) {
    let before = said(&at.join(dir));
    let (_, err) = expect(at, code, &[args, &["-o", dir, "--resume"]].concat());
    for word in words {
        assert!(err.contains(word), "{args:?} in {dir}: {word}\n{err}");
    }
    assert!(said(&at.join(dir)) == before, "{args:?} changed {dir}");
}

/// Finished or not, a folder is gone on with by the command that made it.
#[test]
fn what_another_command_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("k.job"), "a sr,rr bs=4K,8K count=20\n").unwrap();
    let fixed = ["run", "sim:kingston-dti", "--method", "fixed", "--baselines", "SR", "--preset", "quick"];
    expect(at, 0, &[&fixed[..], &SMALL, &["-o", "fixed"]].concat());
    expect(at, 0, &["job", "sim:kingston-dti", "k.job", "--seed", "1", "-o", "job"]);
    expect(at, 0, &["logical-block", "sim:kingston-dti", "--bytes", "1M", "--seed", "1", "-o", "lb"]);
    for cut in [false, true] {
        for dir in ["fixed", "job", "lb"].into_iter().filter(|_| cut) {
            let rows = at.join(dir).join("runs.ndjson");
            let text = fs::read_to_string(&rows).unwrap();
            fs::write(&rows, text.lines().next().unwrap().to_string() + "\n").unwrap();
        }
        let (run, search) =
            ("uflip run -o fixed --resume", "uflip logical-block sim:kingston-dti -o lb --resume");
        refused(at, "fixed", 2, &["calibrate"], &["made by uflip run --method fixed", run]);
        refused(at, "fixed", 2, &["job", "sim:kingston-dti"], &["made by uflip run --method fixed", run]);
        let job = "uflip job sim:kingston-dti -o job --resume";
        refused(at, "job", 2, &["run"], &["made by uflip job", job]);
        refused(at, "job", 2, &["logical-block", "sim:kingston-dti"], &["made by uflip job", job]);
        refused(at, "lb", 2, &["run"], &["made by uflip logical-block", search]);
        refused(at, "lb", 2, &["job", "sim:kingston-dti"], &["made by uflip logical-block", search]);
    }
}

/// Nothing is set aside for a resume that is refused then.
#[test]
fn a_plan_for_another_target_costs_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (dir, target) in [("ours", "sim:kingston-dti"), ("other", "sim:mtron")] {
        let args = ["run", target, "--method", "fixed", "--baselines", "SR", "--preset", "quick", "-o", dir];
        expect(at, 0, &[&args[..], &SMALL].concat());
    }
    let rows = at.join("ours/runs.ndjson");
    let text = fs::read_to_string(&rows).unwrap();
    let left: Vec<&str> = text.lines().skip(1).collect();
    fs::write(&rows, left.join("\n") + "\n").unwrap();
    fs::copy(at.join("other/plan.json"), at.join("ours/plan.json")).unwrap();
    refused(at, "ours", 1, &["run"], &["plan"]);
}

/// A finished folder is none of another target.
#[test]
fn a_finished_folder_of_another_target_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let args = ["run", "sim:kingston-dti", "--method", "fixed", "--baselines", "SR", "--preset", "quick"];
    expect(at, 0, &[&args[..], &SMALL, &["-o", "done"]].concat());
    refused(at, "done", 2, &["run", "sim:mtron"], &["sim:kingston-dti"]);
    expect(at, 0, &["run", "sim:kingston-dti", "-o", "done", "--resume"]);
}

/// Job and target the wrong way round.
#[test]
fn a_target_in_the_place_of_the_job_is_told_the_order() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.job"), "a sr bs=4K count=20\n").unwrap();
    let (_, err) = expect(folder.path(), 2, &["job", "k.job", "sim:mtron"]);
    assert!(err.contains("the target comes first: uflip job sim:mtron") && err.contains("k.job"), "{err}");
}
