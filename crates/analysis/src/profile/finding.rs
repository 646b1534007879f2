//! A finding: something that speaks against the results.
//!
//! All there are is the list of codes here; what each means, `docs/profile.md`. Rules
//! are in [`super::soundness`], [`super::calibrated`] (what calibration adds) and
//! [`super::beside`] (what the probes beside the runs say), [`super::resumed`].

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

/// Makes the list of codes, each with its text.
macro_rules! codes {
    ($($variant:ident $text:literal)*) => {
        /// The code of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum FindingCode {
            $($variant,)*
        }

        impl FindingCode {
            /// All of them, in the order of `docs/profile.md`.
            #[cfg(test)]
            const ALL: &[FindingCode] = &[$(FindingCode::$variant,)*];

            /// As it is stored and shown.
            pub(super) const fn text(self) -> &'static str {
                match self {
                    $(FindingCode::$variant => $text,)*
                }
            }
        }
    };
}

// The one list: a finding more is a line here, one in `docs/profile.md`, and its rule.
codes! {
    Damaged "damaged"
    Incomplete "incomplete"
    PageCache "page_cache"
    NoRunningPhase "no_running_phase"
    DeviceChanged "device_changed"
    LayoutChanged "layout_changed"
    TimeLost "time_lost"
    Resumed "resumed"
    TargetWarning "target_warning"
    StateNotEnforced "state_not_enforced"
    SpaceReused "space_reused"
    OpenLoop "open_loop"
    Stalls "stalls"
    TimeLimitHit "time_limit_hit"
    StartUpNotCovered "start_up_not_covered"
    StartUpUnclear "start_up_unclear"
    WideInterval "wide_interval"
    RepeatsDiffer "repeats_differ"
    BaselineDrift "baseline_drift"
    StateNotSteady "state_not_steady"
    StateDrift "state_drift"
    PauseTooShort "pause_too_short"
    BaselineCapped "baseline_capped"
    OtherLoad "other_load"
    CpuFrequency "cpu_frequency"
    PlanEdited "plan_edited"
    ValuesDropped "values_dropped"
    OwnOverhead "own_overhead"
}

pub(super) fn finding(code: FindingCode, severity: Severity, statement: String, runs: Vec<u32>) -> Finding {
    Finding { code: code.text().into(), severity, statement, runs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_each_code_and_no_other() {
        let document = include_str!("../../../../docs/profile.md");
        let (_, section) = document.split_once("\n## Soundness\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let told: Vec<&str> = rows.collect();
        let ours: Vec<&str> = FindingCode::ALL.iter().map(|code| code.text()).collect();
        assert_eq!(told, ours);
    }
}
