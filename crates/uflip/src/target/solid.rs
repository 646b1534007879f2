//! A file under measurement that stays whole: holes are filled before a run, and
//! a run during which the file came to lie otherwise is named at once.
//!
//! What the tool's own trims take out of a scratch file is written again before
//! the next run, as reads of holes are answered without the disk. A file that is
//! not ours is never written: its holes are named.

use std::fs::File;
use std::path::{Path, PathBuf};
use uflip_device::identity::DeviceFacts;
use uflip_device::safety::{Examination, TargetKind};
use uflip_device::scratch::{self, extents, fragmentation, holes_warning};
use uflip_device::{
    Bytes, Device, DeviceError, Geometry, Nanos, RealDevice, Recorder, RunEnd, RunLimits, Stop, Stream,
};

/// A real device over a file.
pub struct Solid {
    inner: RealDevice,
    path: PathBuf,
    /// The claim of a scratch file that is written; `None` for what is only read.
    claim: Option<File>,
    /// A changed file is named once.
    told: bool,
}

impl Solid {
    /// `claim` is a descriptor that holds the lock of a scratch file.
    pub fn new(inner: RealDevice, path: &Path, claim: Option<File>) -> Solid {
        Solid { inner, path: path.to_path_buf(), claim, told: false }
    }

    fn fill(&mut self, stop: &Stop) -> Result<(), DeviceError> {
        let Some(claim) = self.claim.as_ref() else { return Ok(()) };
        if !self.inner.has_new_holes() {
            return Ok(());
        }
        let filled = scratch::fill_holes_behind(&self.path, claim, stop);
        tell_filled(&self.path, filled.map_err(|e| DeviceError::Other(e.to_string()))?);
        Ok(())
    }
}

impl Device for Solid {
    fn geometry(&self) -> Geometry {
        Device::geometry(&self.inner)
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        self.fill(limits.stop)?;
        let end = self.inner.run(streams, recorder, limits)?;
        if end.incidents.layout_changed && !std::mem::replace(&mut self.told, true) {
            crate::say!(
                "warning: {} came to lie otherwise on its disk while it was measured, or has holes: \
                 such runs are not sound",
                self.path.display()
            );
        }
        Ok(end)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        self.inner.idle(pause, stop);
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn is_virtual(&self) -> bool {
        false
    }
}

/// Says what was filled, where anything was.
pub fn tell_filled(path: &Path, filled: Option<Bytes>) {
    if let Some(bytes) = filled {
        crate::say!("{bytes} of {} were holes or never written; they are filled again", path.display());
    }
}

/// Fills the holes of a scratch file that nobody else uses and names those of
/// any other file; what else is unsound about where the file lies is named, too.
///
/// # Errors
/// Where holes of a scratch file cannot be filled.
pub fn made_whole(examination: &Examination, stop: &Stop) -> anyhow::Result<Vec<String>> {
    let path = examination.path();
    let free = !examination.obstacles().iter().any(|obstacle| obstacle.absolute);
    if examination.kind() == TargetKind::Scratch && free {
        tell_filled(path, scratch::fill_holes(path, stop)?);
    }
    let file = File::open(path)?;
    let (Some(parts), size) = (extents(&file)?, Bytes(file.metadata()?.len())) else { return Ok(Vec::new()) };
    if let Some(warning) = holes_warning(&parts, size) {
        return Ok(vec![warning]);
    }
    Ok(fragmentation(&parts, size).ok().and_then(|found| found.warning).into_iter().collect())
}

/// What the file behind a loop device has of holes: reads of them are answered
/// without the disk. `None` where it has none, or does not tell.
pub fn holes_behind(facts: &DeviceFacts) -> Option<String> {
    let file = File::open(facts.backing_file.as_deref()?).ok()?;
    let size = Bytes(file.metadata().ok().filter(std::fs::Metadata::is_file)?.len());
    let warning = holes_warning(&extents(&file).ok()??, size)?;
    Some(format!("the file behind it: {warning}"))
}
