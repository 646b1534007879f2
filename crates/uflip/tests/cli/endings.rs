//! How commands end: what they name can be typed, what they made unasked is gone,
//! and what cannot be written is said before anything is measured.

use crate::support::{expect, run_in, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs what was told, word for word, in a shell.
fn pasted(folder: &Path, line: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_uflip")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-c", line]).env("PATH", path).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line}\n{}", text(&output.stderr));
}

fn keep_runs(dir: &Path, count: usize) {
    let path = dir.join("runs.ndjson");
    let all = fs::read_to_string(&path).unwrap();
    fs::write(&path, all.split_inclusive('\n').take(count).collect::<String>()).unwrap();
}

#[test]
fn what_goes_on_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run = ["run", "null:64M", "-o", "my $out's", "--seed", "1", "--preset", "quick", "--method", "fixed"];
    expect(at, 0, &[&run[..], &["--only", "order", "--state", "none"]].concat());
    fs::write(at.join("b.job"), "a sw bs=4K count=8\n").unwrap();
    expect(at, 0, &["job", "null:64M", "b.job", "-o", "a job"]);
    let after = |err: &str, words: &str| {
        let (_, rest) = err.split_once(words).unwrap_or_else(|| panic!("{words}: {err}"));
        rest.lines().next().unwrap().trim_end_matches('.').to_string()
    };
    for (dir, command) in [("my $out's", "uflip run "), ("a job", "uflip job null:64M ")] {
        for kept in [1, 0] {
            keep_runs(&at.join(dir), kept);
            let told = if kept == 0 {
                let output = run_in(at, &["compare", dir, dir, "--no-html"]);
                assert!(!output.status.success());
                after(&text(&output.stderr), "go on with it: ")
            } else if dir == "a job" {
                continue;
            } else {
                after(&expect(at, 0, &["export", dir]).1, "go on with: ")
            };
            assert!(told.starts_with(command), "{told}");
            pasted(at, &told);
            let (_, err) = expect(at, 0, &["export", dir]);
            assert!(!err.contains("Incomplete"), "{err}");
        }
    }
    // A report of other runs.
    fs::copy(at.join("a job/report.html"), at.join("my $out's/report.html")).unwrap();
    let shown: Value = serde_json::from_str(&expect(at, 0, &["show", "my $out's", "--json"]).0).unwrap();
    let mut note = shown["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let note = note.rfind(|text| text.contains("report.html")).unwrap();
    pasted(at, &after(note, "make it again with: "));
}

/// The scratch file that a suite made unasked goes when all is measured, by
/// whichever command, and stays where that is asked for.
#[test]
fn a_suites_own_scratch_file_goes_after_a_resume() {
    let folder = tempfile::tempdir().unwrap();
    let (at, scratch) = (folder.path(), folder.path().join("uflip-scratch.bin"));
    let begin = [
        "run",
        "--suite",
        "ajwani-short",
        "--only",
        "new",
        "-o",
        "o",
        "--scratch-size",
        "16M",
        "--seed",
        "1",
    ];
    expect(at, 0, &begin);
    assert!(!scratch.exists());
    let manifest = at.join("o/manifest.json");
    let options = |path: &Path| -> Value {
        let all: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        all["options"].clone()
    };
    assert_eq!(options(&manifest)["remove_scratch"], true);
    fs::remove_dir_all(at.join("o")).unwrap();
    expect(at, 0, &[&begin[..], &["--keep-scratch"]].concat());
    assert!(scratch.exists());
    assert_eq!(options(&manifest)["remove_scratch"], false);
    keep_runs(&at.join("o"), 1);
    let resume = ["run", "-o", "o", "--resume"];
    expect(at, 0, &resume);
    assert!(scratch.exists(), "it was asked to stay when it began");
    // As a benchmark that was interrupted leaves it.
    let mut all: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    all["options"]["remove_scratch"] = true.into();
    all.as_object_mut().unwrap().remove("check");
    fs::write(&manifest, all.to_string()).unwrap();
    keep_runs(&at.join("o"), 1);
    expect(at, 0, &[&resume[..], &["--keep-scratch"]].concat());
    assert!(scratch.exists(), "--keep-scratch with --resume");
    keep_runs(&at.join("o"), 1);
    expect(at, 0, &resume);
    assert!(!scratch.exists(), "after a resume");
    assert!(!at.join("uflip-scratch.bin.uflip").exists());
}

#[test]
fn where_the_comparison_cannot_go_nothing_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("compare.html")).unwrap();
    let (_, err) = expect(at, 2, &["compare", "sim:mtron", "sim:samsung"]);
    assert!(err.contains("compare.html is a folder") && !err.contains("measuring"), "{err}");
    let (_, err) = expect(at, 2, &["compare", "sim:mtron", "sim:samsung", "--html", "compare.html"]);
    assert!(err.contains("compare.html is a folder") && !err.contains("measuring"), "{err}");
}
