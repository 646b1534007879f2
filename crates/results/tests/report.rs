//! The report holds the view's numbers, keeps its size, loses no spike, and
//! lets no text of a device become part of the page.

#[path = "common/mod.rs"]
mod common;
#[path = "common/made.rs"]
mod made;

use made::{HOSTILE, baseline, element, keep, noisy, point, rows, store};
use serde_json::{Value, json};
use uflip_results::report::{self, Kind, SIZE_LIMIT};
use uflip_results::{Store, View, view};

fn small(dir: &std::path::Path) {
    let mut store = store(dir);
    keep(&mut store, &baseline(0, "SR", 500, 0), noisy);
    keep(&mut store, &baseline(1, "RW", 500, 100), |i| noisy(i) * if i < 100 { 1 } else { 9 });
    for (id, value) in [(2, 512), (3, 4096), (4, 32_768)] {
        keep(&mut store, &point(id, "granularity", "RW", value, 100), |i| noisy(i) + value as u64 * 100);
    }
    keep(&mut store, &point(5, "mix", "SR/RW", -2, 100), noisy);
}

#[test]
fn the_numbers_are_the_views() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path());
    let contents = Store::open(dir.path()).unwrap();
    let html = report::render(&contents).unwrap().html;
    let facts: Value = serde_json::from_str(element(&html, "facts")).unwrap();
    let embedded: View = serde_json::from_value(facts["view"].clone()).unwrap();
    assert_eq!(embedded, view::build(&contents));
    assert_eq!(embedded.baselines.len(), 2);
    for (row, run) in rows(&html).iter().zip(&contents.runs) {
        let s = &run.stats.running;
        assert_eq!(row["id"], json!(run.spec.id));
        assert_eq!(
            row["running"],
            json!([
                s.n,
                [s.min_ns, s.max_ns],
                [s.mean_ns, s.sd_ns],
                [s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns]
            ])
        );
    }
    let said = facts["sentences"][0].as_str().unwrap();
    assert!(said.starts_with("RW depends most on IOSize: ") && said.ends_with("times)."), "{said}");
    assert_eq!(facts["profile"], Value::Null);
    assert_eq!(html, report::render(&contents).unwrap().html, "the same store gives the same file");
}

#[test]
fn hostile_names_stay_text() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path());
    std::fs::write(
        dir.path().join("profile.json"),
        json!({"hints": [{"verdict": HOSTILE, "statement": HOSTILE}]}).to_string(),
    )
    .unwrap();
    let html = report::render(&Store::open(dir.path()).unwrap()).unwrap().html;
    assert!(!html.contains("window.hacked=1</script>") && !html.contains("<img"));
    // The script, the facts, the runs and six traces: nothing else.
    assert_eq!(html.matches("<script").count(), 9);
    let facts: Value = serde_json::from_str(element(&html, "facts")).unwrap();
    assert_eq!(facts["target"]["name"], json!(HOSTILE));
    assert_eq!(facts["profile"]["hints"][0]["statement"], json!(HOSTILE));
    assert_eq!(facts["notes"], json!([HOSTILE, HOSTILE]));
    let policy =
        html.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{policy}");
}

#[test]
fn a_damaged_profile_or_record_file_is_told() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path());
    std::fs::write(dir.path().join("ios/run-000001.parquet"), "PAR1").unwrap();
    let contents = Store::open(dir.path()).unwrap();
    let rows = rows(&report::render(&contents).unwrap().html);
    assert!(rows[0]["missing"].is_null() && rows[1]["trace"].is_null());
    assert!(rows[1]["missing"].as_str().unwrap().contains("run-000001.parquet"), "{}", rows[1]["missing"]);
    std::fs::write(dir.path().join("profile.json"), "{").unwrap();
    let error = report::render(&contents).unwrap_err().to_string();
    assert!(error.contains("profile.json") && error.contains("make the profile again"), "{error}");
    let error = report::write(&contents, &dir.path().join("no/such.html")).unwrap_err();
    assert!(error.to_string().contains("profile.json"), "{error}");
}

/// How many traces are of a kind.
fn of(report: &report::Report, kind: Kind) -> usize {
    report.embedded.iter().find(|(k, _)| *k == kind).unwrap().1
}

#[test]
fn three_million_ios_and_many_runs_fit_and_the_spike_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store(dir.path());
    let (spike_at, spike) = (1_234_567, 987_654_321);
    keep(&mut store, &baseline(0, "RR", 3_000_000, 1000), |i| if i == spike_at { spike } else { noisy(i) });
    keep(&mut store, &baseline(1, "RW", 40_000, 0), noisy);
    for id in 2..500 {
        keep(&mut store, &point(id, "pause", "RW", i64::from(id), 1024), |i| noisy(i + u64::from(id) * 5000));
    }
    keep(&mut store, &point(500, "pause", "RW", 7, 20_000), |i| noisy(i) + i);
    let contents = Store::open(dir.path()).unwrap();
    let made = report::render(&contents).unwrap();
    assert!(made.html.len() <= SIZE_LIMIT, "{} bytes", made.html.len());
    assert!(of(&made, Kind::Whole) > 100 && of(&made, Kind::Aggregated) >= 1, "{:?}", made.embedded);
    let first = &rows(&made.html)[0]["trace"];
    assert_eq!((&first["kind"], &first["n"]), (&json!("aggregated"), &json!(3_000_000)));
    let slowest = &first["outliers"][0];
    assert_eq!((&slowest["io"], &slowest["response"]), (&json!(spike_at), &json!(spike)));
    assert!(first["cells"].as_u64().unwrap() >= 1000);
    assert_eq!(of(&made, Kind::Sketched), 0, "{:?}", made.embedded);
    let tight = report::render_within(&contents, 400_000).unwrap();
    assert!(tight.html.len() <= 400_000, "{} bytes", tight.html.len());
    assert!(of(&tight, Kind::Coarse) > 20 && of(&tight, Kind::Sketched) > 100, "{:?}", tight.embedded);
    assert_eq!(tight.embedded.iter().map(|(_, n)| n).sum::<usize>(), 501);
    assert_eq!(rows(&tight.html)[0]["trace"]["outliers"][0]["response"], json!(spike));
}
