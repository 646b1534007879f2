//! One block device as sysfs shows it: its directory, its whole disk, its
//! partitions, what stands on it and what it stands on.

use super::{DevNumber, SysPaths};
use std::path::{Path, PathBuf};

/// The longest text taken from a device about itself, in characters.
const LONGEST: usize = 200;

/// True for what could steer a terminal, upset a table or show other words than
/// there are: control characters, those that change the direction of writing,
/// and those that are not seen.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with everything that [is hostile](is_hostile) replaced by `?`.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hostile(c) { '?' } else { c }).collect()
}

/// `text` as one [`printable`] word of a shell's command line, for what people
/// are to type.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:=,@%".contains(c);
    let text = printable(text);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Trims `text`, cuts it to a sensible length and makes it [`printable`].
/// `None` where nothing is left.
pub(crate) fn clean(text: &str) -> Option<String> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let text: String = printable(text).chars().take(LONGEST).collect();
    (!text.is_empty()).then_some(text)
}

/// The cleaned contents of a file; `None` where it is missing, unreadable or
/// empty.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    clean(&String::from_utf8_lossy(&std::fs::read(path).ok()?))
}

/// A file holding one number; `None` for anything else, negative ones too.
pub(crate) fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The names in a directory, sorted; none where it cannot be listed.
pub(crate) fn names(dir: impl AsRef<Path>) -> Vec<String> {
    listing(dir).unwrap_or_default()
}

/// The names in a directory, sorted.
///
/// # Errors
/// Where it cannot be listed to its end.
pub(crate) fn listing(dir: impl AsRef<Path>) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(dir)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut names: Vec<String> =
        entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// A block device in sysfs.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its number.
    pub number: DevNumber,
    /// Its directory, links resolved.
    pub dir: PathBuf,
    /// The directory of the whole disk: `dir` itself unless it is a partition.
    pub disk: PathBuf,
}

impl Node {
    /// By number; `None` where sysfs knows no such device.
    pub fn find(number: DevNumber, paths: &SysPaths) -> Option<Node> {
        let dir = paths.sys.join(format!("dev/block/{number}")).canonicalize().ok()?;
        Node::at(dir)
    }

    /// By the kernel's name (`sda`, `nvme0n1p2`, `cciss!c0d0`).
    pub fn named(name: &str, paths: &SysPaths) -> Option<Node> {
        let below = |folder: &str| Node::at(paths.sys.join(folder).join(name).canonicalize().ok()?);
        below("class/block").or_else(|| below("block"))
    }

    /// The device whose directory is `dir`.
    pub fn at(dir: PathBuf) -> Option<Node> {
        let number = DevNumber::parse(&text(dir.join("dev"))?)?;
        let disk = if dir.join("partition").exists() { dir.parent()?.to_path_buf() } else { dir.clone() };
        Some(Node { number, dir, disk })
    }

    /// The kernel's name.
    pub fn name(&self) -> String {
        self.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// True for a partition of a disk.
    pub fn is_partition(&self) -> bool {
        self.dir != self.disk
    }

    /// The whole disk: itself unless it is a partition.
    pub fn whole(&self) -> Option<Node> {
        Node::at(self.disk.clone())
    }

    /// Its partitions; none for a partition.
    pub fn partitions(&self) -> Vec<Node> {
        if self.is_partition() {
            return Vec::new();
        }
        let of = |name: String| Node::at(self.dir.join(name)).filter(Node::is_partition);
        names(&self.dir).into_iter().filter_map(of).collect()
    }

    /// What it stands on, as device mapper, MD and bcache tell.
    pub fn slaves(&self) -> Vec<Node> {
        let dir = self.dir.join("slaves");
        names(&dir).iter().filter_map(|name| Node::at(dir.join(name).canonicalize().ok()?)).collect()
    }

    /// The path of its node under `/dev`.
    pub fn dev_path(&self, paths: &SysPaths) -> PathBuf {
        let named = text(self.dir.join("uevent")).is_some().then(|| self.uevent("DEVNAME")).flatten();
        paths.dev.join(named.unwrap_or_else(|| self.name().replace('!', "/")))
    }

    fn uevent(&self, key: &str) -> Option<String> {
        let all = std::fs::read(self.dir.join("uevent")).ok()?;
        let all = String::from_utf8_lossy(&all).into_owned();
        let value = all.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        // A name must stay below /dev.
        (!value.starts_with('/') && !value.split('/').any(|part| part == "..")).then(|| value.to_string())
    }

    /// The name people know a holder by: `dm-3 (vg-home)`.
    pub fn describe(&self) -> String {
        let name = self.name();
        match text(self.dir.join("dm/name")) {
            Some(known) => format!("{name} ({known})"),
            None => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(word("/dev/sdb+ext4"), "/dev/sdb+ext4");
        assert_eq!(word("my out"), "'my out'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word(""), "''");
        assert_eq!(word("a\x1b[2J"), "'a?[2J'");
    }
}
