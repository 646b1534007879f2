//! Scratch files on the file system of the temporary folder and on tmpfs.

use super::*;
use crate::stamp::SECTOR;
use proptest::prelude::*;

const M: u64 = 1 << 20;

fn quiet(path: &Path, size: u64, budget: Option<Duration>) -> Result<Scratch, ScratchError> {
    create(path, Bytes(size), budget, &mut |_, _| {}, &Stop::new())
}

fn sidecar_of(path: &Path) -> Sidecar {
    match sidecar::read(path) {
        FoundSidecar::Ours(found) => found,
        other => panic!("{other:?}"),
    }
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
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, size + HEADER.0, "the header is behind what is measured");
    bytes.truncate(size as usize);
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
    assert_eq!(std::fs::metadata(&path).unwrap().len(), SMALLEST.0 + HEADER.0);
    let again = reuse(&path, SMALLEST, &Stop::new()).unwrap().expect("complete");
    assert_eq!(again.size, SMALLEST);
    assert_eq!(reuse(&path, Bytes(40 * M), &Stop::new()).unwrap(), None, "of another size");
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
    let mut sidecar = sidecar_of(&path);
    sidecar.complete = false;
    sidecar::write(&path, &sidecar).unwrap();
    assert_eq!(reuse(&path, Bytes(3 * M), &Stop::new()).unwrap(), None);
    prepare(3 * M).unwrap();
    assert!(reuse(&path, Bytes(3 * M), &Stop::new()).unwrap().is_some());
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
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: the temporary folder's file system tells no extents\n",
        );
        return;
    };
    assert!(made.fragmentation.unwrap().extents >= 1);
    assert!(found[0].length.0 > HEADER.0 || found.len() == 1, "the first block lies by itself: {found:?}");
    let covered: u64 = found.iter().map(|extent| extent.length.0).sum();
    assert_eq!(covered, 20 * M + HEADER.0);
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
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: the temporary folder's file system tells no extents\n",
        );
        return;
    };
    let verdict = fragmentation(&found, Bytes(4 * M)).unwrap_err();
    assert_eq!(verdict, ExtentError::Hole { at: Bytes(0), length: Bytes(M) });
    let reserved = File::create_new(folder.path().join("r")).unwrap();
    preallocate(&reserved, Bytes(2 * M)).unwrap();
    let found = extents(&reserved).unwrap().unwrap();
    if found.is_empty() {
        let _ =
            std::io::Write::write_all(&mut std::io::stderr(), b"skipped: the file system reserves nothing\n");
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
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: the temporary folder's file system tells no extents\n",
        );
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
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: there is no /dev/shm\n");
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

/// The file of `path` stays as it is, whatever is tried on it.
#[track_caller]
fn stays(path: &Path, why: &str) {
    let before = std::fs::read(path).unwrap();
    assert!(recognise(path, &File::open(path).unwrap()).is_err(), "taken for ours: {why}");
    assert!(!is_unfinished(path), "{why}");
    let anew = prepare(path, Bytes(4 * M), None, &mut |_, _| {}, &Stop::new());
    for result in [remove(path), reuse(path, Bytes(4 * M), &Stop::new()).map(drop), anew.map(drop)] {
        let told = result.expect_err(why).to_string();
        assert!(told.contains("uflip"), "{told}");
    }
    // Where it has holes that is refused, too.
    assert!(!matches!(fill_holes(path, &Stop::new()), Ok(Some(_))), "{why}");
    assert!(std::fs::read(path).unwrap() == before, "changed: {why}");
}

/// A scratch file of 4 MiB, finished, or cut off with `done` bytes filled.
fn made(folder: &Path, unfinished_at: Option<u64>) -> PathBuf {
    let path = folder.join("s");
    match unfinished_at {
        None => drop(quiet(&path, 4 * M, None).unwrap()),
        Some(done) => {
            let guard = Partial::start(&path).unwrap();
            let sidecar = Sidecar::of(&guard.file.metadata().unwrap(), 4 * M).unwrap();
            sidecar::write(&path, &sidecar).unwrap();
            preallocate(&guard.file, Bytes(4 * M + UNIT)).unwrap();
            mark(&guard.file, &sidecar, 0).unwrap();
            let mut filler = Filler::of(&guard.file, sidecar.key).unwrap();
            if done > 0 {
                fill(&path, &mut filler, Bytes(done), None, &mut |_, _| {}, &Stop::new()).unwrap();
            }
            guard.keep();
        }
    }
    path
}

