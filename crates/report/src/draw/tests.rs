//! Escaping, PNG read back, ticks, places. The golden SVG is in `tests/compare.rs`.

use super::layout::{Anchor, COLUMN, Mark, layout};
use super::scale::{Across, linear_ticks, log_ticks, part, thinned, ticks_within};
use super::*;
use resvg::tiny_skia::Pixmap;
use uflip_measure::run::RunSection;
use uflip_measure::{Baseline, MicroBenchmark};

mod browser;

fn chart() -> Chart {
    let look = style::look_of(&Baseline::Sw.into(), 0);
    let point = |x, y: f64| Point { span: Some([y * 0.9, y * 1.2]), ..Point::plain(x, y) };
    Chart {
        title: "made <up> & \"quoted\"".into(),
        x: Axis {
            label: "IOSize".into(),
            scale: Scale::Log,
            ends: [512.0, 2048.0],
            ticks: vec![(512.0, "512B".into()), (2048.0, "2K".into())],
        },
        y: Axis {
            label: "response time".into(),
            scale: Scale::Log,
            ends: [1e5, 1e6],
            ticks: vec![(1e5, "100 µs".into()), (1e6, "1 ms".into())],
        },
        shades: vec![([512.0, 1024.0], "start".into())],
        notes: vec![ChartNote { at: At::Level(3e5), ink: Ink::Sw, label: "SW".into() }],
        series: vec![
            Series { label: "R<W".into(), look, points: vec![point(512.0, 2e5), point(2048.0, 5e5)] },
            Series {
                label: String::new(),
                look: Look {
                    shape: Some(Shape::Dot),
                    line: None,
                    size: 0.6,
                    ..style::look_of(&Baseline::Sr.into(), 0)
                },
                points: vec![point(1024.0, 3e5)],
            },
        ],
    }
}

#[test]
fn texts_of_the_data_never_become_markup() {
    let chart = chart();
    for svg in [
        svg::document(&layout(&chart, COLUMN), COLUMN, &chart.title),
        svg::inline(&layout(&chart, COLUMN), COLUMN, &chart.title),
    ] {
        assert!(svg.contains("R&lt;W") && svg.contains("&lt;up&gt; &amp; &quot;quoted&quot;"), "{svg}");
        assert!(!svg.contains("R<W") && !svg.contains("<up>") && !svg.contains("style="), "{svg}");
    }
}

/// A figure's pixels.
fn pixels(marks: &[Mark], size: [f64; 2]) -> Pixmap {
    let png = png::Painter::new().image(&svg::document(marks, size, "made")).expect("painted");
    assert_eq!(&png[33 + 4..33 + 8], b"pHYs", "after the header");
    let mut crc = flate2::Crc::new();
    crc.update(&png[33 + 4..33 + 17]);
    assert_eq!(png[33 + 17..33 + 21], crc.sum().to_be_bytes());
    assert_eq!(png[33 + 8..33 + 17], [0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x23, 1], "300 dots an inch");
    Pixmap::decode_png(&png).expect("a PNG")
}

fn colour(pixels: &Pixmap, x: u32, y: u32) -> String {
    let c = pixels.pixel(x, y).expect("inside").demultiply();
    assert_eq!(c.alpha(), 255, "paper shines through nowhere");
    format!("#{:02x}{:02x}{:02x}", c.red(), c.green(), c.blue())
}

#[test]
fn a_png_has_the_marks_where_they_belong() {
    let size = [24.0, 12.0];
    let tip = None;
    let marks = [
        Mark::Rect([0.0, 0.0, 24.0, 12.0], Ink::Paper),
        Mark::Rect([6.0, 3.0, 6.0, 6.0], Ink::Rw),
        Mark::Line { points: vec![[14.0, 6.0], [22.0, 6.0]], ink: Ink::Rr, width: 1.0, dash: [0.0, 0.0] },
        Mark::Shape { shape: Shape::Circle, at: [18.0, 6.0], size: 2.0, ink: Ink::Rr, hollow: true, tip },
    ];
    let drawn = pixels(&marks, size);
    assert_eq!((drawn.width(), drawn.height()), (100, 50));
    assert_eq!(colour(&drawn, 2, 2), "#ffffff");
    assert_eq!(colour(&drawn, 37, 25), Ink::Rw.hex(), "inside the rectangle");
    assert_eq!(colour(&drawn, 61, 25), Ink::Rr.hex(), "on the line");
    assert_eq!(colour(&drawn, 75, 25), "#ffffff", "inside the hollow circle");
    assert_eq!(colour(&drawn, 75, 33), Ink::Rr.hex(), "on its edge");
}

