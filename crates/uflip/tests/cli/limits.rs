//! What is too much is refused before memory is taken, with the limit: every
//! row of `docs/limits.md`.

use crate::support::{text, uflip};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory that a refusal may take at most.
const SMALL_KIB: u64 = 300 << 10;

/// Runs the command with little address space; gives the code and what it said.
fn within(dir: &Path, kib: u64, args: &[&str]) -> (Option<i32>, String) {
    let script = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(uflip().get_program()).args(args).current_dir(dir);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let err = text(&output.stderr);
    assert!(output.status.signal().is_none(), "{args:?} was ended by a signal:\n{err}");
    assert!(!err.contains("panicked"), "{args:?}:\n{err}");
    (output.status.code(), err)
}

#[track_caller]
fn refused(dir: &Path, args: &[&str], words: &[&str]) {
    let began = Instant::now();
    let (code, err) = within(dir, SMALL_KIB, args);
    assert_eq!(code, Some(2), "{args:?}: {err}");
    words.iter().for_each(|word| assert!(err.contains(word), "{args:?}: no '{word}' in {err}"));
    assert!(began.elapsed() < Duration::from_secs(10), "{args:?} took {:?}", began.elapsed());
}

#[test]
fn too_much_is_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let runs = ["runs or so, and at most 200000 are possible", "fewer repeats or values"];
    for repeats in ["1000000", "4294967295", "100000"] {
        refused(dir, &["plan", "null:1G", "--repeats", repeats], &runs);
        refused(dir, &["plan", "null:1G", "--repeats", repeats, "--json"], &runs);
        refused(dir, &["run", "null:1G", "--repeats", repeats, "-o", "out"], &runs);
    }
    std::fs::write(dir.join("x.bin"), vec![1u8; 1 << 20]).unwrap();
    let ring = ["--engine", "io_uring", "--queue-depth"];
    let deep = |depth: &'static str| {
        [&["pattern", "./x.bin", "--base", "SR", "--parallel", "8"][..], &ring, &[depth]].concat()
    };
    refused(
        dir,
        &deep("4096"),
        &["4096 IOs of up to 32K in flight in each of 8 streams", "8.0", "--queue-depth"],
    );
    refused(dir, &deep("4097"), &["--queue-depth with 1 to 4096"]);
    refused(dir, &deep("0"), &["--queue-depth with 1 to 4096"]);
    let many = ["pattern", "null:1G", "--base", "SR", "--io-size", "512B", "--parallel"];
    refused(dir, &[&many[..], &["4096"]].concat(), &["a buffer for each of 4096 streams", "fewer streams"]);
    refused(dir, &[&many[..], &["4097"]].concat(), &["type a number from 1 to 4096"]);
    let large = ["pattern", "null:1T", "--base", "SR", "--io-size", "255M", "--parallel", "64"];
    refused(dir, &large, &["IOs of up to 255M", "smaller IOs"]);
    refused(dir, &["pattern", "null:1T", "--base", "SR", "--io-size", "256M"], &["type a number from 1 to"]);
    let count = ["pattern", "null:1G", "--base", "SR", "--io-count", "18446744073709551615"];
    refused(dir, &count, &["type --io-count with at most 281474976710656"]);
    let pause = ["pattern", "null:1G", "--base", "SR", "--pause", "18446744073709551615ns"];
    refused(dir, &pause, &["longer than the longest", "52 days"]);
    refused(dir, &["sim", "proof", "-n", "1000000000000"], &["100000"]);
    refused(dir, &["sim", "proof", "--pairs", "1001"], &["2..=1000"]);
    refused(dir, &["sim", "proof", "--intervals", "1000001"], &["1..=1000000"]);
    for size in ["0", "511B", "513B", "5000T", "16777215T"] {
        let name = format!("null:{size}");
        refused(dir, &["pattern", &name, "--base", "SR"], &["type null:SIZE"]);
    }
    assert!(!dir.join("out").exists());
}

