//! IO patterns (stub: the text only, until the pattern room is built).
use serde::{Deserialize, Serialize};

/// A pattern by its text form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(pub String);

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
