//! The sidecar that says that a file is a scratch file of ours: `PATH.uflip`.
//!
//! One JSON object: `format` (`uflip-scratch-2`), `key` (of the stamps, 16
//! hexadecimal digits after `0x`), `st_dev` and `st_ino` of the file, `born_ns`
//! (its birth in ns since 1970, 0 where the file system keeps none), `size` of
//! what is measured in bytes, `created` in seconds since 1970, `complete`. Where a
//! program wrote it, `programmed`: `open` while it does, afterwards a digest of
//! what it left, and `modified_ns`, when it was last written in ns since 1970. A
//! copy of both files has another inode, and a file that took over the inode of
//! a removed one has another birth, and never our header. Written here, as a few
//! flat fields need no JSON crate below every other one.
//!
//! Format 1 had no key, and nothing stood in the file: such files are not known
//! as ours any more.

use crate::identity;
use crate::rng::splitmix64;
use crate::stamp::Key;
use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const FORMAT: &str = "uflip-scratch-2";
const OLD_FORMAT: &str = "uflip-scratch-1";

/// Whether a program wrote what is in the file, without stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programmed {
    /// All of it is ours as runs write it.
    No,
    /// One may be writing, or was cut off: nothing tells what is in it.
    Open,
    /// It was left so.
    Closed {
        /// Of what was in it ([`super::contents::digest`]).
        digest: u64,
        /// When it was last written.
        modified_ns: u64,
    },
}

/// What the sidecar says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sidecar {
    /// What everything in the file is stamped with.
    pub key: Key,
    pub st_dev: u64,
    pub st_ino: u64,
    /// 0 where not known.
    pub born_ns: u64,
    /// Of what is measured, in bytes.
    pub size: u64,
    /// In seconds since 1970.
    pub created: u64,
    /// False while the file is being written.
    pub complete: bool,
    pub programmed: Programmed,
}

/// What is at the sidecar's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundSidecar {
    /// Nothing that can be read as one of ours.
    Nothing,
    /// One of the former format.
    Old,
    /// One of this format.
    Ours(Sidecar),
}

fn born_ns(meta: &Metadata) -> u64 {
    identity::born_ns(meta).unwrap_or(0)
}

/// Eight random bytes of the system.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

impl Sidecar {
    /// For a file just made, to be filled to `size` bytes.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub(crate) fn of(meta: &Metadata, size: u64) -> io::Result<Sidecar> {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let mut key = random()?;
        // Never the key of devices, whatever the system gives.
        while Key(key) == Key::DEVICE {
            key = splitmix64(&mut key);
        }
        Ok(Sidecar {
            key: Key(key),
            st_dev: meta.dev(),
            st_ino: meta.ino(),
            born_ns: born_ns(meta),
            size,
            created,
            complete: false,
            programmed: Programmed::No,
        })
    }

    /// True where it was written for exactly this file.
    pub(crate) fn names(&self, meta: &Metadata) -> bool {
        (self.st_dev, self.st_ino, self.born_ns) == (meta.dev(), meta.ino(), born_ns(meta))
    }

    fn to_json(self) -> String {
        let programmed = match self.programmed {
            Programmed::No => String::new(),
            Programmed::Open => ",\"programmed\":\"open\"".to_string(),
            Programmed::Closed { digest, modified_ns } => {
                format!(",\"programmed\":\"{digest:#018x}\",\"modified_ns\":{modified_ns}")
            }
        };
        format!(
            "{{\"format\":\"{FORMAT}\",\"key\":\"{:#018x}\",\"st_dev\":{},\"st_ino\":{},\"born_ns\":{},\"size\":{},\"created\":{},\"complete\":{}{programmed}}}\n",
            self.key.0, self.st_dev, self.st_ino, self.born_ns, self.size, self.created, self.complete
        )
    }

    /// Reads what [`Sidecar::to_json`] wrote, blanks and order aside.
    fn from_json(text: &str) -> Option<Sidecar> {
        let number = |key: &str| value(text, key)?.parse::<u64>().ok();
        (value(text, "format")? == format!("\"{FORMAT}\"")).then_some(())?;
        let hexadecimal = |written: &str| {
            let digits = written.strip_prefix("\"0x")?.strip_suffix('"').filter(|k| k.len() == 16)?;
            u64::from_str_radix(digits, 16).ok()
        };
        let programmed = match value(text, "programmed") {
            None => Programmed::No,
            Some("\"open\"") => Programmed::Open,
            Some(digest) => {
                Programmed::Closed { digest: hexadecimal(digest)?, modified_ns: number("modified_ns")? }
            }
        };
        Some(Sidecar {
            key: Key(hexadecimal(value(text, "key")?)?),
            st_dev: number("st_dev")?,
            st_ino: number("st_ino")?,
            born_ns: number("born_ns")?,
            size: number("size")?,
            created: number("created")?,
            complete: value(text, "complete")?.parse().ok()?,
            programmed,
        })
    }
}

