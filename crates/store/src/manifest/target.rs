//! What a manifest says of the target: name, facts, identity, and whether it was
//! another device from some run on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use uflip_device::identity::{DeviceFacts, Difference, Identity};

/// The target, as its device tells of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetTold {
    /// In one line, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// As it is typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is known of it.
    #[serde(default, skip_serializing_if = "TargetFacts::is_unknown")]
    pub facts: TargetFacts,
    /// Which device it is, with its contents before anything was written to it;
    /// `None` for what is not in this machine, and in folders of earlier versions.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// What makes its results less sound, in words.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Since when it is another device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<DeviceChange>,
    /// The devices of a program, by what it calls them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, TargetTold>,
    /// What this version does not know and nothing reads.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Another device in the place of the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceChange {
    /// The first run that was missing then; `None` where none was.
    pub from_run: Option<u32>,
    /// How many were kept.
    pub runs_kept: usize,
    /// The moment, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// What was otherwise.
    pub differences: Vec<Difference>,
    /// The identity before.
    pub was: Option<Identity>,
}

/// What is known of a target, by its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub enum TargetFacts {
    /// Nothing.
    #[default]
    Unknown,
    /// Of a block device or a file.
    Device(Box<DeviceFacts>),
    /// Of a simulated device.
    Simulated {
        /// As it is typed.
        path: String,
        /// Its description, which the simulator reads.
        description: Value,
    },
    /// Of the device that answers at once.
    Null {
        /// As it is typed.
        path: String,
    },
}

/// The objects that have no facts of a device, as they are written.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind")]
enum NoDevice {
    #[serde(rename = "sim")]
    Simulated { path: String, description: Value },
    #[serde(rename = "null")]
    Null { path: String },
}

impl TargetFacts {
    fn is_unknown(&self) -> bool {
        *self == TargetFacts::Unknown
    }

    /// Of a block device or a file.
    pub fn device(&self) -> Option<&DeviceFacts> {
        match self {
            TargetFacts::Device(facts) => Some(facts),
            _ => None,
        }
    }
}

impl From<TargetFacts> for Value {
    fn from(facts: TargetFacts) -> Value {
        // Plain structures with names for keys: none of them can fail.
        let value = match facts {
            TargetFacts::Unknown => Ok(Value::Null),
            TargetFacts::Device(facts) => serde_json::to_value(facts),
            TargetFacts::Simulated { path, description } => {
                serde_json::to_value(NoDevice::Simulated { path, description })
            }
            TargetFacts::Null { path } => serde_json::to_value(NoDevice::Null { path }),
        };
        value.unwrap_or_default()
    }
}

impl TryFrom<Value> for TargetFacts {
    type Error = String;

    fn try_from(value: Value) -> Result<TargetFacts, String> {
        let fault = |error: serde_json::Error| format!("target.facts: {error}");
        if value.is_null() {
            return Ok(TargetFacts::Unknown);
        }
        if let Some("sim" | "null") = value.get("kind").and_then(Value::as_str) {
            return Ok(match NoDevice::deserialize(value).map_err(fault)? {
                NoDevice::Simulated { path, description } => TargetFacts::Simulated { path, description },
                NoDevice::Null { path } => TargetFacts::Null { path },
            });
        }
        Ok(TargetFacts::Device(DeviceFacts::deserialize(value).map_err(fault)?.into()))
    }
}
