//! What was typed as a target, understood once: everything after takes a
//! [`Target`].
//!
//! How: `null:` and `sim:` say themselves what they are; anything else is a path,
//! and what stands there decides. A word without a separator is easily meant for
//! something else (`nvme0n1` for `/dev/nvme0n1`, `mtron` for `sim:mtron`), so that
//! it names only a file that is there; a new scratch file is a path or comes after
//! `--scratch`.

use super::simulated;
use crate::args::TargetArgs;
use crate::printable::word;
use crate::typed::Typed;
use crate::usage;
use anyhow::Context;
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use uflip_device::Bytes;
use uflip_device::identity::SysPaths;
use uflip_device::safety::{self, TargetKind};
use uflip_device::scratch;
use uflip_sim::{Description, catalogue};

/// The scratch file that is made where no target is named.
const SCRATCH: &str = "uflip-scratch.bin";

/// The capacity of `null:` where none is given.
const NULL_CAPACITY: Bytes = Bytes(1 << 40);

/// The largest `null:`: what a record can tell addresses of.
const NULL_LARGEST: Bytes = Bytes(4 << 50);

/// Options of how a real device is driven.
const DRIVING: [&str; 6] = ["engine", "queue-depth", "poll", "buffering", "data", "discard"];

/// What is measured. Prints as the text that names it from every folder.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A device that answers at once.
    Null {
        /// Its size.
        capacity: Bytes,
    },
    /// A device in virtual time.
    Simulated {
        /// Where its description is.
        model: Model,
        /// How it is built.
        description: Box<Description>,
    },
    /// A block device.
    BlockDevice {
        /// Absolute; of UTF-8, as all paths here.
        path: PathBuf,
    },
    /// A file with contents, ours or not.
    ExistingFile {
        /// Absolute.
        path: PathBuf,
    },
    /// A scratch file that has to be made first.
    Scratch {
        /// Absolute.
        path: PathBuf,
        /// How large it is made.
        size: Bytes,
    },
}

/// What a command takes where no target is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// The usual scratch file in the current folder.
    ScratchFile,
    /// This device.
    Device(&'static str),
    /// A target has to be named.
    Nothing,
    /// The same of a program, which has no `--scratch`.
    OfProgram,
}

/// Where a simulated device's description is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// In the catalogue, by this name.
    Catalogue(String),
    /// In this file.
    File(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Null { capacity: NULL_CAPACITY } => f.write_str("null:"),
            Target::Null { capacity } => write!(f, "null:{}", capacity.exact()),
            Target::Simulated { model: Model::Catalogue(name), .. } => write!(f, "sim:{name}"),
            Target::Simulated { model: Model::File(path), .. } => write!(f, "sim:{}", path.display()),
            Target::BlockDevice { path } | Target::ExistingFile { path } | Target::Scratch { path, .. } => {
                write!(f, "{}", path.display())
            }
        }
    }
}

impl Target {
    /// The target of a command line: what was named, `--scratch`, or else what the
    /// command takes where nothing is.
    ///
    /// # Errors
    /// [`crate::Usage`] where it is none, where an option has no effect on it, or
    /// where something else was meant.
    pub fn of_command(args: &TargetArgs, unnamed: Unnamed, typed: &Typed) -> anyhow::Result<Target> {
        let size = args.scratch_size;
        let target = match (&args.target, &args.scratch, unnamed) {
            (Some(_), Some(_), _) => {
                return Err(usage("--scratch stands in for a target; type one of the two"));
            }
            (None, Some(path), _) => Target::our_file(path, size)?,
            (Some(text), None, _) => Target::named(text, unnamed, size)?,
            (None, None, Unnamed::ScratchFile) => Target::at(Path::new(SCRATCH), size)?,
            (None, None, Unnamed::Device(name)) => Target::parse(name, size)?,
            (None, None, Unnamed::Nothing | Unnamed::OfProgram) => {
                let devices = "uflip devices lists what there is";
                return Err(usage(format!("name a target, or type --scratch FILE; {devices}")));
            }
        };
        target.refuse_without_effect(typed, size)?;
        Ok(target)
    }

    /// The target that somebody named, who may have meant something else.
    ///
    /// # Errors
    /// [`crate::Usage`] where it is none, or where something else was meant.
    pub fn named(text: &str, unnamed: Unnamed, scratch_size: Bytes) -> anyhow::Result<Target> {
        refuse_mistaken(text, unnamed, &SysPaths::default())?;
        Target::parse(text, scratch_size)
    }

    /// The target that was named to a resume, which may leave it to the folder.
    ///
    /// # Errors
    /// Where it is none.
    pub fn of_resume(args: &TargetArgs) -> anyhow::Result<Option<Target>> {
        let size = args.scratch_size;
        let named = args.target.as_deref().map(|text| Target::parse(text, size));
        named.or_else(|| args.scratch.as_deref().map(|path| Target::at(path, size))).transpose()
    }

    /// The target that `text` names, whoever wrote it: also one that a results
    /// folder keeps.
    ///
    /// # Errors
    /// Where it is none.
    pub fn parse(text: &str, scratch_size: Bytes) -> anyhow::Result<Target> {
        if let Some(size) = text.strip_prefix("null:").filter(|_| !Path::new(text).exists()) {
            return Ok(Target::Null { capacity: null_capacity(size)? });
        }
        if let Some(what) = simulated_by(text) {
            let description = Box::new(simulated(what)?);
            let model = match catalogue::names().any(|name| name == what) {
                true => Model::Catalogue(what.to_string()),
                false => Model::File(absolute(Path::new(what))?),
            };
            return Ok(Target::Simulated { model, description });
        }
        Target::at(Path::new(text), scratch_size)
    }

