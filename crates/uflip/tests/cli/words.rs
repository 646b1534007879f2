//! What people read: nothing that others wrote steers a terminal, every option
//! that is named exists, a resume refuses what it would not heed, a cause is said
//! once, and nothing is to be gone on with where there is nothing.

use crate::support::{expect, run_in, text, uflip};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use uflip_device::identity::is_hostile;
use uflip_store::checksum;

/// Clears the screen, sets a title, rings, goes back, turns the writing, hides,
/// a C1 control and a delete.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\r\u{8}\u{202e}\u{200b}\u{1b}[8m\u{9b}31m\u{7f}";

#[track_caller]
fn harmless(output: &Output, what: &str) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = text(bytes);
        let bad = text.chars().find(|c| is_hostile(*c) && !matches!(c, '\n' | '\t'));
        assert_eq!(bad, None, "{what}: {text:?}");
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

/// A folder with some results.
fn results(folder: &Path) {
    let args = [
        "run",
        "sim:toshiba-transmemory-1G",
        "-o",
        "out",
        "--seed",
        "1",
        "--preset",
        "quick",
        "--method",
        "fixed",
    ];
    expect(folder, 0, &[&args[..], &["--only", "order", "--state", "none"]].concat());
}

/// Where the strings are, array places aside.
fn strings(value: &Value, at: &str, found: &mut BTreeMap<String, String>) {
    let pointer = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::String(_) => {
            let general: String =
                at.split('/').map(|part| if part.parse::<u32>().is_ok() { "#" } else { part }).collect();
            found.entry(general).or_insert(at.to_string());
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| strings(item, &pointer(&i.to_string()), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, item)| strings(item, &pointer(name), found)),
        _ => {}
    }
}

const READERS: [&[&str]; 7] = [
    &["show", "out"],
    &["profile", "out"],
    &["compare", "out", "out", "--no-html"],
    &["export", "out"],
    &["show", "out", "--json"],
    &["export", "out", "--format", "json"],
    &["run", "-o", "out", "--resume"],
];

/// The beginning of [`HOSTILE`] as it is shown, and as JSON says it.
const SHOWN: [&str; 2] = ["?[2J?]0;t", "\\u001b[2J\\u001b]0;t"];

/// Every string of every file, with checksums that fit, so that it is read and
/// comes as far as it can.
#[test]
fn hostile_strings_of_a_folder_reach_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    results(folder);
    let (mut tried, mut came_through) = (0, 0);
    let mut by_file = BTreeMap::new();
    let names = ["manifest.json", "plan.json", "runs.ndjson", "profile.json"];
    let files = names.map(|name| folder.join("out").join(name));
    let files = files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()));
    for (name, (path, whole)) in names.into_iter().zip(&files) {
        let (first, rest) =
            if name.ends_with("ndjson") { whole.split_once('\n').unwrap() } else { (&whole[..], "") };
        let mut value: Value = serde_json::from_str(first).unwrap();
        assert!(value.as_object_mut().unwrap().remove(checksum::FIELD).is_some(), "{name} is sealed");
        let mut places = BTreeMap::new();
        strings(&value, "", &mut places);
        // Of another derivation it would be made again before anybody reads it.
        places.retain(|_, place| place != "/derived_from");
        assert!(!places.is_empty(), "{name} has strings");
        for place in places.values() {
            let mut hostile = value.clone();
            let string = hostile.pointer_mut(place).unwrap();
            *string = format!("{}{HOSTILE}", string.as_str().unwrap()).into();
            let mut bytes = checksum::seal(hostile.to_string().into_bytes());
            assert_eq!(checksum::examine(&bytes), checksum::Seal::Intact);
            if name.ends_with("ndjson") {
                bytes.extend(format!("\n{rest}").into_bytes());
            }
            let mut shown = false;
            for reader in [READERS[0], READERS[tried % READERS.len()]] {
                // A reader may make it again, or measure.
                files.iter().for_each(|(path, whole)| std::fs::write(path, whole).unwrap());
                std::fs::write(path, &bytes).unwrap();
                let output = run_in(folder, reader);
                harmless(&output, &format!("{reader:?} with {name}{place}"));
                let said = [text(&output.stdout), text(&output.stderr)].concat();
                shown |= SHOWN.iter().any(|hostile| said.contains(hostile));
            }
            tried += 1;
            came_through += u32::from(shown);
            *by_file.entry(name).or_insert(0) += u32::from(shown);
        }
    }
    eprintln!("{tried} places, {came_through} came as far as being shown: {by_file:?}");
    assert!(tried > 40, "only {tried} places");
    assert!(by_file.values().all(|shown| *shown > 0), "a file of which nothing is shown: {by_file:?}");
}

