//! Targets for programs: the data face of whatever was named.
//!
//! How: what is real is examined, permitted and opened as for a measurement, and a
//! scratch file is marked as a program's before anything is written to it. Simulated
//! devices share one virtual clock, and memory is on it wherever one of them is beside
//! it ([`Clocks::of`]); what lies on a path is on the wall's. `mem:SIZE` is a target of
//! programs only.

use super::{Access, Place, Target, Unnamed, holes_of_ours, locate, make_scratch, solid};
use crate::limits::{self, half_of_memory};
use crate::usage;
use anyhow::{Context, bail};
use std::fmt;
use std::path::Path;
use uflip_device::blocks::{Clock, MemoryBlocks, RealBlocks};
use uflip_device::identity::{self, SysPaths};
use uflip_device::safety::{self, Concern, Programming, TargetKind};
use uflip_device::scratch::ScratchError;
use uflip_device::{Blocks, Buffering, Bytes, Geometry};
use uflip_sim::{SimBlocks, SimDevice};
use uflip_store::manifest::TargetFacts;

/// What a program was told to use.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// Memory of this size.
    Memory(Bytes),
    /// What can be measured, too.
    Device(Target),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Memory(size) => write!(f, "mem:{}", size.exact()),
            Endpoint::Device(target) => write!(f, "{target}"),
        }
    }
}

/// A target that was looked at.
pub struct FoundEndpoint {
    /// What was named.
    pub named: Endpoint,
    /// Capacity and sector.
    pub geometry: Geometry,
    /// Its size where that is no whole number of sectors.
    pub odd_size: Option<Bytes>,
    place: Option<Place>,
}

/// The clocks of one program.
#[derive(Clone, Debug)]
pub struct Clocks {
    /// Of what is real.
    pub wall: Clock,
    /// Of what is simulated.
    pub simulated: Clock,
    /// Of memory and of what answers at once: virtual beside a simulated device, where
    /// they take no time, else the wall's.
    pub memory: Clock,
}

impl Clocks {
    /// Of a program that uses these, from zero on.
    pub fn of<'f>(mut found: impl Iterator<Item = &'f FoundEndpoint>) -> Clocks {
        let (wall, simulated) = (Clock::wall(), Clock::virtual_time());
        let memory = if found.any(FoundEndpoint::is_virtual) { simulated.clone() } else { wall.clone() };
        Clocks { wall, simulated, memory }
    }
}

/// A target that a program uses. The device goes before the claim.
pub struct OpenEndpoint {
    /// The device.
    pub blocks: Box<dyn Blocks>,
    /// How it is driven, in words.
    pub driven: String,
    /// Which, there by now; None of memory.
    pub target: Option<Target>,
    /// What is known of it, for the manifest.
    pub facts: TargetFacts,
    /// The same in one line.
    pub summary: String,
    /// What makes its results less sound, in words.
    pub warnings: Vec<String>,
    claim: Option<Programming>,
}

impl OpenEndpoint {
    /// Lets the device go and notes what was left on it.
    ///
    /// # Errors
    /// Where that cannot be noted.
    pub fn close(self) -> anyhow::Result<()> {
        drop(self.blocks);
        self.claim.map_or(Ok(()), |claim| Ok(claim.finish()?))
    }
}

/// Looks at what was named; a scratch file that has to be made gets `size`.
///
/// # Errors
/// Where it is no target, or nothing can be learnt of it.
pub fn look(text: &str, size: Bytes) -> anyhow::Result<FoundEndpoint> {
    if let Some(size) = text.strip_prefix("mem:") {
        let capacity: Bytes = size.parse().map_err(usage)?;
        if capacity.0 == 0 || !capacity.0.is_multiple_of(512) {
            return Err(usage(format!("{text}: type mem:SIZE with a multiple of 512B")));
        }
        limits::room(capacity.0, text, "type a smaller one")?;
        let geometry = Geometry { capacity, sector: Bytes(512) };
        return Ok(FoundEndpoint {
            named: Endpoint::Memory(capacity),
            geometry,
            odd_size: None,
            place: None,
        });
    }
    let target = Target::named(text, Unnamed::OfProgram, size)?;
    let place = locate(&target)?;
    let whole = place.examination.as_ref().filter(|_| !place.is_to_be_made());
    let size = whole.and_then(|examination| examination.facts().size_bytes);
    let odd_size = size.filter(|size| !size.0.is_multiple_of(place.geometry.sector.0));
    Ok(FoundEndpoint {
        named: Endpoint::Device(target),
        geometry: place.geometry,
        odd_size,
        place: Some(place),
    })
}

