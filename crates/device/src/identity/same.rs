//! Which device a target is, so that another day or another session can tell
//! whether it is the same one.
//!
//! Method: a device is known by its serial and world-wide identifier, a loop
//! device by its backing file, a file by its inode, birth and the key of its
//! sidecar; all by kind, size, model, partition and where that begins; a loop
//! device over another device also by what it stands on, layer by layer, as the
//! node behind it names whatever is there today. A path is no identity: names
//! such as `/dev/sdb` move between boots. A file is the same where inode and
//! birth are, whatever number its disk has today; where the file system keeps
//! no births, where device number and inode are. What contents tell is in
//! [`super::fingerprint`].
//!
//! Limits: of what device mapper, MD and bcache are made of nothing is kept.
//!
//! Source: `loop(4)` (`LOOP_GET_STATUS64`), `statx(2)`, the kernel's
//! `Documentation/ABI/stable/sysfs-block` (`start`).

use super::fingerprint::{self, Fingerprint};
use super::sysfs::{self, Node};
use super::{DevNumber, DeviceFacts, DeviceKind, SysPaths, block_facts, device_facts, ioctl, stack};
use crate::scratch;
use crate::stamp::Key;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// How many layers of loop devices over devices are followed.
const LAYERS: usize = 8;

/// Begins the name of what is otherwise in the layer beneath.
const BENEATH: &str = "beneath it, ";

/// A file, and which one of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileIdentity {
    /// Where it is, or was when it was opened.
    pub path: String,
    /// The number of its file system.
    pub st_dev: Option<u64>,
    /// Its number there.
    pub st_ino: Option<u64>,
    /// Its birth, in nanoseconds since 1970; `None` where none is kept.
    pub born_ns: Option<u64>,
    /// Of a loop device: the byte of the file at which it begins.
    pub offset_bytes: Option<u64>,
    /// Of a scratch file: the key in its sidecar.
    pub key: Option<String>,
}

/// Which device a target is. `None` means not known, or that it has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// The path with all links resolved; no part of the identity.
    pub path: String,
    /// Block device or file.
    pub kind: Option<DeviceKind>,
    /// Size in bytes.
    pub size_bytes: Option<Bytes>,
    /// The model, in the device's words.
    pub model: Option<String>,
    /// The serial number of the disk.
    pub serial: Option<String>,
    /// The world-wide identifier.
    pub wwid: Option<String>,
    /// Which partition of the disk.
    pub partition: Option<u64>,
    /// Where the partition begins, in sectors of 512 bytes.
    pub start_sector: Option<u64>,
    /// The file behind a loop device.
    pub backing_file: Option<FileIdentity>,
    /// Of a loop device over a device: that device, without its contents.
    pub beneath: Option<Box<Identity>>,
    /// The file itself, where it is one.
    pub file: Option<FileIdentity>,
    /// What stood on a block device before the first write.
    pub contents: Option<Fingerprint>,
}

/// One thing that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// `serial`, `size`, …
    pub what: String,
    /// What it was.
    pub was: String,
    /// What it is.
    pub is: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = self.what.trim_start_matches(BENEATH);
        let layers = &self.what[..self.what.len() - what.len()];
        write!(f, "{layers}its {what} was {} and is {}", self.was, self.is)
    }
}

/// The identity of whatever is at `path`, links followed, without its contents.
///
/// # Errors
/// Where nothing is there or it cannot be looked at.
pub fn identity(path: &Path, paths: &SysPaths) -> std::io::Result<Identity> {
    let facts = device_facts(path, paths)?;
    if let Some(number) = facts.number {
        return Ok(of_device(&facts, number, paths, LAYERS));
    }
    let resolved = Path::new(&facts.path);
    let meta = std::fs::metadata(resolved)?;
    let key = scratch::identity(resolved);
    let file = Some(FileIdentity { key, ..of_file(&facts.path, &meta) });
    Ok(Identity { file, ..Identity::of_facts(&facts) })
}

