//! What a folder holds and what was asked for: the manifest's `options`.
//!
//! How: an enum with a variant a kind of folder, each with its own options; beside it
//! what all kinds have. Folders of before `kind` are told by what they have: a job's
//! text, the name of a suite among what was chosen, the lines of a search.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uflip_device::{EngineOptions, Nanos};
use uflip_measure::auto::AutoOptions;
use uflip_measure::{job, logical_block};

/// The values of options by their long names, given or by default.
pub type Chosen = BTreeMap<String, Vec<String>>;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Map<String, Value>", try_from = "Map<String, Value>")]
pub struct Options {
    /// The target's name.
    pub target: String,
    /// How it is driven; `None` where it is not.
    pub engine: Option<EngineOptions>,
    /// The target is a scratch file that nobody asked to keep.
    pub remove_scratch: bool,
    /// The options, given or by default; a resume refuses others. `None` in folders
    /// of before this field.
    pub chosen: Option<Chosen>,
    /// The kind of folder, and what that kind was asked for.
    pub asked: Asked,
    /// What this version does not know and nothing reads.
    pub rest: Map<String, Value>,
}

/// What is measured in a folder.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// `uflip run`; what `uflip calibrate` leaves is one that came to its plan.
    Run {
        /// Of all runs and pauses together.
        budget: Option<Nanos>,
        /// What the automatic method was asked for; `None` where lengths are fixed.
        auto: Option<Box<AutoOptions>>,
    },
    /// `uflip job`: the whole job as text.
    Job(String),
    /// `uflip run --suite`: the same of a ready-made job.
    Suite(String),
    /// `uflip logical-block`: the search, a job of its own.
    LogicalBlock(String),
    /// A program on the data face, by the name of its command, with its arguments by
    /// names of its own.
    Program {
        /// Its name.
        name: String,
        /// What it was asked for, its devices included.
        arguments: BTreeMap<String, String>,
    },
}

impl Asked {
    /// A benchmark of fixed lengths without a limit.
    pub const RUN: Asked = Asked::Run { budget: None, auto: None };

    /// What it is called in the file.
    const fn kind(&self) -> &'static str {
        match self {
            Asked::Run { .. } => "run",
            Asked::Job(_) => "job",
            Asked::Suite(_) => "suite",
            Asked::LogicalBlock(_) => "logical_block",
            Asked::Program { .. } => "program",
        }
    }

    /// The job as text, where one is measured.
    pub fn job(&self) -> Option<&str> {
        match self {
            Asked::Run { .. } | Asked::Program { .. } => None,
            Asked::Job(text) | Asked::Suite(text) | Asked::LogicalBlock(text) => Some(text),
        }
    }

    /// What the automatic method was asked for.
    pub fn auto(&self) -> Option<&AutoOptions> {
        match self {
            Asked::Run { auto, .. } => auto.as_deref(),
            _ => None,
        }
    }

    /// The command that goes on with it; a program's is begun anew by it.
    pub fn command(&self) -> &str {
        match self {
            Asked::Run { .. } => "run",
            Asked::Job(_) | Asked::Suite(_) => "job",
            Asked::LogicalBlock(_) => "logical-block",
            Asked::Program { name, .. } => name,
        }
    }
}

impl Options {
    /// Of a target that is not driven, with nothing chosen.
    pub fn of(target: &str, asked: Asked) -> Options {
        Options {
            target: target.into(),
            engine: None,
            remove_scratch: false,
            chosen: None,
            asked,
            rest: Map::new(),
        }
    }
}

impl Options {
    /// How the target is driven, or would be; `seed` is the folder's.
    pub fn engine(&self, seed: u64) -> EngineOptions {
        self.engine.unwrap_or(EngineOptions { seed, ..EngineOptions::default() })
    }
}

