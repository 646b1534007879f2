//! The tenth micro-benchmark: off where nobody chooses, and where it is chosen
//! it shows what a device's queue is worth.

use crate::support::expect;
use serde_json::Value;

const DEPTHS: [u64; 4] = [1, 8, 64, 128];

#[test]
fn it_is_measured_where_it_is_asked_for_only() {
    let folder = tempfile::tempdir().unwrap();
    let (usual, _) = expect(folder.path(), 0, &["plan", "sim:mtron"]);
    assert!(usual.contains("bursts") && !usual.contains("queue-depth"), "{usual}");
    let run = ["run", "sim:nvme-tlc", "-o", "o", "--method", "fixed", "--preset", "quick", "--state", "none"];
    let more = ["--only", "queue-depth", "--baselines", "RR,SW", "--values", "queue-depth=1,8,64,128"];
    expect(folder.path(), 0, &[run.as_slice(), more.as_slice(), &["--json"]].concat());
    let (out, _) = expect(folder.path(), 0, &["show", "o"]);
    assert!(out.contains("Queue depth: several requests of one sequence under way"), "{out}");
    assert!(
        out.contains("QueueDepth") && out.contains("RR in IOs/s: ") && out.contains("SW in IOs/s: "),
        "{out}"
    );
    let rows = std::fs::read_to_string(folder.path().join("o/runs.ndjson")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |baseline: &str, depth: u64| {
        let row = rows.iter().find(|r| r["point"]["value"] == depth && r["baseline"] == baseline).unwrap();
        assert_eq!(row["point"]["micro_benchmark"], "queue-depth");
        row
    };
    let rate = |depth: u64| {
        let end = &of("RR", depth)["outcome"]["end"];
        end["ios"].as_f64().unwrap() / end["elapsed"].as_f64().unwrap()
    };
    // Until its link is the limit, a device with many dies does more with a queue.
    assert!(rate(8) > 2.0 * rate(1) && rate(64) >= rate(8), "{} {} {}", rate(1), rate(8), rate(64));
    let (profile, _) = expect(folder.path(), 0, &["profile", "o", "--json"]);
    let profile: Value = serde_json::from_str(&profile).unwrap();
    let found = &profile["queue_depth"];
    // Its link takes 3,400 MB/s of reads and 3,200 of writes.
    for (baseline, link) in [("RR", 3.4e9), ("SW", 3.2e9)] {
        let points = found["curves"][baseline].as_array().unwrap();
        for (point, depth) in points.iter().zip(DEPTHS) {
            assert_eq!(point["depth"], depth);
            let bytes = point["ios_per_s"].as_f64().unwrap() * 32768.0;
            assert!(bytes <= 1.01 * link, "{baseline} at {depth}: {bytes} bytes a second");
            // By Little's law or by the clock.
            let end = &of(baseline, depth)["outcome"]["end"];
            let by_clock = end["ios"].as_f64().unwrap() * 1e9 / end["elapsed"].as_f64().unwrap();
            let ratio = bytes / 32768.0 / by_clock;
            assert!((0.9..1.15).contains(&ratio), "{baseline} at {depth}: {ratio}");
        }
    }
    assert!(found["gain"]["RR"].as_f64().unwrap() > 2.0, "{found}");
}

#[test]
fn a_pattern_that_says_its_depth_has_no_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![0; 1 << 20]).unwrap();
    let ring = ["--engine", "io_uring", "--queue-depth", "4", "--buffering", "buffered"];
    let deep = ["pattern", "./file", "--pattern", "8 deep RR(io_size=4K)", "--io-count", "4"];
    let (_, err) = expect(folder.path(), 2, &[&deep[..], &ring[..]].concat());
    assert!(err.contains("(8)") && err.contains("leave --queue-depth away"), "{err}");
    let run = ["run", "--scratch", "new", "--only", "queue-depth", "-o", "o", "--scratch-size", "64M"];
    let (_, err) = expect(folder.path(), 2, &[&run[..], &ring[..]].concat());
    assert!(err.contains("leave --queue-depth away") && !folder.path().join("o").exists(), "{err}");
    let (out, _) = expect(folder.path(), 0, &[&deep[..], &["--buffering", "buffered"]].concat());
    assert!(out.contains("engine sync, 8 threads"), "{out}");
}

#[test]
fn help_tells_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = expect(folder.path(), 0, &["run", "--help"]);
    assert!(run.contains("queue-depth, which is measured where it is named only"), "{run}");
    let (pattern, _) = expect(folder.path(), 0, &["pattern", "--help"]);
    let one_line = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("'32 deep RR', instead of --base"), "{pattern}");
}
