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

/// An option that nothing looks at beside the others was once taken without a word.
#[test]
fn an_option_without_effect_is_refused_in_every_table() {
    // What stands in the device's file, what is put there, the option named, what is typed instead.
    let cases = [
        ("nvme-tlc", "[timing]", "[timing]\ncopy_back_us = 5", "timing.copy_back_us", "\"bast\""),
        ("nvme-tlc", "[timing]", "[timing]\nmap_update_us = 5", "timing.map_update_us", "\"fast\""),
        ("nvme-tlc", "[timing]", "[timing]\nlog_switch_us = 5", "timing.log_switch_us", "\"block\""),
        ("kingston-dti", "[timing]", "[timing]\nmap_update_us = 5", "timing.map_update_us", "\"fast\""),
        ("nvme-tlc", "[buffer]", "[buffer]\nbatch_lines = 2", "buffer.batch_lines", "type another"),
        ("nvme-tlc", "[buffer]", "[buffer]\npipelined = true", "buffer.pipelined", "type another"),
        (
            "nvme-tlc",
            "[buffer]",
            "[buffer]\nbackground_share = 0.5",
            "buffer.background_share",
            "type another",
        ),
        ("samsung", "[buffer]", "[buffer]\nidle_delay_us = 5", "buffer.idle_delay_us", "\"async\""),
        ("samsung", "[buffer]", "[buffer]\ndestage_from_kib = 64", "buffer.destage_from_kib", "\"async\""),
        ("samsung", "[buffer]", "[buffer]\nlocks_lines = true", "buffer.locks_lines", "\"immediate\""),
        (
            "kingston-dt-elite-hs-2G",
            "[link]",
            "[link]\nread_streams = 4",
            "link.read_streams",
            "give link.read_ahead_kib",
        ),
        (HDD, "[link]", "[link]\nread_ahead_kib = 64", "link.read_ahead_kib", "disk.read_buffer_kib"),
        (HDD, "[link]", "[link]\nseek_read_us = 5", "link.seek_read_us", "remove it"),
        (HDD, "[link]", "[link]\nread_streams = 4", "link.read_streams", "remove it"),
        (
            HDD,
            "write_buffer_kib = 16384",
            "write_buffer_kib = 0",
            "disk.write_queue",
            "give disk.write_buffer_kib",
        ),
        (HDD, "[energy]", "[energy]\nread_uj = 1", "energy.read_uj", "type energy.idle_mw"),
        (HDD, "[energy]", "[energy]\nprogram_uj = 1", "energy.program_uj", "type energy.idle_mw"),
        (HDD, "[energy]", "[energy]\nerase_uj = 1", "energy.erase_uj", "type energy.idle_mw"),
    ];
    for (name, old, new, key, instead) in cases {
        let text = catalogue::text(name).unwrap();
        assert!(text.contains(old), "{name}: {old}");
        let text = text.replacen(old, new, 1);
        let error = check(&text).map(|_| ()).unwrap_err();
        assert!(error.message.starts_with(&format!("{key}: ")), "{name}, {new}: {error}");
        assert!(error.message.contains(instead), "{name}, {new}: {error}");
        let line = text.lines().nth(error.line - 1).unwrap();
        assert!(line.starts_with(key.rsplit('.').next().unwrap()), "{name}, {new}: line {line}");
    }
}

const HDD: &str = "seagate-barracuda-7200.11-hdd-500G";
