//! Names of patterns, micro-benchmarks, presets and states as a person types them.

/// A word that is none of those possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}; type {instead}")]
pub struct NameError {
    text: String,
    what: &'static str,
    instead: &'static str,
}

impl NameError {
    /// `text` is not a `what`; type `instead`.
    pub(crate) fn new(text: &str, what: &'static str, instead: &'static str) -> NameError {
        NameError { text: text.to_string(), what, instead }
    }
}
