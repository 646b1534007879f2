//! A finding: something that speaks against the results.
//!
//! What is found is in [`super::soundness`] and [`super::calibrated`].

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Figures may be off.
    Warning,
    /// Figures mean something else than they say.
    Serious,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// In words.
    pub statement: String,
    /// The runs concerned.
    pub runs: Vec<u32>,
}

pub(super) fn finding(code: &str, severity: Severity, statement: String, runs: Vec<u32>) -> Finding {
    Finding { code: code.into(), severity, statement, runs }
}
