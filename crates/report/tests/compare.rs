//! Comparisons and figures of made stores with known answers.

#[path = "common/cdp.rs"]
mod cdp;
#[path = "../../store/tests/common/mod.rs"]
mod common;
#[path = "common/made.rs"]
mod made;

use made::{HOSTILE, keep, noisy, point, store};
use std::path::Path;
use uflip_analysis::compare::rule::Rule;
use uflip_analysis::compare::{ChangeVerdict, Comparison, Subject, compare};
use uflip_measure::run::Belongs;
use uflip_measure::{Baseline, Curve, MicroBenchmark};
use uflip_report::compare::{render_page, render_text};
use uflip_report::terminal::Style;
use uflip_report::{figures, view};
use uflip_store::{Store, StoreContents};

const STYLE: Style = Style { width: 80, color: false, ascii: false };

/// A store of a device: writes cost `writes` times what they usually do, and
/// `seed` makes the noise.
fn device(dir: &Path, writes: f64, seed: u64) -> StoreContents {
    let mut store = store(dir);
    let mut id = 0;
    let mut run = |spec: &dyn Fn(u32) -> uflip_measure::run::RunSpec, cost: f64| {
        let shift = seed * 1_000_003 + u64::from(id) * 7919;
        keep(&mut store, &spec(id), |i| (noisy(i + shift) as f64 * cost) as u64);
        id += 1;
    };
    for repeat in 0..3 {
        for (name, cost) in [("SR", 1.0), ("RR", 1.5), ("SW", writes), ("RW", 20.0 * writes)] {
            run(
                &|id| {
                    let baseline = name.parse().expect("a baseline");
                    let belongs = Belongs::Baseline { baseline, repeat };
                    uflip_measure::run::RunSpec { belongs, ..made::baseline(id, name, 1500, 0) }
                },
                cost,
            );
        }
    }
    for value in [1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20] {
        for (name, cost) in [("SR", 1.0), ("RW", if value > 4 << 20 { 20.0 * writes } else { 1.2 * writes })]
        {
            run(&|id| point(id, "locality", name, value, 600), cost);
        }
    }
    drop(store);
    Store::open(dir).expect("a store")
}

fn pair(writes: f64, rules: &[&str]) -> Comparison {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str, writes, seed| {
        Subject::new(name, device(&folder.path().join(name), writes, seed)).expect("a subject")
    };
    let rules: Vec<Rule> = rules.iter().map(|r| r.parse().expect("a rule")).collect();
    compare(&[of("before", 1.0, 1), of("after", writes, 2)], &rules)
}

fn verdict(made: &Comparison, name: &str) -> (Option<f64>, ChangeVerdict) {
    let figure = made.figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no figure {name}"));
    let change = figure.values[1].change.as_ref().expect("a change");
    (change.ratio, change.verdict)
}

#[test]
fn the_same_device_twice_is_noise() {
    let made = pair(1.0, &["RW > 1.2x"]);
    let [differ, noise, ..] = made.tally();
    assert_eq!(differ, 0, "{}", render_text(&made, STYLE));
    assert!(noise > 20, "{noise} figures were compared");
    assert!(!made.rules[0].failed);
}

#[test]
fn a_planted_change_of_half_is_marked_and_nothing_else() {
    let made = pair(1.5, &["RW > 1.2x", "RW > 1.7x", "SR > 1.2x", "pause_rw_ms > 1.2x"]);
    for name in ["SW", "RW"] {
        let (ratio, verdict) = verdict(&made, name);
        assert_eq!(verdict, ChangeVerdict::Differs, "{name}");
        assert!((ratio.expect("a ratio") - 1.5).abs() < 0.05, "{name}: {ratio:?}");
    }
    for name in ["SR", "RR", "SR.p50", "RR.p99", "locality.factor"] {
        assert_eq!(verdict(&made, name).1, ChangeVerdict::Noise, "{name}");
    }
    let marked = |baseline: Baseline| {
        let curve = made.curves.iter().find(|c| c.id.curve == Curve::One(baseline)).expect("a curve");
        let changes = curve.points.iter().map(|p| p.values[1].change.as_ref().expect("a change").verdict);
        changes.filter(|v| *v == ChangeVerdict::Differs).count()
    };
    assert_eq!((marked(Baseline::Rw), marked(Baseline::Sr)), (5, 0));
    let failed: Vec<bool> = made.rules.iter().map(|r| r.failed).collect();
    assert_eq!(failed, [true, false, false, true], "what was not measured breaks its rule");
    assert!(made.rules[3].statements[0].contains("not measured"), "{:?}", made.rules[3]);
}

#[test]
fn the_text_fits_eighty_columns_and_says_what_differs() {
    let made = pair(1.5, &["RW > 1.2x"]);
    let text = render_text(&made, STYLE);
    for line in text.lines().filter(|l| !l.contains("script")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for part in
        ["* slower", "not decided", "FAILED RW > 1.2x", "locality RW, by", "RW: B is 1.", "the reference"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'));
    let colours = render_text(&made, Style { color: true, ..STYLE });
    let plain: String = colours
        .split('\x1b')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('m').map_or("", |p| p.1) })
        .collect();
    assert_eq!(plain, text, "colours change nothing else");
}

