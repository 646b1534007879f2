//! One session for every command that touches a device: locate, permit, claim,
//! open, watch, measure, record, close, resume.
//!
//! How: a command says what it is asked for ([`Order`]) and what its work needs of
//! the target ([`Needs`]). Everything that can be refused is refused before
//! anything is made ([`refuse`]); then the folder is claimed and the target opened
//! ([`begin`]), or both are found again (`session/resume.rs`). The work itself is
//! done through [`Session::device_and_store`], with progress told by
//! `session/tell.rs`, and the session is closed by [`Session::close`], which says
//! how to go on where it was cut off. [`live`] is all of it in its order; what is
//! measured without a folder goes through `session/visit.rs`.

mod conclude;
mod probe;
pub mod program;
mod resume;
mod tell;
mod visit;

pub use conclude::{conclude, write_report};
pub use probe::{Kept, Probed, Probing, told};
pub use resume::find;
pub use tell::{Shown, Teller};
pub use visit::{Ran, Visit, run_once, visit};

use crate::interrupt;
use crate::printable::word;
use crate::same_device::{self, to_type};
use crate::target::{self, Access, Opened, Place, Target, claim_output};
use crate::typed::Typed;
use crate::{describe, limits, usage};
use anyhow::{Context, bail};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uflip_device::identity::{SysPaths, host_facts};
use uflip_device::{EngineOptions, measure_overhead};
use uflip_measure::run::RunSpec;
use uflip_measure::{Pattern, PatternMode, Plan, State, Step};
use uflip_store::manifest::{Asked, TargetFacts, TargetTold, Told};
use uflip_store::{Claim, Durability, Manifest, Options, Store};

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
    /// The folders that a resume goes on in.
    pub ours: fn(&Asked) -> bool,
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
            ours: |_| false,
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
        to_go_on(self.command, &target.to_string(), dir) + &self.consents_again()
    }

    /// The consents as they are typed again.
    pub fn consents_again(&self) -> String {
        self.consents.iter().map(|value| format!(" --erase-device {}", word(value))).collect()
    }
}

/// What is typed to go on with what `command` left in `dir`.
fn to_go_on(command: &str, target: &str, dir: &Path) -> String {
    match command {
        // What a folder says itself is not typed again.
        "run" => format!("uflip run -o {} --resume", word(&dir.to_string_lossy())),
        command => to_type(command, target, dir),
    }
}

/// The life of a work on a session, the same for all: where nothing is left to do
/// that is said; else Ctrl-C is heard, the work begins or goes on (`start`),
/// measures (true where it was stopped from outside), and is closed. Gives the
/// folder and what it keeps of what was asked for.
///
/// # Errors
/// What went wrong, or that it was stopped, with what to type to go on.
pub fn live<W: Into<Session>>(
    order: &Order,
    start: impl FnOnce() -> anyhow::Result<W>,
    measure: impl FnOnce(&mut W) -> anyhow::Result<bool>,
) -> anyhow::Result<(PathBuf, Options)> {
    if let Some(done) = resume::complete_before(order)? {
        return Ok(done);
    }
    listen(order.shown)?;
    let mut work = start()?;
    let finished = measure(&mut work);
    let session: Session = work.into();
    let options = session.options.clone();
    Ok((session.close(finished)?, options))
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

    /// Whether data is written, and whether anything is trimmed.
    fn writes_and_trims(&self) -> (bool, bool) {
        let (basics, resets) = match self {
            Needs::Plan(plan) => {
                let basics: Vec<_> = plan.runs().flat_map(|run| run.work.basics()).collect();
                let reset = |step: &_| if let Step::Reset { state } = step { Some(*state) } else { None };
                (basics, plan.steps.iter().filter_map(reset).collect())
            }
            Needs::Pattern(pattern) => (pattern.basics(), Vec::new()),
            Needs::Everything => return (true, true),
        };
        let does = |mode| basics.iter().any(|basic| basic.mode == mode);
        let writes = does(PatternMode::Write) || resets.iter().any(|state| *state != State::None);
        (writes, does(PatternMode::Trim) || resets.contains(&State::Trim))
    }

    /// Refuses options that were typed for writes or trims where there are none.
    ///
    /// # Errors
    /// [`crate::Usage`] with what to type instead.
    pub fn refuse_without_effect(&self, typed: &Typed) -> anyhow::Result<()> {
        let (writes, trims) = self.writes_and_trims();
        for (name, does, what) in [("data", writes, "written"), ("discard", trims, "trimmed")] {
            if !does && typed.was_given(name) {
                return Err(usage(format!("--{name} does nothing where nothing is {what}; leave it away")));
            }
        }
        Ok(())
    }
}

