//! Scratch files that a program writes, and how they stay known as ours.
//!
//! How: what a program writes carries no stamps. So the sidecar says, durably and
//! before the first write, that a program has the file ([`Programmed::Open`]), and
//! at the end what it left: a digest of the sampled places and when the file was
//! last written. Any write by anybody else changes that time, and any to a sampled
//! place the digest; such a file is refused. So is one whose program was cut off.

use super::contents::{self, Reader};
use super::sidecar::{self, FoundSidecar, Programmed, Sidecar};
use crate::stamp::Key;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// When a file was last written, in ns since 1970.
pub(crate) fn modified_ns(meta: &Metadata) -> u64 {
    (meta.mtime() as u64).wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec() as u64)
}

/// The sidecar of the file behind `file`, which is the one of `key`.
fn sidecar_of(path: &Path, file: &File, key: Key) -> io::Result<Sidecar> {
    let meta = file.metadata()?;
    let there = path.symlink_metadata()?;
    match sidecar::read(path) {
        FoundSidecar::Ours(found)
            if found.key == key
                && found.names(&meta)
                && (there.dev(), there.ino()) == (meta.dev(), meta.ino()) =>
        {
            Ok(found)
        }
        _ => Err(io::Error::other("the file or its sidecar is another one by now")),
    }
}

/// Says that a program writes the scratch file of `key` at `path`, open as `file`.
pub(crate) fn begin(path: &Path, file: &File, key: Key) -> io::Result<()> {
    let found = sidecar_of(path, file, key)?;
    sidecar::write(path, &Sidecar { programmed: Programmed::Open, ..found })
}

/// Says what the program left; nothing may be under way any more.
pub(crate) fn end(path: &Path, file: &File, key: Key) -> io::Result<()> {
    let found = sidecar_of(path, file, key)?;
    file.sync_all()?;
    let modified_ns = modified_ns(&file.metadata()?);
    let digest = contents::digest(&mut Reader::of(file)?, found.size, key)?;
    if self::modified_ns(&file.metadata()?) != modified_ns {
        return Err(io::Error::other("somebody writes to it"));
    }
    sidecar::write(path, &Sidecar { programmed: Programmed::Closed { digest, modified_ns }, ..found })
}
