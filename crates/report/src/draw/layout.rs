//! A chart becomes marks with places, in points of 1/72 inch.
//!
//! Letters are taken to be 0.53 of their size wide, which Helvetica needs on
//! average. Labels that would touch are left out, never their ticks.

use super::scale::part;
use super::{At, Chart, ChartNote, Ink, Look, Series, Shape};

/// Width and height of a figure in a paper's column: 84.7 mm by 56.4 mm.
pub(crate) const COLUMN: [f64; 2] = [240.0, 160.0];

/// Letters of axes and legends, in points.
pub(crate) const FONT: f64 = 7.0;
/// Part of a letter's size that it is wide.
const WIDE: f64 = 0.53;

/// Where a text hangs on its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// Something drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// A filled rectangle: x, y, width, height.
    Rect([f64; 4], Ink),
    /// A line through points; dashes and gaps in points, zeros for none.
    Line {
        /// Its corners.
        points: Vec<[f64; 2]>,
        /// Its colour.
        ink: Ink,
        /// How wide.
        width: f64,
        /// Dash and gap.
        dash: [f64; 2],
    },
    /// A mark's shape.
    Shape {
        /// Which.
        shape: Shape,
        /// Its centre.
        at: [f64; 2],
        /// Half its width.
        size: f64,
        /// Its colour.
        ink: Ink,
        /// White inside.
        hollow: bool,
        /// Which point of the data it is.
        tip: Option<u32>,
    },
    /// From one value up to another: across, and both ends.
    Whisker([f64; 3], Ink),
    /// A circle without an inside.
    Ring {
        /// Its centre.
        at: [f64; 2],
        /// Half its width.
        size: f64,
        /// Its colour.
        ink: Ink,
    },
    /// Letters on one line; `at` is on their base line.
    Text {
        /// The place of the anchor.
        at: [f64; 2],
        /// How the text hangs there.
        anchor: Anchor,
        /// Read upwards.
        upwards: bool,
        /// Its colour.
        ink: Ink,
        /// The letters.
        text: String,
    },
}

/// A whisker's lines, and how wide they are.
pub(crate) fn whisker([x, bottom, top]: [f64; 3]) -> ([[[f64; 2]; 2]; 3], f64) {
    let bar = |y| [[x - 1.6, y], [x + 1.6, y]];
    ([[[x, bottom], [x, top]], bar(bottom), bar(top)], 0.6)
}

/// The rectangle of the curves.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, chart: &Chart, value: f64) -> f64 {
        self.left + part(&chart.x, value) * (self.right - self.left)
    }

    fn y(&self, chart: &Chart, value: f64) -> f64 {
        self.bottom - part(&chart.y, value) * (self.bottom - self.top)
    }
}

/// How wide a text is, in points.
fn width(text: &str) -> f64 {
    text.chars().count() as f64 * FONT * WIDE
}

fn text(at: [f64; 2], anchor: Anchor, ink: Ink, text: impl Into<String>) -> Mark {
    Mark::Text { at, anchor, upwards: false, ink, text: text.into() }
}

/// The chart's marks within `size` (width, height), in the order of drawing.
pub(crate) fn layout(chart: &Chart, size: [f64; 2]) -> Vec<Mark> {
    let widest = chart.y.ticks.iter().map(|(_, label)| width(label)).fold(0.0, f64::max);
    let legend = legend_rows(chart, size[0] - widest - 20.0);
    let frame = Frame {
        left: widest + if chart.y.label.is_empty() { 6.0 } else { 16.0 },
        right: size[0] - 5.0,
        top: 5.0 + legend.len() as f64 * (FONT + 3.0),
        bottom: size[1] - 23.0,
    };
    let mut marks = vec![Mark::Rect([0.0, 0.0, size[0], size[1]], Ink::Paper)];
    shades(chart, &frame, &mut marks);
    areas(chart, &frame, &mut marks);
    axis_y(chart, &frame, &mut marks);
    axis_x(chart, &frame, size, &mut marks);
    let mut row = 0;
    chart.notes.iter().for_each(|note| behind(chart, note, &frame, &mut row, &mut marks));
    for series in &chart.series {
        curve(chart, series, &frame, &mut marks);
    }
    chart.notes.iter().for_each(|note| ring(chart, note, &frame, &mut marks));
    legend_marks(&legend, &frame, &mut marks);
    marks
}

