//! No wrong number in silence: what is damaged, changed or incomplete in a
//! results folder is said before anything else, left out, and measured again.

use crate::support::{expect, finished_runs};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use uflip_analysis::compare::{Subject, compare};
use uflip_analysis::profile;
use uflip_device::rng::Rng;
use uflip_device::{Arrival, Io, IoRecord, Nanos};
use uflip_report::view;
use uflip_store::Store;
use uflip_store::checksum::{checksum, seal};
use uflip_store::records::{RecordScratch, RecordWriter};

/// Flips of single bits over all files of a folder.
const FLIPS: u64 = 1000;

/// A small benchmark of a simulated device in `o`: a dozen short runs.
fn measured(folder: &Path, target: &str) {
    let args = ["plan", target, "--json", "--preset", "quick", "--only", "order", "--method", "fixed"];
    let (plan, _) = expect(folder, 0, &[&args[..], &["--seed", "5", "--values", "order=-1,0,1"]].concat());
    let mut plan: Value = serde_json::from_str(&plan).unwrap();
    for step in plan["steps"].as_array_mut().unwrap().iter_mut().filter(|s| s["step"] == "run") {
        (step["io_count"], step["io_ignore"]) = (96.into(), 4.into());
    }
    fs::write(folder.join("small.json"), plan.to_string()).unwrap();
    expect(folder, 0, &["run", target, "--plan", "small.json", "-o", "o"]);
}

fn lines(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
    text.lines().map(str::to_string).collect()
}

fn keep_lines(dir: &Path, lines: &[String]) {
    fs::write(dir.join("runs.ndjson"), lines.iter().map(|l| format!("{l}\n")).collect::<String>()).unwrap();
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Makes the folder one of a version without checksums.
fn without_checksums(dir: &Path) {
    let strip = |line: &String| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let gone = row.as_object_mut().unwrap().remove("check");
        let sum = row["records"].as_object_mut().unwrap().remove("checksum");
        assert!(gone.is_some() && sum.is_some(), "{line}");
        row.to_string()
    };
    keep_lines(dir, &lines(dir).iter().map(strip).collect::<Vec<_>>());
    for name in ["manifest.json", "plan.json"] {
        let mut value = json(&dir.join(name));
        value.as_object_mut().unwrap().remove("check").unwrap();
        fs::write(dir.join(name), value.to_string()).unwrap();
    }
}

/// What a person is told of a folder: figures, and what speaks against them.
fn told(dir: &Path, pristine: Option<&Path>) -> Result<(Value, Vec<String>), String> {
    let contents = Store::open(dir).map_err(|e| e.to_string())?;
    let view = view::build(&contents);
    let profile = profile::build(&contents).map_err(|e| e.to_string())?;
    let mut said = [&view.alerts[..], &view.notes].concat();
    said.extend(profile.soundness.iter().map(|f| f.statement.clone()));
    // What is made again in silence would be enough for these.
    said.retain(|text| !text.contains("profile.json") && !text.contains("report.html"));
    // The page and the export show each run's own, too.
    let runs: Vec<_> = contents.runs.iter().map(|row| (row.spec.id, &row.stats)).collect();
    let mut figures = serde_json::json!([view, profile, null, runs]);
    for (at, gone) in [(0, "alerts"), (0, "notes"), (0, "soundness"), (1, "soundness"), (1, "derived_from")] {
        figures[at].as_object_mut().unwrap().remove(gone).unwrap();
    }
    if let Some(pristine) = pristine {
        let of = |contents| Subject::new("x", contents).map_err(|e| e.to_string());
        let pair = [of(Store::open(pristine).unwrap())?, of(contents)?];
        let made = compare(&pair, &[]);
        said.extend(made.subjects[1].alerts.clone());
        figures[2] = serde_json::to_value((&made.figures, &made.curves)).unwrap();
    }
    Ok((figures, said))
}

/// As a reader would that checks nothing: every checksum made to fit again.
fn forge(dir: &Path, path: &Path, before: &[u8]) {
    let reseal = |text: &str| {
        let at = text.rfind(",\"check\"").or(text.rfind(",\n  \"check\""));
        at.map(|at| String::from_utf8_lossy(&seal(format!("{}}}", &text[..at]).into_bytes())).into_owned())
    };
    let now = fs::read(path).unwrap();
    if path.extension().is_some_and(|e| e == "parquet") {
        let (old, new) = (checksum(before), checksum(&now));
        let length = |bytes: &[u8]| format!("\"bytes\":{}", bytes.len());
        let swap = |l: &String| match l.contains(&old) {
            true => reseal(&l.replace(&old, &new).replace(&length(before), &length(&now))).unwrap(),
            false => l.clone(),
        };
        keep_lines(dir, &lines(dir).iter().map(swap).collect::<Vec<_>>());
    } else if path.ends_with("runs.ndjson") {
        let text = String::from_utf8_lossy(&now).into_owned();
        let all: Vec<String> = text.lines().map(|l| reseal(l).unwrap_or(l.into())).collect();
        keep_lines(dir, &all);
    }
}

