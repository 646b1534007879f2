//! The safety matrix on real devices: what stands on, beside or beneath a
//! target and shares its bytes. `docs/safety.md` has a row for each of these
//! tests and says which ones elsewhere prove the other rows.
//!
//! All of it happens on loop devices over files of a temporary folder.

use crate::support::{expect, is_root, loop_turn, run_in, skipped, text, uflip, wait_until};
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::MutexGuard;

const SIZE: u64 = 16 << 20;

fn run(command: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(command).args(args).output().map_err(|error| format!("{command}: {error}"))?;
    let all = text(&output.stdout) + &text(&output.stderr);
    if output.status.success() { Ok(text(&output.stdout).trim().to_string()) } else { Err(all) }
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A folder, and what is to be undone in it, last first.
struct Bench {
    undo: Vec<[String; 3]>,
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Option<Bench> {
        let turn = loop_turn();
        if !is_root() {
            skipped("loop devices need root");
            return None;
        }
        Some(Bench { undo: Vec::new(), folder: tempfile::tempdir().unwrap(), _turn: turn })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file of zeros that has its blocks.
    fn image(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::write(&path, vec![0; SIZE as usize]).unwrap();
        path
    }

    fn later(&mut self, command: &str, args: [&str; 2]) {
        self.undo.push([command.to_string(), args[0].to_string(), args[1].to_string()]);
    }

    /// A loop device over a file or device.
    fn attach(&mut self, over: &Path) -> Option<PathBuf> {
        self.attach_with(over, &[])
    }

    fn attach_with(&mut self, over: &Path, options: &[&str]) -> Option<PathBuf> {
        match run("losetup", &[options, &["-f", "--show", plain(over)]].concat()) {
            Ok(device) => {
                self.later("losetup", ["-d", &device]);
                Some(PathBuf::from(device))
            }
            Err(why) => {
                skipped(&format!("no loop device: {why}"));
                None
            }
        }
    }

    /// An ext4 on the device or file, which writes nothing by itself later.
    fn ext4(&self, on: &Path) -> Option<()> {
        let eager = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-E", eager, plain(on)])
            .map_err(|why| skipped(&format!("no ext4: {why}")))
            .ok()
            .map(drop)
    }

    fn mount(&mut self, device: &Path) -> Option<PathBuf> {
        let point = self.at(&format!("mount{}", self.undo.len()));
        std::fs::create_dir(&point).unwrap();
        if let Err(why) = run("mount", &[plain(device), plain(&point)]) {
            skipped(&format!("no mount: {why}"));
            return None;
        }
        self.later("umount", ["-l", plain(&point)]);
        Some(point)
    }

    /// Two partitions of 4 MiB each on the loop device over `image`.
    fn partitioned(&mut self, image: &Path) -> Option<(PathBuf, PathBuf, PathBuf)> {
        let mut mbr = [0u8; 512];
        for (entry, start) in [(446, 2048u32), (462, 16384)] {
            mbr[entry + 4] = 0x83;
            mbr[entry + 8..entry + 12].copy_from_slice(&start.to_le_bytes());
            mbr[entry + 12..entry + 16].copy_from_slice(&8192u32.to_le_bytes());
        }
        mbr[510..].copy_from_slice(&[0x55, 0xaa]);
        File::options().write(true).open(image).unwrap().write_all_at(&mbr, 0).unwrap();
        let disk = self.attach_with(image, &["--partscan"])?;
        let part = |n: u32| PathBuf::from(format!("{}p{n}", disk.display()));
        for (n, start) in [("1", "2048"), ("2", "16384")] {
            // Kernels without the parser take partitions one by one.
            if !part(n.parse().unwrap()).exists() {
                let _ = run("addpart", &[plain(&disk), n, start, "8192"]);
            }
        }
        if !part(2).exists() {
            skipped("the kernel shows no partitions on loop devices");
            return None;
        }
        Some((disk.clone(), part(1), part(2)))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for [command, option, what] in self.undo.iter().rev() {
            let _ = run(command, &[option, what]);
            // Others look at the device for a moment; the kernel waits for them.
            let name = what.trim_start_matches("/dev/").to_string();
            for _ in 0..100 {
                if !Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

/// The pattern of the review: sequential writes over the start of `target`.
fn write_to(target: &Path, consents: &[String]) -> std::process::Output {
    let mut args = vec!["pattern", plain(target), "--base", "SW", "--io-count", "64", "--json"];
    for consent in consents {
        args.extend(["--erase-device", consent]);
    }
    run_in(Path::new("/"), &args)
}

/// Refused whatever is typed, with every one of `words` in the reason.
#[track_caller]
fn refused(target: &Path, words: &[&str]) {
    let name = plain(target);
    let tags = ["", "+ext4", "+swap", "+dos+partitions", "+unknown-contents", "+dos", "+partitions"];
    let consents: Vec<String> = tags.iter().map(|tag| format!("{name}{tag}")).collect();
    let output = write_to(target, &consents);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{name} was written to:\n{err}");
    assert!(!err.contains("--erase-device"), "nothing to type helps here:\n{err}");
    for word in words {
        assert!(err.contains(word), "'{word}' is not given as the reason:\n{err}");
    }
}

/// Written once what the refusal asks for is typed.
#[track_caller]
fn written(target: &Path) {
    let err = text(&write_to(target, &[]).stderr);
    let option = err.lines().find_map(|line| line.trim().strip_prefix("--erase-device "));
    let consent = option.unwrap_or_else(|| panic!("nothing to type for {}:\n{err}", target.display()));
    let output = write_to(target, &[consent.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The magic of ext4 is where it was.
#[track_caller]
fn still_ext4(on: &Path) {
    let mut magic = [0; 2];
    File::open(on).unwrap().read_exact_at(&mut magic, 1080).unwrap();
    assert_eq!(magic, [0x53, 0xef], "the file system on {} is gone", on.display());
}

/// The value of an option, or the end of the test, which has said why.
macro_rules! need {
    ($given:expr) => {
        match $given {
            Some(value) => value,
            None => return,
        }
    };
}

#[test]
fn a_loop_over_a_mounted_device_is_refused() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let lower = need!(bench.attach(&image));
    need!(bench.ext4(&lower));
    let point = need!(bench.mount(&lower));
    let upper = need!(bench.attach(&lower));
    let name = lower.file_name().unwrap().to_string_lossy().into_owned();
    refused(&upper, &[&name, plain(&point)]);
    refused(&lower, &["mounted at"]);
    let third = need!(bench.attach(&upper));
    refused(&third, &[&name, "mounted at"]);
    let listed = expect(Path::new("/"), 0, &["devices", "--json"]).0;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let line = listed["devices"].as_array().unwrap().iter().find(|d| d["facts"]["path"] == plain(&upper));
    let line = line.expect("the upper one is listed");
    assert!(line["refused"].as_str().is_some_and(|why| why.contains(&name)), "{line}");
    assert_eq!(line["confirm"], serde_json::Value::Null);
    still_ext4(&image);
}

#[test]
fn a_second_loop_over_a_file_is_refused() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let first = need!(bench.attach(&image));
    need!(bench.ext4(&first));
    let second = need!(bench.attach(&image));
    let name = first.file_name().unwrap().to_string_lossy().into_owned();
    refused(&second, &[&name, "x.img"]);
    let point = need!(bench.mount(&first));
    refused(&second, &[&name, plain(&point)]);
    still_ext4(&image);
}

#[test]
fn a_second_loop_is_known_by_the_inode_of_its_file() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    need!(bench.ext4(&image));
    let first = need!(bench.attach(&image));
    let point = need!(bench.mount(&first));
    let (linked, bound) = (bench.at("linked.img"), bench.at("bound"));
    std::fs::hard_link(&image, &linked).unwrap();
    let by_link = need!(bench.attach(&linked));
    refused(&by_link, &[plain(&point)]);
    std::fs::create_dir(&bound).unwrap();
    run("mount", &["--bind", plain(bench.folder.path()), plain(&bound)]).expect("root may bind");
    bench.later("umount", ["-l", plain(&bound)]);
    let by_bind = need!(bench.attach(&bound.join("x.img")));
    refused(&by_bind, &[plain(&point)]);
    // Both names gone: sysfs gives "x.img (deleted)" and "linked.img (deleted)".
    std::fs::remove_file(&image).unwrap();
    std::fs::remove_file(&linked).unwrap();
    refused(&by_link, &[plain(&point)]);
    still_ext4(&first);
    // A new file of the old name has nothing to do with it.
    let fresh = need!(bench.attach(&bench.image("x.img")));
    written(&fresh);
    still_ext4(&first);
}

#[test]
fn a_loop_in_a_changed_root_is_known_by_its_inode() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    need!(bench.ext4(&image));
    let first = need!(bench.attach(&image));
    need!(bench.mount(&first));
    let second = need!(bench.attach(&image));
    // A root in which the file has another name, and where mounts outside are
    // not told of. In a name space of its own, so that nothing of it stays.
    let script = r#"
        set -e
        mkdir -p root/dev root/proc root/sys root/data
        for folder in usr lib lib64; do
            if [ -d /$folder ]; then mkdir root/$folder; mount --bind -o ro /$folder root/$folder; fi
        done
        for folder in dev proc sys; do mount --bind /$folder root/$folder; done
        mount --bind . root/data
        cp "$1" root/uflip
        exec chroot root /uflip pattern "$2" --base SW --io-count 64 --erase-device "$2" --erase-device "$2+ext4"
    "#;
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .args([env!("CARGO_BIN_EXE_uflip"), plain(&second)])
        .current_dir(bench.folder.path())
        .output();
    let Ok(output) = output else { return skipped("there is no unshare command") };
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    let name = first.file_name().unwrap().to_string_lossy().into_owned();
    assert!(err.contains("nothing is written to") && err.contains(&name), "{err}");
    still_ext4(&image);
}

/// Writes to `device` in a root of its own, whose `/sys` is made by `make_sys`.
fn in_a_root_with(bench: &Bench, make_sys: &str, device: &Path, root: &str) -> Option<Output> {
    let script = r#"
        set -e
        mkdir -p "$3/dev" "$3/proc" "$3/sys"
        for folder in usr lib lib64; do
            if [ -d /$folder ]; then mkdir "$3/$folder"; mount --bind -o ro /$folder "$3/$folder"; fi
        done
        for folder in dev proc; do mount --bind /$folder "$3/$folder"; done
        cp "$1" "$3/uflip"
        sys="$3/sys"
        eval "$4"
        exec chroot "$3" /uflip pattern "$2" --base SW --io-count 64 \
            --erase-device "$2" --erase-device "$2+ext4+unknown-contents"
    "#;
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .args([env!("CARGO_BIN_EXE_uflip"), plain(device), root, make_sys])
        .current_dir(bench.folder.path())
        .output()
        .map_err(|_| skipped("there is no unshare command"))
        .ok()
}

#[test]
fn a_sysfs_that_tells_half_is_no_leave_in_a_changed_root() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    need!(bench.ext4(&image));
    let first = need!(bench.attach(&image));
    need!(bench.mount(&first));
    // Over the file, and over the device: what is claimed beneath matters too.
    let over = [need!(bench.attach(&image)), need!(bench.attach(&first))];
    let whole = "mount -t sysfs -o ro sysfs $sys";
    let hidden = |folder: &str| format!("{whole}; mount -t tmpfs -o size=4k none $sys/{folder}");
    let bound = "mkdir $sys/dev $sys/devices; for f in dev devices; do mount --bind /sys/$f $sys/$f; done";
    let mut ways: Vec<String> =
        ["class", "block", "class/block", "dev", "devices"].into_iter().map(hidden).collect();
    ways.push(format!("{}; mount -t tmpfs -o size=4k none $sys/class/block", hidden("block")));
    ways.push(bound.to_string());
    // Without the node of the loop device that is mounted.
    ways.push(format!("{whole}; umount $3/dev; cp -a $2 $3/dev/"));
    let name = first.file_name().unwrap().to_string_lossy().into_owned();
    for (number, way) in ways.iter().enumerate() {
        for (target, device) in over.iter().enumerate() {
            let root = format!("root{number}.{target}");
            let output = need!(in_a_root_with(&bench, way, device, &root));
            let err = text(&output.stderr);
            assert!(!output.status.success(), "{way}: {err}");
            let why = ["/sys", &name].iter().any(|word| err.contains(word));
            assert!(err.contains("uflip:") && why, "{way}: {err}");
        }
    }
    still_ext4(&image);
}

#[test]
fn a_device_behind_a_loop_device_is_refused() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let lower = need!(bench.attach(&image));
    let upper = need!(bench.attach(&lower));
    let name = upper.file_name().unwrap().to_string_lossy().into_owned();
    refused(&lower, &[&name]);
    need!(bench.ext4(&upper));
    let point = need!(bench.mount(&upper));
    refused(&lower, &[&name, plain(&point)]);
    still_ext4(&image);
}

#[test]
fn a_loop_over_an_idle_loop_over_a_file_is_written() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let lower = need!(bench.attach(&image));
    written(&lower);
    let upper = need!(bench.attach(&lower));
    written(&upper);
}

#[test]
fn a_loop_over_a_partition_heeds_that_partition_and_its_disk() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let (disk, first, second) = need!(bench.partitioned(&image));
    need!(bench.ext4(&second));
    let point = need!(bench.mount(&second));
    let over_first = need!(bench.attach(&first));
    let over_second = need!(bench.attach(&second));
    refused(&over_second, &[plain(&point)]);
    // As for the partition itself: the other one shares no byte with it.
    written(&over_first);
    let over_disk = need!(bench.attach(&disk));
    refused(&over_disk, &[plain(&point)]);
    // Now the whole disk is behind a loop device, and so is its first partition.
    let name = over_disk.file_name().unwrap().to_string_lossy().into_owned();
    refused(&over_first, &[&name]);
    refused(&first, &[&name]);
    still_ext4(&second);
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let (disk, first, second) = need!(bench.partitioned(&image));
    need!(bench.ext4(&second));
    let point = need!(bench.mount(&second));
    refused(&disk, &[plain(&point)]);
    refused(&second, &[plain(&point)]);
    written(&first);
    still_ext4(&second);
}

#[test]
fn a_loop_over_the_root_disk_is_refused() {
    use std::os::unix::fs::MetadataExt;
    let mut bench = need!(Bench::new());
    let dev = std::fs::metadata("/").unwrap().dev();
    let major = (dev >> 8 & 0xfff) | (dev >> 32 & !0xfff);
    let minor = (dev & 0xff) | (dev >> 12 & !0xff);
    let Ok(real) = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else {
        return skipped("the root is on no block device");
    };
    let disk = Path::new("/dev").join(real.file_name().unwrap());
    // Read-only, so that this test can lose nothing whatever the rules do.
    let over = need!(bench.attach_with(&disk, &["--read-only"]));
    refused(&over, &["root file system", "mounted at /"]);
}

#[test]
fn a_loop_over_a_swap_file_or_device_is_refused() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let disk = need!(bench.attach(&image));
    need!(bench.ext4(&disk));
    let point = need!(bench.mount(&disk));
    let area = point.join("swap area");
    std::fs::write(&area, vec![0; 4 << 20]).unwrap();
    let over = need!(bench.attach(&area));
    let swap = |area: &Path| run("mkswap", &["-q", plain(area)]).and_then(|_| run("swapon", &[plain(area)]));
    if let Err(why) = swap(&area) {
        return skipped(&format!("no swap file: {why}"));
    }
    let caught = std::panic::catch_unwind(|| {
        refused(&over, &["swap"]);
        refused(&area, &["swap"]);
    });
    run("swapoff", &[plain(&area)]).expect("swap ends");
    caught.expect("a swap file is seen through a loop device");

    let lower = need!(bench.attach(&bench.image("y.img")));
    let upper = need!(bench.attach(&lower));
    if let Err(why) = swap(&lower) {
        return skipped(&format!("no swap device: {why}"));
    }
    let caught = std::panic::catch_unwind(|| {
        refused(&upper, &["swap"]);
        refused(&lower, &["swap"]);
    });
    run("swapoff", &[plain(&lower)]).expect("swap ends");
    caught.expect("a swap device is seen through a loop device");
}

