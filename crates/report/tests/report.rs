//! The report holds the view's numbers, keeps its size, loses no spike, and
//! lets no text of a device become part of the page.

#[path = "../../store/tests/common/mod.rs"]
mod common;
#[path = "common/made.rs"]
mod made;

use made::{HOSTILE, baseline, column, facts, keep, noisy, point, profiled, store};
use serde_json::{Value, json};
use uflip_measure::Baseline;
use uflip_measure::run::Belongs;
use uflip_report::report::{self, SIZE_LIMIT, TraceKind};
use uflip_report::{View, view};
use uflip_store::Store;

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
    let facts = facts(&html);
    let embedded: View = serde_json::from_value(facts["view"].clone()).unwrap();
    assert_eq!(embedded, view::build(&contents));
    assert_eq!(embedded.baselines.len(), 2);
    let table = &facts["table"];
    for (i, run) in contents.runs.iter().enumerate() {
        let (s, shown) = (&run.stats.running, &table["running"]);
        let figure = |name: &str| shown[name][i].clone();
        assert_eq!(table["id"][i], json!(run.spec.id));
        assert_eq!(
            json!([figure("n"), figure("min"), figure("max"), figure("mean"), figure("sd")]),
            json!([s.n, s.min_ns, s.max_ns, s.mean_ns, s.sd_ns])
        );
        let percentiles: Vec<_> = (0..6).map(|p| &shown["percentiles"][p][i]).collect();
        let all = [s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns];
        assert_eq!(json!(percentiles), json!(all));
    }
    let said = embedded.sections[0].sentences.last().unwrap();
    assert!(said.starts_with("RW depends most on IOSize: ") && said.ends_with("times)."), "{said}");
    let made = uflip_analysis::profile::build(&contents).unwrap();
    assert_eq!(
        facts["profile"]["baseline_ms"]["RW"],
        json!(made.baseline_ms.rw),
        "made where there is none yet"
    );
    assert_eq!(html, report::render(&contents).unwrap().html, "the same store gives the same file");
}

#[test]
fn hostile_names_stay_text() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path());
    let mut profile = profiled(dir.path());
    profile.target = HOSTILE.into();
    profile.hints[0].statement = HOSTILE.into();
    profile.soundness[0].statement = HOSTILE.into();
    uflip_analysis::profile::write(dir.path(), &profile).unwrap();
    std::fs::write(dir.path().join("job.json"), json!({"speeds": HOSTILE, "spikes": [HOSTILE]}).to_string())
        .unwrap();
    let html = report::render(&Store::open(dir.path()).unwrap()).unwrap().html;
    assert!(!html.contains("window.hacked") && !html.contains("<img") && !html.contains("onerror"));
    // The script, the facts and six traces: nothing else.
    assert_eq!(html.matches("<script").count(), 8);
    let facts = facts(&html);
    assert_eq!(facts["target"]["name"], json!(HOSTILE));
    assert_eq!(facts["profile"]["hints"][0]["statement"], json!(HOSTILE));
    assert_eq!(facts["others"]["job"]["spikes"], json!([HOSTILE]));
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
    let html = report::render(&contents).unwrap().html;
    let alert = facts(&html)["view"]["alerts"][0].clone();
    let alert = alert.as_str().unwrap();
    assert!(alert.contains("run-000001.parquet") && alert.contains("run 1 is left out"), "{alert}");
    assert_eq!(column(&html, "id"), [0, 2, 3, 4, 5].map(Value::from), "the others are there");
    // Damaged since it was looked at.
    std::fs::write(dir.path().join("ios/run-000002.parquet"), "PAR1").unwrap();
    let html = report::render(&contents).unwrap().html;
    let missing = column(&html, "missing");
    assert!(missing[0].is_null() && column(&html, "trace")[1].is_null());
    assert!(missing[1].as_str().unwrap().contains("run-000002.parquet"), "{}", missing[1]);
    std::fs::write(dir.path().join("profile.json"), "{").unwrap();
    let error = report::render(&contents).unwrap_err().to_string();
    assert!(error.contains("profile.json") && error.contains("uflip profile "), "{error}");
    std::fs::remove_file(dir.path().join("profile.json")).unwrap();
    std::fs::write(dir.path().join("job.json"), "[").unwrap();
    let error = report::render(&contents).unwrap_err().to_string();
    assert!(error.contains("job.json") && error.contains("make it again"), "{error}");
}

