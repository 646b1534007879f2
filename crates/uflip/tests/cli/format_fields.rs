//! What the documents say of a folder's files, field by field: whatever is written is
//! documented in the section of its file, and whatever is documented is written.
//!
//! How: folders of every kind are made, small, and the names of all their JSON's fields
//! are held against the names in the tables of `docs/format.md` and `docs/profile.md`.

use crate::support::{FIXED, expect};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Fields whose own fields have names of elsewhere: options, keys of device files, what a
/// program calls its devices and arguments.
const NAMED_ELSEWHERE: [&str; 5] = ["chosen", "description", "arguments", "devices", "overrides"];

/// Names in first columns that small folders do not have, and why.
const SELDOM: [(&str, &str); 7] = [
    ("late", "an open loop, which a plan has only where somebody wrote it in"),
    ("changed", "the folder went on on another device"),
    ("incidents", "something befell a run from outside"),
    ("layout_changed", "a file lay otherwise after a run"),
    ("written_back", "the page cache was in the way of a run"),
    ("attempts", "a run was measured again"),
    ("end", "of the two before"),
];

/// The part of a document from the heading that begins with `heading` to the next of its rank.
fn section(document: &str, heading: &str) -> String {
    let rank = heading.split(' ').next().unwrap();
    let begin = document.find(&format!("\n{heading}")).unwrap_or_else(|| panic!("no {heading}")) + 1;
    let after = &document[begin..];
    after[..after[1..].find(&format!("\n{rank} ")).map_or(after.len(), |at| at + 1)].to_string()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// What stands between backticks on one line, in pieces.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// All names in backticks.
fn named(text: &str) -> BTreeSet<&str> {
    text.lines().flat_map(quoted).flat_map(words).collect()
}

/// The last names of the fields in the first columns of the tables.
fn fields_of_tables(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let first = rows.filter_map(|row| row.split('|').nth(1)).filter(|cell| !cell.trim().starts_with("field"));
    first.flat_map(quoted).filter_map(|name| words(name).filter(|word| *word != "NAME").last()).collect()
}

fn walk(value: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                found.entry(name.clone()).or_insert_with(|| path.clone());
                if !NAMED_ELSEWHERE.contains(&name.as_str()) {
                    walk(value, &path, found);
                } else if let (Some(of), "devices") = (value.as_object(), name.as_str()) {
                    of.values().for_each(|device| walk(device, &path, found));
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| walk(value, path, found)),
        _ => {}
    }
}

/// The fields of every file of this name, and the path where each was met first.
fn written(folders: &[PathBuf], name: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join(name)) else { continue };
        let at = format!("{}/{name}", folder.file_name().unwrap().to_string_lossy());
        if name.ends_with(".ndjson") {
            let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
            rows.for_each(|row: Value| walk(&row, &at, &mut found));
        } else {
            walk(&serde_json::from_str(&text).unwrap(), &at, &mut found);
        }
    }
    assert!(!found.is_empty(), "no folder has a {name}");
    found
}

const JOB: &str = "\
set logical=4M
cost rw bs=16K..64K*2 sync=1 count=64 before=fill(1M)
many rw bs=4K count=400
rec sw bs=32K count=200 window=20ms before=rw(bs=2K,count=40)
end sw bs=64K passes=2 rounds=2 then=many
mis rw bs=16K shift=0,2K count=50
";

/// A small folder of each kind.
fn folders(at: &Path) -> Vec<PathBuf> {
    let only = ["--only", "granularity,mix", "--values", "granularity=32K", "--seed", "1"];
    expect(at, 0, &[&["run", "sim:mtron", "-o", "auto"][..], &only].concat());
    let file = ["run", "./f", "--scratch-size", "8M", "-o", "file", "--state", "sequential"];
    let fixed = [&FIXED[..2], &["--only", "granularity", "--values", "granularity=32K"]].concat();
    expect(at, 0, &[&file[..], &fixed].concat());
    std::fs::write(at.join("a.job"), JOB).unwrap();
    expect(at, 0, &["job", "sim:toshiba-transmemory-1G", "a.job", "-o", "job", "--seed", "1"]);
    std::fs::write(at.join("from"), vec![7; 1 << 20]).unwrap();
    expect(at, 0, &["copy", "./from", "./to", "-o", "program"]);
    ["auto", "file", "job", "program"].map(|name| at.join(name)).to_vec()
}

#[test]
fn every_field_is_documented_and_every_documented_field_is_written() {
    let document = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let (format, profile, models) = (document("format.md"), document("profile.md"), document("models.md"));
    let of = |heading: &str| section(&format, heading);
    let checksums = of("## Checksums");
    let rows = of("## `runs.ndjson`") + &of("### `job` of a row") + &of("### `program`, `trace`");
    let calibration = of("## `calibration.json`");
    // Of each file: where all its fields are named, and the tables whose fields it must have.
    let files: [(&str, String, String); 7] = [
        ("manifest.json", of("## `manifest.json`"), of("## `manifest.json`")),
        ("plan.json", of("## `plan.json`") + &rows, of("## `plan.json`")),
        ("calibration.json", calibration.clone(), calibration.clone()),
        ("state.json", of("## `state.json`"), of("## `state.json`")),
        ("runs.ndjson", rows.clone() + &calibration, rows),
        ("job.json", of("## `job.json`"), of("## `job.json`")),
        ("profile.json", profile.clone() + &models, section(&profile, "## Schema")),
    ];
    let folder = tempfile::tempdir().unwrap();
    let folders = folders(folder.path());
    let mut wrong = String::new();
    for (name, told, tables) in &files {
        let (written, told) = (written(&folders, name), told.clone() + &checksums);
        let named = named(&told);
        for (_, path) in written.iter().filter(|(field, _)| !words(field).all(|word| named.contains(word))) {
            wrong += &format!("written and not documented: {path}\n");
        }
        let fields = fields_of_tables(tables);
        assert!(fields.len() >= 6, "{name}: its tables were found: {fields:?}");
        let seldom = |field: &str| SELDOM.iter().any(|(name, _)| *name == field);
        for field in fields.into_iter().filter(|field| !written.contains_key(*field) && !seldom(field)) {
            wrong += &format!("documented and not written: {field} of {name}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