/// The value of field `key` in one flat JSON object, as it is written.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    inner.split(',').find_map(|field| {
        let (name, value) = field.split_once(':')?;
        (name.trim().strip_prefix('"')?.strip_suffix('"')? == key).then(|| value.trim())
    })
}

/// Where the sidecar of `path` is.
pub(crate) fn path_of(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".uflip");
    PathBuf::from(name)
}

/// What is at the place of `path`'s sidecar.
pub(crate) fn read(path: &Path) -> FoundSidecar {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path_of(path)) else {
        return FoundSidecar::Nothing;
    };
    let mut text = String::new();
    match file.take(4096).read_to_string(&mut text) {
        Ok(_) => understand(&text),
        Err(_) => FoundSidecar::Nothing,
    }
}

fn understand(text: &str) -> FoundSidecar {
    match Sidecar::from_json(text) {
        Some(sidecar) => FoundSidecar::Ours(sidecar),
        None if value(text, "format") == Some(&format!("\"{OLD_FORMAT}\"")) => FoundSidecar::Old,
        None => FoundSidecar::Nothing,
    }
}

/// Makes the names in the folder of `path` durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes it durably: beside, under a name that nobody else has, then in place.
pub(crate) fn write(path: &Path, sidecar: &Sidecar) -> io::Result<()> {
    let target = path_of(path);
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{:016x}", random()?));
    let beside = PathBuf::from(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file
        .write_all(sidecar.to_json().as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&beside, &target))
        .and_then(|()| sync_folder(&target));
    if written.is_err() {
        // Nobody is left to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Sidecar = Sidecar {
        key: Key(0xab),
        st_dev: 1,
        st_ino: u64::MAX,
        born_ns: 3,
        size: 4,
        created: 5,
        complete: true,
        programmed: Programmed::No,
    };
    const LEFT: Programmed = Programmed::Closed { digest: 0xcd, modified_ns: 6 };

    #[test]
    fn what_is_written_is_read() {
        assert!(ONE.to_json().contains("\"key\":\"0x00000000000000ab\""), "{}", ONE.to_json());
        assert_eq!(understand(&ONE.to_json()), FoundSidecar::Ours(ONE));
        let spaced = ONE.to_json().replace(':', " : ").replace(',', ",\n  ");
        assert_eq!(understand(&spaced), FoundSidecar::Ours(ONE));
        assert!(!ONE.to_json().contains("programmed"), "as before there were programs");
        for programmed in [Programmed::Open, LEFT] {
            let one = Sidecar { programmed, ..ONE };
            assert_eq!(understand(&one.to_json()), FoundSidecar::Ours(one));
        }
        let left = Sidecar { programmed: LEFT, ..ONE }.to_json();
        for bad in [left.replace("0x00000000000000cd", "closed"), left.replace("modified_ns", "modified")] {
            assert_eq!(understand(&bad), FoundSidecar::Nothing, "{bad}");
        }
    }

    #[test]
    fn anything_else_is_not_ours() {
        let json = ONE.to_json();
        for bad in [
            "",
            "{}",
            "null",
            &json[..json.len() - 4],
            &json.replace("scratch-2", "scratch-3"),
            &json.replace("18446744073709551615", "-1"),
            &json.replace("0x00000000000000ab", "171"),
            &json.replace("0x00000000000000ab", "0xab"),
        ] {
            assert_eq!(understand(bad), FoundSidecar::Nothing, "{bad}");
        }
        let old = "{\"format\":\"uflip-scratch-1\",\"st_dev\":1,\"st_ino\":2,\"born_ns\":3,\"size\":4,\"created\":5,\"complete\":true}\n";
        assert_eq!(understand(old), FoundSidecar::Old);
    }

    #[test]
    fn keys_differ() {
        let meta = std::fs::metadata("/").unwrap();
        let keys: Vec<Key> = (0..3).map(|_| Sidecar::of(&meta, 1).unwrap().key).collect();
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2], "{keys:?}");
    }
}
