//! Whether a file lies on its disk as it did: watched around every run.
//!
//! Method: the extents of the file (FIEMAP, without forcing anything to the
//! disk) are compared before and after a run; extents that follow one another
//! count as one. Where a file system writes elsewhere by design (btrfs, f2fs,
//! ZFS, bcachefs, nilfs2) only what is there is compared, not where. Nothing is
//! known on file systems that tell no extents (tmpfs, NFS). Not in the timed
//! loop.
//!
//! Limits: what changes and changes back during one run is not seen.

use crate::scratch::{Extent, extents, extents_unsynced, missing};
use crate::units::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// File systems that write what is written again to another place: the magic
/// numbers of `linux/magic.h` and of ZFS, bcachefs and nilfs2 themselves.
const MOVING: [u32; 5] = [0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e, 0x3434];

/// How a file lies at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    size: u64,
    parts: Vec<Extent>,
}

/// The layout of one file, as it was last seen.
pub(crate) struct LayoutWatch {
    file: File,
    moving: bool,
    /// What is measured, in bytes.
    capacity: Bytes,
    known: Layout,
    /// It had no holes when it was opened.
    was_whole: bool,
}

impl LayoutWatch {
    /// Watches the regular file behind `file`; `None` where its file system
    /// does not tell.
    pub(crate) fn new(file: &File, capacity: Bytes) -> Option<LayoutWatch> {
        let file = file.try_clone().ok()?;
        let moving = is_moving(&file);
        let known = layout(&file, extents(&file).ok()??, moving).ok()?;
        let was_whole = missing(&known.parts, capacity).is_empty();
        Some(LayoutWatch { file, moving, capacity, known, was_whole })
    }

    fn look(&self) -> Option<Layout> {
        layout(&self.file, extents_unsynced(&self.file).ok()??, self.moving).ok()
    }

    /// Sees how the file lies before a run; true where it has holes that it had
    /// not when it was opened.
    pub(crate) fn before(&mut self) -> bool {
        self.known = self.look().unwrap_or_else(|| self.known.clone());
        self.has_new_holes(&self.known)
    }

    /// True where the file lies otherwise than [`LayoutWatch::before`] saw it or has
    /// holes now; holes that the run was to make do not count.
    pub(crate) fn changed(&self, trimmed: bool) -> bool {
        let Some(now) = self.look() else { return false };
        now.size != self.known.size || (!trimmed && (now != self.known || self.has_new_holes(&now)))
    }

    fn has_new_holes(&self, layout: &Layout) -> bool {
        self.was_whole && !missing(&layout.parts, self.capacity).is_empty()
    }
}

fn layout(file: &File, found: Vec<Extent>, moving: bool) -> io::Result<Layout> {
    Ok(Layout { size: file.metadata()?.len(), parts: joined(found, moving) })
}

/// Extents that follow one another in the file and on the disk become one;
/// without the places on the disk where those move anyway.
fn joined(found: Vec<Extent>, moving: bool) -> Vec<Extent> {
    let mut parts: Vec<Extent> = Vec::new();
    for mut next in found {
        if moving {
            (next.physical, next.shared, next.encoded) = (None, false, false);
        }
        match parts.last_mut().filter(|last| continues(last, &next)) {
            Some(last) => last.length.0 += next.length.0,
            None => parts.push(next),
        }
    }
    parts
}

fn continues(last: &Extent, next: &Extent) -> bool {
    let end = |start: Bytes| start.0.checked_add(last.length.0);
    end(last.logical) == Some(next.logical.0)
        && last.physical.and_then(end) == next.physical.map(|at| at.0)
        && (last.unwritten, last.shared, last.encoded) == (next.unwritten, next.shared, next.encoded)
}

fn is_moving(file: &File) -> bool {
    let mut stat = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open and `stat` a zeroed statfs, for which all
    // zeros is a valid value; both live through the call.
    let stat = unsafe {
        if libc::fstatfs(file.as_raw_fd(), stat.as_mut_ptr()) != 0 {
            return false;
        }
        stat.assume_init()
    };
    #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
    MOVING.contains(&(stat.f_type as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const M: u64 = 1 << 20;

    fn whole(folder: &std::path::Path) -> File {
        let file = File::options().read(true).write(true).create_new(true).open(folder.join("f")).unwrap();
        file.write_all_at(&vec![7; 4 * M as usize], 0).unwrap();
        file
    }

    fn punch(file: &File, at: u64, length: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, length) = (at as libc::off_t, length as libc::off_t);
        // SAFETY: the descriptor is open; no memory is passed.
        assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), mode, at, length) }, 0);
    }

    #[test]
    fn overwriting_changes_nothing_and_holes_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = whole(folder.path());
        let Some(mut watch) = LayoutWatch::new(&file, Bytes(4 * M)) else {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: the temporary folder's file system tells no extents\n",
            );
            return;
        };
        assert!(!watch.before());
        file.write_all_at(&vec![9; M as usize], M).unwrap();
        file.sync_all().unwrap();
        assert!(!watch.changed(false), "written over in place");
        punch(&file, M, 4096);
        assert!(watch.changed(false));
        assert!(!watch.changed(true), "what was asked for");
        assert!(watch.before(), "and then it is known");
        assert!(watch.changed(false), "but what follows is measured on holes");
        file.write_all_at(&[1; 4096], M).unwrap();
        file.sync_all().unwrap();
        assert!(!watch.before(), "filled again");
        assert!(!watch.changed(false));
    }

    #[test]
    fn cut_and_grown_again_is_seen_even_in_a_run_that_trims() {
        let folder = tempfile::tempdir().unwrap();
        let file = whole(folder.path());
        let Some(mut watch) = LayoutWatch::new(&file, Bytes(4 * M)) else {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: the temporary folder's file system tells no extents\n",
            );
            return;
        };
        watch.before();
        file.set_len(M).unwrap();
        assert!(watch.changed(true));
        file.set_len(4 * M).unwrap();
        assert!(watch.changed(false));
        assert!(watch.before());
    }

    #[test]
    fn a_file_with_holes_from_the_start_is_measured_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = whole(folder.path());
        file.set_len(8 * M).unwrap();
        let Some(mut watch) = LayoutWatch::new(&file, Bytes(8 * M)) else {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: the temporary folder's file system tells no extents\n",
            );
            return;
        };
        assert!(!watch.before());
        assert!(!watch.changed(false));
        punch(&file, 0, M);
        assert!(watch.changed(false));
    }

    #[test]
    fn parts_that_follow_one_another_are_one() {
        let extent = |logical: u64, physical: u64, length: u64| Extent {
            logical: Bytes(logical),
            physical: Some(Bytes(physical)),
            length: Bytes(length),
            unwritten: false,
            shared: false,
            encoded: false,
        };
        let split = vec![extent(0, 100, 8), extent(8, 108, 8), extent(16, 300, 8)];
        let merged = vec![extent(0, 100, 16), extent(16, 300, 8)];
        assert_eq!(joined(split.clone(), false), merged);
        let moved = vec![extent(0, 900, 8), extent(8, 500, 16)];
        assert_ne!(joined(moved.clone(), false), merged);
        assert_eq!(joined(moved, true), joined(split, true), "places do not count where they move anyway");
    }
}