#[test]
fn hostile_words_and_names_reach_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hostile = OsStr::new(HOSTILE);
    let broken = OsStr::from_bytes(b"\x1b[2J\xff\x9b");
    let job = format!("a{HOSTILE} sw bs=4K count=8\n");
    std::fs::write(folder.join("a.job"), job).unwrap();
    std::fs::write(folder.join("b.job"), "a sw bs=4K count=8\n").unwrap();
    std::fs::write(folder.join(hostile), format!("{{\"{HOSTILE}\": 1}}")).unwrap();
    std::fs::write(folder.join("d.toml"), format!("name = \"x{HOSTILE}\"\nfoo = 1\n")).unwrap();
    let os = OsStr::new;
    let lines: Vec<Vec<&OsStr>> = vec![
        vec![hostile],
        vec![os("show"), hostile],
        vec![os("show"), broken],
        vec![os("--x"), broken],
        vec![os("compare"), hostile, hostile],
        vec![os("pattern"), os("null:"), os("--base"), hostile],
        vec![os("pattern"), os("null:"), os("--pattern"), hostile],
        vec![os("pattern"), os("null:"), os("--base"), os("SR"), os("--records"), hostile],
        vec![os("pattern"), os("null:"), os("--base"), os("SR"), os("--io-size"), hostile],
        vec![os("run"), os("null:64M"), os("--only"), hostile],
        vec![os("run"), os("null:64M"), os("--plan"), hostile],
        vec![os("run"), os("-o"), hostile, os("--resume")],
        vec![os("plan"), hostile],
        vec![os("job"), os("null:64M"), os("a.job"), os("--check")],
        vec![os("job"), os("null:64M"), os("a.job"), os("--print")],
        vec![os("job"), hostile, os("b.job"), os("--check")],
        vec![os("job"), os("null:64M"), hostile],
        vec![os("sim"), os("show"), hostile],
        vec![os("sim"), os("check"), os("d.toml")],
        vec![os("sim"), os("check"), hostile],
        vec![os("predict"), hostile, os("--trace"), hostile],
        vec![os("export"), hostile, os("--figures"), hostile],
        vec![os("report"), hostile, os("-o"), hostile],
    ];
    for line in lines {
        let output = uflip().current_dir(folder).args(&line).output().unwrap();
        harmless(&output, &format!("{line:?}"));
    }
    // A folder, a target and a device file of hostile names that work.
    let out = format!("o{HOSTILE}");
    let args =
        ["pattern", &format!("./t{HOSTILE}"), "--base", "SW", "--io-count", "8", "--scratch-size", "1M"];
    let output = run_in(folder, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    harmless(&output, "pattern");
    let output = run_in(folder, &["job", "null:64M", "b.job", "-o", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    harmless(&output, "job");
    harmless(&run_in(folder, &["show", &out]), "show");
}

/// The options of each command, as its help lists them.
fn options() -> BTreeMap<String, BTreeSet<String>> {
    let help = |words: &[&str]| text(&uflip().args(words).arg("--help").output().unwrap().stdout);
    let of = |help: &str| -> BTreeSet<String> {
        let listed = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
        listed
            .filter_map(|line| line.split([' ', ',']).find(|w| w.starts_with("--")))
            .map(str::to_string)
            .collect()
    };
    let names = |help: &str| -> Vec<String> {
        let after = help.split("Commands:\n").nth(1).unwrap_or_default();
        let lines = after.lines().take_while(|line| !line.is_empty());
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        names.filter_map(|line| line.split_whitespace().next()).map(str::to_string).collect()
    };
    let mut all = BTreeMap::new();
    for name in names(&help(&[])) {
        let mut known = of(&help(&[&name]));
        for part in names(&help(&[&name])).iter().filter(|part| *part != "help") {
            known.extend(of(&help(&[&name, part])));
        }
        all.insert(name, known);
    }
    assert!(all["run"].contains("--resume") && all["sim"].contains("--all"), "{all:?}");
    all
}

/// `--name` in a text.
fn named(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '/') {
            continue;
        }
        let name: String =
            text[at + 2..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let name = name.trim_end_matches('-');
        // A property of a style sheet.
        if text[at + 2 + name.len()..].starts_with(": var(") {
            continue;
        }
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            all.push(format!("--{name}"));
        }
    }
    all
}

