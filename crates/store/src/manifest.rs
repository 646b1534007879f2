//! `manifest.json` as types: what a folder holds, what was asked for, and on what it
//! was measured.
//!
//! What: everything that is read anywhere has a type; what only people read and this
//! version does not know is kept as it came (`rest`), so that a folder that is gone on
//! with loses nothing. How: text and JSON end here. A field of another shape is an error
//! that names it; what earlier versions did not write yet is `None`. Format:
//! `docs/format.md`.

mod options;
mod target;

pub use options::{Asked, Chosen, Options};
pub use target::{DeviceChange, TargetFacts, TargetTold};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uflip_device::Overhead;
use uflip_device::identity::HostFacts;

/// The version of the store's format that this code writes. It reads the older
/// ones as well (`format1.rs`).
pub const FORMAT: u32 = 2;

/// `manifest.json`: under what circumstances a store was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The store's format version: [`FORMAT`].
    pub format: u32,
    /// The program: `uflip`.
    pub tool: String,
    /// Its version.
    pub tool_version: String,
    /// Random, made with the folder: rows say it too, so that another folder's row
    /// is known. `None` in folders of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// When the store was made, UTC, as `2026-11-21T19:04:08Z`.
    pub created: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The target, as its device tells of it.
    pub target: TargetTold,
    /// The machine that measured.
    pub host: Option<Told<HostFacts>>,
    /// What measuring itself costs; `None` where not measured.
    pub overhead: Option<Told<Overhead>>,
    /// What the folder holds, and the options in force.
    pub options: Options,
}

/// Facts with a line for people beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told<T> {
    /// The facts; their fields are the object's own.
    #[serde(flatten)]
    pub facts: T,
    /// The same in one line; `None` in folders whose maker wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl Manifest {
    /// A manifest of this format made now, of a folder that holds what `options`
    /// say; the target by its name alone, host and overhead not known.
    pub fn new(tool_version: &str, seed: u64, options: Options) -> Manifest {
        Manifest {
            format: FORMAT,
            tool: "uflip".into(),
            tool_version: tool_version.into(),
            folder: Some(crate::files::random_name()),
            created: utc(uflip_device::unix_now() / 1_000_000_000),
            seed,
            target: TargetTold { name: Some(options.target.clone()), ..TargetTold::default() },
            host: None,
            overhead: None,
            options,
        }
    }
}

/// Seconds since 1970 as `2026-11-21T19:04:08Z`.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`.
fn utc(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A part of the manifest as one line of text; `None` for null and nothing.
pub fn one_line(part: &impl Serialize) -> Option<String> {
    match serde_json::to_value(part).ok()? {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("summary") {
                return Some(text.clone());
            }
            let scalar = |(name, value): (&String, &Value)| match value {
                Value::Null | Value::Array(_) | Value::Object(_) => None,
                Value::String(text) => Some(format!("{name} {text}")),
                other => Some(format!("{name} {other}")),
            };
            let text = fields.iter().filter_map(scalar).collect::<Vec<_>>().join(", ");
            (!text.is_empty()).then_some(text)
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn moments_are_told_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_795_287_848), "2026-11-21T19:04:08Z");
    }

    fn manifest() -> Value {
        json!({
            "format": 2, "tool": "uflip", "tool_version": "0", "created": "", "seed": u64::MAX,
            "target": {
                "name": "sim:x", "later": {"a": 1},
                "facts": {"kind": "sim", "path": "sim:x", "description": {"name": "X"}},
            },
            "host": {"hostname": "h", "load_average": [0.1, 0.2, 0.3]},
            "overhead": null,
            "options": {"kind": "job", "target": "sim:x", "job": "a sr bs=4K\n", "later": 7},
        })
    }

    #[test]
    fn what_is_not_known_is_kept_and_written_again() {
        let read: Manifest = serde_json::from_value(manifest()).unwrap();
        assert!(matches!(&read.options.asked, Asked::Job(job) if job == "a sr bs=4K\n"));
        assert_eq!(read.host.as_ref().unwrap().facts.hostname.as_deref(), Some("h"));
        let again = serde_json::to_value(&read).unwrap();
        for at in [
            "/target/later",
            "/target/facts",
            "/options/later",
            "/options/job",
            "/host/load_average",
            "/seed",
        ] {
            assert_eq!(again.pointer(at), manifest().pointer(at), "{at}");
        }
        assert_eq!(serde_json::from_value::<Manifest>(again).unwrap(), read);
    }

    /// Each place that is read, with another shape in it.
    #[test]
    fn another_shape_is_no_manifest() {
        let auto = json!({"plan": 3});
        let places = [
            ("/target", json!("sim:x")),
            ("/target/warnings", json!("none")),
            ("/target/identity", json!("sdb")),
            ("/target/changed", json!([{"from_run": "3"}])),
            ("/target/facts", json!({"kind": "block", "path": 3})),
            ("/target/facts", json!({"kind": "tape"})),
            ("/host", json!({"hostname": 3})),
            ("/overhead", json!({"empty_io_response_ns": "fast"})),
            ("/options", json!(null)),
            ("/options/kind", json!("suit")),
            ("/options/job", json!(["a sr"])),
            ("/options/target", json!(null)),
            ("/options/chosen", json!({"only": "order"})),
            ("/options/engine", json!("telepathy")),
            ("/options/remove_scratch", json!("no")),
        ];
        let fault = |mut of: Value, at: &str, other: Value| {
            let (parent, name) = at.rsplit_once('/').unwrap();
            of.pointer_mut(parent).unwrap()[name] = other;
            serde_json::from_value::<Manifest>(of)
                .err()
                .unwrap_or_else(|| panic!("{at} was read"))
                .to_string()
        };
        for (at, other) in places {
            let told = fault(manifest(), at, other);
            if let Some(name) = at.strip_prefix("/options/").filter(|name| *name != "engine") {
                assert!(told.contains(&format!("options.{name}")), "{at}: {told}");
            }
        }
        let mut run = manifest();
        run["options"] = json!({"target": "sim:x", "budget_ns": null});
        assert!(fault(run, "/options/auto", auto).contains("options.auto: "));
    }
}
