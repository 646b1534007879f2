//! Marks as pixels: PNG of 300 dots an inch.
//!
//! Method: every mark covers a pixel by its distance from the pixel's centre
//! (lines, circles) or by 16 samples in it (corners); letters are a bitmap font.
//! Source: PNG specification (W3C, third edition): signature, IHDR, pHYs, IDAT
//! (zlib, filter 0), IEND.

use super::layout::{Anchor, Mark};
use super::svg::corners;
use super::{Ink, Shape};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use std::io::Write;

/// Pixels in a point.
const SCALE: f64 = 300.0 / 72.0;
/// Pixels in a metre.
const PER_METRE: u32 = 11_811;
/// The font's height, for letters of 7 points.
const HEIGHT: RasterHeight = RasterHeight::Size32;
/// From the top of a letter's raster to its base line, as part of its height.
const BASE: f64 = 0.78;

struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<[u8; 3]>,
}

impl Pixels {
    fn blend(&mut self, x: i64, y: i64, ink: Ink, part: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || y >= self.height || part <= 0.0 {
            return;
        }
        let pixel = &mut self.rgb[y * self.width + x];
        for (old, new) in pixel.iter_mut().zip(ink.rgb()) {
            let mixed = f64::from(*old) + (f64::from(new) - f64::from(*old)) * part.min(1.0);
            *old = mixed.round() as u8;
        }
    }

    /// Blends `ink` into the pixels of a box (in pixels) by `cover` of their centres.
    fn cover(&mut self, [left, top, right, bottom]: [f64; 4], ink: Ink, cover: impl Fn(f64, f64) -> f64) {
        for y in (top.floor() as i64).max(0)..=(bottom.ceil() as i64).min(self.height as i64 - 1) {
            for x in (left.floor() as i64).max(0)..=(right.ceil() as i64).min(self.width as i64 - 1) {
                self.blend(x, y, ink, cover(x as f64 + 0.5, y as f64 + 0.5).clamp(0.0, 1.0));
            }
        }
    }

    fn rect(&mut self, [x, y, w, h]: [f64; 4], ink: Ink) {
        let along = |at: f64, from: f64, to: f64| (at + 0.5).min(to) - (at - 0.5).max(from);
        let area = |px: f64, py: f64| along(px, x, x + w).max(0.0) * along(py, y, y + h).max(0.0);
        self.cover([x - 1.0, y - 1.0, x + w + 1.0, y + h + 1.0], ink, area);
    }

    /// A line from `a` to `b` with round ends.
    fn segment(&mut self, a: [f64; 2], b: [f64; 2], width: f64, ink: Ink) {
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let length = dx * dx + dy * dy;
        let distance = |x: f64, y: f64| {
            let along = if length > 0.0 {
                (((x - a[0]) * dx + (y - a[1]) * dy) / length).clamp(0.0, 1.0)
            } else {
                0.0
            };
            (x - a[0] - along * dx).hypot(y - a[1] - along * dy)
        };
        let r = width / 2.0 + 1.0;
        let around = [a[0].min(b[0]) - r, a[1].min(b[1]) - r, a[0].max(b[0]) + r, a[1].max(b[1]) + r];
        self.cover(around, ink, |x, y| width / 2.0 + 0.5 - distance(x, y));
    }

