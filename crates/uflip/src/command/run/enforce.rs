//! Bringing a device to a state within a session: says every few seconds how far it is
//! and keeps it as `state.json`; the method is `uflip_measure::state::reached`.

use crate::describe::round_time;
use crate::session::Session;
use std::path::{Path, PathBuf};
use uflip_device::{Bytes, Device, DeviceError, EngineOptions, RunEnd, Stop};
use uflip_measure::ResetRequest;
use uflip_measure::state::reached::{self, Beside, News, Reached};
use uflip_store::reached::{StateFile, keep, read};

/// Enforces states for one session.
pub(super) struct TargetEnforcer {
    /// The results folder; None in virtual time.
    dir: Option<PathBuf>,
    /// What its manifest calls it.
    folder: Option<String>,
    by: reached::Enforcer,
}

impl TargetEnforcer {
    /// For this session's results, on a device that is driven like this.
    pub(super) fn new(session: &Session, options: &EngineOptions) -> TargetEnforcer {
        TargetEnforcer {
            dir: (!session.opened.device.is_virtual()).then(|| session.dir.clone()),
            folder: session.store.folder().map(str::to_string),
            by: reached::Enforcer::new(options),
        }
    }

    /// Brings the device to the state that is asked for.
    pub(super) fn enforce(
        &mut self,
        request: ResetRequest,
        device: &mut dyn Device,
        stop: &Stop,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<RunEnd, DeviceError> {
        let dir = self.dir.as_deref();
        let folder = self.folder.as_deref();
        let before = match dir.map_or(Ok(StateFile::Absent), |dir| read(dir, folder)) {
            Ok(StateFile::Whole(before)) => Some(before),
            Ok(StateFile::Absent) => None,
            Ok(StateFile::Damaged(why)) => {
                say(&format!("note: {why}; the state is enforced from its start"));
                None
            }
            Err(error) => return Err(DeviceError::Other(error.to_string())),
        };
        let keep = |reached: &Reached| {
            if let Some(Err(error)) = dir.map(|dir| keep(dir, folder, reached)) {
                say(&format!("warning: {error}; a resume would enforce the state from its start"));
            }
        };
        let tell = |news: News<'_>| say(&words(news));
        let beside = Beside { keep: &keep, tell: &tell };
        self.by.enforce(request, (before, dir.map_or(0, runs_kept)), device, stop, beside)
    }
}

/// Runs that the results in `dir` have.
fn runs_kept(dir: &Path) -> usize {
    // Without the file there are none.
    let lines = uflip_store::read_inside(&dir.join("runs.ndjson")).unwrap_or_default();
    lines.iter().filter(|byte| **byte == b'\n').count()
}

/// What is said of it.
fn words(news: News<'_>) -> String {
    match news {
        News::WasReached => "  the state was reached before the interruption".into(),
        News::GoesOn(now) => format!("  going on after {} IOs, {} written", now.ios, now.written_bytes),
        News::Advanced { now, total, left } => {
            let written = now.written_bytes.0.min(total.0);
            let percent = written * 100 / total.0.max(1);
            let (left, written) = (round_time(left), Bytes(written));
            format!("  state {}: {written} of {total} written ({percent} %), about {left} left", now.state)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use uflip_measure::State;

    #[test]
    fn how_far_it_is_is_told_in_one_line() {
        let request = ResetRequest { state: State::Complete, seed: 7 };
        let now = Reached { written_bytes: Bytes(75 << 20), ..Reached::begun(request, 0) };
        let news = News::Advanced { now: &now, total: Bytes(100 << 20), left: Duration::from_secs(10) };
        assert_eq!(words(news), "  state complete: 75M of 100M written (75 %), about 10 s left");
    }
}
