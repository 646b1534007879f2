//! The report in a browser: opens from disk, asks for nothing, complains of
//! nothing, and can be explored down to single IOs by mouse and by keyboard.

#[path = "common/cdp.rs"]
mod cdp;
#[path = "common/mod.rs"]
mod common;
#[path = "common/made.rs"]
mod made;

use cdp::Browser;
use made::{HOSTILE, baseline, keep, noisy, point, store};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uflip_results::{Store, report};

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
    report::write(&Store::open(dir).unwrap(), &path).unwrap();
    path
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

fn spike_is_seen(browser: &mut Browser, run: u32) {
    browser.eval(&format!("(() => {{ const s = document.querySelector('select.run'); s.value = '{run}'; s.dispatchEvent(new Event('change')); }})()"));
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
    for _ in 0..60 {
        browser.key("Tab");
        let what = browser.eval("document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.tagName");
        reached.push(what.as_str().unwrap_or_default().to_string());
    }
    for wanted in ["theme", "percentiles", "trace"] {
        assert!(reached.iter().any(|r| r == wanted), "no {wanted} in {reached:?}");
    }
    assert!(reached.iter().any(|r| r.starts_with("SR at 512: mean ")), "{reached:?}");
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
        eprintln!("skipped: no chromium to open the report in");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = made_in(dir.path());
    let took = browser.open(&path);
    println!("{} bytes opened in {took:?}", path.metadata().unwrap().len());
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(browser.eval("document.querySelector('h1').textContent"), json!(HOSTILE));
    assert_eq!(browser.eval("typeof window.hacked"), json!("undefined"));
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), json!(0));
    assert_eq!(browser.eval("document.querySelectorAll('svg.chart .curve').length >= 2"), json!(true));
    spike_is_seen(&mut browser, 1);
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
        eprintln!("skipped: no chromium to open the report in");
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
