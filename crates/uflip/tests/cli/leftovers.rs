//! What a resume finds: all done already, or records that `runs.ndjson` does not
//! tell of any more.

use crate::support::{expect, finished_runs};
use std::path::Path;

/// A small benchmark in virtual time, finished.
fn finished(folder: &Path) {
    let args = ["run", "sim:mtron", "-o", "out", "--only", "order", "--method", "fixed", "--preset", "quick"];
    expect(folder, 0, &[&args[..], &["--seed", "3", "--baselines", "SR", "--state", "none"]].concat());
}

#[test]
fn nothing_is_measured_where_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args = ["run", "-o", "out", "--scratch-size", "16M", "--only", "order", "--baselines", "SR"];
    expect(folder, 0, &[&args[..], &["--method", "fixed", "--seed", "3", "--budget", "20s"]].concat());
    assert!(!folder.join("uflip-scratch.bin").exists());
    let before = std::fs::read(folder.join("out/runs.ndjson")).unwrap();
    let (out, err) = expect(folder, 0, &["run", "-o", "out", "--resume"]);
    assert!(err.contains("nothing is left to measure") && out.contains("The baselines"), "{err}\n{out}");
    assert_eq!(std::fs::read(folder.join("out/runs.ndjson")).unwrap(), before);
    assert!(!folder.join("uflip-scratch.bin").exists(), "the target is not made again");
}

#[test]
fn records_without_their_rows_are_set_aside_and_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    finished(folder);
    let ios = folder.join("out/ios");
    let files = || {
        let mut names: Vec<_> = std::fs::read_dir(&ios).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (all, runs) = (files(), finished_runs(&folder.join("out")));
    let bytes: Vec<Vec<u8>> = all.iter().map(|name| std::fs::read(ios.join(name)).unwrap()).collect();
    std::fs::write(folder.join("out/runs.ndjson"), "").unwrap();
    let (_, err) = expect(folder, 0, &["run", "-o", "out", "--resume"]);
    assert!(err.contains(&format!("{} record files", all.len())) && err.contains("set-aside"), "{err}");
    for (name, bytes) in all.iter().zip(bytes) {
        assert_eq!(std::fs::read(folder.join("out/set-aside").join(name)).unwrap(), bytes, "{name:?}");
    }
    assert_eq!((files(), finished_runs(&folder.join("out"))), (all, runs), "and all is measured again");
}

#[test]
fn one_record_file_without_its_row_is_a_run_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    finished(folder);
    let runs = folder.join("out/runs.ndjson");
    let text = std::fs::read_to_string(&runs).unwrap();
    let without_last: String = text.split_inclusive('\n').take(text.lines().count() - 1).collect();
    std::fs::write(&runs, without_last).unwrap();
    let (_, err) = expect(folder, 0, &["run", "-o", "out", "--resume"]);
    assert!(err.contains("was left by a run that did not finish"), "{err}");
    assert!(!folder.join("out/set-aside").exists());
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), text.lines().count());
}
