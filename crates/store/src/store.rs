//! The folder a measurement leaves behind, safe against a crash at any instant.
//!
//! Method: a run counts as kept when, and only when, its line in `runs.ndjson`
//! is whole. A commit writes the records to a temporary file, syncs it, renames
//! it, syncs the folder, appends the line and syncs that. So a crash leaves at
//! most a temporary file, a record file without a line, or a torn last line;
//! [`Store::resume`] removes all three. Formats: `docs/format.md`.

use crate::checksum::seal;
use crate::claim::{Claim, LOCK};
use crate::contents::{EDITED, MANIFEST_CHANGED, RecordFile, RunRow, StoreContents};
use crate::error::{StoreError, path_error};
use crate::files::{
    append, is_temporary_of, kind_of, may_be_replaced, no_room, open_inside, read_inside, sync_dir,
    temporary_name, unreadable, write_whole,
};
use crate::format1;
use crate::manifest::{FORMAT, Manifest};
use crate::recorder::{DEFAULT_RESERVE, FinishedRecords, RecordWatch, Reserve, RunShape};
use crate::rows::parse_rows;
use crate::verify::{in_parallel, judge, verify, wrong};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uflip_device::{Bytes, Recorder};
use uflip_measure::Plan;
use uflip_measure::auto::findings::Calibration;
use uflip_measure::run::{RunOutcome, RunSpec, RunStats, Sink, SinkError};

/// When a commit waits for the disk under the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every commit does: no finished run is lost even when power fails.
    EveryRun,
    /// One in so many commits does, or the first after so much time: `kill -9`
    /// still loses nothing, a power cut the runs since. For simulated devices,
    /// whose runs can be had again exactly.
    Relaxed {
        /// At most this many commits apart.
        runs: u32,
        /// At most this far apart.
        after: Duration,
    },
}

impl Durability {
    /// What suits simulated targets: every 1,000 runs or 30 s.
    pub const RELAXED: Durability = Durability::Relaxed { runs: 1000, after: Duration::from_secs(30) };
}

/// A store open for writing; see the module's head.
pub struct Store {
    dir: PathBuf,
    /// What rows say of the folder.
    folder: Option<String>,
    /// Holds the lock until the store is dropped.
    lock: File,
    runs: File,
    runs_length: u64,
    kept: HashSet<u32>,
    reserve: Reserve,
    /// The run in progress and its unfinished record file.
    begun: Option<(u32, PathBuf)>,
    durability: Durability,
    unsynced: u32,
    synced_at: Instant,
    /// Why nothing more can be kept, after a failure that could not be undone.
    broken: Option<String>,
    notes: Vec<String>,
    /// Somebody edited the plan; this is said of it from then on.
    plan_edited: bool,
}

/// The file that makes a folder a store.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Files of a store that are written as a whole, by whichever command.
const WHOLE: [&str; 9] = [
    MANIFEST,
    names::PLAN,
    names::CALIBRATION,
    names::RUNS,
    "state.json",
    "profile.json",
    "job.json",
    "logical-block.json",
    REPORT,
];

/// The report, where no other file is named.
const REPORT: &str = "report.html";

/// File names inside the store, relative to it.
pub(crate) mod names {
    pub(crate) const PLAN: &str = "plan.json";
    pub(crate) const CALIBRATION: &str = "calibration.json";
    pub(super) const RUNS: &str = "runs.ndjson";
    pub(super) const IOS: &str = "ios";
    pub(super) const ASIDE: &str = "set-aside";
}

/// The results folder that keeps something under the name `path`: whatever it
/// consists of, what is only drawn from it (`report.html`) apart.
pub(crate) fn folder_of_kept(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (name, folder) = (path.file_name()?.to_str()?, path.parent()?.canonicalize().ok()?);
    let whole = (is_whole(name) && name != REPORT) || [names::IOS, names::ASIDE].contains(&name);
    if whole && is_store(&folder) {
        return Some(folder);
    }
    records_of(&folder)
}

fn is_store(folder: &Path) -> bool {
    folder.join(MANIFEST).exists() || folder.join(names::RUNS).exists()
}

