//! The house's rules as tests: what the dependencies may be, how long files
//! and functions may grow, where unsafe code may stand.

use crate::support::{skipped, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Licences that go with MIT OR Apache-2.0.
const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "BSL-1.0",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The platform that this is compiled for.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let told = text(&output.stdout);
    let line = told.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc tells its host").to_string()
}

/// What cargo knows of all packages, without a network: a machine that has only
/// built for itself has not those of other platforms.
fn metadata() -> Value {
    let ask = |more: &[&str]| {
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--offline"])
            .args(more)
            .current_dir(root())
            .output()
            .expect("cargo runs")
    };
    let mut output = ask(&[]);
    if !output.status.success() {
        let host = host();
        skipped(&format!("packages for platforms other than {host} are not in cargo's cache"));
        output = ask(&["--filter-platform", &host]);
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("metadata is JSON")
}

/// An SPDX expression of AND and OR over [`LICENCES`].
fn allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" OR ").any(|either| either.split(" AND ").all(|one| LICENCES.contains(&one.trim())))
}

#[test]
fn licence_expressions_are_understood() {
    assert!(allowed("MIT OR Apache-2.0") && allowed("MIT/Apache-2.0") && allowed("GPL-3.0 OR MIT"));
    assert!(allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!allowed("GPL-3.0-only") && !allowed("MIT AND GPL-3.0-only") && !allowed(""));
}

#[test]
fn every_dependency_has_a_licence_and_comes_from_the_registry() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 20);
    for package in packages {
        let name = package["name"].as_str().unwrap_or("?");
        let Some(source) = package["source"].as_str() else {
            assert!(name.starts_with("uflip"), "{name} is a path dependency");
            continue;
        };
        assert!(source.starts_with("registry+"), "{name} comes from {source}");
        let licence = package["license"].as_str().unwrap_or("");
        assert!(allowed(licence), "{name}: licence '{licence}' is not one of {LICENCES:?}");
    }
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// (name, lines) of each function, by its indentation: rustfmt keeps it true.
fn functions(source: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let Some(at) = code.find("fn ").filter(|at| {
            code[..*at]
                .split_whitespace()
                .all(|w| w.starts_with("pub") || ["const", "async", "unsafe"].contains(&w))
        }) else {
            continue;
        };
        // A declaration, or a body on one line.
        let opening = lines[start..].iter().find(|l| l.ends_with([';', '{', '}']));
        if opening.is_none_or(|l| !l.ends_with('{')) {
            continue;
        }
        let end = format!("{indent}}}");
        let length = lines[start..].iter().position(|l| *l == end);
        let name = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        found.push((name, length.unwrap_or(0)));
    }
    found
}

#[test]
fn files_and_functions_stay_readable() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    assert!(files.len() > 30);
    let mut long = Vec::new();
    for file in &files {
        let source = std::fs::read_to_string(file).expect("a source file");
        if source.lines().count() > 800 {
            long.push(format!("{}: {} lines", file.display(), source.lines().count()));
        }
        for (name, lines) in functions(&source) {
            if lines > 90 {
                long.push(format!("{}: fn {name} of {lines} lines", file.display()));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn only_the_device_crate_may_be_unsafe() {
    for name in ["analysis", "measure", "report", "sim", "store"] {
        let lib = std::fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).expect("lib.rs");
        assert!(lib.contains("#![forbid(unsafe_code)]"), "crates/{name}");
    }
    let main = std::fs::read_to_string(root().join("crates/uflip/src/main.rs")).expect("main.rs");
    assert!(main.contains("#![forbid(unsafe_code)]"), "crates/uflip");
}
