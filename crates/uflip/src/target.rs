//! Targets: what the user named ([`parse`]) becomes a device that can be run on.

mod parse;
pub mod program;
mod solid;

pub use parse::{Target, Unnamed, simulated_by};

use crate::describe::{self, round_time};
use crate::input;
use crate::interrupt::STOP;
use crate::printable::word;
use crate::{limits, usage};
use anyhow::{Context, bail};
use solid::Solid;
use std::fs::File;
use std::io::IsTerminal;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uflip_device::identity::{DeviceFacts, SysPaths, Transport};
use uflip_device::safety::{self, Examination, TargetKind, WritePermit};
use uflip_device::scratch::{self, Scratch};
use uflip_device::stamp::Key;
use uflip_device::{Bytes, Device, DeviceError, EngineOptions, Geometry, NullDevice, RealDevice};
use uflip_measure::run::RunSpec;
use uflip_measure::{Pattern, PatternMode, Plan, State, Step};
use uflip_sim::{Description, SimDevice, catalogue};
use uflip_store::manifest::TargetFacts;
use uflip_store::{Claim, output};

/// What a target is, before it is opened.
pub struct Place {
    /// Which.
    pub target: Target,
    /// Its capacity and sector, as far as they are known beforehand.
    pub geometry: Geometry,
    /// What is known of it, for the manifest.
    pub facts: TargetFacts,
    /// The same in one line.
    pub summary: String,
    /// Whether it turns, where known; tells about how fast to expect it.
    pub rotational: Option<bool>,
    /// It is simulated: time costs nothing.
    pub virtual_time: bool,
    /// Why it has no use for trims, where it has none.
    pub no_trims: Option<&'static str>,
    examination: Option<Examination>,
}

/// A target that can be run on.
pub struct Opened {
    /// Which; there by now.
    pub target: Target,
    /// The device.
    pub device: Box<dyn Device>,
    /// What is known of it, for the manifest.
    pub facts: TargetFacts,
    /// The same in one line.
    pub summary: String,
    /// What makes its results less sound, in words.
    pub warnings: Vec<String>,
}

/// What may be done to a target.
#[derive(Clone, Copy)]
pub enum Access<'a> {
    /// Only reads.
    Read,
    /// Reads and writes, with the values of `--erase-device`.
    Write(&'a [String]),
}

/// The description of a simulated device: a name of the catalogue or a file.
///
/// # Errors
/// Where there is none, it is wrong, or there is not enough memory for it.
pub fn simulated(what: &str) -> anyhow::Result<Description> {
    let description = described(what)?;
    limits::room_for_simulated(&description)?;
    Ok(description)
}

/// The same, however large it is.
///
/// # Errors
/// Where there is none, or it is wrong.
pub fn described(what: &str) -> anyhow::Result<Description> {
    if catalogue::names().any(|name| name == what) {
        return catalogue::get(what).map_err(usage);
    }
    let path = Path::new(what);
    if !path.is_file() {
        let names: Vec<&str> = catalogue::names().collect();
        return Err(usage(format!(
            "sim:{what} is neither a file nor in the catalogue; type sim:FILE.toml or sim: with one of {}",
            names.join(", ")
        )));
    }
    let text = input::text(path, input::DESCRIPTION, "a device's description")?;
    uflip_sim::check(&text).map_err(|e| usage(format!("{what}: {e}")))
}

/// What `target` is, without opening it for writing or making anything.
///
/// # Errors
/// Where nothing can be learnt of it.
pub fn locate(target: &Target) -> anyhow::Result<Place> {
    let place = |geometry, facts, summary: String, virtual_time| Place {
        target: target.clone(),
        geometry,
        facts,
        summary,
        rotational: None,
        virtual_time,
        no_trims: None,
        examination: None,
    };
    match target {
        Target::Null { capacity } => {
            let geometry = Geometry { capacity: *capacity, sector: Bytes(512) };
            let facts = TargetFacts::Null { path: target.to_string() };
            let summary = format!("{target}: a device that answers at once");
            Ok(Place { rotational: Some(false), ..place(geometry, facts, summary, false) })
        }
        Target::Simulated { description, .. } => {
            let geometry = Geometry {
                capacity: Bytes(description.capacity_mib << 20),
                sector: Bytes(description.sector_bytes),
            };
            let facts = TargetFacts::Simulated {
                path: target.to_string(),
                description: serde_json::to_value(description)?,
            };
            let summary = format!("{target}: {}, simulated", description.name);
            let no_trims = description.disk.is_some().then_some("a disk has nothing to trim");
            Ok(Place { no_trims, ..place(geometry, facts, summary, true) })
        }
        Target::BlockDevice { path } | Target::ExistingFile { path } | Target::Scratch { path, .. } => {
            on_path(target, path)
        }
    }
}

