//! `uflip copy`: from one target to another with several requests under way; the
//! first program on the data face (`uflip_device::blocks`).
//!
//! How: a work on a program's session (`session/program.rs`), with two devices and
//! one or two steps. What is real is timed on the wall's clock, what is simulated in
//! virtual time, which stands still while something real is waited for; so a
//! simulated device meets a source or a target that takes no time, as memory is.

use crate::args::copy::CopyArgs;
use crate::command::{print, print_json};
use crate::interrupt::STOP;
use crate::printable::word;
use crate::session::Order;
use crate::session::program::{self, ProgramSession, ProgramWish, UsedDevice, progress};
use crate::target::program::{FoundEndpoint, look, refuse_shared_bytes};
use crate::{limits, usage};
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::Path;
use std::time::SystemTime;
use uflip_device::blocks::MOST_REQUESTS;
use uflip_device::blocks::copy::{self, Copied, CopyJob};
use uflip_device::{Bytes, IoRecord, Nanos};
use uflip_measure::program::{PlannedStep, StepRequests};

/// What new scratch files have whole numbers of.
const SCRATCH_UNIT: u64 = 4096;

/// What `--json` prints.
#[derive(Serialize)]
struct CopyFacts {
    from: String,
    to: String,
    bytes: u64,
    block_size: u32,
    requests: usize,
    /// How each is driven, in words.
    from_driven: String,
    to_driven: String,
    /// Of the copy with its flush; null where something was simulated and nothing on a
    /// path.
    wall: Option<Took>,
    /// The same in virtual time; null where nothing was simulated.
    virtual_time: Option<Took>,
    /// True where every byte was read again and is the same; null where that was
    /// not asked for.
    verified: Option<bool>,
    /// The folder in which every request is; null where none was named.
    results: Option<String>,
    /// What makes the copy or its figures less sound, in words; each was said.
    warnings: Vec<String>,
}

/// What the copy took on one clock.
#[derive(Serialize)]
struct Took {
    elapsed_ns: u64,
    /// In 10^6 bytes a second; null where it took no time.
    mb_s: Option<f64>,
}

impl Took {
    fn new(bytes: Bytes, elapsed: Nanos) -> Took {
        let mb_s = (elapsed.0 > 0).then(|| bytes.0 as f64 / 1e6 / (elapsed.0 as f64 / 1e9));
        Took { elapsed_ns: elapsed.0, mb_s }
    }
}

/// The steps: what is copied, and what is held against it.
const TRANSFER: &str = "transfer";
const COMPARE: &str = "compare";

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, a refusal, or what a device says.
pub fn copy(args: CopyArgs) -> anyhow::Result<()> {
    let from = look(&args.from, Bytes(0))?;
    let job = job(&args, &from)?;
    let to = look(&args.to, Bytes(job.bytes.0.next_multiple_of(SCRATCH_UNIT)))?;
    refuse(&args, job, &from, &to)?;
    let any_simulated = from.is_virtual() || to.is_virtual();
    // Memory is timed with what stands beside it.
    let any_real = !any_simulated || from.on_a_path().is_some() || to.on_a_path().is_some();
    let names = [from.named.to_string(), to.named.to_string()];
    let source = from.on_a_path().and_then(|target| target.path().map(Path::to_path_buf));
    let before = as_written(source.as_deref());
    let wish = wish(&args, job, from, to);
    let order = Order {
        consents: args.consent.erase_device,
        output: args.output,
        seed: Some(args.seed),
        typed: args.typed,
        ..Order::new("copy", None)
    };
    let mut session = program::begin(&order, wish)?;
    let [from_driven, to_driven] = session.driven.clone();
    let worked = work(&mut session, job, args.verify, &names).and_then(|took| {
        if as_written(source.as_deref()) != before {
            session.found(format!(
                "{} was written to while it was copied: the copy may hold some of it as it was before and some as it \
                 is now; copy it again once nobody writes to it",
                names[0]
            ))?;
        }
        Ok(took)
    });
    let warnings = session.warnings.clone();
    let ((wall, simulated), results) = session.close(worked)?;
    let [from, to] = names;
    let facts = CopyFacts {
        from,
        to,
        bytes: job.bytes.0,
        block_size: job.block,
        requests: job.requests,
        from_driven,
        to_driven,
        wall: any_real.then(|| Took::new(job.bytes, wall)),
        virtual_time: any_simulated.then(|| Took::new(job.bytes, simulated)),
        verified: args.verify.then_some(true),
        results: results.map(|dir| dir.display().to_string()),
        warnings,
    };
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
}