/// The results folder that keeps records in `folder`, or what it set aside.
pub(crate) fn records_of(folder: &Path) -> Option<PathBuf> {
    let within = folder.file_name().is_some_and(|name| name == names::IOS || name == names::ASIDE);
    let above = folder.parent().filter(|_| within)?;
    is_store(above).then(|| above.to_path_buf())
}

/// Whether results in `dir`, which may not be there yet, have a file of their own
/// under the name `path`: they would replace it.
pub(crate) fn is_kept_in(dir: &Path, path: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    let (Some(dir), Some(name)) = (whole(dir), path.file_name()) else { return false };
    // The file may be about to be made; its folder is there.
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(folder) = whole(folder) else { return false };
    let of_runs = [names::IOS, names::ASIDE].iter().any(|name| folder.starts_with(dir.join(name)));
    of_runs || (folder == dir && name.to_str().is_some_and(is_whole))
}

/// Whether a file of this name is one of a store's own.
fn is_whole(name: &str) -> bool {
    WHOLE.contains(&name) || name == crate::claim::LOCK
}

/// Refuses a folder in which something else has the name of a file that will be
/// replaced: said now, not after hours of measuring.
fn refuse_what_stays(dir: &Path) -> Result<(), StoreError> {
    WHOLE.iter().try_for_each(|name| may_be_replaced(&dir.join(name)).map(|_| ()))
}

/// The record file of run `id`, relative to the store: `ios/run-000123.parquet`.
pub fn record_name(id: u32) -> String {
    format!("{}/run-{id:06}.parquet", names::IOS)
}

fn temporary(dir: &Path, id: u32) -> PathBuf {
    dir.join(names::IOS).join(temporary_name(&format!("run-{id:06}.parquet")))
}

/// The folder of the records, made where it is not there; never another one
/// that a link leads to.
fn records_folder(dir: &Path) -> Result<PathBuf, StoreError> {
    let ios = dir.join(names::IOS);
    match ios.symlink_metadata() {
        Ok(meta) if meta.is_dir() => {}
        Ok(meta) => {
            let (shown, kind) = (ios.display(), kind_of(&meta));
            return refused(format!("{shown} is {kind} and not the folder of the records; put that there"));
        }
        Err(_) => std::fs::create_dir(&ios).map_err(path_error("cannot create the folder", &ios))?,
    }
    Ok(ios)
}

impl Store {
    /// Makes a store in `dir`, which must not exist or be empty.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where `dir` has a store or anything else in it
    /// or another process writes there, [`StoreError::Path`] otherwise.
    pub fn create(dir: &Path, manifest: &Manifest, plan: &Plan) -> Result<Store, StoreError> {
        Store::create_in(Claim::new(dir)?, manifest, plan)
    }

    /// Makes a store in a folder that was claimed for it.
    ///
    /// # Errors
    /// [`StoreError::Path`].
    pub fn create_in(claim: Claim, manifest: &Manifest, plan: &Plan) -> Result<Store, StoreError> {
        let dir = &claim.dir().to_path_buf();
        // Of a making that was cut off; the folder is ours and was found free.
        remove_leftovers(dir, &HashSet::new(), false, &mut Vec::new())?;
        write_whole(&dir.join(names::RUNS), b"")?;
        write_whole(&dir.join(names::PLAN), &plan_file(plan, manifest.folder.as_deref(), false)?)?;
        // Last: a folder without a manifest is not yet a store.
        write_whole(&dir.join(MANIFEST), &pretty(manifest))?;
        if let Some(parent) = dir.parent() {
            // Makes the folder itself durable; not all parents can be opened.
            let _ = sync_dir(parent);
        }
        Store::over(dir, manifest.folder.clone(), claim.into_lock()?, HashSet::new(), Vec::new())
    }

