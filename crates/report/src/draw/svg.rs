//! Marks as SVG: as a file of its own, or as a part of a page whose style has
//! the colours.
//!
//! Texts are escaped; nothing but what is drawn here reaches the markup.

use super::layout::{Anchor, FONT, Mark, whisker};
use super::{Ink, Shape};
use std::fmt::Write;

/// How colours are told.
#[derive(Clone, Copy, PartialEq)]
enum Colours {
    /// As they are.
    Plain,
    /// As classes: `i-rw`, with `s` for strokes and `f` for fills.
    Classes,
}

impl Colours {
    fn fill(self, ink: Ink) -> String {
        match self {
            Colours::Plain => format!("fill=\"{}\"", ink.hex()),
            Colours::Classes => format!("class=\"f c-{}\"", ink.name()),
        }
    }

    fn stroke(self, ink: Ink) -> String {
        match self {
            Colours::Plain => format!("fill=\"none\" stroke=\"{}\"", ink.hex()),
            Colours::Classes => format!("class=\"s c-{}\"", ink.name()),
        }
    }

    /// Filled with one, outlined by the other.
    fn both(self, fill: Ink, stroke: Ink) -> String {
        match self {
            Colours::Plain => format!("fill=\"{}\" stroke=\"{}\"", fill.hex(), stroke.hex()),
            Colours::Classes if fill == Ink::Paper => format!("class=\"h c-{}\"", stroke.name()),
            Colours::Classes => format!("class=\"b c-{}\"", stroke.name()),
        }
    }
}

/// `text` for markup and attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in XML at all.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// Two decimals, without what they do not need.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// The marks as an SVG file of `size` points.
pub(crate) fn document(marks: &[Mark], size: [f64; 2], title: &str) -> String {
    let mm = |points: f64| number(points * 25.4 / 72.0);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}mm\" \
         height=\"{}mm\" viewBox=\"0 0 {} {}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{}\">\n\
         <title>{}</title>\n",
        mm(size[0]),
        mm(size[1]),
        number(size[0]),
        number(size[1]),
        number(FONT),
        escaped(title)
    );
    marks.iter().for_each(|mark| write_mark(&mut out, mark, Colours::Plain));
    out.push_str("</svg>\n");
    out
}

/// The marks as a part of a page; its style colours the classes.
pub(crate) fn inline(marks: &[Mark], size: [f64; 2], title: &str) -> String {
    let mut out = format!(
        "<svg class=\"figure\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
        number(size[0]),
        number(size[1]),
        escaped(title)
    );
    marks.iter().for_each(|mark| write_mark(&mut out, mark, Colours::Classes));
    out.push_str("</svg>\n");
    out
}

fn write_mark(out: &mut String, mark: &Mark, colours: Colours) {
    // Writing to a String cannot fail.
    let _ = match mark {
        Mark::Rect([x, y, w, h], ink) => {
            let (x, y, w, h) = (number(*x), number(*y), number(*w), number(*h));
            writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {}/>", colours.fill(*ink))
        }
        Mark::Line { points, ink, width, dash } => line_mark(out, points, *ink, *width, *dash, colours),
        Mark::Whisker(ends, ink) => {
            let (lines, width) = whisker(*ends);
            lines.iter().try_for_each(|line| line_mark(out, line, *ink, width, [0.0, 0.0], colours))
        }
        Mark::Ring { at: [x, y], size, ink } => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {} stroke-width=\"0.7\"/>",
            number(*x),
            number(*y),
            number(*size),
            colours.stroke(*ink)
        ),
        Mark::Shape { shape, at, size, ink, hollow, tip: _ } => {
            shape_mark(out, *shape, *at, *size, (*ink, *hollow), colours)
        }
        Mark::Text { at: [x, y], anchor, upwards, ink, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y) = (number(*x), number(*y));
            let turn = if *upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let fill = colours.fill(*ink);
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" {fill}{turn}>{}</text>",
                escaped(text)
            )
        }
    };
}

fn line_mark(
    out: &mut String,
    points: &[[f64; 2]],
    ink: Ink,
    width: f64,
    dash: [f64; 2],
    colours: Colours,
) -> std::fmt::Result {
    let dash = match dash {
        [0.0, _] => String::new(),
        [on, off] => format!(" stroke-dasharray=\"{} {}\"", number(on), number(off)),
    };
    let (path, stroke, width) = (path(points), colours.stroke(ink), number(width));
    writeln!(out, "<path d=\"{path}\" {stroke} stroke-width=\"{width}\"{dash} stroke-linejoin=\"round\"/>")
}

fn path(points: &[[f64; 2]]) -> String {
    let mut text = String::new();
    for (at, [x, y]) in points.iter().enumerate() {
        let letter = if at == 0 { 'M' } else { 'L' };
        let _ = write!(text, "{letter}{},{}", number(*x), number(*y));
    }
    text
}

fn shape_mark(
    out: &mut String,
    shape: Shape,
    [x, y]: [f64; 2],
    size: f64,
    (ink, hollow): (Ink, bool),
    colours: Colours,
) -> std::fmt::Result {
    let looks = colours.both(if hollow { Ink::Paper } else { ink }, ink);
    match shape {
        Shape::Dot => {
            let fill = colours.fill(ink);
            writeln!(out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {fill}/>", number(x), number(y), number(size))
        }
        Shape::Circle => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {looks} stroke-width=\"0.8\"/>",
            number(x),
            number(y),
            number(size)
        ),
        other => {
            let corner = |[dx, dy]: &[f64; 2]| [x + dx * size, y + dy * size];
            let corners: Vec<[f64; 2]> = other.corners().iter().map(corner).collect();
            writeln!(out, "<path d=\"{}Z\" {looks} stroke-width=\"0.8\"/>", path(&corners))
        }
    }
}
