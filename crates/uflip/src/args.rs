//! The command line as typed. Nothing is opened or decided here: see
//! [`crate::target`] and the commands for what becomes of it.

pub mod compare;
pub mod copy;
pub mod extra;

use crate::typed::Typed;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use uflip_device::{Buffering, Bytes, Data, Discard, Engine, EngineOptions, Nanos};
use uflip_measure::State;
use uflip_measure::pattern::Rate;

/// Tells how a storage device really behaves: which IO patterns it likes, which
/// it punishes, and what to do about it.
///
/// Measures the response time of every single IO of well-defined patterns
/// (uFLIP, CIDR 2009). Without a target, `uflip run` measures the disk under
/// the current folder through a scratch file and touches nothing else.
#[derive(Parser, Debug)]
#[command(name = "uflip", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// IOs in flight in a ring at most.
const MAX_QUEUE_DEPTH: u32 = 4096;

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure a device: the four baselines and the nine micro-benchmarks
    Run(RunArgs),
    /// Find the state, lengths, pause and plan of a benchmark, and stop there
    Calibrate(RunArgs),
    /// Run one IO pattern and print its statistics
    Pattern(PatternArgs),
    /// Copy from one target to another with several requests under way
    Copy(copy::CopyArgs),
    /// Show what a run would do: runs, bytes, time; nothing is written
    Plan(PlanArgs),
    /// List what could be measured, and why something is refused
    Devices(DevicesArgs),
    /// Print the results of a folder again
    Show(ShowArgs),
    /// Write the results of a folder as one HTML file that opens offline
    Report(ReportArgs),
    /// Print what the results of a folder boil down to
    Profile(ProfileArgs),
    /// Print and draw results side by side, and fail by a rule
    Compare(compare::CompareArgs),
    /// Write results as CSV, JSON or Parquet, or as figures for a paper
    Export(ExportArgs),
    /// Show how easy meaningless results are and how to get others: bad
    /// measurements, setting the parameters, good measurements
    Demo(extra::DemoArgs),
    /// Simulated devices: list them, explain one, or attach one as a block device
    Sim(SimArgs),
    /// Run a job file: experiments as text, one a line
    Job(extra::JobArgs),
    /// Find the size of a device's logical blocks
    LogicalBlock(extra::LogicalBlockArgs),
    /// Predict what a block trace costs on a measured device, by each cost model
    Predict(extra::PredictArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
}

/// `uflip run`
#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The folder for the results; a new one is made where none is named
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The experiments of a ready-made job instead of the micro-benchmarks:
    /// ajwani (Ajwani et al. 2008), ajwani-short (the same in minutes),
    /// ajwani-endurance (wears the device out), write-cost (Lee et al. 2009);
    /// --only names its lines
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "budget", "preset", "values", "plan_file", "live", "method", "state", "io_size", "repeats", "pause_between", "baselines"])]
    pub suite: Option<String>,
    /// For --suite: the device's logical block, or the folder in which uflip
    /// logical-block found it [default: 4M, assumed]
    #[arg(long, value_name = "SIZE|DIR", requires = "suite")]
    pub logical_block: Option<extra::LogicalBlockArg>,
    #[command(flatten)]
    pub plan: PlanOptionArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// Use at most this much time for the whole benchmark; runs are cut short
    /// where it is needed; on a simulated device it is of virtual time [default for
    /// quick: 90s, none on a simulated device]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Execute this plan as it stands: the JSON that uflip plan --json prints,
    /// edited or not
    #[arg(
        long = "plan",
        value_name = "FILE",
        conflicts_with_all = ["preset", "method", "only", "baselines", "values", "state", "io_size", "repeats", "pause_between", "seed", "resume", "logical_block"]
    )]
    pub plan_file: Option<PathBuf>,
    /// Go on with the interrupted benchmark in DIR, on the device it began on
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Go on although it is another device than the benchmark began on (or a
    /// scratch file made anew); the results say from which run on
    #[arg(long, requires = "resume")]
    pub other_device: bool,
    /// Leave the scratch file in place afterwards
    #[arg(long)]
    pub keep_scratch: bool,
    /// Show the runs live on the whole terminal: the plan, the run in progress,
    /// its trace and histogram
    #[arg(long)]
    pub live: bool,
    /// Print the result as JSON instead of curves
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}