    /// What rows say of the folder; None in folders of before that.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Refuses a folder with a store or with anybody's files. What a crash
    /// inside [`Store::create`] leaves counts as free: the lock and, beside it,
    /// any of what is made before the manifest, whole or half.
    ///
    /// # Errors
    /// [`StoreError::Refused`], [`StoreError::Path`] where `dir` cannot be read.
    pub fn refuse_unless_free(dir: &Path) -> Result<(), StoreError> {
        let shown = dir.display();
        if dir.join(MANIFEST).exists() {
            return refused(format!(
                "{shown} already holds a measurement; choose another folder with -o (--resume goes on with a benchmark \
                 that was cut off)"
            ));
        }
        let begun = dir.join(LOCK).exists();
        for entry in std::fs::read_dir(dir).map_err(path_error("cannot read the folder", dir))? {
            let entry = entry.map_err(path_error("cannot read the folder", dir))?;
            if !(begun && left_by_create(&entry)) {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                return refused(format!(
                    "{shown} is not empty ({name}) and holds no measurement; choose a new or empty folder with -o"
                ));
            }
        }
        Ok(())
    }

    /// Opens the store in `dir` to go on with it: cuts a torn last line,
    /// removes temporary files and record files without a line, and forgets
    /// runs whose line or record file is not as it was written, so that they are
    /// measured again; [`Store::notes`] tells of it. A plan that was edited is
    /// taken as it is, and keeps a note of it.
    /// Where `seed` and `plan` are given they must be the store's own.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where there is no store, another process writes
    /// it, or it is of another format, seed or plan; [`StoreError::Damaged`]
    /// where its files contradict themselves; [`StoreError::Path`].
    pub fn resume(dir: &Path, seed: Option<u64>, plan: Option<&Plan>) -> Result<Store, StoreError> {
        Store::resume_in(Claim::existing(dir)?, seed, plan)
    }

    /// The same of a folder that was claimed for it.
    ///
    /// # Errors
    /// As [`Store::resume`].
    pub fn resume_in(claim: Claim, seed: Option<u64>, plan: Option<&Plan>) -> Result<Store, StoreError> {
        let dir = &claim.dir().to_path_buf();
        let contents = StoreContents::read(dir)?;
        Store::may_resume(&contents, seed)?;
        same_plan(&contents, plan)?;
        let mut notes: Vec<String> =
            contents.damage.iter().filter(|d| d.run.is_none() && !d.row).map(ToString::to_string).collect();
        let kept = repair_runs(dir, &contents, &mut notes)?;
        let rows_damaged = contents.damage.iter().any(|damage| damage.row);
        remove_leftovers(dir, &kept, rows_damaged, &mut notes)?;
        let folder = contents.manifest.folder.clone();
        let mut store = Store::over(dir, folder, claim.into_lock()?, kept, notes)?;
        if contents.plan_edited {
            store
                .notes
                .push(format!("{} was edited; what it says now counts", dir.join(names::PLAN).display()));
            store.plan_edited = true;
        }
        if contents.plan_edited || contents.manifest.format < FORMAT {
            store.bring_up_to_date(&contents)?;
        }
        Ok(store)
    }

    /// Whether what is in a folder can be gone on with; changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where it is of another seed, or a folder or the like has the
    /// name of one of its files; [`StoreError::Damaged`] where its manifest is not as it was written.
    pub fn may_resume(contents: &StoreContents, seed: Option<u64>) -> Result<(), StoreError> {
        same_seed(contents, seed)?;
        if contents.damage.iter().any(|damage| damage.file == MANIFEST) {
            let (path, detail) = (contents.dir.join(MANIFEST), MANIFEST_CHANGED.to_string());
            return Err(StoreError::Damaged { path, detail });
        }
        refuse_what_stays(&contents.dir)
    }

    /// Writes plan and manifest as this version does: what it adds to the folder is
    /// in its own format, and the plan says what older rows stand for.
    fn bring_up_to_date(&mut self, contents: &StoreContents) -> Result<(), StoreError> {
        if let Some(plan) = &contents.plan {
            self.replace_plan(plan)?;
        }
        self.replace_manifest(&contents.manifest)
    }

    /// Reads the store in `dir` without changing it, whether or not a run is
    /// in progress, and holds every record file against its row.
    ///
    /// # Errors
    /// As [`StoreContents::read`].
    pub fn open(dir: &Path) -> Result<StoreContents, StoreError> {
        let mut contents = StoreContents::read(dir)?;
        verify(&mut contents);
        Ok(contents)
    }

