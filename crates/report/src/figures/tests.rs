//! Escaping, PNG read back, ticks. The golden SVG is in `tests/compare.rs`.

use super::layout::{COLUMN, Mark, layout, linear_ticks, log_ticks, thinned};
use super::*;
use std::io::Read;

fn chart() -> Chart {
    let look =
        Look { ink: Ink::Rw, shape: Some(Shape::Triangle), hollow: true, line: Some([3.0, 1.5]), size: 2.0 };
    let point = |x, y: f64| Point { x, y, span: Some([y * 0.9, y * 1.2]) };
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
        series: vec![
            Series { label: "R<W".into(), look, points: vec![point(512.0, 2e5), point(2048.0, 5e5)] },
            Series {
                label: String::new(),
                look: Look { ink: Ink::Sr, shape: Some(Shape::Dot), hollow: false, line: None, size: 0.6 },
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

/// Width, height and the pixels of a PNG as `png.rs` writes them; checks sums.
fn read(png: &[u8]) -> (usize, usize, Vec<u8>) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let (mut at, mut sides, mut packed, mut names) = (8, (0, 0), Vec::new(), Vec::new());
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    while at < png.len() {
        let length = number(at) as usize;
        let (name, data) = (&png[at + 4..at + 8], &png[at + 8..at + 8 + length]);
        let mut crc = flate2::Crc::new();
        crc.update(&png[at + 4..at + 8 + length]);
        assert_eq!(crc.sum(), number(at + 8 + length));
        match name {
            b"IHDR" => sides = (number(at + 8) as usize, number(at + 12) as usize),
            b"IDAT" => packed.extend_from_slice(data),
            _ => {}
        }
        names.push(String::from_utf8_lossy(name).into_owned());
        at += 12 + length;
    }
    assert_eq!(names, ["IHDR", "pHYs", "IDAT", "IEND"]);
    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut rows).expect("zlib");
    (sides.0, sides.1, rows)
}

#[test]
fn a_png_has_the_marks_where_they_belong() {
    let size = [24.0, 12.0];
    let marks = [
        Mark::Rect([0.0, 0.0, 24.0, 12.0], Ink::Paper),
        Mark::Rect([6.0, 3.0, 6.0, 6.0], Ink::Rw),
        Mark::Line { points: vec![[14.0, 6.0], [22.0, 6.0]], ink: Ink::Rr, width: 1.0, dash: [0.0, 0.0] },
        Mark::Shape { shape: Shape::Circle, at: [18.0, 6.0], size: 2.0, ink: Ink::Rr, hollow: true },
    ];
    let (width, height, rows) = read(&png::image(&marks, size));
    assert_eq!((width, height, rows.len()), (100, 50, 50 * 301));
    let pixel = |x: usize, y: usize| {
        [rows[y * 301 + 1 + x * 3], rows[y * 301 + 2 + x * 3], rows[y * 301 + 3 + x * 3]]
    };
    assert_eq!(pixel(2, 2), [255, 255, 255]);
    assert_eq!(pixel(37, 25), Ink::Rw.rgb(), "inside the rectangle");
    assert_eq!(pixel(61, 25), Ink::Rr.rgb(), "on the line");
    assert_eq!(pixel(75, 25), [255, 255, 255], "inside the hollow circle");
    assert_eq!(pixel(75, 33), Ink::Rr.rgb(), "on its edge");
}

#[test]
fn letters_are_drawn() {
    let text = |upwards| Mark::Text {
        at: [20.0, 10.0],
        anchor: layout::Anchor::Middle,
        upwards,
        ink: Ink::Text,
        text: "0.4 µs".into(),
    };
    for upwards in [false, true] {
        let (.., rows) = read(&png::image(&[text(upwards)], [40.0, 40.0]));
        let dark = rows.iter().filter(|b| **b > 0 && **b < 128).count();
        assert!((150..3000).contains(&dark), "{dark} dark bytes");
    }
}

#[test]
fn ticks_enclose_and_are_round() {
    assert_eq!(log_ticks(0.3e6, 4e6), [2e5, 5e5, 1e6, 2e6, 5e6]);
    assert_eq!(log_ticks(1e6, 1e6), [1e6, 2e6]);
    assert_eq!(thinned(&log_ticks(1e3, 1e9), 9), [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]);
    assert_eq!(linear_ticks(0.0, 10.2, 6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(linear_ticks(0.0, 0.0, 6).len(), 2);
}

#[test]
fn names_of_folders_are_plain_and_apart() {
    assert_eq!(plain_name("sim:mtron"), "mtron");
    assert_eq!(plain_name("/tmp/a b/"), "a_b");
    assert_eq!(plain_name("../.."), "figures");
}