impl FoundEndpoint {
    /// Whether it is timed in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.virtual_time)
    }

    /// Whether nothing is there yet.
    pub fn is_to_be_made(&self) -> bool {
        self.place.as_ref().is_some_and(Place::is_to_be_made)
    }

    /// The target in the file system that will be written to.
    pub fn on_a_path(&self) -> Option<&Target> {
        match &self.named {
            Endpoint::Device(target) if target.path().is_some() => Some(target),
            _ => None,
        }
    }

    /// Refuses what is, or would be, a file of results.
    ///
    /// # Errors
    /// What to type instead.
    pub fn refuse_among_results(&self, output: Option<&Path>) -> anyhow::Result<()> {
        self.place.as_ref().map_or(Ok(()), |place| super::refuse_among_results(place, output))
    }

    /// What is known of it; `None` of memory.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The scratch file that a program wrote, which is to be written to: another
    /// program's data may be all that there is of somebody's.
    pub fn holds_a_programs(&self) -> Option<&Path> {
        let examination = self.place.as_ref()?.examination.as_ref()?;
        examination.is_programmed().then(|| examination.path())
    }

    /// Who may write to it while it is read, in words: what stands in the way of writing
    /// by others as it does of ours, and processes that have it open for writing.
    pub fn in_use(&self) -> Vec<String> {
        let Some(examination) = self.place.as_ref().and_then(|place| place.examination.as_ref()) else {
            return Vec::new();
        };
        let by_others = [
            Concern::Mounted,
            Concern::Held,
            Concern::Looped,
            Concern::Swap,
            Concern::Busy,
            Concern::FileInUse,
        ];
        let uses = examination.obstacles().iter().filter(|obstacle| by_others.contains(&obstacle.concern));
        let uses = uses.map(|obstacle| obstacle.statement.clone());
        uses.chain(safety::writers(examination.path())).collect()
    }

    /// Whether writing to it is allowed, asked before anything is made.
    ///
    /// # Errors
    /// The refusal, with what to type where anything helps.
    pub fn may_be_written(&self, consents: &[String]) -> anyhow::Result<()> {
        let allowed = self.place.as_ref().map_or(Ok(()), |place| place.may_be_written(consents));
        allowed.map_err(|error| match error.downcast_ref() {
            Some(ScratchError::Full { path, size, free, kept }) => anyhow::anyhow!(
                "{} of {size} does not fit: {free} are free and {kept} stay free for others; name a TO on another disk",
                path.display()
            ),
            _ => error,
        })
    }

    /// Opens it for a program with up to `requests` under way.
    ///
    /// # Errors
    /// A refusal, or what the system says.
    pub fn open(
        &self,
        access: Access<'_>,
        requests: usize,
        seed: u64,
        clocks: &Clocks,
    ) -> anyhow::Result<OpenEndpoint> {
        let name = self.named.to_string();
        let without_claim = |blocks, driven: &str| OpenEndpoint {
            blocks,
            driven: driven.to_string(),
            target: self.place.as_ref().map(|place| place.target.clone()),
            facts: self.place.as_ref().map_or(TargetFacts::Unknown, |place| place.facts.clone()),
            summary: self.place.as_ref().map_or(name.clone(), |place| place.summary.clone()),
            warnings: Vec::new(),
            claim: None,
        };
        match &self.named {
            Endpoint::Memory(size) => {
                let memory = MemoryBlocks::new(&name, *size, requests, clocks.memory.clone())?;
                Ok(without_claim(Box::new(memory), "memory"))
            }
            Endpoint::Device(Target::Null { capacity }) => {
                let null = MemoryBlocks::null(&name, *capacity, requests, clocks.memory.clone())?;
                Ok(without_claim(Box::new(null), "answers at once"))
            }
            Endpoint::Device(Target::Simulated { description, .. }) => {
                let device = SimDevice::new(description, seed).map_err(usage)?;
                let memory = half_of_memory().unwrap_or(Bytes(1 << 30));
                let simulated = SimBlocks::new(device, requests, clocks.simulated.clone(), memory)?;
                Ok(without_claim(Box::new(simulated), "simulated"))
            }
            Endpoint::Device(target) => open_path(target, access, requests, clocks),
        }
    }
}

/// Refuses two targets that share bytes in any layer: what is read would be overwritten.
///
/// # Errors
/// Where they share bytes, or that cannot be ruled out.
pub fn refuse_shared_bytes(from: &FoundEndpoint, to: &FoundEndpoint) -> anyhow::Result<()> {
    let path = |end: &FoundEndpoint| end.on_a_path().and_then(Target::path).map(Path::to_path_buf);
    let Some((from_path, to_path)) = path(from).zip(path(to)) else { return Ok(()) };
    let shared = identity::shared(&from_path, &to_path, &SysPaths::default())
        .with_context(|| format!("cannot learn whether {} and {} share bytes", from.named, to.named))?;
    match shared {
        None => Ok(()),
        Some(shared) => Err(usage(format!(
            "{} and {} share bytes, those of {shared}: what is written would overwrite what is read; name two targets",
            from.named, to.named
        ))),
    }
}

fn open_path(
    target: &Target,
    access: Access<'_>,
    requests: usize,
    clocks: &Clocks,
) -> anyhow::Result<OpenEndpoint> {
    if let Target::Scratch { path, size } = target {
        make_scratch(path, *size, None)?;
        return open_path(&target.made(), access, requests, clocks);
    }
    let place = locate(target)?;
    let Some(examination) = &place.examination else { bail!("{target} is no path") };
    let flags = Buffering::Direct.open_flags();
    let (file, claim) = match access {
        Access::Read => (safety::open_for_reading(examination.path(), flags)?, None),
        Access::Write(consents) => {
            let permit = safety::permit(examination, consents)?;
            if examination.kind() == TargetKind::Scratch && !examination.is_programmed() {
                holes_of_ours(examination)
                    .with_context(|| format!("cannot learn how {target} lies on its disk"))?;
            }
            let claim = permit.open_for_program(flags)?;
            (claim.descriptor()?, Some(claim))
        }
    };
    let name = target.to_string();
    let device = RealBlocks::new(&name, file, place.geometry, requests, clocks.wall.clone())?;
    let driven = format!("{}, {}", device.way(), Buffering::Direct);
    let mut warnings = examination.notes().to_vec();
    warnings.extend(solid::holes_behind(examination.facts()));
    let blocks = Box::new(device);
    Ok(OpenEndpoint {
        blocks,
        driven,
        target: Some(target.clone()),
        facts: place.facts,
        summary: place.summary,
        warnings,
        claim,
    })
}
