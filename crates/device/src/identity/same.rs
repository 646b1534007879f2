//! Which device a target is, so that another day or another session can tell
//! whether it is the same one.
//!
//! Method: a device is known by its serial and world-wide identifier, a loop
//! device by its backing file, a file by its inode, birth and the key of its
//! sidecar; all by kind, size, model and partition. A path is no identity: names
//! such as `/dev/sdb` move between boots. A file is the same where inode and
//! birth are, whatever number its disk has today; where the file system keeps
//! no births, where device number and inode are. What contents tell is in
//! [`super::fingerprint`].
//!
//! Source: `loop(4)` (`LOOP_GET_STATUS64`), `statx(2)`.

use super::fingerprint::{self, Fingerprint};
use super::sysfs::{self, Node};
use super::{DevNumber, DeviceFacts, Kind, SysPaths, device_facts, ioctl};
use crate::scratch;
use crate::stamp::Key;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

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
    pub kind: Option<Kind>,
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
    /// The file behind a loop device.
    pub backing_file: Option<FileIdentity>,
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
        write!(f, "its {} was {} and is {}", self.what, self.was, self.is)
    }
}

/// The identity of whatever is at `path`, links followed, without its contents.
///
/// # Errors
/// Where nothing is there or it cannot be looked at.
pub fn identity(path: &Path, paths: &SysPaths) -> std::io::Result<Identity> {
    let facts = device_facts(path, paths)?;
    let mut found = Identity::of_facts(&facts);
    let resolved = Path::new(&facts.path);
    match facts.number {
        Some(number) => {
            found.partition = Node::find(number, paths)
                .filter(Node::is_partition)
                .and_then(|node| sysfs::number(node.dir.join("partition")));
            if let Some(path) = &facts.backing_file {
                found.backing_file = Some(backing(resolved, number, path, paths));
            }
        }
        None => {
            let meta = std::fs::metadata(resolved)?;
            let key = scratch::identity(resolved);
            found.file = Some(FileIdentity { key, ..of_file(&facts.path, &meta) });
        }
    }
    Ok(found)
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
            backing_file: facts.backing_file.as_ref().map(file),
            file: (facts.kind == Kind::File).then(|| file(&facts.path)),
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
        if let (Some(Kind::Block), Some(size)) = (self.kind, self.size_bytes) {
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
                .map(|kind| if kind == Kind::Block { "a block device" } else { "a file" }.to_string())
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
            kind: Some(Kind::Block),
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
            Identity { kind: Some(Kind::File), ..was.clone() },
            Identity { backing_file: Some(image(1, None)), ..was.clone() },
        ];
        for now in others {
            assert_eq!(was.differences(&now).len(), 1, "{now:?}");
        }
        let text = was.differences(&Identity { serial: Some("S2".into()), ..was.clone() })[0].to_string();
        assert_eq!(text, "its serial was S1 and is S2");
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
