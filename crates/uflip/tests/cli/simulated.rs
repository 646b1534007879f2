//! The files of simulated devices: shown, saved, refused and read again.

use crate::support::expect;
use serde_json::Value;
use std::path::Path;

/// The response times of 400 random writes after a pause, as CSV.
fn records(folder: &Path, target: &str) -> String {
    let args = ["pattern", target, "--base", "RW", "--io-count", "400", "--records", "r.csv", "--seed", "3"];
    expect(folder, 0, &args);
    std::fs::read_to_string(folder.join("r.csv")).unwrap()
}

#[test]
fn a_shown_file_can_be_saved_and_is_the_same_device() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // One of each kind, and a disk.
    for name in ["nvme-tlc", "mtron", "transcend-mlc", "kingston-dti", "ibm-deskstar-hdd-60G"] {
        let (toml, _) = expect(folder, 0, &["sim", "show", name, "--toml"]);
        assert!(toml.starts_with("# "), "{name}: its comments are in it\n{toml}");
        std::fs::write(folder.join("mine.toml"), &toml).unwrap();
        let (again, _) = expect(folder, 0, &["sim", "show", "mine.toml", "--toml"]);
        assert_eq!(again, toml, "{name}");
        expect(folder, 0, &["sim", "check", "mine.toml"]);
        let (first, saved) = (records(folder, &format!("sim:{name}")), records(folder, "sim:mine.toml"));
        assert!(first.lines().count() > 400 && first == saved, "{name} saved answers otherwise");
    }
    expect(folder, 2, &["sim", "show", "mtron", "--toml", "--json"]);
}

#[test]
fn an_option_of_another_kind_is_refused_with_its_line_and_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (toml, _) = expect(folder, 0, &["sim", "show", "mtron", "--toml"]);
    std::fs::write(folder.join("d.toml"), toml.replace("log_blocks = 4", "log_kib = 64")).unwrap();
    let line = 1 + toml.lines().position(|line| line == "log_blocks = 4").unwrap();
    let (_, err) = expect(folder, 1, &["sim", "check", "d.toml"]);
    let says = format!(
        "line {line}: ftl.log_kib: has no effect with kind = \"bast\"; remove it, or type kind = \"fast\""
    );
    assert!(err.contains(&says), "{err}");
}

/// Earlier versions wrote all options of all kinds, `null` where not given, and no
/// defaults. Their folders are gone on with.
#[test]
fn a_description_in_the_earlier_form_is_the_same_device() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a.job"), "a  sw,rw  bs=16K count=64 reps=2\n").unwrap();
    expect(folder, 0, &["job", "sim:kingston-dti", "a.job", "-o", "out", "--seed", "1"]);
    let file = folder.join("out/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let ftl = &mut manifest["target"]["facts"]["description"]["ftl"];
    assert_eq!(ftl["open_blocks"], 5, "only the options of its kind are there: {ftl}");
    assert!(ftl.get("log_blocks").is_none(), "{ftl}");
    for option in ["log_blocks", "merge_batch", "gc", "gc_choices", "hot_cold", "log_kib", "unit_kib"] {
        ftl[option] = Value::Null;
    }
    manifest.as_object_mut().unwrap().remove("check");
    std::fs::write(&file, serde_json::to_string(&manifest).unwrap()).unwrap();
    let runs = folder.join("out/runs.ndjson");
    let all = std::fs::read_to_string(&runs).unwrap();
    std::fs::write(&runs, all.split_inclusive('\n').take(2).collect::<String>()).unwrap();
    expect(folder, 0, &["job", "sim:kingston-dti", "-o", "out", "--resume"]);
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), all.lines().count());
}

#[test]
fn reading_flash_that_was_never_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let pattern = |base: &str, target: &str| {
        let args = ["pattern", target, "--base", base, "--io-count", "64", "--seed", "3", "--json"];
        let (out, err) = expect(folder.path(), 0, &args);
        let facts: Value = serde_json::from_str(&out).unwrap();
        (facts["findings"].clone(), facts["probes"]["counters"]["host_read_unwritten"].clone(), err)
    };
    let (findings, unwritten, err) = pattern("RR", "sim:mtron");
    assert_eq!(unwritten, 64 * (32 << 10));
    assert_eq!(
        (&findings[0]["code"], &findings[0]["severity"]),
        (&"unwritten_read".into(), &"warning".into())
    );
    let said = findings[0]["statement"].as_str().unwrap();
    assert!(said.starts_with("2M of 2M were read where nothing is written"), "{said}");
    assert!(err.contains(&format!("warning: {said}")), "{err}");
    let nothing = Value::Array(Vec::new());
    let (findings, unwritten, err) = pattern("SW", "sim:mtron");
    assert!(findings == nothing && unwritten == 0 && !err.contains("warning"), "{findings} {err}");
    // A disk has no such state.
    let (findings, unwritten, _) = pattern("RR", "sim:ibm-deskstar-hdd-60G");
    assert!(findings == nothing && unwritten.is_null(), "{findings}");
}

#[test]
fn what_a_buffered_run_leaves_in_the_page_cache_is_written_back_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let pattern = |buffering: &str| {
        let args = ["pattern", "./scratch", "--scratch-size", "4M", "--base", "SW", "--io-count", "64"];
        let (out, err) = expect(at, 0, &[&args[..], &["--buffering", buffering, "--json"]].concat());
        let facts: Value = serde_json::from_str(&out).unwrap();
        (facts["findings"].clone(), facts["end"]["written_back"].as_u64(), err)
    };
    let (findings, written_back, _) = pattern("direct");
    assert_eq!((findings, written_back), (Value::Array(Vec::new()), None));
    let (findings, written_back, err) = pattern("buffered");
    assert!(written_back.is_some_and(|ns| ns > 0), "{findings}");
    assert_eq!((&findings[0]["code"], &findings[0]["severity"]), (&"page_cache".into(), &"serious".into()));
    assert!(err.contains("to be written to the device, which no figure holds"), "{err}");
}