/// What is told of `dir` against a whole folder's `figures` and `said`: `None` where
/// no figure is another one, else whether that is in silence.
fn silently(result: Result<(Value, Vec<String>), String>, figures: &Value, said: &[String]) -> Option<bool> {
    match result {
        Err(_) => Some(false),
        Ok((now, _)) if now == *figures => None,
        Ok((_, told)) => Some(told.iter().all(|s| said.contains(s))),
    }
}

/// One bit anywhere: the figures stay as they were, or it is said. That flips
/// without checksums do change figures is the control in the test below.
#[test]
fn no_flipped_bit_changes_a_figure_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    measured(folder.path(), "sim:mtron");
    let dir = folder.path().join("o");
    let spare = folder.path().join("pristine");
    copy(&dir, &spare);
    let records = |dir: &Path| -> Vec<PathBuf> {
        let mut all: Vec<_> = fs::read_dir(dir.join("ios")).unwrap().map(|e| e.unwrap().path()).collect();
        all.sort();
        all
    };
    let (whole, said) = told(&dir, None).unwrap();
    let (whole_compared, _) = told(&dir, Some(&spare)).unwrap();
    assert!(!said.iter().any(|s| s.starts_with("Damaged") || s.starts_with("Incomplete")), "{said:?}");
    let mut rng = Rng::new(2026);
    let (mut unchanged, mut told_of, mut silent) = (0, 0, 0);
    for number in 0..FLIPS {
        let all = records(&dir);
        let path = match rng.below(20) {
            0..10 => all[rng.below(all.len() as u64) as usize].clone(),
            10..15 => dir.join("runs.ndjson"),
            15..17 => dir.join("plan.json"),
            17 => dir.join("manifest.json"),
            18 => dir.join("profile.json"),
            _ => dir.join("report.html"),
        };
        let bytes = fs::read(&path).unwrap();
        flip(&path, rng.below(bytes.len() as u64 * 8) as usize);
        let compared = number % 10 == 0;
        let (other, wanted) = if compared { (Some(&*spare), &whole_compared) } else { (None, &whole) };
        match silently(told(&dir, other), wanted, &said) {
            None => unchanged += 1,
            Some(false) => told_of += 1,
            Some(true) => {
                silent += 1;
                eprintln!("flip {number} in {} changed a figure in silence", path.display());
            }
        }
        fs::write(&path, bytes).unwrap();
    }
    eprintln!(
        "{FLIPS} flips: {unchanged} changed no figure, {told_of} were told, {silent} changed one in silence"
    );
    assert_eq!(silent, 0);
    assert!(told_of > FLIPS / 2, "{told_of}");
}

/// A record file written anew with one bit of one response time of its running phase
/// flipped, the one after the highest: at most half as much more or less.
fn with_another_response_time(path: &Path, run: u32) -> Vec<u8> {
    let mut records = uflip_store::read_records(path).unwrap();
    let old = records[50];
    let io = Io {
        arrival: Arrival::CONSECUTIVE,
        offset: old.offset(),
        size: old.size(),
        mode: old.mode(),
        pattern: old.pattern(),
    };
    let changed = IoRecord::new(
        &io,
        old.stream(),
        old.submit(),
        Nanos(old.response().0 ^ 1 << (old.response().0.ilog2() - 1)),
    );
    assert_ne!(changed.response(), old.response());
    records[50] = changed;
    let mut writer = RecordWriter::new(Vec::new(), path, RecordScratch::new().unwrap()).unwrap();
    writer.push(run, &records).unwrap();
    writer.finish().unwrap().0
}

/// The bit of a row that makes its running phase's mean another one: the lowest of
/// the second digit.
fn bit_of_mean(line: &str, before: usize) -> usize {
    let running = line.find("\"running\":").unwrap();
    let name = "\"mean_ns\":";
    let at = running + line[running..].find(name).unwrap() + name.len() + 1;
    assert!(line.as_bytes()[at].is_ascii_digit(), "{line}");
    (before + at) * 8
}

