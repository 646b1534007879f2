//! What the runs of a program came to: what each of its steps did on each device.
//!
//! Method: bytes are summed up from the records, by mode; speed is bytes over the time
//! from the step's begin to the last completion on that device, on its own clock; how
//! many requests were under way on average is the sum of their response times over
//! that time (Little's law). Source: J. D. C. Little, "A proof for the queuing formula
//! L = λW", Operations Research 1961. Times in nanoseconds, MB/s of 10^6 bytes.

use crate::profile::beside;
use serde::{Deserialize, Serialize};
use uflip_device::{Bytes, Mode};
use uflip_measure::run::{Belongs, ProgramStep, RtStats, Work};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::error::StoreError;
use uflip_store::records::read_row_groups;

/// What one step did on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The run behind the figures.
    pub run: u32,
    /// The program's name.
    pub program: String,
    /// The step's name.
    pub step: String,
    /// What the program calls the device.
    pub device: String,
    /// The target's name; None where the run does not say.
    pub target: Option<String>,
    /// True where its times are virtual.
    pub virtual_time: bool,
    /// Requests of all modes.
    pub requests: u64,
    /// Bytes that were read.
    pub read: Bytes,
    /// Bytes that were written.
    pub written: Bytes,
    /// Bytes that were trimmed.
    pub trimmed: Bytes,
    /// From the step's begin to the last completion.
    pub elapsed_ns: u64,
    /// Read and written; None where it took no time.
    pub mb_s: Option<f64>,
    /// Requests under way on average; None where it took no time.
    pub mean_under_way: Option<f64>,
    /// Response times of reads and writes.
    pub stats: RtStats,
    /// Bytes programmed for each that was written; None where the device does not tell.
    pub write_amplification: Option<f64>,
    /// Energy of a request in microjoules; None where the device does not tell.
    pub energy_uj_per_io: Option<f64>,
    /// Something else was going on beside it; None where nobody looked.
    pub disturbed: Option<bool>,
}

/// All of a store, in the order of its runs; none where it is no program's.
///
/// # Errors
/// [`StoreError`] where a record file cannot be read.
pub fn of_store(contents: &StoreContents) -> Result<Vec<ProgramRun>, StoreError> {
    let rows = contents.runs.iter();
    let of_program = rows.filter_map(|row| match &row.spec.belongs {
        Belongs::Program(step) => Some((row, step)),
        _ => None,
    });
    of_program.map(|(row, step)| of_run(contents, row, step)).collect()
}

fn of_run(contents: &StoreContents, row: &RunRow, step: &ProgramStep) -> Result<ProgramRun, StoreError> {
    let (mut read, mut written, mut trimmed, mut busy) = (0, 0, 0, 0.0);
    read_row_groups(&contents.dir.join(&row.records.file), |_, records| {
        for record in records {
            let sum = match record.mode() {
                Mode::Read => &mut read,
                Mode::Write => &mut written,
                Mode::Trim => &mut trimmed,
                Mode::Flush => &mut 0,
            };
            *sum += u64::from(record.size());
            busy += record.response().0 as f64;
        }
        Ok(())
    })?;
    let elapsed = row.outcome.end.elapsed.0;
    let over_time = |value: f64| (elapsed > 0).then(|| value / elapsed as f64);
    let target = match &row.spec.work {
        Work::Program(program) => program.arguments.get(&step.device).cloned(),
        _ => None,
    };
    let (write_amplification, energy_uj_per_io) = beside::of_runs(std::iter::once(row));
    let interference = row.outcome.probes.interference.as_ref();
    Ok(ProgramRun {
        run: row.spec.id,
        program: step.program.clone(),
        step: step.step.clone(),
        device: step.device.clone(),
        target,
        virtual_time: row.outcome.started_unix_ns.is_none(),
        requests: row.outcome.end.ios,
        read: Bytes(read),
        written: Bytes(written),
        trimmed: Bytes(trimmed),
        elapsed_ns: elapsed,
        // Bytes in a nanosecond are 10^3 times 10^6 bytes in a second.
        mb_s: over_time((read + written) as f64 * 1e3),
        mean_under_way: over_time(busy),
        stats: row.stats.all.clone(),
        write_amplification,
        energy_uj_per_io,
        disturbed: interference.map(|found| found.matters(row.outcome.end.ios)),
    })
}
