//! What the job files of papers 000/001, section 4, and 004 say of a device.

use super::Figures;
use crate::job_report;
use uflip_measure::detect::lasting::lasting_effect;
use uflip_measure::job::{JobPlan, JobRun, Role};
use uflip_store::{RunRow, StoreContents, StoreError, read_records};

/// A finished job.
#[derive(Debug)]
pub struct JobResults {
    /// What was kept.
    pub contents: StoreContents,
    /// What was to be done.
    pub planned: JobPlan,
}

impl JobResults {
    /// The measured runs of the line called `name`, in order.
    pub fn runs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a JobRun, &'a RunRow)> {
        let of_line = move |run: &JobRun| run.role == Role::Measured && run.line == name;
        let rows = self.contents.runs.iter().filter_map(|row| Some((row.spec.job()?, row)));
        rows.filter(move |(run, _)| of_line(run))
    }

    /// What it came to.
    ///
    /// # Errors
    /// Where a record file cannot be read.
    pub fn report(&self) -> Result<job_report::JobReport, StoreError> {
        job_report::report(&self.contents, &self.planned)
    }
}

fn only<'a>(of: &'a JobResults, line: &'a str) -> Result<&'a RunRow, StoreError> {
    let found = of.runs(line).next().map(|(_, row)| row);
    found.ok_or_else(|| StoreError::Refused(format!("the line {line} was not measured")))
}

/// What random writes leave behind, by the lines `before` and `after`.
///
/// # Errors
/// Where a line was not measured, or its records cannot be read.
pub fn lasting_figures(of: &JobResults) -> Result<Figures, StoreError> {
    let records = |line| read_records(&of.contents.dir.join(&only(of, line)?.records.file));
    let (before, after) = (records("before")?, records("after")?);
    let response = |of: &[uflip_device::IoRecord]| of.iter().map(|r| r.response().0).collect::<Vec<u64>>();
    let submit: Vec<u64> = after.iter().map(|r| r.submit().0).collect();
    let lasts = lasting_effect(&response(&before), &response(&after), &submit);
    let mut found = Figures::default();
    found.put("lasting_reads", lasts.map(|l| l.affected_ios as f64));
    found.put("lasting_s", lasts.map(|l| l.affected_ns as f64 / 1e9));
    Ok(found)
}

/// A new device against a used one, by the lines `new` and `used`.
pub fn new_figures(of: &JobResults) -> Figures {
    let mean_ms = |line| only(of, line).ok().and_then(|row| row.stats.all.mean_ns).map(|ns| ns / 1e6);
    let mut found = Figures::default();
    found.put("new_rw_16k_ms", mean_ms("new"));
    found.put("used_rw_16k_ms", mean_ms("used"));
    found.put("used_over_new", mean_ms("used").zip(mean_ms("new")).map(|(used, new)| used / new));
    found
}

/// Table 3.1, recovery, spikes, and the whole device written again.
///
/// # Errors
/// Where a record file cannot be read.
pub fn job_figures(of: &JobResults) -> Result<Figures, StoreError> {
    let report = of.report()?;
    let mut found = Figures::default();
    let columns = ["sr_512", "rr_512", "sw_512", "rw_512", "sr_2m", "rr_2m", "sw_2m", "rw_2m"];
    for (column, mb_per_s) in columns.into_iter().zip(report.table31_mb_per_s) {
        found.put(column, mb_per_s);
    }
    if let Some(recovery) = report.recovery.first() {
        let first = recovery.windows_mb_per_s.first().copied();
        found.put("after_burst", first.zip(recovery.steady_mb_per_s).map(|(first, steady)| first / steady));
        found.put("recovery_s", recovery.recovery_to_steady_s);
    }
    if let Some(spikes) = report.spikes.iter().find(|s| s.line == "many").map(|s| &s.spikes) {
        found.put("first_spike_ios", Some(spikes.first_io as f64));
        found.put("spike_period_ios", spikes.period_ios.map(|n| n as f64));
        found.put("spike_s", Some(spikes.height_ns as f64 / 1e9));
        found.put("between_spikes_s", spikes.between_ns.map(|ns| ns as f64 / 1e9));
    }
    let minutes = |line| only(of, line).ok().map(|row| row.outcome.end.elapsed.as_secs_f64() / 60.0);
    found.put("whole_min", minutes("whole"));
    found.put("whole_after_random_min", minutes("after"));
    found.put("whole_again_min", minutes("again"));
    Ok(found)
}