/// What others do to a file.
type Deed = (&'static str, fn(&Path));

fn write_at(path: &Path, at: u64, length: u64) {
    let text = "Dear diary, today I have copied my life's work here. ".repeat(length as usize / 50 + 1);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&text.as_bytes()[..length as usize], at).unwrap();
}

const DEEDS: &[Deed] = &[
    ("a copy of the same size over it", |path| {
        let length = std::fs::metadata(path).unwrap().len();
        std::fs::write(
            path,
            "years of work".repeat(length as usize / 13 + 1).as_bytes().split_at(length as usize).0,
        )
        .unwrap();
    }),
    ("dd over all that is measured", |path| write_at(path, 0, 4 * M)),
    ("dd over its first sector", |path| write_at(path, 512, 512)),
    ("dd over its last sector", |path| write_at(path, 4 * M - 512, 512)),
    ("dd in its middle", |path| write_at(path, 2 * M, M / 8)),
    ("zeros over its end, text in its middle", |path| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![0; 8192], 4 * M - 4096).unwrap();
        write_at(path, M, M);
    }),
    ("zeros but for one sector", |path| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![0; 4 * M as usize + 4096], 0).unwrap();
        write_at(path, 1_234_432, 512);
    }),
    ("random data over it", |path| {
        let mut bytes = vec![0; 2 * M as usize];
        crate::rng::Rng::new(5).fill(&mut bytes);
        OpenOptions::new().write(true).open(path).unwrap().write_all_at(&bytes, M).unwrap();
    }),
    ("another file moved over it", |path| {
        let other = path.with_extension("other");
        std::fs::write(&other, vec![b'x'; 4 * M as usize + 4096]).unwrap();
        std::fs::rename(&other, path).unwrap();
    }),
    ("another file with its inode", |path| {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, vec![b'x'; 4 * M as usize + 4096]).unwrap();
        // As where an inode is taken again and no birth is kept.
        let meta = std::fs::metadata(path).unwrap();
        let now = Sidecar::of(&meta, 4 * M).unwrap();
        let was = sidecar_of(path);
        sidecar::write(path, &Sidecar { st_ino: now.st_ino, born_ns: now.born_ns, ..was }).unwrap();
    }),
];

#[test]
fn what_others_put_in_its_place_stays() {
    for unfinished_at in [None, Some(4 * M)] {
        for (why, deed) in DEEDS {
            let folder = tempfile::tempdir().unwrap();
            let path = made(folder.path(), unfinished_at);
            assert!(recognise(&path, &File::open(&path).unwrap()).is_ok());
            deed(&path);
            stays(&path, &format!("{why}, unfinished at {unfinished_at:?}"));
        }
    }
}

#[test]
fn a_finished_one_that_was_cut_and_grown_again_is_not_ours() {
    for cut in [1, 4096, 2 * M, 4 * M, 4 * M + 100] {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), None);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(cut).unwrap();
        stays(&path, &format!("cut to {cut}"));
        file.set_len(4 * M + UNIT).unwrap();
        stays(&path, &format!("cut to {cut} and grown again"));
    }
}