/// What goes into a plan.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is measured")]
pub struct PlanOptionArgs {
    /// How thorough: quick (about two minutes), standard (the paper's values,
    /// three repeats), full (more values, from an enforced random state)
    /// [default: quick; standard on a simulated device]
    #[arg(long, value_enum)]
    pub preset: Option<PresetArg>,
    /// Where the lengths of runs, the pause between them and the plan come
    /// from: auto finds them on the device, fixed takes the preset's
    #[arg(long, value_enum, default_value_t = MethodArg::Auto)]
    pub method: MethodArg,
    /// Only these micro-benchmarks, separated by commas: granularity,
    /// alignment, locality, partitioning, order, parallelism, mix, pause, bursts;
    /// and queue-depth, which is measured where it is named only
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these baselines: SR, RR, SW, RW
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub baselines: Vec<String>,
    /// Other values for a micro-benchmark's parameter, for example
    /// granularity=4K,64K,1M (may be given several times)
    #[arg(long, value_name = "NAME=V,V")]
    pub values: Vec<String>,
    /// The state the device is brought into first: none (as it is), random (IOs
    /// of random size all over it), complete (so that every sector is written
    /// once), sequential or sequential:SIZE (in order, IOs of 1M or SIZE), trim
    /// (everything trimmed, then random) [default: none; complete for full and
    /// on a simulated device, random there by the fixed method]
    #[arg(long, value_name = "STATE")]
    pub state: Option<State>,
    /// IOSize of everything but granularity
    #[arg(long, value_name = "SIZE", default_value = "32K")]
    pub io_size: Bytes,
    /// How often each experiment is repeated
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Idle time between runs [default: found by the automatic method]
    #[arg(long, value_name = "TIME")]
    pub pause_between: Option<Nanos>,
    /// The seed of all random choices; drawn and printed where none is given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// What is measured.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// A block device or file, sim:NAME or sim:FILE.toml for a simulated device,
    /// or null: for the device that answers at once; uflip run and plan without
    /// one take a scratch file in the current folder, uflip demo sim:mtron
    pub target: Option<String>,
    /// Measure through this scratch file instead of a target; it is made where
    /// nothing is yet
    #[arg(long, value_name = "FILE")]
    pub scratch: Option<PathBuf>,
    /// The size of a scratch file that has to be made
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub scratch_size: Bytes,
}

impl TargetArgs {
    /// Whether what is measured was left to the command.
    pub fn names_nothing(&self) -> bool {
        self.target.is_none() && self.scratch.is_none()
    }
}

/// `--preset`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PresetArg {
    /// About two minutes
    Quick,
    /// The paper's values
    Standard,
    /// More values
    Full,
}

/// `--method`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// Found on the device
    Auto,
    /// The preset's, which are the paper's
    Fixed,
}

/// How the device is driven.
#[derive(Args, Debug)]
#[command(next_help_heading = "How the device is driven")]
pub struct EngineArgs {
    /// The loop that submits IOs: sync is one thread a stream and one IO at a
    /// time, as the paper asks; 'N deep' is N threads with it, one ring with io_uring
    #[arg(long, value_enum, default_value_t = EngineArg::Sync)]
    pub engine: EngineArg,
    /// IOs in flight per stream (io_uring only; not beside 'N deep', which says it)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub queue_depth: u32,
    /// Poll the device for completions (io_uring, on devices with poll queues)
    #[arg(long)]
    pub poll: bool,
    /// What lies between an IO and the device
    #[arg(long, value_enum, default_value_t = BufferingArg::Direct)]
    pub buffering: BufferingArg,
    /// What is written: random (never compressible, never the same twice),
    /// zeros, a byte such as 0xa5, cyclic (0x00 to 0xff), or age (a count of
    /// writes)
    #[arg(long, value_name = "WHAT", default_value = "random")]
    pub data: Data,
    /// How trims are done
    #[arg(long, value_enum, default_value_t = DiscardArg::Plain)]
    pub discard: DiscardArg,
}

/// `--engine`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// pread and pwrite
    Sync,
    /// io_uring
    #[value(name = "io_uring", alias = "io-uring")]
    IoUring,
}

/// `--buffering`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BufferingArg {
    /// O_DIRECT
    Direct,
    /// O_DIRECT and O_DSYNC: each write reaches the medium
    Dsync,
    /// Through the page cache
    Buffered,
}

/// `--discard`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiscardArg {
    /// The device may forget what is trimmed
    Plain,
    /// It must, copies included
    Secure,
}

