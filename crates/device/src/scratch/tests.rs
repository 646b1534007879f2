//! Scratch files on the file system of the temporary folder and on tmpfs.

use super::*;
use extents::ExtentError;

const M: u64 = 1 << 20;

fn quiet(path: &Path, size: u64, budget: Option<Duration>) -> Result<Scratch, ScratchError> {
    create(path, Bytes(size), budget, &mut |_, _| {}, &Stop::new())
}

fn nothing_left(folder: &Path) {
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "something is left");
}

#[test]
fn every_byte_is_written_and_cannot_be_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let mut seen = Vec::new();
    let size = 3 * M + 8192;
    let made =
        create(&path, Bytes(size), None, &mut |done, all| seen.push((done.0, all.0)), &Stop::new()).unwrap();
    assert_eq!(made.size, Bytes(size));
    assert_eq!(seen, [(M, size), (2 * M, size), (3 * M, size), (size, size)]);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, size);
    let mut blocks: Vec<&[u8]> = bytes.chunks(4096).collect();
    let count = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), count, "no block twice");
    for block in bytes.chunks(4096) {
        let mut times = [0u32; 256];
        block.iter().for_each(|byte| times[*byte as usize] += 1);
        assert!(times.iter().all(|n| *n < 64), "every byte value about 16 times");
    }
}

#[test]
fn a_budget_shortens_the_file_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let made = quiet(&path, 40 * M + 4096, Some(Duration::ZERO)).unwrap();
    assert_eq!((made.size, made.shortened_from), (SMALLEST, Some(Bytes(40 * M + 4096))));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), SMALLEST.0);
    let again = reuse(&path, SMALLEST).unwrap().expect("complete");
    assert_eq!(again.size, SMALLEST);
    assert_eq!(reuse(&path, Bytes(40 * M)).unwrap(), None, "of another size");
    let small = folder.path().join("small");
    assert_eq!(
        quiet(&small, 2 * M, Some(Duration::ZERO)).unwrap().shortened_from,
        None,
        "never below the least"
    );
}

#[test]
fn stopping_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    let mut progress = |done: Bytes, _| {
        if done.0 == 2 * M {
            stop.ask();
        }
    };
    let error = create(&folder.path().join("s"), Bytes(64 * M), None, &mut progress, &stop).unwrap_err();
    assert!(matches!(error, ScratchError::Stopped { .. }), "{error}");
    nothing_left(folder.path());
}

#[test]
fn a_panic_in_progress_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let caught = std::panic::catch_unwind(|| {
        create(&path, Bytes(4 * M), None, &mut |_, _| panic!("the caller's"), &Stop::new())
    });
    assert!(caught.is_err());
    nothing_left(folder.path());
}

#[test]
fn sizes_off_the_unit_say_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    for (size, instead) in [(0, "4K"), (4097, "8K"), (M + 1, "1028K")] {
        let error = quiet(&folder.path().join("s"), size, None).unwrap_err();
        assert!(error.to_string().contains(&format!("type {instead} for")), "{error}");
    }
    nothing_left(folder.path());
}

#[test]
fn a_full_disk_is_refused_with_the_numbers() {
    let path = Path::new("/data/s");
    let g = 1u64 << 30;
    let fits = |size: u64, free: u64, all: u64| fits(path, Bytes(size), Bytes(free), Bytes(all));
    // Of 100G one stays free, of 10G half of one.
    assert!(fits(9 * g, 10 * g, 100 * g).is_ok());
    assert!(fits(9 * g + 4096, 10 * g, 100 * g).is_err());
    assert!(fits(9 * g + g / 2, 10 * g, 10 * g).is_ok());
    assert!(fits(9 * g + g / 2 + 4096, 10 * g, 10 * g).is_err());
    let told = fits(50 * g, 10 * g, 100 * g).unwrap_err().to_string();
    for part in ["/data/s of 50G", "10G are free", "1G stay free", "--scratch-size 9G", "another folder"] {
        assert!(told.contains(part), "{told}");
    }
    let told = fits(50 * g, g, 100 * g).unwrap_err().to_string();
    assert!(told.contains("another disk") && !told.contains("--scratch-size"), "{told}");
    let folder = tempfile::tempdir().unwrap();
    let error = quiet(&folder.path().join("s"), 1 << 60, None).unwrap_err();
    assert!(matches!(error, ScratchError::Full { .. }), "{error}");
    nothing_left(folder.path());
}

#[test]
fn prepare_replaces_ours_and_only_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let prepare = |size: u64| prepare(&path, Bytes(size), None, &mut |_, _| {}, &Stop::new());
    prepare(2 * M).unwrap();
    let inode = || std::fs::metadata(&path).unwrap().ino();
    let content = std::fs::read(&path).unwrap();
    let first = inode();
    prepare(2 * M).unwrap();
    assert_eq!((inode(), std::fs::read(&path).unwrap() == content), (first, true), "kept as it was");
    assert_eq!(prepare(3 * M).unwrap().size, Bytes(3 * M));
    // One that was never finished is made anew.
    let mut sidecar = sidecar::read(&path).unwrap();
    sidecar.complete = false;
    sidecar::write(&path, &sidecar).unwrap();
    assert_eq!(reuse(&path, Bytes(3 * M)).unwrap(), None);
    prepare(3 * M).unwrap();
    assert!(reuse(&path, Bytes(3 * M)).unwrap().is_some());
    remove(&path).unwrap();
    nothing_left(folder.path());
    assert!(remove(&path).is_err());
}

