//! One session for every command that touches a device: locate, permit, claim,
//! open, watch, measure, record, close, resume.
//!
//! How: a command says what it is asked for ([`Order`]) and what its work needs of
//! the target ([`Needs`]). Everything that can be refused is refused before
//! anything is made ([`refuse`]); then the folder is claimed and the target opened
//! ([`begin`]), or both are found again (`session/resume.rs`). The work itself is
//! done through [`Session::device_and_store`], with progress told by
//! `session/tell.rs`, and the session is closed by [`Session::close`], which says
//! how to go on where it was cut off.

mod probe;
mod resume;
mod tell;

pub use probe::{Kept, Probed, Probing, told};
pub use resume::{complete_before, find};
pub use tell::{Shown, Teller};

use crate::command::{profile, report};
use crate::interrupt;
use crate::printable::word;
use crate::same_device::{self, to_type};
use crate::target::{self, Access, Opened, Place, Target, claim_output};
use crate::typed::{Chosen, Typed};
use crate::{describe, limits, usage};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uflip_device::identity::{SysPaths, host_facts};
use uflip_device::{EngineOptions, measure_overhead};
use uflip_measure::run::RunSpec;
use uflip_measure::{Pattern, Plan};
use uflip_store::{Claim, Durability, Manifest, Store};

/// What a command is asked for, as far as all of them are.
pub struct Order {
    /// What a person types to have it: `run`.
    pub command: &'static str,
    /// What is measured; a resume may leave it to the folder.
    pub target: Option<Target>,
    /// The values of `--erase-device`.
    pub consents: Vec<String>,
    /// The folder for the results.
    pub output: Option<PathBuf>,
    /// The seed that was typed.
    pub seed: Option<u64>,
    /// Go on in the folder.
    pub resume: bool,
    /// Go on although it is another device.
    pub other_device: bool,
    /// The scratch file was not asked for and nobody asked to keep it.
    pub remove_scratch: bool,
    /// Scratch files stay.
    pub keep_scratch: bool,
    /// All options.
    pub typed: Typed,
    /// Options that a resume heeds.
    pub heeded: &'static [&'static str],
    /// What a person sees of it.
    pub shown: Shown,
}

impl Order {
    /// What is asked of `target` by a command without further wishes.
    pub fn new(command: &'static str, target: Option<Target>) -> Order {
        Order {
            command,
            target,
            consents: Vec::new(),
            output: None,
            seed: None,
            resume: false,
            other_device: false,
            remove_scratch: false,
            keep_scratch: false,
            typed: Typed::default(),
            heeded: &[],
            shown: Shown::Lines,
        }
    }

    /// Of a device in virtual time, into `folder`, without a word.
    pub fn in_silence(command: &'static str, target: Target, seed: u64, folder: &Path) -> Order {
        let (output, seed) = (Some(folder.to_path_buf()), Some(seed));
        Order { output, seed, shown: Shown::Nothing, ..Order::new(command, Some(target)) }
    }

    /// What is measured.
    ///
    /// # Errors
    /// Where only a folder says so.
    pub fn target(&self) -> anyhow::Result<&Target> {
        self.target.as_ref().context("a target is needed")
    }

    /// The folder that `--resume` goes on in.
    ///
    /// # Errors
    /// Where none is named.
    pub fn folder(&self) -> anyhow::Result<&Path> {
        self.output.as_deref().context("--resume needs -o DIR")
    }

    /// What is typed to go on in `dir`.
    fn again(&self, target: &Target, dir: &Path) -> String {
        // What a folder says itself is not typed again.
        let again = match self.command {
            "run" => format!("uflip run -o {} --resume", word(&dir.to_string_lossy())),
            command => to_type(command, &target.to_string(), dir),
        };
        again + &self.consents_again()
    }

    /// The consents as they are typed again.
    pub fn consents_again(&self) -> String {
        self.consents.iter().map(|value| format!(" --erase-device {}", word(value))).collect()
    }
}

/// Has Ctrl-C end the session after the run in progress.
///
/// # Errors
/// Where that cannot be had, or there is no terminal for the live page.
pub fn listen(shown: Shown) -> anyhow::Result<()> {
    match shown {
        Shown::Live if !std::io::stderr().is_terminal() => {
            Err(usage("--live needs a terminal on standard error; leave it away"))
        }
        // The page says what happens.
        Shown::Live => interrupt::listen_with(""),
        Shown::Lines => interrupt::listen(),
        Shown::Nothing => Ok(()),
    }
}

