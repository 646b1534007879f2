//! Where an output goes, and what nobody may make of it: no node is replaced,
//! no planted link is followed.

use crate::support::{expect, finished_runs, is_root, run_in, skipped, text, uflip};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with results in `out`.
fn measured() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "sim:mtron", "-o", "out", "--only", "order", "--baselines", "SR", "--preset", "quick"];
    expect(folder.path(), 0, &[&args[..], &["--seed", "1", "--method", "fixed", "--state", "none"]].concat());
    folder
}

/// Every command that writes to a path that the user names, with that path.
fn commands(path: &str) -> Vec<Vec<&str>> {
    let mut all = vec![
        vec!["report", "out", "-o", path],
        vec!["export", "out", "-o", path],
        vec!["export", "out", "--what", "records", "--format", "parquet", "-o", path],
        vec!["compare", "out", "out", "--html", path],
    ];
    if path.ends_with(".csv") || path.ends_with(".parquet") {
        all.push(vec!["pattern", "null:1M", "--base", "SR", "--io-count", "9", "--records", path]);
    }
    all
}

fn mknod(path: &Path, kind: &[&str]) -> bool {
    let made = Command::new("mknod").arg(path).args(kind).output();
    made.is_ok_and(|made| made.status.success())
}

/// Inode and kind: what changes where something was replaced.
fn identity(path: &Path) -> (u64, u32, u64) {
    let meta = path.symlink_metadata().unwrap();
    (meta.ino(), meta.mode(), meta.rdev())
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn outputs_never_replace_a_node() {
    let folder = measured();
    let dir = folder.path();
    if !is_root() {
        return skipped("making device nodes needs root");
    }
    for name in ["null.csv", "null.parquet"] {
        if !mknod(&dir.join(name), &["c", "1", "3"]) {
            return skipped("mknod makes no device here");
        }
        let before = identity(&dir.join(name));
        for args in commands(name) {
            expect(dir, 0, &args);
            assert_eq!(identity(&dir.join(name)), before, "{args:?} replaced the node");
        }
    }
    // A major number that no driver has: nothing can be behind it.
    for name in ["disk.csv", "disk.parquet"] {
        assert!(mknod(&dir.join(name), &["b", "250", "77"]));
        let before = identity(&dir.join(name));
        for args in commands(name) {
            let (_, err) = expect(dir, 2, &args);
            assert!(err.contains("is a block device") && err.contains("name a file"), "{args:?}: {err}");
            assert_eq!(identity(&dir.join(name)), before, "{args:?} replaced the node");
        }
    }
    let leftovers: Vec<String> = names(dir).into_iter().filter(|name| name.contains("tmp")).collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn a_fifo_is_written_through_and_a_folder_refused() {
    let folder = measured();
    let dir = folder.path();
    for name in ["pipe.csv", "pipe.parquet"] {
        assert!(mknod(&dir.join(name), &["p"]), "a FIFO");
        let before = identity(&dir.join(name));
        for args in commands(name) {
            let plain = dir.join("plain").with_extension(Path::new(name).extension().unwrap());
            let named = plain.to_str().unwrap();
            let as_file: Vec<&str> = args.iter().map(|a| if *a == name { named } else { a }).collect();
            expect(dir, 0, &as_file);
            let reader =
                Command::new("cat").arg(name).current_dir(dir).stdout(Stdio::piped()).spawn().unwrap();
            expect(dir, 0, &args);
            let read = reader.wait_with_output().unwrap().stdout;
            assert_eq!(identity(&dir.join(name)), before, "{args:?} replaced the FIFO");
            let written = std::fs::read(&plain).unwrap();
            assert!(!read.is_empty(), "{args:?}");
            // Response times differ from run to run on a device in real time.
            if args[0] != "pattern" {
                assert!(read == written, "{args:?}: {} and {} bytes", read.len(), written.len());
            }
        }
    }
    std::fs::create_dir(dir.join("folder.csv")).unwrap();
    for args in commands("folder.csv") {
        let (_, err) = expect(dir, 2, &args);
        assert!(err.contains("is a folder; name a file in it"), "{args:?}: {err}");
    }
}

#[test]
fn a_link_leads_to_its_file_which_is_replaced_as_a_whole() {
    let folder = measured();
    let dir = folder.path();
    std::fs::create_dir(dir.join("other")).unwrap();
    for args in commands("link.csv") {
        std::fs::write(dir.join("other/real"), "old").unwrap();
        let _ = std::fs::remove_file(dir.join("link.csv"));
        symlink("other/real", dir.join("link.csv")).unwrap();
        expect(dir, 0, &args);
        assert!(dir.join("link.csv").is_symlink(), "{args:?} replaced the link");
        assert!(std::fs::metadata(dir.join("other/real")).unwrap().len() > 3, "{args:?}");
        assert_eq!(names(&dir.join("other")), ["real"], "{args:?}");
        std::fs::remove_file(dir.join("other/real")).unwrap();
        let (_, err) = expect(dir, 2, &args);
        assert!(err.contains("leads nowhere"), "{args:?}: {err}");
        assert!(names(&dir.join("other")).is_empty(), "{args:?}");
    }
}

#[test]
fn standard_output_by_its_name_is_written_through() {
    let folder = measured();
    let dir = folder.path();
    if !Path::new("/dev/stdout").exists() {
        return skipped("no /dev/stdout");
    }
    let (plain, _) = expect(dir, 0, &["export", "out"]);
    let (piped, _) = expect(dir, 0, &["export", "out", "--format", "csv", "-o", "/dev/stdout"]);
    assert_eq!(piped, plain);
    std::fs::write(dir.join("log"), "before\n").unwrap();
    let log = std::fs::OpenOptions::new().append(true).open(dir.join("log")).unwrap();
    let args = ["export", "out", "--format", "csv", "-o", "/dev/stdout"];
    assert!(uflip().current_dir(dir).args(args).stdout(log).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(dir.join("log")).unwrap(), format!("before\n{plain}"));
}

/// A file that nobody may change, and links to it.
struct Victim(PathBuf);

impl Victim {
    fn new(dir: &Path) -> Victim {
        let path = dir.join("victim");
        std::fs::write(&path, "mine").unwrap();
        Victim(path)
    }

    fn planted(&self, at: &Path) {
        let _ = std::fs::remove_file(at);
        symlink(&self.0, at).unwrap();
    }

    #[track_caller]
    fn unchanged(&self, why: &str) {
        assert_eq!(std::fs::read_to_string(&self.0).unwrap(), "mine", "{why}");
    }
}

const RUN: [&str; 12] =
    ["run", "null:64M", "--only", "order", "--budget", "1s", "--seed", "1", "--method", "fixed", "-o", "out"];

#[test]
fn links_planted_under_the_temporary_names_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, out) = (folder.path(), folder.path().join("out"));
    let victim = Victim::new(dir);
    std::fs::create_dir_all(out.join("ios")).unwrap();
    std::fs::write(out.join(".lock"), "").unwrap();
    for name in ["runs.ndjson", "plan.json", "manifest.json"] {
        victim.planted(&out.join(format!(".{name}.tmp")));
    }
    expect(dir, 0, &RUN);
    victim.unchanged("run");
    for name in ["report.html", "profile.json", "job.json", "calibration.json", "state.json"] {
        victim.planted(&out.join(format!(".{name}.tmp")));
    }
    for run in 0..100 {
        victim.planted(&out.join(format!("ios/.run-{run:06}.parquet.tmp")));
    }
    let rows = std::fs::read_to_string(out.join("runs.ndjson")).unwrap();
    let half: String = rows.split_inclusive('\n').take(3).collect();
    std::fs::write(out.join("runs.ndjson"), half).unwrap();
    for args in [&["run", "-o", "out", "--resume"][..], &["report", "out"], &["profile", "out"]] {
        expect(dir, 0, args);
        victim.unchanged(args[0]);
    }
    assert_eq!(finished_runs(&out).len(), rows.lines().count());
}

