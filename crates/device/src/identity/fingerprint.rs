//! What stands at a few places of a device, to tell one device from another
//! where neither a serial nor a backing file does.
//!
//! Method: one sector of 512 bytes at each of [`PLACES`] places, evenly spread,
//! is blank (all zero), ours (a stamp, [`crate::stamp`]) or something else,
//! of which FNV-1a's 64 bits are kept. Taken before the
//! first write and looked at again by a resume, together with places that kept
//! runs wrote: these must carry our stamp; what was something else must be the
//! same or ours; what was ours must be ours; a blank place tells nothing while it
//! is blank or ours, and speaks for another device when it is something else.
//! It is another device when at least half of the places that tell anything are
//! wrong: a power cut may lose the last writes of the same device, and does not
//! lose half of them.
//!
//! Limits: runs that write anything but random data leave no stamps, and runs
//! that trim leave blanks; then only something else where nothing of the kind
//! stood tells, or nothing. Two blank devices are one and the same before
//! anything was written, and so are copies of one image. Anybody's device that
//! this tool wrote all over passes.

use crate::fnv::fnv1a;
use crate::stamp::{Key, SECTOR};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::str::FromStr;

/// So many places are looked at.
pub const PLACES: u64 = 64;
/// What is read at a place: reads past the page cache need whole sectors.
const UNIT: usize = 4096;

/// What one sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Zeros.
    Blank,
    /// Our stamp.
    Ours,
    /// Anything else, by its hash.
    Other(u64),
}

impl Content {
    /// Of this sector, whose stamps have `key`.
    pub fn of(sector: &[u8], key: Key) -> Content {
        if sector.iter().all(|byte| *byte == 0) {
            Content::Blank
        } else if key.is_on(sector) {
            Content::Ours
        } else {
            Content::Other(fnv1a(sector))
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Blank => f.write_str("blank"),
            Content::Ours => f.write_str("ours"),
            Content::Other(hash) => write!(f, "{hash:016x}"),
        }
    }
}

impl FromStr for Content {
    type Err = String;
    fn from_str(text: &str) -> Result<Content, String> {
        match text {
            "blank" => Ok(Content::Blank),
            "ours" => Ok(Content::Ours),
            hash => u64::from_str_radix(hash, 16)
                .map(Content::Other)
                .map_err(|_| format!("'{hash}' is neither blank, ours nor a hash")),
        }
    }
}

/// What stands at the places of a device, in their order; as text the words of
/// [`Content`] with blanks between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub Vec<Content>);

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.0.iter().map(Content::to_string).collect::<Vec<_>>().join(" ")
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;
    fn try_from(text: String) -> Result<Fingerprint, String> {
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map(Fingerprint)
    }
}

/// The places of a device of this size, in bytes from its start: the first
/// sector of each of [`PLACES`] equal parts.
pub fn places(size: Bytes) -> Vec<u64> {
    let unit = UNIT as u64;
    let units = size.0 / unit;
    (0..PLACES.min(units))
        .map(|i| (u128::from(i) * u128::from(units) / u128::from(PLACES.min(units))) as u64 * unit)
        .collect()
}

/// What stands at each of `offsets` (multiples of 512) of the device or file at
/// `path`, past the page cache where that is possible; `None` beyond its end.
///
/// # Errors
/// Where it cannot be opened or read.
pub fn look(path: &Path, offsets: &[u64], key: Key) -> io::Result<Vec<Option<Content>>> {
    let open = |flags| {
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    };
    let mut file = open(libc::O_DIRECT).or_else(|_| open(0))?;
    let mut memory = vec![0u8; 2 * UNIT];
    let skip = memory.as_ptr().align_offset(UNIT);
    let buffer = &mut memory[skip..skip + UNIT];
    let mut found = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let start = offset / UNIT as u64 * UNIT as u64;
        let mut read = read_up_to(&file, buffer, start);
        if read.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL)) {
            file = open(0)?;
            read = read_up_to(&file, buffer, start);
        }
        let (read, at) = (read?, (offset - start) as usize);
        found.push((at + SECTOR <= read).then(|| Content::of(&buffer[at..at + SECTOR], key)));
    }
    Ok(found)
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The fingerprint of the device at `path`.
///
/// # Errors
/// As of [`look`].
pub fn take(path: &Path, size: Bytes, key: Key) -> io::Result<Fingerprint> {
    let found = look(path, &places(size), key)?;
    Ok(Fingerprint(found.into_iter().map(|content| content.unwrap_or(Content::Blank)).collect()))
}

