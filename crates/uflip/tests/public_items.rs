//! No library keeps a public item that nobody uses, and no two public types share a
//! name.
//!
//! How: the sources are read as text. An item is alive where its name stands anywhere
//! in a crate's `src`, `benches` or `examples` outside of its own definition, its own
//! `impl` blocks, re-exports, comments and tests. Limits: a name is a word, so an item
//! that shares its name with a living one is not found; what only dead items use is
//! found after they are gone.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Used by tests alone, and why that is right.
const FOR_TESTS: [(&str, &str); 5] = [
    ("meter_every", "the power trace of a simulated device, which a sampling probe will ask for"),
    ("summarise", "the exact figures that the streamed statistics of two crates are held against"),
    ("set_reserve", "the crash tests make a file system full with little"),
    (
        "into_device",
        "what a power cut leaves of a simulated device, which is asked by tests only until it is modelled",
    ),
    ("taking", "memory that takes a stated time, for exact virtual times of two devices"),
];

/// Keywords before the name of an item.
const ITEMS: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "const", "static"];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn count(text: &[&str], name: &str) -> usize {
    text.iter().flat_map(|line| words(line)).filter(|word| *word == name).count()
}

/// All Rust files below a folder.
fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// The lines without comments, re-exports and test modules, and the names of test
/// modules in files of their own.
fn code(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut kept, mut test_files) = (Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("pub use ") {
            let mut part = line;
            while !part.contains(';') {
                part = lines.next().unwrap_or(";");
            }
        } else if line == "#[cfg(test)]" {
            let after = lines.by_ref().find(|line| !line.starts_with("#[")).unwrap_or_default();
            let name = words(after).skip_while(|word| *word != "mod").nth(1);
            match (name, after.ends_with(';')) {
                (Some(name), true) => test_files.push(name),
                _ if after.ends_with(['}', ';']) => {}
                _ => {
                    lines.by_ref().find(|line| *line == "}");
                }
            }
        } else if !line.trim_start().starts_with("//") {
            kept.push(line.split(" // ").next().unwrap_or(line));
        }
    }
    (kept, test_files)
}

/// The name that a line makes public, and whether it is a function's.
fn public(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let mut found = words(rest).skip_while(|word| ["unsafe", "async"].contains(word)).peekable();
    let mut item = found.next().filter(|word| ITEMS.contains(word))?;
    if item == "const" && found.peek() == Some(&"fn") {
        item = found.next()?;
    }
    Some((found.next()?, item == "fn"))
}

/// The lines from `first` to the end of the item that begins there.
fn whole<'a>(lines: &'a [&'a str], first: usize) -> &'a [&'a str] {
    let line = lines[first];
    let indent = &line[..line.len() - line.trim_start().len()];
    let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| ["}", "};", "];"].contains(&rest));
    if line.ends_with([';', '}']) {
        return &lines[first..=first];
    }
    let length = lines[first..].iter().position(ends).unwrap_or(0);
    &lines[first..=first + length]
}

/// How often an item's name stands in its own definition and `impl` blocks.
fn own(lines: &[&str], first: usize, name: &str, is_function: bool) -> usize {
    let mut times = count(whole(lines, first), name);
    if !is_function {
        let implements = |i: &usize| lines[*i].starts_with("impl") && count(&lines[*i..=*i], name) > 0;
        times += (0..lines.len()).filter(implements).map(|i| count(whole(lines, i), name)).sum::<usize>();
    }
    times
}

/// Public items of the files marked as a library's that no file uses.
fn dead(files: &[Code<'_>]) -> Vec<(String, PathBuf)> {
    let mut all = HashMap::new();
    for word in files.iter().flat_map(|(_, _, lines)| lines).flat_map(|line| words(line)) {
        *all.entry(word).or_insert(0) += 1;
    }
    let mut found = Vec::new();
    for (path, _, lines) in files.iter().filter(|(_, library, _)| *library) {
        for (i, line) in lines.iter().enumerate() {
            let Some((name, is_function)) = public(line) else { continue };
            if all[name] <= own(lines, i, name, is_function) {
                found.push((name.to_string(), path.clone()));
            }
        }
    }
    found
}

/// A file's path, whether it is a library's, and its lines of code.
type Code<'a> = (PathBuf, bool, Vec<&'a str>);

