//! Outputs that the user names: files, and whatever else a path may lead to.
//!
//! | there is | then |
//! |---|---|
//! | nothing, or a file | replaced as a whole when all is written, never a half |
//! | a FIFO, a character device | written through: opened and written, never renamed over |
//! | a socket | connected to and written |
//! | `/dev/stdout`, `/dev/fd/N` | written through, at the end of what is there |
//! | a symbolic link | what it leads to, by these rules; one that leads nowhere is refused |
//! | a block device, a folder | refused |
//! | a file of a results folder, `report.html` apart; a scratch file or its `.uflip` | refused |
//! | the target that is measured, or what that stands on | refused |
//!
//! A link in a folder that everybody writes to (`/tmp`) is followed only where
//! it belongs to the user or to the folder's owner, as the kernel does it with
//! `fs.protected_symlinks`. Limits: an output that is killed on its way leaves
//! its temporary file `.NAME.RANDOM.tmp` beside the target.

use crate::error::{StoreError, path_error};
use crate::files::{Temporary, sync_dir};
use crate::store::{folder_of_kept, is_kept_in, records_of};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use uflip_device::identity::{self, SysPaths};
use uflip_device::scratch;

/// Links followed one after another, as the kernel limits it.
const MOST_LINKS: usize = 40;

/// An output on its way. What is replaced stays as it is until
/// [`Output::finish`], and for good where that is never reached.
pub struct Output {
    path: PathBuf,
    to: To,
}

enum To {
    File { temporary: Temporary, target: PathBuf },
    Through(File),
    Socket(UnixStream),
}

/// What a path comes to.
enum OutputPlace {
    /// To be replaced; with the old file where there is one.
    File(PathBuf, Option<Metadata>),
    Through,
    /// A file that somebody else has open: `/dev/stdout`.
    Append,
    Socket,
}

/// Whether `path` can be an output, asked before long work.
///
/// # Errors
/// As [`Output::create`], as far as it can be known without opening anything.
pub fn check(path: &Path) -> Result<(), StoreError> {
    place(path).map(|_| ())
}

/// Whether the folder `path` can take outputs: it is not what a results folder keeps its
/// records or what was set aside in, whether that is there already or not.
///
/// # Errors
/// [`StoreError::Refused`], with what to type instead.
pub fn check_folder(path: &Path) -> Result<(), StoreError> {
    let real = path.canonicalize().or_else(|_| std::path::absolute(path));
    let real = real.map_err(path_error("cannot write", path))?;
    match real.ancestors().find_map(records_of) {
        None => Ok(()),
        Some(results) => {
            let why =
                format!("is where the results in {} keep records; name another folder", results.display());
            Err(refused(path, &why))
        }
    }
}

/// Whether `path` can be an output of what is measured on `target`, where that has a path: it would take the
/// place of what was measured.
///
/// # Errors
/// Where it is the target or what that stands on, or this cannot be learnt.
pub fn check_beside(path: &Path, target: Option<&Path>) -> Result<(), StoreError> {
    let Some(target) = target else { return Ok(()) };
    let failed = path_error("cannot learn whether the target stands on", path);
    if identity::stands_on(target, path, &SysPaths::default()).map_err(failed)? {
        let why =
            format!("is {} or what that stands on, which is measured; name another file", target.display());
        return Err(refused(path, &why));
    }
    Ok(())
}

/// Whether the results in `results`, which may not be there yet, leave the target at `path` as it is, and it
/// takes the place of no file of other results where it is `to_be_made`.
///
/// # Errors
/// Where the results would replace it, or it would be taken for one of their files.
pub fn check_target(path: &Path, results: Option<&Path>, to_be_made: bool) -> Result<(), StoreError> {
    if let Some(dir) = results.filter(|dir| is_kept_in(dir, path)) {
        let why = format!("is a name that the results in {} need; name another target or -o", dir.display());
        return Err(refused(path, &why));
    }
    match folder_of_kept(path).filter(|_| to_be_made) {
        Some(folder) => Err(refused(path, &needed_by(&folder))),
        None => Ok(()),
    }
}

impl Output {
    /// Opens `path` as an output; waits for the other end of a FIFO.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for what is never written to, with what to type
    /// instead; [`StoreError::Path`].
    pub fn create(path: &Path) -> Result<Output, StoreError> {
        let failed = |error| path_error("cannot write", path)(error);
        let to = match place(path)? {
            OutputPlace::File(target, old) => {
                let made = Temporary::beside(&target, old.as_ref());
                To::File { temporary: made.map_err(failed)?, target }
            }
            OutputPlace::Socket => To::Socket(UnixStream::connect(path).map_err(failed)?),
            OutputPlace::Append => To::Through(OpenOptions::new().append(true).open(path).map_err(failed)?),
            OutputPlace::Through => {
                let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
                let kind = file.metadata().map_err(failed)?.file_type();
                if !(kind.is_fifo() || kind.is_char_device()) {
                    return Err(refused(path, "was exchanged a moment ago; look at it and try again"));
                }
                To::Through(file)
            }
        };
        Ok(Output { path: path.to_path_buf(), to })
    }