/// Whether a disk says that it turns. Virtual disks say so whatever they are.
fn turns(disk: &DeviceFacts) -> Option<bool> {
    disk.rotational.filter(|_| disk.transport != Some(Transport::Virtio))
}

fn on_path(target: &Target, path: &Path) -> anyhow::Result<Place> {
    let examination = safety::examine(path, &SysPaths::default())?;
    let facts = examination.facts();
    let beneath = facts.file.as_ref().and_then(|f| f.beneath.as_deref());
    let of = |get: &dyn Fn(&DeviceFacts) -> Option<Bytes>| get(facts).or_else(|| beneath.and_then(get));
    let sector = of(&|f| f.logical_sector_bytes).unwrap_or(Bytes(512));
    let size = match target {
        Target::Scratch { size, .. } => *size,
        _ => facts.size_bytes.unwrap_or(Bytes(0)),
    };
    let capacity = Bytes(size.0 / sector.0 * sector.0);
    if capacity.0 == 0 && examination.kind() == TargetKind::ForeignFile {
        return Err(usage(format!(
            "{target} has {size}, less than a sector of {sector}, and uflip did not make it; name another target, or \
             type --scratch FILE with a new name"
        )));
    }
    Ok(Place {
        target: target.clone(),
        geometry: Geometry { capacity, sector },
        facts: TargetFacts::Device(facts.clone().into()),
        summary: describe::target(&target.to_string(), facts),
        rotational: turns(facts).or_else(|| beneath.and_then(turns)),
        virtual_time: false,
        no_trims: match facts.discard_granularity_bytes {
            _ if examination.kind() != TargetKind::Block => {
                Some("a trimmed file has holes: what follows measures the file system")
            }
            Some(Bytes(0)) => Some("the device says that it cannot be trimmed"),
            _ => None,
        },
        examination: Some(examination),
    })
}

impl Place {
    /// Whether it is a scratch file that has to be made first.
    pub fn is_to_be_made(&self) -> bool {
        matches!(self.target, Target::Scratch { .. })
    }

    /// Whether it can be brought to the trimmed state.
    ///
    /// # Errors
    /// Why not, and what to type instead.
    pub fn may_be_trimmed(&self) -> anyhow::Result<()> {
        match self.no_trims {
            Some(why) => Err(usage(format!("--state trim: {why}; type --state random or complete"))),
            None => Ok(()),
        }
    }

    /// Whether writing to it is allowed, asked before anything is made.
    ///
    /// # Errors
    /// The refusal, with what to type where anything helps.
    pub fn may_be_written(&self, consents: &[String]) -> anyhow::Result<()> {
        match (&self.target, &self.examination) {
            (Target::Scratch { path, size }, examination) => {
                examination.as_ref().map_or(Ok(()), Examination::refuse_in_use)?;
                Ok(scratch::may_be_made(path, *size)?)
            }
            (_, Some(examination)) => {
                safety::permit(examination, consents)?;
                Ok(examination.refuse_in_use()?)
            }
            _ => Ok(()),
        }
    }

    /// The same for a measurement, which would destroy what a program left.
    ///
    /// # Errors
    /// As there, and where a program wrote the file.
    pub fn may_be_measured_with_writes(&self, consents: &[String]) -> anyhow::Result<()> {
        self.may_be_written(consents)?;
        self.examination.as_ref().map_or(Ok(()), refuse_a_programs)
    }
}

/// Refuses a value of `--erase-device` that names none of the targets that are
/// written to: somebody means another device than the one that would be erased.
///
/// # Errors
/// [`crate::Usage`] with what to type instead.
pub fn refuse_other_consents(places: &[&Place], consents: &[String]) -> anyhow::Result<()> {
    let named = |given: &str, place: &Place| {
        place.examination.as_ref().is_some_and(|examination| examination.is_named_by(given))
    };
    let other = |given: &&String| !places.iter().any(|place| named(given, place));
    let Some(given) = consents.iter().find(other) else { return Ok(()) };
    let targets: Vec<String> = places.iter().map(|place| place.target.to_string()).collect();
    let of = if targets.is_empty() { "what is written to".into() } else { targets.join(" or ") };
    Err(usage(format!(
        "--erase-device {}: that names another device than {of}, so that it does nothing; leave it away, or name \
         that device as the target",
        word(given)
    )))
}

