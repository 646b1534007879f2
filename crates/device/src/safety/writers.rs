//! Who has a file or block device open for writing: whoever reads it meanwhile may
//! get some of it as it was before and some as it is afterwards.
//!
//! How: the descriptors of all processes but this one, as `/proc` shows them, with
//! the flags they were opened with. What is only mapped into memory, and processes
//! that this one may not look at, are not seen.
//!
//! Source: Linux, `proc_pid_fd(5)`, `proc_pid_fdinfo(5)`.

use crate::identity::sysfs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What makes two paths the same file or device.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    if meta.file_type().is_block_device() { Some((0, meta.rdev())) } else { Some((meta.dev(), meta.ino())) }
}

/// Whether a descriptor of these `fdinfo` was opened for writing.
fn writes(fdinfo: &str) -> bool {
    let flags = fdinfo.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

/// The processes that have `path` open for writing, but this one:
/// `open for writing in process 812 (postgres)`.
pub fn writers(path: &Path) -> Vec<String> {
    let Some(wanted) = identity(path) else { return Vec::new() };
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = processes.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        (id != own).then_some((id, entry.path()))
    });
    let of = |(id, folder): (u32, std::path::PathBuf)| {
        let mut descriptors = std::fs::read_dir(folder.join("fd")).ok()?.flatten();
        let writes_it = |fd: std::fs::DirEntry| {
            // Sockets and pipes lead to no path.
            let is_a_path = std::fs::read_link(fd.path()).is_ok_and(|to| to.is_absolute());
            let info = || std::fs::read_to_string(folder.join("fdinfo").join(fd.file_name()));
            is_a_path && identity(&fd.path()) == Some(wanted) && info().is_ok_and(|info| writes(&info))
        };
        descriptors.any(writes_it).then(|| {
            let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
            format!("open for writing in process {id} ({})", sysfs::printable(name.trim()))
        })
    };
    others.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_writes_is_told_by_its_flags() {
        let info = |flags: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\n");
        assert_eq!(["0100000", "02100001", "0100002"].map(|flags| writes(&info(flags))), [false, true, true]);
        assert!(!writes("pos: 0\n"));
    }
}
