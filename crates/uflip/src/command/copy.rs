//! `uflip copy`: from one target to another with several requests under way; the
//! first program on the data face (`uflip_device::blocks`).
//!
//! How: everything that can be refused is refused before anything is made or
//! written, as by `uflip run`. What is real is timed on the wall's clock, what is
//! simulated in virtual time, which stands still while something real is waited
//! for; so a simulated device meets a source or a target that takes no time.

use crate::args::copy::CopyArgs;
use crate::command::{print, print_json};
use crate::interrupt::{self, STOP};
use crate::limits;
use crate::target::Access;
use crate::target::program::{self, Clocks, FoundEndpoint, OpenEndpoint};
use crate::{target, usage};
use anyhow::{Context, bail};
use serde::Serialize;
use std::io::IsTerminal;
use uflip_device::blocks::MOST_REQUESTS;
use uflip_device::blocks::copy::{self, CopyJob};
use uflip_device::{Bytes, IoRecord, Nanos};

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
    /// Of the copy with its flush; null where nothing was real.
    wall: Option<Took>,
    /// The same in virtual time; null where nothing was simulated.
    virtual_time: Option<Took>,
    /// True where every byte was read again and is the same; null where that was
    /// not asked for.
    verified: Option<bool>,
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

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, a refusal, or what a device says.
pub fn copy(args: &CopyArgs) -> anyhow::Result<()> {
    let from = program::look(&args.from, Bytes(0))?;
    let job = job(args, &from)?;
    let to = program::look(&args.to, Bytes(job.bytes.0.next_multiple_of(SCRATCH_UNIT)))?;
    refuse(args, job, &from, &to)?;
    interrupt::listen()?;
    let clocks = Clocks::start();
    let mut source = from.open(Access::Read, args.requests, args.seed, &clocks)?;
    let access = Access::Write(&args.consent.erase_device);
    let mut sink = to.open(access, args.requests, args.seed, &clocks)?;
    if let Some(named) = to.on_a_path() {
        let text = target::will_be_written(&(0..job.bytes.0), job.bytes, to.geometry.capacity, named);
        crate::say!("{text}");
    }
    let worked = work(args, job, (&from, &mut source), (&to, &mut sink), &clocks);
    // Also where it failed: what was written so far is noted.
    let closed = sink.close().and(source.close());
    let facts = worked?;
    closed?;
    if args.json { print_json(&facts) } else { print(&as_text(&facts)) }
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
        let most = Bytes(u64::from(IoRecord::MAX_SIZE));
        return Err(usage(format!("--block-size {}: type a size up to {most}", args.block_size)));
    }
    Ok(CopyJob { bytes: from.geometry.capacity, block: block as u32, requests: args.requests })
}

/// Refuses what cannot or must not be copied, before anything is made.
fn refuse(args: &CopyArgs, job: CopyJob, from: &FoundEndpoint, to: &FoundEndpoint) -> anyhow::Result<()> {
    let (capacity, name) = (to.geometry.capacity, &to.named);
    if from.resolved().is_some_and(|path| Some(path) == to.resolved()) {
        return Err(usage(format!("FROM and TO are both {name}; name two targets")));
    }
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
    limits::room(all, "the requests under way", "type a smaller --block-size or fewer --requests")?;
    to.may_be_written(&args.consent.erase_device)
}

/// Copies, and compares where that is asked for.
fn work(
    args: &CopyArgs,
    job: CopyJob,
    (from, source): (&FoundEndpoint, &mut OpenEndpoint),
    (to, sink): (&FoundEndpoint, &mut OpenEndpoint),
    clocks: &Clocks,
) -> anyhow::Result<CopyFacts> {
    let (source_blocks, sink_blocks) = (&mut *source.blocks, &mut *sink.blocks);
    let began = (clocks.wall.now(), clocks.simulated.now());
    let copied = copy::copy(source_blocks, sink_blocks, job, &STOP, &mut progress("copied", job.bytes));
    clear_progress();
    let copied = copied?;
    let wall = clocks.wall.now().saturating_sub(began.0);
    let simulated = clocks.simulated.now().saturating_sub(began.1);
    if copied.interrupted {
        bail!("interrupted; {} holds only some of {}, about {}", to.named, from.named, copied.bytes);
    }
    let mut verified = None;
    if args.verify {
        let compared =
            copy::compare(source_blocks, sink_blocks, job, &STOP, &mut progress("compared", job.bytes));
        clear_progress();
        let compared = compared.with_context(|| format!("{} is no copy of {}", to.named, from.named))?;
        if compared.interrupted {
            bail!("interrupted; {} is copied and {} of it are compared", from.named, compared.bytes);
        }
        verified = Some(true);
    }
    let all_virtual = from.is_virtual() && to.is_virtual();
    Ok(CopyFacts {
        from: from.named.to_string(),
        to: to.named.to_string(),
        bytes: copied.bytes.0,
        block_size: job.block,
        requests: job.requests,
        from_driven: source.driven.clone(),
        to_driven: sink.driven.clone(),
        wall: (!all_virtual).then(|| Took::new(copied.bytes, wall)),
        virtual_time: (from.is_virtual() || to.is_virtual()).then(|| Took::new(copied.bytes, simulated)),
        verified,
    })
}

/// Tells a terminal how far it is, each percent once.
fn progress(what: &'static str, all: Bytes) -> impl FnMut(Bytes) {
    let terminal = std::io::stderr().is_terminal();
    let mut last = 0;
    move |done: Bytes| {
        let percent = u128::from(done.0) * 100 / u128::from(all.0.max(1));
        if terminal && percent > last {
            last = percent;
            crate::say_part!("\r  {percent:3} % {what}   ");
        }
    }
}

fn clear_progress() {
    if std::io::stderr().is_terminal() {
        crate::say_part!("\r{:40}\r", "");
    }
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
    text
}