#[test]
fn an_unfinished_one_is_made_anew_from_every_stage() {
    let stages: [Deed; 7] = [
        ("zeros, as where reserving writes them", |path| {
            made(path.parent().unwrap(), Some(0));
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(&vec![0; 3 * M as usize], 0).unwrap();
        }),
        ("nothing in it", |path| {
            let guard = Partial::start(path).unwrap();
            let sidecar = Sidecar::of(&guard.file.metadata().unwrap(), 4 * M).unwrap();
            sidecar::write(path, &sidecar).unwrap();
            // The length came to the disk and the header did not.
            guard.file.set_len(UNIT).unwrap();
            guard.keep();
        }),
        ("only the header", |path| drop(made(path.parent().unwrap(), Some(0)))),
        ("half filled", |path| drop(made(path.parent().unwrap(), Some(2 * M)))),
        ("filled", |path| drop(made(path.parent().unwrap(), Some(4 * M)))),
        ("with both headers, to be shortened", |path| {
            made(path.parent().unwrap(), Some(2 * M));
            let file = OpenOptions::new().write(true).open(path).unwrap();
            mark(&file, &Sidecar { size: 2 * M, ..sidecar_of(path) }, 2 * M).unwrap();
            file.set_len(2 * M + UNIT).unwrap();
        }),
        ("all but the sidecar", |path| {
            made(path.parent().unwrap(), None);
            sidecar::write(path, &Sidecar { complete: false, ..sidecar_of(path) }).unwrap();
        }),
    ];
    for (stage, make) in stages {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        make(&path);
        assert!(is_unfinished(&path), "{stage}");
        let again = prepare(&path, Bytes(4 * M), None, &mut |_, _| {}, &Stop::new());
        assert_eq!(again.unwrap_or_else(|error| panic!("{stage}: {error}")).size, Bytes(4 * M));
        assert!(!is_unfinished(&path), "{stage}");
        remove(&path).unwrap();
        nothing_left(folder.path());
    }
}

#[test]
fn whatever_runs_wrote_it_stays_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), None);
    let key = sidecar_of(&path).key;
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let cyclic: Vec<u8> = (0..=255).cycle().take(M as usize).collect();
    let mut stamped = vec![0x33; M as usize];
    key.stamp(&mut stamped, 77);
    let contents = [
        vec![0; M as usize],
        vec![0xa5; M as usize],
        0x0123_4567u64.to_le_bytes().repeat(M as usize / 8),
        cyclic,
        stamped,
    ];
    for at in [0, M, 3 * M] {
        for content in &contents {
            file.write_all_at(content, at).unwrap();
            assert_eq!(recognise(&path, &file).unwrap().key, key, "{:?} at {at}", &content[..4]);
        }
    }
    // None of a key but its own.
    let mut foreign = vec![0x33; SECTOR];
    crate::stamp::Key::DEVICE.stamp(&mut foreign, 77);
    file.write_all_at(&foreign, 0).unwrap();
    assert!(recognise(&path, &file).is_err());
}

#[test]
fn every_sector_is_stamped_with_a_key_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    quiet(&a, M, None).unwrap();
    quiet(&b, M, None).unwrap();
    let (key, other) = (sidecar_of(&a).key, sidecar_of(&b).key);
    assert_ne!(key, other);
    let bytes = std::fs::read(&a).unwrap();
    assert!(bytes[..M as usize].chunks(SECTOR).all(|sector| key.is_on(sector) && !other.is_on(sector)));
    let header = Header::decode(&bytes[M as usize..]).expect("the last block");
    assert_eq!((header.key, header.size), (key, M));
}