fn shades(chart: &Chart, frame: &Frame, marks: &mut Vec<Mark>) {
    for ([from, to], word) in &chart.shades {
        let (left, right) = (frame.x(chart, *from), frame.x(chart, *to));
        marks.push(Mark::Rect([left, frame.top, right - left, frame.bottom - frame.top], Ink::Shade));
        if width(word) < right - left {
            marks.push(text([left + 2.0, frame.top + FONT], Anchor::Start, Ink::Soft, word));
        }
    }
}

/// What lies below a note's value across.
fn areas(chart: &Chart, frame: &Frame, marks: &mut Vec<Mark>) {
    for note in &chart.notes {
        if let At::UpTo(value) = note.at {
            let wide = frame.x(chart, value) - frame.left;
            marks.push(Mark::Rect([frame.left, frame.top, wide, frame.bottom - frame.top], Ink::Shade));
        }
    }
}

/// A note's line behind the curves, with its word where there is room: each in a row of its own.
fn behind(chart: &Chart, note: &ChartNote, frame: &Frame, row: &mut u32, marks: &mut Vec<Mark>) {
    match note.at {
        At::Level(value) => {
            let y = frame.y(chart, value);
            let points = vec![[frame.left, y], [frame.right, y]];
            marks.push(Mark::Line { points, ink: note.ink, width: 0.6, dash: [0.6, 1.8] });
            marks.push(text([frame.right - 2.0, y - 2.0], Anchor::End, Ink::Text, &note.label));
        }
        At::UpTo(value) | At::Across(value) => {
            let x = frame.x(chart, value);
            let points = vec![[x, frame.top], [x, frame.bottom]];
            marks.push(Mark::Line { points, ink: note.ink, width: 0.7, dash: [2.4, 1.8] });
            let (anchor, aside) = away(frame, x);
            let y = frame.top + FONT + f64::from(*row) * (FONT + 1.5);
            marks.push(text([x + aside * 3.0, y], anchor, Ink::Text, &note.label));
            *row += 1;
        }
        At::Point(_) => {}
    }
}

/// A ring around a point, with its word at the side that is free.
fn ring(chart: &Chart, note: &ChartNote, frame: &Frame, marks: &mut Vec<Mark>) {
    let At::Point([x, y]) = note.at else { return };
    let at = [frame.x(chart, x), frame.y(chart, y)];
    marks.push(Mark::Ring { at, size: 4.5, ink: Ink::Text });
    if !note.label.is_empty() {
        let (anchor, aside) = away(frame, at[0]);
        marks.push(text([at[0] + aside * 6.5, at[1] - 3.5], anchor, Ink::Text, &note.label));
    }
}

/// How a word hangs beside `x`, and at which side: the one with room.
fn away(frame: &Frame, x: f64) -> (Anchor, f64) {
    if x > frame.left + (frame.right - frame.left) * 0.65 {
        (Anchor::End, -1.0)
    } else {
        (Anchor::Start, 1.0)
    }
}

fn line(points: Vec<[f64; 2]>, ink: Ink, width: f64) -> Mark {
    Mark::Line { points, ink, width, dash: [0.0, 0.0] }
}

fn axis_y(chart: &Chart, frame: &Frame, marks: &mut Vec<Mark>) {
    let mut free = f64::INFINITY;
    for (value, label) in &chart.y.ticks {
        let y = frame.y(chart, *value);
        marks.push(line(vec![[frame.left, y], [frame.right, y]], Ink::Grid, 0.4));
        if y + FONT / 2.0 <= free {
            marks.push(text([frame.left - 3.0, y + FONT * 0.35], Anchor::End, Ink::Soft, label));
            free = y - FONT * 0.6;
        }
    }
    if !chart.y.label.is_empty() {
        let (at, text) = ([FONT + 1.0, (frame.top + frame.bottom) / 2.0], chart.y.label.clone());
        marks.push(Mark::Text { at, anchor: Anchor::Middle, upwards: true, ink: Ink::Text, text });
    }
}