/// Refuses what cannot or must not be done on this target, before anything is
/// made: trims beside other IOs of a file, two queue depths, more memory than there is,
/// writing where that is not allowed.
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
            limits::one_depth(plan.runs().filter_map(RunSpec::pattern), engine)?;
            limits::room_for_plan(plan, engine, place.virtual_time)?;
        }
        Needs::Pattern(pattern) => {
            target::refuse_mixed_trims(place, [pattern])?;
            limits::one_depth([pattern], engine)?;
            limits::room_for_pattern(pattern, engine, place.virtual_time)?;
        }
        Needs::Everything => {}
    }
    if needs.writes() {
        place.may_be_measured_with_writes(consents)?;
    }
    target::refuse_other_consents(&[place], consents)
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

/// What the folder keeps of what is asked for now.
fn options(order: &Order, target: &Target, engine: EngineOptions) -> Options {
    let chosen = order.typed.chosen(Some(target));
    Options {
        engine: target.path().map(|_| engine),
        remove_scratch: order.remove_scratch,
        chosen: (!chosen.is_empty()).then_some(chosen),
        ..Options::of(&target.to_string(), Asked::RUN)
    }
}

/// How the target is driven as a phrase, where it is driven at all.
pub fn driven(options: &Options) -> String {
    options.engine.map(|engine| format!(", {}", describe::engine(&engine))).unwrap_or_default()
}

/// A target that is open, and a folder that is claimed.
pub struct Begun {
    claim: Claim,
    /// The target.
    pub opened: Opened,
    /// For the manifest; what the kind of folder is asked for comes with its plan.
    options: Options,
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
    needs.refuse_without_effect(&order.typed)?;
    refuse(place, needs, &engine, &order.consents)?;
    target::refuse_among_results(place, order.output.as_deref())?;
    let claim = claim_output(order.output.as_deref())?;
    let opened = open(&place.target, needs, engine, &order.consents, scratch_time)?;
    let mut options = options(order, &opened.target, engine);
    // One that was there before is somebody's, or of a benchmark that may go on.
    options.remove_scratch &= place.is_to_be_made();
    Ok(Begun { claim, opened, options })
}

impl Begun {
    /// Makes the store, with the plan and what was asked for.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn into_session(self, order: &Order, plan: &Plan, asked: Asked) -> anyhow::Result<Session> {
        let Begun { claim, opened, options } = self;
        let options = Options { asked, ..options };
        let summary = match &options.engine {
            Some(engine) => summary_of(&opened, engine),
            None => opened.summary.clone(),
        };
        let target = of_target(summary, &opened.target, &opened.facts, &opened.warnings);
        let manifest = manifest(plan.seed, target, options.clone());
        let dir = claim.dir().to_path_buf();
        let store = Store::create_in(claim, &manifest, plan)?;
        Ok(Session::new(order, dir, store, opened, options))
    }
}

/// A target that is driven by `engine`, in one line.
fn summary_of(opened: &Opened, engine: &EngineOptions) -> String {
    format!("{}; {}", opened.summary, describe::engine(engine))
}

/// A target for the manifest, before anything is written to it.
fn of_target(summary: String, target: &Target, facts: &TargetFacts, warnings: &[String]) -> TargetTold {
    TargetTold {
        summary: Some(summary),
        name: Some(target.to_string()),
        facts: facts.clone(),
        identity: same_device::for_manifest(target),
        warnings: warnings.to_vec(),
        ..TargetTold::default()
    }
}

fn manifest(seed: u64, target: TargetTold, options: Options) -> Manifest {
    let (host, overhead) = (host_facts(&SysPaths::default()), measure_overhead());
    Manifest {
        target,
        host: Some(Told { summary: Some(describe::host(&host)), facts: host }),
        overhead: Some(Told { summary: Some(describe::overhead(&overhead)), facts: overhead }),
        ..Manifest::new(env!("CARGO_PKG_VERSION"), seed, options)
    }
}

/// Everything ready to be measured.
pub struct Session {
    /// The results folder.
    pub dir: PathBuf,
    /// What is kept.
    pub store: Store,
    /// The target.
    pub opened: Opened,
    /// What the folder keeps of what was asked for.
    pub options: Options,
    /// What goes on beside the runs.
    pub probing: Probing,
    /// What a person sees of it.
    pub shown: Shown,
    go_on: String,
}

impl Session {
    fn new(order: &Order, dir: PathBuf, mut store: Store, opened: Opened, options: Options) -> Session {
        if opened.device.is_virtual() {
            store.set_durability(Durability::RELAXED);
        }
        let (probing, go_on) = (Probing::of(Some(&opened.target)), order.again(&opened.target, &dir));
        Session { dir, store, opened, options, probing, shown: order.shown, go_on }
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