/// How many traces are of a kind.
fn of(report: &report::Report, kind: TraceKind) -> usize {
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
    assert!(
        of(&made, TraceKind::Whole) > 100 && of(&made, TraceKind::Aggregated) >= 1,
        "{:?}",
        made.embedded
    );
    let first = &column(&made.html, "trace")[0];
    assert_eq!((&first["kind"], &first["n"]), (&json!("aggregated"), &json!(3_000_000)));
    let slowest = &first["outliers"][0];
    assert_eq!((&slowest["io"], &slowest["response"]), (&json!(spike_at), &json!(spike)));
    assert!(first["cells"].as_u64().unwrap() >= 1000);
    assert_eq!(of(&made, TraceKind::Sketched), 0, "{:?}", made.embedded);
    let tight = report::render_within(&contents, &[], 450_000).unwrap();
    assert!(tight.html.len() <= 450_000, "{} bytes", tight.html.len());
    assert!(
        of(&tight, TraceKind::Coarse) > 20 && of(&tight, TraceKind::Sketched) > 100,
        "{:?}",
        tight.embedded
    );
    assert_eq!(tight.embedded.iter().map(|(_, n)| n).sum::<usize>(), 501);
    assert_eq!(column(&tight.html, "trace")[0]["outliers"][0]["response"], json!(spike));
}

#[test]
fn intervals_marks_and_sentences_come_from_the_profile() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = store(dir.path());
    for (id, (name, ms)) in [("SR", 1), ("RR", 1), ("SW", 1), ("RW", 20)].into_iter().enumerate() {
        keep(&mut made, &baseline(id as u32, name, 600, 0), move |i| ms * 1_000_000 + noisy(i) % 1000);
    }
    for id in 4..14 {
        let bytes = 1i64 << (id + 12);
        // Cheap up to 2 MiB: as a sequential write; beyond that as a random one.
        let ms = if bytes <= 2 << 20 { 1 } else { 20 };
        keep(&mut made, &point(id, "locality", "RW", bytes, 600), move |i| ms * 1_000_000 + noisy(i) % 1000);
    }
    drop(made);
    let profile = profiled(dir.path());
    assert_eq!(profile.locality.area_bytes, Some(2 << 20));
    let html = report::render(&Store::open(dir.path()).unwrap()).unwrap().html;
    let view: View = serde_json::from_value(facts(&html)["view"].clone()).unwrap();
    let locality = &view.sections[0];
    let marks: Vec<_> = locality.marks.iter().map(|m| (m.baseline.baseline(), m.label.as_str())).collect();
    assert_eq!(marks, [(Some(Baseline::Rw), "area 2M"), (Some(Baseline::Sw), "SW")]);
    assert_eq!(locality.marks[0].at, f64::from(2 << 20));
    let said = &locality.sentences[0];
    assert!(
        said.starts_with("Within 2M, random writes cost as much as sequential ones (95 %: = to =); "),
        "{said}"
    );
    assert!(said.ends_with("random writes anywhere cost 20 times as much."), "{said}");
    let point = &locality.series[0].points[0];
    let (mean, [low, high]) = (point.mean_ns.unwrap(), point.ci95_ns.unwrap());
    assert!(low <= mean && mean <= high && high - low < 2000.0, "{low} {mean} {high}");
}

#[test]
fn thousands_of_runs_fit_and_all_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = store(dir.path());
    for id in 0..40 {
        keep(&mut made, &point(id, "pause", "RW", i64::from(id), 300), move |i| {
            noisy(i + u64::from(id) * 300)
        });
    }
    drop(made);
    // What a run takes does not depend on whose records they are.
    let mut contents = Store::open(dir.path()).unwrap();
    let some = contents.runs.clone();
    for id in 40..5_000u32 {
        let mut row = some[id as usize % 40].clone();
        row.spec.id = id;
        row.spec.seed = u64::from(id) << 32;
        let Belongs::Point(point) = &mut row.spec.belongs else { panic!("a point") };
        point.value = i64::from(id % 600);
        row.stats.running.mean_ns = row.stats.running.mean_ns.map(|ns| ns + f64::from(id) * 1.37);
        row.stats.all.max_ns = row.stats.all.max_ns.map(|ns| ns + u64::from(id) * 77);
        contents.runs.push(row);
    }
    // A report of a quarter of the size: as of 20,000 runs in one of the whole.
    let made = report::render_within(&contents, &[], SIZE_LIMIT / 4).unwrap();
    assert!(made.html.len() <= SIZE_LIMIT / 4, "{} bytes", made.html.len());
    assert_eq!(column(&made.html, "id").len(), 5_000);
    let traced = made.embedded.iter().map(|(_, n)| n).sum::<usize>();
    assert!(traced > 1_000, "{:?}", made.embedded);
    // Where not even the bare table fits, the page says how many there are.
    let tiny = report::render_within(&contents, &[], 170_000).unwrap();
    assert!(tiny.html.len() <= 170_000, "{} bytes", tiny.html.len());
    let listed = column(&tiny.html, "id").len();
    assert!((100..5_000).contains(&listed), "{listed}");
    assert_eq!(facts(&tiny.html)["runs"], json!(5_000));
}
