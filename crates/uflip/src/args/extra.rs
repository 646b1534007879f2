//! The arguments of the commands around job files, cost models, proofs and the
//! demonstration.

use super::{ConsentArgs, EngineArgs, TargetArgs};
use crate::typed::Typed;
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use uflip_device::Bytes;

/// `uflip job`
#[derive(Args, Debug)]
pub struct JobArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The job file (docs/job-files.md), or an fio job file (a name that ends
    /// in .fio)
    #[arg(required_unless_present_any = ["suite", "resume", "scratch"])]
    pub file: Option<PathBuf>,
    /// A ready-made job instead of a file: ajwani (the standard series of
    /// Ajwani et al. 2008), ajwani-short (the same in minutes),
    /// ajwani-endurance (wears the device out), write-cost or
    /// write-cost-short (Lee et al. 2009: focal factor and sectors a sync)
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub suite: Option<String>,
    /// Only these of the job's lines
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// The device's logical block, or the folder in which uflip logical-block
    /// found it; the same as `set logical=SIZE` in the job [default: 4M, assumed]
    #[arg(long, value_name = "SIZE|DIR")]
    pub logical_block: Option<LogicalBlockArg>,
    /// The folder for the results; a new one is made where none is named
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Explain each line, its cost in time, bytes and wear; measure nothing
    #[arg(long)]
    pub check: bool,
    /// Print the equivalent fio job file; measure nothing
    #[arg(long, conflicts_with = "check")]
    pub to_fio: bool,
    /// Print the job as a job file, for example what was read from fio's
    #[arg(long, conflicts_with_all = ["check", "to_fio"])]
    pub print: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// The seed where the job has none; drawn and printed where none is given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Go on with the interrupted job in DIR, on the device it began on
    #[arg(long, requires = "output", conflicts_with_all = ["file", "suite"])]
    pub resume: bool,
    /// Go on although it is another device than the job began on (or a scratch
    /// file made anew); the results say from which run on
    #[arg(long, requires = "resume")]
    pub other_device: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}

/// A logical block as it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogicalBlockArg {
    /// Its size.
    Size(Bytes),
    /// Results of `uflip logical-block` that have it.
    Folder(PathBuf),
}

impl FromStr for LogicalBlockArg {
    type Err = String;
    fn from_str(text: &str) -> Result<LogicalBlockArg, String> {
        match text.parse() {
            Ok(Bytes(0)) => Err("a logical block has bytes; type its size, as 4M".to_string()),
            Ok(size) => Ok(LogicalBlockArg::Size(size)),
            Err(_) if Path::new(text).is_dir() => Ok(LogicalBlockArg::Folder(text.into())),
            Err(error) => Err(format!("{error}; or a folder in which uflip logical-block found it")),
        }
    }
}

/// `uflip logical-block`
#[derive(Args, Debug)]
pub struct LogicalBlockArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The bytes written in each pass; several show how the answer depends on it
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', default_value = "1G")]
    pub bytes: Vec<Bytes>,
    /// The largest write size tried
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub largest: Bytes,
    /// The folder for the results; a new one is made where none is named
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// The seed of the random order; drawn where none is given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Go on with the interrupted procedure in DIR, on the device it began on
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Go on although it is another device than the procedure began on (or a
    /// scratch file made anew); the results say from which run on
    #[arg(long, requires = "resume")]
    pub other_device: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}

/// `uflip predict`
#[derive(Args, Debug)]
pub struct PredictArgs {
    /// The folder with a device's results: random reads and writes of several
    /// sizes (uflip job, or the granularity of uflip run)
    pub dir: PathBuf,
    /// The trace: blkparse text, an fio iolog, block trace events, or a record
    /// file of ours (.parquet)
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Only the IOs of this device: MAJOR,MINOR of blkparse text or trace
    /// events, a file's name of an iolog
    #[arg(long, value_name = "MAJ,MIN|FILE")]
    pub device: Option<String>,
    /// The device's logical block [default: what uflip logical-block left in
    /// DIR, else 4M]
    #[arg(long, value_name = "SIZE")]
    pub logical_block: Option<Bytes>,
    /// Also replay the trace on this simulated device: a name of the catalogue
    /// or a device file
    #[arg(long, value_name = "NAME|FILE")]
    pub sim: Option<String>,
    /// Replay on the simulated device as it comes out of the box; otherwise all
    /// of it is written first, in order
    #[arg(long, requires = "sim")]
    pub new: bool,
    /// Let addresses beyond the simulated device's end start again at 0
    #[arg(long, requires = "sim")]
    pub wrap: bool,
    /// Replay as an open loop: IOs are due at the trace's own instants, whether or not
    /// those before are done, instead of after its idle times
    #[arg(long, requires = "sim")]
    pub open_loop: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `uflip sim proof`
#[derive(Args, Debug)]
pub struct ProofArgs {
    /// How many devices
    #[arg(short = 'n', long = "devices", value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub devices: u64,
    /// The seed they are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The seed from a text that nobody chose for it, as the hash of a commit
    #[arg(long, value_name = "TEXT", conflicts_with = "seed")]
    pub seed_of: Option<String>,
    /// Devices drawn to mislead the method instead: random flash translation layers, and
    /// what no detector was made for (docs/method.md, "A proof that attacks")
    #[arg(long)]
    pub adversarial: bool,
    /// Only this one of them, with all its figures and what it was drawn to be
    #[arg(long, value_name = "N", requires = "adversarial")]
    pub device: Option<u64>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `uflip demo`
#[derive(Args, Debug)]
pub struct DemoArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The seed of all random choices; drawn and printed where none is given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}