impl EngineArgs {
    /// The options these arguments stand for.
    ///
    /// # Errors
    /// Where they contradict each other.
    pub fn resolve(&self, seed: u64) -> anyhow::Result<EngineOptions> {
        if self.engine == EngineArg::Sync && (self.queue_depth != 1 || self.poll) {
            anyhow::bail!(
                "the sync engine has one IO in flight per stream and cannot poll; \
                 type --engine io_uring with --queue-depth or --poll, or use --parallel for more streams"
            );
        }
        let engine = match self.engine {
            EngineArg::Sync => Engine::Sync,
            EngineArg::IoUring => Engine::IoUring { queue_depth: self.queue_depth, poll: self.poll },
        };
        if !(1..=MAX_QUEUE_DEPTH).contains(&self.queue_depth) {
            anyhow::bail!(
                "a queue depth of {} is not possible; type --queue-depth with 1 to {MAX_QUEUE_DEPTH}",
                self.queue_depth
            );
        }
        let buffering = match self.buffering {
            BufferingArg::Direct => Buffering::Direct,
            BufferingArg::Dsync => Buffering::DirectSync,
            BufferingArg::Buffered => Buffering::Buffered,
        };
        let discard = match self.discard {
            DiscardArg::Plain => Discard::Plain,
            DiscardArg::Secure => Discard::Secure,
        };
        Ok(EngineOptions { engine, buffering, data: self.data, seed, discard })
    }
}

/// Consent to destroy data.
#[derive(Args, Debug)]
#[command(next_help_heading = "Safety")]
pub struct ConsentArgs {
    /// Allow writing to exactly this block device, named by its serial or
    /// path; what it holds is lost. `uflip devices` and every refusal print
    /// what to type
    #[arg(long, value_name = "SERIAL|PATH")]
    pub erase_device: Vec<String>,
}

/// `uflip plan`
#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub plan: PlanOptionArgs,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// Print the whole plan as JSON
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}

/// `uflip pattern`
#[derive(Args, Debug)]
pub struct PatternArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The baseline pattern
    #[arg(long, value_name = "SR|RR|SW|RW")]
    pub base: Option<String>,
    /// A whole pattern in its text form, such as '3 SR(io_size=8K) / 1 RW' or
    /// '32 deep RR', instead of --base and the options below
    #[arg(long, value_name = "TEXT")]
    pub pattern: Option<String>,
    /// Size of an IO [default: 32K]
    #[arg(long, value_name = "SIZE")]
    pub io_size: Option<Bytes>,
    /// Shift of every IO against IOSize boundaries [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub io_shift: Option<Bytes>,
    /// Where the target space starts [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub target_offset: Option<Bytes>,
    /// How large the target space is [default: the rest of the device]
    #[arg(long, value_name = "SIZE")]
    pub target_size: Option<Bytes>,
    /// Ordered: linear increment in IOs (-1 reverse, 0 in place)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub incr: Option<i64>,
    /// Partitioned: number of partitions visited round robin
    #[arg(long, value_name = "N")]
    pub partitions: Option<u32>,
    /// Random locations without repetition until all were used
    #[arg(long)]
    pub no_repeat: bool,
    /// Idle time before each IO, or between bursts
    #[arg(long, value_name = "TIME")]
    pub pause: Option<Nanos>,
    /// IOs in a burst between pauses
    #[arg(long, value_name = "N")]
    pub burst: Option<u64>,
    /// Open loop: so many IOs a second, due at their instants whether or not those
    /// before are done; response times count from there. --parallel shares them. A
    /// stream has one IO under way however far it falls behind: --pattern '32 deep
    /// RR(rate=2000/s)' has more
    #[arg(long, value_name = "IOS")]
    pub rate: Option<Rate>,
    /// How the gaps between the IOs of --rate are: all the same, or exponential (a
    /// Poisson process) from the seed [default: fixed]
    #[arg(long, value_enum)]
    pub arrivals: Option<ArrivalsArg>,
    /// Processes running the pattern side by side, each in its share of the target
    #[arg(long, value_name = "N")]
    pub parallel: Option<u32>,
    /// Mix with this second baseline
    #[arg(long, value_name = "SR|RR|SW|RW")]
    pub mix: Option<String>,
    /// IOs of the first pattern for one of the second (-N: one of the first for N of the second)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub ratio: Option<i64>,
    /// IOs of each stream
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub io_count: u64,
    /// First IOs left out of the statistics
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub io_ignore: u64,
    /// End after this much time even if IOs are left
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<Nanos>,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// The seed of random locations; drawn and printed where none is given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Keep every IO in this file
    #[arg(long, value_name = "FILE.csv|.parquet")]
    pub records: Option<PathBuf>,
    /// Print the IOs as CSV instead of doing them; the target is not touched
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}

