//! Marks as SVG: as a file of its own, or as a part of a page whose style has
//! the colours.
//!
//! Texts are escaped; nothing but what is drawn here reaches the markup.

use super::layout::{Anchor, FONT, Mark};
use super::{Ink, Shape};
use std::fmt::Write;

impl Ink {
    /// Red, green and blue.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Ink::Text => [0x1b, 0x1f, 0x24],
            Ink::Soft => [0x45, 0x4c, 0x55],
            Ink::Frame => [0x6b, 0x6f, 0x76],
            Ink::Grid => [0xe3, 0xe3, 0xde],
            Ink::Shade => [0xef, 0xef, 0xe8],
            Ink::Paper => [0xff, 0xff, 0xff],
            Ink::Sr => [0x3a, 0x9b, 0xd9],
            Ink::Rr => [0x00, 0x60, 0xa0],
            Ink::Sw => [0xe6, 0x9f, 0x00],
            Ink::Rw => [0xc8, 0x4e, 0x00],
            Ink::Other(at) => {
                let six = [
                    [0x00, 0x60, 0xa0],
                    [0xc8, 0x4e, 0x00],
                    [0x00, 0x9e, 0x73],
                    [0xb4, 0x5a, 0x90],
                    [0x6b, 0x6f, 0x76],
                    [0xe6, 0x9f, 0x00],
                ];
                six[usize::from(at) % 6]
            }
        }
    }

    /// The class of the colour in a page.
    fn class(self) -> String {
        match self {
            Ink::Text => "i-text".into(),
            Ink::Soft => "i-soft".into(),
            Ink::Frame => "i-frame".into(),
            Ink::Grid => "i-grid".into(),
            Ink::Shade => "i-shade".into(),
            Ink::Paper => "i-paper".into(),
            Ink::Sr => "i-sr".into(),
            Ink::Rr => "i-rr".into(),
            Ink::Sw => "i-sw".into(),
            Ink::Rw => "i-rw".into(),
            Ink::Other(at) => format!("i-{}", at % 6),
        }
    }
}

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
            Colours::Plain => format!("fill=\"{}\"", hex(ink)),
            Colours::Classes => format!("class=\"f {}\"", ink.class()),
        }
    }

    fn stroke(self, ink: Ink) -> String {
        match self {
            Colours::Plain => format!("fill=\"none\" stroke=\"{}\"", hex(ink)),
            Colours::Classes => format!("class=\"s {}\"", ink.class()),
        }
    }

    /// Filled with one, outlined by the other.
    fn both(self, fill: Ink, stroke: Ink) -> String {
        match self {
            Colours::Plain => format!("fill=\"{}\" stroke=\"{}\"", hex(fill), hex(stroke)),
            Colours::Classes if fill == Ink::Paper => format!("class=\"h {}\"", stroke.class()),
            Colours::Classes => format!("class=\"b {}\"", stroke.class()),
        }
    }
}

fn hex(ink: Ink) -> String {
    let [r, g, b] = ink.rgb();
    format!("#{r:02x}{g:02x}{b:02x}")
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
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// The marks as an SVG file of `size` points.
pub fn document(marks: &[Mark], size: [f64; 2], title: &str) -> String {
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
pub fn inline(marks: &[Mark], size: [f64; 2], title: &str) -> String {
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
        Mark::Line { points, ink, width, dash } => {
            let dash = match dash {
                [0.0, _] => String::new(),
                [on, off] => format!(" stroke-dasharray=\"{} {}\"", number(*on), number(*off)),
            };
            writeln!(
                out,
                "<path d=\"{}\" {} stroke-width=\"{}\"{dash} stroke-linejoin=\"round\"/>",
                path(points),
                colours.stroke(*ink),
                number(*width)
            )
        }
        Mark::Shape { shape, at, size, ink, hollow } => {
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
            let corners = corners(other, [x, y], size);
            writeln!(out, "<path d=\"{}Z\" {looks} stroke-width=\"0.8\"/>", path(&corners))
        }
    }
}

/// The corners of a shape that has some.
pub(super) fn corners(shape: Shape, [x, y]: [f64; 2], size: f64) -> Vec<[f64; 2]> {
    let unit: &[[f64; 2]] = match shape {
        Shape::Triangle => &[[0.0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
        Shape::Diamond => &[[0.0, -1.2], [1.2, 0.0], [0.0, 1.2], [-1.2, 0.0]],
        Shape::Square | Shape::Circle | Shape::Dot => &[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
    };
    unit.iter().map(|[dx, dy]| [x + dx * size, y + dy * size]).collect()
}
