//! The block layer as witness: each location function is run on a loop device
//! and the kernel's own trace of requests is compared with the planned IOs.

use crate::support::{Loop, expect, is_root, skipped};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uflip_analysis::trace::{TraceIo, of_records, parse_device};
use uflip_device::Mode;
use uflip_store::{Store, read_records};

/// One request: `R` or `W`, offset and size in bytes.
type Request = (char, u64, u64);

/// A trace of the requests issued to one device, in a tracing instance of its
/// own so that nobody else's tracing is disturbed.
struct Trace {
    instance: PathBuf,
    device: String,
}

impl Trace {
    fn start(device: &Path) -> Option<Trace> {
        let root = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
            .iter()
            .map(Path::new)
            .find(|p| p.join("events/block/block_rq_issue").is_dir());
        let Some(root) = root.filter(|_| is_root()) else {
            skipped("no block trace: needs root, tracefs mounted and the block events");
            return None;
        };
        let instance = root.join("instances").join(format!("uflip-test-{}", std::process::id()));
        if let Err(e) = fs::create_dir(&instance) {
            skipped(&format!("no tracing instance: {e}"));
            return None;
        }
        fs::write(instance.join("buffer_size_kb"), "4096").ok();
        for event in ["block_rq_issue", "block_rq_complete"] {
            fs::write(instance.join("events/block").join(event).join("enable"), "1")
                .expect("the event can be enabled");
        }
        let name = device.file_name().and_then(|n| n.to_str()).expect("a plain name");
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).expect("the device's number");
        Some(Trace { instance, device: number.trim().replace(':', ",") })
    }

    fn requests(&self) -> Vec<Request> {
        let trace = fs::read_to_string(self.instance.join("trace")).expect("the trace can be read");
        trace.lines().filter_map(|line| self.request(line)).collect()
    }

    /// `… block_rq_issue: 7,0 WS 8192 () 16 + 16 none,0,0 [uflip]`
    fn request(&self, line: &str) -> Option<Request> {
        let event = line.split_once("block_rq_issue: ")?.1;
        let mut words = event.split_whitespace();
        if words.next()? != self.device {
            return None;
        }
        let mode = words.next()?.chars().find(|c| "RWDF".contains(*c))?;
        let (sector, sectors) = event.split_once(')')?.1.split_once('+')?;
        let sectors = sectors.split_whitespace().next()?;
        Some((mode, sector.trim().parse::<u64>().ok()? * 512, sectors.parse::<u64>().ok()? * 512))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::write(self.instance.join("events/enable"), "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

fn planned(csv: &str) -> Vec<Request> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("i,stream,t_rule,offset,size,mode"));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.rsplitn(4, ',').collect();
            let mode = if fields[0] == "read" { 'R' } else { 'W' };
            (mode, fields[2].parse().expect("an offset"), fields[1].parse().expect("a size"))
        })
        .collect()
}

#[test]
fn the_kernel_saw_exactly_the_planned_ios() {
    let Some(device) = Loop::new(64 << 20) else { return };
    let cases: [&[&str]; 12] = [
        &["--base", "SR"],
        &["--base", "SW", "--io-size", "8K", "--target-offset", "1M", "--target-size", "256K"],
        &["--base", "RR", "--io-shift", "512"],
        &["--base", "RW", "--target-size", "4M"],
        &["--base", "RW", "--target-size", "1M", "--no-repeat"],
        &["--base", "SW", "--incr", "-1"],
        &["--base", "SW", "--incr", "0"],
        &["--base", "SR", "--incr", "8", "--target-size", "2M"],
        &["--base", "SW", "--partitions", "4"],
        &["--base", "SR", "--mix", "RW", "--ratio", "3"],
        &["--base", "RR", "--mix", "SW", "--ratio", "-2"],
        &["--base", "SW", "--pause", "1ms", "--burst", "10"],
    ];
    for (number, case) in cases.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let seed = format!("{}", 100 + number);
        let mut args = vec!["pattern", device.name(), "--io-count", "64", "--seed", &seed];
        args.extend(*case);
        let (csv, _) = expect(folder.path(), 0, &[args.as_slice(), &["--dry-run"]].concat());
        let plan = planned(&csv);
        assert_eq!(plan.len(), 64);
        let Some(trace) = Trace::start(&device.device) else { return };
        expect(folder.path(), 0, &[args.as_slice(), &["--erase-device", device.name()]].concat());
        let seen = trace.requests();
        // What the safety checks read comes before the first IO of the pattern.
        assert!(seen.len() >= plan.len(), "{case:?}: {} requests for {} IOs", seen.len(), plan.len());
        let (before, run) = seen.split_at(seen.len() - plan.len());
        assert_eq!(run, plan, "{case:?}");
        assert!(before.iter().all(|r| r.0 == 'R'), "{case:?}: written before the run: {before:?}");
    }
}