#[test]
fn letters_are_drawn() {
    // Each with dark pixels of its own: what the font lacks would be an empty box, the same for all.
    let dark = |text: &str, upwards| {
        let (at, text) = ([20.0, 20.0], text.to_string());
        let mark = Mark::Text { at, anchor: Anchor::Middle, upwards, ink: Ink::Text, text };
        let drawn = pixels(&[mark], [40.0, 40.0]);
        drawn.pixels().iter().filter(|p| p.red() < 128).count()
    };
    for upwards in [false, true] {
        let all = dark("0.4 µs", upwards);
        assert!((200..2000).contains(&all), "{all} dark pixels");
    }
    let lacking = dark("\u{13000}", false);
    for letter in ["0", "m", "µ", "×", "–", "é", "%"] {
        let found = dark(letter, false);
        assert!(found > 0 && found != lacking, "{letter}: {found} dark pixels");
    }
}

#[test]
fn ticks_enclose_and_are_round() {
    assert_eq!(log_ticks(0.3e6, 4e6), [2e5, 5e5, 1e6, 2e6, 5e6]);
    assert_eq!(log_ticks(1e6, 1e6), [1e6, 2e6]);
    assert_eq!(thinned(&log_ticks(1e3, 1e9), 9), [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]);
    assert_eq!(thinned(&log_ticks(1.0, 1e12), 9), [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]);
    assert_eq!(linear_ticks(0.0, 10.2, 6.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(linear_ticks(0.0, 0.0, 6.0).len(), 2);
    assert_eq!(ticks_within(-0.5, 10.2, 6.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
}

fn values(all: &[i64]) -> Vec<(i64, String)> {
    all.iter().map(|v| (*v, v.to_string())).collect()
}

/// The one rule for 0, for page, figures and comparison: a step before the others, not among equals.
#[test]
fn zero_stands_one_mean_step_before_a_logarithmic_axis() {
    let across = Across::new(
        &RunSection::Micro(MicroBenchmark::Alignment),
        "IOShift",
        &values(&[0, 512, 1024, 2048, 4096]),
    );
    assert_eq!(across.axis.scale, Scale::Log);
    let at = |value: f64| part(&across.axis, across.at(value));
    let step = at(1024.0) - at(512.0);
    assert!((at(512.0) - at(0.0) - step).abs() < 1e-9 && step > 0.2, "{step}");
    assert!(at(256.0) > at(0.0) && at(256.0) < at(512.0), "between");
    assert!((at(724.077) - at(512.0) - step / 2.0).abs() < 1e-4, "by its logarithm");
    assert_eq!(
        across.axis.ticks.iter().map(|t| &t.1[..]).collect::<Vec<_>>(),
        ["0", "512", "1024", "2048", "4096"]
    );
    for side_by_side in [&[-1, 0, 1][..], &[0, 1, 2][..1], &[0, 8], &[4, 8]] {
        let across = Across::new(&RunSection::Micro(MicroBenchmark::Pause), "Pause", &values(side_by_side));
        assert_eq!(across.axis.scale, Scale::Linear, "{side_by_side:?}");
        assert_eq!(across.at(side_by_side[0] as f64), 0.0);
    }
    assert_eq!(
        Across::new(&RunSection::Micro(MicroBenchmark::Mix), "Ratio", &values(&[1, 2, 4, 8])).axis.scale,
        Scale::Linear
    );
}

#[test]
fn a_zero_up_stands_at_the_lower_end() {
    let mut chart = chart();
    chart.series[0].points[0].span = Some([0.0, 3e5]);
    let ends = layout(&chart, COLUMN).into_iter().filter_map(|mark| match mark {
        Mark::Whisker([_, bottom, _], _) => Some(bottom),
        _ => None,
    });
    let lowest = ends.fold(0.0, f64::max);
    assert_eq!(lowest, COLUMN[1] - 23.0, "the frame's lower edge");
}

#[test]
fn pages_paint_the_marks_of_the_files() {
    let chart = chart();
    let made = serde_json::to_value(picture::picture(&chart, true)).expect("JSON");
    for sheet in ["wide", "narrow"] {
        let marks = made[sheet]["marks"].as_array().expect("marks");
        let size = [0, 1].map(|at| made[sheet]["size"][at].as_f64().expect("a size"));
        let ours = layout(&chart, size);
        let of = |kind: &'static str| marks.iter().filter(move |m| m[0][0] == kind);
        let texts: Vec<&str> = of("t").filter_map(|m| m[2][0].as_str()).collect();
        let letters =
            ours.iter().filter_map(|m| if let Mark::Text { text, .. } = m { Some(&text[..]) } else { None });
        assert_eq!(texts, letters.collect::<Vec<_>>());
        let places: usize = of("s").map(|m| m[1].as_array().expect("places").len()).sum();
        assert_eq!(places, 2 * ours.iter().filter(|m| matches!(m, Mark::Shape { .. })).count());
        let whiskers: Vec<_> = of("w").collect();
        assert_eq!((whiskers.len(), whiskers[0][1].as_array().map(Vec::len)), (2, Some(6)), "told together");
    }
    assert!(serde_json::to_value(picture::picture(&chart, false)).expect("JSON")["narrow"].is_null());
}
