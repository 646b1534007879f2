//! A simulated device served in wall-clock time as a block device.
//!
//! What: `/dev/loopN` over a file of a FUSE file system ([`fs`]) that answers
//! when the model says so ([`model`], [`answer`]), so that any program meets
//! the device, and it works where the kernel has neither ublk nor NBD. How late
//! answers are is measured ([`lateness`]); `docs/attach.md` states the bound.
//! The loop device goes before the mount, on every way out; what a killed
//! process leaves is found through its note ([`place`]).

pub mod answer;
pub mod fs;
pub mod lateness;
pub mod loopdev;
pub mod model;
pub mod place;

use crate::args::AttachArgs;
use crate::command::print;
use crate::interrupt::{self, STOP};
use crate::limits::half_of_memory;
use crate::printable;
use crate::target::simulated;
use crate::usage;
use answer::Answers;
use anyhow::{Context, bail};
use fuser::{BackgroundSession, Config, MountOption, Session};
use lateness::LatenessReport;
use model::AttachedModel;
use place::{AttachedPlace, Note};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use uflip_device::{Bytes, process};
use uflip_sim::{Description, SimDevice};

/// Threads that take requests.
const THREADS: usize = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What `--json` prints when the device is ready.
#[derive(Serialize)]
struct Ready<'a> {
    event: &'static str,
    #[serde(flatten)]
    note: &'a Note,
    mount: &'a Path,
}

/// What `--json` prints at the end.
#[derive(Serialize)]
struct Ended<'a> {
    event: &'static str,
    device: &'a Path,
    #[serde(flatten)]
    lateness: LatenessReport,
}

/// An attachment that is served.
struct Attachment {
    place: AttachedPlace,
    session: Option<BackgroundSession>,
    answers: Arc<Answers>,
}

/// Runs `uflip sim attach`: serves until interrupted.
///
/// # Errors
/// What is wrong with the description, or what the system refuses.
pub fn attach(args: &AttachArgs) -> anyhow::Result<()> {
    let description = simulated(&args.device)?;
    let memory = args.memory.unwrap_or_else(|| half_of_memory().unwrap_or(Bytes(1 << 30)));
    interrupt::listen_with("detaching once nobody uses the device; interrupt again to cut its users off")?;
    let device = prepared(&description, args)?;
    let note = Note::new(&args.device, uflip_device::Device::geometry(&device));
    let mut attachment = Attachment::mount(args, device, memory, &note)?;
    let rotational = description.disk.is_some();
    let file = attachment.place.file();
    let device = loopdev::attach(&file, Bytes(note.sector_bytes), rotational)
        .context("no loop device is to be had (it takes root; type sudo in front)")?;
    let note = Note { device: Some(device.clone()), ..note };
    attachment.place.write(&note)?;
    let mount = attachment.place.mount_point();
    if args.json {
        print(
            &(printable::json(&serde_json::to_string(&Ready {
                event: "ready",
                note: &note,
                mount: &mount,
            })?) + "\n"),
        )?;
    } else {
        print(&format!("{}\n", device.display()))?;
        crate::say!("{}, simulated; interrupt (Ctrl-C) to detach", description.name);
    }
    attachment.serve(&device)?;
    let lateness = attachment.answers.report();
    attachment.end(&device)?;
    if args.json {
        return print(
            &(printable::json(&serde_json::to_string(&Ended { event: "ended", device: &device, lateness })?)
                + "\n"),
        );
    }
    crate::say!("{}: {lateness}", device.display());
    Ok(())
}

/// The device in the state that was asked for.
fn prepared(description: &Description, args: &AttachArgs) -> anyhow::Result<SimDevice> {
    let mut device = SimDevice::new(description, args.seed).map_err(usage)?;
    let end = uflip_measure::state::enforce(args.state, args.seed, &mut device, &STOP)?;
    if end.interrupted || STOP.after_this_run() {
        bail!("interrupted; nothing is attached");
    }
    Ok(device)
}

impl Attachment {
    /// Mounts the file system; nothing is left behind where that fails.
    fn mount(args: &AttachArgs, device: SimDevice, memory: Bytes, note: &Note) -> anyhow::Result<Attachment> {
        // Before any thread is made: they inherit both. Without them it works,
        // only less well.
        process::serve_io();
        process::be_prompt();
        let answers = Answers::start().context("cannot start a thread")?;
        let model = Arc::new(AttachedModel::new(device, memory));
        let place = AttachedPlace::make(args.place.run_dir.as_deref(), note)?;
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("uflip".into()), MountOption::Subtype("uflip".into())];
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let served = fs::DeviceFs::new(model, Arc::clone(&answers));
        let session = Session::new(served, place.mount_point(), &config).and_then(Session::spawn);
        match session {
            Ok(session) => Ok(Attachment { place, session: Some(session), answers }),
            Err(error) => {
                place.clean()?;
                Err(error).context(
                    "cannot mount a FUSE file system (it takes /dev/fuse and root; type sudo in front)",
                )
            }
        }
    }

    /// Serves until interrupted, or until somebody else takes the device away.
    fn serve(&self, device: &Path) -> anyhow::Result<()> {
        let file = self.place.file();
        while !STOP.after_this_run() && loopdev::is_over(device, &file) {
            if self.session.as_ref().is_none_or(|session| session.guard.is_finished()) {
                bail!("the file system beneath {} was unmounted", device.display());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Detaches the loop device once nobody uses it, then unmounts.
    fn end(&mut self, device: &Path) -> anyhow::Result<()> {
        let file = self.place.file();
        if !loopdev::detach(device, &file)? {
            crate::say!("uflip: {} is in use and served until its users close it", device.display());
            while loopdev::is_over(device, &file) && !STOP.now() {
                std::thread::sleep(LOOK_AGAIN);
            }
        }
        self.unmount()
    }

    fn unmount(&mut self) -> anyhow::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        // The kernel gives the loop device up with its last user; until then
        // it fails what is asked of it, once this process has ended.
        let cut_off = !loopdev::all_over(&self.place.file()).is_empty();
        loopdev::unmount(&self.place.mount_point(), cut_off)?;
        self.answers.close();
        if cut_off {
            drop(session);
        } else {
            session.join().context("serving ended with an error")?;
        }
        self.place.remove()
    }
}

impl Drop for Attachment {
    /// The way out on an error: what cannot be undone now, `detach` can.
    fn drop(&mut self) {
        if self.session.is_none() {
            return;
        }
        for device in loopdev::all_over(&self.place.file()) {
            let _ = loopdev::detach(&device, &self.place.file());
        }
        if let Err(error) = self.unmount() {
            crate::say!("uflip: {}; type: uflip sim detach --all", printable::chain(&error));
        }
    }
}