/// What a work needs of its target.
#[derive(Clone, Copy)]
pub enum Needs<'a> {
    /// What a plan does.
    Plan(&'a Plan),
    /// One pattern.
    Pattern(&'a Pattern),
    /// To write anywhere.
    Everything,
}

impl Needs<'_> {
    /// Whether anything is written or trimmed.
    pub fn writes(&self) -> bool {
        match self {
            Needs::Plan(plan) => plan.summary().reset_bytes.0 > 0 || plan.runs().any(|r| r.work.writes()),
            Needs::Pattern(pattern) => pattern.writes(),
            Needs::Everything => true,
        }
    }
}

/// Refuses what cannot or must not be done on this target, before anything is
/// made: trims beside other IOs of a file, more memory than there is, writing
/// where that is not allowed.
///
/// # Errors
/// What, and what to type instead.
pub fn refuse(
    place: &Place,
    needs: Needs<'_>,
    engine: &EngineOptions,
    consents: &[String],
) -> anyhow::Result<()> {
    match needs {
        Needs::Plan(plan) => {
            target::refuse_mixed_trims(place, plan.runs().filter_map(RunSpec::pattern))?;
            limits::room_for_plan(plan, engine, place.virtual_time)?;
        }
        Needs::Pattern(pattern) => {
            target::refuse_mixed_trims(place, [pattern])?;
            limits::room_for_pattern(pattern, engine, place.virtual_time)?;
        }
        Needs::Everything => {}
    }
    if needs.writes() { place.may_be_measured_with_writes(consents) } else { Ok(()) }
}

/// Opens a target for what is needed; what makes its results less sound is said.
///
/// # Errors
/// A refusal, or what the system says.
pub fn open(
    target: &Target,
    needs: Needs<'_>,
    engine: EngineOptions,
    consents: &[String],
    scratch_time: Option<Duration>,
) -> anyhow::Result<Opened> {
    let access = if needs.writes() { Access::Write(consents) } else { Access::Read };
    target::open(target, access, engine, scratch_time)
}

/// What every folder's manifest keeps of what was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
    /// The target's name, from every folder.
    pub target: String,
    /// How it is driven; none where it is not.
    #[serde(flatten)]
    engine: Option<EngineOptions>,
    /// The target is a scratch file that nobody asked to keep.
    #[serde(default)]
    pub remove_scratch: bool,
    /// The options, given or by default; a resume refuses others.
    #[serde(default, skip_serializing_if = "Chosen::is_empty")]
    pub chosen: Chosen,
}

impl Stored {
    /// Of what is asked for now.
    fn of(order: &Order, target: &Target, engine: EngineOptions) -> Stored {
        Stored {
            target: target.to_string(),
            engine: target.path().map(|_| engine),
            remove_scratch: order.remove_scratch,
            chosen: order.typed.chosen(target),
        }
    }

    /// The same as a phrase, where it is driven at all.
    pub fn driven(&self) -> String {
        self.engine.map(|engine| format!(", {}", describe::engine(&engine))).unwrap_or_default()
    }

    /// How the target is driven; `seed` is the folder's.
    pub fn engine(&self, seed: u64) -> EngineOptions {
        self.engine.unwrap_or(EngineOptions { seed, ..EngineOptions::default() })
    }
}

/// A target that is open, and a folder that is claimed.
pub struct Begun {
    claim: Claim,
    /// The target.
    pub opened: Opened,
    /// For the manifest.
    pub stored: Stored,
}

/// Begins: refuses, claims and opens, in this order.
///
/// # Errors
/// A refusal, or what the system says.
pub fn begin(
    order: &Order,
    place: &Place,
    needs: Needs<'_>,
    engine: EngineOptions,
    scratch_time: Option<Duration>,
) -> anyhow::Result<Begun> {
    refuse(place, needs, &engine, &order.consents)?;
    let claim = claim_output(order.output.as_deref())?;
    let opened = open(&place.target, needs, engine, &order.consents, scratch_time)?;
    let stored = Stored::of(order, &opened.target, engine);
    Ok(Begun { claim, opened, stored })
}

impl Begun {
    /// Makes the store, with the plan and what was asked for.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn into_session(
        self,
        order: &Order,
        plan: &Plan,
        options: &impl Serialize,
    ) -> anyhow::Result<Session> {
        let Begun { claim, opened, stored } = self;
        let manifest = manifest(plan.seed, &opened, &stored, options)?;
        let dir = claim.dir().to_path_buf();
        let store = Store::create_in(claim, &manifest, &serde_json::to_value(plan)?)?;
        Ok(Session::new(order, dir, store, opened, stored))
    }
}