    fn over(
        dir: &Path,
        folder: Option<String>,
        lock: File,
        kept: HashSet<u32>,
        notes: Vec<String>,
    ) -> Result<Store, StoreError> {
        let path = dir.join(names::RUNS);
        let runs = open_inside(&path, OpenOptions::new().append(true))?;
        let runs_length = runs.metadata().map_err(path_error("cannot read", &path))?.len();
        Ok(Store {
            dir: dir.to_path_buf(),
            folder,
            lock,
            runs,
            runs_length,
            kept,
            reserve: Reserve::new(DEFAULT_RESERVE),
            begun: None,
            durability: Durability::EveryRun,
            unsynced: 0,
            synced_at: Instant::now(),
            broken: None,
            notes,
            plan_edited: false,
        })
    }

    /// Sets when commits wait for the disk; [`Durability::EveryRun`] at first.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Sets the memory for records; 30 MiB at first. Between runs only.
    pub fn set_reserve(&mut self, reserve: Bytes) {
        self.abandon();
        self.reserve = Reserve::new(reserve);
    }

    /// Lets somebody watch the runs from now on; between runs only.
    pub fn watch(&self) -> RecordWatch {
        self.reserve.watch()
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What [`Store::resume`] found and put right, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How many runs are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// True where no run is kept yet.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Makes everything kept so far durable, whatever the [`Durability`].
    ///
    /// # Errors
    /// [`StoreError::Path`].
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.unsynced > 0 {
            let path = self.dir.join(names::RUNS);
            #[cfg(target_os = "linux")]
            rustix::fs::syncfs(&self.runs).map_err(|e| path_error("cannot sync", &path)(e.into()))?;
            #[cfg(not(target_os = "linux"))]
            self.runs.sync_all().map_err(path_error("cannot sync", &path))?;
            self.unsynced = 0;
        }
        self.synced_at = Instant::now();
        Ok(())
    }

    /// Replaces the plan, as a whole and durably: by the same plan with further
    /// steps, before any of these is begun.
    ///
    /// # Errors
    /// [`StoreError::Path`]; the old plan is then still there.
    pub fn replace_plan(&mut self, plan: &Plan) -> Result<(), StoreError> {
        write_whole(&self.dir.join(names::PLAN), &plan_file(plan, self.folder.as_deref(), self.plan_edited)?)
    }

    /// Replaces the manifest, as a whole and durably: where what is measured from
    /// now on is known by another name, or is another device.
    ///
    /// # Errors
    /// [`StoreError::Path`]; the old one is then still there.
    pub fn replace_manifest(&mut self, manifest: &Manifest) -> Result<(), StoreError> {
        let manifest = Manifest { format: FORMAT, folder: self.folder.clone(), ..manifest.clone() };
        write_whole(&self.dir.join(MANIFEST), &pretty(&manifest))
    }

    /// Writes or replaces `calibration.json`, as a whole and durably.
    ///
    /// # Errors
    /// [`StoreError::Path`]; the old one is then still there.
    pub fn replace_calibration(&mut self, calibration: &Calibration) -> Result<(), StoreError> {
        write_whole(
            &self.dir.join(names::CALIBRATION),
            &pretty(&OfFolder { told: calibration, folder: self.folder.as_deref() }),
        )
    }

    /// Renames the finished record file into place and appends the run's line.
    fn keep(
        &mut self,
        run: &RunSpec,
        outcome: &RunOutcome,
        done: FinishedRecords,
    ) -> Result<RunStats, StoreError> {
        let every = self.durability == Durability::EveryRun;
        let (path, name) = (self.dir.join(record_name(run.id)), record_name(run.id));
        let bytes = done.file.metadata().map_err(path_error("cannot read", &done.path))?.len();
        if every {
            done.file.sync_all().map_err(path_error("cannot sync", &done.path))?;
        }
        std::fs::rename(&done.path, &path).map_err(path_error("cannot rename to", &path))?;
        if every {
            sync_dir(&self.dir.join(names::IOS))?;
        }
        let row = RunRow {
            spec: run.clone(),
            outcome: outcome.clone(),
            stats: done.stats,
            records: RecordFile { file: name, bytes, checksum: Some(done.checksum) },
            stalls: outcome.started_unix_ns.map(|_| done.stalls),
            folder: self.folder.clone(),
        };
        let line = serde_json::to_vec(&row)
            .map_err(|e| StoreError::Refused(format!("run {} cannot be told as JSON: {e}", run.id)))?;
        let mut line = seal(line);
        line.push(b'\n');
        let runs_path = self.dir.join(names::RUNS);
        if let Err(error) = append(&mut self.runs, &runs_path, self.runs_length, &line, every) {
            if error.torn {
                self.broken = Some(error.cause.to_string());
            }
            let _ = std::fs::remove_file(&path);
            return Err(error.cause);
        }
        self.runs_length += line.len() as u64;
        self.kept.insert(run.id);
        Ok(row.stats)
    }