/// The control of the test above: changes of one bit of which each changes a figure.
/// Every one is told, and with nothing but the checksums made to fit again not one.
#[test]
fn bits_that_change_a_figure_are_told_by_the_checksums_alone() {
    let folder = tempfile::tempdir().unwrap();
    measured(folder.path(), "sim:mtron");
    let dir = folder.path().join("o");
    let (whole, said) = told(&dir, None).unwrap();
    let (rows, text) = (dir.join("runs.ndjson"), lines(&dir));
    let mut harms: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut before = 0;
    for line in &text {
        let row: Value = serde_json::from_str(line).unwrap();
        let path = dir.join(row["records"]["file"].as_str().unwrap());
        let run = u32::try_from(row["id"].as_u64().unwrap()).unwrap();
        harms.push((path.clone(), with_another_response_time(&path, run)));
        let (mut bytes, bit) = (fs::read(&rows).unwrap(), bit_of_mean(line, before));
        bytes[bit / 8] ^= 1 << (bit % 8);
        harms.push((rows.clone(), bytes));
        before += line.len() + 1;
    }
    // Whether figures are others, and whether damage is told. A finding may have
    // other figures in its words: that tells nobody of damage.
    let outcome = |result: Result<(Value, Vec<String>), String>| {
        let (figures, now) = result.unwrap();
        (figures != whole, now.iter().any(|s| s.starts_with("Damaged: ") && !said.contains(s)))
    };
    for (path, harmed) in &harms {
        let (bytes, kept) = (fs::read(path).unwrap(), fs::read(&rows).unwrap());
        fs::write(path, harmed).unwrap();
        let checked = outcome(told(&dir, None));
        forge(&dir, path, &bytes);
        let forged = outcome(told(&dir, None));
        assert_eq!((checked, forged), ((true, true), (true, false)), "{}", path.display());
        fs::write(path, bytes).unwrap();
        fs::write(&rows, kept).unwrap();
    }
    eprintln!("{} changed bits: all told, none with fitting checksums", harms.len());
    assert_eq!(harms.len(), 2 * text.len());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = {
            let e = entry.unwrap();
            (e.path(), to.join(e.file_name()))
        };
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(drop).unwrap() }
    }
}

/// What was done to a folder, and what has to be said of it.
type Harm<'a> = (&'a str, &'a dyn Fn(&Path), &'a [&'a str]);

fn record(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("ios/run-{id:06}.parquet"))
}