/// Of block device `number`, and of at most so many `layers` beneath it.
fn of_device(facts: &DeviceFacts, number: DevNumber, paths: &SysPaths, layers: usize) -> Identity {
    let mut found = Identity::of_facts(facts);
    let node = Node::find(number, paths);
    if let Some(node) = node.as_ref().filter(|node| node.is_partition()) {
        found.partition = sysfs::number(node.dir.join("partition"));
        found.start_sector = sysfs::number(node.dir.join("start"));
    }
    if let Some(path) = &facts.backing_file {
        found.backing_file = Some(backing(Path::new(&facts.path), number, path, paths));
        let whole = node.and_then(|node| node.whole());
        found.beneath = whole.filter(|_| layers > 0).and_then(|whole| {
            let number = stack::device_behind(&whole, paths)?;
            let path = Node::find(number, paths)?.dev_path(paths);
            let facts = block_facts(&path, number, None, paths);
            Some(Box::new(of_device(&facts, number, paths, layers - 1)))
        });
    }
    found
}

/// The birth of a file in ns since 1970; `None` where the file system keeps none.
pub(crate) fn born_ns(meta: &Metadata) -> Option<u64> {
    u64::try_from(meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok().filter(|ns| *ns > 0)
}

fn of_file(path: &str, meta: &Metadata) -> FileIdentity {
    FileIdentity {
        path: path.to_string(),
        st_dev: Some(meta.dev()),
        st_ino: Some(meta.ino()),
        born_ns: born_ns(meta),
        ..FileIdentity::default()
    }
}

/// The file behind loop device `number`, or behind the loop device that it is
/// a partition of. The kernel tells its inode; its birth only the file itself,
/// where it still has that name.
fn backing(node: &Path, number: DevNumber, path: &str, paths: &SysPaths) -> FileIdentity {
    let whole = Node::find(number, paths).and_then(|node| node.whole());
    let device = match whole {
        Some(whole) if whole.number != number => whole.dev_path(paths),
        _ => node.to_path_buf(),
    };
    let mut found = FileIdentity { path: path.to_string(), ..FileIdentity::default() };
    let Some(status) = File::open(device).ok().and_then(|file| ioctl::loop_status(&file).ok()) else {
        return found;
    };
    (found.st_dev, found.st_ino) = (Some(status.device), Some(status.inode));
    found.offset_bytes = Some(status.offset);
    let same = |meta: &Metadata| (meta.dev(), meta.ino()) == (status.device, status.inode);
    found.born_ns = std::fs::metadata(path).ok().filter(same).as_ref().and_then(born_ns);
    found
}

impl Identity {
    /// As far as facts tell.
    pub fn of_facts(facts: &DeviceFacts) -> Identity {
        let file = |path: &String| FileIdentity { path: path.clone(), ..FileIdentity::default() };
        Identity {
            path: facts.path.clone(),
            kind: Some(facts.kind),
            size_bytes: facts.size_bytes,
            model: facts.model.clone(),
            serial: facts.serial.clone(),
            wwid: facts.wwid.clone(),
            partition: None,
            start_sector: None,
            backing_file: facts.backing_file.as_ref().map(file),
            beneath: None,
            file: (facts.kind == DeviceKind::File).then(|| file(&facts.path)),
            contents: None,
        }
    }

    /// True where something other than size, model and contents tells it.
    pub fn is_certain(&self) -> bool {
        let known = |file: &Option<FileIdentity>| file.as_ref().is_some_and(|file| file.st_ino.is_some());
        self.names_itself() || known(&self.backing_file) || known(&self.file)
    }

    /// True where the device says who it is.
    pub fn names_itself(&self) -> bool {
        self.serial.is_some() || self.wwid.is_some()
    }

    /// Takes the fingerprint of a block device, before anything is written.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn fingerprint(&mut self) -> std::io::Result<()> {
        if let (Some(DeviceKind::Block), Some(size)) = (self.kind, self.size_bytes) {
            self.contents = Some(fingerprint::take(Path::new(&self.path), size, Key::DEVICE)?);
        }
        Ok(())
    }

    /// What speaks against `now` being the device that this was, contents aside.
    pub fn differences(&self, now: &Identity) -> Vec<Difference> {
        let mut all = Vec::new();
        let mut add = |what: &str, was: Option<String>, is: Option<String>| {
            let shown = |value: Option<String>| value.unwrap_or_else(|| "not known".to_string());
            if was != is {
                all.push(Difference { what: what.to_string(), was: shown(was), is: shown(is) });
            }
        };
        let kind = |identity: &Identity| {
            identity
                .kind
                .map(|kind| if kind == DeviceKind::Block { "a block device" } else { "a file" }.to_string())
        };
        add("kind", kind(self), kind(now));
        add("serial", self.serial.clone(), now.serial.clone());
        add("world-wide identifier", self.wwid.clone(), now.wwid.clone());
        add("model", self.model.clone(), now.model.clone());
        let size = |identity: &Identity| identity.size_bytes.map(|size| size.exact());
        add("size", size(self), size(now));
        if self.partition.is_some() {
            let number = |identity: &Identity| identity.partition.map(|number| number.to_string());
            add("partition", number(self), number(now));
        }
        // Folders of before have neither this nor what is beneath.
        if self.start_sector.is_some() {
            let place = |identity: &Identity| identity.start_sector.map(|at| format!("sector {at}"));
            add("place on the disk", place(self), place(now));
        }
        for (what, was, is) in
            [("backing file", &self.backing_file, &now.backing_file), ("file", &self.file, &now.file)]
        {
            match (was, is) {
                (Some(was), Some(is)) if was.is(is) => {}
                (None, None) => {}
                (Some(was), Some(is)) => add(what, Some(was.told(is)), Some(is.told(was))),
                (was, is) => {
                    let path = |file: &Option<FileIdentity>| file.as_ref().map(|file| file.path.clone());
                    add(what, path(was), path(is));
                }
            }
        }
        match (&self.beneath, &now.beneath) {
            (Some(was), Some(is)) => {
                let beneath = was.differences(is).into_iter();
                all.extend(beneath.map(|d| Difference { what: format!("{BENEATH}{}", d.what), ..d }));
            }
            (Some(was), None) => add("device beneath", Some(was.path.clone()), None),
            (None, _) => {}
        }
        all
    }
}