    /// What the recorder must know of a run that is about to begin.
    pub(crate) fn shape(&self, run: &RunSpec) -> Result<RunShape, SinkError> {
        self.refuse_broken()?;
        if self.has(run.id) {
            return Err(SinkError(format!("run {} is already kept in {}", run.id, self.dir.display())));
        }
        Ok(RunShape {
            run: run.id,
            io_count: run.io_count,
            io_ignore: run.io_ignore,
            streams: run.work.stream_count() as u64,
            patterns: run.work.pattern_count(),
            open_loop: run.work.is_open_loop(),
            path: temporary(&self.dir, run.id),
        })
    }

    /// Keeps a run whose records are `finished` in the file `temporary`, or removes
    /// what there is of it.
    pub(crate) fn commit_of(
        &mut self,
        run: &RunSpec,
        outcome: &RunOutcome,
        finished: Result<FinishedRecords, StoreError>,
        temporary: &Path,
    ) -> Result<RunStats, SinkError> {
        let ios = outcome.end.ios;
        let kept = self.refuse_broken().map_err(|error| StoreError::Refused(error.0)).and(finished);
        let kept = kept.and_then(|done| {
            if outcome.end.interrupted {
                return refused(format!("run {} was interrupted and is not kept", run.id));
            }
            if done.ios == ios {
                return self.keep(run, outcome, done);
            }
            refused(format!("the device finished {ios} IOs but {} were recorded", done.ios))
        });
        let stats = kept.map_err(|error| {
            // Gone already where it was renamed.
            let _ = std::fs::remove_file(temporary);
            self.fail(ios, error)
        })?;
        self.sync_if_due()?;
        Ok(stats)
    }

    fn sync_if_due(&mut self) -> Result<(), StoreError> {
        let Durability::Relaxed { runs, after } = self.durability else { return Ok(()) };
        self.unsynced += 1;
        if self.unsynced >= runs || self.synced_at.elapsed() >= after { self.sync() } else { Ok(()) }
    }

    fn fail(&self, ios: u64, error: StoreError) -> SinkError {
        let room = no_room(&error, &self.dir, ios).unwrap_or_default();
        SinkError(format!("{error}{room}"))
    }

    fn refuse_broken(&self) -> Result<(), SinkError> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(SinkError(format!(
                "nothing more is kept in {} since an earlier save failed ({why}); start again with --resume",
                self.dir.display()
            ))),
        }
    }
}

impl Sink for Store {
    fn has(&self, id: u32) -> bool {
        self.kept.contains(&id)
    }

    fn begin(&mut self, run: &RunSpec) -> Result<(), SinkError> {
        let shape = self.shape(run)?;
        self.begun = Some((run.id, shape.path.clone()));
        self.reserve.begin(shape);
        Ok(())
    }

    fn recorder(&self) -> &dyn Recorder {
        &self.reserve
    }

    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError> {
        self.refuse_broken()?;
        let Some((_, temporary)) = self.begun.take().filter(|(id, _)| *id == run.id) else {
            self.abandon();
            return Err(SinkError(format!("run {} was not begun", run.id)));
        };
        if outcome.end.interrupted {
            self.abandon();
            return Err(SinkError(format!("run {} was interrupted and is not kept", run.id)));
        }
        let finished = self.reserve.finish();
        self.commit_of(run, outcome, finished, &temporary)
    }

