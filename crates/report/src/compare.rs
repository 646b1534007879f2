//! A comparison shown: as text, as one HTML file.

mod page;
mod text;

pub use page::{is_ours, render as render_page};
pub use text::render as render_text;