impl FileIdentity {
    /// Whether `now` is this file, as far as both are known.
    fn is(&self, now: &FileIdentity) -> bool {
        let equal = |was: Option<u64>, is: Option<u64>| was.is_none() || is.is_none() || was == is;
        if self.st_ino.is_none() || now.st_ino.is_none() {
            return self.path == now.path;
        }
        let births = self.born_ns.is_some() && now.born_ns.is_some();
        let key = self.key.is_none() || self.key == now.key;
        key && self.st_ino == now.st_ino
            && equal(self.offset_bytes, now.offset_bytes)
            && if births { self.born_ns == now.born_ns } else { self.st_dev == now.st_dev }
    }

    /// In words, with what tells it from `other`.
    fn told(&self, other: &FileIdentity) -> String {
        let mut text = self.path.clone();
        let part = |name: &str, of: fn(&FileIdentity) -> Option<String>| {
            (of(self) != of(other)).then(|| of(self)).flatten().map(|value| format!("{name} {value}"))
        };
        let parts: Vec<String> = [
            part("inode", |file| file.st_ino.map(|ino| ino.to_string())),
            part("device number", |file| file.st_dev.map(|dev| DevNumber::from_dev(dev).to_string())),
            part("born at", |file| file.born_ns.map(|ns| format!("{ns} ns"))),
            part("from byte", |file| file.offset_bytes.map(|at| at.to_string())),
            part("key", |file| file.key.clone()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !parts.is_empty() {
            text += &format!(" ({})", parts.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Identity {
        Identity {
            path: "/dev/sdb".into(),
            kind: Some(DeviceKind::Block),
            size_bytes: Some(Bytes(1 << 30)),
            model: Some("M".into()),
            serial: Some("S1".into()),
            ..Identity::default()
        }
    }

    fn image(ino: u64, born: Option<u64>) -> FileIdentity {
        let path = "/x.img".to_string();
        FileIdentity { path, st_dev: Some(1), st_ino: Some(ino), born_ns: born, ..FileIdentity::default() }
    }

    #[test]
    fn a_name_is_no_identity() {
        assert_eq!(disk().differences(&Identity { path: "/dev/sdc".into(), ..disk() }), []);
    }

    #[test]
    fn every_fact_tells() {
        let was = Identity { partition: Some(1), ..disk() };
        let others = [
            Identity { serial: Some("S2".into()), ..was.clone() },
            Identity { serial: None, ..was.clone() },
            Identity { wwid: Some("w".into()), ..was.clone() },
            Identity { model: None, ..was.clone() },
            Identity { size_bytes: Some(Bytes(512)), ..was.clone() },
            Identity { partition: Some(2), ..was.clone() },
            Identity { kind: Some(DeviceKind::File), ..was.clone() },
            Identity { backing_file: Some(image(1, None)), ..was.clone() },
        ];
        for now in others {
            assert_eq!(was.differences(&now).len(), 1, "{now:?}");
        }
        let text = was.differences(&Identity { serial: Some("S2".into()), ..was.clone() })[0].to_string();
        assert_eq!(text, "its serial was S1 and is S2");
    }

    #[test]
    fn a_partition_elsewhere_on_the_disk_is_another_one() {
        let was = Identity { partition: Some(1), start_sector: Some(2048), ..disk() };
        let moved = Identity { start_sector: Some(262_144), ..was.clone() };
        let told = was.differences(&moved);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].to_string(), "its place on the disk was sector 2048 and is sector 262144");
        assert_eq!(was.differences(&Identity { start_sector: None, ..was.clone() }).len(), 1);
        let of_before = Identity { start_sector: None, ..was.clone() };
        assert_eq!(of_before.differences(&moved), [], "not known then");
    }

    #[test]
    fn what_a_loop_device_stands_on_tells() {
        let over = |beneath: Identity| Identity { beneath: Some(Box::new(beneath)), ..disk() };
        let lower = |ino| Identity { backing_file: Some(image(ino, Some(5))), ..disk() };
        assert_eq!(over(over(lower(7))).differences(&over(over(lower(7)))), []);
        let told = over(over(lower(7))).differences(&over(over(lower(8))));
        assert_eq!(told.len(), 1);
        let words = "beneath it, beneath it, its backing file was /x.img (inode 7) and is /x.img (inode 8)";
        assert_eq!(told[0].to_string(), words);
        let moved = Identity { path: "/dev/sdz".into(), ..lower(7) };
        assert_eq!(over(lower(7)).differences(&over(moved)), [], "a name is no identity there either");
        assert_eq!(over(lower(7)).differences(&disk())[0].what, "device beneath");
        assert_eq!(disk().differences(&over(lower(7))), [], "not known then");
        // Folders of before have neither field.
        let mut json = serde_json::to_value(over(lower(7))).unwrap();
        json.as_object_mut().unwrap().retain(|name, _| name != "beneath" && name != "start_sector");
        assert_eq!(serde_json::from_value::<Identity>(json).unwrap(), disk());
    }

    #[test]
    fn a_file_is_known_by_inode_and_birth() {
        let was = image(7, Some(5));
        assert!(was.is(&FileIdentity { st_dev: Some(2), path: "/moved".into(), ..was.clone() }));
        assert!(!was.is(&image(8, Some(5))), "another inode");
        assert!(!was.is(&image(7, Some(6))), "an inode that is used again");
        assert!(!was.is(&FileIdentity { offset_bytes: Some(512), ..image(7, Some(6)) }));
        assert!(!image(7, None).is(&FileIdentity { st_dev: Some(2), ..image(7, None) }));
        let keyed = FileIdentity { key: Some("1".into()), ..was.clone() };
        assert!(!keyed.is(&was) && was.is(&keyed), "a key once known must be there");
        assert!(
            was.is(&FileIdentity { path: "/x.img".into(), ..FileIdentity::default() }),
            "only the path known"
        );
    }
}
