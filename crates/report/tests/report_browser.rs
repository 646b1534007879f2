//! The report in a browser: opens from disk, asks for nothing, complains of
//! nothing, and can be explored down to single IOs by mouse and by keyboard.

#[path = "common/cdp.rs"]
mod cdp;
#[path = "../../store/tests/common/mod.rs"]
mod common;
#[path = "common/made.rs"]
mod made;

use cdp::Browser;
use made::{HOSTILE, baseline, keep, noisy, point, profiled, store};
use serde_json::json;
use std::path::{Path, PathBuf};
use uflip_report::report;
use uflip_store::Store;

/// A report with a long whole run, a longer aggregated one, curves and a
/// hostile target; each run has a spike at two thirds.
fn made_in(dir: &Path) -> PathBuf {
    let mut store = store(dir);
    let spiked = |n: u64| move |i: u64| if i == n * 2 / 3 { 900_000_000 } else { noisy(i) };
    keep(&mut store, &baseline(0, "RW", 150_000, 5_000), spiked(150_000));
    keep(&mut store, &baseline(1, "RR", 1_200_000, 0), spiked(1_200_000));
    for (id, value) in [(2, 512), (3, 4096), (4, 32_768)] {
        keep(&mut store, &point(id, "granularity", "SR", value, 300), |i| noisy(i) + value as u64);
    }
    keep(&mut store, &point(5, "mix", "SR/RW", -2, 300), noisy);
    drop(store);
    let path = dir.join("report.html");
    report::write(&Store::open(dir).unwrap(), &[], &path).unwrap();
    path
}

/// CPU time of the page's thread since `Performance.enable`, in seconds.
fn page_seconds(browser: &mut Browser) -> f64 {
    let metrics = browser.call("Performance.getMetrics", json!({}));
    let named = |m: &&serde_json::Value| m["name"] == json!("ThreadTime");
    let found = metrics["metrics"].as_array().and_then(|all| all.iter().find(named)?["value"].as_f64());
    found.unwrap_or_else(|| panic!("no ThreadTime in {metrics}"))
}

fn number(browser: &mut Browser, name: &str) -> f64 {
    let text = browser.eval(&format!("document.getElementById('trace').dataset.{name}"));
    text.as_str().unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Rows of the picture, from the top of the plot, that have ink of the data's
/// colour near the place across where the spike is.
const INK: &str = "(() => {
    const shown = document.getElementById('trace'), c = document.createElement('canvas');
    c.width = shown.width; c.height = shown.height;
    c.getContext('2d', {willReadFrequently: true}).drawImage(shown, 0, 0);
    const x = 60 + (c.width - 72) * 2 / 3;
    const d = c.getContext('2d').getImageData(x - 6, 22, 13, c.height / 3).data;
    let n = 0;
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 100 && Math.abs(d[i] - d[i + 2]) > 60) n++;
    return n; })()";

/// Chooses a baseline's run.
fn choose(browser: &mut Browser, run: u32) {
    browser.eval(&format!(
        "(() => {{ const g = document.getElementById('group'), s = document.querySelector('select.run'); \
         g.value = 'baseline'; g.dispatchEvent(new Event('change')); \
         s.value = '{run}'; s.dispatchEvent(new Event('change')); }})()"
    ));
}

fn spike_is_seen(browser: &mut Browser, run: u32) {
    choose(browser, run);
    browser.wait_for(&format!("document.getElementById('trace').dataset.run === '{run}'"));
    browser.key("0");
    let ink = browser.eval(INK).as_u64().unwrap();
    assert!((1..200).contains(&ink), "run {run}: {ink} pixels of the spike");
}