    fn line(&mut self, points: &[[f64; 2]], width: f64, [on, off]: [f64; 2], ink: Ink) {
        let mut done = 0.0;
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if on <= 0.0 {
                self.segment(a, b, width, ink);
                continue;
            }
            let length = (b[0] - a[0]).hypot(b[1] - a[1]);
            let at = |along: f64| {
                let part = if length > 0.0 { along / length } else { 0.0 };
                [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part]
            };
            let mut along = 0.0;
            while along < length {
                let phase = (done + along) % (on + off);
                let rest = if phase < on { on - phase } else { on + off - phase };
                let end = (along + rest.max(1e-6)).min(length);
                if phase < on {
                    self.segment(at(along), at(end), width, ink);
                }
                along = end;
            }
            done += length;
        }
    }

    fn polygon(&mut self, corners: &[[f64; 2]], ink: Ink) {
        let inside = |x: f64, y: f64| {
            let edges = corners.iter().zip(corners.iter().cycle().skip(1));
            edges
                .filter(|([ax, ay], [bx, by])| {
                    (*ay > y) != (*by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax
                })
                .count()
                % 2
                == 1
        };
        let samples = |x: f64, y: f64| {
            let hits = (0..16).filter(|i| {
                let (dx, dy) = (f64::from(i % 4), f64::from(i / 4));
                inside(x - 0.375 + dx * 0.25, y - 0.375 + dy * 0.25)
            });
            hits.count() as f64 / 16.0
        };
        let (mut low, mut high) = ([f64::MAX; 2], [f64::MIN; 2]);
        for corner in corners {
            for axis in 0..2 {
                low[axis] = low[axis].min(corner[axis]);
                high[axis] = high[axis].max(corner[axis]);
            }
        }
        self.cover([low[0], low[1], high[0], high[1]], ink, samples);
    }

    fn shape(&mut self, shape: Shape, at: [f64; 2], size: f64, ink: Ink, hollow: bool) {
        let inner = if hollow { Ink::Paper } else { ink };
        let stroke = 0.8 * SCALE;
        match shape {
            Shape::Dot => self.segment(at, at, size * 2.0, ink),
            Shape::Circle => {
                self.segment(at, at, size * 2.0 + stroke, ink);
                if hollow {
                    self.segment(at, at, size * 2.0 - stroke, Ink::Paper);
                }
            }
            other => {
                let mut outline = corners(other, at, size);
                self.polygon(&outline, inner);
                outline.extend_from_within(..1);
                self.line(&outline, stroke, [0.0, 0.0], ink);
            }
        }
    }

    fn text(&mut self, at: [f64; 2], anchor: Anchor, upwards: bool, ink: Ink, text: &str) {
        let wide = get_raster_width(FontWeight::Regular, HEIGHT);
        let whole = (text.chars().count() * wide) as f64;
        let back = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => whole / 2.0,
            Anchor::End => whole,
        };
        let base = BASE * HEIGHT.val() as f64;
        for (number, c) in text.chars().enumerate() {
            let Some(glyph) = get_raster(c, FontWeight::Regular, HEIGHT)
                .or_else(|| get_raster('?', FontWeight::Regular, HEIGHT))
            else {
                continue;
            };
            for (row, line) in glyph.rows().enumerate() {
                for (column, part) in line.iter().enumerate() {
                    let along = (number * wide + column) as f64 - back;
                    let down = row as f64 - base;
                    let (x, y) =
                        if upwards { (at[0] + down, at[1] - along) } else { (at[0] + along, at[1] + down) };
                    self.blend(x.round() as i64, y.round() as i64, ink, f64::from(*part) / 255.0);
                }
            }
        }
    }
}

/// The marks of a figure of `size` points, as a PNG file.
pub fn image(marks: &[Mark], size: [f64; 2]) -> Vec<u8> {
    let (width, height) = ((size[0] * SCALE).round() as usize, (size[1] * SCALE).round() as usize);
    let mut pixels = Pixels { width, height, rgb: vec![[255; 3]; width * height] };
    let scaled = |[x, y]: [f64; 2]| [x * SCALE, y * SCALE];
    for mark in marks {
        match mark {
            Mark::Rect(rect, ink) => pixels.rect(rect.map(|v| v * SCALE), *ink),
            Mark::Line { points, ink, width, dash } => {
                let points: Vec<_> = points.iter().map(|p| scaled(*p)).collect();
                pixels.line(&points, width * SCALE, dash.map(|d| d * SCALE), *ink);
            }
            Mark::Shape { shape, at, size, ink, hollow } => {
                pixels.shape(*shape, scaled(*at), size * SCALE, *ink, *hollow);
            }
            Mark::Text { at, anchor, upwards, ink, text } => {
                pixels.text(scaled(*at), *anchor, *upwards, *ink, text);
            }
        }
    }
    encode(&pixels)
}

fn encode(pixels: &Pixels) -> Vec<u8> {
    let mut rows = Vec::with_capacity(pixels.rgb.len() * 3 + pixels.height);
    for row in pixels.rgb.chunks(pixels.width) {
        rows.push(0);
        rows.extend(row.iter().flatten());
    }
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to a Vec cannot fail.
    let packed = zlib.write_all(&rows).and_then(|()| zlib.finish()).unwrap_or_default();
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let sides = [pixels.width as u32, pixels.height as u32].map(u32::to_be_bytes).concat();
    chunk(&mut out, *b"IHDR", &[&sides[..], &[8, 2, 0, 0, 0]].concat());
    chunk(&mut out, *b"pHYs", &[&[PER_METRE; 2].map(u32::to_be_bytes).concat()[..], &[1]].concat());
    chunk(&mut out, *b"IDAT", &packed);
    chunk(&mut out, *b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(name);
    out.extend(data);
    let mut crc = flate2::Crc::new();
    crc.update(&name);
    crc.update(data);
    out.extend(crc.sum().to_be_bytes());
}