/// The type that a line defines, and whether others see it: `pub`, `pub(crate)`.
fn defined(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start();
    let open = rest.strip_prefix("pub").filter(|rest| rest.starts_with([' ', '(']));
    let item = match open {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        // An associated type or one within a function is nobody else's.
        None if rest.len() < line.len() => return None,
        None => rest,
    };
    let mut found = words(item);
    let kinds = ["struct", "enum", "trait", "type", "union"];
    kinds.contains(&found.next()?).then_some(())?;
    Some((found.next()?, open.is_some()))
}

/// Names of public types that another public type, or two private ones, have too.
fn shared_names(files: &[Code<'_>]) -> Vec<String> {
    let mut all: BTreeMap<&str, [Vec<&Path>; 2]> = BTreeMap::new();
    for (path, _, lines) in files {
        for (name, open) in lines.iter().filter_map(|line| defined(line)) {
            all.entry(name).or_default()[usize::from(open)].push(path);
        }
    }
    let shared = all.into_iter().filter(|(_, [private, open])| {
        open.len() > 1 || !open.is_empty() && private.len() > 1 || private.len() > 3
    });
    shared.map(|(name, at)| format!("{name} in {:?}", at.concat())).collect()
}

/// The sources of all crates outside of test modules.
fn with_sources<T>(what: impl FnOnce(&[Code<'_>]) -> T) -> T {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = Vec::new();
    for one in std::fs::read_dir(&crates).expect("the crates") {
        let one = one.expect("a crate").path();
        ["src", "benches", "examples"].iter().for_each(|part| rust_files(&one.join(part), &mut paths));
    }
    assert!(paths.len() > 100, "only {} files in {}", paths.len(), crates.display());
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a source file");
    let texts: Vec<(PathBuf, String)> = paths.iter().map(|path| (path.clone(), read(path))).collect();
    let mut of_tests = Vec::new();
    let mut files = Vec::new();
    for (path, text) in &texts {
        let (lines, test_files) = code(text);
        let is_root =
            path.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs" || name == "mod.rs");
        let folder = if is_root { path.with_file_name("") } else { path.with_extension("") };
        of_tests.extend(test_files.iter().map(|name| folder.join(name)));
        let in_library =
            path.ancestors().any(|folder| folder.ends_with("src") && folder.join("lib.rs").is_file());
        files.push((path.clone(), in_library, lines));
    }
    files.retain(|(path, _, _)| {
        !of_tests.iter().any(|test| path.starts_with(test) || path.with_extension("") == *test)
    });
    what(&files)
}

#[test]
fn no_two_public_types_share_a_name() {
    let shared = with_sources(|files| {
        // FTLs are alike on purpose: each file has the same few types.
        let counts = |path: &Path| {
            let path = path.to_string_lossy();
            path.contains("/src/") && !path.contains("sim/src/ftl/")
        };
        let others: Vec<Code<'_>> = files.iter().filter(|(path, ..)| counts(path)).cloned().collect();
        shared_names(&others)
    });
    assert!(shared.is_empty(), "one name for several types; rename all but one:\n{}", shared.join("\n"));
}

#[test]
fn types_that_share_a_name_are_found() {
    let file = |name: &str, text| (PathBuf::from(name), true, code(text).0);
    let one = file("a.rs", "pub struct Twice;\nstruct Local;\nstruct Often;\npub(crate) enum Shared {}\n");
    let other = file(
        "b.rs",
        "pub(super) trait Twice {\n    type Local;\n}\npub struct Local;\ntype Shared = u8;\npub fn Often() {}\n",
    );
    let third = file("c.rs", "enum Shared {}\n#[cfg(test)]\nmod tests {\n    pub struct Local;\n}\n");
    let found = shared_names(&[one, other, third]);
    assert_eq!(found, ["Shared in [\"b.rs\", \"c.rs\", \"a.rs\"]", "Twice in [\"a.rs\", \"b.rs\"]"]);
}

#[test]
fn no_public_item_is_dead() {
    let found = with_sources(dead);
    let unknown: Vec<String> = found
        .iter()
        .filter(|(name, _)| !FOR_TESTS.iter().any(|(allowed, _)| allowed == name))
        .map(|(name, path)| format!("{name} in {}", path.display()))
        .collect();
    assert!(
        unknown.is_empty(),
        "public and used nowhere but in tests; remove them or make them private:\n{}",
        unknown.join("\n")
    );
    for (name, why) in FOR_TESTS {
        let still = found.iter().any(|(dead, _)| dead == name);
        assert!(still, "{name} is used now, or is gone: take it off the list ({why})");
    }
}

/// The lines of each crate's Rust files, tests, benches and examples included.
fn lines_by_crate() -> Vec<(PathBuf, usize)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let lines = |path: &PathBuf| std::fs::read_to_string(path).expect("a source file").lines().count();
    let of_crate = |folder: PathBuf| {
        let mut paths = Vec::new();
        rust_files(&folder, &mut paths);
        let sum = paths.iter().map(lines).sum();
        (folder, sum)
    };
    let all = std::fs::read_dir(&crates).expect("the crates").map(|one| one.expect("a crate").path());
    all.filter(|folder| folder.join("Cargo.toml").is_file()).map(of_crate).collect()
}

/// Those that hold more than a quarter of all lines.
fn too_large(crates: &[(PathBuf, usize)]) -> Vec<String> {
    let all: usize = crates.iter().map(|(_, lines)| lines).sum();
    let over = crates.iter().filter(|(_, lines)| 4 * lines > all);
    over.map(|(folder, lines)| format!("{} has {lines} of {all} lines", folder.display())).collect()
}

#[test]
fn no_crate_holds_more_than_a_quarter_of_the_lines() {
    let crates = lines_by_crate();
    assert!(crates.len() >= 7, "{crates:?}");
    let over = too_large(&crates);
    assert!(
        over.is_empty(),
        "over a quarter; move method, analysis and text out of it:\n{}",
        over.join("\n")
    );
    let of = |lines: &[usize]| lines.iter().map(|lines| (PathBuf::new(), *lines)).collect::<Vec<_>>();
    assert_eq!((too_large(&of(&[25, 25, 25, 25])).len(), too_large(&of(&[26, 24, 25, 25])).len()), (0, 1));
}

#[test]
fn what_is_dead_is_told_from_what_is_used() {
    let library = "pub use other::Reexported;\n\
        pub struct Dead {\n    field: u8,\n}\n\
        impl Dead {\n    pub fn used(&self) -> Dead {\n        Dead { field: 0 }\n    }\n}\n\
        pub struct Alive;\n\
        pub const fn calls_itself(n: u8) -> u8 {\n    calls_itself(n)\n}\n\
        // tested_only and DEAD_TOO are only spoken of.\n\
        pub fn tested_only() {}\n\
        pub const DEAD_TOO: u8 = 1;\n\
        pub(crate) fn not_public() {}\n\
        #[cfg(test)]\nmod tests {\n    fn uses() {\n        tested_only();\n    }\n}\n";
    let user = "fn main() {\n    Alive.used();\n}\n";
    let file = |name: &str, library, text| (PathBuf::from(name), library, code(text).0);
    let found = dead(&[file("lib.rs", true, library), file("main.rs", false, user)]);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Dead", "calls_itself", "tested_only", "DEAD_TOO"]);
    assert_eq!(code("#[cfg(test)]\nmod checks;\nfn a() {}").1, ["checks"]);
}