#[test]
fn a_file_behind_a_loop_device_is_refused_under_every_name() {
    let mut bench = need!(Bench::new());
    let folder = bench.folder.path().to_path_buf();
    expect(&folder, 0, &["pattern", "./scratch", "--base", "SR", "--io-count", "4", "--scratch-size", "16M"]);
    expect(&folder, 0, &["pattern", "./scratch", "--base", "SW", "--io-count", "4"]);
    let linked = bench.at("linked");
    std::fs::hard_link(bench.at("scratch"), &linked).unwrap();
    let device = need!(bench.attach(&linked));
    let name = device.file_name().unwrap().to_string_lossy().into_owned();
    refused(&bench.at("scratch"), &[&name]);
    let (_, err) = expect(&folder, 1, &["pattern", "./scratch", "--base", "SW", "--io-count", "4"]);
    assert!(err.contains(&name), "{err}");
}

#[test]
fn a_file_in_a_file_system_on_a_loop_device_is_written() {
    let mut bench = need!(Bench::new());
    let image = bench.at("big.img");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let disk = need!(bench.attach(&image));
    need!(bench.ext4(&disk));
    let point = need!(bench.mount(&disk));
    // Its blocks are its own; the file system around it goes on.
    expect(&point, 0, &["pattern", "./scratch", "--base", "SW", "--io-count", "64", "--scratch-size", "16M"]);
    // And a loop device over such a file is over a file.
    std::fs::write(point.join("y.img"), vec![0; 4 << 20]).unwrap();
    let inner = need!(bench.attach(&point.join("y.img")));
    written(&inner);
    still_ext4(&disk);
}

