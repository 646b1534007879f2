//! The one drawing core of page, figures and comparison.
//!
//! Method: a [`Chart`] is plain data. `scale.rs` decides domains, ticks and their texts, `style.rs` colours and
//! shapes, `layout.rs` turns a chart into marks (lines, shapes, letters) with places. Painters decide nothing: they
//! write the same marks as vectors (`svg.rs`), as pixels (`png.rs`, from these vectors) and as data for the report's
//! page (`picture.rs`), whose script makes elements of them.
//!
//! | file | what |
//! |---|---|
//! | `scale.rs` | values become places: domains, ticks, 0 on a logarithmic axis |
//! | `style.rs`, `draw.css` | colours by day and by night, shapes, who has which |
//! | `layout.rs` | a chart becomes marks |
//! | `svg.rs`, `png.rs`, `picture.rs` | painting |
//!
//! Source: papers 000/001, figures 3 to 8, for what their charts show.

pub(crate) mod layout;
pub(crate) mod picture;
pub(crate) mod png;
pub(crate) mod scale;
pub(crate) mod style;
pub(crate) mod svg;

#[cfg(test)]
mod tests;

pub(crate) use style::{Ink, Look, Shape};

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What it shows, with the unit; empty for none.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// Values at its two ends.
    pub ends: [f64; 2],
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The ends of its whisker.
    pub span: Option<[f64; 2]>,
    /// Which point of the data it is, for pages that tell more of it.
    pub tip: Option<u32>,
}

impl Point {
    /// A point without a whisker.
    pub fn plain(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Its name in the legend; empty for none.
    pub label: String,
    /// What it looks like.
    pub look: Look,
    /// In order.
    pub points: Vec<Point>,
}

/// Where a note stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum At {
    /// Everything up to a value across.
    UpTo(f64),
    /// A value across.
    Across(f64),
    /// A value up.
    Level(f64),
    /// A point: across, up.
    Point([f64; 2]),
}

/// A figure that is drawn into a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChartNote {
    /// Where.
    pub at: At,
    /// Its colour.
    pub ink: Ink,
    /// A word or two; empty for none.
    pub label: String,
}

/// A chart, before it has a size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// What it shows, in one line; not drawn, but in the file.
    pub title: String,
    /// The axis across.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// Shaded ranges across, each with a word.
    pub shades: Vec<([f64; 2], String)>,
    /// Figures read off the curves.
    pub notes: Vec<ChartNote>,
    /// The curves.
    pub series: Vec<Series>,
}