/// Refuses the scratch file that a program wrote (`uflip copy`): it may be all that
/// there is of somebody's data.
fn refuse_a_programs(examination: &Examination) -> anyhow::Result<()> {
    if !examination.is_programmed() {
        return Ok(());
    }
    let path = examination.path().display();
    Err(usage(format!(
        "{path} holds what a program wrote, which a measurement that writes would destroy; name another file, or \
         remove this one"
    )))
}

/// Opens `target` for `access`; makes a scratch file where nothing is yet, in at
/// most `budget`.
///
/// # Errors
/// A refusal, or what the system says.
pub fn open(
    target: &Target,
    access: Access<'_>,
    options: EngineOptions,
    budget: Option<Duration>,
) -> anyhow::Result<Opened> {
    let device: Box<dyn Device> = match target {
        Target::Null { capacity } => Box::new(NullDevice::new(*capacity)),
        Target::Simulated { description, .. } => {
            Box::new(SimDevice::new(description, options.seed).map_err(usage)?)
        }
        Target::Scratch { path, size } => {
            make_scratch(path, *size, budget)?;
            return open_path(&target.made(), access, options);
        }
        Target::BlockDevice { .. } | Target::ExistingFile { .. } => {
            return open_path(target, access, options);
        }
    };
    let place = locate(target)?;
    let (facts, summary) = (place.facts, place.summary);
    Ok(Opened { target: target.clone(), device, facts, summary, warnings: Vec::new() })
}

/// The same of what is there.
fn open_path(target: &Target, access: Access<'_>, options: EngineOptions) -> anyhow::Result<Opened> {
    let place = locate(target)?;
    let Some(examination) = &place.examination else { bail!("{target} is no path") };
    let path = examination.path();
    let is_file = examination.kind() != TargetKind::Block;
    let mut warnings = examination.notes().to_vec();
    let permit = match access {
        Access::Read => None,
        Access::Write(consents) => Some(safety::permit(examination, consents)?),
    };
    if permit.is_some() {
        refuse_a_programs(examination)?;
    }
    if is_file {
        let found = solid::made_whole(examination, &STOP);
        warnings.extend(found.with_context(|| format!("cannot learn how {target} lies on its disk"))?);
    }
    warnings.extend(solid::holes_behind(examination.facts()));
    let key = permit.as_ref().map_or(Key::DEVICE, WritePermit::key);
    let (opener, claim) = match permit {
        None => (reader(path.to_path_buf(), read_lock(examination)?, options), None),
        Some(permit) => writer(permit, options).map(|(opener, claim)| (opener, Some(claim)))?,
    };
    let device = RealDevice::new(&target.to_string(), place.geometry, options, key, opener)?;
    let device: Box<dyn Device> =
        if is_file { Box::new(Solid::new(device, path, claim)) } else { Box::new(device) };
    Ok(Opened { target: target.clone(), device, facts: place.facts, summary: place.summary, warnings })
}

/// Sees that a scratch file that is to be written has no holes.
fn holes_of_ours(examination: &Examination) -> anyhow::Result<()> {
    solid::made_whole(examination, &STOP).map(|_| ())
}

type Opener = uflip_device::real::Opener;

fn other(error: impl std::fmt::Display) -> DeviceError {
    DeviceError::Other(error.to_string())
}

/// Keeps others from writing to a scratch file of ours while it is read, as long as it
/// stays open.
fn read_lock(examination: &Examination) -> anyhow::Result<Option<File>> {
    if examination.kind() != TargetKind::Scratch {
        return Ok(None);
    }
    Ok(Some(scratch::lock_to_read(examination.path())?))
}

fn reader(path: PathBuf, lock: Option<File>, options: EngineOptions) -> Opener {
    // Held as long as the device.
    Box::new(move || {
        let _held = &lock;
        safety::open_for_reading(&path, options.buffering.open_flags()).map_err(other)
    })
}

/// The first descriptor is the claim and stays open as long as the device; the
/// one given back shares it.
fn writer(permit: WritePermit, options: EngineOptions) -> anyhow::Result<(Opener, File)> {
    let flags = options.buffering.open_flags();
    let claim: File = permit.open(flags)?;
    let shared = claim.try_clone()?;
    Ok((Box::new(move || permit.reopen(&claim, flags).map_err(other)), shared))
}