#[test]
fn holes_are_filled_again_and_only_in_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), None);
    if extents(&File::open(&path).unwrap()).unwrap().is_none() {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: the temporary folder's file system tells no extents\n",
        );
        return;
    }
    let stop = Stop::new();
    assert_eq!(fill_holes(&path, &stop).unwrap(), None, "whole");
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let punch = |at: u64, length: u64| {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, length) = (at as libc::off_t, length as libc::off_t);
        // SAFETY: takes plain numbers and a descriptor that `file` keeps open.
        assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), mode, at, length) }, 0);
    };
    punch(0, 4096);
    punch(M, M + 4096);
    punch(4 * M - 8192, 8192);
    assert_eq!(fill_holes(&path, &stop).unwrap(), Some(Bytes(M + 4 * 4096)));
    assert_eq!(fill_holes(&path, &stop).unwrap(), None);
    let (key, bytes) = (sidecar_of(&path).key, std::fs::read(&path).unwrap());
    assert!(bytes[..4 * M as usize].chunks(SECTOR).all(|sector| key.is_on(sector)));
    // Parts that are there and were never written.
    punch(2 * M, M);
    preallocate(&file, Bytes(4 * M)).unwrap();
    assert_eq!(fill_holes(&path, &stop).unwrap(), Some(Bytes(M)));
    // Found again by `reuse`, which says so.
    punch(M, 8192);
    let asked = Stop::new();
    asked.ask();
    let stopped = prepare(&path, Bytes(4 * M), None, &mut |_, _| {}, &asked);
    assert!(matches!(stopped, Err(ScratchError::StoppedFilling { .. })), "{stopped:?}");
    assert_eq!(reuse(&path, Bytes(4 * M), &Stop::new()).unwrap().unwrap().refilled, Some(Bytes(8192)));
    // Not one byte goes into what is not ours any more, or used by another.
    punch(M, 8192);
    let user = File::open(&path).unwrap();
    user.lock().unwrap();
    assert!(matches!(fill_holes(&path, &stop), Err(ScratchError::Exists { .. })));
    drop(user);
    write_at(&path, 2 * M, M);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(fill_holes(&path, &stop), Err(ScratchError::Kept { .. })));
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn one_of_the_former_format_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    std::fs::write(&path, vec![1; 2 * M as usize]).unwrap();
    let now = Sidecar::of(&std::fs::metadata(&path).unwrap(), 2 * M).unwrap();
    let old = format!(
        "{{\"format\":\"uflip-scratch-1\",\"st_dev\":{},\"st_ino\":{},\"born_ns\":{},\"size\":{},\"created\":1,\"complete\":true}}\n",
        now.st_dev, now.st_ino, now.born_ns, now.size
    );
    std::fs::write(sidecar::path_of(&path), old).unwrap();
    stays(&path, "of an earlier version");
    let told = remove(&path).unwrap_err().to_string();
    let shown = path.display();
    assert!(told.contains(&format!("remove {shown} and {shown}.uflip")), "{told}");
    // Its sidecar alone does not stand in the way.
    std::fs::remove_file(&path).unwrap();
    quiet(&path, M, None).unwrap();
    remove(&path).unwrap();
    nothing_left(folder.path());
}

#[test]
fn only_the_file_that_was_looked_at_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), None);
    let looked_at = File::open(&path).unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, "years of work").unwrap();
    std::fs::rename(&other, &path).unwrap();
    let error = remove_behind(&path, &looked_at).unwrap_err();
    assert!(matches!(error, ScratchError::Kept { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "years of work");
}

#[test]
fn what_came_into_the_place_of_a_failed_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let stop = Stop::new();
    let mut progress = |_: Bytes, _: Bytes| {
        std::fs::write(folder.path().join("other"), "years of work").unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        stop.ask();
    };
    create(&path, Bytes(8 * M), None, &mut progress, &stop).unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "years of work");
}

#[test]
fn files_of_similar_names_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("s.uflip.new");
    std::fs::write(&mine, "years of work").unwrap();
    let path = made(folder.path(), None);
    remove(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "years of work");
}

#[test]
fn a_link_is_never_taken_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), None);
    let real = folder.path().join("real");
    std::fs::rename(&path, &real).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    assert!(
        remove(&path).is_err() && reuse(&path, Bytes(4 * M), &Stop::new()).is_err() && !is_unfinished(&path)
    );
    assert!(real.exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Two 256th parts in a row are always met, wherever they are.
    #[test]
    fn foreign_data_of_two_parts_is_met(seed: u64, at in 0u64..(16 * M - 16 * M / 128) / 512) {
        let folder = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "." }).unwrap();
        let path = folder.path().join("f");
        let key = crate::stamp::Key(seed);
        let mut bytes = vec![0x11; 16 * M as usize];
        key.stamp(&mut bytes, 0);
        std::fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        let met = || {
            let mut reader = contents::Reader::of(&file).unwrap();
            contents::foreign_at(&mut reader, 16 * M, &[], key, contents::SectorCounts::AnyOfRuns).unwrap()
        };
        prop_assert_eq!(met(), None);
        write_at(&path, at * 512, 16 * M / 128);
        let found = met();
        let range = at * 512..at * 512 + 16 * M / 128;
        prop_assert!(found.is_some_and(|at| range.contains(&at)), "{:?}", found);
    }
}