    fn abandon(&mut self) {
        self.begun = None;
        self.reserve.abandon();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The last chance to say so has passed; the runs are in the page cache.
        let _ = self.sync();
        // Closing alone does not let go of the lock while a child forked in the
        // meantime, and not yet past its exec, shares the descriptor.
        let _ = self.lock.unlock();
    }
}

fn refused<T>(text: String) -> Result<T, StoreError> {
    Err(StoreError::Refused(text))
}

/// A file with the folder that it belongs to, as its rows say it.
#[derive(serde::Serialize)]
struct OfFolder<'a, T> {
    #[serde(flatten)]
    told: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'a str>,
}

fn pretty(value: &impl serde::Serialize) -> Vec<u8> {
    // Values and manifests have string keys only, which is all that can fail.
    seal(serde_json::to_vec_pretty(value).unwrap_or_default())
}

/// The plan as its file has it; `edited` where somebody edited it.
fn plan_file(plan: &Plan, folder: Option<&str>, edited: bool) -> Result<Vec<u8>, StoreError> {
    let told = serde_json::to_value(OfFolder { told: plan, folder });
    let mut told = told.map_err(|e| StoreError::Refused(format!("the plan cannot be told as JSON: {e}")))?;
    if let (true, Value::Object(fields)) = (edited, &mut told) {
        fields.insert(EDITED.into(), true.into());
    }
    Ok(pretty(&told))
}

/// True for what [`Store::create`] makes before the manifest.
fn left_by_create(entry: &std::fs::DirEntry) -> bool {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return false };
    match name {
        LOCK | names::PLAN => true,
        names::RUNS => entry.metadata().is_ok_and(|m| m.len() == 0),
        names::IOS => {
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            folder && std::fs::read_dir(entry.path()).is_ok_and(|mut files| files.next().is_none())
        }
        _ => [names::RUNS, names::PLAN, MANIFEST].iter().any(|of| is_temporary_of(of, name)),
    }
}

fn same_seed(contents: &StoreContents, seed: Option<u64>) -> Result<(), StoreError> {
    let shown = contents.dir.display();
    if let Some(seed) = seed
        && seed != contents.manifest.seed
    {
        return refused(format!(
            "{shown} was measured with --seed {}, not {seed}; resume it with that seed or choose another folder with -o",
            contents.manifest.seed
        ));
    }
    Ok(())
}

fn same_plan(contents: &StoreContents, plan: Option<&Plan>) -> Result<(), StoreError> {
    let shown = contents.dir.display();
    if plan.is_some_and(|plan| contents.plan.as_ref() != Some(plan)) {
        return refused(format!(
            "the plan of {shown} is another one; resume it with the options it was started with \
             (see {shown}/manifest.json) or choose another folder with -o"
        ));
    }
    Ok(())
}

/// Cuts a torn last line off `runs.ndjson`, and drops the lines that are no
/// rows and the runs whose record files are not theirs; gives what is kept.
fn repair_runs(
    dir: &Path,
    contents: &StoreContents,
    notes: &mut Vec<String>,
) -> Result<HashSet<u32>, StoreError> {
    let path = dir.join(names::RUNS);
    let bytes = read_inside(&path).map_err(|e| unreadable(&path, e, "restore it from a copy"))?;
    let mut parsed = parse_rows(&bytes);
    format1::tell(contents.plan.as_ref(), parsed.lines.iter_mut().map(|line| &mut line.row));
    if parsed.end < bytes.len() {
        notes.push(format!("the last line of {} was torn and is cut off", path.display()));
    }
    notes.extend(parsed.damage.iter().map(|damage| match damage.row {
        true => format!("{damage} and measured again"),
        false => damage.to_string(),
    }));
    let folder = contents.manifest.folder.as_deref();
    let planned: HashMap<u32, &RunSpec> =
        contents.plan.iter().flat_map(Plan::runs).map(|run| (run.id, run)).collect();
    let found = in_parallel(&parsed.lines, |line| {
        wrong(dir, folder, &line.row, judge(contents.plan_edited, &planned, &line.row))
    });
    let (mut text, mut kept) = (Vec::new(), HashSet::new());
    for (line, wrong) in parsed.lines.iter().zip(found) {
        let (id, file) = (line.row.spec.id, &line.row.records.file);
        match wrong {
            None => {
                text.extend_from_slice(&bytes[line.bytes.clone()]);
                kept.insert(id);
            }
            Some(what) => notes.push(format!("run {id} is measured again: its record file {file}: {what}")),
        }
    }
    if text == bytes {
        return Ok(kept);
    }
    if bytes.starts_with(&text) {
        let file = open_inside(&path, OpenOptions::new().write(true))?;
        file.set_len(text.len() as u64).map_err(path_error("cannot cut", &path))?;
        file.sync_all().map_err(path_error("cannot sync", &path))?;
    } else {
        write_whole(&path, &text)?;
    }
    Ok(kept)
}

