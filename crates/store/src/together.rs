//! Runs that go on at once: those of the devices of a program.
//!
//! How: each has a reserve and a record file of its own, so that one device's
//! records never wait for another's. They are kept one after another when all have
//! ended; a crash in between leaves those that were kept, and the others missing.

use crate::recorder::{CHUNK_RECORDS, DEFAULT_RESERVE, Reserve, RunShape};
use crate::store::Store;
use std::path::PathBuf;
use uflip_device::Recorder;
use uflip_measure::run::{RunOutcome, RunSpec, RunStats, SinkError};

/// One of them: its records and their unfinished file.
struct Begun {
    spec: RunSpec,
    reserve: Reserve,
    temporary: PathBuf,
}

/// Runs that were begun. Dropped, they are forgotten with their files.
pub struct Together {
    runs: Vec<Begun>,
}

impl Together {
    /// Where the records of the run at this place go.
    ///
    /// # Panics
    /// Where there is none.
    pub fn recorder(&self, at: usize) -> &dyn Recorder {
        &self.runs[at].reserve
    }
}

impl Store {
    /// Gets ready for these runs, to go on at once.
    ///
    /// # Errors
    /// [`SinkError`] as of a single run's beginning.
    pub fn begin_together<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r RunSpec>,
    ) -> Result<Together, SinkError> {
        let begin = |run: &RunSpec| {
            let reserve = Reserve::new(DEFAULT_RESERVE);
            let shape = self.shape(run)?;
            let temporary = shape.path.clone();
            // What a program will ask for is known roughly at best: no chunk is made, and
            // no thread started, while it goes on.
            let io_count = shape.io_count.max(CHUNK_RECORDS as u64);
            reserve.begin(RunShape { io_count, ..shape });
            reserve.start_writer();
            Ok(Begun { spec: run.clone(), reserve, temporary })
        };
        Ok(Together { runs: runs.into_iter().map(begin).collect::<Result<_, SinkError>>()? })
    }

    /// Makes them durable, and gives the statistics of each.
    ///
    /// # Errors
    /// [`SinkError`] of the first that cannot be kept; those before it are.
    pub fn commit_together(
        &mut self,
        together: Together,
        outcomes: &[RunOutcome],
    ) -> Result<Vec<RunStats>, SinkError> {
        let ended = together.runs.iter().zip(outcomes);
        let mut keep =
            |run: &Begun, outcome| self.commit_of(&run.spec, outcome, run.reserve.finish(), &run.temporary);
        ended.map(|(run, outcome)| keep(run, outcome)).collect()
    }
}