fn zoom_reaches_single_ios(browser: &mut Browser) {
    let find = "(() => { const c = document.getElementById('trace'); c.scrollIntoView({block: 'center', behavior: 'instant'}); \
                const b = c.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()";
    let place = browser.eval(find);
    let at = |i: usize| place[i].as_f64().unwrap();
    let (x, y) = (at(0) + 60.0 + (at(2) - 72.0) * 2.0 / 3.0, at(1) + at(3) / 2.0);
    browser.mouse("mousePressed", x, y, 0.0);
    browser.mouse("mouseReleased", x, y, 0.0);
    assert_eq!(number(browser, "visible"), 150_000.0);
    for _ in 0..20 {
        browser.mouse("mouseWheel", x, y, -400.0);
    }
    browser.wait_for("Number(document.getElementById('trace').dataset.visible) <= 3");
    assert!(number(browser, "visible") >= 1.0);
    browser.key("0");
    assert_eq!(number(browser, "visible"), 150_000.0);
    // Dragging over a tenth shows a tenth.
    let (from, to) = (at(0) + 60.0 + (at(2) - 72.0) * 0.2, at(0) + 60.0 + (at(2) - 72.0) * 0.3);
    browser.mouse("mousePressed", from, y, 0.0);
    browser.mouse("mouseMoved", (from + to) / 2.0, y, 0.0);
    browser.mouse("mouseMoved", to, y, 0.0);
    browser.mouse("mouseReleased", to, y, 0.0);
    let seen = number(browser, "visible");
    assert!((14_000.0..16_000.0).contains(&seen), "{seen} IOs after dragging");
    browser.key("0");
}

fn keyboard_does_the_same(browser: &mut Browser) {
    browser.eval("document.getElementById('trace').focus()");
    browser.key("m");
    let tip = browser.eval("document.querySelector('.tip').textContent");
    assert!(tip.as_str().unwrap().starts_with("IO 100,000: 900 ms\nwrite of 32 KiB at "), "{tip}");
    for _ in 0..18 {
        browser.key("+");
    }
    assert!(number(browser, "visible") <= 3.0);
    let before = number(browser, "from");
    browser.key("ArrowRight");
    assert!(number(browser, "from") > before);
    browser.key("-");
    assert!(number(browser, "visible") >= 3.0);
    browser.key("0");
    assert_eq!(number(browser, "visible"), 150_000.0);
    // From the top, Tab comes to the theme, a run's button, a point of a chart and the trace.
    browser.eval("(document.activeElement.blur(), scrollTo(0, 0), document.querySelector('.skip').focus())");
    let mut reached = Vec::new();
    for _ in 0..90 {
        browser.key("Tab");
        let what = browser.eval("document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.tagName");
        reached.push(what.as_str().unwrap_or_default().to_string());
    }
    for wanted in ["theme", "percentiles", "trace"] {
        assert!(reached.iter().any(|r| r == wanted), "no {wanted} in {reached:?}");
    }
    assert!(reached.iter().any(|r| r.starts_with("SR at 512B: mean ")), "{reached:?}");
}

/// In the run that is summed up, zooming into the spike ends at single IOs.
fn a_summed_up_spike_is_reached(browser: &mut Browser, n: u64) {
    browser.eval("document.getElementById('trace').focus()");
    browser.key("0");
    assert_eq!(number(browser, "visible"), n as f64);
    browser.key("m");
    let tip = "document.querySelector('.tip').textContent";
    let spike = format!("IO {}: 900 ms\n", grouped(n * 2 / 3));
    let text = browser.eval(tip);
    assert!(text.as_str().unwrap().starts_with(&spike), "{text}");
    for _ in 0..24 {
        browser.key("+");
    }
    assert!((1.0..=3.0).contains(&number(browser, "visible")), "{}", number(browser, "visible"));
    browser.key(".");
    let text = browser.eval(tip);
    assert!(text.as_str().unwrap().starts_with(&format!("IO {}: ", grouped(n * 2 / 3 + 1))), "{text}");
    browser.key("0");
}

/// A number as the page groups it: 1,234,567.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let grouped = |(i, c): (usize, char)| {
        let comma = i > 0 && (digits.len() - i).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([c])
    };
    digits.chars().enumerate().flat_map(grouped).collect()
}

fn themes_change(browser: &mut Browser) {
    let ground = "getComputedStyle(document.body).backgroundColor";
    let light = browser.eval(ground);
    browser.eval("document.getElementById('theme').click()");
    let dark = browser.eval(ground);
    assert_eq!((light, dark), (json!("rgb(246, 246, 243)"), json!("rgb(20, 23, 27)")));
    browser.eval("document.getElementById('theme').click()");
    let system = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    let before = browser.eval("document.documentElement.dataset.theme");
    browser.call("Emulation.setEmulatedMedia", system);
    assert_eq!(browser.eval("document.documentElement.dataset.theme"), before, "a choice stays");
}

