//! Who has a file open for writing. Apart from the other tests, as a child that is
//! being started holds their locks for a moment.

use std::process::{Command, Stdio};
use uflip_device::safety::writers;

#[test]
fn only_others_that_write_are_found() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path();
    assert!(writers(path).is_empty(), "this process does not count");
    let shell = |redirect: &str| {
        // It says that it has the file open, and ends when nobody listens any more.
        let script = format!("exec 3{redirect}'{}'; echo; exec cat", path.display());
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        child
    };
    let end = |mut child: std::process::Child| {
        drop(child.stdin.take());
        child.wait().unwrap()
    };
    let reader = shell("<");
    assert!(writers(path).is_empty());
    let writer = shell(">>");
    let found = writers(path);
    let expected = format!("open for writing in process {} (", writer.id());
    assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
    end(reader);
    end(writer);
}