/// True for the unfinished form of a file that a store has here.
fn is_leftover(name: &str, among_records: bool) -> bool {
    if among_records {
        let of = name.strip_prefix('.').and_then(|rest| rest.get(..rest.find(".parquet")? + 8));
        return of.is_some_and(|of| is_record(of) && is_temporary_of(of, name));
    }
    WHOLE.iter().any(|of| is_temporary_of(of, name))
}

/// True for the name of a record file.
fn is_record(name: &str) -> bool {
    name.starts_with("run-") && name.ends_with(".parquet")
}

/// Removes temporary files, and the record file of a run whose line was not
/// written any more. Where more record files than that one are without a line,
/// or lines were damaged, `runs.ndjson` may be what lost something: then they
/// are set aside, not removed.
fn remove_leftovers(
    dir: &Path,
    kept: &HashSet<u32>,
    rows_damaged: bool,
    notes: &mut Vec<String>,
) -> Result<(), StoreError> {
    let ios = records_folder(dir)?;
    let known: HashSet<String> = kept.iter().map(|id| format!("run-{id:06}.parquet")).collect();
    let mut orphans = Vec::new();
    for folder in [dir, &ios] {
        for entry in std::fs::read_dir(folder).map_err(path_error("cannot read the folder", folder))? {
            let entry = entry.map_err(path_error("cannot read the folder", folder))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if is_leftover(name, folder == ios) {
                let path = entry.path();
                std::fs::remove_file(&path).map_err(path_error("cannot remove", &path))?;
                notes
                    .push(format!("{} was left by a run that did not finish and is removed", path.display()));
            } else if folder == ios && is_record(name) && !known.contains(name) {
                orphans.push(entry.path());
            }
        }
    }
    match &orphans[..] {
        [] => Ok(()),
        [one] if !rows_damaged => {
            notes.push(format!("{} was left by a run that did not finish and is removed", one.display()));
            std::fs::remove_file(one).map_err(path_error("cannot remove", one))
        }
        several => set_aside(dir, several, notes),
    }
}

/// Where `file` goes in `aside`: beside what was set aside before, never over it.
fn free_name(aside: &Path, file: &Path) -> PathBuf {
    let name = |n: u32| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        aside.join(format!("{stem}-{n}.parquet"))
    };
    let free = |path: &PathBuf| path.symlink_metadata().is_err();
    let first = aside.join(file.file_name().unwrap_or_default());
    std::iter::once(first.clone()).chain((2..100_000).map(name)).find(free).unwrap_or(first)
}

/// Moves record files into a folder of their own.
fn set_aside(dir: &Path, files: &[PathBuf], notes: &mut Vec<String>) -> Result<(), StoreError> {
    let aside = dir.join(names::ASIDE);
    match std::fs::create_dir(&aside) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let meta = aside.symlink_metadata().map_err(path_error("cannot look at", &aside))?;
            if !meta.is_dir() {
                return refused(format!("{} is no folder; move it away, then resume", aside.display()));
            }
        }
        made => made.map_err(path_error("cannot create the folder", &aside))?,
    }
    for file in files {
        let to = free_name(&aside, file);
        std::fs::rename(file, &to).map_err(path_error("cannot set aside", file))?;
    }
    notes.push(format!(
        "{} record files that runs.ndjson does not tell of are moved to {}; their runs are measured again. If \
         runs.ndjson lost lines, put it and these files back from a copy instead",
        files.len(),
        aside.display()
    ));
    Ok(())
}