/// The string literals of Rust source outside its tests and comments.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|l| format!("{l}\n"))
        .collect();
    let (mut all, mut rest) = (Vec::new(), &code[..]);
    while let Some(start) = rest.find(['"', '\'']) {
        let (quote, inner) = (rest.as_bytes()[start], &rest[start + 1..]);
        if quote == b'\'' {
            // A character or a lifetime.
            let skip = if inner.starts_with('\\') {
                inner[2..].find('\'').map_or(1, |at| at + 3)
            } else {
                let length = inner.chars().next().map_or(0, char::len_utf8);
                if inner[length..].starts_with('\'') { length + 1 } else { 0 }
            };
            rest = &inner[skip..];
            continue;
        }
        let mut escaped = false;
        let end = inner.find(|c: char| {
            let over = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            over
        });
        let Some(end) = end else { break };
        all.push(inner[..end].to_string());
        rest = &inner[end + 1..];
    }
    all
}

fn files(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
}

/// The commands that a text speaks of: `uflip NAME`.
fn spoken_of<'a>(text: &str, known: &'a BTreeMap<String, BTreeSet<String>>) -> Vec<&'a str> {
    known
        .keys()
        .map(String::as_str)
        .filter(|name| {
            let call = format!("uflip {name}");
            text.match_indices(&call).any(|(at, _)| {
                !text[at + call.len()..].starts_with(|c: char| c == '-' || c.is_alphanumeric())
            })
        })
        .collect()
}

