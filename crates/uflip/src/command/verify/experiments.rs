//! The experiments behind the figures, each through the command that a user
//! would type, on `sim:NAME` with a seed.
//!
//! | experiment | papers | how |
//! |---|---|---|
//! | the nine micro-benchmarks | 000/001, Table 3, figures 3, 4, 6, 7 | `uflip run` |
//! | what random writes leave behind | 000/001, 4.3 and figure 5 | `uflip job`, [`LASTING`] |
//! | a new device | 000/001, 4.1 | `uflip job`, [`NEW`] |
//! | the logical block | 002, 4.1 | `uflip logical-block` |
//! | Table 3.1, recovery, spikes | 004, 3.3 and appendix C | `uflip job`, [`job_of`] |

use crate::args::MethodArg;
use crate::command::job;
use crate::command::plan::Wanted;
use crate::command::{logical_block, run};
use crate::target::Target;
use std::path::Path;
use uflip_analysis::verification::jobs::{job_figures, lasting_figures, new_figures};
use uflip_analysis::verification::{Figures, standard};
use uflip_device::{Bytes, Nanos};

/// Section 4.3: sequential reads, a batch of random writes, sequential reads
/// again, after the whole device was written at random and has calmed down.
const LASTING: &str = "\
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
    Lasting,
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
            Ok(standard::figures(folder)?)
        }
        Experiment::Lasting => Ok(lasting_figures(&job(LASTING)?)?),
        Experiment::New => Ok(new_figures(&job(NEW)?)),
        Experiment::LogicalBlock => {
            let mut found = Figures::default();
            let block = logical_block::measure_simulated(target, seed, folder)?;
            found.put("logical_block_mb", block.map(|b| b.0 as f64 / f64::from(1 << 20)));
            Ok(found)
        }
        Experiment::Job => Ok(job_figures(&job(&job_of(name))?)?),
    }
}
