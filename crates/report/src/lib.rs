//! How results are shown: as text, as one HTML file, as figures for papers.
//!
//! | module | what |
//! |---|---|
//! | [`view`] | one report as plain data |
//! | [`terminal`] | that report as text |
//! | [`report`] | that report as one HTML file, with traces |
//! | [`compare`] | a comparison as text and as a page |
//! | [`figures`] | charts and tables for papers |
//! | [`verification`] | the papers' figures beside ours, as text |
//! | [`demo`] | the demonstration in words |
//!
//! Charts of all of them are drawn by one core, `draw.rs`.
#![forbid(unsafe_code)]

pub mod compare;
pub mod demo;
mod draw;
pub mod figures;
pub mod report;
pub mod terminal;
pub mod verification;
pub mod view;

pub use view::View;