#[test]
fn no_device_and_no_endless_file_is_read_as_input() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("b.job"), "plain rr,rw bs=4K,64K count=50 size=8M").unwrap();
    let made = uflip().current_dir(dir).args(["job", "null:8M", "b.job", "-o", "out"]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    for device in ["/dev/zero", "/dev/urandom", "/dev"] {
        for args in [
            &["predict", "out", "--trace", device][..],
            &["job", "null:8M", device],
            &["run", "null:8M", "--plan", device, "-o", "new"],
            &["sim", "check", device],
        ] {
            refused(dir, args, &["type a file's name"]);
        }
    }
    // A line without end, in a file that takes no room.
    let sparse = std::fs::File::create(dir.join("sparse")).unwrap();
    sparse.set_len(8 << 30).unwrap();
    refused(dir, &["predict", "out", "--trace", "sparse"], &["a trace's line, which has at most 64K"]);
    refused(dir, &["job", "null:8M", "sparse"], &["a job file has at most 1M"]);
    refused(dir, &["sim", "check", "sparse"], &["has at most 1M"]);
    refused(dir, &["run", "sim:sparse", "-o", "new"], &["has at most 1M"]);
    let (code, err) = within(dir, 2 << 20, &["run", "null:8M", "--plan", "sparse", "-o", "new"]);
    assert!(code == Some(2) && err.contains("a plan has at most 512M"), "{err}");
    // A trace of more IOs than there is memory for.
    let line = "/dev/sda write 4096 8192\n";
    let mut trace = "fio version 2 iolog\n".to_string();
    trace.extend(std::iter::repeat_n(line, 700_000));
    std::fs::write(dir.join("long.log"), trace).unwrap();
    let (code, err) = within(dir, SMALL_KIB, &["predict", "out", "--trace", "long.log"]);
    assert!(code == Some(2) && err.contains("no memory for more IOs; cut the trace here"), "{err}");
}

#[test]
fn a_trace_may_come_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("b.job"), "plain rr,rw bs=4K,64K count=50 size=8M").unwrap();
    let made = uflip().current_dir(dir).args(["job", "null:8M", "b.job", "-o", "out"]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let script = "mkfifo p; (printf 'fio version 2 iolog\\n'; yes '/dev/sda write 4096 8192' | head -500) > p & \
                  exec \"$0\" predict out --trace p --json";
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(uflip().get_program())
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["character"]["writes"], 500);
}

#[test]
fn a_simulated_device_beyond_memory_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let page = "name = \"huge\"\ncapacity_mib = 16777216\nsector_bytes = 512\n\
        [geometry]\nchannels = 8\nchips_per_channel = 4\ndies_per_chip = 2\nplanes_per_die = 2\n\
        pages_per_block = 256\npage_bytes = 16384\n[timing]\nread_us = 50\nprogram_us = 500\nerase_us = 2000\n\
        bus_mb_s = 400\n[ftl]\nkind = \"page\"\n[link]\nread_latency_us = 10\nwrite_latency_us = 10\n\
        read_mb_s = 500\nwrite_mb_s = 500\n";
    std::fs::write(dir.join("huge.toml"), page).unwrap();
    let checked = uflip().current_dir(dir).args(["sim", "check", "huge.toml"]).output().unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    for args in [
        &["plan", "sim:huge.toml"][..],
        &["run", "sim:huge.toml", "-o", "out"],
        &["pattern", "sim:huge.toml", "--base", "SR"],
        &["job", "sim:huge.toml", "a.job", "-o", "out"],
        &["sim", "attach", "huge.toml"],
    ] {
        std::fs::write(dir.join("a.job"), "a rr bs=4K count=2\n").unwrap();
        refused(dir, args, &["simulating huge of 16T would take", "type a smaller capacity_mib"]);
    }
    assert!(!dir.join("out").exists());
}

/// The list of a dry run is written as it is made.
#[test]
fn a_dry_run_of_many_ios_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let dry = "ulimit -v 100000; \"$0\" pattern null:1G --base RR --io-count 5000000 --dry-run | wc -l";
    let output = Command::new("sh")
        .arg("-c")
        .arg(dry)
        .arg(uflip().get_program())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout).trim(), "5000001", "{}", text(&output.stderr));
}
