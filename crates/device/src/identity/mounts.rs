//! What is mounted where, and what is swapped to.
//!
//! Source: `proc(5)`, `/proc/pid/mountinfo` and `/proc/swaps`; blanks in paths
//! are written there as octal escapes (`\040`).

use super::{DevNumber, SysPaths};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its `st_dev`; major 0 for file systems without a device of their own,
    /// which btrfs is too.
    pub number: DevNumber,
    /// Where it is mounted.
    pub point: PathBuf,
    /// `ext4`, `xfs`, `tmpfs`, …
    pub fs_type: String,
    /// What is mounted: a device's path, or any word.
    pub source: PathBuf,
}

impl Mount {
    /// The block device it lives on: by number, else by its source's path.
    /// `None` where it lives on none, or on one that cannot be told.
    pub fn device(&self) -> Option<DevNumber> {
        self.devices().first().copied()
    }

    /// All that can be told: a file system without a number of its own names
    /// its device, or several with colons between them (bcachefs).
    pub fn devices(&self) -> Vec<DevNumber> {
        if self.number.major != 0 {
            return vec![self.number];
        }
        let named = |path: &Path| path.is_absolute().then(|| DevNumber::of_block_device(path)).flatten();
        match named(&self.source) {
            Some(number) => vec![number],
            None => self.source.to_str().unwrap_or("").split(':').map(Path::new).filter_map(named).collect(),
        }
    }
}

/// Undoes octal escapes.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'\\')
            .then(|| text.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok()))
            .flatten();
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    PathBuf::from(OsString::from_vec(out))
}

/// Reads the text of a mountinfo file; lines that are not as documented are
/// left out.
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    let line = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        let number = DevNumber::parse(front.next()?)?;
        let point = unescape(front.nth(1)?);
        let mut back = back.split(' ');
        Some(Mount { number, point, fs_type: back.next()?.to_string(), source: unescape(back.next()?) })
    };
    text.lines().filter_map(line).collect()
}

/// Reads the text of a swaps file: the path of each active area.
pub fn parse_swaps(text: &str) -> Vec<PathBuf> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(unescape).collect()
}

/// The mount that a path with all links resolved lies in: the longest mount
/// point that is a prefix of it, the last mounted where there are several.
pub fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

impl SysPaths {
    /// What is mounted now.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn mounts(&self) -> std::io::Result<Vec<Mount>> {
        Ok(parse_mountinfo(&String::from_utf8_lossy(&std::fs::read(&self.mountinfo)?)))
    }

    /// What is swapped to now; nothing where the kernel knows no swap.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub fn swap_areas(&self) -> std::io::Result<Vec<PathBuf>> {
        match std::fs::read(&self.swaps) {
            Ok(bytes) => Ok(parse_swaps(&String::from_utf8_lossy(&bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        30 27 8:17 / /mnt/my\\040disk rw shared:1 master:2 - xfs /dev/sdb1 rw\n\
        31 27 0:44 /@home /home rw - btrfs /dev/nothing rw\n\
        short line\n";

    #[test]
    fn mounts_are_read_with_optional_fields_and_escapes() {
        let mounts = parse_mountinfo(MOUNTS);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].number, DevNumber { major: 8, minor: 17 });
        assert_eq!(mounts[1].point, Path::new("/mnt/my disk"));
        assert_eq!((mounts[1].fs_type.as_str(), mounts[1].source.as_path()), ("xfs", Path::new("/dev/sdb1")));
        assert_eq!(mounts[2].device(), None, "an anonymous number is no device");
    }

    #[test]
    fn a_path_lies_in_its_longest_mount() {
        let mounts = parse_mountinfo(MOUNTS);
        let of = |path: &str| mount_of(Path::new(path), &mounts).map(|m| m.fs_type.clone());
        assert_eq!(of("/mnt/my disk/a"), Some("xfs".into()));
        assert_eq!(of("/mnt/my diskette"), Some("ext4".into()));
        assert_eq!(of("/home/x"), Some("btrfs".into()));
    }

    #[test]
    fn swaps_skip_their_heading() {
        let text = "Filename\tType\tSize\n/dev/sda2   partition 1 0 -2\n/my\\040swap file 1 0 -3\n";
        assert_eq!(parse_swaps(text), [PathBuf::from("/dev/sda2"), PathBuf::from("/my swap")]);
    }

    #[test]
    fn a_stray_backslash_stays() {
        assert_eq!(unescape("a\\9zz\\"), PathBuf::from("a\\9zz\\"));
    }
}
