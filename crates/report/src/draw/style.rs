//! Colours and shapes, and which curve has which.
//!
//! Method: reads are blue and writes orange, sequential is hollow and dashed, random filled; reads are circles and
//! writes triangles. Mixes of both are green or purple. The colours stay apart in the common kinds of colour
//! blindness and, by their shapes, in grey. Each colour has a light and a dark value; in pages it is a class
//! (`c-RW`), whose value the theme gives (`draw.css`).

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use uflip_measure::Baseline::{self, Rr, Rw, Sr, Sw};
use uflip_measure::Curve::{self, One, Pair};
use uflip_measure::run::CurveName;

/// Colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Letters and running averages.
    Text,
    /// Axis labels.
    Soft,
    /// The frame.
    Frame,
    /// Grid lines.
    Grid,
    /// Shaded phases.
    Shade,
    /// What hollow marks are filled with.
    Paper,
    /// Sequential reads.
    Sr,
    /// Random reads.
    Rr,
    /// Sequential writes.
    Sw,
    /// Random writes.
    Rw,
    /// Reads and writes, one of them sequential.
    M0,
    /// Random reads and writes.
    M1,
    /// Anything else.
    M2,
}

/// Colours that the data has, each light and dark, with its name in pages.
const DATA: [(Ink, &str, [u32; 2]); 7] = [
    (Ink::Sr, Baseline::Sr.name(), [0x3a9bd9, 0x8fd0f7]),
    (Ink::Rr, Baseline::Rr.name(), [0x0060a0, 0x3f9ce0]),
    (Ink::Sw, Baseline::Sw.name(), [0xe69f00, 0xf2bd4b]),
    (Ink::Rw, Baseline::Rw.name(), [0xc84e00, 0xf0783a]),
    (Ink::M0, "m0", [0x009e73, 0x2fc79c]),
    (Ink::M1, "m1", [0xb45a90, 0xde8fbc]),
    (Ink::M2, "m2", [0x6b6f76, 0xa9afb8]),
];

/// Colours of what is around the data: on paper. In pages they are the page's own.
const AROUND: [(Ink, &str, u32); 6] = [
    (Ink::Text, "text", 0x1b1f24),
    (Ink::Soft, "soft", 0x454c55),
    (Ink::Frame, "frame", 0x6b6f76),
    (Ink::Grid, "grid", 0xe3e3de),
    (Ink::Shade, "shade", 0xefefe8),
    (Ink::Paper, "paper", 0xffffff),
];

impl Ink {
    /// Its name and its colour on paper.
    fn entry(self) -> (&'static str, u32) {
        let data = DATA.iter().map(|(ink, name, [light, _])| (*ink, *name, *light));
        let found = data.chain(AROUND).find(|(ink, ..)| *ink == self);
        found.map_or(("text", 0), |(_, name, colour)| (name, colour))
    }

    /// Its colour on paper as `#rrggbb`.
    pub fn hex(self) -> String {
        format!("#{:06x}", self.entry().1)
    }

    /// Its name in a page: `RW`; its class is `c-RW`.
    pub fn name(self) -> &'static str {
        self.entry().0
    }
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    /// ○ ●
    Circle,
    /// △ ▲
    Triangle,
    /// □ ■
    Square,
    /// ◇ ◆
    Diamond,
    /// A small dot without an outline, for thousands of IOs.
    Dot,
}

impl Shape {
    /// The corners of a shape that has some, for a size of 1.
    pub fn corners(self) -> &'static [[f64; 2]] {
        match self {
            Shape::Triangle => &[[0.0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
            Shape::Diamond => &[[0.0, -1.2], [1.2, 0.0], [0.0, 1.2], [-1.2, 0.0]],
            Shape::Square => &[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
            Shape::Circle | Shape::Dot => &[],
        }
    }
}

/// What a line or a mark looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    /// Its colour.
    pub ink: Ink,
    /// The shape of its marks; None for a line alone.
    pub shape: Option<Shape>,
    /// Marks with their inside left white.
    pub hollow: bool,
    /// The line between points: its dashes and gaps in points; None for marks
    /// alone, zeros for a line without gaps.
    pub line: Option<[f64; 2]>,
    /// How wide the line is, in points.
    pub width: f64,
    /// Half the width of a mark, in points.
    pub size: f64,
}

impl Look {
    /// A curve with marks.
    pub fn marked(ink: Ink, shape: Shape, hollow: bool) -> Look {
        Look { ink, shape: Some(shape), hollow, line: Some([0.0, 0.0]), width: 0.9, size: 2.0 }
    }

