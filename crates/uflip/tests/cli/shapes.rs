//! A file of the folder that is of another shape than it has is refused by every
//! command that reads it, with its name and what to do: nothing is concluded without
//! what it would have said.

use crate::support::{expect, uflip};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A small benchmark by the automatic method, with all of its files.
fn measured(at: &Path) {
    let args = ["run", "sim:mtron", "-o", "o", "--seed", "1", "--preset", "quick", "--only", "order"];
    expect(at, 0, &[&args[..], &["--values", "order=-1,1", "--baselines", "SW"]].concat());
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// With this in it the file has no checksum any more, as one of an earlier version.
fn plant(path: &Path, at: &str, other: &Value) {
    let mut value = json_of(path);
    let (parent, name) = at.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap()[name] = other.clone();
    value.as_object_mut().unwrap().remove("check");
    fs::write(path, value.to_string()).unwrap();
}

/// What `args` say, which must fail.
fn refusal(at: &Path, args: &[&str]) -> String {
    let out = uflip().current_dir(at).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success(), "{args:?}: {}{said}", String::from_utf8_lossy(&out.stdout));
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_file_of_another_shape_is_refused_by_all_that_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    measured(at);
    let remove = "or remove it: uflip run --resume then finds it again";
    let cases = [
        ("manifest.json", "/options", json!(["run"]), "it is no manifest", "restore it from a copy"),
        ("manifest.json", "/options/kind", json!("walk"), "options.kind: \"walk\"", "restore it from a copy"),
        ("manifest.json", "/options/auto", json!(true), "options.auto: ", "restore it from a copy"),
        (
            "manifest.json",
            "/target/changed",
            json!({"from_run": 3}),
            "it is no manifest",
            "restore it from a copy",
        ),
        ("manifest.json", "/target/facts/kind", json!("tape"), "target.facts: ", "restore it from a copy"),
        ("plan.json", "/steps", json!("all of them"), "it is no plan", "restore it from a copy"),
        ("calibration.json", "/baselines", json!({"XX": 3}), "it is no calibration", remove),
    ];
    for (file, place, other, told, remedy) in cases {
        let path = dir.join(file);
        let whole = fs::read(&path).unwrap();
        plant(&path, place, &other);
        let planted = fs::read(&path).unwrap();
        let commands: [&[&str]; 6] = [
            &["show", "o"],
            &["profile", "o"],
            &["report", "o"],
            &["export", "o"],
            &["compare", "o", "o", "--no-html"],
            &["run", "-o", "o", "--resume"],
        ];
        for args in commands {
            let said = refusal(at, args);
            assert!(
                said.contains(file) && said.contains(told) && said.contains(remedy),
                "{args:?}, {file} with {place} {other}: {said}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), planted, "{file}: nobody made it anew");
        fs::write(&path, whole).unwrap();
    }
    // The remedy that is told works.
    let whole = json_of(&dir.join("calibration.json"));
    fs::remove_file(dir.join("calibration.json")).unwrap();
    expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert_eq!(json_of(&dir.join("calibration.json"))["baselines"], whole["baselines"]);
}

/// What is read by a resume alone: how far the state was brought.
#[test]
fn a_state_of_another_shape_is_refused_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    let args = ["run", "null:64M", "-o", "o", "--seed", "1", "--method", "fixed", "--state", "random"];
    expect(at, 0, &[&args[..], &["--only", "order", "--values", "order=1", "--budget", "1s"]].concat());
    let rows = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
    // Nothing is kept any more, so that the state is asked for again.
    fs::write(dir.join("runs.ndjson"), "").unwrap();
    fs::remove_dir_all(dir.join("ios")).unwrap();
    plant(&dir.join("state.json"), "/ios", &json!("many"));
    let said = refusal(at, &["run", "-o", "o", "--resume"]);
    assert!(said.contains("state.json") && said.contains("it is no state"), "{said}");
    assert!(said.contains("remove it: --resume then enforces the state from its start"), "{said}");
    assert_eq!(fs::read_to_string(dir.join("runs.ndjson")).unwrap(), "");
    // Damage, other than another shape, is told and the state enforced from its start.
    fs::write(dir.join("state.json"), "{").unwrap();
    let (_, err) = expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert!(err.contains("state.json: ") && err.contains("from its start"), "{err}");
    let again = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
    assert_eq!(again.lines().count(), rows.lines().count());
}

/// A folder says of what kind it is: a job whose lines are called as those of the
/// search for the logical block is none, and goes on as what it is.
#[test]
fn a_folder_says_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("a.job"), "lb-a sr,rr bs=4K count=64\nlb-b sw bs=4K count=64\n").unwrap();
    expect(at, 0, &["job", "sim:kingston-dti", "a.job", "-o", "o", "--seed", "1"]);
    assert_eq!(json_of(&at.join("o/manifest.json"))["options"]["kind"], "job");
    let rows = fs::read_to_string(at.join("o/runs.ndjson")).unwrap();
    let kept: Vec<&str> = rows.split_inclusive('\n').take(1).collect();
    fs::write(at.join("o/runs.ndjson"), kept.concat()).unwrap();
    let (out, _) = expect(at, 0, &["show", "o"]);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("1 of 3 planned runs") && out.contains("uflip job sim:kingston-dti -o o --resume"),
        "{out}"
    );
    let said = refusal(at, &["logical-block", "sim:kingston-dti", "-o", "o", "--resume"]);
    assert!(said.contains("o was made by uflip job; go on with it: uflip job"), "{said}");
    for (args, kind) in [
        (&["run", "sim:kingston-dti", "--suite", "write-cost-short", "--only", "plain"][..], "suite"),
        (&["logical-block", "sim:kingston-dti", "--bytes", "64K"], "logical_block"),
        (
            &["calibrate", "sim:kingston-dti", "--preset", "quick", "--only", "order", "--values", "order=1"],
            "run",
        ),
    ] {
        expect(at, 0, &[args, &["-o", kind, "--seed", "1"]].concat());
        assert_eq!(json_of(&at.join(kind).join("manifest.json"))["options"]["kind"], kind);
    }
}
