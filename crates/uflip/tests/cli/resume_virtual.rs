//! A simulated device ends with its process: what is resumed on one comes to, bit
//! for bit, what it would have come to without the interruption, by every command.

use crate::support::{expect, signal, uflip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Each run's line and the bytes of its record file.
type Rows = BTreeMap<u64, (Value, Vec<u8>)>;

fn rows(dir: &Path) -> Rows {
    let text = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
    let of = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let file = dir.join(row["records"]["file"].as_str().unwrap());
        (row["id"].as_u64().unwrap(), (row, fs::read(file).unwrap()))
    };
    text.lines().map(of).collect()
}

/// Lines without what tells one folder from another.
fn anonymous(rows: &Rows) -> Rows {
    let of = |(id, (row, records)): (&u64, &(Value, Vec<u8>))| {
        let mut row = row.clone();
        ["folder", "check"].iter().for_each(|field| drop(row.as_object_mut().unwrap().remove(*field)));
        (*id, (row, records.clone()))
    };
    rows.iter().map(of).collect()
}

/// Which runs are equal is told, not megabytes of them.
#[track_caller]
fn same(is: &Rows, was: &Rows, told: &str) {
    assert_eq!(is.keys().collect::<Vec<_>>(), was.keys().collect::<Vec<_>>(), "{told}");
    for (id, (row, records)) in was {
        let (row_is, records_is) = &is[id];
        assert_eq!(row_is, row, "{told}: run {id}");
        assert!(records_is == records, "{told}: the records of run {id}");
    }
}

/// Leaves only those rows, by their places, for which `kept` is true.
fn cut(dir: &Path, kept: impl Fn(usize, usize) -> bool) {
    let file = dir.join("runs.ndjson");
    let text = fs::read_to_string(&file).unwrap();
    let all = text.lines().count();
    let left = text.lines().enumerate().filter(|(at, _)| kept(*at, all)).map(|(_, line)| format!("{line}\n"));
    fs::write(&file, left.collect::<String>()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to)
        } else {
            {
                fs::copy(&path, &to).unwrap();
            }
        }
    }
}

/// Does `begin` with `-o whole`, then takes rows away, as an interruption or damage
/// does, and goes on by `resume`.
#[track_caller]
fn comes_to_the_same(begin: &[&str], resume: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (at, whole) = (folder.path(), folder.path().join("whole"));
    fs::write(at.join("k.job"), JOB).unwrap();
    expect(at, 0, &[begin, &["-o", "whole", "--seed", "5"]].concat());
    let was = rows(&whole);
    assert!(was.len() > 2, "{begin:?}: {} runs", was.len());
    /// Whether a row of all is kept.
    type Keeps = fn(usize, usize) -> bool;
    let cuts: [(&str, Keeps); 2] =
        [("its end", |at, all| at < all / 2), ("its middle", |at, all| at != all / 3 && at != all / 2)];
    for (told, kept) in cuts {
        let dir = at.join(told.replace(' ', "-"));
        copy(&whole, &dir);
        cut(&dir, kept);
        expect(at, 0, &[resume, &["-o", dir.to_str().unwrap(), "--resume"]].concat());
        same(&rows(&dir), &was, &format!("{begin:?} without {told}"));
    }
}

/// The last line depends on how much was written before it.
const JOB: &str =
    "a rw count=400\nb rw count=6000\nc sw count=200\nd rr,rw count=50 before=rw(bs=same,count=40)\n";

#[test]
fn a_fixed_benchmark() {
    let of = ["run", "sim:mtron", "--method", "fixed", "--only", "order,pause", "--baselines", "SW,RW"];
    comes_to_the_same(&[&of[..], &["--state", "none", "--preset", "quick"]].concat(), &["run"]);
}

#[test]
fn a_calibration_and_what_is_measured_by_it() {
    let of = ["--only", "order", "--baselines", "SW,RW", "--state", "none", "--repeats", "1"];
    comes_to_the_same(&[&["calibrate", "sim:mtron"], &of[..]].concat(), &["calibrate"]);
    comes_to_the_same(&[&["run", "sim:mtron"], &of[..]].concat(), &["run"]);
}

#[test]
fn a_job() {
    comes_to_the_same(&["job", "sim:mtron", "k.job"], &["job", "sim:mtron"]);
}

#[test]
fn a_ready_made_job() {
    comes_to_the_same(&["run", "sim:kingston-dti", "--suite", "ajwani-short", "--only", "mis"], &["run"]);
}

#[test]
fn a_search_for_the_logical_block() {
    let amounts = ["--bytes", "4M,16M"];
    comes_to_the_same(
        &[&["logical-block", "sim:mtron"], &amounts[..]].concat(),
        &["logical-block", "sim:mtron"],
    );
}

/// Stopped by Ctrl-C, and killed, in its middle.
#[test]
fn a_job_that_is_stopped_for_real() {
    let folder = tempfile::tempdir().unwrap();
    let (at, begin) = (folder.path(), ["job", "sim:mtron", "k.job", "--seed", "5", "-o"]);
    fs::write(at.join("k.job"), JOB).unwrap();
    expect(at, 0, &[&begin[..], &["whole"]].concat());
    let was = anonymous(&rows(&at.join("whole")));
    for how in ["INT", "KILL"] {
        let mut command = uflip();
        command.current_dir(at).args(begin).arg(how).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines =
            || fs::read_to_string(at.join(how).join("runs.ndjson")).unwrap_or_default().lines().count();
        while lines() < 1 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        signal(child.id(), how);
        let ended = child.wait().unwrap();
        // Where it was faster than the signal there is nothing to go on with.
        if !ended.success() {
            expect(at, 0, &["job", "sim:mtron", "-o", how, "--resume"]);
        }
        same(&anonymous(&rows(&at.join(how))), &was, how);
    }
}