#[test]
fn links_planted_for_the_files_themselves_are_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, out) = (folder.path(), folder.path().join("out"));
    let victim = Victim::new(dir);
    expect(dir, 0, &RUN);
    for name in ["report.html", "profile.json"] {
        victim.planted(&out.join(name));
        expect(dir, 0, &["profile", "out"]);
        expect(dir, 0, &["report", "out"]);
        victim.unchanged(name);
    }
    let whole = std::fs::read(out.join("runs.ndjson")).unwrap();
    let cut: Vec<u8> = whole.split_inclusive(|b| *b == b'\n').take(2).flatten().copied().collect();
    for name in [".lock", "runs.ndjson"] {
        // What a copy elsewhere holds must not grow, either.
        let copy = dir.join("copy");
        std::fs::write(&copy, if name == ".lock" { &b""[..] } else { &cut }).unwrap();
        std::fs::remove_file(out.join(name)).unwrap();
        symlink(&copy, out.join(name)).unwrap();
        let before = std::fs::read(&copy).unwrap();
        let (_, err) = expect(dir, 1, &["run", "-o", "out", "--resume"]);
        assert!(err.contains("is a symbolic link"), "{name}: {err}");
        assert_eq!(std::fs::read(&copy).unwrap(), before, "{name}");
        std::fs::remove_file(out.join(name)).unwrap();
        std::fs::write(out.join(name), if name == ".lock" { &b""[..] } else { &whole }).unwrap();
    }
    // The folder of the records leads elsewhere: nothing is removed there.
    std::fs::rename(out.join("ios"), dir.join("elsewhere")).unwrap();
    std::fs::write(dir.join("elsewhere/run-999999.parquet"), "mine").unwrap();
    symlink(dir.join("elsewhere"), out.join("ios")).unwrap();
    let (_, err) = expect(dir, 1, &["run", "-o", "out", "--resume"]);
    assert!(err.contains("not the folder of the records"), "{err}");
    assert!(dir.join("elsewhere/run-999999.parquet").exists());
}