#[test]
fn opens_from_disk_and_is_explored() {
    let Some(mut browser) = Browser::start(1280, 1000) else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no chromium: the report is not looked at\n",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = made_in(dir.path());
    browser.call("Performance.enable", json!({}));
    let took = browser.open(&path);
    println!("{} bytes opened in {took:?}", path.metadata().unwrap().len());
    // Wall clock says what else the machine does; the page's own time is the page's.
    let cpu = page_seconds(&mut browser);
    println!("{cpu} s of CPU time");
    assert!(cpu > 0.01, "{cpu} s: the page's time was not measured");
    assert!(cpu < 2.0, "{cpu} s of CPU time until everything is drawn");
    assert_eq!(browser.eval("document.querySelector('h1').textContent"), json!(HOSTILE));
    assert_eq!(browser.eval("typeof window.hacked"), json!("undefined"));
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), json!(0));
    assert_eq!(browser.eval("document.querySelectorAll('svg.figure .s.c-SR').length >= 2"), json!(true));
    spike_is_seen(&mut browser, 1);
    a_summed_up_spike_is_reached(&mut browser, 1_200_000);
    spike_is_seen(&mut browser, 0);
    zoom_reaches_single_ios(&mut browser);
    keyboard_does_the_same(&mut browser);
    themes_change(&mut browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.requests(), [format!("file://{}", path.display())]);
    // The page's width is the window's on a phone.
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), json!(390));
}

#[test]
fn the_policy_keeps_foreign_scripts_from_running() {
    let Some(mut browser) = Browser::start(800, 600) else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no chromium: the report is not looked at\n",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = made_in(dir.path());
    let html = std::fs::read_to_string(&path).unwrap();
    let forged = html.replacen(
        "<main",
        "<script>window.hacked = 1</script><img src=\"http://127.0.0.1:9/x\"><main",
        1,
    );
    assert_ne!(forged, html);
    std::fs::write(&path, forged).unwrap();
    browser.open(&path);
    assert_eq!(browser.eval("typeof window.hacked"), json!("undefined"));
    assert!(
        browser.complaints().iter().any(|c| c.contains("Content Security Policy")),
        "{:?}",
        browser.complaints()
    );
}

/// The cells of a row of the page's table, by the row's first cell.
fn cells(browser: &mut Browser, table: &str, first: &str) -> Vec<String> {
    let rows = browser.eval(&format!(
        "[...document.querySelectorAll('{table} tbody tr')].map(tr => [...tr.cells].map(td => td.textContent))"
    ));
    let rows: Vec<Vec<String>> = serde_json::from_value(rows).unwrap();
    let named = |row: &&Vec<String>| row[0].trim() == first;
    rows.iter().find(named).unwrap_or_else(|| panic!("no {first} in {rows:?}")).clone()
}

