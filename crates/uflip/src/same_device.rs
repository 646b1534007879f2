//! Whether a resume meets the device that the benchmark began on.
//!
//! Asked before anything is opened for writing, in the order: what the device
//! says of itself ([`Identity`]), what stands on it (`identity::fingerprint`,
//! with places that the last kept runs wrote). Identity decides, not the path:
//! the same device under another name goes on; another device under the same
//! name is refused, with the name that the right one has now where it is found.
//! Where another one is wanted (`--other-device`) the manifest says from which
//! run on it was measured. Method and limits: `docs/method.md`.

use crate::target::Target;
use crate::{printable, usage};
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;
use uflip_device::identity::fingerprint::{self, Fingerprint, Left};
use uflip_device::identity::{DeviceKind, Difference, Identity, SysPaths, identity, list_devices};
use uflip_device::stamp::Key;
use uflip_device::{Bytes, Data, unix_now};
use uflip_measure::{PatternMode, State, Step};
use uflip_store::manifest::{DeviceChange, TargetFacts};
use uflip_store::{Manifest, Store, StoreContents, read_row_groups};

/// Of so many of the last kept runs that wrote …
const RUNS: usize = 4;
/// … so many writes are looked at.
const WRITES: usize = 32;

/// What a resume is about.
pub struct ResumedOn<'a> {
    /// The results so far.
    pub contents: &'a StoreContents,
    /// The target as the benchmark began on it.
    pub stored: &'a Target,
    /// The target that was named now, if any.
    pub named: Option<&'a Target>,
    /// Whether another device is wanted.
    pub other: bool,
    /// What the runs write.
    pub data: Data,
    /// What to type for this target: `uflip run TARGET -o out --resume`.
    pub type_for: &'a dyn Fn(&str) -> String,
}

/// What was found.
pub struct Answer {
    /// The target to open.
    pub target: Target,
    /// What is not as it was, where that is wanted; else nothing.
    differences: Vec<Difference>,
    /// Of a path.
    identity: Option<Identity>,
    stored: Target,
}

/// The identity of `target` for the manifest, with its contents: before
/// anything is written to it. None for a device that is not in this machine.
pub fn for_manifest(target: &Target) -> Option<Identity> {
    let mut found = target.path().and_then(|path| identity(path, &SysPaths::default()).ok())?;
    // What cannot be read is not known; the rest still tells.
    let _ = found.fingerprint();
    Some(found)
}

/// Finds out whether the target is the device that `asked.contents` are of.
///
/// # Errors
/// Where it is not and that is not wanted, with what to type.
pub fn ask(asked: &ResumedOn<'_>) -> anyhow::Result<Answer> {
    let target = asked.named.unwrap_or(asked.stored).clone();
    let name = target.to_string();
    let answer = |differences, identity| {
        Ok(Answer { target: target.clone(), differences, identity, stored: asked.stored.clone() })
    };
    let (Some(path), Some(_)) = (target.path(), asked.stored.path()) else {
        if name != asked.stored.to_string() {
            return Err(usage(format!(
                "{} measures {}, not {name}; leave the target away to go on",
                asked.contents.dir.display(),
                asked.stored
            )));
        }
        let differences = described_otherwise(asked, &target)?;
        if !differences.is_empty() && !asked.other {
            return Err(refusal(asked, &name, &differences, None));
        }
        return answer(differences, None);
    };
    let then = stored_identity(asked.contents);
    if let Some(gone) = gone(path) {
        if !asked.other {
            return Err(refusal(asked, &name, &[], Some(gone)));
        }
        let was = then.file.as_ref().map_or(asked.stored.to_string(), |file| file.path.clone());
        let made = Difference {
            what: "file".into(),
            was: format!("{was}, which is gone"),
            is: format!("{name}, made anew"),
        };
        return answer(vec![made], None);
    }
    let now = match identity(path, &SysPaths::default()) {
        Ok(now) => now,
        Err(error) => {
            return Err(refusal(asked, &name, &[], Some(format!("it cannot be looked at: {error}"))));
        }
    };
    if now.kind == Some(DeviceKind::Block) && now.size_bytes == Some(Bytes(0)) {
        let empty = "nothing is attached to it, or no medium is in it".to_string();
        return Err(refusal(asked, &name, &[], Some(empty)));
    }
    let mut differences = then.differences(&now);
    if differences.is_empty() {
        differences = contents_differ(asked, &then, &now);
    }
    if !differences.is_empty() && !asked.other {
        return Err(refusal(asked, &name, &differences, None));
    }
    if differences.is_empty() && name != asked.stored.to_string() {
        crate::say!("note: {name} is the device that was {} when it was measured before", asked.stored);
    }
    if differences.is_empty() && asked.contents.manifest.target.identity.is_none() {
        crate::say!(
            "note: {} was begun by an earlier version, which kept less of a device's identity: what it kept agrees",
            asked.contents.dir.display()
        );
    }
    answer(differences, Some(now))
}

