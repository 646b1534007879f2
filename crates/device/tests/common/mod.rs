//! Loop devices for tests: each is made of a sparse file in memory, and gone
//! when its guard is.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Keeps the loop tests of one test program from running at the same time.
pub fn serial() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Says on stderr, past the test harness's capture, why a test did nothing.
pub fn skipped(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs a command; its output where it succeeds, else what went wrong.
pub fn run(command: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(command)
        .args(arguments)
        .env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{command} {}: {}", arguments.join(" "), text(&output.stderr)))
    }
}

/// A folder in memory where there is one, else the usual temporary one.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder can be made")
}

/// An attached loop device; detached and its file removed when dropped.
pub struct LoopDevice {
    path: PathBuf,
    backing: PathBuf,
    attached: bool,
    _folder: tempfile::TempDir,
}

impl LoopDevice {
    /// Attaches a new zero-filled device of `size` bytes, with partitions shown.
    /// The error says why there is none: not root, no losetup, no loop module.
    pub fn create(size: u64) -> Result<LoopDevice, String> {
        LoopDevice::create_with(size, &["--partscan"])
    }

    /// As [`LoopDevice::create`], with other options for losetup.
    pub fn create_with(size: u64, options: &[&str]) -> Result<LoopDevice, String> {
        let folder = folder();
        let backing = folder.path().join("backing");
        let file = std::fs::File::create(&backing).map_err(|error| error.to_string())?;
        file.set_len(size).map_err(|error| error.to_string())?;
        let backing_text = backing.to_string_lossy().into_owned();
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(options);
        arguments.push(&backing_text);
        let path = PathBuf::from(run("losetup", &arguments)?);
        Ok(LoopDevice { path, backing, attached: true, _folder: folder })
    }

    /// The device's node, such as `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same as text.
    pub fn text(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// The file behind it.
    pub fn backing(&self) -> &Path {
        &self.backing
    }

    /// Runs a command with the device's path as its last argument.
    pub fn command(&self, command: &str, arguments: &[&str]) -> Result<String, String> {
        let path = self.text();
        let mut all = arguments.to_vec();
        all.push(&path);
        run(command, &all)
    }

    /// Gives the file behind it another size, and tells the device.
    pub fn resize(&self, size: u64) -> Result<(), String> {
        let file = std::fs::OpenOptions::new().write(true).open(&self.backing).map_err(|e| e.to_string())?;
        file.set_len(size).map_err(|error| error.to_string())?;
        self.command("losetup", &["-c"]).map(drop)
    }

    /// Takes the file away from the device; waits until the device is empty.
    pub fn detach(&mut self) {
        if !std::mem::take(&mut self.attached) {
            return;
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let behind = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
        for _ in 0..100 {
            let _ = self.command("losetup", &["-d"]);
            if !behind.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        skipped(&format!("{} could not be detached", self.path.display()));
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        self.detach();
    }
}

/// A mounted file system; unmounted when dropped.
pub struct Mounted {
    /// Where it is mounted.
    pub point: tempfile::TempDir,
}

impl Mounted {
    /// Mounts the device at `path` on a new folder.
    pub fn new(path: &Path) -> Result<Mounted, String> {
        let point = folder();
        run("mount", &[&path.to_string_lossy(), &point.path().to_string_lossy()])?;
        Ok(Mounted { point })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.point.path().to_string_lossy()]);
    }
}
