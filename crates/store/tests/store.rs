//! The store keeps whole runs only, whatever happens to its files.

mod common;

use common::{check, feed, files_in, manifest, outcome, plan, record, run_once, spec};
use std::fs;
use std::path::Path;
use std::process::Command;
use uflip_measure::Plan;
use uflip_measure::run::Sink;
use uflip_store::{Durability, Store};

fn store_of(dir: &Path, runs: u32) {
    let mut store = Store::create(dir, &manifest(), &plan()).unwrap();
    for id in 0..runs {
        run_once(&mut store, id, 300).unwrap();
    }
}

#[test]
fn what_is_kept_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    store_of(dir.path(), 3);
    assert_eq!(check(dir.path()), [0, 1, 2]);
    let contents = Store::open(dir.path()).unwrap();
    assert_eq!((contents.manifest, contents.plan), (manifest_made_at(dir.path()), Some(plan())));
    assert_eq!(contents.runs[1].spec, spec(1, 300));
    let store = Store::resume(dir.path(), Some(42), Some(&plan())).unwrap();
    assert!(store.has(2) && !store.has(3));
    assert!(store.notes().is_empty(), "{:?}", store.notes());
}

fn manifest_made_at(dir: &Path) -> uflip_store::Manifest {
    let text = fs::read_to_string(dir.join("manifest.json")).unwrap();
    uflip_store::Manifest {
        created: serde_json::from_str::<serde_json::Value>(&text).unwrap()["created"]
            .as_str()
            .unwrap()
            .into(),
        ..manifest()
    }
}

#[test]
fn a_folder_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |dir: &Path| Store::create(dir, &manifest(), &plan()).err().expect("refused").to_string();
    let open = Store::create(dir.path(), &manifest(), &plan()).unwrap();
    assert!(refusal(dir.path()).contains("--resume"));
    let busy = Store::resume(dir.path(), None, None).err().expect("locked").to_string();
    assert!(busy.contains("another uflip is writing"), "{busy}");
    drop(open);
    Store::resume(dir.path(), None, None).unwrap();

    // Children forked while the store was open hold its lock until they exec: the
    // store lets go of the lock itself and leaves it to nobody's last close.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let failed = (0..2000).filter(|_| Store::resume(dir.path(), None, None).is_err()).count();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed, 0, "of 2,000 times the store was refused as in use");
    });

    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("thesis.tex"), "dear").unwrap();
    assert!(refusal(foreign.path()).contains("thesis.tex"));
    assert_eq!(files_in(foreign.path()), ["thesis.tex"]);
    let nothing = Store::resume(foreign.path(), None, None).err().expect("no store").to_string();
    assert!(nothing.contains("without --resume"), "{nothing}");
}

#[test]
fn a_store_whose_making_was_cut_off_anywhere_is_made_anew() {
    // In the order in which they come to be; the temporary ones are half.
    let made =
        ["ios", ".runs.ndjson.tmp", "runs.ndjson", ".plan.json.tmp", "plan.json", ".manifest.json.tmp"];
    for cut in 0..=made.len() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".lock"), "").unwrap();
        for (at, name) in made[..cut].iter().enumerate() {
            let path = dir.path().join(name);
            match *name {
                "ios" => fs::create_dir(path).unwrap(),
                "runs.ndjson" => fs::rename(dir.path().join(".runs.ndjson.tmp"), path).unwrap(),
                "plan.json" => fs::rename(dir.path().join(".plan.json.tmp"), path).unwrap(),
                _ => fs::write(path, if at > 2 { "{\"half" } else { "" }).unwrap(),
            }
        }
        Store::refuse_unless_free(dir.path()).unwrap_or_else(|e| panic!("cut after {cut}: {e}"));
        store_of(dir.path(), 1);
        assert_eq!(check(dir.path()), [0], "cut after {cut}");
        let left: Vec<_> = files_in(dir.path()).into_iter().filter(|f| f.ends_with(".tmp")).collect();
        assert!(left.is_empty(), "cut after {cut}: {left:?}");
    }
}

#[test]
fn files_that_no_store_made_are_not_taken_for_one() {
    // A plan written by hand; a temporary file of somebody else beside a lock.
    for files in [&["plan.json"][..], &[".lock", ".thesis.tex.tmp"], &[".lock", "runs.ndjson"]] {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|name| fs::write(dir.path().join(name), "mine").unwrap());
        let refused = Store::create(dir.path(), &manifest(), &plan()).err().expect("refused").to_string();
        assert!(refused.contains(files.last().unwrap()), "{refused}");
        for name in files {
            assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "mine");
        }
    }
}