/// Why nothing can be compared at this path: there is nothing to measure on.
fn gone(path: &Path) -> Option<String> {
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("nothing is there any more".to_string())
        }
        Ok(meta) if meta.is_file() && meta.len() == 0 => Some("it is an empty file now".to_string()),
        Ok(meta) if meta.is_file() && uflip_device::scratch::is_unfinished(path) => {
            Some("it is a scratch file that was never finished".to_string())
        }
        _ => None,
    }
}

/// What the manifest has of the identity; of earlier versions' the facts.
fn stored_identity(contents: &StoreContents) -> Identity {
    let target = &contents.manifest.target;
    let of_facts = || target.facts.device().map(Identity::of_facts).unwrap_or_default();
    target.identity.clone().unwrap_or_else(of_facts)
}

/// Of a simulated device: what its description has otherwise than it had.
fn described_otherwise(asked: &ResumedOn<'_>, target: &Target) -> anyhow::Result<Vec<Difference>> {
    let Target::Simulated { description, .. } = target else { return Ok(Vec::new()) };
    let TargetFacts::Simulated { description: then, .. } = &asked.contents.manifest.target.facts else {
        return Ok(Vec::new());
    };
    let now = serde_json::to_value(description)?;
    // What an earlier version wrote in another form and means the same is the same.
    let read = serde_json::from_value::<uflip_sim::Description>(then.clone());
    let then = read.map_or_else(|_| Ok(then.clone()), serde_json::to_value)?;
    Ok(first_difference("description", &then, &now).into_iter().collect())
}

fn first_difference(at: &str, was: &Value, is: &Value) -> Option<Difference> {
    match (was, is) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.filter_map(|key| first_difference(&format!("{at}.{key}"), &was[key], &is[key])).next()
        }
        _ if was == is => None,
        _ => Some(Difference { what: at.to_string(), was: was.to_string(), is: is.to_string() }),
    }
}

/// What the contents of a block device tell. Where the device names itself they
/// only make for a warning: somebody may have used it in between.
fn contents_differ(asked: &ResumedOn<'_>, then: &Identity, now: &Identity) -> Vec<Difference> {
    let (Some(Fingerprint(before)), Some(DeviceKind::Block), Some(size)) =
        (&then.contents, now.kind, now.size_bytes)
    else {
        return Vec::new();
    };
    let path = Path::new(&now.path);
    let look = |offsets: &[u64]| fingerprint::look(path, offsets, Key::DEVICE).unwrap_or_default();
    let left = Left { stamps: asked.data == Data::Random, blanks: trims(asked.contents) };
    let (places, written) = (look(&fingerprint::places(size)), look(&written(asked.contents)));
    let verdict = fingerprint::judge(before, &places, &written, left);
    if !verdict.is_other() {
        return Vec::new();
    }
    let is = format!("others at {} of {} places that tell", verdict.wrong, verdict.telling);
    if then.names_itself() {
        crate::say!(
            "warning: {} is the device that was measured, but its contents are {is}: something else wrote to it",
            now.path
        );
        return Vec::new();
    }
    vec![Difference { what: "contents".into(), was: "what uflip found and wrote".into(), is }]
}

/// Whether runs leave blanks behind.
fn trims(contents: &StoreContents) -> bool {
    let trim = |step: &Step| match step {
        Step::Reset { state } => *state == State::Trim,
        Step::Run(run) => run.work.basics().iter().any(|basic| basic.mode == PatternMode::Trim),
        _ => false,
    };
    contents.plan.as_ref().is_none_or(|plan| plan.steps.iter().any(trim))
}

/// Where the last kept runs wrote: whole sectors, some of each run's first writes.
fn written(contents: &StoreContents) -> Vec<u64> {
    let mut offsets = Vec::new();
    for row in contents.runs.iter().rev().filter(|row| row.spec.work.writes()).take(RUNS) {
        let mut of_run = Vec::new();
        // A damaged file tells nothing here and is seen to elsewhere; one group is enough.
        let _ = read_row_groups(&contents.dir.join(&row.records.file), |_, records| {
            let writes = records.iter().filter(|record| record.mode() == uflip_device::Mode::Write);
            let whole = writes.map(|record| record.offset().0).filter(|offset| offset.is_multiple_of(512));
            of_run = whole.collect();
            Err(uflip_store::StoreError::Refused("enough".into()))
        });
        let step = of_run.len().div_ceil(WRITES).max(1);
        offsets.extend(of_run.into_iter().step_by(step));
    }
    offsets
}

