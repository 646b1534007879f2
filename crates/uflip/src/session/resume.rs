//! Going on with a session in its folder: the same target, the same plan, the
//! same way of driving it.

use super::{Needs, Order, Session, Stored, open, refuse};
use crate::command::run::stored_plan;
use crate::printable::word;
use crate::same_device::{self, Answer, Asked, to_type};
use crate::target::{self, Target};
use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use uflip_device::{EngineOptions, Geometry};
use uflip_measure::Plan;
use uflip_measure::run::Sink;
use uflip_store::complete::completeness;
use uflip_store::{Claim, Store, StoreContents};

/// A folder that can be gone on in, on a target that is the same.
pub struct Found<O> {
    claim: Claim,
    /// What is there.
    pub contents: StoreContents,
    /// The plan in it.
    pub plan: Plan,
    /// What the command was asked for.
    pub options: O,
    stored: Stored,
    answer: Answer,
    geometry: Geometry,
}

/// Finds the interrupted session that `order` names.
///
/// # Errors
/// Where there is none, another command made it, an option would do nothing, or
/// the target is another one now.
pub fn find<O: DeserializeOwned>(order: &Order) -> anyhow::Result<Found<O>> {
    let dir = order.folder()?.to_path_buf();
    // Before anything is read that somebody else may be changing.
    let claim = Claim::existing(&dir)?;
    let contents = Store::open(&dir)?;
    order.typed.refuse_without_effect(&contents, order.heeded)?;
    let of = contents.manifest.options.clone();
    let asked_for = || {
        format!(
            "{}/manifest.json does not say what uflip {} was asked for: another command made it, or it is damaged",
            dir.display(),
            order.command
        )
    };
    let options: O = serde_json::from_value(of.clone()).with_context(asked_for)?;
    let stored: Stored = serde_json::from_value(of).with_context(asked_for)?;
    let plan = stored_plan(&contents)?;
    let began_on = Target::parse(&stored.target, plan.geometry.capacity)?;
    let named = order.target.clone().map(|target| target.sized(plan.geometry.capacity));
    let answer = same_device::ask(&Asked {
        contents: &contents,
        stored: &began_on,
        named: named.as_ref(),
        other: order.other_device,
        data: stored.engine(contents.manifest.seed).data,
        type_for: &|target| to_type(order.command, target, &dir),
    })?;
    let geometry = plan.geometry;
    Ok(Found { claim, contents, plan, options, stored, answer, geometry })
}

impl<O> Found<O> {
    /// How the target was driven.
    pub fn engine(&self) -> EngineOptions {
        self.stored.engine(self.contents.manifest.seed)
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
    ) -> anyhow::Result<(Session, O, Plan)> {
        let Found { claim, contents, plan, options, mut stored, answer, geometry } = self;
        let target = &answer.target;
        let place = target::locate(target)?;
        // What is left of the plan, which may be only a part of what is needed.
        refuse(&place, Needs::Plan(&plan), &engine, &order.consents)?;
        refuse(&place, needs, &engine, &order.consents)?;
        let dir = claim.dir().to_path_buf();
        let mut store = Store::resume_in(claim, order.seed, None)?;
        store.notes().iter().for_each(|note| crate::say!("note: {note}"));
        let opened = open(target, needs, engine, &order.consents, None)?;
        if opened.device.geometry() != geometry {
            bail!(
                "{target} has {} now and had {} when the benchmark began; start a new one with another -o",
                opened.device.geometry().capacity,
                geometry.capacity
            );
        }
        answer.still_is()?;
        let next_run = plan.runs().map(|run| run.id).find(|id| !store.has(*id));
        answer.record(&mut store, &contents.manifest, next_run, &opened.facts)?;
        let kept = contents.runs.iter();
        let before = kept.filter_map(|row| {
            let found = row.outcome.probes.interference.clone();
            found.filter(|found| found.matters(row.outcome.end.ios))
        });
        let before = before.collect();
        stored.target = target.to_string();
        stored.remove_scratch &= !order.keep_scratch;
        let session = Session::new(order, dir, store, opened, stored);
        session.probing.remember(before);
        Ok((session, options, plan))
    }
}

/// The folder and what was asked for, where a resume would find nothing left to
/// measure: then the target is not needed any more, nor asked for.
///
/// # Errors
/// Where the folder cannot be gone on in.
pub fn complete_before(order: &Order) -> anyhow::Result<Option<(PathBuf, Stored)>> {
    let Some(dir) = order.output.as_deref().filter(|_| order.resume) else { return Ok(None) };
    let claim = Claim::existing(dir)?;
    let contents = Store::open(dir)?;
    let Ok(stored) = serde_json::from_value::<Stored>(contents.manifest.options.clone()) else {
        return Ok(None);
    };
    if !contents.damage.is_empty() || completeness(&contents).statement.is_some() {
        return Ok(None);
    }
    order.typed.refuse_without_effect(&contents, order.heeded)?;
    stored_plan(&contents)?;
    let store = Store::resume_in(claim, order.seed, None)?;
    store.notes().iter().for_each(|note| crate::say!("note: {note}"));
    crate::say!("{}: all runs are kept, nothing is left to measure", word(&dir.to_string_lossy()));
    Ok(Some((dir.to_path_buf(), stored)))
}