fn axis_x(chart: &Chart, frame: &Frame, size: [f64; 2], marks: &mut Vec<Mark>) {
    let corners = vec![[frame.left, frame.top], [frame.left, frame.bottom], [frame.right, frame.bottom]];
    marks.push(line(corners, Ink::Frame, 0.6));
    let mut free = f64::NEG_INFINITY;
    for (value, label) in &chart.x.ticks {
        let x = frame.x(chart, *value);
        marks.push(line(vec![[x, frame.bottom], [x, frame.bottom + 2.0]], Ink::Frame, 0.6));
        let half = width(label) / 2.0;
        let centre = x.min(size[0] - 1.0 - half);
        if centre - half > free + 5.0 {
            marks.push(text([centre, frame.bottom + FONT + 3.0], Anchor::Middle, Ink::Soft, label));
            free = centre + half;
        }
    }
    let middle = (frame.left + frame.right) / 2.0;
    marks.push(text([middle, size[1] - 4.0], Anchor::Middle, Ink::Text, &chart.x.label));
}

fn curve(chart: &Chart, series: &Series, frame: &Frame, marks: &mut Vec<Mark>) {
    let look = &series.look;
    let place = |x: f64, y: f64| [frame.x(chart, x), frame.y(chart, y)];
    for point in &series.points {
        let Some([low, high]) = point.span else { continue };
        let ([x, bottom], [_, top]) = (place(point.x, low), place(point.x, high));
        if bottom - top > 0.5 {
            marks.push(Mark::Whisker([x, bottom, top], look.ink));
        }
    }
    if let Some(dash) = look.line {
        let points = series.points.iter().map(|p| place(p.x, p.y)).collect();
        marks.push(Mark::Line { points, ink: look.ink, width: look.width, dash });
    }
    if let Some(shape) = look.shape {
        for point in &series.points {
            let at = place(point.x, point.y);
            let (ink, hollow, tip) = (look.ink, look.hollow, point.tip);
            marks.push(Mark::Shape { shape, at, size: look.size, ink, hollow, tip });
        }
    }
}

/// An entry of the legend: its look, its label, its left end.
type Entry = (Look, String, f64);

/// The legend's rows, each from the left.
fn legend_rows(chart: &Chart, room: f64) -> Vec<Vec<Entry>> {
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    let mut at = 0.0;
    for series in chart.series.iter().filter(|s| !s.label.is_empty()) {
        let wide = 16.0 + width(&series.label) + 6.0;
        if rows.is_empty() || at + wide > room {
            rows.push(Vec::new());
            at = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((series.look, series.label.clone(), at));
        }
        at += wide;
    }
    rows
}

fn legend_marks(rows: &[Vec<Entry>], frame: &Frame, marks: &mut Vec<Mark>) {
    for (number, row) in rows.iter().enumerate() {
        let y = 4.0 + FONT * 0.6 + number as f64 * (FONT + 3.0);
        for (look, label, at) in row {
            let left = frame.left + at;
            if let Some(dash) = look.line {
                let points = vec![[left, y], [left + 13.0, y]];
                marks.push(Mark::Line { points, ink: look.ink, width: look.width, dash });
            }
            if let Some(shape) = look.shape {
                let size = look.size.max(1.4);
                let at = [left + 6.5, y];
                let (ink, hollow) = (look.ink, look.hollow);
                marks.push(Mark::Shape { shape, at, size, ink, hollow, tip: None });
            }
            marks.push(text([left + 16.0, y + FONT * 0.35], Anchor::Start, Ink::Text, label));
        }
    }
}