fn with_bytes(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn swapped(dir: &Path) {
    let (a, b) = (fs::read(record(dir, 3)).unwrap(), fs::read(record(dir, 4)).unwrap());
    fs::write(record(dir, 3), b).unwrap();
    fs::write(record(dir, 4), a).unwrap();
}

fn with_lines(dir: &Path, change: impl Fn(&mut Vec<String>)) {
    let mut all = lines(dir);
    change(&mut all);
    keep_lines(dir, &all);
}

/// Every kind of harm, to folders with and without checksums: told first, with
/// file and run, and left out of the figures.
#[test]
fn harm_of_every_kind_is_told_with_file_and_run() {
    let folder = tempfile::tempdir().unwrap();
    measured(folder.path(), "sim:mtron");
    let other = tempfile::tempdir().unwrap();
    measured(other.path(), "sim:samsung");
    let foreign = fs::read(record(&other.path().join("o"), 3)).unwrap();
    let harms: [Harm<'_>; 10] = [
        (
            "cut",
            &|d| with_bytes(&record(d, 3), |b| b.truncate(b.len() / 2)),
            &["run-000003.parquet", "run 3 is left out"],
        ),
        ("emptied", &|d| fs::write(record(d, 3), "").unwrap(), &["run-000003.parquet"]),
        ("gone", &|d| fs::remove_file(record(d, 3)).unwrap(), &["run-000003.parquet: it is missing"]),
        ("zeros", &|d| with_bytes(&record(d, 3), |b| b[100..400].fill(0)), &["run-000003.parquet", "run 3 "]),
        ("swapped", &swapped, &["run-000003.parquet", "run-000004.parquet", "run 4 is left out"]),
        ("foreign", &|d| fs::write(record(d, 3), &foreign).unwrap(), &["run-000003.parquet"]),
        (
            "a row removed",
            &|d| with_lines(d, |l| drop(l.remove(3))),
            &["Incomplete", "1 are missing", "uflip run -o"],
        ),
        ("a row twice", &|d| with_lines(d, |l| l.push(l[3].clone())), &["runs.ndjson", "twice", "run 3"]),
        (
            "a row changed",
            &|d| with_lines(d, |l| l[3] = l[3].replacen("\"mean_ns\":", "\"mean_ns\":9", 1)),
            &["run 3 is left out"],
        ),
        ("rows in another order", &|d| with_lines(d, |l| l.reverse()), &[]),
    ];
    for old in [false, true] {
        for (what, harm, says) in &harms {
            let place = tempfile::tempdir().unwrap();
            let dir = place.path().join("o");
            copy(&folder.path().join("o"), &dir);
            if old {
                without_checksums(&dir);
            }
            let (whole, before) = told(&dir, None).unwrap();
            harm(&dir);
            let (figures, said) = told(&dir, None).unwrap();
            let new: Vec<_> = said.iter().filter(|s| !before.contains(s)).cloned().collect::<Vec<_>>();
            let text = new.join("\n");
            assert!(says.iter().all(|s| text.contains(s)), "{what} (old: {old}): {new:?}");
            assert!(figures == whole || !new.is_empty(), "{what} (old: {old}) in silence");
            if says.is_empty() {
                assert!(figures == whole, "{what} (old: {old}) changes figures");
            } else {
                let (out, _) = expect(place.path(), 0, &["show", "o"]);
                let first = out.lines().next().unwrap();
                assert!(
                    first.starts_with("! Damaged: ") || first.starts_with("! Incomplete: "),
                    "{what}: {out}"
                );
            }
        }
    }
}

/// The commands of the issue: what is damaged is said by each of them first, a
/// gate fails, and `--resume` measures that run again and only that.
#[test]
fn every_command_tells_of_damage_and_resume_heals_it() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    measured(at, "sim:mtron");
    copy(&dir, &at.join("good"));
    let before = lines(&dir);
    flip(&record(&dir, 5), 8 * 200 + 3);
    let says = |text: &str| text.contains("ios/run-000005.parquet") && text.contains("run 5 is left out");
    for command in ["show", "profile"] {
        let (out, _) = expect(at, 0, &[command, "o"]);
        assert!(
            out.starts_with("! Damaged: ") && says(&out.replace('\n', " ").replace("  ", " ")),
            "{command}: {out}"
        );
    }
    let found: Value = serde_json::from_str(&expect(at, 0, &["profile", "o", "--json"]).0).unwrap();
    let first = &found["soundness"][0];
    assert_eq!(
        (&first["code"], &first["severity"], &first["runs"]),
        (&"damaged".into(), &"serious".into(), &serde_json::json!([5]))
    );
    let shown: Value = serde_json::from_str(&expect(at, 0, &["show", "o", "--json"]).0).unwrap();
    assert!(says(shown["alerts"][0].as_str().unwrap()), "{shown}");
    for args in [
        &["export", "o"][..],
        &["export", "o", "--what", "records"],
        &["report", "o"],
        &["export", "o", "--figures", "f"],
    ] {
        let (_, err) = expect(at, 0, args);
        assert!(err.starts_with("warning: Damaged: ") && says(&err), "{args:?}: {err}");
    }
    let (out, _) = expect(at, 0, &["export", "o"]);
    assert_eq!(out.lines().count(), before.len(), "a header, and all runs but one");
    let gate = ["compare", "good", "o", "--no-html", "--fail-if", "SR > 2x"];
    let (out, err) = expect(at, 1, &gate);
    assert!(out.starts_with("! B o: Damaged: ") && out.contains("--allow-incomplete"), "{out}");
    assert!(err.contains("failed: whole results"), "{err}");
    expect(at, 0, &[&gate[..], &["--allow-incomplete"]].concat());
    expect(at, 0, &["compare", "good", "o", "--no-html"]);
    expect(at, 2, &["compare", "good", "o", "--no-html", "--allow-incomplete"]);

    let (_, err) = expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert!(err.contains("run 5 is measured again") && err.contains("run-000005.parquet"), "{err}");
    let after = lines(&dir);
    let others =
        |all: &[String]| all.iter().filter(|l| !l.contains("\"id\":5,")).cloned().collect::<Vec<_>>();
    assert_eq!(others(&after), others(&before), "nothing else was measured");
    let run = |all: &[String]| {
        let line = all.iter().find(|l| l.contains("\"id\":5,")).unwrap();
        let row: Value = serde_json::from_str(line).unwrap();
        (row["stats"].clone(), row["records"].clone())
    };
    assert_eq!(run(&after), run(&before), "the simulated device was as it had been");
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(!out.contains("! Damaged") && !out.contains("! Incomplete"), "{out}");
    expect(at, 0, &gate);
}

