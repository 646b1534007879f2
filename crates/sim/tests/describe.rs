//! Bad descriptions are told with the line and what to type instead.

use uflip_sim::{catalogue, check};

/// `mtron` with one line replaced; gives the error's text.
fn broken(old: &str, new: &str) -> String {
    let text = catalogue::text("mtron").unwrap();
    assert!(text.contains(old), "{old}");
    check(&text.replacen(old, new, 1)).map(|_| ()).unwrap_err().to_string()
}

fn line_of(needle: &str) -> String {
    let text = catalogue::text("mtron").unwrap();
    let line = text.lines().position(|l| l.starts_with(needle)).unwrap() + 1;
    format!("line {line}: ")
}

#[test]
fn errors_name_the_line_and_what_to_type() {
    let cases = [
        ("program_us = 200", "program_us = -5", "program_us", "type a number from 0"),
        ("program_us = 200", "program_us = \"fast\"", "program_us", "expected"),
        ("page_bytes = 4096", "page_bytes = 3000", "page_bytes", "power of two"),
        ("superblock_dies = 4", "superblock_dies = 5", "superblock_dies", "divide the 16 dies"),
        ("log_blocks = 4", "log_kib = 4", "log_blocks", "remove it"),
        ("log_blocks = 4", "log_blocs = 4", "log_blocks", "unknown field"),
        ("kind = \"bast\"", "kind = \"blast\"", "kind", "bast"),
        ("merge_batch = 3 ", "merge_batch = 999 ", "merge_batch", "from 1 to 4"),
        ("\"timing.read_us\" = ", "\"timing.reed_us\" = ", "\"timing.read_us\"", "does not have"),
    ];
    for (old, new, key, says) in cases {
        let message = broken(old, new);
        assert!(message.starts_with(&line_of(key)), "{new}: {message}");
        assert!(message.contains(says), "{new}: {message}");
    }
}

#[test]
fn whole_tables_are_asked_for() {
    let message = broken("[ftl]", "[elsewhere]");
    assert!(message.contains("elsewhere") || message.contains("ftl"), "{message}");
    let only = "name = \"x\"\ncapacity_mib = 1\n[link]\nread_latency_us = 1\nwrite_latency_us = 1\nread_mb_s = 1\nwrite_mb_s = 1\n";
    assert!(check(only).unwrap_err().to_string().contains("add [geometry]"));
}