#[test]
fn one_in_use_or_in_the_making_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let prepare = |size: u64| prepare(&path, Bytes(size), None, &mut |_, _| {}, &Stop::new());
    let mut others = Vec::new();
    create(&path, Bytes(2 * M), None, &mut |_, _| others.push(prepare(3 * M)), &Stop::new()).unwrap();
    assert!(
        others.len() == 2 && others.iter().all(|other| matches!(other, Err(ScratchError::Exists { .. })))
    );
    let user = File::open(&path).unwrap();
    user.lock().unwrap();
    assert!(matches!(prepare(3 * M), Err(ScratchError::Exists { .. })));
    drop(user);
    assert_eq!(prepare(3 * M).unwrap().size, Bytes(3 * M));
}

#[test]
fn a_file_where_the_sidecar_goes_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let sidecar = folder.path().join("s.uflip");
    std::fs::write(&sidecar, "a novel").unwrap();
    let error = quiet(&folder.path().join("s"), M, None).unwrap_err();
    assert!(matches!(error, ScratchError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&sidecar).unwrap(), "a novel");
    assert!(!folder.path().join("s").exists());
}

#[test]
fn extents_of_a_scratch_file_cover_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let made = quiet(&path, 20 * M, None).unwrap();
    let Some(found) = extents(&File::open(&path).unwrap()).unwrap() else {
        eprintln!("skipped: the temporary folder's file system tells no extents");
        return;
    };
    assert!(made.fragmentation.unwrap().extents >= 1);
    let covered: u64 = found.iter().map(|extent| extent.length.0).sum();
    assert_eq!(covered, 20 * M);
    assert!(found.iter().all(|extent| !extent.unwritten && extent.physical.is_some()), "{found:?}");
}

#[test]
fn holes_and_unwritten_parts_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let file = File::create_new(&path).unwrap();
    file.set_len(4 * M).unwrap();
    file.write_all_at(&vec![1; M as usize], M).unwrap();
    let Some(found) = extents(&file).unwrap() else {
        eprintln!("skipped: the temporary folder's file system tells no extents");
        return;
    };
    let verdict = fragmentation(&found, Bytes(4 * M)).unwrap_err();
    assert_eq!(verdict, ExtentError::Hole { at: Bytes(0), length: Bytes(M) });
    let reserved = File::create_new(folder.path().join("r")).unwrap();
    preallocate(&reserved, Bytes(2 * M)).unwrap();
    let found = extents(&reserved).unwrap().unwrap();
    if found.is_empty() {
        eprintln!("skipped: the file system reserves nothing");
        return;
    }
    assert!(matches!(fragmentation(&found, Bytes(2 * M)), Err(ExtentError::Unwritten { .. })), "{found:?}");
}

#[test]
fn many_extents_are_read_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create_new(folder.path().join("s")).unwrap();
    // Every second block, so that none touch.
    for block in 0..300u64 {
        file.write_all_at(&[1; 4096], block * 8192).unwrap();
    }
    let Some(found) = extents(&file).unwrap() else {
        eprintln!("skipped: the temporary folder's file system tells no extents");
        return;
    };
    let covered: u64 = found.iter().map(|extent| extent.length.0).sum();
    assert_eq!(covered, 300 * 4096);
    assert!(found.len() > 128, "more than a batch: {}", found.len());
    assert!(found.windows(2).all(|pair| pair[0].logical < pair[1].logical));
}

#[test]
fn tmpfs_tells_no_extents_and_works_all_the_same() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no /dev/shm");
        return;
    };
    let path = folder.path().join("s");
    let made = quiet(&path, 2 * M, None).unwrap();
    assert_eq!((made.size, made.fragmentation), (Bytes(2 * M), None));
}

#[test]
fn the_verdict_counts_parts_of_the_disk() {
    let extent = |logical: u64, physical: u64, length: u64| Extent {
        logical: Bytes(logical * M),
        physical: Some(Bytes(physical * M)),
        length: Bytes(length * M),
        unwritten: false,
        shared: false,
        encoded: false,
    };
    let joined = [extent(0, 100, 64), extent(64, 164, 64)];
    let verdict = fragmentation(&joined, Bytes(128 * M)).unwrap();
    assert_eq!((verdict.extents, verdict.warning), (1, None));
    let two = [extent(0, 100, 64), extent(64, 300, 64)];
    assert_eq!(fragmentation(&two, Bytes(128 * M)).unwrap().warning, None, "one in 64 MiB is allowed");
    let three = [extent(0, 100, 64), extent(64, 300, 32), extent(96, 500, 32)];
    assert!(fragmentation(&three, Bytes(128 * M)).unwrap().warning.unwrap().contains("3 parts"));
    let mut encoded = joined;
    encoded[0].encoded = true;
    assert!(fragmentation(&encoded, Bytes(128 * M)).unwrap().warning.unwrap().contains("compresses"));
    assert!(matches!(fragmentation(&joined, Bytes(129 * M)), Err(ExtentError::Hole { .. })));
}