#[test]
fn another_seed_plan_or_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    store_of(dir.path(), 1);
    let refusal =
        |seed, plan: &_| Store::resume(dir.path(), seed, Some(plan)).err().expect("refused").to_string();
    assert!(refusal(Some(43), &plan()).contains("--seed 42"));
    assert!(refusal(Some(42), &Plan { seed: 4, ..plan() }).contains("plan"));
    let path = dir.path().join("manifest.json");
    let whole = fs::read_to_string(&path).unwrap();
    let newer = |text: &str| {
        let mut manifest: serde_json::Value = serde_json::from_str(text).unwrap();
        manifest["format"] = 9.into();
        manifest
    };
    // As a later version would write it, and as a flipped bit would leave it.
    let mut later = newer(&whole);
    later.as_object_mut().unwrap().remove("check").unwrap();
    fs::write(&path, later.to_string()).unwrap();
    assert!(refusal(Some(42), &plan()).contains("is of format 9"));
    fs::write(&path, newer(&whole).to_string()).unwrap();
    let damaged = refusal(Some(42), &plan());
    assert!(damaged.contains("manifest.json is damaged"), "{damaged}");
}

#[test]
fn a_last_line_torn_at_any_byte_is_cut_and_its_run_measured_again() {
    let dir = tempfile::tempdir().unwrap();
    store_of(dir.path(), 2);
    let runs = dir.path().join("runs.ndjson");
    let whole = fs::read(&runs).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let record_file = dir.path().join("ios/run-000001.parquet");
    let records = fs::read(&record_file).unwrap();
    for cut in first..whole.len() {
        fs::write(&runs, &whole[..cut]).unwrap();
        fs::write(&record_file, &records).unwrap();
        assert_eq!(check(dir.path()), [0], "open, cut at {cut}");
        let store = Store::resume(dir.path(), None, None).unwrap();
        assert!(store.has(0) && !store.has(1));
        assert_eq!(fs::read(&runs).unwrap(), &whole[..first]);
        assert_eq!(files_in(&dir.path().join("ios")), ["run-000000.parquet"]);
    }
    let mut store = Store::resume(dir.path(), None, None).unwrap();
    run_once(&mut store, 1, 300).unwrap();
    assert_eq!(fs::read(&runs).unwrap(), whole);
}

#[test]
fn leftovers_are_removed_and_runs_without_whole_records_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    store_of(dir.path(), 3);
    let ios = dir.path().join("ios");
    fs::write(ios.join(".run-000009.parquet.tmp"), "half").unwrap();
    fs::write(ios.join("run-000007.parquet"), "orphan").unwrap();
    let cut = ios.join("run-000001.parquet");
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
    let store = Store::resume(dir.path(), None, None).unwrap();
    // The damaged one, the temporary one, and both that have no row together.
    assert_eq!(store.notes().len(), 3, "{:?}", store.notes());
    assert!(store.has(0) && !store.has(1) && store.has(2));
    drop(store);
    assert_eq!(files_in(&ios), ["run-000000.parquet", "run-000002.parquet"]);
    assert_eq!(files_in(&dir.path().join("set-aside")), ["run-000001.parquet", "run-000007.parquet"]);
    assert_eq!(check(dir.path()), [0, 2]);
}

#[test]
fn a_damaged_line_in_the_middle_is_told_with_its_number_and_costs_its_run_only() {
    let lines = |dir: &Path| {
        let text = fs::read_to_string(dir.join("runs.ndjson")).unwrap();
        text.lines().map(str::to_string).collect::<Vec<_>>()
    };
    let made = |line: &dyn Fn(&[String]) -> String| {
        let dir = tempfile::tempdir().unwrap();
        store_of(dir.path(), 3);
        let bad = line(&lines(dir.path()));
        fs::write(dir.path().join("runs.ndjson"), bad).unwrap();
        dir
    };
    type Case<'a> = (&'a dyn Fn(&[String]) -> String, &'a str, &'a [u32]);
    let cases: [Case<'_>; 3] = [
        (&|l| format!("{}\n??\n{}\n", l[0], l[2]), "line 2", &[0, 2]),
        (&|l| format!("{}\n{}\n{}\n", l[0], l[0], l[1]), "twice, and counts once", &[0, 1]),
        (
            &|l| format!("{}\n{}\n{}\n", l[0], l[1].replace("mean_ns\":8", "mean_ns\":7"), l[2]),
            "line 2 ",
            &[0, 2],
        ),
    ];
    for (line, what, kept) in cases {
        let dir = made(line);
        let contents = Store::open(dir.path()).unwrap();
        let said = contents.alerts().join(" ");
        assert!(said.starts_with("Damaged: runs.ndjson") && said.contains(what.trim()), "{said}");
        assert_eq!(contents.runs.iter().map(|row| row.spec.id).collect::<Vec<_>>(), kept);
        let mut store = Store::resume(dir.path(), None, None).unwrap();
        assert!(store.notes().iter().any(|note| note.contains(what.trim())), "{:?}", store.notes());
        for id in 0..3 {
            assert_eq!(store.has(id), kept.contains(&id), "run {id}");
            if !store.has(id) {
                run_once(&mut store, id, 300).unwrap();
            }
        }
        drop(store);
        let mut ids = check(dir.path());
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2]);
        assert_eq!(Store::open(dir.path()).unwrap().alerts(), [""; 0], "whole again");
    }
}