/// `--arrivals`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// The same gap from each IO to the next
    Fixed,
    /// Exponential gaps
    Poisson,
}

/// `uflip devices`
#[derive(Args, Debug)]
pub struct DevicesArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `uflip show`
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The folder with the results
    pub dir: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    /// Only ASCII characters in curves
    #[arg(long)]
    pub ascii: bool,
}

/// `uflip profile`
#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// The folder with the results
    pub dir: PathBuf,
    /// Print as JSON, as in profile.json
    #[arg(long)]
    pub json: bool,
}

/// `uflip report`
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The folder with the results
    pub dir: PathBuf,
    /// The file to write [default: DIR/report.html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `uflip export`
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The folder with the results; for --figures several, and sim:NAME to
    /// measure a simulated device on the spot
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<String>,
    /// Write charts as SVG and PNG with their data as CSV into this folder:
    /// one for each micro-benchmark, the papers' figures 3 to 8 and Table 3
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["what", "run", "format", "output"])]
    pub figures: Option<PathBuf>,
    /// The seed of devices that are measured on the spot
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What to write
    #[arg(long, value_enum, default_value_t = WhatArg::Runs)]
    pub what: WhatArg,
    /// Only the records of this run
    #[arg(long, value_name = "ID")]
    pub run: Option<u32>,
    /// The format; taken from the name of the output file where none is given
    #[arg(long, value_enum)]
    pub format: Option<FormatArg>,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `--what`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhatArg {
    /// One row a run: parameters and statistics
    Runs,
    /// One row an IO
    Records,
}

/// `--format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Comma-separated values
    Csv,
    /// JSON
    Json,
    /// Parquet
    Parquet,
}

/// `uflip sim`
#[derive(Args, Debug)]
pub struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// The commands of `uflip sim`.
#[derive(Subcommand, Debug)]
pub enum SimCommand {
    /// List the devices of the catalogue
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show how a device is built and how an IO travels through it
    Show {
        /// A name of the catalogue or a FILE.toml
        #[arg(value_name = "NAME|FILE.toml")]
        device: String,
        /// Print the description as JSON
        #[arg(long)]
        json: bool,
        /// Print the description's file, to be saved and changed
        #[arg(long, conflicts_with = "json")]
        toml: bool,
    },
    /// Check a description
    Check {
        /// The description
        #[arg(value_name = "FILE.toml")]
        file: PathBuf,
    },
    /// Measure the catalogue and print the papers' tables beside the results
    Verify(VerifyArgs),
    /// Measure random devices whose truth is known and print how often the
    /// automatic method is right
    Proof(extra::ProofArgs),
    /// Serve a device in wall-clock time as a real block device, until Ctrl-C
    Attach(AttachArgs),
    /// List what is attached, and how late each device answered
    Status(StatusArgs),
    /// End an attachment, or clean up after one that was killed
    Detach(DetachArgs),
}

/// `uflip sim verify`
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Only these devices
    pub devices: Vec<String>,
    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where the lengths of the micro-benchmarks' runs and the pause between
    /// them come from: fixed takes the paper's, with 5 s between runs
    #[arg(long, value_enum, default_value_t = MethodArg::Auto)]
    pub method: MethodArg,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `uflip sim attach`
#[derive(Args, Debug)]
pub struct AttachArgs {
    /// A name of the catalogue or a FILE.toml
    #[arg(value_name = "NAME|FILE.toml")]
    pub device: String,
    /// The state it is brought into first, in virtual time: none, random,
    /// complete, sequential, sequential:SIZE or trim; no data is kept of it
    #[arg(long, value_name = "STATE", default_value_t = State::None)]
    pub state: State,
    /// The seed of the state and of the device's own choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Memory for the data written to it; writes beyond fail as on a full
    /// device [default: half of what is available]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Print what is attached, and at the end how late it answered, as a line
    /// of JSON each
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: RunDirArgs,
}

/// `uflip sim status`
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: RunDirArgs,
}

/// `uflip sim detach`
#[derive(Args, Debug)]
pub struct DetachArgs {
    /// The block device, such as /dev/loop0; needed where several are attached
    #[arg(conflicts_with = "all")]
    pub device: Option<String>,
    /// Every attached device
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub place: RunDirArgs,
}

/// Where attachments are noted.
#[derive(Args, Debug)]
pub struct RunDirArgs {
    /// Where attachments are noted and mounted [default: /run/uflip, or
    /// $XDG_RUNTIME_DIR/uflip]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub run_dir: Option<PathBuf>,
}
