//! Names of patterns, micro-benchmarks, presets and states as a person types them.

use std::borrow::Cow;

/// Characters of a wrong word that are said again.
const MOST_SHOWN: usize = 60;

/// A word that is none of those possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}; type {instead}")]
pub struct NameError {
    text: String,
    what: &'static str,
    instead: Cow<'static, str>,
}

impl NameError {
    /// `text` is not a `what`; type `instead`.
    pub(crate) fn new(text: &str, what: &'static str, instead: impl Into<Cow<'static, str>>) -> NameError {
        let shown: String = text.chars().take(MOST_SHOWN).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        NameError { text: shown + more, what, instead: instead.into() }
    }
}
