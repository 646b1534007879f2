//! The comparison with fio, in its small form so that it does not rot.

use crate::support::{skipped, text};
use std::process::Command;

#[test]
fn the_comparison_with_fio_runs() {
    compare(&[], "uflip / fio");
}

#[test]
fn the_comparison_of_the_io_uring_engines_runs() {
    compare(&["--engine", "io_uring", "--depths", "1,8"], "IOs/s uflip / fio");
}

fn compare(more: &[&str], told: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/against_fio.py");
    let output = Command::new("python3")
        .args([script, "--small", "--uflip", env!("CARGO_BIN_EXE_uflip")])
        .args(more)
        .current_dir(tempfile::tempdir().unwrap().path())
        .output();
    match output {
        Ok(o) => {
            let (out, err) = (text(&o.stdout), text(&o.stderr));
            assert!(o.status.success(), "{out}\n{err}");
            out.lines().filter(|l| l.starts_with("skipped")).for_each(skipped);
            assert!(out.contains("skipped: ") || out.contains(told), "{out}");
        }
        Err(e) => skipped(&format!("python3: {e}")),
    }
}
