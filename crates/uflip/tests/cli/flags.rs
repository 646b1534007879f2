//! The options of `uflip pattern` build its text form: what would have no effect or
//! contradicts is refused (every case: `measure/src/pattern/flags.rs`).

use crate::support::{Loop, expect};
use serde_json::Value;

#[test]
fn options_without_effect_are_refused_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    for (args, instead) in [
        (&["--pattern", "SR", "--io-size", "4K"][..], "type --pattern 'SR(io_size=4K)'"),
        (&["--pattern", "SR", "--io-size", "32K"], "type --pattern 'SR(io_size=32K)'"),
        (&["--pattern", "SR", "--base", "RW"], "leave one of the two away"),
        (&["--base", "SR", "--no-repeat"], "type --base RR instead of SR"),
        (&["--base", "SR", "--burst", "4"], "type --pause, too"),
        (&["--base", "SR", "--mix", "RW"], "type --ratio"),
        (&["--base", "SR", "--ratio", "3"], "type --mix"),
        (&[], "type --base with SR, RR, SW or RW"),
        (&["--base", "SR", "--dry-run", "--records", "r.csv"], "type > FILE.csv"),
        (&["--base", "SR", "--dry-run", "--json"], "--json does nothing with --dry-run"),
        (&["--base", "SR", "--dry-run", "--io-ignore", "9"], "--io-ignore does nothing with --dry-run"),
        (&["--base", "SR", "--dry-run", "--time-limit", "1s"], "--time-limit does nothing with --dry-run"),
    ] {
        let (out, err) = expect(folder.path(), 2, &[&["pattern", "null:"], args].concat());
        assert!(err.contains(instead) && out.is_empty(), "{args:?}: {err}");
    }
}

/// What `--json` prints as the pattern does the same as the options that built it.
#[test]
fn the_text_of_options_is_printed_and_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let of = |pattern: &[&str]| {
        let usual = ["pattern", "sim:mtron", "--io-count", "40", "--seed", "1", "--json"];
        let (out, _) = expect(folder.path(), 0, &[&usual[..], pattern].concat());
        let facts: Value = serde_json::from_str(&out).unwrap();
        (facts["pattern"].as_str().unwrap().to_string(), facts["stats"].clone())
    };
    let options = ["--base", "SW", "--io-size", "4K", "--incr", "-1", "--mix", "RR", "--ratio", "-3"];
    let (text, stats) = of(&[&options[..], &["--target-size", "1M"]].concat());
    let first = "1 SW(io_size=4K, target_offset=0B, target_size=1M, incr=-1)";
    assert_eq!(text, format!("{first} / 3 RR(io_size=4K, target_offset=0B, target_size=1M)"));
    assert_eq!(of(&["--pattern", &text]), (text.clone(), stats));
}

/// What is for writes, or for another device, does nothing where there are none.
#[test]
fn options_without_effect_are_refused_by_every_command_that_measures() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("a.job"), "a rr bs=4K count=8\n").unwrap();
    std::fs::write(at.join("set.job"), "set data=zeros seed=7\na rw bs=4K count=8\n").unwrap();
    let small = ["--scratch", "mine", "--scratch-size", "4M"];
    let reads =
        ["run", "-o", "out", "--only", "order", "--baselines", "SR", "--state", "none", "--method", "fixed"];
    let pattern = ["pattern", "--base", "RR", "--io-count", "8"];
    let job = ["job", "a.job", "-o", "out"];
    let set = ["job", "set.job", "-o", "out"];
    let data = "--data does nothing where nothing is written; leave it away";
    let discard = "--discard does nothing where nothing is trimmed; leave it away";
    let other = "--erase-device /dev/nothing: that names another device than ";
    for (command, option, said) in [
        (&reads[..], ["--data", "zeros"], data),
        (&reads, ["--discard", "secure"], discard),
        (&reads, ["--erase-device", "/dev/nothing"], other),
        (&pattern, ["--data", "zeros"], data),
        (&pattern, ["--discard", "plain"], discard),
        (&pattern, ["--erase-device", "/dev/nothing"], other),
        (&job, ["--data", "age"], data),
        (&job, ["--erase-device", "/dev/nothing"], other),
        (&set, ["--data", "age"], "--data does nothing, as the job says set data=zeros"),
        (&set, ["--seed", "8"], "--seed does nothing, as the job says set seed=7"),
        (&["demo"], ["--erase-device", "/dev/nothing"], other),
    ] {
        let (_, err) = expect(at, 2, &[command, &small, &option].concat());
        assert!(err.contains(said), "{command:?} {option:?}: {err}");
    }
    assert!(!at.join("out").exists() && !at.join("mine").exists(), "nothing was made");
    let (_, err) = expect(at, 2, &["pattern", "sim:mtron", "--base", "SW", "--erase-device", "/dev/nothing"]);
    assert!(err.contains(other), "{err}");
    let copy = ["copy", "mem:1M", "mem:1M", "--erase-device", "/dev/nothing"];
    assert!(expect(at, 2, &copy).1.contains(other), "memory");
    // What has an effect is taken, also where it says the same as the job.
    expect(at, 0, &[&pattern[..], &small].concat());
    expect(at, 0, &[&set[..], &small, &["--data", "zeros", "--seed", "7"]].concat());
    let Some(device) = Loop::new(16 << 20) else { return };
    let write =
        ["pattern", device.name(), "--base", "SW", "--io-count", "8", "--erase-device", device.name()];
    let (_, err) = expect(at, 2, &[&write[..], &["--erase-device", "/dev/nothing"]].concat());
    assert!(err.contains(other), "{err}");
    expect(at, 0, &write);
}

/// A word of a line that does nothing is refused; what a file says for another target
/// is said.
#[test]
fn words_of_a_job_without_effect_are_refused_or_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let job = |text: &str| std::fs::write(at.join("a.job"), text).unwrap();
    for (line, said) in [
        (
            "a rr,rw bs=4K count=8 start=0",
            "line 2: start=0 does nothing in a, as random accesses start nowhere",
        ),
        ("a sw bs=4K count=8 each=run", "line 2: each=run does nothing in a, as there is no before="),
    ] {
        job(&format!("# mine\n{line}\n"));
        for check in [&["--check"][..], &["-o", "out"]] {
            let (_, err) = expect(at, 2, &[&["job", "sim:mtron", "a.job"], check].concat());
            assert!(err.contains(said) && err.contains("leave it away"), "{err}");
        }
    }
    assert!(!at.join("out").exists());
    job("set data=zeros buffering=dsync\na sr,rw bs=4K count=8 start=0 before=idle(1s) each=run\n");
    for check in [&["--check"][..], &["-o", "out"]] {
        let (_, err) = expect(at, 0, &[&["job", "sim:mtron", "a.job"], check].concat());
        for set in ["set data=zeros", "set buffering=dsync"] {
            assert!(
                err.contains(&format!("note: {set} does nothing on sim:mtron, which takes IOs")),
                "{err}"
            );
        }
    }
    job("set data=zeros\na sr bs=4K count=8\n");
    let (_, err) =
        expect(at, 0, &["job", "a.job", "--scratch", "mine", "--scratch-size", "4M", "-o", "out2"]);
    assert!(err.contains("note: set data=zeros does nothing, as the job only reads"), "{err}");
}
