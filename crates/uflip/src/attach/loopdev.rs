//! Loop devices over a file, through `losetup` and `umount` of util-linux.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use uflip_device::Bytes;

/// How long the kernel may take to let go of what nobody uses any more.
const SETTLE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs a program of the system; gives its standard output.
fn run(program: &str, args: &[&std::ffi::OsStr]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .with_context(|| format!("cannot run {program}; is util-linux installed?"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} failed: {}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Makes a loop device over `file` with direct IO; gives its path.
///
/// # Errors
/// What `losetup` says.
pub fn attach(file: &Path, sector: Bytes, rotational: bool) -> anyhow::Result<PathBuf> {
    let sector = sector.0.to_string();
    let options = ["--find", "--show", "--direct-io=on", "--sector-size", &sector];
    let mut args: Vec<&std::ffi::OsStr> = options.iter().map(std::ffi::OsStr::new).collect();
    args.push(file.as_os_str());
    let device = PathBuf::from(run("losetup", &args)?);
    if attribute(&device, "loop/dio").as_deref() != Some("1") {
        crate::say!("uflip: warning: {} has no direct IO: the page cache lies in between", device.display());
    }
    if let Some(folder) = sysfs(&device) {
        // Only a hint to schedulers and users.
        let _ = std::fs::write(folder.join("queue/rotational"), if rotational { "1" } else { "0" });
    }
    Ok(device)
}

/// The kernel's folder of a block device.
fn sysfs(device: &Path) -> Option<PathBuf> {
    Some(Path::new("/sys/block").join(device.file_name()?))
}

fn attribute(device: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(sysfs(device)?.join(name)).ok()?;
    Some(text.trim_end_matches('\n').to_string())
}

/// Whether `device` is (still) a loop device over `file`.
pub fn is_over(device: &Path, file: &Path) -> bool {
    attribute(device, "loop/backing_file").is_some_and(|backing| {
        // The kernel appends a word where the file is not to be found any more.
        Path::new(backing.trim_end_matches(" (deleted)")) == file
    })
}

/// All loop devices over `file`.
pub fn all_over(file: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let devices = entries.map(|entry| Path::new("/dev").join(entry.file_name()));
    devices.filter(|device| is_over(device, file)).collect()
}

/// Asks the kernel to give up `device`, a loop device over `file`. Gives false
/// where somebody has it open: then it goes with its last user.
///
/// # Errors
/// What `losetup` says.
pub fn detach(device: &Path, file: &Path) -> anyhow::Result<bool> {
    if !is_over(device, file) {
        return Ok(true);
    }
    let asked = run("losetup", &["-d".as_ref(), device.as_os_str()]);
    if soon(|| !is_over(device, file)) {
        return Ok(true);
    }
    asked.map(|_| false)
}

/// Looks again and again until `done`, for a while; gives whether it was.
fn soon(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + SETTLE;
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

/// Whether something is mounted at `folder`.
fn is_mounted(folder: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = |line: &str| line.split(' ').nth(1).is_some_and(|at| Path::new(&unescape(at)) == folder);
    mounts.lines().any(mounted)
}

/// Spaces and the like stand as `\040` in the kernel's table of mounts.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                plain.extend(&part.as_bytes()[3..]);
            }
            None => plain.extend(part.as_bytes()),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Unmounts `folder`; where it is (known to be) `in_use`, at least nobody finds
/// it any more.
///
/// # Errors
/// What `umount` says.
pub fn unmount(folder: &Path, in_use: bool) -> anyhow::Result<()> {
    if !in_use && soon(|| !is_mounted(folder) || run("umount", &[folder.as_os_str()]).is_ok()) {
        return Ok(());
    }
    run("umount", &["-l".as_ref(), folder.as_os_str()]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_they_are() {
        assert_eq!(unescape("/run/a\\040b\\134c"), "/run/a b\\c");
        assert_eq!(unescape("/plain"), "/plain");
        assert!(is_mounted(Path::new("/proc")) && !is_mounted(Path::new("/nowhere")));
    }
}
