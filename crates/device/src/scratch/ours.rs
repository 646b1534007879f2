//! Whether a file is a scratch file of ours, by what we wrote into it.
//!
//! All of these must hold: the sidecar names this very inode; the header in the
//! file ([`super::header`]) carries the sidecar's key and sizes; what the file
//! holds is our writing ([`super::contents`]). One whose making was cut off may
//! have the header at either end, and may have none where nothing was written
//! at all. One that a program wrote ([`super::program`]) holds no stamps: it is ours
//! while it is what the program left, by its time and by what is sampled. A file copied, written or moved over ours fails by the header or by
//! its contents, one that was cut and grown again by the header, a new file with
//! a reused inode by both.

use super::contents::{self, Reader, SectorCounts};
use super::header::{self, Header};
use super::program;
use super::sidecar::{self, FoundSidecar, Programmed, Sidecar};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Why a file is not one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// What was found, as a phrase.
    Foreign(String),
    /// It has a sidecar of the former format.
    Old(PathBuf),
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOurs::Foreign(why) => {
                write!(f, "holds data that uflip did not make ({why}); name a new file instead")
            }
            NotOurs::Old(path) => write!(
                f,
                "is a scratch file of an earlier uflip, which left nothing in it to know it by; \
                 remove {0} and {0}.uflip, or name another file",
                path.display()
            ),
        }
    }
}

fn foreign(why: impl Into<String>) -> NotOurs {
    NotOurs::Foreign(why.into())
}

fn unreadable(error: io::Error) -> NotOurs {
    foreign(format!("it cannot be read: {error}"))
}

/// What `path`'s sidecar says, where the file behind `file` is the one it was
/// written for and holds nothing but ours; finished or not.
///
/// # Errors
/// [`NotOurs`], also where it cannot be read.
pub(crate) fn recognise(path: &Path, file: &File) -> Result<Sidecar, NotOurs> {
    let beside = sidecar::path_of(path);
    let found = match sidecar::read(path) {
        FoundSidecar::Nothing if beside.symlink_metadata().is_ok() => {
            let beside = beside.display();
            return Err(foreign(format!(
                "{beside}, which would tell whose it is, is damaged or no file of uflip's"
            )));
        }
        FoundSidecar::Nothing => return Err(foreign(format!("there is no {}", beside.display()))),
        FoundSidecar::Old => return Err(NotOurs::Old(path.to_path_buf())),
        FoundSidecar::Ours(found) => found,
    };
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() || !found.names(&meta) {
        let beside = beside.display();
        return Err(foreign(format!("{beside} belongs to another file, of which this may be a copy")));
    }
    let mut reader = Reader::of(file).map_err(unreadable)?;
    if found.complete {
        finished(&mut reader, &found, &meta)?
    } else {
        begun(&mut reader, &found, meta.len())?
    };
    Ok(found)
}

/// The header in the block at `at`, where it is one of this file.
fn header_at(reader: &mut Reader, at: u64, of: &Sidecar) -> Result<Option<Header>, NotOurs> {
    let block = reader.read(at, header::LENGTH).map_err(unreadable)?;
    Ok(Header::decode(block).filter(|found| found.key == of.key && found.created == of.created))
}

fn finished(reader: &mut Reader, of: &Sidecar, meta: &Metadata) -> Result<(), NotOurs> {
    let length = meta.len();
    if Some(length) != of.size.checked_add(header::LENGTH) {
        let made = of.size.saturating_add(header::LENGTH);
        return Err(foreign(format!("it was made with {made} bytes and has {length} now")));
    }
    match header_at(reader, of.size, of)? {
        Some(found) if found.size == of.size => {}
        _ => {
            return Err(foreign(
                "uflip's mark at its end is gone: it was cut and grown again, or something was put in its place",
            ));
        }
    }
    match of.programmed {
        Programmed::No => holds_ours(reader, of.size, &[], of, SectorCounts::AnyOfRuns),
        Programmed::Open => Err(foreign(
            "a program of uflip was writing it and did not come to its end, so nothing tells what is in it now",
        )),
        Programmed::Closed { digest, modified_ns } => {
            let now = contents::digest(reader, of.size, of.key).map_err(unreadable)?;
            if (now, program::modified_ns(meta)) == (digest, modified_ns) {
                return Ok(());
            }
            Err(foreign("somebody wrote to it after the program of uflip that wrote it"))
        }
    }
}

/// One whose making was cut off.
fn begun(reader: &mut Reader, of: &Sidecar, length: u64) -> Result<(), NotOurs> {
    let last = length.saturating_sub(header::LENGTH) / header::LENGTH * header::LENGTH;
    let mut headers = Vec::new();
    for at in [0, last] {
        if header_at(reader, at, of)?.is_some() {
            headers.push(at);
        }
    }
    if headers.is_empty() && !is_blank(reader, length).map_err(unreadable)? {
        return Err(foreign("uflip began to make it, and uflip's mark is gone from it"));
    }
    holds_ours(reader, length, &headers, of, SectorCounts::Stamped)
}

/// Whether nothing but zeros is in the first `length` bytes. All of it is read:
/// nothing else tells such a file as ours.
fn is_blank(reader: &mut Reader, length: u64) -> io::Result<bool> {
    for part in reader.data(length)? {
        let mut at = part.start / header::LENGTH * header::LENGTH;
        while at < part.end {
            let bytes = reader.read(at, contents::MOST)?;
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += contents::MOST;
        }
    }
    Ok(true)
}

fn holds_ours(
    reader: &mut Reader,
    length: u64,
    headers: &[u64],
    of: &Sidecar,
    counts: SectorCounts,
) -> Result<(), NotOurs> {
    let met = contents::foreign_at(reader, length, headers, of.key, counts).map_err(unreadable)?;
    met.map_or(Ok(()), |at| {
        Err(foreign(format!("uflip made it, and at byte {at} stands what uflip did not write")))
    })
}
