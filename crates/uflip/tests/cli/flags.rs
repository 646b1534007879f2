//! The options of `uflip pattern` build its text form: what would have no effect or
//! contradicts is refused (every case: `measure/src/pattern/flags.rs`).

use crate::support::expect;
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
