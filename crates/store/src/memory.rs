//! Runs that are kept in memory, for as long as a program runs: proofs and
//! demonstrations measure by the same executor as everything else and leave no folder.

use crate::contents::{RecordFile, RunRow};
use crate::stats::StatsBuilder;
use std::collections::HashMap;
use uflip_device::{IoRecord, KeepAll, Recorder};
use uflip_measure::run::{RunOutcome, RunSpec, RunStats, Sink, SinkError};

/// Runs that are kept in memory.
#[derive(Default)]
pub struct MemorySink {
    rows: Vec<RunRow>,
    records: HashMap<u32, Vec<IoRecord>>,
    keep: Option<KeepAll>,
}

impl MemorySink {
    /// What was kept, a row a run.
    pub fn rows(&self) -> &[RunRow] {
        &self.rows
    }

    /// The records of a run that was kept.
    pub fn records(&self, run: u32) -> &[IoRecord] {
        self.records.get(&run).map_or(&[], Vec::as_slice)
    }

    /// The response times of a run, in the order of submission, less the first
    /// `ignore`.
    pub fn responses(&self, run: u32, ignore: u64) -> Vec<u64> {
        let ignore = usize::try_from(ignore).unwrap_or(usize::MAX);
        self.records(run).iter().skip(ignore).map(|r| r.response().0).collect()
    }
}

impl Sink for MemorySink {
    fn has(&self, _: u32) -> bool {
        false
    }

    fn begin(&mut self, run: &RunSpec) -> Result<(), SinkError> {
        self.keep = Some(KeepAll::new(usize::try_from(run.io_count).unwrap_or(1).clamp(1, 1 << 16)));
        Ok(())
    }

    fn recorder(&self) -> &dyn Recorder {
        match &self.keep {
            Some(keep) => keep,
            None => &Nowhere,
        }
    }

    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError> {
        let records = self.keep.take().map(KeepAll::records).unwrap_or_default();
        let mut stats = StatsBuilder::new(run.io_ignore, run.work.pattern_count());
        stats.push(&records);
        let stats = stats.finish();
        self.rows.push(RunRow {
            spec: run.clone(),
            outcome: outcome.clone(),
            stats: stats.clone(),
            records: RecordFile { file: String::new(), bytes: 0, checksum: None },
            stalls: None,
            folder: None,
        });
        self.records.insert(run.id, records);
        Ok(stats)
    }

    fn abandon(&mut self) {
        self.keep = None;
    }
}

/// Before any run.
struct Nowhere;

impl Recorder for Nowhere {
    fn fresh(&self) -> Vec<IoRecord> {
        Vec::with_capacity(1)
    }
    fn finish(&self, _: Vec<IoRecord>) {}
}