/// The same on a real file: one damaged record file and one damaged row.
#[test]
fn on_a_file_only_what_is_damaged_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    let run = [
        "run",
        "./scratch",
        "-o",
        "o",
        "--scratch-size",
        "16M",
        "--only",
        "order",
        "--seed",
        "1",
        "--method",
        "fixed",
        "--budget",
        "4s",
    ];
    expect(at, 0, &run);
    let before = lines(&dir);
    flip(&record(&dir, 1), 4000);
    with_lines(&dir, |l| l[2] = l[2].replacen("\"ios\":", "\"ios\":1", 1));
    let (_, err) = expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert!(err.contains("run 1 is measured again") && err.contains("runs.ndjson, line 3"), "{err}");
    let after = lines(&dir);
    let kept: Vec<_> = before.iter().filter(|line| after.contains(line)).collect();
    assert_eq!((after.len(), kept.len()), (before.len(), before.len() - 2));
    assert_eq!(finished_runs(&dir).len(), before.len());
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(!out.starts_with('!'), "{out}");
}

/// A folder cut to a third says so first, everywhere, and fails a gate.
#[test]
fn an_incomplete_benchmark_says_so_first_and_fails_a_gate() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    measured(at, "sim:mtron");
    copy(&at.join("o"), &at.join("good"));
    let planned = lines(&at.join("o")).len();
    with_lines(&at.join("o"), |l| l.truncate(5));
    let words = format!("! Incomplete: 5 of {planned} planned runs are kept");
    for command in ["show", "profile"] {
        let (out, _) = expect(at, 0, &[command, "o"]);
        let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.starts_with(&words) && flat.contains("go on with: uflip run -o o --resume"),
            "{command}: {out}"
        );
    }
    let shown: Value = serde_json::from_str(&expect(at, 0, &["show", "o", "--json"]).0).unwrap();
    assert!(shown["alerts"][0].as_str().unwrap().starts_with("Incomplete"), "{shown}");
    expect(at, 0, &["profile", "o"]);
    let first = json(&at.join("o/profile.json"))["soundness"][0].clone();
    assert_eq!((&first["code"], &first["severity"]), (&"incomplete".into(), &"serious".into()));
    let (_, err) = expect(at, 0, &["export", "o", "--format", "json"]);
    assert!(err.starts_with("warning: Incomplete"), "{err}");
    let (_, err) = expect(at, 0, &["report", "o"]);
    assert!(err.starts_with("warning: Incomplete"), "{err}");
    let made: Value =
        serde_json::from_str(&expect(at, 1, &["compare", "good", "o", "--json", "--fail-if", "SR > 9x"]).0)
            .unwrap();
    assert!(made["subjects"][1]["alerts"][0].as_str().unwrap().starts_with("Incomplete"), "{made}");
    expect(at, 0, &["compare", "good", "o", "--json", "--fail-if", "SR > 9x", "--allow-incomplete"]);
    // The report and the profile of fewer runs are not taken for those of all.
    let old = fs::read(at.join("o/report.html")).unwrap();
    let profile = fs::read(at.join("o/profile.json")).unwrap();
    expect(at, 0, &["run", "-o", "o", "--resume"]);
    let good = expect(at, 0, &["show", "good"]).0.replace("good/", "o/");
    assert_eq!(expect(at, 0, &["show", "o"]).0, good);
    fs::write(at.join("o/report.html"), old).unwrap();
    fs::write(at.join("o/profile.json"), profile).unwrap();
    let (out, _) = expect(at, 0, &["show", "o"]);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("report.html is of other runs") && out.contains("profile.json is of other runs"),
        "{out}"
    );
}

/// A changed `profile.json` is not shown as if true.
#[test]
fn a_changed_profile_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    measured(at, "sim:mtron");
    let whole: Value = serde_json::from_str(&expect(at, 0, &["show", "o", "--json"]).0).unwrap();
    assert!(whole["sections"][0]["series"][0]["points"][0]["mean_ns"].is_number(), "{whole}");
    let path = at.join("o/profile.json");
    let mut profile = json(&path);
    for curve in profile["curves"].as_array_mut().unwrap() {
        for point in curve["points"].as_array_mut().unwrap() {
            point["mean_ms"] = 12_345.0.into();
        }
    }
    fs::write(&path, profile.to_string()).unwrap();
    let shown: Value = serde_json::from_str(&expect(at, 0, &["show", "o", "--json"]).0).unwrap();
    assert_eq!(shown["sections"], whole["sections"]);
    assert!(
        shown["notes"].to_string().contains("profile.json was changed: it is not used"),
        "{}",
        shown["notes"]
    );
    expect(at, 0, &["profile", "o"]);
    let again: Value = serde_json::from_str(&expect(at, 0, &["show", "o", "--json"]).0).unwrap();
    assert_eq!(again, whole);
}

