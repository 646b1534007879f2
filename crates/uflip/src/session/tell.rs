//! What a person sees of a session: lines, the live page or nothing.

use crate::live::Live;
use crate::progress::Display;
use std::sync::Arc;
use uflip_device::Nanos;
use uflip_measure::Progress;
use uflip_measure::run::RunSpec;

/// What a person sees of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// Lines, or bars on a terminal.
    Lines,
    /// The live page.
    Live,
}

impl Shown {
    /// A word between runs, where a person sees it.
    pub fn say(self, page: Option<&Live>, text: &str) {
        match (page, self) {
            (Some(page), _) => page.note(text),
            (None, Shown::Nothing) => {}
            (None, _) => crate::say!("{text}"),
        }
    }
}

/// Tells of the progress of some runs.
pub struct Teller {
    display: Display,
    silent: bool,
}

impl Teller {
    /// Of these runs, in order; those that are kept already are left out by the
    /// caller.
    pub fn new<'r>(
        shown: Shown,
        page: Option<&Arc<Live>>,
        runs: impl Iterator<Item = &'r RunSpec>,
        budget: Option<Nanos>,
    ) -> Teller {
        let silent = shown == Shown::Nothing;
        let runs = runs.filter(|_| !silent);
        let display = match page {
            Some(page) => Display::on_page(runs, budget, page),
            None => Display::new(runs, budget),
        };
        Teller { display, silent }
    }

    /// Something happens.
    pub fn tell(&mut self, event: &Progress<'_>) {
        match event {
            Progress::RunStarted { spec, .. } => self.display.started(spec),
            Progress::RunFinished { spec, stats, elapsed } => self.display.finished(spec, stats, *elapsed),
            Progress::Again { .. } | Progress::Resetting { .. } if self.silent => {}
            Progress::Again { spec, incidents, attempt } => self.display.again(spec, incidents, *attempt),
            Progress::Resetting { state } => {
                self.display.note(&format!("bringing the device to the {state} state"));
            }
            Progress::Pausing { .. } => {}
        }
    }

    /// Ends the display, leaving its lines.
    pub fn close(self) {
        self.display.close();
    }
}