/// Makes (or takes again) a scratch file, with a word about it.
fn make_scratch(path: &Path, size: Bytes, budget: Option<Duration>) -> anyhow::Result<Scratch> {
    let began = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    crate::say!("writing the scratch file {} ({size})", path.display());
    let mut last = 0;
    let mut progress = |done: Bytes, total: Bytes| {
        let percent = done.0 * 100 / total.0.max(1);
        if terminal && percent > last {
            last = percent;
            let left = began.elapsed().mul_f64((total.0 - done.0) as f64 / done.0.max(1) as f64);
            crate::say_part!("\r  {percent:3} %, about {} left   ", round_time(left));
        }
    };
    let made = scratch::prepare(path, size, budget, &mut progress, &STOP);
    if terminal {
        crate::say_part!("\r{:40}\r", "");
    }
    let made = made?;
    if let Some(wanted) = made.shortened_from {
        crate::say!("the disk is slow: the scratch file is {} instead of {wanted}", made.size);
    }
    Ok(made)
}

/// Removes the scratch file that a finished benchmark made; where it is not ours
/// any more, or somebody uses it, it stays, with a word.
pub fn remove_scratch(path: &Path) {
    if let Err(error) = scratch::remove(path) {
        crate::say!("warning: the scratch file is not removed: {error}");
    }
}

/// Sees that no run on a file trims beside other IOs.
///
/// # Errors
/// The pattern that does.
pub fn refuse_mixed_trims<'a>(
    place: &Place,
    patterns: impl IntoIterator<Item = &'a Pattern>,
) -> anyhow::Result<()> {
    let is_file = place.examination.as_ref().is_some_and(|e| e.kind() != TargetKind::Block);
    let mixed = |pattern: &&Pattern| {
        let basics = pattern.basics();
        let trims = basics.iter().filter(|basic| basic.mode == PatternMode::Trim).count();
        trims > 0 && trims < basics.len()
    };
    match patterns.into_iter().find(mixed).filter(|_| is_file) {
        None => Ok(()),
        Some(pattern) => Err(usage(format!(
            "{pattern}: trims make holes in a file, which the other IOs of the run would meet; \
             name a block device, or trim in a run of its own"
        ))),
    }
}

/// The sentence that announces what is written, where, and what it costs.
pub fn will_be_written(range: &Range<u64>, bytes: Bytes, capacity: Bytes, target: &Target) -> String {
    let (start, end) = (Bytes(range.start), Bytes(range.end));
    format!("{target} will be written between {start} and {end}; this {}", safety::wear_note(bytes, capacity))
}

/// From the first to the last byte that any run of the plan writes.
pub fn written_range(plan: &Plan) -> Range<u64> {
    if plan.steps.iter().any(|s| matches!(s, Step::Reset { state } if *state != State::None)) {
        return 0..plan.geometry.capacity.0;
    }
    plan.runs().filter_map(RunSpec::pattern).map(pattern_range).reduce(join).unwrap_or(0..0)
}

/// The same of one pattern: its resolved target spaces.
pub fn pattern_range(pattern: &Pattern) -> Range<u64> {
    let spaces = pattern.basics().into_iter().filter(|b| b.mode != PatternMode::Read).map(|b| {
        let start = b.target_offset.0;
        start..start + b.target_size.unwrap_or_default().0
    });
    spaces.reduce(join).unwrap_or(0..0)
}

fn join(a: Range<u64>, b: Range<u64>) -> Range<u64> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

/// Refuses a target that is, or would be, a file of the results in `output` or of other results.
///
/// # Errors
/// What to type instead.
pub fn refuse_among_results(place: &Place, output: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = place.target.path() else { return Ok(()) };
    output::check_target(path, output, place.is_to_be_made()).map_err(usage)
}

/// Claims the results folder that was named, or a new one in the current
/// folder: `uflip-out`, `uflip-out-2`, … Held from here on against every other
/// uflip, before anything else is made.
///
/// # Errors
/// Where it is in use or not free, or cannot be made.
pub fn claim_output(named: Option<&Path>) -> anyhow::Result<Claim> {
    let Some(dir) = named else {
        let names =
            std::iter::once("uflip-out".to_string()).chain((2..100_000).map(|n| format!("uflip-out-{n}")));
        return Ok(Claim::first_free(names.map(PathBuf::from))?);
    };
    Ok(Claim::new(dir)?)
}