/// What is asked of the session.
fn wish(args: &CopyArgs, job: CopyJob, from: FoundEndpoint, to: FoundEndpoint) -> ProgramWish<2> {
    let [of_source, of_sink] = [in_use(&from), what_stays(&to, job)];
    ProgramWish {
        uses: [
            UsedDevice { role: "from", found: from, writes: None, warnings: of_source },
            UsedDevice { role: "to", found: to, writes: Some(0..job.bytes.0), warnings: of_sink },
        ],
        requests: args.requests,
        seed: args.seed,
        arguments: [
            ("bytes", job.bytes.0),
            ("block_size", job.block.into()),
            ("requests", job.requests as u64),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into(),
        steps: steps(job, args.verify),
    }
}

/// Size and time of the last write of a file; `None` of anything else.
fn as_written(path: Option<&Path>) -> Option<(u64, SystemTime)> {
    let meta = std::fs::metadata(path?).ok()?;
    if meta.is_file() { Some((meta.len(), meta.modified().ok()?)) } else { None }
}

/// What is asked of the two devices.
fn steps(job: CopyJob, verify: bool) -> Vec<PlannedStep> {
    let requests = job.bytes.0.div_ceil(u64::from(job.block));
    let reads = StepRequests { requests, writes: false };
    // With the flush.
    let writes = StepRequests { requests: requests + 1, writes: true };
    let mut steps = vec![PlannedStep { name: TRANSFER, asks: vec![reads, writes] }];
    steps.extend(verify.then(|| PlannedStep { name: COMPARE, asks: vec![reads, reads] }));
    steps
}

/// How much is copied, in which requests.
fn job(args: &CopyArgs, from: &FoundEndpoint) -> anyhow::Result<CopyJob> {
    let name = &from.named;
    if from.is_to_be_made() {
        return Err(usage(format!("{name}: nothing is there to be copied")));
    }
    if !(1..=MOST_REQUESTS).contains(&args.requests) {
        return Err(usage(format!("--requests {}: type 1 to {MOST_REQUESTS}", args.requests)));
    }
    if let Some(size) = from.odd_size {
        let sector = from.geometry.sector;
        return Err(usage(format!(
            "{name} has {} bytes, no whole number of sectors of {}, and the rest would not be copied; \
             type truncate -s %{} {name} to fill it up with zeros",
            size.0, sector.0, sector.0
        )));
    }
    let block = args.block_size.0;
    if block == 0 || block > u64::from(IoRecord::MAX_SIZE) {
        let below = Bytes(u64::from(IoRecord::MAX_SIZE) + 1);
        return Err(usage(format!(
            "--block-size {}: type a size from 512B to below {below}",
            args.block_size
        )));
    }
    Ok(CopyJob { bytes: from.geometry.capacity, block: block as u32, requests: args.requests })
}

/// Says who else may write to what is copied.
fn in_use(from: &FoundEndpoint) -> Vec<String> {
    let uses = from.in_use();
    let warning = |uses: String| {
        format!(
            "{} is in use ({uses}): what others write to it while it is copied may be in the copy in part; for a copy \
             of one moment end that use first",
            from.named
        )
    };
    if uses.is_empty() { Vec::new() } else { vec![warning(uses.join("; "))] }
}

/// Says that what is written to is longer, so that its end stays.
fn what_stays(to: &FoundEndpoint, job: CopyJob) -> Vec<String> {
    let (capacity, name) = (to.geometry.capacity, &to.named);
    let is_longer = to.on_a_path().is_some() && !to.is_to_be_made() && capacity > job.bytes;
    let warning = || {
        format!(
            "{name} is longer than what is copied: the last {} bytes, from {} on, stay as they are and are no part of \
             the copy",
            capacity.0 - job.bytes.0,
            job.bytes.exact()
        )
    };
    if is_longer { vec![warning()] } else { Vec::new() }
}

/// Refuses to write over what a program left in a scratch file, unless that is named.
fn refuse_a_programs(args: &CopyArgs, to: &FoundEndpoint) -> anyhow::Result<()> {
    let Some(path) = to.holds_a_programs() else { return Ok(()) };
    if args.consent.erase_device.iter().any(|named| Path::new(named) == path) {
        return Ok(());
    }
    let path = path.display().to_string();
    bail!(
        "{path} holds what a program wrote, which this copy would overwrite; type --erase-device {} to give that up, or \
         name another TO",
        word(&path)
    )
}

/// Refuses what cannot be copied, before anything is made.
fn refuse(args: &CopyArgs, job: CopyJob, from: &FoundEndpoint, to: &FoundEndpoint) -> anyhow::Result<()> {
    // Said before their sizes, which differ where one is a part of the other.
    refuse_shared_bytes(from, to)?;
    refuse_a_programs(args, to)?;
    let (capacity, name) = (to.geometry.capacity, &to.named);
    if capacity < job.bytes {
        return Err(usage(format!(
            "{name} has {capacity}, less than the {} of {}; name a larger one",
            job.bytes, from.named
        )));
    }
    let sector = from.geometry.sector.0.max(to.geometry.sector.0);
    if !u64::from(job.block).is_multiple_of(sector) {
        return Err(usage(format!(
            "--block-size {}: type a multiple of {sector}, the sector of one of them",
            args.block_size
        )));
    }
    if !job.bytes.0.is_multiple_of(sector) {
        return Err(usage(format!(
            "{} has {} bytes, no whole number of the sectors of {name}, which have {sector}",
            from.named, job.bytes.0
        )));
    }
    let buffers = u64::from(job.block).saturating_mul(job.requests as u64);
    let all = buffers.saturating_mul(if args.verify { 2 } else { 1 });
    limits::room(all, "the requests under way", "type a smaller --block-size or fewer --requests")
}

/// Copies, and compares where that is asked for; gives what the copy took on the
/// wall's clock and in virtual time.
fn work(
    session: &mut ProgramSession<2>,
    job: CopyJob,
    verify: bool,
    [from, to]: &[String; 2],
) -> anyhow::Result<(Nanos, Nanos)> {
    let clocks = session.clocks.clone();
    let took = session.repeatable(TRANSFER, |[source, sink]| {
        let began = (clocks.wall.now(), clocks.simulated.now());
        let copied = copy::copy(source, sink, job, &STOP, &mut progress("copied", job.bytes))?;
        if copied.interrupted {
            bail!("interrupted; {to} holds only some of {from}, about {}", copied.bytes);
        }
        let (wall, simulated) = (clocks.wall.now(), clocks.simulated.now());
        Ok((wall.saturating_sub(began.0), simulated.saturating_sub(began.1)))
    })?;
    if verify {
        session.repeatable(COMPARE, |[source, sink]| {
            let compared = copy::compare(source, sink, job, &STOP, &mut progress("compared", job.bytes));
            match compared.with_context(|| format!("{to} is no copy of {from}"))? {
                Copied { interrupted: false, .. } => Ok(()),
                Copied { bytes, .. } => {
                    bail!("interrupted; {from} is copied and {bytes} of it are compared")
                }
            }
        })?;
    }
    Ok(took)
}

fn as_text(facts: &CopyFacts) -> String {
    let mut text = format!(
        "{} copied from {} ({}) to {} ({}), {} requests of {} under way\n",
        Bytes(facts.bytes),
        facts.from,
        facts.from_driven,
        facts.to,
        facts.to_driven,
        facts.requests,
        Bytes(u64::from(facts.block_size)),
    );
    for (clock, took) in [("wall clock", &facts.wall), ("virtual time", &facts.virtual_time)] {
        if let Some(took) = took {
            let speed = took.mb_s.map_or("-".to_string(), |mb_s| format!("{mb_s:.1}"));
            text += &format!("{clock:>12} {:>12} {speed:>10} MB/s\n", Nanos(took.elapsed_ns).to_string());
        }
    }
    if facts.verified == Some(true) {
        text += "every byte was read again and is the same\n";
    }
    if let Some(dir) = &facts.results {
        text += &format!("every request is in {dir}; uflip show {}\n", word(dir));
    }
    text
}
