//! A figure's vectors as pixels: PNG of 300 dots an inch.
//!
//! Method: `resvg` renders the very file that `svg.rs` writes. Letters are those of the font in the crate, whatever
//! the machine has, so that a figure is the same everywhere; a character that the font lacks is an empty box.
//! Source: PNG specification (W3C, third edition), pHYs, which `resvg` does not write.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::Arc;

/// Dots in an inch.
const DOTS: f32 = 300.0;
/// Dots in a metre.
const PER_METRE: u32 = 11_811;
/// The signature, and the header that comes first.
const BEFORE_PHYS: usize = 8 + 25;

/// The letters, and their licence beside the file.
const FONT: &[u8] = include_bytes!("DejaVuSansCondensed-subset.ttf");
const FAMILY: &str = "DejaVu Sans";

/// What a figure's file (as [`svg::document`](super::svg::document) writes it) looks like.
pub(crate) struct Painter(Options<'static>);

impl Painter {
    pub fn new() -> Painter {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(FONT.to_vec());
        fonts.set_sans_serif_family(FAMILY);
        Painter(Options {
            dpi: DOTS,
            font_family: FAMILY.into(),
            fontdb: Arc::new(fonts),
            ..Options::default()
        })
    }

    /// The figure as a PNG file; `None` where `svg` is none.
    pub fn image(&self, svg: &str) -> Option<Vec<u8>> {
        let tree = Tree::from_str(svg, &self.0).ok()?;
        let (wide, high) = (tree.size().width(), tree.size().height());
        let (width, height) = (wide.round() as u32, high.round() as u32);
        let mut pixels = Pixmap::new(width, height)?;
        pixels.fill(resvg::tiny_skia::Color::WHITE);
        let whole = Transform::from_scale(width as f32 / wide, height as f32 / high);
        resvg::render(&tree, whole, &mut pixels.as_mut());
        let mut png = pixels.encode_png().ok()?;
        png.splice(BEFORE_PHYS..BEFORE_PHYS, phys());
        Some(png)
    }
}

/// The chunk that says how large a pixel is.
fn phys() -> Vec<u8> {
    let mut data = b"pHYs".to_vec();
    data.extend([PER_METRE.to_be_bytes(), PER_METRE.to_be_bytes()].concat());
    data.push(1);
    let mut crc = flate2::Crc::new();
    crc.update(&data);
    let length = data.len() as u32 - 4;
    [&length.to_be_bytes()[..], &data, &crc.sum().to_be_bytes()].concat()
}