    /// What stands at this path.
    fn at(path: &Path, size: Bytes) -> anyhow::Result<Target> {
        let path = absolute(path)?;
        let to_be_made =
            |meta: &Metadata| meta.is_file() && (meta.len() == 0 || scratch::is_unfinished(&path));
        Ok(match path.metadata() {
            Ok(meta) if meta.file_type().is_block_device() => Target::BlockDevice { path },
            Ok(meta) if to_be_made(&meta) => Target::Scratch { path, size },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Target::Scratch { path, size },
            // Folders and the like are told apart when it is examined.
            Ok(_) | Err(_) => Target::ExistingFile { path },
        })
    }

    /// A scratch file that is named as one.
    fn our_file(path: &Path, size: Bytes) -> anyhow::Result<Target> {
        let target = Target::at(path, size)?;
        let ours = match &target {
            Target::Scratch { .. } => true,
            Target::ExistingFile { path } => {
                safety::examine(path, &SysPaths::default())?.kind() == TargetKind::Scratch
            }
            _ => false,
        };
        if ours {
            return Ok(target);
        }
        Err(usage(format!(
            "--scratch {}: what stands there is no scratch file of uflip's; name a new file, or type it as the target",
            path.display()
        )))
    }

    /// Refuses what was typed and does nothing on this target.
    fn refuse_without_effect(&self, typed: &Typed, size: Bytes) -> anyhow::Result<()> {
        let why = self.why_not_driven().unwrap_or_default();
        if let Some(name) = DRIVING.iter().find(|name| self.is_without_effect(name) && typed.was_given(name))
        {
            return Err(usage(format!("--{name} does nothing on {self}, which {why}; leave it away")));
        }
        let fits = match self {
            Target::Scratch { .. } => true,
            _ if !typed.was_given("scratch-size") => true,
            Target::ExistingFile { path } => {
                let found = safety::examine(path, &SysPaths::default())?;
                found.kind() == TargetKind::Scratch && found.facts().size_bytes == Some(size)
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(usage(format!(
            "--scratch-size is for a scratch file that has to be made, and {self} is there as it is; leave it away"
        )))
    }

    /// Why nothing that is said of how to drive it has an effect; `None` where it has.
    pub fn why_not_driven(&self) -> Option<&'static str> {
        match self {
            Target::Null { .. } => Some("answers at once and is not driven"),
            Target::Simulated { .. } => Some("takes IOs as its description says, in virtual time"),
            _ => None,
        }
    }

    /// Whether an option of how a device is driven does nothing here.
    pub fn is_without_effect(&self, option: &str) -> bool {
        self.path().is_none() && DRIVING.contains(&option)
    }

    /// Where it is in the file system; None for what is not in this machine.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Target::Null { .. } | Target::Simulated { .. } => None,
            Target::BlockDevice { path } | Target::ExistingFile { path } | Target::Scratch { path, .. } => {
                Some(path)
            }
        }
    }

    /// The same; a scratch file that has to be made gets this size.
    pub fn sized(self, size: Bytes) -> Target {
        match self {
            Target::Scratch { path, .. } => Target::Scratch { path, size },
            other => other,
        }
    }

    /// The same once it is made.
    pub fn made(&self) -> Target {
        match self {
            Target::Scratch { path, .. } => Target::ExistingFile { path: path.clone() },
            other => other.clone(),
        }
    }
}

/// The name or file of the simulated device that `text` names; None where it names none,
/// as something of that very name stands here and no description does.
pub fn simulated_by(text: &str) -> Option<&str> {
    text.strip_prefix("sim:").filter(|what| Path::new(what).is_file() || !Path::new(text).exists())
}

/// Absolute, so that `--resume` works from any folder.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))?;
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(usage(format!("{path:?} is no UTF-8 path; name it through a link"))),
    }
}

/// The capacity in `null:SIZE`.
fn null_capacity(size: &str) -> anyhow::Result<Bytes> {
    if size.is_empty() {
        return Ok(NULL_CAPACITY);
    }
    let bytes: Bytes = size.parse().map_err(usage)?;
    if (512..=NULL_LARGEST.0).contains(&bytes.0) && bytes.0.is_multiple_of(512) {
        return Ok(bytes);
    }
    Err(usage(format!("null:{size}: type null:SIZE with a multiple of 512B up to {NULL_LARGEST}")))
}

/// Refuses a bare word that is the name of something else, or of nothing.
fn refuse_mistaken(text: &str, unnamed: Unnamed, paths: &SysPaths) -> anyhow::Result<()> {
    if text.contains('/') || text.starts_with("sim:") || text.starts_with("null:") {
        return Ok(());
    }
    let here = Path::new(text);
    let device = paths.dev.join(text);
    let is_device = device.metadata().is_ok_and(|meta| meta.file_type().is_block_device());
    let meant = if is_device {
        device.display().to_string()
    } else if catalogue::names().any(|name| name == text) {
        format!("sim:{text}")
    } else if text == "null" {
        "null:".to_string()
    } else if here.symlink_metadata().is_ok() {
        return Ok(());
    } else {
        let option = match unnamed {
            Unnamed::OfProgram => String::new(),
            _ => format!(" or --scratch {}", word(text)),
        };
        let file = word(&format!("./{text}"));
        return Err(usage(format!(
            "nothing is called {text} here; for a new scratch file type {file}{option}"
        )));
    };
    Err(usage(format!(
        "did you mean {meant}? {text} alone would be a file in this folder; for that type {}",
        word(&format!("./{text}"))
    )))
}

#[cfg(test)]
mod tests;