fn manifest(
    seed: u64,
    opened: &Opened,
    stored: &Stored,
    options: &impl Serialize,
) -> anyhow::Result<Manifest> {
    let (host, overhead) = (host_facts(&SysPaths::default()), measure_overhead());
    let mut manifest = Manifest::new(env!("CARGO_PKG_VERSION"), seed);
    let driven = stored.engine.map(|engine| format!("; {}", describe::engine(&engine)));
    manifest.target = serde_json::json!({
        "summary": format!("{}{}", opened.summary, driven.unwrap_or_default()),
        "name": opened.target.to_string(),
        "facts": opened.facts,
        "identity": same_device::for_manifest(&opened.target),
        "warnings": opened.warnings,
    });
    manifest.host = summarised(&host, describe::host(&host))?;
    manifest.overhead = summarised(&overhead, describe::overhead(&overhead))?;
    manifest.options = serde_json::to_value(options)?;
    Ok(manifest)
}

/// Facts with a line for people beside them.
fn summarised(facts: &impl Serialize, summary: String) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(facts)?;
    value["summary"] = summary.into();
    Ok(value)
}

/// Everything ready to be measured.
pub struct Session {
    /// The results folder.
    pub dir: PathBuf,
    /// What is kept.
    pub store: Store,
    /// The target.
    pub opened: Opened,
    /// What the manifest keeps of what was asked for.
    pub stored: Stored,
    /// What goes on beside the runs.
    pub probing: Probing,
    /// What a person sees of it.
    pub shown: Shown,
    go_on: String,
}

impl Session {
    fn new(order: &Order, dir: PathBuf, mut store: Store, opened: Opened, stored: Stored) -> Session {
        if opened.device.is_virtual() {
            store.set_durability(Durability::RELAXED);
        }
        let (probing, go_on) = (Probing::of(&opened.target), order.again(&opened.target, &dir));
        Session { dir, store, opened, stored, probing, shown: order.shown, go_on }
    }

    /// The device with the probes beside it, and where its runs are kept with what
    /// those say.
    pub fn device_and_store(&mut self) -> (Probed<'_>, Kept<'_>) {
        let probing = &self.probing;
        (Probed { device: &mut *self.opened.device, probing }, Kept { sink: &mut self.store, probing })
    }

    /// Says what makes its results less sound, and where they go.
    pub fn announce(&self, notes: &[String]) {
        if self.shown == Shown::Nothing {
            return;
        }
        self.opened.warnings.iter().for_each(|warning| crate::say!("warning: {warning}"));
        notes.iter().for_each(|note| crate::say!("note: {note}"));
        crate::say!("results go to {}", self.dir.display());
    }

    /// Ends the session that came to `finished` (true where it was stopped from
    /// outside); gives the folder. Where anything is left to do, the error says
    /// how to go on.
    ///
    /// # Errors
    /// What went wrong, or that it was stopped.
    pub fn close(mut self, finished: anyhow::Result<bool>) -> anyhow::Result<PathBuf> {
        let finished = finished.and_then(|stopped| Ok(self.store.sync().map(|()| stopped)?));
        let disturbed = self.probing.disturbed().len();
        if disturbed > 0 && self.shown != Shown::Nothing {
            crate::say!("note: something else was active during {disturbed} runs");
        }
        let Session { dir, store, opened, go_on, .. } = self;
        let kept = store.len();
        // Let go before anything else is done with folder and device.
        drop((store, opened));
        let go_on =
            || format!("{kept} runs are kept in {}; go on with: {go_on}", word(&dir.to_string_lossy()));
        if finished.with_context(go_on)? {
            bail!("interrupted; {}", go_on());
        }
        Ok(dir)
    }
}

/// Makes profile and report of a finished folder; removes the scratch file that
/// nobody asked for, last, as without it there is nothing to go on with.
///
/// # Errors
/// Where the results cannot be read or the files not be written.
pub fn conclude(dir: &Path, stored: &Stored, keep_scratch: bool) -> anyhow::Result<()> {
    profile::make(dir)?;
    report::write_report(dir, None)?;
    let path = Path::new(&stored.target);
    if stored.remove_scratch && !keep_scratch && path.exists() {
        target::remove_scratch(path);
    }
    Ok(())
}