impl From<Options> for Map<String, Value> {
    fn from(options: Options) -> Map<String, Value> {
        let Options { target, engine, remove_scratch, chosen, asked, rest } = options;
        let (kind, mut fields) = (asked.kind(), rest);
        // Plain structures with names for keys: none of them can fail.
        if let Ok(Value::Object(engine)) = serde_json::to_value(engine) {
            fields.extend(engine);
        }
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("kind", kind.into());
        put("target", target.into());
        put("remove_scratch", remove_scratch.into());
        if let Some(chosen) = chosen {
            put("chosen", json!(chosen));
        }
        match asked {
            Asked::Run { budget, auto } => {
                put("budget_ns", json!(budget));
                if let Some(auto) = auto {
                    put("auto", json!(auto));
                }
            }
            Asked::Job(text) | Asked::Suite(text) | Asked::LogicalBlock(text) => {
                put("job", text.into());
            }
            Asked::Program { name, arguments } => {
                put("program", name.into());
                put("arguments", json!(arguments));
            }
        }
        fields
    }
}

impl TryFrom<Map<String, Value>> for Options {
    type Error = String;

    fn try_from(mut fields: Map<String, Value>) -> Result<Options, String> {
        let engine = engine(&mut fields)?;
        let fields = &mut fields;
        let target: Option<String> = take(fields, "target")?;
        let target = target.ok_or("options.target is missing")?;
        let chosen: Option<Chosen> = take(fields, "chosen")?;
        let remove_scratch = take(fields, "remove_scratch")?.unwrap_or(false);
        let kind: Option<String> = take(fields, "kind")?;
        let job: Option<String> = take(fields, "job")?;
        let asked = match (kind.as_deref(), job) {
            (None, Some(text)) => job_of_before(text, chosen.as_ref()),
            (Some("job"), Some(text)) => Asked::Job(text),
            (Some("suite"), Some(text)) => Asked::Suite(text),
            (Some("logical_block"), Some(text)) => Asked::LogicalBlock(text),
            (None | Some("run"), None) => {
                Asked::Run { budget: take(fields, "budget_ns")?, auto: take(fields, "auto")? }
            }
            (Some("program"), None) => Asked::Program {
                name: take(fields, "program")?.ok_or("options.program is missing")?,
                arguments: take(fields, "arguments")?.unwrap_or_default(),
            },
            (Some("job" | "suite" | "logical_block"), None) => return Err("options.job is missing".into()),
            (Some(kind @ ("run" | "program")), Some(_)) => {
                return Err(format!("options.job: a {kind} has none"));
            }
            (Some(other), _) => {
                return Err(format!(
                    "options.kind: {other:?} is none of run, job, suite, logical_block, program"
                ));
            }
        };
        let rest = std::mem::take(fields);
        Ok(Options { target, engine, remove_scratch, chosen, asked, rest })
    }
}

/// Takes a field out; `None` where it is not there, or null.
fn take<T: DeserializeOwned>(fields: &mut Map<String, Value>, name: &str) -> Result<Option<T>, String> {
    let value = fields.remove(name).unwrap_or(Value::Null);
    Option::deserialize(value).map_err(|error| format!("options.{name}: {error}"))
}

/// How the target is driven; `None` where nothing is said of it.
fn engine(fields: &mut Map<String, Value>) -> Result<Option<EngineOptions>, String> {
    const FIELDS: [&str; 5] = ["engine", "buffering", "data", "seed", "discard"];
    if !fields.contains_key("engine") && !fields.contains_key("buffering") {
        return Ok(None);
    }
    let own: Map<String, Value> =
        FIELDS.into_iter().filter_map(|name| Some((name.to_string(), fields.remove(name)?))).collect();
    EngineOptions::deserialize(Value::Object(own))
        .map(Some)
        .map_err(|error| format!("options.{}: {error}", FIELDS.join(", ")))
}

/// The kind of a job's folder of before it was written.
fn job_of_before(text: String, chosen: Option<&Chosen>) -> Asked {
    let search = job::parse(&text).is_ok_and(|job| {
        !job.lines.is_empty() && job.lines.iter().all(|line| line.name.starts_with(logical_block::LINE))
    });
    match chosen {
        _ if search => Asked::LogicalBlock(text),
        Some(chosen) if chosen.contains_key("suite") => Asked::Suite(text),
        _ => Asked::Job(text),
    }
}
