//! The tenth micro-benchmark: off where nobody chooses, and where it is chosen
//! it shows what a device's queue is worth.

use crate::support::expect;
use serde_json::Value;

#[test]
fn it_is_measured_where_it_is_asked_for_only() {
    let folder = tempfile::tempdir().unwrap();
    let (usual, _) = expect(folder.path(), 0, &["plan", "sim:mtron"]);
    assert!(usual.contains("bursts") && !usual.contains("queue-depth"), "{usual}");
    let run = ["run", "sim:nvme-tlc", "-o", "o", "--method", "fixed", "--preset", "quick", "--state", "none"];
    let more = ["--only", "queue-depth", "--baselines", "RR", "--values", "queue-depth=1,8,64", "--json"];
    expect(folder.path(), 0, &[run.as_slice(), more.as_slice()].concat());
    let (out, _) = expect(folder.path(), 0, &["show", "o"]);
    assert!(out.contains("Queue depth: several requests of one sequence under way"), "{out}");
    assert!(out.contains("QueueDepth"), "{out}");
    let rows = std::fs::read_to_string(folder.path().join("o/runs.ndjson")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let rate = |depth: i64| {
        let row = rows.iter().find(|r| r["point"]["value"] == depth && r["baseline"] == "RR").unwrap();
        assert_eq!(row["point"]["micro_benchmark"], "queue-depth");
        row["outcome"]["end"]["ios"].as_f64().unwrap() / row["outcome"]["end"]["elapsed"].as_f64().unwrap()
    };
    // Until its link is the limit, a device with many dies does more with a queue.
    assert!(rate(8) > 2.0 * rate(1) && rate(64) >= rate(8), "{} {} {}", rate(1), rate(8), rate(64));
}
