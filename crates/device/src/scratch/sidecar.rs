//! The sidecar that marks a scratch file as ours: `PATH.uflip`.
//!
//! One JSON object: `format` (`uflip-scratch-1`), `st_dev` and `st_ino` of the
//! file, `born_ns` (its birth in ns since 1970, 0 where the file system keeps
//! none), `size` in bytes, `created` in seconds since 1970, `complete`. A copy
//! of both files has another inode, and a file that took over the inode of a
//! removed one has another birth: neither is ours. Written here, as six flat
//! fields need no JSON crate below every other one.

use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const FORMAT: &str = "uflip-scratch-1";

/// What the sidecar says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sidecar {
    pub st_dev: u64,
    pub st_ino: u64,
    /// 0 where not known.
    pub born_ns: u64,
    /// In bytes.
    pub size: u64,
    /// In seconds since 1970.
    pub created: u64,
    /// False while the file is being written.
    pub complete: bool,
}

fn born_ns(meta: &Metadata) -> u64 {
    let since = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    since.and_then(|d| u64::try_from(d.as_nanos()).ok()).unwrap_or(0)
}

impl Sidecar {
    /// For a file just made, to be filled to `size` bytes.
    pub(crate) fn of(meta: &Metadata, size: u64) -> Sidecar {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Sidecar {
            st_dev: meta.dev(),
            st_ino: meta.ino(),
            born_ns: born_ns(meta),
            size,
            created,
            complete: false,
        }
    }

    /// True where it was written for exactly this file.
    pub(crate) fn names(&self, meta: &Metadata) -> bool {
        (self.st_dev, self.st_ino, self.born_ns) == (meta.dev(), meta.ino(), born_ns(meta))
    }

    fn to_json(self) -> String {
        format!(
            "{{\"format\":\"{FORMAT}\",\"st_dev\":{},\"st_ino\":{},\"born_ns\":{},\"size\":{},\"created\":{},\"complete\":{}}}\n",
            self.st_dev, self.st_ino, self.born_ns, self.size, self.created, self.complete
        )
    }

    /// Reads what [`Sidecar::to_json`] wrote, blanks and order aside.
    fn from_json(text: &str) -> Option<Sidecar> {
        let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
        let value = |key: &str| {
            inner.split(',').find_map(|field| {
                let (name, value) = field.split_once(':')?;
                (name.trim() == format!("\"{key}\"")).then(|| value.trim())
            })
        };
        let number = |key: &str| value(key)?.parse::<u64>().ok();
        (value("format")? == format!("\"{FORMAT}\"")).then_some(())?;
        Some(Sidecar {
            st_dev: number("st_dev")?,
            st_ino: number("st_ino")?,
            born_ns: number("born_ns")?,
            size: number("size")?,
            created: number("created")?,
            complete: value("complete")?.parse().ok()?,
        })
    }
}

/// Where the sidecar of `path` is.
pub(crate) fn path_of(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".uflip");
    PathBuf::from(name)
}

/// The sidecar of `path`; `None` where there is none or it is not one of ours.
pub(crate) fn read(path: &Path) -> Option<Sidecar> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path_of(path)).ok()?;
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    Sidecar::from_json(&text)
}

/// The text of the field `key`, whatever its form; `None` where there is none.
pub(crate) fn key_text(path: &Path) -> Option<String> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path_of(path)).ok()?;
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    let (_, rest) = text.contains("\"uflip-scratch-").then(|| text.split_once("\"key\""))??;
    let value = rest.trim_start().strip_prefix(':')?.split([',', '}']).next()?;
    Some(value.trim().trim_matches('"').to_string()).filter(|key| !key.is_empty())
}

/// Writes it durably: beside, then in place.
pub(crate) fn write(path: &Path, sidecar: &Sidecar) -> io::Result<()> {
    let target = path_of(path);
    let mut beside = target.clone().into_os_string();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // One of a run that was killed may be left; no link is followed.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(sidecar.to_json().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, &target)
}

/// Whether the file at `path` is a complete scratch file of ours; if not, why.
pub(crate) fn is_ours(path: &Path, meta: &Metadata) -> Result<(), String> {
    let Some(found) = read(path) else {
        return Err(format!("there is no {}", path_of(path).display()));
    };
    if !found.names(meta) {
        return Err(format!(
            "{} belongs to another file, of which this may be a copy",
            path_of(path).display()
        ));
    }
    if !found.complete {
        return Err("it was made by uflip and never finished".to_string());
    }
    if found.size != meta.size() {
        return Err(format!("it was made with {} bytes and has {} now", found.size, meta.size()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Sidecar =
        Sidecar { st_dev: 1, st_ino: u64::MAX, born_ns: 3, size: 4, created: 5, complete: true };

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Sidecar::from_json(&ONE.to_json()), Some(ONE));
        let spaced = ONE.to_json().replace(':', " : ").replace(',', ",\n  ");
        assert_eq!(Sidecar::from_json(&spaced), Some(ONE));
    }

    #[test]
    fn anything_else_is_not_ours() {
        let json = ONE.to_json();
        for bad in [
            "",
            "{}",
            "null",
            &json[..json.len() - 4],
            &json.replace("scratch-1", "scratch-2"),
            &json.replace("18446744073709551615", "-1"),
        ] {
            assert_eq!(Sidecar::from_json(bad), None, "{bad}");
        }
    }
}