/// Manifest: no figure without a word, and nothing is measured by it. It can be
/// changed on purpose.
#[test]
fn a_damaged_manifest_is_said_and_not_resumed_by() {
    let folder = tempfile::tempdir().unwrap();
    let (at, path) = (folder.path(), folder.path().join("o/manifest.json"));
    measured(at, "sim:mtron");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replacen("\"seed\": 5", "\"seed\": 7", 1);
    assert_ne!(text, changed);
    fs::write(&path, &changed).unwrap();
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(out.starts_with("! Damaged: manifest.json: "), "{out}");
    let (_, err) = expect(at, 1, &["run", "-o", "o", "--resume"]);
    assert!(
        err.contains("manifest.json is damaged") && err.contains("remove its last field, check"),
        "{err}"
    );
    let mut value: Value = serde_json::from_str(&changed).unwrap();
    value.as_object_mut().unwrap().remove("check");
    fs::write(&path, value.to_string()).unwrap();
    expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert!(!expect(at, 0, &["show", "o"]).0.starts_with('!'));
}

/// By the automatic method: calibrated only, the plan edited by hand, the
/// calibration damaged, the closing probe missing.
#[test]
fn the_automatic_method_tells_how_far_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    let target = [
        "sim:mtron",
        "-o",
        "o",
        "--seed",
        "1",
        "--only",
        "order",
        "--values",
        "order=-1,0,1",
        "--preset",
        "quick",
    ];
    expect(at, 0, &[&["calibrate"], &target[..]].concat());
    let calibrated = json(&dir.join("calibration.json"));
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(out.starts_with("! Incomplete: calibrated only: none of the "), "{out}");
    // Fewer repeats of one run, by hand.
    let mut plan = json(&dir.join("plan.json"));
    let steps = plan["steps"].as_array_mut().unwrap();
    let last = steps.iter().rposition(|s| s["step"] == "run").unwrap();
    // With the pause before it.
    steps.truncate(last - 1);
    fs::write(dir.join("plan.json"), serde_json::to_string_pretty(&plan).unwrap()).unwrap();
    let (_, err) = expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert!(err.contains("plan.json was edited"), "{err}");
    let shown: Value = serde_json::from_str(&expect(at, 0, &["show", "o", "--json"]).0).unwrap();
    assert_eq!(shown["alerts"].as_array().unwrap().len(), 1, "{shown}");
    assert!(shown["alerts"][0].as_str().unwrap().contains("edited by hand"), "{shown}");
    assert_eq!(json(&dir.join("plan.json"))["edited_by_hand"], true, "also once it has grown");
    // The calibration is left out, and found again.
    let whole = json(&dir.join("calibration.json"));
    assert!(whole["drift"].is_object() && calibrated["drift"].is_null());
    let text = fs::read_to_string(dir.join("calibration.json")).unwrap();
    fs::write(dir.join("calibration.json"), text.replacen("\"io_count\": ", "\"io_count\": 1", 1)).unwrap();
    let (out, _) = expect(at, 0, &["profile", "o"]);
    assert!(out.starts_with("! Damaged: calibration.json: "), "{out}");
    expect(at, 0, &["run", "-o", "o", "--resume"]);
    assert_eq!(json(&dir.join("calibration.json")), whole);
    // Two runs in the middle, measured again on the device as it was then.
    let before = lines(&dir);
    flip(&record(&dir, 2), 999);
    flip(&record(&dir, 9), 999);
    expect(at, 0, &["run", "-o", "o", "--resume"]);
    let mut after = lines(&dir);
    let key = |line: &String| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap();
    after.sort_by_key(key);
    let stats = |all: &[String]| {
        all.iter().map(|l| serde_json::from_str::<Value>(l).unwrap()["stats"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(stats(&after), stats(&before));
    // The probe after the plan.
    let mut found = json(&dir.join("calibration.json"));
    found["drift"] = Value::Null;
    found.as_object_mut().unwrap().remove("check");
    fs::write(dir.join("calibration.json"), found.to_string()).unwrap();
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(out.starts_with("! Incomplete: ") && out.contains("probe of the state"), "{out}");
}

/// Jobs and the search for the logical block name the command that goes on.
#[test]
fn an_interrupted_job_names_its_own_command() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    fs::write(at.join("j.job"), "std sr,rr bs=4K..64K*2 count=50 until=2.5%\n").unwrap();
    expect(at, 0, &["job", "sim:toshiba-transmemory-1G", "j.job", "-o", "o", "--seed", "1"]);
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(!out.starts_with('!'), "{out}");
    let report = json(&dir.join("job.json"));
    with_lines(&dir, |l| drop(l.remove(1)));
    let (out, _) = expect(at, 0, &["show", "o"]);
    let flat = out.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.starts_with("! Incomplete: ")
            && flat.contains("uflip job sim:toshiba-transmemory-1G -o o --resume"),
        "{out}"
    );
    expect(at, 0, &["job", "sim:toshiba-transmemory-1G", "-o", "o", "--resume"]);
    assert_eq!(json(&dir.join("job.json"))["table31_mb_per_s"], report["table31_mb_per_s"]);
    assert!(!expect(at, 0, &["show", "o"]).0.starts_with('!'));

    expect(at, 0, &["logical-block", "sim:sandisk", "--bytes", "256M", "--seed", "1", "-o", "lb"]);
    assert!(!expect(at, 0, &["show", "lb"]).0.starts_with('!'), "sizes beyond the answer are not missing");
    with_lines(&at.join("lb"), |l| l.truncate(4));
    let out = expect(at, 0, &["show", "lb"]).0.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.starts_with("! Incomplete: ") && out.contains("uflip logical-block sim:sandisk -o lb --resume"),
        "{out}"
    );
    let file = at.join("lb/logical-block.json");
    with_bytes(&file, |b| {
        let at = b
            .windows(22)
            .position(|w| w == b"\"logical_block_bytes\": ")
            .map_or_else(|| b.len() - 60, |at| at + 22);
        b[at] = if b[at] == b'9' { b'8' } else { b'9' };
    });
    let (out, _) = expect(at, 0, &["show", "lb"]);
    assert!(out.contains("Damaged: logical-block.json"), "{out}");
}