/// The kernel's own text is a trace, with the response times in it.
#[test]
fn the_kernels_trace_is_read_and_predicted() {
    let Some(device) = Loop::new(16 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.job"), "plain rr,rw bs=4K,64K count=50").unwrap();
    expect(folder, 0, &["job", "null:16M", "a.job", "-o", "out"]);
    let Some(trace) = Trace::start(&device.device) else { return };
    let args = ["pattern", device.name(), "--base", "RW", "--io-size", "8K", "--io-count", "40"];
    expect(folder, 0, &[&args[..], &["--erase-device", device.name()]].concat());
    let text = fs::read_to_string(trace.instance.join("trace")).expect("the trace can be read");
    fs::write(folder.join("t.txt"), text).unwrap();
    let args = ["predict", "out", "--trace", "t.txt", "--device", &trace.device, "--json"];
    let facts: serde_json::Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
    assert_eq!(
        (&facts["character"]["writes"], &facts["character"]["write_bytes"]),
        (&40.into(), &327_680.into())
    );
    // All requests of that size: what the safety checks read may have some, too.
    assert!(facts["character"]["sizes"]["8192"].as_u64() >= Some(40), "{facts:#}");
    assert!(facts["measured_ns"].as_f64().unwrap() > 0.0, "{facts:#}");
}

/// The kernel's `blk` tracer, whose binary form is what blktrace hands to
/// blkparse. There is one for the whole machine, so it is left alone where
/// somebody uses it.
struct BlkTracer {
    root: &'static Path,
    enable: PathBuf,
}

impl BlkTracer {
    fn start(device: &Path) -> Option<BlkTracer> {
        let root = Path::new("/sys/kernel/tracing");
        let name = device.file_name().and_then(|n| n.to_str()).expect("a plain name");
        let enable = PathBuf::from(format!("/sys/block/{name}/trace/enable"));
        let says =
            |file: &str, text: &str| fs::read_to_string(root.join(file)).is_ok_and(|t| t.trim() == text);
        if !enable.is_file() || !says("current_tracer", "nop") || !says("events/enable", "0") {
            skipped("no blk tracer: needs root, CONFIG_BLK_DEV_IO_TRACE and a tracefs that nobody uses");
            return None;
        }
        let tracer = BlkTracer { root, enable };
        for (file, text) in
            [("current_tracer", "blk"), ("trace_options", "nocontext-info"), ("trace_options", "bin")]
        {
            tracer.set(file, text);
        }
        fs::write(&tracer.enable, "1").expect("the tracer can be switched on");
        Some(tracer)
    }

    fn set(&self, file: &str, text: &str) {
        let _ = fs::write(self.root.join(file), text);
    }

    /// What was traced, through blkparse; `None` where that is not installed.
    fn blkparse(&self) -> Option<String> {
        const NONBLOCK: i32 = 0o4000;
        let mut bytes = Vec::new();
        let pipe = fs::File::options().read(true).custom_flags(NONBLOCK).open(self.root.join("trace_pipe"));
        // It ends with "would block": everything was read.
        let _ = pipe.expect("the trace can be read").read_to_end(&mut bytes);
        let mut command = Command::new("blkparse");
        command.args(["-i", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            skipped("no blkparse");
            return None;
        };
        let mut stdin = child.stdin.take().expect("a pipe");
        let feed = std::thread::spawn(move || stdin.write_all(&bytes));
        let output = child.wait_with_output().expect("blkparse ends");
        feed.join().expect("no panic").expect("blkparse reads all");
        Some(crate::support::text(&output.stdout))
    }
}

impl Drop for BlkTracer {
    fn drop(&mut self) {
        let _ = fs::write(&self.enable, "0");
        for (file, text) in
            [("trace_options", "nobin"), ("trace_options", "context-info"), ("current_tracer", "nop")]
        {
            self.set(file, text);
        }
    }
}

/// What a trace says of what was written: offset, size and mode of each IO.
fn changes(trace: &[TraceIo]) -> Vec<(u64, u32, Mode)> {
    trace.iter().filter(|io| io.mode != Mode::Read).map(|io| (io.offset, io.size, io.mode)).collect()
}

/// Trace events and blkparse's text of the same run say what our own records
/// say: every write and flush, in order.
#[test]
fn the_kernels_traces_say_what_our_records_say() {
    let Some(device) = Loop::new(64 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.job"), "a rw,sw bs=4K,16K count=64 sync=1,4\nplain rr,rw bs=4K,64K count=50")
        .unwrap();
    let (events, tracer) = (Trace::start(&device.device), BlkTracer::start(&device.device));
    let Some(events) = events else { return };
    expect(
        folder,
        0,
        &["job", device.name(), "a.job", "-o", "out", "--seed", "3", "--erase-device", device.name()],
    );
    let text = fs::read_to_string(events.instance.join("trace")).expect("the trace can be read");
    let blkparse = tracer.as_ref().and_then(BlkTracer::blkparse);
    drop(tracer);
    let out = folder.join("out");
    let mut runs = Store::open(&out).unwrap().runs;
    runs.sort_by_key(|row| row.spec.id);
    let records =
        runs.iter().flat_map(|row| of_records(&read_records(&out.join(&row.records.file)).unwrap()));
    let ours = changes(&records.collect::<Vec<_>>());
    assert!(ours.len() > 600 && ours.iter().any(|io| io.2 == Mode::Flush), "{}", ours.len());
    for (name, text) in [("events", Some(text)), ("blkparse", blkparse)] {
        let Some(text) = text else { continue };
        fs::write(folder.join(name), &text).unwrap();
        let theirs = parse_device(&text, Some(&events.device)).unwrap();
        assert_eq!(changes(&theirs), ours, "{name}");
        assert!(theirs.iter().all(|io| io.response.is_some()), "{name}: each was issued and completed");
        let args = ["predict", "out", "--trace", name, "--device", &events.device, "--json"];
        let facts: serde_json::Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
        let flushes = ours.iter().filter(|io| io.2 == Mode::Flush).count();
        assert_eq!(facts["character"]["flushes"], flushes);
        assert_eq!(facts["character"]["writes"], ours.len() - flushes);
        assert!(facts["measured_ns"].as_f64().unwrap() > 0.0, "{name}");
    }
}

#[test]
fn a_dry_run_issues_nothing_at_all() {
    let Some(device) = Loop::new(16 << 20) else { return };
    let Some(trace) = Trace::start(&device.device) else { return };
    let folder = tempfile::tempdir().unwrap();
    expect(folder.path(), 0, &["pattern", device.name(), "--base", "RW", "--dry-run"]);
    expect(folder.path(), 0, &["plan", device.name(), "--json"]);
    let writes: Vec<Request> = trace.requests().into_iter().filter(|r| r.0 != 'R').collect();
    assert_eq!(writes, [], "a dry run wrote");
}

#[test]
fn parallel_processes_keep_to_their_own_parts() {
    let Some(device) = Loop::new(64 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["pattern", device.name(), "--base", "SW", "--parallel", "4", "--io-count", "32", "--seed", "5"];
    let (csv, _) = expect(folder.path(), 0, &[&args[..], &["--dry-run"]].concat());
    let Some(trace) = Trace::start(&device.device) else { return };
    expect(folder.path(), 0, &[&args[..], &["--erase-device", device.name()]].concat());
    let part = |r: &Request| r.1 / (16 << 20);
    let seen = trace.requests();
    let seen = &seen[seen.len() - 128..];
    for stream in 0..4 {
        let of = |all: &[Request]| all.iter().filter(|r| part(r) == stream).copied().collect::<Vec<_>>();
        assert_eq!(of(seen), of(&planned(&csv)), "stream {stream}");
    }
}
