//! Completions that are not fetched yet, kept by the time they are finished at.
//!
//! How: a list that is looked through; no more are in it than requests that are
//! under way or not fetched, and its room is there from the start.

use super::{BlockRequest, Clock, Completion, Which};
use crate::units::Nanos;

/// Completions to be fetched, in the order of [`Completion::done`] and, where
/// that is equal, of their arrival here.
#[derive(Debug)]
pub struct Pending {
    list: Vec<Waiting>,
    turn: u64,
}

/// One of them.
#[derive(Debug)]
struct Waiting {
    /// Its place in the order of arrival.
    turn: u64,
    /// What it does to the device's contents was done ([`Pending::settle`]).
    settled: bool,
    completion: Completion,
}

impl Waiting {
    fn order(&self) -> (Nanos, u64) {
        (self.completion.done, self.turn)
    }
}

impl Pending {
    /// Room for `room` of them.
    pub fn new(room: usize) -> Pending {
        Pending { list: Vec::with_capacity(room), turn: 0 }
    }

    /// Keeps one more.
    pub fn push(&mut self, completion: Completion) {
        self.list.push(Waiting { turn: self.turn, settled: false, completion });
        self.turn += 1;
    }

    /// Keeps some more.
    pub(crate) fn extend(&mut self, completions: Option<Completion>) {
        completions.into_iter().for_each(|completion| self.push(completion));
    }

    /// Where the one is that is finished first, or that of an id.
    fn find(&self, which: Which) -> Option<usize> {
        let wanted = |waiting: &Waiting| match which {
            Which::Any => true,
            Which::Id(id) => waiting.completion.request.id == id,
        };
        let all = self.list.iter().enumerate().filter(|(_, waiting)| wanted(waiting));
        all.min_by_key(|(_, waiting)| waiting.order()).map(|(at, _)| at)
    }

    /// Gives the one that is finished first, or that of an id.
    pub fn take(&mut self, which: Which) -> Option<Completion> {
        let at = self.find(which)?;
        Some(self.list.swap_remove(at).completion)
    }

    /// When that one is finished.
    pub fn done_at(&self, which: Which) -> Option<Nanos> {
        self.find(which).map(|at| self.list[at].completion.done)
    }

    /// When the first is finished.
    pub fn first(&self) -> Option<Nanos> {
        self.list.iter().map(|waiting| waiting.completion.done).min()
    }

    /// Gives what is finished by `until` to `effect`, each request once, in the order
    /// in which they are finished: for devices that know beforehand when that is, and
    /// whose contents change then. Requests that failed have no effect.
    pub fn settle(&mut self, until: Nanos, mut effect: impl FnMut(&mut BlockRequest)) {
        let due = |waiting: &&mut Waiting| !waiting.settled && waiting.completion.done <= until;
        while let Some(next) = self.list.iter_mut().filter(due).min_by_key(|waiting| waiting.order()) {
            next.settled = true;
            if next.completion.result.is_ok() {
                effect(&mut next.completion.request);
            }
        }
    }

    /// Requests whose effect is still to come.
    pub fn unsettled(&self) -> impl Iterator<Item = &BlockRequest> {
        let still = self.list.iter().filter(|waiting| !waiting.settled && waiting.completion.result.is_ok());
        still.map(|waiting| &waiting.completion.request)
    }

    /// Moves virtual time on until fewer than `requests` are under way.
    pub fn make_room(&self, clock: &Clock, requests: usize) {
        while let (under_way, Some(first)) = self.after(clock.now())
            && under_way >= requests
        {
            clock.reach(first);
        }
    }

    /// How many are finished only after `now`, and when the first of these is.
    fn after(&self, now: Nanos) -> (usize, Option<Nanos>) {
        let later = self.list.iter().map(|waiting| waiting.completion.done).filter(|done| *done > now);
        later.fold((0, None), |(count, first): (usize, Option<Nanos>), done| {
            (count + 1, Some(first.map_or(done, |first| first.min(done))))
        })
    }
}