/// One flipped bit of the plan is said first, everywhere, in what a gate says too;
/// as somebody may have edited the plan on purpose, a gate does not fail for it.
#[test]
fn a_flipped_bit_of_the_plan_is_said_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    measured(at, "sim:mtron");
    copy(&dir, &at.join("good"));
    let path = dir.join("plan.json");
    let text = fs::read_to_string(&path).unwrap();
    let name = "\"io_count\": ";
    flip(&path, (text.find(name).unwrap() + name.len() + 1) * 8);
    assert_ne!(json(&path)["steps"], json(&at.join("good/plan.json"))["steps"]);
    let words = "plan.json is not as uflip made it";
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(out.starts_with(&format!("! {words}")), "{out}");
    let (out, _) = expect(at, 0, &["profile", "o"]);
    assert!(out.contains(&format!("warning     {words}")), "{out}");
    let found = json(&dir.join("profile.json"));
    let found = found["soundness"].as_array().unwrap().iter().find(|f| f["code"] == "plan_edited").unwrap();
    assert_eq!(found["severity"], "warning");
    let (_, err) = expect(at, 0, &["export", "o"]);
    assert!(err.starts_with(&format!("warning: {words}")), "{err}");
    let (out, _) = expect(at, 0, &["compare", "good", "o", "--no-html"]);
    assert!(out.starts_with(&format!("! B o: {words}")), "{out}");
    let (out, _) = expect(at, 0, &["compare", "good", "o", "--no-html", "--fail-if", "SR > 9x"]);
    assert!(out.starts_with(&format!("! B o: {words}")), "{out}");
    let gate = ["compare", "good", "o", "--json", "--fail-if", "SR > 9x"];
    let made: Value = serde_json::from_str(&expect(at, 0, &gate).0).unwrap();
    assert!(made["subjects"][1]["alerts"][0].as_str().unwrap().starts_with(words), "{made}");
}