    /// Ends it: a file gets its name now, durably.
    ///
    /// # Errors
    /// [`StoreError::Path`]; what was there before is then still there.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.flush().map_err(path_error("cannot write", &self.path))?;
        let To::File { temporary, target } = self.to else { return Ok(()) };
        temporary.put(&target).map_err(path_error("cannot write", &self.path))?;
        sync_dir(target.parent().unwrap_or(Path::new(".")))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::File { temporary, .. } => temporary.file.write(bytes),
            To::Through(file) => file.write(bytes),
            To::Socket(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File { temporary, .. } => temporary.file.flush(),
            To::Through(file) => file.flush(),
            To::Socket(socket) => socket.flush(),
        }
    }
}

fn refused(path: &Path, why: &str) -> StoreError {
    StoreError::Refused(format!("{} {why}", path.display()))
}

fn place(path: &Path) -> Result<OutputPlace, StoreError> {
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return new(path),
        Err(e) => return Err(path_error("cannot write", path)(e)),
    };
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => Err(refused(path, "is a folder; name a file in it")),
        () if kind.is_block_device() => {
            Err(refused(path, "is a block device, and an output would overwrite what it holds; name a file"))
        }
        () if kind.is_fifo() || kind.is_char_device() => Ok(OutputPlace::Through),
        () if kind.is_socket() => Ok(OutputPlace::Socket),
        () => file(path, meta),
    }
}

/// A name that is free: the file's own.
fn new(path: &Path) -> Result<OutputPlace, StoreError> {
    if path.symlink_metadata().is_ok() {
        return Err(refused(path, "is a link that leads nowhere; remove it or name another file"));
    }
    let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if slash || path.file_name().is_none() {
        return Err(refused(path, "names no file; type a file's name"));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(refused(path, "lies in a folder that is not there; make it or name another file"));
    }
    keeps_nothing(path, path)?;
    Ok(OutputPlace::File(path.to_path_buf(), None))
}

fn needed_by(folder: &Path) -> String {
    format!("is a name that the results in {} need; name another file", folder.display())
}

/// Refuses the names under which uflip itself keeps something: `target`, to which
/// `path` led.
fn keeps_nothing(path: &Path, target: &Path) -> Result<(), StoreError> {
    if let Some(folder) = folder_of_kept(target) {
        return Err(refused(path, &needed_by(&folder)));
    }
    let of_sidecar = target.extension().is_some_and(|end| end == "uflip").then(|| target.with_extension(""));
    let marked = |file: &Path| file.exists() && scratch::identity(file).is_some();
    if marked(target) || of_sidecar.is_some_and(|file| marked(&file)) {
        return Err(refused(path, "is a scratch file of uflip, or what tells it as one; name another file"));
    }
    Ok(())
}

/// A file, perhaps behind links.
fn file(path: &Path, meta: Metadata) -> Result<OutputPlace, StoreError> {
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let failed = |e| path_error("cannot write", path)(e);
        let link = target.symlink_metadata().map_err(failed)?;
        if !link.is_symlink() {
            // Replacing needs rights on the folder only; the file's say more.
            rustix::fs::access(&target, rustix::fs::Access::WRITE_OK).map_err(|e| failed(e.into()))?;
            keeps_nothing(path, &target)?;
            return Ok(OutputPlace::File(target, Some(meta)));
        }
        let folder = target.parent().unwrap_or(Path::new("/")).to_path_buf();
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return Ok(OutputPlace::Append);
        }
        if !may_follow(&folder, &link) {
            return Err(refused(
                path,
                "is somebody else's link in a folder that everybody writes to; name another file",
            ));
        }
        target = folder.join(target.read_link().map_err(failed)?);
    }
    Err(refused(path, "is a link to a link and so on without end; name a file"))
}

fn may_follow(folder: &Path, link: &Metadata) -> bool {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(around) = folder.metadata() else { return false };
    let everybodys = around.mode() & 0o1002 == 0o1002;
    // The process's own entry belongs to whoever it acts as.
    let me = Path::new("/proc/self").metadata().map(|meta| meta.uid()).ok();
    !everybodys || Some(link.uid()) == me || link.uid() == around.uid()
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
