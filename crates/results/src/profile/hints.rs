//! stub
use super::Profile;
use super::gather::Facts;
use serde::{Deserialize, Serialize};
/// stub
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The hint is good advice on this device.
    Holds,
    /// It is not.
    DoesNotHold,
    /// What it takes to tell was not measured.
    Unknown,
}
/// One hint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// stub
    pub id: String,
    /// stub
    pub verdict: Verdict,
    /// stub
    pub statement: String,
    /// stub
    pub evidence: Vec<u32>,
}
pub(super) fn hints(_: &Profile, _: &Facts) -> Vec<Hint> {
    Vec::new()
}