#[test]
fn every_option_that_is_named_exists() {
    let known = options();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let measuring = ["run", "pattern", "job", "logical-block"];
    // The command of a file; a literal that is an option and no more is typed for another one.
    let command_of = |path: &str| -> Option<Vec<&str>> {
        let file = path.split("/command/").nth(1)?;
        let name = file.split(['/', '.']).next()?.replace('_', "-");
        known.keys().map(String::as_str).find(|known| *known == name).map(|name| vec![name])
    };
    let mut sources = Vec::new();
    for name in ["analysis", "device", "measure", "report", "sim", "store", "uflip"] {
        files(&root.join("crates").join(name).join("src"), "rs", &mut sources);
    }
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in sources {
        let shown = path.strip_prefix(&root).unwrap().display().to_string();
        // Other programs' options; tests in files of their own; what is typed in proofs.
        if ["loopdev.rs", "tests.rs", "/tests/", "/verify/"].iter().any(|other| shown.contains(other)) {
            continue;
        }
        for literal in literals(&std::fs::read_to_string(&path).unwrap()) {
            let spoken = spoken_of(&literal, &known);
            for option in named(&literal) {
                seen += 1;
                let has = |name: &&str| known[*name].contains(&option);
                let right = if !spoken.is_empty() {
                    spoken.iter().any(has)
                } else if shown.contains("crates/device/") {
                    // Whoever measures may come to read it.
                    measuring.iter().all(has)
                } else if let Some(commands) = command_of(&shown).filter(|_| literal != option) {
                    commands.iter().any(has)
                } else {
                    known.keys().map(String::as_str).any(|name| has(&name))
                };
                if !right {
                    wrong.push(format!("{shown}: {option} in {literal:?}"));
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} options are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_option_that_the_documents_name_exists() {
    let known = options();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("ARCHITECTURE.md"), root.join("CHANGELOG.md")];
    files(&root.join("docs"), "md", &mut pages);
    let others = ["cargo", "fio", "losetup", ".py", "blktrace", "mkfs", "--rr", "--example", "--test"];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !others.iter().any(|other| line.contains(other))) {
            for option in named(line) {
                seen += 1;
                if !known.values().any(|options| options.contains(&option)) {
                    wrong.push(format!("{}: {option} in {line}", path.display()));
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} options are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_resume_refuses_what_it_would_not_heed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let begun = [
        "run", "null:64M", "-o", "out", "--seed", "3", "--only", "order", "--budget", "1s", "--method",
        "fixed",
    ];
    expect(folder, 0, &begun);
    let on = ["run", "-o", "out", "--resume"];
    for (more, parts) in [
        (
            &["--preset", "full"][..],
            ["--preset was chosen when the benchmark began (quick)", "leave it away"],
        ),
        (
            &["--only", "mix"],
            ["--only was chosen when the benchmark began (order)", "start a new one with -o"],
        ),
        (&["--io-size", "4K"], ["--io-size was chosen when the benchmark began (32K)", "leave it away"]),
        (&["--repeats", "3"], ["--repeats was not given when the benchmark began", "leave it away"]),
        (&["--engine", "io_uring"], ["--engine was not given when the benchmark began", "leave it away"]),
        (&["--scratch-size", "1M"], ["--scratch-size was chosen", "(1G)"]),
        (&["--state", "random"], ["--state was not given", "leave it away"]),
        (&["--seed", "4"], ["--seed 3", "not 4"]),
    ] {
        let output = run_in(folder, &[&on[..], more].concat());
        let err = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{more:?}: {err}");
        assert!(parts.iter().all(|part| err.contains(part)), "{more:?}: {err}");
    }
    // What was chosen may be said again, and what a resume heeds said anew.
    expect(folder, 0, &[&begun[..], &["--resume"]].concat());
    expect(folder, 0, &[&on[..], &["--seed", "3", "--budget", "2s", "--json", "--keep-scratch"]].concat());
    // A folder of before does not know what was chosen.
    let path = folder.join("out/manifest.json");
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    manifest["options"].as_object_mut().unwrap().remove("chosen").expect("it was kept");
    std::fs::write(&path, manifest.to_string()).unwrap();
    let (_, err) = expect(folder, 2, &[&on[..], &["--only", "order"]].concat());
    assert!(err.contains("--only was settled when the benchmark began"), "{err}");
}

#[test]
fn a_resumed_job_refuses_what_it_would_not_heed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a.job"), "a sw bs=4K count=8\nb rw bs=4K count=8\n").unwrap();
    expect(folder, 0, &["job", "null:64M", "a.job", "-o", "out", "--seed", "3", "--only", "a"]);
    for (command, more, part) in [
        ("job", &["--only", "b"][..], "--only was chosen when the benchmark began (a)"),
        ("job", &["--check"], "--check does nothing"),
        ("job", &["--data", "zeros"], "--data was not given when the benchmark began"),
        ("job", &["--logical-block", "1M"], "--logical-block was not given"),
        ("run", &["--budget", "1m"], "out was made by uflip job"),
    ] {
        let (_, err) = expect(folder, 2, &[&[command, "null:64M", "-o", "out", "--resume"], more].concat());
        assert!(err.contains(part), "{more:?}: {err}");
    }
    expect(folder, 0, &["job", "null:64M", "-o", "out", "--resume", "--only", "a", "--seed", "3"]);
}

/// No part of a message between colons, semicolons and line ends twice.
#[track_caller]
fn said_once(err: &str) {
    let parts = err.split([':', ';', '\n', '(']).map(|part| part.trim().trim_end_matches('.'));
    let mut seen = BTreeSet::new();
    for part in parts.filter(|part| part.split_whitespace().count() > 2) {
        assert!(seen.insert(part), "twice '{part}':\n{err}");
    }
}

#[test]
fn a_cause_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    results(folder);
    std::fs::write(folder.join("a.job"), "a sw bs=4Q count=8\n").unwrap();
    std::fs::write(folder.join("p.json"), "{").unwrap();
    std::fs::write(folder.join("d.toml"), "name = 1\n").unwrap();
    std::fs::write(folder.join("out/ios/run-000001.parquet"), "no").unwrap();
    // What is damaged is left out, with a word.
    said_once(&expect(folder, 0, &["export", "out", "--what", "records", "-o", "x.csv"]).1);
    for args in [
        &["show", "nowhere"][..],
        &["show", "a.job"],
        &["export", "out", "-o", "no/where.csv"],
        &["export", "out", "--format", "csv", "-o", "/dev/full"],
        &["report", "out", "-o", "no/where.html"],
        &["compare", "out", "nowhere"],
        &["job", "null:64M", "a.job"],
        &["job", "null:64M", "none.job"],
        &["run", "null:64M", "--plan", "p.json"],
        &["run", "-o", "nowhere", "--resume"],
        &["run", "sim:d.toml"],
        &["sim", "check", "d.toml"],
        &["pattern", "/proc/version", "--base", "SR"],
        &["pattern", "nowhere/x", "--base", "SR"],
        &["pattern", "null:64M", "--base", "SR", "--records", "no/where.csv"],
        &["pattern", "null:64M", "--base", "SR", "--records", "/dev/full/x.parquet"],
        &["predict", "out", "--trace", "nowhere"],
        &["predict", "out", "--trace", "a.job"],
    ] {
        let output = run_in(folder, args);
        assert!(!output.status.success(), "{args:?}");
        said_once(&text(&output.stderr));
    }
}

#[test]
fn nothing_is_to_be_gone_on_with_where_there_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    results(folder);
    let blocked = folder.join("file");
    std::fs::write(&blocked, "x").unwrap();
    for args in [
        &["export", "out", "--format", "csv", "-o", "/dev/full"][..],
        &["report", "out", "-o", "file/x.html"],
        &["run", "null:64M", "-o", "file/out"],
        &["job", "null:64M", "none.job", "-o", "new"],
        &["run", "/proc/version", "-o", "new"],
        &["run", "./scratch", "--scratch-size", "1000T", "-o", "new"],
        &["logical-block", "/proc/version", "-o", "new"],
    ] {
        let output = run_in(folder, args);
        let err = text(&output.stderr);
        assert!(!output.status.success() && !err.contains("--resume"), "{args:?}: {err}");
    }
}