#[test]
fn the_page_is_inert_and_has_the_numbers_of_the_json() {
    let made = pair(1.5, &["RW > 1.2x"]);
    let page = render_page(&made);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("style=\""));
    assert!(!page.contains(HOSTILE) && page.contains("&lt;/script&gt;"));
    assert!(
        page.contains("default-src 'none'; style-src 'sha256-") && !page.contains("http-equiv=\"refresh")
    );
    assert!(
        page.contains("prefers-color-scheme: dark") && page.contains("--bg: #14171b"),
        "the report's dark colours"
    );
    let json = serde_json::to_value(&made).expect("JSON");
    assert_eq!(json["format"], 1);
    let rw = json["figures"].as_array().expect("figures").iter().find(|f| f["name"] == "RW").expect("RW");
    let ratio = rw["values"][1]["change"]["ratio"].as_f64().expect("a ratio");
    assert!(page.contains(&format!(">{ratio:.3}</td>")), "{ratio}");
    assert_eq!(page.matches("<svg").count(), 2, "a chart for each curve");
    assert!(page.len() < 500_000, "{} bytes", page.len());
}

#[test]
fn figures_have_the_numbers_of_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let contents = device(&folder.path().join("a"), 1.0, 1);
    let view = view::build(&contents);
    let subject = Subject::new("a", contents).expect("a subject");
    let row = uflip_analysis::profile::table3_row(&subject.profile);
    let out = folder.path().join("figures");
    let mut subjects = [subject];
    for within in ["a/ios", "a/ios/more", "a/set-aside"] {
        let refused = figures::write(&subjects, &folder.path().join(within)).expect_err("records are there");
        assert!(refused.to_string().contains("keep records"), "{refused}");
        assert_eq!(folder.path().join(within).exists(), within == "a/ios", "nothing was made");
    }
    subjects[0].name = "\u{1b}[31ma\u{7}\u{202e}".into();
    let written = figures::write(&subjects, &out).expect("figures");
    let text = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let csv = text("locality.csv");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("baseline,parameter,value,label,mean_ns,min_ns,max_ns,runs"));
    let section =
        view.sections.iter().find(|s| s.micro() == Some(MicroBenchmark::Locality)).expect("locality");
    let points = section.series.iter().flat_map(|s| s.points.iter().map(move |p| (&s.baseline, p)));
    let mut count = 0;
    for ((name, point), line) in points.zip(lines) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().ok();
        assert_eq!((cells[0], cells[2].parse().ok()), (name.to_string().as_str(), Some(point.value)));
        assert_eq!(
            [number(4), number(5), number(6)],
            [point.mean_ns, point.min_ns, point.max_ns],
            "to the last bit"
        );
        count += 1;
    }
    assert_eq!(count, 10);
    let table: Vec<String> =
        text("table3.csv").lines().nth(1).expect("a row").split(',').map(str::to_string).collect();
    assert_eq!(table[4].parse().ok(), row.rw_ms);
    for name in ["table3.csv", "table3.md", "table3.tex"] {
        let shown = text(name);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{name}: {shown:?}");
    }
    assert_eq!(table[5], "", "no pause was measured: an empty field, not 0");
    let trace = text("figure3.csv");
    let records =
        uflip_store::read_records(&folder.path().join("a/ios/run-000003.parquet")).expect("records");
    assert_eq!(trace.lines().count(), 1501);
    let times: Vec<u64> = trace
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(2).and_then(|c| c.parse().ok()).expect("a time"))
        .collect();
    assert_eq!(times, records.iter().map(|r| r.response().0).collect::<Vec<_>>());
    assert!(written.left_out.iter().any(|w| w.starts_with("figure5")), "{:?}", written.left_out);
    assert!(written.left_out.iter().any(|w| w.starts_with("figure6")), "{:?}", written.left_out);
    golden(&text("locality.svg"), "locality.svg");
    for name in ["locality.svg", "locality.png", "figure4.svg", "figure8.csv", "table3.tex", "table3.md"] {
        assert!(written.files.iter().any(|f| f.ends_with(name)), "{name}");
    }
}

/// A drawing is as it was when somebody looked at it.
fn golden(svg: &str, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UFLIP_GOLDEN").is_some() {
        std::fs::write(&path, svg).expect("the golden file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("a golden file; made with UFLIP_GOLDEN=1");
    assert!(svg == expected, "{name} changed; look at it, then make it with UFLIP_GOLDEN=1:\n{svg}");
}

/// What a browser makes of it: the style is the one its policy allows, nothing
/// is asked for, nothing complained of; wide tables scroll inside themselves.
#[test]
fn a_browser_shows_the_page_in_both_themes_and_asks_for_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("compare.html");
    std::fs::write(&path, render_page(&pair(1.5, &["RW > 1.2x"]))).expect("written");
    for (width, height) in [(1200, 900), (390, 800)] {
        let Some(mut browser) = cdp::Browser::start(width, height) else {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: no chromium: the comparison is not looked at\n",
            );
            return;
        };
        for (theme, background) in [("light", "rgb(246, 246, 243)"), ("dark", "rgb(20, 23, 27)")] {
            let feature = serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
            browser.call("Emulation.setEmulatedMedia", feature);
            browser.call("Page.navigate", serde_json::json!({"url": format!("file://{}", path.display())}));
            browser.wait_for("document.title.startsWith('uflip') && document.readyState === 'complete'");
            let shown = browser.eval("getComputedStyle(document.body).backgroundColor");
            assert_eq!(shown, background, "{theme} at {width}");
        }
        assert_eq!(browser.eval("document.querySelectorAll('svg.figure').length"), 2);
        assert_eq!(browser.eval("window.hacked === undefined"), true);
        let sideways = browser.eval("document.documentElement.scrollWidth - window.innerWidth");
        assert!(sideways.as_i64().is_some_and(|px| px <= 0), "{sideways} px too wide at {width}");
        assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
        assert!(browser.requests().iter().all(|r| r.starts_with("file:")), "{:?}", browser.requests());
    }
}