#[test]
fn the_terminal_and_the_page_show_the_same_numbers() {
    let Some(mut browser) = Browser::start(1280, 1000) else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no chromium: the report is not looked at\n",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut store = store(dir.path());
    for (id, (name, factor)) in [("SR", 1), ("RR", 2), ("SW", 3), ("RW", 40)].into_iter().enumerate() {
        keep(&mut store, &baseline(id as u32, name, 900, 0), move |i| noisy(i) * factor);
    }
    for (id, bytes) in [(4, 512), (5, 8192), (6, 32_768)] {
        keep(&mut store, &point(id, "granularity", "RW", bytes, 900), move |i| {
            noisy(i) * 3 + bytes as u64 * 50
        });
    }
    drop(store);
    profiled(dir.path());
    let path = dir.path().join("report.html");
    let contents = Store::open(dir.path()).unwrap();
    report::write(&contents, &[], &path).unwrap();
    browser.open(&path);
    let text = uflip_report::terminal::render(&uflip_report::view::build(&contents), 100, false);
    // Baselines: mean, sd, p50, p99, p99.9, max stand in these columns of each.
    for name in ["SR", "RR", "SW", "RW"] {
        // Above it stands what each costs by the profile.
        let runs = text.lines().skip_while(|l| !l.starts_with("The baselines' runs"));
        let line = runs.into_iter().find(|l| l.starts_with(&format!("  {name} "))).unwrap();
        let ours: Vec<&str> = line.split_whitespace().collect();
        let page = cells(&mut browser, "table.baselines", name);
        let both = |columns: [usize; 6]| columns.map(|c| page[c].replace(',', ""));
        assert_eq!(
            ours[2..=8].to_vec().concat().len(),
            line.replace(' ', "").len() - name.len() - ours[1].len()
        );
        assert_eq!(
            [ours[2], ours[3], ours[5], ours[6], ours[7], ours[8]].map(str::to_string),
            both([2, 3, 5, 8, 9, 11]),
            "{line} against {page:?}"
        );
    }
    // The curve's means, in the unit of the table.
    for label in ["512B", "8K", "32K"] {
        let line = text.lines().rfind(|l| l.split_whitespace().next() == Some(label)).unwrap();
        let ours = line.split_whitespace().nth(1).unwrap();
        let page = cells(&mut browser, "#mb-granularity table.points", label);
        assert!(page[1].replace(',', "").starts_with(&format!("{ours} ")), "{line} against {page:?}");
    }
    // The sentences, word for word.
    let said = browser.eval("[...document.querySelectorAll('#mb-granularity .say')].map(p => p.textContent)");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in serde_json::from_value::<Vec<String>>(said).unwrap() {
        assert!(words(&text).contains(&words(&sentence)), "{sentence} is not in {text}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Text of everything that a selector finds.
fn texts(browser: &mut Browser, selector: &str) -> Vec<String> {
    let found =
        browser.eval(&format!("[...document.querySelectorAll('{selector}')].map(e => e.textContent)"));
    serde_json::from_value(found).unwrap()
}

/// Calibration runs of a pause test: reads, writes, reads that are slow at first.
fn pause_test(dir: &Path) {
    let mut made = store(dir);
    for (id, (baseline, ios)) in [("SR", 300), ("RW", 200), ("SR", 500)].into_iter().enumerate() {
        let mut run = common::spec(id as u32, ios);
        let role = uflip_measure::auto::CalibrationRole::PauseTest;
        let step = uflip_measure::run::CalibrationStep { role, number: id as u32 };
        run.belongs = uflip_measure::run::Belongs::Calibration(step);
        run.work = uflip_measure::run::Work::Pattern(baseline.parse().unwrap());
        keep(&mut made, &run, move |i| noisy(i) * if id == 2 && i < 120 { 20 } else { 1 });
    }
    let test = json!({"batch": "RW", "runs_before": [0], "run_batch": 1, "runs_after": [2],
        "found": {"affected_ios": 120, "affected_ns": 60_000_000, "over": true, "before_mean_ns": 9e4,
            "affected_mean_ns": 1.8e6, "margin": 9.0, "p_value": 0.01}});
    let whole = include_str!("../../uflip/tests/fixtures/format1/calibrate/calibration.json");
    let mut found: serde_json::Value = serde_json::from_str(whole).unwrap();
    found["pause"]["tests"] = json!([test]);
    found["baselines"] = json!({});
    found.as_object_mut().unwrap().remove("check");
    std::fs::write(dir.join("calibration.json"), found.to_string()).unwrap();
    let speed = |baseline: &str, bytes: u64, mb: f64| {
        json!({"line": "std", "round": null, "baseline": baseline, "block_bytes": bytes, "shift_bytes": 0, "mb_per_s": mb,
            "min_mb_per_s": mb, "max_mb_per_s": mb, "runs": [0]})
    };
    let speeds: Vec<_> = [512, 4096, 32_768].map(|b| speed("RW", b, b as f64 / 1000.0)).into();
    let recovery = json!({"run": 1, "block_bytes": 32_768, "burst": "rw(bs=2K)", "window_s": 4.0,
        "windows_mb_per_s": [1.0, 2.0, 3.0], "median_mb_per_s": 2.0, "steady_mb_per_s": 4.0,
        "median_over_steady": 0.5, "recovery_s": 4.0, "recovery_to_steady_s": null});
    let after_own = |run: u32, bytes: u64, size: &str| {
        json!({"run": run, "block_bytes": bytes, "burst": format!("rw(bs={size},time=5s)"), "window_s": 4.0,
            "windows_mb_per_s": [1.0], "median_mb_per_s": 2.0, "steady_mb_per_s": 4.0, "median_over_steady": 0.5,
            "recovery_s": 0.0, "recovery_to_steady_s": null})
    };
    let aged = |shift: u64| {
        json!({"baseline": "RW", "block_bytes": 16_384, "shift_bytes": shift, "passes": [50, 100],
            "last_over_first": 0.5, "percent_per_1000_passes": null, "points": [[50, 4.0], [100, 2.0]]})
    };
    let job = json!({"speeds": speeds, "table31_mb_per_s": [1.5, null, 2.5, 0.03, 20.0, 21.0, 9.0, 8.0], "misaligned": [],
        "recovery": [recovery, after_own(0, 512, "512B"), after_own(2, 4096, "4K")], "spikes": [{"run": 1, "line": HOSTILE, "count": 3, "first_io": 3000, "period_ios": 2000,
        "height_ns": 5_000_000, "between_ns": null}], "drift": [aged(0), aged(2048)]});
    std::fs::write(dir.join("job.json"), job.to_string()).unwrap();
}

#[test]
fn pause_tests_and_jobs_are_shown() {
    let Some(mut browser) = Browser::start(1280, 1000) else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no chromium: the report is not looked at\n",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    pause_test(dir.path());
    let path = dir.path().join("report.html");
    report::write(&Store::open(dir.path()).unwrap(), &[], &path).unwrap();
    browser.open(&path);
    let group = "pause tests and long baselines";
    browser.eval(&format!(
        "(() => {{ const g = document.getElementById('group'); g.value = '{group}'; g.dispatchEvent(new Event('change')); }})()"
    ));
    browser.wait_for("document.getElementById('trace').dataset.visible === '1000'");
    assert_eq!(texts(&mut browser, "select.run option"), ["Pause test with RW"]);
    browser.eval("document.getElementById('trace').focus()");
    for _ in 0..3 {
        browser.key("End");
    }
    browser.key("m");
    let tip = browser.eval("document.querySelector('.tip').textContent");
    // The slowest is one of the reads that the writes have slowed.
    assert!(tip.as_str().unwrap().ends_with("SR after"), "{tip}");
    let rows = texts(&mut browser, "#job table tr");
    assert!(rows.iter().any(|r| r == "512 B1.50–2.500.030"), "{rows:?}");
    assert!(rows.iter().any(|r| r == "2 MB20.021.09.008.00"), "{rows:?}");
    assert!(rows.iter().any(|r| r.starts_with(HOSTILE) && r.contains("3,0002,000 IOs5.00 ms")), "{rows:?}");
    let titles = texts(&mut browser, "#job h3");
    // Bursts of the experiment's own size are one curve, not one for each size.
    let curves = texts(&mut browser, "#job svg.figure text");
    let after = |burst: &str| curves.iter().filter(|c| c.contains(burst)).count();
    assert_eq!((after("bs=same,time=5s"), after("bs=4K")), (2, 0), "{curves:?}");
    assert!(rows.iter().any(|r| r == "16 KiB shifted by 2 KiB× 0.500–"), "{rows:?}");
    for wanted in ["figure 3.1", "figures C.3, C.4", "figures 3.3, C.1, C.2", "figure 3.2", "RW; figure 3.4b"]
    {
        assert!(titles.iter().any(|t| t.contains(wanted)), "no {wanted} in {titles:?}");
    }
    assert_eq!(browser.eval("typeof window.hacked"), json!("undefined"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Ten million IOs with one spike.
#[test]
fn one_spike_in_ten_million_ios_is_seen_and_reached() {
    let Some(mut browser) = Browser::start(1280, 1000) else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no chromium: the report is not looked at\n",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let n = 9_999_999;
    let mut store = store(dir.path());
    keep(&mut store, &baseline(0, "RW", n, 0), move |i| if i == n * 2 / 3 { 900_000_000 } else { noisy(i) });
    drop(store);
    let path = dir.path().join("report.html");
    let start = std::time::Instant::now();
    report::write(&Store::open(dir.path()).unwrap(), &[], &path).unwrap();
    let (made, opened) = (start.elapsed(), browser.open(&path));
    println!("made in {made:?}, {} bytes, opened in {opened:?}", path.metadata().unwrap().len());
    spike_is_seen(&mut browser, 0);
    a_summed_up_spike_is_reached(&mut browser, n);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
