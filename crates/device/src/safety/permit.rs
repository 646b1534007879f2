//! Consent, the permit it gives, and the descriptors a permit opens.
//!
//! The first descriptor of a block device is opened with `O_EXCL`: while it is
//! open the kernel gives the device to no mount, no LVM and no other `O_EXCL`.
//! A second `O_EXCL` would fail for us too, so further streams reopen the first
//! descriptor through `/proc/self/fd`, which leads to the same device whatever
//! happened to the path, with an open file description of its own.
//! What lies beneath a loop device is claimed for as long as the permit lives:
//! the kernel does not do that itself.
//! A scratch file is locked with `flock(2)` instead, against a second uflip.

use super::{
    Examination, Inspection, Obstacle, SafetyError, Snapshot, TargetKind, contents, inspect, known_tag,
    path_error, tags_of, usage,
};
use crate::identity::sysfs::Node;
use crate::identity::{DevNumber, SysPaths};
use crate::stamp::Key;
use crate::units::Bytes;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Why writing is not permitted, and what to type where anything helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The resolved path.
    pub path: PathBuf,
    /// What stands in the way, each as a phrase.
    pub reasons: Vec<String>,
    /// The option that permits it; `None` where nothing does.
    pub what_to_type: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing is written to {}: {}", self.path.display(), self.reasons.join("; "))?;
        match &self.what_to_type {
            Some(option) => write!(f, ". Everything on it would be lost; if that is meant, add\n  {option}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// Leave to write to one target, as it was examined. Only [`permit`] makes one.
#[derive(Clone, Debug)]
pub struct WritePermit {
    path: PathBuf,
    kind: TargetKind,
    snapshot: Snapshot,
    /// What was found on it and may not vanish unseen.
    found: Vec<&'static str>,
    /// What may be lost, as typed.
    consented: Vec<&'static str>,
    key: Key,
    paths: SysPaths,
    /// The claims on what lies beneath, held from the first opening on.
    claims: Arc<OnceLock<Vec<File>>>,
}

/// Weighs an examination against the values given with `--erase-device`.
/// Files made by this tool, empty and new ones need no consent.
///
/// # Errors
/// [`Refusal`], which says what to type where anything helps.
pub fn permit(examination: &Examination, consents: &[String]) -> Result<WritePermit, Refusal> {
    let refuse = |reasons: Vec<String>, what_to_type| Refusal {
        path: examination.path.clone(),
        reasons,
        what_to_type,
    };
    let absolute: Vec<String> =
        examination.obstacles.iter().filter(|o| o.absolute).map(|o| o.statement.clone()).collect();
    if !absolute.is_empty() {
        return Err(refuse(absolute, None));
    }
    let tags = examination.tags();
    let consented = match examination.kind {
        TargetKind::Block => {
            let mut confirmed = consents.iter().filter_map(|given| consents_to(given, examination, &tags));
            confirmed
                .next()
                .ok_or_else(|| refuse(missing_consent(examination, consents), examination.what_to_type()))?
        }
        _ => Vec::new(),
    };
    Ok(WritePermit {
        path: examination.path.clone(),
        kind: examination.kind,
        snapshot: examination.snapshot.clone(),
        // Unknown contents are no thing that could be somebody else's doing.
        found: tags.into_iter().filter(|tag| *tag != contents::TAG).collect(),
        consented,
        key: examination.key,
        paths: examination.paths.clone(),
        claims: Arc::default(),
    })
}

/// The tags that `given` confirms, where it is a name of this device followed
/// by all of its tags, in any order. More may be named than is there, as long as
/// each is a tag: who gives up an ext4 file system that a first run overwrote
/// gives up no less when the run is resumed.
fn consents_to(given: &str, examination: &Examination, tags: &[&'static str]) -> Option<Vec<&'static str>> {
    let path = examination.path.to_str();
    let names = [path, examination.naming_serial.as_deref()].into_iter().flatten();
    names.filter_map(|name| given.strip_prefix(name)).find_map(|rest| {
        if !rest.is_empty() && !rest.starts_with('+') {
            return None;
        }
        let confirmed: Vec<&'static str> = rest.split('+').skip(1).map(known_tag).collect::<Option<_>>()?;
        tags.iter().all(|tag| confirmed.contains(tag)).then_some(confirmed)
    })
}

fn missing_consent(examination: &Examination, consents: &[String]) -> Vec<String> {
    let mut reasons: Vec<String> = examination.obstacles.iter().map(|o| o.statement.clone()).collect();
    reasons.push(if consents.is_empty() {
        "it is a block device and --erase-device does not name it".to_string()
    } else if consents.iter().any(|given| Path::new(given) == examination.typed) && examination.through_link()
    {
        "--erase-device names a link, which may lead elsewhere tomorrow; name what it leads to".to_string()
    } else {
        format!("--erase-device {} does not name this device and what is on it", consents.join(" "))
    });
    reasons.extend(examination.looked());
    reasons
}

impl WritePermit {
    /// The path with all links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was when examined.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// The number of a block device; `None` for a file.
    pub fn number(&self) -> Option<DevNumber> {
        self.snapshot.number
    }

    /// `st_dev` and `st_ino` of a file; `None` for a device or a new file.
    pub fn inode(&self) -> Option<(u64, u64)> {
        self.snapshot.inode
    }

    /// What everything written to it is stamped with: a scratch file's own key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// What may be written, in bytes: its size when examined, of a scratch file
    /// without the header at its end.
    pub fn size(&self) -> Bytes {
        let header = if self.kind == TargetKind::Scratch { crate::scratch::HEADER.0 } else { 0 };
        Bytes(self.snapshot.size - header)
    }

    /// Opens the target for reading and writing and looks again, on the
    /// descriptor. `flags` are added, such as `O_DIRECT | O_DSYNC`. Keep the
    /// result and the permit for as long as anything is written: they are the
    /// claim on the target and on what lies beneath it.
    ///
    /// # Errors
    /// [`SafetyError::Busy`] where another has claimed it meanwhile,
    /// [`SafetyError::Changed`] where it is not what was examined.
    pub fn open(&self, flags: i32) -> Result<File, SafetyError> {
        let exclusive = match self.kind {
            TargetKind::Block => libc::O_EXCL,
            TargetKind::Missing => libc::O_CREAT | libc::O_EXCL,
            _ => 0,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(flags | exclusive | libc::O_CLOEXEC | libc::O_NOFOLLOW)
            .open(&self.path)
            .map_err(|error| self.open_error(error))?;
        if self.kind == TargetKind::Block {
            self.claim_beneath()?;
            self.recheck_block(&file)?;
        } else {
            self.lock(&file)?;
            self.recheck_file(&file)?;
        }
        Ok(file)
    }

    /// Opens another descriptor to the device or file behind `first`, which
    /// [`WritePermit::open`] gave, for another stream; `flags` as there.
    ///
    /// # Errors
    /// Where `first` is of another target, or the system refuses.
    pub fn reopen(&self, first: &File, flags: i32) -> Result<File, SafetyError> {
        let via = PathBuf::from(format!("/proc/self/fd/{}", first.as_raw_fd()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags | libc::O_CLOEXEC)
            .open(&via)
            .map_err(path_error("cannot open again", &self.path))?;
        let of = |file: &File| {
            let meta = file.metadata().map_err(path_error("cannot look at", &self.path))?;
            Ok((meta.dev(), meta.ino(), meta.rdev()))
        };
        if of(&file)? != of(first)? {
            return Err(self.changed("the descriptor leads elsewhere"));
        }
        match self.snapshot.number {
            Some(number) if DevNumber::from_dev(of(&file)?.2) != number => {
                Err(self.changed("the descriptor is of another device"))
            }
            _ => Ok(file),
        }
    }

    pub(super) fn changed(&self, what: impl Into<String>) -> SafetyError {
        SafetyError::Changed { path: self.path.clone(), what: what.into() }
    }

    fn open_error(&self, error: std::io::Error) -> SafetyError {
        match error.raw_os_error() {
            Some(libc::EBUSY) => {
                let who = "mounted, held, or opened exclusively since it was examined".to_string();
                SafetyError::Busy { path: self.path.clone(), who }
            }
            Some(libc::EEXIST) => self.changed("somebody made a file of that name"),
            Some(libc::ELOOP) => self.changed("it became a link"),
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => self.changed(format!("it is gone ({error})")),
            _ => path_error("cannot open for writing", &self.path)(error),
        }
    }

    /// Keeps everybody from what lies beneath the device, once.
    fn claim_beneath(&self) -> Result<(), SafetyError> {
        let node = self.snapshot.number.and_then(|number| Node::find(number, &self.paths));
        let Some(node) = node.filter(|_| self.claims.get().is_none()) else { return Ok(()) };
        let claims = usage::claim_beneath(&node, &self.paths)
            .map_err(path_error("cannot learn who uses what lies beneath", &self.path))?
            .map_err(|obstacle| SafetyError::Busy { path: self.path.clone(), who: obstacle.statement })?;
        // Another thread's claims would be on the same devices.
        let _ = self.claims.set(claims);
        Ok(())
    }

    fn recheck_block(&self, file: &File) -> Result<(), SafetyError> {
        let meta = file.metadata().map_err(path_error("cannot look at", &self.path))?;
        let number = DevNumber::from_dev(meta.rdev());
        if !meta.file_type().is_block_device() || Some(number) != self.snapshot.number {
            return Err(self.changed("the path leads to another device"));
        }
        // Without O_DIRECT, which would need aligned reads.
        let via = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let reader = File::open(via).map_err(path_error("cannot read back", &self.path))?;
        let Inspection { obstacles, snapshot, .. } = match inspect(&self.path, &reader, number, &self.paths) {
            Err(SafetyError::NotATarget { why, .. }) => return Err(self.changed(why)),
            other => other?,
        };
        if snapshot != self.snapshot {
            return Err(self.changed(difference(&self.snapshot, &snapshot)));
        }
        let new = |o: &&Obstacle| o.absolute || o.tag.is_some_and(|tag| !self.consented.contains(&tag));
        if let Some(obstacle) = obstacles.iter().find(new) {
            return Err(self.changed(obstacle.statement.clone()));
        }
        let tags = tags_of(&obstacles);
        match self.found.iter().find(|tag| !tags.contains(tag)) {
            Some(gone) => Err(self.changed(format!("{gone} is not on it any more"))),
            None => Ok(()),
        }
    }

    fn recheck_file(&self, file: &File) -> Result<(), SafetyError> {
        let meta = file.metadata().map_err(path_error("cannot look at", &self.path))?;
        if !meta.is_file() {
            return Err(self.changed("it is not a regular file any more"));
        }
        let same = self.snapshot.inode.is_none_or(|inode| inode == (meta.dev(), meta.ino()));
        if !same {
            return Err(self.changed("another file has that name"));
        }
        if meta.size() != self.snapshot.size {
            return Err(self.changed(format!(
                "its size was {} and is {} bytes",
                self.snapshot.size,
                meta.size()
            )));
        }
        if self.kind == TargetKind::Scratch {
            let ours = super::ours(&self.path, &meta).map_err(|why| self.changed(format!("it {why}")))?;
            if ours.key != self.key {
                return Err(self.changed("it was made anew"));
            }
        }
        let in_use = super::file_in_use(&self.path, &self.paths)
            .map_err(path_error("cannot learn who uses", &self.path))?;
        in_use.first().map_or(Ok(()), |obstacle| Err(self.changed(obstacle.statement.clone())))
    }

    /// Keeps a second uflip away from the same file; file systems without
    /// locks are taken as they are.
    fn lock(&self, file: &File) -> Result<(), SafetyError> {
        if matches!(crate::lock::hold(file), Ok(false)) { Err(measured_on(&self.path)) } else { Ok(()) }
    }
}

/// That another uflip has the file at `path`.
fn measured_on(path: &Path) -> SafetyError {
    SafetyError::Busy { path: path.to_path_buf(), who: "another uflip measures on it".to_string() }
}

impl Examination {
    /// Refuses a file that another uflip measures on or makes, as opening it for writing
    /// would. Of devices the examination tells itself.
    ///
    /// # Errors
    /// [`SafetyError::Busy`].
    pub fn refuse_in_use(&self) -> Result<(), SafetyError> {
        if matches!(self.kind, TargetKind::Block | TargetKind::Missing) {
            return Ok(());
        }
        // What cannot be opened is told of where it is opened for good.
        let Ok(file) = crate::scratch::open_to_look(&self.path) else { return Ok(()) };
        if crate::lock::is_held(&file) { Err(measured_on(&self.path)) } else { Ok(()) }
    }

    /// Whether a value of `--erase-device` begins with a name of this target, whatever
    /// it says of what is on it.
    pub fn is_named_by(&self, given: &str) -> bool {
        let (path, typed) = (self.path.to_str(), self.typed.to_str());
        let names = [path, typed, self.naming_serial.as_deref()].into_iter().flatten();
        let mut rests = names.filter_map(|name| given.strip_prefix(name));
        let leads_here = |name: &str| Path::new(name).canonicalize().is_ok_and(|found| found == self.path);
        rests.any(|rest| rest.is_empty() || rest.starts_with('+'))
            || leads_here(given)
            || given.split_once('+').is_some_and(|(name, _)| leads_here(name))
    }
}

/// The first thing that is different, with both values.
fn difference(was: &Snapshot, is: &Snapshot) -> String {
    if was.size != is.size {
        format!("its size was {} and is {} bytes", was.size, is.size)
    } else if was.serial != is.serial {
        let shown = |serial: &Option<String>| serial.clone().unwrap_or_else(|| "not known".to_string());
        format!("its serial was {} and is {}", shown(&was.serial), shown(&is.serial))
    } else if was.sequence != is.sequence {
        "another medium or file is behind it".to_string()
    } else {
        "it is another device".to_string()
    }
}
