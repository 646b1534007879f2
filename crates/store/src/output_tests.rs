//! What becomes of a path, without a device: see also the command's own tests.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn write(path: &Path, text: &str) -> Result<(), StoreError> {
    let mut out = Output::create(path)?;
    out.write_all(text.as_bytes()).unwrap();
    out.finish()
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_rights() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.html");
    write(&path, "one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let mut half = Output::create(&path).unwrap();
    half.write_all(b"tw").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    assert_eq!(names(dir.path()).len(), 2, "{:?}", names(dir.path()));
    drop(half);
    assert_eq!(names(dir.path()), ["a.html"]);
    write(&path, "two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_link_is_followed_to_its_file_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("a"), dir.path().join("l"));
    fs::write(&path, "old").unwrap();
    symlink("l2", &link).unwrap();
    symlink(&path, dir.path().join("l2")).unwrap();
    write(&link, "new").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    let refused = write(&dir.path().join("dangling"), "x").unwrap_err().to_string();
    assert!(refused.contains("leads nowhere"), "{refused}");
    symlink("loop", dir.path().join("loop")).unwrap();
    assert!(write(&dir.path().join("loop"), "x").is_err());
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn somebody_elses_link_in_everybodys_folder_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let link = dir.path().join("report.html");
    symlink(&victim, &link).unwrap();
    write(&link, "my own link").unwrap();
    if std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).is_err() {
        let _ =
            std::io::Write::write_all(&mut std::io::stderr(), b"skipped: giving a link away needs root\n");
        return;
    }
    assert!(write(&link, "planted").is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "my own link");
}

#[test]
fn what_names_no_file_is_refused_with_a_word() {
    let dir = tempfile::tempdir().unwrap();
    for (name, word) in [("", "is a folder"), ("x/", "names no file"), ("no/x", "not there")] {
        let refused = check(&dir.path().join(name)).unwrap_err().to_string();
        assert!(refused.contains(word), "{name}: {refused}");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_socket_is_connected_to() {
    use std::io::Read;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    write(&path, "through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(path.metadata().unwrap().file_type().is_socket());
}
