//! What a browser says of the same things: ticks of the page's script, and a figure's picture.

#[path = "../../../tests/common/cdp.rs"]
mod cdp;

use super::super::layout::{COLUMN, layout};
use super::super::scale::{log_ticks, thinned, tick, ticks_within};
use super::super::{png, svg};
use base64::Engine;
use resvg::tiny_skia::Pixmap;
use serde_json::{Value, json};

/// Ranges, each with how many ticks there is room for.
const RANGES: [(f64, f64, f64); 9] = [
    (0.3e6, 4e6, 6.0),
    (1e6, 1e6, 5.0),
    (1.0, 1e12, 9.0),
    (80_123.0, 912_345_678.9, 7.3),
    (999.4, 999_499.0, 3.0),
    (0.02, 0.7, 11.0),
    (5e3, 5e4, 2.0),
    (1e9, 9.99e9, 4.0),
    (17.5, 131_071.5, 10.2),
];

fn the_same(ours: &[f64], theirs: &Value, what: &str) {
    let theirs: Vec<f64> = serde_json::from_value(theirs.clone()).expect("numbers");
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1e-300);
    assert!(ours.len() == theirs.len() && ours.iter().zip(&theirs).all(near), "{what}: {ours:?}, {theirs:?}");
}

fn ticks_are_the_pages(browser: &mut cdp::Browser) {
    let ranges = RANGES.map(|(low, high, most)| json!([low, high, most]));
    let asked = format!(
        "(() => {{ {}\nreturn {}.map(([low, high, most]) => {{ const all = logTicks(low, high); return \
         {{ all, thin: thin(all, 9), text: all.map(tick), within: linearTicks(low, high, most) }}; }}); }})()",
        include_str!("../../report/ticks.js"),
        json!(ranges)
    );
    let found = browser.eval(&asked);
    for (at, (low, high, most)) in RANGES.into_iter().enumerate() {
        let (theirs, all) = (&found[at], log_ticks(low, high));
        the_same(&all, &theirs["all"], "logarithmic");
        the_same(&thinned(&all, 9), &theirs["thin"], "thinned");
        the_same(&ticks_within(low, high, most), &theirs["within"], "linear");
        assert_eq!(json!(all.into_iter().map(tick).collect::<Vec<_>>()), theirs["text"]);
    }
}

/// How dark each of so many by so many cells is, from 0 to 1.
fn darkness(pixels: &Pixmap, across: u32, down: u32) -> Vec<f64> {
    let mut cells = vec![(0.0, 0u32); (across * down) as usize];
    for (at, pixel) in (0u32..).zip(pixels.pixels()) {
        let (x, y) = (at % pixels.width(), at / pixels.width());
        let cell = (y * down / pixels.height()) * across + x * across / pixels.width();
        let cell = &mut cells[cell as usize];
        let sum = u32::from(pixel.red()) + u32::from(pixel.green()) + u32::from(pixel.blue());
        *cell = (cell.0 + 1.0 - f64::from(sum) / 765.0, cell.1 + 1);
    }
    cells.into_iter().map(|(sum, n)| sum / f64::from(n.max(1))).collect()
}

/// Pearson's correlation.
fn alike(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| of(a - ma, b - mb)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

fn a_png_is_what_the_browser_shows(browser: &mut cdp::Browser) {
    let chart = super::chart();
    let drawn = svg::document(&layout(&chart, COLUMN), COLUMN, &chart.title);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.svg");
    std::fs::write(&path, &drawn).expect("written");
    browser.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
    browser.wait_for("document.documentElement.localName === 'svg' && document.readyState === 'complete'");
    let clip = json!({"x": 0, "y": 0, "width": 320, "height": 213.333, "scale": 3.125});
    let shot = browser.call("Page.captureScreenshot", json!({"format": "png", "clip": clip}));
    let shot = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().expect("a picture"));
    let theirs = Pixmap::decode_png(&shot.expect("base64")).expect("a PNG");
    let ours = png::Painter::new().image(&drawn).expect("painted");
    let ours = Pixmap::decode_png(&ours).expect("a PNG");
    assert_eq!([ours.width(), ours.height()], [1000, 667]);
    assert!(ours.width().abs_diff(theirs.width()) <= 2 && ours.height().abs_diff(theirs.height()) <= 2);
    // Cells of about two letters: the fonts may be others.
    let [a, b] = [&ours, &theirs].map(|p| darkness(p, 40, 27));
    let found = alike(&a, &b);
    assert!(found > 0.9, "correlation {found}");
}

#[test]
fn the_page_and_the_browser_agree_with_the_core() {
    let Some(mut browser) = cdp::Browser::start(800, 600) else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no chromium: the page's ticks and the figures' pixels are not held against it\n",
        );
        return;
    };
    ticks_are_the_pages(&mut browser);
    a_png_is_what_the_browser_shows(&mut browser);
}
