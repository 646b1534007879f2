//! What is known of each attachment to other processes: a folder with a note
//! and a mount point, so that one that was killed can be cleaned up.
//!
//! `RUN_DIR/attach-PID-N/attachment.json` is written before anything is
//! mounted; `mnt` beside it is the mount point. The folder goes last.

use super::{fs, loopdev};
use crate::printable::chain;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uflip_device::process;

const NOTE: &str = "attachment.json";
/// What the name of a note begins with until it is whole.
const UNFINISHED: &str = "attachment.new.";
const SYSTEM: &str = "/run/uflip";
/// How long a process that is asked to end may take.
const PATIENCE: Duration = Duration::from_secs(8);

/// What an attachment is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// The block device, once there is one.
    pub device: Option<PathBuf>,
    /// As the user named it.
    pub target: String,
    /// Its capacity in bytes.
    pub capacity_bytes: u64,
    /// Its sector in bytes.
    pub sector_bytes: u64,
    /// The process that serves it.
    pub pid: u32,
    /// When that process began, in the kernel's ticks: its number may be used again.
    pub started_ticks: Option<u64>,
}

/// The folder of one attachment.
#[derive(Clone, Debug)]
pub struct AttachedPlace {
    folder: PathBuf,
}

/// The folders in which attachments are noted, the first one for new ones.
fn run_dirs(given: Option<&Path>) -> Vec<PathBuf> {
    match given {
        Some(folder) => vec![folder.to_path_buf()],
        None => {
            let own = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("uflip"));
            std::iter::once(PathBuf::from(SYSTEM)).chain(own).collect()
        }
    }
}

fn make_folder(folder: &Path, recursive: bool) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(recursive).mode(0o700).create(folder)
}

/// The 22nd field of `/proc/PID/stat` (the second may hold spaces), unless the
/// process has ended and only waits to be noticed by its parent.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" { None } else { fields.nth(18)?.parse().ok() }
}

impl Note {
    /// A note of this process, not yet with a device.
    pub fn new(target: &str, geometry: uflip_device::Geometry) -> Note {
        let pid = std::process::id();
        Note {
            device: None,
            target: target.to_string(),
            capacity_bytes: geometry.capacity.0,
            sector_bytes: geometry.sector.0,
            pid,
            started_ticks: started_ticks(pid),
        }
    }

    /// Whether the process that serves it lives.
    pub fn alive(&self) -> bool {
        self.started_ticks.is_some() && started_ticks(self.pid) == self.started_ticks
    }
}

impl AttachedPlace {
    /// A new folder with `note` and an empty mount point.
    ///
    /// # Errors
    /// Where none can be made.
    pub fn make(run_dir: Option<&Path>, note: &Note) -> anyhow::Result<AttachedPlace> {
        let dirs = run_dirs(run_dir);
        let mut failed = None;
        for dir in &dirs {
            match make_folder(dir, true).and_then(|()| free_folder(dir, note.pid)) {
                Ok(folder) => {
                    let place = AttachedPlace { folder: folder.canonicalize()? };
                    place.write(note)?;
                    make_folder(&place.mount_point(), false)?;
                    return Ok(place);
                }
                Err(e) => {
                    failed = Some(anyhow::Error::from(e).context(format!("cannot use {}", dir.display())))
                }
            }
        }
        Err(failed.unwrap_or_else(|| anyhow::anyhow!("no folder to note the attachment in")))
    }

    /// Where the file system is mounted.
    pub fn mount_point(&self) -> PathBuf {
        self.folder.join("mnt")
    }

    /// The file beneath the loop device.
    pub fn file(&self) -> PathBuf {
        self.mount_point().join(fs::DEVICE)
    }

