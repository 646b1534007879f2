//! The experiments behind the figures, each through the command that a user
//! would type, on `sim:NAME` with a seed.
//!
//! | experiment | papers | how |
//! |---|---|---|
//! | the nine micro-benchmarks | 000/001, Table 3, figures 3, 4, 6, 7 | `uflip run` |
//! | what random writes leave behind | 000/001, 4.3 and figure 5 | `uflip job`, [`LINGERING`] |
//! | a new device | 000/001, 4.1 | `uflip job`, [`NEW`] |
//! | the logical block | 002, 4.1 | `uflip logical-block` |
//! | Table 3.1, recovery, spikes | 004, 3.3 and appendix C | `uflip job`, [`job_of`] |

use super::{Figures, standard};
use crate::args::MethodArg;
use crate::command::job::{self, Simulated};
use crate::command::plan::Wanted;
use crate::command::{logical_block, run};
use crate::target::Target;
use anyhow::Context;
use std::path::Path;
use uflip_device::{Bytes, Nanos};
use uflip_measure::detect::lingering::lingering;
use uflip_store::{RunRow, read_records};

/// Section 4.3: sequential reads, a batch of random writes, sequential reads
/// again, after the whole device was written at random and has calmed down.
const LINGERING: &str = "\
state  rw bs=128K bytes=CAPACITY
calm   sr bs=32K count=8192 start=0
before sr bs=32K count=4096 start=0
batch  rw bs=32K count=1024
after  sr bs=32K count=8192 start=0
";

/// Section 4.1: random writes of 16 KB to a device as it is sold, and after the
/// whole of it was written at random.
const NEW: &str = "\
new   rw bs=16K count=1000
state rw bs=128K bytes=CAPACITY
used  rw bs=16K count=1000
";

/// Table 3.1, "3 x 30 s" (appendix A).
const TABLE31: &str = "std sr,rr,sw,rw bs=512,2M time=30s reps=3 before=fill(1M)\n";
/// Figure C.3: sequential writes after 30 s of random ones of the same size.
const RECOVERY: &str = "\
steady sw bs=32K time=8s before=fill(1M)
burst  sw bs=32K time=120s window=4s before=fill(1M),rw(bs=32K,time=30s)
";
/// Figure 3.2: many random writes, each a block of a file of 8 GB.
const SPIKES: &str = "many rw bs=4K count=12000 size=8G before=fill(1M)\n";
/// Appendix C: small random writes, then the whole device twice.
const REWRITTEN: &str = "\
steady sw bs=2K time=4s before=fill(1M)
slow   sw bs=2K time=8s window=4s before=fill(1M),rw(bs=2K,time=30s)
whole  sw bs=2M bytes=CAPACITY start=0 before=fill(1M)
after  sw bs=2M bytes=CAPACITY start=0 before=rw(bs=2K,time=60s),idle(1h)
again  sw bs=2M bytes=CAPACITY start=0
";

/// What is measured on devices of paper 004.
fn job_of(device: &str) -> String {
    let more = match device {
        "toshiba-transmemory-1G" => RECOVERY,
        "hama-ssd-32G" => SPIKES,
        "kingston-dt-elite-hs-2G" => REWRITTEN,
        _ => "",
    };
    format!("{more}{TABLE31}")
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// The nine micro-benchmarks.
    Standard,
    /// What random writes leave behind.
    Lingering,
    /// A new device.
    New,
    /// The logical block.
    LogicalBlock,
    /// Paper 004's.
    Job,
}

/// How everything is measured.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Of all random choices.
    pub seed: u64,
    /// Of the nine micro-benchmarks.
    pub method: MethodArg,
}

/// Does `experiment` on `sim:NAME`, with its files in `folder`.
pub fn measure(experiment: Experiment, name: &str, how: How, folder: &Path) -> anyhow::Result<Figures> {
    let seed = how.seed;
    let capacity = Bytes(uflip_sim::catalogue::get(name)?.capacity_mib << 20).exact();
    let target = Target::parse(&format!("sim:{name}"), Bytes(0))?;
    let job = |text: &str| {
        job::measure_simulated(target.clone(), &text.replace("CAPACITY", &capacity), seed, folder)
    };
    match experiment {
        Experiment::Standard => {
            // The longest that section 5.1 found necessary.
            let pause_between = (how.method == MethodArg::Fixed).then(|| Nanos::from_secs(5));
            let wanted = Wanted { pause_between, ..Wanted::by(how.method) };
            run::measure_simulated(target, seed, folder, wanted)?;
            standard::figures(folder)
        }
        Experiment::Lingering => lingering_figures(&job(LINGERING)?),
        Experiment::New => Ok(new_figures(&job(NEW)?)),
        Experiment::LogicalBlock => {
            let mut found = Figures::default();
            let block = logical_block::measure_simulated(target, seed, folder)?;
            found.put("logical_block_mb", block.map(|b| b.0 as f64 / f64::from(1 << 20)));
            Ok(found)
        }
        Experiment::Job => job_figures(&job(&job_of(name))?),
    }
}

fn only<'a>(of: &'a Simulated, line: &'a str) -> anyhow::Result<&'a RunRow> {
    of.runs(line).next().map(|(_, row)| row).with_context(|| format!("the line {line} was not measured"))
}

fn lingering_figures(of: &Simulated) -> anyhow::Result<Figures> {
    let records = |line| anyhow::Ok(read_records(&of.contents.dir.join(&only(of, line)?.records.file))?);
    let (before, after) = (records("before")?, records("after")?);
    let response = |of: &[uflip_device::IoRecord]| of.iter().map(|r| r.response().0).collect::<Vec<u64>>();
    let submit: Vec<u64> = after.iter().map(|r| r.submit().0).collect();
    let lingers = lingering(&response(&before), &response(&after), &submit);
    let mut found = Figures::default();
    found.put("lingering_reads", lingers.map(|l| l.affected_ios as f64));
    found.put("lingering_s", lingers.map(|l| l.affected_ns as f64 / 1e9));
    Ok(found)
}

fn new_figures(of: &Simulated) -> Figures {
    let mean_ms = |line| only(of, line).ok().and_then(|row| row.stats.all.mean_ns).map(|ns| ns / 1e6);
    let mut found = Figures::default();
    found.put("new_rw_16k_ms", mean_ms("new"));
    found.put("used_rw_16k_ms", mean_ms("used"));
    found.put("used_over_new", mean_ms("used").zip(mean_ms("new")).map(|(used, new)| used / new));
    found
}

fn job_figures(of: &Simulated) -> anyhow::Result<Figures> {
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
