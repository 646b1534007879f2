//! Going on with a session in its folder: the same target, the same plan, the
//! same way of driving it.

use super::{Needs, Order, Session, open, refuse, to_go_on};
use crate::plan_file;
use crate::printable::word;
use crate::same_device::{self, Answer, ResumedOn, to_type};
use crate::target::{self, Target};
use crate::usage;
use anyhow::bail;
use std::path::PathBuf;
use uflip_device::{EngineOptions, Geometry};
use uflip_measure::Plan;
use uflip_measure::auto::interference::Disturbed;
use uflip_measure::run::Sink;
use uflip_store::complete::{completeness, program_of};
use uflip_store::{Claim, Options, Store, StoreContents, manifest, reached};

/// A folder that can be gone on in, on a target that is the same.
pub struct FoundFolder {
    claim: Claim,
    /// What is there.
    pub contents: StoreContents,
    /// The plan in it.
    pub plan: Plan,
    options: Options,
    answer: Answer,
    geometry: Geometry,
}

/// Finds the interrupted session that `order` names.
///
/// # Errors
/// Where there is none, another command made it, an option would do nothing, or
/// the target is another one now.
pub fn find(order: &Order) -> anyhow::Result<FoundFolder> {
    let dir = order.folder()?.to_path_buf();
    // Before anything is read that somebody else may be changing.
    let claim = Claim::existing(&dir)?;
    let contents = Store::open(&dir)?;
    refuse_a_program(&contents)?;
    refuse_others(order, &contents)?;
    order.typed.refuse_without_effect(&contents, order.heeded)?;
    // Told now, not once the target is open.
    Store::may_resume(&contents, order.seed)?;
    reached::read(&dir, contents.manifest.folder.as_deref())?;
    let plan = plan_file::stored(&contents)?;
    let answer = ask(order, &contents, &plan)?;
    let (options, geometry) = (contents.manifest.options.clone(), plan.geometry);
    Ok(FoundFolder { claim, contents, plan, options, answer, geometry })
}

/// Whether the target is the one that the folder was begun on.
fn ask(order: &Order, contents: &StoreContents, plan: &Plan) -> anyhow::Result<Answer> {
    let options = &contents.manifest.options;
    let stored = Target::parse(&options.target, plan.geometry.capacity)?;
    let named = order.target.clone().map(|target| target.sized(plan.geometry.capacity));
    same_device::ask(&ResumedOn {
        contents,
        stored: &stored,
        named: named.as_ref(),
        other: order.other_device,
        data: options.engine(contents.manifest.seed).data,
        type_for: &|target| to_type(order.command, target, &contents.dir),
    })
}

/// Refuses a folder that another command made, with what to type.
fn refuse_others(order: &Order, contents: &StoreContents) -> anyhow::Result<()> {
    let (options, dir) = (&contents.manifest.options, &contents.dir);
    if (order.ours)(&options.asked) {
        return Ok(());
    }
    let made_by = match &options.asked {
        manifest::Asked::Run { auto: None, .. } => "run --method fixed",
        manifest::Asked::Suite(_) => "run --suite",
        other => other.command(),
    };
    let go_on = to_go_on(options.asked.command(), &options.target, dir);
    Err(usage(format!("{} was made by uflip {made_by}; go on with it: {go_on}", dir.display())))
}

impl FoundFolder {
    /// How the target was driven.
    pub fn engine(&self) -> EngineOptions {
        self.options.engine(self.contents.manifest.seed)
    }

    /// Opens target and store again.
    ///
    /// # Errors
    /// A refusal, what the system says, or where the target is not as it was.
    pub fn open(
        self,
        order: &Order,
        needs: Needs<'_>,
        engine: EngineOptions,
    ) -> anyhow::Result<(Session, Plan)> {
        let FoundFolder { claim, contents, plan, mut options, answer, geometry } = self;
        let target = &answer.target;
        let place = target::locate(target)?;
        // What is left of the plan, which may be only a part of what is needed.
        refuse(&place, Needs::Plan(&plan), &engine, &order.consents)?;
        refuse(&place, needs, &engine, &order.consents)?;
        let dir = claim.dir().to_path_buf();
        let opened = open(target, needs, engine, &order.consents, None)?;
        if opened.device.geometry() != geometry {
            let (plan, has) = (dir.join("plan.json"), opened.device.geometry().capacity);
            bail!(
                "{}: it is for a target of {}, and {target} has {has}: put the plan back as it was, or start \
                 anew with another -o",
                plan.display(),
                geometry.capacity
            );
        }
        answer.still_is()?;
        // From here on nothing is refused: this sets aside what is not sound.
        let mut store = Store::resume_in(claim, order.seed, None)?;
        store.notes().iter().for_each(|note| crate::say!("note: {note}"));
        let next_run = plan.runs().map(|run| run.id).find(|id| !store.has(*id));
        if answer.is_another() {
            // What was reached, was reached on the one before.
            reached::forget(&dir)?;
        }
        let summary = super::summary_of(&opened, &engine);
        answer.record(&mut store, &contents.manifest, next_run, (&opened.facts, summary))?;
        let kept = contents.runs.iter();
        let before = kept.filter_map(|row| {
            let found = row.outcome.probes.interference.clone();
            found.filter(|found| found.matters(row.outcome.end.ios))
        });
        let mut before: Vec<Disturbed> = before.collect();
        // What folders of before say of it in one place.
        before.extend(contents.calibration.iter().flat_map(|found| found.interference.clone()));
        options.target = target.to_string();
        options.remove_scratch &= !order.keep_scratch && !answer.is_another();
        let session = Session::new(order, dir, store, opened, options);
        session.probing.remember(before);
        Ok((session, plan))
    }
}

/// Refuses to go on with a program: what it had in hand is gone, so that it can only
/// begin anew.
fn refuse_a_program(contents: &StoreContents) -> anyhow::Result<()> {
    let Some(program) = program_of(contents) else { return Ok(()) };
    Err(usage(format!(
        "{} holds what uflip {program} did, and a program is not gone on with; begin it anew with another -o",
        contents.dir.display()
    )))
}

/// The folder and what was asked for, where a resume would find nothing left to
/// measure: then the target is not needed any more, nor asked for.
///
/// # Errors
/// Where the folder cannot be gone on in.
pub fn complete_before(order: &Order) -> anyhow::Result<Option<(PathBuf, Options)>> {
    let Some(dir) = order.output.as_deref().filter(|_| order.resume) else { return Ok(None) };
    let claim = Claim::existing(dir)?;
    let contents = Store::open(dir)?;
    refuse_a_program(&contents)?;
    refuse_others(order, &contents)?;
    if !contents.damage.is_empty() || completeness(&contents).statement.is_some() {
        return Ok(None);
    }
    order.typed.refuse_without_effect(&contents, order.heeded)?;
    let plan = plan_file::stored(&contents)?;
    let another = |named: &Target| named.to_string() != contents.manifest.options.target;
    if order.target.as_ref().is_some_and(another) {
        ask(order, &contents, &plan)?;
    }
    let store = Store::resume_in(claim, order.seed, None)?;
    store.notes().iter().for_each(|note| crate::say!("note: {note}"));
    crate::say!("{}: all runs are kept, nothing is left to measure", word(&dir.to_string_lossy()));
    Ok(Some((dir.to_path_buf(), contents.manifest.options)))
}