#[test]
fn a_loop_over_a_device_that_another_program_has_is_refused() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let lower = need!(bench.attach(&image));
    let upper = need!(bench.attach(&lower));
    let other = File::options().read(true).custom_flags(0o200).open(&lower).expect("O_EXCL of a free device");
    let name = lower.file_name().unwrap().to_string_lossy().into_owned();
    refused(&upper, &[&name, "exclusively"]);
    drop(other);
    written(&upper);
}

#[test]
fn nobody_takes_what_lies_beneath_while_it_is_measured() {
    let mut bench = need!(Bench::new());
    let image = bench.image("x.img");
    let lower = need!(bench.attach(&image));
    let upper = need!(bench.attach(&lower));
    let args = ["pattern", plain(&upper), "--base", "SW", "--io-count", "4000", "--pause", "20ms"];
    let mut child = uflip()
        .args(args)
        .args(["--erase-device", plain(&upper)])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let claim = || File::options().read(true).custom_flags(0o200).open(&lower);
    let taken = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        claim().is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
    });
    // Not the glance before the writes, but for as long as they go on.
    let stat = format!("/sys/block/{}/stat", upper.file_name().unwrap().to_string_lossy());
    let writes = || {
        let counts = std::fs::read_to_string(&stat).unwrap();
        counts.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap()
    };
    let before = writes();
    wait_until("five writes more", || writes() >= before + 5);
    let kept = claim().is_err();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(taken && kept, "the device beneath could be mounted while it is written: {taken} {kept}");
}