/// What the runs of before may have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// All of their writes carry stamps.
    pub stamps: bool,
    /// They trimmed.
    pub blanks: bool,
}

/// What contents tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityVerdict {
    /// Places that tell anything.
    pub telling: usize,
    /// Those of them that are not as this device would have them.
    pub wrong: usize,
}

impl IdentityVerdict {
    /// True where it is another device.
    pub fn is_other(self) -> bool {
        self.wrong > 0 && 2 * self.wrong >= self.telling
    }
}

/// Compares what stood at the places with what stands there `now`, and weighs
/// what stands at places known to be `written` since.
pub fn judge(
    then: &[Content],
    now: &[Option<Content>],
    written: &[Option<Content>],
    left: Left,
) -> IdentityVerdict {
    let mut verdict = IdentityVerdict { telling: 0, wrong: 0 };
    let mut count = |right: Option<bool>| {
        verdict.telling += usize::from(right.is_some());
        verdict.wrong += usize::from(right == Some(false));
    };
    for (then, now) in then.iter().zip(now) {
        count(match (then, now) {
            (_, None) => Some(false),
            (then, Some(now)) if then == now => (*then != Content::Blank).then_some(true),
            // Unstamped writes may have left anything, trims blanks.
            (_, Some(Content::Other(_))) => left.stamps.then_some(false),
            (_, Some(Content::Blank)) => (!left.blanks && left.stamps).then_some(false),
            (_, Some(Content::Ours)) => None,
        });
    }
    if left.stamps {
        for now in written {
            count(match now {
                Some(Content::Ours) => Some(true),
                Some(Content::Blank) if left.blanks => None,
                _ => Some(false),
            });
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::Content::{Blank, Other, Ours};
    use super::*;

    const STAMPS: Left = Left { stamps: true, blanks: false };

    #[test]
    fn the_same_device_is_known_whatever_we_wrote() {
        let then = [Blank, Ours, Other(7), Blank];
        let now = [Some(Ours), Some(Ours), Some(Ours), Some(Blank)];
        assert!(!judge(&then, &now, &[Some(Ours); 8], STAMPS).is_other());
        let trimmed = [Some(Blank); 4];
        assert!(!judge(&then, &trimmed, &[Some(Blank); 8], Left { blanks: true, ..STAMPS }).is_other());
    }

    #[test]
    fn a_blank_or_a_foreign_device_is_another_one() {
        let then = [Blank; 4];
        // A fresh image where runs wrote.
        assert!(judge(&then, &[Some(Blank); 4], &[Some(Blank); 8], STAMPS).is_other());
        // Somebody's data where there was nothing.
        assert!(judge(&then, &[Some(Other(1)); 4], &[], STAMPS).is_other());
        assert!(judge(&[Other(1), Ours], &[Some(Other(2)), Some(Ours)], &[], STAMPS).is_other());
        // Smaller than it was.
        assert!(judge(&then, &[None; 4], &[], STAMPS).is_other());
    }

    #[test]
    fn a_few_lost_writes_make_no_other_device() {
        let written = [Some(Ours), Some(Ours), Some(Ours), Some(Blank)];
        assert!(!judge(&[Blank; 4], &[Some(Ours); 4], &written, STAMPS).is_other());
    }

    #[test]
    fn unstamped_writes_tell_nothing() {
        let left = Left { stamps: false, blanks: false };
        assert!(!judge(&[Blank; 4], &[Some(Other(3)); 4], &[Some(Other(3)); 4], left).is_other());
    }

    #[test]
    fn places_are_spread_and_inside() {
        for size in [0u64, 512, 4096, 5000, 64 * 4096, 16 << 20, (1 << 44) - 512] {
            let all = places(Bytes(size));
            assert!(all.windows(2).all(|two| two[0] < two[1]), "{size}");
            assert!(all.iter().all(|at| at % 4096 == 0 && at + 4096 <= size), "{size}");
            assert_eq!(all.len() as u64, (size / 4096).min(PLACES), "{size}");
        }
    }

    #[test]
    fn what_is_taken_is_read_and_kept_as_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = vec![0; 64 * 4096];
        Key::DEVICE.stamp(&mut bytes[4096..8192], 9);
        bytes[8192..9000].fill(b'x');
        std::fs::write(file.path(), &bytes).unwrap();
        let found = take(file.path(), Bytes(64 * 4096), Key::DEVICE).unwrap();
        assert!(matches!(found.0[..4], [Blank, Ours, Other(_), Blank]), "{found:?}");
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), found);
        assert!(serde_json::from_str::<Fingerprint>("\"blank green\"").is_err());
    }
}