    /// A line without marks, of dashes and gaps.
    pub fn line(ink: Ink, dash: [f64; 2], width: f64) -> Look {
        Look { ink, shape: None, hollow: false, line: Some(dash), width, size: 0.0 }
    }
}

/// The baselines and their mixes.
const CURVES: [(Curve, Ink, Shape, bool); 10] = [
    (One(Sr), Ink::Sr, Shape::Circle, true),
    (One(Rr), Ink::Rr, Shape::Circle, false),
    (One(Sw), Ink::Sw, Shape::Triangle, true),
    (One(Rw), Ink::Rw, Shape::Triangle, false),
    (Pair(Sr, Rr), Ink::Rr, Shape::Square, true),
    (Pair(Sw, Rw), Ink::Rw, Shape::Square, true),
    (Pair(Sr, Sw), Ink::M0, Shape::Diamond, true),
    (Pair(Rr, Rw), Ink::M1, Shape::Diamond, false),
    (Pair(Sr, Rw), Ink::M0, Shape::Diamond, false),
    (Pair(Rr, Sw), Ink::M1, Shape::Diamond, true),
];

/// What a curve looks like, the `at`-th of its chart where its name says nothing.
pub(crate) fn look_of(name: &CurveName, at: usize) -> Look {
    let own = |(curve, ..): &(Curve, _, _, _)| Some(*curve) == name.known();
    let Some((_, ink, shape, hollow)) = CURVES.into_iter().find(own) else {
        return in_turn(at);
    };
    let line = Some(if hollow { [3.0, 1.5] } else { [0.0, 0.0] });
    Look { line, ..Look::marked(ink, shape, hollow) }
}

/// The colour of a baseline or mix.
pub(crate) fn ink_of(name: &CurveName) -> Ink {
    CURVES.iter().find(|(curve, ..)| Some(*curve) == name.known()).map_or(Ink::M2, |(_, ink, ..)| *ink)
}

/// One of several curves that are no baselines: devices, block sizes, bursts.
pub(crate) fn in_turn(at: usize) -> Look {
    let inks = [Ink::Rr, Ink::Rw, Ink::M0, Ink::M1, Ink::M2, Ink::Sw];
    let shapes = [Shape::Circle, Shape::Triangle, Shape::Square, Shape::Diamond];
    Look::marked(inks[at % 6], shapes[at % 4], at % 2 == 1)
}

/// The values of the data's colours, as declarations of CSS.
pub(crate) fn colours(dark: bool) -> String {
    let mut out = String::new();
    for (_, name, values) in DATA {
        let _ = write!(out, "--{name}: #{:06x}; ", values[usize::from(dark)]);
    }
    out
}

/// The style of charts in pages: colours by day, the classes, how marks are painted.
pub(crate) fn css() -> String {
    let mut out = format!(":root {{ {}}}\n", colours(false));
    for (_, name, _) in DATA {
        let _ = write!(out, ".c-{name} {{ --c: var(--{name}); }} ");
    }
    out.push('\n');
    out.push_str(include_str!("draw.css"));
    out
}

/// What the page's script needs to draw single marks: looks by name, corners by shape.
pub(crate) fn facts() -> Value {
    let looks = CURVES.map(|(curve, ink, shape, hollow)| {
        (curve.to_string(), json!({ "c": ink.name(), "shape": shape, "hollow": hollow }))
    });
    let shapes = [("circle", Shape::Circle), ("triangle", Shape::Triangle), ("square", Shape::Square)];
    let shapes = shapes.into_iter().chain([("diamond", Shape::Diamond)]);
    let corners = shapes.map(|(name, shape)| (name.to_string(), json!(shape.corners())));
    json!({
        "looks": serde_json::Map::from_iter(looks),
        "corners": serde_json::Map::from_iter(corners),
    })
}
