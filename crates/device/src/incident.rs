//! What befell a run from outside while it was measured, as far as it can be
//! told: any of these makes its response times other than the device's.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// What befell one run; nothing, as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Incidents {
    /// The process stood still (SIGSTOP, a debugger) for so long; `None` where
    /// it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Nanos>,
    /// The machine was suspended for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Nanos>,
    /// The virtual machine was paused or its processors were taken away for so
    /// long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_paused: Option<Nanos>,
    /// The file lies on its disk otherwise than before the run, or has holes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub layout_changed: bool,
}

impl Incidents {
    /// True where nothing befell the run.
    pub fn is_none(&self) -> bool {
        *self == Incidents::default()
    }
}