#[test]
fn a_run_is_kept_once_and_only_as_it_went() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan()).unwrap();
    run_once(&mut store, 5, 100).unwrap();
    assert!(run_once(&mut store, 5, 100).unwrap_err().to_string().contains("already kept"));
    // Fewer records than the device says it finished.
    store.begin(&spec(6, 100)).unwrap();
    feed(store.recorder(), (0..99).map(|i| record(6, i)));
    let text = store.commit(&spec(6, 100), &outcome(100)).unwrap_err().to_string();
    assert!(text.contains("100") && text.contains("99"), "{text}");
    // Interrupted.
    store.begin(&spec(7, 100)).unwrap();
    feed(store.recorder(), (0..50).map(|i| record(7, i)));
    let mut cut = outcome(50);
    cut.end.interrupted = true;
    store.commit(&spec(7, 100), &cut).unwrap_err();
    // Abandoned, then done after all.
    store.begin(&spec(8, 100)).unwrap();
    feed(store.recorder(), (0..50).map(|i| record(8, i)));
    store.abandon();
    run_once(&mut store, 8, 100).unwrap();
    assert!(store.commit(&spec(9, 100), &outcome(100)).unwrap_err().to_string().contains("not begun"));
    assert_eq!(files_in(&dir.path().join("ios")), ["run-000005.parquet", "run-000008.parquet"]);
    assert_eq!(check(dir.path()), [5, 8]);
}

#[test]
fn a_folder_that_may_not_be_written_is_an_error_with_its_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text =
        Store::create(&file.path().join("x"), &manifest(), &plan()).err().expect("no folder").to_string();
    assert!(text.contains(file.path().to_str().unwrap()), "{text}");
}

/// Leaves room for 0, 1, 2, … pages and tries to keep a run, until both the
/// record file and the line have failed; gives the next run's number.
fn fail_at_every_page(disk: &Path, out: &Path, mut id: u32) -> u32 {
    let filler = disk.join("filler");
    let (mut record_failed, mut line_failed) = (false, false);
    for attempt in 0..60 {
        fs::write(&filler, "").unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
        let full = file.metadata().unwrap().len();
        file.set_len(full.saturating_sub(attempt / 2 % 3 * 4096)).unwrap();
        drop(file);
        let mut store = Store::resume(out, None, None).unwrap();
        assert!(store.notes().is_empty(), "{:?}", store.notes());
        if let Err(error) = run_once(&mut store, id, 1500) {
            let error = error.to_string();
            record_failed |= error.contains("parquet");
            line_failed |= error.contains("runs.ndjson");
            assert_eq!(check(out), (0..id).collect::<Vec<_>>());
            fs::remove_file(&filler).unwrap();
            // The same store goes on once there is room.
            run_once(&mut store, id, 1500).unwrap();
        }
        id += 1;
        assert_eq!(check(out), (0..id).collect::<Vec<_>>());
        if record_failed && line_failed {
            return id;
        }
    }
    panic!("record file failed: {record_failed}, line failed: {line_failed}");
}

/// Mounts a tmpfs of `options` at `at`, or says why the test is skipped.
fn mount(at: &Path, options: &str) -> bool {
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).status();
    let mounted = done.is_ok_and(|s| s.success());
    if !mounted {
        eprintln!("SKIPPED: a full disk cannot be had without the right to mount a tmpfs");
    }
    mounted
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_fails_the_run_and_leaves_the_store_resumable() {
    let dir = tempfile::tempdir().unwrap();
    if !mount(dir.path(), "size=300k") {
        return;
    }
    let _unmount = Unmount(dir.path());
    let out = dir.path().join("out");
    let mut store = Store::create(&out, &manifest(), &plan()).unwrap();
    let mut id = 0;
    let error = loop {
        match run_once(&mut store, id, 1500) {
            Ok(()) => id += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(id > 3 && id < 200, "{id}");
    // What to type is the command's to say.
    assert!(error.contains("make room there") && error.contains("missing"), "{error}");
    assert_eq!(check(&out), (0..id).collect::<Vec<_>>());
    drop(store);
    assert!(
        Command::new("mount").args(["-o", "remount,size=2m"]).arg(dir.path()).status().unwrap().success()
    );
    let id = fail_at_every_page(dir.path(), &out, id);
    // Read-only: nothing is changed, and the message says what to do.
    Command::new("mount").args(["-o", "remount,ro"]).arg(dir.path()).status().unwrap();
    let text = Store::resume(&out, None, None).err().expect("read-only").to_string();
    assert!(text.contains("you may write to"), "{text}");
    assert_eq!(check(&out), (0..id).collect::<Vec<_>>());
}

#[test]
fn simulated_runs_do_not_wait_for_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan()).unwrap();
    store.set_durability(Durability::RELAXED);
    let start = std::time::Instant::now();
    for id in 0..500 {
        run_once(&mut store, id, 100).unwrap();
    }
    let each = start.elapsed() / 500;
    drop(store);
    assert_eq!(check(dir.path()).len(), 500);
    eprintln!("{each:?} for each of 500 relaxed commits");
    assert!(each.as_millis() < 5, "{each:?} a commit");
}