#[test]
fn what_is_no_disk_is_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run("mkfifo", &[plain(&at("fifo"))]).expect("there is a mkfifo");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::os::unix::fs::symlink("/nonexistent/x", at("link")).unwrap();
    let mut targets = vec![at("fifo"), at("socket"), at("link"), folder.path().to_path_buf()];
    targets.extend(["/dev/null", "/proc/self/comm"].map(PathBuf::from));
    if std::fs::read_to_string("/proc/mounts").is_ok_and(|all| all.contains(" /dev devtmpfs ")) {
        targets.push(PathBuf::from("/dev/uflip-mistyped"));
    }
    for target in targets {
        let output = write_to(&target, &[plain(&target).to_string()]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {err}", target.display());
        assert!(err.contains("cannot be a target"), "{}: {err}", target.display());
    }
    assert!(!Path::new("/dev/uflip-mistyped").exists());
}

/// The names of all tests in the Rust files below `folder`.
fn tests_below(folder: &Path, found: &mut std::collections::BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            for after in source.split("\n#[test]\n").skip(1) {
                let name = after.lines().find_map(|line| line.strip_prefix("fn "));
                found.extend(name.and_then(|n| Some(n.split_once('(')?.0.to_string())));
            }
        }
    }
}

#[test]
fn every_row_of_the_safety_matrix_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = std::collections::BTreeSet::new();
    tests_below(&root.join("crates"), &mut tests);
    let document = std::fs::read_to_string(root.join("docs/safety.md")).unwrap();
    let (_, table) = document.split_once("| Situation |").expect("the table");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let names: Vec<&str> = cells.last().unwrap().split('`').skip(1).step_by(2).collect();
        if cells.len() != 3 || names.is_empty() {
            wrong.push(format!("no test: {row}"));
        }
        let missing = names.iter().filter(|name| !tests.contains(**name));
        wrong.extend(missing.map(|name| format!("there is no test {name}: {row}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