/// The end of a command that must come to one: its code and what it said.
fn ends(folder: &Path, args: &[&str]) -> (i32, String) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let out = said.reopen().unwrap();
    let err = out.try_clone().unwrap();
    let mut command = crate::support::uflip();
    let mut child = command.current_dir(folder).args(args).stdout(out).stderr(err).spawn().unwrap();
    let start = std::time::Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let text = String::from_utf8_lossy(&fs::read(said.path()).unwrap()).into_owned();
            return (status.code().unwrap(), text);
        }
        if start.elapsed().as_secs() > 60 {
            child.kill().unwrap();
            panic!("uflip {args:?} hangs");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What is no file is not waited for, nor read without end.
#[test]
fn a_fifo_or_a_device_in_the_place_of_a_file_is_damage_and_no_hang() {
    let folder = tempfile::tempdir().unwrap();
    measured(folder.path(), "sim:mtron");
    let at = folder.path();
    copy(&at.join("o"), &at.join("good"));
    let names = ["ios/run-000003.parquet", "manifest.json", "plan.json", "runs.ndjson", "calibration.json"];
    for name in [&names[..], &["profile.json", "job.json", "logical-block.json", "report.html"]].concat() {
        for fifo in [true, false] {
            fs::remove_dir_all(at.join("o")).unwrap();
            copy(&at.join("good"), &at.join("o"));
            let path = at.join("o").join(name);
            let _ = fs::remove_file(&path);
            if fifo {
                assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            let (_, said) = ends(at, &["show", "o"]);
            if names.contains(&name) {
                assert!(said.contains("it is no regular file but a "), "{name}: {said}");
            }
            let (code, said) = ends(at, &["compare", "good", "o", "--no-html", "--fail-if", "SR > 9x"]);
            assert!(!names.contains(&name) || code != 0, "{name}: {said}");
            ends(at, &["report", "o"]);
            ends(at, &["run", "-o", "o", "--resume"]);
        }
    }
}

/// A plan that is none hides what is missing: that is damage, and a gate fails.
#[test]
fn a_plan_that_is_none_is_damage_and_fails_a_gate() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    measured(at, "sim:mtron");
    copy(&dir, &at.join("good"));
    with_lines(&dir, |lines| lines.truncate(5));
    let plan = fs::read_to_string(dir.join("plan.json")).unwrap();
    fs::write(dir.join("plan.json"), plan.replacen("\"steps\"", "\"stepz\"", 1)).unwrap();
    let words = "Damaged: plan.json: it is no plan (missing field `steps`)";
    for command in ["show", "report", "profile", "export"] {
        let (_, said) = ends(at, &[command, "o"]);
        assert!(said.contains(words), "{command}: {said}");
    }
    let (out, _) = expect(at, 0, &["compare", "good", "o", "--no-html"]);
    assert!(out.starts_with(&format!("! B o: {words}")), "{out}");
    let (code, said) = ends(at, &["compare", "good", "o", "--no-html", "--fail-if", "SR > 9x"]);
    assert!(code != 0 && said.contains(words), "{said}");
}

/// A sound row and its sound record file, but of another device's folder.
#[test]
fn a_run_of_another_folder_is_not_taken_for_one_of_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let (at, dir) = (folder.path(), folder.path().join("o"));
    measured(at, "sim:mtron");
    let small = fs::read_to_string(at.join("small.json")).unwrap();
    let other = tempfile::tempdir().unwrap();
    let mut plan: Value = serde_json::from_str(&small).unwrap();
    for step in plan["steps"].as_array_mut().unwrap().iter_mut().filter(|s| s["step"] == "run") {
        step["io_count"] = 80.into();
    }
    fs::write(other.path().join("small.json"), plan.to_string()).unwrap();
    expect(other.path(), 0, &["run", "sim:mtron", "--plan", "small.json", "-o", "o"]);
    let foreign = other.path().join("o");
    let line = lines(&foreign).into_iter().find(|l| l.contains("\"id\":3,")).unwrap();
    with_lines(&dir, |lines| {
        let own = lines.iter().position(|l| l.contains("\"id\":3,")).unwrap();
        lines[own] = line.clone();
    });
    fs::copy(record(&foreign, 3), record(&dir, 3)).unwrap();
    let (out, _) = expect(at, 0, &["show", "o"]);
    let words = "! Damaged: ios/run-000003.parquet: it is not the plan's run: \
                 its line has io_count 80, plan.json 96; run 3 is left out";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(&out).starts_with(words), "{out}");
    expect(at, 0, &["run", "-o", "o", "--resume"]);
    let (out, _) = expect(at, 0, &["show", "o"]);
    assert!(!out.contains("Damaged") && !out.contains("Incomplete"), "{out}");
}