#[test]
fn a_fifo_in_the_place_of_a_file_of_ours_is_neither_replaced_nor_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, out) = (folder.path(), folder.path().join("out"));
    expect(dir, 0, &RUN);
    for (name, args) in [("report.html", ["report", "out"]), (".lock", ["run", "--resume"])] {
        std::fs::remove_file(out.join(name)).unwrap();
        assert!(mknod(&out.join(name), &["p"]));
        let before = identity(&out.join(name));
        let args = if name == ".lock" { [&args[..], &["-o", "out"]].concat() } else { args.to_vec() };
        let (_, err) = expect(dir, 1, &args);
        assert!(err.contains("is a FIFO"), "{name}: {err}");
        assert_eq!(identity(&out.join(name)), before);
        std::fs::remove_file(out.join(name)).unwrap();
    }
}

/// Nothing of a pattern's records goes to the folder for temporary files, where
/// the measured disk may be and where anybody may have put a link.
#[test]
fn a_pattern_leaves_the_temporary_folder_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, temporary) = (folder.path(), folder.path().join("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    // More records than fit in memory at once, so that any file would be begun.
    let pattern = ["pattern", "null:64M", "--base", "RR", "--io-count", "2000000"];
    let mut child = uflip();
    child.current_dir(dir).env("TMPDIR", &temporary).args(pattern).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    while child.try_wait().unwrap().is_none() {
        seen.extend(names(&temporary));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(seen.is_empty(), "{seen:?}");
    assert_eq!(names(dir), ["tmp"]);
    // With records: beside the file and nowhere else, and gone where it fails.
    let records = |name: &'static str| [&pattern[..4], &["--io-count", "100", "--records", name]].concat();
    let output = uflip().current_dir(dir).env("TMPDIR", &temporary).args(records("r.csv")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(names(dir), ["r.csv", "tmp"]);
    assert!(names(&temporary).is_empty());
    let lines = std::fs::read_to_string(dir.join("r.csv")).unwrap();
    assert_eq!(lines.lines().count(), 101);
    expect(dir, 0, &records("r.parquet"));
    assert_eq!(uflip_store::read_records(&dir.join("r.parquet")).unwrap().len(), 100);
    let output = run_in(dir, &records("no/such/r.csv"));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(names(dir), ["r.csv", "r.parquet", "tmp"]);
    assert!(!dir.join("r.csv").symlink_metadata().unwrap().file_type().is_fifo());
}
