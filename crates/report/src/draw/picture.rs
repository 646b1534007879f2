//! Marks as data for the report's page: its script makes elements of them and decides nothing.
//!
//! Each mark is a small array with a letter first; marks of one kind and look that follow each other are one array.
//! Places are told to a tenth of a point. A text is shown by the page as text only.

use super::Chart;
use super::layout::{Anchor, Mark, layout};
use serde::Serialize;
use serde_json::{Value, json};

/// Width and height of a chart on a page, in points of letters of 7: about 560 by 300 pixels for letters of 12.
const WIDE: [f64; 2] = [325.0, 180.0];
/// On a phone.
const NARROW: [f64; 2] = [220.0, 180.0];

/// A chart as a page paints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Picture {
    title: String,
    wide: Sheet,
    /// Where there was room for it.
    narrow: Option<Sheet>,
}

/// Marks with the size that they fill.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Sheet {
    size: [f64; 2],
    marks: Vec<Value>,
}

/// A chart for wide and, where it is asked for, for narrow screens.
pub(crate) fn picture(chart: &Chart, narrow: bool) -> Picture {
    let sheet = |size| Sheet { size, marks: all_data(&layout(chart, size)) };
    Picture { title: chart.title.clone(), wide: sheet(WIDE), narrow: narrow.then(|| sheet(NARROW)) }
}

fn short(value: f64) -> Value {
    let rounded = (value * 10.0).round() / 10.0;
    // Whole numbers without a point.
    if rounded.fract() == 0.0 { json!(rounded as i64) } else { json!(rounded) }
}

fn all(values: &[f64]) -> Value {
    values.iter().map(|v| short(*v)).collect()
}

/// A mark as its look, its places, and what it tells.
fn data(mark: &Mark) -> (Value, Vec<f64>, Value) {
    match mark {
        Mark::Rect(rect, ink) => (json!(["r", ink.name()]), rect.to_vec(), Value::Null),
        Mark::Line { points, ink, width, dash } => {
            let dash = if dash[0] > 0.0 { json!(dash) } else { Value::Null };
            (json!(["l", ink.name(), width, dash]), points.iter().flatten().copied().collect(), Value::Null)
        }
        Mark::Whisker(ends, ink) => (json!(["w", ink.name()]), ends.to_vec(), Value::Null),
        Mark::Ring { at, size, ink } => (json!(["o", ink.name(), size]), at.to_vec(), Value::Null),
        Mark::Shape { shape, at, size, ink, hollow, tip } => {
            (json!(["s", ink.name(), size, shape, hollow]), at.to_vec(), json!(tip))
        }
        Mark::Text { at, anchor, upwards, ink, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            (json!(["t", ink.name(), anchor, upwards]), at.to_vec(), json!(text))
        }
    }
}

/// Whether marks that follow each other may be told together.
fn joins(mark: &Mark) -> bool {
    matches!(mark, Mark::Whisker(..) | Mark::Shape { .. })
}

/// `[look, places, what each tells]` of marks that look the same.
fn all_data(marks: &[Mark]) -> Vec<Value> {
    let mut made: Vec<(Value, Vec<f64>, Vec<Value>, bool)> = Vec::new();
    for mark in marks {
        let (look, places, told) = data(mark);
        match made.last_mut() {
            Some(last) if last.3 && joins(mark) && last.0 == look => {
                last.1.extend(places);
                last.2.push(told);
            }
            _ => made.push((look, places, vec![told], joins(mark))),
        }
    }
    let short = |(look, places, told, _): (Value, Vec<f64>, Vec<Value>, bool)| {
        if told.iter().all(Value::is_null) {
            json!([look, all(&places)])
        } else {
            json!([look, all(&places), told])
        }
    };
    made.into_iter().map(short).collect()
}