    /// Writes the note, whole or not at all.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, note: &Note) -> anyhow::Result<()> {
        let place = self.folder.join(NOTE);
        let text = serde_json::to_string_pretty(note)? + "\n";
        // A name that nobody knows beforehand; what is there, a link included, is an error.
        let random = RandomState::new().hash_one(note.pid);
        let new = self.folder.join(format!("{UNFINISHED}{random:016x}"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&new, &place));
        if written.is_err() {
            // What stays goes with the folder.
            let _ = std::fs::remove_file(&new);
        }
        written.with_context(|| format!("cannot write {}", place.display()))
    }

    fn note(&self) -> anyhow::Result<Note> {
        let path = self.folder.join(NOTE);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a note of ours", path.display()))
    }

    /// What stands for a note that cannot be read, so that what is left of the attachment can be given up:
    /// where its process, whose number the folder's name has, is there no more.
    ///
    /// # Errors
    /// Where a process of that number lives, which is said.
    fn note_of_a_dead_one(&self, why: &anyhow::Error) -> anyhow::Result<Note> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pid = name.split('-').nth(1).and_then(|pid| pid.parse().ok());
        let pid: u32 = pid.with_context(|| format!("{name} is no folder of ours"))?;
        if started_ticks(pid).is_some() {
            crate::say!("warning: {}; where process {pid} is uflip, end it and try again", chain(why));
            bail!("process {pid} lives");
        }
        crate::say!("warning: {}; what is left of that attachment: uflip sim detach --all", chain(why));
        let device = loopdev::all_over(&self.file()).into_iter().next();
        let target = "unknown".to_string();
        Ok(Note { device, target, capacity_bytes: 0, sector_bytes: 0, pid, started_ticks: None })
    }

    /// The figures of an attachment that lives.
    pub fn lateness(&self) -> Option<super::lateness::LatenessReport> {
        let text = std::fs::read_to_string(self.mount_point().join(fs::LATENESS)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Gives up loop devices, then the mount, then the folder.
    ///
    /// # Errors
    /// Where a loop device is in use, or the system refuses.
    pub fn clean(&self) -> anyhow::Result<()> {
        for device in loopdev::all_over(&self.file()) {
            if !loopdev::detach(&device, &self.file())? {
                bail!(
                    "{0} is in use (mounted, or open in a program) though nobody serves it any more; \
                     end that, then type: uflip sim detach {0}",
                    device.display()
                );
            }
        }
        loopdev::unmount(&self.mount_point(), false)?;
        self.remove()
    }

    /// Removes the folder, never anything mounted in it.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self) -> anyhow::Result<()> {
        // What a killed process left of a note; never what a link leads to.
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let unfinished = files.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED));
        for entry in unfinished {
            std::fs::remove_file(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
        for (removed, path) in [
            (std::fs::remove_dir(self.mount_point()), self.mount_point()),
            (std::fs::remove_file(self.folder.join(NOTE)), self.folder.join(NOTE)),
            (std::fs::remove_dir(&self.folder), self.folder.clone()),
        ] {
            match removed {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(e).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends it: asks its process to, or cleans up where that one is gone.
    ///
    /// # Errors
    /// Where the device is in use.
    pub fn end(&self, note: &Note) -> anyhow::Result<()> {
        if note.alive() {
            if !process::ask_to_end(note.pid) {
                bail!("process {} serves it and may not be ended by you; type sudo in front", note.pid);
            }
            let deadline = Instant::now() + PATIENCE;
            while note.alive() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            if note.alive() {
                let device = note.device.clone().unwrap_or_default();
                bail!(
                    "{0} is in use and still served; it goes with its last user. To cut it off now, \
                     type again: uflip sim detach {0}",
                    device.display()
                );
            }
        }
        if self.folder.exists() { self.clean() } else { Ok(()) }
    }
}

/// Makes a folder that is not there yet.
fn free_folder(dir: &Path, pid: u32) -> std::io::Result<PathBuf> {
    let mut n = 0;
    loop {
        let folder = dir.join(format!("attach-{pid}-{n}"));
        match make_folder(&folder, false) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => n += 1,
            Err(e) => return Err(e),
        }
    }
}

/// All attachments noted, oldest process first.
pub fn all(run_dir: Option<&Path>) -> Vec<(AttachedPlace, Note)> {
    let folders = run_dirs(run_dir).into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
    let mut found: Vec<(AttachedPlace, Note)> = folders
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("attach-"))
        .filter_map(|entry| {
            let place = AttachedPlace { folder: entry.path().canonicalize().ok()? };
            let note = place.note().or_else(|why| place.note_of_a_dead_one(&why)).ok()?;
            Some((place, note))
        })
        .collect();
    found.sort_by_key(|(_, note)| (note.started_ticks, note.pid));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::{Bytes, Geometry};

    const GEOMETRY: Geometry = Geometry { capacity: Bytes(1 << 30), sector: Bytes(512) };

    #[test]
    fn a_note_of_this_process_lives_and_one_of_another_with_its_number_does_not() {
        let note = Note::new("mtron", GEOMETRY);
        assert!(note.alive());
        assert!(!Note { started_ticks: note.started_ticks.map(|t| t + 1), ..note.clone() }.alive());
        assert!(!Note { started_ticks: None, pid: u32::MAX, ..note }.alive());
    }

    #[test]
    fn a_planted_link_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        let note = Note::new("mtron", GEOMETRY);
        let place = AttachedPlace::make(Some(&dir.path().join("run")), &note).unwrap();
        std::fs::remove_file(place.folder.join(NOTE)).unwrap();
        for name in ["attachment.new", "attachment.new.0", NOTE] {
            std::os::unix::fs::symlink(&victim, place.folder.join(name)).unwrap();
        }
        place.write(&note).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert!(place.folder.join(NOTE).symlink_metadata().unwrap().is_file());
        std::fs::remove_file(place.folder.join("attachment.new")).unwrap();
        place.clean().unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    }

    #[test]
    fn what_was_noted_is_found_and_cleaned_up() {
        let dir = tempfile::tempdir().unwrap();
        let note = Note::new("mtron", GEOMETRY);
        let (first, second) =
            (AttachedPlace::make(Some(dir.path()), &note), AttachedPlace::make(Some(dir.path()), &note));
        let places = [first.unwrap(), second.unwrap()];
        let found = all(Some(dir.path()));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].1.target, "mtron");
        places.iter().for_each(|place| place.clean().unwrap());
        assert!(all(Some(dir.path())).is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
