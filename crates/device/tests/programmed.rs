//! A scratch file that a program wrote stays known as ours, while nobody else
//! wrote to it, and only then.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use uflip_device::blocks::{self, Clock, RealBlocks};
use uflip_device::buffer::AlignedBuffer;
use uflip_device::identity::SysPaths;
use uflip_device::safety::{self, Examination, Programming, TargetKind};
use uflip_device::{Bytes, Geometry, Stop, scratch};

const SIZE: u64 = 4 << 20;

fn made(folder: &Path) -> PathBuf {
    let path = folder.join("s");
    scratch::create(&path, Bytes(SIZE), None, &mut |_, _| {}, &Stop::new()).unwrap();
    path
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn look(path: &Path) -> Examination {
    safety::examine(path, &SysPaths::default()).unwrap()
}

fn begin(path: &Path) -> Programming {
    safety::permit(&look(path), &[]).unwrap().open_for_program(libc::O_DIRECT).unwrap()
}

/// What a program does: no stamps, and an ext2 superblock's magic.
fn write_as_a_program(claim: &Programming) {
    let geometry = Geometry { capacity: Bytes(SIZE), sector: Bytes(4096) };
    let file = claim.descriptor().unwrap();
    let mut device = RealBlocks::new("s", file, geometry, 2, Clock::wall()).unwrap();
    let mut buffer = AlignedBuffer::new(1 << 20);
    buffer.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 253) as u8 + 1);
    buffer.bytes_mut()[1024 + 56..1024 + 58].copy_from_slice(&0xef53u16.to_le_bytes());
    for at in (0..SIZE).step_by(1 << 20) {
        blocks::write(&mut device, Bytes(at), 1 << 20, &mut buffer).unwrap();
    }
    blocks::trim(&mut device, Bytes(2 << 20), 1 << 20).unwrap();
    blocks::flush(&mut device).unwrap();
}

/// Why it is refused now; `None` where it is not.
fn refused(path: &Path) -> Option<String> {
    safety::permit(&look(path), &[]).err().map(|refusal| refusal.to_string())
}

#[test]
fn what_a_program_left_is_ours() {
    let folder = folder();
    let path = made(folder.path());
    assert!(!look(&path).is_programmed());
    let claim = begin(&path);
    write_as_a_program(&claim);
    claim.finish().unwrap();
    let seen = look(&path);
    assert_eq!((seen.kind(), seen.is_programmed(), refused(&path)), (TargetKind::Scratch, true, None));
    assert_eq!(safety::permit(&seen, &[]).unwrap().size(), Bytes(SIZE));
    // Its holes are the program's: they read as zeros, and are not filled.
    assert_eq!(scratch::fill_holes(&path, &Stop::new()).unwrap(), None);
    let whole = std::fs::read(&path).unwrap();
    assert!(whole[2 << 20..3 << 20].iter().all(|byte| *byte == 0));
    // A program goes on with it, also one that only reads.
    begin(&path).finish().unwrap();
    assert_eq!(refused(&path), None);
    // A measurement has it made anew, and it can be removed.
    assert_eq!(scratch::reuse(&path, Bytes(SIZE), &Stop::new()).unwrap(), None);
    scratch::prepare(&path, Bytes(SIZE), None, &mut |_, _| {}, &Stop::new()).unwrap();
    let seen = look(&path);
    assert_eq!((seen.is_programmed(), refused(&path)), (false, None));
    let claim = begin(&path);
    write_as_a_program(&claim);
    drop(claim);
    scratch::remove(&path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_that_somebody_wrote_to_afterwards_is_theirs() {
    let folder = folder();
    let path = made(folder.path());
    let claim = begin(&path);
    write_as_a_program(&claim);
    claim.finish().unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // A byte at a place that no sample would meet for certain.
    let mut byte = [0];
    file_read(&path, &mut byte, 1_500_001);
    file.write_all_at(&byte, 1_500_001).unwrap();
    assert!(refused(&path).unwrap().contains("somebody wrote to it"), "{:?}", refused(&path));
    // With the time put back it is what is in it that tells.
    file.set_modified(meta.modified().unwrap()).unwrap();
    assert_eq!(refused(&path), None, "the same bytes at the same time");
    file.write_all_at(&[0xee], 100).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    assert!(refused(&path).unwrap().contains("somebody wrote to it"), "{:?}", refused(&path));
    assert!(scratch::remove(&path).is_err() && path.exists());
}

fn file_read(path: &Path, into: &mut [u8], at: u64) {
    std::fs::File::open(path).unwrap().read_exact_at(into, at).unwrap();
}

#[test]
fn one_whose_program_was_cut_off_is_refused_until_it_is_named_away() {
    let folder = folder();
    let path = made(folder.path());
    let claim = begin(&path);
    write_as_a_program(&claim);
    std::mem::forget(claim);
    let why = refused(&path).unwrap();
    assert!(why.contains("did not come to its end"), "{why}");
    assert!(scratch::remove(&path).is_err() && path.exists());
    assert!(scratch::reuse(&path, Bytes(SIZE), &Stop::new()).is_err());
}

#[test]
fn the_same_writes_without_the_mark_are_somebody_elses() {
    let folder = folder();
    let path = made(folder.path());
    let sidecar = folder.path().join("s.uflip");
    let before = std::fs::read(&sidecar).unwrap();
    let claim = begin(&path);
    write_as_a_program(&claim);
    claim.finish().unwrap();
    let marked = std::fs::read_to_string(&sidecar).unwrap();
    assert!(marked.contains("\"programmed\":\"0x"), "{marked}");
    std::fs::write(&sidecar, before).unwrap();
    assert!(refused(&path).unwrap().contains("did not make"), "{:?}", refused(&path));
}

#[test]
fn a_program_gets_no_file_that_is_not_there_and_none_of_somebody_else() {
    let folder = folder();
    let missing = folder.path().join("missing");
    let error = safety::permit(&look(&missing), &[]).unwrap().open_for_program(0).unwrap_err();
    assert!(error.to_string().contains("scratch files") && !missing.exists(), "{error}");
    let theirs = folder.path().join("theirs");
    std::fs::write(&theirs, "a diary").unwrap();
    assert!(refused(&theirs).is_some());
}
