//! The lock that uflips keep each other away with: `flock` on a file, which the kernel
//! lets go of with its holder.
//!
//! Limits: file systems without locks (some network ones) say so, and nothing is known.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

/// Somebody may hold the lock for a moment only to look: how often and how long to
/// wait for that.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(10);

/// Locks `file` as long as it is open; false where another holds it.
///
/// # Errors
/// Where the file system has no locks.
pub fn hold(file: &File) -> io::Result<bool> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether another holds `file` now; two who look do not see each other. The lock is
/// let go of with `file`.
pub(crate) fn is_held(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_by_those_who_look_and_lookers_are_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        File::create(&path).unwrap();
        let open = || File::open(&path).unwrap();
        let (first, second) = (open(), open());
        assert!(!is_held(&first) && !is_held(&second), "who looks is no holder");
        let holder = open();
        std::thread::scope(|scope| {
            let held = scope.spawn(|| hold(&holder).unwrap());
            drop((first, second));
            assert!(held.join().unwrap());
        });
        assert!(is_held(&open()) && !hold(&open()).unwrap());
        drop(holder);
        assert!(!is_held(&open()));
    }
}
