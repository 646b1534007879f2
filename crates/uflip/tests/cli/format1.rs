//! Folders of format 1 open for ever: a small one of each kind, made by the last
//! version that wrote them on the simulated `kingston-dti`.

use crate::support::{expect, finished_runs};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const KINDS: [&str; 5] = ["run", "calibrate", "job", "suite", "logical-block"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format1")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let into = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &into);
        } else {
            fs::copy(entry.path(), into).unwrap();
        }
    }
}

/// The fixture of this kind, to be worked with.
fn folder_of(kind: &str, within: &Path) {
    copy(&fixtures().join(kind), &within.join(kind));
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Leaves the first `rows` of the folder's runs.
fn cut(dir: &Path, rows: usize) {
    let text = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
    for line in text.lines().skip(rows) {
        let row: Value = serde_json::from_str(line).unwrap();
        fs::remove_file(dir.join(row["records"]["file"].as_str().unwrap())).unwrap();
    }
    fs::write(dir.join("runs.ndjson"), text.split_inclusive('\n').take(rows).collect::<String>()).unwrap();
}

#[test]
fn every_kind_opens_and_shows_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        folder_of(kind, folder.path());
        let dir = folder.path().join(kind);
        assert_eq!(json(&dir.join("manifest.json"))["format"], 1, "{kind}");
        let (out, _) = expect(folder.path(), 0, &["show", kind, "--json"]);
        let shown: Value = serde_json::from_str(&out).unwrap();
        let alerts = shown["view"]["alerts"].as_array().or(shown["alerts"].as_array()).unwrap();
        let calibrated_only = alerts.iter().any(|a| a.as_str().unwrap().contains("calibrated only"));
        assert_eq!((alerts.len(), calibrated_only), if kind == "calibrate" { (1, true) } else { (0, false) });
        expect(folder.path(), 0, &["report", kind, "-o", "report.html"]);
        expect(folder.path(), 0, &["export", kind, "-o", "runs.csv"]);
        assert_eq!(json(&dir.join("manifest.json"))["format"], 1, "{kind}: looking changes nothing");
    }
    expect(folder.path(), 0, &["compare", "run", "run", "--json"]);
}

/// The report of a job's folder, from what its runs stand for, is what the
/// version that measured it said.
#[test]
fn a_jobs_runs_mean_what_they_meant() {
    let folder = tempfile::tempdir().unwrap();
    folder_of("job", folder.path());
    let dir = folder.path().join("job");
    let was = json(&dir.join("job.json"));
    cut(&dir, 7);
    let (out, err) =
        expect(folder.path(), 0, &["job", "sim:kingston-dti", "-o", "job", "--resume", "--json"]);
    let is: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    for part in
        ["speeds", "table31_mb_per_s", "misaligned", "recovery", "rewrite", "series", "drift", "merge"]
    {
        assert_eq!(is[part], was[part], "{part}");
    }
    // What was added is of this version, and the folder says so; all of it is read as one.
    let manifest = json(&dir.join("manifest.json"));
    assert_eq!(
        (manifest["format"].clone(), json(&dir.join("plan.json"))["format"].clone()),
        (2.into(), 2.into())
    );
    let rows = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), 12);
    assert!(rows[0]["job"].is_null() && rows[11]["job"]["line"] == "seen", "{}", rows[11]);
    let (out, _) = expect(folder.path(), 0, &["show", "job"]);
    assert!(out.contains("seen after rw(bs=2K,time=20ms)") && !out.contains("Incomplete"), "{out}");
}

#[test]
fn what_was_begun_by_an_earlier_version_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, rows, all, args) in [
        ("run", 3, 5, vec!["run", "-o", "run", "--resume"]),
        ("calibrate", 1, 3, vec!["run", "-o", "calibrate", "--resume"]),
        ("suite", 2, 4, vec!["run", "-o", "suite", "--resume"]),
        ("logical-block", 1, 2, vec!["logical-block", "sim:kingston-dti", "-o", "logical-block", "--resume"]),
    ] {
        folder_of(kind, folder.path());
        let dir = folder.path().join(kind);
        cut(&dir, rows);
        expect(folder.path(), 0, &args);
        assert_eq!(finished_runs(&dir).len(), all, "{kind}");
        for row in fs::read_dir(fixtures().join(kind).join("ios")).unwrap() {
            let row = row.unwrap();
            let again = fs::read(dir.join("ios").join(row.file_name())).unwrap();
            assert!(fs::read(row.path()).unwrap() == again, "{kind}: {:?}", row.file_name());
        }
    }
}

/// A sound row of another folder of the same plan and seed is none of this one's.
#[test]
fn a_row_of_another_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let plan = fixtures().join("run/plan.json");
    let plan = plan.to_str().unwrap();
    for dir in ["a", "b"] {
        expect(folder.path(), 0, &["run", "sim:kingston-dti", "-o", dir, "--plan", plan]);
    }
    let rows = |dir: &str| fs::read_to_string(folder.path().join(dir).join("runs.ndjson")).unwrap();
    let (mine, foreign) = (rows("a"), rows("b"));
    let mixed: Vec<&str> = mine.lines().take(4).chain(foreign.lines().skip(4)).collect();
    fs::write(folder.path().join("a/runs.ndjson"), mixed.join("\n") + "\n").unwrap();
    let (out, _) = expect(folder.path(), 0, &["show", "a"]);
    assert!(out.contains("of another folder"), "{out}");
    let (_, err) = expect(folder.path(), 0, &["run", "-o", "a", "--resume"]);
    assert!(err.contains("run 4 is measured again"), "{err}");
}
