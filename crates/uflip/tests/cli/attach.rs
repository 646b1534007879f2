//! Simulated devices attached as block devices: data, ways out, and time.

use crate::support::{expect, is_root, loop_turn, read_until, signal, skipped, text, uflip, wait_until};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::MutexGuard;

/// Says what is missing, if anything is.
fn possible() -> bool {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let missing = [
        (is_root(), "root"),
        (Path::new("/dev/fuse").exists(), "/dev/fuse"),
        (Path::new("/dev/loop-control").exists(), "/dev/loop-control"),
        (runs("losetup"), "losetup"),
    ];
    let missing: Vec<&str> = missing.into_iter().filter(|(there, _)| !there).map(|(_, what)| what).collect();
    if !missing.is_empty() {
        skipped(&format!("attaching a simulated device needs {}", missing.join(", ")));
    }
    missing.is_empty()
}

fn has_fio() -> bool {
    let there = Command::new("fio").arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        skipped("fio is not installed");
    }
    there
}

/// A served device; whatever a test leaves is detached when dropped.
struct Attached {
    child: Child,
    out: BufReader<ChildStdout>,
    said: BufReader<ChildStderr>,
    device: PathBuf,
    ready: Value,
    run_dir: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Attached {
    fn new(args: &[&str]) -> Option<Attached> {
        if !possible() {
            return None;
        }
        let turn = loop_turn();
        let run_dir = tempfile::tempdir().unwrap();
        let mut child = uflip()
            .args(["sim", "attach", "--json", "--run-dir"])
            .arg(run_dir.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output is piped"));
        let said = BufReader::new(child.stderr.take().expect("its words are piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("its output can be read");
        let ready: Value = serde_json::from_str(&line).expect("a line of JSON when ready");
        let device = PathBuf::from(ready["device"].as_str().expect("a device"));
        Some(Attached { child, out, said, device, ready, run_dir, _turn: turn })
    }

    fn name(&self) -> &str {
        self.device.to_str().expect("a plain path")
    }

    fn run_dir(&self) -> &str {
        self.run_dir.path().to_str().expect("a plain path")
    }

    /// Interrupts it and gives its last line.
    fn interrupt(&mut self) -> Value {
        signal(self.child.id(), "INT");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        serde_json::from_str(rest.trim()).expect("a line of JSON at the end")
    }

    /// Fails where a loop device, a mount or a note is left.
    #[track_caller]
    fn assert_nothing_left(&self) {
        assert!(!is_loop_over(&self.device, self.run_dir()), "{} is still attached", self.name());
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        assert!(!mounts.contains(self.run_dir()), "still mounted:\n{mounts}");
        let left: Vec<_> = std::fs::read_dir(self.run_dir.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    fn uflip_detach(&self) -> Output {
        let args = ["sim", "detach", self.name(), "--run-dir", self.run_dir()];
        uflip().args(args).output().expect("the binary starts")
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = uflip().args(["sim", "detach", "--all", "--run-dir", self.run_dir()]).output();
    }
}

/// Whether `device` is a loop device over a file in `folder`.
fn is_loop_over(device: &Path, folder: &str) -> bool {
    let name = device.file_name().and_then(|n| n.to_str()).expect("a plain name");
    let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    backing.is_ok_and(|backing| backing.contains(folder))
}

fn pattern_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Through a new descriptor: the last one closed took the page cache along.
fn read_at(device: &Path, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    File::open(device)?.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().expect("the program starts");
    assert!(output.status.success(), "{program} {args:?}:\n{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn what_is_written_is_read_and_an_interrupt_leaves_nothing() {
    let Some(mut attached) = Attached::new(&["mtron"]) else { return };
    assert_eq!(attached.ready["capacity_bytes"], 16_u64 << 30);
    let ranges =
        [(0_u64, 1_usize << 20), (123 << 20, 4096), ((16 << 30) - 8192, 8192), ((5 << 20) + 512, 1024)];
    let device = File::options().write(true).open(&attached.device).unwrap();
    for (offset, length) in ranges {
        device.write_all_at(&pattern_bytes(offset, length), offset).unwrap();
    }
    device.sync_all().unwrap();
    drop(device);
    for (offset, length) in ranges {
        let read = read_at(&attached.device, offset, length).unwrap();
        assert!(read == pattern_bytes(offset, length), "{length} bytes at {offset} came back different");
    }
    run("blkdiscard", &["--offset", "65536", "--length", "131072", attached.name()]);
    let read = read_at(&attached.device, 0, 1 << 20).unwrap();
    let mut wanted = pattern_bytes(0, 1 << 20);
    wanted[65_536..196_608].fill(0);
    assert!(read == wanted, "discarding 128 KiB changed something else");

    let status = ["sim", "status", "--json", "--run-dir", attached.run_dir()];
    let (status, _) = expect(Path::new("/"), 0, &status);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status[0]["attachment"]["device"], attached.name());
    let so_far = status[0]["lateness"]["requests"].as_u64().expect("figures while it is served");
    let ended = attached.interrupt();
    assert!(ended["requests"].as_u64().unwrap() >= so_far && so_far > 4, "{ended}");
    for count in ["reads", "writes", "flushes", "trims"] {
        assert!(ended[count].as_u64().unwrap() > 0, "no {count}: {ended}");
    }
    assert!(ended["answered_mean_ns"].as_u64() >= ended["modelled_mean_ns"].as_u64(), "{ended}");
    assert!(ended["late_p50_ns"].as_u64() > Some(10), "no clock is that exact: {ended}");
    attached.assert_nothing_left();
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !has_fio() {
        return;
    }
    let Some(attached) = Attached::new(&["nvme-tlc"]) else { return };
    let name = format!("--filename={}", attached.name());
    let verify = [
        "--name=v",
        &name,
        "--direct=1",
        "--size=64m",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",
    ];
    for rest in
        [["--rw=randwrite", "--bs=4k", "--ioengine=psync"], ["--rw=write", "--bs=64k", "--ioengine=psync"]]
    {
        run("fio", &[&verify[..], &rest[..]].concat());
    }
    let deep = ["--rw=randwrite", "--bsrange=512-256k", "--ioengine=io_uring", "--iodepth=32"];
    run("fio", &[&verify[..], &deep[..]].concat());
}

#[test]
fn after_kill_9_detach_cleans_up() {
    let Some(mut attached) = Attached::new(&["transcend-module"]) else { return };
    signal(attached.child.id(), "KILL");
    attached.child.wait().unwrap();
    assert!(is_loop_over(&attached.device, attached.run_dir()), "the kernel cleaned up on its own");
    assert!(read_at(&attached.device, 0, 4096).is_err(), "a device that nobody serves was read");
    let output = attached.uflip_detach();
    assert!(output.status.success(), "{}", text(&output.stderr));
    attached.assert_nothing_left();
    let again = attached.uflip_detach();
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}

#[test]
fn a_device_in_use_is_served_until_it_is_closed() {
    let Some(mut attached) = Attached::new(&["transcend-module"]) else { return };
    let user = File::open(&attached.device).unwrap();
    signal(attached.child.id(), "INT");
    // Said when it was tried to let the device go.
    read_until(&mut attached.said, "served until its users close it");
    let mut bytes = vec![1; 4096];
    user.read_exact_at(&mut bytes, 1 << 20).expect("it is still served");
    assert!(attached.child.try_wait().unwrap().is_none(), "it ended while in use");
    drop(user);
    assert_eq!(attached.child.wait().unwrap().code(), Some(0));
    attached.assert_nothing_left();
}

#[test]
fn a_second_interrupt_cuts_users_off() {
    let Some(mut attached) = Attached::new(&["transcend-module"]) else { return };
    let user = File::open(&attached.device).unwrap();
    signal(attached.child.id(), "INT");
    read_until(&mut attached.said, "interrupt again");
    signal(attached.child.id(), "INT");
    wait_until("it ends", || attached.child.try_wait().unwrap().is_some());
    assert!(user.read_exact_at(&mut [0; 4096], 1 << 20).is_err(), "read though nobody serves it");
    drop(user);
    wait_until("the kernel lets go", || !is_loop_over(&attached.device, attached.run_dir()));
    attached.assert_nothing_left();
}

#[test]
fn what_cannot_be_attached_or_detached_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let (_, err) = expect(dir.path(), 2, &["sim", "attach", "nosuch", "--run-dir", run_dir]);
    assert!(err.contains("nosuch") && err.contains("mtron"), "{err}");
    let (_, err) = expect(dir.path(), 2, &["sim", "detach", "--run-dir", run_dir]);
    assert!(err.contains("nothing is attached"), "{err}");
    let (_, err) = expect(dir.path(), 2, &["sim", "detach", "/dev/loop0", "--run-dir", run_dir]);
    assert!(err.contains("/dev/loop0 is not attached"), "{err}");
    let (out, _) = expect(dir.path(), 0, &["sim", "list", "--json"]);
    assert!(serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().len() >= 7);
    std::fs::write(dir.path().join("bad.toml"), "name = 'x'\ncapacity_mib = 'much'\n").unwrap();
    let (_, err) = expect(dir.path(), 1, &["sim", "check", "bad.toml"]);
    assert!(err.contains("bad.toml") && err.contains('2'), "no line: {err}");
}

/// Enough for a median, and less than a second on the slowest.
const IOS: &str = "96";
/// What a program sees beyond the model is at most so many times what it sees beyond
/// the model of a device that takes next to no time, and so much of the model besides:
/// who sleeps longer is woken later, by 3 to 4 % of the sleep on a busy virtual machine.
const OVERHEADS: f64 = 1.25;
const SHARE: f64 = 0.07;
const LATE_SLEEP: f64 = 0.03;

/// A device that takes 100 us for anything: what more a program sees is the way there
/// and back, with a sleep until the answer is due. The error that is looked for is a
/// share of the model, so that this device's has next to none of it.
const QUICK_MS: f64 = 0.1;

/// The text of a device that takes `ms` for an IO of any kind.
fn constant(ms: f64) -> String {
    let us = ms * 1e3;
    format!(
        "name = \"constant\"\ncapacity_mib = 4096\n[link]\nread_latency_us = {us}\nwrite_latency_us = {us}\n\
         read_mb_s = 1000000\nwrite_mb_s = 1000000\n[geometry]\nchannels = 1\nchips_per_channel = 2\n\
         pages_per_block = 64\npage_bytes = 4096\n[timing]\nread_us = 0\nprogram_us = 0\nerase_us = 0\n\
         bus_mb_s = 1000000\n[ftl]\nkind = \"page\"\n"
    )
}

/// Runs a program before others that want the processor, where that can be
/// had: what else the machine does is not what is measured.
fn run_promptly(program: &str, args: &[&str]) -> String {
    if Command::new("chrt").args(["--rr", "1", "true"]).status().is_ok_and(|s| s.success()) {
        run("chrt", &[&["--rr", "1", program], args].concat())
    } else {
        run(program, args)
    }
}

fn uflip_median_ms(target: &str, base: &str) -> f64 {
    let args = ["pattern", target, "--base", base, "--io-count", IOS, "--seed", "7", "--json"];
    let binary = env!("CARGO_BIN_EXE_uflip");
    // A model in virtual time needs no consent.
    let consent = ["--erase-device", target];
    let consent = if target.starts_with("sim:") { &[][..] } else { &consent[..] };
    let out = run_promptly(binary, &[&args[..], consent].concat());
    let facts: Value = serde_json::from_str(&out).unwrap();
    facts["stats"]["running"]["p50_ns"].as_f64().expect("a median") / 1e6
}

fn fio_median_ms(device: &str, base: &str) -> f64 {
    let rw = match base {
        "SR" => "read",
        "RR" => "randread",
        _ => "write",
    };
    let args = ["--name=m", "--direct=1", "--bs=32k", "--ioengine=psync", "--output-format=json"];
    let more = [format!("--filename={device}"), format!("--rw={rw}"), format!("--number_ios={IOS}")];
    let out = run_promptly("fio", &[&args[..], &more.each_ref().map(String::as_str)[..]].concat());
    let facts: Value = serde_json::from_str(&out).unwrap();
    let mode = if base == "SW" { "write" } else { "read" };
    facts["jobs"][0][mode]["clat_ns"]["percentile"]["50.000000"].as_f64().expect("a median") / 1e6
}

/// What one round saw, in ms.
#[derive(Debug)]
struct Round {
    overhead: f64,
    median: f64,
}

impl Round {
    /// Whether the median is what the model says, as far as the overhead of a request
    /// lets anybody tell.
    fn agrees(&self, model: f64) -> bool {
        (self.median - model).abs() <= OVERHEADS * self.overhead + SHARE * model
    }

    /// Whether an answer that came a tenth of the model too late would be seen.
    fn can_tell(&self, model: f64) -> bool {
        (OVERHEADS - 1.0) * self.overhead + (SHARE - LATE_SLEEP) * model < 0.1 * model
    }
}

/// Measures `device` between two measurements of the quick one, all attached.
fn round(device: &str, base: &str, measure: fn(&str, &str) -> f64) -> Option<Round> {
    let folder = tempfile::tempdir().unwrap();
    let quick = folder.path().join("quick.toml");
    std::fs::write(&quick, constant(QUICK_MS)).unwrap();
    let quickly = || -> Option<f64> {
        let attached = Attached::new(&[quick.to_str()?])?;
        Some(measure(attached.name(), base) - QUICK_MS)
    };
    let before = quickly()?;
    let median = Attached::new(&[device]).map(|attached| measure(attached.name(), base))?;
    let overhead = f64::midpoint(before, quickly()?);
    Some(Round { overhead, median })
}

/// Rounds at most.
const ROUNDS: usize = 8;

/// True where two rounds agree with the model: what else the machine does can only
/// delay an answer, so a model that is kept shows in its quietest rounds, and one that
/// is late is late in all of them. False where fewer do, or a round is too early for
/// the model; `None` where the machine's own overhead hides what is looked for, which
/// is said.
fn as_modelled(device: &str, model: f64, base: &str, measure: fn(&str, &str) -> f64) -> Option<bool> {
    let (mut agree, mut told) = (0, 0);
    for _ in 0..ROUNDS {
        let round = round(device, base, measure)?;
        eprintln!("{device} {base}: {model:.3} ms by the model, {round:.3?}");
        if round.median < 0.98 * model {
            return Some(false);
        }
        told += usize::from(round.can_tell(model));
        agree += usize::from(round.can_tell(model) && round.agrees(model));
        if agree == 2 {
            return Some(true);
        }
    }
    if told < ROUNDS / 2 {
        skipped("a request takes so much more than the model here that a tenth more cannot be seen");
        return None;
    }
    Some(false)
}

fn assert_as_modelled(measure: fn(&str, &str) -> f64) {
    for device in ["transcend-module", "kingston-dti"] {
        for base in ["SR", "RR", "SW"] {
            let model = uflip_median_ms(&format!("sim:{device}"), base);
            let verdict = as_modelled(device, model, base, measure);
            assert_ne!(verdict, Some(false), "{device} {base}: {model:.3} ms by the model; see above");
            if verdict.is_none() {
                return;
            }
        }
    }
}

#[test]
fn uflip_measures_what_the_model_says() {
    assert_as_modelled(uflip_median_ms);
}

#[test]
fn fio_measures_what_the_model_says() {
    if has_fio() {
        assert_as_modelled(fio_median_ms);
    }
}

#[test]
fn an_answer_a_tenth_too_late_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (model, late) = (2.0, folder.path().join("late.toml"));
    std::fs::write(&late, constant(1.1 * model)).unwrap();
    let late = late.to_str().expect("a plain path");
    assert_ne!(as_modelled(late, model, "RR", uflip_median_ms), Some(true), "see above");
}