/// Another block device of this machine that is the one that was measured.
fn elsewhere(then: &Identity) -> Option<(String, Option<String>)> {
    (then.kind == Some(DeviceKind::Block) && then.is_certain()).then_some(())?;
    list_devices(&SysPaths::default()).into_iter().find_map(|listing| {
        let now = identity(Path::new(&listing.facts.path), &SysPaths::default()).ok()?;
        then.differences(&now).is_empty().then_some((listing.facts.path, listing.confirm))
    })
}

/// What is not as it was, and what to type.
fn refusal(
    asked: &ResumedOn<'_>,
    name: &str,
    differences: &[Difference],
    gone: Option<String>,
) -> anyhow::Error {
    let dir = asked.contents.dir.display();
    let told = match gone {
        Some(gone) => gone,
        None => {
            let all: Vec<String> = differences.iter().map(Difference::to_string).collect();
            format!("it is another device now: {}", all.join("; "))
        }
    };
    let mut text = format!(
        "{dir} was measured on {}, not on {name} as it is: {told}; nothing was written.",
        asked.stored
    );
    if name == asked.stored.to_string() {
        text = format!("{dir} was measured on {name}, and {told}; nothing was written.");
    }
    let then = stored_identity(asked.contents);
    let found = elsewhere(&then).filter(|(path, _)| path != name);
    let is_elsewhere = found.is_some();
    if let Some((path, confirm)) = found {
        let confirm = confirm.map(|confirm| format!(" {confirm}")).unwrap_or_default();
        text += &format!(
            "\nThe device measured is now {path}; to go on with it type\n  {}{confirm}",
            (asked.type_for)(&path)
        );
    }
    if asked.contents.manifest.options.remove_scratch {
        text += &format!(
            "\nuflip removes a scratch file that it made unasked once all is measured; what was measured: uflip show {}",
            printable::word(&dir.to_string())
        );
    }
    if is_elsewhere {
        return anyhow::anyhow!(text);
    }
    if differences.iter().any(|d| d.what == "size") {
        text += "\nOn a device of another size start a new benchmark with another -o";
    } else {
        text += &format!(
            "\nTo go on with another one all the same, and have that recorded, type\n  {} --other-device",
            (asked.type_for)(name)
        );
    }
    anyhow::anyhow!(text)
}

impl Answer {
    /// Whether another device is gone on with.
    pub fn is_another(&self) -> bool {
        !self.differences.is_empty()
    }

    /// Looks again at what has been opened: nothing is written yet.
    ///
    /// # Errors
    /// Where it is not what was asked about.
    pub fn still_is(&self) -> anyhow::Result<()> {
        let (Some(then), Some(path)) = (&self.identity, self.target.path()) else { return Ok(()) };
        let name = &self.target;
        let now = identity(path, &SysPaths::default()).with_context(|| format!("cannot look at {name}"))?;
        match then.differences(&now).first() {
            Some(difference) => {
                bail!("{name} changed while it was opened: {difference}; nothing was written")
            }
            None => Ok(()),
        }
    }

    /// Has the manifest say what is otherwise than before: another name of the
    /// same device, or another device and from when on it was measured.
    ///
    /// # Errors
    /// Where the manifest cannot be written.
    pub fn record(
        &self,
        store: &mut Store,
        manifest: &Manifest,
        next_run: Option<u32>,
        (facts, summary): (&TargetFacts, String),
    ) -> anyhow::Result<()> {
        let name = self.target.to_string();
        if self.differences.is_empty() && name == self.stored.to_string() {
            return Ok(());
        }
        let mut manifest = manifest.clone();
        manifest.options.target.clone_from(&name);
        let target = &mut manifest.target;
        target.name = Some(name.clone());
        if let Some(identity) = &mut target.identity {
            identity.path = name;
        }
        if !self.differences.is_empty() {
            // What was named now was not made unasked.
            manifest.options.remove_scratch = false;
            target.changed.push(DeviceChange {
                from_run: next_run,
                runs_kept: store.len(),
                unix_ns: unix_now(),
                differences: self.differences.clone(),
                was: target.identity.take(),
            });
            target.identity = for_manifest(&self.target);
            target.facts = facts.clone();
            target.summary = Some(summary);
            let told = self.differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ");
            crate::say!("warning: another device is measured from here on: {told}; the results say so");
        }
        Ok(store.replace_manifest(&manifest)?)
    }
}

/// `uflip run` and what follows, for this target.
pub fn to_type(command: &str, target: &str, dir: &Path) -> String {
    format!(
        "uflip {command} {} -o {} --resume",
        printable::word(target),
        printable::word(&dir.to_string_lossy())
    )
}
