//! Completions that are not fetched yet, kept by the time they are finished at.
//!
//! How: a list that is looked through; no more are in it than requests that are
//! under way or not fetched, and its room is there from the start.

use super::{Completion, Which};
use crate::units::Nanos;

/// Completions to be fetched, in the order of [`Completion::done`] and, where
/// that is equal, of their arrival here.
#[derive(Debug)]
pub struct Pending {
    list: Vec<(u64, Completion)>,
    turn: u64,
}

impl Pending {
    /// Room for `room` of them.
    pub fn new(room: usize) -> Pending {
        Pending { list: Vec::with_capacity(room), turn: 0 }
    }

    /// Keeps one more.
    pub fn push(&mut self, completion: Completion) {
        self.list.push((self.turn, completion));
        self.turn += 1;
    }

    /// Keeps some more.
    pub(crate) fn extend(&mut self, completions: Option<Completion>) {
        completions.into_iter().for_each(|completion| self.push(completion));
    }

    /// Gives the one that is finished first, or that of an id.
    pub fn take(&mut self, which: Which) -> Option<Completion> {
        let wanted = |c: &Completion| match which {
            Which::Any => true,
            Which::Id(id) => c.request.id == id,
        };
        let all = self.list.iter().enumerate().filter(|(_, (_, completion))| wanted(completion));
        let (at, _) = all.min_by_key(|(_, (turn, completion))| (completion.done, *turn))?;
        Some(self.list.swap_remove(at).1)
    }

    /// When the first is finished.
    pub fn first(&self) -> Option<Nanos> {
        self.list.iter().map(|(_, completion)| completion.done).min()
    }

    /// How many are finished only after `now`, and when the first of these is.
    pub fn after(&self, now: Nanos) -> (usize, Option<Nanos>) {
        let later = self.list.iter().map(|(_, completion)| completion.done).filter(|done| *done > now);
        later.fold((0, None), |(count, first): (usize, Option<Nanos>), done| {
            (count + 1, Some(first.map_or(done, |first| first.min(done))))
        })
    }
}
